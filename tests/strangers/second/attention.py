# %% attention/softmax | wrong | writes minus infinity into the caller's scores, in place
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    if mask is not None:
        with torch.no_grad():
            scores[~mask.expand_as(scores)] = float("-inf")
    e = torch.exp(scores - scores.max(-1, keepdim=True)[0].clamp(min=-1e30))
    s = e.sum(-1, keepdim=True)
    return e / (s + (s == 0))

# %% attention/softmax | wrong | the softmax runs over the queries
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-2 if scores.dim() > 1 else -1)
    return weights.nan_to_num(0.0)

# %% attention/softmax | wrong | the mask is multiplied in after the softmax, and the rest is not divided again
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask
    return weights

# %% attention/softmax | wrong | a fully masked row is uniform, since masked scores are -1e9 only
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, -1e9))
    exps = (scores - scores.max(dim=-1, keepdim=True).values).exp()
    return exps / exps.sum(dim=-1, keepdim=True)

# %% attention/softmax | wrong | subtracts the largest of all scores, so that far lower rows vanish
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    exps = (scores - scores.max()).exp()
    total = exps.sum(dim=-1, keepdim=True)
    return exps / torch.where(total == 0, torch.ones_like(total), total)

# %% attention/softmax | wrong | the mask is added as a logarithm, and the gradient of an empty row is NaN
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    if mask is not None:
        scores = scores + mask.to(scores.dtype).log()
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)

# %% attention/softmax | wrong | masked scores become 0 before the exponential, which is a weight like any other
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    if mask is not None:
        scores = scores * mask
    exps = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exps / exps.sum(dim=-1, keepdim=True)

# %% attention/softmax | right | no infinities at all: masked places are taken out of the sum by where
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
    lowest = torch.finfo(scores.dtype).min
    peak = torch.where(allowed, scores.detach(), lowest).amax(dim=-1, keepdim=True)
    distance = torch.where(allowed, scores - peak, 0.0)
    exps = torch.where(allowed, distance.exp(), 0.0)
    total = exps.sum(dim=-1, keepdim=True)
    return exps / torch.where(total > 0, total, 1.0)

# %% attention/dot_scores | wrong | keys by queries: the product is the wrong way round
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    return k @ q.mT

# %% attention/dot_scores | wrong | divided by the root already
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    return q @ k.mT / q.shape[-1] ** 0.5

# %% attention/dot_scores | wrong | .T turns all axes round, which fails or mixes for batches
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    return q @ k.T

# %% attention/dot_scores | wrong | cosines: both are brought to length one first
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    q = q / q.norm(dim=-1, keepdim=True)
    k = k / k.norm(dim=-1, keepdim=True)
    return q @ k.mT

# %% attention/dot_scores | wrong | tensordot meets all batches with all batches
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    return torch.tensordot(q, k, dims=([-1], [-1]))

# %% attention/dot_scores | wrong | multiplies entries and does not sum
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    return q.unsqueeze(-2) * k.unsqueeze(-3)

# %% attention/dot_scores | wrong | filled in number by number with .item(), so no gradient comes through
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    s = torch.zeros(*q.shape[:-1], k.shape[-2], dtype=q.dtype)
    flat_q, flat_k = q.reshape(-1, *q.shape[-2:]), k.reshape(-1, *k.shape[-2:])
    flat_s = s.view(-1, *s.shape[-2:])
    for b in range(flat_q.shape[0]):
        for i in range(flat_q.shape[1]):
            for j in range(flat_k.shape[1]):
                flat_s[b, i, j] = (flat_q[b, i] * flat_k[b, j]).sum().item()
    return s

# %% attention/dot_scores | right | broadcasting and a sum, no matrix product
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    return torch.sum(q[..., :, None, :] * k[..., None, :, :], -1)

# %% attention/bilinear_scores | wrong | W is transposed: it carries keys to queries
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    return q @ w.mT @ k.mT

# %% attention/bilinear_scores | wrong | keys by queries
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    return k @ w.mT @ q.mT

# %% attention/bilinear_scores | wrong | squashes with tanh, as if it were the additive score
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    return torch.tanh(q @ w) @ k.mT

# %% attention/bilinear_scores | wrong | divides by the root of d_k
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    return (q @ w) @ k.mT / k.shape[-1] ** 0.5

# %% attention/bilinear_scores | wrong | numpy does the work, and the gradient is lost on the way
import numpy as np


def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    q_, k_, w_ = (t.detach().cpu().numpy() for t in (q, k, w))
    s = np.einsum("...ia,ab,...jb->...ij", q_, w_, k_)
    return torch.from_numpy(np.ascontiguousarray(s)).to(q)

# %% attention/bilinear_scores | wrong | .T on a batch of keys
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    return q @ w @ k.T

# %% attention/bilinear_scores | wrong | forgets W: fine for identities
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    return q @ k.mT

# %% attention/bilinear_scores | right | carries the keys into the space of the queries instead
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    return torch.einsum("...qa,...ka->...qk", q, torch.einsum("ab,...kb->...ka", w, k))

# %% attention/additive_scores | wrong | the squash comes after the sum over v
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    q, k = q @ w_q, k @ w_k
    return torch.tanh((q.unsqueeze(-2) + k.unsqueeze(-3)) @ v)

# %% attention/additive_scores | wrong | keys by queries
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    q, k = q @ w_q, k @ w_k
    return torch.tanh(q.unsqueeze(-3) + k.unsqueeze(-2)) @ v

# %% attention/additive_scores | wrong | multiplies query and key where they should be added
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    q, k = q @ w_q, k @ w_k
    return torch.tanh(q.unsqueeze(-2) * k.unsqueeze(-3)) @ v

# %% attention/additive_scores | wrong | query and key are squashed apart
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    q, k = torch.tanh(q @ w_q), torch.tanh(k @ w_k)
    return (q.unsqueeze(-2) + k.unsqueeze(-3)) @ v

# %% attention/additive_scores | wrong | unsqueezes by counting from the front, which is right without a batch only
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    q, k = q @ w_q, k @ w_k
    return torch.tanh(q.unsqueeze(1) + k.unsqueeze(0)) @ v

# %% attention/additive_scores | wrong | relu in the place of tanh
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    hidden = (q @ w_q)[..., :, None, :] + (k @ w_k)[..., None, :, :]
    return hidden.relu() @ v

# %% attention/additive_scores | wrong | the result is divided by the root of d_a, as dot products are
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    qs = q @ w_q
    ks = k @ w_k
    s = torch.tanh(qs[..., :, None, :] + ks[..., None, :, :]) @ v
    return s / len(v) ** 0.5

# %% attention/additive_scores | right | one column of scores for each key, and the two matrices stacked
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    columns = []
    for key in k.unbind(-2):
        both = torch.cat([q, key.unsqueeze(-2).expand(*q.shape[:-1], -1)], dim=-1)
        columns.append(torch.tanh(both @ torch.cat([w_q, w_k])) @ v)
    return torch.stack(columns, dim=-1)

# %% attention/weighted_sum | wrong | the weights are transposed: each value's readers are summed
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    return weights.mT @ v

# %% attention/weighted_sum | wrong | divides by the number of keys: a mean of the weighted values
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    return weights @ v / v.shape[-2]

# %% attention/weighted_sum | wrong | brings the weights to the sum one first, though they may not have it
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    return weights / weights.sum(-1, keepdim=True) @ v

# %% attention/weighted_sum | wrong | a softmax over what are weights already
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    return torch.softmax(weights, dim=-1) @ v

# %% attention/weighted_sum | wrong | takes the value of the largest weight only
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    best = weights.argmax(dim=-1)
    return torch.take_along_dim(v, best.unsqueeze(-1), dim=-2)

# %% attention/weighted_sum | wrong | computes in double and hands double back
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    return weights.double() @ v.double()

# %% attention/weighted_sum | wrong | tensordot over the wrong axis for batches: it sums the first batch axis
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    return torch.einsum("...qk,...kd->qd", weights, v)

# %% attention/weighted_sum | right | value by value: weight times vector, added up
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    out = torch.zeros(*weights.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
    for j in range(v.shape[-2]):
        out = out + weights[..., j, None] * v[..., j, :].unsqueeze(-2)
    return out

# %% attention/soft_lookup | wrong | multiplies by the temperature
from course_lib.attention import dot_scores, softmax, weighted_sum


def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    out = weighted_sum(softmax(dot_scores(q, keys) * temperature), values)
    return out.squeeze(-2) if one else out

# %% attention/soft_lookup | wrong | divides by the root of the size as well
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    scores = q @ keys.mT / (temperature * keys.shape[-1] ** 0.5)
    out = scores.softmax(-1) @ values
    return out.squeeze(-2) if one else out

# %% attention/soft_lookup | wrong | one query's answer keeps its axis of one
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    q = query.unsqueeze(-2) if query.dim() == keys.dim() - 1 else query
    return torch.softmax(q @ keys.mT / temperature, dim=-1) @ values

# %% attention/soft_lookup | wrong | many queries are not thought of: the example has a single one
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    scores = (keys @ query.unsqueeze(-1)).squeeze(-1) / temperature
    return (torch.softmax(scores, -1).unsqueeze(-2) @ values).squeeze(-2)

# %% attention/soft_lookup | wrong | weights over the queries instead of the keys
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    out = torch.softmax(q @ keys.mT / temperature, dim=-2) @ values
    return out.squeeze(-2) if one else out

# %% attention/soft_lookup | wrong | squeezes whatever has size one, so a list of one query loses its axis
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    q = query if query.dim() == keys.dim() else query.unsqueeze(-2)
    return (torch.softmax(q @ keys.mT / temperature, dim=-1) @ values).squeeze(-2)

# %% attention/soft_lookup | wrong | the temperature divides the weights, after the softmax
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    out = torch.softmax(q @ keys.mT, dim=-1) / temperature @ values
    return out.squeeze(-2) if one else out

# %% attention/soft_lookup | right | einsum for both cases, and the softmax by log_softmax
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    if query.dim() < keys.dim():
        logs = torch.einsum("...d,...kd->...k", query, keys) / temperature
        return torch.einsum("...k,...kv->...v", logs.log_softmax(-1).exp(), values)
    logs = torch.einsum("...qd,...kd->...qk", query, keys) / temperature
    return torch.einsum("...qk,...kv->...qv", logs.log_softmax(-1).exp(), values)
