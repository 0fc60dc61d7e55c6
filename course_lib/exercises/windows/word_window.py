"""Every word looks at its neighbours, and all words do so at once."""

import torch
from torch.nn import functional as F

from course_lib.before_attention import word_window
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import CONVOLUTION

exercise = Exercise(
    reference=word_window,
    lesson="01_windows",
    title="Every word meets its neighbours",
    minutes=10,
    difficulty=2,
    hints=(
        "With a window of three, which words meet weight[0], weight[1] and weight[2] when the "
        "result for word 5 is made?",
        "The first word has no left neighbour. How many words of zeros must stand in front of the "
        "sentence, so that its window is complete? And behind it?",
        "For one place k of the window, all words can meet their matrix in a single product. Which "
        "n rows of the padded sentence are that, and how do they move with k?",
    ),
    clauses={
        "padded with zeros": "not_padded",
        "meets the leftmost token": "mirrored",
        "torch's `conv1d` keeps": GIVEN,
    },
    forbidden=CONVOLUTION,
)


def sentence(draw: Draw, *batch: int, n: int, width: int, d_in: int, d_out: int):
    return (
        draw.normal(*batch, n, d_in),
        draw.normal(width, d_in, d_out),
        draw.normal(d_out),
    )


@exercise.cases
def cases(draw: Draw):
    yield "two words, a window of one", sentence(draw, n=2, width=1, d_in=3, d_out=2)
    yield "four words, a window of three", sentence(draw, n=4, width=3, d_in=2, d_out=5)
    yield "a window wider than the sentence", sentence(draw, n=3, width=7, d_in=2, d_out=4)
    yield "a batch of sentences", sentence(draw, 2, n=6, width=5, d_in=3, d_out=4)
    yield "two batch dimensions", sentence(draw, 3, 2, n=5, width=3, d_in=2, d_out=4)
    yield "one word", sentence(draw, n=1, width=3, d_in=2, d_out=4)
    yield "as many words as each has numbers", sentence(draw, n=4, width=3, d_in=4, d_out=3)


@exercise.edges
def edges(draw: Draw):
    yield "half a window longer than the sentence", sentence(draw, n=2, width=7, d_in=3, d_out=4)
    yield "results of one number", sentence(draw, n=5, width=3, d_in=2, d_out=1)


@exercise.requires("a word reaches its neighbours' results, and no others")
def local(answer, draw: Draw):
    x, weight, bias = sentence(draw, n=7, width=3, d_in=2, d_out=4)
    other = torch.cat([x[:2], -x[2:3], x[3:]])
    moved = (answer(other, weight, bias) - answer(x, weight, bias)).abs().amax(-1) > 1e-6
    return moved.tolist() == [False, True, True, True, False, False, False]


@exercise.requires("moving the words along moves the results along")
def equivariant(answer, draw: Draw):
    words, weight, bias = sentence(draw, n=4, width=3, d_in=2, d_out=5)
    early = answer(F.pad(words, (0, 0, 2, 3)), weight, bias)
    late = answer(F.pad(words, (0, 0, 3, 2)), weight, bias)
    return early.std(0).min() > 0 and torch.allclose(late[1:], early[:-1], atol=1e-5)


def shifted(x, offset, fill=0.0):
    """Return the words that stand `offset` places to the right, filled up at the ends."""
    n = x.shape[-2]
    places = torch.arange(n, device=x.device) + offset
    outside = ((places < 0) | (places >= n)).unsqueeze(-1)
    return x[..., places.clamp(0, n - 1), :].masked_fill(outside, fill)


@exercise.mistake
def mirrored(x, weight, bias):
    """The window is mirrored: weight[0] met the word furthest to the right. That is convolution as
    mathematicians write it; which end does the docstring give to weight[0]?"""
    return word_window(x, weight.flip(0), bias)


@exercise.mistake(raises=RuntimeError)
def not_padded(x, weight, bias):
    """There are fewer results than words: the sentence was not padded, so the windows at its ends
    did not fit. How many words of zeros does each end need?"""
    return torch.einsum("...dk,kdo->...o", x.unfold(-2, weight.shape[0], 1), weight) + bias


@exercise.mistake
def padded_in_front_only(x, weight, bias):
    """All the zeros went in front of the sentence, so each word sees only what stands left of it.
    Where in its window should a word itself stand?"""
    width = weight.shape[0]
    places = [shifted(x, k - width + 1) @ weight[k] for k in range(width)]
    return sum(places) + bias


@exercise.mistake
def closed_to_a_ring(x, weight, bias):
    """The sentence was closed to a ring: the first word sees the last one as its neighbour.
    `torch.roll` brings back on one side what it pushes out on the other."""
    width = weight.shape[0]
    places = [x.roll(width // 2 - k, dims=-2) @ weight[k] for k in range(width)]
    return sum(places) + bias


@exercise.mistake
def rolled_and_cut(x, weight, bias):
    """Where half a window is longer than the sentence, words that came round are left: n - shift is
    below zero there, and a slice from -1 on holds the last row only. Can `F.pad` spare you `roll`,
    and what comes round?"""
    n, y = x.shape[-2], bias
    for k, matrix in enumerate(weight):
        shift = k - len(weight) // 2
        moved = x.roll(-shift, dims=-2)
        if shift > 0:
            moved[..., n - shift :, :] = 0
        elif shift < 0:
            moved[..., :-shift, :] = 0
        y = y + moved @ matrix
    return y


@exercise.mistake
def ends_repeated(x, weight, bias):
    """Beyond its ends the sentence was continued by its first and last word. What does the
    docstring put there?"""
    width, n = weight.shape[0], x.shape[-2]
    places = torch.arange(n, device=x.device)
    around = [(places + k - width // 2).clamp(0, n - 1) for k in range(width)]
    return sum(x[..., place, :] @ weight[k] for k, place in enumerate(around)) + bias


@exercise.mistake(raises=RuntimeError)
def words_padded(x, weight, bias):
    """The zeros were put at both ends of every word, not of the sentence: `F.pad` begins with the
    last axis. Which axis are the words on?"""
    width, n = weight.shape[0], x.shape[-2]
    padded = F.pad(x, (width // 2, width // 2))
    return sum(padded[..., k : k + n, :] @ weight[k] for k in range(width)) + bias


@exercise.mistake
def bias_forgotten(x, weight, bias):
    """The bias plays no part. What should a sentence of zeros give?"""
    return word_window(x, weight, torch.zeros_like(bias))


@exercise.mistake
def bias_at_every_place(x, weight, bias):
    """The bias was added once for each place of the window. How many biases does the formula have
    for one result?"""
    return word_window(x, weight, weight.shape[0] * bias)


@exercise.mistake
def one_matrix_for_all(x, weight, bias):
    """All places of the window share one matrix, so a left neighbour counts like a right one. How
    many matrices does `weight` hold?"""
    return word_window(x, weight[:1].expand_as(weight), bias)


@exercise.mistake(raises=RuntimeError)
def words_on_the_first_axis(x, weight, bias):
    """Right for one sentence, not for a batch: the words were taken to be on the first axis. Which
    axis from the end are they always on?"""
    width, n = weight.shape[0], len(x)
    padded = F.pad(x, (0, 0, width // 2, width // 2))
    return sum(padded[k : k + n] @ weight[k] for k in range(width)) + bias


@exercise.mistake(raises=IndexError)
def word_by_word(x, weight, bias):
    """Right for one sentence, not for a batch: word by word, the window was cut out of the first
    axis, where a batch has its sentences. Which axis are the words always on?"""
    width = weight.shape[0]
    padded = F.pad(x, (0, 0, width // 2, width // 2))
    words = [sum(padded[i + k] @ weight[k] for k in range(width)) for i in range(len(x))]
    return torch.stack(words) + bias


@exercise.mistake
def averaged(x, weight, bias):
    """What the places of a window say was averaged, where it is to be summed: the result, but for
    the bias, is width times too small."""
    return (word_window(x, weight, bias) - bias) / len(weight) + bias


@exercise.alternative
def one_place_after_another(x, weight, bias):
    width, n = weight.shape[0], x.shape[-2]
    ends = x.new_zeros(*x.shape[:-2], width // 2, x.shape[-1])
    padded = torch.cat([ends, x, ends], dim=-2)
    total = bias
    for k in range(width):
        total = total + padded[..., k : k + n, :] @ weight[k]
    return total


@exercise.alternative
def windows_side_by_side(x, weight, bias):
    width = weight.shape[0]
    neighbours = [shifted(x, k - width // 2) for k in range(width)]
    return torch.cat(neighbours, dim=-1) @ weight.flatten(0, 1) + bias
