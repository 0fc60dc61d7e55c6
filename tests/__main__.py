"""The tests in stages: `python -m tests`, of which CI runs the `--portable` ones on each system.

CI also builds the book and walks through JupyterLab in a browser: `make book`, `make browser`.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from course_lib.files.course_map import notebook_of, page_files
from course_lib.files.paths import ROOT
from tests.affected import changed_files, tests_for, typed
from tests.due import due

# two processes on two cores: more threads than that would wait for each other, and if somebody
# asks for more, they wait without work
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"} | os.environ
# a hundred processes load the course: what one of them has compiled, the next ones read
ENVIRONMENT["PYTHONDONTWRITEBYTECODE"] = ""
PYTEST = ["pytest", "-n2", "--dist=loadscope", "--durations=12", "--durations-min=2"]
# it runs notebooks, and takes a second of each process to load
NO_NBVAL = ["-p", "no:nbval"]
# the longest first: what is short fills the time at the end
FOLDERS = (
    "grading", "checking", "lessons", "answers", "command_line", "pretrained", "xray",
    "pages", "research", "instruments", "data", "files",
)  # fmt: skip
NBVAL = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=600"]
# kernels that have loaded torch already
WARM = ["-p", "tests.warm_kernel"]
SOLVED = (
    "tests/notebooks/test_solved.py::test_a_solved_lesson_runs_to_its_end_and_passes_its_checks"
)


class Stage(NamedTuple):
    """A command, after `python -m`, and what its environment has beside this one's.

    One that uses a single core runs `beside` those that come after it, and is told at the end.
    """

    command: list[str]
    environment: dict[str, str] = {}  # noqa: RUF012, nobody changes it
    beside: bool = False


STYLE = {
    "style": Stage(["ruff", "check"]),
    "format": Stage(["ruff", "format", "--check"]),
}
TYPES = {"types": Stage(["basedpyright"], beside=True)}
LAWS = "tests/checking/laws"
# of MKL and torch: other roundings than those of this machine's own
SLOW_KERNELS = {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ATEN_CPU_CAPABILITY": "default"}


def stages() -> dict[str, Stage]:
    """Name each stage of the whole.

    Shapes in signatures are executed for the components alone (tests/components); exercises and
    lessons are tried as learners run them. Notebooks run to their end with hardly any
    time for their trainings, and with clocks that lie, so that nothing depends on how fast a
    machine is; what trainings reach is kept in research/results/claims.json (`make claims`).
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
    return (
        STYLE
        | TYPES
        | {
            "components, shapes executed": Stage([*PYTEST, *NO_NBVAL, hook, *components]),
            "engine, grading, files, models": Stage(
                [*PYTEST, *NO_NBVAL, "--no-loadscope-reorder", *folders]
            ),
            "notebooks, untouched and solved": notebooks(due(), *WARM),
        }
    )


def portable_stages() -> dict[str, Stage]:
    """Name the stages that another system or Python may change, without what lessons say."""
    texts = {str(ROOT / "tests" / name) for name in ("lessons", "pages")}
    return {
        name: stage._replace(command=[word for word in stage.command if word not in texts])
        for name, stage in stages().items()
        if name.startswith(("components", "engine"))
    }


def notebooks(pages: list[Path], *options: str) -> Stage:
    """Run the notebooks of pages to their end, untouched and solved."""
    untouched = [str(ROOT / "notebooks" / notebook_of(page)) for page in pages]
    others = {file.stem for file in page_files().values()} - {page.stem for page in pages}
    if others:
        print(f"{len(others)} explorations stand on nothing that has changed: they run weekly")
    solved = [f"--deselect={SOLVED}[{name}]" for name in sorted(others)]
    command = [*PYTEST, "--no-loadscope-reorder", *NBVAL, *options, *solved]
    return Stage(
        # the last lessons take longest
        [*command, str(ROOT / "tests" / "notebooks"), *reversed(untouched)],
        {"COURSE_CLOCK": "0.01", "PYTHONPATH": str(ROOT / "tests" / "lying_clock")},
    )


def quick_stages() -> dict[str, Stage]:
    """Name the stages of the everyday loop: style, types, and the tests of what has changed."""
    changed = changed_files()
    tests, types = tests_for(changed), typed(changed)
    print("changed since the last commit, or by it:", *(tests or ["nothing that has tests"]))
    asked = dict(STYLE)
    if types:
        asked["types of what changed"] = Stage(["basedpyright", *types])
    if tests:  # in one process: each loads torch
        asked["tests of what changed"] = Stage(["pytest", *NO_NBVAL, *tests])
    return asked


def pages_stages() -> dict[str, Stage]:
    """Name what writes the pages anew: the kept proof first, then what the pages show."""
    return {
        "proof": Stage(["course_lib.command_line", "verify", "--save"]),
        "pages": Stage(["pytest", *NO_NBVAL, "tests/pages"], {"UPDATE_PAGES": "1"}),
    }


def weekly_stages() -> dict[str, Stage]:
    """Name what takes too long for each push."""
    tools = ["tests/grading/test_with_tools.py", "tests/components/efficient/test_packages.py"]
    folders = [str(ROOT / "tests" / folder) for folder in FOLDERS]
    return {
        "strangers' answers": Stage(["research.evaluation"]),
        "more seeds, all answers, all pages": Stage(
            [*PYTEST, *NO_NBVAL, *folders], {"COURSE_WEEKLY": "1"}
        ),
        "laws under slow kernels": Stage([*PYTEST, *NO_NBVAL, LAWS], SLOW_KERNELS),
        "the nearest answers": Stage(["tests.margins"]),
        "right answers under many draws": Stage(["tests.draws"]),
        "nbgrader, otter and other packages": Stage(
            ["pytest", *NO_NBVAL, *tools], {"COURSE_TEST_TOOLS": "1"}
        ),
        "all notebooks, in kernels as learners have them": notebooks([*page_files().values()]),
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
        ("--portable", portable_stages, "what another system or Python may change"),
        ("--quick", quick_stages, "style, types, and the tests of what you have changed"),
        ("--pages", pages_stages, "write what the pages show"),
        ("--weekly", weekly_stages, "what CI runs once a week"),
    ):
        which.add_argument(
            name, dest="stages", action="store_const", const=chosen, default=stages, help=what
        )
    results = _run(parser.parse_args().stages())
    print()
    for name, code, seconds in results:
        print(f"{'failed' if code else 'passed'}  {seconds:6.1f} s  {name}")
    failed = sum(bool(code) for _, code, _ in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return bool(failed)


def _run(stages: dict[str, Stage]) -> list[tuple[str, int, float]]:
    """Run stages; return the name of each, its exit code, and the seconds until it was over."""
    results, beside = [], []
    with contextlib.ExitStack() as files:
        for name, stage in stages.items():
            said = files.enter_context(tempfile.TemporaryFile()) if stage.beside else None
            if not said:
                print(f"\n== {name}", flush=True)
            start = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", *stage.command],
                cwd=ROOT,
                env=ENVIRONMENT | stage.environment,
                stdout=said,
                stderr=said,
            )
            if said:
                beside.append((name, process, said, start))
            else:
                results.append((name, process.wait(), time.perf_counter() - start))
        for name, process, said, start in beside:
            results.append((name, process.wait(), time.perf_counter() - start))
            said.seek(0)
            print(f"\n== {name}\n{said.read().decode(errors='replace')}", flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
