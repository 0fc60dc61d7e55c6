"""How formulas and docstrings become HTML: an extension of Sphinx."""

import re

from math_core import LatexToMathML

FORMULAS = LatexToMathML(fancy_error=False)
# what reStructuredText would take for markup, outside of `code`
MARKUP = re.compile(r"(`[^`]*`)|([\\*|]|_(?=\W|$))")


def formula(writer, node):
    """Write a formula as MathML, which browsers show without a script and screen readers read.

    Raises LatexError, and so ends the build, where it is not LaTeX.
    """
    shown_alone = node.tagname == "math_block"
    source = node.astext().strip()
    writer.body.append(FORMULAS.convert_with_local_state(source, displaystyle=shown_alone))
    # nothing is left to do on the way out
    from docutils.nodes import SkipNode

    raise SkipNode


def plain(app, what, name, obj, options, lines):
    """Take the lines of a docstring as text: of markup they have `code` and `>>>` alone."""
    lines[:] = [
        line if line.lstrip().startswith((">>>", "...")) else MARKUP.sub(_escaped, line)
        for line in lines
    ]


def _escaped(found):
    return found[1] or f"\\{found[2]}"


def shapes(app, what, name, obj, options, arguments, result):
    """Write shapes as the lessons do, without the name of their package."""
    return tuple(text and text.replace("jaxtyping.", "") for text in (arguments, result))


def anchor(heading: str) -> str:
    """Return the name by which JupyterLab knows a heading, so that one link serves both."""
    return heading.replace(" ", "-")


def setup(app):
    """Register both."""
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("autodoc-process-docstring", plain)
    app.connect("autodoc-process-signature", shapes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
