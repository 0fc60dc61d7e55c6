"""What has been judged so far, kept so that a run that was killed goes on where it stopped."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from course_lib.files.atomic import write_atomically
from course_lib.grading.judging.rules import Rules
from course_lib.grading.marks.schema import Entry

JOURNAL = "unfinished.jsonl"


class OtherRules(Exception):
    """A folder that holds unfinished results of other options; the message names these."""


class Journal:
    """Entries as they came, one a line after the rules, so that a killed run can go on.

    An entry is of a file and of its content: a file that has changed is judged anew, and all of
    them where an exercise or the course has. Each line begins with its own fingerprint, and one
    that has been damaged counts as never written.
    """

    def __init__(self, folder: Path):
        self._path = folder / JOURNAL

    def rules(self) -> Rules | None:
        """Return the rules of an unfinished run, or None where there is none."""
        lines = self._lines()
        try:
            return Rules(**lines[0]) if lines else None
        except TypeError:  # of a version that had other rules
            return None

    def changed(self, rules: Rules) -> list[str]:
        """Name what has judged entries that there are, and is of another version now."""
        before = self.rules()
        return before.changed(rules) if before and self._lines()[1:] else []

    def begin(self, rules: Rules) -> dict[tuple[str, str], Entry]:
        """Return the entries that these rules would give again. Raises OtherRules, OSError."""
        before = self.rules()
        lines = self._lines()[1:] if before else []
        if before and lines and (options := before.other_options(rules)):
            raise OtherRules(", ".join(options))
        lines = [asdict(rules), *([] if self.changed(rules) else lines)]
        # what a killed run has not written to the end of its line is cut off
        write_atomically(self._path, "".join(map(_line, lines)))
        return {(x["notebook"], x["sha256"]): x["entry"] for x in lines[1:]}

    def add(self, notebook: str, sha256: str, entry: Entry) -> None:
        """Keep one more entry. Raises OSError."""
        line = {"notebook": notebook, "sha256": sha256, "entry": entry}
        with self._path.open("a", encoding="utf8") as file:
            file.write(_line(line))

    def finish(self) -> None:
        """Take the file away: all that a run writes is written."""
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
