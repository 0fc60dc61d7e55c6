"""The library's own code as text that can be pasted: into a notebook, or beside an answer."""

import ast
import math
import re
import sys
import types
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

from course_lib.answers.source import Source, find_source, names_bound, names_used, source_of
from course_lib.checking.catalogue import outlines
from course_lib.checking.exercise import Exercise
from course_lib.files.course_map import lesson_of


def solution_text(exercise: Exercise, code: str = "") -> str:
    """Return the reference, behind those of its helpers that a notebook of this code lacks."""
    page, number = exercise.lesson, lesson_of(exercise.lesson)
    # an exploration's notebook defines nothing of its lesson's
    known = [x for x in outlines() if x.lesson == page or lesson_of(x.lesson) < number]
    own_names = vars(sys.modules[exercise.module])
    # another function of the library may have an exercise's name
    given = {x.name for x in known if _home(own_names.get(x.name)) in (None, x.module)}
    given |= set(re.findall(r"(?<![\w.])\w+", code)) - ({x.name for x in known} - given)
    text = self_contained(exercise.reference, of_lesson(exercise.lesson), given)
    own = source_of(exercise.reference)
    # with nothing but imports before it, it stands as it does in the library
    return text if _helpers(text) - {exercise.name} else own


@cache
def standalone(exercise: Exercise) -> Source:
    """Return a text that defines an exercise's name as the library does."""
    return Source(self_contained(exercise.reference, of_lesson(exercise.lesson)))


def of_lesson(lesson: str) -> Callable[[str], bool]:
    """Return what tells whether a module of the course is not of a lesson before that of a page."""
    number = lesson_of(lesson)
    earlier = {x.module for x in outlines() if lesson_of(x.lesson) < number}
    outside = {x.module for x in outlines()}

    def is_inlined(module: str) -> bool:
        return module not in earlier and (module.startswith("course_lib.") or module in outside)

    return is_inlined


def _home(value: Any) -> str | None:
    return getattr(value, "__module__", None)


def _helpers(text: str) -> set[str]:
    statements = (x for x in ast.parse(text).body if not isinstance(x, ast.Import | ast.ImportFrom))
    return {name for x in statements for name in names_bound(x)}


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
