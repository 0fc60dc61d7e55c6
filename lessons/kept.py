"""What stays of a notebook when it is built again: the outputs of cells that have not changed.

A model that is trained on another processor ends elsewhere, and a picture of it has other bytes. So
a cell keeps its output as long as its code is the same (comments and docstrings compute nothing),
the results that it loads, and the cells that it stands on: those that have last bound, or changed,
a name that it reads. What a training has made is shown of one run of it: where one of the cells
that stand on it has to be new, all of them are.
"""

import ast
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from math import isclose
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from course_lib.checking.laws.page_distance import without_texts
from course_lib.checking.notebook.statements import IMPORTS, statements
from course_lib.files.releases import INSTALLATION, without

# what no training changes, beside functions and classes
FIXED = (*IMPORTS, ast.Constant)
COURSE_MAP = "Markdown(course_map("  # the course's own, on every machine alike
CHECK = re.compile(r'check\("(.+?)"')
NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Made(NamedTuple):
    """A code cell, a digest of its code and of all that it stands on, and the trainings in that."""

    cell: NotebookNode
    digest: str
    trainings: frozenset[int]


class Kept(NamedTuple):
    """Cells whose outputs are not the last build's, and those that came out otherwise than it."""

    changed: list[NotebookNode]
    otherwise: list[NotebookNode]


def keep_outputs(notebook: NotebookNode, path: Path) -> Kept:
    """Take over the outputs that a committed notebook has for what is the same in this one.

    A cell came out `otherwise` if it was executed and keeps another output: the processor is
    another one, or what it imports has changed. Raises OSError where there is no such notebook.
    """
    before = nbformat.read(path, as_version=4)
    without(before, INSTALLATION)
    old = defaultdict[str, list[NotebookNode]](list)
    for made in _made(before):
        old[made.digest].append(made.cell)
    both = [(x, old[x.digest].pop(0) if old[x.digest] else None) for x in _made(notebook)]
    anew = _run_anew(both)
    kept = Kept([], [])
    for number, (made, executed) in enumerate(both, 1):
        cell = made.cell
        if executed is None or made.trainings & anew:
            kept.changed.append(cell)
            continue
        if cell.execution_count and COURSE_MAP in cell.source:
            continue
        differs = cell.execution_count and _shown(cell) != _shown(executed)
        if differs and not CHECK.match(cell.source):
            kept.otherwise.append(cell)
        cell.outputs, cell.execution_count = executed.outputs, number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
    notebook.metadata.language_info = before.metadata.language_info
    return kept


def alike(one: dict[str, str], other: dict[str, str]) -> bool:
    """Tell whether two outputs have the same words, and numbers but for the last digit shown."""
    texts = ["\n".join(data[key] for key in sorted(data)) for data in (one, other)]
    words, other_words = (NUMBER.sub("", text) for text in texts)
    numbers, others = (map(float, NUMBER.findall(text)) for text in texts)
    return words == other_words and all(
        isclose(x, y, rel_tol=1e-3, abs_tol=2e-4) for x, y in zip(numbers, others, strict=True)
    )


def _run_anew(both: list[tuple[Made, NotebookNode | None]]) -> frozenset[int]:
    """Return the trainings that a cell without an output stands on, and theirs with one of them."""
    anew, before = frozenset[int](), None
    while anew != before:
        before = anew
        new = (x.trainings for x, executed in both if not executed or x.trainings & before)
        anew = frozenset[int]().union(*new)
    return anew


def _made(notebook: NotebookNode) -> Iterable[Made]:
    """Yield each code cell with what it stands on.

    Statements say what they bind and change; a cell that trains may change all that it reads.
    """
    last, later = dict[str, str](), dict[str, frozenset[str]]()
    trained_by = dict[str, frozenset[int]]()
    fixed = set[str]()
    for number, cell in enumerate(x for x in notebook.cells if x.cell_type == "code"):
        found = [*statements(number, cell.source, ast.parse(cell.source))]
        read = {name for x in found for name in x.reads | x.changes}
        left = [*read]
        while left:  # what a function reads when it is called
            new = later.get(left.pop(), frozenset()) - read
            read |= new
            left += new
        stands_on = sorted((name, last[name]) for name in read & last.keys())
        whole = repr((without_texts(cell.source), cell.metadata.get("results"), stands_on))
        digest = hashlib.sha256(whole.encode()).hexdigest()
        trainings = frozenset[int]().union(*(trained_by[name] for name, _ in stands_on))
        trains = "training" in cell.metadata.get("tags", [])
        trainings |= {number} if trains else set()
        for statement in found:
            value = getattr(statement.node, "value", None)
            is_fixed = statement.defines or isinstance(value or statement.node, FIXED)
            fixed = fixed | statement.binds if is_fixed else fixed - statement.binds
            later |= dict.fromkeys(statement.binds, statement.reads_later)
            given = statement.binds | (statement.changes - fixed)
            last |= dict.fromkeys(given, digest)
            trained_by |= dict.fromkeys(given, trainings)
        if trains:
            last |= dict.fromkeys(read - fixed, digest)
            trained_by |= dict.fromkeys(read - fixed, trainings)
        yield Made(cell, digest, trainings)


def _shown(cell: NotebookNode) -> list[object]:
    return [x.get("text") or x.get("data") for x in cell.outputs]
