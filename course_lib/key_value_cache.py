"""The key-value cache: what has been read is not read again (lesson 09)."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.masks import causal_mask
from course_lib.multi_head import replaced_rule
from course_lib.self_attention import Rule


class KeyValueCache:
    """Attend as `attention(q, k, v, mask)` does, and keep the keys and values of all calls.

    A call brings the new tokens alone. Their queries look at every key kept so far and at their
    own, each up to itself, so that a text cut into calls in any way gives what one call would
    give. One object serves one layer and one text, which takes n (d_k + d_v) numbers for n tokens
    of each key head. Source: Shazeer 2019, section 2.4.
    """

    def __init__(self, attention: Callable[..., Tensor]):
        # keep the rule, and make room for keys and values: nothing has been read so far
        self.attention = attention
        self.kept: tuple[Tensor, ...] = ()

    def __call__(
        self,
        q: Float[Tensor, "*batch heads query d_k"],
        k: Float[Tensor, "*batch groups query d_k"],
        v: Float[Tensor, "*batch groups query d_v"],
    ) -> Float[Tensor, "*batch heads query d_v"]:
        """Attend from the new tokens to all tokens so far."""
        # put the new keys and values behind those of earlier calls, and keep them all
        if self.kept:
            k, v = (torch.cat(pair, dim=-2) for pair in zip(self.kept, (k, v), strict=True))
        self.kept = k, v
        # make the causal mask for queries that are the last of the keys
        mask = causal_mask(q.shape[-2], k.shape[-2], device=q.device)
        # attend
        return self.attention(q, k, v, mask)


def as_rule(cache: Callable[..., Tensor]) -> Rule:
    """Return a cache as a rule: the mask that comes knows the new tokens alone, and is left out."""
    return lambda q, k, v, mask=None: cache(q, k, v)


@contextmanager
def use_cache(
    layers: Iterable[nn.Module], cache: Callable[[Rule], Callable] = KeyValueCache
) -> Iterator[None]:
    """Let each layer's rule of attention have a cache inside the block, for one text."""
    with ExitStack() as stack:
        for layer in layers:
            stack.enter_context(replaced_rule(layer, lambda rule: as_rule(cache(rule))))
        yield
