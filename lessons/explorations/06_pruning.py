# %% [markdown]
# # Can a head be left out?
#
# **18 minutes · an exploration of lesson 06 · needs nothing**
#
# A trained layer has four heads. **What happens if one is switched off, and does that show that the model needs four?** Michel et al. 2019 switched off heads of a translation model and of BERT: most could go, one at a time, without a significant loss (reported).

# %%
import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results
from course_lib.instruments.pictures import multi_head as pictures

# %% [markdown]
# ## Side by side again
#
# After attention, the heads' results are put side by side, a row for each token. It is the inverse of splitting. **In a merged row of three heads with $d_k = 4$: from which head, and from which of its columns, does column 9 come? (All counted from 0.)**

# %%
guess = None  # (head, column)

# %%
# exercise: multi_head/merge_heads

# %%
check("multi_head/merge_heads", merge_heads)

# %%
merge_heads = mine("multi_head/merge_heads")

# %% tags=["nbval-check-output"]
marks = torch.arange(12.0).reshape(3, 1, 4)  # head i, column c holds 4 i + c
m = int(merge_heads(marks)[0, 9])
reveal(guess, (m // 4, m % 4))

# %% [markdown]
# Column $m$ comes from head $\lfloor m / d_k \rfloor$, column $m \bmod d_k$.
#
# ## A sum over heads
#
# Now cut $W_O$ into blocks of rows, one for each head. A product of blocks is a sum:
#
# $$[\,\mathrm{head}_1 \mid \dots \mid \mathrm{head}_h\,]\; W_O = \sum_{i=1}^{h} \mathrm{head}_i\, W_O^i$$
#
# **Set head 1's block of $W_O$ to zero. Is the output that of the other two heads alone, exactly?**

# %%
guess = None  # True or False

# %%
torch.manual_seed(0)
found, w_o = torch.randn(3, 5, 4), torch.randn(12, 12)
whole = merge_heads(found) @ w_o
terms = [found[i] @ w_o[4 * i : 4 * i + 4] for i in range(3)]
assert torch.allclose(sum(terms), whole, atol=1e-4)

# %%
off = w_o.clone()
off[:4] = 0
reveal(guess, torch.allclose(merge_heads(found) @ off, terms[1] + terms[2], atol=1e-4))

# %% [markdown]
# So each head adds a term of its own to every column of the output. Heads have no order (renumber them in all four matrices, and nothing changes), and one can be taken out without touching the others.
#
# ## Four heads, one missing
#
# Measured beforehand: a language model of one layer with four heads, $d_{model} = 64$, 800 steps on Shakespeare's characters, three seeds. Each head is switched off in turn, without further training.

# %% tags=["hide-input"]
kept = results.load("multi_head")["figures"]
title = "Switching off any one of four heads costs 0.09 nats or more"
figure, ax = plots.axes(title, "seed", "rise of the loss (nats)", size=(6, 3.2))
for seed, run in enumerate(kept["reader"]):
    places = [seed + (i - 1.5) / 6 for i in range(4)]
    ax.bar(places, sorted(run["rise"]), 0.14, color=plots.COLOURS[0])
ax.set(xticks=range(3), xticklabels=["0", "1", "2"])
rises = [rise for run in kept["reader"] for rise in run["rise"]]
assert (round(min(rises), 2), round(max(rises), 2)) == (0.09, 0.34)
shown = "; ".join(", ".join(f"{x:.2f}" for x in sorted(run["rise"])) for run in kept["reader"])
plots.show(
    figure,
    f"Rise of the held-out loss when one of four heads is off, for three seeds: {shown}.",
)

# %% [markdown]
# No head can be removed for free: 0.09 to 0.34 nats each. So the model needs four heads? **Train the same model with *one* head of size 64, the same number of parameters, the same 800 steps. How much higher is its loss, in the mean of three seeds?**

# %%
guess = None  # in nats; negative if one head is better

# %%
losses = {name: [run["loss"] for run in kept[name]] for name in ("one head", "reader")}
for name, three in losses.items():
    print(f"{name:9}", " ".join(f"{loss:.3f}" for loss in three))
gap = sum(losses["one head"]) / 3 - sum(losses["reader"]) / 3
reveal(guess, round(gap, 3))
assert abs(gap) < 0.005

# %% [markdown]
# No higher: 2.045 against 2.044 nats. Each of the four heads is *used*, and four are not *needed*: trained with one head from the start, the model does as well. (One layer, one learning rate, 800 steps. We did not look for a size from which heads pay on this text; Vaswani et al. 2017 found 0.9 BLEU between one head and eight in translation, reported in lesson 06.)

# %%
means = [round(sum(three) / 3, 3) for three in losses.values()]
assert means == [2.045, 2.044]

# %% [markdown]
# ## One look for all heads
#
# SmolLM2 was trained with nine heads in each of its thirty layers. Can they share one look? In every layer let all nine attend with the weights of *one* of them, which was chosen on other texts; each keeps its values. Or let them share the mean of the nine. The texts are sentences, and lists of random tokens that are read twice, as in lesson 06. A dot is a text:

# %% tags=["hide-input"]
title = "One look in every layer breaks the trained model"
pictures.one_look(title, results.load("one_look")["figures"])

# %% [markdown]
# No: on sentences the loss goes from 4.0 to 7.4 nats. Again this shows what a trained model *uses*: each head's values were learned for its own look. It does not show what a model would reach that is trained with one look from the start.
#
# Michel et al. 2019, *Are Sixteen Heads Really Better than One?*; Voita et al. 2019.
