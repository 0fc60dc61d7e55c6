"""How are strangers' answers judged? `python -m tests.strangers first [TOPIC]`."""

import argparse
import json
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from course_lib.answers.process import ChildProcess
from tests.strangers import judged, tries


def main() -> None:
    """Judge each answer of a set; print the counts, and keep every verdict in build/."""
    parser = argparse.ArgumentParser(prog="python -m tests.strangers", description=__doc__)
    parser.add_argument("people", choices=("first", "second"))
    parser.add_argument("topic", nargs="?", default="")
    options = parser.parse_args()
    rows, asked = [], [x for x in tries(options.people) if x.exercise.startswith(options.topic)]
    with ChildProcess() as handle:
        for one in tqdm(asked):
            verdict = judged(one, handle)
            row = {"exercise": one.exercise, "right": one.right, "said": one.said}
            error = verdict.failure and verdict.failure.error
            row |= {"status": verdict.status, "message": verdict.message}
            rows.append(row | {"error": error and f"{error.type}: {error.message}"})
    for right in (True, False):
        counts = Counter(row["status"] for row in rows if row["right"] == right)
        print("right:" if right else "wrong:", dict(counts))
    for row in rows:
        if row["right"] != (row["status"] == "passed"):
            print(f"{row['exercise']:32} {row['status']:14} {row['said']}")
    path = Path("build") / f"strangers-{options.people}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rows, indent=1))
    print(f"every verdict: {path}")


if __name__ == "__main__":
    main()
