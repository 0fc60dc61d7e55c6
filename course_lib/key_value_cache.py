"""The key-value cache: what has been read is not read again (lesson 09)."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.masks import causal_mask
from course_lib.multi_head import replaced_rule
from course_lib.self_attention import Rule


class KeyValueCache:
    """Wrap an attention rule so that it remembers the keys and values of all calls.

    A call brings the new words alone: their queries meet the keys kept so far and their own, so a
    text of n tokens costs n queries in place of n (n + 1) / 2. It takes 2 n d_k numbers a key head.
    The model must be causal: only then does the past stay as it was. One cache serves one layer
    and one text. Source: Shazeer 2019, section 2.4.
    """

    def __init__(self, attention: Rule):
        self.attention = attention
        self.kept: tuple[Tensor, ...] = ()

    def __call__(
        self,
        q: Float[Tensor, "*batch heads query d_k"],
        k: Float[Tensor, "*batch groups query d_k"],
        v: Float[Tensor, "*batch groups query d_v"],
        mask: Bool[Tensor, "*#batch #heads #query #query"] | None = None,
    ) -> Float[Tensor, "*batch heads query d_v"]:
        """Attend from the new words to all words so far; `mask` is the causal one, and not read."""
        if self.kept:
            k, v = (torch.cat(pair, dim=-2) for pair in zip(self.kept, (k, v), strict=True))
        self.kept = k, v
        seen = causal_mask(q.shape[-2], k.shape[-2]).to(q.device)
        return self.attention(q, k, v, seen)

    def cut(self, length: int) -> None:
        """Forget all words but the first `length`, as if the others had never been read."""
        self.kept = tuple(x[..., :length, :] for x in self.kept)


@contextmanager
def use_cache(layers: Iterable[nn.Module]) -> Iterator[list[KeyValueCache]]:
    """Let each layer's rule of attention have a cache inside the block, for one text."""
    caches: list[KeyValueCache] = []

    def cached(rule: Rule) -> KeyValueCache:
        caches.append(KeyValueCache(rule))
        return caches[-1]

    with ExitStack() as stack:
        for layer in layers:
            stack.enter_context(replaced_rule(layer, cached))
        yield caches


remembering = use_cache  # as notebooks handed out before version 0.2 call it
