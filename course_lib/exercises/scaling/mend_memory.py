"""The memory of a training, with a fault to be mended."""

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.scaling import training_memory

exercise = Exercise(
    reference=training_memory,
    lesson="12",
    title="Find the bug: the bill is too small",
    minutes=6,
    difficulty=2,
    hints=(
        "The cases with one head pass, and those with a context of 0. Which line should depend on "
        "both?",
        "A head compares a token with the whole context. What does the next head do?",
    ),
    clauses={
        "N weights with a gradient and Adam's two": "weights alone",
        "for a token in each block": "heads_for_all",
        "two rows of weights in each head": "one_row",
        "That is what the course's": GIVEN,
    },
)


@exercise.cases
def cases(draw: Draw):
    n, sequences, context = draw.number(10**3, 10**6), draw.number(2, 9), draw.number(11, 29)
    layers, d_k, vocab = draw.number(2, 9), draw.number(3, 9), draw.number(31, 99)
    yield "weights alone", (n, 0, context, layers, 2 * d_k, 2, vocab)
    yield "one head", (n, sequences, context, layers, d_k, 1, vocab)
    yield "two heads", (n, sequences, context, layers, 2 * d_k, 2, vocab)
    yield "one layer, one sequence", (n, 1, context, 1, 3 * d_k, 3, vocab)
    yield "no layer", (n, sequences, context, 0, 2 * d_k, 2, vocab)
    yield "one token", (n, 1, 1, layers, 5 * d_k, 5, vocab)
    yield "lesson 10's model", (103_680, 16, 64, 2, 64, 8, 84)
    yield "GPT-2", (124_439_808, 12, 1024, 12, 768, 12, 50_257)


@exercise.edges
def edges(draw: Draw):
    n, layers = draw.number(10**3, 10**6), draw.number(2, 9)
    d_k, vocab = draw.number(3, 9), draw.number(31, 99)
    many = draw.number(10**18, 10**19 - 10**18)
    yield "more bytes than any machine has", (many, 3 * n, 5 * n, layers, 3 * d_k, 3, vocab)


@exercise.requires("twice as many sequences take twice the activations, and the same weights")
def linear_in_sequences(answer, draw: Draw):
    sizes = [draw.number(2, 50) for _ in range(5)]
    none, one, two = (answer(9, sequences, *sizes) for sequences in (0, 1, 2))
    return none < one and two - one == one - none


@exercise.requires("in twice the context, heads cost four times as much")
def square_in_context(answer, draw: Draw):
    context, layers, d_model, vocab = (draw.number(2, 50) for _ in range(4))

    def one_head_more(context):
        three, four = (answer(9, 1, context, layers, d_model, heads, vocab) for heads in (3, 4))
        return four - three

    return one_head_more(2 * context) == 4 * one_head_more(context) > 0


@exercise.hand_out
def heads_forgotten(parameters, sequences, context, layers, d_model, heads, vocab):
    """The fault was in the rows of weights: they were counted for one head, and each head has its
    own."""
    # each weight, its gradient, and Adam's two averages of that
    states = 4 * parameters
    # what a block keeps of a token: 10 vectors as wide as the model, and one of the network's 4 d
    vectors = 14 * d_model
    # and in each head, two rows of weights over the context
    rows = 2 * context
    # what the whole model keeps of a token, with two rows of logits
    activations = layers * (vectors + rows) + 2 * vocab
    return 4 * (states + sequences * context * activations)


@exercise.mistake
def heads_for_all(parameters, sequences, context, layers, d_model, heads, vocab):
    """The whole block is counted once for each head now. Heads divide the vectors among
    themselves: which of the two parts does each of them have for itself?"""
    activations = layers * heads * (14 * d_model + 2 * context) + 2 * vocab
    return 4 * (4 * parameters + sequences * context * activations)


@exercise.mistake
def one_row(parameters, sequences, context, layers, d_model, heads, vocab):
    """The heads are there, and each has one row now. Two are kept: one for the gradient of the
    softmax, one for that of the average."""
    activations = layers * (14 * d_model + heads * context) + 2 * vocab
    return 4 * (4 * parameters + sequences * context * activations)


@exercise.mistake
def square_of_context(parameters, sequences, context, layers, d_model, heads, vocab):
    """The context was multiplied in once too often. A token has a row of the scores, as long as
    the context; the last line multiplies by the tokens."""
    activations = layers * (14 * d_model + 2 * heads * context**2) + 2 * vocab
    return 4 * (4 * parameters + sequences * context * activations)


@exercise.mistake
def numbers(parameters, sequences, context, layers, d_model, heads, vocab):
    """These are numbers, and the bill is in bytes: each has four. That line was right."""
    return training_memory(parameters, sequences, context, layers, d_model, heads, vocab) // 4


@exercise.alternative
def block_by_block(parameters, sequences, context, layers, d_model, heads, vocab):
    tokens = sequences * context
    block = 14 * tokens * d_model + 2 * sequences * heads * context * context
    return 16 * parameters + 4 * layers * block + 8 * tokens * vocab
