"""Pages become notebooks: `python -m lessons [01 04_trees ...] [--text | --anew]`.

Authors edit lessons/NN_name.py (percent format), or lessons/explorations/NN_name.py. A cell
`# exercise: rnn/cell` becomes a line with its minutes, the lessons that go on with it and a link to
its solution, and the stub in notebooks/NN_name.ipynb, which is executed and committed, or the
reference in a solved build, which the tests run: it leaves out the cells tagged `training` or
`once`, and fails where a check does not pass. A cell `# given: feed_forward.FeedForward` becomes
that component's source, so that a notebook has all that its exercises stand on (tagged `in-short`,
without docstrings and annotations); one tagged `given` is such a part, written for the page. A cell
that only imports, takes answers or sets the seed is folded. Below the title, a notebook says how it
is run, and has a folded cell that installs the course where that notebook is opened alone.
Outputs of cells that have not changed stay as they are (lessons/kept.py), and each check shows what
it says of the solution (lessons/solved.py).
"""

import argparse
import ast
import hashlib
import importlib
import json
import os
import re
import sys
from functools import cache
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tqdm import tqdm
from traitlets.config import Config

from course_lib.answers.source import source_of
from course_lib.checking.catalogue import load, outline
from course_lib.checking.notebook.solution_text import solution_text
from course_lib.files import jupyter_kernel
from course_lib.files.atomic import write_atomically
from course_lib.files.course_map import is_exploration, notebook_of, number_of, page_files
from course_lib.files.paths import ROOT
from course_lib.files.releases import HOW_TO_RUN, INSTALLATION, MISSING, solution_link
from course_lib.files.workspace import VARIABLE
from course_lib.instruments import results
from lessons.kept import keep_outputs
from lessons.published import NAME, SOURCE
from lessons.solved import show_solved

NOTEBOOKS = ROOT / "notebooks"
MARK, GIVEN = "# exercise: ", "# given: "
IN_SHORT = "in-short"
CHECK = re.compile(r'check\("(.+)", .*\)')
MINE = re.compile(r'mine\("(.+?)"\)')
VERDICT = "from course_lib.exercises import verdict"
ASSERTION = 'assert verdict("{}", {}).status == "passed"'
LOADED = re.compile(r'results\.load\("(\w+)"\)')
# uv takes PyTorch's build for this machine, where pip takes CUDA's; where PyTorch is, as on Colab,
# it stays as it is
INSTALL = f"""\
try: import course_lib
except ImportError:
    import sys, importlib.util
    print("The course is missing here: installing it takes a minute or two.")
    if not importlib.util.find_spec("torch"):
        %pip install -q uv
        !"{{sys.executable}}" -m uv pip install -q --python "{{sys.executable}}" \
--torch-backend auto torch
    %pip install -q "{SOURCE}\""""
UNPUBLISHED = MISSING.format(
    ", and the course has no address yet to come from: install it from its repository's folder, "
    "as README.md there says."
)
RUN = (
    "*How to run this page: from the top. **Shift+Enter** runs a cell and goes to the next one, "
    "**Run > Run All Cells** runs them all. Folded cells have to run, too.*"
)
BAR = re.compile(r"^.*\d+%\|.*(\n|$)", re.MULTILINE)
# `mine`, where nobody has answered
WHOSE = re.compile(r"^[\w, ]+: the library's, since notebooks/ keeps no answers\n", re.MULTILINE)
CELL_SECONDS = 600
UNTOUCHED_ONLY = {"training", "once"}  # tags of cells that take long


def lesson_files(numbers: list[str] | None = None) -> list[Path]:
    """List the files of lessons and explorations, all or those of these numbers.

    Raises LookupError for a number that none has.
    """
    files = page_files()
    unknown = sorted(set(numbers or []) - files.keys())
    if unknown:
        raise LookupError(f"no lesson {', '.join(unknown)}: there are {', '.join(files)}")
    return [files[number] for number in numbers or files]


def notebook_path(file: Path) -> Path:
    """Return where the notebook of a page is committed."""
    return NOTEBOOKS / notebook_of(file)


def build(lesson: Path, solved: bool = False) -> NotebookNode:
    """Build the notebook of a page, without outputs: untouched, or with the references in."""
    source = jupytext.read(lesson, fmt="py:percent")
    cells = []
    for cell in source.cells:
        tags = cell.metadata.get("tags", [])
        if solved and UNTOUCHED_ONLY & {*tags}:
            continue
        cell.metadata = {"tags": tags} if tags else {}
        if "given" in tags:
            cell.metadata["given"] = "a stand-in"
        if "hide-input" in tags or (cell.cell_type == "code" and _is_plumbing(cell.source)):
            cell.metadata["jupyter"] = {"source_hidden": True}
        if cell.source.startswith(MARK):
            exercise_id = cell.source.removeprefix(MARK).strip()
            exercise, told = load(exercise_id), outline(exercise_id)
            module = exercise.reference.__module__.replace(".", "/")
            link = solution_link(f"{'../' * len(notebook_of(lesson).parts)}{module}.py")
            later = _taken_up().get(exercise_id, set()) - {number_of(lesson)}
            use = f" · used in {', '.join(sorted(later))}" if later else ""
            head = f"**Exercise: {told.title}** · {told.effort}{use}{link}"
            cells.append(new_markdown_cell(head))
            text = exercise.stub
            if solved:
                before = "\n".join(x.source for x in cells if x.cell_type == "code")
                text = solution_text(exercise, before)
            cell.source = text.rstrip()
            cell.metadata["exercise"] = exercise_id
        elif cell.source.startswith(GIVEN):
            module, _, name = cell.source.removeprefix(GIVEN).strip().rpartition(".")
            component = getattr(importlib.import_module(f"course_lib.{module}"), name)
            cell.source = source_of(component).rstrip()
            if IN_SHORT in tags:
                cell.source = in_short(cell.source)
            cell.metadata["given"] = f"{module}.{name}"
        elif solved and (checked := CHECK.fullmatch(cell.source)):
            asked = [*load(checked[1]).joins, checked[1]]
            passes = [ASSERTION.format(x, load(x).name) for x in asked]
            cell.source = "\n".join([cell.source, VERDICT, *passes])
        if names := LOADED.findall(cell.source):
            cell.metadata["results"] = _digest(names)
        cells.append(cell)
    _name_cells(lesson.stem, cells)
    title = cells[0].source.splitlines()[0].lstrip("# ")
    return new_notebook(
        cells=cells,
        metadata={
            "course": {"lesson": number_of(lesson), "title": title},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )


@cache
def _taken_up() -> dict[str, set[str]]:
    """Map each exercise's id to the lessons that go on with what it has made."""
    found: dict[str, set[str]] = {}
    for number, file in page_files().items():
        for exercise_id in () if is_exploration(number) else MINE.findall(file.read_text("utf8")):
            found.setdefault(exercise_id, set()).add(number)
    return found


def in_short(source: str) -> str:
    """Return a source without its docstrings and annotations; the bodies stay as they are."""
    lines, tree = source.splitlines(), ast.parse(source)
    found = [x for x in ast.walk(tree) if isinstance(x, ast.ClassDef | ast.FunctionDef)]
    for node in sorted(found, key=lambda x: -x.lineno):
        begin, above = node.lineno - 1, node.body[0].lineno - 1
        if ast.get_docstring(node) and (end := node.body[0].end_lineno):
            del lines[above : end + (lines[end : end + 1] == [""])]
        if isinstance(node, ast.FunctionDef):
            end = next(i for i in range(begin, above) if lines[i].endswith(":")) + 1
            lines[begin:end] = _signature(node)
    return "\n".join(lines)


def _signature(function: ast.FunctionDef) -> list[str]:
    """Return the lines in which a function without annotations begins."""
    for parameter in ast.walk(function.args):
        if isinstance(parameter, ast.arg):
            parameter.annotation = None
    indent, taken = " " * function.col_offset, ast.unparse(function.args).replace("'", '"')
    line = f"{indent}def {function.name}({taken}):"
    if len(line) <= 100:
        return [line]
    return [f"{indent}def {function.name}(", f"{indent}    {taken}", f"{indent}):"]


def standing_alone(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook with the cell that installs the course where it is missing.

    It does nothing where the course is, and no build runs it. It and the line before it, on how a
    page is run, are no part of the page.
    """
    hidden = {"jupyter": {"source_hidden": True}, "tags": [INSTALLATION]}
    install = INSTALL if NAME else UNPUBLISHED
    cell = new_code_cell(install, id=INSTALLATION, metadata=hidden)
    line = new_markdown_cell(RUN, id=HOW_TO_RUN, metadata={"tags": [HOW_TO_RUN]})
    title, *rest = notebook.cells
    return NotebookNode(notebook | {"cells": [title, line, cell, *rest]})


def _is_plumbing(source: str) -> bool:
    """Tell whether code only imports, sets the seed, asks for data, or takes answers."""
    body = ast.parse(source).body
    return bool(body) and all(map(_is_plumbing_line, body))


def _is_plumbing_line(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Assign([ast.Name("SEED")]):
            return True
        case ast.Expr(ast.Call(ast.Name("needs"))) | ast.Assign(value=ast.Call(ast.Name("mine"))):
            return True
    return False


def _digest(names: list[str]) -> str:
    """Return a digest of the figures that a cell loads: with others, what it shows is stale."""
    figures = json.dumps([results.load(name)["figures"] for name in names])
    return hashlib.sha256(figures.encode()).hexdigest()[:12]


def _name_cells(stem: str, cells: list[NotebookNode]) -> None:
    """Give each cell an id made of its text, so that two builds agree and edits stay local."""
    seen: set[str] = set()
    for cell in cells:
        text = f"{cell.cell_type}\n{cell.source}"
        while (name := f"{stem[:2]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}") in seen:
            text += "\n"
        seen.add(name)
        cell.id = name


def execute(notebook: NotebookNode, folder: Path = NOTEBOOKS) -> None:
    """Run a notebook in a folder and keep what a reader should see of its outputs."""
    # messages between us and the kernel are encrypted where jupyter_client can
    encrypted = Config(KernelManager={"transport_encryption": "auto"})
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, resources=resources, config=encrypted, coalesce_streams=True
    )
    # what is committed has trained to the end, however busy this machine is, on nobody's answers
    settings = jupyter_kernel.SETTINGS | os.environ
    client.execute(env=settings | {"COURSE_CLOCK": "inf", VARIABLE: ""})
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _lasting(output)]
            for output in cell.outputs:
                if "image/svg+xml" in output.get("data", {}):
                    output.data.pop("text/html", None)  # the same picture, for a live page


def missed(notebook: NotebookNode) -> list[str]:
    """List the claims about time that did not hold when a notebook was executed."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    printed = "\n".join(output.get("text", "") for cell in code for output in cell.outputs)
    return [line for line in printed.splitlines() if line.startswith("✗ expected: ")]


class NotWritten(Exception):
    """Why a notebook is better left as it is."""


def _lasting(output: NotebookNode) -> bool:
    """Tell what still says something once the cell has run: no bar, no live widget."""
    if output.output_type == "stream":
        output.text = WHOSE.sub("", BAR.sub("", output.text))
        # a bar that takes itself away leaves blanks on its line
        return bool(output.text.strip(" \r"))
    return "application/vnd.jupyter.widget-view+json" not in output.get("data", {})


def write(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook, the whole or nothing. Raises OSError."""
    nbformat.validate(notebook)
    write_atomically(path, nbformat.writes(notebook) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Build and execute notebooks."""
    parser = argparse.ArgumentParser(prog="python -m lessons", description=__doc__)
    parser.add_argument("numbers", nargs="*", help="such as 01 or 04_trees (all pages)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--text", action="store_true", help="execute nothing: only text has changed")
    how.add_argument("--anew", action="store_true", help="keep no outputs of the last build")
    options = parser.parse_args(arguments)
    try:
        lessons = lesson_files(options.numbers)
    except LookupError as error:
        print(error, file=sys.stderr)
        return 2
    for lesson in tqdm(lessons, disable=options.text):
        notebook, path = build(lesson), notebook_path(lesson)
        try:
            if not options.text:
                execute(notebook)
            if options.text or (path.exists() and not options.anew):
                kept = keep_outputs(notebook, path)
                if options.text and kept.changed:
                    raise NotWritten("more than text has changed; build it without --text")
                for cell in kept.otherwise:
                    line = cell.source.splitlines()[0]
                    print(f"{path.name}: came out otherwise (--anew takes it): {line}")
            show_solved(notebook)
            if lines := missed(notebook):
                raise NotWritten("\n".join(["is the machine busy with something else?", *lines]))
            write(standing_alone(notebook), path)
        except (NotWritten, OSError) as error:
            print(f"{path.name} stays as it was: {error}", file=sys.stderr)
            return 1
    return 0
