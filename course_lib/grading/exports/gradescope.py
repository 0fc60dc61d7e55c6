"""Gradescope: an archive with which its machine runs `course grade` on every submission."""

import io
import zipfile
from pathlib import Path

from course_lib.files.paths import IS_CLONE, ROOT
from course_lib.grading.exports import release

SETUP = """\
#!/usr/bin/env bash
# Prepares the machine that grades; Gradescope runs this once, and again after each upload.
set -euo pipefail
AUTOGRADER="${AUTOGRADER:-/autograder}"

# Options of pip, such as the index of PyTorch's CPU build, which spares gigabytes of CUDA.
PIP_ARGS="${PIP_ARGS:-}"

apt-get update -q
apt-get install -qy bubblewrap python3 python3-venv
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "The course needs Python 3.11 or newer: choose a newer base image in Gradescope." >&2
  exit 1
fi
python3 -m venv "$AUTOGRADER/venv"
course="$AUTOGRADER/source/course"
"$AUTOGRADER/venv/bin/python" -m pip install -c "$course/constraints.txt" $PIP_ARGS -e "$course"
"""
RUN = """\
#!/usr/bin/env bash
# Grades the one submission that lies in $AUTOGRADER/submission; needs no network.
set -euo pipefail
AUTOGRADER="${AUTOGRADER:-/autograder}"

# "yes" grades even where this container allows no sandbox at all. A student's code can then read
# the checks and write its own grade: see README.md.
TRUST="no"

bin="$AUTOGRADER/venv/bin"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# as nbgrader has it, where no name is guessed at
mkdir -p "$work/submissions/submitted"
cp -RPp "$AUTOGRADER/submission" "$work/submissions/submitted/student"

grade() {
  "$bin/course" grade "$work/submissions" --out "$work/grades" --lesson @lesson@ --jobs 1 "$@"
}

if ! grade; then
  if [ "$TRUST" != "yes" ]; then
    echo "Nothing was graded, and no points were given. Where the sentence above speaks of" \\
      "bubblewrap and landlock, README.md in this archive says what to do." >&2
    exit 1
  fi
  grade --trust
fi

"$bin/python" - "$work/grades/results.json" "$AUTOGRADER/results/results.json" << 'PYTHON'
import json
import sys
from pathlib import Path

from course_lib.grading.reports.gradescope_json import document

submissions = json.loads(Path(sys.argv[1]).read_text("utf8"))["submissions"]
# of several notebooks one counts
counting = [x for x in submissions if x["status"] == "graded"] or submissions
Path(sys.argv[2]).write_text(document(counting[0]), "utf8")
PYTHON
"""
README = """\
# Lesson {lesson} for Gradescope

`autograder.zip` runs the course's own grader, `course grade`, on each submission.

1. Make a programming assignment of {points} points, choose the newest Ubuntu as its base image,
   and upload `autograder.zip`.
2. Students hand in `{stem}.ipynb`. {packages}
3. Try it with a notebook of your own before the students do: "Run autograder" shows what the
   grader prints, the level of isolation among it.

`setup.sh` installs Python's packages and bubblewrap while the image is built. On PyTorch's own
site, *Start Locally* names the index of the CPU build; put it into `PIP_ARGS` in `setup.sh`, as in
`--extra-index-url ...`, to spare the image several gigabytes. Grading needs no network.

## What is protected, and what is not

The judge runs outside of the student's process, so a student's code cannot reach the checks, the
points or `results.json`. What keeps it away is the first of these that the container allows:

- **bubblewrap**: namespaces of its own. Containers mostly forbid these.
- **Landlock**, of Linux 5.13 or newer: little more than Python can be read, nothing written, and no
  network reached. Most containers allow it.
- **Neither**: `run_autograder` stops, gives no points, and prints why; Gradescope then shows that
  the autograder has failed, and students' work is kept. You have three ways on: ask whoever runs
  the containers for a kernel with Landlock or for user namespaces; download the submissions and
  run `course grade` on them on a Linux machine of your own; or write `TRUST="yes"` into
  `run_autograder`, which grades in plain processes. A student's code can then read the checks, use
  the network, and write `results.json` itself, so do this only for work that does not count, or
  where you read what students hand in.

Other students' work is out of reach in any case: each submission has a container of its own.
"""
NAMES = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE", "LICENSE-TEXT")
BEGINNING = (1980, 1, 1, 0, 0, 0)  # of time, for zip files: the same course gives the same archive


def files(lesson: str) -> dict[str, str | bytes]:
    """Return the archive and its page by their paths. Raises LookupError."""
    stem, points = release.stem(lesson), release.points(lesson)
    readme = README.format(
        lesson=lesson, stem=stem, points=points, packages=release.PACKAGES_OF_ANSWERS
    )
    return {"README.md": readme, "autograder.zip": _archive(lesson, readme)}


def _archive(lesson: str, readme: str) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "setup.sh", SETUP, 0o755)
        _add(archive, "run_autograder", RUN.replace("@lesson@", lesson), 0o755)
        _add(archive, "README.md", readme)
        for path in _course():
            _add(archive, f"course/{path.relative_to(ROOT).as_posix()}", path.read_bytes())
    return whole.getvalue()


def _course() -> list[Path]:
    """List the files with which pip installs the course. Raises LookupError without a clone."""
    if not IS_CLONE:
        raise LookupError("Gradescope installs the course from its files: export from a clone.")
    inside = [*(ROOT / "course_lib").rglob("*"), *(ROOT / "lessons").rglob("*")]
    files = [x for x in inside if x.is_file() and "__pycache__" not in x.parts]
    return [*(ROOT / name for name in NAMES), *sorted(files)]


def _add(archive: zipfile.ZipFile, name: str, content: str | bytes, mode: int = 0o644) -> None:
    entry = zipfile.ZipInfo(name, BEGINNING)
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
