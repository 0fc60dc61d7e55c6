# %% windows/word_window | right | shifts the whole sentence once for each place of the window, and adds in place into a fresh buffer
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    width = len(weight)
    if width % 2 == 0:
        raise ValueError("an even window has no middle word")
    reach, n = width // 2, x.shape[-2]
    total = bias.expand(*x.shape[:-1], weight.shape[-1])
    for k in range(width):
        offset = k - reach
        part = x[..., max(offset, 0) : max(n + min(offset, 0), 0), :] @ weight[k]
        before = part.new_zeros(*x.shape[:-2], min(max(-offset, 0), n), weight.shape[-1])
        after = part.new_zeros(*x.shape[:-2], min(max(offset, 0), n), weight.shape[-1])
        total = total + torch.cat([before, part, after], dim=-2)
    return total


# %% windows/word_window | wrong | pads on the left only, so that the window is causal
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError("width must be odd")
    padded = nn.functional.pad(x, (0, 0, width - 1, 0))
    windows = padded.unfold(-2, width, 1)
    return einsum(windows, weight, "... n d k, k d e -> ... n e") + bias


# %% windows/word_window | wrong | flips the window: weight[0] meets the rightmost word
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError("width must be odd")
    n, half = x.shape[-2], width // 2
    padded = nn.functional.pad(x, (0, 0, half, half))
    out = bias
    for k in range(width):
        out = out + padded[..., width - 1 - k : width - 1 - k + n, :] @ weight[k]
    return out


# %% windows/word_window | wrong | does not pad, so that the ends are lost
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError("width must be odd")
    windows = x.unfold(-2, width, 1)
    return einsum(windows, weight, "... n d k, k d e -> ... n e") + bias


# %% windows/word_window | wrong | an even width is quietly accepted
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    # TODO: put width // 2 words of zeros at both ends of the sentence
    # TODO: cut out the window around each word
    # TODO: multiply each place of the window by its own matrix, and sum
    width, n = weight.shape[0], x.shape[-2]
    half = width // 2
    padded = nn.functional.pad(x, (0, 0, half, half))
    return bias + sum(padded[..., k : k + n, :] @ weight[k] for k in range(width))


# %% windows/word_window | wrong | adds the bias once for each place of the window
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    width, n = weight.shape[0], x.shape[-2]
    if width % 2 == 0:
        raise ValueError("width must be odd")
    padded = nn.functional.pad(x, (0, 0, width // 2, width // 2))
    y = 0
    for k in range(width):
        y = y + padded[..., k : k + n, :] @ weight[k] + bias
    return y


# %% windows/word_window | wrong | the window wraps round the ends of the sentence (torch.roll)
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError("width must be odd")
    y = bias
    for k in range(width):
        y = y + torch.roll(x, width // 2 - k, dims=-2) @ weight[k]
    return y


# %% windows/word_window | wrong | repeats the first and last word instead of padding with zeros
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    width, n = weight.shape[0], x.shape[-2]
    if width % 2 == 0:
        raise ValueError("width must be odd")
    places = torch.arange(n)
    y = bias
    for k in range(width):
        y = y + x[..., (places + k - width // 2).clamp(0, n - 1), :] @ weight[k]
    return y


# %% windows/word_window | wrong | averages over the window instead of summing
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    # TODO: put width // 2 words of zeros at both ends of the sentence
    # TODO: cut out the window around each word
    # TODO: multiply each place of the window by its own matrix, and sum
    width, n = weight.shape[0], x.shape[-2]
    if width % 2 == 0:
        raise ValueError("width must be odd")
    padded = nn.functional.pad(x, (0, 0, width // 2, width // 2))
    windows = torch.stack([padded[..., k : k + n, :] @ weight[k] for k in range(width)])
    return windows.mean(0) + bias


# %% windows/word_window | wrong | conv1d takes one batch axis only, so other numbers of batch axes fail
def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each word with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n words stay n words; `weight[0]` meets the
    leftmost word of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    if weight.shape[0] % 2 == 0:
        raise ValueError("width must be odd")
    y = torch.conv1d(x.transpose(1, 2), weight.permute(2, 1, 0), bias, padding=weight.shape[0] // 2)
    return y.transpose(1, 2)


# %% windows/receptive_field | right | follows the field layer by layer
def receptive_field(layers: int, width: int) -> int:
    """Count the words that one state sees through stacked windows: 1 + layers (width - 1).

    >>> receptive_field(layers=2, width=3)
    5
    """
    first = last = 0
    for _ in range(layers):
        first, last = first - width // 2, last + width - 1 - width // 2
    return len(range(first, last + 1))


# %% windows/receptive_field | wrong | forgets the word itself
def receptive_field(layers: int, width: int) -> int:
    """Count the words that one state sees through stacked windows: 1 + layers (width - 1).

    >>> receptive_field(layers=2, width=3)
    5
    """
    return layers * (width - 1)


# %% windows/receptive_field | wrong | multiplies layers by width
def receptive_field(layers: int, width: int) -> int:
    """Count the words that one state sees through stacked windows: 1 + layers (width - 1).

    >>> receptive_field(layers=2, width=3)
    5
    """
    return layers * width


# %% windows/receptive_field | wrong | grows on one side only
def receptive_field(layers: int, width: int) -> int:
    """Count the words that one state sees through stacked windows: 1 + layers (width - 1).

    >>> receptive_field(layers=2, width=3)
    5
    """
    return 1 + layers * (width // 2)


# %% windows/receptive_field | wrong | takes the field to grow exponentially
def receptive_field(layers: int, width: int) -> int:
    """Count the words that one state sees through stacked windows: 1 + layers (width - 1).

    >>> receptive_field(layers=2, width=3)
    5
    """
    return width**layers


# %% windows/receptive_field | wrong | returns a float
def receptive_field(layers: int, width: int) -> int:
    """Count the words that one state sees through stacked windows: 1 + layers (width - 1).

    >>> receptive_field(layers=2, width=3)
    5
    """
    # TODO: each layer adds half a window on both sides
    return 1 + 2 * layers * ((width - 1) / 2)


# %% windows/receptive_field | wrong | precedence: (1 + layers) (width - 1)
def receptive_field(layers: int, width: int) -> int:
    """Count the words that one state sees through stacked windows: 1 + layers (width - 1).

    >>> receptive_field(layers=2, width=3)
    5
    """
    return (1 + layers) * (width - 1)


# %% windows/receptive_field | wrong | no layers see nothing
def receptive_field(layers: int, width: int) -> int:
    """Count the words that one state sees through stacked windows: 1 + layers (width - 1).

    >>> receptive_field(layers=2, width=3)
    5
    """
    if layers == 0:
        return 0
    return 1 + layers * (width - 1)


# %% windows/receptive_field | wrong | prints the answer
def receptive_field(layers: int, width: int) -> int:
    """Count the words that one state sees through stacked windows: 1 + layers (width - 1).

    >>> receptive_field(layers=2, width=3)
    5
    """
    answer = 1 + layers * (width - 1)
    print(answer)


# %% windows/layers_needed | right | stacks windows until both words are seen
def layers_needed(distance: int, width: int) -> int:
    """Count the layers until some one state sees two words that stand `distance` apart.

    The least L with receptive_field(L, width) >= distance + 1. Words at distance 0 need none.
    Raises ValueError unless width is odd and at least 3: a window of one word never grows.

    >>> layers_needed(distance=4, width=3)
    2
    """
    if width < 3 or width % 2 != 1:
        raise ValueError(f"a window of {width} words has no middle, or never grows")
    layers = 0
    while receptive_field(layers, width) < distance + 1:
        layers += 1
    return layers


# %% windows/layers_needed | wrong | rounds down
def layers_needed(distance: int, width: int) -> int:
    """Count the layers until some one state sees two words that stand `distance` apart.

    The least L with receptive_field(L, width) >= distance + 1. Words at distance 0 need none.
    Raises ValueError unless width is odd and at least 3: a window of one word never grows.

    >>> layers_needed(distance=4, width=3)
    2
    """
    if width < 3 or width % 2 == 0:
        raise ValueError("width")
    return distance // (width - 1)


# %% windows/layers_needed | wrong | counts until one word's state sees the other, one side only
def layers_needed(distance: int, width: int) -> int:
    """Count the layers until some one state sees two words that stand `distance` apart.

    The least L with receptive_field(L, width) >= distance + 1. Words at distance 0 need none.
    Raises ValueError unless width is odd and at least 3: a window of one word never grows.

    >>> layers_needed(distance=4, width=3)
    2
    """
    if width < 3 or width % 2 == 0:
        raise ValueError("width")
    return -(-distance // (width // 2))


# %% windows/layers_needed | wrong | always adds one, also where the division leaves nothing
def layers_needed(distance: int, width: int) -> int:
    """Count the layers until some one state sees two words that stand `distance` apart.

    The least L with receptive_field(L, width) >= distance + 1. Words at distance 0 need none.
    Raises ValueError unless width is odd and at least 3: a window of one word never grows.

    >>> layers_needed(distance=4, width=3)
    2
    """
    if width < 3 or width % 2 == 0:
        raise ValueError("width")
    return distance // (width - 1) + 1


# %% windows/layers_needed | wrong | divides by the width
import math


def layers_needed(distance: int, width: int) -> int:
    """Count the layers until some one state sees two words that stand `distance` apart.

    The least L with receptive_field(L, width) >= distance + 1. Words at distance 0 need none.
    Raises ValueError unless width is odd and at least 3: a window of one word never grows.

    >>> layers_needed(distance=4, width=3)
    2
    """
    # TODO: divide the distance by the growth of one layer, rounding up
    if width < 3 or width % 2 == 0:
        raise ValueError("width")
    return math.ceil(distance / width)


# %% windows/layers_needed | wrong | an even width is not refused
def layers_needed(distance: int, width: int) -> int:
    """Count the layers until some one state sees two words that stand `distance` apart.

    The least L with receptive_field(L, width) >= distance + 1. Words at distance 0 need none.
    Raises ValueError unless width is odd and at least 3: a window of one word never grows.

    >>> layers_needed(distance=4, width=3)
    2
    """
    # TODO: divide the distance by the growth of one layer, rounding up
    if width < 3:
        raise ValueError("a window of one word never grows")
    return -(-distance // (width - 1))


# %% windows/layers_needed | wrong | a width of one gives a division by zero, not a ValueError
def layers_needed(distance: int, width: int) -> int:
    """Count the layers until some one state sees two words that stand `distance` apart.

    The least L with receptive_field(L, width) >= distance + 1. Words at distance 0 need none.
    Raises ValueError unless width is odd and at least 3: a window of one word never grows.

    >>> layers_needed(distance=4, width=3)
    2
    """
    # TODO: divide the distance by the growth of one layer, rounding up
    if width % 2 == 0:
        raise ValueError("width must be odd")
    return -(-distance // (width - 1))


# %% windows/layers_needed | wrong | needs at least one layer even for distance 0
def layers_needed(distance: int, width: int) -> int:
    """Count the layers until some one state sees two words that stand `distance` apart.

    The least L with receptive_field(L, width) >= distance + 1. Words at distance 0 need none.
    Raises ValueError unless width is odd and at least 3: a window of one word never grows.

    >>> layers_needed(distance=4, width=3)
    2
    """
    if width < 3 or width % 2 == 0:
        raise ValueError("width")
    layers = 1
    while 1 + layers * (width - 1) < distance + 1:
        layers += 1
    return layers


# %% windows/layers_needed | wrong | refuses bad widths with an assert, which is no ValueError
def layers_needed(distance: int, width: int) -> int:
    """Count the layers until some one state sees two words that stand `distance` apart.

    The least L with receptive_field(L, width) >= distance + 1. Words at distance 0 need none.
    Raises ValueError unless width is odd and at least 3: a window of one word never grows.

    >>> layers_needed(distance=4, width=3)
    2
    """
    assert width >= 3 and width % 2 == 1, "width must be odd and at least 3"
    return -(-distance // (width - 1))
