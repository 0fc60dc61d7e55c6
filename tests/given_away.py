"""Which exercises a text gives away, such as a page or a notebook."""

import re
from functools import cache

from course_lib.answers.source import source_of
from course_lib.checking.catalogue import ids, load

# what a reader unfolds: a solution below its exercise, the file at the end of lesson 08
FOLDED = re.compile(
    r'<details(?: class="solution")?><summary>'
    r"(?:The solution|Solution|my_transformer\.py)</summary>.*?</details>",
    re.DOTALL,
)


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


def given_away(text, page):
    """List the exercises whose solution is in a text, every line of it.

    `page` is the file that the text was made from: a component that it gives, since it needs it, is
    no secret there.
    """
    given = {*re.findall(r"^# given: (\S+)$", page, flags=re.MULTILINE)}
    found = [x for x in ids() if own_lines(x) and all(line in text for line in own_lines(x))]
    return [x for x in found if _named(load(x).reference) not in given]
