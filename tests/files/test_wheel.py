"""A wheel brings the whole course: it works in any folder, without a clone."""

import os
import subprocess
import sys
from zipfile import ZipFile

import pytest

from course_lib.files import ipynb
from course_lib.files.paths import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build a wheel, and unpack it as pip does."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


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
learn.fetch_missing = lambda notebooks: None
learn.become = lambda command: 0
sys.exit(main.main(["learn"]))
"""


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
