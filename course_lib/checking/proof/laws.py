"""The laws that make a check worth trusting, held against every exercise.

1 the stub is "not attempted yet";  2 the reference passes;  3 every known mistake fails with its
own sentence;  4 every alternative passes;  5 every mechanical mutant and every one-place edit of
the reference fails, and constants earn nothing;  6 hints hold no line of the reference;  8 the
verdict is the same for every seed.  (7, each exercise stands in one lesson: a law of the lessons.)
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from course_lib.answers.answer import Description, InProcess, Reply, Request
from course_lib.answers.source import define, source_of, stub
from course_lib.checking.exercise import Exercise
from course_lib.checking.proof.edits import edits
from course_lib.checking.proof.mutants import mutants
from course_lib.checking.trial import attempt
from course_lib.checking.verdict import judge


@dataclass
class Proof:
    """How many answers an exercise was tried on, and every law that one of them broke."""

    mistakes: int
    alternatives: int
    mutants: int
    edits: int
    violations: list[str]


def prove(exercise: Exercise, seeds: tuple[int, ...] = (0, 1, 2)) -> Proof:
    """Hold an exercise against all of its laws, for each seed of the inputs."""
    first = attempt(exercise, InProcess(exercise.reference), 0)[0].calls[0]
    reply = replace(first.reply, inputs=first.case.inputs)
    edited, unseen = _edits(exercise)
    violations = [*_texts(exercise), *unseen]
    violations += [violation for seed in seeds for violation in _verdicts(exercise, seed)]
    return Proof(
        mistakes=len(exercise.mistakes),
        alternatives=len(exercise.alternatives),
        mutants=len(mutants(exercise, reply)),
        edits=edited,
        violations=violations,
    )


def _texts(exercise: Exercise) -> Iterator[str]:
    if len(exercise.hints) < 2:
        yield "has fewer than two hints"
    if len(exercise.mistakes) < 3:
        yield "has fewer than three known mistakes"
    if not exercise.alternatives:
        yield "has no alternative"
    lines = [line.strip() for line in source_of(exercise.reference).splitlines()]
    code = [line for line in lines if len(line) > 8 and not line.startswith(("#", '"""'))]
    for hint in exercise.hints:
        yield from (f"a hint holds a line of the reference: {x}" for x in code if x in hint)


def _edits(exercise: Exercise) -> tuple[int, list[str]]:
    """Count the edits that fail as they should, and name those that do not."""
    caught, passed = 0, set()
    for edit, source in edits(exercise):
        answer = _Behaviour(_defined(exercise, source), watched=False)
        if judge(exercise, answer).status == "passed":
            passed.add(edit)
        else:
            caught += 1
    unseen = passed.symmetric_difference(exercise.equivalent)
    return caught, [f"an edit passes, or does not as it is said to: {edit}" for edit in unseen]


def _verdicts(exercise: Exercise, seed: int) -> Iterator[str]:
    def expect(status: str, answer: InProcess, who: str, message: str | None = None):
        verdict = judge(exercise, answer, seed)
        if verdict.status != status or message not in (None, verdict.message):
            yield f"{who} (seed {seed}) is {verdict.status!r}: {verdict.message}"

    empty = stub(exercise.reference, exercise.method)
    yield from expect("not attempted", InProcess(_defined(exercise, empty)), "the stub")
    written = source_of(exercise.reference)
    yield from expect("passed", InProcess(_defined(exercise, written)), "the reference")
    for mistake in exercise.mistakes:
        answer = _Behaviour(mistake.answer, watched=False)
        yield from expect("known mistake", answer, mistake.name, mistake.sentence)
    for alternative in exercise.alternatives:
        yield from expect("passed", _Behaviour(alternative), alternative.__name__)
    reply = attempt(exercise, InProcess(exercise.reference), seed)[0].calls[0].reply
    for name, mutant in mutants(exercise, reply).items():
        verdict = judge(exercise, _Behaviour(mutant, watched=False), seed)
        if verdict.status == "passed":
            yield f"the mutant {name!r} (seed {seed}) passes"
        if name.startswith("only") and verdict.points:
            held = [sentence for sentence, _, held in verdict.properties if held]
            yield f"{name} (seed {seed}) earn {verdict.points} points: {held}"


def _defined(exercise: Exercise, source: str) -> Callable:
    """Define an answer from its source, with the names that the reference's module knows."""
    namespace = dict(vars(importlib.import_module(exercise.reference.__module__)))
    del namespace[exercise.name]
    return define(source, exercise.name, namespace | {"__name__": "__answer__"})


class _Behaviour(InProcess):
    """An answer known by what it does alone.

    The bank's answers are often written as a change to the reference, which a learner's may not
    call; so their source is not read, and mistakes and mutants (not `watched`) may call anything.
    """

    def __init__(self, answer: Callable, watched: bool = True):
        super().__init__(answer)
        self._watched = watched

    def describe(self) -> Description:
        return replace(super().describe(), source=None)

    def run(self, request: Request) -> Reply:
        return super().run(request if self._watched else replace(request, watch=()))
