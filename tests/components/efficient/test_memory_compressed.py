import pytest
import torch

from course_lib.efficient.memory_compressed import compress, memory_compressed_attention
from course_lib.self_attention import scaled_dot_product_attention


def naive(x, weight, stride):
    states, n = [], x.shape[-2]
    for first in range(0, n, stride):
        words = range(first, min(first + len(weight), n))
        states.append(sum(x[..., i, :] @ weight[i - first] for i in words))
    return torch.stack(states, dim=-2)


@pytest.mark.parametrize(
    ("width", "stride"), [(3, 3), (3, 2), (2, 3), (1, 1), (5, 2), (20, 4), (1, 20)]
)
@pytest.mark.parametrize("n", [1, 6, 11])
def test_each_state_sums_up_its_words(n, width, stride, draw, agree):
    x, weight = draw(2, 4, n, 3), draw(width, 3, 5)
    found = compress(x, weight, stride)
    assert found.shape == (2, 4, -(-n // stride), 5)
    agree(found, naive(x, weight, stride), x, weight)


def test_one_word_a_state_is_dense_attention(draw, agree):
    q, k, v = draw(2, 300, 5), draw(2, 300, 5), draw(2, 300, 4)
    one, other = (torch.eye(d, dtype=torch.float64).unsqueeze(0) for d in (5, 4))
    ours = memory_compressed_attention(q, k, v, one, other, 1)
    agree(ours, scaled_dot_product_attention(q, k, v), q, k, v)


def test_it_is_dense_attention_to_the_states(draw, agree):
    q, k, v, w_k, w_v = draw(300, 5), draw(300, 5), draw(300, 4), draw(3, 5, 5), draw(3, 4, 4)
    theirs = scaled_dot_product_attention(q, naive(k, w_k, 3), naive(v, w_v, 3))
    agree(memory_compressed_attention(q, k, v, w_k, w_v, 3), theirs, q, k, v, w_k, w_v)


def test_a_stride_that_never_moves_on_is_refused(draw):
    with pytest.raises(ValueError, match="so 1 or more, not 0"):
        compress(draw(4, 3), draw(2, 3, 3), 0)
