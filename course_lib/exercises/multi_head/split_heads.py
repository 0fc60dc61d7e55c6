"""Each word is cut into equal parts, one for each head."""

import torch
from einops import rearrange

from course_lib.checking.exercise import Draw, Exercise
from course_lib.multi_head import split_heads

exercise = Exercise(
    reference=split_heads,
    lesson="06",
    title="Columns for each head",
    minutes=6,
    difficulty=1,
    hints=(
        "Two heads, a word of six numbers: which three belong to head 1? And how many numbers has "
        "a part, when there are h heads?",
        "Cutting and moving are two steps. When the last axis has become two, which of them is to "
        "come before the words?",
        "A reshape never changes the order in which the numbers lie in memory. After it, do the "
        "first n rows still come from n different words?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "three words, two heads", (draw.normal(3, 8), 2)
    yield "one head", (draw.normal(4, 5), 1)
    yield "one word", (draw.normal(1, 6), 3)
    yield "a head for each column", (draw.normal(3, 4), 4)
    yield "a batch of sentences", (draw.normal(2, 5, 12), 3)
    yield "two batch dimensions", (draw.normal(2, 3, 4, 10), 5)
    yield "as many words as each has numbers", (draw.normal(6, 6), 2)


@exercise.requires("the heads' parts, laid side by side, are the words again")
def side_by_side(answer, draw: Draw):
    x = draw.normal(2, 5, 12)
    return torch.equal(torch.cat(answer(x, 3).unbind(-3), dim=-1), x)


@exercise.requires("a word is found in the same row of every head, and in no other row")
def own_row(answer, draw: Draw):
    x = draw.normal(1, 5, 12)
    plain = answer(x, 3)
    x[0, 1] += 1
    changed = (answer(x, 3) != plain).all(-1)
    return changed.tolist() == [3 * [[False, True, False, False, False]]]


@exercise.mistake
def reshaped_at_once(x, heads):
    """The shape is right, but the heads got whole words, and words that belong to other heads:
    `reshape` deals the numbers out as they lie in memory. First cut each word, then move the axis
    of heads."""
    *batch, n, d_model = x.shape
    return x.reshape(*batch, heads, n, d_model // heads)


@exercise.mistake
def dealt_in_turn(x, heads):
    """The columns were dealt out one by one: head 1 got the first, head 2 the second, and so on in
    turn. Head 1 is to have the first d_k columns. Which axis comes first when the last one is
    cut?"""
    return rearrange(x, "... n (d_k heads) -> ... heads n d_k", heads=heads)


@exercise.mistake
def heads_not_moved(x, heads):
    """The words are cut well, but the axis of heads still comes after the words. A head is to be a
    batch dimension: where do those come?"""
    return rearrange(x, "... n (heads d_k) -> ... n heads d_k", heads=heads)


@exercise.mistake
def turned_over(x, heads):
    """In each head, words became columns and columns became rows. Which axis was moved too far?"""
    return rearrange(x, "... n (heads d_k) -> ... heads d_k n", heads=heads)


@exercise.mistake
def heads_as_size(x, heads):
    """The number of heads was taken for the size of a part. With 2 heads, how many numbers of a
    word of size 8 does each get?"""
    return rearrange(x, "... n (heads d_k) -> ... heads n d_k", d_k=heads)


@exercise.mistake
def before_the_batch(x, heads):
    """The heads came to the very front. Before the words, but behind the batch: each sentence has
    heads of its own."""
    return torch.stack(x.chunk(heads, dim=-1))


@exercise.mistake
def parts_in_a_tuple(x, heads):
    """The parts are right, but they came one by one in a tuple. What makes one tensor of them, with
    a new axis?"""
    return x.chunk(heads, dim=-1)


@exercise.mistake
def parts_in_a_list(x, heads):
    """The parts are right, but they came one by one in a list. What makes one tensor of them, with
    a new axis?"""
    return list(x.chunk(heads, dim=-1))


@exercise.mistake
def counted_without_a_batch(x, heads):
    """Right for one sentence, not for a batch: the axes to be exchanged were counted from the
    front. From where would you count, so that batch dimensions do not matter?"""
    return rearrange(x, "... n (heads d_k) -> ... n heads d_k", heads=heads).transpose(0, 1)


@exercise.mistake
def counted_behind_one_batch(x, heads):
    """Right for a batch of sentences, not for one sentence or for two batch dimensions: the axes to
    be exchanged were counted from the front. From where would you count?"""
    return rearrange(x, "... n (heads d_k) -> ... n heads d_k", heads=heads).transpose(1, 2)


@exercise.mistake(raises=ValueError)
def one_batch_dimension(x, heads):
    """The sizes were unpacked as if there were always one batch dimension. There may be none, or
    two: what can take the place of `batch`, and take as many as there are?"""
    batch, n, d_model = x.shape
    return x.reshape(batch, n, heads, d_model // heads).transpose(1, 2)


@exercise.mistake(raises=ValueError)
def no_batch_dimension(x, heads):
    """The sizes were unpacked as if there were never a batch. There may be one batch dimension, or
    two: which of Python's stars takes as many as there are?"""
    n, d_model = x.shape
    return x.reshape(n, heads, d_model // heads).transpose(0, 1)


@exercise.alternative
def head_by_head(x, heads):
    d_k = x.shape[-1] // heads
    return torch.stack([x[..., h * d_k : (h + 1) * d_k] for h in range(heads)], dim=-3)


@exercise.alternative
def cut_then_moved(x, heads):
    return x.unflatten(-1, (heads, -1)).movedim(-2, -3)
