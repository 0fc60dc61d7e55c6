"""The cells that a notebook has run: whether an answer is still what its cell says.

A cell that ends in a syntax error, or that gives its function another name, leaves the old function
where it was, and nothing in that function tells.
"""

import ast
import linecache
import re
import sys
from typing import Any

from course_lib.answers.source import functions

_cell_ids: dict[int, str | None] = {}  # by the number of the run; not every program says them


def follow() -> None:
    """Note from now on which cell each run is of, where this is a notebook."""
    if notebook():

        def note(info: Any) -> None:
            _cell_ids[len(_runs())] = info.cell_id

        shell().events.register("pre_run_cell", note)


def shell() -> Any:
    """Return IPython's shell, of a notebook or a terminal, or else None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def notebook() -> Any:
    """Return IPython's shell, where it runs a notebook, or else None."""
    return shell() if hasattr(shell(), "kernel") else None


def outdated(answer: Any, name: str) -> str | None:
    """Say in one sentence why an answer is not what its cell says now; None where it is."""
    if not notebook():
        return None
    runs, (source, kept) = _runs(), _source(answer)
    given = [n for n, text in enumerate(runs) if source and text == source]
    if not given and not kept:
        return None  # from a file of the reader's own, for example
    was = f"the one of [{given[-1]}]" if given else "the one that `mine` returned"
    header = re.compile(rf"^(def|class)\s+{name}\b", re.MULTILINE)
    holding = given + [n for n, text in enumerate(runs) if header.search(text)]
    if not holding:
        return f"This `{name}` is {was}. Run the cell with yours, then check."
    last = _last_of_its_cell(max(holding), len(runs))
    if last in given:
        return None
    try:
        ast.parse(runs[last])
    except SyntaxError as error:
        problem = f"since cell [{last}] is not Python (line {error.lineno}: {error.msg}). Mend it"
    else:
        problem = f"since cell [{last}] defines no `{name}`. Give yours this name"
        if header.search(runs[last]):
            problem = f"and not what cell [{last}] says. Look whether that has come to its end"
    return f"This `{name}` is {was}, {problem}, run the cell, then check."


def _runs() -> list[str]:
    """Return what has been run, by the numbers that stand beside the cells."""
    return shell().history_manager.input_hist_parsed


def _last_of_its_cell(run: int, runs: int) -> int:
    """Return the number of the last run of the cell that a run is of."""
    cell = _cell_ids.get(run)
    later = [n for n in range(run, runs) if cell is not None and _cell_ids.get(n) == cell]
    return later[-1] if later else run


def _source(answer: Any) -> tuple[str, bool]:
    """Return the text of the cell that an answer comes from, and whether it is a kept answer."""
    file = next((x.__code__.co_filename for x in functions(answer)), "")
    return "".join(linecache.getlines(file)).rstrip("\n"), file.startswith("<answer ")
