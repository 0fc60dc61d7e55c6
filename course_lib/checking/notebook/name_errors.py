"""A name that the page gives in a cell that has not run is one sentence, and no traceback.

Nothing here imports torch: each kernel begins with it.
"""

import ast
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from course_lib.answers.source import names_bound
from course_lib.files import ipynb

NOTEBOOK = "JPY_SESSION_NAME"  # of the environment: Jupyter's server names the notebook there
VS_CODES = "__vsc_ipynb_file__"  # of the kernel's names: VS Code names it there
SENTENCE = (
    "`{}` comes from a cell of this page that has not run, or not to its end: choose Run > Run All "
    "Above Selected Cell, then run this one again."
)


def explain() -> None:
    """Let the kernel that this runs in, if it is one, say it from now on."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell:
        shell.set_custom_exc((NameError,), _shown)


def _shown(
    shell: Any, kind: type, error: NameError, trace: TracebackType, tb_offset: int | None = None
) -> None:
    own = bound(shell.history_manager.input_hist_raw[-1])
    notebook = os.environ.get(NOTEBOOK) or shell.user_ns.get(VS_CODES)
    if error.name in names(notebook) - own:
        sentence = SENTENCE.format(error.name)
        error._render_traceback_ = lambda *_: [sentence]  # pyright: ignore[reportAttributeAccessIssue]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def names(notebook: str | None) -> set[str]:
    """Return the names that a notebook's cells give."""
    with suppress(ipynb.NotANotebook):
        cells = ipynb.read(Path(notebook or ""))["cells"]
        return {name for cell in cells for name in bound(ipynb.code(cell))}
    return set()


def bound(text: str) -> set[str]:
    """Return the names that a cell gives; none where it is not Python."""
    with suppress(SyntaxError, ValueError):
        return {name for node in ast.parse(text).body for name in names_bound(node)}
    return set()
