"""Four matrices set by hand, so that two heads fetch two numbers at once."""

import torch
from torch import Tensor

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.exercises.preferred_tokens import in_one_dtype, preferred
from course_lib.multi_head import merge_heads, pair_weights, split_heads
from course_lib.self_attention import scaled_dot_product_attention

FLOATS = (torch.float32, torch.float64)
FOUND = "the two numbers in order"
MOSTLY = "the two numbers in order, but not where a token wants itself, or one name twice"


def sentence(names: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return a token for each name: their own names, the two they want, the numbers."""
    generator = torch.Generator().manual_seed(names)
    own = torch.rand(names, generator=generator).argsort()
    wanted = (own.unsqueeze(-1) + torch.tensor([1, 2])) % names
    # one wants them the other way round, so that wanting and being wanted are never the same
    wanted[own == 0] = torch.tensor([2, 1]) % names
    numbers = torch.randn(names, 1, generator=generator).double()
    # so far apart that a little of the wrong one shows, where there are two
    numbers[0], numbers[-1] = 1, -1
    return own, wanted, numbers


def at_random(names: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return such tokens that want any two names: some their own, some one name twice."""
    own, wanted, numbers = sentence(names)
    wanted = torch.randint(names, wanted.shape, generator=torch.Generator().manual_seed(names))
    wanted[own == 0] = torch.tensor([0, names - 1])
    wanted[own == names - 1] = torch.tensor([0, 0])
    return own, wanted, numbers


def roles(matrices, own, wanted, numbers):
    """Return the queries, keys and values that these matrices give to each head."""
    n = len(own)

    def projected(w):
        # a one-hot vector times a matrix is a row of the matrix
        first, second = wanted.unbind(-1)
        return w[own] + w[n + first] + w[2 * n + second] + numbers.to(w) * w[-1]

    return [split_heads(projected(w), 2) for w in matrices]


def behaviour(matrices):
    """Say what each of how many tokens fetches, for many matrices solve the task."""
    if not isinstance(matrices, tuple | list) or len(matrices) != 4:
        return [0, "no four matrices"]
    if not all(isinstance(w, Tensor) and w.dtype in FLOATS and not w.is_meta for w in matrices):
        return [0, "no matrices of numbers"]
    if not all(w.dim() == 2 for w in matrices):
        return [0, "what is no matrix"]
    w_q, w_k, w_v, w_o = matrices
    if w_q.shape != w_k.shape or not w_q.numel() or w_q.shape[1] % 2:
        return [0, "shapes of which no layer can be made"]
    names = (len(w_q) - 1) // 3
    if len(w_v) == len(w_q) and w_v.shape[1] != 2:
        return [names, "values of another size than 1 in each head"]
    if len(w_q) != 3 * names + 1 or w_v.shape != (len(w_q), 2) or w_o.shape != (2, 2):
        return [0, "shapes that do not fit the tokens"]
    own, wanted, numbers = sentence(names)
    *matrices, w_o = in_one_dtype(matrices)
    q, k, v = roles(matrices, own, wanted, numbers)
    found = _found(q, k, v, w_o)
    if found.isnan().any():
        return [names, "NaN: numbers too large for their dtype"]
    one, two = _numbers_of(own, wanted, numbers)
    itself = numbers.squeeze(-1)
    named = {
        FOUND: (one, two),
        "the two numbers in the wrong order": (two, one),
        "the first number twice": (one, one),
        "the second number twice": (two, two),
        "the mean of both, twice": ((one + two) / 2,) * 2,
        "the sum of both, twice": (one + two,) * 2,
        "its own number twice": (itself, itself),
    }
    same = (name for name, pair in named.items() if _near(found, torch.stack(pair, -1)))
    known = next(same, None)
    if known == FOUND:
        own, wanted, numbers = at_random(names)
        found = _found(*roles(matrices, own, wanted, numbers), w_o)
        right = _near(found, torch.stack(_numbers_of(own, wanted, numbers), -1))
        return [names, FOUND if right else MOSTLY]
    if known:
        return [names, known]
    q, k, v = (x.double() for x in (q, k, v))
    asked = scaled_dot_product_attention(q, k, numbers.expand_as(v))
    told = [
        f"{_part(v[head], numbers)} of {_preferred(q[head] @ k[head].mT, own, wanted)}{mixed}"
        for head in (0, 1)
        for mixed in ["" if any(_near(asked[head, :, 0], x) for x in (one, two)) else ", mixed"]
    ]
    mixing = "" if torch.equal(w_o, torch.eye(2).to(w_o)) else f", mixed by w_o {w_o.tolist()}"
    return [names, f"{' and '.join(told)}{mixing}"]


def _found(q, k, v, w_o):
    """Return the two numbers that each token fetches."""
    return (merge_heads(scaled_dot_product_attention(q, k, v)) @ w_o).double()


def _numbers_of(own, wanted, numbers):
    """Return the numbers of the first and of the second that each token wants."""
    return numbers[own.argsort()[wanted]].squeeze(-1).unbind(-1)


def _near(one, other):
    return torch.allclose(one, other, atol=2e-3)


def _part(values, numbers):
    """Name what of a token a head's values are."""
    factor = (values / numbers).mean()
    if not _near(values, factor * numbers):
        return "another part"
    return "the number" if _near(factor, factor.new_ones(())) else f"{factor:.3g} times the number"


def _preferred(scores, own, wanted):
    """Name the tokens that the scores prefer."""
    (one, first), (two, second) = ((who, who.unsqueeze(-1) == own) for who in wanted.unbind(-1))
    named = {
        "the first": first,
        "the second": second,
        "those that want the same first": one.unsqueeze(-1) == one,
        "those that want the same second": two.unsqueeze(-1) == two,
        "itself": own.unsqueeze(-1) == own,
        "those that want it first": first.mT,
        "those that want it second": second.mT,
    }
    return preferred(scores, named)


exercise = Exercise(
    reference=pair_weights,
    lesson="06",
    title="Two heads without training",
    minutes=10,
    difficulty=2,
    hints=(
        "In lesson 03 one head fetched one number. Head 1 has the first half of the columns of "
        "w_q, head 2 the second half. Which rows of w_q hold head 1's identity? And head 2's?",
        "By what can a token be found? Is that any different in the second head?",
        "After attention each head has one number for a token, in one column. Which w_o leaves "
        "both where they are?",
    ),
    clauses={
        "The layer cuts x w_q": GIVEN,
        "the numbers of the tokens with the first and the second name": "finds_itself",
        "in this order": "heads_exchanged",
        "to within 0.002": "too_soft",
        "up to 300": "hundreds of names",
        "d_k is free": GIVEN,
        "d_v is 1": "two_columns_in_each_head",
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
    yield "three names", (3,)
    yield "a few names", (draw.number(5, 9),)
    yield "many names", (draw.number(60, 100),)
    yield "hundreds of names", (draw.number(200, 301),)


@exercise.edges
def edges(draw: Draw):
    yield "two names", (2,)
    yield "one name", (1,)


@exercise.requires("every token of new sentences fetches both numbers that it wants, in order", 3)
def fetches(answer, draw: Draw):
    names = draw.number(3, 200)
    return behaviour(answer(names)) == [names, FOUND]


def selected(names, queries, keys, values=(-1, -1), scale=30.0):
    """Return matrices whose heads pick parts of a token: 0 its name, 1 and 2 those it wants."""
    w_q, w_k = torch.zeros(2, 3 * names + 1, 2 * names)
    w_v = torch.zeros(3 * names + 1, 2)
    for head in (0, 1):
        columns = slice(head * names, (head + 1) * names)
        query, key = queries[head] * names, keys[head] * names
        w_q[query : query + names, columns] = torch.eye(names) * scale * names**0.5
        w_k[key : key + names, columns] = torch.eye(names)
        w_v[values[head], head] = 1
    return w_q, w_k, w_v, torch.eye(2)


@exercise.mistake
def heads_exchanged(names):
    """Both numbers are fetched, and come back in the wrong order. Which head looks for the first
    name, and to which column of the output does w_o send what it finds?"""
    return selected(names, (2, 1), (0, 0))


@exercise.mistake
def alike(names):
    """Both heads look for the first name. What should the queries of head 2 show?"""
    return selected(names, (1, 1), (0, 0))


@exercise.mistake
def alike_second(names):
    """Both heads look for the second name. What should the queries of head 1 show?"""
    return selected(names, (2, 2), (0, 0))


@exercise.mistake
def finds_itself(names):
    """Every token finds itself, in both heads: queries and keys show its own name."""
    return selected(names, (0, 0), (0, 0))


@exercise.mistake
def mixed_in_the_output(names):
    """Both outputs are the sum of the two numbers: the heads found the right tokens, and w_o added
    them up. Which w_o keeps them apart?"""
    return *selected(names, (1, 2), (0, 0))[:3], torch.ones(2, 2)


@exercise.mistake
def interleaved(names):
    """The heads' columns take turns in w_q and w_k. The layer gives head 1 the first half of the
    columns, and head 2 the second half."""
    w_q, w_k, w_v, w_o = selected(names, (1, 2), (0, 0))
    order = torch.arange(2 * names).view(2, names).T.flatten()
    return w_q[:, order], w_k[:, order], w_v, w_o


@exercise.mistake
def too_soft(names):
    """The right tokens are found, but the weight is spread over others: the scores are too small.
    How much larger must they be for the softmax to be sharp?"""
    return selected(names, (1, 2), (0, 0), scale=1.0)


@exercise.mistake
def roles_exchanged(names):
    """Queries and keys have changed places: each token finds those that want *it*."""
    return selected(names, (0, 0), (1, 2))


@exercise.mistake
def two_columns_in_each_head(names):
    """w_v has another number of columns than 2. Each head fetches one number of a token: how many
    columns do two heads have?"""
    w_q, w_k, w_v, _ = selected(names, (1, 2), (0, 0))
    return w_q, w_k, w_v.repeat_interleave(2, 1), torch.eye(2).repeat_interleave(2, 0) / 2


@exercise.mistake
def turned_over(names):
    """The matrices are transposed. The layer computes x W, with tokens as the rows of x: how many
    rows has each matrix?"""
    return tuple(w.mT for w in selected(names, (1, 2), (0, 0)))


@exercise.mistake
def three_matrices(names):
    """Three matrices came back, and such a layer has four. Which one mixes the heads?"""
    return selected(names, (1, 2), (0, 0))[:3]


@exercise.alternative
def head_by_head(names):
    return selected(names, (1, 2), (0, 0), scale=50.0)


@exercise.alternative
def second_head_first(names):
    w_q, w_k, w_v, _ = selected(names, (2, 1), (0, 0))
    return w_q, w_k, w_v, torch.eye(2).flip(0)
