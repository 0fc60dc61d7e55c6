"""A learner's workspace: their notebooks, the record of each check, and their passed answers.

workspace/01_rnn_limits.ipynb            theirs; never overwritten
workspace/explorations/04_trees.ipynb    the same
workspace/.course/records/rnn/cell.json  one file an exercise, so two notebooks never collide
workspace/.course/answers/rnn/cell.py    the source of a passed answer, able to stand alone
workspace/.course/guesses/<a cell's key>.json   the first guess made there, and what was measured
workspace/.course/backups/rnn/           what `course reset` took out
workspace/.course/releases.json          which release of each notebook was handed out
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from course_lib.files.atomic import write_atomically
from course_lib.files.paths import IS_CLONE, ROOT

MARK = ".course"
VARIABLE = "COURSE_WORKSPACE"  # of the environment: the folder that answers are kept in


@dataclass(frozen=True)
class Record:
    """What is known of one exercise: the last status, and the best points so far.

    `mistake` is what the last check has named, where that was a known mistake.
    """

    status: str = "not attempted"
    points: int = 0
    max_points: int = 0
    passed: bool = False
    attempts: int = 0
    hints: int = 0
    when: str = ""
    mistake: str = ""


@dataclass(frozen=True)
class Guess:
    """A prediction as it was typed, what was measured then, and how near the two were."""

    said: str
    measured: str
    verdict: str
    when: str = ""


@dataclass(frozen=True)
class Workspace:
    """A folder that holds the mark `.course`."""

    folder: Path

    @classmethod
    def find(cls, start: Path | None = None) -> "Workspace | None":
        """Return the workspace that $COURSE_WORKSPACE names, or else a folder is in, or None."""
        if named := os.environ.get(VARIABLE):
            return cls.at(Path(named).expanduser())
        start = (start or Path.cwd()).resolve()
        return next(filter(None, map(cls.at, [start, *start.parents])), None)

    @classmethod
    def at(cls, folder: Path) -> "Workspace | None":
        """Return a folder as a workspace, or None if it is none."""
        return cls(folder.resolve()) if (folder / MARK).is_dir() else None

    @classmethod
    def make(cls, folder: Path) -> "Workspace":
        """Make a folder a workspace, if it is none yet. Raises OSError."""
        (folder / MARK).mkdir(parents=True, exist_ok=True)
        return cls(folder.resolve())

    @staticmethod
    def may_be_made_here() -> bool:
        """Tell whether $COURSE_WORKSPACE, or else the current folder, may become a workspace.

        No folder of the repository may: its notebooks are built and tested there.
        """
        return bool(os.environ.get(VARIABLE)) or not (
            IS_CLONE and Path.cwd().resolve().is_relative_to(ROOT)
        )

    @classmethod
    def make_here(cls) -> "Workspace":
        """Make $COURSE_WORKSPACE, or else the current folder, a workspace. Raises OSError."""
        return cls.make(Path(os.environ.get(VARIABLE) or ".").expanduser())

    def record(self, exercise_id: str) -> Record:
        """Return the record of an exercise; an unreadable one counts as none."""
        try:
            return Record(**json.loads(self.file("records", exercise_id, "json").read_text("utf8")))
        except (OSError, ValueError, TypeError):
            return Record()

    def note_check(
        self, exercise_id: str, status: str, points: int, max_points: int, mistake: str = ""
    ) -> None:
        """Record the outcome of a check. Raises OSError; the old record then stays."""
        old = self.record(exercise_id)
        if status == "not attempted" and old.attempts == 0:
            return
        self._write(
            exercise_id,
            Record(
                status=status,
                points=max(points, old.points),
                max_points=max_points,
                passed=old.passed or status == "passed",
                attempts=old.attempts + (status != "not attempted"),
                hints=old.hints,
                when=datetime.now().isoformat(timespec="seconds"),
                mistake=mistake,
            ),
        )

    def note_hint(self, exercise_id: str, number: int) -> None:
        """Record how many hints of an exercise have been read. Raises OSError."""
        old = self.record(exercise_id)
        self._write(exercise_id, replace(old, hints=max(number, old.hints)))

    def keep(self, exercise_id: str, source: str) -> None:
        """Keep the source of a passed answer. Raises OSError; an older one then stays."""
        write_atomically(self.file("answers", exercise_id, "py"), source)

    def answer(self, exercise_id: str) -> str | None:
        """Return the source of the passed answer, or None."""
        try:
            return self.file("answers", exercise_id, "py").read_text("utf8")
        except OSError:
            return None

    def kept(self, exercise_id: str) -> datetime | None:
        """Return when the passed answer was kept, or None."""
        try:
            written = self.file("answers", exercise_id, "py").stat().st_mtime
        except OSError:
            return None
        return datetime.fromtimestamp(written)

    def note_guess(self, key: str, guess: Guess) -> None:
        """Keep the first guess that is made under a key; later ones know more. Raises OSError."""
        path = self.file("guesses", key, "json")
        if not path.exists():
            now = datetime.now().isoformat(timespec="seconds")
            write_atomically(path, json.dumps(asdict(replace(guess, when=now)), indent=1))

    def guesses(self) -> dict[str, Guess]:
        """Return the guesses by their keys; unreadable ones are left out."""
        kept = {}
        for path in (self.folder / MARK / "guesses").glob("*.json"):
            with suppress(OSError, ValueError, TypeError):
                kept[path.stem] = Guess(**json.loads(path.read_text("utf8")))
        return kept

    def back_up(self, name: str, content: str | bytes, ending: str = "py") -> Path:
        """Keep what is about to be replaced, and return where. Raises OSError."""
        moment = datetime.now().strftime("%Y-%m-%d-%H%M%S-%f")
        path = self.file("backups", f"{name}/{moment}", ending)
        write_atomically(path, content)
        return path

    def releases(self) -> dict[str, str]:
        """Return the release of each notebook that was handed out, by file name."""
        try:
            return dict(json.loads((self.folder / MARK / "releases.json").read_text("utf8")))
        except (OSError, ValueError):
            return {}

    def note_releases(self, releases: dict[str, str]) -> None:
        """Record which releases were handed out. Raises OSError."""
        write_atomically(self.folder / MARK / "releases.json", json.dumps(releases, indent=1))

    def _write(self, exercise_id: str, record: Record) -> None:
        write_atomically(
            self.file("records", exercise_id, "json"), json.dumps(asdict(record), indent=1)
        )

    def file(self, kind: str, name: str, ending: str) -> Path:
        """Name the file of what is kept of a kind: "records", "answers", "guesses", "backups"."""
        return self.folder / MARK / kind / f"{name}.{ending}"
