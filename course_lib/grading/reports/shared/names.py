"""A file name for each submission: safe everywhere, readable, and no other submission's."""

import hashlib
import re

from course_lib.grading.marks.schema import Results

LONGEST = 90  # characters of a name with its hash; with its ending it stays below 100
DIGITS = 8


def names(results: Results) -> list[str]:
    """Name the submissions in their order, by ASCII letters, digits, - and _ alone.

    `ada-03_self_attention` where student and notebook allow it. A hash is added where a character
    was replaced, the name was cut, or is taken (also by one that differs in case alone, since
    some file systems do not tell them apart).
    """
    names, taken = [], set()
    for submission in results["submissions"]:
        student, notebook = submission["student"], submission["notebook"]
        stem = notebook.removeprefix(f"{student}/").removesuffix(".ipynb")
        wanted = f"{student}-{stem or 'none'}"
        safe = re.sub(r"[^A-Za-z0-9_-]+", "-", wanted).strip("-")
        name, digest = safe, f"{student}\0{notebook}"
        while (name != wanted and name == safe) or len(name) > LONGEST or name.lower() in taken:
            digest = _hash(digest)
            name = f"{safe[: LONGEST - DIGITS - 1]}-{digest}".lstrip("-")
        taken.add(name.lower())
        names.append(name)
    return names


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf8", "surrogatepass")).hexdigest()[:DIGITS]
