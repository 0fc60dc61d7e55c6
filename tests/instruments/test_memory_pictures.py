"""Lesson 15's pictures say in words what they show."""

import pytest

from course_lib.instruments import plots
from course_lib.instruments.pictures import memories as pictures


def arm(layers, *by_steps):
    recalled = {str(150 * 2**i): shares for i, shares in enumerate(by_steps)}
    return {"layers": layers, "d_k": 8, "recalled": recalled}


STEPS = [
    arm(["delta rule"] * 2, [0.9, 0.8], [1.0, 0.96]),
    arm(["linear attention"] * 2, [0.3, 0.4], [0.7, 0.6]),
]


def test_recall_by_steps_tells_the_means_of_each_memory(said):
    pictures.by_steps(STEPS, last=0.18)
    assert "delta rule: 85 after 150, 98 after 300" in said[0]
    assert "linear attention: 35 after 150, 65 after 300" in said[0]
    assert said[0].endswith("Always naming the last value written: 18.")


def test_a_swap_is_told_alone_and_in_company(said):
    losses = {"2017": [2.0, 2.2], "rotary": [1.7, 1.9], "mixture": [2.1, 2.3], "together": [1, 1]}
    arms = {name: {"losses": by_seed, "cached": 512} for name, by_seed in losses.items()}
    pictures.swaps(arms, {"without rotary": [1.2, 1.2], "without mixture": [1.1, 1.1]})
    assert "rotary: alone +0.30, in company +0.20, cache 512" in said[0]
    assert "mixture: alone -0.10, in company +0.10" in said[0]


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (pictures.kimi_k3, "24 in all; the 69 others"),
        (pictures.rounds, "position 8 holds steps 1 to 8"),
        (pictures.delta_rule, "which the query reads: the output o"),
    ],
)
def test_every_drawing_says_what_it_shows(said, draw, needed):
    draw()
    assert needed in said[0]


def test_kimi_k3_has_as_many_layers_of_each_kind_as_its_title_says(monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "show", lambda figure, alt, **_: figures.append(figure))
    pictures.kimi_k3()
    colours = [patch.get_facecolor() for patch in figures[0].axes[0].patches]
    assert sorted(map(colours.count, set(colours))) == [24, 69]
