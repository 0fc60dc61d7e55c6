"""Lists of blocks, drawn as a square of words."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.efficient.bigbird import bigbird_mask

exercise = Exercise(
    reference=bigbird_mask,
    lesson="13_bigbird",
    title="The pattern, drawn in full",
    minutes=6,
    difficulty=2,
    hints=(
        "Three blocks of one word each: row 0 lists 0 and 2, row 1 lists 1, row 2 lists nobody. "
        "Draw the three rows of the mask.",
        "Now each block is two words long. What becomes of one entry of the small square? And do "
        "its copies stand beside each other, or one square away?",
        "In Python, which column is number -1? What does the list mean by it?",
    ),
    clauses={
        "Time and memory": GIVEN,
    },
    # the small square has two axes
    equivalent=("-1 -> 1",),
)


def lists(*rows):
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[-1] * (longest - len(row))] for row in rows])


@exercise.cases
def cases(draw: Draw):
    yield "three blocks of two words", (lists([0], [0, 1], [1, 2]), 2)
    yield "blocks of one word", (lists([0, 2], [1], [3], [0, 3]), 1)
    yield "none in the middle of a row", (torch.tensor([[2, -1, 0], [-1, 1, -1], [-1, -1, 0]]), 2)
    yield "a row that lists nobody", (lists([1], [], [0, 2]), 3)
    yield "a row that lists every block", (lists([0, 1, 2, 3], [0, 1], [0, 3], [0, 2]), 3)
    yield "one block", (lists([0]), 4)
    order = draw.normal(5, 5).argsort(-1)[:, :3]
    yield "five blocks, three of them each", (order, 4)


@exercise.edges
def edges(draw: Draw):
    yield "a last block that nobody lists", (lists([0, 1], [0], [1]), 2)
    yield "a block that a row lists twice", (lists([0, 0], [2, 1], [1, 2]), 2)


@exercise.requires("each word sees one block of words for every block that its row lists")
def as_many_as_listed(answer, draw: Draw):
    order, block = draw.normal(6).argsort().tolist(), draw.number(2, 9)
    rows = order[:3], order[3:4], [], order[4:], order[1:5], order
    counts = [block * len(row) for row in rows for _ in range(block)]
    return answer(lists(*rows), block).sum(-1).tolist() == counts


@exercise.requires("the words of one block see the same, and are seen by the same")
def alike_in_a_block(answer, draw: Draw):
    found = answer(draw.normal(4, 4).argsort(-1)[:, :2], 3)
    small = found[::3, ::3]
    return torch.equal(found[1::3, 2::3], small) and torch.equal(found[2::3, 1::3], small)


def small(neighbours):
    return (neighbours.unsqueeze(-1) == torch.arange(len(neighbours))).any(1)


def enlarged(mask, block):
    return mask.repeat_interleave(block, 0).repeat_interleave(block, 1)


@exercise.mistake
def last_block_seen(neighbours, block):
    """Whoever lists nobody sees the last block: as an index, -1 is the last place. What does it
    stand for in the list?"""
    blocks = len(neighbours)
    return enlarged(small(neighbours.where(neighbours >= 0, blocks - 1)), block)


@exercise.mistake
def cut_to_the_shortest(neighbours, block):
    """Only the columns before the first -1 of the whole table were read, so rows that list more
    have lost some of their blocks. Each row may have its -1 elsewhere."""
    return enlarged(small(neighbours[:, (neighbours >= 0).all(0)]), block)


@exercise.mistake
def up_to_the_first_none(neighbours, block):
    """Each row was read up to its first -1 only. It may be anywhere in a row: what comes after it
    counts too."""
    return enlarged(small(neighbours.where((neighbours >= 0).cumprod(-1) > 0, -1)), block)


@exercise.mistake
def first_block_seen(neighbours, block):
    """Whoever lists nobody sees block 0. The places marked -1 were brought into range; they should
    mark nothing."""
    return enlarged(small(neighbours.clamp(min=0)), block)


@exercise.mistake
def laid_like_tiles(neighbours, block):
    """The pattern was laid out again and again, like tiles. Where do the copies of one entry
    belong, if a block is so many words that stand side by side?"""
    return small(neighbours).repeat(block, block)


@exercise.mistake
def transposed(neighbours, block):
    """Queries and keys have changed places. Row i of the list says whom block i sees: is that a row
    or a column of the mask?"""
    return bigbird_mask(neighbours, block).mT


@exercise.mistake
def inverted(neighbours, block):
    """The mask is read the wrong way round: here True hides a word, where it should show it."""
    return ~bigbird_mask(neighbours, block)


@exercise.mistake
def blocks_alone(neighbours, block):
    """This is the pattern of blocks, one entry for each two of them. How many words has the text,
    and how many rows a mask for it?"""
    return small(neighbours)


@exercise.mistake
def rows_alone(neighbours, block):
    """Each block became longer, not wider: the mask has a row for each word, and a column for each
    block."""
    return small(neighbours).repeat_interleave(block, 0)


@exercise.mistake
def itself_always(neighbours, block):
    """Every block sees itself, whether its row lists it or not. Who decides what is seen?"""
    own = torch.eye(len(neighbours), dtype=torch.bool)
    return enlarged(small(neighbours) | own, block)


@exercise.mistake
def made_mutual(neighbours, block):
    """Whoever sees is also seen: the mask was made symmetric. A global block is seen by all; does a
    random block look back?"""
    return enlarged(small(neighbours) | small(neighbours).mT, block)


@exercise.mistake
def in_numbers(neighbours, block):
    """The right pattern, but of ones and zeros. A mask says True and False: what does `~` do to a
    number?"""
    return bigbird_mask(neighbours, block).float()


@exercise.alternative
def by_comparing(neighbours, block):
    return enlarged(small(neighbours), block)


@exercise.alternative
def square_by_square(neighbours, block):
    n = len(neighbours) * block
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i, row in enumerate(neighbours.tolist()):
        for j in row:
            if j != -1:
                mask[i * block : (i + 1) * block, j * block : (j + 1) * block] = True
    return mask
