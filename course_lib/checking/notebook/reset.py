"""Put the empty exercise back into a learner's notebook."""

import re
import uuid
from pathlib import Path

from course_lib.checking.catalogue import load
from course_lib.files import ipynb, releases
from course_lib.files.course_map import number_of
from course_lib.files.paths import ROOT
from course_lib.files.workspace import Workspace


class NoPlace(LookupError):
    """No notebook, or more than one, has a place for the stub; the message is one sentence."""


def restore_stub(workspace: Workspace, exercise_id: str, name: str | None = None) -> str:
    """Put the stub of an exercise into its cell, and tell in a sentence what was done.

    What the cell held is backed up before. A deleted cell comes back before the one that checks
    it, or else at the end; no other cell changes. A notebook that cannot be read is mended
    instead. `name` is the notebook's file name, needed where several have the exercise.

    Raises NoPlace, UnknownExercise, NotANotebook or OSError.
    """
    exercise = load(exercise_id)
    source = exercise.stub.rstrip()
    path, notebook = _notebook(workspace, exercise_id, name)
    if notebook is None:
        return releases.mend(
            workspace, path, ROOT / "notebooks" / path.relative_to(workspace.folder)
        )
    cells = notebook["cells"]
    own = [cell for cell in cells if ipynb.exercise(cell) == exercise_id]
    if not own:
        cells.insert(_place(cells, exercise_id), _cell(notebook, exercise_id, source))
        done = "the stub is back in its place"
    elif ipynb.text(own[-1]).rstrip() == source:
        done = f"the cell in {path.name} holds the stub already, so nothing was changed"
        return f"{exercise_id}: {done}."
    else:
        backup = workspace.back_up(exercise_id, ipynb.text(own[-1]))
        ipynb.set_text(own[-1], source)
        done = f"the stub is back; what was there is kept in {backup}"
    ipynb.write(path, notebook)
    reload = f"If {path.name} is open in Lab, choose File, Reload Notebook from Disk."
    return f"{exercise_id}: {done}. {reload}"


def _notebook(workspace: Workspace, exercise_id: str, name: str | None) -> tuple[Path, dict | None]:
    """Find the notebook that an exercise belongs to: by its cells, or else by its page.

    Of one that cannot be read there is its path alone.
    """
    page, paths = load(exercise_id).lesson, ipynb.listed(workspace.folder)
    if name is not None:
        path = next((path for path in paths if path.name == name), workspace.folder / name)
        return path, _read(path) if path.exists() else ipynb.read(path)
    notebooks = {path: _read(path) for path in paths}
    holding = (
        [path for path, x in notebooks.items() if x and _mentions(x, exercise_id)]
        or [path for path, x in notebooks.items() if x and ipynb.lesson(x) == page]
        or [path for path, x in notebooks.items() if not x and number_of(path) == page]
    )
    if not holding:
        raise NoPlace(
            f"no notebook in {workspace.folder} has {exercise_id}: `course learn` brings it."
        )
    if len(holding) > 1:
        names = [path.name for path in holding]
        raise NoPlace(
            f"{exercise_id} is in {' and '.join(names)}: name the one that you mean, as in "
            f"`course reset {exercise_id} {names[-1]}`."
        )
    return holding[0], notebooks[holding[0]]


def _read(path: Path) -> dict | None:
    try:
        return ipynb.read(path)
    except ipynb.NotANotebook:
        return None


def _mentions(notebook: dict, exercise_id: str) -> bool:
    cells = notebook["cells"]
    return _place(cells, exercise_id) < len(cells) or any(
        ipynb.exercise(cell) == exercise_id for cell in cells
    )


def _place(cells: list[dict], exercise_id: str) -> int:
    """Return the index of the cell that checks an exercise, or one past the end."""
    call = re.compile(rf"""\bcheck\(\s*["']{re.escape(exercise_id)}["']""")
    checks = (i for i, cell in enumerate(cells) if call.search(ipynb.code(cell)))
    return next(checks, len(cells))


def _cell(notebook: dict, exercise_id: str, source: str) -> dict:
    cell = {"cell_type": "code", "metadata": {"exercise": exercise_id}}
    if notebook.get("nbformat_minor", 5) >= 5:
        cell["id"] = uuid.uuid4().hex[:8]
    ipynb.set_text(cell, source)
    return cell
