"""Stands for `course_lib.exercises` in the sandbox: the names that notebooks import, doing nothing.

`mine` gives a component of an earlier lesson; those of this lesson are not there.
"""

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

EARLIER = Path(__file__).with_name("earlier.json")


def mine(id: str) -> Callable:
    """Return the library's component of an earlier lesson. Raises LookupError for another."""
    module, name = json.loads(EARLIER.read_text("utf8"))[id]
    return getattr(importlib.import_module(module), name)


def nothing(*arguments: Any, **options: Any) -> None:
    """Do nothing: only the judge outside has checks, hints and solutions."""


check = hint = reveal = solution = verdict = nothing
