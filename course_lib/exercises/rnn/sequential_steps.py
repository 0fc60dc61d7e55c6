"""How many steps must wait for one another, until any two words have met."""

from math import ceil, log

from course_lib.before_attention import layers_needed, sequential_steps
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=sequential_steps,
    lesson="01",
    title="What must wait for what",
    minutes=8,
    difficulty=2,
    hints=(
        "Steps that can run side by side count once. Which of the three has to wait for each "
        "token's turn?",
        "Of all pairs of n tokens, one takes a stack of windows longest. Which pair is that, and "
        "how far apart are its tokens?",
        "A state sees 1 + L (width - 1) tokens through L layers. How many must it see to hold both "
        "tokens of that pair? Solve for L: what if the division leaves a remainder?",
    ),
    clauses={
        "States that do not wait": "work_of_attention",
        "`kind` is": GIVEN,
        "as few as are enough": "not_rounded",
        "A token alone still takes its step": "no_step_alone",
        "it takes no layer of windows": "at_least_one_layer",
    },
)


@exercise.cases
def cases(draw: Draw):
    width = 2 * draw.number(2, 6) + 1
    yield "an RNN", ("rnn", draw.number(3, 10**6))
    yield "attention", ("attention", draw.number(3, 10**6))
    yield "windows that reach the last word exactly", ("window", 2 * draw.number(2, 50) + 1, 3)
    yield "windows that reach beyond it", ("window", (width - 1) * draw.number(2, 50) + 2, width)
    n = (width - 1) * draw.number(2, 50)
    yield "windows that reach one word beyond it", ("window", n, width)
    yield "windows of three", ("window", draw.number(4, 300), 3)
    yield "one word, read by an RNN", ("rnn", 1)
    yield "one word, and windows", ("window", 1, 3)
    yield "one word, and attention", ("attention", 1)


@exercise.edges
def edges(draw: Draw):
    width = 2 * draw.number(2, 6) + 1
    yield "two words, and wide windows", ("window", 2, 2 * draw.number(60, 300) + 1)
    yield "an RNN, and a width", ("rnn", draw.number(10, 10**6), width)
    yield "attention, and a width", ("attention", draw.number(100, 10**6), width)


@exercise.requires("attention needs as many steps for a thousand words as for two")
def attention_is_flat(answer, draw: Draw):
    short, long = answer("attention", 2), answer("attention", draw.number(1000, 10**6))
    return long == short > 0


@exercise.requires("ten times the words are ten times the steps for an RNN, and for windows")
def linear(answer, draw: Draw):
    n = draw.number(2, 10**5)
    rnn = answer("rnn", n), answer("rnn", 10 * n)
    window = answer("window", 2 * n + 1, 3), answer("window", 20 * n + 1, 3)
    return all(many == 10 * few > 0 for few, many in (rnn, window))


def corrected(kind, n, width, wrong):
    """Answer as the reference, but for windows."""
    return wrong(n, width) if kind == "window" else sequential_steps(kind, n, width)


@exercise.mistake
def steps_between_words(kind, n, width=None):
    """For an RNN, one step is missing. The last word is n - 1 words away from the first, but the
    first word has to be read as well: how many steps does a sentence of one word take?"""
    return n - 1 if kind == "rnn" else sequential_steps(kind, n, width)


@exercise.mistake
def as_the_lecture_prints_it(kind, n, width=None):
    """For windows this is n / window, as lecture L1 prints it. Each layer lets a state see width -
    1 words more, not width: how many words do two layers of width 3 reach?"""
    return corrected(kind, n, width, lambda n, width: ceil(n / width))


@exercise.mistake
def distance_n(kind, n, width=None):
    """The windows were stacked for words that stand n apart. In a sentence of n words, how far is
    the last from the first?"""
    return corrected(kind, n, width, layers_needed)


@exercise.mistake
def to_one_side(kind, n, width=None):
    """The windows were stacked until the last word's own state sees the first word. Some state
    between the two sees both sooner: which one?"""
    return corrected(kind, n, width, lambda n, width: ceil((n - 1) / (width // 2)))


@exercise.mistake
def one_layer_of_windows(kind, n, width=None):
    """For windows one step came back, however long the sentence. All places of one layer run side
    by side, but can its states see the whole sentence?"""
    return corrected(kind, n, width, lambda n, width: 1)


@exercise.mistake
def at_least_one_layer(kind, n, width=None):
    """One word alone still got a layer of windows. It has nobody to meet: how many pairs does a
    sentence of one word have, and how many layers does distance 0 need?"""
    return corrected(kind, n, width, lambda n, width: max(1, layers_needed(n - 1, width)))


@exercise.mistake
def work_of_attention(kind, n, width=None):
    """For attention all pairs were counted. That is its work, and the work is done side by side:
    how much of it has to wait for the rest?"""
    return n * n if kind == "attention" else sequential_steps(kind, n, width)


@exercise.mistake
def attention_in_turn(kind, n, width=None):
    """For attention the words were counted, as if they were read in turn. Which word has to wait
    for another one here?"""
    return n if kind == "attention" else sequential_steps(kind, n, width)


@exercise.mistake
def no_step_alone(kind, n, width=None):
    """One word alone takes no step of attention here. It has nobody to meet, and attention still
    runs once: what would its state be made of otherwise?"""
    return 0 if kind == "attention" and n == 1 else sequential_steps(kind, n, width)


@exercise.mistake
def width_of_three(kind, n, width=None):
    """Right for windows of three words: each layer was given two words more, whatever `width` is.
    How many does a layer with a window of five add?"""
    return corrected(kind, n, width, lambda n, width: ceil((n - 1) / 2))


@exercise.mistake
def not_rounded(kind, n, width=None):
    """For windows the division was left as it is, so the result is a float, and now and then a
    fraction. Can a network have two and a quarter layers?"""
    return corrected(kind, n, width, lambda n, width: (n - 1) / (width - 1))


@exercise.mistake
def rounded_down(kind, n, width=None):
    """For windows the division was rounded down, so where something is left over the first word and
    the last have not met yet."""
    return corrected(kind, n, width, lambda n, width: (n - 1) // (width - 1))


@exercise.mistake
def growing_as_a_power(kind, n, width=None):
    """For windows the layers grew with the logarithm of n, as if each saw `width` times as far as
    the one below, as dilated windows do. How many words does the third layer add?"""
    return corrected(kind, n, width, lambda n, width: ceil(log(n, width)))


@exercise.mistake
def width_decides(kind, n, width=None):
    """Whoever gives a width gets the layers of windows, though the kind is another one. An RNN and
    attention have no windows: which of the two arguments says what is counted?"""
    return sequential_steps(kind if width is None else "window", n, width)


@exercise.alternative
def stacking_until_it_is_enough(kind, n, width=None):
    if kind == "window":
        seen, layers = 1, 0
        while seen < n:
            seen, layers = seen + width - 1, layers + 1
        return layers
    return n if kind == "rnn" else 1
