import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.before_attention import unroll
from course_lib.efficient.cost import operations
from course_lib.self_attention import scaled_dot_product_attention


def multiply_adds(compute):
    with FlopCounterMode(display=False) as counter:
        compute()
    # torch counts a multiplication and an addition as two
    return counter.get_total_flops() // 2


@pytest.mark.parametrize(("n", "d"), [(5, 3), (3, 7), (4, 4)])
def test_as_many_operations_are_counted_as_torch_counts(n, d):
    x, w, h = torch.ones(1, n, d), torch.ones(d, d), torch.zeros(1, d)
    attended = multiply_adds(lambda: scaled_dot_product_attention(x, x, x))
    assert operations("attention", n, d) == attended
    assert operations("rnn", n, d) == multiply_adds(lambda: unroll(x, h, w, w, torch.zeros(d)))


def test_attention_overtakes_the_rnn_where_n_passes_d():
    cheaper = [operations("attention", n, 64) < operations("rnn", n, 64) for n in (63, 64, 65)]
    assert cheaper == [True, False, False]
    assert operations("attention", 64, 64) == operations("rnn", 64, 64)


def test_another_kind_is_refused():
    with pytest.raises(ValueError, match="must be 'attention' or 'rnn', not 'lstm'"):
        operations("lstm", 3, 4)
