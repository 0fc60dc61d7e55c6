"""What a wrong answer is told: answers by people who had not read the checks.

`answers.jsonl` holds one answer a line: `exercise`, `set`, whether it is `right`, its `fault`, its
`code`, what a check `said` of it, and the `class` of that; in some, what it said `before` a reader
of the course found that poor. A program cannot tell whether a sentence
is true of its answer, and helps: somebody has read it. Where `read` is false nobody has, and the
class is a guess, by `guessed`.
"""

import json
import re
from collections import Counter
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from course_lib.answers.process import ChildProcess
from course_lib.checking.catalogue import ids, outline
from course_lib.checking.notebook.answer_cells import judge_attempt
from course_lib.checking.notebook.submission import find_answers
from course_lib.checking.verdict import Verdict
from lessons.build import build, lesson_files

FILE = Path(__file__).with_name("answers.jsonl")
# what the pages gave when the answers were written: some exercises have moved to others since
GIVEN = """import math
import torch
from einops import einsum, rearrange, reduce, repeat
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.add_norm import layer_norm
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.before_attention import layers_needed
from course_lib.efficient.window import window_mask
from course_lib.masks import shift_right
"""
CLASSES = {
    "named": "the mistake is named: a known one, or a forbidden call",
    "shown": "what differs is shown: where, by what, or under which condition",
    "example": "one wrong number is shown, and where it is",
    "unexplained": "nothing that helps is said",
    "misdiagnosed": "something untrue is said",
    "crashed": "the check itself raises an exception",
    "accepted": "a wrong answer passes",
    "within the task": "it is said to be wrong, keeps all that the task asks, and passes",
    "passed": "a right answer passes",
    "forbidden": "right, by a function that the exercise forbids",
    "refused": "a right answer does not pass",
}
COUNT = (
    r"(Every case gives a wrong result|\d+ of \d+ cases are right(, .* is not)?"
    r"|Of \d+ cases only .*? is (right|wrong))\.?"
)
UNHELPFUL, EXAMPLE = re.compile(COUNT), re.compile(f"{COUNT} (In “|There ).*where .* expected\\.")


def read() -> list[dict[str, Any]]:
    """Return every answer, in the file's order."""
    return [json.loads(line) for line in FILE.read_text("utf8").splitlines()]


def write(rows: list[dict[str, Any]]) -> None:
    """Keep the answers with what was said of them."""
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    FILE.write_text("".join(f"{line}\n" for line in lines), "utf8")


@cache
def _notebook(lesson: str) -> NotebookNode:
    """Return the page, its exercises solved: an answer may stand on them."""
    [file] = lesson_files([lesson])
    notebook = build(file, solved=True)
    notebook.cells.insert(0, new_code_cell(GIVEN))
    return notebook


def judged(row: dict[str, Any], handle: ChildProcess) -> Verdict:
    """Judge an answer in the cell of its exercise, as `course check` does."""
    exercise = outline(row["exercise"])
    notebook = deepcopy(_notebook(exercise.lesson))
    [cell] = [x for x in notebook.cells if x.metadata.get("exercise") == exercise.id]
    cell.source = row["code"]
    lesson = [x for x in map(outline, ids()) if x.lesson == exercise.lesson]
    attempt = find_answers(notebook, exercise.id, lesson, alone=True).attempts[exercise.id]
    return judge_attempt(attempt, handle)


def guessed(row: dict[str, Any], verdict: Verdict) -> str:
    """Guess the class of a verdict by its status, and by whether its sentence is an empty one."""
    if row["right"]:
        return {"passed": "passed", "forbidden": "forbidden"}.get(verdict.status, "refused")
    if verdict.status == "passed":
        return "within the task" if row["class"] == "within the task" else "accepted"
    if verdict.status in ("known mistake", "forbidden"):
        return "named"
    error, said = verdict.failure and verdict.failure.error, verdict.message
    if row["class"] == "shown" and said.startswith(row["said"]):
        return "shown"
    if error and not verdict.message.startswith("The result"):
        said = said.removeprefix(f"{error.type}: {error.message}".rstrip(": ")).strip(" .")
    if not said or UNHELPFUL.fullmatch(said):
        return "unexplained"
    return "example" if EXAMPLE.fullmatch(said) else "shown"


def counts(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Count the answers of each set by class."""
    sets = dict.fromkeys(row["set"] for row in rows)
    return {x: dict(Counter(row["class"] for row in rows if row["set"] == x)) for x in sets}


def table(figures: dict[str, dict[str, int]]) -> str:
    """Return the counts as a table in Markdown, a row for each class that occurs."""
    lines = [f"| | {' | '.join(figures)} |", f"|:-|{'-:|' * len(figures)}"]
    for name, meaning in CLASSES.items():
        row = [by_class.get(name, 0) for by_class in figures.values()]
        if any(row):
            lines.append(f"| {name}: {meaning} | {' | '.join(map(str, row))} |")
    return "\n".join(lines)
