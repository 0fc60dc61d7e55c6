# %% [markdown]
# # Why not batch norm?
#
# **30 minutes · an exploration of lesson 07 · needs `shakespeare` (5.4 MB)**
#
# Networks for images had a norm before Transformers did: **batch normalization** (Ioffe & Szegedy 2015). The formula is the one of layer norm, with the averages taken over other numbers. **Why does hardly any Transformer for text use it?** The answer is not that it learns worse here: with our learning rate it is ahead early.

# %%
import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import needs, shakespeare, word_vectors
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results

# %% [markdown]
# ## One column instead of one token
#
# Layer norm averages over the $d$ numbers of one token. Batch norm averages each of the $d$ columns over all real tokens of the batch:
#
# $$\mu_c = \frac{1}{|R|}\sum_{(b,i) \in R} x_{bic} \qquad \sigma_c^2 = \frac{1}{|R|}\sum_{(b,i) \in R} (x_{bic} - \mu_c)^2 \qquad R = \{\text{real tokens of the batch}\}$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
lengths = (4, 2, 3)
for x, name, role in ((0, "layer norm", "norm"), (6.6, "batch norm", "query")):
    for sentence, length in enumerate(lengths):
        at = (x + 0.9 * sentence, -1.9 * sentence)
        left, top = at[0] - 0.8, at[1] + 0.64
        diagram.matrix("", (4, 5), at, "plain", cell=0.32)
        for row in range(4):
            if row >= length:
                diagram.text("pad", (left - 0.3, top - 0.32 * (row + 0.5)), size=7, colour="0.5")
        if name == "layer norm" and sentence == 0:
            diagram.matrix("", (1, 5), (at[0], top - 0.48), role, cell=0.32)
        if name == "batch norm":
            diagram.matrix("", (length, 1), (left + 0.48, top - 0.16 * length), role, cell=0.32)
    diagram.text(name, (x, 1.6))
    diagram.text("$d$", (x, 0.95), size=9)
    diagram.text("$n$", (x - 1.1, 0.3), size=9, align="right")
diagram.text("one mean and variance\nfor each token", (2.0, 0.2), size=9, align="left")
diagram.text("one mean and variance\nfor each column", (8.6, 0.2), size=9, align="left")
diagram.show(
    "Three sentences of 4, 2 and 3 tokens, each a table of n rows and d columns, padded to 4 rows. "
    "Layer norm averages over one row of one sentence: the numbers of one token. Batch norm "
    "averages over one column through all three sentences, without the padding."
)

# %% [markdown]
# Sentences have unequal lengths, so a mask must leave the padding out.

# %%
# exercise: add_norm/batch_norm

# %%
check("add_norm/batch_norm", batch_norm)

# %%
batch_norm = mine("add_norm/batch_norm")

# %% [markdown]
# ## What a token depends on
#
# Take lines of Shakespeare in the word vectors of lesson 03. *Ring the alarum bell* is in two batches, with seven other lines each. **By how much does the normed vector of *ring* differ between the two, as a share of its L2 norm, under layer norm and under batch norm?**

# %%
guess = None  # two shares: (layer norm, batch norm)

# %%
needs("shakespeare")

# %% tags=["hide-input"]
from course_lib.masks import padding_mask

words = word_vectors.from_shakespeare()
play = map(shakespeare.words, shakespeare.complete_works().splitlines())
known = set(words.vocab)
lines = [" ".join(line) for line in play if line and known.issuperset(line)]
ones, zeros, ring = torch.ones(64), torch.zeros(64), "ring the alarum bell"


def batch_of(chosen, n=20):
    """Return the vectors of some lines, zeros after the last word of each, and their mask."""
    lengths = torch.tensor([len(line.split()) for line in chosen])
    x = torch.zeros(len(chosen), n, 64)
    for row, line in zip(x, chosen):
        row[: len(line.split())] = words(line)
    return x, padding_mask(lengths, n).squeeze(-2)


def draw_lines(seed, size=7):
    generator = torch.Generator().manual_seed(seed)
    return [lines[i] for i in torch.randint(len(lines), (size,), generator=generator)]


# %%
batches = [batch_of([ring, *draw_lines(seed)]) for seed in range(8)]
by_token = torch.stack([F.layer_norm(x, (64,))[0, 0] for x, _ in batches])
by_batch = torch.stack([batch_norm(x, ones, zeros, mask)[0, 0] for x, mask in batches])
changes = [((x[1:] - x[0]).norm(dim=-1) / x[0].norm()).mean() for x in (by_token, by_batch)]
reveal(guess, tuple(round(float(change), 2) for change in changes))
assert changes[0] < 1e-5 and changes[1] > 0.2

# %% [markdown]
# Under batch norm a token depends on the other lines of its batch. It also depends on *later* tokens of its own line, which a causal model must not see. Replace *bell*, the last word, and look at *ring*, the first. Then two traps: a mask forgotten, and a batch of one token.

# %% tags=["nbval-check-output"]
x, mask = batches[0]
later = x.clone()
later[0, 3] = words("king")[0]
before, after = (batch_norm(tokens, ones, zeros, mask)[0, 0] for tokens in (x, later))
print(f"bell replaced: ring changes by {(after - before).norm() / before.norm():.3f}")
padded, _ = batch_of([ring, *draw_lines(0)], n=60)
short, long = (batch_norm(tokens, ones, zeros)[0, 0] for tokens in (x, padded))
print(f"no mask, 40 more rows of padding: {(long - short).norm() / short.norm():.2f}")
one, mask = batch_of(["horse"], n=1)
alone = batch_norm(one, ones, zeros, mask)
print("a batch of one token:", alone.unique().tolist())

# %% [markdown]
# A token compared with itself alone comes out as 0, whatever it was. But a model that writes reads one text, token by token.
#
# ## At inference
#
# So batch norm keeps **running averages** of mean and variance while it trains, and uses those afterwards. A model with batch norm is *two* functions: one in training, another in use. For text Shen et al. 2020 report that the statistics of a batch "exhibit large fluctuations throughout training". How much harm do they do?

# %%
needs()

# %% tags=["hide-input"]
# given: instruments.deep_stack.RunningBatchNorm

# %% [markdown]
# We trained small encoders (two post-norm blocks, 16 lines of 16 characters a batch, three seeds) to fill in hidden characters, as BERT does. Afterwards they read held-out lines. **With layer norm, with batch norm and its running averages, or with batch norm and each batch's own statistics: which has the lowest loss, which the highest, after 500 steps?** And after 4,000?

# %%
guess = None  # from the lowest to the highest, after 500 steps

# %% tags=["nbval-check-output"]
kept = results.load("batch_norm")["figures"]
at = kept["sizes"].index(kept["alone"])
runs = kept["runs"]["batch norm"][at]
used = {f"own statistics, {n:2} lines": [run["batch"][str(n)] for run in runs] for n in (1, 16)}
used["running averages"] = [run["running"] for run in runs]
used["layer norm"] = [run["running"] for run in kept["runs"]["layer norm"][at]]
for name in ("layer norm", "batch norm"):
    used[f"{name}, 4,000 steps"] = [run["running"] for run in kept["patient"][name]]
for name, losses in used.items():
    print(f"{name:24}", *(f"{value:.2f}" for value in losses))
reveal(guess, "running averages, own statistics (16 lines), layer norm")

# %% tags=["hide-input"]
own, running, layer = (
    used[name] for name in ("own statistics, 16 lines", "running averages", "layer norm")
)
assert all(r < o < r + 0.03 for r, o in zip(running, own)) and max(own) < min(layer)
later = [sum(used[f"{name}, 4,000 steps"]) / 3 for name in ("layer norm", "batch norm")]
assert 0.02 < later[0] - later[1] < 0.1 < max(used["layer norm, 4,000 steps"]) - 2.3
assert min(used["own statistics,  1 lines"]) > max(layer)

# %% [markdown]
# After 500 steps batch norm is ahead in every seed. After 4,000 they cannot be told apart: in one seed of three layer norm is ahead. So with this one learning rate batch norm is ahead early, and on this task the loss is no reason to avoid it. With the statistics of a single line it loses everything it had won, which is why it needs running averages.
#
# ## The smaller the batch, the noisier
#
# Where do training and use differ? With batches of a single line, the running averages are no longer what the weights were trained with:

# %% tags=["nbval-check-output"]
for size, runs in zip(kept["sizes"], kept["runs"]["batch norm"]):
    gaps = [run["running"] - run["batch"][str(size)] for run in runs]
    print(f"trained with batches of {size:2}: in use higher by", *(f"{gap:5.2f}" for gap in gaps))
    assert (min(gaps) > 0.02) == (size == 1)

# %% [markdown]
# Shen et al.'s gap between training and use appears here only for batches of one line. Their models translate, with more layers, and sentences of all lengths; ours reads one author in lines of one length.

# %% [markdown]
# So the reasons against batch norm that these runs show are not about the loss. A token's result depends on other sentences and on later tokens; padding must be kept out; a single text has no batch; and training and use compute different functions. Layer norm has none of this, and is the same function always.
#
# Ioffe & Szegedy 2015 (batch norm); Shen et al. 2020 (batch norm and text).
