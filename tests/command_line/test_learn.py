"""What `course learn` hands out, and how it starts Lab."""

import ast
import contextlib
import errno
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import start_new_kernel
from jupyter_server import serverapp
from jupyterlab.commands import get_app_dir

from course_lib.command_line import learn
from course_lib.command_line.main import main
from course_lib.data import store
from course_lib.files import ipynb, jupyter_kernel
from course_lib.files.paths import ROOT
from course_lib.files.releases import INSTALLATION, LINK, continued, solution_link
from course_lib.files.workspace import Workspace

ID = "start/hello"


@pytest.fixture
def course(tmp_path, save_notebook, monkeypatch):
    """Stand a small course up in a folder: two notebooks, and no network and no Lab."""
    notebooks = tmp_path / "course" / "notebooks"
    notebooks.mkdir(parents=True)
    save_notebook(notebooks / "00_start.ipynb", "1 + 1", (ID, "stub 1"), lesson="00")
    save_notebook(notebooks / "01_rnn.ipynb", "import torch", lesson="01")
    (notebooks / "explorations").mkdir()
    save_notebook(notebooks / "explorations" / "01_gates.ipynb", "1", lesson="01_gates")
    notebook = ipynb.read(notebooks / "00_start.ipynb")
    notebook["cells"][1] |= {"execution_count": 1, "outputs": [{"output_type": "stream"}]}
    ipynb.write(notebooks / "00_start.ipynb", notebook)
    monkeypatch.setattr(learn, "ROOT", notebooks.parent)
    started = []
    monkeypatch.setattr(learn, "become", lambda command: started.append(command) or 0)
    return notebooks, Workspace.make(tmp_path / "Größe und Ärger"), started


def files(workspace):
    found = workspace.folder.rglob("*.ipynb")
    return {path.relative_to(workspace.folder).as_posix(): path.read_bytes() for path in found}


def test_each_notebook_comes_once_without_outputs_and_is_never_overwritten(course):
    notebooks, workspace, _ = course
    assert learn.hand_out(workspace, notebooks) == []
    handed = files(workspace)
    assert sorted(handed) == ["00_start.ipynb", "01_rnn.ipynb", "explorations/01_gates.ipynb"]
    cell = json.loads(handed["00_start.ipynb"])["cells"][1]
    assert (cell["outputs"], cell["execution_count"]) == ([], None)

    (workspace.folder / "00_start.ipynb").write_text("my own")
    (workspace.folder / "01_rnn.ipynb").unlink()
    [message] = learn.hand_out(workspace, notebooks)
    assert "00_start.ipynb is not a notebook" in message
    assert "`course reset ID`, with an exercise of that lesson, mends it." in message
    assert files(workspace) == handed | {"00_start.ipynb": b"my own"}


def test_its_own_place_is_made_and_continued_by_it_and_found_by_no_other_command(
    course, tmp_path, monkeypatch, capsys
):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    made = learn.ROOT / "workspace"
    for _ in range(2):
        assert main(["learn"]) == 0
        assert capsys.readouterr().out == f"Your notebooks are in {made}.\n"
    assert Workspace.at(made)
    assert main(["progress"]) == 2
    monkeypatch.setenv("COURSE_WORKSPACE", str(tmp_path / "chosen"))
    assert main(["learn"]) == 0
    assert Workspace.at(tmp_path / "chosen")


def touch(workspace, name, source="my note"):
    notebook = ipynb.read(workspace.folder / name)
    notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": source})
    ipynb.write(workspace.folder / name, notebook)


def test_a_new_release_takes_the_place_of_what_nobody_has_touched(course, save_notebook):
    notebooks, workspace, _ = course
    learn.hand_out(workspace, notebooks)
    save_notebook(notebooks / "00_start.ipynb", "1 + 1", (ID, "stub 2"), lesson="00")
    save_notebook(notebooks / "explorations" / "01_gates.ipynb", "2", lesson="01_gates")
    assert learn.hand_out(workspace, notebooks) == []
    assert sorted(files(workspace)) == [
        "00_start.ipynb", "01_rnn.ipynb", "explorations/01_gates.ipynb"
    ]  # fmt: skip
    new = ipynb.read(workspace.folder / "00_start.ipynb")
    assert ipynb.text(new["cells"][-1]) == "stub 2"


def test_a_new_release_lies_beside_what_is_touched_with_the_answers(course, save_notebook):
    notebooks, workspace, _ = course
    learn.hand_out(workspace, notebooks)
    workspace.keep(ID, "my answer\n")
    touch(workspace, "00_start.ipynb")
    before = files(workspace)
    steps = [("stub 2", ""), ("stub 3", ""), ("stub 4", "-2")]  # the second is replaced
    for source, number in steps:
        beside = f"00_start.new{number}.ipynb"
        if number:
            touch(workspace, "00_start.new.ipynb")
            before = files(workspace)
        save_notebook(notebooks / "00_start.ipynb", "1 + 1", (ID, source), lesson="00")
        (message,) = learn.hand_out(workspace, notebooks)
        assert "00_start.ipynb" in message
        assert beside in message
        assert ID in message
        new = ipynb.read(workspace.folder / beside)
        assert [ipynb.text(cell) for cell in new["cells"]] == ["# A lesson", "1 + 1", "my answer"]
        before[beside] = (workspace.folder / beside).read_bytes()
        assert learn.hand_out(workspace, notebooks) == []
        assert files(workspace) == before


def test_an_answer_that_is_begun_goes_into_the_new_release(course, save_notebook):
    notebooks, workspace, _ = course
    stub, other = "def double(x):\n    raise NotImplementedError", "rnn/cell"
    for release in ("1", "2"):
        cells = (ID, stub), (other, f"{stub}  # {release}")
        save_notebook(notebooks / "00_start.ipynb", release, *cells, lesson="00")
        learn.hand_out(workspace, notebooks)
        if release == "1":
            own = ipynb.read(workspace.folder / "00_start.ipynb")
            ipynb.set_text(own["cells"][2], "def double(x):\n    half = done")
            ipynb.write(workspace.folder / "00_start.ipynb", own)
    new = ipynb.read(workspace.folder / "00_start.new.ipynb")
    texts = [ipynb.text(cell) for cell in new["cells"][2:]]
    assert texts == ["def double(x):\n    half = done", f"{stub}  # 2"]


def test_what_is_of_an_unknown_release_is_not_taken_for_the_newest(course, save_notebook):
    notebooks, workspace, _ = course
    save_notebook(workspace.folder / "00_start.ipynb", "another course")
    save_notebook(workspace.folder / "01_rnn.ipynb", "an older copy", lesson="01")
    foreign, old = learn.hand_out(workspace, notebooks)
    assert foreign == (
        "00_start.ipynb is none of this course's: it stays, and ours is beside it as "
        "00_start.new.ipynb."
    )
    assert old.startswith("01_rnn.ipynb has changed")
    assert learn.hand_out(workspace, notebooks) == []
    assert continued(workspace, "00_start.ipynb") == "01_rnn.ipynb"
    (workspace.folder / "01_rnn.ipynb").unlink()
    assert continued(workspace, "00_start.ipynb") == "00_start.new.ipynb"


def test_lab_opens_the_page_that_its_reader_has_changed_last(course):
    notebooks, workspace, _ = course
    learn.hand_out(workspace, notebooks)
    assert continued(workspace, "00_start.ipynb") == "00_start.ipynb"
    for age, name in ((9, "explorations/01_gates.ipynb"), (99, "01_rnn.ipynb")):
        touch(workspace, name)
        os.utime(workspace.folder / name, (time.time() - age,) * 2)
    page = continued(workspace, "00_start.ipynb")
    assert page == "explorations/01_gates.ipynb"
    command = learn.lab_command(workspace.folder, None, [], page)
    assert f"--LabApp.default_url=/lab/tree/{page}" in command


def test_no_link_leaves_the_workspace(tmp_path):
    workspace = Workspace.make(tmp_path)
    learn.hand_out(workspace, ROOT / "notebooks")
    for path in ipynb.listed(workspace.folder):
        for cell in ipynb.read(path)["cells"]:
            for link in LINK.findall(ipynb.text(cell)) if cell["cell_type"] == "markdown" else ():
                target = link[1].partition("#")[0]
                assert ":" in target or not target or (path.parent / target).is_file(), link


def test_a_link_to_a_solution_is_not_handed_out_and_no_new_release(course):
    notebooks, workspace, _ = course
    notebook = ipynb.read(notebooks / "00_start.ipynb")
    said = "**Exercise: Double** · 2 minutes · ●○○"
    notebook["cells"][0]["source"] = said
    ipynb.write(notebooks / "00_start.ipynb", notebook)
    learn.hand_out(workspace, notebooks)
    handed = files(workspace)
    notebook["cells"][0]["source"] = said + solution_link("../course_lib/start.py")
    ipynb.write(notebooks / "00_start.ipynb", notebook)
    assert learn.hand_out(workspace, notebooks) == []
    (workspace.folder / "00_start.ipynb").unlink()
    assert learn.hand_out(workspace, notebooks) == []
    assert files(workspace) == handed


def test_a_notebook_is_handed_out_as_lab_saves_it_so_that_opening_it_changes_nothing(course):
    notebooks, workspace, _ = course
    learn.hand_out(workspace, notebooks)
    metadata = ipynb.read(workspace.folder / "00_start.ipynb")["metadata"]
    manager, client = start_new_kernel(kernel_name=metadata["kernelspec"]["name"])
    try:
        told = client.kernel_info(reply=True, timeout=60)["content"]["language_info"]
        assert metadata["language_info"] == told
        assert metadata["kernelspec"]["display_name"] == manager.kernel_spec.display_name
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_outputs_alone_are_no_new_release(course):
    notebooks, workspace, _ = course
    learn.hand_out(workspace, notebooks)
    notebook = ipynb.read(notebooks / "00_start.ipynb")
    notebook["cells"][1]["execution_count"] = 7
    ipynb.write(notebooks / "00_start.ipynb", notebook)
    assert learn.hand_out(workspace, notebooks) == []


@pytest.mark.parametrize("call", ["os.replace", "tempfile.mkstemp"])
@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS])
def test_a_workspace_that_cannot_be_written_loses_nothing(
    course, save_notebook, monkeypatch, capsys, call, reason
):
    def refuse(*_, **__):
        raise OSError(reason, os.strerror(reason))

    notebooks, workspace, started = course
    learn.hand_out(workspace, notebooks)
    touch(workspace, "00_start.ipynb")
    before = files(workspace)
    save_notebook(notebooks / "00_start.ipynb", (ID, "stub 2"), lesson="00")
    with monkeypatch.context() as broken:
        broken.setattr(call, refuse)
        assert main(["learn", "--workspace", str(workspace.folder)]) == 2
    said = capsys.readouterr().err
    assert said == f"course: {workspace.folder} cannot be written to: {os.strerror(reason)}.\n"
    assert files(workspace) == before
    assert started == []
    assert len(learn.hand_out(workspace, notebooks)) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--no-browser", "--port=8899", "--IdentityProvider.token=x"],
        ["--port", "8899", "--", "--no-browser", "--IdentityProvider.token=x"],
        ["--no-browser", "--ServerApp.port=8899", "--IdentityProvider.token=x"],
    ],
)
def test_what_is_not_ours_is_labs(course, monkeypatch, words):
    _, workspace, started = course
    monkeypatch.setattr(learn, "port_problem", lambda port: None)
    assert main(["learn", "--workspace", str(workspace.folder), *words]) == 0
    (command,) = started
    assert command[:4] == [sys.executable, "-P", "-m", "jupyterlab"]
    assert command[-2:] == ["--no-browser", "--IdentityProvider.token=x"]
    assert f"--ServerApp.root_dir={workspace.folder}" in command
    assert "--ServerApp.port=8899" in command
    assert "--workspace" not in command


def test_a_port_in_use_is_one_sentence(course, capsys):
    _, workspace, started = course
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["learn", "--workspace", str(workspace.folder), f"--port={port}"]) == 1
    assert capsys.readouterr().err.startswith(f"course: port {port} cannot be used (")
    assert started == []
    assert learn.port_problem(port) is None
    assert "port 70000" in learn.port_problem(70_000)


def test_a_lab_that_is_open_on_the_workspace_is_named_and_no_second_one_started(
    course, monkeypatch, capsys
):
    _, workspace, started = course
    server = {"url": "http://localhost:8888/", "token": "abc", "root_dir": str(workspace.folder)}
    other = server | {"url": "http://localhost:9999/", "root_dir": "/elsewhere"}
    monkeypatch.setattr(serverapp, "list_running_servers", lambda: iter([other, server]))
    assert main(["learn", "--workspace", str(workspace.folder), "--port=8888"]) == 0
    said = capsys.readouterr().out
    assert said.endswith("open on them already: http://localhost:8888/lab?token=abc\n")
    assert len(files(workspace)) == 3
    assert started == []


@pytest.mark.skipif(os.name != "posix", reason="Windows asks for rights to make a link")
def test_a_lab_is_found_in_a_workspace_behind_a_link(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (link := tmp_path / "here").symlink_to("there")
    server = {"url": "http://localhost:8888/", "token": "", "root_dir": str(link)}
    monkeypatch.setattr(serverapp, "list_running_servers", lambda: iter([server]))
    assert learn.running(link) == learn.running(tmp_path / "there") == "http://localhost:8888/lab"


def test_a_notebook_names_the_courses_kernel_whose_first_cell_says_what_another_one_lacks(course):
    notebooks, workspace, _ = course
    shutil.copy(ROOT / "notebooks" / "00_start_here.ipynb", notebooks / "02_alone.ipynb")
    assert main(["learn", "--workspace", str(workspace.folder)]) == 0
    handed = ipynb.read(workspace.folder / "02_alone.ipynb")
    kernel = KernelSpecManager().get_kernel_spec(handed["metadata"]["kernelspec"]["name"])
    assert (kernel.display_name, kernel.argv[0]) == ("Transformer course", sys.executable)
    assert Path(kernel.env["PYTHONSTARTUP"]).is_file()
    [cell] = [x for x in handed["cells"] if x["id"] == INSTALLATION]
    # -I: without the course, in no environment of its own
    asked = [sys.executable, "-I", "-S", "-c", ipynb.text(cell)]
    said = subprocess.run(asked, capture_output=True, text=True).stderr.splitlines()[-1]
    assert said == (
        f"ImportError: {sys.executable} has no course_lib: choose the kernel *Transformer course*. "
        "`course learn` makes it."
    )


def test_without_jupyterlab_it_says_how_to_install_it(course, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["learn"]) == 2
    assert '[lab]"`.' in capsys.readouterr().err


def test_a_workspace_that_is_only_read_is_said(course, monkeypatch, capsys):
    _, workspace, started = course
    monkeypatch.setattr(os, "access", lambda path, mode: path != workspace.folder)
    assert main(["learn", "--workspace", str(workspace.folder)]) == 0
    said = f"{workspace.folder} cannot be written to: what you do there will not be saved."
    assert said in capsys.readouterr().out
    assert len(started) == 1


def test_a_kernel_begins_alike_by_learn_by_its_name_and_on_binder(monkeypatch):
    for name in jupyter_kernel.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "execve", lambda program, command, given: started.append(given))
    started, binder = [], (ROOT / ".binder" / "start").read_text("utf8")
    with contextlib.suppress(FileNotFoundError):  # the wait, where a process cannot be replaced
        learn.become(["lab"])
    jupyter_kernel.register()
    kernel = KernelSpecManager().get_kernel_spec(jupyter_kernel.NAME)
    for name, value in jupyter_kernel.SETTINGS.items():
        assert kernel.env[name] == started[0][name] == value
        assert f"{name}={value}" in binder


def test_a_terminal_of_labs_finds_course(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(
        os, "execve", lambda program, command, environment: found.append(environment)
    )
    found = []
    with contextlib.suppress(FileNotFoundError):  # the wait, where a process cannot be replaced
        learn.become(["lab"])
    [environment] = found
    assert environment["OMP_WAIT_POLICY"] == os.environ.get("OMP_WAIT_POLICY", "passive")
    assert shutil.which("course", path=environment["PATH"].partition(os.pathsep)[0])
    assert environment["PATH"].endswith(f"{os.pathsep}/usr/bin")
    assert Path(environment["PYTHONSTARTUP"]).is_file()


@pytest.mark.skipif(os.name != "posix", reason="elsewhere Lab's own terminal is as it is")
def test_a_terminal_of_labs_begins_in_the_workspace(tmp_path):
    folder = tmp_path / "it's mine"
    folder.mkdir()
    [setting] = [x for x in learn.lab_command(folder, None, []) if "terminado" in x]
    shell = ast.literal_eval(setting.partition("=")[2])["shell_command"]
    done = subprocess.run(shell, env=os.environ | {"SHELL": "pwd"}, capture_output=True, text=True)
    assert done.stdout == f"{folder}\n"


def test_labs_settings_are_those_of_this_lab():
    overrides = json.loads((learn.PAGE / "labconfig/default_setting_overrides.json").read_text())
    for plugin, settings in overrides.items():
        name, _, part = plugin.partition(":")
        schema = Path(get_app_dir()) / "schemas" / name / f"{part}.json"
        known = json.loads(schema.read_text())["properties"]
        assert settings.keys() <= known.keys(), plugin


def test_it_fetches_nothing_before_lab_is_open(course, monkeypatch):
    _, workspace, started = course
    monkeypatch.setattr(store, "fetch", lambda names: pytest.fail("nobody has asked for data"))
    assert main(["learn", "--workspace", str(workspace.folder)]) == 0
    assert len(started) == 1


def test_without_the_repository_there_is_nothing_to_hand_out(course, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(learn, "ROOT", tmp_path)
    assert main(["learn"]) == 2
    assert "install the course from its repository" in capsys.readouterr().err


def test_lab_is_started_without_torch(course):
    _, workspace, _ = course
    code = (
        "import sys; from course_lib.command_line import learn, main;"
        "learn.become = lambda command: print('torch' in sys.modules) or 0;"
        f"sys.exit(main.main(['learn', '--workspace', {str(workspace.folder)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.endswith("\nFalse\n")
