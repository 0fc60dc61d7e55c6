"""What the names in a source may stand for, found scope by scope and without running it.

A name stands for everything that its scope ever gives it: each import, each alias, and, for what a
failing statement would leave free, the built-in function of that name.
"""

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from course_lib.answers.dotted_names import loaded

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Mention(NamedTuple):
    """A name with the attributes read from it: `nn.functional.relu`, or `.relu` of anything else.

    `targets` are the dotted names that it may stand for, attributes included. One that is
    `renamed` is the whole right side of `name = ...`, whose left side stands for the same.
    """

    node: ast.Name | ast.Attribute
    targets: frozenset[str]
    path: tuple[str, ...]
    renamed: bool = False


class Import(NamedTuple):
    """One name that an import gives, and the dotted name that it stands for."""

    name: str
    target: str
    in_class: bool


@dataclass(frozen=True)
class Names:
    """The tree of a source, and all that it imports and mentions."""

    tree: ast.Module
    imports: list[Import]
    mentions: list[Mention]


def names_in(source: str, known: dict[str, str]) -> Names:
    """Find what a source imports and mentions; `known` maps names given from outside."""
    return _names_in(source, frozenset(known.items()))


@lru_cache(maxsize=64)
def _names_in(source: str, known: frozenset[tuple[str, str]]) -> Names:
    tree = _Attributes().visit(ast.parse(source))
    own = {node.name for node in tree.body if isinstance(node, (*FUNCTIONS[:2], ast.ClassDef))}
    reader = _Reader()
    for name, target in known:
        if name not in own:
            reader.scope.give(name, target)
    reader.visit(tree)
    mentions = [
        Mention(node, frozenset(_targets(scope, node)), tuple(chain(node)[1:]), renamed)
        for scope, node, renamed in reader.mentioned
    ]
    return Names(tree, reader.imports, mentions)


def chain(node: ast.AST) -> list[str]:
    """Read `a.b.c` as ["a", "b", "c"]; anything but a name at its root reads as ""."""
    path = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    path.append(node.id if isinstance(node, ast.Name) else "")
    return path[::-1]


@dataclass(eq=False)
class _Scope:
    kind: Literal["module", "class", "function"]
    parent: "_Scope | None" = None
    # a dotted name, another name in its scope, or None for what the source itself makes
    gives: dict[str, list] = field(default_factory=lambda: defaultdict(list))
    of_module: set[str] = field(default_factory=set)
    of_around: set[str] = field(default_factory=set)

    def give(self, name: str, meaning: object) -> None:
        self.gives[name].append(meaning)
        if self.parent and name in self.of_module:
            self.module().give(name, meaning)
        if self.parent and name in self.of_around:
            self.give_all_around(name, meaning)

    def give_all_around(self, name: str, meaning: object) -> None:
        if self.parent:
            self.parent.give(name, meaning)
            self.parent.give_all_around(name, meaning)

    def module(self) -> "_Scope":
        return self.parent.module() if self.parent else self

    def around(self) -> "_Scope":
        """Return the next scope outwards whose names can be seen from here."""
        scope = self.parent
        while scope and scope.kind == "class":
            scope = scope.parent
        return scope or self

    def meanings(self, name: str) -> Iterable:
        if self.parent and name in self.of_module:
            return self.module().meanings(name)
        own = self.gives.get(name, [])
        if own and self.kind == "function" and name not in self.of_around:
            return own
        if self.parent:
            return [*own, *self.around().meanings(name)]
        return [*own, *([f"builtins.{name}"] if hasattr(builtins, name) else [])]


def _targets(scope: _Scope, node: ast.AST, seen: frozenset = frozenset()) -> set[str]:
    root, *path = chain(node)
    if (scope, root) in seen:
        return set()
    found = set()
    for meaning in scope.meanings(root):
        if isinstance(meaning, str):
            found.add(".".join([meaning, *path]))
        elif meaning:
            there, value = meaning
            targets = _targets(there, value, seen | {(scope, root)})
            found |= {".".join([target, *path]) for target in targets}
    return found


class _Attributes(ast.NodeTransformer):
    """`getattr(x, "name")` is `x.name`, and setting it is naming it too."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("getattr"), [value, ast.Constant(str(name))], []):
                return ast.Attribute(value, name, ast.Load())
            case ast.Call(ast.Name("setattr"), [value, ast.Constant(str(name)), given], []):
                return ast.Tuple([ast.Attribute(value, name, ast.Store()), given], ast.Load())
        return node


def _public(module: str) -> list[str]:
    found = loaded(module)
    return getattr(found, "__all__", None) or [name for name in dir(found) if name[0] != "_"]


class _Reader(ast.NodeVisitor):
    def __init__(self):
        self.scope = _Scope("module")
        self.imports: list[Import] = []
        self.mentioned: list[tuple[_Scope, ast.Name | ast.Attribute, bool]] = []

    def _give(self, name: str, meaning: object = None) -> None:
        self.scope.give(name, meaning)

    def _inside(self, kind: Literal["class", "function"], nodes: Iterable[ast.AST | None]) -> None:
        outer, self.scope = self.scope, _Scope(kind, self.scope)
        self._visit_all(nodes)
        self.scope = outer

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node:
                self.visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, FUNCTIONS):
            self._function(node)
            return
        if isinstance(node, COMPREHENSIONS):
            first, *rest = node.generators
            self.visit(first.iter)
            results = [getattr(node, x, None) for x in ("elt", "key", "value")]
            self._inside("function", [first.target, *first.ifs, *rest, *results])
            return
        if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            self._give(node.name)
        super().generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [x for x in (arguments.vararg, arguments.kwarg) if x]
        self._visit_all([*arguments.defaults, *arguments.kw_defaults])
        if isinstance(node, ast.Lambda):
            body = [node.body]
        else:
            self._give(node.name)
            self._visit_all([*node.decorator_list, *getattr(node, "type_params", [])])
            self._visit_all([*(x.annotation for x in every), node.returns])
            body = node.body
        self._inside("function", [*(ast.Name(x.arg, ast.Store()) for x in every), *body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._give(node.name)
        self._visit_all([*node.decorator_list, *getattr(node, "type_params", [])])
        self._visit_all([*node.bases, *node.keywords])
        self._inside("class", node.body)

    def visit_Global(self, node: ast.Global) -> None:
        self.scope.of_module |= set(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.scope.of_around |= set(node.names)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._give(node.rest)
        super().generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        # in a comprehension it gives its name to the function around
        self._give(node.target.id)
        self.scope.give_all_around(node.target.id, None)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._import(alias.asname or top, alias.name if alias.asname else top)
            if not alias.asname and alias.name != top:
                self.imports.append(Import(top, alias.name, self.scope.kind == "class"))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        # a relative one fails: an answer is in no package
        module = "" if node.level else node.module
        for alias in node.names:
            if alias.name != "*":
                self._import(alias.asname or alias.name, f"{module}.{alias.name}")
                continue
            self._import("*", f"{module}.*")
            for name in _public(module or ""):
                self._give(name, f"{module}.{name}")

    def _import(self, name: str, target: str) -> None:
        self.imports.append(Import(name, target, self.scope.kind == "class"))
        self._give(name, target)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        self._assign(node.target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        match target, value:
            case ast.Tuple(left), ast.Tuple(right) if len(left) == len(right):
                for one, its_value in zip(left, right, strict=True):
                    self._assign(one, its_value)
            case ast.Name(name), ast.Name() | ast.Attribute() if chain(value)[0]:
                self._give(name, (self.scope, value))
                # what a class holds is read from it by any other name
                self.mentioned.append((self.scope, value, self.scope.kind != "class"))
            case _:
                self._visit_all([value, target])

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.mentioned.append((self.scope, node, False))
        else:
            self._give(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.mentioned.append((self.scope, node, False))
        inner = node.value
        while isinstance(inner, ast.Attribute):
            inner = inner.value
        if not isinstance(inner, ast.Name):
            self.visit(inner)
