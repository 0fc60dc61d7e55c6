# %% positions/sinusoidal | wrong | sines in the left half and cosines in the right one
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    if d_model % 2:
        raise ValueError("d_model must be even")
    i = torch.arange(n, dtype=torch.get_default_dtype())[:, None]
    speeds = 10000 ** (-torch.arange(0, d_model, 2, dtype=i.dtype) / d_model)
    return torch.cat([torch.sin(i * speeds), torch.cos(i * speeds)], dim=-1)

# %% positions/sinusoidal | wrong | the exponents count from 1, as in the slides of L1 to L4
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    if d_model % 2:
        raise ValueError("d_model must be even")
    i = torch.arange(n, dtype=torch.get_default_dtype())[:, None]
    speeds = 10000 ** (-torch.arange(2, d_model + 1, 2, dtype=i.dtype) / d_model)
    return torch.stack([torch.sin(i * speeds), torch.cos(i * speeds)], dim=-1).reshape(n, d_model)

# %% positions/sinusoidal | wrong | each column has its own speed: the exponent is the column, not the pair
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    if d_model % 2:
        raise ValueError("d_model must be even")
    i = torch.arange(n, dtype=torch.get_default_dtype())[:, None]
    angles = i * 10000 ** (-torch.arange(d_model, dtype=i.dtype) / d_model)
    table = torch.empty(n, d_model)
    table[:, 0::2] = angles[:, 0::2].sin()
    table[:, 1::2] = angles[:, 1::2].cos()
    return table

# %% positions/sinusoidal | wrong | the exponent is c / d_model, without the 2
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    if d_model % 2:
        raise ValueError("d_model must be even")
    i = torch.arange(n, dtype=torch.get_default_dtype())[:, None]
    speeds = 10000 ** (-torch.arange(d_model // 2, dtype=i.dtype) / d_model)
    return torch.stack([torch.sin(i * speeds), torch.cos(i * speeds)], dim=-1).flatten(1)

# %% positions/sinusoidal | wrong | an odd d_model is cut instead of refused
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    i = torch.arange(n, dtype=torch.get_default_dtype())[:, None]
    angles = i * 10000 ** (-torch.arange(0, d_model, 2, dtype=i.dtype) / d_model)
    table = torch.zeros(n, d_model)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)[:, : d_model // 2]
    return table

# %% positions/sinusoidal | wrong | always float32, whatever torch's default is
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    if d_model % 2:
        raise ValueError("d_model must be even")
    i = torch.arange(n, dtype=torch.float32)[:, None]
    speeds = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float32) / d_model)
    return torch.stack([torch.sin(i * speeds), torch.cos(i * speeds)], dim=-1).flatten(1)

# %% positions/sinusoidal | wrong | cosines first
def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    if d_model % 2:
        raise ValueError("odd")
    i = torch.arange(n, dtype=torch.get_default_dtype()).unsqueeze(1)
    a = i / 10000 ** (torch.arange(0, d_model, 2, dtype=i.dtype) / d_model)
    return rearrange([a.cos(), a.sin()], "two n c -> n (c two)")

# %% positions/sinusoidal | right | plain numbers by Python's math, one at a time
import math


def sinusoidal(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    if d_model % 2:
        raise ValueError(f"sines and cosines come in pairs, so d_model must be even, not {d_model}")
    table = torch.zeros(n, d_model)
    for i in range(n):
        for column in range(d_model):
            angle = i / 10000 ** ((column - column % 2) / d_model)
            table[i, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table

# %% positions/shift_matrix | wrong | the transpose: columns vectors are shifted, M p(i)
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    if d_model % 2:
        raise ValueError("d_model must be even")
    b = offset * 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.get_default_dtype()) / d_model)
    blocks = [torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in b]
    return torch.block_diag(*blocks)

# %% positions/shift_matrix | wrong | the exponents count from 1
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    if d_model % 2:
        raise ValueError("d_model must be even")
    b = offset * 10000 ** (-torch.arange(2, d_model + 1, 2, dtype=torch.get_default_dtype()) / d_model)
    return torch.block_diag(*[torch.tensor([[x.cos(), -x.sin()], [x.sin(), x.cos()]]) for x in b])

# %% positions/shift_matrix | wrong | the same angle in every block
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    if d_model % 2:
        raise ValueError("d_model must be even")
    x = torch.tensor(float(offset))
    block = torch.tensor([[x.cos(), -x.sin()], [x.sin(), x.cos()]])
    return torch.block_diag(*[block] * (d_model // 2))

# %% positions/shift_matrix | wrong | sines and cosines in halves instead of pairs
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    if d_model % 2:
        raise ValueError("d_model must be even")
    b = offset * 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.get_default_dtype()) / d_model)
    s, c = torch.diag(b.sin()), torch.diag(b.cos())
    return torch.cat([torch.cat([c, -s], dim=1), torch.cat([s, c], dim=1)])

# %% positions/shift_matrix | wrong | an odd d_model gives the next even size
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    b = offset * 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.get_default_dtype()) / d_model)
    return torch.block_diag(*[torch.tensor([[x.cos(), -x.sin()], [x.sin(), x.cos()]]) for x in b])

# %% positions/shift_matrix | wrong | no minus sign: the block is a reflection, not a turn
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    if d_model % 2:
        raise ValueError("odd d_model")
    m = torch.zeros(d_model, d_model)
    for c in range(0, d_model, 2):
        b = torch.tensor(offset / 10000 ** (c / d_model), dtype=m.dtype)
        m[c, c] = m[c + 1, c + 1] = b.cos()
        m[c, c + 1] = m[c + 1, c] = b.sin()
    return m

# %% positions/shift_matrix | wrong | moves by the absolute value of the offset: never back
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    if d_model % 2:
        raise ValueError("odd d_model")
    m = torch.zeros(d_model, d_model)
    for c in range(0, d_model, 2):
        b = torch.tensor(abs(offset) / 10000 ** (c / d_model), dtype=m.dtype)
        m[c, c], m[c, c + 1] = b.cos(), -b.sin()
        m[c + 1, c], m[c + 1, c + 1] = b.sin(), b.cos()
    return m

# %% positions/shift_matrix | right | the matrix exponential of offset times a generator of turns
def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    if d_model % 2:
        raise ValueError(f"d_model must be even, not {d_model}")
    kind = torch.get_default_dtype()
    speeds = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    return torch.matrix_exp(offset * torch.kron(torch.diag(speeds), turn)).to(kind)

# %% positions/learned | wrong | long sentences are not refused: torch fails with an error of its own
class LearnedPositions(nn.Module):

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        return x + self.table[: x.shape[-2]]

# %% positions/learned | wrong | a sentence as long as the table is refused too
class LearnedPositions(nn.Module):

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        n = x.shape[-2]
        if n >= len(self.table):
            raise ValueError(f"{n} words are too many")
        return x + self.table[:n]

# %% positions/learned | wrong | n is read off the first axis, which is the batch
class LearnedPositions(nn.Module):

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        n = x.shape[0]
        if n > self.table.shape[0]:
            raise ValueError("too long")
        return x + self.table[:n]

# %% positions/learned | wrong | long sentences are cut to the table's length
class LearnedPositions(nn.Module):

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        n = min(x.shape[-2], self.table.shape[0])
        return x[..., :n, :] + self.table[:n]

# %% positions/learned | wrong | places past the table wrap around to its beginning
class LearnedPositions(nn.Module):

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        n, m = x.shape[-2], self.table.shape[0]
        return x + self.table[torch.arange(n, device=x.device) % m]

# %% positions/learned | wrong | the last n vectors of the table
class LearnedPositions(nn.Module):

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        n = x.shape[-2]
        if n > self.table.shape[0]:
            raise ValueError("too long")
        return x + self.table[-n:]

# %% positions/learned | wrong | the words are changed in place
class LearnedPositions(nn.Module):

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        n = x.shape[-2]
        if n > self.table.shape[0]:
            raise ValueError("too long")
        x += self.table[:n]
        return x

# %% positions/learned | right | F.embedding looks the places up, and an assert is turned into the error
class LearnedPositions(nn.Module):

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_length, d_model) / d_model**0.5)

    def forward(self, x: Float[Tensor, "... n d_model"]) -> Float[Tensor, "... n d_model"]:
        length = x.size(-2)
        try:
            assert length <= self.table.size(0)
        except AssertionError:
            raise ValueError(f"{length} words, but vectors for {self.table.size(0)} places only") from None
        places = torch.arange(length, device=self.table.device)
        return nn.functional.embedding(places, self.table).add(x)

# %% positions/relative_index | wrong | i - j: left and right are exchanged
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return (i - j).clamp(-max_distance, max_distance) + max_distance

# %% positions/relative_index | wrong | not counted from 0: the distances themselves are returned
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return (j - i).clamp(-max_distance, max_distance)

# %% positions/relative_index | wrong | the last query stands at the last key
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    i, j = torch.arange(n_q)[:, None] + n_k - n_q, torch.arange(n_k)
    return (j - i).clamp(-max_distance, max_distance) + max_distance

# %% positions/relative_index | wrong | shifts first and clips then, to m
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return (j - i + max_distance).clamp(0, max_distance)

# %% positions/relative_index | wrong | far is not treated alike on the right: only the left is clipped
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return (j - i).clamp(min=-max_distance) + max_distance

# %% positions/relative_index | wrong | a square of the keys' size: there are as many queries as keys in the mind
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    place = torch.arange(max(n_q, n_k))
    index = place[None, :] - place[:, None]
    index[index > max_distance] = max_distance
    index[index < -max_distance] = -max_distance
    return index + max_distance

# %% positions/relative_index | wrong | floats, which cannot look up a row
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    i, j = torch.arange(n_q, dtype=torch.float32)[:, None], torch.arange(n_k)
    return (j - i).clip(-max_distance, max_distance) + max_distance

# %% positions/relative_index | right | a long ramp of clipped distances, read at each row from one place earlier
def relative_index(n_q: int, n_k: int, max_distance: int) -> Int[Tensor, "query key"]:
    ramp = torch.arange(1 - n_q, n_k).clip(-max_distance, max_distance) + max_distance
    if n_q == 0 or n_k == 0:
        return ramp.new_zeros(n_q, n_k)
    return ramp.unfold(0, n_k, 1).flip(0)

# %% positions/relative_attention | wrong | the distances' scores are not divided by the root
from course_lib.attention import softmax
from course_lib.positions import relative_index


def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    rows = key_table.shape[0]
    if rows % 2 == 0 or rows != value_table.shape[0]:
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], rows // 2).to(q.device)
    a, b = key_table[index], value_table[index]
    scores = q @ k.mT / q.shape[-1] ** 0.5 + einsum(q, a, "... i d, i j d -> ... i j")
    weights = softmax(scores, mask)
    return weights @ v + einsum(weights, b, "... i j, i j d -> ... i d")

# %% positions/relative_attention | wrong | the values get no vectors of their distances
from course_lib.attention import softmax
from course_lib.positions import relative_index


def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    rows = key_table.shape[0]
    if rows % 2 == 0 or rows != value_table.shape[0]:
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], rows // 2).to(q.device)
    scores = q @ k.mT + einsum(q, key_table[index], "... i d, i j d -> ... i j")
    return softmax(scores / q.shape[-1] ** 0.5, mask) @ v

# %% positions/relative_attention | wrong | the same table for keys and values: value_table is looked up for the keys
from course_lib.attention import softmax
from course_lib.positions import relative_index


def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    rows = key_table.shape[0]
    if rows % 2 == 0 or rows != value_table.shape[0]:
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], rows // 2).to(q.device)
    a, b = key_table[index], key_table[index]
    scores = (q @ k.mT + einsum(q, a, "... i d, i j d -> ... i j")) / q.shape[-1] ** 0.5
    weights = softmax(scores, mask)
    return weights @ v + einsum(weights, b, "... i j, i j d -> ... i d")

# %% positions/relative_attention | wrong | the index is i - j: left is taken for right
from course_lib.attention import softmax


def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    rows = key_table.shape[0]
    if rows % 2 == 0 or rows != value_table.shape[0]:
        raise ValueError("tables")
    m = rows // 2
    i = torch.arange(q.shape[-2], device=q.device)[:, None]
    index = (i - torch.arange(k.shape[-2], device=q.device)).clamp(-m, m) + m
    a, b = key_table[index], value_table[index]
    scores = (q @ k.mT + einsum(q, a, "... i d, i j d -> ... i j")) / q.shape[-1] ** 0.5
    weights = softmax(scores, mask)
    return weights @ v + einsum(weights, b, "... i j, i j d -> ... i d")

# %% positions/relative_attention | wrong | tables of even or unequal length are not refused
from course_lib.attention import softmax
from course_lib.positions import relative_index


def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    index = relative_index(q.shape[-2], k.shape[-2], key_table.shape[0] // 2).to(q.device)
    index = index.clamp(max=min(len(key_table), len(value_table)) - 1)
    a, b = key_table[index], value_table[index]
    scores = (q @ k.mT + einsum(q, a, "... i d, i j d -> ... i j")) / q.shape[-1] ** 0.5
    weights = softmax(scores, mask)
    return weights @ v + einsum(weights, b, "... i j, i j d -> ... i d")

# %% positions/relative_attention | wrong | Transformer-XL's guess: key k_j, not query q_i, meets the distance's vector
from course_lib.attention import softmax
from course_lib.positions import relative_index


def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    rows = key_table.shape[0]
    if rows % 2 == 0 or rows != value_table.shape[0]:
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], rows // 2).to(q.device)
    a, b = key_table[index], value_table[index]
    scores = (q @ k.mT + einsum(k, a, "... j d, i j d -> ... i j")) / q.shape[-1] ** 0.5
    weights = softmax(scores, mask)
    return weights @ v + einsum(weights, b, "... i j, i j d -> ... i d")

# %% positions/relative_attention | wrong | the distances are added to the values without weights
from course_lib.attention import softmax
from course_lib.positions import relative_index


def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    rows = key_table.shape[0]
    if rows % 2 == 0 or rows != value_table.shape[0]:
        raise ValueError("tables")
    index = relative_index(q.shape[-2], k.shape[-2], rows // 2).to(q.device)
    a, b = key_table[index], value_table[index]
    scores = (q @ k.mT + einsum(q, a, "... i d, i j d -> ... i j")) / q.shape[-1] ** 0.5
    return softmax(scores, mask) @ v + b.mean(dim=1)

# %% positions/relative_attention | right | one query after another, with the keys and values that it sees at their distances
from course_lib.attention import softmax


def relative_attention(
    q: Float[Tensor, "*batch query d_k"],
    k: Float[Tensor, "*batch key d_k"],
    v: Float[Tensor, "*batch key d_v"],
    key_table: Float[Tensor, "key_row d_k"],
    value_table: Float[Tensor, "value_row d_v"],
    mask: Bool[Tensor, "*#batch #query #key"] | None = None,
) -> Float[Tensor, "*batch query d_v"]:
    rows = key_table.shape[0]
    if rows % 2 != 1 or value_table.shape[0] != rows:
        raise ValueError(f"tables of {rows} and {value_table.shape[0]} rows have no common middle")
    m, n_k = rows // 2, k.shape[-2]
    scores = []
    for i in range(q.shape[-2]):
        at = [min(max(j - i, -m), m) + m for j in range(n_k)]
        scores.append((k + key_table[at]) @ q[..., i, :, None] / q.shape[-1] ** 0.5)
    weights = softmax(torch.cat(scores, dim=-1).mT, mask)
    out = []
    for i in range(q.shape[-2]):
        at = [min(max(j - i, -m), m) + m for j in range(n_k)]
        out.append(weights[..., i : i + 1, :] @ (v + value_table[at]))
    return torch.cat(out, dim=-2)

# %% positions/tree_distance | wrong | depths are subtracted: brothers are at distance 0
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    n = len(heads)
    up = heads.tolist()
    if up.count(-1) != 1 or min(up) < -1 or max(up) >= n:
        raise ValueError("one root is needed")
    depth = []
    for i in range(n):
        d = 0
        while up[i] != -1:
            i, d = up[i], d + 1
            if d > n:
                raise ValueError("a circle")
        depth.append(d)
    depth = torch.tensor(depth)
    return (depth[:, None] - depth).abs()

# %% positions/tree_distance | wrong | the path always leads over the root: depths are added
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    n = len(heads)
    up = heads.tolist()
    if up.count(-1) != 1 or min(up) < -1 or max(up) >= n:
        raise ValueError("one root is needed")
    depth = []
    for i in range(n):
        d = 0
        while up[i] != -1:
            i, d = up[i], d + 1
            if d > n:
                raise ValueError("a circle")
        depth.append(d)
    depth = torch.tensor(depth)
    return (depth[:, None] + depth) * ~torch.eye(n, dtype=torch.bool)

# %% positions/tree_distance | wrong | circles are not found: words that never reach the root keep what was counted
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    n = len(heads)
    if (heads == -1).sum() != 1 or (heads < -1).any() or (heads >= n).any():
        raise ValueError("one root is needed")
    above = torch.zeros(n, n, dtype=torch.long)
    at = torch.arange(n)
    for _ in range(n):
        above[torch.arange(n), at] = 1
        at = torch.where(heads[at] >= 0, heads[at], at)
    return (above[:, None] != above).sum(-1)

# %% positions/tree_distance | wrong | two roots are let through, and the trees count as joined nowhere
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    n = len(heads)
    if not (heads == -1).any() or (heads < -1).any() or (heads >= n).any():
        raise ValueError("no root")
    above = torch.zeros(n, n, dtype=torch.bool)
    at = torch.arange(n)
    for _ in range(n):
        above[torch.arange(n), at] = True
        at = torch.where(heads[at] >= 0, heads[at], at)
    if (heads[at] >= 0).any():
        raise ValueError("a circle")
    return (above[:, None] ^ above).sum(-1)

# %% positions/tree_distance | wrong | only the edge itself is counted: 1 for head and dependent, 2 for all others
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    n = len(heads)
    if (heads == -1).sum() != 1 or (heads < -1).any() or (heads >= n).any():
        raise ValueError("one root")
    at = torch.arange(n)
    for _ in range(n):
        at = torch.where(heads[at] >= 0, heads[at], at)
    if (heads[at] >= 0).any():
        raise ValueError("a circle")
    d = torch.full((n, n), 2)
    d.fill_diagonal_(0)
    for i, head in enumerate(heads.tolist()):
        if head >= 0:
            d[i, head] = d[head, i] = 1
    return d

# %% positions/tree_distance | wrong | counts the words on the path instead of the edges
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    n = len(heads)
    if (heads == -1).sum() != 1 or (heads < -1).any() or (heads >= n).any():
        raise ValueError("one root")
    above = torch.zeros(n, n, dtype=torch.bool)
    at = torch.arange(n)
    for _ in range(n):
        above[torch.arange(n), at] = True
        at = torch.where(heads[at] >= 0, heads[at], at)
    if (heads[at] >= 0).any():
        raise ValueError("a circle")
    return (above[:, None] ^ above).sum(-1) + 1

# %% positions/tree_distance | wrong | climbs once too few: only heads of heads are seen, which is enough for short sentences
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    n = len(heads)
    if (heads == -1).sum() != 1 or (heads < -1).any() or (heads >= n).any():
        raise ValueError("one root")
    at = torch.arange(n)
    for _ in range(n):
        at = torch.where(heads[at] >= 0, heads[at], at)
    if (heads[at] >= 0).any():
        raise ValueError("a circle")
    above, at = torch.zeros(n, n, dtype=torch.bool), torch.arange(n)
    for _ in range(3):
        above[torch.arange(n), at] = True
        at = torch.where(heads[at] >= 0, heads[at], at)
    return (above[:, None] ^ above).sum(-1)

# %% positions/tree_distance | right | Floyd and Warshall's shortest paths over the edges, both ways
def tree_distance(heads: Int[Tensor, " n"]) -> Int[Tensor, "n n"]:
    n, up = len(heads), heads.tolist()
    if up.count(-1) != 1 or not all(-1 <= head < n for head in up):
        raise ValueError(f"{up} has not one root, or heads outside of the sentence")
    far = torch.full((n, n), n, dtype=torch.long, device=heads.device)
    for i, head in enumerate(up):
        if head >= 0:
            far[i, head] = far[head, i] = 1
    for i in range(n):
        far[i, i] = 0
    for k in range(n):
        far = torch.minimum(far, far[:, k : k + 1] + far[k : k + 1])
    if (far >= n).any():
        raise ValueError(f"{up} goes round in a circle")
    return far

# %% positions/rotary | wrong | pairs the columns 2c and 2c + 1, as in the paper
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    kind = torch.promote_types(x.dtype, torch.float32)
    speeds = base ** (-torch.arange(0, d, 2, dtype=kind, device=x.device) / d)
    a = positions.to(kind)[:, None] * speeds
    c, s = a.cos(), a.sin()
    one, two = x[..., 0::2], x[..., 1::2]
    out = torch.stack([one * c - two * s, one * s + two * c], dim=-1).flatten(-2)
    return out.to(x.dtype)

# %% positions/rotary | wrong | the angles are computed in the type of x, so bfloat16 mixes up places
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    speeds = base ** (-torch.arange(0, d, 2, device=x.device).to(x.dtype) / d)
    a = positions.to(x.dtype)[:, None] * speeds
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * a.cos() - two * a.sin(), one * a.sin() + two * a.cos()], dim=-1)

# %% positions/rotary | wrong | turns the other way round
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    kind = torch.promote_types(x.dtype, torch.float32)
    a = positions.to(kind)[:, None] * base ** (
        -torch.arange(0, d, 2, dtype=kind, device=x.device) / d
    )
    one, two = x.to(kind).chunk(2, dim=-1)
    out = torch.cat([one * a.cos() + two * a.sin(), two * a.cos() - one * a.sin()], dim=-1)
    return out.to(x.dtype)

# %% positions/rotary | wrong | the positions are not looked at: it counts the words from 0 itself
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    kind = torch.promote_types(x.dtype, torch.float32)
    i = torch.arange(x.shape[-2], dtype=kind, device=x.device)[:, None]
    a = i * base ** (-torch.arange(0, d, 2, dtype=kind, device=x.device) / d)
    one, two = x.to(kind).chunk(2, dim=-1)
    out = torch.cat([one * a.cos() - two * a.sin(), one * a.sin() + two * a.cos()], dim=-1)
    return out.to(x.dtype)

# %% positions/rotary | wrong | the exponent is c / d without the 2, so the wheels turn too fast
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    kind = torch.promote_types(x.dtype, torch.float32)
    speeds = base ** (-torch.arange(d // 2, dtype=kind, device=x.device) / d)
    a = positions.to(kind)[:, None] * speeds
    one, two = x.to(kind).chunk(2, dim=-1)
    out = torch.cat([one * a.cos() - two * a.sin(), one * a.sin() + two * a.cos()], dim=-1)
    return out.to(x.dtype)

# %% positions/rotary | wrong | the result is float32 for bfloat16 words
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd")
    kind = torch.promote_types(x.dtype, torch.float32)
    speeds = base ** (-torch.arange(0, d, 2, dtype=kind, device=x.device) / d)
    a = positions.to(kind)[:, None] * speeds
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * a.cos() - two * a.sin(), one * a.sin() + two * a.cos()], dim=-1)

# %% positions/rotary | wrong | an odd d fails with torch's own error about sizes
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    d = x.shape[-1]
    kind = torch.promote_types(x.dtype, torch.float32)
    speeds = base ** (-torch.arange(0, d, 2, dtype=kind, device=x.device) / d)
    a = positions.to(kind)[:, None] * speeds
    c, s = torch.cat([a.cos()] * 2, dim=-1), torch.cat([a.sin()] * 2, dim=-1)
    one, two = x[..., : d // 2], x[..., d // 2 :]
    return (x * c + torch.cat([-two, one], dim=-1) * s).to(x.dtype)

# %% positions/rotary | right | complex numbers: a turn is a product with e^(ia)
def rotary(
    x: Float[Tensor, "... n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "... n d"]:
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"columns are turned in pairs, so d must be even, not {d}")
    kind = torch.promote_types(x.dtype, torch.float32)
    half = d // 2
    speeds = torch.tensor([base ** (-2 * c / d) for c in range(half)], dtype=kind, device=x.device)
    angles = torch.outer(positions.to(kind), speeds)
    points = torch.complex(x[..., :half].to(kind), x[..., half:].to(kind))
    turned = points * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag], dim=-1).to(x.dtype)

# %% positions/alibi | wrong | the heads count from 0, so the steepest slope is 1
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads must be a power of two")
    slopes = 2 ** (-8 * torch.arange(heads) / heads)
    i, j = torch.arange(n_k - n_q, n_k)[:, None], torch.arange(n_k)
    return -slopes[:, None, None] * (i - j).abs()

# %% positions/alibi | wrong | the sign: far words are preferred
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads must be a power of two")
    slopes = 2 ** (-8 * torch.arange(1, heads + 1) / heads)
    i, j = torch.arange(n_k - n_q, n_k)[:, None], torch.arange(n_k)
    return slopes[:, None, None] * (i - j).abs()

# %% positions/alibi | wrong | the queries are the first n_q words
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads must be a power of two")
    slopes = 2 ** (-8 * torch.arange(1, heads + 1) / heads)
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return -slopes[:, None, None] * (i - j).abs()

# %% positions/alibi | wrong | no absolute value: words to the right are rewarded
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads must be a power of two")
    slopes = 2 ** (-8 * torch.arange(1, heads + 1) / heads)
    i, j = torch.arange(n_k - n_q, n_k)[:, None], torch.arange(n_k)
    return slopes[:, None, None] * (j - i)

# %% positions/alibi | wrong | the slopes are right for eight heads only: 1/2, 1/4, 1/8, ...
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads must be a power of two")
    slopes = 0.5 ** torch.arange(1, heads + 1)
    i, j = torch.arange(n_k - n_q, n_k)[:, None], torch.arange(n_k)
    return -slopes[:, None, None] * (i - j).abs()

# %% positions/alibi | wrong | other numbers of heads are not refused
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    slopes = 2 ** (-8 * torch.arange(1, heads + 1) / heads)
    i, j = torch.arange(n_k - n_q, n_k)[:, None], torch.arange(n_k)
    return -slopes[:, None, None] * (i - j).abs()

# %% positions/alibi | wrong | an even number of heads is enough, where a power of two is asked
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    if heads < 1 or heads % 2 and heads > 1:
        raise ValueError("heads must be a power of two")
    slopes = 2 ** (-8 * torch.arange(1, heads + 1) / heads)
    i, j = torch.arange(n_k - n_q, n_k)[:, None], torch.arange(n_k)
    return -slopes[:, None, None] * (i - j).abs()

# %% positions/alibi | right | the slopes by repeated products, the distances by two counts from the right end
def alibi(n_q: int, n_k: int, heads: int) -> Float[Tensor, "heads query key"]:
    if heads not in [2**power for power in range(64)]:
        raise ValueError(f"the number of heads must be a power of two, not {heads}")
    slope, tables = 1.0, []
    query = torch.arange(n_q - 1, -1, -1, dtype=torch.get_default_dtype())
    key = torch.arange(n_k - 1, -1, -1, dtype=torch.get_default_dtype())
    distance = torch.cdist(query[:, None], key[:, None], p=1)
    for _ in range(heads):
        slope *= 2 ** (-8 / heads)
        tables.append(-slope * distance)
    return torch.stack(tables)
