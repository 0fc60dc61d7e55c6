"""The block of 2017, with parts of later years in their places (lesson 15)."""

import itertools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.add_norm import layer_norm, rms_norm
from course_lib.efficient.window import window_mask
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import MultiHeadAttention
from course_lib.positions import rotary, sinusoidal
from course_lib.real_models import GroupedQueryAttention, SwiGLU, grouped_query_attention
from course_lib.scaling import Mixture
from course_lib.transformer import EncoderBlock

# what is swapped, and who published it when; an optimizer is no part of a model
SWAPS = {
    "pre-norm": "Xiong et al. 2020",
    "RMSNorm": "Zhang & Sennrich 2019",
    "SwiGLU": "Shazeer 2020",
    "rotary": "Su et al. 2021",
    "grouped queries": "Ainslie et al. 2023",
    "QK-norm": "Henry et al. 2020",
    "local and global": "Beltagy et al. 2020",
    "latent cache": "DeepSeek-AI 2024",
    "mixture": "Shazeer et al. 2017",
    "Muon": "Jordan et al. 2024",
}
# together, a latent vector takes the place of shared keys and values
ALL = tuple(name for name in SWAPS if name != "grouped queries")

LAYERS, D_MODEL, HEADS, D_FF, N = 4, 64, 4, 256, 64
SIZES = (LAYERS, D_MODEL, HEADS, D_FF, N)  # as `LanguageModel` takes them, after the vocabulary
GROUPS, LATENT = 2, 32  # pairs of key and value heads; numbers of a latent vector
REACH, GLOBAL_EVERY = 16, 4  # a local layer sees so many tokens; each fourth layer is global
EXPERTS, CHOSEN = 8, 2


@dataclass(frozen=True)
class Components:
    """What a block is made of: the course's components, or your own in their places."""

    block: Callable[..., nn.Module] = EncoderBlock
    attention: Callable[..., nn.Module] = MultiHeadAttention
    attend: Callable[..., Tensor] = grouped_query_attention
    feed_forward: Callable[[int, int], nn.Module] = FeedForward
    swiglu: Callable[[int, int], nn.Module] = SwiGLU
    mixture: Callable[..., nn.Module] = Mixture
    layer_norm: Callable[[Tensor, Tensor, Tensor], Tensor] = layer_norm
    rms_norm: Callable[[Tensor, Tensor], Tensor] = rms_norm
    rotary: Callable[[Tensor, Tensor], Tensor] = rotary


OURS = Components()


def swapped(swaps: Collection[str], own: Components = OURS) -> dict[str, Any]:
    """Return what `LanguageModel` takes for the block of 2017 with these parts swapped.

    Beside SWAPS, "no positions" leaves the sinusoids away.
    """

    def without_bias(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        return own.rms_norm(x, gain)

    def network(d_model: int, d_ff: int) -> nn.Module:
        if "SwiGLU" not in swaps:
            return own.feed_forward(d_model, d_ff)
        return own.swiglu(d_model, 2 * d_ff // 3)  # three matrices for two

    def mixture(d_model: int, d_ff: int) -> nn.Module:
        return own.mixture(d_model, d_ff // CHOSEN, EXPERTS, CHOSEN, network)

    layers = itertools.count(1)

    def attention(d_model: int, heads: int) -> nn.Module:
        is_local = "local and global" in swaps and next(layers) % GLOBAL_EVERY
        rule = partial(_attend, swaps, own, REACH if is_local else N)
        if "grouped queries" in swaps:
            return GroupedQueryAttention(d_model, heads, GROUPS, rule)
        made: Any = own.attention(d_model, heads, rule)
        if "latent cache" in swaps:
            latent = nn.Linear(d_model, LATENT)
            made.w_k = nn.Sequential(latent, nn.Linear(LATENT, d_model))
            made.w_v = nn.Sequential(latent, nn.Linear(LATENT, d_model))
        return made

    norm_layer = without_bias if "RMSNorm" in swaps else own.layer_norm
    inside = {
        "attention": attention,
        "feed_forward": mixture if "mixture" in swaps else network,
        "norm_layer": norm_layer,
    }

    def block(d_model: int, heads: int, d_ff: int, _: str) -> nn.Module:
        return own.block(d_model, heads, d_ff, "pre" if "pre-norm" in swaps else "post", **inside)

    positions = partial(Scaled, added=not {"rotary", "no positions"}.intersection(swaps))
    return {"positions": positions, "block": block, "norm_layer": norm_layer}


class Scaled(nn.Module):
    """Scale the entries of tokens to variance 1 and add sinusoids, as in 2017, or add nothing."""

    waves: Tensor

    def __init__(self, max_length: int, d_model: int, added: bool):
        super().__init__()
        waves = sinusoidal(max_length, d_model) if added else torch.zeros(max_length, d_model)
        self.register_buffer("waves", waves, persistent=False)

    def forward(self, x: Float[Tensor, "*batch n d_model"]) -> Float[Tensor, "*batch n d_model"]:
        """Return the tokens with their positions."""
        return x.shape[-1] ** 0.5 * x + self.waves[: x.shape[-2]]


def _attend(
    swaps: Collection[str],
    own: Components,
    reach: int,
    q: Float[Tensor, "*batch heads n d_k"],
    k: Float[Tensor, "*batch groups n d_k"],
    v: Float[Tensor, "*batch groups n d_k"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch heads n d_k"]:
    """Attend to `reach` tokens, with queries and keys normalised and turned if that is swapped."""
    n, d_k = q.shape[-2:]
    if "QK-norm" in swaps:
        q, k = (own.rms_norm(x, torch.ones(d_k)) for x in (q, k))
    if "rotary" in swaps:
        q, k = (own.rotary(x, torch.arange(n)) for x in (q, k))
    near = window_mask(n, 2 * (reach - 1))
    return own.attend(q, k, v, near if mask is None else mask & near)


def cached(swaps: Collection[str]) -> int:
    """Return how many numbers all layers keep for a text of N tokens."""
    each = 2 * D_MODEL
    if "grouped queries" in swaps:
        each = each * GROUPS // HEADS
    if "latent cache" in swaps:
        each = LATENT
    local = LAYERS - LAYERS // GLOBAL_EVERY if "local and global" in swaps else 0
    return each * ((LAYERS - local) * N + local * REACH)
