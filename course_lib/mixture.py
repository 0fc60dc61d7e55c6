"""Mixture of experts: more parameters, not more work for a token (12_experts)."""

from collections.abc import Callable

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import softmax
from course_lib.feed_forward import FeedForward


def route(
    x: Float[Tensor, "*batch d_model"], w: Float[Tensor, "d_model experts"], k: int
) -> tuple[Int[Tensor, "*batch {k}"], Float[Tensor, "*batch {k}"]]:
    """Choose k experts for each token: returns (experts, weights), the highest score first.

    The scores are x w, and the weights are the softmax over the k chosen ones. Source: Shazeer et
    al. 2017, eq. 3 to 5, without the noise. Raises ValueError unless 1 <= k <= experts.
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
