# %% self_attention/parameter_free | right | one word at a time, each over the slice of words that it may see
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    n = x.shape[-2]
    found = []
    for i in range(n):
        seen = x[..., : i + 1, :] if causal else x
        scores = (seen @ x[..., i, :, None]).squeeze(-1)
        found.append((softmax(scores).unsqueeze(-2) @ seen).squeeze(-2))
    return torch.stack(found, dim=-2) if found else x.clone()


# %% self_attention/parameter_free | wrong | ignores `causal`
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    return weighted_sum(softmax(dot_scores(x, x)), x)


# %% self_attention/parameter_free | wrong | divides by the root of d
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool, device=x.device).tril() if causal else None
    return weighted_sum(softmax(dot_scores(x, x) / x.shape[-1] ** 0.5, mask), x)


# %% self_attention/parameter_free | wrong | causal hides the word itself too
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    n = x.shape[-2]
    mask = torch.ones(n, n, dtype=torch.bool).tril(-1) if causal else None
    return weighted_sum(softmax(dot_scores(x, x), mask), x)


# %% self_attention/parameter_free | wrong | causal with the upper triangle: only the future is seen
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    # TODO: compare every word with every word
    # TODO: when causal, hide the words to the right
    # TODO: average the words with the weights that this gives
    n = x.shape[-2]
    mask = torch.ones(n, n, dtype=torch.bool).triu() if causal else None
    return weighted_sum(softmax(dot_scores(x, x), mask), x)


# %% self_attention/parameter_free | wrong | the future is cut from the weights after the softmax
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    weights = softmax(dot_scores(x, x))
    if causal:
        weights = weights.tril()
    return weights @ x


# %% self_attention/parameter_free | wrong | lets no word look at itself
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    n = x.shape[-2]
    mask = ~torch.eye(n, dtype=torch.bool)
    if causal:
        mask = mask.tril()
    return weighted_sum(softmax(dot_scores(x, x), mask), x)


# %% self_attention/parameter_free | wrong | weighs by raw scores, without softmax
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    scores = dot_scores(x, x)
    if causal:
        scores = scores.tril()
    return scores @ x


# %% self_attention/parameter_free | wrong | causal sets the scores of the future to zero
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    scores = dot_scores(x, x)
    if causal:
        scores = torch.tril(scores)
    return weighted_sum(softmax(scores), x)


# %% self_attention/parameter_free | wrong | the mask's size is the size of a word, not the number of words
def parameter_free(x: Float[Tensor, "... n d"], causal: bool = False) -> Float[Tensor, "... n d"]:
    """Let every word average its sentence, by likeness alone: softmax(X X^T) X.

    Version 1 of self-attention: q = k = v = x, no parameters and no scale. With `causal`,
    word i averages words 1..i only.
    """
    # TODO: compare every word with every word
    # TODO: when causal, hide the words to the right
    # TODO: average the words with the weights that this gives
    mask = torch.ones(x.shape[-1], x.shape[-1]).bool().tril() if causal else None
    return weighted_sum(softmax(dot_scores(x, x), mask), x)


# %% self_attention/project | right | one product with the three matrices side by side, then a split
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each word its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    # TODO: multiply the words by each of the three matrices
    together = x @ torch.cat((w_q, w_k, w_v), dim=1)
    return together.split([w_q.shape[1], w_k.shape[1], w_v.shape[1]], dim=-1)


# %% self_attention/project | wrong | returns (k, q, v)
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each word its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    return x @ w_k, x @ w_q, x @ w_v


# %% self_attention/project | wrong | the values are the words themselves
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each word its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    # TODO: multiply the words by each of the three matrices
    return x @ w_q, x @ w_k, x


# %% self_attention/project | wrong | splits a joint product into three equal parts, which a d_v of its own breaks
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each word its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    return (x @ torch.cat([w_q, w_k, w_v], dim=-1)).chunk(3, dim=-1)


# %% self_attention/project | wrong | uses the query's matrix for the keys too
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each word its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    return x @ w_q, x @ w_q, x @ w_v


# %% self_attention/project | wrong | transposes the matrices, as nn.Linear keeps them
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each word its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    # TODO: multiply the words by each of the three matrices
    return x @ w_q.T, x @ w_k.T, x @ w_v.T


# %% self_attention/project | wrong | values are made of the keys
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each word its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    # TODO: multiply the words by each of the three matrices
    q = x @ w_q
    k = x @ w_k
    v = k @ w_v
    return q, k, v


# %% self_attention/project | wrong | scales the queries already
def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each word its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    return x @ w_q / w_q.shape[-1] ** 0.5, x @ w_k, x @ w_v


# %% self_attention/project | wrong | einsum for exactly one batch axis
from einops import einsum


def project(
    x: Float[Tensor, "... n d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
) -> tuple[
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_k"],
    Float[Tensor, "... n d_v"],
]:
    """Give each word its three roles: q = x W_Q, k = x W_K, v = x W_V; return (q, k, v)."""
    weights = {"q": w_q, "k": w_k, "v": w_v}
    return tuple(einsum(x, w, "b n m, m d -> b n d") for w in weights.values())


# %% self_attention/scaled_dot_product | right | scales both sides by the fourth root, and averages by einsum
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    root = k.shape[-1] ** 0.25
    scores = torch.einsum("...id,...jd->...ij", q / root, k / root)
    return torch.einsum("...ij,...jd->...id", softmax(scores, mask), v)


# %% self_attention/scaled_dot_product | wrong | forgets to divide
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    return weighted_sum(softmax(dot_scores(q, k), mask), v)


# %% self_attention/scaled_dot_product | wrong | divides by d_k instead of its root
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    return weighted_sum(softmax(dot_scores(q, k) / q.shape[-1], mask), v)


# %% self_attention/scaled_dot_product | wrong | takes the root of d_v
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    return weighted_sum(softmax(dot_scores(q, k) / v.shape[-1] ** 0.5, mask), v)


# %% self_attention/scaled_dot_product | wrong | takes the root of the number of keys
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    return weighted_sum(softmax(dot_scores(q, k) / k.shape[-2] ** 0.5, mask), v)


# %% self_attention/scaled_dot_product | wrong | swaps queries and keys in the scores
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    # TODO: score every query against every key, and divide by the root of their size
    # TODO: turn scores into weights, then average the values
    scores = (k @ q.transpose(-2, -1)) / q.shape[-1] ** 0.5
    return softmax(scores, mask) @ v


# %% self_attention/scaled_dot_product | wrong | ignores the mask
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    return softmax(dot_scores(q, k) / q.shape[-1] ** 0.5) @ v


# %% self_attention/scaled_dot_product | wrong | divides after the softmax
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    return softmax(dot_scores(q, k), mask) / q.shape[-1] ** 0.5 @ v


# %% self_attention/scaled_dot_product | wrong | adds the boolean mask to the scores
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    scores = dot_scores(q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + mask
    return softmax(scores) @ v


# %% self_attention/scaled_dot_product | wrong | a query that may look nowhere averages all values
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    scores = dot_scores(q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return softmax(scores) @ v


# %% self_attention/scaled_dot_product | wrong | the softmax runs over the queries
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    scores = dot_scores(q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    return torch.softmax(scores, dim=-2) @ v


# %% self_attention/layer | right | forward written out by hand with nn.functional.linear
class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the words of x look at each other, where `mask` is True."""
        q = nn.functional.linear(x, self.w_q.T)
        k = nn.functional.linear(x, self.w_k.T)
        v = nn.functional.linear(x, self.w_v.T)
        return scaled_dot_product_attention(q, k, v, mask=mask)


# %% self_attention/layer | wrong | does not hand the mask on
class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the words of x look at each other, where `mask` is True."""
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v)


# %% self_attention/layer | wrong | the values are not projected
class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the words of x look at each other, where `mask` is True."""
        # TODO: give each word its query, its key and its value
        # TODO: attend
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, x, mask)


# %% self_attention/layer | wrong | queries and keys swapped
class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the words of x look at each other, where `mask` is True."""
        k, q, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


# %% self_attention/layer | wrong | draws new matrices at every call
class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the words of x look at each other, where `mask` is True."""
        w_q, w_k, w_v = (torch.randn_like(w) / x.shape[-1] ** 0.5 for w in (self.w_q, self.w_k, self.w_v))
        q, k, v = project(x, w_q, w_k, w_v)
        return scaled_dot_product_attention(q, k, v, mask)


# %% self_attention/layer | wrong | uses the matrices' data, so that nothing is learned
class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the words of x look at each other, where `mask` is True."""
        q, k, v = project(x, self.w_q.data, self.w_k.data, self.w_v.data)
        return scaled_dot_product_attention(q, k, v, mask)


# %% self_attention/layer | wrong | scales twice, once here and once in the function
class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the words of x look at each other, where `mask` is True."""
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q / q.shape[-1] ** 0.5, k, v, mask)


# %% self_attention/layer | wrong | adds the words to what was found
class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the words of x look at each other, where `mask` is True."""
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        found = scaled_dot_product_attention(q, k, v, mask)
        return found + x if found.shape == x.shape else found


# %% self_attention/layer | wrong | masks causally wherever no mask is given
class SelfAttention(nn.Module):
    """One head of self-attention: softmax(X W_Q (X W_K)^T / sqrt(d_k)) X W_V."""

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_v"]:
        """Let the words of x look at each other, where `mask` is True."""
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        if mask is None:
            n = x.shape[-2]
            mask = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
        return scaled_dot_product_attention(q, k, v, mask)


# %% self_attention/scaled_dot_product | wrong | the ready-made F.scaled_dot_product_attention is called, nothing is built (right numbers)
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


# %% self_attention/scaled_dot_product | wrong | the division comes after the product with the values (precedence)
def scaled_dot_product_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Attend: softmax(Q K^T / sqrt(d_k)) V.

    `mask` is broadcast to the scores, True where a query may look; a query that may look
    nowhere gets zeros. Source: Vaswani et al. 2017, eq. 1.
    """
    # TODO: score every query against every key, and divide by the root of their size
    # TODO: turn scores into weights, then average the values
    return softmax(q @ k.transpose(-2, -1), mask) @ v / q.shape[-1] ** 0.5
