"""One notebook becomes one entry of the results; cases, references and points are known here.

`python -m course_lib.grading.judging.judge` is a process that judges one notebook after another.
Its first line of input is the rules, each further one a notebook. It says that it is ready; each
further line that it puts out is an entry of the results, in the same order. It ends where a
notebook takes more memory or computing than a judge is given, and says so by how it ends.
"""

import ast
import base64
import contextlib
import json
import os
import re
import signal
import sys
from pathlib import Path

import torch

from course_lib.answers.source import Source, forbidden_in, names_in
from course_lib.checking.catalogue import load, outline
from course_lib.checking.explain.failing_case import failing_case
from course_lib.checking.likeness import is_library
from course_lib.checking.looks import Status
from course_lib.checking.notebook.answer_cells import (
    Attempt,
    forbidden_name,
    judge_attempt,
    unanswered,
)
from course_lib.checking.notebook.submission import another_page, find_answers
from course_lib.checking.trial import properties
from course_lib.checking.verdict import Verdict, sentence, untried
from course_lib.files import ipynb
from course_lib.files.course_map import lesson_of
from course_lib.grading.judging.flags import flags
from course_lib.grading.judging.isolation import NoIsolation
from course_lib.grading.judging.rules import Rules
from course_lib.grading.judging.sandbox import Sandbox
from course_lib.grading.judging.workers import MEMORY, READY, SECONDS, Ending
from course_lib.grading.marks.entries import block, plain, rounded, unreadable
from course_lib.grading.marks.schema import Case, Entry, ExerciseResult, Flag, PropertyResult
from course_lib.grading.marks.written_answers import in_words

MOST_NAMES = 20
HERE = sys.version_info[:2]
STATEMENTS = 3  # of a shorter answer, everybody's is the same
LONGEST_SOURCE = 20_000
CERTAIN = ("passed", "known mistake")  # whatever ran before in the same process
# what may be raised while a stranger's values are compared or shown
OF_STRANGE_VALUES = (
    ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError,
)  # fmt: skip


class Judge:
    """Judges notebooks, answers in the sandbox of their lesson. Use it as a context manager."""

    def __init__(self, rules: Rules):
        self._rules = rules
        self._open = contextlib.ExitStack()
        self._sandboxes: dict[str, Sandbox] = {}

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def entry(self, content: bytes) -> Entry:
        """Return `lesson`, `status`, `message` and `exercises` of a notebook's entry."""
        try:
            notebook = ipynb.parse(content, "This")
            asked = [outline(exercise_id) for exercise_id in self._rules.exercises]
            if said := another_page(notebook, asked):
                return unreadable(said)
            submission = find_answers(notebook, "This", asked or None, alone=True)
        except ipynb.NotANotebook as error:
            return unreadable(str(error))
        except RecursionError:
            return unreadable("This is nested too deeply to be read.")
        except MemoryError:
            return unreadable("This takes too much memory to be read.")
        for attempt in submission.attempts.values():
            self._start_sandbox(attempt)
            # torch is loading in the sandbox: meanwhile, ask the reference
            properties(load(attempt.exercise.id), self._rules.seed)
        results, failed = {}, []
        # the process of an answer that calls others may end with it: these come last
        for attempt in sorted(
            submission.attempts.values(), key=lambda x: bool(x.stands_on or x.along)
        ):
            attempt = attempt.borrowing(failed)
            judged = self._verdict(attempt)
            flagged = _flags(submission.attempts[judged.exercise])
            if flagged and self._rules.strict:
                judged = self._refused(attempt, flagged[0])
            results[judged.exercise] = self._result(attempt, judged)
            if flagged:
                results[judged.exercise]["flags"] = flagged
            if judged.status != "passed":
                failed.append(attempt.exercise)
        self._clear()
        entry: Entry = {
            "lesson": min(x.exercise.lesson for x in submission.attempts.values()),
            "status": "graded",
            "message": plain(" ".join(submission.remarks)),
            "exercises": {exercise_id: results[exercise_id] for exercise_id in submission.attempts},
        }
        if words := in_words(notebook):
            entry["words"] = words
        if newer := _newer_python(notebook):
            entry["python"] = newer
            said = f"Written with Python {newer}; this grader's is {HERE[0]}.{HERE[1]}."
            entry["message"] = plain(f"{said} {entry['message']}")
        return entry

    def _verdict(self, attempt: Attempt) -> Verdict:
        try:
            if name := forbidden_name(attempt):
                said = f"This calls `{name}`: here you build it yourself."
                return _untried(attempt, "forbidden", said)
            return self._judged(attempt)
        except RecursionError:
            message = "This code is nested too deeply to be judged."
        # whatever a reply leads to, it fails the answer and never the judge
        except OF_STRANGE_VALUES:
            message = "What this code replies cannot be judged."
        self._clear()
        return _untried(attempt, "error", message)

    def _judged(self, attempt: Attempt) -> Verdict:
        if not attempt.source:
            return unanswered(attempt)
        exercise = load(attempt.exercise.id)
        sandbox, banned = self._sandboxes[lesson_of(exercise.lesson)], exercise.forbidden
        # what one answer may call, it could leave behind for another that may not
        if any(forbidden_in(source, {}, banned) for source in sandbox.executed):
            sandbox.clear()
        alone = not sandbox.executed
        judged = judge_attempt(attempt, sandbox, self._rules.seed)
        if not alone and judged.status not in CERTAIN:
            # another answer may have spoiled the process: once more, in a fresh one
            sandbox.clear()
            judged = judge_attempt(attempt, sandbox, self._rules.seed)
        if attempt.borrowed:  # the library's code is nothing for the answers that follow
            sandbox.clear()
        return judged

    def _refused(self, attempt: Attempt, flag: Flag) -> Verdict:
        said = (
            f"{flag['seen']} (cell {flag['cell']}, line {flag['line']}), and this class is graded "
            "without such code: write it in a plainer way."
        )
        return _untried(attempt, "forbidden", said)

    def _start_sandbox(self, attempt: Attempt) -> None:
        """Start the sandbox of an exercise's lesson, unless it runs."""
        lesson, rules = lesson_of(attempt.exercise.lesson), self._rules
        if attempt.source and lesson not in self._sandboxes:
            sandbox = Sandbox(lesson, rules.level, rules.seconds, rules.memory)
            self._open.enter_context(sandbox)
            self._sandboxes[lesson] = sandbox

    def _clear(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.clear()

    def _result(self, attempt: Attempt, judged: Verdict) -> ExerciseResult:
        most = self._rules.points.get(judged.exercise, judged.max_points)
        result: ExerciseResult = {
            "status": judged.status,
            "points": rounded(judged.points * most / judged.max_points),
            "max_points": rounded(most),
            "message": plain(_message(attempt, judged)),
        }
        if judged.called:
            result["dispatched"] = sorted(map(plain, judged.called[:MOST_NAMES]))
        if attempt.source:
            result["source"] = attempt.source[:LONGEST_SOURCE]
            if _same_as_library(attempt):
                result["same_as_library"] = True
        if judged.properties:
            result["properties"] = _properties(judged, most / judged.max_points)
        if case := _case(judged):
            result["case"] = case
        return result


def _untried(attempt: Attempt, status: Status, message: str) -> Verdict:
    return untried(attempt.exercise.id, attempt.exercise.points, status, message)


def _newer_python(notebook: dict) -> str | None:
    """Return the version of Python that a notebook was run with, where this one is older."""
    metadata = notebook.get("metadata")
    language = metadata.get("language_info") if isinstance(metadata, dict) else None
    written = language.get("version") if isinstance(language, dict) else None
    found = re.match(r"(3)\.(\d{1,3})(?!\d)", written) if isinstance(written, str) else None
    return found[0] if found and (int(found[1]), int(found[2])) > HERE else None


def _flags(attempt: Attempt) -> list[Flag]:
    """List what is unusual in an attempt that has borrowed nothing from the library."""
    try:
        return flags(attempt.source or Source(""), attempt.places)
    except RecursionError:
        return [Flag(cell=attempt.places[0][0], line=1, seen="code that is nested too deeply")]


def _same_as_library(attempt: Attempt) -> bool:
    """Return True for an answer of some statements that is the library's own."""
    source, exercise = attempt.source or Source(""), load(attempt.exercise.id)
    # what is mended is the library's own, but for a fault
    if exercise.broken or not is_library(source, exercise.name, exercise.id):
        return False
    inside = [x for x in ast.walk(source.tree) if isinstance(x, ast.FunctionDef)]
    # of a class, what surrounds the methods asked for is given
    own = [x for x in inside if x.name in (exercise.methods or [exercise.name])]
    statements = [y for x in own for y in ast.walk(x) if isinstance(y, ast.stmt)]
    docstrings = [x for x in own if ast.get_docstring(x) is not None]
    return len(statements) - len(own) - len(docstrings) >= STATEMENTS


def _message(attempt: Attempt, judged: Verdict) -> str:
    error = judged.failure and judged.failure.error
    if not error or judged.status != "error":
        return judged.message
    parts = [sentence(judged.message)]
    if error.line:
        parts.append(f"Line {error.line}: {error.text}.")
    if error.type == "NameError" and attempt.source:
        parts += _not_there(attempt.source, error.message)
    return " ".join(parts)


def _properties(judged: Verdict, worth: float) -> list[PropertyResult]:
    return [
        {"sentence": sentence, "points": rounded(worth * points), "held": held}
        for sentence, points, held in judged.properties
    ]


def _case(judged: Verdict) -> Case | None:
    # a stranger's result may be anything: what cannot be shown is left out
    with contextlib.suppress(*OF_STRANGE_VALUES):
        if shown := failing_case(judged):
            heading, rows = shown
            return {"heading": heading, "values": {label: block(value) for label, value in rows}}
    return None


def _not_there(source: Source, message: str) -> list[str]:
    """Say of a name that an import should have given, why it has not."""
    return [
        f"`{given.name}` is of {given.target}, which is not to be had here: an answer stands on "
        "its own notebook and on the components of earlier lessons."
        for given in names_in(source, {}).imports
        if f"'{given.name}'" in message
    ]


def main() -> int:
    """Judge what comes on standard input until it ends."""
    torch.set_num_threads(1)
    if sys.platform == "linux":
        from course_lib.grading.judging.inside.confinement import die_with_parent

        die_with_parent()
    # what anything else prints is no entry
    replies, sys.stdout = sys.stdout, sys.stderr
    with Judge(Rules(**json.loads(sys.stdin.readline()))) as judge:
        if not _limited():
            print(
                f"the memory of processes is limited here (`ulimit -v`): {MEMORY // 2**30} GiB "
                "are needed beside what Python and torch take.",
                file=sys.stderr,
            )
            return Ending.NO_LEVEL
        print(READY, file=replies, flush=True)
        try:
            for line in sys.stdin:
                # the signal ends this process; a sandbox inherits no timer
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                entry = judge.entry(base64.b64decode(json.loads(line)))
                print(json.dumps(entry), file=replies, flush=True)
        except NoIsolation as error:
            print(error, file=sys.stderr)
            return Ending.NO_LEVEL
        except MemoryError:
            return Ending.NO_MEMORY
    return 0


def _limited() -> bool:
    """Bound what this process takes, where the system tells how much that is now.

    Return False where the system's own limit is lower.
    """
    if not (size := Path("/proc/self/statm")).exists():
        return True
    import resource  # which Windows does not have

    used = int(size.read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if resource.RLIM_INFINITY != most < used + MEMORY:
        return False
    # a sandbox inherits it, and replaces it by its own
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, most))
    return True


if __name__ == "__main__":
    ending = main()
    sys.stderr.flush()
    os._exit(ending)  # all is said and closed, and torch takes half a second to take itself down
