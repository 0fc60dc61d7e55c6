"""A learner's Transformer on one page: their answers, in a file that runs without the course."""

import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from course_lib.checking.notebook import check
from course_lib.checking.notebook.one_page import PARTS, one_page
from course_lib.exercises import my_transformer
from course_lib.files.workspace import Workspace
from tests import WEEKLY

OLD = Path(__file__).parents[2] / "command_line" / "kept_by_0_2_0.txt"
PIECES = re.split(r"^=== (.*)\n", OLD.read_text("utf8"), flags=re.MULTILINE)
KEPT = dict(zip(PIECES[1::2], PIECES[2::2], strict=True))


def defined(page):
    """Run a page up to its task."""
    namespace = {}
    exec(page.partition("# %% the task")[0], namespace)
    return namespace


def nothing(_):
    return None


@pytest.mark.skipif(not WEEKLY, reason="trains for half a minute: once a week")
def test_it_sorts_alone(tmp_path):
    page, own = one_page(nothing)
    assert own == []
    assert "course_lib" not in page
    assert "jaxtyping" not in page
    (tmp_path / "my_transformer.py").write_text(page)
    ran = subprocess.run(
        [sys.executable, "-I", "my_transformer.py"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("100.0% of 1000")


def test_what_has_passed_is_on_it_and_the_rest_is_the_library_s():
    page, own = one_page(KEPT.get)
    assert {*own} == KEPT.keys() & {*PARTS}
    model = defined(page)["Transformer"](7, 2, 8, 2, 12, 6)
    assert model(torch.tensor([[3, 1, 4]]), torch.tensor([[2, 6]])).shape == (1, 2, 7)


def test_two_answers_whose_helpers_have_one_name_do_not_meet():
    answers = {
        "attention/dot_scores": "def helper(k):\n    return k.mT\n\n\n"
        "def dot_scores(q, k):\n    return q @ helper(k)\n",
        "masks/causal": "def helper(n):\n    return n\n\n\n"
        "def causal_mask(n_q, n_k=None):\n    raise NotImplementedError\n",
    }
    page, own = one_page(answers.get)
    assert len(own) == 1
    model = defined(page)["Transformer"](7, 1, 8, 2, 12, 6)
    if own == ["attention/dot_scores"]:
        assert model(torch.tensor([[3, 1]]), torch.tensor([[2, 6]])).shape == (1, 2, 7)


@pytest.mark.parametrize("inside", [True, False])
def test_it_is_written_into_a_workspace_alone(tmp_path, monkeypatch, capsys, inside):
    monkeypatch.chdir(Workspace.make(tmp_path).folder if inside else tmp_path)
    page = my_transformer()
    said = capsys.readouterr().out
    own = "0 of" if inside else "your own answers to"
    assert f"{len(page.splitlines())} lines; {own} {len(PARTS)} exercises" in said
    assert ("python my_transformer.py" in said) == inside
    assert (tmp_path / "my_transformer.py").exists() == inside


@pytest.mark.parametrize(
    ("in_workspace", "own", "begins"),
    [(True, True, "<details open>"), (True, False, None), (False, False, "<details><summary>")],
)
def test_a_notebook_shows_the_file_once_a_part_is_the_learner_s_and_where_there_is_no_workspace(
    tmp_path, monkeypatch, in_workspace, own, begins
):
    shown = []
    notebook = SimpleNamespace(display_pub=SimpleNamespace(publish=shown.append))
    monkeypatch.setattr(check.session, "notebook", lambda: notebook)
    monkeypatch.chdir(tmp_path)
    if in_workspace:
        workspace = Workspace.make(tmp_path)
        if own:
            exercise_id = min(KEPT.keys() & {*PARTS})
            workspace.keep(exercise_id, KEPT[exercise_id])
        monkeypatch.chdir(workspace.folder)
    page = my_transformer()
    assert len(shown) == (begins is not None)
    for data in shown:
        assert escape(page) in data["text/html"]
        assert data["text/html"].startswith(begins)


def test_a_page_that_its_reader_has_changed_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(Workspace.make(tmp_path).folder)
    pages = (tmp_path / "my_transformer.py", tmp_path / "my_transformer1.py")
    for _ in range(2):
        my_transformer()
    assert [path.exists() for path in pages] == [True, False]
    pages[0].write_text("# mine\n")
    for _ in range(2):
        my_transformer()
    assert pages[0].read_text() == "# mine\n"
    assert "class Transformer" in pages[1].read_text()
