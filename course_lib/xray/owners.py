"""Whose a function is: the learner's own by `mine`, the notebook's, or the course's."""

import ast
import inspect
import linecache
import re
import textwrap
from functools import cache
from types import CodeType
from typing import Literal

from course_lib import add_norm, feed_forward, multi_head, transformer
from course_lib.answers.source import source_of as answer_source
from course_lib.xray.calls import COURSE

Owner = Literal["yours", "this notebook's", "the course's", "PyTorch's"]

# its first line is enough where the code stands below it
LONG_DOCSTRING = re.compile(r'(^ +"""[^\n]+)\n.*?(""")', re.MULTILINE | re.DOTALL)

# the lessons give these to the learner, so an answer that carries one of them did not write it
GIVEN = {
    part.__name__: part
    for part in (
        multi_head.AsSelfAttention,
        multi_head.AsCrossAttention,
        feed_forward.FeedForward,
        transformer.Embedding,
        add_norm.Norm,
        transformer.Decoder,
    )
}


def owner_of(code: CodeType) -> Owner:
    """Say whose a function is.

    An answer that `mine` returned was defined from a text of its own; what the lesson gave for it
    and came along in this text unchanged is still the course's.
    """
    file = code.co_filename
    if file.startswith("<answer"):
        return "the course's" if _given(code) else "yours"
    if file.startswith(str(COURSE)):
        return "the course's"
    return "PyTorch's" if "/torch/" in file else "this notebook's"


@cache
def source_of(code: CodeType) -> str:
    """Return the text of a function, of its class only this method; a sentence where it is lost.

    The course's own is an outline, signature, docstring and the comments that name its steps: most
    of it is somebody's exercise.
    """
    lines = linecache.getlines(code.co_filename)
    if not lines or code.co_firstlineno > len(lines):
        return "# the source of this function is not to be found"
    block = inspect.getblock(lines[code.co_firstlineno - 1 :])
    text = LONG_DOCSTRING.sub(r"\1 ...\2", textwrap.dedent("".join(block)).rstrip(), count=1)
    if owner_of(code) == "the course's":
        text = _outline(text)
    outer = code.co_qualname.rpartition(".")[0]
    if "<" in outer or not outer:
        return text
    return f"class {outer}:\n    ...\n\n{textwrap.indent(text, '    ')}"


def _outline(source: str) -> str:
    [function] = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    first, lines = function.body[0], source.splitlines()
    end = (first.end_lineno or 0) if ast.get_docstring(function) else first.lineno - 1
    steps = [line for line in lines[end:] if line.lstrip().startswith("#")]
    return "\n".join([*lines[:end], *steps, f"{' ' * first.col_offset}..."])


@cache
def _given(code: CodeType) -> bool:
    name, _, method = code.co_qualname.partition(".")
    if name not in GIVEN or not method:
        return False
    text = "".join(linecache.getlines(code.co_filename))
    classes = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
    theirs = [node for node in classes if node.name == name]
    [ours] = answer_source(GIVEN[name]).tree.body
    return bool(theirs) and ast.dump(ours) == ast.dump(theirs[-1])
