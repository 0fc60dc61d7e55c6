"""What an answer may not call: looked for in its source, and while it runs."""

import types
from collections.abc import Iterator
from functools import lru_cache

from course_lib.answers.source import Source
from course_lib.answers.source_names import loaded, names_in
from course_lib.answers.watch import ATEN
from course_lib.checking import ready_made
from course_lib.checking.exercise import Exercise

# a notebook's own: what they give inside of an answer would be another answer
DOORS = tuple(f"course_lib.exercises.{x}" for x in ("mine", "check", "solution", "hint"))
# whose objects one knows by what they are, not by how a source names them
KNOWN_PACKAGES = ("torch", "course_lib", "einops", "numpy", "jaxtyping", "math")


def named(exercise: Exercise) -> tuple[str, ...]:
    """List the names that an answer may not use: those forbidden, then other ways to the same."""
    same = " ".join(ready_made.SAME.get(name, "") for name in exercise.forbidden).split()
    return tuple(dict.fromkeys([*exercise.forbidden, *same]))


def watched(exercise: Exercise) -> tuple[str, ...]:
    """List what is watched for while an answer runs: names, then kinds of operations."""
    kinds = (ready_made.OPERATIONS.get(name) for name in exercise.forbidden)
    return (*named(exercise), *DOORS, *dict.fromkeys(f"{ATEN}{kind}" for kind in kinds if kind))


def in_source(source: Source, known: dict[str, str], forbidden: tuple[str, ...]) -> list[str]:
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
