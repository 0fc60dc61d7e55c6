"""Each lesson, its exercises solved, runs to its end in one shell, and every check passes.

The untouched notebooks run in kernels, as learners run them: `python -m tests`. What a kernel shows
is the same for both, so the solved ones do without.
"""

import time

import pytest

from research.experiments.claims import names_of
from lessons.build import build, lesson_files
from tests.lying_clock.sitecustomize import lying


@pytest.fixture
def short_and_lying_clocks(monkeypatch):
    """Leave trainings hardly any time, and measure times that mean nothing."""
    monkeypatch.setenv("COURSE_CLOCK", "0.01")
    monkeypatch.setattr(time, "perf_counter", lying(time.perf_counter, seed=1))
    monkeypatch.setattr(time, "process_time", lying(time.process_time, seed=2))


def what_answers_reach(cells):
    """Leave out the cells that no answer to an exercise reaches: the untouched notebook runs them.

    Reached are the exercises, and what reads a name that a reached cell binds, or `mine` of this
    lesson. Drawings are left out too. What a cell that stays reads is bound by cells that stay.
    """
    code = [cell for cell in cells if cell.cell_type == "code"]
    ids = [cell.metadata["exercise"] for cell in code if "exercise" in cell.metadata]
    reached, names = [], set()
    for cell in code:
        bound, read = names_of(cell.source)
        reached.append("exercise" in cell.metadata or any(x in cell.source for x in ids))
        if read & names or reached[-1]:
            reached[-1] = "hide-input" not in cell.metadata.get("tags", [])
            names |= bound
    kept, needed = [], set()
    for cell, is_reached in zip(code[::-1], reached[::-1], strict=True):
        bound, read = names_of(cell.source)
        if is_reached or bound & needed or "needs(" in cell.source:
            kept.append(cell)
            needed = needed - bound | read
    return kept[::-1]


# what matplotlib does with torch's tensors; in a kernel nobody sees it
@pytest.mark.filterwarnings("ignore:__array_:DeprecationWarning")
@pytest.mark.usefixtures("short_and_lying_clocks")
@pytest.mark.parametrize("lesson", lesson_files(), ids=lambda file: file.stem)
def test_a_solved_lesson_runs_to_its_end_and_passes_its_checks(lesson, run_cells):
    run_cells(what_answers_reach(build(lesson, solved=True).cells))
