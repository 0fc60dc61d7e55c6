# %% [markdown]
# # What makes writing fast?
#
# **25 minutes · an exploration of lesson 09 · needs `smollm2` (93 MB)**
#
# A language model writes one token at a time, and each token takes a pass through all blocks. Your cache of lesson 09 lets it read each token once. **How much faster does that make it, and what else can be saved?** You predict the cache's gain from one straight line, see what it costs, decode weights of four bits by hand, and see where a translator's milliseconds go.

# %%
import torch
from course_lib.data import needs, store
from course_lib.exercises import mine, reveal
from course_lib.instruments import plots, results

# %% [markdown]
# ## From tokens to seconds
#
# A question has 36 tokens with its chat template, and SmolLM2 answers it by 32. **How many tokens pass through the blocks, without the cache and with it?**

# %%
needs("smollm2")

# %%
guess = None  # (without, with)

# %%
from course_lib.pretrained import smollm2

model = smollm2.load(cache=mine("key_value_cache/step"))


# %% tags=["once"]
def tokens_read(cache):
    seen = []
    hook = model.words.register_forward_hook(lambda _, args, out: seen.append(len(args[0])))
    text = "".join(model.answer("Why is the sky blue?", 32, cache))
    hook.remove()
    return sum(seen), text


(without, plain_text), (fewer, cached_text) = tokens_read(False), tokens_read(True)
reveal(guess, (without, fewer))
assert (without, fewer) == (sum(range(36, 68)), 36 + 31) and plain_text == cached_text

# %% [markdown]
# 1,648 against 67, for the same text: 25 times fewer. **How many times faster is the writing?**

# %%
needs()

# %%
guess = None  # a factor

# %% tags=["hide-input"]
kept = results.load("passes")["figures"]
middle = {name: sorted(rounds)[1] for name, rounds in kept["writing"].items()}
faster = middle["without"] / middle["with the cache"]
reveal(guess, round(faster, 1))
assert 3.5 < faster < 4.1

# %% [markdown]
# (Measured once, in processor time on one thread: [research/results/passes.json](../../research/results/passes.json).) Much less than 25. To see why, time one pass over 1, 8, 36, 68 and 128 tokens:

# %% tags=["hide-input"]
lengths = [int(n) for n in kept["passes"]]
seconds = [sorted(rounds)[1] for rounds in kept["passes"].values()]
slope, intercept = (
    x.item()
    for x in torch.linalg.lstsq(
        torch.tensor([[float(n), 1.0] for n in lengths]), torch.tensor(seconds)
    ).solution
)
title = "A pass costs a fixed part and a part for each token"
figure, ax = plots.axes(title, "tokens in one pass", "milliseconds", size=(7, 3.6))
for n, rounds in kept["passes"].items():
    ax.plot([int(n)] * 3, [1000 * x for x in rounds], "o", color=plots.COLOURS[0], markersize=5)
ax.plot([0, 130], [1000 * intercept, 1000 * (intercept + 130 * slope)], color=plots.COLOURS[1])
text = f"{1000 * intercept:.0f} ms + {1000 * slope:.1f} ms for each token"
ax.text(60, 1000 * (intercept + 60 * slope) * 0.72, text, color=plots.COLOURS[1])
ax.set(ylim=(0, None), xlim=(0, 135))
plots.show(
    figure,
    "Milliseconds of one pass over 1, 8, 36, 68 and 128 tokens, three rounds each: 33, 54, 117, 180 "
    "and 312. A straight line, 35 ms plus 2.2 ms for each token, passes near all of them.",
)
print(text)
assert 0.033 < intercept < 0.036 and 0.0021 < slope < 0.0023

# %% [markdown]
# A line, but not one through zero: a pass over one token costs 33 ms, a pass over 36 tokens only three and a half times that. Both ways of writing need 32 passes. The cache saves tokens, so it saves only the second part:
#
# $$\frac{32\,a + 1648\,b}{32\,a + 67\,b} \qquad a = 35\ \text{ms}, \quad b = 2.2\ \text{ms}$$


# %% tags=["hide-input"]
import numpy as np


def by_passes(read):
    """Return the seconds of passes over so many tokens, between those that were timed."""
    return np.interp(read, lengths, seconds).sum().item()


alone = {"without": by_passes(range(36, 68)), "with the cache": by_passes([36] + [1] * 31)}
predicted = alone["without"] / alone["with the cache"]
reading = sorted(kept["reading"])[1]
print(f"by single passes: {predicted:.1f} times faster; measured: {faster:.1f} times")
more = [1000 * (middle[name] - alone[name]) / 32 for name in alone]
print("a pass took longer in writing:", " and ".join(f"{x:.0f} ms" for x in more))
print(f"reading {kept['bytes'] / 1e6:.0f} MB once: {1000 * reading:.0f} ms", end="")
print(f" of the {1000 * seconds[0]:.0f} ms of a pass over one token")
assert 4.1 < predicted < 4.3 and 5 < more[1] < more[0] < 12 and 0.3 < reading / seconds[0] < 0.45

# %% [markdown]
# The line predicts 3.7 times. The timed passes themselves give 4.2, because one token takes less than the line says. In writing, each pass took some milliseconds more, and 3.8 is what is left.

# %% [markdown]
# And what is in the fixed part? A pass has to read all weights of the blocks, whether it is over one token or over fifty. Reading alone, adding up every matrix once, takes about a third as long as a pass over one token. Work that waits for memory is called **memory-bound**: on this processor, a pass over one token is that in part. Lesson 15 makes use of it.

# %% [markdown]
# ## What the cache costs
#
# The cache trades time for memory: two vectors for each token, key head and block. **How many numbers is that for each token, with 30 blocks and 9 key heads of $d_k = d_v = 64$?** SmolLM2 has 3 key heads; below are 9, 3 and 1.

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
kept_by = {groups: 2 * 30 * groups * 64 for groups in (9, 3, 1)}
reveal(guess, kept_by[9])
for groups, numbers in kept_by.items():
    print(f"{groups} key heads: {numbers:6,} a token, {4 * 8192 * numbers / 1e6:5.0f} MB for 8,192")

# %% [markdown]
# In float32 that is over a gigabyte for one text of 8,192 tokens, twice as much as the 540 MB of the model's own parameters. With the three key heads of lesson 09's grouped queries it is a third. That is what they are for: every query head still meets every key, so the scores cost as many multiplications as before.

# %% [markdown]
# ## Four bits a weight
#
# Each pass reads all weights, so smaller ones could help, too. SmolLM2 takes 540 MB in float32; the file has 98. In the format Q4_1 a matrix is cut, row by row, into blocks of 32 weights. A block keeps its smallest weight and a step, each in 16 bits, and for every weight the number of steps above the smallest, from 0 to 15, in four bits:
#
# $$w_i \approx w_{min} + q_i \cdot step \qquad q_i \in \{0, \dots, 15\}, \quad i = 1, \dots, 32$$

# %%
needs("smollm2")

# %%
from gguf import GGUFReader

from course_lib.pretrained import quantised

file = GGUFReader(store.unpacked("smollm2", smollm2.MEMBER))
queries = next(tensor for tensor in file.tensors if tensor.name == "blk.0.attn_q.weight")
block = torch.from_numpy(queries.data.reshape(-1, 20)[0].copy())
print(f"{len(block) * 8 / 32:g} bits a weight:", block.tolist())
assert len(block) * 8 / 32 == 5

# %% [markdown]
# So it is *five* bits, step and smallest weight included: twenty bytes for the first 32 weights of the first query matrix. Decode them by hand. Step and smallest weight are float16; then each byte holds two numbers, $q_i$ in its low half and $q_{i+16}$ in its high half.

# %%
step, least = block[:4].view(torch.float16).float().tolist()
steps = [byte % 16 for byte in block[4:].tolist()] + [byte // 16 for byte in block[4:].tolist()]
weights = torch.tensor([least + step * number for number in steps])
print(f"step {step:.4f}, smallest {least:.4f}; steps {steps[:6]} ...")
print([round(weight, 3) for weight in weights[:6].tolist()], "...")
assert torch.allclose(weights, quantised.q4_1(block[None])[0])

# %% [markdown]
# Rounding to the nearest step costs at most half a step. The course decodes all weights once, when it loads the model, and then computes in float32, so it gains space on the disk and no time. Engines such as llama.cpp compute with the small weights, and read less memory in each pass.
#
# We have not measured what the rounding costs in loss: that takes the original weights, which the course does not fetch.

# %%
needs()

# %% [markdown]
# ## Why is our translator ten times slower than its own engine?
#
# Lesson 09's translator comes in a package with an engine of its own, for the same weights. Written as lesson 08 writes, the whole translation through the decoder for each token, ours needs more than ten times as long for a token as the engine, in a sentence of 45 tokens. **How many times as long is it if each token is read once?**

# %%
guess = None  # a factor

# %% tags=["hide-input"]
from statistics import median

from course_lib.instruments.pictures import writing

kept = results.load("translation_speed")["figures"]
again, once, fused, eight, engine, products = (
    median(rounds) for rounds in kept["Intel Xeon"]["long"]["milliseconds"].values()
)
reveal(guess, round(once / engine, 1))
assert 10 < again / engine < 15

# %% [markdown]
# There is less to keep than for SmolLM2. The recurrence in the place of self-attention carries **one vector a block**, however long the translation is; the keys and values of cross-attention belong to the source, so they are computed for the first token alone; and only the last token needs scores of 32,000 words. We measured each step on processors of two makers:

# %%
steps = {
    "each token reads the whole translation again": "read again for each token",
    "the course's `translate`: each token is read once": "each token read once",
    "the same, with fused parts by keyword": "fused softmax and norm",
    "the matrix products of these steps alone": "its matrix products alone",
    "the same, its words in 8 bits by keyword": "fused, the words in 8 bits",
    "the package's own engine, 8 bits": "the engine, 8 bits",
}
ladders = {
    processor: {step: median(x["long"]["milliseconds"][name]) for name, step in steps.items()}
    for processor, x in kept.items()
}
writing.ladder(ladders, "On one thread: the engine stays three to five times as fast")

# %% [markdown]
# The fourth bar is a limit: a token meets 10 million weights of the decoder, 41 MB in float32, and multiplying by them alone takes that long. Whatever we save elsewhere, this is left, unless the weights get smaller, or the products faster. How near do torch's products come to the time in which memory can be read? With SmolLM2's matrices:

# %%
writers = results.load("generation_speed")["figures"]["AMD EPYC"]["of the limit"]
for name in ("llama.cpp, float32", "a vector times each float32 matrix, and no more"):
    print(f"{name} on the AMD: {writers[name]:.0%} of the speed of reading")

# %% [markdown]
# torch multiplies with a library of Intel's, and on the AMD it leaves half of the memory's speed unused. A race has a winner for each machine, so run it on yours.
#
# Four fifths of the translator's weights are the vectors of its 32,000 words.

# %% [markdown]
# In the file they have 8 bits: a matrix is a step $s$ times whole numbers $Q$ from −127 to 127. **Can we multiply by these, and write the same text?** Then the state has to become whole numbers too. One digit of 8 bits is too coarse for it; two are enough:
#
# $$x \approx s_x \left(q_1 + \frac{q_2}{254}\right) \qquad x W^T = s_x\, s \left(q_1 Q^T + \frac{q_2 Q^T}{254}\right)$$
#
# $Q$ is read once for both digits, and is a quarter of the bytes. For our model that is one keyword, `linear=EightBits()`, and the fifth bar.

# %% tags=["nbval-check-output"]
from course_lib.pretrained.quantised import EightBits

weight = 0.01 * torch.randint(-127, 128, (6, 256), generator=torch.Generator().manual_seed(0))
x, bias = torch.linspace(-1, 1, 256)[None], torch.zeros(6)
one_digit = (x * 127).round() / 127 @ weight.T
error = [(y - x @ weight.T).abs().max().item() for y in (one_digit, EightBits()(x, weight, bias))]
print(f"largest error: {error[0]:.2f} by one digit, {error[1]:.4f} by two")
assert error[1] < error[0] / 100

# %% [markdown]
# Between the last two bars, bytes are the smaller part: a fifth of our weights are still in float32. Besides, a step of ours is more than a hundred operations of torch, started one by one from Python; what they cost is not measured. (Medians of processor time: [research/results/translation_speed.json](../../research/results/translation_speed.json). All write the same text, but for the fourth, which writes none.)

# %%
needs()

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | key-value cache | $K_t = [K_{t-1}; k_t], \quad o_t = \mathrm{softmax}(q_t K_t^T / \sqrt{d_k})\, V_t$ |
# | tokens read, $m$ after a prompt of $p$ | $p + m - 1$ with the cache, $\sum_{i=0}^{m-1} (p + i)$ without |
# | seconds of a pass, $n \le 128$ | near $a + b\,n$: the cache saves $b$'s part |
# | size of the cache | $layers \cdot G \cdot (d_k + d_v)$ numbers for each token |
#
# <details><summary>A model has 32 blocks, 32 query heads, 8 key heads and d_k = d_v = 128. How large is its cache for 8,192 tokens at two bytes a number?</summary>
#
# 32 · 8 · (128 + 128) = 65,536 numbers a token, so 65,536 · 8,192 · 2 bytes = 1.07 GB. With 32 key heads it would be four times that.
# </details>
#
# Shazeer 2019 (the cache, and shared keys); Ainslie et al. 2023 (grouped queries); Allal et al. 2025 (SmolLM2). Titles and links: docs/REFERENCES.md.
