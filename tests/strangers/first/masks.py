# %% masks/causal | right | counts for each row how many keys it sees
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    n_k = n_q if n_k is None else n_k
    if n_k < n_q:
        raise ValueError(f"{n_q} queries cannot be the last of {n_k} keys")
    seen = torch.arange(n_k - n_q + 1, n_k + 1)
    return (torch.ones(n_q, n_k, dtype=torch.long).cumsum(-1) <= seen.reshape(n_q, 1))


# %% masks/causal | wrong | hides the diagonal
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    # TODO: without n_k there are as many keys as queries; refuse fewer
    # TODO: let everyone look everywhere
    # TODO: hide what lies right of the diagonal, which ends in the last corner
    n_k = n_q if n_k is None else n_k
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q - 1)


# %% masks/causal | wrong | True where a word may not look
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    n_k = n_q if n_k is None else n_k
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q + 1)


# %% masks/causal | wrong | the queries are the first of the keys
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    n_k = n_q if n_k is None else n_k
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).tril()


# %% masks/causal | wrong | ignores n_k
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    # TODO: without n_k there are as many keys as queries; refuse fewer
    # TODO: let everyone look everywhere
    # TODO: hide what lies right of the diagonal, which ends in the last corner
    if n_k is not None and n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.tril(torch.ones(n_q, n_q)).bool()


# %% masks/causal | wrong | returns zeros and minus infinities
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    n_k = n_q if n_k is None else n_k
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.full((n_q, n_k), -torch.inf).triu(n_k - n_q + 1)


# %% masks/causal | wrong | returns ones and zeros, no booleans
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    n_k = n_q if n_k is None else n_k
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.tril(torch.ones(n_q, n_k), diagonal=n_k - n_q)


# %% masks/causal | wrong | fewer keys than queries are not refused
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    if n_k is None:
        n_k = n_q
    return torch.arange(n_k)[None] <= torch.arange(n_q)[:, None] + n_k - n_q


# %% masks/causal | wrong | looks one word too far
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    n_k = n_k or n_q
    if n_k < n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k).tril(n_k - n_q + 1).bool()


# %% masks/causal | wrong | as many keys as queries are refused too
def causal_mask(n_q: int, n_k: int | None = None) -> Bool[Tensor, "query key"]:
    """Let each word look at itself and at the words before it: True where j <= i + n_k - n_q.

    The queries are the last n_q of the n_k keys; without `n_k` there are as many keys as queries.
    Source: Vaswani et al. 2017, section 3.2.3. Raises ValueError for fewer keys than queries.

    >>> causal_mask(2, 4).long()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]])
    """
    if n_k is None:
        return torch.ones(n_q, n_q, dtype=torch.bool).tril()
    if n_k <= n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)


# %% masks/padding | right | a row of Trues and Falses for each sentence, stacked
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if any(not 0 <= length <= n for length in lengths.tolist()):
        raise ValueError("a length lies between 0 and n")
    rows = [[True] * length + [False] * (n - length) for length in lengths.tolist()]
    return torch.tensor(rows, dtype=torch.bool, device=lengths.device).reshape(-1, 1, n)


# %% masks/padding | wrong | one place too many
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    # TODO: number the places of a sentence
    # TODO: a place is real while it is smaller than the length of its sentence
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > n):
        raise ValueError("lengths")
    return (torch.arange(n) <= lengths[:, None])[:, None]


# %% masks/padding | wrong | without the middle axis
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > n):
        raise ValueError("lengths")
    return torch.arange(n) < lengths[:, None]


# %% masks/padding | wrong | the axis of one stands last
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > n):
        raise ValueError("lengths")
    return (torch.arange(n) < lengths[:, None]).unsqueeze(-1)


# %% masks/padding | wrong | True on the filling
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > n):
        raise ValueError("lengths")
    return torch.arange(n) >= lengths[:, None, None]


# %% masks/padding | wrong | n rows: expanded to the queries
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > n):
        raise ValueError("lengths")
    return (torch.arange(n) < lengths[:, None, None]).expand(-1, n, n)


# %% masks/padding | wrong | n is taken from the longest sentence
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > n):
        raise ValueError("lengths")
    longest = int(lengths.max())
    return torch.arange(longest) < lengths[:, None, None]


# %% masks/padding | wrong | filling at the beginning
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    # TODO: number the places of a sentence
    # TODO: a place is real while it is smaller than the length of its sentence
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > n):
        raise ValueError("lengths")
    return torch.arange(n) >= n - lengths[:, None, None]


# %% masks/padding | wrong | a length greater than n is not refused
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if (lengths < 0).any():
        raise ValueError("negative")
    return torch.arange(n, device=lengths.device) < lengths[:, None, None]


# %% masks/padding | wrong | negative lengths are not refused
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if (lengths > n).any():
        raise ValueError("too long")
    return torch.arange(n, device=lengths.device) < lengths[:, None, None]


# %% masks/padding | wrong | a length of zero is refused
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if ((lengths <= 0) | (lengths > n)).any():
        raise ValueError("lengths")
    return torch.arange(n, device=lengths.device) < lengths[:, None, None]


# %% masks/padding | wrong | int numbers 1 and 0
def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """Let every word look at the real words of its sentence: True where j < length.

    Sentences of unequal lengths are filled up to n words at their ends. The middle axis stands
    for the queries, which all see the same words. Raises ValueError for lengths that are negative
    or greater than n.

    >>> padding_mask(torch.tensor([3, 1]), n=4).long().tolist()
    [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]
    """
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > n):
        raise ValueError("lengths")
    mask = torch.zeros(len(lengths), 1, n, dtype=torch.long)
    for i, length in enumerate(lengths):
        mask[i, 0, :length] = 1
    return mask


# %% masks/shift_right | right | pads on the left with the start, then narrows
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    n = tokens.shape[-1]
    return nn.functional.pad(tokens, (1, 0), value=start).narrow(-1, 0, n)


# %% masks/shift_right | wrong | shifts left
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    end = torch.full_like(tokens[..., :1], start)
    return torch.cat([tokens[..., 1:], end], dim=-1)


# %% masks/shift_right | wrong | keeps the last token, so there is one too many
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    # TODO: put the start before every sentence
    # TODO: drop the last token, after which nothing is predicted
    first = torch.full_like(tokens[..., :1], start)
    return torch.cat([first, tokens], dim=-1)


# %% masks/shift_right | wrong | rolls: the last token comes first
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    return tokens.roll(1, dims=-1)


# %% masks/shift_right | wrong | overwrites the first token instead of shifting
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    # TODO: put the start before every sentence
    # TODO: drop the last token, after which nothing is predicted
    out = tokens.clone()
    out[..., 0] = start
    return out


# %% masks/shift_right | wrong | writes the start into the caller's tokens
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    # TODO: put the start before every sentence
    # TODO: drop the last token, after which nothing is predicted
    tokens[..., 1:] = tokens[..., :-1].clone()
    tokens[..., 0] = start
    return tokens


# %% masks/shift_right | wrong | the copy runs over itself: every place becomes the start
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    # TODO: put the start before every sentence
    # TODO: drop the last token, after which nothing is predicted
    out = tokens.clone()
    out[..., 0] = start
    for i in range(1, out.shape[-1]):
        out[..., i] = out[..., i - 1]
    return out


# %% masks/shift_right | wrong | shifts the sentences of the batch, not their tokens
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    first = torch.full_like(tokens[:1], start)
    return torch.cat([first, tokens[:-1]])


# %% masks/shift_right | wrong | ignores the start and puts 0
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    out = torch.zeros_like(tokens)
    out[..., 1:] = tokens[..., :-1]
    return out


# %% masks/shift_right | wrong | the start is a float tensor, so tokens become floats
def shift_right(tokens: Int[Tensor, "... n"], start: int) -> Int[Tensor, "... n"]:
    """Make the decoder's inputs from its targets: (start, t_1, ..., t_(n-1)).

    Where t_i is to be predicted, only the tokens before it have been read. Source: Vaswani et al.
    2017, section 3.1 and figure 1 ("shifted right").

    >>> shift_right(torch.tensor([7, 8, 9]), start=1)
    tensor([1, 7, 8])
    """
    first = torch.full((*tokens.shape[:-1], 1), float(start))
    return torch.cat([first, tokens[..., :-1]], dim=-1)


# %% masks/leaks_future | right | compares all outputs before the changed word, place by place
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    # TODO: draw how far to move each entry
    # TODO: note what the layer returns for the words as they are
    # TODO: change one word at a time, and all the others not
    # TODO: see which states moved, in any sentence and any of their entries
    # TODO: keep those to the left of the word
    n, found = x.shape[-2], set()
    with torch.no_grad():
        generator = torch.Generator().manual_seed(7)
        step = 10 * (1 + torch.rand(x.shape[-1], generator=generator)).to(x)
        step = step * torch.where(torch.rand(x.shape[-1], generator=generator) < 0.5, -1.0, 1.0).to(x)
        rest = layer(x.clone())
        for j in range(1, n):
            for sign in (-1, 1):
                moved = x.clone()
                moved[..., j, :] = moved[..., j, :] + sign * step
                now = layer(moved)
                for i in range(j):
                    one, two = rest[..., i, :], now[..., i, :]
                    if not torch.allclose(one, two, rtol=1e-4, atol=1e-5, equal_nan=True):
                        found.add(i)
    return sorted(found)


# %% masks/leaks_future | wrong | lists the words whose change is seen, not the positions that see
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    n, found = x.shape[-2], []
    rest = layer(x)
    noise = 5 * torch.randn(x.shape[-1])
    for j in range(1, n):
        seen = False
        for sign in (1, -1):
            other = x.clone()
            other[..., j, :] += sign * noise
            seen |= not torch.allclose(layer(other)[..., :j, :], rest[..., :j, :], rtol=1e-4, atol=1e-5, equal_nan=True)
        if seen:
            found.append(j)
    return found


# %% masks/leaks_future | wrong | changes the last word only
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    rest, other = layer(x), x.clone()
    leaks = torch.zeros(x.shape[-2], dtype=torch.bool)
    for sign in (1, -1):
        other = x.clone()
        other[..., -1, :] += sign * 5 * torch.randn_like(x[..., -1, :])
        moved = (layer(other) - rest).abs() > 1e-5
        leaks |= moved.flatten(0, -3).any(0).any(-1) if moved.dim() > 2 else moved.any(-1)
    return leaks[:-1].nonzero().flatten().tolist()


# %% masks/leaks_future | wrong | the word itself counts as its future
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    n, leaks = x.shape[-2], set()
    rest, noise = layer(x), 5 * torch.randn(x.shape[-1])
    for j in range(n):
        for sign in (1, -1):
            other = x.clone()
            other[..., j, :] += sign * noise
            out = layer(other)
            for i in range(j + 1):
                if not torch.allclose(out[..., i, :], rest[..., i, :], rtol=1e-4, atol=1e-5, equal_nan=True):
                    leaks.add(i)
    return sorted(leaks)


# %% masks/leaks_future | wrong | changes the caller's words and does not put them back
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    n, leaks = x.shape[-2], set()
    rest, noise = layer(x), 5 * torch.randn(x.shape[-1])
    with torch.no_grad():
        for j in range(n - 1, 0, -1):
            for sign in (1, -2):
                x[..., j, :] += sign * noise
                out = layer(x)
                for i in range(j):
                    if not torch.allclose(out[..., i, :], rest[..., i, :], rtol=1e-4, atol=1e-5, equal_nan=True):
                        leaks.add(i)
    return sorted(leaks)


# %% masks/leaks_future | wrong | moves words by a constant, which a norm takes back
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    n, leaks = x.shape[-2], set()
    rest = layer(x)
    for j in range(1, n):
        for sign in (1, -1):
            other = x.clone()
            other[..., j, :] += sign * 10
            out = layer(other)
            for i in range(j):
                if not torch.allclose(out[..., i, :], rest[..., i, :], rtol=1e-4, atol=1e-5, equal_nan=True):
                    leaks.add(i)
    return sorted(leaks)


# %% masks/leaks_future | wrong | looks to the right: lists positions that see the past
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    # TODO: draw how far to move each entry
    # TODO: note what the layer returns for the words as they are
    # TODO: change one word at a time, and all the others not
    # TODO: see which states moved, in any sentence and any of their entries
    # TODO: keep those to the left of the word
    n, leaks = x.shape[-2], set()
    rest, noise = layer(x), 5 * torch.randn(x.shape[-1])
    for j in range(n - 1):
        for sign in (1, -1):
            other = x.clone()
            other[..., j, :] += sign * noise
            out = layer(other)
            for i in range(j + 1, n):
                if not torch.allclose(out[..., i, :], rest[..., i, :], rtol=1e-4, atol=1e-5, equal_nan=True):
                    leaks.add(i)
    return sorted(leaks)


# %% masks/leaks_future | wrong | compares bit by bit, so rounding counts as moving
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    n, leaks = x.shape[-2], set()
    rest, noise = layer(x), 5 * torch.randn(x.shape[-1])
    for j in range(1, n):
        for sign in (1, -1):
            other = x.clone()
            other[..., j, :] += sign * noise
            out = layer(other)
            leaks |= {i for i in range(j) if not torch.equal(out[..., i, :], rest[..., i, :])}
    return sorted(leaks)


# %% masks/leaks_future | wrong | what was NaN and stays NaN counts as moved
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    n, leaks = x.shape[-2], set()
    rest, noise = layer(x), 5 * torch.randn(x.shape[-1])
    for j in range(1, n):
        for sign in (1, -1):
            other = x.clone()
            other[..., j, :] += sign * noise
            out = layer(other)
            for i in range(j):
                if not torch.allclose(out[..., i, :], rest[..., i, :], rtol=1e-4, atol=1e-5):
                    leaks.add(i)
    return sorted(leaks)


# %% masks/leaks_future | wrong | returns a mask instead of a list of positions
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    n = x.shape[-2]
    rest, noise = layer(x), 5 * torch.randn(x.shape[-1])
    leaks = torch.zeros(n, dtype=torch.bool)
    for j in range(1, n):
        for sign in (1, -1):
            other = x.clone()
            other[..., j, :] += sign * noise
            moved = ~torch.isclose(layer(other), rest, rtol=1e-4, atol=1e-5, equal_nan=True)
            moved = moved.any(-1).reshape(-1, n).any(0)
            leaks[:j] |= moved[:j]
    return leaks


# %% masks/leaks_future | wrong | moves words by a hair, which looks like rounding
def leaks_future(layer: Callable, x: Float[Tensor, "... n d"]) -> list[int]:
    """Find the positions, from 0, whose output moves when a later input moves.

    A causal layer gives the empty list; the last position, which has no future, is never in it.
    `layer` takes words (..., n, d) to states (..., n, d_out), the same each time (no dropout).
    Each word is moved far, at random, once up and once down, so that neither a norm nor a relu
    takes it back. What moves no more than rounding does is taken to rest, and so is what was NaN
    and stays NaN.
    """
    n, leaks = x.shape[-2], set()
    rest, noise = layer(x), 1e-6 * torch.randn(x.shape[-1])
    for j in range(1, n):
        for sign in (1, -1):
            other = x.clone()
            other[..., j, :] += sign * noise
            out = layer(other)
            for i in range(j):
                if not torch.allclose(out[..., i, :], rest[..., i, :], rtol=1e-4, atol=1e-5, equal_nan=True):
                    leaks.add(i)
    return sorted(leaks)
