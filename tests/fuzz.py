"""The long run of the fuzzer: `python -m tests.fuzz --examples 10000`, for each of its targets."""

import argparse
import os
import subprocess
import sys

from course_lib.files.paths import ROOT


def main() -> int:
    """Run every target with so many inputs; Hypothesis says how many, and in what time."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000, help="for each target (10,000)")
    parser.add_argument("--only", default="", help="targets whose name holds this")
    options = parser.parse_args()
    environment = os.environ | {"COURSE_FUZZ_EXAMPLES": str(options.examples)}
    words = [
        "-n0",
        "--hypothesis-show-statistics",
        "-k",
        options.only,
        "tests/grading/test_fuzz.py",
    ]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, env=environment
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
