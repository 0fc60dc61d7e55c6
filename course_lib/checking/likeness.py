"""Answers compared by their structure, whatever their names, comments, types and layout.

Nothing is imported for it, since torch takes seconds: the library's own answers are read from
their files.
"""

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from course_lib.answers.source import Source
from course_lib.checking import catalogue

LONGEST = 10  # characters of a constant that count
LEFT_OUT = ("annotation", "returns", "decorator_list")
DEFINITION = ast.FunctionDef | ast.ClassDef
Node = tuple[str, int]  # what it is, and its line


def structure(source: Source) -> list[Node]:
    """List the nodes of a source in reading order, local names alike; none of what is no Python.

    Imports, docstrings, decorators and types are left out.
    """
    try:
        return _alike(source.tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def is_library(source: Source, name: str, exercise_id: str) -> bool:
    """Return True if what a source defines under a name is one of the library's own answers."""
    own = [x for x in source.tree.body if isinstance(x, DEFINITION) and x.name == name]
    return bool(own) and _words(_alike(own[-1:])) in _library(exercise_id)


def own_answers(exercise_id: str) -> list[Source]:
    """Return the sources of the alternatives and of the reference. Raises UnknownExercise.

    The reference is found where the exercise's file defines it, or imports it from.
    """
    body = _body(catalogue.module(exercise_id))
    references, homes = _references(body)
    return [
        Source(ast.unparse(x), ast.Module([x], []))
        for x in (*body, *(y for home in homes for y in _body(home)))
        if isinstance(x, DEFINITION) and (x.name in references or _is_alternative(x))
    ]


def _references(body: list[ast.stmt]) -> tuple[set[str], list[str]]:
    """Return the names of an exercise's reference, and the modules that it comes from."""
    keywords = (x for statement in body for x in ast.walk(statement) if isinstance(x, ast.keyword))
    references = {ast.unparse(x.value) for x in keywords if x.arg == "reference"}
    homes = [
        x.module
        for x in body
        if isinstance(x, ast.ImportFrom) and x.module and references & {y.name for y in x.names}
    ]
    return references, homes


@cache
def _library(exercise_id: str) -> set[tuple[str, ...]]:
    try:
        return {_words(structure(source)) for source in own_answers(exercise_id)}
    except catalogue.UnknownExercise:
        return set()


def _words(nodes: list[Node]) -> tuple[str, ...]:
    return tuple(word for word, _ in nodes)


def _alike(statements: Sequence[ast.stmt]) -> list[Node]:
    nodes = [node for statement in statements for node in _read(statement, 1)]
    local = {bound for _, _, bound in nodes}
    return [("local" if word in local else word, line) for word, line, _ in nodes]


def _read(node: ast.AST, line: int) -> Iterator[tuple[str, int, str | None]]:
    """Yield each node with its line, and the word of a name that it binds."""
    bound = None
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant(str())) | ast.expr_context():
            return
        case ast.Name(name, context):
            word = f"name {name}"
            bound = word if isinstance(context, ast.Store) else None
        case ast.arg(name):
            word, bound = "arg", f"name {name}"
        case ast.Attribute(attr=name):
            word = f".{name}"
        case ast.keyword(name):
            word = f"{name}="
        case ast.Constant(value):
            word = repr(value)[:LONGEST]
        case _:
            word = type(node).__name__
    line = getattr(node, "lineno", line)
    yield word, line, bound
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and field not in LEFT_OUT:
                yield from _read(child, line)


def _is_alternative(definition: ast.FunctionDef | ast.ClassDef) -> bool:
    marks = definition.decorator_list
    return any(isinstance(x, ast.Attribute) and x.attr in ("alternative", "steps") for x in marks)


def _body(module: str) -> list[ast.stmt]:
    """Parse the file of a module, whose packages are not imported for it."""
    return ast.parse(_text(module)).body


def _text(module: str) -> str:
    package, *parts = module.split(".")
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or []:
        file = Path(folder, *parts).with_suffix(".py")
        if file.exists():
            return file.read_text("utf8")
    return ""
