# %% masks/padding | wrong | j <= length: one padded token is seen
def padding_mask(lengths, n):
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("a length does not fit")
    return (torch.arange(n, device=lengths.device) <= lengths[:, None])[:, None, :]

# %% masks/padding | wrong | a full square: padded queries see nothing either
def padding_mask(lengths, n):
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("a length does not fit")
    real = torch.arange(n, device=lengths.device) < lengths[:, None]
    return real[:, :, None] & real[:, None, :]

# %% masks/padding | wrong | the padding is in front: the last tokens are the real ones
def padding_mask(lengths, n):
    if (lengths < 0).any() or (lengths > n).any():
        raise ValueError("a length does not fit")
    return (torch.arange(n, device=lengths.device) >= n - lengths[:, None])[:, None, :]

# %% masks/leaks_future | wrong | every token is moved at once, so the future and the past are not told apart
def leaks_future(layer, x):
    before = layer(x)
    found = set()
    for sign in (1, -1):
        after = layer(x + sign * 10 * torch.randn_like(x))
        moved = ((after - before).abs() > 1e-5).any(-1)
        moved = moved.reshape(-1, moved.shape[-1]).any(0)
        found |= {i for i in range(x.shape[-2] - 1) if moved[i]}
    return sorted(found)

# %% masks/leaks_future | wrong | only the next token is moved, not the ones after it
def leaks_future(layer, x):
    before = layer(x)
    found = set()
    for j in range(1, x.shape[-2]):
        for sign in (1, -1):
            moved_x = x.clone()
            moved_x[..., j, :] += sign * 10 * torch.randn_like(moved_x[..., j, :])
            after = layer(moved_x)
            moved = ((after - before).abs() > 1e-5).any(-1)
            moved = moved.reshape(-1, moved.shape[-1]).any(0)
            if moved[j - 1]:
                found.add(j - 1)
    return sorted(found)

# %% masks/leaks_future | wrong | returns the positions that cause a leak, not the ones that see it
def leaks_future(layer, x):
    before = layer(x)
    found = set()
    for j in range(1, x.shape[-2]):
        for sign in (1, -1):
            moved_x = x.clone()
            moved_x[..., j, :] += sign * 10 * torch.randn_like(moved_x[..., j, :])
            after = layer(moved_x)
            moved = ((after - before).abs() > 1e-5).any(-1)
            moved = moved.reshape(-1, moved.shape[-1]).any(0)
            if moved[:j].any():
                found.add(j)
    return sorted(found)
