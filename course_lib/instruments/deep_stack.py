"""Blocks stacked as high as one likes, their layers joined as one likes (lesson 07)."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.add_norm import Norm, batch_norm, layer_norm
from course_lib.feed_forward import FeedForward
from course_lib.instruments import training
from course_lib.masks import causal_mask
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention
from course_lib.positions import sinusoidal


class Stack(nn.Module):
    """Read characters, and score the next one after each of them.

    Embeddings plus positions, then `blocks` times self-attention and the feed-forward network,
    then one linear layer. `wrap(sublayer, d_model)` says how each layer meets the stream: `bare`,
    `Residual` or `NormAlone` from here, `PostNorm` or `PreNorm` from `add_norm`. Pre-norm wants a
    `last_norm` before the linear layer, which is `norm_layer(x, gain, bias)`. `attention(d_model,
    heads)` and `feed_forward(d_model, d_ff)` make the layers. With `causal=False` each character
    sees all others.
    """

    def __init__(
        self,
        vocab: int,
        blocks: int,
        d_model: int,
        heads: int,
        wrap: Callable,
        *,
        last_norm: bool = False,
        causal: bool = True,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.attention = nn.ModuleList(
            wrap(AsSelfAttention(attention(d_model, heads)), d_model) for _ in range(blocks)
        )
        self.feed_forward = nn.ModuleList(
            wrap(feed_forward(d_model, 4 * d_model), d_model) for _ in range(blocks)
        )
        self.last = Norm(d_model, norm_layer) if last_norm else nn.Identity()
        self.scores = nn.Linear(d_model, vocab)
        self.causal = causal

    def streams(self, tokens: Int[Tensor, "... n"]) -> list[Float[Tensor, "... n d_model"]]:
        """Return the stream as it enters the first block, and as it leaves each block."""
        x = self.embedding(tokens)
        x = x + sinusoidal(*x.shape[-2:]).to(x)
        mask = causal_mask(tokens.shape[-1]).to(x.device) if self.causal else None
        streams = [x]
        for attention, feed_forward in zip(self.attention, self.feed_forward, strict=True):
            streams.append(feed_forward(attention(streams[-1], mask)))
        return streams

    def read(self, top: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n vocab"]:
        """Return the scores that are read from the top of the stream."""
        return self.scores(self.last(top))

    def forward(self, tokens: Int[Tensor, "... n"]) -> Float[Tensor, "... n vocab"]:
        """Return the scores of the character after each."""
        return self.read(self.streams(tokens)[-1])


STARTS: dict[str, Callable[[Tensor, int], Tensor]] = {
    # (parameters, number of inputs): how a matrix is drawn
    "torch's default": lambda w, inputs: w.uniform_(-(inputs**-0.5), inputs**-0.5),
    "N(0, 1/fan-in)": lambda w, inputs: w.normal_(0, inputs**-0.5),
    "N(0, 0.02²)": lambda w, inputs: w.normal_(0, 0.02),
}


@torch.no_grad()
def redraw(model: Stack, start: str, seed: int = 0) -> Stack:
    """Draw all matrices of a stack's blocks anew, in place, as one of `STARTS` says.

    Biases are drawn like the matrices under torch's default, and are 0 otherwise. Embeddings, norms
    and the last linear layer stay as they are.
    """
    layers = []  # (matrix, bias, number of inputs)
    for part in [*model.attention.modules(), *model.feed_forward.modules()]:
        if isinstance(part, nn.Linear):
            layers.append((part.weight, part.bias, part.in_features))
        elif isinstance(part, FeedForward):
            layers += [(part.w_1, part.b_1, len(part.w_1)), (part.w_2, part.b_2, len(part.w_2))]
    with training.seeded(seed):
        for matrix, bias, inputs in layers:
            STARTS[start](matrix, inputs)
            if start == "torch's default":
                STARTS[start](bias, inputs)
            else:
                bias.zero_()
    return model


@torch.no_grad()
def follow(model: Stack, tokens: Int[Tensor, "batch n"], place: int) -> dict[str, list[float]]:
    """Follow the state of the character at `place` from below the first block to above the last.

    At each level `size` is the state's root mean square, and `own` how much of the state is the
    character's own: by what share the state changes if this character alone is replaced by the next
    one of the vocabulary, as a multiple of that share at the lowest level, and at most 1. Both are
    means over the batch.
    """
    replaced = tokens.clone()
    replaced[:, place] = (tokens[:, place] + 1) % model.embedding.num_embeddings
    sizes, shares = [], []
    for stream, other in zip(model.streams(tokens), model.streams(replaced), strict=True):
        state, moved = stream[:, place], (other - stream)[:, place]
        sizes.append(state.square().mean().sqrt().item())
        shares.append((moved.norm(dim=-1) / state.norm(dim=-1)).mean().item())
    return {"size": sizes, "own": [min(1.0, share / shares[0]) for share in shares]}


def bare(sublayer: nn.Module, d_model: int) -> nn.Module:
    """Replace the stream by what the layer returns, as networks did before 2015: sublayer(x)."""
    return sublayer


class Residual(nn.Module):
    """Add what the layer returns to the stream: x + sublayer(x). Source: He et al. 2016, eq. 1."""

    def __init__(self, sublayer: Callable, d_model: int):
        super().__init__()
        self.sublayer = sublayer

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets `args` after x."""
        return x + self.sublayer(x, *args)


class NormAlone(nn.Module):
    """Normalise what a layer reads, and add nothing to what it writes: sublayer(norm(x))."""

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm = sublayer, Norm(d_model, norm_layer)

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return what the sublayer makes of the normalised x, and `args` after it."""
        return self.sublayer(self.norm(x), *args)


class RunningBatchNorm(nn.Module):
    """Batch norm as it is used: the batch's statistics in training, running averages afterwards.

    A `norm_layer` for `PreNorm` and `PostNorm`. After each training batch both averages move a
    tenth of the way to that batch's mean and variance. Source: Ioffe & Szegedy 2015, section 3.1,
    with the momentum of torch's `nn.BatchNorm1d`.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, d_model: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(d_model))
        self.register_buffer("variance", torch.ones(d_model))

    def forward(
        self, x: Float[Tensor, "batch n d"], gain: Float[Tensor, " d"], bias: Float[Tensor, " d"]
    ) -> Float[Tensor, "batch n d"]:
        """Normalise each column, by this batch in training and by the running averages after."""
        if self.training:
            tokens = x.detach().flatten(0, -2)
            self.mean.lerp_(tokens.mean(0), 0.1)
            self.variance.lerp_(tokens.var(0), 0.1)
            return batch_norm(x, gain, bias)
        return gain * (x - self.mean) / torch.sqrt(self.variance + 1e-5) + bias
