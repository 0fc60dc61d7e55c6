# %% [markdown]
# # What do all pairs cost?
#
# **20 minutes · an exploration of lesson 03 · needs nothing else**
#
# In self-attention there is one step between any two tokens of a text. An RNN needs as many steps as there are tokens between them. **What do you pay for that one step?** At the end you know the price in operations and in memory, and you have found out who takes the time that theory does not explain.

# %%
import psutil
import torch
from course_lib.attention import dot_scores, softmax
from course_lib.exercises import mine, reveal
from course_lib.instruments import measuring, plots
from course_lib.before_attention import gru_cell

# %% tags=["hide-input"]
names = ["RNN: one step a token", "self-attention: one step, all pairs"]
figure, axes = plots.panels("What is bought, and what is paid", names, size=(8.4, 2.6))
tokens = range(6)
chain = {(2 * i, 0): i + 1 for i in tokens}
plots.graph(axes[0], chain, [((2 * i, 0), (2 * i + 2, 0)) for i in range(5)])
pairs = {(2 * i, row): i + 1 for i in tokens for row in (0, 3)}
plots.graph(axes[1], pairs, [((2 * i, 0), (2 * j, 3)) for i in tokens for j in tokens])
plots.show(
    figure,
    "On the left six tokens in a chain, each with an arrow to the next: five arrows, five steps "
    "from the first to the last. On the right the same six tokens in two rows, with an arrow from "
    "each below to each above: 36 arrows, one step.",
)

# %%
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")

# %% [markdown]
# ## What you get: a short path
#
# How many operations must wait for each other before the last token has heard from the first? Autograd keeps the answer: each result knows the operations that it was made from. Count the longest chain.


# %%
def longest_chain(result):
    """Return the largest number of operations, one after another, that led to a result."""
    depth, todo = {}, [result.grad_fn]
    while todo:
        node = todo[-1]
        before = [parent for parent, _ in node.next_functions if parent is not None]
        waiting = [parent for parent in before if parent not in depth]
        todo.extend(waiting)
        if not waiting:
            depth[todo.pop()] = 1 + max((depth[parent] for parent in before), default=0)
    return depth[result.grad_fn]


# %% [markdown]
# **If $n$ grows from 16 to 128, by what factor does the chain of a GRU grow, and by what factor that of self-attention?**

# %%
guess = None  # two factors: (GRU, self-attention)


# %%
def last_state(xs):
    h, w, b = torch.zeros(8), torch.randn(8, 24) / 3, torch.zeros(24)
    for x in xs:
        h = gru_cell(x, h, w, w, b, b)
    return h


# %%
chains = {}
for n in (16, 128):
    xs = torch.randn(n, 8, requires_grad=True)
    attended = scaled_dot_product_attention(xs, xs, xs)
    chains[n] = longest_chain(last_state(xs)), longest_chain(attended)
    print(f"{n:4} tokens: GRU {chains[n][0]:5}, self-attention {chains[n][1]}")

# %%
reveal(guess, tuple(round(b / a) for a, b in zip(chains[16], chains[128])))
assert 7.5 < chains[128][0] / chains[16][0] < 8.5 and chains[16][1] == chains[128][1]

# %% [markdown]
# This is what "one step" and $O(1)$ mean. Read it with a grain of salt: a softmax and a weighted sum add up $n$ numbers, and we counted a sum as one operation. Even a machine with any number of processors adds $n$ numbers in $\log_2 n$ rounds, in pairs, then pairs of pairs. For 128 tokens that is 7 rounds, where the GRU has 128 steps.
#
# ## What you pay: all pairs
#
# Every query meets every key, so there are $n^2$ scores. Table 1 of Vaswani et al. 2017 has the price, for $n$ tokens of size $d$ and windows of $k$ tokens; three of its four rows:
#
# | layer | operations | steps in sequence | longest path |
# |:-|:-|:-|:-|
# | self-attention | $O(n^2 d)$ | $O(1)$ | $O(1)$ |
# | recurrent | $O(n d^2)$ | $O(n)$ | $O(n)$ |
# | convolution | $O(k n d^2)$ | $O(1)$ | $O(\log_k n)$ if windows skip tokens (dilated) |
#
# So four times as many tokens should take 16 times as long. We measure the processor's time for each score, which should then not depend on $n$ at all, and repeat small sizes until all of them compute equally many scores.


# %%
def nanoseconds(attend, n):
    """Return processor time for each score: in the program itself, and in the system for it."""
    q, repeats = torch.randn(n, 64), (4000 // n) ** 2 * 4
    attend(q, q, q)
    process = psutil.Process()
    start = process.cpu_times()
    for _ in range(repeats):
        attend(q, q, q)
    end, scores = process.cpu_times(), repeats * n * n
    return 1e9 * (end.user - start.user) / scores, 1e9 * (end.system - start.system) / scores


# %% [markdown]
# **From 1,000 to 4,000 tokens: how many times more processor time?**

# %%
guess = None  # a factor

# %%
whole = {n: nanoseconds(scaled_dot_product_attention, n) for n in (1000, 2000, 4000)}
print("processor time for each score, in ns")
for n, (program, system) in whole.items():
    print(f"{n:5} tokens: {program:.1f} in the program, {system:.1f} in the system")

# %%
times = {n: sum(found) * n * n for n, found in whole.items()}
reveal(guess, round(times[4000] / times[1000], 1))

# %% tags=["hide-input"]
programs = [round(program, 1) for program, _ in whole.values()]
claim = "the program's own time for each score changes by less than a half"
measuring.expect(claim, max(programs) < 1.5 * min(programs), programs)

# %% [markdown]
# Theory says 16. Run the cell again, and the factor may be another: on the machine that made this page (Linux) it was 15, 32 and values between. So something else takes time. It is tempting to blame the processor's cache: the scores of 4,000 tokens take 61 MiB, more than most caches hold. But then the *program's* own time would grow, since it would wait for memory. It does not; its share is quadratic as predicted. What varies is the system's time.

# %% [markdown]
# The system hands out memory. Our attention makes several $n \times n$ tensors in every call. Large blocks go back to the system when they are freed, and the next call asks for fresh ones, which the system fills with zeros page by page before it hands them over.
#
# If that is the reason, attention that never holds a large block should spend no time there. So compute it for 64 queries at a time. Beside it, what you would use today: torch's own kernel.


# %%
def in_blocks(q, k, v):
    return torch.cat([scaled_dot_product_attention(part, k, v) for part in q.split(64)])


def fused(q, k, v):
    batched = (part[None, None] for part in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(*batched)[0, 0]


# %%
q = torch.randn(300, 64)
assert torch.allclose(in_blocks(q, q, q), scaled_dot_product_attention(q, q, q), atol=1e-5)
assert torch.allclose(fused(q, q, q), scaled_dot_product_attention(q, q, q), atol=1e-5)

# %%
rows = {"whole": scaled_dot_product_attention, "in blocks": in_blocks, "torch's own": fused}
found = {(name, n): nanoseconds(rows[name], n) for name in rows for n in (2000, 4000)}

# %% tags=["hide-input"]
title = "The large tables cost system time; in blocks there is none"
figure, ax = plots.axes(title, "processor time for each score (ns)", "", size=(7.4, 2.8))
for y, (program, system) in enumerate(found.values()):
    ax.barh(y, program, color=plots.COLOURS[0])
    ax.barh(y, system, left=program, color=plots.COLOURS[1])
ax.set_yticks(range(len(found)), [f"{name}, {n:,} tokens" for name, n in found])
ax.invert_yaxis()
ax.text(1, 0.3, "in the program", color=plots.COLOURS[0], transform=ax.transAxes, ha="right")
ax.text(1, 0.18, "in the system", color=plots.COLOURS[1], transform=ax.transAxes, ha="right")
said = "; ".join(f"{name}, {n} tokens: {a:.1f} and {b:.1f}" for (name, n), (a, b) in found.items())
plots.show(
    figure,
    "Bars of processor time for each score, in nanoseconds, in the program and in the system. "
    f"{said}.",
)
system = {f"{name}, {n}": round(b, 1) for (name, n), (_, b) in found.items()}
claim = "whole tables of 4,000 tokens cost over 3 ns of system time for each score, blocks under 1"
holds = system["whole, 4000"] > 3 and system["in blocks, 4000"] < 1
measuring.expect(claim, holds, system)

# %% [markdown]
# The suspect confesses: in blocks the system's time is gone, though the program does the same arithmetic on the same numbers. (It all depends on the system's allocator; your machine may differ.)
#
# ## What remains: memory
#
# Time in blocks is $n^2$ again, with nothing on top. But for training, autograd keeps what the backward pass needs, and in our attention that includes whole tables of $n^2$ weights:

# %%
kept = {}
for n in (500, 1000, 2000):
    q = torch.randn(n, 64, requires_grad=True)
    kept[n] = [measuring.saved_bytes(lambda f=f, q=q: f(q, q, q), [q]) for f in rows.values()]
    print(f"{n:5} tokens:", *(f"{name} {x / 1e6:.1f} MB" for name, x in zip(rows, kept[n])))

# %% tags=["hide-input"]
growth = [more / less for less, more in zip(kept[1000], kept[2000])]
assert all(3.5 < times < 4.5 for times in growth[:2])
assert growth[2] < 2.5

# %% [markdown]
# Blocks do not help here, since each block keeps its part of the table. torch's kernel keeps only what grows with $n$ and computes the weights anew in the backward pass. How that works, and how to avoid the $n^2$ operations as well, is lesson 13.

# %% [markdown]
# ## What to remember
#
# - One step between any two tokens; $\log_2 n$ rounds if you count the additions.
# - $n^2$ scores: 4 times the work for twice the tokens. A written-out attention also keeps $n^2$ weights for the backward pass.
# - When time grows faster than the operations, ask who spends it. Here it was neither arithmetic nor the cache.
#
# Vaswani et al. 2017, table 1. Titles and links: docs/REFERENCES.md.
