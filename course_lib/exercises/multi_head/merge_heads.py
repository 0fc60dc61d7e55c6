"""What the heads found is laid side by side again."""

import torch
from einops import rearrange

from course_lib.checking.exercise import Draw, Exercise
from course_lib.multi_head import merge_heads

exercise = Exercise(
    reference=merge_heads,
    lesson="06_pruning",
    title="The heads side by side",
    minutes=6,
    difficulty=1,
    hints=(
        "After this, a word is one row again. Whose numbers come first in it, and whose last?",
        "Two axes can become one only when they are neighbours. Which axis is between the "
        "heads and their columns?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "two heads, three words", (draw.normal(2, 3, 4),)
    yield "one head", (draw.normal(1, 4, 3),)
    yield "one word", (draw.normal(4, 1, 2),)
    yield "heads of one column", (draw.normal(3, 2, 1),)
    yield "a batch of sentences", (draw.normal(2, 3, 5, 4),)
    yield "two batch dimensions", (draw.normal(2, 3, 5, 4, 2),)
    yield "as many words as each head has numbers", (draw.normal(2, 3, 3),)


@exercise.requires("words that were cut into parts come back whole")
def whole_again(answer, draw: Draw):
    x = draw.normal(2, 5, 12)
    return torch.equal(answer(torch.stack(x.chunk(3, dim=-1), dim=-3)), x)


@exercise.requires("each head keeps its own columns, and no word meets another")
def own_columns(answer, draw: Draw):
    x = draw.normal(1, 3, 5, 2)
    plain = answer(x)
    x[0, 1, 3] += 1
    places = (answer(x) != plain).nonzero().tolist()
    return places == [[0, 3, 2], [0, 3, 3]]


@exercise.mistake
def reshaped_at_once(x):
    """The shape is right, but words were mixed: `reshape` joins the numbers as they lie in memory,
    one head's words after the other's. Which axis must move before two can be joined?"""
    *batch, heads, n, d_k = x.shape
    return x.reshape(*batch, n, heads * d_k)


@exercise.mistake(raises=RuntimeError)
def viewed(x):
    """`view` needs the numbers to lie in memory in the order of the axes, and they do not, now that
    an axis has moved. Which function copies them where it must?"""
    moved = x.transpose(-3, -2)
    return moved.view(*moved.shape[:-2], -1)


@exercise.mistake
def laid_in_turn(x):
    """The columns of the heads were laid in turn: one of the first head, one of the second, and so
    on. Each head's columns are to stay together: which of the two axes comes first?"""
    return rearrange(x, "... heads n d_k -> ... n (d_k heads)")


@exercise.mistake
def added(x):
    """The heads were added up. What one head found can then not be told from what another one
    found: lay them side by side, and leave the mixing to the output matrix."""
    return x.sum(-3)


@exercise.mistake
def averaged(x):
    """The heads were averaged. What one head found can then not be told from what another one
    found: lay them side by side, and leave the mixing to the output matrix."""
    return x.mean(-3)


@exercise.mistake
def below_each_other(x):
    """The heads were laid below each other, so there are more words than before. What should grow,
    the number of words or the size of each?"""
    return rearrange(x, "... heads n d_k -> ... (heads n) d_k")


@exercise.mistake
def not_joined(x):
    """The axes are in order, but the heads and their columns are still two of them. What joins two
    axes that are neighbours?"""
    return rearrange(x, "... heads n d_k -> ... n heads d_k")


@exercise.mistake
def turned_over(x):
    """The words ended up as columns. A row is a word: which axis stays last but one?"""
    return rearrange(x, "... heads n d_k -> ... (heads d_k) n")


@exercise.mistake
def columns_moved(x):
    """Words and columns changed places, and the heads stayed where they were. Which two axes are to
    become neighbours, and which one is between them?"""
    return x.transpose(-2, -1).flatten(-2)


@exercise.mistake
def words_joined(x):
    """Nothing was moved: the words of each head were joined into one long row. Which two axes are
    to be joined, and which one is between them?"""
    return x.flatten(-2)


@exercise.mistake
def first_head_alone(x):
    """One head came back, and the others were dropped: what did they look for?"""
    return x[..., 0, :, :]


@exercise.mistake
def counted_without_a_batch(x):
    """Right for one sentence, not for a batch: the axes to be exchanged were counted from the
    front. From where would you count, so that batch dimensions do not matter?"""
    return x.transpose(0, 1).flatten(-2)


@exercise.mistake
def counted_behind_one_batch(x):
    """Right for a batch of sentences, not for one sentence or for two batch dimensions: the axes to
    be exchanged were counted from the front. From where would you count?"""
    return x.transpose(1, 2).flatten(-2)


@exercise.mistake(raises=ValueError)
def one_batch_dimension(x):
    """The sizes were unpacked as if there were always one batch dimension. There may be none, or
    two: what can take the place of `batch`, and take as many as there are?"""
    batch, heads, n, d_k = x.shape
    return x.transpose(1, 2).reshape(batch, n, heads * d_k)


@exercise.mistake(raises=ValueError)
def no_batch_dimension(x):
    """The sizes were unpacked as if there were never a batch. There may be one batch dimension, or
    two: which of Python's stars takes as many as there are?"""
    heads, n, d_k = x.shape
    return x.transpose(0, 1).reshape(n, heads * d_k)


@exercise.mistake
def heads_reversed(x):
    """The heads came in reverse order. The columns of the first head come first."""
    return merge_heads(x.flip(-3))


@exercise.alternative
def head_after_head(x):
    return torch.cat([x[..., head, :, :] for head in range(x.shape[-3])], dim=-1)


@exercise.alternative
def moved_then_joined(x):
    return x.movedim(-3, -2).flatten(start_dim=-2)
