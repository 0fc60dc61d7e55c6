"""Calls that an answer may not make, seen while it runs: a help for honest learners, no defence.

Names are dotted ("torch.softmax", "torch.Tensor.softmax", "course_lib.attention.softmax").
"""

import importlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

from course_lib.answers.source import functions


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
    if not forbidden:
        yield seen
        return
    codes = {code: name for name in forbidden for code in _codes(resolve(name))}
    for code in _codes(answer):
        codes.pop(code, None)
    mode = _Watch({resolve(name): name for name in forbidden if resolve(name)}, seen)

    def profile(frame, event, _):
        name = codes.get(frame.f_code) if event == "call" else None
        if name and name not in seen:
            seen.append(name)

    profiled = sys.getprofile() is not None  # by somebody else: leave theirs in place
    with mode:
        if not profiled:
            sys.setprofile(profile)
        try:
            yield seen
        finally:
            if not profiled:
                sys.setprofile(None)


class _Watch(TorchFunctionMode):
    def __init__(self, functions: dict[Any, str], seen: list[str]):
        super().__init__()
        self._functions, self._seen = functions, seen

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = self._functions.get(function)
        if name and name not in self._seen:
            self._seen.append(name)
        return function(*args, **(kwargs or {}))


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


def _codes(value: Any) -> list[types.CodeType]:
    if isinstance(value, type) and issubclass(value, nn.Module):
        value = value.forward
    return [function.__code__ for function in functions(value)]
