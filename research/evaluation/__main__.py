"""What is a wrong answer told? `python -m research.evaluation [SET] [TOPIC]` judges answers.

It prints what has changed since the sentences were read, and counts by class; over all sets it
keeps research/results/wrong_answers.json. `--update` writes the new sentences into answers.jsonl,
unread.
"""

import argparse
import time

from tqdm import tqdm

from course_lib.answers.process import ChildProcess
from course_lib.instruments import results
from research.evaluation import counts, guessed, judged, read, table, write


def main() -> None:
    """Judge the answers, and print what has changed and the counts."""
    parser = argparse.ArgumentParser(prog="python -m research.evaluation", description=__doc__)
    parser.add_argument("set", nargs="?", default="", help="first to sixteenth, or newcomer")
    parser.add_argument("topic", nargs="?", default="", help="the beginning of exercises' ids")
    parser.add_argument("--update", action="store_true", help="write what is said now")
    options = parser.parse_args()
    rows, start = read(), time.perf_counter()
    asked = [
        row
        for row in rows
        if row["set"].startswith(options.set) and row["exercise"].startswith(options.topic)
    ]
    now = []
    with ChildProcess() as handle:
        for row in tqdm(asked, disable=None):
            verdict = judged(row, handle)
            said = " ".join(verdict.message.split())
            if said == row["said"]:
                now.append(row)
                continue
            new = {**row, "said": said, "class": guessed(row, verdict), "read": False}
            now.append(new)
            classes = dict.fromkeys((row["class"], new["class"]))
            print(f"{' → '.join(classes)}: {row['exercise']}: {row['fault']}", flush=True)
            print(f"    was: {row['said']}\n    now: {said}", flush=True)
    figures = counts(now)
    print(table(figures))
    unread = sum(row.get("read") is False for row in now)
    print(f"{unread} of {len(now)} sentences have been read by nobody.")
    if len(now) == len(rows):
        seconds = time.perf_counter() - start
        path = results.save(
            "wrong_answers",
            figures,
            command="python -m research.evaluation",
            seeds=[0],
            seconds=seconds,
        )
        print(f"kept: {path}")
    if options.update:
        newer = {id(old): new for old, new in zip(asked, now, strict=True)}
        write([newer.get(id(row), row) for row in rows])
    raise SystemExit(any(row["class"] in ("refused", "crashed", "accepted") for row in now))


if __name__ == "__main__":
    main()
