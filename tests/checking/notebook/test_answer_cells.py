"""What of a notebook counts as an answer, and what is said of the rest."""

import ast
import contextlib
import json
from collections import Counter

import pytest
import torch

from course_lib.answers.answer import InProcess
from course_lib.answers.source import define, define_on, source_of
from course_lib.checking.catalogue import ids, load
from course_lib.checking.notebook.answer_cells import warning
from course_lib.checking.notebook.solution_text import solution_text, standalone
from course_lib.checking.notebook.submission import find_answers, read, verdicts
from course_lib.checking.stubs import stub
from course_lib.checking.verdict import judge
from course_lib.files import ipynb
from course_lib.files.ipynb import NotANotebook
from tests import TENTH

RIGHT = "def double(x):\n    return 2 * x"
WRONG = "def double(x):\n    return x**2"
CONFLICT = "<<<<<<< HEAD\nK = 2\n=======\nK = 3\n>>>>>>> theirs"
SET_UP = "import torch\nfrom course_lib.exercises import check, mine"


@pytest.fixture
def notebook(save_notebook, tmp_path):
    """Save a notebook and read it; only `start/hello` is asked for."""
    return lambda *cells: read(save_notebook(tmp_path / "00.ipynb", *cells, lesson="00"))


def answer(submission, exercise_id="start/hello"):
    return submission.attempts[exercise_id].define()


def test_a_name_belongs_to_one_exercise_of_a_lesson():
    names = Counter((load(exercise_id).lesson, load(exercise_id).name) for exercise_id in ids())
    assert max(names.values()) == 1


def test_an_answer_brings_what_it_needs_and_nothing_else_of_the_notebook(notebook):
    found = notebook(
        SET_UP,
        "%matplotlib inline\n!ls\nhelp?\nFACTOR: float = 2.0\nSHIFT = -1\nx = train()",
        "raise SystemExit('a cell that is not to run')",
        "def helper(x):\n    return FACTOR * x",
        ("start/hello", "@torch.no_grad()\ndef double(x):\n    return helper(x)"),
        "%%bash\nrm -rf nothing",
    )
    source = found.attempts["start/hello"].source
    assert source.split("\n")[0] == "import torch"
    assert answer(found)(3) == 6
    assert not any(word in source for word in ("SHIFT", "train", "SystemExit", "rm", "mine"))
    assert found.remarks == []


def test_helpers_are_those_known_when_the_answer_was_made(notebook):
    helpers = "def factor():\n    return {}"
    own = ("start/hello", "def double(x):\n    return factor() * x")
    assert answer(notebook(helpers.format(2), own, helpers.format(3)))(1) == 2
    assert answer(notebook(own, helpers.format(3)))(1) == 3


def test_taking_ones_own_answer_back_does_not_count_as_the_answer(notebook):
    found = notebook(
        SET_UP,
        ("start/hello", WRONG),
        'check("start/hello", double)',
        'double = mine("start/hello")',
    )
    assert answer(found)(3) == 9


def test_an_exercise_runs_on_what_mine_gives(save_notebook, tmp_path):
    found = read(
        save_notebook(
            tmp_path / "03.ipynb",
            SET_UP,
            "def softmax(scores):\n    raise NotImplementedError",
            'softmax = mine("attention/softmax")',
            (
                "attention/weighted_sum",
                "def weighted_sum(weights, v):\n    return softmax(weights)",
            ),
        )
    )
    result = answer(found, "attention/weighted_sum")(torch.zeros(1, 2), None)
    assert result.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("magic", ["%%time", "%%capture out", "\n%%timeit -n1"])
def test_magics_that_run_python_hide_no_answer(notebook, magic):
    assert answer(notebook(("start/hello", f"{magic}\n{RIGHT}")))(3) == 6


@pytest.mark.parametrize(
    ("cells", "remark", "result"),
    [
        ([("start/hello", RIGHT), SET_UP], None, 6),
        ([RIGHT], None, 6),
        (
            [("start/hello", WRONG), SET_UP, ("start/hello", RIGHT)],
            "start/hello: cells 2 and 4 define `double`; the last one counts.",
            6,
        ),
        (
            [SET_UP],
            "start/hello: no cell defines `double`; `course reset start/hello` puts the stub back.",
            None,
        ),
        (
            ["for x in y\n    pass", ("start/hello", RIGHT)],
            "cell 2, line 1 is not Python: expected ':'; nothing in that cell counts.",
            6,
        ),
        (
            [f"K = 1\n{CONFLICT}", ("start/hello", RIGHT)],
            "cell 2 has the marks of a merge conflict, line 2; nothing in that cell counts.",
            6,
        ),
    ],
    ids=["moved", "unmarked", "doubled", "deleted", "another is broken", "merged"],
)
def test_unusual_cells_cost_one_sentence(notebook, cells, remark, result):
    found = notebook(*cells)
    assert found.remarks == ([remark] if remark else [])
    attempt = found.attempts["start/hello"]
    assert attempt.define()(3) == result if result else attempt.source is None


@pytest.mark.parametrize("header", ["def double(x):\n    return (2", "def dobule(x)\n    \x00"])
def test_an_exercise_cell_that_is_not_python_is_an_error(notebook, header, handle):
    (found,) = verdicts(notebook(SET_UP, ("start/hello", header)), handle)
    assert found.status == "error"
    assert found.message.startswith("This code cannot be executed: cell 3")
    assert found.points == 0


def test_an_answer_under_another_name_is_named(notebook, handle):
    for source in ("def helo(x):\n    return 2 * x", "helo = other = lambda x: 2 * x"):
        submission = notebook(SET_UP, ("start/hello", source))
        (found,) = verdicts(submission, handle)
        assert found.status == "error"
        assert found.message == "Cell 3, that of start/hello, defines `helo`, not `double`."
        assert submission.remarks == []


def test_the_exercises_own_cell_may_give_the_name_to_any_function(notebook, handle):
    partial = "from functools import partial\ndouble = partial(torch.mul, torch.tensor(2))"
    wrapped = f"{RIGHT}\ndouble = torch.enable_grad()(double)"
    for source in ("double = lambda x: 2 * x", partial, wrapped):
        (found,) = verdicts(notebook(SET_UP, ("start/hello", source)), handle)
        assert found.status == "passed", source


WEIGHTED = "def weighted_sum(weights, v):\n    return weights @ v"
SOFTMAX = "def softmax(scores, mask=None):\n    return {}"
LOOKUP = source_of(load("attention/soft_lookup").reference)


@pytest.mark.parametrize("body", ["scores * 0", "torch.softmax(scores, -1)", "not_there(scores)"])
@pytest.mark.parametrize("between", ["", "softmax = mine('attention/softmax')"])
def test_one_mistake_costs_once(save_notebook, tmp_path, handle, body, between):
    names = "from torch import Tensor\nfrom jaxtyping import Bool, Float\nfrom einops import *"
    # the last one has moved to an exploration, and is still in older notebooks of the lesson
    lookup = ("attention/soft_lookup", LOOKUP)
    cells = [f"{SET_UP}\n{names}", SOFTMAX.format(body), between, WEIGHTED, lookup]
    cells.insert(1, source_of(load("attention/dot_scores").reference))
    path = save_notebook(tmp_path / "02.ipynb", *cells, lesson="02")
    found = {
        x.exercise: x for x in verdicts(find_answers(ipynb.read(path), "", alone=True), handle)
    }
    assert found["attention/softmax"].status not in ("passed", "not attempted")
    caller = found["attention/soft_lookup"]
    assert caller.status == "passed", caller.message
    assert caller.message.endswith("(Judged on the library's `softmax`: yours has not passed.)")


def test_an_answer_borrows_only_from_those_that_come_before_it(save_notebook, tmp_path, handle):
    through = "def softmax(scores, mask=None):\n    return soft_lookup(scores, None, None, 1)"
    stub_of_later = stub(load("attention/soft_lookup").reference)
    cells = [f"{SET_UP}\nfrom jaxtyping import *\nfrom torch import Tensor", through, stub_of_later]
    found = read(save_notebook(tmp_path / "02.ipynb", *cells, lesson="02"))
    attempt = found.attempts["attention/softmax"]
    assert attempt.stands_on == ()
    assert attempt.borrowing([load("attention/soft_lookup")]) == attempt


@pytest.mark.parametrize("exercise_id", ids()[TENTH])
def test_a_printed_solution_and_a_borrowed_one_stand_alone(exercise_id):
    exercise = load(exercise_id)
    borrowed = define(standalone(exercise), exercise.name)
    assert judge(exercise, InProcess(borrowed)).status == "passed"
    assert solution_text(exercise).endswith(source_of(exercise.reference))


@pytest.fixture
def handle():
    """Hold answers in this process, as a child does in its own."""

    class Here(InProcess):
        def hold(self, source, name, others=()):
            self._answer = None
            with contextlib.suppress(NameError):
                self._answer = define_on(others, source, name)

    return Here(None)


def test_an_answer_is_parsed_in_its_cell_and_as_a_whole_and_nowhere_else(
    notebook, handle, monkeypatch
):
    parsed, parse = [], ast.parse
    monkeypatch.setattr(ast, "parse", lambda text, *more: parsed.append(text) or parse(text, *more))
    submission = notebook(SET_UP, "FACTOR = 3", "def double(x):\n    return FACTOR * x + 0.125")
    (found,) = verdicts(submission, handle)
    assert found.status == "wrong"
    assert warning(submission.attempts["start/hello"]) is None
    assert sum("0.125" in text for text in parsed) == 2


def test_a_stub_and_a_deleted_cell_are_not_attempted(notebook, handle):
    empty = stub(load("start/hello").reference)
    for cells in (["from torch import Tensor\nfrom jaxtyping import Float", empty], [SET_UP]):
        (found,) = verdicts(notebook(*cells), handle)
        assert (found.status, found.points) == ("not attempted", 0)


def test_an_error_names_its_line_as_the_cell_counts_it(notebook, handle):
    broken = "# mine\n\ndef double(x):\n    factor = 2\n    return factor / 0"
    (found,) = verdicts(notebook(SET_UP, "K = 1", ("start/hello", broken)), handle)
    assert found.failure.error.line == 5
    assert found.failure.error.text == "return factor / 0  (in cell 4)"


def test_a_notebook_of_format_3_is_read(tmp_path):
    path, metadata = tmp_path / "old.ipynb", {"course": {"lesson": "00"}}
    cells = [
        {"cell_type": "heading", "level": 1, "source": ["Start"]},
        {"cell_type": "code", "input": RIGHT.splitlines(keepends=True), "prompt_number": 3},
    ]
    old = {"worksheets": [{"cells": cells}], "metadata": metadata, "nbformat": 3}
    path.write_text(json.dumps(old))
    assert answer(read(path))(3) == 6


def test_the_lesson_says_which_exercises_then_the_cells_then_the_names(save_notebook, tmp_path):
    path = tmp_path / "some.ipynb"
    asked = [exercise_id for exercise_id in ids() if load(exercise_id).lesson == "02"]
    assert list(read(save_notebook(path, RIGHT, lesson="02")).attempts) == asked
    marked = save_notebook(path, RIGHT, ("attention/softmax", "pass"), lesson="99")
    assert list(read(marked).attempts) == ["attention/softmax"]
    assert list(read(save_notebook(path, RIGHT)).attempts) == ["start/hello"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no file"),
        (b"\xff\xfe", "its text is UTF-16"),
        (f'{{"cells": [\n{CONFLICT}\n]}}'.encode(), "marks of a merge conflict, line 2"),
        (b"[" * 100_000, "its content is not JSON"),
        (b"[1, 2]", "not a notebook of format 3 or 4"),
        (b'{"worksheets": []}', "holds no exercise"),
        (b'{"worksheets": [{"cells": [{"cell_type": "code", "input": 3}]}]}', "of format 3 or 4"),
        (b'{"cells": [{"cell_type": "code", "source": 3}]}', "not a notebook of format 3 or 4"),
        (b'{"cells": []}', "holds no exercise"),
    ],
)
def test_what_is_no_notebook_of_the_course_is_named(tmp_path, content, said):
    path = tmp_path / "bad.ipynb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(NotANotebook, match=said):
        read(path)
