# %% [markdown]
# # Is the rank low?
#
# **20 minutes · an exploration of lesson 14 · needs `shakespeare` (5.4 MB) and `minilm` (84 MB)**
#
# Linformer replaces $n$ keys by $k$ projected keys. **Why should a few be enough?** The paper has two arguments: real attention weights are nearly of low rank, and a theorem says that $k$ need only grow like $\log n$. You put both to the test.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots

# %% tags=["hide-input"]
from course_lib.data import needs, shakespeare
from course_lib.instruments.recording import record_weights
from course_lib.pretrained import minilm

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")


def linformer_attention(q, k, v, e, f):
    return scaled_dot_product_attention(q, e.T @ k, f.T @ v)


# %% [markdown]
# ## Into a trained model
#
# A matrix of **rank** $k$ is a product of an $n \times k$ and a $k \times n$ matrix. If the weights $P$ had rank $k$, then $PV$ would need only $k$ projected values. Every matrix is a sum of matrices of rank 1 with sizes $\sigma_1 \ge \sigma_2 \ge \dots$, its **singular values**; the first $k$ terms are its best approximation of rank $k$.

# %% [markdown]
# MiniLM, from lesson 09, reads 256 tokens of *Julius Caesar* in six layers of twelve heads. In all of them, replace $P$ by its best approximation of rank 64. And do what Linformer does *before* it has learned: project by a random $E$ with $k = 64$, or by plain means of four neighbours. **How close, by cosine, do its hidden states stay to the exact ones?**

# %%
guess = None  # three cosines

# %%
needs("minilm", "shakespeare")

# %% tags=["hide-input"]
reader = minilm.load()
attentions = [block.attention.sublayer.attention for block in reader.blocks]


def passage(play, start):
    text = " ".join(shakespeare.works()[play][start : start + 4000].split())
    return torch.tensor([reader.tokenizer.encode(text).ids[:256]])


tokens = passage("Julius Caesar", 20_000)


# %%
def best_of_rank(rank):
    def rule(q, k, v, mask):
        u, s, vh = torch.linalg.svd(softmax(dot_scores(q, k) / q.shape[-1] ** 0.5))
        return (u[..., :rank] * s[..., None, :rank]) @ (vh[..., :rank, :] @ v)

    return rule


def projected_by(e):
    return lambda q, k, v, mask: linformer_attention(q, k, v, e, e)


random = torch.randn(256, 64, generator=torch.Generator().manual_seed(0)) / 64**0.5
means = repeat(torch.eye(64) / 4, "few k -> (few word) k", word=4)


# %% tags=["hide-input"]
@torch.no_grad()
def states(rule):
    for layer in attentions:
        layer.rule = rule
    return reader(tokens)


# %%
exact = states(scaled_dot_product_attention)
rules = {"best of rank 64": best_of_rank(64)}
rules |= {"random": projected_by(random), "means": projected_by(means)}
near = {
    name: torch.cosine_similarity(states(rule), exact, dim=-1).mean().item()
    for name, rule in rules.items()
}
states(scaled_dot_product_attention)
reveal(guess, {name: round(value, 2) for name, value in near.items()})
assert near["best of rank 64"] > 0.9 and near["random"] < 0.3 and near["means"] < 0.9

# %% [markdown]
# A good approximation of low rank *exists* in this model, on this text. But each matrix $P$ has its own, and the singular value decomposition that finds it needs the whole $n \times n$ matrix. Fixed projections, put into a trained model, change its hidden states: means of neighbours by a good deal, and with a random $E$ (mean zero) nothing of the states is left. Linformer *trains* with its projections from the start, so that the weights can adapt.

# %% [markdown]
# ## How low is it?
#
# What share of the sum do the first $k$ singular values keep?
#
# $$\underset{n \times n}{P} = \mathrm{softmax}\!\left(\frac{QK^T}{\sqrt{d_k}}\right) \qquad\qquad \mathrm{share}(k) = \frac{\sigma_1 + \dots + \sigma_k}{\sigma_1 + \dots + \sigma_n}$$
#
# This is the paper's measure, and it found most of the sum in the first 128 of 512. (The error of an approximation depends on the *squares* of the rest, a kinder measure; hence the test above.) **How many of 256 are needed for 90 % of the sum, on average over all heads: 10, 40, 80 or 160?**

# %%
guess = None  # a number


# %% tags=["hide-input"]
def needed_of(tokens):
    """Return how many singular values each head needs for 90 % of their sum."""
    weights = []
    for layer in attentions:
        with torch.no_grad(), record_weights(layer) as seen:
            reader(tokens)
        weights.append(seen[0][0])
    strengths = torch.linalg.svdvals(torch.stack(weights))
    share = strengths.cumsum(-1) / strengths.sum(-1, keepdim=True)
    return ((share < 0.9).sum(-1) + 1).float()


plays = {"Julius Caesar": 20_000, "Hamlet": 20_000, "Macbeth": 20_000}

# %% tags=["hide-input"]
needed = {play: needed_of(passage(play, start)) for play, start in plays.items()}
reveal(guess, f"{needed['Julius Caesar'].mean():.0f}")
for play, heads in needed.items():
    print(f"{play:14} by layer", [round(x) for x in heads.mean(-1).tolist()], end=", ")
    print(f"heads from {heads.min():.0f} to {heads.max():.0f}")
    assert 70 < heads.mean() < 95 and heads.mean(-1).argmin() == 5
    assert heads.min() < 35 and heads.max() > 140

# %% [markdown]
# About 80 of 256 on each of three passages: that is a third, and it differs much between heads. The last layer needs the fewest. The paper also saw fewer in upper layers and suggests a smaller $k$ there (sections 3 and 4). So the argument holds in part.

# %% [markdown]
# ## The theorem
#
# The paper claims more (theorem 1): $k$ need only grow like $\log n$. The tool is the **Johnson-Lindenstrauss lemma** (Johnson & Lindenstrauss 1984): for any $n$ points and $0 < \varepsilon < 1$, some linear map changes no squared distance between two of them by more than a factor $1 \pm \varepsilon$, if it goes to at least this many dimensions (Dasgupta & Gupta 2003):
#
# $$k \;\ge\; \frac{4 \ln n}{\varepsilon^2/2 - \varepsilon^3/3} \;=\; O\!\left(\frac{\log n}{\varepsilon^2}\right)$$

# %% [markdown]
# A random matrix is such a map, with high probability. Whatever the constant is, it decides whether you profit. **For $n = 256$ tokens and an error of $\varepsilon = 1/2$, how many projected keys does the bound ask for? And for 65,536 tokens?**

# %%
guess = None  # two numbers

# %%
from math import ceil, log

needs()


def sufficient(n, epsilon):
    return ceil(4 * log(n) / (epsilon**2 / 2 - epsilon**3 / 3))


reveal(guess, (sufficient(256, 0.5), sufficient(65_536, 0.5)))
assert sufficient(256, 0.5) == 267 and sufficient(65_536, 0.5) == 533

# %% [markdown]
# 267 projected keys for 256 keys, 533 for 65,536. That is where a logarithm pays, *if* an error of half the norms is good enough. Is it?

# %% [markdown]
# ## Half of which norms?
#
# Distances give dot products: $4\, a \cdot b = \lVert a + b \rVert^2 - \lVert a - b \rVert^2$. Let $p_i$ be a row of $P$, and $w$ a column of the values; $R$ is random, $k \times n$, with entries of variance $1/k$. Then for all $n$ rows at once, with high probability,
#
# $$\big|\,p_i R^T R\, w - p_i\, w\,\big| \le \varepsilon\, \lVert p_i \rVert\, \lVert w \rVert$$
#
# and $P R^T R$ has at most rank $k$. ($R$ comes *after* the softmax: this needs all of $P$. Linformer projects the keys before it, which the argument does not cover.)

# %% [markdown]
# The error is measured not by the answer $p_i w$, but by two norms. **Take a sharp head: $p_i$ has all its weight on one token, and $\lVert w \rVert = 1$. For $n = 4096$ and $k = 64$, how large is the error, how large the answer?**

# %%
guess = None  # (error, answer), root mean squares

# %% tags=["hide-input"]
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
# The lemma keeps its promise: 16 times the tokens, and the error hardly grows. The largest error, which $\varepsilon$ bounds, stays near 0.4. A typical one is about $1/\sqrt{k} = 0.125$, and a typical answer of a sharp head is $1/\sqrt{n} = 0.016$. So the error hides the answer, unless $k$ is of the order of $n$. (The paper's theorem 1 has $\lVert Pw \rVert$, the size of the answers, on the right. The lemma does not give that.)
#
# Wang et al. 2020a (Linformer); Johnson & Lindenstrauss 1984; Dasgupta & Gupta 2003, a short proof. Lectures: L1 and L3.
