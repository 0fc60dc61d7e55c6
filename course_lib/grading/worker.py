"""A process that judges one notebook after another: `python -m course_lib.grading.worker`.

Its first line of input is the rules, each further one a notebook; each line that it puts out is an
entry of the results, in the same order.
"""

import base64
import json
import sys
from dataclasses import asdict

import torch

from course_lib.grading.isolation import NoIsolation
from course_lib.grading.judge import Judge, Rules

COMMAND = [sys.executable, "-m", "course_lib.grading.worker"]


def rules_line(rules: Rules) -> str:
    """Write rules as a line of input."""
    return json.dumps(asdict(rules)) + "\n"


def notebook_line(content: bytes) -> str:
    """Write a notebook as a line of input."""
    return json.dumps(base64.b64encode(content).decode()) + "\n"


def main() -> int:
    """Judge what comes on standard input until it ends."""
    torch.set_num_threads(1)
    with Judge(Rules(**json.loads(sys.stdin.readline()))) as judge:
        for line in sys.stdin:
            content = base64.b64decode(json.loads(line))
            try:
                entry = judge.entry(content)
            except NoIsolation as error:
                print(error, file=sys.stderr)
                return 2
            print(json.dumps(entry), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
