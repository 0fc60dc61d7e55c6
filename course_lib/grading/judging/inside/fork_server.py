"""The process that has torch loaded and forks the children that serve answers.

A child serves those of one submission; what fails in it is tried again in a fresh one.

    python -m course_lib.grading.judging.inside.fork_server LEVEL SECONDS MEMORY PATH...

Standard input is a socket to the judge. A byte `+` comes with one end of another socket: a child
is forked that serves answers on it (`answers.process.serve`) after it has given up everything else.
A byte `-` ends that child, and `?` tells how it ended.
"""

import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from course_lib.answers import messages
from course_lib.answers.answer import UNLIKELY_SEED, InProcess, Reply, Request
from course_lib.answers.process import failure, serve
from course_lib.grading.judging.inside import confinement, earlier


def main(level: str, seconds: int, memory: int, paths: list[Path]) -> None:
    """Do what the judge says until it is gone."""
    judge = socket.socket(fileno=0)
    _warm_up()
    confinement.die_with_parent()
    judge.sendall(b"+")
    child = status = 0
    while order := _receive(judge):
        byte, descriptor = order
        if byte == b"+":
            child = _fork(level, descriptor, seconds, memory, paths)
            os.close(descriptor)
        elif byte == b"-" and child:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        elif byte == b"?":
            judge.sendall(status.to_bytes(4, "little"))
    if child:  # the judge is gone
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)


def _warm_up() -> None:
    """Load what answers need, so that no child has to."""
    for module, _ in earlier.components().values():
        importlib.import_module(module)
    x = torch.ones(2, 2)
    request = Request((x,), cotangent=x, scattered=True, watch=("torch.mm", "aten.mm"))
    InProcess(lambda x: x @ x).run(request)
    torch.compile = _as_it_is  # which needs a compiler, and folders to write to
    torch.manual_seed(UNLIKELY_SEED)  # an answer's own numbers are not those of a case
    gc.freeze()  # what a child never collects, it never copies
    confinement.gather_pages()


def _as_it_is(model: Callable | None = None, **_: Any) -> Callable:
    """Stand for `torch.compile`: what it makes computes the same."""
    return model or _as_it_is


def _receive(judge: socket.socket) -> tuple[bytes, int] | None:
    byte, descriptors, _, _ = socket.recv_fds(judge, 1, 1)
    return (byte, descriptors[0] if descriptors else -1) if byte else None


def _fork(level: str, descriptor: int, seconds: int, memory: int, paths: list[Path]) -> int:
    try:
        child = confinement.fork(level)
    except OSError as error:
        with os.fdopen(os.dup(descriptor), "wb") as judge:
            messages.send(judge, failure("Confinement", str(error)))
        return 0
    if child == 0:
        try:
            _serve(level, descriptor, seconds, memory, paths)
        finally:
            os._exit(0)
    return child


def _serve(level: str, descriptor: int, seconds: int, memory: int, paths: list[Path]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    requests = os.fdopen(os.dup2(descriptor, 3), "rb", 2**16)
    os.closerange(4, 1024)
    replies = os.fdopen(os.dup(3), "wb", 2**16)
    try:
        # the time of all answers of a notebook; the judge's own clock ends each of them
        confinement.confine(level, 10 * seconds, memory, paths)
    except OSError as error:
        messages.send(replies, failure("Confinement", str(error)))
    else:
        messages.send(replies, Reply())
        serve(requests, replies)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [Path(path) for path in sys.argv[4:]])
