# %% multi_head/split_heads | right | unflatten and movedim
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    if x.shape[-1] % heads:
        raise ValueError(f"{heads} heads do not divide {x.shape[-1]} columns")
    return x.unflatten(-1, (heads, -1)).movedim(-2, -3)


# %% multi_head/split_heads | wrong | reshape alone, which chops up the words
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    if x.shape[-1] % heads:
        raise ValueError("heads")
    return x.reshape(*x.shape[:-2], heads, x.shape[-2], x.shape[-1] // heads)


# %% multi_head/split_heads | wrong | the heads take every h-th column
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    if x.shape[-1] % heads:
        raise ValueError("heads")
    return rearrange(x, "... n (d h) -> ... h n d", h=heads)


# %% multi_head/split_heads | wrong | the head axis stays behind the words
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    if x.shape[-1] % heads:
        raise ValueError("heads")
    return rearrange(x, "... n (h d) -> ... n h d", h=heads)


# %% multi_head/split_heads | wrong | the argument is taken for the size of a head
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    if x.shape[-1] % heads:
        raise ValueError("heads")
    return rearrange(x, "... n (h d) -> ... h n d", d=heads)


# %% multi_head/split_heads | wrong | stacks the heads as the very first axis, before the batch
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    if x.shape[-1] % heads:
        raise ValueError("heads")
    return torch.stack(x.chunk(heads, dim=-1))


# %% multi_head/split_heads | wrong | what is left over is dropped instead of refused
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    # TODO: cut the columns into heads, and make each head a batch dimension
    d = x.shape[-1] // heads
    parts = [x[..., h * d : (h + 1) * d] for h in range(heads)]
    return torch.stack(parts, dim=-3)


# %% multi_head/split_heads | wrong | einops raises its own error, which is no ValueError
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    # TODO: cut the columns into heads, and make each head a batch dimension
    return rearrange(x, "... n (h d) -> ... h n d", h=heads)


# %% multi_head/split_heads | wrong | words and columns end up exchanged
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    if x.shape[-1] % heads:
        raise ValueError("heads")
    return rearrange(x, "... n (h d) -> ... h d n", h=heads)


# %% multi_head/split_heads | wrong | a batch axis is required
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    if x.shape[-1] % heads:
        raise ValueError("heads")
    b, n, d = x.shape
    return x.view(b, n, heads, d // heads).transpose(1, 2)


# %% multi_head/merge_heads | right | concatenates the heads one by one
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    return torch.cat(torch.unbind(x, dim=-3), dim=-1)


# %% multi_head/merge_heads | wrong | reshape without moving the heads back
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    # TODO: move the heads beside the columns, and join the two
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


# %% multi_head/merge_heads | wrong | the columns of the heads interleave
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    return rearrange(x, "... h n d -> ... n (d h)")


# %% multi_head/merge_heads | wrong | averages over the heads
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    return x.mean(dim=-3)


# %% multi_head/merge_heads | wrong | adds up the heads
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    # TODO: move the heads beside the columns, and join the two
    return x.sum(-3)


# %% multi_head/merge_heads | wrong | moves the heads but does not join them
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    # TODO: move the heads beside the columns, and join the two
    return x.transpose(-3, -2)


# %% multi_head/merge_heads | wrong | lays the heads below each other
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    return rearrange(x, "... h n d -> ... (h n) d")


# %% multi_head/merge_heads | wrong | view after transpose raises for want of contiguous memory
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    # TODO: move the heads beside the columns, and join the two
    x = x.transpose(-3, -2)
    return x.view(*x.shape[:-2], x.shape[-2] * x.shape[-1])


# %% multi_head/merge_heads | wrong | heads expected on the second axis, so a sentence without batch fails
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    b, h, n, d = x.shape
    return x.transpose(1, 2).reshape(b, n, h * d)


# %% multi_head/merge_heads | wrong | the heads come in reverse order
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    """Lay the heads' parts of each word side by side again: the inverse of `split_heads`.

    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    return torch.cat(list(x.flip(-3).unbind(-3)), dim=-1)


# %% multi_head/attention | right | a comprehension over heads with slices of the projected words
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        d = q.shape[-1] // self.heads
        cut = [slice(h * d, h * d + d) for h in range(self.heads)]
        q, k, v = (torch.stack([part[..., s] for s in cut], dim=-3) for part in (q, k, v))
        found = self.rule(q, k, v, mask)
        return self.w_o(torch.cat(found.unbind(-3), dim=-1))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | the mask gets no head axis
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        if mask is not None:
            self.refuse_misfit(mask, query, key)
        q, k, v = (split_heads(w(x), self.heads) for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | forgets the output matrix
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        # TODO: project the words once for all heads, and give each head its part
        # TODO: hold the same mask before every head
        # TODO: attend in all heads at once, by the layer's rule
        # TODO: join the heads, and let the output matrix mix what they found
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        return merge_heads(self.rule(q, k, v, mask))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | one large head: never splits
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        if mask is not None:
            self.refuse_misfit(mask, query, key)
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        return self.w_o(self.rule(q, k, v, mask))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | keys and values are made of the query: self-attention only
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        q, k, v = (split_heads(w(query), self.heads) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | values are made of the key
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        # TODO: project the words once for all heads, and give each head its part
        # TODO: hold the same mask before every head
        # TODO: attend in all heads at once, by the layer's rule
        # TODO: join the heads, and let the output matrix mix what they found
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(key), self.heads)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | calls scaled_dot_product_attention whatever the rule is
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        return self.w_o(merge_heads(scaled_dot_product_attention(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | a mask that does not fit, or is not boolean, is not refused
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        # TODO: project the words once for all heads, and give each head its part
        # TODO: hold the same mask before every head
        # TODO: attend in all heads at once, by the layer's rule
        # TODO: join the heads, and let the output matrix mix what they found
        if mask is not None:
            mask = mask.unsqueeze(-3).bool()
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | splits before projecting, by the weights' transposed blocks
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        q = split_heads(query @ self.w_q.weight + self.w_q.bias, self.heads)
        k = split_heads(key @ self.w_k.weight + self.w_k.bias, self.heads)
        v = split_heads(value @ self.w_v.weight + self.w_v.bias, self.heads)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | joins the heads by reshape without moving them back
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        return self.w_o(self.rule(q, k, v, mask).reshape(query.shape))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/attention | wrong | the head axis of the mask stands in front of the batch
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        # TODO: project the words once for all heads, and give each head its part
        # TODO: hold the same mask before every head
        # TODO: attend in all heads at once, by the layer's rule
        # TODO: join the heads, and let the output matrix mix what they found
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(0)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )


# %% multi_head/score_variance | right | adds up the variance of each product
import math


def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    share = 1.0
    if scaled:
        share /= d_k
    return math.fsum(share for _ in range(d_k))


# %% multi_head/score_variance | wrong | the root: that is the standard deviation
def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    # TODO: find the variance of one product, and add up those of all
    # TODO: when scaled, let it shrink as variances do when their variable is divided
    return 1.0 if scaled else float(d_k) ** 0.5


# %% multi_head/score_variance | wrong | divides the variance by the root only once
def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    return d_k / d_k**0.5 if scaled else float(d_k)


# %% multi_head/score_variance | wrong | scaled and not scaled are exchanged
def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    return float(d_k) if scaled else 1.0


# %% multi_head/score_variance | wrong | sampled, not exact
def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    q, k = torch.randn(2, 10000, d_k)
    scores = (q * k).sum(-1)
    if scaled:
        scores = scores / d_k**0.5
    return scores.var().item()


# %% multi_head/score_variance | wrong | two for each product, since q and k each vary by one
def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    return 2.0 if scaled else 2.0 * d_k


# %% multi_head/score_variance | wrong | ignores `scaled`
def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    return float(d_k)


# %% multi_head/score_variance | wrong | one over d_k where scaled
def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    # TODO: find the variance of one product, and add up those of all
    # TODO: when scaled, let it shrink as variances do when their variable is divided
    return 1 / d_k if scaled else float(d_k)


# %% multi_head/score_variance | wrong | the square of d_k
def score_variance(d_k: int, scaled: bool) -> float:
    """Return the variance of q . k, or where `scaled` that of q . k / sqrt(d_k): the exact one.

    The d_k entries of q and of k are independent, each of mean 0 and variance 1. Source: Vaswani
    et al. 2017, footnote 4.
    """
    # TODO: find the variance of one product, and add up those of all
    # TODO: when scaled, let it shrink as variances do when their variable is divided
    return float(d_k) if scaled else float(d_k**2)


# %% multi_head/parameters | right | builds the shapes and counts them
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    shapes = heads * [(d_model, d_k), (d_model, d_k), (d_model, d_v)] + [(heads * d_v, d_model)]
    return sum(rows * columns + (columns if bias else 0) for rows, columns in shapes)


# %% multi_head/parameters | wrong | forgets the output matrix
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    columns = heads * (2 * d_k + d_v)
    return d_model * columns + (columns if bias else 0)


# %% multi_head/parameters | wrong | counts one head's matrices only
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    # TODO: count the columns of the queries, keys and values of all heads
    # TODO: multiply by the rows, and add the output matrix
    # TODO: add the biases of all four
    n = d_model * (2 * d_k + d_v) + heads * d_v * d_model
    return n + (2 * d_k + d_v + d_model if bias else 0)


# %% multi_head/parameters | wrong | takes d_k for d_v
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    # TODO: count the columns of the queries, keys and values of all heads
    # TODO: multiply by the rows, and add the output matrix
    # TODO: add the biases of all four
    n = 4 * d_model * heads * d_k
    return n + bias * (3 * heads * d_k + d_model)


# %% multi_head/parameters | wrong | always 4 d_model^2
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    n = 4 * d_model**2
    return n + 4 * d_model if bias else n


# %% multi_head/parameters | wrong | the output matrix has no bias
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    n = d_model * heads * (2 * d_k + d_v) + heads * d_v * d_model
    if bias:
        n += heads * (2 * d_k + d_v)
    return n


# %% multi_head/parameters | wrong | ignores `bias`
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    return heads * d_model * (2 * d_k + d_v) + heads * d_v * d_model


# %% multi_head/parameters | wrong | one bias for each matrix
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    # TODO: count the columns of the queries, keys and values of all heads
    # TODO: multiply by the rows, and add the output matrix
    # TODO: add the biases of all four
    n = heads * d_model * (2 * d_k + d_v) + heads * d_v * d_model
    return n + (3 * heads + 1 if bias else 0)


# %% multi_head/parameters | wrong | an output matrix for each head with d_model rows
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    # TODO: count the columns of the queries, keys and values of all heads
    # TODO: multiply by the rows, and add the output matrix
    # TODO: add the biases of all four
    n = heads * (d_model * (2 * d_k + d_v) + d_model * d_model)
    if bias:
        n += heads * (2 * d_k + d_v) + d_model
    return n


# %% multi_head/parameters | wrong | precedence of the conditional: without bias the count is 0
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    """Count the numbers that multi-head attention learns; how many words there are is not asked.

    Each head has W_Q and W_K of shape (d_model, d_k), and W_V of shape (d_model, d_v). All share
    one W_O of shape (h d_v, d_model). With `bias`, one more number for each column of each matrix.
    Source: Vaswani et al. 2017, section 3.2.2, who have no biases.
    """
    n = heads * d_model * (2 * d_k + d_v)
    m = heads * d_v * d_model
    return n + m + heads * (2 * d_k + d_v) + d_model if bias else 0


# %% multi_head/split_heads | wrong | numpy's split along a new axis, without gradient
import numpy as np


def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    """Cut each word into equal parts, one for each head: the first d_k columns are head 1's.

    Source: Vaswani et al. 2017, section 3.2.2, whose W_i are the columns of one matrix. Raises
    ValueError where `heads` does not divide the size of a word.

    >>> split_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), heads=2).tolist()
    [[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]
    """
    if x.shape[-1] % heads:
        raise ValueError("heads")
    return torch.from_numpy(np.stack(np.split(x.detach().numpy(), heads, axis=-1), axis=-3))


# %% multi_head/attention | wrong | a loop that hands all heads the first head's columns
class MultiHeadAttention(nn.Module):
    """Attend in several heads at once, and mix what they found: Concat(head_1, ..., head_h) W_O.

    head_i = Attention(Q W_Qi, K W_Ki, V W_Vi). The heads' matrices stand side by side in w_q, w_k
    and w_v, with biases as in torch's `nn.MultiheadAttention`, and d_k = d_v = d_model / heads.
    `rule(q, k, v, mask)` is how each head attends. Source: Vaswani et al. 2017, section 3.2.2.
    Raises ValueError where `heads` does not divide d_model.
    """

    def __init__(
        self, d_model: int, heads: int, rule: Callable[..., Tensor] = scaled_dot_product_attention
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(
                f"each head takes an equal part of a word, but {heads} heads do not divide "
                f"d_model = {d_model}: choose a number of heads that does"
            )
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Float[Tensor, "*batch query d_model"],
        key: Float[Tensor, "*batch key d_model"],
        value: Float[Tensor, "*batch key d_model"],
        mask: Bool[Tensor, "*#batch #query #key"] | None = None,
    ) -> Float[Tensor, "*batch query d_model"]:
        """Let each query look at the keys in every head, where `mask` is True.

        The mask has no head axis: (query, key), or (batch, query, key) where query may be 1.
        Raises ValueError for a mask that is not boolean, or does not fit these queries and keys.
        """
        # TODO: project the words once for all heads, and give each head its part
        # TODO: hold the same mask before every head
        # TODO: attend in all heads at once, by the layer's rule
        # TODO: join the heads, and let the output matrix mix what they found
        if mask is not None:
            self.refuse_misfit(mask, query, key)
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        d = q.shape[-1] // self.heads
        found = [self.rule(q[..., :d], k[..., :d], v[..., :d], mask) for head in range(self.heads)]
        return self.w_o(torch.cat(found, dim=-1))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or cannot be held before each head."""
        if mask.dtype != torch.bool:
            raise ValueError(
                f"a mask must be boolean, True where a query may look, not {mask.dtype}: does it "
                "hold 0 and 1, or numbers to be added to the scores?"
            )
        scores = (*query.shape[:-1], key.shape[-2])
        sizes = zip(mask.shape[::-1], scores[::-1], strict=False)
        if not 2 <= mask.dim() <= len(scores) or any(size not in (1, full) for size, full in sizes):
            raise ValueError(
                f"a mask must fit (..., query, key) = {scores}, not have the shape "
                f"{tuple(mask.shape)}: does it lack the query axis, as (batch, key) does, or have "
                "a head axis already?"
            )
