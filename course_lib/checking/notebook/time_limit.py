"""A limit on how long an answer may compute where the learner waits for it, in a notebook."""

import _thread
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

from course_lib.answers.answer import (
    Description,
    Error,
    InProcess,
    Reply,
    Request,
    computed_for,
    waited_for,
)
from course_lib.answers.source import define_on
from course_lib.checking.notebook.cells import unseen

Judged = TypeVar("Judged")

SECONDS = 20.0  # of the processor's time, for all calls: a loop that keeps gradients fills memory
WAITS = 20.0  # seconds by the clock, one after another, in which a call does not compute
GLANCE = 0.2  # seconds between two looks at how long a call has taken
IDLE = 0.01  # less of a glance in the processor is not computing, on a busy machine either


class Interrupted(Exception):
    """The learner has stopped the check; a notebook shows this sentence, and no traceback."""

    def __str__(self) -> str:
        return "Interrupted: nothing was judged."

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def in_time(judged: Callable[["InTime"], Judged], answer: Any = None) -> Judged:
    """Judge an answer in this process; to compute for too long is an error. Raises Interrupted.

    What the answer displays or draws is not shown.
    """
    try:
        with unseen(), InTime(answer, SECONDS) as handle:
            return judged(handle)
    except KeyboardInterrupt:
        raise Interrupted from None


class InTime(InProcess):
    """An answer in this process whose calls may compute for so many seconds together.

    They are interrupted, in the main thread, by a thread that looks now and then, since Windows
    has no timer that sends signals. What the check itself computes is not counted. Calls that wait
    for a lock, a download or a clock are interrupted too, after `WAITS` seconds.
    """

    def __init__(self, answer: Any, seconds: float):
        super().__init__(answer)
        self._broken: Description | None = None
        self._seconds, self._left = seconds, seconds
        self._since: float | None = None
        self._over: Error | None = None
        self._lock, self._end = threading.Lock(), threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        # a program started in the background ignores interrupts, and would ignore this one
        self._before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self._watcher.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._watcher.join()
        signal.signal(signal.SIGINT, self._before)

    def hold(self, source: str, name: str, others: Iterable[tuple[str, str]] = ()) -> None:
        """Let `name`, defined by `source` on `others`, be the answer from now on."""
        try:
            with contextlib.redirect_stdout(None):
                self._answer, self._broken = define_on(others, source, name), None
        except Exception as error:
            self._broken = Description("error", problem=f"{type(error).__name__}: {error}")

    def describe(self) -> Description:
        """Tell what the answer is; kind "error" where its source could not be executed."""
        return self._broken or super().describe()

    def run(self, request: Request) -> Reply:
        """Call the answer; after the last of its seconds, the reply is an error."""
        if self._over:
            return Reply(error=self._over)
        start = time.process_time()
        try:
            self._since = start
            try:
                return super().run(request)
            finally:
                with self._lock:
                    self._since = None
                    self._left -= time.process_time() - start
                if self._over:
                    time.sleep(0.01)  # here the interrupt arrives, if it has not yet
        except KeyboardInterrupt:
            if not self._over:
                raise
            with self._lock:
                self._since = None  # the interrupt may have come before this was noted
            return Reply(error=self._over)

    def _watch(self) -> None:
        clock, spent, waited = time.monotonic(), time.process_time(), 0.0
        while not self._end.wait(GLANCE):
            before, computed = clock, spent
            clock, spent = time.monotonic(), time.process_time()
            with self._lock:
                if self._since is None:
                    continue
                idle = spent - computed < IDLE * (clock - before)
                waited = waited + clock - before if idle else 0.0
                if spent - self._since > self._left:
                    self._over = computed_for(self._seconds)
                elif waited > WAITS:
                    self._over = waited_for(WAITS)
                if self._over:
                    _interrupt()


def _interrupt() -> None:
    """Raise KeyboardInterrupt in the main thread."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:  # what waits, wakes up from a signal alone
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
