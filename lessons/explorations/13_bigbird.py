# %% [markdown]
# # BigBird by its blocks
#
# **45 minutes · an exploration of lesson 13 · needs nothing**
#
# BigBird's pattern is a list: for each block of queries, the blocks of keys that it sees. **Who makes the list, from which length on does it pay, and does training find its paths?** You write the list and the masks that it means, mend the loop that walks through it, count what it costs, and look for a needle.

# %%
import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor
from course_lib.efficient import bigbird
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results
from course_lib.instruments.pictures import tiles as pictures

# %% [markdown]
# ## Count the multiply-adds
#
# Begin with what BigBird wants to save: table 1 of Vaswani et al. 2017 in exact numbers. Attention scores $n^2$ pairs and averages with $n^2$ weights; a recurrent network multiplies each token and each state by a matrix:
#
# $$\text{attention: } 2\,n^2 d \qquad \text{RNN: } 2\,n d^2$$

# %%
# exercise: efficient/operations

# %%
check("efficient/operations", operations)

# %%
operations = mine("efficient/operations")

# %% [markdown]
# That is what mixes tokens. A layer of attention has four matrices, too. A GRU has six in place of an RNN's two, an LSTM eight:
#
# $$\text{attention: } \underbrace{4\,n d^2}_{W_Q,\,W_K,\,W_V,\,W_O} + 2\,n^2 d \qquad \text{GRU: } 6\,n d^2 \qquad \text{LSTM: } 8\,n d^2$$

# %% tags=["nbval-check-output"]
d = 1000
for n in (30, 2000, 50_000):
    attention, rnn = 4 * n * d**2 + operations("attention", n, d), operations("rnn", n, d)
    times = (attention / (gates * rnn) for gates in (1, 3, 4))
    print("{:6} tokens: {:5.2f} RNNs, {:5.2f} GRUs, {:5.2f} LSTMs".format(n, *times))

# %% [markdown]
# With $d = 1{,}000$, as L1 and L3 suggest, attention is cheaper than an LSTM up to $n = 2d$, and never than a plain RNN. Vaswani et al. 2017 (section 4) call it "faster" for $n < d$: they leave out the four matrices. For a book the square is most of the work.

# %% [markdown]
# ## A band
#
# The first of BigBird's three parts is a window. As a mask it saves nothing; it is there to look at, and to compare with. Token $i$ sees $j$ if $|i - j| \le w // 2$:

# %%
# exercise: efficient/window_mask

# %%
check("efficient/window_mask", window_mask)

# %%
window_mask = mine("efficient/window_mask")

# %% [markdown]
# In a text of 65,536 tokens with a window of 257, **what share of the pairs is kept?**

# %%
guess = None  # a share

# %% tags=["nbval-check-output"]
n, r = 65_536, 128
pairs = n * (2 * r + 1) - r * (r + 1)  # less what the windows lack at both ends
reveal(guess, f"{pairs / n**2:.2%}")
assert window_mask(1000, 257).sum() == 1000 * 257 - r * (r + 1)

# %% [markdown]
# ## The list
#
# Now in blocks. Each row lists the blocks of the window, the global blocks, and some random ones of those that are left; the global blocks' own rows list all. Rows differ in length, so $-1$ fills them up.

# %%
# exercise: efficient/neighbours

# %%
check("efficient/neighbours", neighbours)

# %%
neighbours = mine("efficient/neighbours")

# %% [markdown]
# And the mask that a list means, token by token:

# %%
# exercise: efficient/bigbird_mask

# %%
check("efficient/bigbird_mask", bigbird_mask)

# %%
bigbird_mask = mine("efficient/bigbird_mask")

# %% tags=["hide-input"]
from matplotlib.colors import ListedColormap

parts = {name: bigbird.PARTS[name] for name in ("window", "global", "random", "BigBird")}
patterns = {name: bigbird_mask(neighbours(64, *part, 0), 1) for name, part in parts.items()}
title = "Three patterns, and all of them together, on 64 blocks"
figure, panels = plots.panels(title, list(patterns), size=(10, 3.1))
for ax, mask in zip(panels, patterns.values()):
    ax.imshow(mask.float().masked_fill(~mask, torch.nan), cmap=ListedColormap([plots.COLOURS[0]]))
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.85", hatch="///")
    ax.set(xlabel=f"key: {mask.float().mean():.0%} of the pairs", xticks=[], yticks=[])
panels[0].set_ylabel("query")
assert (patterns["BigBird"] >= patterns["window"] | patterns["global"]).all()
shares = ", ".join(f"{mask.float().mean():.0%}" for mask in patterns.values())
plots.show(
    figure,
    "Four masks of 64 by 64 blocks. Window: a band of three. Global: the first row and column. "
    f"Random: two scattered blocks a row. BigBird: all of these. Shares of the pairs: {shares}.",
)

# %% [markdown]
# ## One loop with masks
#
# Lesson 13 lets each block of queries attend to its keys at once. A row that lists every block is long: it needs the online softmax, tile by tile. Here is that loop. A row of its plan is `(start, stop, tiles)`, a tile `(first, last, mask)`: queries `start` to `stop - 1` see keys `first` to `last - 1`, all of them or those in the mask. It is right for whole tiles, and sometimes wrong with masks. Find the line, and mend it:

# %%
# exercise: efficient/mend_plan

# %%
check("efficient/mend_plan", attend_by_plan)

# %%
attend_by_plan = mine("efficient/mend_plan")

# %% [markdown]
# Why is $-\infty$ right in lesson 13, and wrong here? A query that sees nothing in its first tile keeps it, and $-\infty - (-\infty)$ is not a number. The lowest finite number is below every score too, and its differences are numbers.

# %% [markdown]
# ## When does it pay?
#
# With a window of $w$, $g$ global and $r$ random blocks of $b$ tokens, most rows score $(w + g + r)\,b$ keys, and $g b$ global rows score all $n$. Overlaps aside, that is
#
# $$2\,n d \cdot b\,(w + 2g + r)$$
#
# multiply-adds, against attention's $2 n^2 d$. **From which length on does $(w, g, r) = (3, 1, 2)$ with blocks of 64 need fewer? And how many times fewer at 4,096 tokens?**

# %%
guess = None  # (a length, a factor)

# %% tags=["nbval-check-output"]
border = 64 * (3 + 2 * 1 + 2)
times = operations("attention", 4096, 64) / (2 * 4096 * 64 * border)
reveal(guess, (border, round(times, 1)))
assert border == 448 and round(times) == 9

# %% [markdown]
# Nine is a count. In time, BigBird is behind the plain window at every length that we measured: blocks that are gathered from here and there cost more than a stretch in one piece. The authors of Hugging Face's BigBird (window 3, 2 global, 3 random blocks of 64) advise full attention below 1,024 tokens (reported).
#
# ## Another draw, and the causal form
#
# Two questions about paths. How much does the random draw matter? And what is left if no block may see a later one?


# %%
def layers_needed(sees, wanted):
    """Count the layers until every wanted pair is connected; None if that never happens."""
    step = (sees | torch.eye(len(sees)).bool()).float()
    reach, layers = torch.eye(len(sees)), 0
    while not (reach > 0)[wanted].all():
        new = (step @ reach).clamp(max=1)
        if torch.equal(new, reach):
            return None
        reach, layers = new, layers + 1
    return layers


# %%
everything, past = torch.ones(256, 256).bool(), torch.ones(256, 256).bool().tril()
found = {}
for name, part in {"window + random": (3, 0, 2), "global": (0, 1, 0), **parts}.items():
    masks = [bigbird_mask(neighbours(256, *part, seed), 1) for seed in range(5)]
    both = [layers_needed(mask, everything) for mask in masks]
    causal = [layers_needed(mask & past, past) for mask in masks]
    found[name] = both, causal
    print(f"{name:16} both ways {both}, causal {causal}")

# %% tags=["hide-input"]
assert found["BigBird"][1] == found["window + random"][1]
assert set(found["window + random"][0]) == {8}
assert (min(found["BigBird"][1]), max(found["BigBird"][1])) == (33, 38)
alone = bigbird_mask(neighbours(256, 0, 0, 2, 0), 1) & ~torch.eye(256).bool()
assert found["random"][0] == [None] * 5 and not alone.any(0).all()

# %% [markdown]
# Five seeds each. With a window the draw matters little: always 8 layers. Random links alone never connect all pairs (`None`), since some block is in no other block's list. The global block takes two layers both ways; causal, it comes first, sees only itself, and never connects two later blocks. So a causal BigBird needs 33 to 38 layers here, as many as without its global block. Sparse Transformers (Child et al. 2019) have causal patterns of their own.

# %% [markdown]
# ## A needle
#
# These are paths. Does training find them? Take 128 letters of Shakespeare. One of them is replaced by one of ten **needles**, and the last by a token that asks which. The model is an encoder of two layers. A block is four letters; the parts are BigBird's: a window of three blocks, one global block, two random blocks.

# %% tags=["hide-input"]
pictures.needle()

# %% [markdown]
# Let $A_{ij} = 1$ if token $i$ sees token $j$. After layer 1, token $j$ knows itself and what it sees: row $j$ of $A + I$. In layer 2 the question reads its row of $A$. So its output can depend on each token whose entry is positive in
#
# $$\text{paths in two layers: } \underset{n \times n}{A\,(A + I)}, \quad \text{in the row of the question}$$

# %% [markdown]
# We trained the three parts, their combinations and full attention ("dense"), with three seeds each. A cross marks a distance without a path:

# %% tags=["hide-input"]
needle = results.load("needle")["figures"]


def can_find(part):
    """Tell for each distance whether a path of two layers leads to the needle."""
    listed = bigbird.neighbours(32, *bigbird.PARTS[part], seed=0)  # as in the training
    sees = bigbird_mask(listed, 4).float()
    paths = sees @ (sees + torch.eye(128)) > 0
    return paths[-1, [127 - distance for distance in needle["distances"]]]


shares = {
    name: torch.tensor([run["found"] for run in needle["one"][name]]).mean(0)
    for name in ("dense", *bigbird.PARTS)
}
paths = {name: can_find(name) for name in bigbird.PARTS}
paths["dense"] = torch.ones(len(needle["distances"])).bool()
pictures.found(shares, paths, needle["distances"])
alone = [round(run["curve"][-1], 2) for run in needle["one"]["global"]]
print("global alone, by the seed:", alone)

# %% [markdown]
# Without a path the model can only guess one of ten, however long we train. And training must find the path. In 1,200 steps random links alone find two of the four distances that have one. The global block alone misses some with each seed. With a window or random links beside it, it finds nearly all.
#
# <details><summary>How we know</summary>
#
# 1,200 steps of eight texts, $d_{model} = 32$, learning rate 0.005 (research/results/needle.json). Near needles help: trained on far ones alone, window and global lose most of them (needle_controls.json, with other rates).
# </details>

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | a row of the list | window, global, random blocks; $-1$ for none |
# | cost | $2nd \cdot b(w + 2g + r)$ in place of $2n^2d$ |
# | attention layer | $4nd^2 + 2n^2d$: $2 + n/d$ times an RNN, $1/2 + n/(4d)$ times an LSTM |
# | causal | drop what comes later: the global block no longer collects |
# | paths in two layers | where $A(A + I)$ is positive; training must find them |
#
# Zaheer et al. 2020, section 2 and appendix D; Child et al. 2019; Vaswani et al. 2017, section 4 and table 1. Titles and links: docs/REFERENCES.md.
