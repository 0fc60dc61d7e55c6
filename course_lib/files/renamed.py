"""Old names of arguments, and old places of components, for notebooks handed out before."""

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any


def known_as(before: str, now: str) -> Callable[[type], type]:
    """Let a class take its argument `now`, and show its attribute, under the name `before` too."""

    def renamed(kind: Any) -> type:
        build = kind.__init__

        @wraps(build)
        def __init__(self, *args: Any, **named: Any):
            if before in named:
                named[now] = named.pop(before)
            build(self, *args, **named)

        kind.__init__ = __init__
        old = property(lambda self: getattr(self, now), lambda self, x: setattr(self, now, x))
        setattr(kind, before, old)
        return kind

    return renamed


def moved(**modules: str) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module whose names, by keyword, are now in these modules.

    Nothing is imported before somebody asks, so a module of an earlier lesson stays without what
    a later one builds.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"there is no {name!r} here")
        return getattr(importlib.import_module(modules[name]), name)

    return find
