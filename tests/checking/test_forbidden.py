"""What is forbidden is forbidden by whatever name it is computed."""

import inspect
import warnings
from contextlib import suppress

import numpy as np
import pytest
import torch

from course_lib.answers.source import Source, _canonical, forbidden_in, loaded, source_of
from course_lib.answers.watch import Watch
from course_lib.checking import forbidden
from course_lib.checking.catalogue import ids, load

PLACES = {
    "torch": torch, "torch.linalg": torch.linalg, "torch.special": torch.special,
    "torch.masked": torch.masked, "torch.nn.functional": torch.nn.functional,
    "torch.Tensor": torch.Tensor, "numpy": np, "numpy.linalg": np.linalg,
}  # fmt: skip
SETS = ("set_", "save", "load", "seed", "compile", "test", "from", "show", "info", "rand", "resize")
# an inverse may be used, and is not what a pseudo-inverse is of these
X, SQUARE = torch.randn(2, 6, 4), torch.randn(4, 4)
ARGUMENTS = [(X, -1), (X,), (X, X), (SQUARE, X[0].mT), (X[0],), (X[0], X[0, :, :2])]


def functions():
    for place, module in PLACES.items():
        for name in dir(module):
            value = getattr(module, name, None)
            usual = not name.startswith("_") and not name.endswith("_")
            usual = usual and not any(part in name for part in SETS)
            if usual and callable(value) and not inspect.isclass(value):
                yield f"{place}.{name}", value


def result(function, arguments, in_numpy):
    """Call a function on copies, and return its first result where that is a tensor of floats."""
    copies = [x.clone() if isinstance(x, torch.Tensor) else x for x in arguments]
    copies = [x.numpy() if in_numpy and isinstance(x, torch.Tensor) else x for x in copies]
    with suppress(Exception):
        found = function(*copies)
        while isinstance(found, tuple):
            found = found[0]
        found = torch.as_tensor(found) if in_numpy else found
        if found.layout == torch.strided and found.is_floating_point() and found.dim():
            return found.double()
    return None


@pytest.mark.filterwarnings("ignore")
def test_every_function_of_torch_and_numpy_with_the_same_results_is_forbidden_too():
    every, missed = dict(functions()), []
    exercises = [load(exercise_id) for exercise_id in ids()]
    banned = {name for x in exercises for name in x.forbidden} & every.keys()
    for arguments in ARGUMENTS:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            results = {
                name: found
                for name, function in every.items()
                if (found := result(function, arguments, name.startswith("numpy"))) is not None
            }
        # a mean over everything is no exercise: what is asked is the mask
        for name in (banned & results.keys()) - {"torch.masked.mean"}:
            right = results[name]
            same = {
                other
                for other, found in results.items()
                if found.shape == right.shape and torch.allclose(found, right, rtol=1e-4, atol=1e-5)
            }
            for exercise in exercises:
                if name in exercise.forbidden:
                    known = {_canonical(x) for x in exercise.banned}
                    missed += [
                        (exercise.id, name, other)
                        for other in same
                        if _canonical(other) not in known
                    ]
    assert sorted(missed) == []


@pytest.mark.parametrize(
    ("exercise_id", "answer"),
    [
        ("scaling/fit_power_law", "torch.pinverse(a) @ y"),
        ("scaling/fit_power_law", "a.pinverse() @ y"),
        ("scaling/fit_power_law", "torch.linalg.solve_ex(a, y).result"),
        ("scaling/fit_power_law", "numpy.linalg.lstsq(a, y)"),
        ("attention/softmax", "numpy.logaddexp.reduce(a)"),
        ("attention/attend", "F.multi_head_attention_forward(a, y)"),
    ],
)
def test_a_sister_of_what_is_forbidden_is_named(exercise_id, answer):
    source = f"import numpy, torch\nimport torch.nn.functional as F\ndef f(a, y):\n    {answer}"
    assert forbidden_in(Source(source), {}, load(exercise_id).banned)


@pytest.mark.parametrize("name", forbidden.OPERATIONS)
def test_an_operation_of_the_table_is_computed_by_its_function(name):
    given = {
        "conv1d": (X, torch.ones(1, 6, 1)), "logaddexp": (X, X), "solve_ex": (SQUARE, SQUARE),
        "scaled_dot_product_attention": (X[None], X[None], X[None]), "layer_norm": (X, [4]),
        "group_norm": (X, 2), "batch_norm": (X, None, None, None, None, True),
    }  # fmt: skip
    parameter = torch.nn.Parameter(X.clone())
    parameter.grad = X.clone()
    with Watch(kinds=(forbidden.OPERATIONS[name],)) as computed:
        if name.startswith("torch.optim."):
            loaded(name)([parameter], fused=True).step()
        else:
            loaded(name)(*given.get(name.rpartition(".")[2], (X, -1)))
    assert computed.seen


def test_no_alternative_uses_what_is_forbidden():
    for exercise in map(load, ids()):
        for answer in exercise.alternatives:
            assert not forbidden_in(source_of(answer), {}, exercise.banned)
