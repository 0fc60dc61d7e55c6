"""Handing out notebooks: each once, a new release beside the learner's own, a damaged one anew."""

import contextlib
import hashlib
import json
import os
import re
from itertools import count
from pathlib import Path

from course_lib.files import ipynb
from course_lib.files.workspace import Workspace

# of the line above an exercise; in a workspace it would lead nowhere
SOLUTION = re.compile(r" · \[solution\]\(\S+\)$", re.MULTILINE)
# the tag of the cell that installs the course
INSTALLATION = "installation"
# what git leaves of a merge: the reader's side, perhaps what both began with, the other side
CONFLICT = re.compile(
    r"^<{7} .*\n((?:.*\n)*?)(?:\|{7} .*\n(?:.*\n)*?)?={7}\n((?:.*\n)*?)>{7} .*\n?", re.MULTILINE
)


def hand_out(workspace: Workspace, notebooks: Path) -> list[str]:
    """Copy the notebooks that a workspace lacks, and say in a sentence each what is new.

    One that is there is never overwritten: where its release has changed, the new one is put
    beside it, with the passed answers in. Raises OSError or NotANotebook.
    """
    messages = []
    for path in ipynb.listed(notebooks):
        name = path.relative_to(notebooks).as_posix()
        notebook, theirs = _empty(path), workspace.folder / name
        releases, release = workspace.releases(), _release(notebook)
        if not os.path.lexists(theirs):
            _write_trusted(theirs, notebook)
        elif releases.get(name, release) != release:
            beside, carried = _beside(theirs), ", ".join(_carry_answers(workspace, notebook))
            _write_trusted(beside, notebook)
            messages.append(
                f"{name} has changed since you got it: yours stays as it is, and the new "
                f"one is beside it as {beside.name}"
                f"{carried and f', with your answers to {carried} in it'}."
            )
        elif problem := damage(theirs):
            messages.append(problem)
        if releases.get(name) != release:
            workspace.note_releases(releases | {name: release})
    return messages


def solution_link(path: str) -> str:
    """Return the end of the line above an exercise: a link to the library's own code."""
    return f" · [solution]({path})"


def without_solution_links(notebook: dict) -> None:
    """Take the links to solutions out of a notebook that is opened elsewhere."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = SOLUTION.sub("", ipynb.text(cell))


def without_installation(notebook: dict) -> None:
    """Take out the cell that installs the course: for where the course is."""
    cells = notebook["cells"]
    cells[:] = [x for x in cells if INSTALLATION not in x.get("metadata", {}).get("tags", [])]


def damage(path: Path) -> str | None:
    """Say in a sentence why a notebook of a workspace cannot be read, and what mends it."""
    try:
        ipynb.read(path)
    except ipynb.NotANotebook as error:
        return f"{error} `course reset ID`, with an exercise of that lesson, mends it."
    return None


def mend(workspace: Workspace, path: Path, release: Path) -> str:
    """Put a notebook in the place of one that cannot be read; tell in a sentence what it holds.

    Of a merge with conflicts that is the reader's side, or else the other one; of anything else,
    the release with the passed answers in it. What was there is kept. Raises OSError or
    NotANotebook.
    """
    damaged = path.read_bytes()
    for side, whose in ((r"\1", "your"), (r"\2", "the other")):
        text = CONFLICT.sub(side, damaged.decode("utf8", "replace"))
        with contextlib.suppress(ipynb.NotANotebook):
            notebook, held = ipynb.parse(text.encode(), ""), f"{whose} side of the merge"
            break
    else:
        notebook = _empty(release if release.is_file() else path)
        carried = ", ".join(_carry_answers(workspace, notebook))
        held = f"the lesson as it came, with your answers to {carried}" if carried else "the lesson"
    backup = workspace.back_up(path.stem, damaged, "ipynb")
    _write_trusted(path, notebook)
    return f"{path.name} could not be read: it now holds {held}, and {backup} what was there."


def _empty(path: Path) -> dict:
    """Read a notebook without what running it has put in, links to solutions and installation."""
    notebook = ipynb.read(path)
    without_solution_links(notebook)
    without_installation(notebook)
    for cell in notebook["cells"]:
        ipynb.clear(cell)
    return notebook


def _write_trusted(path: Path, notebook: dict) -> None:
    """Write a notebook as Lab saves it: with its kernel's own data, and signed, so trusted.

    Otherwise Lab would show it as changed as soon as it is opened.
    """
    from ipykernel.ipkernel import IPythonKernel
    from jupyter_client.kernelspec import KernelSpecManager
    from nbformat import from_dict
    from nbformat.sign import NotebookNotary

    kernel = KernelSpecManager().get_kernel_spec("python3")
    notebook["metadata"] |= {
        "kernelspec": {
            "display_name": kernel.display_name,
            "language": kernel.language,
            "name": "python3",
        },
        "language_info": IPythonKernel.language_info,
    }
    ipynb.write(path, notebook)
    NotebookNotary().sign(from_dict(notebook))


def _release(notebook: dict) -> str:
    """Return a name for what a notebook says, whatever its outputs."""
    cells = notebook["cells"]
    said = [[cell["cell_type"], ipynb.text(cell), ipynb.exercise(cell)] for cell in cells]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _beside(path: Path) -> Path:
    names = (f"{path.stem}.new{'' if n == 1 else f'-{n}'}.ipynb" for n in count(1))
    return next(path.with_name(x) for x in names if not os.path.lexists(path.with_name(x)))


def _carry_answers(workspace: Workspace, notebook: dict) -> list[str]:
    """Put the passed answers into a notebook's exercise cells; return the ids of those."""
    carried = []
    for cell in notebook["cells"]:
        exercise_id = ipynb.exercise(cell)
        if exercise_id and (answer := workspace.answer(exercise_id)):
            ipynb.set_text(cell, answer)
            carried.append(exercise_id)
    return carried
