# %% masks/causal | wrong | True = masked: the future is marked
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    if n_k is None:
        n_k = n_q
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q + 1)

# %% masks/causal | wrong | the queries are the first of the keys: the diagonal starts in the first corner
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    if n_k is None:
        n_k = n_q
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).tril()

# %% masks/causal | wrong | a word does not see itself
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    if n_k is None:
        n_k = n_q
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q - 1)

# %% masks/causal | wrong | numbers to be added: 0 and minus infinity
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    if n_k is None:
        n_k = n_q
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.full((n_q, n_k), float("-inf")).triu(n_k - n_q + 1)

# %% masks/causal | wrong | fewer keys than queries are not refused
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    n_k = n_q if n_k is None else n_k
    i, j = torch.arange(n_q)[:, None], torch.arange(n_k)
    return j <= i + n_k - n_q

# %% masks/causal | wrong | n_k = 0 is taken for "not given"
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    n_k = n_k or n_q
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)

# %% masks/causal | wrong | the offset has the wrong sign
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    if n_k is None:
        n_k = n_q
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_q - n_k)

# %% masks/causal | right | the last rows of the large square
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    size = n_q if n_k is None else n_k
    if size < n_q:
        raise ValueError(f"{n_q} queries cannot be the last of {size} keys")
    square = torch.tensor([[j <= i for j in range(size)] for i in range(size)], dtype=torch.bool)
    return square.reshape(size, size)[size - n_q :]

# %% masks/padding | wrong | zeros and ones, not booleans
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("lengths must be between 0 and n")
    mask = torch.zeros(len(lengths), 1, n)
    for b in range(len(lengths)):
        mask[b, 0, : lengths[b]] = 1
    return mask

# %% masks/padding | wrong | True stands at the filling, as in torch's key_padding_mask
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("lengths")
    return (torch.arange(n, device=lengths.device) >= lengths[:, None]).unsqueeze(1)

# %% masks/padding | wrong | one word too many: <= in place of <
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("lengths")
    return (torch.arange(n, device=lengths.device) <= lengths[:, None]).unsqueeze(1)

# %% masks/padding | wrong | no middle axis for the queries
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("lengths")
    return torch.arange(n, device=lengths.device) < lengths[:, None]

# %% masks/padding | wrong | the filling is thought to stand in front
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("lengths")
    places = torch.arange(n, device=lengths.device)
    return (places >= n - lengths[:, None]).unsqueeze(1)

# %% masks/padding | wrong | too long sentences are let through
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    if (lengths < 0).any():
        raise ValueError("a negative length")
    return (torch.arange(n, device=lengths.device) < lengths[:, None]).unsqueeze(1)

# %% masks/padding | wrong | the queries' axis is written out, and padded words see nothing
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("lengths")
    real = torch.arange(n, device=lengths.device) < lengths[:, None]
    return real.unsqueeze(1) & real.unsqueeze(2)

# %% masks/padding | wrong | as wide as the longest sentence, not n
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("lengths")
    places = torch.arange(int(lengths.max()), device=lengths.device)
    return (places < lengths[:, None]).unsqueeze(1)

# %% masks/padding | right | one row after another is filled with True
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    counts = lengths.tolist()
    if any(not 0 <= count <= n for count in counts):
        raise ValueError(f"lengths must lie between 0 and {n}, not {counts}")
    mask = torch.zeros(len(counts), 1, n, dtype=torch.bool, device=lengths.device)
    for row, count in zip(mask, counts):
        row[0, :count] = True
    return mask

# %% masks/shift_right | wrong | the last token is not dropped
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    first = torch.full_like(tokens[..., :1], start)
    return torch.cat([first, tokens], dim=-1)

# %% masks/shift_right | wrong | shifted left: the tokens after, and the start at the end
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    first = torch.full_like(tokens[..., :1], start)
    return torch.cat([tokens[..., 1:], first], dim=-1)

# %% masks/shift_right | wrong | the start replaces the first token, and nothing moves
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    out = tokens.clone()
    out[..., 0] = start
    return out

# %% masks/shift_right | wrong | the targets themselves are shifted in place
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    tokens[..., 1:] = tokens[..., :-1].clone()
    tokens[..., 0] = start
    return tokens

# %% masks/shift_right | wrong | one sentence only: batches fail
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    return torch.cat([torch.tensor([start]), tokens[:-1]])

# %% masks/shift_right | wrong | shifts the sentences of a batch, not the tokens of a sentence
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    out = torch.roll(tokens, 1, dims=0)
    out[0] = start
    return out

# %% masks/shift_right | wrong | zeros are put in front, whatever the start is
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    return torch.nn.functional.pad(tokens, (1, -1))

# %% masks/shift_right | right | padding by one on the left with the start, and by minus one on the right
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    return torch.nn.functional.pad(tokens, (1, 0), value=start).narrow(-1, 0, tokens.shape[-1])

# %% masks/leaks_future | wrong | each word is moved by the same amount in all entries, which a norm takes back
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    with torch.no_grad():
        before, n, leaking = layer(x), x.shape[-2], set()
        for j in range(1, n):
            for far in (10.0, -10.0):
                other = x.clone()
                other[..., j, :] += far
                same = torch.isclose(layer(other), before, rtol=1e-4, atol=1e-5, equal_nan=True)
                moved = ~same.transpose(0, -2).flatten(1).all(-1)
                leaking |= {i for i in range(j) if moved[i]}
    return sorted(leaking)

# %% masks/leaks_future | wrong | the words that are moved are returned, not those that notice
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    with torch.no_grad():
        before, n, leaking = layer(x), x.shape[-2], set()
        far = 10 + 10 * torch.rand_like(x)
        for j in range(1, n):
            for sign in (1, -1):
                other = x.clone()
                other[..., j, :] += sign * far[..., j, :]
                same = torch.isclose(layer(other), before, rtol=1e-4, atol=1e-5, equal_nan=True)
                if not same[..., :j, :].all():
                    leaking.add(j)
    return sorted(leaking)

# %% masks/leaks_future | wrong | only the last word is moved: a look one word ahead is seen at one place only
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    with torch.no_grad():
        before, n, leaking = layer(x), x.shape[-2], set()
        far = 10 + 10 * torch.rand_like(x)
        for sign in (1, -1):
            other = x.clone()
            other[..., -1, :] += sign * far[..., -1, :]
            same = torch.isclose(layer(other), before, rtol=1e-4, atol=1e-5, equal_nan=True)
            moved = ~same.transpose(0, -2).flatten(1).all(-1)
            leaking |= {i for i in range(n - 1) if moved[i]}
    return sorted(leaking)

# %% masks/leaks_future | wrong | NaN is unlike itself, so a row that was NaN and stays NaN is reported
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    with torch.no_grad():
        before, n, leaking = layer(x), x.shape[-2], set()
        far = 10 + 10 * torch.rand_like(x)
        for j in range(1, n):
            for sign in (1, -1):
                other = x.clone()
                other[..., j, :] += sign * far[..., j, :]
                same = torch.isclose(layer(other), before, rtol=1e-4, atol=1e-5)
                moved = ~same.transpose(0, -2).flatten(1).all(-1)
                leaking |= {i for i in range(j) if moved[i]}
    return sorted(leaking)

# %% masks/leaks_future | wrong | the words of the caller are changed
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    with torch.no_grad():
        before, n, leaking = layer(x), x.shape[-2], set()
        far = 10 + 10 * torch.rand_like(x)
        for j in range(1, n):
            for sign in (1, -1):
                x[..., j, :] += sign * far[..., j, :]
                same = torch.isclose(layer(x), before, rtol=1e-4, atol=1e-5, equal_nan=True)
                moved = ~same.transpose(0, -2).flatten(1).all(-1)
                leaking |= {i for i in range(j) if moved[i]}
    return sorted(leaking)

# %% masks/leaks_future | wrong | only the first sentence of a batch is looked at
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    with torch.no_grad():
        before, n, leaking = layer(x), x.shape[-2], set()
        far = 10 + 10 * torch.rand_like(x)
        for j in range(1, n):
            for sign in (1, -1):
                other = x.clone()
                other[..., j, :] += sign * far[..., j, :]
                same = torch.isclose(layer(other), before, rtol=1e-4, atol=1e-5, equal_nan=True)
                moved = ~same.reshape(-1, *same.shape[-2:])[0].all(-1)
                leaking |= {i for i in range(j) if moved[i]}
    return sorted(leaking)

# %% masks/leaks_future | wrong | gradients only: what an argmax or a comparison lets through is not seen
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    y = x.detach().clone().requires_grad_()
    out, n, leaking = layer(y), x.shape[-2], []
    for i in range(n - 1):
        [grad] = torch.autograd.grad(out[..., i, :].sum(), y, retain_graph=True, allow_unused=True)
        if grad is not None and (grad[..., i + 1 :, :].abs() > 1e-6).any():
            leaking.append(i)
    return leaking

# %% masks/leaks_future | right | a counter for each position, with a tolerance from the type's own rounding
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    x = x.detach()
    n = x.shape[-2]
    notices = [0] * n
    generator = torch.Generator().manual_seed(12345)
    far = (20 + 20 * torch.rand(x.shape, generator=generator, dtype=torch.float64)).to(x)
    with torch.no_grad():
        rest = layer(x)
        size = rest.nan_to_num(0.0, 0.0, 0.0).abs().max() if rest.numel() else 0.0
        slack = 1000 * torch.finfo(rest.dtype).eps * (1 + float(size))
        for j in range(n):
            up = torch.zeros_like(x)
            up[..., j, :] = far[..., j, :]
            for other in (layer(x + up), layer(x - up)):
                for i in range(j):
                    one, two = rest[..., i, :], other[..., i, :]
                    still = torch.isclose(one, two, rtol=0.0, atol=slack, equal_nan=True)
                    notices[i] += int(not still.all())
    return [i for i, count in enumerate(notices) if count]
