"""Whether an answer is the library's own: their syntax trees, whatever the names of locals."""

import ast
from collections.abc import Callable
from functools import cache, lru_cache

from course_lib.answers.source import source_of
from course_lib.checking.exercise import Exercise

# of a shorter answer, everybody's is the same
STATEMENTS = 3


def is_reference(source: str, exercise: Exercise) -> bool:
    """Tell whether what a source defines is the reference's own code."""
    return _form(source, exercise.name) == _form_of(exercise.reference)


def same_as_library(source: str, exercise: Exercise) -> bool:
    """Tell whether an answer of some statements is the reference, or an alternative."""
    form = _form(source, exercise.name)
    ours = map(_form_of, (exercise.reference, *exercise.alternatives))
    return form is not None and form in ours and _statements(source, exercise) >= STATEMENTS


def _statements(source: str, exercise: Exercise) -> int:
    """Count the statements of an answer; of a class, those of the methods asked for."""
    definition = _definition(source, exercise.name)
    inside = definition.body if definition and exercise.methods else [definition]
    asked = [x for x in inside if isinstance(x, ast.FunctionDef)]
    if exercise.methods:
        asked = [x for x in asked if x.name in exercise.methods]
    for function in asked:
        _without_docstring(function)
    return sum(isinstance(x, ast.stmt) for function in asked for x in ast.walk(function)) - len(
        asked
    )


@cache
def _form_of(thing: Callable) -> str | None:
    return _form(source_of(thing), thing.__name__)


@lru_cache(maxsize=100)  # an answer is asked about twice
def _form(source: str, name: str) -> str | None:
    """Write a definition's tree without its docstrings, annotations, and choice of names."""
    definition = _definition(source, name)
    if definition is None:
        return None
    definition.name, definition.decorator_list = "", []
    for node in ast.walk(definition):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            _without_docstring(node)
        if isinstance(node, ast.FunctionDef):
            node.returns = None
    locals_ = [x.arg for x in ast.walk(definition) if isinstance(x, ast.arg)]
    locals_ += [
        x.id
        for x in ast.walk(definition)
        if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)
    ]
    numbers = {name: f"local {number}" for number, name in enumerate(dict.fromkeys(locals_))}
    for node in ast.walk(definition):
        match node:
            case ast.arg():
                node.arg, node.annotation = numbers[node.arg], None
            case ast.Name(name) if name in numbers:
                node.id = numbers[name]
    return ast.dump(definition)


def _definition(source: str, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    found = None
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            found = node
    return found


def _without_docstring(node: ast.FunctionDef | ast.ClassDef) -> None:
    if ast.get_docstring(node) is not None:
        node.body = node.body[1:]
