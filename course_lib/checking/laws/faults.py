"""Faults to be found: an exercise's reference in single steps, with one of them wrong.

Each is one of the `edits` that the laws have proven to be seen. Of those that fail, the ones are
left that are alike for whoever looks for them: one line differs, nothing is raised that would name
it, no known mistake says what it is, and about as many cases fail as by the others.
"""

import ast
import difflib
import io
import statistics
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from course_lib.answers.answer import InProcess
from course_lib.answers.process import ChildProcess
from course_lib.answers.settings import fresh_settings
from course_lib.answers.source import find_source, source_of
from course_lib.checking.exercise import Exercise
from course_lib.checking.laws.edits import edits
from course_lib.checking.laws.laws import defined
from course_lib.checking.laws.single_steps import single_steps
from course_lib.checking.likeness import structure
from course_lib.checking.notebook.solution_text import standalone
from course_lib.checking.telling.known_mistakes import diagnosis
from course_lib.checking.trying.trial import AnswerRun, cases, same_reply
from course_lib.checking.verdict import judge

SEED = 0  # of the inputs that tell which faults are alike
FEWEST = 3  # faults of an exercise that is worth a page
SECONDS = 2  # for a case
ROOM = 40  # characters: no fault takes more to mend, and every public answer differs by twice that
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
    right = single_steps(exercise, reference)
    public = [find_source(x) or "" for x in (exercise.reference, *exercise.alternatives)]
    if min(apart(right, _named(x, exercise.name)) for x in public) <= 2 * ROOM:
        raise NoFaults("its answer is so short that it is as quickly written anew")
    if judge(exercise, InProcess(defined(exercise, right))).status != "passed":
        raise NoFaults("its answer cannot be taken apart")
    # some of them never come to an end: their cases are tried in a process of its own
    with ChildProcess(SECONDS) as child:
        found = [
            Fault(new, old, source, *seen)
            for name, source in edits(exercise)
            if name not in exercise.equivalent
            and (seen := _seen(exercise, single_steps(exercise, source), right, child))
            for old, _, new in [name.partition(" -> ")]
        ]
    usual = statistics.median(x.failing for x in found) if found else 0
    alike = [x for x in found if abs(x.failing - usual) <= ALIKE * x.cases]
    if len(alike) < FEWEST:
        raise NoFaults(f"it has {len(alike)} faults that are alike")
    return alike


def _seen(exercise: Exercise, page: str, right: str, child: ChildProcess) -> tuple[int, int] | None:
    """Return how many cases fail, and how many there are, if one may be asked to find the fault."""
    if _lines_apart(page, right) > 1:
        return None
    whole = standalone(exercise).replace(source_of(exercise.reference), page)
    child.hold(whole, exercise.name)
    asked, failing = cases(exercise, SEED), 0
    for question in asked:
        reply = child.run(question.request)
        if reply.error:
            return None
        failing += not same_reply(reply, question.expected, exercise)
    tried = AnswerRun(exercise, InProcess(defined(exercise, page)), SEED)
    return None if not failing or diagnosis(tried, SEED) else (failing, len(asked))


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


def apart(page: str, answer: str) -> int:
    """Count the characters of code in which an answer differs from its page.

    Imports, docstrings, comments, layout, and the order of definitions do not count.
    """
    try:
        first, second = [*_definitions(page)], [*_definitions(answer)]
    except (SyntaxError, ValueError, RecursionError, tokenize.TokenError):
        return len(answer)
    given = [x for x in second if x not in first]
    left = [x for x in first if x not in second]
    one, other = ([y for x in rest for y in _tokens(x)] for rest in (left, given))
    blocks = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return sum(
        max(len("".join(one[a:b])), len("".join(other[c:d])))
        for kind, a, b, c, d in blocks
        if kind != "equal"
    )


def _definitions(source: str) -> Iterator[str]:
    for statement in ast.parse(without_texts(source)).body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            yield ast.unparse(statement)


def _tokens(source: str) -> list[str]:
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return [x.string for x in found if x.string.strip()]


def _named(source: str, name: str) -> str:
    """Give the last definition of a source a name."""
    tree = ast.parse(source)
    for node in tree.body[-1:]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.name = name
    return ast.unparse(tree)


def of_its_own(exercise: Exercise, page: str) -> tuple[int, int]:
    """Count the lines of a page that no public answer has, and all of them.

    Public are the reference, the alternatives and the known mistakes. What a stub gives, such as
    the signature, is not counted.
    """
    answers = [exercise.reference, *exercise.alternatives, *(x.answer for x in exercise.mistakes)]
    public = {y for x in answers for y in _written(find_source(x) or "")}
    given = {*_written("" if exercise.broken else exercise.stub)}
    own = [line for line in _written(page) if line not in given]
    return sum(line not in public for line in own), len(own)


def _written(source: str) -> list[str]:
    """List the lines of a source as they are written, and as Python itself would write them."""
    return [x.strip() for x in without_texts(source).splitlines() if x.strip()]


def without_texts(source: str) -> str:
    """Write a source without its docstrings, comments and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
