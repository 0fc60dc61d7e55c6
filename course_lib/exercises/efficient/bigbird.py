"""Attention by lists of blocks: each row of blocks pays for what it lists."""

import torch

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import FUSED_ATTENTION
from course_lib.efficient.bigbird import bigbird_attention, bigbird_mask, neighbours
from course_lib.self_attention import scaled_dot_product_attention

exercise = Exercise(
    reference=bigbird_attention,
    lesson="13",
    title="Block-sparse attention",
    minutes=5,
    difficulty=2,
    hints=(
        "Take one block of queries and its row. Which words are the keys that it sees, and how "
        "many? What would dense attention do, had the text only these keys?",
        "The keys of several blocks are one set of keys. Over how many of them does one softmax "
        "run: over each block's by itself, or over all that the row lists? And if it lists nobody?",
        "A global block lists every block. If all rows are made as long as its row, how many "
        "scores are there in the end? Who else has to pay for one long row?",
    ),
    clauses={
        "does not widen the others": "all_as_long_as_one",
        "-1 may be anywhere in a row": "up_to_the_first_none",
        "no block is listed twice": GIVEN,
        "a row that lists none gives zeros": "nobody_is_somebody",
        "holds n x n numbers": "dense_under_the_mask",
    },
    forbidden=(*FUSED_ATTENTION, "course_lib.efficient.kernel.attend"),
)


def words(draw: Draw, *shape: int, d_k: int, d_v: int):
    return draw.normal(*shape, d_k), draw.normal(*shape, d_k), draw.normal(*shape, d_v)


def lists(*rows):
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[-1] * (longest - len(row))] for row in rows])


@exercise.cases
def cases(draw: Draw):
    some = lists([0], [0, 1], [1, 2])
    yield "three blocks of two words", (*words(draw, 6, d_k=3, d_v=4), some, 2)
    ends = lists([0, 3], [2], [1, 3, 2], [0])
    yield "blocks of one word", (*words(draw, 4, d_k=2, d_v=3), ends, 1)
    full = lists([0, 1, 2, 3], [0, 1], [2, 0], [3, 0, 1])
    yield "a row that lists every block", (*words(draw, 12, d_k=2, d_v=5), full, 3)
    gaps = torch.tensor([[2, -1, 0], [-1, 1, -1], [-1, -1, 0]])
    yield "none in the middle of a row", (*words(draw, 6, d_k=4, d_v=3), gaps, 2)
    nobody = lists([1], [], [0, 2])
    yield "a row that lists nobody", (*words(draw, 9, d_k=2, d_v=4), nobody, 3)
    yield "one block", (*words(draw, 4, d_k=3, d_v=2), lists([0]), 4)
    yield "a batch of texts", (*words(draw, 2, 6, d_k=3, d_v=5), nobody, 2)
    yield "two batch dimensions", (*words(draw, 3, 2, 8, d_k=5, d_v=3), full, 2)
    yield "one word", (*words(draw, 1, d_k=3, d_v=2), lists([0]), 1)
    yield "as many words as each has numbers", (*words(draw, 4, d_k=4, d_v=3), ends, 1)


@exercise.requires("a long text never makes a tensor of n x n, even where a row lists every block")
def no_square(answer, draw: Draw):
    n, block = 512, 8
    q, k, v = words(draw, n, d_k=2, d_v=3)
    listed = neighbours(n // block, 3, 1, 2, seed=0)
    found = answer(q, k, v, listed, block, max_numel=n * n // 4)
    return torch.allclose(found, bigbird_attention(q, k, v, listed, block), atol=1e-4)


@exercise.requires("the order in which a row lists its blocks means nothing")
def order_is_free(answer, draw: Draw):
    q, k, v = words(draw, 8, d_k=3, d_v=2)
    listed = lists([0, 1, 3], [1], [3, 2], [0, 2, 1])
    found = answer(q, k, v, listed, 2)
    return found.std() > 0 and torch.allclose(answer(q, k, v, listed.flip(-1), 2), found, atol=1e-5)


@exercise.requires("a block that no row lists is seen by nobody")
def unlisted(answer, draw: Draw):
    q, k, v = words(draw, 9, d_k=3, d_v=2)
    listed = lists([0, 2], [2], [0])
    other_k, other_v = k.clone(), v.clone()
    other_k[3:6], other_v[3:6] = -k[3:6], -v[3:6]
    found = answer(q, k, v, listed, 3)
    return found.std() > 0 and torch.equal(answer(q, other_k, other_v, listed, 3), found)


@exercise.requires("large scores give right results, whether the largest are seen or hidden")
def large_scores(answer, draw: Draw):
    q, _, v = words(draw, 8, d_k=3, d_v=2)
    q, listed = 1 + q.abs(), lists([1], [0, 1, 2], [2, 0], [1, 3])
    # from word to word the scores rise, or fall, by more than a thousand
    rising = 1000 * torch.arange(1.0, 9.0).unsqueeze(-1).repeat(1, 3)
    return all(
        torch.allclose(
            answer(q, keys, v, listed, 2), bigbird_attention(q, keys, v, listed, 2), atol=1e-3
        )
        for keys in (rising, -rising)
    )


def attend(q, k, v, mask=None, scale=None, hidden=-torch.inf):
    scores = q @ k.mT / (scale or q.shape[-1] ** 0.5)
    if mask is not None:
        scores = scores.masked_fill(~mask, hidden)
    return scores.softmax(-1) @ v


def rows(q, k, v, neighbours, block, attend=attend, read=lambda row: row):
    """Let each block attend to what it lists, as `attend` does and as `read` reads the list."""
    places = torch.arange(q.shape[-2]).view(-1, block)
    found = []
    for own, row in zip(places, neighbours.tolist(), strict=True):
        keys = places[read([other for other in row if other != -1])].flatten()
        found.append(attend(q[..., own, :], k[..., keys, :], v[..., keys, :]))
    return torch.cat(found, dim=-2)


@exercise.mistake(raises=MemoryError)
def dense_under_the_mask(q, k, v, neighbours, block):
    """All n x n scores were made, and nearly all of them hidden by the mask. Which keys does one
    block need?"""
    return scaled_dot_product_attention(q, k, v, bigbird_mask(neighbours, block))


@exercise.mistake(raises=MemoryError)
def all_as_long_as_one(q, k, v, neighbours, block):
    """All rows were made as long as the longest. One global block lists every block, so every row
    has n keys, and there are n x n scores after all. Which rows could be computed apart?"""
    queries, keys, values = (x.unflatten(-2, (-1, block)) for x in (q, k, v))
    keys, values = (x[..., neighbours, :, :].flatten(-3, -2) for x in (keys, values))
    shown = (neighbours != -1).repeat_interleave(block, -1).unsqueeze(-2)
    found = scaled_dot_product_attention(queries, keys, values, shown)
    return found.flatten(-3, -2)


@exercise.mistake(raises=MemoryError)
def lists_ignored(q, k, v, neighbours, block):
    """Every block sees the whole text: the lists change nothing."""
    return attend(q, k, v)


@exercise.mistake
def itself_alone(q, k, v, neighbours, block):
    """Every block sees itself alone. Who else is in its row?"""
    q, k, v = (x.unflatten(-2, (-1, block)) for x in (q, k, v))
    return attend(q, k, v).flatten(-3, -2)


@exercise.mistake
def mean_of_blocks(q, k, v, neighbours, block):
    """Each listed block was looked at by itself, and the results were averaged: a block in which
    nothing fits weighs as much as one in which all does. Over which keys does one softmax run?"""

    def apart(q, k, v):
        pairs = zip(k.split(block, dim=-2), v.split(block, dim=-2), strict=True)
        parts = [attend(q, *pair) for pair in pairs] if k.numel() else []
        return torch.stack(parts).mean(0) if parts else attend(q, k, v)

    return rows(q, k, v, neighbours, block, apart)


@exercise.mistake
def last_block_seen(q, k, v, neighbours, block):
    """As an index, -1 is the last place: rows that are filled up see the last block. What does -1
    stand for in the list?"""
    listed = neighbours.where(neighbours != -1, len(neighbours) - 1)
    return rows(q, k, v, listed, block)


@exercise.mistake
def last_block_seen_once(q, k, v, neighbours, block):
    """As an index, -1 is the last place: rows that are filled up see the last block, once. What
    does -1 stand for in the list?"""
    listed = neighbours.where(neighbours != -1, len(neighbours) - 1)
    return rows(q, k, v, listed, block, read=lambda row: sorted(set(row)))


@exercise.mistake
def up_to_the_first_none(q, k, v, neighbours, block):
    """Each row was read up to its first -1 only. It may be anywhere in a row: what comes after it
    counts too."""
    listed = neighbours.where((neighbours >= 0).cumprod(-1) > 0, -1)
    return bigbird_attention(q, k, v, listed, block)


@exercise.mistake(raises=IndexError)
def nobody_fails(q, k, v, neighbours, block):
    """A row that lists nobody has no keys, and a softmax of nothing fails. What should its block
    get, by the docstring?"""
    return rows(q, k, v, neighbours, block, scaled_dot_product_attention)


@exercise.mistake(raises=IndexError)
def up_to_the_first_none_fails(q, k, v, neighbours, block):
    """Each row was read up to its first -1 only, and a softmax of nothing fails. It may be anywhere
    in a row: what comes after it counts too."""
    listed = neighbours.where((neighbours >= 0).cumprod(-1) > 0, -1)
    return rows(q, k, v, listed, block, scaled_dot_product_attention)


def by_peaks(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    exponentials = torch.exp(scores - scores.amax(-1, keepdim=True))
    return exponentials / exponentials.sum(-1, keepdim=True) @ v


@exercise.mistake(raises=IndexError)
def up_to_the_first_none_without_a_peak(q, k, v, neighbours, block):
    """Each row was read up to its first -1 only, and one that begins with it has no largest score.
    It may be anywhere in a row: what comes after it counts too."""
    listed = neighbours.where((neighbours >= 0).cumprod(-1) > 0, -1)
    return rows(q, k, v, listed, block, by_peaks)


@exercise.mistake
def first_block_seen(q, k, v, neighbours, block):
    """Rows that are filled up see block 0: the places marked -1 were brought into range. They
    should bring no key."""
    return rows(q, k, v, neighbours.clamp(min=0), block)


@exercise.mistake
def nobody_is_nan(q, k, v, neighbours, block):
    """A row that lists nobody gives NaN: the softmax of nothing but minus infinities divides 0 by
    0. It should get zeros."""

    def or_nan(q, k, v):
        nothing = q.new_full((*q.shape[:-1], v.shape[-1]), torch.nan)
        return attend(q, k, v) if k.shape[-2] else nothing

    return rows(q, k, v, neighbours, block, or_nan)


@exercise.mistake(raises=MemoryError)
def nobody_is_somebody(q, k, v, neighbours, block):
    """A row that lists nobody gets the mean of some values: where every score is the same large
    negative number, no key is worse than another. It should get zeros. And a row that lists every
    block makes all others as long as itself."""
    queries, keys, values = (x.unflatten(-2, (-1, block)) for x in (q, k, v))
    keys, values = (x[..., neighbours, :, :].flatten(-3, -2) for x in (keys, values))
    shown = (neighbours != -1).repeat_interleave(block, -1).unsqueeze(-2)
    scores = (queries @ keys.mT / q.shape[-1] ** 0.5).masked_fill(~shown, -1e9)
    return (scores.softmax(-1) @ values).flatten(-3, -2)


@exercise.mistake
def blocks_as_words(q, k, v, neighbours, block):
    """The lists were read as words. They count blocks: which words make up block 2, where a block
    is three words long?"""
    found = []
    for own, row in zip(q.split(block, dim=-2), neighbours.tolist(), strict=True):
        keys = [other for other in row if other != -1]
        found.append(attend(own, k[..., keys, :], v[..., keys, :]))
    return torch.cat(found, dim=-2)


@exercise.mistake(raises=MemoryError)
def transposed(q, k, v, neighbours, block):
    """Who sees and who is seen have changed places. Row i of the list says whom the queries of
    block i see."""
    return scaled_dot_product_attention(q, k, v, bigbird_mask(neighbours, block).mT)


stock.unscaled(exercise)


@exercise.mistake
def no_peak(q, k, v, neighbours, block):
    """Large scores give NaN: exp(90) no longer fits into a float32. What can be subtracted from all
    scores of a row without changing any weight?"""

    def exponentials(q, k, v):
        weights = (q @ k.mT / q.shape[-1] ** 0.5).exp()
        return weights / weights.sum(-1, keepdim=True) @ v

    return rows(q, k, v, neighbours, block, exponentials)


@exercise.mistake
def peak_of_a_block(q, k, v, neighbours, block):
    """The largest score of a block was subtracted from all of its rows. A row far below it has
    nothing but zeros left, and divides 0 by 0: each row needs its own peak."""

    def exponentials(q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = (scores - scores.amax() if k.numel() else scores).exp()
        return weights / weights.sum(-1, keepdim=True) @ v

    return rows(q, k, v, neighbours, block, exponentials)


@exercise.mistake
def hidden_with_a_number(q, k, v, neighbours, block):
    """A key that the row does not list was given the score -50. Where the listed ones score less
    than that, it gets all the weight. Which score is below every other?"""
    places = torch.arange(q.shape[-2]).view(-1, block)
    found = []
    for own, row in zip(places, neighbours, strict=True):
        keys, shown = places[row.clamp(min=0)].flatten(), (row != -1).repeat_interleave(block)
        rows = attend(q[..., own, :], k[..., keys, :], v[..., keys, :], shown, hidden=-50.0)
        found.append(rows * shown.any())
    return torch.cat(found, dim=-2)


@exercise.alternative
def row_by_row(q, k, v, neighbours, block):
    return rows(q, k, v, neighbours, block)


@exercise.alternative
def long_rows_apart(q, k, v, neighbours, block):
    blocks = len(neighbours)
    q, k, v = (x.unflatten(-2, (blocks, block)) for x in (q, k, v))
    found = {}
    lengths = (neighbours != -1).sum(-1)
    for length in lengths.unique().tolist():
        own = (lengths == length).nonzero().squeeze(-1)
        # the longest numbers first, so that those that stand for none are cut off
        listed = neighbours[own].sort(-1, descending=True).values[:, :length]
        keys, values = (x[..., listed, :, :].flatten(-3, -2) for x in (k, v))
        results = attend(q[..., own, :, :], keys, values)
        found |= dict(zip(own.tolist(), results.unbind(-3), strict=True))
    return torch.cat([found[i] for i in range(blocks)], dim=-2)
