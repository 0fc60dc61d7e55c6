"""What `check` judges in a kernel is what its cell says, whatever the name stands for by then.

Each case is a notebook: cells by their ids, in the order in which they are run.
"""

import pytest
from jupyter_client.manager import start_new_kernel

from course_lib.files.workspace import Workspace

ID = "start/hello"
SET_UP = "from course_lib.exercises import check, hint, mine"
RIGHT = "def double(x):\n    return 2 * x"
WRONG = "def double(x):\n    return x**2"
BROKEN = "def double(x):\n    return 2 x"
RENAMED = "def doubled(x):\n    return 2 * x"
STOPS = "1 / 0\n\n\ndef double(x):\n    return 2 * x"
RAISES = "def double(x):\n    return [][1]"
DOOR = f'def double(x):\n    return mine("{ID}")(x)'
LOUD = """import sys
import matplotlib.pyplot as plt
from IPython.display import display


def double(x):
    display("from display")
    print("from stderr", file=sys.stderr)
    plt.plot(x.detach().flatten())
    return 2 * x"""
ASKS = "def double(x):\n    return int(input()) * x"
TAKES = """def scaled_dot_product_attention(q, k, v, mask=None):
    weights = softmax(q @ k.mT / k.shape[-1] ** 0.5, mask)
    return weights @ v"""
FORGET = """import shutil
get_ipython().history_manager.input_hist_raw[:] = [''] * len(In)
globals().pop("double", None)
shutil.rmtree(".course"); __import__("os").mkdir(".course")"""
CHECK = f'check("{ID}", double)'
MINE = f'double = mine("{ID}")'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs a cell in a kernel, in a workspace, and returns what it said."""
    folder = Workspace.make(tmp_path_factory.mktemp("Größe und Ärger")).folder
    manager, client = start_new_kernel(cwd=str(folder))

    def run_cell(cell, source):
        said = []

        def note(message):
            content = message["content"]
            shown = content.get("data", {}).get("text/plain", "")
            said.append(content.get("text") or shown or "\n".join(content.get("traceback", [])))

        # as JupyterLab does; what runs without a cell's id is of no known cell
        request = {"code": source, "silent": False, "store_history": True, "stop_on_error": False}
        message = client.session.msg("execute_request", request, metadata={"cellId": cell})
        client.execute = lambda *_, **__: client.shell_channel.send(message) or message["msg_id"]
        client.execute_interactive(source, output_hook=note, timeout=60)
        return "".join(said)

    run_cell("set-up", SET_UP)
    yield run_cell
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([("a", RIGHT)], "passed"),
        ([("a", WRONG)], "✗ start/hello: not yet"),
        ([("a", WRONG), ("a", RIGHT)], "passed"),
        ([("a", RIGHT), ("a", WRONG)], "not yet"),
        ([("a", RIGHT), ("a", BROKEN)], "cell @, line 2 is not Python: invalid"),
        ([("a", RIGHT), ("b", BROKEN)], "cell @, line 2 is not Python"),
        ([("a", RIGHT), ("a", BROKEN), ("a", RIGHT)], "passed"),
        ([("a", RIGHT), ("a", RENAMED)], "defines `doubled`, not `double`"),
        ([("a", RIGHT), ("a", "")], "passed"),  # an empty cell is not run at all
        ([("a", RIGHT), ("a", "1 + 1")], "not attempted yet"),
        ([("a", RIGHT), ("a", STOPS)], "passed"),
        ([("a", RAISES)], "[][1]  (in cell @)"),
        ([("a", RIGHT), ("b", RENAMED)], "passed"),  # a try of one's own, in another cell
        ([("b", WRONG), ("a", RIGHT), ("b", "1 + 1")], "passed"),
        ([("m", MINE)], "the library's own `double`: run the cell with yours"),
        ([("a", RIGHT), ("c", CHECK), ("m", MINE)], "passed"),
        ([("a", WRONG), ("m", MINE)], "not yet"),  # as after Run All
        ([("a", RIGHT), ("c", CHECK), ("a", WRONG), ("m", MINE)], "has passed and stays: `mine`"),
        ([("a", RIGHT), ("c", CHECK), ("m", MINE), ("a", BROKEN)], "cell @, line 2 is not Python"),
        ([("a", RIGHT), ("c", CHECK), ("m", MINE), ("a", RENAMED)], "defines `doubled`, not"),
        ([("a", RIGHT), ("c", CHECK), ("m", MINE), ("a", RIGHT)], "passed"),
        ([("a", RIGHT), ("d", "double = max")], "passed"),  # a name of another cell's
        ([("a", "double = lambda x: 2 * x")], "passed"),
        ([("a", DOOR)], "This calls `mine`, which has no place inside of an answer"),
        ([("a", "%time 1\n" + RIGHT)], "passed"),
        ([("a", "%%time\n" + RIGHT)], "passed"),
        ([(None, RIGHT), (None, BROKEN)], "cell @, line 2 is not Python"),
        ([(None, RIGHT), (None, RENAMED)], "passed"),  # of which cell, nobody knows
        ([("a", "from torch import square as double")], "not yet"),
        ([("a", ASKS)], "This calls `input`, and nobody is there to type"),
        ([("a", "def double(x):\n    exit()")], "This ends the whole program"),
    ],
)
def test_a_check_judges_what_its_cell_says(run, request, cells, said):
    run("forget", FORGET)
    run("set-up", SET_UP)
    for cell, source in cells:
        run(cell and f"{cell} of {request.node.name}", source)
    last = run("number", "print(len(In) - 2)").strip()
    shown = run("check", CHECK)
    assert said.replace("@", last) in shown
    assert ("✓" in shown) == (said == "passed")


def test_what_an_answer_shows_while_it_is_tried_is_not_shown(run):
    run("forget", FORGET)
    run("set-up", SET_UP)
    run("own", LOUD)
    shown = run("check", CHECK)
    assert "passed" in shown
    assert not any(x in shown for x in ("from display", "from stderr", "Figure"))
    assert "remark" not in shown  # a plot makes tensors where it likes


def test_a_cell_says_once_of_all_its_names_whose_they_are(run):
    run("forget", FORGET)
    run("set-up", SET_UP)
    run("own", RIGHT)
    run("check", CHECK)
    ids = (ID, "rnn/cell", "attention/softmax", "attention/dot_scores")
    assert run("mine", f"for each in {ids}:\n    mine(each)\nprint('as it runs')") == (
        "as it runs\n"
        "double: your own\n"
        "rnn_cell, softmax, dot_scores: the library's, until yours has passed in 01, 02\n"
    )


def test_what_an_answer_takes_from_an_earlier_lesson_prints_nothing_beside_its_panel(run):
    run("forget", FORGET)
    run("set-up", SET_UP)
    run("own", TAKES)
    run("earlier", 'softmax = mine("attention/softmax")')
    shown = run("check", 'check("self_attention/scaled_dot_product")').lstrip()
    assert shown.startswith("✓ self_attention/scaled_dot_product")
    assert "the library's, until" not in shown


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (f'check("{ID}")', "passed"),
        (f'check("{ID}", lambda x: x)', "not yet"),  # judged as it is given
        (f'check(double, "{ID}")', f'An exercise is named by its id: `check("{ID}")`.'),
        ('check("start/hallo")', "there is no exercise 'start/hallo': did you mean start/hello"),
        ('hint("start/hallo")', "there is no exercise 'start/hallo': did you mean start/hello"),
        ('check("rnn/cell")', "No cell that has run defines `rnn_cell`"),
    ],
)
def test_a_check_needs_an_id_alone_and_its_misuse_is_one_sentence(run, call, said):
    run("forget", FORGET)
    run("set-up", SET_UP)
    run("own", RIGHT)
    run("taken", MINE)
    shown = run("check", call)
    assert said in shown
    assert "Traceback" not in shown


def test_a_hint_that_run_all_asks_for_is_folded_and_not_counted(run):
    run("forget", FORGET)
    pause = "from course_lib.checking.notebook import session; session.AT_ONCE = {}"
    run("set-up", f"{pause.format(60)}\n{SET_UP}")
    for _ in range(2):
        assert run("hint", f'hint("{ID}")') == "Hint 1 of 2: run this cell alone to read it."
    run("pause", pause.format(0))
    assert run("hint", f'hint("{ID}")').startswith("Hint 1 of 2. Ask again")


SCORES = "def dot_scores(q, k):\n    return q @ k.mT"
SUM = "def weighted_sum(weights, v):\n    return weights @ v"
ATTEND = """from course_lib.attention import softmax
def attend(queries, states, mask=None):
    weights = softmax(dot_scores(queries, states), mask)
    return weighted_sum(weights, states), weights"""
PASSED = """from course_lib.files.workspace import Workspace
joined = ("attention/dot_scores", "attention/weighted_sum", "attention/attend")
print(*(Workspace.find().record(x).passed for x in joined))"""


@pytest.mark.parametrize(
    ("cells", "said", "passed"),
    [
        ((SCORES, SUM, ATTEND), "✓ attention/attend", "True True True"),
        ((SCORES, SUM.replace("weights @ v", "v"), ATTEND), "✗ attention/weighted_sum", "True F"),
        ((SCORES.replace("k.mT", "q.mT"), SUM, ATTEND), "✗ attention/dot_scores", "False False"),
        ((SCORES, SUM), "○ attention/attend", "True True False"),
        ((ATTEND,), "✓ attention/attend", "False False True"),  # on the library's
    ],
)
def test_a_check_tries_what_it_joins_first_and_shows_the_first_that_is_wrong(
    run, cells, said, passed
):
    run("forget", FORGET)
    run("set-up", SET_UP)
    for place, source in enumerate(cells):
        run(f"{place} of {said}{passed}", source)
    shown = run("check", 'check("attention/attend")')
    assert said in shown
    assert run("record", PASSED).startswith(passed)
