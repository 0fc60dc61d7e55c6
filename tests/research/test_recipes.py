"""The ladder of lesson 10: every rung trains, sees no future, and is asked in windows."""

from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest
import torch

from course_lib.corpus import NGrams
from research.experiments import recipes
from research.experiments.recipes import Predictor, by_clock, by_steps, ladder, train, windows

TOKENS = (torch.arange(3000) * torch.arange(3000) // 7) % 11


@pytest.mark.parametrize("name", ladder())
def test_a_rung_learns_within_its_seconds_and_sees_no_future(name, monkeypatch):
    # a processor on which each step takes a second
    monkeypatch.setattr(recipes, "time", SimpleNamespace(process_time=count().__next__))
    rung = replace(ladder()[name], layers=1, d_model=16, n=16, batch=4)
    predict, steps = train(rung, TOKENS, 11, by_clock(5), seed=0)
    assert steps == 4
    asked = TOKENS[:50]
    changed = asked.clone()
    changed[40:] = 10 - changed[40:]
    found, other = predict(asked), predict(changed)
    torch.testing.assert_close(found.sum(-1), torch.ones(50))
    torch.testing.assert_close(found[:40], other[:40], atol=1e-3, rtol=0)


@pytest.mark.parametrize("n", [8, 20, 64, 200])
def test_a_long_text_in_windows_has_what_the_whole_text_has(n):
    counts = NGrams(TOKENS, 11, 4)  # which look 3 tokens back, less than half a window
    whole = counts.probabilities(TOKENS[:101])
    torch.testing.assert_close(Predictor(counts, n)(TOKENS[:101]), whole)


def test_each_pass_shows_each_place_once():
    batches = windows(1000, n=10, batch=7, seed=0)
    seen = torch.cat([next(batches).flatten() for _ in range(15)])
    places, times = seen.unique(return_counts=True)
    assert len(places) >= 980
    assert times.max() <= 2
    assert int(places.max()) < 999


def test_so_many_steps_are_taken_whatever_the_clock_says():
    rung = replace(ladder()["windows"], layers=1, d_model=16, n=16, batch=4)
    assert train(rung, TOKENS, 11, by_steps(3), seed=0)[1] == 3
