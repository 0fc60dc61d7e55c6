"""What sentences look like in HTML, in the panels of notebooks and in the pages of grading."""

from markupsafe import Markup, escape


def code(sentence: str) -> Markup:
    """Escape a sentence and turn its `backquotes` into code; an odd one stays as it is."""
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return escape(sentence)
    marked = [Markup("<code>{}</code>").format(x) if i % 2 else x for i, x in enumerate(parts)]
    return Markup("").join(marked)
