"""SwiGLU: the feed-forward network with a gate, as today's language models have it (lesson 09)."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class SwiGLU(nn.Module):
    """Let one half of the hidden layer open and close the other: W_2 (swish(W_1 x) * W_3 x).

    Three matrices, no biases, so d_ff is often 2/3 of what a plain network would have. Source:
    Shazeer 2020, eq. 6, whose W, V and W_2 are w_1, w_3 and w_2 here.
    """

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff, bias=False)
        self.w_2 = nn.Linear(d_ff, d_model, bias=False)
        self.w_3 = nn.Linear(d_model, d_ff, bias=False)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Send every word through the gated network."""
        return self.w_2(F.silu(self.w_1(x)) * self.w_3(x))
