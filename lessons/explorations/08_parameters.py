# %% [markdown]
# # Where are 65 million parameters?
#
# **20 minutes · an exploration of lesson 08 · needs nothing**
#
# The base model of Vaswani et al. 2017 has 65 million parameters, says its table 3. **Where does a Transformer keep its parameters?** You count them by a formula, hold it against a model, and see why three different shares of the feed-forward networks, 67 %, 57 % and 40 %, are all right.

# %%
import torch
from torch import nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots

# %% [markdown]
# ## The formula
#
# In our code each attention has four matrices $d \times d$ with biases (the paper writes none there, a difference of 0.04 million), each network two matrices, each norm a gain and a bias:
#
# $$\underbrace{4(d^2 + d)}_{\text{attention}} \qquad \underbrace{2\,d\,d_{ff} + d_{ff} + d}_{\text{network}} \qquad \underbrace{2d}_{\text{norm}}$$
#
# An encoder block has one attention and two norms, a decoder block two attentions and three norms. One tied embedding has $vocab \cdot d$ numbers, and is the output layer, too.

# %% [markdown]
# **How many million parameters does the base model have, with $N = 6$, $d = 512$, $d_{ff} = 2048$ and a vocabulary of 37,000?**

# %%
guess = None  # millions

# %%
# exercise: transformer/parameters

# %%
check("transformer/parameters", parameter_count)

# %%
parameter_count = mine("transformer/parameters")

# %% [markdown]
# Held against a model. (On the device *meta* a tensor has a shape and no numbers, so this takes no memory.)

# %% tags=["nbval-check-output"]
from course_lib.transformer import BASE, Transformer

count = parameter_count(BASE["layers"], BASE["d_model"], BASE["d_ff"], BASE["vocab"])
with torch.device("meta"):
    base = Transformer(**BASE, max_length=1)
assert count == sum(weight.numel() for weight in base.parameters())
reveal(guess, f"{count / 1e6:.1f} million")
print(f"with 41,000 tokens: {parameter_count(6, 512, 2048, 41000) / 1e6:.1f} million")

# %% [markdown]
# The paper's table 3 says 65 million, and its text "about 37000 tokens". With 41,000 tokens the formula gives 65.1 million; the paper does not explain the difference. The number of heads is not in the formula: heads share the columns of four matrices out.
#
# ## What share do the feed-forward networks have?
#
# With $d_{ff} = 4d$ and without biases, an encoder block has $4d^2$ parameters in attention and $8d^2$ in the network. **What share of an encoder block, of all blocks, and of the whole model is that?**

# %%
guess = None  # three shares, such as (0.5, 0.5, 0.5)

# %% tags=["nbval-check-output"]
block = base.decoder.blocks[0]
of_network, of_attention = (
    sum(w.numel() for w in part.sublayer.parameters())
    for part in (block.feed_forward, block.attention)
)
networks, embedding = 12 * of_network, base.encoder.embedding.table.numel()
of = (of_network + of_attention, (count - embedding) / 12, count / 12)
reveal(guess, tuple(round(of_network / total, 2) for total in of))
d = 12_288  # GPT-3: 96 blocks, each 12 d² (Brown et al. 2020, table 2.1)
print(f"GPT-3, embedding to blocks: {50_257 * d / (96 * 12 * d**2):.1%}")

# %% [markdown]
# They are shares of different totals. Two thirds of an *encoder block*. A decoder block has a second attention, so the share of *all blocks* is smaller. And the embedding is 30 % of *this model*, because it is small: in GPT-3 it is only 0.4 % of what the blocks have.

# %% tags=["hide-input"]
times = {"embedding, tied": 1, "self-attention": 12, "cross-attention": 6, "feed-forward": 12}
sizes = [embedding, of_attention, of_attention, of_network]
parts = {name: times[name] * size for name, size in zip(times, sizes)}
assert 1 - sum(parts.values()) / count < 0.001, "the norms are the rest"
title = "Feed-forward networks are the largest part of the base model, 40 %"
figure, ax = plots.axes(title, "million parameters", "", size=(6.4, 2.6))
ax.barh(list(parts), [size / 1e6 for size in parts.values()], color=plots.COLOURS[0])
for y, size in enumerate(parts.values()):
    ax.text(size / 1e6 + 0.3, y, f"{size / count:.1%}", va="center")
ax.set(xlim=(0, 30))
plots.show(
    figure,
    "Bars of parameters in the base model: embedding 30.0 %, self-attention 20.0 %, "
    "cross-attention 10.0 %, feed-forward 39.9 %. The norms have less than 0.1 %.",
)
assert round(100 * parts["feed-forward"] / count, 1) == 39.9
assert round(100 * parts["embedding, tied"] / count, 1) == 30.0

# %% [markdown]
# So a rule for the back of an envelope: a block of width $d$ without cross-attention has $12 d^2$ parameters, and $N$ of them $12 N d^2$. For GPT-3 ($N = 96$, $d = 12{,}288$) that is 174 billion of its 175 (reported).

# %%
assert round(96 * 12 * 12_288**2 / 1e9) == 174

# %% [markdown]
# Vaswani et al. 2017, table 3; Brown et al. 2020.
