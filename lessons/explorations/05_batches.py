# %% [markdown]
# # Lines of unequal length
#
# **30 minutes · an exploration of lesson 05 · needs `shakespeare` (5.4 MB)**
#
# A batch is a rectangle, but lines have unequal lengths, so short ones are filled up with **padding**. **What does a line know of the batch that it is in?** It should know nothing: what a model says about a line must not depend on its company.

# %%
import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import batches, characters, needs, shakespeare
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots

# %%
SelfAttention = mine("self_attention/layer")


# %%
def looking_back(n):
    return torch.ones(n, n).bool().tril()


# %% [markdown]
# ## Shift right
#
# First the inputs. A decoder reads its targets shifted one position to the right, behind a start token, so that at each position it has read only what comes before:
#
# $$(\text{start},\; t_1,\; t_2,\; \dots,\; t_{n-1}) \;\longmapsto\; (t_1,\; t_2,\; t_3,\; \dots,\; t_n)$$

# %%
# exercise: masks/shift_right

# %%
check("masks/shift_right", shift_right)

# %%
shift_right = mine("masks/shift_right")

# %% tags=["nbval-check-output"]
numbers = {"start": 0, "shall": 1, "i": 2, "compare": 3, "thee": 4}
names = list(numbers)
targets = torch.tensor([1, 2, 3, 4])
inputs = shift_right(targets, numbers["start"])
for i, target in enumerate(targets.tolist()):
    read = " ".join(names[token] for token in inputs[: i + 1].tolist())
    print(f"position {i}: has read {read!r:23} and must predict {names[target]!r}")

# %% [markdown]
# What if we do *not* shift, and hide the diagonal too, $j \ge i$? **Does output 3 then still depend on token 3, the one that it must predict?**

# %%
guess = None  # True or False

# %%
torch.manual_seed(0)
x, layer = torch.randn(5, 8), SelfAttention(8, 8, 8)
other = x.clone()
other[3] = torch.randn(8)
strict = looking_back(5).tril(-1)
moved = (layer(x, strict) - layer(other, strict)).abs().amax(-1) > 1e-6
reveal(guess, moved[3].item())
assert moved.tolist() == [False, False, False, True, True]

# %% [markdown]
# It does. Token 3 is no longer among its own keys, but it is still its own *query*, and another query gives other weights. So shift the inputs, and hide $j > i$.
#
# ## Padding
#
# How much padding is there in batches of 32 lines of Shakespeare?

# %%
needs("shakespeare")

# %%
text = [line.strip() for line in shakespeare.complete_works().splitlines()]
verse = [characters.encode(line).tolist() for line in text[20_000:30_000] if line]
by_length = batches.similar_lengths(verse, 32, 0, len)
at_random = batches.similar_lengths(verse, 32, 0, lambda line: 0)  # the sorting does nothing
padded = {}
for name, drawn in {"random order": at_random, "similar lengths": by_length}.items():
    full = [batches.pad(next(drawn), -1) for _ in range(200)]
    padded[name] = (sum((batch < 0).sum() for batch in full) / sum(map(Tensor.numel, full))).item()
print({name: f"{share:.0%}" for name, share in padded.items()})

# %% [markdown]
# Batches of lines of similar length have hardly any. In an encoder, what is left must be masked. For a line of length $\ell_b$ in a batch of width $n$, all queries may look at the same keys, so one row a line is enough, and it broadcasts:
#
# $$M_{b\,1\,j} = (\,j < \ell_b\,), \quad j = 0, \dots, n - 1 \qquad\text{of shape } (\text{batch}, 1, n)$$

# %%
needs()

# %%
# exercise: masks/padding

# %%
check("masks/padding", padding_mask)

# %%
padding_mask = mine("masks/padding")

# %%
needs("shakespeare")

# %% tags=["hide-input"]
shares = [f"{share:.0%}" for share in padded.values()]
title = f"Padding fills {shares[0]} of random batches, and {shares[1]} of those sorted by length"
figure, panels = plots.panels(title, list(padded), size=(8.4, 3))
for ax, drawn in zip(panels, (at_random, by_length)):
    lengths_here = torch.tensor([len(line) for line in next(drawn)])
    real = padding_mask(lengths_here, int(lengths_here.max())).squeeze(1)
    shades = torch.where(real, 1.0, torch.nan)
    ax.imshow(shades, aspect="auto", vmin=1, vmax=2)
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.6", hatch="///")
    ax.set(xlabel="position")
panels[0].text(2, 3, "characters", color="white", va="center")
panels[0].text(
    0.98, 0.5, "padding", transform=panels[0].transAxes, ha="right", backgroundcolor=plots.CARD
)
panels[0].set(ylabel="line of the batch")
plots.show(
    figure,
    "Two batches of 32 lines as rectangles, characters dark and padding hatched. In random order "
    "the lines end at different places and half of the rectangle is hatched. Of lines of similar "
    "length only a narrow strip at the right is.",
)
assert padded["random order"] > 0.3 and padded["similar lengths"] < 0.1

# %% [markdown]
# ## A line and its company
#
# Compute the outputs of a short line alone, and then beside a longer one, with padding. **Do they change without any mask? And with only a causal mask, if the padding is at the end?**

# %%
needs()

# %%
guess = None  # (True or False, True or False)

# %%
torch.manual_seed(0)
layer, short, long = SelfAttention(8, 8, 8), torch.randn(3, 8), torch.randn(7, 8)
filled = torch.cat([short, torch.randn(4, 8)])  # whatever the padding's vector is
lengths = torch.tensor([3, 7, 0])
together = torch.stack([filled, long, torch.randn(7, 8)])
hidden = layer(together, padding_mask(lengths, 7))


# %%
def differs(mask, alone):
    return not torch.allclose(layer(together, mask)[0, :3], layer(short, alone), atol=1e-5)


reveal(guess, (differs(None, None), differs(looking_back(7), looking_back(3))))
assert differs(None, None) and not differs(looking_back(7), looking_back(3))
assert not differs(padding_mask(lengths, 7), None) and not hidden[2].any()
assert not differs(looking_back(7) & padding_mask(lengths, 7), looking_back(3))

# %% [markdown]
# Without a mask the line changes with its company. The padding mask repairs that, and a line of length zero gives zeros. Under a causal mask, padding at the *end* is in the future of every real token, so none sees it. So an encoder needs the padding mask; a causal model whose padding is at the end only has to leave it out of its loss. To hide both, combine the two masks with `&`.
#
# Vaswani et al. 2017, section 3.1 (shifted right). Cross-attention needs the padding mask of the source: lesson 08.
