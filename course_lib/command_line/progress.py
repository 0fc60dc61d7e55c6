"""`course progress`: what is recorded in the workspace, exercise by exercise."""

import itertools
from argparse import ArgumentParser, Namespace
from pathlib import Path
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from course_lib.command_line import shared
from course_lib.files.atomic import write_atomically
from course_lib.files.errors import CommandError
from course_lib.files.workspace import MARK, Workspace

NAME = "progress"
WHAT = "show what has passed, and what is next"
EXAMPLE = "--save answers.zip"

WIDTH = 30  # of the bar, in characters


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the workspace, and how its answers go from one machine to another."""
    shared.takes_workspace(parser)
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write records and answers into one zip file"
    )
    parser.add_argument(
        "--load",
        type=Path,
        metavar="FILE",
        help="take over what such a file of yours holds; what has passed here stays",
    )


def run(options: Namespace) -> int:
    """Print the exercises of each page, by name where it is begun or next, and a bar."""
    from course_lib.checking.catalogue import outlines
    from course_lib.files.course_map import pages

    if options.load:
        _load(options.load, options.workspace)
    workspace = shared.workspace(options.workspace)
    print(f"Workspace: {workspace.folder}\n")
    if options.save:
        pack(workspace, options.save)
        print(f"Written to {options.save}; `course progress --load` takes it over elsewhere.\n")
    every = outlines()
    records = {x.id: workspace.record(x.id) for x in every}
    left = [x for x in every if not records[x.id].passed]
    ahead = next((x for x in left if x.needed), left[0] if left else None)
    coming = ahead.lesson if ahead else ""
    signs = {x: "✓" if y.passed else "✗" if y.attempts else "○" for x, y in records.items()}
    titles = {
        page.number: f"   exploration: {page.title}"
        if page.is_exploration
        else f"{page.number} {page.title}"
        for page in pages()
    }
    width = max(map(len, titles.values()))
    for number, group in itertools.groupby(every, key=lambda x: x.lesson):
        own = list(group)
        row = "".join(signs[x.id] for x in own)
        passed = row.count("✓")
        print(f"{titles.get(number, number):<{width}} {row:<14} {passed} of {len(own)}")
        begun = number == coming or any(records[x.id].attempts for x in own)
        for x in own if begun and passed < len(own) else []:
            points = f"{records[x.id].points} of {x.points} points"
            print(f"     {signs[x.id]} {x.id:<34} {points:<16} {x.effort}")
    done = len(every) - len(left)
    full = WIDTH * done // len(every)
    print(f"\n{'█' * full}{'░' * (WIDTH - full)} {done} of {len(every)} exercises have passed.")
    if ahead:
        print(f"Next: {ahead.id}, in {ahead.page} ({ahead.effort}).")
    return 0


def _load(file: Path, named: Path | None) -> None:
    """Take over what a file holds; where there is no workspace, the current folder becomes one."""
    from course_lib.checking.catalogue import ids

    try:
        ZipFile(file).close()  # before anything is made
        if not named and not Workspace.find() and Workspace.may_be_made_here():
            Workspace.make_here()
        workspace = shared.workspace(named)
        came = unpack(workspace, file, ids())
    except BadZipFile:
        raise CommandError(f"{file} is no file that --save has written.") from None
    print(f"New passed answers in {workspace.folder}: {len(came)}.")


def pack(workspace: Workspace, file: Path) -> None:
    """Write all that a workspace keeps into one zip file. Raises OSError."""
    kept = workspace.folder / MARK
    with ZipFile(file, "w", ZIP_DEFLATED, strict_timestamps=False) as archive:
        for path in sorted(kept.rglob("*")):
            archive.write(path, path.relative_to(kept))


def unpack(workspace: Workspace, file: Path, exercise_ids: list[str]) -> list[str]:
    """Take over the guesses of a packed file and what it holds of these exercises.

    What has passed or been guessed here stays. Returns the exercises that have passed there alone.
    Raises OSError or BadZipFile.
    """
    with ZipFile(file) as archive:
        names = {*archive.namelist()}
        new = [x for x in exercise_ids if not workspace.record(x).passed]
        for exercise_id in new:
            for kind, ending in (("records", "json"), ("answers", "py")):
                if (name := f"{kind}/{exercise_id}.{ending}") in names:
                    kept = workspace.file(kind, exercise_id, ending)
                    write_atomically(kept, archive.read(name))
        for name in names:
            if name.startswith("guesses/") and name.endswith(".json"):
                guess = workspace.file("guesses", Path(name).stem, "json")
                if not guess.exists():
                    write_atomically(guess, archive.read(name))
    return [x for x in new if workspace.record(x).passed]
