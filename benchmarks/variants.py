"""Attention layers of 256 numbers a word and 4 heads: ours, torch's, and those of packages.

Each is built for n words and takes them (1, n, 256). All settings are alike, all project queries,
keys (LSH both by one matrix), values and results, and none drops anything.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.efficient import layers
from course_lib.multi_head import MultiHeadAttention, ToThemselves

D, HEADS, D_K = 256, 4, 64
WIDTH, MIXTURES, BLOCK, ROUNDS = 256, 256, 64, 2
GLOBAL, RANDOM = 2, 3

Layer = Callable[[Tensor], Tensor]


def ours(rule: Callable, kind: type = MultiHeadAttention) -> Layer:
    """Let the words attend to themselves by a rule."""
    return ToThemselves(kind(D, HEADS, rule))


def multi_head(n: int) -> Layer:
    """Return torch's layer, which is not asked for its weights."""
    layer = nn.MultiheadAttention(D, HEADS, batch_first=True)
    return lambda x: layer(x, x, x, need_weights=False)[0]


def linformer(n: int) -> Layer:
    """Keys and values in mixtures."""
    from linformer import LinformerSelfAttention

    return LinformerSelfAttention(D, n, k=MIXTURES, heads=HEADS)


def reformer_pytorch(n: int) -> Layer:
    """Two rounds of hashes."""
    from reformer_pytorch import LSHSelfAttention

    return LSHSelfAttention(D, heads=HEADS, bucket_size=BLOCK, n_hashes=ROUNDS)


def local_attention(n: int) -> Layer:
    """A window, without the rotary positions."""
    from local_attention import LocalMHA

    return LocalMHA(
        dim=D, window_size=WIDTH // 2, dim_head=D_K, heads=HEADS, use_rotary_pos_emb=False
    )


def performer_pytorch(n: int, causal: bool = False) -> Layer:
    """Random features in the place of the softmax."""
    from performer_pytorch import SelfAttention

    return SelfAttention(D, heads=HEADS, dim_head=D_K, causal=causal, qkv_bias=True)


def longformer(n: int) -> Layer:
    """A window; the layer alone has no output matrix."""
    from transformers.models.longformer import modeling_longformer as longformer

    config = longformer.LongformerConfig(
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
    from transformers.models.big_bird import modeling_big_bird as big_bird

    config = big_bird.BigBirdConfig(
        hidden_size=D, num_attention_heads=HEADS, block_size=BLOCK, num_random_blocks=RANDOM
    )
    attention, out = big_bird.BigBirdBlockSparseAttention(config, seed=0), nn.Linear(D, D)
    masks = big_bird.BigBirdModel.create_masks_for_block_sparse_attn(torch.ones(1, n), BLOCK)
    blocked, band, rows, columns = masks
    return lambda x: out(attention(x, band, rows, columns, blocked, blocked)[0])


def reformer(n: int) -> Layer:
    """Two rounds of hashes; the layer alone has no output matrix."""
    from transformers.models.reformer import modeling_reformer as reformer

    config = reformer.ReformerConfig(
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


BUILD: dict[str, Callable[[int], Layer]] = {
    "fused dense": lambda n: ours(F.scaled_dot_product_attention),
    "nn.MultiheadAttention": multi_head,
    "window": lambda n: ours(partial(layers.window, width=WIDTH)),
    "local-attention": local_attention,
    "Longformer": longformer,
    "BigBird": lambda n: ours(
        partial(layers.bigbird, block=BLOCK, window=3, global_blocks=GLOBAL, random_blocks=RANDOM)
    ),
    "HF BigBird": big_bird,
    "Linformer": lambda n: ours(layers.Linformer(n, MIXTURES)),
    "linformer": linformer,
    "LSH": lambda n: ours(
        partial(layers.lsh, buckets=n // BLOCK, chunk=BLOCK, rounds=ROUNDS), layers.SharedQueryKey
    ),
    "reformer-pytorch": reformer_pytorch,
    "Reformer": reformer,
    "linear": lambda n: ours(layers.linear),
    "performer-pytorch": performer_pytorch,
    "causal linear": lambda n: ours(partial(layers.linear, causal=True)),
    "causal performer-pytorch": partial(performer_pytorch, causal=True),
    "tiled": lambda n: ours(layers.tiled),
    "memory-compressed": lambda n: ours(layers.MemoryCompressed(D_K)),
}

# what others made, and the module to import for it; the rest is ours
OTHERS = {
    "fused dense": "torch",
    "nn.MultiheadAttention": "torch",
    "local-attention": "local_attention",
    "Longformer": "transformers.models.longformer.modeling_longformer",
    "HF BigBird": "transformers.models.big_bird.modeling_big_bird",
    "linformer": "linformer",
    "reformer-pytorch": "reformer_pytorch",
    "Reformer": "transformers.models.reformer.modeling_reformer",
    "performer-pytorch": "performer_pytorch",
    "causal performer-pytorch": "performer_pytorch",
}
# whom each of ours is to be faster than
RIVALS = {
    "window": ["local-attention", "Longformer"],
    "BigBird": ["HF BigBird"],
    "Linformer": ["linformer"],
    "LSH": ["reformer-pytorch", "Reformer"],
    "linear": ["performer-pytorch"],
    "causal linear": ["causal performer-pytorch"],
}
