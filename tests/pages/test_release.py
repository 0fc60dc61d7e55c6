"""A release is one command: what it refuses, and what it writes."""

import os
import shutil
import subprocess

import pytest

from course_lib.files.paths import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a script of bash")
CHANGELOG = "# What is new\n\n## 0.3.0 (2027-01-31)\n\nMore.\n\n## 0.2.0 (2026-11-24)\n\nFirst.\n"
NOBODY = {
    f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@pytest.fixture
def run(tmp_path):
    """Run a command in a repository of the few files that a release reads and writes."""

    def command(*words):
        environment = os.environ | NOBODY
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)

    for name in (".ci/release", "course_lib/__init__.py", "CITATION.cff"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    command("git", "init", "-q")
    command("git", "add", ".")
    command("git", "commit", "-qm", "before")
    return command


def test_a_release_sets_version_and_date_commits_and_tags(run, tmp_path):
    done = run(".ci/release", "0.3.0")
    assert done.returncode == 0, done.stderr
    assert '\n__version__ = "0.3.0"\n' in (tmp_path / "course_lib/__init__.py").read_text()
    cited = (tmp_path / "CITATION.cff").read_text()
    assert "\nversion: 0.3.0\ndate-released: 2027-01-31\n" in cited
    assert run("git", "describe", "--tags").stdout == "v0.3.0\n"
    assert run("git", "status", "--porcelain").stdout == ""


def test_no_release_without_a_version_an_entry_and_a_clean_tree(run, tmp_path):
    def refused(*words):
        done = run(".ci/release", *words)
        assert done.returncode == 1
        assert run("git", "tag").stdout == ""
        return done.stderr

    assert "which one?" in refused()
    assert "which one?" in refused("v0.3.0")
    assert 'CHANGELOG.md has no line "## 0.4.0 (' in refused("0.4.0")
    (tmp_path / "new").touch()
    assert "not committed" in refused("0.3.0")
