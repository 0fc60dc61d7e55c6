"""How much of the sentence one state sees through stacked windows."""

from course_lib.before_attention import receptive_field
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=receptive_field,
    lesson="01_windows",
    title="How far a stack of windows sees",
    minutes=4,
    difficulty=1,
    hints=(
        "Draw one state above three words. Above it, put a second layer: which words at the "
        "bottom does its state see now, and how many are new?",
        "Before the first layer, how many words does a state see? And how many does each layer "
        "add, when neighbouring windows overlap?",
    ),
    clauses={
        "Without a layer": "nothing_without_a_layer",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "one layer", (1, 3)
    yield "two layers", (2, odd(draw, 10))
    yield "a wider window", (draw.number(3, 9), odd(draw, 30))
    yield "no layer", (0, odd(draw, 10))
    yield "windows of one word", (draw.number(2, 9), 1)
    yield "many layers, wide windows", (draw.number(10, 20), odd(draw, 30))


@exercise.requires("each layer adds as many words as the one before it")
def even_growth(answer, draw: Draw):
    first, width = draw.number(1, 20), odd(draw, 30)
    one, two, three = (answer(first + more, width) for more in range(3))
    return three - two == two - one > 0


@exercise.requires("one layer sees as many words as its window is wide")
def one_window(answer, draw: Draw):
    widths = [odd(draw, 100) for _ in range(3)]
    return [answer(1, width) for width in widths] == widths


def odd(draw, most):
    """Draw a width of three or more."""
    return 2 * draw.number(1, most) + 1


@exercise.mistake
def end_to_end(layers, width):
    """The windows were laid end to end, which is lecture L1's n / window turned round. But stacked
    windows overlap: two layers of width 3 see 5 words, not 6."""
    return layers * width


@exercise.mistake
def growing_as_a_power(layers, width):
    """The field grew as a power, as if every layer looked further apart than the one below. The
    windows are all of one width: how many words does the third layer add, and how many the
    second?"""
    return width**layers


@exercise.mistake
def reach_to_one_side(layers, width):
    """This is the reach to one side. The state looks left and right, and it sees its own word
    too."""
    return layers * (width // 2)


@exercise.mistake
def one_side_and_itself(layers, width):
    """The state's own word and one side were counted. Windows look both ways: how wide is one
    layer's window?"""
    return 1 + layers * (width // 2)


@exercise.mistake
def itself_forgotten(layers, width):
    """One word is missing, even with no layer at all: which word does a state see then?"""
    return layers * (width - 1)


@exercise.mistake
def nothing_without_a_layer(layers, width):
    """Without a layer nothing is seen here. A state is its own word then: how many is that?"""
    return 1 + layers * (width - 1) if layers else 0


@exercise.mistake
def middle_counted_again(layers, width):
    """Each layer was counted as `width` new words. One of them was in sight before: which one?"""
    return 1 + layers * width


@exercise.mistake
def layers_ignored(layers, width):
    """The layers play no part: this is what one layer sees. What do the neighbours know, when they
    have looked at their own neighbours before?"""
    return width


@exercise.mistake
def one_added_too_early(layers, width):
    """This is (1 + layers) (width - 1). Which comes first, the product or the sum? Try no layer at
    all: what does a word see then?"""
    return (1 + layers) * (width - 1)


@exercise.mistake
def width_of_three(layers, width):
    """Right for windows of three words: each layer was given two words more, whatever `width` is.
    How many does a layer with a window of five add?"""
    return 1 + 2 * layers


@exercise.alternative
def layer_by_layer(layers, width):
    seen = 1
    for _ in range(layers):
        seen += width - 1
    return seen


@exercise.alternative
def both_sides(layers, width):
    side = layers * (width // 2)
    return side + 1 + side


@exercise.alternative
def which_tokens(layers, width):
    seen = {0}
    for _ in range(layers):
        seen = {i + j for i in seen for j in range(-(width // 2), width // 2 + 1)}
    return len(seen)
