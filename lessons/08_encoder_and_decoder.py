# %% [markdown]
# # 08 · Encoder and decoder
#
# **180 minutes · after lesson 07 · needs `minilm` (84 MB), `smollm2` (93 MB), `marian` (35 MB) and `shakespeare` (5.4 MB)**
#
# Attention, heads, masks, positions, networks, sums, norms: seven lessons of parts. What do the parts become when they stand together? First a block, a stack, and the Transformer of 2017. Then three trained models that the world uses, assembled from these same parts, and from yours wherever they have passed: one finds sentences by their meaning, one translates, one answers questions.

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
from itertools import pairwise
from typing import Literal
from course_lib.data import needs, shakespeare, store

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
sinusoidal, rotary = mine("positions/sinusoidal"), mine("positions/rotary")
feed_forward = mine("feed_forward/position_wise")
causal_mask, padding_mask = mine("masks/causal"), mine("masks/padding")
shift_right, leaks_future = mine("masks/shift_right"), mine("masks/leaks_future")
split_heads, merge_heads = mine("multi_head/split_heads"), mine("multi_head/merge_heads")
MultiHeadAttention = mine("multi_head/attention")
layer_norm, rms_norm = mine("add_norm/layer_norm"), mine("add_norm/rms_norm")
PostNorm, PreNorm = mine("add_norm/post_norm"), mine("add_norm/pre_norm")

# %% [markdown]
# Each line above says whose function it is. What is yours will run below, up to the real models; what has not passed yet is the library's, and can still be exchanged.
#
# ## One block
#
# A block has two layers: in one the words look at each other, in the other each thinks about what it has seen. Around each stand lesson 07's sum and norm, in one of two orders. Read the drawing from below; the left line is the residual stream.


# %%
def box(ax, x, y, text, colour=plots.PALE[0]):
    style = {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "0.4"}
    ax.text(x, y, text, ha="center", va="center", bbox=style, zorder=3)


def arrow(ax, start, end, shrink=12):
    style = {"arrowstyle": "-|>", "color": "0.5", "shrinkA": 0, "shrinkB": shrink}
    ax.annotate("", end, start, arrowprops=style, zorder=1)


# %%
def branch(ax, y, *names):
    """Draw layers that read the stream at height y, and the sum in which they write."""
    first = y + 1.1 - 0.4 * len(names)
    places = [(0, y), *((1.2, first + 0.8 * i) for i in range(len(names))), (0, y + 2)]
    for start, end in (*pairwise(places), (places[0], places[-1])):
        arrow(ax, start, end)
    for name, place in zip(names, places[1:]):
        box(ax, *place, name, plots.PALE[2] if name == "norm" else plots.PALE[0])
    box(ax, *places[-1], "+", "white")


# %%
title = "Post-norm stands in the stream, pre-norm beside it"
names = ["post-norm, as in 2017", "pre-norm"]
figure, panels = plots.panels(title, names, size=(7.6, 5))
for ax, before in zip(panels, ([], ["norm"])):
    for y, layer in ((0, "attention"), (2.8, "feed-forward")):
        branch(ax, y, *before, layer)
        arrow(ax, (0, y + 2), (0, y + 2.8), shrink=0 if before else 12)
        if not before:
            box(ax, 0, y + 2.8, "norm", plots.PALE[2])
    ax.text(0, -0.15, "words", ha="center", va="top")
    ax.set(xlim=(-0.6, 2), ylim=(-0.5, 6))
    ax.set_axis_off()
plots.show(figure, "Two blocks drawn: norms on the residual stream, or before each of the layers.")

# %% [markdown]
# Two small classes go round your parts. `AsSelfAttention` makes query, key and value of the same words, and `residual` chooses between your `PostNorm` and `PreNorm`. The network with its matrices is lesson 05's. They are given.

# %%
# given: multi_head.AsSelfAttention

# %%
# given: encoder.residual

# %%
# given: feed_forward.FeedForward

# %% [markdown]
# ## Build: the encoder's block
#
# `__init__` has made both layers, each already inside its sum and norm. `forward` is short. Every part is a keyword argument, so that another one can take its place: that is what will let real models run on your functions.

# %%
# exercise: encoder/block

# %%
check("encoder/block", EncoderBlock)

# %%
EncoderBlock = mine("encoder/block")

# %% [markdown]
# torch has such a block, `nn.TransformerEncoderLayer`. Give it our weights, and two sentences of five and three words. **How large is the largest difference, in either order of norms?**

# %%
guess = None  # a number

# %%
from course_lib.verify.torch_stacks import torch_block

x, mask = torch.randn(2, 5, 12), padding_mask(torch.tensor([5, 3]), 5)
differences = {}
for norm in ("post", "pre"):
    block = EncoderBlock(12, 3, 20, norm)
    theirs = torch_block(dict(block.named_parameters()), 3, norm, x, mask)
    differences[norm] = (block(x, mask) - theirs).abs().max().item()
reveal(guess, max(differences.values()))
assert max(differences.values()) < 1e-5

# %% [markdown]
# ## An encoder and a decoder differ in one mask
#
# Send six words through a block, once without a mask and once with lesson 05's causal one. `leaks_future` lists the positions that can see what comes after them. **Which positions, counted from 0, does it list in each case?**

# %%
guess = None  # two lists

# %%
x, block = torch.randn(6, 12), EncoderBlock(12, 3, 20)
without = leaks_future(block, x)
causal = leaks_future(lambda words: block(words, causal_mask(len(words))), x)
reveal(guess, (without, causal))
assert without == [0, 1, 2, 3, 4] and causal == []

# %% [markdown]
# Same class, same weights. Without a mask, each word is understood from both sides: an **encoder**. With the mask, each word knows only what was before: a **decoder**, which can be trained to predict what comes next, and so to write. L2 and L4 say it in one sentence, and it is all there is: a language model's block is this block with a causal mask.

# %% [markdown]
# ## Build: a stack
#
# Before the first block, tokens become vectors times √d_model, and get their positions; `Embedding` does both. After the last block of a pre-norm stack stands one norm more, for sums that nobody has normalised (lesson 07). Both are given.

# %%
# given: encoder.Embedding

# %%
# given: add_norm.Norm

# %%
# exercise: encoder/stack

# %%
check("encoder/stack", Encoder)

# %%
Encoder = mine("encoder/stack")

# %% [markdown]
# ## Build: one vector for a sentence
#
# An encoder returns a state for each word. To compare whole sentences, we want one vector each: the mean of the states of the real words (Reimers & Gurevych 2019). Padding must not count, neither above the line nor below it.

# %%
# exercise: encoder/mean_pool

# %%
check("encoder/mean_pool", mean_pool)

# %%
mean_pool = mine("encoder/mean_pool")

# %% [markdown]
# ## Six of your blocks, trained
#
# MiniLM (Wang et al. 2020b) is a small BERT: six post-norm blocks with d_model = 384 and 12 heads, learned positions, and a GELU in the place of max. It was trained so that the mean-pooled vectors of sentences with like meanings have a large cosine. The course reads its weights into `EncoderBlock`.

# %%
needs("minilm")

# %%
from course_lib.pretrained import minilm

sentence_encoder = minilm.load()
count = sum(weight.numel() for weight in sentence_encoder.parameters())
print(f"{len(sentence_encoder.blocks)} blocks, {count / 1e6:.1f} million numbers")

# %% [markdown]
# Three sentences. The first two mean much the same, and have only the word *a* in common. **What are the three cosines?**
#
# 1. A man is playing a guitar on stage.
# 2. Someone performs music with a string instrument.
# 3. The stock market fell sharply on Monday.

# %%
guess = None  # (1 with 2, 1 with 3, 2 with 3)

# %%
sentences = [
    "A man is playing a guitar on stage.",
    "Someone performs music with a string instrument.",
    "The stock market fell sharply on Monday.",
]
vectors = sentence_encoder.embed(sentences)
cosines = vectors @ vectors.T
reveal(guess, tuple(round(float(cosines[i, j]), 2) for i, j in ((0, 1), (0, 2), (1, 2))))
assert cosines[0, 1] > 0.5 and cosines[2, :2].max() < 0.1

# %% [markdown]
# ## Search a play by meaning
#
# Take *Julius Caesar* apart into sentences and describe each by its vector. A question gets a vector too, and the answer is the sentence with the largest cosine: lesson 02's lookup, with sentences for keys. Batches are sorted by length, so that little of them is padding.

# %%
needs("minilm", "shakespeare")

# %%
import re
import sys
from time import perf_counter

from tqdm import tqdm


def sentences_of(play):
    speeches = re.findall(r"^[A-Z][A-Z ]+\.\n((?:[^\n\[]+\n)+)", play, re.MULTILINE)
    flat = " ".join(" ".join(speech.split()) for speech in speeches)
    found = re.findall(r"[^.!?]+[.!?]", flat)
    return [text.strip(" -") for text in found if 4 <= len(text.split()) <= 80]


# %%
def embed_all(texts):
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    vectors = torch.empty(len(texts), 384)
    for start in tqdm(range(0, len(order), 32), file=sys.stdout, unit="batch"):
        batch = order[start : start + 32]
        vectors[batch] = sentence_encoder.embed([texts[i] for i in batch])
    return vectors


# %%
play = shakespeare.works()["Julius Caesar"]
texts = sentences_of(play)
start = perf_counter()
vectors = embed_all(texts)
seconds = perf_counter() - start
print(f"{len(texts)} sentences in {seconds:.0f} s")
everything = shakespeare.complete_works()
print(f"all works at this pace: {seconds * len(everything) / len(play) / 60:.0f} minutes")


# %% [markdown]
# "Everybody dies once." The play says so in a famous sentence, which has only *once* of these three words. **Which sentence will come first?**

# %%
guess = None  # its first words


# %%
def search(question, n=3):
    [asked] = sentence_encoder.embed([question])
    likeness = vectors @ asked
    return [(texts[i], likeness[i].item()) for i in likeness.topk(n).indices.tolist()]


reveal(guess, search("Everybody dies once.")[0][0])
assert "Cowards die many times" in search("Everybody dies once.")[0][0]

# %%
for question in ("What time is it?", "I cannot sleep.", "The weather frightens people."):
    print(question)
    for text, likeness in search(question):
        print(f"    {likeness:.2f}  {text[:84]}")

# %% [markdown]
# No word of the first question stands in its best answer, and none needs to: the comparison is between what six blocks made of the words. It is no oracle. The model was trained on the language of today, so Shakespeare's finer points escape it; ask for "a friend has betrayed me" and judge for yourself.

# %%
words_of = [set(shakespeare.words(text)) for text in ("What time is it?", texts[0])]
best = search("What time is it?")[0][0]
print(best, "| in common:", words_of[0] & set(shakespeare.words(best)))
assert "hour" in best and not words_of[0] & set(shakespeare.words(best))

# %% [markdown]
# For all 42 works set `whole = True`: the minutes that it takes here stand above.

# %%
whole = False
if whole:
    texts = [text for work in shakespeare.works().values() for text in sentences_of(work)]
    vectors = embed_all(texts)

# %% [markdown]
# ## Ring, again
#
# Lesson 03 promised more. There, *ring* in "ring the alarum bell" was moved towards the trumpets by averaging its line, and a plain average did as well. Here are six blocks that have *learned* to choose. Describe two senses by four plain sentences each, and ask after every block which sense the state of *ring* is nearer to.

# %%
needs("minilm")

# %%
bells = "the church bells ring at noon|please ring the door bell|i heard the telephone ring"
jewels = "he gave her a gold ring|she wears a diamond ring|the ring was made of silver"
banks = "she opened an account at the bank|the bank lends money|he robbed a bank in the city"
shores = "we sat on the bank of the river|the boat lay by the muddy bank|he swam to the far bank"
examples = {"ring": (bells, jewels), "bank": (banks, shores)}


# %%
def states(line, word, which=0):
    """Return the state of the word, at this one of its places, at each level."""
    tokens, _ = sentence_encoder.tokens([line])
    names = sentence_encoder.tokenizer.encode(line).tokens
    place = [i for i, name in enumerate(names) if name == word][which]
    levels = [sentence_encoder.norm(sentence_encoder.positions(sentence_encoder.words(tokens)))]
    for block in sentence_encoder.blocks:
        levels.append(block(levels[-1]))
    return torch.cat(levels)[:, place]


# %%
def nearer(state, senses):
    """Return by how much the second sense's cosine is the larger one."""
    first, second = (torch.cosine_similarity(state, sense, dim=-1) for sense in senses)
    return second - first


def lean(line, word, which=0):
    described = (
        torch.stack([states(text, word) for text in sense.split("|")]).mean(0)
        for sense in examples[word]
    )
    return nearer(states(line, word, which), described)


# %% [markdown]
# Six lines with *ring*: three with bells, three with jewels. **At which level are all six on the right side of zero for the first time?** Level 0 is the word's own vector with its position.

# %%
guess = None  # from 0 to 6

# %%
rings = {"ring the alarum bell": -1, "the bells that ring to church": -1, "ring the bell": -1}
rings |= {"wear this ring for her sake": 1, "with this ring i thee wed": 1}
rings |= {"give me my ring again": 1}
leans = {line: lean(line, "ring") for line in rings}
right = torch.stack([leans[line] * sense > 0 for line, sense in rings.items()]).all(0)
reveal(guess, int(right.int().argmax()))
assert right[2:].all() and not right[0]

# %%
figure, ax = plots.axes(
    "The blocks pull the two rings apart", "level", "cosine with jewels − with bells"
)
for i, (line, values) in enumerate(leans.items()):
    style = {"color": plots.COLOURS[rings[line] > 0], "linestyle": ("-", "--", ":")[i % 3]}
    ax.plot(values, **style, label=line)
ax.axhline(0, color="0.6", linewidth=1)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plots.show(figure, "Six lines from near zero: three rise to jewels, three fall towards bells.")

# %% [markdown]
# Now the lectures' example, the river bank, in Shakespeare's lines and in plain ones. **How many of the six will be on the right side?**

# %%
guess = None  # from 0 to 6

# %%
lines = {
    "he put his money in the bank": -1,
    "the bank gave me a loan": -1,
    "the bank of the river was steep": 1,
    "i know a bank where the wild thyme blows": 1,
    "upon this bank and shoal of time": 1,
    "how sweet the moonlight sleeps upon this bank": 1,
}
for line, sense in lines.items():
    print(f"{line:46} {lean(line, 'bank')[-1]:+.2f}  should be {'+' if sense > 0 else '-'}")
banked = [float(lean(line, "bank")[-1]) * sense > 0 for line, sense in lines.items()]
reveal(guess, sum(banked))
assert all(banked[:3])

# %% [markdown]
# *Ring* is settled after one block. *Bank* is right in plain sentences and wavers in Shakespeare's: for a model of the web, a bank is mostly a place for money. And lesson 03's rival is still there: the plain average of a line's word vectors, before any block. **How many of the six does it get right?**

# %%
guess = None  # from 0 to 6


# %%
def average(line):
    [tokens], _ = sentence_encoder.tokens([line])
    return sentence_encoder.words(tokens[1:-1]).mean(0)


def plain_lean(line, word):
    described = (
        torch.stack([average(text) for text in sense.split("|")]).mean(0)
        for sense in examples[word]
    )
    return nearer(average(line), described).item()


# %%
averaged = sum(plain_lean(line, "bank") * sense > 0 for line, sense in lines.items())
reveal(guess, averaged)
assert averaged >= sum(banked)

# %% [markdown]
# At least as many. For a whole line, neighbours alone give the topic away. But an average cannot *choose*: it gives every word of a line the same vector. So put both senses into one line, and ask of each *ring* where it leans. The average must answer twice the same. **In how many of seven such lines will the encoder lean further to the jewels with the right one?**

# %%
guess = None  # from 0 to 7

# %%
mixed = {  # the place of the jewel, 0 or 1
    "ring the bell and give me the ring": 1,
    "she gave me a ring before i heard the telephone ring": 0,
    "wear this ring when the bells ring": 0,
    "the bells ring and he gives her a ring": 1,
    "when the bells ring i give thee this ring": 1,
    "take my ring before the bells ring": 0,
    "he lost his ring when he heard the bell ring": 0,
}
gaps = {}
for line, jewel in mixed.items():
    gaps[line] = (lean(line, "ring", jewel) - lean(line, "ring", 1 - jewel))[-1].item()
    print(f"{gaps[line]:+.3f}  {line}")

# %%
reveal(guess, sum(gap > 0 for gap in gaps.values()))
assert sum(gap > 0 for gap in gaps.values()) >= 6

# %% [markdown]
# That is what attention adds, and no average can: each word gets its own mixture. The gaps are small, for both senses stand in the line and each *ring* hears of both. Context resolves a sense as far as training has shown such contexts; the architecture makes it possible.

# %% [markdown]
# ## What trained heads look at
#
# Lesson 06 found no specialist in a small reader. MiniLM has 72 heads. `record_weights` keeps the weights of a layer while the model works. Over 100 sentences of the play, average each head's weight on five places: the word before, the word after, the word itself, and the two marks that stand around every sentence, [CLS] and [SEP].

# %%
needs("minilm", "shakespeare")

# %%
from contextlib import ExitStack

from course_lib.instruments.recording import record_weights


def gaze(text):
    """Return the weights of all heads (layer, head, query, key), and the tokens."""
    tokens, _ = sentence_encoder.tokens([text])
    with ExitStack() as stack:
        layers = [block.attention.sublayer.attention for block in sentence_encoder.blocks]
        kept = [stack.enter_context(record_weights(layer)) for layer in layers]
        sentence_encoder(tokens)
    names = sentence_encoder.tokenizer.encode(text).tokens
    return torch.cat([weights for [weights] in kept]), names


# %% [markdown]
# **How many of the 72 heads give more than half of their weight to one of these five?** And to which?

# %%
guess = None  # a number of heads


# %%
def places(weights):
    """Average each head's weight over the words, on five places."""
    inner = weights[..., 1:-1, :]
    diagonals = {"before": 0, "itself": 1, "after": 2}
    shares = {
        name: inner.diagonal(offset, -2, -1)[..., : inner.shape[-2]].mean(-1)
        for name, offset in diagonals.items()
    }
    return shares | {"[CLS]": inner[..., 0].mean(-1), "[SEP]": inner[..., -1].mean(-1)}


# %%
middling = [text for text in texts if 8 <= len(text.split()) <= 25][:100]
found = [places(gaze(text)[0]) for text in middling]
looks = {name: torch.stack([each[name] for each in found]).mean(0) for name in found[0]}
busy = {name: int((shares > 0.5).sum()) for name, shares in looks.items()}
reveal(guess, f"{sum(busy.values())}: {busy}")

# %%
names = ["before", "after", "[CLS]"]
title = "One head looks back, one ahead, and many rest on [CLS]"
figure, panels = plots.panels(title, names, size=(10, 2.8))
for ax, name in zip(panels, names):
    image = ax.imshow(looks[name], vmin=0, vmax=1)
    ax.set(xlabel="head", xticks=range(0, 12, 2), xticklabels=range(1, 13, 2))
    ax.set(yticks=range(6), yticklabels=range(1, 7))
panels[0].set_ylabel("block")
figure.colorbar(image, ax=panels, label="mean weight", shrink=0.8)
plots.show(
    figure, "Mean weights of 72 heads: one bright cell each for before and after, many [CLS]."
)
assert looks["before"].max() > 0.95 and looks["after"].max() > 0.6
assert (looks["before"] > 0.5).sum() == (looks["after"] > 0.5).sum() == 1

# %% [markdown]
# The third head of the first block gives all but everything to the word before. Is that grammar, or only place? Shuffle the words of each sentence, so that nothing fits together any more. **What share of its weight will still fall on the word before?**

# %%
guess = None  # a share

# %%
shuffled = []
generator = torch.Generator().manual_seed(0)
for text in middling:
    words = shakespeare.words(text)
    order = torch.randperm(len(words), generator=generator)
    shuffled.append(places(gaze(" ".join(words[i] for i in order))[0])["before"][0, 2])
share = float(torch.stack(shuffled).mean())
reveal(guess, round(share, 2))
assert share > 0.9

# %%
weights, tokens = gaze("Cowards die many times before their deaths.")
figure, panels = plots.plt.subplots(1, 2, figsize=(10.5, 4.2))
jobs = {"block 1, head 3: the word before": (0, 2), "block 2, head 9: the word after": (1, 8)}
for ax, (name, (layer, head)) in zip(panels, jobs.items()):
    plots.heat_map(ax, weights[layer, head], tokens, tokens)
    ax.tick_params(axis="x", rotation=60)
    ax.set(title=name, xlabel="key", ylabel="query")
plots.show(figure, "Two heat maps: one just left of the diagonal, one mostly just right of it.")

# %% [markdown]
# So it is a head by place, as the hand-built one of lesson 07. Its work is to make neighbours available to the blocks above. Many other heads put most of their weight on [CLS], where hardly anything is to be had: Clark et al. 2019 read such looks, in BERT at [SEP], as a way of doing nothing (quoted). Heads with names from grammar need parsed text to be found; what is measured here is place.

# %% [markdown]
# ## Cross-attention, step by step
#
# A translator has two sentences, and so two kinds of states: H, what the encoder made of the six source words, and Z, what the decoder has made of the four target words so far. The target asks: Q = Z W_Q. The source is found and hands over: K = H W_K, V = H W_V. **Which shapes have the scores, the weights and the result, if d_k = d_v = 3?**

# %%
needs()

# %%
guess = None  # (scores, weights, result)

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
z, h = torch.randn(4, 8), torch.randn(6, 8)
w_q, w_k, w_v = torch.randn(3, 8, 3)
scores = (z @ w_q) @ (h @ w_k).T / 3**0.5
weights = softmax(scores)
found = weights @ (h @ w_v)
reveal(guess, (tuple(scores.shape), tuple(weights.shape), tuple(found.shape)))

# %% [markdown]
# > **Where the lectures disagree (D15).** L1 names both lengths T, and gives the score matrix of cross-attention the shape T × T. That holds if a sentence and its translation happen to have equally many words. In general it is n_q × n_k: a row for each target word, a column for each source word. Here 4 × 6, and each row sums to one over the *source*.

# %%
assert scores.shape == (4, 6) and torch.allclose(weights.sum(-1), torch.ones(4))
assert not torch.allclose(weights.sum(0), torch.ones(6), atol=0.1)

# %% [markdown]
# > **Where the lectures disagree (D16).** L5 calls this layer of the decoder "self-attention", with keys and values of the encoder. But in *self*-attention all three come from the same words. The next cell asks both kinds the same question: does the result change when another sentence was read?

# %%
other = torch.randn(6, 8)
itself = scaled_dot_product_attention(z @ w_q, z @ w_k, z @ w_v)
across = [scaled_dot_product_attention(z @ w_q, h @ w_k, h @ w_v) for h in (h, other)]
print("self-attention is a function of z alone:", tuple(itself.shape))
print(f"cross-attention moves by {(across[1] - across[0]).abs().max():.1f} with the source")
assert (across[1] - across[0]).abs().max() > 0.1 and torch.allclose(across[0], found, atol=1e-6)

# %% [markdown]
# A decoder whose third layer were self-attention could not know what it is to translate. Cross-attention is the only door between the two stacks.

# %%
# exercise: decoder/cross_attention

# %%
check("decoder/cross_attention", cross_attention)

# %%
cross_attention = mine("decoder/cross_attention")
assert torch.allclose(cross_attention(z, h, w_q, w_k, w_v), found, atol=1e-6)

# %% [markdown]
# ## Build: the decoder's block
#
# Three layers now: look back, look across, think. The first has the causal mask, the second a mask for the source's padding. `AsCrossAttention` hands the memory to attention as key and value.

# %%
# given: multi_head.AsCrossAttention

# %%
# exercise: decoder/block

# %%
check("decoder/block", DecoderBlock)

# %%
DecoderBlock = mine("decoder/block")

# %%
x, memory, mask = (
    torch.randn(2, 4, 12),
    torch.randn(2, 5, 12),
    padding_mask(torch.tensor([5, 3]), 5),
)
for norm in ("post", "pre"):
    block = DecoderBlock(12, 3, 20, norm)
    theirs = torch_block(dict(block.named_parameters()), 3, norm, x, mask, memory)
    ours = block(x, memory, causal_mask(4), mask)
    assert torch.allclose(ours, theirs, atol=1e-5)
    print(f"{norm}-norm: nn.TransformerDecoderLayer differs by {(ours - theirs).abs().max():.0e}")

# %% [markdown]
# ## The Transformer of 2017
#
# Two stacks of six, and one line of cross-attention from the top of the encoder to every block of the decoder.


# %%
def door_between(ax, start, end, over):
    """Draw a line that leaves upwards, goes over, and comes down to an arrow into a box."""
    (x, y), (to, height) = start, end
    corner = [(x, y), (x, over), (to - 1.4, over), (to - 1.4, height)]
    ax.plot(*zip(*corner), color=plots.COLOURS[1], zorder=1)
    style = {"arrowstyle": "-|>", "color": plots.COLOURS[1]}
    ax.annotate("", (to - 0.7, height), (to - 1.42, height), arrowprops=style)
    ax.text(x + 0.8, over + 0.08, "keys and values", ha="center", color=plots.COLOURS[1])


left = ["source", "embedding\n+ positions", "self-attention", "feed-forward"]
right = ["target, shifted right", "embedding\n+ positions", "causal self-attention"]
right += ["cross-attention", "feed-forward", "linear, softmax", "next token"]

# %%
figure, ax = plots.axes("One door between the two stacks", "", "", size=(7, 6))
for x, names, top, label in ((0, left, 3.45, -1.25), (3, right, 4.45, 4.25)):
    for y, name in enumerate(names):
        box(
            ax, x, y, name, "white" if name[:6] in ("source", "target", "next t") else plots.PALE[0]
        )
        if y:
            arrow(ax, (x, y - 1), (x, y), shrink=14)
    frame = plots.plt.Rectangle((x - 1.05, 1.55), 2.1, top - 1.55, fill=False, edgecolor="0.6")
    ax.add_patch(frame)
    ax.text(label, (top + 1.55) / 2, "6 ×", ha="center", va="center")
door_between(ax, (0, 3), (3, 3), over=4.1)
ax.set(xlim=(-1.6, 4.6), ylim=(-0.5, 6.5))
ax.set_axis_off()
plots.show(figure, "Encoder and decoder as two columns of boxes, and one line between them.")

# %% [markdown]
# Each layer in the two frames stands inside a sum and a norm. Three matrices may be one: the two embeddings and the last linear layer, if both languages share a vocabulary. The paper ties them (section 3.4). `Decoder` is given; it differs from your `Encoder` in two arguments.

# %%
# given: decoder.Decoder

# %%
# exercise: transformer/forward

# %%
check("transformer/forward", Transformer)

# %%
Transformer = mine("transformer/forward")

# %% [markdown]
# While a Transformer learns, its target is known, so all places are scored at once: the decoder reads the target *shifted right*, and at each place must say what comes next. **What does the decoder read, where it should say `the cat sleeps stop`?**

# %%
guess = None  # four tokens

# %% tags=["nbval-check-output"]
vocab = ["start", "stop", "the", "cat", "sleeps"]
target = torch.tensor([2, 3, 4, 1])
reads = shift_right(target, 0)
reveal(guess, [vocab[token] for token in reads])
model = Transformer(5, 2, 12, 3, 20, max_length=4)
print("scores", tuple(model(torch.tensor([3, 4, 2]), reads).shape), "places by vocabulary")

# %% [markdown]
# While it *writes*, nothing is known: it reads `start`, chooses a token, appends it, reads again, until it chooses `stop`. See it with a real translator.

# %% [markdown]
# ## A real translator, one step at a time
#
# Firefox translates web pages on your machine, with encoder-decoders of 17 million numbers (Mozilla, trained with Marian). Six of our encoder blocks, post-norm; two decoder blocks, in which a small recurrence (Kim et al. 2019) stands in the place of self-attention, to be quick; cross-attention as above.

# %%
needs("marian")

# %%
from course_lib.pretrained import marian

translator = marian.load("en-pt")
sentence = "My sister lives in a small house near the sea."
print(translator.translate(sentence))

# %% [markdown]
# The three likeliest tokens at each step, and their probabilities. The English does not say which word *her* house will need; Portuguese must choose. **At which word will the translator be least certain?**

# %%
guess = None  # an English word

# %%
memory, written, certainty = translator.read(translator.encode(sentence)), [marian.START], []
while written[-1] != marian.STOP:
    best = softmax(translator(torch.tensor(written), memory)[-1]).topk(3)
    names = [translator.tokenizer.id_to_token(token) for token in best.indices.tolist()]
    print("  ".join(f"{name:>9} {p:.2f}" for name, p in zip(names, best.values.tolist())))
    written.append(int(best.indices[0]))
    certainty.append((best.values[0].item(), names[0]))
reveal(guess, min(certainty)[1])
assert len(written) - 1 == len(certainty) == 12

# %% [markdown]
# *Vive* or *mora*: both are right for *lives*. Everything else follows with near certainty. Each line of the table was one pass through the decoder; the encoder read the sentence once.

# %% [markdown]
# ## Who looks at whom
#
# Mozilla trained the first head of the last cross-attention to align words, since web pages have links and bold words to carry over. So here is a heat map with a truth to compare to. **In "The black cat sleeps on the white chair", what order will the columns have?** Portuguese puts adjectives behind.

# %%
guess = None  # in your own words


# %%
def tokens_of(text):
    return [translator.tokenizer.decode([token]) for token in translator.encode(text).tolist()]


def aligned(source):
    target = translator.translate(source)
    return translator.alignment(source, target), tokens_of(target), tokens_of(source)


weights, rows, columns = aligned("The black cat sleeps on the white chair.")
reveal(guess, [columns[i] for i in weights.argmax(-1).tolist()[:3]])
assert [columns[i] for i in weights.argmax(-1).tolist()[:3]] == ["The", "cat", "black"]

# %%
sources = ["The black cat sleeps on the white chair.", "The European Economic Area was created."]
figure, panels = plots.plt.subplots(1, 2, figsize=(10.5, 4.2))
for ax, source in zip(panels, sources):
    plots.heat_map(ax, *aligned(source))
    ax.tick_params(axis="x", rotation=60)
    ax.set(xlabel="key: source", ylabel="query: target")
    ax.set_title("Crossed pairs where adjectives move behind")
plots.show(figure, "Two word alignments: mostly diagonal, with crossed pairs at the adjectives.")

# %% [markdown]
# Bahdanau et al. 2015 showed *European Economic Area* turned round in French; it is turned round here too. The last row, `</s>`, spreads its weight: there is nothing to align.

# %% [markdown]
# ## What is *it*?
#
# Google's article on the Transformer had a famous pair: "The animal didn't cross the street because it was too tired", or "too wide". With *tired*, *it* is the animal; with *wide*, the street. Portuguese shows which was meant: *o animal* is masculine, *a rua* feminine, and the adjective must agree. **Will its ending change?**

# %%
guess = None  # for example ("cansado", "larga")

# %%
for word in ("tired", "wide", "narrow", "dark"):
    print(translator.translate(f"The animal didn't cross the street because it was too {word}."))

# %% [markdown]
# *Cansado, grande, estreito, escuro*: never the feminine. This translator takes the animal each time (*grande* tells nothing). One word does change: *estava* for a passing state, *era* for a lasting one. Perhaps subjects always win? Try a cow, feminine, and a river, masculine. **For which of these words will *it* be the river?**

# %%
guess = None  # some of "tired", "wide", "deep", "narrow", "cold"

# %%
endings = {}
for word in ("tired", "wide", "deep", "narrow", "cold"):
    text = translator.translate(f"The cow didn't cross the river because it was too {word}.")
    endings[word] = text.rstrip(".").split()[-1]
print(endings)
reveal(guess, [word for word, found in endings.items() if found.endswith("o")])
assert endings["tired"] == "cansada" and endings["deep"] == "profundo"

# %% [markdown]
# One English word flips the gender: *cansada* is the cow, *profundo* the river. (*Frio* may be the river or the weather.) So what the words mean does reach the ending, through the encoder's blocks and one door. But *larga* and *estreita* say that the cow was wide and narrow. Some knowledge, unevenly: seventeen million numbers, and no claim to more.

# %% [markdown]
# ## Counting: the configuration of 2017
#
# N = 6 blocks on each side, d_model = 512, h = 8, d_ff = 2048, a shared vocabulary of about 37,000. Before you write the formula: **how many million numbers does the model learn?**

# %%
needs()

# %%
guess = None  # millions

# %%
# exercise: transformer/parameters

# %%
check("transformer/parameters", parameter_count)

# %%
parameter_count = mine("transformer/parameters")

# %% tags=["nbval-check-output"]
from course_lib.transformer import BASE

count = parameter_count(BASE["layers"], BASE["d_model"], BASE["d_ff"], BASE["vocab"])
with torch.device("meta"):
    base = Transformer(**BASE, max_length=1)
assert count == sum(weight.numel() for weight in base.parameters())
reveal(guess, f"{count / 1e6:.1f} million")

# %% [markdown]
# The paper's table prints 65 million. The layers leave no room for two million more, and the text gives the vocabulary as "about 37000": with 41,000 rows, the same formula gives the paper's number. Which vocabulary they counted, the paper does not say; ours is measured, theirs quoted. Heads appear nowhere in the sum.

# %%
print(f"with 41,000 tokens: {parameter_count(6, 512, 2048, 41000) / 1e6:.1f} million")
sizes = {"embedding": base.encoder.embedding}
sizes |= {name: getattr(base.decoder.blocks[0], name) for name in ("attention", "cross_attention")}
sizes["feed_forward"] = base.decoder.blocks[0].feed_forward
times = {"embedding": 1, "attention": 12, "cross_attention": 6, "feed_forward": 12}
shares = {name: times[name] * sum(w.numel() for w in sizes[name].parameters()) for name in sizes}
assert sum(shares.values()) == count

# %%
figure, ax = plots.axes("The feed-forward networks hold most", "millions of numbers", "")
ax.barh(
    ["embedding, tied", "self-attention", "cross-attention", "feed-forward"],
    [share / 1e6 for share in shares.values()],
    color=plots.COLOURS[0],
)
for y, share in enumerate(shares.values()):
    ax.text(share / 1e6 + 0.3, y, f"{share / count:.0%}", va="center")
plots.show(figure, "Bars of parameters by kind: feed-forward longest, then embedding, attentions.")
assert max(shares, key=shares.get) == "feed_forward"

# %% [markdown]
# ## Three families
#
# | family | mask | trained to | examples | here |
# |:-|:-|:-|:-|:-|
# | encoder only | none | fill in hidden words, compare sentences | BERT, RoBERTa | MiniLM |
# | decoder only | causal | say the next word | GPT, LLaMA | SmolLM2 |
# | encoder-decoder | none, then causal, and cross-attention | write one text from another | the paper, T5, BART | Marian |
#
# Whoever only reads wants both sides of each word; whoever writes may not see the future; whoever reads one text and writes another has one stack for each. Today's assistants are decoders alone: the question and the answer are one text.

# %% [markdown]
# ## Thirty pre-norm blocks with a causal mask
#
# SmolLM2 (Allal et al. 2025) has 135 million numbers: thirty of your pre-norm blocks, with newer parts in the same places. RMSNorm for layer norm and rotary positions, which you know from lessons 07 and 04; SwiGLU, a feed-forward network with a gate, W₂(swish(W₁x) · W₃x); and heads that share their keys.
#
# Why share? A writing model keeps the keys and values of all words so far. **How many numbers is that for each token: 30 blocks, 9 heads of d_k = 64?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
kept_by = {groups: 2 * 30 * groups * 64 for groups in (9, 3)}
reveal(guess, kept_by[9])
for groups, numbers in kept_by.items():
    print(f"{groups} key heads: {numbers:,} a token, {4 * 8192 * numbers / 1e6:.0f} MB for 8,192")

# %% [markdown]
# So SmolLM2's nine query heads have only three key and value heads: heads 1 to 3 share the first, 4 to 6 the second, 7 to 9 the third (Ainslie et al. 2023).

# %%
# exercise: decoder/grouped_query

# %%
check("decoder/grouped_query", grouped_query_attention)

# %%
grouped_query_attention = mine("decoder/grouped_query")

# %% [markdown]
# With one group for each head it is plain attention; with one group in all, every head looks through the same keys.

# %%
q, k, v = torch.randn(3, 9, 5, 4)
assert torch.allclose(grouped_query_attention(q, k, v), scaled_dot_product_attention(q, k, v))
shared = grouped_query_attention(q, k[:3], v[:3])
alone = scaled_dot_product_attention(q[4], k[1], v[1])
assert torch.allclose(shared[4], alone, atol=1e-6)

# %% [markdown]
# ## Weights of four bits
#
# Float32 would take 540 MB; the file that you fetched has 93. Its rows are cut into blocks of 32 weights. A block stores its least weight and a step, in 16 bits each, and for every weight how many steps above the least it is: 0 to 15, four bits. **How many bits is that for one weight, all told?**

# %%
needs("smollm2")

# %%
guess = None  # bits

# %%
from gguf import GGUFReader

from course_lib.pretrained import quantised, smollm2

file = GGUFReader(store.unpacked("smollm2", smollm2.MEMBER))
queries = next(tensor for tensor in file.tensors if tensor.name == "blk.0.attn_q.weight")
block = torch.from_numpy(queries.data.reshape(-1, 20)[0].copy())
reveal(guess, len(block) * 8 / 32)
print(block.tolist())

# %% [markdown]
# Twenty bytes, the first weights of the first query matrix. Undo them by hand: the step and the least are float16, then each byte holds two numbers, weight i in its low half and weight i + 16 in its high half.

# %%
step, least = block[:4].view(torch.float16).float().tolist()
steps = [byte % 16 for byte in block[4:].tolist()] + [byte // 16 for byte in block[4:].tolist()]
weights = torch.tensor([least + step * number for number in steps])
print(f"step {step:.4f}, least {least:.4f}; steps {steps[:6]} ...")
print([round(weight, 3) for weight in weights[:6].tolist()], "...")
assert torch.allclose(weights, quantised.q4_1(block[None])[0])

# %% [markdown]
# A weight is off by at most half a step. All 134 million are undone so when the model is loaded. Now ask.

# %%
model = smollm2.load()
count = sum(weight.numel() for weight in model.parameters())
print(f"{count / 1e6:.1f} million numbers")
for piece in model.answer("What is the capital of France?", 24):
    print(piece, end="", flush=True)

# %% [markdown]
# ## What has been read is not read again
#
# To write token n, the model needs its query, and the keys and values of all n. The old ones are what they were: the mask is causal, so nothing that came later has changed them. A **key-value cache** keeps them, and only the new token passes through the blocks.
#
# **To write 32 tokens after a question of 40, how many tokens pass through the blocks, without the cache and with it?**

# %%
guess = None  # (without, with)

# %%
from time import perf_counter

reveal(guess, (sum(range(40, 72)), 40 + 31))


def timed(cache, most=32):
    start, pieces, seconds = perf_counter(), [], []
    for piece in model.answer("Why is the sky blue?", most, cache):
        pieces.append(piece)
        seconds.append(perf_counter() - start)
    return pieces, seconds


# %%
(with_cache, fast), (without, slow) = timed(True), timed(False)
print("".join(with_cache))
for name, seconds in (("with the cache", fast), ("without", slow)):
    print(f"{name:15} {len(seconds) / seconds[-1]:5.1f} tokens a second")
assert with_cache == without

# %%
figure, ax = plots.axes("Token for token the same text, sooner", "token", "seconds since asked")
for name, seconds in (("without the cache", slow), ("with the cache", fast)):
    ax.plot(range(1, len(seconds) + 1), seconds, label=name)
ax.set(ylim=(0, None))
ax.legend()
plots.show(figure, "Seconds by token: a steep line without the cache, a flat one with it.")

# %% [markdown]
# The text is the same, whatever it is worth: a model of this size speaks well and knows little. Check its facts elsewhere.

# %% [markdown]
# ## Run it with mine
#
# Now all three on your functions. `mine` has said which of them are yours. A model's weights do not care who wrote the functions, so a twin borrows them: the same model, built of other parts.


# %%
def rebuilt(model, **parts):
    twin = type(model)(model.tokenizer, **parts)
    twin.load_state_dict(model.state_dict(), assign=True)
    return twin.eval().requires_grad_(False)


def my_attention(d_model, heads, rule=scaled_dot_product_attention):
    return MultiHeadAttention(d_model, heads, rule)


def my_network(d_model, d_ff):
    return FeedForward(d_model, d_ff, network=feed_forward)


# %%
needs("marian")

# %%
blocks = {"encoder_block": EncoderBlock, "decoder_block": DecoderBlock}
mine_in_it = {"attention": my_attention, "feed_forward": my_network, "norm_layer": layer_norm}
my_translator = rebuilt(translator, **blocks, **mine_in_it)
ours, theirs = (each.read(translator.encode(sentence)) for each in (my_translator, translator))
print(my_translator.translate(sentence))
print(f"largest difference of a state: {(ours - theirs).abs().max():.0e}")
assert my_translator.translate(sentence) == translator.translate(sentence)
assert torch.allclose(ours, theirs, atol=1e-4)

# %% [markdown]
# If the lines at the top of this lesson said "your own", that was your attention, your network, your norm and your blocks writing Portuguese. Next, MiniLM and SmolLM2.

# %%
needs("minilm")

# %%
parts = {"block": EncoderBlock, "attention": my_attention, "norm_layer": layer_norm}
my_encoder = rebuilt(sentence_encoder, **parts, pool=mean_pool)
ours, theirs = (each.embed(sentences) for each in (my_encoder, sentence_encoder))
print(f"largest difference of a number: {(ours - theirs).abs().max():.0e}")
assert torch.allclose(ours, theirs, atol=1e-4)

# %%
needs("smollm2")

# %%
parts = {"rule": grouped_query_attention, "turn": rotary, "norm_layer": rms_norm}
my_model = rebuilt(model, block=EncoderBlock, **parts)
opening = "The capital of France is"
print(opening + "".join(my_model.write(opening, 8)))
tokens = torch.tensor(model.tokenizer.encode(opening).ids)
print(f"largest difference of a score: {(my_model(tokens) - model(tokens)).abs().max():.0e}")
assert torch.allclose(my_model(tokens), model(tokens), atol=1e-2)

# %% [markdown]
# ## One mistake at a time
#
# A real model is a severe judge. Four translators, each with one mistake that you have met: pre-norm for post-norm; scores not divided; scores divided by d_k; positions forgotten. Here is what each makes of "My sister lives in a small house near the sea." **Which is which?**

# %%
needs("marian")


# %%
def undivided(q, k, v, mask=None):
    return softmax(dot_scores(q, k), mask) @ v


def divided_by_d_k(q, k, v, mask=None):
    return softmax(dot_scores(q, k) / q.shape[-1], mask) @ v


def attending_by(rule):
    return lambda d_model, heads: MultiHeadAttention(d_model, heads, rule)


# %%
translators = {
    "positions forgotten": rebuilt(translator),
    "divided by d_k": rebuilt(translator, attention=attending_by(divided_by_d_k)),
    "pre-norm": rebuilt(translator, norm="pre"),
    "not divided": rebuilt(translator, attention=attending_by(undivided)),
}
translators["positions forgotten"].embedding.positions.zero_()
broken = {name: each.translate(sentence) for name, each in translators.items()}
for letter, text in zip("ABCD", broken.values()):
    print(f"{letter}: {text[:90]}")

# %%
guess = None  # four names in the order of A to D, such as ["pre-norm", ...]

# %%
reveal(guess, list(broken))
right = translator.translate(sentence)
print("right:", right)
assert right not in broken.values()
assert broken["not divided"].endswith("perto do mar.")

# %% [markdown]
# Four signatures. Without positions there is a bag of words, and hardly any order to write in. Divided by d_k instead of its root, weights are too flat: each word hears all others, and says things twice. Not divided, they are too sharp: nearly right, but details are lost, here the verb. In the wrong order of norms every state is of the wrong size, and one token comes for ever.

# %% [markdown]
# MiniLM with the same mistakes: its first cosine should be 0.57 and its second below zero. **For which mistake do all sentences mean the same?**

# %%
needs("minilm")

# %%
guess = None  # one of the four names

# %%
encoders = {
    "right": sentence_encoder,
    "not divided": rebuilt(sentence_encoder, attention=attending_by(undivided)),
    "divided by d_k": rebuilt(sentence_encoder, attention=attending_by(divided_by_d_k)),
    "pre-norm": rebuilt(sentence_encoder, norm="pre"),
    "positions forgotten": rebuilt(sentence_encoder),
}
encoders["positions forgotten"].positions = nn.Identity()
cosine_of_unlike = {}
for name, encoder in encoders.items():
    first, second, third = encoder.embed(sentences)
    cosine_of_unlike[name] = (first @ third).item()
    print(f"{name:20} alike {first @ second:5.2f}, unlike {cosine_of_unlike[name]:5.2f}")
reveal(guess, "pre-norm")
assert cosine_of_unlike["pre-norm"] > 0.9 > 0.3 > cosine_of_unlike["not divided"]

# %% [markdown]
# ## A mask that leaks
#
# The causal mask is the last part to break: a block that never receives it. The weights are SmolLM2's, which were trained with it. Two measurements: the mean loss for the next token of a text, and ten tokens of its own writing. **Without the mask, does the loss rise or fall? And the writing?**

# %%
needs("smollm2")

# %%
guess = None  # two words


# %%
def leaking(q, k, v, mask=None):
    return grouped_query_attention(q, k, v)


def undivided_in_groups(q, k, v, mask=None):
    return grouped_query_attention(q * q.shape[-1] ** 0.5, k, v, mask)


def unturned(x, positions, base):
    return x


# %%
mistakes = {
    "right": {},
    "mask forgotten": {"rule": leaking},
    "not divided": {"rule": undivided_in_groups},
    "positions forgotten": {"turn": unturned},
    "post-norm": {"norm": "post"},
}
text = "The quick brown fox jumps over the lazy dog. To be, or not to be, that is the question."
tokens, losses = torch.tensor(model.tokenizer.encode(text).ids), {}
for name, parts in mistakes.items():
    twin = rebuilt(model, **parts)
    losses[name] = F.cross_entropy(twin(tokens)[:-1], tokens[1:]).item()
    said = "".join(twin.write("The capital of France is", 10, cache=False))
    print(f"{name:20} loss {losses[name]:5.2f}   {said!r}")

# %%
reveal(guess, "the loss falls, the writing is lost")
assert losses["mask forgotten"] < losses["right"] - 0.5
assert all(losses[name] > losses["right"] + 1 for name in list(mistakes)[2:])

# %% [markdown]
# Look at the second row. Its loss is the *best* of all: each place reads the very token that it should predict, without ever having been trained to. And it cannot write a word, because when it writes there is no future to read. A leak is the one mistake that makes the numbers better. That is why lesson 05 built `leaks_future`.
#
# The others fail in their own ways: without positions it speaks of the right things in a circle; not divided, it is fluent and astray; with norms misplaced it stammers.

# %%
del model, my_model, twin

# %% [markdown]
# ## Challenge: copy, reverse, sort
#
# Now train one yourself, whole: your Transformer with your blocks, two on each side, d_model = 64. It reads eight different letters and must write them again, or write them backwards, or in the order of the alphabet. There are 26 · 25 · ... · 19, more than 60 billion such sequences, so none of those tested has been seen. Each training ends after 30 seconds at the latest; a slow machine may not get to the end of it. **What share of 1,000 will be all right, in each task?**

# %%
needs()

# %%
guess = None  # (copy, reverse, sort)

# %%
from course_lib.transformer import greedy

START, STOP = 26, 27
TASKS = {
    "copy": lambda letters: letters,
    "reverse": lambda letters: letters.flip(-1),
    "sort": lambda letters: letters.sort(-1).values,
}


def different(batch, generator):
    return torch.rand(batch, 26, generator=generator).argsort(-1)[:, :8]


# %%
def pairs(task):
    generator = torch.Generator().manual_seed(0)
    while True:
        source = different(32, generator)
        yield source, TASKS[task](source)


def next_letter_loss(model, batch):
    source, target = batch
    return F.cross_entropy(model(source, shift_right(target, START)).mT, target)


# %% tags=["training"]
def trained(task):
    sizes = {"vocab": 28, "layers": 2, "d_model": 64, "heads": 4, "d_ff": 256, "max_length": 9}
    blocks = {"encoder_block": EncoderBlock, "decoder_block": DecoderBlock}
    with training.seeded(SEED):
        model = Transformer(**sizes, norm="pre", **blocks)
    budget = {"steps": 1200, "seconds": 30, "learning_rate": 0.003}
    training.train(model, pairs(task), next_letter_loss, **budget)
    return model


models = {"copy": trained("copy")}

# %% tags=["training"]
models["reverse"] = trained("reverse")

# %% tags=["training"]
models["sort"] = trained("sort")


# %% tags=["training"]
def share_right(task, source):
    written = greedy(models[task], source, START, STOP, most=8)
    return (written == TASKS[task](source)).all(-1).float().mean().item()


unseen = different(1000, torch.Generator().manual_seed(1000))
live = {task: share_right(task, unseen) for task in TASKS}
reveal(guess, tuple(live.values()))
for task, model in models.items():
    training.expect(
        f"{task}: over 0.9 of the unseen are right", live[task] > 0.9, live[task], model
    )

# %% tags=["training"]
word = "problems"
source = torch.tensor([[ord(letter) - ord("a") for letter in word]])
for task in TASKS:
    [written] = greedy(models[task], source, START, STOP, most=8).tolist()
    print(f"{task:8}", "".join(chr(token + ord("a")) for token in written))

# %% [markdown]
# `make results LESSON=08` trained each from three seeds; the loss is a mean over ten steps. **Which task is learned first?**

# %%
guess = None  # "copy", "reverse" or "sort"

# %%
kept = results.load("sequences")["figures"]
figure, ax = plots.axes(
    "By content first, by place later: sorting is learned before copying", "step", "loss, nats"
)
for (task, runs), colour in zip(kept["runs"].items(), plots.COLOURS):
    for seed, run in enumerate(runs):
        middles = range(5, 10 * len(run["losses"]), 10)
        label = task if seed == 0 else None
        ax.semilogy(middles, run["losses"], color=colour, linewidth=1, label=label)
ax.legend()
plots.show(figure, "Losses by step on a log scale: sorting falls before copying and reversing.")

# %% tags=["nbval-check-output"]
for task, runs in kept["runs"].items():
    print(f"{task:8}", ", ".join(f"{run['right']:.1%}" for run in runs), "of 1,000 all right")
    assert all(run["right"] == 1 for run in runs)


# %%
def learned(run):
    return next(10 * i for i, loss in enumerate(run["losses"]) if loss < 0.1)


found = {task: [learned(run) for run in runs] for task, runs in kept["runs"].items()}
reveal(guess, f"sort; steps until the loss is below 0.1: {found}")
assert max(found["sort"]) < min(found["copy"] + found["reverse"])

# %% [markdown]
# What did it find? Watch the cross-attention of the last decoder block, averaged over the heads, while *problems* is written. **Where will the bright cells lie for reversing, and where for sorting?**

# %%
guess = None  # in your own words


# %% tags=["training"]
from course_lib.instruments.recording import record_weights


def door(task):
    layer = models[task].decoder.blocks[-1].cross_attention.sublayer.attention
    target = TASKS[task](source)
    with torch.no_grad(), record_weights(layer) as kept_weights:
        models[task](source, shift_right(target, START))
    return kept_weights[0][0].mean(0), target[0].tolist()


# %% tags=["training"]
title = "The door shows the task: where each letter to be written is read"
figure, panels = plots.panels(title, list(TASKS), size=(11, 3.6))
for ax, task in zip(panels, TASKS):
    weights, target = door(task)
    plots.heat_map(ax, weights, [chr(token + 97) for token in target], word)
    ax.set(xlabel="key: source", ylabel="to be written")
plots.show(figure, "Three cross-attentions: a diagonal, an antidiagonal, and letters by alphabet.")

# %% [markdown]
# ## Break it
#
# All were trained on eight *different* letters. Now let letters come twice, as in *committee*. **Which of the three tasks will suffer?** Three in ten of such random sequences have no repeated letter after all.

# %%
guess = None  # a list of tasks

# %% tags=["nbval-check-output"]
repeated = {task: [run["repeated"] for run in runs] for task, runs in kept["runs"].items()}
for task, shares in repeated.items():
    print(f"{task:8}", ", ".join(f"{share:.0%}" for share in shares))
reveal(guess, [task for task, shares in repeated.items() if max(shares) < 0.9])
assert max(repeated["sort"]) < 0.6 and min(repeated["copy"] + repeated["reverse"]) > 0.97

# %% [markdown]
# Copying and reversing go by *place*, and a place does not mind what stands in it. Sorting goes by *content*: "what comes next after what I wrote". In training that was always a later letter, so a second *m* is never written. All right on the unseen, and wrong on the unlike: a model learns the task of its data, not the one you had in mind.

# %% [markdown]
# - Train the sorter with repeated letters as well. Does it reach 100 %? How many steps more?
# - Give `Transformer` a `decoder_block` that ignores its mask. How low does the loss go, and what does `greedy` write?
# - Build the sorter with `layers=1`, or with one head. Which task still works?

# %% [markdown]
# ## What you take along
#
# An encoder block is attention and a network, each inside a sum and a norm; a causal mask makes it a language model's. A decoder of a translator has one door more: queries from the target, keys and values from the source, n_q × n_k scores. Training reads the target shifted right; writing goes step by step until stop. MiniLM, Marian and SmolLM2 are these parts, and ran on yours. A leaking mask improves the loss and ruins the writing.

# %% [markdown]
# Next, lesson 09 trains a language model. Sources: Vaswani et al. 2017; Reimers & Gurevych 2019; Wang et al. 2020b (MiniLM); Clark et al. 2019; Junczys-Dowmunt et al. 2018 (Marian); Kim et al. 2019 (recurrence in the decoder); Bahdanau et al. 2015; Ainslie et al. 2023 (grouped queries); Shazeer 2019 (shared keys); Shazeer 2020 (SwiGLU); Allal et al. 2025 (SmolLM2). Lectures: L1 to L5.
