"""The rules of a grade: all that decides it beside the notebook."""

import hashlib
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import course_lib
from course_lib.checking.catalogue import ids, module, outlines
from course_lib.grading.judging.isolation import Level
from course_lib.grading.options import SECONDS

MEMORY = 2**31


@dataclass(frozen=True)
class Rules:
    """How submissions are judged.

    `exercises` are ids, or empty for those of each notebook's lesson; `points` replaces an
    exercise's own by other ones; an answer has so many `seconds` and so many bytes of `memory`;
    with `strict` an answer that is flagged has no points. `versions` are fingerprints of what
    judges: of each exercise's file, and of the rest.
    """

    level: Level
    seed: int
    exercises: list[str] = field(default_factory=list)
    points: dict[str, float] = field(default_factory=dict)
    seconds: int = SECONDS
    memory: int = MEMORY
    strict: bool = False
    versions: dict[str, str] = field(default_factory=dict)

    def other_options(self, other: "Rules") -> list[str]:
        """Name the options in which two runs differ."""
        one, two = asdict(self), asdict(other)
        return [name for name in one if name != "versions" and one[name] != two[name]]

    def changed(self, other: "Rules") -> list[str]:
        """Name the exercises, or the course, that are of other versions in two runs."""
        return sorted({name for name, _ in {*self.versions.items()} ^ {*other.versions.items()}})


def versions() -> dict[str, str]:
    """Return a fingerprint of each exercise's file, and one of all else that judges."""
    found = {x: _fingerprint([file]) for x in ids() if (file := _file(x))}
    own = Path(course_lib.__file__).parent
    rest = sorted(x for x in own.rglob("*.py") if not x.is_relative_to(own / "exercises"))
    packages = [f"{name} {version(name)}" for name in ("torch", "numpy", "einops")]
    return found | {"the course": _fingerprint(rest, "\n".join([sys.version, *packages]).encode())}


def _file(exercise_id: str) -> Path | None:
    """Find the file of an exercise, without loading it."""
    package, topic, name = module(exercise_id).rsplit(".", 2)
    spec = _spec(package)
    folders = (Path(x) for x in (spec and spec.submodule_search_locations) or [])
    return next((x for folder in folders if (x := folder / topic / f"{name}.py").exists()), None)


_spec = cache(find_spec)


def _fingerprint(files: list[Path], more: bytes = b"") -> str:
    found = hashlib.sha256(more)
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()


def exercises_of(lessons: Iterable[str]) -> list[str]:
    """List the exercises of lessons and explorations. Raises LookupError for one without any."""
    chosen = []
    for lesson in lessons:
        own = [x.id for x in outlines() if x.lesson == lesson]
        if not own:
            known = sorted({x.lesson for x in outlines()})
            raise LookupError(f"no lesson {lesson} has exercises: there are {', '.join(known)}")
        chosen += own
    return chosen
