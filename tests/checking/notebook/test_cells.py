"""What `check` judges in a kernel is what its cell says: never a function that an older run left.

Each case is a notebook: cells by their ids, in the order in which they are run.
"""

import pytest
from jupyter_client.manager import start_new_kernel

from course_lib.files.workspace import Workspace

ID = "start/hello"
SET_UP = "from course_lib.exercises import check, mine"
RIGHT = "def double(x):\n    return 2 * x"
WRONG = "def double(x):\n    return x**2"
BROKEN = "def double(x):\n    return 2 x"
RENAMED = "def doubled(x):\n    return 2 * x"
STOPS = "1 / 0\n\n\ndef double(x):\n    return 2 * x"
CHECK = f'check("{ID}", double)'
MINE = f'double = mine("{ID}")'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs a cell in a kernel, in a workspace, and returns what it said."""
    folder = Workspace.make(tmp_path_factory.mktemp("workspace")).folder
    manager, client = start_new_kernel(cwd=str(folder))

    def run_cell(cell, source):
        said = []

        def note(message):
            content = message["content"]
            said.append(content.get("text") or content.get("data", {}).get("text/plain", ""))

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
        ([("a", RIGHT), ("a", BROKEN)], "since cell [@] is not Python (line 2: invalid"),
        ([("a", RIGHT), ("b", BROKEN)], "since cell [@] is not Python"),
        ([("a", RIGHT), ("a", BROKEN), ("a", RIGHT)], "passed"),
        ([("a", RIGHT), ("a", RENAMED)], "since cell [@] defines no `double`"),
        ([("a", RIGHT), ("a", "")], "passed"),  # an empty cell is not run at all
        ([("a", RIGHT), ("a", "1 + 1")], "since cell [@] defines no `double`"),
        ([("a", RIGHT), ("a", STOPS)], "and not what cell [@] says"),
        ([("a", RIGHT), ("b", RENAMED)], "passed"),  # a try of one's own, in another cell
        ([("b", WRONG), ("a", RIGHT), ("b", "1 + 1")], "passed"),
        ([("a", ""), ("m", MINE)], "the one that `mine` returned. Run the cell with yours"),
        ([("a", RIGHT), ("c", CHECK), ("m", MINE)], "passed"),  # the same as the cell says
        ([("a", RIGHT), ("c", CHECK), ("a", WRONG), ("m", MINE)], "and not what cell ["),
        ([("a", RIGHT), ("c", CHECK), ("m", MINE), ("a", BROKEN)], "since cell [@] is not Python"),
        ([("a", RIGHT), ("c", CHECK), ("m", MINE), ("a", RENAMED)], "defines no `double`"),
        ([("a", RIGHT), ("c", CHECK), ("m", MINE), ("a", RIGHT)], "passed"),
        ([("a", "%time 1\n" + RIGHT)], "passed"),
        ([("a", "%%time\n" + RIGHT)], "passed"),
        ([(None, RIGHT), (None, BROKEN)], "since cell [@] is not Python"),
        ([(None, RIGHT), (None, RENAMED)], "passed"),  # of which cell, nobody knows
        ([("a", "from torch import square as double")], "not yet"),
    ],
)
def test_a_check_judges_what_its_cell_says_or_nothing(run, request, cells, said):
    run("set-up", f"In[:] = [''] * len(In)\n{SET_UP}")
    for cell, source in cells:
        run(cell and f"{cell} of {request.node.name}", source)
    last = run("number", "print(len(In) - 2)").strip()
    shown = run("check", CHECK)
    assert said.replace("@", last) in shown
    assert ("passed" in shown) == (said == "passed")
