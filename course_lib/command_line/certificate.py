"""`course certificate`: a page of what its reader has built and predicted, to print."""

import itertools
from argparse import ArgumentParser, Namespace
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

from course_lib.checking.looks import templates
from course_lib.command_line import shared
from course_lib.files.atomic import write_atomically
from course_lib.files.workspace import Workspace

NAME = "certificate"
WHAT = "write a page of what you have built and predicted, to print"
EXAMPLE = ""

PAGE = "certificate.html"
SIGNS = {"right": "✓", "near": "≈", "off": "✗", "": ""}


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the workspace."""
    shared.takes_workspace(parser)


def run(options: Namespace) -> int:
    """Write the page into the workspace, and print its figures."""
    workspace = shared.workspace(options.workspace)
    figures = collect(workspace)
    template = templates(Path(__file__).parent).get_template(PAGE)
    page = template.render(**figures, signs=SIGNS)
    path = workspace.folder / PAGE
    write_atomically(path, page + "\n")
    verdicts = figures["verdicts"]
    print(f"exercises passed: {figures['passed']} of {figures['exercises']}")
    print(f"lines of your own code: {figures['lines']:,}")
    compared = ", ".join(f"{verdicts[word]} {word}" for word in ("right", "near", "off"))
    print(
        f"predictions made: {figures['predicted']} of {figures['asked']} "
        f"({compared}, {verdicts['']} for you to judge)"
    )
    print(f"written to {path}: open it in a browser, and print it")
    return 0


def collect(workspace: Workspace) -> dict[str, Any]:
    """Gather what the page shows: exercises and predictions, by lesson, and their sums."""
    from course_lib.checking.notebook.predictions import asked
    from course_lib.files.course_map import exercises, pages

    built = {x.id: x for x in exercises() if workspace.record(x.id).passed}
    guesses = workspace.guesses()
    places = list(asked())
    made = [(place, guesses[place.key]) for place in places if place.key in guesses]
    answers = (workspace.answer(x) or "" for x in built)
    lines = sum(bool(line.strip()) for answer in answers for line in answer.splitlines())
    every = {k: list(v) for k, v in itertools.groupby(exercises(), key=lambda x: x.lesson)}
    rows = [
        {
            "number": "" if page.is_exploration else page.number,
            "title": f"exploration: {page.title}" if page.is_exploration else page.title,
            "exercises": len(every.get(page.number, [])),
            "passed": sum(x.lesson == page.number for x in built.values()),
            "asked": sum(place.lesson == page.number for place in places),
            "guesses": [x for x in made if x[0].lesson == page.number],
        }
        for page in pages()
        if page.written
    ]
    return {
        "day": date.today().isoformat(),
        "exercises": sum(row["exercises"] for row in rows),
        "passed": len(built),
        "lines": lines,
        "asked": len(places),
        "predicted": len(made),
        "verdicts": Counter(guess.verdict for _, guess in made),
        "lessons": rows,
    }
