"""What goes with an answer is what it needs, in an order in which it can be executed."""

import ast
import sys
from collections import Counter

import pytest

from course_lib.answers.source import define
from course_lib.checking.notebook.statements import Notebook, statements

TRAINING = (
    "model, optimizer = make(), make()\nlosses = []\n"
    "for step in range(1000):\n    loss = model(step)\n    loss.backward()\n"
    "    optimizer.step()\n    losses.append(loss.item())"
)
ANSWER = "def answer(x):\n    return {}"


def needed(*cells, name="answer"):
    """List the texts of the statements that go with the last definition of a name."""
    every = [x for n, cell in enumerate(cells) for x in statements(n, cell, ast.parse(cell))]
    last = [x for x in every if name in x.binds and x.defines][-1]
    return [x.text for x in Notebook(every).needed(last, name)[0]]


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["a = 1\nb = a + 1\nc = b\nprint(c)\ninput()"], "b"),
        (["t = {}\nfor i in range(3):\n    t[i] = i\nt.update(a=2)\nplot(t)"], "t['a']"),
        (["import torch as t, os\nt.manual_seed(0)"], "t.ones(2) if False else 2"),
        (["def f():\n    return K\nK = 1", "K = 2"], "f()"),
        (["x = 1\nif x:\n    k = 2\nelse:\n    k = 3"], "k"),
        (["k = 1\ntry:\n    k = 2\nfinally:\n    pass"], "k"),
        (["for k in range(3):\n    pass"], "k"),
        (["with open('/dev/null') as file:\n    k = 2"], "k"),
        (["s = []\ns += [1]\ns.extend([2, 3])\ndel s[0]"], "s[0]"),
        (["[(k := 2) for _ in range(1)]\nk = k"], "k"),
        (["match 2:\n    case int(k):\n        pass"], "k"),
        (["class C:\n    k = 1\nC.k = 2"], "C.k"),
    ],
)
def test_an_answer_gives_what_it_gives_in_its_notebook(cells, wanted):
    source = "\n".join(needed(*cells, ANSWER.format(wanted)))
    assert define(source, "answer")(None) == 2
    assert not any(word in source for word in ("print", "input", "plot", "seed", "os"))


def test_what_follows_the_answer_is_too_late_unless_nothing_else_gives_the_name():
    answer = ANSWER.format("K + later")
    source = needed("K = 1", answer, "K = 2\nlater = base + 1\nbase = 5", "base = 3\nlater = 7")
    assert define("\n".join(source), "answer")(None) == 1 + 6


@pytest.mark.parametrize(
    "before",
    [
        TRAINING,
        "FACTOR = [2]\n" + TRAINING,
        f"FACTOR = [2]\n{TRAINING}\ncheck('x', answer)\nplt.plot(losses)",
        "FACTOR = [2]\ntrain(FACTOR)\nresult = train(FACTOR)",
        "FACTOR = [2]\nfor step in range(9):\n    optimizer.step()\n    FACTOR.append(step)",
    ],
)
def test_a_training_stays_behind(before):
    source = "\n".join(needed(before, ANSWER.format("FACTOR[0] * x")))
    assert "step" not in source
    assert "train" not in source


def test_a_class_goes_along_with_its_patches_and_without_its_demonstrations():
    model, later = "class Model:\n    k = 1", "Model.k = 2"
    demonstration = "Model().train()\nfor step in range(9):\n    Model.step = step\nModel(3).plot()"
    again = "Model = mine('a/model')\nModel.k = 3"
    cells = (model, demonstration, later, "check('a/model', Model)", again)
    assert needed(*cells, name="Model") == [model, later]


def test_a_loop_goes_along_with_all_that_it_changes():
    loop = "for i in range(2):\n    a.append(i)\n    b.append(i)"
    texts = needed(f"a = []\nb = []\n{loop}", ANSWER.format("a + b"))
    assert loop in texts
    assert loop not in needed(f"a = []\nb = []\n{loop}", ANSWER.format("a"))


def test_what_is_read_at_once_comes_first_though_a_later_cell_has_it():
    answer = "def answer(x, k=K):\n    return k"
    source = "\n".join(needed("Z = 0", answer, "import math\nBASE = 1", "K = BASE + 1"))
    assert define(source, "answer")(None) == 2


def test_a_statement_that_fails_costs_the_names_that_it_has_not_given():
    source = "k = 1\nfor k in (2, 3):\n    raise ValueError\ndef answer(x):\n    return k\n"
    assert define(source, "answer")(None) == 2
    with pytest.raises(NameError):
        define("k = 1\nk = missing\ndef answer(x):\n    return k\n", "answer")(None)


@pytest.mark.parametrize(
    "line",
    ["c{0} = {0}", "c{0} = c{1} + 1", "c{0} = 1; d.append(c{0})", "if d: c{0} = 1; d.append(1)"],
)
def test_the_work_grows_with_the_statements_and_not_faster(line):
    def calls(n):
        lines = [line.format(i, max(i - 1, 0)) for i in range(n)]
        names = ", ".join(f"c{i}" for i in range(n))
        cells = ["d = []", "\n".join(lines), f"def answer(x):\n    return d, [{names}]"]
        count = Counter()
        before = sys.getprofile()
        sys.setprofile(lambda frame, event, argument: count.update([event]))
        try:
            found = needed(*cells)
        finally:
            sys.setprofile(before)
        assert len(found) > n
        return count.total()

    assert calls(800) < 6 * calls(200)  # of a square it would be 16
