# %% [markdown]
# # From 2017 to 2026 in ten swaps
#
# **25 minutes · an exploration of lesson 15 · needs `shakespeare` (5.4 MB)**
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
# | 7 | every layer sees the whole text | **local and global**: three of four see the last 16 tokens (Beltagy et al. 2020) | lesson 13 |
# | 8 | keys and values are kept | **latent cache**: one short vector is kept, and both are made of it (DeepSeek-AI 2024) | below |
# | 9 | one network for all tokens | **mixture**: eight of half the width, of which a token uses two (Shazeer et al. 2017) | [experts](12_experts.ipynb) |
# | 10 | Adam | **Muon**, for the matrices (Jordan et al. 2024) | [optimizers](10_optimizers.ipynb) |
#
# Two of them are new. QK-norm replaces `q` and `k` by `rms_norm(q, ones)` and `rms_norm(k, ones)`: of 16 numbers each, they have L2 norm 4, so no score $q \cdot k / \sqrt{16}$ is above 4. A latent cache makes $c = x W_C$ first, then $k = c\, W_K$ and $v = c\, W_V$, and keeps only $c$, 32 numbers.

# %% [markdown]
# ## Your block, twice
#
# Both models below are built from your functions and classes, as far as you have passed them, and read the same 400 batches of Shakespeare, at one learning rate. The second has swaps 1 to 4 and 6 to 9: the eighth replaces the fifth, and Muon comes later. A token uses about 200,000 parameters in both; six of the second model's eight experts are idle. Up to 90 seconds each:

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
BLOCK_OF = {"2017": (), "2026": [name for name in ALL if name != "Muon"]}

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["training"]
vocab, (learning, held_out) = len(characters.vocab()), characters.split()
models = {}
for year, swaps in BLOCK_OF.items():
    with training.seeded(SEED):
        models[year] = LanguageModel(vocab, *SIZES, **swapped(swaps, own))
    batches = characters.batches(learning, 64, 16, SEED)
    training.train(
        models[year], batches, lambda model, batch: cross_entropy(model(batch[0]), batch[1]),
        steps=400, learning_rate=0.003, seconds=90,
    )  # fmt: skip

# %% tags=["training"]
tokens, following = next(characters.batches(held_out, 64, 256, SEED))
with torch.no_grad():
    lost = {year: cross_entropy(model(tokens), following).item() for year, model in models.items()}
came = {year: round(loss, 2) for year, loss in lost.items()}
claim = "the block of 2026 is at least a tenth of a nat ahead"
training.expect(claim, lost["2026"] < lost["2017"] - 0.1, came, *models.values())

# %% [markdown]
# Nine years of ideas, in your own functions. Which of them did it?

# %% [markdown]
# ## Alone, and in company
#
# First each swap goes into the block of 2017 alone, at the best of three learning rates, with three seeds. Then all are swapped, and one at a time goes back to 2017, with two seeds and the rate of all together (without Muon, pre-norm's). These runs have a warm-up, and a balance loss for the mixture (`make results LESSON=15`). **Which two of the ten save most when they are alone?**

# %%
guess = None  # two names of the table

# %%
stored = results.load("ten_swaps")["figures"]
arms, left_out = stored["arms"], stored["left_out"]
mean = {name: sum(arm["losses"]) / len(arm["losses"]) for name, arm in arms.items()}
alone = {name: mean["2017"] - loss for name, loss in mean.items()}
company = {name: sum(losses) / 2 - mean["together"] for name, losses in left_out.items()}
order = sorted(SWAPS, key=alone.get, reverse=True)
reveal(guess, tuple(order[:2]))
print(f"{'saved, nats':18} alone  in company")
for name in order:
    last = company.get(f"without {name}")
    print(f"{name:18} {alone[name]:+.2f}", "" if last is None else f"  {last:+.2f}")
mean["together, without Muon"] = sum(left_out["without Muon"]) / 2
for name in ("2017", "rotary", "together, without Muon", "rotary and Muon", "together"):
    print(f"{mean[name]:.2f} nats: {name}")
pictures.swaps(arms, left_out)

# %% [markdown]
# Two swaps do most of it: positions that act in the *score*, and an optimizer whose step has the same size in every direction of a matrix. These two come within 0.04 nats of all together. A third grows in company: three layers of four that see only nearby tokens.

# %% [markdown]
# One **changes its sign**. Alone, QK-norm makes the model of 2017 worse; added to all the others, it helps a little. If you test an idea on an old baseline only, you may drop a good one. The mixture may be a second case: alone, it and SwiGLU learned best at the lowest rate tried, so their losses there may be too high.

# %% [markdown]
# The others save something else, which the right half shows. Grouped queries halve the cache at no cost. The latent vector quarters it: alone that costs, in company hardly anything. Together with local layers it leaves a ninth of the cache. The price is time: the keys of all tokens are made and rotated again at each step. To avoid that, DeepSeek-V3 keeps a small rotated key beside its vector.

# %% [markdown]
# And pre-norm? Each of its rates was tried with one seed. **At which of the learning rates 0.003, 0.01 and 0.03 does only one of the two, pre-norm or post-norm, learn?**

# %%
guess = None  # a learning rate

# %%
post, pre = (arms[name]["by_rate"] for name in ("2017", "pre-norm"))
for name, by_rate in (("post-norm", post), ("pre-norm", pre)):
    print(f"{name:9}", "  ".join(f"{loss:.2f} at {rate}" for rate, loss in by_rate.items()))
reveal(guess, [float(rate) for rate in post if (post[rate] < 3) != (pre[rate] < 3)])

# %% [markdown]
# At 0.03 post-norm ends at 3.3 nats, no better than counting single letters, and so does each swap alone that keeps post-norm and Adam. Pre-norm hardly lowers the loss, but it still learns, as it does in lesson 07 from all initial weights.

# %% [markdown]
# ## What this does not show
#
# A model that uses 200,000 parameters for a token, and has read 400 batches, says nothing of the order of these ideas at a thousand times the size. Narang et al. 2021 tried dozens of such changes on a model of 223 million parameters. Most brought little; SwiGLU and RMSNorm were among those that helped.

# %% [markdown]
# ## Build it, break it
#
# - Write QK-norm: `attend(q, k, v, mask)` puts `q` and `k` through your `rms_norm`, then calls your grouped queries. Give it to `Components`, and train the block of 2017. Is it worse, as in the table?
# - Swap in `["rotary", "local and global"]` alone. Do two of the eight give most of the gain?
# - Train the two models above at 0.03. Which of them fails?

# %% [markdown]
# ## What to remember
#
# Positions in the score, an optimizer for matrices, and local layers lower the loss. Shared keys, local layers and a latent vector shrink the cache. Pre-norm learns at a rate at which the others fail. And what a part is worth depends on the parts around it.

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
# Narang et al. 2021 (the same question at scale); Touvron et al. 2023 (Llama 2: the first five in one model); DeepSeek-AI 2024 (the latent cache).
