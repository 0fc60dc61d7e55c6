"""The process that has loaded what every page imports, and forks the kernels of `warm_kernel.py`.

    python -m tests.fork_server DESCRIPTOR

The descriptor is a listening socket. A connection is a kernel: what comes is its command, folder
and environment; what goes is its number, then its exit code. If the other end closes, the kernel
is killed. All end with the standard input.

Only packages are loaded here. The course's own modules, which some pages would find although they
do not import them, are loaded by each kernel, as a learner's does.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys

# ipykernel first, since others ask whether it is there; no backend of matplotlib, which asks for
# the kernel's shell. What is missing here costs time, no more
PACKAGES = (
    "ipykernel.kernelapp", "numpy.random", "torch", "torch._dynamo", "matplotlib.pyplot",
    "einops", "jaxtyping", "tokenizers", "safetensors.torch", "gguf", "tqdm.auto", "jinja2",
)  # fmt: skip
LARGEST = 2**18  # bytes of a request: the environment is most of it


def warm_up() -> None:
    """Load the packages, without a thread: no fork would have it."""
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # ipykernel reads it when it is imported
    for package in PACKAGES:
        importlib.import_module(package)
    gc.collect()
    gc.freeze()  # what a kernel never collects, it never copies


def serve(listener: socket.socket) -> dict | None:
    """Fork a kernel for each who asks. Returns what was asked for in that kernel, else None."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    kernels: dict[socket.socket, int] = {}
    while True:
        ready, _, _ = select.select([sys.stdin, listener, woken, *kernels], [], [])
        if listener in ready:
            owner, _ = listener.accept()
            asked = owner.recv(LARGEST)
            if pid := os.fork():
                kernels[owner] = pid
            else:
                os.setsid()
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                owner.send(b"%d" % os.getpid())
                for inherited in (listener, woken, waker, owner, *kernels):
                    inherited.close()
                return json.loads(asked)
        if woken in ready:
            woken.recv(LARGEST)
        for owner, pid in list(kernels.items()):
            if sys.stdin in ready or owner in ready:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with contextlib.suppress(OSError):
                    owner.send(b"%d" % os.waitstatus_to_exitcode(status))
                owner.close()
                del kernels[owner]
        if sys.stdin in ready:
            return None


def become(command: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be what `python -m MODULE ...` is in a folder and an environment."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    os.close(nothing)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment, JPY_PARENT_PID=str(os.getppid()))  # with whom it ends
    sys.modules["numpy"].random.seed()  # Python's own does that by itself
    _, _, module, *sys.argv[1:] = sys.orig_argv[:] = command
    sys.path[0] = folder
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    listening = socket.socket(fileno=int(sys.argv[1]))
    warm_up()
    if asked := serve(listening):
        become(**asked)
