"""An encoder-decoder of gated convolutions, in the frame of the Transformer (lesson 12).

The blocks of Gehring et al. 2017, in the place of the Transformer's: windows for the tokens of one
text, attention from the decoder to the encoder alone. (ByteNet, of Kalchbrenner et al. 2016, has
windows with gaps, and no attention at all.) Embedding, positions and norms are the Transformer's,
so what is compared is how tokens meet.
"""

from typing import Literal

import torch
from einops import einsum
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.multi_head import AsCrossAttention, MultiHeadAttention
from course_lib.transformer import add_and_norm

WIDTH = 3  # tokens of a window


class GatedConvolution(nn.Module):
    """Mix each token with those beside it, and gate the result: y = a sigma(b).

    [a b]_i = bias + sum_k x_(i + k - before) W_k: one window gives the content a and the gate b.
    Where `causal`, a window ends with its own token, otherwise the token is in its middle. Tokens
    outside the text are zeros. Source: Gehring et al. 2017, section 3.2; the weights begin as in
    their section 3.5.
    """

    def __init__(self, d_model: int, width: int, causal: bool):
        super().__init__()
        self.before = width - 1 if causal else width // 2
        inputs = width * d_model
        self.weight = nn.Parameter(torch.randn(width, d_model, 2 * d_model) * (4 / inputs) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(2 * d_model))

    def forward(
        self, x: Float[Tensor, "*batch n d_model"], mask: Bool[Tensor, "*#batch 1 #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return a state for each token; tokens where `mask` is False are read as zeros."""
        if mask is not None:
            x = x * mask.mT
        width = len(self.weight)
        # lay the tokens of each window beside each other, and multiply each by its matrix
        windows = F.pad(x, (0, 0, self.before, width - 1 - self.before)).unfold(-2, width, 1)
        mixed = einsum(windows, self.weight, "... n d_in width, width d_in d_out -> ... n d_out")
        # let one half say how much of the other passes
        return F.glu(mixed + self.bias, dim=-1)


class ConvolutionalEncoderBlock(nn.Module):
    """A gated convolution inside its add and norm, in the place of an `EncoderBlock`.

    It has neither heads nor a feed-forward network: the gate is its nonlinearity.
    """

    def __init__(self, d_model: int, heads: int, d_ff: int, norm: Literal["post", "pre"] = "post"):
        super().__init__()
        self.convolution = add_and_norm(norm)(
            GatedConvolution(d_model, WIDTH, causal=False), d_model
        )

    def forward(
        self, x: Float[Tensor, "*batch n d_model"], mask: Bool[Tensor, "*#batch 1 #n"] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """Let each token meet its neighbours, where `mask` is True."""
        return self.convolution(x, mask)


class ConvolutionalDecoderBlock(nn.Module):
    """A causal gated convolution, then attention to the source: in place of a `DecoderBlock`.

    Attention in every block is that of Gehring et al. 2017, section 3.3, with the Transformer's
    score. No mask is needed among the target's own tokens: a causal window has no future.
    """

    def __init__(self, d_model: int, heads: int, d_ff: int, norm: Literal["post", "pre"] = "post"):
        super().__init__()
        add = add_and_norm(norm)
        self.convolution = add(GatedConvolution(d_model, WIDTH, causal=True), d_model)
        across = AsCrossAttention(MultiHeadAttention(d_model, heads))
        self.cross_attention = add(across, d_model)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each token meet those before it, then the source, where `memory_mask` is True."""
        return self.cross_attention(self.convolution(x), memory, memory_mask)
