# %% [markdown]
# # 14 · Low-rank, hashed and linear attention
#
# **130 minutes, of which 80 are the core path · after lesson 13 · needs `shakespeare` (5.4 MB) and `minilm` (84 MB)**
#
# Lesson 13 left pairs out by their places. Here are the other ideas: a shorter list of keys, a hash that finds the pairs that matter, a sum in the place of the softmax, and layers that keep nothing. At the end stand 65,536 words in one piece, on your machine.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training

# %%
from functools import partial
from time import perf_counter
from course_lib.data import needs, shakespeare
from course_lib.efficient import bigbird, linear, linformer, lsh, window

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
causal_mask, leaks_future = mine("masks/causal"), mine("masks/leaks_future")
MultiHeadAttention = mine("multi_head/attention")

# %% [markdown]
# Four helpers of lesson 13: how long a pass takes, what autograd keeps for the way back, words drawn at random, and whether two forms agree in results and gradients.


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


# %%
def largest_difference(ours, theirs, *leaves):
    cotangent = torch.randn_like(theirs)
    sides = [(y, *torch.autograd.grad(y, leaves, cotangent)) for y in (ours, theirs)]
    return max((one - other).abs().max().item() for one, other in zip(*sides))


q, k, v = (words(2, 50, 8, seed=i, dtype=torch.float64) for i in range(3))

# %% [markdown]
# ## Fewer keys
#
# Linformer (Wang et al. 2020a) keeps all words and shortens the *list*: it mixes n keys into k mixtures, n values alike, and every query looks at the k. The matrix of scores is n × k. No pair is left out, and no pair is seen by itself.

# %%
# exercise: efficient/linformer

# %%
check("efficient/linformer", linformer_attention)

# %%
linformer_attention = mine("efficient/linformer")

# %% [markdown]
# If the mixtures *are* the words, it must be dense attention. With k < n it is not, and nobody claims so: the matrices e and f are learned.

# %%
e = torch.eye(50, dtype=torch.float64)
dense = scaled_dot_product_attention(q, k, v)
found = largest_difference(linformer_attention(q, k, v, e, e), dense, q, k, v)
print(f"Linformer with identities and dense attention differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# **Is there a causal Linformer?** Feed one to `leaks_future` of lesson 05: it lists the positions that move when a later word moves.

# %%
guess = None  # yes or no

# %%
e = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
leaks = leaks_future(lambda x: linformer_attention(x, x, x, e, e), torch.randn(6, 4))
reveal(guess, f"no: all that have a future see it, {leaks}")
assert leaks == [0, 1, 2, 3, 4]

# %% [markdown]
# Each mixture holds words from the whole text. A mask could hide a mixture from a word, but the first word would have to be shown one that holds no other.
#
# ## Is the rank low?
#
# The paper's argument: a matrix of attention weights is nearly of low rank, so k ≪ n mixtures suffice. It is mostly quoted. We have a real encoder: MiniLM of lesson 09. Let it read 256 tokens of *Julius Caesar*, and keep the weights of its six layers and twelve heads.

# %%
needs("minilm", "shakespeare")

# %%
from course_lib.pretrained import minilm
from course_lib.instruments.recording import record_weights

reader = minilm.load()
attentions = [block.attention.sublayer.attention for block in reader.blocks]
play = " ".join(shakespeare.works()["Julius Caesar"][20_000:24_000].split())
tokens = torch.tensor([reader.tokenizer.encode(play).ids[:256]])


# %%
def weights_of(layer):
    with torch.no_grad(), record_weights(layer) as seen:
        reader(tokens)
    return seen[0][0]


weights = torch.stack([weights_of(layer) for layer in attentions])
strengths = torch.linalg.svdvals(weights)
cumulated = strengths.cumsum(-1) / strengths.sum(-1, keepdim=True)

# %% [markdown]
# The singular values say how much of a matrix its best approximation of rank k holds. The paper found most of their sum in the first 128 of 512. **Here n is 256. How many are needed for 90 % of the sum, on average over the 72 heads: 10, 40, 80 or 160?**

# %%
guess = None  # a number

# %%
needed = (cumulated < 0.9).sum(-1) + 1
reveal(guess, round(needed.float().mean().item()))
print("by layer:", [round(number) for number in needed.float().mean(-1).tolist()])
print("fewest and most of any head:", needed.min().item(), needed.max().item())
assert 40 < needed.float().mean() < 128 and needed.min() < 30 and needed.max() > 150

# %%
title = "The last layer's weights are of low rank, other layers' less so"
figure, ax = plots.axes(title, "singular values, the largest first", "share of their sum")
for layer, line in enumerate(cumulated.mean(1)):
    ax.plot(range(1, 257), line, color=plots.plt.cm.cividis(layer / 5), label=f"layer {layer + 1}")
ax.axhline(0.9, color="0.6", linestyle=":")
ax.legend(loc="lower right")
plots.show(figure, "Cumulated singular values of six layers: all rise fast, the last one fastest.")
assert needed.float().mean(-1).argmin() == 5

# %% [markdown]
# So there is something in the argument. Now use it: in all six layers, replace the weights by their best approximation of rank 64, a quarter of n. And do what Linformer does *before* it has learned: mix by random projections of the same size, or by plain means of four neighbours. **How near, by cosine, do the states come to the exact ones?**

# %%
guess = None  # three cosines


# %%
def best_of_rank(rank):
    def rule(q, k, v, mask):
        u, s, vh = torch.linalg.svd(softmax(dot_scores(q, k) / q.shape[-1] ** 0.5))
        return (u[..., :rank] * s[..., None, :rank]) @ (vh[..., :rank, :] @ v)

    return rule


def mixed_by(e):
    return lambda q, k, v, mask: linformer_attention(q, k, v, e, e)


random = torch.randn(256, 64, generator=torch.Generator().manual_seed(0)) / 64**0.5
means = repeat(torch.eye(64) / 4, "mixture k -> (mixture word) k", word=4)


# %%
@torch.no_grad()
def states(rule):
    for layer in attentions:
        layer.rule = rule
    return reader(tokens)


# %%
exact = states(scaled_dot_product_attention)
rules = {"best of rank 64": best_of_rank(64), "random": mixed_by(random), "means": mixed_by(means)}
near = {
    name: torch.cosine_similarity(states(rule), exact, dim=-1).mean().item()
    for name, rule in rules.items()
}
states(scaled_dot_product_attention)
reveal(guess, {name: round(value, 2) for name, value in near.items()})
assert near["best of rank 64"] > 0.9 and near["random"] < 0.3 and near["means"] < 0.9

# %% [markdown]
# A good approximation of low rank *exists*, and is another one for each text; to find it you would have to make the square first. Fixed mixtures of a trained model's words destroy it. What Linformer does is to *train* with them from the start, so that the weights come to fit what the mixtures can carry. The rank argument says that this may work, no more.

# %% [markdown]
# ## Summaries of neighbours
#
# A plainer way to shorten the list stands in Liu et al. 2018, who wrote Wikipedia articles from long sources: a convolution, as in lesson 01, but with steps of `stride` words. Three words become one state, and attention goes to the states.

# %%
needs()

# %%
# exercise: efficient/memory_compressed

# %%
check("efficient/memory_compressed", compress)

# %%
compress = mine("efficient/memory_compressed")

# %% [markdown]
# **By which factor do a stride of three and a width of three lower the number of scores, for 12 words? And is the result linear in n?**

# %%
guess = None  # a factor, and yes or no

# %%
third = torch.eye(8, dtype=torch.float64).expand(3, 8, 8) / 3
states = compress(k[:, :12], third, 3)
reveal(guess, f"{12 / states.shape[-2]:.0f}, and no: a third of a square is a square")
assert torch.allclose(states, reduce(k[:, :12], "b (state word) d -> b state d", "mean", word=3))

# %% [markdown]
# ## Look where it matters
#
# Softmax gives nearly all weight to the few keys that fit the query best. If we *knew* them, we could leave out the rest. Reformer (Kitaev et al. 2020) guesses them by hashing: draw a few directions at random, and put each word into the bucket of the direction, or its opposite, in which it reaches farthest. Words that point alike tend to share a bucket. (L3 has the hash "replace" the dot product. It does not: it chooses the pairs whose dot products are taken.)

# %%
# exercise: efficient/lsh_buckets

# %%
check("efficient/lsh_buckets", lsh_buckets)

# %%
lsh_buckets = mine("efficient/lsh_buckets")

# %%
from course_lib.efficient.lsh import draw_rotations, lsh_attention_in_rounds

plane, rotations = words(400, 2).detach(), F.normalize(draw_rotations(2, 6, seed=3), dim=0)
title = "A bucket is a slice of directions"
figure, ax = plots.axes(title, "first number of a word", "second number", size=(5.4, 4.4))
ax.scatter(*plane.T, c=[plots.COLOURS[b] for b in lsh_buckets(plane, rotations)], s=14)
for direction in torch.cat([rotations, -rotations], dim=1).T:
    ax.annotate("", 3 * direction / direction.norm(), (0, 0), arrowprops={"arrowstyle": "-|>"})
ax.set_aspect(1)
plots.show(figure, "Points of the plane in six colours: one slice for each of six arrows.")
assert torch.equal(lsh_buckets(5 * plane, rotations), lsh_buckets(plane, rotations))

# %% [markdown]
# For this, queries and keys must live in one space: Reformer uses one matrix for both, and brings the keys to length 1. A word would then always fit itself best, so it may look at itself only if there is no one else.
#
# Words of one bucket stand anywhere in the text. The trick is to *sort*: by bucket, and within a bucket by place.

# %%
meaning = 3 * F.one_hot(torch.arange(64) * 5 % 7 % 4, 4) + 0.3 * words(64, 4).detach()
buckets = lsh_buckets(meaning, draw_rotations(4, 8, seed=0))
order = buckets.argsort(stable=True)
same = buckets.unsqueeze(-1) == buckets

title = "In the text, the pairs lie everywhere; sorted, they lie along the diagonal"
figure, panels = plots.panels(title, ["words in their order", "sorted by bucket"], size=(8, 3.8))
for ax, mask, name in zip(panels, (same, same[order][:, order]), ("text", "sorted text")):
    ax.imshow(mask)
    ax.set(xlabel=f"key, {name}", ylabel=f"query, {name}", xticks=[], yticks=[])
plots.show(figure, "Two masks of the same pairs: scattered, and as blocks along the diagonal.")

# %% [markdown]
# Buckets are of unequal size, and computers like equal ones. So the sorted text is cut into chunks of equal length; each word looks at its bucket within its own chunk and the one before. That is the whole of LSH attention.

# %%
# exercise: efficient/lsh

# %%
check("efficient/lsh", lsh_attention)

# %%
lsh_attention = mine("efficient/lsh")

# %% [markdown]
# The slow form, to check it by: dense attention under a mask that says bucket, chunk, and not oneself.

# %%
qk = words(64, 4, dtype=torch.float64)
value = words(64, 3, seed=1, dtype=torch.float64)
number = order.argsort() // 16
back = number.unsqueeze(-1) - number
sees = same & (back >= 0) & (back <= 1) & ~torch.eye(64, dtype=torch.bool)
lonely = ~sees.any(-1, keepdim=True)
under_mask = scaled_dot_product_attention(qk, F.normalize(qk, dim=-1), value, sees)
under_mask = torch.where(lonely, value, under_mask)
found = largest_difference(lsh_attention(qk, value, buckets, 16), under_mask, qk, value)
print(f"LSH and dense attention under its mask differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# What it gives up: two words that point alike may still fall on two sides of a border. So hash again, with other directions; a pair counts if any round shows it. **Two words with a cosine of 0.9 share one of 16 buckets with probability p. Which share of such pairs meets at least once in eight rounds?**

# %%
guess = None  # a formula in p

# %%
one = F.normalize(words(4000, 16).detach(), dim=-1)
other = torch.randn(4000, 16, generator=torch.Generator().manual_seed(1))
other = F.normalize(other - (other * one).sum(-1, keepdim=True) * one, dim=-1)
like = 0.9 * one + 0.19**0.5 * other
rounds = [draw_rotations(16, 16, seed) for seed in range(8)]
meet = torch.stack([lsh_buckets(one, r) == lsh_buckets(like, r) for r in rounds])
met = meet.cummax(0).values.float().mean(-1)
p = meet.float().mean().item()
reveal(guess, f"1 - (1 - p)^8 = {1 - (1 - p) ** 8:.3f}; p is {p:.2f}; counted: {met[-1]:.3f}")
assert abs(met[-1] - (1 - (1 - p) ** 8)) < 0.02 and met[-1] > 0.95 and p < 0.75

# %% [markdown]
# Each round costs as much as the first. `lsh_attention_in_rounds` of the library joins them into one softmax: dense attention under the union of all rounds' masks.

# %% [markdown]
# ## No softmax at all
#
# One more idea, which the lectures do not name (Katharopoulos et al. 2020). Softmax stands between Q Kᵀ and V and forbids to move the brackets. Replace it by a product of positive features, φ(q)·φ(k), and Σ_j φ(q)·φ(k_j) v_j becomes φ(q) (Σ_j φ(k_j) v_jᵀ): sum up all words once, in a matrix of d × d, and let every query read the sum.

# %%
# exercise: efficient/linear

# %%
check("efficient/linear", linear_attention)

# %%
linear_attention = mine("efficient/linear")


# %%
def masked_form(q, k, v, mask):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    weights = (q @ k.mT) * mask
    return weights / weights.sum(-1, keepdim=True) @ v


slow = masked_form(q, k, v, causal_mask(50))
found = largest_difference(linear_attention(q, k, v, causal=True), slow, q, k, v)
print(f"the running sum and the masked square differ by {found:.0e}")
assert found < 1e-10

# %% [markdown]
# Causal, it is a sum that grows word by word: a *recurrent* network, with a state of d × d, whose training needs no waiting. The price is sharpness. **A hundred random keys of 16 numbers; a query is four times one of them. How much weight does that key get from softmax, and how much from the features?**

# %%
guess = None  # two shares

# %%
keys = words(100, 16).detach()
sharp = softmax(dot_scores(4 * keys, keys) / 4).diagonal().mean().item()
features = F.elu(torch.cat([4 * keys, keys])) + 1
soft = features[:100] @ features[100:].T
soft = (soft / soft.sum(-1, keepdim=True)).diagonal().mean().item()
reveal(guess, (round(sharp, 2), round(soft, 2)))
assert sharp > 0.8 and soft < 0.1

# %% [markdown]
# ## Nothing kept: layers that run backwards
#
# Even with a cheap attention, training keeps what each layer has read, for its gradients: n d numbers a layer, and there are many layers. Reformer's second half (after Gomez et al. 2017) keeps *nothing*: each word is cut into halves that change each other in turn, so that a block's input can be computed back from its output.

# %%
# given: efficient.reversible.halves

# %%
# exercise: efficient/reversible

# %%
check("efficient/reversible", ReversibleBlock)

# %%
ReversibleBlock = mine("efficient/reversible")

# %% [markdown]
# `ReversibleSequence` of the library runs such blocks and keeps the last output alone; on the way back it undoes block after block and takes the gradients of each. Beside it the same blocks in plain autograd. **From 2 blocks to 16: by which factor do the kept bytes grow, for each?** The parameters are not counted, they are there anyway.

# %%
guess = None  # (plain, reversible)

# %%
from course_lib.efficient.reversible import ReversibleSequence


def stack(depth, size=32):
    def layer():
        return nn.Sequential(nn.Linear(size, 4 * size), nn.ReLU(), nn.Linear(4 * size, size))

    with training.seeded(0):
        return [ReversibleBlock(layer(), layer()) for _ in range(depth)]


def bytes_kept(depth, kind):
    model, x = kind(stack(depth)), words(512, 64)
    return kept(lambda: model(x), besides=model.parameters())


# %% tags=["nbval-check-output"]
depths, kinds = (
    [2, 4, 8, 16],
    {"plain": lambda b: nn.Sequential(*b), "reversible": ReversibleSequence},
)
flat = {name: [bytes_kept(depth, kind) for depth in depths] for name, kind in kinds.items()}
print(flat)
reveal(guess, tuple(line[-1] / line[0] for line in flat.values()))
assert set(flat["reversible"]) == {512 * 64 * 4}

# %%
figure, ax = plots.axes(
    "Reversible blocks keep one output, however many there are", "blocks", "kept, MB"
)
for name, line in flat.items():
    ax.plot(depths, [size / 1e6 for size in line], "o-", label=name)
ax.set(xticks=depths)
ax.legend()
plots.show(figure, "Kept megabytes against depth: plain rises in a line, reversible stays flat.")

# %% [markdown]
# Flat to the byte: 512 words of 64 numbers, four bytes each. And the gradients?

# %%
blocks, x = stack(16), words(512, 64)
plain, reversible = nn.Sequential(*blocks)(x), ReversibleSequence(blocks)(x)
weight = blocks[0].f[0].weight
found = largest_difference(reversible, plain, x, weight)
print(f"results and gradients differ by {found:.0e}")
assert found < 1e-2 * plain.abs().max()

# %% [markdown]
# The price is time: each block is computed once more on the way back. And rounding, which undoing does not undo: in float32 the last digits differ.

# %% [markdown]
# ## In your blocks
#
# Each variant's module has a `rule`, which `MultiHeadAttention` takes in place of dense attention: `window.rule`, `lsh.rule`, and so on. They fill up a text to whole blocks and cut it again, hide padding, and refuse a mask that they cannot honour. **Which of these will refuse a causal mask: window, BigBird, Linformer, LSH, linear?**

# %%
guess = None  # a list of names

# %%
rules = {
    "window": partial(window.rule, width=9),
    "BigBird": partial(bigbird.rule, block=4, window=3, global_blocks=1, random_blocks=1),
    "Linformer": linformer.Linformer(21, 5),
    "LSH": partial(lsh.rule, buckets=4, chunk=8),
    "linear": linear.rule,
}

# %%
x, refused = words(21, 12), []
for name, rule in rules.items():
    layer = (lsh.SharedQueryKey if name == "LSH" else MultiHeadAttention)(12, 3, rule)
    try:
        layer(x, x, x, causal_mask(21))
    except ValueError as error:
        refused.append(name)
        print(name, "says:", error)
reveal(guess, refused)
assert refused == ["BigBird", "Linformer"]

# %% [markdown]
# ## Sixty-five thousand words
#
# The lectures' question, at last. The first 65,536 words of the complete Shakespeare in one context: a layer of d_model = 256 with four heads, forward and backward. **How many GiB would dense attention's weights alone take?**

# %%
guess = None  # GiB

# %%
needs("shakespeare")

# %%
n = 65_536
text = shakespeare.words(shakespeare.complete_works())[:n]
number = {word: i for i, word in enumerate(dict.fromkeys(text))}
with training.seeded(0):
    embedding = nn.Embedding(len(number), 256)
x = embedding(torch.tensor([number[word] for word in text])).detach().requires_grad_()
print(" ".join(text[:7]), "...", " ".join(text[-7:]))
reveal(guess, 4 * n**2 * 4 / 2**30)


# %%
def long_layer(rule):
    with training.seeded(0):
        layer = MultiHeadAttention(256, 4, rule)
    x.grad = None
    elapsed = seconds(lambda: layer(x, x, x), times=1)
    memory = kept(lambda: layer(x, x, x), besides=[x, *layer.parameters()])
    assert x.grad.isfinite().all() and x.grad[[0, -1]].any(-1).all()
    return elapsed, memory


# %%
for name, rule in {"window": partial(window.rule, width=256), "linear": linear.rule}.items():
    elapsed, memory = long_layer(rule)
    print(f"{name}: {elapsed:.1f} s, {memory / 2**20:.0f} MiB kept")
    assert memory < 2**30

# %% [markdown]
# Every pair of the window, exactly, and every gradient. What dense attention would take can be computed: its time grows with the square, from what you measured above.

# %%
dense = partial(scaled_dot_product_attention, *[words(4, 2048, 64)] * 3)
dense_seconds = (n / 2048) ** 2 * seconds(dense)
print(f"dense: about {dense_seconds:.0f} s, and {4 * n**2 * 4 / 2**30:.0f} GiB of weights")
assert 4 * n**2 * 4 == 64 * 2**30

# %% [markdown]
# The other variants, and the packages that a user would pick, are compared in RESULTS.md: time and peak memory up to this length.
#
# ## Break it
#
# A causal LSH layer looks at no later word: its mask says so. **Does a later word have any influence on an earlier one?**

# %%
guess = None  # yes or no

# %%
needs()
with training.seeded(0):
    rule = partial(lsh.rule, buckets=4, chunk=4, causal=True)
    layer = lsh.SharedQueryKey(12, 3, rule)
x = words(32, 12)
layer(x, x, x)[:16].sum().backward()
looked_at, x = x.grad[16:], x.detach()
leaks = leaks_future(lambda x: layer(x, x, x), x)
reveal(guess, f"yes, on the words {leaks}")
assert not looked_at.any() and leaks

# %% [markdown]
# No gradient flows from later words, and still they leak: they take part in the *sorting*, so they move the borders of chunks, and with them whom an earlier word meets. A model that writes word by word never has those later words, and meets others than it did in training. The window and the running sum have no such trouble.

# %% [markdown]
# - Run a stack of 16 reversible blocks over 65,536 words.

# %% [markdown]
# ## What you take along
#
# Mixtures blur; hashing can miss, and more rounds miss less; a running sum forgets sharpness; reversible layers keep nothing. None is best: ask what your text needs, and measure.

# %% [markdown]
# Next: lesson 15, what comes after. Sources: Wang et al. 2020a (Linformer); Kitaev et al. 2020 (Reformer); Gomez et al. 2017 (RevNet); Katharopoulos et al. 2020 (linear attention); Liu et al. 2018 (memory-compressed). Lectures: L1, L3.
