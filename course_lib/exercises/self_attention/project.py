"""One token, three roles: what it looks for, what it is found by, what it hands over."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.self_attention import project

exercise = Exercise(
    reference=project,
    lesson="03",
    title="One token, three roles",
    minutes=3,
    difficulty=1,
    hints=(
        "A word has d_model numbers, and so has each column of a matrix. Which of the two stands "
        "to the left in the product?",
        "Three matrices meet the same x. Which product may have another number of columns than the "
        "other two, and in which order does the statement name them?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield (
        "one word",
        (draw.normal(1, 3), draw.normal(3, 2), draw.normal(3, 2), draw.normal(3, 4)),
    )
    yield (
        "square matrices",
        (draw.normal(4, 3), draw.normal(3, 3), draw.normal(3, 3), draw.normal(3, 3)),
    )
    yield (
        "a batch of sentences",
        (draw.normal(2, 5, 4), draw.normal(4, 3), draw.normal(4, 3), draw.normal(4, 6)),
    )
    yield (
        "two batch dimensions",
        (draw.normal(3, 2, 4, 5), draw.normal(5, 6), draw.normal(5, 6), draw.normal(5, 2)),
    )
    yield (
        "as many words as each has numbers",
        (draw.normal(4, 4), draw.normal(4, 3), draw.normal(4, 3), draw.normal(4, 5)),
    )


@exercise.edges
def edges(draw: Draw):
    # whole numbers: their sums are exact, in whatever order
    yield (
        "one word of large numbers",
        (
            10000.0 * draw.integers(1, 10, 1, 3),
            *(draw.integers(-9, 10, 3, d).float() for d in (4, 4, 5)),
        ),
    )


@exercise.requires("with the identity as matrix, a role is the words themselves")
def identity(answer, draw: Draw):
    x = draw.normal(4, 3)
    roles = answer(x, torch.eye(3), torch.eye(3), torch.eye(3))
    return len(roles) == 3 and all(torch.allclose(role, x, atol=1e-6) for role in roles)


@exercise.requires("each matrix changes its own role and no other")
def own_matrix(answer, draw: Draw):
    x, *matrices = draw.normal(4, 5), draw.normal(5, 3), draw.normal(5, 3), draw.normal(5, 2)
    plain = answer(x, *matrices)
    for i in range(3):
        doubled = answer(x, *(2 * w if j == i else w for j, w in enumerate(matrices)))
        changed = [not torch.equal(a, b) for a, b in zip(plain, doubled, strict=True)]
        if changed != [j == i for j in range(3)]:
            return False
    return True


@exercise.mistake
def keys_first(x, w_q, w_k, w_v):
    """The keys came back before the queries. Whoever calls this writes `q, k, v = project(...)` and
    trusts the order."""
    return x @ w_k, x @ w_q, x @ w_v


@exercise.mistake
def values_first(x, w_q, w_k, w_v):
    """The values came back first. Whoever calls this writes `q, k, v = project(...)` and trusts the
    order."""
    return x @ w_v, x @ w_k, x @ w_q


@exercise.mistake
def values_before_keys(x, w_q, w_k, w_v):
    """Keys and values have changed places at the end. Whoever calls this writes `q, k, v =
    project(...)` and trusts the order."""
    return x @ w_q, x @ w_v, x @ w_k


@exercise.mistake(raises=RuntimeError)
def matrices_transposed(x, w_q, w_k, w_v):
    """The matrices were turned over, as torch's own layers keep them. Here a matrix has d_model
    rows: does it fit x as it is?"""
    return x @ w_q.mT, x @ w_k.mT, x @ w_v.mT


@exercise.mistake(raises=RuntimeError)
def matrices_to_the_left(x, w_q, w_k, w_v):
    """Each product was taken the other way round, matrix times words. Rows are tokens here: on
    which side must the words stand, for each row to be projected?"""
    return w_q @ x, w_k @ x, w_v @ x


@exercise.mistake
def joined(x, w_q, w_k, w_v):
    """The three were joined into one tensor along the last axis. They are to come apart: whoever
    calls this gives each of them a name."""
    return torch.cat([x @ w_q, x @ w_k, x @ w_v], dim=-1)


@exercise.mistake(raises=RuntimeError)
def stacked(x, w_q, w_k, w_v):
    """The three were stacked into one tensor, which only works while d_v happens to equal d_k."""
    return torch.stack([x @ w_q, x @ w_k, x @ w_v])


@exercise.mistake
def one_matrix_twice(x, w_q, w_k, w_v):
    """Queries and keys are the same: which matrix did the keys meet?"""
    return x @ w_q, x @ w_q, x @ w_v


@exercise.mistake
def values_from_keys_matrix(x, w_q, w_k, w_v):
    """The values were made with the matrix of the keys. d_v may differ from d_k, and it is w_v that
    knows it."""
    return x @ w_q, x @ w_k, x @ w_k


@exercise.mistake(raises=RuntimeError)
def one_after_another(x, w_q, w_k, w_v):
    """Each role was made from the one before. All three come from the word itself: what does w_k
    have as many rows as?"""
    q = x @ w_q
    k = q @ w_k
    return q, k, k @ w_v


@exercise.mistake(raises=RuntimeError)
def values_from_keys(x, w_q, w_k, w_v):
    """The values were made of the keys, x w_k w_v. What do all three matrices meet?"""
    keys = x @ w_k
    return x @ w_q, keys, keys @ w_v


@exercise.mistake
def of_length_one(x, w_q, w_k, w_v):
    """Queries and keys were brought to length one, as for a cosine. Here they are what the matrices
    make of the tokens, and long ones ask more loudly."""
    q, k = (torch.nn.functional.normalize(x @ w, dim=-1) for w in (w_q, w_k))
    return q, k, x @ w_v


@exercise.alternative
def one_product_cut_apart(x, w_q, w_k, w_v):
    sizes = [w.shape[1] for w in (w_q, w_k, w_v)]
    return torch.split(torch.matmul(x, torch.cat([w_q, w_k, w_v], dim=1)), sizes, dim=-1)


@exercise.alternative
def in_one_pattern(x, w_q, w_k, w_v):
    return tuple(torch.einsum("...nd,de->...ne", x, w) for w in (w_q, w_k, w_v))
