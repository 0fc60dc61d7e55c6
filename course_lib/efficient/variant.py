"""What the row of a variant tells; the table of all rows is `variants.VARIANTS` (lesson 13)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from course_lib.multi_head import MultiHeadAttention

# the keywords of a rule, for texts of n tokens and heads of d_k numbers
Settings = Callable[[int, int], dict[str, Any]]


@dataclass(frozen=True)
class Variant:
    """A row: a variant's function and rule, its naive twin, and how it is set up, and where.

    `function` is the plain form, which an exercise asks for; `rule` may compute the same faster. It
    takes the keywords of settings after (q, k, v, mask), or is a class of modules that is made with
    them. `twin` names what `course_lib.verify` holds `function` against. `example` is for
    tests, of short texts: no block of it divides 41. `causal` tells that the rule takes
    `causal=True`, `another_text` that the keys may be of another text than the queries. `layer` is
    the multi-head attention that takes the rule.
    """

    name: str
    function: Callable[..., Tensor]
    rule: Callable[..., Any]
    twin: str
    example: Settings
    experiment: Settings
    benchmark: Settings
    causal: bool = False
    another_text: bool = False
    layer: Callable[..., nn.Module] = MultiHeadAttention

    def set_up(self, settings: Settings, n: int, d_k: int, **more: Any) -> Callable[..., Tensor]:
        """Return the rule (q, k, v, mask) for texts of n tokens and heads of d_k numbers."""
        chosen = settings(n, d_k) | more
        if isinstance(self.rule, type):
            return self.rule(**chosen)
        return partial(self.rule, **chosen)
