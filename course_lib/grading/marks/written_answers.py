"""Answers in words: what is written in the cells with the tag `question:NAME`, for a person."""

import re

from course_lib.files import ipynb

NAME = re.compile("[A-Za-z0-9_]{1,60}")
TAG = "question:"
# what the lessons' own cells say until somebody has written there
UNTOUCHED = "*Double-click here, and write.*"
MOST, LONGEST = 50, 10_000  # questions of a notebook, characters of an answer


def in_words(notebook: dict) -> dict[str, str]:
    """Return the answers in words, by the names of their questions; the last cell counts."""
    found = {}
    for cell in notebook["cells"]:
        for question in _questions(cell):
            if question in found or len(found) < MOST:
                text = ipynb.text(cell).replace(UNTOUCHED, "").strip()[:LONGEST]
                found[question] = text.encode("utf8", "replace").decode()
    return found


def _questions(cell: dict) -> list[str]:
    tags = cell.get("metadata", {}).get("tags")
    if not isinstance(tags, list):
        return []
    marked = [tag for tag in tags if isinstance(tag, str) and tag.startswith(TAG)]
    names = [tag.removeprefix(TAG) for tag in marked]
    return [name for name in names if NAME.fullmatch(name)]
