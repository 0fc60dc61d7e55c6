# %% rnn/cell | right | sums the three terms one by one with torch.add and a matmul from the right
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
    terms = [torch.matmul(x, w_x), torch.matmul(h, w_h), b]
    total = terms[0]
    for term in terms[1:]:
        total = torch.add(total, term)
    return 2 * torch.sigmoid(2 * total) - 1


# %% rnn/cell | wrong | the tanh covers only the input's term (precedence)
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
    # TODO: add what the word says to what the state remembers, then squash
    return torch.tanh(x @ w_x) + h @ w_h + b


# %% rnn/cell | wrong | transposes the recurrent matrix
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
    return torch.tanh(x @ w_x + h @ w_h.T + b)


# %% rnn/cell | wrong | forgets the bias
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
    # TODO: add what the word says to what the state remembers, then squash
    return torch.tanh(x @ w_x + h @ w_h)


# %% rnn/cell | wrong | squashes with a sigmoid
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
    # TODO: add what the word says to what the state remembers, then squash
    return torch.sigmoid(x @ w_x + h @ w_h + b)


# %% rnn/cell | wrong | adds the bias twice, once for each matrix
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
    from_word = x @ w_x + b
    from_state = h @ w_h + b
    return torch.tanh(from_word + from_state)


# %% rnn/cell | wrong | forgets to squash
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
    return x @ w_x + h @ w_h + b


# %% rnn/cell | wrong | multiplies the word's part with the state's part
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
    # TODO: add what the word says to what the state remembers, then squash
    return torch.tanh((x @ w_x) * (h @ w_h) + b)


# %% rnn/cell | wrong | cuts the old state out of the gradient
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
    h = h.detach()
    return torch.tanh(x @ w_x + h @ w_h + b)


# %% rnn/unroll | right | recursion on the sentence, the last word first taken off
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    n = xs.shape[-2]
    if n == 0:
        return h.new_zeros(*h.shape[:-1], 0, h.shape[-1])
    if n == 1:
        return rnn_cell(xs[..., 0, :], h, w_x, w_h, b).unsqueeze(-2)
    before = unroll(xs[..., :-1, :], h, w_x, w_h, b)
    last = rnn_cell(xs[..., -1, :], before[..., -1, :], w_x, w_h, b)
    return torch.cat([before, last.unsqueeze(-2)], dim=-2)


# %% rnn/unroll | wrong | runs over the first axis of a batch, as if it were the words
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    states = []
    for x in xs:
        h = rnn_cell(x, h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states)


# %% rnn/unroll | wrong | stacks the states along a new first axis
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    # TODO: for each word in turn, carry the state one step on and keep it
    # TODO: lay the states out along the axis that the words came from
    states = []
    for t in range(xs.shape[-2]):
        h = rnn_cell(xs[..., t, :], h, w_x, w_h, b)
        states.append(h)
    return torch.stack(states, dim=0)


# %% rnn/unroll | wrong | every step begins from the initial state
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    # TODO: for each word in turn, carry the state one step on and keep it
    # TODO: lay the states out along the axis that the words came from
    states = []
    for t in range(xs.shape[-2]):
        state = rnn_cell(xs[..., t, :], h, w_x, w_h, b)
        states.append(state)
    return torch.stack(states, dim=-2)


# %% rnn/unroll | wrong | keeps the state before each word, so that the initial one comes first
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    states = []
    for t in range(xs.shape[-2]):
        states.append(h)
        h = rnn_cell(xs[..., t, :], h, w_x, w_h, b)
    return torch.stack(states, dim=-2)


# %% rnn/unroll | wrong | returns the last state alone
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    # TODO: for each word in turn, carry the state one step on and keep it
    # TODO: lay the states out along the axis that the words came from
    for t in range(xs.shape[-2]):
        h = rnn_cell(xs[..., t, :], h, w_x, w_h, b)
    return h


# %% rnn/unroll | wrong | reads from right to left
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    states = []
    for t in reversed(range(xs.shape[-2])):
        h = rnn_cell(xs[..., t, :], h, w_x, w_h, b)
        states.insert(0, h)
    return torch.stack(states, dim=-2)


# %% rnn/unroll | wrong | writes each new state into h in place, so that the list holds one state many times
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    # TODO: for each word in turn, carry the state one step on and keep it
    # TODO: lay the states out along the axis that the words came from
    states = []
    with torch.no_grad():
        for t in range(xs.shape[-2]):
            h[...] = rnn_cell(xs[..., t, :], h, w_x, w_h, b)
            states.append(h)
    return torch.stack(states, dim=-2)


# %% rnn/unroll | wrong | swaps the word and the state when it calls the cell
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    # TODO: for each word in turn, carry the state one step on and keep it
    # TODO: lay the states out along the axis that the words came from
    states = []
    for t in range(xs.shape[-2]):
        h = rnn_cell(h, xs[..., t, :], w_x, w_h, b)
        states.append(h)
    return torch.stack(states, dim=-2)


# %% rnn/lstm_cell | right | a product for each gate with its own columns, gates in a dictionary
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    d = h.shape[-1]
    gate = {}
    for number, name in enumerate("ifgo"):
        columns = range(number * d, (number + 1) * d)
        gate[name] = x @ w_x[:, columns] + h @ w_h[:, columns] + b[columns]
    memory = c * gate["f"].sigmoid() + gate["g"].tanh() * gate["i"].sigmoid()
    return gate["o"].sigmoid() * memory.tanh(), memory


# %% rnn/lstm_cell | wrong | cuts the gates in the order i f o g
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    i, f, o, g = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


# %% rnn/lstm_cell | wrong | swaps input and forget gate
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    new_c = i.sigmoid() * c + f.sigmoid() * g.tanh()
    return o.sigmoid() * new_c.tanh(), new_c


# %% rnn/lstm_cell | wrong | returns memory and state in the wrong order
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    # TODO: compute all four gates in one product, then cut them apart
    # TODO: forget a part of the old memory, write a part of the candidate
    # TODO: show a part of the new memory
    gates = x @ w_x + h @ w_h + b
    i, f, g, o = gates.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return c, h


# %% rnn/lstm_cell | wrong | shows the old memory instead of the new one
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), new


# %% rnn/lstm_cell | wrong | forgets the tanh around the memory that is shown
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    # TODO: compute all four gates in one product, then cut them apart
    # TODO: forget a part of the old memory, write a part of the candidate
    # TODO: show a part of the new memory
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * new, new


# %% rnn/lstm_cell | wrong | ties the forget gate to the input gate: c' = (1 - i) c + i g
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    # TODO: compute all four gates in one product, then cut them apart
    # TODO: forget a part of the old memory, write a part of the candidate
    # TODO: show a part of the new memory
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    i = torch.sigmoid(i)
    new = (1 - i) * c + i * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new), new


# %% rnn/lstm_cell | wrong | splits the gates along the batch axis
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    # TODO: compute all four gates in one product, then cut them apart
    # TODO: forget a part of the old memory, write a part of the candidate
    # TODO: show a part of the new memory
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4)
    new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new), new


# %% rnn/lstm_cell | wrong | updates the memory that was passed in, in place
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    i, f, g, o = (x @ w_x + h @ w_h + b).chunk(4, dim=-1)
    with torch.no_grad():
        c *= torch.sigmoid(f)
        c += torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


# %% rnn/gru_cell | right | slices by size, and mixes with torch.lerp
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    # TODO: project the word and the state, and cut each into reset, update and new
    # TODO: decide what to reset and what to keep
    # TODO: propose a new state from the word and the part of the past that was not reset
    # TODO: mix the proposal with the old state
    size = h.shape[-1]
    word, past = x @ w_x + b_x, h @ w_h + b_h
    both = torch.sigmoid(word[..., : 2 * size] + past[..., : 2 * size])
    reset, keep = both[..., :size], both[..., size:]
    proposal = torch.tanh(torch.addcmul(word[..., 2 * size :], reset, past[..., 2 * size :]))
    return torch.lerp(proposal, h, keep)


# %% rnn/gru_cell | wrong | swaps z and 1 - z in the mixture, as in the paper of 2014
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return z * n + (1 - z) * h


# %% rnn/gru_cell | wrong | resets the state before the product, as in the paper of 2014
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    # TODO: project the word and the state, and cut each into reset, update and new
    # TODO: decide what to reset and what to keep
    # TODO: propose a new state from the word and the part of the past that was not reset
    # TODO: mix the proposal with the old state
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    w_r, w_z, w_n = w_h.chunk(3, dim=-1)
    b_r, b_z, b_n = b_h.chunk(3)
    r = torch.sigmoid(x_r + h @ w_r + b_r)
    z = torch.sigmoid(x_z + h @ w_z + b_z)
    n = torch.tanh(x_n + (r * h) @ w_n + b_n)
    return (1 - z) * n + z * h


# %% rnn/gru_cell | wrong | leaves the recurrent bias of the candidate outside the reset
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    # TODO: project the word and the state, and cut each into reset, update and new
    # TODO: decide what to reset and what to keep
    # TODO: propose a new state from the word and the part of the past that was not reset
    # TODO: mix the proposal with the old state
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h).chunk(3, dim=-1)
    b_r, b_z, b_n = b_h.chunk(3)
    r = torch.sigmoid(x_r + h_r + b_r)
    z = torch.sigmoid(x_z + h_z + b_z)
    n = torch.tanh(x_n + r * h_n + b_n)
    return (1 - z) * n + z * h


# %% rnn/gru_cell | wrong | cuts update before reset
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    # TODO: project the word and the state, and cut each into reset, update and new
    # TODO: decide what to reset and what to keep
    # TODO: propose a new state from the word and the part of the past that was not reset
    # TODO: mix the proposal with the old state
    x_z, x_r, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_z, h_r, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


# %% rnn/gru_cell | wrong | resets the whole candidate instead of its recurrent term
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(r * (x_n + h_n))
    return (1 - z) * n + z * h


# %% rnn/gru_cell | wrong | forgets the second bias
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    # TODO: project the word and the state, and cut each into reset, update and new
    # TODO: decide what to reset and what to keep
    # TODO: propose a new state from the word and the part of the past that was not reset
    # TODO: mix the proposal with the old state
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h).chunk(3, dim=-1)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


# %% rnn/gru_cell | wrong | squashes the gates with tanh
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    # TODO: project the word and the state, and cut each into reset, update and new
    # TODO: decide what to reset and what to keep
    # TODO: propose a new state from the word and the part of the past that was not reset
    # TODO: mix the proposal with the old state
    x_r, x_z, x_n = (x @ w_x + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ w_h + b_h).chunk(3, dim=-1)
    r = torch.tanh(x_r + h_r)
    z = torch.tanh(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


# %% rnn/gru_cell | wrong | the proposal is squashed by a sigmoid
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    # TODO: project the word and the state, and cut each into reset, update and new
    # TODO: decide what to reset and what to keep
    # TODO: propose a new state from the word and the part of the past that was not reset
    # TODO: mix the proposal with the old state
    (x_r, x_z, x_n), (h_r, h_z, h_n) = (x @ w_x + b_x).chunk(3, -1), (h @ w_h + b_h).chunk(3, -1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).sigmoid()
    return (1 - z) * n + z * h


# %% rnn/sequential_steps | right | a match statement with a guard
def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n words have met.

    n for `rnn` (one step a word), `layers_needed(n - 1, width)` for `window`, 1 for `attention`.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    match kind:
        case "rnn":
            return n
        case "attention":
            return 1
        case "window" if width is not None:
            return layers_needed(n - 1, width)
    raise ValueError(f"unknown kind {kind!r}, or no width")


# %% rnn/sequential_steps | wrong | the window's distance is n instead of n - 1
def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n words have met.

    n for `rnn` (one step a word), `layers_needed(n - 1, width)` for `window`, 1 for `attention`.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    if kind == "rnn":
        return n
    if kind == "window":
        if width is None:
            raise ValueError("a window needs a width")
        return layers_needed(n, width)
    if kind == "attention":
        return 1
    raise ValueError(kind)


# %% rnn/sequential_steps | wrong | attention is said to take n steps
def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n words have met.

    n for `rnn` (one step a word), `layers_needed(n - 1, width)` for `window`, 1 for `attention`.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    # TODO: an RNN reads word after word
    # TODO: windows must be stacked until one state sees the first word and the last
    # TODO: attention compares all pairs at once
    # TODO: nothing else is known
    if kind == "window":
        if width is None:
            raise ValueError("a window needs a width")
        return layers_needed(n - 1, width)
    if kind in ("rnn", "attention"):
        return n
    raise ValueError(kind)


# %% rnn/sequential_steps | wrong | an RNN of n words is said to need n - 1 steps
def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n words have met.

    n for `rnn` (one step a word), `layers_needed(n - 1, width)` for `window`, 1 for `attention`.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    # TODO: an RNN reads word after word
    # TODO: windows must be stacked until one state sees the first word and the last
    # TODO: attention compares all pairs at once
    # TODO: nothing else is known
    if kind == "rnn":
        return n - 1
    if kind == "window":
        if width is None:
            raise ValueError("a window needs a width")
        return layers_needed(n - 1, width)
    if kind == "attention":
        return 1
    raise ValueError(kind)


# %% rnn/sequential_steps | wrong | another kind falls through to attention's 1
def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n words have met.

    n for `rnn` (one step a word), `layers_needed(n - 1, width)` for `window`, 1 for `attention`.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    if kind == "rnn":
        return n
    elif kind == "window":
        if width is None:
            raise ValueError("a window needs a width")
        return layers_needed(n - 1, width)
    else:
        return 1


# %% rnn/sequential_steps | wrong | without a width it raises TypeError from below
def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n words have met.

    n for `rnn` (one step a word), `layers_needed(n - 1, width)` for `window`, 1 for `attention`.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    if kind == "rnn":
        return n
    if kind == "window":
        return -(-(n - 1) // (width - 1))
    if kind == "attention":
        return 1
    raise ValueError(f"what is {kind}?")


# %% rnn/sequential_steps | wrong | returns None for an unknown kind instead of raising
def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n words have met.

    n for `rnn` (one step a word), `layers_needed(n - 1, width)` for `window`, 1 for `attention`.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    if kind == "rnn":
        return n
    if kind == "window":
        if not width:
            raise ValueError("window without width")
        return layers_needed(n - 1, width)
    if kind == "attention":
        return 1


# %% rnn/sequential_steps | wrong | assumes a width of 3 where none is given
def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n words have met.

    n for `rnn` (one step a word), `layers_needed(n - 1, width)` for `window`, 1 for `attention`.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    if kind == "rnn":
        return n
    if kind == "window":
        return layers_needed(n - 1, width or 3)
    if kind == "attention":
        return 1
    raise ValueError(f"unknown kind {kind!r}")


# %% rnn/sequential_steps | wrong | the lecture's formula, n divided by the window
import math


def sequential_steps(kind: str, n: int, width: int | None = None) -> int:
    """Count the least number of steps, one after another, until all pairs of n words have met.

    n for `rnn` (one step a word), `layers_needed(n - 1, width)` for `window`, 1 for `attention`.
    Raises ValueError for another kind, and for `window` without a width.

    >>> sequential_steps("window", n=9, width=3)
    4
    """
    # TODO: an RNN reads word after word
    # TODO: windows must be stacked until one state sees the first word and the last
    # TODO: attention compares all pairs at once
    # TODO: nothing else is known
    if kind == "rnn":
        return n
    if kind == "window":
        if width is None:
            raise ValueError("a window needs a width")
        return math.ceil(n / width)
    if kind == "attention":
        return 1
    raise ValueError(kind)


# %% rnn/lstm_cell | wrong | the ready-made torch.lstm_cell is called, which knows one batch axis only
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
    Along the last axis of the weights the gates stand in torch's order: input, forget,
    candidate, output. Source: Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
    2000.
    """
    return torch.lstm_cell(x, (h, c), w_x.T, w_h.T, b, torch.zeros_like(b))


# %% rnn/gru_cell | wrong | the ready-made nn.GRUCell is called with its data overwritten, so no weight gets a gradient
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
    reset gate acts on the recurrent term after its bias. Source: Cho et al. 2014, whose z is
    our 1 - z and who reset h before the product.
    """
    cell = nn.GRUCell(x.shape[-1], h.shape[-1], dtype=x.dtype)
    cell.weight_ih.data, cell.weight_hh.data = w_x.T.detach(), w_h.T.detach()
    cell.bias_ih.data, cell.bias_hh.data = b_x.detach(), b_h.detach()
    return cell(x, h)


# %% rnn/unroll | wrong | all steps at once, as if none had to wait for another
def unroll(
    xs: Float[Tensor, "... n d_in"],
    h: Float[Tensor, "... d_h"],
    w_x: Float[Tensor, "d_in d_h"],
    w_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "... n d_h"]:
    """Read a whole sentence with `rnn_cell`; return the state after each word.

    h_t = tanh(x_t W_x + h_(t-1) W_h + b) for t = 1..n. The initial state h is not among the
    states returned. Step t cannot begin before step t - 1 has ended.
    """
    before = h.unsqueeze(-2).expand(*xs.shape[:-1], h.shape[-1])
    return torch.tanh(xs @ w_x + before @ w_h + b)
