# %% [markdown]
# # 07 · Add & norm
#
# **75 minutes · after lesson 06 · needs `shakespeare` (5.4 MB) and `smollm2` (93 MB)**
#
# Attention and a feed-forward network make a block, and blocks are stacked: six in the Transformer of 2017, thirty in a small language model of today. Stack thirty-two of yours, and they learn only how frequent each character is. **What lets a network of thirty blocks learn at all?**
#
# At the end you can say what the residual connection does, what the norm does, and which third thing decides whether you need both.

# %%
import torch
from einops import reduce
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import characters, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
drawings.transformer(
    {"add & norm"},
    "The Transformer of 2017 with its five add & norm boxes lit: one after each attention layer "
    "and one after each feed-forward network, two in an encoder block, three in a decoder block.",
)

# %% [markdown]
# On the map an *add & norm* follows every attention layer and every feed-forward network. To see what the two words are for, we leave both out.
#
# ## Thirty-two blocks
#
# `Stack` reads characters of Shakespeare and predicts the next one: embedding, positions, as many blocks as you like, one linear layer. Its argument `wrap` says how a layer is connected to the rest. With `bare` it is not: the output replaces the input. `redraw` draws the initial weights, at first as torch's `nn.Linear` does.

# %%
from collections.abc import Callable
from functools import partial
from course_lib.instruments.deep_stack import STARTS, NormAlone, Residual, Stack, bare, redraw

needs("shakespeare")

# %%
learning, held_out = characters.split()


def new(wrap, blocks=32, start="torch's default", seed=SEED, **options):
    with training.seeded(seed):
        stack = Stack(len(characters.vocab()), blocks, 32, heads=4, wrap=wrap, **options)
    return redraw(stack, start, seed)


def loss(model, batch):
    tokens, following = batch
    return F.cross_entropy(model(tokens).flatten(0, -2), following.flatten())


# %% [markdown]
# A block has two layers, attention and feed-forward, so $N$ blocks have $2N$. Let $x_l$ be the vectors of all $n$ tokens above layer $l$, written as one long vector of $nd$ numbers. The backward pass multiplies the gradient by the Jacobian of one layer after another:
#
# $$x_l = F_l(x_{l-1}) \qquad\Longrightarrow\qquad \frac{\partial L}{\partial x_0} = \frac{\partial L}{\partial x_{2N}}\; J_{2N}\, J_{2N-1} \cdots J_1 \qquad \underset{nd \times nd}{J_l} = \frac{\partial F_l}{\partial x_{l-1}}$$
#
# (The word *norm* has two meanings. In this lesson *norm* is the layer; the length of a vector is always called its *L2 norm*.)
#
# At the top the gradient has an L2 norm of 0.025; below 4 bare blocks it is $6 \cdot 10^{-7}$. **What is it below 32?**

# %%
guess = None  # a power of ten, such as 1e-9


# %%
def gradients(wrap, blocks=32, **options):
    """Return the L2 norm of the loss's gradient at each level, the lowest first."""
    model = new(wrap, blocks, **options).double()
    tokens, following = next(characters.batches(learning, 16, 32, seed=0))
    streams = model.streams(tokens)
    value = loss(lambda _: model.read(streams[-1]), (tokens, following))
    return [float(x.norm()) for x in torch.autograd.grad(value, streams)]


four, arriving = gradients(bare, 4), gradients(bare)
reveal(guess, f"{arriving[0]:.0e}")
assert round(four[-1], 3) == 0.025 and f"{four[0]:.0e}" == "6e-07"
assert 1e-40 < arriving[0] < 1e-34

# %% [markdown]
# These are **vanishing gradients**, as in lesson 01, with depth in place of time.
#
# ## Add: the residual connection
#
# The cure is one plus sign (He et al. 2016). A layer no longer replaces the vectors; it *adds* to them. This is a **residual connection**, or skip connection:
#
# $$x_l = x_{l-1} + F_l(x_{l-1}) \qquad \frac{\partial x_l}{\partial x_{l-1}} = I + J_l$$
#
# $$(I + J_{2N}) \cdots (I + J_1) = I + \sum_l J_l + \sum_{l > k} J_l J_k + \dots$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
diagram.arrow((0, 0), (1.7, 0), "$x$", role="stream", width=2.4)
layer = diagram.box("layer $F$", (4.0, 1.6), "network", size=(2.2, 0.9))
plus = diagram.box("+", (6.4, 0), "stream", size=(0.8, 0.8))
diagram.arrow((1.7, 0), layer, via=[(1.7, 1.6)])
diagram.arrow(layer, plus, "$F(x)$", via=[(6.4, 1.6)])
diagram.arrow((1.7, 0), plus, role="stream", width=2.4)
diagram.arrow(plus, (9.4, 0), "$x + F(x)$", role="stream", width=2.4)
diagram.text("n × d", (0.85, -0.4), size=9)
diagram.text("n × d", (8.1, -0.4), size=9)
diagram.text("backward: times $I$", (3.8, -0.4), size=9)
diagram.text("backward: times $J$", (4.0, 2.4), size=9)
diagram.show(
    "A residual connection. x, n by d, goes two ways: through the layer F, and straight on. Both "
    "meet in a plus sign, x + F(x). On the backward pass the way through the layer multiplies the "
    "gradient by the Jacobian J, the straight way by the identity I."
)

# %% [markdown]
# Multiplied out, there are $2^{2N}$ paths, one for each choice of layers to go through. One goes through no layer: the $I$ brings the gradient of the top to every level unchanged.
#
# And if a layer's weights are near zero, a bare layer deletes its input, while a residual one passes it on. Such a stack is biased towards the identity; a layer only has to learn the *residual*, what should be different.

# %% tags=["nbval-check-output"]
for name, wrap in (("bare", bare), ("residual", Residual)):
    gradient = gradients(wrap)
    print(f"{name:8} 32 blocks: {gradient[-1]:.1e} at the top, {gradient[0]:.1e} at the bottom")

# %% [markdown]
# The gradient no longer vanishes. It *grows*, some sixty times. How much it grows depends on a dial that you did not know you had set: the scale of the initial weights.
#
# ## The third switch
#
# Draw a matrix's entries with variance $c^2/\text{fan-in}$ (the fan-in is the number of its inputs). If $x$ has mean square $m$, then $xW$ has $c^2 m$, and a ReLU keeps half of that. So the feed-forward network (two matrices, a ReLU) writes $c^4 m/2$. Attention has two matrices on the way, $W_V$ and $W_O$, and averages: it writes at most $c^4 m$.

# %% [markdown]
# If what a layer writes is independent of what is there, mean squares add. Then $N$ blocks multiply the mean square by at most about
#
# $$\underbrace{(1 + c^4)^N}_{\text{attention}} \;\underbrace{\left(1 + \tfrac12 c^4\right)^N}_{\text{feed-forward}}$$
#
# torch's `nn.Linear` draws with $c^2 = 1/3$. Many textbooks, and lesson 03, draw from $N(0, 1/\text{fan-in})$, so $c^2 = 1$. **By what factor does the root mean square grow in 32 blocks, in each case?** (Take the root of the formula.)

# %%
guess = None  # two factors, such as (2, 100)


# %%
def growth(attention, network, blocks=32):
    """Return the factor on the root mean square, where layers write these shares of m."""
    return ((1 + attention) * (1 + network)) ** (blocks / 2)


reveal(guess, tuple(float(f"{growth(c4, c4 / 2):.2g}") for c4 in (1 / 9, 1)))

# %% [markdown]
# Three times the variance, and the factor goes from 13 to 43 million. Here is what comes in the real stack. The third row is GPT-2's number, $N(0, 0.02^2)$, whatever the fan-in; in our narrow blocks that is small ($c^2$ is 0.013 for 32 inputs, 0.05 for 128).


# %% tags=["hide-input"]
@torch.no_grad()
def sizes(wrap, start, **options):
    """Return the root mean square of the stream at each level."""
    tokens, _ = next(characters.batches(learning, 16, 32, seed=0))
    streams = new(wrap, start=start, **options).double().streams(tokens)
    return [x.square().mean().sqrt().item() for x in streams]


print("residual, 32 blocks      at the bottom     at the top     factor  by the formula")
shares = ((1 / 9, 1 / 18), (1, 0.5), (0.0128**2, 0.0128 * 0.0512 / 2))
for start, (attention, network) in zip(STARTS, shares):
    low, *_, high = sizes(Residual, start)
    expected = growth(attention, network)
    print(f"{start:20} {low:17.3g} {high:14.3g} {high / low:10.3g} {expected:15.3g}")
    assert 0.2 < high / low / expected < 1.1

# %% [markdown]
# With torch's default the vectors grow tenfold; with three times the variance, 16-million-fold; the gradient grows even more (figure below): exploding gradients. A residual connection alone works for some initial weights. What would make a stack *independent* of this dial?

# %% [markdown]
# ## Norm: one scale for every token
#
# **Layer normalization** (Ba et al. 2016) takes one token at a time. It computes mean and variance over the token's own $d$ numbers, and looks at no other token:
#
# $$\mu = \frac1d \sum_{c=1}^{d} x_c \qquad \sigma^2 = \frac1d \sum_{c=1}^{d} (x_c - \mu)^2 \qquad \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \qquad \mathrm{LN}(x) = \gamma \odot \hat x + \beta$$

# %% [markdown]
# For example, $x = (2, 2, 6, 6)$ has $\mu = 4$ and $\sigma = 2$, so $\hat x = (-1, -1, 1, 1)$. Gain $\gamma$ and bias $\beta$, one number for each column, begin as ones and zeros, and are learned. The small $\epsilon$ keeps a token of equal numbers from dividing by 0.
#
# In geometry: subtracting the mean projects $x$ onto the plane of vectors whose numbers sum to 0. Dividing by $\sigma$ moves it to a sphere in this plane, since $\lVert \hat x \rVert^2 = d$. For $d = 3$ this sphere is a circle:

# %% tags=["hide-input"]
needs()
points = torch.randn(9, 3, generator=torch.Generator().manual_seed(4)) * 1.3 + 0.5
side = torch.tensor([[1.0, -1, 0], [1, 1, -2]])
side = side / side.norm(dim=-1, keepdim=True)
flat, ends = points @ side.T, F.layer_norm(points, (3,)) @ side.T
figure, ax = plots.axes("Layer norm puts every token on one circle", "", "", size=(4.6, 4.4))
turn = torch.linspace(0, 2 * torch.pi, 100)
ax.plot(*(3**0.5 * torch.stack([turn.cos(), turn.sin()])).tolist(), color="0.6", linewidth=1)
for start, end in zip(flat.tolist(), ends.tolist()):
    style = {"arrowstyle": "-|>", "color": "0.6", "shrinkA": 0, "shrinkB": 4}
    ax.annotate("", end, start, arrowprops=style)
ax.plot(*flat.T.tolist(), "o", color=plots.COLOURS[0], markersize=5)
ax.plot(*ends.T.tolist(), "o", color=plots.COLOURS[1], markersize=6)
ax.plot(0, 0, "+", color="0.4")
ax.text(-2.9, 2.6, "● after subtracting the mean", color=plots.COLOURS[0], size="small")
ax.text(-2.9, 2.3, "● after dividing by σ", color=plots.COLOURS[1], size="small")
ax.set(aspect=1, xticks=[], yticks=[], xlabel="the plane of vectors whose numbers sum to 0")
ax.set(xlim=(-3.3, 2.7), ylim=(-2.5, 2.9))
ax.spines[:].set_visible(False)
plots.show(
    figure,
    "Nine tokens of three numbers in the plane of vectors whose numbers sum to 0. After subtracting "
    "the mean they are at all distances from the middle. Dividing by sigma moves each along its own "
    "ray, outwards or inwards, until it is on the circle of radius root 3.",
)

# %% [markdown]
# So a layer that reads from a norm sees the *direction* of the centred token, never its size or its mean. Now build it, and watch where $\epsilon$ goes.

# %%
# exercise: add_norm/layer_norm

# %%
check("add_norm/layer_norm", layer_norm)

# %%
layer_norm = mine("add_norm/layer_norm")

# %% [markdown]
# > **Where the lectures disagree (D02, D03).** L1, L2 and L4 announce "unit mean"; the mean is zero. And their $\sigma$ is the standard deviation already, so three of four take the root twice. On the token (2, 2, 6, 6):
#
# | as printed in | mean | divided by ($\sigma$ around that mean) |
# |:-|:-|:-|
# | L1 | the plain sum | $\sqrt\sigma + \epsilon$ |
# | L2 | sum / $d$ | $\sqrt\sigma + \epsilon$ |
# | L3 | sum / $d$ | $\sigma$ |
# | L4 | the plain sum | $\sqrt{\sigma + \epsilon}$ |

# %% tags=["nbval-check-output", "hide-input"]
x, eps = torch.tensor([2.0, 2, 6, 6]), 1e-5
plain, centred = x - x.sum(), x - x.mean()
far, sigma = plain.square().mean().sqrt(), centred.square().mean().sqrt()
print("torch", F.layer_norm(x, (4,)))
print("L1   ", plain / (far.sqrt() + eps))
print("L2   ", centred / (sigma.sqrt() + eps))
print("L3   ", centred / sigma)
print("L4   ", plain / (far + eps).sqrt())

# %% [markdown]
# Only L3 agrees here, and it leaves $\epsilon$ out: a token of equal numbers gives 0/0.
#
# ## What a norm does to gradients
#
# Mean and variance depend on $x$, so the gradient flows through them too. Take $\epsilon = 0$. From $\partial \mu / \partial x_j = 1/d$ and $\partial \sigma / \partial x_j = \hat x_j / d$, the quotient rule gives
#
# $$\frac{\partial \hat x_i}{\partial x_j} = \frac{\delta_{ij} - 1/d}{\sigma} - \frac{x_i - \mu}{\sigma^2}\,\frac{\hat x_j}{d} \qquad\Longrightarrow\qquad \underset{d \times d}{\frac{\partial \hat x}{\partial x}} = \frac1\sigma \left( I - \frac{\mathbf{1}\mathbf{1}^T}{d} - \frac{\hat x \hat x^T}{d} \right)$$

# %%
generator = torch.Generator().manual_seed(0)
x, ones, zeros = torch.randn(16, generator=generator).double(), torch.ones(16), torch.zeros(16)
jacobian = torch.autograd.functional.jacobian(lambda x: layer_norm(x, ones, zeros, 0.0), x)
normed, sigma = layer_norm(x, ones, zeros, 0.0), x.std(correction=0)
ones = ones.double()
formula = torch.eye(16) - torch.outer(ones, ones) / 16 - torch.outer(normed, normed) / 16
assert torch.allclose(jacobian, formula / sigma)
print("as in the formula; its rank:", torch.linalg.matrix_rank(jacobian).item(), "of 16")

# %% [markdown]
# The bracket is a projection: it takes two directions out of every gradient, $\mathbf 1$ (all numbers up) and $\hat x$ (a longer vector), which the norm would undo anyway. Xu et al. 2019 report that these two terms, which *re-center* and *re-scale* the gradient, matter more than the normalization of the forward pass.
#
# And the factor $1/\sigma$? Let a layer below the norm write $x = hW$. **Make $W$ a hundred times as large. By which factor does the gradient at $h$ change, without the norm and with it?**

# %%
guess = None  # two factors: (without the norm, with it)

# %% tags=["hide-input"]
h, w = torch.randn(5, 64, generator=generator), torch.randn(64, 64, generator=generator)
above = torch.randn(5, 64, generator=generator)


def gradient_below(norm, scale):
    inputs = h.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(norm(inputs @ (scale * w)), inputs, above)
    return gradient.norm().item()


norms = (lambda x: x, lambda x: layer_norm(x, torch.ones(64), torch.zeros(64)))
factors = [gradient_below(norm, 100) / gradient_below(norm, 1) for norm in norms]
reveal(guess, tuple(round(factor, 2) for factor in factors))
assert abs(factors[0] - 100) < 0.1 and abs(factors[1] - 1) < 0.01

# %% [markdown]
# $W$ multiplies the gradient by 100, and $1/\sigma$ divides it by 100. The layer above reads the same vectors, the layer below gets the same gradient: for both, the scale of $W$ does not matter. ($W$'s own gradient gets smaller.)

# %% [markdown]
# ## Three switches
#
# Now turn all three: residual connection, norm, and three kinds of initial weights. With a norm, each layer reads normed tokens, and one more norm follows the last block. So a layer *adds* $c^4$ or $c^4/2$ to the stream's mean square: for $c = 1$ the root mean square is about $\sqrt{48} \approx 7$ in the end (measured: 5.9).

# %% tags=["hide-input"]
from itertools import pairwise

diagram = drawings.Diagram()
cases = (
    ("bare", "$F(x)$", False, False),
    ("norm", r"$F(\mathrm{norm}(x))$", True, False),
    ("residual", "$x + F(x)$", False, True),
    ("residual and norm", r"$x + F(\mathrm{norm}(x))$", True, True),
)
for place, (name, formula, norm, residual) in enumerate(cases):
    x = 3.3 * place
    stops = [(x, 0.1), diagram.box("F", (x, 2.2), "network", size=(1.3, 0.7)), (x, 4.3)]
    if norm:
        stops.insert(1, diagram.box("norm", (x, 1.1), "norm", size=(1.3, 0.6)))
    if residual:
        plus = diagram.box("+", (x, 3.3), "stream", size=(0.6, 0.6))
        stops.insert(-1, plus)
        around = [(x - 1.1, 0.45), (x - 1.1, 3.3)]
        diagram.arrow((x, 0.45), plus, via=around, role="stream", width=2.2)
    for lower, upper in pairwise(stops):
        diagram.arrow(lower, upper)
    diagram.text("$x$", (x, -0.15))
    diagram.text(formula, (x, 4.65), size=10)
    diagram.text(name, (x, -0.75), size=10)
diagram.show(
    "Four ways to connect a layer F. Bare: x goes through F. Norm: x goes through a norm, then F. "
    "Residual: x goes through F, and is added to the result on a path around F. Residual and "
    "norm: the norm is on the path through F, and the path around F has none."
)

# %% [markdown]
# Before any training, the gradient of 32 blocks at each level, by kind:

# %% tags=["hide-input"]
kept = results.load("depth")["figures"]
title = "Residual and norm: the gradient arrives, from all three kinds of initial weights"
figure, panels = plots.panels(title, list(kept["starts"]), size=(9.6, 3.2))
for ax, by_start in zip(panels, kept["starts"].values()):
    for seeds, colour in zip(by_start.values(), plots.COLOURS):
        for run in seeds:
            ax.semilogy([max(x, 1e-40) for x in run["gradient"]], color=colour, linewidth=1.2)
    ax.set(ylim=(1e-24, 1e12), xlabel="level: blocks below it", xticks=(0, 16, 32))
    ax.set_yticks([1e-24, 1e-16, 1e-8, 1, 1e8])
    ax.minorticks_off()
for ax in panels[1:]:
    ax.set_yticklabels([])
panels[0].set_ylabel("L2 norm of the gradient")
for (start, y), colour in zip(zip(kept["starts"]["norm"], (1e-10, 1e-13, 1e-16)), plots.COLOURS):
    panels[1].text(1, y, start, color=colour, size="small")
ratio = {
    name: {
        start: [run["gradient"][0] / run["gradient"][-1] for run in seeds]
        for start, seeds in x.items()
    }
    for name, x in kept["starts"].items()
}
ends = [run["stream"][-1] for run in kept["starts"]["residual and norm"]["N(0, 1/fan-in)"]]
assert all(5.5 < end < 6.5 for end in ends)
assert all(1 / 20 < r < 20 for runs in ratio["residual and norm"].values() for r in runs)
plots.show(
    figure,
    "Four panels, L2 norm of the gradient at 33 levels, logarithmic, three kinds of initial weights, "
    "three seeds each. Bare: all fall steeply towards the bottom. Norm: within a "
    "factor of about 1,000. Residual: level for N(0, 0.02 squared), grows 41- to 66-fold downwards "
    "for torch's default and by 5e8 to 2e10 for N(0, 1/fan-in). Residual and norm: all three level.",
)
needs("shakespeare")

# %% tags=["hide-input"]
from course_lib import add_norm


def reach(wrap, start, **options):
    """Return the first character's share of the squared gradient at the bottom, and how far the
    state of character 16 at the top moves if that character is replaced."""
    model = new(wrap, start=start, **options).double()
    tokens, following = next(characters.batches(learning, 16, 32, seed=0))
    streams = model.streams(tokens)
    value = loss(lambda _: model.read(streams[-1]), (tokens, following))
    (gradient,) = torch.autograd.grad(value, streams[0])
    by_place = gradient.square().sum((0, 2))
    others = tokens.clone()
    others[:, 15] = (tokens[:, 15] + 1) % len(characters.vocab())
    with torch.no_grad():
        moved = (model.streams(others)[-1] - streams[-1])[:, 15].norm() / streams[-1][:, 15].norm()
    return (by_place[0] / by_place.sum()).item(), moved.item()


print("before training: the first character's share of the squared gradient at the bottom,")
print("and by what share character 16 moves at the top if it is replaced")
for start in STARTS:
    norms, both = reach(NormAlone, start), reach(add_norm.PreNorm, start, last_norm=True)
    for name, (share, moved) in (("norm", norms), ("residual and norm", both)):
        print(f"{name:17} {start:16} {share:5.3f} {moved:7.0e}")
    assert norms[0] > 0.999 and norms[1] < 1e-12
    assert both[0] < 0.6 and both[1] > 0.3

# %% [markdown]
# Now train all twelve with Adam for 120 steps. A model that knows how frequent each character is, and nothing else, has a loss of 3.36 on held-out text: the **frequency baseline**. **Of the four kinds, which learn in 32 blocks from *some* of the three initial weights, and which from *all three*?**

# %%
guess = None  # two lists of kinds: (some, all)


# %% tags=["training"]
def trained(model, steps=120, **rates):
    batches = characters.batches(learning, 16, 16, SEED)
    training.train(model, batches, loss, steps=steps, seconds=30, **rates)
    return model


@torch.no_grad()
def held_out_loss(model):
    return loss(model, next(characters.batches(held_out, 16, 512, seed=0))).item()


residual = trained(new(Residual), learning_rate=0.003)

# %% tags=["training", "hide-input"]
came = round(held_out_loss(residual), 2)
claim = "32 blocks, residual alone, torch's weights: the loss ends below 2.9"
training.expect(claim, came < 2.9, came, residual)

# %% [markdown]
# That was one of the twelve. (The loop clips gradients to an L2 norm of 1 and uses weight decay.) `make results LESSON=07` trained all, at three depths and from three seeds. The learning rate was swept for each: three rates, and more where the best of a stack that learned was at the edge.

# %% tags=["hide-input"]
needs()
kept = results.load("depth")["figures"]
title = "After 120 steps: only with both do 32 blocks learn from all three kinds of initial weights"
names = [f"{depth} blocks" for depth in kept["depths"]]
figure, panels = plots.panels(title, names, size=(9.6, 3.4))
for ax, depth in zip(panels, kept["depths"]):
    for y, by_start in enumerate(kept["loss"].values()):
        for row, (found, colour) in enumerate(zip(by_start.values(), plots.COLOURS)):
            place = y + 0.22 * (row - 1)
            for value in found[str(depth)]["losses"]:
                off = value > 3.6
                ax.plot(min(value, 3.76), place, ">" if off else "o", color=colour, markersize=4)
            if off:
                ax.text(
                    3.72, place, "explodes", color=colour, size="x-small", ha="right", va="center"
                )
    ax.axvline(kept["trivial"], color="0.4", linestyle=":")
    ax.set(xlim=(2.35, 3.8), ylim=(3.5, -0.6), yticks=range(4), xlabel="held-out loss, nats")
    ax.set_yticklabels(list(kept["loss"]) if ax is panels[0] else [])
panels[0].text(3.34, 3.3, "baseline", color="0.4", size="x-small", ha="right")
for y, (start, colour) in enumerate(zip(STARTS, plots.COLOURS)):
    panels[2].text(2.38, -0.3 + 0.3 * y, f"● {start}", color=colour, size="x-small")
deep = {name: {s: x["32"]["losses"] for s, x in by.items()} for name, by in kept["loss"].items()}
learns = {
    name: [max(losses) < kept["trivial"] - 0.2 for losses in by.values()]
    for name, by in deep.items()
}
mean = {name: [sum(x) / 3 for x in by.values()] for name, by in deep.items()}
plots.show(
    figure,
    "Held-out loss by kind and initial weights. With 32 blocks: bare and norm are at the baseline, "
    "3.36, from all initial weights. Residual: "
    + ", ".join(f"{m:.2f}" if m < 9 else "explodes" for m in mean["residual"])
    + ". Residual and norm: "
    + ", ".join(f"{m:.2f}" for m in mean["residual and norm"])
    + ". Order: torch's default, N(0, 1/fan-in), N(0, 0.02 squared).",
)
reveal(guess, ([k for k, v in learns.items() if any(v)], [k for k, v in learns.items() if all(v)]))

# %% tags=["hide-input"]
assert learns["residual"] == [True, False, True] and learns["residual and norm"] == [True] * 3
assert not any(learns["bare"] + learns["norm"])
assert [round(x, 2) for x in mean["residual and norm"]] == [2.71, 2.91, 2.67]
assert [round(mean["residual"][i], 2) for i in (0, 2)] == [2.61, 2.43]
for i in (0, 2):
    pairs = zip(list(deep["residual"].values())[i], list(deep["residual and norm"].values())[i])
    assert all(alone < both for alone, both in pairs)
assert min(min(x["8"]["losses"]) for x in [kept["loss"]["residual"]["N(0, 1/fan-in)"]]) > 15
print("32 blocks, one seed: without clipping, and after 1,000 steps")
for name, by_start in kept["without clipping"].items():
    for start, value in by_start.items():
        more = kept["patient"].get(name, {}).get(start)
        shown = f"{value:9.2f}" if value < 100 else " explodes"
        print(f"{name:17} {start:16} {shown}", f"{more:9.2f}" if more else "")
        if name != "residual":
            assert abs(value - mean[name][list(STARTS).index(start)]) < 0.35
assert all(x > 3.35 for by in kept["patient"].values() for x in by.values())

# %% [markdown]
# - **Without a residual connection** 32 blocks learn frequencies only, in 1,000 steps too (one seed). Norms keep the gradient within a factor of about 1,000, but before training all of it arrives at the first character of a window. Replace a token, and its own state at the top moves by rounding error (lesson 05).

# %% [markdown]
# - **A residual connection alone is enough** if the initial weights are small: 2.61 and 2.43, lower than with norms. (Unclipped, from torch's default: 2.90, with norms 2.66.) With three times torch's variance it explodes (without a last norm).
# - **With both**, all three learn: 2.71, 2.91, 2.67. The norm makes these 120 steps far less *dependent on initial weights*, not always better.
#
# Fixup (Zhang et al. 2019) and SkipInit (De & Smith 2020) train deep networks without norms by keeping small what each layer adds. Three lectures show Li et al. 2018: residual connections smooth the loss. (Reported.)

# %% [markdown]
# > **Where a lecture goes too far (D18).** L1 says of residual connections, norms and scaling that they help training and "don't improve what the model is able to do". For a residual connection around a feed-forward network that is right: since $\mathrm{relu}(x) - \mathrm{relu}(-x) = x$, a bare network with $2d$ more hidden units can carry $x$ along. But if *able* means what our training finds, these parts decided everything above.

# %% [markdown]
# ## The block of 2017
#
# Where does the norm go? The paper adds first and then normalizes: **post-norm**. L3 writes its encoder block step by step:
#
# $$\begin{aligned} T^1 &= \mathrm{Attention}(X) & T^2 &= X + T^1 & T^3 &= \mathrm{LN}(T^2) \\ T^4 &= \mathrm{FFN}(T^3) & T^5 &= T^3 + T^4 & H &= \mathrm{LN}(T^5) \end{aligned}$$
#
# Many later models, GPT-2 and Llama among them, use **pre-norm**: a layer reads a normed copy, and the sum itself is never normed, $x + F(\mathrm{LN}(x))$. Our *residual and norm* was pre-norm. Follow the thick line:

# %% tags=["hide-input"]
diagram = drawings.Diagram()
layers = {"attention": "query", "feed-forward": "network"}
wide, low = (2.4, 0.62), (0.6, 0.6)
for x, pre in ((0, False), (7.2, True)):
    y, below = 0.0, (x, -0.6)
    for name, role in layers.items():
        start, fork = below, y - 0.25
        parts = [(name, role, wide), ("+", "stream", low), ("norm", "norm", wide)]
        parts = [parts[2], *parts[:2]] if pre else parts
        for text, kind, size in parts:
            box = diagram.box(text, (x, y + 0.45), kind, size=size)
            width = 2.4 if text == "norm" and not pre else 1.2
            diagram.arrow(below, box, role="stream", width=width)
            if text == "+":
                around = [(x, fork), (x - 1.9, fork), (x - 1.9, box.at[1])]
                diagram.arrow(start, box, via=around, role="stream", width=2.4)
            y, below = y + 1.05, box
        y += 0.35
    diagram.arrow(below, (x, y + 0.35), role="stream", width=2.4)
    title = r"pre-norm: $x + F(\mathrm{LN}(x))$" if pre else r"post-norm: $\mathrm{LN}(x + F(x))$"
    diagram.text(title, (x, -1.45))
    diagram.text("n × d", (x + 0.2, -0.75), size=9, align="left")
    diagram.text("n × d", (x + 0.2, y + 0.3), size=9, align="left")
diagram.show(
    "A post-norm and a pre-norm block side by side, n by d everywhere. Post-norm: attention, plus, "
    "norm, feed-forward, plus, norm; the path around a layer ends in a plus, and each plus is "
    "followed by a norm. Pre-norm: norm, attention, plus, norm, feed-forward, plus; the thick line "
    "from bottom to top runs through the two plus signs only."
)

# %% [markdown]
# Under post-norm no path from bottom to top is free of norms. Under pre-norm the thick line runs through plus signs alone: its $I$ stays an $I$. But nothing bounds the sum, so there is one more norm after the last block.
#
# Each order is a class that wraps any layer. `*args` hands the mask on to attention.

# %%
# exercise: add_norm/post_norm

# %%
check("add_norm/post_norm", PostNorm)

# %%
# exercise: add_norm/pre_norm

# %%
check("add_norm/pre_norm", PreNorm)

# %%
PostNorm = mine("add_norm/post_norm")
PreNorm = mine("add_norm/pre_norm")

# %% [markdown]
# Follow one token of four numbers through both. The layer doubles the first number that it reads, and writes the result to the third column. First step of post-norm: from $x = (6, 2, 0, 0)$ the layer writes $(0, 0, 12, 0)$, and the sum $(6, 2, 12, 0)$ has mean 5 and variance 21. Of pre-norm: the layer reads $\mathrm{LN}(x) = (1.63, 0, -0.82, -0.82)$. **After three layers, what has become of the first number, 6, in each order?**

# %%
guess = None  # two numbers: (post-norm, pre-norm)


# %% tags=["nbval-check-output", "hide-input"]
w = torch.zeros(4, 4)
w[0, 2] = 2  # read the first number, write to the third
ends = []
for name, wrap in (("post", PostNorm), ("pre", PreNorm)):
    token, layer = torch.tensor([6.0, 2, 0, 0]), wrap(lambda x: x @ w, 4)
    for depth in range(4):
        shown = " ".join(f"{value:6.2f}" for value in token.tolist())
        print(f"{name:4} after {depth} layers: {shown}   L2 norm {token.norm():5.2f}")
        token, before = layer(token).detach(), token
    ends.append(round(before[0].item(), 2))
reveal(guess, tuple(ends))

# %% [markdown]
# Post-norm shifts and divides the *whole* sum each time: 6 has become 0.04, and the L2 norm is always $\sqrt4 = 2$. Under pre-norm 6 and 2 are untouched, and the third column is a sum of three contributions; the next layer reads it normed, the 6 as 0.63.
#
# > **Where the lectures disagree (D13).** They draw the paper's order. Some code that explains the paper is pre-norm, for example *The Annotated Transformer* (Rush 2018). torch offers both, by `norm_first`.

# %% [markdown]
# ## Warm-up
#
# The paper trains with a learning rate that begins near 0 and rises for 4,000 steps (section 5.3). Xiong et al. 2020 trace the need for it to post-norm: at the start, gradients near its output are large. Liu et al. 2020 blame Adam's unreliable first steps. (Both reported; our runs do not decide.)
#
# Eight blocks, torch's initial weights, 250 steps, a bold rate of 0.01: with a warm-up over 30 % of the steps, and with none. **Post-norm and pre-norm, with and without: which of the four fail?**

# %%
guess = None  # for example ["pre-norm without"]

# %%
needs("shakespeare")

# %% tags=["training"]
bold = {"steps": 250, "learning_rate": 0.01}
without = trained(new(PostNorm, 8), **bold, warm_up=0)
risen = trained(new(PostNorm, 8), **bold, warm_up=0.3)

# %% tags=["training", "hide-input"]
came = [round(held_out_loss(model), 2) for model in (without, risen)]
claim = "at this rate post-norm without a warm-up ends over 0.3 nats higher than with one"
training.expect(claim, came[0] > came[1] + 0.3, came, without, risen)

# %% tags=["hide-input"]
needs()
kept = results.load("warm_up")["figures"]
title = "Without warm-up post-norm fails at 0.01, a rate that pre-norm bears"
figure, panels = plots.panels(
    title, ["no warm-up", "warm-up over 30 % of the steps"], size=(9, 3.4)
)
rates = kept["rates"]
orders = {"post-norm": plots.COLOURS[0], "pre-norm": plots.COLOURS[1], "DeepNorm": plots.COLOURS[2]}
for ax, share in zip(panels, ("0%", "30%")):
    for name, colour in orders.items():
        runs = [kept["losses"][name][share][f"{rate:g}"] for rate in rates]
        for seed in range(3):
            style = {"color": colour, "linewidth": 1, "markersize": 4}
            ax.plot(rates, [run[seed] for run in runs], "o-", **style)
    ax.axhline(kept["trivial"], color="0.4", linestyle=":")
    ax.set(xscale="log", xticks=rates, ylim=(2.3, 3.5), xlabel="learning rate")
    ax.set_xticklabels([f"{rate:g}" for rate in rates])
    ax.minorticks_off()
panels[0].set_ylabel("held-out loss, nats")
panels[0].text(0.001, 3.34, "frequency baseline", color="0.4", size="small", va="top")
for y, (name, colour) in enumerate(orders.items()):
    panels[1].text(0.001, 3.2 - 0.09 * y, name, color=colour, size="small")
final = {
    f"{name} {share}": kept["losses"][name][share]["0.01"]
    for name in orders
    for share in ("0%", "30%")
}
said = "; ".join(f"{name}: " + ", ".join(f"{x:.2f}" for x in runs) for name, runs in final.items())
plots.show(
    figure,
    "Held-out loss against the learning rate, three seeds, without and with warm-up. At 0.003 and "
    f"below all learn both ways. At 0.01, by warm-up: {said}. At 0.03 post-norm fails both ways.",
)
words = {"0%": "without", "30%": "with"}
failed = [name for name, runs in final.items() if min(runs) > 3.3]
reveal(guess, [f"{name.split()[0]} {words[name.split()[1]]}" for name in failed])

# %% tags=["hide-input"]
post, pre, weighed = (kept["losses"][name] for name in orders)
assert failed == ["post-norm 0%"] and min(post["30%"]["0.03"] + post["0%"]["0.03"]) > 3.3
assert max(post["0%"]["0.003"]) < 2.53 and max(post["30%"]["0.01"]) < 2.47
assert min(post["0%"]["0.003"]) > max(post["30%"]["0.01"])
assert max(pre["0%"]["0.01"] + pre["30%"]["0.01"] + weighed["0%"]["0.01"]) < 2.5
assert abs(sum(pre["30%"]["0.01"]) / 3 - 2.43) < 0.015
assert min(kept["without clipping"]["post-norm"]["0%"]) > 3.3

# %% [markdown]
# At 0.01 post-norm without warm-up stays at the frequency baseline (without clipping, too). At 0.003 and below it needs none. So warm-up is no condition for learning here: it lets post-norm use 0.01, of our rates the best (2.45 against 2.51).
#
# The green line is **DeepNorm** (Wang et al. 2022), post-norm with a factor $\alpha > 1$ on the residual path, here 2. It needs no warm-up at 0.01. (The paper also draws some initial weights smaller; we do not.)
#
# $$\mathrm{DeepNorm}(x) = \mathrm{LN}(\alpha\, x + F(x)) \qquad \alpha = (2N)^{1/4}$$

# %% [markdown]
# ### Find the bug
#
# Somebody wrote DeepNorm, and trained eight blocks at 0.01 without warm-up. No error; 3.36, as bad as post-norm. One line is wrong. Mend it.

# %%
# exercise: add_norm/mend_block

# %%
check("add_norm/mend_block", DeepNorm)

# %%
DeepNorm = mine("add_norm/mend_block")
needs("shakespeare")

# %% tags=["training"]
mended = trained(new(partial(DeepNorm, alpha=2.0), 8), **bold, warm_up=0)

# %% tags=["training", "hide-input"]
came = [round(held_out_loss(model), 2) for model in (without, mended)]
claim = "without a warm-up, DeepNorm ends over 0.3 nats lower than post-norm"
training.expect(claim, came[1] < came[0] - 0.3, came, without, mended)

# %% [markdown]
# Is pre-norm better, then? Here the two are close (2.44 and 2.45 at 0.01 with warm-up). Takase et al. 2023 report that post-norm "has consistently achieved better performance than Pre-LN in relatively shallow Transformers (e.g., those with six or fewer layers)", while with ten or more its training "is often unstable".
#
# ## Thirty blocks that have learned
#
# SmolLM2 has thirty pre-norm blocks (with RMSNorm, a norm that does not subtract the mean). Nothing on the thick line is ever replaced, only added to; the line is called the **residual stream**. How large is it at each level?

# %%
needs("smollm2")

# %% tags=["once", "hide-input"]
from course_lib.masks import causal_mask
from course_lib.pretrained import smollm2

model = smollm2.load()
tokens = torch.tensor(model.tokenizer.encode("A horse! my kingdom for a horse!").ids)
for rule in model.rules:
    rule.places = torch.arange(len(tokens))
with torch.no_grad():
    levels = [model.words(tokens)]
    for block in model.blocks:
        levels.append(block(levels[-1], causal_mask(len(tokens))))
for level in (0, 1, 11, 12, 30):
    sizes_here = levels[level].square().mean(-1).sqrt().tolist()
    print(f"level {level:2}:", *(f"{size:7.1f}" for size in sizes_here))

# %% tags=["hide-input"]
needs()
kept = results.load("stream")["figures"]
low, middle, high = (kept["others"][q] for q in ("0.05", "0.5", "0.95"))
title = "SmolLM2's stream grows 300-fold; one block multiplies a first token by 160"
figure, ax = plots.axes(title, "level: blocks below it", "root mean square", size=(7, 3.4))
ax.fill_between(range(31), low, high, color=plots.COLOURS[0], alpha=0.25, linewidth=0)
ax.semilogy(middle, color=plots.COLOURS[0])
ax.semilogy(kept["first"], color=plots.COLOURS[1])
ax.text(17, 5, "all other tokens (90 % of them)", color=plots.COLOURS[0], size="small", va="top")
ax.text(13, 450, "first token of a text", color=plots.COLOURS[1], size="small")
ax.set(xlim=(0, 30))
assert 290 < middle[30] / middle[0] < 340
assert (
    all(900 < x < 1100 for x in kept["first"][12:28])
    and 150 < kept["first"][12] / kept["first"][11] < 170
)
assert all(share > 0.97 for share in kept["its share"][12:28])
assert 23_000 < (576 * kept["its share"][12]) ** 0.5 * kept["first"][12] < 25_000
plots.show(
    figure,
    "Root mean square of the residual stream at 31 levels, logarithmic, 50 texts of 32 tokens. The "
    f"median token grows from {middle[0]:.2f} to {middle[30]:.0f}. The first token of a text jumps "
    f"from {kept['first'][11]:.0f} at level 11 to {kept['first'][12]:,.0f} at level 12, stays there "
    f"up to level 28, and falls to {kept['first'][30]:.0f}.",
)

# %% [markdown]
# The typical token grows 300-fold, and each layer reads it through a norm, at one size. So a late layer must write more than an early one to change a token's *direction* as much.
#
# The first token is special: block 12 raises its root mean square to a thousand. Nearly all of that is *one* of 576 numbers: about 24,000. Sun et al. 2024 find such **massive activations** in many trained models; lesson 13 comes back to this token.
#
# ## What to remember
#
# | | |
# |:-|:-|
# | residual connection | $x_l = x_{l-1} + F_l(x_{l-1})$, Jacobian $I + J_l$ |
# | growth, residual alone | mean square times about at most $(1 + c^4)(1 + c^4/2)$ a block |
# | layer norm | $\hat x = (x - \mu)/\sqrt{\sigma^2 + \epsilon}$, $\quad \mathrm{LN}(x) = \gamma \odot \hat x + \beta$, $\quad \lVert\hat x\rVert = \sqrt d$ |
# | its Jacobian | $\frac1\sigma (I - \frac1d \mathbf{1}\mathbf{1}^T - \frac1d \hat x \hat x^T)$ |
# | post-norm, pre-norm | $\mathrm{LN}(x + F(x))$; $\quad x + F(\mathrm{LN}(x))$ and a last norm |
#
# The residual connection lets 32 blocks learn from small initial weights (torch's default, $N(0, 0.02^2)$). With pre-norm they learn from all three kinds that we tried.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. What is the layer norm of (1, 3), with gain 1, bias 0 and a tiny ε?</summary>
#
# The mean is 2, the standard deviation 1: (−1, 1). With two different numbers it is always (−1, 1) or (1, −1).
# </details>
#
# <details><summary>2. A layer's weights are all zero. What do post-norm and pre-norm return for x?</summary>
#
# Post-norm LN(x), pre-norm x.
# </details>
#
# <details><summary>3. Somebody says: "Without norms, 32 blocks cannot be trained." What do you ask?</summary>
#
# With which initial weights? With torch's default or smaller ones, residual connections alone trained 32 blocks here, with clipped gradients better than with norms; with three times that variance they exploded.
# </details>

# %% [markdown]
# ## In your own words
#
# "Residual connections and norms are two ways of doing the same: they keep gradients from vanishing." Answer in one paragraph. What does each do for the gradient and the scale of the activations? Which of the twelve stacks learn with only one of the two?

# %% [markdown] tags=["question:add_and_norm"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# You have every part of a Transformer block. Lesson 08 makes an encoder and a decoder of them. Beside this lesson: [how two heads talk through the residual stream](explorations/07_induction_heads.ipynb), [deleting with a plus sign](explorations/07_erase.ipynb), [RMSNorm](explorations/07_norms.ipynb) and [why not batch norm?](explorations/07_batch_norm.ipynb)
#
# Vaswani et al. 2017, sections 3.1 and 5.3; He et al. 2016 (residual connections); Ba et al. 2016 (layer norm); Xiong et al. 2020 (pre- and post-norm); Wang et al. 2022 (DeepNorm); Radford et al. 2019 (GPT-2). Lectures: L1 to L5.
