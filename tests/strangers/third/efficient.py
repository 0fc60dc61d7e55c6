# %% efficient/linear | wrong | relu instead of elu + 1
def linear_attention(q, k, v, causal=False):
    q, k = torch.relu(q), torch.relu(k)
    if not causal:
        s = k.transpose(-1, -2) @ v
        z = k.sum(-2)
        low = (q * z[..., None, :]).sum(-1, keepdim=True)
        return torch.where(low > 0, q @ s / low.clamp(min=1e-30), torch.zeros_like(low))
    s = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype, device=v.device)
    z = torch.zeros(*k.shape[:-2], k.shape[-1], dtype=k.dtype, device=k.device)
    out = []
    for i in range(k.shape[-2]):
        s = s + k[..., i, :, None] * v[..., i, None, :]
        z = z + k[..., i, :]
        up = (q[..., i, None, :] @ s).squeeze(-2)
        low = (q[..., i, :] * z).sum(-1, keepdim=True)
        out.append(torch.where(low > 0, up / low.clamp(min=1e-30), torch.zeros_like(up)))
    return torch.stack(out, -2) if out else torch.zeros_like(v)

# %% efficient/linear | wrong | not divided by the sum of the weights
def linear_attention(q, k, v, causal=False):
    def phi(x):
        return nn.functional.elu(x) + 1

    q, k = phi(q), phi(k)
    if not causal:
        return q @ (k.transpose(-1, -2) @ v)
    s = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype, device=v.device)
    out = []
    for i in range(k.shape[-2]):
        s = s + k[..., i, :, None] * v[..., i, None, :]
        out.append((q[..., i, None, :] @ s).squeeze(-2))
    return torch.stack(out, -2) if out else torch.zeros_like(v)

# %% efficient/linear | wrong | causal reads the state before the word has added itself
def linear_attention(q, k, v, causal=False):
    def phi(x):
        return nn.functional.elu(x) + 1

    q, k = phi(q), phi(k)
    v1 = torch.cat([v, torch.ones_like(v[..., :1])], -1)
    if not causal:
        both = q @ (k.transpose(-1, -2) @ v1)
    else:
        s = torch.zeros(*k.shape[:-2], k.shape[-1], v1.shape[-1], dtype=v.dtype, device=v.device)
        rows = []
        for i in range(k.shape[-2]):
            rows.append((q[..., i, None, :] @ s).squeeze(-2))
            s = s + k[..., i, :, None] * v1[..., i, None, :]
        both = torch.stack(rows, -2)
    low = both[..., -1:]
    return torch.where(low > 0, both[..., :-1] / torch.where(low > 0, low, torch.ones_like(low)), torch.zeros_like(low))

# %% efficient/window | wrong | a word sees `width` words to either side
def window_attention(q, k, v, width):
    n = q.shape[-2]
    rows = []
    for i in range(n):
        low, high = max(0, i - width), min(n, i + width + 1)
        scores = (k[..., low:high, :] @ q[..., i, :, None]).squeeze(-1) / q.shape[-1] ** 0.5
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = weights / weights.sum(-1, keepdim=True)
        rows.append((weights[..., None, :] @ v[..., low:high, :]).squeeze(-2))
    return torch.stack(rows, -2) if rows else torch.zeros_like(v)

# %% efficient/window | wrong | the window is cut off on its right: the last neighbour is missing
def window_attention(q, k, v, width):
    n, half = q.shape[-2], width // 2
    rows = []
    for i in range(n):
        low, high = max(0, i - half), min(n, max(i + half, i + 1))
        scores = (k[..., low:high, :] @ q[..., i, :, None]).squeeze(-1) / q.shape[-1] ** 0.5
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = weights / weights.sum(-1, keepdim=True)
        rows.append((weights[..., None, :] @ v[..., low:high, :]).squeeze(-2))
    return torch.stack(rows, -2) if rows else torch.zeros_like(v)

# %% efficient/window | wrong | the sentence is a ring: the first word sees the last ones
def window_attention(q, k, v, width):
    n, half = q.shape[-2], min(width // 2, (q.shape[-2] - 1) // 2)
    rows = []
    for i in range(n):
        near = [(i + s) % n for s in range(-half, half + 1)]
        scores = (k[..., near, :] @ q[..., i, :, None]).squeeze(-1) / q.shape[-1] ** 0.5
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = weights / weights.sum(-1, keepdim=True)
        rows.append((weights[..., None, :] @ v[..., near, :]).squeeze(-2))
    return torch.stack(rows, -2) if rows else torch.zeros_like(v)
