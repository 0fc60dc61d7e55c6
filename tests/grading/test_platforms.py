"""A class as platforms hand it over: whose work it is, when it came, and what goes back.

The names and the rules are those of Canvas (`lib/content_zipper.rb`,
`infer_comment_context_from_filename`) and of Moodle (`mod/assign/locallib.php`,
`feedback/file/importziplib.php`), tried with archives made here.
"""

import csv
import io
import unicodedata
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from course_lib.files.errors import CommandError
from course_lib.grading import policies
from course_lib.grading.gradebooks import canvas, feedback_zip, moodle
from course_lib.grading.gradebooks.template import name_key
from course_lib.grading.judging.rules import Rules, versions
from course_lib.grading.marks.by_hand import ByHand, read_marks, read_rubric
from course_lib.grading.marks.grades import Policy, results
from course_lib.grading.reports import feedback, nbgrader_csv
from course_lib.grading.reports.shared import statistics
from course_lib.grading.submissions import regrade, roster
from course_lib.grading.submissions.files import SubmittedFile, collect
from course_lib.grading.submissions.journal import Journal, OtherRules
from course_lib.grading.submissions.lateness import Lateness, Penalty
from course_lib.grading.submissions.times import deadline, parse_time

HELLO = "start/hello"
DUE = deadline("2026-11-25 23:59Z")
DOWNLOADED = (2026, 11, 27, 9, 0, 0)
PEOPLE = ["Ada Lovelace", "Jürgen Müller", "Noël Özturk", "李 明", "Bob K"]


def entry(points=4, status="graded", most=4):
    answer = {"status": "passed", "points": points, "max_points": most, "message": ""}
    exercises = {HELLO: answer} if status == "graded" else {}
    return {"lesson": "00", "status": status, "message": "", "exercises": exercises}


def pack(path, names, content="{}", around=""):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(around + name, DOWNLOADED), content)
    return path


def canvas_names(late=()):
    flat = ["".join(x for x in name.lower() if x.isalnum()) for name in PEOPLE]
    marks = ["_LATE" if i in late else "" for i in range(len(flat))]
    return [
        f"{x}{y}_{100 + i}_{900 + i}_03.ipynb"
        for i, (x, y) in enumerate(zip(flat, marks, strict=True))
    ]


def moodle_names():
    return [f"{x}_{100 + i}_assignsubmission_file/03.ipynb" for i, x in enumerate(PEOPLE)]


def graded(found, when=None, points=lambda one: 4):
    judged = [
        (one, entry(points(one)) if one.notebook else entry(status="missing")) for one in found
    ]
    return results(Rules("plain", 3), judged, Policy(when or Lateness()))["submissions"]


@pytest.mark.parametrize("around", ["", "submissions/", "a/b/"])
@pytest.mark.parametrize(
    "names", [canvas_names(late=[1]), moodle_names()], ids=["Canvas", "Moodle"]
)
def test_a_folder_around_a_platforms_files_changes_nothing(tmp_path, names, around):
    plain = collect(pack(tmp_path / "plain.zip", names))
    packed = pack(tmp_path / "all.zip", names, around=around)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path / "in")
    for place in (packed, tmp_path / "in"):
        left_out = []
        found = collect(place, left_out.append)
        assert [(x.student, x.notebook, x.number, x.late) for x in found] == [
            (x.student, x.notebook, x.number, x.late) for x in plain
        ]
        assert {x.content() for x in found} == {b"{}"}
        assert left_out == []
        assert {x.time for x in found} == {None}  # that of the download is none


@pytest.mark.parametrize(
    ("names", "students"),
    [
        (["in/ada/03.ipynb", "in/bob/03.ipynb", "__MACOSX/in/._ada"], ["ada", "bob"]),
        (["in/ada.ipynb", "in/bob.ipynb"], ["ada", "bob"]),
        (["./ada/03.ipynb", "./bob/03.ipynb"], ["ada", "bob"]),
        (["submitted/ada/ps3/03.ipynb", "submitted/bob/ps3/03.ipynb"], ["ada", "bob"]),
        (["course/submitted/ada/ps3/03.ipynb", "course/source/ps3/03.ipynb"], ["ada"]),
        (["ada/03.ipynb"], ["ada"]),
        (["ada/03_self_attention.ipynb", "ada/04_positions.ipynb"], ["ada", "ada"]),
        (["ada/03.ipynb", "bob/deep/down/03.ipynb"], ["ada", "bob"]),
        (["ada.IPYNB", "bob.ipynb.txt", "carl.ipynb.json"], ["ada", "bob", "carl"]),
    ],
)
def test_one_folder_at_the_top_is_the_root(tmp_path, names, students):
    archive = pack(tmp_path / "all.zip", names)
    with zipfile.ZipFile(archive) as whole:
        whole.extractall(tmp_path / "in")
    for place in (archive, tmp_path / "in"):
        assert [x.student for x in collect(place) if x.notebook] == students


def test_gradescope_says_who_has_handed_in_and_when(tmp_path):
    said = (
        "---\nsubmission_11:\n  :submitters:\n  - :name: Ada\n    :sid: '7'\n    :email: a@b.c\n"
        "  :created_at: 2026-11-25 22:00:00.000000000 Z\n"
        "submission_12:\n  :submitters:\n  - :name: Bob\n    :email: b@b.c\n  - :name: Eve\n"
        "    :sid:\n  :created_at: 2026-11-26 08:00:00.000000000 Z\n"
    )
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("assignment_1_export/submission_metadata.yml", said)
        for number in (11, 12):
            archive.writestr(f"assignment_1_export/submission_{number}/03.ipynb", "{}")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        archive.extractall(tmp_path / "in")
    for place in (tmp_path / "all.zip", tmp_path / "in"):
        found = collect(place)
        assert [x.student for x in found] == ["7", "Eve", "b@b.c"]  # a group is graded once each
        late = {x["student"]: x["late"] for x in graded(found, Lateness(DUE))}
        assert late == {"7": False, "Eve": True, "b@b.c": True}


def test_who_holds_the_notebooks_of_others_is_no_student(tmp_path):
    names = ["all/ada/03.ipynb", "all/bob/03.ipynb", "all/eve/x/03.ipynb", "late/zoe/03.ipynb"]
    found = {x.student: x for x in collect(pack(tmp_path / "all.zip", names))}
    assert found["all"].problem.startswith("This folder holds notebooks of ada, bob, eve: put the")
    assert found["late"].problem is None


def test_a_text_is_called_one_wherever_it_was_written(tmp_path):
    for name in ("adal_406_text.html", "Ada L_406_assignsubmission_onlinetext/onlinetext.html"):
        [one] = collect(pack(tmp_path / "all.zip", [name]))
        assert one.problem.startswith(f"There is no notebook, but a text ({name})")


def test_every_file_ends_in_a_row_or_in_the_list_of_what_was_left_out(tmp_path):
    names = ["ada/03.ipynb", "ada/helper.py", "bob/a.pdf", "README.txt", ".secret", "../up.ipynb"]
    left_out = []
    found = collect(pack(tmp_path / "all.zip", names), left_out.append)
    listed = {x.notebook for x in found} | {*left_out}
    assert listed == {"ada/03.ipynb", "", "ada/helper.py", "README.txt", ".secret", "../up.ipynb"}
    assert "bob/a.pdf" in found[1].problem


# times


def test_canvas_alone_says_who_is_late_and_a_download_says_nothing(tmp_path):
    found = collect(pack(tmp_path / "all.zip", canvas_names(late=[1, 3])))
    when = Lateness(DUE, Penalty(20))
    assert when.unknown(found) == []
    rows = graded(found, when)
    assert sorted(x["number"] for x in rows if x["late"]) == ["101", "103"]
    assert {x["score"] for x in rows} == {4, 3.2}


def test_canvas_says_who_is_late_and_not_by_how_much(tmp_path):
    found = collect(pack(tmp_path / "all.zip", canvas_names(late=[1, 3])))
    late = [x.student for x in found if x.late]
    unknown = Lateness(DUE, Penalty(10, per_day=True)).unknown(found)
    assert [x.student for x in unknown] == late
    more = roster.read("id;due;handed in\n101;;2026-11-25 10:00\n103;2026-11-28;\n")
    when = Lateness(DUE, Penalty(20), extensions=more)
    assert [x.number for x in when.unknown(found)] == ["103"]
    # of a time that a person says, Canvas knows no better
    assert {x["number"]: x["late"] for x in graded(found, when)}["101"] is False


def test_moodle_says_it_in_its_worksheet(tmp_path):
    found = collect(pack(tmp_path / "all.zip", moodle_names()))
    table = "Identifier,Full name,Grade,Maximum grade,Last modified (submission)\n"
    times = ["Wednesday, 25 November 2026, 11:59 PM", "Thursday, 26 November 2026, 12:00 AM"]
    times += ["25 November 2026, noon", "26 November 2026, midnight (start of day)", "-"]
    for number, time in enumerate(times):
        table += f'Participant {100 + number},{PEOPLE[number]},,10.00,"{time}"\n'
    local = deadline("2026-11-25 23:59")
    when = Lateness(local, records=(roster.read(table),))
    assert [found[0].time, when.unknown(found)] == [None, [x for x in found if x.number == "104"]]
    more = roster.read("id;handed in\n104;2026-11-25 10:00\n")
    when = Lateness(local, records=(roster.read(table),), extensions=more)
    assert when.unknown(found) == []
    late = {x["number"]: x["late"] for x in graded(found, when)}
    assert late == {"100": False, "101": True, "102": False, "103": True, "104": False}


@pytest.mark.parametrize(
    ("text", "time", "last"),
    [
        ("2026-12-01 23:59", "2026-12-01 23:59", "2026-12-01 23:59:59.999999"),
        ("2026-12-01 23:59:30", "2026-12-01 23:59:30", "2026-12-01 23:59:30"),
        ("2026-12-01 23:59 UTC", "2026-12-01 23:59Z", "2026-12-01 23:59:59.999999Z"),
        ("2026-12-01 23:59+05:30", "2026-12-01 18:29Z", "2026-12-01 18:29:59.999999Z"),
        ("2026-12-01T23:59", "2026-12-01 23:59", "2026-12-01 23:59:59.999999"),
        ("2026-12-01", "2026-12-01 00:00", "2026-12-01 23:59:59.999999"),
        ("1 December 2026, 11:59 PM", "2026-12-01 23:59", "2026-12-01 23:59:59.999999"),
    ],
)
def test_a_time_is_read_alike_everywhere_and_a_deadline_is_all_that_it_names(text, time, last):
    wanted = [datetime.fromisoformat(x).astimezone(UTC) for x in (time, last)]
    assert [parse_time(text), deadline(text)] == wanted
    [person] = roster.read(f'id,due,handed in\nada,"{text}","{text}"\n').people
    assert [person.handed_in, person.due] == wanted


@pytest.mark.parametrize("text", ["06.12.2026", "tomorrow", "", "2026-13-01 00:00"])
def test_what_is_no_time_is_refused(text):
    for read in (parse_time, deadline):
        with pytest.raises(ValueError, match=r"."):
            read(text)


def test_of_several_notebooks_without_times_the_best_counts_and_it_is_said():
    def file(name, hour=None):
        time = None if hour is None else datetime(2026, 11, 25, hour, tzinfo=UTC)
        return SubmittedFile("ada", name, Path(), time=time)

    def rows(*judged):
        found = results(Rules("plain", 3), list(judged), Policy())["submissions"]
        return {x["notebook"]: (x["status"], x["score"], x["message"]) for x in found}

    draft, final = (file("old draft.ipynb"), entry(0)), (file("final.ipynb"), entry(4))
    found = rows(draft, final)
    assert found["final.ipynb"][:2] == ("graded", 4)
    assert found["final.ipynb"][2].startswith("Nothing says which of several notebooks is the lat")
    assert found["old draft.ipynb"][0] == "superseded"
    assert "final.ipynb has more points and counts" in found["old draft.ipynb"][2]
    timed = (file("old draft.ipynb", 11), entry(0)), (file("final.ipynb", 10), entry(4))
    assert rows(*timed)["old draft.ipynb"] == ("graded", 0, "")
    tied = (file("old draft.ipynb", 10), entry(0)), (file("final.ipynb", 10), entry(4))
    assert rows(*tied)["final.ipynb"][:2] == ("graded", 4)


# names


def test_a_name_is_the_same_however_it_is_written(tmp_path):
    for name in (unicodedata.normalize("NFD", "Jürgen Müller"), "ADA@X.ORG", "bob "):
        (tmp_path / name).mkdir()
        (tmp_path / name / "03.ipynb").write_text("{}")
    people = roster.read("id;name\nj1;Jürgen Müller\nada@x.org;\nBOB;\n")
    found = collect(tmp_path)
    assert sorted(people.find(x.student, x.number).id for x in found) == ["BOB", "ada@x.org", "j1"]
    assert people.without((x.student, x.number) for x in found) == []
    assert name_key("STRASSE") == name_key("Straße ")


# gradebooks

HEAD = "Identifier,Full name,Grade,Maximum grade,Feedback comments\n"


def of_class(tmp_path, names, policy=None, points=4):
    found = collect(pack(tmp_path / "all.zip", names))
    judged = [(one, entry(points)) for one in found]
    return results(Rules("plain", 3, [HELLO]), judged, policy or Policy())


@pytest.mark.parametrize("head", [HEAD, HEAD.upper(), HEAD.replace("Maximum g", "Maximum G")])
def test_headings_are_known_in_any_case(tmp_path, head):
    sheet = head + "".join(f"Participant {100 + i},{x},,10.00,\n" for i, x in enumerate(PEOPLE))
    filled = moodle.fill(of_class(tmp_path, moodle_names()), sheet).text
    assert [row[2] for row in csv.reader(io.StringIO(filled))][1:] == ["10"] * len(PEOPLE)
    book = "STUDENT,id,Lesson 03 (7)\n    points possible,,10\nAda,100,\n"
    found = canvas.fill(of_class(tmp_path, canvas_names()), book, "lesson 03").text
    assert "Ada,100,10\n" in found


def test_a_gradebook_that_does_not_say_how_many_points_there_are_is_refused(tmp_path):
    found = of_class(tmp_path, moodle_names())
    for sheet in (
        "Identifier,Grade,ID number\nParticipant 100,,44\n",
        HEAD + "Participant 100,,,,\n",
    ):
        with pytest.raises(ValueError, match="how many points this assignment has: --scale does"):
            moodle.fill(found, sheet)
        assert "Participant 100,8," in moodle.fill(found, sheet, scale=8).text.replace(",,8", ",8")
    with pytest.raises(ValueError, match="Canvas does not say how many points"):
        canvas.fill(found, "Student,ID,X (1)\nAda,100,\n", "X")


def test_what_is_missing_is_empty_everywhere_or_zero_everywhere(tmp_path):
    names = [*moodle_names()[:1], "Bob K_104_assignsubmission_file/a.pdf"]
    people = HEAD + "Participant 100,,,4.00,\nParticipant 104,,,4.00,\nParticipant 105,,,4.00,\n"
    for missing, cells in (("empty", ["4", "", ""]), ("zero", ["4", "0", "0"])):
        policy = Policy(roster=roster.read(people), missing=missing)
        found = collect(pack(tmp_path / "all.zip", names))
        judged = [(x, entry() if x.notebook else entry(status="unreadable")) for x in found]
        graded = results(Rules("plain", 3, [HELLO]), judged, policy)
        filled = csv.reader(io.StringIO(moodle.fill(graded, people).text))
        assert [row[2] for row in filled][1:] == cells
        _, *rows = csv.reader(io.StringIO(nbgrader_csv.files(graded)["nbgrader.csv"]))
        assert [row[9] for row in rows] == [x for x in cells if x]
        assert {row[0] for row in rows} == {"00_start_here"}


def test_what_nobody_has_looked_at_has_its_own_word_and_tells_no_student_the_answer(tmp_path):
    rubric = read_rubric("question,points,criterion\nwhy,2,names the variance\n")
    policy = Policy(by_hand=ByHand(rubric))
    found = of_class(tmp_path, moodle_names()[:1], policy)
    page = "".join(feedback.files(found).values())
    assert "variance" not in page
    assert "course hint by_hand" not in page
    answer = found["submissions"][0]["exercises"][HELLO]
    sentences = [("is right", True), ("is quick", False), ("was not tried", None)]
    answer["properties"] = [{"sentence": x, "points": 1, "held": y} for x, y in sentences]
    filled = moodle.fill(found, HEAD + "Participant 100,,,6.00,\n").text
    assert "Does not hold yet: is quick.</p><p>Not tried: was not tried." in filled
    assert "variance" not in filled


def test_an_answer_in_words_is_open_until_each_criterion_is_marked():
    rubric = read_rubric("question,points,criterion\nwhy,2,grows\nwhy,1,saturates\n")
    answered = {**entry(), "words": {"why": "It grows."}}
    table, statuses = "student,exercise,criterion,points\n", []
    for more in ("", "ada,by_hand/why,grows,2\n", "ada,by_hand/why,saturates,0\n"):
        table += more
        found = ByHand(rubric, read_marks(table)).exercises("ada", answered)["by_hand/why"]
        statuses.append((found["status"], found["points"]))
    assert statuses == [("to be marked", 0), ("to be marked", 2), ("marked", 2)]


def test_what_is_open_is_no_point_that_the_class_has_lost(tmp_path):
    rubric = read_rubric("question,points,criterion\nwhy,4,grows\n")
    answered = {**entry(), "words": {"why": "It grows."}}
    judged = [(x, answered) for x in collect(pack(tmp_path / "all.zip", moodle_names()))]
    found = results(Rules("plain", 3, [HELLO]), judged, Policy(by_hand=ByHand(rubric)))
    assert {(x["score"], x["max_score"]) for x in found["submissions"]} == {(4, 8)}
    assert statistics.median_share(found) == 1
    assert statistics.distribution(found)[-1] == len(PEOPLE)


# giving back


def moodles_rule(path, participants):
    """Say whose file this is and what it is called, as Moodle's importer reads a path."""
    parts = path.split("/")
    while parts:
        info = parts.pop(0).split("_", 4)
        if len(info) < 4 or not info[1].isdecimal() or int(info[1]) not in participants:
            continue
        if info[2:4] == ["assignsubmission", "file"]:
            return int(info[1]), "/".join([*info[4:], *parts])
    return None


def canvas_rule(path):
    """Say whose file this is, and which of theirs, as Canvas reads a name."""
    return [int(x) for x in Path(path).name.split("_") if x.isascii() and x.isdecimal()][:2]


def test_feedback_goes_back_in_one_zip_under_the_names_that_a_platform_reads(tmp_path):
    own = "Eve_X_207_assignsubmission_file"
    names = [*moodle_names(), f"{own}/one/03.ipynb", f"{own}/two/03.ipynb"]
    names.append("Zoe_208_assignsubmission_file/a.pdf")
    found = of_class(tmp_path, names)
    [(name, content)] = feedback_zip.archives(found).items()
    assert name == "feedback_moodle.zip"
    assert feedback_zip.archives(found) == {name: content}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        read = {x: archive.read(x).decode() for x in archive.namelist()}
    ids = {*range(100, 105), 207, 208}
    owners = [moodles_rule(x, ids) for x in read]
    assert {number for number, _ in owners} == ids
    titles = {title.strip("/") for _, title in owners}
    assert titles == {
        "03.ipynb.html", "feedback.html", "one/03.ipynb.html", "two/03.ipynb.html"
    }  # fmt: skip
    for path, page in read.items():
        assert path.partition("_")[0].split()[0] in page
    [(name, content)] = feedback_zip.archives(of_class(tmp_path, canvas_names(late=[1]))).items()
    assert name == "feedback_canvas.zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        owners = [canvas_rule(x) for x in archive.namelist()]
    assert sorted(owners) == [[100 + i, 900 + i] for i in range(len(PEOPLE))]
    assert feedback_zip.archives(of_class(tmp_path, ["ada/03.ipynb", "bob/03.ipynb"])) == {}


def test_an_appeal_keeps_the_rows_of_the_others(tmp_path):
    before = of_class(tmp_path, moodle_names(), points=1)["submissions"]
    again = collect(pack(tmp_path / "one.zip", moodle_names()[:1]))
    kept = [x for x in before if x["number"] != "100"]
    people = HEAD + "".join(f"Participant {100 + i},,,4,\n" for i in range(5))
    policy = Policy(roster=roster.read(people), kept=kept)
    found = results(Rules("plain", 3), [(again[0], entry(4))], policy)["submissions"]
    assert {x["number"]: x["score"] for x in found} == {"100": 4} | dict.fromkeys(
        ("101", "102", "103", "104"), 1
    )


NAMES = ["101", "Participant 101", "Jürgen Müller_101", "jürgen müller", "j@uni.example"]
NAMES += ["Jürgen Müller (Jürgen Müller_101)", "Jürgen Müller (Participant 101)"]


@pytest.mark.parametrize("name", NAMES)
def test_an_extension_knows_a_student_by_every_name_that_is_printed(tmp_path, name):
    found = collect(pack(tmp_path / "all.zip", moodle_names()))
    people = "identifier,full name,email address\nParticipant 101,Jürgen Müller,j@uni.example\n"
    students = [(x.student, x.number) for x in found]
    more = roster.read(f"id,handed in\n{name},2026-11-25 10:00\n")
    when = Lateness(DUE, extensions=more.fitted(roster.read(people), students))
    assert [x.number for x in found if when.time(x)] == ["101"]


@pytest.mark.parametrize(
    ("ids", "said"),
    [(["Hana"], "Hana is nobody here"), (["Bob K_104", "104"], "104 is there twice")],
)
def test_an_extension_that_is_not_one_students_is_refused(ids, said):
    more = roster.read("\n".join(["id", *ids]))
    with pytest.raises(ValueError, match=said):
        more.fitted(roster.Roster(), [("Bob K_104", "104")])


def test_an_appeal_under_another_name_is_refused_and_says_the_right_one(tmp_path):
    [row] = graded(collect(pack(tmp_path / "all.zip", canvas_names()[:1])))
    people = roster.read("id,name\n100,Ada\n")
    again = [SubmittedFile("100", "100/03.ipynb", tmp_path)]
    with pytest.raises(CommandError, match=f"that it had there, {row['notebook']}"):
        policies.kept_rows({"isolation": "plain", "seed": 1, "submissions": [row]}, again, people)


def test_a_time_is_asked_for_where_the_platform_has_it(tmp_path):
    for names, has, has_not in (
        (canvas_names(), "SpeedGrader", "--moodle"),
        (moodle_names(), "--moodle", "SpeedGrader"),
    ):
        said = policies.who_says_when(collect(pack(tmp_path / "all.zip", names)))
        assert has in said
        assert has_not not in said


def test_a_name_that_another_program_has_written_is_no_change(tmp_path):
    then, now = (of_class(tmp_path, moodle_names()) for _ in range(2))
    for row in now["submissions"]:
        for key in ("student", "notebook"):
            row[key] = unicodedata.normalize("NFD", row[key])
    assert then != now
    assert regrade.changes(then, now) == []


def test_a_change_of_points_alone_is_said_as_one(tmp_path):
    then, now = (of_class(tmp_path, moodle_names()[:1], points=0) for _ in range(2))
    answer = now["submissions"][0]["exercises"][HELLO]
    answer["max_points"], now["submissions"][0]["max_score"] = 5, 5
    [change] = regrade.changes(then, now)
    assert change.sentence().endswith(": 0 of 4 → 0 of 5; start/hello 0 of 4 → 0 of 5")


# the same bytes


def test_a_run_goes_on_only_with_what_judged_the_first_part(tmp_path):
    rules = Rules("plain", 3, versions=versions())
    assert {HELLO, "the course"} <= {*rules.versions}
    journal = Journal(tmp_path)
    journal.begin(rules)
    journal.add("a.ipynb", "0", entry())
    assert journal.begin(rules) == {("a.ipynb", "0"): entry()}
    mended = replace(rules, versions=rules.versions | {HELLO: "0"})
    with pytest.raises(OtherRules, match=r"^seed, strict$"):
        journal.begin(replace(mended, seed=4, strict=True))
    assert (journal.changed(rules), journal.changed(mended)) == ([], [HELLO])
    assert journal.begin(mended) == {}
    assert journal.changed(rules) == []  # nothing is judged yet
