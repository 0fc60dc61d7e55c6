# %% attention/softmax | wrong | the whole tensor is normalised, not each row
def softmax(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    e = torch.exp(scores - scores.max())
    return e / e.sum()

# %% attention/softmax | wrong | masked scores become -1e9: a row with every key masked is uniform
def softmax(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    scores = scores - scores.max(dim=-1, keepdim=True).values
    e = scores.exp()
    return e / e.sum(dim=-1, keepdim=True)

# %% attention/softmax | wrong | the mask is applied after the division, so that rows sum to less than one
def softmax(scores, mask=None):
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = e / e.sum(-1, keepdim=True)
    if mask is not None:
        weights = weights * mask
    return weights

# %% attention/softmax | right | exponentials are multiplied by the mask, and the sum is guarded
def softmax(scores, mask=None):
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    mask = mask.expand_as(scores)
    low = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    e = torch.exp(low - low.amax(-1, keepdim=True)) * mask
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total > 0, total, torch.ones_like(total))

# %% attention/soft_lookup | wrong | multiplies by the temperature
def soft_lookup(query, keys, values, temperature):
    one = query.dim() == keys.dim() - 1
    if one:
        query = query.unsqueeze(-2)
    scores = query @ keys.transpose(-1, -2) * temperature
    out = softmax(scores) @ values
    return out.squeeze(-2) if one else out

# %% attention/soft_lookup | wrong | a hard lookup: the value of the best key
def soft_lookup(query, keys, values, temperature):
    one = query.dim() == keys.dim() - 1
    if one:
        query = query.unsqueeze(-2)
    best = (query @ keys.transpose(-1, -2) / temperature).argmax(-1)
    weights = torch.nn.functional.one_hot(best, keys.shape[-2]).to(values.dtype)
    out = weights @ values
    return out.squeeze(-2) if one else out

# %% attention/soft_lookup | wrong | the query's axis of one is left in the result
def soft_lookup(query, keys, values, temperature):
    if query.dim() == keys.dim() - 1:
        query = query.unsqueeze(-2)
    return softmax(query @ keys.transpose(-1, -2) / temperature) @ values

# %% attention/additive_scores | wrong | no tanh
def additive_scores(q, k, w_q, w_k, v):
    a = (q @ w_q).unsqueeze(-2)
    b = (k @ w_k).unsqueeze(-3)
    return (a + b) @ v

# %% attention/additive_scores | wrong | tanh of each part, then the sum
def additive_scores(q, k, w_q, w_k, v):
    a = torch.tanh(q @ w_q).unsqueeze(-2)
    b = torch.tanh(k @ w_k).unsqueeze(-3)
    return (a + b) @ v

# %% attention/additive_scores | wrong | the result is keys by queries
def additive_scores(q, k, w_q, w_k, v):
    a = (q @ w_q).unsqueeze(-3)
    b = (k @ w_k).unsqueeze(-2)
    return torch.tanh(a + b) @ v
