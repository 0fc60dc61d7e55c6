"""Positions: tell attention, which sees a set of tokens, where each token is (lesson 04)."""

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor, nn

from course_lib.attention import dot_scores, softmax, weighted_sum


def sinusoidal(
    n: int, d_model: int, *, device: torch.device | None = None
) -> Float[Tensor, "n d_model"]:
    """Describe the positions 0..n-1 by waves, from fast to slow.

    p_(i, 2c) = sin(i / 10000^(2c / d_model)),  p_(i, 2c+1) = cos(i / 10000^(2c / d_model)), with
    c from 0. The wavelengths grow from 2 pi to 10000^((d_model - 2) / d_model) * 2 pi positions.
    The table has torch's default float type. Source: Vaswani et al. 2017, section 3.5. Raises
    ValueError for an odd d_model.
    """
    if d_model % 2:
        raise ValueError(f"each sine needs its cosine, so d_model must be even, not {d_model}")
    # count the positions, and find the speed of each wave
    places = torch.arange(n, dtype=torch.get_default_dtype(), device=device)
    speeds = 10000.0 ** (-torch.arange(0, d_model, 2, device=device) / d_model)
    # turn each wave by its angle at each position
    angles = places.unsqueeze(-1) * speeds
    # lay sines in the even columns and cosines in the odd ones
    waves = torch.stack([torch.sin(angles), torch.cos(angles)])
    return rearrange(waves, "wave n c -> n (c wave)")


def shift_matrix(
    offset: int, d_model: int, *, device: torch.device | None = None
) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix M that moves every sinusoidal position on: p(i + offset) = p(i) M.

    M turns each pair (sin, cos) by its own angle b = offset / 10000^(2c / d_model), whatever i is.
    M has torch's default float type. Source: Vaswani et al. 2017, section 3.5, who claim that such
    an M exists. Raises ValueError for an odd d_model.
    """
    if d_model % 2:
        raise ValueError(f"M turns pairs of columns, so d_model must be even, not {d_model}")
    # find the angle by which each wave moves on
    speeds = 10000.0 ** (-torch.arange(0, d_model, 2, device=device) / d_model)
    sine, cosine = torch.sin(offset * speeds), torch.cos(offset * speeds)
    # write sin(a + b) and cos(a + b) as sums of sin a and cos a, and read off the block
    block = torch.stack([torch.stack([cosine, -sine]), torch.stack([sine, cosine])])
    # lay the blocks along the diagonal
    return torch.block_diag(*rearrange(block, "row column c -> c row column"))


class LearnedPositions(nn.Module):
    """Learn one vector for each position: x_i + p_i.

    Source: Gehring et al. 2017, section 3.1.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        """Add to each token the vector of its position.

        Raises ValueError for sentences longer than `max_length`, which have no vectors.
        """
        n, max_length = x.shape[-2], len(self.table)
        if n > max_length:
            raise ValueError(
                f"expected at most {max_length} tokens, one for each learned position, but got "
                f"{n}: cut the sentence, or make max_length larger before training"
            )
        # add the first n vectors of the table to the tokens
        return x + self.table[:n]


def relative_index(
    n_q: int, n_k: int, max_distance: int, *, device: torch.device | None = None
) -> Int[Tensor, "query key"]:
    """Number the distances from query i to key j: clip(j - i, -m, m) + m, for m = max_distance.

    0 means m or more tokens to the left, m the same place, 2m m or more tokens to the right; i and
    j both count from 0. Source: Shaw et al. 2018, section 3.2.

    >>> relative_index(2, 4, max_distance=2)
    tensor([[2, 3, 4, 4],
            [1, 2, 3, 4]])
    """
    # subtract the place of each query from that of each key
    distance = torch.arange(n_k, device=device) - torch.arange(n_q, device=device).unsqueeze(-1)
    # treat all distances past the largest alike, and count from 0
    return distance.clamp(-max_distance, max_distance) + max_distance


def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "row d_k"],
    value_table: Float[Tensor, "row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend to tokens and to how far away they are, with a learned vector for each distance.

    s_ij = q_i . (k_j + a_ij) / sqrt(d_k);  o_i = sum_j softmax(s_i)_j (v_j + b_ij), where a_ij
    and b_ij are the rows `relative_index` of the tables: queries and keys both count from 0. Both
    tables have 2m + 1 rows. Source: Shaw et al. 2018, eq. 3 and 4 (their a^K and a^V), computed as
    in eq. 5. Raises ValueError for tables without a middle row, or of unequal lengths.
    """
    rows, d_k = key_table.shape
    if rows % 2 == 0 or len(value_table) != rows:
        raise ValueError(
            "both tables must have the same odd number of rows, 2 max_distance + 1, not "
            f"{rows} and {len(value_table)}: is the row for distance 0 there?"
        )
    # look up the row of each distance
    index = relative_index(q.shape[-2], k.shape[-2], rows // 2, device=q.device)
    # score the tokens and their distances, and divide both by the root of the size
    distance_scores = einsum(q, key_table[index], "... query d_k, query key d_k -> ... query key")
    weights = softmax((dot_scores(q, k) + distance_scores) / d_k**0.5, mask)
    # average the values, and the vectors of their distances, with the same weights
    distances = einsum(weights, value_table[index], "... query key, query key d_v -> ... query d_v")
    return weighted_sum(weights, v) + distances


def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    """Count the edges between each two tokens of a dependency tree.

    `heads[i]` is the token that token i depends on, -1 for the root. A_i being token i and all
    tokens above it, the path from i to j has as many edges as there are tokens in only one of A_i
    and A_j. Source: after Wang et al. 2019 ("Structural Position Representations"), whose distances
    have signs, and lead over the root unless an edge joins the two tokens. Raises ValueError for
    heads that are no tree.

    >>> tree_distance(torch.tensor([1, -1, 1]))
    tensor([[0, 1, 2],
            [1, 0, 1],
            [2, 1, 0]])
    """
    n, roots = len(heads), int((heads == -1).sum())
    if roots != 1:
        raise ValueError(
            f"a tree has one root, whose head is -1, but these heads have {roots}: is the root "
            "its own head, or are there several sentences?"
        )
    top = heads
    for _ in range(n):
        top = torch.where(top == -1, top, heads[top])
    if (top != -1).any():
        raise ValueError(
            f"a tree has no cycles, but tokens {(top != -1).nonzero().flatten().tolist()} never "
            "reach the root by their heads: does a token depend on itself, or two on each other?"
        )
    # start at every token at once, with no token seen above it
    tokens = torch.arange(n, device=heads.device)
    at, above = tokens, torch.zeros(n, n, dtype=torch.bool, device=heads.device)
    # note the token reached and climb to its head, staying at the root; n steps reach it
    for _ in range(n):
        above[tokens, at] = True
        at = torch.where(heads[at] == -1, at, heads[at])
    # count the tokens that only one of the two has above it
    return (above.unsqueeze(0) ^ above.unsqueeze(1)).sum(-1)


def rotary(
    x: Float[Tensor, "... n d"], positions: Real[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    """Turn queries or keys by angles that grow with their positions.

    Columns c and c + d / 2 are a point of the plane, turned by a = i / base^(2c / d):
    (x_c cos a - x_(c + d/2) sin a, x_c sin a + x_(c + d/2) cos a), with c from 0. Norms do not
    change, and dot products depend on i - j alone. The result has the type of x, but the angles are
    computed in float32 at least: bfloat16 cannot tell position 4001 from 4000. Source: Su et al.
    2021, section 3.2, who pair the columns 2c and 2c + 1. Raises ValueError for an odd d.
    """
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"columns are turned in pairs, so x needs an even number, not {d}")
    # find the angle of each pair at each position
    exact = torch.promote_types(x.dtype, torch.float32)
    speeds = base ** (-torch.arange(0, d, 2, dtype=exact, device=x.device) / d)
    angles = positions.to(exact).unsqueeze(-1) * speeds
    sine, cosine = torch.sin(angles).to(x.dtype), torch.cos(angles).to(x.dtype)
    # turn each pair, its first entry from the left half and its second from the right half
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1)


def rotary_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
) -> Float[Tensor, "*batch query d_v"]:
    """Attend causally with rotary positions; the queries are the last n_q of the n_k tokens.

    o_i = sum_(j <= i) softmax_j((q_i R_i) . (k_j R_j) / sqrt(d_k)) v_j. A model that writes keeps
    its keys and values, and brings one new query at a time: then n_q is 1. Values are not turned.
    Source: Su et al. 2021, section 3.2. Raises ValueError for more queries than keys.
    """
    (n_q, d_k), n_k = q.shape[-2:], k.shape[-2]
    if n_q > n_k:
        raise ValueError(f"the queries are the last of the tokens, but {n_q} are more than {n_k}")
    # count the places of the keys, and those of the queries
    keys = torch.arange(n_k, device=q.device)
    queries = torch.arange(n_k - n_q, n_k, device=q.device)
    # turn both by their places, and let each query look at no later key
    scores = dot_scores(rotary(q, queries), rotary(k, keys)) / d_k**0.5
    weights = softmax(scores, queries.unsqueeze(-1) >= keys)
    return weighted_sum(weights, v)


def alibi(
    n_q: int, n_k: int, heads: int, *, device: torch.device | None = None
) -> Float[Tensor, "heads query key"]:
    """Make scores fall with distance, in each head at its own rate: -2^(-8h / heads) abs(i - j).

    h counts from 1, and the queries are the last n_q of the n_k keys. To be added to the scores;
    nothing is learned. The table has torch's default float type. Source: Press et al. 2022,
    section 3, for causal attention; here the tokens to the right are treated like those to the
    left. Raises ValueError unless `heads` is a power of two.
    """
    if heads < 1 or heads & (heads - 1):
        raise ValueError(
            f"heads must be a power of two, for which the slopes are defined, not {heads}"
        )
    # give each head its slope, from steep to flat
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1, device=device) / heads)
    # measure the distances, the last query is at the last key
    queries = torch.arange(n_k - n_q, n_k, device=device)
    distance = (queries.unsqueeze(-1) - torch.arange(n_k, device=device)).abs()
    # take the distances off the scores, in each head multiplied by its slope
    return -slopes[:, None, None] * distance
