"""Exports and reports in the hands of the tools that they are for.

Takes minutes, so it runs only where COURSE_TEST_TOOLS=1 asks for it. The tools are installed once
into the folder COURSE_TOOLS (build/tools).
"""

import csv
import json
import os
import subprocess
import sysconfig
import zipfile

import jsonschema
import pytest

from course_lib.command_line.main import main
from course_lib.grading.exports import export, release
from research.benchmarks import environments
from research.benchmarks.grading import SOURCES, STEM, answers, in_one_notebook, write

pytestmark = pytest.mark.skipif(
    os.environ.get("COURSE_TEST_TOOLS") != "1", reason="takes minutes: set COURSE_TEST_TOOLS=1"
)
STUDENTS = {"right": 0, "wrong": 1, "partly": 2}
MOST = release.points("03")

# https://gradescope-autograders.readthedocs.io, "Output format"
TEXT, NUMBER = {"type": "string"}, {"type": "number"}
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
GRADESCOPE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["score", "tests"],
    "properties": {
        "score": NUMBER,
        "execution_time": NUMBER,
        "output": TEXT,
        "output_format": FORMAT,
        "test_output_format": FORMAT,
        "test_name_format": FORMAT,
        "visibility": VISIBILITY,
        "stdout_visibility": VISIBILITY,
        "extra_data": {"type": "object"},
        "tests": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "score": NUMBER,
                    "max_score": NUMBER,
                    "status": {"enum": ["passed", "failed"]},
                    "name": TEXT,
                    "name_format": FORMAT,
                    "number": TEXT,
                    "output": TEXT,
                    "output_format": FORMAT,
                    "tags": {"type": "array", "items": TEXT},
                    "visibility": VISIBILITY,
                    "extra_data": {"type": "object"},
                },
            },
        },
    },
}


@pytest.fixture(scope="module")
def tools():
    """The variables under which nbgrader and otter run."""
    try:
        return environments.environment(environments.GRADERS)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the tools could not be installed: {error}")


@pytest.fixture(scope="module")
def call(tools):
    """Run one of the tools in a folder, and return what it prints."""

    def run(folder, *words):
        ran = subprocess.run(words, cwd=folder, env=tools, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    return run


@pytest.fixture(scope="module")
def course(call, tmp_path_factory):
    """An nbgrader course of three students, released, handed in, graded and exported by it."""
    folder = tmp_path_factory.mktemp("nbgrader")
    export("nbgrader", "03", folder)
    call(folder, "nbgrader", "generate_assignment", STEM)
    names = [folder / "submitted" / student / STEM / f"{STEM}.ipynb" for student in STUDENTS]
    write(folder / "release" / STEM / f"{STEM}.ipynb", names, list(STUDENTS.values()))
    call(folder, "nbgrader", "autograde", STEM)
    call(folder, "nbgrader", "generate_feedback", STEM)
    call(folder, "nbgrader", "export")
    return folder


@pytest.fixture(scope="module")
def graded(course, tmp_path_factory):
    """The same submissions, graded by us."""
    out = tmp_path_factory.mktemp("graded") / "ours"
    assert main(["grade", str(course), "--lesson", "03", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def scores(graded):
    """The points that we give each student."""
    entries = json.loads((graded / "results.json").read_text("utf8"))["submissions"]
    found = {x["student"]: sum(y["points"] for y in x["exercises"].values()) for x in entries}
    assert found["wrong"] < found["partly"] < found["right"] == MOST
    return found


@pytest.fixture(scope="module")
def points():
    """The points of each student as the tools count them, which run a notebook as it stands."""
    return {student: in_one_notebook(answers(number)) for student, number in STUDENTS.items()}


def rows_of(path):
    return list(csv.DictReader(path.read_text("utf8").splitlines()))


def test_nbgrader_releases_stubs_and_not_solutions(course):
    released = (course / "release" / STEM / f"{STEM}.ipynb").read_text("utf8")
    assert released.count("    raise NotImplementedError") == len(SOURCES)
    assert "SOLUTION" not in released
    assert "weighted_sum(softmax(" not in released


def test_nbgrader_gives_the_points_that_we_give_but_for_what_a_wrong_answer_is_called_by(
    course, graded, scores, points
):
    theirs = {row["student_id"]: row for row in rows_of(course / "grades.csv")}
    ours = {row["student_id"]: row for row in rows_of(graded / "nbgrader.csv")}
    assert {name: float(row["score"]) for name, row in theirs.items()} == points
    assert {name: float(row["score"]) for name, row in ours.items()} == scores
    for name in STUDENTS:
        assert list(ours[name]) == list(theirs[name])
        assert ours[name]["assignment"] == theirs[name]["assignment"]
        raw = [float(rows[name]["raw_score"]) for rows in (ours, theirs)]
        assert raw == [scores[name], points[name]]
        for column in ("late_submission_penalty", "max_score"):
            assert float(ours[name][column]) == float(theirs[name][column])


def test_nbgraders_feedback_shows_our_sentences(course):
    page = (course / "feedback" / "wrong" / STEM / f"{STEM}.html").read_text("utf8")
    assert "not divided by sqrt(d_k)" in page


def test_otter_gives_the_points_of_one_notebook(call, tmp_path, scores, points):
    export("otter", "03", tmp_path)
    call(tmp_path, "otter", "generate", "--tests-dir", "tests", "--no-environment")
    names = [tmp_path / student / f"{STEM}.ipynb" for student in STUDENTS]
    write(tmp_path / f"{STEM}.ipynb", names, list(STUDENTS.values()))
    for student, name in zip(STUDENTS, names, strict=True):
        call(tmp_path, "otter", "run", name, "--autograder", "autograder.zip", "-o", name.parent)
        found = json.loads((name.parent / "results.json").read_text("utf8"))
        tests = [test for test in found["tests"] if "max_score" in test]
        assert len(tests) == len(SOURCES)
        assert sum(test["max_score"] for test in tests) == MOST
        assert sum(test["score"] for test in tests) == points[student]
    assert points["right"] == scores["right"] == MOST
    assert points["wrong"] < scores["wrong"], "one mistake costs its points once here"


def test_gradescopes_files_are_of_its_documented_format(graded):
    files = list((graded / "gradescope").iterdir())
    assert len(files) == len(STUDENTS)
    for file in files:
        jsonschema.validate(json.loads(file.read_text("utf8")), GRADESCOPE)


def test_gradescopes_archive_installs_the_course_and_grades(tmp_path, course, scores):
    export("gradescope", "03", tmp_path / "export")
    source = tmp_path / "source"
    with zipfile.ZipFile(tmp_path / "export" / "autograder.zip") as archive:
        archive.extractall(source)
    for name in ("submission", "results", "programs"):
        (tmp_path / name).mkdir()
    (tmp_path / "programs" / "apt-get").write_text("#!/bin/sh\n")
    (tmp_path / "programs" / "apt-get").chmod(0o755)
    write(
        course / "release" / STEM / f"{STEM}.ipynb",
        [tmp_path / "submission" / "mine.ipynb"],
        [STUDENTS["partly"]],
    )
    # the course out of the archive, and torch and all else from here
    packages = f"{source / 'course'}{os.pathsep}{sysconfig.get_path('purelib')}"
    environment = os.environ | {
        "AUTOGRADER": str(tmp_path),
        "PATH": f"{tmp_path / 'programs'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": packages,
        "PIP_ARGS": "--no-deps --no-build-isolation --no-index",
    }
    for script in ("setup.sh", "run_autograder"):
        words = ["bash", source / script]
        ran = subprocess.run(words, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    result = json.loads((tmp_path / "results" / "results.json").read_text("utf8"))
    jsonschema.validate(result, GRADESCOPE)
    assert result["score"] == scores["partly"]
