"""Pages of *find the bug* that are made by machine: alike, unlike any text, and to be mended."""

import contextlib
from collections import Counter

import pytest

from course_lib.answers.answer import InProcess
from course_lib.answers.source import find_source, source_of
from course_lib.checking import catalogue, laws
from course_lib.checking.laws.faults import ALIKE, NoFaults, faults, of_its_own
from course_lib.checking.laws.laws import defined
from course_lib.checking.laws.page_distance import ROOM, apart
from course_lib.checking.laws.single_steps import single_steps
from course_lib.checking.verdict import judge
from course_lib.files.course_map import is_exploration
from course_lib.files.paths import ROOT
from tests import WEEKLY

EXERCISES = catalogue.ids() if WEEKLY else ["attention/softmax", "rnn/gru_cell"]


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_a_page_fails_its_right_text_passes_and_no_public_answer_is_that_text(exercise_id):
    exercise = catalogue.load(exercise_id)
    right = single_steps(exercise, source_of(exercise.reference), "a")
    assert judge(exercise, InProcess(defined(exercise, right))).status == "passed"
    try:
        found = faults(exercise)
    except NoFaults as why:
        pytest.skip(f"{exercise_id}: {why}")
    shares = [x.failing / x.cases for x in found]
    assert max(shares) - min(shares) <= 2 * ALIKE
    for fault in found:
        page = fault.page(exercise, "a")
        assert judge(exercise, InProcess(defined(exercise, page))).status == "wrong"
        own, lines = of_its_own(exercise, page)
        assert own > lines / 2
    for answer in (exercise.reference, *exercise.alternatives):
        assert apart(right, find_source(answer) or "") > 2 * ROOM


@pytest.mark.parametrize("step", ["torch.relu(h)", "h = torch.cat([h, h])"])
def test_what_never_comes_to_an_end_is_no_fault_on_any_machine(monkeypatch, step):
    exercise = catalogue.load("rnn/gru_cell")
    right = single_steps(exercise, source_of(exercise.reference))
    *_, last = right.splitlines()
    endless = right.replace(last, f"    while True:\n        {step}\n{last}")
    monkeypatch.setattr(laws.faults, "_line_apart", lambda page, right: "a line")
    assert laws.faults._seen(exercise, endless, right) is None


@pytest.mark.skipif(not WEEKLY, reason="all exercises are looked at once a week")
def test_grading_says_which_lessons_have_no_pages():
    lessons = {x: catalogue.outline(x).lesson for x in catalogue.ids()}
    found = []
    for exercise_id in lessons:
        with contextlib.suppress(NoFaults):
            found += [exercise_id] if faults(catalogue.load(exercise_id)) else []
    pages = Counter(lessons[x] for x in found if not is_exploration(lessons[x]))
    *none, last = sorted({x for x in lessons.values() if not is_exploration(x)} - pages.keys())
    assert (min(pages.values()), max(pages.values())) == (1, 4)
    assert len(found) > len(lessons) / 3
    said = f"one to four of each lesson, but for {', '.join(none)} and {last}, which have none."
    assert said in (ROOT / "docs" / "GRADING.md").read_text("utf8")


def test_a_page_is_mended_in_the_room_that_there_is():
    exercise = catalogue.load("rnn/gru_cell")
    [fault] = [x for x in faults(exercise) if x.wrong == "x @ w_x - b_x"]
    page = fault.page(exercise, "a")
    mended = page.replace(" - b_x", " + b_x")
    assert apart(page, mended) <= 2
    assert judge(exercise, InProcess(defined(exercise, mended))).status == "passed"


def test_two_students_have_no_name_in_common_but_those_of_the_signature():
    exercise = catalogue.load("rnn/gru_cell")
    pages = [single_steps(exercise, source_of(exercise.reference), x) for x in ("a", "b")]
    assert pages[0] != pages[1]
    assert apart(*pages) > ROOM


def test_what_is_not_computed_at_once_stays_whole():
    exercise = catalogue.load("start/hello")
    source = (
        "def double(x):\n    y = [a * 2 for a in x] if x else x + x * 2\n    return -y[0] + 1\n"
    )
    text = single_steps(exercise, source)
    assert "[a * 2 for a in x] if x else x + x * 2" in text
    last = [x.partition("=")[0].split() for x in text.splitlines()[-2:]]
    assert last[1] == ["return", last[0][0], "+", "1"]


def test_layout_comments_and_imports_are_no_difference():
    page = "import math\n\ndef f(x):\n    'A text.'\n    return (x +\n        1)  # one\n"
    assert apart(page, "def f(x):\n    'A text.'\n    return x+1\n") == 0
    assert apart(page, "def f(x):\n    'A text.'\n    return x-1\n") == 1
    assert apart(page, "def f(x):\n    'return x - 1'\n    return eval(f.__doc__)\n") > 12
    assert apart(page, "def f(x:\n") > 0
