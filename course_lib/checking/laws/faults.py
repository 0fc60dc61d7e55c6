"""Faults to be found: an exercise's reference in single steps, with one of them wrong.

Each is one of the `edits` that the laws have proven to be seen. Of those that fail, the ones are
left that are alike for whoever looks for them: one line differs, nothing is raised that would name
it, no known mistake says what it is, and about as many cases fail as by the others.
"""

import ast
import difflib
import statistics
from dataclasses import dataclass
from functools import cache

from course_lib.answers.answer import InProcess
from course_lib.answers.settings import fresh_settings
from course_lib.answers.source import find_source, source_of
from course_lib.checking.exercise import Exercise
from course_lib.checking.laws.edits import edits
from course_lib.checking.laws.laws import defined
from course_lib.checking.laws.single_steps import single_steps
from course_lib.checking.likeness import structure
from course_lib.checking.telling.known_mistakes import diagnosis
from course_lib.checking.trying.trial import AnswerRun
from course_lib.checking.verdict import judge

SEED = 0  # of the inputs that tell which faults are alike
FEWEST = 3  # faults of an exercise that is worth a page
SHORTEST = 120  # characters of a reference: less is written anew as quickly as it is mended
ALIKE = 0.25  # of all cases: so far from the median fault


class NoFaults(Exception):
    """Why an exercise has no page of its own; the message is the end of a sentence."""


@dataclass(frozen=True)
class Fault:
    """One place of a reference that is wrong: "a - b" for "a + b", and how many cases fail."""

    wrong: str
    right: str
    source: str
    failing: int
    cases: int

    def page(self, exercise: Exercise, salt: str) -> str:
        """Return what is handed out to one student."""
        return single_steps(exercise, self.source, salt)


@cache
@fresh_settings()
def faults(exercise: Exercise) -> list[Fault]:
    """List the faults of an exercise that are alike. Raises NoFaults."""
    reference = source_of(exercise.reference)
    if len(_without_texts(reference)) < SHORTEST:
        raise NoFaults("its answer is too short")
    right = single_steps(exercise, reference)
    if judge(exercise, InProcess(defined(exercise, right))).status != "passed":
        raise NoFaults("its answer cannot be taken apart")
    found = []
    for name, source in edits(exercise):
        if name not in exercise.equivalent and (fault := _fault(exercise, name, source, right)):
            found.append(fault)
    usual = statistics.median(x.failing for x in found) if found else 0
    alike = [x for x in found if abs(x.failing - usual) <= ALIKE * x.cases]
    if len(alike) < FEWEST:
        raise NoFaults(f"it has {len(alike)} faults that are alike")
    return alike


def _fault(exercise: Exercise, name: str, source: str, right: str) -> Fault | None:
    """Try an edit, and return the fault that it is, if one may be asked to find it."""
    page = single_steps(exercise, source)
    if _lines_apart(page, right) > 1:
        return None
    tried = AnswerRun(exercise, InProcess(defined(exercise, page)), SEED)
    calls = [*tried.calls(0)]
    failing = sum(not call.held for call in calls)
    if not failing or any(call.reply.error for call in calls) or diagnosis(tried, SEED):
        return None
    old, _, new = name.partition(" -> ")
    return Fault(new, old, source, failing, len(calls))


def _lines_apart(one: str, other: str) -> int:
    """Count the lines in which two texts differ, whatever their variables are called."""
    first, second = (_by_line(structure(ast.unparse(ast.parse(x)))) for x in (one, other))
    blocks = difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for kind, a, b, c, d in blocks if kind != "equal")


def _by_line(nodes: list[tuple[str, int]]) -> list[tuple[str, ...]]:
    lines: dict[int, list[str]] = {}
    for word, line in nodes:
        lines.setdefault(line, []).append(word)
    return [*map(tuple, lines.values())]


def of_its_own(exercise: Exercise, page: str) -> tuple[int, int]:
    """Count the lines of a page that no public answer has, and all of them.

    Public are the reference, the alternatives and the known mistakes. What a stub gives, such as
    the signature, is not counted.
    """
    answers = [exercise.reference, *exercise.alternatives, *(x.answer for x in exercise.mistakes)]
    public = {y for x in answers for y in _written(find_source(x) or "")}
    given = {line for line in _written(exercise.stub if not exercise.broken else "")}
    own = [line for line in _written(page) if line not in given]
    return sum(line not in public for line in own), len(own)


def _written(source: str) -> list[str]:
    """List the lines of a source as they are written, and as Python itself would write them."""
    return [x.strip() for x in _without_texts(source).splitlines() if x.strip()]


def _without_texts(source: str) -> str:
    """Write a source without its docstrings, comments and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
