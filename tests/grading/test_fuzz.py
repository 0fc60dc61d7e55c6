"""Whatever strangers hand in or reply, no run stops, no bound is passed, and no neighbour changes.

Hypothesis makes the inputs. The suite tries a few of each kind, always the same ones; the long run
is `python -m tests.fuzz`. What a long run found stays here as an `@example`, or as a test of its
own beside the module.
"""

import contextlib
import io
import json
import os
import resource
import shutil
import tempfile
import time
import warnings
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from course_lib.answers import messages
from course_lib.answers.answer import Description, Error, Foreign, InProcess, Reply, checked
from course_lib.answers.process import KINDS
from course_lib.checking.catalogue import load
from course_lib.grading import reports
from course_lib.grading.gradebooks import canvas, moodle
from course_lib.grading.gradebooks.template import Template
from course_lib.grading.judging import judge as judging
from course_lib.grading.judging.judge import Judge
from course_lib.grading.judging.rules import Rules
from course_lib.grading.marks import entries
from course_lib.grading.marks.entries import LONGEST_MESSAGE, unreadable
from course_lib.grading.marks.grades import Policy, as_json, results
from course_lib.grading.submissions.files import (
    NotSubmissions,
    SubmittedFile,
    Unreadable,
    collect,
)
from course_lib.grading.submissions.journal import Journal, OtherRules
from course_lib.grading.submissions.lateness import Lateness, Penalty
from course_lib.grading.submissions.times import parse_time

settings.register_profile(
    "suite", max_examples=25, derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
settings.register_profile(
    "long", settings.get_profile("suite"), derandomize=False,
    max_examples=int(os.environ.get("COURSE_FUZZ_EXAMPLES", "1")),
)  # fmt: skip
settings.load_profile("long" if "COURSE_FUZZ_EXAMPLES" in os.environ else "suite")

SECONDS, MEMORY = 20, 2**29  # of computing, and beyond what was taken before, for one input
RULES = Rules("plain", 3)


@contextlib.contextmanager
def bounded():
    """Hold one input to its bounds."""
    started, most = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - started < SECONDS
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most
    assert taken * 1024 < MEMORY


# ---- what is made ----

WORDS = st.one_of(
    st.sampled_from(
        [
            "", ".", "..", "/", "a/..", "../../etc/passwd", "a" * 300, "x\0y", "\x1b[2J", "a\nb",
            "=1+1", "<b>", "{{ 1 }}", "\u202e", "\ud800", "ada", "ada_12_345_x.ipynb", "LATE",
            "timestamp.txt", "Ada L_12_assignsubmission_file_x.ipynb", "mallory/00/x.ipynb",
            "00.ipynb", ".ipynb", "x.zip",
        ]
    ),
    st.text(max_size=20),
)  # fmt: skip
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([2**63, 10**400, -1, 1e308]))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=12,
)
CODE = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "import torch", "from torch import *", "import a.b as c", "from . import x",
                "def softmax(scores, mask=None):", "    return scores",
                "    raise NotImplementedError", "class softmax:", "    def forward(self): pass",
                "@softmax", "@property", "async def softmax(x): await x",
                "softmax = mine('attention/softmax')",
                "dot_scores, softmax = mine('a'), mine('b')",
                "def dot_scores(q, k): return q @ k.mT", "softmax = lambda x: x", "if x:",
                "    def softmax(): pass", "x: int = {1: [2]}", "x = y",
                "try: pass\nexcept: pass", "%%time", "%matplotlib inline", "!ls", "x = !ls", "?x",
                "%%bash", "(" * 300, "[" * 100 + "]" * 100, "-" * 3000 + "1", "'" * 3, "\\", "\f",
                "\0", "\ud800", "\u202e", "\r", "é = 1", "x = '\\ud800'", "0" * 5000,
                "x = " + "1 + " * 3000 + "1", "match x:\n    case _: pass", "lambda: (yield)",
                "def softmax(softmax=softmax): softmax", "del softmax", "global softmax",
                "return", "f'{x!r:{y}}'", "type X = int", "import softmax",
            ]
        ),
        st.text(max_size=12),
    ),
    max_size=8,
).map("\n".join)  # fmt: skip


def notebook(cells, metadata=None):
    listed = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]
    metadata = metadata or {"course": {"lesson": "02"}}
    return {"cells": listed, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


HONEST = notebook(
    [
        "import torch\nfrom course_lib.exercises import check, mine",
        "def dot_scores(q, k):\n    return q @ k.mT",
        "def softmax(scores, mask=None):\n    return scores.exp()",
    ]
)
HONEST_BYTES = json.dumps(HONEST).encode()


@st.composite
def edited(draw, whole):
    """Cut, put, turn and repeat bytes of something."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        kind = draw(st.sampled_from(["cut", "put", "turn", "repeat"]))
        if kind == "cut":
            del data[start:end]
        elif kind == "put":
            data[start:start] = draw(
                st.binary(max_size=8) | st.sampled_from([b"[" * 5000, b"\xff"])
            )
        elif kind == "turn" and start < len(data):
            data[start] ^= draw(st.integers(1, 255))
        else:
            data[start:end] *= draw(st.integers(2, 200))
    return bytes(data)


@st.composite
def notebooks(draw):
    """Replace, take out and add parts of a notebook."""
    whole = json.loads(HONEST_BYTES)
    for _ in range(draw(st.integers(1, 5))):
        node = whole
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(node[key], dict | list) or draw(st.booleans()):
                value = st.sampled_from(["00", "02", "12", "attention/softmax"]) | CODE | JSON
                node[key] = draw(value | CODE.map(lambda text: text.splitlines(keepends=True)))
                break
            node = node[key]
        if isinstance(whole.get("cells"), list) and draw(st.booleans()):
            source = draw(CODE | JSON)
            whole["cells"].append({"cell_type": "code", "source": source, "metadata": draw(JSON)})
    return json.dumps(whole).encode()


# ---- notebooks ----


class Mute:
    """Stands for a sandbox whose answers all fail, and are never executed."""

    replies = iter(())

    def __init__(self, *arguments):
        self.executed = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def hold(self, source, name, others=()):
        assert isinstance(compile(source, "answer", "exec", dont_inherit=True), object)

    def clear(self):
        pass

    def describe(self):
        return Description("function")

    def run(self, request):
        return next(self.replies, Reply(error=Error("ValueError", "no")))


@pytest.fixture(scope="module")
def judge():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "Sandbox", Mute)
        with Judge(RULES) as judge:
            yield judge


@pytest.fixture(scope="module")
def neighbour(judge):
    return json.dumps(judge.entry(HONEST_BYTES))


def costs_its_own_row_alone(judge, neighbour, content):
    with bounded():
        entry = judge.entry(content)
    assert entry["status"] in ("graded", "unreadable")
    for said in (entry["message"], *(x["message"] for x in entry["exercises"].values())):
        assert len(said) <= LONGEST_MESSAGE
        assert said.isprintable()
    assert json.dumps(judge.entry(HONEST_BYTES)) == neighbour


@given(content=st.binary(max_size=200) | edited(HONEST_BYTES))
def test_bytes_of_a_notebook(judge, neighbour, content):
    costs_its_own_row_alone(judge, neighbour, content)


@given(content=notebooks())
def test_the_structure_of_a_notebook(judge, neighbour, content):
    costs_its_own_row_alone(judge, neighbour, content)


# ---- what is handed in ----

FILE_NAMES = WORDS.map(lambda x: x.replace("\0", "").encode("utf8", "replace").decode()[:200])
DATES = st.tuples(st.integers(1980, 2107), *(st.integers(0, most) for most in (15, 31, 31, 63, 59)))


def read_all(path):
    """Collect what is there and read it: each row is a content or one sentence."""
    found = {}
    for one in collect(path):
        try:
            content = one.content() if one.notebook and not one.problem else b""
        except Unreadable as error:
            content = str(error)
        assert one.time is None or one.time.tzinfo
        found[one.student, one.notebook] = one.problem or content
    return found


@given(entries=st.lists(st.tuples(FILE_NAMES, st.binary(max_size=30), DATES), max_size=5))
def test_entries_of_a_zip_file(tmp_path_factory, entries):
    path = tmp_path_factory.getbasetemp() / "fuzzed.zip"
    own = {("ada", "ada.ipynb"): b"1", ("zoe", "zoe/00.ipynb"): b"2"}
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one name may come twice
        archive.writestr("ada.ipynb", b"1")
        for name, content, date in entries:
            if name not in ("ada.ipynb", "zoe/00.ipynb"):
                # a student chooses what is below the own folder, and a learning platform the date
                archive.writestr(zipfile.ZipInfo(f"mallory/{name}", date), content)
                if not name.startswith(("ada", "zoe")):
                    archive.writestr(zipfile.ZipInfo(name, date), content)
        archive.writestr("zoe/00.ipynb", b"2")
    with bounded():
        found = read_all(path)
    assert {key: found[key] for key in own} == own


def zipped():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("ada.ipynb", "bob_12_345_x.ipynb", "carl/00.ipynb"):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), HONEST_BYTES)
    return packed.getvalue()


@given(content=edited(zipped()) | st.binary(max_size=100))
def test_bytes_of_a_zip_file(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "damaged.zip"
    path.write_bytes(content)
    with bounded(), contextlib.suppress(NotSubmissions):
        read_all(path)


STAMPS = st.one_of(
    st.binary(max_size=60),
    WORDS.map(lambda x: x.encode("utf8", "replace")),
    st.datetimes(timezones=st.none() | st.timezones()).map(lambda x: str(x).encode()),
    st.datetimes().map(lambda x: f"{x} UTC".encode()),
)
KINDS_OF_FILE = st.sampled_from(["file", "folder", "link", "pipe", "device"])


@given(
    # a name that comes twice would have this test write into the pipe that it has made
    files=st.lists(
        st.tuples(FILE_NAMES.map(lambda x: x.replace("/", "_")), KINDS_OF_FILE, STAMPS),
        max_size=4,
        unique_by=lambda x: x[0],
    ),
    stamp=STAMPS,
    age=st.integers(-(2**40), 2**40),
)
def test_files_and_stamps_of_one_student(tmp_path_factory, files, stamp, age):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        root = Path(folder, "submitted")
        for student in ("ada", "mallory", "zoe"):
            (root / student / "00").mkdir(parents=True)
            (root / student / "00" / "00.ipynb").write_bytes(HONEST_BYTES)
        own = root / "mallory" / "00"
        for name, kind, content in files:
            path = own / name
            with contextlib.suppress(OSError, ValueError):
                match kind:
                    case "file":
                        path.write_bytes(content)
                    case "folder":
                        path.mkdir()
                    case "link":
                        path.symlink_to("../../zoe")
                    case "pipe":
                        os.mkfifo(path)
                    case "device":
                        path.symlink_to("/dev/zero")
        if not os.path.lexists(own / "timestamp.txt"):
            (own / "timestamp.txt").write_bytes(stamp)
        with contextlib.suppress(OSError, OverflowError):
            os.utime(own / "00.ipynb", (age, age))
        with bounded():
            found = read_all(Path(folder))
            submitted = collect(Path(folder))
        for student in ("ada", "zoe"):
            assert found[student, f"{student}/00/00.ipynb"] == HONEST_BYTES
        assert {one.student for one in submitted} == {"ada", "mallory", "zoe"}
        lateness = Lateness(datetime(2026, 1, 1, tzinfo=UTC), Penalty(20))
        assert all(lateness.percent(one) in (None, 20) for one in submitted)


@given(text=WORDS | st.datetimes(timezones=st.none() | st.timezones()).map(str) | st.text())
def test_times(text):
    with contextlib.suppress(ValueError):
        assert parse_time(text).tzinfo is UTC


# ---- results ----

NAMES = WORDS | st.text(max_size=40)
VERDICTS = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["passed", "known mistake", "wrong", "error", "forbidden"]),
        "points": st.integers(0, 7),
        "max_points": st.just(7),
        "message": NAMES.map(entries.plain),
    }
)
ENTRIES = st.one_of(
    st.builds(unreadable, NAMES),
    st.fixed_dictionaries(
        {
            "lesson": st.sampled_from(["02", "03"]),
            "status": st.just("graded"),
            "message": NAMES.map(entries.plain),
            "exercises": st.dictionaries(
                st.sampled_from(["attention/softmax", "private/none"]), VERDICTS, min_size=1
            ),
        }
    ),
)
SUBMITTED = st.builds(
    SubmittedFile,
    student=NAMES,
    notebook=NAMES,
    root=st.just(Path()),
    time=st.none() | st.datetimes(timezones=st.just(UTC)),
    late=st.booleans(),
)
JUDGED = st.lists(
    st.tuples(SUBMITTED, ENTRIES), max_size=5, unique_by=lambda x: (x[0].student, x[0].notebook)
)
POLICY = Policy(Lateness(datetime(2026, 1, 1, tzinfo=UTC), Penalty(20)))


@given(judged=JUDGED)
def test_results_and_reports(tmp_path_factory, judged):
    folder = tmp_path_factory.getbasetemp() / "reports"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with bounded():
        graded = results(RULES, judged, POLICY)
        assert json.loads(as_json(graded).encode())["seed"] == RULES.seed
        reports.write(graded, folder)
    for path in folder.rglob("*.json"):
        json.loads(path.read_bytes())


TABLE = st.text(st.sampled_from([*',;\t"\r\n', "\ufeff", *"Aab1 é", "\0", "'"]), max_size=40)
CANVAS = "Student,ID,SIS Login ID,Section,Start (77)\nPoints Possible,,,,10\nAda,12,ada,,\n"
MOODLE = "Identifier,Full name,Grade,Maximum Grade,Feedback comments\nParticipant 12,Ada,,10,\n"


@given(text=TABLE | edited(CANVAS.encode()).map(lambda x: x.decode("utf8", "replace")))
@example(text="\ufeff")  # IndexError
def test_a_table_that_can_be_read_keeps_its_bytes(text):
    with bounded(), contextlib.suppress(ValueError):
        assert Template(text).text() == text


@given(
    head=edited(CANVAS.encode()) | edited(MOODLE.encode()) | st.just(CANVAS.encode()),
    rows=TABLE,
    judged=JUDGED,
)
def test_gradebooks(head, rows, judged):
    template = head.decode("utf8", "replace") + rows
    graded = results(RULES, judged, POLICY)
    for fill in (
        lambda: canvas.fill(graded, template, "Start"),
        lambda: moodle.fill(graded, template),
    ):
        with bounded(), contextlib.suppress(ValueError):
            filled = fill()
            assert len(Template(filled.text).rows) == len(Template(template).rows)


def journal():
    with tempfile.TemporaryDirectory() as folder:
        kept = Journal(Path(folder))
        kept.begin(RULES)
        for name in ("ada", "bob"):
            kept.add(f"{name}.ipynb", "0" * 64, unreadable("no"))
        return (Path(folder) / "unfinished.jsonl").read_bytes()


@given(content=edited(journal()) | JSON.map(lambda x: journal() + json.dumps(x).encode() + b"\n"))
def test_a_journal(tmp_path_factory, content):
    folder = tmp_path_factory.getbasetemp()
    (folder / "unfinished.jsonl").write_bytes(content)
    with bounded(), contextlib.suppress(OtherRules):
        known = Journal(folder).begin(RULES)
        judged = [(SubmittedFile(x, x, folder), entry) for (x, _), entry in known.items()]
        as_json(results(RULES, judged, POLICY)).encode()


# ---- the wire ----

TENSORS = st.builds(
    lambda shape, dtype, meta: torch.zeros(shape, dtype=dtype, device="meta" if meta else "cpu"),
    st.lists(st.integers(0, 4), max_size=4),
    st.sampled_from(list(messages.DTYPES.values())),
    st.booleans(),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), WORDS, TENSORS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(WORDS, inner, max_size=3),
        st.builds(Foreign, inner),
        st.builds(Error, inner, inner, inner, inner, inner),
        st.builds(Reply, inner, inner, inner, inner, inner, inner),
    ),
    max_leaves=8,
)
REPLIES = st.builds(
    Reply,
    output=VALUES,
    inputs=st.lists(VALUES, max_size=2).map(tuple),
    gradients=st.none() | st.dictionaries(st.sampled_from(["0", "1", "x"]), st.none() | TENSORS),
    error=st.none() | st.builds(Error, WORDS, WORDS, st.none() | WORDS, st.none() | NUMBERS, WORDS),
)
RIGHT = [
    messages.encoded(Reply(torch.ones(2, 3), (torch.ones(2), [1, "a"]), {"0": torch.ones(3)})),
    messages.encoded(Reply(error=Error("ValueError", "no", "f", 3, "x = y"))),
]


def received(data):
    with bounded(), contextlib.suppress(EOFError, messages.TooLarge, messages.Malformed):
        reply = messages.receive(io.BytesIO(data), KINDS)
        return checked(reply) if isinstance(reply, Reply) else None
    return None


@given(data=st.sampled_from(RIGHT).flatmap(edited) | st.binary(max_size=60))
def test_bytes_of_a_message(data):
    received(data)


@given(header=JSON, blob=st.binary(max_size=60))
@example(header={"tensor": ["float32", [2**62, 2**62], False]}, blob=b"")
def test_the_header_of_a_message(header, blob):
    told = json.dumps(header).encode()
    received(len(told).to_bytes(4, "big") + told + blob)


@given(replies=st.lists(REPLIES, min_size=1, max_size=6))
def test_what_an_answer_replies(judge, neighbour, replies):
    whole = [received(messages.encoded(reply)) for reply in replies]
    Mute.replies = iter([reply for reply in whole if reply] * 20)
    try:
        with bounded():
            entry = judge.entry(HONEST_BYTES)
    finally:
        Mute.replies = iter(())
    assert entry["status"] == "graded"
    softmax = entry["exercises"]["attention/softmax"]
    assert 0 <= softmax["points"] < softmax["max_points"]
    assert softmax["message"].isprintable()
    assert json.dumps(judge.entry(HONEST_BYTES)) == neighbour


def test_the_stand_in_is_judged_as_an_answer_is(judge):
    """What the fuzzer asks is the judge itself: a right handle in place of the mute one passes."""
    exercise = load("attention/dot_scores")
    right = InProcess(lambda q, k: q @ k.mT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mute, "run", lambda self, request: right.run(request))
        verdict = judge.entry(HONEST_BYTES)["exercises"][exercise.id]
    assert verdict["status"] == "passed"
