"""Calls that an answer may not make, seen while it runs, whoever makes them and by which name.

Names are dotted ("torch.softmax", "torch.Tensor.softmax", "course_lib.attention.softmax"), or those
of torch's own operations ("aten._softmax"). What watches runs beside the answer, in its process: a
stranger whose code reaches the inside of Python can undo it.
"""

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from course_lib.answers.source import functions

ATEN = "aten."


def aliases(names: dict[str, Any]) -> dict[str, str]:
    """Map each name of a scope to the dotted name that it stands for, where it has one."""
    dotted = {}
    for name, value in names.items():
        if isinstance(value, types.ModuleType):
            dotted[name] = value.__name__
        elif (module := getattr(value, "__module__", None)) and hasattr(value, "__qualname__"):
            dotted[name] = f"{module}.{value.__qualname__}"
    return dotted


@contextmanager
def watching(forbidden: tuple[str, ...], answer: Any = None) -> Iterator[list[str]]:
    """Collect the forbidden names that are called inside the block, first come first.

    A component that is itself the answer may be called.
    """
    seen: list[str] = []
    with ExitStack() as watches:
        kinds = [name.removeprefix(ATEN) for name in forbidden if name.startswith(ATEN)]
        # what is not loaded is not called; to import it here would take seconds
        objects = {value: name for name in forbidden if (value := loaded(name))}
        own = list(_functions(answer))
        for value, name in objects.items():
            for function in _functions(value):
                if function in own:
                    continue
                watches.enter_context(_replaced(function, partial(_note, seen, name)))
        if objects:
            watches.enter_context(_Watch(objects, seen))
        if kinds:
            watches.enter_context(_Computing(kinds, seen))
        yield seen


def _note(seen: list[str], name: str) -> None:
    if name not in seen:
        seen.append(name)


@contextmanager
def _replaced(function: types.FunctionType, note: Callable[[], None]) -> Iterator[None]:
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


class _Watch(TorchFunctionMode):
    def __init__(self, functions: dict[Any, str], seen: list[str]):
        super().__init__()
        self._functions, self._seen = functions, seen

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if name := self._functions.get(function):
            _note(self._seen, name)
        return function(*args, **(kwargs or {}))


class _Computing:
    """Notes the kinds of operations that torch computes, until it is left."""

    def __init__(self, kinds: list[str], seen: list[str]):
        self._kinds, self._seen = kinds, seen

    def __enter__(self) -> None:
        for kind in self._kinds:
            _observe(kind)
        _computing.append(self)

    def __exit__(self, *exception: object) -> None:
        _computing.remove(self)

    def note(self, name: str) -> None:
        """Note an operation if it is of a kind that is watched for here."""
        if any(kind in name for kind in self._kinds):
            _note(self._seen, ATEN + name)


# between autograd and every device's own kernels: whatever is computed, by what name it was called
# or through which layer, passes here; where no kernel stands, nothing is spent on it
_KEY = torch._C.DispatchKey.BackendSelect
_BELOW = torch._C._dispatch_keyset_full_after(_KEY)
_kernels = torch.library.Library("aten", "IMPL", _KEY.name)
_computing: list[_Computing] = []


@cache
def _observe(kind: str) -> None:
    """Let each operation of a kind tell those who watch when it is computed, from now on."""
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        packet, _, overload = name.partition(".")
        if space != "aten" or kind not in packet:
            continue
        # what has a kernel here makes tensors of none, or is observed already
        if not torch._C._dispatch_has_kernel_for_dispatch_key(full, _KEY.name):
            operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
            _kernels.impl(operation, partial(_computed, operation), with_keyset=True)


def _computed(operation: torch._ops.OpOverload, keys: Any, *args: Any, **kwargs: Any) -> Any:
    for watch in _computing:
        watch.note(operation.overloadpacket.__name__)
    return operation.redispatch(keys & _BELOW, *args, **kwargs)


@cache
def resolve(name: str) -> Any:
    """Return the object of a dotted name, its module imported first; None where there is none."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            importlib.import_module(".".join(parts[:cut]))
            break
        except ImportError:
            continue
    return loaded(name)


def loaded(name: str) -> Any:
    """Return the object of a dotted name, or None; nothing is imported for it."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        if value := sys.modules.get(".".join(parts[:cut])):
            for part in parts[cut:]:
                value = getattr(value, part, None)
            return value
    return None


def _functions(value: Any) -> Iterator[types.FunctionType]:
    if isinstance(value, type) and issubclass(value, nn.Module):
        value = value.forward
    return functions(value)
