"""Three matrices set by hand, so that each token finds the one that it wants."""

import torch
from torch import Tensor

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.exercises.preferred_tokens import in_one_dtype, preferred
from course_lib.self_attention import pointer_weights, scaled_dot_product_attention

FLOATS = (torch.float32, torch.float64)


def sentence(names: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return a token for each name: their own names, those they want, the numbers."""
    generator = torch.Generator().manual_seed(names)
    own = torch.rand(names, generator=generator).argsort()
    wanted = torch.randint(0, names, (names,), generator=generator)
    # two want the same, so that wanting and being wanted are never the same
    wanted[1:2] = wanted[:1]
    return own, wanted, torch.randn(names, 1, generator=generator)


def roles(matrices, own, wanted, numbers):
    """Return the queries, keys and values that these matrices make of a sentence."""
    names = len(own)
    # a one-hot vector times a matrix is a row of the matrix
    return [w[own] + w[names + wanted] + numbers.to(w) * w[-1] for w in matrices]


def right(own, wanted, numbers):
    """Return the number that each token should fetch."""
    # the place of a name is where it stands in the order of names
    return numbers[own.argsort()[wanted]].double()


FOUND = "the number of the one that it wants"


def behaviour(matrices):
    """Say what each of how many tokens fetches, for many matrices solve the task.

    How large the scores are makes no other mistake of one.
    """
    if not isinstance(matrices, tuple | list) or len(matrices) != 3:
        return [0, "no three matrices"]
    if not all(isinstance(w, Tensor) and w.dtype in FLOATS and not w.is_meta for w in matrices):
        return [0, "no matrices of numbers"]
    w_q, w_k, w_v = matrices
    if w_q.dim() == w_k.dim() == 2 and w_v.dim() == 1:
        return [0, "w_v is a vector, and no matrix"]
    if w_v.dim() == 2 and len(w_v) == 1 < w_v.shape[1] == w_q.shape[-1]:
        return [0, "matrices that meet x from the left"]
    if not w_q.dim() == w_k.dim() == w_v.dim() == 2 or w_q.shape != w_k.shape or not w_q.numel():
        return [0, "shapes of which no layer can be made"]
    if len(w_v) == len(w_q) and w_v.shape[1] != 1:
        return [len(w_q) // 2, "values of another size than 1"]
    if len(w_q) < 3 or len(w_q) % 2 == 0 or w_v.shape != (len(w_q), 1):
        return [0, "shapes that do not fit the tokens"]
    own, wanted, numbers = sentence(len(w_q) // 2)
    q, k, v = roles(in_one_dtype(matrices), own, wanted, numbers)
    fetched, expected = scaled_dot_product_attention(q, k, v).double(), right(own, wanted, numbers)
    if fetched.isnan().any():
        return [len(own), "NaN: numbers too large for their dtype"]
    if torch.allclose(fetched, expected, atol=2e-3):
        return [len(own), FOUND]
    q, k, v = (x.double() for x in (q, k, v))
    ratio = v / numbers.double()
    part = "another part"
    if v.any() and torch.allclose(ratio, ratio[0], rtol=1e-3):
        part = (
            "the number"
            if torch.allclose(ratio[0], torch.ones(1).double(), rtol=1e-3)
            else "a multiple"
        )
    found = scaled_dot_product_attention(q, k, numbers.double())
    mixed = "" if torch.allclose(found, expected, atol=2e-3) else ", mixed with others"
    return [len(own), f"{part} of {_preferred(q @ k.mT, own, wanted, mixed)}"]


def _preferred(scores, own, wanted, mixed):
    """Name the tokens that the scores prefer."""
    wants = wanted.unsqueeze(-1) == own
    named = {
        f"the one that it wants{mixed}": wants,
        "itself": own.unsqueeze(-1) == own,
        "those that want it": wants.mT,
        "those that want the same": wanted.unsqueeze(-1) == wanted,
        "all but the one that it wants": ~wants,
    }
    return preferred(scores, named)


exercise = Exercise(
    reference=pointer_weights,
    lesson="03",
    title="Attention without training",
    minutes=15,
    difficulty=3,
    hints=(
        "A token has three parts: its own name, the name it wants, its number. Which part should "
        "its query show, which its key, which its value?",
        "A matrix that picks columns n to 2n - 1 of x is zero but for an identity. In which of "
        "its rows is that identity?",
        "The right score is 1 and the others are 0, and softmax(1, 0, 0) is far from (1, 0, 0). "
        "What can you do to all scores at once? Remember the division by sqrt(d_k).",
    ),
    clauses={
        "the number of the token whose name it wants": "finds_itself",
        "to within 0.002": "too_soft",
        "up to 300": "one_scale_of_10",
        "d_k is free": GIVEN,
        "d_v is 1": "value_as_a_vector",
    },
    tolerance=1e-3,
    canonical=behaviour,
    equivalent=(
        # how much larger the right score is, is free, from about 10 on
        "30 -> 29",
        "30 -> 31",
        "names ** 0.5 -> names",
        "names ** 0.5 -> names * 0.5",
        "0.5 -> 1.5",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "two names", (2,)
    yield "a few names", (draw.number(5, 9),)
    yield "many names", (draw.number(60, 100),)
    yield "hundreds of names", (draw.number(200, 300),)


@exercise.edges
def edges(draw: Draw):
    yield "three hundred names", (300,)
    yield "one name", (1,)


@exercise.requires("every token of new sentences fetches the number of the one that it wants", 3)
def fetches(answer, draw: Draw):
    names = draw.number(3, 200)
    return behaviour(answer(names)) == [names, FOUND]


def selected(names, query, key, value, scale=30.0):
    """Return matrices that pick three parts of a token: 0 its name, 1 the one it wants."""
    w_q, w_k = torch.zeros(2, 2 * names + 1, names)
    w_v = torch.zeros(2 * names + 1, 1)
    w_q[query * names : (query + 1) * names] = torch.eye(names) * scale * names**0.5
    w_k[key * names : (key + 1) * names] = torch.eye(names)
    w_v[value] = 1
    return w_q, w_k, w_v


@exercise.mistake
def roles_exchanged(names):
    """Query and key have changed places: each token finds those that want *it*. Which name does a
    token look for, and which name can it be found by?"""
    return selected(names, 0, 1, -1)


@exercise.mistake
def finds_itself(names):
    """Query and key both show the token's own name, so every token finds itself."""
    return selected(names, 0, 0, -1)


@exercise.mistake
def too_soft(names):
    """The right tokens are found, but the weight is spread: the scores are too small, so the right
    one gets only a few times as much as each other. How do you make the softmax sharper?"""
    return selected(names, 1, 0, -1, scale=1.0)


def one_scale_for_all(scale):
    def answer(names):
        """This works for a few names and not for more: the scores are divided by sqrt(d_k), and
        there are more other tokens to share the weight. What should the factor grow with?"""
        return selected(names, 1, 0, -1, scale=scale / names**0.5)

    answer.__name__ = f"one_scale_of_{scale}"
    return answer


# enough for two names, for a few, for many
for scale in (10, 16, 50, 130):
    exercise.mistake(one_scale_for_all(scale))


def growing_with_names(factor):
    def answer(names):
        """This works for many names and not for a few: with few, the scores are still too small. By
        how much must the right score be above the others, however few they are?"""
        return selected(names, 1, 0, -1, scale=factor * names**0.5)

    answer.__name__ = f"growing_with_names_{factor}"
    return answer


# enough for hundreds of names, for many
for factor in (1, 2):
    exercise.mistake(growing_with_names(factor))


@exercise.mistake
def value_as_a_vector(names):
    """w_v is a vector, and a matrix of one column is asked for: x W_V then has a number for each
    token on an axis of its own. Which shape has w_v?"""
    w_q, w_k, w_v = selected(names, 1, 0, -1)
    return w_q, w_k, w_v[:, 0]


@exercise.mistake
def two_columns_of_values(names):
    """w_v has another number of columns than 1. One number is asked for at each token: how many
    columns does that make?"""
    w_q, w_k, w_v = selected(names, 1, 0, -1)
    return w_q, w_k, w_v.repeat(1, 2)


@exercise.mistake
def turned_over(names):
    """The matrices are transposed. The layer computes x W, with tokens as the rows of x: how many
    rows has each matrix?"""
    return tuple(w.mT for w in selected(names, 1, 0, -1))


@exercise.mistake
def wrong_value(names):
    """The weights may be right, but the value is not the number alone: another part of the token is
    in it, or in its place. Which row of W_V lets the last column of x through?"""
    return selected(names, 1, 0, 0)


@exercise.mistake
def value_scaled(names):
    """The right number is fetched, and comes back multiplied: w_v holds another number than 1.
    What must the last column be multiplied by?"""
    w_q, w_k, w_v = selected(names, 1, 0, -1)
    return w_q, w_k, 2 * w_v


@exercise.mistake
def negative(names):
    """The scores have the wrong sign: every token looks at all the others, and not at the one that
    it wants."""
    return selected(names, 1, 0, -1, scale=-30.0)


@exercise.mistake
def find_the_likeminded(names):
    """Query and key both show the name that is wanted, so tokens find those that want the same."""
    return selected(names, 1, 1, -1)


@exercise.alternative
def sharp_keys(names):
    w_q, w_k, w_v = (torch.zeros(2 * names + 1, d) for d in (names + 2, names + 2, 1))
    for i in range(names):
        w_q[names + i, i] = 10.0
        w_k[i, i] = 40.0
    w_v[2 * names, 0] = 1.0
    return w_q, w_k, w_v


@exercise.alternative
def stacked(names):
    nothing, same = torch.zeros(names, names), torch.eye(names)
    last = torch.zeros(1, names)
    w_q = torch.cat([nothing, 1000 * same, last])
    return (
        w_q,
        torch.cat([same, nothing, last]),
        torch.cat([torch.zeros(2 * names, 1), last[:, :0].new_ones(1, 1)]),
    )
