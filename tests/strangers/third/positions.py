# %% positions/sinusoidal | wrong | the exponent runs over c, not 2c
def sinusoidal(n, d_model):
    if d_model % 2:
        raise ValueError("odd d_model")
    c = torch.arange(d_model // 2)
    angles = torch.arange(n)[:, None] / 10000 ** (c / d_model)
    table = torch.zeros(n, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table

# %% positions/sinusoidal | wrong | angles in degrees
def sinusoidal(n, d_model):
    if d_model % 2:
        raise ValueError("odd d_model")
    c = torch.arange(0, d_model, 2)
    angles = torch.deg2rad(torch.arange(n)[:, None] / 10000 ** (c / d_model))
    table = torch.zeros(n, d_model)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table

# %% positions/sinusoidal | wrong | the odd columns have their own, slower wave: the exponent is the column
def sinusoidal(n, d_model):
    if d_model % 2:
        raise ValueError("odd d_model")
    column = torch.arange(d_model)
    angles = torch.arange(n)[:, None] / 10000 ** (column / d_model)
    table = torch.zeros(n, d_model)
    table[:, 0::2] = torch.sin(angles[:, 0::2])
    table[:, 1::2] = torch.cos(angles[:, 1::2])
    return table

# %% positions/rotary | wrong | neighbouring columns are paired, as in the paper
def rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd d")
    kind = torch.promote_types(x.dtype, torch.float32)
    speeds = base ** (-torch.arange(0, d, 2, dtype=kind, device=x.device) / d)
    angles = positions.to(kind)[:, None] * speeds
    even, odd = x[..., 0::2], x[..., 1::2]
    out = torch.stack([even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], -1)
    return out.flatten(-2).to(x.dtype)

# %% positions/rotary | wrong | turned the other way round
def rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd d")
    kind = torch.promote_types(x.dtype, torch.float32)
    speeds = base ** (-torch.arange(0, d, 2, dtype=kind, device=x.device) / d)
    angles = positions.to(kind)[:, None] * speeds
    a, b = x.chunk(2, -1)
    out = torch.cat([a * angles.cos() + b * angles.sin(), b * angles.cos() - a * angles.sin()], -1)
    return out.to(x.dtype)

# %% positions/rotary | wrong | the positions are ignored: always 0, 1, 2 ...
def rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    if d % 2:
        raise ValueError("odd d")
    kind = torch.promote_types(x.dtype, torch.float32)
    speeds = base ** (-torch.arange(0, d, 2, dtype=kind, device=x.device) / d)
    angles = torch.arange(x.shape[-2], device=x.device, dtype=kind)[:, None] * speeds
    a, b = x.chunk(2, -1)
    out = torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)
    return out.to(x.dtype)

# %% positions/alibi | wrong | the slopes double from head to head: flat first, steep last
def alibi(n_q, n_k, heads):
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads must be a power of two")
    h = torch.arange(heads, 0, -1)
    slopes = 2.0 ** (-8 * h / heads)
    i = torch.arange(n_k - n_q, n_k)[:, None]
    j = torch.arange(n_k)
    return -slopes[:, None, None] * (i - j).abs()

# %% positions/alibi | wrong | the queries are the first of the keys
def alibi(n_q, n_k, heads):
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads must be a power of two")
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    distance = (torch.arange(n_q)[:, None] - torch.arange(n_k)).abs()
    return -slopes[:, None, None] * distance

# %% positions/alibi | wrong | future keys get no penalty: the distance is clipped at 0
def alibi(n_q, n_k, heads):
    if heads < 1 or heads & (heads - 1):
        raise ValueError("heads must be a power of two")
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    i = torch.arange(n_k - n_q, n_k)[:, None]
    distance = (i - torch.arange(n_k)).clamp(min=0)
    return -slopes[:, None, None] * distance
