# %% add_norm/layer_norm | right | variance as mean of squares about the mean, by dot products
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    d = x.shape[-1]
    ones = x.new_ones(d, 1) / d
    away = x - x @ ones
    variance = (away * away) @ ones
    return away * torch.rsqrt(variance + eps) * gain + bias


# %% add_norm/layer_norm | wrong | x.var divides by d - 1
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    mean = x.mean(-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(x.var(-1, keepdim=True) + eps) + bias


# %% add_norm/layer_norm | wrong | eps is added to the standard deviation, outside the root
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    away = x - x.mean(-1, keepdim=True)
    std = away.square().mean(-1, keepdim=True).sqrt()
    return gain * away / (std + eps) + bias


# %% add_norm/layer_norm | wrong | divides by the variance, without the root
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    away = x - x.mean(-1, keepdim=True)
    return gain * away / ((away**2).mean(-1, keepdim=True) + eps) + bias


# %% add_norm/layer_norm | wrong | over the words instead of the columns
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    away = x - x.mean(-2, keepdim=True)
    return gain * away / ((away**2).mean(-2, keepdim=True) + eps).sqrt() + bias


# %% add_norm/layer_norm | wrong | one mean and variance for the whole tensor
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    # TODO: move the mean of each word to zero
    # TODO: average the squares of what is left: that is the variance
    # TODO: divide by the standard deviation, then stretch and shift each column as learned
    away = x - x.mean()
    return gain * away / (away.square().mean() + eps).sqrt() + bias


# %% add_norm/layer_norm | wrong | gain and bias are left out
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    away = x - x.mean(-1, keepdim=True)
    return away / (away.square().mean(-1, keepdim=True) + eps).sqrt()


# %% add_norm/layer_norm | wrong | the bias is added before the gain multiplies
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    away = x - x.mean(-1, keepdim=True)
    return gain * (away / (away.square().mean(-1, keepdim=True) + eps).sqrt() + bias)


# %% add_norm/layer_norm | wrong | ignores the eps it is given
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    away = x - x.mean(-1, keepdim=True)
    return gain * away / (away.square().mean(-1, keepdim=True) + 1e-5).sqrt() + bias


# %% add_norm/layer_norm | wrong | the statistics are constants for the gradient
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    with torch.no_grad():
        mean = x.mean(-1, keepdim=True)
        std = (x.var(-1, keepdim=True, correction=0) + eps).sqrt()
    return gain * (x - mean) / std + bias


# %% add_norm/layer_norm | wrong | squares not centred: the mean of x^2 stands for the variance
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    # TODO: move the mean of each word to zero
    # TODO: average the squares of what is left: that is the variance
    # TODO: divide by the standard deviation, then stretch and shift each column as learned
    mean = x.mean(-1, keepdim=True)
    return gain * (x - mean) / ((x**2).mean(-1, keepdim=True) + eps).sqrt() + bias


# %% add_norm/layer_norm | wrong | mean of squares minus squared mean, which loses its digits for large means
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    # TODO: move the mean of each word to zero
    # TODO: average the squares of what is left: that is the variance
    # TODO: divide by the standard deviation, then stretch and shift each column as learned
    mean = x.mean(-1, keepdim=True)
    variance = (x**2).mean(-1, keepdim=True) - mean**2
    return gain * (x - mean) / (variance + eps).sqrt() + bias


# %% add_norm/rms_norm | right | by the length of the word
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    mean_square = torch.linalg.vecdot(x, x, dim=-1) / x.shape[-1]
    return torch.mul(x, gain) / torch.sqrt(mean_square + eps)[..., None]


# %% add_norm/rms_norm | wrong | subtracts the mean
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    x = x - x.mean(-1, keepdim=True)
    return gain * x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


# %% add_norm/rms_norm | wrong | divides by the length, not the root of the mean square
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    return gain * x / (x.square().sum(-1, keepdim=True) + eps).sqrt()


# %% add_norm/rms_norm | wrong | eps outside the root
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    return gain * x / (x.square().mean(-1, keepdim=True).sqrt() + eps)


# %% add_norm/rms_norm | wrong | the square of the mean instead of the mean of the squares
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    return gain * x / (x.mean(-1, keepdim=True) ** 2 + eps).sqrt()


# %% add_norm/rms_norm | wrong | forgets the gain
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


# %% add_norm/rms_norm | wrong | multiplies by the root
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    return gain * x * (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()


# %% add_norm/rms_norm | wrong | over all words together
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    # TODO: average the squares of each word's entries
    # TODO: divide by the root, then stretch each column as learned
    return gain * x / (x.pow(2).mean() + eps).sqrt()


# %% add_norm/rms_norm | wrong | keepdim forgotten
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    return gain * x / (x.pow(2).mean(-1) + eps).sqrt()


# %% add_norm/rms_norm | wrong | computes in float32 and returns it
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    y = x.float()
    return gain.float() * y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)


# %% add_norm/rms_norm | wrong | the mean absolute value
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    return gain * x / (x.abs().mean(-1, keepdim=True) + eps)


# %% add_norm/batch_norm | right | takes the real words out by indexing, and counts at least one
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    if mask is None:
        mask = x.new_ones(x.shape[:-1], dtype=torch.bool)
    elif mask.dtype is not torch.bool or mask.shape != x.shape[:-1]:
        raise ValueError("the mask must be boolean, one entry a word")
    real = x[mask]
    count = max(len(real), 1)
    mean = real.sum(0) / count
    variance = (real - mean).pow(2).sum(0) / count
    return torch.addcmul(bias, (x - mean) / torch.sqrt(variance + eps), gain)


# %% add_norm/batch_norm | wrong | padding takes part in the mean: the mask is ignored
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape[:2]):
        raise ValueError("mask")
    mean = x.mean((0, 1))
    variance = (x - mean).square().mean((0, 1))
    return gain * (x - mean) / (variance + eps).sqrt() + bias


# %% add_norm/batch_norm | wrong | padding is zeroed, but still counted
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    real = mask.unsqueeze(-1)
    mean = (x * real).mean((0, 1))
    variance = ((x - mean).square() * real).mean((0, 1))
    return gain * (x - mean) / (variance + eps).sqrt() + bias


# %% add_norm/batch_norm | wrong | padded words are set to zero in the result
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    # TODO: without a mask every word is real
    # TODO: give every real word the same share in the averages, and padding none
    # TODO: average each column over all sentences, then the squares of what is left of it
    # TODO: divide by the standard deviation, then stretch and shift each column as learned
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    share = mask.unsqueeze(-1) / mask.sum().clamp(min=1)
    mean = (x * share).sum((0, 1))
    variance = ((x - mean).square() * share).sum((0, 1))
    return (gain * (x - mean) / (variance + eps).sqrt() + bias) * mask.unsqueeze(-1)


# %% add_norm/batch_norm | wrong | statistics for each place, over the batch alone
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    share = mask.unsqueeze(-1) / mask.sum(0)[:, None].clamp(min=1)
    mean = (x * share).sum(0)
    variance = ((x - mean).square() * share).sum(0)
    return gain * (x - mean) / (variance + eps).sqrt() + bias


# %% add_norm/batch_norm | wrong | mean of the sentences' means, so words of short sentences count more
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    share = mask.unsqueeze(-1) / mask.sum(1)[:, None, None].clamp(min=1) / len(x)
    mean = (x * share).sum((0, 1))
    variance = ((x - mean).square() * share).sum((0, 1))
    return gain * (x - mean) / (variance + eps).sqrt() + bias


# %% add_norm/batch_norm | wrong | no real word gives NaN
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    # TODO: without a mask every word is real
    # TODO: give every real word the same share in the averages, and padding none
    # TODO: average each column over all sentences, then the squares of what is left of it
    # TODO: divide by the standard deviation, then stretch and shift each column as learned
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    real = x[mask]
    mean, variance = real.mean(0), real.var(0, correction=0)
    return gain * (x - mean) / (variance + eps).sqrt() + bias


# %% add_norm/batch_norm | wrong | divides the squares by one less than the number of words
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    if mask is None:
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    count = mask.sum()
    mean = x[mask].sum(0) / count.clamp(min=1)
    variance = (x[mask] - mean).square().sum(0) / (count - 1).clamp(min=1)
    return gain * (x - mean) / (variance + eps).sqrt() + bias


# %% add_norm/batch_norm | wrong | a mask of numbers is not refused
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    real = torch.ones_like(x[..., :1]) if mask is None else mask.unsqueeze(-1).to(x)
    share = real / real.sum().clamp(min=1)
    mean = (x * share).sum((0, 1))
    variance = ((x - mean).square() * share).sum((0, 1))
    return gain * (x - mean) / (variance + eps).sqrt() + bias


# %% add_norm/batch_norm | wrong | the mask is read the other way round
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    # TODO: without a mask every word is real
    # TODO: give every real word the same share in the averages, and padding none
    # TODO: average each column over all sentences, then the squares of what is left of it
    # TODO: divide by the standard deviation, then stretch and shift each column as learned
    if mask is None:
        mask = torch.zeros(x.shape[:2], dtype=torch.bool)
    if mask.dtype != torch.bool or mask.shape != x.shape[:2]:
        raise ValueError("mask")
    share = (~mask).unsqueeze(-1) / (~mask).sum().clamp(min=1)
    mean = (x * share).sum((0, 1))
    variance = ((x - mean).square() * share).sum((0, 1))
    return gain * (x - mean) / (variance + eps).sqrt() + bias


# %% add_norm/batch_norm | wrong | layer norm: each word by itself
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape[:2]):
        raise ValueError("mask")
    return layer_norm(x, gain, bias, eps)


# %% add_norm/post_norm | right | a starred tuple, and the norm called by keyword-free names
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        # TODO: add what the sublayer found to what was there
        # TODO: normalise the sum
        found, before = self.sublayer(x, *args), x
        total = torch.stack((before, found)).sum(dim=0)
        return self.norm_layer(total, self.gain, self.bias)


# %% add_norm/post_norm | wrong | pre-norm: the norm stands in the branch
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        return x + self.sublayer(self.norm_layer(x, self.gain, self.bias), *args)


# %% add_norm/post_norm | wrong | the sum is missing
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        # TODO: add what the sublayer found to what was there
        # TODO: normalise the sum
        return self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)


# %% add_norm/post_norm | wrong | normalises what was found, then adds
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        return x + self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)


# %% add_norm/post_norm | wrong | the mask is not handed on
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        return self.norm_layer(x + self.sublayer(x), self.gain, self.bias)


# %% add_norm/post_norm | wrong | always layer_norm, whatever norm was given
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        return layer_norm(x + self.sublayer(x, *args), self.gain, self.bias)


# %% add_norm/post_norm | wrong | the norm is missing
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        return x + self.sublayer(x, *args)


# %% add_norm/post_norm | wrong | gain and bias exchanged
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        return self.norm_layer(x + self.sublayer(x, *args), self.bias, self.gain)


# %% add_norm/post_norm | wrong | args handed on as one tuple
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        return self.norm_layer(x + self.sublayer(x, args), self.gain, self.bias)


# %% add_norm/post_norm | wrong | adds into the caller's x
class PostNorm(nn.Module):
    """Add what a layer found, then normalise: norm(x + sublayer(x)).

    `sublayer` takes words to words of the same size; `norm_layer(x, gain, bias)` normalises.
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the normalised sum; the sublayer gets `args` after x."""
        x += self.sublayer(x, *args)
        return self.norm_layer(x, self.gain, self.bias)


# %% add_norm/pre_norm | right | names each step, and subtracts a negative
class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        # TODO: normalise what the sublayer reads, and nothing else
        # TODO: add what the sublayer found to what was there
        read = self.norm_layer(x, self.gain, self.bias)
        found = self.sublayer(read, *args)
        return x - (-found)


# %% add_norm/pre_norm | wrong | post-norm
class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        return self.norm_layer(x + self.sublayer(x, *args), self.gain, self.bias)


# %% add_norm/pre_norm | wrong | adds to the normalised x
class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        # TODO: normalise what the sublayer reads, and nothing else
        # TODO: add what the sublayer found to what was there
        x = self.norm_layer(x, self.gain, self.bias)
        return x + self.sublayer(x, *args)


# %% add_norm/pre_norm | wrong | normalises what the layer found
class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        # TODO: normalise what the sublayer reads, and nothing else
        # TODO: add what the sublayer found to what was there
        return x + self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)


# %% add_norm/pre_norm | wrong | normalises the sum besides
class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        # TODO: normalise what the sublayer reads, and nothing else
        # TODO: add what the sublayer found to what was there
        read = self.norm_layer(x, self.gain, self.bias)
        return self.norm_layer(x + self.sublayer(read, *args), self.gain, self.bias)


# %% add_norm/pre_norm | wrong | the sum is missing
class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        # TODO: normalise what the sublayer reads, and nothing else
        # TODO: add what the sublayer found to what was there
        return self.sublayer(self.norm_layer(x, self.gain, self.bias), *args)


# %% add_norm/pre_norm | wrong | args are dropped
class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        return x + self.sublayer(self.norm_layer(x, self.gain, self.bias))


# %% add_norm/pre_norm | wrong | F.layer_norm without gain and bias
class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        return x + self.sublayer(F.layer_norm(x, x.shape[-1:]), *args)


# %% add_norm/pre_norm | wrong | the stream is detached
class PreNorm(nn.Module):
    """Normalise what a layer reads, and add what it found: x + sublayer(norm(x)).

    The sum itself is never normalised, so x runs through unchanged. `sublayer` and `norm_layer`
    are as in `PostNorm`. Source: Xiong et al. 2020, figure 1 (b).
    """

    def __init__(self, sublayer: Callable, d_model: int, norm_layer: Callable = layer_norm):
        super().__init__()
        self.sublayer, self.norm_layer = sublayer, norm_layer
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "... d_model"], *args) -> Float[Tensor, "... d_model"]:
        """Return the sum; the sublayer gets the normalised x, and `args` after it."""
        # TODO: normalise what the sublayer reads, and nothing else
        # TODO: add what the sublayer found to what was there
        read = self.norm_layer(x, self.gain, self.bias)
        return x.detach() + self.sublayer(read, *args)


# %% add_norm/erase_direction | right | multiplies by the projection matrix I - u u^T
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    length = torch.linalg.vector_norm(direction)
    if length == 0:
        raise ValueError("a direction of zeros points nowhere")
    u = direction / length
    keep = torch.eye(len(u), dtype=u.dtype, device=u.device) - torch.outer(u, u)
    return stream @ keep


# %% add_norm/erase_direction | wrong | the direction is not brought to length one
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    if not direction.any():
        raise ValueError("zeros")
    return stream - (stream @ direction).unsqueeze(-1) * direction


# %% add_norm/erase_direction | wrong | divides by the length once, where it enters twice
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    # TODO: bring the direction to length one
    # TODO: read how far each word lies along it
    # TODO: add the negative of that part
    if not direction.any():
        raise ValueError("zeros")
    part = stream @ direction / direction.norm()
    return stream - part.unsqueeze(-1) * direction


# %% add_norm/erase_direction | wrong | keeps only the direction
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    if not direction.any():
        raise ValueError("zeros")
    u = direction / direction.norm()
    return (stream @ u).unsqueeze(-1) * u


# %% add_norm/erase_direction | wrong | adds the part instead of taking it off
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    if not direction.any():
        raise ValueError("zeros")
    u = direction / direction.norm()
    return stream + (stream @ u).unsqueeze(-1) * u


# %% add_norm/erase_direction | wrong | subtracts u itself
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    if not direction.any():
        raise ValueError("zeros")
    return stream - direction / direction.norm()


# %% add_norm/erase_direction | wrong | zeroes the columns where the direction is not zero
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    if not direction.any():
        raise ValueError("zeros")
    return torch.where(direction != 0, 0.0, stream)


# %% add_norm/erase_direction | wrong | a direction of zeros gives NaN
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    u = direction / direction.norm()
    return stream - (stream @ u).unsqueeze(-1) * u


# %% add_norm/erase_direction | wrong | F.normalize lets a direction of zeros pass unchanged
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    u = F.normalize(direction, dim=-1)
    return stream - (stream @ u).unsqueeze(-1) * u


# %% add_norm/erase_direction | wrong | works on one vector only
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    # TODO: bring the direction to length one
    # TODO: read how far each word lies along it
    # TODO: add the negative of that part
    if not direction.any():
        raise ValueError("zeros")
    u = direction / direction.norm()
    return stream - torch.dot(stream, u) * u


# %% add_norm/erase_direction | wrong | changes the stream in place
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    if not direction.any():
        raise ValueError("zeros")
    u = direction / direction.norm()
    with torch.no_grad():
        stream -= (stream @ u).unsqueeze(-1) * u
    return stream


# %% add_norm/erase_direction | wrong | a short direction is taken for zeros
def erase_direction(
    stream: Float[Tensor, "... d"], direction: Float[Tensor, " d"]
) -> Float[Tensor, "... d"]:
    """Delete one direction from the residual stream: x - (x . u) u, where u = direction / length.

    A layer deletes by writing the negative of what it read. Source: Elhage et al. 2021, "A
    Mathematical Framework for Transformer Circuits". Raises ValueError for a direction of zeros.

    >>> erase_direction(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    tensor([3., 0.])
    """
    length = direction.norm()
    if length < 1e-3:
        raise ValueError("zeros")
    u = direction / length
    return stream - (stream @ u).unsqueeze(-1) * u


# %% add_norm/layer_norm | wrong | the ready-made F.layer_norm is called, nothing is built (right numbers where all types agree)
def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring each word to mean 0 and variance 1: gain (x - mean) / sqrt(variance + eps) + bias.

    Mean and variance are those of the word's own d entries, each sum divided by d. Source: Ba et
    al. 2016, eq. 4, with eps as in torch.
    """
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


# %% add_norm/rms_norm | wrong | the ready-made F.rms_norm is called, nothing is built (right numbers where all types agree)
def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    return F.rms_norm(x, x.shape[-1:], gain, eps)


# %% add_norm/rms_norm | wrong | numpy's mean, and the gradient is gone
import numpy as np


def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "... d"]:
    """Bring each word to one size, its mean left as it is: gain x / sqrt(mean(x^2) + eps).

    Source: Zhang & Sennrich 2019, eq. 4, with eps as in torch.
    """
    a = x.detach().numpy()
    root = np.sqrt((a**2).mean(axis=-1, keepdims=True) + eps)
    return gain * torch.from_numpy(a / root)


# %% add_norm/batch_norm | wrong | the ready-made F.batch_norm is called, which knows no mask
def batch_norm(
    x: Float[Tensor, "batch n d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    eps: float = 1e-5,
) -> Float[Tensor, "batch n d"]:
    """Bring each column to mean 0 and variance 1 over all real words of the batch.

    gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of each column over the
    words where `mask` is True; padded words are normalised with them too. Where no word is real,
    both are 0. These are the statistics of training; none are kept. Source: Ioffe & Szegedy 2015,
    algorithm 1. Raises ValueError for a mask that is not boolean, or not (batch, n).
    """
    b, n, d = x.shape
    return F.batch_norm(x.reshape(b * n, d), None, None, gain, bias, training=True, eps=eps).reshape(b, n, d)
