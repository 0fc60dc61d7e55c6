"""torch's compiler, which nothing here needs, stays on disk: it takes two seconds to import.

Operations on the meta device ask for it, and of it for one function, which does nothing for them.
"""

import importlib
import sys
import types
from typing import Any

import torch


class _Compiler(types.ModuleType):
    """Stands in for `torch._dynamo`, and gives way to it as soon as more is asked of it."""

    @staticmethod
    def disable(function: Any, *_: Any, **__: Any) -> Any:
        return function

    def __getattr__(self, name: str) -> Any:
        # who goes through all modules, as `inspect` does, wants none in particular
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules[self.__name__] is self:
            del sys.modules[self.__name__], torch._dynamo
        return getattr(importlib.import_module(self.__name__), name)


def leave_out() -> None:
    """Put the stand-in where the compiler would be, unless that is loaded already."""
    if "torch._dynamo" not in sys.modules:
        sys.modules["torch._dynamo"] = torch._dynamo = _Compiler("torch._dynamo")
