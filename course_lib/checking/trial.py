"""Try an answer: the standard properties, asked as requests, and the exercise's own laws."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.answers.answer import (
    Answer,
    Foreign,
    InProcess,
    Named,
    Probe,
    Reply,
    Request,
    change_tensors,
    tensors,
)
from course_lib.answers.process import RemoteAnswer
from course_lib.answers.watch import ATEN, Watch, fresh_settings, without_compiler
from course_lib.checking.exercise import Case, Draw, Exercise, Property, edges, shorter

# between what a float32 differs by, 1e-8, and what the order of a sum does, 1e-15
FLOAT64_TOLERANCE = 1e-12
ENDED = ("Timeout", "Waited", "Crash", "Malformed", "TooLarge")
# numbers whose exponential is infinite, in float64 too: scores are products of them
LARGE, LARGE_WEIGHTS = 1e5, 300.0
WHOLE = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
GRADIENTS = "gradients flow, and are right"
FLOAT64 = "float64 goes in, float64 comes out, and as exact as that"
LARGE_NUMBERS = "large numbers give neither NaN nor a wrong result"
UNCHANGED = "inputs are not modified, and may be non-contiguous"
EXPONENTIALS = frozenset(
    "exp exp_ exp2 exp2_ _softmax _log_softmax logsumexp _safe_softmax".split()
)


@dataclass(frozen=True, eq=False)
class Question:
    """One request to an answer, and the reference's reply to it.

    A reply to the `fuller` question that is no error has the reply to this one in it. Output and
    gradients are divided by `scale` before they are compared.
    """

    case: Case
    request: Request
    expected: Reply
    fuller: "Question | None" = None
    scale: tuple[float, float] | None = None


class StandardProperty(NamedTuple):
    """A standard property and the questions that try it: the `last` ones, if all others hold."""

    sentence: str
    points: int
    questions: list[Question]
    last: Sequence[Question] = ()


@dataclass(frozen=True)
class Call:
    """One call of an answer, and the reference's reply where the two are to be equal.

    `deviation` is how far apart they are, in units of the tolerance.
    """

    case: Case
    reply: Reply
    expected: Reply | None
    deviation: float
    scale: tuple[float, float] | None = None

    @property
    def held(self) -> bool:
        """Return True if the two are equal, within the tolerance."""
        return self.deviation <= 1

    def changed(self) -> list[int]:
        """List the places of the arguments that this call has changed, where that was looked at."""
        theirs = self.expected.inputs if self.expected else ()
        both = enumerate(zip(self.reply.inputs, theirs, strict=False))
        return [place for place, (a, b) in both if not same(a, b, 0.0)]


@dataclass
class Trial:
    """One property tried on one answer; `held` is None until it has been."""

    sentence: str
    points: int
    held: bool | None = None
    calls: list[Call] = field(default_factory=list)


class AnswerRun:
    """An answer tried on an exercise: each property when it is first asked about, and once only.

    A standard property is tried call by call, so that who wants to know only whether it fails, or
    whether two answers differ, pays for the calls up to there.
    """

    def __init__(self, exercise: Exercise, answer: Answer, seed: int):
        self.exercise = exercise
        self._answer, self._seed = answer, seed
        # in the learner's own process, nothing but the source is searched for what is forbidden
        self._watch = exercise.watched if isinstance(answer, RemoteAnswer) else ()
        self._asked = _standard(exercise, seed)
        # what an output is, whatever its numbers
        self._form = next((x.expected.output for x in self._asked[0].questions), None)
        self._known: dict[Question, Reply] = {}
        self._trials = [Trial(sentence, points) for sentence, points in properties(exercise, seed)]

    def __len__(self) -> int:
        return len(self._trials)

    def all(self) -> list[Trial]:
        """Try every property; after a hang, a crash or nonsense the rest are left out."""
        try:
            for place in range(len(self)):
                self.trial(place)
        except _Ended:
            self._trials = self._trials[: place + 1]
            self._trials[-1].held = False
        return self._trials

    def trial(self, place: int) -> Trial:
        """Try the property at this place to its end."""
        trial = self._trials[place]
        if trial.held is None and place < len(self._asked):
            held = [call.held for call in self.calls(place)]
            trial.held = all(held)
        elif trial.held is None:
            law = self.exercise.properties[place - len(self._asked)]
            trial.held = self._obeys(law, trial)
        return trial

    def calls(self, place: int) -> Iterator[Call]:
        """Yield the calls of one property, made as they are asked for."""
        trial = self._trials[place]
        if trial.held is not None or place >= len(self._asked):
            yield from self.trial(place).calls
            return
        asked = self._asked[place]
        for number, question in enumerate([*asked.questions, *asked.last]):
            if number == len(asked.questions) and not all(x.held for x in trial.calls[:number]):
                break
            if number == len(trial.calls):
                trial.calls.append(self._call(question, trial))
            yield trial.calls[number]

    def holds(self, place: int) -> bool:
        """Return True if the property at this place holds; the first failing call is the last."""
        if place < len(self._asked):
            return all(call.held for call in self.calls(place))
        return bool(self.trial(place).held)

    def passes(self) -> bool:
        """Return True if every property holds; the first call that fails is the last."""
        return all(map(self.holds, range(len(self))))

    def reply(self, question: Question) -> Reply:
        """Ask one more question, which is no part of the trial."""
        if question not in self._known:
            self._known[question] = self.anew(question)
        return self._known[question]

    def anew(self, question: Question) -> Reply:
        """Ask a question though it may have been answered: an answer may say another thing."""
        return self._run(question.request)

    def earns(self) -> bool:
        """Return True if, for each guess, a case is right where the guess is not.

        Of an answer that gives back its argument, or the same number always, many laws hold.
        """
        right = [call for call in self.calls(0) if call.held]
        return all(
            any(not self._is_guessed(guess, call) for call in right)
            for guess in guesses(self.exercise).values()
        )

    def _is_guessed(self, guess: "Guess", call: Call) -> bool:
        assert call.expected, "every case has a result"
        guessed = guess(call.case.inputs, call.expected.output)
        return same(guessed, call.expected.output, self.exercise.tolerance)

    def _call(self, question: Question, trial: Trial) -> Call:
        reply = self._reply(question, trial)
        apart = reply_deviation(reply, question.expected, self.exercise, question.scale)
        return Call(question.case, reply, question.expected, apart, question.scale)

    def _reply(self, question: Question, trial: Trial) -> Reply:
        """Ask a question, unless its reply is known by now or comes with a fuller one."""
        if question not in self._known:
            fuller = question.fuller and self._reply(question.fuller, trial)
            if fuller and not fuller.error:
                return replace(fuller, gradients=None)
            self._known[question] = self._ask(question.case, question.request, trial)
        return self._known[question]

    def _ask(self, case: Case, request: Request, trial: Trial) -> Reply:
        reply = self._run(request)
        if reply.error and reply.error.type in ENDED:
            trial.calls.append(Call(case, reply, None, math.inf))
            raise _Ended
        return reply

    def _run(self, request: Request) -> Reply:
        reply = self._answer.run(replace(request, watch=self._watch))
        reply = _without_constants(self.exercise, reply)
        return replace(reply, output=in_form(reply.output, self._form))

    def _obeys(self, law: Property, trial: Trial) -> bool:
        def call(*inputs: Any, build: tuple = (), pieces: tuple = (), **bounds: Any) -> Any:
            case = Case("", inputs, build, pieces)
            request = request_for(self.exercise, case, self._seed, **bounds)
            reply = self._ask(case, request, trial)
            trial.calls.append(Call(case, reply, None, _unequal(reply.error is None)))
            return reply.output

        try:
            return bool(law.holds(call, Draw(self._seed)))
        except _Ended:
            raise
        # a law is written for right outputs: on others it may fail in any way
        except Exception:
            return False


def first_failing(trials: list[Trial]) -> Trial:
    """Return the first property that fails."""
    return next(trial for trial in trials if not trial.held)


def smallest(trials: list[Trial]) -> Call | None:
    """Return the smallest failing call of the first property that fails.

    Where most of them give wrong results, it is one of these: an exception hides what is wrong. Of
    right results it is one that changes its arguments, if that is what is wrong.
    """
    trial = first_failing(trials)
    if trials[0].held and (changing := [x for y in trials for x in y.calls if x.changed()]):
        return min(changing, key=lambda call: call.case.size)
    failing = [call for call in trial.calls if not call.held] or trial.calls[-1:]
    results = [call for call in failing if not call.reply.error]
    ended = any(call.reply.error and call.reply.error.type in ENDED for call in failing)
    if 2 * len(results) > len(failing) and not ended:
        failing = results
    return min(failing, key=lambda call: call.case.size, default=None)


def properties(exercise: Exercise, seed: int) -> list[tuple[str, int]]:
    """List the sentence and the points of each property: the standard ones, then the own."""
    asked = [(x.sentence, x.points) for x in _standard(exercise, seed)]
    return [*asked, *((x.sentence, x.points) for x in exercise.properties)]


def max_points(exercise: Exercise, seed: int = 0) -> int:
    """Return the points of all properties of an exercise, the same for every seed."""
    return sum(points for _, points in properties(exercise, seed))


def cases(exercise: Exercise, seed: int) -> list[Question]:
    """List the cases that have a result, as they are asked first: for their results alone."""
    return _standard(exercise, seed)[0].questions


def ask(exercise: Exercise, case: Case, seed: int, **more: Any) -> Question:
    """Ask for a case, by default for its result alone; the reference replies."""
    request = request_for(exercise, case, seed, **more)
    reply = InProcess(exercise.reference).run(request)
    return Question(case, request, _without_constants(exercise, reply))


def _without_constants(exercise: Exercise, reply: Reply) -> Reply:
    """Leave the gradients of an exercise's constants out of a reply."""
    if not (reply.gradients and exercise.constants):
        return reply
    places = {str(i) for i, x in enumerate(exercise.parameters) if x.name in exercise.constants}
    judged = {name: x for name, x in reply.gradients.items() if name not in places}
    return replace(reply, gradients=judged)


class _Ended(Exception):
    """The answer hung, took its process with it, or let it speak nonsense."""


def large(exercise: Exercise, seed: int) -> list[Question]:
    """List the cases with large numbers, of which there are some where an exponential is."""
    standard = _standard(exercise, seed)
    return [q for x in standard if x.sentence == LARGE_NUMBERS for q in x.questions]


Guess = Callable[[tuple, Any], Any]


def guesses(exercise: Exercise) -> dict[str, Guess]:
    """Name what whoever knows nothing might return, made of the inputs and of the right result."""
    named: dict[str, Guess] = {
        "only 0s": lambda _, output: _shaped(output, torch.zeros_like, 0),
        "only 1s": lambda _, output: _shaped(output, torch.ones_like, 1),
        "a unit matrix": lambda _, output: _shaped(output, _unit_matrix, 1),
    }
    for place, parameter in enumerate(exercise.parameters):
        named[f"only {parameter.name}"] = lambda inputs, _, place=place: (
            inputs[place] if place < len(inputs) else None
        )
    return named


def _shaped(output: Any, of_tensor: Callable[[Tensor], Tensor], number: int) -> Any:
    """Return another value of the same type and shape."""
    if isinstance(output, int | float):
        return type(output)(number)
    if any(tensors(output)):
        return change_tensors(output, of_tensor)
    # what is no data has no value of its own that anybody could guess
    return None if isinstance(output, Foreign) else type(output)()


def _unit_matrix(y: Tensor) -> Tensor:
    unit = torch.eye(*y.shape[-2:]) if y.dim() > 1 else torch.ones(y.shape)
    return unit.expand(y.shape).to(y)


@lru_cache(maxsize=256)
@fresh_settings()
def _standard(exercise: Exercise, seed: int) -> list[StandardProperty]:
    """Ask what every exercise asks, as far as it applies to its inputs and outputs."""
    cases = drawn(exercise, seed)
    # whatever is computed has "" in its name
    with without_compiler(), Watch(kinds=("",)) as computed:
        asked = list(_results(exercise, cases, seed))
    # what the reference refuses, its stub refuses too: it is given, and not asked
    results = [question for question in asked if not question.expected.error]
    gradients = [q.fuller for q in results if q.fuller]
    exponentials = EXPONENTIALS & {name.removeprefix(ATEN) for name in computed.seen}
    at_edges = _results(exercise, drawn_edges(exercise, seed), seed)
    own = [question for question in at_edges if not question.expected.error]
    # for their results alone: some functions have a kink at 0, and no one gradient there
    made = [ask(exercise, case, seed) for case in edges(exercise, cases)]
    last = [*own, *(question for question in made if not question.expected.error)]
    standard = [StandardProperty("every case gives the right result", 4, results, last)]
    if gradients:
        last = [question.fuller for question in own if question.fuller]
        standard.append(StandardProperty(GRADIENTS, 2, gradients, last))
    if gradients or exercise.no_gradient:
        doubles = list(_doubles(exercise, results, seed))
        standard.append(StandardProperty(FLOAT64, 1, doubles))
    if gradients and exponentials and not exercise.small_only:
        enlarged = [_enlarged(exercise, q, seed) for q in results if q.fuller]
        standard.append(StandardProperty(LARGE_NUMBERS, 1, enlarged))
    if _can_change(cases):
        scattered = list(_scattered(exercise, results, seed))
        last = [ask(exercise, question.case, seed, after=True) for question in own]
        standard.append(StandardProperty(UNCHANGED, 1, scattered, last))
    return standard


def _results(exercise: Exercise, cases: list[Case], seed: int) -> Iterator[Question]:
    """Ask for the result of each case; the fuller question is for its gradients as well."""
    # where inputs can be changed, there is a property for all that a call should leave alone
    draw, settings = Draw(seed), not _can_change(cases)
    for case in cases:
        question = ask(exercise, case, seed, settings=settings)
        if differentiable(exercise, replace(question.expected, inputs=case.inputs)):
            cotangent = _cotangent(question.expected.output, draw)
            question = replace(question, fuller=ask(exercise, case, seed, cotangent=cotangent))
        yield question


def _largest_first(results: list[Question]) -> list[Question]:
    return sorted(results, key=lambda question: -question.case.size)


def _doubles(exercise: Exercise, results: list[Question], seed: int) -> Iterator[Question]:
    """Ask for the largest case of each kind in float64: few numbers may be right by chance."""
    for question in one_of_each(_largest_first(results), type):
        yield ask(exercise, each(question.case, _double), seed, dtype=torch.float64)


def _scattered(exercise: Exercise, results: list[Question], seed: int) -> Iterator[Question]:
    """Ask again with inputs that are not contiguous, and with arguments by their names.

    Where numbers are drawn they are others than before: what an answer has kept is wrong there. A
    module has read a shorter text before. The largest case of each kind is asked: what is written
    into a small one may be what it held. Then each is asked as it is, since a view of contiguous
    inputs is written into by other lines.
    """
    cases, others = drawn(exercise, seed), drawn(exercise, seed + 1)
    redrawn = {case.name: other for case, other in zip(cases, others, strict=False)}
    for question in one_of_each(_largest_first(results), Tensor.dim):
        case = redrawn.get(question.case.name, question.case)
        named = _optional(exercise, len(case.inputs))
        before = shorter(exercise, case) if exercise.method == "forward" else ()
        yield ask(
            exercise, case, seed, scattered=True, before=before, keywords=named, settings=True
        )
    for question in results:
        yield ask(exercise, question.case, seed, after=True)


def drawn(exercise: Exercise, seed: int) -> list[Case]:
    """Draw the cases of an exercise."""
    return [Case(*x) for x in exercise.draw(Draw(seed))]


def drawn_edges(exercise: Exercise, seed: int) -> list[Case]:
    """Draw the cases of whoever is right in all others."""
    return [Case(*x) for x in exercise.draw_edges(Draw(seed))]


def request_for(
    exercise: Exercise,
    case: Case,
    seed: int,
    dtype: torch.dtype = torch.float32,
    factor: float = 1,
    initial: str = "",
    **more: Any,
) -> Request:
    """Ask for a case, with weights of the inputs' device and dtype; tokens leave `dtype`.

    The weights are multiplied by `factor`. With `initial`, the name of a parameter, ask for what
    the constructor made of it, from a seed that is always the same.
    """
    if initial:
        return Request((initial,), case.build, method="get_parameter", settings=True, **more)
    weights = exercise.weights(case.build, seed)
    if weights is not None:
        given = [x for _, x in tensors(case.inputs)]
        dtype = next((x.dtype for x in given if is_float(x)), dtype)
        device = given[0].device if given else None
        weights = {name: factor * w.to(device, dtype) for name, w in weights.items()}
    method = "__call__" if exercise.method in (None, "forward") else exercise.method
    return Request(case.inputs, case.build, weights, method, pieces=case.pieces, **more)


def _optional(exercise: Exercise, given: int) -> tuple[str, ...]:
    """Name the optional arguments among the first `given` ones: a caller may use their names."""
    return tuple(p.name for p in exercise.parameters[:given] if p.default is not p.empty)


def _enlarged(exercise: Exercise, question: Question, seed: int) -> Question:
    """Ask a case with numbers so large that an exponential of them is infinite, in float64."""
    assert question.fuller, "a case without a gradient has no exponential of interest"
    factor = LARGE if exercise.method is None else LARGE_WEIGHTS
    case = each(question.case, lambda x: factor * x.double() if x.is_floating_point() else x)
    request = request_for(
        exercise,
        case,
        seed,
        dtype=torch.float64,
        factor=factor,
        cotangent=change_tensors(question.fuller.request.cotangent, _doubled),
    )
    expected = _without_constants(exercise, InProcess(exercise.reference).run(request))
    size = _size(expected.output)
    # where large gradients cancel, their rounding is left: products of such outputs, in 15 digits
    scale = size, max(_size(expected.gradients), 1e-10 * size**2)
    return Question(case, request, expected, scale=scale)


def _doubled(x: Tensor) -> Tensor:
    return x.double()


def _size(value: Any) -> float:
    """Return the largest number of all tensors of floats in a value, 1 at least."""
    floats = (x for _, x in tensors(value) if is_float(x) and x.numel())
    return max([1.0, *(float(x.abs().max()) for x in floats)])


def _cotangent(output: Any, draw: Draw) -> Any:
    """Draw a cotangent for each tensor of floats; what else there is has none."""
    return change_tensors(output, lambda y: draw.normal(*y.shape) if is_float(y) else None)


def _can_change(cases: list[Case]) -> bool:
    """Return True if a call could change one of its inputs: a tensor, a list or a dict."""
    kinds = (Tensor, list, dict)
    return any(isinstance(x, kinds) or any(tensors(x)) for case in cases for x in case.inputs)


def _double(x: Tensor) -> Tensor:
    """Give numbers digits that a float32 cannot hold; probabilities go on summing to 1."""
    if not x.is_floating_point():
        return x
    x = x.double()
    if x.dim() and x.shape[-1] > 1 and x.numel() and (x > 0).all():
        total = x.sum(-1, keepdim=True)
        if (total - 1).abs().amax() < 1e-5:
            return x / total
    return 1.1 * x


def each(case: Case, change: Callable[[Tensor], Tensor]) -> Case:
    """Change each tensor among the inputs of a case."""
    return replace(case, inputs=tuple(change_tensors(x, change) for x in case.inputs))


def one_of_each(questions: list[Question], of_tensor: Callable[[Tensor], Any]) -> list[Question]:
    """Keep the first case of each kind, told by the types of its arguments, and this of tensors."""

    def kind(value: Any) -> Any:
        if isinstance(value, Tensor):
            return of_tensor(value)
        return value if isinstance(value, bool | str | Named | Probe) else type(value)

    kinds: dict[tuple, Question] = {}
    for question in questions:
        kinds.setdefault(tuple(map(kind, (*question.case.build, *question.case.inputs))), question)
    return list(kinds.values())


def differentiable(exercise: Exercise, reply: Reply) -> bool:
    """Return True if a reply has floats in its output, and an input of floats or weights.

    Where an exercise says why gradients are not judged, none has any.
    """
    if exercise.no_gradient:
        return False
    sources = exercise.method is not None or any(is_float(x) for _, x in tensors(reply.inputs))
    return sources and any(is_float(x) for _, x in tensors(reply.output))


def is_float(value: Any) -> bool:
    """Return True if a value is a tensor of floats."""
    return isinstance(value, Tensor) and value.is_floating_point()


def same_reply(
    a: Reply, b: Reply, exercise: Exercise, scale: tuple[float, float] | None = None
) -> bool:
    """Return True if two answers did the same: see `reply_deviation`."""
    return reply_deviation(a, b, exercise, scale) <= 1


def reply_deviation(
    a: Reply, b: Reply, exercise: Exercise, scale: tuple[float, float] | None = None
) -> float:
    """Return how far apart two replies are: output, or else gradients, changed inputs, exception.

    With `scale`, output and gradients are divided by it, and held to float32's tolerance. The unit
    is the tolerance: up to 1 they did the same. What is no number is 0 or infinitely far away.
    """
    if a.error or b.error:
        kinds = [reply.error.type if reply.error else None for reply in (a, b)]
        return _unequal(kinds[0] == kinds[1])
    if scale:
        a, b = _divided(a, scale), _divided(b, scale)
    tolerance, form = exercise.tolerance, exercise.canonical
    apart = deviation(form(a.output), form(b.output), tolerance)
    if apart > 1:
        return apart
    # what the gradient of NaN is depends on how torch computes it
    if not any(x.isnan().any() for _, x in tensors(a.output)):
        apart = max(apart, _gradients_deviation(a.gradients, b.gradients, 10 * tolerance))
    return max(apart, deviation(a.inputs, b.inputs, 0.0))


def _unequal(equal: bool) -> float:
    return 0.0 if equal else math.inf


def _divided(reply: Reply, scale: tuple[float, float]) -> Reply:
    """Divide output and gradients, which are of float64, and bring them to float32."""
    output, gradients = (
        change_tensors(x, lambda y, size=size: (y / size).float() if is_float(y) else y)
        for x, size in zip((reply.output, reply.gradients), scale, strict=True)
    )
    return replace(reply, output=output, gradients=gradients)


def _gradients_deviation(a: dict | None, b: dict | None, tolerance: float) -> float:
    """Compare gradients; where none flows (None), that is a gradient of zeros."""
    if a is None or b is None or a.keys() != b.keys():
        return _unequal(a is b)
    largest = 0.0
    for name in a:
        x, y = a[name], b[name]
        if x is not None and y is not None:
            largest = max(largest, deviation(x, y, tolerance))
        elif any(z is not None and z.count_nonzero() > 0 for z in (x, y)):
            return math.inf
    return largest


def in_form(got: Any, like: Any) -> Any:
    """Return a result in the form of a right one, where form is all that may differ.

    A list is as good as a tuple, a float that is a whole number as an int, and whole numbers of
    another width as those of 64 bits: see `verdict.remark`.
    """
    if isinstance(got, tuple | list) and isinstance(like, tuple | list):
        kinds = like if len(like) == len(got) else like[:1] * len(got)
        return type(like)(map(in_form, got, kinds) if kinds else got)
    if type(got) is float and type(like) is int and got.is_integer():
        return int(got)
    if isinstance(got, Tensor) and isinstance(like, Tensor) and {got.dtype, like.dtype} <= WHOLE:
        return got.to(like.dtype)
    return got


def same(a: Any, b: Any, tolerance: float) -> bool:
    """Return True if two results are equal: type, shape, dtype, device, and nearly the numbers."""
    return deviation(a, b, tolerance) <= 1


def deviation(a: Any, b: Any, tolerance: float) -> float:
    """Return how many times the tolerance two results differ by, at most; infinite for the rest.

    Numbers may differ by the tolerance, absolute and again relative to `b`.
    """
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _tensors_deviation(a, b, tolerance)
    # a whole number is a float too, as Python's annotations have it
    if type(a) is int and type(b) is float:
        return deviation(float(a), b, tolerance)
    if type(a) is not type(b):
        return math.inf
    if isinstance(a, tuple | list):
        pairs = zip(a, b, strict=False)
        return _largest(pairs, tolerance) if len(a) == len(b) else math.inf
    if isinstance(a, dict):
        pairs = ((a[key], b[key]) for key in a) if a.keys() == b.keys() else [(0, None)]
        return _largest(pairs, tolerance)
    if isinstance(a, float) and math.isnan(a) and math.isnan(b):
        return 0.0
    if isinstance(a, float) and a != b and tolerance:
        apart = abs(a - b) / (tolerance * max(1.0, abs(b)))
        return math.inf if math.isnan(apart) else apart
    return _unequal(bool(a == b))


def _largest(pairs: Iterable[tuple[Any, Any]], tolerance: float) -> float:
    """Return the largest deviation; what differs in kind is not looked at further."""
    largest = 0.0
    for x, y in pairs:
        largest = max(largest, deviation(x, y, tolerance))
        if largest == math.inf:
            break
    return largest


def _tensors_deviation(a: Tensor, b: Tensor, tolerance: float) -> float:
    if (a.shape, a.dtype, a.device) != (b.shape, b.dtype, b.device):
        return math.inf
    if a.is_meta or torch.equal(a, b):
        return 0.0
    near = min(tolerance, FLOAT64_TOLERANCE) if a.dtype == torch.float64 else tolerance
    if not a.is_floating_point():
        return math.inf
    if near:
        # what nearly always decides, in a part of the time that the rest takes
        apart = ((a - b).abs() / (1 + b.abs())).amax().item() / near
        if not math.isnan(apart):
            return apart
    alike = (a == b) | (a.isnan() & b.isnan())
    # where nothing may differ, 0 / 0 is a number that differs
    apart = ((a - b).abs() / (near + near * b.abs())).masked_fill(alike, 0.0)
    return apart.nan_to_num(nan=math.inf, posinf=math.inf).amax().item()
