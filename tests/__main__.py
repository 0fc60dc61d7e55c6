"""The tests in stages: `python -m tests` runs what CI runs on every system.

CI also builds the book and walks through JupyterLab in a browser: `make book`, `make browser`.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from course_lib.files import ipynb
from course_lib.files.paths import ROOT
from tests.affected import changed_files, tests_for, typed

# two processes on two cores: more threads than that would wait for each other, and if somebody
# asks for more, they wait without work
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"} | os.environ
# a hundred processes load the course: what one of them has compiled, the next ones read
ENVIRONMENT["PYTHONDONTWRITEBYTECODE"] = ""
PYTEST = ["pytest", "-n2", "--dist=loadscope"]
# it runs notebooks, and takes a second of each process to load
NO_NBVAL = ["-p", "no:nbval"]
# the longest first: what is short fills the time at the end
FOLDERS = (
    "grading", "checking", "lessons", "answers", "command_line", "pretrained", "xray",
    "pages", "experiments", "instruments", "data", "files",
)  # fmt: skip
NBVAL = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=600"]


class Stage(NamedTuple):
    """A command, after `python -m`, and what its environment has beside this one's."""

    command: list[str]
    environment: dict[str, str] = {}  # noqa: RUF012, nobody changes it


STYLE = {
    "style": Stage(["ruff", "check"]),
    "format": Stage(["ruff", "format", "--check"]),
    "types": Stage(["basedpyright"]),
}


def stages() -> dict[str, Stage]:
    """Name each stage of the whole.

    Shapes in signatures are executed for the components alone (tests/components); exercises and
    lessons are tried as learners run them. Notebooks run to their end with hardly any
    time for their trainings, and with clocks that lie, so that nothing depends on how fast a
    machine is; what trainings reach is kept in results/claims.json (`make claims`).
    """
    shaped = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for file in sorted(Path(ROOT / "course_lib").rglob("*.py"))
        if "from jaxtyping import" in file.read_text("utf8")
    ]
    hook = f"--jaxtyping-packages={','.join(shaped)},beartype.beartype"
    tests = ROOT / "tests"
    components = [str(tests / "components"), str(tests / "verify")]
    folders = [str(tests / folder) for folder in FOLDERS]
    # the last lessons take longest
    notebooks = [str(path) for path in reversed(ipynb.listed(ROOT / "notebooks"))]
    return STYLE | {
        "components, shapes executed": Stage([*PYTEST, *NO_NBVAL, hook, *components]),
        "engine, grading, files, models": Stage(
            [*PYTEST, *NO_NBVAL, "--no-loadscope-reorder", *folders]
        ),
        "notebooks, untouched and solved": Stage(
            [*PYTEST, "--no-loadscope-reorder", *NBVAL, str(tests / "notebooks"), *notebooks],
            {"COURSE_CLOCK": "0.01", "PYTHONPATH": str(tests / "lying_clock")},
        ),
    }


def quick_stages() -> dict[str, Stage]:
    """Name the stages of the everyday loop: style, types, and the tests of what has changed."""
    changed = changed_files()
    tests, types = tests_for(changed), typed(changed)
    print("changed since the last commit, or by it:", *(tests or ["nothing that has tests"]))
    return {
        "style": STYLE["style"],
        "format": STYLE["format"],
        **({"types of what changed": Stage(["basedpyright", *types])} if types else {}),
        # one process: each loads torch
        **({"tests of what changed": Stage(["pytest", *NO_NBVAL, *tests])} if tests else {}),
    }


def pages_stages() -> dict[str, Stage]:
    """Name what writes the pages anew: the kept proof first, then what the pages show."""
    return {
        "proof": Stage(["course_lib.command_line", "verify", "--save"]),
        "pages": Stage(["pytest", *NO_NBVAL, "tests/pages"], {"UPDATE_PAGES": "1"}),
    }


def weekly_stages() -> dict[str, Stage]:
    """Name what takes too long for each push."""
    tools = ["tests/grading/test_with_tools.py", "tests/components/efficient/test_packages.py"]
    every = [
        f"tests/grading/test_{name}.py" for name in ("agreement", "exports", "grade", "hostile")
    ]
    return {
        "strangers' answers": Stage(["evaluation"]),
        "every answer of every bank, judged in three ways, every export, every attack": Stage(
            [*PYTEST, *NO_NBVAL, *every], {"COURSE_ALL_ANSWERS": "1"}
        ),
        "nbgrader, otter and other packages": Stage(
            ["pytest", *NO_NBVAL, *tools], {"COURSE_TEST_TOOLS": "1"}
        ),
        "fuzz": Stage(["tests.fuzz"]),
        "each way in": Stage(
            ["pytest", *NO_NBVAL, "tests/browser/ways_in.py", "tests/browser/vs_code.py"]
        ),
    }


def main() -> int:
    """Run every stage, print what each took, and fail if one did."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    for name, chosen, what in (
        ("--quick", quick_stages, "style, types, and the tests of what you have changed"),
        ("--pages", pages_stages, "write what the pages show"),
        ("--weekly", weekly_stages, "what CI runs once a week"),
    ):
        which.add_argument(
            name, dest="stages", action="store_const", const=chosen, default=stages, help=what
        )
    results = []
    for name, stage in parser.parse_args().stages().items():
        print(f"\n== {name}", flush=True)
        start = time.perf_counter()
        command, environment = [sys.executable, "-m", *stage.command], stage.environment
        done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT | environment)
        results.append((name, done.returncode, time.perf_counter() - start))
    print()
    for name, code, seconds in results:
        print(f"{'failed' if code else 'passed'}  {seconds:6.1f} s  {name}")
    failed = sum(bool(code) for _, code, _ in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
