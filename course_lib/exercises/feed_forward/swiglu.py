"""SwiGLU: a hidden layer that another one opens and closes."""

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.answers.answer import Misfit
from course_lib.checking.exercise import Draw, Exercise
from course_lib.real_models import SwiGLU

exercise = Exercise(
    reference=SwiGLU,
    method="forward",
    constructor=True,
    lesson="09",
    title="A network with a gate",
    minutes=8,
    difficulty=1,
    hints=(
        "x goes to two of the three matrices. Which two, and which shape do both results have?",
        "swish(z) = z sigmoid(z). Which of the two hidden layers goes through it, and what "
        "connects it with the other: a sum, a matrix product, or a product entry by entry?",
        "`nn.Linear(inputs, outputs)` adds a bias, unless its third argument says otherwise. How "
        "many numbers come into w_2, and how many go out?",
    ),
    clauses={
        "none of them has a bias": "with_biases",
        "weights are copied by these names": "NamesExchanged",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", (draw.normal(2, 3),), (3, 5)
    yield "a hidden layer narrower than a token", (draw.normal(3, 5),), (5, 2)
    yield "a hidden layer as wide as a token", (draw.normal(3, 4),), (4, 4)
    yield "one token", (draw.normal(1, 3),), (3, 7)
    yield "a single token, not in a text", (draw.normal(4),), (4, 6)
    yield "a batch of texts", (draw.normal(3, 4, 2),), (2, 5)
    yield "two batch dimensions", (draw.normal(2, 3, 4, 5),), (5, 6)


@exercise.requires("changing one token changes its own result, and no other")
def tokens_stay_apart(answer, draw: Draw):
    x = draw.normal(5, 4)
    changed = torch.cat([x[:2], -x[2:3], x[3:]])
    moved = (answer(changed, build=(4, 6)) - answer(x, build=(4, 6))).abs().amax(-1) > 1e-5
    return moved.tolist() == [False, False, True, False, False]


@exercise.requires("f(x) + f(-x) grows as the square of x, since swish(z) - swish(-z) = z")
def odd_and_even(answer, draw: Draw):
    # f(x) + f(-x) = W_2 (W_1 x * W_3 x)
    x, build = draw.normal(5, 4), (4, 6)
    once, *more = (
        (answer(t * x, build=build) + answer(-t * x, build=build)) / t**2 for t in (1.0, 3.0, 1e5)
    )
    alike = (torch.allclose(y, once, rtol=1e-3, atol=1e-5) for y in more)
    return all(alike) and once.abs().amax() > 1e-3


@exercise.steps
class InSteps(SwiGLU):
    """The reference in steps, so that a mistake is one step gone wrong."""

    def forward(self, x):
        return self.w_2(self.hidden(self.w_1(x), self.w_3(x)))

    def hidden(self, gate, other):
        return F.silu(gate) * other


@exercise.mistake(step="hidden")
def gated_by_relu(self, gate, other):
    """The gate was bent by max(0, z). In the formula it is swish(z) = z sigmoid(z), which is smooth
    and dips below zero."""
    return F.relu(gate) * other


@exercise.mistake(step="hidden")
def gated_by_sigmoid(self, gate, other):
    """The gate was a plain sigmoid(z). swish(z) has one factor more: which?"""
    return torch.sigmoid(gate) * other


@exercise.mistake(step="hidden")
def gated_by_gelu(self, gate, other):
    """The gate was bent by GELU. That is a network of the same family (GEGLU), but here the formula
    says swish(z) = z sigmoid(z)."""
    return F.gelu(gate) * other


@exercise.mistake(step="hidden")
def overflowing(self, gate, other):
    """Right for small numbers, and NaN for large ones: e^z is infinite from z = 89 on, and infinity
    over infinity is no number. Which function of torch gives the sigmoid for any z?"""
    return gate * torch.exp(gate) / (1 + torch.exp(gate)) * other


@exercise.mistake(step="hidden")
def gated_by_tanh(self, gate, other):
    """The gate was bent by tanh. In the formula it is swish(z) = z sigmoid(z)."""
    return torch.tanh(gate) * other


@exercise.mistake(step="hidden")
def no_swish(self, gate, other):
    """The two hidden layers were multiplied, and neither went through swish. Which of them is the
    gate?"""
    return gate * other


@exercise.mistake(step="hidden")
def swish_on_the_other(self, gate, other):
    """w_1 and w_3 have changed places: the formula sends W_1 x through swish, and leaves W_3 x as
    it is."""
    return gate * F.silu(other)


@exercise.mistake(step="hidden")
def swish_on_both(self, gate, other):
    """Both hidden layers went through swish. Only the gate does: which matrix makes it?"""
    return F.silu(gate) * F.silu(other)


@exercise.mistake(step="hidden")
def swish_of_the_product(self, gate, other):
    """The product of the two hidden layers went through swish. Where does the bracket of swish
    close in the formula?"""
    return F.silu(gate * other)


@exercise.mistake(step="hidden")
def added(self, gate, other):
    """The two hidden layers were added. A gate multiplies: where it is 0, nothing passes."""
    return F.silu(gate) + other


@exercise.mistake(step="hidden")
def no_gate(self, gate, other):
    """`w_3` is never asked: this is a plain network with swish in it. What does the gate
    multiply?"""
    return F.silu(gate)


@exercise.mistake(step="hidden")
def gate_forgotten(self, gate, other):
    """`w_1` is never asked: x went through `w_3` and `w_2` alone. What opens and closes the hidden
    layer?"""
    return other


@exercise.mistake(step="__init__", raises=Misfit)
def with_biases(self, d_model, d_ff):
    """The matrices have biases. `nn.Linear` makes one unless it is told not to: which argument says
    so?"""
    nn.Module.__init__(self)
    self.w_1, self.w_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    self.w_3 = nn.Linear(d_model, d_ff)


@exercise.mistake(raises=Misfit)
class NamesExchanged(InSteps):
    """`w_2` and `w_3` have changed places. By their names the weights of a model are copied: w_1
    and w_3 read x, and w_2 returns to d_model."""

    def __init__(self, d_model, d_ff):
        nn.Module.__init__(self)
        self.w_1 = nn.Linear(d_model, d_ff, bias=False)
        self.w_2 = nn.Linear(d_model, d_ff, bias=False)
        self.w_3 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.w_3(F.silu(self.w_1(x)) * self.w_2(x))


@exercise.mistake(step="__init__", raises=Misfit)
def hidden_as_wide_as_a_token(self, d_model, d_ff):
    """d_ff changes nothing: the hidden layer is as wide as a token. Which of the sizes belongs to
    which side of each matrix?"""
    InSteps.__init__(self, d_model, d_model)


@exercise.mistake(raises=Misfit)
class BareParameters(InSteps):
    """The parameters are bare tensors, and the weights of a model come by the names `w_1.weight`
    and so on. Which module of torch's holds a matrix under the name `weight`?"""

    def __init__(self, d_model, d_ff):
        nn.Module.__init__(self)
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model))
        self.w_3 = nn.Parameter(torch.randn(d_model, d_ff))

    def forward(self, x):
        return (F.silu(x @ self.w_1) * (x @ self.w_3)) @ self.w_2


@exercise.mistake(step="__init__", raises=AttributeError)
def no_module(self, d_model, d_ff):
    """`super().__init__()` is missing, so torch has nowhere to put the matrices. It has to come
    before the first of them."""
    self.w_1 = nn.Linear(d_model, d_ff, bias=False)


@exercise.mistake
def added_to_x(self, x):
    """x was added to the result. The block around the network has a residual connection already."""
    return x + InSteps.forward(self, x)


@exercise.alternative
class Spelled(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_1, self.w_3 = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.w_2 = nn.Linear(d_ff, d_model, False)

    def forward(self, x):
        z = x @ self.w_1.weight.T
        hidden = z / (1 + torch.exp(-z)) * (x @ self.w_3.weight.T)
        return hidden @ self.w_2.weight.T


@exercise.alternative
class ByGlu(SwiGLU):
    def forward(self, x):
        gate = self.w_1(x)
        return self.w_2(F.glu(torch.cat([gate * self.w_3(x), gate], dim=-1)))
