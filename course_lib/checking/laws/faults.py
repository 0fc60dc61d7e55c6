"""Faults to be found: an exercise's reference in single steps, with one of them wrong.

Each is one of the `edits` that the laws have proven to be seen. Of those that fail, the ones are
left that are alike for whoever looks for them: one line differs, nothing is raised that would name
it, no known mistake says what it is, and about as many cases fail as by the others.
"""

import ast
import difflib
import statistics
from dataclasses import dataclass, replace
from functools import cache

from course_lib.answers.answer import InProcess
from course_lib.answers.source import Source, find_source, source_of
from course_lib.answers.watch import fresh_settings
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain.known_mistakes import diagnosis
from course_lib.checking.laws.edits import edits
from course_lib.checking.laws.laws import defined
from course_lib.checking.laws.page_distance import ROOM, tokens, without_texts
from course_lib.checking.laws.single_steps import single_steps
from course_lib.checking.likeness import structure
from course_lib.checking.trial import AnswerRun, cases, same_reply
from course_lib.checking.verdict import judge

SEED = 0  # of the inputs that tell which faults are alike
FEWEST = 3  # faults of an exercise that is worth a page
# for a case; some edits never come to an end, and by a clock each machine would have other faults
LARGEST, LONGEST = 1_000_000, 10_000  # numbers of a tensor, operations of torch
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
    if min(map(_length, public)) < 2 * ROOM:
        raise NoFaults("its answer is so short that it is as quickly written anew")
    if judge(exercise, InProcess(defined(exercise, right))).status != "passed":
        raise NoFaults("its answer cannot be taken apart")
    found = [
        Fault(new, old, source, *seen)
        for name, source in edits(exercise)
        if name not in exercise.equivalent
        and (seen := _seen(exercise, single_steps(exercise, source), right))
        for old, _, new in [name.partition(" -> ")]
    ]
    usual = statistics.median(x.failing for x in found) if found else 0
    alike = [x for x in found if abs(x.failing - usual) <= ALIKE * x.cases]
    if len(alike) < FEWEST:
        raise NoFaults(f"it has {len(alike)} faults that are alike")
    return alike


def _seen(exercise: Exercise, page: str, right: str) -> tuple[int, int] | None:
    """Return how many cases fail, and how many there are, if one may be asked to find the fault."""
    line = _line_apart(page, right)
    if not line or sum(map(len, tokens(line))) > ROOM:
        return None
    answer = InProcess(defined(exercise, page))
    asked, failing = cases(exercise, SEED), 0
    for question in asked:
        reply = answer.run(replace(question.request, max_numel=LARGEST, max_calls=LONGEST))
        if reply.error:
            return None
        failing += not same_reply(reply, question.expected, exercise)
    tried = AnswerRun(exercise, answer, SEED)
    return None if not failing or diagnosis(tried, SEED) else (failing, len(asked))


def _line_apart(page: str, right: str) -> str | None:
    """Return the line in which a page differs from the right text, whatever variables are called.

    Where the page lacks it, it is that of the right text. None where there are several.
    """
    texts = [without_texts(x).splitlines() for x in (page, right)]
    first, second = (_by_line("\n".join(x)) for x in texts)
    blocks = difflib.SequenceMatcher(None, [*first.values()], [*second.values()], False)
    match [x for x in blocks.get_opcodes() if x[0] != "equal"]:
        case [(_, start, end, there, then)] if max(end - start, then - there) == 1:
            number = [*second][there] if then > there else [*first][start]
            return texts[then > there][number - 1]
    return None


def _by_line(text: str) -> dict[int, tuple[str, ...]]:
    """Map each line to the structure of what begins there."""
    lines: dict[int, tuple[str, ...]] = {}
    for word, line in structure(Source(text)):
        lines[line] = (*lines.get(line, ()), word)
    return lines


def _length(source: str) -> int:
    """Count the characters of a function's statements, or of those of a class's methods."""
    functions = (x for x in ast.walk(ast.parse(source)) if isinstance(x, ast.FunctionDef))
    bodies = ("\n".join(map(ast.unparse, x.body)) for x in functions)
    return sum(len(y) for x in bodies for y in tokens(without_texts(x)))


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
