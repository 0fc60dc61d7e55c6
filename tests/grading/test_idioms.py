"""Usual ways to write an answer pass alike in Lab, in `course check` and in `course grade`."""

import json

import pytest

from course_lib.answers.process import ChildProcess
from course_lib.answers.source import source_of
from course_lib.checking.catalogue import load
from course_lib.checking.notebook.answer_cells import warning
from course_lib.checking.notebook.check import check, verdict
from course_lib.checking.notebook.mine import mine
from course_lib.checking.notebook.session import attempt
from course_lib.checking.notebook.submission import find_answers, verdicts
from course_lib.files.workspace import Workspace
from course_lib.grading.judging.isolation import best_level
from course_lib.grading.judging.judge import Judge
from course_lib.grading.judging.rules import Rules
from tests import TENTH
from tests.grading.test_hostile import read as cells_of

HELLO, LAYER = "start/hello", "self_attention/layer"
LAYER_SET_UP = (
    "import torch\nfrom torch import nn, Tensor\nfrom jaxtyping import Bool, Float\n"
    "from course_lib.exercises import mine\nproject = mine('self_attention/project')\n"
    "scaled_dot_product_attention = mine('self_attention/scaled_dot_product')"
)
SET_UP = "import torch\nfrom torch import nn\nfrom course_lib.exercises import check, mine"
DOUBLE = "def double(x):\n    return {}"
# cells of code, the last of which defines `double`; a dictionary is put in front of it
IDIOMS = {
    "a constant that calls": ('NEG_INF = float("-inf")', "x + x.clamp(min=NEG_INF)"),
    "a constant of another": ("SMALL = 0.5\nBIG = -1 / SMALL", "-BIG * x"),
    "a square root": ("import math\nROOT = math.sqrt(4)", "ROOT * x"),
    "a tensor": ("TWO = torch.eye(1)[0, 0] * 2", "x * TWO.to(x)"),
    "a layer": ("relu = nn.ReLU()", "2 * (relu(x) - relu(-x))"),
    "a device by a condition": (
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
        "2 * x.to(x.device if device else device)",
    ),
    "a device by if": (
        'if torch.cuda.is_available():\n    device = "cuda"\nelse:\n    device = "cpu"',
        "2 * x if device else x",
    ),
    "a module by another name": ("F = torch.nn.functional", "2 * (F.relu(x) - F.relu(-x))"),
    "an import by another name": (
        "import torch.nn.functional as F, math",
        "2 * (F.relu(x) - F.relu(-x))",
    ),
    "a lambda": ("twice = lambda t: t * 2", "twice(x)"),
    "a partial": (
        "from functools import partial\ntwice = partial(torch.mul, torch.tensor(2))",
        "twice(x).to(x.dtype)",
    ),
    "an import in try": (
        "try:\n    import seaborn as library\nexcept ImportError:\n    library = None",
        "2 * x if library is None else x + x",
    ),
    "a table by a loop": ("TABLE = {}\nfor i in range(3):\n    TABLE[i] = 2 * i", "TABLE[1] * x"),
    "a list by a loop": (
        "factors = []\nfor i in range(3):\n    factors.append(i)",
        "factors[2] * x",
    ),
    "a comprehension": ("TABLE = {i: i * i for i in range(3)}", "TABLE[2] * x / 2"),
    "an augmented assignment": ("FACTOR = 1\nFACTOR += 1", "FACTOR * x"),
    "two at once": ("ONE, TWO = 1, 2", "TWO * ONE * x"),
    "with": (
        "with torch.no_grad():\n    TWO = torch.ones(()) * 2",
        "x * TWO.to(x)",
    ),
    "a decorator": (
        "def twice(f):\n    return lambda x: 2 * f(x)",
        ("@twice\ndef double(x):\n    return x"),
    ),
    "a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass Settings:\n    factor: float = 2.0\n"
        "settings = Settings()",
        "settings.factor * x",
    ),
    "an attribute set later": (
        "class Settings:\n    pass\nsettings = Settings()\nsettings.factor = 2",
        "settings.factor * x",
    ),
    "wrapped in its own cell": (
        "",
        DOUBLE.format("2 * x") + "\ndouble = torch.enable_grad()(double)",
    ),
    "a lambda as the answer": ("", "double = lambda x: 2 * x"),
    "a plot beside it": (
        "import matplotlib.pyplot as plt",
        DOUBLE.format("2 * x") + "\nplt.plot([1, 2])\nplt.close()",
    ),
    "a loop beside it": (
        "FACTOR, losses = [2], []",
        "for step in range(3):\n    losses.append(step)\n" + DOUBLE.format("FACTOR[0] * x"),
    ),
    "annotations that come later": (
        "from __future__ import annotations",
        "def double(x: Tensor) -> Later:\n    return 2 * x",
    ),
    "warnings": ("import warnings", 'x * 2 if x.numel() else warnings.warn("nothing")'),
    "the largest number": ("import sys", "2 * x.clamp(max=sys.maxsize)"),
    "numbers of its own": ("", "2 * x if not torch.equal(torch.randn(x.shape), x) else x"),
    "a decorator that wraps": (
        "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def inner(x):\n"
        "        return 2 * f(x)\n    return inner",
        "@twice\ndef double(x):\n    return x",
    ),
    "a compiled helper": ("@torch.jit.script\ndef twice(x):\n    return 2 * x", "twice(x)"),
    "a star import": ("from torch import *\nfrom math import *", "add(x, x)"),
    "the operating system": ("import os", "2 * x if os.sep else x"),
    "the name of a class": ("", '2 * x if x.__class__.__name__ != "int" else x'),
}


# cells that IPython runs, by which nothing of an answer is lost
CELLS = {
    "a magic beside the operator": "%pwd\ndef double(x):\n    name = (\n"
    "        'a%s'\n        % 1\n    )\n    return 2 * x if name == 'a1' else x",
    "signs inside of a text": "!ls\nTEXT = '''\n%d\n!important\nhelp?\n'''\n"
    "def double(x):\n    return 2 * x if TEXT == '\\n%d\\n!important\\nhelp?\\n' else x",
    "an attribute of a shell's": "class A: pass\nA.b = !ls\n{}",
    "an item of a shell's": "d = {{}}\nd['k'] = !ls\n{}",
    "a question about an item": "L = [1]\nL[0]?\n{}",
    "a wildcard": "*int*?\n{}",
    "a call without brackets": "/abs 3\n{}",
    "a shell's line that goes on": "!ls \\\n    -l\n{}",
    "a magic that goes on": "%timeit -n 1 -r 1 sum(\\\n    range(3))\n{}",
    "a prompt": ">>> def double(x):\n...     return 2 * x",
    "all of it indented": "    def double(x):\n        return 2 * x",
    "questions": "??abs\nabs?\n{}",
    "timed": "%time FACTOR = 2\ndef double(x):\n    return FACTOR * x",
}


@pytest.mark.parametrize("cell", CELLS)
def test_what_ipython_runs_is_read_as_the_answer_that_it_is(lab, cell):
    text = CELLS[cell].format(DOUBLE.format("2 * x"))
    sources = [{"cell_type": "code", "metadata": {}, "source": x} for x in (SET_UP, text)]
    found = find_answers({"cells": sources, "metadata": {"course": {"lesson": "00"}}}, "This")
    assert found.remarks == []
    for answer in (lab([SET_UP, text])["double"], found.attempts[HELLO].define()):
        assert verdict(HELLO, answer).status == "passed"


SUSPICIOUS = cells_of("suspicious")


@pytest.mark.parametrize("name", [*SUSPICIOUS][TENTH])
def test_an_honest_answer_that_looks_suspicious_has_all_its_points(graded, name):
    found = graded([SET_UP, SUSPICIOUS[name]])
    assert (found["status"], found["points"]) == ("passed", found["max_points"]), found


@pytest.fixture(scope="module")
def child():
    with ChildProcess(seconds=60) as process:
        yield process


@pytest.fixture
def lab(shell, tmp_path, monkeypatch):
    """Run cells as a notebook does, and return the names that they give."""
    monkeypatch.chdir(tmp_path)

    def run(cells):
        for cell in cells:
            shell.run_cell(cell, store_history=True)
        return shell.user_ns

    return run


@pytest.fixture
def graded(sandboxes):
    """Grade cells, the last of which is an exercise's, as `course grade` does."""

    def entry(cells, exercise_id=HELLO):
        told = {"course": {"lesson": load(exercise_id).lesson}}
        whole = [{"cell_type": "code", "metadata": {}, "source": x} for x in cells]
        whole[-1]["metadata"] = {"exercise": exercise_id}
        notebook = {"cells": whole, "metadata": told, "nbformat": 4}
        with Judge(Rules(best_level(), 0, seconds=60)) as judge:
            return judge.entry(json.dumps(notebook).encode())["exercises"][exercise_id]

    return entry


@pytest.fixture
def three(child, graded, lab):
    """Judge cells in Lab, by `course check`, and graded; say what else Lab and check say."""

    def statuses(cells, exercise_id=HELLO):
        exercise = load(exercise_id)
        shown = lab(cells).get(exercise.name)
        here = verdict(exercise_id, shown)
        said = warning(attempt(exercise))
        told = {"course": {"lesson": exercise.lesson}}
        whole = [{"cell_type": "code", "metadata": {}, "source": x} for x in cells[:-1]]
        whole.append(
            {"cell_type": "code", "metadata": {"exercise": exercise_id}, "source": cells[-1]}
        )
        notebook = {"cells": whole, "metadata": told, "nbformat": 4}
        submission = find_answers(notebook, "This")
        there = {x.exercise: x for x in verdicts(submission, child)}[exercise_id]
        away = graded(cells, exercise_id)
        return [
            (here.status, here.message, said),
            (there.status, there.message, warning(submission.attempts[exercise_id])),
            (away["status"], away["message"], None),
        ]

    return statuses


@pytest.mark.parametrize("idiom", IDIOMS)
def test_a_usual_way_passes_in_all_three_and_is_kept(idiom, three, lab, tmp_path, capsys):
    before, answer = IDIOMS[idiom]
    answer = answer if "double" in answer else DOUBLE.format(answer)
    found = three([SET_UP, before, answer])
    assert found == [("passed", "Every case and every property holds.", None)] * 3
    Workspace.make(tmp_path)
    capsys.readouterr()
    check(HELLO, lab([])["double"])
    assert "cannot run" not in capsys.readouterr().out
    assert verdict(HELLO, mine(HELLO)).status == "passed"
    assert capsys.readouterr().out == "double: your own\n"


def test_a_class_patched_after_its_definition_passes_in_all_three(three):
    given, _, body = source_of(load(LAYER).reference).partition("    def forward(")
    stub = f"{given}    def forward(self, x, mask=None):\n        raise NotImplementedError\n"
    forward = "def forward(" + body.replace("\n    ", "\n")
    cells = [LAYER_SET_UP, f"{stub}\n{forward}\nSelfAttention.forward = forward"]
    assert [(status, said) for status, _, said in three(cells, LAYER)] == [("passed", None)] * 3


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (
            [
                "from course_lib.masks import causal_mask",
                DOUBLE.format("2 * x if causal_mask else x"),
            ],
            "`causal_mask` is of course_lib.masks.causal_mask, which is not to be had there.",
        ),
    ],
)
def test_what_passes_here_and_would_not_when_graded_is_said_at_once(three, cells, reason):
    here, there, _ = three([SET_UP, *cells])
    assert (here[0], there[0]) == ("passed", "passed")
    for said in (here[2], there[2]):
        assert said.startswith("Passes here; graded, it would not: ")
        assert reason in said


def test_what_no_cell_has_is_no_attempt(lab):
    lab(
        ["import types", "globals()['double'] = types.FunctionType((lambda x: 2 * x).__code__, {})"]
    )
    assert attempt(load(HELLO)) is None
