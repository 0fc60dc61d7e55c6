"""A race measures what a model has learned, and says in one sentence why it cannot."""

import json
import math
import re

import pytest

from course_lib.checking.notebook import race
from course_lib.command_line.main import main
from course_lib.files.workspace import Workspace
from course_lib.instruments import results

LEARNED = "the cat sat on the mat. " * 40
HELD_OUT = "the mat sat on the cat. " * 25
VOCAB = len(set(LEARNED))
UNIFORM = """
import torch
def learn(text, seconds):
    size = len(set(text))
    return lambda text: torch.full((len(text), size), 1 / size)
"""
# what stands in for the uniform rows, and what is said of it
WRONG = {
    "torch.ones(3)": r"must return a tensor of the shape \(256, 11\) .*, not \(3,\)",
    "'often e'": r"of the shape \(256, 11\) .*, not str",
    "torch.ones(len(text), size)": "must sum to 1, and the sum of one is off by 10",
    "torch.randn(len(text), size)": "are these logits, without the softmax",
    "torch.full((len(text), size), float('nan'))": "a probability is at least 0",
    "torch.eye(size)[torch.zeros(len(text), dtype=torch.long)]": "had the probability 0",
    "torch.eye(size)[[ord(text[-1]) % size] * len(text)]": "does the model see the future",
    "1 / 0": r"the predictor failed, ZeroDivisionError: division by zero \(cell 1, line 5",
}


@pytest.fixture(scope="module")
def runner():
    with race.Runner(10) as runner:
        yield runner


def outcome(code, runner, **more):
    places = tuple((1, line) for line in range(1, code.count("\n") + 1))
    return race.run(race.Entry(code, places), LEARNED, HELD_OUT, runner, **more)


def test_equal_probabilities_have_the_loss_log_vocab(runner):
    assert math.isclose(outcome(UNIFORM, runner).loss, math.log(VOCAB), rel_tol=1e-6)


def test_a_better_model_has_a_lower_loss(runner):
    code = """
import torch
from course_lib.ngrams import NGrams
def learn(text, seconds):
    vocab = sorted(set(text))
    def encode(text): return torch.tensor([vocab.index(x) for x in text])
    counts = NGrams(encode(text), len(vocab), 4)
    return lambda text: counts.probabilities(encode(text))
"""
    assert outcome(code, runner).loss < 1


@pytest.mark.parametrize("rows", WRONG)
def test_what_are_no_probabilities_is_named(rows, runner):
    code = UNIFORM.replace("torch.full((len(text), size), 1 / size)", rows)
    with pytest.raises(race.Lost, match=WRONG[rows]):
        outcome(code, runner)


def test_a_predictor_may_not_learn_from_what_it_is_asked(runner):
    code = """
import torch
def learn(text, seconds):
    size, seen = len(set(text)), []
    def predict(text):
        seen.append(text)
        rows = torch.full((len(text), size), 1.0)
        rows[:, 0] += len(set(seen))
        return rows / rows.sum(-1, keepdim=True)
    return predict
"""
    with pytest.raises(race.Lost, match="answers otherwise"):
        outcome(code, runner)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def learn(text, seconds):\n    pass\n", "must return a function"),
        ("def learn(text):\n    pass\n", "`learn` failed, TypeError"),
        ("import nothing_here\ndef learn(text, seconds):\n    nothing_here()\n", "nothing_here"),
        (
            "def learn(text, seconds):\n    import os\n    os._exit(3)\n",
            "ended, with exit status 3",
        ),
    ],
)
def test_a_failure_is_one_sentence(code, message, runner):
    with pytest.raises(race.Lost, match=message):
        outcome(code, runner)


def test_one_that_does_not_end_is_stopped():
    with race.Runner(0.5) as runner, pytest.raises(race.Lost, match="`learn` was stopped"):
        outcome("def learn(text, seconds):\n    while True: pass\n", runner)


def test_predictions_have_their_time_too(runner):
    slow = "sum(range(3_000_000)) and torch.full((len(text), size), 1 / size)"
    code = UNIFORM.replace("torch.full((len(text), size), 1 / size)", slow)
    with pytest.raises(race.Lost, match=r"predictions take more than 0\.01 seconds"):
        outcome(code, runner, seconds=0.01)


@pytest.fixture
def quick(monkeypatch, tmp_path, runner):
    """Race on a small text, in a workspace of one's own."""
    workspace = Workspace.make(tmp_path / "mine")
    monkeypatch.chdir(workspace.folder)
    monkeypatch.setattr(race, "texts", lambda: (LEARNED, HELD_OUT))
    published = {"both": {"title": "both", "loss": 0.5, "seconds": 60.0}}
    monkeypatch.setattr(results, "load", lambda name: {"figures": published})
    return workspace


def save(path, *cells):
    code = [{"cell_type": "code", "source": x, "metadata": {}, "outputs": []} for x in cells]
    path.write_text(json.dumps({"cells": code, "metadata": {}, "nbformat": 4}), "utf8")
    return path


def test_the_command_keeps_the_loss_with_its_code(quick, capsys):
    helper = "def rows(n, size):\n    return torch.full((n, size), 1 / size)"
    entry = "def learn(text, seconds):\n    return lambda x: rows(len(x), len(set(text)))"
    path = save(quick.folder / "10.ipynb", "import torch\nprint('not run')", helper, entry)
    (quick.folder / ".course" / "race").mkdir()
    (quick.folder / ".course" / "race" / "old.json").write_text("half a fi", "utf8")
    assert main(["race", str(path)]) == 0
    said = capsys.readouterr().out
    assert "yours, now" in said
    assert said.index("both") < said.index("yours, now")
    [kept] = (quick.folder / ".course" / "race").glob("2*.json")
    content = json.loads(kept.read_text("utf8"))
    assert content["loss"] == round(math.log(VOCAB), 4)
    assert content["code"].index("import torch") < content["code"].index("def learn")
    assert "not run" not in content["code"]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x = 1", "defines no function `learn"),
        (
            "def learn(text, seconds)\n    pass",
            "races .*cell 1, line 1 is not Python",
        ),
        ("def learn(text, seconds):\n    raise NotImplementedError", "is not written yet"),
        ("def learn(text, seconds):\n    return 1 / 0", "ZeroDivisionError.*cell 1, line 2"),
    ],
)
def test_the_command_says_what_is_missing(cell, message, quick, capsys):
    assert main(["race", str(save(quick.folder / "10.ipynb", cell))]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (quick.folder / ".course" / "race").exists()
