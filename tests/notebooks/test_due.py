"""An exploration runs again as soon as anything has changed that it stands on."""

import subprocess

import pytest

from course_lib.files.course_map import is_exploration, page_files
from tests import due

PAGES = page_files()
LESSONS = {page for number, page in PAGES.items() if not is_exploration(number)}
EXPLORATION = PAGES["07_induction_heads"]


@pytest.fixture
def after(monkeypatch):
    """Return what is due after files have changed since every notebook was committed."""
    monkeypatch.setattr(due, "last_commits", lambda _: dict.fromkeys(due.NOTEBOOKS.rglob("*"), "a"))

    def pages(*names):
        monkeypatch.setattr(due, "changed_since", lambda _: {due.ROOT / name for name in names})
        return {*due.due()}

    return pages


def test_where_nothing_has_changed_but_what_lessons_use_they_alone_are_due(after):
    assert after() == LESSONS
    # what lessons use in the same way: the engine, and a module that they import
    assert after("README.md", "course_lib/checking/verdict.py", "course_lib/data/store.py") == LESSONS


@pytest.mark.parametrize(
    "changed",
    [
        "lessons/explorations/07_induction_heads.py",
        "notebooks/explorations/07_induction_heads.ipynb",
        "course_lib/instruments/attention_only.py",  # imported by the page
        "course_lib/exercises/induction/head.py",
        "research/results/induction.json",
    ],
)
def test_an_exploration_is_due_after_a_change_of_what_it_stands_on(after, changed):
    assert (due.ROOT / changed).is_file()
    assert EXPLORATION in after(changed)


def test_an_exploration_is_due_where_its_last_commit_is_not_known(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(["git", *words], check=True, capture_output=True)

    def commits_in(folder):
        monkeypatch.setattr(due, "ROOT", folder)
        return due.last_commits(folder / "notebooks")

    whole, shallow = tmp_path / "whole", tmp_path / "shallow"
    git("init", str(whole))
    (whole / "notebooks").mkdir()
    notebook = whole / "notebooks" / "a.ipynb"
    for name in (notebook, whole / "b"):
        name.write_text("1")
        git("-C", str(whole), "add", ".")
        who = ("-c", "user.name=a", "-c", "user.email=a")
        git("-C", str(whole), *who, "commit", "-m", "1")
    git("clone", "--depth", "1", whole.as_uri(), str(shallow))
    assert list(commits_in(whole)) == [notebook]
    assert commits_in(shallow) == commits_in(tmp_path) == {}
    monkeypatch.setattr(due, "last_commits", lambda _: {})
    assert {*due.due()} == {*PAGES.values()}
