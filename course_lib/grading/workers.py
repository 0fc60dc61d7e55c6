"""Many notebooks, several lanes: entries come in any order, are kept at once, and end sorted."""

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
from typing import Any

from course_lib.files.atomic import write_atomically
from course_lib.files.paths import ROOT
from course_lib.grading.isolation import NoIsolation
from course_lib.grading.judge import Rules, unreadable
from course_lib.grading.submissions import Submitted
from course_lib.grading.worker import COMMAND, notebook_line, rules_line

KEPT = "unfinished.jsonl"
EXERCISES_OF_A_LESSON = 14
Entry = dict[str, Any]


class OtherRules(Exception):
    """A folder that holds the unfinished results of other rules."""


class Kept:
    """Entries as they came, one a line after the rules, so that a killed run can go on.

    An entry is of a file and of its content: a file that has changed is judged anew.
    """

    def __init__(self, folder: Path):
        self._path = folder / KEPT

    def rules(self) -> Rules | None:
        """Return the rules of an unfinished run, or None where there is none."""
        lines = self._lines()
        return Rules(**lines[0]) if len(lines) > 1 else None

    def begin(self, rules: Rules) -> dict[tuple[str, str], Entry]:
        """Return the entries that there are. Raises OtherRules, OSError."""
        lines = self._lines() if self.rules() else [asdict(rules)]
        if lines[0] != asdict(rules):
            raise OtherRules
        # what a killed run has not written to the end of its line is cut off
        write_atomically(self._path, "".join(json.dumps(line) + "\n" for line in lines))
        return {(x["notebook"], x["sha256"]): x["entry"] for x in lines[1:]}

    def add(self, notebook: str, sha256: str, entry: Entry) -> None:
        """Keep one more entry. Raises OSError."""
        line = {"notebook": notebook, "sha256": sha256, "entry": entry}
        with self._path.open("a", encoding="utf8") as file:
            file.write(json.dumps(line) + "\n")

    def finish(self) -> None:
        """Take the file away: the results are written."""
        self._path.unlink()

    def _lines(self) -> list[dict]:
        try:
            text = self._path.read_text("utf8")
        except FileNotFoundError:
            return []
        whole = text.rpartition("\n")[0]
        return [json.loads(line) for line in whole.split("\n") if line]


def fingerprint(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


class Lane:
    """A process that judges one notebook at a time, and is started again where it ends.

    It and the sandboxes that it starts keep to these processors, where any are given.
    """

    def __init__(self, rules: Rules, processors: Set[int] = frozenset()):
        self._rules, self._processors = rules, processors
        self._limit = rules.seconds * (len(rules.exercises) or EXERCISES_OF_A_LESSON) + 120
        self._process: subprocess.Popen | None = None

    def judge(self, content: bytes) -> Entry:
        """Return the entry of a notebook, whatever it does. Raises NoIsolation."""
        for _ in range(2):
            if line := self._ask(notebook_line(content)):
                return json.loads(line)
        return unreadable("The process that judged this ended, twice.")

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
        try:
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if not answer.endswith("\n"):
            self._give_up()
            return ""
        return answer

    def _start(self) -> subprocess.Popen:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf8")  # noqa: SIM115 - closed below
        self._process = subprocess.Popen(
            COMMAND, cwd=ROOT, text=True, encoding="utf8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip
        if self._processors:
            os.sched_setaffinity(self._process.pid, self._processors)
        self._process.stdin.write(rules_line(self._rules))
        return self._process

    def _give_up(self) -> None:
        process, self._process = self._process, None
        process.kill()
        process.communicate()
        self._errors.seek(0)
        said = self._errors.read().strip()
        self._errors.close()
        if process.returncode == 2:
            raise NoIsolation(said)


def shares(jobs: int) -> list[Set[int]]:
    """Deal the processors out to so many lanes; none to any where the system does not allow it.

    A judge and its sandbox wait for each other in turn, and wake sooner on the same processor.
    """
    if not hasattr(os, "sched_setaffinity"):
        return [frozenset()] * jobs
    ours = sorted(os.sched_getaffinity(0))
    return [set(ours[number % len(ours) :: jobs]) for number in range(jobs)]


def judged_here(
    rules: Rules, work: list[Submitted], jobs: int
) -> Iterator[tuple[Submitted, str, Entry]]:
    """Judge files in so many lanes; yield each with its fingerprint and entry as it is done."""
    lanes: queue.SimpleQueue[Lane] = queue.SimpleQueue()
    for processors in shares(jobs):
        lanes.put(Lane(rules, processors))

    def judge(submitted: Submitted) -> tuple[Submitted, str, Entry]:
        lane = lanes.get()
        try:
            content = submitted.content()
            return submitted, fingerprint(content), lane.judge(content)
        finally:
            lanes.put(lane)

    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(judge, x) for x in work]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)
        for _ in range(jobs):
            lanes.get().close()
