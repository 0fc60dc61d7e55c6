"""Lesson 13's pictures say in words what they show, and its tiles move by the same numbers."""

import html
import math
import re

import pytest
import torch

from course_lib.instruments.pictures import tiles as pictures

SCORES, VALUES = [1, 3, 2, 5, 1, 4], [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("block", [1, 2, 3, 4, 6])
def test_an_online_softmax_ends_at_the_softmax_of_the_row_whatever_the_tile(block):
    last = pictures.online(SCORES, VALUES, block)[-1]
    weights = torch.tensor(SCORES, dtype=torch.float64).softmax(-1)
    wanted = (weights @ torch.tensor(VALUES, dtype=torch.float64)).item()
    assert math.isclose(last.output / last.total, wanted)
    assert last.peak == 5


def test_the_tiles_that_move_have_the_scores_and_nothing_left_to_fill(displayed):
    data = displayed(lambda: pictures.online_softmax(SCORES, VALUES, 3))
    page = html.unescape(data["text/html"])
    assert f"scores = {SCORES}, values = {VALUES}" in page
    assert not re.search(r"\[\[[A-Z]+\]\]", page)
    assert (
        "scores 5  1  4: times 0.135, then 5, 1.59, 6.74. At the end o / l is 4.24"
        in (data["text/plain"])
    )


def test_a_global_block_is_heard_of_in_two_layers_and_a_window_moves_on_by_its_reach():
    near = (torch.arange(9).unsqueeze(-1) - torch.arange(9)).abs() <= 1
    hub = torch.zeros(9, 9).bool()
    hub[0], hub[:, 0] = True, True
    assert [len(pictures.heard(sees)) - 1 for sees in (near, hub)] == [8, 2]


def test_a_plan_is_told_by_its_tiles(said):
    pictures.plans("Two", {"all": torch.ones(3, 3).bool(), "own": torch.eye(3).bool()})
    assert "all: 9 of 9; own: 3 of 9" in said[0]


def test_needles_are_told_apart_by_whether_a_path_leads_there(said):
    path, share = torch.tensor([True, False]), torch.tensor([0.75, 0.125])
    every = torch.ones(2).bool()
    pictures.found({"a": share, "b": share}, {"a": path, "b": every}, [1, 5])
    assert "a: 0.75 and 0.12; b: 0.44" in said[0]


def test_losses_are_told_after_the_window(said):
    flat, rising = torch.ones(64), torch.cat([torch.ones(32), 5 * torch.ones(32)])
    pictures.losses("It breaks", {"all": flat, "window": rising}, 32)
    assert "all: 1.0; window: 5.0" in said[0]


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (pictures.square_and_tile, "one tile of 2 by 2"),
        (pictures.memories, "no n by n matrix crosses"),
        (pictures.needle, "the global block"),
        (
            lambda: pictures.time_by_tiles(
                {"exact": 4, "window": 2}, {"exact": 0.2, "window": 0.1}, {"exact": 0.05}
            ),
            "exact, 4 tiles: 200; window, 2 tiles: 100. Compiled, exact: 50",
        ),
        (
            lambda: pictures.layers_until({"a": [0.1, 0.5, 1.0], "b": [0.1, 1.0]}),
            "a: all after 2; b: all",
        ),
    ],
)
def test_every_picture_has_its_finding_in_words(said, draw, needed):
    draw()
    [text] = said
    assert needed in text
