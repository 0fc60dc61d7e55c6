"""What real models changed: pooling, pairs, groups, gates, a cheap memory, a cache (lesson 09)."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from einops import einsum, rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.masks import causal_mask
from course_lib.multi_head import MultiHeadAttention, merge_heads, split_heads
from course_lib.self_attention import Rule, replaced_rule, scaled_dot_product_attention


def mean_pool(
    states: Float[Tensor, "... n d"], mask: Bool[Tensor, "... n"]
) -> Float[Tensor, "... d"]:
    """Describe a sentence by the mean of its real tokens, those where `mask` is True.

    A sentence without tokens gives zeros. Source: Reimers & Gurevych 2019, section 3.

    >>> states = torch.tensor([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]])
    >>> mean_pool(states, torch.tensor([True, True, False]))
    tensor([2., 3.])
    """
    # count the real tokens, and let an empty sentence divide its sum of zeros by one
    count = mask.sum(-1, keepdim=True).clamp(min=1)
    # add up the real tokens alone, and divide by their number
    return einsum(states, mask.to(states), "... n d, ... n -> ... d") / count


def pairs_to_halves(
    weight: Float[Tensor, "columns d_model"], heads: int
) -> Float[Tensor, "columns d_model"]:
    """Reorder a query or key matrix of `heads` heads from neighbouring pairs to halves.

    A row of `weight` makes one column of the queries or keys, and each head has d_k of them. Su et
    al. 2021 turn a head's columns 2c and 2c + 1 as a pair; `positions.rotary` turns c and
    c + d_k / 2, with c from 0. So in each head row 2c becomes row c, and row 2c + 1 becomes row
    c + d_k / 2.
    """
    # in each head, put the first of all pairs into the left half, the second into the right
    return rearrange(
        weight, "(heads pair two) d_model -> (heads two pair) d_model", heads=heads, two=2
    )


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    A cache keeps heads / groups times fewer numbers. `mask` is broadcast to the scores (..., heads,
    query, key); a query that may look nowhere gets zeros. Source: Ainslie et al. 2023, section 2.2.
    Raises ValueError where the groups do not divide the heads.
    """
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError(
            f"each key head serves equally many query heads, but {groups} do not divide {heads}: "
            "are queries and keys swapped?"
        )
    # show each key and value head to all the query heads that share it
    keys, values = (
        repeat(x, "... groups key d -> ... (groups share) key d", share=heads // groups)
        for x in (k, v)
    )
    # attend in all heads at once
    return scaled_dot_product_attention(q, keys, values, mask)


class GroupedQueryAttention(nn.Module):
    """Multi-head attention whose heads share keys and values in groups, without biases.

    `rule(q, k, v, mask)` is how the heads attend. Source: Ainslie et al. 2023.
    """

    def __init__(self, d_model: int, heads: int, groups: int, rule: Rule = grouped_query_attention):
        super().__init__()
        self.heads, self.groups, self.rule = heads, groups, rule
        d_shared = d_model // heads * groups
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_shared, bias=False)
        self.w_v = nn.Linear(d_model, d_shared, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head; `mask` is as in `MultiHeadAttention`."""
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.groups)
        v = split_heads(self.w_v(value), self.groups)
        if mask is not None:
            if problem := MultiHeadAttention.misfit(mask, query, key):
                raise ValueError(problem)
            mask = rearrange(mask, "... query key -> ... 1 query key")
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))


class SwiGLU(nn.Module):
    """Multiply one hidden layer by the swish of another: W_2 (swish(W_1 x) * W_3 x).

    swish(z) = z sigmoid(z). `w_1` and `w_3` are `nn.Linear` from d_model to d_ff, `w_2` is one
    from d_ff to d_model, and none of them has a bias: weights are copied by these names. Source:
    Shazeer 2020, eq. 6, whose W, V and W_2 are w_1, w_3 and w_2 here.
    """

    def __init__(self, d_model: int, d_ff: int):
        # call the constructor of nn.Module, then make the three matrices
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff, bias=False)
        self.w_2 = nn.Linear(d_ff, d_model, bias=False)
        self.w_3 = nn.Linear(d_model, d_ff, bias=False)

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Send every token through the gated network."""
        # compute the gate
        gate = F.silu(self.w_1(x))
        # multiply the other hidden layer by it, and return to d_model
        return self.w_2(gate * self.w_3(x))


class SSRU(nn.Module):
    """Keep one running state a column: c_t = f_t c_(t-1) + (1 - f_t) x_t W, and return relu(c_t).

    f_t = sigmoid(x_t W_f + b_f), and c_0 = 0. It takes the place of a decoder's self-attention,
    and a new token costs one step whatever the length. Source: Kim et al. 2019, section 3.1.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.w = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.w_f = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.b_f = nn.Parameter(torch.zeros(d_model))

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        """Run through the tokens from the first to the last; a mask is taken, and not needed."""
        return torch.relu(self.states(x, torch.zeros_like(x[..., 0, :])))

    def states(
        self, x: Float[Tensor, "*batch n d_model"], state: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch n d_model"]:
        """Return the state after each token, from the one before the first."""
        new, keep = x @ self.w, torch.sigmoid(x @ self.w_f + self.b_f)
        states = []
        for token, share in zip(new.unbind(-2), keep.unbind(-2), strict=True):
            state = share * state + (1 - share) * token
            states.append(state)
        return torch.stack(states, dim=-2)


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
