import pytest
import torch

from course_lib.masks import causal_mask, leaks_future, padding_mask, shift_right
from course_lib.self_attention import SelfAttention, parameter_free, scaled_dot_product_attention


def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_last_query_sees_every_key_and_each_one_before_it_one_key_less():
    assert causal_mask(3).sum(-1).tolist() == [1, 2, 3]
    assert causal_mask(2, 5).int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert torch.equal(causal_mask(2, 5), causal_mask(5)[-2:])


def test_what_stands_in_padding_changes_no_word_and_an_empty_sentence_gives_zeros():
    x, mask = draw(3, 4, 5), padding_mask(torch.tensor([4, 2, 0]), 4)
    filled = x.masked_fill(~mask.mT, 1e6)
    plain, again = (scaled_dot_product_attention(x, y, y, mask) for y in (x, filled))
    torch.testing.assert_close(plain, again)
    assert plain[:2].all()
    assert (plain[2] == 0).all()


def test_tokens_move_one_to_the_right_in_each_sentence():
    tokens = torch.tensor([[5, 6, 7], [8, 9, 2]])
    assert shift_right(tokens, start=1).tolist() == [[1, 5, 6], [1, 8, 9]]
    assert tokens.tolist() == [[5, 6, 7], [8, 9, 2]]


def reads_one_too_many(x):
    n = x.shape[-2]
    mask = torch.ones(n, n, dtype=torch.bool).tril(1)
    return scaled_dot_product_attention(x, x, x, mask)


def leaks_once(x):
    shifted = parameter_free(x, causal=True)
    shifted[1, 2] += x[1, 4] * 1e-3
    return shifted


@pytest.mark.parametrize(
    ("layer", "leaks"),
    [
        (lambda x: parameter_free(x, causal=True), []),
        (parameter_free, [0, 1, 2, 3]),
        (reads_one_too_many, [0, 1, 2, 3]),
        (leaks_once, [2]),
        (lambda x: x.log(), []),  # NaN stays NaN
    ],
    ids="causal full off_by_one one_position nan".split(),
)
def test_exactly_the_positions_that_see_their_future_are_found(layer, leaks):
    x = draw(2, 5, 3)
    before = x.clone()
    assert leaks_future(layer, x) == leaks
    assert torch.equal(x, before)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_leak_that_shows_in_one_direction_only_is_found(sign):
    x = draw(2, 1)
    assert leaks_future(lambda x: (sign * x).amax(0).clamp(min=5).expand_as(x), x) == [0]


def test_a_learned_causal_layer_leaks_nothing_in_float32():
    torch.manual_seed(0)
    layer = SelfAttention(8, 4, 6)
    assert leaks_future(lambda x: layer(x, causal_mask(9)), draw(9, 8).float()) == []


def test_fewer_keys_than_queries_are_refused():
    with pytest.raises(ValueError, match="so 5 queries need at least 5 keys, not 2: are the two"):
        causal_mask(5, 2)


@pytest.mark.parametrize(("lengths", "span"), [([3, 5], "3 to 5"), ([-1, 2], "-1 to 2")])
def test_lengths_that_no_sentence_of_the_batch_can_have_are_refused(lengths, span):
    with pytest.raises(ValueError, match=f"from 0 to n = 4, not from {span}: is n the length of"):
        padding_mask(torch.tensor(lengths), 4)
