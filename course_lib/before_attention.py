"""Before attention: cells that read one token after another, and windows (lesson 01).

Rows are tokens, so a weight is on the right of what it multiplies: `x @ w_x`. torch keeps
the transposes (`weight_ih = w_x.T`). A word window sees its neighbours only, in all places at once.
"""

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def rnn_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... d_h"]:
    """Take one step of a plain recurrent network: h' = tanh(x W_x + h W_h + b).

    Source: Elman 1990. torch's `nn.RNN` has two biases; b is their sum.
    """
    # add what the token says to what the state remembers, then squash
    return torch.tanh(x @ w_x + h @ w_h + b)


def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each token.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    states = []
    # for each token in turn, carry the state one step on and keep it
    for x in xs.unbind(dim=-2):
        h = rnn_cell(x, h, w_x, w_h, b)
        states.append(h)
    # lay the states out along the axis that the tokens came from
    return torch.stack(states, dim=-2)


def lstm_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    c: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 4*d_h"],
    w_h: Float[Tensor, "d_h 4*d_h"],
    b: Float[Tensor, " 4*d_h"],
) -> tuple[Float[Tensor, "... d_h"], Float[Tensor, "... d_h"]]:
    """Take one step of an LSTM; return the new pair (h, c).

    [i f g o] = x W_x + h W_h + b;  c' = sigma(f) c + sigma(i) tanh(g);  h' = sigma(o) tanh(c').
    Along the last axis of the weights the gates are in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    # compute the three gates and the candidate in one product, then cut them apart
    gates = rearrange(x @ w_x + h @ w_h + b, "... (gate d_h) -> gate ... d_h", gate=4)
    i, f, g, o = gates
    # forget a part of the old memory, write a part of the candidate
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    # show a part of the new memory
    return torch.sigmoid(o) * torch.tanh(c), c


def gru_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 3*d_h"],
    w_h: Float[Tensor, "d_h 3*d_h"],
    b_x: Float[Tensor, " 3*d_h"],
    b_h: Float[Tensor, " 3*d_h"],
) -> Float[Tensor, "... d_h"]:
    """Take one step of a gated recurrent unit.

    r = sigma(x_r + h_r);  z = sigma(x_z + h_z);  n = tanh(x_n + r h_n);  h' = (1 - z) n + z h,
    where [x_r x_z x_n] = x W_x + b_x and [h_r h_z h_n] = h W_h + b_h: torch's order, and the
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, who reset h
    before the product; Chung et al. 2014 write 1 - z for our z.
    """
    # project the token and the state, and cut each into reset, update and new
    x_r, x_z, x_n = rearrange(x @ w_x + b_x, "... (gate d_h) -> gate ... d_h", gate=3)
    h_r, h_z, h_n = rearrange(h @ w_h + b_h, "... (gate d_h) -> gate ... d_h", gate=3)
    # decide what to reset and what to keep
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    # propose a new state from the token and the part of the past that was not reset
    n = torch.tanh(x_n + r * h_n)
    # mix the proposal with the old state
    return (1 - z) * n + z * h


def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n tokens have met.

    States that do not wait for each other are one step. `kind` is "rnn", "window" (layers of
    windows of an odd width, as few as are enough) or "attention". A token alone still takes its
    step in an RNN and in attention; it takes no layer of windows.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    if kind not in ("rnn", "window", "attention"):
        raise ValueError(f"kind must be 'rnn', 'window' or 'attention', not {kind!r}")
    if kind == "window" and width is None:
        raise ValueError("kind 'window' needs a width: how many tokens does one window see?")
    # an RNN reads token after token
    if kind == "rnn":
        return n
    # windows are stacked until the pair that is farthest apart has met
    if kind == "window" and width:
        return layers_needed(n - 1, width)
    # in attention no pair waits for another
    return 1


def word_window(
    x: Float[Tensor, "... n d_in"],
    weight: Float[Tensor, "width d_in d_out"],
    bias: Float[Tensor, " d_out"],
) -> Float[Tensor, "... n d_out"]:
    """Mix each token with its neighbours: y_i = b + sum_k x_(i + k - width // 2) W_k.

    A 1-D convolution, padded with zeros so that n tokens stay n tokens; `weight[0]` meets
    the leftmost token of the window. torch's `conv1d` keeps `weight` as (d_out, d_in, width).
    Raises ValueError for an even width, which has no middle.
    """
    width = weight.shape[0]
    if width % 2 == 0:
        raise ValueError(f"a window needs a middle token, so its width is odd, not {width}")
    # put width // 2 tokens of zeros at both ends of the sentence
    padded = F.pad(x, (0, 0, width // 2, width // 2))
    # cut out the window around each token
    windows = padded.unfold(-2, width, 1)
    # multiply each place of the window by its own matrix, and sum
    return einsum(windows, weight, "... n d_in width, width d_in d_out -> ... n d_out") + bias


def receptive_field(layers: int, width: int) -> int:
    """Count the tokens that one state sees through stacked windows, all of one odd width.

    Without a layer, a state is its own token and sees no other.

    >>> receptive_field(layers=2, width=3)
    5
    """
    # write down the rule that you have measured
    return 1 + layers * (width - 1)


def layers_needed(distance: int, width: int) -> int:
    """Count the layers until at least one state sees both of two tokens, `distance` apart.

    Tokens at distance 0 need no layer. Raises ValueError for an even width, which has no middle,
    and for width 1, which shows no neighbour.

    >>> layers_needed(distance=4, width=3)
    2
    """
    if width % 2 == 0 or width == 1:
        raise ValueError(f"a window needs a middle token, so its width is odd, from 3, not {width}")
    # take the fewest layers whose receptive field holds both tokens
    return -(-distance // (width - 1))
