"""An answer in a child process is judged as in this one, and messages keep their bounds."""

import importlib
import io
import json
from dataclasses import replace

import pytest
import torch

from course_lib.answers import messages
from course_lib.answers.answer import Error, InProcess, Reply, Request
from course_lib.answers.process import KINDS, ChildProcess
from course_lib.answers.source import define, find_source, source_of
from course_lib.checking.catalogue import load
from course_lib.checking.explain import panel
from course_lib.checking.notebook.solution_text import self_contained
from course_lib.checking.verdict import judge
from tests import WEEKLY

RIGHT = "def double(x):\n    return 2 * x\n"


@pytest.fixture(scope="module")
def child():
    with ChildProcess(seconds=60) as process:  # others may keep the machine busy
        yield process


def reference_source(exercise):
    """Write the reference as a learner would: its module's names come by imports."""
    names = dict(vars(importlib.import_module(exercise.reference.__module__)))
    del names[exercise.name]
    text = source_of(exercise.reference)
    return self_contained(define(text, exercise.name, names | {"__name__": "__answer__"}))


def seen(verdict):
    return replace(verdict, failure=None), panel.text(verdict)


@pytest.mark.parametrize(
    "exercise_id",
    ["start/hello", "self_attention/layer"]
    + ["attention/softmax", "efficient/linear", "efficient/reversible"] * WEEKLY,
)
def test_the_verdict_is_the_same_in_another_process(child, exercise_id):
    exercise = replace(load(exercise_id))
    exercise.forbidden = ()  # known mistakes are written with the library's own code
    sources = [reference_source(exercise)]
    written = [x for x in exercise.mistakes if find_source(x.answer)]
    for mistake in written:
        module, name = mistake.answer.__module__, mistake.name
        sources.append(f"from {module} import {name} as {exercise.name}\n")
    statuses = []
    for source in sources:
        child.hold(source, exercise.name)
        here = judge(exercise, InProcess(define(source, exercise.name)))
        assert seen(judge(exercise, child)) == seen(here)
        statuses.append(here.status)
    assert statuses == ["passed", *["known mistake"] * len(written)]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def double(x, y=unknown):\n    return x\n", "NameError: name 'unknown' is not defined"),
        ("def double(x:\n", "SyntaxError"),
        ("import sys\n@sys.exit\ndef double(x):\n    return x\n", "SystemExit"),
        ("import os\n@os._exit\ndef double(x):\n    return x\n", "Crash: the process ended"),
        (RIGHT.replace("2 * x", "2j * x"), "dtype of the result is complex64"),
    ],
)
def test_an_answer_that_fails_is_named_and_leaves_the_next_one_alone(child, source, said):
    child.hold(source.replace("os._exit", "lambda f: os._exit(1)"), "double")
    assert said in judge(load("start/hello"), child).message
    child.hold(RIGHT, "double")
    assert judge(load("start/hello"), child).status == "passed"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while True: pass", "No answer after 1 seconds of computing"),
        (
            "import time; time.sleep(60)",
            "Nothing was computed for 6 seconds: what",
        ),
        ("input()", "This calls `input`"),
    ],
)
def test_an_answer_ends_by_its_own_computing_and_later_by_the_clock(body, said):
    with ChildProcess(seconds=1) as process:
        process.hold(f"def double(x):\n    {body}\n", "double")
        assert said in judge(load("start/hello"), process).message
        process.hold("import time\ndef double(x):\n    time.sleep(0.2)\n    return 2 * x", "double")
        assert judge(load("start/hello"), process).status == "passed"


def carried(message):
    stream = io.BytesIO()
    messages.send(stream, message)
    return messages.receive(io.BytesIO(stream.getvalue()), KINDS)


@pytest.mark.parametrize("dtype", messages.DTYPES.values(), ids=str)
def test_tensors_arrive_as_they_left_however_they_lay_in_memory(dtype):
    for shape in ((), (1,), (3, 2), (2, 0)):
        sent = torch.ones(shape, dtype=dtype)
        scattered = torch.stack([sent, torch.zeros_like(sent)], dim=-1)[..., 0]
        for tensor in (sent, scattered, sent.to("meta")):
            came = carried(tensor)
            assert (came.dtype, came.shape, came.device) == (dtype, sent.shape, tensor.device)
            assert came.is_meta or torch.equal(came, sent)


def test_nested_data_arrive_as_they_left():
    error = Error("ValueError", "why?", line=3)
    request = Request((1, "é", (2.5, [None, True])), build=(3,), watch=("torch.softmax",))
    reply = Reply(output={"a": (1, float("inf"))}, error=error, printed="x\n")
    for message in (request, reply, "describe", None):
        assert repr(carried(message)) == repr(message)
    weights = {"w": torch.randn(2, 3)}
    assert torch.equal(carried(Request((), weights=weights)).weights["w"], weights["w"])


def test_a_message_is_bounded_on_both_sides():
    stream = io.BytesIO()
    with pytest.raises(messages.TooLarge):
        messages.send(stream, torch.zeros(messages.LIMIT // 4 + 1))
    assert stream.getvalue() == b""
    with pytest.raises(messages.TooLarge):
        messages.receive(io.BytesIO(b"\xff\xff\xff\xff{}"), KINDS)
    with pytest.raises(messages.TooLarge):
        messages.receive(raw({"tensor": ["float32", [messages.LIMIT], False]}), KINDS)


def raw(header):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return io.BytesIO(len(text).to_bytes(4, "big") + text)


@pytest.mark.parametrize(
    "header",
    [
        {"kind": ["Path", [["path", "/etc"]]]},
        {"kind": ["Error", [["unknown", 1]]]},
        {"tensor": ["float32", [-1], False]},
        {"tensor": ["object", [1], False]},
        {"pickle": "x"},
        {},
        b"no JSON",
        b"[" * 10_000,
    ],
    ids=lambda header: str(header)[:30],
)
def test_what_is_no_message_is_malformed(header):
    with pytest.raises(messages.Malformed):
        messages.receive(raw(header), KINDS)


def test_a_stream_that_ends_anywhere_in_a_message_has_ended():
    stream = io.BytesIO()
    messages.send(stream, Reply(output=torch.ones(3)))
    whole = stream.getvalue()
    for length in range(len(whole)):
        with pytest.raises(EOFError):
            messages.receive(io.BytesIO(whole[:length]), KINDS)
