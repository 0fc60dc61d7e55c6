"""Add and norm: residual connections, and tokens brought to a common size (lesson 07).

The last function is a head that only a residual stream makes possible (07_induction_heads).
"""

from collections.abc import Callable

import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F


def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each token to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the token's own d entries, each sum divided by d; entries may
    lie far from zero. Source: Ba et al. 2016, eq. 4, with eps as in torch.
    """
    # move the mean of each token to zero
    centred = x - reduce(x, "... d -> ... 1", "mean")
    # average the squares of what is left: that is the variance
    variance = reduce(centred**2, "... d -> ... 1", "mean")
    # divide by the standard deviation, then stretch and shift each column as learned
    return gain * centred / torch.sqrt(variance + eps) + bias


def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Divide each token by its root mean square, not centred: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    # average the squares of each token's entries
    square = reduce(x**2, "... d -> ... 1", "mean")
    # divide by the root, then stretch each column as learned
    return gain * x / torch.sqrt(square + eps)


def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real tokens of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    tokens where `mask` is True; padded tokens are normalised with them too. Where no token is real,
    both are 0. Tokens may lie far from zero. These are the statistics of training; none are kept.
    Source: Ioffe & Szegedy 2015, algorithm 1. Raises ValueError for a mask that is not boolean, or
    not (batch, n).
    """
    real = torch.ones_like(x[..., 0], dtype=torch.bool) if mask is None else mask
    if real.dtype != torch.bool or real.shape != x.shape[:-1]:
        raise ValueError(
            f"a mask of real tokens must be boolean, of the shape (batch, n) = "
            f"{tuple(x.shape[:-1])}, not {real.dtype} of {tuple(real.shape)}: does it hold 0 and "
            "1, or does padding_mask's query axis need a .squeeze(-2)?"
        )
    if not real.any():
        return gain * x / eps**0.5 + bias
    # give every real token the same share in the averages, and padding none
    share = real / real.sum().to(x.dtype)
    # average each column over all sentences, then the squares of what is left of it
    mean = einsum(share, x, "batch n, batch n d -> d")
    variance = einsum(share, (x - mean) ** 2, "batch n, batch n d -> d")
    # divide by the standard deviation, then stretch and shift each column as learned
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


class Norm(nn.Module):
    """Hold the gain and the bias of a norm, and learn them: norm_layer(x, gain, bias)."""

    def __init__(self, d_model: int, norm_layer: Callable[..., Tensor] = layer_norm):
        super().__init__()
        self.norm_layer = norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Normalise each token."""
        return self.norm_layer(x, self.gain, self.bias)


class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes tokens to tokens of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        # add what the sublayer found to what was there
        added = x + self.sublayer(x, *args)
        # normalise the sum
        return self.norm_layer(added, self.gain, self.bias)


class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        # normalise what the sublayer reads, and nothing else
        read = self.norm_layer(x, self.gain, self.bias)
        # add what the sublayer found to what was there
        return x + self.sublayer(read, *args)


class DeepNorm(nn.Module):
    """Post-norm in which x weighs more than what a layer found: norm(alpha x + sublayer(x)).

    For N blocks of two layers, alpha = (2 N)^(1/4). Source: Wang et al. 2022, section 3, without
    its smaller initial weights.
    """

    def __init__(
        self, sublayer: Callable, d_model: int, alpha: float, norm_layer: Callable = layer_norm
    ):
        super().__init__()
        self.sublayer, self.alpha, self.norm_layer = sublayer, alpha, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised weighted sum; the sublayer gets `args` after x."""
        # let what was there weigh alpha times as much as what the sublayer found
        added = self.alpha * x + self.sublayer(x, *args)
        # normalise the sum
        return self.norm_layer(added, self.gain, self.bias)


def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. The direction may be as short as 1e-15,
    or as long as 1e15. Source: Elhage et al. 2021, "A Mathematical Framework for Transformer
    Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    largest = direction.detach().abs().max()
    if largest == 0:
        raise ValueError(
            "a direction needs a length, but this one is all zeros: was it ever written to?"
        )
    # bring the direction to length one
    unit = F.normalize(direction / largest, dim=-1)  # so divided, its squares do not overflow
    # read how large each token's part along it is
    amount = einsum(stream, unit, "... d, d -> ...")
    # add the negative of that part
    return stream - amount.unsqueeze(-1) * unit


def induction_weights(
    vocab: int,
) -> tuple[
    Float[Tensor, "d_model d_k"],
    Float[Tensor, "d_model d_k"],
    Float[Tensor, "d_model d_v"],
    Float[Tensor, "d_v d_model"],
]:
    """Set by hand the matrices (w_q, w_k, w_v, w_o) of an induction head.

    The stream of a token is d_model = 3 * vocab + 16 numbers: the token as a one-hot vector; the
    token before it, one-hot, as an earlier layer has written it; the prediction, still empty; 16
    numbers of position. The causal head reads x, and its output, added to the stream, fills the
    prediction alone. Where the same token occurred before, the prediction is the token that
    followed it there (the average of those tokens, if it occurred several times), to within 0.002.
    Elsewhere the prediction is free. This holds for texts of up to 600 tokens and a vocab of up to
    200. d_k and d_v are free. Source: Elhage et al. 2021, "A Mathematical Framework for Transformer
    Circuits".
    """
    token, before, prediction = (slice(part * vocab, (part + 1) * vocab) for part in range(3))
    same = torch.eye(vocab)
    w_q, w_k, w_v = torch.zeros(3, 3 * vocab + 16, vocab)
    w_o = torch.zeros(vocab, 3 * vocab + 16)
    # choose which part of the stream a query reads, and which part a key reads
    w_q[token], w_k[before] = same, same
    # choose how large the scores are
    w_q *= 30 * vocab**0.5
    # choose which part a value reads, and which part the output goes to
    w_v[token], w_o[:, prediction] = same, same
    return w_q, w_k, w_v, w_o
