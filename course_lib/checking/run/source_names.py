"""What the names in a source may stand for, found without running it; which are forbidden.

A name stands for everything that the source ever gives it: each import and each alias, wherever
they are, and, for what the source gives no value, the built-in function of that name.
"""

import ast
import builtins
import copy
import types
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from course_lib.answers.source import Source
from course_lib.answers.watch import loaded

GETTERS = ("getattr", "setattr")
# whose objects one knows by what they are, not by how a source names them
KNOWN_PACKAGES = ("torch", "course_lib", "einops", "numpy", "jaxtyping", "math")


class Mention(NamedTuple):
    """A name with the attributes read from it: `nn.functional.relu`, or `.relu` of anything else.

    `targets` are the dotted names that it may stand for, attributes included.
    """

    node: ast.Name | ast.Attribute
    targets: frozenset[str]
    path: tuple[str, ...]


class Import(NamedTuple):
    """One name that an import gives, and the dotted name that it stands for."""

    name: str
    target: str


@dataclass(frozen=True)
class Names:
    """The tree of a source, and all that it imports and mentions."""

    tree: ast.Module
    imports: list[Import]
    mentions: list[Mention]


def forbidden_in(source: Source, known: dict[str, str], forbidden: tuple[str, ...]) -> list[str]:
    """List the forbidden names that a source imports or mentions, first come first.

    `known` maps names to the dotted names that they stand for; imports inside the source count
    too, used or not. A method of unknown origin (`scores.softmax`) is matched by its last name.
    """
    names = {f".{name.rpartition('.')[2]}": name for name in forbidden if ".Tensor." in name}
    names |= {_canonical(name): name for name in forbidden}
    return list(dict.fromkeys(names[x] for x in _mentioned(source, known) if x in names))


def _mentioned(source: Source, known: dict[str, str]) -> Iterator[str]:
    """Yield what a source names: canonical names, and `.name` for each attribute."""
    found = names_in(source, known)
    for given in found.imports:
        yield _canonical(given.target)
    for mention in found.mentions:
        for target in sorted(mention.targets):
            parts = target.split(".")
            for end in range(len(parts), 0, -1):
                yield _canonical(".".join(parts[:end]))
        for name in mention.path:
            yield f".{name}"


@lru_cache(maxsize=4096)
def _canonical(name: str) -> str:
    """Return one name for all the paths by which an object can be reached."""
    if name.partition(".")[0] not in KNOWN_PACKAGES:
        return name
    # to import what a stranger names would run it
    value = loaded(name)
    if callable(value) and not isinstance(value, types.ModuleType):
        return f"{type(value).__name__} {id(value)}"
    return name


def names_in(source: Source, known: dict[str, str]) -> Names:
    """Find what a source imports and mentions; `known` maps names given from outside."""
    return _names_in(source, frozenset(known.items()), source.is_part)


@lru_cache(maxsize=64)
def _names_in(source: Source, known: frozenset[tuple[str, str]], is_part: bool) -> Names:
    # `is_part`: two sources of one text have the same names, and a part has them on other lines
    tree = source.tree
    if any(isinstance(x, ast.Name) and x.id in GETTERS for x in ast.walk(tree)):
        # what is changed in a tree is changed for whoever else reads it
        tree = _Attributes().visit(copy.deepcopy(tree))
    imports = [x for node in ast.walk(tree) for x in _imports(node)]
    own = {x.name for x in tree.body if isinstance(x, ast.FunctionDef | ast.ClassDef)}
    targets: dict[str, set[str]] = defaultdict(set)
    for name, target in [*(x for x in known if x[0] not in own), *_given(imports)]:
        targets[name].add(target)
    # an alias of an alias needs another round
    aliases, size = [x for node in ast.walk(tree) for x in _aliases(node)], -1
    while size != (size := sum(map(len, targets.values()))):
        for name, (root, *path) in aliases:
            targets[name] |= {".".join([x, *path]) for x in [*targets[root]]}
    bound = {x for node in ast.walk(tree) for x in _bound(node)}

    def meanings(node: ast.AST) -> frozenset[str]:
        root, *path = chain(node)
        own = {f"builtins.{root}"} if root not in bound and hasattr(builtins, root) else set()
        return frozenset(".".join([x, *path]) for x in {*targets.get(root, ()), *own})

    inner = {id(x.value) for x in ast.walk(tree) if isinstance(x, ast.Attribute)}
    mentions = [
        Mention(node, meanings(node), tuple(chain(node)[1:]))
        for node in ast.walk(tree)
        if id(node) not in inner
        and (isinstance(node, ast.Attribute) or _is_read(node))
        and isinstance(node, ast.Name | ast.Attribute)
    ]
    return Names(tree, imports, mentions)


def chain(node: ast.AST) -> list[str]:
    """Read `a.b.c` as ["a", "b", "c"]; anything but a name at its root reads as ""."""
    path = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    path.append(node.id if isinstance(node, ast.Name) else "")
    return path[::-1]


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def _imports(node: ast.AST) -> Iterator[Import]:
    match node:
        case ast.Import(names):
            for x in names:
                top = x.name.partition(".")[0]
                yield Import(x.asname or top, x.name)
        case ast.ImportFrom(module, names, level):
            # a relative one fails: an answer is in no package
            yield from (
                Import(x.asname or x.name, f"{'' if level else module}.{x.name}") for x in names
            )


def _given(imports: list[Import]) -> Iterator[tuple[str, str]]:
    """Yield each name that imports give, and what it stands for."""
    for name, target in imports:
        if name == "*":
            module = target.removesuffix(".*")
            found = loaded(module)
            public = getattr(found, "__all__", None) or [x for x in dir(found) if x[0] != "_"]
            yield from ((x, f"{module}.{x}") for x in public)
        else:
            top = target.partition(".")[0]
            yield name, top if name == top else target


def _aliases(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield the names that stand for another name, or for an attribute of one."""
    match node:
        case ast.Assign(targets, value):
            for target in targets:
                yield from _alias(target, value)
        case ast.AnnAssign(target, _, value) if value:
            yield from _alias(target, value)
        case ast.NamedExpr(target, value):
            yield from _alias(target, value)


def _alias(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, list[str]]]:
    match target, value:
        case ast.Tuple(left), ast.Tuple(right) if len(left) == len(right):
            for one, its_value in zip(left, right, strict=True):
                yield from _alias(one, its_value)
        case ast.Name(name), ast.Name() | ast.Attribute() if chain(value)[0]:
            yield name, chain(value)


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names to which a node gives a value."""
    match node:
        case ast.Name(name, ast.Store()) | ast.arg(name) | ast.FunctionDef(name):
            yield name
        case ast.ClassDef(name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
    yield from (x.name for x in _imports(node))


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
