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

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.answers.source import function_in, source_of
from course_lib.attention import softmax
from course_lib.checking.exercise import Exercise

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


def _ones(x: Any) -> Any:
    """Return the same with ones in it, True in a mask."""
    return torch.ones_like(x) if isinstance(x, Tensor) else type(x)(1)


def _normalised(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def _divided(x: Any, y: Any) -> Any:
    """Divide, and cut the result off to a whole number."""
    if isinstance(x, Tensor) or isinstance(y, Tensor):
        return torch.div(x, y, rounding_mode="trunc")
    return int(x / y)


def _whole(x: Any) -> Any:
    return x.trunc() if isinstance(x, Tensor) else int(x)


def _over_queries(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    return softmax(scores.mT, None if mask is None else mask.mT).mT


def _not_itself(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    others = ~torch.eye(*scores.shape[-2:], dtype=torch.bool, device=scores.device)
    return softmax(scores, others if mask is None else others & mask)


HELPERS = {
    "_slip_over_queries": _over_queries,
    "_slip_not_itself": _not_itself,
    "_slip_ones": _ones,
    "_slip_normalised": _normalised,
    "_slip_divided": _divided,
    "_slip_whole": _whole,
}


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
        found = {id(x): _renamed(x, new) for x in nodes if _called(x) == old}
        said = f"with `{new}` in the place of `{old}`"
        if len(found) > 1:
            yield f"{said}, each time", found
        yield from ((said, {place: node}) for place, node in found.items())
    for node in nodes:
        found = _calls(node) if _called(node) in names or _is_part(node) else _slips(node)
        found = itertools.chain(found, _softmaxes(node), _bounds(node))
        yield from ((said, {id(node): new}) for said, new in found)
    yield from _other_names(body, nodes, given)
    yield from _other_pairs(nodes, given, names)
    yield from _left_out(nodes, given)
    yield from _more(body)
    yield from _elsewhere(body, nodes, names)


def _other_names(
    body: ast.AST, nodes: list[ast.expr], given: set[str]
) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Put an argument, or what was computed before, in the place of another, once."""
    bound = given | {x.id for x in ast.walk(body) if isinstance(x, ast.Name) and _is_bound(x)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in bound and not _is_bound(node):
            for name in sorted(given - {node.id}):
                said = f"with `{name}` in the place of `{node.id}`, in one place"
                yield said, {id(node): ast.Name(name, node.ctx)}


def _left_out(nodes: list[ast.expr], given: set[str]) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Take ones for an argument once, or let its loop have another number of rounds."""
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in given and not _is_bound(node):
            ones = ast.Call(ast.Name("_slip_ones", ast.Load()), [node], [])
            yield f"with ones for `{node.id}`, in one place", {id(node): ones}
        match node:
            case ast.Call(ast.Name("range"), [end], []):
                fewer = ast.BinOp(end, ast.Sub(), ast.Constant(1))
                yield "with one round of its loop too few", {id(end): fewer}
                for rounds in (1, 2, 3):
                    said = f"with {rounds} round{'s' * (rounds > 1)} of its loop at most"
                    least = ast.Call(ast.Name("min", ast.Load()), [end, ast.Constant(rounds)], [])
                    yield said, {id(end): least}


MORE: dict[str, str] = {
    "with a tanh around a part of it": "{}.tanh()",
    "with a relu around a part of it": "{}.relu()",
    "with a sigmoid around a part of it": "{}.sigmoid()",
    "with a softmax around a part of it": "{}.softmax(-1)",
    "with a part of it brought to length one": "{0} / {0}.norm(dim=-1, keepdim=True)",
    "with a part of it normalised to mean 0 and variance 1": "_slip_normalised({})",
    "with a part of it divided by the root of its size, once more than asked": (
        "{0} / {0}.shape[-1] ** 0.5"
    ),
    "with a part of it multiplied by the root of its size": "{0} * {0}.shape[-1] ** 0.5",
}


def _more(body: ast.AST) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Apply to an operand, an argument or a value of a name what nobody asked for."""
    parts: dict[str, ast.expr] = {}
    for node in ast.walk(body):
        match node:
            case ast.BinOp(left, ast.MatMult(), right):
                found = [left, right]
            case ast.Call(_, given, _):
                found = given
            case ast.Assign([ast.Name()], value):
                found = [value]
            case _:
                continue
        kinds = (ast.Name, ast.BinOp, ast.Call)
        parts |= {f"{id(x)}": x for x in found if isinstance(x, kinds)}
    for said, pattern in MORE.items():
        for part in parts.values():
            text = pattern.format(f"({ast.unparse(part)})")
            yield said, {id(part): ast.parse(text, mode="eval").body}


def _elsewhere(
    body: ast.AST, nodes: list[ast.expr], names: set[str]
) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Call a function of one argument earlier or later than it should be."""
    values = [x.value for x in ast.walk(body) if isinstance(x, ast.Assign | ast.Return) and x.value]
    for node in nodes:
        match node:
            case ast.Call(function, [first], named) if _called(node) in names or _is_part(node):
                for value in values:
                    if value is not node and not _holds(value, node) and not _holds(node, value):
                        moved = {id(node): first, id(value): ast.Call(function, [value], named)}
                        yield f"with `{_called(node)}` in another place", moved


def _holds(outer: ast.AST, inner: ast.AST) -> bool:
    return any(x is inner for x in ast.walk(outer))


def _other_pairs(
    nodes: list[ast.expr], given: set[str], names: set[str]
) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Hand two other arguments to a function or a part of the module, in one call."""
    for node in nodes:
        if not isinstance(node, ast.Call) or not (_called(node) in names or _is_part(node)):
            continue
        handed = [x for x in node.args if isinstance(x, ast.Name)]
        for a, b in itertools.combinations(handed, 2):
            for new in itertools.product(sorted(given), repeat=2):
                if new[0] == a.id or new[1] == b.id:
                    continue
                said = f"with `{new[0]}` and `{new[1]}` in the place of `{a.id}` and `{b.id}`"
                both: dict[int, ast.expr] = {
                    id(old): ast.Name(name, old.ctx) for old, name in zip((a, b), new, strict=True)
                }
                yield f"{said}, in `{_called(node)}`", both


def _is_bound(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _other_functions(nodes: list[ast.expr]) -> Iterator[tuple[str, str]]:
    """Pair each function that is called with those that it is taken for."""
    for old in dict.fromkeys(filter(None, map(_called, nodes))):
        yield from ((old, new) for group in ALIKE if old in group for new in group if new != old)


def _called(node: ast.expr) -> str | None:
    """Name the function that is called here, or that einops is told to reduce by."""
    match node:
        case ast.Call(ast.Attribute(_, name)) | ast.Call(ast.Name(name)):
            return name if name != "reduce" else str(ast.literal_eval(node.args[2]))
    return None


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


def _is_part(node: ast.expr) -> bool:
    """Tell whether a part of the module itself is called."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self.")


def _calls(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield what becomes of a call that is forgotten, made twice, or holds for one term alone."""
    match node:
        case ast.Call(function, [first, *rest], named) if not isinstance(first, ast.Starred):
            name = _called(node)
            yield f"without `{name}`", first
            again = ast.Call(function, [node, *rest], named)
            yield f"with `{name}` twice, the second time on its own result", again
            said = f"with `{name}` around a part of its argument alone"
            for inside, outside in _parts(first):
                yield said, outside(ast.Call(function, [inside, *rest], named))


def _softmaxes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Let a softmax run over the queries, or leave out what is on the diagonal."""
    match node:
        case ast.Call(ast.Name("softmax"), given, named):
            for said, name in (
                ("with a softmax over the queries, not the keys", "_slip_over_queries"),
                ("if no token looked at itself", "_slip_not_itself"),
            ):
                yield said, ast.Call(ast.Name(name, ast.Load()), given, named)


def _bounds(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Clip to other bounds, as whoever shifts before or after would have to."""
    match node:
        case ast.Call(ast.Attribute(_, "clamp" | "clip") as function, [*rest, low, high], []):
            zero, twice = ast.Constant(0), ast.BinOp(ast.Constant(2), ast.Mult(), high)
            for bounds in ((zero, high), (low, zero), (zero, twice)):
                shown = " and ".join(map(ast.unparse, bounds))
                yield f"with the bounds {shown}", ast.Call(function, [*rest, *bounds], [])


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
