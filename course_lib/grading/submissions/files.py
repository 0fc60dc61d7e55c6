"""What was handed in: the notebooks of a folder or of a zip file, and whose they are.

Understood are a folder of notebooks; a folder a student; nbgrader's `submitted/STUDENT/ASSIGNMENT`;
and what Canvas and Moodle make, as the zip file or unpacked: `name_123_456_file.ipynb`,
`Name_123_assignsubmission_file/file.ipynb`, and the same flat, `..._file_file.ipynb`. Their number
stays with the name (`name_123`), so that grades find their way back.

Whatever is wrong with what one student handed in becomes the `problem` of that one row.
"""

import os
import re
import stat
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

LARGEST = 100 * 2**20
LARGEST_STAMP = 1024
LAST_SECOND = 253_402_214_400  # the last day that a `datetime` knows
MOST = 100  # notebooks of one student
NOTEBOOK, STAMP = ".ipynb", "timestamp.txt"
ARCHIVES = (".zip", ".tar", ".gz", ".bz2", ".xz", ".7z", ".rar")
CANVAS = re.compile(r"(?P<student>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_.+", re.DOTALL)
MOODLE = re.compile(r"(?P<student>.+)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_.*)?", re.DOTALL)
# of a folder or zip file, each name at its top, and the files there or below it
Listing = dict[str, list[str]]


class NotSubmissions(ValueError):
    """A path at which no submissions are to be found; the message is one sentence."""


class Unreadable(ValueError):
    """What is wrong with one submission; the message is one sentence."""


@dataclass(frozen=True)
class SubmittedFile:
    """One file: whose it is, its path below the submissions, and when it was handed in.

    `archive` is the zip file that it stands in; `time` has a zone. Where it cannot be read at all,
    `problem` says why; a student without any notebook has an empty `notebook`.
    """

    student: str
    notebook: str
    root: Path
    archive: Path | None = None
    time: datetime | None = None
    late: bool = False
    problem: str | None = None

    def content(self) -> bytes:
        """Read the file. Raises Unreadable."""
        try:
            if self.archive is None:
                with (self.root / self.notebook).open("rb") as file:
                    data = file.read(LARGEST + 1)
            else:
                with zipfile.ZipFile(self.archive) as whole, whole.open(self.notebook) as file:
                    data = file.read(LARGEST + 1)
        except Exception as error:
            raise Unreadable(_sentence(error)) from None
        if len(data) > LARGEST:
            raise Unreadable(
                f"It is larger than {LARGEST // 2**20} MiB: clear the outputs of its cells, save "
                "it, and hand it in again."
            )
        return data


def collect(path: Path) -> list[SubmittedFile]:
    """List what was handed in, by student and notebook. Raises NotSubmissions."""
    if path.is_dir():
        from_nbgrader = (path / "submitted").is_dir()
        submissions = _in_folder(path / "submitted" if from_nbgrader else path, from_nbgrader)
    elif path.is_file() and zipfile.is_zipfile(path):
        try:
            submissions = _in_zip(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise NotSubmissions(f"{path} is a damaged zip file: {error}.") from None
    elif path.is_file() and path.suffix == NOTEBOOK:
        submissions = _rows({path.name: [path.name]}, SubmittedFile("", "", path.parent), _dated)
    elif path.exists():
        raise NotSubmissions(f"{path} is neither a folder nor a zip file nor a notebook.")
    else:
        raise NotSubmissions(f"there is no {path}.")
    if not submissions:
        raise NotSubmissions(f"{path} holds no notebooks and no folders of students.")
    return sorted(submissions, key=lambda x: (x.student, x.notebook))


def parse_time(text: str) -> datetime:
    """Read "2026-12-01 23:59+01:00" or "... UTC"; without a zone it is local. Raises ValueError."""
    date, *rest = text.replace("UTC", "Z").split() or [""]
    try:
        return datetime.fromisoformat(f"{date} {''.join(rest)}".strip()).astimezone(UTC)
    except (OverflowError, OSError):  # in the year 1 or 9999, another zone is beyond all dates
        raise ValueError(f"{text} is beyond all dates") from None


def _sentence(error: Exception) -> str:
    """Say what is wrong with one submission, whatever it is: no student stops the others."""
    if isinstance(error, Unreadable):
        return str(error)
    why = error.strerror if isinstance(error, OSError) else str(error)
    return f"It cannot be read: {why or type(error).__name__}."


def _in_folder(root: Path, from_nbgrader: bool) -> list[SubmittedFile]:
    listing, problems, row = Listing(), [], SubmittedFile("", "", root)
    for path in sorted(root.iterdir()):
        if path.name.startswith("."):
            continue
        try:
            if path.is_symlink():
                raise Unreadable("It is a link, not a file.")
            is_file = path.name.endswith(NOTEBOOK) or not path.is_dir()
            listing[path.name] = [path.name] if is_file else sorted(_files(path))
        except Exception as error:
            student, _ = _owner(path.name, is_file=True)
            problem = _sentence(error)
            problems.append(replace(row, student=student, notebook=path.name, problem=problem))
    return [*problems, *_rows(listing, row, _stamped if from_nbgrader else _dated)]


def _files(folder: Path) -> Iterator[str]:
    """List the files below a folder, as seen from its parent, without what is hidden."""

    def fail(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(folder, onerror=fail):
        links = [name for name in folders if Path(place, name).is_symlink()]
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in (*names, *links):
            if not name.startswith("."):
                yield Path(place, name).relative_to(folder.parent).as_posix()


def _in_zip(archive: Path) -> list[SubmittedFile]:
    listing: Listing = defaultdict(list)
    with zipfile.ZipFile(archive) as whole:
        entries = {entry.filename: entry for entry in whole.infolist()}
    for name, entry in entries.items():
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if parts and not any(part.startswith((".", "__MACOSX")) for part in parts):
            listing[parts[0]] += [] if entry.is_dir() else [name]

    def packed(one: SubmittedFile) -> SubmittedFile:
        try:
            time = datetime(*entries[one.notebook].date_time).astimezone(UTC)
        except (ValueError, OverflowError):  # some programs leave the date out
            return one
        return replace(one, time=time)

    return _rows(listing, SubmittedFile("", "", archive.parent, archive), packed)


def _rows(
    listing: Listing, row: SubmittedFile, look: Callable[[SubmittedFile], SubmittedFile]
) -> list[SubmittedFile]:
    """Make a row for each notebook, and for each student who has none; `look` at each file."""
    handed_in: dict[str, list[SubmittedFile]] = defaultdict(list)
    for top, names in listing.items():
        student, late = _owner(top, is_file=names == [top])
        # what else is beside the submissions is nobody's
        if names != [top] or student != top:
            own = replace(row, student=student, late=late)
            handed_in[student] += [replace(own, notebook=name) for name in names]
    rows = []
    for student, files in handed_in.items():
        notebooks = [one for one in files if one.notebook.endswith(NOTEBOOK)]
        others = [one.notebook for one in files if PurePosixPath(one.notebook).name != STAMP]
        if not notebooks:
            rows.append(replace(row, student=student, problem=_instead(others)))
        elif len(notebooks) > MOST:
            problem = f"These are {len(notebooks)} notebooks of one student: no more than {MOST}."
            rows.append(replace(row, student=student, problem=problem))
        else:
            rows += [_looked_at(one, look) for one in notebooks]
    return rows


def _instead(names: list[str]) -> str | None:
    """Say what was handed in where there is no notebook, if anything was."""
    if not names:
        return None
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    packed = any(name.endswith(ARCHIVES) for name in names)
    advice = " Unpack it into a folder of this student's name, and grade again." if packed else ""
    return f"There is no notebook, but {', '.join(names[:3])}{more}.{advice}"


def _looked_at(one: SubmittedFile, look: Callable[[SubmittedFile], SubmittedFile]) -> SubmittedFile:
    try:
        return look(one)
    except Exception as error:
        return replace(one, problem=_sentence(error))


def _dated(one: SubmittedFile) -> SubmittedFile:
    """Note when a file was changed last. Raises Unreadable where it is none."""
    status = (one.root / one.notebook).lstat()
    kinds = {stat.S_ISLNK: "a link", stat.S_ISDIR: "a folder"}
    if not stat.S_ISREG(status.st_mode):
        kind = next((kind for is_of, kind in kinds.items() if is_of(status.st_mode)), None)
        raise Unreadable(f"It is {kind or 'a pipe or a device'}, not a file.")
    seconds = min(max(int(status.st_mtime), 0), LAST_SECOND)
    return replace(one, time=datetime.fromtimestamp(seconds, UTC))


def _stamped(one: SubmittedFile) -> SubmittedFile:
    """Note the later of a file's own time and nbgrader's, which is beside the assignment alone."""
    one = _dated(one)
    stamp = one.root.joinpath(*PurePosixPath(one.notebook).parts[:2], STAMP)
    try:
        status = stamp.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_STAMP:
            return one
        taken = parse_time(stamp.read_text("utf8"))
    except (OSError, ValueError):
        return one
    return replace(one, time=max(one.time or taken, taken))


def _owner(name: str, is_file: bool) -> tuple[str, bool]:
    """Tell whose file or folder this is, and whether Canvas marks it as late."""
    if match := MOODLE.fullmatch(name):
        return f"{match['student']}_{match['id']}", False
    if is_file and (match := CANVAS.fullmatch(name)):
        return f"{match['student']}_{match['id']}", bool(match["late"])
    return name.removesuffix(NOTEBOOK), False
