"""What a release for another tool holds: the exercises of a lesson, and what they stand on.

Tools that run a notebook from its first cell to its last would run the lesson's demonstrations and
trainings once for every student, and would need their data. So they stay in the lesson's own
notebook, with the sections that hold no exercise; what is left runs in seconds.
"""

import ast
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook

from course_lib.checking.catalogue import outline
from course_lib.files import ipynb
from course_lib.files.course_map import notebook_of, page_files
from course_lib.files.paths import ROOT
from course_lib.files.releases import HOW_TO_RUN, INSTALLATION, without, without_solution_links
from course_lib.grading.judging.rules import exercises_of
from course_lib.grading.judging.sandbox_files import PACKAGES

SECTION = re.compile(r"^## ", re.MULTILINE)  # in its cell, the bridge from the one before
PACKAGES_OF_ANSWERS = (
    f"Where `course grade` judges it, an answer may use\n{', '.join(PACKAGES[:-1])} and "
    f"{PACKAGES[-1]}, and Python's own modules."
)
NOTE = "These are the lesson's exercises. What it shows between them stands in its own notebook."
Cells = Iterable[NotebookNode]


def stem(lesson: str) -> str:
    """Return the name of a page's notebook. Raises LookupError where it has no exercises."""
    return path(lesson).stem


def points(lesson: str) -> int:
    """Return what a lesson's exercises are worth. Raises LookupError where it has none."""
    return sum(outline(exercise_id).points for exercise_id in exercises_of([lesson]))


def name(exercise_id: str) -> str:
    """Write an exercise's id as a name that other tools allow."""
    return exercise_id.replace("/", "-")


def notebook(
    lesson: str,
    exercise: Callable[[NotebookNode, str, str], Cells],
    other: Callable[[NotebookNode], Cells],
    first: Cells = (),
) -> str:
    """Return the text of a notebook with the exercises of a lesson.

    `exercise(cell, exercise_id, code)` lists the cells that stand for one with a stub, after this
    code; `other(cell)` those for one of text, imports or a given component; `first` go before all.
    Raises LookupError.
    """
    whole = nbformat.read(path(lesson), as_version=4)
    without_solution_links(whole)
    without(whole, INSTALLATION, HOW_TO_RUN)
    cells = [*first]
    for cell in _kept(whole.cells):
        exercise_id = ipynb.exercise(cell)
        code = "\n".join(map(ipynb.code, cells))
        cells += exercise(cell, exercise_id, code) if exercise_id else other(cell)
    made = new_notebook(cells=cells, metadata=whole.metadata)
    nbformat.validate(made)
    return nbformat.writes(made) + "\n"


def path(lesson: str) -> Path:
    """Return the notebook of a page. Raises LookupError where it has no exercises."""
    exercises_of([lesson])
    file = page_files().get(lesson)
    path = ROOT / "notebooks" / (notebook_of(file) if file else "")
    if not path.is_file():
        raise LookupError(f"no notebook of lesson {lesson} is in {ROOT / 'notebooks'}")
    return path


def _kept(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Return the title, and of each section what stands before its last needed cell, or in it."""
    own = {exercise_id for cell in cells if (exercise_id := ipynb.exercise(cell))}
    sections: list[list[NotebookNode]] = [[]]
    for cell in cells:
        if cell.cell_type == "markdown" and SECTION.search(cell.source):
            sections.append([])
        if cell.cell_type == "markdown" or _is_needed(cell, own):
            sections[-1].append(cell)
    title, *others = sections
    kept = [*title, new_markdown_cell(NOTE, id="exercises-alone")]
    for section in others:
        while section and section[-1].cell_type == "markdown":
            section.pop()
        kept += section
    return kept


def _is_needed(cell: NotebookNode, own: set[str]) -> bool:
    """Tell whether exercises need a cell of code, and take out of it what they do not."""
    if cell.cell_type != "code":
        return False
    ipynb.clear(cell)
    if ipynb.exercise(cell) or "given" in cell.metadata:
        return True
    kept = []
    for statement in ast.parse(cell.source).body:
        calls = _calls(statement)
        if not calls and not isinstance(statement, ast.Import | ast.ImportFrom):
            return False
        # a student's answers to this lesson stand for themselves
        if "needs" not in calls and not calls & own:
            kept.append(ast.get_source_segment(cell.source, statement))
    cell.source = "\n".join(kept)
    return bool(kept)


def _calls(statement: ast.stmt) -> set[str]:
    """Name `needs`, or `mine` and its exercises, where a statement consists of nothing else."""
    if not isinstance(statement, ast.Assign | ast.Expr):
        return set()
    calls: set[str] = set()
    value = statement.value
    for call in value.elts if isinstance(value, ast.Tuple) else [value]:
        match call:
            case ast.Call(ast.Name("needs" | "mine" as name), arguments):
                calls |= {name, *(str(x.value) for x in arguments if isinstance(x, ast.Constant))}
            case _:
                return set()
    return calls
