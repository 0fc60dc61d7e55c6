"""A class of 60, from a platform's download to its gradebook, reckoned by hand beforehand.

Once a week, with COURSE_WEEKLY=1, all of them, and 200 notebooks twice; otherwise each tenth.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
import zipfile
from typing import Literal

import pytest

from course_lib.command_line import main
from course_lib.files import ipynb
from course_lib.files.paths import ROOT
from course_lib.grading.judging.isolation import best_level
from research.benchmarks.grading import NOT_SCALED, RIGHT, STEM, Answer, answers, breaking, filled
from tests import TENTH, WEEKLY

DOWNLOADED = (2026, 11, 27, 9, 0, 0)
RELEASE = ROOT / "notebooks" / f"{STEM}.ipynb"
TRUST = ["--trust"] if best_level() == "plain" else []
COMMAND = [sys.executable, "-m", "course_lib.command_line", "grade"]


def but(exercise, source):
    """Return right answers, but for one."""
    return RIGHT | {f"self_attention/{exercise}": Answer(source, False)}


FIRST_TWO = {x: RIGHT[x] for x in ("self_attention/parameter_free", "self_attention/project")}
DETACHED = RIGHT["self_attention/project"].source.replace("x @ w for", "(x @ w).detach() for")
MASKLESS = RIGHT["self_attention/layer"].source.replace("self.w_v), mask)", "self.w_v))")
# what is handed in: its answers, and what it is worth in a gradebook of 100 points, in time and
# late; all of lesson 03 is worth 12 + 10 + 12 + 11 + 7 = 52
KINDS = {
    "right": (RIGHT, "100", "80"),  # 52
    "untouched": ({"none": RIGHT["self_attention/project"]}, "0", "0"),
    "half": (FIRST_TWO, "42.31", "33.85"),  # 12 + 10 = 22
    # of 12 what a missing scale leaves: three laws, and large numbers, whose largest wins: 44
    "unscaled": (but("scaled_dot_product", NOT_SCALED), "84.62", "67.69"),
    "detached": (but("project", DETACHED), "96.15", "76.92"),  # without 2 for gradients: 50
    "maskless": (but("layer", MASKLESS), "80.77", "64.62"),  # 1 of 11, for permutations: 42
    "broken": (breaking("return ("), "76.92", "61.54"),  # without 12: 40
    "a text": (None, "", ""),
    "a picture": (None, "", ""),
    "nothing": (None, "", ""),
    "a draft and a final version": (RIGHT, "100", "80"),
    "renamed": (RIGHT, "100", "80"),
    "ending": (breaking("raise SystemExit"), "76.92", "61.54"),  # without 12: 40
}
NAMES = ["Jürgen Müller", "Noël Özturk", "李 明", "Ada O'Brien", "Åsa Ångström", "Bob K"]


class Student:
    """One of the class: names that programs write in two ways, work of one of the kinds."""

    def __init__(self, place):
        self.kind = [*KINDS][place % len(KINDS)]
        self.name = f"{NAMES[place % len(NAMES)]} {place}"
        self.number, self.late = 1000 + place, place % 7 == 3
        given, in_time, late = KINDS[self.kind]
        self.grade = late if self.late else in_time
        self.files = {}
        if given:
            title = "Copy of 第三课 (3).ipynb" if self.kind == "renamed" else f"{STEM}.ipynb"
            self.files[title] = filled(ipynb.read(RELEASE), given)
        if self.kind == "a draft and a final version":
            self.files["old draft.ipynb"] = RELEASE.read_bytes()
        if self.kind == "a picture":
            self.files["answers.png"] = b"\x89PNG"

    def in_canvas(self):
        """Return the student's files under the names that Canvas gives."""
        own = "".join(x for x in self.name.lower() if x.isalnum())
        head = f"{own}{'_LATE' * self.late}_{self.number}"
        if self.kind == "a text":
            return {f"{head}_text.html": b"<p>Here is my link.</p>"}
        return {f"{head}_{9 * self.number + i}_{x}": y for i, (x, y) in self._numbered()}

    def in_moodle(self):
        """Return the student's files under the names that Moodle gives."""
        head = f"{self.name}_{self.number}_assignsubmission"
        if self.kind == "a text":
            return {f"{head}_onlinetext/onlinetext.html": b"<p>Here is my link.</p>"}
        return {f"{head}_file/{x}": y for x, y in self.files.items()}

    def _numbered(self):
        return enumerate(self.files.items())


CLASS = [Student(place) for place in range(60)][TENTH]


def pack(path, files, around="", form: Literal["NFC", "NFD"] = "NFC"):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            written = unicodedata.normalize(form, around + name)
            archive.writestr(zipfile.ZipInfo(written, DOWNLOADED), content)
    return path


def canvas(graded):
    """Write Canvas's gradebook, empty or as it is to be when all are graded."""
    lines = [
        "Student,ID,SIS User ID,SIS Login ID,Section,Lesson 03 (7781),Current Score",
        "    Points Possible,,,,,100.00,(read only)",
    ]
    for x in CLASS:
        given, _, family = x.name.partition(" ")
        grade = x.grade if graded else ""
        lines.append(f'"{family}, {given}",{x.number},u{x.number},s{x.number},Days,{grade},71.5')
    return "\r\n".join([*lines, '"Student, Test",9999,,x,Days,,', ""])


def moodle(graded, maximum):
    """Write Moodle's worksheet, empty or as it is to be when all are graded."""
    lines = [
        "Identifier,Full name,Email address,Status,Grade,"
        f"{maximum},Grade can be changed,Last modified (submission),Last modified (grade)"
    ]
    for x in CLASS:
        day = "Thursday, 26 November 2026, 12:00 AM" if x.late else "25 November 2026, 11:59 PM"
        when = "-" if x.kind == "nothing" else day
        row = [f"Participant {x.number}", x.name, f"s{x.number}@example.edu", "Submitted"]
        row += [x.grade if graded else "", "100.00", "Yes", f'"{when}"', "-"]
        lines.append(",".join(row))
    return "\ufeff" + "\n".join(lines) + "\n"


PLATFORMS = {"Canvas": "in_canvas", "Moodle": "in_moodle"}
SHAPES: dict[str, tuple[str, Literal["NFC", "NFD"], str]] = {
    "plain": ("", "NFC", "Maximum Grade"),
    "wrapped": ("Work/", "NFD", "Maximum grade"),
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("shape", SHAPES if WEEKLY else ["wrapped"])
def test_the_gradebook_is_what_a_person_reckons(tmp_path, capsys, platform, shape):
    around, form, maximum = SHAPES[shape]
    files = {k: v for x in CLASS for k, v in getattr(x, PLATFORMS[platform])().items()}
    archive = pack(tmp_path / "all.zip", files, around, form)
    given = tmp_path / "given.csv"
    empty, full = (canvas(x) if platform == "Canvas" else moodle(x, maximum) for x in (False, True))
    given.write_bytes(empty.encode())
    words = ["grade", archive, "--out", tmp_path / "out", "--lesson=03", "--seed=5", *TRUST]
    words += ["--due=2026-11-25 23:59", "--late-penalty=20", f"--{platform.lower()}", given]
    words += ["--assignment=Lesson 03"] if platform == "Canvas" else []
    assert main.main([str(x) for x in words]) == 0
    filled_in = (tmp_path / "out" / f"{platform.lower()}.csv").read_bytes()
    assert filled_in.decode() == full
    said = capsys.readouterr().out
    assert "has no row" not in said
    assert "is not on the roster" not in said
    for x in CLASS:
        if x.kind == "a text":
            assert f"{x.number}" in said


def archived(path, numbers):
    """Write a zip file of the benchmark's notebooks in this order."""
    notebooks = {f"s{n:03}.ipynb": filled(ipynb.read(RELEASE), answers(n)) for n in numbers}
    return pack(path, notebooks)


def command(*words, course=ROOT, **variables):
    """Start the command in a process of its own, of the course that is in a folder."""
    return subprocess.Popen(
        [*COMMAND, "--lesson=03", "--seed=5", *TRUST, *map(str, words)],
        env=os.environ | variables | {"PYTHONPATH": str(course)}, cwd=course, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_same_notebooks_in_another_order_and_another_process_give_the_same_bytes(tmp_path):
    numbers, written = range(200)[TENTH], []
    for name, order, jobs, seed in (("a", 1, 1, "1"), ("b", -1, 2, "2")):
        (tmp_path / name).mkdir()
        archive = archived(tmp_path / name / "all.zip", numbers[::order])
        out = tmp_path / name / "out"
        process = command(archive, "--out", out, f"--jobs={jobs}", PYTHONHASHSEED=seed)
        assert "notebooks graded" in process.communicate()[0]
        written.append({x.relative_to(out): x.read_bytes() for x in out.rglob("*.*")})
    assert len(written[0]) > 2 * len(numbers)
    assert written[0] == written[1]


def test_a_killed_run_says_which_exercise_has_changed_and_judges_all_anew(tmp_path):
    course, out = tmp_path / "course", tmp_path / "out"
    ours = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "course_lib", course / "course_lib", ignore=ours)
    archive = archived(tmp_path / "all.zip", range(0, 80, 4))
    words = [archive, "--out", out, "--jobs=1"]
    journal = out / "unfinished.jsonl"
    running = command(*words, course=course)
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert not (out / "results.json").exists()
    mended = course / "course_lib" / "exercises" / "self_attention" / "project.py"
    text = mended.read_text("utf8")
    worth = '@exercise.requires("each matrix changes its own role and no other"'
    assert worth in text
    mended.write_text(text.replace(worth, f"{worth}, points=3"), "utf8")
    said, _ = command(*words, course=course).communicate()
    assert "self_attention/project changed since this run was interrupted" in said
    found = json.loads((out / "results.json").read_text("utf8"))["submissions"]
    assert {x["max_score"] for x in found} == {54}
    assert {x["score"] for x in found} == {54}
