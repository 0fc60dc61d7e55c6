"""Exports, without the tools that they are for (those: test_with_tools.py)."""

import io
import json
import linecache
import re
import shutil
import subprocess
import sys
import types
import zipfile
from functools import cache
from pathlib import Path

import nbformat
import pytest

from course_lib import exercises
from course_lib.answers.source import Source
from course_lib.checking.catalogue import ids, load, outline
from course_lib.command_line.main import main
from course_lib.files.errors import CommandError
from course_lib.grading.exports import TOOLS, export, release
from course_lib.grading.judging.isolation import best_level
from course_lib.grading.judging.rules import exercises_of
from tests import WEEKLY

LESSONS = sorted({load(exercise_id).lesson for exercise_id in ids()})
# a lesson of functions and a class, one with pages to mend, and an exploration with stand-ins
EXECUTED = LESSONS if WEEKLY else ["03", "04", "04_distances"]
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION$", re.MULTILINE | re.DOTALL)


@cache
def files_of(tool, lesson):
    return TOOLS[tool](lesson)


def notebook_of(tool, lesson):
    files = files_of(tool, lesson)
    [text] = [text for name, text in files.items() if name.endswith(".ipynb")]
    return nbformat.reads(text, as_version=4)


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("lesson", EXECUTED)
def test_nbgraders_solutions_win_all_points_of_its_own_cells(lesson, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook, scope, won, most = notebook_of("nbgrader", lesson), {}, 0, 0
    for number, cell in enumerate(code_of(notebook)):
        file, lines = f"<cell {number}>", cell.source.splitlines(keepends=True)
        linecache.cache[file] = (len(cell.source), None, lines, file)  # as a kernel does
        exec(compile(cell.source, file, "exec"), scope)
        assert not cell.outputs
        if cell.metadata.nbgrader["grade"]:
            won += scope["found"].points
            most += cell.metadata.nbgrader["points"]
    assert won == most == release.points(lesson) > 0


@pytest.mark.parametrize("lesson", LESSONS)
def test_nbgraders_cells_are_named_locked_and_cleared_to_stubs(lesson):
    cells = code_of(notebook_of("nbgrader", lesson))
    names = [cell.metadata.nbgrader["grade_id"] for cell in cells]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w-]+", name, re.ASCII) for name in names)
    for cell, after in zip(cells, [*cells[1:], None], strict=True):
        solution = "exercise" in cell.metadata
        assert cell.metadata.nbgrader["solution"] == solution
        assert cell.metadata.nbgrader["locked"] != solution
        if solution:
            cleared = SOLUTION.sub(r"\1raise NotImplementedError", cell.source)
            assert Source(cleared).is_stub(load(cell.metadata.exercise).method)
            assert cell.metadata.exercise in after.source
            assert after.source.endswith("found.points")


@pytest.mark.parametrize("tool", ["nbgrader", "otter"])
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_release_holds_no_demonstration_and_no_answer_of_the_lesson(tool, lesson):
    own = {*exercises_of([lesson])}
    notebook = notebook_of(tool, lesson)
    assert {x.metadata.get("exercise") for x in code_of(notebook)} == own | {None}
    for cell in code_of(notebook):
        assert "training" not in cell.metadata.get("tags", [])
        assert not any(f'mine("{exercise_id}")' in cell.source for exercise_id in own)
        if not {"exercise", "given"} & cell.metadata.keys():
            assert "plots." not in cell.source
            assert "reveal(" not in cell.source


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_release_holds_no_section_without_code(lesson):
    texts = []
    for cell in notebook_of("otter", lesson).cells:
        if cell.cell_type != "markdown":
            texts.clear()
        elif headings := re.findall(r"^## .+", cell.source, re.MULTILINE):
            texts += headings
            assert len(texts) == 1, texts


def test_a_check_shows_its_sentence_and_counts_half_an_answer(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for cell in code_of(notebook_of("nbgrader", "03")):
        if cell.metadata.get("exercise") == "self_attention/project":
            cell.source = """def project(x, *weights):
    import sys
    print("nbgrader would take this for a failure", file=sys.stderr)
    return tuple((x @ w).detach() for w in weights)"""
        exec(cell.source, scope)
        if "self_attention/project" in cell.source:
            break
    assert 0 < scope["found"].points < scope["found"].max_points
    printed = capsys.readouterr()
    assert scope["found"].message in printed.out
    assert not printed.err


@pytest.fixture
def otter(monkeypatch):
    """As much of otter as its test files import."""

    def test_case(name, points):
        return lambda body: types.SimpleNamespace(name=name, points=points, body=body)

    module = types.ModuleType("otter.test_files")
    module.test_case = test_case
    monkeypatch.setitem(sys.modules, "otter", types.ModuleType("otter"))
    monkeypatch.setitem(sys.modules, "otter.test_files", module)


def cases_of(files, exercise):
    scope = {}
    exec(files[f"tests/{release.name(exercise.id)}.py"], scope)
    check = json.dumps(f'grader.check("{scope["name"]}")')
    assert check in files[f"{release.stem(exercise.lesson)}.ipynb"]
    return [x for x in scope.values() if isinstance(x, types.SimpleNamespace)]


@pytest.mark.usefixtures("otter")
@pytest.mark.parametrize("lesson", LESSONS)
def test_otters_cases_are_worth_what_each_exercise_is(lesson):
    files = files_of("otter", lesson)
    for exercise in map(load, exercises_of([lesson])):
        assert sum(x.points for x in cases_of(files, exercise)) == outline(exercise.id).points


@pytest.mark.usefixtures("otter")
def test_otter_judges_an_answer_once_for_all_its_properties(monkeypatch):
    exercise, judged, one = load("self_attention/project"), [], exercises.verdict
    count = lambda *of: judged.append(of) or one(*of)  # noqa: E731
    monkeypatch.setattr(exercises, "verdict", count)
    cases = cases_of(files_of("otter", "03"), exercise)
    for case in cases:
        case.body(exercise.reference)
    assert len(cases) > 3
    assert len(judged) == 1


@pytest.mark.usefixtures("otter")
def test_otters_cases_hold_for_the_reference_and_not_for_nothing():
    files = files_of("otter", "03")
    for exercise in map(load, exercises_of(["03"])):
        for case in cases_of(files, exercise):
            case.body(exercise.reference)
            with pytest.raises(AssertionError, match=exercise.name):
                case.body(None)  # what otter hands over where the notebook lacks the name


@pytest.mark.parametrize("tool", TOOLS)
def test_each_page_says_what_is_not_protected(tool):
    readme = files_of(tool, "03")["README.md"]
    assert readme.startswith("# Lesson 03 for ")
    assert "torch, numpy, einops, jaxtyping and tqdm" in readme
    assert "what is not" in readme or "What is not protected" in readme


@pytest.mark.parametrize("tool", TOOLS)
def test_an_export_is_the_same_each_time(tool):
    assert TOOLS[tool]("03") == files_of(tool, "03")


@pytest.fixture
def autograder(tmp_path):
    """The folder of a Gradescope container, with our archive in it and an empty submission."""
    for name in ("source", "submission", "results", "venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    content = files_of("gradescope", "03")["autograder.zip"]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            extracted = Path(archive.extract(entry, tmp_path / "source"))
            extracted.chmod(entry.external_attr >> 16)
    return tmp_path


def run(autograder, **environment):
    path = {"AUTOGRADER": str(autograder), "PATH": f"{autograder}/programs:/usr/bin:/bin"}
    words = [autograder / "source" / "run_autograder"]
    return subprocess.run(words, env=path | environment, capture_output=True, text=True)


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_gradescopes_archive_holds_what_installs_the_course_and_nothing_else(autograder):
    source = autograder / "source"
    assert {x.name for x in source.iterdir()} == {
        "README.md", "setup.sh", "run_autograder", "course",
    }  # fmt: skip
    names = {x.relative_to(source).as_posix() for x in source.rglob("*")}
    assert {
        "course/pyproject.toml",
        "course/constraints.txt",
        "course/course_lib/command_line/main.py",
    } <= names
    assert not [x for x in names if "__pycache__" in x or x.endswith((".pyc", ".ipynb"))]


def test_gradescopes_set_up_installs_python_and_bubblewrap(autograder):
    said = autograder / "said"
    log = f'echo "$(basename "$0") $*" >> {said}'
    program(autograder / "programs" / "apt-get", log)
    program(autograder / "programs" / "python3", log)
    program(autograder / "venv" / "bin" / "python", log)
    environment = {"AUTOGRADER": str(autograder), "PATH": f"{autograder}/programs:/usr/bin:/bin"}
    words = [autograder / "source" / "setup.sh"]
    subprocess.run(words, env=environment | {"PIP_ARGS": "--one --two"}, check=True)
    lines = said.read_text().splitlines()
    assert "apt-get install -qy bubblewrap python3 python3-venv" in lines
    assert f"python3 -m venv {autograder}/venv" in lines
    course = f"{autograder}/source/course"
    pip = f"python -m pip install -c {course}/constraints.txt --one --two -e {course}"
    assert lines[-1] == pip


def test_gradescope_refuses_an_old_python_in_one_sentence(autograder):
    program(autograder / "programs" / "apt-get", "")
    program(autograder / "programs" / "python3", "exit 1")
    environment = {"AUTOGRADER": str(autograder), "PATH": f"{autograder}/programs:/usr/bin:/bin"}
    words = [autograder / "source" / "setup.sh"]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "Python 3.11 or newer" in ran.stderr


def test_without_a_sandbox_gradescope_gets_no_result(autograder):
    course = autograder / "venv" / "bin" / "course"
    program(course, 'echo "course: nothing keeps students\' code out." >&2; exit 2')
    ran = run(autograder)
    assert ran.returncode == 1
    assert "Nothing was graded" in ran.stderr
    assert not list((autograder / "results").iterdir())


def test_with_trust_gradescope_grades_in_plain_processes(autograder):
    said = autograder / "said"
    course = autograder / "venv" / "bin" / "course"
    program(course, f'echo "$*" >> {said}; case "$*" in *--trust) exit 0;; esac; exit 2')
    program(autograder / "venv" / "bin" / "python", f"echo python >> {said}; cat > /dev/null")
    script = autograder / "source" / "run_autograder"
    script.write_text(script.read_text().replace('TRUST="no"', 'TRUST="yes"'))
    ran = run(autograder)
    assert ran.returncode == 0, ran.stderr
    refused, trusted, written = said.read_text().splitlines()
    assert trusted == f"{refused} --trust"
    assert "--lesson 03" in refused
    assert written == "python"


@pytest.mark.skipif(best_level() == "plain", reason="needs bubblewrap or Landlock")
@pytest.mark.parametrize("submitted", ["two notebooks", "nothing"])
def test_gradescopes_result_is_that_of_the_notebook_that_counts(autograder, submitted):
    shutil.rmtree(autograder / "venv")
    (autograder / "venv").symlink_to(sys.prefix)
    if submitted == "two notebooks":
        handed_in = autograder / "submission"
        notebook = notebook_of("nbgrader", "03")
        nbformat.write(notebook, handed_in / "right.ipynb")
        for cell in notebook.cells:
            cell.source = SOLUTION.sub(r"\1raise NotImplementedError", cell.source)
        nbformat.write(notebook, handed_in / "an older one.ipynb")
        shutil.copystat(__file__, handed_in / "an older one.ipynb")
    ran = run(autograder)
    assert ran.returncode == 0, ran.stderr
    result = json.loads((autograder / "results" / "results.json").read_text())
    if submitted == "nothing":
        assert result["score"] == 0
        assert "no notebook" in result["output"]
    else:
        assert result["score"] == release.points("03")
        assert [test["status"] for test in result["tests"]] == ["passed"] * 5


@pytest.mark.parametrize("tool", TOOLS)
def test_the_command_writes_a_folder(tool, tmp_path, capsys):
    assert main(["export", tool, "03", str(tmp_path / "new")]) == 0
    assert f"{tmp_path / 'new' / 'README.md'} says how to go on." in capsys.readouterr().out
    assert set(files_of(tool, "03")) == {
        x.relative_to(tmp_path / "new").as_posix()
        for x in (tmp_path / "new").rglob("*")
        if x.is_file()
    }


@pytest.mark.parametrize(
    ("lesson", "folder", "said"),
    [
        ("99", "new", "no lesson 99 has exercises: there are 00"),
        ("", "new", "no lesson  has exercises"),
        ("../03", "new", "no lesson ../03 has exercises"),
        ("03", ".", "is not empty: name another folder."),
        ("03", "file", "file cannot be written to: Not a directory."),
        ("03", "file/new", "file/new cannot be written to: Not a directory."),
        ("03", "/proc/new", "/proc/new cannot be written to: No such file or directory."),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, lesson, folder, said):
    (tmp_path / "file").write_text("")
    assert main(["export", "otter", lesson, str(tmp_path / folder)]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("course: ")
    assert said in err
    assert err.count("\n") == 1
    assert [x.name for x in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def write(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("course_lib.grading.exports.write_atomically", write)
    with pytest.raises(CommandError, match=r"new cannot be written to: No space left on device\.$"):
        export("nbgrader", "03", tmp_path / "new")
