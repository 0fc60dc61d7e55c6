"""What is around the calls of an answer: settings of torch as in a fresh process, and an eye on it.

Forbidden functions, too large tensors and too many operations are seen while they are computed. All
of it is undone when the block is left. Names are dotted ("torch.softmax",
"course_lib.attention.softmax"), or kinds of torch's own operations: "aten.softmax" is every
softmax, by whichever name or layer it was reached.
"""

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.answers.source import functions, loaded

ATEN = "aten."
COMPILER = "torch._dynamo"
# how each is looked up and set, and what a fresh process has; one thread is enough for tensors this
# small, where several would wait for each other
FRESH: tuple[tuple[Callable[[], Any], Callable[[Any], Any], Any], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
    (torch.get_num_threads, torch.set_num_threads, 1),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 0),
    (torch.is_anomaly_enabled, torch.set_anomaly_enabled, False),
)


@contextmanager
def fresh_settings() -> Iterator[None]:
    """Let torch be as in a fresh process inside, and as it was outside, random numbers included.

    Whoever has set another default device or type, or works without gradients, is judged like
    everybody else. As a decorator it does the same for the calls of a function.
    """
    with ExitStack() as undo:
        undo.callback(torch.set_rng_state, torch.get_rng_state())
        for get, put, fresh in FRESH:
            undo.callback(put, get())
            put(fresh)
        device = torch.get_default_device()
        torch.set_default_device(None)
        if torch.get_default_device().type != "cpu":  # a `with` around the check says so
            undo.enter_context(torch.device("cpu"))
        elif device.type != "cpu":
            undo.callback(torch.set_default_device, device)
        undo.callback(torch.set_default_device, None)  # what was set inside
        if torch.is_inference_mode_enabled():
            undo.enter_context(torch.inference_mode(False))
        if torch.is_autocast_enabled("cpu"):
            undo.enter_context(torch.autocast("cpu", enabled=False))
        undo.enter_context(torch.enable_grad())
        yield


def settings() -> dict[str, Any]:
    """Look up what every later line of a program depends on."""
    return {
        "default device": torch.get_default_device(),
        "default dtype": torch.get_default_dtype(),
        "grad mode": torch.is_grad_enabled(),
        "random seed": torch.initial_seed(),
    }


class TooManyCalls(RuntimeError):
    """More operations of torch than were allowed; the message says how many were."""


class Watch(TorchDispatchMode):
    """Looks at each operation of torch that is computed inside: its kind, and what it makes.

    `seen` are the kinds of operations that were watched for, `made` is how many there were. What
    is larger than `max_numel` numbers, or more than `max_calls` operations, is an error, which
    comes again at the end where the answer catches it.
    """

    def __init__(
        self,
        kinds: tuple[str, ...] = (),
        max_numel: int | None = None,
        max_calls: int | None = None,
        seen: list[str] | None = None,
    ):
        super().__init__()
        self._kinds, self._max_numel, self._max_calls = kinds, max_numel, max_calls
        self.seen: list[str] = [] if seen is None else seen
        self.made, self._error = 0, None

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Look at one operation, and let it go on."""
        name = function.overloadpacket.__name__
        if any(kind in name for kind in self._kinds):
            _note(self.seen, ATEN + name)
        self.made += 1
        if self._max_calls is not None and self.made > self._max_calls:
            self._refuse(TooManyCalls(f"more than {self._max_calls} operations of torch"))
        returned = function(*args, **(kwargs or {}))
        if self._max_numel is not None:
            self._bound(returned, self._max_numel)
        return returned

    def _bound(self, returned: Any, max_numel: int) -> None:
        for x in tree_leaves(returned):
            # a view holds no numbers of its own, however often it repeats them
            if isinstance(x, Tensor) and x.untyped_storage().nbytes() > max_numel * x.itemsize:
                shape = " x ".join(map(str, x.shape))
                self._refuse(MemoryError(f"a tensor of {shape} numbers is larger than need be"))

    def _refuse(self, error: Exception) -> None:
        self._error = error
        raise error

    def __exit__(self, kind, *exception):
        """Stop looking. Raises what was refused, where the answer went on in spite of it."""
        super().__exit__(kind, *exception)
        if self._error and kind is None:
            raise self._error


def bounded(max_numel: int | None, max_calls: int | None) -> AbstractContextManager:
    """Refuse tensors of more numbers, and more operations, than this, if anything is bounded."""
    if max_numel is None and max_calls is None:
        return nullcontext()
    return Watch(max_numel=max_numel, max_calls=max_calls)


@contextmanager
def watching(forbidden: tuple[str, ...], answer: Any = None) -> Iterator[list[str]]:
    """Collect the forbidden names that are called inside, first come first.

    A component that is itself the answer may be called.
    """
    seen: list[str] = []
    kinds = tuple(name.removeprefix(ATEN) for name in forbidden if name.startswith(ATEN))
    # what is not loaded is not called; to import it here would take seconds
    objects = {value: name for name in forbidden if (value := loaded(name))}
    with ExitStack() as watches:
        own = list(_functions(answer))
        for value, name in objects.items():
            for function in _functions(value):
                if function not in own:
                    watches.enter_context(_noting(function, partial(_note, seen, name)))
        if objects:
            watches.enter_context(_Named(objects, seen))
        if kinds:
            watches.enter_context(Watch(kinds, seen=seen))
        yield seen


def _note(seen: list[str], name: str) -> None:
    if name not in seen:
        seen.append(name)


class _Named(TorchFunctionMode):
    """Notes torch's functions by their names: what torch itself makes of several operations."""

    def __init__(self, named: dict[Any, str], seen: list[str]):
        super().__init__()
        self._named, self._seen = named, seen

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if name := self._named.get(function):
            _note(self._seen, name)
        return function(*args, **(kwargs or {}))


@contextmanager
def _noting(function: types.FunctionType, note: Callable[[], None]) -> Iterator[None]:
    """Let a function note that it is called, by whatever name: its code is another's meanwhile."""
    code, defaults, by_name = function.__code__, function.__defaults__, function.__kwdefaults__
    if function.__closure__:
        yield
        return
    original = types.FunctionType(code, function.__globals__, function.__name__, defaults)
    original.__kwdefaults__ = by_name

    def noted(*args, _note=note, _original=original, **kwargs):
        _note()
        return _original(*args, **kwargs)

    function.__code__, function.__defaults__ = noted.__code__, None
    function.__kwdefaults__ = noted.__kwdefaults__
    try:
        yield
    finally:
        function.__code__, function.__defaults__ = code, defaults
        function.__kwdefaults__ = by_name


def _functions(value: Any) -> Iterator[types.FunctionType]:
    if isinstance(value, type) and issubclass(value, nn.Module):
        value = value.forward
    return functions(value)


@contextmanager
def without_compiler() -> Iterator[None]:
    """Put a stand-in where torch's compiler would be, unless that is loaded already.

    Dispatch modes and the meta device import the compiler, which takes a second, for one function,
    `disable`, which does nothing for them.
    """
    if COMPILER in sys.modules:
        yield
        return
    sys.modules[COMPILER] = torch._dynamo = compiler = _Compiler(COMPILER)
    try:
        yield
    finally:
        _remove(compiler)


class _Compiler(types.ModuleType):
    """Stands in for `torch._dynamo`, and gives way to it as soon as more is asked of it."""

    @staticmethod
    def disable(function: Any, *_: Any, **__: Any) -> Any:
        return function

    def __getattr__(self, name: str) -> Any:
        # `inspect`, for one, goes through all modules and wants none in particular
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        _remove(self)
        return getattr(importlib.import_module(COMPILER), name)


def _remove(compiler: _Compiler) -> None:
    if sys.modules.get(COMPILER) is compiler:
        del sys.modules[COMPILER], torch._dynamo
