"""The times that were taken on a GPU, and what pages say of them."""

import re

from course_lib.files.paths import ROOT
from course_lib.instruments import results
from research.benchmarks.on_gpu import table

STORED = results.load("attention_on_gpu")["figures"]


def test_on_a_gpu_the_parts_compute_what_they_compute_on_a_processor():
    assert len(STORED["agreement"]) == 7
    assert max(STORED["agreement"].values()) < 1e-14


def test_lesson_13_says_what_was_measured():
    [lesson] = (ROOT / "lessons").glob("13_*.py")
    text = lesson.read_text("utf8")
    full, compiled = STORED["one step"]["full matrix"], STORED["one step"]["compiled"]
    names = ("full matrix, softmax by our formula", "tiles in one kernel")
    for way, own in zip(names, (full, compiled), strict=True):
        moved, taken = own["bytes"] / 1e9, 1000 * own["seconds"]
        row = f"{way} | {own['operations'] / 1e9:.0f} billion | {moved:.3g} GB | {taken:.3g} ms |"
        assert f"# | {row}\n" in text
    assert f"is {full['seconds'] / compiled['seconds']:.0f} times as fast" in text
    [book] = [row for row in STORED["rows"] if (row["way"], row["n"]) == ("compiled", 50_000)]
    said = f"took {1000 * book['seconds']:.0f} milliseconds on an H100, forward and backward"
    assert said in text
    by_way = {row["way"]: 1000 * row["seconds"] for row in STORED["rows"] if row["n"] == 50_000}
    taken = [by_way[way] for way in ("window, flex_attention", "compiled", "window")]
    assert re.findall(
        r"takes ([\d.]+) milliseconds with .*, (\d+) with .*, and (\d+) with", text
    ) == [tuple(f"{x:.2g}" if x < 10 else f"{x:.0f}" for x in taken)]


def test_what_lessons_13_and_14_say_of_rivals_was_measured():
    took = {(row["way"], row["n"]): row["seconds"] for row in STORED["rows"]}
    exact = {n: seconds for (way, n), seconds in took.items() if way == "compiled"}
    assert all(took["window", n] > exact[n] for n in exact)
    assert min((seconds, way) for (way, n), seconds in took.items() if n == 4096)[1] == "compiled"


def test_the_table_has_a_dash_where_nothing_ran():
    row = {"way": "exact", "n": 1024, "seconds": 0.0021, "MiB": 300}
    assert table({"rows": [row]}).splitlines()[-1] == "| exact | 2.1 | — | — | — | — | — |"
