"""How formulas and docstrings become HTML: an extension of Sphinx."""

import re
from typing import Any

from docutils.nodes import SkipNode
from math_core import LatexToMathML

FORMULAS = LatexToMathML(fancy_error=False)
# an example or `code`, which stay as they are; or what reStructuredText would take for markup
MARKUP = re.compile(r"(^ *>>> (?:.+\n?)+|`[^`]*`)|([\\*|]|_(?=\W|$))", flags=re.MULTILINE)


def formula(writer: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show without a script and screen readers read.

    Raises LatexError, which ends the build, where it is not LaTeX, and always SkipNode, which tells
    docutils that nothing is left to be written.
    """
    alone = node.tagname == "math_block"
    source = node.astext().strip()
    writer.body.append(FORMULAS.convert_with_local_state(source, displaystyle=alone))
    raise SkipNode


def plain(_app: Any, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Take a docstring as text: of markup it has `code` and `>>>` alone."""
    text = MARKUP.sub(lambda found: found[1] or f"\\{found[2]}", "\n".join(lines))
    lines[:] = text.split("\n")


def shapes(*event: Any) -> tuple[str | None, ...]:
    """Write the shapes of a signature as the lessons do, without the name of their package."""
    *_, arguments, result = event
    return tuple(text and text.replace("jaxtyping.", "") for text in (arguments, result))


def anchor(heading: str) -> str:
    """Return the name by which JupyterLab knows a heading, so that one link serves both."""
    return heading.replace(" ", "-")


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx who writes formulas, and who reads docstrings and signatures first."""
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("autodoc-process-docstring", plain)
    app.connect("autodoc-process-signature", shapes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
