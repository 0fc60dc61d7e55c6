"""Word windows: every state looks at its neighbours only, all states at once (lesson 01)."""

from einops import einsum
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each token with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n tokens stay n tokens; `weight[0]` meets
    the leftmost token of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError(f"a window needs a middle token, so its width is odd, not {width}")
    # put width // 2 tokens of zeros at both ends of the sentence
    padded = F.pad(x, (0, 0, width // 2, width // 2))
    # cut out the window around each token
    windows = padded.unfold(-2, width, 1)
    # multiply each place of the window by its own matrix, and sum
    return einsum(windows, weight, "... n d_in width, width d_in d_out -> ... n d_out") + bias


def receptive_field(layers: int, width: int) -> int:
    """Count the tokens that one state sees through stacked windows, all of one odd width.

    Without a layer, a state is its own token and sees no other.

    >>> receptive_field(layers=2, width=3)
    5
    """
    # write down the rule that you have measured
    return 1 + layers * (width - 1)


def layers_needed(distance: int, width: int) -> int:
    """Count the layers until at least one state sees both of two tokens, `distance` apart.

    Tokens at distance 0 need no layer. Raises ValueError for an even width, which has no middle,
    and for width 1, which shows no neighbour.

    >>> layers_needed(distance=4, width=3)
    2
    """
    if width % 2 == 0 or width == 1:
        raise ValueError(f"a window needs a middle token, so its width is odd, from 3, not {width}")
    # take the fewest layers whose receptive field holds both tokens
    return -(-distance // (width - 1))
