"""Notebook files: read tolerantly, written whole, what is not touched left as it was.

Why not nbformat: it refuses or repairs a file that is slightly off, and takes longer to import.
"""

import json
import re
from pathlib import Path

from course_lib.files.atomic import write_atomically
from course_lib.files.errors import NotANotebook

LARGEST_CODE = 1_000_000  # characters of all code cells; what they put out does not count
MOST_CELLS = 10_000
EXPLORATIONS = "explorations"  # the folder beside the lessons
SURROGATES = re.compile("[\ud800-\udfff]")
CONFLICT = re.compile("^<<<<<<< ", re.MULTILINE)


def read(path: Path) -> dict:
    """Return a notebook as its JSON says it. Raises NotANotebook."""
    try:
        return parse(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise NotANotebook(f"there is no file {path}.") from None
    except OSError as error:
        raise NotANotebook(f"{path} cannot be read: {error.strerror}.") from None


def listed(folder: Path) -> list[Path]:
    """List the notebooks of a folder: the lessons, then the explorations."""
    return [*sorted(folder.glob("*.ipynb")), *sorted(folder.glob(f"{EXPLORATIONS}/*.ipynb"))]


def parse(content: bytes, name: str) -> dict:
    """Return the notebook that a file of this name holds. Raises NotANotebook."""
    try:
        notebook = json.loads(content.decode("utf-8-sig"))
    except MemoryError:
        raise NotANotebook(f"{name} takes too much memory to be read.") from None
    except (ValueError, RecursionError):
        if line := conflict(content.decode(errors="replace")):
            raise NotANotebook(
                f"{name} has the marks of a merge conflict, line {line}: keep one of the two "
                "versions, and take the marks out."
            ) from None
        raise NotANotebook(f"{name} is not a notebook: {_instead(content)}.") from None
    if isinstance(notebook, dict) and "worksheets" in notebook:
        _upgrade(notebook)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(map(_is_cell, cells)):
        raise NotANotebook(
            f"{name} is not a notebook of format 3 or 4: open it in JupyterLab and save it again."
        )
    if len(cells) > MOST_CELLS:
        raise NotANotebook(f"{name} has {len(cells):,} cells: {MOST_CELLS:,} are read at most.")
    if sum(len(code(cell)) for cell in cells) > LARGEST_CODE:
        raise NotANotebook(
            f"{name} holds more than 1 MB of code: keep data in a file, not in a cell."
        )
    return notebook


def _instead(content: bytes) -> str:
    """Say what a file holds that is no JSON."""
    start = content[:200].lower().lstrip()
    if not start:
        return "it is empty"
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "its text is UTF-16: save it in Jupyter, which writes UTF-8"
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "it is a web page, such as one to log in: download the file itself"
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "its text is not UTF-8, which Jupyter writes: save it there"
    return "its content is not JSON"


def _upgrade(notebook: dict) -> None:
    """Give a notebook of format 3 the cells of format 4, without what they have put out."""
    sheets = notebook.pop("worksheets")
    sheets = [x for x in sheets if isinstance(x, dict)] if isinstance(sheets, list) else []
    listed = [x.get("cells") for x in sheets]
    notebook["cells"] = [cell for cells in listed if isinstance(cells, list) for cell in cells]
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 0
    for cell in notebook["cells"]:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            cell["source"] = cell.pop("input", "")
            for old in ("language", "prompt_number"):
                cell.pop(old, None)
            cell["outputs"], cell["execution_count"] = [], None
            cell.setdefault("metadata", {})


def conflict(text: str) -> int | None:
    """Return the line, from 1, of the first mark of a merge conflict; None where there is none."""
    first = CONFLICT.search(text)
    if not first or "\n=======" not in text[first.start() :]:
        return None
    return text.count("\n", 0, first.start()) + 1


def write(path: Path, notebook: dict) -> None:
    """Write a notebook as JupyterLab does, the whole or nothing. Raises OSError."""
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
    write_atomically(path, text + "\n")


def text(cell: dict) -> str:
    """Return the source of a cell."""
    source = cell.get("source", "")
    lines = source if isinstance(source, str) else "".join(source)
    # half of a pair of surrogates is no character: no file and no compiler takes it
    whole = SURROGATES.sub("\N{REPLACEMENT CHARACTER}", lines)
    return whole.replace("\r\n", "\n").replace("\r", "\n")


def code(cell: dict) -> str:
    """Return the source of a code cell, and nothing of another."""
    return text(cell) if cell["cell_type"] == "code" else ""


def set_text(cell: dict, source: str) -> None:
    """Give a cell another source; what the old one put out goes with it."""
    cell["source"] = source.rstrip().splitlines(keepends=True)
    clear(cell)


def clear(cell: dict) -> None:
    """Take out what running a cell has put in."""
    if cell["cell_type"] == "code":
        cell["outputs"], cell["execution_count"] = [], None


def exercise(cell: dict) -> str | None:
    """Return the id of the exercise whose cell this is, or None."""
    exercise_id = cell.get("metadata", {}).get("exercise")
    named = isinstance(exercise_id, str) and cell["cell_type"] == "code"
    return exercise_id if named else None


def lesson(notebook: dict) -> str | None:
    """Return the number of the notebook's lesson, or None."""
    metadata = notebook.get("metadata")
    course = metadata.get("course") if isinstance(metadata, dict) else None
    number = course.get("lesson") if isinstance(course, dict) else None
    return number if isinstance(number, str) else None


def _is_cell(cell: object) -> bool:
    if not isinstance(cell, dict) or not isinstance(cell.get("metadata", {}), dict):
        return False
    source = cell.get("source", "")
    lines = [source] if isinstance(source, str) else source
    return (
        isinstance(cell.get("cell_type"), str)
        and isinstance(lines, list)
        and all(isinstance(line, str) for line in lines)
    )
