"""The simpler simple recurrent unit: a decoder's memory at the least cost (lesson 09)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class SSRU(nn.Module):
    """Keep one running state a column: c_t = f_t c_(t-1) + (1 - f_t) x_t W, and return relu(c_t).

    f_t = sigmoid(x_t W_f + b_f), and c_0 = 0. It takes the place of a decoder's self-attention,
    and a new token costs one step whatever the length. Source: Kim et al. 2019, section 3.1.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.w = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.w_f = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.b_f = nn.Parameter(torch.zeros(d_model))

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Run through the tokens from the first to the last; a mask is taken, and not needed."""
        new, keep = x @ self.w, torch.sigmoid(x @ self.w_f + self.b_f)
        state, states = torch.zeros_like(x[..., 0, :]), []
        for token, share in zip(new.unbind(-2), keep.unbind(-2), strict=True):
            state = share * state + (1 - share) * token
            states.append(state)
        return torch.relu(torch.stack(states, dim=-2))
