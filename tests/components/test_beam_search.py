"""Beam search: equal to trying everything on small vocabularies, and greedy at width 1."""

import inspect
import itertools
import math

import pytest
import torch

from course_lib.answers.probe_layers import Probe
from course_lib.beam_search import beam_search

START, STOP = 1, 0


def everything(step, vocab, most, alpha):
    """Score every text of up to `most` tokens, its stop included."""
    others = [token for token in range(vocab) if token != STOP]
    for length in range(most):
        for tokens in itertools.product(others, repeat=length):
            prefix, total = [START], 0.0
            for token in (*tokens, STOP):
                total += step(torch.tensor([prefix]))[0, token].item()
                prefix.append(token)
            yield total / ((5 + length + 1) / 6) ** alpha, list(tokens)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize(("vocab", "most"), [(2, 6), (3, 5), (4, 4), (5, 3)])
def test_a_beam_that_drops_nothing_finds_the_best_of_all(vocab, most, alpha):
    for factor in range(2, 12):
        step = Probe("next_token", (vocab, factor)).make()
        score, tokens = max(everything(step, vocab, most, alpha))
        found = beam_search(step, START, STOP, 150, most, alpha)
        assert found[0] == tokens
        assert math.isclose(found[1], score, rel_tol=1e-9)


def test_a_wider_beam_finds_what_greedy_misses():
    better = 0
    for factor in range(2, 102):
        step = Probe("next_token", (6, factor)).make()
        narrow, wide = (beam_search(step, START, STOP, width, 12)[1] for width in (1, 8))
        better += wide > narrow
    assert better > 50


def test_no_more_prefixes_are_asked_than_the_beam_is_wide():
    step, asked = Probe("next_token", (7, 5)).make(), []

    def counted(prefixes):
        asked.append(len(prefixes))
        return step(prefixes)

    beam_search(counted, START, STOP, 3, 10)
    assert asked[0] == 1
    assert max(asked) == 3


def test_bad_arguments_are_told_in_one_sentence():
    search = inspect.unwrap(beam_search)
    step = Probe("next_token", (5, 3)).make()
    with pytest.raises(ValueError, match="a beam holds at least 1 prefix, not 0"):
        search(step, START, STOP, 0, 5)
    with pytest.raises(ValueError, match="no token has a probability above 0"):
        search(Probe("next_token", (5, 3, 1)).make(), START, STOP, 2, 5)
