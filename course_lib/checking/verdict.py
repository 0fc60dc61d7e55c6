"""From an answer's replies to a verdict: what holds, what does not, and which mistake it is."""

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from course_lib.answers.answer import Answer, Description, Error, InProcess
from course_lib.answers.source import is_stub, source_of
from course_lib.checking import forbidden_source
from course_lib.checking.exercise import Case, Exercise, Mistake
from course_lib.checking.trial import Call, Trial, attempt, same_reply

STUB = "Replace `raise NotImplementedError` by your own code."
Status = Literal["not attempted", "passed", "known mistake", "wrong", "error", "forbidden"]


@dataclass(frozen=True)
class Failure:
    """The smallest case that failed. `expected` is None where a law needs no one right result."""

    sentence: str
    case: Case
    got: Any
    expected: Any
    error: Error | None


@dataclass(frozen=True)
class Verdict:
    """What a check found. `properties` lists (sentence, points, held) in the order tried."""

    exercise: str
    status: Status
    points: int
    max_points: int
    message: str
    properties: tuple[tuple[str, int, bool], ...] = ()
    cases_held: int = 0
    cases: int = 0
    failure: Failure | None = None
    printed: str = ""


def max_points(exercise: Exercise, seed: int = 0) -> int:
    """Return the points of all properties of an exercise, the same for every seed."""
    return sum(trial.points for trial in _reference(exercise, seed))


def warm(exercise: Exercise, seed: int) -> None:
    """Ask the reference of an exercise now, so that its first verdict need not."""
    _reference(exercise, seed)


def untried(exercise: Exercise, status: Status, message: str, seed: int = 0) -> Verdict:
    """Return the verdict on an answer that was not tried, or whose trial does not count."""
    return Verdict(exercise.id, status, 0, max_points(exercise, seed), message)


def sentence(text: str) -> str:
    """End a text with a full stop, unless it ends as a sentence does."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def judge(exercise: Exercise, answer: Answer, seed: int = 0) -> Verdict:
    """Try an answer on every property of an exercise. Never raises for what the answer does."""
    description = answer.describe()
    if message := _not_an_answer(exercise, description):
        return untried(exercise, "error", message, seed)
    if description.source and is_stub(description.source, exercise.method):
        return untried(exercise, "not attempted", STUB, seed)
    named = description.source and forbidden_source.in_source(
        description.source, description.aliases or {}, exercise.forbidden
    )
    if named and not _is_solution(exercise, description):
        return untried(exercise, "forbidden", _forbidden(exercise, named[0]), seed)

    trials = attempt(exercise, answer, seed)
    calls = [call for trial in trials for call in trial.calls]
    called = [name for call in calls for name in call.reply.forbidden]
    if called and not _is_solution(exercise, description):
        return untried(exercise, "forbidden", _forbidden(exercise, called[0]), seed)
    if _unfinished(calls[0], exercise, description):
        return untried(exercise, "not attempted", STUB, seed)

    passed = all(trial.held for trial in trials)
    failure = None if passed else _failure(trials)
    mistake = None if passed else _diagnose(exercise, trials, seed)
    if passed:
        status, message = "passed", "Every case and every property holds."
    elif mistake:
        status, message = "known mistake", mistake.sentence
    elif failure.error:
        status, message = "error", _raised(failure.error, exercise)
    elif failure.got and failure.got.output is None and failure.got.error is None:
        status, message = "wrong", "This returns None: is there a `return` on every way out?"
    else:
        status, message = "wrong", f"This does not hold yet: {failure.sentence}."
    tried = [(trial.sentence, trial.points, trial.held) for trial in trials]
    return Verdict(
        exercise=exercise.id,
        status=status,
        points=sum(points for _, points, held in tried if held),
        max_points=max_points(exercise, seed),
        message=message,
        properties=tuple(tried),
        cases_held=sum(call.held for call in trials[0].calls),
        cases=len(_reference(exercise, seed)[0].calls),
        failure=failure,
        printed=next((call.reply.printed for call in calls if call.reply.printed), ""),
    )


def _not_an_answer(exercise: Exercise, description: Description) -> str | None:
    """Say what was handed over instead of the function or class, if it was something else."""
    wanted = "class" if exercise.method else "function"
    if description.kind == wanted:
        return None
    if description.kind == "error":
        return sentence(f"This code cannot be executed: {description.source}")
    name = exercise.name
    if description.kind in ("function", "class"):
        return f"`{name}` is to be a {wanted}, and this is a {description.kind}."
    return (
        f"check() got a value of type {description.kind}. Hand over the {wanted} itself, without "
        f'calling it: check("{exercise.id}", {name}).'
    )


def _is_solution(exercise: Exercise, description: Description) -> bool:
    """Tell whether this is the solution, which may stand on helpers that no answer may call."""
    sources = description.source, source_of(exercise.reference)
    own, solution = (source and ast.dump(ast.parse(source)) for source in sources)
    return own == solution  # comments apart


def _forbidden(exercise: Exercise, name: str) -> str:
    if name.startswith("course_lib."):
        return f"This calls the library's own `{name}`: here you build it yourself."
    return f"This calls `{name}`, the ready-made version of what you are to build."


def _unfinished(call: Call, exercise: Exercise, description: Description) -> bool:
    """Tell a stub by its exception, where its source is not to be had."""
    error = call.reply.error
    own = exercise.method or exercise.name
    return bool(
        error
        and description.source is None
        and error.type == "NotImplementedError"
        and error.function == own
    )


def _raised(error: Error, exercise: Exercise) -> str:
    # torch raises the same type for an operation that it does not have
    if error.type == "NotImplementedError" and not error.message:
        if error.function in (exercise.name, exercise.method):
            return "This still raises NotImplementedError: take that line out when you are done."
        return f"This calls `{error.function}`, which is not finished yet: complete that first."
    return f"{error.type}: {error.message}" if error.message else error.type


def _failure(trials: list[Trial]) -> Failure:
    """Pick the smallest failing call of the first property that fails."""
    trial = next(trial for trial in trials if not trial.held)
    failing = [call for call in trial.calls if not call.held] or trial.calls[-1:]
    if not failing:
        return Failure(trial.sentence, Case("", ()), None, None, None)
    call = min(failing, key=lambda call: call.case.size)
    expected = call.expected
    return Failure(
        sentence=trial.sentence,
        case=call.case,
        got=call.reply,
        expected=expected,
        error=call.reply.error if not (expected and expected.error) else None,
    )


def _diagnose(exercise: Exercise, trials: list[Trial], seed: int) -> Mistake | None:
    """Find the known mistake that behaves the same: everywhere, or else where this one fails."""
    bank = [(mistake, _trials(exercise, mistake.answer, seed)) for mistake in exercise.mistakes]
    failing = [[i] for i, trial in enumerate(trials) if not trial.held]
    for places in (list(range(len(trials))), *failing):
        ours = [trials[i] for i in places]
        for mistake, known in bank:
            theirs = [known[i] for i in places]
            wrong = not all(trial.held for trial in theirs)
            if wrong and _includes(trials, known) and _alike(ours, theirs, exercise):
                return mistake
    return None


def _includes(ours: list[Trial], theirs: list[Trial]) -> bool:
    """Tell whether an answer fails wherever a mistake fails; if not, it is another one."""
    for a, b in zip(ours, theirs, strict=False):
        law = not any(call.expected for call in a.calls)
        calls = zip(a.calls, b.calls, strict=False)
        if (law and a.held and not b.held) or any(x.held and not y.held for x, y in calls):
            return False
    return True


def _alike(ours: list[Trial], theirs: list[Trial], exercise: Exercise) -> bool:
    """Tell whether two answers did the same; where one should not raise, for the same reason."""
    a = [call for trial in ours for call in trial.calls]
    b = [call for trial in theirs for call in trial.calls]
    return len(a) == len(b) and all(
        same_reply(x.reply, y.reply, exercise)
        and (x.held or not x.reply.error or x.reply.error.message == y.reply.error.message)
        for x, y in zip(a, b, strict=True)
    )


def _reference(exercise: Exercise, seed: int) -> list[Trial]:
    return _trials(exercise, exercise.reference, seed)


@lru_cache(maxsize=1024)
def _trials(exercise: Exercise, answer: Any, seed: int) -> list[Trial]:
    return attempt(exercise, InProcess(answer), seed)
