import atexit
import os
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_lib.files.paths import ROOT
from tests.guard import Guard, leave_home

# a shell lets what it runs in the background ignore interrupts, and so would all its children
signal.signal(signal.SIGINT, signal.default_int_handler)
# one guard for all workers
GUARD = None if "PYTEST_XDIST_WORKER" in os.environ else Guard(ROOT)
leave_home(ROOT)


def pytest_configure(config):
    """Let the run fail if a file of the user's changes."""
    if GUARD:
        config.pluginmanager.register(GUARD)


@pytest.fixture
def save_notebook():
    """Save a notebook of code cells; a pair (id, source) is the cell of that exercise."""

    def save(path, *cells, lesson=None):
        notebook = new_notebook(cells=[new_markdown_cell("# A lesson", id="title")])
        for number, cell in enumerate(cells):
            exercise_id, source = cell if isinstance(cell, tuple) else (None, cell)
            metadata = {"exercise": exercise_id} if exercise_id else {}
            notebook.cells.append(new_code_cell(source, id=f"cell-{number}", metadata=metadata))
        if lesson:
            notebook.metadata["course"] = {"lesson": lesson, "title": "A lesson"}
        nbformat.write(notebook, path)
        return path

    return save


@pytest.fixture
def shell():
    """Open IPython's shell in this process, without the user's history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    opened = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    yield opened
    atexit.unregister(opened.atexit_operations)
    InteractiveShell.clear_instance()


@pytest.fixture
def run_cells(shell, tmp_path, monkeypatch):
    """Run a notebook's code in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(cells):
        for cell in cells:
            if cell.cell_type == "code":
                shell.run_cell(cell.source).raise_error()

    return run


@pytest.fixture
def private_package(tmp_path, monkeypatch):
    """Install a package of an instructor's own, whose exercise `private/twice` is of lesson 01."""
    from course_lib import exercises
    from course_lib.checking import catalogue

    package = tmp_path / "private_exercises"
    (package / "private").mkdir(parents=True)
    (package / "__init__.py").touch()
    hello = Path(exercises.__file__).parent / "start" / "hello.py"
    (package / "private" / "twice.py").write_text(hello.read_text().replace('"00"', '"01"'))
    info = tmp_path / "private-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: private\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[course_lib.exercises]\nextra = private_exercises\n")
    monkeypatch.syspath_prepend(tmp_path)
    kept = (catalogue._modules, catalogue.outlines)
    for cache in kept:
        cache.cache_clear()
    yield package
    for cache in (*kept, catalogue.load):
        cache.cache_clear()
    for name in [x for x in sys.modules if x.partition(".")[0] == package.name]:
        del sys.modules[name]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Build the course's wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=Path(__file__).parents[1], check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def browser():
    """Open this system's Chromium, or skip the test."""
    pytest.importorskip("playwright", reason="needs playwright")
    from tests.browser.lab import CHROMIUM, chromium

    if not CHROMIUM:
        pytest.skip("needs Chromium, and there is none on this machine")
    with chromium() as opened:
        yield opened
