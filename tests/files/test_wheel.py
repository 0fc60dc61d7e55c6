"""A wheel brings the whole course: it works in any folder, without a clone."""

import os
import subprocess
import sys
from zipfile import ZipFile

import nbformat
import pytest
from nbclient import NotebookClient

from course_lib.checking.catalogue import load
from course_lib.checking.notebook.solution_text import solution_text
from course_lib.files import ipynb
from course_lib.files.paths import ROOT
from course_lib.files.workspace import Workspace
from tests import WEEKLY


@pytest.fixture(scope="module")
def site(wheel):
    """Unpack a wheel as pip does."""
    with ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "site")
    return wheel.parent / "site"


def run(site, folder, *words):
    environment = os.environ | {"PYTHONPATH": str(site), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return done.stdout


LEARN = """
import sys
from course_lib.command_line import learn, main
learn.become = lambda command: 0
sys.exit(main.main(["learn"]))
"""


@pytest.mark.skipif(not WEEKLY, reason="once a week")
def test_a_wheel_hands_out_every_page_where_you_stand(site, tmp_path):
    course = ["-m", "course_lib.command_line"]
    workspace = tmp_path / "transformer-course"
    assert f"Your notebooks are in {workspace}." in run(site, tmp_path, "-c", LEARN)
    pages = {x.relative_to(workspace) for x in ipynb.listed(workspace)}
    assert pages == {x.relative_to(ROOT / "notebooks") for x in ipynb.listed(ROOT / "notebooks")}
    # in the workspace it is the same one, and what needs lessons, notebooks and results works
    assert f"Your notebooks are in {workspace}." in run(site, workspace, "-c", LEARN)
    assert "00 Start here" in run(site, workspace, *course, "progress")
    assert str(site) in run(site, workspace, "-c", "import course_lib; print(course_lib.__file__)")
    figures = "from course_lib.instruments import results; print(results.load('verify')['command'])"
    assert "verify" in run(site, workspace, "-c", figures)


@pytest.mark.parametrize("name", ["00_start_here", *(["08_encoder_and_decoder"] if WEEKLY else [])])
def test_a_notebook_alone_runs_to_its_first_check_and_keeps_the_answer(site, tmp_path, name):
    alone = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    end = next(n for n, cell in enumerate(alone.cells) if cell.source.startswith("check("))
    alone.cells = alone.cells[: end + 1]
    [exercise] = [cell for cell in alone.cells if "exercise" in cell.metadata]
    exercise_id = exercise.metadata["exercise"]
    exercise.source = solution_text(load(exercise_id))
    client = NotebookClient(alone, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=os.environ | {"PYTHONPATH": str(site), "COURSE_CLOCK": "0.01"})
    said = [x.data["text/plain"] for x in alone.cells[-1].outputs if "data" in x]
    assert f"{exercise_id}: passed" in said[0]
    assert f"passed answers are kept in {tmp_path / '.course'}." in said[-1]
    assert Workspace(tmp_path).answer(exercise_id)
