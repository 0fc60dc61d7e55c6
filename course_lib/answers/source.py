"""Source of references and answers: what it says, what it defines, and copies that stand alone."""

import __future__

import ast
import contextlib
import inspect
import linecache
import math
import re
import symtable
import sys
import textwrap
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from itertools import count
from typing import Any

_numbers = count(1)
COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr")  # run where they stand
READ = "__source__"  # in an answer's namespace: its source, by the name of the file that it is
# a dataclass looks its annotations up in its module
sys.modules.setdefault("__answer__", types.ModuleType("__answer__"))


class Source(str):
    """A source text, read once, when it is first asked what it says.

    Of one that is a `part` of another, the nodes are the other's, and have its lines.
    """

    is_part: bool

    def __new__(cls, text: str, part: ast.Module | None = None) -> "Source":
        """Take a text, and what it is parsed to where it is a part of one that is parsed."""
        source = super().__new__(cls, text)
        source.is_part = part is not None
        if part:
            source.tree = part
        return source

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree. Raises SyntaxError, and whatever else no Python makes Python raise."""
        return ast.parse(self)

    @cached_property
    def reads(self) -> set[str]:
        """The names that it reads and does not give itself, as parameters or locals."""
        return {name for name, _ in global_reads(self)}

    def returns(self, name: str) -> bool:
        """Tell whether a `return` gives what this name stands for, or a call of it."""
        given = (x.value for x in ast.walk(self.tree) if isinstance(x, ast.Return))
        called = (getattr(x, "func", x) for x in given)
        return any(isinstance(x, ast.Name) and x.id == name for x in called)

    def function(self, method: str | None) -> ast.FunctionDef:
        """Find the function that it defines, or the method of its class. Raises LookupError."""
        return function_in(self.tree, method)

    def is_stub(self, method: str | None = None) -> bool:
        """Return True if the function, or the class's `method`, only raises NotImplementedError.

        What a stub gives stands before that: see `given`.
        """
        try:
            function = self.function(method)
        except (SyntaxError, LookupError):
            return False
        if any(isinstance(node, ast.Assign) for node in self.tree.body):
            return False  # it was written outside of its class
        *before, last = without_docstring(function) or [ast.Pass()]
        if given(before) != before:
            return False
        match last:
            case ast.Raise(ast.Name("NotImplementedError")):
                return True
            case ast.Raise(ast.Call(ast.Name("NotImplementedError"), [], [])):
                return True
        return False


def global_reads(source: str) -> Iterator[tuple[str, bool]]:
    """Yield the global names that a source reads, and whether a function must be called for it.

    A class body reads its own names from outside as long as it has not given them: `x = x`.
    Raises SyntaxError for what Python parses and cannot compile.
    """
    scopes = [(symtable.symtable(source, "<source>", "exec"), False)]
    for scope, called in scopes:
        is_function = scope.get_type() == "function"
        for symbol in scope.get_symbols():
            is_read = symbol.is_global() or (symbol.is_local() and not is_function)
            # `global n; n += 1` reads it, though Python's table does not say so
            if (symbol.is_referenced() and is_read) or symbol.is_declared_global():
                yield symbol.get_name(), called
        for inner in scope.get_children():
            at_once = inner.get_name().strip("<>") in COMPREHENSIONS
            scopes.append((inner, called or (inner.get_type() == "function" and not at_once)))


def as_source(text: str) -> Source:
    """Return a text as a source whose nodes have its own lines."""
    return text if isinstance(text, Source) and not text.is_part else Source(text)


def function_in(tree: ast.Module, method: str | None) -> ast.FunctionDef:
    """Find the function that a tree defines, or the method of its class. Raises LookupError."""
    body = tree.body
    if method is not None:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef)), [])
    for node in body:
        if isinstance(node, ast.FunctionDef) and method in (None, node.name):
            return node
    raise LookupError(f"no function {method or ''} in this source")


def given(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements up to the last guard: what a stub gives, above its TODOs.

    A guard is an `if` that does nothing but raise or return.
    """
    guards = [place for place, x in enumerate(statements, start=1) if _is_guard(x)]
    return statements[: guards[-1]] if guards else []


def _is_guard(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(body=[ast.Raise() | ast.Return()], orelse=[]):
            return True
    return False


def without_docstring(function: ast.FunctionDef) -> list[ast.stmt]:
    """Return the statements of a function behind its docstring."""
    return function.body[ast.get_docstring(function) is not None :]


def define(source: str, name: str, namespace: dict[str, Any] | None = None) -> Any:
    """Execute `source` in a namespace of its own and return the object called `name`.

    A statement that fails costs only the names that it has not given by then; what the namespace
    begins with, no star import replaces. The text is known to `linecache`, so tracebacks and
    `source_of` find its lines. Raises SyntaxError, or whatever kept `name` from being defined.
    """
    file, source = f"<answer {next(_numbers)}: {name}>", as_source(source)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    body = source.tree.body
    given = namespace or {}
    namespace = {"__name__": "__answer__"} | given | {READ: {file: source}}
    failure = NameError(f"nothing here defines {name}")
    flags = _future(body)
    for statement in body:
        bound = set(names_bound(statement))
        before = {one: namespace[one] for one in bound & namespace.keys()}
        try:
            code = compile(ast.Module([statement], []), file, "exec", flags, dont_inherit=True)
            exec(code, namespace)
            if "*" in bound:
                namespace |= given
        except Exception as error:
            # what a name stood for before is not what it was to stand for now
            for one, value in before.items():
                if namespace.get(one) is value:
                    namespace.pop(one, None)
            if name in bound:
                failure = error
    if name not in namespace:
        raise failure
    return namespace[name]


def define_on(others: Iterable[tuple[str, str]], source: str, name: str) -> Any:
    """Define an answer on others, pairs of source and name, each in a namespace of its own.

    Of the others, one that cannot be executed is not there. Raises as `define` does.
    """
    given: dict[str, Any] = {}
    for its_source, its_name in others:
        with contextlib.suppress(Exception):
            given[its_name] = define(its_source, its_name, given)
    return define(source, name, given)


def _future(body: list[ast.stmt]) -> int:
    """Return the compiler's flags for what these statements import from `__future__`."""
    names = [
        alias.name
        for x in body
        if isinstance(x, ast.ImportFrom) and x.module == "__future__"
        for alias in x.names
    ]
    features = (getattr(__future__, name, None) for name in names)
    return sum({feature.compiler_flag for feature in features if feature})


def source_of(thing: Any) -> Source:
    """Return the source of a function or class, also from a notebook cell. Raises LookupError."""
    source = find_source(thing)
    if source is None:
        raise LookupError(f"the source of {getattr(thing, '__name__', thing)} is not to be found")
    return source


def find_source(thing: Any) -> Source | None:
    """Return the source of a function or class, also from a notebook cell; None if unknown.

    A method that was set after the class had been defined follows it: `Layer.forward = forward`.
    """
    name, own = getattr(thing, "__name__", None), list(functions(thing))
    found = next(filter(None, (_definition(function, name) for function in own)), None)
    if found is None or not isinstance(thing, type):
        return found and found[0]
    source, file, first, last = found
    patches = ""
    for attribute, member in vars(thing).items():
        if not isinstance(member, types.FunctionType):
            continue
        code = inspect.unwrap(member).__code__
        inside = code.co_filename == file and first <= code.co_firstlineno <= last
        if not inside and (patch := _definition(member, member.__name__)):
            patches += f"{patch[0]}{name}.{attribute} = {member.__name__}\n"
    return Source(source + patches) if patches else source


def _definition(
    function: types.FunctionType, name: str | None
) -> tuple[Source, str, int, int] | None:
    """Find what is called `name` around a function: its text, its file, first and last line."""
    code, scope = inspect.unwrap(function).__code__, function.__globals__
    file = code.co_filename
    whole = scope.get(READ, {}).get(file) or Source("".join(linecache.getlines(file)))
    try:
        tree = whole.tree
    except SyntaxError:
        return None
    definitions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and node.name == name
        and _first_line(node) <= code.co_firstlineno <= (node.end_lineno or 0)
    ]
    if not definitions:
        return None
    node = definitions[-1]
    first, last = _first_line(node), node.end_lineno or 0
    text = textwrap.dedent("\n".join(whole.splitlines()[first - 1 : last])) + "\n"
    return Source(text, ast.Module([node], [])), file, first, last


def names_used(thing: Any, source: Source) -> dict[str, Any]:
    """Map the global names that a function's or class's source reads to what they stand for."""
    scope: dict[str, Any] = {}
    for function in functions(thing):
        scope |= function.__globals__
    return {name: scope[name] for name in sorted(source.reads) if name in scope}


def own_imports(thing: Any, code: str) -> str:
    """Import, of what `thing` reads in its own module, what this code does not mention.

    Returns a line, or nothing where nothing is missing.
    """
    used = names_used(thing, source_of(thing))
    missing = [name for name in used if not re.search(rf"\b{name}\b", code)]
    return f"from {thing.__module__} import {', '.join(missing)}\n" if missing else ""


def _public(value: Any) -> str:
    """Name the module that a user imports this from, as einops for einops.einops."""
    module, name = value.__module__, value.__name__
    parts = module.split(".")
    paths = (".".join(parts[: n + 1]) for n in range(len(parts)))
    return next((x for x in paths if getattr(sys.modules.get(x), name, None) is value), module)


def names_bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds where it stands; "*" for any."""
    for inner in outside_functions(node):
        match inner:
            case ast.Name(name, ast.Store()):
                yield name
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.alias(name, bound):
                yield bound or name.partition(".")[0]
            case ast.MatchAs(name=str(name)) | ast.MatchStar(str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name


def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree without what has names of its own: functions, classes, a comprehension's."""
    left = [node]
    while left:
        yield (node := left.pop())
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                pass
            case ast.comprehension(iter=iterable, ifs=conditions):
                left += [iterable, *conditions]
            case _:
                left += ast.iter_child_nodes(node)


def self_contained(
    thing: Any,
    inlined: Callable[[str], bool] = ("__main__", "__answer__").__contains__,
    given: Collection[str] = (),
) -> str:
    """Return source that defines `thing` anywhere: its imports, its helpers, then itself.

    What comes from a module that is `inlined` goes along as source, the rest as imports; the names
    that are `given` are there. Raises ValueError naming what cannot be carried over (a variable of
    the notebook that is neither a number, a text nor a tuple of them).
    """
    imports: list[str] = []
    parts: list[str] = []
    seen = set(given) - {thing.__name__}

    def collect(name: str, value: Any) -> None:
        if name in seen:
            return
        seen.add(name)
        module = getattr(value, "__module__", None)
        if isinstance(value, types.ModuleType):
            renamed = "" if value.__name__ == name else f" as {name}"
            imports.append(f"import {value.__name__}{renamed}")
        elif type(value) in (bool, int, float, str, tuple, type(None)):
            odd = isinstance(value, float) and not math.isfinite(value)
            parts.append(f"{name} = float('{value}')\n" if odd else f"{name} = {value!r}\n")
        elif isinstance(value, types.FunctionType | type) and module and inlined(module):
            source = find_source(value)
            if source is None:
                raise ValueError(f"the source of {name} is not to be found")
            for used, its_value in names_used(value, source).items():
                collect(used, its_value)
            parts.append(source)
            if value.__name__ != name:
                parts.append(f"{name} = {value.__name__}\n")
        elif module == "jaxtyping" and not value.__name__.isidentifier():  # a shape with a name
            kind = value.__name__.partition("[")[0]
            collect(kind, getattr(sys.modules[module], kind))
            collect(value.array_type.__name__, value.array_type)
            parts.append(f"{name} = {value.__name__}\n")
        elif module == "builtins" and hasattr(value, "__name__"):
            parts.append(f"{name} = {value.__name__}\n")
        elif module and hasattr(value, "__name__"):
            renamed = "" if value.__name__ == name else f" as {name}"
            imports.append(f"from {_public(value)} import {value.__name__}{renamed}")
        else:
            raise ValueError(
                f"it uses {name}, a {type(value).__name__} that only this notebook has"
            )

    collect(thing.__name__, thing)
    return "\n".join([*sorted(imports), "", *parts]).lstrip("\n")


def functions(thing: Any) -> Iterator[types.FunctionType]:
    """Yield the function itself, or the methods of a class, out of any decorator."""
    members = vars(thing).values() if isinstance(thing, type) else [thing]
    for member in members:
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if isinstance(member, types.FunctionType):
            yield inspect.unwrap(member)


def _first_line(node: ast.FunctionDef | ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def aliases(names: dict[str, Any]) -> dict[str, str]:
    """Map each name of a scope to the dotted name that it stands for, where it has one."""
    dotted = {}
    for name, value in names.items():
        if isinstance(value, types.ModuleType):
            dotted[name] = value.__name__
        elif (module := getattr(value, "__module__", None)) and hasattr(value, "__qualname__"):
            dotted[name] = f"{module}.{value.__qualname__}"
    return dotted
