"""Reports of results in which every string is as bad as strangers can make it."""

import copy
import csv
import io
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args, get_type_hints

import jsonschema
import pytest

import course_lib.grading
from course_lib.answers.source import source_of
from course_lib.checking.catalogue import ids, load
from course_lib.checking.likeness import own_answers
from course_lib.checking.looks import code
from course_lib.grading import reports, terminal
from course_lib.grading.gradebooks import canvas, moodle
from course_lib.grading.marks import schema
from course_lib.grading.reports import (
    class_page,
    feedback,
    gradescope_json,
    nbgrader_csv,
    similar,
    spreadsheet,
    summary,
)
from course_lib.grading.reports.shared import statistics
from course_lib.grading.reports.shared.names import names
from course_lib.grading.reports.shared.shapes import fingerprints
from course_lib.grading.reports.shared.shapes import similar as similar_of
from course_lib.grading.reports.shared.table import table
from course_lib.grading.reports.shared.text import clean, one_line

SCHEMA = json.loads(
    (Path(course_lib.grading.__file__).parent / "marks" / "results.schema.json").read_text()
)
KNOWN = "Behaves as if the scores were not divided by `sqrt(d_k)`."
HOSTILE = [
    "<script src='http://evil.example/x.js'>alert(1)</script>",
    "</title></style><h1 onclick=alert(1)>big",
    "x" * 300,
    "\u202eright to left שלום",
    "😀 Zoë",
    "=cmd|' /C calc'!A0",
    "x;=1+1",
    "a\n-2+3",
    " \t@sum",
    "\t",
    "＝1",
    'a,b"c\r\nd',
    "\x1b[31mred\x00\x85",
    "lone \ud800",
    "| pipe | `code` **b** $x$ ![l](http://e.x) @all \\",
    "&amp; &lt; {{ 7 * 7 }} {% raw %} {0}",
    "../../etc/passwd",
    "ADA",
    "",
]


COPIED = """
def attend(queries, keys, values, mask=None):
    # a comment of mine
    sizes = {"width": queries.shape[-1], "length": keys.shape[-2]}
    raw = torch.stack([keys @ one for one in queries.unbind(-2)], dim=-2)
    raw = raw * sizes["width"] ** -0.5 - raw.amax(dim=-1, keepdim=True)
    powers = torch.where(raw.isneginf(), torch.zeros_like(raw), raw.exp())
    return (powers / powers.sum(-1, keepdim=True).clamp(min=1e-9)) @ values
"""
RENAMED = """
import torch, math

def attend(q: Tensor, k, v, m=None) -> Tensor:
    '''Mine alone.'''
    s = {"width": q.shape[-1],
         "length": k.shape[-2]}
    a = torch.stack([k @ x for x in q.unbind(-2)], dim=-2)

    a = a * s["width"] ** -0.5 - a.amax(dim=-1, keepdim=True)
    e = torch.where(a.isneginf(), torch.zeros_like(a), a.exp())
    return (e / e.sum(-1, keepdim=True).clamp(min=1e-9)) @ v
"""


def verdict(status="passed", points=7, message="Every case and every property holds.", **more):
    return {"status": status, "points": points, "max_points": 7, "message": message} | more


def reasons(sentence="every case gives the right `result`", label="got", value="float32 (2,)"):
    """Return the fields of an answer of which one property holds and one does not."""
    return {
        "properties": [
            {"sentence": sentence, "points": 4.5, "held": False},
            {"sentence": "inputs are not modified", "points": 2.5, "held": True},
            {"sentence": "gradients are right", "points": 1, "held": None},
        ],
        "case": {"heading": f"Smallest failing input: {sentence}", "values": {label: value}},
    }


def submission(student="ada", name="03_self_attention.ipynb", **changes):
    plain = {
        "student": student,
        "notebook": f"{student}/{name}",
        "lesson": "03",
        "status": "graded",
        "message": "",
        "late": False,
        "score": 9.5,
        "max_score": 14,
        "exercises": {
            "self_attention/project": verdict(),
            "private/not_installed": verdict("known mistake", 2.5, KNOWN, **reasons()),
        },
    }
    return plain | changes


def not_graded(student, status):
    changes = {"lesson": None, "score": 0, "message": "There is a reason.", "exercises": {}}
    return submission(student, status=status, **changes)


def results_of(*submissions):
    return {"isolation": "bubblewrap", "seed": 7, "submissions": list(submissions)}


@pytest.fixture
def results():
    """A small class, with every status."""
    statuses = statistics.STATUSES
    all_statuses = {f"attention/e{i}": verdict(status) for i, status in enumerate(statuses)}
    return results_of(
        submission("ada"),
        submission("bob", late=True, lateness="Two days late.", score=8.55),
        submission("carl", number="103", exercises=all_statuses),
        not_graded("dora", "missing"),
        not_graded("ernst", "superseded"),
        not_graded("frida", "unreadable"),
    )


@pytest.fixture
def hostile():
    """A class in which every name and every message is hostile."""
    found = []
    for text in HOSTILE:
        why = reasons(text, text, text)
        why["flags"] = [{"cell": 1, "line": 1, "seen": text}]
        why |= {"source": f"{COPIED}\n# {text}", "dispatched": [text], "same_as_library": True}
        exercises = {"self_attention/layer": verdict("known mistake", 1, text, **why)}
        roster = {"name": text, "email": text}
        found.append(submission(text, f"{text}.ipynb", message=text, exercises=exercises) | roster)
        found.append(not_graded(text, "unreadable") | {"message": text})
    return results_of(*found)


def rows_of(text, mark=""):
    assert text.startswith(mark)
    return list(csv.reader(io.StringIO(text.removeprefix(mark), newline=""), strict=True))


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), [], []
        self.feed(page)
        self.close()
        self.text = "".join(self.texts)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.texts.append(data)


def test_the_schema_admits_results(results, hostile):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for good in (results, hostile, results_of()):
        jsonschema.validate(good, SCHEMA)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("isolation",), "docker"),
        (("seed",), 2**31),
        (("seed",), 1.5),
        (("time",), 3),
        (("submissions", 0, "status"), "lost"),
        (("submissions", 0, "status"), "missing"),  # with exercises
        (("submissions", 0, "score"), -1),
        (("submissions", 0, "score"), "9"),
        (("submissions", 0, "late"), 1),
        (("submissions", 0, "lesson"), 3),
        (("submissions", 0, "note"), ""),
        (("submissions", 0, "exercises", "<id>"), verdict()),
        (("submissions", 0, "exercises", "a/b"), verdict("right")),
        (("submissions", 0, "exercises", "a/b"), verdict(hint="")),
        (("submissions", 0, "exercises", "a/b"), verdict(properties=["holds"])),
        (("submissions", 0, "exercises", "a/b"), verdict(case={"heading": ""})),
        (("submissions", 0, "exercises", "a/b"), verdict(flags=[])),
        (("submissions", 0, "exercises", "a/b"), verdict(flags=["`eval`"])),
    ],
)
def test_the_schema_refuses_what_is_none(results, place, value):
    broken = copy.deepcopy(results)
    inner = broken
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


def test_every_field_of_the_schema_is_described():
    def fields(node):
        yield from node.get("properties", {}).items()
        for inner in node.get("$defs", {}).values():
            yield from fields(inner)

    assert all("description" in field for _, field in fields(SCHEMA) if "$ref" not in field)


def test_the_types_have_the_keys_of_the_schema():
    inner = SCHEMA["$defs"]
    for kind, described in (
        (schema.Results, SCHEMA),
        (schema.SubmissionResult, inner["submission"]),
        (schema.ExerciseResult, inner["exercise"]),
        (schema.PropertyResult, inner["property"]),
        (schema.Case, inner["case"]),
        (schema.Flag, inner["flag"]),
    ):
        fields = get_type_hints(kind)
        assert list(described["properties"].keys() ^ fields.keys()) == []
        assert set(described["required"]) == kind.__required_keys__
        for name, field in described["properties"].items():
            if "enum" in field:
                assert sorted(get_args(fields[name])) == sorted(field["enum"])
    of = get_type_hints(schema.Results)["submissions"], SCHEMA["properties"]["submissions"]["items"]
    assert of == (list[schema.SubmissionResult], {"$ref": "#/$defs/submission"})
    of = get_type_hints(schema.Entry)["exercises"], inner["submission"]["properties"]["exercises"]
    assert of[0] == dict[str, schema.ExerciseResult]
    assert of[1]["additionalProperties"] == {"$ref": "#/$defs/exercise"}


def test_no_two_reports_write_the_same_file_and_none_has_the_name_of_an_export(results):
    paths = [name for report in reports.reports() for name in report.files(results)]
    assert len(set(paths)) == len(paths)
    folder = Path(course_lib.grading.__file__).parent
    stems = [{file.stem for file in (folder / x).glob("*.py")} for x in ("reports", "exports")]
    assert stems[0] & stems[1] == {"__init__"}


def test_a_spreadsheet_reads_back_what_went_in(results):
    head, *rows = rows_of(spreadsheet.files(results)["grades.csv"], mark="\ufeff")
    first = dict(zip(head, rows[0], strict=True))
    assert first["score"] == "9.5"
    assert first["private/not_installed"] == "2.5"
    assert [row[0] for row in rows] == [x["student"] for x in results["submissions"]]
    assert [row[4] for row in rows[:2]] == ["no", "yes"]


def test_no_cell_of_a_spreadsheet_is_a_formula(hostile):
    files = spreadsheet.files(hostile) | nbgrader_csv.files(hostile | {"missing": "zero"})
    for name, mark in (("grades.csv", "\ufeff"), ("nbgrader.csv", "")):
        text = files[name]
        rows = rows_of(text, mark)
        assert len(rows) == 1 + 2 * len(HOSTILE)
        # whatever a spreadsheet takes for the end of a cell
        cells = [part for row in rows for cell in row for part in re.split("[;\t\r\n]", cell)]
        assert not [
            cell
            for cell in cells
            if cell.strip(" \"'").startswith(tuple("=+-@＝＋－＠"))
            and not cell.lstrip(' "').startswith("'")
        ]
        assert not [c for row in rows for c in row if c.startswith(("\t", "\r", "\n"))]


def test_harmless_cells_are_left_as_they_are():
    rows = rows_of(table([["Zoë", "a, b", "x - y", "3/4", 'say "a"\nb']]))
    assert rows == [["Zoë", "a, b", "x - y", "3/4", 'say "a"\nb']]


def test_nbgrader_rows_hold_the_penalty_and_no_superseded_notebook(results):
    head, *rows = rows_of(nbgrader_csv.files(results)["nbgrader.csv"])
    by_student = {row[3]: dict(zip(head, row, strict=True)) for row in rows}
    assert list(by_student) == ["ada", "bob", "carl"]
    assert by_student["bob"]["assignment"] == "03_self_attention"
    assert by_student["bob"]["raw_score"] == "9.5"
    assert by_student["bob"]["late_submission_penalty"] == "0.95"
    assert by_student["bob"]["score"] == "8.55"


def test_gradescope_shows_each_exercise_and_takes_the_score_after_the_penalty(results):
    files = gradescope_json.files(results)
    bob = json.loads(files["gradescope/bob-03_self_attention.json"])
    assert bob["score"] == 8.55
    assert bob["stdout_visibility"] == "hidden"
    assert [test["score"] for test in bob["tests"]] == [7, 2.5]
    assert [test["status"] for test in bob["tests"]] == ["passed", "failed"]
    assert {test["visibility"] for test in bob["tests"]} == {"visible"}
    assert KNOWN in bob["tests"][1]["output"]
    assert (
        json.loads(files["gradescope/frida-03_self_attention.json"])["output"]
        == "There is a reason."
    )


def test_each_property_is_a_line_with_its_points_in_feedback_and_for_gradescope(results):
    page = Page(feedback.files(results)["feedback/ada-03_self_attention.html"]).text
    shown = json.loads(gradescope_json.files(results)["gradescope/ada-03_self_attention.json"])
    output = shown["tests"][1]["output"]
    for mark, sentence, points in (
        ("✗", "every case gives the right {}result{}", "4.5 points"),
        ("✓", "inputs are not modified", "2.5 points"),
        ("-", "gradients are right", "1 point, not tried"),
    ):
        assert f"{mark}{sentence.format('', '')}{points}" in page
        assert f"\n{mark} {sentence.format('`', '`')} ({points})" in output
    assert "Smallest failing input: every case gives the right `result`" in page
    assert output.endswith("`result`:\n  got: float32 (2,)")


def test_results_of_earlier_versions_which_have_no_properties_have_every_report(results, tmp_path):
    for submission in results["submissions"]:
        for answer in submission["exercises"].values():
            answer.pop("properties", None)
            answer.pop("case", None)
    jsonschema.validate(results, SCHEMA)
    reports.write(results, tmp_path)
    assert (tmp_path / "class.html").exists()


def test_a_markdown_row_stays_one_row_and_shows_what_it_holds(hostile):
    text = summary.files(hostile)["summary.md"]
    tables = [line for line in text.splitlines() if line.startswith("|")]
    ends = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in tables]
    assert set(ends) <= {4, 5}
    assert not re.search(r"<(?!br)", text)
    for sign in ("`", "*b", "$x", "[l", "://", "@all"):
        assert not re.search(r"(?<!\\)" + re.escape(sign), text)
    assert sum("cmd" in line for line in tables) == 2  # as a mistake, and as not graded


def test_the_summary_counts(results):
    text = summary.files(results)["summary.md"]
    assert "3 of 6 notebooks graded, with a median of 68% of the points." in text
    assert "| 2 | private/not\\_installed | Behaves as if" in text
    # what nobody has marked yet is no point that carl has lost
    assert "| 60 to 70% | 2 | █" in text
    assert "| frida | frida/03\\_self\\_attention.ipynb | unreadable | There is a reason. |" in text


def test_the_hardest_exercise_comes_first_and_so_does_the_commonest_mistake():
    one, both = verdict("known mistake", 1, "A."), verdict("known mistake", 5, "B.")
    results = results_of(
        submission("ada", score=14, exercises={"a/easy": verdict(), "a/hard": both, "b/c": one}),
        submission("bob", score=0, exercises={"a/easy": verdict(), "a/hard": both, "b/c": one}),
        submission("eve", exercises={"a/easy": verdict(), "a/hard": both, "b/c": verdict()}),
    )
    assert [x.exercise_id for x in statistics.exercises(results)] == ["a/hard", "b/c", "a/easy"]
    mistakes = statistics.known_mistakes(results)
    found = [(x.exercise_id, x.message, len(x.submissions)) for x in mistakes]
    assert found == [("a/hard", "B.", 3), ("b/c", "A.", 2)]
    assert statistics.distribution(results) == [1, 0, 0, 0, 0, 0, 1, 0, 0, 1]


def test_what_a_terminal_or_a_page_obeys_is_replaced():
    assert clean("a\x00\x1b[2J\x7f\x85\x9b\ud800\ufffe\tb\n") == "a�" + "�[2J" + "�" * 5 + "\tb\n"


ELEMENTS = (
    "html head meta title style body h1 h2 p div span b i bdi code article header footer a "
    "table thead tbody tr th td ul ol li details summary wbr h3 h4"
).split()
ATTRIBUTES = "lang charset name content class style href title aria-hidden".split()


def test_hostile_strings_are_text_in_a_page(hostile):
    pages = [
        *similar.files(hostile).values(),
        *feedback.files(hostile).values(),
        *class_page.files(hostile).values(),
    ]
    for page in pages:
        read = Page(page)
        assert read.tags <= set(ELEMENTS)
        assert {name for name, _ in read.attributes} <= set(ATTRIBUTES)
        for name, value in read.attributes:
            if name == "href":
                assert re.fullmatch(r"(feedback/[\w-]+|similar)\.html", value, re.ASCII)
        style = page[: page.index("</style>")]
        assert not re.search(r"url\(|@import|http", style.split("<style>")[1])
    text = Page(pages[-1]).text
    for string in HOSTILE:
        assert clean(string).replace("\r\n", "\n") in text.replace("\r\n", "\n")


def test_a_feedback_page_says_what_to_do_next(results):
    pages = feedback.files(results)
    ada, bob = (
        Page(pages[f"feedback/{name}-03_self_attention.html"]).text for name in ("ada", "bob")
    )
    assert "One token, three roles" in ada  # the exercise's title
    assert "course hint private/not_installed" in ada
    assert "course hint self_attention/project" not in ada  # it passed
    assert "Two days late. 9.5 points less 0.95 are 8.55." in bob
    assert "There is a reason." in pages["feedback/frida-03_self_attention.html"]


def test_a_feedback_page_says_the_grade_as_the_gradebook_does_once_that_is_written(results):
    open_marks = results | {"gradebooks": {"Moodle": 7}}
    assert "In Moodle" not in "".join(feedback.files(open_marks).values())
    graded = results_of(*results["submissions"][:2]) | {"gradebooks": {"Moodle": 7, "Canvas": 14}}
    jsonschema.validate(graded, SCHEMA)
    pages = feedback.files(graded)
    assert "In Moodle this is 4.28 of 7." in pages["feedback/bob-03_self_attention.html"]
    assert "In Canvas" not in "".join(pages.values())


def test_the_terminal_counts_what_a_person_is_to_read(capsys, tmp_path):
    answers = {
        "self_attention/project": verdict("forbidden", 0),
        "self_attention/layer": verdict(flags=[FLAG], same_as_library=True, source=COPIED),
    }
    words = {"why": "Because.", "how": ""}
    eve, mia = (submission(x, exercises=answers, words=words) for x in ("eve", "mia"))
    terminal.say_what_to_look_at(results_of(eve, mia), tmp_path)
    said = capsys.readouterr().out
    assert "2 answers with a forbidden call" in said
    assert "eve: self_attention/project\n" in said
    assert f"2 answers flagged, to be read: {tmp_path / 'class.html'}" in said
    assert f"1 pair of students with similar answers: {tmp_path / 'similar.html'}" in said
    assert f"2 answers equal to the library's own: {tmp_path / 'similar.html'}" in said
    assert "why (2 answers), how (0 answers)" in said
    terminal.say_what_to_look_at(results_of(submission()), tmp_path)
    assert capsys.readouterr().out == ""


def test_names_stand_beside_ids_wherever_a_person_reads(results):
    results["submissions"][0] |= {"name": "Ada Lovelace", "email": "ada@example.edu"}
    results["submissions"][3] |= {"name": "Dora"}
    for text in (
        class_page.files(results)["class.html"],
        feedback.files(results)["feedback/ada-03_self_attention.html"],
    ):
        assert "Ada Lovelace (ada)" in text
    assert "Dora (dora)" in summary.files(results)["summary.md"]
    assert ",Ada Lovelace," in spreadsheet.files(results)["grades.csv"]
    assert ",ada@example.edu," in nbgrader_csv.files(results)["nbgrader.csv"]


def test_a_mistake_unfolds_to_who_made_it_in_their_own_lines(results):
    answer = results["submissions"][0]["exercises"]["private/not_installed"]
    answer["source"] = "import torch\n\ndef f(x):\n    'Say.'\n    return x < b +"
    page = class_page.files(results)["class.html"]
    assert '<code class="lines">import torch\ndef f(x):' in page  # it is no Python: all of it
    answer["source"] += " 5"
    page = class_page.files(results)["class.html"]
    assert '<code class="lines">def f(x):\n    return x &lt; b + 5</code>' in page
    assert "<bdi>ada</bdi>, <bdi>bob</bdi>: their own lines" in page


def of_sources(exercise, *sources):
    answers = [{exercise: verdict("passed", 7, "", source=source)} for source in sources]
    return results_of(*(submission(f"s{i}", exercises=x) for i, x in enumerate(answers)))


def test_a_copy_is_found_under_other_names_comments_types_and_layout():
    other = "def attend(q, k, v, mask=None):\n    return torch.stack([x for x in q]) @ k"
    found = similar_of(of_sources("private/x", other, COPIED, RENAMED))
    assert list(found) == [(1, 2)]
    (answer,) = found[1, 2]
    assert answer.share == 1
    assert answer.sides[0].lines >= {2, 4, 5, 6, 7, 8}
    assert not answer.sides[1].lines & {1, 2, 5, 9}
    page = similar.files(of_sources("private/x", other, COPIED, RENAMED))["similar.html"]
    assert "<bdi>s1</bdi> and <bdi>s2</bdi>" in page


def test_no_two_answers_are_similar_by_what_the_library_or_a_fifth_of_the_class_has():
    for exercise_id in ("attention/softmax", "self_attention/scaled_dot_product"):
        source = source_of(load(exercise_id).reference)
        assert not similar_of(of_sources(exercise_id, source, source))
    assert similar_of(of_sources("private/x", *[COPIED] * 5))
    assert not similar_of(of_sources("private/x", *[COPIED] * 6))


def test_the_library_answers_are_read_from_their_files_as_they_are():
    for exercise_id in ids():
        exercise = load(exercise_id)
        read = {x for source in own_answers(exercise_id) for x in fingerprints(source)}
        answers = (exercise.reference, *exercise.alternatives)
        assert read == {x for answer in answers for x in fingerprints(source_of(answer))}


def test_grades_are_written_without_torch_and_a_grade_loads_no_option_that_it_has_not(tmp_path):
    graded = of_sources("self_attention/layer", COPIED, COPIED, RENAMED)
    code = """
import json, sys
from pathlib import Path
sys.modules["torch"] = None
from course_lib.grading import reports, terminal
loaded = {name.rpartition(".")[2] for name in sys.modules if name.startswith("course_lib.")}
assert not loaded & {"by_api", "canvas", "cluster", "mended", "moodle", "regrade"}, loaded
reports.write(json.load(sys.stdin), Path(sys.argv[1]))
"""
    words = [sys.executable, "-c", code, tmp_path]
    subprocess.run(words, input=json.dumps(graded), text=True, check=True)
    assert (tmp_path / "similar.html").exists()


def test_no_source_stops_the_search_for_similar_answers():
    bad = ["(" * 5000, "x = " + "-" * 20_000 + "1", "\0", "def", "x." * 5000 + "y", "\ud800", ""]
    assert not similar_of(of_sources("private/x", *[x for x in bad for _ in range(2)]))


def test_students_are_shown_nothing_of_similar_answers():
    given = of_sources("private/x", COPIED, RENAMED)
    given["submissions"][0]["exercises"]["private/x"] |= {
        "same_as_library": True, "dispatched": ["aten._softmax"]
    }  # fmt: skip
    page = similar.files(given)["similar.html"]
    assert "Equal to the library" in page
    assert "aten._softmax" in page
    for path, text in {**feedback.files(given), **gradescope_json.files(given)}.items():
        assert not re.search("similar|library|aten|s1" if "s0" in path else "similar|s0", text)


def test_the_class_page_counts_known_mistakes_and_links_to_every_page(results):
    page = class_page.files(results)["class.html"]
    read = Page(page)
    links = {value for name, value in read.attributes if name == "href"}
    assert links == set(feedback.files(results)) | {"similar.html"}
    assert "What to say again on Monday" in read.text
    assert f"2×{KNOWN.replace('`', '')}" in read.text


def test_a_class_without_results_has_every_report(tmp_path):
    reports.write(results_of(), tmp_path)
    nothing = not_graded("dora", "missing") | {"max_score": 0}
    reports.write(results_of(nothing, submission(score=0, max_score=0, exercises={})), tmp_path)
    assert (tmp_path / "class.html").exists()


CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Quiz (11),Lesson 03 (12),Final Score\r\n"
    ",,,,,Manual Posting,,\r\n"
    "    Points Possible,,,,,5,14.00,(read only)\r\n"
    '"Lovelace, Ada",101,S1,ada,"a ""b""",3,,21\r\n'
    "Bob,102,S2,b2,,4,1\r\n"
    "Grace,103,S3,grace,,,,\r\n"
)


def test_canvas_gets_the_scores_and_keeps_every_other_byte(results):
    results["submissions"][0]["student"] = "ada"
    results["submissions"][1]["student"] = "102"
    filled = canvas.fill(results, CANVAS, "Lesson 03")
    expected = CANVAS.replace("3,,21", "3,9.5,21").replace("4,1\r", "4,8.55\r")
    expected = expected.replace("grace,,,,", "grace,,,9.5,")
    assert filled.text == expected
    assert filled.rows_without_grade == []
    assert filled.remarks == ["Late penalties are taken off: let Canvas take off no others."]
    assert canvas.fill(results, CANVAS, "Lesson 03 (12)") == filled


def test_a_template_without_matches_keeps_its_bytes():
    for template in (CANVAS, CANVAS.replace("\r\n", "\n").rstrip("\n"), CANVAS + "\r\n"):
        assert canvas.fill(results_of(), template, "Quiz").text == template


def test_nobodys_grade_is_guessed():
    for students in (("ada", "Lovelace, Ada"), ("S1", "101")):
        filled = canvas.fill(results_of(*map(submission, students)), CANVAS, "Lesson 03")
        assert filled.text == CANVAS
        assert len(filled.remarks) == 2
    nameless = CANVAS.replace(",S3,grace", ",,")
    assert canvas.fill(results_of(submission("")), nameless, "Lesson 03").text == nameless
    twice = CANVAS + "Bob,104,S4,b4,,,\r\n"
    filled = canvas.fill(results_of(submission("Bob")), twice, "Lesson 03")
    assert filled.text == twice
    assert filled.remarks == ["Bob fits 2 rows: none was filled."]


def test_a_number_counts_where_a_platform_gave_it_and_in_no_name():
    for given in (submission("x_101"), submission("x_101", number="999")):
        filled = canvas.fill(results_of(given), CANVAS.replace(",S1,", ",999,"), "Lesson 03")
        assert filled.students_without_row == ["x_101"]
    given = results_of(submission("lovelaceada_101", number="101"))
    assert "3,9.5,21" in canvas.fill(given, CANVAS, "Lesson 03").text


FLAG = {"cell": 3, "line": 7, "seen": "`os.sep` reaches any function"}


def test_what_is_flagged_is_seen_by_the_instructor_and_by_no_student():
    given = results_of(submission("eve", exercises={"a/b": verdict(flags=[FLAG])}))
    jsonschema.validate(given, SCHEMA)
    page = class_page.files(given)["class.html"]
    row = spreadsheet.files(given)["grades.csv"]
    assert "<code>os.sep</code> reaches any function" in page
    assert "a/b, cell 3, line 7: `os.sep` reaches any function" in row
    for told in (*feedback.files(given).values(), *gradescope_json.files(given).values()):
        assert "os.sep" not in told


def test_scores_are_scaled_to_the_points_of_the_gradebook_and_it_is_said():
    ada = results_of(submission("ada", score=7))
    filled = canvas.fill(ada, CANVAS, "Quiz")
    assert "2.5,,21" in filled.text
    assert filled.remarks == ["Scaled: 14 points of these results are 5 in Canvas."]
    filled = canvas.fill(ada, CANVAS, "Quiz", scale=100)
    assert "50,,21" in filled.text
    assert filled.remarks == [
        "Canvas has 5 points for this assignment, and --scale says 100.",
        "Scaled: 14 points of these results are 100 in Canvas.",
    ]
    for written in ("100.00", '"100,00"'):
        worksheet = MOODLE.replace("14.00", written)
        filled = moodle.fill(results_of(submission("Ada, L", score=7)), worksheet)
        assert filled.remarks == ["Scaled: 14 points of these results are 100 in Moodle."]
        assert rows_of(filled.text)[1][4] == "50"


def test_who_handed_in_one_of_two_lessons_is_not_scaled_to_all_points():
    one, other = submission("ada", score=14), submission("ada", "02.ipynb", lesson="02", score=14)
    filled = canvas.fill(results_of(one, other, submission("b2", score=14)), CANVAS, "Quiz")
    assert "5,,21" in filled.text
    assert "b2,,2.5,1" in filled.text


def test_what_lateness_cost_is_said_in_the_gradebook():
    late = submission("Ada, L", late=True, score=8.55)
    feedback = rows_of(moodle.fill(results_of(late), MOODLE).text)[1][8]
    assert "<p>Handed in late: 9.5 less 0.95 is 8.55 of 14 points.</p>" in feedback
    scaled = rows_of(moodle.fill(results_of(late), MOODLE, scale=28).text)[1][8]
    assert "8.55 of 14 points; here that is 17.1 of 28.</p>" in scaled
    assert "<p>Does not hold yet: every case gives the right `result`.</p>" in feedback
    assert canvas.fill(
        results_of(submission("ada", late=True, score=8.55)), CANVAS, "Lesson 03"
    ).remarks == ["Late penalties are taken off: let Canvas take off no others."]


MOODLE = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (grade),Feedback comments\n"
    'Participant 7001,"Ada, L",ada@example.edu,SubmittedFile,,14.00,Yes,"Monday, 1 June",\n'
    "Participant 7002,Bob,bob@example.edu,SubmittedFile,,14.00,Yes,-,\n"
    "Participant 7003,Grace,grace@example.edu,-,,14.00,Yes,-,\n"
)


@pytest.mark.parametrize("key", ["7001", "Participant 7001", "Ada, L", "ada@example.edu"])
def test_moodle_gets_grades_and_messages(key):
    mistake = {"private/x": verdict("wrong", 2, '<b>"a", b</b>\nc')}
    given = results_of(submission(key, exercises=mistake), submission("zoe\x1b"))
    filled = moodle.fill(given, MOODLE)
    before, after = rows_of(MOODLE), rows_of(filled.text)
    assert after[1][4] == "9.5"
    feedback = "&lt;b&gt;&quot;a&quot;, b&lt;/b&gt; c"
    assert after[1][8] == f"<p>private/x: wrong, 2 of 7 points. {feedback}</p>"
    after[1][4] = after[1][8] = ""
    assert after == before
    assert filled.text.splitlines()[2:] == MOODLE.splitlines()[2:]
    assert filled.students_without_row == [one_line("zoe\x1b")]
    assert filled.rows_without_grade == ["Bob (Participant 7002)", "Grace (Participant 7003)"]
    assert filled.remarks == []


@pytest.mark.parametrize(
    ("fill", "template", "sentence"),
    [
        (lambda text: canvas.fill(results_of(), text, "Quiz"), "", "needs the columns Student"),
        (lambda text: canvas.fill(results_of(), text, "Quiz"), "\ufeff", "needs the columns"),
        (lambda text: canvas.fill(results_of(), text, "Quiz"), MOODLE, "no gradebook of Canvas"),
        (lambda text: canvas.fill(results_of(), text, "Quizz"), CANVAS, "Quiz \\(11\\), Lesson"),
        (lambda text: canvas.fill(results_of(), text, "ID"), CANVAS, "no column 'ID'"),
        (lambda text: moodle.fill(results_of(), text), CANVAS, "no grading worksheet of Moodle"),
        (lambda text: moodle.fill(results_of(), text), 'Identifier,Grade\n"a', "line 2"),
    ],
)
def test_a_template_that_is_none_is_refused_in_one_sentence(fill, template, sentence):
    with pytest.raises(ValueError, match=sentence):
        fill(template)


def test_several_lessons_of_a_student_add_up():
    both = results_of(submission("ada"), submission("ada", "02.ipynb", lesson="02", score=4))
    assert "3,13.5,21" in canvas.fill(both, CANVAS, "Lesson 03", scale=28).text


def test_file_names_are_safe_and_no_others(hostile):
    hostile["submissions"] += [
        submission("eve"),
        submission("eve-03_self", "attention.ipynb"),
        submission("a", "b-c.ipynb"),
        submission("a-b", "c.ipynb"),
        submission("A-b", "c.ipynb"),
    ]
    found = names(hostile)
    assert len({name.lower() for name in found}) == len(found)
    for name in found:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,89}", name, re.ASCII)
    assert found[-5] == "eve-03_self_attention"
    # the name of a file is not for others to take
    thief = submission("x", f"{found[0].removeprefix('x-')}.ipynb")
    assert len(set(names(results_of(*hostile["submissions"], thief)))) == len(found) + 1


def test_the_same_results_give_the_same_bytes(results, hostile, tmp_path):
    everything = results_of(*results["submissions"], *hostile["submissions"])
    given = copy.deepcopy(everything)
    for folder in ("one", "two"):
        reports.write(given, tmp_path / folder)
    assert given == everything
    one, two = (
        {x.relative_to(tmp_path / f): x.read_bytes() for x in (tmp_path / f).rglob("*.*")}
        for f in ("one", "two")
    )
    assert one == two
    assert len(one) == 5 + 2 * len(everything["submissions"])


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("those that want *it*, and `*x*`", "those that want <em>it</em>, and <code>*x*</code>"),
        ("2 * names * 3, a*b*c, **bold**", "2 * names * 3, a*b*c, **bold**"),
        ("*<b>* and `", "*&lt;b&gt;* and `"),
        ("*<b>*", "<em>&lt;b&gt;</em>"),
    ],
)
def test_backquotes_are_code_and_stars_are_emphasis(written, shown):
    assert code(written) == shown
