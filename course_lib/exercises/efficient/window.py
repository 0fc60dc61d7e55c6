"""Attention to near words only, at a price that grows with the text and not with its square."""

import torch
from torch.nn import functional as F

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.efficient.window import window_attention, window_mask
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=window_attention,
    lesson="13",
    title="Window attention",
    minutes=6,
    difficulty=2,
    hints=(
        "A text of 1000 words has a million scores. With a window of five, how many of them does "
        "the mask leave? And how many would you like to compute?",
        "Take words 10 to 19 as a block of queries, in a window of five. Which is the first key "
        "that any of them may see, and which the last? Which pairs in this small rectangle are "
        "still too far apart?",
        "At the ends of the text, a window is cut. What does Python make of a slice that begins at "
        "-1? And if you fill up with zeros instead, what is the exponential of the score 0?",
    ),
    clauses={
        "holds n x n numbers": "dense_under_the_mask",
        "Any n": "whole_blocks_alone",
    },
    # places have one axis; keys before the stretch are hidden by the mask as well
    equivalent=("-1 -> 1", "max(0, start - reach) -> 0"),
    forbidden=(*FUSED_ATTENTION, "course_lib.efficient.kernel.attend"),
)


def words(draw: Draw, *shape: int, d_k: int, d_v: int):
    return draw.normal(*shape, d_k), draw.normal(*shape, d_k), draw.normal(*shape, d_v)


@exercise.cases
def cases(draw: Draw):
    yield "seven words, neighbours only", (*words(draw, 7, d_k=2, d_v=4), 3)
    yield "seven words, five in sight", (*words(draw, 7, d_k=3, d_v=2), 5)
    yield "itself alone", (*words(draw, 4, d_k=3, d_v=2), 1)
    yield "an even width", (*words(draw, 7, d_k=4, d_v=3), 4)
    yield "wider than the text", (*words(draw, 6, d_k=2, d_v=3), 21)
    yield "one word", (*words(draw, 1, d_k=3, d_v=4), 3)
    yield "a batch of texts", (*words(draw, 2, 6, d_k=3, d_v=5), 3)
    yield "two batch dimensions", (*words(draw, 3, 2, 5, d_k=2, d_v=4), 3)
    yield "as many words as each has numbers", (*words(draw, 4, d_k=4, d_v=2), 3)


@exercise.edges
def edges(draw: Draw):
    yield "a width of 0", (*words(draw, 4, d_k=2, d_v=3), 0)


@exercise.requires("a long text never makes a tensor of n x n, and its results are right", points=2)
def no_square(answer, draw: Draw):
    n = 1024
    q, k, v = words(draw, n, d_k=2, d_v=3)
    found = answer(q, k, v, 7, max_numel=n * n // 4)
    return torch.allclose(found, window_attention(q, k, v, 7), atol=1e-4)


@exercise.requires("a word out of sight might as well be another, and one in sight may not")
def out_of_sight(answer, draw: Draw):
    q, k, v = words(draw, 9, d_k=3, d_v=2)
    other_k, other_v = k.clone(), v.clone()
    other_k[3], other_v[3] = -k[3], -v[3]
    rests = (answer(q, k, v, 5) == answer(q, other_k, other_v, 5)).all(-1)
    return rests.tolist() == [True, False, False, False, False, False, True, True, True]


@exercise.requires("a text moved along by some words is seen the same, away from its ends")
def moved_along(answer, draw: Draw):
    q, k, v = words(draw, 12, d_k=3, d_v=2)
    found, later = answer(q, k, v, 5), answer(q[3:], k[3:], v[3:], 5)
    return found.abs().max() > 0 and torch.allclose(found[5:], later[2:], atol=1e-5)


@exercise.requires("large scores give right results, whether the largest are seen or hidden")
def large_scores(answer, draw: Draw):
    q, _, v = words(draw, 9, d_k=3, d_v=2)
    q = 1 + q.abs()
    # from word to word the scores rise, or fall, by more than a thousand
    rising = 1000 * torch.arange(1.0, 10.0).unsqueeze(-1).repeat(1, 3)
    return all(
        torch.allclose(answer(q, keys, v, 3), window_attention(q, keys, v, 3), atol=1e-3)
        for keys in (rising, -rising)
    )


def attend(q, k, v):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def beside(x, left, right):
    """Lay beside each word those so far away, zeros beyond the ends: (..., n, d, width)."""
    return F.pad(x, (0, 0, left, right)).unfold(-2, left + right + 1, 1)


def softmax(scores):
    return scores.softmax(-1)


def without_peak(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def one_peak(scores):
    return without_peak(scores - scores.amax())


def weigh(q, keys, values, mask=None, scale=None, hidden=-torch.inf, softmax=softmax):
    scores = torch.einsum("...nd,...ndw->...nw", q, keys) / (scale or q.shape[-1] ** 0.5)
    if mask is not None:
        scores = scores.masked_fill(~mask, hidden)
    return torch.einsum("...nw,...ndw->...nd", softmax(scores), values)


def near(q, k, v, left, right, **change):
    inside = beside(torch.ones(q.shape[-2], 1), left, right).squeeze(-2) > 0
    return weigh(q, beside(k, left, right), beside(v, left, right), inside, **change)


def row_by_row(q, k, v, before, after):
    """Let each word see the slice from so many words before it to so many after it."""
    rows = []
    for i in range(q.shape[-2]):
        keys = slice(before(i), after(i))
        rows.append(attend(q[..., i : i + 1, :], k[..., keys, :], v[..., keys, :]))
    return torch.cat(rows, dim=-2)


@exercise.mistake(raises=MemoryError)
def dense_under_the_mask(q, k, v, width):
    """All n x n scores were made, and nearly all of them hidden by the mask. Which keys can a block
    of neighbouring queries see at most? Compute only these."""
    return scaled_dot_product_attention(q, k, v, window_mask(q.shape[-2], width))


@exercise.mistake(raises=MemoryError)
def width_ignored(q, k, v, width):
    """Every word sees the whole text: `width` changes nothing."""
    return attend(q, k, v)


@exercise.mistake
def stretch_not_masked(q, k, v, width):
    """Some words see others that are too far away, as a block's first words see what only its last
    ones may. Which pairs of a block and its stretch of keys have to be hidden?"""
    n, reach, size, found = q.shape[-2], width // 2, 16, []
    for start in range(0, n, size):
        keys = slice(max(0, start - reach), start + size + reach)
        rows = q[..., start : start + size, :]
        found.append(attend(rows, k[..., keys, :], v[..., keys, :]))
    return torch.cat(found, dim=-2)


@exercise.mistake
def short_blocks_not_masked(q, k, v, width):
    """Some words see others that are too far away: a block of words shares one stretch of keys, and
    nothing is hidden in it. How far is its first word from the last key of the stretch?"""
    n, reach, found = q.shape[-2], width // 2, []
    size = max(reach, 1)
    for start in range(0, n, size):
        keys = slice(max(0, start - reach), start + size + reach)
        found.append(attend(q[..., start : start + size, :], k[..., keys, :], v[..., keys, :]))
    return torch.cat(found, dim=-2)


@exercise.mistake
def blocks_with_borders(q, k, v, width):
    """No word sees beyond the borders of its block: the first and the last word of a block miss
    their neighbours on one side. Where does the stretch of keys of a block begin and end?"""
    size = max(width // 2, 1)
    cut = zip(*(x.split(size, dim=-2) for x in (q, k, v)), strict=True)
    return torch.cat([attend(*piece) for piece in cut], dim=-2)


@exercise.mistake
def width_to_each_side(q, k, v, width):
    """The whole width was taken as the reach to each side. A window of three: how many words to the
    left of the middle one?"""
    return near(q, k, v, width, width)


@exercise.mistake
def end_left_out(q, k, v, width):
    """The last word of each window is missing: a slice leaves out the place at which it ends."""
    reach = width // 2
    return row_by_row(q, k, v, lambda i: max(0, i - reach), lambda i: i + reach)


@exercise.mistake
def end_left_out_but_itself(q, k, v, width):
    """The last word of each window is missing, but for the word itself: a slice leaves out the
    place at which it ends."""
    reach = width // 2
    return row_by_row(q, k, v, lambda i: max(0, i - reach), lambda i: max(i + reach, i + 1))


@exercise.mistake
def looking_back(q, k, v, width):
    """The words look back only. On how many sides of a word lies its window?"""
    return near(q, k, v, width // 2, 0)


@exercise.mistake
def ending_at_itself(q, k, v, width):
    """The words look back only, the whole width of the window. The word itself stands in the middle
    of it, not at its end."""
    return near(q, k, v, width - 1, 0)


@exercise.mistake
def even_is_cut(q, k, v, width):
    """Right for odd widths. An even one loses a word on one side: `width // 2` words are seen on
    either."""
    return near(q, k, v, width // 2, (width - 1) // 2)


@exercise.mistake
def zeros_weigh(q, k, v, width):
    """Beyond the ends stand words of zeros, and they are looked at: the score 0 has the exponential
    1. What keeps a key from weighing anything?"""
    reach = width // 2
    return weigh(q, beside(k, reach, reach), beside(v, reach, reach))


@exercise.mistake
def running_round(q, k, v, width):
    """The text runs round: its first words see the last ones. `torch.roll` brings back at the front
    what it pushes out at the end."""
    places = range(-(width // 2), width // 2 + 1)
    keys, values = (torch.stack([x.roll(-i, dims=-2) for i in places], -1) for x in (k, v))
    return weigh(q, keys, values)


@exercise.mistake
def running_round_once(q, k, v, width):
    """The text runs round: its first words see the last ones, as an index that is taken modulo n
    brings them back. At the ends of the text a window is cut."""
    n = q.shape[-2]
    reach = min(width // 2, (n - 1) // 2)
    places = (torch.arange(n)[:, None] + torch.arange(-reach, reach + 1)) % n
    return weigh(q, k[..., places, :].mT, v[..., places, :].mT)


@exercise.mistake
def negative_start(q, k, v, width):
    """The first words see too little: a slice that begins at a negative place counts it from the
    end of the text. Where should the window of word 0 begin?"""
    reach = width // 2
    return row_by_row(q, k, v, lambda i: i - reach, lambda i: i + reach + 1)


@exercise.mistake(raises=IndexError)
def negative_start_of_nothing(q, k, v, width):
    """The first words see nothing, or too little: a slice that begins at a negative place counts it
    from the end of the text. Where should the window of word 0 begin?"""
    rows = []
    for i in range(q.shape[-2]):
        keys = slice(i - width // 2, i + width // 2 + 1)
        own = q[..., i : i + 1, :], k[..., keys, :], v[..., keys, :]
        rows.append(scaled_dot_product_attention(*own))
    return torch.cat(rows, dim=-2)


@exercise.mistake
def blocks_with_a_negative_start(q, k, v, width):
    """The first block sees too little: where its stretch of keys begins at a negative place, a
    slice counts it from the end of the text. Where should the stretch of the first block begin?"""
    n, reach, found = q.shape[-2], width // 2, []
    size = max(reach, 1)
    for start in range(0, n, size):
        keys = torch.arange(n)[start - reach : start + size + reach]
        far = (torch.arange(start, min(n, start + size))[:, None] - keys).abs() > reach
        scores = q[..., start : start + size, :] @ k[..., keys, :].mT / q.shape[-1] ** 0.5
        found.append(scores.masked_fill(far, -torch.inf).softmax(-1) @ v[..., keys, :])
    return torch.cat(found, dim=-2)


@exercise.mistake(raises=RuntimeError)
def negative_start_beside_its_mask(q, k, v, width):
    """The stretch of the first block begins at a negative place, which a slice counts from the end
    of the text: it has fewer keys than its mask has columns. Where should it begin?"""
    n, reach, found = q.shape[-2], width // 2, []
    size = max(reach, 1)
    for start in range(0, n, size):
        low, high = start - reach, min(n, start + size + reach)
        rows = torch.arange(start, min(n, start + size)).unsqueeze(-1)
        far = (rows - torch.arange(low, high)).abs() > reach
        scores = q[..., start : start + size, :] @ k[..., low:high, :].mT / q.shape[-1] ** 0.5
        found.append(scores.masked_fill(far, -torch.inf).softmax(-1) @ v[..., low:high, :])
    return torch.cat(found, dim=-2)


@exercise.mistake
def whole_blocks_alone(q, k, v, width):
    """Words after the last whole block are missing from the result. `width` need not divide n:
    where does the loop over the blocks have to end?"""
    size = max(width // 2, 1)
    return window_attention(q, k, v, width)[..., : q.shape[-2] // size * size, :]


@exercise.mistake
def even_is_smaller(q, k, v, width):
    """An even width sees one word too few on both sides: the reach is `(width - 1) // 2` here. How
    many words to each side does the docstring promise?"""
    side = (width - 1) // 2
    return near(q, k, v, side, side)


@exercise.mistake
def pieces(q, k, v, width):
    """The text was cut into pieces as long as the window, and words see their own piece only: two
    neighbours on either side of a cut miss each other."""
    size = width
    cut = zip(*(x.split(size, dim=-2) for x in (q, k, v)), strict=True)
    return torch.cat([attend(*piece) for piece in cut], dim=-2)


stock.unscaled(exercise)


@exercise.mistake
def plain_mean(q, k, v, width):
    """The words of a window were averaged, each as much as any other. What do queries and keys
    decide?"""
    return near(torch.zeros_like(q), k, v, width // 2, width // 2)


@exercise.mistake(raises=MemoryError)
def hidden_with_zero(q, k, v, width):
    """A word out of sight was given the score 0, which is a score like any other: exp(0) is 1.
    Which score has the exponential 0?"""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return (scores * window_mask(q.shape[-2], width)).softmax(-1) @ v


@exercise.mistake
def no_peak(q, k, v, width):
    """Large scores give NaN: exp(90) no longer fits into a float32. What can be subtracted from all
    scores of a row without changing any weight?"""
    return near(q, k, v, width // 2, width // 2, softmax=without_peak)


@exercise.mistake
def peak_of_all(q, k, v, width):
    """The largest of all scores was subtracted in every row. A row far below it has nothing but
    zeros left, and divides 0 by 0: each row needs its own peak."""
    return near(q, k, v, width // 2, width // 2, softmax=one_peak)


@exercise.mistake
def hidden_with_a_number(q, k, v, width):
    """A word out of sight was given the score -50. Where those in sight score less than that, it
    gets all the weight. Which score is below every other?"""
    return near(q, k, v, width // 2, width // 2, hidden=-50.0)


@exercise.alternative
def word_by_word(q, k, v, width):
    reach = width // 2
    return row_by_row(q, k, v, lambda i: max(0, i - reach), lambda i: i + reach + 1)


@exercise.alternative
def place_by_place(q, k, v, width):
    reach = width // 2
    return near(q, k, v, reach, reach)
