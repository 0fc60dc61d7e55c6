# %% [markdown]
# # A stack of the smallest block
#
# **30 minutes · an exploration of lesson 05 · needs nothing**
#
# Self-attention, positions, a nonlinearity and a mask make the smallest block. **What is each part for, and what is missing if you stack it?** You build the block, take its parts away one at a time, and then change the size of its first weights.

# %%
import torch
from jaxtyping import Float
from torch import Tensor, nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, training

# %% [markdown]
# ## Build the block
#
# $$\underset{n \times d}{Y} \;=\; \mathrm{FFN}\big(\mathrm{Attention}(\underset{n \times d}{X} + \underset{n \times d}{P},\; \text{causal mask})\big)$$
#
# Our block adds positions to its own input, so a stack adds them at every level. L1, L2 and L4 add them once, "at the first layer"; so does the Transformer of 2017, whose residual connections carry them upwards. Our block has none.

# %%
from collections.abc import Callable
from course_lib.positions import sinusoidal
from course_lib.self_attention import SelfAttention


# %% tags=["hide-input"]
def causal_mask(n, device=None):
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**0.5)
        self.b_1, self.b_2 = (nn.Parameter(torch.zeros(n)) for n in (d_ff, d_model))

    def forward(self, x):
        return (x @ self.w_1 + self.b_1).clamp(min=0) @ self.w_2 + self.b_2


# %%
# exercise: feed_forward/minimal_block

# %%
check("feed_forward/minimal_block", MinimalBlock)

# %%
MinimalBlock = mine("feed_forward/minimal_block")

# %% [markdown]
# ## Is each part needed?
#
# Leave out one at a time, and ask four questions. Do earlier tokens count? Does their order? Is the block more than an affine map of a lone token? Is the future hidden?


# %%
class Alone(nn.Identity):
    def forward(self, x, mask):
        return x


class Unmasked(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x)


def block(without=None, **parts):
    made = MinimalBlock(8, 32, **parts)
    if without == "feed-forward":
        made.feed_forward = nn.Identity()
    return made


# %%
def same(one, other):
    return torch.allclose(one, other, atol=1e-5)


# %%
def abilities(block):
    x, a, b = torch.randn(6, 8), torch.randn(1, 8), torch.randn(1, 8)
    changed, swapped = torch.cat([a, x[1:]]), x[[1, 0, 2, 3, 4, 5]]
    later = torch.cat([x[:-1], a])
    return {
        "earlier tokens": not same(block(x)[-1], block(changed)[-1]),
        "their order": not same(block(x)[-1], block(swapped)[-1]),
        "nonlinearity": not same(block((a + b) / 2), (block(a) + block(b)) / 2),
        "hiding the future": same(block(x)[:-1], block(later)[:-1]),
    }


# %% tags=["nbval-check-output"]
torch.manual_seed(0)
blocks = {
    "complete block": block(),
    "without attention": block(attention=lambda *sizes: Alone()),
    "without positions": block(positions=torch.zeros),
    "without feed-forward": block(without="feed-forward"),
    "without mask": block(attention=Unmasked),
}
found = {name: abilities(made) for name, made in blocks.items()}
for name, can in found.items():
    lost = [ability for ability, there in can.items() if not there]
    print(f"{name:21} loses", ", ".join(lost) or "nothing")

# %% [markdown]
# In *one* block each part is needed: without it, at least one answer turns to no. In a stack the causal mask alone lets order through, from the second block on:

# %% tags=["nbval-check-output"]
without_positions = [block(positions=torch.zeros) for _ in range(2)]
for depth in (1, 2):
    can = abilities(nn.Sequential(*without_positions[:depth]))
    print(f"blocks: {depth}, without positions: order counts: {can['their order']}")

# %% [markdown]
# Language models without positions make use of this (Haviv et al. 2022).

# %% [markdown]
# ## It depends on the first weights
#
# In a deep stack of attention and networks the tokens become alike where mask and positions are missing, as they are here: **rank collapse**. Dong et al. 2021 write in their abstract that skip connections and MLPs (our networks) "stop the output from degeneration", and in their introduction that "MLPs can slow down the convergence by increasing their Lipschitz constant". So let us vary the size of the weights: a gain on $W_1$ of each network; as a control, the same gain on $W_V$ of attention without networks.

# %% [markdown]
# With our first weights (gain 1) a network's output has about $1/\sqrt2$ of its input's norm: the ReLU removes half of the squared norm. So the next scores are smaller, the softmax flatter, the average more even. **At which gain should a network keep the norm?**

# %%
guess = None  # a number


# %%
def spread(x):
    return ((x - x.mean(-2, keepdim=True)).norm() / x.norm()).item()


def scaled(module, name, gain):
    getattr(module, name).data *= gain
    return module.double()


# %%
@torch.no_grad()
def after_three(gain, networks):
    found = []
    for draw in range(20):
        torch.manual_seed(draw)
        x = torch.randn(8, 64).double()
        for _ in range(3):
            x = scaled(SelfAttention(64, 64, 64), "w_v", 1 if networks else gain)(x)
            if networks:
                x = scaled(FeedForward(64, 256), "w_1", gain)(x)
        found.append(spread(x))
    return torch.tensor(found).log().mean().exp().item()


# %%
torch.manual_seed(0)
x, sizes = torch.randn(100, 64), []
with torch.no_grad():
    for _ in range(20):
        sizes.append((FeedForward(64, 256)(x).norm() / x.norm()).item())
print("a network's output has", round(sum(sizes) / 20, 2), "of its input's norm")
reveal(guess, round(20 / sum(sizes), 2))
gains = [0.5, 1, 1.41, 2, 3, 4]
swept = {networks: [after_three(g, networks) for g in gains] for networks in (True, False)}

# %% tags=["hide-input"]
title = "Up to a gain of 3, larger weights slow the collapse, with networks or without"
figure, ax = plots.axes(title, "gain", "spread after three layers", size=(8, 3.8))
labels = {True: "attention and networks,\ngain on $W_1$", False: "attention alone,\ngain on $W_V$"}
for (networks, values), colour in zip(swept.items(), (plots.COLOURS[1], plots.COLOURS[0])):
    ax.loglog(gains, values, "o-", color=colour)
    ax.text(4.15, values[-1], labels[networks], color=colour, size="small", va="center")
ax.axhline(swept[False][1], color="0.5", linestyle="--", linewidth=1)
text = "attention alone, original weights"
ax.text(4.1, swept[False][1] / 4, text, color="0.4", size="small", ha="right")
ax.set(xticks=gains, xticklabels=[f"{gain:g}" for gain in gains])
ax.minorticks_off()
said = [", ".join(f"{value:.0e}" for value in values) for values in swept.values()]
plots.show(
    figure,
    "Spread after three layers against the gains 0.5, 1, 1.41, 2, 3 and 4, both logarithmic, "
    f"geometric means of 20 draws. With networks: {said[0]}. Attention alone: {said[1]}. A dashed "
    "line is attention alone at gain 1.",
)
assert swept[True][1] < swept[False][1] < swept[True][4]
assert all(values == sorted(values) for values in (swept[True][:5], swept[False][:5]))
assert all(network < alone for network, alone in zip(swept[True][:5], swept[False][:5]))

# %% [markdown]
# So networks slow the collapse down where their weights are large. But a gain does as much without a network: with zero biases it changes only the next layer's scores, and attention alone keeps the larger spread at each gain up to 3. (At 4 the two cross; we do not know why.) And in training a stack of attention that starts with a gain of 2 collapses again (`research/results/two_cures.json`: all nine runs). What is missing is the residual connection: lesson 07.
#
# Dong et al. 2021 (rank collapse); Haviv et al. 2022 (models without positions).
