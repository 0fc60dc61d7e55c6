"""Behind the sandbox an answer is judged as in a notebook, and a notebook however it is written."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from course_lib.answers.answer import InProcess
from course_lib.answers.source import find_source, source_of
from course_lib.checking import catalogue
from course_lib.checking.catalogue import load
from course_lib.checking.notebook.solution_text import standalone
from course_lib.checking.stubs import stub
from course_lib.checking.verdict import judge
from course_lib.command_line.main import main
from course_lib.grading.judging.isolation import best_level
from course_lib.grading.judging.judge import Judge
from course_lib.grading.judging.rules import MEMORY, Rules, exercises_of
from course_lib.grading.judging.sandbox import Sandbox

SEED, SECONDS = 11, 60
ENGINE = ("course_lib.answers", "course_lib.checking", "course_lib.exercises", "exercise =")
SET_UP = "import torch\nfrom course_lib.exercises import check, mine"
RIGHT = "def double(x):\n    return 2 * x"
SOFTMAX = "def softmax(scores, mask=None):\n    return scores * 0"


@pytest.fixture
def judge_of(sandboxes):
    """Judge by these rules, in sandboxes that tests share."""
    return lambda **rules: Judge(Rules(best_level(), SEED, seconds=SECONDS, **rules))


@pytest.fixture
def entry(judge_of):
    """Judge the cells of a notebook; (exercise_id, source) is the cell of an exercise."""
    with judge_of() as judge:

        def entry(*cells, lesson="00"):
            pairs = [cell if isinstance(cell, tuple) else (None, cell) for cell in cells]
            return judge.entry(notebook(pairs, lesson))

        yield entry


def notebook(pairs, lesson):
    cells = [
        {
            "cell_type": "code",
            "metadata": {"exercise": exercise_id} if exercise_id else {},
            "source": source.splitlines(keepends=True),
        }
        for exercise_id, source in pairs
    ]
    course = {"course": {"lesson": lesson}}
    return json.dumps({"cells": cells, "metadata": course, "nbformat": 4}).encode()


def verdict(found, exercise_id="start/hello"):
    return found["exercises"][exercise_id]


def alone(answer) -> str:
    """Write a function of an exercise's file with all that it needs, and nothing of the engine."""
    parts = []
    for node in ast.parse(inspect.getsource(inspect.getmodule(answer))).body:
        engine = getattr(node, "module", None) or ast.unparse(node)
        if engine.startswith(ENGINE):
            continue
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if node.decorator_list and node.name != answer.__name__:
                continue
            node.decorator_list = []
        parts.append(ast.unparse(node))
    return "\n\n".join(parts)


@pytest.mark.parametrize(
    "exercise_id", ["start/hello", "attention/softmax", "multi_head/split_heads"]
)
def test_a_verdict_is_the_same_in_the_sandbox(sandboxes, exercise_id):
    exercise = replace(load(exercise_id))
    exercise.forbidden = ()  # known mistakes are written with the library's own code
    answers = [*exercise.alternatives, *(mistake.answer for mistake in exercise.mistakes)]
    own = catalogue.module(exercise_id)
    answers = [x for x in answers if find_source(x) and x.__module__ == own]
    with sandboxes("99", best_level(), SECONDS, MEMORY) as sandbox:
        for answer in answers:
            sandbox.hold(alone(answer), answer.__name__)
            there, here = judge(exercise, sandbox, SEED), judge(exercise, InProcess(answer), SEED)
            assert replace(there, failure=None) == replace(here, failure=None)


def test_answers_are_found_by_name_wherever_they_stand(entry):
    found = entry(
        "%matplotlib inline\n!ls\nx = train()",
        "raise SystemExit('a demonstration')",
        ("start/hello", stub(load("start/hello").reference)),
        "def helper(x):\n    return x + x",
        "%%time\ndef double(x):\n    return helper(x)",
        "def helper(x):\n    return x * 3  # tried later, after the answer had been made",
        "this is no Python",
    )
    assert verdict(found)["status"] == "passed"
    assert found["message"].startswith("cell 7, line 1 is not Python")
    assert verdict(entry("x = 1"))["status"] == "not attempted"


def test_answers_stand_on_the_notebook_and_on_earlier_lessons(entry):
    cells = [
        f"{SET_UP}\nfrom course_lib.attention import softmax as weigh",
        ("attention/softmax", SOFTMAX),
        'softmax = mine("attention/softmax")',
        (
            "attention/soft_lookup",
            "def soft_lookup(query, keys, values, temperature):\n    return softmax(query)",
        ),
        ("attention/dot_scores", "def dot_scores(q, k):\n    return weigh(q @ k.mT)"),
    ]
    found = entry(*cells, lesson="02")
    # its own softmax, which gives zeros: no error, and no help from the library
    assert verdict(found, "attention/soft_lookup")["status"] in ("wrong", "known mistake")
    message = verdict(found, "attention/dot_scores")["message"]
    assert "`weigh` is of course_lib.attention.softmax, which is not to be had here" in message
    earlier = f"{SET_UP}\nfrom course_lib.attention import dot_scores"
    earlier += "\nsoftmax = mine('attention/softmax')"
    own = (
        "self_attention/parameter_free",
        "def parameter_free(x, causal=False):\n"
        "    seen = torch.ones(x.shape[-2], x.shape[-2], dtype=bool, device=x.device).tril()\n"
        "    return softmax(dot_scores(x, x), seen if causal else None) @ x",
    )
    found = entry(earlier, own, lesson="03")
    assert verdict(found, "self_attention/parameter_free")["status"] == "passed"


def test_what_is_not_there_is_said_and_costs_its_names_alone(entry):
    later = "from course_lib.self_attention import project\nimport os, math, transformers"
    own = "def double(x):\n    return {}"
    assert verdict(entry(later, own.format("math.floor(2.5) * x")))["status"] == "passed"
    found = verdict(entry(later, own.format("project(x, x, x, x)")))
    assert found["status"] == "error"
    assert "`project` is of course_lib.self_attention.project, which is not" in found["message"]


def test_what_one_answer_may_call_it_cannot_leave_behind_for_another(entry):
    may = "def dot_scores(q, k):\n    torch.nn.functional.relu = torch.softmax\n    return q @ k.mT"
    may_not = "def softmax(scores, mask=None):\n    return torch.nn.functional.relu(scores, -1)"
    found = entry(SET_UP, may, may_not, lesson="02")
    assert verdict(found, "attention/dot_scores")["status"] == "passed"
    assert verdict(found, "attention/softmax")["points"] < 4


def test_one_mistake_costs_once_and_the_librarys_code_stays_in_one_process(entry, monkeypatch):
    held = []
    hold = Sandbox.hold

    library = standalone(load("attention/dot_scores"))

    def note(self, source, name, others=()):
        held.append((name, library in dict(others), list(self.executed)))
        hold(self, source, name, others)

    monkeypatch.setattr(Sandbox, "hold", note)
    calls = "def weighted_sum(weights, v):\n    return dot_scores(weights, v.mT)"
    after = "def soft_lookup(query, keys, values, temperature):\n    return query"
    found = entry(SET_UP, "def dot_scores(q, k):\n    return q", calls, after, lesson="02")
    assert verdict(found, "attention/dot_scores")["status"] != "passed"
    caller = verdict(found, "attention/weighted_sum")
    assert caller["status"] == "passed"
    assert caller["message"].endswith(
        "(Judged on the library's `dot_scores`: yours has not passed.)"
    )
    names = [name for name, borrowed, _ in held if borrowed]
    assert names == ["weighted_sum"] * len(names)
    for name, _, executed in held:
        assert name == "weighted_sum" or library not in executed
    # it comes last, so that no later answer needs a process of its own
    assert [name for name, *_ in held][-1] == "weighted_sum"
    assert list(found["exercises"]) == exercises_of(["02"])


def test_an_error_is_said_with_its_cell_and_costs_its_own_exercise_alone(entry):
    cells = [SET_UP, "def dot_scores(q, k):\n    return float('three') * q @ k"]
    cells.append("def weighted_sum(weights, v):\n    return weights @ v")
    found = entry(*cells, lesson="02")
    assert verdict(found, "attention/dot_scores")["message"] == (
        "ValueError: could not convert string to float: 'three'. "
        "Line 2: return float('three') * q @ k (in cell 2)."
    )
    assert verdict(found, "attention/weighted_sum")["status"] == "passed"


LOSS = """
def softmax(scores, mask=None):
    return torch.nn.functional.cross_entropy(scores, scores.exp()) * scores
"""


def test_what_an_answer_had_computed_is_in_its_entry(entry):
    found = verdict(entry(SET_UP, LOSS, lesson="02"), "attention/softmax")
    assert found["status"] == "forbidden"
    assert "aten._log_softmax" in found["dispatched"]
    assert "dispatched" not in verdict(entry(SET_UP, SOFTMAX, lesson="02"), "attention/softmax")


def test_an_answer_that_is_the_librarys_is_marked_whatever_its_names(entry):
    exercise = load("attention/softmax")
    imports = f"{SET_UP}\nfrom einops import reduce\nfrom torch import Tensor"
    imports += "\nfrom jaxtyping import Bool, Float"
    pasted = re.sub(r"\bmask\b", "seen", source_of(exercise.reference))
    own = "def softmax(s, mask):\n    s = s.exp()\n    t = s.sum(-1)\n    return s / t"
    for source, same in ((pasted, True), (own, None), (SOFTMAX, None)):
        found = verdict(entry(imports, source, lesson="02"), "attention/softmax")
        assert found.get("same_as_library") is same
    # of a line, everybody's is the same
    assert "same_as_library" not in verdict(entry(RIGHT))


def test_a_notebook_of_another_lesson_is_none_of_those_graded(judge_of):
    with judge_of(exercises=["start/hello"]) as judge:
        found = judge.entry(notebook([(None, RIGHT)], "02"))
    assert found["message"] == "This is the notebook of 02: what is graded here is 00."


def test_points_may_be_others_and_partial_points_follow(judge_of):
    exercise = load("start/hello")
    most = judge(exercise, InProcess(exercise.reference)).max_points
    cells = [(None, "def double(x):\n    return x.detach() * 2")]
    content = notebook(cells, "00")
    with judge_of() as plain:
        before = verdict(plain.entry(content))
    with judge_of(points={"start/hello": 100}) as weighted:
        after = verdict(weighted.entry(content))
    assert 0 < before["points"] < most
    by_property = [x["points"] * 100 / most for x in before.pop("properties")]
    assert [x["points"] for x in after.pop("properties")] == pytest.approx(by_property, abs=0.01)
    assert after == before | {
        "max_points": 100,
        "points": round(100 * before["points"] / most, 2),
    }


UNUSUAL = "def double(x):\n    import os\n    return 2 * x + 0 * len(os.sep)"


def test_what_is_unusual_is_flagged_with_its_place_and_costs_nothing(entry):
    found = verdict(entry(SET_UP, UNUSUAL))
    assert (found["status"], found["points"]) == ("passed", found["max_points"])
    assert found["flags"] == [{"cell": 2, "line": 3, "seen": "`os.sep` reaches any function"}]
    assert "flags" not in verdict(entry(SET_UP, RIGHT))


def test_with_strict_what_is_flagged_has_no_points_and_the_student_is_told(judge_of):
    with judge_of(strict=True) as judge:
        found = verdict(judge.entry(notebook([(None, UNUSUAL)], "00")))
        right = verdict(judge.entry(notebook([(None, RIGHT)], "00")))
    assert (found["status"], found["points"]) == ("forbidden", 0)
    assert "`os.sep` reaches any function (cell 1, line 3)" in found["message"]
    assert right["status"] == "passed"


def test_private_exercises_are_judged_and_their_files_stay_outside(judge_of, private_package):
    file = str(private_package / "__init__.py")
    reading = f"def double(x):\n    return x * len(open({file!r}).read())"
    importing = "import private_exercises\ndef double(x):\n    return private_exercises.twice.y(x)"
    with judge_of(exercises=["private/twice"]) as judge:
        found = [
            verdict(judge.entry(notebook([(None, source)], "01")), "private/twice")["status"]
            for source in (RIGHT, reading, importing)
        ]
    assert found == ["passed", "error", "error"]


def test_a_notebook_of_a_lesson_may_still_hold_what_has_moved_to_an_exploration(judge_of):
    moved = "positions/tree_distance"
    answer = source_of(load(moved).reference)
    imports = "import torch\nfrom torch import Tensor\nfrom jaxtyping import Int"
    older = notebook([(None, imports), (moved, answer)], "04")
    for exercises in ([], exercises_of(["04_trees"])):
        with judge_of(exercises=exercises) as judge:
            found = judge.entry(older)
            assert verdict(found, moved)["status"] == "passed"
    assert found["lesson"] == "04_trees"


def test_a_notebook_of_a_newer_python_says_so(entry, monkeypatch):
    made = json.loads(notebook([(None, SET_UP), ("start/hello", RIGHT)], "00"))
    for version, newer in (("3.99.1", "3.99"), ("3.9.1", None), ("4", None), (3, None)):
        made["metadata"]["language_info"] = {"name": "python", "version": version}
        with Judge(Rules(best_level(), SEED, seconds=SECONDS)) as judge:
            found = judge.entry(json.dumps(made).encode())
        assert found.get("python") == newer
        assert found["message"].startswith("Written with Python 3.99; this") == bool(newer)


def test_the_notebook_that_a_command_solves_gets_all_points(judge_of, tmp_path, capsys):
    path = tmp_path / "ada.ipynb"
    assert main(["solution", "03", "--notebook", str(path)]) == 0
    with judge_of() as judge:
        found = judge.entry(path.read_bytes())["exercises"]
    assert [*found] == exercises_of(["03"])
    assert {x["status"] for x in found.values()} == {"passed"}
    assert main(["solution", "03", "--notebook", str(path)]) == 2
    assert main(["solution", "99", "--notebook", str(tmp_path / "b.ipynb")]) == 2
    assert "is there already: name another file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b" \n", "it is empty"),
        ("{}".encode("utf-16"), "its text is UTF-16: save it in Jupyter"),
        ('{"é": 1}'.encode("cp1252"), "its text is not UTF-8"),
        (b"<!DOCTYPE html><title>Log in</title>", "it is a web page, such as one to log in"),
        (b"{", "its content is not JSON"),
    ],
)
def test_what_is_no_notebook_is_named(judge_of, content, said):
    with judge_of() as judge:
        found = judge.entry(content)
    assert found["status"] == "unreadable"
    assert f"This is not a notebook: {said}" in found["message"]


# what computes the larger part of an exercise, by ways that no one forbade by name
LARGER_PART = {
    "an optimizer's function": (
        "adamw/step",
        "from torch.optim.adamw import adamw\ndef adamw_step(*x):\n    return adamw(*x)",
    ),
    "a line through points": (
        "scaling/fit_power_law",
        "import statistics\ndef fit_power_law(x, y):\n"
        "    return statistics.linear_regression(x, y)",
    ),
    "a polynomial": (
        "scaling/fit_power_law",
        "from numpy.polynomial.legendre import legfit\ndef fit_power_law(x, y):\n"
        "    return legfit(x, y, 1)",
    ),
    "another polynomial": (
        "scaling/fit_power_law",
        "import numpy as np\ndef fit_power_law(x, y):\n"
        "    return np.polynomial.Hermite.fit(x, y, 1)",
    ),
    "a distribution": (
        "attention/softmax",
        "from torch.distributions import Categorical\ndef softmax(x, mask=None):\n"
        "    return Categorical(logits=x).probs",
    ),
    "a distribution's logarithm": (
        "attention/softmax",
        "import torch\nfrom torch.distributions import Categorical\n"
        "def softmax(x, mask=None):\n"
        "    each = torch.arange(x.shape[-1])\n"
        "    return Categorical(logits=x.unsqueeze(-2)).log_prob(each).exp()",
    ),
    "a logarithm that is undone": (
        "attention/softmax",
        "def softmax(x, mask=None):\n    return x.log_softmax(-1).exp()",
    ),
    "a thread": (
        "attention/softmax",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from torch.distributions import Categorical\n"
        "def softmax(x, mask=None):\n    with ThreadPoolExecutor() as pool:\n"
        "        return pool.submit(lambda: Categorical(logits=x).probs).result()",
    ),
    "a layer of the grader's": (
        "self_attention/scaled_dot_product",
        "from course_lib.answers.probe_layers import attention_by_softmax as ready\n"
        "def scaled_dot_product_attention(q, k, v, mask=None):\n    return ready()(q, k, v, mask)",
    ),
}


@pytest.mark.parametrize("way", LARGER_PART)
def test_what_computes_the_larger_part_is_refused(entry, way):
    exercise_id, source = LARGER_PART[way]
    lesson = catalogue.outline(exercise_id).lesson
    found = verdict(entry((exercise_id, source), lesson=lesson), exercise_id)
    assert (found["status"], found["points"]) == ("forbidden", 0)


OUT_OF_ORDER = """
import ast, sys
from course_lib.checking.notebook.statements import Notebook, statements
for texts in ast.literal_eval(sys.stdin.read()):
    cells = [x for i, text in enumerate(texts) for x in statements(i, text, ast.parse(text))]
    [answer] = [x for x in cells if x.defines]
    print([x.text for x in Notebook(cells).needed(answer, "double")[0]])
"""


def test_the_same_notebook_is_the_same_answer_in_every_process():
    names = [f"n{i}" for i in range(8)]
    given = f"def double(x, a=({', '.join(names)})):\n    return 2 * x"
    below = ["count = iter(range(99))", *(f"{name} = next(count)" for name in names)]
    notebooks = [[given, *below], [given, "\n".join(below)], [*below[1:], given, below[0]]]
    found = [
        subprocess.run(
            [sys.executable, "-c", OUT_OF_ORDER], input=repr(notebooks), text=True,
            capture_output=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert found[0] == found[1]
    for line in found[0].splitlines()[:2]:
        assert ast.literal_eval(line) == [*below, given]


ALONE = """
import sys
from course_lib.grading.judging.isolation import best_level
from course_lib.grading.judging.judge import Judge
from course_lib.grading.judging.rules import Rules
with Judge(Rules(best_level(), 0, exercises=[sys.argv[1]])) as judge:
    [found] = judge.entry(sys.stdin.buffer.read())["exercises"].values()
modules = [x for x in sys.modules if x.startswith("course_lib.exercises.") and x.count(".") == 3]
print(found["status"], *modules)
"""


def test_an_answer_needs_no_exercise_but_its_own():
    # one cell is half done, one stands on another: neither is asked for
    cells = [
        (None, SET_UP),
        ("attention/dot_scores", stub(load("attention/dot_scores").reference)),
        ("attention/softmax", standalone(load("attention/softmax"))),
    ]
    found = subprocess.run(
        [sys.executable, "-c", ALONE, "attention/softmax"], input=notebook(cells, "02"),
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert found.decode().split() == ["passed", "course_lib.exercises.attention.softmax"]
