# %% [markdown]
# # Is attention faster on the clock?
#
# **10 minutes · an exploration of lesson 01 · needs no download**
#
# In lesson 01, attention takes one step where an RNN takes 2,048. Steps are theory; seconds are yours. **Is one layer of attention faster than one layer of an RNN, on one core of your machine?**

# %%
from time import perf_counter
import torch
from torch import nn
from course_lib.exercises import reveal
from course_lib.instruments import plots

# %% tags=["hide-input"]
title = "An RNN takes a step for each token, attention one (numbers: when a state is ready)"
names = ["RNN", "attention (arrows into one state)"]
figure, axes = plots.panels(title, names, size=(8.4, 2.4))
chain = [((i, 0), (i, 1)) for i in range(6)] + [((i, 1), (i + 1, 1)) for i in range(5)]
every = [((i, 0), (3, 1)) for i in range(6)]
for ax, arrows in zip(axes, (chain, every)):
    ready = {(i, 0): 0 for i in range(6)}
    ready |= {(i, 1): i + 1 if arrows is chain else 1 for i in range(6)}
    plots.graph(ax, ready, arrows, dict.fromkeys(((i, 0) for i in range(6)), plots.PALE[3]))
plots.show(
    figure,
    "Six states over six tokens. In the RNN each waits for the one before it, so they are ready at "
    "steps 1 to 6. In attention each is computed from all tokens, and all are ready at step 1.",
)

# %% [markdown]
# ## One layer of each
#
# All have 64 numbers for each token and run in torch's own fast versions, so that no Python loop is to blame. Attention has its four matrices (lesson 03: queries, keys and values; lesson 06: the output), and scores every pair of tokens. For $n$ tokens and $d = 64$ numbers, count the multiplications:
#
# | | to be multiplied |
# |:-|:-|
# | RNN | $2 n d^2$ |
# | windows of three | $3 n d^2$ |
# | attention | $4 n d^2 + 2 n^2 d$ |
#
# **How many times longer will the RNN take for 2,048 tokens than for 128, which are 16 times fewer? And attention?**

# %%
guess = None  # (RNN, attention)


# %%
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.output = nn.Linear(64, 192, bias=False), nn.Linear(64, 64, bias=False)

    def forward(self, x):
        q, k, v = self.project(x).split(64, dim=-1)
        return self.output(torch.softmax(q @ k.mT / 8, dim=-1) @ v)


# %%
window = nn.Conv1d(64, 64, 3, padding=1)
layers = {"RNN": nn.RNN(64, 64, batch_first=True), "windows of three": lambda x: window(x.mT)}
layers["attention"] = Attention()


# %% tags=["hide-input"]
@torch.no_grad()
def seconds(layer, n):
    x, times = torch.randn(1, n, 64), []
    while sum(times) < 0.3 or len(times) < 20:
        start = perf_counter()
        layer(x)
        times.append(perf_counter() - start)
    return min(times)


# %% tags=["once"]
sizes = (32, 64, 128, 256, 512, 1024, 2048)
threads = torch.get_num_threads()
torch.set_num_threads(1)
times = {name: [seconds(layer, n) for n in sizes] for name, layer in layers.items()}
torch.set_num_threads(threads)
longer = {name: round(of[-1] / of[2]) for name, of in times.items()}
reveal(guess, (longer["RNN"], longer["attention"]))

# %% tags=["once"]
more, less = (4 * n * 64**2 + 2 * n * n * 64 for n in (2048, 128))
work = {"RNN": 16, "windows of three": 16, "attention": round(more / less)}
for name, factor in longer.items():
    print(f"{name:16} work: {work[name]:3} times; time, measured here: {factor} times")

# %% tags=["once", "hide-input"]
title = "Time for 32 to 2,048 tokens, on one core of this machine"
figure, ax = plots.axes(title, "tokens", "milliseconds", size=(6.8, 3.6))
for (name, of), colour in zip(times.items(), plots.COLOURS):
    ax.loglog(sizes, [1000 * one for one in of], "o-", color=colour)
    ax.text(2300, 1000 * of[-1], name, color=colour, va="center", size="small")
ax.set_xticks(sizes, [str(n) for n in sizes])
ax.set_xlim(28, 6500)
ax.minorticks_off()
plots.show(
    figure,
    "Milliseconds against the number of tokens, both logarithmic, measured on this machine. From "
    "128 to 2,048 tokens the time grows "
    + ", ".join(f"{factor} times for {name}" for name, factor in longer.items())
    + ".",
)

# %% [markdown]
# Sixteen times the tokens are sixteen times the work for the RNN and the windows, and more than a hundred times for attention: up to $n = 2d = 128$ its matrices are the larger part, beyond that the pairs. The time need not follow the work exactly: short runs have fixed costs, and large tables no longer fit the processor's cache.

# %% [markdown]
# So on one core, for short texts attention is faster than an RNN, though it has more to compute, and for long ones it is slower. One core cannot use that attention's work can all be done at the same time. A GPU can; we have not measured one here. Lessons 13 and 14 are about the square.
#
# Vaswani et al. 2017, table 1. Lectures: L1, L2, L4, L5.
