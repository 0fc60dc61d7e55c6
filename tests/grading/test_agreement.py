"""`check` in a kernel, `course check` and `course grade` say the same of every answer.

With COURSE_WEEKLY=1, once a week, all pages are solved, and all known mistakes and
alternatives tried; otherwise one page's, a right and a wrong one in turn. That references pass is
a law of each exercise; that a page's checks pass when it is solved, `tests/notebooks` executes.
"""

import ast
import inspect
import json
import re
import textwrap
from itertools import zip_longest

import pytest

from course_lib.answers.answer import InProcess
from course_lib.answers.process import ChildProcess
from course_lib.answers.source import define, find_source, source_of
from course_lib.checking.catalogue import ids, load, module
from course_lib.checking.notebook.answer_cells import forbidden_name
from course_lib.checking.notebook.solution_text import self_contained
from course_lib.checking.notebook.submission import find_answers, verdicts
from course_lib.checking.verdict import judge
from course_lib.files.course_map import number_of
from course_lib.grading.judging.isolation import best_level
from course_lib.grading.judging.judge import Judge
from course_lib.grading.judging.rules import Rules
from lessons.build import build, lesson_files
from tests import WEEKLY

SECONDS = 60
EXERCISES = [load(exercise_id) for exercise_id in ids()]
PAGES = [x for x in lesson_files() if number_of(x) in {y.lesson for y in EXERCISES}]
if not WEEKLY:
    PAGES = [x for x in PAGES if number_of(x) == "03"]


@pytest.fixture(scope="module")
def child():
    with ChildProcess(seconds=SECONDS) as process:
        yield process


@pytest.fixture(scope="module", params=PAGES, ids=number_of)
def file(request):
    """Go through the pages one by one, so that all tests of one share its sandbox."""
    return request.param


@pytest.fixture
def graded(sandboxes):
    with Judge(Rules(best_level(), 0, seconds=SECONDS)) as judge:
        yield lambda notebook: judge.entry(json.dumps(notebook).encode())["exercises"]


def cell(source, exercise_id=None):
    metadata = {"exercise": exercise_id} if exercise_id else {}
    return {"cell_type": "code", "metadata": metadata, "source": source}


def notebook(cells, lesson):
    return {"cells": cells, "metadata": {"course": {"lesson": lesson}}, "nbformat": 4}


def checked(notebook, child, alone=False):
    return {x.exercise: x for x in verdicts(find_answers(notebook, "This", alone=alone), child)}


def undecorated(source):
    """Parse a source, and take its answers out of the exercise's lists."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            decorators = [(x, ast.unparse(x)) for x in node.decorator_list]
            node.decorator_list = [x for x, text in decorators if not text.startswith("exercise.")]
    return tree


def pasted(answer, name):
    """Write an answer of the exercise's file with all that it needs, under the exercise's name.

    Strangers' answers (`research/evaluation`) are texts already, and no better here: a sixth of the
    exercises has none, and they stand on other answers of their page, so that a wrong one below a
    right one would change its verdict, as it should. What is pasted stands on nothing.
    """
    (node,) = undecorated(source_of(answer)).body
    if isinstance(answer, type) and isinstance(node, ast.FunctionDef):
        # a mistake that is one method of a class
        [node.name] = (x for x, y in vars(answer).items() if inspect.isfunction(y))
        method = textwrap.indent(ast.unparse(node), "    ")
        (node,) = ast.parse(
            f"class {answer.__name__}({answer.__mro__[1].__name__}):\n{method}"
        ).body
    names = vars(inspect.getmodule(answer)) | {"__name__": "__answer__"}
    plain = define(ast.unparse(node), answer.__name__, names)
    inlined = ("course_lib.", "__answer__")
    source = self_contained(plain, lambda module: module.startswith(inlined), given={"exercise"})
    # what it stands on may be a mistake or an alternative too
    source = ast.unparse(undecorated(source)) + "\n"
    words = set(re.findall(r"\w+", source))
    if words & {x.name for x in EXERCISES}:  # it stands on other answers, or on the right one
        body = textwrap.indent(source, "    ")
        return f"def made():\n{body}    return {answer.__name__}\n\n\n{name} = made()\n"
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == answer.__name__:
            node.name = name
        elif isinstance(node, ast.Name) and node.id == answer.__name__:
            node.id = name
    return ast.unparse(tree)


def written(exercise):
    """List the known mistakes that have a source: a stock mistake has none of its own."""
    answers, own = [mistake.answer for mistake in exercise.mistakes], module(exercise.id)
    return [x for x in answers if find_source(x) and x.__module__ == own]


def rounds(lesson):
    """Yield an answer to each exercise of a lesson, and then others: all, or a right or wrong one.

    So half of a notebook's answers are right, and half are wrong.
    """
    exercises = [x for x in EXERCISES if x.lesson == lesson]
    if WEEKLY:
        rows = [[*x.alternatives, *written(x)] for x in exercises]
    else:
        kinds = [(x.alternatives, written(x)) for x in exercises]
        rows = [(pair[n % 2] or pair[1 - n % 2])[:1] for n, pair in enumerate(kinds)]
    for answers in zip_longest(*rows):
        yield {x.id: y for x, y in zip(exercises, answers, strict=True) if y is not None}


@pytest.mark.skipif(not WEEKLY, reason="once a week; test_judge.py has one page")
def test_the_solved_notebook_of_a_lesson_gets_all_points(file, graded):
    found = graded(build(file, solved=True))
    assert len(found) == sum(x.lesson == number_of(file) for x in EXERCISES)
    for x, y in found.items():
        assert y["status"] == "passed", f"{x}: {y['message']}"


def test_a_verdict_is_the_same_in_all_three(file, child, graded):
    lesson = number_of(file)
    for answers in rounds(lesson):
        sources = {x: pasted(answer, load(x).name) for x, answer in answers.items()}
        written = notebook([cell(source, x) for x, source in sources.items()], lesson)
        there, away = checked(written, child), graded(written)
        for x, source in sources.items():
            here = judge(load(x), InProcess(define(source, load(x).name)))
            found = [
                (here.status, here.points),
                (there[x].status, there[x].points),
                (away[x]["status"], away[x]["points"]),
            ]
            assert found == found[:1] * 3, (x, answers[x].__name__, found, here.message, away[x])


SET_UP = "import torch\nfrom torch import nn"
SCORES = "def dot_scores(q, k):\n    return q @ k.mT"
SUM = "def weighted_sum(weights, v):\n    return weights @ v"
ANSWERS = {
    "softmax": """
def softmax(scores, mask=None):
    shown = torch.ones_like(scores).bool() if mask is None else mask
    peak = scores.masked_fill(~shown, -torch.inf).amax(-1, keepdim=True)
    raised = (scores - peak).masked_fill(~shown, -torch.inf).exp()
    return raised / raised.sum(-1, keepdim=True).clamp(min=1)""",
    "dot_scores": SCORES,
    "weighted_sum": SUM,
    "attend": """
def attend(queries, states, mask=None):
    weights = softmax(dot_scores(queries, states), mask)
    return weighted_sum(weights, states), weights""",
}
# each is an odd cell of one answer, which costs no other one its points
ODD = {
    "plain": ("dot_scores", SCORES, "passed"),
    "a bracket too many": ("weighted_sum", f"{SUM})", "error"),
    "a text cell": ("weighted_sum", None, "error"),
    "a number behind `global`": (
        "dot_scores",
        "n = 0\ndef dot_scores(q, k):\n    global n\n    n += 1\n    return q @ k.mT",
        "passed",
    ),
    "a helper whose name another answer uses": (
        "weighted_sum",
        f"def helper(a, b):\n    return a @ b\n{SUM.replace('weights @ v', 'helper(weights, v)')}",
        "passed",
    ),
    "a built layer": (
        "weighted_sum",
        "class Sum(nn.Module):\n    def forward(self, weights, v):\n        return weights @ v\n"
        "weighted_sum = Sum()",
        "passed",
    ),
    "a star import": ("softmax", f"from torch import *\n{ANSWERS['softmax']}", "passed"),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_is_odd_in_one_answer_costs_no_other_one(odd, child, graded):
    name, source, status = ODD[odd]
    texts = ANSWERS | {name: source}
    if "helper" in odd:
        helped = SCORES.replace("k.mT", "helper(k)")
        texts["dot_scores"] = f"def helper(a):\n    return a.mT\n{helped}"
    cells = [cell(SET_UP)]
    for own, text in texts.items():
        kind = {"cell_type": "code" if text else "markdown"}
        cells += [cell(text or SUM, f"attention/{own}") | kind]
        cells += [cell(f'{own} = mine("attention/{own}")')]
    said = notebook(cells, "02")
    expected = dict.fromkeys(ANSWERS, "passed") | {name: status}
    there, away = checked(said, child, alone=True), graded(said)
    for own, wanted in expected.items():
        assert there[f"attention/{own}"].status == wanted, there[f"attention/{own}"].message
        assert away[f"attention/{own}"]["status"] == wanted, away[f"attention/{own}"]["message"]


# each is what two answers share in a notebook without `mine`: the same object, as there
TOGETHER = {
    "an object": {
        "softmax": "ALL = object()\n"
        + ANSWERS["softmax"].replace("if mask is None", "if mask is None or mask is ALL"),
        "attend": ANSWERS["attend"].replace(", mask)", ", ALL if mask is None else mask)"),
    },
    "an older self": {
        "weighted_sum": f"{SUM}\nolder = weighted_sum\ndef weighted_sum(weights, v):\n"
        "    return older(weights, v)",
    },
    "a dataclass": {
        "weighted_sum": "from dataclasses import dataclass\n@dataclass\nclass Sum:\n"
        f"    of: 'torch.Tensor'\n{SUM.replace('weights @ v', 'Sum(weights @ v).of')}",
    },
}


@pytest.mark.parametrize("shared", TOGETHER)
def test_answers_may_share_what_their_notebook_has(shared, child, graded):
    texts = ANSWERS | TOGETHER[shared]
    cells = [cell(text, f"attention/{own}") for own, text in texts.items()]
    said = notebook([cell(SET_UP), *cells], "02")
    there, away = checked(said, child), graded(said)
    for x in (f"attention/{own}" for own in texts):
        assert there[x].status == "passed", (x, there[x].message)
        assert away[x]["status"] == "passed", (x, away[x]["message"])


def test_what_is_forbidden_is_no_better_for_being_taken_by_mine():
    hidden = f"{SUM}\nweighted_sum.ready = nn.functional.scaled_dot_product_attention"
    through = "def attend(q, k, mask=None):\n    return weighted_sum.ready(q, k, k)"
    cells = [cell(SET_UP), cell(hidden, "attention/weighted_sum")]
    cells += [cell('weighted_sum = mine("attention/weighted_sum")')]
    cells += [cell(through, "attention/attend")]
    found = find_answers(notebook(cells, "02"), "This", alone=True).attempts["attention/attend"]
    assert [x.exercise.name for x in found.stands_on] == ["weighted_sum"]
    assert "scaled_dot_product_attention" in str(forbidden_name(found))


def test_what_mine_gives_of_another_lesson_is_there_though_both_are_graded(sandboxes):
    [file] = lesson_files(["06"])
    asked = [x.id for x in EXERCISES if x.lesson in ("03", "06")]
    with Judge(Rules(best_level(), 0, seconds=SECONDS, exercises=asked)) as judging:
        found = judging.entry(json.dumps(build(file, solved=True)).encode())["exercises"]
    assert {found[x.id]["status"] for x in EXERCISES if x.lesson == "06"} == {"passed"}
