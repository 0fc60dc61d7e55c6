"""The comparisons of `course_lib.multi_head`."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from course_lib import masks, multi_head
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.verify.comparison import Inputs, compare


@compare(multi_head.split_heads, "`torch.chunk`, then `torch.stack`")
def _split_heads(inputs: Inputs):
    n, heads, d_k = inputs.sizes(3)
    x = inputs.normal(*inputs.batch(), n, heads * d_k)
    return multi_head.split_heads(x, heads), torch.stack(x.chunk(heads, dim=-1), dim=-3)


@compare(multi_head.merge_heads, "`torch.unbind`, then `torch.cat`")
def _merge_heads(inputs: Inputs):
    x = inputs.normal(*inputs.batch(), *inputs.sizes(3))
    return multi_head.merge_heads(x), torch.cat(x.unbind(dim=-3), dim=-1)


@compare(multi_head.MultiHeadAttention, "`nn.MultiheadAttention`")
def _multi_head(inputs: Inputs):
    return _both_multi_heads(inputs, inputs.batch(), lambda batch, n_q, n_k: None)


@compare(multi_head.MultiHeadAttention, "the same, with one mask and a row all masked")
def _masked_multi_head(inputs: Inputs):
    return _both_multi_heads(inputs, inputs.batch(), lambda batch, *pair: inputs.mask(*pair))


@compare(multi_head.MultiHeadAttention, "the same, with `key_padding_mask`")
def _padded_multi_head(inputs: Inputs):
    def padding(batch: int, n_q: int, n_k: int) -> Tensor:
        return masks.padding_mask(torch.tensor(inputs.sizes(batch, 1, n_k)), n_k)

    return _both_multi_heads(inputs, inputs.sizes(1), padding)


@compare(multi_head.attend_in_heads, "`F.multi_head_attention_forward`")
def _attend_in_heads(inputs: Inputs):
    n, heads, d_k = inputs.sizes(3)
    d_model = heads * d_k
    x = inputs.normal(n, 1, d_model)
    q, k, v, o = (inputs.normal(d_model, d_model) for _ in range(4))
    theirs, _ = F.multi_head_attention_forward(
        *(x, x, x, d_model, heads),
        *(torch.cat([q.T, k.T, v.T]), None, None, None, False, 0.0, o.T, None),
    )
    ours = multi_head.attend_in_heads(x.squeeze(1), q, k, v, o, heads)
    return ours, theirs.squeeze(1)


@compare(multi_head.pair_weights, "looking the two numbers up by indices")
def _pair_weights(inputs: Inputs):
    (names,) = inputs.sizes(1, 3)
    numbers, own = inputs.normal(names), torch.tensor(inputs.sizes(names)).argsort()
    wanted = torch.tensor(inputs.sizes(2 * names, 0, names - 1)).view(names, 2)
    three = F.one_hot(torch.cat([own.unsqueeze(-1), wanted], dim=-1), names).flatten(1)
    x = torch.cat([three.double(), numbers.unsqueeze(-1)], dim=-1)
    *roles, w_o = (w.double() for w in multi_head.pair_weights(names))
    q, k, v = (multi_head.split_heads(x @ w, 2) for w in roles)
    found = multi_head.merge_heads(scaled_dot_product_attention(q, k, v)) @ w_o
    return found, numbers[own.argsort()[wanted]]


@compare(multi_head.AsSelfAttention, "`nn.MultiheadAttention(x, x, x)`")
def _to_themselves(inputs: Inputs):
    batch, n, heads, d_k = inputs.sizes(4)
    x, (ours, torchs) = inputs.normal(batch, n, heads * d_k), _parameters(inputs, heads * d_k)
    return _adapted(multi_head.AsSelfAttention, heads, ours, (x,), torchs, (x, x, x))


@compare(multi_head.AsCrossAttention, "`nn.MultiheadAttention(x, memory, memory)`")
def _to_memory(inputs: Inputs):
    batch, n_q, n_k, heads, d_k = inputs.sizes(5)
    x, memory = (inputs.normal(batch, n, heads * d_k) for n in (n_q, n_k))
    ours, torchs = _parameters(inputs, heads * d_k)
    adapter, theirs = multi_head.AsCrossAttention, (x, memory, memory)
    return _adapted(adapter, heads, ours, (x, memory), torchs, theirs)


def _adapted(adapter: type, heads: int, ours: dict, x: tuple, torchs: dict, roles: tuple):
    d_model = x[0].shape[-1]
    layer = adapter(multi_head.MultiHeadAttention(d_model, heads))
    ours = {f"attention.{name}": weight for name, weight in ours.items()}
    theirs = nn.MultiheadAttention(d_model, heads, batch_first=True)
    return functional_call(layer, ours, x), functional_call(theirs, torchs, roles)[0]


def _parameters(inputs: Inputs, d_model: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Draw the parameters of a layer, and name them as ours and as torch's."""
    weights = [inputs.normal(d_model, d_model) for _ in range(4)]
    biases = [inputs.normal(d_model) for _ in range(4)]
    ours = {f"w_{role}.weight": w for role, w in zip("qkvo", weights, strict=True)}
    ours |= {f"w_{role}.bias": b for role, b in zip("qkvo", biases, strict=True)}
    torchs = {
        "in_proj_weight": torch.cat(weights[:3]),
        "in_proj_bias": torch.cat(biases[:3]),
        "out_proj.weight": weights[3],
        "out_proj.bias": biases[3],
    }
    return ours, torchs


def _both_multi_heads(inputs: Inputs, batch: list[int], draw_mask: Callable):
    """Attend with ours and torch's; a mask with one row a sentence is a padding mask."""
    n_q, n_k, heads, d_k = inputs.sizes(4)
    d_model = heads * d_k
    query = inputs.normal(*batch, n_q, d_model)
    key, value = (inputs.normal(*batch, n_k, d_model) for _ in range(2))
    parameters, torchs = _parameters(inputs, d_model)
    mask = draw_mask(math.prod(batch), n_q, n_k)
    ours = multi_head.MultiHeadAttention(d_model, heads)
    theirs = nn.MultiheadAttention(d_model, heads, batch_first=True)
    options = {"need_weights": False}
    if mask is not None and mask.dim() == 3:
        options["key_padding_mask"] = ~mask.squeeze(-2)
    elif mask is not None:
        options["attn_mask"] = ~mask
    flat = tuple(x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    expected, _ = functional_call(theirs, torchs, flat, options)
    return functional_call(ours, parameters, (query, key, value, mask)), expected.reshape(
        query.shape
    )


@compare(multi_head.induction_score, "a loop over queries and keys")
def _induction_score(inputs: Inputs):
    n, heads = inputs.sizes(2, 2)
    tokens = torch.tensor(inputs.sizes(2 * n, 0, n - 1))
    weights = inputs.normal(heads, 2 * n, 2 * n)
    return multi_head.induction_score(weights, tokens), _looped(weights, tokens.tolist())


def _looped(weights: Tensor, tokens: list[int]) -> Tensor:
    found = []
    for query, token in enumerate(tokens):
        keys = [key for key in range(1, query + 1) if tokens[key - 1] == token]
        if keys:
            found.append(torch.stack([weights[:, query, key] for key in keys]).sum(0))
    return torch.stack(found).mean(0)
