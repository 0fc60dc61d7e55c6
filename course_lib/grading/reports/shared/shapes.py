"""Answers that share structure, whatever their names, comments, types and layout.

A fingerprint is `LENGTH` nodes of the syntax tree in reading order, local names alike; answers are
as similar as the fingerprints that both have (Schleimer et al. 2003, with no winnowing: answers
are short). What the library's own answer has, or a good part of the class, says nothing.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import NamedTuple

from course_lib.answers.source import as_source
from course_lib.checking import catalogue
from course_lib.checking.likeness import own_answers, structure
from course_lib.grading.marks.schema import Results, SubmissionResult
from course_lib.grading.reports.shared.statistics import graded

LENGTH = 10
FEWEST, SHARE = 12, 0.6  # fingerprints that two similar answers share, of those of the shorter one
COMMON = 0.2  # of the class: what more have than this is no likeness
FEW, MANY = 5, 40  # students who make a small class's share, and at most

Fingerprints = dict[tuple[str, ...], set[int]]  # with the lines where they are


class Side(NamedTuple):
    """One of two answers, and its lines that are in the other one as well."""

    source: str
    lines: set[int]


class Similar(NamedTuple):
    """Two answers to an exercise: how many fingerprints they share, and what share of the fewer."""

    exercise: str
    shared: int
    share: float
    sides: list[Side]


def similar(results: Results) -> dict[tuple[int, int], list[Similar]]:
    """Return what two submissions share, by their places among the graded; the most first."""
    submissions, pairs = graded(results), defaultdict(list)
    for exercise in dict.fromkeys(name for x in submissions for name in x["exercises"]):
        for pair, found in _of_exercise(exercise, submissions):
            pairs[pair].append(found)
    order = sorted(pairs, key=lambda pair: (-sum(x.shared for x in pairs[pair]), pair))
    return {pair: pairs[pair] for pair in order}


def _of_exercise(
    exercise: str, submissions: list[SubmissionResult]
) -> Iterator[tuple[tuple[int, int], Similar]]:
    given, own = _given(exercise), {}
    for place, submission in enumerate(submissions):
        source = submission["exercises"].get(exercise, {}).get("source", "")
        found = fingerprints(source)
        own[place] = {print_: lines for print_, lines in found.items() if print_ not in given}
    holders = defaultdict(list)
    for place, prints in own.items():
        for print_ in prints:
            holders[print_].append(place)
    most = min(max(COMMON * len(submissions), FEW), MANY)
    few = {print_: places for print_, places in holders.items() if len(places) <= most}
    shared = Counter(pair for places in few.values() for pair in combinations(places, 2))
    for (a, b), n in shared.items():
        share = n / min(sum(print_ in few for print_ in own[x]) for x in (a, b))
        if n >= FEWEST and share >= SHARE:
            both = [print_ for print_ in own[a] if print_ in own[b] and print_ in few]
            sides = (
                Side(
                    submissions[place]["exercises"][exercise].get("source", ""),
                    {line for print_ in both for line in own[place][print_]},
                )
                for place in (a, b)
            )
            yield (a, b), Similar(exercise, n, share, list(sides))


@cache
def fingerprints(source: str) -> Fingerprints:
    """Return the fingerprints of a source, with their lines; none of what is no Python."""
    nodes = structure(as_source(source))
    words, lines = [word for word, _ in nodes], [line for _, line in nodes]
    found: Fingerprints = defaultdict(set)
    for place, print_ in enumerate(zip(*(words[n:] for n in range(LENGTH)), strict=False)):
        found[print_].update(lines[place : place + LENGTH])
    return dict(found)


def own_lines(source: str) -> str:
    """Return an answer without its imports, docstrings and empty lines."""
    left_out: set[int] = set()
    try:
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant(str())):
                    left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass  # then there is all of it
    lines = enumerate(source.split("\n"), start=1)
    return "\n".join(line for n, line in lines if n not in left_out and line.strip())


@cache
def _given(exercise_id: str) -> set[tuple[str, ...]]:
    """Return the fingerprints that the library's own answers have, the given lines among them."""
    try:
        sources = own_answers(exercise_id)
    except catalogue.UnknownExercise:
        return set()
    return {print_ for source in sources for print_ in fingerprints(source)}
