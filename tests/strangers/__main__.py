"""How are strangers' answers judged? `python -m tests.strangers first [TOPIC]`."""

import argparse
import json
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from course_lib.answers.process import ChildProcess
from tests.strangers import CLASSES, classified, judged, one_line, readings, tries


def main() -> None:
    """Judge each answer of a set; print the table, and keep every verdict in build/."""
    parser = argparse.ArgumentParser(prog="python -m tests.strangers", description=__doc__)
    parser.add_argument("people", choices=("first", "second", "third"))
    parser.add_argument("topic", nargs="?", default="", help="the beginning of exercises' ids")
    options = parser.parse_args()
    rows, read = [], readings(options.people)
    asked = [one for one in tries(options.people) if one.exercise.startswith(options.topic)]
    with ChildProcess() as handle:
        for one in tqdm(asked):
            verdict = judged(one, handle)
            row = {"exercise": one.exercise, "right": one.right, "fault": one.said}
            row |= {"status": verdict.status, "said": one_line(verdict.message)}
            rows.append(row | {"class": classified(one, verdict, read)})
    for row in rows:
        if row["class"] not in ("accepted rightly", "named", "shown"):
            print(f"{row['class']:16} {row['exercise']:28} {row['fault']} → {row['said']}")
    counts = Counter(row["class"] for row in rows)
    for name, meaning in CLASSES.items():
        print(f"{counts[name]:4} {name}: {meaning}")
    path = Path("build") / f"strangers-{options.people}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rows, indent=1))
    print(f"every verdict: {path}")


if __name__ == "__main__":
    main()
