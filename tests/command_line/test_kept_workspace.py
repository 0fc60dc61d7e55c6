"""A workspace that an older version made still opens, checks and carries on.

`kept_by_0_2_0.txt` holds a learner's answers as 0.2.0 kept them. `workspaces` holds what two older
versions handed out and their own `course check` kept: lessons 00 and 02 with an answer that has
passed, 01 with a note, 03 with an answer that is begun, and 04 as it came.
"""

import json
import re
import zipfile
from functools import partial
from pathlib import Path

import pytest
import torch

from course_lib.answers.source import source_of
from course_lib.checking.catalogue import load
from course_lib.command_line.main import main
from course_lib.exercises import mine, verdict
from course_lib.files import ipynb
from course_lib.files.paths import ROOT
from course_lib.files.releases import hand_out
from course_lib.files.workspace import Guess, Record, Workspace
from course_lib.instruments.recording import record_weights
from course_lib.masks import causal_mask
from course_lib.real_models import use_cache
from course_lib.transformer import Encoder

PARTS = re.split(
    r"^=== (.*)\n",
    Path(__file__).with_name("kept_by_0_2_0.txt").read_text("utf8"),
    flags=re.MULTILINE,
)
# passed by 0.2.0, which did not refuse it, and kept as it was
CALLS_ITSELF = """from course_lib.exercises import mine

def rnn_cell(x, h, w_x, w_h, b):
    return mine("rnn/cell")(x, h, w_x, w_h, b)
"""
KEPT = dict(zip(PARTS[1::2], PARTS[2::2], strict=True))
RECORD = {
    "status": "wrong",
    "points": 10,
    "max_points": 10,
    "passed": True,
    "attempts": 3,
    "hints": 1,
    "when": "2026-11-30T12:00:00",
}
GUESS = {"said": "3", "measured": "7", "verdict": "off", "when": "2026-11-30T12:00:00"}
# what 0.2.0 called the release of the notebook that is handed out below
RELEASES = {"08_encoder_and_decoder.ipynb": "f04560fb1af6c873"}


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """Write a workspace of 0.2.0 file by file, and go there."""
    mark = tmp_path / "workspace" / ".course"
    files = {"releases.json": json.dumps(RELEASES), "guesses/0a1b.json": json.dumps(GUESS)}
    for exercise_id, source in KEPT.items():
        files |= {
            f"answers/{exercise_id}.py": source,
            f"records/{exercise_id}.json": json.dumps(RECORD),
        }
    for name, text in files.items():
        (mark / name).parent.mkdir(parents=True, exist_ok=True)
        (mark / name).write_text(text, "utf8")
    monkeypatch.chdir(mark.parent)
    return Workspace(mark.parent)


def test_it_opens_with_its_records_answers_and_guesses(workspace):
    assert Workspace.find() == workspace
    assert workspace.guesses() == {"0a1b": Guess(**GUESS)}
    for exercise_id, source in KEPT.items():
        assert workspace.record(exercise_id) == Record(**RECORD)
        assert workspace.answer(exercise_id) == source


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("exercise_id", KEPT)
def test_a_kept_answer_still_passes(exercise_id, capsys):
    answer = mine(exercise_id)
    assert capsys.readouterr().out.endswith(": your own\n")
    judged = verdict(exercise_id, answer)
    assert judged.status == "passed", judged.message


@pytest.mark.usefixtures("workspace")
def test_kept_layers_carry_later_lessons():
    tokens, sizes = torch.tensor([3, 0, 4]), (5, 2, 8, 2, 12, 6)
    ours, attention = Encoder(*sizes), mine("multi_head/attention")
    block = partial(mine("encoder/block"), attention=attention)
    theirs = Encoder(*sizes, block=block)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(theirs(tokens), ours(tokens))

    layer, x = attention(8, 2), torch.randn(5, 8)
    whole = layer(x, x, x, causal_mask(5))
    with record_weights(layer) as weights, use_cache([layer]):
        pieces = [layer(piece, piece, piece) for piece in x.split(2)]
    torch.testing.assert_close(torch.cat(pieces), whole)
    assert [tuple(w.shape) for w in weights] == [(2, 2, 2), (2, 2, 4), (2, 1, 5)]


def test_a_check_goes_on_from_its_record(workspace, save_notebook):
    cell = ("encoder/block", KEPT["encoder/block"])
    notebook = save_notebook(workspace.folder / "08_encoder_and_decoder.ipynb", cell, lesson="08")
    assert main(["check", str(notebook), "--exercise", "encoder/block"]) == 0
    record = workspace.record("encoder/block")
    assert (record.status, record.attempts, record.hints) == ("passed", 4, 1)


def test_a_new_release_has_its_answers_in(workspace, save_notebook, tmp_path):
    (tmp_path / "notebooks").mkdir()
    course, name = tmp_path / "notebooks", "08_encoder_and_decoder.ipynb"
    save_notebook(course / name, "1 + 1", ("encoder/block", "stub 1"), lesson="08")
    assert hand_out(workspace, course) == []
    # the release that it had then is known again
    assert workspace.releases() == RELEASES

    save_notebook(workspace.folder / name, "my own", ("encoder/block", "stub 1"), lesson="08")
    save_notebook(course / name, "1 + 1", ("encoder/block", "stub 2"), lesson="08")
    (message,) = hand_out(workspace, course)
    assert "with your answers to encoder/block in it" in message
    new = ipynb.read(workspace.folder / "08_encoder_and_decoder.new.ipynb")
    assert ipynb.text(new["cells"][2]) == KEPT["encoder/block"].rstrip()


def test_an_exercise_that_has_moved_to_an_exploration_is_found_where_it_was(
    workspace, save_notebook, tmp_path, capsys
):
    exercise_id, lesson = "positions/tree_distance", workspace.folder / "04_positions.ipynb"
    answer = f"import torch\nfrom torch import Tensor\n\n{source_of(load(exercise_id).reference)}"
    answer = answer.replace('Int[Tensor, " n"]', "Tensor").replace('Int[Tensor, "n n"]', "Tensor")
    save_notebook(lesson, (exercise_id, answer), lesson="04")
    assert main(["check", str(lesson), "--exercise", exercise_id]) == 0
    assert workspace.record(exercise_id).passed
    assert main(["reset", exercise_id]) == 0
    assert "raise NotImplementedError" in ipynb.text(ipynb.read(lesson)["cells"][1])

    beside = tmp_path / "notebooks" / "explorations"
    beside.mkdir(parents=True)
    save_notebook(beside / "04_trees.ipynb", (exercise_id, "stub"), lesson="04_trees")
    assert hand_out(workspace, beside.parent) == []
    lesson.unlink()
    exploration = workspace.folder / "explorations" / "04_trees.ipynb"
    assert main(["reset", exercise_id]) == 0
    assert "raise NotImplementedError" in ipynb.text(ipynb.read(exploration)["cells"][1])


def test_an_answer_that_calls_itself_through_mine_is_the_librarys(tmp_path, monkeypatch, capsys):
    Workspace.make(tmp_path).keep("rnn/cell", CALLS_ITSELF)
    monkeypatch.chdir(tmp_path)
    assert mine("rnn/cell") is load("rnn/cell").reference
    assert "yours calls `mine`: write it anew" in capsys.readouterr().out


@pytest.mark.parametrize(
    "packed", sorted(Path(__file__).with_name("workspaces").iterdir()), ids=lambda x: x.stem
)
def test_an_update_changes_only_what_its_reader_has_not_touched(
    packed, tmp_path, monkeypatch, capsys
):
    zipfile.ZipFile(packed).extractall(tmp_path / "mine")
    workspace, course = Workspace(tmp_path / "mine"), tmp_path / "notebooks"
    course.mkdir()
    for path in workspace.folder.glob("*.ipynb"):
        (course / path.name).symlink_to(ROOT / "notebooks" / path.name)
    kept = [x for x in workspace.folder.rglob("*") if x.is_file() and x.name != "releases.json"]
    before = {path: path.read_bytes() for path in kept}

    messages = hand_out(workspace, course)
    touched = ["00_start_here", "01_rnn_limits", "02_attention", "03_self_attention"]
    carried = ["start/hello", "", "attention/softmax", "self_attention/project"]
    for name, exercise_id, message in zip(touched, carried, messages, strict=True):
        assert message.startswith(f"{name}.ipynb has changed since you got it: yours stays")
        assert f"with your answers to {exercise_id} in it" in message or not exercise_id
    assert [x.name for x, old in before.items() if x.read_bytes() != old] == ["04_positions.ipynb"]
    beside = sorted(x.name for x in workspace.folder.glob("*.new*.ipynb"))
    assert beside == [f"{name}.new.ipynb" for name in touched]
    assert hand_out(workspace, course) == []

    monkeypatch.chdir(workspace.folder)
    for name, exercise_id in (("00_start_here", "start/hello"), ("02_attention", carried[2])):
        assert main(["check", f"{name}.new.ipynb", "--exercise", exercise_id]) == 0
        assert f"{exercise_id}: passed" in capsys.readouterr().out
    new = ipynb.read(workspace.folder / "03_self_attention.new.ipynb")
    texts = {ipynb.exercise(cell): ipynb.text(cell) for cell in new["cells"]}
    assert "HALF_DONE" in texts["self_attention/project"]
