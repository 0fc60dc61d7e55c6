"""The hints of an exercise, one after another, in notebooks and in a terminal alike."""

from markupsafe import Markup

from course_lib.checking.catalogue import outline
from course_lib.checking.looks import code
from course_lib.files.workspace import Workspace


class NoHint(LookupError):
    """A number that no hint has; the message is one sentence."""


def tell(exercise_id: str, number: int | None, workspace: Workspace | None) -> str:
    """Return the hint of this number (from 1), or the next that has not been read, and record it.

    It begins with what the last check has named, if that was a known mistake. Without a workspace
    nothing is recorded, and the next is the first. The last one names the tools, and the way to
    the solution. Raises NoHint or UnknownExercise.
    """
    hints = outline(exercise_id).hints
    if number is None:
        number = _next(exercise_id, workspace)
    if not 1 <= number <= len(hints):
        raise NoHint(f"{exercise_id} has the hints 1 to {len(hints)}, and no hint {number}.")
    lines = [f"Hint {number} of {len(hints)}.", hints[number - 1]]
    if number == len(hints):
        if tools := outline(exercise_id).tools:
            lines.append(f"Our solution uses {', '.join(f'`{x}`' for x in tools)}.")
        lines.append(
            f'This was the last one. `solution("{exercise_id}")` in a notebook, or '
            f"`course solution {exercise_id}` in a terminal, prints our solution, and `course "
            f"solution {outline(exercise_id).lesson} --notebook FILE` writes the page with all of "
            "them."
        )
    elif workspace:
        lines[0] += " Ask again for the next one."
    else:
        lines[0] += (
            f' `hint("{exercise_id}", {number + 1})`, or in a terminal '
            f"`course hint {exercise_id} {number + 1}`, is the next one."
        )
    if workspace:
        if mistake := workspace.record(exercise_id).mistake:
            lines.insert(0, f"Your last answer: {mistake} Mend that first.")
        try:
            workspace.note_hint(exercise_id, number)
        except OSError:
            lines.append(f"(Not recorded: {workspace.folder} cannot be written to.)")
    return "\n".join(lines)


def folded(exercise_id: str, workspace: Workspace | None) -> tuple[str, str]:
    """Return the next hint for one who has not asked for it, as text and as HTML: nobody reads it.

    Raises UnknownExercise.
    """
    number, hints = _next(exercise_id, workspace), outline(exercise_id).hints
    said = f"Hint {number} of {len(hints)}"
    summary = Markup("<summary style='cursor:pointer;opacity:.75'>{}</summary>").format(said)
    shown = Markup("<details>{}<div>{}</div></details>").format(summary, code(hints[number - 1]))
    return f"{said}: run this cell alone to read it.", shown


def _next(exercise_id: str, workspace: Workspace | None) -> int:
    read = workspace.record(exercise_id).hints if workspace else 0
    return min(read + 1, len(outline(exercise_id).hints))
