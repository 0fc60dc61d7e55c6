"""A rule of attention that keeps every head's weights, and can leave heads out."""

from collections.abc import Collection

from einops import repeat
from torch import Tensor

from course_lib.attention import dot_scores, softmax


class WatchedHeads:
    """Attend with grouped queries, once for each layer, from the first to the last.

    After a reading, `weights` has those of each layer. Heads in `removed`, pairs of layer and head
    from 0, find nothing.
    """

    def __init__(self) -> None:
        self.weights: list[Tensor] = []
        self.removed: Collection[tuple[int, int]] = ()

    def begin(self, removed: Collection[tuple[int, int]] = ()) -> None:
        """Get ready for the first layer of a reading."""
        self.weights, self.removed = [], removed

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend as a rule does."""
        share = q.shape[-3] // k.shape[-3]
        k, v = (repeat(x, "... groups n d -> ... (groups share) n d", share=share) for x in (k, v))
        weights = softmax(dot_scores(q, k) / q.shape[-1] ** 0.5, mask)
        found = weights @ v
        found[..., [head for layer, head in self.removed if layer == len(self.weights)], :, :] = 0
        self.weights.append(weights)
        return found
