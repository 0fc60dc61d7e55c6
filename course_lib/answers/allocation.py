"""A bound on what an answer holds at once: it shows what is larger than it should be."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# how numbers leave torch, as for numpy, whose arrays no mode of torch can see
LEAVING = frozenset((Tensor.numpy, Tensor.__array__, Tensor.__dlpack__))
# a number in a list takes four times as much; modules and short lists take 200 KB, as measured
BYTES_OF_A_NUMBER, BYTES_BESIDE = 8, 2**18


@contextmanager
def tensors_up_to(max_numel: int | None) -> Iterator[None]:
    """Refuse with a MemoryError any tensor of more than `max_numel` numbers made inside.

    Numbers may not leave torch for numpy, nor fill lists. An error that the answer catches comes
    again at the end.
    """
    if max_numel is None:
        yield
        return
    traced = tracemalloc.is_tracing()
    if not traced:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        with _Leaving() as leaving, _Bound(max_numel) as bound:
            yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not traced:
            tracemalloc.stop()
    if error := bound.error or leaving.error:
        raise error
    if peak - before > BYTES_BESIDE + BYTES_OF_A_NUMBER * max_numel:
        raise MemoryError("lists of so many numbers are larger than need be")


class _Leaving(TorchFunctionMode):
    error: MemoryError | None = None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in LEAVING and args[0].is_floating_point():
            self.error = MemoryError("numbers leave torch for numpy: write it with tensors")
            raise self.error
        return function(*args, **(kwargs or {}))


class _Bound(TorchDispatchMode):
    error: MemoryError | None = None

    def __init__(self, max_numel: int):
        super().__init__()
        self._max_numel = max_numel

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        returned = function(*args, **(kwargs or {}))
        for x in tree_leaves(returned):
            # a view holds no numbers of its own, however often it repeats them
            if (
                isinstance(x, Tensor)
                and x.untyped_storage().nbytes() > self._max_numel * x.itemsize
            ):
                shape = " x ".join(map(str, x.shape))
                self.error = MemoryError(f"a tensor of {shape} numbers is larger than need be")
                raise self.error
        return returned
