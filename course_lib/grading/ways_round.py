"""What in an answer's source could reach a forbidden function without naming it.

`exercises.forbidden` finds a function by its name, whatever the alias. A stranger who wants to hide
the name needs a name made at run time, or a module handed on as a value; a graded answer does
without both.
"""

import ast
import types

from course_lib.exercises.calls import resolve
from course_lib.exercises.forbidden import KNOWN_PACKAGES, chain, imports

BUILTINS = frozenset(
    "eval exec compile __import__ globals locals vars getattr setattr delattr"
    " __builtins__ __loader__ __spec__".split()
)
MODULES = frozenset(
    "sys os builtins importlib inspect gc ctypes pickle marshal runpy pkgutil subprocess linecache"
    " multiprocessing shelve code codeop IPython cffi"
    " torch._C torch._ops torch._dynamo torch.ops torch.jit torch.fx torch.overrides torch.library"
    " torch.export torch.package torch.hub torch.utils torch.compiler torch.serialization".split()
)
# `getattr` by another name, and what makes objects of bytes
FUNCTIONS = frozenset(["operator.attrgetter", "operator.methodcaller", "torch.load", "numpy.load"])
FRAMES = frozenset(
    "gi_frame cr_frame ag_frame tb_frame f_back f_globals f_locals f_builtins".split()
)
METHODS = frozenset(
    f"__{name}__"
    for name in "init call name doc len iter getitem setitem contains add radd sub rsub mul rmul"
    " matmul truediv neg pow eq ne lt le gt ge enter exit post_init repr str".split()
)


def ways_round(source: str) -> str | None:
    """Return the first thing of this kind as it stands in the source, or None."""
    tree = _Attributes().visit(ast.parse(source))
    known = imports(tree)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for name, target in known.items():
        if name in used | {"*"} and _reaches_everything(target.split(".")):
            return target
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        root, *path = chain(node)
        if root in BUILTINS and root not in own:
            return root
        if any(x in FRAMES or (x.startswith("__") and x not in METHODS) for x in path):
            return ".".join([root, *path])
        if root in known and root not in own and id(node) not in inner:
            target = [*known[root].split("."), *path]
            if _reaches_everything(target) or _is_module(target):
                return ".".join(target)
    return None


class _Attributes(ast.NodeTransformer):
    """`getattr(x, "name")` is `x.name`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("getattr"), [value, ast.Constant(str(name))], []):
                return ast.Attribute(value, name, ast.Load())
        return node


def _reaches_everything(path: list[str]) -> bool:
    """Tell whether a dotted name passes through a module or function that gives all others."""
    names = {".".join(path[: i + 1]) for i in range(len(path))}
    if names & (MODULES | FUNCTIONS) or any(name.startswith("_") for name in path[1:-1]):
        return True
    # `random._os` and `typing.sys` are doors to the same modules
    if any(name.lstrip("_") in MODULES for name in path[1:]) or path[-1].startswith("_"):
        return path[-1] not in METHODS
    found = [resolve(name) for name in sorted(names) if path[0] in KNOWN_PACKAGES]
    return any(isinstance(x, types.ModuleType) and x.__name__ in MODULES for x in found)


def _is_module(path: list[str]) -> bool:
    return len(path) == 1 or (
        path[0] in KNOWN_PACKAGES and isinstance(resolve(".".join(path)), types.ModuleType)
    )
