"""What was handed in: the notebooks of a folder or of a zip file, and whose they are.

Understood are a folder of notebooks; a folder a student; nbgrader's `submitted/STUDENT/ASSIGNMENT`;
and what Canvas and Moodle make, as the zip file or unpacked: `name_123_456_file.ipynb` and
`Name_123_assignsubmission_file/file.ipynb`. Their number stays with the name (`name_123`), so that
grades find their way back.
"""

import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

LARGEST = 32 * 2**20
CANVAS = re.compile(r"(?P<student>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_.+\.ipynb")
MOODLE = re.compile(r"(?P<student>.+)_(?P<id>\d+)_assignsubmission_file_?")


class NotSubmissions(ValueError):
    """A path at which no submissions are to be found; the message is one sentence."""


@dataclass(frozen=True)
class SubmittedFile:
    """One file: whose it is, its path below the submissions, and when it was handed in.

    `archive` is the zip file that it stands in. Where it cannot be read at all, `problem` says
    why; a student without any notebook has an empty `notebook`.
    """

    student: str
    notebook: str
    root: Path
    archive: Path | None = None
    time: datetime | None = None
    late: bool = False
    problem: str | None = None

    def content(self) -> bytes:
        """Read the file. Raises OSError, or ValueError with one sentence."""
        try:
            if self.archive is None:
                with (self.root / self.notebook).open("rb") as file:
                    data = file.read(LARGEST + 1)
            else:
                with zipfile.ZipFile(self.archive) as whole, whole.open(self.notebook) as file:
                    data = file.read(LARGEST + 1)
        except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:
            raise ValueError(f"It cannot be taken out of the zip file: {error}.") from None
        if len(data) > LARGEST:
            raise ValueError(f"It is larger than {LARGEST // 2**20} MiB.")
        return data


def collect(path: Path) -> list[SubmittedFile]:
    """List what was handed in, by student and notebook. Raises NotSubmissions."""
    if path.is_dir():
        submissions = list(
            _in_folder(path / "submitted" if (path / "submitted").is_dir() else path)
        )
    elif path.is_file() and zipfile.is_zipfile(path):
        try:
            submissions = list(_in_zip(path))
        except (zipfile.BadZipFile, ValueError) as error:
            raise NotSubmissions(f"{path} is a damaged zip file: {error}.") from None
    elif path.is_file() and path.suffix == ".ipynb":
        submissions = [_file(path.parent, path.name, path.stem)]
    elif path.exists():
        raise NotSubmissions(f"{path} is neither a folder nor a zip file nor a notebook.")
    else:
        raise NotSubmissions(f"there is no {path}.")
    if not submissions:
        raise NotSubmissions(f"{path} holds no notebooks and no folders of students.")
    return sorted(submissions, key=lambda x: (x.student, x.notebook))


def _in_folder(root: Path) -> Iterator[SubmittedFile]:
    for path in sorted(root.iterdir()):
        if path.name.startswith("."):
            continue
        if path.suffix == ".ipynb":
            yield _file(root, path.name, *_owner(path.name))
        elif path.is_symlink():
            yield SubmittedFile(path.name, path.name, root, problem="It is a link, not a file.")
        elif path.is_dir():
            student, _ = _owner(path.name)
            inside = sorted(x for x in path.rglob("*.ipynb") if not _is_hidden(x, path))
            for notebook in inside:
                yield _file(root, notebook.relative_to(root).as_posix(), student)
            if not inside:
                yield SubmittedFile(student, "", root)


def _file(root: Path, name: str, student: str, late: bool = False) -> SubmittedFile:
    path = root / name
    try:
        status = path.lstat()
        time = _stamp(path.parent) or datetime.fromtimestamp(int(status.st_mtime))
    except OSError as error:
        return SubmittedFile(student, name, root, problem=f"It cannot be read: {error.strerror}.")
    kinds = {stat.S_ISLNK: "a link", stat.S_ISDIR: "a folder"}
    kind = next(
        (kind for is_of, kind in kinds.items() if is_of(status.st_mode)), "a pipe or a device"
    )
    if not stat.S_ISREG(status.st_mode):
        return SubmittedFile(student, name, root, problem=f"It is {kind}, not a file.")
    return SubmittedFile(student, name, root, time=time, late=late)


def _in_zip(archive: Path) -> Iterator[SubmittedFile]:
    students: dict[str, bool] = {}
    with zipfile.ZipFile(archive) as whole:
        for entry in whole.infolist():
            parts = PurePosixPath(entry.filename).parts
            if entry.is_dir() or any(part.startswith((".", "__MACOSX")) for part in parts):
                continue
            student, late = _owner(parts[0])
            notebook = parts[-1].endswith(".ipynb")
            if len(parts) > 1:
                students[student] = students.get(student, False) or notebook
            if notebook:
                time = _packed(entry)
                yield SubmittedFile(student, entry.filename, archive.parent, archive, time, late)
    for student, has_notebook in students.items():
        if not has_notebook:
            yield SubmittedFile(student, "", archive.parent, archive)


def _owner(name: str) -> tuple[str, bool]:
    """Tell whose file or folder this is, and whether Canvas marks it as late."""
    if match := CANVAS.fullmatch(name):
        return f"{match['student']}_{match['id']}", bool(match["late"])
    if match := MOODLE.fullmatch(name):
        return f"{match['student']}_{match['id']}", False
    return name.removesuffix(".ipynb"), False


def _is_hidden(path: Path, below: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(below).parts)


def _packed(entry: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*entry.date_time)
    except ValueError:  # some programs leave the date out
        return None


def _stamp(folder: Path) -> datetime | None:
    """Read when nbgrader took a submission."""
    try:
        words = (folder / "timestamp.txt").read_text("utf8").split()
        return datetime.fromisoformat(" ".join(words[:2]))
    except (OSError, ValueError):
        return None
