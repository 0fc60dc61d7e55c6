"""Everything that CI runs, on every system: `python -m tests`."""

import os
import subprocess
import sys
import time
from pathlib import Path

from course_lib.files.paths import ROOT

SOLVED = ROOT / "build" / "solved"
# two processes on two cores: more threads than that would wait for each other
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
FOLDERS = ("data", "exercises", "grading", "pretrained")
NBVAL = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=120", "--dist=loadscope"]


def stages() -> dict[str, list[str]]:
    """Name each stage and the command, after `python -m`, that runs it.

    Shapes in signatures are executed for the components alone (tests/test_*.py and efficient);
    exercises are tried as learners run them.
    """
    shaped = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for file in sorted(Path(ROOT / "course_lib").rglob("*.py"))
        if "from jaxtyping import" in file.read_text("utf8")
    ]
    hook = f"--jaxtyping-packages={','.join(shaped)},beartype.beartype"
    tests = ROOT / "tests"
    components = [*map(str, sorted(tests.glob("test_*.py"))), str(tests / "efficient")]
    folders = [str(tests / folder) for folder in FOLDERS]
    return {
        "style": ["ruff", "check"],
        "format": ["ruff", "format", "--check"],
        "components, shapes executed": ["pytest", hook, "-n2", *components],
        "data, exercises, grading, models": ["pytest", "-n2", "--dist=loadgroup", *folders],
        "build solved notebooks": ["lessons", "--solved", str(SOLVED)],
        "notebooks, untouched and solved": ["pytest", "-n2", *NBVAL, "notebooks", str(SOLVED)],
    }


def main() -> int:
    """Run every stage, print what each took, and fail if one did."""
    results = []
    for name, command in stages().items():
        print(f"\n== {name}", flush=True)
        start = time.perf_counter()
        code = subprocess.run(
            [sys.executable, "-m", *command], cwd=ROOT, env=ENVIRONMENT
        ).returncode
        results.append((name, code, time.perf_counter() - start))
    print()
    for name, code, seconds in results:
        print(f"{'failed' if code else 'passed'}  {seconds:6.1f} s  {name}")
    failed = sum(bool(code) for _, code, _ in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
