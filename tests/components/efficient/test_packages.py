"""Packages under the same weights and choices; where they differ, in what, and who is right.

Hugging Face's layers always; the others where COURSE_TEST_TOOLS=1 asks for them.
"""

import math
import os
import warnings

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from course_lib.efficient.bigbird import bigbird_attention, bigbird_mask
from course_lib.efficient.linear import linear_attention
from course_lib.efficient.linformer import linformer_attention
from course_lib.efficient.lsh import lsh_attention, lsh_attention_in_rounds
from course_lib.efficient.window import window_attention
from course_lib.multi_head import merge_heads, split_heads

HEADS, D = 2, 12
BLOCK, BLOCKS, RANDOM = 4, 9, 2


def project(x, *layers):
    return (split_heads(layer(x), HEADS) for layer in layers)


@pytest.fixture
def big_bird():
    from transformers.models.big_bird import modeling_big_bird as module

    config = module.BigBirdConfig(
        hidden_size=D, num_attention_heads=HEADS, block_size=BLOCK, num_random_blocks=RANDOM
    )
    layer = module.BigBirdBlockSparseAttention(config, seed=0).double()
    everything = torch.ones(1, BLOCK * BLOCKS).double()
    masks = module.BigBirdModel.create_masks_for_block_sparse_attn(everything, BLOCK)
    blocked, band, rows, columns = masks
    return layer, lambda x: layer(x, band, rows, columns, blocked, blocked)[0]


def listed(drawn):
    """List what Hugging Face's layer sees: both ends are global, and three blocks a window."""
    last = len(drawn) + 1
    rows = [{0, i - 1, i, i + 1, last, *other} for i, other in enumerate(drawn, start=1)]
    rows = [set(range(last + 1)), *rows, set(range(last + 1))]
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[-1] * (longest - len(row))] for row in rows])


def test_hugging_faces_bigbird_equals_ours_where_it_draws_new_blocks(big_bird, draw, agree):
    layer, theirs = big_bird
    others = [sorted(set(range(1, 8)) - {i - 1, i, i + 1})[i % 2 :][:RANDOM] for i in range(1, 8)]
    layer._bigbird_block_rand_mask_with_head = lambda **_: [np.array(others)] * HEADS
    x = draw(1, BLOCK * BLOCKS, D)
    q, k, v = project(x, layer.query, layer.key, layer.value)
    agree(merge_heads(bigbird_attention(q, k, v, listed(others), BLOCK)), theirs(x), x)


def test_when_it_does_not_train_its_random_blocks_are_the_first_block_again(big_bird, draw, agree):
    """Ours is right: a pair is seen or not, and the paper's random blocks stay what they were."""
    layer, theirs = big_bird
    layer.eval()
    x = draw(1, BLOCK * BLOCKS, D)
    q, k, v = project(x, layer.query, layer.key, layer.value)
    mask = bigbird_mask(listed([()] * (BLOCKS - 2)), BLOCK)
    times = torch.where(mask, 0.0, -math.inf).double()
    times[BLOCK:-BLOCK, :BLOCK] = math.log(1 + RANDOM)
    agree(merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=times)), theirs(x), x)


def test_at_1024_words_it_may_draw_the_last_block_which_all_see_already():
    from transformers.models.big_bird import modeling_big_bird as module

    layer = module.BigBirdBlockSparseAttention(module.BigBirdConfig(), seed=0).train()
    np.random.seed(0)
    rows = layer._bigbird_block_rand_mask(4096, 4096, 64, 64, 3, last_idx=1024)[:14]
    assert any(1024 // 64 - 1 in row for row in rows)


def test_longformer_equals_ours(draw):
    from transformers.models.longformer import modeling_longformer as module

    config = module.LongformerConfig(
        hidden_size=D,
        num_attention_heads=HEADS,
        attention_window=[8],
        attention_probs_dropout_prob=0.0,
    )
    layer, x = module.LongformerSelfAttention(config, 0).double(), draw(1, 48, D)
    visible = torch.zeros(1, 48)
    theirs = layer(x, visible, visible.bool(), is_global_attn=False)[0]
    ours = merge_heads(window_attention(*project(x, layer.query, layer.key, layer.value), 8))
    # it takes its softmax in float32, whatever the words are
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
    gradients = (torch.autograd.grad(y.square().sum(), x)[0] for y in (ours, theirs))
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=0)


@pytest.fixture
def reformer():
    from transformers.models.reformer import modeling_reformer as module

    def make(chunk):
        config = module.ReformerConfig(
            hidden_size=D,
            num_attention_heads=HEADS,
            attention_head_size=D // HEADS,
            lsh_attn_chunk_length=chunk,
            num_hashes=1,
            num_buckets=2,
            lsh_attention_probs_dropout_prob=0.0,
        )
        return module.LSHSelfAttention(config).double()

    return make


def test_hugging_faces_reformer_does_not_divide_by_the_root_of_d(reformer, draw):
    """The paper's equation 1 divides; otherwise it equals ours, to the 1e-6 that it adds."""
    layer, x = reformer(16), draw(1, 16, D)
    qk, v = project(x, layer.query_key, layer.value)
    one = torch.zeros(16).long()
    ours = lsh_attention((D // HEADS) ** 0.5 * qk, v, one, 16)
    torch.testing.assert_close(merge_heads(ours), layer(x).hidden_states, atol=1e-4, rtol=0)


def test_hugging_faces_reformer_looks_into_other_buckets_and_round_the_end(reformer, draw):
    """The paper's equation 3 lets a word look into its own bucket, and nothing stands before it."""
    layer, x = reformer(4), draw(1, 12, D)
    own = torch.arange(12) // 4
    qk, v = project(x, layer.query_key, layer.value)
    buckets = own.repeat(1, HEADS, 1)
    theirs = layer(x, buckets=buckets).hidden_states[0, 0]
    seen = torch.autograd.grad(theirs.sum(), x)[0][0].any(-1)
    assert seen.tolist() == [True] * 4 + [False] * 4 + [True] * 4
    ours = merge_heads(lsh_attention(qk, v, own, 4))[0, 0]
    seen = torch.autograd.grad(ours.sum(), x)[0][0].any(-1)
    assert seen.tolist() == [True] * 4 + [False] * 8


@pytest.fixture(scope="module")
def packages():
    """The packages that a user would pick, where they can be fetched."""
    if os.environ.get("COURSE_TEST_TOOLS") != "1":
        pytest.skip("fetches packages: set COURSE_TEST_TOOLS=1")
    from research.benchmarks import environments

    if missing := environments.importable(environments.ATTENTION):
        pytest.skip(f"could not be fetched: {', '.join(missing)}")
    with warnings.catch_warnings(action="ignore"):
        import linformer
        import local_attention
        import performer_pytorch.performer_pytorch as performer
        import reformer_pytorch
    return linformer, local_attention, performer, reformer_pytorch


def test_linformer_equals_ours(packages, draw, agree):
    x, n = draw(2, 40, D), 40
    layer = packages[0].LinformerSelfAttention(D, n, k=7, heads=HEADS).double()
    q, k, v = project(x, layer.to_q, layer.to_k, layer.to_v)
    ours = layer.to_out(merge_heads(linformer_attention(q, k, v, layer.proj_k, layer.proj_v)))
    agree(ours, layer(x), x, layer.proj_k, layer.proj_v)


def test_local_attention_equals_our_window(packages, draw, agree):
    q, k, v = (draw(2, 48, 6) for _ in range(3))
    layer = packages[1].LocalAttention(4, exact_windowsize=True, use_rotary_pos_emb=False)
    agree(window_attention(q, k, v, 8), layer(q, k, v), q, k, v)


def test_performers_sums_are_our_linear_attention(packages, draw, agree):
    q, k, v = (draw(1, 2, 160, 6) for _ in range(3))
    positive = [F.elu(x) + 1 for x in (q, k)]
    agree(linear_attention(q, k, v), packages[2].linear_attention(*positive, v), q, k, v)
    # it adds 1e-6 to the sum of the weights, which the paper does not
    theirs = packages[2].causal_linear_attention_noncuda(*positive, v)
    torch.testing.assert_close(linear_attention(q, k, v, causal=True), theirs, atol=1e-5, rtol=0)


def test_reformer_pytorch_equals_ours_once_asked_to_count_no_pair_twice(packages, draw):
    """By default it counts a pair in every round that shows it, which appendix A divides out."""
    qk, v = draw(3, 64, 6), draw(3, 64, 6)
    found = {}
    for across, twice in ((False, False), (False, True), (True, False)):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            layer = packages[3].LSHAttention(
                bucket_size=8,
                n_hashes=2,
                attend_across_buckets=across,
                allow_duplicate_attention=twice,
            )
            found[across, twice], _, buckets = layer(qk, v)
    ours = lsh_attention_in_rounds(qk, v, buckets.view(3, 2, 64).transpose(0, 1), 8)
    theirs = found[False, False]
    torch.testing.assert_close(ours, theirs, atol=1e-7, rtol=0)
    gradients = (torch.autograd.grad(y.square().sum(), (qk, v)) for y in (ours, theirs))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=0)
    assert (ours - found[False, True]).abs().max() > 0.01
    assert (ours - found[True, False]).abs().max() > 0.01
