"""Which of torch's operations an answer may not have computed: measured, by calling.

Where a forbidden function is one operation, that operation is forbidden too, and so are its kin:
`aten._softmax` stands for every softmax, whichever function or layer leads there. A function that
is made of several, as an LSTM is of products and sums, is known by its name alone.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import cache
from itertools import product, takewhile
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.answers.dotted_names import loaded
from course_lib.answers.watch import ATEN
from course_lib.checking.exercise import Exercise

# what forbidden functions, and layers, are called with: all that fit is tried
X = torch.eye(4).expand(1, 4, 4, 4)
SHAPED = (X, X[0], X[0, 0])
MORE = ((), (-1,), ([4],), (2,), (X,), (X, X), (None, None, None, None, True))
SIZES = ((), (4,), (4, 4), (4, 4, 1))
# of fewer letters, two names have nothing in common
FEWEST_LETTERS = 4


# other public names by which the same, or most of it, is computed: torch's and numpy's functions
# were called on sample arguments, and those of equal results are here
SAME = {
    "torch.linalg.lstsq": "numpy.linalg.lstsq numpy.polyfit numpy.polynomial.polynomial.polyfit"
    " numpy.polynomial.Polynomial.fit",
    "torch.linalg.pinv": "torch.pinverse torch.Tensor.pinverse numpy.linalg.pinv",
    "torch.linalg.solve": "torch.linalg.solve_ex torch.linalg.tensorsolve numpy.linalg.solve"
    " numpy.linalg.tensorsolve torch.cholesky_solve torch.lu_solve torch.linalg.lu_solve",
    "torch.logaddexp": "torch.Tensor.logaddexp torch.masked.logaddexp numpy.logaddexp"
    " torch.logaddexp2 torch.Tensor.logaddexp2 numpy.logaddexp2",
    "torch.logsumexp": "torch.special.logsumexp torch.masked.logsumexp",
    "torch.log_softmax": "torch.masked.log_softmax torch.sparse.log_softmax",
    "torch.softmax": "torch.special.softmax torch.masked.softmax torch.masked.softmin"
    " torch.sparse.softmax",
    "torch.nn.functional.scaled_dot_product_attention": "torch.nn.MultiheadAttention"
    " torch.nn.functional.multi_head_attention_forward",
    "torch.nn.BatchNorm1d": "torch.nn.LazyBatchNorm1d",
    "torch.nn.Conv1d": "torch.nn.LazyConv1d",
    "torch.nn.InstanceNorm1d": "torch.nn.LazyInstanceNorm1d",
    "torch.nn.NLLLoss": "torch.nn.NLLLoss2d",
}


def named(exercise: Exercise) -> tuple[str, ...]:
    """List the names that an answer may not use: those forbidden, then other ways to the same."""
    same = " ".join(SAME.get(name, "") for name in exercise.forbidden).split()
    return tuple(dict.fromkeys([*exercise.forbidden, *same]))


def watched(exercise: Exercise) -> tuple[str, ...]:
    """List what is watched for while an answer runs: names, then operations."""
    return (*named(exercise), *operations(exercise.forbidden))


@cache
def operations(forbidden: tuple[str, ...]) -> tuple[str, ...]:
    """List the kinds of operations that forbidden functions are, where they are one and no more.

    An operation that torch offers by a public name which is not forbidden may be used.
    """
    found = {
        ATEN + _kind(name, operation)
        for name in forbidden
        for operation in _measured(name)
        if operation.startswith("_") or f"torch.{_plain(operation)}" in forbidden
    }
    return tuple(sorted(found))


def _kind(name: str, operation: str) -> str:
    """Name what an operation and its kin have in common: `conv` of `conv1d` and `convolution`."""
    last, operation = name.rpartition(".")[2], _plain(operation)
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(last, operation, strict=False))
    common = "".join(letter for letter, _ in alike)
    return common if len(common) >= FEWEST_LETTERS else operation


def _plain(operation: str) -> str:
    return operation.strip("_").removeprefix("native_")


@cache
def _measured(name: str) -> frozenset[str]:
    """Name each operation that a call of a function or layer came down to, it alone."""
    found = set()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for call in _calls(loaded(name)) if name.startswith("torch.") else ():
            with suppress(Exception), _Computed() as computed:
                call()
                found |= computed.names if len(computed.names) == 1 else set()
    return frozenset(found)


def _calls(value: Any) -> Iterator[Callable[[], Any]]:
    """Yield calls of a function, or of layers of a class, some of which will fit."""
    callables = [value] if callable(value) else []
    if inspect.isclass(value) and issubclass(value, nn.Module):
        callables = []
        for sizes in SIZES:
            # the sizes that a layer has by default may be large
            with suppress(Exception), nullcontext() if sizes else torch.device("meta"):
                callables.append(value(*sizes))
    for one, x, more in product(callables, SHAPED, MORE):
        given = [x.expand(x.shape) if isinstance(other, Tensor) else other for other in more]
        yield lambda one=one, x=x, given=given: one(x, *given)


class _Computed(TorchDispatchMode):
    """Collects operations on tensors, but for those that make, copy or view them."""

    def __init__(self):
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        views = any(x.alias_info for x in function._schema.returns)
        given = any(isinstance(x, Tensor) for x in tree_leaves((args, kwargs)))
        if given and not views and function.overloadpacket.__name__ not in ("clone", "empty_like"):
            self.names.add(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))
