"""Figures that are kept, and the claims that they carry."""

import pytest

from course_lib.files.paths import ROOT
from course_lib.instruments import results
from experiments.__main__ import found


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


def test_no_experiment_takes_what_is_kept_for_its_own_measurement():
    for name in found():
        source = (ROOT / "experiments" / f"{name}.py").read_text("utf8")
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


SHORT, LONG = slice(1, 4), slice(7, 10)  # words of 4 to 6 letters, and of 10 to 12


def kept_share(run):
    """Return which part of a run's accuracy on short words is left on long ones."""
    return sum(run["accuracy"][LONG]) / sum(run["accuracy"][SHORT])


def test_one_vector_loses_long_words_with_every_seed():
    figures = results.load("rnn_limits")["figures"]
    assert figures["lengths"][SHORT] == [4, 5, 6]
    assert figures["lengths"][LONG] == [10, 11, 12]
    for run in (*figures["first"], *figures["every"]):
        falling = run["accuracy"][1:10]  # from 4 letters on
        assert falling == sorted(falling, reverse=True)
        assert kept_share(run) < 0.2
    assert 0.6 < kept_share(figures["g2p"]) < 0.75


def test_attention_keeps_more_of_long_words_with_every_seed():
    figures = results.load("attention")["figures"]
    without = [kept_share(run) for run in figures["one vector"]]
    attending = [kept_share(run) for run in figures["attention"]]
    assert min(attending) > 3 * max(without)
    for run, other in zip(figures["attention"], figures["one vector"], strict=True):
        pairs = zip(run["accuracy"], other["accuracy"], strict=True)
        assert all(attends > one_vector for attends, one_vector in pairs)


def test_gradients_vanish_at_the_beginning_fastest_without_gates_and_not_in_a_trained_model():
    figures = results.load("rnn_limits")["figures"]
    at_20 = {kind: [norms[20] for norms in seeds] for kind, seeds in figures["gradient"].items()}
    assert max(at_20["RNN"]) < 1e-6
    assert min(at_20["LSTM"] + at_20["GRU"]) > 1e-5
    assert max(at_20["LSTM"] + at_20["GRU"]) < 1e-3 < min(at_20["LSTM, forget + 1"])
    assert min(figures["gradient_g2p"]) > 0.5
