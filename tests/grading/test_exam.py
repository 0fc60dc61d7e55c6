"""An exam of find the bug: drawn for each student, and won by nobody who has not found it."""

import json
import os
import re
import subprocess
import sys

import pytest

from course_lib.answers.source import source_of
from course_lib.checking import catalogue
from course_lib.checking.laws.faults import faults
from course_lib.command_line import main
from course_lib.files import ipynb
from course_lib.grading.exports import exam_pages
from course_lib.grading.judging.isolation import best_level
from course_lib.grading.marks import exam_key

GRU, SEED = "rnn/gru_cell", "spring"
CLASS = "id,name,email\nada,Ada Lovelace,ada@x.org\nbob,Bob K,\neve,,eve@x.org\nzoe,,\nmax,,\n"
TRUST = ["--trust"] if best_level() == "plain" else []


@pytest.fixture
def one_fault(monkeypatch):
    """Let all pages have one fault, so that a test knows how it is mended."""
    [fault] = [x for x in faults(catalogue.load(GRU)) if x.wrong == "x_z - h_z"]
    monkeypatch.setattr(exam_pages, "faults", lambda exercise: [fault])


def words_for(folder, seed=SEED):
    """Write who is in the class, and return the command that hands out lesson 01."""
    roster = folder.parent / "class.csv"
    roster.write_text(CLASS)
    return ["exam", "01", f"--seed={seed}", f"--roster={roster}", f"--out={folder}"]


def hand_out(folder, seed=SEED):
    """Run the command, and return what it wrote."""
    assert main.main(words_for(folder, seed)) == 0
    return written(folder)


def hand_out_elsewhere(folder):
    """Run the command in a process of its own, which has other hashes and two threads."""
    command = [sys.executable, "-m", "course_lib.command_line", *words_for(folder)]
    variables = {"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "2"}
    subprocess.run(command, env=os.environ | variables, capture_output=True, check=True)
    return written(folder)


def written(folder):
    return {x.relative_to(folder): x.read_bytes() for x in folder.rglob("*.*")}


def test_the_same_class_has_the_same_bytes_and_each_student_other_pages(tmp_path, capsys):
    first, again = hand_out(tmp_path / "a"), hand_out_elsewhere(tmp_path / "b")
    said = capsys.readouterr().out
    assert first == again
    assert first.keys() == hand_out(tmp_path / "c", "autumn").keys()
    assert len({*first.values()}) == len(first) == 6
    other = (tmp_path / "c" / "ada" / "exam.ipynb").read_bytes()
    assert other != (tmp_path / "a" / "ada" / "exam.ipynb").read_bytes()
    assert re.search(rf"{GRU}: \d+ faults, .* cases fail; (\d+) of \1 lines are in no public", said)
    assert "rnn/cell: no page, since its answer is so short" in said
    assert "2 of 4 exercises have pages." in said
    key = json.loads(first[next(x for x in first if x.name == "key.json")])
    faulty = [x["pages"][GRU] for x in key["students"]]
    assert len({x["wrong"] for x in faulty}) > 1


def with_answer(content, source):
    notebook = json.loads(content)
    for cell in notebook["cells"]:
        if ipynb.exercise(cell) == GRU:
            ipynb.set_text(cell, source(ipynb.code(cell)))
    return json.dumps(notebook)


def mended(text):
    return re.sub(r"(rearrange_\d+) - (rearrange_\d+)", r"\1 + \2", text)


def test_only_who_mends_the_page_of_his_own_has_its_points(one_fault, tmp_path, capsys):
    pages = {x.parts[0]: y for x, y in hand_out(tmp_path / "exam").items() if x.parts[1:]}
    zoes = {}
    with_answer(pages["zoe"], lambda text: zoes.setdefault("mended", mended(text)))
    answers = {
        "ada": mended,
        "bob": lambda text: text,
        "eve": lambda text: source_of(catalogue.load(GRU).reference),
        "max": lambda text: zoes["mended"],
        "you": mended,
    }
    for student, source in answers.items():
        folder = tmp_path / "in" / student
        folder.mkdir(parents=True)
        page = pages.get(student, pages["zoe"])
        (folder / "exam.ipynb").write_text(with_answer(page, source))
    words = ["grade", tmp_path / "in", "--exam", tmp_path / "exam" / "key.json", "--jobs=1"]
    words += ["--out", tmp_path / "out", "--seconds=60", *TRUST]
    assert main.main([str(x) for x in words]) == 0
    rows = json.loads((tmp_path / "out" / "results.json").read_text("utf8"))["submissions"]
    found = {x["student"]: x["exercises"].get(GRU) for x in rows}
    most = catalogue.outline(GRU).points
    assert {x: y and y["points"] for x, y in found.items()} == {
        "ada": most, "bob": 0, "eve": 0, "max": 0, "you": 0, "zoe": None,
    }  # fmt: skip
    fault = "The fault was `x_z - h_z` for `x_z + h_z`."
    for student, said in {
        "ada": f"Every case and every property holds. {fault}",
        "bob": f"This is the page as it was handed out. {fault}",
        "you": "The key has no page of this student.",
    }.items():
        assert found[student]["message"] == said
    for student in ("eve", "max"):
        assert "is not the page that was handed out" in found[student]["message"]
    assert rows[0]["name"] == "Ada Lovelace"


def test_what_is_no_key_is_refused(tmp_path):
    for text in ("", "[]", '{"students": [{"id": 1}]}'):
        with pytest.raises(ValueError, match="no key that `course exam` has written"):
            exam_key.read(text)
