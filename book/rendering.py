"""How formulas and docstrings become HTML, and what a link to a page shows: for Sphinx."""

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from docutils.nodes import SkipNode
from math_core import LatexToMathML

from course_lib.files import course_map

FORMULAS = LatexToMathML(fancy_error=False)
OF_THE_COURSE = (
    "Build the Transformer from its parts. A wrong answer gets a diagnosis: what is wrong with it, "
    "and the smallest input that shows it."
)
# an example or `code`, which stay as they are; or what reStructuredText would take for markup
MARKUP = re.compile(r"(^ *>>> (?:.+\n?)+|`[^`]*`)|([\\*|]|_(?=\W|$))", flags=re.MULTILINE)


def formula(writer: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show without a script and screen readers read.

    Raises LatexError, which ends the build, where it is not LaTeX, and always SkipNode, which tells
    docutils that nothing is left to be written.
    """
    alone = node.tagname == "math_block"
    source = node.astext().strip()
    shown = FORMULAS.convert_with_local_state(source, displaystyle=alone)
    # where a window is too narrow for a formula, its box scrolls
    writer.body.append(f'<div class="formula">{shown}</div>' if alone else shown)
    raise SkipNode


def plain(_app: Any, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Take a docstring as text: of markup it has `code` and `>>>` alone."""
    text = MARKUP.sub(lambda found: found[1] or f"\\{found[2]}", "\n".join(lines))
    lines[:] = text.split("\n")


def shapes(*event: Any) -> tuple[str | None, ...]:
    """Write the shapes of a signature as the lessons do, without the name of their package."""
    *_, arguments, result = event
    return tuple(text and text.replace("jaxtyping.", "") for text in (arguments, result))


def preview(_app: Any, page: str, _template: str, context: dict[str, Any], _source: Any) -> None:
    """Say what a link to a page shows elsewhere: its title and, of a lesson, the question."""
    lessons = {x.file.stem: x for x in course_map.pages() if x.file}
    lesson = lessons.get(Path(page).name)
    told = {
        "type": "article" if lesson else "website",
        "site_name": context["project"],
        "title": re.sub("<[^>]+>", "", context.get("title", "")),
        "description": lesson.question if lesson else OF_THE_COURSE,
    }
    if context.get("pageurl"):
        told["url"] = context["pageurl"]
        told["image"] = urljoin(_app.config.html_baseurl, "_static/transformer.png")
    said = html.escape(told["description"])
    context["metatags"] = context.get("metatags", "") + (
        f'<meta name="description" content="{said}">\n'
        '<meta name="twitter:card" content="summary_large_image">\n'
    )
    context["metatags"] += "".join(
        f'<meta property="og:{name}" content="{html.escape(html.unescape(value))}">\n'
        for name, value in told.items()
    )


def anchor(heading: str) -> str:
    """Return the name by which JupyterLab knows a heading, so that one link serves both."""
    return heading.replace(" ", "-")


def no_index(app: Any) -> None:
    """Make no index of Sphinx's own: it loads whole pages to show how they begin."""
    app.builder.search = False


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx who writes formulas, and who reads docstrings and signatures first."""
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("builder-inited", no_index)
    app.connect("autodoc-process-docstring", plain)
    app.connect("autodoc-process-signature", shapes)
    app.connect("html-page-context", preview)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
