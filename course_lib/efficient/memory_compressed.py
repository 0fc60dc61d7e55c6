"""Memory-compressed attention: keys and values, a few tokens each (lesson 14).

Time O(n^2 d / stride) and memory O(n d), forward and backward: still quadratic, but less.
Source: Liu et al. 2018 ("Generating Wikipedia by summarizing long sequences"), section 4.2.3.
"""

from functools import partial

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.efficient.masking import Keys, Mask, Output, Queries, Values, hiding, read_mask
from course_lib.efficient.tiled import TILE, tiled_attention
from course_lib.efficient.variant import Variant


def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Make one state of every few tokens: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost token of a state, tokens after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    if stride < 1:
        raise ValueError(
            f"stride counts the tokens from state to state, so 1 or more, not {stride}"
        )
    n, width = x.shape[-2], len(weight)
    # count the states, the last of which may reach past the last token
    states = -(-n // stride)
    # put zeros behind the text, where the last states need them
    missing = (states - 1) * stride + width - n
    padded = F.pad(x, (0, 0, 0, max(0, missing)))
    # lay beside each other the tokens of one state, and multiply each by its matrix
    tokens = padded.unfold(-2, width, stride)
    return einsum(tokens, weight, "... state d_in width, width d_in d_out -> ... state d_out")


def memory_compressed_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    key_weight: Float[Tensor, "width d_k d_k"],
    value_weight: Float[Tensor, "width d_v d_v"],
    stride: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to states of a few tokens each: the keys and the values are compressed alike.

    Time O(n^2 d / stride), memory O(n d). Source: Liu et al. 2018, section 4.2.3 and figure 1.
    """
    # compress the keys and the values
    keys, values = compress(k, key_weight, stride), compress(v, value_weight, stride)
    # attend from every token to every state
    return tiled_attention(q, keys, values, TILE)


class MemoryCompressed(nn.Module):
    """Attend to states of `width` tokens each, in heads of d_k numbers.

    Begins with the mean of the tokens. A state whose tokens are all hidden is hidden. Source: Liu
    et al. 2018, section 4.2.3, where each head has its own weights.
    """

    def __init__(self, d_k: int, width: int = 3):
        super().__init__()
        mean = torch.eye(d_k).expand(width, d_k, d_k) / width
        self.key_weight, self.value_weight = (nn.Parameter(mean.clone()) for _ in range(2))

    def forward(self, q: Queries, k: Keys, v: Values, mask: Mask = None) -> Output:
        """Attend; hidden tokens add nothing to a state."""
        real, _ = read_mask(mask, q, k)
        width = len(self.key_weight)
        if real is not None:
            k, v = (x * real.unsqueeze(-1) for x in (k, v))
            real = F.pad(real, (0, -k.shape[-2] % width)).unflatten(-1, (-1, width)).any(-1)
        keys, values = compress(k, self.key_weight, width), compress(v, self.value_weight, width)
        return hiding(partial(tiled_attention, block=TILE), q, keys, values, real)


VARIANT = Variant(
    name="memory-compressed",
    function=memory_compressed_attention,
    rule=MemoryCompressed,
    twin="`F.conv1d`, `F.scaled_dot_product_attention`",
    example=lambda n, d_k: {"d_k": d_k},
    experiment=lambda n, d_k: {"d_k": d_k, "width": 4},
    benchmark=lambda n, d_k: {"d_k": d_k},
    another_text=True,
)
