"""The examples in the components' docstrings give what they say."""

import doctest
import importlib
import inspect

import pytest
import torch

from course_lib.files.paths import ROOT


def examples():
    for file in sorted((ROOT / "course_lib").glob("[!_]*.py")):
        module = importlib.import_module(f"course_lib.{file.stem}")
        for name, function in vars(module).items():
            own = getattr(function, "__module__", None) == module.__name__
            if own and inspect.isroutine(function) and ">>>" in (function.__doc__ or ""):
                yield pytest.param(module, function, id=f"{file.stem}.{name}")


@pytest.mark.parametrize(("module", "function"), list(examples()))
def test_the_example_gives_what_it_says(module, function):
    names = vars(module) | {"torch": torch}
    [example] = doctest.DocTestFinder(recurse=False).find(function, module=False, globs=names)
    assert doctest.DocTestRunner().run(example).failed == 0


def test_a_dozen_functions_have_an_example():
    assert len(list(examples())) >= 12
