"""An answer in a child process, asked over bounded messages."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Self, cast

from course_lib.answers import messages
from course_lib.answers.answer import (
    Description,
    Error,
    Foreign,
    InProcess,
    Named,
    Probe,
    Reply,
    Request,
    checked,
    computed_for,
    waited_for,
)  # fmt: skip
from course_lib.answers.source import Source, define_on

SECONDS = 10.0
SLEEPS = 6  # times as long may a call take that does not compute
IDLE = 0.05  # less of the time in the processor is not computing, on a busy machine either
START_SECONDS = 60.0


@dataclass(frozen=True)
class Define:
    """Take the object called `name` of this source as the answer from now on.

    It stands on `others`, pairs of source and name.
    """

    source: str
    name: str
    others: tuple[tuple[str, str], ...] = ()


KINDS = {
    kind.__name__: kind
    for kind in (Define, Description, Error, Foreign, Named, Probe, Reply, Request)
}


class RemoteAnswer(ABC):
    """A handle on answers in another process, one after another; what it says is not trusted.

    A call that takes too long, or ends the process, is an error in its reply; the next call finds
    a fresh process. How a process is started, asked and stopped is up to `_start`, `_speak`,
    `_stop` and `_how_it_ended`. Use it as a context manager.
    """

    _running = False
    _definition: Define | None = None
    _broken: Reply | None = None  # why the definition could not be executed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    @abstractmethod
    def _start(self) -> None:
        """Start the process; set `_running`, or `_broken` to why it cannot be started."""

    @abstractmethod
    def _speak(self, message: Any, seconds: float | None = None) -> Any:
        """Send a message and return the reply.

        Raises EOFError, OSError or, of an `Error`, TimeoutError.
        """

    @abstractmethod
    def _stop(self) -> None:
        """End the process, if it runs."""

    @abstractmethod
    def _how_it_ended(self) -> str:
        """Say how the process ended, as in "with exit status 1"."""

    def hold(self, source: str, name: str, others: Iterable[tuple[str, str]] = ()) -> None:
        """Let `name`, defined by `source` on `others`, be the answer from now on."""
        self._definition, self._broken = Define(source, name, tuple(others)), None
        if self._running:
            self._define()

    def describe(self) -> Description:
        """Tell what the answer is; kind "error" where its source could not be executed."""
        return self._description("describe")

    def run(self, request: Request) -> Reply:
        """Call the answer; whatever it does comes back as a reply."""
        reply = self._ask(request)
        return checked(reply) if isinstance(reply, Reply) else failure("Malformed", "no reply came")

    def _description(self, question: str) -> Description:
        reply = self._ask(question)
        if isinstance(reply, Description) and isinstance(reply.kind, str):
            source = Source(reply.source) if isinstance(reply.source, str) else None
            return replace(reply, source=source, problem=str(reply.problem))
        error = isinstance(reply, Reply) and checked(reply).error
        said = f"{error.type}: {error.message}" if error else "no reply"
        return Description("error", problem=said)

    def _ask(self, message: Any) -> Any:
        if not self._running and self._broken is None:
            self._start()
            if self._running and self._definition:
                self._define()
        return self._broken or self._exchange(message)

    def _define(self) -> None:
        reply = self._exchange(self._definition)
        self._broken = None if reply == Reply() else reply

    def _exchange(self, message: Any, seconds: float | None = None) -> Any:
        try:
            return self._speak(message, seconds)
        except TimeoutError as error:
            self._stop()
            return Reply(error=error.args[0])
        except (EOFError, OSError):
            self._stop()
            return failure("Crash", f"the process ended, {self._how_it_ended()}")
        except (messages.TooLarge, messages.Malformed) as error:
            self._stop()
            return failure(type(error).__name__, str(error))


class ChildProcess(RemoteAnswer):
    """A Python process like this one; a call may compute for so many seconds.

    They are those of the processor, so that a busy machine costs no answer its verdict; by the
    clock a call that hardly computes may take `SLEEPS` times as long.
    """

    def __init__(self, seconds: float = SECONDS):
        self._seconds = seconds

    def _start(self) -> None:
        import psutil  # which no sandbox has

        self._process = psutil.Popen(
            [sys.executable, "-m", "course_lib.answers.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # the time of several threads would be counted together
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self._running = True
        # Python and torch are still loading, which is not the answer's time
        ready = self._exchange("describe", START_SECONDS)
        self._broken = ready if isinstance(ready, Reply) else None

    def _speak(self, message: Any, seconds: float | None = None) -> Any:
        seconds, replied, expired = seconds or self._seconds, threading.Event(), []
        clock, computed = time.monotonic(), self._computed()

        def watch() -> None:
            while not expired and not replied.wait(0.05):
                took, used = time.monotonic() - clock, self._computed() - computed
                if used > seconds:
                    expired.append(computed_for(seconds))
                elif took > SLEEPS * seconds and used < IDLE * took:
                    expired.append(waited_for(SLEEPS * seconds))
            if expired:
                self._process.kill()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            messages.send(cast(BinaryIO, self._process.stdin), message)
            return messages.receive(cast(BinaryIO, self._process.stdout), KINDS)
        except (EOFError, OSError):
            if expired:
                raise TimeoutError(expired[0]) from None
            raise
        finally:
            replied.set()
            watcher.join()

    def _computed(self) -> float:
        """Return the seconds of the processor that the process has had, while it runs."""
        with contextlib.suppress(Exception):  # psutil's own, where the process has just ended
            times = self._process.cpu_times()
            return times.user + times.system
        return 0.0

    def _stop(self) -> None:
        if self._running:
            self._running = False
            self._process.kill()
            self._process.communicate()

    def _how_it_ended(self) -> str:
        return f"with exit status {self._process.returncode}"


def failure(kind: str, message: str) -> Reply:
    """Reply that a call failed outside of the answer's own code."""
    return Reply(error=Error(kind, message))


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Read requests from one stream and answer them on another, until it ends."""
    answer, reply = InProcess(None), None
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            message = messages.receive(requests, KINDS)
            if isinstance(message, Define):
                answer, reply = _hold(message)
            elif message == "describe":
                reply = answer.describe()
            elif message == "kind":
                reply = Description(answer.kind())
            else:
                try:
                    reply = answer.run(message)
                except KeyboardInterrupt:
                    reply = failure("KeyboardInterrupt", "the answer raised it, as Ctrl-C does")
            try:
                messages.send(replies, reply)
            except (TypeError, messages.TooLarge) as error:
                messages.send(replies, failure(type(error).__name__, f"its result is {error}"))


def _hold(definition: Define) -> tuple[InProcess, Reply]:
    try:
        with contextlib.redirect_stdout(None):
            answer = define_on(definition.others, definition.source, definition.name)
            return InProcess(answer), Reply()
    except BaseException as error:  # the source is a stranger's: it may raise anything
        return InProcess(None), failure(type(error).__name__, str(error))


def main() -> None:
    """Serve this process's parent."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    requests = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    # what the answer prints, and what it waits for, must not run into the messages
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    serve(requests, replies)


if __name__ == "__main__":
    main()
