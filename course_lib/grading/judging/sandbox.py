"""The judge's end of the sandbox: a handle on answers in a confined process."""

import ast
import io
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from course_lib.answers import messages
from course_lib.answers.answer import Description, Error, Reply, Request
from course_lib.answers.process import KINDS, Define, RemoteAnswer
from course_lib.answers.source import Source, as_source
from course_lib.grading.judging.isolation import START_SECONDS, Level, NoIsolation, command
from course_lib.grading.judging.rules import MEMORY
from course_lib.grading.judging.sandbox_files import make_files
from course_lib.grading.options import SECONDS

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Sandbox(RemoteAnswer):
    """Holds one answer after another, in a confined process with torch loaded.

    The process goes on until it is cleared, or an answer breaks it. `lesson` says which components
    can be seen; an answer has so many `seconds` for all of its calls, and the process so many bytes
    of `memory`. Torch is loading from now on; the first call waits for it. Use it as a context
    manager. Raises NoIsolation where the level is not to be had.
    """

    def __init__(self, lesson: str, level: Level, seconds: int = SECONDS, memory: int = MEMORY):
        self._level, self._seconds = level, seconds
        self._folder = tempfile.TemporaryDirectory(prefix="course-sandbox-")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the sandbox
        files = make_files(Path(self._folder.name).resolve(), lesson)
        self._place = str(files.folder)
        words, environment = command(level, files, "fork_server", seconds, memory)
        self._control, theirs = socket.socketpair()
        self._control.settimeout(START_SECONDS)
        with theirs:
            self._fork_server = subprocess.Popen(
                words, env=environment, cwd=files.folder, stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL, stderr=self._errors,
            )  # fmt: skip
        self._ready, self._left = False, float(seconds)
        self.executed: list[Source] = []  # sources, by the process that runs now

    def __exit__(self, *exception: object) -> None:
        self._stop()
        self._close()

    def hold(self, source: str, name: str, others: Iterable[tuple[str, str]] = ()) -> None:
        """Let `name`, defined by `source` on `others`, be the answer; its time begins now."""
        self._left = float(self._seconds)
        super().hold(source, name, others)

    def clear(self) -> None:
        """End the process: the next answer finds a fresh one."""
        self._stop()

    def describe(self) -> Description:
        """Tell a function from a class; the judge has the source, and asks nobody for it."""
        found = self._description("kind")
        return found if found.kind == "error" else replace(found, source=_own(self._definition))

    def run(self, request: Request) -> Reply:
        """Call the answer; whatever it does comes back as a reply, the same in every run."""
        reply = super().run(request)
        if reply.error:
            message = ADDRESS.sub("", reply.error.message).replace(self._place, "")
            return replace(reply, error=replace(reply.error, message=message))
        return reply

    def _define(self) -> None:
        if self._definition:
            self.executed += [as_source(source) for source, _ in self._definition.others]
            self.executed.append(as_source(self._definition.source))
        super()._define()

    def _wait_for_fork_server(self) -> None:
        if not self._ready and self._control.recv(1) != b"+":
            raise NoIsolation(f"{self._level} does not start here ({self._last_words()}).")
        self._ready = True

    def _start(self) -> None:
        self._wait_for_fork_server()
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        self._channel = _Channel(ours)
        self._stream, self._running = io.BufferedReader(self._channel, 2**16), True
        # nothing of the answer's has run yet, so this is the fork server's own word
        self._channel.deadline = time.monotonic() + START_SECONDS
        try:
            ready = messages.receive(self._stream, KINDS)
        except (EOFError, OSError) as error:
            raise NoIsolation(f"{self._level} does not hold here ({error}).") from None
        if ready != Reply():
            raise NoIsolation(f"{self._level} does not hold here ({ready.error.message}).")

    def _ask(self, message: Any) -> Any:
        if self._left <= 0:  # whatever else is asked, no fresh process gives it more time
            return Reply(error=self._too_long())
        return super()._ask(message)

    def _speak(self, message: Any, seconds: float | None) -> Any:
        started = time.monotonic()
        self._channel.deadline = started + self._left
        try:
            self._channel.write(_encoded(message))
            return messages.receive(self._stream, KINDS)
        except TimeoutError:
            raise TimeoutError(self._too_long()) from None
        finally:
            self._left -= time.monotonic() - started

    def _too_long(self) -> Error:
        return Error("Timeout", f"no answer within {self._seconds:g} seconds")

    def _stop(self) -> None:
        if self._running:
            self._running = False
            self._stream.close()
            self._control.sendall(b"-")
            self.executed.clear()

    def _how_it_ended(self) -> str:
        self._control.sendall(b"?")
        status = int.from_bytes(self._control.recv(4), "little")
        if os.WIFSIGNALED(status):
            return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
        return f"with exit status {os.WEXITSTATUS(status)}"

    def _close(self) -> None:
        self._control.close()
        self._fork_server.kill()
        self._fork_server.wait()
        self._errors.close()
        self._folder.cleanup()

    def _last_words(self) -> str:
        self._fork_server.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self._fork_server.returncode}"


def _own(definition: Define | None) -> Source | None:
    """Write what a source defines under the answer's name, without what it stands on."""
    if definition is None:
        return None
    body, name = as_source(definition.source).tree.body, definition.name
    defined = [x for x in body if isinstance(x, ast.FunctionDef | ast.ClassDef)]
    named = [x for x in defined if x.name == name]
    # a method that was set after the class had been defined is no stub's
    others = [x for x in body if x not in defined]
    set_later = [x for x in others if ast.unparse(x).startswith(f"{name}.")]
    if not named:
        return None
    own = [named[-1], *set_later]
    return Source("".join(f"{ast.unparse(x)}\n" for x in own), ast.Module(own, []))


# most requests are the same for every submission
_requests: WeakKeyDictionary[Request, bytes] = WeakKeyDictionary()


def _encoded(message: Any) -> bytes:
    if not isinstance(message, Request):
        return messages.encoded(message)
    if message not in _requests:
        _requests[message] = messages.encoded(message)
    return _requests[message]


class _Channel(io.RawIOBase):
    """A socket whose reads and writes end at a deadline, with a TimeoutError."""

    deadline = 0.0

    def __init__(self, end: socket.socket):
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        self._set_timeout()
        return self._end.recv_into(buffer)

    def write(self, data: bytes) -> None:
        self._set_timeout()
        self._end.sendall(data)

    def close(self) -> None:
        self._end.close()
        super().close()

    def _set_timeout(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._end.settimeout(left)
