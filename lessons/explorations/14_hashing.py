# %% [markdown]
# # Hash, sort, cut
#
# **45 minutes · an exploration of lesson 14 · needs nothing**
#
# Lesson 14 draws the Reformer's attention: hash the tokens, sort them by bucket, cut them into chunks. **How do you attend to the pairs of a hash without a matrix of all pairs?** You write it, and compare it with dense attention under its mask. Then you hash again, for the pairs that one hash misses.

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
from course_lib.efficient.lsh import draw_rotations
from course_lib.instruments.measuring import largest_difference, random_vectors

scaled_dot_product_attention = mine("self_attention/scaled_dot_product")


def lsh_buckets(x, rotations):
    return torch.cat([x @ rotations, -(x @ rotations)], dim=-1).argmax(-1)


# %% [markdown]
# ## By hand
#
# Eight tokens in the buckets 1 0 1 2 0 1 1 2. Sorted by bucket, and by place within one, they are 1 4 0 2 | 5 6 3 7 in chunks of four. A query sees the keys of its own bucket in its own chunk and in the one before, and itself only if it sees nothing else:
#
# | query | 1 | 4 | 0 | 2 | 5 | 6 | 3 | 7 |
# |:-|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|
# | its bucket | 0 | 0 | 1 | 1 | 1 | 1 | 2 | 2 |
# | sees | 4 | 1 | 2 | 0 | 0, 2, 6 | 0, 2, 5 | 7 | 3 |

# %% [markdown]
# Queries and keys are the same vectors $x$, keys with norm 1. So each chunk meets two chunks of keys: no tensor has $n \times n$ numbers. Four steps: sort by bucket (a stable sort keeps the places in order), cut into chunks and put beside each the one before, attend under the mask, and put the results back in the order of the text.
#
# $$o_i = \sum_{j \in S_i} \mathrm{softmax}_j\!\left(\frac{x_i \cdot x_j / \lVert x_j \rVert}{\sqrt{d_k}}\right) v_j \qquad S_i = \big\{\, j \ne i : \beta(j) = \beta(i),\; c(i) - c(j) \in \{0, 1\} \,\big\}$$
#
# With `causal=True` only $j < i$ remain. If $S_i$ is empty, $o_i = v_i$.

# %%
# exercise: efficient/lsh

# %%
check("efficient/lsh", lsh_attention)

# %%
lsh_attention = mine("efficient/lsh")

# %% tags=["hide-input"]
qk = random_vectors(64, 4, dtype=torch.float64)
value = random_vectors(64, 3, seed=1, dtype=torch.float64)
buckets = lsh_buckets(qk, draw_rotations(4, 8, seed=0).double())
place = buckets.argsort(stable=True).argsort() // 16
back = place.unsqueeze(-1) - place
sees = (buckets.unsqueeze(-1) == buckets).fill_diagonal_(False) & ((back == 0) | (back == 1))

# %%
alone = ~sees.any(-1, keepdim=True)
under_mask = scaled_dot_product_attention(qk, F.normalize(qk, dim=-1), value, sees)
under_mask = torch.where(alone, value, under_mask)
found = largest_difference(lsh_attention(qk, value, buckets, 16), under_mask, qk, value)
print(f"LSH and dense attention under its mask differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# LSH attention *is* dense attention under a mask that the tokens choose, in value and gradient.
#
# ## Hash again
#
# Two similar vectors may still fall on different sides of a border between buckets. So hash again, with other directions, and count a pair if any **round** shows it. **Two vectors with a cosine of 0.9 share one of 16 buckets with probability $p$. What is the probability that they meet at least once in eight rounds?**

# %%
guess = None  # a formula in p

# %% tags=["hide-input"]
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
# Each round costs as much as the first. Reformer joins the rounds in one softmax: dense attention under the union of all rounds' masks (`lsh_attention_in_rounds` in the library). What a hash misses is one loss, what a chunk loses is another; only the first shrinks with the rounds for sure.
#
# Kitaev et al. 2020 (Reformer); Andoni et al. 2015 (the hash). Lectures: L3.
