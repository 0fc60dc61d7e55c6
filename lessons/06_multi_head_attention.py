# %% [markdown]
# # 06 · Multi-head attention
#
# **183 minutes, of which 129 are the core path · after lesson 05 · needs `shakespeare` (5.4 MB)**
#
# "The dog that chased the cats was tired." To understand *was*, you need its subject, *dog*, five words back, and what is said about it, *tired*, next door. But the weights of *was* sum to one: what attention gives to *dog*, it takes from *tired*. How can a token look at several places at once, for different reasons: grammar here, meaning there?

# %% [markdown]
# You will prove how little one **head** of attention can return, and see training hit that bound. Then you build **multi-head attention**, the layer of every Transformer, and compare it with torch's. You count what heads cost, and find out why scores are divided by $\sqrt{d_k}$, and whether your own layer needs it. Last, you read the heads of a trained model.
#
# You need lesson 03's scaled dot-product attention and lesson 05's causal mask. Sections and exercises marked *optional* are not needed later.

# %%
import torch
from collections.abc import Callable
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from course_lib.data import characters, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% [markdown]
# All three attention boxes of the Transformer are multi-head attention. They differ in where queries, keys and values come from, and in the mask.

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention", "cross-attention"},
    "The Transformer of 2017 with its three attention layers lit: self-attention in the encoder, "
    "masked self-attention and cross-attention in the decoder. Each of them has several heads.",
)

# %%
softmax = mine("attention/softmax")
dot_scores = mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
causal_mask = mine("masks/causal")

# %% [markdown]
# ## Two numbers at once
#
# To see what one head lacks, we need a task that asks for two things. In lesson 03 a token named another one and fetched its number. Now each token names *two*, and must return both numbers, in that order.

# %%
generator = torch.Generator().manual_seed(0)


def pointers(batch, n=5):
    """Draw names (own and two wanted), tokens (names and a number), and the wanted numbers."""
    own = torch.rand(batch, n, generator=generator).argsort(-1)
    wanted = torch.rand(batch, n, n, generator=generator).argsort(-1)[..., :2]
    numbers = torch.randn(batch, n, generator=generator)
    number_of = numbers.gather(-1, own.argsort(-1))
    found = number_of.gather(-1, wanted.flatten(1)).view(batch, n, 2)
    three = torch.cat([own.unsqueeze(-1), wanted], dim=-1)
    names = nn.functional.one_hot(three, n).flatten(-2).float()
    tokens = torch.cat([names, numbers.unsqueeze(-1)], dim=-1)
    return nn.functional.pad(names, (0, 1)), tokens, found


# %% [markdown]
# Here is one sentence of five tokens. Each token is three names, as one-hot vectors of five, and a number: 16 columns in all. Read the first row, and check its answer in the number column.

# %%
_, tokens, found = pointers(1)
print("own name   wants   its number   must return")
for token, (first, second) in zip(tokens[0], found[0]):
    own, one, other = ("ABCDE"[i] for i in token[:15].view(3, 5).argmax(-1))
    print(f"{own:>8}     {one} {other} {token[15]:10.2f} {first:11.2f} {second:6.2f}")

# %% [markdown]
# A head chooses by names and carries numbers: queries and keys see the names $N$ (the last column is 0), values see the whole tokens $X$. Head $i$ has three small matrices of its own:
#
# $$\underset{n \times d_k}{Q^i} = \underset{n \times 16}{N}\;\underset{16 \times d_k}{W_Q^i} \qquad \underset{n \times d_k}{K^i} = \underset{n \times 16}{N}\;\underset{16 \times d_k}{W_K^i} \qquad \underset{n \times d_k}{V^i} = \underset{n \times 16}{X}\;\underset{16 \times d_k}{W_V^i}$$

# %% [markdown]
# The head attends, all heads are joined side by side, and a linear layer reads both numbers:
#
# $$\underset{n \times d_k}{\mathrm{head}_i} = \mathrm{softmax}\!\left(\frac{Q^i (K^i)^T}{\sqrt{d_k}}\right) V^i \qquad \underset{n \times 2}{\hat Y} = \underset{n \times 16}{[\,\mathrm{head}_1 \mid \dots \mid \mathrm{head}_h\,]}\;\underset{16 \times 2}{W} + b$$


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


# %% tags=["nbval-check-output"]
for heads in (1, 2):
    print("heads:", heads, "parameters:", sum(p.numel() for p in Fetcher(heads).parameters()))

# %% [markdown]
# One head of size 16, or two of size 8: the same number of parameters. Both train for the same 500 steps. **What share of the variance of the wanted numbers will each explain?**

# %%
guess = None  # (share for one head, share for two heads)


# %% tags=["training"]
def squared_error(model, batch):
    names, tokens, found = batch
    return (model(names, tokens) - found).square().mean()


def trained(heads):
    with training.seeded(SEED):
        model = Fetcher(heads)
    data = iter(lambda: pointers(64), None)
    training.train(model, data, squared_error, steps=500, learning_rate=0.03, seconds=30)
    return model


# %% tags=["training"]
def explained(model):
    batch = pointers(20000)
    return 1 - (squared_error(model, batch) / batch[-1].square().mean()).item()


fetchers = {heads: trained(heads) for heads in (1, 2)}
shares = [round(explained(fetchers[heads]), 3) for heads in (1, 2)]
reveal(guess, tuple(round(share, 2) for share in shares))
claim = "one head explains under 0.52, two heads over 0.9"
training.expect(claim, shares[0] < 0.52 and shares[1] > 0.9, shares, *fetchers.values())

# %% [markdown]
# ## Why exactly half
#
# A half looks too round to be an accident of training, and it is not one. Take one token of one sentence. Its weights $\alpha_j$ depend on names alone. The value of token $j$ is linear: its number $y_j$ times the last row $w$ of $W_V$, plus something made of names. So the head returns
#
# $$\sum_j \alpha_j v_j = \underbrace{\Big(\sum_j \alpha_j y_j\Big)}_{s \text{: one number}}\, w \;+\; (\text{names only})$$
#
# However wide the head is, the five numbers reach the readout as *one* number $s$.

# %% [markdown]
# A linear readout turns $s$ into an answer $\hat y = s\,u + c$. The direction $u$ in the plane of answers is made of parameters only, $c$ of parameters and names. So, for given names, all answers are on one line along $u$; other names only shift that line by another $c$.
#
# But the wanted pair $y = (y_a, y_b)$ spreads equally in all directions of the plane: two independent numbers of variance 1. Let $u_\perp$ be the unit vector at right angles to $u$. Along it the answer is $c \cdot u_\perp$, and names say nothing about numbers:
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
# That was a proof on paper. Does the trained head answer on a line? Here are 250 wanted pairs, and what your two models answer.

# %% tags=["training", "hide-input"]
names, tokens, found = pointers(50)
title = "One head answers on a line, two heads fill the plane"
figure, panels = plots.panels(title, ["wanted", "one head", "two heads"], size=(7.8, 3.5))
with torch.no_grad():
    answers = [found, *(fetchers[heads](names, tokens) for heads in (1, 2))]
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
training.expect(claim, on_line > 0.98, round(on_line, 4), fetchers[1])

# %% [markdown]
# **Where do the heads look?** Here is the mean weight that a token gives to the first token it wants, to the second, and to the rest.


# %% tags=["training"]
def gazes(model):
    names, _, _ = pointers(2000)
    own, first, second = (names[..., 5 * i : 5 * i + 5] for i in range(3))
    for head in model.heads:
        weights = softmax(dot_scores(names @ head.w_q, names @ head.w_k) / head.w_q.shape[1] ** 0.5)
        wanted = [(weights * (who @ own.mT)).sum(-1).mean().item() for who in (first, second)]
        yield tuple(round(share, 2) for share in (*wanted, 1 - sum(wanted)))


# %% tags=["training"]
[only], (one, other) = (list(gazes(fetchers[heads])) for heads in (1, 2))
print("one head: ", only)
print("two heads:", one, "and", other)
apart = abs(one[0] * other[1] - one[1] * other[0])
claim = "one head leaves under 0.1 to the rest; the 2 x 2 table of the two heads' weights "
claim += "on the two names has a determinant over 0.1"
came = [only[2], round(apart, 2)]
training.expect(claim, only[2] < 0.1 and apart > 0.1, came, *fetchers.values())

# %% [markdown]
# Hardly any weight goes to the rest. On average, one head splits its weight between its two tokens, and whatever the mixture, half is lost. Two heads hold two different mixtures, and the readout solves for both numbers.

# %% [markdown]
# The same argument with $h$ heads and $r$ wanted numbers: the answers are in a space of at most $h$ dimensions, so at most $\min(1, h / r)$ of the variance is explained. `make results LESSON=06` trained twelve cases from three seeds, 600 steps each. All have $d_{model} = 32$ columns, shared among the heads, so cases with the same $r$ have the same number of parameters.

# %% tags=["hide-input"]
needs()
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

# %%
for run in kept["explained"]:
    for wanted, row in zip(kept["wanted"], run):
        for heads, share in zip(kept["heads"], row):
            assert abs(share - min(1, heads / wanted)) < 0.01

# %% [markdown]
# ### Which assumption does the half depend on? (optional)
#
# Four changes to a single head with two wanted numbers, one at a time, 1,000 steps, three seeds (the models are in `experiments/head_limit.py`):
#
# - a readout with a hidden layer;
# - queries and keys see the numbers, too;
# - values come from a network with a hidden layer;
# - a second layer, again of one head: names choose, its values see the tokens plus what the first head found, and the readout gets the sum of both heads.
#
# **Which of them get clearly past a half, say above 0.6?**

# %%
guess = None  # a list of "a nonlinear readout", "queries and keys see the numbers", ...

# %%
changes = results.load("head_limit")["figures"]["explained"]
for change, runs in changes.items():
    print(f"{change:33}", *(f"{share:.2f}" for share in runs))
past = [change for change, runs in changes.items() if min(runs) > 0.6]
reveal(guess, past)
assert past == ["a second layer"]

# %% [markdown]
# Only the second layer gets far past a half: it adds a second head, and reaches 1.00. Nonlinear values get to 0.55: the direction $w$ may then differ from token to token, so the answers need not be on one line. A better readout gains nothing: for normally distributed numbers the best guess of $(y_a, y_b)$ from $s$ *is* linear. With keys that see the numbers the proof fails, too, but these runs did not use that. So a second head may also be in a second layer.


# %% [markdown]
# ## Heads by reshaping
#
# So one such layer needs a head for each relation. With two heads, the *was* of our first sentence can look at its subject and at what is said about it (drawn by hand, not measured).

# %% tags=["hide-input"]
diagram = drawings.Diagram()
sentence = "The dog that chased the cats was tired".split()
words = [
    diagram.box(word, (1.6 * i, 0), "stream", size=(1.45, 0.7)) for i, word in enumerate(sentence)
]
was, dog, tired = words[6], words[1], words[7]
diagram.arrow(was, dog, "head 1: the subject", via=[(9.6, 1.1), (1.6, 1.1)], role="weights")
diagram.arrow(was, tired, via=[(9.6, -0.9), (11.2, -0.9)], role="weights")
diagram.text("head 2: what is said about it", (9.3, -0.9), size=drawings.SMALL, align="right")
diagram.show(
    "The sentence 'The dog that chased the cats was tired' as eight boxes. From 'was', head 1 "
    "looks five words back at its subject 'dog', and head 2 one word ahead at 'tired'.",
)

# %% [markdown]
# Two heads meant six small matrices and a loop. Put the small matrices side by side instead, and one product makes the queries of all heads:
#
# $$\underset{d_{model} \times h d_k}{W_Q} = [\,W_Q^1 \mid \dots \mid W_Q^h\,] \qquad\Rightarrow\qquad X W_Q = [\,X W_Q^1 \mid \dots \mid X W_Q^h\,] = [\,Q^1 \mid \dots \mid Q^h\,]$$

# %% [markdown]
# The product is as large as that of one wide head. What is left is to cut its columns, and to make each head a batch of its own, so that one call of attention serves all heads.

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
# The split of $Z = X W_Q$ is only a new way to index the same numbers. In this formula, as in code, heads, tokens and columns are counted from 0:
#
# $$\mathrm{split}(Z)_{i,\,t,\,c} = Z_{t,\; i\, d_k + c} \qquad (\text{head } i, \text{ token } t, \text{ column } c)$$

# %%
# exercise: multi_head/split_heads

# %%
check("multi_head/split_heads", split_heads)

# %%
split_heads = mine("multi_head/split_heads")

# %% [markdown]
# **Does `q.reshape(3, 5, 4)` do the same for five tokens of twelve columns and three heads?** The shape is right.

# %%
guess = None  # True or False

# %% tags=["nbval-check-output"]
q = torch.arange(60.0).reshape(5, 12)
reveal(guess, torch.equal(q.reshape(3, 5, 4), split_heads(q, 3)))
print("reshape: ", q.reshape(3, 5, 4)[0].tolist())
print("split:   ", split_heads(q, 3)[0].tolist())

# %% [markdown]
# Reshape alone gives the first head all of the first token (0 to 11) and two thirds of the second, and nothing of the last three. Nothing raises an error: a shape cannot tell whose numbers it holds.
#
# After attention, the heads' results must be side by side again, a row for each token. So invert the formula. **In a merged row of three heads with $d_k = 4$: from which head, and from which of its columns, does column $m = 9$ come? And column $m$ in general?**

# %%
guess = None  # (head, column), both counted from 0

# %%
# exercise: multi_head/merge_heads

# %%
check("multi_head/merge_heads", merge_heads)

# %%
merge_heads = mine("multi_head/merge_heads")

# %% tags=["nbval-check-output"]
marks = torch.arange(12.0).reshape(3, 1, 4)  # head i, column c holds 4 i + c
m = int(merge_heads(marks)[0, 9])
reveal(guess, (m // 4, m % 4))
assert torch.equal(merge_heads(split_heads(q, 3)), q)

# %% [markdown]
# Head $\lfloor m / d_k \rfloor$, column $m \bmod d_k$. Any other fixed order of the columns would train as well. But an output matrix trained with one order expects that order.
#
# ## Every shape
#
# Take five tokens, $d_{model} = 12$ and three heads, so $d_k = d_v = 4$. (With a batch of sentences, each shape gets one more axis in front.) **Write down the shapes of `x`, `q`, `split`, `scores`, `weights`, `attended`, `merged` and `output` before you compute them.**

# %%
guess = None  # {"x": (5, 12), "q": ..., "split": ..., "scores": ..., "weights": ..., ...}

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
x, w_q, w_k, w_v, w_o = torch.randn(5, 12), *torch.randn(4, 12, 12) / 12**0.5
parts = {"x": x, "q": x @ w_q, "split": split_heads(x @ w_q, 3)}
parts["scores"] = dot_scores(parts["split"], split_heads(x @ w_k, 3)) / 4**0.5
parts["weights"] = softmax(parts["scores"])
parts["attended"] = parts["weights"] @ split_heads(x @ w_v, 3)
parts["merged"] = merge_heads(parts["attended"])
parts["output"] = parts["merged"] @ w_o
reveal(guess, {name: tuple(part.shape) for name, part in parts.items()})

# %% [markdown]
# Now the loop beside it, each head with its own four columns of the three matrices. If the small matrices are the columns of the large ones, the two must agree.

# %%
looped = []
for head in (slice(0, 4), slice(4, 8), slice(8, 12)):
    q, k, v = x @ w_q[:, head], x @ w_k[:, head], x @ w_v[:, head]
    looped.append(scaled_dot_product_attention(q, k, v))
assert torch.allclose(torch.cat(looped, dim=-1), parts["merged"], atol=1e-5)

# %% [markdown]
# > **Where a lecture slips (D06).** L3 gives a head's matrices the shape $N \times d_k$, where $N$ is the number of tokens, and the output $N \times d$ although the values have $d_v$ columns. But $X$ is $N \times d$, so what multiplies it from the right needs $d$ rows. And before the output matrix, a head's output has the $d_v$ columns of its values.

# %% tags=["nbval-check-output"]
theirs, ours = torch.randn(5, 4), torch.randn(12, 4)
try:
    x @ theirs
except RuntimeError as error:
    print("N x d_k:", error)
for n in (5, 50):
    print(f"d x d_k: {n} tokens become", tuple((torch.randn(n, 12) @ ours).shape))
assert parts["attended"].shape[-2:] == (5, 4)

# %% [markdown]
# The number of tokens is in no parameter's shape. With $N \times d_k$, only sentences of length $N$ would fit. With all shapes known, the layer itself is short.

# %% [markdown]
# ## Build: multi-head attention
#
# Now the whole layer. It takes queries, keys and values from inputs that may differ (the pointers used two), and one more matrix mixes what the heads return. From here $Q$, $K$, $V$ are the layer's *inputs*, as in the paper; what is split is $Q W_Q$, and head $i$ gets $Q^i = Q W_Q^i$:
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
# `rule`, each head's attention function, treats the head axis as a batch axis. So the only new question is the mask. It has no head axis, and the scores have one: where must an axis of size 1 go?

# %%
# exercise: multi_head/attention

# %%
check("multi_head/attention", MultiHeadAttention)

# %%
MultiHeadAttention = mine("multi_head/attention")

# %% [markdown]
# Copy your parameters into torch's own layer. Torch keeps the first three matrices as one, and its mask says True where a token may *not* look. Do the two agree?

# %%
layer, torchs = MultiHeadAttention(12, 3), nn.MultiheadAttention(12, 3, batch_first=True)
torchs.out_proj.load_state_dict(layer.w_o.state_dict())
three = (layer.w_q, layer.w_k, layer.w_v)
with torch.no_grad():
    torchs.in_proj_weight.copy_(torch.cat([linear.weight for linear in three]))
    torchs.in_proj_bias.copy_(torch.cat([linear.bias for linear in three]))

# %%
batch, mask = torch.randn(2, 5, 12), causal_mask(5)
theirs, _ = torchs(batch, batch, batch, attn_mask=~mask)
difference = (layer(batch, batch, batch, mask) - theirs).abs().max().item()
print(f"largest difference: {difference:.0e}")
assert difference < 1e-5

# %% [markdown]
# It is torch's layer and, except for the biases, the paper's. Queries may come from other tokens than keys and values: 7 German tokens that look at 11 English ones get 7 rows of output, from 7 × 11 weights in each head. Lesson 08 uses this as cross-attention.

# %%
german, english = torch.randn(7, 12), torch.randn(11, 12)
assert layer(german, english, english).shape == (7, 12)

# %% [markdown]
# ### Box: rows or columns? (optional)
#
# > **Where the lectures disagree (D08).** L1 and L2 write a key as $Kx$ and all keys as $XK$, with one letter for a matrix and its transpose; L4 does so with $W_Q$. L1 puts the output matrix in front, $Y[\dots]$, L2 and L4 behind. Both conventions work: tokens are rows and matrices are on the right, or tokens are columns and matrices are on the left. Mixing them does not work.

# %%
x = parts["x"]
rows = softmax((x @ w_q) @ (x @ w_k).T) @ (x @ w_v)
q, k, v = w_q.T @ x.T, w_k.T @ x.T, w_v.T @ x.T  # tokens are columns
columns = v @ softmax(q.T @ k).T
assert torch.allclose(columns.T, rows, atol=1e-5)
mixed = softmax((x @ w_q.T) @ (x @ w_k.T).T) @ (x @ w_v.T)
print(f"the transpose is off by {(columns.T - rows).abs().max():.0e}, the mixture", end=" ")
print(f"by {(mixed - rows).abs().max():.1f}, and no error was raised")
assert (mixed - rows).abs().max() > 0.1

# %% [markdown]
# This course uses rows. Be careful with torch, though: `nn.Linear(12, 4)` keeps its matrix as (4, 12) and multiplies by the transpose. The *columns* of $W_Q$ in the formulas are the *rows* of its `weight`.

# %%
linear = nn.Linear(12, 4, bias=False)
assert linear.weight.shape == (4, 12) and torch.allclose(linear(x), x @ linear.weight.T)

# %% [markdown]
# ## What the output matrix is for
#
# Merging only puts the heads side by side: columns 0 to 3 come from the first head, columns 4 to 7 from the second. Change what the first head returns, and nothing else. How many of the twelve columns change, before $W_O$ and after it?


# %%
def changed(new, old):
    return int((new - old).abs().gt(1e-6).any(0).sum())


attended = parts["attended"].clone()
attended[0] += 1
before = changed(merge_heads(attended), parts["merged"])
after = changed(merge_heads(attended) @ w_o, parts["output"])
print(f"{before} columns before, {after} after")
assert (before, after) == (4, 12)

# %% [markdown]
# Cut $W_O$ into blocks of rows, one for each head. Then a product of blocks is a sum over heads:
#
# $$[\,\mathrm{head}_1 \mid \dots \mid \mathrm{head}_h\,]\; W_O = \sum_{i=1}^{h} \mathrm{head}_i\, W_O^i$$
#
# Each head writes into all columns of the output, through rows of its own, and the results are added up. This has two consequences. Heads have no order: renumber them in all four matrices, and nothing changes. And you can leave one out.

# %%
terms = [parts["attended"][i] @ w_o[4 * i : 4 * i + 4] for i in range(3)]
assert torch.allclose(sum(terms), parts["output"], atol=1e-5)
turned = [parts["attended"][i] for i in (2, 0, 1)]
rows = torch.cat([w_o[4 * i : 4 * i + 4] for i in (2, 0, 1)])
assert torch.allclose(torch.cat(turned, -1) @ rows, parts["output"], atol=1e-5)


# %%
def switch_off(layer, head):
    """Return a copy of the layer in which this head writes nothing."""
    copy = MultiHeadAttention(layer.w_o.in_features, layer.heads)
    copy.load_state_dict(layer.state_dict())
    d_k = layer.w_o.in_features // layer.heads
    with torch.no_grad():
        copy.w_o.weight[:, head * d_k : (head + 1) * d_k] = 0
    return copy


# %%
x, off = parts["x"], layer
for head in range(3):
    off = switch_off(off, head)
assert torch.allclose(off(x, x, x), layer.w_o.bias.expand(5, 12))

# %% [markdown]
# With all three off, only the bias is left. Keep `switch_off`: we use it on a trained model below.
#
# ## What do heads cost? (optional)
#
# A layer has $W_Q^i$ and $W_K^i$ ($d_{model} \times d_k$) and $W_V^i$ ($d_{model} \times d_v$) in each of $h$ heads, and one $W_O$ for all of them. The paper's layer has $d_{model} = 512$, eight heads and $d_k = d_v = 64$. **How many parameters is that, without biases? And with one head of 512?**

# %%
guess = None  # (eight heads, one head)

# %%
# exercise: multi_head/parameters

# %%
check("multi_head/parameters", parameter_count)

# %%
parameter_count = mine("multi_head/parameters")

# %% tags=["nbval-check-output"]
reveal(guess, (parameter_count(512, 8, 64, 64), parameter_count(512, 1, 512, 512)))
counted = sum(p.numel() for p in MultiHeadAttention(512, 8).parameters())
print(counted, "with biases")
assert counted == parameter_count(512, 8, 64, 64, bias=True)

# %% [markdown]
# As long as $d_k = d_v = d_{model} / h$, it is $4\, d_{model}^2$ for any number of heads: four square matrices, cut in different ways.
#
# > **Where the lectures simplify (D12).** L1, L2 and L4 say that many heads cost the same as one. Count what the layer does: multiply-adds, then scores, then seconds of the processor. **With 32 heads in place of one, how many times as many multiply-adds and scores are there?**

# %%
guess = None  # (multiply-adds, scores)

# %%
from torch.utils.flop_counter import FlopCounterMode


@torch.no_grad()
def multiply_adds(heads, n=512, d_model=256):
    layer, x = MultiHeadAttention(d_model, heads), torch.randn(n, d_model)
    with FlopCounterMode(display=False) as counter:
        layer(x, x, x)
    return counter.get_total_flops() // 2


# %%
heads = [1, 2, 4, 8, 16, 32]
products = [multiply_adds(h) for h in heads]
x = torch.randn(512, 256)
scores = [dot_scores(split_heads(x, h), split_heads(x, h)).numel() for h in heads]
print(f"multiply-adds {products}\nscores {scores}")
reveal(guess, (products[-1] / products[0], scores[-1] / scores[0]))
assert set(products) == {4 * 512 * 256**2 + 2 * 512**2 * 256} and scores[-1] == 32 * scores[0]

# %% [markdown]
# Here is why. The projections take $4\, n\, d_{model}^2$ multiply-adds; scores and averages take $h \cdot 2\, n^2 d_k = 2\, n^2 d_{model}$. There is no $h$ in either. But each head has $n^2$ scores of its own, $h\, n^2$ in all, and our code stores, scales, exponentiates and divides all of them. What does the clock say?

# %%
from time import process_time


@torch.no_grad()
def seconds(heads, n=512, d_model=256):
    layer, x, times = MultiHeadAttention(d_model, heads), torch.randn(n, d_model), []
    for _ in range(5):
        start = process_time()
        layer(x, x, x)
        times.append(process_time() - start)
    return min(times)


times = [seconds(h) for h in heads]
print([f"{1000 * t:.0f} ms" for t in times])

# %% tags=["hide-input"]
title = "With more heads the multiply-adds stay, and the scores grow"
figure, ax = plots.axes(title, "heads", "times as much as one head", size=(6.4, 3.4))
series = {"multiply-adds": products, "scores": scores, "processor time, here": times}
for (name, counts), colour in zip(series.items(), plots.COLOURS):
    ratios = [count / counts[0] for count in counts]
    ax.plot(heads, ratios, "o--" if name.startswith("processor") else "o-", color=colour)
    ax.text(36, ratios[-1], name, color=colour, va="center", size="small")
ax.set(xscale="log", yscale="log", xticks=heads, xticklabels=heads)
ax.set(yticks=[1, 2, 4, 8, 16, 32], yticklabels=[1, 2, 4, 8, 16, 32])
ax.minorticks_off()
plots.show(
    figure,
    "Three curves against 1 to 32 heads, both axes logarithmic, relative to one head. "
    "Multiply-adds stay at 1. Scores grow in proportion, to 32. The processor time measured here "
    f"reaches {times[-1] / times[0]:.0f}.",
)

# %% [markdown]
# So "the same" is true of parameters and of multiply-adds, and false of memory. Your own timing is printed above. Each score comes with $2 d_k + 4 d_{model} d_k / n$ multiply-adds, so scores weigh most in narrow heads on long texts. Lesson 13 computes them without ever storing them.

# %% [markdown]
# ## Scores that grow
#
# One question of lesson 03 is still open: why divide by $\sqrt{d_k}$? It is about the *variance* of the scores before any training. Suppose that the numbers in $q$ and $k$ are independent, with mean 0 and variance 1. Three rules are all you need:
#
# $$\underset{X, Y \text{ independent, of mean 0}}{\mathrm{Var}(XY) = \mathrm{Var}(X)\,\mathrm{Var}(Y)} \qquad \underset{\text{uncorrelated}}{\mathrm{Var}\Big(\sum_c X_c\Big) = \sum_c \mathrm{Var}(X_c)} \qquad \mathrm{Var}(X / a) = \mathrm{Var}(X) / a^2$$
#
# **On paper first: what is the variance of $q \cdot k$ for $d_k = 64$, and of $q \cdot k / \sqrt{d_k}$?**

# %%
guess = None  # (not divided, divided by the root)

# %%
# exercise: multi_head/score_variance

# %%
check("multi_head/score_variance", score_variance)

# %%
score_variance = mine("multi_head/score_variance")

# %% tags=["nbval-check-output"]
reveal(guess, (score_variance(64, scaled=False), score_variance(64, scaled=True)))

# %% [markdown]
# Here is the derivation, for any variances $\sigma_q^2$ and $\sigma_k^2$, since we need them in a moment:
#
# $$\mathrm{Var}(q \cdot k) = \sum_{c=1}^{d_k} \mathrm{Var}(q_c k_c) = \sum_{c=1}^{d_k} \mathbb{E}[q_c^2]\,\mathbb{E}[k_c^2] = d_k\, \sigma_q^2\, \sigma_k^2 \qquad \mathrm{Var}\!\left(\frac{q \cdot k}{\sqrt{d_k}}\right) = \sigma_q^2\, \sigma_k^2$$
#
# With variance 1, a typical undivided score is as large as $\sqrt{d_k}$. What does a softmax do with such scores? Lesson 02 derived its Jacobian, $\partial \alpha_i / \partial e_j = \alpha_i (\delta_{ij} - \alpha_j)$: where one weight is 1 and the others are 0, all of it is 0.


# %%
def weights_and_slopes(d_k, divisor):
    """Return 500 rows of weights over 16 keys, and the norm of each row's Jacobian."""
    generator = torch.Generator().manual_seed(d_k)
    q, k = (torch.randn(500, n, d_k, generator=generator) for n in (1, 16))
    scores = dot_scores(q, k).squeeze(1) / divisor
    jacobian = torch.vmap(torch.func.jacrev(lambda row: torch.softmax(row, -1)))(scores)
    return torch.softmax(scores, -1), jacobian.flatten(1).norm(dim=-1)


# %%
sizes = [4**i for i in range(6)]
curves = {False: [], True: []}
draws = torch.Generator().manual_seed(0)
for scaled, rows in curves.items():
    for d_k in sizes:
        weights, slopes = weights_and_slopes(d_k, d_k**0.5 if scaled else 1)
        q, k = torch.randn(2, 10_000, d_k, generator=draws)
        variance = ((q * k).sum(-1) / (d_k**0.5 if scaled else 1)).var()
        assert abs(variance / score_variance(d_k, scaled) - 1) < 0.1
        rows.append([x.item() for x in (variance, weights.amax(-1).mean(), slopes.median())])
print("weight, slope at d_k =", ", ".join(map(str, sizes)))
for scaled, rows in curves.items():
    shown = "  ".join(f"{weight:.2f}, {slope:.0e}" for _, weight, slope in rows)
    print(f"{'divided:    ' if scaled else 'not divided:'} {shown}")

# %% tags=["hide-input"]
title = "Numbers of variance 1: undivided scores grow with $d_k$ and saturate the softmax"
names = ["variance of the scores", "largest of 16 weights, mean", "norm of the Jacobian, median"]
figure, panels = plots.panels(title, names, size=(8.4, 3.1))
for scaled, colour in zip(curves, plots.COLOURS[1::-1]):
    label = "divided by $\\sqrt{d_k}$" if scaled else "not divided"
    for ax, values in zip(panels, zip(*curves[scaled])):
        ax.plot(sizes, values, "o-", color=colour, markersize=4)
    exact = [score_variance(d_k, scaled) for d_k in sizes]
    panels[0].plot(sizes, exact, "--", color="0.3", linewidth=1)
    place = (20, 1.7) if scaled else (20, 60)
    panels[0].text(*place, label, color=colour, size="small", ha="left" if scaled else "right")
    panels[1].text(*((30, 0.28) if scaled else (1.2, 0.88)), label, color=colour, size="small")
    place = (1024, 0.42) if scaled else (45, 3e-3)
    panels[2].text(*place, label, color=colour, size="small", ha="right")
panels[0].text(20, 0.4, "dashed: computed", color="0.3", size="small")
for ax in panels:
    ax.set(xscale="log", xlabel="$d_k$", xticks=[1, 4, 16, 64, 256, 1024])
    ax.set_xticklabels([1, 4, 16, 64, 256, 1024], size="small")
    ax.minorticks_off()
panels[0].set(yscale="log", ylim=(0.25, 2000))
panels[1].set(ylim=(0, 1))
panels[2].set(yscale="log", ylim=(1e-5, 1))
plots.show(
    figure,
    "Three panels against d_k from 1 to 1,024. Not divided: the variance is d_k, the largest of 16 "
    "weights rises from 0.21 to 0.96, and the median norm of the Jacobian falls from about 0.3 to "
    "about 2e-5. Divided: all three stay flat, the variance at 1.",
)

# %%
undivided, divided = curves[False][3][2], curves[True][3][2]
kept_slope = undivided / divided
print(f"d_k = 64: slope {undivided:.2f} of {divided:.2f}, a share of {kept_slope:.2f}")
assert 0.4 < kept_slope < 0.5 and curves[False][-1][2] < 1e-4
assert min(slope for _, _, slope in curves[True]) > 0.1

# %% [markdown]
# Undivided, a typical row of a wide head has one weight near 1, and hardly any gradient reaches its scores. (Vaswani et al. 2017 "suspect" this, in section 3.2.1; here it is measured.) At the paper's $d_k = 64$ the typical row still has almost half of its slope (0.14 of 0.30): the harm comes with width. Divided, nothing depends on $d_k$.

# %% [markdown]
# > **Where a lecture slips (D10).** L3 scales by "the size of embedding", beside a formula with $\sqrt{d_k}$. With one head of full width the two are the same. With several, the sum runs over one *head*, $d_k = d_{model}/h$ terms, and dividing by $\sqrt{d_{model}}$ leaves a variance of $1/h$. The next section draws it for $d_{model} = 512$ and 8 heads.

# %% [markdown]
# ## And your own layer? (optional)
#
# The paper's footnote 4 *assumes* numbers of variance 1. Does your layer have them? In the reader below its inputs do: they come from a layer norm (lesson 07), which at the start of training gives each token mean 0 and variance 1. But its matrices are `nn.Linear`: torch draws their first parameters uniformly from the interval $[-1/\sqrt{d_{model}},\; 1/\sqrt{d_{model}}]$. A uniform number from $[-a, a]$ has variance $a^2/3$.
#
# **Use the three rules: what is the variance of the scores in `MultiHeadAttention(512, 8)`, divided by $\sqrt{d_k}$, before any training?**

# %%
guess = None  # a variance


# %%
def first_scores(layer, n):
    """Return the divided scores of fresh queries and n keys, over normalized inputs."""
    d_model = layer.w_q.in_features
    x = nn.functional.layer_norm(torch.randn(100, n, d_model), (d_model,))
    with torch.no_grad():
        q, k = (split_heads(w(x), layer.heads) for w in (layer.w_q, layer.w_k))
    return dot_scores(q, k) / q.shape[-1] ** 0.5


# %%
torch.manual_seed(0)
for d_model, heads in ((64, 4), (64, 1), (512, 8)):
    scores, d_k = first_scores(MultiHeadAttention(d_model, heads), 16), d_model // heads
    variance = scores.var().item()
    print(f"d_model = {d_model:3}, d_k = {d_k}: divided {variance:.2f}", end=", ")
    print(f"not divided {variance * d_k:.1f}")
    assert abs(variance - 1 / 9) < 0.03
reveal(guess, variance)

# %% [markdown]
# It is $1/9$, and not 1: $q_c = \sum_m x_m W_{mc}$ has $d_{model}$ terms, of variance $1/(3\, d_{model})$ each, so
#
# $$\sigma_q^2 = \sigma_k^2 = \tfrac{1}{3} \qquad\Rightarrow\qquad \mathrm{Var}\!\left(\frac{q \cdot k}{\sqrt{d_k}}\right) = \tfrac{1}{9} \approx 0.11$$
#
# (The bias adds $1/(3\,d_{model})$, which is next to nothing.) So where do the weights of your layer start?

# %%
d_k, d_model = 64, 512
divisors = {"not divided": 1, "√d_k": d_k**0.5, "√d_model": d_model**0.5}
weights = {name: weights_and_slopes(d_k, divisor)[0] for name, divisor in divisors.items()}
weights["your layer"] = softmax(scores).flatten(0, -2)
ranked = {name: rows.sort(descending=True).values.mean(0) for name, rows in weights.items()}
print({name: round(row[0].item(), 2) for name, row in ranked.items()})
assert abs(ranked["your layer"][0] - ranked["√d_model"][0]) < 0.02

# %% tags=["hide-input"]
title = "Your layer, divided by $\\sqrt{d_k}$, starts flatter than the paper assumes"
figure, ax = plots.axes(title, "16 keys, best first", "mean weight", size=(7, 3.6))
labels = {
    "not divided": ((5.4, 0.0033), "variance 64: not divided"),
    "√d_k": ((6.3, 0.017), "variance 1: divided by $\\sqrt{d_k}$"),
    "√d_model": ((6.3, 0.145), "variance 1/8: divided by $\\sqrt{d_{model}}$ (L3's divisor)"),
    "your layer": ((6.3, 0.1), "variance 1/9: your layer, divided by $\\sqrt{d_k}$"),
}
for (name, row), colour in zip(ranked.items(), plots.COLOURS[1::-1] + plots.COLOURS[2:]):
    style = "s--" if name == "your layer" else "o-"
    ax.plot(range(1, 17), row, style, color=colour, markersize=4, linewidth=1.5)
    ax.text(*labels[name][0], labels[name][1], color=colour, size="small")
ax.axhline(1 / 16, color="0.6", linewidth=1, linestyle=":")
ax.text(16.3, 0.069, "all alike:\n1/16", color="0.4", size="small", va="bottom")
ax.set(yscale="log", ylim=(0.002, 1.2), xticks=[1, 4, 8, 12, 16])
plots.show(
    figure,
    "Mean weight of 16 keys, sorted, on a logarithmic axis. Scores of variance 64 give the best "
    "key 0.83; variance 1 gives it 0.24; variance 1/8, from dividing by root d_model, and variance "
    "1/9, your layer, both 0.11, close to the even 1/16.",
)

# %% [markdown]
# Your layer divides correctly, by $\sqrt{d_k}$, and still starts about as flat as scores of variance 1/8, from L3's divisor. Is a flat start bad? At $d_k = 16$ *without* the division, your layer's scores would have a variance of 1.8, closer to the 1 that the paper assumes. **Two heads of 16 learn the pointers from normalized inputs. Do they get to 90 % explained in fewer steps with the division or without it?**

# %%
guess = None  # "divided" or "not divided"

# %%
paces = results.load("first_scores")["figures"]
columns = [paces["factors"].index(factor) for factor in (1, 4)]  # 4 undoes the root of 16
steps = [[run[column]["steps"] for run in paces["pointers"]] for column in columns]
for name, counts in zip(("divided", "not divided"), steps):
    print(f"{name:12} steps to 90 %, three seeds: {counts}")
reveal(guess, "divided" if sum(steps[0]) < sum(steps[1]) else "not divided")
sooner = [with_it - without for with_it, without in zip(*steps)]
print("sooner without the division, in steps:", *sooner)
assert (min(sooner), max(sooner)) == (4, 12)

# %% tags=["hide-input"]
title = "Two heads of 16: slow from very small and very large first variances"
x, y = "variance of the scores before training", "steps to 90 % explained"
figure, ax = plots.axes(title, x, y, size=(7.6, 3.8))
for run in paces["pointers"]:
    points = [(case["variance"], case["steps"]) for case in run]
    ax.plot(*zip(*points), "o", color=plots.COLOURS[0], markersize=5)
marks = {
    1 / 9: "your layer,\ndivided\n(any $d_k$)",
    1: "the paper's\nassumption,\ndivided",
    64 / 9: "your layer,\nundivided,\n$d_k = 64$",
    1024 / 9: "your layer,\nundivided,\n$d_k = 1024$",
}
note = "grey lines: where such a layer\nwould start; all dots have $d_k = 16$"
ax.text(0.0003, 350, note, size="x-small", va="top", color="0.3")
for variance, text in marks.items():
    ax.axvline(variance, ymax=0.72, color="0.7", linewidth=1, zorder=0)
    ax.text(variance, 215, text, size="x-small", ha="center", va="bottom", color="0.3")
ax.set(xscale="log", yscale="log", ylim=(25, 400), yticks=[30, 50, 100, 200])
ax.set_yticklabels([30, 50, 100, 200])
ax.minorticks_off()
plots.show(
    figure,
    "Steps until two heads explain 90 per cent of the pointers, against the first variance of "
    "their scores, three seeds a point. At 0.0004 about 117 steps, at 0.1 about 50, at 0.8 to 1.9 "
    "between 36 and 50, at 6 to 7 between 35 and 68, at 25 between 36 and 80, at 400 between 49 "
    "and 160, at 6,000 between 86 and 143. "
    "Grey lines mark where a layer of such a kind would start: divided at 0.11, with the paper's "
    "assumption at 1, undivided at 7 for d_k = 64 and at 114 for d_k = 1,024. Dots have d_k = 16.",
)

# %% [markdown]
# Of the starts we tried, 0.8 to 1.9 was best on average; far below and far above it, learning is slower. (Section 3.2.1 warns only of the right side.) But the valley is wide: from 0.1 to 2, all runs took between 36 and 54 steps. The division by $\sqrt{d_k}$ makes the scores' first variance independent of $d_k$. How large it is depends on the first parameters. And all of this is about *how fast* a model learns: training can make $W_Q$ larger or smaller, and undo any factor.

# %%
valley = [case["steps"] for run in paces["pointers"] for case in run if 0.05 < case["variance"] < 2]
print(f"{min(valley)} to {max(valley)} steps; means of three seeds by first variance:")
means = []
for runs in zip(*paces["pointers"]):
    variance, mean = (sum(case[key] for case in runs) / 3 for key in ("variance", "steps"))
    means.append(mean)
    print(f"{variance:.2g}: {mean:.0f}", end="  ")
assert (min(valley), max(valley)) == (36, 54) and max(means[3:5]) < min(means[:3] + means[5:])

# %% [markdown]
# > **Our layer breaks the paper's assumption.** Three usual ways to draw the first $W_Q$ and $W_K$, all uniform, give three starts. Torch's own `nn.MultiheadAttention` draws them by Glorot's rule, but for the three matrices stacked as one. Of the three, only Glorot's rule for each square matrix (Glorot & Bengio 2010) gives what footnote 4 assumes.
#
# | first parameters uniform on $[-a, a]$ | $a^2$ | $\sigma_q^2 = d_{model}\, a^2 / 3$ | variance of divided scores |
# |:-|:-|:-|:-|
# | `nn.Linear` | $1 / d_{model}$ | 1/3 | 1/9 |
# | `nn.MultiheadAttention` | $6 / (4\, d_{model})$ | 1/2 | 1/4 |
# | Glorot, each matrix | $6 / (2\, d_{model})$ | 1 | 1 |

# %%
glorot, torchs = MultiHeadAttention(512, 8), nn.MultiheadAttention(512, 8)
for linear in (glorot.w_q, glorot.w_k):
    nn.init.xavier_uniform_(linear.weight)
like_torchs = MultiHeadAttention(512, 8)
with torch.no_grad():
    like_torchs.w_q.weight.copy_(torchs.in_proj_weight[:512])
    like_torchs.w_k.weight.copy_(torchs.in_proj_weight[512:1024])
for name, drawn, exact in (("torch's", like_torchs, 1 / 4), ("Glorot", glorot, 1)):
    variance = first_scores(drawn, 16).var().item()
    print(f"{name:8} {variance:.2f}")
    assert abs(variance / exact - 1) < 0.15

# %% [markdown]
# **Choose $a$ yourself: for $d_{model} = 512$, which $a$ gives the divided scores a variance of 4?**

# %%
guess = None  # a number

# %%
exact = (2 * 3 / 512) ** 0.5
a = guess or exact
drawn = MultiHeadAttention(512, 8)
for linear in (drawn.w_q, drawn.w_k):
    nn.init.uniform_(linear.weight, -a, a)
reveal(guess, exact)
print(f"with a = {a:.3f} the variance is {first_scores(drawn, 16).var():.2f}")

# %% [markdown]
# ### Does it matter on text? (optional)
#
# The small language model that you train below, `Reader`, with and without the division, after 200 steps each. Held-out loss in nats, three seeds:

# %%
for run in paces["reader"]:
    d_k, losses = 64 // run["heads"], " ".join(f"{loss:.2f}" for loss in run["loss"])
    name, factor = ("divided", 1) if run["divided"] else ("not divided", d_k)
    print(f"d_k = {d_k}, {name:12} first variance {factor / 9:3.1f}: loss {losses}")
four, four_not, one, one_not = (torch.tensor(run["loss"]) for run in paces["reader"])
print("behind, d_k = 16:", *(f"{gap:.2f}" for gap in four_not - four), end="; ")
print("d_k = 64:", *(f"{gap:.2f}" for gap in one_not - one))
assert (four_not > four).all() and (one_not - one).min() > 0.045

# %% [markdown]
# Here the flat start is the better one, even at $d_k = 16$. The three findings side by side:
#
# | task | better start, first variance | measured gap, over three seeds |
# |:-|:-|:-|
# | pointers, $d_k = 16$ | not divided, 1.6 on average | 4 to 12 steps of about 50 |
# | text, $d_k = 16$ | divided, 0.1 | 0.01 to 0.03 nats |
# | text, $d_k = 64$ | divided, 0.1 | 0.05 to 0.12 nats |
#
# A possible reason (we did not test it): a pointer needs one key to win, while the next character is served well by a blend of several.

# %% [markdown]
# ## What do the heads of a trained model look at?
#
# The pointers told us what heads *can* do. Now real text. The language model below predicts the next character of Shakespeare: embeddings with lesson 04's positions, four causal heads, lesson 05's feed-forward network. Two things are borrowed from lesson 07: the residual connections `x +`, and `nn.LayerNorm`.

# %%
needs("shakespeare")

# %%
from course_lib.feed_forward import FeedForward

learning, held_out = characters.split()
sinusoidal = mine("positions/sinusoidal")


# %%
class Reader(nn.Module):
    def __init__(self, d_model=64, heads=4, vocab=84):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, 4 * d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))
        self.readout = nn.Linear(d_model, vocab)

    def forward(self, tokens):
        x = self.embedding(tokens) + sinusoidal(tokens.shape[-1], 64)
        normed = self.norms[0](x)
        x = x + self.attention(normed, normed, normed, causal_mask(tokens.shape[-1]))
        x = x + self.feed_forward(self.norms[1](x))
        return self.readout(self.norms[2](x))


# %% tags=["training"]
def next_character_loss(model, batch):
    tokens, following = batch
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), following.flatten())


with training.seeded(SEED):
    reader = Reader()
budget = {"steps": 800, "seconds": 30, "learning_rate": 0.005}
training.train(reader, characters.batches(learning, 64, 32, SEED), next_character_loss, **budget)
test = next(characters.batches(held_out, 64, 200, seed=0))
with torch.no_grad():
    loss = next_character_loss(reader, test).item()
print(f"loss on held-out text: {loss:.2f} nats")

# %% [markdown]
# You are about to see four heat maps of a line. We say that a head has a *job* if more than half of its weight, on average, is on one and the same of four places: the character itself, the one before it, the last space (where the word begins), or the last line break. **How many of the four heads will have a job?**

# %%
guess = None  # a number from 0 to 4


# %% tags=["training"]
@torch.no_grad()
def attention_weights(model, tokens):
    x = model.embedding(tokens) + sinusoidal(tokens.shape[-1], 64)
    normed, layer = model.norms[0](x), model.attention
    q, k = (split_heads(w(normed), layer.heads) for w in (layer.w_q, layer.w_k))
    return softmax(dot_scores(q, k) / q.shape[-1] ** 0.5, causal_mask(tokens.shape[-1]))


# %% tags=["training", "hide-input"]
line = "\nmusic be the food of"
weights = attention_weights(reader, characters.encode(line))
weights = weights.masked_fill(~causal_mask(len(line)), torch.nan)
title = "Four heads in one line: most weight is on the last few characters"
names = [f"head {i}" for i in range(1, 5)]
figure, panels = plots.panels(title, names, size=(7.8, 6.9), rows=2)
shown = list(line.replace("\n", "↵").replace(" ", "·"))
for ax, head in zip(panels, weights):
    image = ax.imshow(head, vmin=0, vmax=1)
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.85", hatch="///")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(range(len(shown)), shown, family="monospace", size=8)
    ax.set_yticks(range(len(shown)), shown, family="monospace", size=8)
for ax in panels[2:]:
    ax.set(xlabel="key")
for ax in panels[::2]:
    ax.set(ylabel="query")
figure.colorbar(image, ax=panels, label="weight", shrink=0.5)
plots.show(
    figure,
    "Causal weights of four heads over 21 characters, a line break and 'music be the food of'. In "
    "each head most of the weight is on the diagonal and the few characters before it, in a blend "
    "that differs from head to head.",
)

# %% [markdown]
# Pictures invite stories. "Head 2 looks at the previous letter" is quickly said, and some line will fit the story. So measure, over 200 stretches of held-out text. For each query, mark the key at each of the four places. (The four can coincide, so a column can sum to more than 1.) Beside the four jobs, the table has the **entropy** of the weights in bits: 0 for a single key, 2 for four equal ones.


# %% tags=["training"]
def relations(tokens):
    """Return, for each relation, which key is meant: True at one key of a query, or at none."""
    n = tokens.shape[-1]
    targets = {"itself": torch.eye(n), "previous": torch.diag(torch.ones(n - 1), -1)}
    targets = {name: target.bool().expand(len(tokens), n, n) for name, target in targets.items()}
    for name, character in {"space": " ", "line": "\n"}.items():
        marked = tokens == characters.encode(character)
        number = marked.cumsum(-1)  # of each mark; a query wants the last one before it
        wanted = number - marked.long()
        targets[name] = marked.unsqueeze(-2) & (number.unsqueeze(-2) == wanted.unsqueeze(-1))
    return targets


# %% tags=["training"]
def mean_weight(weights, target):
    """Average each head's weight on the target, over the queries that have one."""
    on_target = (weights * target.unsqueeze(-3)).sum(-1).sum((0, 2))
    return (on_target / target.any(-1).sum()).tolist()


weights = attention_weights(reader, test[0])
live = {name: mean_weight(weights, target) for name, target in relations(test[0]).items()}
entropy = -(weights * weights.clamp(min=1e-9).log2()).sum(-1)
live["bits"] = entropy.mean((0, 2)).tolist()
print("head       ", *(f"{i:6}" for i in range(1, 5)))
for name, values in live.items():
    print(f"{name:11}", *(f"{value:6.2f}" for value in values))

# %% tags=["training"]
largest = torch.tensor([live[name] for name in ("itself", "previous", "space", "line")]).amax(0)
reveal(guess, int((largest > 0.5).sum()))
near = weights.tril().triu(-3).sum(-1).mean((0, 2))
came = [round(share, 2) for share in near.tolist()]
claim = "over 0.35 of the weight, in the mean of the heads, is on the last four characters"
training.expect(claim, near.mean() > 0.35, came, reader)

# %% [markdown]
# The number of jobs is printed above, next to your guess. Is it an accident of this run? Here are the heads of three kept runs, twelve in all.

# %% tags=["hide-input"]
needs()
names = ["itself", "previous", "space", "line"]
title = "None of twelve heads gives half of its weight to any of four places, on average"
figure, ax = plots.axes(title, "", "mean weight of a head", size=(7, 3.6))
for seed, run in enumerate(kept["reader"]):
    for i, name in enumerate(names):
        place = i + (seed - 1) / 5
        ax.plot([place] * 4, run[name], "o", color=plots.COLOURS[0], markersize=5)
        if i == 0:
            ax.text(place, 0.1, f"seed {seed}", size="x-small", ha="center", rotation=90, va="top")
ax.axhline(0.5, color="0.4", linestyle="--", linewidth=1)
ax.text(3.4, 0.515, "a job would be above this line", size="small", color="0.3", ha="right")
labels = ["itself", "previous character", "last space", "last line break"]
ax.set(xticks=range(4), xticklabels=labels, ylim=(-0.015, 0.6), xlim=(-0.5, 3.5))
plots.show(
    figure,
    "Mean weights of twelve heads, four for each of three seeds. On the character itself 0.18 to "
    "0.35, on the previous one 0.28 to 0.43, on the last space 0.02 to 0.22, on the last line "
    "break 0.01 to 0.14. None reaches 0.5.",
)

# %% tags=["nbval-check-output"]
for seed, run in enumerate(kept["reader"]):
    print(f"seed {seed}: last space", " ".join(f"{weight:.2f}" for weight in run["space"]))
    near = [sum(pair) for pair in zip(run["itself"], run["previous"])]
    assert min(near) > 0.3 and max(max(run[name]) for name in names) < 0.5
    assert max(run["space"]) > 2 * min(run["space"])

# %% [markdown]
# By our definition none of the twelve is a specialist. Each reads a blend of the near past, and their weight on the last space goes from 0.02 to 0.22. In large models some heads do have jobs that grammar has names for, such as a verb's direct object or a noun's determiner (reported by Clark et al. 2019 and Voita et al. 2019, not measured here). Lesson 09 looks for them in a trained encoder.

# %% [markdown]
# Did this reader need four heads at all? A second reader was trained with *one* head of size 64: the same parameters, the same 800 steps. **What are the mean losses over three seeds?**

# %%
guess = None  # (loss with one head, loss with four)

# %% tags=["nbval-check-output"]
losses = [[run["loss"] for run in kept[name]] for name in ("one head", "reader")]
reveal(guess, tuple(round(sum(three) / 3, 3) for three in losses))
assert abs(sum(losses[0]) - sum(losses[1])) / 3 < 0.05

# %% [markdown]
# Nearly the same. At this size and after 800 steps, one blend serves as well as four; we did not test why. Several heads are an option, not a guarantee: they help where a token has several relations to hold, as in the pointers, and need not help elsewhere. What a task needs has to be measured.

# %% [markdown]
# ## Can a head be left out? (optional)
#
# Switch off the heads of the trained reader, one at a time, without any further training. Michel et al. 2019 did so with one large translation model and with BERT: most heads could go, one at a time, without a significant loss (reported there, not measured here). **By how much does the loss rise here, at least and at most?**

# %%
needs("shakespeare")

# %%
guess = None  # (least, most), in nats


# %% tags=["training"]
@torch.no_grad()
def loss_without(head):
    whole = reader.attention
    reader.attention = switch_off(whole, head)
    without = next_character_loss(reader, test).item()
    reader.attention = whole
    return without


rises = [loss_without(head) - loss for head in range(4)]
reveal(guess, (round(min(rises), 2), round(max(rises), 2)))

# %% tags=["hide-input"]
needs()
title = "Switching off any one head costs each of the three readers 0.09 nats or more"
figure, ax = plots.axes(title, "seed of the kept run", "rise of the loss (nats)", size=(6, 3.2))
for seed, run in enumerate(kept["reader"]):
    places = [seed + (i - 1.5) / 6 for i in range(4)]
    ax.bar(places, sorted(run["rise"]), 0.14, color=plots.COLOURS[0])
ax.set(xticks=range(3), xticklabels=["0", "1", "2"])
least = min(min(run["rise"]) for run in kept["reader"])
assert least > 0.09
plots.show(
    figure,
    "Rise of the held-out loss when one of four heads is switched off, for three kept runs, sorted "
    "within a run: from 0.09 to 0.22 nats, from 0.12 to 0.27, and from 0.12 to 0.34.",
)

# %% [markdown]
# No head can be removed for free here. The translation model of 2019 had six layers of 16 heads; this is one layer of four. And being missed is not the same as being needed: *trained* with one head from the start, the reader did just as well.

# %% [markdown]
# ## Break it (optional)
#
# - In your `split_heads`, use `x.reshape(heads, n, d_k)`, and its inverse in `merge_heads`. What does the check say? Which tokens can token $i$ still see, and would training have warned you?
# - Pointers with *three* wanted numbers and two heads: what share is explained? Guess before you train. (Change the three 2s; a token has 21 columns then: `Head(21, 20 // heads)`, `nn.Linear(20, 3)`.)
# - Initialize the reader's `w_q` and `w_k` with ten times the usual standard deviation. Compute the variance of the scores: do you expect slower learning? Check with `training.train`, equal steps.

# %% [markdown]
# ## What to remember
#
# One head has one set of weights for each token. Several heads have several, for the same number of parameters and multiply-adds.
#
# | | |
# |:-|:-|
# | one head | $\mathrm{head}_i = \mathrm{softmax}\big(Q W_Q^i (K W_K^i)^T / \sqrt{d_k}\big)\, V W_V^i$ |
# | multi-head attention | $[\,\mathrm{head}_1 \mid \dots \mid \mathrm{head}_h\,]\, W_O = \sum_i \mathrm{head}_i W_O^i$ |
# | splitting | $\mathrm{split}(Z)_{i,t,c} = Z_{t,\, i d_k + c}$ with $Z = Q W_Q$; $i, t, c$ from 0 |
# | parameters | $4\, d_{model}^2$ without biases, for $d_k = d_v = d_{model}/h$ |
# | multiply-adds; scores | $4\, n\, d_{model}^2 + 2\, n^2 d_{model}$; $h\, n^2$ |
# | variance | $\mathrm{Var}(q \cdot k / \sqrt{d_k}) = \sigma_q^2 \sigma_k^2$; $1/9$ for `nn.Linear` |
# | bound | share explained $\le \min(1, h / r)$ (one layer, linear values, linear readout, weights from names alone) |
#
# The division by $\sqrt{d_k}$ makes the scores' first variance independent of $d_k$. What heads look at has to be measured.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. One head, one layer, linear values and readout, weights from names alone, four wanted numbers: what share is explained at most, and does a larger d_k help?</summary>
#
# A quarter. No: however wide the head, the numbers reach the readout as one weighted sum.
# </details>
#
# <details><summary>2. n = 10 tokens, d_model = 512, 8 heads. What are the shapes of the queries after splitting, of the weights, and of the merged result?</summary>
#
# 8 × 10 × 64, 8 × 10 × 10, 10 × 512.
# </details>
#
# <details><summary>3. Which costs grow with the number of heads, if d_model stays the same?</summary>
#
# The number of scores, h n², and with it the memory and the work of the softmax. Parameters and multiply-adds stay.
# </details>
#
# <details><summary>4. Why is a causal mask given a head axis of size 1, and not a mask for each head?</summary>
#
# What a token may see does not depend on the head. An axis of size 1 is broadcast to all heads, without a copy.
# </details>
#
# <details><summary>5. Queries and keys have variance 1/2, d_k = 64. What is the variance of the scores, before and after the division?</summary>
#
# 64 · 1/2 · 1/2 = 16, and 1/4.
# </details>

# %% [markdown]
# ## In your own words (optional)
#
# The panels check code. What you understand shows in a paragraph of your own, so take ten minutes for one.
#
# Eight heads of size 64 and one head of size 512 have the same number of parameters. Explain in one paragraph what the eight can do and the one cannot, how you would show it, and what the eight cost more of.

# %% [markdown] tags=["question:why_heads"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# The reader borrowed its residual connections and its norms. Lesson 07 explains what happens without them, when layers are stacked.
#
# Vaswani et al. 2017, sections 3.2.1 and 3.2.2 and footnote 4; Glorot & Bengio 2010 (how to draw first parameters); Michel et al. 2019, *Are Sixteen Heads Really Better than One?*; Voita et al. 2019, *Analyzing Multi-Head Self-Attention*; Clark et al. 2019, *What Does BERT Look At?* Lectures L1 to L5 (lesson 00).
