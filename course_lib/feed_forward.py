"""The feed-forward network, and the smallest block that can be stacked (lesson 05)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.masks import causal_mask
from course_lib.positions import sinusoidal
from course_lib.self_attention import SelfAttention


def feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every token through the same small network: max(0, x W_1 + b_1) W_2 + b_2.

    No token meets another here. Source: Vaswani et al. 2017, eq. 2, where d_ff = 4 d_model.
    """
    # widen each token, and cut off what is negative
    hidden = torch.relu(x @ w_1 + b_1)
    # bring it back to the size of a token
    return hidden @ w_2 + b_2


def gelu_feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every token through the same small network: g(x W_1 + b_1) W_2 + b_2.

    g(h) = h P(z <= h), with z unit normal: it bends where max(0, h) has an edge. Source: Hendrycks
    & Gimpel 2016, section 2. Costs as much as `feed_forward`.
    """
    return F.gelu(x @ w_1 + b_1) @ w_2 + b_2


class FeedForward(nn.Module):
    """Hold the two matrices and biases of `feed_forward`, and learn them.

    `network(x, w_1, b_1, w_2, b_2)` is what they are for. The matrices begin with variance one over
    the number of inputs, so that the products of a token of variance 1 have variance 1 (LeCun et
    al. 1998, section 4.6); `nn.Linear` draws a third of it.
    """

    def __init__(self, d_model: int, d_ff: int, network: Callable[..., Tensor] = feed_forward):
        super().__init__()
        self.network = network
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**0.5)
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Send every token through the network."""
        return self.network(x, self.w_1, self.b_1, self.w_2, self.b_2)


class MinimalBlock(nn.Module):
    """The four necessities of a self-attention block, and nothing else.

    Position representations, self-attention, masking, nonlinearity: with p the positions,
    y = feed_forward(attention(x + p, causal mask)). One head, and neither residual connections
    nor norms. The positions are added inside, to the block's own input; a stack of blocks adds
    them at each level. `positions(n, d_model)` and `attention(d_model, d_k, d_v)` make its parts.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        positions: Callable[[int, int], Tensor] = sinusoidal,
        attention: Callable[[int, int, int], nn.Module] = SelfAttention,
    ):
        super().__init__()
        self.positions = positions
        self.attention = attention(d_model, d_model, d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Let each token attend to itself and to those before it, then apply the network."""
        n, d_model = x.shape[-2:]
        # add its position to each token
        x = x + self.positions(n, d_model).to(x)
        # let the tokens attend to each other, but not to the future
        seen = self.attention(x, causal_mask(n, device=x.device))
        # send what comes out through the feed-forward network
        return self.feed_forward(seen)
