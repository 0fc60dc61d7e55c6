"""What was handed in: the notebooks of a folder or of a zip file, and whose they are.

Understood are a folder of notebooks; a folder a student; nbgrader's `submitted/STUDENT/ASSIGNMENT`;
Gradescope's export; and what Canvas and Moodle make (see `platforms`). Each as a zip file or
unpacked, and with one folder around it.

Whatever is wrong with what one student handed in becomes the `problem` of that one row; what is
nobody's is told to `leave_out`. The date of a file that a platform or an archive has made is that
of the download, and says nothing.
"""

import contextlib
import os
import re
import stat
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from course_lib.grading.submissions import submitters
from course_lib.grading.submissions.platforms import Platform, fits, formats_of, owner, stands_for
from course_lib.grading.submissions.times import parse_time

LARGEST = 100 * 2**20
LARGEST_STAMP = 1024
LAST_SECOND = 253_402_214_400  # the last day that a `datetime` knows
MOST = 100  # notebooks of one student
STAMP, FROM_NBGRADER = "timestamp.txt", "submitted"
NOTEBOOK = re.compile(r".*\.ipynb(?:\.txt|\.json)?", re.DOTALL | re.IGNORECASE)
LESSONS_OWN = re.compile(r"\d\d[_.]")  # begins the names of notebooks that are handed out
ARCHIVES = (".zip", ".tar", ".gz", ".bz2", ".xz", ".7z", ".rar")
SYSTEMS_OWN = ("__MACOSX", ".DS_Store", ".ipynb_checkpoints")
# of a folder or zip file, each name at its top, and the files there or below it
Listing = dict[str, list[str]]


class NotSubmissions(ValueError):
    """A path at which no submissions are to be found; the message is one sentence."""


class Unreadable(ValueError):
    """What is wrong with one submission; the message is one sentence."""


@dataclass(frozen=True)
class SubmittedFile:
    """One file: whose it is, its path below the submissions, and when it was handed in.

    `platform` is Canvas or Moodle where one of these has named the file, and `number` is the
    student's there. `archive` is the zip file that it is in, `inside` the folder around all that is
    there; `time` has a zone, and is None where nothing says it. Where it cannot be read at all,
    `problem` says why; a student without any notebook has an empty `notebook`.
    """

    student: str
    notebook: str
    root: Path
    archive: Path | None = None
    time: datetime | None = None
    late: bool = False
    problem: str | None = None
    number: str = ""
    platform: Platform | None = None
    inside: str = ""

    def content(self) -> bytes:
        """Read the file. Raises Unreadable."""
        try:
            data = self.start(LARGEST + 1)
        except Exception as error:
            raise Unreadable(_sentence(error)) from None
        if len(data) > LARGEST:
            raise Unreadable(
                f"It is larger than {LARGEST // 2**20} MiB: clear the outputs of its cells, save "
                "it, and hand it in again."
            )
        return data

    def start(self, size: int) -> bytes:
        """Read so many bytes of the file. Raises whatever a damaged one leads to."""
        if self.archive is None:
            with (self.root / self.notebook).open("rb") as file:
                return file.read(size)
        with (
            zipfile.ZipFile(self.archive) as whole,
            whole.open(self.inside + self.notebook) as file,
        ):
            return file.read(size)


def collect(
    path: Path, leave_out: Callable[[str], None] = lambda name: None
) -> list[SubmittedFile]:
    """List what was handed in, by student and notebook. Raises NotSubmissions.

    What belongs to nobody, and what is no notebook beside one, is told to `leave_out`.
    """
    if path.is_dir():
        submissions = _in_folder(path, leave_out)
    elif path.is_file() and zipfile.is_zipfile(path):
        try:
            submissions = _in_zip(path, leave_out)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise NotSubmissions(f"{path} is a damaged zip file: {error}.") from None
    elif path.is_file() and NOTEBOOK.fullmatch(path.name):
        submissions = _rows(
            {path.name: [path.name]},
            SubmittedFile("", "", path.parent),
            _dated,
            formats_of({path.name: True}),
            leave_out,
        )
    elif path.exists():
        raise NotSubmissions(f"{path} is neither a folder nor a zip file nor a notebook.")
    else:
        raise NotSubmissions(f"there is no {path}.")
    if not submissions:
        raise NotSubmissions(f"{path} holds no notebooks and no folders of students.")
    return sorted(submissions, key=lambda x: (x.student, x.notebook))


def some(names: list[str]) -> str:
    """Name the first few of many."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _sentence(error: Exception) -> str:
    """Say what is wrong with one submission, whatever it is: no student stops the others."""
    if isinstance(error, Unreadable):
        return str(error)
    why = error.strerror if isinstance(error, OSError) else str(error)
    return f"It cannot be read: {why or type(error).__name__}."


def _in_folder(path: Path, leave_out: Callable[[str], None]) -> list[SubmittedFile]:
    root, from_nbgrader = path, False
    while inner := _around(_shown(root), lambda name, root=root: _shown(root / name)):
        root, from_nbgrader = root / inner, inner == FROM_NBGRADER
        if from_nbgrader:
            break
    listing, problems, row = Listing(), [], SubmittedFile("", "", root)
    for path in sorted(root.iterdir()):
        if _is_hidden(path.name):
            if path.name not in SYSTEMS_OWN:
                leave_out(path.name)
            continue
        try:
            if path.is_symlink():
                raise Unreadable("It is a link, not a file.")
            is_file = bool(NOTEBOOK.fullmatch(path.name)) or not path.is_dir()
            listing[path.name] = [path.name] if is_file else sorted(_files(path))
        except Exception as error:
            problems.append((path.name, _sentence(error)))
    tops = {name: names == [name] for name, names in listing.items()}
    tops |= {name: True for name, _ in problems}
    # the folders of nbgrader are named by it
    formats = [] if from_nbgrader else formats_of(tops)
    failed = [
        replace(_owned(name, True, formats, row), notebook=name, problem=problem)
        for name, problem in problems
    ]
    look = _stamped if from_nbgrader else _dated
    return [*failed, *_rows(listing, row, look, formats, leave_out)]


def _shown(folder: Path) -> dict[str, bool]:
    """Name what can be seen in a folder, and tell which of it are no folders."""
    with contextlib.suppress(OSError):
        shown = [x for x in folder.iterdir() if not _is_hidden(x.name)]
        return {x.name: x.is_symlink() or not x.is_dir() for x in shown}
    return {}


def _around(shown: dict[str, bool], below: Callable[[str], dict[str, bool]]) -> str | None:
    """Name the folder that holds all students and is none of theirs, if there is one.

    It is nbgrader's, or stands alone and holds what a platform has named, several notebooks that
    are not called as lessons are, or folders and no notebook.
    """
    if shown.get(FROM_NBGRADER) is False:
        return FROM_NBGRADER
    if len(shown) != 1 or any(shown.values()):
        return None
    [alone] = shown
    if fits(alone, is_file=False):
        return None
    inside = below(alone)
    notebooks = [name for name, is_file in inside.items() if is_file and NOTEBOOK.fullmatch(name)]
    several = len(notebooks) > 1 and not all(map(LESSONS_OWN.match, notebooks))
    named = any(fits(name, is_file) for name, is_file in inside.items())
    folders = not all(inside.values())
    return alone if named or several or (folders and not notebooks) else None


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


def _in_zip(archive: Path, leave_out: Callable[[str], None]) -> list[SubmittedFile]:
    with zipfile.ZipFile(archive) as whole:
        names = {name: name.endswith("/") for name in whole.namelist()}

    def shown(place: str) -> dict[str, bool]:
        parts = [
            x[len(place) :].partition("/") for x in names if x.startswith(place) and x != place
        ]
        return {top: not slash for top, slash, _ in parts if top == "." or not _is_hidden(top)}

    inside, from_nbgrader = "", False
    while inner := _around(shown(inside), lambda name, place=inside: shown(f"{place}{name}/")):
        inside, from_nbgrader = f"{inside}{inner}/", inner == FROM_NBGRADER
        if from_nbgrader:
            break
    listing: Listing = defaultdict(list)
    for name, is_folder in names.items():
        below = name.removeprefix(inside)
        parts = [part for part in below.split("/") if part not in ("", ".")]
        if any(map(_is_hidden, parts)) or not name.startswith(inside):
            if not is_folder and not any(x in SYSTEMS_OWN for x in parts):
                leave_out(name)
        elif parts:
            listing[parts[0]] += [] if is_folder else [below]
    formats = [] if from_nbgrader else formats_of({x: y == [x] for x, y in listing.items()})
    row = SubmittedFile("", "", archive.parent, archive, inside=inside)
    look = _stamped if from_nbgrader else _undated
    return _rows(listing, row, look, formats, leave_out)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX"))


def _rows(
    listing: Listing,
    row: SubmittedFile,
    look: Callable[[SubmittedFile], SubmittedFile],
    formats: list[Platform],
    leave_out: Callable[[str], None],
) -> list[SubmittedFile]:
    """Make a row for each notebook, and for each student who has none; `look` at each file."""
    handed_in: dict[str, list[SubmittedFile]] = defaultdict(list)
    owners: dict[str, SubmittedFile] = {}
    people_of = _submitters(listing, row)
    for top, names in sorted(listing.items()):
        own = _owned(top, names == [top], formats, row)
        # what else is beside the submissions is nobody's
        if names == [top] and own.student == top:
            leave_out(top)
            continue
        people = [replace(own, student=x.student, time=x.time) for x in people_of.get(top, [])]
        for one in people or [own]:
            handed_in[one.student] += [replace(one, notebook=name) for name in names]
            owners[one.student] = one
    rows = []
    for student, files in handed_in.items():
        row = owners[student]
        notebooks = [one for one in files if NOTEBOOK.fullmatch(one.notebook)]
        others = [one.notebook for one in files if PurePosixPath(one.notebook).name != STAMP]
        if not notebooks:
            rows.append(replace(row, problem=_instead(others)))
        elif people := [] if row.platform else _of_others([one.notebook for one in notebooks]):
            rows.append(replace(row, problem=people))
        elif len(notebooks) > MOST:
            problem = f"These are {len(notebooks)} notebooks of one student: no more than {MOST}."
            rows.append(replace(row, problem=problem))
        else:
            rows += [_looked_at(one, look) for one in notebooks]
            for name in others:
                if not NOTEBOOK.fullmatch(name):
                    leave_out(name)
    return rows


def _submitters(listing: Listing, row: SubmittedFile) -> dict[str, list[submitters.Submitter]]:
    """Read who has submitted each folder, where these are Gradescope's."""
    if listing.get(submitters.METADATA) != [submitters.METADATA]:
        return {}
    del listing[submitters.METADATA]
    text = replace(row, notebook=submitters.METADATA).content().decode(errors="replace")
    return submitters.submitters(text)


def _of_others(notebooks: list[str]) -> str | None:
    """Say whose notebooks a folder holds, where it is no student's: one of a name in each."""
    folders: dict[str, set[str]] = defaultdict(set)
    for notebook in notebooks:
        _, *below = PurePosixPath(notebook).parts
        if not below[1:]:
            return None
        folders[below[-1]].add(below[0])
    people = sorted(max(folders.values(), key=lambda x: (len(x), min(x))))
    if not people[1:]:
        return None
    return (
        f"This folder holds notebooks of {some(people)}: put the folders of students beside each "
        "other, at the top."
    )


def _instead(names: list[str]) -> str | None:
    """Say what was handed in where there is no notebook, if anything was."""
    if not names:
        return None
    if kinds := set(filter(None, map(stands_for, names))):
        return (
            f"There is no notebook, but {' and '.join(sorted(kinds))} ({some(names)}): hand in "
            "the file that ends in .ipynb."
        )
    packed = any(name.lower().endswith(ARCHIVES) for name in names)
    advice = " Unpack it into a folder of this student's name, and grade again." if packed else ""
    return f"There is no notebook, but {some(names)}.{advice}"


def _looked_at(one: SubmittedFile, look: Callable[[SubmittedFile], SubmittedFile]) -> SubmittedFile:
    try:
        return look(one)
    except Exception as error:
        return replace(one, problem=_sentence(error))


def _dated(one: SubmittedFile) -> SubmittedFile:
    """Note when a file was changed last, unless a platform has made it. Raises Unreadable."""
    status = (one.root / one.notebook).lstat()
    kinds = {stat.S_ISLNK: "a link", stat.S_ISDIR: "a folder"}
    if not stat.S_ISREG(status.st_mode):
        kind = next((kind for is_of, kind in kinds.items() if is_of(status.st_mode)), None)
        raise Unreadable(f"It is {kind or 'a pipe or a device'}, not a file.")
    if one.platform or one.time:
        return one
    seconds = min(max(int(status.st_mtime), 0), LAST_SECOND)
    return replace(one, time=datetime.fromtimestamp(seconds, UTC))


def _undated(one: SubmittedFile) -> SubmittedFile:
    return one


def _stamped(one: SubmittedFile) -> SubmittedFile:
    """Note the later of a file's own time and nbgrader's, which is beside the assignment alone."""
    if not one.archive:
        one = _dated(one)
    stamp = "/".join([*PurePosixPath(one.notebook).parts[:2], STAMP])
    try:
        if not one.archive and not stat.S_ISREG((one.root / stamp).lstat().st_mode):
            return one
        content = replace(one, notebook=stamp).start(LARGEST_STAMP + 1)
        taken = parse_time(content.decode()) if len(content) <= LARGEST_STAMP else one.time
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return one
    return replace(one, time=max(filter(None, (one.time, taken)), default=None))


def _owned(name: str, is_file: bool, formats: list[Platform], row: SubmittedFile) -> SubmittedFile:
    return replace(row, **owner(name, is_file, formats)._asdict())
