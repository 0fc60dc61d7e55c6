"""Figures are kept with what made them, and a stopped experiment goes on."""

from functools import partial

import pytest

from course_lib.files.paths import ROOT
from course_lib.instruments import results
from research.experiments.__main__ import found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(results, "UNFINISHED", tmp_path / "unfinished")
    return tmp_path


def save(figures):
    return results.save("trial", figures, command="make results", seeds=(0, 1), seconds=1.26)


def test_results_are_kept_with_what_made_them(folder):
    path = save({"share": [0.5]})
    kept = results.load("trial")
    assert kept["figures"] == {"share": [0.5]}
    assert (kept["command"], kept["seeds"], kept["seconds"]) == ("make results", [0, 1], 1.3)
    assert kept["versions"].keys() == {"python", "torch", "course"}
    assert kept["machine"]["processor"]
    assert list(folder.iterdir()) == [path]


def test_an_experiment_that_was_stopped_goes_on_until_it_is_saved(folder):
    made = []

    def measure():
        made.append(len(made))
        return {"share": len(made)}

    settings = {"sizes": (1, 2)}
    assert results.once("trial", settings, "a", measure) == {"share": 1}
    assert results.once("trial", settings, "a", measure) == {"share": 1}
    assert results.once("trial", settings, "b", measure) == {"share": 2}
    # other settings, or a damaged file, begin anew
    assert results.once("trial", {"sizes": (1, 3)}, "a", measure) == {"share": 3}
    (folder / "unfinished" / "trial.json").write_text("{")
    assert results.once("trial", settings, "a", measure) == {"share": 4}
    save({})
    assert results.once("trial", settings, "a", measure) == {"share": 5}


def test_what_a_measurement_measures_inside_is_kept_as_well(folder):
    def outer():
        return 1 + results.once("stopped", {}, "inner", lambda: 2)

    assert results.once("stopped", {}, "outer", outer) == 3
    assert results.once("stopped", {}, "inner", pytest.fail) == 2


def test_seconds_are_those_of_all_runs_of_an_experiment(folder, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(results.time, "perf_counter", lambda: next(clock))
    inner = partial(results.once, "trial", {}, "inner", lambda: 2)
    results.once("trial", {}, "outer", inner)  # three seconds, one of them for the inner one
    monkeypatch.setattr(results, "_spent", {})  # another process
    results.once("trial", {}, "later", lambda: 3)
    save({})  # 1.26 seconds of its own
    assert results.load("trial")["seconds"] == 4.3


def test_no_experiment_takes_what_is_kept_for_its_own_measurement():
    for name in found():
        source = (ROOT / "research" / "experiments" / f"{name}.py").read_text("utf8")
        assert "results.load" not in source, f"{name}: `results.once` keeps what was interrupted"


def test_a_figure_that_is_no_number_leaves_the_old_results(folder):
    save({"share": 0.5})
    with pytest.raises(ValueError, match="not JSON compliant"):
        save({"share": float("nan")})
    assert results.load("trial")["figures"] == {"share": 0.5}


def test_missing_results_say_what_is_there(folder):
    save({})
    with pytest.raises(FileNotFoundError, match=r"called 'trail'.*\(there: trial\)"):
        results.load("trail")
