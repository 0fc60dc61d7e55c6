"""Edits of a reference in one place: an operator exchanged, a term dropped, a number off by one,
or a large one by half.

Or an exception is not raised. What the stub gives, such as a guard, is left alone. Each edit is a
wrong answer that a check must catch, unless it changes nothing that can be seen; such ones are
listed by their exercise as `equivalent`.
"""

import ast
import copy
from collections.abc import Iterator

from course_lib.answers.source import function_in, source_of
from course_lib.checking.exercise import Exercise
from course_lib.checking.stubs import stub

EXCHANGED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def edits(exercise: Exercise) -> Iterator[tuple[str, str]]:
    """Yield each edit, as "old -> new", and the whole source with it."""
    source = source_of(exercise.reference)
    tree, empty = (ast.parse(x) for x in (source, stub(exercise.reference, exercise.methods)))
    for statement in (x for y in exercise.methods or (None,) for x in _asked(tree, empty, y)):
        for old in _nodes(statement):
            for new in _edited(old):
                # where the copy would come to the old node, it finds the new one
                changed = copy.deepcopy(tree, {id(old): new})
                yield f"{ast.unparse(old)} -> {ast.unparse(new)}", ast.unparse(changed)


def _asked(tree: ast.Module, empty: ast.Module, method: str | None) -> list[ast.stmt]:
    """Return what is left to write below what the stub gives: its docstring, its guards."""
    *given, _ = function_in(empty, method).body
    return function_in(tree, method).body[len(given) :]


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it but for what is raised: its text is nobody's answer."""
    yield node
    if not isinstance(node, ast.Raise):
        for child in ast.iter_child_nodes(node):
            yield from _nodes(child)


def _edited(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Raise():
            yield ast.Pass()
        case ast.BinOp(left, op, right):
            yield ast.BinOp(left, EXCHANGED[type(op)](), right)
            yield from (left, right)
        case ast.Compare(left, [op], right):
            yield ast.Compare(left, [EXCHANGED[type(op)]()], right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(EXCHANGED[type(op)](), values)
        case ast.UnaryOp(_, operand):
            yield operand
        case ast.Constant(int() | float() as number) if type(number) is not bool:
            # a large number that is off by one gives nearly the right result
            step = 1 if abs(number) < 100 else number // 2
            yield from (ast.Constant(number + step), ast.Constant(number - step))
        case ast.Call(ast.Attribute(ast.Name("torch" | "F"), _), [first, *_]):
            if not isinstance(first, ast.Starred):
                yield first
        case ast.Call(ast.Attribute(receiver, _), _):
            yield receiver
        case ast.Call(ast.Name(), [first, *_]):
            yield first
