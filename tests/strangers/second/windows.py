# %% windows/word_window | wrong | a true convolution: the matrices are flipped, so weight[0] meets the rightmost word
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError("even width")
    half, n = width // 2, x.shape[-2]
    padded = F.pad(x, (0, 0, half, half))
    out = bias
    for k in range(width):
        out = out + padded[..., k : k + n, :] @ weight[width - 1 - k]
    return out

# %% windows/word_window | wrong | no zeros at the ends: the sentence gets shorter
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError("even width")
    windows = x.unfold(-2, width, 1)
    return einsum(windows, weight, "... n d_in w, w d_in d_out -> ... n d_out") + bias

# %% windows/word_window | wrong | causal padding: all zeros stand before the sentence
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError("the window has no middle")
    padded = F.pad(x, (0, 0, width - 1, 0))
    windows = padded.unfold(-2, width, 1)
    return einsum(windows, weight, "... n d_in w, w d_in d_out -> ... n d_out") + bias

# %% windows/word_window | wrong | the bias is added once for each place of the window
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError(width)
    half, n = width // 2, x.shape[-2]
    padded = F.pad(x, (0, 0, half, half))
    return sum(padded[..., k : k + n, :] @ weight[k] + bias for k in range(width))

# %% windows/word_window | wrong | an even width is not refused, and adds a word
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    width = weight.shape[0]
    half = width // 2
    padded = F.pad(x, (0, 0, half, half))
    windows = padded.unfold(-2, width, 1)
    return einsum(windows, weight, "... n d_in w, w d_in d_out -> ... n d_out") + bias

# %% windows/word_window | wrong | wraps around the ends, by roll, where zeros should stand
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError("a window needs a middle")
    out = bias
    for k in range(width):
        out = out + torch.roll(x, width // 2 - k, dims=-2) @ weight[k]
    return out

# %% windows/word_window | wrong | conv1d's weight is reshaped instead of transposed
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    width, d_in, d_out = weight.shape
    if width % 2 == 0:
        raise ValueError("even width")
    words = x.reshape(-1, *x.shape[-2:]).mT
    y = F.conv1d(words, weight.reshape(d_out, d_in, width), bias, padding=width // 2).mT
    return y.reshape(*x.shape[:-1], d_out)

# %% windows/word_window | right | one band matrix a place: each word of the window is shifted by a matrix of zeros and ones
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    width, n = weight.shape[0], x.shape[-2]
    if not width % 2:
        raise ValueError(f"a window of {width} words has no middle")
    y = bias.expand(*x.shape[:-1], -1)
    for k in range(width):
        shift = torch.eye(2 * n + 2 * width, dtype=x.dtype, device=x.device)
        shift = shift[width : width + n, width + width // 2 - k : width + width // 2 - k + n]
        y = y + shift @ x @ weight[k]
    return y

# %% windows/receptive_field | wrong | half a window on each side is counted once only
def receptive_field(layers: int, width: int) -> int:
    return 1 + layers * (width // 2)

# %% windows/receptive_field | wrong | forgets the word in the middle
def receptive_field(layers: int, width: int) -> int:
    return layers * (width - 1)

# %% windows/receptive_field | wrong | windows side by side: layers times width
def receptive_field(layers: int, width: int) -> int:
    return layers * width

# %% windows/receptive_field | wrong | multiplies, as pooling or dilated windows would
def receptive_field(layers: int, width: int) -> int:
    return width**layers

# %% windows/receptive_field | wrong | one layer too few: the first is thought to be the words themselves
def receptive_field(layers: int, width: int) -> int:
    return 1 + (layers - 1) * (width - 1)

# %% windows/receptive_field | wrong | returns a float, by way of half windows
def receptive_field(layers: int, width: int) -> int:
    return 1 + 2 * layers * ((width - 1) / 2)

# %% windows/receptive_field | wrong | right for the example only: 2 stands for width - 1
def receptive_field(layers: int, width: int) -> int:
    return 1 + 2 * layers

# %% windows/receptive_field | right | counts layer by layer from one word
def receptive_field(layers: int, width: int) -> int:
    seen = 1
    for _ in range(layers):
        seen += width - 1
    return seen

# %% windows/layers_needed | wrong | rounds down
def layers_needed(distance: int, width: int) -> int:
    if width < 3 or width % 2 == 0:
        raise ValueError(width)
    return distance // (width - 1)

# %% windows/layers_needed | wrong | each layer is thought to reach half a window, one side only
def layers_needed(distance: int, width: int) -> int:
    if width < 3 or width % 2 == 0:
        raise ValueError("width must be odd and at least 3")
    return -(-distance // (width // 2))

# %% windows/layers_needed | wrong | rounds by Python's round
def layers_needed(distance: int, width: int) -> int:
    if width < 3 or width % 2 == 0:
        raise ValueError("width must be odd and at least 3")
    return round(distance / (width - 1))

# %% windows/layers_needed | wrong | always one layer more: floor plus one instead of the ceiling
def layers_needed(distance: int, width: int) -> int:
    if width < 3 or width % 2 == 0:
        raise ValueError("bad width")
    return distance // (width - 1) + 1

# %% windows/layers_needed | wrong | even widths are let through
def layers_needed(distance: int, width: int) -> int:
    if width < 3:
        raise ValueError("a window of one word never grows")
    return -(-distance // (width - 1))

# %% windows/layers_needed | wrong | a window of width 1 divides by zero
def layers_needed(distance: int, width: int) -> int:
    if width % 2 == 0:
        raise ValueError("a window has a middle")
    return (distance + width - 2) // (width - 1)

# %% windows/layers_needed | wrong | words at distance 0 are given one layer
import math


def layers_needed(distance: int, width: int) -> int:
    if width < 3 or width % 2 == 0:
        raise ValueError(f"width {width}")
    return max(1, math.ceil(distance / (width - 1)))

# %% windows/layers_needed | right | tries one layer after another until the field is large enough
def layers_needed(distance: int, width: int) -> int:
    if width not in range(3, width + 1, 2):
        raise ValueError(f"the width must be odd and at least 3, not {width}")
    layers = 0
    while 1 + layers * (width - 1) < distance + 1:
        layers += 1
    return layers
