# %% attention/softmax | right | log-domain: subtracts logsumexp, with masked rows repaired afterwards by where
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    mask = mask.broadcast_to(scores.shape)
    alive = mask.any(-1, keepdim=True)
    safe = torch.where(mask, scores, float("-inf"))
    safe = torch.where(alive, safe, 0.0)
    weights = torch.exp(safe - torch.logsumexp(safe, dim=-1, keepdim=True))
    return torch.where(mask, weights, 0.0)


# %% attention/softmax | wrong | the softmax runs over the queries
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    # TODO: a key that may not be looked at gets the score minus infinity
    # TODO: subtract the largest score of the row, which changes no weight but keeps exp finite
    # TODO: divide by the sum of the row; a fully masked row has the sum 0 and stays 0
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    dim = -2 if scores.dim() > 1 else -1
    top = scores.amax(dim, keepdim=True).clamp(min=-1e30)
    e = (scores - top).exp()
    total = e.sum(dim, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)


# %% attention/softmax | wrong | does not subtract the largest score, so large scores overflow
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    # TODO: a key that may not be looked at gets the score minus infinity
    # TODO: subtract the largest score of the row, which changes no weight but keeps exp finite
    # TODO: divide by the sum of the row; a fully masked row has the sum 0 and stays 0
    e = torch.exp(scores)
    if mask is not None:
        e = e * mask
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, torch.ones_like(total), total)


# %% attention/softmax | wrong | zeroes the weights after the division, so rows no longer sum to one
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    top = scores.amax(-1, keepdim=True)
    e = (scores - top).exp()
    w = e / e.sum(-1, keepdim=True)
    return w if mask is None else w * mask


# %% attention/softmax | wrong | the mask is inverted: True is hidden
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is not None:
        scores = scores.masked_fill(mask, -torch.inf)
    top = scores.amax(-1, keepdim=True)
    top = torch.where(top.isinf(), 0.0, top)
    e = torch.exp(scores - top)
    s = e.sum(-1, keepdim=True)
    return e / torch.where(s == 0, 1.0, s)


# %% attention/softmax | wrong | calls torch.softmax, and a fully masked row is NaN
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1)


# %% attention/softmax | wrong | adds minus infinity and repairs NaN with nan_to_num, but the gradient of a masked row stays NaN
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    # TODO: a key that may not be looked at gets the score minus infinity
    # TODO: subtract the largest score of the row, which changes no weight but keeps exp finite
    # TODO: divide by the sum of the row; a fully masked row has the sum 0 and stays 0
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, dim=-1))


# %% attention/softmax | wrong | hidden scores get -1e4, so a fully masked row is even, not zero
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is not None:
        scores = torch.where(mask, scores, -1e4)
    shifted = scores - scores.amax(-1, keepdim=True)
    return shifted.exp() / shifted.exp().sum(-1, keepdim=True)


# %% attention/softmax | wrong | hidden scores become 0 before the exponential, which still weighs something
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is not None:
        scores = scores * mask
    shifted = scores - scores.max(-1, keepdim=True).values
    e = shifted.exp()
    return e / e.sum(-1, keepdim=True)


# %% attention/softmax | wrong | subtracts the largest score of the whole tensor, so that low rows vanish
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    top = scores.max()
    top = torch.where(top.isinf(), 0.0, top)
    e = torch.exp(scores - top)
    s = e.sum(-1, keepdim=True)
    return e / torch.where(s == 0, 1.0, s)


# %% attention/softmax | wrong | adds a small epsilon to the sum, so no row sums to one exactly
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    top = scores.amax(-1, keepdim=True)
    e = (scores - torch.where(top.isinf(), 0.0, top)).exp()
    return e / (e.sum(-1, keepdim=True) + 1e-2)


# %% attention/softmax | wrong | masks the caller's scores in place
def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    if mask is not None:
        with torch.no_grad():
            scores.masked_fill_(~mask, -torch.inf)
    top = scores.amax(-1, keepdim=True)
    e = (scores - torch.where(top.isinf(), 0.0, top)).exp()
    s = e.sum(-1, keepdim=True)
    return e / torch.where(s == 0, 1.0, s)


# %% attention/dot_scores | right | broadcasts every query against every key, and sums
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    return (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(dim=-1)


# %% attention/dot_scores | wrong | keys in the rows, queries in the columns
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    # TODO: multiply each query with each key, and sum over their common axis
    return k @ q.transpose(-1, -2)


# %% attention/dot_scores | wrong | k.T turns round all axes, the batch as well
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    return q @ k.T


# %% attention/dot_scores | wrong | divides by the root of d_k, which is not asked here
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


# %% attention/dot_scores | wrong | cosine: brings both to length one
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    q = q / q.norm(dim=-1, keepdim=True)
    k = k / k.norm(dim=-1, keepdim=True)
    return q @ k.transpose(-2, -1)


# %% attention/dot_scores | wrong | scores each query against the key of the same place only
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    return (q * k).sum(-1)


# %% attention/dot_scores | wrong | forgets the transpose, which works for square ones only
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    # TODO: multiply each query with each key, and sum over their common axis
    return q @ k


# %% attention/dot_scores | wrong | einsum without the batch: works for matrices only
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    return einsum(q, k, "i d, j d -> i j")


# %% attention/dot_scores | wrong | a loop that writes numbers into a float32 table, without gradient
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    # TODO: multiply each query with each key, and sum over their common axis
    table = torch.zeros(*q.shape[:-1], k.shape[-2])
    with torch.no_grad():
        for i in range(q.shape[-2]):
            for j in range(k.shape[-2]):
                table[..., i, j] = (q[..., i, :] * k[..., j, :]).sum(-1)
    return table


# %% attention/dot_scores | wrong | already applies the softmax
def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    return torch.softmax(q @ k.transpose(-2, -1), dim=-1)


# %% attention/bilinear_scores | right | carries the keys over instead of the queries
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: s_ij = q_i W k_j.

    Source: Luong et al. 2015, eq. 8 ("general").
    """
    # TODO: carry the queries into the space of the keys, then take dot products
    carried = torch.einsum("qk,...jk->...jq", w, k)
    return torch.matmul(q, carried.transpose(-1, -2))


# %% attention/bilinear_scores | wrong | transposes the matrix (right for square sizes in shape only)
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: s_ij = q_i W k_j.

    Source: Luong et al. 2015, eq. 8 ("general").
    """
    return q @ w.T @ k.transpose(-1, -2)


# %% attention/bilinear_scores | wrong | forgets the matrix
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: s_ij = q_i W k_j.

    Source: Luong et al. 2015, eq. 8 ("general").
    """
    return q @ k.transpose(-1, -2)


# %% attention/bilinear_scores | wrong | returns keys by queries
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: s_ij = q_i W k_j.

    Source: Luong et al. 2015, eq. 8 ("general").
    """
    return k @ w.T @ q.transpose(-1, -2)


# %% attention/bilinear_scores | wrong | divides by the root of the keys' size
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: s_ij = q_i W k_j.

    Source: Luong et al. 2015, eq. 8 ("general").
    """
    return q @ w @ k.mT / k.shape[-1] ** 0.5


# %% attention/bilinear_scores | wrong | applies the matrix to both, as if it were a shared projection
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: s_ij = q_i W k_j.

    Source: Luong et al. 2015, eq. 8 ("general").
    """
    # TODO: carry the queries into the space of the keys, then take dot products
    return (q @ w) @ (k @ w).transpose(-1, -2)


# %% attention/bilinear_scores | wrong | mT forgotten: k.T moves the batch axes
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: s_ij = q_i W k_j.

    Source: Luong et al. 2015, eq. 8 ("general").
    """
    return q @ w @ k.T


# %% attention/bilinear_scores | wrong | scores same places only
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: s_ij = q_i W k_j.

    Source: Luong et al. 2015, eq. 8 ("general").
    """
    # TODO: carry the queries into the space of the keys, then take dot products
    return (q @ w * k).sum(-1)


# %% attention/bilinear_scores | wrong | the matrix gets no gradient
def bilinear_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w: Float[Tensor, "d_q d_k"],
) -> Float[Tensor, "... query key"]:
    """Score queries against keys of another size: s_ij = q_i W k_j.

    Source: Luong et al. 2015, eq. 8 ("general").
    """
    # TODO: carry the queries into the space of the keys, then take dot products
    return q @ w.data @ k.mT


# %% attention/additive_scores | right | a loop over queries, each with all keys at once
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    keys = k @ w_k
    rows = [torch.tanh(query.unsqueeze(-2) @ w_q + keys) @ v for query in q.unbind(dim=-2)]
    return torch.stack(rows, dim=-2) if rows else q.new_zeros(*q.shape[:-1], k.shape[-2])


# %% attention/additive_scores | wrong | squashes each part before the sum
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    a = torch.tanh(q @ w_q).unsqueeze(-2)
    b = torch.tanh(k @ w_k).unsqueeze(-3)
    return (a + b) @ v


# %% attention/additive_scores | wrong | forgets the tanh
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    return ((q @ w_q).unsqueeze(-2) + (k @ w_k).unsqueeze(-3)) @ v


# %% attention/additive_scores | wrong | returns keys by queries
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    # TODO: bring queries and keys to the same size
    # TODO: add every query to every key
    # TODO: squash each sum, and weigh its entries by v
    return torch.tanh((q @ w_q).unsqueeze(-3) + (k @ w_k).unsqueeze(-2)) @ v


# %% attention/additive_scores | wrong | multiplies the two parts instead of adding them
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    # TODO: bring queries and keys to the same size
    # TODO: add every query to every key
    # TODO: squash each sum, and weigh its entries by v
    return torch.tanh((q @ w_q).unsqueeze(-2) * (k @ w_k).unsqueeze(-3)) @ v


# %% attention/additive_scores | wrong | adds query i to key i only
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    return torch.tanh(q @ w_q + k @ w_k) @ v


# %% attention/additive_scores | wrong | weighs by v inside the tanh
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    return torch.tanh(((q @ w_q).unsqueeze(-2) + (k @ w_k).unsqueeze(-3)) * v).sum(-1)


# %% attention/additive_scores | wrong | sums the entries and leaves v out
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    # TODO: bring queries and keys to the same size
    # TODO: add every query to every key
    # TODO: squash each sum, and weigh its entries by v
    return torch.tanh((q @ w_q).unsqueeze(-2) + (k @ w_k).unsqueeze(-3)).sum(-1)


# %% attention/additive_scores | wrong | uses einops on fixed axes, so a batch fails
from einops import rearrange


def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    a = rearrange(q @ w_q, "i a -> i 1 a")
    b = rearrange(k @ w_k, "j a -> 1 j a")
    return einsum(torch.tanh(a + b), v, "i j a, a -> i j")


# %% attention/additive_scores | wrong | a sigmoid in the place of tanh
def additive_scores(
    q: Float[Tensor, "... query d_q"],
    k: Float[Tensor, "... key d_k"],
    w_q: Float[Tensor, "d_q d_a"],
    w_k: Float[Tensor, "d_k d_a"],
    v: Float[Tensor, " d_a"],
) -> Float[Tensor, "... query key"]:
    """Score by a small network: s_ij = v . tanh(q_i W_q + k_j W_k).

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    # TODO: bring queries and keys to the same size
    # TODO: add every query to every key
    # TODO: squash each sum, and weigh its entries by v
    return torch.sigmoid((q @ w_q)[..., :, None, :] + (k @ w_k)[..., None, :, :]) @ v


# %% attention/weighted_sum | right | adds up outer products, one key after another
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    total = weights.new_zeros(*weights.shape[:-1], v.shape[-1])
    for j in range(v.shape[-2]):
        total = total + weights[..., :, j, None] * v[..., j, None, :]
    return total


# %% attention/weighted_sum | wrong | transposes the weights, so it sums over the queries
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    return weights.transpose(-1, -2) @ v


# %% attention/weighted_sum | wrong | divides by the number of keys besides
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    return weights @ v / v.shape[-2]


# %% attention/weighted_sum | wrong | normalises the weights once more
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    return (weights / weights.sum(-1, keepdim=True)) @ v


# %% attention/weighted_sum | wrong | applies a softmax to the weights
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    return torch.softmax(weights, dim=-1) @ v


# %% attention/weighted_sum | wrong | takes the value of the largest weight only
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    best = weights.argmax(-1)
    return torch.gather(v, -2, best.unsqueeze(-1).expand(*best.shape, v.shape[-1]))


# %% attention/weighted_sum | wrong | torch.mm knows no batch
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    # TODO: multiply each value by its weight, and sum over the keys
    return torch.mm(weights, v)


# %% attention/weighted_sum | wrong | the weights are treated as constants
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    return weights.detach() @ v


# %% attention/weighted_sum | wrong | forgets the sum over the keys
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    return weights.unsqueeze(-1) * v.unsqueeze(-3)


# %% attention/soft_lookup | right | always works with a list of queries, by indexing with None
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    single = query.dim() == keys.dim() - 1
    asked = query[..., None, :] if single else query
    shares = softmax(dot_scores(asked / temperature, keys))
    answer = torch.einsum("...qk,...kv->...qv", shares, values)
    return answer[..., 0, :] if single else answer


# %% attention/soft_lookup | wrong | multiplies by the temperature
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    out = weighted_sum(softmax(dot_scores(q, keys) * temperature), values)
    return out.squeeze(-2) if one else out


# %% attention/soft_lookup | wrong | ignores the temperature
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    out = weighted_sum(softmax(dot_scores(q, keys)), values)
    return out.squeeze(-2) if one else out


# %% attention/soft_lookup | wrong | one query comes back as a list of one
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    if query.dim() == keys.dim() - 1:
        query = query.unsqueeze(-2)
    return weighted_sum(softmax(dot_scores(query, keys) / temperature), values)


# %% attention/soft_lookup | wrong | takes one query only
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    # TODO: treat one query as a list of one
    # TODO: score the queries against the keys; a low temperature makes differences large
    # TODO: average the values with these weights
    return softmax(keys @ query / temperature) @ values


# %% attention/soft_lookup | wrong | a batch of tables with one query each is mistaken for several queries (dim() == 1 test)
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    # TODO: treat one query as a list of one
    # TODO: score the queries against the keys; a low temperature makes differences large
    # TODO: average the values with these weights
    if query.dim() == 1:
        return soft_lookup(query.unsqueeze(0), keys, values, temperature).squeeze(-2)
    return weighted_sum(softmax(dot_scores(query, keys) / temperature), values)


# %% attention/soft_lookup | wrong | divides after the softmax
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    # TODO: treat one query as a list of one
    # TODO: score the queries against the keys; a low temperature makes differences large
    # TODO: average the values with these weights
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    out = weighted_sum(softmax(dot_scores(q, keys)) / temperature, values)
    return out.squeeze(-2) if one else out


# %% attention/soft_lookup | wrong | divides by the root of d_k as well
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    scores = dot_scores(q, keys) / (temperature * keys.shape[-1] ** 0.5)
    out = weighted_sum(softmax(scores), values)
    return out.squeeze(-2) if one else out


# %% attention/soft_lookup | wrong | averages the keys instead of the values
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    # TODO: treat one query as a list of one
    # TODO: score the queries against the keys; a low temperature makes differences large
    # TODO: average the values with these weights
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    out = weighted_sum(softmax(dot_scores(q, keys) / temperature), keys)
    return out.squeeze(-2) if one else out


# %% attention/soft_lookup | wrong | a hard lookup: the value of the best key
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    # TODO: treat one query as a list of one
    # TODO: score the queries against the keys; a low temperature makes differences large
    # TODO: average the values with these weights
    one = query.dim() == keys.dim() - 1
    q = query.unsqueeze(-2) if one else query
    best = (dot_scores(q, keys) / temperature).argmax(-1, keepdim=True)
    out = torch.take_along_dim(values, best, dim=-2)
    return out.squeeze(-2) if one else out


# %% attention/softmax | wrong | through numpy: the gradient is lost
import numpy as np


def softmax(
    scores: Float[Tensor, "*rows key"], mask: Bool[Tensor, "*#rows #key"] | None = None
) -> Float[Tensor, "*rows key"]:
    """Turn each row of scores into weights that sum to one: w_j = exp(s_j) / sum_l exp(s_l).

    Large scores stay finite. Where `mask` is False the weight is 0; a row with every key masked
    is all zeros, and so is its gradient.

    >>> softmax(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    # TODO: a key that may not be looked at gets the score minus infinity
    # TODO: subtract the largest score of the row, which changes no weight but keeps exp finite
    # TODO: divide by the sum of the row; a fully masked row has the sum 0 and stays 0
    s = scores.detach().cpu().numpy()
    m = np.ones(s.shape, bool) if mask is None else np.broadcast_to(mask.numpy(), s.shape)
    low = np.where(m, s, -np.inf)
    top = low.max(axis=-1, keepdims=True)
    e = np.exp(low - np.where(np.isinf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    return torch.from_numpy(e / np.where(total == 0, 1, total)).to(scores.dtype)


# %% attention/weighted_sum | wrong | beginner's loops with .item(), which lose gradient and batch
def weighted_sum(
    weights: Float[Tensor, "... query key"], v: Float[Tensor, "... key d_v"]
) -> Float[Tensor, "... query d_v"]:
    """Average the values, each query with its own weights: o_i = sum_j w_ij v_j."""
    out = []
    for i in range(weights.shape[0]):
        row = []
        for d in range(v.shape[1]):
            total = 0.0
            for j in range(v.shape[0]):
                total += weights[i, j].item() * v[j, d].item()
            row.append(total)
        out.append(row)
    return torch.tensor(out, dtype=v.dtype)


# %% attention/dot_scores | wrong | numpy's dot, which pairs up the batches as well
import numpy as np


def dot_scores(
    q: Float[Tensor, "... query d_k"], k: Float[Tensor, "... key d_k"]
) -> Float[Tensor, "... query key"]:
    """Score every query against every key by their dot product: s_ij = q_i . k_j.

    Source: Luong et al. 2015, eq. 8 ("dot").

    >>> dot_scores(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 5.0], [3.0, 7.0]]))
    tensor([[2., 3.]])
    """
    return torch.from_numpy(np.dot(q.detach().numpy(), np.swapaxes(k.detach().numpy(), -1, -2)))


# %% attention/soft_lookup | wrong | the temperature is squared, as a variance
def soft_lookup(
    query: Float[Tensor, "... d_k"],
    keys: Float[Tensor, "... key d_k"],
    values: Float[Tensor, "... key d_v"],
    temperature: float,
) -> Float[Tensor, "... d_v"]:
    """Look a query up in a table of keys and values, softly: softmax(q . k / temperature) V.

    Takes one query (d_k) or several (n_q, d_k) a table. As the temperature falls, the weight
    gathers on the nearest key, and the result tends to a hard lookup.
    """
    # TODO: treat one query as a list of one
    # TODO: score the queries against the keys; a low temperature makes differences large
    # TODO: average the values with these weights
    one = query.dim() == keys.dim() - 1
    q = query[..., None, :] if one else query
    out = softmax(q @ keys.mT / temperature**2) @ values
    return out[..., 0, :] if one else out
