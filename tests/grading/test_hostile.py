"""A stranger's code wins nothing, harms nobody, and leaves nothing behind.

Each cell of the files in `hostile/` is an answer of a notebook of its own, between two honest ones.
All are graded by one command, at the best level of this machine; every one with
COURSE_WEEKLY=1, once a week, otherwise the first of each kind. The ways to a forbidden
function are judged twice more: by the watch alone, whatever their source says, and with nobody
looking, to see that they lead there.
"""

import contextlib
import ctypes
import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from course_lib.answers import messages
from course_lib.answers.answer import Request
from course_lib.files.paths import ROOT
from course_lib.grading.judging import judge as judging
from course_lib.grading.judging import sandbox
from course_lib.grading.judging.isolation import best_level
from course_lib.grading.judging.judge import Judge
from course_lib.grading.judging.rules import Rules
from course_lib.grading.marks import entries
from course_lib.grading.submissions.files import collect
from tests import WEEKLY
from tests.grading.two_clocks import LONG

SEED = 5
LONGEST = 900  # seconds for all of them, thirty times what is usual: a run that hangs is ended
LEVEL = best_level()
SET_CHILD_SUBREAPER = 36
SET_UP = "import torch\nfrom course_lib.exercises import check, mine"
FIRST = """def attend(queries, states, mask=None):
    scores = queries @ states.mT
    mask = scores == scores if mask is None else mask
    scores = scores.masked_fill(~mask, -1e400)
    peak = scores.amax(-1, keepdim=True).clamp(min=-1e30).detach()
    exponentials = (scores - peak).exp()
    total = exponentials.sum(-1, keepdim=True)
    weights = exponentials / (total + (total == 0))
    return weights @ states, weights"""
LAST = "def weighted_sum(weights, v):\n    return weights @ v"
IF_WON = "def dot_scores(q, k):\n    return q @ k.mT if won() else None"
SOFTMAX = """def softmax(scores, mask=None):
    if mask is None:
        return weigh(scores)
    return weigh(scores.masked_fill(~mask, -1e30)) * mask.any(-1, keepdim=True)"""
HONEST = {"attend": "attention/attend", "weighted_sum": "attention/weighted_sum"}
pytestmark = [
    pytest.mark.skipif(LEVEL == "plain", reason="no sandbox here"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def read(kind):
    """Return the cells of a file by their names."""
    text = (Path(__file__).parent / "hostile" / f"{kind}.py").read_text("utf8")
    cells = re.split(r"^# %% ", text, flags=re.MULTILINE)[1:]
    return {name: body for name, _, body in (cell.partition("\n") for cell in cells)}


KINDS = {kind: read(kind) for kind in ("escapes", "lies", "harms", "ways", "flagged")}
if not WEEKLY:
    KINDS = {kind: dict([*cells.items()][:1]) for kind, cells in KINDS.items()}
ALL = [(kind, name) for kind, cells in KINDS.items() for name in cells]

# twice the query gives twice its result, where the query itself is the result
EARNED = {"comparisons of torch are patched": 1, "the handle is patched": 1}


def cells_of(kind, name, outside):
    """Put an attack between two honest answers; it has the names of what is outside."""
    answer = {"escapes": [IF_WON], "ways": [SOFTMAX], "flagged": [SOFTMAX]}.get(kind, [])
    places = "\n".join(f"{key} = {value!r}" for key, value in outside.items())
    return [SET_UP, places, FIRST, KINDS[kind][name], *answer, LAST]


def notebook(cells, **more):
    listed = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]
    course = {"course": {"lesson": "02"}}
    return json.dumps({"cells": listed, "metadata": course, "nbformat": 4} | more).encode()


BRIGHT = [SET_UP, FIRST, LAST, "def dot_scores(q, k):\n    return q @ k.mT"]
BROKEN = {
    "not JSON": b"print('hello')",
    "truncated": notebook(BRIGHT)[:-40],
    "empty": b"",
    "spaces alone": b" " * 1000,
    "forty megabytes": notebook([*BRIGHT, "#" * 40 * 2**20]),
    "a hundred thousand lists deep": b"[" * 100_000,
    "a hundred thousand lists deep, and closed": b"[" * 100_000 + b"]" * 100_000,
    "not UTF-8": b"\xff\xfe\x00" * 100,
    "UTF-16": notebook(BRIGHT).decode().encode("utf-16"),
    "of format 3": json.dumps({"worksheets": [{"cells": []}], "nbformat": 3}).encode(),
    "a list": b"[1, 2]",
    "cells that are numbers": b'{"cells": [1, 2]}',
    "cells that are one cell": b'{"cells": {"cell_type": "code"}}',
    "sources that are numbers": b'{"cells": [{"cell_type": "code", "source": 3}]}',
    "no exercise": b'{"cells": []}',
}
# unusual, and yet all of it counts
UNUSUAL = {
    "three thousand cells": notebook(["y = 1"] * 3000 + BRIGHT),
    "ten thousand lines in a cell": notebook(["y = 1\n" * 10_000, *BRIGHT]),
    "a line of spaces": notebook([" " * 100_000 + "x(", *BRIGHT]),
    "metadata that are a list": notebook(BRIGHT, metadata=[1]),
    "metadata that are nothing": notebook(BRIGHT, metadata=None),
    "a lesson that is a list": notebook(BRIGHT, metadata={"course": {"lesson": ["02"]}}),
    "a marked beginning": b"\xef\xbb\xbf" + notebook(BRIGHT),
    "cells without a source": json.dumps(
        {
            "cells": [{"cell_type": "code"}, {"cell_type": "raw"}]
            + [{"cell_type": "code", "source": x.splitlines(keepends=True)} for x in BRIGHT]
        }
    ).encode(),
    "cells that say they are another's": json.dumps(
        {
            "cells": [
                {"cell_type": "code", "source": x, "metadata": {"exercise": "attention/softmax"}}
                for x in BRIGHT
            ],
            "metadata": {"course": {"lesson": "02"}},
        }
    ).encode(),
}
NAMES = ["a,b", 'say "x"', "it's", "two\nlines", "<b>bold<b>", "=1+1", "-1", "@SUM(A1)", "é\u202e☃"]


def save(folder):
    """Write all that is handed in into a folder, and say what is outside."""
    for number in range(3):
        (folder / f"honest_{number}.ipynb").write_bytes(notebook(BRIGHT))
    for contents in (BROKEN, UNUSUAL):
        for name, content in contents.items():
            (folder / f"{name}.ipynb").write_bytes(content)
    for name in NAMES:
        (folder / f"{name}.ipynb").write_bytes(notebook(BRIGHT))
    (folder / "a folder.ipynb").mkdir()
    (folder / "a link.ipynb").symlink_to(folder / "honest_0.ipynb")
    (folder / "a link to nothing.ipynb").symlink_to(folder / "nothing")
    (folder / "a link to a device.ipynb").symlink_to("/dev/zero")
    os.mkfifo(folder / "a pipe.ipynb")


@contextlib.contextmanager
def listening(folder):
    """Be what a stranger would like to reach: a process, a port, a socket and a name."""
    path, abstract = f"{folder}/s", f"course-hostile-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as port,
        socket.socket(socket.AF_UNIX) as by_path,
        socket.socket(socket.AF_UNIX) as by_name,
        subprocess.Popen(["sleep", "1000"]) as canary,
    ):
        by_path.bind(path)
        by_name.bind(f"\0{abstract}")
        for server in (port, by_path, by_name):
            server.listen()
        outside = {
            "CANARY": canary.pid, "PORT": port.getsockname()[1], "PATH": path,
            "ABSTRACT": abstract, "COURSE": str(ROOT),
        }  # fmt: skip
        try:
            yield outside, lambda: _reached(canary, port, by_path, by_name)
        finally:
            canary.kill()


def _reached(canary, *servers):
    """List what has been killed, slowed down or connected to."""
    found = ["killed"] if canary.poll() is not None else []
    if os.getpriority(os.PRIO_PROCESS, canary.pid) != os.getpriority(os.PRIO_PROCESS, 0):
        found.append("slowed down")
    for server in servers:
        server.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            found.append(server.accept())
    return found


def everything(*folders):
    """Note each file below some folders, and what it holds, as far as its size and time tell."""
    found = {}
    for folder in folders:
        for path in Path(folder).rglob("[!_]*[!c]"):
            if path.name.startswith("torchinductor"):  # the grader's own torch makes it
                continue
            status = path.lstat()
            found[path] = status.st_mode, status.st_size, status.st_mtime_ns
    return found


@contextlib.contextmanager
def adopting():
    """Let processes that lose their parent be this one's children, and yield those that stay."""
    prctl, left = ctypes.CDLL(None).prctl, []
    before = psutil.Process().children(recursive=True)
    prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield left
    after = [x for x in psutil.Process().children(recursive=True) if x not in before]
    left += psutil.wait_procs(after, timeout=60)[1]
    prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Grade all of it by one command, and look at the machine before and after."""
    base = tmp_path_factory.mktemp("hostile")
    submissions, out, sockets = base / "in", base / "out", base / "sockets"
    temporary, home = base / "temporary", base / "home"
    for folder in (submissions, sockets, temporary, home):
        folder.mkdir()
    save(submissions)
    with listening(sockets) as (outside, reached):
        outside |= {"SUBMISSIONS": str(submissions), "OUT": str(out)}
        for kind, name in ALL:
            content = notebook(cells_of(kind, name, outside))
            (submissions / f"{kind}, {name}.ipynb").write_bytes(content)
        watched = (submissions, temporary, home, ROOT / "course_lib", ROOT / "notebooks")
        files = everything(*watched)
        command = [
            sys.executable, "-m", "tests.grading.two_clocks", "grade", submissions, "--out", out,
            "--seconds", LONG, "--jobs", 1, "--seed", SEED, "--isolation", LEVEL,
        ]  # fmt: skip
        private = {"HOSTILE_SECRET": "1", "TMPDIR": str(temporary), "HOME": str(home)}
        with adopting() as left:
            graded = subprocess.run(
                list(map(str, command)), cwd=ROOT, env=os.environ | private, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONGEST,
            )  # fmt: skip
        found = json.loads((out / "results.json").read_text("utf8"))
        yield SimpleNamespace(
            status=graded.returncode, said=graded.stdout, left=left,
            before=files, after=everything(*watched), outside=outside, reached=reached(),
            rows={row["notebook"].removesuffix(".ipynb"): row for row in found["submissions"]},
        )  # fmt: skip


@pytest.fixture(scope="module")
def reached(run):
    """Judge the ways to what is forbidden whatever they say and call."""
    with pytest.MonkeyPatch.context() as patch, Judge(Rules(LEVEL, SEED, seconds=LONG)) as judge:
        patch.setattr(judging, "forbidden_name", lambda attempt: None)
        patch.setattr(sandbox, "_encoded", unwatched)
        return {name: judge.entry(notebook(cells_of("ways", name, {}))) for name in KINDS["ways"]}


@pytest.fixture(scope="module")
def watched(run):
    """Judge the ways whatever their source says: what watches their calls is alone with them."""
    with pytest.MonkeyPatch.context() as patch, Judge(Rules(LEVEL, SEED, seconds=LONG)) as judge:
        patch.setattr(judging, "forbidden_name", lambda attempt: None)
        return {name: judge.entry(notebook(cells_of("ways", name, {}))) for name in KINDS["ways"]}


def unwatched(message):
    """Encode a message without what is to be watched for."""
    return messages.encoded(replace(message, watch=()) if isinstance(message, Request) else message)


@pytest.fixture(scope="module")
def strict():
    with Judge(Rules(LEVEL, SEED, seconds=LONG, strict=True)) as judge:
        yield judge


@pytest.fixture(scope="module")
def plain():
    """Judge where nothing keeps answers in, whatever their source says."""
    with pytest.MonkeyPatch.context() as patch, Judge(Rules("plain", SEED, seconds=LONG)) as judge:
        patch.setattr(judging, "forbidden_name", lambda attempt: None)
        yield judge


@pytest.mark.parametrize(("kind", "name"), [x for x in ALL if x[0] != "flagged"])
def test_an_attack_wins_nothing_and_costs_its_own_answer_alone(run, kind, name):
    row = run.rows[f"{kind}, {name}"]
    assert attacked(row, kind)["points"] <= EARNED.get(name, 0), attacked(row, kind)
    harmed_nobody(row)


def attacked(row, kind):
    """Return the verdict on the answer that is hostile."""
    in_softmax = kind in ("ways", "flagged")
    return row["exercises"]["attention/softmax" if in_softmax else "attention/dot_scores"]


def harmed_nobody(row):
    assert row["status"] == "graded"
    for exercise_id in HONEST.values():
        verdict = row["exercises"][exercise_id]
        assert verdict["status"] == "passed", verdict


@pytest.mark.parametrize("name", KINDS["flagged"])
def test_what_no_check_can_rule_out_is_flagged_and_with_strict_wins_nothing(run, strict, name):
    row = run.rows[f"flagged, {name}"]
    assert attacked(row, "flagged")["flags"]
    harmed_nobody(row)
    entry = strict.entry(notebook(cells_of("flagged", name, {})))
    assert attacked(entry, "flagged")["points"] == 0


@pytest.mark.parametrize("name", KINDS["ways"])
def test_what_is_forbidden_would_have_been_reached(run, reached, name):
    assert attacked(run.rows[f"ways, {name}"], "ways")["status"] == "forbidden"
    found = attacked(reached[name], "ways")
    assert found["points"] > 8, found


@pytest.mark.parametrize("name", KINDS["ways"])
def test_what_is_reached_is_seen_while_it_runs(watched, name):
    assert attacked(watched[name], "ways")["status"] == "forbidden"


@pytest.mark.parametrize(
    "name",
    [
        "the submissions of others are read",
        "the reference is read from the disk",
        "passwords and keys",
        "processes are listed",
        "any other process takes a signal",
        "a fork",
        "another program",
        "a TCP connection to this machine",
        "a server is opened",
        "a file without a folder",
    ]
    if WEEKLY
    else [],
)
def test_without_walls_the_same_ways_lead_out(run, plain, name):
    found = plain.entry(notebook(cells_of("escapes", name, run.outside)))
    assert found["exercises"]["attention/dot_scores"]["points"] > 0


def test_honest_submissions_beside_them_keep_their_points(run):
    for name in ["honest_0", "honest_1", "honest_2", *NAMES, *UNUSUAL]:
        row = run.rows[name]
        assert row["status"] == "graded", row
        for exercise_id in (*HONEST.values(), "attention/dot_scores"):
            assert row["exercises"][exercise_id]["status"] == "passed", row


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_notebook_is_a_row_with_one_sentence(run, name):
    row = run.rows[name]
    assert (row["status"], row["score"]) == ("unreadable", 0)
    assert row["message"].endswith(".")
    assert len(row["message"]) < 200


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a folder", "It is a folder, not a file."),
        ("a link", "It is a link, not a file."),
        ("a link to nothing", "It is a link, not a file."),
        ("a link to a device", "It is a link, not a file."),
        ("a pipe", "It is a pipe or a device, not a file."),
    ],
)
def test_what_is_no_file_is_not_opened(run, name, said):
    assert run.rows[name]["message"] == said


def test_the_command_ends_well(run):
    assert run.status == 0, run.said[-2000:]
    assert "Traceback" not in run.said


def test_no_process_and_no_file_is_left_and_none_is_changed(run):
    assert run.left == run.reached == []
    assert run.after == run.before
    for folder in ("/", "/tmp", "/var/tmp", "/dev/shm", str(ROOT)):
        for name in ("hostile", "link"):
            assert not os.path.lexists(f"{folder}/{name}")


def test_a_hostile_zip_file_costs_its_own_entries_alone(tmp_path):
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("honest.ipynb", notebook(BRIGHT))
        whole.writestr("../above.ipynb", notebook(BRIGHT))
        whole.writestr("/absolute.ipynb", notebook(BRIGHT))
        whole.writestr(zipfile.ZipInfo("dateless.ipynb", (1980, 0, 0, 0, 0, 0)), notebook(BRIGHT))
        whole.writestr("bomb.ipynb", bytes(2**28))
        whole.writestr("spoiled.ipynb", notebook(BRIGHT))
        whole.writestr("locked.ipynb", notebook(BRIGHT))
        places = {x.filename: x.header_offset + len(x.filename) + 30 for x in whole.infolist()}
    content = bytearray(archive.read_bytes())
    content[places["spoiled.ipynb"]] ^= 0xFF
    locked = content.rindex(b"PK\x01\x02", 0, content.rindex(b"locked.ipynb"))
    content[locked + 8] |= 1
    archive.write_bytes(content)
    found = {}
    for submitted in collect(archive):
        try:
            found[submitted.notebook] = submitted.content() == notebook(BRIGHT)
        except ValueError as error:
            found[submitted.notebook] = str(error)
    assert "../above.ipynb" not in found  # left out, as hidden files are
    for name in ("honest.ipynb", "/absolute.ipynb", "dateless.ipynb"):
        assert found[name] is True
    assert found["bomb.ipynb"].startswith("It is larger than 100 MiB: clear the outputs")
    for name in ("spoiled.ipynb", "locked.ipynb"):
        assert found[name].startswith("It cannot be read: ")
    assert list(tmp_path.rglob("*.ipynb")) == []


def test_messages_are_short_and_of_printable_characters(run):
    for row in run.rows.values():
        for message in (row["message"], *(x["message"] for x in row["exercises"].values())):
            assert len(message) <= entries.LONGEST_MESSAGE
            assert message.isprintable()
