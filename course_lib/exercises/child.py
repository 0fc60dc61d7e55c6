"""An answer in a child process, asked over bounded messages."""

import contextlib
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any

from course_lib.exercises import wire
from course_lib.exercises.answer import Description, Error, Foreign, InProcess, Reply, Request
from course_lib.exercises.probes import Probe
from course_lib.exercises.source import define

SECONDS = 10.0
START_SECONDS = 60.0


@dataclass(frozen=True)
class Define:
    """Take the object called `name` of this source as the answer from now on."""

    source: str
    name: str


KINDS = (Define, Description, Error, Foreign, Probe, Reply, Request)


class ChildProcess:
    """A Python process that holds one answer after another and does what requests say.

    A call that takes longer than `seconds`, or ends the process, is an error in its reply;
    the next call finds a fresh process. Use it as a context manager.
    """

    def __init__(self, seconds: float = SECONDS):
        self._seconds = seconds
        self._process: subprocess.Popen | None = None
        self._definition: Define | None = None
        self._broken: Reply | None = None  # why the definition could not be executed

    def __enter__(self) -> "ChildProcess":
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def hold(self, source: str, name: str) -> None:
        """Let `name`, defined by `source`, be the answer from now on."""
        self._definition, self._broken = Define(source, name), None
        if self._process:
            self._define()

    def describe(self) -> Description:
        """Tell what the answer is; kind "error" where its source could not be executed."""
        reply = self._ask("describe")
        if isinstance(reply, Description):
            return reply
        error = isinstance(reply, Reply) and reply.error
        return Description("error", f"{error.type}: {error.message}" if error else "no reply")

    def run(self, request: Request) -> Reply:
        """Call the answer; whatever it does comes back as a reply."""
        reply = self._ask(request)
        return reply if isinstance(reply, Reply) else _failure("Malformed", "no reply came back")

    def _ask(self, message: Any) -> Any:
        if self._process is None and self._broken is None:
            self._start()
        return self._broken or self._exchange(message, self._seconds)

    def _exchange(self, message: Any, seconds: float) -> Any:
        process = self._process
        expired = threading.Event()

        def expire():
            expired.set()
            process.kill()

        timer = threading.Timer(seconds, expire)
        timer.start()
        try:
            wire.send(process.stdin, message)
            return wire.receive(process.stdout, KINDS)
        except (EOFError, OSError):
            self._stop()
            if expired.is_set():
                return _failure("Timeout", f"no answer within {seconds:g} seconds")
            code = process.returncode
            return _failure("Crash", f"the process ended, with exit status {code}")
        except (wire.TooLarge, wire.Malformed) as error:
            self._stop()
            return _failure(type(error).__name__, str(error))
        finally:
            timer.cancel()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "course_lib.exercises.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        # Python and torch are still loading, which is not the answer's time
        ready = self._exchange("describe", START_SECONDS)
        if isinstance(ready, Reply):
            self._broken = ready
        elif self._definition:
            self._define()

    def _define(self) -> None:
        reply = self._exchange(self._definition, self._seconds)
        self._broken = None if reply == Reply() else reply

    def _stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _failure(kind: str, message: str) -> Reply:
    return Reply(error=Error(kind, message))


def serve() -> None:
    """Read requests from standard input and answer them on standard output, until it ends."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # what the answer prints must not run into the messages
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    answer, reply = InProcess(None), None
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            message = wire.receive(requests, KINDS)
            if isinstance(message, Define):
                answer, reply = _hold(message)
            elif message == "describe":
                reply = answer.describe()
            else:
                reply = answer.run(message)
            try:
                wire.send(replies, reply)
            except (TypeError, wire.TooLarge) as error:
                wire.send(replies, _failure(type(error).__name__, f"its result is {error}"))


def _hold(definition: Define) -> tuple[InProcess, Reply]:
    try:
        with contextlib.redirect_stdout(None):
            return InProcess(define(definition.source, definition.name)), Reply()
    except BaseException as error:  # the source is a stranger's: it may raise anything
        return InProcess(None), _failure(type(error).__name__, str(error))


if __name__ == "__main__":
    serve()
