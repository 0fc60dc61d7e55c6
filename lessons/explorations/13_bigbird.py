# %% [markdown]
# # BigBird by its blocks
#
# **45 minutes · an exploration of lesson 13 · needs nothing**
#
# BigBird's pattern is a list: for each block of queries, the blocks of keys that it sees. **Who makes the list, and from which length on does it pay?** You write the list and the masks that it means, mend the loop that walks through it, count what it costs, and see what is left of it in a causal model.

# %%
import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots

# %% [markdown]
# ## Two products, or two matrices
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

PARTS = {"window": (3, 0, 0), "global": (0, 1, 0), "random": (0, 0, 2), "BigBird": (3, 1, 2)}
patterns = {name: bigbird_mask(neighbours(64, *part, 0), 1) for name, part in PARTS.items()}
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
# ## Luck, and the causal form
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
for name, part in {"window + random": (3, 0, 2), "global": (0, 1, 0), **PARTS}.items():
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
# ## What to remember
#
# | | |
# |:-|:-|
# | a row of the list | window, global, random blocks; $-1$ for none |
# | cost | $2nd \cdot b(w + 2g + r)$ in place of $2n^2d$ |
# | causal | drop what comes later: the global block no longer collects |
#
# Zaheer et al. 2020, section 2 and appendix D; Child et al. 2019; Vaswani et al. 2017, table 1. Titles and links: docs/REFERENCES.md.
