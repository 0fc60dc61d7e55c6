"""Which experts a token is sent to, and how much each of them counts."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.scaling import route

exercise = Exercise(
    reference=route,
    lesson="12_experts",
    title="Choose the experts",
    minutes=6,
    difficulty=1,
    hints=(
        "x w has one score for each token and expert. Which function of torch returns the k "
        "largest of a row together with their places?",
        "The weights of a token's k experts sum to 1. Is the softmax taken over all experts, or "
        "over the chosen ones?",
        "Return two tensors of the same shape. Which of them holds whole numbers, and does the "
        "other one still have a gradient?",
    ),
    no_edge={"a row of zeros": "of equal logits any may be chosen"},
    clauses={
        "the softmax over the k chosen ones": "softmax_over_all",
        "The scores are x w": "scores_as_weights",
        "However far one score is above the others": "chosen_by_probability",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens, two of three experts", (draw.normal(2, 4), draw.normal(4, 3), 2)
    yield "one expert each", (draw.normal(5, 4), draw.normal(4, 3), 1)
    yield "all experts", (draw.normal(4, 2), draw.normal(2, 3), 3)
    yield "as many experts as numbers", (draw.normal(5, 4), draw.normal(4, 4), 2)
    yield "a token alone", (draw.normal(6), draw.normal(6, 5), 3)
    yield "a batch of sentences", (draw.normal(2, 5, 4), draw.normal(4, 7), 2)
    yield "two batch dimensions", (draw.normal(3, 2, 5, 4), draw.normal(4, 6), 3)


@exercise.requires("each token has k experts, and weights that are positive, fall, and sum to 1")
def shares(answer, draw: Draw):
    # of equal scores any may be chosen, but none of them twice
    alike, _ = answer(draw.normal(5, 4), draw.normal(4, 1).expand(4, 6), 3)
    if any(len(set(row)) < 3 for row in alike.tolist()):
        return False
    _, weights = answer(draw.normal(2, 9, 4), draw.normal(4, 8), 3)
    sums = weights.sum(-1)
    falling = (weights[..., :-1] >= weights[..., 1:]).all()
    return (weights > 0).all() and falling and torch.allclose(sums, torch.ones(2, 9), atol=1e-5)


@exercise.requires("an expert that points where a token points is chosen first")
def first_choice(answer, draw: Draw):
    experts = torch.linalg.qr(draw.normal(6, 6)).Q
    order = draw.normal(6).argsort()
    chosen, _ = answer(9 * experts[:, order].mT, experts, 2)
    return torch.equal(chosen[:, 0], order)


def parts(x, w, k):
    """Score, and keep the k highest: the scores, the kept ones, and their places."""
    return x @ w, *(x @ w).topk(k, dim=-1)


@exercise.mistake
def softmax_over_all(x, w, k):
    """The weights are those of a softmax over all experts, so those of the chosen ones sum to less
    than 1. Over which scores does the docstring take it?"""
    scores, _, experts = parts(x, w, k)
    return experts, torch.softmax(scores, -1).gather(-1, experts)


@exercise.mistake
def scores_as_weights(x, w, k):
    """The weights are the scores themselves: they may be negative, and do not sum to 1. What makes
    weights of scores?"""
    _, kept, experts = parts(x, w, k)
    return experts, kept


@exercise.mistake
def divided_by_their_sum(x, w, k):
    """The kept scores were divided by their sum, so the weights sum to 1, but a negative score
    makes a negative weight. What makes every weight positive?"""
    _, kept, experts = parts(x, w, k)
    return experts, kept / kept.sum(-1, keepdim=True)


@exercise.mistake
def equal_weights(x, w, k):
    """Each of the chosen experts weighs 1 / k. The one with the highest score should weigh most."""
    _, kept, experts = parts(x, w, k)
    return experts, torch.ones_like(kept) / k


@exercise.mistake
def lowest(x, w, k):
    """The k lowest scores were kept. `argsort` sorts upwards: which end is the highest?"""
    kept, experts = (x @ w).topk(k, dim=-1, largest=False)
    return experts, torch.softmax(kept, -1)


@exercise.mistake
def by_number(x, w, k):
    """The right experts in the order of their numbers, and not of their scores: the highest score
    comes first."""
    _, kept, experts = parts(x, w, k)
    experts, order = experts.sort(-1)
    return experts, torch.softmax(kept.gather(-1, order), -1)


@exercise.mistake
def exchanged(x, w, k):
    """Weights and experts have changed places. The docstring says in which order they are
    returned."""
    return route(x, w, k)[::-1]


@exercise.mistake
def over_the_tokens(x, w, k):
    """The softmax ran over the tokens, so that a token's weights depend on the other tokens. Which
    axis holds the chosen experts?"""
    _, kept, experts = parts(x, w, k)
    return experts, torch.softmax(kept, 0)


@exercise.mistake
def chosen_by_probability(x, w, k):
    """Probabilities were compared, and not scores: where one score is far above the others, theirs
    have the probability 0, and the order among them is lost. On what do you call `topk`?"""
    kept, experts = torch.softmax(x @ w, -1).topk(k, dim=-1)
    return experts, kept / kept.sum(-1, keepdim=True)


@exercise.mistake
def one_alone(x, w, k):
    """One expert was chosen for each token, whatever k is."""
    return route(x, w, 1)


@exercise.mistake
def no_maximum(x, w, k):
    """The exponentials overflow: exp(100) is infinite in float32. Subtract the maximum first, as
    your softmax of lesson 02 does."""
    _, kept, experts = parts(x, w, k)
    return experts, kept.exp() / kept.exp().sum(-1, keepdim=True)


@exercise.alternative
def by_sorting(x, w, k):
    scores = torch.einsum("...d,de->...e", x, w)
    experts = scores.argsort(dim=-1, descending=True)[..., :k]
    exponentials = (scores.gather(-1, experts) - scores.amax(-1, keepdim=True)).exp()
    return experts, exponentials / exponentials.sum(-1, keepdim=True)
