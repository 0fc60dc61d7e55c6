"""A number that is 1 while all experts are used alike, and grows when some are preferred."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.scaling import load_balance

exercise = Exercise(
    reference=load_balance,
    lesson="12_experts",
    title="No expert alone",
    minutes=6,
    difficulty=2,
    hints=(
        "Ten tokens chose two experts each. How many choices are there, and what is the share of "
        "an expert that was chosen five times?",
        "Counting has no gradient. Which of the two factors can carry one back to the router?",
        "Let all experts have the same share and the same mean probability. What is the sum of "
        "the products, and which factor makes it 1?",
    ),
    no_edge={"a row of zeros": "a row of probabilities sums to 1"},
    clauses={
        "share of all choices": "first_choice",
        "its mean probability": "probabilities_squared",
        "1 where all experts are equal": "it is 1 where all experts",
        "its gradient lowers the probability": "gradients flow",
    },
)


def choices(draw: Draw, tokens: int, experts: int, k: int):
    scores = 2 * draw.normal(tokens, experts)
    return torch.softmax(scores, -1), scores.topk(k).indices


@exercise.cases
def cases(draw: Draw):
    yield "two tokens, two experts", choices(draw, 2, 2, 1)
    yield "five tokens, three experts", choices(draw, 5, 3, 1)
    yield "two choices each", choices(draw, 6, 4, 2)
    yield "as many tokens as experts", choices(draw, 4, 4, 3)
    yield "one token", choices(draw, 1, 5, 2)
    yield "many tokens", choices(draw, 50, 7, 3)
    probabilities, chosen = choices(draw, 8, 3, 1)
    yield "all tokens in one expert", (probabilities, torch.full_like(chosen, 2))


@exercise.requires("it is 1 where all experts have equal shares and probabilities")
def even(answer, draw: Draw):
    chosen = torch.arange(12)[draw.normal(12).argsort()].remainder(4).reshape(6, 2)
    found = answer(torch.full((6, 4), 0.25), chosen)
    return found.shape == () and torch.isclose(found, torch.tensor(1.0), atol=1e-5)


@exercise.requires("one expert for everything, and surely, gives the number of experts")
def one_for_all(answer, draw: Draw):
    experts, favourite = 5 + draw.number(0, 4), draw.number(0, 5)
    surely = torch.zeros(7, experts)
    surely[:, favourite] = 1
    found = answer(surely, torch.full((7, 1), favourite))
    return torch.isclose(found, torch.tensor(float(experts)), atol=1e-4)


def share(probabilities, chosen):
    return torch.bincount(chosen.flatten(), minlength=probabilities.shape[1]) / chosen.numel()


@exercise.mistake
def without_the_factor(probabilities, chosen):
    """The result is too small by the number of experts: the factor `experts` is missing, or the
    products were averaged where they are to be summed. What should an even use give?"""
    return load_balance(probabilities, chosen) / probabilities.shape[-1]


@exercise.mistake
def shares_of_tokens(probabilities, chosen):
    """The choices were divided by the number of tokens. With k choices a token the shares then sum
    to k: what do they have to sum to?"""
    return load_balance(probabilities, chosen) * chosen.shape[-1]


@exercise.mistake
def first_choice(probabilities, chosen):
    """Only the first choice of each token was counted. How many choices did each make?"""
    return load_balance(probabilities, chosen[:, :1])


@exercise.mistake
def shares_squared(probabilities, chosen):
    """The shares were multiplied with themselves. They are counts, without a gradient: where do the
    probabilities come in?"""
    found = share(probabilities, chosen).to(probabilities)
    return probabilities.shape[-1] * found.square().sum() + 0 * probabilities.sum()


@exercise.mistake
def variance_of_shares(probabilities, chosen):
    """This is the variance of the shares, which is 0 for an even use, and has no gradient: shares
    are counts. What is each share multiplied by, and what is the sum of the products?"""
    return share(probabilities, chosen).to(probabilities).var()


@exercise.mistake
def probabilities_squared(probabilities, chosen):
    """The mean probabilities were multiplied with themselves, and nobody counted the choices."""
    return probabilities.shape[-1] * probabilities.mean(0).square().sum()


@exercise.mistake
def sum_of_probabilities(probabilities, chosen):
    """The probabilities were summed over the tokens, so the result grows with the text. Which mean
    is asked?"""
    return load_balance(probabilities, chosen) * len(probabilities)


@exercise.mistake
def times_tokens(probabilities, chosen):
    """The number of tokens took the place of the number of experts. Which axis is which?"""
    return load_balance(probabilities, chosen) * len(probabilities) / probabilities.shape[-1]


@exercise.mistake
def token_by_token(probabilities, chosen):
    """Each token's own choices were multiplied with its own probabilities. Share and mean are taken
    over all tokens first."""
    tokens = probabilities.gather(-1, chosen).mean()
    return probabilities.shape[-1] * tokens


@exercise.mistake
def mean_square_of_shares(probabilities, chosen):
    """This is the variance of the shares, from which no gradient reaches the router: counts have
    none. Which second factor, one for each expert, has one?"""
    experts = probabilities.shape[1]
    share = torch.bincount(chosen.flatten(), minlength=experts) / chosen.numel()
    return (share - 1 / experts).square().mean() + 0 * probabilities.sum()


@exercise.alternative
def by_bincount(probabilities, chosen):
    experts = probabilities.shape[1]
    counts = torch.bincount(chosen.reshape(-1), minlength=experts).to(probabilities)
    return experts * (counts / counts.sum()) @ (probabilities.sum(0) / len(probabilities))


@exercise.alternative
def expert_by_expert(probabilities, chosen):
    experts = range(probabilities.shape[-1])
    shares = [(chosen == expert).to(probabilities).mean() for expert in experts]
    return len(experts) * torch.stack(shares) @ probabilities.mean(0)
