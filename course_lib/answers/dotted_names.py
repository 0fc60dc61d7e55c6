"""Dotted names: what a name of a scope stands for, and the object that a dotted name leads to."""

import sys
import types
from typing import Any


def aliases(names: dict[str, Any]) -> dict[str, str]:
    """Map each name of a scope to the dotted name that it stands for, where it has one."""
    dotted = {}
    for name, value in names.items():
        if isinstance(value, types.ModuleType):
            dotted[name] = value.__name__
        elif (module := getattr(value, "__module__", None)) and hasattr(value, "__qualname__"):
            dotted[name] = f"{module}.{value.__qualname__}"
    return dotted


def loaded(name: str) -> Any:
    """Return the object of a dotted name, or None; nothing is imported for it."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        if value := sys.modules.get(".".join(parts[:cut])):
            for part in parts[cut:]:
                value = getattr(value, part, None)
            return value
    return None
