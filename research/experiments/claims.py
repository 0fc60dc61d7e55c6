"""Do the lessons' claims about trained models hold? `make claims [LESSON=NN]`.

Runs the training cells of each lesson, and the cells that they need, for several seeds and thread
counts, without the clock that ends a training in the lesson. What each `training.expect` claimed,
and what came, is kept in research/results/claims.json. A run that was interrupted goes on; a lesson
whose cells have changed is measured anew.
"""

import argparse
import ast
import hashlib
import os
import re
import symtable
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import product
from typing import Any

import jupytext
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from tqdm import tqdm
from traitlets.config import Config

from course_lib.answers.source import Source
from course_lib.files.course_map import number_of
from course_lib.files.paths import ROOT
from course_lib.files.workspace import VARIABLE
from course_lib.instruments import results
from course_lib.instruments.training import CLAIM
from lessons.build import NOTEBOOKS, build, lesson_files

SEEDS = tuple(range(10))
THREADS = (1, 2)
CELL_SECONDS = 1200
CLOCK = re.compile(r'seconds"?[=:] ?[\d.]+')  # of a training: it is run without

Run = dict[str, Any]


def lessons_with_claims() -> list[str]:
    """List the numbers of the pages that claim something about a trained model."""
    return [
        number_of(file) for file in lesson_files() if "training.expect(" in file.read_text("utf8")
    ]


def fingerprint(lesson: str) -> str:
    """Return a name for what trains up to the last claim, whatever draws left out."""
    [file] = lesson_files([lesson])
    cells = up_to_last_claim(jupytext.read(file, fmt="py:percent").cells)
    tagged = [(cell.source, cell.metadata.get("tags", [])) for cell in cells]
    trained = [
        source
        for source, tags in tagged
        if "training" in tags and ("hide-input" not in tags or "training.expect(" in source)
    ]
    said = CLOCK.sub("", "\n\n".join(trained))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def up_to_last_claim(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Leave out the cells behind a lesson's last claim."""
    last = max(i for i, cell in enumerate(cells) if "training.expect(" in cell.source)
    return cells[: last + 1]


def training_notebook(lesson: str, seed: int) -> NotebookNode:
    """Build a notebook of a lesson's training cells up to its last claim, and what they need."""
    [file] = lesson_files([lesson])
    cells = [cell for cell in build(file).cells if cell.cell_type == "code"]
    kept, needed = [], set()
    for cell in reversed(up_to_last_claim(cells)):
        defined, used = names_of(cell.source)
        if "training" in cell.metadata.get("tags", []) or defined & needed:
            kept.append(cell)
            needed = (needed - defined) | used
    for cell in kept:
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = f"SEED = {seed}"
    return new_notebook(cells=kept[::-1])


def names_of(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell binds, and those that it reads of the cells before it."""
    deleted = [x for x in ast.walk(ast.parse(source)) if isinstance(x, ast.Delete)]
    symbols = symtable.symtable(source, "<cell>", "exec").get_symbols()
    bound = {x.get_name() for x in symbols if x.is_assigned() or x.is_imported()}
    bound -= {ast.unparse(name) for x in deleted for name in x.targets}
    return bound, Source(source).reads - bound


def measure(lesson: str, seed: int, threads: int) -> Run:
    """Train what a lesson trains, once; return its claims, and the error that ended it, if any."""
    notebook = training_notebook(lesson, seed)
    environment = {"COURSE_CLOCK": "inf", "OMP_NUM_THREADS": str(threads), "MPLBACKEND": "agg"}
    environment |= {VARIABLE: ""}  # on nobody's answers
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        resources={"metadata": {"path": str(NOTEBOOKS)}},
        config=Config(KernelManager={"transport_encryption": "auto"}),
        allow_error_names=["ClaimFailed"],
    )
    start, error = time.perf_counter(), None
    try:
        client.execute(env=os.environ | environment)
    except CellExecutionError as failure:
        error = f"{failure.ename}: {failure.evalue}"
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    claims = [output.data[CLAIM] for output in outputs if CLAIM in output.get("data", {})]
    seconds = round(time.perf_counter() - start, 1)
    made_by = {"seed": seed, "threads": threads, "processor": results.processor()}
    return made_by | {"seconds": seconds, "error": error, "claims": claims}


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Sum up each claim: in how many of its runs it holds."""
    for lesson, kept in sorted(figures.items()):
        held: dict[str, list[bool]] = {}
        for run in kept["runs"]:
            for claim in run["claims"]:
                held.setdefault(claim["claim"], []).append(claim["holds"] is True)
            if run["error"]:
                yield f"{lesson}  seed {run['seed']}, {run['threads']} threads: {run['error']}"
        for claim, runs in held.items():
            yield f"{lesson}  {sum(runs):3} of {len(runs):3}  {claim}"


def main(arguments: list[str] | None = None) -> int:
    """Measure what is missing; return 1 where a claim does not hold, or a run breaks off."""
    parser = argparse.ArgumentParser(
        prog="python -m research.experiments.claims", description=__doc__
    )
    parser.add_argument("lessons", nargs="*", help="such as 05, or 01_gates (all with claims)")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS)
    options = parser.parse_args(arguments)
    lessons, claiming = options.lessons or lessons_with_claims(), lessons_with_claims()
    figures = {lesson: kept for lesson, kept in _kept().items() if lesson in claiming}
    if silent := [lesson for lesson in lessons if lesson not in claiming]:
        print(f"Nothing is claimed of a trained model in {', '.join(silent)}.", file=sys.stderr)
        return 2
    for lesson in lessons:
        if figures.get(lesson, {}).get("cells") != fingerprint(lesson):
            figures[lesson] = {"cells": fingerprint(lesson), "runs": []}
    for threads in options.threads:
        _measure_missing(figures, lessons, options.seeds, threads)
    print(*table(figures), sep="\n")
    runs = [run for lesson in lessons for run in figures[lesson]["runs"]]
    claims = [claim for run in runs for claim in run["claims"]]
    return int(any(run["error"] for run in runs) or not all(x["holds"] for x in claims))


def _measure_missing(
    figures: dict[str, Any], lessons: list[str], seeds: Sequence[int], threads: int
) -> None:
    """Measure each seed that a lesson lacks, as many at once as there are processors for them."""
    jobs = [
        (lesson, seed)
        for seed, lesson in product(seeds, lessons)
        if (seed, threads) not in {(x["seed"], x["threads"]) for x in figures[lesson]["runs"]}
    ]
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // threads)) as pool:
        futures = {pool.submit(measure, *job, threads): job[0] for job in jobs}
        name = f"{threads} threads"
        for future in tqdm(as_completed(futures), name, len(futures), unit="run"):
            runs = figures[futures[future]]["runs"]
            runs.append(future.result())
            runs.sort(key=lambda run: (run["threads"], run["seed"]))
            _keep(figures)


def _kept() -> dict[str, Any]:
    return results.load("claims")["figures"] if (results.FOLDER / "claims.json").exists() else {}


def _keep(figures: dict[str, Any]) -> None:
    runs = [run for kept in figures.values() for run in kept["runs"]]
    results.save(
        "claims",
        dict(sorted(figures.items())),
        command="make claims",
        seeds=sorted({run["seed"] for run in runs}),
        seconds=sum(run["seconds"] for run in runs),
    )


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
