"""How many layers of windows it takes until two distant words meet."""

from math import ceil, log

from course_lib.before_attention import layers_needed, receptive_field
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=layers_needed,
    lesson="01_windows",
    title="How many layers until two words meet",
    minutes=8,
    difficulty=2,
    hints=(
        "Two words that stand 4 apart, and everything between them, are how many words? Which "
        "stack of windows of width 3 sees that many?",
        "Each layer adds the same number of words to what a state sees. How often does that "
        "number fit into the distance, and what is to be done when something is left over?",
        "Python's `//` rounds down, also below zero: what is -7 // 2? How can that help to round "
        "up?",
    ),
    clauses={
        "at distance 0 need no layer": "one_at_least",
    },
)


@exercise.cases
def cases(draw: Draw):
    side = draw.number(2, 6)
    yield "next but one, windows of three", (2, 3)
    yield "a distance that leaves a rest", (2 * side * draw.number(2, 20) + 1, 2 * side + 1)
    yield "one that leaves none", (2 * side * draw.number(2, 20), 2 * side + 1)
    yield "one window is more than enough", (draw.number(1, 8), 2 * draw.number(5, 20) + 1)
    width = 2 * draw.number(1, 6) + 1
    yield "windows side by side", (draw.number(2, 20) * width, width)
    yield "the word itself", (0, 5)
    yield "a long way", (draw.number(1000, 10**6), 7)


@exercise.edges
def edges(draw: Draw):
    yield "neighbours, and wide windows", (1, 2 * draw.number(60, 300) + 1)


@exercise.requires("so many layers see both words, and one layer less does not")
def least(answer, draw: Draw):
    stacks = [(draw.number(1, 10**5), 2 * draw.number(1, 9) + 1) for _ in range(5)]
    layers = [answer(distance, width) for distance, width in stacks]
    return all(
        receptive_field(enough - 1, width) <= distance < receptive_field(enough, width)
        for enough, (distance, width) in zip(layers, stacks, strict=True)
    )


@exercise.requires("ten times the distance takes ten times the layers")
def linear(answer, draw: Draw):
    side, layers = draw.number(1, 300), draw.number(2, 10**4)
    distance, width = 2 * side * layers, 2 * side + 1
    near, far = answer(distance, width), answer(10 * distance, width)
    return far == 10 * near > 0


@exercise.mistake
def as_the_lecture_prints_it(distance, width):
    """This is n / window, as lecture L1 prints it, rounded up. A layer shows a state width - 1
    words more, not width, since one was in sight before: try distance 12 with width 5."""
    return ceil(distance / width)


@exercise.mistake
def rounded_down(distance, width):
    """Rounded down: where something is left over, the last layer is missing. Does half a layer
    bring the words together?"""
    return distance // (width - 1)


@exercise.mistake
def always_one_more(distance, width):
    """One layer too many where the division comes out even. Was one added in every case, or were
    the words counted, both ends included, instead of the steps between them?"""
    return distance // (width - 1) + 1


@exercise.mistake
def to_one_side(distance, width):
    """Counted until the one word's own state sees the other. Some state halfway between them sees
    both earlier: how far is it from each?"""
    return ceil(distance / (width // 2))


@exercise.mistake
def not_rounded(distance, width):
    """The division was left as it is: the result is a float, and now and then a fraction. Can a
    network have one and a third layers?"""
    return distance / (width - 1)


@exercise.mistake
def growing_as_a_power(distance, width):
    """The layers grew with the logarithm, as if each saw a multiple of the one below. How many
    words does the second layer add, and how many the third?"""
    return ceil(log(distance + 1, width))


@exercise.mistake
def tiles(distance, width):
    """The words from one to the other, distance + 1 of them, were cut into windows side by side.
    Stacked windows overlap: how many words more does each layer show a state?"""
    return ceil((distance + 1) / width)


@exercise.mistake
def tiles_but_for_the_word_itself(distance, width):
    """The words from one to the other, distance + 1 of them, were cut into windows side by side.
    Stacked windows overlap: how many words more does each layer show a state?"""
    return ceil((distance + 1) / width) if distance else 0


@exercise.mistake
def one_at_least(distance, width):
    """A word sees itself before any layer: for the distance 0 no layer is needed."""
    return max(1, layers_needed(distance, width))


@exercise.alternative
def layer_by_layer(distance, width):
    layers, seen = 0, 1
    while seen < distance + 1:
        layers, seen = layers + 1, seen + width - 1
    return layers


@exercise.alternative
def rounded_up(distance, width):
    return (distance + width - 2) // (width - 1)
