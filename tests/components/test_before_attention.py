"""What holds of `course_lib.before_attention`."""

import pytest
import torch

from course_lib.before_attention import (
    layers_needed,
    receptive_field,
    sequential_steps,
    word_window,
)


def test_words_meet_in_n_steps_in_n_over_window_growth_or_in_one():
    assert [sequential_steps("rnn", n) for n in (1, 2, 9)] == [1, 2, 9]
    assert [sequential_steps("window", n, 3) for n in (1, 2, 3, 4, 9)] == [0, 1, 1, 2, 4]
    assert [sequential_steps("attention", n) for n in (1, 2, 9)] == [1, 1, 1]


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="must be 'rnn', 'window' or 'attention', not 'cnn'"):
        sequential_steps("cnn", 5)


def test_windows_of_no_width_are_refused():
    with pytest.raises(ValueError, match="needs a width: how many tokens does one window see"):
        sequential_steps("window", 5)


def words_seen(layers, width, n):
    """Count the words that the middle one of n states depends on, by its gradient."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    states = x
    for _ in range(layers):
        weight = torch.randn(width, 2, 2, generator=generator, dtype=torch.float64)
        states = torch.tanh(word_window(states, weight, torch.zeros(2, dtype=torch.float64)))
    (gradient,) = torch.autograd.grad(states[n // 2].sum(), x)
    return int((gradient != 0).any(-1).sum())


@pytest.mark.parametrize(("layers", "width"), [(0, 3), (1, 3), (3, 3), (2, 5), (4, 1)])
def test_a_state_depends_on_as_many_words_as_its_receptive_field(layers, width):
    expected = receptive_field(layers, width)
    assert words_seen(layers, width, n=expected + 4) == expected


@pytest.mark.parametrize(("n", "width"), [(9, 3), (25, 5)])
def test_the_lectures_n_over_window_layers_do_not_span_the_sentence(n, width):
    assert words_seen(n // width, width, n) < n
    assert words_seen(layers_needed(n - 1, width), width, n) == n


@pytest.mark.parametrize("width", [3, 5, 9])
def test_layers_needed_are_enough_and_one_less_is_not(width):
    for distance in range(1, 20):
        layers = layers_needed(distance, width)
        assert receptive_field(layers - 1, width) < distance + 1 <= receptive_field(layers, width)
    assert layers_needed(0, width) == 0


def test_a_window_without_a_middle_word_is_refused():
    with pytest.raises(ValueError, match="a window needs a middle token, so its width is odd"):
        word_window(torch.zeros(5, 2), torch.zeros(4, 2, 3), torch.zeros(3))


@pytest.mark.parametrize("width", [0, 1, 2, 4])
def test_windows_that_cannot_be_stacked_are_refused(width):
    with pytest.raises(ValueError, match=f"its width is odd, from 3, not {width}"):
        layers_needed(5, width)
