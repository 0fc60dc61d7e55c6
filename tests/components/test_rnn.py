import pytest

from course_lib.rnn import sequential_steps


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
