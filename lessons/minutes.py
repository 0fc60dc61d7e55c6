"""How long lessons take: `python -m lessons.minutes [01 02 ...]`.

Reading has a speed, and so has everything else that a reader does on a page; an exercise says its
minutes itself. The core path leaves out the sections whose heading ends with "(optional)" and the
optional exercises.
"""

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

import jupytext
from nbformat import NotebookNode

from course_lib.checking.catalogue import outline
from lessons.build import MARK, lesson_files

WORDS = 150  # a minute, of technical English
PREDICTION, FIGURE, CODE = 1.0, 0.5, 0.25  # minutes: to guess, to look, to run and to read
HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)


class Minutes(NamedTuple):
    """What a lesson takes, in minutes: all of it, and the core path."""

    all: float
    core: float


def minutes(cells: list[NotebookNode]) -> Minutes:
    """Measure the cells of a lesson, as written in its file."""
    every = core = 0.0
    for cell, optional in with_optional(cells):
        taken = _minutes(cell)
        if cell.source.startswith(MARK):
            optional |= outline(_exercise(cell)).optional
        every += taken
        core += 0.0 if optional else taken
    return Minutes(every, core)


def with_optional(cells: list[NotebookNode]) -> Iterator[tuple[NotebookNode, bool]]:
    """Yield each cell, and whether its section is optional."""
    skipped = 7  # the level of the heading whose section is optional; 7 is none
    for cell in cells:
        for marks, title in HEADING.findall(cell.source) if cell.cell_type == "markdown" else []:
            if len(marks) <= skipped:
                skipped = len(marks) if title.endswith("(optional)") else 7
        yield cell, skipped < 7


def _minutes(cell: NotebookNode) -> float:
    if cell.cell_type == "markdown":
        # a formula is looked at like a figure, a folded answer is read like any text
        text, formulas = re.subn(r"\$\$.*?\$\$", "", cell.source, flags=re.DOTALL)
        return len(text.split()) / WORDS + FIGURE * formulas
    if cell.source.startswith(MARK):
        return outline(_exercise(cell)).minutes
    if "hide-input" in cell.metadata.get("tags", []):
        return FIGURE
    return PREDICTION if cell.source.startswith("guess = None") else CODE


def _exercise(cell: NotebookNode) -> str:
    return cell.source.removeprefix(MARK).strip()


if __name__ == "__main__":
    for file in lesson_files(sys.argv[1:]):
        taken = minutes(jupytext.read(file, fmt="py:percent").cells)
        print(f"{file.stem}: {taken.all:.0f} minutes, of which {taken.core:.0f} are the core path")
