"""`course exam`: pages of *find the bug* for each student of a class, and the key to them."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from course_lib.files.errors import CommandError

NAME = "exam"
WHAT = "write each student's own pages of find the bug, and the key that `course grade` needs"
EXAMPLE = "03 05 --seed spring-2027 --roster class.csv --out exam"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the lessons, the class and its seed, and the folder."""
    parser.add_argument("lessons", metavar="LESSON", nargs="+", help="such as 03, or 04_trees")
    parser.add_argument(
        "--seed", metavar="TEXT", required=True,
        help="draws the faults: the same class, the same pages; keep it to yourself",
    )  # fmt: skip
    parser.add_argument(
        "--roster", metavar="FILE", type=Path, required=True,
        help="who is in the class: columns id, name, email, or a gradebook",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, required=True, help="a new or empty folder"
    )


def run(options: Namespace) -> int:
    """Write a notebook for each student, and the key; say which exercises have pages."""
    from course_lib.checking.catalogue import load
    from course_lib.checking.laws.faults import NoFaults, faults, of_its_own
    from course_lib.files import ipynb
    from course_lib.files.atomic import write_atomically
    from course_lib.grading.exports import exam_pages
    from course_lib.grading.judging.rules import exercises_of
    from course_lib.grading.marks.exam_key import Key, as_json
    from course_lib.grading.submissions import roster

    folder = options.out
    if folder.exists() and any(folder.iterdir()):
        raise CommandError(f"{folder} is not empty: name another folder.")
    try:
        class_ = roster.read(options.roster.read_text("utf-8-sig"))
        asked = exercises_of(options.lessons)
    except OSError as error:
        raise CommandError(f"{options.roster} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise CommandError(f"{options.roster}: {error}") from None
    except LookupError as error:
        raise CommandError(f"{error.args[0]}.") from None
    people = class_.people
    if odd := [x.id for x in people if Path(x.id).name != x.id or x.id.startswith(".")]:
        raise CommandError(f"the id {odd[0]!r} cannot be the name of a folder.")
    chosen = []
    for exercise in map(load, asked):
        try:
            several = faults(exercise)
        except NoFaults as why:
            print(f"{exercise.id}: no page, since {why}.")
            continue
        chosen.append(exercise)
        own, lines = min(of_its_own(exercise, x.page(exercise, options.seed)) for x in several)
        print(
            f"{exercise.id}: {len(several)} faults, {_range([x.failing for x in several])} of "
            f"{several[0].cases} cases fail; {own} of {lines} lines are in no public text."
        )
    print(f"{len(chosen)} of {len(asked)} exercises have pages.")
    if not chosen:
        raise CommandError(f"no exercise of {', '.join(options.lessons)} has pages.")
    pages = {x.id: {y.id: exam_pages.draw(y, options.seed, x.id) for y in chosen} for x in people}
    for person in people:
        (folder / person.id).mkdir(parents=True)
        ipynb.write(folder / person.id / "exam.ipynb", exam_pages.notebook(pages[person.id]))
    write_atomically(folder / "key.json", as_json(Key(class_, pages)))
    print(f"{len(people)} notebooks: {folder}/ID/exam.ipynb. Keep {folder / 'key.json'}: grade")
    print(f"them with `course grade SUBMISSIONS --exam {folder / 'key.json'} --out grades`.")
    return 0


def _range(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"
