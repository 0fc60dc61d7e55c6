"""Which known mistake an answer makes, told by what it does."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from course_lib.answers.answer import InProcess, Reply, tensors
from course_lib.checking.exercise import Case, Draw, Exercise, Mistake
from course_lib.checking.trial import (
    ENDED,
    AnswerRun,
    Call,
    Question,
    ask,
    is_float,
    same,
    same_reply,
)

SIZE = 4


def diagnosis(tried: AnswerRun, seed: int) -> Mistake | None:
    """Find the known mistake that a failing answer makes, if it is one.

    It is the one that did the same everywhere. If there is none, it is one that did the same in
    every call up to the end of the first standard property that fails, of which one gave a wrong
    result, since exceptions and laws prove too little; and that fails nowhere where the answer is
    right. What else the answer does wrong is another mistake, which shows when this one is mended.
    An answer that only raises exceptions there is asked again with all sizes equal. At last, rows
    of NaN or zeros are left out: they come from queries that may look nowhere, in whatever way
    else the answer is wrong. An argument that is changed spoils gradients, and is the mistake then.
    """
    exercise = tried.exercise
    bank = [(mistake, known(exercise, mistake, seed)) for mistake in exercise.mistakes]
    everywhere = range(len(tried))
    for mistake, wrong in bank:
        if wrong is tried or all(_same_calls(tried, wrong, place) for place in everywhere):
            return mistake
    for mistake, wrong in bank:
        if (
            _same_results(tried, wrong, seed)
            and _includes(tried, wrong)
            and (not tried.holds(0) or _changes_inputs(tried) is _changes_inputs(wrong))
        ):
            return mistake
    for mistake, wrong in bank:
        # what is said of NaN is true of nobody who gives none
        if _same_rows(tried, wrong) and ("NaN" not in mistake.sentence or _gives_nan(tried)):
            return mistake
    return None


def _gives_nan(tried: AnswerRun) -> bool:
    return any(x.isnan().any() for call in tried.calls(0) for _, x in tensors(call.reply.output))


@lru_cache(maxsize=1024)
def known(exercise: Exercise, mistake: Mistake, seed: int) -> AnswerRun:
    """Try a known mistake, as far as anybody asks, and keep what it did."""
    return try_mistake(exercise, mistake, seed)


def try_mistake(exercise: Exercise, mistake: Mistake, seed: int) -> AnswerRun:
    """Try a known mistake anew."""
    return AnswerRun(exercise, InProcess(mistake.answer), seed)


def _changes_inputs(tried: AnswerRun) -> bool:
    """Return True if an answer changes its arguments."""
    return any(call.changed() for place in range(len(tried)) for call in tried.calls(place))


def _same_calls(ours: AnswerRun, theirs: AnswerRun, place: int) -> bool:
    """Return True if two answers did the same; where one should not raise, for the same reason."""
    for x, y in zip_longest(ours.calls(place), theirs.calls(place)):
        if x is None or y is None or not same_reply(x.reply, y.reply, ours.exercise, x.scale):
            return False
        a, b = x.reply.error, y.reply.error
        if not x.held and a and b and a.message != b.message:
            return False
    return True


def _same_results(ours: AnswerRun, theirs: AnswerRun, seed: int) -> bool:
    """Return True if two answers gave the same results, up to the first property that fails."""
    calls: list[Call] = []
    for place in range(len(ours)):
        for x, y in zip(ours.calls(place), theirs.calls(place), strict=False):
            if not same_reply(x.reply, y.reply, ours.exercise, x.scale):
                return False
            calls.append(x)
        if not ours.holds(place):
            break
    wrong = [call for call in calls if not call.held]
    if not wrong or not wrong[0].expected:
        return False
    if any(call.reply.error is None for call in wrong):
        return True
    return not any(_ended(call.reply) for call in wrong) and _same_if_equal(ours, theirs, seed)


def _ended(reply: Reply) -> bool:
    return bool(reply.error and reply.error.type in ENDED)


def _same_if_equal(ours: AnswerRun, theirs: AnswerRun, seed: int) -> bool:
    """Return True if two answers gave the same results, one of them wrong, with all sizes equal."""
    exercise, wrong = ours.exercise, False
    for question in equal_sizes(exercise, seed):
        x, y, right = ours.reply(question), theirs.reply(question), question.expected
        if x.error and y.error:
            continue
        if x.error or y.error or not same_rows(x.output, y.output, right.output, exercise):
            return False
        alike = same_reply(x, y, exercise)
        wrong = wrong or (alike and is_whole(x) and not same_reply(x, right, exercise))
    return wrong


def _same_rows(ours: AnswerRun, theirs: AnswerRun) -> bool:
    """Return True if two answers gave the same results but for such rows, one whole and wrong."""
    wrong = False
    for x, y in zip(ours.calls(0), theirs.calls(0), strict=False):
        raised = [reply.error and reply.error.type for reply in (x.reply, y.reply)]
        if (x.held and not y.held) or raised[0] != raised[1]:
            return False
        alike = same_reply(x.reply, y.reply, ours.exercise)
        wrong = wrong or (alike and not x.held and is_whole(x.reply))
        right = x.expected.output if x.expected else None
        if not alike and not same_rows(x.reply.output, y.reply.output, right, ours.exercise):
            return False
    return wrong


def is_whole(reply: Reply) -> bool:
    """Return True if a result has no NaN: two that are alike then prove something."""
    return not reply.error and not any(x.isnan().any() for _, x in tensors(reply.output))


def same_rows(ours: Any, theirs: Any, right: Any, exercise: Exercise) -> bool:
    """Return True if two results are equal but for rows of NaN, or of zeros in the others."""
    form = exercise.canonical
    if same(form(ours), form(theirs), exercise.tolerance):
        return True
    if not all(is_float(x) and x.dim() > 0 for x in (ours, theirs, right)):
        return False
    if ours.shape != theirs.shape or ours.shape[:-1] != right.shape[:-1]:
        return False
    empty = (right == 0).all(-1) | right.isnan().any(-1)
    for x in (ours, theirs):
        empty = empty | x.isnan().any(-1)
    return same(ours[~empty], theirs[~empty], exercise.tolerance)


@lru_cache(maxsize=256)
def equal_sizes(exercise: Exercise, seed: int) -> list[Question]:
    """List the cases once more, each size that is more than one the same, as far as they allow it.

    Where a mistake brings sizes together that do not fit, torch says so in its own words, which
    depend on how the product is written. With equal sizes there is a result, which is the same.
    """
    asked = [ask(exercise, case, seed) for case in _equal_cases(exercise, seed)]
    return [question for question in asked if not question.expected.error]


def _equal_cases(exercise: Exercise, seed: int) -> Iterator[Case]:
    # what is drawn may have to fit what is not, and then these sizes are not to be had
    with contextlib.suppress(ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        for given in exercise.draw(_EqualDraw(seed)):
            case = Case(*given)
            inputs, build = (tuple(map(_equal, values)) for values in (case.inputs, case.build))
            yield replace(case, inputs=inputs, build=build)


def _equal(size: Any) -> Any:
    return SIZE if type(size) is int and size > 1 else size


class _EqualDraw(Draw):
    """Draws tensors whose axes are all of one size, whatever is asked for."""

    def normal(self, *shape: int) -> Any:
        return super().normal(*map(_equal, shape))

    def integers(self, low: int, high: int, *shape: int) -> Any:
        return super().integers(min(low, SIZE - 1), _equal(high), *map(_equal, shape))


def _includes(ours: AnswerRun, theirs: AnswerRun) -> bool:
    """Return True if an answer fails wherever a mistake fails; if not, it is another one.

    Where results are wrong, laws say nothing more.
    """
    wrong_results = not ours.holds(0)
    for place in range(len(ours)):
        calls = zip(ours.calls(place), theirs.calls(place), strict=False)
        if any(x.held and not y.held for x, y in calls):
            return False
        law = not wrong_results and not any(call.expected for call in ours.calls(place))
        if law and ours.holds(place) and not theirs.holds(place):
            return False
    return True
