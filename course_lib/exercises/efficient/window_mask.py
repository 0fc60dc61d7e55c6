"""Near words only: the band around the diagonal."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.efficient.window import window_mask

exercise = Exercise(
    reference=window_mask,
    lesson="13_bigbird",
    title="A band around the diagonal",
    minutes=4,
    difficulty=1,
    hints=(
        "Draw the square for five words and a window of three: which words may the first one see, "
        "which the third, which the last? What figure do they make?",
        "How far apart do word i and word j stand? Which distances does a window of three allow, "
        "and which one of five?",
        "The places 0 to n - 1 make one row. If they stood as a column too, what would a "
        "difference of the two give?",
    ),
    clauses={
        "Time and memory": GIVEN,
    },
    # places have one axis, and no distance lies between a whole number and the half above it
    equivalent=("-1 -> 1", "width // 2 -> width / 2"),
)


@exercise.cases
def cases(draw: Draw):
    n, side = draw.number(11, 30), draw.number(2, 5)
    yield "four words, three in sight", (4, 3)
    yield "an odd width", (n, 2 * side + 1)
    yield "itself alone", (3, 1)
    yield "an even width", (n, 2 * side)
    yield "a width of two", (draw.number(5, 30), 2)
    yield "wider than the text", (side, n)
    yield "as wide as the text", (2 * side + 1, 2 * side + 1)
    yield "a long text", (draw.number(99, 300), draw.number(21, 999))
    yield "one word", (1, 3)


@exercise.edges
def edges(draw: Draw):
    yield "a width of 0", (draw.number(11, 30), 0)


@exercise.requires("a word far from both ends sees as many words to its left as to its right")
def both_sides(answer, draw: Draw):
    side, middle = draw.number(1, 100), draw.number(101, 200)
    row = answer(2 * middle + 1, 2 * side + 1)[middle].tolist()
    return row == row[::-1] and row.count(True) == 2 * side + 1


@exercise.requires("if word i sees word j, then j sees i; and every word sees itself")
def mutual(answer, draw: Draw):
    mask = answer(draw.number(100, 300), draw.number(2, 100))
    return torch.equal(mask, mask.mT) and mask.diagonal().all() and not mask.all()


@exercise.requires("each row is the one above it, moved by one word")
def moved(answer, draw: Draw):
    side = draw.number(1, 100)
    mask = answer(draw.number(101, 300), 2 * side + 1)
    return torch.equal(mask[1:, 1:], mask[:-1, :-1]) and mask[0].sum() == side + 1


def band(n, left, right):
    ones = torch.ones(n, n, dtype=torch.bool)
    return ones.tril(right) & ones.triu(-left)


@exercise.mistake
def width_to_each_side(n, width):
    """The whole width was taken as the reach to each side, so twice as many words are seen. A
    window of three: how many words to the left of the middle one?"""
    return band(n, width, width)


@exercise.mistake
def nearer_than_the_width(n, width):
    """Every word nearer than the width is seen, on either side: that is nearly two windows. A
    window of three: how many words does the middle one see in all?"""
    return band(n, width - 1, width - 1)


@exercise.mistake
def one_side_open(n, width):
    """One side of the window has no end: the difference of two places may be negative, and then it
    is small however far they are apart. What is a distance?"""
    return band(n, width // 2, n)


@exercise.mistake
def one_word_short(n, width):
    """The window ends one word too early on both sides: `<` leaves out the words that stand at
    exactly the distance allowed."""
    return band(n, width // 2 - 1, width // 2 - 1)


@exercise.mistake
def looking_back(n, width):
    """The words look back only, as under a causal mask. On how many sides of a word lies its
    window?"""
    return band(n, width // 2, 0)


@exercise.mistake
def ending_at_itself(n, width):
    """The words look back only, the whole width of the window. The word itself stands in the middle
    of it, not at its end."""
    return band(n, width - 1, 0)


@exercise.mistake
def inverted(n, width):
    """The mask is read the wrong way round: here True hides a word, where it should show it."""
    return ~window_mask(n, width)


@exercise.mistake
def even_is_cut(n, width):
    """Right for odd widths. An even one loses a word on one side: `width // 2` words are seen on
    either."""
    return band(n, width // 2, (width - 1) // 2)


@exercise.mistake
def even_is_smaller(n, width):
    """Right for odd widths. An even one was taken as the odd one below it; what does `width // 2`
    make of a width of four?"""
    side = (width - 1) // 2
    return band(n, side, side)


@exercise.mistake
def without_itself(n, width):
    """No word sees itself: the diagonal is missing. How far does a word stand from itself?"""
    return window_mask(n, width) & ~torch.eye(n, dtype=torch.bool)


@exercise.mistake
def pieces(n, width):
    """The text was cut into pieces, and words see their own piece only: two neighbours on either
    side of a cut miss each other. Around whom does a window stand?"""
    piece = torch.arange(n) // max(width, 1)
    return piece.unsqueeze(-1) == piece


@exercise.mistake
def running_round(n, width):
    """The window runs round: the last words see the first ones. How far do word 0 and word n - 1
    stand apart?"""
    ahead = (torch.arange(n).unsqueeze(-1) - torch.arange(n)) % n
    return torch.minimum(ahead, n - ahead) <= width // 2


@exercise.mistake
def in_numbers(n, width):
    """The right band, but of ones and zeros. A mask says True and False: what does `~` do to a
    number?"""
    return window_mask(n, width).float()


@exercise.alternative
def by_two_triangles(n, width):
    ones = torch.ones(n, n)
    return (ones.tril(width // 2) * ones.triu(-(width // 2))).bool()


@exercise.alternative
def row_by_row(n, width):
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        mask[i, max(0, i - width // 2) : i + width // 2 + 1] = True
    return mask
