"""How long lessons take: `python -m lessons.minutes [01 02 ...]`.

Everything that a reader does on a page has a cost in minutes, and an exercise takes what it says.
The costs are fitted to the estimates of four people who read all sixteen lessons closely
(tests/lessons/readers.tsv).
"""

import re
import sys
from typing import NamedTuple

import jupytext
from nbformat import NotebookNode

from course_lib.checking.catalogue import outline
from lessons.build import MARK, lesson_files

FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
# a line of code that readers read: neither empty nor plumbing
LINE = re.compile(r'^(?!import |from |SEED = |needs\(|\w+ = mine\(").*\S', re.MULTILINE)

PICTURE = re.compile(r"\b(show|transformer|display)\(")
TRAINING = re.compile(r"\btrain(ed)?\(")


class Counts(NamedTuple):
    """What there is to do on a page, or what each of it costs in minutes."""

    words: float = 0
    pictures: float = 0  # figures and display formulas, to look at
    predictions: float = 0
    lines: float = 0  # of visible code, to read and to run
    trainings: float = 0  # to wait for
    exercises: float = 0  # in the minutes that they say


COSTS = Counts(
    words=1 / 150, pictures=0.5, predictions=1.5, lines=1 / 5, trainings=0.5, exercises=1
)


def minutes(cells: list[NotebookNode]) -> float:
    """Measure the cells of a lesson, as written in its file."""
    return sum(cost(_counts(cell)) for cell in cells)


def cost(counts: Counts) -> float:
    """Return how many minutes these things take."""
    return sum(number * each for number, each in zip(counts, COSTS, strict=True))


def _counts(cell: NotebookNode) -> Counts:
    source, tags = cell.source, cell.metadata.get("tags", [])
    if cell.cell_type == "markdown":
        # a folded answer is read like any text
        text, formulas = FORMULA.subn("", source)
        return Counts(words=len(text.split()), pictures=formulas)
    if source.startswith(MARK):
        return Counts(exercises=outline(_exercise(cell)).minutes)
    if source.startswith("guess = None"):
        return Counts(predictions=1)
    if "hide-input" in tags:
        # what is folded is read by its picture, if it has one
        return Counts(pictures=bool(PICTURE.search(source)))
    return Counts(lines=len(LINE.findall(source)), trainings=bool(TRAINING.search(source)))


def _exercise(cell: NotebookNode) -> str:
    return cell.source.removeprefix(MARK).strip()


if __name__ == "__main__":
    for file in lesson_files(sys.argv[1:]):
        taken = minutes(jupytext.read(file, fmt="py:percent").cells)
        print(f"{file.stem}: {taken:.0f} minutes")
