"""Which pages the tests run daily: lessons, and explorations that stand on what has changed.

An exploration has run when its notebook is committed. What it stands on are its page, the modules
of the course that this imports, and theirs, its exercises, and the kept results that it loads. What
a lesson stands on, too, is left out, as are the engine that checks answers and the versions of
packages: lessons run daily, and use them in the same way. Weekly all pages run. Where the history
does not say when a notebook was committed, as in a shallow clone, it runs.
"""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

from course_lib.files.course_map import is_exploration, notebook_of, page_files
from course_lib.files.paths import ROOT

COURSE, NOTEBOOKS = ROOT / "course_lib", ROOT / "notebooks"
ENGINE = (COURSE / "checking", COURSE / "answers")
RESULTS = re.compile(r'results\.load\("(\w+)"\)')
LOG = "log -m --first-parent --format=/%H --name-only --".split()
EXERCISE = re.compile(r'(?:"|# exercise: )(\w+/\w+)\b')
GIVEN = re.compile(r"# given: ([\w.]+)\.")


def due() -> list[Path]:
    """List the pages that run daily."""
    commits, pages = last_commits(NOTEBOOKS), page_files()
    lessons = [page for number, page in pages.items() if not is_exploration(number)]
    tried = set().union(*map(stands_on, lessons))

    def is_due(exploration: Path) -> bool:
        notebook = NOTEBOOKS / notebook_of(exploration)
        own = {notebook} | stands_on(exploration) - tried
        commit = commits.get(notebook)
        return not commit or bool(changed_since(commit) & own)

    return [page for page in pages.values() if page in lessons or is_due(page)]


def stands_on(page: Path) -> set[Path]:
    """Return the files of the course that a page stands on, itself among them."""
    found, new = set(), {page}
    while new:
        found |= new
        new = {file for one in new for file in _named(one)} - found
    return found


@cache
def _named(file: Path) -> set[Path]:
    """Return the files of the course that a file names."""
    if file.suffix != ".py":
        return set()
    text = file.read_text("utf8")
    named = {ROOT / "research" / "results" / f"{name}.json" for name in RESULTS.findall(text)}
    named |= {COURSE / "exercises" / f"{name}.py" for name in EXERCISE.findall(text)}
    modules = {f"course_lib.{name}" for name in GIVEN.findall(text)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    for parts in (module.split(".") for module in modules):
        # the package itself, with its version, is left out
        for end in range(2, len(parts) + 1):
            path = ROOT.joinpath(*parts[:end])
            named |= {path.with_suffix(".py"), path / "__init__.py"}
    return {x for x in named if x.is_file() and not any(map(x.is_relative_to, ENGINE))}


def last_commits(folder: Path) -> dict[Path, str]:
    """Return the last commit of each file below a folder, a merge as one; nothing if unknown."""
    if _git("rev-parse", "--is-shallow-repository") != ["false"]:
        return {}
    commits: dict[Path, str] = {}
    commit = ""
    for line in filter(None, _git(*LOG, str(folder))):
        if line.startswith("/"):
            commit = line.removeprefix("/")
        else:
            commits.setdefault(ROOT / line, commit)
    return commits


@cache
def changed_since(commit: str) -> set[Path]:
    """Return the files that differ from what they were in a commit."""
    return {ROOT / name for name in _git("diff", "--name-only", commit)}


def _git(*words: str) -> list[str]:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:  # there is no git here
        return []
    return done.stdout.splitlines()
