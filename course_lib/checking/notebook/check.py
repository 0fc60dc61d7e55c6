"""What a notebook calls of an exercise: check, hint, solution and verdict."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from course_lib.answers.answer import InProcess
from course_lib.answers.source import define
from course_lib.checking.catalogue import UnknownExercise, load
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain import hints, panel
from course_lib.checking.notebook import session
from course_lib.checking.notebook.answer_cells import Attempt, is_alone, judge_attempt, warning
from course_lib.checking.notebook.mine import given_out
from course_lib.checking.notebook.session import in_time
from course_lib.checking.notebook.solution_text import self_contained, solution_text
from course_lib.checking.trial import max_points
from course_lib.checking.verdict import Verdict, judge, remark, sentence, untried
from course_lib.files.workspace import MARK, VARIABLE, Workspace

session.follow()


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
    if not given or session.stands_for(exercise.name, answer):
        attempt = session.attempt(exercise)
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
    attempt = session.attempt(part)
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
    if given and not any(answer is x for x in given_out):
        return None
    if session.shell():
        return f"No cell that has run defines `{name}`: run the one with yours, then check."
    return f'Outside a notebook there is no cell to read: `check("{exercise.id}", {name})`.'


def _workspace() -> Workspace | None:
    """Return the workspace; where a notebook has none, make it one, and say where, once."""
    found = Workspace.find()
    if found or not session.notebook() or not Workspace.may_be_made_here():
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
    if shell := session.notebook():
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
    if number is None and session.in_a_row():
        return _show(*hints.folded(exercise_id, Workspace.find()))
    try:
        _tell(hints.tell(exercise_id, number, Workspace.find()))
    except hints.NoHint as error:
        _tell(str(error))


def solution(exercise_id: str) -> None:
    """Print the reference behind its helpers: the very code that the library runs on."""
    print(solution_text(load(exercise_id)))


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
