"""Whose work a file is by the name that Canvas or Moodle gave it.

Canvas: `name_123_456_file.ipynb`, for a text or a link `name_123_text.html`, without names
`anon_x7Kp2_456_file.ipynb`. Moodle: `Name_123_assignsubmission_file/file.ipynb`, also flat,
`..._file_file.ipynb`. Only what these have written themselves, in front, says whose it is and
whether it is late: what follows is the student's own file name. Their number is how grades find
their way back.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

Platform = Literal["Canvas", "Moodle"]
FORMATS: dict[Platform, re.Pattern] = {
    "Canvas": re.compile(
        r"(?:(?P<student>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)"
        r"|(?P<late_and_anonymous>LATE_)?(?P<anonymous>anon_[A-Za-z0-9]+))"
        r"_(?:\d+_.+|(?P<instead>text|link)(?:-\d+)?\.html)",
        re.DOTALL,
    ),
    "Moodle": re.compile(
        r"(?P<student>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_.*)?", re.DOTALL
    ),
}
INSTEAD = {"text": "a text", "link": "a link"}  # of a file
NAMED = re.compile(r"(?<=.)(?:\.ipynb.*|\.py)$", re.DOTALL | re.IGNORECASE)


class Owner(NamedTuple):
    """Whose a file or folder is, and what a platform has said beside that."""

    student: str
    number: str = ""
    late: bool = False
    platform: Platform | None = None
    problem: str | None = None


def formats_of(tops: Mapping[str, bool]) -> list[Platform]:
    """Name the platforms that a folder's names are of; `tops` says which are files' names.

    What a student calls a file is the end of its name, and can make a name of Canvas look like one
    of Moodle: where all look like Canvas's, they are.
    """
    fitting = [found for name, is_file in tops.items() if (found := fits(name, is_file))]
    return ["Canvas"] if all("Canvas" in found for found in fitting) else list(FORMATS)


def fits(name: str, is_file: bool) -> dict[Platform, re.Match]:
    """Match a name with those that each platform gives."""
    known: list[tuple[Platform, re.Pattern]] = [
        (x, pattern) for x, pattern in FORMATS.items() if is_file or x != "Canvas"
    ]
    found: dict[Platform, re.Match] = {}
    for platform, pattern in known:
        if match := pattern.fullmatch(name):
            found[platform] = match
    return found


def stands_for(name: str) -> str | None:
    """Say what Canvas or Moodle has packed in place of a file: "a text" or "a link"."""
    if "_assignsubmission_onlinetext" in name:
        return INSTEAD["text"]
    found = FORMATS["Canvas"].fullmatch(name)
    return INSTEAD.get(found["instead"]) if found else None


def owner(name: str, is_file: bool, formats: list[Platform]) -> Owner:
    """Say whose file or folder this is, where names of these platforms may be."""
    found: list[tuple[Platform, re.Match]] = [
        pair for pair in fits(name, is_file).items() if pair[0] in formats
    ]
    # a notebook that was saved as text, or exported, is still somebody's
    stem = NAMED.split(name)[0] if is_file else name.removesuffix(".ipynb")
    if not found:
        return Owner(stem)
    if len(found) > 1:
        problem = (
            "Whose this is, is not clear: names from Canvas and from Moodle are mixed here, and "
            "this could be either. Put it into a folder of its student's name."
        )
        return Owner(stem, problem=problem)
    [(platform, match)] = found
    own = match.groupdict()
    late = bool(own.get("late") or own.get("late_and_anonymous"))
    number = match["id"] or ""
    return Owner(
        f"{match['student']}_{number}" if number else own["anonymous"], number, late, platform
    )
