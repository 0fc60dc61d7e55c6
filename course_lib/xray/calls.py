"""Record a model at work: which functions were called, with what, and what they returned."""

import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from course_lib.self_attention import Rule, replaced_rule

LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
COURSE = Path(__file__).parents[1]
SILENT = tuple(str(COURSE / room) for room in ("xray", "files", "instruments/recording.py"))
# of "exec" cells: answers that `mine` has defined, and cells of a notebook
CELLS = ("<answer", "<ipython-input")


@dataclass
class Call:
    """One call of a function: of the course, of a notebook, or of a part of the model.

    `path` is the part's name in the model where the function is its `forward`; `caller` is the code
    that called it, and `line` the line there; `made` are the tensors that torch's operations
    returned inside it, those of the calls inside it left out.
    """

    code: CodeType
    path: str | None
    given: dict[str, Any]
    caller: CodeType | None = None
    line: int = 0
    output: Any = None
    value: Tensor | None = None
    calls: list["Call"] = field(default_factory=list)
    made: list[Tensor] = field(default_factory=list)

    def __iter__(self) -> Iterator["Call"]:
        """Yield this call and all inside it, the outer ones first."""
        yield self
        for call in self.calls:
            yield from call

    def inputs(self) -> list[Tensor]:
        """Return the tensors that it was given, in the order of its parameters."""
        return [value for value in self.given.values() if isinstance(value, Tensor)]


@dataclass
class Attended:
    """What a layer's rule of attention was given, and what it returned."""

    rule: Rule
    q: Float[Tensor, "1 heads query d_k"]
    k: Float[Tensor, "1 groups key d_k"]
    v: Float[Tensor, "1 groups key d_v"]
    mask: Bool[Tensor, "..."] | None
    output: Float[Tensor, "1 heads query d_v"]

    def weights(self) -> Float[Tensor, "heads query key"] | None:
        """Return the weights by which this rule averages the values, whatever the rule is.

        Attention is linear in the values: with the unit matrix in their place it returns its
        weights. None for a rule that is no weighted average of its values.
        """
        unit = torch.eye(self.v.shape[-2]).to(self.v)
        try:
            weights = self.rule(self.q, self.k, unit.expand(*self.v.shape[:-1], -1), self.mask)
        except (RuntimeError, ValueError):
            return None
        shared = self.v.repeat_interleave(weights.shape[-3] // self.v.shape[-3], dim=-3)
        fits = weights.shape[-1] == shared.shape[-2]
        if not fits or not torch.allclose(weights @ shared, self.output, rtol=1e-3, atol=1e-3):
            return None
        return weights[0]


class Recorder(TorchFunctionMode):
    """Collect the calls of a model and of its rules of attention, inside a `with` block."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.root = Call(Recorder.__init__.__code__, None, {})
        self.attended: dict[str, Attended] = {}
        self._model = model
        self._paths = {id(part): path for path, part in model.named_modules()}
        self._open: list[Call | None] = []
        self._stack = ExitStack()

    def part(self, path: str) -> list[Call]:
        """Return the calls of a part of the model, in their order."""
        return [call for call in self.root if call.path == path]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        if isinstance(output, Tensor):
            self._innermost().made.append(output)
        return output

    def __enter__(self) -> "Recorder":
        for path, part in self._model.named_modules():
            if is_attention(part):
                self._stack.enter_context(self._recorded(path, part))
        self._stack.enter_context(_profiled(self._see))
        return super().__enter__()

    def __exit__(self, *error):
        self._stack.close()
        return super().__exit__(*error)

    def _recorded(self, path: str, layer: nn.Module):
        def recording(rule: Rule) -> Rule:
            def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
                output = rule(q, k, v, mask)
                self.attended[path] = Attended(rule, q, k, v, mask, output)
                return output

            return attend

        return replaced_rule(layer, recording)

    def _innermost(self) -> Call:
        return next((call for call in reversed(self._open) if call), self.root)

    def _see(self, frame: FrameType, event: str, value: Any) -> None:
        """Note a call or a return; frames that are no concern of ours take a place too."""
        if event == "call":
            call = self._noted(frame)
            if call:
                self._innermost().calls.append(call)
            self._open.append(call)
        elif event == "return" and self._open and (call := self._open.pop()):
            call.output = value
            if isinstance(value, Tensor):
                # what a learner changes in place later must not change what is shown
                call.value = value.detach().clone()

    def _noted(self, frame: FrameType) -> Call | None:
        code = frame.f_code
        own = is_own(code.co_filename) and (code.co_name == "<lambda>" or code.co_name[0] != "<")
        if not own and code.co_name != "forward":
            return None
        given = {name: frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]}
        path = self._paths.get(id(given.get("self"))) if code.co_name == "forward" else None
        if not own and path is None:
            return None
        back = frame.f_back
        while back and not is_own(back.f_code.co_filename):
            back = back.f_back
        if back is None or self._innermost() is self.root:
            return Call(code, path, given)
        return Call(code, path, given, back.f_code, back.f_lineno)


@contextmanager
def _profiled(see: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(before)


def is_attention(part: nn.Module) -> bool:
    """Return True if a part attends by a rule that can be replaced."""
    rule = getattr(part, "rule", None)
    return callable(rule) and not isinstance(rule, nn.Module) and hasattr(part, "heads")


@cache
def is_own(file: str) -> bool:
    """Return True if a file is the course's, a notebook's or the reader's, and not a library's."""
    if file.startswith("<"):
        return file.startswith(CELLS)
    if Path(file).is_relative_to(COURSE):
        return not file.startswith(SILENT)
    return not file.startswith(LIBRARIES)


def code_of(function: Callable) -> CodeType | None:
    """Return the code of a function, of an object that is called, or of a partial."""
    function = inspect.unwrap(getattr(function, "func", function))
    if not hasattr(function, "__code__"):
        function = inspect.unwrap(type(function).__call__)
    return getattr(function, "__code__", None)
