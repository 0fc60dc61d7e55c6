"""A language model of Shakespeare's characters, trained by this course (lesson 10).

A decoder of four blocks and 1.8 million parameters, trained for 341 seconds of one core by
research/experiments/language_model.py. Its text: the first nine tenths of the first 1,115,394
characters.
"""

from collections.abc import Callable
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from course_lib.add_norm import rms_norm
from course_lib.instruments.weights import load_weights
from course_lib.language_model import LanguageModel, SquaredReLU
from course_lib.multi_head import MultiHeadAttention
from course_lib.positions import rotary
from course_lib.transformer import EncoderBlock

NAME = "language_model"  # of the file with its weights
VOCAB, LAYERS, D_MODEL, HEADS, MAX_LENGTH = 77, 4, 192, 4, 128
SIZES = (VOCAB, LAYERS, D_MODEL, HEADS, 4 * D_MODEL, MAX_LENGTH)


def turned(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend to what came before, with rotary positions, and queries and keys of one size.

    Source: Su et al. 2021 (positions); Henry et al. 2020 (sizes). In bfloat16, on a processor,
    these products take a third of the time that torch's own kernel takes.
    """
    *batch, n, d_k = q.shape
    size, places = torch.ones(d_k), torch.arange(n)
    q, k = (rotary(rms_norm(x, size).to(v), places).reshape(-1, n, d_k) for x in (q, k))
    future = torch.full((n, n), -1e4, dtype=v.dtype).triu(1)
    weights = torch.baddbmm(future, q, k.mT, alpha=1.5 / d_k**0.5).softmax(-1)
    return (weights @ v.reshape(-1, n, d_k)).view(*batch, n, d_k)


def root_mean_square(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Normalise by `rms_norm`, which has no bias, where a block hands one over."""
    return rms_norm(x, gain)


def no_positions(max_length: int, d_model: int) -> nn.Module:
    """Add nothing: rotary attention knows the positions."""
    return nn.Identity()


def modern_block(*sizes, block: Callable[..., nn.Module] = EncoderBlock) -> nn.Module:
    """Make a block with rotary attention, RMSNorm and a squared ReLU."""
    return block(
        *sizes,
        attention=partial(MultiHeadAttention, rule=turned),
        feed_forward=SquaredReLU,
        norm_layer=root_mean_square,
    )


def untie(model: nn.Module) -> None:
    """Give a model an output matrix of its own, of zeros: it begins with equal probabilities."""
    vocab, d_model = cast(nn.Linear, model.output).weight.shape
    model.output = output = nn.Linear(d_model, vocab, bias=False)
    nn.init.zeros_(output.weight)


def new(
    model: Callable[..., nn.Module] = LanguageModel, block: Callable[..., nn.Module] = EncoderBlock
) -> nn.Module:
    """Return the model untrained, made of these two classes: the course's, or your own.

    They take the arguments of `LanguageModel` and `EncoderBlock`, and name parameters as they do.
    """
    made = model(
        *SIZES,
        positions=no_positions,
        block=partial(modern_block, block=block),
        norm_layer=root_mean_square,
    )
    untie(made)
    return made


def load(
    model: Callable[..., nn.Module] = LanguageModel, block: Callable[..., nn.Module] = EncoderBlock
) -> nn.Module:
    """Return the trained model, made of these two classes, as `new` is."""
    made = new(model, block)
    load_weights(NAME, made)
    return made.eval()
