"""What nobody asked for, put into a formula: an operation more, earlier or later, other arguments.

Each function yields how that is said, and the nodes that it puts in the place of others; or, of
one node, how it is said and the node that it becomes.
"""

import ast
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.attention import softmax


def called(node: ast.expr) -> str | None:
    """Name the function that is called here, or that einops is told to reduce by."""
    match node:
        case ast.Call(ast.Attribute(_, name)) | ast.Call(ast.Name(name)):
            return name if name != "reduce" else str(ast.literal_eval(node.args[2]))
    return None


def is_part(node: ast.expr) -> bool:
    """Tell whether a part of the module itself is called."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self.")


def is_bound(node: ast.Name) -> bool:
    """Tell whether a name is given a value here."""
    return isinstance(node.ctx, ast.Store)


def left_out(nodes: list[ast.expr], given: set[str]) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Take ones for an argument once, or let its loop have another number of rounds."""
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in given and not is_bound(node):
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


def more(body: ast.AST) -> Iterator[tuple[str, dict[int, ast.expr]]]:
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


def elsewhere(
    body: ast.AST, nodes: list[ast.expr], names: set[str]
) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Call a function of one argument earlier or later than it should be."""
    values = [x.value for x in ast.walk(body) if isinstance(x, ast.Assign | ast.Return) and x.value]
    for node in nodes:
        match node:
            case ast.Call(function, [first], named) if called(node) in names or is_part(node):
                for value in values:
                    if value is not node and not _holds(value, node) and not _holds(node, value):
                        moved = {id(node): first, id(value): ast.Call(function, [value], named)}
                        yield f"with `{called(node)}` in another place", moved


def _holds(outer: ast.AST, inner: ast.AST) -> bool:
    return any(x is inner for x in ast.walk(outer))


def other_pairs(
    nodes: list[ast.expr], given: set[str], names: set[str]
) -> Iterator[tuple[str, dict[int, ast.expr]]]:
    """Hand two other arguments to a function or a part of the module, in one call."""
    for node in nodes:
        if not isinstance(node, ast.Call) or not (called(node) in names or is_part(node)):
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
                yield f"{said}, in `{called(node)}`", both


def other_softmaxes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Let a softmax run over the queries, or leave out what is on the diagonal."""
    match node:
        case ast.Call(ast.Name("softmax"), given, named):
            for said, name in (
                ("with a softmax over the queries, not the keys", "_slip_over_queries"),
                ("if no token looked at itself", "_slip_not_itself"),
            ):
                yield said, ast.Call(ast.Name(name, ast.Load()), given, named)


def other_bounds(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Clip to other bounds, as whoever shifts before or after would have to."""
    match node:
        case ast.Call(ast.Attribute(_, "clamp" | "clip") as function, [*rest, low, high], []):
            zero, twice = ast.Constant(0), ast.BinOp(ast.Constant(2), ast.Mult(), high)
            for bounds in ((zero, high), (low, zero), (zero, twice)):
                shown = " and ".join(map(ast.unparse, bounds))
                yield f"with the bounds {shown}", ast.Call(function, [*rest, *bounds], [])


def _ones(x: Any) -> Any:
    """Return a mask that is True everywhere, or the number 1. Raises TypeError for all else."""
    if type(x) is int:
        return 1
    if not isinstance(x, Tensor) or x.dtype != torch.bool:
        raise TypeError("nobody takes ones for numbers")
    return torch.ones_like(x)


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
