"""Tables as CSV in which no cell is a formula."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from course_lib.grading.reports.shared.text import clean

# what begins a formula, at the start of a cell or after what other locales take for its end
FORMULA = re.compile(r"""(^|[;\t\r\n])((?:["']|[^\S\t\r\n])*)([=+\-@＝＋－＠]?)""")


def table(rows: Iterable[Sequence[str]]) -> str:
    """Write rows as CSV in which no cell is a formula."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows([harmless(cell) for cell in row] for row in rows)
    return file.getvalue()


def harmless(cell: str) -> str:
    """Put an apostrophe before what a spreadsheet would compute."""
    safe = FORMULA.sub(lambda m: f"{m[1]}'{m[2]}{m[3]}" if m[3] else m[0], clean(cell))
    return f"'{safe}" if safe.startswith(("\t", "\r", "\n")) else safe
