"""`course progress`: what is recorded in the workspace, lesson by lesson."""

import itertools
from argparse import ArgumentParser, Namespace

from course_lib.command_line import shared

NAME = "progress"
WHAT = "show what has passed, and what is next"
EXAMPLE = ""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare nothing: the current folder says which workspace."""


def run(options: Namespace) -> int:
    """Print a row for each lesson, and the first exercise that has not passed."""
    from course_lib.checking.catalogue import ids, load
    from course_lib.checking.verdict import max_points
    from course_lib.files.course_map import lessons

    workspace = shared.workspace()
    records = {exercise_id: workspace.record(exercise_id) for exercise_id in ids()}
    titles = {lesson.number: lesson.title for lesson in lessons()}
    rows = []
    for number, group in itertools.groupby(records, key=lambda x: load(x).lesson):
        exercises = list(group)
        attempted = sum(records[x].attempts > 0 for x in exercises)
        passed = sum(records[x].passed for x in exercises)
        points = sum(records[x].points for x in exercises)
        most = sum(max_points(load(x)) for x in exercises)
        lesson = f"{number} {titles.get(number, '')}"
        rows.append((lesson, len(exercises), attempted, passed, f"{points} of {most}"))
    shared.show(("lesson", "exercises", "attempted", "passed", "points"), rows)
    left = [exercise_id for exercise_id, record in records.items() if not record.passed]
    print(f"Next: {left[0]}, in lesson {load(left[0]).lesson}." if left else "All have passed.")
    return 0
