"""How many weights a stack of blocks has, from four sizes."""

from course_lib.checking.exercise import Draw, Exercise
from course_lib.scaling import estimate_parameters

exercise = Exercise(
    reference=estimate_parameters,
    lesson="12",
    title="How large is GPT-3?",
    minutes=4,
    difficulty=1,
    hints=(
        "Write down the shapes of the matrices of one block. Which four does attention have, and "
        "which two the feed-forward network?",
        "Queries, keys and values map d_model to d_attention. What does the output matrix map to "
        "what?",
        "Biases, norms and embeddings are left out. What is left that grows with the number of "
        "layers?",
    ),
    clauses={
        "Embeddings, biases and norms are left out": "biases_too",
        "is the size of all heads' queries": "attention_like_the_model",
    },
)


@exercise.cases
def cases(draw: Draw):
    layers, d_model = draw.number(2, 9), 11 + draw.number(0, 9)
    d_attention, d_ff = 23 + draw.number(0, 9), 37 + draw.number(0, 9)
    yield "one layer", (1, 2, 3, 5)
    yield "several layers", (layers, d_model, d_attention, d_ff)
    yield "narrow attention", (layers, d_ff, d_model, d_attention)
    yield "as wide as the model", (layers, d_model, d_model, d_ff)
    million = [draw.number(10**6, 10**7) for _ in range(4)]
    yield "sizes that no model has", tuple(million)
    yield "the base of 2017, one stack", (6, 512, 512, 2048)
    yield "GPT-3", (96, 12288, 12288, 4 * 12288)


@exercise.edges
def edges(draw: Draw):
    layers, d_model = draw.number(2, 9), 11 + draw.number(0, 9)
    d_ff = 37 + draw.number(0, 9)
    yield "attention as wide as the network", (layers, d_model, d_ff, d_ff)


@exercise.requires("each layer has as many weights as the one before it")
def layers_alike(answer, draw: Draw):
    sizes = [draw.number(2, 50) for _ in range(3)]
    none, one, five = (answer(layers, *sizes) for layers in (0, 1, 5))
    return none == 0 and five == 5 * one > 0


@exercise.requires("with d_ff = 4 d_model, a layer has 12 d_model^2 weights")
def twelve(answer, draw: Draw):
    d = draw.number(2, 10**6)
    return answer(1, d, d, 4 * d) == 12 * d * d


@exercise.mistake
def twelve_always(layers, d_model, d_attention, d_ff):
    """This is 12 layers d_model^2, whatever the other sizes. It holds where attention is as wide as
    the model and the network four times as wide: what if they are not?"""
    return 12 * layers * d_model**2


@exercise.mistake
def no_output_matrix(layers, d_model, d_attention, d_ff):
    """Three matrices of attention were counted. Queries, keys and values are three: which one comes
    after the heads?"""
    return layers * d_model * (3 * d_attention + 2 * d_ff)


@exercise.mistake
def one_matrix_in_networks(layers, d_model, d_attention, d_ff):
    """One matrix of the feed-forward network was counted. It widens each token: which one brings it
    back?"""
    return layers * d_model * (4 * d_attention + d_ff)


@exercise.mistake
def half(layers, d_model, d_attention, d_ff):
    """The result is half of what it should be: the factor 2 in front of the formula is missing. How
    often does each of the two shapes, d_model x d_attention and d_model x d_ff, occur?"""
    return layers * d_model * (2 * d_attention + d_ff)


@exercise.mistake
def exchanged(layers, d_model, d_attention, d_ff):
    """`d_attention` and `d_ff` have changed places. Which of them occurs in four matrices?"""
    return 2 * layers * d_model * (d_attention + 2 * d_ff)


@exercise.mistake
def attention_like_the_model(layers, d_model, d_attention, d_ff):
    """Attention was counted as wide as the model. What comes out of W_Q has d_attention columns,
    which need not be d_model."""
    return 2 * layers * d_model * (2 * d_model + d_ff)


@exercise.mistake
def four_times_as_wide(layers, d_model, d_attention, d_ff):
    """The feed-forward network was counted as four times as wide as the model. `d_ff` says how wide
    it is."""
    return 2 * layers * d_model * (2 * d_attention + 4 * d_model)


@exercise.mistake
def one_layer(layers, d_model, d_attention, d_ff):
    """One layer was counted. Do the blocks of a stack share their matrices?"""
    return 2 * d_model * (2 * d_attention + d_ff)


@exercise.mistake
def biases_too(layers, d_model, d_attention, d_ff):
    """The biases were counted too. The formula is an estimate, of the matrices alone."""
    biases = 3 * d_attention + d_model + d_ff + d_model
    return estimate_parameters(layers, d_model, d_attention, d_ff) + layers * biases


@exercise.mistake
def norms_too(layers, d_model, d_attention, d_ff):
    """The gains and biases of two norms a layer were counted too. The formula is an estimate, of
    the matrices alone."""
    return estimate_parameters(layers, d_model, d_attention, d_ff) + layers * 4 * d_model


@exercise.alternative
def the_papers_formula(layers, d_model, d_attention, d_ff):
    return 2 * d_model * layers * (2 * d_attention + d_ff)


@exercise.alternative
def matrix_by_matrix(layers, d_model, d_attention, d_ff):
    shapes = [(d_model, d_attention)] * 3 + [(d_attention, d_model)]
    shapes += [(d_model, d_ff), (d_ff, d_model)]
    return layers * sum(rows * columns for rows, columns in shapes)
