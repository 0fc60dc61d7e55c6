"""Recording a layer: the weights that its heads give, kept while it works (lesson 08)."""

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.attention import dot_scores, softmax
from course_lib.self_attention import Rule, replaced_rule


@contextmanager
def record_weights(layer: nn.Module) -> Iterator[list[Float[Tensor, "... heads query key"]]]:
    """Collect, call by call, the weights of a layer that attends by scaled dot products.

    The layer's rule of attention goes on as before; the weights are computed beside it.
    """
    recorded = []

    def recording(rule: Rule) -> Rule:
        def attend(
            q: Float[Tensor, "*batch query d_k"],
            k: Float[Tensor, "*batch key d_k"],
            v: Float[Tensor, "*batch key d_v"],
            mask: Bool[Tensor, "*#batch #query #key"] | None = None,
        ) -> Float[Tensor, "*batch query d_v"]:
            recorded.append(softmax(dot_scores(q, k) / q.shape[-1] ** 0.5, mask))
            return rule(q, k, v, mask)

        return attend

    with replaced_rule(layer, recording):
        yield recorded
