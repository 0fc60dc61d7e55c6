# %% decoder/cross_attention | right | W_Q W_K^T multiplied first, the keys never made
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    bilinear = w_q @ w_k.mT
    scores = (z @ bilinear @ h.mT) / w_k.shape[-1] ** 0.5
    return (softmax(scores, mask) @ h) @ w_v


# %% decoder/cross_attention | wrong | the encoder asks and the decoder is found
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return scaled_dot_product_attention(h @ w_q, z @ w_k, z @ w_v, mask)


# %% decoder/cross_attention | wrong | self-attention of the decoder
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return scaled_dot_product_attention(z @ w_q, z @ w_k, z @ w_v, mask)


# %% decoder/cross_attention | wrong | the values come from the decoder
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return scaled_dot_product_attention(z @ w_q, h @ w_k, z @ w_v, mask)


# %% decoder/cross_attention | wrong | the mask is not used
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    # TODO: let the decoder's states ask, and the encoder's be found and hand over
    # TODO: attend
    return scaled_dot_product_attention(z @ w_q, h @ w_k, h @ w_v)


# %% decoder/cross_attention | wrong | values are not projected
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    # TODO: let the decoder's states ask, and the encoder's be found and hand over
    # TODO: attend
    return scaled_dot_product_attention(z @ w_q, h @ w_k, h, mask)


# %% decoder/cross_attention | wrong | the matrices of keys and values are exchanged
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return scaled_dot_product_attention(z @ w_q, h @ w_v, h @ w_k, mask)


# %% decoder/cross_attention | wrong | divides by the root of the decoder's size
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    scores = (z @ w_q) @ (h @ w_k).mT / z.shape[-1] ** 0.5
    return softmax(scores, mask) @ (h @ w_v)


# %% decoder/cross_attention | wrong | not divided
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return softmax(dot_scores(z @ w_q, h @ w_k), mask) @ (h @ w_v)


# %% decoder/cross_attention | wrong | a causal mask on top, as if the source were the future
def cross_attention(
    z: Float[Tensor, "*batch query d_z"],
    h: Float[Tensor, "*batch key d_h"],
    w_q: Float[Tensor, "d_z d_k"],
    w_k: Float[Tensor, "d_h d_k"],
    w_v: Float[Tensor, "d_h d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    """Let the decoder's states look at the encoder's: softmax(Z W_Q (H W_K)^T / sqrt(d_k)) H W_V.

    Z are the decoder's states, H the encoder's; the scores are target words by source words.
    Source: Vaswani et al. 2017, section 3.2.3.
    """
    # TODO: let the decoder's states ask, and the encoder's be found and hand over
    # TODO: attend
    n, m = z.shape[-2], h.shape[-2]
    early = torch.ones(n, m, dtype=torch.bool).tril()
    mask = early if mask is None else mask & early
    return scaled_dot_product_attention(z @ w_q, h @ w_k, h @ w_v, mask)


# %% decoder/grouped_query | right | an index says which key head each query head uses
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError(f"{groups} groups do not divide {heads} heads")
    which = torch.tensor([head // (heads // groups) for head in range(heads)], device=q.device)
    return scaled_dot_product_attention(q, k.index_select(-3, which), v.index_select(-3, which), mask)


# %% decoder/grouped_query | wrong | groups take turns: head h uses group h mod g
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError("groups")
    k = torch.cat([k] * (heads // groups), dim=-3)
    v = torch.cat([v] * (heads // groups), dim=-3)
    return scaled_dot_product_attention(q, k, v, mask)


# %% decoder/grouped_query | wrong | only the first group is used by all
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    if q.shape[-3] % k.shape[-3]:
        raise ValueError("groups")
    return scaled_dot_product_attention(q, k[..., :1, :, :].expand(*q.shape[:-2], -1, -1), v[..., :1, :, :].expand(*q.shape[:-2], -1, -1), mask)


# %% decoder/grouped_query | wrong | the mask is not used
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    # TODO: refuse groups that do not divide the heads
    # TODO: show each key and value head to all the query heads that share it
    # TODO: attend in all heads at once
    share = q.shape[-3] // k.shape[-3]
    if q.shape[-3] % k.shape[-3]:
        raise ValueError("groups")
    k, v = (x.repeat_interleave(share, dim=-3) for x in (k, v))
    return scaled_dot_product_attention(q, k, v)


# %% decoder/grouped_query | wrong | the values take turns, the keys do not
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError("groups")
    k = k.repeat_interleave(heads // groups, dim=-3)
    v = torch.cat([v] * (heads // groups), dim=-3)
    return scaled_dot_product_attention(q, k, v, mask)


# %% decoder/grouped_query | wrong | groups that do not divide the heads are cut to fit
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    heads, groups = q.shape[-3], k.shape[-3]
    share = -(-heads // groups)
    k, v = (x.repeat_interleave(share, dim=-3)[..., :heads, :, :] for x in (k, v))
    return scaled_dot_product_attention(q, k, v, mask)


# %% decoder/grouped_query | wrong | averages the query heads of a group
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError("groups")
    mean = rearrange(q, "... (g s) n d -> ... g s n d", g=groups).mean(-3)
    out = scaled_dot_product_attention(mean, k, v, mask)
    return out.repeat_interleave(heads // groups, dim=-3)


# %% decoder/grouped_query | wrong | repeats along the first axis, which is the batch
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    if q.shape[-3] % k.shape[-3]:
        raise ValueError("groups")
    share = q.shape[-3] // k.shape[-3]
    k, v = k.repeat_interleave(share, dim=0), v.repeat_interleave(share, dim=0)
    return scaled_dot_product_attention(q, k, v, mask)


# %% decoder/grouped_query | wrong | fixed at three query heads a group, as SmolLM2 has
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    if q.shape[-3] % k.shape[-3]:
        raise ValueError("groups")
    k, v = (x.repeat_interleave(3, dim=-3) for x in (k, v))
    return scaled_dot_product_attention(q, k, v, mask)


# %% decoder/grouped_query | wrong | a mask with a head axis is put before each head once more
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    # TODO: refuse groups that do not divide the heads
    # TODO: show each key and value head to all the query heads that share it
    # TODO: attend in all heads at once
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups:
        raise ValueError("groups")
    k, v = (x.repeat_interleave(heads // groups, dim=-3) for x in (k, v))
    if mask is not None:
        mask = mask.unsqueeze(-3)
    return scaled_dot_product_attention(q, k, v, mask)


# %% decoder/block | right | the three layers in a loop, with their arguments beside them
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        # TODO: let the words look at each other
        # TODO: let them look at what the encoder has read
        # TODO: let each word think about what it has seen
        for layer, arguments in (
            (self.attention, (mask,)),
            (self.cross_attention, (memory, memory_mask)),
            (self.feed_forward, ()),
        ):
            x = layer(x, *arguments)
        return x


# %% decoder/block | wrong | looks across before it looks back
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        x = self.cross_attention(x, memory, memory_mask)
        x = self.attention(x, mask)
        return self.feed_forward(x)


# %% decoder/block | wrong | the masks are exchanged
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        x = self.attention(x, memory_mask)
        x = self.cross_attention(x, memory, mask)
        return self.feed_forward(x)


# %% decoder/block | wrong | the memory's mask is forgotten
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        x = self.attention(x, mask)
        x = self.cross_attention(x, memory)
        return self.feed_forward(x)


# %% decoder/block | wrong | the causal mask is forgotten
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        x = self.attention(x)
        x = self.cross_attention(x, memory, memory_mask)
        return self.feed_forward(x)


# %% decoder/block | wrong | cross-attention is left out
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        # TODO: let the words look at each other
        # TODO: let them look at what the encoder has read
        # TODO: let each word think about what it has seen
        x = self.attention(x, mask)
        return self.feed_forward(x)


# %% decoder/block | wrong | adds once more around the layers, which add by themselves
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        x = x + self.attention(x, mask)
        x = x + self.cross_attention(x, memory, memory_mask)
        return x + self.feed_forward(x)


# %% decoder/block | wrong | each layer reads the block's input, and the results are summed
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        looked = self.attention(x, mask)
        across = self.cross_attention(x, memory, memory_mask)
        return looked + across + self.feed_forward(x)


# %% decoder/block | wrong | the memory asks, the words are looked at
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        # TODO: let the words look at each other
        # TODO: let them look at what the encoder has read
        # TODO: let each word think about what it has seen
        x = self.attention(x, mask)
        x = self.cross_attention(memory, x, memory_mask)
        return self.feed_forward(x)


# %% decoder/block | wrong | a causal mask of its own in the place of the mask given
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        # TODO: let the words look at each other
        # TODO: let them look at what the encoder has read
        # TODO: let each word think about what it has seen
        n = x.shape[-2]
        x = self.attention(x, causal_mask(n))
        x = self.cross_attention(x, memory, memory_mask)
        return self.feed_forward(x)


# %% decoder/block | wrong | cross-attention looks with the words as they came in, not as they looked back
class DecoderBlock(nn.Module):
    """Look back, look at the source, think: three layers, each with add and norm.

    `attention(d_model, heads)` makes the self-attention and the cross-attention,
    `feed_forward(d_model, d_ff)` the network, and `norm_layer(x, gain, bias)` normalises;
    `look_back(d_model, heads)` makes what may stand in the place of self-attention. Source:
    Vaswani et al. 2017, section 3.1; norm="pre" as in `EncoderBlock`. Raises ValueError for
    another `norm`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        norm: Literal["post", "pre"] = "post",
        *,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
        norm_layer: Callable[..., Tensor] = layer_norm,
        look_back: Callable[[int, int], nn.Module] | None = None,
    ):
        super().__init__()
        add = residual(norm)
        if look_back is None:
            first = AsSelfAttention(attention(d_model, heads))
        else:
            first = look_back(d_model, heads)
        across = AsCrossAttention(attention(d_model, heads))
        self.attention = add(first, d_model, norm_layer)
        self.cross_attention = add(across, d_model, norm_layer)
        self.feed_forward = add(feed_forward(d_model, d_ff), d_model, norm_layer)

    def forward(
        self,
        x: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #query"] | None = None,
        memory_mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Pass the words through the three layers, each of which adds and normalises by itself.

        Masks are as in `MultiHeadAttention`. `mask` is for the words among themselves, causal
        where they are to be written one by one; `memory_mask` says which of the encoder's states
        may be seen.
        """
        self.attention(x, mask)
        x = self.cross_attention(x, memory, memory_mask)
        return self.feed_forward(x)


# %% decoder/grouped_query | wrong | the ready-made F.scaled_dot_product_attention with enable_gqa is called, nothing is built (right numbers)
def grouped_query_attention(
    q: Float[Tensor, "*batch heads query d_k"],
    k: Float[Tensor, "*batch groups key d_k"],
    v: Float[Tensor, "*batch groups key d_v"],
    mask: Bool[Tensor, "*#batch #heads #query #key"] | None = None,
) -> Float[Tensor, "*batch heads query d_v"]:
    """Attend with fewer keys and values than queries: consecutive query heads share theirs.

    What must be kept of each word is heads / groups times less. `mask` is broadcast to the scores
    (..., heads, query, key). Source: Ainslie et al. 2023, section 2.2. Raises ValueError where the
    groups do not divide the heads.
    """
    if q.shape[-3] % k.shape[-3]:
        raise ValueError("groups")
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
