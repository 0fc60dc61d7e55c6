import importlib
import inspect
import sys
from dataclasses import replace

import pytest
from torch import nn

from course_lib.efficient.variants import VARIANTS
from course_lib.files.paths import ROOT
from course_lib.verify import COMPARISONS, TRIALS, Comparison, measure


def module_of(comparison):
    return comparison.component.partition(".")[0]


@pytest.mark.parametrize("module", sorted({module_of(x) for x in COMPARISONS}))
def test_every_component_equals_its_oracle_and_so_do_its_gradients(module):
    rows = [measure(x, TRIALS) for x in COMPARISONS if module_of(x) == module]
    assert [row for row in rows if not total_error(row) < 1e-10] == []


def test_a_module_with_a_comparison_has_one_for_each_of_its_components():
    compared = {comparison.component for comparison in COMPARISONS}
    # rules and their layers are held to their variants' functions, in test_layers.py
    held_there = [x for variant in VARIANTS.values() for x in (variant.rule, variant.layer)]
    for module in {name.rpartition(".")[0] for name in compared}:
        for name, component in vars(sys.modules[f"course_lib.{module}"]).items():
            own = getattr(component, "__module__", None) == f"course_lib.{module}"
            if (
                own
                and component not in held_there
                and not name.startswith("_")
                and has_gradient(component)
            ):
                full = f"{module}.{component.__name__}"
                assert full in compared, f"course_lib/verify needs @compare({full}, ...), or a _"


def test_every_comparison_is_made_and_stands_in_the_module_of_its_component():
    for file in (ROOT / "course_lib" / "verify").glob("[!_]*.py"):
        module = importlib.import_module(f"course_lib.verify.{file.stem}")
        for comparison in vars(module).values():
            if isinstance(comparison, Comparison):
                assert comparison in COMPARISONS
                assert comparison.component.partition(".")[0] == file.stem


def test_an_oracle_that_is_not_installed_is_left_out():
    comparison = next(comparison for comparison in COMPARISONS if comparison.package)
    assert comparison.possible
    assert not replace(comparison, package="a_package_that_nobody_has").possible


def scaled(inputs):
    x = inputs.normal(3, 2)
    return 1.001 * x, x


def right_but_for_its_gradient(inputs):
    x = inputs.normal(3, 2)
    return x + (x - x.detach()), x


def nowhere_a_number(inputs):
    x = inputs.normal(3, 2)
    return x * float("nan"), x


def of_another_shape(inputs):
    x = inputs.normal(3, 1)
    return x + 0 * x.mT, x


@pytest.mark.parametrize("wrong", [scaled, right_but_for_its_gradient, nowhere_a_number])
def test_a_component_is_seen_to_be_wrong_when_it_is(wrong):
    assert not total_error(measure(Comparison("wrong", "right", wrong), trials=2)) < 1e-5


def test_shapes_that_only_broadcast_to_the_oracles_are_no_match():
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        measure(Comparison("wrong", "right", of_another_shape), trials=1)


def total_error(row):
    # a sum, since Python's max may drop a NaN
    return row.error + row.gradient_error


def has_gradient(component):
    if isinstance(component, type):
        return issubclass(component, nn.Module)
    return callable(component) and "Float" in str(inspect.signature(component).return_annotation)
