"""Several feed-forward networks, of which each token uses a few."""

import torch

from course_lib.answers.probe_layers import Named, Probe
from course_lib.checking.exercise import Draw, Exercise
from course_lib.mixture import Mixture, route

exercise = Exercise(
    reference=Mixture,
    method="forward",
    lesson="12",
    title="A mixture of experts",
    minutes=20,
    difficulty=3,
    hints=(
        "`route(x, self.w, self.k)` says which experts each token chose. For one expert, which "
        "tokens are its own, and in which of their k places does it stand?",
        "A boolean tensor as an index picks rows, and `torch.where` of it gives their places. How "
        "many rows does an expert see, if nobody chose it?",
        "Each expert's results belong to some tokens only. How do you add rows to those places of "
        "y, and multiplied by what?",
    ),
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


@exercise.property("a token's result does not depend on the other tokens")
def one_by_one(answer, draw: Draw):
    x, build = draw.normal(6, 4), (4, 5, 3, 2)
    together = answer(x, build=build)
    alone = torch.stack([answer(token, build=build) for token in x])
    return together.abs().max() > 0 and torch.allclose(together, alone, atol=1e-5)


@exercise.property("an expert sees only the tokens that chose it", points=2)
def only_its_own(answer, draw: Draw):
    # 64 tokens, each hidden layer of 50: all of them at once would be 3,200 numbers
    x = draw.normal(64, 4)
    answer(x, build=(4, 50, 16, 1), max_numel=64 * 50 - 1)
    return True


class Steps(Mixture):
    """Every expert on every token: slow, and each step can go wrong by itself."""

    def forward(self, x):
        chosen, weights = self.route(x)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            y = y + self.weight(chosen, weights, number).unsqueeze(-1) * expert(x)
        return y

    def route(self, x):
        return route(x, self.w, self.k)

    def weight(self, chosen, weights, number):
        return (weights * (chosen == number)).sum(-1)


@exercise.mistake(
    "Right results, but every expert worked on every token, and most of it was multiplied by zero: "
    "then the mixture costs as much as all its experts. Which rows should an expert be given?"
)
class EveryExpertOnEveryToken(Steps):
    pass


@exercise.mistake("All experts were averaged, chosen or not. What are the others multiplied by?")
class AllAlike(Steps):
    def weight(self, chosen, weights, number):
        return torch.ones_like(weights[..., 0]) / len(self.experts)


@exercise.mistake("The chosen experts count alike: their results were added without their weights.")
class WithoutWeights(Steps):
    def weight(self, chosen, weights, number):
        return (chosen == number).sum(-1).to(weights)


@exercise.mistake("Only the first choice of each token counts. What of the other k - 1 experts?")
class FirstChoiceAlone(Steps):
    def weight(self, chosen, weights, number):
        return weights[..., 0] * (chosen[..., 0] == number)


@exercise.mistake(
    "One expert does all the work: each token went to expert 0. Which numbers did `route` return?"
)
class OneExpert(Steps):
    def route(self, x):
        chosen, weights = super().route(x)
        return torch.zeros_like(chosen), weights


@exercise.mistake(
    "The input was added to the result. The residual connection is outside: the mixture takes the "
    "place of the feed-forward network alone."
)
class InputAdded(Steps):
    def forward(self, x):
        return x + super().forward(x)


@exercise.mistake(
    "The weights were multiplied in before the experts, which are not linear: what is weighted, a "
    "token or an expert's result?"
)
class WeightedTokens(Steps):
    def forward(self, x):
        chosen, weights = self.route(x)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            weight = self.weight(chosen, weights, number).unsqueeze(-1)
            y = y + (weight > 0) * expert(weight * x)
        return y


@exercise.mistake(
    "Every token went to the experts of the first one. Each token has a choice of its own."
)
class ChoiceOfTheFirst(Steps):
    def route(self, x):
        chosen, weights = super().route(x)
        if x.dim() == 1:
            return chosen, weights
        first = (slice(None),) * (x.dim() - 2) + (slice(0, 1),)
        return chosen[first].expand_as(chosen), weights


@exercise.mistake(
    "Right results, but the weights were cut off from the gradient, so the router never learns: "
    "`no_grad`, `.detach()`, `.data`?"
)
class RouterDetached(Mixture):
    def forward(self, x):
        chosen, weights = route(x, self.w, self.k)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            *token, place = torch.where(chosen == number)
            token = tuple(token)
            weight = weights[*token, place].detach().unsqueeze(-1)
            y = y.index_put(token, weight * expert(x[token]), accumulate=True)
        return y


@exercise.mistake(
    "A token's later expert replaced what the earlier one had returned: their results are to be "
    "added."
)
class LastExpertWins(Mixture):
    def forward(self, x):
        chosen, weights = route(x, self.w, self.k)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            *token, place = torch.where(chosen == number)
            token = tuple(token)
            done = weights[*token, place].unsqueeze(-1) * expert(x[token])
            y = y.index_put(token, done)
        return y


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


@exercise.alternative
class WithIndexAdd(Mixture):
    def forward(self, x):
        rows = x.flatten(0, -2) if x.dim() > 1 else x[None]
        chosen, weights = route(rows, self.w, self.k)
        y = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            token, place = (chosen == number).nonzero(as_tuple=True)
            done = expert(rows[token]) * weights[token, place][:, None]
            y = y.index_add(0, token, done)
        return y.view_as(x)
