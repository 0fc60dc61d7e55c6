# %% [markdown]
# # Layers that run backwards
#
# **25 minutes · an exploration of lesson 14 · needs nothing**
#
# Cheap attention saves memory within a layer. Depth is the other half: training stores what every layer has computed, its **activations**, for the backward pass. **How deep can a model be if they must fit into memory?** You build the Reformer's reversible block, and compare it with the method that people use instead.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, training

# %% tags=["hide-input"]
from functools import partial
from torch.utils.checkpoint import checkpoint
from course_lib.instruments.measuring import (
    largest_difference,
    random_vectors,
    saved_bytes,
    seconds,
)

MultiHeadAttention, layer_norm = mine("multi_head/attention"), mine("add_norm/layer_norm")
EncoderBlock = mine("encoder/block")

# %% [markdown]
# ## Two streams that change each other
#
# Could the backward pass compute the activations again, starting from the output? From $y = x + f(x)$ alone you cannot get $x$ back directly: to subtract $f(x)$ you need $x$. With two streams that change *each other* you can:
#
# $$\underset{n \times d}{y_1} = x_1 + f(x_2) \qquad\qquad \underset{n \times d}{y_2} = x_2 + g(y_1)$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
for x, back in ((0, False), (6.9, True)):
    sign = "−" if back else "+"
    upper = diagram.box(sign, (x + 1.6, 3.4), "stream", size=(0.6, 0.6))
    lower = diagram.box(sign, (x + 3.4, 0), "stream", size=(0.6, 0.6))
    f = diagram.box("$f$", (x + 1.6, 1.7), "query", size=(0.9, 0.7))
    g = diagram.box("$g$", (x + 3.4, 1.7), "network", size=(0.9, 0.7))
    ends = [(x, 3.4), (x, 0), (x + 5, 3.4), (x + 5, 0)]
    for name, at in zip(("x_1", "x_2", "y_1", "y_2"), ends):
        side = -0.35 if at[0] == x else 0.35
        diagram.text(f"${name}$", (at[0] + side, at[1]))
    if not back:
        for start, end in ((ends[0], upper), (upper, ends[2]), (ends[1], lower), (lower, ends[3])):
            diagram.arrow(start, end, role="stream")
    else:
        for start, end in ((ends[2], upper), (upper, ends[0]), (ends[3], lower), (lower, ends[1])):
            diagram.arrow(start, end, role="stream")
    diagram.arrow((x + 1.6, 0), f, role="query")
    diagram.arrow(f, upper, role="query")
    diagram.arrow((x + 3.4, 3.4), g, role="network")
    diagram.arrow(g, lower, role="network")
diagram.text("forward: first $f$, then $g$", (2.5, 4.4))
diagram.text("back: first $g$, then $f$", (9.4, 4.4))
diagram.show(
    "A reversible block, forward and back. Forward, left to right: f reads x2 and is added to x1, "
    "which gives y1; g reads y1 and is added to x2, which gives y2. Back, right to left: g reads "
    "y1 and is subtracted from y2, which gives x2; f reads x2 and is subtracted from y1, which "
    "gives x1."
)

# %% [markdown]
# Two numbers, forward: $f(x) = 3x$, $g(x) = x^2$, and $x_1 = 1$, $x_2 = 2$ give $y_1 = 1 + 3 \cdot 2 = 7$ and $y_2 = 2 + 7^2 = 51$. $g$ itself cannot be undone: 7 and −7 have the same square. **Now somebody hands you only $y_1 = 5$ and $y_2 = 26$. What were $x_1$ and $x_2$?**

# %%
guess = None  # (x_1, x_2)


# %%
def f(x):
    return 3 * x


def g(x):
    return x**2


x_2 = 26 - g(5)
x_1 = 5 - f(x_2)
reveal(guess, (x_1, x_2))
assert (x_1 + f(x_2), x_2 + g(x_1 + f(x_2))) == (5, 26)

# %% [markdown]
# $y_1$ is what $g$ has read, so $g(y_1)$ can be computed again and subtracted; that brings back $x_2$, and with it $f(x_2)$. Neither $f$ nor $g$ is inverted, so they may be any layers. Both must be deterministic (dropout needs its random numbers again). `forward` is given, with `x` = $[x_1, x_2]$ side by side; `inverse` is yours.

# %%
# given: efficient.reversible.halves

# %%
# exercise: efficient/reversible

# %%
check("efficient/reversible", ReversibleBlock)

# %%
ReversibleBlock = mine("efficient/reversible")

# %% [markdown]
# ## A reversible Transformer block
#
# The idea is that of the **RevNet** (Gomez et al. 2017), for images, where $x_1$ and $x_2$ are two halves of the channels. The **Reformer** (Kitaev et al. 2020, section 3) makes a Transformer block of it: $f$ is norm and **attention**, $g$ norm and **feed-forward network**, and both streams are $d_{model}$ wide, the same input twice. So its layers have as many parameters as ordinary ones:

# %% tags=["hide-input"]
from course_lib.add_norm import Norm
from course_lib.efficient import tiled
from course_lib.efficient.reversible import ReversibleSequence
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention


def reversible_block(d_model=64, heads=4):
    attention = AsSelfAttention(MultiHeadAttention(d_model, heads, tiled.rule))
    f = nn.Sequential(Norm(d_model, layer_norm), attention)
    g = nn.Sequential(Norm(d_model, layer_norm), FeedForward(d_model, 4 * d_model))
    return ReversibleBlock(f, g)


# %% tags=["hide-input"]
def ordinary_block(d_model=64, heads=4):
    layer = partial(MultiHeadAttention, rule=tiled.rule)
    return EncoderBlock(d_model, heads, 4 * d_model, "pre", attention=layer)


def parameters(block):
    return sum(parameter.numel() for parameter in block.parameters())


print(f"{parameters(ordinary_block()):,} and {parameters(reversible_block()):,} parameters")
assert parameters(ordinary_block()) == parameters(reversible_block())

# %% [markdown]
# `ReversibleSequence`, given in the library, runs such blocks and stores the last output alone. In the backward pass it undoes one block after another, and computes the gradients of each on the way.
#
# The rival needs no other architecture. **Activation checkpointing** (Chen et al. 2016) keeps each block's *input* only, and runs the block once more in the backward pass. In PyTorch it is one line per block: `checkpoint(block, x, use_reentrant=False)`.

# %% [markdown]
# We measure the **activation memory**, what autograd saves, in units of $n \cdot d_{model}$ numbers.
#
# **From 2 blocks to 16: by which factor does it grow, for ordinary, checkpointed and reversible blocks?**

# %%
guess = None  # (ordinary, checkpointed, reversible)


# %%
class Checkpointed(nn.Sequential):
    def forward(self, x):
        for block in self:
            x = checkpoint(block, x, use_reentrant=False)
        return x


# %% tags=["hide-input"]
def stack(kind, depth):
    x = random_vectors(512, 64)
    with training.seeded(0):
        block = reversible_block if kind == "reversible" else ordinary_block
        blocks = [block() for _ in range(depth)]
    if kind == "reversible":
        return ReversibleSequence(blocks), torch.cat([x, x], -1).detach().requires_grad_()
    return (Checkpointed if kind == "checkpointed" else nn.Sequential)(*blocks), x


# %%
def saved(kind, depth):
    model, x = stack(kind, depth)
    return saved_bytes(partial(model, x), besides=[*model.parameters()]) / (512 * 64 * 4)


depths, kinds = [2, 4, 8, 16], ["ordinary", "checkpointed", "reversible"]
flat = {kind: [saved(kind, depth) for depth in depths] for kind in kinds}
for kind, line in flat.items():
    print(f"{kind:12}", ", ".join(f"{x:.0f}" for x in line))
reveal(guess, tuple(round(line[-1] / line[0], 2) for line in flat.values()))
assert flat["reversible"] == [2, 2, 2, 2] and flat["checkpointed"] == depths
assert flat["ordinary"][0] > 20 and abs(flat["ordinary"][-1] / flat["ordinary"][0] - 8) < 0.1

# %% tags=["hide-input"]
title = "Saved: a fifteenth by checkpointing, one output by reversing"
figure, ax = plots.axes(title, "blocks", r"saved, in $n\,d_{model}$ numbers", size=(6.8, 3.5))
for (kind, line), colour in zip(flat.items(), plots.COLOURS):
    ax.plot(depths, line, "o-", color=colour)
    ax.text(16.3, line[-1], kind, color=colour, va="center")
ax.set(xticks=depths, yscale="log", xlim=(1.5, 20.5), ylim=(1.5, 400))
ax.set_yticks([2, 5, 10, 20, 50, 100, 200], [2, 5, 10, 20, 50, 100, 200])
ax.minorticks_off()
assert 13 < flat["ordinary"][-1] / flat["checkpointed"][-1] < 17
plots.show(
    figure,
    "Stored activations against the number of blocks, on a logarithmic axis. Ordinary: "
    f"{flat['ordinary'][0]:.0f} for 2 blocks to {flat['ordinary'][-1]:.0f} for 16. Checkpointed: "
    "2 to 16. Reversible: 2, however many blocks.",
)

# %% [markdown]
# An ordinary block stores about 15 matrices of $n \times d_{model}$; a checkpointed one stores one; a reversible stack stores two in all, at any depth. (While one block is computed again, its own 15 are in memory too, in both methods: at the peak of 16 blocks 242, 31 and 17.)

# %% [markdown]
# ## What it costs, and the rival
#
# Both run every block forward once more in the backward pass. A backward pass costs about as much as two forward ones, so a step of three becomes a step of four. **By which factor do you expect each to be slower than the ordinary stack?**

# %%
guess = None  # (checkpointed, reversible)

# %% tags=["once"]
cost = {}
for kind in kinds:
    model, x = stack(kind, 8)
    cost[kind] = min(seconds(partial(model, x)) for _ in range(3))
times = {kind: cost[kind] / cost["ordinary"] for kind in kinds[1:]}
reveal(guess, {kind: f"{factor:.2f} times" for kind, factor in times.items()})

# %% [markdown]
# A third more was to be expected. The measured factors, of one core of a busy machine, are above; in our runs they were between 1.1 and 1.5. Neither method is clearly the faster one.
#
# There is a third price, rounding. Floating-point subtraction does not undo an addition exactly, so gradients of the reversible stack differ in their last digits from autograd's; checkpointing runs the same sums again.

# %% tags=["hide-input"]
model, x = stack("reversible", 8)
weight = model.blocks[0].g[1].w_1
slopes = [torch.autograd.grad(stack_of(x).sum(), weight)[0]
          for stack_of in (nn.Sequential(*model.blocks), model)]  # fmt: skip
error = ((slopes[0] - slopes[1]).abs().max() / slopes[0].abs().max()).item()
plain, x = stack("ordinary", 8)
again, x = Checkpointed(*plain), x
weight = next(plain.parameters())
exact = [torch.autograd.grad(run(x).square().sum(), weight)[0] for run in (plain, again)]
print(f"reversible: gradients differ by {error:.0e} of the largest")
print(f"checkpointed: by {(exact[0] - exact[1]).abs().max():.0e}")
assert 0 < error < 1e-3 and torch.allclose(exact[0], exact[1], rtol=1e-4)

# %% [markdown]
# This speaks for checkpointing: any architecture, pre-trained or not, any function inside, one line, and in stacks of over 60 blocks the input of every fourth is enough. Reversible layers win where depth alone decides, since their memory does not grow with it.
#
# Gomez et al. 2017 (RevNet); Kitaev et al. 2020 (Reformer); Chen et al. 2016 (checkpointing). Lectures: L3.
