"""How grading grows with the class, and what is lost with a worker.

python -m research.benchmarks.classes

Of each class the command itself is measured, from the folder that was handed in to results and
reports: its seconds of the processor, and its peak memory. Judging costs the same for every
notebook, which research/benchmarks/grading.py tells: here it is done once for each different
notebook of the class, of which there are few, and what came is used for all that are like it.

Then a small class is judged by two workers of Dask, one of which is killed at its work.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from tqdm import tqdm

from course_lib.command_line import main as command_line
from course_lib.files.paths import ROOT
from course_lib.grading import run
from course_lib.grading.judging.rules import Rules
from course_lib.grading.judging.workers import Worker
from course_lib.grading.marks.schema import Entry
from course_lib.grading.submissions.files import SubmittedFile
from course_lib.grading.submissions.journal import fingerprint
from course_lib.instruments import results

NAME, COMMAND = "class_growth", "python -m research.benchmarks.classes"
CLASSES = (1000, 2000, 5000)
AT_WORK = 48  # notebooks, while a worker of Dask is killed
DIFFERENT = range(8)  # right, wrong, partly right and broken ones, of research.benchmarks.grading
GRADE = ["--lesson=03", "--seed=0", "--isolation=landlock"]
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def hand_in(folder: Path, count: int) -> None:
    """Fill a folder with so many notebooks of a few kinds, which take the room of a few."""
    # this loads torch, which the command that is measured does not
    from research.benchmarks.grading import STEM, write

    kinds = [folder.parent / f"kinds_{folder.name}" / f"{n}.ipynb" for n in DIFFERENT]
    write(ROOT / "notebooks" / f"{STEM}.ipynb", kinds, [*DIFFERENT])
    folder.mkdir()
    for number in range(count):
        os.link(kinds[number % len(kinds)], folder / f"student {number:04}.ipynb")


def judged_by_kind(
    rules: Rules, work: list[SubmittedFile], jobs: int
) -> Iterator[tuple[SubmittedFile, str, Entry]]:
    """Judge what is different, and say of the rest what was said of its like."""
    worker, entries = Worker(rules), {}
    for submitted in work:
        content = submitted.content()
        sha256 = fingerprint(content)
        if sha256 not in entries:
            entries[sha256] = worker.judge(content)
        yield submitted, sha256, entries[sha256]
    worker.close()


def grade_by_kind(folder: Path) -> None:
    """Grade what was handed in, as `course grade` does but for the judging; print what it took."""
    run.judged_here = judged_by_kind
    words = ["grade", str(folder / "in"), "--out", str(folder / "out"), "--jobs=1", *GRADE]
    assert command_line.main(words) == 0
    peak = int(Path("/proc/self/status").read_text("utf8").split("VmHWM:")[1].split()[0])
    print(json.dumps({"processor": time.process_time(), "MiB": peak / 1024}))


def cost(count: int) -> dict[str, float]:
    """Return seconds of the processor and peak MiB of grading a class of so many, and its MB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hand_in(folder / "in", count)
        command = [sys.executable, "-m", "research.benchmarks.classes", "--folder", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf8", check=True)
        written = sum(x.stat().st_size for x in (folder / "out").rglob("*") if x.is_file())
        graded = json.loads((folder / "out" / "results.json").read_text("utf8"))
        assert [x["status"] for x in graded["submissions"]] == ["graded"] * count
        return json.loads(done.stdout.splitlines()[-1]) | {"MB written": written / 1e6}


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """Run a scheduler and workers, each a process; give its address, and the workers."""
    address, python = folder / "scheduler.json", [sys.executable, "-m"]
    scheduler = [*python, "distributed.cli.dask_scheduler", "--no-dashboard"]
    scheduler += ["--host=127.0.0.1", "--port=0", f"--scheduler-file={address}"]
    worker = [*python, "distributed.cli.dask_worker", "--no-nanny", "--no-dashboard"]
    worker += ["--nthreads=1", f"--scheduler-file={address}", f"--local-directory={folder}"]
    with ExitStack() as stack:

        def start(words: list[str]) -> subprocess.Popen:
            process = subprocess.Popen(words, cwd=ROOT, **QUIET)
            stack.callback(lambda: (process.kill(), process.wait()))
            return process

        start(scheduler)
        while not address.exists() or not address.read_text("utf8").endswith("}"):
            time.sleep(0.05)
        found = json.loads(address.read_text("utf8"))["address"]
        yield found, [start(worker) for _ in range(workers)]


def lost_worker() -> dict[str, int | bool]:
    """Kill one of two workers at its work; say what is missing, and whether results are equal."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hand_in(folder / "in", AT_WORK)
        command = [sys.executable, "-m", "course_lib.command_line", "grade", str(folder / "in")]
        command += GRADE
        whole = [*command, "--out", str(folder / "whole"), "--jobs=1"]
        subprocess.run(whole, cwd=ROOT, check=True, **QUIET)
        with dask(folder, workers=2) as (address, workers):
            words = [*command, "--out", str(folder / "harmed"), "--scheduler", address]
            grading = subprocess.Popen(words, cwd=ROOT, **QUIET)
            while not (at_work := [x for x in workers if psutil.Process(x.pid).children()]):
                assert grading.poll() is None, "all was judged before a worker could be killed"
                time.sleep(0.05)
            at_work[0].kill()
            assert grading.wait() == 0
        read = [(folder / x / "results.json").read_bytes() for x in ("whole", "harmed")]
        graded = json.loads(read[1])["submissions"]
        missing = AT_WORK - sum(x["status"] == "graded" for x in graded)
        return {"notebooks": AT_WORK, "missing": missing, "equal": read[0] == read[1]}


def table(figures: dict) -> str:
    """Return a table: what the command takes for each class."""
    lines = ["| notebooks | seconds of the processor | peak, MiB | MB written |", "|-:|-:|-:|-:|"]
    for count, x in figures["classes"].items():
        cells = f"{x['processor']:.0f} | {x['MiB']:.0f} | {x['MB written']:.0f}"
        lines.append(f"| {int(count):,} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table and keep the figures in research/results/class_growth.json."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    if folder := parser.parse_args().folder:
        grade_by_kind(folder)
        return
    start = time.perf_counter()
    figures = {"classes": {str(n): cost(n) for n in tqdm(CLASSES)}, "lost worker": lost_worker()}
    print(table(figures), figures["lost worker"], sep="\n")
    taken = time.perf_counter() - start
    results.save(NAME, figures, command=COMMAND, seeds=[0], seconds=taken)


if __name__ == "__main__":
    main()
