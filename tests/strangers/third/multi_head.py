# %% multi_head/attention | wrong | the output matrix is left out
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads, rule=scaled_dot_product_attention):
        super().__init__()
        if d_model % heads:
            raise ValueError("heads do not divide d_model")
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        return merge_heads(self.rule(q, k, v, mask))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or does not fit every head."""
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

# %% multi_head/attention | wrong | the values are made from the keys' tokens
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads, rule=scaled_dot_product_attention):
        super().__init__()
        if d_model % heads:
            raise ValueError("heads do not divide d_model")
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(key), self.heads)
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or does not fit every head."""
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

# %% multi_head/attention | wrong | the layer's rule is ignored: scaled dot products always
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads, rule=scaled_dot_product_attention):
        super().__init__()
        if d_model % heads:
            raise ValueError("heads do not divide d_model")
        self.heads, self.rule = heads, rule
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        return self.w_o(merge_heads(scaled_dot_product_attention(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise ValueError for a mask that is not boolean, or does not fit every head."""
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
