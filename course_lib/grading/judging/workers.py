"""Many notebooks, several workers: entries come in any order, each as soon as it is done."""

import base64
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from typing import Any

import psutil

from course_lib.files.paths import ROOT
from course_lib.grading.judging.isolation import START_SECONDS, NoIsolation
from course_lib.grading.judging.rules import Rules
from course_lib.grading.marks.entries import unreadable
from course_lib.grading.marks.schema import Entry
from course_lib.grading.submissions.files import SubmittedFile
from course_lib.grading.submissions.journal import fingerprint

EXERCISES_OF_A_LESSON = 14
COMMAND = [sys.executable, "-m", "course_lib.grading.judging.judge"]
READY = "ready"
FOLDERS = "course-grade-"  # and the command's number begin the names of their temporary folders
SECONDS = 60  # of computing, for one notebook, without what its answers take in their sandbox
MEMORY = 2**31  # beside what Python and torch take


class Ending(IntEnum):
    """How this process ends where it cannot go on."""

    NO_TIME = -27  # killed by SIGPROF, a name that Windows does not have
    NO_LEVEL = 2
    NO_MEMORY = 3


ENDINGS: dict[int, str] = {
    Ending.NO_TIME: f"To judge this takes more than {SECONDS} seconds of computing.",
    Ending.NO_MEMORY: f"To judge this takes more than {MEMORY // 2**30} GiB of memory.",
}


class Worker:
    """A process that judges one notebook at a time, and is started again where it ends.

    It and the sandboxes that it starts keep to these processors, where any are given, and to a
    folder for temporary files, which goes with the worker.
    """

    def __init__(self, rules: Rules, processors: Set[int] = frozenset()):
        self._rules, self._processors = rules, processors
        self._limit = (
            rules.seconds * (len(rules.exercises) or EXERCISES_OF_A_LESSON) + START_SECONDS
        )
        prefix = f"{FOLDERS}{os.getpid()}-"
        self._folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
        self._process: subprocess.Popen | None = None
        self._closed = False

    def judge(self, content: bytes) -> Entry:
        """Return the entry of a notebook, whatever it does. Raises NoIsolation."""
        said = ""
        for _ in range(2):
            process = self._process or self._start()
            line, in_time = _exchange(process, base64.b64encode(content).decode(), self._limit)
            if line:
                return json.loads(line)
            ending, words = self._end()
            if ending == Ending.NO_LEVEL:
                raise NoIsolation(words)
            said = ENDINGS.get(ending, "The process that judged this ended, twice.")
            if not in_time:
                said = f"To judge this takes more than {self._limit} seconds."
            if not in_time or ending == Ending.NO_TIME:
                break
        return unreadable(said)

    def close(self) -> None:
        """End the process, whatever it does, and all that it has started."""
        self._closed = True
        self._end()
        self._folder.cleanup()

    def _start(self) -> subprocess.Popen:
        if self._closed:
            raise NoIsolation("the run was ended.")
        errors = tempfile.TemporaryFile("w+", dir=self._folder.name, encoding="utf8")  # noqa: SIM115
        process = subprocess.Popen(
            COMMAND, cwd=ROOT, text=True, encoding="utf8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            env=os.environ | {"TMPDIR": self._folder.name, "PYTHONHASHSEED": "0"},
            start_new_session=True,  # what is typed into the terminal is this process's to handle
        )  # fmt: skip
        self._process, self._errors = process, errors
        if self._processors:
            os.sched_setaffinity(process.pid, self._processors)
        ready, _ = _exchange(process, asdict(self._rules), START_SECONDS)
        if ready != f"{READY}\n":
            _, words = self._end()
            raise NoIsolation(words or "the process that judges notebooks does not start here.")
        return process

    def _end(self) -> tuple[int, str]:
        """End the process, and return how it ended and the last line that it said."""
        process, self._process = self._process, None
        if not process:
            return 0, ""
        process.kill()
        process.communicate()
        with self._errors as errors:
            errors.seek(0)
            said = errors.read().strip()
        return process.returncode, said.rpartition("\n")[2]


def _exchange(process: subprocess.Popen, content: Any, seconds: float) -> tuple[str, bool]:
    """Send a line, and return the whole line that comes back, if any, and whether in time."""
    late = threading.Event()
    timer = threading.Timer(seconds, lambda: (late.set(), process.kill()))
    timer.start()
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(json.dumps(content) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except (BrokenPipeError, ValueError):  # it has ended, or was closed meanwhile
        answer = ""
    finally:
        timer.cancel()
    return (answer if answer.endswith("\n") else ""), not late.is_set()


def clear_away() -> None:
    """Take away the folders of workers whose command was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*"):
        number = folder.name.removeprefix(FOLDERS).partition("-")[0]
        with contextlib.suppress(OSError, ValueError):
            own = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            if own and not psutil.pid_exists(int(number)):
                shutil.rmtree(folder)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let a signal that would kill this process raise SystemExit, so that all is put away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signals = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    before = {number: signal.signal(number, end) for number in signals if number}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def shares(jobs: int) -> list[Set[int]]:
    """Deal the processors out to so many workers; none to any where the system does not allow it.

    A judge and its sandbox wait for each other in turn, and wake sooner on the same processor.
    """
    if not hasattr(os, "sched_setaffinity"):
        return [frozenset()] * jobs
    ours = sorted(os.sched_getaffinity(0))
    return [set(ours[number % len(ours) :: jobs]) for number in range(jobs)]


def judged_here(
    rules: Rules, work: list[SubmittedFile], jobs: int
) -> Iterator[tuple[SubmittedFile, str, Entry]]:
    """Judge files in so many workers; yield each with its fingerprint and entry as it is done."""
    clear_away()
    workers = [Worker(rules, processors) for processors in shares(jobs)]
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def judge(submitted: SubmittedFile) -> tuple[SubmittedFile, str, Entry]:
        worker = idle.get()
        try:
            content = submitted.content()
            return submitted, fingerprint(content), worker.judge(content)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(judge, x) for x in work]):
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.close()
