"""What a notebook calls of an exercise: check, hint, solution, mine and verdict."""

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from course_lib.answers.answer import InProcess
from course_lib.answers.source import Source, define, self_contained
from course_lib.checking.catalogue import UnknownExercise, load
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain import hints, panel
from course_lib.checking.notebook import cells
from course_lib.checking.notebook.answer_cells import Attempt, is_alone, judge_attempt, warning
from course_lib.checking.notebook.solution_text import solution_text
from course_lib.checking.notebook.time_limit import in_time
from course_lib.checking.ready_made import DOORS
from course_lib.checking.run.remarks import remark
from course_lib.checking.run.source_names import forbidden_in
from course_lib.checking.run.trial import max_points
from course_lib.checking.verdict import Verdict, judge, sentence, untried
from course_lib.files.workspace import MARK, VARIABLE, Workspace

NOT_PASSED = "the library's, until yours has passed"

_kept: list[Any] = []  # answers that `mine` has returned
_named: dict[str, list[Exercise]] = {}  # of which exercises `mine` has still to say whose they are

cells.follow()


def verdict(exercise_id: str, answer: Any, seed: int = 0) -> Verdict:
    """Judge an answer in this process. Raises UnknownExercise alone."""
    return judge(load(exercise_id), InProcess(answer), seed)


def check(exercise_id: str, answer: Any = ...) -> None:
    """Show the verdict on what the exercise's cell says, and keep what passes in the workspace.

    Those that it joins are tried before it, and the first that is wrong is shown in its place. The
    cell is the last one that has run of those that define the exercise's name. An `answer`
    that is not what this name stands for in a notebook is judged as it is given.
    """
    if not isinstance(exercise_id, str):
        named = answer if isinstance(answer, str) else "start/hello"
        return _tell(f'An exercise is named by its id: `check("{named}")`.')
    try:
        exercise = load(exercise_id)
    except UnknownExercise as error:
        return _tell(sentence(str(error)))
    if not all(map(_holds, map(load, exercise.joins))):
        return None
    given, attempt = answer is not ..., None
    if not given or cells.stands_for(exercise.name, answer):
        attempt = cells.attempt(exercise)
    if attempt:
        judged = in_time(partial(judge_attempt, attempt))
    elif reason := _no_answer(exercise, answer, given):
        judged = untried(exercise.id, max_points(exercise), "not attempted", reason)
    else:
        judged = in_time(partial(judge, exercise), answer)
    _show(panel.text(judged), panel.html(judged))
    if judged.status == "not attempted":
        return None
    defined = attempt.define if attempt else lambda: answer
    if judged.status == "passed":
        graded = attempt and warning(attempt)
        elsewhere = in_time(partial(remark, exercise), defined())
        for said in filter(None, (elsewhere, graded)):
            _tell(said)
    if workspace := _workspace():
        record(workspace, judged, defined, attempt)
    else:
        _tell(f"Not recorded: {Path.cwd()} is no workspace. `course learn` opens yours.")
    return None


def _holds(part: Exercise) -> bool:
    """Try an exercise that another one joins, and show and return where it is wrong."""
    attempt = cells.attempt(part)
    judged = in_time(partial(judge_attempt, attempt)) if attempt else None
    if not attempt or not judged or judged.status == "not attempted":
        return True
    if judged.status != "passed":
        _show(panel.text(judged), panel.html(judged))
    if workspace := _workspace():
        record(workspace, judged, attempt.define, attempt)
    return judged.status == "passed"


def _no_answer(exercise: Exercise, answer: Any, given: bool) -> str | None:
    """Say in one sentence why there is nothing of the learner's to judge, if so."""
    name = exercise.name
    if answer is exercise.reference:
        return f"This is the library's own `{name}`: run the cell with yours, then check."
    if given and not any(answer is x for x in _kept):
        return None
    if cells.shell():
        return f"No cell that has run defines `{name}`: run the one with yours, then check."
    return f'Outside a notebook there is no cell to read: `check("{exercise.id}", {name})`.'


def _workspace() -> Workspace | None:
    """Return the workspace; where a notebook has none, make it one, and say where, once."""
    found = Workspace.find()
    if found or not cells.notebook() or not Workspace.may_be_made_here():
        return found
    for make in (_made_here, _made_for_this_session):
        with suppress(OSError):
            return make()
    return None


def _made_here() -> Workspace:
    made = Workspace.make_here()
    _tell(
        f"From now on, passed answers are kept in {made.folder / MARK}. For another folder, such "
        f"as one on a mounted drive, run `%env {VARIABLE}=FOLDER` in a cell before you check."
    )
    return made


def _made_for_this_session() -> Workspace:
    made = Workspace.make(Path(tempfile.mkdtemp(prefix="transformer-course-")))
    read_only = os.environ.get(VARIABLE) or Path.cwd()
    os.environ[VARIABLE] = str(made.folder)
    _tell(
        f"{read_only} cannot be written to, so passed answers serve this session alone. `!course "
        "progress --save FILE` in a cell writes them into one file, for `--load FILE` elsewhere."
    )
    return made


def _show(text: str, html: str) -> None:
    """Show something in the face that fits: as HTML in a notebook, or else as text."""
    if shell := cells.notebook():
        shell.display_pub.publish({"text/html": html, "text/plain": text})
    else:
        print(text)


def _tell(sentences: str) -> None:
    _show(sentences, panel.plain_html(sentences))


def record(
    workspace: Workspace, judged: Verdict, answer: Callable[[], Any], attempt: Attempt | None
) -> None:
    """Record a verdict; keep a passed answer, which `answer()` gives. Print what does not work."""
    try:
        named = judged.message if judged.status == "known mistake" else ""
        points = judged.points, judged.max_points
        workspace.note_check(judged.exercise, judged.status, *points, named)
        if judged.status == "passed":
            _keep(workspace, judged.exercise, answer, attempt)
    except OSError as error:
        _tell(f"The result could not be recorded in {workspace.folder}: {error.strerror}.")


def hint(exercise_id: str, number: int | None = None) -> None:
    """Show a hint: the one of this number (from 1), or the next that has not been read.

    Run All asks for none: it leaves the next one folded, and counts nothing.
    """
    if number is None and cells.in_a_row():
        return _show(*hints.folded(exercise_id, Workspace.find()))
    try:
        _tell(hints.tell(exercise_id, number, Workspace.find()))
    except hints.NoHint as error:
        _tell(str(error))


def solution(exercise_id: str) -> None:
    """Print the reference behind its helpers: the very code that the library runs on."""
    print(solution_text(load(exercise_id)))


def mine(exercise_id: str) -> Callable:
    """Return the learner's passed answer, or the library's where there is none, and say which.

    A cell says it once, of all that it has asked for.
    """
    exercise = load(exercise_id)
    whose, answer = _whose(exercise)
    if sys.stdout:  # a check that runs the cell anew has none
        _named.setdefault(whose, []).append(exercise)
        cells.at_end(_say_whose)
    return answer


def _whose(exercise: Exercise) -> tuple[str, Callable]:
    """Return in words whose answer a page goes on with, and the answer."""
    workspace = Workspace.find()
    if not workspace:
        return f"the library's, since {Path.cwd().name}/ keeps no answers", exercise.reference
    source = workspace.answer(exercise.id)
    if source is None:
        return NOT_PASSED, exercise.reference
    # what was kept before this was refused would call itself
    if doors := forbidden_in(Source(source), {}, DOORS):
        door = doors[0].rpartition(".")[2]
        whose = f"the library's; yours calls `{door}`: write it anew, and check it"
        return whose, exercise.reference
    try:
        answer = define(source, exercise.name)
    except Exception as error:
        return f"the library's; yours cannot be executed any more ({error})", exercise.reference
    _kept.append(answer)
    return "your own", answer


def _say_whose() -> None:
    """Print for each name whose it is: those of one kind in one line."""
    for whose, exercises in _named.items():
        names = ", ".join(dict.fromkeys(x.name for x in exercises))
        if whose == NOT_PASSED:
            pages = sorted({x.lesson for x in exercises})
            whose += f" in {', '.join(pages)}"
        print(f"{names}: {whose}")
    _named.clear()


def _keep(
    workspace: Workspace, exercise_id: str, answer: Callable[[], Any], attempt: Attempt | None
) -> None:
    """Keep a passed answer, if it also passes on its own, away from the notebook's variables.

    What has no source of its own (a lambda, a partial), or needs more than that, is kept as a
    grade would read it.
    """
    read = attempt.whole() if attempt else None
    if attempt and read and is_alone(attempt):
        return workspace.keep(exercise_id, read)
    sources = [lambda: self_contained(answer()), *([lambda: read] if read else [])]
    exercise, reasons = load(exercise_id), []
    for source in sources:
        try:
            defined = define(kept := source(), exercise.name)
        except Exception as error:
            reasons.append(f"{error}")
            continue
        alone = in_time(partial(judge, exercise), defined)
        if alone.status == "passed":
            return workspace.keep(exercise_id, kept)
        reasons.append(alone.message)
    return _tell(f"Passed, but later lessons cannot run on it, because {reasons[0]}.")
