# %% [markdown]
# # 05 · Feed-forward and masks
#
# **208 minutes, of which 132 are the core path · after lesson 04 · needs `shakespeare` (5.4 MB)**
#
# Attention computes averages. Average a line of verse once, and every token knows something about the others. Average it again and again: what is left of the tokens? And there is a second problem. A model that learns to write is shown whole lines, with the very tokens that it should predict. What stops it from reading the answer?

# %% [markdown]
# You will build the **feed-forward network**, the **causal mask**, the **padding mask**, shifted inputs, and the smallest block that can be stacked. At the end four people boast about their language models, and three of them cheat.
#
# You need the softmax (lesson 02), self-attention with $W_Q$, $W_K$, $W_V$ (lesson 03) and sinusoidal positions (lesson 04). Sections and exercises marked *optional* can be left out.

# %%
from collections.abc import Callable
import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from course_lib.data import batches, characters, needs, shakespeare, word_vectors
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, measuring, plots, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %%
from torch.nn import functional as F
from course_lib.attention import dot_scores, softmax
from course_lib.positions import sinusoidal
from course_lib.self_attention import SelfAttention, parameter_free, project
from course_lib.self_attention import scaled_dot_product_attention

# %% tags=["hide-input"]
drawings.transformer(
    {"feed-forward", "masked self-attention"},
    "The Transformer of 2017 with two of its parts lit: the feed-forward layer of each encoder and "
    "decoder block, and the masked self-attention at the bottom of each decoder block.",
)

# %% [markdown]
# ## Average the averages
#
# Take a line that you know, as word vectors (lesson 03), and send it through version 1 of self-attention again and again. After each layer, look up which word of Shakespeare's is nearest to each of the eight vectors. **After how many layers is it the same word for all eight?**

# %%
guess = None  # a number of layers

# %%
needs("shakespeare")

# %%
words = word_vectors.from_shakespeare()
line = "shall i compare thee to a summer's day"
nearest, x = [], words(line)
for layer in range(4):
    nearest.append([words.nearest(vector, 1)[0] for vector in x])
    print(layer, *nearest[layer])
    x = parameter_free(x)
reveal(guess, next(i for i, row in enumerate(nearest) if len(set(row)) == 1))
assert len(set(nearest[0])) == 8 and set(nearest[3]) == {"summer's"}
assert line.split()[int(words(line).norm(dim=-1).argmax())] == "summer's"

# %% [markdown]
# All eight are now nearest to *summer's*, the word whose vector has the largest norm: nothing is left to read. This is called **rank collapse**, or **oversmoothing**: all rows of $X$ become the same. It is no accident. The weights are positive and sum to one, so in each column $c$ an average cannot leave the range of the values that it averages:
#
# $$\min_j x_{jc} \;\le\; \sum_j \alpha_{ij}\, x_{jc} \;\le\; \max_j x_{jc}$$

# %% [markdown]
# And the range shrinks. If each of the $n$ weights is at least $a$, any two averages have $n a$ of their weight in common. So they differ by at most $1 - n a$ of the range.

# %% tags=["nbval-check-output"]
needs()
torch.manual_seed(0)
x = torch.randn(8, 16)
for layer in range(5):
    print(f"layer {layer}: column 1 goes from {x[:, 0].min():6.3f} to {x[:, 0].max():6.3f}")
    a = softmax(dot_scores(x, x) / 16**0.5).min()
    before, x = x, scaled_dot_product_attention(x, x, x)
    widest = (1 - 8 * a) * (before.amax(0) - before.amin(0))
    assert (x.amax(0) - x.amin(0) <= widest + 1e-6).all(), "every column shrinks"

# %% [markdown]
# Each layer of this kind narrows every column, and none can widen it again.
#
# ## A lone token
#
# But version 1 has no parameters. With learned values, $W_V$ can turn and stretch what is averaged. What does a stack of twelve such layers compute? Ask this of the simplest line there is, a line of *one* token. It can only attend to itself, so every weight is 1, and the values are all that is left:
#
# $$x \;\longmapsto\; x\, W_V^{(1)}\, W_V^{(2)} \cdots W_V^{(12)} \;=\; x\, W$$

# %%
torch.manual_seed(0)
layers = nn.Sequential(*[SelfAttention(16, 16, 16) for _ in range(12)])
one_matrix = torch.linalg.multi_dot([layer.w_v for layer in layers])
token = torch.randn(500, 1, 16)  # 500 lines of one token
assert torch.allclose(layers(token), token @ one_matrix, atol=1e-4)

# %% [markdown]
# For a lone token, twelve layers are one matrix, and so would be twelve hundred. What can no matrix do? Let a token have two properties, each +1 or −1: is its word one of praise, and is the word negated? *Good* and *not bad* are kind; *bad* and *not good* are not. So "kind" means that the two properties differ: **XOR**, the exclusive or.

# %% [markdown]
# No affine map $f(x) = x W + b$ computes XOR. The points $(1, 1)$ and $(-1, -1)$ have the same midpoint as $(1, -1)$ and $(-1, 1)$, so
#
# $$f(1, 1) + f(-1, -1) = f(1, -1) + f(-1, 1), \qquad\text{but XOR needs}\qquad 0 + 0 = 1 + 1.$$
#
# A threshold does not help: with both kind cases above it and both others below it, the two sums would differ, too. So at most three of the four cases can be right.

# %% tags=["nbval-check-output"]
names = ["not good", "good", "not bad", "bad"]
properties = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
kind = torch.tensor([0.0, 1, 1, 0])
with_constant = torch.cat([properties, torch.ones(4, 1)], dim=-1)
best = torch.linalg.lstsq(with_constant, kind.unsqueeze(-1)).solution
answers = (with_constant @ best).flatten()
print("wanted:", kind.tolist(), " best affine map:", [round(a, 2) for a in answers.tolist()])

# %% [markdown]
# The best affine map answers one half every time. We need something that is not linear, and that works on a single token.
#
# ## Build: the feed-forward network
#
# The Transformer's answer is a small network with one hidden layer. Its **ReLU**, $\max(0, \cdot)$, sets negative entries to zero:
#
# $$\underset{1 \times d}{\mathrm{FFN}(x)} = \max(0,\; \underset{1 \times d}{x}\;\underset{d \times d_{ff}}{W_1} + \underset{1 \times d_{ff}}{b_1})\;\underset{d_{ff} \times d}{W_2} + \underset{1 \times d}{b_2}$$

# %% tags=["hide-input"]
diagram, cell = drawings.Diagram(), 0.26
for name, shape, at, role, axes in (
    ("$X$", (4, 3), (0, 0), "stream", ("$n$", "$d$")),
    ("$W_1$", (3, 8), (2.5, 0), "network", ("$d$", "$d_{ff}$")),
    ("$H$", (4, 8), (6.5, 0), "network", ("$n$", "$d_{ff}$")),
    ("$W_2$", (8, 3), (9, 0), "network", ("$d_{ff}$", "$d$")),
    ("output", (4, 3), (11.4, 0), "stream", ("$n$", "$d$")),
):
    diagram.matrix(name, shape, at, role, axes=axes, cell=cell)
for x, columns in ((0, 3), (6.5, 8), (11.4, 3)):  # the second token
    diagram.matrix("", (1, columns), (x, cell / 2), "query", cell=cell)
diagram.text("×", (0.75, 0))
diagram.text("ReLU", (4.45, 0.32), size=drawings.SMALL)
diagram.arrow((3.75, 0), (5.05, 0))
diagram.text("×", (7.95, 0))
diagram.text("=", (10.15, 0))
diagram.show(
    "The feed-forward network as blocks. X, n by d, times W1, d by d_ff, and a ReLU give the "
    "hidden layer H, n by d_ff; times W2, d_ff by d, it gives the output, n by d. One row is "
    "marked from X to the output: each token goes through the network by itself. The two biases "
    "are left out.",
)

# %% [markdown]
# (The biases are left out.) Every row of $X$, that is every token, goes through the same network by itself. So it is called the **position-wise feed-forward network** (also: the MLP of the block). Vaswani et al. 2017 take $d_{ff} = 4d$: 2,048 hidden units for tokens of 512 numbers.

# %%
# exercise: feed_forward/position_wise

# %%
check("feed_forward/position_wise", feed_forward)

# %%
feed_forward = mine("feed_forward/position_wise")

# %% [markdown]
# Two hidden units are enough for XOR. **Find a $W_1$ (without $b_1$) such that the first unit is positive only for *good*, $(1, -1)$, and the second only for *not bad*, $(-1, 1)$.** Then add the two, and halve.

# %%
guess = None  # a matrix of 2 x 2 numbers: [[..., ...], [..., ...]]

# %% tags=["nbval-check-output"]
w_1 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
w_2 = torch.tensor([[0.5, 0.0], [0.5, 0.0]])
reveal(guess, w_1.tolist())
answers = feed_forward(properties, w_1, torch.zeros(2), w_2, torch.zeros(2))[:, 0]
print("wanted:", kind.tolist(), " feed-forward network:", answers.tolist())
assert torch.equal(answers, kind)

# %% tags=["hide-input"]
planes = ["tokens $x$", "$x W_1$: on one line", "after the ReLU: the line is folded"]
title = "$W_1$ lays the plane on a line, the ReLU folds it, and XOR is separable by a line\n"
figure, panels = plots.panels(title, planes, size=(9.6, 3.7))
shown = (properties, properties @ w_1, (properties @ w_1).relu())
for ax, points, way in zip(
    panels,
    shown,
    ([(-2, -2), (2, 2)], [(-2.7, 2.7), (2.7, -2.7)], [(0, 2.8), (0, 0), (2.8, 0)]),
):
    ax.plot(*zip(*way), ":" if ax is panels[0] else "-", color="0.75", linewidth=3, zorder=1)
    for value, colour in enumerate(plots.COLOURS[:2]):
        ax.scatter(*points[kind == value].T, s=70, color=colour, zorder=3)
    ax.set(xlim=(-3, 3), ylim=(-3, 3), xticks=[-2, 0, 2], yticks=[-2, 0, 2], aspect="equal")
for (x, y), name in zip(properties.tolist(), names):
    side = 1 if x > 0 else -1
    panels[0].text(x + 0.3 * side, y, name, ha="left" if x > 0 else "right", va="center")
panels[0].text(-2.8, 2.4, "kind", color=plots.COLOURS[1], weight="bold")
panels[0].text(2.8, -2.7, "not kind", color=plots.COLOURS[0], weight="bold", ha="right")
panels[0].text(2.1, 2.15, "fold", color="0.45")
panels[1].text(-1.7, 2.05, "not bad", va="center")
panels[1].text(1.7, -2.05, "good", ha="right", va="center")
panels[1].text(0.25, 0.3, "bad, not good")
panels[2].plot([-1.2, 2.2], [2.2, -1.2], color="black", linestyle="--", linewidth=1)
panels[2].text(2, 0.3, "good", ha="center")
panels[2].text(0.3, 2, "not bad", va="center")
panels[2].text(-0.3, -0.35, "bad,\nnot good", ha="right", va="top")
for ax, (right, up) in zip(panels, (("praise", "negated"), ("unit 1", "unit 2"))):
    ax.set(xlabel=right, ylabel=up)
panels[2].set(xlabel="unit 1", ylabel="unit 2")
plots.show(
    figure,
    "Three planes. The four tokens are the corners of a square, kind ones, orange, at two opposite "
    "corners; the dotted diagonal through the others, blue, is where the plane will be folded. "
    "After W1 they are on one line: not bad at one end (-2, 2), good at the other (2, -2), bad and "
    "not good at the origin. The ReLU folds that line at the origin: good is at (2, 0), not bad at "
    "(0, 2), and a straight line separates both from the origin.",
)

# %% [markdown]
# As a layer (given here) it owns its parameters. **In "attention, then feed-forward network" with $d = 512$ and $d_{ff} = 2{,}048$, what share of the parameters is in the network?** Count attention with four square matrices; lesson 06 adds the fourth.

# %%
# given: feed_forward.FeedForward

# %%
guess = None  # a share between 0 and 1

# %% tags=["nbval-check-output"]
in_attention = 4 * 512**2
in_feed_forward = sum(parameter.numel() for parameter in FeedForward(512, 2048).parameters())
print(f"attention {in_attention:,}, feed-forward {in_feed_forward:,}")
reveal(guess, in_feed_forward / (in_attention + in_feed_forward))

# %% [markdown]
# Two thirds of such a pair. (A whole model also has embeddings, and a decoder has cross-attention; lesson 09 counts real ones.) Attention moves information between tokens; the network works on each token alone, and mixes none:

# %%
torch.manual_seed(0)
x, network = torch.randn(6, 8), FeedForward(8, 32)
alone = torch.stack([network(token) for token in x])
assert torch.allclose(network(x), alone, atol=1e-5)

# %% [markdown]
# ## Is attention linear, then?
#
# For a lone token, yes. With more tokens the *weights* depend on the tokens too, and a softmax is not linear. What does training do with that?
#
# A line is now eight tokens, each with sixteen properties, and for *each token* the model must say whether its first two properties differ. The sixteenth property is always +1: our attention has no biases, and this gives it a constant.

# %% [markdown]
# Two models of two layers, 400 steps each. **What share of the answers is right with attention alone, and what share with a feed-forward network after each attention layer?** Guessing gives one half.

# %%
guess = None  # (share with attention alone, share with feed-forward networks)


# %% tags=["training"]
def lines(size, seed):
    generator = torch.Generator().manual_seed(seed)
    while True:
        bits = torch.randint(0, 2, (size, 8, 16), generator=generator)
        x = 2.0 * bits - 1
        x[..., -1] = 1  # the constant
        yield x, (bits[..., 0] ^ bits[..., 1]).float()


def answer_loss(model, batch):
    x, answers = batch
    return nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(-1), answers)


# %% tags=["training"]
def live(*parts):
    with training.seeded(SEED):
        model = nn.Sequential(*[part() for part in 2 * parts], nn.Linear(16, 1))
    training.train(model, lines(32, SEED), answer_loss, steps=400, learning_rate=0.003, seconds=20)
    x, answers = next(lines(1000, seed=100))
    return model, ((model(x).squeeze(-1) > 0) == (answers > 0)).float().mean().item()


attend, think = lambda: SelfAttention(16, 16, 16), lambda: FeedForward(16, 64)
(plain, without), (full, with_network) = live(attend), live(attend, think)
shares = round(without, 2), round(with_network, 2)
reveal(guess, shares)
claim = "after 400 steps, attention alone is below 0.8 and with feed-forward networks above 0.85"
training.expect(claim, shares[0] < 0.8 and shares[1] > 0.85, shares, plain, full)

# %% [markdown]
# With the networks it is far ahead. But 400 steps only tell how *fast* a model learns. Stored by `make results LESSON=05`: three stacks, trained for 3,000 steps from three seeds each: attention, attention without that constant, and attention with networks. **Where will attention *with* the constant end?**

# %%
guess = None  # a share between 0 and 1

# %%
needs()
kept = results.load("two_cures")["figures"]


def ends(task, model, key="accuracy"):
    """List what each seed's run has at its end."""
    found = [run[key] for run in kept[task][model]]
    return [values[-1] if key == "accuracy" else values for values in found]


reveal(guess, round(sum(ends("XOR", "attention")) / 3, 2))


# %% tags=["hide-input"]
def over_steps(ax, task, labels):
    kinds = [*kept["copy"], "attention, no constant"]
    for place, (name, runs) in enumerate(kept[task].items()):
        colour = plots.COLOURS[kinds.index(name)]
        steps = [kept["every"] * i for i in range(len(runs[0]["accuracy"]))]
        for run in runs:
            ax.plot(steps, run["accuracy"], color=colour, linewidth=3 - 0.6 * place)
        for text, y in labels[name]:
            ax.text(1.02 * steps[-1], y, text, color=colour, va="center", size="small")
    ax.axhline(0.5, color="0.5", linestyle="--", linewidth=1)
    ax.text(0.99 * steps[-1], 0.475, "guessing", color="0.4", size="small", ha="right", va="center")
    ax.set(ylim=(0.45, 1.03), xlim=(0, steps[-1]))


title = "XOR: attention alone comes to 0.97, given a constant property (three seeds)"
figure, ax = plots.axes(title, "steps", "share of answers right (held-out lines)", size=(8, 3.6))
labels = {
    "attention, feed-forward": [("attention, feed-forward", 1.0)],
    "attention": [("attention", 0.95)],
    "attention, no constant": [("attention, no constant", 0.51)],
}
over_steps(ax, "XOR", labels)
plots.show(
    figure,
    "Share of right answers against steps up to 3,000, three seeds each. With feed-forward layers "
    "it passes 0.95 within 300 steps and ends at 1.00. Attention alone passes 0.95 between 500 and "
    "800 steps and ends at 0.97. Attention alone without a constant property stays at 0.50.",
)

# %%
for name in kept["XOR"]:
    early = [run["accuracy"][400 // kept["every"]] for run in kept["XOR"][name]]
    print(f"{name:24} at 400 steps {min(early):.2f} to {max(early):.2f},", end=" ")
    print(f"at 3,000 steps {min(ends('XOR', name)):.2f} to {max(ends('XOR', name)):.2f};", end=" ")
    alone = ends("XOR", name, "alone")
    print(f"then, on lone tokens: {min(alone):.2f} to {max(alone):.2f}")
assert min(ends("XOR", "attention")) > 0.9 and max(ends("XOR", "attention", "alone")) < 0.77
assert min(ends("XOR", "attention, feed-forward", "alone")) > 0.99

# %% [markdown]
# (After 400 steps the stored runs are ahead of yours: their learning rate falls over 3,000 steps, not 400. Seed 0 even began with your weights and your batches. The lone tokens are 8,000 random ones, so 0.76 is three quarters, up to chance.)

# %% [markdown]
# > **Where the lectures go too far.** L1 and L2 write: "No nonlinearities for deep learning! It's all just weighted averages", and, with L4, that "stacking more self-attention layers just re-averages value vectors". For a lone token that is a theorem, and the same model gets at most three of the four cases right. But weights that depend on the tokens *are* a nonlinearity, only not an elementwise one. Training uses it: attention alone gets XOR nearly right, given time, other tokens and a constant property. The feed-forward network learns faster, and needs no other tokens.

# %% [markdown]
# ### Why 0.97? (optional)
#
# The curve of attention alone is flat from step 1,000 on. Which answers stay wrong? Let us call the token with both properties flipped the *opposite*; both have the same answer. We sort the answers by the token's case, and by whether its line has an opposite:

# %%
for seed, run in enumerate(kept["XOR"]["attention"]):
    without, beside = min(run["by_opposite"])
    others = min(share for row in run["by_opposite"] if row[0] != without for share in row)
    print(f"seed {seed}: one case is right in {without:.3f} without an opposite,", end=" ")
    print(f"in {beside:.3f} with one; everything else in {others:.3f} or more")
    assert without == 0 and beside > 0.99 and others > 0.95
ceiling = 1 - (3 / 4) ** 7 / 4
assert all(abs(share - ceiling) < 0.005 for share in ends("XOR", "attention"))
print(f"1 - (3/4)^7 / 4 = {ceiling:.3f}")

# %% [markdown]
# So one of the four cases is learned only through its opposite: it is never right without one, and nearly always with one. That case has probability 1/4, and each of the seven other tokens is not its opposite with probability 3/4. A model that answers like this is right for
#
# $$1 - \tfrac14 \left(\tfrac34\right)^{7} = 0.967$$

# %% [markdown]
# ### Why exactly one half without the constant? (optional)
#
# Scores are products of two tokens, so $X$ and $-X$ have the same weights, and their values have opposite signs. A stack of attention layers is an odd function: $f(-X) = -f(X)$. But XOR has the same answers for $X$ and $-X$.

# %% [markdown]
# The final layer takes an odd $u$ from $f(X)$ and adds its bias $b$, so the logits are $b + u$ and $b - u$. The loss of a logit is convex: the mean of the two losses is at least the loss at $b$. As half of the answers are 1, $b = 0$ is best. So the best that training can reach is guessing, with a loss of $\ln 2 \approx 0.693$.

# %%
torch.manual_seed(0)
stack, x = nn.Sequential(*[SelfAttention(16, 16, 16) for _ in range(2)]), torch.randn(8, 16)
assert torch.allclose(stack(-x), -stack(x), atol=1e-5)
losses = ends("XOR", "attention, no constant", "loss")
print("loss after 3,000 steps without the constant, three seeds:", [f"{x:.3f}" for x in losses])
assert all(abs(loss - 0.693) < 0.01 for loss in losses)

# %% [markdown]
# ## Does the network keep tokens apart? (optional)
#
# So the network adds what attention lacks. Does it also stop the collapse? To see, measure how far the tokens of a line are from their mean $\bar x$, relative to their size:
#
# $$\mathrm{spread}(X) = \frac{\lVert X - \mathbf{1}\,\bar x \rVert}{\lVert X \rVert} \qquad \bar x = \frac1n \sum_{i=1}^{n} x_i$$

# %% [markdown]
# Here $\lVert\cdot\rVert$ is the **Frobenius norm**, the root of the sum of all squares; $\mathbf 1$ is a column of $n$ ones, and $\bar x$ a row, $1 \times d$. The spread is 1 if the mean is zero, and 0 if all tokens are the same.


# %%
def spread(x):
    apart = x - reduce(x, "... n d -> ... 1 d", "mean")
    return (apart.norm(dim=(-2, -1)) / x.norm(dim=(-2, -1))).mean().item()


def spreads(x, parts, residual=False, layers=12):
    measured = [spread(x)]
    for _ in range(layers):
        for part in parts:
            out = part().double()(x).detach()
            x = x + out if residual else out
        measured.append(spread(x))
    return measured


# %% [markdown]
# Our line, each token scaled to the norm 8 (about that of 64 random entries of variance 1), goes through twelve layers with random weights, drawn forty times: attention alone, and attention with feed-forward networks. A third stack adds each part's input to its output; this is a **residual connection**, and lesson 07 is about it. **Without residual connections, which has the larger spread after three layers: attention alone, or attention with networks?**

# %%
guess = None  # "attention" or "feed-forward"

# %%
needs("shakespeare")

# %%
attend, think = lambda: SelfAttention(64, 64, 64), lambda: FeedForward(64, 256)
setups = {
    "attention": ([attend], False),
    "attention, feed-forward": ([attend, think], False),
    "attention, feed-forward, residual": ([attend, think], True),
}
tokens = 8 * nn.functional.normalize(words(line), dim=-1).double()


# %%
def forty_draws(parts, residual=False, layers=12):
    runs = []
    for draw in range(40):
        with training.seeded(draw):
            runs.append(spreads(tokens, parts, residual, layers))
    return torch.tensor(runs)


def geometric_mean(runs):
    return runs.log().mean(0).exp().tolist()


# %%
curves = {name: forty_draws(*setup) for name, setup in setups.items()}
means = {name: geometric_mean(runs) for name, runs in curves.items()}
alone, with_both, with_residual = means.values()
reveal(guess, "attention" if alone[3] > with_both[3] else "feed-forward")
print(f"after three layers: {alone[3]:.0e}, {with_both[3]:.0e} with networks")
print(f"with residual connections: {with_residual[3]:.2f}, and {with_residual[12]:.2f} after 12")


# %% tags=["hide-input"]
def middle_half(runs):
    return runs.quantile(torch.tensor([0.25, 0.75]), dim=0)


title = "Untrained: tokens become alike within four layers; residual connections delay it"
figure, ax = plots.axes(title, "layers", "spread", size=(8, 3.8))
places = {
    "attention": (3.1, 3e-5, "attention"),
    "attention, feed-forward": (1.9, 1e-8, "attention,\nfeed-forward"),
    "attention, feed-forward, residual": (7, 0.6, "attention, feed-forward, residual"),
}
for (name, runs), colour in zip(curves.items(), plots.COLOURS):
    ax.semilogy(means[name], color=colour)
    ax.fill_between(range(13), *middle_half(runs), color=colour, alpha=0.2, linewidth=0)
    x, y, text = places[name]
    ax.text(x, y, text, color=colour, size="small", va="center", ha="right" if x == 1.9 else "left")
ax.axhline(1e-15, color="0.6", linestyle="--", linewidth=1)
ax.text(12, 3e-15, "all alike, up to float64 rounding", color="0.4", size="small", ha="right")
ax.set(ylim=(1e-17, 5), xticks=range(0, 13, 2))
plots.show(
    figure,
    "Spread against layers, logarithmic: geometric means of forty draws, with bands of the middle "
    "half. Attention alone falls from 0.8 to 3e-7 in three layers and to rounding error in four; "
    "with feed-forward networks to 4e-9 in three. With residual connections it falls slowly, from "
    "0.8 to 0.04 after twelve layers.",
)
assert with_both[3] < alone[3] < 0.001 and with_residual[3] > 0.2
assert alone[3] / alone[2] < alone[2] / alone[1], "each fall is steeper than the last"

# %% [markdown]
# A surprise: with these first weights the feed-forward networks do not stop the collapse, they speed it up. The main reason is size. The ReLU removes about half of the squared norm, so each network shortens the tokens to about $1/\sqrt2$ of their norm. The next layer's scores are then half as large, its softmax is flatter, and it averages more. To test this, put the norm back; or shorten the tokens without networks:


# %%
class SameNorm(FeedForward):
    def forward(self, x):
        out = super().forward(x)
        return out * x.norm() / out.norm()


class Shorten(nn.Module):
    def forward(self, x):
        return x / 2**0.5


# %%
controls = {
    "attention": [attend],
    "attention, feed-forward": [attend, think],
    "attention, feed-forward, norm put back": [attend, lambda: SameNorm(64, 256)],
    "attention, tokens only shortened": [attend, Shorten],
}
third = {name: geometric_mean(forty_draws(parts, layers=3))[3] for name, parts in controls.items()}
for name, value in third.items():
    print(f"{name:40} spread after three layers {value:.0e}")
alone, with_networks, put_back, shortened = third.values()
assert put_back > 10 * with_networks and shortened < alone / 10
with training.seeded(0):
    ratios = [(think().double()(tokens).norm() / tokens.norm()).item() for _ in range(40)]
print(f"a network's output has {sum(ratios) / 40:.2f} of its input's norm")

# %% [markdown]
# With the norm put back, the factor of about 70 falls to about 2; shortening alone gives about 30.

# %% [markdown]
# ### Why does the residual curve fall? (optional)
#
# It falls slowly, but it falls. Each layer still adds averages, which are nearly the same for all tokens. The tokens' own parts are not lost, they even grow. But the common part, the mean, grows faster:

# %%
needs("shakespeare")

# %%
with training.seeded(0):
    x = tokens
    for layer in range(13):
        mean = x.mean(-2, keepdim=True).expand_as(x)
        if layer % 4 == 0:
            print(f"layer {layer:2}: own parts {(x - mean).norm():5.0f}, mean {mean.norm():6.0f}")
        for part in (attend, think):
            x = x + part().double()(x).detach()

# %% [markdown]
# ## It depends on the first weights (optional)
#
# > **Where an abstract says more than its paper.** Dong et al. 2021 prove the collapse of pure attention: "without skip connections or multi-layer perceptrons (MLPs), the output converges doubly exponentially to a rank-1 matrix. On the other hand, skip connections and MLPs stop the output from degeneration" (abstract; an MLP is our feed-forward network). Their introduction says: "MLPs can slow down the convergence by increasing their Lipschitz constant" (by how much a layer can stretch a difference).

# %% [markdown]
# So it depends on how large the weights are, and with our first weights the networks stretch too little. Let us vary the size. We multiply $W_1$ by a gain of 0.5, 1, 1.41, 2, 3 or 4 and look at the spread after three layers. As a control, attention *without* networks gets the same gain on $W_V$. **What is the smallest of these gains at which a stack with networks collapses more slowly than attention alone with its original weights?**

# %%
guess = None  # one of the six gains


# %%
def with_gain(module, name, gain):
    getattr(module, name).data *= gain
    return module


def after_three(gain, networks):
    values = [lambda: with_gain(SelfAttention(64, 64, 64), "w_v", gain)]
    first = [attend, lambda: with_gain(FeedForward(64, 256), "w_1", gain)]
    return forty_draws(first if networks else values, layers=3)[:, 3]


# %%
gains = [0.5, 1, 1.41, 2, 3, 4]
swept = {networks: [after_three(g, networks) for g in gains] for networks in (True, False)}
middle = {key: [geometric_mean(runs) for runs in all_] for key, all_ in swept.items()}
reveal(guess, next(g for g, value in zip(gains, middle[True]) if value > middle[False][1]))

# %% tags=["hide-input"]
title = "Up to a gain of 3, larger weights slow the collapse, with networks or without"
figure, ax = plots.axes(title, "gain", "spread after three layers", size=(8, 3.8))
labels = {True: "attention and networks,\ngain on $W_1$", False: "attention alone,\ngain on $W_V$"}
for (networks, runs), colour in zip(swept.items(), (plots.COLOURS[1], plots.COLOURS[0])):
    half = middle_half(torch.stack(runs, dim=1))
    ax.loglog(gains, middle[networks], "o-", color=colour)
    ax.fill_between(gains, *half, color=colour, alpha=0.2, linewidth=0)
    y = 8e-3 if networks else 1.2e-5
    ax.text(4.15, y, labels[networks], color=colour, size="small", va="center")
ax.axhline(middle[False][1], color="0.5", linestyle="--", linewidth=1)
text, y = "attention alone, original weights", middle[False][1] / 8
ax.text(4.1, y, text, color="0.4", size="small", ha="right")
ax.set(xticks=gains, xticklabels=[f"{gain:g}" for gain in gains], ylim=(1e-13, 1))
ax.minorticks_off()
plots.show(
    figure,
    "Spread after three layers against the gain, both logarithmic: geometric means of forty draws, "
    "with bands of the middle half. With networks and the gain on W1 it rises from 4e-12 at 0.5 "
    "over 4e-9 at 1 and 3e-6 at 2 to 7e-4 at 4, and crosses attention alone with its original "
    "weights, 3e-7, between 1.41 and 2. Attention alone with the gain on W_V is above it up to 3 "
    "and falls at 4.",
)
assert middle[True][1] < middle[False][1] < middle[True][4], "networks: worse at 1, better at 3"
assert all(network < values for network, values in zip(middle[True][:5], middle[False][:5]))

# %% [markdown]
# So networks slow the collapse if their weights are large. (The usual start of ReLU networks has a gain of $\sqrt 2 \approx 1.41$, which about puts the norm back; here that is not quite enough.) With zero biases, a gain $g$ on $W_1$ multiplies the output by $g$. A factor does not change the spread; it changes the *scores* of the next layer, by $g^2$. So larger values do the same without a network: in the figure, attention alone keeps the larger spread up to a gain of 3.

# %% [markdown]
# ## Two diseases and two cures
#
# Weights need not stay random. Can training undo the collapse? The task is now as easy as can be: *copy* the token's first property. But the stacks have six layers. All of them train for the same 2,000 steps.

# %%
needs()
short = {"attention": "attention", "attention, feed-forward": "+ feed-forward"}
short |= {"attention, residual": "+ residual", "attention, feed-forward, residual": "+ both"}
for name in kept["copy"]:
    before, after = (ends("copy", name, when) for when in ("before", "after"))
    print(f"{short[name]:15} spread before training {max(before):.0e};", end=" ")
    runs = [f"{share:.2f} ({last:.0e})" for share, last in zip(ends("copy", name), after)]
    print("right at the end (spread):", ", ".join(runs))

# %% tags=["hide-input"]
title = "Six layers learn to copy with residual connections; without them, one run of six does"
figure, ax = plots.axes(title, "steps", "share of answers right (held-out lines)", size=(8, 3.6))
labels = {
    "attention": [("attention, two runs", 0.66), ("attention, one run", 0.92)],
    "attention, feed-forward": [("with feed-forward", 0.61)],
    "attention, residual": [("with residual", 0.965)],
    "attention, feed-forward, residual": [("with both", 1.01)],
}
over_steps(ax, "copy", labels)
plots.show(
    figure,
    "Share of right answers against steps up to 2,000, three seeds. With residual connections, "
    "with or without feed-forward networks, all runs are above 0.95 after 100 steps. Without them, "
    "one run of attention alone rises to 1.00 at 1,600 steps; the other two, and all three with "
    "feed-forward networks, stay at 0.63 or 0.64. The dashed line of guessing is at 0.5.",
)

# %% [markdown]
# Why do the failing runs still get 64 % right, and not 50 %? Even after training their tokens are all alike: the spreads in brackets are below 1e-7. So they can give only one answer to a whole line. The best one is the answer of its majority. With $k$ ones among eight tokens it is right for $\max(k, 8 - k)$ of them:
#
# $$\frac18 \sum_{k=0}^{8} \binom{8}{k}\, 2^{-8} \max(k, 8-k) \;=\; 0.637$$

# %%
from math import comb

majority = sum(comb(8, k) * max(k, 8 - k) for k in range(9)) / 8 / 2**8
print(f"the majority is right for {majority:.3f}")
stuck = [*sorted(ends("copy", "attention"))[:2], *ends("copy", "attention, feed-forward")]
assert all(abs(share - majority) < 0.01 for share in stuck) and len(stuck) == 5
for name in ("attention", "attention, feed-forward"):
    both = zip(ends("copy", name), ends("copy", name, "after"))
    assert all((last < 1e-7) == (share < 0.7) for share, last in both)
for name in ("attention, residual", "attention, feed-forward, residual"):
    assert all(run["accuracy"][1] > 0.95 for run in kept["copy"][name]), "after 100 steps"

# %% [markdown]
# So there are two diseases and two cures. The first: for a lone token attention is linear, and with other tokens in the line it can learn XOR through its weights, but slowly. The cure is the feed-forward network. The second: in a deep stack all tokens become alike, and within 2,000 steps only one run of six learned to *copy*. Here the network did not help. The lectures prescribe it against re-averaging; it cures the first disease. The cure of the second is the residual connection: lesson 07.

# %% [markdown]
# ## The future
#
# Now the second problem of the opening. A **language model** predicts, at each token, the next one. In training, the next token is right there in the line, and attention connects everything with everything. The cheapest way to predict it is to look at it, and a model that does that learns to copy and nothing else.
#
# What should token $i$ see? Itself and the tokens before it. The **causal mask** hides the rest: their scores are set to $-\infty$, and the softmax makes them zeros.

# %% [markdown]
# $$e_{ij} = \begin{cases} q_i \cdot k_j / \sqrt{d_k} & j \le i \\ -\infty & j > i \end{cases} \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l \le i} \exp(e_{il})}$$
#
# For example, let *compare* in "shall i compare thee" have the scores $(1, 3, 2, 4)$. Its largest score is for *thee*, which it must not see:
#
# $$\mathrm{softmax}(1, 3, 2, -\infty) = \frac{(e^1, e^3, e^2, 0)}{e^1 + e^3 + e^2} = \frac{(2.7,\; 20.1,\; 7.4,\; 0)}{30.2} = (0.09,\; 0.67,\; 0.24,\; 0)$$

# %%
scores = torch.tensor([[2.0, 0, 1, 3], [0, 1, 2, 1], [1, 3, 2, 4], [2, 0, 1, 1]])
visible, tokens_shown = torch.ones(4, 4).bool().tril(), "shall i compare thee".split()
print([round(weight, 2) for weight in softmax(scores, visible)[2].tolist()])

# %% tags=["hide-input"]
weights = softmax(scores, visible).masked_fill(~visible, torch.nan)
title = "Scores above the diagonal are masked, and each row's softmax is over what is left"
figure, panels = plots.panels(title, ["scores", "masked scores", "weights"], size=(9.6, 3.2))
for ax, numbers in zip(panels, (scores, scores.masked_fill(~visible, torch.nan), weights)):
    if numbers is weights:
        image = ax.imshow(numbers, vmin=0, vmax=1)
    else:
        blank = torch.full((4, 4, 4), 1.0) * ~numbers.isnan().unsqueeze(-1)
        ax.imshow(blank)
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.6", hatch="///")
    for i, row in enumerate(numbers.tolist()):
        for j, number in enumerate(row):
            if number == number:
                dark = numbers is weights and number <= 0.5
                text = f"{number:.2f}" if numbers is weights else f"{number:g}"
                ax.text(j, i, text, ha="center", va="center", color="white" if dark else "black")
    ax.set_xticks(range(4), tokens_shown, rotation=30)
    ax.set_yticks(range(4), tokens_shown if numbers is scores else [])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
panels[0].set(ylabel="query")
for ax in panels:
    ax.set(xlabel="key")
figure.colorbar(image, ax=panels[2], label="weight")
plots.show(
    figure,
    "Three tables over shall, i, compare, thee. In the scores every cell has a number. In the "
    "masked scores the cells above the diagonal are hatched. The weights of each row sum to one "
    "over the cells that are left: 1; then 0.27 and 0.73; then 0.09, 0.67 and 0.24; then 0.53, "
    "0.07, 0.20 and 0.20.",
)

# %% [markdown]
# In this course a mask is boolean, and True means "may look". One more case: when a model *writes*, the keys of all earlier tokens exist already, and only the newest tokens are queries. So let the $n_q$ queries be the *last* ones of $n_k$ keys. The diagonal edge of the mask then ends in its bottom-right corner:
#
# $$M_{ij} = (\,j \le i + n_k - n_q\,) \qquad M_{2 \times 4} = \begin{pmatrix} 1 & 1 & 1 & 0 \\ 1 & 1 & 1 & 1 \end{pmatrix}$$

# %%
# exercise: masks/causal

# %%
check("masks/causal", causal_mask)

# %%
causal_mask = mine("masks/causal")

# %% [markdown]
# ## Why a mask? Two slow ways
#
# Why a mask, and not just shorter lines? L1: "At every timestep, we could change the set of **keys and queries** to include only past words. (Inefficient!)" Count the scores that are computed for $n$ tokens:
#
# | | scores |
# |:-|:-|
# | L1's slow way: for each $i$, all pairs of the first $i$ tokens | $\sum_i i^2 \approx n^3/3$ |
# | for each $i$, only the newest query, over keys that are kept | $\sum_i i \approx n^2/2$ |
# | one masked product | $n^2$ |

# %% [markdown]
# The second way computes even less than the mask. But its steps come one after the other. It is how a model *writes*: the **key-value cache** of lesson 09. In training all tokens are known, so the masked product does them at once.
#
# ### A race (optional)
#
# **For 512 tokens, how many times as much processor time does L1's slow way take as the masked product?**

# %%
guess = None  # how many times as much

# %%
from time import process_time


@torch.no_grad()
def race(n):
    x, mask, layer = torch.randn(n, 64), causal_mask(n), SelfAttention(64, 64, 64)
    q, k, v = project(x, layer.w_q, layer.w_k, layer.w_v)
    ways = {
        "anew": lambda: [layer(x[: i + 1])[-1] for i in range(n)],
        "newest": lambda: [
            scaled_dot_product_attention(q[i : i + 1], k[: i + 1], v[: i + 1])[0] for i in range(n)
        ],
        "mask": lambda: list(layer(x, mask)),
    }
    return [min(timed(way, layer(x, mask)) for _ in range(3)) for way in ways.values()]


# %%
def timed(way, expected):
    start = process_time()
    result = way()
    seconds = process_time() - start
    assert torch.allclose(torch.stack(result), expected, atol=1e-4), "all ways agree"
    return seconds


lengths = (16, 32, 64, 128, 256, 512)
race(64)  # the first run of anything is slow
slow, newest, fast = torch.tensor([race(n) for n in lengths]).T
by, with_keys = (slow / fast)[-1].item(), (slow / newest)[-1].item()
reveal(guess, round(by))
print(f"by counting: n/3 = {512 / 3:.0f}")

# %% tags=["hide-input"]
claim = "against all pairs anew, one product is over ten times as fast, kept keys are between"
measuring.expect(claim, by > 10 and by > with_keys > 1, f"{by:.0f} and {with_keys:.0f} times")
title = "Three ways to the same numbers: one masked product is the fastest"
figure, ax = plots.axes(title, "tokens", "processor time, seconds", size=(7.4, 3.8))
for seconds, name, colour in zip(
    (slow, newest, fast),
    ("all pairs anew for each token", "newest query, keys kept", "one masked product"),
    plots.COLOURS,
):
    ax.loglog(lengths, seconds, "o-", color=colour)
    ax.text(560, seconds[-1], name, color=colour, va="center", size="small")
for power, last in ((3, slow[-1].item()), (2, fast[-1].item())):
    guide = [last / 3 * (n / 512) ** power for n in lengths[3:]]
    ax.loglog(lengths[3:], guide, ":", color="0.6", linewidth=1)
    ax.text(lengths[3], guide[0], f"$n^{power}$ ", color="0.4", size="small", ha="right")
ax.set_xticks(lengths, lengths)
ax.minorticks_off()
plots.show(
    figure,
    "Seconds against tokens, both logarithmic. Dotted guides have the slopes of n cubed and n "
    "squared. At 512 tokens all pairs anew for each token is the "
    "slowest way, the newest query with kept keys is between, and one masked product is the "
    "fastest, over ten times faster than the slowest.",
)

# %% [markdown]
# Counting says $n/3 = 171$. The measured factor differs from run to run and from machine to machine: each product has a fixed overhead, and the projections take time too.

# %% [markdown]
# ## Two details that matter
#
# The mask has two details on which the lectures differ: whether it hides the diagonal, and whether it comes before the softmax or after it.

# %% [markdown]
# > **Where the lectures disagree (D01).** May a token look at itself? L2, L3 and L4 hide the keys $j > i$. L1 hides $j \ge i$, the diagonal too. Then the first token has no key at all: its scores are all $-\infty$. Here is what three implementations return for it, each the weighted sum of the values:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
scores, values = torch.randn(3, 3), torch.randn(3, 2)
strict = causal_mask(3) & ~torch.eye(3, dtype=torch.bool)
plain_softmax = torch.softmax(scores.masked_fill(~strict, -torch.inf), dim=-1) @ values
fused = nn.functional.scaled_dot_product_attention(*3 * [values[None]], attn_mask=strict)
print("torch.softmax           ", plain_softmax[0].tolist())
print("our softmax             ", (softmax(scores, strict) @ values)[0].tolist())
print("torch's fused attention ", fused[0, 0].tolist())
assert plain_softmax[0].isnan().all() and not fused[0, 0].any()
assert not softmax(scores, causal_mask(3)).isnan().any()

# %% [markdown]
# Two answers. NaN ends any training; zeros mean that the first token reads nothing, not even itself. The mask that hides $j > i$ has no such row. Is it safe, although a token then sees itself? That depends on the inputs, as we shall see.

# %% [markdown]
# > **Where the lectures disagree (D11).** All lectures set scores to $-\infty$ *before* the softmax. But summaries in L1 and L2 can be read as setting weights to 0 *after* it: "Mask out the future by artificially setting attention weights to 0!" Is that the same? **Take the scores (1, 3, 2, 4) of *compare* again. If the last weight is set to zero after the softmax, what does the row sum to?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
row, may = torch.tensor([1.0, 3.0, 2.0, 4.0]), torch.tensor([True, True, True, False])
before, after = softmax(row, may), softmax(row) * may
reveal(guess, round(after.sum().item(), 2))
print("before:", [round(weight, 2) for weight in before.tolist()])
print("after: ", [round(weight, 2) for weight in after.tolist()])
assert torch.allclose(after / after.sum(), before), "the same, if the row is divided by its sum"

# %% [markdown]
# The row has faded: most of its weight was on the hidden token. Dividing by the sum repairs it, as the assertion shows. Without the division, something worse happens: hidden values are not added, but hidden scores are still in the *denominator*. How much is missing tells what was there. Change the last token, and look at the first one's weights:

# %%
torch.manual_seed(0)
x, other = torch.randn(2, 6, 4)
changed = torch.cat([x[:-1], other[-1:]])
for name, weights in {
    "before": lambda x: softmax(dot_scores(x, x), causal_mask(6)),
    "after": lambda x: softmax(dot_scores(x, x)) * causal_mask(6),
}.items():
    moved = (weights(changed)[0] - weights(x)[0]).abs().max().item()
    print(f"{name:7} the first token's weights move by {moved:.3f}")
    assert (moved > 0) == (name == "after")

# %% [markdown]
# Remember this leak: a model will use it before the lesson ends.
#
# ## Build: shift right
#
# A token may see itself, then. But if token $i$ is the input at position $i$ *and* the target at position $i$, there is nothing to predict. So the decoder's inputs are its targets $t$, shifted one position to the right, behind a start token:
#
# $$(\text{start},\; t_1,\; t_2,\; \dots,\; t_{n-1}) \;\longmapsto\; (t_1,\; t_2,\; t_3,\; \dots,\; t_n)$$

# %% tags=["hide-input"]
diagram, size = drawings.Diagram(), (1.8, 0.7)
targets, shifted = "shall i compare thee".split(), "start shall i compare".split()
rows = {}
for y, name, shown, role in (
    (0, "targets", targets, "value"),
    (2.2, "inputs", shifted, "stream"),
    (5.2, "to predict", targets, "value"),
):
    diagram.text(name, (-0.2, y), align="right")
    places = [(1.2 + 2.2 * i, y) for i in range(4)]
    rows[name] = [diagram.box(t, at, role, size=size) for t, at in zip(shown, places)]
diagram.box("decoder, causal mask", (4.5, 3.7), "query", size=(8.4, 0.8))
for target, following in zip(rows["targets"], rows["inputs"][1:]):
    corners = [(target.at[0], 0.5), (following.at[0], 1.5)]
    diagram.arrow(target, following, via=corners, role="value")
diagram.text("not read", (7.8, 0.6), size=drawings.SMALL, colour="0.4")
for read, said in zip(rows["inputs"], rows["to predict"]):
    diagram.arrow(read, (read.at[0], 3.3))
    diagram.arrow((said.at[0], 4.1), said)
diagram.show(
    "Aligned rows of four positions. Targets: shall, i, compare, thee. Arrows lead from each "
    "target but the last one position to the right, into the inputs: start, shall, i, compare. "
    "Above, a decoder with a causal mask must predict each position's target: shall from start; "
    "i from start, shall; and so on."
)

# %%
# exercise: masks/shift_right

# %%
check("masks/shift_right", shift_right)

# %%
shift_right = mine("masks/shift_right")

# %% tags=["nbval-check-output"]
numbers = {"start": 0, "shall": 1, "i": 2, "compare": 3, "thee": 4}
names = list(numbers)
targets = torch.tensor([1, 2, 3, 4])
inputs = shift_right(targets, numbers["start"])
for i, target in enumerate(targets.tolist()):
    read = " ".join(names[token] for token in inputs[: i + 1].tolist())
    print(f"position {i}: has read {read!r:23} and must predict {names[target]!r}")

# %% [markdown]
# One line gives $n$ examples in one pass, which is why we mask in training. And the diagonal is safe: the input at a position is the token *before* its target. L1's figure begins with [START], so its inputs are shifted as well, and its $j \ge i$ hides one token more than it must.
#
# ### Without the shift (optional)
#
# Here is a variant of our own, not L1's: do *not* shift, and hide $j \ge i$ instead. **Does output 3 then still depend on token 3, the one that it must predict?**

# %%
guess = None  # True or False

# %%
torch.manual_seed(0)
x, layer = torch.randn(5, 8), SelfAttention(8, 8, 8)
other = x.clone()
other[3] = torch.randn(8)
strict = causal_mask(5) & ~torch.eye(5, dtype=torch.bool)
moved = (layer(x, strict) - layer(other, strict)).abs().amax(-1) > 1e-6
reveal(guess, moved[3].item())
assert moved.tolist() == [False, False, False, True, True]

# %% [markdown]
# It does. Token 3 is not among its own keys any more, but it is still its own *query*, and another query gives other weights. With a residual connection it would be in the sum anyway. So shift the inputs, and hide $j > i$.
#
# ## Lines of unequal length
#
# The causal mask hides the future. A second mask hides what is not there. A batch is a rectangle, but lines have unequal lengths, so short ones are filled up with **padding**. How much padding is there in batches of 32 lines of Shakespeare?

# %%
needs("shakespeare")

# %%
text = [line.strip() for line in shakespeare.complete_works().splitlines()]
verse = [characters.encode(line).tolist() for line in text[20_000:30_000] if line]
by_length = batches.similar_lengths(verse, 32, 0, len)
at_random = batches.similar_lengths(verse, 32, 0, lambda line: 0)  # the sorting does nothing
padded = {}
for name, drawn in {"random order": at_random, "similar lengths": by_length}.items():
    full = [batches.pad(next(drawn), -1) for _ in range(200)]
    padded[name] = (sum((batch < 0).sum() for batch in full) / sum(map(Tensor.numel, full))).item()
print({name: f"{share:.0%}" for name, share in padded.items()})

# %% [markdown]
# Batches of lines of similar length have hardly any. In an encoder, what is left must be masked. For a sentence of length $\ell_b$ in a batch of width $n$, all queries may look at the same keys, so one row per sentence is enough, and it broadcasts:
#
# $$M_{b\,1\,j} = (\,j < \ell_b\,), \quad j = 0, \dots, n - 1 \qquad\text{of shape } (\text{batch}, 1, n)$$

# %%
needs()

# %%
# exercise: masks/padding

# %%
check("masks/padding", padding_mask)

# %%
padding_mask = mine("masks/padding")

# %%
needs("shakespeare")

# %% tags=["hide-input"]
shares = [f"{share:.0%}" for share in padded.values()]
title = f"Padding fills {shares[0]} of random batches, and {shares[1]} of those sorted by length"
figure, panels = plots.panels(title, list(padded), size=(8.4, 3))
for ax, drawn in zip(panels, (at_random, by_length)):
    lengths_here = torch.tensor([len(line) for line in next(drawn)])
    real = padding_mask(lengths_here, int(lengths_here.max())).squeeze(1)
    shades = torch.where(real, 1.0, torch.nan)
    ax.imshow(shades, aspect="auto", vmin=1, vmax=2)
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.6", hatch="///")
    ax.set(xlabel="position")
panels[0].text(2, 3, "characters", color="white", va="center")
panels[0].text(
    0.98, 0.5, "padding", transform=panels[0].transAxes, ha="right", backgroundcolor=plots.CARD
)
panels[0].set(ylabel="line of the batch")
plots.show(
    figure,
    "Two batches of 32 lines as rectangles, characters dark and padding hatched. In random order "
    "the lines end at different places and half of the rectangle is hatched. Of lines of similar "
    "length only a narrow strip at the right is.",
)
assert padded["random order"] > 0.3 and padded["similar lengths"] < 0.1

# %% [markdown]
# ## A line and its company (optional)
#
# What a model says about a line must not depend on which other lines are in the batch. Compute the outputs of a short line alone, and then beside a longer one, with padding. **Do they change without any mask? And with only a causal mask, if the padding is at the end?**

# %%
needs()

# %%
guess = None  # (True or False, True or False)

# %%
torch.manual_seed(0)
layer, short, long = SelfAttention(8, 8, 8), torch.randn(3, 8), torch.randn(7, 8)
filled = torch.cat([short, torch.randn(4, 8)])  # whatever the padding's vector is
lengths = torch.tensor([3, 7, 0])
together = torch.stack([filled, long, torch.randn(7, 8)])
hidden = layer(together, padding_mask(lengths, 7))


# %%
def differs(mask, alone):
    return not torch.allclose(layer(together, mask)[0, :3], layer(short, alone), atol=1e-5)


reveal(guess, (differs(None, None), differs(causal_mask(7), causal_mask(3))))
assert differs(None, None) and not differs(causal_mask(7), causal_mask(3))
assert not differs(padding_mask(lengths, 7), None) and not hidden[2].any()
assert not differs(causal_mask(7) & padding_mask(lengths, 7), causal_mask(3))

# %% [markdown]
# Without a mask the line changes with its company. The padding mask repairs that, and a line of length zero gives zeros. Under a causal mask, padding at the *end* is in the future of every real token, so none sees it. So an encoder needs the padding mask. A causal model whose padding is at the end only has to leave it out of its loss. (Cross-attention, lesson 08, needs the padding mask of the source.) To hide both, take `causal_mask(n) & padding_mask(lengths, n)`.

# %% [markdown]
# ## Build: a detector
#
# Masks are easy to get wrong, and nothing crashes when they are: the loss even looks better. So we test behaviour. Change one token, and see whether any output to its left moves. The test needs no knowledge of what is inside the layer. Building it is optional; the next sections use it.

# %%
# exercise: masks/leaks_future

# %%
check("masks/leaks_future", leaks_future)

# %%
leaks_future = mine("masks/leaks_future")

# %% [markdown]
# Try it on what you have met. Positions count from 0, and the last one has no future to leak.

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
x, layer = torch.randn(6, 8), SelfAttention(8, 8, 8)
print("no mask          ", leaks_future(layer, x))
print("causal mask      ", leaks_future(lambda x: layer(x, causal_mask(6)), x))
print(
    "zeroed afterwards", leaks_future(lambda x: softmax(dot_scores(x, x)) * causal_mask(6) @ x, x)
)

# %% [markdown]
# ## Find the bug: two texts in a line
#
# Short texts are often packed into one line, so that no place is wasted on padding. Then a token must not read another text. This mask has a fault in one line, and three in four cases fail. Mend it.

# %%
# exercise: masks/packing

# %%
check("masks/packing", packing_mask)

# %% [markdown]
# ## Build: the smallest block
#
# You now have all the parts of a working block. L1 lists the necessities: self-attention, position representations, nonlinearities and masking. Put them together:
#
# $$\underset{n \times d}{Y} \;=\; \mathrm{FFN}\big(\mathrm{Attention}(\underset{n \times d}{X} + \underset{n \times d}{P},\; \text{causal mask})\big)$$

# %% tags=["hide-input"]
diagram, size = drawings.Diagram(), (2.3, 0.9)
plus = diagram.box("+", (1.9, 0), "stream", size=(0.7, 0.7))
positions = diagram.box("positions", (1.9, 1.7), "stream", size=(2, 0.8))
mask = diagram.box("causal mask", (5, 1.7), "weights", size=size)
attention = diagram.box("self-attention", (5, 0), "query", size=size)
network = diagram.box("feed-forward", (9, 0), "network", size=size)
diagram.arrow((0, 0), plus)
diagram.text("$X$", (-0.25, 0))
diagram.text(r"$n \times d$", (0.75, 0.3), size=drawings.SMALL)
diagram.arrow(positions, plus)
diagram.arrow(plus, attention)
diagram.arrow(mask, attention)
diagram.text(r"$n \times n$", (5.15, 0.85), size=drawings.SMALL, align="left")
diagram.arrow(attention, network, r"$n \times d$")
diagram.arrow(network, (11.4, 0))
diagram.text(r"$n \times d$", (10.75, 0.3), size=drawings.SMALL)
diagram.text("$Y$", (11.65, 0))
diagram.show(
    "The minimal block. X, n by d, plus positions of the same shape goes into self-attention under "
    "an n by n causal mask; its output, n by d, goes through the feed-forward network to Y, n by "
    "d. There is no residual connection and no norm."
)

# %% [markdown]
# Our block adds positions to its own input, so a stack of blocks adds them at every level. L1, L2 and L4 add them only once: "we do this at the first layer". So does the Transformer of 2017: its residual connections carry the positions upwards. Our block has no residual connections.

# %%
# exercise: feed_forward/minimal_block

# %%
check("feed_forward/minimal_block", MinimalBlock)

# %%
MinimalBlock = mine("feed_forward/minimal_block")

# %% [markdown]
# Is each part necessary? Leave out one at a time, and ask four questions. Do earlier tokens count? Does their order? Is the block more than an affine map of a lone token? Is the future hidden?


# %%
class Alone(nn.Identity):
    def forward(self, x, mask):
        return x


class Unmasked(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x)


def block(without=None, **parts):
    made = MinimalBlock(8, 32, **parts)
    if without == "feed-forward":
        made.feed_forward = nn.Identity()
    return made


# %%
def same(one, other):
    return torch.allclose(one, other, atol=1e-5)


def abilities(block):
    x, a, b = torch.randn(6, 8), torch.randn(1, 8), torch.randn(1, 8)
    changed, swapped = torch.cat([a, x[1:]]), x[[1, 0, 2, 3, 4, 5]]
    return {
        "earlier tokens": not same(block(x)[-1], block(changed)[-1]),
        "their order": not same(block(x)[-1], block(swapped)[-1]),
        "nonlinearity": not same(block((a + b) / 2), (block(a) + block(b)) / 2),
        "hiding the future": leaks_future(block, x) == [],
    }


# %% tags=["nbval-check-output"]
torch.manual_seed(0)
blocks = {
    "complete block": block(),
    "without attention": block(attention=lambda *sizes: Alone()),
    "without positions": block(positions=torch.zeros),
    "without feed-forward": block(without="feed-forward"),
    "without mask": block(attention=Unmasked),
}
found = {name: abilities(made) for name, made in blocks.items()}
for name, can in found.items():
    lost = [ability for ability, there in can.items() if not there]
    print(f"{name:21} loses", ", ".join(lost) or "nothing")

# %% [markdown]
# In *one* block each part is needed: without it, at least one answer turns to no. In a stack the causal mask alone lets order through, from the second block on:

# %% tags=["nbval-check-output"]
without_positions = [block(positions=torch.zeros) for _ in range(2)]
for depth in (1, 2):
    can = abilities(nn.Sequential(*without_positions[:depth]))
    print(f"blocks: {depth}, without positions: order counts: {can['their order']}")

# %% [markdown]
# Language models without positions make use of this (Haviv et al. 2022). Now put the block to use.
#
# ## Four boasts
#
# Four people have trained small language models on Shakespeare's characters, one block each. They differ only in their attention. Ann's is that of lesson 03. Read the code of the other three:


# %%
class Bob(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x, torch.ones_like(mask).tril(1))


class Cleo(SelfAttention):
    def forward(self, x, mask):
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return softmax(dot_scores(q, k) / q.shape[-1] ** 0.5) * mask @ v


class Dan(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x - reduce(x, "... n d -> ... 1 d", "mean"), mask)


# %% [markdown]
# **Who cheats? And who will have the lowest loss on held-out text?** An honest model of this size, after so short a training, reaches a little over 2 nats per character. All four get 800 steps (or 12 seconds, if your machine is slow).

# %%
guess = None  # for example (["Ann", "Bob"], "Ann")

# %%
needs("shakespeare")

# %%
learning, held_out = characters.split()
vocab = len(characters.vocab())


# %% tags=["training"]
def next_loss(model, batch):
    read, following = batch
    return nn.functional.cross_entropy(model(read).mT, following)


def train(attention, d_model, depth, **budget):
    with training.seeded(SEED):
        blocks = [MinimalBlock(d_model, 4 * d_model, attention=attention) for _ in range(depth)]
        model = nn.Sequential(nn.Embedding(vocab, d_model), *blocks, nn.Linear(d_model, vocab))
    data = characters.batches(learning, 32, 32, SEED)
    training.train(model, data, next_loss, **budget)
    return model


# %% tags=["training"]
people = {"Ann": SelfAttention, "Bob": Bob, "Cleo": Cleo, "Dan": Dan}
models = {
    name: train(attention, 48, depth=1, steps=800, learning_rate=0.01, seconds=12)
    for name, attention in people.items()
}

# %% tags=["training"]
batch = next(characters.batches(held_out, 32, 64, seed=1))
with torch.no_grad():
    boasts = {name: next_loss(model, batch).item() for name, model in models.items()}
print({name: round(loss, 2) for name, loss in boasts.items()})

# %% [markdown]
# None of them was trained on this text, so nobody has learned it by heart. Now your detector. It looks at the layers after the embedding.

# %% tags=["training"]
with torch.no_grad():
    x = models["Ann"][0](batch[0][:1, :8])
leaks = {name: leaks_future(model[1:], x) for name, model in models.items()}
for name, places in leaks.items():
    print(f"{name:5} leaks at {places}" if places else f"{name:5} leaks nowhere")
cheats = [name for name in leaks if leaks[name]]
reveal(guess, (cheats, min(boasts, key=boasts.get)))
assert cheats == ["Bob", "Cleo", "Dan"], "their outputs move when later inputs do"

# %% [markdown]
# Bob's mask is one step too generous, and that is all it takes. Cleo's is zero *after* the softmax, and her model has learned to read the denominator. Dan's mask is correct, but he first subtracts the mean of the whole line, the future included. You cannot see that leak in any mask.
#
# ## Without the future
#
# When a model writes, there is no future to read. So measure that: give each model the first character, then two, then three, and count only its last prediction.


# %% tags=["training"]
@torch.no_grad()
def past_only(model):
    read, following = batch
    last = [model(read[:, :i])[:, -1] for i in range(1, 33)]
    return nn.functional.cross_entropy(torch.stack(last, dim=-1), following).item()


honest = {name: past_only(model) for name, model in models.items()}
print({name: round(loss, 2) for name, loss in honest.items()})
assert abs(honest["Ann"] - boasts["Ann"]) < 1e-3, "Ann never saw what is hidden now"
rises = [round(honest[name] - boasts[name], 2) for name in cheats]
claim = "each cheat loses more than 0.1 nats when it sees only the past"
training.expect(claim, min(rises) > 0.1, rises, *models.values())

# %% tags=["training", "hide-input"]
title = "The three that leak boast a lower loss, and have a higher one without the future"
figure, ax = plots.axes(title, "", "loss, nats a character", size=(7, 3.6))
for shift, colour, losses in ((-0.2, plots.COLOURS[0], boasts), (0.2, plots.COLOURS[1], honest)):
    bars = ax.bar([i + shift for i in range(4)], losses.values(), 0.36, color=colour)
    card = {"facecolor": plots.CARD, "edgecolor": "none", "pad": 1}
    ax.bar_label(bars, fmt="%.2f", size="small", padding=2, bbox=card)
ax.set_xticks(range(4), models)
ax.set(ylim=(0, 1.25 * max(honest.values())))
top = 1.15 * max(honest.values())
ax.text(-0.38, top, "whole line shown", color=plots.COLOURS[0], size="small")
ax.text(-0.38, 0.92 * top, "only the past shown", color=plots.COLOURS[1], size="small")
know_nothing = torch.tensor(vocab).log().item()
ax.axhline(know_nothing, color="0.5", linestyle="--", linewidth=1, zorder=0)
ax.text(-0.38, know_nothing + 0.15, "all characters equally likely", color="0.4", size="small")
plots.show(
    figure,
    "Bars of the losses of four models, with the whole line shown and with only the past shown. "
    "Ann's are equal. For Bob, Cleo and Dan the loss is lower than hers with the whole line, and "
    "higher than hers without the future. A dashed line at 4.43 is the loss of a model to which "
    "all 84 characters are equally likely.",
)
rest = [round(honest[name] - honest["Ann"], 2) for name in cheats]
training.expect("each cheat is then worse than Ann", min(rest) > 0, rest, *models.values())

# %% [markdown]
# Above the dashed line, a model is worse than one that knows nothing: the right character gets, on geometric average, a probability below 1/84.
#
# ### Let them write (optional)
#
# Each draws its next character from its own probabilities and reads it back. In training the last of the 32 positions had no future to peek at, so there even a cheat had to learn from the past. We write with windows of 16 characters and never read that position. Ann loses nothing by this but memory.


# %%
@torch.no_grad()
def write(model, start, length=150, window=16):
    tokens, generator = characters.encode(start), torch.Generator().manual_seed(0)
    for _ in range(length):
        chances = softmax(model(tokens[None, -window:])[0, -1])
        tokens = torch.cat([tokens, torch.multinomial(chances, 1, generator=generator)])
    return characters.decode(tokens)


# %% tags=["training"]
for name, model in models.items():
    print(f"-- {name}, who boasts {boasts[name]:.2f}", write(model, "ROMEO.\n"), "", sep="\n")

# %% [markdown]
# Ann's text is not English yet, but much of it can be pronounced. Here Bob and Dan are stuck: they wait for a future that does not come. But Cleo's lines can be pronounced too, although her loss without the future is far above Ann's. Reading alone would not convict her.
#
# This is **data leakage**. The leak makes the loss on whole lines look better, even on held-out text. The detector finds it, and so does a loss with only the past shown.

# %% [markdown]
# ## A stack that writes (optional)
#
# Last, stack your blocks: one, two or six of them. **After the same 800 steps, one of the three stacks is far behind the others. Which?** The dashed line in the figure is a model that knows only how frequent each character is.

# %%
guess = None  # 1, 2 or 6

# %%
deep = results.load("blocks")["figures"]
final = {
    depth: sum(run["loss"][-1] for run in runs) / len(runs)
    for depth, runs in zip(deep["depths"], deep["runs"])
}
reveal(guess, max(final, key=final.get))
print("frequencies alone:", round(deep["trivial"], 2), "nats on held-out text")

# %%
for depth, runs in zip(deep["depths"], deep["runs"]):
    alike = [run["spread"][-1] for run in runs]
    chances = ", ".join("{:.3f} to {:.3f}".format(*run["e"]) for run in runs)
    print(f"blocks: {depth}, loss {final[depth]:.2f}", end="; ")
    print(f"spread behind the last block {min(alike):.2f} to {max(alike):.2f}")
    print(f"    P(next is e) at the middle 90 % of the places, each seed: {chances}")
    assert max(alike) < 0.05 if depth == 6 else min(alike) > 0.75

# %% tags=["hide-input"]
title = "After the same 800 steps, six blocks know no more than the frequencies (three seeds)"
figure, ax = plots.axes(title, "steps", "loss on held-out text, nats", size=(7.6, 3.8))
for depth, runs, colour in zip(deep["depths"], deep["runs"], plots.COLOURS):
    steps = [deep["every"] * i for i in range(len(runs[0]["loss"]))]
    for run in runs:
        ax.plot(steps, run["loss"], color=colour, linewidth=1.3)
    name = f"{depth} block{'s' if depth > 1 else ''}"
    y = {1: 2.27, 2: 2.47, 6: final[6]}[depth]
    ax.text(815, y, name, color=colour, va="center", size="small")
ax.axhline(deep["trivial"], color="0.5", linestyle="--", linewidth=1)
ax.text(330, deep["trivial"] - 0.15, "frequencies alone", color="0.4", size="small")
ax.set(xlim=(0, 800), ylim=(2, 4.6))
plots.show(
    figure,
    "Loss on held-out text against steps for one, two and six blocks, three seeds each. One and "
    "two blocks fall to between 2.3 and 2.5 nats in 800 steps. Six blocks fall to 3.4 nats within "
    "100 steps and stay there, at the dashed line of the frequencies alone, 3.36.",
)
assert max(run["loss"][-1] for runs in deep["runs"][:2] for run in runs) < 2.5
assert min(min(run["loss"]) for run in deep["runs"][2]) > deep["trivial"] - 0.01

# %% [markdown]
# Two blocks are about as good as one. Within 100 steps the six blocks have learned how frequent each character is, and then nothing more: at the middle 90 % of the places their probability of an *e* is practically the same number.

# %% [markdown]
# The spread fits this: after one or two blocks it is about 0.8, after six 0.03 or 0.04. It is the collapse from the first half of this lesson, now in a model that you want to use. (Would patience help? Lesson 07 tries it.)
#
# Here are two blocks, trained live on batches of 32 lines (the stored runs: 16), and a text by them:

# %% tags=["training"]
two = train(SelfAttention, 48, depth=2, steps=800, learning_rate=0.006, seconds=25)
with torch.no_grad():
    loss = next_loss(two, batch).item()
claim = "two blocks reach less than 2.6 nats"
training.expect(claim, loss < 2.6, round(loss, 2), two)

# %% tags=["training"]
print(write(two, "ROMEO.\nShall I compare thee", length=300, window=32))

# %% [markdown]
# From ten paces it looks like Shakespeare. Two things are missing. Each token looks at the others with a single set of weights, for a single reason: lesson 06 gives it several heads. And depth does not pay: lesson 07 adds residual connections and norms.

# %% [markdown]
# ## Break it (optional)
#
# - Multiply `words(line)` by 3, then by 5, in the first experiment. How many layers does the line last now? Why does the inequality still hold?
# - Divide Cleo's rows by their sums after the mask. Does the detector still object?
# - Replace Dan's mean by that of the characters read so far (`cumsum`). Does the detector let him go? Is his loss still lower than Ann's?
# - Make the padding in `filled` a thousand times larger, with the padding mask on. Does anything move?

# %% [markdown]
# ## What to remember
#
# Attention mixes tokens, the feed-forward network works on each token alone, and masks decide who may look where.
#
# | | |
# |:-|:-|
# | feed-forward network | $\mathrm{FFN}(x) = \max(0,\, x W_1 + b_1)\, W_2 + b_2, \quad d_{ff} = 4 d$ |
# | a lone token | $x\, W_V^{(1)} \cdots W_V^{(L)} = x\, W$: attention alone is linear |
# | spread | $\lVert X - \mathbf 1 \bar x \rVert \,/\, \lVert X \rVert$, at rounding error after four layers of random attention |
# | causal mask | $e_{ij} = -\infty$ for $j > i + n_k - n_q$, *before* the softmax |
# | padding mask | $M_{b1j} = (j < \ell_b)$ |
# | shift right | inputs $(\text{start}, t_1, \dots, t_{n-1})$ for targets $(t_1, \dots, t_n)$ |
# | minimal block | $Y = \mathrm{FFN}(\mathrm{Attention}(X + P,\ \text{causal mask}))$ |
#
# Test for leaks by behaviour: neither the mask nor the loss of whole lines shows them all.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why can a feed-forward network without the ReLU not compute XOR?</summary>
#
# $(x W_1 + b_1) W_2 + b_2 = x\,(W_1 W_2) + (b_1 W_2 + b_2)$: one affine map.
# </details>
#
# <details><summary>2. How many parameters does a feed-forward network have with d = 768 and d_ff = 3,072, biases included?</summary>
#
# 768 · 3,072 + 3,072 + 3,072 · 768 + 768 = 4,722,432.
# </details>
#
# <details><summary>3. Four queries, ten keys, causal. How many cells of the mask are True?</summary>
#
# The queries are the last four tokens and see 7, 8, 9 and 10 keys: 34.
# </details>
#
# <details><summary>4. Your model has a loss of 0.3 nats per character after a minute. What do you check first?</summary>
#
# Whether it reads the future: run the detector, and let it write. Are the inputs shifted?
# </details>
#
# <details><summary>5. Why must the mask come before the softmax?</summary>
#
# Set to zero afterwards, the rows no longer sum to one, and their sums tell what was hidden.
# </details>

# %% [markdown]
# ## In your own words (optional)
#
# The panels check code. What you understand shows in a paragraph of your own, so take ten minutes for one.
#
# A colleague's language model has a loss that is too good to be true. Write the paragraph that you would send: how do you find out whether the model sees the future, where could it get in, and why is it not enough to look at the mask?

# %% [markdown] tags=["question:does_it_leak"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# One token, one set of weights, one reason to look: lesson 06 gives attention several heads.
#
# Vaswani et al. 2017, sections 3.1 to 3.3; Dong et al. 2021 (rank collapse); Haviv et al. 2022 (models without positions). Lectures L1 to L5 (lesson 00).
