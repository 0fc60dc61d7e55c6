"""How many operations a training takes."""

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.scaling import training_flops

exercise = Exercise(
    reference=training_flops,
    lesson="12",
    title="Six N D",
    minutes=5,
    difficulty=1,
    hints=(
        "In a forward pass each weight multiplies one number of a token, and the product is added "
        "to a sum. How many operations are that for N weights?",
        "One token's query meets `context` keys in each layer, and the weights average `context` "
        "values. How many multiply-adds are the two together, if all heads are d_attention wide?",
        "The backward pass computes two gradients for each product of the forward pass: of the "
        "weight, and of what it multiplied. How much work is all that, in forward passes?",
    ),
    clauses={
        "D tokens in all": "attention_for_one_token",
        "a multiply-add is two operations": "multiply_adds",
        "the backward pass takes twice as many": "backward_once",
        "it is 6 N D": "weights alone",
        "A number of operations": GIVEN,
    },
)


@exercise.cases
def cases(draw: Draw):
    parameters, tokens = draw.number(10**6, 10**7), draw.number(10**6, 10**7)
    layers, context, d_attention = draw.number(2, 9), 11 + draw.number(0, 9), 23 + draw.number(0, 9)
    yield "two weights, three tokens", (2, 3)
    yield "weights alone", (parameters, tokens)
    yield "with attention", (parameters, tokens, layers, context, d_attention)
    yield "attention alone", (0, tokens, layers, context, d_attention)
    yield "GPT-3", (174_600_000_000, 300_000_000_000, 96, 2048, 12288)


@exercise.edges
def edges(draw: Draw):
    parameters, tokens = draw.number(10**6, 10**7), draw.number(10**6, 10**7)
    layers, context, d_attention = draw.number(2, 9), 11 + draw.number(0, 9), 23 + draw.number(0, 9)
    yield "layers and context, but no width of attention", (parameters, tokens, layers, context)
    yield "no layer", (parameters, tokens, 0, context, d_attention)
    yield "fewer tokens than the context has", (parameters, 5, layers, context, d_attention)


@exercise.requires("twice as many tokens take twice as many operations")
def linear_in_tokens(answer, draw: Draw):
    sizes = [draw.number(2, 50) for _ in range(5)]
    parameters, tokens, *attention = sizes
    return answer(parameters, 2 * tokens, *attention) == 2 * answer(*sizes) > 0


@exercise.requires("one weight more takes six operations more a token, whatever attention takes")
def six_a_weight(answer, draw: Draw):
    parameters, tokens, *attention = (draw.number(2, 50) for _ in range(5))
    more, fewer = (answer(n, tokens, *attention) for n in (parameters + 1, parameters))
    return more - fewer == 6 * tokens


@exercise.mistake
def forward_alone(parameters, tokens, layers=0, context=0, d_attention=0):
    """This is the forward pass alone. What does a training do after it, and how much work is that
    compared with the forward pass?"""
    return training_flops(parameters, tokens, layers, context, d_attention) // 3


@exercise.mistake
def backward_once(parameters, tokens, layers=0, context=0, d_attention=0):
    """The backward pass was counted like one forward pass. For each product it computes two
    gradients: of the weight, and of what the weight multiplied."""
    return training_flops(parameters, tokens, layers, context, d_attention) // 3 * 2


@exercise.mistake
def multiply_adds(parameters, tokens, layers=0, context=0, d_attention=0):
    """Multiply-adds were counted. One of them is two operations, a product and a sum: in the
    matrices, and in attention."""
    return 3 * (parameters + layers * context * d_attention) * tokens


@exercise.mistake
def without_attention(parameters, tokens, layers=0, context=0, d_attention=0):
    """This is 6 N D, whatever the context. What do the scores and the averages of attention add,
    where layers, context and d_attention are given?"""
    return 6 * parameters * tokens


@exercise.mistake
def attention_twice(parameters, tokens, layers=0, context=0, d_attention=0):
    """The matrices are right, and attention's share is twice what the paper counts. It has 2 layers
    context d_attention operations in a forward pass: under a causal mask a token sees half of the
    context on average."""
    return 3 * (2 * parameters + 4 * layers * context * d_attention) * tokens


@exercise.mistake
def attention_once(parameters, tokens, layers=0, context=0, d_attention=0):
    """The matrices are right, and attention's share is half of what it should be: the 2 of 2 layers
    context d_attention is missing."""
    return 3 * (2 * parameters + layers * context * d_attention) * tokens


@exercise.mistake
def attention_forward_alone(parameters, tokens, layers=0, context=0, d_attention=0):
    """The matrices are right, and attention was counted in one direction alone: the backward pass
    goes through it too."""
    return (6 * parameters + 2 * layers * context * d_attention) * tokens


@exercise.mistake
def one_layer(parameters, tokens, layers=0, context=0, d_attention=0):
    """The matrices are right, and attention was counted for one layer. Every layer has its
    scores."""
    return training_flops(parameters, tokens, min(layers, 1), context, d_attention)


@exercise.mistake
def attention_for_one_token(parameters, tokens, layers=0, context=0, d_attention=0):
    """Attention was counted once, and not once for each token: tokens must multiply both parts."""
    return 6 * parameters * tokens + 6 * layers * context * d_attention


@exercise.mistake
def one_token(parameters, tokens, layers=0, context=0, d_attention=0):
    """The tokens play no part: this is what one of them takes."""
    return training_flops(parameters, 1, layers, context, d_attention)


@exercise.alternative
def three_passes(parameters, tokens, layers=0, context=0, d_attention=0):
    forward = 2 * parameters * tokens + 2 * layers * context * d_attention * tokens
    backward = 2 * forward
    return forward + backward
