"""How much weight does a head give to what followed the same token before?"""

import torch
from torch.nn import functional as F

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.multi_head import induction_score

exercise = Exercise(
    reference=induction_score,
    lesson="06",
    title="A score for induction heads",
    minutes=7,
    difficulty=2,
    hints=(
        "Write down a text of four tokens in which one occurs twice, and draw its square of "
        "queries and keys. In which row is there a target, and in which column?",
        "Comparing every token with every other one gives a square of True and False. Which half "
        "of it is about earlier tokens? And where is the target, seen from the copy?",
        "Rows without a target must not count as rows with weight 0. How do you pick the others, "
        "for all heads at once?",
    ),
    no_edge={"a row of zeros": "a row of weights sums to 1"},
    clauses={
        "the keys right after those earlier copies": "on_the_copies",
        "averaged over the queries that have any": "of_all_rows",
        "it is 0 where none has": "one token, which cannot return",
        "`weights` are causal": GIVEN,
    },
)


def _weights(draw: Draw, *shape):
    """Draw causal weights: each row sums up to 1."""
    scores = draw.normal(*shape, shape[-1])
    visible = torch.ones(shape[-1], shape[-1]).bool().tril()
    return scores.masked_fill(~visible, float("-inf")).softmax(-1)


def _twice(draw: Draw, n):
    """Draw a text of n different tokens, read twice."""
    once = torch.randperm(90, generator=torch.Generator().manual_seed(draw.number(0, 99)))[:n]
    return torch.cat([once, once])


@exercise.cases
def cases(draw: Draw):
    yield "two tokens, twice", (_weights(draw, 4), torch.tensor([5, 7, 5, 7]))
    yield "one that returns at once", (_weights(draw, 4), torch.tensor([3, 8, 8, 6]))
    yield "the first one returns at the end", (_weights(draw, 4), torch.tensor([2, 9, 4, 2]))
    yield "three heads", (_weights(draw, 3, 6), _twice(draw, 3))
    yield "layers of heads", (_weights(draw, 4, 3, 10), _twice(draw, 5))
    yield "one that occurs three times", (_weights(draw, 2, 6), torch.tensor([1, 4, 1, 8, 1, 5]))
    yield "one token, which cannot return", (_weights(draw, 2, 1), torch.tensor([3]))
    yield "as many heads as tokens", (_weights(draw, 4, 4), torch.tensor([6, 2, 2, 6]))


@exercise.edges
def edges(draw: Draw):
    yield "token 0 returns", (_weights(draw, 2, 6), torch.tensor([5, 0, 5, 0, 7, 0]))
    yield "no token returns", (_weights(draw, 2, 4), torch.tensor([4, 9, 1, 6]))
    weights = _weights(draw, 2, 6)
    weights[0, 3] = torch.eye(6)[0]
    yield "one that gives its targets no weight", (weights, torch.tensor([2, 7, 3, 2, 8, 7]))


@exercise.requires("a head that gives all its weight to what followed has score 1")
def all_of_it(answer, draw: Draw):
    n = draw.number(3, 7)
    weights = torch.eye(2 * n)
    weights[n:] = torch.eye(2 * n).roll(n - 1, 0)[n:]
    return abs(float(answer(weights, _twice(draw, n))) - 1) < 1e-5


@exercise.requires("what the numbers of the tokens are does not matter, only which are equal")
def names(answer, draw: Draw):
    weights, tokens = _weights(draw, 2, 8), _twice(draw, 4)
    return torch.allclose(answer(weights, tokens), answer(weights, 200 - tokens), atol=1e-5)


@exercise.mistake
def of_all_rows(weights, tokens):
    """The sum was divided by the number of all queries. A token that is new has no target, and
    should not lower the score: over which queries is the average?"""
    followed, _ = _marked(tokens)
    return (weights * followed).sum(-1).mean(-1)


@exercise.mistake
def on_the_copies(weights, tokens):
    """This is the weight on the earlier copies themselves. An induction head looks at what came
    right after them: one key further on."""
    _, copies = _marked(tokens)
    return _mean(weights, copies, copies.any(-1))


@exercise.mistake
def before_the_copies(weights, tokens):
    """This is the weight on the keys right before the earlier copies. What *followed* is one
    further on: which way did you shift?"""
    _, copies = _marked(tokens)
    preceded = F.pad(copies, (0, 1))[:, 1:]
    return _mean(weights, preceded, copies.any(-1))


@exercise.mistake
def summed(weights, tokens):
    """The weights were added up over all queries, and not averaged. A longer text would have a
    higher score."""
    followed, _ = _marked(tokens)
    return (weights * followed).sum((-2, -1))


@exercise.mistake
def shifted_queries(weights, tokens):
    """The square of copies was shifted by a row, not by a column: this asks the query *after* the
    one that occurred before. Which axis is that of the keys?"""
    _, copies = _marked(tokens)
    later = F.pad(copies, (0, 0, 1, 0))[:-1]
    return _mean(weights, later, copies.any(-1))


@exercise.mistake
def itself_as_copy(weights, tokens):
    """Each token was taken for a copy of itself. Only *earlier* ones count, so that the diagonal
    has to go, too."""
    copies = (tokens[:, None] == tokens).tril()
    followed = F.pad(copies, (1, 0))[:, :-1]
    return _mean(weights, followed, copies.any(-1))


@exercise.mistake
def latest_copy_alone(weights, tokens):
    """Only what followed the latest earlier copy counted. A token that has occurred several times
    has several targets: what is done with their weights?"""
    followed, copies = _marked(tokens)
    later = followed.flip(-1).cumsum(-1).flip(-1) > 1
    return _mean(weights, followed & ~later, copies.any(-1))


@exercise.mistake
def mean_over_the_targets(weights, tokens):
    """The weights on a query's targets were averaged. All of them are what an induction head is to
    find: how much weight does a query give them together?"""
    followed, copies = _marked(tokens)
    shares = followed / followed.sum(-1, keepdim=True).clamp(min=1)
    return _mean(weights, shares, copies.any(-1))


@exercise.mistake
def divided_by_the_targets(weights, tokens):
    """The sum was divided by the number of all targets. A query may have several, and counts once:
    over what is the average?"""
    followed, _ = _marked(tokens)
    return (weights * followed).sum((-2, -1)) / followed.sum().clamp(min=1)


@exercise.mistake
def of_all_heads(weights, tokens):
    """One number came for all heads together. Each head of each layer is to have a score of its
    own: over which axis is the average?"""
    followed, copies = _marked(tokens)
    return _mean(weights, followed, copies.any(-1)).mean()


def _mean(weights, target, rows):
    """Return the weight on a target, averaged over these rows."""
    return (weights * target).sum((-2, -1)) / rows.sum().clamp(min=1)


def _marked(tokens):
    """Mark what followed earlier copies, and the copies."""
    copies = (tokens[:, None] == tokens).tril(-1)
    return F.pad(copies, (1, 0))[:, :-1], copies


@exercise.alternative
def query_by_query(weights, tokens):
    scores = []
    for i, token in enumerate(tokens.tolist()):
        keys = [j + 1 for j, other in enumerate(tokens[:i].tolist()) if other == token]
        if keys:
            scores.append(weights[..., i, keys].sum(-1))
    return torch.stack(scores, dim=-1).mean(-1) if scores else weights.new_zeros(weights.shape[:-2])


@exercise.alternative
def by_the_token_before(weights, tokens):
    before = torch.cat([torch.tensor([-1]), tokens[:-1]])
    followed = (tokens[:, None] == before).tril()
    found = (weights * followed).sum((-2, -1))
    return found / followed.any(-1).sum().clamp(min=1)
