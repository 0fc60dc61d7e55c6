# %% [markdown]
# # How large are scores before training?
#
# **18 minutes · an exploration of lesson 06 · needs nothing**
#
# Attention divides scores by $\sqrt{d_k}$ so that their variance is 1. The paper's footnote 4 *assumes* for it that queries and keys have entries of variance 1. **Do they, in the layer that you built, and does it matter?**

# %%
import torch
from torch import nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results

# %% [markdown]
# ## The paper's assumption
#
# If the entries of $q$ and $k$ are independent, of mean 0 and variance 1, three rules are all you need:
#
# $$\underset{X, Y \text{ independent, of mean 0}}{\mathrm{Var}(XY) = \mathrm{Var}(X)\,\mathrm{Var}(Y)} \qquad \underset{\text{uncorrelated}}{\mathrm{Var}\Big(\sum_c X_c\Big) = \sum_c \mathrm{Var}(X_c)} \qquad \mathrm{Var}(X / a) = \mathrm{Var}(X) / a^2$$

# %%
# exercise: multi_head/score_variance

# %%
check("multi_head/score_variance", score_variance)

# %%
score_variance = mine("multi_head/score_variance")

# %% [markdown]
# ## Your own layer
#
# The inputs of a layer usually come from a layer norm (lesson 07), which at the start of training gives each token mean 0 and variance 1. But queries and keys are made by `nn.Linear`, whose first parameters torch draws uniformly from $[-1/\sqrt{d_{model}},\; 1/\sqrt{d_{model}}]$. A uniform number from $[-a, a]$ has variance $a^2/3$.
#
# **What is the variance of the scores, divided by $\sqrt{d_k}$, in a layer with $d_{model} = 512$ and 8 heads before any training?**

# %%
guess = None  # a number


# %%
def first_scores(a, d_model=512, d_k=64, n=16):
    """Return divided scores of 100 sentences, with one head's matrices uniform on [-a, a]."""
    x = nn.functional.layer_norm(torch.randn(100, n, d_model), (d_model,))
    w_q, w_k = (torch.empty(d_model, d_k).uniform_(-a, a) for _ in range(2))
    return (x @ w_q) @ (x @ w_k).mT / d_k**0.5


# %%
torch.manual_seed(0)
bounds = {
    "nn.Linear": (1 / 512) ** 0.5,
    "nn.MultiheadAttention": (6 / (4 * 512)) ** 0.5,
    "Glorot, each matrix": (6 / (2 * 512)) ** 0.5,
}
variances = {name: first_scores(a).var().item() for name, a in bounds.items()}
for name, variance in variances.items():
    print(f"{name:22} {variance:.2f}")
reveal(guess, round(variances["nn.Linear"], 2))
for variance, exact in zip(variances.values(), (1 / 9, 1 / 4, 1)):
    assert abs(variance / exact - 1) < 0.2

# %% [markdown]
# It is $1/9$, and not 1: $q_c = \sum_m x_m W_{mc}$ has $d_{model}$ terms of variance $1/(3\, d_{model})$ each, so $\sigma_q^2 = \sigma_k^2 = \tfrac13$, and the divided scores have variance $\sigma_q^2 \sigma_k^2$.
#
# | first parameters uniform on $[-a, a]$ | $a^2$ | $\sigma_q^2 = d_{model}\, a^2 / 3$ | variance of divided scores |
# |:-|:-|:-|:-|
# | `nn.Linear` | $1 / d_{model}$ | 1/3 | 1/9 |
# | `nn.MultiheadAttention` (three matrices drawn as one) | $6 / (4\, d_{model})$ | 1/2 | 1/4 |
# | Glorot & Bengio 2010, each square matrix | $6 / (2\, d_{model})$ | 1 | 1 |
#
# So of these three only Glorot's rule gives what the footnote assumes.

# %% [markdown]
# ## Does it matter?
#
# Two heads with $d_k = 16$ learn lesson 06's pointers, with their divided scores multiplied by a constant. Three seeds, 400 steps at most, one learning rate (0.003). **From which variance do they get to 90 % explained in the fewest steps: 0.1, 1 or 6?**

# %%
guess = None  # a variance

# %% tags=["hide-input"]
paces = results.load("first_scores")["figures"]
title = "Two heads with d_k = 16: a wide valley, and slow starts far outside of it"
x, y = "variance of the divided scores before training", "steps to 90 % explained"
figure, ax = plots.axes(title, x, y, size=(7.4, 3.6))
for run in paces["pointers"]:
    points = [(case["variance"], case["steps"]) for case in run]
    ax.plot(*zip(*points), "o-", color=plots.COLOURS[0], markersize=5, linewidth=0.8)
for variance, text in {1 / 9: "nn.Linear", 1: "the paper's\nassumption"}.items():
    ax.axvline(variance, ymax=0.8, color="0.7", linewidth=1, zorder=0)
    ax.text(variance, 210, text, size="x-small", ha="center", va="bottom", color="0.3")
ax.set(xscale="log", yscale="log", ylim=(25, 320), yticks=[30, 50, 100, 200])
ax.set_yticklabels([30, 50, 100, 200])
ax.minorticks_off()
means = {}
for runs in zip(*paces["pointers"]):
    variance, mean = (sum(case[key] for case in runs) / 3 for key in ("variance", "steps"))
    means[round(variance, 1) if variance > 0.05 else round(variance, 4)] = round(mean)
plots.show(
    figure,
    "Steps until two heads explain 90 per cent, against the variance of their scores at the start, "
    f"three seeds. Mean steps by variance: {means}.",
)
valley = [case["steps"] for run in paces["pointers"] for case in run if 0.05 < case["variance"] < 2]
assert (min(valley), max(valley)) == (36, 54)
reveal(guess, "about 1, by a little")
best = min(means, key=means.get)
assert 0.5 < best < 2 and (best, means[0.1], means[1.6]) == (1.6, 51, 42)
fastest = [min(run, key=lambda case: case["steps"])["variance"] for run in paces["pointers"]]
assert sum(variance > 5 for variance in fastest) == 2

# %% [markdown]
# From 0.1 to 2 all runs took between 36 and 54 steps. On average 1.6 was best (42 steps; 51 at 0.1, 47 at 6), but two of the three seeds were fastest at 6: between 0.1 and 6 these runs do not decide. Far below and far above, learning is slower.
#
# On text it is the other way round. A small language model of lesson 06's kind (one layer, characters of Shakespeare), after 200 steps with its scores divided or not:

# %% tags=["hide-input"]
losses = {}
for run in paces["reader"]:
    d_k = 64 // run["heads"]
    losses[d_k, run["divided"]] = torch.tensor(run["loss"])
    name, factor = ("divided", 1) if run["divided"] else ("not divided", d_k)
    shown = " ".join(f"{loss:.2f}" for loss in run["loss"])
    print(f"d_k = {d_k}, {name:12} variance {factor / 9:3.1f}: held-out loss {shown} nats")
gaps = {d_k: losses[d_k, False] - losses[d_k, True] for d_k in (16, 64)}
assert all((gap > 0).all() for gap in gaps.values())
assert round(gaps[16].max().item(), 2) == 0.03 and round(gaps[64].max().item(), 2) == 0.12

# %% [markdown]
# The flat start (variance 0.1) is better here, by at most 0.03 nats for $d_k = 16$ and at most 0.12 for $d_k = 64$, in all three seeds. We did not test why. Both effects are about how fast a model learns: training can make $W_Q$ larger or smaller, and undo any factor. What the division does is to make the start independent of $d_k$.
#
# Vaswani et al. 2017, section 3.2.1 and footnote 4; Glorot & Bengio 2010.
