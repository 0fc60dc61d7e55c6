"""Where a learner is in a lesson: how much has passed, how long the rest takes, what is next."""

import statistics

import jupytext
import pytest

from course_lib.checking.catalogue import ids, outline
from course_lib.checking.notebook.progress import standing
from course_lib.files.course_map import pages
from course_lib.files.workspace import Workspace
from lessons.minutes import MARK, minutes


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Workspace.make(tmp_path)


def passes(workspace, *exercises):
    for exercise_id in exercises:
        workspace.note_check(exercise_id, "passed", 10, 10)


@pytest.mark.parametrize(
    ("exercise_id", "said"),
    [
        ("positions/rotary", "Next: `positions/mend_rotary` (6 minutes · ●●○)."),
        # an exploration is where its reader goes, and never what comes next
        ("positions/alibi", "Exploration 04_distances: 1 of 3 exercises"),
        ("positions/mend_rotary", "Next: `feed_forward/position_wise` of lesson 05 ("),
        ("positions/tree_distance", "Exploration 04_trees: 1 of 1 exercises"),
        ("positions/tree_distance", "Next: `feed_forward/position_wise` of lesson 05 ("),
        ("speculative/accept", "Next: `pretraining/classify` of lesson 16 ("),
        ("pretraining/mend_targets", "Next: `assistant/answer_mask` of lesson 17 ("),
        ("dpo/loss", "Exploration 17_preferences: 1 of 2 exercises"),
        ("lora/merge", "Next: `reward/pass_at_k` of lesson 18 ("),
        ("reward/preference_loss", "Next: `start/hello` of lesson 00 ("),
    ],
)
def test_what_is_next_is_what_comes_next_in_the_notebooks(workspace, exercise_id, said):
    assert said in str(standing(exercise_id, has_passed=True))


def test_what_has_passed_is_not_next(workspace):
    first, second, third, *_ = [x for x in ids() if outline(x).lesson == "02"]
    passes(workspace, second)
    found = standing(first, has_passed=True)
    assert (found.passed, found.exercises) == (2, sum(outline(x).lesson == "02" for x in ids()))
    assert found.following == outline(third)
    assert standing(first, has_passed=False).following == outline(first)


def test_the_whole_course_has_an_end(workspace):
    every = ids()
    left = "positions/tree_distance"
    passes(workspace, *(x for x in every if x not in (left, every[-1])))
    assert "Next: `positions/tree_distance` of exploration 04_trees (" in str(
        standing(every[-1], has_passed=True)
    )
    passes(workspace, left)
    said = str(standing(every[-1], has_passed=True))
    assert said.endswith("You have passed every exercise of the course.")


def test_outside_a_workspace_nothing_else_has_passed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = standing("attention/softmax", has_passed=True)
    assert (found.passed, found.following.id) == (1, "attention/dot_scores")


@pytest.mark.usefixtures("private_package")
def test_an_exercise_of_an_instructors_own_takes_its_minutes_too(workspace):
    before = standing("rnn/cell", has_passed=True)
    assert before.exercises == 5
    passes(workspace, "private/twice")
    assert standing("rnn/cell", has_passed=True).minutes <= before.minutes


def test_the_minutes_left_are_near_what_is_measured_cell_by_cell(workspace):
    """The estimate shares reading out by the length of the text; `lessons.minutes` counts it."""
    errors = []
    for page in pages():
        cells = jupytext.read(page.file, fmt="py:percent").cells
        for number, cell in enumerate(cells, start=1):
            if cell.source.startswith(MARK):
                exercise_id = cell.source.removeprefix(MARK).strip()
                measured = minutes(cells) - minutes(cells[:number])
                said = standing(exercise_id, has_passed=True).minutes
                # five minutes more or less do not matter in a page that is short
                errors.append(abs(said - measured) / max(page.minutes, 75))
                passes(workspace, exercise_id)
    assert statistics.mean(errors) < 0.05
    assert max(errors) < 0.15
