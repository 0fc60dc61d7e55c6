"""How many numbers a Transformer learns."""

from itertools import pairwise

from torch import nn

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.transformer import parameter_count

exercise = Exercise(
    reference=parameter_count,
    lesson="08_parameters",
    title="Sixty million numbers",
    minutes=10,
    difficulty=2,
    hints=(
        "List the layers of one encoder block and of one decoder block. Which of them do the two "
        "have in common, and which one has the decoder alone?",
        "Each layer has a norm around it. How many norms is that in each kind of block, and how "
        "many numbers does one norm learn?",
        "What meets words of d_model numbers and returns d_ff has how many numbers in its matrix, "
        "and how many in its bias? And the way back?",
        "Source, target and output layer use one matrix. How often should it be counted, and has "
        "it a bias?",
    ),
    clauses={
        "One embedding": "two_embeddings",
        "of which a decoder block has two": "one_attention_in_the_decoder",
        "four matrices d_model x d_model and their biases": "no_biases_in_attention",
        "two matrices and biases for each": "one_matrix_in_networks",
        "a gain and a bias for each norm": "norms_without_bias",
        "The number of heads is not asked": "times_heads",
        "is another function": GIVEN,
    },
    forbidden=("course_lib.transformer.Transformer",),
)


@exercise.cases
def cases(draw: Draw):
    d_model, d_ff, vocab = (low + draw.number(0, 8) for low in (3, 11, 19))
    yield "one layer", (1, 2, 3, 5)
    yield "two layers", (2, d_model, d_ff, vocab)
    yield "narrow networks", (draw.number(3, 9), d_ff, d_model, vocab)
    yield "several layers", (draw.number(3, 9), d_model, d_ff, vocab)
    million = [draw.number(3 * 10**7, 10**8) for _ in range(3)]
    yield "sizes that no model has", (draw.number(3, 9), *million)
    yield "the paper's base", (6, 512, 2048, 37000)
    yield "the paper's big", (6, 1024, 4096, 37000)


@exercise.requires("one token more in the vocabulary costs one row, of d_model numbers")
def a_row_for_each_token(answer, draw: Draw):
    layers, d_model, d_ff, vocab = (draw.number(1, 50) for _ in range(4))
    more, fewer = (answer(layers, d_model, d_ff, tokens) for tokens in (vocab + 1, vocab))
    return more - fewer == d_model


@exercise.requires("each layer costs as much as the one before it, whatever the vocabulary")
def layers_alike(answer, draw: Draw):
    d_model, d_ff = draw.number(2, 50), draw.number(2, 50)
    for vocab in (5, draw.number(6, 50)):
        counts = [answer(layers, d_model, d_ff, vocab) for layers in range(4)]
        if len({b - a for a, b in pairwise(counts)}) != 1:
            return False
    return counts[1] > counts[0]


@exercise.requires("widening both networks by one costs a row, a column and a bias in each layer")
def wider_networks(answer, draw: Draw):
    layers, d_model, d_ff, vocab = (draw.number(1, 50) for _ in range(4))
    wider, plain = (answer(layers, d_model, columns, vocab) for columns in (d_ff + 1, d_ff))
    return wider - plain == layers * 2 * (d_model + d_model + 1)


def attention(d_model):
    return 4 * (d_model * d_model + d_model)


def network(d_model, d_ff):
    return 2 * d_model * d_ff + d_ff + d_model


@exercise.mistake
def no_biases(layers, d_model, d_ff, vocab):
    """There are no biases in attention and networks, only matrices. The layers of this course have
    biases as torch's do: how long is each of them?"""
    without = 3 * 4 * d_model + 2 * (d_ff + d_model)
    return parameter_count(layers, d_model, d_ff, vocab) - layers * without


@exercise.mistake
def matrices_alone(layers, d_model, d_ff, vocab):
    """These are the matrices alone, which is most of it. What else learns: what is added after each
    matrix, and what stands around each layer?"""
    return vocab * d_model + layers * (12 * d_model**2 + 4 * d_model * d_ff)


@exercise.mistake
def four_times_as_wide(layers, d_model, d_ff, vocab):
    """`d_ff` plays no part: the networks were counted as four times as wide as a word. The paper's
    are; what if others are not?"""
    return parameter_count(layers, d_model, 4 * d_model, vocab)


@exercise.mistake
def no_biases_in_attention(layers, d_model, d_ff, vocab):
    """The biases of attention are missing. Each of its four matrices has one: how long?"""
    return parameter_count(layers, d_model, d_ff, vocab) - layers * 3 * 4 * d_model


@exercise.mistake
def no_biases_in_networks(layers, d_model, d_ff, vocab):
    """The biases of the feed-forward networks are missing. Each of the two matrices has one: how
    long are they?"""
    return parameter_count(layers, d_model, d_ff, vocab) - layers * 2 * (d_ff + d_model)


@exercise.mistake
def biases_of_the_model(layers, d_model, d_ff, vocab):
    """Both biases of a network were counted as long as d_model. A bias is as long as what comes out
    of its matrix: what comes out of the first?"""
    return parameter_count(layers, d_model, d_ff, vocab) + layers * 2 * (d_model - d_ff)


@exercise.mistake
def one_matrix_in_networks(layers, d_model, d_ff, vocab):
    """One matrix of the feed-forward network is missing. There is a way to d_ff, and a way back."""
    return parameter_count(layers, d_model, d_ff, vocab) - layers * 2 * d_model * d_ff


@exercise.mistake
def no_output_matrix(layers, d_model, d_ff, vocab):
    """The matrix that mixes the heads is missing, with its bias. Queries, keys and values make
    three: what comes after the heads have been laid side by side?"""
    missing = 3 * (d_model * d_model + d_model)
    return parameter_count(layers, d_model, d_ff, vocab) - layers * missing


@exercise.mistake
def two_embeddings(layers, d_model, d_ff, vocab):
    """Two matrices of the vocabulary were counted: one for the source and one for the target, or
    one embedding and an output layer. Where they are tied, all three are one and the same."""
    return parameter_count(layers, d_model, d_ff, vocab) + vocab * d_model


@exercise.mistake
def three_embeddings(layers, d_model, d_ff, vocab):
    """Source, target and output layer were each given a matrix. Where they are tied, all three are
    one and the same."""
    return parameter_count(layers, d_model, d_ff, vocab) + 2 * vocab * d_model


@exercise.mistake
def no_embedding(layers, d_model, d_ff, vocab):
    """The embedding is missing: these are the blocks alone. Which matrix has a row for each
    token?"""
    return parameter_count(layers, d_model, d_ff, 0)


@exercise.mistake
def output_bias(layers, d_model, d_ff, vocab):
    """The output layer was given a bias, one number for each token. Look into `__init__` of the
    Transformer: has it one?"""
    return parameter_count(layers, d_model, d_ff, vocab) + vocab


@exercise.mistake
def one_attention_in_the_decoder(layers, d_model, d_ff, vocab):
    """There is one attention in each decoder block, with three norms around the layers. The decoder
    looks back, and it looks at the source: do the two share their matrices?"""
    return parameter_count(layers, d_model, d_ff, vocab) - layers * attention(d_model)


@exercise.mistake
def decoder_like_encoder(layers, d_model, d_ff, vocab):
    """The decoder's blocks were counted like the encoder's. Which layer have they got beside those
    two, and what stands around each layer?"""
    missing = attention(d_model) + 2 * d_model
    return parameter_count(layers, d_model, d_ff, vocab) - layers * missing


@exercise.mistake
def two_norms_in_the_decoder(layers, d_model, d_ff, vocab):
    """Two norms were counted in each decoder block. It has three layers: what stands around
    each?"""
    return parameter_count(layers, d_model, d_ff, vocab) - layers * 2 * d_model


@exercise.mistake
def one_norm_in_a_block(layers, d_model, d_ff, vocab):
    """One norm was counted in each block. There is one around each layer: how many layers has a
    block of the encoder, and one of the decoder?"""
    return parameter_count(layers, d_model, d_ff, vocab) - layers * 3 * 2 * d_model


@exercise.mistake
def no_norms(layers, d_model, d_ff, vocab):
    """The norms are missing. What does a norm learn, and how many of them are there in a block?"""
    return parameter_count(layers, d_model, d_ff, vocab) - layers * 5 * 2 * d_model


@exercise.mistake
def norms_without_bias(layers, d_model, d_ff, vocab):
    """Each norm was counted with one vector of d_model numbers. A layer norm stretches, and then it
    shifts: how many vectors are those?"""
    return parameter_count(layers, d_model, d_ff, vocab) - layers * 5 * d_model


@exercise.mistake
def two_numbers_a_norm(layers, d_model, d_ff, vocab):
    """Each norm was counted as two numbers. It stretches and shifts every column by a number of its
    own: how many columns are there?"""
    return parameter_count(layers, d_model, d_ff, vocab) - layers * 5 * (2 * d_model - 2)


@exercise.mistake
def last_norms(layers, d_model, d_ff, vocab):
    """A last norm was counted for each of the two stacks. Pre-norm needs them; which norm is asked
    for here?"""
    return parameter_count(layers, d_model, d_ff, vocab) + 4 * d_model


@exercise.mistake
def times_heads(layers, d_model, d_ff, vocab):
    """Attention was counted eight times, once for each of the paper's heads. The heads share the
    columns of four matrices out: does their number change the sizes?"""
    more = 7 * 3 * attention(d_model)
    return parameter_count(layers, d_model, d_ff, vocab) + layers * more


@exercise.mistake
def encoder_alone(layers, d_model, d_ff, vocab):
    """Only the encoder's blocks were counted. What stands on the right side of the figure?"""
    block = attention(d_model) + network(d_model, d_ff) + 2 * 2 * d_model
    return vocab * d_model + layers * block


@exercise.mistake
def decoder_alone(layers, d_model, d_ff, vocab):
    """Only the decoder's blocks were counted. What stands on the left side of the figure?"""
    block = 2 * attention(d_model) + network(d_model, d_ff) + 3 * 2 * d_model
    return vocab * d_model + layers * block


@exercise.mistake
def one_layer_for_all(layers, d_model, d_ff, vocab):
    """The blocks were counted once, however many layers there are. Do the layers of a stack share
    their weights?"""
    return parameter_count(1, d_model, d_ff, vocab)


@exercise.mistake
def embedding_in_each_layer(layers, d_model, d_ff, vocab):
    """The embedding was counted once in each layer. Where in the figure is it, and how often?"""
    return layers * parameter_count(1, d_model, d_ff, vocab)


@exercise.mistake
def second_bias_like_the_first(layers, d_model, d_ff, vocab):
    """Both biases of the networks were counted with d_ff numbers. The second is added to what comes
    out of the second matrix: how many numbers is that?"""
    return parameter_count(layers, d_model, d_ff, vocab) + 2 * layers * (d_ff - d_model)


@exercise.alternative
def shape_by_shape(layers, d_model, d_ff, vocab):
    def linear(d_in, d_out):
        return (d_in + 1) * d_out

    attention = [linear(d_model, d_model)] * 4
    network = [linear(d_model, d_ff), linear(d_ff, d_model)]
    norm = [2 * d_model]
    encoder = [*attention, *norm, *network, *norm]
    decoder = [*attention, *norm, *encoder]
    return vocab * d_model + sum(layers * (encoder + decoder))


@exercise.alternative
def asking_torch(layers, d_model, d_ff, vocab):
    parts = [nn.Embedding(vocab, d_model, device="meta")]
    for layer in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer):
        parts += [layer(d_model, 1, d_ff, device="meta") for _ in range(layers)]
    return sum(p.numel() for part in parts for p in part.parameters())
