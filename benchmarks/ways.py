"""Each way into the course, from nothing to the first panel: `make ways`.

python -m benchmarks.ways [NAME ...]

A way ends where a kernel in an environment of its own has run lesson 00 up to its first check, with
the solution in, and lesson 08 as well. The course is that of the last commit. Data are those of the
cache, whose fetching takes the same time by every way. What a notebook opened alone finds (a
kernel, PyTorch, and perhaps the lowest versions of what pyproject.toml names) is not counted.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbclient import NotebookClient

from course_lib.checking.catalogue import load
from course_lib.checking.notebook.solution_text import solution_text
from course_lib.files.paths import ROOT
from course_lib.instruments import results
from lessons.build import build, lesson_files, notebook_path, standing_alone
from lessons.published import HOST, REF

NAME, COMMAND = "ways", "python -m benchmarks.ways"
LOWEST = re.compile(r"([\w-]+)>=([\d.]+)")
FIRST, LATER = "00", "08"


class Place(NamedTuple):
    """Where a learner now is: a command that is Python there, and the folder of the notebooks."""

    python: list[str]
    folder: Path


def by_make(folder: Path, origin: Path) -> Place:
    """Clone the repository, and do what `make learn` does."""
    clone = folder / "clone"
    _run(["git", "clone", "-q", origin, clone])
    _run(["make", ".venv/.learn"], clone)
    _run([clone / ".venv/bin/course", "learn", "--version"], clone)
    return Place([f"{clone}/.venv/bin/python"], clone / "workspace")


def by_wheel(folder: Path, origin: Path) -> Place:
    """Install a wheel by pip, and hand the notebooks out."""
    python = _environment(folder)
    _pip(python, str(_wheel(folder, origin)))
    _run([Path(python).with_name("course"), "learn", "--version"], folder)
    return Place([python], folder / "transformer-course")


def by_uvx(folder: Path, origin: Path) -> Place:
    """Let uvx run the wheel; it keeps an environment of its own."""
    uvx = ["uvx", "-q", "--python", sys.executable, "--from", str(_wheel(folder, origin))]
    _run([*uvx, "course", "learn", "--version"], folder)
    return Place([*uvx, "python"], folder / "transformer-course")


def by_binder(folder: Path, origin: Path) -> Place:
    """Do what Binder's builder does with .binder, in an environment of its own."""
    python, clone = _environment(folder), folder / "clone"
    _run(["git", "clone", "-q", origin, clone])
    _pip(python, "-r", str(clone / ".binder/requirements.txt"))
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    _run([clone / ".binder/postBuild"], clone, PATH=path)
    return Place([python], clone / "workspace")


def alone(folder: Path, *packages: str) -> Place:
    """Open one notebook in an empty folder, with a kernel that has these packages and torch."""
    python, empty = _environment(folder), folder / "notebook"
    empty.mkdir()
    _pip(python, "ipykernel", "torch<2.14", *packages)
    return Place([python], empty)


def alone_newest(folder: Path, origin: Path) -> Place:
    """Open one notebook with the newest kernel."""
    return alone(folder)


def alone_oldest(folder: Path, origin: Path) -> Place:
    """Open one notebook with the lowest versions, but for torch, of which pip has the newest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    lowest = dict(LOWEST.match(x).groups() for x in project["dependencies"])  # type: ignore
    return alone(folder, *(f"{x}=={y}" for x, y in lowest.items() if x not in ("torch", "pip")))


WAYS: dict[str, Callable[[Path, Path], Place]] = {
    "clone, `make learn`": by_make,
    "wheel, pip": by_wheel,
    "wheel, `uvx`": by_uvx,
    "what Binder builds": by_binder,
    "one notebook, newest kernel": alone_newest,
    "one notebook, oldest kernel": alone_oldest,
}


def measure(way: Callable[[Path, Path], Place]) -> dict[str, Any]:
    """Go a way in a new folder; return the seconds, the megabytes that came, and the packages."""
    with tempfile.TemporaryDirectory(prefix="ways-") as name:
        folder = Path(name)
        origin = folder / "origin"
        _run(["git", "clone", "-q", ROOT, origin])
        _run(["git", "-C", origin, "checkout", "-qB", REF])
        os.environ |= {
            "PIP_NO_CACHE_DIR": "1",
            "UV_CACHE_DIR": str(folder / "uv"),
            # the address that the notebook's first cell names is this folder
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{origin}.insteadOf",
            "GIT_CONFIG_VALUE_0": HOST,
        }
        begun, before = time.monotonic(), _received()
        place = way(folder, origin)
        found = way in (alone_newest, alone_oldest)
        if found:  # what is there before the notebook is opened
            begun, before = time.monotonic(), _received()
        _panel(place, FIRST)
        seconds = time.monotonic() - begun
        megabytes = (_received() - before) / 1e6 + (0 if found else _from_folders())
        _panel(place, LATER)
        asked = "import sys, torch, IPython, numpy as n; print(sys.version.split()[0], "
        asked += "torch.__version__, IPython.__version__, n.__version__)"
        said = subprocess.run([*place.python, "-c", asked], capture_output=True, text=True).stdout
        names = ("python", "torch", "ipython", "numpy")
        versions = dict(zip(names, said.split(), strict=True))
        return {"seconds": seconds, "megabytes": megabytes, "versions": versions}


def table(figures: dict[str, Any]) -> str:
    """Return the ways as a table of Markdown."""
    rows = ["| way in | seconds to the first panel | MB | Python, torch, IPython, NumPy |"]
    rows.append("|:-|-:|-:|:-|")
    for name, way in figures.items():
        versions = ", ".join(way["versions"].values())
        rows.append(f"| {name} | {way['seconds']:.0f} | {way['megabytes']:.0f} | {versions} |")
    return "\n".join(rows)


def _panel(place: Place, lesson: str) -> None:
    """Run a lesson up to its first check, the exercise solved. Raises where that does not pass."""
    [file] = lesson_files([lesson])
    notebook = standing_alone(build(file))
    last = next(n for n, x in enumerate(notebook.cells) if x.source.startswith("check("))
    notebook.cells = notebook.cells[: last + 1]
    for cell in notebook.cells:
        if exercise := cell.metadata.get("exercise"):
            cell.source = solution_text(load(exercise), "")
    nbformat.write(notebook, place.folder / notebook_path(file).name)
    kernels = place.folder.parent / "jupyter"
    spec = {"argv": [*place.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]}
    (kernels / "kernels/way").mkdir(parents=True, exist_ok=True)
    (kernels / "kernels/way/kernel.json").write_text(
        json.dumps(spec | {"display_name": "way", "language": "python"})
    )
    os.environ["JUPYTER_PATH"] = str(kernels)
    where = {"metadata": {"path": str(place.folder)}}
    NotebookClient(notebook, timeout=900, kernel_name="way", resources=where).execute()
    panel, *more = (x["data"]["text/plain"] for x in notebook.cells[-1].outputs if "data" in x)
    print(panel.splitlines()[0], *more, sep="\n")
    assert panel.startswith("✓"), panel


def _environment(folder: Path) -> str:
    venv.create(folder / "environment", with_pip=True)
    return str(folder / "environment/bin/python")


def _wheel(folder: Path, origin: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    _run(build, origin)
    return next(folder.glob("*.whl"))


def _pip(python: str, *arguments: str) -> None:
    _run([python, "-m", "pip", "install", "-q", *arguments])


def _run(command: list[Any], folder: Path | None = None, **more: str) -> None:
    environment = os.environ | more
    subprocess.run([*map(str, command)], cwd=folder, env=environment, check=True)


def _received() -> int:
    """Return the bytes that this machine has received from others since its start."""
    lines = Path("/proc/net/dev").read_text("utf8").splitlines()[2:]
    return sum(int(x.split()[1]) for x in lines if not x.strip().startswith("lo:"))


def _from_folders() -> float:
    """Return the megabytes of PyTorch, where pip has it from a folder and not from an index."""
    folders = map(Path, os.environ.get("PIP_FIND_LINKS", "").split())
    return sum(x.stat().st_size for folder in folders for x in folder.glob("torch-*.whl")) / 1e6


def main(names: list[str]) -> int:
    """Measure the ways whose names hold these words, or all, and keep and print the table."""
    start, kept = time.monotonic(), {}
    for name, way in WAYS.items():
        if names and not any(x in name for x in names):
            continue
        if way is by_uvx and not shutil.which("uvx"):
            continue
        print(f"\n== {name}", flush=True)
        kept[name] = measure(way)
    print(table(kept))
    if not names:
        seconds = time.monotonic() - start
        results.save(NAME, kept, command=COMMAND, seeds=[], seconds=seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
