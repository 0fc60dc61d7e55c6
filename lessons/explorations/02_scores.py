# %% [markdown]
# # Three ways to score
#
# **35 minutes · an exploration of lesson 02 · needs nothing**
#
# Attention compares a query with a key by their dot product. **Is that the best score?** Bahdanau et al. 2015, who had the idea, used another one; Luong et al. 2015 compared several. This page builds two others and compares three at equal training.

# %%
import torch
from einops import einsum, rearrange, reduce
from jaxtyping import Bool, Float
from torch import Tensor, nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results


# %% tags=["hide-input"]
def dot_scores(q, k):
    return q @ k.mT


def attend(scores, values):
    return torch.softmax(scores, -1) @ values


# %% [markdown]
# ## The three
#
# The dot product needs queries and keys of the same size, and treats all of their numbers alike. Two other scores remove these limits, at the price of parameters:
#
# $$\underset{\text{dot}}{e_{ij} = q_i \cdot k_j} \qquad \underset{\text{bilinear (Luong's "general")}}{e_{ij} = q_i\, W k_j^T} \qquad \underset{\text{additive (Bahdanau)}}{e_{ij} = \tanh(q_i W_q + k_j W_k) \cdot v}$$

# %% [markdown]
# Why a dot product at all? Vectors are similar if they are near each other, and $-\tfrac12 \lVert q - k_j\rVert^2 = q \cdot k_j - \tfrac12\lVert q\rVert^2 - \tfrac12\lVert k_j\rVert^2$. The softmax does not notice $\lVert q\rVert^2$, which is the same for all keys, nor $\lVert k_j\rVert^2$ where all keys have the same norm. What is left is the dot product. (Lesson 06 divides it by $\sqrt{d_k}$.)

# %% [markdown]
# A matrix $W$ of size $d_q \times d_k$ lets the sizes differ, and learns *which* similarity counts. The additive score is a small network with one hidden layer of $d_a$ units, and the oldest of the three: $W_q$ is $d_q \times d_a$, $W_k$ is $d_k \times d_a$, and $v$ is a learned vector of $d_a$ numbers (not a value; the name is Bahdanau's).

# %%
# exercise: attention/bilinear_scores

# %%
check("attention/bilinear_scores", bilinear_scores)

# %%
# exercise: attention/additive_scores

# %%
check("attention/additive_scores", additive_scores)

# %%
bilinear_scores = mine("attention/bilinear_scores")
additive_scores = mine("attention/additive_scores")

# %% [markdown]
# ## How large can a score get?
#
# Scores that are far apart make a sharp softmax, which passes hardly any gradient on. So it matters how a score grows with the key. **Multiply a key by 1,000. By what factor does each score grow: dot, bilinear, additive?**

# %%
guess = None  # three factors, for instance (10, 1000, 1000000)

# %%
generator = torch.Generator().manual_seed(0)
q, k, w, w_q, w_k = (torch.randn(n, 8, generator=generator) for n in (1, 1, 8, 8, 8))
v = torch.randn(8, generator=generator)
scores = {
    "dot": lambda keys: dot_scores(q, keys),
    "bilinear": lambda keys: bilinear_scores(q, keys, w),
    "additive": lambda keys: additive_scores(q, keys, w_q, w_k, v),
}
factors = torch.logspace(-1, 3, 100)
curves = {name: score(factors[:, None] * k)[0].abs() for name, score in scores.items()}
bound = float(v.abs().sum())
growth = [float(score(1000 * k) / score(k)) for score in scores.values()]
reveal(guess, tuple(round(x) for x in growth))
assert curves["additive"].max() <= bound

# %% tags=["hide-input"]
title = "Dot and bilinear scores grow with the key; the additive score stays below the sum of |v|"
length, size = "factor on the key", "absolute value of the score"
figure, ax = plots.axes(title, length, size, size=(6.4, 3.2))
for (name, curve), colour in zip(curves.items(), plots.COLOURS):
    ax.loglog(factors.tolist(), curve.tolist(), color=colour)
    ax.text(1200, float(curve[-1]), name, color=colour, va="center")
ax.plot([0.1, 1000], [bound, bound], color="0.6", linestyle="--", linewidth=1)
ax.text(1200, bound, "sum of |v|", color="0.4", va="center")
lowest = int(curves["additive"].argmin())
here = (float(factors[lowest]), float(curves["additive"][lowest]))
ax.annotate("changes its sign", here, (12, 8), textcoords="offset points", size="small")
plots.show(
    figure,
    "Three absolute scores against the factor on the key, both logarithmic. Dot and bilinear are "
    f"straight lines, up to {curves['dot'][-1]:,.0f} and {curves['bilinear'][-1]:,.0f} at a factor "
    f"of 1,000; the additive score levels off at {curves['additive'][-1]:.1f}, below the sum of "
    f"|v|, {bound:.1f}. The dip in its line is where it changes its sign.",
)

# %% [markdown]
# ## Which one reads best?
#
# The same model with each of them, three seeds, 1,500 steps each. Besides accuracy, the table shows what one call costs, measured here: 128 words with 12 queries and 12 keys each, forward and backward. "Saved" counts the numbers kept for the backward pass.


# %% tags=["hide-input"]
kept = results.load("attention")["figures"]
matrices = [torch.randn(64, 64, requires_grad=True) for _ in range(2)]
v = torch.randn(64, requires_grad=True)
looks = {
    "attention": dot_scores,
    "bilinear": lambda q, k: bilinear_scores(q, k, matrices[0]),
    "additive": lambda q, k: additive_scores(q, k, *matrices, v),
}

# %%
from time import perf_counter


def cost(score):
    numbers = []
    q, states = (torch.randn(128, 12, 64, requires_grad=True) for _ in range(2))
    start = perf_counter()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: numbers.append(x) or x, lambda x: x):
        attend(score(q, states), states).sum().backward()
    kept = {x.untyped_storage().data_ptr(): x.numel() for x in numbers}
    return 1000 * (perf_counter() - start), sum(kept.values())


# %% tags=["hide-input"]
print("score     4 letters  12 letters  parameters  ms per call       saved")
costs = {name: min(cost(score) for _ in range(5)) for name, score in looks.items()}
for name, (milliseconds, numbers) in costs.items():
    runs = kept[name]
    shares = [sum(run["accuracy"][n - 3] for run in runs) / len(runs) for n in (4, 12)]
    columns = f"{shares[0]:9.2f} {shares[1]:11.2f} {runs[0]['parameters']:11,}"
    print(f"{name.replace('attention', 'dot'):9}", columns, f"{milliseconds:10.1f} {numbers:13,}")
assert costs["additive"][1] > 2 * costs["attention"][1]
spread = {}
for name in looks:
    shares = [run["accuracy"][9] for run in kept[name]]
    spread[name] = (min(shares), max(shares))
print({name: f"{least:.2f} to {most:.2f}" for name, (least, most) in spread.items()})
assert spread["bilinear"][1] < spread["attention"][0], "the bilinear score learns more slowly"

# %% [markdown]
# After 1,500 steps the three are close, but the bilinear score is behind the dot product in all three seeds, although it *contains* the dot product ($W$ = identity). More parameters can make learning slower; this says how fast the three learn, not how good they can become.

# %% [markdown]
# The cost decides. The additive score has to build a vector for every *pair* of query and key, $n_q\, n_k\, d_a$ numbers, where the dot product is one matrix product. Vaswani et al. 2017 (section 3.2.1) choose the dot product for this reason. Lesson 03 gives back what it loses, with matrices for queries and keys *before* the product: $(q W_Q) \cdot (k W_K) = q\, (W_Q W_K^T)\, k^T$ is a bilinear score.
#
# Bahdanau et al. 2015 (the additive score); Luong et al. 2015 (dot and bilinear, which they call "general").
