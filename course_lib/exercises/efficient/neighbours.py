"""Which blocks see which: a window, a few global blocks, and some at random."""

import torch
from torch import Tensor

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.efficient.bigbird import neighbours


def in_order(rows):
    """Sort each row, and drop the columns in which no block is listed: both are free."""
    if not isinstance(rows, Tensor) or rows.dim() != 2:
        return rows
    rows = rows.sort(dim=-1, descending=True).values
    return rows[:, (rows != -1).any(dim=0)]


ROWS = "torch.tensor([row + [-1] * (longest - len(row)) for row in rows])"

exercise = Exercise(
    reference=neighbours,
    lesson="13_bigbird",
    title="Window, global and random blocks",
    minutes=12,
    difficulty=3,
    canonical=in_order,
    hints=(
        "Begin on paper: five blocks, a window of three, one global block, nothing random. Which "
        "blocks does row 0 list, which row 1, which row 4? Is any of them listed twice?",
        "Once a row has its global blocks and its window, who is left to draw from? What if fewer "
        "are left than you wish to draw?",
        "Where do the random numbers come from? If each row began again with the same seed, what "
        "would all rows have in common?",
        "The rows are not equally long, and a tensor has straight edges. What stands in the places "
        "that are left over?",
    ),
    clauses={
        "the `window` blocks around itself": "window_to_each_side",
        "the ends cut": "running_round",
        "the first `global_blocks` blocks": "global_blocks_unlisted",
        "`random_blocks` of the others": "drawn_from_all",
        "or as many as remain": "more to draw than remain",
        "The global blocks see every block": "global_rows_are_short",
        "A row lists each block once": "listed_twice",
        "in any order": GIVEN,
        "Time and memory": GIVEN,
        "-1 means none": "filled_with_zero",
    },
    equivalent=(
        # a text without blocks is not asked
        "0 -> -1",
        "0 -> 1",
        # where there are fewer blocks than global ones, all of them are global
        "min(global_blocks, blocks) -> global_blocks",
        # a list knows what is in it, whole numbers are long
        "set(row) -> row",
        f"{ROWS}.long() -> {ROWS}",
    ),
)


@exercise.cases
def cases(draw: Draw):
    seed = draw.number(0, 10**6)
    yield "five blocks, a window of three", (5, 3, 0, 0, seed)
    yield "a wider window", (7, 5, 0, 0, seed)
    yield "itself alone", (4, 1, 0, 0, seed)
    yield "a window wider than the text", (3, 7, 0, 0, seed)
    yield "one global block, no window", (4, 0, 1, 0, seed)
    yield "one global block and a window", (6, 3, 1, 0, seed)
    yield "two global blocks and a window", (7, 3, 2, 0, seed)
    yield "every block global", (3, 1, 3, 0, seed)
    yield "all that remain, drawn at random", (5, 3, 0, 3, seed)
    yield "more to draw than remain", (6, 1, 1, 9, seed)
    yield "random blocks alone, more than there are", (4, 0, 0, 5, seed)
    yield "one block", (1, 3, 1, 2, seed)


@exercise.edges
def edges(draw: Draw):
    seed = draw.number(0, 10**6)
    yield "more global blocks than there are", (3, 1, 5, 0, seed)


def listed(rows):
    return [[block for block in row if block != -1] for row in rows.tolist()]


@exercise.requires("each row lists as many random blocks as asked, and no block twice")
def as_many_as_asked(answer, draw: Draw):
    fixed = listed(neighbours(12, 3, 2, 0, 0))
    found = listed(answer(12, 3, 2, 4, draw.number(0, 10**6)))
    return all(
        set(row) <= set(range(12))
        and set(sure) <= set(row)
        and len(row) == len(set(row)) == min(12, len(sure) + 4)
        for row, sure in zip(found, fixed, strict=True)
    )


@exercise.requires("the same seed gives the same list, and other seeds give others")
def seeded(answer, draw: Draw):
    seeds = [draw.number(0, 10**6) + 10**6 * i for i in range(4)]
    lists = [in_order(answer(20, 3, 1, 3, seed)).tolist() for seed in (seeds[0], *seeds)]
    return lists[0] == lists[1] and all(
        lists[i] != lists[j] for i in range(1, 5) for j in range(1, i)
    )


@exercise.requires("each row draws its own random blocks, and every block is drawn in some row")
def drawn_apart(answer, draw: Draw):
    fixed = listed(neighbours(32, 3, 0, 0, 0))
    drawn = set()
    for seed in draw.integers(0, 10**6, 6).tolist():
        found = listed(answer(32, 3, 0, 3, seed))
        own = [set(row) - set(sure) for row, sure in zip(found, fixed, strict=True)]
        if any(len(new) != 3 for new in own) or len(set.union(*own)) < 16:
            return False
        drawn |= set.union(*own)
    return drawn == set(range(32))


def as_tensor(rows, fill=-1):
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows]).long()


def build(blocks, window, global_blocks, random_blocks, seed, **change):
    """Build the list, in as many ways as there are mistakes."""
    generator, rows = torch.Generator().manual_seed(seed), []
    reach = change.get("reach", window // 2)
    for block in range(blocks):
        is_global = block < global_blocks and change.get("rows", True)
        row = list(
            range(blocks if is_global else global_blocks if change.get("columns", True) else 0)
        )
        around = range(block - reach, block + reach + 1) if window else []
        around = [i for i in around if 0 <= i < blocks]
        row += [i for i in around if change.get("twice") or i not in row]
        if is_global and change.get("apart"):
            rows.append(row)
            continue
        if change.get("again"):
            generator = torch.Generator().manual_seed(seed)
        order = torch.arange(blocks)
        if not change.get("nearest"):
            order = torch.randperm(blocks, generator=generator)
        rest = order.tolist() if change.get("anybody") else [i for i in order if i not in row]
        row += [int(i) for i in rest[:random_blocks]]
        rows.append(list(dict.fromkeys(row)) if change.get("merged") else row)
    return as_tensor(rows, fill=change.get("fill", -1))


@exercise.mistake
def global_rows_are_short(*inputs):
    """The global blocks are seen by all, but do not see all themselves. How long is the row of a
    block to which nothing is hidden?"""
    return build(*inputs, rows=False)


@exercise.mistake
def global_blocks_unlisted(*inputs):
    """The global blocks see every block, but the other rows do not list them. Which rows should
    list a global block?"""
    return build(*inputs, columns=False)


@exercise.mistake
def window_to_each_side(blocks, window, *rest):
    """The whole window was taken as the reach to each side. A window of three: how many blocks to
    the left of the middle one?"""
    return build(blocks, window, *rest, reach=window)


@exercise.mistake
def running_round(blocks, window, global_blocks, random_blocks, seed):
    """The window runs round: the first row lists the last block. At the ends a window is cut."""
    reach, rows = window // 2, []
    generator = torch.Generator().manual_seed(seed)
    for block in range(blocks):
        row = list(range(blocks if block < global_blocks else global_blocks))
        around = [i % blocks for i in range(block - reach, block + reach + 1)] if window else []
        row = list(dict.fromkeys([*row, *around]))
        rest = [i for i in torch.randperm(blocks, generator=generator).tolist() if i not in row]
        rows.append(row + rest[:random_blocks])
    return as_tensor(rows)


@exercise.mistake
def looking_back(blocks, window, global_blocks, random_blocks, seed):
    """The window looks back only. On how many sides of a block lies its window?"""
    rows = []
    for block, row in enumerate(listed(build(blocks, window, global_blocks, random_blocks, seed))):
        ahead = range(block + 1, block + window // 2 + 1)
        keep = block < global_blocks
        rows.append([i for i in row if keep or i < global_blocks or i not in ahead])
    return as_tensor(rows)


@exercise.mistake
def listed_twice(*inputs):
    """A block that is global and in the window is listed twice, and would be looked at twice. What
    should be asked before a block joins the row?"""
    return build(*inputs, twice=True)


@exercise.mistake
def drawn_from_all(*inputs):
    """The random blocks were drawn from all blocks, so some are in their row twice. Which blocks
    are left to draw from, once the row has its window and its global blocks?"""
    return build(*inputs, anybody=True)


@exercise.mistake
def drawn_from_all_but_for_global_blocks(*inputs):
    """The random blocks were drawn from all blocks, so some are in their row twice. Which blocks
    are left to draw from, once the row has its window and its global blocks?"""
    return build(*inputs, anybody=True, apart=True)


@exercise.mistake
def fewer_than_asked(*inputs):
    """The random blocks were drawn from all blocks, and one that was in the row already counted as
    drawn: some rows list fewer random blocks than asked. From which blocks should they be drawn?"""
    return build(*inputs, anybody=True, merged=True)


@exercise.mistake
def nothing_random(blocks, window, global_blocks, random_blocks, seed):
    """There are no random blocks: `random_blocks` changes nothing."""
    return build(blocks, window, global_blocks, 0, seed)


@exercise.mistake
def first_that_remain(*inputs):
    """The blocks drawn are the first ones that remain: nothing is random. What shuffles them?"""
    return build(*inputs, nearest=True)


@exercise.mistake
def seed_ignored(blocks, window, global_blocks, random_blocks, seed):
    """Every seed gives the same list. What has to be given `seed`, before anything is drawn?"""
    return build(blocks, window, global_blocks, random_blocks, 0)


@exercise.mistake
def seeded_in_each_row(*inputs):
    """Nearly every row has drawn the same block: the generator was seeded again for each of them.
    How often should it be seeded?"""
    return build(*inputs, again=True)


@exercise.mistake
def filled_with_zero(*inputs):
    """The short rows were filled up with 0, which is a block like any other. What stands for
    none?"""
    return build(*inputs, fill=0)


@exercise.mistake
def python_lists(*inputs):
    """The right lists, but as lists of Python. A tensor is asked, `(blocks, m)` and long: what
    makes its rows equally long?"""
    return listed(build(*inputs))


@exercise.mistake
def no_window_lists_itself(blocks, window, *rest):
    """With a window of 0, each block still lists itself, or its window. A window of 0 is none: the
    row of a block need not list the block itself."""
    return build(blocks, window or 1, *rest)


@exercise.alternative
def by_a_mask(blocks, window, global_blocks, random_blocks, seed):
    places = torch.arange(blocks)
    shown = (places.unsqueeze(-1) - places).abs() <= (window // 2 if window else -1)
    shown[:, :global_blocks] = True
    order = torch.rand(blocks, blocks, generator=torch.Generator().manual_seed(seed))
    rank = order.masked_fill(shown, 2.0).argsort(-1).argsort(-1)
    shown |= rank < random_blocks
    shown[:global_blocks] = True
    return torch.where(shown, places, -1)


@exercise.alternative
def by_python_alone(blocks, window, global_blocks, random_blocks, seed):
    import random

    generator, rows = random.Random(seed), []
    for block in range(blocks):
        near = {i for i in range(blocks) if window and abs(i - block) <= window // 2}
        row = near | set(range(blocks if block < global_blocks else global_blocks))
        rest = sorted(set(range(blocks)) - row)
        rows.append([*row, *generator.sample(rest, min(random_blocks, len(rest)))])
    return as_tensor(rows)
