"""Calls that an answer may not make: looked for in its source, and seen while it runs.

Names are dotted ("torch.softmax", "torch.Tensor.softmax", "course_lib.attention.softmax").
Seeing them at run time is a help for honest learners, not a defence.
"""

import ast
import importlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

from course_lib.exercises.source import functions


def aliases(names: dict[str, Any]) -> dict[str, str]:
    """Map each name of a scope to the dotted name that it stands for, where it has one."""
    dotted = {}
    for name, value in names.items():
        if isinstance(value, types.ModuleType):
            dotted[name] = value.__name__
        elif (module := getattr(value, "__module__", None)) and hasattr(value, "__qualname__"):
            dotted[name] = f"{module}.{value.__qualname__}"
    return dotted


def in_source(source: str, known: dict[str, str], forbidden: tuple[str, ...]) -> list[str]:
    """List the forbidden names that a source mentions, first come first.

    `known` maps names to the dotted names that they stand for; imports inside the source count
    too. A method of unknown origin (`scores.softmax`) is matched by its last name.
    """
    tree = ast.parse(source)
    known = known | _imports(tree)
    canonical = {_canonical(name): name for name in forbidden}
    methods = {name.rpartition(".")[2]: name for name in forbidden if ".Tensor." in name}
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        root, *path = _chain(node)
        if root in known and root not in own:
            name = canonical.get(_canonical(".".join([known[root], *path])))
        else:
            name = methods.get(path[-1]) if path else None
        if name and name not in found:
            found.append(name)
    return found


@contextmanager
def watching(forbidden: tuple[str, ...], answer: Any = None) -> Iterator[list[str]]:
    """Collect the forbidden names that are called inside the block, first come first.

    A component that is itself the answer may be called.
    """
    seen: list[str] = []
    if not forbidden:
        yield seen
        return
    codes = {code: name for name in forbidden for code in _codes(_resolve(name))}
    for code in _codes(answer):
        codes.pop(code, None)
    mode = _Watch({_resolve(name): name for name in forbidden if _resolve(name)}, seen)

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
def _resolve(name: str) -> Any:
    """Return the object of a dotted name, or None where there is none."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part, None)
        return value
    return None


@cache
def _canonical(name: str) -> str:
    """Return one name for all the paths by which an object can be reached."""
    value = _resolve(name)
    if callable(value) and not isinstance(value, types.ModuleType):
        return f"{type(value).__name__} {id(value)}"
    return name


def _codes(value: Any) -> list[types.CodeType]:
    if isinstance(value, type) and issubclass(value, nn.Module):
        value = value.forward
    return [function.__code__ for function in functions(value)]


def _imports(tree: ast.AST) -> dict[str, str]:
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return known


def _chain(node: ast.AST) -> list[str]:
    """Read `a.b.c` as ["a", "b", "c"]; anything but a name at its root reads as ""."""
    path = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    path.append(node.id if isinstance(node, ast.Name) else "")
    return path[::-1]
