"""Stands for `course_lib.exercises` in the sandbox: the names that notebooks import, doing nothing.

In a sandbox this file stands where `exercises/__init__.py` stands here (see sandbox_files.py).
`mine` gives a component of an earlier lesson; those of this lesson are not there.
"""

import importlib
from collections.abc import Callable
from typing import Any

from course_lib.grading.judging.inside import earlier


def mine(exercise_id: str) -> Callable:
    """Return the library's component of an earlier lesson. Raises LookupError for another."""
    module, name = earlier.components()[exercise_id]
    return getattr(importlib.import_module(module), name)


def nothing(*arguments: Any, **options: Any) -> None:
    """Do nothing: only the judge outside has checks, hints and solutions."""


check = hint = my_transformer = reveal = solution = verdict = nothing
