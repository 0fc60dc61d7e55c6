"""The feed-forward network with a squared ReLU (lesson 10)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class SquaredReLU(nn.Module):
    """Widen each token, cut off what is negative, square the rest, and bring it back.

    W_2 max(0, W_1 x)^2, two matrices without biases. Source: So et al. 2021, section 3.
    """

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff, bias=False)
        self.w_2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Send every token through the network."""
        return self.w_2(torch.relu(self.w_1(x)).square())
