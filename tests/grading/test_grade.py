"""From what was handed in to a folder of results, whatever was handed in and whatever happens."""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import closing
from datetime import UTC, datetime

import psutil
import pytest

from course_lib.command_line import main
from course_lib.files.atomic import write_atomically
from course_lib.files.paths import ROOT
from course_lib.grading import pipeline as grading
from course_lib.grading import run
from course_lib.grading.judging import cluster, workers
from course_lib.grading.judging.isolation import best_level
from course_lib.grading.judging.judge import Judge
from course_lib.grading.judging.rules import Rules
from course_lib.grading.submissions.files import LARGEST, MOST, NotSubmissions, collect
from course_lib.grading.submissions.journal import fingerprint
from tests import WEEKLY

RIGHT = "def double(x):\n    return 2 * x"
WRONG = "def double(x):\n    return x**2"
COMMAND = [sys.executable, "-m", "course_lib.command_line", "grade"]
TRUST = ["--trust"] if best_level() == "plain" else []
TRUST += ["--seconds=60"]  # no honest answer fails on a busy machine
# they are one path in `ended_by_signals`; each is sent once a week
SIGNALS = ["SIGTERM", "SIGKILL"]
SIGNALS += ["SIGINT", "SIGHUP"] if WEEKLY else []
# the first two are one loop of `confinement.limit`
LIMITS = ["-n 60", "-v 2400000"] + ["-t 45"] * WEEKLY
LONGEST = 900  # seconds until a run that hangs is ended


def grade_by_worker(submissions, out, *options):
    """Run the command; a worker process judges."""
    words = ["grade", str(submissions), "--out", str(out), *TRUST, "--jobs=1", *map(str, options)]
    return main.main(words)


@pytest.fixture
def grade(sandboxes, monkeypatch):
    """Run the command, with the judge in this process and its sandbox shared among tests."""

    def judged(rules, work):
        with Judge(rules) as judge:
            for submitted in work:
                content = submitted.content()
                yield submitted, fingerprint(content), judge.entry(content)

    def grade(*words):
        with monkeypatch.context() as patch:
            patch.setattr(run, "_judging", lambda options: judged)
            return grade_by_worker(*words)

    return grade


def rows(out):
    found = json.loads((out / "results.json").read_text("utf8"))
    return {row["notebook"] or row["student"]: row for row in found["submissions"]}


@pytest.fixture
def hand_in(save_notebook, tmp_path):
    """Save a notebook with one answer below the submissions."""

    def save(name, source=RIGHT, below=tmp_path / "in"):
        path = below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return save_notebook(path, source, lesson="00")

    return save


@pytest.mark.parametrize(
    ("names", "students"),
    [
        (["ada.ipynb", "bob.ipynb"], ["ada", "bob"]),
        (["ada/00.ipynb", "bob/lessons/00.ipynb"], ["ada", "bob"]),
        (["submitted/ada/00/00_start.ipynb", "source/00/00_start.ipynb"], ["ada"]),
        (
            ["lovelaceada_12_345_00.ipynb", "bob_LATE_13_346_00-1.ipynb"],
            ["bob_13", "lovelaceada_12"],
        ),
        (["Ada L_12_assignsubmission_file_/00.ipynb"], ["Ada L_12"]),
        (["Ada L_12_assignsubmission_file_00.ipynb"], ["Ada L_12"]),
        (["smith_2024_01_group/00.ipynb"], ["smith_2024_01_group"]),
    ],
    ids=["notebooks", "folders", "nbgrader", "canvas", "moodle", "moodle, flat", "like canvas's"],
)
def test_students_are_known_by_how_notebooks_are_collected(hand_in, tmp_path, names, students):
    for name in names:
        hand_in(name)
    found = collect(tmp_path / "in")
    assert [one.student for one in found] == students
    assert [one.late for one in found] == ["LATE" in one.notebook for one in found]
    if not names[0].startswith("submitted"):
        zipped = shutil.make_archive(str(tmp_path / "all"), "zip", tmp_path / "in")
        inside = collect(tmp_path / "all.zip")
        assert [(x.student, x.content()) for x in inside] == [
            (x.student, x.content()) for x in found
        ]
        assert zipped


OWN = ["x.ipynb", "7_8_x.ipynb", "LATE_7_8_x.ipynb", "_7_assignsubmission_file_x.ipynb"]
OWNED = {
    "mallory_55_901_": ("mallory_55", "55", False),
    "mallory_LATE_55_901_": ("mallory_55", "55", True),
    "Mallory M_55_assignsubmission_file_": ("Mallory M_55", "55", False),
}


@pytest.mark.parametrize("prefix", OWNED)
@pytest.mark.parametrize("beside", [[], list(OWNED)[:2], list(OWNED)[2:]])
def test_what_a_student_calls_a_file_changes_neither_owner_nor_lateness(tmp_path, prefix, beside):
    """Where names of both platforms are mixed, what could be either is graded for nobody."""
    signs, draw = "_ LATE_ 7 55_ assignsubmission_ file_ x é".split(), random.Random(3)
    chance = ["".join(draw.choices(signs, k=draw.randint(1, 9))) + ".ipynb" for _ in range(40)]
    for own in [*OWN, *chance, *(other + "x.ipynb" for other in OWNED)]:
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            archive.writestr(prefix + own, "{}")
            for other in beside:
                archive.writestr(f"{other}9_zoe.ipynb", "{}")
        found = {x.notebook: x for x in collect(tmp_path / "all.zip")}[prefix + own]
        if found.problem:
            assert "Whose this is, is not clear" in found.problem
            assert found.number == ""
            assert beside == list(OWNED)[2:]
        else:
            assert (found.student, found.number, found.late) == OWNED[prefix]


def test_what_holds_no_submissions_is_said(tmp_path):
    (tmp_path / "text.txt").write_text("no notebook")
    (tmp_path / "empty").mkdir()
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.writestr("ada.ipynb", "{}" * 100)
    (tmp_path / "cut.zip").write_bytes((tmp_path / "whole.zip").read_bytes()[:-30])
    for name in ("text.txt", "empty", "nowhere", "cut.zip"):
        with pytest.raises(NotSubmissions, match=name):
            collect(tmp_path / name)


WHAT_ELSE = {
    "lovelaceada_12_345_report.pdf": (
        "lovelaceada_12",
        "no notebook, but lovelaceada_12_345_report.pdf.",
    ),
    "Bob K_13_assignsubmission_file_work.zip": ("Bob K_13", "work.zip. Unpack it into a folder of"),
    "Bob K_13_assignsubmission_onlinetext_onlinetext.html": ("Bob K_13", "but a text (Bob K"),
    "carl/work.zip": ("carl", "There is no notebook, but carl/work.zip. Unpack it"),
    "dora/a.py": ("dora", "There is no notebook, but dora/a.py."),
    "emil.py": ("emil", "There is no notebook, but emil.py."),
    "fay_406_text.html": ("fay_406", "There is no notebook, but a text (fay_406_text.html): hand"),
    "gus_LATE_407_link.html": ("gus_407", "There is no notebook, but a link (gus_LATE_407_link."),
    "LATE_anon_x7Kp2_link.html": ("anon_x7Kp2", "There is no notebook, but a link (LATE_anon_x7K"),
}


@pytest.mark.parametrize("name", WHAT_ELSE)
def test_who_hands_in_no_notebook_is_told_what_it_was(tmp_path, name):
    student, said = WHAT_ELSE[name]
    for path in (tmp_path / "in" / name, tmp_path / "in" / "README.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("no notebook")
    shutil.make_archive(str(tmp_path / "all"), "zip", tmp_path / "in")
    for place in (tmp_path / "in", tmp_path / "all.zip"):
        left_out = []
        [found] = collect(place, left_out.append)
        assert (found.student, found.notebook, left_out) == (student, "", ["README.txt"])
        assert found.late == ("LATE" in name)
        assert found.problem
        assert said in found.problem


NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def stamped(tmp_path, text, name="submitted/ada/00/timestamp.txt"):
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-12-01 13:00:00.123456 UTC", NOON.replace(hour=13, microsecond=123456)),
        ("2026-12-01 15:00:00+02:00", NOON.replace(hour=13)),
        ("2026-12-01 13:00:00 +00:00\n", NOON.replace(hour=13)),
        ("2026-12-01 13:00:00", NOON.replace(hour=13, tzinfo=None).astimezone(UTC)),
        ("2026-12-01 11:00:00 UTC", NOON),  # before the file was changed
        ("2026-12-01 13:00:00 Mars/Olympus", NOON),
        ("0001-01-01 00:00", NOON),
        ("9999-12-31 23:59-14:00", NOON),
        ("tomorrow", NOON),
        ("", NOON),
        ("\0" * 100, NOON),
        ("2026-12-01 13:00:00 UTC" + " " * 2000, NOON),
    ],
)
def test_a_stamp_of_nbgraders_counts_where_it_is_the_later_time(hand_in, tmp_path, text, time):
    path = hand_in("submitted/ada/00/00.ipynb")
    os.utime(path, (NOON.timestamp(), NOON.timestamp()))
    stamped(tmp_path, text)
    [found] = collect(tmp_path / "in")
    assert (found.time, found.problem) == (time, None)


@pytest.mark.parametrize(
    ("notebook", "stamp"),
    [
        ("ada/00.ipynb", "ada/timestamp.txt"),
        ("ada.ipynb", "timestamp.txt"),
        ("submitted/ada/00/work/00.ipynb", "submitted/ada/00/work/timestamp.txt"),
        ("submitted/ada/00/00.ipynb", "submitted/ada/timestamp.txt"),
    ],
)
def test_a_stamp_that_a_student_hands_in_is_not_believed(hand_in, tmp_path, notebook, stamp):
    path = hand_in(notebook)
    os.utime(path, (NOON.timestamp(), NOON.timestamp()))
    stamped(tmp_path, "2030-01-01 00:00 UTC", stamp)
    [found] = collect(tmp_path / "in")
    assert found.time == NOON


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path):
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def deep(path):
    """Make folders so deep that a recursion through them ends."""
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        for _ in range(1500):
            os.mkdir("a")
            os.chdir("a")
    finally:
        os.chdir(here)


def crowded(path):
    for number in range(MOST + 1):
        shutil.copyfile(path.parent / "00.ipynb", path.parent / f"{number}.ipynb")


TRAPS = {
    "a stamp with a zone": lambda path: path.write_text("2020-01-01 00:00:00+00:00"),
    "a stamp that is a pipe": pipe,
    "a stamp that is a link to a device": endless,
    "a stamp that is a folder": lambda path: path.mkdir(),
    "a stamp that is no text": lambda path: path.write_bytes(b"\xff\xfe" * 99),
    "a notebook of another age": lambda path: os.utime(path.parent / "00.ipynb", (2**40, 2**40)),
    "a notebook from before all time": lambda path: os.utime(path.parent, (-(2**40), -(2**40))),
    "folders without end": deep,
    "more notebooks than anybody writes": crowded,
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_one_student_hands_in_stops_and_changes_no_other(hand_in, grade, tmp_path, trap):
    for student in ("ada", "mallory", "zoe"):
        hand_in(f"submitted/{student}/00/00.ipynb")
    options = ["--seed", 3, "--due", "2026-12-01 23:59+01:00"]
    assert grade(tmp_path / "in", tmp_path / "before", *options) == 0
    TRAPS[trap](tmp_path / "in" / "submitted" / "mallory" / "00" / "timestamp.txt")
    try:
        assert grade(tmp_path / "in", tmp_path / "after", *options) == 0
    finally:  # folders so deep are beyond pytest's own recursion as well
        subprocess.run(["rm", "-r", tmp_path / "in"], check=True)
    before, after = rows(tmp_path / "before"), rows(tmp_path / "after")
    for student in ("ada", "zoe"):
        assert after[f"{student}/00/00.ipynb"] == before[f"{student}/00/00.ipynb"]
    assert any(row["student"] == "mallory" for row in after.values())


def test_a_zip_entry_without_a_name_of_its_own_is_left_out(hand_in, tmp_path):
    content = hand_in("ada.ipynb").read_bytes()
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in (".", "..", "/", "//", "./", "a/..", "./.", "ada.ipynb", "bob/", " "):
            archive.writestr(name, content)
    found = collect(tmp_path / "all.zip")
    assert [(one.student, one.notebook) for one in found] == [("ada", "ada.ipynb"), ("bob", "")]


def test_what_a_student_is_called_does_not_reach_the_terminal_as_it_is(
    hand_in, grade, tmp_path, capsys
):
    name = "\x1b[2J\x1b]0;owned\x07eve\ncourse: 0 of 9 notebooks graded\u202e"
    (tmp_path / "in" / name).mkdir(parents=True)
    hand_in(f"{name}.ipynb").write_text("{")
    worksheet = tmp_path / "moodle.csv"
    worksheet.write_text(f'Identifier,Full name,Grade,Maximum grade\nParticipant 1,"{name}",,9\n')
    for place in (tmp_path / "in", tmp_path / "in" / f"{name}.ipynb"):
        assert grade(place, tmp_path / place.suffix[1:], "--moodle", worksheet) == 0
    assert grade(tmp_path / "in" / f"{name}x", tmp_path / "no") == 2
    said = capsys.readouterr()
    assert "eve" in said.out
    assert "eve" in said.err
    for line in (said.out + said.err).replace("\r", "").split("\n"):
        assert not line.startswith("course: 0 of 9")
        assert line.isprintable() or "notebook/s" in line or "%|" in line, line


def test_who_is_graded_on_other_exercises_than_most_is_named(hand_in, grade, tmp_path, capsys):
    for name in ("ada", "bob", "carl"):
        hand_in(f"{name}.ipynb")
    eve = json.loads(hand_in("eve.ipynb").read_text())
    eve["metadata"]["course"]["lesson"] = "01"
    (tmp_path / "in" / "eve.ipynb").write_text(json.dumps(eve))
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    said = "The score is made of other exercises than that of most students here."
    found = rows(tmp_path / "out")
    assert said in found["eve.ipynb"]["message"]
    assert [name for name, row in found.items() if said in row["message"]] == ["eve.ipynb"]
    assert f"eve.ipynb: {said} --lesson or --exercise chooses for all.\n" in capsys.readouterr().out


def test_results_inside_the_submissions_are_refused(hand_in, tmp_path, capsys):
    hand_in("ada.ipynb")
    for out in (tmp_path / "in", tmp_path / "in" / "grades", tmp_path / "in" / "a" / ".." / "b"):
        assert grade_by_worker(tmp_path / "in", out) == 2
        assert "is inside the submissions" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["ada.ipynb"]


def test_a_notebook_has_so_much_memory_and_computing_and_what_it_prints_is_no_entry(monkeypatch):
    code = """
import os
from course_lib.grading.judging import judge
judge.SECONDS, honest = 1, {"status": "graded"}
done = {b"much": lambda: bytearray(2 * judge.MEMORY), b"long": lambda: [... for _ in iter(int, 1)]}
judge.Judge.entry = lambda self, content: print("usage") or done.get(content, lambda: honest)()
os._exit(judge.main())  # as it ends itself: the clock runs on while torch is taken down
"""
    monkeypatch.setattr(workers, "COMMAND", [sys.executable, "-c", code])
    with closing(workers.Worker(Rules("plain", 3))) as worker:
        said = [worker.judge(content) for content in (b"honest", b"much", b"long")]
    assert [x.get("message") for x in said] == [
        None,
        "To judge this takes more than 2 GiB of memory.",
        "To judge this takes more than 60 seconds of computing.",
    ]
    assert said[0] == {"status": "graded"}


def test_what_is_put_out_does_not_count_as_code(hand_in, grade, tmp_path):
    plots, code = hand_in("plots.ipynb"), hand_in("code.ipynb")
    for path, member in ((plots, "outputs"), (code, "source")):
        notebook = json.loads(path.read_text())
        picture = {
            "output_type": "display_data",
            "metadata": {},
            "data": {"image/png": "A" * 6**10},
        }
        more = {"outputs": [picture], "source": f"#{'x' * 10**6}"}[member]
        notebook["cells"].append(
            {"cell_type": "code", "metadata": {}, "source": ""} | {member: more}
        )
        path.write_text(json.dumps(notebook))
    (tmp_path / "in" / "larger.ipynb").write_bytes(b" " * (LARGEST + 1))
    assert plots.stat().st_size > 60 * 10**6
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    found = rows(tmp_path / "out")
    assert found["plots.ipynb"]["score"] == found["plots.ipynb"]["max_score"]
    said = [found[f"{name}.ipynb"]["message"] for name in ("code", "larger")]
    assert said[0] == "This holds more than 1 MB of code: keep data in a file, not in a cell."
    assert said[1].startswith("It is larger than 100 MiB: clear the outputs of its cells, save it")


def test_half_a_character_and_an_interrupt_are_told_as_what_they_are(hand_in, grade, tmp_path):
    cells = {
        "comment": RIGHT + "  # \ud800",
        "code": RIGHT + "\ud800",
        "interrupt": "def double(x):\n    raise KeyboardInterrupt",
    }
    for name, source in cells.items():
        path = hand_in(f"{name}.ipynb")
        notebook = json.loads(path.read_text())
        notebook["cells"][-1]["source"] = source
        path.write_text(json.dumps(notebook))
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    found = rows(tmp_path / "out")
    said = {name: found[f"{name}.ipynb"]["exercises"]["start/hello"]["message"] for name in cells}
    assert found["comment.ipynb"]["score"] == found["comment.ipynb"]["max_score"]
    assert "invalid non-printable character" in said["code"] or "invalid character" in said["code"]
    assert "KeyboardInterrupt: the answer raised it, as Ctrl-C does" in said["interrupt"]


def test_every_file_has_its_row_and_the_same_seed_the_same_bytes(hand_in, grade, tmp_path, capsys):
    names = ["ada/a.ipynb", "ada/b.ipynb", "bob/00.ipynb", "=cmd, 'x'\n<b>/00.ipynb"]
    paths = [hand_in(name, WRONG if "bob" in name else RIGHT) for name in names]
    for age, path in enumerate(reversed(paths)):
        os.utime(path, (1e9 + age, 1e9 + age))  # ada/a.ipynb is the newest
    (tmp_path / "in" / "carl").mkdir()
    (tmp_path / "in" / "dora.ipynb").write_text('{"cells": [')
    due = datetime.fromtimestamp(1e9 + 2).isoformat(" ")
    options = ["--seed", 7, "--due", due, "--late-penalty", 50]
    assert grade(tmp_path / "in", tmp_path / "out", *options) == 0
    said, found = capsys.readouterr(), rows(tmp_path / "out")
    assert {name: row["status"] for name, row in found.items()} == {
        "ada/a.ipynb": "graded",
        "ada/b.ipynb": "superseded",
        "bob/00.ipynb": "graded",
        "=cmd, 'x'\n<b>/00.ipynb": "graded",
        "carl": "missing",
        "dora.ipynb": "unreadable",
    }
    most = found["ada/a.ipynb"]["max_score"]
    assert {row["max_score"] for row in found.values()} == {most}
    assert (found["ada/a.ipynb"]["late"], found["ada/a.ipynb"]["score"]) == (True, most / 2)
    assert found["=cmd, 'x'\n<b>/00.ipynb"]["score"] == most
    assert found["bob/00.ipynb"]["exercises"]["start/hello"]["status"] == "known mistake"
    assert "3 of 5 notebooks graded" in said.out
    assert "dora.ipynb: This is not a notebook: its content is not JSON." in said.out
    # another process judges now
    assert grade_by_worker(tmp_path / "in", tmp_path / "again", *options) == 0
    whole = {path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*")}
    for path in whole:
        if (tmp_path / "out" / path).is_file():
            assert (tmp_path / "again" / path).read_bytes() == (
                tmp_path / "out" / path
            ).read_bytes()
    assert grade(tmp_path / "in", tmp_path / "out", *options) == 2
    assert "holds results already" in capsys.readouterr().err


def test_the_points_of_an_answer_are_those_of_its_properties_that_hold(hand_in, grade, tmp_path):
    hand_in("ada.ipynb", WRONG)
    hand_in("bob.ipynb", RIGHT)
    hand_in("eve.ipynb", "def double(x):\n    return 'a\\x1b\\n' * 500, *[x] * 50")
    assert grade(tmp_path / "in", tmp_path / "out", "--points", "start/hello=10") == 0
    found = rows(tmp_path / "out")
    for name in found:
        answer = found[name]["exercises"]["start/hello"]
        held = sum(x["points"] for x in answer["properties"] if x["held"])
        assert answer["points"] == pytest.approx(held, abs=0.05)
        assert sum(x["points"] for x in answer["properties"]) == pytest.approx(10, abs=0.05)
        # a stranger's result is shown on a few lines, none of them long
        shown = answer["case"]["values"].values() if name != "bob.ipynb" else ["2.0"]
        assert all(line.isprintable() and len(line) <= 300 for x in shown for line in x.split("\n"))
        assert max(x.count("\n") for x in shown) < 24
    assert list(found["ada.ipynb"]["exercises"]["start/hello"]["case"]["values"]) == [
        "difference", "expected", "got", "x"
    ]  # fmt: skip


def test_grading_again_takes_the_same_seed_and_says_what_changed_for_whom(
    hand_in, grade, tmp_path, capsys
):
    hand_in("ada.ipynb", WRONG)
    hand_in("bob.ipynb", RIGHT)
    hand_in("zoe.ipynb", RIGHT)
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    hand_in("ada.ipynb", RIGHT)
    (tmp_path / "in" / "zoe.ipynb").unlink()
    capsys.readouterr()
    earlier = ["--earlier", tmp_path / "out"]
    assert grade(tmp_path / "in", tmp_path / "again", *earlier) == 0
    said, page = capsys.readouterr().out, (tmp_path / "again" / "changes.html").read_text()
    then, now = rows(tmp_path / "out")["ada.ipynb"], rows(tmp_path / "again")["ada.ipynb"]
    assert f"  2 submissions changed.\n  ada: {then['score']} → {now['score']}; start/" in said
    assert f"zoe: {now['score']} → not there" in said
    assert "bob: " not in said
    assert '<bdi class="clip">ada</bdi>' in page
    assert "bob" not in page
    seeds = {
        json.loads((tmp_path / x / "results.json").read_text())["seed"] for x in ("out", "again")
    }
    assert len(seeds) == 1


@pytest.mark.parametrize("root", [True, False])
def test_root_is_told_that_the_kernel_lets_it_do_more(grade, hand_in, tmp_path, capsys, root):
    hand_in("ada.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "is_root", lambda: root)
        assert grade(tmp_path / "in", tmp_path / "out") == 0
    assert ("you are root" in capsys.readouterr().out) == root


def test_an_appeal_grades_one_student_again_into_the_rows_of_all(grade, hand_in, tmp_path, capsys):
    for name in ("ada", "bob", "eve"):
        hand_in(f"{name}/00.ipynb", WRONG)
    (tmp_path / "class.csv").write_text("id\nada\nbob\neve\nzoe\n")
    roster = ["--roster", tmp_path / "class.csv"]
    assert grade(tmp_path / "in", tmp_path / "out", "--seed=3", *roster) == 0
    assert grade(tmp_path / "in", tmp_path / "no", "--keep-others") == 2
    assert "--keep-others needs --earlier" in capsys.readouterr().err
    hand_in("bob/00.ipynb", RIGHT, below=tmp_path / "appeal")
    words = ["--earlier", tmp_path / "out", "--keep-others", *roster]
    assert grade(tmp_path / "appeal", tmp_path / "new", *words) == 0
    before, now = rows(tmp_path / "out"), rows(tmp_path / "new")
    assert now.keys() == before.keys()
    assert [x for x in now if now[x] != before[x]] == ["bob/00.ipynb"]
    assert now["bob/00.ipynb"]["score"] > before["bob/00.ipynb"]["score"]
    assert "1 submission changed." in capsys.readouterr().out
    pages = ("feedback", "gradescope")
    assert [sorted(x.name for x in (tmp_path / "new" / y).iterdir()) for y in pages] == [
        sorted(x.name for x in (tmp_path / "out" / y).iterdir()) for y in pages
    ]


def test_an_appeal_goes_on_with_the_rules_of_the_first_run(grade, hand_in, tmp_path, capsys):
    for name in ("ada", "bob"):
        os.utime(hand_in(f"{name}/00.ipynb"), (1e9,) * 2)
    due = datetime.fromtimestamp(1e9 - 7200).isoformat(" ")
    rules = ["--lesson=00", f"--due={due}", "--late-penalty=20", "--points=start/hello=9"]
    assert grade(tmp_path / "in", tmp_path / "out", *rules) == 0
    shutil.rmtree(tmp_path / "in" / "bob")
    words = ["--earlier", tmp_path / "out", "--keep-others"]
    capsys.readouterr()
    assert grade(tmp_path / "in", tmp_path / "new", *words) == 0
    said = capsys.readouterr().out
    assert f"--lesson 00 --points start/hello=9 --due '{due}' --late-penalty 20" in said
    assert rows(tmp_path / "new") == rows(tmp_path / "out")
    assert grade(tmp_path / "in", tmp_path / "free", *words, "--late-penalty=0") == 0
    now = rows(tmp_path / "free")["ada/00.ipynb"]
    assert now["score"] == now["max_score"]
    assert "then: Handed in" in capsys.readouterr().out
    path = tmp_path / "out" / "results.json"
    found = json.loads(path.read_text())
    path.write_text(json.dumps({name: x for name, x in found.items() if name != "options"}))
    assert grade(tmp_path / "in", tmp_path / "old", *words) == 2
    assert "does not say by which rules" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{", '{"seed": 1}', "[" * 100_000, "\xff"])
def test_earlier_results_that_are_none_are_one_sentence(grade, hand_in, tmp_path, capsys, text):
    hand_in("ada.ipynb")
    (tmp_path / "results.json").write_text(text, "latin1")
    assert grade(tmp_path / "in", tmp_path / "out", "--earlier", tmp_path / "results.json") == 2
    said = capsys.readouterr().err
    assert "is not JSON" in said or "holds no results of `course grade`" in said
    assert said.count("\n") == 1


def hand_in_words(path, text, tag="question:why"):
    notebook = json.loads(path.read_text())
    notebook["cells"].append({"cell_type": "markdown", "metadata": {"tags": [tag]}, "source": text})
    path.write_text(json.dumps(notebook))


def fill_in(table, out, marks, more=()):
    """Fill in marks as a spreadsheet program would: by student and criterion."""
    head, *lines = csv.reader(table.read_text("utf-8-sig").splitlines())
    for line in lines:
        line[4] = marks.get((line[0], line[3]), line[4])
    with out.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows([head, *lines, *more])


RUBRIC = "question,points,criterion\nwhy,2,names the variance\nwhy,1,=saturates\n"


def test_answers_in_words_are_marked_by_a_rubric_and_the_marks_are_read_back(
    hand_in, grade, tmp_path, capsys
):
    hand_in_words(hand_in("ada.ipynb"), "=It grows with `d_k`.")
    hand_in("=bob.ipynb", WRONG)
    (tmp_path / "rubric.csv").write_text(RUBRIC)
    options = ["--rubric", tmp_path / "rubric.csv"]
    assert grade(tmp_path / "in", tmp_path / "out", *options) == 0
    first = rows(tmp_path / "out")
    assert "1 answer to be marked by hand" in capsys.readouterr().out
    statuses = {x: first[x]["exercises"]["by_hand/why"]["status"] for x in first}
    assert statuses == {"ada.ipynb": "to be marked", "=bob.ipynb": "not attempted"}
    table = tmp_path / "out" / "marks.csv"
    assert "'=It grows with `d_k`." in table.read_text()
    extra = [["'=bob", "", "", "", "0,5", "", "For a good question.", ""]]
    extra += [["=bob", "", "start/hello", "", "3", "", "The idea is right.", ""]]
    extra += [["eve", "", "", "", "1", "", "", ""]]
    marks = {("ada", "names the variance"): "2", ("ada", "'=saturates"): "0"}
    fill_in(table, table, marks, extra)
    written = table.read_bytes()
    words = [*options, "--earlier", tmp_path / "out"]
    assert grade(tmp_path / "in", tmp_path / "final", *words) == 0
    said, found = capsys.readouterr().out, rows(tmp_path / "final")
    assert table.read_bytes() == written
    assert "A mark has no place here: eve, extra points." in said
    assert found["ada.ipynb"]["score"] == first["ada.ipynb"]["score"] + 2
    assert found["ada.ipynb"]["max_score"] == first["ada.ipynb"]["max_score"]
    answer = found["ada.ipynb"]["exercises"]["by_hand/why"]
    assert [x["held"] for x in answer["properties"]] == [True, False]
    bob = found["=bob.ipynb"]
    assert bob["exercises"]["start/hello"]["points"] == 3
    assert bob["exercises"]["start/hello"]["message"].endswith("By hand: The idea is right.")
    assert bob["score"] == 3.5
    # what was filled in is in the new table again, and can be read once more
    assert grade(tmp_path / "in", tmp_path / "last", *options, "--earlier", tmp_path / "final") == 0
    assert rows(tmp_path / "last") == found
    (page,) = (tmp_path / "final" / "feedback").glob("bob*.html")
    assert "For a good question." in page.read_text()


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--rubric", "a,b\n", "it needs the columns criterion, points, question"),
        ("--rubric", "question,points,criterion\nwhy so,1,x\n", "line 2: a question is a name"),
        ("--rubric", "question,points,criterion\nwhy,0,x\n", "line 2: a question is a name"),
        ("--marks", "student,exercise,criterion,points\nada,,,two\n", "line 2: two is no number"),
        ("--marks", "student,points\n", "it needs the columns criterion, exercise"),
    ],
)
def test_tables_of_marks_that_make_no_sense_are_one_sentence(
    hand_in, grade, tmp_path, capsys, option, text, said
):
    hand_in("ada.ipynb")
    (tmp_path / "table.csv").write_text(text)
    assert grade(tmp_path / "in", tmp_path / "out", option, tmp_path / "table.csv") == 2
    assert said in capsys.readouterr().err


def test_no_tag_of_a_stranger_makes_more_than_text(hand_in, grade, tmp_path):
    path = hand_in("ada.ipynb")
    for tag in ("question:why", "question:../x", "question:" + "y" * 99, "question:", 7):
        hand_in_words(path, "\ud800" + "z" * 20_000, tag)
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    found = rows(tmp_path / "out")["ada.ipynb"]
    assert list(found["words"]) == ["why"]
    assert len(found["words"]["why"]) == 10_000
    assert list(found["exercises"]) == ["start/hello"]


def test_what_is_worth_nothing_could_have_won_nothing(tmp_path, grade):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "dora.ipynb").write_text('{"cells": [')
    options = ["--exercise", "start/hello", "--points", "start/hello=0"]
    assert grade(tmp_path / "in", tmp_path / "out", *options) == 0
    assert rows(tmp_path / "out")["dora.ipynb"]["max_score"] == 0


def test_everyone_on_the_roster_has_a_row_and_a_name(hand_in, grade, tmp_path, capsys):
    hand_in("lovelaceada_12_345_00.ipynb")
    hand_in("nobody.ipynb")
    roster = tmp_path / "roster.csv"
    roster.write_text("\ufeffName;ID;Email\nAda;12;a@b.c\nBob;13;\n")
    assert grade(tmp_path / "in", tmp_path / "out", "--roster", roster) == 0
    found = rows(tmp_path / "out")
    assert found["lovelaceada_12_345_00.ipynb"]["name"] == "Ada"
    assert (found["13"]["name"], found["13"]["status"]) == ("Bob", "missing")
    assert found["13"]["max_score"] == found["nobody.ipynb"]["max_score"]
    said = capsys.readouterr().out
    assert "2 of 2 notebooks graded" in said
    assert "Bob (13): Nothing was handed in." in said
    assert "nobody is not on the roster" in said
    roster.write_text("Name,Age\nAda,12\n")
    assert grade(tmp_path / "in", tmp_path / "again", "--roster", roster) == 2
    assert "it needs a column id in its first row" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hours", "options", "share"),
    [
        (-1, ["--late-penalty=10/day"], 1),
        (0.4, ["--late-penalty=10/day", "--grace=30"], 1),
        (0.6, ["--late-penalty=10/day", "--grace=30"], 0.9),
        (25, ["--late-penalty=10/day", "--grace=30"], 0.8),
        (24 * 30, ["--late-penalty=10/day"], 0),
        (24 * 30, ["--late-penalty=10"], 0.9),
        (25, ["--late-penalty=10/day", "--extensions=48"], 1),
        (49, ["--late-penalty=10/day", "--extensions=48"], 0.9),
    ],
)
def test_lateness_costs_by_the_day_after_grace_and_extension(
    hand_in, grade, tmp_path, capsys, hours, options, share
):
    path, due = hand_in("ada.ipynb"), 1e9
    os.utime(path, (due + 3600 * hours,) * 2)
    words = [f"--due={datetime.fromtimestamp(due).astimezone().isoformat()}", *options]
    if options[-1] == "--extensions=48":
        more = datetime.fromtimestamp(due + 48 * 3600).isoformat(" ")
        (tmp_path / "more.csv").write_text(f"id,due\nada,{more}\n")
        words[-1] = f"--extensions={tmp_path / 'more.csv'}"
    assert grade(tmp_path / "in", tmp_path / "out", *words) == 0
    row = rows(tmp_path / "out")["ada.ipynb"]
    assert row["score"] == pytest.approx(share * row["max_score"], abs=0.01)
    assert row["late"] == (share < 1)
    said = capsys.readouterr().out
    assert ("late, which costs" in said) == (share < 1)
    assert ("in time by an extension" in said) == (options[-1] == "--extensions=48" and share == 1)


def processes_of(mark):
    """List the processes with this mark in their environment, and those that they have started."""
    found = psutil.process_iter(["environ"])
    return [process for process in found if (process.info["environ"] or {}).get("MARK") == mark]


def test_a_killed_run_goes_on_to_the_same_results(hand_in, grade, tmp_path):
    kills = int(os.environ.get("COURSE_TEST_KILLS", "1"))
    for number in range(6 + kills):
        hand_in(f"s{number:02}.ipynb", (RIGHT, WRONG)[number % 2])
    words = [*COMMAND, str(tmp_path / "in"), "--out", str(tmp_path / "killed"), "--seed=3", *TRUST]
    marked = {"env": os.environ | {"MARK": str(tmp_path)}, "stdout": subprocess.DEVNULL}
    kept = tmp_path / "killed" / "unfinished.jsonl"
    for done in range(1, kills + 1):
        run = subprocess.Popen(words, stderr=subprocess.DEVNULL, **marked)
        while run.poll() is None and (not kept.exists() or kept.read_text().count("\n") <= done):
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.05))
        run.send_signal(signal.SIGKILL)
        run.wait()
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL, timeout=LONGEST, **marked)
    assert grade(tmp_path / "in", tmp_path / "whole", "--seed", 3) == 0
    results = [(tmp_path / name / "results.json").read_bytes() for name in ("killed", "whole")]
    assert results[0] == results[1]
    assert not kept.exists()
    deadline = time.monotonic() + 60
    while processes_of(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_of(str(tmp_path))


@pytest.mark.parametrize("name", SIGNALS)
def test_a_killed_command_leaves_no_process_and_no_folder_to_the_next_one(hand_in, tmp_path, name):
    hand_in("slow.ipynb", "def double(x):\n    while True:\n        pass")
    words = [*COMMAND, str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--seed=3", *TRUST]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {"MARK": str(tmp_path), "TMPDIR": str(temporary)}
    run = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL)
    while not [*temporary.glob("course-grade-*/course-sandbox-*")]:
        assert run.poll() is None
        time.sleep(0.02)
    time.sleep(0.5)
    run.send_signal(getattr(signal, name))
    started = time.monotonic()
    run.wait(10)
    while processes_of(str(tmp_path)) and time.monotonic() < started + 10:
        time.sleep(0.05)
    assert not processes_of(str(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        if name == "SIGKILL":
            workers.clear_away()
    assert [*temporary.iterdir()] == []


@pytest.mark.skipif(best_level() == "plain", reason="no sandbox here")
@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_of_the_system_is_said_and_costs_nobody_any_points(hand_in, tmp_path, limit):
    hand_in("ada.ipynb")
    words = [*COMMAND, str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--jobs=1"]
    command = ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    assert run.returncode == 2, run
    assert f"ulimit {limit[:2]}" in run.stderr
    assert not (tmp_path / "out" / "results.json").exists()


def test_a_run_that_fails_at_any_file_goes_on_to_the_same_bytes(
    hand_in, grade, tmp_path, monkeypatch
):
    hand_in("lovelaceada_12_345_00.ipynb", WRONG)
    canvas, rubric = tmp_path / "canvas.csv", tmp_path / "rubric.csv"
    canvas.write_text("Student,ID,Section,Start (77)\nPoints Possible,,,9\nAda,12,,\n")
    rubric.write_text("question,points,criterion\nwhy,2,is right\n")
    moodle = tmp_path / "moodle.csv"
    moodle.write_text("Identifier,Full name,Grade,Maximum Grade\nParticipant 12,Ada,,50.00\n")
    assert grade(tmp_path / "in", tmp_path / "earlier", "--seed", 3) == 0
    options = ["--canvas", canvas, "--assignment", "Start", "--moodle", moodle]
    options += ["--rubric", rubric, "--earlier", tmp_path / "earlier"]

    def written(folder):
        files = (x for x in folder.rglob("*") if x.is_file())
        return {x.relative_to(folder).as_posix(): x.read_bytes() for x in files}

    assert grade(tmp_path / "in", tmp_path / "whole", *options) == 0
    whole = written(tmp_path / "whole")
    assert {"results.json", "canvas.csv", "moodle.csv", "changes.html", "marks.csv"} <= {*whole}
    put = os.replace
    for place, name in enumerate(whole):
        out = tmp_path / f"out_{place}"

        def fail(source, target, out=out, name=name):
            if target == out / name:
                raise OSError(28, "No space left on device", str(target))
            put(source, target)

        monkeypatch.setattr(os, "replace", fail)
        assert grade(tmp_path / "in", out, *options) == 2
        monkeypatch.setattr(os, "replace", put)
        assert grade(tmp_path / "in", out, *options) == 0
        assert written(out) == whole


@pytest.mark.skipif(not WEEKLY, reason="once a week")
def test_batches_of_a_lost_worker_are_done_again(hand_in, grade, tmp_path):
    for number in range(2):
        hand_in(f"s{number}.ipynb", (RIGHT, WRONG)[number])
    address = tmp_path / "scheduler.json"
    module = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--no-dashboard"]
    worker += ["--nthreads=1", f"--scheduler-file={address}", f"--local-directory={tmp_path}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = ["--host=127.0.0.1", "--port=0", f"--scheduler-file={address}"]
    running = [subprocess.Popen([*module, *options], **quiet)]
    try:
        running += [subprocess.Popen(worker, **quiet) for _ in range(2)]
        while not address.exists() or not address.read_text().endswith("}"):
            time.sleep(0.05)
        scheduler = json.loads(address.read_text())["address"]
        words = [*COMMAND, str(tmp_path / "in"), "--out", str(tmp_path / "far"), "--seed=3", *TRUST]
        run = subprocess.Popen([*words, "--scheduler", scheduler], **quiet)
        while not (at_work := [p for p in running[1:] if psutil.Process(p.pid).children()]):
            assert run.poll() is None
            time.sleep(0.02)
        at_work[0].kill()
        assert run.wait(LONGEST) == 0
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert grade(tmp_path / "in", tmp_path / "near", "--seed", 3) == 0
    results = [(tmp_path / name / "results.json").read_bytes() for name in ("far", "near")]
    assert results[0] == results[1]


def test_a_full_disk_is_one_sentence_and_what_was_graded_stays(
    hand_in, grade, tmp_path, monkeypatch, capsys
):
    hand_in("ada.ipynb")

    def full(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(grading, "write_atomically", full)
    assert grade(tmp_path / "in", tmp_path / "out", "--seed", 5) == 2
    assert "No space left on device. What was graded is kept" in capsys.readouterr().err
    monkeypatch.setattr(grading, "write_atomically", write_atomically)
    assert grade(tmp_path / "in", tmp_path / "out", "--seed", 6) == 2
    assert "unfinished run with other options" in capsys.readouterr().err
    assert grade(tmp_path / "in", tmp_path / "out") == 0
    assert json.loads((tmp_path / "out" / "results.json").read_text())["seed"] == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lesson", "99"], "no lesson 99 has exercises: there are 00, 01"),
        (["--exercise", "start/helo"], "did you mean start/hello"),
        (["--points", "start/hello=many"], "--points start/hello=many is not understood"),
        (["--due", "tomorrow"], "is no time such as"),
        (["--late-penalty", "120"], "a percentage, from 0 to 100"),
        (["--late-penalty", "5/week"], "or one for each day: 10/day"),
        (["--grace", "-1"], "--grace is a number of minutes"),
        (["--roster", "nowhere.csv"], "No such file or directory"),
        (["--seed", "-1"], "a whole number from 0"),
        (["--seconds", "0"], "--seconds is to be 1 or more"),
        (["--isolation", "plain"], "--trust grades in them all the same"),
        (["--canvas", "nowhere.csv"], "--canvas needs --assignment"),
        (["--scale", "0"], "--scale is a number of points"),
        (["--moodle", "nowhere.csv"], "No such file or directory"),
        (["--scheduler", "tcp://127.0.0.1:1"], "no Dask scheduler"),
    ],
)
def test_options_that_make_no_sense_are_one_sentence(
    hand_in, tmp_path, capsys, monkeypatch, options, said
):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.1)  # there is nobody to wait for
    hand_in("ada.ipynb")
    trust = [] if "--isolation" in options else TRUST
    words = ["grade", str(tmp_path / "in"), "--out", str(tmp_path / "out"), *trust, *options]
    assert main.main(words) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out" / "results.json").exists()


def test_without_dask_it_says_what_installs_it(hand_in, tmp_path, capsys, monkeypatch):
    hand_in("ada.ipynb")
    monkeypatch.setitem(sys.modules, "distributed", None)
    scheduler = ["--scheduler", "tcp://127.0.0.1:1"]
    assert grade_by_worker(tmp_path / "in", tmp_path / "out", *scheduler) == 2
    assert f'-e "{ROOT}[instructor]"`.' in capsys.readouterr().err


def test_gradebooks_are_filled(hand_in, grade, tmp_path, capsys):
    hand_in("lovelaceada_12_345_00.ipynb")
    canvas, moodle = tmp_path / "canvas.csv", tmp_path / "moodle.csv"
    canvas.write_text("Student,ID,Section,Start (77)\nPoints Possible,,,9\nAda,12,,\nBob,13,,\n")
    moodle.write_text("Identifier,Full name,Grade,Maximum Grade\nParticipant 12,Ada,,50.00\n")
    options = ["--canvas", canvas, "--assignment", "Start", "--moodle", moodle]
    assert grade(tmp_path / "in", tmp_path / "out", *options) == 0
    found = rows(tmp_path / "out")
    score = found["lovelaceada_12_345_00.ipynb"]["score"]
    assert [found[x]["name"] for x in ("lovelaceada_12_345_00.ipynb", "13")] == ["Ada", "Bob"]
    assert f"Ada,12,,{score}\n" in (tmp_path / "out" / "canvas.csv").read_text()
    assert "Participant 12,Ada,50,50.00\n" in (tmp_path / "out" / "moodle.csv").read_text()
    said = capsys.readouterr().out
    assert "canvas.csv:\n  Bob has no grade.\n" in said
    assert f"moodle.csv:\n  Scaled: {score} points of these results are 50 in Moodle.\n" in said
