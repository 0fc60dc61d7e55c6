"""Attention by content: a cheap score decides which blocks each query looks at."""

import torch
from torch import Tensor

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.efficient.chosen_blocks import choose_blocks


def in_order(rows):
    """Sort each row, and drop the columns in which no block is listed: both are free."""
    if not isinstance(rows, Tensor) or rows.dim() < 2:
        return rows
    rows = rows.sort(dim=-1, descending=True).values
    return rows[..., (rows != -1).flatten(0, -2).any(dim=0)]


exercise = Exercise(
    reference=choose_blocks,
    lesson="14",
    title="Choose blocks by a cheap score",
    minutes=8,
    difficulty=2,
    canonical=in_order,
    no_gradient="a choice of blocks has none",
    hints=(
        "A text of 4,000 tokens in blocks of 40: how many scores are there between tokens, and "
        "how many between tokens and blocks? Which one vector could speak for 40 keys?",
        "No query may choose a later block, and each must have its own. Which score makes a block "
        "lose against all others, and which makes it win?",
        "A query of the first block has nothing before it. How many of its places does `topk` fill "
        "with blocks that it must not see, and how do you recognise them afterwards?",
    ),
    no_edge={"a row of zeros": "of equal scores any may be chosen"},
    clauses={
        "is query . mean key": "first_tokens_alone",
        "with the highest scores": "lowest_scores",
        "in any order": GIVEN,
        "or all of them where there": "more to choose than there are",
        "A later block is in no row": "later_blocks_too",
        "no tensor holds n x n numbers": "scores_of_all_tokens",
        "-1 is none": "filled_with_the_first",
    },
    # numbers of blocks have one axis, and may be floats
    equivalent=("-1 -> 1", "n // block -> n / block"),
)


@exercise.cases
def cases(draw: Draw):
    yield "four blocks of two, one chosen", (draw.normal(8, 3), draw.normal(8, 3), 2, 1)
    yield "five blocks of three, two chosen", (draw.normal(15, 4), draw.normal(15, 4), 3, 2)
    yield "blocks of one token", (draw.normal(6, 2), draw.normal(6, 2), 1, 2)
    yield "none chosen", (draw.normal(6, 5), draw.normal(6, 5), 2, 0)
    yield "more to choose than there are", (draw.normal(6, 4), draw.normal(6, 4), 2, 7)
    yield "one block", (draw.normal(4, 3), draw.normal(4, 3), 4, 1)
    yield "one token", (draw.normal(1, 3), draw.normal(1, 3), 1, 1)
    yield "a batch of texts", (draw.normal(2, 8, 3), draw.normal(2, 8, 3), 2, 2)
    yield "two batch dimensions", (draw.normal(3, 2, 6, 4), draw.normal(3, 2, 6, 4), 2, 1)
    yield "as many tokens as numbers", (draw.normal(4, 4), draw.normal(4, 4), 1, 2)


@exercise.edges
def edges(draw: Draw):
    q, k = 1e15 * (1 + draw.normal(6, 3).abs()), 1e15 * (1 + draw.normal(6, 3).abs())
    yield "scores far below minus a billion", (q, -k, 2, 1)
    yield "scores far above a billion", (q, k, 2, 1)
    larger = torch.ones(12, 1)
    larger[:2] = 1e8
    yield "a first block of larger keys", (draw.normal(12, 3), larger * draw.normal(12, 3), 2, 2)


@exercise.requires("each row has its own block, no later one, and as many as asked", points=2)
def as_many_as_asked(answer, draw: Draw):
    found = answer(draw.normal(24, 3), draw.normal(24, 3), 2, 4).tolist()
    rows = [[block for block in row if block != -1] for row in found]
    return all(
        i // 2 in row and max(row) == i // 2 and len(set(row)) == len(row) == min(i // 2 + 1, 5)
        for i, row in enumerate(rows)
    )


@exercise.requires("a block whose keys are the query's own direction is chosen, however far back")
def far_back(answer, draw: Draw):
    q, k = draw.normal(40, 6), draw.normal(40, 6)
    k[4:8] = 5 * q[-1]
    return sorted(answer(q, k, 4, 1)[-1].tolist()) == [1, 9]


@exercise.requires("a later token changes no earlier row")
def no_later_token_has_a_say(answer, draw: Draw):
    q, k = draw.normal(24, 5), draw.normal(24, 5)
    rows = in_order(answer(q, k, 4, 2))[:21]
    q[21:], k[21:] = draw.normal(3, 5), draw.normal(3, 5)
    return torch.equal(in_order(answer(q, k, 4, 2))[:21], rows)


@exercise.requires("a long text never makes a tensor of n x n, and its blocks are right")
def no_square(answer, draw: Draw):
    q, k = draw.normal(512, 3), draw.normal(512, 3)
    found = answer(q, k, 8, 3, max_numel=512**2 // 4)
    return torch.equal(in_order(found), in_order(choose_blocks(q, k, 8, 3)))


def means(x, block):
    return x.unflatten(-2, (-1, block)).mean(-2)


def pick(scores, chosen, own=True, past=True, largest=True, fill=-1):
    """Take blocks by their scores, in as many ways as there are mistakes."""
    n, blocks = scores.shape[-2:]
    back = torch.arange(n).unsqueeze(-1) // (n // blocks) - torch.arange(blocks)
    scores = scores if largest else -scores
    if past:
        scores = scores.masked_fill(back < 0, -torch.inf)
    scores = scores.masked_fill(back == 0, torch.inf if own else -torch.inf)
    best, listed = scores.topk(min(chosen + own, blocks))
    return listed.masked_fill(best == -torch.inf, fill) if fill is not None else listed


def cheap(q, k, block):
    return q @ means(k, block).mT


@exercise.mistake(raises=MemoryError)
def scores_of_all_tokens(q, k, block, chosen):
    """All n x n scores were computed, and averaged afterwards. Where else can you average: before
    the product, or behind it?"""
    return pick((q @ k.mT).unflatten(-1, (-1, block)).mean(-1), chosen)


@exercise.mistake
def queries_averaged(q, k, block, chosen):
    """The queries of a block chose together, by their mean. It contains later queries: who has a
    say in what an earlier token sees?"""
    return pick(cheap(means(q, block).repeat_interleave(block, dim=-2), k, block), chosen)


@exercise.mistake
def a_row_for_each_block(q, k, block, chosen):
    """There is one row for each block of queries. Whose is it where two queries of a block want
    different things?"""
    return pick(cheap(means(q, block), k, block), chosen)


@exercise.mistake
def lowest_scores(q, k, block, chosen):
    """The blocks that fit worst were chosen. Which end of the scores does `topk` take?"""
    return pick(cheap(q, k, block), chosen, largest=False)


@exercise.mistake
def later_blocks_too(q, k, block, chosen):
    """A row lists blocks that come after its query. In a causal model, which scores must lose
    against all others?"""
    return pick(cheap(q, k, block), chosen, past=False)


@exercise.mistake
def without_its_own(q, k, block, chosen):
    """A row does not list its query's own block, so no token even sees itself. Which score makes a
    block win against all others?"""
    return pick(cheap(q, k, block), chosen, own=False)


@exercise.mistake
def its_own_by_a_number(q, k, block, chosen):
    """A query's own block got the score 1e9, and earlier blocks that score more than that push it
    out of its row. Which number is above every other?"""
    scores, (n, blocks) = cheap(q, k, block), (q.shape[-2], q.shape[-2] // block)
    back = torch.arange(n).unsqueeze(-1) // block - torch.arange(blocks)
    scores = scores.masked_fill(back == 0, 1e9).masked_fill(back < 0, -torch.inf)
    best, listed = scores.topk(min(chosen + 1, blocks))
    return listed.masked_fill(best == -torch.inf, -1)


@exercise.mistake
def filled_with_the_first(q, k, block, chosen):
    """The places that are left over say block 0, which is a block like any other. What stands for
    none?"""
    return pick(cheap(q, k, block), chosen, fill=0)


@exercise.mistake
def filled_with_later_ones(q, k, block, chosen):
    """Where fewer blocks come before, `topk` took others all the same: their score is minus
    infinity. What stands for none?"""
    return pick(cheap(q, k, block), chosen, fill=None)


@exercise.mistake
def its_own_counted(q, k, block, chosen):
    """A row has one block too few: the query's own is not one of those that are chosen."""
    return pick(cheap(q, k, block), max(chosen - 1, 0))


@exercise.mistake
def nearest_blocks(q, k, block, chosen):
    """The nearest blocks were listed: that is a window. Which earlier blocks *fit* the query?"""
    nearest = torch.arange(q.shape[-2] // block).float()
    return pick(nearest.expand(*q.shape[:-1], -1), chosen)


@exercise.mistake
def keys_choose(q, k, block, chosen):
    """Queries and keys have changed places: each key asked who would look at it."""
    return pick(cheap(k, q, block), chosen)


@exercise.mistake
def first_tokens_alone(q, k, block, chosen):
    """The first key of each block spoke for all of it. What would a mean say that it does not?"""
    return pick(q @ k[..., ::block, :].mT, chosen)


@exercise.mistake
def strided(q, k, block, chosen):
    """Tokens that are far apart were averaged together: a block is tokens side by side. What does
    `reshape` count up last?"""
    return pick(q @ k.unflatten(-2, (block, -1)).mean(-3).mT, chosen)


@exercise.alternative
def row_by_row(q, k, block, chosen):
    scores = torch.einsum("...id,...jd->...ij", q, means(k, block))
    found = torch.full((*scores.shape[:-1], chosen + 1), -1)
    for i in range(q.shape[-2]):
        own = i // block
        earlier = scores[..., i, :own].argsort(dim=-1, descending=True)[..., :chosen]
        found[..., i, 0] = own
        found[..., i, 1 : 1 + earlier.shape[-1]] = earlier
    return found
