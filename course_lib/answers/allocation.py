"""A bound on the tensors that an answer makes: it shows what is larger than it should be."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@contextmanager
def tensors_up_to(max_numel: int | None) -> Iterator[None]:
    """Refuse with a MemoryError any tensor of more than `max_numel` numbers made inside."""
    if max_numel is None:
        yield
    else:
        with _Bound(max_numel):
            yield


class _Bound(TorchDispatchMode):
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
                raise MemoryError(f"a tensor of {shape} numbers is larger than need be")
        return returned
