# %% multi_head/split_heads | wrong | a plain view mixes words and columns
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    *batch, n, d_model = x.shape
    if d_model % heads:
        raise ValueError("heads do not divide d_model")
    return x.reshape(*batch, heads, n, d_model // heads)

# %% multi_head/split_heads | wrong | every h-th column goes to one head, instead of consecutive ones
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    if x.shape[-1] % heads:
        raise ValueError("heads do not divide d_model")
    return rearrange(x, "... n (d_k h) -> ... h n d_k", h=heads)

# %% multi_head/split_heads | wrong | the heads stay behind the words: (n, heads, d_k)
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    *batch, n, d_model = x.shape
    if d_model % heads:
        raise ValueError("heads do not divide d_model")
    return x.reshape(*batch, n, heads, d_model // heads)

# %% multi_head/split_heads | wrong | `heads` is taken for the size of a head
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    if x.shape[-1] % heads:
        raise ValueError("heads do not divide d_model")
    return rearrange(x, "... n (h d_k) -> ... h n d_k", d_k=heads)

# %% multi_head/split_heads | wrong | torch.stack puts the heads in front of the batch
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    if x.shape[-1] % heads:
        raise ValueError("heads do not divide d_model")
    return torch.stack(x.chunk(heads, dim=-1))

# %% multi_head/split_heads | wrong | columns that are left over are dropped, not refused
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    d_k = x.shape[-1] // heads
    return rearrange(x[..., : heads * d_k], "... n (h d_k) -> ... h n d_k", h=heads)

# %% multi_head/split_heads | wrong | exactly one batch axis is expected
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    batch, n, d_model = x.shape
    if d_model % heads:
        raise ValueError("heads do not divide d_model")
    return x.view(batch, n, heads, d_model // heads).transpose(1, 2)

# %% multi_head/split_heads | right | slices of columns, stacked where the heads belong
def split_heads(
    x: Float[Tensor, "... n d_model"], heads: int
) -> Float[Tensor, "... {heads} n d_k"]:
    width, rest = divmod(x.shape[-1], heads)
    if rest:
        raise ValueError(f"{heads} heads cannot share {x.shape[-1]} columns equally")
    parts = [x[..., h * width : (h + 1) * width] for h in range(heads)]
    return torch.stack(parts, dim=-3)

# %% multi_head/merge_heads | wrong | a view without moving the heads first
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    *batch, heads, n, d_k = x.shape
    return x.reshape(*batch, n, heads * d_k)

# %% multi_head/merge_heads | wrong | heads vary fastest: the columns are interleaved
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    return rearrange(x, "... h n d_k -> ... n (d_k h)")

# %% multi_head/merge_heads | wrong | the heads are averaged
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    return x.mean(dim=-3)

# %% multi_head/merge_heads | wrong | the heads are laid after each other as more words
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    return rearrange(x, "... h n d_k -> ... (h n) d_k")

# %% multi_head/merge_heads | wrong | axes counted from the front: right with one batch axis only
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    x = x.transpose(1, 2)
    return x.flatten(-2)

# %% multi_head/merge_heads | wrong | view on a transposed tensor, which torch refuses
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    x = x.transpose(-3, -2)
    return x.view(*x.shape[:-2], x.shape[-2] * x.shape[-1])

# %% multi_head/merge_heads | wrong | the loop counts from 1 and misses a head
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    return torch.cat([x[..., h, :, :] for h in range(1, x.shape[-3])], dim=-1)

# %% multi_head/merge_heads | right | moveaxis and flatten
def merge_heads(x: Float[Tensor, "... heads n d_k"]) -> Float[Tensor, "... n d_model"]:
    return torch.moveaxis(x, -3, -2).flatten(start_dim=-2)

# %% multi_head/attention | wrong | the mask is not looked at: an additive one passes without a word
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.multi_head import merge_heads, split_heads


class MultiHeadAttention(nn.Module):

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
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
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

# %% multi_head/attention | wrong | the mask gets no head axis, so the batch is held against the heads
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.multi_head import merge_heads, split_heads


class MultiHeadAttention(nn.Module):

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
        if mask is not None:
            self.refuse_misfit(mask, query, key)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
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

# %% multi_head/attention | wrong | the head axis is put at place 1, where a mask of (query, key) has its keys
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.multi_head import merge_heads, split_heads


class MultiHeadAttention(nn.Module):

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
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(1)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
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

# %% multi_head/attention | wrong | the values are taken from the keys
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.multi_head import merge_heads, split_heads


class MultiHeadAttention(nn.Module):

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
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(key), self.heads)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
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

# %% multi_head/attention | wrong | the heads attend by scaled dot product, whatever rule the layer was given
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.multi_head import merge_heads, split_heads


class MultiHeadAttention(nn.Module):

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
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_k(key), self.heads)
        v = split_heads(self.w_v(value), self.heads)
        return self.w_o(merge_heads(scaled_dot_product_attention(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
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

# %% multi_head/attention | wrong | the heads are cut by a view, which mixes words
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.multi_head import merge_heads


class MultiHeadAttention(nn.Module):

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
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        parts = []
        for words, matrix in ((query, self.w_q), (key, self.w_k), (value, self.w_v)):
            *batch, n, d = words.shape
            parts.append(matrix(words).reshape(*batch, self.heads, n, d // self.heads))
        return self.w_o(merge_heads(self.rule(*parts, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
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

# %% multi_head/attention | wrong | key and value change places in the projections
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.multi_head import merge_heads, split_heads


class MultiHeadAttention(nn.Module):

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
        if mask is not None:
            self.refuse_misfit(mask, query, key)
            mask = mask.unsqueeze(-3)
        q = split_heads(self.w_q(query), self.heads)
        k = split_heads(self.w_v(key), self.heads)
        v = split_heads(self.w_k(value), self.heads)
        return self.w_o(merge_heads(self.rule(q, k, v, mask)))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
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

# %% multi_head/attention | right | one head after another, each with its rows of the weights
from course_lib.self_attention import scaled_dot_product_attention


class MultiHeadAttention(nn.Module):

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
        if mask is not None:
            self.refuse_misfit(mask, query, key)
        found = []
        for q, k, v in zip(
            self.w_q(query).chunk(self.heads, dim=-1),
            self.w_k(key).chunk(self.heads, dim=-1),
            self.w_v(value).chunk(self.heads, dim=-1),
        ):
            held = None if mask is None else mask.unsqueeze(-3)
            one = self.rule(q.unsqueeze(-3), k.unsqueeze(-3), v.unsqueeze(-3), held)
            found.append(one.squeeze(-3))
        return self.w_o(torch.cat(found, dim=-1))

    @staticmethod
    def refuse_misfit(mask: Tensor, query: Tensor, key: Tensor) -> None:
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

# %% multi_head/score_variance | wrong | the standard deviation, not the variance
def score_variance(d_k: int, scaled: bool) -> float:
    return float(d_k) ** 0.5 if not scaled else 1.0

# %% multi_head/score_variance | wrong | divided by the root only: variances shrink by its square
def score_variance(d_k: int, scaled: bool) -> float:
    return d_k / d_k**0.5 if scaled else float(d_k)

# %% multi_head/score_variance | wrong | d_k squared pairs are added up
def score_variance(d_k: int, scaled: bool) -> float:
    return float(d_k) if scaled else float(d_k**2)

# %% multi_head/score_variance | wrong | measured on random vectors, so it is not exact
def score_variance(d_k: int, scaled: bool) -> float:
    q, k = torch.randn(2, 100_000, d_k)
    scores = (q * k).sum(-1)
    if scaled:
        scores = scores / d_k**0.5
    return scores.var().item()

# %% multi_head/score_variance | wrong | the variance of a product is taken to be two: the variances are added
def score_variance(d_k: int, scaled: bool) -> float:
    return 2.0 if scaled else 2.0 * d_k

# %% multi_head/score_variance | wrong | scaled and not scaled are exchanged
def score_variance(d_k: int, scaled: bool) -> float:
    return float(d_k) if scaled else 1.0

# %% multi_head/score_variance | wrong | scaled divides by d_k twice
def score_variance(d_k: int, scaled: bool) -> float:
    variance = float(d_k)
    if scaled:
        variance = variance / d_k**2
    return variance

# %% multi_head/score_variance | right | the sum of d_k variances of one, times the square of the factor
def score_variance(d_k: int, scaled: bool) -> float:
    factor = d_k**-1 if scaled else 1
    return float(round(sum(1.0 for _ in range(d_k)) * factor, 12))

# %% multi_head/parameters | wrong | one head only: the matrices of the others are not counted
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    count = d_model * (2 * d_k + d_v) + heads * d_v * d_model
    if bias:
        count += heads * (2 * d_k + d_v) + d_model
    return count

# %% multi_head/parameters | wrong | each head has its own W_O of the size of all
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    count = heads * (d_model * (2 * d_k + d_v) + heads * d_v * d_model)
    if bias:
        count += heads * (2 * d_k + d_v) + d_model
    return count

# %% multi_head/parameters | wrong | four times d_model squared, which is right for d_k = d_v = d_model / heads only
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    return 4 * d_model**2 + (4 * d_model if bias else 0)

# %% multi_head/parameters | wrong | the output matrix has no bias
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    count = heads * d_model * (2 * d_k + d_v) + heads * d_v * d_model
    if bias:
        count += heads * (2 * d_k + d_v)
    return count

# %% multi_head/parameters | wrong | the output matrix is forgotten
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    count = heads * d_model * (2 * d_k + d_v)
    if bias:
        count += heads * (2 * d_k + d_v) + d_model
    return count

# %% multi_head/parameters | wrong | values are counted with d_k columns, and keys with d_v
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    count = heads * d_model * (d_k + 2 * d_v) + heads * d_v * d_model
    if bias:
        count += heads * (d_k + 2 * d_v) + d_model
    return count

# %% multi_head/parameters | wrong | a bias for each row of each matrix instead of each column
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    count = heads * d_model * (2 * d_k + d_v) + heads * d_v * d_model
    if bias:
        count += 3 * d_model + heads * d_v
    return count

# %% multi_head/parameters | right | linear layers without memory, and their numbers counted by torch
def parameter_count(d_model: int, heads: int, d_k: int, d_v: int, bias: bool = False) -> int:
    with torch.device("meta"):
        parts = [nn.Linear(d_model, size, bias=bias) for size in [d_k, d_k, d_v] * heads]
        parts.append(nn.Linear(heads * d_v, d_model, bias=bias))
    return sum(p.numel() for p in nn.ModuleList(parts).parameters())
