"""A frozen linear layer with a trained change of low rank beside it."""

import copy
import math

import torch
from torch import Tensor, nn

from course_lib.answers.answer import Misfit, Probe
from course_lib.assistant import LowRankLinear
from course_lib.checking.exercise import Draw, Exercise

# a layer so large that its initial parameters show how they were drawn
D_IN, D_OUT, RANK = 64, 48, 100
LARGE = (Probe("linear", (D_IN, D_OUT)), RANK, 8.0)
# whose own numbers are drawn before: what is drawn after them is something else
OTHER = (Probe("linear", (D_IN, D_OUT + 1)), RANK, 8.0)


def how_large(w: Tensor) -> float:
    """Compare initial numbers with what `nn.Linear` draws: 1 if they have its spread."""
    return float(w.square().mean().mul(3 * D_IN).sqrt())


def without_drawn(result):
    """Keep of initial numbers, which are free, their size, and whether they keep to the bounds."""
    if not isinstance(result, Tensor) or result.shape not in ((RANK, D_IN), (D_OUT, RANK)):
        return result
    if result.shape == (D_OUT, RANK):
        return torch.tensor([result.any()])
    centred = result.mean().abs() < 0.1 * result.abs().mean()
    bounded = result.abs().max() * D_IN**0.5 < 1.001
    size = round(2 * math.log2(how_large(result) + 1e-3))
    inner = (result.abs() * D_IN**0.5 < 0.5).float().mean()
    return torch.tensor([size, int(centred), int(bounded), int(inner > 0.25)])


exercise = Exercise(
    reference=LowRankLinear,
    method="forward",
    constructor=True,
    lesson="17",
    title="A change of low rank",
    minutes=10,
    difficulty=2,
    canonical=without_drawn,
    hints=(
        "`nn.Linear` keeps its weight as (d_out, d_in), and a layer knows both sizes: "
        "`linear.in_features` and `linear.out_features`. Which of the two belongs to `a`, which to "
        "`b`, and where is the rank in their shapes?",
        "A tensor becomes a parameter by `nn.Parameter`. How do you tell all parameters of a "
        "module that they need no gradient?",
        "Write the shapes under x, a and b: (..., d_in), (rank, d_in), (d_out, rank). Which of the "
        "two matrices does x meet first, and which of its axes is summed?",
        "What does the layer return before the first step of training, and which of the two "
        "parameters makes it so? Which gradients would there be if both were zero?",
    ),
    clauses={
        "its weight and bias get no gradients": "bias_still_trained",
        "The given layer is kept as `linear`": "the given layer itself",
        "is drawn as `nn.Linear` draws its weight": "drawn_with_variance_one",
        "of shape (rank, d_in)": "ShapesTurned",
        "begins with zeros": "both_random",
    },
)


def layer(d_in: int, d_out: int, rank: int, alpha: float, bias: bool = True) -> tuple:
    """List a constructor's arguments."""
    return Probe("linear", (d_in, d_out, bias)), rank, alpha


@exercise.cases
def cases(draw: Draw):
    yield "rank 1", (draw.normal(2, 3),), layer(3, 2, 1, 1.0)
    yield "rank 2, alpha 4", (draw.normal(3, 5),), layer(5, 4, 2, 4.0)
    yield "rank 3, alpha a fraction", (draw.normal(2, 4),), layer(4, 6, 3, 0.5)
    yield "without a bias", (draw.normal(4, 6),), layer(6, 3, 2, 3.0, bias=False)
    yield "alpha as large as the rank", (draw.normal(3, 5),), layer(5, 6, 4, 4.0)
    yield "as many numbers out as in", (draw.normal(5, 4),), layer(4, 4, 2, 8.0)
    yield "three sizes the same", (draw.normal(2, 3),), layer(3, 3, 3, 2.0)
    yield "a single token, not in a text", (draw.normal(4),), layer(4, 5, 2, 1.0)
    yield "a batch of texts", (draw.normal(3, 4, 5),), layer(5, 2, 3, 6.0)
    yield "two batch dimensions", (draw.normal(2, 3, 4, 6),), layer(6, 5, 2, 16.0, bias=False)


@exercise.requires("b is zero at first, so the layer begins as the one that it was given")
def begins_as_given(answer, draw: Draw):
    b = answer(build=LARGE, initial="b")
    return b.shape == (D_OUT, RANK) and not b.any()


@exercise.requires("the given layer itself is kept, and no copy of it")
def kept(answer, draw: Draw):
    build = (Probe("linear_that_has_no_copy", (5, 3)), 2, 4.0)
    found = answer(build=build, initial="linear.weight")
    return torch.equal(found, torch.arange(15.0).view(3, 5))


@exercise.requires("a is drawn as `nn.Linear` draws its weight, for each layer anew")
def drawn_as_linear(answer, draw: Draw):
    a, other = (answer(build=build, initial="a") for build in (LARGE, OTHER))
    # the standard error of the size is 0.006
    near = abs(how_large(a) - 1) < 0.05 and abs(float(a.mean())) * D_IN**0.5 < 0.05
    # half of what is drawn uniformly is in the inner half, and nothing is beyond the bounds
    size = a.abs() * D_IN**0.5
    near = near and size.max() < 1.001 and abs(float((size < 0.5).float().mean()) - 0.5) < 0.05
    return a.shape == (RANK, D_IN) and near and not torch.equal(a, other)


@exercise.requires("what the layer adds to the frozen one grows in proportion to alpha")
def alpha_scales(answer, draw: Draw):
    x = draw.normal(4, 5)
    one, three, seven = (answer(x, build=layer(5, 3, 2, alpha)) for alpha in (1.0, 3.0, 7.0))
    added = three - one
    return added.abs().max() > 1e-3 and torch.allclose(seven - one, 3 * added, atol=1e-4)


@exercise.steps
class InSteps(LowRankLinear):
    """The layer in steps, so that a mistake is one step gone wrong."""

    def __init__(self, linear, rank, alpha):
        nn.Module.__init__(self)
        self.linear, self.alpha = self.frozen(linear), alpha
        self.a = nn.Parameter(self.drawn(rank, linear.in_features))
        self.b = nn.Parameter(self.begun(linear.out_features, rank))

    def frozen(self, linear):
        return linear.requires_grad_(False)

    def drawn(self, rank, d_in):
        return nn.Linear(d_in, rank, bias=False).weight.detach()

    def begun(self, d_out, rank):
        return torch.zeros(d_out, rank)

    def scale(self):
        return self.alpha / self.a.shape[0]

    def low(self, x):
        return x @ self.a.mT @ self.b.mT

    def forward(self, x):
        return self.linear(x) + self.scale() * self.low(x)


@exercise.mistake(step="scale")
def not_scaled(self):
    """The change was added as it is: `alpha` and the rank scale nothing. Which factor does the
    formula put before B A?"""
    return 1.0


@exercise.mistake(step="scale")
def scaled_by_alpha(self):
    """The change was multiplied by alpha alone, so a larger rank makes a larger change. By what is
    alpha divided?"""
    return self.alpha


@exercise.mistake(step="scale")
def alpha_times_rank(self):
    """The change was multiplied by alpha times the rank, where alpha is to be divided by the
    rank."""
    return self.alpha * self.a.shape[0]


@exercise.mistake(step="scale")
def divided_by_rank_alone(self):
    """The change was divided by the rank, and `alpha` was never used."""
    return 1 / self.a.shape[0]


@exercise.mistake(step="scale")
def divided_by_alpha(self):
    """The fraction is upside down: the change was multiplied by rank / alpha."""
    return self.a.shape[0] / self.alpha


@exercise.mistake(step="scale")
def by_root_of_rank(self):
    """The change was scaled by alpha over the root of the rank. That is another rule (rsLoRA); here
    alpha is divided by the rank itself."""
    return self.alpha / self.a.shape[0] ** 0.5


@exercise.mistake(step="scale")
def divided_by_d_in(self):
    """alpha was divided by d_in, the second size of `a`. The rank is its first."""
    return self.alpha / self.a.shape[1]


@exercise.mistake(step="scale")
def divided_by_d_out(self):
    """alpha was divided by d_out, the first size of `b`. The rank is its second."""
    return self.alpha / self.b.shape[0]


@exercise.mistake(step="frozen")
def still_trained(self, linear):
    """The given layer still gets gradients: all its weights would be trained too, and LoRA would
    save nothing. What freezes a module's parameters?"""
    return linear


@exercise.mistake(step="frozen")
def bias_still_trained(self, linear):
    """The weight is frozen, but the bias still gets gradients. The whole layer is to stay as it
    is."""
    linear.weight.requires_grad_(False)
    return linear


@exercise.mistake
def cut_off(self, x):
    """The frozen layer ran without gradients, so none passes through it to x, and the layers below
    do not learn through it. Its parameters are to be frozen; the path through it is not."""
    return self.linear(x).detach() + self.scale() * self.low(x)


@exercise.mistake(step="begun")
def both_random(self, d_out, rank):
    """Both matrices are random at first, so the layer begins as another one than it was given, and
    what the model knew is disturbed. Which of the two is to be zero?"""
    return torch.randn(d_out, rank) / rank**0.5


@exercise.mistake(step="drawn")
def both_zero(self, rank, d_in):
    """Both matrices are zero at first: the gradient of each has the other one as a factor, so both
    are zero forever and nothing is ever learned. Which of the two is to be random?"""
    return torch.zeros(rank, d_in)


@exercise.mistake(step="frozen")
def copied(self, linear):
    """A copy of the given layer was kept, and the given one still gets gradients: there are two of
    them now. Which object should be frozen?"""
    return copy.deepcopy(linear).requires_grad_(False)


@exercise.mistake(step="drawn")
def from_one_seed(self, rank, d_in):
    """`a` was drawn from a seed of its own, so every layer begins with the same numbers. Whose
    random numbers does `nn.Linear` draw?"""
    generator = torch.Generator().manual_seed(0)
    return (2 * torch.rand(rank, d_in, generator=generator) - 1) / d_in**0.5


@exercise.mistake
class ZeroAndRandomExchanged(InSteps):
    """`a` is zero at first and `b` is random. This learns too, but the formula of the paper and the
    lesson has it the other way: `a` is drawn, `b` begins with zeros."""

    def drawn(self, rank, d_in):
        return torch.zeros(rank, d_in)

    def begun(self, d_out, rank):
        return torch.randn(d_out, rank) / rank**0.5


@exercise.mistake(step="drawn")
def drawn_with_variance_one(self, rank, d_in):
    """`a` was drawn with variance 1, so what it makes of x grows with the root of d_in, and the
    first steps are far too large. `nn.Linear` draws between -1/sqrt(d_in) and 1/sqrt(d_in)."""
    return torch.randn(rank, d_in)


@exercise.mistake(step="drawn")
def drawn_with_variance_of_d_in(self, rank, d_in):
    """`a` was drawn from a normal distribution of standard deviation 1/sqrt(d_in). `nn.Linear`
    draws uniformly between -1/sqrt(d_in) and 1/sqrt(d_in), which is narrower."""
    return torch.randn(rank, d_in) / d_in**0.5


@exercise.mistake(step="drawn")
def kaiming_as_for_relu(self, rank, d_in):
    """`a` was drawn by `kaiming_uniform_` as for a network of ReLUs: without `a=5**0.5`, as
    `nn.Linear` has it, the numbers are sqrt(6) times larger."""
    return nn.init.kaiming_uniform_(torch.empty(rank, d_in))


@exercise.mistake(step="drawn")
def kaiming_normal(self, rank, d_in):
    """`a` was drawn by `kaiming_normal_`: as wide as it should be, but some numbers lie beyond
    1/sqrt(d_in). `nn.Linear` draws uniformly between the bounds."""
    return nn.init.kaiming_normal_(torch.empty(rank, d_in), a=5**0.5)


@exercise.mistake(step="drawn")
def drawn_by_xavier(self, rank, d_in):
    """`a` was drawn by Xavier's rule, which also looks at the number of outputs. `nn.Linear` looks
    at d_in alone."""
    return nn.init.xavier_uniform_(torch.empty(rank, d_in))


@exercise.mistake(step="drawn")
def drawn_above_zero(self, rank, d_in):
    """`a` was drawn between 0 and 1: `torch.rand` gives no negative numbers. `nn.Linear` draws
    between -1/sqrt(d_in) and 1/sqrt(d_in)."""
    return torch.rand(rank, d_in)


@exercise.mistake(raises=Misfit)
class ShapesTurned(InSteps):
    """`a` is (d_in, rank) and `b` is (rank, d_out). Both are to be stored as `nn.Linear` stores its
    weight, outputs first: `a` as (rank, d_in), `b` as (d_out, rank)."""

    def drawn(self, rank, d_in):
        return InSteps.drawn(self, rank, d_in).mT

    def begun(self, d_out, rank):
        return torch.zeros(rank, d_out)


@exercise.mistake(raises=Misfit)
class NamesExchanged(InSteps):
    """`a` and `b` have changed places: x meets `a` first, which goes down to the rank, and `b` goes
    up to d_out. By these names the trained matrices are saved."""

    def drawn(self, rank, d_in):
        return torch.zeros(self.linear.out_features, rank)

    def begun(self, d_out, rank):
        return InSteps.drawn(self, rank, self.linear.in_features)


@exercise.mistake(raises=(Misfit, AttributeError))
class NoParameters(InSteps):
    """`a` and `b` are no parameters of this layer. A plain tensor is seen by no optimizer, and an
    `nn.Linear` of its own keeps its parameter under another name: make both by `nn.Parameter`."""

    def __init__(self, linear, rank, alpha):
        nn.Module.__init__(self)
        self.linear, self.alpha = self.frozen(linear), alpha
        self.a = self.drawn(rank, linear.in_features)
        self.b = self.begun(linear.out_features, rank)


@exercise.mistake(step="__init__", raises=AttributeError)
def no_module(self, linear, rank, alpha):
    """`super().__init__()` is missing, so torch has nowhere to put the layer and the parameters. It
    has to come before the first of them."""
    self.linear = linear


@exercise.mistake
def frozen_layer_left_out(self, x):
    """Only the change was returned: the frozen layer, with all that the model knows, was left
    out."""
    return self.scale() * self.low(x)


@exercise.mistake
def change_left_out(self, x):
    """Only the frozen layer was asked: `a` and `b` are never used, so nothing could be learned."""
    return self.linear(x)


@exercise.mistake
def bias_lost(self, x):
    """The bias is missing: the weight was used by itself. `self.linear(x)` adds the bias too, where
    there is one."""
    return x @ self.linear.weight.mT + self.scale() * self.low(x)


@exercise.mistake
def bias_added_twice(self, x):
    """The bias was added twice: `self.linear(x)` has added it already."""
    found = InSteps.forward(self, x)
    return found if self.linear.bias is None else found + self.linear.bias


@exercise.mistake
def all_of_it_scaled(self, x):
    """The frozen layer was scaled too: the factor belongs to the change alone. Where does the
    bracket close?"""
    return self.scale() * (self.linear(x) + self.low(x))


@exercise.mistake
def multiplied(self, x):
    """The change was multiplied with what the frozen layer returns, number by number. The formula
    adds it."""
    return self.linear(x) * (self.scale() * self.low(x))


@exercise.mistake(raises=RuntimeError)
def change_of_the_output(self, x):
    """The change was made of what the frozen layer returns. Both read the same x, side by side: how
    many numbers does `a` expect?"""
    found = self.linear(x)
    return found + self.scale() * self.low(found)


@exercise.mistake(raises=RuntimeError)
def not_turned(self, x):
    """x met `a` as it is stored, outputs first. A row of x has d_in numbers: which axis of `a` has
    as many?"""
    return self.linear(x) + self.scale() * (x @ self.a @ self.b)


@exercise.mistake
def relu_between(self, x):
    """There is a nonlinearity between the two matrices. Then the change is no matrix, and cannot be
    merged into the weight."""
    return self.linear(x) + self.scale() * (torch.relu(x @ self.a.mT) @ self.b.mT)


@exercise.mistake
def change_subtracted(self, x):
    """The change was subtracted. The formula adds it."""
    return self.linear(x) - self.scale() * self.low(x)


@exercise.alternative
class Spelled(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        for parameter in linear.parameters():
            parameter.requires_grad = False
        bound = linear.in_features**-0.5
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.a = nn.Parameter(torch.empty(rank, linear.in_features).uniform_(-bound, bound))
        self.alpha, self.rank = alpha, rank

    def forward(self, x):
        change = torch.einsum("...i,ri,or->...o", x, self.a, self.b)
        return torch.add(self.linear(x), change, alpha=self.alpha / self.rank)


@exercise.alternative
class ByOneMatrix(LowRankLinear):
    def forward(self, x):
        rank = self.b.shape[-1]
        weight = self.linear.weight + self.b @ self.a * (self.alpha / rank)
        return nn.functional.linear(x, weight, self.linear.bias)
