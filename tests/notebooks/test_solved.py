"""Each lesson, its exercises solved, runs to its end in one shell, and every check passes.

The untouched notebooks run in kernels, as learners run them: `python -m tests`. What a kernel shows
is the same for both, so the solved ones do without.
"""

import time

import pytest

from experiments.claims import names_of
from lessons.build import build, lesson_files
from tests.lying_clock.sitecustomize import lying


@pytest.fixture
def short_and_lying_clocks(monkeypatch):
    """Leave trainings hardly any time, and measure times that mean nothing."""
    monkeypatch.setenv("COURSE_CLOCK", "0.01")
    monkeypatch.setattr(time, "perf_counter", lying(time.perf_counter, seed=1))
    monkeypatch.setattr(time, "process_time", lying(time.process_time, seed=2))


def without_drawings(cells):
    """Leave out the cells that only draw, if no later one reads a name that they bind."""
    kept, needed = [], set()
    for cell in reversed([x for x in cells if x.cell_type == "code"]):
        bound, read = names_of(cell.source)
        if "hide-input" not in cell.metadata.get("tags", []) or bound & needed:
            kept.append(cell)
            needed = needed - bound | read
    return kept[::-1]


# what matplotlib does with torch's tensors; in a kernel nobody sees it
@pytest.mark.filterwarnings("ignore:__array_:DeprecationWarning")
@pytest.mark.usefixtures("short_and_lying_clocks")
@pytest.mark.parametrize("lesson", lesson_files(), ids=lambda file: file.stem)
def test_a_solved_lesson_runs_to_its_end_and_passes_its_checks(lesson, run_cells):
    run_cells(without_drawings(build(lesson, solved=True).cells))
