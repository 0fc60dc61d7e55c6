"""The feed-forward network of BERT and GPT: a GELU where the paper has max (lesson 08)."""

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def gelu_feed_forward(
    x: Float[Tensor, "... d_model"],
    w_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    w_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "... d_model"]:
    """Send every word through the same small network: g(x W_1 + b_1) W_2 + b_2.

    g(h) = h P(z <= h), with z unit normal: it bends where max(0, h) has an edge. Source: Hendrycks
    & Gimpel 2016, section 2. Costs as much as `feed_forward`.
    """
    return F.gelu(x @ w_1 + b_1) @ w_2 + b_2
