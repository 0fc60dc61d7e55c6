"""Attention layers of 256 numbers a word and 4 heads: ours, torch's, and those of packages.

Each is built for n words and takes them (1, n, 256). All settings are alike, all project queries,
keys (LSH both by one matrix), values and results, and none drops anything.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.efficient.variants import VARIANTS
from course_lib.multi_head import MultiHeadAttention

D, HEADS, D_K = 256, 4, 64
# what the table sets ours to for benchmarks: the same for the others
WIDTH, MIXTURES, BLOCK, ROUNDS, RANDOM = 256, 256, 64, 2, 3

Layer = Callable[[Tensor], Tensor]


def ours(n: int, name: str, **more: Any) -> Layer:
    """Let the words attend to themselves by a variant of ours."""
    variant = VARIANTS[name]
    layer = variant.layer(D, HEADS, variant.set_up(variant.benchmark, n, D_K, **more))
    return lambda x: layer(x, x, x)


def fused(n: int) -> Layer:
    """Dense attention by torch's own function."""
    layer = MultiHeadAttention(D, HEADS, F.scaled_dot_product_attention)
    return lambda x: layer(x, x, x)


def multi_head(n: int) -> Layer:
    """Return torch's layer, which is not asked for its weights."""
    layer = nn.MultiheadAttention(D, HEADS, batch_first=True)
    return lambda x: layer(x, x, x, need_weights=False)[0]


def linformer(n: int) -> Layer:
    """Keys and values in mixtures."""
    from linformer import LinformerSelfAttention  # pyright: ignore[reportMissingImports]

    return LinformerSelfAttention(D, n, k=MIXTURES, heads=HEADS)


def reformer_pytorch(n: int) -> Layer:
    """Two rounds of hashes."""
    from reformer_pytorch import LSHSelfAttention  # pyright: ignore[reportMissingImports]

    return LSHSelfAttention(D, heads=HEADS, bucket_size=BLOCK, n_hashes=ROUNDS)


def local_attention(n: int) -> Layer:
    """A window, without the rotary positions."""
    from local_attention import LocalMHA  # pyright: ignore[reportMissingImports]

    return LocalMHA(
        dim=D, window_size=WIDTH // 2, dim_head=D_K, heads=HEADS, use_rotary_pos_emb=False
    )


def performer_pytorch(n: int, causal: bool = False) -> Layer:
    """Random features in the place of the softmax."""
    from performer_pytorch import SelfAttention  # pyright: ignore[reportMissingImports]

    return SelfAttention(D, heads=HEADS, dim_head=D_K, causal=causal, qkv_bias=True)


def longformer(n: int) -> Layer:
    """A window; the layer alone has no output matrix."""
    from transformers.models.longformer import LongformerConfig
    from transformers.models.longformer import modeling_longformer as longformer

    config = LongformerConfig(
        hidden_size=D,
        num_attention_heads=HEADS,
        attention_window=[WIDTH],
        attention_probs_dropout_prob=0.0,
    )
    attention, out = longformer.LongformerSelfAttention(config, 0), nn.Linear(D, D)
    visible = torch.zeros(1, n)
    return lambda x: out(attention(x, visible, visible.bool(), is_global_attn=False)[0])


def big_bird(n: int) -> Layer:
    """Blocks; the layer alone has no output matrix."""
    from transformers.models.big_bird import BigBirdConfig
    from transformers.models.big_bird import modeling_big_bird as big_bird

    config = BigBirdConfig(
        hidden_size=D, num_attention_heads=HEADS, block_size=BLOCK, num_random_blocks=RANDOM
    )
    attention, out = big_bird.BigBirdBlockSparseAttention(config, seed=0), nn.Linear(D, D)
    masks = big_bird.BigBirdModel.create_masks_for_block_sparse_attn(torch.ones(1, n), BLOCK)
    blocked, band, rows, columns = masks
    return lambda x: out(attention(x, band, rows, columns, blocked, blocked)[0])


def reformer(n: int) -> Layer:
    """Two rounds of hashes; the layer alone has no output matrix."""
    from transformers.models.reformer import ReformerConfig
    from transformers.models.reformer import modeling_reformer as reformer

    config = ReformerConfig(
        hidden_size=D,
        num_attention_heads=HEADS,
        attention_head_size=D_K,
        lsh_attn_chunk_length=BLOCK,
        num_hashes=ROUNDS,
        num_buckets=n // BLOCK,
        lsh_attention_probs_dropout_prob=0.0,
    )
    attention, out = reformer.LSHSelfAttention(config), nn.Linear(D, D)
    return lambda x: out(attention(x).hidden_states)


class Other(NamedTuple):
    """A layer that others made, and the module to import for it."""

    make: Callable[[int], Layer]
    module: str


OTHERS = {
    "fused dense": Other(fused, "torch"),
    "nn.MultiheadAttention": Other(multi_head, "torch"),
    "local-attention": Other(local_attention, "local_attention"),
    "Longformer": Other(longformer, "transformers.models.longformer.modeling_longformer"),
    "HF BigBird": Other(big_bird, "transformers.models.big_bird.modeling_big_bird"),
    "linformer": Other(linformer, "linformer"),
    "reformer-pytorch": Other(reformer_pytorch, "reformer_pytorch"),
    "Reformer": Other(reformer, "transformers.models.reformer.modeling_reformer"),
    "performer-pytorch": Other(performer_pytorch, "performer_pytorch"),
    "causal performer-pytorch": Other(partial(performer_pytorch, causal=True), "performer_pytorch"),
}
# whom each of ours is to be faster than; a causal form is timed if it has rivals
RIVALS = {
    "window": ["local-attention", "Longformer"],
    "BigBird": ["HF BigBird"],
    "Linformer": ["linformer"],
    "LSH": ["reformer-pytorch", "Reformer"],
    "linear": ["performer-pytorch"],
    "causal linear": ["causal performer-pytorch"],
}


def _in_order() -> dict[str, Callable[[int], Layer]]:
    """List dense attention, then each of ours with its rivals behind it."""
    build = {name: OTHERS[name].make for name in ("fused dense", "nn.MultiheadAttention")}
    for name in VARIANTS:
        build[name] = partial(ours, name=name)
        build |= {rival: OTHERS[rival].make for rival in RIVALS.get(name, [])}
        if rivals := RIVALS.get(f"causal {name}"):
            build[f"causal {name}"] = partial(ours, name=name, causal=True)
            build |= {rival: OTHERS[rival].make for rival in rivals}
    return build


BUILD = _in_order()
