"""Many notebooks, several workers: entries come in any order, are kept at once, and end sorted."""

import hashlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from course_lib.files.atomic import write_atomically
from course_lib.files.paths import ROOT
from course_lib.grading.isolation import START_SECONDS, NoIsolation
from course_lib.grading.judge import Rules, unreadable
from course_lib.grading.schema import Entry
from course_lib.grading.submissions import SubmittedFile
from course_lib.grading.worker import COMMAND, ENDINGS, Ending, notebook_line, rules_line

JOURNAL = "unfinished.jsonl"
EXERCISES_OF_A_LESSON = 14


class OtherRules(Exception):
    """A folder that holds the unfinished results of other rules."""


class Journal:
    """Entries as they came, one a line after the rules, so that a killed run can go on.

    An entry is of a file and of its content: a file that has changed is judged anew. Each line
    begins with its own fingerprint, and one that has been damaged counts as never written.
    """

    def __init__(self, folder: Path):
        self._path = folder / JOURNAL

    def rules(self) -> Rules | None:
        """Return the rules of an unfinished run, or None where there is none."""
        lines = self._lines()
        try:
            return Rules(**lines[0]) if len(lines) > 1 else None
        except TypeError:  # of a version that had other rules
            return None

    def begin(self, rules: Rules) -> dict[tuple[str, str], Entry]:
        """Return the entries that there are. Raises OtherRules, OSError."""
        lines = self._lines() if self.rules() else [asdict(rules)]
        if lines[0] != asdict(rules):
            raise OtherRules
        # what a killed run has not written to the end of its line is cut off
        write_atomically(self._path, "".join(map(_line, lines)))
        return {(x["notebook"], x["sha256"]): x["entry"] for x in lines[1:]}

    def add(self, notebook: str, sha256: str, entry: Entry) -> None:
        """Keep one more entry. Raises OSError."""
        line = {"notebook": notebook, "sha256": sha256, "entry": entry}
        with self._path.open("a", encoding="utf8") as file:
            file.write(_line(line))

    def finish(self) -> None:
        """Take the file away: the results are written."""
        self._path.unlink()

    def _lines(self) -> list[dict]:
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        whole = [line for line in lines if line[:64].decode("latin1") == fingerprint(line[65:])]
        # without the rules at the head, nobody knows what the entries are of
        return [json.loads(line[65:]) for line in whole] if whole[:1] == lines[:1] else []


def _line(content: dict) -> str:
    text = json.dumps(content)
    return f"{fingerprint(text.encode())} {text}\n"


def fingerprint(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


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
            if line := self._ask(notebook_line(content)):
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

    def _ask(self, line: str) -> str:
        process = self._process or self._start()
        timer = threading.Timer(self._limit, process.kill)
        timer.start()
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(line)
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
        process.stdin.write(rules_line(self._rules))
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
