"""What a notebook calls, inside a workspace and outside."""

import _thread
import errno
import os
import shutil
import signal
import statistics
import threading
import types
from dataclasses import replace

import pytest
import torch

from course_lib.answers.answer import InProcess
from course_lib.answers.source import define
from course_lib.checking import catalogue
from course_lib.checking.explain import panel
from course_lib.checking.notebook import session
from course_lib.checking.notebook.session import Interrupted
from course_lib.checking.verdict import judge
from course_lib.exercises import check, hint, mine, reveal, solution, verdict
from course_lib.files.workspace import MARK, VARIABLE, Workspace

FACTOR = 2


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Workspace.make(tmp_path)


def right():
    return define("def double(x):\n    return FACTOR * x\n", "double", {"FACTOR": FACTOR})


def unchanged(x):
    return x


def test_outside_a_workspace_nothing_is_recorded_and_that_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    check("start/hello", right())
    said = f"Not recorded: {tmp_path} is no workspace. `course learn` opens yours.\n"
    assert capsys.readouterr().out.endswith(said)
    mine("start/hello")
    said = f"double: the library's, since {tmp_path.name}/ keeps no answers\n"
    assert capsys.readouterr().out == said
    hint("start/hello")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def alone(tmp_path, monkeypatch, capsys):
    """Open a notebook in a folder that is no workspace; what is shown is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")  # what a check sets is taken back
    published = types.SimpleNamespace(publish=lambda data: print(data["text/plain"]))
    monkeypatch.setattr(session, "notebook", lambda: types.SimpleNamespace(display_pub=published))
    monkeypatch.setattr(session, "at_end", lambda call: call())  # no cell ends here
    return tmp_path


def test_a_notebook_alone_keeps_answers_beside_it_and_says_where_once(alone, capsys):
    check("start/hello", right())
    assert f"passed answers are kept in {alone / MARK}." in capsys.readouterr().out
    check("start/hello", right())
    assert "kept in" not in capsys.readouterr().out
    assert "FACTOR = 2" in Workspace(alone).answer("start/hello")


def test_where_nothing_can_be_written_answers_serve_the_session(alone, capsys, monkeypatch):
    def refuse():
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Workspace, "make_here", refuse)
    check("start/hello", right())
    said = capsys.readouterr().out
    assert f"{alone} cannot be written to, so passed answers serve this session alone." in said
    mine("start/hello")
    assert capsys.readouterr().out == "double: your own\n"
    shutil.rmtree(Workspace.find().folder)
    assert list(alone.iterdir()) == []


def test_a_lambda_passes_here_as_in_the_terminal(workspace, capsys):
    check("start/hello", lambda x: 2 * x)
    assert "passed" in capsys.readouterr().out
    assert workspace.record("start/hello").attempts == 1


def loops(x):
    while True:
        pass


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_loop_that_never_ends_is_one_sentence(workspace, capsys, monkeypatch, handler):
    monkeypatch.setattr(session, "SECONDS", 0.5)
    before = signal.signal(signal.SIGINT, handler)
    try:
        check("start/hello", loops)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().out
    assert "not yet, 0 of 9 points" in said
    assert "No answer after 0.5 seconds of computing: does a loop in your code never end?" in said
    assert workspace.record("start/hello").attempts == 1


def sleeps(x):
    threading.Event().wait()


def test_an_answer_that_waits_is_one_sentence(workspace, capsys, monkeypatch):
    monkeypatch.setattr(session, "WAITS", 0.5)
    check("start/hello", sleeps)
    said = capsys.readouterr().out
    assert "Nothing was computed for 0.5 seconds: what does it wait for?" in said


def test_an_interrupt_is_one_sentence_and_judges_nothing(workspace, capsys, monkeypatch):
    monkeypatch.setattr(session, "SECONDS", 10)
    threading.Timer(1, _thread.interrupt_main).start()
    with pytest.raises(Interrupted, match="nothing was judged") as raised:
        check("start/hello", loops)
    assert raised.value._render_traceback_() == ["Interrupted: nothing was judged."]
    assert workspace.record("start/hello").attempts == 0


def test_a_passed_answer_is_kept_with_what_it_uses(workspace, capsys):
    check("start/hello", right())
    assert workspace.record("start/hello").passed
    assert "FACTOR = 2" in workspace.answer("start/hello")
    own = mine("start/hello")
    assert "your own" in capsys.readouterr().out
    assert own(torch.tensor(3.0)) == 6
    assert verdict("start/hello", own).status == "passed"


def test_a_later_failure_takes_nothing_away(workspace):
    check("start/hello", right())
    check("start/hello", unchanged)
    record = workspace.record("start/hello")
    assert (record.status, record.passed, record.attempts) == ("known mistake", True, 2)
    assert record.points == record.max_points


def test_what_has_passed_stays_and_a_terminal_is_told_commands(workspace):
    found = verdict("start/hello", unchanged)
    assert panel.stays(found) is None
    check("start/hello", right())
    stays = f"Your answer of {workspace.kept('start/hello'):%H:%M} has passed and stays: "
    shown = panel.text(found, in_terminal=True)
    assert stays in shown
    assert stays in panel.html(found)
    assert "Stuck? `course hint start/hello` asks" in shown


def test_an_answer_that_needs_its_notebook_is_not_kept(workspace, capsys):
    source = "def double(x):\n    return FACTOR * x\n"
    check("start/hello", define(source, "double", {"FACTOR": torch.tensor(2.0)}))
    assert "FACTOR, a Tensor" in capsys.readouterr().out
    assert workspace.answer("start/hello") is None


def test_mine_is_the_librarys_until_the_answer_has_passed(workspace, capsys):
    assert mine("start/hello") is catalogue.load("start/hello").reference
    assert capsys.readouterr().out == "double: the library's, until yours has passed in 00\n"


def test_the_librarys_own_function_is_no_answer(workspace, capsys):
    double = mine("start/hello")
    check("start/hello", double)
    assert "This is the library's own `double`" in capsys.readouterr().out
    assert not workspace.record("start/hello").passed


def test_an_unwritable_workspace_is_named_and_the_verdict_still_shown(
    workspace, capsys, monkeypatch
):
    def full(*paths):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    check("start/hello", unchanged)
    before = workspace.record("start/hello")
    monkeypatch.setattr(os, "replace", full)
    check("start/hello", right())
    out = capsys.readouterr().out
    assert "start/hello: passed" in out
    assert "could not be recorded" in out
    assert workspace.record("start/hello") == before
    assert not list(workspace.folder.rglob(".*.json.*"))


def test_hints_go_on_and_end(workspace, capsys):
    first, last = catalogue.load("start/hello").hints
    solution_named = '`solution("start/hello")` in a notebook'
    for text, ended in ((first, False), (last, True), (last, True)):
        hint("start/hello")
        said = capsys.readouterr().out
        assert text in said.splitlines()
        assert (solution_named in said) == ended
    hint("start/hello", 3)
    assert capsys.readouterr().out == "start/hello has the hints 1 to 2, and no hint 3.\n"


def test_the_solution_passes(capsys):
    solution("start/hello")
    source = capsys.readouterr().out
    names = dict(vars(__import__("course_lib.start", fromlist=["start"])))
    del names["double"]
    assert verdict("start/hello", define(source, "double", names)).status == "passed"


def test_reveal_sets_guess_and_measurement_side_by_side(capsys):
    reveal(0.5, 0.123456)
    reveal(None, 7)
    out = capsys.readouterr().out
    assert out == ("You said 0.5; measured: 0.123. Off by a factor of 4.05.\nMeasured: 7.\n")


def test_both_faces_say_the_same():
    found = verdict("start/hello", lambda x: x + 2)
    text, html = panel.text(found, everything=True), panel.html(found)
    facts = "not yet, 0 of 9 points", "0 of 5 cases", "doubling a sum", "expected", "float32 (1,)"
    for fact in (found.message, *facts):
        assert fact in text
        assert fact in html
    assert "<script" not in html


def test_a_headline_has_the_pages_own_colour_and_its_sign_alone_the_verdicts():
    html = panel.html(verdict("start/hello", unchanged))
    assert "</span> start/hello: not yet, 0 of 9 points</div>" in html
    assert html.count(f"color:{panel.COLOURS['known mistake']}") == 1


def test_on_a_narrow_screen_numbers_scroll_and_sentences_wrap():
    html = panel.html(verdict("start/hello", unchanged))
    outermost, _, rest = html.partition(">")
    assert "overflow" not in outermost
    assert rest.count('<div style="overflow-x:auto"><table') == rest.count("<table") > 0


def test_in_a_notebook_sentences_are_html_whose_lines_break_between_words(
    workspace, monkeypatch, capsys
):
    shown = []
    publish = types.SimpleNamespace(publish=shown.append)
    monkeypatch.setattr(session, "notebook", lambda: types.SimpleNamespace(display_pub=publish))
    for _ in catalogue.load("start/hello").hints:
        hint("start/hello")
    assert capsys.readouterr().out == ""
    assert shown[0]["text/plain"].startswith("Hint 1 of 2. Ask again for the next one.\n")
    assert "<div>Hint 1 of 2. Ask again for the next one.</div>" in shown[0]["text/html"]
    assert "<code>solution(&#34;start/hello&#34;)</code>" in shown[1]["text/html"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.bool, torch.int8])
def test_a_result_of_any_dtype_can_be_shown(dtype):
    found = verdict("start/hello", lambda x: x.to(dtype))
    shown = str(dtype).removeprefix("torch.")
    assert f"dtype of the result is {shown}, where float32 is expected" in panel.text(found)
    assert shown in panel.html(found)


def test_the_html_face_escapes_what_an_answer_prints():
    source = "def double(x):\n    print('<b>&')\n    return x\n"
    assert "&lt;b&gt;&amp;" in panel.html(verdict("start/hello", define(source, "double")))


def test_a_pass_shows_the_librarys_version_folded_and_what_is_next():
    passed = panel.html(verdict("start/hello", right()))
    assert "<details" in passed
    assert "return 2 * x" in passed
    assert "Next: " in passed
    assert "solution(" not in passed  # which would print it once more
    assert "return 2 * x" not in panel.html(verdict("start/hello", lambda x: x))


def test_the_difference_comes_before_the_inputs_and_the_rest_is_folded():
    found = verdict("start/hello", lambda x: 3 * x)
    shown = panel.text(found)
    places = [shown.index(x) for x in ("1.5 times", "difference", "expected", "got", "Tried")]
    assert places == sorted(places)
    assert "doubling a sum" not in shown
    assert "doubling a sum" in panel.text(found, everything=True)
    assert "-  gradients flow" in panel.text(found, everything=True)


def test_panels_are_short():
    exercise = replace(catalogue.load("attention/softmax"))
    exercise.forbidden = ()  # known mistakes are written with the library's own code
    verdicts = [judge(exercise, InProcess(mistake.answer)) for mistake in exercise.mistakes]
    assert {x.status for x in verdicts} == {"known mistake"}
    assert statistics.median(len(panel.text(x).splitlines()) for x in verdicts) <= 14
