"""Laws of the encoder, the decoder and the whole Transformer."""

import inspect

import pytest
import torch
from torch import nn

from course_lib.masks import padding_mask
from course_lib.real_models import grouped_query_attention, mean_pool
from course_lib.transformer import (
    BASE,
    Decoder,
    Encoder,
    EncoderBlock,
    Transformer,
    add_and_norm,
    greedy,
    parameter_count,
)

SIZES = {"vocab": 11, "layers": 2, "d_model": 8, "heads": 2, "d_ff": 16, "max_length": 7}


@pytest.mark.parametrize("layers", [1, 3])
def test_the_formula_counts_what_the_model_has(layers):
    sizes = SIZES | {"layers": layers}
    model = Transformer(**sizes)
    count = parameter_count(layers, sizes["d_model"], sizes["d_ff"], sizes["vocab"])
    assert count == sum(p.numel() for p in model.parameters())


def test_the_base_model_of_2017_has_63_million_parameters():
    count = parameter_count(BASE["layers"], BASE["d_model"], BASE["d_ff"], BASE["vocab"])
    assert round(count / 1e6) == 63
    with torch.device("meta"):
        assert count == sum(p.numel() for p in Transformer(**BASE, max_length=1).parameters())


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_no_target_token_sees_a_later_one_and_every_one_sees_the_whole_source(norm):
    model = Transformer(**SIZES, norm=norm)
    source, target = torch.randint(0, 10, (2, 1, 5))
    logits = model(source, target)
    changed = model(source, torch.cat([target[:, :3], 10 - target[:, 3:]], dim=-1))
    torch.testing.assert_close(changed[:, :3], logits[:, :3])
    other = model(torch.cat([source[:, :-1], (source[:, -1:] + 1) % 10], dim=-1), target)
    assert (other - logits).abs().amax(-1).min() > 1e-6


def test_padding_changes_nothing():
    model = Transformer(**SIZES)
    source, target = torch.randint(0, 10, (2, 1, 4))
    padded = torch.cat([source, torch.zeros(1, 3, dtype=torch.long)], dim=-1)
    mask = padding_mask(torch.tensor([4]), 7)
    torch.testing.assert_close(model(padded, target, mask), model(source, target))


def test_tied_means_one_matrix_and_untied_three():
    tied, untied = (
        sum(p.numel() for p in Transformer(**SIZES, tied=t).parameters()) for t in (True, False)
    )
    assert untied - tied == 2 * SIZES["vocab"] * SIZES["d_model"]


def test_parts_take_the_place_of_the_papers():
    class Zeros(nn.Module):
        def forward(self, query, key, value, mask=None):
            return torch.zeros_like(query)

    block = EncoderBlock(8, 2, 16, "pre", attention=lambda d_model, heads: Zeros())
    x = torch.randn(3, 8)
    torch.testing.assert_close(block(x), block.feed_forward(x))


def test_greedy_writes_the_likeliest_token_each_time_until_all_have_stopped():
    model = Transformer(**SIZES | {"max_length": 20})
    source = torch.randint(0, 10, (3, 5))
    written = greedy(model, source, start=0, stop=-1, most=6)
    assert written.shape == (3, 6)
    inputs = torch.cat([torch.zeros(3, 1, dtype=torch.long), written[:, :-1]], dim=-1)
    assert torch.equal(model(source, inputs).argmax(-1), written)
    first = int(written[0, 0])
    assert greedy(model, source[:1], start=0, stop=first, most=6).tolist() == [[first]]


def test_another_norm_is_refused():
    # as learners call it: without the types that the tests execute
    choose = inspect.unwrap(add_and_norm)
    with pytest.raises(ValueError, match=r'norm must be "post", .* or "pre", not \'layer\''):
        choose("layer")


def test_more_tokens_than_positions_are_refused():
    encoder, decoder = Encoder(**SIZES), Decoder(**SIZES)
    with pytest.raises(ValueError, match="at most max_length = 7 tokens, but got 8"):
        encoder(torch.zeros(8, dtype=torch.long))
    with pytest.raises(ValueError, match="at most max_length = 7 tokens, but got 9"):
        decoder(torch.zeros(9, dtype=torch.long), torch.randn(3, 8))


def test_an_empty_sentence_is_pooled_to_zeros_with_finite_gradients():
    states = torch.randn(2, 3, 4, requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    pooled = mean_pool(states, mask)
    pooled.sum().backward()
    assert (pooled[1] == 0).all()
    assert states.grad.isfinite().all()


def test_groups_must_divide_heads():
    q, k = torch.randn(6, 3, 4), torch.randn(4, 3, 4)
    with pytest.raises(ValueError, match="4 do not divide 6: are queries and keys swapped"):
        grouped_query_attention(q, k, k)
