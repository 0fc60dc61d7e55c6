"""How many operations of torch an answer makes: they show a loop where there should be none."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from torch.utils._python_dispatch import TorchDispatchMode


class TooManyCalls(RuntimeError):
    """More operations of torch than were allowed; the message says how many were."""


@contextmanager
def calls_up_to(max_calls: int | None) -> Iterator[None]:
    """Refuse with TooManyCalls what makes more than `max_calls` operations of torch inside.

    An error that the answer catches comes again at the end.
    """
    if max_calls is None:
        yield
        return
    with Count(max_calls) as count:
        yield
    count.refuse_more()


class Count(TorchDispatchMode):
    """Counts the operations of torch inside, `made`, and refuses those above `most`."""

    def __init__(self, most: float = math.inf):
        super().__init__()
        self._most, self.made = most, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Count one operation, and let it go on."""
        self.made += 1
        self.refuse_more()
        return function(*args, **(kwargs or {}))

    def refuse_more(self) -> None:
        """Raise TooManyCalls where there were more than `most`."""
        if self.made > self._most:
            raise TooManyCalls(
                f"more than {self._most} operations of torch: does a loop go over the tokens?"
            )
