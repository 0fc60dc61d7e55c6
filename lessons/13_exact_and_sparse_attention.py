# %% [markdown]
# # 13 · Exact and sparse attention
#
# **226 minutes, of which 119 are the core path · after lesson 08 · needs `shakespeare` (5.4 MB) for one optional section**
#
# Every token attends to every token. In a sentence of 30 tokens that is 900 pairs. In a book of 50,000 it is 2.5 billion, in every head of every layer. Lectures 3 and 4 ask: **what if the text has 50,000 words?**

# %% [markdown]
# There are two kinds of answer. You can compute **exact attention** without ever storing all the scores: that is the idea behind FlashAttention, and you will build it. Or you can leave pairs out: **sparse attention**, with a window around each token, with a few global tokens, with random links. You will build the window. Then we hide a needle in a text and see which pattern finds it.
#
# You need lessons 01 (the RNN, the receptive field), 05, 06 and 08: masks, multi-head attention, the encoder block. Sections marked "(optional)" are not needed later.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, measuring, plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the training below: another one trains another model

# %%
import math
from functools import partial
from course_lib.data import characters, needs
from course_lib.efficient import bigbird, tiled, window
from course_lib.instruments.measuring import (
    largest_difference,
    random_vectors,
    saved_bytes,
    seconds,
)

softmax = mine("attention/softmax")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
MultiHeadAttention = mine("multi_head/attention")
receptive_field = mine("windows/receptive_field")

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention"},
    "The Transformer of 2017, with self-attention in the encoder block and masked self-attention "
    "in the decoder block highlighted: the two parts whose cost grows with the square of the length.",
)

# %% [markdown]
# ## Count the multiply-adds
#
# To make something cheaper, first find out what costs. Take a text of $n$ tokens and vectors of size $d$. An attention layer multiplies by four matrices, scores all $n^2$ pairs, and averages $n$ values for each token. A recurrent layer (lesson 01) multiplies each input and each hidden state by a matrix. In **multiply-adds**:
#
# $$\text{attention: } \underbrace{4\,n d^2}_{W_Q,\,W_K,\,W_V,\,W_O} + \underbrace{n^2 d}_{Q K^T} + \underbrace{n^2 d}_{\text{weights} \cdot V} \qquad\qquad \text{RNN: } \underbrace{n d^2}_{x_t W_x} + \underbrace{n d^2}_{h_{t-1} W_h}$$

# %% [markdown]
# The number of heads does not matter: each of $h$ heads has vectors of size $d/h$ (lesson 06). Divide one count by the other:
#
# $$\frac{4 n d^2 + 2 n^2 d}{2 n d^2} = 2 + \frac{n}{d}$$
#
# Lectures 1 and 3 say: think of $d$ as about 1,000. **For a sentence of 30 tokens and a book of 50,000, how many times the multiply-adds of the RNN layer does the attention layer need?**

# %%
guess = None  # two factors, such as (2, 100)


# %% tags=["nbval-check-output"]
def times_the_rnn(n, d=1000):
    attention, rnn = 4 * n * d**2 + 2 * n**2 * d, 2 * n * d**2
    return attention / rnn


print({n: times_the_rnn(n) for n in (30, 1000, 50_000)})
reveal(guess, (times_the_rnn(30), times_the_rnn(50_000)))

# %% [markdown]
# The $n/d$ is what the square adds. At 30 tokens it hardly matters. At 50,000 tokens it is nearly everything.

# %% [markdown]
# > **Where the paper's count leaves something out.** Vaswani et al. 2017 (table 1) print $O(n^2 \cdot d)$ for self-attention and $O(n \cdot d^2)$ for a recurrent layer, and section 4 says: "In terms of computational complexity, self-attention layers are faster than recurrent layers when the sequence length $n$ is smaller than the representation dimensionality $d$". The first entry counts scores and averages, without attention's four matrices. The second counts the RNN's two matrices: it has nothing else. Count both *layers*, and attention never needs less than twice as much. The next cell lets PyTorch count.

# %%
from torch.utils.flop_counter import FlopCounterMode


def multiply_adds(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops() // 2  # PyTorch counts a multiplication and an addition


n, d = 30, 256
x, layer, (w_x, w_h) = torch.randn(1, n, d), MultiHeadAttention(d, 4), torch.randn(2, d, d)
ours = multiply_adds(lambda: layer(x, x, x))
rnns = multiply_adds(lambda: [token @ w_x + token @ w_h for token in x.split(1, dim=1)])
print(f"n = {n}, d = {d}: {ours:,} and {rnns:,}, a factor of {ours / rnns:.2f}")
assert ours == 4 * n * d**2 + 2 * n**2 * d and ours / rnns == 2 + n / d

# %% [markdown]
# The paper is still right that a recurrent layer needs $n$ *sequential operations* and attention a constant number: no token waits for the one before. Whether it is "faster" is a question for a clock, in the section "Then measure".
#
# ## The paper's entry as a function (optional)
#
# If you want the count of table 1 itself as code, for scores and averages alone:

# %%
# exercise: efficient/operations

# %%
check("efficient/operations", operations)

# %%
operations = mine("efficient/operations")
assert operations("attention", 30, 1000) / operations("rnn", 30, 1000) == 30 / 1000

# %% [markdown]
# ## A book of 50,000 tokens (optional)
#
# Let us work the lectures' question out for one layer: $n = 50{,}000$, $d = 1{,}024$, 16 heads, numbers of two bytes. There are $n^2$ weights in each head. **How much memory do the weights of this one layer take, for one text?**

# %%
guess = None  # in GiB

# %% tags=["nbval-check-output"]
n, d, heads = 50_000, 1024, 16
matrices, pairs = 4 * n * d**2, 2 * n**2 * d
gibibytes = heads * n**2 * 2 / 2**30
print(f"multiply-adds: {matrices:.1e} for the matrices, {pairs:.1e} for scores and averages")
print(f"weights: {gibibytes:.1f} GiB; the tokens themselves: {n * d * 2 / 2**30:.2f} GiB")
reveal(guess, f"{gibibytes:.1f} GiB")
assert pairs / matrices > 24

# %% [markdown]
# That is 80 GB: a large graphics processor is full after one layer. The *time* would be bearable: at $10^{14}$ multiply-adds a second, which such a processor reaches, the layer's $5 \cdot 10^{12}$ take a twentieth of a second. So memory gives out first. Of the two squares, $n^2$ operations and $n^2$ numbers in memory, we should attack the second one first. But do not believe a count; measure.

# %% [markdown]
# ## Then measure
#
# The race is between two *whole layers*, matrices on both sides: your `MultiHeadAttention` with $d = 256$ and four heads, and PyTorch's RNN of the same size. `seconds` takes the CPU time of a forward and a backward pass, the least of three. `saved_bytes` adds up the **activation memory**: what autograd saves in the forward pass for the backward pass, without the parameters.

# %%
attention, rnn = MultiHeadAttention(256, 4), nn.RNN(256, 256, batch_first=True)
layers = {
    "attention": (attention, lambda x: attention(x, x, x)),
    "RNN": (rnn, lambda x: rnn(x)[0]),
}

# %% [markdown]
# At $n = 256 = d$, the attention layer needs three times the multiply-adds. **And how many times the CPU time?**

# %%
guess = None  # a factor: 3, or less, or more?

# %%
lengths = [64, 128, 256, 512, 1024, 2048]
texts = [random_vectors(1, n, 256) for n in lengths]
taken = {name: [seconds(partial(run, x)) for x in texts] for name, (_, run) in layers.items()}
saved = {
    name: [saved_bytes(partial(run, x), [*layer.parameters()]) for x in texts]
    for name, (layer, run) in layers.items()
}
ratios = [one / other for one, other in zip(*taken.values())]
reveal(guess, f"{ratios[2]:.1f}")
print({n: round(ratio, 1) for n, ratio in zip(lengths, ratios)})
claim = "attention takes less time at 128 tokens, the RNN at 2,048"
came = f"{ratios[1]:.1f} and {ratios[-1]:.1f} times the RNN's"
measuring.expect(claim, ratios[1] < 1 < ratios[-1], came)

# %% tags=["hide-input"]
title = "Attention overtakes the RNN in time, and its memory turns quadratic"
figure, panels = plots.panels(title, ["CPU time", "activation memory"], size=(9, 3.6))
megabytes = {name: [size / 1e6 for size in sizes] for name, sizes in saved.items()}
for ax, lines in zip(panels, (taken, megabytes)):
    for colour, (name, values) in zip(plots.COLOURS, lines.items()):
        ax.loglog(lengths, values, "o-", color=colour)
        ax.annotate(name, (lengths[-1], values[-1]), (6, 0), textcoords="offset points")
    start = lines["attention"][-1] / 16
    ax.loglog(lengths[-3:], [start, 4 * start, 16 * start], ":", color="0.5", zorder=0)
    ax.annotate("$n^2$", (lengths[-2], 4 * start), (-16, 8), textcoords="offset points")
    ax.set(xticks=lengths, xticklabels=lengths, xlabel="$n$, tokens", xlim=(55, 6000))
    ax.minorticks_off()
if slower := [n for n, ratio in zip(lengths, ratios) if ratio > 1]:
    panels[0].axvline(slower[0], color="0.7", linestyle="--", linewidth=1, zorder=0)
    told = f" from {slower[0]:,} tokens,\n the RNN is faster"
    panels[0].text(slower[0], min(taken["attention"]), told, size="small", color="0.4")
panels[0].set_ylabel("forward and backward, s")
panels[1].set_ylabel("saved for the backward pass, MB")
growth = {name: sizes[-1] / sizes[-2] for name, sizes in saved.items()}
assert growth["attention"] > 3.5 and growth["RNN"] < 2.1
assert all(one > other for one, other in zip(*saved.values()))
plots.show(
    figure,
    "Two plots on log scales, against n from 64 to 2,048. CPU time: at 64 tokens attention takes "
    f"{ratios[0]:.1f} times the RNN's time, at 2,048 {ratios[-1]:.1f} times; a dashed line marks "
    "from where the RNN is faster. Activation memory: from 1,024 "
    "to 2,048 tokens, attention's grows by a factor above 3.5 and the RNN's by 2.",
)

# %% [markdown]
# At $n = 128$ the attention layer does 2.5 times the RNN's multiply-adds. Yet in our run, printed above, it takes less CPU time. The RNN's $n$ steps run one after another, and each is too small to keep a processor busy (lesson 01); attention's products are large. So in this sense the paper's "faster" is right. But the square wins in the end, and in memory first: there attention needs more at every length. From 1,024 to 2,048 tokens, the RNN's memory doubles and attention's grows by a factor above 3.5. The next section removes this square.

# %% [markdown]
# ## The square need not be stored
#
# Exact attention needs all $n^2$ scores. It does not need them all *at once*. Cut the matrix of scores into **tiles**: a block of queries times a block of keys. Compute one tile, use it, forget it, go on to the next. The difficulty is the softmax, because its sum runs over a whole row, and a tile sees only a part of the row.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
whole = diagram.matrix(
    "$S$: all scores in memory", (8, 8), (1.6, 0), "weights", axes=("$n$", "$n$")
)
tiled_scores = diagram.matrix("one tile in memory", (8, 8), (7.2, 0), "dim", axes=("$n$", "$n$"))
diagram.matrix("", (2, 2), (7.2 - 0.32, 0.32), "weights")
state = diagram.matrix("$m$, $\\ell$", (8, 2), (10.0, 0), "stream", axes=("", "2"))
output = diagram.matrix("$o$", (8, 3), (11.7, 0), "value", axes=("", "$d$"))
diagram.text("softmax of whole rows", (1.6, -2.35), size=9)
diagram.text("online softmax: two numbers and one vector for each query", (8.7, -2.35), size=9)
diagram.show(
    "Two matrices of scores, n by n. On the left all 64 cells are in memory. On the right one tile "
    "of 2 by 2 cells is in memory, and beside it, for each of the n queries, two numbers m and l, "
    "and a vector o of size d.",
)

# %% [markdown]
# **Online softmax** (Milakov & Gimelshein 2018) finds the maximum $m$ of a row and its sum of exponentials $\ell$ in one pass, from left to right. Attention by tiles carries a third thing along, the weighted sum of values $o$, so that no score is needed twice (Rabe & Staats 2021, Dao et al. 2022). Both sums are relative to $m$, so that no exponential overflows:
#
# $$\underset{1}{m} = \max_{j\ \text{seen}} s_j \qquad \underset{1}{\ell} = \sum_{j\ \text{seen}} e^{s_j - m} \qquad \underset{d_v}{o} = \sum_{j\ \text{seen}} e^{s_j - m}\, v_j$$
#
# When all keys have been seen, $o / \ell$ is the output of attention: the exponentials over their sum, times the values.

# %% [markdown]
# Now a new tile arrives. If one of its scores is larger than $m$, the maximum rises to $m'$, and the old sums are relative to the wrong maximum. Multiply each of their terms by $e^{m - m'}$:
#
# $$e^{m - m'} \cdot e^{s_j - m} = e^{s_j - m'}$$
#
# The factor is the same for every term, so we do not need the old scores again. That is the whole trick:
#
# $$m' = \max\big(m,\ \max_{j\ \text{new}} s_j\big) \qquad \ell' = e^{m-m'}\,\ell + \sum_{j\ \text{new}} e^{s_j - m'} \qquad o' = e^{m-m'}\,o + \sum_{j\ \text{new}} e^{s_j - m'}\, v_j$$
#
# Before the first tile: $m = -\infty$, $\ell = 0$, $o = 0$.

# %% [markdown]
# ## Six scores by hand
#
# One query, six keys, in two tiles of three. The scores are 1, 3, 2 and 5, 1, 4. The values are the numbers 1 to 6.
#
# After the first tile, $m = 3$, $\ell = e^{-2} + 1 + e^{-1} = 1.50$, and $o = 1\,e^{-2} + 2 + 3\,e^{-1} = 3.24$. Then comes the second tile, with a 5 in it. **By which factor must $\ell$ and $o$ be multiplied?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
s, v = torch.tensor([1.0, 3, 2, 5, 1, 4]), torch.tensor([1.0, 2, 3, 4, 5, 6])
m, total, out = -math.inf, 0.0, 0.0
for tile in (slice(0, 3), slice(3, 6)):
    risen = max(m, s[tile].max().item())
    factor = math.exp(m - risen)
    weights = (s[tile] - risen).exp()
    total = factor * total + weights.sum().item()
    out = factor * out + (weights * v[tile]).sum().item()
    m = risen
    print(
        f"m {m:.0f}   factor {factor:.3f}   sum {total:.2f}   o {out:.2f}   o/sum {out / total:.2f}"
    )
reveal(guess, f"{factor:.3f}, which is e to the power 3 - 5")
assert abs(out / total - (softmax(s) @ v).item()) < 1e-6

# %% [markdown]
# | | $m$ | factor $e^{m-m'}$ | $\ell$ | $o$ | output so far, $o/\ell$ |
# |:-|-:|-:|-:|-:|-:|
# | before | $-\infty$ | | 0 | 0 | |
# | after 1, 3, 2 | 3 | 0 | 1.50 | 3.24 | 2.15 |
# | after 5, 1, 4 | 5 | 0.135 | 1.59 | 6.74 | 4.24 |
#
# The assertion compares the last number with an ordinary softmax over all six. They agree. Note the first factor: $e^{-\infty} = 0$ wipes out the empty sums, so the first tile needs no special case.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
states = ["$-\\infty,\\ 0,\\ 0$", "$3,\\ 1.50,\\ 3.24$", "$5,\\ 1.59,\\ 6.74$"]
boxes = [
    diagram.box(text, (1.2 + 4.4 * i, 0), "stream", size=(2.4, 0.8))
    for i, text in enumerate(states)
]
for i, (scores, factor) in enumerate((("1  3  2", "0"), ("5  1  4", "0.135"))):
    x = 3.4 + 4.4 * i
    tile = diagram.box(f"scores {scores}", (x, 2.0), "weights", size=(2.3, 0.8))
    diagram.text(f"tile {i + 1} of keys and values", (x, 2.75), size=9)
    diagram.arrow(boxes[i], boxes[i + 1])
    diagram.arrow(tile, (x, 0.08))
    diagram.text(f"× {factor},", (x, -0.35), size=9)
    diagram.text("then add", (x, -0.7), size=9)
diagram.text("$m,\\ \\ell,\\ o$", (1.2, -0.75), size=9)
last = diagram.box("4.24", (12.5, 0), "value", size=(1.0, 0.8))
diagram.arrow(boxes[2], last)
diagram.text("$o/\\ell$", (11.55, 0.35), size=9)
diagram.show(
    "The online softmax as a chain of states m, l, o: minus infinity, 0, 0; then 3, 1.50, 3.24 "
    "after the tile of scores 1, 3, 2; then 5, 1.59, 6.74 after the tile 5, 1, 4. On each arrow the "
    "old sums are multiplied, by 0 and by 0.135, and the tile is added. The output is 4.24.",
)

# %% [markdown]
# ## Build: attention by tiles
#
# With many queries, $m$ and $\ell$ are columns, one entry for each query, and $o$ has a row for each. A tile of $b_q$ queries and $b_k$ keys:
#
# $$\underset{b_q \times b_k}{S} = \frac{1}{\sqrt{d_k}}\; \underset{b_q \times d_k}{Q}\; \underset{d_k \times b_k}{K^T} \qquad \underset{b_q \times 1}{m'} \qquad \underset{b_q \times 1}{\ell'} \qquad \underset{b_q \times d_v}{o'}$$
#
# No matrix of scores may be larger than a tile, and `block` need not divide $n$.

# %%
# exercise: efficient/tiled

# %%
check("efficient/tiled", tiled_attention)

# %%
tiled_attention = mine("efficient/tiled")

# %% [markdown]
# Is it exact? From here on, each fast form is compared with the slow one: the results, and the gradients of all inputs, in float64.

# %%
q, k, v = (random_vectors(2, 50, 8, seed=i, dtype=torch.float64) for i in range(3))
found = largest_difference(
    tiled_attention(q, k, v, 16), scaled_dot_product_attention(q, k, v), q, k, v
)
print(f"tiled and full attention differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# One thing is left. Autograd would save every tile of your loop for the backward pass, and then all $n^2$ numbers are in memory after all. The library's version writes its own backward pass. It saves $Q$, $K$, $V$, the output, and $m$ and $\ell$ of each query. From these, each tile of weights can be computed again: $P_{ij} = e^{s_{ij} - m_i} / \ell_i$. **Twice the tokens: how many times the activation memory?**

# %%
guess = None  # a factor

# %% tags=["nbval-check-output"]
inputs = [[random_vectors(4, n, 64, seed=i) for i in range(3)] for n in (1024, 2048)]
tiled_bytes = [saved_bytes(partial(tiled.rule, *qkv)) for qkv in inputs]
full_bytes = [saved_bytes(partial(scaled_dot_product_attention, *qkv)) for qkv in inputs]
reveal(guess, tiled_bytes[1] / tiled_bytes[0])
print(f"tiles: {tiled_bytes[1] / 1e6:.1f} MB for 2,048 tokens and four heads")
assert tiled_bytes[1] == 2 * tiled_bytes[0] and full_bytes[1] > 3.7 * full_bytes[0]
assert full_bytes[1] > 10 * tiled_bytes[1]

# %% [markdown]
# Linear, and exact. The full matrix takes more than ten times as much at this length, and the factor grows with $n$. Computing a tile twice costs one product more in the backward pass. Is less memory paid for with more time, then? Not necessarily.
#
# ## It is also a matter of moving numbers (optional)
#
# A processor computes on a small, fast memory and keeps everything else in a large, slow one. On a graphics processor they are called **SRAM** (on the chip) and **HBM** (beside it); on yours, cache and RAM. Between multiplications, numbers have to move.

# %% tags=["hide-input"]
diagram = drawings.Diagram()


def memories(x, title, moves):
    """Draw a fast memory above a slow one, and what moves between them."""
    diagram.text(title, (x, 4.15))
    fast = diagram.box("cache, SRAM: fast, small", (x, 3.3), "network", size=(5.6, 0.8))
    slow = diagram.box("RAM, HBM: slow, large", (x, 0), "dim", size=(5.6, 0.8))
    for i, (name, up, role) in enumerate(moves):
        place = x - 2.2 + 4.4 * i / (len(moves) - 1)
        ends = [(place, 0.4), (place, 2.9)]
        diagram.arrow(*(ends if up else ends[::-1]), role=role)
        diagram.text(name, (place + 0.08, 1.65), size=9, align="left")
    return fast, slow


memories(
    2.9,
    "full matrix, step by step",
    [
        ("$Q, K$", True, "query"),
        ("$S$", False, "weights"),
        ("$S$", True, "weights"),
        ("$P$", False, "weights"),
        ("$P, V$", True, "weights"),
        ("$O$", False, "value"),
    ],
)
memories(
    9.6,
    "tiles",
    [("$Q$", True, "query"), ("$K, V$", True, "key"), ("$O$", False, "value")],
)
diagram.text("$n \\times n$ crosses four times", (2.9, -0.8), size=9)
diagram.text("$K, V$ cross once for each block of queries,", (9.6, -0.8), size=9)
diagram.text("$n \\times n$ never", (9.6, -1.2), size=9)
diagram.show(
    "Two pictures of a fast and a slow memory. Full matrix: Q and K move up, the scores S down and "
    "up again, the weights P down and up again with V, the output O down; S and P are n by n. "
    "Tiles: Q moves up once, K and V once for each block of queries, O down; no n by n matrix crosses.",
)

# %% [markdown]
# Step by step, the full matrix $S$ is written and read, and so is $P = \mathrm{softmax}(S)$. With tiles, a tile stays in fast memory until it is used up. In return, $K$ and $V$ move up once for each block of queries. A fast memory of $M$ numbers has room for about $M/d$ queries. That makes $nd/M$ blocks, and each moves $nd$ numbers. (Dao et al. 2022 loop the other way, keys and values outside, and get the same order: theorem 2.)
#
# $$\text{full: } \Theta(n d + n^2) \text{ numbers moved} \qquad\qquad \text{tiles: } \Theta\!\left(\frac{n d}{M} \cdot n d\right) = \Theta\!\left(\frac{n^2 d^2}{M}\right)$$
#
# Here $d$ is the size of one head's vectors. The paper's 100 KB hold $M \approx 50{,}000$ numbers of two bytes; for $d$ of 64 or 128, $d^2$ is 12 or 3 times smaller, so less is moved. Because it plans these moves, **FlashAttention** is called **IO-aware**. Quoted from the paper's figure 2, forward and backward on an A100:
#
# | | multiplications and additions | moved to and from HBM | time |
# |:-|-:|-:|-:|
# | standard | 66.6 GFLOPs | 40.3 GB | 41.7 ms |
# | FlashAttention | 75.2 GFLOPs | 4.4 GB | 7.3 ms |

# %% [markdown]
# It computes *more* and is nearly six times as fast. Does it work on your processor, from Python? Three ways to the same result: your full attention, the library's tiles, and `F.scaled_dot_product_attention`, which is compiled. **Which tile is the fastest: 16 × 16, 256 × 256, or one tile as large as the text, 2,048 × 2,048?**

# %%
guess = None  # 16, 256 or 2048

# %% tags=["once"]
qkv = inputs[1]
blocks = [16, 64, 256, 1024, 2048]
by_block = [seconds(partial(tiled.tiled_attention, *qkv, block), times=1) for block in blocks]
full = seconds(partial(scaled_dot_product_attention, *qkv))
fused = seconds(lambda: F.scaled_dot_product_attention(*(x.unsqueeze(0) for x in qkv)))
print({block: f"{1000 * time:.0f} ms" for block, time in zip(blocks, by_block)})
print(f"full matrix {1000 * full:.0f} ms, compiled {1000 * fused:.0f} ms")
reveal(guess, blocks[by_block.index(min(by_block))])
claim = "tiles of 256 and of 2,048 beat the full matrix, and those of 256 beat those of 16 twofold"
holds = by_block[0] > 2 * by_block[2] and by_block[2] < full and by_block[-1] < full
measuring.expect(claim, holds, "the times above")

# %% tags=["once", "hide-input"]
title = "Tiles take less time than the full matrix, if they are not too small"
figure, ax = plots.axes(title, "queries and keys in a tile", "CPU time, s", size=(7.2, 3.6))
ax.loglog(blocks, by_block, "o-", color=plots.COLOURS[0])
ax.annotate("tiles, in Python", (blocks[0], by_block[0]), (10, 0), textcoords="offset points")
for name, time, colour in (("full matrix", full, 1), ("compiled", fused, 2)):
    ax.axhline(time, color=plots.COLOURS[colour], linestyle="--")
    ax.annotate(name, (2900, time), (0, 4), textcoords="offset points", ha="right")
ax.set(xticks=blocks, xticklabels=blocks, xlim=(13, 3000))
ax.yaxis.set_major_formatter("{x:g}")
ax.yaxis.set_major_locator(plots.plt.LogLocator(subs=(1, 2, 5)))
ax.minorticks_off()
plots.show(
    figure,
    "CPU time of attention by tiles against the size of a tile, on log scales, for 2,048 tokens "
    "and four heads. Tiles of 16 take more than twice the time of tiles of 256, and these take "
    "less than the full matrix. Dashed lines show the full matrix and the compiled function.",
)

# %% [markdown]
# With small tiles, the time goes into thousands of calls from Python. For four heads, a tile of 256 takes $4 \cdot 256^2 \cdot 4$ bytes. That is 1 MB and fits into a cache. The tile of 2,048 takes 67 MB and does not.

# %% [markdown]
# Yet even that one takes less time than the full matrix. This part of the gain cannot come from tiles. A likely reason, not tested here: your function makes a new $n \times n$ matrix at each step of the softmax; the library changes its own in place. Tiling itself saves only the time between the points 2,048 and 256.

# %% [markdown]
# Why is the **compiled** function usually faster still? In our loop, each product, maximum, exponential and sum is a call of its own that writes its result to cache or memory, where the next call reads it. A **fused kernel** is one compiled loop that does all of this while the tile is in fast memory.

# %% [markdown]
# `F.scaled_dot_product_attention` chooses among several such kernels. On some backends it uses FlashAttention, on others it falls back to the full matrix. So our tiles are for understanding, and for patterns that no kernel knows. Milakov and Gimelshein found the online softmax; Rabe & Staats 2021 used it to show that self-attention does not need $O(n^2)$ memory; Dao and others saw that moving less also means less time.
#
# What remains quadratic is the *time*. To save that, some pairs must not be computed at all. Which ones?

# %% [markdown]
# ## Leave pairs out: a window
#
# Much of what helps to understand a token is near it. Vaswani et al. 2017 (section 4) already suggest that self-attention "could be restricted to considering only a neighborhood of size $r$". (There $r$ is the whole neighborhood.) Beltagy et al. 2020 call it a **sliding window**. A window of width $w$ lets each token attend to $w // 2$ tokens on either side, and to itself:
#
# $$\text{token } i \text{ attends to } j \quad\Longleftrightarrow\quad |i - j| \le r, \qquad r = w // 2$$
#
# Scores and averages then cost $2\,n\,(2r+1)\,d$ multiply-adds in place of $2\,n^2 d$, a little less at the two ends of the text.

# %%
# exercise: efficient/window_mask

# %%
check("efficient/window_mask", window_mask)

# %%
window_mask = mine("efficient/window_mask")

# %% [markdown]
# As a mask, the window saves nothing: all $n^2$ scores are computed, and most of them are thrown away. **In a text of 65,536 tokens with a window of 257, what share of the pairs is kept?**

# %%
guess = None  # a share

# %% tags=["nbval-check-output"]
n, r = 65_536, 128
pairs = n * (2 * r + 1) - r * (r + 1)  # less what the windows lack at both ends
reveal(guess, f"{pairs / n**2:.2%}")
assert window_mask(1000, 257).sum() == 1000 * 257 - r * (r + 1)

# %% [markdown]
# To avoid computing the rest, cut the queries into blocks, as with tiles. All keys that a block of queries can see form one short **stretch**: the block itself and $r$ tokens on each side. Make only this rectangle of scores, and hide its two corners with a mask.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
cell, n, block, r = 0.4, 12, 4, 2
grid = diagram.matrix("", (n, n), (0, 0), "dim", axes=("query", "key"), cell=cell)
top = n * cell / 2
for i in range(n):
    for j in range(n):
        inside = 4 <= i < 8 and 2 <= j < 10
        if abs(i - j) <= r:
            role = "weights" if inside else "stream"
            place = (-top + (j + 0.5) * cell, top - (i + 0.5) * cell)
            diagram.matrix("", (1, 1), place, role, cell=cell)
diagram.text("one block of 4 queries", (3.1, 0.6), align="left")
diagram.text("its stretch: 4 + 2 · 2 = 8 keys", (3.1, 0), align="left")
diagram.text("20 of these 32 pairs are in the window", (3.1, -0.6), align="left")
diagram.frame("", (0, 0), (8 * cell, 4 * cell))
near = [abs(i - j) <= r for i in range(4, 8) for j in range(2, 10)]
assert len(near) == 32 and sum(near) == 20
diagram.show(
    "A matrix of 12 by 12 pairs with a band of width 5 along the diagonal. A dashed frame of 4 by "
    "8 cells in the middle is the rectangle of one block of four queries and its stretch of eight "
    "keys. 20 of its 32 cells are in the band; the cells outside it are in two corners.",
)

# %% [markdown]
# ## Build: window attention
#
# For the block of queries $a, \dots, b-1$, the stretch is $\max(0, a - r), \dots, \min(n, b + r) - 1$. With a block of $b_q$ queries:
#
# $$\underset{b_q \times (b_q + 2r)}{S} = \frac{1}{\sqrt{d_k}}\; \underset{b_q \times d_k}{Q_{\text{block}}}\; \underset{d_k \times (b_q + 2r)}{K_{\text{stretch}}^T}$$
#
# Each row of a block needs only this stretch, so an ordinary softmax will do. You choose $b_q$: a small one wastes few scores but needs many steps of Python; with $b_q = 2r$ the rectangles take twice what the band needs.

# %%
# exercise: efficient/window

# %%
check("efficient/window", window_attention)

# %%
window_attention = mine("efficient/window")

# %%
under_mask = scaled_dot_product_attention(q, k, v, window_mask(50, 9))
found = largest_difference(window_attention(q, k, v, 9), under_mask, q, k, v)
print(f"window attention and full attention under its mask differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# Now double the text, and see how the CPU time of full attention and of a window of 257 grows:

# %%
longer = [[random_vectors(4, n, 64, seed=i) for i in range(3)] for n in (2048, 4096)]
of_full, of_window = (
    [seconds(partial(run, *qkv), times=1) for qkv in longer]
    for run in (scaled_dot_product_attention, partial(window.rule, width=257))
)
print(f"twice the tokens: full {of_full[1] / of_full[0]:.1f} times the time, ", end="")
print(f"window {of_window[1] / of_window[0]:.1f} times")
print(f"at 4,096 tokens the window is {of_full[1] / of_window[1]:.0f} times as fast")
claim = "at 4,096 tokens the window is faster"
measuring.expect(claim, of_window[1] < of_full[1], f"{of_window[1]:.2f} and {of_full[1]:.2f} s")

# %% [markdown]
# The window's time grows with $n$, not with its square. What it gives up is distance: two tokens further apart than $r$ never meet in one layer. But layers stack. Each layer hands on what it has seen, as in lesson 01's stacked windows, so the **receptive field** of a token grows by $2r$ per layer:
#
# $$\text{receptive field of } L \text{ layers} = 1 + L \cdot 2r$$

# %% tags=["hide-input"]
title = "Two windows of width 3 reach five tokens: each layer adds one on both sides"
figure, ax = plots.axes(title, "", "", size=(8.2, 2.9))
places = [(i, layer) for layer in range(3) for i in range(-4, 5)]
lit = [(i, layer) for i, layer in places if abs(i) <= 2 - layer]
needs_it = [((j, layer - 1), (i, layer)) for i, layer in lit if layer for j in (i - 1, i, i + 1)]
colours = {place: plots.PALE[0] if place in lit else plots.PALE[3] for place in places}
plots.graph(ax, dict.fromkeys(places, ""), needs_it, colours)
for layer, name in enumerate(("tokens", "after layer 1", "after layer 2")):
    ax.text(4.6, layer, name, va="center")
ax.set_xlim(-4.6, 6.4)
assert [receptive_field(layers, 3) for layers in (0, 1, 2)] == [1, 3, 5]
plots.show(
    figure,
    "Two layers of windows of width 3 over nine tokens. One state after layer 2 depends on three "
    "states after layer 1, and these on five tokens.",
)

# %% [markdown]
# **A window of 257 and 12 layers: how many tokens can one state depend on?**

# %%
guess = None  # a number of tokens

# %%
reveal(guess, receptive_field(12, 257))
assert receptive_field(12, 257) == 1 + 12 * 256 == 3073

# %% [markdown]
# That is a sixteenth of our book, and what comes from its edge has passed through 12 layers. Can a few more pairs shorten the way?

# %% [markdown]
# ## BigBird: a window, global tokens, random links
#
# BigBird (Zaheer et al. 2020) joins three patterns. A window, as above. A few **global** tokens, which see all tokens and are seen by all. And for each token a few **random** others. All of this in blocks of tokens, because processors like rectangles. The library lists for each block of queries the blocks of keys that it sees. Below, `(3, 1, 2)` is a window of three blocks, one global block, and two random blocks:

# %%
from course_lib.efficient.bigbird import bigbird_mask, neighbours

PARTS = {"window": (3, 0, 0), "global": (0, 1, 0), "random": (0, 0, 2), "BigBird": (3, 1, 2)}
listed = neighbours(16, *PARTS["BigBird"], seed=0)
print("block 7 sees the blocks", sorted(block for block in listed[7].tolist() if block >= 0))

# %% tags=["hide-input"]
from matplotlib.colors import ListedColormap

title = "Three patterns, and all of them together: the pairs that are computed"
patterns = {name: bigbird_mask(neighbours(16, *part, seed=0), 4) for name, part in PARTS.items()}
figure, panels = plots.panels(title, list(patterns), size=(10, 3.1))
for ax, mask in zip(panels, patterns.values()):
    ax.imshow(mask.float().masked_fill(~mask, torch.nan), cmap=ListedColormap([plots.COLOURS[0]]))
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.7", hatch="///")
    ax.set(xlabel=f"key: {mask.float().mean():.0%} of the pairs", xticks=[], yticks=[])
panels[0].set_ylabel("query")
three = patterns["window"] | patterns["global"]
assert (patterns["BigBird"] >= three).all()
plots.show(
    figure,
    "Four masks of 16 by 16 blocks. Window: a band of three blocks. Global: the first row and the "
    "first column. Random: two scattered blocks in each row. BigBird: all of these. Below each, its "
    f"pairs: {', '.join(f'{mask.float().mean():.0%}' for mask in patterns.values())}.",
)

# %% [markdown]
# Block 7 sees its window (6, 7, 8), the global block 0 and two random ones.
#
# Why random links? Count the layers until *every* block can have heard from every other. Through a window, information moves from neighbour to neighbour. A random link may lead anywhere. Take 256 blocks. **How many layers does a window of five blocks need, and how many does a window of three with two random links, which has about as many pairs?**

# %%
guess = None  # (window of five, window of three and two random)


# %%
def layers_until_all_know(listed):
    sees = bigbird_mask(listed, 1).float()
    knows, count = sees, 1
    while not knows.all():
        knows, count = (sees @ knows).clamp(max=1), count + 1
    return count


# %%
kinds = {"window of 5": (5, 0, 0), "window of 3, 2 random": (3, 0, 2), "1 global": (0, 1, 0)}
needed = {
    name: layers_until_all_know(neighbours(256, *kind, seed=0)) for name, kind in kinds.items()
}
print(needed)
reveal(guess, tuple(needed.values())[:2])
assert needed["window of 5"] == 128 and needed["window of 3, 2 random"] < 12
assert needed["1 global"] == 2

# %% [markdown]
# With two random links for each block, a few layers are enough instead of 128. (The paper's reason: random graphs are, with high probability, **expanders**, in which information reaches all $n$ nodes in about $\log n$ steps.) One global block needs two layers: into the block, and out again. These are *paths*. Whether a model learns to use them is another question. Below we train models to find out.

# %% [markdown]
# Is there a **causal** BigBird? Drop the blocks that come later, and put a triangular mask on the block of the diagonal; ours is `causal=True`. But this has a price. The global block comes first, so now it sees only itself: all later tokens can read it, but it can no longer collect anything from them. The path into the block and out again needs tokens that look in both directions, as in an encoder. Sparse Transformers (Child et al. 2019) have causal patterns too, without random links.

# %%
from course_lib.masks import causal_mask

sizes = {"block": 4, "window": 3, "global_blocks": 1, "random_blocks": 2}
ours = bigbird.rule(q, k, v, causal=True, **sizes)
mask = bigbird_mask(neighbours(13, 3, 1, 2, seed=0), 4)[:50, :50] & causal_mask(50)
found = largest_difference(ours, scaled_dot_product_attention(q, k, v, mask), q, k, v)
print(f"causal BigBird and full attention under its mask differ by {found:.0e}")
assert found < 1e-10
assert not mask[:4, 4:].any(), "the global block sees itself alone"

# %% [markdown]
# ## Build BigBird (optional)
#
# Three exercises, if you want to write it yourself: the lists, the mask, and the attention. In the attention, mind the rows of the global blocks: they attend to the whole text. Do not pad the other rows to that length.

# %% [markdown]
# What does it cost? With a window of $w$, $g$ global and $r$ random blocks of $b$ tokens, most rows score $(w + g + r)\,b$ keys, and $g b$ global rows score all $n$. Overlaps aside, that is $2 n d \cdot b\,(w + 2g + r)$ multiply-adds. For $(3, 1, 2)$ and $b = 64$, full attention takes as many at $n = 448$, and nine times as many at 4,096. Hugging Face's BigBird has blocks of 64, a window of 3, 2 global and 3 random ones; its authors advise full attention below 1,024 tokens (quoted).

# %%
# exercise: efficient/neighbours

# %%
check("efficient/neighbours", neighbours)

# %%
# exercise: efficient/bigbird_mask

# %%
check("efficient/bigbird_mask", bigbird_mask)

# %%
neighbours, bigbird_mask = mine("efficient/neighbours"), mine("efficient/bigbird_mask")

# %%
# exercise: efficient/bigbird

# %%
check("efficient/bigbird", bigbird_attention)

# %%
bigbird_attention = mine("efficient/bigbird")
listed = neighbours(10, 3, 1, 2, seed=1)
under_mask = scaled_dot_product_attention(q, k, v, bigbird_mask(listed, 5))
found = largest_difference(bigbird_attention(q, k, v, listed, 5), under_mask, q, k, v)
print(f"BigBird and full attention under its mask differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# ## A needle
#
# Which patterns can find *one* token far back, if they are trained to? Take 128 letters of Shakespeare. Replace one of them by one of ten **needles**, tokens that do not occur in Shakespeare, and the last one by a question: which needle was it? The model answers at the question, and only the answer has a loss. Chance is one in ten.

# %% [markdown]
# The model is the encoder of lesson 08 with two layers. It looks in both directions, so all patterns can be used. A block is four letters. The pattern is one part of BigBird, or two, or all: a window of three blocks, one global block, two random blocks.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
letters = list("Was this the face that ")
for i, letter in enumerate([*letters[:8], "★", *letters[8:21], "?"]):
    role = {"★": "value", "?": "query"}.get(letter, "dim")
    diagram.box(letter, (0.52 * i, 0), role, size=(0.46, 0.6))
diagram.arrow((0.52 * 22, 0.35), (0.52 * 8, 0.35), via=[(0.52 * 22, 1.0), (0.52 * 8, 1.0)])
diagram.text("distance", (0.52 * 15, 1.3), size=9)
diagram.text("a needle, one of ten", (0.52 * 8 + 0.2, 0.65), size=9, align="left")
diagram.text("which one was it?", (0.52 * 22 - 0.2, 0.65), size=9, align="right")
# the path through the global block
diagram.frame("", (0.78, 0), (2.2, 0.8))
diagram.text("global block", (0.78, 0.65), size=9)
diagram.arrow((4.16, -0.35), (1.4, -0.45), via=[(4.16, -0.9), (1.4, -0.9)], role="value")
diagram.text("layer 1: the block sees the needle", (1.5, -1.2), size=9, align="left")
diagram.arrow((0.3, -0.45), (11.44, -0.35), via=[(0.3, -1.6), (11.44, -1.6)], role="value")
diagram.text("layer 2: the question sees the block", (11.3, -1.3), size=9, align="right")
diagram.show(
    "A line of letters in boxes, with a star among them, the needle, and a question mark at the "
    "end. An arrow leads from the question back to the needle: their distance, here 14. Below is "
    "a path of two layers: the needle goes to the first four letters, the global block, and from "
    "there to the question.",
)

# %% [markdown]
# The mask tells in advance what can be found. Let $A_{ij} = 1$ if token $i$ sees token $j$. After layer 1, token $j$ knows itself (the residual connection) and what it sees: row $j$ of $A + I$. In layer 2, the question reads the tokens in its own row of $A$. So it can know of each token that is positive in
#
# $$\text{paths in two layers: } \underset{n \times n}{A\,(A + I)}, \quad \text{in the row of the question}$$

# %%
needle = results.load("needle")["figures"]
one, distances = needle["one"], needle["distances"]
PARTS = {
    "window": (3, 0, 0),
    "random": (0, 0, 2),
    "global": (0, 1, 0),
    "window + random": (3, 0, 2),
    "window + global": (3, 1, 0),
    "global + random": (0, 1, 2),
    "BigBird": (3, 1, 2),
}


# %%
def can_find(part):
    """Tell for each distance whether a path of two layers leads to the needle."""
    sees = bigbird_mask(neighbours(32, *PARTS[part], seed=0), 4).float()
    paths = sees @ (sees + torch.eye(128)) > 0
    return paths[-1, [127 - distance for distance in distances]]


for part in PARTS:
    print(f"{part:16} {can_find(part).float().mean():4.0%} of the distances")

# %% [markdown]
# A path is a possibility. `experiments/needle.py` trained all seven patterns, and full attention (`dense`), from three seeds, each for 1,200 steps of eight texts, with $d_{model} = 32$. In training the distance is drawn on a logarithmic scale: 1 letter back is as frequent as 50 to 99 together. **Which of the seven find a needle 126 letters back, more often than not?**

# %%
guess = None  # a list of names

# %%
shares = {
    name: torch.tensor([run["found"] for run in one[name]]).mean(0) for name in ("dense", *PARTS)
}
furthest = {name: found[-1].item() for name, found in shares.items()}
print({name: round(share, 2) for name, share in furthest.items()})
reveal(guess, [name for name in PARTS if furthest[name] > 0.5])

# %% tags=["hide-input"]
title = "A needle is found only where a path of two layers leads to it"
figure, ax = plots.axes(title, "distance from needle to question", "", size=(8.6, 3.6))
names = list(shares)
image = ax.imshow(torch.stack(list(shares.values())), vmin=0, vmax=1, aspect="auto")
for row, name in enumerate(names):
    there = can_find(name) if name in PARTS else torch.ones(len(distances)).bool()
    for column in (~there).nonzero().flatten().tolist():
        ax.plot(column, row, "x", color="0.75", markersize=4, markeredgewidth=0.8)
ax.set_xticks(range(0, 32, 4), [str(distance) for distance in distances[::4]])
ax.set_yticks(range(len(names)), names)
ax.tick_params(length=0)
figure.colorbar(image, ax=ax, label="share found (chance: 0.1)")
plots.show(
    figure,
    "A map of the share of needles found, eight patterns by 32 distances. Crosses mark where no "
    "path of two layers leads. Full attention, and a global block with a window or random links, "
    "find nearly all; a global block alone about 0.8 at every distance; the window those up to 10 "
    "letters back, window + random these and some further blocks; random alone two blocks.",
)

# %%
for name in PARTS:
    for run in one[name]:
        found, there = torch.tensor(run["found"]), can_find(name)
        assert there.all() or found[~there].mean() < 0.2
        assert found[there].mean() > 0.95 or name in ("random", "global")
print("global alone, three seeds:", [run["curve"][-1] for run in one["global"]])
row = bigbird_mask(neighbours(32, *PARTS["random"], seed=0), 4)[-1]
linked = row[[127 - distance for distance in distances]]
for layers, there in (("one layer", linked), ("two layers", can_find("random") & ~linked)):
    print(f"random alone, a path of {layers}: {shares['random'][there].mean():.2f}")
assert shares["random"][linked].min() > 0.9 and shares["random"][~linked].max() < 0.3
assert all(0.5 < run["curve"][-1] < 0.97 for run in one["global"])

# %% tags=["hide-input"]
assert sum(max(run["curve"]) < 0.66 and run["curve"][4] > 0.6 for run in one["global"]) == 1
near = shares["global"][:-1].mean().item()
print(f"global alone, 126 letters back: {furthest['global']:.2f}; elsewhere {near:.2f}")
assert furthest["global"] < near + 0.02

# %% [markdown]
# Where no path leads, the shares stay near chance. No training could help: the answer does not depend on the needle. With a window, or with two parts, the needle is found wherever a path leads. Random links alone find it in the two blocks that the question itself is linked to; at the three other distances with a path, it is found about one time in five after 1,200 steps. The global block alone works at every distance, but less well: one of its three seeds stays near 0.65 from step 400 on.

# %% [markdown]
# At 126 letters the needle is *in* the global block, one layer away. That is not why it is found: alone, it finds the needle there no more often than elsewhere. The proofs in the BigBird paper rest on a **star graph**, in which one node is linked to all others. The global block is such a star, and alone it reaches everything. (Window and global tokens together are the pattern of Longformer.)

# %% [markdown]
# What is found *at the end* is one thing; how fast it is learned is another. The same trainings, step by step:

# %% tags=["hide-input"]
title = "With a window beside it, a global block reaches 0.9 as soon as full attention"
figure, panels = plots.panels(title, ["one part", "two parts, or all"], size=(9.6, 3.6))
steps = [needle["every"] * i for i in range(len(one["dense"][0]["curve"]))]
groups = (("window", "random", "global"), [name for name in PARTS if "+" in name] + ["BigBird"])
for ax, group, height in zip(panels, groups, (0.42, 0.585)):
    for colour, name in zip(["0.4", *plots.COLOURS], ["dense", *group]):
        curves = torch.tensor([run["curve"] for run in one[name]])
        ax.plot(steps, curves.T, color=colour, linewidth=0.7, alpha=0.5)
        ax.plot(steps, curves.mean(0), color=colour, label=name)
    ax.axhline(0.1, color="0.6", linestyle=":")
    ax.set(xlabel="training steps", ylim=(0, 1.05))
    ax.legend(loc="center right", bbox_to_anchor=(1, height), fontsize=8)
panels[0].set_ylabel("share found, mean over distances")
plots.show(
    figure,
    "Share found against training steps, three seeds as thin lines and their mean. Full attention "
    "rises to 1 within 300 steps, and so do window + global and BigBird; global + random needs up "
    "to 800. A global block alone rises after 300 to 600 steps, to between 0.6 and 1. Window and "
    "random stay below 0.25, window + random stays near 0.44. Dotted line: chance, 0.1.",
)


# %%
def steps_to(share, run):
    reached = [step for step, found in zip(steps, run["curve"]) if found >= share]
    return reached[0] if reached else None


reached = {name: [steps_to(0.9, run) for run in one[name]] for name in shares}
for name in ("dense", "window + global", "BigBird", "global + random", "global"):
    print(f"{name:16} steps to 0.9: {reached[name]}")
assert max(reached["window + global"] + reached["BigBird"] + reached["dense"]) <= 300
assert all(steps is None or steps > 400 for steps in reached["global"])

# %%
late = sum(run["curve"][steps.index(300)] for run in one["global"]) / 3
print(f"global block alone, step 300: {late:.2f}")
last = [run["curve"][-1] for run in one["window + random"]]
reach = can_find("window + random").float().mean().item()
print(f"window + random, at the end {last}; by its paths {reach + 0.1 * (1 - reach):.2f}")
assert late < 0.2 and all(abs(share - reach - 0.1 * (1 - reach)) < 0.02 for share in last)

# %% [markdown]
# The global block alone starts late. Had we stopped at 300 steps, we would have written that it finds next to nothing. With a window beside it, it reaches 0.9 within 300 steps, like full attention, though a needle far away takes the same path of two layers as before. These runs do not tell us why a few letters of window help.

# %% [markdown]
# Window + random stays at 0.44, which is what its paths predict: all needles at 38 % of the distances, and chance at the others. A curve that is still flat at the end does not prove that a pattern *cannot*. For that we have the paths.

# %% [markdown]
# ## Is distance needed? (optional)
#
# The needle asks for distance. Does ordinary text? Let a model of the same kind, twice as wide, predict the next letter with causal attention. **Full attention over 512 letters (exact), or a window in which a letter sees itself and 32 letters back: which has the lower loss on held-out text after 300 steps?**

# %%
guess = None  # "exact" or "window"

# %%
needs("shakespeare")

# %%
from course_lib.encoder import Encoder, EncoderBlock


class LanguageModel(nn.Module):
    def __init__(self, vocab, n, rule):
        super().__init__()
        block = partial(EncoderBlock, attention=lambda *sizes: MultiHeadAttention(*sizes, rule))
        self.encoder = Encoder(vocab, 2, 64, 4, 256, n, "pre", block=block)

    def forward(self, tokens):
        return self.encoder(tokens) @ self.encoder.embedding.table.T


# %%
def loss(model, batch):
    tokens, targets = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


# %% tags=["training"]
learning, held_out = characters.split()
with training.seeded(SEED):
    model = LanguageModel(len(characters.vocab()), 512, partial(window.rule, width=64, causal=True))
stretches = characters.batches(learning, 512, 4, SEED)
history = training.train(model, stretches, loss, steps=300, learning_rate=0.005, seconds=30)

# %% tags=["training"]
with torch.no_grad():
    live = loss(model, next(characters.batches(held_out, 512, 32, seed=0))).item()
training.expect("the window reads under 2.9 nats a letter", live < 2.9, round(live, 2), model)

# %% [markdown]
# For comparison, a model without any attention: a table of how often each letter follows each other one.

# %% tags=["nbval-check-output"]
text, new_text = characters.split()
size = len(characters.vocab())
follows = torch.bincount(size * text[:-1] + text[1:], minlength=size**2).view(size, size) + 0.1
surprise = -(follows / follows.sum(-1, keepdim=True)).log()
table_of_pairs = surprise[new_text[:-1], new_text[1:]].mean().item()
print(f"a table of pairs of letters: {table_of_pairs:.2f} nats a letter")

# %% [markdown]
# `experiments/efficient.py` trained four causal variants from three seeds each, all for 300 steps. It also timed a training step of every variant on 512 letters, without causal masks. "Exact" is full attention, computed by tiles; "dense" is the same with the full matrix. "No loss" means: only timed. LSH, linear, Linformer and memory-compressed attention belong to lesson 14.

# %%
needs()
figures = results.load("efficient")["figures"]
losses, cost = figures["next"], figures["milliseconds"]
mean = {name: sum(runs) / len(runs) for name, runs in losses.items()}
for name, time in cost.items():
    held = f"{mean[name]:.3f} nats, 300 steps" if name in mean else "no loss"
    print(f"{name:18} {time:4.0f} ms a step   {held}")
reveal(guess, min(mean, key=mean.get))
assert max(losses["window"]) < min(losses["exact"]) and cost["window"] < cost["dense"]
assert cost["BigBird"] > cost["exact"]
assert all(abs(loss - 2.51) < 0.1 for runs in losses.values() for loss in runs)

# %% [markdown]
# After so few steps, the window has the *lower* loss. But look at the level: all are within 0.1 of the table of pairs (2.51), which knows one letter of context. So at this budget we see no gain from distance for any of them; perhaps the window is ahead because it has less to learn to ignore. This says nothing about models that are trained to the end. It does say that you should ask what *your* text needs before you pay for all pairs.

# %% [markdown]
# Note BigBird's time: at 512 letters it takes longer than exact attention by tiles. Gathering its blocks costs more here than it saves.

# %% [markdown]
# ## Break it
#
# - In your `tiled_attention`, leave out the factor $e^{m - m'}$. For which order of the six scores is the result still right?
# - Start with $m = 0$ instead of $-\infty$. Which scores break it?
# - Hide four needles of four kinds and ask for one kind: `run("global", 4, 0)` in `experiments/needle.py`. How often does the global block alone still find the right one?
# - In `can_find`, use three layers: `sees @ (sees + eye) @ (sees + eye)` with `eye = torch.eye(128)`. Which patterns now reach every distance?
# - In `can_find`, draw the random blocks by other seeds. How far do the shares of "random" and "window + random" change?
#
# ## What to remember
#
# $n^2$ is two problems. Memory: tiles and the online softmax solve it exactly. Time: some pairs must go. Window attention equals full attention under a band mask, and each further layer adds $2r$ to the receptive field. One global block, or a few random links, make all paths short; what can be found follows the paths.
#
# | | |
# |:-|:-|
# | attention layer | $4nd^2 + 2n^2d$ multiply-adds: $2 + n/d$ times an RNN layer |
# | online softmax | $m' = \max(m, \max s_j), \quad \ell' = e^{m-m'}\ell + \sum e^{s_j-m'}, \quad o' = e^{m-m'}o + \sum e^{s_j-m'}v_j$ |
# | output | $o / \ell$ |
# | numbers moved | full $\Theta(nd + n^2)$, tiles $\Theta(n^2d^2/M)$ |
# | window | $2n(2r+1)d$ in place of $2n^2d$ |
# | receptive field | $1 + L \cdot 2r$ |
# | paths in two layers | where $A(A + I)$ is positive |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. At which n does an attention layer need four times the multiply-adds of an RNN layer of the same d?</summary>
#
# $2 + n/d = 4$ at $n = 2d$.
# </details>
#
# <details><summary>2. The state of an online softmax is m = 2, l = 3, o = 6. A tile with the single score 2 and the value 10 arrives. What is the new state?</summary>
#
# The maximum stays, so the factor is 1: $m = 2$, $\ell = 3 + 1 = 4$, $o = 6 + 10 = 16$.
# </details>
#
# <details><summary>3. FlashAttention computes more than standard attention. Why is it faster?</summary>
#
# It moves far fewer numbers between slow and fast memory: no matrix of $n \times n$ is written or read.
# </details>
#
# <details><summary>4. A window of 9 and 5 layers: over how many tokens can a state reach?</summary>
#
# $1 + 5 \cdot 8 = 41$: 20 to either side, and itself.
# </details>
#
# <details><summary>5. Why does one global block make two layers enough for any distance in an encoder?</summary>
#
# In the first layer the block sees every token; in the second, every token sees the block.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# We have left pairs out by their *places*. Lesson 14 shortens the list of keys instead, finds the pairs that matter by hashing, or gives up the softmax, and sends each of them after the same needle.
#
# Milakov & Gimelshein 2018 (online softmax); Rabe & Staats 2021 (attention without quadratic memory); Dao et al. 2022 (FlashAttention, IO-awareness); Beltagy et al. 2020 (Longformer: sliding windows); Child et al. 2019 (Sparse Transformers: causal patterns); Zaheer et al. 2020 (BigBird); Vaswani et al. 2017, section 4. Lectures: L1, L3, L4, L5.
