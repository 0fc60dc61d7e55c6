"""Old names of arguments, for notebooks handed out before version 0.2."""

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
