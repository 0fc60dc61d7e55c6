"""Which exercises there are: the files of `exercises`, and those of installed packages.

Another package adds its own by an entry point in the group `course_lib.exercises` whose value
is a package of folders and files like it; `private/sums.py` there is `private/sums`.
"""

import difflib
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from course_lib.checking.exercise import Exercise

GROUP = "course_lib.exercises"


class UnknownExercise(LookupError):
    """An id that no exercise has; the message names the nearest ones."""


def ids() -> list[str]:
    """List the ids of all exercises in the order of the lessons, then of the components."""
    return sorted(_modules(), key=_place)


@cache
def load(exercise_id: str) -> Exercise:
    """Return the exercise of an id. Raises UnknownExercise, naming the nearest ids."""
    modules = _modules()
    if exercise_id not in modules:
        near = difflib.get_close_matches(str(exercise_id), modules, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else "`course list` shows them all."
        raise UnknownExercise(f"there is no exercise {exercise_id!r}: {hint}")
    exercise = importlib.import_module(modules[exercise_id]).exercise
    exercise.id = exercise_id
    return exercise


@cache
def _place(exercise_id: str) -> tuple[str, str, int]:
    reference = load(exercise_id).reference
    return load(exercise_id).lesson, reference.__module__, inspect.getsourcelines(reference)[1]


@cache
def _modules() -> dict[str, str]:
    modules = dict(_files(GROUP))
    for entry in entry_points(group=GROUP):
        for exercise_id, module in _files(entry.value):
            if modules.setdefault(exercise_id, module) != module:
                both = f"{modules[exercise_id]}, {module}"
                raise ImportError(f"two packages bring the exercise {exercise_id}: {both}")
    return modules


def _files(package: str) -> Iterator[tuple[str, str]]:
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or []:
        for file in sorted(Path(folder).glob("*/[!_]*.py")):
            topic, name = file.parent.name, file.stem
            yield f"{topic}/{name}", f"{package}.{topic}.{name}"
