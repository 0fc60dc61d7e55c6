"""Lesson 12's pictures say in words what they show."""

import pytest

from course_lib.instruments import isoflop
from course_lib.instruments.pictures import scaling as pictures

FLOPS = (1e10, 4e10)
RUNS = [
    {"flops": c, "parameters": n, "loss": 2.0 - i / 4 + (n / best - 1) ** 2}
    for i, (c, best) in enumerate(zip(FLOPS, (1e4, 2e4), strict=True))
    for n in (best / 2, best, 2 * best)
]


def test_valleys_name_the_least_point_of_each_budget_and_the_learners_row(said):
    yours = [(5e3, 2.34), (1e4, 2.25), (2e4, 2.5)]
    pictures.valleys(RUNS, yours)
    for flops in FLOPS:
        points = [(x["parameters"], x["loss"]) for x in RUNS if x["flops"] == flops]
        best, least = isoflop.minimum(points)
        assert f"{flops:.1e} operations: least {least:.2f} at {best:,.0f}" in said[0]
    best, least = isoflop.minimum(yours)
    own = "Your row: 2.34 at 5,000, 2.25 at 10,000, 2.50 at 20,000"
    assert said[0].endswith(f"{own}; its star {least:.2f} at {best:,.0f}.")


def test_a_score_tells_what_a_line_and_a_floor_promised_and_what_came(said):
    # each fourfold budget saves half of what the one before saved
    least = {3e10: 3.0, 1.2e11: 2.2, 4.8e11: 1.8}
    pictures.scored(least, [(2e4, 1.7), (4e4, 1.6), (8e4, 1.7)], 37_000)
    assert "1.70 at 20,000, 1.60 at 40,000, 1.70 at 80,000; the choice is 37,000" in said[0]
    assert said[0].endswith(
        "a line promises 1.37 at the fourth, a law with a floor 1.60; 1.60 came."
    )


def test_serving_tells_the_speed_of_one_text_and_of_a_full_memory(said):
    # 20 GB of weights and 60 GB for caches, read at 1 TB/s: a text has 1 MB a token
    pictures.serving(10e9, 1e6, [1000], flops=1e30, bandwidth=1e12)
    assert "contexts of 1,000: 48 alone, 750 for 60" in said[0]


@pytest.mark.parametrize(
    ("draw", "needed"),
    [
        (lambda: pictures.rectangles({8: (9, 2e6)}, 3e10), "9 parameters, 2.00 million by 15"),
        (lambda: pictures.row({8: 2.4, 16: 2.3, 32: 2.5}, 2.45), "2.30 with 7,488 parameters"),
        (lambda: pictures.waste(RUNS, 4e10, {1e4: 40.0, 2e4: 100.0}), "40 % at 10,000"),
        (lambda: pictures.memory({"a": 1e9, "b": 2e9, "c": 3e9, "d": 4e9}), "d 4.0 gigabytes"),
        (
            lambda: pictures.table_of_2017({"Transformer": (27.3, 3.3e18)}, {"Transformer": 9e17}),
            "27.3 at 3.3e+18. Counted, as hollow circles: Transformer 9.0e+17",
        ),
        (
            lambda: pictures.laws({"printed": ([(1e9, 2), (2e9, 1)], [(2e9, 1)])}, {"G": 2e9}),
            "1.0 at",
        ),
    ],
)
def test_every_picture_has_its_finding_in_words(said, draw, needed):
    draw()
    [text] = said
    assert needed in text
