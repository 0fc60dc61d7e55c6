"""A source: what it says, what it defines, which names it uses, and which of these are forbidden.

A name stands for everything that the source ever gives it: each import and each alias, wherever
they are, and, for what the source gives no value, the built-in function of that name.
"""

import __future__

import ast
import builtins
import contextlib
import copy
import inspect
import linecache
import symtable
import sys
import textwrap
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from typing import Any, NamedTuple

_numbers = count(1)
COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp", "genexpr")  # run where they stand
GETTERS = ("getattr", "setattr")
# whose objects one knows by what they are, not by how a source names them
KNOWN_PACKAGES = ("torch", "course_lib", "einops", "numpy", "jaxtyping", "math")
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


def loaded(name: str) -> Any:
    """Return the object of a dotted name, or None; nothing is imported for it."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        if value := sys.modules.get(".".join(parts[:cut])):
            for part in parts[cut:]:
                value = getattr(value, part, None)
            return value
    return None


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
