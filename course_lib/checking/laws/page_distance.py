"""How far an answer is from the page that it mends, in characters of code."""

import ast
import difflib
import io
import tokenize
from collections.abc import Iterator

# no line that is to be mended has more, and no public answer to an exercise less than twice that
ROOM = 60


def apart(page: str, answer: str) -> int:
    """Count the characters of code in which an answer differs from its page.

    Imports, comments, layout, and the order of definitions do not count. Texts do: a solution could
    be in one.
    """
    try:
        first, second = [*_definitions(page)], [*_definitions(answer)]
    except (SyntaxError, ValueError, RecursionError, tokenize.TokenError):
        return len(answer)
    given = [x for x in second if x not in first]
    left = [x for x in first if x not in second]
    one, other = ([y for x in rest for y in tokens(x)] for rest in (left, given))
    blocks = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return sum(
        max(len("".join(one[a:b])), len("".join(other[c:d])))
        for kind, a, b, c, d in blocks
        if kind != "equal"
    )


def _definitions(source: str) -> Iterator[str]:
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            yield ast.unparse(statement)


def tokens(source: str) -> list[str]:
    """List the words and signs of a source."""
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return [x.string for x in found if x.string.strip()]


def without_texts(source: str) -> str:
    """Write a source without its docstrings, comments and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
