# %% [markdown]
# # From 2017 to 2026 in ten swaps
#
# **25 minutes · an exploration of lesson 15 · needs `shakespeare` (5.4 MB)**
#
# Open the description of a large model of 2026, and hardly a part of the block of 2017 is left. You have built nearly all the new parts, each in a lesson of its own. **What does each of them buy, alone and together?** Here they go into your own block, one by one.

# %%
import torch
from course_lib.data import characters, needs
from course_lib.exercises import mine, reveal
from course_lib.instruments import results, training
from course_lib.instruments.pictures import memories as pictures
from course_lib.instruments.ten_swaps import ALL, SIZES, Components, swapped
from torch.nn import functional as F

# %%
needs("shakespeare")

# %% [markdown]
# ## Ten swaps
#
# | | in 2017 | later | you built it in |
# |-:|:-|:-|:-|
# | 1 | add, then normalise | **pre-norm**: normalise, read, add (Xiong et al. 2020) | lesson 07 |
# | 2 | layer norm | **RMSNorm**, which leaves the mean alone (Zhang & Sennrich 2019) | [norms](07_norms.ipynb) |
# | 3 | two matrices and a ReLU | **SwiGLU**: three, one of them a gate (Shazeer 2020) | lesson 09 |
# | 4 | sinusoids, added once | **rotary**: queries and keys are turned (Su et al. 2021) | lesson 04 |
# | 5 | a key and a value for each head | **grouped queries**: two heads share theirs (Ainslie et al. 2023) | lesson 09 |
# | 6 | scores of any size | **QK-norm**: queries and keys are normalised (Henry et al. 2020) | below |
# | 7 | every layer sees the whole text | **local and global**: three of four see the last 16 tokens (Beltagy et al. 2020) | lesson 13 |
# | 8 | keys and values are kept | **latent cache**: one short vector is kept, and both are made of it (DeepSeek-AI 2024) | below |
# | 9 | one network for all tokens | **mixture**: eight of half the width, of which a token uses two (Shazeer et al. 2017) | [experts](12_experts.ipynb) |
# | 10 | Adam | **Muon**, for the matrices (Jordan et al. 2024) | [optimizers](10_optimizers.ipynb) |
#
# Two of them are new, and take a line each. Before the scores, `q` and `k` go through your `rms_norm`. And $W_K$ and $W_V$ become two steps, $x \to c \to k, v$, with a vector $c$ of 32 numbers between them, which is all that a cache must keep.

# %% [markdown]
# ## Your block, twice
#
# Both models below consist of functions and classes that you have passed. Both read the same 400 batches of Shakespeare, by the same optimizer at the same learning rate; the second has swaps 1 to 4 and 6 to 9. (The eighth takes the fifth's place, and the tenth waits.)

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
claim = "the block of 2026 is at least a fifth of a nat ahead"
training.expect(claim, lost["2026"] < lost["2017"] - 0.2, came, *models.values())
