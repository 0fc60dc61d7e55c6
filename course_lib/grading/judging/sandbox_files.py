"""All that an answer can see: Python, a few packages, stubs, and earlier lessons.

The files of a sandbox are in a folder made for one lesson: copies of the files of `course_lib` that
may be seen, and links to packages; this lesson's components and later ones' are not there.
"""

import ast
import json
import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

import course_lib
from course_lib.checking.catalogue import outlines
from course_lib.files.course_map import lesson_of
from course_lib.grading.judging.inside.earlier import EARLIER

PACKAGES = ("torch", "numpy", "einops", "jaxtyping", "tqdm")
COURSE = Path(course_lib.__file__).parent
# what carries messages, and what serves them; nothing that decides
INSIDE = (
    "__init__",
    *(
        f"{folder}.{file.stem}"
        for folder in ("answers", "old_names")
        for file in sorted((COURSE / folder).glob("*.py"))
    ),
    *(
        f"grading.judging.inside.{name}"
        for name in ("__init__", "confinement", "earlier", "escapes", "fork_server")
    ),
)  # fmt: skip


@dataclass(frozen=True)
class SandboxFiles:
    """A folder to start Python in, the program, and what both need of the system.

    `libraries` are folders of the system's shared libraries; of `readable` nothing `hidden` shows.
    """

    folder: Path
    program: Path
    libraries: tuple[Path, ...]
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]

    def shown(self) -> list[Path]:
        """List what can be read without what is hidden."""
        shown = [self.folder]
        for path in self.readable:
            inside = [hidden for hidden in self.hidden if hidden.parent == path]
            shown += (x for x in path.iterdir() if x not in inside) if inside else [path]
        return shown


def make_files(folder: Path, lesson: str) -> SandboxFiles:
    """Fill a folder with what an answer to an exercise of this lesson, or beside it, can see."""
    earlier = earlier_components(lesson)
    modules = {*INSIDE, *_with_imports({module for module, _ in earlier.values()})}
    for module in modules:
        parts = Path(*module.split(".")).with_suffix(".py")
        _copy(COURSE / parts, folder / "course_lib" / parts)
    # a notebook imports its checks from here, and finds names that do nothing
    stub = COURSE / "grading" / "judging" / "inside" / "exercises_stub.py"
    _copy(stub, folder / "course_lib" / "exercises" / "__init__.py")
    listed = folder / "course_lib" / "grading" / "judging" / "inside" / EARLIER.name
    listed.write_text(json.dumps(earlier), "utf8")
    for name, path in packages().items():
        (folder / name).symlink_to(path)
    program, library = _program(), _library()
    libraries, files = _system_libraries()
    return SandboxFiles(
        folder,
        program,
        libraries,
        readable=(program, library, *libraries, *files, *packages().values()),
        hidden=tuple(x for n in ("site", "dist") if (x := library / f"{n}-packages").is_dir()),
    )


def earlier_components(lesson: str) -> dict[str, tuple[str, str]]:
    """Map the exercises of earlier lessons to module and name of what they build."""
    exercises = [x for x in outlines() if lesson_of(x.lesson) < lesson_of(lesson)]
    prefix = f"{course_lib.__name__}."
    return {x.id: (x.module, x.name) for x in exercises if x.module.startswith(prefix)}


def _with_imports(modules: set[str]) -> set[str]:
    """Name modules of the course, and those of them that they import, without the package."""
    left, modules_seen = [module.partition(".")[2] for module in modules], set()
    while left:
        if (module := left.pop()) in modules_seen:
            continue
        modules_seen.add(module)
        tree = ast.parse((COURSE / Path(*module.split(".")).with_suffix(".py")).read_text("utf8"))
        for node in ast.walk(tree):
            match node:
                case ast.ImportFrom(module="course_lib"):
                    left += [alias.name for alias in node.names]
                case ast.ImportFrom(module=str(name)) if name.startswith("course_lib."):
                    left.append(name.partition(".")[2])
        if "." in module:
            left.append(f"{module.rpartition('.')[0]}.__init__")
    return modules_seen


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


@cache
def packages() -> dict[str, Path]:
    """Find the files and folders of the packages, and of all that they require."""
    left: list[str] = list(PACKAGES)
    names: set[str] = set()
    entries: dict[str, Path] = {}
    while left:
        if (name := left.pop().lower()) in names:
            continue
        names.add(name)
        try:
            installed = distribution(name)
        except PackageNotFoundError:  # required on other systems only, or optional
            continue
        # the record as text: `installed.files` makes an object of each of torch's 12,000 files
        record = installed.read_text("RECORD") or ""
        for top in {line.partition(",")[0].partition("/")[0] for line in record.splitlines()}:
            if top not in ("..", "__pycache__") and not top.endswith(".pth"):
                entries[top] = Path(str(installed.locate_file(top))).resolve()
        for line in installed.requires or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                left.append(requirement.name)
    return {name: path for name, path in entries.items() if path.exists()}


def _program() -> Path:
    return Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))


def _library() -> Path:
    return Path(sysconfig.get_path("stdlib")).resolve()


@cache
def _system_libraries() -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Find the folders of the shared libraries that are loaded now, and single files of them."""
    # a package that is not to be seen may have libraries of its own
    installed = (Path(sysconfig.get_path(x)).resolve() for x in ("purelib", "platlib"))
    own, loaded = [_library(), *packages().values(), *installed], set()
    maps = Path("/proc/self/maps")
    for line in maps.read_text().splitlines() if maps.exists() else []:
        path = Path(line.split(maxsplit=5)[-1])
        if ".so" in path.name and not any(path.is_relative_to(x) for x in own):
            loaded.add(path)
    # of a folder that holds Pythons too, the libraries alone
    folders = {path.parent for path in loaded if not any(path.parent.glob("python*"))}
    files = {path for path in loaded if path.parent not in folders}
    # what starts a program stands where the program says, which may be a link
    files |= {path.parent.resolve() / path.name for path in Path("/").glob("lib*/ld-*.so.*")}
    return tuple(sorted(folders)), tuple(sorted(files))
