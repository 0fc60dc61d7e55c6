"""What a learner begins with, made of the reference: its comments are what is to be done."""

import ast
import sys
import textwrap
from collections.abc import Callable, Collection
from typing import Any

from torch import Tensor

from course_lib.answers.source import (
    as_source,
    given,
    names_bound,
    source_of,
    without_docstring,
)

TOOLS = 6  # that the last hint names
EVERYDAY = ("apply", "dim", "float", "item", "max", "min", "new_zeros", "to", "tolist")


def stub(reference: Callable, methods: Collection[str] = ()) -> str:
    """Return the source with its guards, the comments of its steps as TODOs, and no more.

    Of a class only the `methods` are emptied.
    """
    source = source_of(reference)
    for method in methods or (None,):
        source = emptied(source, method)
    return source


def emptied(source: str, method: str | None) -> str:
    """Take the steps out of a function, or of one method of a class: see `stub`."""
    function = as_source(source).function(method)
    lines, body = source.splitlines(), without_docstring(function)
    before = _before_steps(function)
    comments = [n for n in range(before, function.end_lineno or 0) if _is_comment(lines[n])]
    # what comes before the first step is given, if it refuses or settles something
    leading = [x for x in body if comments and x.lineno <= comments[0]]
    kept = given(leading)
    first = (kept[-1].end_lineno or 0) if kept else before
    steps, previous = [], -2
    for number in comments:
        text = lines[number].strip()
        steps.append(f"#   {text[1:].strip()}" if number == previous + 1 else f"# TODO: {text[2:]}")
        previous = number
    indent = " " * function.body[0].col_offset
    todo = [indent + step for step in (*steps, "raise NotImplementedError")]
    return "\n".join([*lines[:first], *todo, *lines[function.end_lineno :]]) + "\n"


def with_comment(source: str, method: str | None, comment: str) -> str:
    """Put a comment below the docstring of a function, or of one method of a class."""
    function, lines = as_source(source).function(method), source.splitlines()
    indent, before = " " * function.body[0].col_offset, _before_steps(function)
    wrapped = textwrap.wrap(comment, 98 - len(indent), break_on_hyphens=False)
    comments = [f"{indent}# {line}" for line in wrapped]
    return "\n".join([*lines[:before], *comments, *lines[before:]]) + "\n"


def with_steps_of(source: str, method: str | None, other: str) -> str:
    """Put the steps of another function into a function, or into one method of a class."""
    own, theirs = as_source(source).function(method), as_source(other).function(None)
    lines, steps = (
        source.splitlines(),
        other.splitlines()[_before_steps(theirs) : theirs.end_lineno],
    )
    indented = textwrap.indent(textwrap.dedent("\n".join(steps)), " " * own.body[0].col_offset)
    return "\n".join([*lines[: _before_steps(own)], indented, *lines[own.end_lineno :]]) + "\n"


def tools(reference: Callable, method: str | None) -> tuple[str, ...]:
    """Name what the steps of a function, or of one method of a class, call of torch and others.

    A method is named alone, `masked_fill`, a function of a module with it, `torch.where`; first
    come first, `TOOLS` at most. Left out is what a stub gives, what belongs to the object itself,
    and the course's own components, which earlier exercises have built.
    """
    function, scope = source_of(reference).function(method), vars(sys.modules[reference.__module__])
    body = without_docstring(function)
    steps = ast.Module(body[len(given(body)) :], [])
    own = {x.arg for x in function.args.args} | set(names_bound(steps))
    nodes = [x for x in ast.walk(steps) if isinstance(x, ast.expr)]
    nodes.sort(key=lambda x: (x.lineno, x.col_offset))
    found = filter(None, (_tool(node, own) for node in nodes))
    return tuple(x for x in dict.fromkeys(found) if _is_tool(x, scope.get(x)))[:TOOLS]


def _is_tool(name: str, value: Any) -> bool:
    """Return True for what another package brings: a method of tensors, or an imported function."""
    if name in EVERYDAY:
        return False
    if value is None:
        return not name.isidentifier() or hasattr(Tensor, name) or hasattr(str, name)
    return not value.__module__.startswith("course_lib.")


def _tool(node: ast.expr, own: Collection[str]) -> str | None:
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return "@"
        case ast.Attribute(attr="mT"):
            return "mT"
        case ast.Call(ast.Attribute(ast.Name(module), name)) if module in ("torch", "F", "math"):
            return f"{module}.{name}"
        case ast.Call(ast.Attribute(_, name)) if not _is_of_self(node):
            return name
        case ast.Call(ast.Name(name)) if name not in own:
            return name
    return None


def _is_of_self(node: ast.Call) -> bool:
    return any(isinstance(x, ast.Name) and x.id == "self" for x in ast.walk(node.func))


def _before_steps(function: ast.FunctionDef) -> int:
    """Return the last line of a function's docstring, or else of its signature."""
    documented = ast.get_docstring(function) is not None
    return (function.body[0].end_lineno or 0) if documented else function.body[0].lineno - 1


def _is_comment(line: str) -> bool:
    return line.strip().startswith("#")
