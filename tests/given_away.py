"""Which exercises a text gives away, such as a page or a notebook."""

import re
from functools import cache

from course_lib.answers.source import source_of
from course_lib.checking.catalogue import ids, load
from course_lib.files.course_map import page_files

# what a reader unfolds: a solution on the site, the file at the end of lesson 08
FOLDED = re.compile(r'<details(?: class="solution")?>.*?</details>', re.DOTALL)


@cache
def own_lines(exercise_id):
    """List the lines that a solution has and its stub has not, without spaces."""
    exercise = load(exercise_id)
    given = [*map(unescaped, exercise.stub.splitlines())]
    lines = source_of(exercise.reference).splitlines()
    code = [unescaped(x) for x in lines if not x.lstrip().startswith("#")]
    return [x for x in code if x not in given and len(x) > 8]


def unescaped(text):
    """Return a text without spaces, and without what JSON adds to it."""
    return "".join(text.replace('\\"', '"').replace("\\n", "").split())


def _named(component):
    return f"{component.__module__}.{component.__qualname__}".removeprefix("course_lib.")


@cache
def secret():
    """List the exercises but those whose component a page gives, for it needs it."""
    text = "".join(file.read_text("utf8") for file in page_files().values())
    given = {*re.findall(r"^# given: (\S+)$", text, flags=re.MULTILINE)}
    made = {x: load(x).reference for x in ids() if own_lines(x)}
    return [x for x, r in made.items() if _named(r) not in given]


def given_away(text):
    """List the exercises whose solution is in a text, every line of it."""
    return [x for x in secret() if all(line in text for line in own_lines(x))]
