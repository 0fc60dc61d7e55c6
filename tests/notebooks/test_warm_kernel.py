"""A forked kernel is what a fresh one is, and ends as one does."""

import json
import signal
import socket
import sys
import time

import psutil
import pytest
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory

from tests.warm_kernel import WarmProvisioner, fork_server, warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")

STATE = """
import json, os, signal, sys, threading
import matplotlib.pyplot, torch
import course_lib.exercises, course_lib.instruments.plots
from course_lib.data.store import tqdm
from time import perf_counter

print(json.dumps({
    "process": [sys.argv[0], sys.path, os.getcwd(), os.getpgid(0) == os.getpid(), os.umask(0)],
    "environment": {name: x for name, x in os.environ.items() if name != "JPY_PARENT_PID"},
    "course": sorted(name for name in sys.modules if name.startswith("course_lib")),
    "signals": [str(signal.getsignal(x)) for x in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
    "threads": sorted(type(x).__name__ + str(x.daemon) for x in threading.enumerate()),
    "clock": perf_counter.__module__,
    "torch": [str(torch.get_default_dtype()), torch.get_num_threads(), torch.is_grad_enabled()],
    "pictures": [matplotlib.get_backend(), matplotlib.is_interactive()],
    "shell": [__name__, sorted(get_ipython().user_ns)],
    "called back": {x: len(calls) for x, calls in get_ipython().events.callbacks.items()},
    "bar": tqdm.__module__,
}))
"""
DRAWN = "import random, numpy; print(random.random(), numpy.random.rand())"


@pytest.fixture(scope="module", autouse=True)
def _server():
    if WarmProvisioner.address:
        yield  # the one of this run
    else:
        with fork_server() as WarmProvisioner.address:
            yield
        WarmProvisioner.address = ""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a kernel in an empty folder, of a kind of provisioner."""
    warm()
    started = []

    def one(kind="warm"):
        factory = KernelProvisionerFactory.instance()
        monkeypatch.setattr(factory, "default_provisioner_name", kind)
        manager = KernelManager()
        manager.start_kernel(cwd=str(tmp_path))
        client = manager.client()
        client.start_channels()
        started.append((manager, client))
        client.wait_for_ready(60)
        return manager, client

    yield one
    for manager, client in started:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def said(client, code):
    """Return what a cell prints."""
    messages = []
    client.execute_interactive(code, timeout=60, output_hook=messages.append)
    return "".join(message["content"].get("text", "") for message in messages)


def code_of(manager):
    """Wait for the end of a kernel, and return its exit code."""
    process, end = manager.provisioner.process, time.monotonic() + 10
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    return process.poll()


def test_a_forked_kernel_is_as_a_fresh_one(start):
    (_, forked), (_, fresh) = start(), start("local-provisioner")
    assert json.loads(said(forked, STATE)) == json.loads(said(fresh, STATE))


def test_two_forked_kernels_draw_other_numbers(start):
    (_, one), (_, other) = start(), start()
    assert not {*said(one, DRAWN).split()} & {*said(other, DRAWN).split()}


def test_a_forked_kernel_is_interrupted_and_goes_on(start):
    manager, client = start()
    # what is asked while a kernel that saw an error clears its queue would be dropped
    sleeping = client.execute("import time; print(1); time.sleep(60)", stop_on_error=False)
    while client.get_iopub_msg(timeout=10)["msg_type"] != "stream":
        pass
    manager.interrupt_kernel()
    while (reply := client.get_shell_msg(timeout=10))["parent_header"]["msg_id"] != sleeping:
        pass
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    assert said(client, "print(2)") == "2\n"


def test_a_forked_kernel_ends_with_its_own_code(start):
    manager, client = start()
    client.execute("import os; os._exit(7)")
    assert code_of(manager) == 7


@pytest.mark.parametrize("how", ["killed", "left alone"])
def test_nothing_of_a_forked_kernel_is_left(start, how):
    manager, client = start()
    child = int(said(client, "import subprocess; print(subprocess.Popen(['sleep', '60']).pid)"))
    process = manager.provisioner.process
    if how == "killed":
        manager.shutdown_kernel(now=True)
        assert process.poll() == -signal.SIGKILL
    else:
        process.server.shutdown(socket.SHUT_RDWR)  # as when the worker dies
    end = time.monotonic() + 10
    while psutil.pid_exists(process.pid) and time.monotonic() < end:
        time.sleep(0.01)
    for pid in (process.pid, child):
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
