"""The laws that make a check worth trusting, held against every exercise.

1. The stub is "not attempted yet"; one that is handed out broken differs from the reference in a
   line.
2. The reference passes.
3. Every known mistake fails with its own sentence, and does the same when it is tried again.
4. A known mistake raises no exception but those that it declares, and never a NameError.
5. Every alternative passes.
6. Every mechanical mutant fails, but for those listed as `equivalent`.
7. Every one-place edit of the reference's steps fails, but for those listed as `equivalent`.
8. The reference is right for large numbers too, where it computes an exponential, or its exercise
   says in `small_only` why it is not asked.
9. There are two hints, three known mistakes and an alternative; no hint holds a line of the
   reference.
10. A guess earns nothing: zeros, ones, a unit matrix, one of the arguments given back.
11. Knowing by heart what is asked with other seeds, four times as many, never gives every right
    result, and a quarter of the points at most.
12. The cases have every size that the signature allows: see `sizes`.
13. No case is one that the reference refuses: guards are given in the stub, and not asked. None
    has a result that is no data, of which nobody knows whether another is equal to it. Its name
    is understood alone, as a panel has it.
14. What is made by machine is named as no known mistake that gives other results.
15. No wrong answer is near: it differs by `FAR` tolerances somewhere, so that it fails on every
   processor, whatever its last digits are. A right one stays within half of the tolerance.
16. A right answer passes whatever torch's settings are in the process that judges it, and none of
   them is another afterwards: see `SETTINGS`.
17. Every clause of the statement is asked: see `clauses`. What is forbidden stands in the stub.
18. All this holds for every seed.

That each exercise stands in one lesson is a law of the lessons.
"""

import contextlib
import difflib
import importlib
import math
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from course_lib.answers.answer import Description, Foreign, InProcess, Reply, tensors
from course_lib.answers.source import define, source_of
from course_lib.answers.watch import settings
from course_lib.checking.exercise import EDGES, Exercise, Mistake
from course_lib.checking.explain.known_mistakes import (
    diagnosis,
    equal_sizes,
    known,
    same_rows,
    try_mistake,
)
from course_lib.checking.laws.clauses import untied
from course_lib.checking.laws.edits import edits
from course_lib.checking.laws.mutants import by_heart, guessing, mutants
from course_lib.checking.laws.sizes import missing_sizes
from course_lib.checking.trial import (
    AnswerRun,
    cases,
    drawn,
    large,
    max_points,
    request_for,
    same_reply,
)
from course_lib.checking.verdict import earned, judge, refusal

LEANS = re.compile(r"^(nor|and|or)\b|^the same( two)?,|^(many more|more( \w+)?|another)$")
# of a name that is not there: no wrong answer is wrong in this way on purpose
NEVER = ("NameError", "UnboundLocalError")
NEW = 1000  # seeds from here on are those of no other law
# in tolerances: between these, another processor's rounding could turn a verdict round
NEAR, FAR = 0.5, 100.0


@contextlib.contextmanager
def _put(put: Callable[[Any], None], value: Any, usual: Any) -> Iterator[None]:
    put(value)
    try:
        yield
    finally:
        put(usual)


# what a learner's kernel may have set; the meta device is a second one that every machine has
SETTINGS: dict[str, Callable[[], contextlib.AbstractContextManager]] = {
    "another default device": partial(_put, torch.set_default_device, "meta", None),
    "a block on another device": lambda: torch.device("meta"),
    "bfloat16 as default": partial(_put, torch.set_default_dtype, torch.bfloat16, torch.float32),
    "float64 as default": partial(_put, torch.set_default_dtype, torch.float64, torch.float32),
    "no gradients": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@dataclass
class Proof:
    """How many answers an exercise was tried on, and every law that one of them broke."""

    mistakes: int
    alternatives: int
    mutants: int
    edits: int
    violations: list[str]


def prove(exercise: Exercise, seeds: tuple[int, ...] = (0,)) -> Proof:
    """Hold an exercise against its laws, the 4th excepted, for each seed of the inputs."""
    violations = [*_texts(exercise), *untied(exercise), *_elsewhere(exercise, seeds)]
    violations += [*_large_numbers(exercise), *missing_sizes(exercise), *_refused(exercise)]
    violations += _by_heart(exercise, seeds)
    for seed in seeds:
        for law in (_verdicts, _mistakes, _made_by_machine, _guesses):
            violations += law(exercise, seed)
    return Proof(*counts(exercise), violations)


def counts(exercise: Exercise) -> tuple[int, int, int, int]:
    """Count an exercise's mistakes, alternatives, mutants, and the edits that have to fail."""
    return (
        len(exercise.mistakes),
        len(exercise.alternatives),
        len(mutants(exercise, _first(exercise, 0))),
        sum(edit not in exercise.equivalent for edit, _ in edits(exercise)),
    )


def _texts(exercise: Exercise) -> Iterator[str]:
    if len(exercise.hints) < 2:
        yield "has fewer than two hints"
    if len(exercise.mistakes) < 3:
        yield "has fewer than three known mistakes"
    yield from (f"{x.name} has no sentence" for x in exercise.mistakes if not x.sentence)
    if not exercise.alternatives:
        yield "has no alternative"
    yield from (f"there is no edge {x!r}" for x in exercise.no_edge if x not in EDGES)
    if exercise.broken and len(_changed(exercise)) != 1:
        yield f"what is handed out differs in more than one line, or none: {_changed(exercise)}"
    lines = [line.strip() for line in source_of(exercise.reference).splitlines()]
    code = [line for line in lines if len(line) > 8 and not line.startswith(("#", '"""'))]
    for hint in exercise.hints:
        yield from (f"a hint holds a line of the reference: {x}" for x in code if x in hint)


def _changed(exercise: Exercise) -> list[str]:
    """List the lines of what is handed out that the reference does not have."""
    right, broken = source_of(exercise.reference).splitlines(), exercise.stub.splitlines()
    changed = [x[2:].strip() for x in difflib.ndiff(right, broken) if x.startswith("+ ")]
    return [line for line in changed if not line.startswith("#")]


def _elsewhere(exercise: Exercise, seeds: tuple[int, ...]) -> Iterator[str]:
    """Judge right answers where torch has other settings: for each seed another one of both."""
    names, answers = sorted(SETTINGS), (exercise.reference, *exercise.alternatives)
    for seed in seeds:
        name = names[(zlib.crc32(exercise.id.encode()) + seed) % len(names)]
        answer = answers[seed % len(answers)]
        with SETTINGS[name]():
            before = settings()
            # with numbers that nobody has drawn yet
            verdict = judge(exercise, Behaviour(answer), NEW + seed)
            if verdict.status != "passed":
                yield f"{answer.__name__} with {name} is {verdict.status}: {verdict.message}"
            if settings() != before:
                yield f"{name} became {settings()}"


def _verdicts(exercise: Exercise, seed: int) -> Iterator[str]:
    def expect(status: str, answer: InProcess, who: str):
        verdict = judge(exercise, answer, seed)
        if verdict.status != status:
            yield f"{who} (seed {seed}) is {verdict.status!r}: {verdict.message}"

    begun = InProcess(defined(exercise, exercise.stub))
    yield from expect("not attempted", begun, "the stub")
    written = source_of(exercise.reference)
    yield from expect("passed", InProcess(defined(exercise, written)), "the reference")
    for alternative in exercise.alternatives:
        if (apart := farthest(_tried(exercise, alternative, seed))) > NEAR:
            yield f"{alternative.__name__} (seed {seed}) differs by {apart:.2g} tolerances"


def _mistakes(exercise: Exercise, seed: int) -> Iterator[str]:
    for mistake in exercise.mistakes:
        who, tried = f"{mistake.name} (seed {seed})", known(exercise, mistake, seed)
        description = Behaviour(mistake.answer).describe()
        if refused := refusal(exercise, description, [next(tried.calls(0))]):
            yield f"{who} is {refused[0]!r}: {refused[1]}"
        elif (apart := farthest(tried, FAR)) < FAR:
            yield f"{who} passes, or nearly: it differs by {apart:.2g} tolerances"
        elif (other := diagnosis(tried, seed) or mistake).sentence != mistake.sentence:
            yield f"{who} is taken for {other.name}: {other.sentence}"
        elif not _does_it_again(mistake, tried, seed):
            yield f"{who} does something else when it is tried again"


def _large_numbers(exercise: Exercise) -> Iterator[str]:
    """Name the cases whose large numbers the reference itself does not stand."""
    for question in large(exercise, 0):
        error, expected = question.expected.error, question.expected
        numbers = [x for _, x in tensors((expected.output, expected.gradients or {}))]
        if error or not all(x.isfinite().all() for x in numbers):
            yield f"large numbers break the reference: {question.case.name}; say so in small_only"


def _refused(exercise: Exercise) -> Iterator[str]:
    reference = InProcess(exercise.reference)
    for case in drawn(exercise, 0):
        if LEANS.search(case.name):
            yield f"a case whose name leans on that of another, {case.name}"
        reply = reference.run(request_for(exercise, case, 0))
        if reply.error:
            yield f"the reference refuses a case, {case.name}: {reply.error.message}"
        if no_data := [x.type for x in _inside(reply.output) if isinstance(x, Foreign)]:
            yield f"a case that any {no_data[0]} would pass, {case.name}"


def _inside(value: Any) -> Iterator[Any]:
    """Yield what a value consists of, however deep."""
    if isinstance(value, tuple | list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _inside(item)
    else:
        yield value


def exceptions(exercise: Exercise) -> Iterator[str]:
    """Name each exception of a known mistake that is not foreseen: is the bank's entry broken?"""
    for mistake in exercise.mistakes:
        foreseen = {kind.__name__ for kind in mistake.raises}
        for kind, message in raised(exercise, mistake).items():
            if kind in NEVER or kind not in foreseen:
                yield f"{mistake.name} raises a {kind} that nobody foresaw: {message}"


def raised(exercise: Exercise, mistake: Mistake) -> dict[str, str]:
    """Map each exception that a mistake raises to its message, where the reference raises none.

    Asked are the cases and the exercise's own properties, with the inputs of the first seed.
    """
    tried, messages = known(exercise, mistake, 0), {}
    own = range(len(tried) - len(exercise.properties), len(tried))
    for place in (0, *own):
        for call in tried.calls(place):
            error = call.reply.error
            if error:
                messages.setdefault(error.type, error.message)
    return messages


def _does_it_again(mistake: Mistake, tried: AnswerRun, seed: int) -> bool:
    """Return True if a mistake, tried anew, is the same up to its first failing call."""
    again = try_mistake(tried.exercise, mistake, seed)
    for place in range(len(tried)):
        for a, b in zip(tried.calls(place), again.calls(place), strict=False):
            if not same_reply(b.reply, a.reply, tried.exercise, a.scale):
                return False
            if not a.held:
                return True
        if not tried.holds(place):
            return not again.holds(place)
    return False


def _made_by_machine(exercise: Exercise, seed: int) -> Iterator[str]:
    equivalent = set()
    for name, tried in made_by_machine(exercise, seed):
        who, apart = f"{name!r} (seed {seed})", farthest(tried, FAR)
        if apart <= 1:
            equivalent.add(name)
        elif apart < FAR:
            yield f"{who} nearly passes: it differs by {apart:.2g} tolerances"
        elif (found := diagnosis(tried, seed)) and _is_other(tried, found, seed):
            yield f"{who} is taken for {found.name}: {found.sentence}"
    for name in equivalent.symmetric_difference(exercise.equivalent):
        yield f"{name!r} (seed {seed}) passes, or does not as it is said to"


def made_by_machine(exercise: Exercise, seed: int) -> Iterator[tuple[str, AnswerRun]]:
    """Yield each mutant and each one-place edit of a reference, to be tried."""
    for name, mutant in mutants(exercise, _first(exercise, seed)).items():
        yield name, _tried(exercise, mutant, seed)
    for name, source in edits(exercise):
        yield name, _tried(exercise, defined(exercise, source), seed)


def _is_other(tried: AnswerRun, mistake: Mistake, seed: int) -> bool:
    """Return True if an answer gave other results than the mistake that it was named as."""
    exercise, wrong = tried.exercise, known(tried.exercise, mistake, seed)
    asked = cases(exercise, seed)
    failing = [q for q in asked if not same_reply(tried.reply(q), q.expected, exercise)]
    if all(tried.reply(q).error for q in failing):
        asked = equal_sizes(exercise, seed)
    return not all(
        same_reply(x, y, exercise) or same_rows(x.output, y.output, q.expected.output, exercise)
        for x, y, q in ((tried.reply(q), wrong.reply(q), q) for q in asked)
    )


def _guesses(exercise: Exercise, seed: int) -> Iterator[str]:
    for name, guess in guessing(exercise).items():
        tried = _tried(exercise, guess, seed)
        # where no case is more than guessed, nothing counts: the other properties need no trial
        if tried.earns() and (held := [x.sentence for x in earned(tried) if x.held]):
            yield f"{name} (seed {seed}) earns points: {held}"


def _by_heart(exercise: Exercise, seeds: tuple[int, ...]) -> Iterator[str]:
    answer = by_heart(exercise, range(100, 100 + 4 * len(seeds)))
    for seed in seeds:
        tried = _tried(exercise, answer, seed)
        points = sum(x.points for x in earned(tried) if x.held)
        if tried.holds(0) or 4 * points > max_points(exercise, seed):
            yield f"knowing other seeds by heart earns {points} points (seed {seed})"


def _first(exercise: Exercise, seed: int) -> Reply:
    """Return the reference's reply to the first case, with the inputs that it was given."""
    first = cases(exercise, seed)[0]
    return replace(first.expected, inputs=first.case.inputs)


def _tried(exercise: Exercise, answer: Callable, seed: int) -> AnswerRun:
    return AnswerRun(exercise, InProcess(answer), seed)


def defined(exercise: Exercise, source: str) -> Callable:
    """Define an answer from its source, with the names that the reference's module knows."""
    namespace = dict(vars(importlib.import_module(exercise.reference.__module__)))
    del namespace[exercise.name]
    return define(source, exercise.name, namespace | {"__name__": "__answer__"})


class Behaviour(InProcess):
    """An answer known by what it does alone.

    The bank's answers are often written as a change to the reference, which a learner's may not
    call; so their source is not read.
    """

    def describe(self) -> Description:
        """Tell nothing but what kind of thing it is."""
        return Description(self.kind())


def farthest(tried: AnswerRun, enough: float = math.inf) -> float:
    """Return the largest deviation of any call, or the first that is `enough`.

    A law of the exercise's own holds or does not: there is nothing between.
    """
    largest, own = 0.0, len(tried) - len(tried.exercise.properties)
    for place in range(own):
        for call in tried.calls(place):
            largest = max(largest, call.deviation)
            if largest >= enough:
                return largest
    return largest if all(map(tried.holds, range(own, len(tried)))) else math.inf
