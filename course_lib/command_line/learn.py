"""`course learn`: hand out the notebooks, start JupyterLab.

Nothing here imports torch, and data come when a lesson needs them, so that Lab is there within
seconds.
"""

import contextlib
import importlib.util
import os
import shlex
import socket
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from urllib.parse import quote

from course_lib.files import jupyter_kernel
from course_lib.files.errors import CommandError
from course_lib.files.paths import IS_CLONE, PACKAGE, ROOT, how_to_install
from course_lib.files.releases import continued, hand_out
from course_lib.files.workspace import VARIABLE, Workspace

NAME = "learn"
WHAT = "hand out the notebooks, and start JupyterLab with all further options"
EXAMPLE = "--no-browser --port=8899"

FIRST = "00_start_here.ipynb"
SETTINGS = (
    # nothing asks the network: no news, no look for updates, no list of extensions
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    # what notebook and kernel say to each other is encrypted, and kept alive as tornado wants it
    "--KernelManager.transport_encryption=auto",
    "--ServerApp.tornado_settings={'ws_ping_interval': 30000, 'ws_ping_timeout': 30000}",
    # the address and what is wrong, without a line for each of Lab's extensions
    "--Application.log_level=WARN",
)
# Lab's settings: no question about news, colours as the system has them, long lines wrapped; a
# notebook that is closed takes its kernel with it (0.3 GB each, where Binder has 2). And what its
# kernels run first
PAGE = PACKAGE / "command_line" / "lab"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare what is ours: what is not understood goes on to Lab."""
    parser.set_defaults(takes_further=True)
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="FOLDER",
        help=f"where your notebooks are to be (the workspace you are in, else {_place()})",
    )
    parser.add_argument(
        "--port",
        "--ServerApp.port",
        dest="port",
        type=int,
        metavar="NUMBER",
        help="where Lab listens (the next free one from 8888)",
    )


def run(options: Namespace) -> int:
    """Bring the workspace up to date, and become JupyterLab on the page to go on with."""
    around = Workspace.find()
    folder = (options.workspace or (around.folder if around else _place())).absolute()
    notebooks = ROOT / "notebooks"
    if not notebooks.is_dir():
        raise CommandError(
            f"there is no folder {notebooks}: install the course from its repository."
        )
    if not importlib.util.find_spec("jupyterlab"):
        raise CommandError(f"JupyterLab is not here: {how_to_install('lab')}.")
    address = running(folder)
    if options.port is not None and not address and (problem := port_problem(options.port)):
        print(f"course: {problem}", file=sys.stderr)
        return 1
    os.environ.pop(VARIABLE, None)  # Lab's notebooks are in their workspace
    with contextlib.suppress(OSError):  # where no kernel may be added, they name Jupyter's own
        jupyter_kernel.register()
    try:
        messages = hand_out(workspace := Workspace.make(folder), notebooks)
    except OSError as error:
        raise CommandError(f"{folder} cannot be written to: {error.strerror}.") from error
    if not os.access(folder, os.W_OK):
        messages.append(f"{folder} cannot be written to: what you do there will not be saved.")
    print(*messages, f"Your notebooks are in {folder}.", sep="\n")
    if address:
        print(f"JupyterLab is open on them already: {address}")
        return 0
    page = continued(workspace, FIRST)
    return become(lab_command(folder, options.port, options.further, page))


def _place() -> Path:
    """Return where a workspace is made, if it is not told: no other command looks there."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    return ROOT / "workspace" if IS_CLONE else Path("transformer-course")


def running(folder: Path) -> str | None:
    """Return the address of a JupyterLab that is open on a folder already, or None."""
    from jupyter_server.serverapp import list_running_servers

    for server in list_running_servers():
        if Path(server["root_dir"]).resolve() == folder.resolve():
            token = f"?token={server['token']}" if server["token"] else ""
            return f"{server['url']}lab{token}"
    return None


def port_problem(port: int) -> str | None:
    """Say in one sentence why Lab could not listen on a port, or return None."""
    with socket.socket() as probe:
        if os.name == "posix":  # on Windows it would let two programs share a port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or "there are 0 to 65535"
            return f"port {port} cannot be used ({reason}): name another, or leave --port out."
    return None


def lab_command(
    folder: Path, port: int | None, arguments: list[str], page: str = FIRST
) -> list[str]:
    """Return the command that starts JupyterLab in a workspace, on one of its pages."""
    # -P: no file of the reader's folder may stand in for a module of Lab's
    command = [sys.executable, "-P", "-m", "jupyterlab", *SETTINGS]
    command += [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url=/lab/tree/{quote(page)}"]
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if os.name == "posix":
        # terminals begin in the workspace; a login shell would forget where `course` is
        shell = f"cd {shlex.quote(str(folder))} && exec ${{SHELL:-sh}}"
        terminals = {"shell_command": ["sh", "-c", shell]}
        command.append(f"--ServerApp.terminado_settings={terminals}")
        command += ["--allow-root"] if os.geteuid() == 0 else []
    return command + arguments


def become(command: list[str]) -> int:
    """Start Lab in the place of this process; where there is no such thing, wait for it."""
    sys.stdout.flush()
    environment = {
        **jupyter_kernel.SETTINGS,
        "PYTHONSTARTUP": str(jupyter_kernel.STARTUP),
        **os.environ,
        "JUPYTER_CONFIG_PATH": _first(PAGE, "JUPYTER_CONFIG_PATH"),
        # so that Lab's own terminal finds `course`
        "PATH": _first(Path(sys.executable).parent, "PATH"),
        "TQDM_MININTERVAL": "0.1",  # bars in notebooks move, wherever Lab's own log goes
    }
    if os.name == "posix":
        os.execve(command[0], command, environment)
    with subprocess.Popen(command, env=environment) as process:
        while True:
            with contextlib.suppress(KeyboardInterrupt):  # it is the command's to act on
                return process.wait()


def _first(folder: Path, variable: str) -> str:
    """Put a folder before those that a variable of the environment lists."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get(variable)]))
