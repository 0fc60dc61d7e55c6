"""Three matrices set by hand, so that each token finds the one that it wants."""

import torch
from torch import Tensor

from course_lib.checking.exercise import Draw, Exercise
from course_lib.self_attention import pointer_weights, scaled_dot_product_attention


def sentence(names: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return a token for each name: their own names, those they want, the numbers."""
    generator = torch.Generator().manual_seed(names)
    own = torch.rand(names, generator=generator).argsort()
    wanted = torch.randint(0, names, (names,), generator=generator)
    return own, wanted, torch.randn(names, 1, generator=generator)


def fetched(matrices):
    """Return what attention with these matrices fetches: many matrices solve the task."""
    fits = isinstance(matrices, tuple | list) and len(matrices) == 3
    if not fits or not all(isinstance(w, Tensor) and w.dim() == 2 for w in matrices):
        return matrices
    w_q, w_k, w_v = (w.float() for w in matrices)
    if w_q.shape != w_k.shape or w_q.shape[0] != w_v.shape[0] or w_q.shape[0] % 2 == 0:
        return matrices
    names = w_q.shape[0] // 2
    own, wanted, numbers = sentence(names)
    # a one-hot vector times a matrix is a row of the matrix
    q, k, v = (w[own] + w[names + wanted] + numbers * w[-1] for w in (w_q, w_k, w_v))
    return scaled_dot_product_attention(q, k, v)


exercise = Exercise(
    reference=pointer_weights,
    lesson="03",
    title="Attention without training",
    minutes=20,
    difficulty=3,
    hints=(
        "A token has three parts: its own name, the name it wants, its number. Which part should "
        "its query show, which its key, which its value?",
        "A matrix that picks columns n to 2n - 1 of x is zero but for an identity. In which of "
        "its rows is that identity?",
        "The right score is 1 and the others are 0, and softmax(1, 0, 0) is far from (1, 0, 0). "
        "What can you do to all scores at once? Remember the division by sqrt(d_k).",
    ),
    tolerance=1e-3,
    canonical=fetched,
    equivalent=(
        # how much larger the right score is, is free, from about 10 on
        "30 -> 29",
        "30 -> 31",
        "names ** 0.5 -> names",
        "names ** 0.5 -> names * 0.5",
        "0.5 -> 1.5",
        # tried on sentences of float32
        "float32 always",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "two names", (2,)
    for most in (12, 100, 300):
        yield f"up to {most} names", (draw.number(3, most),)


@exercise.property("every token of new sentences fetches the number of the one that it wants", 3)
def fetches(answer, draw: Draw):
    names = draw.number(3, 200)
    own, wanted, numbers = sentence(names)
    # the place of a name is where it stands in the order of names
    right = numbers[own.argsort()[wanted]]
    return torch.allclose(fetched(answer(names)), right, atol=2e-3)


def selected(names, query, key, value, scale=30.0):
    """Return matrices that pick three parts of a token: 0 its name, 1 the one it wants."""
    w_q, w_k = torch.zeros(2, 2 * names + 1, names)
    w_v = torch.zeros(2 * names + 1, 1)
    w_q[query * names : (query + 1) * names] = torch.eye(names) * scale * names**0.5
    w_k[key * names : (key + 1) * names] = torch.eye(names)
    w_v[value] = 1
    return w_q, w_k, w_v


@exercise.mistake(
    "Query and key have changed places: each token finds those that want *it*. Which name does a "
    "token look for, and which name can it be found by?"
)
def roles_exchanged(names):
    return selected(names, 0, 1, -1)


@exercise.mistake("Query and key both show the token's own name, so every token finds itself.")
def finds_itself(names):
    return selected(names, 0, 0, -1)


@exercise.mistake(
    "The right tokens are found, but the weight is spread: with the scores 1 and 0 the right one "
    "gets only e times as much as each other. How do you make the softmax sharper?"
)
def too_soft(names):
    return selected(names, 1, 0, -1, scale=1.0)


@exercise.mistake(
    "This works for a few names and not for many: the scores are divided by sqrt(d_k), and there "
    "are more other tokens to share the weight. What should the factor grow with?"
)
def one_scale_for_all(names):
    return selected(names, 1, 0, -1, scale=100 / names**0.5)


@exercise.mistake(
    "The weights may be right, but the value is not the number: it is another part of the token. "
    "Which row of x W_V picks the last column?"
)
def wrong_value(names):
    return selected(names, 1, 0, 0)


@exercise.mistake(
    "The scores have the wrong sign: every token looks at all the others, and not at the one that "
    "it wants."
)
def negative(names):
    return selected(names, 1, 0, -1, scale=-30.0)


@exercise.mistake(
    "Query and key both show the name that is wanted, so tokens find those that want the same."
)
def find_the_likeminded(names):
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
