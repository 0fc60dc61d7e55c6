# %% [markdown]
# # Why do people say LSTM?
#
# **35 minutes · an exploration of lesson 01 · needs no download**
#
# The GRU of lesson 01 keeps its state where a gate says so. Seventeen years older, and for most of that time the standard recurrent network, is the **long short-term memory** (LSTM). **What does it do differently, and how well does it keep a gradient before any training?**

# %%
import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results

rnn_cell = mine("rnn/cell")

# %% tags=["hide-input"]
diagram, gate, dot = drawings.Diagram(), (1.5, 0.9), (0.7, 0.7)
inputs = diagram.box("$x_t, h_{t-1}$", (0, 0), "stream", size=(1.9, 0.9))
old = diagram.box("$c_{t-1}$", (0, 4.6), "value", size=(1.3, 0.9))
forget = diagram.box(r"$\sigma(f)$", (2.9, 1.6), "weights", size=gate)
enter = diagram.box(r"$\sigma(i)$", (5.0, 1.6), "weights", size=gate)
content = diagram.box(r"$\tanh(g)$", (7.2, 1.6), "network", size=(1.7, 0.9))
show = diagram.box(r"$\sigma(o)$", (9.6, 1.6), "weights", size=gate)
keep = diagram.box("×", (2.9, 4.6), size=dot)
product = diagram.box("×", (6.1, 3.1), size=dot)
add = diagram.box("+", (6.1, 4.6), size=dot)
output = diagram.box("×", (9.6, 3.1), size=dot)
memory = diagram.box("$c_t$", (11.4, 4.6), "value", size=(0.9, 0.9))
state = diagram.box("$h_t$", (11.4, 3.1), "key", size=(0.9, 0.9))
for part in (forget, enter, content, show):
    diagram.arrow(inputs, part, leave="E", role="stream")
for start, end in ((old, keep), (keep, add), (add, memory)):
    diagram.arrow(start, end, role="value", width=2.4)
diagram.arrow(forget, keep, "forget", role="weights")
diagram.arrow(enter, product, leave="N", role="weights")
diagram.arrow(content, product, leave="N", role="network")
diagram.arrow(product, add, role="network")
diagram.arrow((9.6, 4.6), output, "tanh", role="value")
diagram.arrow(show, output, role="weights")
diagram.arrow(output, state, role="key")
diagram.show(
    "An LSTM cell. The memory c runs along the top: it is multiplied by the forget gate, then the "
    "product of input gate and candidate tanh(g) is added, which gives the new memory. The tanh "
    "of the memory times the output gate is the new state h. Gates and candidate all read token "
    "and state."
)

# %% [markdown]
# The memory $c$ runs along the top of the drawing, and only gates touch it.
#
# ## A memory beside the state
#
# The LSTM (Hochreiter & Schmidhuber 1997; the forget gate is from Gers et al. 2000) has two vectors: the memory, which is only scaled and added to (here $c$ is not the encoder's context), and a state $h$, the part of the memory that is shown. Three gates and a candidate $g$ come from one product, $[i\; f\; g\; o] = x_t W_x + h_{t-1} W_h + b$, of shape $1 \times 4 d_h$:
#
# $$c_t = \sigma(f) \odot c_{t-1} + \sigma(i) \odot \tanh(g) \qquad h_t = \sigma(o) \odot \tanh(c_t)$$

# %%
# exercise: rnn/lstm_cell

# %%
check("rnn/lstm_cell", lstm_cell)

# %%
lstm_cell = mine("rnn/lstm_cell")

# %% [markdown]
# ## How much it keeps
#
# Along the memory, the gradient is multiplied by the forget gate $\sigma(f)$ at each step. Before training $f$ is near 0, so $\sigma(f)$ is near 0.5. Jozefowicz et al. 2015 advise to add 1 to the bias of the forget gate: $\sigma(1) = 0.73$.

# %% [markdown]
# Measure it as in lesson 01: a random weighted sum of the last state, and the norm of its gradient with respect to the token $k$ steps back. **By how much is it smaller 20 steps back than at the last token, in an LSTM with torch's initialization? And with 1 added to the bias?** If only the memory counted, $0.5^{20}$ would be a millionth, and $0.73^{20}$ two thousandths.

# %%
guess = None  # (fresh, with 1 added)


# %% tags=["hide-input"]
def fresh(*shape):
    return torch.empty(*shape).uniform_(-1 / 8, 1 / 8)  # as torch begins, for 64 numbers


def gradients(cell, state, weights):
    """Return the gradient's norm with respect to the token k back, k = 0 to 50."""
    xs = torch.randn(51, 64, requires_grad=True)
    for x in xs:
        state = cell(x, *state, *weights)
        state = state if isinstance(state, tuple) else (state,)
    (state[0] @ torch.randn(64)).backward()
    return xs.grad.norm(dim=-1).flip(0)


# %%
torch.manual_seed(0)
zeros = torch.zeros(64)
w_x, w_h, b = fresh(64, 256), fresh(64, 256), fresh(256)
more = torch.cat([zeros, torch.ones(64), zeros, zeros])  # input, forget, candidate, output
norms = {
    "LSTM": gradients(lstm_cell, [zeros, zeros], [w_x, w_h, b]),
    "LSTM, forget + 1": gradients(lstm_cell, [zeros, zeros], [w_x, w_h, b + more]),
}
smaller = [norm[0] / norm[20] for norm in norms.values()]
reveal(guess, tuple(round(x.item()) for x in smaller))


# %%
def memory_alone(x, h, c, *weights):
    return lstm_cell(x, h.detach(), c, *weights)  # no gradient through h


for bias, extra in ((0.0, 0 * more), (1.0, more)):
    gate = torch.sigmoid(torch.tensor(bias)).item()
    rates = []
    for cell in (lstm_cell, memory_alone):
        norm = gradients(cell, [zeros, zeros], [w_x, w_h, b + extra])
        rates.append(((norm[40] / norm[10]) ** (1 / 30)).item())
    print(f"gate {gate:.2f}: each step keeps {rates[0]:.2f}; through c alone {rates[1]:.2f}")
    assert gate < rates[0] < gate + 0.15 and abs(rates[1] - gate) < 0.08

# %% [markdown]
# The measured rates are above the gate's, by about 0.1. The reason is a second path, through $h$: cut it, and the rates are close to the gate's. Here are three stored runs of each cell (the norm of the whole Jacobian matrix; your LSTM, one random direction, is the dots):

# %% tags=["hide-input"]
kept = results.load("rnn_limits")["figures"]
title = "Every untrained cell loses a constant factor for each step; a forget bias of 1 loses least"
labels = "tokens back", "gradient of the last state by a token,\nrelative to the last one's"
figure, ax = plots.axes(title, *labels, size=(7, 4))
for colour, (name, runs) in zip(plots.COLOURS, kept["gradient"].items()):
    for run in runs:
        ax.semilogy([norm / run[0] for norm in run], color=colour, linewidth=1)
    if name in norms:
        yours = norms[name] / norms[name][0]
        ax.semilogy(range(0, 51, 5), yours[::5], "o", color=colour, markersize=4)
    height = {"LSTM": 2e-12, "GRU": 3e-10}.get(name, run[50] / run[0])
    ax.text(51, height, name, color=colour, va="center", size="small")
ax.set(ylim=(1e-18, 20), xlim=(0, 66), xticks=range(0, 51, 10))
plots.show(
    figure,
    "Gradient of the last state by the token k steps back, relative to k = 0, on a logarithmic "
    "axis: straight lines. After 20 steps the RNN has 1e-7 left, the GRU 3e-5, the LSTM 4e-5 to "
    "5e-5, the LSTM with 1 added to its forget bias 1e-2.",
)

# %% [markdown]
# Before training, GRU and LSTM do not differ much; the bias does more than the choice of the cell. In lesson 01 *trained* gates kept the gradient alive over 30 letters.
#
# ## Break it
#
# Start a plain RNN with a larger $W_h$ instead. **At which factor does its gradient stop vanishing: 1, 2, 3, 4 or 8?** Without tanh, the factor for each step would be $0.58$ times that number.

# %%
guess = None  # 1, 2, 3, 4 or 8


# %%
def kept_back(factor):
    torch.manual_seed(0)
    weights = [fresh(64, 64), factor * fresh(64, 64), fresh(64)]
    norm = gradients(rnn_cell, [zeros], weights)
    return (norm[50] / norm[0]).item()


left = {factor: kept_back(factor) for factor in (1, 2, 3, 4, 8)}
for factor, share in left.items():
    print(f"W_h times {factor}: 50 steps back, {share:.0e} of the gradient")
reveal(guess, next(factor for factor, share in left.items() if share > 1))
assert left[2] < 1e-3 and left[4] > 1000

# %% [markdown]
# With twice the weights the gradient still vanishes, with four times it explodes. Without tanh, 2 would be enough ($2 \cdot 0.58 > 1$); larger states make tanh flatter, and that costs more than it seems. Between vanishing and exploding there is only a narrow range. Gates help against the first, clipping against the second.
#
# ## What to remember
#
# | | |
# |:-|:-|
# | LSTM | $c_t = \sigma(f) \odot c_{t-1} + \sigma(i) \odot \tanh(g)$, $\; h_t = \sigma(o) \odot \tanh(c_t)$ |
# | gradient along the memory | a product of forget gates, without a weight matrix |
# | forget bias | begin with 1, and each step keeps nearly three quarters instead of a half |
#
# <details><summary>The forget gate of an LSTM is 0.99 at every step. How much of the memory's gradient is left after 100 steps?</summary>
#
# $0.99^{100} = 0.37$ along the memory. With 0.5 it would be $10^{-30}$.
# </details>
#
# Hochreiter & Schmidhuber 1997 and Gers et al. 2000 (LSTM); Jozefowicz et al. 2015 (the forget gate's bias); Cho et al. 2014 (GRU); Pascanu et al. 2013 (exploding gradients, clipping). Lectures: L1, L2, L3.
