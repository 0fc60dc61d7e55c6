"""What is said of an answer that is wrong in no known way: what differs, and under what conditions.

The conditions come first, if there are any ("With float64 inputs: ..."), and then what differs
from the right results, by the table in `difference`. Where that finds nothing, an example is shown.
"""

import ast
import builtins
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from course_lib.answers.answer import Error, Reply, tensors
from course_lib.answers.source import Source, names_bound, source_of
from course_lib.checking.exercise import Case, Exercise, batch_axes
from course_lib.checking.explain.changed_arguments import changed_arguments
from course_lib.checking.explain.difference import (
    Pair,
    difference,
    example,
    last_axes,
    pair,
    sizes,
    sizes_without_a_name,
)
from course_lib.checking.forbidden import DOORS
from course_lib.checking.trial import (
    ENDED,
    FLOAT64,
    GRADIENTS,
    LARGE_NUMBERS,
    UNCHANGED,
    AnswerRun,
    Call,
    Trial,
    ask,
    cases,
    first_failing,
    is_float,
    same,
    same_reply,
    smallest,
)


def sentence(text: str) -> str:
    """End a text with a full stop, unless it ends as a sentence does."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


# they subtract the peak and sum the exponentials, so that a softmax is one line more
PARTLY = ("logsumexp", "logaddexp")
NO_GRADIENT = (
    "The results are right, but no gradient flows back: `torch.no_grad`, `.detach()`, `.data`, "
    "`.item()`, `torch.tensor` and numpy all cut it off."
)
IN_PLACE = "`+=` and its like, `x[...] =` and names that end in `_` write into what they are given"
NUMPY = (
    "The results are right, but no gradient flows through numpy, and `.detach()` would only cut "
    "it off: write this with torch's own operations, which have the same names mostly."
)
CONDITIONS = {
    GRADIENTS: "With inputs that require a gradient",
    FLOAT64: "With float64 inputs",
    LARGE_NUMBERS: "With very large numbers",
    UNCHANGED: "With non-contiguous inputs, and after another call",
}
SEVEN_DIGITS = (
    "the result is right to about seven digits only. Mostly a step in between is computed in "
    "float32, as `.float()` and `dtype=torch.float32` have it{}; or something small is in it that "
    "should not be, as an epsilon, or what is left of a masked score that is not minus infinity."
)
OVERFLOW = "Does something become infinite on the way, as `exp` of a large number does?"
FROM_THE_END = "A batch may have any number of dimensions, and none: count axes from the end."
STAYS = (
    "The first call was right, and the same call later is not: something stays from one call to "
    "the next. Does it belong to the class, and not to `self`, or is it a global?"
)
NOT_ALIKE = "Two calls with the same arguments give two results"


def forbidden(name: str) -> str:
    """Say that an answer calls what it may not, by its dotted name."""
    if name in DOORS:
        own = name.rpartition(".")[2]
        return f"This calls `{own}`, which has no place inside of an answer: build it yourself."
    if name.startswith("course_lib."):
        return f"This calls the library's own `{name}`: here you build it yourself."
    if name.rpartition(".")[2] in PARTLY:
        return f"This calls `{name}`, which does the larger part of what you are to build."
    return f"This calls `{name}`, the ready-made version of what you are to build."


def explanation(tried: AnswerRun, seed: int) -> str:
    """Say in a sentence or two what differs in the first property that fails."""
    exercise, trials = tried.exercise, tried.all()
    trial = first_failing(trials)
    wrong = [x for x in trial.calls if not x.held and not x.reply.error]
    changed = _inputs(exercise, trials)
    if changed and trials[0].held:
        return f"The result is right, but the call also changes {changed}"
    if not wrong or not wrong[0].expected:
        found = (y for call in trial.calls for _, y in tensors(call.reply.output) if is_float(y))
        nan = any(y.isnan().any() for y in found)
        where = "NaN comes back where a law is tried" if nan else "one law does not hold"
        return f"Every case is right, but {where}: {trial.sentence}."
    said = (
        _drawn(tried, wrong, seed)
        or _results(tried, trial, wrong, seed)
        or _gradients(exercise, wrong)
        or _on_condition(tried, trial, _counted(exercise, trial, wrong), seed)
    )
    return f"{said} The call also changes {changed}" if changed else said


def raised(tried: AnswerRun, error: Error, seed: int) -> str:
    """Say what the exception shown says, on which condition it is raised, and what it means."""
    exercise, trials = tried.exercise, tried.all()
    said = _in_words(error, exercise)
    trial, call = first_failing(trials), smallest(trials)
    if call is None or call.reply.error is None or call.reply.error.type in ENDED:
        return said
    if usual := _usual(exercise, call):
        return f"{sentence(said)} {usual}"
    if trial is trials[0]:
        more = _stays(tried, seed) or changed_arguments(tried, seed) or _refuses(call)
        more = more or _only(exercise, trial) or _named_sizes(exercise, call) or _in_place(call)
        if more and "batch dimension" in more:
            more = f"{more} {FROM_THE_END}"
    elif trials[0].held and (changed := _inputs(exercise, trials)):
        return f"The result is right, but the call also changes {changed}"
    elif "numpy()" in (message := call.reply.error.message) and "requires grad" in message:
        return NUMPY
    else:
        more = _refuses(call) or _in_place(call)
    return _on_condition(tried, trial, f"{sentence(said)} {more}" if more else said, seed)


def unused(exercise: Exercise, source: Source, said: str) -> str:
    """Name the arguments that the code of a wrong answer never reads, if the right one does.

    What is `said` of one of them already is the cause.
    """
    try:
        function = source.function(exercise.method)
        right = source_of(exercise.reference).function(exercise.method)
    except (SyntaxError, ValueError, LookupError):
        return ""
    ours, theirs = ([x.arg for x in y.args.args] for y in (function, right))
    if ours != theirs or "locals" in source:
        return ""
    known = [{x.id for x in ast.walk(y) if isinstance(x, ast.Name)} for y in (function, right)]
    # what may be left out is known to be ignored by what comes of it
    needed = ours[: len(ours) - len(function.args.defaults)]
    never = [f"`{name}`" for name in needed if name not in known[0] and name in known[1]]
    if not never or any(name in said for name in never):
        return ""
    given = {*vars(builtins), *vars(sys.modules[exercise.reference.__module__])}
    given |= {name for x in source.tree.body for name in names_bound(x)}
    others = [f"`{name}`" for name in sorted(source.reads - given)]
    place = "its place" if len(never) == 1 else "their place"
    come = "comes" if len(others) == 1 else "come"
    read = f": {_listed(others)} in {place} {come} from outside the function" if others else ""
    return f" {_listed(never)} {'is' if len(never) == 1 else 'are'} never used{read}."


def _listed(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _stays(tried: AnswerRun, seed: int) -> str | None:
    """Say so where the first call was right, and no longer is when it is made again."""
    first, exercise = tried.all()[0].calls[0], tried.exercise
    if not first.held or not first.expected:
        return None
    again = tried.anew(cases(exercise, seed)[0])
    # a call for which no time was left says nothing
    ended = again.error and again.error.type in ENDED
    return None if ended or same_reply(again, first.expected, exercise) else STAYS


def _named_sizes(exercise: Exercise, call: Call) -> str | None:
    """Name the sizes that torch's message about sizes speaks of, where they are all known."""
    message = call.reply.error.message if call.reply.error else ""
    if not re.search(r"\bsizes?\b|\bshapes?\b", message) or "ellipsis" in message:
        return None
    named = sizes(exercise, call.case)
    names = {
        number: [name for name, size in named.items() if size == number]
        for number in sorted({int(x) for x in re.findall(r"(?<!dimension )\b\d{1,9}\b", message)})
        if number > 1
    }
    if len(names) < 2 or any(len(some) != 1 for some in names.values()):
        return None
    if names.keys() & sizes_without_a_name(exercise, call.case):
        return None
    said = [f"{number} is `{name}`" for number, [name] in names.items()]
    return f"Here {', '.join(said[:-1])} and {said[-1]}."


NO_MODULE = re.compile(
    r"before Module.__init__\(\)|object has no attribute '_(parameters|modules)'"
)
NO_BOOLEAN = "is only implemented on integer and Boolean-type tensors"
# no line of the answer was reached
NOT_CALLED = re.compile(r"([\w.]+)\(\) (takes|missing|got an unexpected)")
# what a bound on memory refuses: see `answers.watch`
TOO_LARGE = re.compile(r"a tensor of ([\d x]+) numbers is larger than need be")
NO_EXIT = ("name 'exit' is not defined", "name 'quit' is not defined")


def _in_words(error: Error, exercise: Exercise) -> str:
    """Say what an exception says."""
    said = f"{error.message[:1].upper()}{error.message[1:]}"
    if error.type == "Timeout":
        return f"{said}: does a loop in your code never end?"
    if error.type == "Waited":
        return f"{said}: what does it wait for?"
    if error.type == "Misfit":
        return sentence(said)
    if error.type == "EOFError" and "reading a line" in error.message:
        return "This calls `input`, and nobody is there to type: take it as an argument."
    # in a notebook these two are the kernel's own, and no names of Python's
    if error.type == "SystemExit" or error.message in NO_EXIT:
        return "This ends the whole program: `return` the result, without `exit`."
    if error.type == "MemoryError" and (found := TOO_LARGE.match(error.message)):
        return (
            f"A tensor of {found[1]} numbers was made on the way, and none so large is needed: "
            "which product can be computed first, or which part at a time?"
        )
    # torch raises the same type for an operation that it does not have
    if error.type == "NotImplementedError" and not error.message:
        if error.function in (exercise.name, *exercise.methods):
            return "This still raises NotImplementedError: take that line out when you are done."
        return f"This calls `{error.function}`, which is not finished yet: complete that first."
    return f"{error.type}: {error.message}" if error.message else error.type


def _usual(exercise: Exercise, call: Call) -> str | None:
    """Say what Python means by an exception that a class or a signature as it stands leads to."""
    error = call.reply.error
    assert error, "who raises has an error"
    if NO_MODULE.search(error.message):
        return "`super().__init__()` is missing: it comes first in `__init__`."
    if NO_BOOLEAN in error.message:
        return (
            "What says yes or no has to be boolean, and this is a tensor of numbers: `dtype="
            "torch.bool` makes it so, and so does a comparison."
        )
    called = NOT_CALLED.match(error.message) if error.type == "TypeError" else None
    name = called and called[1].rpartition(".")[2]
    if called and error.line is None and name in (exercise.name, *exercise.methods, "__init__"):
        line = _first_line(exercise, str(name))
        return f"The exercise's line is `{line}`: put these arguments back."
    if exercise.method and error.message == "name 'self' is not defined":
        return (
            f"`self` comes first among the arguments: `{_first_line(exercise, exercise.method)}`."
        )
    return None


def _first_line(exercise: Exercise, name: str) -> str:
    """Return a function's or method's first line, without its annotations."""
    function = getattr(exercise.reference, name) if exercise.method else exercise.reference
    given = (x.replace(annotation=x.empty) for x in inspect.signature(function).parameters.values())
    return f"def {name}{inspect.Signature([*given])}"


def _refuses(call: Call) -> str | None:
    """Say so where it is the answer itself that raises."""
    text = (call.reply.error and call.reply.error.text) or ""
    if not text.strip().startswith(("raise ", "assert ")) or "NotImplementedError" in text:
        return None
    return "Your own code refuses these arguments, and they are to be taken."


def _in_place(call: Call) -> str | None:
    """Say what torch means by an in-place operation, where it refuses one."""
    message = call.reply.error.message if call.reply.error else ""
    return f"{IN_PLACE}: make a new one." if re.search(r"\bin-?place\b", message) else None


def _on_condition(tried: AnswerRun, trial: Trial, said: str, seed: int) -> str:
    """Put the condition under which a property asks before what is said of it, if it is one."""
    condition = CONDITIONS.get(trial.sentence)
    if trial.sentence == LARGE_NUMBERS and re.search(r"\bnan\b", said, re.IGNORECASE):
        said = f"{said} {OVERFLOW}"
    if trial.sentence == UNCHANGED:
        failing = [call for call in trial.calls if not call.held]
        asked = [ask(tried.exercise, call.case, seed) for call in failing]
        replies = [(tried.reply(x), x.expected) for x in asked]
        # these calls are on other numbers as well
        if not all(same_reply(ours, right, tried.exercise) for ours, right in replies):
            condition = "With other numbers"
        elif any(x.reply.error and x.reply.error.type == "SideEffect" for x in failing):
            condition = None
    return f"{condition}: {said}" if condition else said


def _drawn(tried: AnswerRun, wrong: list[Call], seed: int) -> str | None:
    """Say so where two calls give two results, and how, if torch's random numbers decide it.

    The largest case is asked: in a small one a draw may come out alike twice.
    """
    largest = max(wrong, key=lambda call: call.case.size).case
    question = next((x for x in cases(tried.exercise, seed) if x.case is largest), None)
    if question is None:
        return None
    requests = (replace(question.request, settings=x) for x in (True, False, True))
    one, other, again = (tried.anew(replace(question, request=x)) for x in requests)
    if any(x.error for x in (one, other, again)) or _alike(one, other, tried.exercise):
        return None
    if not _alike(one, again, tried.exercise):
        return f"{NOT_ALIKE}."
    return (
        f"{NOT_ALIKE}: something is drawn at random in each call. Where should these numbers come "
        "from?"
    )


def _alike(one: Reply, other: Reply, exercise: Exercise) -> bool:
    return same(one.output, other.output, exercise.tolerance)


def _results(tried: AnswerRun, trial: Trial, wrong: list[Call], seed: int) -> str | None:
    """Say how results differ: by something exact, by other arguments, or at least where."""
    exercise, call = tried.exercise, wrong[0]
    wrong = sorted(wrong, key=lambda call: call.case.size)
    pairs, held = _outputs(exercise, wrong, trial.calls)
    if not pairs:
        return None
    if not call.scale and all(_differ_little(x, 100 * exercise.tolerance) for x in pairs):
        own = f" (a tensor that you make yourself needs `dtype={_first_tensor(exercise)}.dtype`)"
        return _on_condition(tried, trial, SEVEN_DIGITS.format(own), seed)
    said = difference(pairs, True, held)
    if not said and trial is tried.all()[0]:
        said = changed_arguments(tried, seed)
    if not said and _condition(exercise, trial):
        said = (difference(pairs, exact=True) or "").removeprefix("Everywhere ")
        said = said and f"{said[0].upper()}{said[1:]}"
    if said := said or difference(pairs, False, held):
        more = _only(exercise, trial)
        return _on_condition(tried, trial, f"{said} {more}" if more else said, seed)
    return _on_condition(tried, trial, _counted(exercise, trial, wrong), seed)


def _condition(exercise: Exercise, trial: Trial) -> str | None:
    """Say of which kind all the right cases are, and none of the wrong ones."""
    right, wrong = ([x.case for x in trial.calls if x.held is held] for held in (True, False))
    return _common(exercise, right, wrong) if right else None


def _only(exercise: Exercise, trial: Trial) -> str | None:
    """Say what all right cases have in common that no wrong one has, or which is the only one."""
    right, wrong = ([x.case for x in trial.calls if x.held is held] for held in (True, False))
    if not right:
        return None
    if common := _condition(exercise, trial):
        return f"The cases {common} are right, and no others."
    if len(wrong) == 1 < len(right) and wrong[0].name:
        return f"Of {len(right) + 1} cases only “{wrong[0].name}” is wrong."
    if len(right) == 1 < len(wrong) and right[0].name:
        return f"Of {len(wrong) + 1} cases only “{right[0].name}” is right."
    return None


def _common(exercise: Exercise, right: list[Case], wrong: list[Case]) -> str | None:
    """Say of which kind all the right cases are, and none of the wrong ones."""
    for place, parameter in enumerate(exercise.parameters):
        if parameter.default is not parameter.empty:
            given = [[_given(x, place, parameter.default) for x in y] for y in (right, wrong)]
            if not any(given[0]) and all(given[1]):
                return f"without `{parameter.name}`"
        values = [
            {x.inputs[place] for x in y if _is_true_or_false(x, place)} for y in (right, wrong)
        ]
        if len(values[0]) == len(values[1]) == 1 and values[0] != values[1]:
            return f"where `{parameter.name}` is {values[0].pop()}"
    return _batched(*({batch_axes(exercise, x) for x in some} for some in (right, wrong)))


def _batched(right: set[int], wrong: set[int]) -> str | None:
    """Say how many batch dimensions the right cases have, where none of the wrong ones has."""
    least, most = min(right), max(right)
    if right & wrong:
        return None
    if most < min(wrong):
        return f"with at most {_dimensions(most)}" if most else "without batch dimensions"
    if max(wrong) < least:
        return f"with at least {_dimensions(least)}"
    return f"with exactly {_dimensions(least)}" if least == most else None


def _dimensions(number: int) -> str:
    return "one batch dimension" if number == 1 else f"{number} batch dimensions"


def _is_true_or_false(case: Case, place: int) -> bool:
    return len(case.inputs) > place and isinstance(case.inputs[place], bool)


def _given(case: Case, place: int, default: Any) -> bool:
    return len(case.inputs) > place and case.inputs[place] is not default


def _differ_little(x: Pair, tolerance: float) -> bool:
    """Return True if two results of float64 are equal as results of float32."""
    ours, theirs = list(tensors(x.got)), list(tensors(x.expected))
    return len(ours) == len(theirs) > 0 and all(
        a.dtype == b.dtype == torch.float64 and same(a.float(), b.float(), tolerance)
        for (_, a), (_, b) in zip(ours, theirs, strict=True)
    )


def _gradients(exercise: Exercise, wrong: list[Call]) -> str | None:
    """Say which gradients are wrong, and how."""
    ours = [call.reply.gradients or {} for call in wrong]
    theirs = [(call.expected and call.expected.gradients) or {} for call in wrong]
    wanted = {name for x in theirs for name, y in x.items() if y is not None and y.any()}
    if not wanted:
        return None
    cut = {name for name in wanted if all(x.get(name) is None for x in ours)}
    if cut == wanted:
        return NO_GRADIENT
    if cut:
        names = " and ".join(f"`{_label(exercise, name)}`" for name in sorted(cut))
        return f"The results are right, but no gradient reaches {names}."
    for name in sorted(wanted):
        pairs = _pairs(exercise, wrong, lambda reply, name=name: (reply.gradients or {}).get(name))
        if pairs := [replace(x, axes=_axes_of(exercise, name)) for x in pairs]:
            first = f"The results are right, but not the gradient of `{_label(exercise, name)}`"
            said = difference(pairs) or example(min(pairs, key=lambda x: x.expected.numel()))
            if not said:
                return f"{first}."
            said = said.replace("The result", "It").replace("the result", "it")
            return f"{first}: {said[0].lower()}{said[1:]}"
    return "The results are right, but not the gradients."


def _inputs(exercise: Exercise, trials: list[Trial]) -> str | None:
    """Say which arguments the calls have changed, and how that comes about."""
    calls = [call for trial in trials for call in trial.calls]
    changed = [(place, call.case.inputs[place]) for call in calls for place in call.changed()]
    if not changed:
        return None
    places = sorted({place for place, _ in changed})
    said = " and ".join(f"`{exercise.parameters[place].name}`" for place in places)
    if all(isinstance(value, torch.Tensor) for _, value in changed):
        return f"{said}: {IN_PLACE}. Make a new one."
    return f"{said}, which is the caller's own. Make a new one."


def _counted(exercise: Exercise, trial: Trial, wrong: list[Call]) -> str:
    """Say how many cases are right, and show the smallest that is not."""
    call, held = min(wrong, key=lambda call: call.case.size), sum(x.held for x in trial.calls)
    said = _only(exercise, trial) or f"{held} of {len(trial.calls)} cases are right."
    said = said if held else "Every case gives a wrong result."
    pairs, _ = _outputs(exercise, [call])
    shown = example(pairs[0]) if pairs else None
    if not shown:
        return said
    name = f"In “{call.case.name}” " if call.case.name else "There "
    return f"{said} {name}{shown[0].lower()}{shown[1:]}"


def _outputs(
    exercise: Exercise, wrong: list[Call], others: Sequence[Call] = ()
) -> tuple[list[Pair], list[Pair]]:
    """Set wrong results beside the right ones, and those of the others that held.

    All are without what is free in them.
    """
    pairs, form = _pairs(exercise, wrong, lambda reply: reply.output), exercise.canonical
    held = [
        pair(exercise, call.case, call.reply.output, call.expected.output)
        for call in others
        if call.held and call.expected and not call.expected.error
    ]
    forms, held_forms = (
        [
            replace(x, got=form(x.got), expected=form(x.expected), axes=(), in_place=False)
            for x in some
        ]
        for some in (pairs, held)
    )
    same_kinds = all(type(x.got) is type(x.expected) for x in forms)
    is_free = any(x.expected is not y.expected for x, y in zip(forms, pairs, strict=True))
    if not (same_kinds and is_free):
        return pairs, held
    return [x for x in forms if not same(x.got, x.expected, exercise.tolerance)], held_forms


def _pairs(exercise: Exercise, calls: list[Call], part: Callable[[Reply], Any]) -> list[Pair]:
    """Set the parts of replies that differ beside the right ones."""
    both = [(call.case, part(call.reply), part(call.expected)) for call in calls if call.expected]
    return [
        pair(exercise, case, ours, theirs)
        for case, ours, theirs in both
        if not same(ours, theirs, exercise.tolerance)
    ]


def _label(exercise: Exercise, name: str) -> str:
    """Name the argument or parameter that a gradient belongs to."""
    first, _, rest = name.partition(".")
    own = exercise.parameters[int(first)].name if first.isdigit() else first
    return f"{own}.{rest}" if rest else own


def _axes_of(exercise: Exercise, name: str) -> tuple[tuple[str, ...], ...]:
    """Name the last axes of the argument that a gradient belongs to; a parameter has no names."""
    place = name.partition(".")[0]
    return (last_axes(exercise.parameters[int(place)].annotation),) if place.isdigit() else ()


def _first_tensor(exercise: Exercise) -> str:
    """Name the first argument that is a tensor."""
    return next((p.name for p in exercise.parameters if hasattr(p.annotation, "dim_str")), "x")
