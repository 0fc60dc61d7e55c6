"""What the instruments of cost and agreement promise."""

import time
from functools import partial

import pytest
import torch

from course_lib.attention import softmax
from course_lib.instruments.measuring import (
    largest_difference,
    random_vectors,
    saved_bytes,
    seconds,
)


def test_vectors_are_drawn_by_their_seed_and_gradients_flow_to_them():
    x = random_vectors(3, 4, seed=1, dtype=torch.float64)
    assert x.is_leaf
    assert x.requires_grad
    assert x.dtype == torch.float64
    assert x.equal(random_vectors(3, 4, seed=1, dtype=torch.float64))
    assert not x.equal(random_vectors(3, 4, seed=2, dtype=torch.float64))


def test_seconds_count_work_and_not_waiting():
    x = random_vectors(300, 300)

    def idle():
        time.sleep(0.2)
        return x * 1

    assert seconds(idle, times=1) < 0.1
    few, many = (seconds(lambda n=n: torch.stack([x @ x for _ in range(n)])) for n in (1, 20))
    assert many > 3 * few


@pytest.mark.parametrize(("clock", "times"), [("1", 3), ("inf", 3), ("0.01", 1)])
def test_seconds_are_taken_once_where_the_clock_is_short(monkeypatch, clock, times):
    monkeypatch.setenv("COURSE_CLOCK", clock)
    runs, x = [], random_vectors(2)
    seconds(lambda: runs.append(x) or x * 1)
    assert len(runs) == times


def test_a_storage_that_is_saved_twice_counts_once_and_what_is_known_not_at_all():
    x, weight = random_vectors(5, 8), random_vectors(8, 8)
    assert saved_bytes(lambda: x.exp()) == 5 * 8 * 4
    assert saved_bytes(lambda: x * x) == 5 * 8 * 4, "both factors are the same storage"
    assert saved_bytes(lambda: x @ weight) == (5 * 8 + 8 * 8) * 4
    assert saved_bytes(lambda: x @ weight, besides=[weight]) == 5 * 8 * 4
    assert saved_bytes(lambda: x + 1) == 0, "a sum needs nothing to go back"


def test_bytes_of_tensors_that_are_gone_are_counted_all_the_same():
    x = random_vectors(100)

    # each exponential is dropped at once, so the next one could get its address
    def drop():
        for _ in range(5):
            x.exp().sum()

    assert saved_bytes(drop) == 5 * 400


@pytest.mark.parametrize(("factor", "agrees"), [(1.0, True), (1.1, False)])
def test_a_difference_in_values_is_found(factor, agrees):
    x = random_vectors(4, dtype=torch.float64)
    assert (largest_difference(x * 2, factor * 2 * x, x) < 1e-12) == agrees


def test_a_difference_in_gradients_alone_is_found():
    x = random_vectors(4, dtype=torch.float64)
    assert largest_difference(x * 2, x + x.detach(), x) > 0.1


def test_torchs_softmax_keeps_one_row_of_weights_where_ours_keeps_two():
    scores, values = (torch.randn(8, 64, n).requires_grad_() for n in (64, 4))
    kept = [
        saved_bytes(lambda soft=soft: soft(scores) @ values, besides=[scores, values])
        for soft in (partial(torch.softmax, dim=-1), softmax)
    ]
    assert kept[0] == scores.nbytes
    assert kept[1] == pytest.approx(2 * scores.nbytes, rel=0.05)  # and a total a row
