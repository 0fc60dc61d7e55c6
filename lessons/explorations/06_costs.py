# %% [markdown]
# # What do heads cost?
#
# **20 minutes · an exploration of lesson 06 · needs nothing**
#
# Lectures L1, L2 and L4 say that many heads cost the same as one, and the paper says "similar". **Is that true of parameters, of multiply-adds, of memory and of time?**

# %%
import torch
from time import process_time
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import measuring, plots

# %% [markdown]
# ## Parameters
#
# A layer has $W_Q^i$ and $W_K^i$ ($d_{model} \times d_k$) and $W_V^i$ ($d_{model} \times d_v$) in each of $h$ heads, and one $W_O$ ($h\,d_v \times d_{model}$) for all of them. The paper's layer has $d_{model} = 512$, eight heads and $d_k = d_v = 64$. **How many parameters is that, without biases? And with one head of 512?**

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

# %% [markdown]
# As long as $d_k = d_v = d_{model} / h$ it is $4\, d_{model}^2$ for any number of heads: four square matrices, cut in different ways.

# %% [markdown]
# ## Multiply-adds and scores
#
# Now what attention computes, in two ways. The first is the formula, which stores all scores. The second is torch's own function, the strong rival, which most models use: where it can, it computes the scores in tiles and never stores them (lesson 13).


# %%
def stored(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores, -1) @ v


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def inputs(heads, n=512, d_model=256):
    generator = torch.Generator().manual_seed(heads)
    return torch.randn(3, 1, heads, n, d_model // heads, generator=generator)


assert torch.allclose(stored(*inputs(4)), fused(*inputs(4)), atol=1e-5)

# %% [markdown]
# **With 32 heads in place of one, for 512 tokens and $d_{model} = 256$: how many times as many multiply-adds are there, and how many times as many scores?**

# %%
guess = None  # (multiply-adds, scores)

# %%
heads, products, scores = [1, 2, 4, 8, 16, 32], [], []
for h in heads:
    with FlopCounterMode(display=False) as counter:
        stored(*inputs(h))
    products.append(counter.get_total_flops() // 2)
    scores.append(h * 512 * 512)
print(f"multiply-adds {products}\nscores        {scores}")
reveal(guess, (products[-1] / products[0], scores[-1] / scores[0]))
assert set(products) == {2 * 512**2 * 256} and scores[-1] == 32 * scores[0]

# %% [markdown]
# Scores and averages take $h \cdot 2\, n^2 d_k = 2\, n^2 d_{model}$ multiply-adds, in which there is no $h$. But each head has $n^2$ scores of its own, $h\,n^2$ in all: 32 heads have 8.4 million here, or 32 MiB, for each sentence. The formula stores, divides and exponentiates all of them.

# %% [markdown]
# ## Time
#
# One measurement of a few milliseconds says little. So measure each case nine times, in turn, and show the spread.

# %%
times = {(rule, h): [] for rule in (stored, fused) for h in heads}
for _ in range(9):
    for rule, h in times:
        qkv = inputs(h)
        start = process_time()
        rule(*qkv)
        times[rule, h].append(1000 * (process_time() - start))

# %% tags=["hide-input"]
title = "More heads, same d_model, take longer: medians of nine, bars where wider than the dots"
figure, ax = plots.axes(title, "heads", "milliseconds of processor time", size=(7, 3.4))
medians = {}
for rule, colour in zip((stored, fused), plots.COLOURS):
    quarters = torch.tensor([sorted(times[rule, h]) for h in heads])[:, [2, 4, 6]]
    medians[rule] = quarters[:, 1]
    spread = torch.stack([quarters[:, 1] - quarters[:, 0], quarters[:, 2] - quarters[:, 1]])
    ax.errorbar(heads, quarters[:, 1], yerr=spread, fmt="o-", color=colour, markersize=4)
    name = {stored: "scores stored", fused: "torch's function"}[rule]
    ax.text(35, quarters[-1, 1], name, color=colour, va="center", size="small")
ax.set(xscale="log", yscale="log", xticks=heads, xticklabels=heads)
ax.set_yticks([3, 5, 10, 20, 50, 100], [3, 5, 10, 20, 50, 100])
ax.minorticks_off()
shown = "; ".join(f"{h}: {a:.1f} and {b:.1f}" for h, a, b in zip(heads, *medians.values()))
plots.show(
    figure,
    "Median milliseconds of attention against the number of heads, with the scores stored and by "
    f"torch's function. {shown}.",
)

# %%
measuring.expect(
    "with 32 heads torch's function is faster than storing the scores",
    bool(medians[fused][-1] < medians[stored][-1]),
    [round(float(medians[rule][-1]), 1) for rule in (stored, fused)],
)

# %% [markdown]
# > **Where the lectures simplify (D12).** "The same" is true of parameters and of multiply-adds. It is not true of the number of scores, $h\,n^2$, and so of the memory of any code that stores them. What the clock says depends on the code and on the machine: your own measurement is above.

# %% [markdown]
# Vaswani et al. 2017, section 3.2.2 ("the total computational cost is similar to that of single-head attention with full dimensionality"). Lesson 13 builds attention that stores no scores; lesson 09 builds grouped queries, which save the memory of keys and values.
