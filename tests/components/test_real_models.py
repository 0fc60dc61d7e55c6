"""What holds of `course_lib.real_models`."""

import pytest
import torch

from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention
from course_lib.real_models import KeyValueCache, use_cache
from course_lib.self_attention import scaled_dot_product_attention


@pytest.mark.parametrize("pieces", [[1] * 7, [4, 1, 2], [7]])
def test_a_text_in_pieces_gives_what_the_whole_text_gives(pieces):
    layer, x = MultiHeadAttention(6, 2), torch.randn(3, 7, 6)
    whole = layer(x, x, x, causal_mask(7))
    with use_cache([layer]):
        parts = [layer(part, part, part) for part in x.split(pieces, dim=-2)]
    torch.testing.assert_close(torch.cat(parts, dim=-2), whole)


def test_it_keeps_each_word_once():
    cache = KeyValueCache(scaled_dot_product_attention)
    for k in torch.randn(5, 2, 1, 4):
        cache(k, k, k)
    assert [kept.shape for kept in cache.kept] == [(2, 5, 4)] * 2


def test_a_cache_of_ones_own_can_take_its_place():
    class Counting(KeyValueCache):
        calls = 0

        def __call__(self, q, k, v):
            Counting.calls += 1
            return super().__call__(q, k, v)

    layer, x = MultiHeadAttention(4, 2), torch.randn(3, 4)
    with use_cache([layer], Counting):
        parts = [layer(part, part, part) for part in x.split(1)]
    assert Counting.calls == 3
    torch.testing.assert_close(torch.cat(parts), layer(x, x, x, causal_mask(3)))


def test_the_layers_rule_is_back_at_the_end_even_after_an_error():
    layer, words = MultiHeadAttention(4, 2), torch.randn(1, 4)
    with pytest.raises(TypeError), use_cache([layer]):
        layer(words)
    assert layer.rule is scaled_dot_product_attention
