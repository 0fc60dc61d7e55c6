"""SwiGLU: the feed-forward network with a gate, as today's language models have it (lesson 09)."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class SwiGLU(nn.Module):
    """Multiply one hidden layer by the swish of another: W_2 (swish(W_1 x) * W_3 x).

    swish(z) = z sigmoid(z). `w_1` and `w_3` are `nn.Linear` from d_model to d_ff, `w_2` is one
    from d_ff to d_model, and none of them has a bias: weights are copied by these names. Source:
    Shazeer 2020, eq. 6, whose W, V and W_2 are w_1, w_3 and w_2 here.
    """

    def __init__(self, d_model: int, d_ff: int):
        # call the constructor of nn.Module, then make the three matrices
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff, bias=False)
        self.w_2 = nn.Linear(d_ff, d_model, bias=False)
        self.w_3 = nn.Linear(d_model, d_ff, bias=False)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Send every token through the gated network."""
        # compute the gate
        gate = F.silu(self.w_1(x))
        # multiply the other hidden layer by it, and return to d_model
        return self.w_2(gate * self.w_3(x))
