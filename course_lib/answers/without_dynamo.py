"""torch's compiler, which takes two seconds to import, is left out while nobody compiles.

Dispatch modes and the meta device import it for one function, `disable`, which does nothing for
them.
"""

import importlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

NAME = "torch._dynamo"


class _Compiler(types.ModuleType):
    """Stands in for `torch._dynamo`, and gives way to it as soon as more is asked of it."""

    @staticmethod
    def disable(function: Any, *_: Any, **__: Any) -> Any:
        return function

    def __getattr__(self, name: str) -> Any:
        # `inspect`, for one, goes through all modules and wants none in particular
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        _remove(self)
        return getattr(importlib.import_module(NAME), name)


@contextmanager
def without_dynamo() -> Iterator[None]:
    """Put the stand-in where the compiler would be, unless that is loaded already."""
    if NAME in sys.modules:
        yield
        return
    sys.modules[NAME] = torch._dynamo = compiler = _Compiler(NAME)
    try:
        yield
    finally:
        _remove(compiler)


def _remove(compiler: _Compiler) -> None:
    if sys.modules.get(NAME) is compiler:
        del sys.modules[NAME], torch._dynamo
