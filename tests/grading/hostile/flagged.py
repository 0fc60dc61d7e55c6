# ruff: noqa
"""Ways past names and watch alike: names made at run time, with which the watch is made blind.

Nothing in one process can rule these out. Each is flagged, so that a person reads it.
"""

# %% by a dictionary of parameters
import torch
from torch import nn


def _key_to_attr(key):
    return key


def helper():
    pass


helper._key_to_attr = _key_to_attr


def weigh(x):
    inner = nn.ParameterDict.__getitem__(helper, "__glo" + "bals__")["__buil" + "tins__"]
    watch = inner["__imp" + "ort__"]("course_lib.answers.watch", fromlist=["x"])
    inner["set" + "attr"](watch, "_no" + "te", lambda seen, name: None)
    return inner["get" + "attr"](x, "soft" + "max")(-1)


# %% by a class that a metaclass makes of text
import abc, dataclasses

TEXT = (
    "__class__ if [m for m in [__import__('sys').modules['course_lib.answers.watch']]"
    " if m.__setattr__('_note', print) or 1] else self"
)
Made = dataclasses.dataclass(init=False, repr=False)(
    abc.ABCMeta("Made", (), {"__annot" + "ations__": {TEXT: int}})
)


def weigh(x):
    Made() == Made()
    return eval("x.soft" + "max(-1)")


# %% by a type of types
def weigh(x):
    made = type(type(0))("Made", (), {"read": lambda self: x})
    return getattr(made().read(), "soft" + "max")(-1)


# %% by an enumeration made of text
from enum import Enum
import dataclasses


def weigh(x):
    made = Enum("M", {"A": 1, "__annot" + "ations__": {"x": int}})
    return __builtins__["get" + "attr"](x if made else x, "soft" + "max")(-1)


# %% by a module that is changed
import torch
import course_lib.answers.watch as watch

watch._note = lambda seen, name: None


def weigh(x):
    return torch.nn.functional.cross_entropy.__globals__["torch"].special.__dict__["softmax"](x, -1)
