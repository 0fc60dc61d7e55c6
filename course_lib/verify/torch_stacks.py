"""Torch's own layers, run with the weights of our blocks: the oracles of lesson 08."""

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import masks
from course_lib.positions import sinusoidal
from course_lib.verify.comparison import Inputs


def draw_sizes(inputs: Inputs) -> dict[str, int]:
    """Draw the sizes that build a model, d_model even as sinusoids need it."""
    vocab, layers, heads, d_k, d_ff = inputs.sizes(5, 1, 4)
    d_model = 2 * heads * d_k
    names = ("vocab", "layers", "d_model", "heads", "d_ff", "max_length")
    return dict(zip(names, (vocab, layers, d_model, heads, d_ff, 6), strict=True))


def draw_weights(inputs: Inputs, module: nn.Module) -> dict[str, Tensor]:
    """Draw all parameters of a module; tied ones once."""
    return {name: inputs.normal(*p.shape) for name, p in module.named_parameters()}


def draw_padded_tokens(inputs: Inputs, sizes: dict[str, int], batch: int | None = None):
    """Draw sentences of unequal lengths, and the mask of their real words."""
    if batch is None:
        [batch] = inputs.sizes(1, 1, 3)
    [n] = inputs.sizes(1)
    tokens = torch.tensor(inputs.sizes(batch * n, 0, sizes["vocab"] - 1)).reshape(batch, n)
    return tokens, masks.padding_mask(torch.tensor(inputs.sizes(batch, 1, n)), n)


def torch_encoder(weights: dict, sizes: dict, norm: str, tokens: Tensor, mask: Tensor) -> Tensor:
    """Run a stack of torch's encoder layers, with the weights of our `Encoder`."""
    x = _torch_embedding(weights, tokens)
    for i in range(sizes["layers"]):
        x = torch_block(part(weights, f"blocks.{i}."), sizes["heads"], norm, x, mask)
    return _torch_last_norm(weights, norm, x)


def torch_decoder(
    weights: dict, sizes: dict, norm: str, tokens: Tensor, memory: Tensor, mask: Tensor
) -> Tensor:
    """Run a stack of torch's decoder layers, with the weights of our `Decoder`."""
    x = _torch_embedding(weights, tokens)
    for i in range(sizes["layers"]):
        x = torch_block(part(weights, f"blocks.{i}."), sizes["heads"], norm, x, mask, memory)
    return _torch_last_norm(weights, norm, x)


def _torch_embedding(weights: dict, tokens: Tensor) -> Tensor:
    table = weights["embedding.table"]
    n, d_model = tokens.shape[-1], table.shape[-1]
    return F.embedding(tokens, table) * d_model**0.5 + sinusoidal(n, d_model)


def _torch_last_norm(weights: dict, norm: str, x: Tensor) -> Tensor:
    if norm == "post":
        return x
    return F.layer_norm(x, x.shape[-1:], weights["last_norm.gain"], weights["last_norm.bias"])


def torch_block(
    weights: dict, heads: int, norm: str, x: Tensor, mask: Tensor, memory: Tensor | None = None
) -> Tensor:
    """Run torch's layer: the decoder's, causal, where there is a memory that `mask` is for."""
    kind = nn.TransformerEncoderLayer if memory is None else nn.TransformerDecoderLayer
    d_ff = len(weights["feed_forward.sublayer.b_1"])
    layer = kind(x.shape[-1], heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm == "pre")
    padding = ~mask.squeeze(-2)
    if memory is None:
        return functional_call(layer, _torchs(weights), x, {"src_key_padding_mask": padding})
    options = {
        "tgt_mask": ~masks.causal_mask(x.shape[-2]),
        "memory_key_padding_mask": padding,
    }
    return functional_call(layer, _torchs(weights), (x, memory), options)


def torch_causal_block(weights: dict, heads: int, x: Tensor, mask: Tensor) -> Tensor:
    """Run torch's encoder layer, norm first, where no word sees what `mask` hides."""
    d_ff = len(weights["feed_forward.sublayer.b_1"])
    kind = nn.TransformerEncoderLayer
    layer = kind(x.shape[-1], heads, d_ff, dropout=0.0, batch_first=True, norm_first=True)
    return functional_call(layer, _torchs(weights), x, {"src_mask": ~mask})


def _torchs(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Give the weights of one of our blocks the names and shapes that torch's layers have."""
    layers = ["attention", "cross_attention", "feed_forward"]
    layers = [name for name in layers if f"{name}.gain" in weights]
    renamed = {}
    for number, name in enumerate(layers, 1):
        renamed[f"norm{number}.weight"] = weights[f"{name}.gain"]
        renamed[f"norm{number}.bias"] = weights[f"{name}.bias"]
    for name, torchs in (("attention", "self_attn"), ("cross_attention", "multihead_attn")):
        if name in layers:
            ours = part(weights, f"{name}.sublayer.attention.")
            for kind in ("weight", "bias"):
                renamed[f"{torchs}.in_proj_{kind}"] = torch.cat(
                    [ours[f"w_{role}.{kind}"] for role in "qkv"]
                )
                renamed[f"{torchs}.out_proj.{kind}"] = ours[f"w_o.{kind}"]
    for number in (1, 2):
        renamed[f"linear{number}.weight"] = weights[f"feed_forward.sublayer.w_{number}"].mT
        renamed[f"linear{number}.bias"] = weights[f"feed_forward.sublayer.b_{number}"]
    return renamed


def part(weights: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Take the weights whose names begin with the prefix, which is left off."""
    return {k.removeprefix(prefix): w for k, w in weights.items() if k.startswith(prefix)}
