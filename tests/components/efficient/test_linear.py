import pytest
import torch

from course_lib.efficient.linear import linear_attention, linear_by_scan


def naive(q, k, v, causal):
    """Carry the sums from word to word, one word at a time."""
    features = [torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k)]
    found = []
    for i in range(q.shape[-2]):
        seen = slice(0, i + 1 if causal else None)
        state = sum(
            one.unsqueeze(-1) * value.unsqueeze(-2)
            for one, value in zip(
                features[1][..., seen, :].unbind(-2), v[..., seen, :].unbind(-2), strict=True
            )
        )
        total = features[1][..., seen, :].sum(-2)
        query = features[0][..., i, :]
        read = (query.unsqueeze(-1) * state).sum(-2)
        found.append(read / (query * total).sum(-1, keepdim=True))
    return torch.stack(found, dim=-2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [1, 7, 140])
def test_it_is_the_sum_carried_from_word_to_word(n, causal, draw, agree):
    q, k, v = draw(2, n, 5), draw(2, n, 5), draw(2, n, 4)
    for attend in (linear_attention, linear_by_scan):
        agree(attend(q, k, v, causal), naive(q, k, v, causal), q, k, v)


@pytest.mark.parametrize("causal", [False, True])
def test_it_is_its_matrix_of_weights(causal, draw, agree):
    q, k, v = draw(3, 2, 300, 5), draw(3, 2, 300, 5), draw(3, 2, 300, 4)
    features = [torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k)]
    weights = features[0] @ features[1].mT
    weights = weights.tril() if causal else weights
    theirs = weights / weights.sum(-1, keepdim=True) @ v
    agree(linear_by_scan(q, k, v, causal), theirs, q, k, v)


def test_causal_words_see_no_later_ones(draw):
    q, k, v = (draw(300, 4) for _ in range(3))
    linear_by_scan(q, k, v, causal=True)[150].sum().backward()
    assert v.grad[:151].any(-1).all()
    assert v.grad[151:].eq(0).all()
    assert k.grad[151:].eq(0).all()


@pytest.mark.parametrize("attend", [linear_attention, linear_by_scan])
@pytest.mark.parametrize("causal", [False, True])
def test_features_that_vanish_give_zeros_and_finite_gradients(attend, causal, draw):
    q, k, v = (draw(9, 4, dtype=torch.float32) for _ in range(3))
    found = attend(q - 1000, k, v, causal)
    assert found.eq(0).all()
    found.sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, k, v))
