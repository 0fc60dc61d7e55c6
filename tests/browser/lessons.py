"""Lessons in JupyterLab by passed answers, to the ends of their trainings.

python -m tests.browser.lessons [17 04_trees ...]

Prints each one's seconds, its longest cell and the peak memory of its kernel, and then what went
wrong. On Linux, whose kernel knows a process's peak.
"""

import argparse
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from playwright.sync_api import Browser

from course_lib.checking.catalogue import load
from course_lib.checking.notebook.solution_text import solution_text
from course_lib.command_line.learn import FIRST
from course_lib.files import ipynb
from course_lib.files.course_map import notebook_of, page_files
from course_lib.files.paths import ROOT
from course_lib.files.workspace import Workspace
from tests.browser.lab import PATIENCE, chromium, learning, opened

LONGEST = 900  # seconds that a page may take
Cell = dict[str, Any]


def solve(number: str, workspace: Path) -> Path:
    """Write a page into a workspace, its exercises solved and nothing run, and return its file."""
    name = notebook_of(page_files()[number])
    notebook, before = ipynb.read(ROOT / "notebooks" / name), ""
    for cell in notebook["cells"]:
        if exercise_id := cell["metadata"].get("exercise"):
            cell["source"] = solution_text(load(exercise_id), before)
        if cell["cell_type"] == "code":
            before += ipynb.text(cell) + "\n"
            cell |= {"outputs": [], "execution_count": None}
    (workspace / name).parent.mkdir(parents=True, exist_ok=True)
    ipynb.write(workspace / name, notebook)
    return workspace / name


@dataclass
class Ran:
    """What came of a page whose cells have all been run."""

    seconds: list[tuple[float, str]]  # of each cell, with its first line; the longest first
    peak: float  # the most memory that the kernel has held, in MiB
    wrong: list[str]


def run_all(browser: Browser, address: str, path: Path) -> Ran:
    """Run all cells of a page in Lab. What failed or complained is told, not raised."""
    with opened(browser, address) as lab:
        lab.page.set_default_timeout(15 * PATIENCE)
        lab.picture(f"page-{path.stem}")
        # Lab keeps few cells in its page, so the file tells when all have run
        ends, cells, ran, raised = time.monotonic() + LONGEST, [], [None], False
        while not (all(ran) or raised) and time.monotonic() < ends:
            if not any(ran):  # what is run before the kernel is connected, Lab forgets
                lab.menu("Run", "Run All Cells")
            lab.page.wait_for_timeout(2000)
            lab.idle()
            lab.save()
            with suppress(ipynb.NotANotebook):  # Lab is writing it
                cells = ipynb.read(path)["cells"]
                code = [cell for cell in cells if cell["cell_type"] == "code"]
                ran = [cell["execution_count"] for cell in code]
                # Lab runs no cell behind one that raises
                raised = any(x["output_type"] == "error" for cell in code for x in cell["outputs"])
        peak = max(map(_peak, psutil.Process().children(recursive=True)))
        lab.menu("Kernel", "Shut Down Kernel")
        lab.page.locator("#jp-main-statusbar", has_text="No Kernel").wait_for()
    unrun = [f"{ran.count(None)} cells have not run"] if not all(ran) else []
    wrong = [
        f"{_first_line(cell)}: {x}"
        for cell in cells
        for x in cell.get("outputs", ())
        if x["output_type"] == "error" or x.get("name") == "stderr"
    ]
    took = sorted(((_seconds(cell), _first_line(cell)) for cell in cells), reverse=True)
    return Ran(took, peak, [*lab.complaints, *unrun, *wrong])


def _peak(process: psutil.Process) -> float:
    """Return the most memory, in MiB, that a process has held if it is a kernel, and else 0."""
    with suppress(psutil.Error, OSError):
        if any("kernel" in word for word in process.cmdline()):
            status = Path(f"/proc/{process.pid}/status").read_text("utf8")
            [peak] = [x for x in status.splitlines() if x.startswith("VmHWM")]
            return int(peak.split()[1]) / 1024
    return 0


def by_own_answers(browser: Browser, number: str, workspace: Path, clock: str) -> Ran:
    """Run a page whose exercises are solved; one that does not pass is told, too."""
    path = solve(number, workspace)
    with learning(workspace, clock) as address:
        ran = run_all(browser, address.replace(FIRST, path.relative_to(workspace).as_posix()), path)
    asked = (cell["metadata"].get("exercise") for cell in ipynb.read(path)["cells"])
    failed = [x for x in asked if x and not Workspace(workspace).record(x).passed]
    return replace(ran, wrong=[*ran.wrong, *(f"{x} has not passed" for x in failed)])


def _first_line(cell: Cell) -> str:
    return ipynb.text(cell).partition("\n")[0]


def _seconds(cell: Cell) -> float:
    """Return how long a cell ran, as Lab notes it."""
    times = cell["metadata"].get("execution", {})
    start, end = (times.get(x) for x in ("iopub.execute_input", "shell.execute_reply"))
    if not (start and end):
        return 0.0
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def main() -> int:
    """Print a row for each page; return 1 where one went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.lessons", description=__doc__)
    numbers = [x for x in page_files() if x.isdecimal()]
    parser.add_argument("pages", nargs="*", help="such as 17 or 04_trees (all lessons)")
    wrong = []
    print("| page | seconds | longest cell, s | peak of the kernel, MiB |\n|:-|-:|-:|-:|")
    with chromium() as browser:
        for number in parser.parse_args().pages or numbers:
            with TemporaryDirectory() as folder:
                ran = by_own_answers(browser, number, Path(folder) / "own", clock="inf")
            seconds, longest = sum(x for x, _ in ran.seconds), ran.seconds[0][0]
            print(f"| {number} | {seconds:.0f} | {longest:.0f} | {ran.peak:,.0f} |", flush=True)
            wrong += [f"{number}: {x}" for x in ran.wrong]
    print(*wrong, sep="\n")
    return int(wrong != [])


if __name__ == "__main__":
    raise SystemExit(main())
