# %% [markdown]
# # 06 · Multi-head attention
#
# **75 minutes · after lesson 05 · needs `smollm2` (93 MB)**
#
# One head of attention can spread its weights over all tokens. **Why should a token look in several heads, when one can look everywhere?**
#
# At the end you have built multi-head attention, the layer of every Transformer. You can say what one head cannot return, and under which condition. And you have found heads with clear patterns in a real model, and measured what the model loses without them.

# %%
import torch
from collections.abc import Callable
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from course_lib.data import needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
diagram = drawings.Diagram()
texts = ("name A\nwants B and C\nnumber 0.30", "name B\n\nnumber 1.20", "name C\n\nnumber −0.40")
a, b, c = (diagram.box(x, (4.4 * i, 0), "stream", size=(3, 1.9)) for i, x in enumerate(texts))
diagram.arrow(a, b, via=[(0, 1.6), (4.4, 1.6)], role="query")
diagram.arrow(a, c, via=[(0, 2.3), (8.8, 2.3)], role="query")
diagram.text("must return (1.20, −0.40)", (0, -1.4))
one = diagram.box("0.5 · 1.20 + 0.5 · (−0.40) = 0.40", (1.6, -3.0), "value", size=(6.6, 0.9))
diagram.text("one head: one mixture", (5.2, -3.0), align="left")
two = diagram.box("1.20", (-0.8, -4.4), "value", size=(1.8, 0.9))
other = diagram.box("−0.40", (1.6, -4.4), "value", size=(1.8, 0.9))
diagram.text("two heads: two mixtures", (2.9, -4.4), align="left")
diagram.show(
    "Three tokens as boxes. Token A wants B and C, and must return their numbers, 1.20 and minus "
    "0.40. One head with weights 0.5 and 0.5 returns one mixture, 0.40. Two heads return two: 1.20 "
    "and minus 0.40."
)

# %%
softmax = mine("attention/softmax")
dot_scores = mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
causal_mask = mine("masks/causal")

# %% [markdown]
# ## Two numbers at once
#
# To see what one head lacks, take a task that asks for two things. In lesson 03 each token wanted the number of one other token. Now each wants *two* numbers, in order. A sentence has five tokens. A token is three names, one-hot (its own and the two that it wants), and a number: 16 columns.


# %% tags=["hide-input"]
def pointers(batch, n=5):
    """Draw names (own and two wanted), tokens (names and a number), and the wanted numbers."""
    own = torch.rand(batch, n).argsort(-1)
    wanted = torch.rand(batch, n, n).argsort(-1)[..., :2]
    numbers = torch.randn(batch, n)
    number_of = numbers.gather(-1, own.argsort(-1))
    found = number_of.gather(-1, wanted.flatten(1)).view(batch, n, 2)
    three = torch.cat([own.unsqueeze(-1), wanted], dim=-1)
    names = nn.functional.one_hot(three, n).flatten(-2).float()
    tokens = torch.cat([names, numbers.unsqueeze(-1)], dim=-1)
    return nn.functional.pad(names, (0, 1)), tokens, found


# %% [markdown]
# Queries and keys see only the names, $N$ (the number's column is 0). Values see the whole tokens, $X$. In self-attention all three see the same input; the proof below needs that they are apart. Head $i$ has three matrices of its own, and a linear layer reads both numbers from all heads side by side:
#
# $$\underset{n \times d_k}{\mathrm{head}_i} = \mathrm{Attention}(N W_Q^i,\; N W_K^i,\; X W_V^i) \qquad \underset{n \times 2}{\hat Y} = \underset{n \times h d_k}{[\,\mathrm{head}_1 \mid \dots \mid \mathrm{head}_h\,]}\;\underset{h d_k \times 2}{W} + b$$


# %%
class Head(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        w_q, w_k, w_v = torch.randn(3, d_model, d_k) / d_model**0.5
        self.w_q, self.w_k, self.w_v = map(nn.Parameter, (w_q, w_k, w_v))

    def forward(self, names, tokens):
        q, k, v = names @ self.w_q, names @ self.w_k, tokens @ self.w_v
        return scaled_dot_product_attention(q, k, v)


# %%
class Fetcher(nn.Module):
    def __init__(self, heads, d_model=16):
        super().__init__()
        self.heads = nn.ModuleList(Head(d_model, d_model // heads) for _ in range(heads))
        self.readout = nn.Linear(d_model, 2)

    def forward(self, names, tokens):
        return self.readout(torch.cat([head(names, tokens) for head in self.heads], dim=-1))


assert {sum(p.numel() for p in Fetcher(heads).parameters()) for heads in (1, 2)} == {802}


# %% [markdown]
# One head of size 16 and two heads of size 8 have the same number of parameters, 802. Both train for 500 steps. **What share of the variance of the wanted numbers will each explain?**

# %%
guess = None  # (share for one head, share for two heads)


# %% tags=["training", "hide-input"]
def squared_error(model, batch):
    names, tokens, found = batch
    return (model(names, tokens) - found).square().mean()


def trained(heads):
    with training.seeded(SEED):
        model = Fetcher(heads)
        batches = [pointers(64) for _ in range(500)]
    training.train(model, batches, squared_error, steps=500, learning_rate=0.03, seconds=30)
    return model


def explained(model):
    batch = pointers(20_000)
    return 1 - (squared_error(model, batch) / batch[-1].square().mean()).item()


# %% tags=["training"]
one, two = trained(1), trained(2)
shares = explained(one), explained(two)
reveal(guess, tuple(round(share, 2) for share in shares))

# %% tags=["training", "hide-input"]
claim = "one head explains 0.45 to 0.52, two heads over 0.95"
holds = 0.45 < shares[0] < 0.52 and shares[1] > 0.95
training.expect(claim, holds, [round(share, 3) for share in shares], one, two)

# %% [markdown]
# Exactly half is no accident of training. We come back to it when we have the layer.

# %% [markdown]
# ## Heads by reshaping
#
# Two heads were six small matrices and a loop. In a layer the small matrices are side by side, so one product makes the queries of all heads, and it is as large as that of one wide head:
#
# $$\underset{d_{model} \times h d_k}{W_Q} = [\,W_Q^1 \mid \dots \mid W_Q^h\,] \qquad\Rightarrow\qquad X W_Q = [\,X W_Q^1 \mid \dots \mid X W_Q^h\,] = [\,Q^1 \mid \dots \mid Q^h\,]$$
#
# What is left is to cut the columns, and to make each head a batch of its own, so that one call of attention serves all heads.

# %% tags=["hide-input"]
diagram, cell = drawings.Diagram(), 0.18
diagram.matrix("$X$", (5, 12), (0, 0), "stream", axes=("$n$", "$d_{model}$"), cell=cell)
diagram.text("×", (1.4, 0))
for i, shift in enumerate((-0.82, 0, 0.82), start=1):
    diagram.matrix(f"$W_Q^{i}$", (12, 4), (3 + shift, 0), "query", cell=cell)
    diagram.matrix(f"$Q^{i}$", (5, 4), (6.2 + shift, 0), "query", cell=cell)
    axes = ("", "$d_k$") if i == 1 else ("", "")
    y = 1.6 * (2 - i)
    diagram.matrix("", (5, 4), (9.7, y), "query", axes=axes, cell=cell)
    diagram.text(f"head {i}", (10.2, y), size=drawings.SMALL, align="left")
diagram.text("=", (4.6, 0))
diagram.arrow((7.5, 0), (9.2, 0), "split")
diagram.show(
    "X, 5 tokens by 12 columns, times three matrices W_Q of 12 by 4 side by side, gives queries of "
    "5 by 4 for three heads side by side. Splitting makes three separate matrices of 5 by 4, one "
    "for each head.",
)

# %% [markdown]
# The split of $Z = X W_Q$ is only another way to index the same numbers (head $i$, token $t$, column $c$, all counted from 0 here):
#
# $$\mathrm{split}(Z)_{i,\,t,\,c} = Z_{t,\; i\, d_k + c}$$

# %%
# exercise: multi_head/split_heads

# %%
check("multi_head/split_heads", split_heads)

# %%
split_heads = mine("multi_head/split_heads")

# %% [markdown]
# **Does `q.reshape(3, 5, 4)` do the same, for five tokens of twelve columns and three heads?** Its shape is right.

# %%
guess = None  # True or False

# %% tags=["nbval-check-output"]
q = torch.arange(60.0).reshape(5, 12)
reveal(guess, torch.equal(q.reshape(3, 5, 4), split_heads(q, 3)))
print("reshape: ", q.reshape(3, 5, 4)[0].tolist())
print("split:   ", split_heads(q, 3)[0].tolist())

# %% [markdown]
# Reshape alone gives head 1 all of token 1 (0 to 11) and two thirds of token 2, and nothing of the last three. It raises no error: a shape does not say whose numbers it holds. After attention the heads must be side by side again, a row for each token:


# %%
def merge_heads(x):
    return torch.cat(x.unbind(-3), dim=-1)


assert torch.equal(merge_heads(split_heads(q, 3)), q)

# %% [markdown]
# ## The layer
#
# Queries, keys and values may come from different inputs, so $Q$, $K$, $V$ are from here on the layer's *inputs*, as in the paper. One more matrix, $W_O$, mixes what the heads return:
#
# $$\mathrm{head}_i = \mathrm{Attention}(Q W_Q^i,\; K W_K^i,\; V W_V^i) \qquad \underset{n_q \times d_{model}}{\mathrm{MultiHead}(Q, K, V)} = \underset{n_q \times h d_v}{[\,\mathrm{head}_1 \mid \dots \mid \mathrm{head}_h\,]}\;\; \underset{h d_v \times d_{model}}{W_O}$$

# %% tags=["hide-input"]
diagram, top = drawings.Diagram(), 4.6
for shift in (0.5, 0.25):
    diagram.box("", (5 + shift, top + shift), "weights", size=(9, 1.1))
middle = r"$\mathrm{softmax}(Q^i (K^i)^T / \sqrt{d_k}\,)\,V^i$   in each head $i$"
diagram.box(middle, (5, top), "weights", size=(9, 1.1))
for x, name, role, n in ((1.6, "Q", "query", "q"), (5, "K", "key", "k"), (8.4, "V", "value", "k")):
    below = diagram.box(role, (x, 0), "stream", size=(2, 0.8))
    linear = diagram.box(f"$W_{name}$", (x, 1.9), role, size=(2, 0.8))
    diagram.arrow(below, linear, rf"$n_{n} \times d_{{model}}$", role=role)
    shape = rf"h \times n_{n} \times d_{'v' if name == 'V' else 'k'}"
    diagram.arrow(linear, (x, top - 0.55), f"split: ${shape}$", role=role)
output = diagram.box("$W_O$", (5, 7.6), "network", size=(2, 0.8))
diagram.arrow((5, top + 1.05), output, r"merge: $n_q \times h d_v$", role="value")
diagram.arrow(output, (5, 9.4), r"$n_q \times d_{model}$")
mask = diagram.box("mask\n$n_q \\times n_k$", (12, top + 0.25), size=(1.5, 1.1))
diagram.arrow(mask, (10, top + 0.25))
diagram.text("one for all heads", (12, top - 0.6), size=drawings.SMALL)
diagram.show(
    "Multi-head attention from below. Query, n_q by d_model, key and value, n_k by d_model, each "
    "pass a linear layer, and are split into h heads of n by d_k (values: d_v). Each head attends "
    "by itself; one mask, n_q by n_k, serves all. The heads are merged to n_q by h d_v, and W_O "
    "turns that into the output, n_q by d_model.",
)

# %% [markdown]
# > **Where a lecture slips (D06).** L3 gives a head's matrices the shape $N \times d_k$, with $N$ tokens. But $X$ is $N \times d$, so what multiplies it from the right has $d$ rows: no parameter has $N$ in its shape. Its slide on one head gives the output as $N \times d$; the next one has it right, $N \times d_v$.
#
# In the stub, `self.rule` is scaled dot-product attention, which treats heads as one more batch axis. The mask has no axis of heads, and the scores have one: where must an axis of size 1 go?

# %%
# exercise: multi_head/attention

# %%
check("multi_head/attention", MultiHeadAttention)

# %%
MultiHeadAttention = mine("multi_head/attention")

# %% [markdown]
# Is it torch's layer? Copy your parameters into `nn.MultiheadAttention`, which keeps the first three matrices as one, and whose mask says True where a token may *not* look.

# %%
layer, torchs = MultiHeadAttention(12, 3), nn.MultiheadAttention(12, 3, batch_first=True)
torchs.out_proj.load_state_dict(layer.w_o.state_dict())
three = (layer.w_q, layer.w_k, layer.w_v)
with torch.no_grad():
    torchs.in_proj_weight.copy_(torch.cat([linear.weight for linear in three]))
    torchs.in_proj_bias.copy_(torch.cat([linear.bias for linear in three]))

# %%
x, mask = torch.randn(2, 5, 12), causal_mask(5)
theirs, _ = torchs(x, x, x, attn_mask=~mask)
difference = (layer(x, x, x, mask) - theirs).abs().max().item()
print(f"largest difference: {difference:.0e}")
assert difference < 1e-5

# %% [markdown]
# > **Where the lectures disagree (D08).** L1 and L2 write a key as $Kx$ and all keys as $XK$, with one letter for a matrix and its transpose. Rows with matrices on the right, or columns with matrices on the left: either works, a mixture does not. This course uses rows. Torch's `nn.Linear(12, 4)` keeps the transpose, 4 × 12, and multiplies by $W^T$.

# %% tags=["hide-input"]
linear = nn.Linear(12, 4, bias=False)
assert torch.allclose(linear(x), x @ linear.weight.T)

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention", "cross-attention"},
    "The Transformer of 2017 with its three attention layers lit: self-attention in the encoder, "
    "masked self-attention and cross-attention in the decoder. Each of them has several heads.",
)

# %% [markdown]
# All three attention layers of the Transformer are this one. They differ in where queries, keys and values come from, and in the mask.
#
# ## One line is wrong
#
# Here is the layer again, as one function without biases and mask. All shapes are right, it trains, and with one head it is correct. Find the line.

# %%
# exercise: multi_head/mend

# %%
check("multi_head/mend", attend_in_heads)

# %% [markdown]
# ## Two heads, set by hand
#
# In lesson 03 you set one head's matrices so that each token found the one it wanted. Set four matrices so that two heads return both numbers, in order. Here queries, keys and values all see the whole token, $3n + 1$ columns for $n$ names.

# %%
# exercise: multi_head/by_hand

# %%
check("multi_head/by_hand", pair_weights)

# %%
pair_weights = mine("multi_head/by_hand")

# %%
_, tokens, found = pointers(4000)
*matrices, w_o = pair_weights(5)
q, k, v = (split_heads(tokens @ w, 2) for w in matrices)
fetched = merge_heads(scaled_dot_product_attention(q, k, v)) @ w_o
print(f"largest error over 20,000 tokens: {(fetched - found).abs().max():.1e}")

# %% [markdown]
# ## Why exactly half
#
# Two heads suffice. Is one really not enough, whatever its matrices are? Take one token of one sentence. Its weights $\alpha_j$ depend on names alone. The value of token $j$ is linear: its number $y_j$ times $w$, the last row of $W_V$, plus something made of names. All five numbers use the *same* direction $w$. So the head returns
#
# $$\sum_j \alpha_j v_j = \underbrace{\Big(\sum_j \alpha_j y_j\Big)}_{s \text{: one number}}\, w \;+\; (\text{names only})$$
#
# However wide the head is, the five numbers reach the readout as one number $s$.

# %% [markdown]
# A linear readout turns $s$ into an answer $\hat y = s\,u + c$: $u$ is made of parameters, $c$ of parameters and names. For given names, all answers are on one line along $u$. But the wanted pair $y$ spreads equally in all directions of the plane. Across the line, along the unit vector $u_\perp$, nothing of $y$ is known:
#
# $$\mathbb{E}\,\|y - \hat y\|^2 \;\ge\; \mathbb{E}\,(y \cdot u_\perp - c \cdot u_\perp)^2 \;=\; 1 + \mathbb{E}\,(c \cdot u_\perp)^2 \;\ge\; 1 \qquad\text{of}\qquad \mathbb{E}\,\|y\|^2 = 2$$

# %% tags=["hide-input"]
cloud = torch.randn(250, 2, generator=torch.Generator().manual_seed(3))
cloud = cloud - cloud.mean(0)
# make the sample exactly round: covariance 1
cloud = torch.linalg.solve_triangular(torch.linalg.cholesky(cloud.T.cov()), cloud.T, upper=False).T
title = "Every line through a round cloud keeps half of its variance, and loses half"
names = ["an even mixture: u = (1, 1) / √2", "the first number alone: u = (1, 0)"]
figure, panels = plots.panels(title, names, size=(7.2, 4.4))
for ax, u in zip(panels, torch.tensor([[0.5**0.5, 0.5**0.5], [1.0, 0.0]])):
    kept = (cloud @ u)[:, None] * u
    share = (kept.square().sum() / cloud.square().sum()).item()
    assert abs(share - 0.5) < 1e-3
    ax.scatter(*cloud.T, s=8, color="0.75", linewidths=0)
    ax.plot(*torch.stack([-3 * u, 3 * u]).T, color=plots.COLOURS[0], linewidth=1)
    some = cloud.norm(dim=-1).argsort(descending=True)[4:84:8]
    for wanted, answer in zip(cloud[some], kept[some]):
        ax.plot(*torch.stack([wanted, answer]).T, "--", color=plots.COLOURS[1], linewidth=1)
    ax.scatter(*cloud[some].T, s=22, color="0.35", zorder=3)
    ax.scatter(*kept[some].T, s=22, color=plots.COLOURS[0], zorder=3)
    ax.set(xlim=(-3.2, 3.2), ylim=(-4.7, 3.2), aspect="equal", xlabel="$y_a$", ylabel="$y_b$")
    ax.set(xticks=range(-3, 4), yticks=range(-3, 4))
    texts = ("dots: wanted", "0.35"), (f"line: can be answered, {share:.2f}", plots.COLOURS[0])
    texts += ((f"dashed: lost, {1 - share:.2f}", plots.COLOURS[1]),)
    for i, (text, colour) in enumerate(texts):
        ax.text(-3.1, -3.6 - 0.4 * i, text, color=colour, size="small")
plots.show(
    figure,
    "The wanted pairs as a round cloud in the plane of y_a and y_b, twice. A line of possible "
    "answers runs through it, once at 45 degrees, once along y_a. Dashed lines join some wanted "
    "points to their nearest answers on the line. Either way 0.50 of the variance is on the line "
    "and 0.50 is lost.",
)

# %% [markdown]
# That is the proof. Here are 250 wanted pairs, and what your two trained models answer.

# %% tags=["training", "hide-input"]
names, tokens, found = pointers(50)
title = "One head answers on a line, two heads fill the plane"
figure, panels = plots.panels(title, ["wanted", "one head", "two heads"], size=(7.8, 3.5))
with torch.no_grad():
    answers = [found, one(names, tokens), two(names, tokens)]
for ax, points, colour in zip(panels, answers, ("0.5", *plots.COLOURS)):
    ax.scatter(*points.flatten(0, 1).T, s=8, color=colour, linewidths=0)
    ax.set(xlim=(-4, 4), ylim=(-4, 4), xticks=(-4, -2, 0, 2, 4), yticks=(-4, -2, 0, 2, 4))
    ax.set(aspect="equal", xlabel="first number")
panels[0].set(ylabel="second number")
plots.show(
    figure,
    "Three scatter plots of pairs of numbers. The wanted pairs are a round cloud. The answers of "
    "one head are all on one line. The answers of two heads look like the wanted cloud.",
)
centred = answers[1].flatten(0, 1) - answers[1].flatten(0, 1).mean(0)
along = torch.linalg.svdvals(centred).square()
claim = "over 0.98 of the variance of one head's answers is along one line"
on_line = (along[0] / along.sum()).item()
training.expect(claim, on_line > 0.98, round(on_line, 4), one)

# %% [markdown]
# For $h$ heads and $r$ wanted numbers the same argument gives answers in a space of at most $h$ dimensions, so at most $\min(1, h/r)$ of the variance is explained. Measured beforehand: twelve cases, 600 steps, three seeds.

# %% tags=["hide-input"]
kept = results.load("multi_head")["figures"]
title = (
    "One layer, linear values and readout, names choose: training reaches min(1, heads / wanted)"
)
names = [f"{wanted} wanted" for wanted in kept["wanted"]]
figure, panels = plots.panels(title, names, size=(7.8, 3.3))
region = {"facecolor": "none", "edgecolor": "0.7", "hatch": "///", "linewidth": 0}
for i, (ax, wanted) in enumerate(zip(panels, kept["wanted"])):
    for place, heads in enumerate(kept["heads"]):
        bound = min(1, heads / wanted)
        ax.bar(place, 1 - bound, 0.7, bottom=bound, **region)
        ax.plot([place - 0.35, place + 0.35], [bound, bound], color="0.3", linewidth=1.5)
        shares = [run[i][place] for run in kept["explained"]]
        assert all(abs(share - bound) < 0.01 for share in shares)
        ax.plot([place + x for x in (-0.22, 0, 0.22)], shares, "o", markersize=5)
    ax.set(xticks=range(4), xticklabels=kept["heads"], xlabel="heads", ylim=(0, 1.05))
    ax.set(xlim=(-0.6, 3.6))
    for line in ax.lines[1::2]:
        line.set(color=plots.COLOURS[0])
panels[2].text(1.42, 0.72, "hatched: impossible", size="x-small")
panels[0].set(ylabel="share of variance explained")
plots.show(
    figure,
    "Share explained against 1, 2, 4 and 8 heads, in panels for 1, 2 and 4 wanted numbers; three "
    "seeds side by side. Above a bar at heads over wanted, or 1, it is hatched as impossible. All "
    "runs are on their bar: with 4 wanted, one head explains 0.25, two 0.50, four and eight 1.00.",
)

# %% [markdown]
# ### Where it does not hold
#
# For independent numbers of equal variance, the law has three conditions: numbers that share one value direction, a linear readout, and weights from names alone. Give each token's number a column of its own, the one of its name. The head's mixture, say $\frac12 y_B\, e_B + \frac12 y_C\, e_C$, then still has both. And let the readout be a network that sees which names the token wants, as a real block's residual connection (lesson 07) and feed-forward network allow.
#
# **Still one head. What share is explained with each change alone, and with both?**

# %%
guess = None  # (own columns, a network that sees the names, both)

# %% tags=["hide-input"]
kept = results.load("head_limit")["figures"]["explained"]
OWN, SEES = "each number in a column of its own", "a network that sees the names as readout"
both = f"{OWN}, {SEES}"
reveal(guess, tuple(round(sum(kept[name]) / 3, 2) for name in (OWN, SEES, both)))
labels = {
    "none": "no change",
    "a network as readout": "a network as readout",
    SEES: "… that also sees the names",
    "queries and keys see the numbers": "queries and keys see the numbers",
    "a network for the values": "a network for the values",
    OWN: "each number in its own column",
    both: "own columns, and a readout that sees the names",
    "a second layer": "a second layer, of one head",
}
title = "One head returns both: two changes together,\nor a second layer"
figure, ax = plots.axes(title, "share of the variance explained", "", size=(7.6, 3.4))
for y, name in enumerate(labels):
    colour = plots.COLOURS[1 if min(kept[name]) > 0.9 else 0]
    ax.plot(kept[name], [y - 0.18, y, y + 0.18], "o", color=colour, markersize=5)
ax.axvline(0.5, color="0.5", linestyle="--", linewidth=1)
ax.text(0.49, -0.75, "h / r = 1/2", size="small", color="0.3", ha="right")
ax.set_yticks(range(len(labels)), labels.values())
ax.set(xlim=(0, 1.03), ylim=(7.6, -1.1))
mean = {name: round(sum(shares) / 3, 2) for name, shares in kept.items()}
assert min(kept[both]) > 0.995 and min(kept["a second layer"]) > 0.995
assert mean.pop("a network for the values") == 0.55
assert all(abs(share - 0.5) < 0.01 for name, share in mean.items() if share < 0.9)
said = "; ".join(f"{label}: {min(kept[name]):.2f}" for name, label in labels.items())
plots.show(figure, f"One head with two wanted numbers; three seeds. Lowest share: {said}.")

# %% [markdown]
# Own columns alone stay at a half (a linear readout knows no order), a readout that sees the names alone too (the numbers are normal); both together reach 1.00. So does a second layer of one head, which reads what the first found. Queries and keys that see numbers gain nothing in training. Values from a network reach 0.55, perhaps since a token may want its *own* number.
#
# **One head returns one mixture. Quantities that share a direction come back as one sum; others need not.** Tokens have hundreds of dimensions. Do several heads help there?

# %% [markdown]
# ## Do several heads help?
#
# Vaswani et al. 2017 measured it for English to German: one model, its $d_{model} = 512$ cut into 1 to 32 heads, at an equal number of multiply-adds (table 3, rows A and the base model; reported). Beside it a test of our own, on one whole block with residual connections, norms and a network: each of 16 tokens must name the *letters* of two others, in order ($d_{model} = 64$, 600 steps, four learning rates, three seeds).

# %% tags=["hide-input"]
kept = results.load("heads")["figures"]
names = ["translation (reported)", "two letters at once (measured): 12 runs each"]
title = "A few heads help in both; in 600 steps one head seldom learns the two letters"
figure, panels = plots.panels(title, names, size=(7.8, 3.2))
reported = {1: 24.9, 4: 25.5, 8: 25.8, 16: 25.8, 32: 25.4}
panels[0].plot(reported.keys(), reported.values(), "o", color=plots.COLOURS[0])
for heads, score in reported.items():
    panels[0].text(heads, score + 0.07, score, ha="center", size="small")
panels[0].set(ylim=(24.6, 26.2), ylabel="BLEU")
right = {
    heads: [[run["right"] for run in runs] for runs in by_rate]
    for heads, by_rate in zip(kept["heads"], kept["runs"])
}
for heads, by_rate in right.items():
    for rate, colour, runs in zip(kept["rates"], plots.COLOURS, by_rate):
        at = [heads * (0.85 + 0.1 * kept["rates"].index(rate))] * 3
        panels[1].plot(at, runs, "o", markersize=4, color=colour, fillstyle="none")
for colour, rate, y in zip(plots.COLOURS, kept["rates"], (0.22, 0.16, 0.10, 0.04)):
    panels[1].text(1, y, f"learning rate {rate}", color=colour, size="small")
panels[1].axhline(0.05, xmin=0.5, color="0.5", linestyle="--", linewidth=1)
panels[1].text(34, 0.07, "chance", size="small", color="0.4", ha="right")
panels[1].set(ylim=(0, 1.05), ylabel="share of letters right")
for ax in panels:
    ax.set(xlim=(0.75, 44), xscale="log", xlabel="heads", xticks=[1, 2, 4, 8, 16, 32])
    ax.set_xticklabels([1, 2, 4, 8, 16, 32])
    ax.minorticks_off()
one = [round(run, 2) for runs in right[1] for run in runs]
assert sorted(one)[-2:] == [0.99, 1.0] and max(sorted(one)[:-2]) < 0.57
assert min(min(runs) for heads in (2, 4, 8, 16) for runs in right[heads][1:]) > 0.99
pairs = [run["pair"] for runs in kept["runs"][0][1:] for run in runs if run["right"] < 0.6]
assert max(pairs) < 0.13
longer = {(x["heads"], x["rate"]): [run["right"] for run in x["runs"]] for x in kept["longer"]}
assert min(longer[1, 0.003] + longer[1, 0.001] + longer[16, 0.001]) > 0.98
assert max(right[16][0]) <= 0.5 and max(right[32][0]) < 0.35
texts = results.load("multi_head")["figures"]
losses = [[run["loss"] for run in texts[name]] for name in ("one head", "reader")]
assert [round(sum(three) / 3, 3) for three in losses] == [2.045, 2.044]
plots.show(
    figure,
    "Two panels against the number of heads. Reported BLEU: 24.9 with 1 head, 25.5 with 4, 25.8 "
    "with 8 and with 16, 25.4 with 32. Letters named right in our test: with one head 0.52 to 0.57 "
    "in ten runs of twelve, 0.99 and 1.00 in two; with 2 to 16 heads over 0.99 at all learning rates "
    "but the lowest; with 32 heads only at the two highest.",
)

# %% [markdown]
# In translation one head was 0.9 BLEU behind eight; 32 heads of 16 numbers were behind as well (one training each).
#
# In our test 2 to 16 heads name both letters, at three of four rates. One head mostly stays near 0.55: it names one letter, or (two slow runs) often both without their order. But with 1,500 steps at a rate of 0.003, or 3,000 at 0.001, all three seeds name both. Many narrow heads are slow: 16 reach 1.00 at the lowest rate in four times the steps. So at these rates heads only save steps.

# %% [markdown]
# Nor does every model need them: a language model of one layer on Shakespeare's characters has 2.045 nats with one head and 2.044 with four (800 steps, three seeds, one learning rate).

# %% [markdown]
# ## Scores that grow
#
# One piece of the formula is still only stated: the division by $\sqrt{d_k}$ (lesson 03). If the numbers in $q$ and $k$ are independent, with mean 0 and variance 1, then
#
# $$\mathrm{Var}(q \cdot k) = \sum_{c=1}^{d_k} \mathrm{Var}(q_c k_c) = d_k \qquad\Rightarrow\qquad \mathrm{Var}\!\left(\frac{q \cdot k}{\sqrt{d_k}}\right) = 1$$
#
# Without the division scores grow with $\sqrt{d_k}$, and in most rows one weight goes to 1. Then the softmax is flat: its Jacobian (lesson 02) is $\alpha_i(\delta_{ij} - \alpha_j)$. How flat? Here is the norm of the Jacobian, median and mean of 500 random rows of 16 scores:


# %%
def jacobian_norm(scores):
    of_rows = torch.vmap(torch.func.jacrev(lambda row: torch.softmax(row, -1)))(scores)
    norms = of_rows.flatten(1).norm(dim=-1)
    return norms.median().item(), norms.mean().item()


norms = {}
for d_k in (16, 64, 1024):
    generator = torch.Generator().manual_seed(d_k)
    q, k = (torch.randn(500, n, d_k, generator=generator) for n in (1, 16))
    scores = dot_scores(q, k).squeeze(1)
    norms[d_k] = jacobian_norm(scores), jacobian_norm(scores / d_k**0.5)
    of_whole, of_divided = (" and ".join(f"{x:.2g}" for x in pair) for pair in norms[d_k])
    print(f"d_k = {d_k:4}: not divided {of_whole}, divided {of_divided}")

# %% tags=["hide-input"]
assert [round(median, 2) for median, _ in norms[64]] == [0.14, 0.3]
(median, mean), (_, divided) = norms[1024]
assert median < 1e-4 and 5 < divided / mean < 7
four, four_not, one_head, one_not = (
    torch.tensor(run["loss"]) for run in results.load("first_scores")["figures"]["reader"]
)
gaps = {16: four_not - four, 64: one_not - one_head}
for d_k, gap in gaps.items():
    print(f"small language model, d_k = {d_k}: not divided, the loss is higher by", end=" ")
    print(", ".join(f"{x:.2f}" for x in gap), "nats after 200 steps (three seeds)")
assert (round(gaps[16].min().item(), 2), round(gaps[16].max().item(), 2)) == (0.01, 0.03)
assert (round(gaps[64].min().item(), 2), round(gaps[64].max().item(), 2)) == (0.05, 0.12)

# %% [markdown]
# Without the division, the Jacobian of a typical row at the paper's $d_k = 64$ is under half as large; at 1,024 it is thousands of times smaller (its mean six times). A small language model (one head of 64) is then 0.05 to 0.12 nats behind. Flatness alone does not explain that: towards $q$, the slope is 0.14 without the division and $0.30/8 = 0.04$ with it.
#
# > **Where a lecture slips (D10).** L3's words are "by the size of embedding"; its formula divides by $\sqrt{d_k}$, and is right: with $h$ heads the sum has $d_k = d_{model}/h$ terms.

# %% [markdown]
# ## Heads of a real model
#
# SmolLM2 writes English with 30 layers of 9 heads. What do its 270 heads look at? A picture of one invites a story, so measure all of them. We ask for three places: the **previous** token, the **first** token of the text, and the token that **followed** the last time the same token occurred. A head that gives its weight to the third is called an **induction head** (Olsson et al. 2022): after "Jack" it looks at what came after "Jack" before.

# %%
needs("smollm2")

# %%
from course_lib.pretrained import real_heads, smollm2

# %% tags=["once"]
model = smollm2.load()
text = "This is the house that Jack built. This is the malt that lay in the house that Jack built."
text += " This is the rat that ate the malt that lay in the house that Jack built."
tokens = torch.tensor(model.tokenizer.encode(text).ids)
weights = real_heads.attention_weights(model, tokens)
assert len(tokens) == 38
targets = {
    "previous": real_heads.previous(tokens),
    "followed": real_heads.followed(tokens),
    "first": real_heads.first(tokens),
}
print("weights:", tuple(weights.shape), "targets:", tuple(targets["first"].shape))

# %% [markdown]
# A target is a boolean matrix: True at the key that is meant, one at most for each query. The **mean weight** of a head on a target is an average over the queries that have one:


# %%
def mean_weight(weights, target):
    on_target = (weights * target).sum((-2, -1))
    return on_target / target.any(-1).sum()


# %% tags=["once", "hide-input"]
for name, target in targets.items():
    found = mean_weight(weights, target)
    print(f"{name:8}  largest {found.max():.2f}, over a half in {(found > 0.5).sum()} of 270 heads")

# %% [markdown]
# That was one text of 38 tokens. Measured beforehand: four stretches of Shakespeare, 256 tokens each, and three controls. *Even*: weights shared out equally. *Shuffled*: the same tokens in random order. *Random*: the entries of each $W_Q$ and $W_K$ shuffled.

# %% tags=["hide-input"]
kept = results.load("real_heads")["figures"]
places = {"previous": "previous token", "followed": "what followed before"}
places["first"] = "first token"
title = "On shuffled text some heads stay high, with random matrices none"
figure, panels = plots.panels(title, list(places.values()), size=(7.8, 3.0))
arms = {"text": "text", "shuffled": "shuffled", "random": "random\n$W_Q$, $W_K$"}
most = {}
for ax, place in zip(panels, places):
    for x, arm in enumerate(arms):
        heads = torch.tensor(kept["weights"][arm][place]).flatten()
        spread = torch.linspace(-0.3, 0.3, len(heads))
        ax.plot(x + spread, heads, ".", color=plots.COLOURS[x], markersize=3)
        most[place, arm] = heads.max().item()
    ax.axhline(kept["even"][place], color="black", linewidth=1)
    ax.set(xticks=range(3), xticklabels=arms.values(), ylim=(-0.02, 1.02))
    ax.tick_params(axis="x", labelsize=8)
panels[0].set(ylabel="mean weight of a head")
panels[0].text(2.3, kept["even"]["previous"] + 0.03, "even", size="small", ha="right")
found = {p: round(most[p, "text"], 2) for p in places}
assert found == {"previous": 0.79, "followed": 0.21, "first": 1.0}
over = [(torch.tensor(kept["weights"]["text"][p]) > 0.5).sum().item() for p in places]
assert over == [4, 0, 88] and max(most[p, "random"] for p in places) < 0.055
assert [round(most[p, "shuffled"], 2) for p in places] == [0.86, 0.3, 1.0]
assert [round(kept["even"][p], 2) for p in places] == [0.02, 0.01, 0.02]
on, off = (torch.tensor(kept["weights"][arm]["first"]) > 0.5 for arm in ("text", "shuffled"))
assert [x.sum().item() for x in (on, off, on & off)] == [88, 58, 53]
for place in ("previous", "followed"):
    best = {torch.tensor(kept["weights"][arm][place]).argmax().item() for arm in [*arms][:2]}
    assert len(best) == 1, "the same head"
said = "; ".join(f"{place}, {arm}: {weight:.2f}" for (place, arm), weight in most.items())
plots.show(
    figure,
    "Mean weights of 270 heads on three places, for text, shuffled text, and random matrices, with "
    f"a line for weights shared out evenly. The largest: {said}.",
)

# %% [markdown]
# Four heads give more than half of their weight to the previous token, 88 to the first. For what followed before, the largest mean is 0.21, against 0.01 for even weights. On shuffled text the best *previous* and *followed* heads are the same and get more (0.86, 0.30); for the first token 58 pass a half, 53 of the 88 among them. So these go by positions and by equal tokens, and do not need sentences. With random $W_Q$ and $W_K$ no head exceeds 0.05.

# %% [markdown]
# Where a head looks is not what the model uses. So take heads away (their output is set to 0) and measure the loss on *other* stretches. *Foretold* are tokens where what followed the same token before follows again. **Which one head costs most: the best on the previous token, the best on what followed, or the best on the first token?**

# %%
guess = None  # "previous", "followed" or "first"

# %% tags=["hide-input"]
removed = kept["removed"]
rows = {}
for place, name in places.items():
    for label, rise in zip(("the best head", "the best five"), removed[place]["rise"]):
        rows[f"{label}: {name}"] = [rise]
rows["a random head"] = removed["random 1"]["rise"]
rows["five random heads"] = removed["random 5"]["rise"]
rows["each head of layers 1 to 3"] = removed["first layers"]["rise"]
order = [0, 2, 4, 6, 8, 1, 3, 5, 7]
title = "The best head on the previous token costs 0.1 nats, some early heads more"
figure, panels = plots.panels(title, ["all tokens", "foretold tokens"], size=(8, 3.2))
for which, ax in enumerate(panels):
    for y, i in enumerate(order):
        rises = [rise[which] for rise in list(rows.values())[i]]
        colour = plots.COLOURS[1 if i > 5 else 0]
        ax.plot(rises, [y] * len(rises), "o", color=colour, fillstyle="none", markersize=5)
    ax.axvline(0, color="0.6", linewidth=1)
    ax.set(xlabel="rise of the loss (nats)", ylim=(8.6, -0.6))
panels[0].set_yticks(range(9), [list(rows)[i] for i in order], size="small")
panels[1].set_yticks(range(9), [""] * 9)
single = {place: removed[place]["rise"][0][0] for place in places}
reveal(guess, max(single, key=single.get))
found = {p: [[round(x, 2) for x in r] for r in removed[p]["rise"]] for p in places}
assert found["previous"] == [[0.1, 0.38], [0.46, 0.87]]
assert found["followed"] == [[0.01, 0.04], [0.11, 0.62]]
assert found["first"] == [[-0.01, 0.0], [0.03, 0.27]]
drawn = [removed[f"random {n}"]["rise"] for n in (1, 5)]
five = [[round(max(r[i] for r in of), 2) for i in (0, 1)] for of in drawn]
assert five == [[0.01, 0.03], [0.12, 0.06]]
assert round(min(r[0] for r in drawn[1]), 2) == 0.03 and max(r[0] for r in drawn[0]) < 0.015
assert len({str(heads) for heads in removed["random 1"]["heads"]}) == 5
shared = [x for x in removed["first"]["heads"][1] if x in removed["followed"]["heads"][1]]
assert [[1 + i for i in x] for x in shared] == [[18, 5], [19, 7]]
early = dict(zip(map(str, removed["first layers"]["heads"]), removed["first layers"]["rise"]))
costly = sorted((rise[0], head) for head, rise in early.items())[-6:]
assert costly[0][0] > 0.13 and (round(costly[-1][0], 2), costly[-1][1]) == (0.4, "[[0, 0]]")
assert round(kept["weights"]["text"]["previous"][0][0], 2) == 0.03
said = "; ".join(f"{name}: {max(r[0] for r in rises):.2f}" for name, rises in rows.items())
plots.show(figure, f"Rise of the loss on all tokens, the largest of the draws. {said}.")

# %% [markdown]
# - *Previous*: this head costs 0.10 nats, five random ones at most 0.015 each. But six of the 27 heads of layers 1 to 3 cost 0.13 to 0.40, the costliest with a weight of 0.03 there.
# - *First*: the best head costs nothing. The best five cost 0.03, and 0.27 on foretold tokens; but two of them are among the five *followed* heads.
# - *Followed*: five heads cost 0.11 nats; five random ones 0.03 to 0.12. On foretold tokens they cost 0.62, random ones at most 0.06.
#
# Here three query heads share $W_K$ and $W_V$: **grouped queries**, lesson 09.

# %%
needs()

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | one head | $\mathrm{head}_i = \mathrm{softmax}\big(Q W_Q^i (K W_K^i)^T / \sqrt{d_k}\big)\, V W_V^i$ |
# | multi-head attention | $[\,\mathrm{head}_1 \mid \dots \mid \mathrm{head}_h\,]\, W_O$ |
# | splitting | $\mathrm{split}(Z)_{i,t,c} = Z_{t,\, i d_k + c}$ with $Z = Q W_Q$ |
# | bound | share explained $\le \min(1, h / r)$, for independent numbers of equal variance in one value direction, a linear readout, weights from names alone |
# | variance | $\mathrm{Var}(q \cdot k) = d_k$, for independent entries of variance 1 |
#
# One head returns one mixture. Quantities that share a direction come back as one sum, others need not. A weight says where a head looks; setting its output to 0 says what the model loses.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Four wanted numbers, independent and of equal variance, in one value direction, one head whose weights come from names alone, linear readout: what share is explained at most, and does a larger d_k help?</summary>
#
# A quarter. No: however wide the head, the numbers reach the readout as one weighted sum.
# </details>
#
# <details><summary>2. n = 10 tokens, d_model = 512, 8 heads. What are the shapes of the queries after splitting, of the weights, and of the merged result?</summary>
#
# 8 × 10 × 64, 8 × 10 × 10, 10 × 512.
# </details>
#
# <details><summary>3. Why is the mask given an axis of size 1 for the heads, and not one mask for each head?</summary>
#
# What a token may see does not depend on the head. An axis of size 1 is broadcast to all heads, without a copy.
# </details>

# %% [markdown]
# ## In your own words
#
# Eight heads of size 64 and one head of size 512 have the same number of parameters. Explain in one paragraph what the eight can return that the one cannot, under which condition, how you would show it, and what is known about real models.

# %% [markdown] tags=["question:why_heads"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# The small block of *Do several heads help?* has residual connections and norms already. Lesson 07 explains what they are for. Three explorations: [what heads cost](explorations/06_costs.ipynb), [how large scores are at the start](explorations/06_initial_weights.ipynb), and [whether a head can be left out](explorations/06_pruning.ipynb).
#
# Vaswani et al. 2017, sections 3.2.1 and 3.2.2, table 3; Olsson et al. 2022 (induction heads); Voita et al. 2019 and Clark et al. 2019 (heads with grammatical roles); Xiao et al. 2024 (the first token as a sink). Titles and links: REFERENCES.md. Lectures L1 to L5: TOPICS.md.
