"""Many notebooks, several workers: entries come in any order, each as soon as it is done."""

import base64
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from enum import IntEnum
from typing import Any

from course_lib.files.paths import ROOT
from course_lib.grading.judging.isolation import START_SECONDS, NoIsolation
from course_lib.grading.judging.rules import Rules
from course_lib.grading.marks.entries import unreadable
from course_lib.grading.marks.schema import Entry
from course_lib.grading.submissions.files import SubmittedFile
from course_lib.grading.submissions.journal import fingerprint

EXERCISES_OF_A_LESSON = 14
COMMAND = [sys.executable, "-m", "course_lib.grading.judging.worker"]
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

    It and the sandboxes that it starts keep to these processors, where any are given.
    """

    def __init__(self, rules: Rules, processors: Set[int] = frozenset()):
        self._rules, self._processors = rules, processors
        self._limit = (
            rules.seconds * (len(rules.exercises) or EXERCISES_OF_A_LESSON) + START_SECONDS
        )
        self._process: subprocess.Popen | None = None
        self._ending = 0

    def judge(self, content: bytes) -> Entry:
        """Return the entry of a notebook, whatever it does. Raises NoIsolation."""
        for _ in range(2):
            if line := self._ask(base64.b64encode(content).decode()):
                return json.loads(line)
            if self._ending == Ending.NO_TIME:
                break
        return unreadable(ENDINGS.get(self._ending, "The process that judged this ended, twice."))

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.communicate()
            self._errors.close()
            self._process = None

    def _ask(self, content: str) -> str:
        process = self._process or self._start()
        timer = threading.Timer(self._limit, process.kill)
        timer.start()
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(_line(content))
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if not answer.endswith("\n"):
            self._give_up(process)
            return ""
        return answer

    def _start(self) -> subprocess.Popen:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf8")  # noqa: SIM115 - closed below
        process = subprocess.Popen(
            COMMAND, cwd=ROOT, text=True, encoding="utf8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip
        if self._processors:
            os.sched_setaffinity(process.pid, self._processors)
        assert process.stdin
        process.stdin.write(_line(asdict(self._rules)))
        self._process = process
        return process

    def _give_up(self, process: subprocess.Popen) -> None:
        self._process = None
        process.kill()
        process.communicate()
        self._errors.seek(0)
        said = self._errors.read().strip()
        self._errors.close()
        self._ending = process.returncode
        if process.returncode == Ending.NO_LEVEL:
            raise NoIsolation(said)


def _line(content: Any) -> str:
    return json.dumps(content) + "\n"


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
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for processors in shares(jobs):
        idle.put(Worker(rules, processors))

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
        pool.shutdown(cancel_futures=True)
        for _ in range(jobs):
            idle.get().close()
