"""Watching a layer: the weights that its heads give, kept while it works (lesson 08)."""

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.attention import dot_scores, softmax


@contextmanager
def watching(layer: nn.Module) -> Iterator[list[Float[Tensor, "... heads query key"]]]:
    """Collect, call by call, the weights of a layer that attends by scaled dot products.

    The layer's `attention` rule goes on as before; the weights are computed beside it.
    """
    rule, kept = layer.attention, []

    def watch(
        q: Float[Tensor, "... query d_k"],
        k: Float[Tensor, "... key d_k"],
        v: Float[Tensor, "... key d_v"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "... query d_v"]:
        kept.append(softmax(dot_scores(q, k) / q.shape[-1] ** 0.5, mask))
        return rule(q, k, v, mask)

    layer.attention = watch
    try:
        yield kept
    finally:
        layer.attention = rule
