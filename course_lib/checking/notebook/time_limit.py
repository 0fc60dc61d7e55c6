"""A limit on how long an answer may compute where the learner waits for it, in a notebook."""

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from course_lib.answers.answer import InProcess
from course_lib.checking.exercise import Exercise
from course_lib.checking.verdict import Verdict, judge, untried

SECONDS = 20  # of the processor's time, for one check: a loop that keeps gradients fills memory


class OutOfTime(Exception):
    """The block has computed for longer than it may."""


class Interrupted(Exception):
    """The learner has stopped the block; a notebook shows this sentence, and no traceback."""

    def __str__(self) -> str:
        return "Interrupted: nothing was judged."

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def judged_in_time(exercise: Exercise, answer: Any) -> Verdict:
    """Judge an answer in this process; one that computes for too long is an error."""
    try:
        with time_limit(SECONDS):
            return judge(exercise, InProcess(answer))
    except OutOfTime:
        message = f"No result within {SECONDS} seconds: does a loop in your code never end?"
        return untried(exercise, "error", message)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the block, in the main thread, after so many seconds of the processor's time.

    A thread looks each second, since Windows has no timer that sends signals. Raises OutOfTime, or
    Interrupted where it was somebody else who did.
    """
    # a program started in the background ignores interrupts, and would ignore this one
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    start, over, end = time.process_time(), threading.Event(), threading.Event()

    def watch() -> None:
        while not end.wait(timeout=1):
            if time.process_time() - start > seconds:
                over.set()
                _thread.interrupt_main()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        try:
            yield
        finally:
            end.set()
            watcher.join()
    except KeyboardInterrupt:
        raise OutOfTime if over.is_set() else Interrupted from None
    finally:
        signal.signal(signal.SIGINT, before)
