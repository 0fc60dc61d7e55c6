"""A function in single steps: one operation a line, each result under a name of its own.

The text computes what it did, in the same order, and has hardly a line in common with it. What
Python does not compute at once, or not always, stays whole: a function in a function, what is
computed for each item, the branches of a condition.
"""

import ast
import hashlib
import keyword
from collections.abc import Collection
from typing import TypeVar

from course_lib.answers.source import function_in, names_bound, source_of
from course_lib.checking.exercise import Exercise
from course_lib.checking.stubs import stub, with_steps_of

WORDS = {
    ast.Add: "total", ast.Sub: "difference", ast.Mult: "product", ast.Div: "quotient",
    ast.FloorDiv: "quotient", ast.Mod: "remainder", ast.Pow: "power", ast.MatMult: "product",
    ast.BitAnd: "both", ast.BitOr: "either",
}  # fmt: skip
APART = ast.BinOp | ast.Call | ast.Compare | ast.UnaryOp | ast.Subscript
Node = TypeVar("Node", bound=ast.AST)
WHOLE = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.JoinedStr


def single_steps(exercise: Exercise, source: str, salt: str = "") -> str:
    """Take an answer apart, or what is to be written of a class; what the stub gives stays.

    The `salt` draws the numbers in the names: no two readers have the same text.
    """
    empty = ast.parse(stub(exercise.reference, exercise.methods))
    text = source_of(exercise.reference)
    for method in exercise.methods or (None,):
        function = function_in(ast.parse(source), method)
        given = len(function_in(empty, method).body) - 1
        before = function.body[:given]
        kept = {x.arg for x in ast.walk(function.args) if isinstance(x, ast.arg)}
        steps = _Steps(kept.union(*map(names_bound, before)), salt)
        function.body = [*before, *steps.block(function.body[given:])]
        text = with_steps_of(text, method, ast.unparse(ast.fix_missing_locations(function)))
    return text


class _Steps:
    """Statements as they are written down; `names` maps the old variables to the new ones."""

    def __init__(self, kept: Collection[str], salt: str):
        self._salt, self._taken = salt, {*kept, *keyword.kwlist}
        self._kept, self._names = kept, dict[str, str]()
        self._lines: list[ast.stmt] = []

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Take some statements apart, one after the other."""
        outer, self._lines = self._lines, []
        for statement in statements:
            self._lines.append(self._statement(statement))
        inner, self._lines = self._lines, outer
        return inner

    def _statement(self, node: ast.stmt) -> ast.stmt:
        match node:
            case ast.Assign(targets, value):
                value = self._apart(value)
                return ast.Assign([self._target(x, value) for x in targets], value)
            case ast.AnnAssign(target, _, ast.expr() as value):
                value = self._apart(value)
                return ast.Assign([self._target(target, value)], value)
            case ast.AugAssign(target, op, value):
                value = self._operand(value)
                return ast.AugAssign(self._renamed(target), op, value)
            case ast.Return(ast.expr() as value):
                return ast.Return(self._apart(value))
            case ast.Expr(value):
                return ast.Expr(self._apart(value))
            case ast.If(test, body, orelse):
                test = self._apart(test)
                return ast.If(test, self.block(body), self.block(orelse))
            case ast.For(target, iterable, body, orelse):
                iterable = self._apart(iterable)
                target = self._target(target, ast.Name("item"))
                return ast.For(target, iterable, self.block(body), self.block(orelse))
            case ast.While(test, body, orelse):
                return ast.While(self._renamed(test), self.block(body), self.block(orelse))
            case ast.With(items, body):
                return ast.With([self._renamed(x) for x in items], self.block(body))
        return self._renamed(node)

    def _apart(self, node: ast.expr) -> ast.expr:
        """Return an expression whose operands are names; what computes these is written down."""
        match node:
            case ast.BinOp(left, op, right):
                return ast.BinOp(self._operand(left), op, self._operand(right))
            case ast.UnaryOp(op, operand):
                return ast.UnaryOp(op, self._operand(operand))
            case ast.Compare(left, ops, comparators):
                return ast.Compare(self._operand(left), ops, [*map(self._operand, comparators)])
            case ast.Call(ast.Attribute(value, name), arguments, keywords):
                function = ast.Attribute(self._operand(value), name, ast.Load())
                return self._call(function, arguments, keywords)
            case ast.Call(function, arguments, keywords):
                return self._call(self._renamed(function), arguments, keywords)
            case ast.Tuple(items) | ast.List(items):
                return type(node)([*map(self._operand, items)], ast.Load())
            case ast.Starred(value):
                return ast.Starred(self._operand(value), ast.Load())
            case ast.Subscript(value, index):
                return ast.Subscript(self._operand(value), self._renamed(index), ast.Load())
            case ast.Attribute(value, name):
                return ast.Attribute(self._operand(value), name, ast.Load())
            case ast.IfExp(test, body, orelse):
                branches = self._renamed(body), self._renamed(orelse)
                return ast.IfExp(self._operand(test), *branches)
        return self._renamed(node)

    def _call(
        self, function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword]
    ) -> ast.Call:
        operands = [*map(self._operand, arguments)]
        named = [ast.keyword(x.arg, self._operand(x.value)) for x in keywords]
        return ast.Call(function, operands, named)

    def _operand(self, node: ast.expr) -> ast.expr:
        """Return an expression, or the name of a new line that computes it."""
        if isinstance(node, WHOLE) or not isinstance(node, APART) or _is_plain(node):
            return self._apart(node)
        value = self._apart(node)
        name = self._new(_word(value))
        self._lines.append(ast.Assign([ast.Name(name, ast.Store())], value))
        return ast.Name(name, ast.Load())

    def _target(self, node: ast.expr, value: ast.expr) -> ast.expr:
        for name in names_bound(node):
            if name not in self._kept and name not in self._names:
                self._names[name] = self._new(_word(value))
        return self._renamed(node)

    def _renamed(self, node: Node) -> Node:
        for x in ast.walk(node):
            if isinstance(x, ast.Name):
                x.id = self._names.get(x.id, x.id)
        return node

    def _new(self, word: str) -> str:
        """Return a name that nothing has yet: a word, and a number that the salt draws."""
        for turn in range(1000):
            drawn = hashlib.sha256(f"{self._salt}\0{word}\0{turn}".encode()).digest()
            name = f"{word}_{int.from_bytes(drawn[:4]) % 90 + 10}"
            if name not in self._taken:
                self._taken.add(name)
                return name
        raise ValueError(f"more than a few dozen results are called {word}")


def _is_plain(node: ast.expr) -> bool:
    """Tell what is as short as a name: a size, a negative number."""
    match node:
        case ast.Subscript(value, index):
            return _is_plain(value) and isinstance(index, ast.Constant | ast.UnaryOp)
        case ast.Attribute(value):
            return _is_plain(value)
        case ast.UnaryOp(_, operand):
            return isinstance(operand, ast.Constant)
        case ast.Call(ast.Name("super")):
            return True
    return isinstance(node, ast.Name | ast.Constant)


def _word(node: ast.expr) -> str:
    """Name what an expression gives: by its operation, or by the function that it calls."""
    match node:
        case ast.BinOp(_, op):
            return WORDS.get(type(op), "result")
        case ast.Call(ast.Attribute(_, name) | ast.Name(name)):
            return name.strip("_").lower()
        case ast.Compare():
            return "holds"
        case ast.Subscript():
            return "part"
        case ast.Name("item"):
            return "item"
    return "value"
