"""What `course learn` does: fetch what the lessons need, hand out notebooks, start JupyterLab.

Nothing here imports torch, so that Lab is there within seconds.
"""

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
from itertools import count
from pathlib import Path

from course_lib.data import store
from course_lib.files import ipynb
from course_lib.files.paths import ROOT
from course_lib.files.workspace import Workspace

FIRST = "00_start_here.ipynb"
SETTINGS = (
    # nothing asks the network: no news, no look for updates, no list of extensions
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    # what notebook and kernel say to each other is encrypted, and kept alive as tornado wants it
    "--KernelManager.transport_encryption=auto",
    "--ServerApp.tornado_settings={'ws_ping_interval': 30000, 'ws_ping_timeout': 30000}",
)
PAGE = (
    ROOT / "course_lib" / "command_line" / "lab"
)  # turns off Lab's question whether to fetch news


def fetch_missing(notebooks: Path) -> None:
    """Fetch the data of the lessons in a folder; print why what does not come does not.

    A lesson leaves out what it has no data for.
    """
    lessons = {path.name[:2] for path in notebooks.glob("*.ipynb")}
    missing = [
        item.name
        for item in store.ITEMS.values()
        if lessons.intersection(item.lessons) and not store.is_fetched(item.name)
    ]
    try:
        store.fetch(missing)
    except store.FetchError as failure:
        print(f"{failure}\nThe lessons work without, and leave out what needs it.")


def hand_out(workspace: Workspace, notebooks: Path) -> list[str]:
    """Copy the notebooks that a workspace lacks, and tell in a sentence each what is new.

    One that is there is never overwritten: where its release has changed, the new one is put
    beside it, with the passed answers in. Raises OSError or NotANotebook.
    """
    messages = []
    for path in sorted(notebooks.glob("*.ipynb")):
        notebook, theirs = ipynb.read(path), workspace.folder / path.name
        releases, release = workspace.releases(), _release(notebook)
        for cell in notebook["cells"]:
            ipynb.clear(cell)
        if not os.path.lexists(theirs):
            _write_trusted(theirs, notebook)
        elif releases.get(path.name, release) != release:
            beside, carried = _beside(theirs), _carry_answers(workspace, notebook)
            _write_trusted(beside, notebook)
            answers = f", with your answers to {', '.join(carried)} in it" if carried else ""
            messages.append(
                f"{path.name} has changed since you got it: yours stays as it is, and the new "
                f"one lies beside it as {beside.name}{answers}."
            )
        if releases.get(path.name) != release:
            workspace.note_releases(releases | {path.name: release})
    return messages


def port_problem(port: int) -> str | None:
    """Say in one sentence why Lab could not listen on a port, or return None."""
    with socket.socket() as probe:
        if os.name == "posix":  # on Windows it would let two programs share a port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            return f"port {port} cannot be used ({reason}): name another, or leave --port out."
    return None


def lab_command(folder: Path, port: int | None, arguments: list[str]) -> list[str]:
    """Return the command that starts JupyterLab in a workspace."""
    # -P: no file of the reader's folder may stand in for a module of Lab's
    command = [sys.executable, "-P", "-m", "jupyterlab", *SETTINGS]
    command += [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url=/lab/tree/{FIRST}"]
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if os.name == "posix" and os.geteuid() == 0:
        command.append("--allow-root")
    return command + arguments


def become(command: list[str]) -> int:
    """Start Lab in the place of this process; where there is no such thing, wait for it."""
    sys.stdout.flush()
    others = os.environ.get("JUPYTER_CONFIG_PATH")
    paths = os.pathsep.join(filter(None, [str(PAGE), others]))
    environment = os.environ | {"JUPYTER_CONFIG_PATH": paths}
    if os.name == "posix":
        os.execve(command[0], command, environment)
    with subprocess.Popen(command, env=environment) as process:
        while True:
            with contextlib.suppress(KeyboardInterrupt):  # it is the command's to act on
                return process.wait()


def _write_trusted(path: Path, notebook: dict) -> None:
    """Write a notebook, and sign it as Lab does one that it has saved, so that it trusts it."""
    from nbformat import from_dict
    from nbformat.sign import NotebookNotary

    ipynb.write(path, notebook)
    NotebookNotary().sign(from_dict(notebook))


def _release(notebook: dict) -> str:
    """Return a name for what a notebook says, whatever its outputs."""
    cells = notebook["cells"]
    said = [[cell["cell_type"], ipynb.text(cell), ipynb.exercise(cell)] for cell in cells]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _beside(path: Path) -> Path:
    names = (f"{path.stem}.new{'' if n == 1 else f'-{n}'}.ipynb" for n in count(1))
    return next(path.with_name(x) for x in names if not os.path.lexists(path.with_name(x)))


def _carry_answers(workspace: Workspace, notebook: dict) -> list[str]:
    """Put the passed answers into a notebook's exercise cells; return the ids of those."""
    carried = []
    for cell in notebook["cells"]:
        id = ipynb.exercise(cell)
        if id and (answer := workspace.answer(id)):
            ipynb.set_text(cell, answer)
            carried.append(id)
    return carried
