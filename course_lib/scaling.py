"""Scaling laws: what a model costs, what its size buys, and experts (lesson 12)."""

from collections.abc import Callable

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import softmax
from course_lib.feed_forward import FeedForward


def estimate_parameters(layers: int, d_model: int, d_attention: int, d_ff: int) -> int:
    """Count the weights of a stack's matrices: 2 d_model layers (2 d_attention + d_ff).

    Embeddings, biases and norms are left out. `d_attention` is the size of all heads' queries
    together. Source: Kaplan et al. 2020, table 1.

    >>> estimate_parameters(layers=96, d_model=12288, d_attention=12288, d_ff=4 * 12288)
    173946175488
    """
    # four matrices of attention: queries, keys, values, output
    attention = 4 * d_model * d_attention
    # two of the feed-forward network
    network = 2 * d_model * d_ff
    return layers * (attention + network)


def training_flops(
    parameters: int, tokens: int, layers: int = 0, context: int = 0, d_attention: int = 0
) -> int:
    """Count the floating-point operations of a training: 3 (2 N + 2 layers context d_attention) D.

    D tokens in all; a multiply-add is two operations, and the backward pass takes twice as many as
    the forward pass. With the defaults, which leave out the scores and averages of attention, it
    is 6 N D. A number of operations, not a rate. Source: Kaplan et al. 2020, section 2.1.
    """
    # each weight takes part in one multiply-add a token
    matrices = 2 * parameters
    # scores and averages: a token sees half of the context on average
    attention = 2 * layers * context * d_attention
    # forward once, backward twice as much
    return 3 * (matrices + attention) * tokens


def fit_power_law(
    x: Float[Tensor, " runs"], y: Float[Tensor, " runs"]
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Fit y = coefficient x^(-exponent); returns (coefficient, exponent).

    Least squares between the logarithms, where a power law is a straight line: its slope and height
    are sums, and no ready-made fit or solver is needed. Source: Kaplan et al. 2020, eq. 1.1 to 1.3.
    Raises ValueError for numbers that are not positive, and where all x are the same.
    """
    if min(x.min(), y.min()) <= 0:
        raise ValueError("a power law relates positive numbers: x or y has a 0 or less")
    if (x == x[0]).all():
        raise ValueError("a line needs two points: all x are the same")
    # take logarithms, between which a power law is a straight line
    log_x, log_y = x.log(), y.log()
    # the slope of the least-squares line
    deviation = log_x - log_x.mean()
    slope = (deviation * log_y).sum() / deviation.square().sum()
    # its height at x = 1, where the logarithm is 0
    coefficient = (log_y.mean() - slope * log_x.mean()).exp()
    return coefficient, -slope


def choose_size(runs: list[tuple[float, float, float]], budget: float) -> float:
    """Choose the number of parameters for a budget, from runs (flops, parameters, loss) at others.

    Runs come in any order. Over the logarithm of the parameters, the losses of one budget are close
    to a parabola: where its least-squares parabola is least is the best size of that budget. How
    the best sizes grow with the budget is a power law. Source: Hoffmann et al. 2022, section 3.2.
    Raises ValueError for runs at one budget alone.
    """
    spent = sorted({flops for flops, _, _ in runs})
    if len(spent) < 2:
        raise ValueError("a power law needs two points: there are runs at one budget alone")
    best = []
    for flops in spent:
        # the runs of one budget, over the logarithm of their sizes
        found = [(parameters, loss) for c, parameters, loss in runs if c == flops]
        sizes, losses = torch.tensor(found, dtype=torch.float64).T
        x = sizes.log()
        # the least-squares parabola through their losses
        powers = torch.stack([x.square(), x, torch.ones_like(x)], dim=-1)
        bend, slope, _ = torch.linalg.lstsq(powers, losses.unsqueeze(-1)).solution.flatten()
        # the size where it is least
        best.append((-slope / (2 * bend)).exp())
    # the power law through these sizes, at the new budget
    coefficient, exponent = fit_power_law(torch.tensor(spent), torch.stack(best))
    return (coefficient * budget**-exponent).item()


def compute_optimal(
    flops: float, a: float, b: float, alpha: float, beta: float
) -> tuple[float, float]:
    """Find the parameters N and tokens D, 6 N D = flops, that make a / N^alpha + b / D^beta least.

    Source: Hoffmann et al. 2022, eq. 4: N = G (C/6)^(beta / (alpha + beta)) and
    D = (C/6) / N, with G = (alpha a / (beta b))^(1 / (alpha + beta)). Raises ValueError for an
    argument that is not positive.
    """
    if min(flops, a, b, alpha, beta) <= 0:
        raise ValueError("flops, a, b, alpha and beta are positive numbers")
    # how many parameters times tokens the budget pays for
    pairs = flops / 6
    # where the two terms fall equally fast
    balance = (alpha * a / (beta * b)) ** (1 / (alpha + beta))
    parameters = balance * pairs ** (beta / (alpha + beta))
    return parameters, pairs / parameters


def training_memory(
    parameters: int, sequences: int, context: int, layers: int, d_model: int, heads: int, vocab: int
) -> int:
    """Count the bytes of a training step in 32 bits: 4 (4 N + activations).

    N weights with a gradient and Adam's two averages each, and the activations that the backward
    pass needs: for a token in each block, 14 d_model numbers (with d_ff = 4 d_model) and two rows
    of weights in each head, and two rows of logits at the end. That is what the course's language
    model keeps, but for its norms' means. Source: Korthikanti et al. 2023, section 4, who count
    for 16 bits and with dropout.
    """
    # each weight, its gradient, and Adam's two averages of that
    states = 4 * parameters
    # what a block keeps of a token: 10 vectors as wide as the model, and one of the network's 4 d
    vectors = 14 * d_model
    # and in each head, two rows of weights over the context
    rows = 2 * heads * context
    # what the whole model keeps of a token, with two rows of logits
    activations = layers * (vectors + rows) + 2 * vocab
    return 4 * (states + sequences * context * activations)


def route(
    x: Float[Tensor, "*batch d_model"], w: Float[Tensor, "d_model experts"], k: int
) -> tuple[Int[Tensor, "*batch {k}"], Float[Tensor, "*batch {k}"]]:
    """Choose k experts for each token: returns (experts, weights), the highest score first.

    The scores are x w, and the weights are the softmax over the k chosen ones. However far one
    score is above the others, these are in order too. Source: Shazeer et al. 2017, eq. 3 to 5,
    without the noise. Raises ValueError unless 1 <= k <= experts.
    """
    if not 1 <= k <= w.shape[1]:
        raise ValueError(f"each token takes 1 to {w.shape[1]} experts, not {k}")
    # score every expert
    scores = x @ w
    # keep the k highest
    kept, experts = scores.topk(k, dim=-1)
    # share out the weight among them
    return experts, softmax(kept)


class Mixture(nn.Module):
    """Replace one feed-forward network by several experts, of which each token uses k.

    y = sum over the chosen experts e of weight_e(x) FFN_e(x). An expert sees only the tokens that
    chose it. Time O(n k d_model d_ff), parameters O(experts d_model d_ff). `feed_forward(d_model,
    d_ff)` makes an expert. Source: Shazeer et al. 2017, eq. 1. Raises ValueError unless
    1 <= k <= experts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        experts: int,
        k: int,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
    ):
        super().__init__()
        if not 1 <= k <= experts:
            raise ValueError(f"each token takes 1 to {experts} experts, not {k}")
        self.k = k
        self.w = nn.Parameter(torch.randn(d_model, experts) / d_model**0.5)
        self.experts = nn.ModuleList(feed_forward(d_model, d_ff) for _ in range(experts))

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Send each token through its experts, and add what they return."""
        rows = x.reshape(-1, x.shape[-1])
        # choose the experts of each token
        chosen, weights = route(rows, self.w, self.k)
        y = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            # find the tokens that chose this expert, and in which of their k places
            token, place = torch.where(chosen == number)
            # send these alone through it
            done = weights[token, place][:, None] * expert(rows[token])
            # add each result, weighted, to its token
            y = y.index_add(0, token, done)
        return y.reshape(x.shape)


def load_balance(
    probabilities: Float[Tensor, "tokens experts"], chosen: Int[Tensor, "tokens k"]
) -> Float[Tensor, ""]:
    """Measure how unevenly experts are used: experts sum_e share_e mean_e.

    share_e is expert e's share of all choices, and mean_e its mean probability: 1 where all
    experts are equal. Added to a loss, its gradient lowers the probability of the experts that are
    chosen too often. Source: Fedus et al. 2022, eq. 4 to 6.
    """
    _, experts = probabilities.shape
    # each expert's share of the choices, which has no gradient
    share = F.one_hot(chosen, experts).to(probabilities).mean(dim=(0, 1))
    # each expert's mean probability, which has one
    mean = probabilities.mean(dim=0)
    return experts * einsum(share, mean, "expert, expert ->")
