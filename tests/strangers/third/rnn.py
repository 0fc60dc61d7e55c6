# %% rnn/gru_cell | wrong | the candidate is squashed by a sigmoid, like the gates
def gru_cell(x, h, w_x, w_h, b_x, b_h):
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.sigmoid(x_n + r * h_n)
    return (1 - z) * n + z * h

# %% rnn/gru_cell | wrong | one bias only: b_h is never added
def gru_cell(x, h, w_x, w_h, b_x, b_h):
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h).chunk(3, dim=-1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h

# %% rnn/gru_cell | wrong | the columns of the gates are interleaved: every third one
def gru_cell(x, h, w_x, w_h, b_x, b_h):
    from_x, from_h = x @ w_x + b_x, h @ w_h + b_h
    x_r, x_z, x_n = from_x[..., 0::3], from_x[..., 1::3], from_x[..., 2::3]
    h_r, h_z, h_n = from_h[..., 0::3], from_h[..., 1::3], from_h[..., 2::3]
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h

# %% rnn/gru_cell | right | lerp mixes the two states
def gru_cell(x, h, w_x, w_h, b_x, b_h):
    d = h.shape[-1]
    a, b = x @ w_x + b_x, h @ w_h + b_h
    r = torch.sigmoid(a[..., :d] + b[..., :d])
    z = torch.sigmoid(a[..., d : 2 * d] + b[..., d : 2 * d])
    n = torch.tanh(a[..., 2 * d :] + r * b[..., 2 * d :])
    return torch.lerp(n, h, z)
