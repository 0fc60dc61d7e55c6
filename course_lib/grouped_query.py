"""Grouped queries: heads that share their keys and values (lesson 09)."""

from einops import rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.multi_head import MultiHeadAttention, merge_heads, split_heads
from course_lib.self_attention import Rule, scaled_dot_product_attention


def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    A cache keeps heads / groups times fewer numbers. `mask` is broadcast to the scores (..., heads,
    query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the groups do not
    divide the heads.
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
