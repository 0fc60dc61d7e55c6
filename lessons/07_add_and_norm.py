# %% [markdown]
# # 07 · Add & norm
#
# **120 minutes · after lesson 06 · needs `shakespeare` (5.4 MB)**
#
# You have attention and you have the feed-forward network. One after the other they make a block, and nothing forbids a second block on top of the first. The Transformer of 2017 has six, GPT-3 has ninety-six. Build thirty-two, and see what you get.

# %%
import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import characters, needs, shakespeare, word_vectors
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import loss_landscape, plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% [markdown]
# ## Thirty-two blocks
#
# `Stack` reads characters of Shakespeare and scores the next one after each: embeddings and positions, as many blocks as you like, one linear layer at the end. Its argument `wrap` says how each layer meets the words. We begin with `bare`: the layer stands in the way, and only what it writes goes on.

# %%
from course_lib.instruments.deep_stack import NormAlone, Residual, Stack, bare

needs("shakespeare")

# %%
learning, held_out = characters.split()


def new(wrap, blocks, seed=0):
    with training.seeded(seed):
        return Stack(len(characters.vocab()), blocks, d_model=32, heads=4, wrap=wrap)


def loss(model, batch):
    tokens, following = batch
    return F.cross_entropy(model(tokens).flatten(0, -2), following.flatten())


# %% [markdown]
# Before any training, ask what training will have to work with. The loss's gradient starts at the top and is handed down from block to block. It leaves the top of the stack with a length of about 0.03. **How long is it when it arrives below the first of 32 blocks?**

# %%
guess = None  # a length, such as 0.001


# %%
def gradients(wrap, blocks):
    """Return the length of the loss's gradient at each level, the lowest first."""
    model = new(wrap, blocks).double()
    tokens, following = next(characters.batches(learning, 16, 32, seed=0))
    streams = model.streams(tokens)
    value = loss(lambda _: model.scores(streams[-1]), (tokens, following))
    return torch.stack([gradient.norm() for gradient in torch.autograd.grad(value, streams)])


arriving = gradients(bare, 32)
reveal(guess, f"{arriving[0]:.0e}")
left = (arriving[0] / arriving[-1]) ** (1 / 32)
print(f"left by one block, on average: {left:.2f}")
assert arriving[0] < 1e-15 < 1e-3 < arriving[-1] and 0.15 < left < 0.35

# %%
figure, ax = plots.axes(
    "Each bare block leaves a quarter of the gradient",
    "level, counted from below",
    "length of the gradient",
)
for blocks in (2, 4, 8, 16, 32):
    ax.semilogy(gradients(bare, blocks), label=f"{blocks} blocks")
ax.legend()
plots.show(
    figure, "Gradient by level on a log scale: five straight lines, falling towards the bottom."
)

# %% [markdown]
# Small factors multiply to nothing: lesson 01's trouble, turned from time to depth. The way up is no better. Lesson 05 found that feed-forward networks do not keep averaged words from growing alike. **How much of the words' length still tells them apart at the top?**

# %%
guess = None  # a share between 0 and 1


# %%
@torch.no_grad()
def apart(wrap, blocks=32):
    """Return for each level which share of the words' length is not common to all of them."""
    tokens, _ = next(characters.batches(learning, 16, 32, seed=0))
    streams = new(wrap, blocks).double().streams(tokens)
    common = [reduce(x, "batch n d -> d", "mean") for x in streams]
    return torch.stack([(x - mean).norm() / x.norm() for x, mean in zip(streams, common)])


reveal(guess, f"{apart(bare)[-1]:.0e}")
assert apart(bare)[-1] < 1e-7, "less than float32 can hold beside the rest"

# %% [markdown]
# In float32, which holds seven digits, all words have become *one* word. Whatever stands above has nothing to read, and whatever stands below gets no gradient. The stack is dead from both ends.

# %% [markdown]
# ## A way round
#
# The repair is one plus sign (He et al. 2016): let each layer *add* what it found to what was there, x + layer(x). The derivative of the sum is the identity plus the layer's own, so the gradient of 1 reaches every level, however small the rest.

# %%
needs()
with training.seeded(0):
    layer, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(4)
alone = torch.autograd.functional.jacobian(layer, x)
with_sum = torch.autograd.functional.jacobian(lambda x: x + layer(x), x)
print(with_sum - alone)
assert torch.allclose(with_sum - alone, torch.eye(4), atol=1e-6)

# %% [markdown]
# There is a second gift. **Make the layer's weights a thousand times smaller: what does the layer return alone, and what with the sum?**

# %%
guess = None  # two words

# %%
with torch.no_grad():
    for weight in layer.parameters():
        weight /= 1000
reveal(guess, ("nearly 0", "nearly x"))
assert layer(x).abs().max() < 0.01 and torch.allclose(x + layer(x), x, atol=0.01)

# %% [markdown]
# The sum is biased towards the identity: a layer that has nothing to say does no harm, and one that has learns only the *residual*, what should be different.
#
# `Residual` wraps a layer so. **What will the gradient do now on its way down through 32 blocks: fall, stay or grow?**

# %%
guess = None  # "fall", "stay" or "grow"

# %%
needs("shakespeare")

# %%
arriving = gradients(Residual, 32)
reveal(guess, f"grow, by a factor of {arriving[0] / arriving[-1]:.0e}")
assert arriving[0] > 1000 * arriving[-1]

# %% [markdown]
# Out of the ditch on one side, into that on the other. A layer reads a large x and writes a large answer; the sum is larger still, and so is what the next layer writes. Something must keep what a layer *reads* at one size. That is the norm, built below; here torch's stands in, to see all four cases at once.


# %%
class TorchPreNorm(Residual):
    def forward(self, x, *args):
        return x + self.sublayer(F.layer_norm(x, x.shape[-1:]), *args)


wraps = {"bare": bare, "norm": NormAlone, "sum": Residual, "sum and norm": TorchPreNorm}
four = {name: gradients(wrap, 32) for name, wrap in wraps.items()}
title = "Bare, the gradient vanishes; with sums alone it explodes; norms hold it"
figure, ax = plots.axes(title, "level, counted from below", "length of the gradient")
for name, line in four.items():
    ax.semilogy(line, label=name)
ax.legend()
plots.show(figure, "Gradient by level on a log scale: bare falls, sum grows, the norms stay level.")

# %%
lowest = {name: float(line[0] / line[-1]) for name, line in four.items()}
assert lowest["bare"] < 1e-15 and lowest["sum"] > 1e3
assert all(0.01 < lowest[name] < 100 for name in ("norm", "sum and norm"))

# %% [markdown]
# By this picture a norm without a sum would do as well as both together. **Will it? Train 32 blocks in four ways: which learn anything?** One who knows how frequent each character is, and nothing else, has a loss of 3.36.

# %%
guess = None  # a list of "bare", "norm", "sum", "sum and norm"

# %%
counts = torch.bincount(learning, minlength=len(characters.vocab())) + 1
trivial = -(counts / counts.sum()).log()[held_out].mean().item()
print(f"by frequency alone: {trivial:.2f}")
assert round(trivial, 2) == 3.36


# %% tags=["training"]
def trained(wrap, blocks, steps=120, learning_rate=0.003, warm_up=0.05):
    model, stretches = new(wrap, blocks, SEED), characters.batches(learning, 16, 16, SEED)
    rates = {"learning_rate": learning_rate, "warm_up": warm_up}
    history = training.train(model, stretches, loss, steps=steps, seconds=30, **rates)
    return model, history.losses


@torch.no_grad()
def held_out_loss(model):
    return loss(model, next(characters.batches(held_out, 16, 512, seed=0))).item()


deep_bare, _ = trained(bare, 32)

# %% tags=["training"]
deep_both, _ = trained(TorchPreNorm, 32)

# %% tags=["training"]
live = {"bare": held_out_loss(deep_bare), "sum and norm": held_out_loss(deep_both)}
claim = f"bare stays at the frequencies' {trivial:.2f}, sum and norm is over 0.2 lower"
holds = live["bare"] > trivial - 0.1 and live["sum and norm"] < live["bare"] - 0.2
losses = {name: round(value, 2) for name, value in live.items()}
training.expect(claim, holds, losses, deep_bare, deep_both)

# %% [markdown]
# Would patience help the bare stack? Adam divides each gradient by its own size, so small ones need not stay small; but it adds ε = 10⁻⁸ to the size first. See how many gradients are smaller than that.

# %%
model = new(bare, 32)
loss(model, next(characters.batches(learning, 16, 32, seed=0))).backward()
gradient = torch.cat([weight.grad.flatten() for weight in model.parameters()])
print(f"{(gradient.abs() < 1e-8).float().mean():.0%} of the gradients are below 1e-8")
assert (gradient.abs() < 1e-8).float().mean() > 0.7

# %% [markdown]
# `make results LESSON=07` trained all four, from 2 blocks to 32, for 120 steps from each of three seeds. Crosses are what has just been trained here.

# %%
needs()
kept = results.load("depth")["figures"]

# %%
figure, ax = plots.axes(
    "Only sum and norm together learn at every depth", "blocks", "loss on held-out text, nats"
)
for name, colour, dashes in zip(kept["loss"], plots.COLOURS, ("-", "--", "-", "-")):
    for run in kept["loss"][name]:
        ax.plot(kept["depths"], run, dashes, marker="o", color=colour, linewidth=1, markersize=3)
    ax.plot([], [], dashes, color=colour, label=name)
    if name in globals().get("live", {}):
        ax.plot(32, live[name], "x", color=colour, markersize=9)
ax.axhline(kept["trivial"], color="0.4", linestyle=":", label="by frequency alone")
ax.set(xscale="log", xticks=kept["depths"], xticklabels=kept["depths"], ylim=(2.4, 4.4))
ax.minorticks_off()
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plots.show(figure, "Held-out loss against depth: only sum and norm together stay low at 32 blocks.")

# %% [markdown]
# A norm alone keeps the gradient's length, and it learns no more than the bare stack: length is not everything, if the words below have grown alike. A sum alone learns with 8 blocks; with 16 the stream has run away, and the loss with it, far off the picture. Together they learn at every depth, and depth pays: 32 blocks beat 2 from every seed, after 120 steps.

# %%
unlearned = {name: min(run[-1] for run in kept["loss"][name]) for name in ("bare", "norm", "sum")}
print({name: round(value, 2) for name, value in unlearned.items()}, "at best, with 32 blocks")
reveal(guess, ["sum and norm"])
assert all(run[2] < 3.0 and run[3] > 4.4 for run in kept["loss"]["sum"])
assert min(unlearned.values()) > kept["trivial"] - 0.1
assert all(run[-1] < run[0] < 3.0 for run in kept["loss"]["sum and norm"])

# %% [markdown]
# > **Where the lectures disagree (D18).** L1 says that residuals, norms and scaling help training, and leave what the model is able to do as it was. What is *able*? If it means the functions that some weights would give, L1 is right, and the next cell proves it for the feed-forward network: relu(x) - relu(-x) = x, so a bare layer with 2 d_model more hidden units can carry x along.

# %%
from course_lib.feed_forward import feed_forward as position_wise

with training.seeded(0):
    x, w_1, w_2 = torch.randn(5, 8), torch.randn(8, 32), torch.randn(32, 8)
none, same = torch.zeros(32), torch.eye(8)
wide_1, wide_2 = torch.cat([w_1, same, -same], dim=1), torch.cat([w_2, same, -same])
wide_bare = position_wise(x, wide_1, torch.zeros(48), wide_2, none[:8])
with_sum = x + position_wise(x, w_1, none, w_2, none[:8])
assert torch.allclose(wide_bare, with_sum, atol=1e-4)

# %% [markdown]
# If it means what gradient descent *finds*, the tricks change everything. The bare stack of 32 blocks gets no further than the frequencies of the characters, from every seed and at each of four learning rates: as able as a model that reads nothing. (A changed attention and careful first weights can train bare stacks after all, slowly: B. He et al. 2023, quoted.)

# %% tags=["nbval-check-output"]
for rate, runs in zip(kept["other rates"], zip(*kept["bare at other rates"])):
    print(f"learning rate {rate:6}: " + ", ".join(f"{value:.2f}" for value in runs))
deepest = {name: [run[-1] for run in runs] for name, runs in kept["loss"].items()}
found = [*deepest["bare"], *(value for runs in kept["bare at other rates"] for value in runs)]
assert min(found) > kept["trivial"] - 0.1 and max(deepest["sum and norm"]) < 3.0

# %% [markdown]
# ## The landscape
#
# Three lectures show two pictures by Li et al. 2018: the loss of an image network of 56 layers, as rugged as the Alps without residuals, and a smooth bowl with them. What does the landscape of *our* stacks look like? A model of so many numbers has as many directions. Draw two at random, and walk along both.

# %%
needs("shakespeare")

# %%
print(f"{sum(weight.numel() for weight in new(NormAlone, 8).parameters()):,} numbers")

# %% [markdown]
# How long is a step? Twice the weights before a norm are the same function, so plain distances mean little. Li et al. draw each row of a matrix as long as the model's own row: at a distance of 1, as much has been added to each row as was there. `loss_landscape.direction` draws so, and `loss_landscape.surface` walks.
#
# Eight blocks, with norms in both; only the sum differs. **Around which of the two is the landscape flatter?**

# %%
guess = None  # "with sums" or "without"


# %% tags=["training"]
def around(wrap):
    model, _ = trained(wrap, 8, steps=200)
    batch = next(characters.batches(held_out, 16, 64, seed=0))
    distances, generator = torch.linspace(-1, 1, 9), torch.Generator().manual_seed(0)
    return model, loss_landscape.surface(model, loss, batch, distances, generator)


(alone, high), (summed, low) = around(NormAlone), around(TorchPreNorm)
coarse = {"without sums": high, "with sums": low}

# %% tags=["training"]
for name, losses in coarse.items():
    print(f"{name:12} {losses[4, 4]:.2f} in the middle, {losses.max():.1f} at most")
reveal(guess, min(coarse, key=lambda name: coarse[name].max()))
middles = [round(losses[4, 4].item(), 2) for losses in coarse.values()]
claim = "without sums the middle is over 0.2 nats higher"
training.expect(claim, middles[0] > middles[1] + 0.2, middles, alone, summed)

# %% [markdown]
# Nine by nine points are coarse. `make results LESSON=07` took 25 by 25, around models from three seeds; here is the first. Inside the white line, the loss is below that of the frequencies alone.

# %%
needs()
kept = results.load("landscape")["figures"]
names = {"norm": "without sums: a shallow dish, high up", "sum and norm": "with sums: a valley"}
levels = [2.5, 2.75, 3, 3.25, 3.5, 4, 5, 6, 8, 10, 15, 20]

# %%
title = "Neither is rugged; only one has a valley below the loss of frequencies alone"
figure, panels = plots.panels(title, list(names.values()), size=(9, 3.8))
for ax, name in zip(panels, names):
    place = kept["distances"], kept["distances"], kept["surfaces"][name][0]
    bands = ax.contourf(*place, levels, norm="log", extend="both")
    ax.contour(*place, [kept["trivial"]], colors="white")
    ax.set(xlabel="distance along direction 2", aspect=1)
panels[0].set_ylabel("distance along direction 1")
figure.colorbar(bands, ax=panels, label="loss, nats", format="%g")
plots.show(figure, "Two contour maps: a high shallow dish, and a deeper valley in a white ring.")

# %% tags=["nbval-check-output"]
for name, surfaces in kept["surfaces"].items():
    for losses in map(torch.tensor, surfaces):
        better = (losses < kept["trivial"] - 0.1).float().mean()
        print(
            f"{name:12} lowest {losses.min():.2f}, highest {losses.max():4.1f}, "
            f"better than frequencies by 0.1 or more: {better:.0%} of the plane"
        )
        assert (better > 0.05) == (name == "sum and norm")
        assert (losses.diff(n=2, dim=0) > 0).float().mean() > 0.8, "it bends upwards"

# %% [markdown]
# The flat one is the stack *without* sums: it lies on the plateau of the frequencies, and nothing on the plane is clearly lower. With sums the walls are steeper, and there is a valley to be steep about. In these small Transformers residuals do not smooth the Alps; they give descent somewhere to go. The rugged pictures are quoted, from image networks of 56 layers.

# %% [markdown]
# Read such maps with care. They show two directions of a hundred thousand, drawn at random. That both surfaces bend upwards nearly everywhere says little: a ravine or a pass in another direction is invisible. They show the place where training ended, not the way there. And a run that went nowhere shows where it is stuck, not why; for that, the gradients above said more.

# %% [markdown]
# ## The norm
#
# Layer normalisation (Ba et al. 2016) brings every word to mean 0 and variance 1, by the word's own d numbers: x̂ = (x - μ) / √(σ² + ε). Then a learned gain and bias stretch and shift each column. No other word takes part.
#
# **Multiply a word by 1,000 and add 7 to all its numbers. How does its layer norm change?**

# %%
guess = None  # for example "1000 times as large" or "not at all"

# %%
needs()

# %%
word = torch.randn(8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
before, after = (F.layer_norm(x, (8,)) for x in (word, 1000 * word + 7))
reveal(guess, "hardly at all")
print(f"largest change: {(after - before).abs().max():.0e}")
assert (after - before).abs().max() < 1e-4

# %% [markdown]
# A small ε keeps a word of equal numbers, whose variance is 0, from dividing by 0. Watch where it stands when you write the function.

# %%
# exercise: add_norm/layer_norm

# %%
check("add_norm/layer_norm", layer_norm)

# %%
layer_norm = mine("add_norm/layer_norm")

# %% [markdown]
# > **Where the lectures disagree (D02, D03).** The text of L1, L2 and L4 announces "unit mean". Their μ is a plain sum in L1 and L4, and is divided by d in L2 and L3. What they divide by is √σ + ε (L1, L2), √(σ + ε) (L4) or σ (L3), and σ is the standard deviation already, so the first two take the root twice. Run all four beside torch's.

# %%
printed = {
    "L1: plain sum, √σ + ε": ("sum", lambda sigma: sigma.sqrt() + 1e-5),
    "L2: √σ + ε": ("mean", lambda sigma: sigma.sqrt() + 1e-5),
    "L3: σ": ("mean", lambda sigma: sigma),
    "L4: plain sum, √(σ + ε)": ("sum", lambda sigma: (sigma + 1e-5).sqrt()),
}


def as_printed(x, name):
    average, divide = printed[name]
    centred = x - reduce(x, "word d -> word 1", average)
    return centred / divide(reduce(centred**2, "word d -> word 1", "mean").sqrt())


# %% [markdown]
# **A hundred words of four numbers, drawn with a spread of 1, then the same words smaller and larger. Which of the four agrees with torch, and at which spread?**

# %%
guess = None  # for example {"L2": "at 1", "L4": "everywhere"}

# %%
generator = torch.Generator().manual_seed(0)
x = torch.randn(100, 4, generator=generator, dtype=torch.float64)
spreads = torch.logspace(-5, 4, 60, dtype=torch.float64)


def distance(normed, x):
    """Return how far a normed x lies from torch's, as a share of torch's length."""
    wanted = F.layer_norm(x, x.shape[-1:])
    return ((normed - wanted).norm() / wanted.norm()).item()


far = {name: [distance(as_printed(s * x, name), s * x) for s in spreads] for name in printed}
reveal(guess, {"L3": "where the variance is far above ε", "the others": "nowhere"})

# %%
figure, ax = plots.axes(
    "Of the printed formulas, only L3's finds torch's norm, and only for large words",
    "spread of a word's numbers",
    "distance from torch's, relative",
)
for (name, line), style in zip(far.items(), ("-", "-", "-", "--")):
    ax.loglog(spreads, line, style, label=name)
ax.axvline(1e-5**0.5, color="0.6", linewidth=1)
ax.text(1e-5**0.5, 3e-9, " spread = √ε", color="0.4")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plots.show(figure, "Distance from torch's norm against spread: one of four lines falls towards 0.")

# %%
large, small = spreads > 0.1, spreads < 1e-3
for name, line in far.items():
    line = torch.tensor(line)
    print(
        f"{name:25} off by up to {line[large].max():.0e} (large), {line[small].max():.0e} (small)"
    )
    assert (line[large].max() < 1e-2) == name.startswith("L3") and line[small].max() > 0.5
plain = torch.ones(4), torch.zeros(4)
assert max(distance(layer_norm(s * x, *plain), s * x) for s in spreads) < 1e-6

# %% [markdown]
# L3 leaves ε out: right for words of an ordinary size, wrong for tiny ones, and 0 / 0 for a word of equal numbers. √σ is right where σ happens to be 1, and L2's line dips there. A plain sum gives d times the mean, so the result is not centred, as the next cell shows. And "unit mean" holds for none: the mean is *zero*.

# %%
for name in printed:
    print(f"{name:25} mean of a word: {as_printed(x, name).mean(-1).abs().mean():.2f}")
constant = torch.ones(1, 4, dtype=torch.float64)
print("L3, a word of equal numbers:", as_printed(constant, "L3: σ").tolist())
assert layer_norm(x, torch.ones(4), torch.zeros(4)).mean(-1).abs().max() < 1e-6

# %% [markdown]
# ## What it does to gradients
#
# Mean and variance depend on x, so the gradient flows through them too. Xu et al. 2019 report that this matters more than the forward pass: the derivative of the mean *re-centres* the gradient, that of the variance *re-scales* it. See both. **Send any gradient into a layer norm. What do the numbers that come out below add up to?**

# %%
guess = None  # a number

# %%
x = torch.randn(5, 64, generator=generator, dtype=torch.float64, requires_grad=True)
above = torch.randn(5, 64, generator=generator, dtype=torch.float64) + 3
normed = layer_norm(x, torch.ones(64), torch.zeros(64))
(below,) = torch.autograd.grad(normed, x, above)
reveal(guess, f"{below.sum(-1).abs().max():.0e}")
for name, gradient in (("above", above), ("below", below)):
    along = (gradient * normed).sum(-1)
    print(f"{name} the norm: sum {gradient[0].sum():7.2f}, along x̂ {along[0]:7.4f}")
assert below.sum(-1).abs().max() < 1e-9 and along.abs().max() < 1e-2

# %% [markdown]
# Two directions are taken out of every gradient: "all numbers up", which the norm would undo, and "all of x̂ longer", which it would undo as well. And the size? Let a layer below write x = h W. **Make W a hundred times as large: what becomes of the gradient at h, without the norm and with it?**

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
# A norm makes the gradient forget how large the weights are. That is one reason why the stacks with norms kept their level: weights may be large or small, and what is handed down stays the same.
#
# ## Less of it
#
# Zhang & Sennrich 2019 leave the mean where it is and divide by the root of the mean square: RMSNorm, which Llama uses. One pass less over the numbers, and no bias.

# %%
# exercise: add_norm/rms_norm

# %%
check("add_norm/rms_norm", rms_norm)

# %%
rms_norm = mine("add_norm/rms_norm")

# %% [markdown]
# What was dropped is the centring, and nothing else: on a word whose mean is 0 already, the two are the same.

# %%
x = torch.randn(5, 64, generator=generator) + 2
gain, none = torch.randn(64, generator=generator), torch.zeros(64)
centred = x - reduce(x, "word d -> word 1", "mean")
assert torch.allclose(layer_norm(x, gain, none), rms_norm(centred, gain), atol=1e-5)
assert not torch.allclose(layer_norm(x, gain, none), rms_norm(x, gain), atol=0.1)
print("on centred words, layer norm is RMSNorm")

# %% [markdown]
# ## Why not batch norm?
#
# Networks for images normalise each *column*, over all examples of the batch (Ioffe & Szegedy 2015). For text that means: over all words of all lines in the batch, whatever their number. Padding must be left out. Build it, and see what becomes of a line.

# %%
# exercise: add_norm/batch_norm

# %%
check("add_norm/batch_norm", batch_norm)

# %%
batch_norm = mine("add_norm/batch_norm")

# %% [markdown]
# Take real lines, of real and unequal length, in the word vectors of lesson 03. *Ring the alarum bell* stands first in each batch; seven other lines keep it company.

# %%
needs("shakespeare")

# %%
from course_lib.masks import padding_mask

words = word_vectors.from_shakespeare()
play = map(shakespeare.words, shakespeare.complete_works().splitlines())
known = set(words.vocab)
lines = [" ".join(line) for line in play if line and known.issuperset(line)]
lengths = [len(line.split()) for line in lines]
print(f"{len(lines):,} lines of {min(lengths)} to {max(lengths)} words")


# %%
def batch_of(chosen, n=20):
    """Return the vectors of some lines, zeros after the last word of each, and their mask."""
    x = torch.zeros(len(chosen), n, 64)
    for row, line in zip(x, chosen):
        row[: len(line.split())] = words(line)
    lengths = torch.tensor([len(line.split()) for line in chosen])
    return x, padding_mask(lengths, n).squeeze(-2)


def company(seed, size=7):
    generator = torch.Generator().manual_seed(seed)
    return [lines[i] for i in torch.randint(len(lines), (size,), generator=generator)]


# %% [markdown]
# **The same line in two batches: by how much does the vector of *ring* change, as a share of its length, under layer norm and under batch norm?**

# %%
guess = None  # two shares: (layer norm, batch norm)

# %%
ones, zeros, line = torch.ones(64), torch.zeros(64), "ring the alarum bell"
batches = [batch_of([line, *company(seed)]) for seed in range(20)]
by_word = torch.stack([layer_norm(x, ones, zeros)[0, 0] for x, _ in batches])
by_batch = torch.stack([batch_norm(x, ones, zeros, mask)[0, 0] for x, mask in batches])
changes = [((x[1:] - x[0]).norm(dim=-1) / x[0].norm()).mean() for x in (by_word, by_batch)]
reveal(guess, tuple(round(float(change), 2) for change in changes))
assert changes[0] < 1e-5 and changes[1] > 0.2

# %%
names = ["layer norm: its own affair", "batch norm: depends on the company"]
title = "The same word of the same line, in a first batch and in nineteen others"
figure, panels = plots.panels(title, names, size=(8, 4))
for ax, x in zip(panels, (by_word, by_batch)):
    ax.plot(x[0].expand(19, -1).flatten(), x[1:].flatten(), ".", markersize=3, alpha=0.5)
    ax.axline((0, 0), slope=1, color="0.6", linewidth=1)
    ax.set(xlabel="its 64 numbers in the first batch", aspect=1)
panels[0].set_ylabel("the same numbers in the others")
plots.show(figure, "Layer norm: all dots on the diagonal. Batch norm: a cloud about the diagonal.")

# %% [markdown]
# A line's result hangs on which lines happen to be beside it, and at test time there may be none. Shen et al. 2020, quoted: the statistics of text across batches "exhibit large fluctuations throughout training". Measure how far a batch's mean lies from the mean of all, in units of the column's own spread.


# %%
def real_words(seed, lines):
    x, mask = batch_of(company(seed, lines))
    return x[mask]


many = real_words(0, 3000)
offs = {}
for size in (1, 4, 16, 64):
    means = torch.stack([real_words(seed, size).mean(0) for seed in range(30)])
    offs[size] = ((means - many.mean(0)) / many.std(0)).square().mean().sqrt().item()
    print(f"{size:3} lines a batch: the mean is off by {offs[size]:.2f} of a column's spread")
assert offs[1] > offs[4] > offs[16] > offs[64]

# %% [markdown]
# Larger batches calm the statistics, at the price of larger batches. Two more traps come with lines of unequal length. Forget the mask, and the zeros of the padding count as words. And take a batch of one line of one word. **What is its batch norm?**

# %%
guess = None  # a number that all of its columns share

# %%
one, mask = batch_of(["horse"], n=1)
alone = batch_norm(one, ones, zeros, mask)
reveal(guess, alone.unique().tolist())
assert not alone.any() and layer_norm(one, ones, zeros).abs().min() > 0

# %%
chosen = [line, *company(0)]
(short, short_mask), (long, long_mask) = batch_of(chosen, 20), batch_of(chosen, 60)
forgotten = [batch_norm(x, ones, zeros)[0, 0] for x in (short, long)]
masked = [batch_norm(short, ones, zeros, short_mask), batch_norm(long, ones, zeros, long_mask)]
print(f"mask forgotten: {(forgotten[1] - forgotten[0]).norm() / forgotten[0].norm():.2f}")
print(f"with the mask:  {(masked[1][0, 0] - masked[0][0, 0]).norm():.6f}")
assert torch.allclose(masked[0], masked[1][:, :20], atol=1e-5)

# %% [markdown]
# A word compared with itself alone is always average: whatever it meant, batch norm answers 0. And 40 more columns of padding, forgotten, change what *ring* is. Layer norm knows nothing of lines, batches or padding, and so does the same in training, in use, and for the first word of a text.

# %% [markdown]
# ## The block of 2017
#
# Now put it together as the paper does, and send a line of Shakespeare through, its vectors times √d_model (section 3.4). In L3's letters:
#
# T¹ = attention(X), T² = X + T¹, T³ = norm(T²), T⁴ = feed-forward(T³), T⁵ = T⁴ + T³, H = norm(T⁵).
#
# **Six tables of four words. In which of them do all words have the same length?**

# %%
guess = None  # a list such as ["X", "T5"]

# %%
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention

with training.seeded(0):
    attention = AsSelfAttention(MultiHeadAttention(64, heads=4))
    feed_forward = FeedForward(64, 256)
line = "ring the alarum bell"
x = 64**0.5 * words(line)
steps = {"X": x, "T1": attention(x)}
steps["T2"] = x + steps["T1"]
steps["T3"] = layer_norm(steps["T2"], ones, zeros)
steps["T4"] = feed_forward(steps["T3"])
steps["T5"] = steps["T4"] + steps["T3"]
steps["H"] = layer_norm(steps["T5"], ones, zeros)

# %%
print("length of", *(f"{word:>8}" for word in line.split()))
for name, step in steps.items():
    print(f"{name:9}", *(f"{length:8.2f}" for length in step.norm(dim=-1).tolist()))
same = [name for name, step in steps.items() if step.norm(dim=-1).std() < 0.01]
reveal(guess, same)
assert same == ["T3", "H"]

# %% [markdown]
# After a norm every word has the length √64 = 8, as 64 numbers of variance 1 must. Twice the same pattern: a layer, a sum, a norm. So it is worth a class of its own, whichever the layer is. `*args` hands the mask on to attention.

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

# %% [markdown]
# ## The other order
#
# Follow x through post-norm: the sum is normalised at each layer, so no path from bottom to top is free of norms. Much code puts the norm elsewhere: a layer *reads* a normalised copy, and the sum itself stays untouched, x + layer(norm(x)).

# %%
needs()

# %%
# exercise: add_norm/pre_norm

# %%
check("add_norm/pre_norm", PreNorm)

# %%
PreNorm = mine("add_norm/pre_norm")

# %% [markdown]
# > **Where the lectures disagree (D13).** The lectures draw the paper's order: add, then norm. Much code that claims to follow the paper is pre-norm, and Xiong et al. 2020 note that the two train differently. torch offers both as `norm_first`. Copy our weights into its layer and compare.

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
# Both are Transformers, with the same number of parameters, and they are different functions. The difference shows in depth. **In a stack of 32 new blocks, how does the size of the stream change from bottom to top, under each?**

# %%
guess = None  # for example {"post": "grows", "pre": "stays"}


# %%
@torch.no_grad()
def sizes(wrap):
    tokens, _ = next(characters.batches(learning, 16, 32, seed=0))
    return torch.stack([x.square().mean().sqrt() for x in new(wrap, 32).streams(tokens)])


post, pre = sizes(PostNorm), sizes(PreNorm)
reveal(guess, {"post": "stays at 1", "pre": f"grows to {pre[-1]:.1f}"})
assert (post[1:] - 1).abs().max() < 1e-3 and pre[-1] > 3

# %%
figure, ax = plots.axes(
    "Post-norm resets the stream at each block, pre-norm lets it add up",
    "level, counted from below",
    "root mean square of the stream",
)
for name, line in (("post-norm", post), ("pre-norm", pre)):
    ax.plot(line, label=name)
ax.set(ylim=(0, None))
ax.legend()
plots.show(figure, "Size of the stream by level: flat at 1 for post-norm, rising for pre-norm.")

# %% [markdown]
# Under pre-norm each layer adds about as much as any other, so the stream grows like the root of the number of layers, and late layers change it ever less. The last output is not normalised at all; real pre-norm models put one more norm at the end, and lesson 08 does so.

# %% [markdown]
# ## Warm-up
#
# The paper trains with a learning rate that begins near 0 and rises over the first 4,000 steps (section 5.3). Xiong et al. 2020 trace the need for it to post-norm: at the start, the gradients of its upper layers are large. Here `warm_up` is the share of the steps in which the rate rises. Eight blocks, and a bold rate of 0.01. **Which of the four runs fail?**

# %%
guess = None  # for example ["pre-norm without"]

# %% tags=["training"]
bold = {"steps": 250, "learning_rate": 0.01}
without, _ = trained(PostNorm, 8, **bold, warm_up=0)

# %% tags=["training"]
risen, _ = trained(PostNorm, 8, **bold, warm_up=0.3)
came = [round(held_out_loss(model), 2) for model in (without, risen)]
claim = "post-norm without a warm-up ends over 0.2 nats higher than with one"
training.expect(claim, came[0] > came[1] + 0.2, came, without, risen)

# %% [markdown]
# `make results LESSON=07` has all four runs from three seeds; each line is a mean over 20 steps, and the dotted one is the loss of frequencies alone.

# %%
needs()
kept = results.load("warm_up")["figures"]


def smooth(losses):
    return torch.tensor(losses).unfold(0, 20, 1).mean(-1)


# %%
title = "Eight blocks, a bold learning rate: only post-norm without warm-up fails"
figure, panels = plots.panels(title, list(kept["runs"]), size=(9, 3.6))
for ax, by_warm_up in zip(panels, kept["runs"].values()):
    for share, runs, colour in zip(kept["warm_ups"], by_warm_up, plots.COLOURS):
        for run in runs:
            ax.plot(smooth(run["losses"]), color=colour, linewidth=1)
        ax.plot([], [], color=colour, label=f"warm-up {share:.0%}")
    ax.axhline(kept["trivial"], color="0.4", linestyle=":")
    ax.set(xlabel="step", ylim=(2.2, 4.5))
panels[0].legend()
panels[0].set_ylabel("loss, nats")
plots.show(figure, "Losses by step: post-norm without warm-up stays at the dotted line.")

# %% tags=["nbval-check-output"]
final = {
    f"{name}, warm-up {share:.0%}": [run["held out"] for run in runs]
    for name, by_warm_up in kept["runs"].items()
    for share, runs in zip(kept["warm_ups"], by_warm_up)
}
for name, losses in final.items():
    print(f"{name:23}", *(f"{value:.2f}" for value in losses))
reveal(guess, ["post-norm without"])
failed, *others = final.values()
assert min(failed) > kept["trivial"] - 0.1 and max(max(losses) for losses in others) < 3.0

# %% [markdown]
# ## The residual stream
#
# Read a pre-norm stack once more: nothing is ever replaced, only added. Elhage et al. 2021 call what runs through it the *residual stream*: a wide road of d_model lanes for each word. Layers read from some directions and write to others. Only attention heads carry anything from one word's road to another's.
#
# Build such a head by hand. Its order: copy the previous word.

# %%
needs()

# %%
from course_lib.positions import shift_matrix, sinusoidal
from course_lib.self_attention import scaled_dot_product_attention

line = "a horse a horse my kingdom for a horse".split()
vocab = sorted(set(line))
word, place, free = slice(0, 5), slice(5, 21), slice(21, 26)
stream = torch.zeros(len(line), 26)
stream[:, word] = F.one_hot(torch.tensor([vocab.index(w) for w in line])).float()
stream[:, place] = sinusoidal(len(line), 16)

# %% [markdown]
# Three subspaces: the first 5 lanes say which word, the next 16 where it stands, the last 5 are free. Query and key read the place; lesson 04's shift matrix turns a place into the one before. The value reads the word, and the output writes it to the free lanes. 80 makes the choice sharp.
#
# **Which previous word does the first one get?**

# %%
guess = None  # a word of the line

# %%
w_q, w_k, w_v = torch.zeros(26, 16), torch.zeros(26, 16), torch.zeros(26, 5)
w_o = torch.zeros(5, 26)
w_q[place] = 80 * shift_matrix(-1, 16)
w_k[place] = torch.eye(16)
w_v[word] = torch.eye(5)
w_o[:, free] = torch.eye(5)


def head(x):
    return scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v) @ w_o


after = stream + head(stream)

# %% tags=["nbval-check-output"]
found = [vocab[i] for i in after[:, free].argmax(-1)]
for own, previous in zip(line, found):
    print(f"{own:8} was preceded by {previous}")
reveal(guess, found[0])
assert found[1:] == line[:-1] and torch.equal(after[:, :21], stream[:, :21])

# %% [markdown]
# The first word has none before it, and attention must look somewhere: it takes the nearest place, its own. Everything else is moved all but exactly, with weights above 0.99, and what stood in the stream still stands there. A linear layer above can now read both, "I am *horse*" and "before me was *a*": half of what it takes to continue a pattern.

# %%
weights = torch.softmax((stream @ w_q) @ (stream @ w_k).T / 4, dim=-1)
assert weights.diagonal(-1).min() > 0.99
figure, ax = plots.axes("Each word looks at the one before it", "key", "query", size=(5.6, 4.2))
plots.heat_map(ax, weights, line, line)
ax.tick_params(axis="x", rotation=45)
plots.show(figure, "Attention weights of the hand-built head: large just left of the diagonal.")

# %% [markdown]
# ## Delete by adding
#
# The stream has few lanes and many layers want to use them. Nothing can be taken away, for a layer only adds. **How does a layer delete what another has written in the direction u?**

# %%
guess = None  # in your own words

# %%
reveal(guess, "it reads how much lies along u, and adds the negative of that")

# %%
# exercise: add_norm/erase_direction

# %%
check("add_norm/erase_direction", erase_direction)

# %%
erase_direction = mine("add_norm/erase_direction")

# %% [markdown]
# Erase from the free lanes that the word before was *a*. All other words keep their predecessors, and no other lane has changed.

# %%
u = torch.zeros(26)
u[free][vocab.index("a")] = 1
erased = erase_direction(after, u)
for name, x in (("before", after), ("after", erased)):
    print(f"{name:6}", (x @ u).round().int().tolist())
others = torch.arange(26) != 21 + vocab.index("a")
assert (erased @ u).abs().max() < 1e-6
assert torch.allclose(erased[:, others], after[:, others], atol=1e-6)

# %% [markdown]
# Can the feed-forward network of lesson 05 do it? It has a relu in the middle, which lets only what is positive pass. Two hidden units suffice: one reads x · u, the other - x · u, and relu(a) - relu(-a) = a.

# %%
v = F.normalize(torch.randn(26, generator=torch.Generator().manual_seed(1)), dim=-1)
w_1, w_2 = torch.stack([v, -v], dim=-1), torch.stack([-v, v])
x = torch.randn(9, 26, generator=torch.Generator().manual_seed(2))
written = position_wise(x, w_1, torch.zeros(2), w_2, torch.zeros(26))
assert torch.allclose(x + written, erase_direction(x, v), atol=1e-6)
print("left along v:", f"{((x + written) @ v).abs().max():.0e}")

# %% [markdown]
# It is the trick of the box above, turned round: there relu carried x along, here it takes a part away. One residual feed-forward layer erases a direction with 2 of its d_ff units. With bare layers the picture falls apart: they replace all lanes at once, and each must copy what it does not wish to lose.

# %% [markdown]
# ## Break it
#
# The trained stack of 32 blocks is at hand. Each character has a direction from which its score is read. Erase that of the letter *e* from the top of the stream. **Which characters' loss will suffer most?**

# %%
guess = None  # "e", "all" or "none"

# %%
needs("shakespeare")


# %% tags=["training"]
tokens, wanted = next(characters.batches(held_out, 16, 512, seed=0))
top, wanted = deep_both.streams(tokens)[-1].detach().flatten(0, 1), wanted.flatten()


@torch.no_grad()
def loss_by_character(stream):
    losses = F.cross_entropy(deep_both.scores(stream), wanted, reduction="none")
    return {c: losses[wanted == characters.encode(c)].mean().item() for c in " etaoin"}


# %% tags=["training"]
u = deep_both.scores.weight[characters.encode("e")].squeeze(0).detach()
before, after = loss_by_character(top), loss_by_character(erase_direction(top, u))
rises = {c: round(after[c] - before[c], 2) for c in before}
print(rises)
reveal(guess, max(rises, key=rises.get))
training.expect("e is then worse by over 0.5 nats", rises["e"] > 0.5, rises, deep_both)

# %% [markdown]
# - Give `Stack` a `wrap` of your own that multiplies what the layer found by 0.1 before adding. What does the gradient do in 32 blocks, without any norm?
# - Put `rms_norm` into `PreNorm` (its bias has nowhere to go: `lambda x, gain, bias: rms_norm(x, gain)`) and train. Do you miss the mean?
# - Divide by the variance instead of its root in your `layer_norm`, and check. Does the panel know?

# %% [markdown]
# ## What you take along
#
# Add: x + layer(x) hands the gradient down unharmed and keeps words apart. Norm: each word, by its own numbers, to mean 0 and variance 1, so that the sum cannot run away. Neither is enough alone. Post-norm is the paper's order and wants warm-up; pre-norm leaves a stream in which layers read, write and erase. Lesson 08 stacks such blocks to an encoder and a decoder.

# %% [markdown]
# Sources: Vaswani et al. 2017, sections 3.1 and 5.3; K. He et al. 2016 (residuals) and B. He et al. 2023, *Deep Transformers without Shortcuts*; Ba et al. 2016 (layer norm); Ioffe & Szegedy 2015 (batch norm); Zhang & Sennrich 2019 (RMSNorm); Li et al. 2018 (landscape); Xu et al. 2019 (gradients of norms); Shen et al. 2020 (batch norm and text); Xiong et al. 2020 (orders of norm); Dong et al. 2021 (rank); Elhage et al. 2021 (stream). Lectures: L1 to L5.
