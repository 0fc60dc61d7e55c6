"""What the everyday loop asks of changed files: types of these alone, and the tests near to them.

`make test` asks everything; here an answer within half a minute is worth more.
"""

import ast
import subprocess
import tomllib
from pathlib import Path

from course_lib.files.paths import ROOT

LAWS = "tests/checking/laws/test_laws.py::test_every_exercise_holds_all_laws"
ORACLES = (
    "tests/verify/test_verify.py::test_every_component_equals_its_oracle_and_so_do_its_gradients"
)
# one exercise of each kind: a function, a method, numbers alone, code that is handed out broken
KINDS = ("attention/softmax", "add_norm/pre_norm", "multi_head/score_variance", "masks/packing")
# where a change of the engine could turn any verdict
ENGINE = ("answers", "checking")
# these take longer than all others together: `make test` runs them
SLOW = (
    "test_laws", "test_exports", "test_grade", "test_hostile", "test_isolation", "test_with_tools",
    "test_lessons", "test_against_hugging_face", "test_verify", "test_agreement", "test_idioms",
    "test_disagreements", "test_strangers", "test_any_result", "test_forbidden",
)  # fmt: skip


def changed_files() -> list[Path]:
    """List the files that differ from the last commit, or else those of the last commit."""
    new = _git("ls-files --others --exclude-standard")
    names = new + _git("diff --name-only HEAD") or _git("diff --name-only HEAD~1")
    return [Path(name) for name in names if (ROOT / name).exists()]


def _git(words: str) -> list[str]:
    command = ["git", *words.split()]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()


def typed(changed: list[Path]) -> list[str]:
    """Name the changed files whose types are checked."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["basedpyright"]
    return [
        path.as_posix()
        for path in changed
        if path.suffix == ".py"
        and any(path.is_relative_to(x) for x in settings["include"])
        and not any(path.match(x) for x in settings["exclude"])
    ]


def tests_for(changed: list[Path]) -> list[str]:
    """Return pytest's arguments for changed files, whose paths are relative to the repository."""
    return sorted({test for path in changed for test in _tests_for_one(path)})


def _tests_for_one(path: Path) -> set[str]:
    match path.parts:
        case ("tests", *_) if path.stem.startswith("test_"):
            return {path.as_posix()}
        case ("lessons", *_, name) if name[:2].isdigit() and path.suffix == ".py":
            return {f"tests/lessons/test_lessons.py::test_cells_are_short[{path.stem}]"}
        case ("course_lib", "exercises", topic, _) if path.suffix == ".py":
            return {f"{LAWS}[{topic}/{path.stem}]"}
        case ("course_lib", "verify", *_):
            return {"tests/verify/test_verify.py"}
        case ("course_lib", "xray", "page", _):
            return {"tests/xray/test_page.py"}
        case ("course_lib", room, *_, _) if room in ENGINE and path.suffix == ".py":
            return {f"{LAWS}[{x}]" for x in KINDS} | _importing(path, ENGINE) | _mirror(path)
        case ("course_lib", *_) if path.suffix == ".py":
            own = _named_like(path) | _comparisons_of(path)
            own = own or _importing(path, _rooms(path)) or _mirror(path)
            return _laws_of(path) | own
        case ("research", *_) if path.suffix == ".py":
            return _importing(path, ("research",))
        case (*_, name) if name.endswith(".md"):
            return {"tests/pages/test_project.py", "tests/pages/test_pages.py"}
        case ("research", "results", *_) | ("notebooks", *_):
            return set()
    return {"tests/pages/test_project.py"}


def _comparisons_of(path: Path) -> set[str]:
    """Name the test that compares a component with its oracle."""
    compared = ROOT / "course_lib" / "verify" / path.name
    return {f"{ORACLES}[{path.stem}]"} if len(path.parts) == 2 and compared.exists() else set()


def _named_like(path: Path) -> set[str]:
    """Find a module's own test file, by its name."""
    files = [x for room in _rooms(path) for x in (ROOT / "tests" / room).rglob("test_*.py")]
    named = [x for x in files if x.stem == f"test_{path.stem}" and x.stem not in SLOW]
    return {x.relative_to(ROOT).as_posix() for x in named}


def _rooms(path: Path) -> tuple[str, ...]:
    """Name the folder of tests that a module's own tests are in."""
    room = path.parts[1] if len(path.parts) > 2 else "components"
    return ("components" if room == "efficient" else room,)


def _laws_of(path: Path) -> set[str]:
    """Name the laws of the exercises that a module is the reference of."""
    from course_lib.checking.catalogue import ids, load

    module = ".".join(path.with_suffix("").parts)
    return {f"{LAWS}[{x}]" for x in ids() if load(x).reference.__module__ == module}


def _importing(path: Path, rooms: tuple[str, ...]) -> set[str]:
    """Find the test files of some folders that import a module themselves."""
    module = ".".join(path.with_suffix("").parts)
    files = [file for room in rooms for file in (ROOT / "tests" / room).rglob("test_*.py")]
    return {
        file.relative_to(ROOT).as_posix()
        for file in files
        if file.stem not in SLOW and module in _imported(file)
    }


def _imported(file: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(file.read_text("utf8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return modules


def _mirror(path: Path) -> set[str]:
    """Name the tests of the folder that mirrors a module's."""
    folder = ROOT.joinpath("tests", *path.parts[1:-1])
    files = folder.glob("test_*.py") if folder != ROOT / "tests" else []
    return {x.relative_to(ROOT).as_posix() for x in files if x.stem not in SLOW}
