"""What in an answer's source could reach a forbidden function without naming it.

`checking.forbidden_source` finds a function by its name, whatever the alias. A stranger who wants
to hide the name needs a name made at run time, or a module handed on as a value; a graded answer
does without both. Modules are those known to hand out nothing but what is named.
"""

import ast
import importlib
import sys
import types
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from course_lib.answers.forbidden_calls import resolve
from course_lib.checking.forbidden_source import chain, imports
from course_lib.grading.sandbox_files import packages

BUILTINS = frozenset(
    "eval exec compile globals locals vars getattr setattr delattr breakpoint".split()
)
MODULES = frozenset(
    "__future__ abc bisect cmath collections collections.abc contextlib copy decimal fractions"
    " functools heapq itertools math numbers operator random re statistics time typing"
    " einops einops.layers.torch jaxtyping numpy numpy.fft numpy.linalg numpy.random numpy.typing"
    " torch torch.autograd torch.autograd.functional torch.fft torch.func torch.linalg torch.nn"
    " torch.nn.functional torch.nn.init torch.nn.modules torch.nn.parameter torch.random"
    " torch.special torch.types".split()
)
# of the course: the components, and what notebooks import from the exercises
COURSE_INSIDE = ("answers", "exercises", "grading")
STUBS = [[name] for name in ("check", "hint", "mine", "reveal", "solution", "verdict")]
# what calls `getattr` with any name, or executes text
FUNCTIONS = frozenset(
    "operator.attrgetter operator.methodcaller functools.update_wrapper functools.wraps"
    " functools.singledispatch functools.singledispatchmethod typing.get_type_hints"
    " typing.ForwardRef torch.load torch.compile numpy.load numpy.info".split()
)
FRAMES = frozenset(
    "gi_frame cr_frame ag_frame tb_frame f_back f_globals f_locals f_builtins".split()
)
METHODS = frozenset(
    f"__{name}__"
    for name in "init call name doc len iter next getitem setitem contains add radd sub rsub mul"
    " rmul matmul truediv neg pow eq ne lt le gt ge hash bool enter exit post_init repr str".split()
)


@lru_cache(maxsize=256)
def evasion(source: str) -> str | None:
    """Return the first thing of this kind as it stands in the source, or None."""
    tree = _Attributes().visit(ast.parse(source))
    nodes = list(ast.walk(tree))
    if target := _imported(nodes):
        return target
    known = imports(tree)
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    annotations, questions = set(map(id, _annotations(nodes))), set(map(id, _types_asked(nodes)))
    for node in nodes:
        match node:
            # `case P(softmax=f)` is an attribute, and so is a place that `__match_args__` names
            case ast.MatchClass(patterns=[_, *_]) | ast.MatchClass(kwd_attrs=[_, *_]):
                return f"case {ast.unparse(node)}"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _is_special(name):
                return name
            case ast.Name() | ast.Attribute():
                root, *path = chain(node)
                if root in BUILTINS or _is_special(root):
                    return root
                if any(x in FRAMES or _is_special(x) for x in path):
                    return ".".join([root, *path])
                # `type(x)` asks for a type; called otherwise, it makes one of any names
                if root == "type" and not path and id(node) not in questions | annotations:
                    return root
                if root in known and id(node) not in inner and _is_there(known[root]):
                    target = ".".join([known[root], *path])
                    if _reaches_more(target) or (
                        target.startswith("jaxtyping.") and id(node) not in annotations
                    ):
                        return target
    return None


class _Attributes(ast.NodeTransformer):
    """`getattr(x, "name")` is `x.name`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("getattr"), [value, ast.Constant(str(name))], []):
                return ast.Attribute(value, name, ast.Load())
        return node


def _imported(nodes: list[ast.AST]) -> str | None:
    """Return the first import, of a name that is used, that reaches more than it names.

    What is not to be had in the sandbox reaches nothing: it costs its names alone.
    """
    used = {node.id for node in nodes if isinstance(node, ast.Name)} | {"*"}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                if name in used and _is_there(alias.name) and not _is_known(alias.name):
                    return alias.name
        elif isinstance(node, ast.ImportFrom) and _is_there(module := node.module or "."):
            for alias in node.names:
                name = f"{module}.{alias.name}"
                if (alias.asname or alias.name) not in used or _is_known(name):
                    continue
                if not _is_known(module) or _reaches_more(name):
                    return name
    return None


def _is_there(module: str) -> bool:
    """Tell whether a module is one of those that the sandbox can import."""
    return module.partition(".")[0] in _there()


@cache
def _there() -> frozenset[str]:
    tops = (Path(name).stem for name in packages())
    return sys.stdlib_module_names.union(tops, ["", "course_lib"])


def _is_known(module: str) -> bool:
    root, *path = module.split(".")
    if root == "course_lib":
        return path == ["exercises"] or not path or path[0] not in COURSE_INSIDE
    return module in MODULES


def _reaches_more(name: str) -> bool:
    """Tell whether a dotted name is a module, or comes through what is not known."""
    root, *path = name.split(".")
    if path[-1:] == ["*"]:  # its names are known where it is loaded here, too
        return name.removesuffix(".*") not in sys.modules
    if root == "course_lib" and path[:1] == ["exercises"]:
        return path[1:2] not in STUBS
    value = importlib.import_module(root)
    for part in path:
        value = getattr(value, part, None)
        if (part.startswith("_") and part not in METHODS) or any(value is x for x in _functions()):
            return True
        if isinstance(value, types.ModuleType) and not _is_known(value.__name__):
            return True
    return isinstance(value, types.ModuleType)


def _annotations(nodes: list[ast.AST]) -> Iterable[ast.AST]:
    for node in nodes:
        for name in ("annotation", "returns"):
            if isinstance(annotation := getattr(node, name, None), ast.AST):
                yield from ast.walk(annotation)


def _types_asked(nodes: list[ast.AST]) -> Iterable[ast.AST]:
    for node in nodes:
        match node:
            case ast.Call(function, [argument], []) if not isinstance(argument, ast.Starred):
                yield function


def _functions() -> list[types.FunctionType | type]:
    return [resolve(name) for name in FUNCTIONS]


def _is_special(name: str) -> bool:
    return name[:2] == name[-2:] == "__" and name not in METHODS
