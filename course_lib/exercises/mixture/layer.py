"""Several feed-forward networks, of which each token uses a few."""

import torch

from course_lib.answers.answer import Named, Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.scaling import Mixture, route

exercise = Exercise(
    reference=Mixture,
    method="forward",
    lesson="12_experts",
    title="A mixture of experts",
    minutes=15,
    difficulty=3,
    hints=(
        "`route(x, self.w, self.k)` says which experts each token chose. For one expert, which "
        "tokens are its own, and in which of their k places does it stand?",
        "A boolean tensor as an index picks rows, and `torch.where` of it gives their places. How "
        "many rows does an expert see, if nobody chose it?",
        "Each expert's results belong to some tokens only. How do you add rows to those places of "
        "y, and multiplied by what?",
    ),
    no_edge={"a row of zeros": "of equal logits any may be chosen"},
    clauses={
        "An expert sees only the tokens": "every_expert_on_every_token",
        "Time O": GIVEN,
        "makes an expert": "other experts",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens, one of two experts", (draw.normal(2, 3),), (3, 4, 2, 1)
    yield "two of three experts", (draw.normal(5, 4),), (4, 6, 3, 2)
    yield "all experts", (draw.normal(4, 3),), (3, 5, 2, 2)
    yield "more experts than tokens", (draw.normal(2, 4),), (4, 3, 7, 2)
    yield "a token alone", (draw.normal(4),), (4, 6, 3, 2)
    yield "a batch of sentences", (draw.normal(2, 5, 4),), (4, 7, 3, 2)
    yield "two batch dimensions", (draw.normal(3, 2, 4, 2),), (2, 5, 4, 3)
    yield (
        "other experts",
        (draw.normal(5, 4),),
        (4, 6, 3, 2, Named("feed_forward", Probe("network_of_one_matrix"))),
    )


@exercise.edges
def edges(draw: Draw):
    alike = draw.normal(1, 4) + draw.normal(9, 4) / 100
    yield "all tokens at the same expert", (alike,), (4, 6, 5, 1)


@exercise.requires("a token's result does not depend on the other tokens")
def one_by_one(answer, draw: Draw):
    x, build = draw.normal(6, 4), (4, 5, 3, 2)
    together = answer(x, build=build)
    alone = torch.stack([answer(token, build=build) for token in x])
    return together.abs().max() > 0 and torch.allclose(together, alone, atol=1e-5)


@exercise.requires("an expert sees only the tokens that chose it", points=2)
def only_its_own(answer, draw: Draw):
    # 64 tokens, each hidden layer of 50: all of them at once would be 3,200 numbers
    x = draw.normal(64, 4)
    return answer(x, build=(4, 50, 16, 1), max_numel=64 * 50 - 1).shape == x.shape


@exercise.steps
class Steps(Mixture):
    """The steps of the reference, so that each mistake is one step gone wrong."""

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        chosen, weights = self.route(rows)
        y = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(chosen == number)
            weight = self.weight(weights, token, place).unsqueeze(-1)
            y = self.add(y, token, self.work(expert, weight, rows[token]))
        return y.reshape(x.shape)

    def route(self, rows):
        return route(rows, self.w, self.k)

    def weight(self, weights, token, place):
        return weights[token, place]

    def work(self, expert, weight, rows):
        return weight * expert(rows)

    def add(self, y, token, done):
        return y.index_add(0, token, done)


@exercise.mistake(raises=MemoryError)
def every_expert_on_every_token(self, x):
    """Right results, but every expert worked on every token, and most of it was multiplied by zero:
    then the mixture costs as much as all its experts. Which rows should an expert be given?"""
    chosen, weights = route(x, self.w, self.k)
    y = torch.zeros_like(x)
    for number, expert in enumerate(self.experts):
        weight = (weights * (chosen == number)).sum(-1)
        y = y + weight.unsqueeze(-1) * expert(x)
    return y


@exercise.mistake(raises=MemoryError)
def all_alike(self, x):
    """All experts were averaged, chosen or not. Which tokens is an expert to see?"""
    return sum(expert(x) for expert in self.experts) / len(self.experts)


@exercise.mistake(step="weight")
def without_weights(self, weights, token, place):
    """The chosen experts count alike: their results were added without their weights."""
    return torch.ones_like(weights[token, place])


@exercise.mistake(step="weight")
def equal_weights(self, weights, token, place):
    """Each of the k experts counts 1 / k. `route` returned how much each of them counts."""
    return torch.ones_like(weights[token, place]) / self.k


@exercise.mistake(step="weight")
def first_choice_alone(self, weights, token, place):
    """Only the first choice of each token counts. What of the other k - 1 experts?"""
    return weights[token, place] * (place == 0)


@exercise.mistake(step="weight")
def weight_of_the_first(self, weights, token, place):
    """The weight of an expert was always that of the first choice. In which of its k places did the
    token put this expert?"""
    return weights[token, 0]


@exercise.mistake(step="route", raises=MemoryError)
def one_expert(self, rows):
    """One expert does all the work: each token went to expert 0. Which numbers did `route`
    return?"""
    chosen, weights = Steps.route(self, rows)
    return torch.zeros_like(chosen), weights


@exercise.mistake
def input_added(self, x):
    """The input was added to the result. The residual connection is outside: the mixture takes the
    place of the feed-forward network alone."""
    return x + Steps.forward(self, x)


@exercise.mistake(step="work")
def weighted_tokens(self, expert, weight, rows):
    """The tokens were weighted before the experts, which are not linear: what is weighted, a token
    or an expert's result?"""
    return expert(weight * rows)


@exercise.mistake(step="route", raises=MemoryError)
def choice_of_the_first(self, rows):
    """Every token went to the experts of the first one. Each token has a choice of its own."""
    chosen, weights = Steps.route(self, rows)
    return chosen[:1].expand_as(chosen), weights


@exercise.mistake(step="add")
def last_expert_wins(self, y, token, done):
    """A token's later expert replaced what the earlier one had returned: their results are to be
    added."""
    return y.index_put((token,), done)


@exercise.alternative
class RowByRow(Mixture):
    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        chosen, weights = route(rows, self.w, self.k)
        done = []
        for row, numbers, shares in zip(rows, chosen, weights, strict=True):
            parts = [
                share * self.experts[number](row[None])[0]
                for number, share in zip(numbers.tolist(), shares, strict=True)
            ]
            done.append(sum(parts))
        return torch.stack(done).reshape(x.shape)
