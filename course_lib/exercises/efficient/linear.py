"""Attention without a square: the tokens are summed up once, and every query reads the sum."""

import torch
from torch.nn import functional as F

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.efficient.linear import linear_attention

exercise = Exercise(
    reference=linear_attention,
    lesson="14",
    title="Sum up once, read often",
    minutes=12,
    difficulty=3,
    hints=(
        "Three matrices in a row: (phi(Q) phi(K)^T) V. Where else may you put the brackets, and "
        "which sizes has the product inside them then?",
        "The weights of a row are to sum to one. The sum of phi(q) . phi(k_j) over all j is a dot "
        "product too: of phi(q) with what?",
        "In the causal form, token i reads a sum over the tokens up to i. How does that sum differ "
        "from the one that token i - 1 has read? Which function of torch keeps a running sum?",
    ),
    clauses={
        "With `causal` the sums run": "causal_ignored",
        "No score is divided by a root": "divided_by_a_root",
        "is 0, the row is zeros": "nothing_to_divide_by",
        "Time O": GIVEN,
        "no tensor of n x n numbers": "square_of_weights",
    },
    # a column times a row is their product; where the weights sum to 0, so do the values
    equivalent=("key.mT @ value -> key.mT * value", "1.0 -> 2.0"),
)


def tokens(draw: Draw, *shape: int, d_k: int, d_v: int):
    return draw.normal(*shape, d_k), draw.normal(*shape, d_k), draw.normal(*shape, d_v)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", tokens(draw, 2, d_k=3, d_v=4)
    yield "two tokens, causal", (*tokens(draw, 2, d_k=3, d_v=4), True)
    yield "six tokens", tokens(draw, 6, d_k=2, d_v=5)
    yield "six tokens, causal", (*tokens(draw, 6, d_k=2, d_v=5), True)
    yield "not causal, and said so", (*tokens(draw, 5, d_k=4, d_v=2), False)
    yield "one token", (*tokens(draw, 1, d_k=4, d_v=3), True)
    yield "a batch of texts", tokens(draw, 2, 5, d_k=4, d_v=3)
    yield "a batch of texts, causal", (*tokens(draw, 2, 5, d_k=4, d_v=3), True)
    q, k, v = tokens(draw, 4, d_k=2, d_v=3)
    yield "large numbers in the tokens", (100 * (1 + q.abs()), 100 * (1 + k.abs()), v)
    q, k, v = tokens(draw, 3, d_k=2, d_v=4)
    unread = torch.tensor([[False], [True], [False]])
    yield "a query whose features are zeros", (q.masked_fill(unread, -300.0), k, v)
    yield "a query whose features are zeros, causal", (q.masked_fill(unread, -300.0), k, v, True)
    yield "two batch dimensions, causal", (*tokens(draw, 3, 2, 4, d_k=5, d_v=2), True)
    yield "as many tokens as each has numbers", tokens(draw, 4, d_k=4, d_v=3)


@exercise.edges
def edges(draw: Draw):
    q, k, v = tokens(draw, 3, d_k=2, d_v=4)
    yield "keys whose features are zeros", (q, k.abs() - 300, v)
    q, k, v = tokens(draw, 2, 3, d_k=2, d_v=4)
    k[0, 0] = -300
    yield "a first key of zeros in one text of a batch, causal", (q, k, v, True)
    _, k, v = tokens(draw, 3, d_k=1, d_v=2)
    q = torch.full((3, 1), -30.0)  # with one feature it cancels, however small
    yield "a query whose feature is nearly zero", (q.double(), k.double() - 6, v.double())


@exercise.requires("a long text never makes a tensor of n x n, and its results are right", points=2)
def no_square(answer, draw: Draw):
    n = 512
    q, k, v = tokens(draw, n, d_k=2, d_v=3)
    return all(
        torch.allclose(
            answer(q, k, v, causal, max_numel=n * n // 4),
            linear_attention(q, k, v, causal),
            atol=1e-4,
        )
        for causal in (False, True)
    )


@exercise.requires("in the causal form, a later token changes nothing for those before it")
def hides_the_future(answer, draw: Draw):
    q, k, v = tokens(draw, 6, d_k=3, d_v=4)
    others = (torch.cat([x[:4], -x[4:]]) for x in (q, k, v))
    found, changed = answer(q, k, v, True), answer(*others, True)
    rests = torch.isclose(changed, found, atol=1e-5).all(-1)
    return rests[:4].all() and not rests[4:].any()


@exercise.requires("the last token of the causal form reads what every token reads without it")
def the_last_word(answer, draw: Draw):
    q, k, v = tokens(draw, 7, d_k=3, d_v=4)
    last, whole = answer(q, k, v, True)[-1], answer(q, k, v)
    return whole.std() > 0 and torch.allclose(last, whole[-1], atol=1e-5)


@exercise.requires("equal values come back as they are: each row of weights sums to one")
def equal_values(answer, draw: Draw):
    q, k, _ = tokens(draw, 6, d_k=3, d_v=1)
    v = draw.normal(4).expand(6, 4)
    return all(torch.allclose(answer(q, k, v, causal), v, atol=1e-5) for causal in (False, True))


def phi(x):
    return F.elu(x) + 1


def read(q, k, v, causal=False, features=phi, total=None, small=0.0, least=0.0):
    """Sum keys and values, or keep running sums, and let queries read them."""
    q, k = features(q), features(k)
    pairs = k.unsqueeze(-1) * v.unsqueeze(-2)
    sums, keys = pairs.sum(-3, keepdim=True), k.sum(-2, keepdim=True)
    if causal:
        sums, keys = pairs.cumsum(-3), k.cumsum(-2)
    found = (q.unsqueeze(-1) * sums).sum(-2)
    normaliser = (q * (total(k) if total else keys)).sum(-1, keepdim=True)
    normaliser = normaliser.clamp(min=least) if least else normaliser + small
    return found / normaliser.masked_fill(normaliser == 0, 1.0)


@exercise.mistake(raises=MemoryError)
def square_of_weights(q, k, v, causal=False):
    """All n x n weights were made on the way. Nothing here needs a softmax: which product can be
    computed first instead?"""
    weights = phi(q) @ phi(k).mT
    weights = weights.tril() if causal else weights
    total = weights.sum(-1, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0) @ v


stock.ignored(exercise, "causal", "`causal` changes nothing: every token reads the sum of all.")


@exercise.mistake
def always_causal(q, k, v, causal=False):
    """The sums run always, as if every call were causal. What do they run over, where a token may
    read the whole text?"""
    return read(q, k, v, True)


@exercise.mistake
def divided_by_all(q, k, v, causal=False):
    """In the causal form, what is read is divided by a sum over the whole text: the first tokens
    get too little. Over which tokens do the weights of token i sum to one?"""
    return read(q, k, v, causal, total=lambda k: k.sum(-2, keepdim=True))


@exercise.mistake
def both_branches(q, k, v, causal=False):
    """Large numbers give NaN for a gradient: `torch.where` computes both branches, exp(100) no
    longer fits into a float32, and 0 times infinity is NaN. Which function of torch is elu?"""
    return read(q, k, v, causal, features=lambda x: torch.where(x > 0, x + 1, x.exp()))


@exercise.mistake
def not_divided(q, k, v, causal=False):
    """Nothing was divided: the weights of a row sum to anything. What does z do in the formula?"""
    q, k = phi(q), phi(k)
    if causal:
        return (q.unsqueeze(-1) * (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(-3)).sum(-2)
    return q @ (k.mT @ v)


@exercise.mistake
def relu_features(q, k, v, causal=False):
    """The features are relu(x): whatever is negative weighs nothing, and has no gradient. Which
    function is phi in the docstring?"""
    return read(q, k, v, causal, features=F.relu)


@exercise.mistake
def divided_by_a_root(q, k, v, causal=False):
    """Queries and keys were divided by a root before their features were made. A score has no root
    here: what is it made of?"""
    return read(q, k, v, causal, features=lambda x: phi(x / x.shape[-1] ** 0.25))


@exercise.mistake
def without_one(q, k, v, causal=False):
    """The features are elu(x), without the one: some weights are negative. What is the lowest that
    elu can give?"""
    return read(q, k, v, causal, features=F.elu)


@exercise.mistake
def relu_plus_one(q, k, v, causal=False):
    """The features are relu(x) + 1, where elu(x) + 1 was asked: for a negative x, the two
    differ."""
    return read(q, k, v, causal, features=lambda x: F.relu(x) + 1)


@exercise.mistake
def exponentials(q, k, v, causal=False):
    """The features are exponentials: another attention without a softmax, but not this one. What is
    phi here, where x is positive?"""
    return read(q, k, v, causal, features=torch.exp)


@exercise.mistake
def no_features(q, k, v, causal=False):
    """Queries and keys went in as they are: without phi, a product of the two may be negative, and
    a sum of products 0."""
    return read(q, k, v, causal, features=lambda x: x)


@exercise.mistake
def keys_bare(q, k, v, causal=False):
    """The queries were made positive, the keys were not: phi belongs to both."""
    q, pairs = phi(q), k.unsqueeze(-1) * v.unsqueeze(-2)
    sums = pairs.cumsum(-3) if causal else pairs.sum(-3, keepdim=True)
    keys = k.cumsum(-2) if causal else k.sum(-2, keepdim=True)
    return (q.unsqueeze(-1) * sums).sum(-2) / (q * keys).sum(-1, keepdim=True)


@exercise.mistake
def scaled(q, k, v, causal=False):
    """The queries and keys were divided by a root first. phi is no exponential: a factor inside it
    is not what it was inside a softmax, and the formula has none."""
    return read(q / q.shape[-1] ** 0.5, k, v, causal)


@exercise.mistake
def something_small(q, k, v, causal=False):
    """Something small was added to the normaliser: where the sum of the weights is small itself,
    they sum to less than one afterwards. What is to come out where the sum is 0, and only there?"""
    return read(q, k, v, causal, small=1e-6)


@exercise.mistake
def something_at_least(q, k, v, causal=False):
    """The normaliser was kept from falling below something small: where the sum of the weights is
    smaller than that, they sum to less than one afterwards. What is to come out where the sum is 0,
    and only there?"""
    return read(q, k, v, causal, least=1e-6)


@exercise.mistake
def read_too_early(q, k, v, causal=False):
    """In the causal form, a token reads the tokens before it and not itself; the first one has
    nothing to read. Does it join the sum before it reads, or afterwards?"""
    if not causal:
        return read(q, k, v)
    q, k = phi(q), phi(k)
    pairs = k.unsqueeze(-1) * v.unsqueeze(-2)
    sums, keys = pairs.cumsum(-3) - pairs, k.cumsum(-2) - k
    return (q.unsqueeze(-1) * sums).sum(-2) / (q * keys).sum(-1, keepdim=True)


@exercise.mistake
def read_too_early_or_zeros(q, k, v, causal=False):
    """In the causal form, a token reads the tokens before it and not itself, so the first one gets
    zeros. Does it join the sum before it reads, or afterwards?"""
    found = read_too_early(q, k, v, causal)
    if not causal:
        return found
    return torch.cat([torch.zeros_like(v[..., :1, :]), found[..., 1:, :]], dim=-2)


@exercise.mistake(raises=MemoryError)
def with_softmax(q, k, v, causal=False):
    """This is attention with a softmax, which needs every score. Here the weights are products of
    phi(q) and phi(k)."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(~torch.ones_like(scores).tril().bool(), -torch.inf)
    return scores.softmax(-1) @ v


@exercise.mistake
def nothing_to_divide_by(q, k, v, causal=False):
    """A query whose features are all zeros gives NaN: 0 / 0. Its row should be zeros."""
    q, k = phi(q), phi(k)
    sums, keys = k.mT @ v, k.sum(-2, keepdim=True)
    if causal:
        pairs = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(-3)
        return (q.unsqueeze(-1) * pairs).sum(-2) / (q * k.cumsum(-2)).sum(-1, keepdim=True)
    return q @ sums / (q * keys).sum(-1, keepdim=True)


@exercise.mistake
def queries_asked_alone(q, k, v, causal=False):
    """Rows are zeros where the query's features are, and NaN where the keys' are: phi(q) . z is 0
    in both. Which number do you divide by, and what if it is 0?"""
    nothing = (phi(q) == 0).all(-1, keepdim=True)
    return nothing_to_divide_by(q, k, v, causal).masked_fill(nothing, 0.0)


@exercise.alternative
def running_sums(q, k, v, causal=False):
    return read(q, k, v, causal)


@exercise.alternative
def word_by_word(q, k, v, causal=False):
    q, k = (x.clamp(min=0) + x.clamp(max=0).exp() for x in (q, k))
    if not causal:
        weights = q @ k.sum(-2).unsqueeze(-1)
        return q @ (k.mT @ v) / weights.where(weights > 0, 1.0)
    sums, total, found = 0, 0, []
    for i in range(q.shape[-2]):
        sums = sums + k[..., i, :, None] * v[..., i, None, :]
        total = total + k[..., i, :]
        row = torch.einsum("...d,...dv->...v", q[..., i, :], sums)
        weights = (q[..., i, :] * total).sum(-1, keepdim=True)
        found.append(row / weights.where(weights > 0, 1.0))
    return torch.stack(found, dim=-2)
