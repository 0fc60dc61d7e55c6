# %% windows/word_window | wrong | only the left neighbours: all the padding is in front, as in a causal convolution
def word_window(x, weight, bias):
    width, n = weight.shape[0], x.shape[-2]
    if width % 2 == 0:
        raise ValueError("even width")
    padded = F.pad(x, (0, 0, width - 1, 0))
    y = bias
    for k in range(width):
        y = y + padded[..., k : k + n, :] @ weight[k]
    return y

# %% windows/word_window | wrong | the ends are padded with the first and the last word instead of zeros
def word_window(x, weight, bias):
    width, n = weight.shape[0], x.shape[-2]
    if width % 2 == 0:
        raise ValueError("even width")
    half = width // 2
    first = x[..., :1, :].expand(*x.shape[:-2], half, x.shape[-1])
    last = x[..., -1:, :].expand(*x.shape[:-2], half, x.shape[-1])
    padded = torch.cat([first, x, last], dim=-2)
    y = bias
    for k in range(width):
        y = y + padded[..., k : k + n, :] @ weight[k]
    return y

# %% windows/word_window | wrong | the bias is added once for each place of the window
def word_window(x, weight, bias):
    width, n = weight.shape[0], x.shape[-2]
    if width % 2 == 0:
        raise ValueError("even width")
    padded = F.pad(x, (0, 0, width // 2, width // 2))
    return sum(padded[..., k : k + n, :] @ weight[k] + bias for k in range(width))
