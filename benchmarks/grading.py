"""How long grading takes: 500 submissions of lesson 03, and ten of them by other tools.

python -m benchmarks.grading [--peers]
"""

import argparse
import csv
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks import environments
from course_lib.checking.catalogue import load
from course_lib.exercises import verdict
from course_lib.files import ipynb
from course_lib.files.paths import ROOT
from course_lib.grading.exports import export
from course_lib.grading.judging.isolation import Level
from course_lib.grading.judging.rules import Rules
from course_lib.grading.judging.workers import Worker, shares
from course_lib.instruments import results

SUBMISSIONS, BY_PEERS, JOBS, SEED = 500, 10, 2, 0
STEM = "03_self_attention"


@dataclass(frozen=True)
class Answer:
    """The source of a cell, and whether it is to pass."""

    source: str
    passes: bool


SOURCES = {
    "self_attention/parameter_free": '''
def parameter_free(x, causal=False):
    scores = x @ x.transpose(-2, -1)
    if causal:
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return scores.softmax(-1) @ x
''',
    "self_attention/project": '''
def project(x, w_q, w_k, w_v):
    return tuple(x @ w for w in (w_q, w_k, w_v))
''',
    "self_attention/scaled_dot_product": '''
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(-1) @ v
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1).masked_fill(~mask, 0.0)
    return weights @ v
''',
    "self_attention/layer": '''
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(self, x, mask=None):
        return scaled_dot_product_attention(*project(x, self.w_q, self.w_k, self.w_v), mask)
''',
    "self_attention/by_hand": '''
def pointer_weights(names):
    own, wanted, number = torch.eye(2 * names + 1).split([names, names, 1], dim=1)
    return 100 * names**0.5 * wanted, own, number
''',
}  # fmt: skip
SET_UP = """
import torch
from torch import nn
from course_lib.attention import softmax, weighted_sum
"""
RIGHT = {exercise_id: Answer(source, True) for exercise_id, source in SOURCES.items()}
NOT_SCALED = RIGHT["self_attention/scaled_dot_product"].source.replace(" / q.shape[-1] ** 0.5", "")
DETACHED = RIGHT["self_attention/project"].source.replace("x @ w for", "(x @ w).detach() for")
WITHOUT_MASK = RIGHT["self_attention/layer"].source.replace("self.w_v), mask)", "self.w_v))")
PLAIN_SUM = "def parameter_free(x, causal=False):\n    return x @ x.mT @ x\n"
TOO_SMALL = SOURCES["self_attention/by_hand"].replace("100 * ", "")
STUB = "def parameter_free(x, causal=False):\n    raise NotImplementedError\n"
WRONG = {
    "self_attention/parameter_free": Answer(PLAIN_SUM, False),
    "self_attention/project": Answer(DETACHED, False),
    "self_attention/scaled_dot_product": Answer(NOT_SCALED, False),
    "self_attention/layer": Answer(WITHOUT_MASK, False),
    "self_attention/by_hand": Answer(TOO_SMALL, False),
}
PARTLY = RIGHT | {
    "self_attention/parameter_free": Answer(STUB, False),
    "self_attention/project": WRONG["self_attention/project"],
}


def breaking(line: str) -> dict[str, Answer]:
    """Return right answers, one of which begins with a line that breaks it and no other."""
    exercise_id = "self_attention/parameter_free"
    source = RIGHT[exercise_id].source.replace("    scores =", f"    {line}\n    scores =", 1)
    return RIGHT | {exercise_id: Answer(source, False)}


CRASH = 'torch.segment_reduce(x, "sum", lengths=torch.tensor([2**40]), unsafe=True)'
NOT_THERE = "from course_lib.multi_head import split_heads"  # it belongs to a later lesson
BROKEN = [
    breaking("return ("),
    breaking("raise SystemExit"),
    breaking("import os; os._exit(0)"),
    breaking(CRASH),
    breaking(NOT_THERE),
]
TRUNCATED: dict[str, Answer] = {}


def answers(number: int) -> dict[str, Answer]:
    """Return the answers of a submission: right, wrong, partly right and broken in turn."""
    turn, kind = divmod(number, 4)
    if kind < 3:
        return (RIGHT, WRONG, PARTLY)[kind]
    return [*BROKEN, TRUNCATED][turn % (len(BROKEN) + 1)]


def filled(notebook: dict, given: dict[str, Answer]) -> bytes:
    """Return a notebook with these answers in it; without any, the first half of a file."""
    for cell in notebook["cells"]:
        if (exercise_id := ipynb.exercise(cell)) in given:
            ipynb.set_text(cell, given[exercise_id].source.strip())
    content = json.dumps(notebook).encode()
    return content if given else content[: len(content) // 2]


def write(release: Path, paths: list[Path], numbers: list[int]) -> None:
    """Write submissions of these numbers, made from a release, to these paths."""
    for path, number in zip(paths, numbers, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(filled(ipynb.read(release), answers(number)))


def as_expected(entry: dict, given: dict[str, Answer]) -> bool:
    """Return True if the right answers of an entry of the results pass, and no others."""
    status = "graded" if given else "unreadable"
    passed = {name: x["status"] == "passed" for name, x in entry["exercises"].items()}
    return entry["status"] == status and passed == {x: a.passes for x, a in given.items()}


def in_one_notebook(given: dict[str, Answer]) -> float:
    """Return the points of answers that call each other as they stand.

    So do other tools count. `course grade` judges an answer that calls a wrong one on the
    library's.
    """
    scope: dict[str, Any] = {}
    exec(SET_UP, scope)
    for answer in given.values():
        with suppress(SyntaxError):
            exec(answer.source, scope)
    return sum(verdict(x, scope.get(load(x).name)).points for x in SOURCES)


def by_course(folder: Path, out: Path) -> float:
    """Grade a folder, assert that all is as expected, and return the seconds."""
    course = [sys.executable, "-m", "course_lib.command_line", "grade", folder, "--out", out]
    options = {"lesson": "03", "jobs": JOBS, "seed": SEED}
    words = [f"--{name}={value}" for name, value in options.items()]
    start = time.perf_counter()
    subprocess.run([*course, *words], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    graded = json.loads((out / "results.json").read_text("utf8"))
    assert len(graded["submissions"]) == len(list(folder.iterdir()))
    for entry in graded["submissions"]:
        given = answers(int(entry["student"]))
        assert as_expected(entry, given), entry
    return seconds


def in_workers(paths: list[Path], level: Level) -> list[float]:
    """Return the milliseconds of each submission in its worker, without the worker's start."""
    left: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for path in paths:
        left.put(path)
    times: list[float] = []

    def work(processors: Set[int]) -> None:
        worker = Worker(Rules(level, SEED, list(SOURCES)), processors)
        worker.judge(paths[0].read_bytes())
        while True:
            try:
                content = left.get_nowait().read_bytes()
            except queue.Empty:
                break
            start = time.perf_counter()
            worker.judge(content)
            times.append(1000 * (time.perf_counter() - start))
        worker.close()

    threads = [threading.Thread(target=work, args=[few]) for few in shares(JOBS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(times) == len(paths)
    return times


def by_nbgrader(folder: Path, points: dict[int, float], environment: dict[str, str]) -> float:
    """Return the seconds that nbgrader takes for these submissions, in one batch.

    It is to find these points.
    """
    export("nbgrader", "03", folder)

    def nbgrader(*words: str) -> None:
        words = ("nbgrader", *words)
        subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=True)

    nbgrader("generate_assignment", STEM)
    paths = [folder / "submitted" / f"{n:03}" / STEM / f"{STEM}.ipynb" for n in points]
    write(folder / "release" / STEM / f"{STEM}.ipynb", paths, list(points))
    start = time.perf_counter()
    nbgrader("autograde", STEM)
    seconds = time.perf_counter() - start
    nbgrader("export")
    with (folder / "grades.csv").open(encoding="utf8", newline="") as file:
        scores = {int(row["student_id"]): float(row["score"]) for row in csv.DictReader(file)}
    assert scores == points, (scores, points)
    return seconds


def by_otter(folder: Path, points: dict[int, float], environment: dict[str, str]) -> float:
    """Return the seconds that otter takes for these submissions, one after another.

    It is to find these points.
    """
    export("otter", "03", folder)

    def otter(*words: str | Path) -> None:
        words = ("otter", *words)
        subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=True)

    otter("generate", "--tests-dir", "tests", "--no-environment")
    paths = [folder / f"{n:03}" / f"{STEM}.ipynb" for n in points]
    write(folder / f"{STEM}.ipynb", paths, list(points))
    start = time.perf_counter()
    for path in paths:
        otter("run", path, "--autograder", "autograder.zip", "--output-dir", path.parent)
    seconds = time.perf_counter() - start
    for path, wanted in zip(paths, points.values(), strict=True):
        graded = json.loads((path.parent / "results.json").read_text("utf8"))
        scores = sum(test.get("score", 0) for test in graded["tests"])
        assert scores == wanted, (path, scores, wanted)
    return seconds


def measure(folder: Path, count: int, peers: bool) -> dict:
    """Grade so many submissions and return the figures."""
    paths = [folder / "submissions" / f"{n:03}.ipynb" for n in range(count)]
    write(ROOT / "notebooks" / f"{STEM}.ipynb", paths, list(range(count)))
    seconds = by_course(folder / "submissions", folder / "grades")
    graded = json.loads((folder / "grades" / "results.json").read_text("utf8"))
    times = in_workers(paths, graded["isolation"])
    figures = {
        "isolation": graded["isolation"],
        "submissions": count,
        "jobs": JOBS,
        "seconds": round(seconds, 2),
        "submissions a second": round(count / seconds, 2),
        "milliseconds, median in a worker": round(statistics.median(times), 1),
        # the workers go on side by side
        "milliseconds, median": round(statistics.median(times) / JOBS, 1),
        "milliseconds, mean with the start": round(1000 * seconds / count, 1),
    }
    if peers:
        environment = environments.environment(environments.GRADERS)
        # a file that is no notebook is no work
        numbers = [n for n in range(count) if answers(n) is not TRUNCATED][:BY_PEERS]
        points = {n: in_one_notebook(answers(n)) for n in numbers}
        for name, grade in tqdm({"nbgrader": by_nbgrader, "otter": by_otter}.items()):
            taken = grade(folder / name, points, environment)
            figures[name] = {
                "submissions": len(numbers),
                "seconds": round(taken, 2),
                "ratio of throughput": round(taken / len(numbers) / (seconds / count), 1),
            }
        figures["packages"] = list(environments.GRADERS)
    return figures


def main() -> None:
    """Print the figures and keep them in results/grading.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grading", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="grade ten of them by other tools too")
    options = parser.parse_args()
    # packages are compiled when they are first imported, and kept so, as with everybody
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""
    start, folder = time.perf_counter(), Path(tempfile.mkdtemp(prefix="course-benchmark-"))
    try:
        figures = measure(folder, SUBMISSIONS, options.peers)
    finally:
        shutil.rmtree(folder)
    for name, figure in figures.items():
        print(f"{name:32}{figure}")
    command = f"python -m benchmarks.grading{' --peers' if options.peers else ''}"
    results.save(
        "grading", figures, command=command, seeds=[SEED], seconds=time.perf_counter() - start
    )


if __name__ == "__main__":
    main()
