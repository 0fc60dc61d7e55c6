"""A limit on how long an answer may compute where the learner waits for it, in a notebook."""

import _thread
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Self

from course_lib.answers.answer import Description, Error, InProcess, Reply, Request
from course_lib.answers.source import Source, define_on
from course_lib.checking.verdict import Verdict

SECONDS = 20.0  # of the processor's time, for all calls: a loop that keeps gradients fills memory
GLANCE = 0.2  # seconds between two looks at how long a call has taken


class Interrupted(Exception):
    """The learner has stopped the check; a notebook shows this sentence, and no traceback."""

    def __str__(self) -> str:
        return "Interrupted: nothing was judged."

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def in_time(judged: Callable[["InTime"], Verdict], answer: Any = None) -> Verdict:
    """Judge an answer in this process; to compute for too long is an error. Raises Interrupted."""
    try:
        with InTime(answer, SECONDS) as handle:
            return judged(handle)
    except KeyboardInterrupt:
        raise Interrupted from None


class InTime(InProcess):
    """An answer in this process whose calls may compute for so many seconds together.

    They are interrupted, in the main thread, by a thread that looks now and then, since Windows
    has no timer that sends signals. What the check itself computes is not counted.
    """

    def __init__(self, answer: Any, seconds: float):
        super().__init__(answer)
        self._broken: Description | None = None
        self._seconds, self._left = seconds, seconds
        self._since: float | None = None
        self._over, self._lock, self._end = False, threading.Lock(), threading.Event()
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
            self._broken = Description("error", Source(f"{type(error).__name__}: {error}"))

    def describe(self) -> Description:
        """Tell what the answer is; kind "error" where its source could not be executed."""
        return self._broken or super().describe()

    def run(self, request: Request) -> Reply:
        """Call the answer; after the last of its seconds, the reply is an error."""
        late = Reply(error=Error("Timeout", f"no answer within {self._seconds:g} seconds"))
        if self._over:
            return late
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
            return late

    def _watch(self) -> None:
        while not self._end.wait(GLANCE):
            with self._lock:
                if self._since and time.process_time() - self._since > self._left:
                    self._over = True
                    _thread.interrupt_main()
