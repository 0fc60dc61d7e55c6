"""Memory-compressed attention: keys and values, a few words each (lesson 12).

Time O(n^2 d / stride) and memory O(n d), forward and backward: still quadratic, but less.
Source: Liu et al. 2018 ("Generating Wikipedia by summarizing long sequences"), section 4.2.3.
"""

from einops import einsum
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from course_lib.efficient.tiled import tiled_attention

BLOCK = 256  # queries and keys a tile


def compress(
    x: Float[Tensor, "... n d_in"], weight: Float[Tensor, "width d_in d_out"], stride: int
) -> Float[Tensor, "... state d_out"]:
    """Sum up every few words in one state: y_i = sum_w x_(i stride + w) W_w.

    W_0 meets the leftmost word of a state, words after the last one are zeros, and there are
    ceil(n / stride) states. Time O(n d_in d_out width / stride), memory O(n d width / stride).
    Source: Liu et al. 2018, section 4.2.3, where width and stride are 3. Raises ValueError for a
    stride below 1.
    """
    if stride < 1:
        raise ValueError(f"stride counts the words from state to state, so 1 or more, not {stride}")
    n, width = x.shape[-2], len(weight)
    # count the states, the last of which may reach past the last word
    states = -(-n // stride)
    # put words of zeros behind the text, where the last states need them
    missing = (states - 1) * stride + width - n
    padded = F.pad(x, (0, 0, 0, max(0, missing)))
    # lay beside each other the words of one state, and multiply each by its matrix
    words = padded.unfold(-2, width, stride)
    return einsum(words, weight, "... state d_in width, width d_in d_out -> ... state d_out")


def memory_compressed_attention(
    q: Float[Tensor, "... n d_k"],
    k: Float[Tensor, "... n d_k"],
    v: Float[Tensor, "... n d_v"],
    key_weight: Float[Tensor, "width d_k d_k"],
    value_weight: Float[Tensor, "width d_v d_v"],
    stride: int,
) -> Float[Tensor, "... n d_v"]:
    """Attend to states of a few words each: the keys and the values are compressed alike.

    Time O(n^2 d / stride), memory O(n d). Source: Liu et al. 2018, section 4.2.3 and figure 1.
    """
    # compress the keys and the values
    keys, values = compress(k, key_weight, stride), compress(v, value_weight, stride)
    # attend from every word to every state
    return tiled_attention(q, keys, values, BLOCK)
