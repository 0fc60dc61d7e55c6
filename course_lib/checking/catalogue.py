"""Which exercises there are: the files of `exercises`, and those of installed packages.

Another package adds its own by an entry point in the group `course_lib.exercises` whose value
is a package of folders and files like it; `private/sums.py` there is `private/sums`.
"""

import difflib
import importlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.files import course_map
from course_lib.files.course_map import Outline

if TYPE_CHECKING:  # it imports torch, which takes seconds
    from course_lib.checking.exercise import Exercise

GROUP = "course_lib.exercises"


class UnknownExercise(LookupError):
    """An id that no exercise has; a notebook shows the message, which names the nearest ones."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


@cache
def outlines() -> tuple[Outline, ...]:
    """List what there is to know of all exercises, in the order of the lessons and their cells."""
    place = {exercise_id: number for number, exercise_id in enumerate(_listed())}
    every = map(outline, _modules())
    return tuple(sorted(every, key=lambda x: (x.lesson, place.get(x.id, len(place)), x.id)))


def ids() -> list[str]:
    """List the ids of all exercises, in this order."""
    return [x.id for x in outlines()]


def outline(exercise_id: str) -> Outline:
    """Return what there is to know of an exercise before it is loaded. Raises UnknownExercise.

    One that is not listed, such as an instructor's own, is loaded for it.
    """
    module(exercise_id)
    return _listed().get(exercise_id) or summarise(load(exercise_id))


def summarise(exercise: "Exercise") -> Outline:
    """Return what is listed of an exercise."""
    from course_lib.checking.trial import max_points

    counted = {"broken": bool(exercise.broken), "points": max_points(exercise)}
    told = {x: getattr(exercise, x) for x in Outline.__annotations__ if x not in counted}
    return Outline(**told, **counted)


@cache
def load(exercise_id: str) -> "Exercise":
    """Return the exercise of an id. Raises UnknownExercise, naming the nearest ids."""
    from course_lib.answers.watch import fresh_settings

    with fresh_settings():  # a file may make tensors when it is imported
        exercise = importlib.import_module(module(exercise_id)).exercise
    exercise.id = exercise_id
    return exercise


def module(exercise_id: str) -> str:
    """Name the module of an exercise. Raises UnknownExercise, naming the nearest ids."""
    modules = _modules()
    if exercise_id not in modules:
        near = difflib.get_close_matches(str(exercise_id), modules, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else "`course list` shows them all."
        raise UnknownExercise(f"there is no exercise {exercise_id!r}: {hint}")
    return modules[exercise_id]


@cache
def _listed() -> dict[str, Outline]:
    return {x.id: x for x in course_map.exercises()}


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
