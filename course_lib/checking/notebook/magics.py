"""A cell in IPython's own grammar, read as Python: its magics and shell lines left out."""

import ast
import re
from typing import TypeGuard


def as_python(text: str) -> str:
    """Read a cell by IPython's own grammar, without its magics and shell lines: each is a None.

    What `%time` runs stays. Raises SyntaxError.
    """
    # takes half a second, and few cells need it
    from IPython.core.inputtransformer2 import TransformerManager

    body = re.sub(r"\A(?:[^\S\n]*\n)+", "", text)  # IPython leaves these lines out
    above = text.count("\n") - body.count("\n")
    lines = ("\n" * above + TransformerManager().transform_cell(body)).encode().split(b"\n")
    tree = ast.parse(b"\n".join(lines))
    run = {x.value: code for x in ast.walk(tree) if isinstance(x, ast.Expr) if (code := _timed(x))}
    calls = [x for x in ast.walk(tree) if _is_ipythons(x) and x.lineno == x.end_lineno]
    for call in sorted(calls, key=lambda x: x.col_offset, reverse=True):
        line = lines[call.lineno - 1]
        written = run.get(call, "None").encode()
        lines[call.lineno - 1] = line[: call.col_offset] + written + line[call.end_col_offset :]
    return b"\n".join(lines).decode()


def _timed(statement: ast.Expr) -> str | None:
    """Return the code of `%time code`."""
    match statement.value:
        case ast.Call(ast.Attribute(), [ast.Constant("time"), ast.Constant(str(code))]):
            return code if _is_ipythons(statement.value) else None
    return None


def _is_ipythons(node: ast.AST) -> TypeGuard[ast.Call]:
    """Tell whether this is a call of IPython, which a magic or a shell line stands for."""
    match node:
        case ast.Call(ast.Attribute(ast.Call(ast.Name("get_ipython")))):
            return True
    return False
