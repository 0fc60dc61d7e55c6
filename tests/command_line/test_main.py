"""The command line: what it prints, what it records, and how it ends."""

import contextlib
import errno
import functools
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import types
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import course_lib
from course_lib.answers import process as answer_process
from course_lib.checking import catalogue
from course_lib.checking.notebook.predictions import asked
from course_lib.checking.stubs import stub
from course_lib.command_line import shared
from course_lib.command_line.main import COMMANDS, _parser, main
from course_lib.data import store
from course_lib.files import ipynb, paths
from course_lib.files.course_map import course_map
from course_lib.files.paths import ROOT
from course_lib.files.workspace import Guess, Workspace
from course_lib.instruments import results
from course_lib.verify import TRIALS, Row

ID = "start/hello"
RIGHT = "def double(x):\n    return FACTOR * x"
WRONG = "def double(x):\n    return x**2"
CHECK = f'check("{ID}", double)'
STUB = stub(catalogue.load(ID).reference).rstrip()


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """Stand in a workspace of one's own."""
    made = Workspace.make(tmp_path / "Größe und Ärger")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def notebook(workspace, save_notebook):
    """Save a notebook of lesson 00 in the workspace."""
    return functools.partial(save_notebook, workspace.folder / "00.ipynb", lesson="00")


@pytest.fixture(scope="module")
def process():
    with answer_process.ChildProcess(seconds=20) as process:
        yield process


@pytest.fixture
def warm(process, monkeypatch):
    """Let every check use the same process, which takes seconds to start."""
    monkeypatch.setattr(answer_process, "ChildProcess", lambda: contextlib.nullcontext(process))


def sources(path):
    return [ipynb.text(cell) for cell in ipynb.read(path)["cells"]]


def test_each_file_is_a_command():
    folder = Path(shared.__file__).parent
    files = {file.stem for file in folder.glob("*.py")}
    assert files - {"__init__", "__main__", "main", "shared"} == set(COMMANDS)


def test_without_a_command_it_helps(capsys):
    assert main([]) == 0
    assert "course learn" in capsys.readouterr().out


@pytest.mark.parametrize("command", _parser()[1])
def test_each_command_has_an_example(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert f"Example: course {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("chek x.ipynb", "there is no command 'chek': did you mean check?"),
        ("list --json", "--json is not understood"),
        ("check", "required: NOTEBOOK"),
        ("check missing.ipynb", "there is no file missing.ipynb"),
        ("check text.ipynb", "not JSON"),
        ("check .", ". is a folder: name one notebook in it."),
        ("check empty.ipynb", "holds no exercise"),
        ("watch missing.ipynb", "there is no file or folder missing.ipynb"),
        ("watch text.txt", "text.txt is no notebook: name one, or a folder of them"),
        ("check 00.ipynb --exercise start/helo", "did you mean start/hello"),
        ("check 00.ipynb --exercise attention/softmax", "it has start/hello"),
        ("hint start/helo", "did you mean start/hello"),
        ("hint start/hello first", "invalid int value"),
        ("hint start/hello 0", "has the hints 1 to 2, and no hint 0"),
        ("hint start/hello 9", "and no hint 9"),
        ("solution attention/softmx", "did you mean attention/softmax"),
        ("reset start/helo", "did you mean start/hello"),
        ("reset attention/softmax", "`course learn` brings it"),
        ("reset start/hello other.ipynb", "there is no file"),
        ("reset start/hello text.ipynb", "text.ipynb is not a notebook"),
        ("fetch cmudikt", "did you mean 'cmudict'?"),
        ("learn --port eighty", "invalid int value"),
    ],
)
def test_bad_input_is_one_sentence(workspace, notebook, save_notebook, capsys, words, said):
    notebook((ID, RIGHT))
    save_notebook(workspace.folder / "empty.ipynb", "1 + 1")
    (workspace.folder / "text.ipynb").write_text("some text")
    (workspace.folder / "text.txt").touch()
    try:
        status = main(words.split())
    except SystemExit as ended:
        status = ended.code
    out, err = capsys.readouterr()
    assert status == 2
    assert said in err
    assert (out, err.count("\n")) == ("", 1)


NEED_A_WORKSPACE = ["progress", "progress --save file.zip", f"reset {ID}", "certificate", "watch"]
NO_WORKSPACE = (
    "course: {} is no workspace: go to yours, or add `--workspace FOLDER`; `course learn` makes "
    "one.\n"
)


@pytest.mark.parametrize("words", NEED_A_WORKSPACE)
def test_no_command_takes_a_workspace_that_nobody_named(words, tmp_path, monkeypatch, capsys):
    Workspace.make(tmp_path / "mine")
    (outside := tmp_path / "transformer-course" / "inside").mkdir(parents=True)
    monkeypatch.chdir(outside)
    for named in (None, "../../mine/of a friend"):
        assert main([*words.split(), *(["--workspace", named] if named else [])]) == 2
        assert capsys.readouterr() == ("", NO_WORKSPACE.format(named or outside))
    monkeypatch.setenv("COURSE_WORKSPACE", "not there")
    assert main(words.split()) == 2
    assert capsys.readouterr() == ("", NO_WORKSPACE.format("not there"))
    assert not list(outside.iterdir())


def test_a_command_uses_the_workspace_that_it_is_told_and_says_which(
    workspace, notebook, tmp_path, monkeypatch, capsys
):
    path = notebook((ID, RIGHT))
    (other := Workspace.make(tmp_path / "other")).note_check(ID, "passed", 9, 9)
    for folder in (tmp_path, other.folder):
        monkeypatch.chdir(folder)
        for words in ("progress", f"hint {ID} 1", f"reset {ID}", "certificate", "doctor"):
            main([*words.split(), "--workspace", str(workspace.folder)])
            said = capsys.readouterr().out
            assert f"{workspace.folder}" in said
            assert f"{other.folder}" not in said
    assert "NotImplementedError" in sources(path)[1]
    assert (workspace.record(ID).hints, other.record(ID).hints) == (1, 0)
    assert [x.name for x in other.folder.iterdir()] == [".course"]


@pytest.mark.usefixtures("warm")
def test_what_can_do_without_a_workspace_says_that_nothing_is_recorded(
    tmp_path, save_notebook, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    save_notebook(tmp_path / "00.ipynb", (ID, STUB), lesson="00")
    for words in (["hint", ID], ["check", "00.ipynb"]):
        assert main(words) == 0
        assert f"Not recorded: {tmp_path} is in no workspace." in capsys.readouterr().out
    assert [x.name for x in tmp_path.iterdir()] == ["00.ipynb"]


def test_before_the_deadline_a_check_says_what_is_missing_and_judges_nothing(
    notebook, workspace, capsys
):
    path = notebook((ID, STUB))
    assert main(["check", str(path), "--due", "00"]) == 1
    assert capsys.readouterr().out == (
        f"○ {ID}: not written yet\n{path} is a page of 00; 0 of 1 answers are there.\n"
    )
    notebook((ID, WRONG))
    assert main(["check", str(path), "--due", "00"]) == 0
    assert "1 of 1 answers are there" in capsys.readouterr().out
    assert main(["check", str(path), "--due", "05"]) == 2
    assert "This is the notebook of 00: what is graded here is 05." in capsys.readouterr().err
    assert main(["check", str(path), "--due", "99"]) == 2
    assert "no lesson 99 has exercises" in capsys.readouterr().err
    assert workspace.record(ID).attempts == 0


@pytest.mark.usefixtures("warm")
def test_a_check_judges_records_and_keeps(workspace, notebook, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # the notebook's folder decides, not this one
    path = notebook((ID, STUB), CHECK)
    assert main(["check", str(path)]) == 0
    assert "0 of 1 exercises passed, 0 of 9 points." in capsys.readouterr().out
    assert workspace.record(ID).attempts == 0

    notebook("FACTOR = 2", (ID, WRONG), "raise SystemExit", CHECK)
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr().out
    assert "not yet, 0 of 9 points\n  The result is the square of the input." in said

    notebook("FACTOR = 2", (ID, RIGHT), (ID, RIGHT), CHECK)
    assert main(["check", str(path), "--exercise", ID]) == 0
    said = capsys.readouterr().out
    assert "cells 3 and 4 define `double`; the last one counts" in said
    assert "1 of 1 exercises passed, 9 of 9 points." in said
    record = workspace.record(ID)
    assert (record.passed, record.points, record.attempts) == (True, 9, 2)
    assert workspace.answer(ID) == f"FACTOR = 2\n\n{RIGHT}\n"


@pytest.mark.usefixtures("warm")
def test_a_notebook_sends_nothing_to_the_terminal_that_it_obeys(notebook, capsys):
    for text in ("\\x1b]0;owned\\x07\\x1b[31mred", "\\x1b[2J\\x1b]52;c;AAAA\\x07", "a\\rb\\u202ec"):
        print_it = f"def double(x):\n    print('{text}')\n    return x**2"
        raise_it = f"def double(x):\n    raise ValueError('{text}')"
        for source in (print_it, raise_it):
            assert main(["check", str(notebook((ID, source)))]) == 1
            said = capsys.readouterr().out
            assert all(line.isprintable() or "\t" in line for line in said.split("\n"))


def test_an_answer_runs_on_the_workspaces_own(workspace, notebook, tmp_path, monkeypatch):
    workspace.keep("attention/dot_scores", "def dot_scores(q, k):\n    return 2 * q\n")
    path = notebook(
        'from course_lib.exercises import mine\ndot_scores = mine("attention/dot_scores")',
        (ID, "def double(x):\n    return dot_scores(x, x)"),
    )
    monkeypatch.chdir(tmp_path)
    assert main(["check", str(path)]) == 0
    assert "return 2 * q" in workspace.answer(ID)


@pytest.mark.usefixtures("warm")
def test_an_answer_that_runs_wild_costs_its_own_exercise_alone(
    tmp_path, save_notebook, process, capsys, monkeypatch
):
    monkeypatch.setattr(process, "_seconds", 4)
    wild = {
        "attention/softmax": "def softmax(scores, mask=None):\n    while True:\n        pass",
        "attention/dot_scores": "import sys\ndef dot_scores(q, k):\n    sys.exit(0)",
        "attention/weighted_sum": "import os\ndef weighted_sum(weights, v):\n    os._exit(0)",
        "windows/receptive_field": (
            "import torch\ndef receptive_field(layers, width):\n    return torch.zeros(25_000_000)"
        ),
        "self_attention/parameter_free": (
            "def parameter_free(x, causal=False):\n    return f()\ndef f(x=1 / 0): pass"
        ),
    }
    path = save_notebook(tmp_path / "wild.ipynb", *wild.items(), "FACTOR = 2", (ID, RIGHT))
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr().out
    for sentence in (
        "No answer after 4 seconds of computing: does a loop",
        "SystemExit: 0",
        "Crash: the process ended, with exit status 0",
        "TooLarge: its result is over 16 MiB",
        "NameError: name 'f' is not defined",
        f"✓ {ID}: passed, 9 of 9 points",
        "1 of 6 exercises passed",
    ):
        assert sentence in said


@pytest.mark.usefixtures("warm")
def test_a_result_that_cannot_be_recorded_is_shown_all_the_same(
    workspace, notebook, monkeypatch, capsys
):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    path = notebook("FACTOR = 2", (ID, RIGHT))
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr().out
    assert "passed, 9 of 9 points" in said
    assert f"could not be recorded in {workspace.folder}: {os.strerror(errno.EROFS)}." in said


@pytest.mark.parametrize(
    "words", ["--version", "--help", "list", "progress", "hint start/hello", "learn --help"]
)
def test_what_only_reads_waits_for_no_large_package(workspace, words):
    code = (
        "import sys, atexit; from course_lib.command_line.main import main;"
        "large = {'torch', 'numpy', 'IPython', 'matplotlib', 'pandas', 'jupyter_server'};"
        "atexit.register(lambda: print(large & {*sys.modules}, file=sys.stderr));"
        f"main({words.split()!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "set()\n"


def test_a_bar_in_a_log_is_few_lines():
    code = (
        "from course_lib.command_line.main import main; main([]);"
        "import time; from tqdm import tqdm;"
        "[time.sleep(0.02) for _ in tqdm(range(100))]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.count("\r") <= 2


def test_the_version_is_one_line(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"course {course_lib.__version__}\n"


def test_progress_shows_what_is_begun_by_exercise_and_names_what_is_next(workspace, capsys):
    first, second, third, *_ = every = catalogue.ids()
    workspace.note_check(first, "passed", 10, 10)
    workspace.note_check(third, "wrong", 3, 11)
    workspace.note_check("attention/softmax", "wrong", 3, 16)
    assert main(["progress"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "00 Start here ✓ 1 of 1 01 What one vector costs ○✗○○ 0 of 4" in said
    assert (
        f"✗ {third} 3 of {catalogue.outline(third).points} points {catalogue.outline(third).effort}"
        in said
    )
    points = catalogue.outline("attention/softmax").points
    assert f"✗ attention/softmax 3 of {points} points" in said
    assert "self_attention/project" not in said
    assert "exploration: Positions in a tree ○ 0 of 1 05 " in said
    assert f"1 of {len(every)} exercises have passed." in said
    assert said.endswith(f"Next: {second}, in lesson 01 ({catalogue.outline(second).effort}).")


def test_progress_goes_past_explorations_and_comes_back_to_them(workspace, capsys):
    every = [catalogue.outline(exercise_id) for exercise_id in catalogue.ids()]
    for x in every:
        if x.lesson <= "04" and x.needed:
            workspace.note_check(x.id, "passed", 10, 10)
    assert main(["progress"]) == 0
    said = capsys.readouterr().out
    following = next(x for x in every if x.lesson == "05")
    assert said.endswith(f"Next: {following.id}, in lesson 05 ({following.effort}).\n")
    [beside] = [x for x in every if x.lesson == "04_trees"]
    for x in every:
        if x.id != beside.id:
            workspace.note_check(x.id, "passed", 10, 10)
    assert main(["progress"]) == 0
    assert f"Next: {beside.id}, in exploration 04_trees" in capsys.readouterr().out
    passed = "✓&nbsp;[Positions in a tree](explorations/04_trees.ipynb)"
    assert passed not in course_map()
    workspace.note_check(beside.id, "passed", 10, 10)
    assert passed in course_map()


def test_a_certificate_shows_what_was_built_and_predicted_with_every_string_escaped(
    workspace, capsys
):
    place, other = list(asked())[:2]
    workspace.note_check(ID, "passed", 10, 10)
    workspace.keep(ID, RIGHT)
    workspace.note_guess(place.key, Guess("<script>7</script>", "8", "near"))
    workspace.note_guess(other.key, Guess("I do not know", "8", ""))
    workspace.note_guess("a cell of an older release", Guess("1", "1", "right"))
    assert main(["certificate"]) == 0
    said = capsys.readouterr().out
    assert "exercises passed: 1 of " in said
    assert "lines of your own code: 2\n" in said
    assert "predictions made: 2 of " in said
    assert "(0 right, 1 near, 0 off, 1 for you to judge)" in said
    page = (workspace.folder / "certificate.html").read_text("utf8")
    assert "&lt;script&gt;7&lt;/script&gt;" in page
    assert "<td>exploration: Positions in a tree</td>" in page
    assert "<script" not in page
    assert "http" not in page


def test_progress_has_an_end(workspace, capsys):
    for exercise_id in catalogue.ids():
        workspace.note_check(exercise_id, "passed", 10, 10)
    assert main(["progress"]) == 0
    said = capsys.readouterr().out
    assert f"{'█' * 30} {len(catalogue.ids())} of" in said
    assert "Next" not in said


def test_progress_goes_to_another_machine_as_one_file(workspace, tmp_path, monkeypatch, capsys):
    workspace.note_check(ID, "passed", 10, 10)
    workspace.keep(ID, "mine")
    file = str(tmp_path / "answers.zip")
    assert main(["progress", "--save", file]) == 0
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(["progress", "--load", file]) == 0
    assert f"New passed answers in {elsewhere}: 1.\n" in capsys.readouterr().out
    assert Workspace(elsewhere).answer(ID) == "mine"


def test_a_file_of_something_else_makes_no_workspace(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (file := tmp_path / "answers.zip").write_text("no zip")
    assert main(["progress", "--load", str(file)]) == 2
    assert f"course: {file} is no file that --save has written.\n" == capsys.readouterr().err
    assert main(["progress", "--load", "missing.zip"]) == 2
    assert [x.name for x in tmp_path.iterdir()] == ["answers.zip"]


def test_the_repository_becomes_no_workspace(workspace, tmp_path, monkeypatch, capsys):
    file = str(tmp_path / "answers.zip")
    assert main(["progress", "--save", file]) == 0
    (clone := tmp_path / "clone" / "notebooks").mkdir(parents=True)
    monkeypatch.chdir(clone)
    monkeypatch.setattr("course_lib.files.workspace.ROOT", clone.parent)
    assert main(["progress", "--load", file]) == 2
    assert NO_WORKSPACE.format(clone) == capsys.readouterr().err
    assert main(["progress", "--load", file, "--workspace", str(workspace.folder)]) == 0
    monkeypatch.setenv("COURSE_WORKSPACE", str(tmp_path / "new"))
    assert main(["progress", "--load", file]) == 0
    assert Workspace.at(tmp_path / "new")
    assert not list(clone.iterdir())


def test_the_list_shows_every_exercise(capsys):
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert all(f" {exercise_id} " in said for exercise_id in catalogue.ids())
    [row] = [line for line in said.splitlines() if " positions/tree_distance " in line]
    assert " 04_trees " in row
    assert "exploration" in said


def test_hints_go_on_where_they_stopped(workspace, capsys):
    for number in (1, 2, 2):
        assert main(["hint", ID]) == 0
        assert f"Hint {number} of 2" in capsys.readouterr().out
    assert main(["hint", ID, "1"]) == 0
    assert "Hint 1 of 2" in capsys.readouterr().out
    assert workspace.record(ID).hints == 2


def test_a_solution_is_the_librarys_own_code(capsys):
    assert main(["solution", ID]) == 0
    assert "return 2 * x" in capsys.readouterr().out


def test_reset_brings_the_stub_back_and_keeps_what_was_there(workspace, notebook, capsys):
    path = notebook("a = 1", (ID, STUB), CHECK)
    untouched = path.read_bytes()
    assert main(["reset", ID]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert path.read_bytes() == untouched

    notebook("a = 1", (ID, RIGHT), CHECK)
    assert main(["reset", ID]) == 0
    assert path.read_bytes() == untouched
    (backup,) = (workspace.folder / ".course" / "backups").rglob("*.py")
    assert backup.read_text() == RIGHT
    assert str(backup) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cells", "after"),
    [
        (("a = 1", CHECK, "b = 2"), ["# A lesson", "a = 1", STUB, CHECK, "b = 2"]),
        (("a = 1",), ["# A lesson", "a = 1", STUB]),
        (((ID, WRONG), (ID, RIGHT), CHECK), ["# A lesson", WRONG, STUB, CHECK]),
    ],
    ids=["deleted", "deleted with its check", "doubled"],
)
def test_reset_finds_the_place_of_the_stub(notebook, cells, after):
    path = notebook(*cells)
    assert main(["reset", ID]) == 0
    assert sources(path) == after
    ids = [cell["id"] for cell in ipynb.read(path)["cells"]]
    assert len(set(ids)) == len(ids)


def test_reset_asks_which_notebook_where_two_have_the_exercise(
    workspace, notebook, save_notebook, capsys
):
    old = notebook((ID, RIGHT))
    new = save_notebook(workspace.folder / "00.new.ipynb", (ID, RIGHT), lesson="00")
    assert main(["reset", ID]) == 2
    assert "start/hello is in 00.ipynb and 00.new.ipynb" in capsys.readouterr().err
    assert main(["reset", ID, "mine/00.new.ipynb"]) == 0
    assert (sources(old)[1], sources(new)[1]) == (RIGHT, STUB)


OURS, THEIRS = '    "my own line"', '    "another line"'


@pytest.mark.parametrize(
    ("damage", "holds"),
    [
        (lambda line: f"<<<<<<< HEAD\n{line}=======\n{THEIRS}\n>>>>>>> other\n", OURS),
        (lambda line: f"<<<<<<< a\n{line}||||||| b\nx\n=======\n{THEIRS}\n>>>>>>> c\n", OURS),
        (lambda line: f"<<<<<<< a\n{line}{line}=======\n{THEIRS}\n>>>>>>> c\n", THEIRS),
        (lambda line: "half", None),
    ],
    ids=["conflict", "conflict in diff3 style", "conflict in which one side is none", "damaged"],
)
def test_reset_mends_a_notebook_that_cannot_be_read_and_keeps_it(
    workspace, save_notebook, capsys, damage, holds
):
    path = save_notebook(workspace.folder / "00_start_here.ipynb", "my own line", lesson="00")
    text = path.read_text()
    line = f"{OURS}\n"
    assert line in text
    damaged = text.replace(line, damage(line))
    path.write_text(damaged)
    workspace.keep(ID, RIGHT)
    assert main(["doctor"]) == 1
    assert f"broken {path} " in capsys.readouterr().out
    assert main(["reset", ID]) == 0
    (backup,) = (workspace.folder / ".course" / "backups").rglob("*.ipynb")
    assert backup.read_text() == damaged
    assert str(backup) in capsys.readouterr().out
    assert (json.loads(holds) if holds else RIGHT) in sources(path)


@pytest.mark.parametrize("call", ["os.replace", "tempfile.mkstemp"])
def test_reset_on_a_full_disk_changes_nothing(workspace, notebook, monkeypatch, capsys, call):
    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = notebook((ID, RIGHT))
    before = path.read_bytes()
    monkeypatch.setattr(call, refuse)
    assert main(["reset", ID]) == 2
    assert "the notebook is as it was." in capsys.readouterr().err
    assert path.read_bytes() == before
    assert [x.name for x in workspace.folder.iterdir() if x.is_file()] == ["00.ipynb"]


def test_fetch_says_what_came_or_did_not(tmp_path, monkeypatch, capsys):
    def fail(names):
        raise store.FetchError("cmudict: it did not come.")

    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    monkeypatch.setattr(store, "fetch", lambda names: 939_711)
    assert main(["fetch", "cmudict"]) == 0
    assert capsys.readouterr().out == f"0.9 MB fetched into {tmp_path}.\n"
    assert main(["fetch", "--remove"]) == 0
    assert capsys.readouterr().out == f"0.0 MB freed in {tmp_path}.\n"
    monkeypatch.setattr(store, "fetch", fail)
    assert main(["fetch"]) == 1
    assert capsys.readouterr().err == "cmudict: it did not come.\n"


def test_doctor_fails_where_something_is_broken(workspace, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "warn   cmudict is missing, for lesson 01, 02: run `course fetch cmudict`." in said
    assert f"ok     the workspace {workspace.folder} holds 0 notebooks" in said

    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / store.ITEMS["cmudict"].file).write_bytes(b"half of it")
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.1")
    monkeypatch.setattr("importlib.metadata.requires", lambda name: ["einops>=0.8"])
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "broken cmudict is damaged: run `course fetch --remove cmudict`" in said
    assert "broken einops>=0.8 is needed, and 0.1 is installed: run " in said


def test_a_newer_package_is_newer_than_tested_and_not_broken(workspace, monkeypatch, capsys):
    version = importlib.metadata.version
    newer = {"torch": "99.1.0"}
    monkeypatch.setattr("importlib.metadata.requires", lambda name: ["torch>=2.6", "numpy>=1.26"])
    monkeypatch.setattr("importlib.metadata.version", lambda name: newer.get(name) or version(name))
    main(["doctor"])
    said = capsys.readouterr().out
    assert f"warn   newer than tested: torch 99.1.0. The tested versions are in {ROOT}" in said
    assert "torch>=2.6" not in said


@pytest.mark.parametrize(
    ("wheel", "urls", "told"),
    [
        (True, [], 'run `{python} -m pip install "transformer-course[lab] @ {wheel}"`'),
        (True, ["Repository, https://x.org/a/b/tree/v1"], '"transformer-course[lab] @ {wheel}"`'),
        (False, ["Repository, https://x.org/a/b/tree/v1"], '[lab] @ git+https://x.org/a/b@v1"`'),
        (False, [], "install the extra [lab] of the wheel that you have it from again"),
    ],
)
def test_no_name_that_nobody_owns_is_told_to_install(tmp_path, monkeypatch, wheel, urls, told):
    file = tmp_path / "a course.whl"
    file.touch()
    origin = json.dumps({"url": file.as_uri()}) if wheel else None
    about = types.SimpleNamespace(
        read_text=lambda name: origin, metadata=types.SimpleNamespace(get_all=lambda name: urls)
    )
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: about)
    monkeypatch.setattr(paths, "IS_CLONE", False)
    said = paths.how_to_install("lab")
    assert said.endswith(told.format(python=sys.executable, wheel=file.as_uri()))
    assert "pip install transformer-course" not in said


def test_what_goes_into_a_file_has_every_sign():
    environment = os.environ | {"PYTHONIOENCODING": "cp1252"}  # as on Windows
    command = [sys.executable, "-m", "course_lib.command_line", "list"]
    said = subprocess.run(command, capture_output=True, env=environment, check=True).stdout
    assert "2 minutes · ●○○" in said.decode()


def test_verify_fails_on_an_error_or_a_violation_and_keeps_what_holds(
    monkeypatch, capsys, tmp_path
):
    row = Row("start.double", "`torch.add`", 1e-16, 2e-16)
    rows = types.SimpleNamespace(verify=lambda: [row], TRIALS=TRIALS)
    monkeypatch.setitem(sys.modules, "course_lib.verify", rows)
    monkeypatch.setattr(catalogue, "ids", lambda: [ID])
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert main(["verify"]) == 0
    assert "start.double" in capsys.readouterr().out

    for bad in (replace(row, error=1e-9), replace(row, gradient_error=float("nan"))):
        monkeypatch.setattr(rows, "verify", lambda bad=bad: [bad])
        assert main(["verify", "--save"]) == 1
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(rows, "verify", lambda: [row])
    assert main(["verify", "--save"]) == 0
    kept = results.load("verify")["figures"]
    assert kept["components"] == [asdict(row)]
    assert list(kept["exercises"]) == [
        "exercises", "known mistakes", "alternatives", "mutants", "edits", "violations"
    ]  # fmt: skip
    assert (kept["exercises"]["exercises"], kept["exercises"]["violations"]) == (1, 0)
    monkeypatch.setattr(rows, "verify", lambda: [row])
    monkeypatch.setattr(catalogue.load(ID), "hints", ("one alone",))
    capsys.readouterr()
    assert main(["verify"]) == 1
    assert f"{ID}: has fewer than two hints" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["solution", "attention/softmax"], "def softmax("),
        (["solution", "efficient/lsh"], "def _sort("),  # one of its helpers
        (["check", "00.ipynb"], "○ start/hello: not attempted yet\n"),
    ],
)
def test_what_needs_no_answer_is_said_without_torch(tmp_path, words, said):
    page = shutil.copy(ROOT / "notebooks" / "00_start_here.ipynb", Workspace.make(tmp_path).folder)
    words = [page if x == "00.ipynb" else x for x in words]
    code = (
        "import sys; from course_lib.command_line import main;"
        f"status = main.main({words!r}); print('torch' in sys.modules); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("False\n")
    assert said in done.stdout
