"""What an entry of the results may hold: points in hundredths, and a stranger's text cut short."""

from course_lib.grading.marks.schema import Entry, Status

LONGEST_MESSAGE = 600
MOST_LINES, LONGEST_LINE = 24, 300  # of a value that is shown


def unreadable(message: str, status: Status = "unreadable") -> Entry:
    """Return the entry of what cannot be graded at all, and why."""
    return {"lesson": None, "status": status, "message": plain(message), "exercises": {}}


def rounded(points: float) -> float | int:
    """Round to hundredths, and write a whole number as one."""
    points = round(points, 2)
    return int(points) if points == int(points) else points


def plain(text: str) -> str:
    """Put a stranger's text on one line of printable characters, no longer than a few lines."""
    return _cut(" ".join(_printable(text).split()), LONGEST_MESSAGE)


def block(text: str) -> str:
    """Put a stranger's text on a few lines of printable characters, none of them long."""
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], "…"]
    return "\n".join(_cut(_printable(line), LONGEST_LINE) for line in lines)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
