"""What stays of a notebook when it is built again: the outputs of cells that have not changed.

A model that is trained on another processor ends elsewhere, and a picture of it has other bytes. So
a cell keeps its output as long as its code is the same (comments and docstrings compute nothing),
the results that it loads, and the cells that it stands on: those that have last bound, or changed,
a name that it reads.
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


class Kept(NamedTuple):
    """Cells that the last build has no output for, and those that came out otherwise than it."""

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
    for cell, made_of in _made_of(before):
        old[made_of].append(cell)
    kept = Kept([], [])
    for number, (cell, made_of) in enumerate(_made_of(notebook), 1):
        if not old[made_of]:
            kept.changed.append(cell)
            continue
        executed = old[made_of].pop(0)
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


def _made_of(notebook: NotebookNode) -> Iterable[tuple[NotebookNode, str]]:
    """Yield each code cell with a digest of its code, and of all that it stands on.

    Statements say what they bind and change; a cell that trains may change all that it reads.
    """
    last, later = dict[str, str](), dict[str, frozenset[str]]()
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
        for statement in found:
            value = getattr(statement.node, "value", None)
            is_fixed = statement.defines or isinstance(value or statement.node, FIXED)
            fixed = fixed | statement.binds if is_fixed else fixed - statement.binds
            later |= dict.fromkeys(statement.binds, statement.reads_later)
            last |= dict.fromkeys(statement.binds | (statement.changes - fixed), digest)
        if "training" in cell.metadata.get("tags", []):
            last |= dict.fromkeys(read - fixed, digest)
        yield cell, digest


def _shown(cell: NotebookNode) -> list[object]:
    return [x.get("text") or x.get("data") for x in cell.outputs]
