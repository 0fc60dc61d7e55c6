"""How verdicts look on panels and pages: their statuses, signs and colours, and the templates."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from jinja2 import Environment

Status = Literal["not attempted", "passed", "known mistake", "wrong", "error", "forbidden"]

SIGNS = {"passed": "✓", "not attempted": "○"}
COLOURS = {"passed": "#2e9e5b", "not attempted": "#8a8f98", "known mistake": "#c47f00"}
ROW_COLOURS = {True: COLOURS["passed"], False: "#d64545"}
# of a property that holds, one that does not, and one that wrong results leave open
MARKS = {True: "✓", False: "✗", None: "-"}
# a word or several, and no product
EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]*[^\s*])\*(?![\w*])")


def code(sentence: str) -> Markup:
    """Turn `backquotes` into code, and *stars* into emphasis."""
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return escape(sentence)
    marked = [
        Markup("<code>{}</code>").format(x) if i % 2 else _emphasised(x)
        for i, x in enumerate(parts)
    ]
    return Markup("").join(marked)


def _emphasised(text: str) -> Markup:
    return Markup(EMPHASIS.sub(r"<em>\1</em>", str(escape(text))))


def templates(folder: Path) -> "Environment":
    """Return the templates of a folder: every string is escaped, every name must be given."""
    # 45 ms, for which only those wait who show a page
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    found = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["code"] = code
    return found
