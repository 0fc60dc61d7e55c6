"""Weights of four or eight bits, and how they become numbers again (lesson 09).

A row is cut into blocks of 32 weights, and each block keeps one scale of its own, so a large
weight spoils only its neighbours. The layouts are those of GGML: https://github.com/ggml-org/ggml.
"""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

BLOCK = 32  # weights
BYTES = {"Q4_1": 20, "Q8_0": 34}  # of one block


def q4_1(blocks: UInt8[Tensor, "n 20"]) -> Float[Tensor, "n 32"]:
    """Return w = scale * q + least, with q from 0 to 15: 5 bits a weight, all told.

    A block is the scale and the least weight, two float16, then 16 bytes: the low halves hold the
    first 16 of the q, the high halves the last 16.
    """
    scale, least = _halves(blocks[:, :2]), _halves(blocks[:, 2:4])
    packed = blocks[:, 4:]
    return torch.cat([packed & 15, packed >> 4], dim=-1) * scale + least


def step(weight: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return the distance of two neighbours in Q4_1, for each weight: a fifteenth of its block."""
    least, most = weight.reshape(-1, BLOCK).aminmax(dim=1, keepdim=True)
    return ((most - least) / 15).expand(-1, BLOCK).reshape(weight.shape)


def unrounded(weight: Float[Tensor, "..."], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Move each weight by up to half a step of Q4_1, to where it may have been before rounding."""
    return weight + (torch.rand(weight.shape, generator=generator) - 0.5) * step(weight)


def as_q4_1(weight: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Return what becomes of weights that are written in Q4_1 and read again, 32 to a block.

    A block's scale is a fifteenth of the way from its least weight to its largest.
    """
    blocks = weight.reshape(-1, BLOCK)
    least, most = blocks.aminmax(dim=1, keepdim=True)
    scale, least = ((most - least) / 15).half().float(), least.half().float()
    # a block of equal weights has the scale 0
    q = ((blocks - least) / scale).nan_to_num(0.0, 0.0, 0.0).round().clamp(0, 15)
    return (q * scale + least).reshape(weight.shape)


def q8_0(blocks: UInt8[Tensor, "n 34"]) -> Float[Tensor, "n 32"]:
    """Return w = scale * q, with q from -128 to 127: 8.5 bits a weight, all told.

    A block is the scale, a float16, then 32 signed bytes.
    """
    return blocks[:, 2:].view(torch.int8) * _halves(blocks[:, :2])


def row_steps(rows: Float[Tensor, "... d"]) -> Float[Tensor, "... 1"]:
    """Return a 127th of the largest number of each row: the step of its numbers of eight bits."""
    # a row of zeros needs a step that can be divided by
    return rows.abs().amax(dim=-1, keepdim=True).clamp(min=1e-30) / 127


class EightBits:
    """Compute `F.linear` with whole numbers of eight bits: y = s_x (q_1 + q_2 / 254) Q^T s + b.

    The weight is s Q, with Q from -127 to 127; another one is rounded to its nearest step s. A row
    of x is written with two such digits, q_1 and q_2, which leave out less than a 60,000th of its
    largest number. Products and sums are exact, in 32 bits, and a quarter of the weight's bytes is
    read. Q is made at the first call: one object serves one matrix.
    """

    def __init__(self):
        self._step, self._numbers = torch.empty(0), torch.empty(0)

    def __call__(
        self,
        x: Float[Tensor, "*batch d_in"],
        weight: Float[Tensor, "d_out d_in"],
        bias: Float[Tensor, " d_out"],
    ) -> Float[Tensor, "*batch d_out"]:
        """Multiply rows by the matrix, and add the bias."""
        if not len(self._numbers):
            self._step = weight.abs().max() / 127
            self._numbers = (weight / self._step).round().to(torch.int8)
        steps = row_steps(x)
        exact = x / steps
        digits = torch.stack([exact, 254 * (exact - exact.round())]).round().to(torch.int8)
        # both digits at once, so that the matrix is read once
        products = torch._int_mm(  # pyright: ignore[reportPrivateImportUsage]
            digits.flatten(end_dim=-2), self._numbers.T
        )
        high, low = products.float().view(2, *x.shape[:-1], -1)
        return torch.addcmul(bias, torch.add(high, low, alpha=1 / 254), steps * self._step)


def _halves(pairs: UInt8[Tensor, "n 2"]) -> Float[Tensor, "n 1"]:
    return pairs.contiguous().view(torch.float16).float()
