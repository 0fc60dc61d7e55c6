"""Embeddings of the last few tokens together, found by a hash (lesson 10)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import rms_norm
from course_lib.ngrams import encode

MULTIPLIER = 0x9E3779B97F4A7C15 - 2**64  # 2^64 divided by the golden ratio, an odd number


def hashed(codes: Int[Tensor, "... n"], rows: int) -> Int[Tensor, "... n"]:
    """Map any whole numbers to rows 0 to rows - 1, evenly but the same each time.

    The top bits of codes times 2^64 / 1.618..., which overflows on purpose. Source: Knuth 1998,
    section 6.4, multiplicative hashing.
    """
    # the product's upper 31 bits, as a number that is not negative
    upper = (codes * MULTIPLIER >> 33) & (2**31 - 1)
    return upper * rows >> 31


class HashedEmbedding(nn.Module):
    """Embed each token, and the last two, three, ... tokens as one: E[x_i] + sum_l T_l[hash].

    There are too many n-grams for a row each, so several share one, and the blocks see from the
    rest of the text which is meant. A look-up costs next to nothing, however large the table. The
    sum is brought to one size, as by `rms_norm`. Source: Pagnoni et al. 2024, section 3.2.1.
    """

    def __init__(
        self, vocab: int, d_model: int, lengths: Sequence[int] = (2, 3, 4), rows: int = 2**14
    ):
        super().__init__()
        self.vocab, self.lengths, self.rows = vocab, lengths, rows
        self.table = nn.Parameter(torch.randn(vocab, d_model) / d_model**0.5)
        self.tables = nn.ParameterList(0.02 * torch.randn(rows, d_model) for _ in lengths)

    def forward(self, tokens: Int[Tensor, "... n"]) -> Float[Tensor, "... n d_model"]:
        """Look up each token, and the n-grams that end with it."""
        x = F.embedding(tokens, self.table)
        for length, table in zip(self.lengths, self.tables, strict=True):
            row = hashed(encode(tokens, length, self.vocab), self.rows)
            x = x + F.embedding(row, table)
        return rms_norm(x, torch.ones_like(self.table[0]))
