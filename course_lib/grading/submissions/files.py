"""What was handed in: the notebooks of a folder or of a zip file, and whose they are.

Understood are a folder of notebooks; a folder a student; nbgrader's `submitted/STUDENT/ASSIGNMENT`;
and what Canvas and Moodle make, as the zip file or unpacked: `name_123_456_file.ipynb`,
`Name_123_assignsubmission_file/file.ipynb`, and the same flat, `..._file_file.ipynb`. Only what
these platforms have written themselves, in front, says whose work it is and whether it is late:
what follows is the student's own file name. Their number is how grades find their way back.

Whatever is wrong with what one student handed in becomes the `problem` of that one row.
"""

import os
import re
import stat
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

LARGEST = 100 * 2**20
LARGEST_STAMP = 1024
LAST_SECOND = 253_402_214_400  # the last day that a `datetime` knows
MOST = 100  # notebooks of one student
NOTEBOOK, STAMP = ".ipynb", "timestamp.txt"
NAMED = re.compile(r"(?<=.)(?:\.ipynb.*|\.py)$", re.DOTALL)
ARCHIVES = (".zip", ".tar", ".gz", ".bz2", ".xz", ".7z", ".rar")
FORMATS = {
    "Canvas": re.compile(r"(?P<student>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_.+", re.DOTALL),
    "Moodle": re.compile(
        r"(?P<student>.+?)_(?P<id>\d+)_(?P<late>)assignsubmission_[a-z]+(?:_.*)?", re.DOTALL
    ),
}
# of a folder or zip file, each name at its top, and the files there or below it
Listing = dict[str, list[str]]


class NotSubmissions(ValueError):
    """A path at which no submissions are to be found; the message is one sentence."""


class Unreadable(ValueError):
    """What is wrong with one submission; the message is one sentence."""


@dataclass(frozen=True)
class SubmittedFile:
    """One file: whose it is, its path below the submissions, and when it was handed in.

    `number` is the student's in Canvas or Moodle, where one of these has named the file. `archive`
    is the zip file that it is in; `time` has a zone. Where it cannot be read at all, `problem` says
    why; a student without any notebook has an empty `notebook`.
    """

    student: str
    notebook: str
    root: Path
    archive: Path | None = None
    time: datetime | None = None
    late: bool = False
    problem: str | None = None
    number: str = ""

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
        submissions = _rows(
            {path.name: [path.name]},
            SubmittedFile("", "", path.parent),
            _dated,
            _formats({path.name: True}),
        )
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
            problems.append((path.name, _sentence(error)))
    tops = {name: names == [name] for name, names in listing.items()}
    tops |= {name: True for name, _ in problems}
    # the folders of nbgrader are named by it
    formats = [] if from_nbgrader else _formats(tops)
    failed = [
        replace(_owned(name, True, formats, row), notebook=name, problem=problem)
        for name, problem in problems
    ]
    return [*failed, *_rows(listing, row, _stamped if from_nbgrader else _dated, formats)]


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

    formats = _formats({name: names == [name] for name, names in listing.items()})
    return _rows(listing, SubmittedFile("", "", archive.parent, archive), packed, formats)


def _rows(
    listing: Listing,
    row: SubmittedFile,
    look: Callable[[SubmittedFile], SubmittedFile],
    formats: list[str],
) -> list[SubmittedFile]:
    """Make a row for each notebook, and for each student who has none; `look` at each file."""
    handed_in: dict[str, list[SubmittedFile]] = defaultdict(list)
    owners: dict[str, SubmittedFile] = {}
    for top, names in listing.items():
        own = _owned(top, names == [top], formats, row)
        # what else is beside the submissions is nobody's
        if names != [top] or own.student != top:
            handed_in[own.student] += [replace(own, notebook=name) for name in names]
            owners[own.student] = own
    rows = []
    for student, files in handed_in.items():
        row = owners[student]
        notebooks = [one for one in files if one.notebook.endswith(NOTEBOOK)]
        others = [one.notebook for one in files if PurePosixPath(one.notebook).name != STAMP]
        if not notebooks:
            rows.append(replace(row, problem=_instead(others)))
        elif len(notebooks) > MOST:
            problem = f"These are {len(notebooks)} notebooks of one student: no more than {MOST}."
            rows.append(replace(row, problem=problem))
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


def _formats(tops: Mapping[str, bool]) -> list[str]:
    """Name the platforms that a folder's names are of; `tops` says which are files' names.

    What a student calls a file is the end of its name, and can make a name of Canvas look like one
    of Moodle: where all look like Canvas's, they are.
    """
    fitting = [fits for name, is_file in tops.items() if (fits := _fits(name, is_file))]
    return ["Canvas"] if all("Canvas" in fits for fits in fitting) else list(FORMATS)


def _fits(name: str, is_file: bool) -> dict[str, re.Match]:
    known = {x: pattern for x, pattern in FORMATS.items() if is_file or x != "Canvas"}
    return {x: found for x, pattern in known.items() if (found := pattern.fullmatch(name))}


def _owned(name: str, is_file: bool, formats: list[str], row: SubmittedFile) -> SubmittedFile:
    """Note whose file or folder this is, and whether Canvas marks it as late."""
    found = [match for x, match in _fits(name, is_file).items() if x in formats]
    # a notebook that was saved as text, or exported, is still somebody's
    stem = NAMED.split(name)[0] if is_file else name.removesuffix(NOTEBOOK)
    if not found:
        return replace(row, student=stem)
    if found[1:]:
        problem = (
            "Whose this is, is not clear: names from Canvas and from Moodle are mixed here, and "
            "this could be either. Put it into a folder of its student's name."
        )
        return replace(row, student=stem, problem=problem)
    student, number, late = found[0]["student"], found[0]["id"], bool(found[0]["late"])
    return replace(row, student=f"{student}_{number}", number=number, late=late)
