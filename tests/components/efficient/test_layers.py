"""The laws of rules: in our blocks, each equals dense attention under what it lets be seen."""

from functools import partial

import pytest
import torch
from torch import nn

from course_lib.efficient import lsh
from course_lib.efficient.bigbird import bigbird_mask, neighbours
from course_lib.efficient.variants import VARIANTS
from course_lib.efficient.window import window_mask
from course_lib.instruments.training import seeded
from course_lib.masks import causal_mask, leaks_future, padding_mask
from course_lib.multi_head import MultiHeadAttention
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.transformer import EncoderBlock

N, D_MODEL, HEADS = 41, 12, 3  # no block below divides 41
LENGTHS = torch.tensor([41, 17, 0])


CAUSAL = [name for name, variant in VARIANTS.items() if variant.causal]
ANOTHER_TEXT = [name for name, variant in VARIANTS.items() if variant.another_text]
each = pytest.mark.parametrize("name", VARIANTS)
each_causal = pytest.mark.parametrize("name", CAUSAL)


def layer(name, n=N + 6, **more):
    """Make the layer of a variant, set up as its example for texts of n words."""
    variant = VARIANTS[name]
    with seeded(0):
        rule = variant.set_up(variant.example, n, D_MODEL // HEADS, **more)
        return variant.layer(D_MODEL, HEADS, rule).double()


def dense(mask):
    """Attend densely, where `mask` lets it and the layer's own mask too."""

    def rule(q, k, v, own=None):
        return scaled_dot_product_attention(q, k, v, mask if own is None else mask & own)

    with seeded(0):
        return MultiHeadAttention(D_MODEL, HEADS, rule).double()


def sees(name):
    """Return who sees whom in a variant that has an exact dense case."""
    if name == "tiled":
        return torch.ones(N, N, dtype=torch.bool)
    if name == "window":
        return window_mask(N, 9)
    return bigbird_mask(neighbours(11, 3, 1, 1, seed=0), 4)[:N, :N]


@pytest.mark.parametrize("padded", [False, True], ids=["alone", "padded"])
@pytest.mark.parametrize("name", ["tiled", "window", "BigBird"])
def test_in_a_block_it_is_dense_attention_under_its_mask(name, padded, draw, agree):
    x = draw(3, N, D_MODEL)
    mask = padding_mask(LENGTHS, N) if padded else None
    results = []
    for attention in (layer(name), dense(sees(name))):
        with seeded(1):
            block = EncoderBlock(D_MODEL, HEADS, 20, attention=lambda *_: attention)  # noqa: B023
        block = block.double()
        results.append((block(x, mask), block))
        block(x, mask).square().sum().backward()
    (ours, mine), (theirs, its) = results
    agree(ours, theirs, x)
    for one, other in zip(mine.parameters(), its.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("padded", [False, True], ids=["alone", "padded"])
@pytest.mark.parametrize("name", ["tiled", "window", "BigBird"])
def test_a_causal_one_is_dense_attention_that_looks_back(name, padded, draw, agree):
    x, causal = draw(3, N, D_MODEL), causal_mask(N)
    padding = padding_mask(LENGTHS, N) if padded else None
    both = causal if padding is None else causal & padding
    theirs = dense(sees(name) & causal)
    for ours, mask in ((layer(name), both), (layer(name, causal=True), padding)):
        agree(ours(x, x, x, mask), theirs(x, x, x, padding), x)


def test_with_one_bucket_lsh_is_dense_attention_in_which_no_word_looks_at_itself(draw, agree):
    x, lengths = draw(3, N, D_MODEL), torch.tensor([41, 17, 30])
    real = padding_mask(lengths, N)

    def rule(q, k, v, mask):
        others = mask & ~torch.eye(N, dtype=torch.bool)
        return scaled_dot_product_attention(q, nn.functional.normalize(k, dim=-1), v, others)

    with seeded(0):
        theirs = lsh.SharedQueryKey(D_MODEL, HEADS, rule).double()
    # the words of one text fall into one bucket, as they all point one way
    positive = x.detach().abs().requires_grad_()
    for one in (ours := layer("LSH", chunk=48), theirs):
        one.w_q.weight.data.fill_(0).diagonal().fill_(1)
        one.w_q.bias.data.fill_(50)
    outputs = (one(positive, positive, positive, real) for one in (ours, theirs))
    ours, theirs = (torch.where(real.mT, y, 0.0) for y in outputs)
    agree(ours, theirs, positive)


def test_linear_attention_is_its_masked_form(draw, agree):
    x = draw(3, N, D_MODEL)
    padding, causal = padding_mask(LENGTHS, N), causal_mask(N)

    def masked(q, k, v, mask):
        q, k = (nn.functional.elu(words) + 1 for words in (q, k))
        weights = (q @ k.mT) * mask
        return weights @ v / weights.sum(-1, keepdim=True).clamp(min=1e-300)

    with seeded(0):
        theirs = MultiHeadAttention(D_MODEL, HEADS, masked).double()
    for mask in (padding, padding & causal):
        agree(layer("linear")(x, x, x, mask), theirs(x, x, x, mask), x)


@each
def test_what_is_hidden_has_no_influence(name, draw):
    x = draw(3, N, D_MODEL).detach()
    real = padding_mask(LENGTHS, N)
    other = torch.where(real.mT, x, -3 * x)
    one, two = (layer(name)(words, words, words, real) for words in (x, other))
    torch.testing.assert_close(one[real.squeeze(1)], two[real.squeeze(1)])


@each
def test_a_padded_text_is_the_short_text(name, draw):
    if name == "BigBird":
        pytest.skip("its random blocks are drawn by the number of blocks")
    x = draw(2, N, D_MODEL).detach()
    padded = layer(name)(x, x, x, padding_mask(torch.tensor([17, 17]), N))[:, :17]
    short = x[:, :17]
    torch.testing.assert_close(padded, layer(name)(short, short, short))


@each
def test_a_text_all_hidden_finds_nothing_and_its_gradients_are_finite(name, draw):
    x = draw(3, N, D_MODEL)
    attention = layer(name)
    output = attention(x, x, x, padding_mask(LENGTHS, N))
    torch.testing.assert_close(output[2], attention.w_o.bias.expand(N, D_MODEL))
    output.square().sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in attention.parameters())


@each
@pytest.mark.parametrize("n", [1, 2, 15, 16, 33])
def test_any_length_will_do(name, n, draw):
    x = draw(2, n, D_MODEL)
    assert layer(name)(x, x, x).shape == x.shape
    assert layer(name)(x[0], x[0], x[0]).shape == (n, D_MODEL)


@each_causal
def test_a_causal_one_looks_at_nothing_later_with_the_mask_or_without(name, draw):
    x = draw(N, D_MODEL)
    for attention, mask in ((layer(name), causal_mask(N)), (layer(name, causal=True), None)):
        output = attention(x, x, x, mask)
        assert output[:20].square().sum().backward() is None
        assert not x.grad[20:].any()
        assert x.grad[:20].any(-1).all()
        x.grad = None


def test_in_lsh_a_later_word_has_a_part_in_who_meets_whom(draw):
    x = draw(N, D_MODEL).detach()
    for name in CAUSAL:
        attention = layer(name, causal=True)
        leaks = leaks_future(lambda x: attention(x, x, x), x)  # noqa: B023
        assert bool(leaks) == (name == "LSH")


@pytest.mark.parametrize("name", sorted(VARIANTS.keys() - set(CAUSAL)))
def test_what_has_no_causal_form_refuses_the_mask(name, draw):
    x = draw(N, D_MODEL)
    with pytest.raises(ValueError, match="no causal form here"):
        layer(name)(x, x, x, causal_mask(N))


@each
def test_a_mask_that_is_neither_padding_nor_causal_is_refused(name, draw):
    x = draw(N, D_MODEL)
    with pytest.raises(ValueError, match="from all queries alike"):
        layer(name)(x, x, x, window_mask(N, 3))


@each
def test_a_mask_that_hides_nothing_changes_nothing(name, draw):
    x = draw(N, D_MODEL)
    for mask in (torch.ones(1, N), torch.ones(N, N), torch.ones(1, 1)):
        torch.testing.assert_close(layer(name)(x, x, x, mask.bool()), layer(name)(x, x, x))


@pytest.mark.parametrize("name", ANOTHER_TEXT)
def test_these_look_at_another_text(name, draw):
    x, memory = draw(2, 7, D_MODEL), draw(2, N, D_MODEL)
    hidden = padding_mask(torch.tensor([N, 9]), N)
    far = torch.where(hidden.mT, memory, -3 * memory)
    output = layer(name)(x, memory, memory, hidden)
    torch.testing.assert_close(output, layer(name)(x, far, far, hidden))
    if name == "tiled":
        torch.testing.assert_close(output, dense(hidden.unsqueeze(1))(x, memory, memory))


@pytest.mark.parametrize("name", sorted(VARIANTS.keys() - set(ANOTHER_TEXT)))
def test_these_refuse_another_text(name, draw):
    x, memory = draw(2, 7, D_MODEL), draw(2, N, D_MODEL)
    with pytest.raises(ValueError, match="one text"):
        layer(name)(x, memory, memory)


@each_causal
def test_a_causal_one_refuses_another_text(name, draw):
    x, memory = draw(2, 7, D_MODEL), draw(2, N, D_MODEL)
    with pytest.raises(ValueError, match="one text"):
        layer(name, causal=True)(x, memory, memory)


def test_lsh_refuses_keys_that_are_not_the_queries(draw):
    x, rule = draw(N, D_MODEL), partial(lsh.rule, buckets=4, chunk=8)
    with pytest.raises(ValueError, match="SharedQueryKey"):
        MultiHeadAttention(D_MODEL, HEADS, rule).double()(x, x, x)


@pytest.mark.parametrize(
    ("buckets", "bases"),
    [(2, [2]), (128, [128]), (256, [16, 16]), (512, [32, 16]), (1000, [50, 20]), (1022, [1022])],
)
def test_many_buckets_are_told_by_two_digits_if_they_can_be(buckets, bases, draw):
    assert lsh._bases(buckets) == bases
    own = lsh._hash(draw(4000, 5).detach(), buckets, seed=0)
    assert own.min() >= 0
    assert own.max() < buckets
    # opposite words are half the first base apart in it, and half the last in that
    opposite = lsh._hash(torch.cat([x := draw(3, 5).detach(), -x]), buckets, seed=0).view(2, 3)
    for one, other in opposite.mT.tolist():
        assert (one - other) % bases[-1] == bases[-1] // 2


def test_linformer_refuses_a_text_longer_than_its_projections(draw):
    x = draw(N + 7, D_MODEL)
    with pytest.raises(ValueError, match="up to 47 tokens, not 48"):
        layer("Linformer")(x, x, x)


@each
def test_nothing_makes_a_square(name, draw, largest):
    x = draw(1, 1024, D_MODEL)
    attention = layer(name, n=1024)
    with largest:
        attention(x, x, x, padding_mask(torch.tensor([1000]), 1024)).sum().backward()
    assert largest.numel < 1024**2 / 4


@each
def test_the_words_type_and_device_are_kept(name):
    x = torch.empty(2, N, D_MODEL, device="meta")
    if name == "LSH":
        pytest.skip("comparing queries and keys needs their numbers")
    attention = layer(name).float().to("meta")
    assert attention(x, x, x).device.type == "meta"
    assert attention(x, x, x).dtype == torch.float32
