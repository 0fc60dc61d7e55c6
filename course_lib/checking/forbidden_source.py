"""Calls that an answer may not make, looked for in its source."""

import ast
import types
from functools import cache, lru_cache

from course_lib.answers.forbidden_calls import loaded

# whose objects one knows by what they are, not by how a source names them
KNOWN_PACKAGES = ("torch", "course_lib", "einops", "numpy", "jaxtyping", "math")


def in_source(source: str, known: dict[str, str], forbidden: tuple[str, ...]) -> list[str]:
    """List the forbidden names that a source mentions, first come first.

    `known` maps names to the dotted names that they stand for; imports inside the source count
    too. A method of unknown origin (`scores.softmax`) is matched by its last name.
    """
    names = {_canonical(name): name for name in forbidden}
    names |= {f".{name.rpartition('.')[2]}": name for name in forbidden if ".Tensor." in name}
    mentioned = _mentioned(source, frozenset(known.items()))
    return list(dict.fromkeys(names[x] for x in mentioned if x in names))


@lru_cache(maxsize=64)
def _mentioned(source: str, known: frozenset[tuple[str, str]]) -> list[str]:
    """List what a source names: canonical names, and `.name` for an attribute of anything else."""
    tree = ast.parse(source)
    stands_for = dict(known) | imports(tree)
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    # an import, which may stand inside a function, is believed before a definition
    own -= imports(tree, stars=False).keys()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            root, *path = chain(node)
            if root in stands_for and root not in own:
                found.append(_canonical(".".join([stands_for[root], *path])))
            elif path:
                found.append(f".{path[-1]}")
    return found


@cache
def _canonical(name: str) -> str:
    """Return one name for all the paths by which an object can be reached."""
    if name.partition(".")[0] not in KNOWN_PACKAGES:
        return name
    # to import what a stranger names would run it
    value = loaded(name)
    if callable(value) and not isinstance(value, types.ModuleType):
        return f"{type(value).__name__} {id(value)}"
    return name


def imports(tree: ast.AST, stars: bool = True) -> dict[str, str]:
    """Map each name that a tree imports to the dotted name that it stands for."""
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if alias.name == "*" and stars:
                    known |= {name: f"{node.module}.{name}" for name in _public(node.module)}
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return known


def _public(module: str) -> list[str]:
    found = loaded(module)
    return getattr(found, "__all__", None) or [name for name in dir(found) if name[0] != "_"]


def chain(node: ast.AST) -> list[str]:
    """Read `a.b.c` as ["a", "b", "c"]; anything but a name at its root reads as ""."""
    path = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    path.append(node.id if isinstance(node, ast.Name) else "")
    return path[::-1]
