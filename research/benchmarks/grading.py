"""What grading takes: submissions of lesson 03, by the course and by other tools.

python -m research.benchmarks.grading [--peers]

All grade the same notebooks, one after another, in rounds in which the tools take turns. Counted
are the seconds of the processor, those of all processes that a tool starts; one notebook and
several of them tell what the start takes and what each notebook does.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from tqdm import tqdm

from course_lib.checking.catalogue import load
from course_lib.exercises import verdict
from course_lib.files import ipynb
from course_lib.files.paths import ROOT
from course_lib.grading.exports import export
from course_lib.instruments import results
from research.benchmarks import environments

FEW, MANY, SEED = 1, 4, 0  # one of each kind
ROUNDS = 3  # in which the tools take turns
STEM = "03_self_attention"
# what waits on a busy machine is no failure
PATIENT = [f"--ExecutePreprocessor.{x}_timeout=900" for x in ("iopub", "startup")]


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


def processor(command: Callable[[], object]) -> float:
    """Return the seconds of the processor that the processes of a command take."""
    before = os.times()
    command()
    return sum(os.times()[2:4]) - sum(before[2:4])


def by_course(folder: Path, points: dict[int, float], environment: dict[str, str]) -> float:
    """Return the seconds that the course takes for these submissions; all is to be as expected."""
    paths = [folder / "submissions" / f"{n:03}.ipynb" for n in points]
    write(ROOT / "notebooks" / f"{STEM}.ipynb", paths, list(points))
    course = [sys.executable, "-m", "course_lib.command_line", "grade", folder / "submissions"]
    # the time of what bubblewrap has inside of it is counted nowhere
    options = ["--out", folder / "out", "--lesson=03", "--jobs=1", f"--seed={SEED}"]
    options.append("--isolation=landlock")
    seconds = processor(lambda: _run(course + options, ROOT, environment))
    graded = json.loads((folder / "out" / "results.json").read_text("utf8"))
    assert len(graded["submissions"]) == len(points)
    for entry in graded["submissions"]:
        assert as_expected(entry, answers(int(entry["student"]))), entry
    return seconds


def _run(words: list, folder: Path, environment: dict[str, str]) -> None:
    subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=True)


def by_nbgrader(folder: Path, points: dict[int, float], environment: dict[str, str]) -> float:
    """Return the seconds that nbgrader takes for these submissions, in one batch.

    It is to find these points.
    """
    export("nbgrader", "03", folder)

    def nbgrader(*words: str) -> None:
        _run(["nbgrader", *words], folder, environment)

    nbgrader("generate_assignment", STEM)
    paths = [folder / "submitted" / f"{n:03}" / STEM / f"{STEM}.ipynb" for n in points]
    write(folder / "release" / STEM / f"{STEM}.ipynb", paths, list(points))
    seconds = processor(lambda: nbgrader("autograde", STEM, *PATIENT))
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
        _run(["otter", *words], folder, environment)

    def each() -> None:
        for path in paths:
            otter("run", path, "--autograder", "autograder.zip", "--output-dir", path.parent)

    otter("generate", "--tests-dir", "tests", "--no-environment")
    paths = [folder / f"{n:03}" / f"{STEM}.ipynb" for n in points]
    write(folder / f"{STEM}.ipynb", paths, list(points))
    seconds = processor(each)
    for path, wanted in zip(paths, points.values(), strict=True):
        graded = json.loads((path.parent / "results.json").read_text("utf8"))
        scores = sum(test.get("score", 0) for test in graded["tests"])
        assert scores == wanted, (path, scores, wanted)
    return seconds


def measure(folder: Path, peers: bool) -> dict:
    """Grade few and many submissions by each tool, and return start and seconds of each one."""
    tools = {"course": by_course}
    tools |= {"nbgrader": by_nbgrader, "otter": by_otter} if peers else {}
    environment = environments.environment(environments.GRADERS) if peers else {**os.environ}
    # a file that is no notebook is no work
    numbers = [n for n in range(2 * MANY) if answers(n) is not TRUNCATED][:MANY]
    points = {n: in_one_notebook(answers(n)) for n in numbers}
    figures: dict = {"submissions": MANY, "unit": "seconds of the processor"}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in tools}
    # in the first round, what is imported for the first time is compiled, and kept so, as with
    # everybody: it does not count
    for turn, (name, grade) in tqdm([*product(range(ROUNDS + 1), tools.items())]):
        few, many = (
            grade(folder / f"{name}_{turn}_{count}", dict([*points.items()][:count]), environment)
            for count in (FEW, MANY)
        )
        each = (many - few) / (MANY - FEW)
        taken[name].append((max(few - FEW * each, 0), each))
    for name, rounds in taken.items():
        starts, every = zip(*rounds[1:], strict=True)
        figures[name] = {
            "start": round(median(starts), 2),
            "each": round(median(every), 3),
            "rounds": [round(x, 3) for x in every],
        }
    for name in [*tools][1:]:
        times = figures[name]["each"] / figures["course"]["each"]
        figures[name]["times the course's"] = round(times, 1)
    if peers:
        figures["packages"] = list(environments.GRADERS)
    return figures


def main() -> None:
    """Print the figures and keep them in research/results/grading.json."""
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks.grading", description=__doc__
    )
    parser.add_argument("--peers", action="store_true", help="by other tools too")
    options = parser.parse_args()
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""
    start, folder = time.perf_counter(), Path(tempfile.mkdtemp(prefix="course-benchmark-"))
    try:
        figures = measure(folder, options.peers)
    finally:
        shutil.rmtree(folder)
    for name, figure in figures.items():
        print(f"{name:32}{figure}")
    command = f"python -m research.benchmarks.grading{' --peers' if options.peers else ''}"
    results.save(
        "grading", figures, command=command, seeds=[SEED], seconds=time.perf_counter() - start
    )


if __name__ == "__main__":
    main()
