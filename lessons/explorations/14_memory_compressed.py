# %% [markdown]
# # Summaries of neighbours
#
# **25 minutes · an exploration of lesson 14 · needs nothing**
#
# Linformer shortens the list of keys, and pays with a maximum length and with causality. **What if a few neighbours become one key?** Liu et al. 2018 did that before, to write Wikipedia articles from long sources. You build it, make it causal, and measure what is lost.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results

# %% tags=["hide-input"]
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
leaks_future = mine("masks/leaks_future")

# %% [markdown]
# ## Three tokens, one key
#
# Run lesson 01's convolution over keys and values, in steps of `stride` tokens. Three tokens become one compressed key, and one compressed value. This is **memory-compressed attention**. No parameter has a side of $n$:
#
# $$\underset{1 \times d_{out}}{y_i} = \sum_{w=0}^{width - 1} x_{i \cdot stride + w}\; \underset{d_{in} \times d_{out}}{W_w} \qquad 0 \le i < \lceil n / stride \rceil$$

# %% tags=["hide-input"]
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
    "them become three compressed keys: y0 from x0, x1, x2; y1 from x3, x4, x5; y2 from x6 "
    "and two zeros. "
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
# ## Causal
#
# The paper's model is a decoder, so its layers are **causal**. They also **alternate with local attention**, which sees a block of 256 tokens exactly: its five layers are local, compressed, local, compressed, local (section 4.2.3). **Compressed key 1 is made of tokens 3, 4 and 5. Which is the first query that may see it?**

# %%
guess = None  # a position, from 0


# %%
def causal_states(n, stride):
    """Return who may see which key: token t sees key i if its last token is not after t."""
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
# Token 5, the last of the three. In this layer token 4 reaches neither token 3 nor itself (their key is complete only at token 5); residual connections and local layers cover that gap. We put token 0 in front as a key of its own, or tokens 0 and 1 would see nothing.

# %% [markdown]
# ## What is lost
#
# Lesson 14's task: 4 to 64 pairs of a key and a value, each pair one token, and then each key is asked for. One head makes one compressed key of four pairs. It cannot tell which of the four was asked for, so its best guess is the most frequent value of the four, which is right 38 % of the time. Three seeds:

# %%
recall = results.load("recall")["figures"]
for row in ("dense", "linear", "memory-compressed"):
    means = {n: sum(c[-1] for c in runs) / 3 for n, runs in recall["runs"][row].items()}
    print(f"{row:18}", {pairs: f"{share:.0%}" for pairs, share in means.items()})
ends = [c[-1] for runs in recall["runs"]["memory-compressed"].values() for c in runs]
assert min(ends) > 0.33 and max(ends) < 0.42

# %% [markdown]
# It finds 35 to 40 %, with 4 pairs as with 64: what is blended in one key is blended however short the text. Linear attention blends only when its state is full. That is why the paper's model has exact local layers between the compressed ones: what is near can be told apart there. (That these pairs are in random order makes it hard: in a real text, neighbours have something in common.)
#
# Liu et al. 2018 (*Generating Wikipedia by summarizing long sequences*). Lectures: L1 and L2.
