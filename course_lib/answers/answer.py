"""The handle behind which an answer stands: requests go in, replies come out, both plain data.

No check ever touches the learner's object. `InProcess` holds it in this process;
`process.ChildProcess` holds it in another one and speaks the same two methods.
"""

import builtins
import contextlib
import io
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol

import torch
from einops import einops
from torch import Tensor, nn

from course_lib.answers import messages
from course_lib.answers.probe_layers import LAYERS
from course_lib.answers.source import Source, aliases, find_source, functions, names_used
from course_lib.answers.watch import bounded, fresh_settings, settings, watching, without_compiler

PRINTED_CHARACTERS = 2_000
NESTED_ITEMS = 1_000
BITS = 1_000  # of a whole number that is compared: below, it is a float as well
# one that no answer sets itself: to set it is then seen
UNLIKELY_SEED = 1_729_104_729


@dataclass(frozen=True, repr=False)
class Probe:
    """A layer, by the name of the function in `probe_layers` that makes it, and its arguments.

    It may stand among a case's inputs, or among the arguments that build a class.
    """

    name: str
    arguments: tuple = ()

    def make(self) -> Any:
        """Make the layer anew."""
        return LAYERS[self.name](*self.arguments)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"


@dataclass(frozen=True, repr=False)
class Named:
    """An argument that builds a class, passed by its name."""

    name: str
    value: Any

    def __repr__(self) -> str:
        return f"{self.name}={self.value!r}"


@dataclass(frozen=True, eq=False)
class Request:
    """One call of an answer.

    `build` and `weights` are the constructor's arguments and the parameters by name, where the
    answer is a class, and `method` is the one to call (`__call__` is `forward` too). A `Probe`
    among inputs or `build` arrives as the layer that it names. With `cotangent` (of the output's
    structure) the reply brings the vector-Jacobian product. `scattered` hands the inputs over
    non-contiguous, after a call on other numbers that should leave no trace, of the same sizes or
    those of the inputs `before`; with it, or with `after`, the reply brings the inputs as the call
    has left them. The last inputs are passed by the names in `keywords`. `watch` names functions,
    and operations of torch (`aten._softmax`), whose call is reported. With `settings` it is an
    error to change those of torch, and so is a tensor of more than `max_numel` numbers, made on the
    way, and so are more than `max_calls` operations of torch. `default_dtype` is torch's default
    float type during the call, by its name. With `pieces` the inputs are cut into so many tokens
    each, one object is called with piece after piece, and what it returns is put together again:
    the output of an object that keeps what it was given.
    """

    inputs: tuple
    build: tuple = ()
    weights: dict[str, Tensor] | None = None
    method: str = "__call__"
    cotangent: Any = None
    scattered: bool = False
    before: tuple = ()
    after: bool = False
    keywords: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    settings: bool = False
    max_numel: int | None = None
    max_calls: int | None = None
    default_dtype: str = "float32"
    pieces: tuple[int, ...] = ()


@dataclass(frozen=True)
class Error:
    """An exception as data: its type, its message, and where in the answer it arose."""

    type: str
    message: str
    function: str | None = None
    line: int | None = None
    text: str | None = None


def computed_for(seconds: float) -> Error:
    """Say that a call was ended which went on computing."""
    return Error("Timeout", f"no answer after {seconds:g} seconds of computing")


def waited_for(seconds: float) -> Error:
    """Say that a call was ended which waited: for a lock, a download or a clock."""
    return Error("Waited", f"nothing was computed for {seconds:g} seconds")


@dataclass(frozen=True)
class Foreign:
    """Stands for a value that is neither a tensor nor plain data: its type is all that is known."""

    type: str


@dataclass(frozen=True)
class Reply:
    """What one call did. Gradients are by input and weight.

    `inputs` are the inputs after it, where they were asked for. What was computed on another
    device comes back on the CPU, and `device` says which that was.
    """

    output: Any = None
    inputs: tuple = ()
    gradients: dict[str, Tensor | None] | None = None
    error: Error | None = None
    forbidden: tuple[str, ...] = ()
    printed: str = ""
    device: str = "cpu"


@dataclass(frozen=True)
class Description:
    """What is known of an answer before it is called.

    `kind` is "function", "class" or the name of another type; `aliases` maps the names that the
    source uses to the dotted names that they stand for. `problem` is why there is nothing to call,
    where the kind is "error".
    """

    kind: str
    source: Source | None = None
    aliases: dict[str, str] | None = None
    problem: str = ""


class Answer(Protocol):
    """All that a check can do to an answer."""

    def describe(self) -> Description:
        """Tell what the answer is, without calling it."""
        ...

    def run(self, request: Request) -> Reply:
        """Call the answer; whatever it does comes back as a reply."""
        ...


class InProcess:
    """An answer in this very process. What it holds is called, never inspected by a check."""

    def __init__(self, answer: Any):
        self._answer = answer

    def kind(self) -> str:
        """Tell a class, and what can be called, from the rest, which is named by its type."""
        if isinstance(self._answer, type):
            return "class"
        return "function" if callable(self._answer) else type(self._answer).__name__

    def describe(self) -> Description:
        """Tell what the answer is, without calling it."""
        answer, kind = self._answer, self.kind()
        if kind not in ("function", "class"):
            return Description(kind)
        # an object may make it hard to look at it; then it is known by what it does alone
        try:
            source = find_source(answer)
            names = names_used(answer, source) if source else {}
            if kind == "class" and not source:  # no method of its own: it is what it inherits
                names = {f"base_{i}": base for i, base in enumerate(answer.__bases__)}
                source = Source(f"class {answer.__name__}({', '.join(names)}):\n    pass\n")
        except Exception:
            return Description(kind)
        return Description(kind, source, aliases(names))

    def run(self, request: Request) -> Reply:
        """Call the answer on copies of the inputs, and report what it did."""
        leaves = [_leaf(value, request) for value in made(request.inputs)]
        # what is handed over is no leaf, so that changing it in place raises no autograd error
        inputs = [change_tensors(x, lambda y: y.clone() if y.requires_grad else y) for x in leaves]
        printed = _Bounded()
        with (
            _settings_of(request),
            _nobody_there(printed),
            without_compiler(),
            watching(request.watch, self._answer) as seen,
        ):
            reply = self._reply(request, leaves, inputs)
        return replace(reply, forbidden=tuple(seen), printed=printed.getvalue())

    def _reply(self, request: Request, leaves: list, inputs: list) -> Reply:
        """Call the answer; to read its result or its error may run its code once more."""
        before = settings()
        try:
            with bounded(request.max_numel, request.max_calls):
                call, weights = self._callable(request)
                if request.scattered:
                    # what one object keeps is its own, and should leave another alone
                    earlier = self._callable(request)[0] if request.pieces else call
                    with contextlib.suppress(Exception):
                        others = made(request.before) or inputs
                        _call(earlier, [change_tensors(x, _other) for x in others], request)
                output = _call(call, inputs, request)
            gradients = as_data(_gradients(output, request.cotangent, leaves, weights))
            after = tuple(map(as_data, inputs)) if request.scattered or request.after else ()
            if request.settings:
                _same_settings(before)
            return Reply(as_data(output), after, gradients, device=_device_of(output))
        # an answer may raise anything, SystemExit included; only Ctrl-C is the reader's own
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return Reply(error=_error(error, self._file()))

    def _callable(self, request: Request) -> tuple[Callable, dict[str, Tensor]]:
        """Return what is to be called: the function, or a module that holds the weights asked."""
        if not isinstance(self._answer, type):
            return self._answer, {}
        module = construct(self._answer, request.build)
        if not isinstance(module, nn.Module):
            if request.weights:
                raise Misfit(
                    f"its parameters are not found, since it is no nn.Module: begin with "
                    f"`class {self._answer.__name__}(nn.Module):`, and `__init__` with "
                    "`super().__init__()`"
                )
            return getattr(module, request.method), {}
        if request.weights is None:
            return getattr(module, request.method), {}
        weight = next(iter(request.weights.values()), None)
        if weight is not None and any(
            (own.device, own.dtype) != (weight.device, weight.dtype) for own in module.parameters()
        ):
            module.to(device=weight.device, dtype=weight.dtype)
        _refuse_misfit(module, request.weights)
        module.load_state_dict(request.weights, assign=weight is not None and weight.is_meta)
        return getattr(module, request.method), dict(module.named_parameters())

    def _file(self) -> str | None:
        """Name the file, or the notebook cell, in which the answer's code stands."""
        found = [*functions(self._answer)]
        if isinstance(self._answer, type):  # a method may be another answer's
            name = f"{self._answer.__qualname__}."
            found.sort(key=lambda function: not function.__qualname__.startswith(name))
        return next((function.__code__.co_filename for function in found), None)


def made(values: tuple) -> tuple:
    """Put a layer in the place of each probe."""
    return tuple(value.make() if isinstance(value, Probe) else value for value in values)


def construct(kind: Callable, build: tuple) -> Any:
    """Make an object of a class, with layers in the place of probes."""
    by_place = made(tuple(x for x in build if not isinstance(x, Named)))
    by_name = [x for x in build if isinstance(x, Named)]
    values = made(tuple(x.value for x in by_name))
    return kind(*by_place, **dict(zip((x.name for x in by_name), values, strict=True)))


def change_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Change each tensor of a value, also inside tuples, lists and dicts, which are copied."""
    if isinstance(value, tuple):
        return tuple(change_tensors(item, change) for item in value)
    if type(value) is list:
        return [change_tensors(item, change) for item in value]
    if type(value) is dict:
        return {key: change_tensors(item, change) for key, item in value.items()}
    return change(value) if isinstance(value, Tensor) else value


def tensors(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a value and where each is: "" itself, "0" or "1.key" inside."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, tuple | list | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from tensors(item, f"{name}.{key}" if name else str(key))


def as_data(value: Any) -> Any:
    """Copy a value into tensors and plain data; anything else becomes `Foreign`.

    It is read by torch's and Python's own methods, whatever a class of a stranger's overrides.
    """
    kind = type(value)
    if issubclass(kind, Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            return _plain_tensor(value)
    if kind is int and value.bit_length() > BITS:
        return Foreign(f"whole number of more than {BITS} bits")
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is Foreign and type(value.type) is str:  # in a reply from afar
        return value
    if issubclass(kind, float):  # such as numpy's float64
        return float.__pos__(value)
    if issubclass(kind, tuple) or kind is list:
        plain, items = (tuple, tuple.__iter__) if kind is not list else (list, list.__iter__)
        return plain(as_data(item) for item in islice(items(value), NESTED_ITEMS))
    if kind is dict:
        return {_key(key): as_data(item) for key, item in islice(value.items(), NESTED_ITEMS)}
    return Foreign(kind.__name__)


def _plain_tensor(value: Tensor) -> Any:
    """Copy a tensor of numbers that every operation knows; of others, return the kind alone."""
    plain = Tensor.detach(value)
    # such as a FakeTensor, which has no numbers to compare
    if type(plain) is not Tensor:
        return Foreign(f"tensor of the class {type(plain).__name__}")
    if plain.is_nested or plain.layout != torch.strided:
        return Foreign("tensor that is nested or sparse")
    if plain.dtype not in messages.NAMES:
        return Foreign(f"tensor of {str(plain.dtype).removeprefix('torch.')}")
    return Foreign("tensor on the meta device") if plain.is_meta else plain.to("cpu", copy=True)


def _device_of(value: Any) -> str:
    """Name the device of a result's first tensor; without one it is the CPU."""
    return next((x.device.type for _, x in tensors(value) if type(x) is Tensor), "cpu")


def _key(key: Any) -> str:
    return key if type(key) is str else type(key).__name__ if type(key) is not int else str(key)


def checked(reply: Reply) -> Reply:
    """Return a reply from afar with each field of the type that it is to have, or as malformed."""
    error, gradients = reply.error, reply.gradients
    texts = [reply.printed, reply.device]
    texts += [*(reply.forbidden if isinstance(reply.forbidden, tuple) else [None])]
    if isinstance(error, Error):
        texts += [error.type, error.message, error.function or "", error.text or ""]
        numbered = error.line is None or type(error.line) is int
    else:
        numbered = error is None
    known = gradients is None or (
        isinstance(gradients, dict)
        and all(x is None or isinstance(x, Tensor | Foreign) for x in gradients.values())
    )
    whole = numbered and known and isinstance(reply.inputs, tuple)
    if not whole or not all(isinstance(text, str) for text in texts):
        return Reply(error=Error("Malformed", "the reply has fields of other types"))
    return replace(reply, output=as_data(reply.output), inputs=as_data(reply.inputs))


class Misfit(RuntimeError):
    """Weights cannot be given to an answer, whose computation nobody has seen yet."""


def _refuse_misfit(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Raise Misfit, with one sentence, for a module of other parameters than the weights."""
    own = {name: tuple(weight.shape) for name, weight in module.state_dict().items()}
    for name, weight in weights.items():
        shape = tuple(weight.shape)
        if name not in own:
            there = f": there are {', '.join(own)}" if own else ""
            raise Misfit(f"expected a parameter {name} of shape {shape}, and there is none{there}")
        if own[name] != shape:
            raise Misfit(f"expected the shape {shape} of {name}, but got {own[name]}")
    if more := own.keys() - weights.keys():
        raise Misfit(f"expected no parameter of the name {min(more)}")


class _Bounded(io.StringIO):
    """Keeps the first characters printed and drops the rest; stays open."""

    def close(self) -> None:
        pass

    def write(self, text: str) -> int:
        super().write(text[: max(0, PRINTED_CHARACTERS - self.tell())])
        return len(text)


@contextlib.contextmanager
def _nobody_there(printed: io.StringIO) -> Iterator[None]:
    """Keep what is printed, drop what is warned of, and let `input` end as where nobody types."""
    asked, builtins.input = builtins.input, _end_of_file
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(_Bounded()):
            yield
    finally:
        builtins.input = asked


def _end_of_file(*_: object) -> str:
    raise EOFError("EOF when reading a line")


@contextlib.contextmanager
def _settings_of(request: Request) -> Iterator[None]:
    """Let an answer find torch as the request has it, and leave it as it was.

    einops remembers what it did with sizes, and takes 2.0, which torch refuses, for the same size
    as 2: who divides by / would pass after an answer that divides by //, and spoil the next one.
    """
    # with the oldest einops and a newer torch there is no cache
    getattr(einops._reconstruct_from_shape, "cache_clear", lambda: None)()
    with fresh_settings():
        if request.settings:
            torch.default_generator.manual_seed(UNLIKELY_SEED)
        torch.set_default_dtype(getattr(torch, request.default_dtype))
        yield


class SideEffect(Exception):
    """A call that has changed more than its result; the message says what."""


def _same_settings(before: dict[str, Any]) -> None:
    for name, value in settings().items():
        if value != before[name]:
            raise SideEffect(
                f"torch's {name} was {before[name]} before the call, and now is {value}"
            )


def _call(answer: Callable, inputs: list, request: Request) -> Any:
    by_place = len(inputs) - len(request.keywords)
    by_name = dict(zip(request.keywords, inputs[by_place:], strict=True))
    if request.pieces:
        return _in_pieces(answer, inputs, request.pieces)
    return answer(*inputs[:by_place], **by_name)


def _in_pieces(answer: Callable, inputs: list, pieces: tuple[int, ...]) -> Any:
    """Call an object with piece after piece, and put together what it returns."""
    cut = zip(*(x.split(pieces, dim=-2) for x in inputs), strict=True)
    outputs = [answer(*piece) for piece in cut]
    odd = [y for y in outputs if not isinstance(y, Tensor)]
    return odd[0] if odd else torch.cat(outputs, dim=-2)


def _other(x: Tensor) -> Tensor:
    """Return other numbers of the same size."""
    return ~x if x.dtype == torch.bool else -x.detach()


def _leaf(value: Any, request: Request) -> Any:
    """Copy a value, its tensors as the request wants them: lists and dicts are copied too."""

    def leaf(x: Tensor) -> Tensor:
        x = x.clone()
        if request.scattered and x.dim() > 0:
            turned = x.transpose(0, -1)
            x = torch.stack([turned, turned], dim=-1)[..., 1].transpose(0, -1)
        return x.requires_grad_(request.cotangent is not None and x.is_floating_point())

    return change_tensors(value, leaf)


def _gradients(output, cotangent, leaves, weights) -> dict[str, Tensor | None] | None:
    """Pull `cotangent` back to the float inputs ("0", "1", "2.0" in a list) and the weights.

    To weights that are frozen none flows: None.
    """
    if cotangent is None:
        return None
    frozen = dict.fromkeys(name for name, x in weights.items() if not x.requires_grad)
    given = (*tensors(leaves), *weights.items())
    wanted = {name: x for name, x in given if x.requires_grad}
    cotangents = dict(tensors(cotangent))
    pairs = [
        (y, cotangents[name])
        for name, y in tensors(output)
        if y.requires_grad
        and name in cotangents
        and (y.shape, y.dtype) == (cotangents[name].shape, cotangents[name].dtype)
    ]
    if not pairs:
        return frozen | dict.fromkeys(wanted)
    # a gradient of a number imports no sympy, where one of tensors does: a second, the first time
    first, *others = ((y * v.to(y.device)).sum() for y, v in pairs)
    pulled = torch.autograd.grad(sum(others, first), list(wanted.values()), allow_unused=True)
    return frozen | dict(zip(wanted, pulled, strict=True))


def _error(error: BaseException, file: str | None) -> Error:
    """Describe an exception, with the last line of the answer's own that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file]
    place = own[-1] if own else None
    return Error(
        type=type(error).__name__,
        message=_message(error)[:PRINTED_CHARACTERS],
        function=frames[-1].name if frames else None,
        line=place.lineno if place else None,
        text=place.line if place else None,
    )


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:
        return f"its message cannot be had, because of a {type(another).__name__}"
