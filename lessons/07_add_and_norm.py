# %% [markdown]
# # 07 · Add & norm
#
# **230 minutes, of which 138 are the core path · after lesson 06 · needs `shakespeare` (5.4 MB)**
#
# You have attention and a feed-forward network. One after the other they make a block, and blocks can be stacked: the Transformer of 2017 has six, the largest GPT-2 has forty-eight (Radford et al. 2019). Stack thirty-two of yours and train them. They will learn how often each letter occurs in Shakespeare, and nothing else. Two small parts make such a stack learn: a plus sign and a norm.

# %% [markdown]
# You will see what is wrong with a deep stack, build layer norm, RMSNorm, and the two ways to put a norm beside a plus sign, and find out which of them needs a warm-up. At the end you set two attention heads by hand, and they complete a line of *Richard III*.
#
# You need the feed-forward network and the causal mask of lesson 05, and lesson 06's multi-head attention. The examples also use lesson 03's word vectors and scaled attention, and the last section lesson 04's sinusoids and shift matrix. Sections marked *optional* are not needed later.

# %%
import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import characters, needs, shakespeare, word_vectors
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
# `Stack` reads characters of Shakespeare and predicts the next one: embedding, positions, as many blocks as you like, one linear layer. Its argument `wrap` says how a layer is connected to the rest. With `bare`, the output of a layer simply replaces its input.

# %%
from course_lib.instruments.deep_stack import NormAlone, Residual, Stack, bare

needs("shakespeare")

# %%
learning, held_out = characters.split()


def new(wrap, blocks, seed=0, **options):
    with training.seeded(seed):
        return Stack(len(characters.vocab()), blocks, 32, heads=4, wrap=wrap, **options)


def loss(model, batch):
    tokens, following = batch
    return F.cross_entropy(model(tokens).flatten(0, -2), following.flatten())


# %% [markdown]
# Before any training, look at what training will have to work with. Let $x_l$ be the tokens' vectors above layer $l$, a matrix of $n \times d$. A block has two layers, attention and feed-forward, so $N$ blocks have $2N$. The backward pass multiplies the gradient by the Jacobian of one layer after another:
#
# $$x_l = F_l(x_{l-1}) \qquad\Longrightarrow\qquad \frac{\partial L}{\partial x_0} = \frac{\partial L}{\partial x_{2N}}\; J_{2N}\, J_{2N-1} \cdots J_1 \qquad J_l = \frac{\partial F_l}{\partial x_{l-1}}$$

# %% [markdown]
# Two things are called *norm*. In this lesson a norm is a layer; the norm $\lVert v \rVert$ of a vector is its **L2 norm**.
#
# At the top of our stack the gradient has an L2 norm of about 0.03. **What is it below the first of 32 blocks?**

# %%
guess = None  # a number, such as 0.001


# %%
def gradients(wrap, blocks, **options):
    """Return the L2 norm of the loss's gradient at each level, the lowest first."""
    model = new(wrap, blocks, **options).double()
    tokens, following = next(characters.batches(learning, 16, 32, seed=0))
    streams = model.streams(tokens)
    value = loss(lambda _: model.read(streams[-1]), (tokens, following))
    return torch.stack([gradient.norm() for gradient in torch.autograd.grad(value, streams)])


arriving = gradients(bare, 32)
reveal(guess, f"{arriving[0]:.0e}")
left = (arriving[0] / arriving[-1]) ** (1 / 32)
print(f"left by one block, on average: {left:.2f}")
assert arriving[0] < 1e-15 < 1e-3 < arriving[-1] and 0.15 < left < 0.35

# %% tags=["hide-input"]
title = "Each bare block leaves about a quarter of the gradient"
size = "L2 norm of the gradient"
figure, ax = plots.axes(title, "level: blocks below it", size, size=(6.4, 3.2))
for blocks, colour in zip((2, 4, 8, 16, 32), plots.COLOURS):
    line = gradients(bare, blocks)
    ax.semilogy(line, color=colour)
    said = f"{blocks} blocks" if blocks == 32 else blocks
    ax.text(blocks, 0.1, said, color=colour, size="small", ha="center")
ax.set(ylim=(1e-24, 10), xlim=(0, 34))
plots.show(
    figure,
    "L2 norm of the gradient at each level, logarithmic, for stacks of 2 to 32 bare blocks. "
    "Straight lines fall from about 0.03 at the top of each stack to the bottom: 1e-4 for 4 "
    "blocks, 1e-12 for 16, about 1e-22 for 32.",
)

# %% [markdown]
# These are **vanishing gradients**, as in lesson 01, with depth in place of time. Now follow the forward pass. Lesson 05 measured how alike tokens become in a deep stack, by their **spread**: how far they are from their mean, as a share of their L2 norm.
#
# $$\mathrm{spread}(X) = \frac{\lVert X - \mathbf{1}\,\bar x \rVert}{\lVert X \rVert} \qquad \bar x = \frac1m \sum_{i=1}^{m} x_i$$
#
# $X$ is $m \times d$, all $m = 512$ tokens of a batch; $\mathbf{1}$ is $m \times 1$, and $\bar x$ is $1 \times d$. **What is the spread above 32 bare blocks?**

# %%
guess = None  # a share between 0 and 1


# %%
@torch.no_grad()
def spread(wrap, blocks=32):
    """Return the spread of a batch's tokens at each level."""
    tokens, _ = next(characters.batches(learning, 16, 32, seed=0))
    streams = new(wrap, blocks).double().streams(tokens)
    means = [reduce(x, "batch n d -> d", "mean") for x in streams]
    return torch.stack([(x - mean).norm() / x.norm() for x, mean in zip(streams, means)])


reveal(guess, f"{spread(bare)[-1]:.0e}")
assert spread(bare)[-1] < 1e-14, "nothing but the rounding of float64"

# %% [markdown]
# That is the rounding error of float64, in which we compute here: the spread is too small to be seen. In float32, in which we train, all tokens are *one* token, up to rounding. The top of the stack cannot tell the tokens apart, and the bottom gets almost no gradient.

# %% [markdown]
# ## Add: the residual connection
#
# The cure for both is one plus sign (He et al. 2016). A layer no longer replaces the stream of vectors; it *adds* to it. This is a **residual connection**, also called a skip connection:
#
# $$x_l = x_{l-1} + F_l(x_{l-1}) \qquad \frac{\partial x_l}{\partial x_{l-1}} = I + J_l$$
#
# $$(I + J_{2N}) \cdots (I + J_1) = I + \sum_l J_l + \sum_{l > k} J_l J_k + \dots$$

# %% [markdown]
# Multiply the product out and you get $2^{2N}$ paths, one for each choice of layers to go through. One of them goes through no layer: it is the $I$, and it brings the gradient of the top to every level unchanged.
#
# There is a second gift. If the weights of a layer are near zero, a bare layer deletes its input, and a residual layer passes it on. Such a stack is biased towards the identity, and a layer has to learn only the *residual*: what should be different.

# %%
needs()
with training.seeded(0):
    layer, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(4)
alone = torch.autograd.functional.jacobian(layer, x)
with_residual = torch.autograd.functional.jacobian(lambda x: x + layer(x), x)
print("the Jacobians differ by the identity:\n", with_residual - alone)
assert torch.allclose(with_residual - alone, torch.eye(4), atol=1e-6)
with torch.no_grad():
    for weight in layer.parameters():
        weight /= 1000
assert layer(x).abs().max() < 0.01 and torch.allclose(x + layer(x), x, atol=0.01)

# %% [markdown]
# `Residual` wraps a layer in this way. **What happens to the gradient on its way down through 32 blocks now?**

# %%
guess = None  # "it falls", "it stays" or "it grows"

# %%
needs("shakespeare")

# %%
arriving = gradients(Residual, 32)
grown = arriving[0] / arriving[-1]
reveal(guess, "it grows" if grown > 2 else "it falls" if grown < 0.5 else "it stays")
print(f"by a factor of {grown:.0e}")
assert grown > 1000


# %%
@torch.no_grad()
def sizes(wrap):
    """Return the root mean square of the stream at each level."""
    tokens, _ = next(characters.batches(learning, 16, 32, seed=0))
    return torch.stack([x.square().mean().sqrt() for x in new(wrap, 32).streams(tokens)])


lowest, highest = sizes(Residual)[[0, -1]].tolist()
print(f"root mean square of the stream: {lowest:.1f} at the bottom, {highest:,.0f} at the top")
assert highest > 1000 * lowest

# %% [markdown]
# We have swapped vanishing for exploding gradients. A layer reads a large $x$ and writes a large answer. The sum is larger still, and so is what the next layer writes: the stream grows more than a thousandfold. On the way down the gradient grows too, at some levels in jumps, as a figure below shows.

# %% [markdown]
# We need something that keeps the *scale* of a layer's input fixed: a **normalization**. It brings each token to mean 0 and variance 1 before the layer reads it. You will build one below. First we use torch's, to compare all four cases. (The fourth case, with the norm before the layer, is called **pre-norm**. In the order of 2017, **post-norm**, it follows the sum. In *residual and norm*, one more norm follows the last block; the section on pre-norm says why.)

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

# %%
from functools import partial


class TorchPreNorm(Residual):
    def forward(self, x, *args):
        return x + self.sublayer(F.layer_norm(x, x.shape[-1:]), *args)


wraps = {"bare": bare, "norm": NormAlone, "residual": Residual, "residual and norm": TorchPreNorm}
last = {"residual and norm": {"last_norm": True}}  # the section on pre-norm says why
four = {name: gradients(wrap, 32, **last.get(name, {})) for name, wrap in wraps.items()}
factors = {name: float(line[0] / line[-1]) for name, line in four.items()}
print({name: f"{factor:.0e}" for name, factor in factors.items()})
assert factors["bare"] < 1e-15 and factors["residual"] > 1e3
assert all(0.01 < factors[name] < 100 for name in ("norm", "residual and norm"))

# %% tags=["hide-input"]
title = "Bare, the gradient vanishes; with residuals alone it explodes; norms hold it"
figure, ax = plots.axes(title, "level: blocks below it", size, size=(6.8, 3.4))
places = {"bare": (9, 1e-19), "norm": (1, 1e-5), "residual": (11, 3e5)}
places["residual and norm"] = (19, 2e0)
for (name, line), colour in zip(four.items(), plots.COLOURS):
    ax.semilogy(line, color=colour)
    ax.text(*places[name], name, color=colour)
plots.show(
    figure,
    "L2 norm of the gradient at each of 33 levels, logarithmic. Bare falls from 0.03 at the top to "
    "1e-22 at the bottom; residual alone grows from 0.04 to 2e6; norm alone and residual with "
    "norm both stay between 0.002 and 0.05.",
)

# %%
for name, wrap in wraps.items():
    print(f"{name:17} spread above 32 blocks: {spread(wrap)[-1]:.0e}")
assert min(spread(wraps[name])[-1] for name in ("residual", "residual and norm")) > 0.3

# %% [markdown]
# Residuals keep the tokens apart, too. But by the picture of the gradients, a norm without a residual does as well as both together. **Does it? We train 32 blocks in four ways, with Adam, for 120 steps. Which of the stacks learn anything?** A model that knows how frequent each character is, and nothing else, has a loss of 3.36 nats on held-out text. We call that the **frequency baseline**.

# %%
guess = None  # a list of "bare", "norm", "residual", "residual and norm"

# %%
counts = torch.bincount(learning, minlength=len(characters.vocab())) + 1
trivial = -(counts / counts.sum()).log()[held_out].mean().item()
in_training = -(counts / counts.sum()).log()[learning].mean().item()
print(f"baseline: {trivial:.2f} on held-out text, {in_training:.2f} on the text we train on")
assert round(trivial, 2) == 3.36


# %% tags=["training"]
def trained(model, steps=120, learning_rate=0.003, warm_up=0.05):
    stretches = characters.batches(learning, 16, 16, SEED)
    rates = {"learning_rate": learning_rate, "warm_up": warm_up}
    training.train(model, stretches, loss, steps=steps, seconds=30, **rates)
    return model


@torch.no_grad()
def held_out_loss(model):
    return loss(model, next(characters.batches(held_out, 16, 512, seed=0))).item()


deep_bare = trained(new(bare, 32, SEED))

# %% tags=["training"]
deep_both = trained(new(TorchPreNorm, 32, SEED, last_norm=True))

# %% tags=["training"]
live = {"bare": held_out_loss(deep_bare), "residual and norm": held_out_loss(deep_both)}
claim = f"bare stays at the frequencies' {trivial:.2f}, residual and norm is over 0.2 lower"
holds = live["bare"] > trivial - 0.1 and live["residual and norm"] < live["bare"] - 0.2
losses = {name: round(value, 2) for name, value in live.items()}
training.expect(claim, holds, losses, deep_bare, deep_both)

# %% [markdown]
# `make results LESSON=07` trained all four kinds at five depths, for the same 120 steps from each of three seeds. And because 120 steps are few, it also gave 2,000 steps to bare stacks and to the one with both, from one seed.

# %%
needs()
kept = results.load("depth")["figures"]
failing = ("bare", "norm", "residual")
unlearned = {name: min(run[-1] for run in kept["loss"][name]) for name in failing}
print({name: round(value, 2) for name, value in unlearned.items()}, "at best, with 32 blocks")
reveal(guess, [name for name, runs in kept["loss"].items() if max(run[-1] for run in runs) < 3.0])
assert min(unlearned.values()) > kept["trivial"] - 0.1
assert min(kept["norm with a last norm"]) > kept["trivial"] - 0.01
assert all(max(run) < 3.0 for run in kept["loss"]["residual and norm"])

# %% tags=["hide-input"]
title = "Of the four, only residual and norm together learn in 32 blocks"
steps = kept["patient steps"]
names = ["after 120 steps, three seeds", f"32 blocks, {steps:,} steps, one seed"]
figure, (first, second) = plots.panels(title, names, size=(9, 3.8))
for (name, runs), colour in zip(kept["loss"].items(), plots.COLOURS):
    for run in runs:
        style = "--" if name == "norm" else "-"
        first.plot(kept["depths"], run, style, marker="o", color=colour, linewidth=1, markersize=3)
    if name in globals().get("live", {}):
        first.plot(32, live[name], "x", color=colour, markersize=9)
    if name in kept["patient"]:
        line = kept["patient"][name]["32"]["losses"]
        second.plot([kept["window"] * (i + 0.5) for i in range(len(line))], line, color=colour)
worst = [int(min(run[i] for run in kept["loss"]["residual"])) for i in (3, 4)]
exploded = f"residual alone:\nover {worst[0]} with 16 blocks,\nover {worst[1]} with 32"
texts = (
    ("bare, and norm alone", 10, 3.45, 0),
    (exploded, 2, 4.0, 2),
    ("residual and norm", 9, 2.47, 3),
)
for text, x, y, colour in texts:
    first.text(x, y, text, color=plots.COLOURS[colour], size="small")
for ax, baseline in ((first, "trivial"), (second, "trivial in training")):
    ax.axhline(kept[baseline], color="0.4", linestyle=":")
second.text(2000, 3.2, "frequency baseline", color="0.4", size="small", ha="right", va="top")
second.text(1000, 3.42, "bare", color=plots.COLOURS[0], size="small")
second.text(1000, 2.35, "residual and norm", color=plots.COLOURS[3], size="small")
first.set(xscale="log", xticks=kept["depths"], xticklabels=kept["depths"], xlabel="blocks")
first.minorticks_off()
first.set(ylim=(1.9, 4.6), ylabel="loss on held-out text, nats")
second.set(ylim=(1.9, 4.6), ylabel="training loss, means of 20 steps", xlabel="step")
plots.show(
    figure,
    "Left: held-out loss after 120 steps against the number of blocks. Bare stacks and norms alone "
    "are at the frequency baseline, 3.36, from 4 blocks on; residuals alone are at 2.6 up to 8 "
    "blocks and off the picture from 16 on; residual and norm is between 2.69 and 2.83 at all "
    "depths. Right, 32 blocks over 2,000 steps: bare stays at the dotted line (3.33, the baseline "
    "on the training text), residual and norm falls to about 2.0.",
)

# %% [markdown]
# The crosses are the two stacks that you have just trained. The dotted line is the frequency baseline, 3.36 on held-out text (left) and 3.33 on the text we train on (right).
#
# After 120 steps, bare stacks and norms alone are at the baseline from 4 blocks on. Residuals alone learn with up to 8 blocks. With 16 and with 32 they do not. With 32 the stream is so large that the loss starts in the thousands, and 120 steps do not bring it down to the baseline. Two lower learning rates do not help:

# %% tags=["nbval-check-output"]
alone = {"32 blocks, untrained": [run[-1] for run in kept["residual untrained"]]}
alone["at learning rate 0.003"] = [run[-1] for run in kept["loss"]["residual"]]
for rate, runs in zip(kept["lower rates"], zip(*kept["residual at lower rates"])):
    alone[f"at learning rate {rate}"] = runs
for name, runs in alone.items():
    print(f"residual alone, {name:23}", *(f"{value:5.0f}" for value in runs))
    assert min(runs) > 100 * kept["trivial"]

# %% [markdown]
# Within 120 steps only both together learn with 16 and with 32. Does depth pay, then? In 120 steps a little, up to 16 blocks, and not at 32:

# %% tags=["nbval-check-output"]
print("blocks           ", *(f"{depth:7}" for depth in kept["depths"]))
for name in ("residual", "residual and norm"):
    for run in kept["loss"][name]:
        print(f"{name:17}", *(f"{value:7.2f}" for value in run))
pairs = list(zip(kept["loss"]["residual"], kept["loss"]["residual and norm"]))
best = [kept["depths"][run.index(min(run))] for _, run in pairs]
print("best depth of residual and norm, for each seed:", best)
assert best == [16, 16, 16] and all(min(alone) < min(both) for alone, both in pairs)

# %% [markdown]
# The best of the five depths is 16, from every seed. But 8 blocks with residuals alone are lower than all of them. The norms do not make a short training faster here; they make a deep stack trainable. Would patience help the bare stacks?

# %% tags=["nbval-check-output"]
patient = {
    f"{name}, {depth} blocks": run["held out"]
    for name, runs in kept["patient"].items()
    for depth, run in runs.items()
}
for name, value in patient.items():
    print(f"{name:28} after {steps:,} steps: {value:.2f}; baseline {kept['trivial']:.2f}")
assert patient["bare, 4 blocks"] < kept["trivial"] - 0.2
assert all(abs(patient[f"bare, {n} blocks"] - kept["trivial"]) < 0.01 for n in (8, 32))

# %% [markdown]
# It helps 4 bare blocks. With 8 or with 32, the loss goes down to the frequency baseline and stays there: a plateau, which the right panel shows for 32. (And norms alone do not fail for want of a last norm. With one, 32 blocks are no better after 120 steps; the cell above the figure asserts it.)
#
# The next four sections are optional. The core path goes on at *Norm: one scale for every token*.

# %% [markdown]
# ### What norms alone lack (optional)
#
# Their gradient has the right size. But a step helps only if the gradient's *direction* holds while the weights move. Move every parameter tensor by a random one with a tenth of its L2 norm, and compare the gradient before and after:

# %%
needs("shakespeare")


# %%
def turn(wrap, **options):
    """Return the angle between the gradients before and after a small random move."""
    model, generator = new(wrap, 32, **options), torch.Generator().manual_seed(0)
    batch, found = next(characters.batches(learning, 16, 32, seed=0)), []
    for share in (0, 0.1):
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.data += share * weight.norm() * noise / noise.norm()
        gradient = torch.autograd.grad(loss(model, batch), list(model.parameters()))
        found.append(torch.cat([part.flatten() for part in gradient]))
    return F.cosine_similarity(*found, dim=0).acos().rad2deg().item()


# %%
turns = {name: turn(wraps[name], **last.get(name, {})) for name in ("norm", *last)}
print({name: f"{angle:.0f} degrees" for name, angle in turns.items()})
assert turns["norm"] > 50 and turns["residual and norm"] < 30

# %% [markdown]
# Without residuals and a last norm, this small move of the weights turns the gradient by 60 degrees; with both, by 16. So a step along it may soon lead astray. (We looked at one move from one seed.) Related: Balduzzi et al. 2017 find that without residuals the gradients at neighbouring *inputs* lose their correlation with depth, and call it **shattered gradients** (quoted).

# %% [markdown]
# ### What is a stack able to do? (optional)
#
# > **Where the lectures disagree (D18).** L1, one of the five lectures that this course covers, says of residuals, norms and scaling that they help training and "don't improve what the model is able to do". What is *able*? If it means the functions that some choice of weights gives, L1 is right about a residual connection around a feed-forward network. Since $\mathrm{relu}(x) - \mathrm{relu}(-x) = x$, a bare network with $2 d_{model}$ more hidden units can carry $x$ along:

# %%
needs()
from course_lib.feed_forward import feed_forward as position_wise

# %%
with training.seeded(0):
    x, w_1, w_2 = torch.randn(5, 8), torch.randn(8, 32), torch.randn(32, 8)
none, same = torch.zeros(32), torch.eye(8)
wide_1, wide_2 = torch.cat([w_1, same, -same], dim=1), torch.cat([w_2, same, -same])
wide_bare = position_wise(x, wide_1, torch.zeros(48), wide_2, none[:8])
with_residual = x + position_wise(x, w_1, none, w_2, none[:8])
assert torch.allclose(wide_bare, with_residual, atol=1e-4)

# %% [markdown]
# > The proof ends there. Around attention, a bare stack can only come close to a residual connection (a head that looks almost only at its own token). And no bare block *is* a layer norm: for a text of one token, attention is linear and the network piecewise linear, and a layer norm is neither.

# %% [markdown]
# > If *able* means what gradient descent finds, the parts decide everything here. The 32 bare blocks do not get below the frequency baseline: after 120 steps at four learning rates and three seeds, and after 2,000 steps at one. (With another attention and careful initial weights, bare stacks do train, only more slowly: He et al. 2023, quoted.)

# %% tags=["nbval-check-output"]
for rate, runs in zip(kept["other rates"], zip(*kept["bare at other rates"])):
    print(f"120 steps at learning rate {rate:6}: " + ", ".join(f"{value:.2f}" for value in runs))
deepest = {name: [run[-1] for run in runs] for name, runs in kept["loss"].items()}
found = [*deepest["bare"], *(value for runs in kept["bare at other rates"] for value in runs)]
found.append(kept["patient"]["bare"]["32"]["held out"])
print(f"lowest of these and of 2,000 steps: {min(found):.2f}; baseline: {kept['trivial']:.2f}")
assert min(found) > kept["trivial"] - 0.1 and max(deepest["residual and norm"]) < 3.0

# %% [markdown]
# Why does patience not help? A possible reason, not tested here: Adam divides each gradient by its own recent size, so that even a tiny one makes a full step. But first it adds $10^{-8}$ to that size, and most of our gradients are smaller:

# %%
needs("shakespeare")

# %%
model = new(bare, 32)
loss(model, next(characters.batches(learning, 16, 32, seed=0))).backward()
gradient = torch.cat([weight.grad.flatten() for weight in model.parameters()])
print(f"{(gradient.abs() < 1e-8).float().mean():.0%} of the gradients are below 1e-8")
assert (gradient.abs() < 1e-8).float().mean() > 0.7

# %% [markdown]
# ### Is a norm the only remedy? (optional)
#
# Not for a steady gradient: multiply what each layer adds by 0.1, and no norm is needed. (We do not train this stack.) Fixup (Zhang et al. 2019), SkipInit (De & Smith 2020) and ReZero (Bachlechner et al. 2021) train deep residual networks without norms in this spirit, by small initial weights or a learned factor that starts at 0.


# %%
class ScaledResidual(Residual):
    def forward(self, x, *args):
        return x + 0.1 * self.sublayer(x, *args)


steady = gradients(ScaledResidual, 32)
print(f"from top to bottom, the gradient changes by a factor of {steady[0] / steady[-1]:.2f}")
assert 0.5 < steady[0] / steady[-1] < 2

# %% [markdown]
# Still, nearly every Transformer you will meet has norms. Before we build one, there is a famous picture of what residuals do.

# %% [markdown]
# ## The loss landscape (optional)
#
# Three lectures show two pictures by Li et al. 2018: the loss around an image network of 56 layers, as rugged as the Alps without residuals, and a smooth bowl with them. How about *our* stacks? A model of 107,000 parameters has as many directions, so we draw two at random, $\delta$ and $\eta$, and walk along both:
#
# $$z(a, b) = L(\theta + a\, \delta + b\, \eta) \qquad \lVert \delta_{\text{row}} \rVert = \lVert \eta_{\text{row}} \rVert = \lVert \theta_{\text{row}} \rVert$$

# %% [markdown]
# The condition on the right follows theirs, with a row of a matrix in place of a filter: a step of 1 changes each row by a vector as long as the row. Why relative steps? Double the weights whose output goes into a norm, and the function stays the same. So the same plain distance can mean a large change or none.
#
# Eight blocks with norms and a last norm, trained for 200 steps; only the residuals differ. **Around which of the two is the landscape flatter?**

# %%
guess = None  # "with residuals" or "without"

# %%
needs()
kept = results.load("landscape")["figures"]
eight = Stack(84, kept["blocks"], 32, heads=4, wrap=NormAlone, last_norm=True)
print(f"{sum(weight.numel() for weight in eight.parameters()):,} parameters")
names = {"norm": "without residuals", "residual and norm": "with residuals"}
highest = {name: max(max(map(max, x)) for x in kept["surfaces"][name]) for name in names}
reveal(guess, names[min(highest, key=highest.get)].removesuffix(" residuals"))

# %% tags=["hide-input"]
title = "Neither is rugged; only the one with residuals gets clearly below 3.36"
figure, panels = plots.panels(title, list(names.values()), size=(9, 3.8))
levels = [2.5 + 0.25 * step for step in range(11)]
for ax, name in zip(panels, names):
    place = kept["distances"], kept["distances"], kept["surfaces"][name][0]
    bands = ax.contourf(*place, levels)
    ax.contour(*place, [kept["trivial"] - 0.1], colors="white")
    ax.set(xlabel=r"distance along $\eta$", aspect=1)
panels[0].set_ylabel(r"distance along $\delta$")
figure.colorbar(bands, ax=panels, label="loss, nats")
plots.show(
    figure,
    "Two contour maps of the loss around a trained stack. Without residuals: a shallow dish, 3.34 "
    "in the middle and at most 4.1. With residuals: 2.58 in the middle, inside a white ring of "
    "radius 0.6 at 3.26, and up to 4.8 in the corners.",
)

# %% tags=["nbval-check-output"]
for name, surfaces in kept["surfaces"].items():
    for losses in map(torch.tensor, surfaces):
        better = (losses < kept["trivial"] - 0.1).float().mean()
        lowest_near = -F.max_pool2d(-losses[None], kernel_size=3, stride=1, padding=1)[0]
        valleys = losses[1:-1, 1:-1][(losses == lowest_near)[1:-1, 1:-1]].tolist()
        at = " and ".join(f"{valley:.3f}" for valley in valleys)
        print(f"{names[name]:17} highest {losses.max():.2f}, valleys at {at};", end=" ")
        print(f"{better:.0%} of the plane is 0.1 below the baseline")
        assert len(valleys) <= 2 and (better > 0.05) == (name == "residual and norm")

# %% [markdown]
# A valley is a point of the map that is no higher than its eight neighbours. Five of the six maps have one; the other has two, with the same loss to three decimals. So neither is rugged. The flatter one is the stack *without* residuals: it is still at the frequency baseline, and nothing on the plane is clearly lower. (The white line is at 3.26, a tenth below the baseline.) These maps show no Alps to smooth; only the stacks with residuals ended below the baseline. The rugged pictures are quoted, from image networks.

# %% [markdown]
# Read such maps with care. They show two directions out of 107,000. A ravine or a pass in any other direction is invisible. They show the place where training ended, not the way there. And a run that went nowhere shows *where* it is stuck, not why: for that, the gradient that turns (above) is a better clue.

# %% [markdown]
# ## Norm: one scale for every token
#
# We used a norm without saying what it is. **Layer normalization** (Ba et al. 2016) takes one token at a time. It computes mean and variance over the token's own $d$ numbers, and uses no other token:
#
# $$\mu = \frac1d \sum_{c=1}^{d} x_c \qquad \sigma^2 = \frac1d \sum_{c=1}^{d} (x_c - \mu)^2 \qquad \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \qquad \mathrm{LN}(x) = \gamma \odot \hat x + \beta$$

# %% [markdown]
# For example, $x = (2, 2, 6, 6)$ has $\mu = 4$ and $\sigma = 2$, so $\hat x = (-1, -1, 1, 1)$.
#
# The gain $\gamma$ and the bias $\beta$ are learned, one number for each column. They begin as ones and zeros. The small $\epsilon$, usually $10^{-5}$, keeps a token of equal numbers, whose variance is 0, from dividing by 0.

# %% [markdown]
# In geometry: subtracting the mean projects $x$ onto the plane of vectors whose numbers sum to 0. Dividing by $\sigma$ moves it to a sphere, since $\lVert \hat x \rVert^2 = \sum_c \hat x_c^2 = d$. With $d = 3$ you can see both steps, and the sphere meets the plane in a circle:

# %% tags=["hide-input"]
points = torch.randn(9, 3, generator=torch.Generator().manual_seed(4)) * 1.3 + 0.5
flat = points - points.mean(-1, keepdim=True)
ends = F.layer_norm(points, (3,))
side = torch.tensor([[1.0, -1, 0], [1, 1, -2]])
side = side / side.norm(dim=-1, keepdim=True)
turn = torch.linspace(0, 2 * torch.pi, 100)
circle = 3**0.5 * (turn.cos()[:, None] * side[0] + turn.sin()[:, None] * side[1])
corners = 2.4 * torch.stack(
    [side[0] + side[1], side[1] - side[0], -side[0] - side[1], side[0] - side[1]]
)

# %% tags=["hide-input"]
figure = plots.plt.figure(figsize=(9, 4))
figure.suptitle("Layer norm puts every token on one circle", x=0.01, ha="left", size="medium")
space = figure.add_subplot(1, 2, 1, projection="3d")
space.set_title("1. onto the plane: subtract the mean", size="small")
space.plot_trisurf(*corners.T.tolist(), color=plots.COLOURS[4], alpha=0.25, linewidth=0)
space.plot(*circle.T.tolist(), color=plots.COLOURS[4])
for start, end in zip(points, flat):
    space.plot(*torch.stack([start, end]).T.tolist(), color="0.6", linewidth=1)
space.plot(*points.T.tolist(), "o", color="0.4", markersize=4)
space.plot(*flat.T.tolist(), "o", color=plots.COLOURS[0], markersize=4)
space.view_init(elev=10, azim=0)
space.set(xticks=[], yticks=[], zticks=[])
for name, label in zip("xyz", ("$x_1$", "$x_2$", "$x_3$")):
    getattr(space, f"{name}axis").set_rotate_label(False)
    getattr(space, f"set_{name}label")(label, labelpad=-12, rotation=0)
space.set_box_aspect((1, 1, 1), zoom=1.25)
plane = figure.add_subplot(1, 2, 2)
plane.set_title(
    r"2. onto the circle of radius $\sqrt{3}$: divide by $\sigma$",
    size="small",
)
plane.plot(*(circle @ side.T).T.tolist(), color=plots.COLOURS[4])
for start, end in zip(flat @ side.T, ends @ side.T):
    style = {"arrowstyle": "-|>", "color": "0.6", "shrinkA": 0, "shrinkB": 0}
    plane.annotate("", end.tolist(), start.tolist(), arrowprops=style)
plane.plot(*(flat @ side.T).T.tolist(), "o", color=plots.COLOURS[0], markersize=4)
plane.plot(*(ends @ side.T).T.tolist(), "o", color=plots.COLOURS[1], markersize=5)
grey, blue, orange = "0.4", *plots.COLOURS[:2]
space.text(*points[6].tolist(), "token  ", color=grey, size="small", ha="right")
space.text(*flat[6].tolist(), "centred  ", color=blue, size="small", ha="right")
for x, text, colour, align in (
    (flat, "centred  ", blue, "right"),
    (ends, "  normed", orange, "left"),
):
    plane.text(*(x @ side.T)[1].tolist(), text, color=colour, size="small", ha=align)
plane.set(aspect=1, xticks=[], yticks=[], xlabel="the plane, seen from above")
plane.spines[:].set_visible(False)
plots.show(
    figure,
    "Nine tokens of three numbers. Left, in space: each is projected onto the plane of vectors "
    "whose numbers sum to 0. Right, in that plane: each moves outwards or inwards along its own "
    "ray until it is on the circle of radius root 3. All nine end on the circle.",
)

# %% [markdown]
# So a layer that reads from a norm sees the direction of the *centred* token, never its size or its mean. A token $a x + b\mathbf{1}$, with $a > 0$, gets the same $\hat x$ as $x$, up to $\epsilon$. Now build it, and watch where $\epsilon$ goes.

# %%
# exercise: add_norm/layer_norm

# %%
check("add_norm/layer_norm", layer_norm)

# %%
layer_norm = mine("add_norm/layer_norm")
print(layer_norm(torch.tensor([2.0, 2, 6, 6]), torch.ones(4), torch.zeros(4)))
x = torch.randn(8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
plain = torch.ones(8).double(), torch.zeros(8).double()
assert torch.allclose(layer_norm(x, *plain), layer_norm(1000 * x + 7, *plain), atol=1e-4)

# %% [markdown]
# ### Four printed formulas (optional)
#
# > **Where the lectures disagree (D02, D03).** The text of L1, L2 and L4 announces "unit mean". Their $\mu$ is a plain sum in L1 and L4, and is divided by $d$ in L2 and L3. What they divide by is $\sqrt\sigma + \epsilon$ (L1, L2), $\sqrt{\sigma + \epsilon}$ (L4) or $\sigma$ (L3). But $\sigma$ is the standard deviation already, so three of them take the root twice. Here are all four beside torch's.

# %%
printed = {
    "L1: plain sum, √σ + ε": ("sum", lambda sigma: sigma.sqrt() + 1e-5),
    "L2: √σ + ε": ("mean", lambda sigma: sigma.sqrt() + 1e-5),
    "L3: σ": ("mean", lambda sigma: sigma),
    "L4: plain sum, √(σ + ε)": ("sum", lambda sigma: (sigma + 1e-5).sqrt()),
}


def as_printed(x, name):
    average, divide = printed[name]
    centred = x - reduce(x, "token d -> token 1", average)
    return centred / divide(reduce(centred**2, "token d -> token 1", "mean").sqrt())


# %% [markdown]
# **Take a hundred tokens of four numbers, drawn with a standard deviation of 1, then the same tokens multiplied by a scale $s$. Which of the four formulas agrees with torch to a thousandth, and from which scale on?**

# %%
guess = None  # for example {"L2": "at 1", "L4": "everywhere"}

# %%
generator = torch.Generator().manual_seed(0)
x = torch.randn(100, 4, generator=generator, dtype=torch.float64)
scales = torch.logspace(-5, 4, 60, dtype=torch.float64)


def distance(normed, x):
    """Return how far a normed x is from torch's, as a share of its L2 norm."""
    wanted = F.layer_norm(x, x.shape[-1:])
    return ((normed - wanted).norm() / wanted.norm()).item()


far = {name: [distance(as_printed(s * x, name), s * x) for s in scales] for name in printed}
agrees = {name: [s for s, x in zip(scales.tolist(), far[name]) if x < 1e-3] for name in printed}
reveal(guess, {name: f"from {min(at):.2g}" if at else "nowhere" for name, at in agrees.items()})

# %% tags=["hide-input"]
title = "Only L3's printed formula finds torch's norm, and not for tiny tokens"
figure, ax = plots.axes(title, "scale $s$ of the tokens", "relative distance")
for line, style, colour in zip(far.values(), ("-", "-", "-", "--"), plots.COLOURS):
    ax.loglog(scales, line, style, color=colour)
labels = ((2e-1, 6e1, 0, "L1 and, dashed, L4"), (3e2, 5e-1, 1, "L2"), (2e1, 1e-6, 2, "L3"))
for x_place, y_place, colour, name in labels:
    ax.text(x_place, y_place, name, color=plots.COLOURS[colour])
ax.axvline(1e-5**0.5, color="0.6", linewidth=1)
ax.text(4e-3, 3e-9, r"$\sqrt{\epsilon}$", color="0.4")
plots.show(
    figure,
    "Distance of four printed formulas from torch's layer norm, against the scale of the token, "
    "both logarithmic. L3 falls from far off below a scale of 0.003 to 1e-12 at 10,000. L1 and "
    "L4 are far off everywhere; L2 agrees nowhere, and comes nearest at a scale of 1.",
)

# %%
large, small = scales > 0.1, scales < 1e-3
for name, line in far.items():
    line = torch.tensor(line)
    off = f"{line[large].max():.0e} (s > 0.1), {line[small].max():.0e} (s < 0.001)"
    mean = as_printed(x, name).mean(-1).abs().mean()
    print(f"{name:25} off by up to {off}; mean of a token {mean:.2f}")
    assert (line[large].max() < 1e-2) == name.startswith("L3") and line[small].max() > 0.5
plain = torch.ones(4), torch.zeros(4)
assert max(distance(layer_norm(s * x, *plain), s * x) for s in scales) < 1e-6
assert layer_norm(x, *plain).mean(-1).abs().max() < 1e-6

# %% [markdown]
# L3 leaves $\epsilon$ out. That is right for tokens of an ordinary size, wrong for tiny ones, and 0 / 0 for a token of equal numbers. $\sqrt\sigma$ is right only for a token whose own $\sigma$ is 1. Ours are drawn from a distribution with $\sigma = 1$, but each token has its own $\sigma$. A plain sum is $d$ times the mean, so the result is not centred, as the last column shows. And "unit mean" holds for none of the four: in L2 and L3, as in torch, the mean is *zero*.

# %% [markdown]
# Does it depend on $d$, on how many numbers a token has?

# %%
for d in (2, 4, 16, 64, 512):
    x = torch.randn(100, d, generator=generator, dtype=torch.float64)
    off = {name[:2]: distance(as_printed(x, name), x) for name in printed}
    print(f"d = {d:3}:", ", ".join(f"{name} {value:.1g}" for name, value in off.items()))
    assert off["L3"] < (1e-3 if d > 2 else 0.1) and off["L2"] < 0.5 < min(off["L1"], off["L4"])

# %% [markdown]
# With $d = 2$, some of the hundred tokens have two nearly equal numbers. For them $\epsilon$ matters, and L3, which leaves it out, is off by 0.04. The larger $d$, the closer L2 comes: $\sigma$ of a token of many numbers is nearly 1, where its root is the same. L1 and L4 get worse.

# %% [markdown]
# ## What a norm does to gradients
#
# Mean and variance depend on $x$, so the gradient flows through them too. Take $\epsilon = 0$. From $\partial \mu / \partial x_j = 1/d$ and $\partial \sigma / \partial x_j = \hat x_j / d$, the quotient rule gives
#
# $$\frac{\partial \hat x_i}{\partial x_j} = \frac{\delta_{ij} - 1/d}{\sigma} - \frac{x_i - \mu}{\sigma^2}\,\frac{\hat x_j}{d} \qquad\Longrightarrow\qquad \underset{d \times d}{\frac{\partial \hat x}{\partial x}} = \frac1\sigma \left( I - \frac{\mathbf{1}\mathbf{1}^T}{d} - \frac{\hat x \hat x^T}{d} \right)$$

# %%
needs()
generator = torch.Generator().manual_seed(0)
x = torch.randn(16, generator=generator, dtype=torch.float64)
gain, bias = torch.ones(16).double(), torch.zeros(16).double()
jacobian = torch.autograd.functional.jacobian(lambda x: layer_norm(x, gain, bias, 0.0), x)
normed, deviation = layer_norm(x, gain, bias, 0.0), x.std(correction=0)
ones = torch.ones(16).double()
formula = torch.eye(16) - torch.outer(ones, ones) / 16 - torch.outer(normed, normed) / 16
assert torch.allclose(jacobian, formula / deviation)
print("rank of the Jacobian:", torch.linalg.matrix_rank(jacobian).item(), "of 16")

# %% [markdown]
# The bracket is a projection. It takes two directions out of every gradient: $\mathbf{1}$ (all numbers up), which the norm would undo, and $\hat x$ (a longer vector), which it would undo as well. Xu et al. 2019 report that these derivatives of mean and variance, which *re-center* and *re-scale* the gradient, matter more than the normalization of the forward pass (quoted). See them at work on 5 tokens (the first is printed):

# %%
x = torch.randn(5, 64, generator=generator, dtype=torch.float64, requires_grad=True)
above = torch.randn(5, 64, generator=generator, dtype=torch.float64) + 3
normed = layer_norm(x, torch.ones(64), torch.zeros(64))
(below,) = torch.autograd.grad(normed, x, above)
for name, gradient in (("above", above), ("below", below)):
    along = (gradient * normed).sum(-1)
    print(f"{name} the norm: sum {gradient[0].sum():7.2f}, along x̂ {along[0]:7.4f}")
assert below.sum(-1).abs().max() < 1e-9 and along.abs().max() < 1e-2

# %% [markdown]
# And the factor $1/\sigma$? Let a layer below the norm write $x = hW$. **Make $W$ a hundred times as large. By which factor does the gradient at $h$ change, without the norm and with it?**

# %%
guess = None  # two factors: (without the norm, with it)

# %%
h, w = torch.randn(5, 64, generator=generator), torch.randn(64, 64, generator=generator)


def gradient_below(norm, scale):
    inputs = h.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(norm(inputs @ (scale * w)), inputs, above.float())
    return gradient.norm().item()


norms = (lambda x: x, lambda x: layer_norm(x, torch.ones(64), torch.zeros(64)))
factors = [gradient_below(norm, 100) / gradient_below(norm, 1) for norm in norms]
reveal(guess, tuple(round(factor, 2) for factor in factors))
assert abs(factors[0] - 100) < 0.1 and abs(factors[1] - 1) < 0.01

# %% [markdown]
# $W$ multiplies the gradient by 100, and $1/\sigma$ divides it by 100. If its output goes straight into a norm, a layer passes on the same gradient whether $W$ is large or small. In the stack *norm* that holds for the last matrix of every layer but the top one, and helps to keep the gradient level. In *residual and norm* it is the sum that the next norm reads: as the sum grows, $1/\sigma$ makes each layer's $J_l$ smaller.

# %% [markdown]
# ## RMSNorm
#
# Llama and many models since do not subtract the mean, and only divide by the root mean square (Zhang & Sennrich 2019). That is one average less to compute, and one parameter vector less. In the picture above, it goes straight to the sphere and skips the plane:
#
# $$\mathrm{RMSNorm}(x) = \gamma \odot \frac{x}{r} \qquad r = \sqrt{\tfrac1d \textstyle\sum_c x_c^2 + \epsilon} \qquad \frac{\partial (x/r)}{\partial x} = \frac1r\left(I - \frac{1}{d}\,\frac{x}{r}\frac{x^T}{r}\right)$$

# %%
# exercise: add_norm/rms_norm

# %%
check("add_norm/rms_norm", rms_norm)

# %%
rms_norm = mine("add_norm/rms_norm")

# %% [markdown]
# RMSNorm drops the centring and the bias. On a token whose mean is 0 already, the two are the same; and the Jacobian has lost its second term.

# %%
x = torch.randn(5, 64, generator=generator) + 2
gain, none = torch.randn(64, generator=generator), torch.zeros(64)
centred = x - reduce(x, "token d -> token 1", "mean")
assert torch.allclose(layer_norm(x, gain, none), rms_norm(centred, gain), atol=1e-5)
assert not torch.allclose(layer_norm(x, gain, none), rms_norm(x, gain), atol=0.1)

# %%
one, ones = x[0].double(), torch.ones(64).double()
size = one.square().mean().sqrt()
jacobian = torch.autograd.functional.jacobian(lambda x: rms_norm(x, ones, 0.0), one)
assert torch.allclose(jacobian, (torch.eye(64) - torch.outer(one, one) / size**2 / 64) / size)
l2 = rms_norm(x[0], torch.ones(64)).norm()
print(f"the Jacobian is the one of the formula; L2 norm of the result: {l2:.2f}")

# %% [markdown]
# ## Why not batch norm? (optional)
#
# Networks for images used a norm before Transformers did: **batch normalization** (Ioffe & Szegedy 2015). The formula is the same. The difference is what the mean is taken over:

# %% tags=["hide-input"]
diagram = drawings.Diagram()
lengths = (4, 2, 3)
for x, name, role in ((0, "layer norm", "norm"), (6.6, "batch norm", "query")):
    for sentence, length in enumerate(lengths):
        at = (x + 0.9 * sentence, -1.9 * sentence)
        left, top = at[0] - 0.8, at[1] + 0.64
        diagram.matrix("", (4, 5), at, "plain", cell=0.32)
        for row in range(4):
            if row >= length:
                diagram.text("pad", (left - 0.3, top - 0.32 * (row + 0.5)), size=7, colour="0.5")
        if name == "layer norm" and sentence == 0:
            diagram.matrix("", (1, 5), (at[0], top - 0.48), role, cell=0.32)
        if name == "batch norm":
            diagram.matrix("", (length, 1), (left + 0.48, top - 0.16 * length), role, cell=0.32)
    diagram.text(name, (x, 1.6))
    diagram.text("$d$", (x, 0.95), size=9)
    diagram.text("$n$", (x - 1.1, 0.3), size=9, align="right")
diagram.text("one mean and variance\nfor each token", (2.0, 0.2), size=9, align="left")
diagram.text("one mean and variance\nfor each column", (8.6, 0.2), size=9, align="left")
diagram.show(
    "Three sentences of 4, 2 and 3 tokens, each a table of n rows and d columns, padded to 4 rows. "
    "Layer norm averages over one row of one sentence: the numbers of one token. Batch norm "
    "averages over one column through all three sentences, without the padding."
)

# %% [markdown]
# $$\mu_c = \frac{1}{|R|}\sum_{(b,i) \in R} x_{bic} \qquad \sigma_c^2 = \frac{1}{|R|}\sum_{(b,i) \in R} (x_{bic} - \mu_c)^2 \qquad R = \{\text{real tokens of the batch}\}$$
#
# *Optional:* build it, with a mask that leaves the padding out. The next cells use the library's if you do not.

# %%
# exercise: add_norm/batch_norm

# %%
check("add_norm/batch_norm", batch_norm)

# %%
batch_norm = mine("add_norm/batch_norm")

# %% [markdown]
# What does this mean for a sentence? Take real lines of Shakespeare, of unequal lengths, in the word vectors of lesson 03. *Ring the alarum bell* comes first in each batch, with seven other lines.

# %%
needs("shakespeare")

# %%
from course_lib.masks import padding_mask

words = word_vectors.from_shakespeare()
play = map(shakespeare.words, shakespeare.complete_works().splitlines())
known = set(words.vocab)
lines = [" ".join(line) for line in play if line and known.issuperset(line)]


def batch_of(chosen, n=20):
    """Return the vectors of some lines, zeros after the last word of each, and their mask."""
    lengths = torch.tensor([len(line.split()) for line in chosen])
    x = torch.zeros(len(chosen), n, 64)
    for row, line in zip(x, chosen):
        row[: len(line.split())] = words(line)
    return x, padding_mask(lengths, n).squeeze(-2)


# %%
def draw_lines(seed, size=7):
    generator = torch.Generator().manual_seed(seed)
    return [lines[i] for i in torch.randint(len(lines), (size,), generator=generator)]


ones, zeros, line = torch.ones(64), torch.zeros(64), "ring the alarum bell"
batches = [batch_of([line, *draw_lines(seed)]) for seed in range(8)]

# %% [markdown]
# **The same line in two batches: by how much does the normed vector of *ring* change, as a share of its L2 norm, under layer norm and under batch norm?**

# %%
guess = None  # two shares: (layer norm, batch norm)

# %%
by_token = torch.stack([layer_norm(x, ones, zeros)[0, 0] for x, _ in batches])
by_batch = torch.stack([batch_norm(x, ones, zeros, mask)[0, 0] for x, mask in batches])
changes = [((x[1:] - x[0]).norm(dim=-1) / x[0].norm()).mean() for x in (by_token, by_batch)]
reveal(guess, tuple(round(float(change), 2) for change in changes))
assert changes[0] < 1e-5 and changes[1] > 0.2

# %% tags=["hide-input"]
names = ["layer norm", "batch norm"]
title = "Under batch norm, a token depends on the other lines of its batch"
figure, panels = plots.panels(title, names, size=(8, 4))
limits = (float(by_batch.min()) - 0.2, float(by_batch.max()) + 0.2)
for ax, x in zip(panels, (by_token, by_batch)):
    style = {"markersize": 3, "alpha": 0.5, "rasterized": True}
    ax.plot(x[0].expand(7, -1).flatten(), x[1:].flatten(), ".", **style)
    ax.axline((0, 0), slope=1, color="0.6", linewidth=1)
    ax.set(xlabel="its 64 numbers in the first batch", aspect=1, xlim=limits, ylim=limits)
panels[0].set_ylabel("the same numbers in 7 other batches")
plots.show(
    figure,
    "The 64 numbers of the token ring in seven other batches, against its numbers in the first "
    "batch. Under layer norm all points are on the diagonal. Under batch norm they form a cloud "
    "around it, off by up to 1.",
)

# %% [markdown]
# In a causal model batch norm also leaks: the mean of a batch contains later tokens. Replace *bell*, the last word of the line, and see whether *ring*, the first, notices:

# %%
x, mask = batches[0]
later = x.clone()
later[0, 3] = words("king")[0]
pairs = {
    "layer norm": [layer_norm(tokens, ones, zeros)[0, 0] for tokens in (x, later)],
    "batch norm": [batch_norm(tokens, ones, zeros, mask)[0, 0] for tokens in (x, later)],
}
leaks = {name: ((b - a).norm() / a.norm()).item() for name, (a, b) in pairs.items()}
print({name: f"{leak:.3f}" for name, leak in leaks.items()})
assert leaks["layer norm"] == 0 < 0.001 < leaks["batch norm"]

# %% [markdown]
# Under layer norm *ring* is unchanged. Under batch norm it changes: a later token leaks into an earlier one.

# %% [markdown]
# ### Batch norm at inference (optional)
#
# At **inference** there may be no other lines. So batch norm keeps **running averages** of mean and variance while it trains, and uses those afterwards. `training` below is what `model.train()` and `model.eval()` switch:

# %%
needs()

# %%
# given: instruments.deep_stack.RunningBatchNorm

# %% [markdown]
# So a model with batch norm is *two* functions: one in training, another at inference. For text, Shen et al. 2020 find that the statistics across a batch "exhibit large fluctuations throughout training", and so the running averages differ from what the weights were trained with (quoted). Let us measure.

# %% [markdown]
# We trained small encoders (`make results LESSON=07`, three seeds): two post-norm blocks, 500 steps, 16 lines of 16 characters in each batch. Some characters are hidden, and the model fills them in, as BERT does. Afterwards it is used on 1,024 held-out lines, either with the statistics of each batch of 16 lines, as in training, or with the running averages.
#
# **Which of the two has the lower loss?**

# %%
guess = None  # "the batch's own" or "running averages"

# %% tags=["nbval-check-output"]
kept = results.load("batch_norm")["figures"]
at = kept["sizes"].index(kept["alone"])
runs = kept["runs"]["batch norm"][at]
used = {f"own, batch {n:2}": [run["batch"][str(n)] for run in runs] for n in kept["sizes"]}
used["running averages"] = [run["running"] for run in runs]
used["layer norm"] = [run["running"] for run in kept["runs"]["layer norm"][at]]
for name, losses in used.items():
    print(f"{name:16}", *(f"{value:.2f}" for value in losses))
pairs = list(zip(used["running averages"], used["own, batch 16"]))
assert all(running < own < running + 0.03 for running, own in pairs)
reveal(guess, "running averages" if pairs[0][0] < pairs[0][1] else "the batch's own")

# %% tags=["hide-input"]
title = "Batch norm needs its running averages when it reads one line"
lines_used, loss_axis = "lines in a batch when the model is used", "loss on hidden characters, nats"
figure, ax = plots.axes(title, lines_used, loss_axis, size=(6.8, 3.6))
for run in runs:
    ax.plot(kept["sizes"], [run["batch"][str(n)] for n in kept["sizes"]], "o-", linewidth=1)
    ax.lines[-1].set(color=plots.COLOURS[0], markersize=3)
ends = {"running averages": (plots.COLOURS[1], 3.09), "layer norm": (plots.COLOURS[4], 3.235)}
for name, (colour, height) in ends.items():
    ax.axhspan(min(used[name]), max(used[name]), color=colour, alpha=0.4, linewidth=0)
    ax.text(64, height, name, color=colour, ha="right", va="center")
frequency = results.load("depth")["figures"]["trivial"]
ax.axhline(frequency, color="0.4", linestyle=":")
ax.text(
    64, frequency - 0.008, "frequency baseline", color="0.4", size="small", ha="right", va="top"
)
ax.text(2.2, 3.29, "the batch's own statistics", color=plots.COLOURS[0])
ax.set(xscale="log", xticks=kept["sizes"], xticklabels=kept["sizes"], ylim=(3.05, 3.42))
ax.minorticks_off()
plots.show(
    figure,
    "Loss on hidden characters of encoders trained with 16 lines a batch. With the batch's own "
    "statistics it falls from 3.29 to 3.36 for one line, about the frequency baseline, to 3.12 to "
    "3.15 for 64 lines. "
    "With running averages it is 3.11 to 3.14 for any number of lines; layer norm 3.20 to 3.22.",
)

# %% [markdown]
# Alone, a line is normalized by its own 16 characters, and the loss is about the frequency baseline. The running averages repair that, and here they are even a trifle better than batches of 16. At equal steps, batch norm also beats layer norm in this small encoder. So our experiment does *not* show the gap between training and use that Shen et al. describe. It appears only when each batch in training is a single line:

# %% tags=["nbval-check-output"]
for size, runs in zip(kept["sizes"], kept["runs"]["batch norm"]):
    gaps = [run["running"] - run["batch"][str(size)] for run in runs]
    print(f"trained with batches of {size:2}: in use higher by", *(f"{gap:5.2f}" for gap in gaps))
    assert (min(gaps) > 0.02) == (size == 1)

# %% [markdown]
# Theirs are translation models, with more layers and with sentences of all lengths; ours reads one author in lines of one length. What remains is a matter of principle: a token's result depends on other sentences, padding must be kept out, and training and inference compute different functions. Layer norm has none of this.

# %% [markdown]
# Small batches have unreliable statistics. Measure it on our lines: how far is a batch's mean from the mean of 3,000 lines, in units of the column's standard deviation?

# %%
needs("shakespeare")


# %%
def real_tokens(seed, size):
    x, mask = batch_of(draw_lines(seed, size))
    return x[mask]


many, offs = real_tokens(0, 3000), {}
for size in (1, 4, 16, 64):
    means = torch.stack([real_tokens(seed, size).mean(0) for seed in range(30)])
    offs[size] = ((means - many.mean(0)) / many.std(0)).square().mean().sqrt().item()
    print(f"batches of {size:2}: the mean is off by {offs[size]:.2f} standard deviations")
assert offs[1] > offs[4] > offs[16] > offs[64]

# %% [markdown]
# Larger batches steady the statistics, and cost memory. There are two more traps. Forget the mask, and the zeros of the padding count as tokens. And a batch of one token is compared with itself alone: batch norm answers 0, whatever the token was.

# %%
one, mask = batch_of(["horse"], n=1)
alone = batch_norm(one, ones, zeros, mask)
print("batch norm of one token:", alone.unique().tolist())
assert not alone.any() and layer_norm(one, ones, zeros).abs().min() > 0
chosen = [line, *draw_lines(0)]
short, long = batch_of(chosen, 20), batch_of(chosen, 60)
forgotten = [batch_norm(x, ones, zeros)[0, 0] for x, _ in (short, long)]
masked = [batch_norm(x, ones, zeros, mask)[0, 0] for x, mask in (short, long)]
for name, (one, other) in {"mask forgotten": forgotten, "with the mask": masked}.items():
    print(f"40 more rows of padding, {name}: {(other - one).norm() / one.norm():.2f}")
assert torch.allclose(*masked, atol=1e-5)

# %% [markdown]
# Layer norm knows nothing of lines, batches or padding. It does the same in training, in use, and for the first token of a text.

# %% [markdown]
# ## The block of 2017: post-norm
#
# Where do the two parts go? The paper adds first and then normalizes, after attention and after the feed-forward network. This order is called **post-norm**. (While it trains, the paper also puts dropout on each layer's output before the sum, section 5.4. We leave that out.) L3 writes it step by step:
#
# $$\begin{aligned} T^1 &= \mathrm{Attention}(X) & T^2 &= X + T^1 & T^3 &= \mathrm{LN}(T^2) \\ T^4 &= \mathrm{FFN}(T^3) & T^5 &= T^3 + T^4 & H &= \mathrm{LN}(T^5) \end{aligned}$$

# %% [markdown]
# Many later models, GPT-2 and Llama among them, use **pre-norm**: a layer reads a normalized copy, and the sum itself is never normalized, $x + F(\mathrm{LN}(x))$. Follow the thick line in both:

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
# Under post-norm each residual path ends in a norm, so no path from bottom to top is free of norms. Under pre-norm the thick line runs through plus signs alone. The stack called *residual and norm* above was pre-norm.
#
# Send a line of Shakespeare through the six steps of post-norm. As in section 3.4 of the paper, the vectors are multiplied by $\sqrt{d_{model}}$ first. **In which of the seven tables $X$, $T^1$ … $T^5$, $H$ do all four tokens have the same L2 norm?**

# %%
guess = None  # a list such as ["X", "T5"]

# %%
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention

with training.seeded(0):
    attention = AsSelfAttention(MultiHeadAttention(64, heads=4))
    feed_forward = FeedForward(64, 256)
words, line = word_vectors.from_shakespeare(), "ring the alarum bell"
x = 64**0.5 * words(line)
ones, zeros = torch.ones(64), torch.zeros(64)
steps = {"X": x, "T1": attention(x)}
steps["T2"] = x + steps["T1"]
steps["T3"] = layer_norm(steps["T2"], ones, zeros)
steps["T4"] = feed_forward(steps["T3"])
steps["T5"] = steps["T3"] + steps["T4"]
steps["H"] = layer_norm(steps["T5"], ones, zeros)

# %%
print("L2 norm  ", *(f"{word:>8}" for word in line.split()))
for name, step in steps.items():
    print(f"{name:9}", *(f"{l2:8.2f}" for l2 in step.norm(dim=-1).tolist()))
same = [name for name, step in steps.items() if step.norm(dim=-1).std() < 0.01]
reveal(guess, same)
assert same == ["T3", "H"]

# %% [markdown]
# With gain 1 and bias 0, a norm layer gives every token the L2 norm $\sqrt{64} = 8$: it is on a sphere. The same pattern comes twice, a layer, a sum, a norm, so it gets a class of its own that wraps any layer. `*args` hands the mask on to attention.

# %%
needs()
from collections.abc import Callable

# %%
# exercise: add_norm/post_norm

# %%
check("add_norm/post_norm", PostNorm)

# %%
PostNorm = mine("add_norm/post_norm")

# %%
needs("shakespeare")

# %%
first, second = PostNorm(attention, 64), PostNorm(feed_forward, 64)
assert torch.allclose(second(first(x)), steps["H"], atol=1e-5)
print("two PostNorms are the block of 2017")

# %% [markdown]
# ## The other order: pre-norm
#
# Now the class for the other drawing.

# %%
needs()

# %%
# exercise: add_norm/pre_norm

# %%
check("add_norm/pre_norm", PreNorm)

# %%
PreNorm = mine("add_norm/pre_norm")

# %% [markdown]
# Follow one token of four numbers through both. The layer is as simple as can be: it doubles the first number that it reads, and writes the result to the third column. Work out the first step of post-norm yourself: $x = (6, 2, 0, 0)$, the layer writes $(0, 0, 12, 0)$, and the sum $(6, 2, 12, 0)$ has mean 5 and variance 21. Then pre-norm: the layer reads $\mathrm{LN}(x) = (1.63, 0, -0.82, -0.82)$.


# %% tags=["nbval-check-output"]
w = torch.zeros(4, 4)
w[0, 2] = 2  # read the first number, write to the third


def shown(values):
    return " ".join(f"{value:6.2f}" for value in values.tolist())


for name, wrap in (("post", PostNorm), ("pre", PreNorm)):
    token, layer = torch.tensor([6.0, 2, 0, 0]), wrap(lambda x: x @ w, 4)
    for depth in range(4):
        print(f"{name:4} after {depth} layers: {shown(token)}   L2 norm {token.norm():5.2f}")
        token = layer(token).detach()

# %% [markdown]
# Post-norm shifts and divides the *whole* sum each time. The first number, 6, is 0.04 after three layers, and the token's L2 norm is always $\sqrt4 = 2$. Under pre-norm, 6 and 2 are untouched after three layers, and the third column is a sum of three contributions. They shrink, because the first number is a smaller and smaller part of what the layer reads.

# %% [markdown]
# ### The same in torch (optional)
#
# > **Where the lectures disagree (D13).** The lectures draw the paper's order: add, then norm. Some code that explains the paper is pre-norm, for example `SublayerConnection` in *The Annotated Transformer* (Rush 2018). torch offers both as `norm_first`. Copy our weights into its layer and compare:

# %%
needs("shakespeare")


# %%
@torch.no_grad()
def torchs(norm_first):
    layer = nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True, norm_first=norm_first)
    heads = attention.attention
    for kind in ("weight", "bias"):
        three = [getattr(part, kind) for part in (heads.w_q, heads.w_k, heads.w_v)]
        getattr(layer.self_attn, f"in_proj_{kind}").copy_(torch.cat(three))
        getattr(layer.self_attn.out_proj, kind).copy_(getattr(heads.w_o, kind))
    layer.linear1.weight.copy_(feed_forward.w_1.T)
    layer.linear2.weight.copy_(feed_forward.w_2.T)
    layer.linear1.bias.copy_(feed_forward.b_1)
    layer.linear2.bias.copy_(feed_forward.b_2)
    return layer(x[None])[0]


# %%
for norm_first, wrap in ((False, PostNorm), (True, PreNorm)):
    ours = wrap(feed_forward, 64)(wrap(attention, 64)(x))
    assert torch.allclose(ours, torchs(norm_first), atol=1e-5)
    print(f"norm_first={norm_first!s:5} is {wrap.__name__}")
assert not torch.allclose(torchs(True), torchs(False), atol=0.1)

# %% [markdown]
# ### How the stream grows
#
# Post-norm and pre-norm have the same parameters, and they are different functions. The difference grows with depth. **In a stack of 32 new blocks, how does the root mean square of the stream change from bottom to top, under each?**

# %%
guess = None  # for example {"post": "grows", "pre": "stays"}


# %%
post, pre = sizes(PostNorm), sizes(PreNorm)
reveal(guess, {"post": "stays at 1", "pre": f"grows to {pre[-1]:.1f}"})
assert (post[1:] - 1).abs().max() < 1e-3 and pre[-1] > 3

# %% tags=["hide-input"]
level = torch.arange(33)
root = (pre[0] ** 2 + level * (pre[-1] ** 2 - pre[0] ** 2) / 32).sqrt()
assert ((pre - root).abs() / root).max() < 0.15
title = "Post-norm resets the stream, pre-norm lets it grow like a square root"
figure, ax = plots.axes(title, "level: blocks below it", "root mean square of the stream")
ax.plot(level, root, color="0.6", linestyle="--", linewidth=1)
ax.plot(post, color=plots.COLOURS[0])
ax.plot(pre, color=plots.COLOURS[1])
ax.text(20, 1.15, "post-norm", color=plots.COLOURS[0])
ax.text(11, 3.0, "pre-norm", color=plots.COLOURS[1], ha="right")
ax.text(24, 2.9, r"dashed: $\sqrt{a + b\cdot\mathrm{level}}$", color="0.4", size="small")
ax.set(ylim=(0, None))
plots.show(
    figure,
    "Root mean square of the stream at 33 levels. Post-norm is flat at 1. Pre-norm rises from 1.2 "
    "to 4.6, close to the dashed curve root of a + b times the level, through its ends.",
)

# %% [markdown]
# Under pre-norm every layer reads a normed copy, so at first each should add about as much. If these contributions are independent, their *variances* add, which gives the dashed curve. So later layers add a smaller share of the stream. To limit the growth, GPT-2 multiplies the initial weights of its residual layers by one over the root of their number, $1/\sqrt{2N}$ for $N$ blocks (Radford et al. 2019, quoted).
#
# And the last output is not normalized at all. So pre-norm models put one more norm at the end, before the linear layer. Our `Stack` does so with `last_norm=True`.

# %% [markdown]
# ## Warm-up
#
# The paper trains with a learning rate that begins near 0 and rises for 4,000 steps (section 5.3). Why? Xiong et al. 2020 trace the need to post-norm: at initialization, the gradients of the parameters near its output are large, so a large step there does harm. That argument is about the size of the gradients, and Adam, with which we train, divides the size out. So what follows can agree with the argument, but cannot prove it. (Liu et al. 2020 name another cause: Adam's first estimates of that size are unreliable. Quoted.)

# %% [markdown]
# Measure the gradient of each block's second feed-forward matrix, before training. Xiong et al. put a norm after the last block of pre-norm; we look at it with and without.


# %%
def by_block(wrap, blocks, seed, **options):
    """Return the L2 norm of the gradient of each block's second feed-forward matrix."""
    model = new(wrap, blocks, seed, **options)
    loss(model, next(characters.batches(learning, 16, 32, seed))).backward()
    return torch.stack([layer.sublayer.w_2.grad.norm() for layer in model.feed_forward])


# %%
cases = {
    "post-norm": (PostNorm, {}),
    "pre-norm without a last norm": (PreNorm, {}),
    "pre-norm": (PreNorm, {"last_norm": True}),
}
starts = {
    (name, blocks): torch.stack([by_block(wrap, blocks, seed, **options) for seed in range(3)])
    for name, (wrap, options) in cases.items()
    for blocks in (8, 32)
}

# %% tags=["hide-input"]
title = "Given its last norm, pre-norm's gradients at the top are smaller than post-norm's"
figure, panels = plots.panels(title, ["8 blocks", "32 blocks"], size=(9, 3.6))
for ax, blocks in zip(panels, (8, 32)):
    for name, colour in zip(cases, plots.COLOURS):
        runs = starts[name, blocks]
        place = range(1, blocks + 1)
        ax.fill_between(place, runs.amin(0), runs.amax(0), color=colour, alpha=0.25, linewidth=0)
        ax.plot(place, runs.mean(0), color=colour)
        if blocks == 32:
            said = name.replace(" without", "\nwithout")
            ax.text(33, runs.mean(0)[-1], said, color=colour, size="small", va="center")
    ax.set(xlabel="block, counted from below", ylim=(0, 4))
panels[0].set_ylabel(r"L2 norm of the gradient of $W_2$")
plots.show(
    figure,
    "L2 norm of the gradient of W2 in each block before training, bands over three seeds. With 8 "
    "blocks: post-norm rises from 0.61 at the bottom to 0.86 at the top, pre-norm falls from 0.65 "
    "to 0.39. With 32: post-norm 0.19 to 0.79, pre-norm 0.43 to 0.20. Pre-norm without a last norm "
    "is above both: 3.34 to 1.79 with 32 blocks.",
)

# %% tags=["nbval-check-output"]
for (name, blocks), runs in starts.items():
    bottom, top = runs.mean(0)[[0, -1]].tolist()
    print(f"{name:29} {blocks:2} blocks: bottom {bottom:.2f}, top {top:.2f}")
post_8, post_32 = (starts["post-norm", blocks].mean(0)[-1] for blocks in (8, 32))
pre_8, pre_32 = (starts["pre-norm", blocks].mean(0)[-1] for blocks in (8, 32))
assert abs(post_8 / post_32 - 1) < 0.2 and abs(pre_8 / pre_32 - 2) < 0.4
assert post_32 > 3 * pre_32

# %% [markdown]
# This agrees with Xiong et al., whose theorem 1 bounds the last layer's gradient, for a simplified attention, by a term that falls like $1/\sqrt{N}$ in pre-norm and not at all in post-norm. With the last norm, our gradient at the top of pre-norm falls that way: four times the blocks, half the gradient. In post-norm it hardly falls with depth: 0.86 with 8 blocks, 0.79 with 32. *Without* the last norm, pre-norm's gradients are the largest of all, so that small part matters.

# %% [markdown]
# Does post-norm need its warm-up, then? `warm_up` is the share of the steps in which the learning rate rises. Eight blocks, 250 steps, and a bold rate of 0.01: post-norm and pre-norm (with its last norm), each with a warm-up over 30 % of the steps and without. **Which of the four fail?**

# %%
guess = None  # for example ["pre-norm without"]

# %% tags=["training"]
bold = {"steps": 250, "learning_rate": 0.01}
without = trained(new(PostNorm, 8, SEED), **bold, warm_up=0)

# %% tags=["training"]
risen = trained(new(PostNorm, 8, SEED), **bold, warm_up=0.3)
came = [round(held_out_loss(model), 2) for model in (without, risen)]
claim = "post-norm without a warm-up ends over 0.2 nats higher than with one"
training.expect(claim, came[0] > came[1] + 0.2, came, without, risen)

# %%
needs()
kept = results.load("warm_up")["figures"]
final = {
    f"{name}, warm-up {share:.0%}": [run["held out"] for run in runs]
    for name, by_warm_up in kept["runs"].items()
    for share, runs in zip(kept["warm_ups"], by_warm_up)
}
for name, losses in final.items():
    print(f"{name:23}", *(f"{value:.2f}" for value in losses))
reveal(guess, [name for name, losses in final.items() if min(losses) > kept["trivial"] - 0.1])
failed, *others = final.values()
assert min(failed) > kept["trivial"] - 0.1 and max(max(losses) for losses in others) < 3.0

# %% tags=["hide-input"]
title = "Eight blocks, a bold learning rate: only post-norm without warm-up fails"
figure, panels = plots.panels(title, list(kept["runs"]), size=(9, 3.6))
baseline = results.load("depth")["figures"]["trivial in training"]
for ax, by_warm_up in zip(panels, kept["runs"].values()):
    for runs, colour in zip(by_warm_up, plots.COLOURS):
        for run in runs:
            means = torch.tensor(run["losses"]).unfold(0, 20, 5).mean(-1)
            ax.plot([10 + 5 * i for i in range(len(means))], means, color=colour, linewidth=1)
    ax.axhline(baseline, color="0.4", linestyle=":")
    ax.set(xlabel="step", ylim=(2.2, 4.5))
panels[0].text(120, 3.47, "no warm-up", color=plots.COLOURS[0])
panels[0].text(165, 2.85, "warm-up 30%", color=plots.COLOURS[1])
panels[0].text(120, 3.2, "frequency baseline", color="0.4", size="small", va="top")
panels[1].text(12, 2.45, "no warm-up", color=plots.COLOURS[0])
panels[1].text(100, 2.85, "warm-up 30%", color=plots.COLOURS[1])
panels[0].set_ylabel("training loss, means of 20 steps")
plots.show(
    figure,
    "Training losses over 250 steps, three seeds. Post-norm: without warm-up the loss stays at the "
    "dotted line, 3.33, the frequency baseline of the training text; with it, it falls "
    "to about 2.5. Pre-norm falls to about 2.4 both ways.",
)

# %% [markdown]
# Post-norm with no warm-up stays at the frequency baseline for 250 steps (3.33 on the text we train on); with a warm-up it learns. Pre-norm learns both ways. That agrees with the gradients above, though it does not prove that they are the cause.

# %% [markdown]
# So is pre-norm better? Here, at eight blocks, 250 steps and one learning rate, it ends lower than post-norm with a warm-up. In general it is *easier to train*. Takase et al. 2023 report that post-norm "has consistently achieved better performance than Pre-LN in relatively shallow Transformers (e.g., those with six or fewer layers)", while with ten or more its training "is often unstable" (quoted). One possible reason: under pre-norm, late layers add a smaller share of the stream.

# %% [markdown]
# ## The residual stream
#
# Look at the pre-norm drawing once more. Nothing on the thick line is ever replaced, only added to. Elhage et al. 2021 call it the **residual stream**: one vector of $d_{model}$ numbers for each token, which all layers read from and write to. With $N$ blocks, so $2N$ layers, the top of the stream is a sum:
#
# $$x_{2N} = x_0 + \sum_{l=1}^{2N} F_l(\mathrm{LN}(x_{l-1}))$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
places = {"a": 0, "horse": 2, "my": 4}
for token, x in places.items():
    diagram.arrow((x, 0), (x, 6.1), role="stream", width=4)
    diagram.text(token, (x, -0.3))
attend = diagram.box("norm, attention", (8.4, 1.4), "query", size=(3.6, 0.8))
think = diagram.box("norm, feed-forward", (8.4, 4.1), "network", size=(3.6, 0.8))
for x, y in ((0, 1.1), (2, 1.4), (4, 1.7)):
    diagram.arrow((x, y), (6.6, y), role="query")
diagram.text("reads all tokens so far", (4.3, 0.65), size=9, align="left")
diagram.arrow(attend, (4.1, 2.7), "writes to one", via=[(8.4, 2.7)], role="query")
diagram.arrow((4, 4.1), think, "reads one", role="network")
diagram.arrow(think, (4.1, 5.3), "writes to the same one", via=[(8.4, 5.3)], role="network")
diagram.text("a stream for each token", (2, 6.45), size=9)
diagram.show(
    "Three vertical lines, the streams of the tokens a, horse and my. An attention layer reads the "
    "streams of all three and adds what it found to the stream of my. A feed-forward network reads "
    "the stream of my alone, and adds its answer to the same stream."
)

# %% [markdown]
# Layers read from some directions of the stream and write to others, so different layers can use different **subspaces**. Only attention heads carry anything from one token's stream to another's; a feed-forward network stays on one.
#
# To see how layers talk to each other through the stream, we build two heads by hand, without norms. Together they continue a pattern: having read "my kingdom … my", they say *kingdom*. Elhage et al. 2021 found this circuit in trained Transformers of two layers and called its second part the **induction head**; Olsson et al. 2022 study it in larger ones (quoted).

# %% tags=["hide-input"]
diagram, lanes = drawings.Diagram(), {}
parts = (("token", 2.4), ("position", 3.2), ("token before", 2.4), ("prediction", 2.4))
left = 0.0
for name, width in parts:
    lanes[name] = diagram.box(name, (left + width / 2, 0), "stream", size=(width, 0.8))
    left += width + 0.5
one = diagram.box("head 1: the token before", (3.6, 3.0), "query", size=(5.2, 0.8))
two = diagram.box("head 2: induction", (8.4, -3.0), "query", size=(4.4, 0.8))
diagram.arrow((1.2, 0.4), (1.2, 2.6), "value", role="value")
diagram.arrow((3.9, 0.4), (3.9, 2.6), "query", role="query")
diagram.arrow((5.2, 0.4), (5.2, 2.6), "key", role="key")
diagram.arrow(one, (7.8, 0.4), "output", via=[(7.8, 3.0)])
diagram.arrow((0.9, -0.4), (6.2, -3.2), "query", via=[(0.9, -3.2)], role="query")
diagram.arrow(
    (1.8, -0.4), (6.2, -2.8), "value", via=[(1.8, -2.0), (5.6, -2.0), (5.6, -2.8)], role="value"
)
diagram.arrow((7.8, -0.4), (7.8, -2.6), "key", role="key")
diagram.arrow((9.8, -2.6), (9.8, -0.4), "output")
diagram.show(
    "The stream of a token as four parts: token, position, token before, prediction. Head 1 takes "
    "its query and key from the position and its value from the token, and writes to the part "
    "token before. Head 2 takes its query and value from the token and its key from token before, "
    "and writes to prediction."
)

# %%
needs()

# %%
from course_lib.masks import causal_mask
from course_lib.positions import shift_matrix, sinusoidal
from course_lib.self_attention import scaled_dot_product_attention

line = "· a horse a horse my kingdom for a".split()
vocab = sorted(set(line))
word, place, before, prediction = slice(0, 6), slice(6, 22), slice(22, 28), slice(28, 34)
stream = torch.zeros(len(line), 34)
stream[:, word] = F.one_hot(torch.tensor([vocab.index(token) for token in line])).float()
stream[:, place] = sinusoidal(len(line), 16)

# %% [markdown]
# The text begins with a start token, "·". The first 6 numbers of the stream are the token, one-hot, the next 16 its position; the rest is empty.
#
# **Head 1** is a **previous-token head**. Query and key read the position. Lesson 04's shift matrix $M$ turns a position into the one before, $p_{i-1} = p_i M$, so the query looks for exactly that key. The value is the token, and the output goes to the part *token before*, numbers 22 to 27. The factor 80 makes the choice sharp.


# %%
def head(x, w_q, w_k, w_v, w_o):
    mask = causal_mask(len(x))
    return scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask) @ w_o


def reading(part, matrix):
    """Return a matrix that reads one part of the stream."""
    w = torch.zeros(34, matrix.shape[-1])
    w[part] = matrix
    return w


# %%
one = torch.eye(6)
previous = (
    reading(place, 80 * shift_matrix(-1, 16)),
    reading(place, torch.eye(16)),
    reading(word, one),
    reading(before, one).T,
)
after_1 = stream + head(stream, *previous)

# %% tags=["nbval-check-output"]
found = [vocab[i] for i in after_1[:, before].argmax(-1)]
for own, earlier in zip(line, found):
    print(f"{own:8} was preceded by {earlier}")
assert found[1:] == line[:-1] and torch.equal(after_1[:, :22], stream[:, :22])

# %% [markdown]
# The start token has nothing before it, and attention must look somewhere, so it finds itself. Everything else is right, and what was in the stream before is still there: each token now says "I am *horse*" and "before me was *a*".
#
# **Head 2**, the induction head, asks: *which tokens followed an earlier copy of me?* Its query reads the token, its key reads what head 1 wrote, and its value is the token that it finds there. **The line ends with its third *a*. Which token will head 2 predict?**

# %%
guess = None  # a token of the line

# %%
induction = (
    reading(word, 40 * one),
    reading(before, one),
    reading(word, one),
    reading(prediction, one).T,
)
after_2 = after_1 + head(after_1, *induction)


# %%
def likeliest(stream):
    shares, order = stream[-1, prediction].sort(descending=True)
    return {vocab[i]: round(share.item(), 2) for share, i in zip(shares, order) if share > 0.05}


reveal(guess, next(iter(likeliest(after_2))))
print("my kingdom for a", likeliest(after_2))
assert likeliest(after_2) == {"horse": 1.0}

# %% tags=["hide-input"]
needs()
from course_lib.attention import dot_scores, softmax

title = "Head 1 looks one token back; head 2 looks at what followed the same token"
panels_of = {"head 1": (stream, previous, 16), "head 2: induction": (after_1, induction, 6)}
figure, panels = plots.panels(title, list(panels_of), size=(9.5, 4))
visible = causal_mask(len(line))
for ax, (x, (w_q, w_k, *_), d_k) in zip(panels, panels_of.values()):
    weights = softmax(dot_scores(x @ w_q, x @ w_k) / d_k**0.5, visible)
    image = ax.imshow(weights.masked_fill(~visible, torch.nan), vmin=0, vmax=1, aspect="auto")
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.7", hatch="///")
    ax.set_xticks(range(9), line, rotation=45)
    ax.set_yticks(range(9), line)
    ax.set(xlabel="key")
panels[0].set_ylabel("query")
figure.colorbar(image, ax=panels, label="weight")
assert weights[8, [2, 4]].min() > 0.49
plots.show(
    figure,
    "Attention weights of both heads over the line. Head 1: nearly all weight just left of the "
    "diagonal. Head 2: the last a gives one half each to the two tokens horse that followed an a; "
    "the second horse gives its weight to the a that followed the first horse; tokens that occur "
    "for the first time spread their weight evenly. Cells above the diagonal are masked.",
)

# %% [markdown]
# It finishes the king's line: "my kingdom for a horse". Nobody stored the line in the parameters; the two heads copy from the text itself. Head 2 works only because head 1 has written into the stream before it, so an induction head needs two layers. Tokens that have not occurred before find no match, and spread their weight evenly.
#
# Add *horse* to the line and let it go on. **Which token comes next?**

# %%
guess = None  # a token of the line

# %%
longer = torch.cat([stream, torch.zeros(1, 34)])
longer[-1, word] = one[vocab.index("horse")]
longer[:, place] = sinusoidal(len(longer), 16)
longer = longer + head(longer, *previous)
longer = longer + head(longer, *induction)
reveal(guess, " or ".join(sorted(likeliest(longer))))
print("my kingdom for a horse", likeliest(longer))
assert sorted(likeliest(longer).values()) == [0.5, 0.5]

# %% [markdown]
# *Horse* was followed once by *a* and once by *my*, and the head reports both.

# %% [markdown]
# ## Delete by adding (optional)
#
# The stream has few dimensions, and many layers want to use them. But a layer can only add. How does a layer delete what another has written in the direction $u$? It reads how much of the stream is along $u$, and adds the negative of that:
#
# $$x' = x - (x \cdot u)\, u \qquad \lVert u \rVert = 1$$
#
# We leave out the norm here. Behind one, a layer reads $x \cdot u$ only up to the token's own scale (and mean), and can erase it only roughly.

# %%
# exercise: add_norm/erase_direction

# %%
check("add_norm/erase_direction", erase_direction)

# %%
erase_direction = mine("add_norm/erase_direction")

# %% [markdown]
# Erase from the stream that the token before was *a*. All other tokens keep their predecessors, and nothing else changes:

# %%
u = torch.zeros(34)
u[before][vocab.index("a")] = 1
erased = erase_direction(after_1, u)
for name, x in (("before", after_1), ("after", erased)):
    print(f"{name:6}", (x @ u).round().int().tolist())
others = torch.arange(34) != 22 + vocab.index("a")
assert (erased @ u).abs().max() < 1e-6
assert torch.allclose(erased[:, others], after_1[:, others], atol=1e-6)

# %% [markdown]
# Can a feed-forward network do it? Its ReLU passes only positive values. Two hidden units are enough: one reads $x \cdot u$, the other $-x \cdot u$, and $\mathrm{relu}(a) - \mathrm{relu}(-a) = a$.

# %%
from course_lib.feed_forward import feed_forward as position_wise

v = F.normalize(torch.randn(34, generator=torch.Generator().manual_seed(1)), dim=-1)
w_1, w_2 = torch.stack([v, -v], dim=-1), torch.stack([-v, v])
x = torch.randn(9, 34, generator=torch.Generator().manual_seed(2))
written = position_wise(x, w_1, torch.zeros(2), w_2, torch.zeros(34))
assert torch.allclose(x + written, erase_direction(x, v), atol=1e-6)
print("left along v:", f"{((x + written) @ v).abs().max():.0e}")

# %% [markdown]
# It is the trick from the box about *able*, turned round: there the ReLU carried $x$ along, here it takes a part away. One residual feed-forward layer erases a direction with 2 of its $d_{ff}$ units.

# %% [markdown]
# ## Break it (optional)
#
# The trained stack of 32 blocks is still there. Each character's logit is read from one direction, its row of the last linear layer. Erase the direction of the letter *e* from what that layer reads. **Which of the characters " etaoin" gets the largest rise in loss?**

# %%
guess = None  # a character, such as "t"

# %%
needs("shakespeare")


# %% tags=["training"]
tokens, wanted = next(characters.batches(held_out, 16, 512, seed=0))
top = deep_both.last(deep_both.streams(tokens)[-1]).detach().flatten(0, 1)
wanted = wanted.flatten()


@torch.no_grad()
def loss_by_character(normed):
    losses = F.cross_entropy(deep_both.scores(normed), wanted, reduction="none")
    return {c: losses[wanted == characters.encode(c)].mean().item() for c in " etaoin"}


# %% tags=["training"]
u = deep_both.scores.weight[characters.encode("e")].squeeze(0).detach()
whole, without_e = loss_by_character(top), loss_by_character(erase_direction(top, u))
rises = {c: round(without_e[c] - whole[c], 2) for c in whole}
print(rises)
reveal(guess, max(rises, key=rises.get))
training.expect("e is then worse by over 0.3 nats", rises["e"] > 0.3, rises, deep_both)

# %% [markdown]
# The other losses move too: the logit of *e* is part of every softmax, and the directions of the other letters are not at right angles to $u$.
#
# More to break:
#
# - In `PreNorm`, add to the *normalized* copy: `read + self.sublayer(read, *args)`. What does the check say, and what does the path around the layer look like now?
# - Put `rms_norm` into `PreNorm` (its bias is not used: `lambda x, gain, bias: rms_norm(x, gain)`) and train. Do you miss the mean?
# - Divide by the variance instead of its root in your `layer_norm`. Does the check notice?

# %% [markdown]
# ## What to remember
#
# Add: the identity in $I + J$ brings the gradient to every level and keeps tokens apart. Norm: it brings each token's own numbers to mean 0 and variance 1, so that every layer reads one scale. In our runs, 32 ordinarily initialized blocks learned in 120 steps only with both. Scaling what each layer adds is another way to keep the gradient steady.
#
# | | |
# |:-|:-|
# | residual connection | $x_l = x_{l-1} + F_l(x_{l-1})$, Jacobian $I + J_l$ |
# | layer norm | $\hat x = (x - \mu)/\sqrt{\sigma^2 + \epsilon}$, $\quad \mathrm{LN}(x) = \gamma \odot \hat x + \beta$, $\quad \lVert\hat x\rVert = \sqrt d$ |
# | its Jacobian | $\frac1\sigma (I - \frac1d \mathbf{1}\mathbf{1}^T - \frac1d \hat x \hat x^T)$ |
# | RMSNorm, its Jacobian | $x / r$, $\;r = \sqrt{\frac1d\sum_c x_c^2 + \epsilon}$; $\quad \frac1r (I - \frac1d \frac{x}{r}\frac{x^T}{r})$ |
# | post-norm, pre-norm | $\mathrm{LN}(x + F(x))$; $\quad x + F(\mathrm{LN}(x))$ and a last norm |
# | erase a direction | $x - (x \cdot u)\, u$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. What is the layer norm of (1, 3), with gain 1, bias 0 and a tiny ε?</summary>
#
# The mean is 2, the standard deviation 1: (−1, 1). With two numbers it is always (−1, 1) or (1, −1).
# </details>
#
# <details><summary>2. A layer's weights are all zero. What do post-norm and pre-norm return for x?</summary>
#
# Post-norm LN(x), pre-norm x.
# </details>
#
# <details><summary>3. Why does a residual connection alone not suffice in 32 blocks?</summary>
#
# With ordinary initial weights each layer's output grows with its input, so the stream and the gradient grow exponentially with depth. Scaling what is added, or a norm, prevents it.
# </details>
#
# <details><summary>4. Which numbers go into the mean of one entry in layer norm, and which in batch norm?</summary>
#
# Layer norm: the d numbers of the same token. Batch norm: the same column in all real tokens of the batch.
# </details>
#
# <details><summary>5. Why can one attention layer not contain an induction head?</summary>
#
# Its key must already know which token came before it. In one layer all keys are made from the embeddings, before any head has moved anything.
# </details>

# %% [markdown]
# ## In your own words (optional)
#
# The panels check code. What you understand shows in a paragraph of your own, so take ten minutes for one.
#
# In this lesson a stack of 32 blocks learned only with residual connections and norms together. Explain in one paragraph what each of the two does for the gradient and for the scale of the activations, and what goes wrong when only one of them is there.

# %% [markdown] tags=["question:add_and_norm"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# You have every part of a Transformer block now. Lesson 08 makes an encoder and a decoder of them.
#
# Vaswani et al. 2017, sections 3.1, 3.4 and 5.3; He et al. 2016 (residual connections); Ba et al. 2016 (layer norm); Ioffe & Szegedy 2015 (batch norm); Zhang & Sennrich 2019 (RMSNorm); Xu et al. 2019 (gradients of norms); Shen et al. 2020 (batch norm and text).

# %% [markdown]
# Xiong et al. 2020, Takase et al. 2023 (pre- and post-norm) and Liu et al. 2020 (warm-up and Adam); Li et al. 2018 (landscapes); Dong et al. 2021 (rank); He et al. 2023 (no shortcuts); Elhage et al. 2021 and Olsson et al. 2022 (residual stream and induction heads). Lectures: L1 to L5.
