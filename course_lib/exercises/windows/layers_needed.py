"""How many layers of windows it takes until two distant words meet."""

from math import ceil, log

from course_lib.exercises.exercise import Draw, Exercise
from course_lib.windows import layers_needed, receptive_field

exercise = Exercise(
    reference=layers_needed,
    lesson="01",
    title="How many layers until two words meet",
    minutes=8,
    difficulty=2,
    equivalent=("3 -> 2",),  # a width of 2 is refused for being even
    hints=(
        "Two words that stand 4 apart, and everything between them, are how many words? Which "
        "stack of windows of width 3 sees that many?",
        "Each layer adds the same number of words to what a state sees. How often does that "
        "number fit into the distance, and what is to be done when something is left over?",
        "Python's `//` rounds down, also below zero: what is -7 // 2? How can that help to round "
        "up?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "next but one, windows of three", (2, 3)
    yield "a distance that leaves a rest", (7, 3)
    yield "twelve apart, windows of five", (12, 5)
    yield "one window is more than enough", (2, 9)
    yield "the word itself", (0, 5)
    yield "a long way", (1000, 7)
    yield "a window of even width", (5, 4)
    yield "a window of one word", (3, 1)


@exercise.property("so many layers see both words, and one layer less does not")
def least(answer, draw: Draw):
    stacks = [(1, 3), (6, 3), (9, 5), (20, 5), (31, 9)]
    layers = [answer(distance, width) for distance, width in stacks]
    return all(
        receptive_field(enough - 1, width) <= distance < receptive_field(enough, width)
        for enough, (distance, width) in zip(layers, stacks, strict=True)
    )


@exercise.property("ten times the distance takes ten times the layers")
def linear(answer, draw: Draw):
    near, far = answer(12, 7), answer(120, 7)
    return far == 10 * near > 0


def checked(distance, width, count):
    """Refuse what the reference refuses, and count otherwise."""
    layers_needed(distance, width)
    return count(distance, width)


@exercise.mistake(
    "This is n / window, as lecture L1 prints it, rounded up. A layer shows a state width - 1 "
    "words more, not width, since one was in sight before: try distance 12 with width 5."
)
def as_the_lecture_prints_it(distance, width):
    return checked(distance, width, lambda distance, width: ceil(distance / width))


@exercise.mistake(
    "Rounded down: where something is left over, the last layer is missing. Does half a layer "
    "bring the words together?"
)
def rounded_down(distance, width):
    return checked(distance, width, lambda distance, width: distance // (width - 1))


@exercise.mistake(
    "One layer too many where the division comes out even. Was one added in every case, or were "
    "the words counted, both ends included, instead of the steps between them?"
)
def always_one_more(distance, width):
    return checked(distance, width, lambda distance, width: distance // (width - 1) + 1)


@exercise.mistake(
    "Counted until the one word's own state sees the other. Some state halfway between them sees "
    "both earlier: how far is it from each?"
)
def to_one_side(distance, width):
    return checked(distance, width, lambda distance, width: ceil(distance / (width // 2)))


@exercise.mistake(
    "The division was left as it is: the result is a float, and now and then a fraction. Can a "
    "network have one and a third layers?"
)
def not_rounded(distance, width):
    return checked(distance, width, lambda distance, width: distance / (width - 1))


@exercise.mistake(
    "The right number, but as a float: 3.0 is not a count. Which division of Python gives whole "
    "numbers?"
)
def as_a_float(distance, width):
    return checked(distance, width, lambda *sizes: float(layers_needed(*sizes)))


@exercise.mistake(
    "The layers grew with the logarithm, as if each saw a multiple of the one below. How many "
    "words does the second layer add, and how many the third?"
)
def growing_as_a_power(distance, width):
    return checked(distance, width, lambda distance, width: ceil(log(distance + 1, width)))


@exercise.mistake(
    "No width was refused, though a window of one word never sees a second one, however often it "
    "is stacked. What does the docstring promise?"
)
def width_unchecked(distance, width):
    return ceil(distance / (width - 1))


@exercise.mistake(
    "A window of one word was refused, one of four was not. Which word stands in its middle?"
)
def even_width_accepted(distance, width):
    if width < 3:
        raise ValueError(f"width must be at least 3, not {width}")
    return ceil(distance / (width - 1))


@exercise.mistake(
    "A window of even width was refused, one of one word was not. Its width is odd; what does "
    "stacking it show?"
)
def width_one_accepted(distance, width):
    if width % 2 == 0:
        raise ValueError(f"width must be odd, not {width}")
    return ceil(distance / (width - 1))


@exercise.alternative
def layer_by_layer(distance, width):
    if width < 3 or width % 2 == 0:
        raise ValueError(f"no stack of windows of width {width}")
    layers, seen = 0, 1
    while seen < distance + 1:
        layers, seen = layers + 1, seen + width - 1
    return layers


@exercise.alternative
def rounded_up(distance, width):
    if width not in range(3, width + 1, 2):
        raise ValueError(f"no stack of windows of width {width}")
    return (distance + width - 2) // (width - 1)


@exercise.alternative
def by_half_distances(distance, width):
    if width < 2 or not width % 2:
        raise ValueError(f"no stack of windows of width {width}")
    return ceil(ceil(distance / 2) / (width // 2))
