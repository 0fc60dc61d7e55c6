"""Slips: the reference with one thing in its formula otherwise, and what that is in words.

A function in the place of another, forgotten or called twice, a bracket that closes too early or
too late, a sign, the other axis. Unlike the edits in `proof`, each is one that people make.
"""

import ast
import copy
import importlib
import inspect
import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from course_lib.answers.source import function_in, source_of
from course_lib.checking.exercise import Exercise
from course_lib.checking.telling.additions import (
    HELPERS,
    called,
    elsewhere,
    is_bound,
    is_part,
    left_out,
    more,
    other_bounds,
    other_pairs,
    other_softmaxes,
)

ALIKE = (
    ("tanh", "sigmoid", "relu"),
    ("sin", "cos"),
    ("softmax", "sigmoid"),
    ("mean", "sum", "max", "min"),
    ("exp", "exp2", "square"),
    ("sqrt", "square"),
    ("triu", "tril"),
    ("argmax", "argmin"),
    ("elu", "relu"),
)
OPERATORS: dict[type[ast.operator], tuple[tuple[str, type[ast.operator], str], ...]] = {
    ast.Add: (("+", ast.Sub, "-"), ("+", ast.Mult, "*")),
    ast.Sub: (("-", ast.Add, "+"),),
    ast.Mult: (("*", ast.Div, "/"), ("*", ast.Add, "+")),
    ast.Div: (("/", ast.Mult, "*"), ("/", ast.FloorDiv, "//")),
    ast.Pow: (("**", ast.Mult, "*"),),
}
# what a formula names; how tensors are laid out is everybody's own affair
NAMED = {name for group in ALIKE for name in group} | {"log", "abs", "floor", "ceil", "cumsum"}
AXES = {-1: (-2, 0), -2: (-1, 0), -3: (-1, -2)}


@lru_cache(maxsize=256)
def slips(exercise: Exercise) -> list[tuple[str, Callable]]:
    """List, for each slip that the reference leaves room for, how to say it and the wrong answer.

    What is said completes "The result is what the right one would be ...".
    """
    tree = ast.parse(source_of(exercise.reference))
    namespace = dict(vars(importlib.import_module(exercise.reference.__module__)))
    own = {
        name
        for name, value in namespace.items()
        if getattr(value, "__module__", "").startswith("course_lib.")
    }
    names = NAMED | own | set(inspect.signature(exercise.reference).parameters)
    given = {parameter.name for parameter in exercise.parameters}
    body = ast.Module(function_in(tree, exercise.method).body, [])
    namespace |= {"__name__": "__answer__"} | HELPERS
    return [
        (said, _defined(tree, new, namespace)[exercise.name])
        for said, new in _replacements(body, names, given)
    ]


def _defined(tree: ast.Module, new: dict[int, ast.expr], namespace: dict) -> dict[str, Any]:
    """Execute the source with these nodes in the place of others."""
    # where the copy would come to an old node, it finds the new one
    changed = ast.fix_missing_locations(copy.deepcopy(tree, dict(new)))
    defined = dict(namespace)
    exec(compile(changed, "<slip>", "exec", dont_inherit=True), defined)
    return defined


def _replacements(
    body: ast.AST, names: set[str], given: set[str]
) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Yield how each slip is said, and the nodes that it puts in the place of others."""
    nodes = [x for x in ast.walk(body) if isinstance(x, ast.expr)]
    for old, new in _other_functions(nodes):
        found = {id(x): _renamed(x, new) for x in nodes if called(x) == old}
        said = f"with `{new}` in the place of `{old}`"
        if len(found) > 1:
            yield f"{said}, each time", found
        yield from ((said, {place: node}) for place, node in found.items())
    for node in nodes:
        found = _calls(node) if called(node) in names or is_part(node) else _slips(node)
        found = itertools.chain(found, other_softmaxes(node), other_bounds(node))
        yield from ((said, {id(node): new}) for said, new in found)
    yield from _other_names(body, nodes, given)
    yield from other_pairs(nodes, given, names)
    yield from left_out(nodes, given)
    yield from more(body)
    yield from elsewhere(body, nodes, names)


def _other_names(
    body: ast.AST, nodes: list[ast.expr], given: set[str]
) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Put an argument, or what was computed before, in the place of another, once."""
    bound = given | {x.id for x in ast.walk(body) if isinstance(x, ast.Name) and is_bound(x)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in bound and not is_bound(node):
            for name in sorted(given - {node.id}):
                said = f"with `{name}` in the place of `{node.id}`, in one place"
                yield said, {id(node): ast.Name(name, node.ctx)}


def _other_functions(nodes: list[ast.expr]) -> Iterator[tuple[str, str]]:
    """Pair each function that is called with those that it is taken for."""
    for old in dict.fromkeys(filter(None, map(called, nodes))):
        yield from ((old, new) for group in ALIKE if old in group for new in group if new != old)


def _renamed(node: ast.expr, name: str) -> ast.expr:
    match node:
        case ast.Call(ast.Attribute(ast.Name("F"), _) as function, given, named):
            owner = ast.Attribute(ast.Name("torch", ast.Load()), name, function.ctx)
            return ast.Call(owner, given, named)
        case ast.Call(ast.Attribute(owner, _) as function, given, named):
            return ast.Call(ast.Attribute(owner, name, function.ctx), given, named)
        case ast.Call(ast.Name("reduce"), [x, pattern, _], named):
            return ast.Call(node.func, [x, pattern, ast.Constant(name)], named)
        case ast.Call(_, given, named):
            torch = ast.Name("torch", ast.Load())
            return ast.Call(ast.Attribute(torch, name, ast.Load()), given, named)
    return node


def _calls(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield what becomes of a call that is forgotten, made twice, or holds for one term alone."""
    match node:
        case ast.Call(function, [first, *rest], named) if not isinstance(first, ast.Starred):
            name = called(node)
            yield f"without `{name}`", first
            again = ast.Call(function, [node, *rest], named)
            yield f"with `{name}` twice, the second time on its own result", again
            said = f"with `{name}` around a part of its argument alone"
            for inside, outside in _parts(first):
                yield said, outside(ast.Call(function, [inside, *rest], named))


def _parts(node: ast.expr) -> Iterator[tuple[ast.expr, Callable[[ast.expr], ast.expr]]]:
    """Yield each part of a sum or product, and what puts another in its place."""
    if isinstance(node, ast.BinOp):
        for side, other in (("left", node.left), ("right", node.right)):

            def put(new: ast.expr, side: str = side) -> ast.expr:
                both = {"left": node.left, "right": node.right} | {side: new}
                return ast.BinOp(both["left"], node.op, both["right"])

            yield other, put
            for inside, outside in _parts(other):
                yield inside, lambda new, put=put, outside=outside: put(outside(new))


def _slips(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.BinOp(left, op, right):
            for old, other, new in OPERATORS.get(type(op), ()):
                said = f"with `{new}` in the place of a `{old}`"
                yield said, ast.BinOp(left, other(), right)
            if type(op) in OPERATORS:
                sign = OPERATORS[type(op)][0][0]
                yield f"without what stands before a `{sign}`", right
                yield f"without what stands behind a `{sign}`", left
            yield from _regrouped(left, op, right)
            yield from _taken_in(left, op, right)
            yield from _exchanged(node)
            yield from _cut_off(node)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() as axis)):
            for other in AXES.get(-axis, ()):
                said = f"with the axis {other} in the place of {-axis}"
                yield said, ast.Constant(other)
        case ast.UnaryOp(
            ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), number), ast.FloorDiv() as down, by)
        ):
            yield "rounded down where it is to be rounded up", ast.BinOp(number, down, by)


def _taken_in(left: ast.expr, op: ast.operator, right: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Close the bracket of a function behind what its result should be multiplied by."""
    match left, op:
        case ast.Call(ast.Attribute(_, name) as function, [inside], named), ast.MatMult():
            product = ast.Call(function, [ast.BinOp(inside, ast.Mult(), right)], named)
            total = ast.Call(
                ast.Attribute(product, "sum", ast.Load()),
                [ast.UnaryOp(ast.USub(), ast.Constant(1))],
                [],
            )
            yield f"with the last product inside `{name}`", total
        case ast.Call(ast.Attribute(_, name) as function, [inside], named), ast.Mult() | ast.Div():
            yield (
                f"with the last product inside `{name}`",
                ast.Call(function, [ast.BinOp(inside, op, right)], named),
            )


def _exchanged(node: ast.BinOp) -> Iterator[tuple[str, ast.expr]]:
    """Exchange two names in a part of the formula."""
    names = sorted({x.id for x in ast.walk(node) if isinstance(x, ast.Name)})
    for a, b in itertools.combinations(names, 2):
        new = copy.deepcopy(node)
        for x in ast.walk(new):
            if isinstance(x, ast.Name) and x.id in (a, b):
                x.id = a if x.id == b else b
        yield f"with `{a}` and `{b}` exchanged in a part of it", new


def _cut_off(node: ast.BinOp) -> Iterator[tuple[str, ast.expr]]:
    """Cut a quotient or a root off to a whole number."""
    match node:
        case ast.BinOp(left, ast.Div(), right):
            divide = ast.Name("_slip_divided", ast.Load())
            yield "with `//` in the place of a `/`", ast.Call(divide, [left, right], [])
        case ast.BinOp(_, ast.Pow(), ast.Constant(0.5)):
            whole = ast.Name("_slip_whole", ast.Load())
            yield "with a root rounded down to a whole number", ast.Call(whole, [node], [])


def _regrouped(left: ast.expr, op: ast.operator, right: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Set the brackets of two operations otherwise."""
    said = "with its brackets elsewhere, such as (a + b) * c in the place of a + b * c"
    match left, op, right:
        case ast.BinOp(a, inner, b), _, _ if type(inner) is not type(op):
            yield said, ast.BinOp(a, inner, ast.BinOp(b, op, right))
        case _, _, ast.BinOp(a, inner, b) if type(inner) is not type(op):
            yield said, ast.BinOp(ast.BinOp(left, op, a), inner, b)
