"""The laws that all variants share: what they need, what they bear, what they leave alone."""

import pytest
import torch

from course_lib.efficient.bigbird import bigbird_attention, neighbours
from course_lib.efficient.linear import linear_attention
from course_lib.efficient.linformer import linformer_attention
from course_lib.efficient.lsh import (
    draw_rotations,
    lsh_attention,
    lsh_attention_in_rounds,
    lsh_buckets,
)
from course_lib.efficient.memory_compressed import memory_compressed_attention
from course_lib.efficient.tiled import tiled_attention
from course_lib.efficient.window import window_attention


def projections(q):
    mix = torch.randn(q.shape[-2], 32, generator=torch.Generator().manual_seed(2))
    return mix.to(q) / q.shape[-2] ** 0.5


def buckets(q, seed):
    rotations = draw_rotations(q.shape[-1], 8, seed).to(q)
    return lsh_buckets(q.detach(), rotations)


def weights(x):
    return torch.ones(3, x.shape[-1], x.shape[-1]).to(x) / 3


def in_rounds(q, v):
    return torch.stack([buckets(q, seed) for seed in range(2)])


VARIANTS = {
    "window": lambda q, k, v: window_attention(q, k, v, 33),
    "bigbird": lambda q, k, v: bigbird_attention(
        q, k, v, neighbours(q.shape[-2] // 16, 3, 2, 2, seed=0), 16
    ),
    "linformer": lambda q, k, v: linformer_attention(q, k, v, projections(q), projections(v)),
    "lsh": lambda q, k, v: lsh_attention(q, v, buckets(q, 0), 16),
    "causal lsh": lambda q, k, v: lsh_attention(q, v, buckets(q, 0), 16, causal=True),
    "lsh in rounds": lambda q, k, v: lsh_attention_in_rounds(q, v, in_rounds(q, v), 16),
    "tiled": lambda q, k, v: tiled_attention(q, k, v, 48),
    "memory-compressed": lambda q, k, v: memory_compressed_attention(
        q, k, v, weights(k), weights(v), 3
    ),
    "linear": lambda q, k, v: linear_attention(q, k, v),
    "causal linear": lambda q, k, v: linear_attention(q, k, v, causal=True),
}
each = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def gradients(found, *leaves):
    # a sum that no row leaves unmoved
    return torch.autograd.grad(found.square().sum(), leaves, materialize_grads=True)


@each
def test_no_tensor_of_n_by_n_is_made_forward_or_backward(variant, draw, largest):
    q, k, v = draw(1024, 8), draw(1024, 8), draw(1024, 6)
    with largest:
        gradients(variant(q, k, v), q, k, v)
    assert 1024 * 8 <= largest.numel < 1024**2 / 4


def test_dense_attention_is_seen_to_make_one(draw, largest):
    q = draw(1024, 8)
    with largest:
        gradients(torch.softmax(q @ q.mT, dim=-1) @ q, q)
    assert largest.numel == 1024**2


@each
def test_words_may_lie_anyhow_and_every_batch_dimension_stands_alone(variant, draw):
    leaves = draw(96, 2, 8, 3), draw(2, 3, 8, 96), draw(3, 96, 2, 6)
    q, k, v = leaves[0].permute(1, 3, 0, 2), leaves[1].mT, leaves[2].permute(2, 0, 1, 3)
    found = variant(q, k, v)
    assert found.shape == (2, 3, 96, 6)
    alone = variant(q[1, 2], k[1, 2], v[1, 2])
    torch.testing.assert_close(found[1, 2], alone)
    together = gradients(found[1, 2], *leaves)
    for one, other in zip(together, gradients(alone, *leaves), strict=True):
        torch.testing.assert_close(one, other)


@each
def test_the_type_is_kept_and_the_words_are_left_as_they_were(variant, draw):
    q, k, v = (draw(64, 8, dtype=torch.float32) for _ in range(3))
    before = [x.clone() for x in (q, k, v)]
    found = variant(q, k, v)
    assert found.dtype == torch.float32
    exact = variant(*(x.double() for x in (q, k, v)))
    torch.testing.assert_close(found.double(), exact, atol=1e-5, rtol=0)
    found.sum().backward()
    assert all(x.equal(y) for x, y in zip((q, k, v), before, strict=True))


@each
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_large_and_small_scores_stay_finite_and_so_do_their_gradients(variant, scale, draw):
    q, k, v = (draw(64, 8, dtype=torch.float32) for _ in range(3))
    found = variant(scale * q, scale * k, v)
    assert found.isfinite().all()
    assert all(x.isfinite().all() for x in gradients(found, q, k, v))


@each
def test_the_result_is_made_on_the_device_of_the_words(variant):
    q, k, v = (torch.empty(2, 64, d, device="meta") for d in (8, 8, 6))
    found = variant(q, k, v)
    assert found.device.type == "meta"
    assert found.shape == (2, 64, 6)
