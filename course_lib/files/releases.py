"""Handing out notebooks: each once, a new release beside the learner's own, a damaged one anew."""

import contextlib
import hashlib
import json
import os
import re
from itertools import count
from pathlib import Path

from course_lib.files import ipynb, jupyter_kernel
from course_lib.files.workspace import Workspace

STANDS_IN = "raise NotImplementedError"  # for the answer, in a stub
# of the line above an exercise; in a workspace it would lead nowhere
SOLUTION = re.compile(r" · \[solution\]\(\S+\)$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
# tags of cells that are no part of a page: one installs the course, one says how a page is run
INSTALLATION, HOW_TO_RUN = "installation", "how-to-run"
# what the first of these says where it installs nothing
MISSING = """\
try: import course_lib
except ImportError:
    import sys
    raise ImportError(f"{{sys.executable}} has no course_lib{}") from None"""
HANDED_OUT = MISSING.format(
    f": choose the kernel *{jupyter_kernel.SHOWN}*. `course learn` makes it."
)
# what git leaves of a merge: the reader's side, perhaps what both began with, the other side
CONFLICT = re.compile(
    r"^<{7} .*\n((?:.*\n)*?)(?:\|{7} .*\n(?:.*\n)*?)?={7}\n((?:.*\n)*?)>{7} .*\n?", re.MULTILINE
)


def hand_out(workspace: Workspace, notebooks: Path) -> list[str]:
    """Bring the notebooks of a workspace up to date, and say in a sentence each what is new.

    One that its reader has changed is never overwritten: where its release is another one, the new
    one is put beside it, with the answers in. Raises OSError or NotANotebook.
    """
    messages = []
    for path in ipynb.listed(notebooks):
        name = path.relative_to(notebooks).as_posix()
        notebook, theirs = _empty(path), workspace.folder / name
        given, release = workspace.releases().get(name), _release(notebook)
        noted = {name: release}
        if not os.path.lexists(theirs):
            _write_trusted(theirs, notebook)
        elif problem := damage(theirs):
            messages.append(problem)
            noted = {}
        elif (own := _release(ipynb.read(theirs))) == given:  # nobody has touched it
            if own != release:
                _write_trusted(theirs, notebook)
        elif own != release != given:
            beside = _beside(workspace, theirs)
            messages.append(_put_beside(workspace, beside, notebook, theirs))
            noted[beside.relative_to(workspace.folder).as_posix()] = _release(notebook)
        if noted.items() - workspace.releases().items():
            workspace.note_releases(workspace.releases() | noted)
    return messages


def continued(workspace: Workspace, first: str) -> str:
    """Return the name of the notebook that its reader has changed last, or else of the first."""
    releases, changed = workspace.releases(), {}
    for path in ipynb.listed(workspace.folder):
        name = path.relative_to(workspace.folder).as_posix()
        with contextlib.suppress(ipynb.NotANotebook, OSError):
            notebook = ipynb.read(path)
            if ipynb.lesson(notebook) and releases.get(name) != _release(notebook):
                changed[name] = path.stat().st_mtime
    if changed:
        return max(changed, key=lambda name: changed[name])
    with contextlib.suppress(ipynb.NotANotebook):
        theirs = workspace.folder / first
        if os.path.lexists(theirs) and not ipynb.lesson(ipynb.read(theirs)):
            beside = theirs.with_name(f"{theirs.stem}.new.ipynb")
            return beside.name if beside.exists() else first
    return first


def _put_beside(workspace: Workspace, beside: Path, notebook: dict, theirs: Path) -> str:
    """Write a new release beside a reader's notebook, with his answers; say so in a sentence."""
    own = ipynb.read(theirs)
    carried = ", ".join(_carry_answers(workspace, notebook, own))
    name = theirs.relative_to(workspace.folder).as_posix()
    _write_trusted(beside, notebook)
    if not ipynb.lesson(own):
        return f"{name} is none of this course's: it stays, and ours is beside it as {beside.name}."
    return (
        f"{name} has changed since you got it: yours stays as it is, and the new one is beside it "
        f"as {beside.name}{carried and f', with your answers to {carried} in it'}."
    )


def solution_link(path: str) -> str:
    """Return the end of the line above an exercise: a link to the library's own code."""
    return f" · [solution]({path})"


def without_solution_links(notebook: dict) -> None:
    """Take the links to solutions out of a notebook that is opened elsewhere."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = SOLUTION.sub("", ipynb.text(cell))


def without(notebook: dict, *tags: str) -> None:
    """Take out the cells of these tags."""
    cells = notebook["cells"]
    cells[:] = [x for x in cells if not {*tags} & {*x.get("metadata", {}).get("tags", [])}]


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
    """Read a notebook as it is handed out: not run, without links to elsewhere."""
    notebook = ipynb.read(path)
    without_solution_links(notebook)
    _without_links_outside(
        notebook, "" if path.parent.name != ipynb.EXPLORATIONS else ipynb.EXPLORATIONS
    )
    for cell in notebook["cells"]:
        ipynb.clear(cell)
        if INSTALLATION in cell.get("metadata", {}).get("tags", []):
            ipynb.set_text(cell, HANDED_OUT)
    return notebook


def _without_links_outside(notebook: dict, folder: str) -> None:
    """Leave of each link that would lead out of the workspace its words alone."""

    def inside(link: re.Match) -> str:
        leaves = os.path.normpath(os.path.join(folder, link[2])).startswith("..")
        return link[1] if leaves and ":" not in link[2] else link[0]

    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = LINK.sub(inside, ipynb.text(cell))


def _write_trusted(path: Path, notebook: dict) -> None:
    """Write a notebook as Lab saves it: with its kernel's own data, and signed, so trusted.

    Otherwise Lab would show it as changed as soon as it is opened.
    """
    from ipykernel.ipkernel import IPythonKernel
    from nbformat import from_dict
    from nbformat.sign import NotebookNotary

    name, spec = jupyter_kernel.named()
    notebook["metadata"] |= {
        "kernelspec": {
            "display_name": spec.display_name,
            "language": spec.language,
            "name": name,
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


def _beside(workspace: Workspace, path: Path) -> Path:
    """Return where a new release goes: where the one before it is, if nobody has touched that."""
    releases = workspace.releases()
    for n in count(1):
        beside = path.with_name(f"{path.stem}.new{'' if n == 1 else f'-{n}'}.ipynb")
        given = releases.get(beside.relative_to(workspace.folder).as_posix())
        if not os.path.lexists(beside):
            return beside
        with contextlib.suppress(ipynb.NotANotebook):
            if given and given == _release(ipynb.read(beside)):
                return beside
    raise AssertionError


def _carry_answers(workspace: Workspace, notebook: dict, own: dict | None = None) -> list[str]:
    """Put the answers into a notebook's exercise cells; return the ids of those.

    They are the passed ones, and those of the reader's `own` notebook that are begun: without the
    line that stands in for them.
    """
    begun = {ipynb.exercise(cell): ipynb.text(cell) for cell in (own or {"cells": []})["cells"]}
    carried = []
    for cell in notebook["cells"]:
        exercise_id = ipynb.exercise(cell)
        if not exercise_id:
            continue
        answer, text = workspace.answer(exercise_id), begun.get(exercise_id, STANDS_IN)
        if not answer and STANDS_IN in ipynb.text(cell) and STANDS_IN not in text:
            answer = text
        if answer:
            ipynb.set_text(cell, answer)
            carried.append(exercise_id)
    return carried
