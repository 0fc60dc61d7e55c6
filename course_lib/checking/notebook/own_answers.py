"""The library's answers to an exercise, read from their files: to import them takes seconds."""

import ast
from importlib.util import find_spec
from pathlib import Path

from course_lib.checking import catalogue


def own_answers(exercise_id: str) -> list[str]:
    """Return the sources of the alternatives and of the reference. Raises UnknownExercise.

    The reference is found where the exercise's file defines it, or imports it from.
    """
    body = _body(catalogue.module(exercise_id))
    keywords = (x for statement in body for x in ast.walk(statement) if isinstance(x, ast.keyword))
    references = {ast.unparse(x.value) for x in keywords if x.arg == "reference"}
    homes = [
        x.module
        for x in body
        if isinstance(x, ast.ImportFrom) and x.module and references & {y.name for y in x.names}
    ]
    return [
        ast.unparse(x)
        for x in (*body, *(y for home in homes for y in _body(home)))
        if isinstance(x, ast.FunctionDef | ast.ClassDef)
        and (x.name in references or _is_alternative(x))
    ]


def _is_alternative(definition: ast.FunctionDef | ast.ClassDef) -> bool:
    marks = definition.decorator_list
    return any(isinstance(x, ast.Attribute) and x.attr == "alternative" for x in marks)


def _body(module: str) -> list[ast.stmt]:
    """Parse the file of a module, whose packages are not imported for it."""
    package, *parts = module.split(".")
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or []:
        file = Path(folder, *parts).with_suffix(".py")
        if file.exists():
            return ast.parse(file.read_text("utf8")).body
    return []
