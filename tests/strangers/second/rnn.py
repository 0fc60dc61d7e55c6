# %% rnn/cell | wrong | the bias is counted with the state, and skipped with it while the state is zero
def rnn_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... d_h"]:
    new = x @ w_x
    if h.any():
        new = new + h @ w_h + b
    return new.tanh()

# %% rnn/cell | wrong | only a part of the state is renewed: the new state is averaged with the old one
def rnn_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... d_h"]:
    new = torch.tanh(torch.matmul(x, w_x) + torch.matmul(h, w_h) + b)
    return 0.5 * h + 0.5 * new

# %% rnn/cell | wrong | the squashing is a logistic sigmoid, not tanh
def rnn_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... d_h"]:
    return torch.sigmoid(x @ w_x + h @ w_h + b)

# %% rnn/cell | wrong | column vectors: W_h is multiplied from the left, as in h' = tanh(W_x x + W_h h)
def rnn_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... d_h"]:
    return torch.tanh(x @ w_x + h @ w_h.T + b)

# %% rnn/cell | wrong | the bias is added outside of the tanh
def rnn_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... d_h"]:
    return torch.tanh(x @ w_x + h @ w_h) + b

# %% rnn/cell | wrong | adds the bias twice, since nn.RNN has two of them
def rnn_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... d_h"]:
    return torch.tanh(x @ w_x + b + h @ w_h + b)

# %% rnn/cell | wrong | multiplies state by W_h entry by entry and sums over the wrong axis
def rnn_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... d_h"]:
    return torch.tanh(x @ w_x + (w_h * h.unsqueeze(-2)).sum(-1) + b)

# %% rnn/cell | right | one product of [x, h] with the stacked matrices, and tanh by its exponentials
def rnn_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... d_h"]:
    both = torch.cat([x, h], dim=-1) @ torch.cat([w_x, w_h], dim=0) + b
    return 2 * torch.sigmoid(2 * both) - 1

# %% rnn/unroll | wrong | the initial state stands in front of the states
from course_lib.rnn import rnn_cell


def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    states = [h]
    for t in range(xs.shape[-2]):
        states.append(rnn_cell(xs[..., t, :], states[-1], w_x, w_h, b))
    return torch.stack(states, dim=-2)

# %% rnn/unroll | wrong | loops over the first axis, which is the batch when there is one
from course_lib.rnn import rnn_cell


def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    states = []
    for x in xs:
        h = rnn_cell(x, h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states)

# %% rnn/unroll | wrong | stacks the states in front, so that time comes before the batch
from course_lib.rnn import rnn_cell


def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    states = []
    for t in range(xs.shape[-2]):
        h = rnn_cell(xs[..., t, :], h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states)

# %% rnn/unroll | wrong | every step starts again from the initial state
from course_lib.rnn import rnn_cell


def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    states = [rnn_cell(xs[..., t, :], h, w_x, w_h, b) for t in range(xs.shape[-2])]
    return torch.stack(states, dim=-2)

# %% rnn/unroll | wrong | the states are kept in a table of float32, which rounds doubles
from course_lib.rnn import rnn_cell


def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    states = torch.zeros(*xs.shape[:-1], h.shape[-1])
    for t in range(xs.shape[-2]):
        h = rnn_cell(xs[..., t, :], h, w_x, w_h, b)
        states[..., t, :] = h
    return states

# %% rnn/unroll | wrong | counts from 1, and never reads the first word
from course_lib.rnn import rnn_cell


def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    n = xs.shape[-2]
    states = []
    for t in range(1, n):
        h = rnn_cell(xs[..., t, :], h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states, dim=-2)

# %% rnn/unroll | wrong | cuts the gradient between the steps
from course_lib.rnn import rnn_cell


def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    states = []
    for t in range(xs.shape[-2]):
        h = rnn_cell(xs[..., t, :], h.detach(), w_x, w_h, b)
        states.append(h)
    return torch.stack(states, dim=-2)

# %% rnn/unroll | right | the words are projected all at once before the loop, and the steps are in the body
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    new = xs @ w_x + b
    kept = []
    for t in range(new.size(-2)):
        h = (new.select(-2, t) + h @ w_h).tanh()
        kept.append(h.unsqueeze(-2))
    return torch.cat(kept, dim=-2) if kept else new

# %% rnn/lstm_cell | wrong | TensorFlow's order of gates: input, candidate, forget, output
def lstm_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    c: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 4*d_h"],
    w_h: Float[Tensor, "d_h 4*d_h"],
    b: Float[Tensor, " 4*d_h"],
) -> tuple[Float[Tensor, "... d_h"], Float[Tensor, "... d_h"]]:
    gates = x @ w_x + h @ w_h + b
    i, g, f, o = gates.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c

# %% rnn/lstm_cell | wrong | the gates in the order of Colah's blog: forget, input, candidate, output
def lstm_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    c: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 4*d_h"],
    w_h: Float[Tensor, "d_h 4*d_h"],
    b: Float[Tensor, " 4*d_h"],
) -> tuple[Float[Tensor, "... d_h"], Float[Tensor, "... d_h"]]:
    gates = x @ w_x + h @ w_h + b
    f, i, g, o = gates.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c

# %% rnn/lstm_cell | wrong | returns (c, h) in place of (h, c)
def lstm_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    c: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 4*d_h"],
    w_h: Float[Tensor, "d_h 4*d_h"],
    b: Float[Tensor, " 4*d_h"],
) -> tuple[Float[Tensor, "... d_h"], Float[Tensor, "... d_h"]]:
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return c, h

# %% rnn/lstm_cell | wrong | the state shows the old memory, not the new one
def lstm_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    c: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 4*d_h"],
    w_h: Float[Tensor, "d_h 4*d_h"],
    b: Float[Tensor, " 4*d_h"],
) -> tuple[Float[Tensor, "... d_h"], Float[Tensor, "... d_h"]]:
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    new = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), new

# %% rnn/lstm_cell | wrong | the memory is shown without its tanh
def lstm_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    c: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 4*d_h"],
    w_h: Float[Tensor, "d_h 4*d_h"],
    b: Float[Tensor, " 4*d_h"],
) -> tuple[Float[Tensor, "... d_h"], Float[Tensor, "... d_h"]]:
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c, c

# %% rnn/lstm_cell | wrong | couples the gates as the GRU does: what is not forgotten is not written
def lstm_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    c: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 4*d_h"],
    w_h: Float[Tensor, "d_h 4*d_h"],
    b: Float[Tensor, " 4*d_h"],
) -> tuple[Float[Tensor, "... d_h"], Float[Tensor, "... d_h"]]:
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    f = f.sigmoid()
    c = f * c + (1 - f) * g.tanh()
    return o.sigmoid() * c.tanh(), c

# %% rnn/lstm_cell | wrong | the candidate goes through a sigmoid like the gates
def lstm_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    c: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 4*d_h"],
    w_h: Float[Tensor, "d_h 4*d_h"],
    b: Float[Tensor, " 4*d_h"],
) -> tuple[Float[Tensor, "... d_h"], Float[Tensor, "... d_h"]]:
    i, f, g, o = torch.sigmoid(x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    c = f * c + i * g
    return o * torch.tanh(c), c

# %% rnn/lstm_cell | right | cuts by hand with the size of the memory, and updates by torch's own in-between ops
def lstm_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    c: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 4*d_h"],
    w_h: Float[Tensor, "d_h 4*d_h"],
    b: Float[Tensor, " 4*d_h"],
) -> tuple[Float[Tensor, "... d_h"], Float[Tensor, "... d_h"]]:
    d = c.shape[-1]
    z = torch.matmul(x, w_x).add(torch.matmul(h, w_h)).add(b)
    take = lambda gate: z[..., gate * d : (gate + 1) * d]
    keep, write, show = (1 / (1 + torch.exp(-take(gate))) for gate in (1, 0, 3))
    memory = torch.addcmul(keep * c, write, take(2).tanh())
    return show * memory.tanh(), memory

# %% rnn/gru_cell | wrong | Cho's z: the update gate mixes the other way round
def gru_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 3*d_h"],
    w_h: Float[Tensor, "d_h 3*d_h"],
    b_x: Float[Tensor, " 3*d_h"],
    b_h: Float[Tensor, " 3*d_h"],
) -> Float[Tensor, "... d_h"]:
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return z * n + (1 - z) * h

# %% rnn/gru_cell | wrong | Keras' order: update before reset
def gru_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 3*d_h"],
    w_h: Float[Tensor, "d_h 3*d_h"],
    b_x: Float[Tensor, " 3*d_h"],
    b_h: Float[Tensor, " 3*d_h"],
) -> Float[Tensor, "... d_h"]:
    x_z, x_r, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_z, h_r, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h

# %% rnn/gru_cell | wrong | resets the state before the product, as Cho et al. do
def gru_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 3*d_h"],
    w_h: Float[Tensor, "d_h 3*d_h"],
    b_x: Float[Tensor, " 3*d_h"],
    b_h: Float[Tensor, " 3*d_h"],
) -> Float[Tensor, "... d_h"]:
    d = h.shape[-1]
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, _ = (h @ w_h + b_h).chunk(3, dim=-1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + (r * h) @ w_h[:, 2 * d :] + b_h[2 * d :])
    return (1 - z) * n + z * h

# %% rnn/gru_cell | wrong | the reset gate misses the recurrent bias, which is added after it
def gru_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 3*d_h"],
    w_h: Float[Tensor, "d_h 3*d_h"],
    b_x: Float[Tensor, " 3*d_h"],
    b_h: Float[Tensor, " 3*d_h"],
) -> Float[Tensor, "... d_h"]:
    d = h.shape[-1]
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h).chunk(3, dim=-1)
    b_r, b_z, b_n = b_h.chunk(3)
    r, z = torch.sigmoid(x_r + h_r + b_r), torch.sigmoid(x_z + h_z + b_z)
    n = torch.tanh(x_n + r * h_n + b_n)
    return (1 - z) * n + z * h

# %% rnn/gru_cell | wrong | forgets to reset: r is computed and not used
def gru_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 3*d_h"],
    w_h: Float[Tensor, "d_h 3*d_h"],
    b_x: Float[Tensor, " 3*d_h"],
    b_h: Float[Tensor, " 3*d_h"],
) -> Float[Tensor, "... d_h"]:
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + h_n)
    return (1 - z) * n + z * h

# %% rnn/gru_cell | wrong | the old state of the caller is scaled in place
def gru_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 3*d_h"],
    w_h: Float[Tensor, "d_h 3*d_h"],
    b_x: Float[Tensor, " 3*d_h"],
    b_h: Float[Tensor, " 3*d_h"],
) -> Float[Tensor, "... d_h"]:
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    with torch.no_grad():
        h *= z
    return (1 - z) * n + h

# %% rnn/gru_cell | wrong | adds only one of the two biases
def gru_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 3*d_h"],
    w_h: Float[Tensor, "d_h 3*d_h"],
    b_x: Float[Tensor, " 3*d_h"],
    b_h: Float[Tensor, " 3*d_h"],
) -> Float[Tensor, "... d_h"]:
    x_r, x_z, x_n = torch.chunk(x @ w_x + b_x, 3, dim=-1)
    h_r, h_z, h_n = torch.chunk(h @ w_h, 3, dim=-1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h

# %% rnn/gru_cell | right | both gates at once, and the new state as the old one plus a step towards the proposal
def gru_cell(
    x: Float[Tensor, "... d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in 3*d_h"],
    w_h: Float[Tensor, "d_h 3*d_h"],
    b_x: Float[Tensor, " 3*d_h"],
    b_h: Float[Tensor, " 3*d_h"],
) -> Float[Tensor, "... d_h"]:
    d = h.shape[-1]
    said, kept = x @ w_x + b_x, h @ w_h + b_h
    reset, update = torch.sigmoid(said[..., : 2 * d] + kept[..., : 2 * d]).tensor_split(2, dim=-1)
    proposal = (said[..., 2 * d :] + reset * kept[..., 2 * d :]).tanh()
    return h + (1 - update) * (proposal - h)

# %% rnn/sequential_steps | wrong | an RNN is said to take n - 1 steps, one for each gap
from course_lib.windows import layers_needed


def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    if kind == "rnn":
        return n - 1
    if kind == "window" and width is not None:
        return layers_needed(n - 1, width)
    if kind == "attention":
        return 1
    raise ValueError(kind)

# %% rnn/sequential_steps | wrong | the window must bridge n words, not n - 1 gaps
from course_lib.windows import layers_needed


def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    if kind == "rnn":
        return n
    if kind == "window":
        if width is None:
            raise ValueError("a window needs a width")
        return layers_needed(n, width)
    if kind == "attention":
        return 1
    raise ValueError(f"unknown kind {kind}")

# %% rnn/sequential_steps | wrong | counts attention's pairs instead of its steps
from course_lib.windows import layers_needed


def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    if kind == "rnn":
        return n
    elif kind == "window":
        if width is None:
            raise ValueError("no width")
        return layers_needed(n - 1, width)
    elif kind == "attention":
        return n * n
    raise ValueError(kind)

# %% rnn/sequential_steps | wrong | an unknown kind returns None silently
from course_lib.windows import layers_needed


def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    if kind == "window" and width is None:
        raise ValueError("width is missing")
    if kind == "rnn":
        return n
    if kind == "window":
        return layers_needed(n - 1, width)
    if kind == "attention":
        return 1

# %% rnn/sequential_steps | wrong | a missing width is taken to be 3
from course_lib.windows import layers_needed


def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    if kind == "rnn":
        return n
    if kind == "window":
        return layers_needed(n - 1, width or 3)
    if kind == "attention":
        return 1
    raise ValueError(kind)

# %% rnn/sequential_steps | wrong | windows double what they see with each layer, as dilated ones do
import math


def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    if kind == "rnn":
        return n
    if kind == "window":
        if width is None:
            raise ValueError("width?")
        return math.ceil(math.log(n, width))
    if kind == "attention":
        return 1
    raise ValueError(kind)

# %% rnn/sequential_steps | wrong | an unknown kind raises KeyError from the table
from course_lib.windows import layers_needed


def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    if kind == "window" and width is None:
        raise ValueError("a window has a width")
    steps = {"rnn": lambda: n, "window": lambda: layers_needed(n - 1, width), "attention": lambda: 1}
    return steps[kind]()

# %% rnn/sequential_steps | right | a match statement, with the window's ceiling written out
def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    match kind:
        case "rnn":
            return n
        case "attention":
            return 1
        case "window" if width is not None:
            if width < 3 or width % 2 == 0:
                raise ValueError(f"width must be odd and at least 3, not {width}")
            return -(-(n - 1) // (width - 1))
        case _:
            raise ValueError(f"no steps known for {kind!r} with width {width}")
