"""Strangers' strings as text: what no page or table can hold is replaced."""

import re

from course_lib.grading.marks.schema import SubmissionResult

# control characters (a terminal obeys them), lone surrogates, and what XML 1.0 cannot hold
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Replace each character that no page can hold by the sign for one; keep tabs and newlines."""
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Put a text on one line."""
    return " ".join(clean(text).split())


def who(submission: SubmissionResult) -> str:
    """Name a student: by the roster's name, where there is one, and as the submission does."""
    student, name = submission["student"], submission.get("name")
    return f"{name} ({student})" if name else student


def number(value: float) -> str:
    """Write a number with as many decimals as it needs, two at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def points(value: float) -> str:
    """Write a number of points: 1 point, 2.5 points."""
    return f"{number(value)} {'point' if value == 1 else 'points'}"


def count(n: int, noun: str) -> str:
    """Write how many there are of something: 1 notebook, 2 notebooks."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
