"""Kernels that have loaded torch before they start: `pytest -p tests.warm_kernel`, for nbval.

A fresh kernel takes seconds to load what every page imports. Here one process has done that for
all (`fork_server.py`), and each kernel is a fork of it. Jupyter asks for kernels through a
provisioner, which this plugin replaces: whoever starts a kernel starts a forked one.

Linux alone promises that what torch stands on survives a fork: elsewhere kernels are as ever.
"""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from course_lib.files.paths import ROOT

ADDRESS = "address_of_fork_server"


class WarmKernel:
    """A forked kernel, with what a provisioner asks of a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, address: str, command: list[str], folder: str, environment: dict[str, str]):
        self._code: int | None = None
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server.connect(address)
        asked = {"command": command, "folder": folder, "environment": environment}
        self.server.send(json.dumps(asked).encode())
        self.pid = int(self.server.recv(32))

    def poll(self) -> int | None:
        """Return the exit code, or None while the kernel runs."""
        if self._code is None and select.select([self.server], [], [], 0)[0]:
            self._code = int(self.server.recv(32) or -1)  # nothing: the server is gone, too
            self.server.close()
        return self._code

    wait = poll  # a provisioner waits for what has ended

    def __del__(self) -> None:
        self.server.close()

    def send_signal(self, number: int) -> None:
        """Do nothing: the process group, which a provisioner asks first, is gone."""


class WarmProvisioner(LocalProvisioner):
    """Gets kernels from the fork server at an address."""

    address = ""

    async def launch_kernel(self, cmd: list[str], **kwargs) -> KernelConnectionInfo:
        """Ask for a kernel. It leads its process group, and its own streams go nowhere."""
        self.cwd = kwargs.get("cwd") or os.getcwd()
        self.process = WarmKernel(self.address, cmd, str(self.cwd), kwargs["env"])
        self.pid = self.pgid = self.process.pid
        return self.connection_info


@contextmanager
def fork_server() -> Iterator[str]:
    """Run a fork server while this lasts, and yield its address."""
    backend = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}  # as ipykernel sets it
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
    ):
        address = str(Path(folder, "kernels"))
        listener.bind(address)
        listener.listen()
        descriptor = listener.fileno()
        command = [sys.executable, "-m", "tests.fork_server", str(descriptor)]
        server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            pass_fds=[descriptor],
            cwd=ROOT,
            env=backend | os.environ,
            start_new_session=True,
        )
        listener.close()
        with server:  # at its end closes the standard input, and waits
            yield address


def warm() -> None:
    """Let Jupyter start warm kernels where it is not told otherwise."""
    factory = KernelProvisionerFactory.instance()
    entry = EntryPoint("warm", f"{__name__}:{WarmProvisioner.__name__}", factory.GROUP_NAME)
    factory.provisioners[entry.name] = entry
    factory.default_provisioner_name = entry.name


def pytest_configure(config: pytest.Config) -> None:
    """Run one server for all workers of a run."""
    if sys.platform != "linux":
        return
    warm()
    if told := getattr(config, "workerinput", None):
        WarmProvisioner.address = told[ADDRESS]
    else:
        running = ExitStack()
        WarmProvisioner.address = running.enter_context(fork_server())
        config.add_cleanup(running.close)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Tell a worker where the server is."""
    node.workerinput[ADDRESS] = WarmProvisioner.address
