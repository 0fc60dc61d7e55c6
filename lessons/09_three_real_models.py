# %% [markdown]
# # 09 · Three real models
#
# **191 minutes, of which 118 are the core path · after lesson 08 · needs `minilm` (84 MB), `smollm2` (93 MB), `marian` (35 MB) and `shakespeare` (5.4 MB)**
#
# Do the models that people use really consist of the parts that you have built? In this lesson three of them run on *your* functions: one finds sentences by their meaning, one translates, one answers questions.

# %% [markdown]
# You will look at what these models have learned, and build the parts that are newer than 2017: a gated network, heads that share their keys, and the cache that lets a model write quickly. An optional section takes the mask out of a trained model. What happens to its loss, and to its text?
#
# You need lesson 08, and rotary positions (04) and RMSNorm (07). Sections marked "(optional)" are not needed later.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, measuring, plots, results, training

# %%
from course_lib.data import needs, shakespeare, store
from course_lib.feed_forward import FeedForward

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
causal_mask, rotary = mine("masks/causal"), mine("positions/rotary")
feed_forward = mine("feed_forward/position_wise")
MultiHeadAttention = mine("multi_head/attention")
layer_norm, rms_norm = mine("add_norm/layer_norm"), mine("add_norm/rms_norm")
EncoderBlock, DecoderBlock = mine("encoder/block"), mine("decoder/block")

# %% [markdown]
# Each line above says whose function it is. Yours will run in the real models; where yours has not passed yet, the library's does.

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention", "cross-attention", "feed-forward", "add & norm"}
    | {"embedding", "positions", "linear, softmax"},
    "The Transformer of 2017, all of it lit: an encoder block of self-attention and a feed-forward "
    "network, a decoder block of masked self-attention, cross-attention and a feed-forward network.",
)

# %% [markdown]
# ## Three outlines of one drawing
#
# Here are the three models as outlines of that drawing. Coloured boxes are those that the drawing of 2017 does not have.

# %% tags=["hide-input"]
NEW = {
    "learned positions": "position", "norm": "norm", "mean": "value", "recurrence": "query",
    "SwiGLU": "network", "shared": "query", "RMSNorm": "norm",
}  # fmt: skip
LAYERS = ["feed-forward", "add & norm"]
MARIAN = ["embedding", "positions", "self-attention", "add & norm", *LAYERS]
WRITER = [*MARIAN[:2], "recurrence", "add & norm", "cross-attention", "add & norm", *LAYERS]
SMOL = ["embedding", "RMSNorm", "shared", "add", "RMSNorm", "SwiGLU", "add", "RMSNorm"]
COLUMNS = [  # x, width, boxes from below, the block's first box and number of boxes, both ends
    (1.5, 2.8, ["embedding", "learned positions", "norm", *MARIAN[2:], "mean"], 3, 4, "tokens"),
    (4.8, 2.4, MARIAN, 2, 4, "source"),
    (8.05, 2.5, [*WRITER, "linear, softmax"], 2, 6, "target so far"),
    (11.25, 2.7, [*SMOL, "linear, softmax"], 1, 6, "tokens so far"),
]
diagram, step, stacks = drawings.Diagram(), 0.8, []
for x, width, names, first, count, came in COLUMNS:
    boxes = []
    for i, name in enumerate(names):
        text, role = "" if name == "shared" else name, NEW.get(name, "dim")
        boxes.append(diagram.box(text, (x, i * step), role, size=(width, 0.62)))
    for below, above in zip([(x, -0.75), *boxes], boxes):
        diagram.arrow(below, above, role="dim")
    middle = (first + (count - 1) / 2) * step
    diagram.frame("", (x, middle), (width + 0.25, count * step - 0.04))
    diagram.text(came, (x, -0.95), size=9)
    stacks.append(boxes)
diagram.text("masked self-attention,\nshared keys, rotary", stacks[3][2].at, size=8)
ends = {0: "one vector", 2: "next token", 3: "next token"}
for i, text in ends.items():
    top = stacks[i][-1]
    diagram.arrow(top, (top.at[0], top.at[1] + 0.75), role="dim")
    diagram.text(text, (top.at[0], top.at[1] + 0.95), size=9)
corners = [(4.8, 4.7), (6.4, 4.7), (6.4, 3.2)]
diagram.arrow(stacks[1][-1], stacks[2][4], via=corners, role="dim")
for text, x in (("MiniLM\nblock × 6", 1.5), ("Marian\nblocks × 6 and × 2", 6.45)):
    diagram.text(text, (x, 8.2))
diagram.text("SmolLM2\nblock × 30", (11.25, 8.2))
diagram.show(
    "Three models from below. MiniLM: embedding, learned positions, norm, six post-norm encoder "
    "blocks, mean, one vector. Marian: six post-norm encoder blocks; two decoder blocks of a "
    "recurrence, cross-attention and a feed-forward network, each with add & norm; linear, softmax. "
    "SmolLM2: embedding, thirty pre-norm blocks of masked attention with shared keys and rotary "
    "positions, and of SwiGLU, each after an RMSNorm; RMSNorm; linear, softmax.",
)

# %% [markdown]
# Each belongs to one of lesson 08's three families. What a token may look at decides what a model can be trained to do:
#
# | model | family | a token may look at | first trained to | parameters |
# |:-|:-|:-|:-|--:|
# | MiniLM | encoder only | all tokens (no mask) | imitate a **masked language model**, which fills in blanks (BERT's task) | 22.6 M |
# | Marian | encoder-decoder | the whole source, and earlier target tokens (by a recurrence, without a mask) | write the translation, token by token | 16.9 M |
# | SmolLM2 | decoder only | itself and earlier tokens (causal mask) | predict the next token, everywhere | 134.6 M |
#
# (T5 is an encoder-decoder that fills in blanks: lesson 08 compares the tasks.)

# %% [markdown]
# ## Build: one vector for a sentence
#
# An encoder returns a state for each token. To compare whole sentences we need one vector each. The simplest choice works well: the mean of the states $h_i$ (Reimers & Gurevych 2019). A mask leaves out the padding: $m_i$ is 1 for a real token and 0 for padding.
#
# $$\underset{d}{s} = \frac{\sum_{i=1}^{n} m_i\, h_i}{\sum_{i=1}^{n} m_i} \qquad \underset{n \times d}{H}, \quad \underset{n}{m}$$

# %%
# exercise: encoder/mean_pool

# %%
check("encoder/mean_pool", mean_pool)

# %%
mean_pool = mine("encoder/mean_pool")

# %% [markdown]
# ## Six of your blocks, trained twice
#
# The model is `all-MiniLM-L6-v2`: six post-norm blocks, $d_{model} = 384$, 12 heads, learned positions, GELU (a smooth ReLU) in place of the ReLU. Two projects trained it. Wang et al. 2020b made MiniLM by **distillation**: a small model learns to reproduce the last layer's attention of a larger BERT-like one. Others kept every second of its twelve blocks, and the sentence-transformers project then **fine-tuned** the result on a billion pairs of sentences.

# %% [markdown]
# The fine-tuning is **contrastive**. In a batch of pairs $(a_i, b_i)$, such as a question and its answer, the vector of $a_i$ should be closer to its own partner than to all the others. That is a cross-entropy over cosines, with a constant factor $c$ (the inverse of a **temperature**):
#
# $$L = -\frac{1}{N} \sum_{i=1}^{N} \log \frac{\exp\big(c \cos(a_i, b_i)\big)}{\sum_{j=1}^{N} \exp\big(c \cos(a_i, b_j)\big)}$$
#
# The pairs taught it which sentences should have a large cosine. The course reads its weights into `EncoderBlock`.

# %%
needs("minilm")

# %%
from course_lib.pretrained import minilm

sentence_encoder = minilm.load()
count = sum(weight.numel() for weight in sentence_encoder.parameters())
print(f"{len(sentence_encoder.blocks)} blocks, {count / 1e6:.1f} million parameters")
assert f"{count / 1e6:.1f}" == "22.6"

# %% [markdown]
# Three sentences. The first two mean nearly the same, and have only the word *a* in common. **What are the three cosines?**
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
# Now cut *Julius Caesar* into sentences and compute a vector for each. A question gets a vector too, and the answer is the sentence with the largest cosine. This is lesson 02's lookup, with sentences as keys. (Batches hold sentences of similar length, so that little of them is padding.)

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
play = shakespeare.works()["Julius Caesar"]
texts = sentences_of(play)


def embed_all(texts):
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    vectors = torch.empty(len(texts), 384)
    for start in tqdm(range(0, len(order), 32), file=sys.stdout, unit="batch"):
        batch = order[start : start + 32]
        vectors[batch] = sentence_encoder.embed([texts[i] for i in batch])
    return vectors


# %% tags=["once"]
start = perf_counter()
vectors = embed_all(texts)
print(f"{len(texts)} sentences in {perf_counter() - start:.0f} s")

# %% [markdown]
# "Everybody dies once." The play says this in a famous sentence, which has only *once* of these three words. **Which sentence will come first?**

# %%
guess = None  # its first words


# %% tags=["once"]
def search(question, n=3):
    [asked] = sentence_encoder.embed([question])
    likeness = vectors @ asked
    return [(texts[i], likeness[i].item()) for i in likeness.topk(n).indices.tolist()]


reveal(guess, search("Everybody dies once.")[0][0].rstrip("."))
assert "Cowards die many times" in search("Everybody dies once.")[0][0]

# %% tags=["once"]
for question in ("What time is it?", "I cannot sleep.", "The weather frightens people."):
    print(question)
    for text, likeness in search(question):
        print(f"    {likeness:.2f}  {text[:84]}")

# %% [markdown]
# The first question and its best answer have no word in common, so no search for its words could have found it:

# %% tags=["once"]
best = search("What time is it?")[0][0]
in_common = set(shakespeare.words("What time is it?")) & set(shakespeare.words(best))
print(best, "| words in common:", in_common or "none")
assert "hour" in best and not in_common

# %% [markdown]
# It is not an oracle, and it was trained on today's English. Try "A friend has betrayed me", and judge for yourself. A vector for a whole sentence is one thing; what has the encoder done to a single word?

# %% [markdown]
# ## Which *ring* is it?
#
# *Ring* can be a sound or a piece of jewellery. Its embedding is the same in every sentence, so only the blocks can tell the two apart. Describe each sense by three plain sentences, average the states of *ring* in them, and ask after each block: is a new *ring* closer to the jewels or to the bells?

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
    """Return the state of one occurrence of the word, at each level."""
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
# Six lines with *ring*: three with bells, three with jewels. Level 0 is the embedding with its position; level $i$ is the state after block $i$. **At which level are all six on the right side of zero for the first time?**

# %%
guess = None  # from 0 to 6

# %%
rings = {"ring the alarum bell": -1, "the bells that ring to church": -1, "ring the bell": -1}
rings |= {"wear this ring for her sake": 1, "with this ring i thee wed": 1}
rings |= {"give me my ring again": 1}
leans = {line: lean(line, "ring") for line in rings}
right = torch.stack([leans[line] * sense > 0 for line, sense in rings.items()]).all(0)
reveal(guess, int(right.int().argmax()))
assert right[1:].all() and not right[0]

# %% tags=["hide-input"]
title = "From block 1 on, each ring is on its own side of zero"
figure, ax = plots.axes(title, "level", "cosine with jewels − with bells", size=(8.4, 3.6))
for i, (line, values) in enumerate(leans.items()):
    style = {"color": plots.COLOURS[rings[line] > 0], "linestyle": ("-", "--", ":")[i % 3]}
    ax.plot(values, **style, label=line)
ax.axhline(0, color="0.6", linewidth=1)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plots.show(
    figure,
    "Six lines over levels 0 to 6, all within 0.05 of zero at level 0. After block 1 the three "
    "lines with jewels are above zero and the three with bells below, and they stay there.",
)
assert max(abs(float(values[0])) for values in leans.values()) < 0.05

# %% [markdown]
# Would a plain average of the line's embeddings not do the same? Perhaps, for a whole line. But an average gives every word of the line the *same* vector. So put both senses into one line. The average must then give both occurrences of *ring* the same answer. **In how many of these seven lines does the jewel's *ring* lean more towards the jewels than the other *ring* does?**

# %%
guess = None  # from 0 to 7

# %%
mixed = {  # which occurrence is the jewel, 0 or 1
    "ring the bell and give me the ring": 1,
    "she gave me a ring before i heard the telephone ring": 0,
    "wear this ring when the bells ring": 0,
    "the bells ring and he gives her a ring": 1,
    "when the bells ring i give thee this ring": 1,
    "take my ring before the bells ring": 0,
    "he lost his ring when he heard the bell ring": 0,
}
gaps = []  # at level 0, and after the last block
for line, jewel in mixed.items():
    levels = lean(line, "ring", jewel) - lean(line, "ring", 1 - jewel)
    gaps.append((levels[0].item(), levels[-1].item()))
    print("{:+.3f} -> {:+.3f}".format(*gaps[-1]), line, sep="  ")

# %%
first, last = (sum(gap > 0 for gap in level) for level in zip(*gaps))
reveal(guess, last)
assert first == 2 and last >= 6

# %% [markdown]
# At level 0 (on the left) only the positions differ, and just two of the seven are right. This is what attention adds: each token gets its own mixture of its context. The gaps are smaller than those in the figure; perhaps because each *ring* also sees the other's neighbours.

# %% [markdown]
# ## A river's bank, and a plain average (optional)
#
# The lectures' example is *bank*. Six lines, two about money and four about shores. **How many of the six are on the right side after the last block? And how many by a plain average of the line's embeddings, without any block?**

# %%
guess = None  # two numbers from 0 to 6

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
reveal(guess, (sum(banked), averaged))
assert all(banked[:3]) and (sum(banked), averaged) == (3, 6)
assert sum((lean(line, "bank")[-1] > -0.05) == (sense > 0) for line, sense in lines.items()) == 5

# %% [markdown]
# The average wins, six to three. The encoder is right in the three plain lines and wrong in Shakespeare's, where it leans to the money. Some of that is the choice of zero: with the border at -0.05, the encoder would have five right. For a whole line the neighbours alone give the topic away, and an average is all neighbours. Only where one line holds both senses, as above, is it helpless.

# %% [markdown]
# ## What do trained heads look at? (optional)
#
# Lesson 06 found no specialist among the heads of a small reader. MiniLM has 72 heads. `record_weights` keeps the weights of a layer while it works. Over 100 sentences of the play, average each head's weight on five places: the token before, the token itself, the token after, and the special tokens [CLS] and [SEP] at both ends of every sentence.

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


# %% [markdown]
# **How many of the 72 heads give more than half of their weight to one of these five?** And to which?

# %%
guess = None  # a number of heads

# %%
middling = [text for text in texts if 8 <= len(text.split()) <= 25][:100]
found = [places(gaze(text)[0]) for text in middling]
looks = {name: torch.stack([each[name] for each in found]).mean(0) for name in found[0]}
busy = {name: int((shares > 0.5).sum()) for name, shares in looks.items()}
reveal(guess, f"{sum(busy.values())}: {busy}")
assert (busy["before"], busy["after"], busy["[CLS]"]) == (1, 1, 22)

# %% tags=["hide-input"]
names = list(looks)
title = "Over half of the weight (dots): one head before, one after, 22 on [CLS]"
figure, panels = plots.panels(title, names, size=(12, 2.3))
for ax, name in zip(panels, names):
    image = ax.imshow(looks[name], vmin=0, vmax=1)
    rows, columns = (looks[name] > 0.5).nonzero().T.tolist()
    ax.plot(columns, rows, ".", color="black", markersize=5)
    ax.set(xlabel="head", xticks=range(0, 12, 2), xticklabels=range(1, 13, 2))
    ax.set(yticks=range(6), yticklabels=range(1, 7))
panels[0].set_ylabel("block")
figure.colorbar(image, ax=panels, label="mean weight", shrink=0.8)
plots.show(
    figure,
    "Mean weights of 6 blocks by 12 heads, in five maps. Before: one bright cell, block 1, head 3, "
    "above 0.95. After: one, block 2, head 9, above 0.6. [CLS]: 22 cells above 0.5. Itself and "
    "[SEP]: none. Dots mark the cells above 0.5.",
)
assert looks["before"][0, 2] > 0.95 and looks["after"][1, 8] > 0.6

# %% [markdown]
# The third head of block 1 gives nearly all its weight to the token before. Is that grammar, or only position? Shuffle the words of each sentence. **What share of its weight is still on the token before?**

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

# %% [markdown]
# It goes by position alone, like the previous-token head that you built by hand in lesson 07. The 22 heads on [CLS] look at a token that every sentence has. Clark et al. 2019 saw the same at BERT's [SEP], and speculate that it is a "no-op", a way of doing nothing (quoted). Today such a place is called an **attention sink** (Xiao et al. 2024): the weights of a row must sum to one, so a head with nothing to find puts its weight somewhere harmless. We have not tested whether that is so here.

# %% [markdown]
# ## A real translator, one step at a time
#
# The second model has both stacks. Firefox translates web pages on your own machine with such models (Mozilla, trained with Marian: Junczys-Dowmunt et al. 2018). It has six of your encoder blocks, post-norm, and two decoder blocks with cross-attention. In those a small recurrence, the **SSRU**, replaces masked self-attention, because it is faster (Kim et al. 2019).

# %%
needs("marian")

# %%
from course_lib.pretrained import marian

translator = marian.load("en-pt")
count = sum(weight.numel() for weight in translator.parameters())
sentence = "My sister lives in a small house near the sea."
print(f"{count / 1e6:.1f} million parameters")
print(translator.translate(sentence))
assert f"{count / 1e6:.1f}" == "16.9"

# %% [markdown]
# It writes as your `greedy` in lesson 08 does: the encoder reads the English once, and each step of the decoder gives a probability to every possible next token. We print the three likeliest at each step. **At which English word is the translator least certain how to go on?**

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
reveal(guess, f"lives: {min(certainty)[1]}")
assert len(certainty) == 12 and min(certainty)[1] == "▁vive"
assert sorted(certainty)[1][0] > 0.9

# %% [markdown]
# At *lives*: *vive* (0.75) and *mora* (0.25) are both right. All the other tokens that it writes have a probability above 0.9. (▁ marks the beginning of a word.)

# %% [markdown]
# ## Which source word is being translated? (optional)
#
# Each row of cross-attention says where the decoder looks in the source while it writes one token. Mozilla trained one head of the last block to align words, because a web page's links have to end up on the right words. So here is a heat map with a truth to compare to. Portuguese puts most adjectives behind the noun. **For "The black cat", in which order does the head look at the three English words?**

# %%
guess = None  # three words


# %%
def tokens_of(text):
    return [translator.tokenizer.decode([token]) for token in translator.encode(text).tolist()]


def aligned(source):
    target = translator.translate(source)
    return translator.alignment(source, target), tokens_of(target), tokens_of(source)


weights, rows, columns = aligned("The black cat sleeps on the white chair.")
reveal(guess, [columns[i] for i in weights.argmax(-1).tolist()[:3]])
assert [columns[i] for i in weights.argmax(-1).tolist()[:3]] == ["The", "cat", "black"]

# %% tags=["hide-input"]
sources = ["The black cat sleeps on the white chair.", "The European Economic Area was created."]
names = ["black cat, white chair", "European Economic Area"]
title = "Where Portuguese puts adjectives behind nouns, the bright cells leave the diagonal"
figure, panels = plots.panels(title, names, size=(9.6, 4.4))
for ax, source in zip(panels, sources):
    weights, rows, columns = aligned(source)
    image = ax.imshow(weights, vmin=0, vmax=1)
    ax.set_xticks(range(len(columns)), columns, rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(rows)), rows)
    ax.set(xlabel="key: source token", ylabel="query: target token")
figure.colorbar(image, ax=panels, label="weight", shrink=0.8)
plots.show(
    figure,
    "Two alignments of Portuguese rows and English columns, bright along the diagonal, but crossed "
    "at adjectives: gato preto looks at cat, then black; Espaço Económico Europeu at Area, "
    "Economic, European.",
)

# %% [markdown]
# A word may be cut into several tokens: both pieces of *dorme* look at *sleeps*, which is in two pieces itself. Bahdanau et al. 2015 showed the same reversal of *European Economic Area* in French. The last row, `</s>`, spreads its weight: there is nothing to align.

# %% [markdown]
# ## What is *it*? (optional)
#
# Google's article on the Transformer had a famous pair: "The animal didn't cross the street because it was too tired", or "too wide". With *tired*, *it* is the animal; with *wide*, the street. Portuguese shows which one the model takes: *o animal* is masculine, *a rua* feminine, and the adjective must agree. **Will its ending change?**

# %%
guess = None  # for example ("cansado", "larga")

# %%
needs("marian")

# %%
for word in ("tired", "wide", "narrow", "dark"):
    print(translator.translate(f"The animal didn't cross the street because it was too {word}."))

# %% [markdown]
# *Cansado* and *estreito* are masculine: the model takes the animal, even for *narrow*, or it writes the masculine by default. The other two tell nothing: *grande* has one form for both, and *estava muito escuro* can also mean that the night was dark. Does the subject always win? Try a cow, which is feminine, and a river, which is masculine. **For which of these words will the adjective be masculine?**

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
assert (endings["wide"], endings["narrow"]) == ("larga", "estreita")

# %% [markdown]
# One English word changes the gender: *cansada* is the cow, *profundo* the river. (*Frio* may be the river or the weather.) But *larga* and *estreita* say that the cow was wide and narrow. So either the model knows a little of what can be deep, or it has met *profundo* so often that the noun does not matter. Five sentences cannot tell these apart.

# %%
needs()

# %% [markdown]
# ## A language model of 2024
#
# The third model writes. SmolLM2 (Allal et al. 2025) is thirty of your pre-norm blocks with a causal mask, and five parts of 2017 have newer ones in their place:
#
# | 2017 | SmolLM2 | what changed | lesson |
# |:-|:-|:-|:-|
# | post-norm | pre-norm | the stream has no norm on it | 07 |
# | layer norm | RMSNorm | no mean, no bias | 07 |
# | sinusoids, added to the input | rotary | queries and keys are rotated by position | 04 |
# | ReLU network | SwiGLU | a gate | here |
# | keys for each head | keys for each group of heads | a smaller cache | here |
#
# You do not have the last two yet. We build them, and then the cache.

# %% [markdown]
# ## A network with a gate
#
# Why would one change the feed-forward network? Look at the ReLU again. It multiplies each pre-activation $z$ by a gate of 0 or 1: $\max(0, z) = z \cdot [z > 0]$. Two things can be changed. The step can be a smooth sigmoid $\sigma$, which makes the ReLU a **swish**; and the result can be the gate of a second hidden layer, from a matrix of its own:
#
# $$\mathrm{swish}(z) = z\,\sigma(z) = \frac{z}{1 + e^{-z}} \qquad\qquad \underset{n \times d}{y} = \Big(\underset{n \times d_{ff}}{\mathrm{swish}(x W_1)} \odot \underset{n \times d_{ff}}{(x W_3)}\Big) \underset{d_{ff} \times d}{W_2}$$
#
# This is **SwiGLU** (Shazeer 2020), a swish with a **gated linear unit**; ⊙ multiplies entry by entry.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
SIZE = (2.4, 0.7)
for x, name, function in ((1.2, "2017", "max(0, z)"), (6.2, "SwiGLU", "swish(z)")):
    first = diagram.box("$W_1$", (x, 1.3), "network", size=SIZE)
    bend = diagram.box(function, (x, 2.9), "network", size=SIZE)
    diagram.arrow(first, bend, r"$n \times d_{ff}$")
    diagram.arrow((x, 0), first, r"$n \times d$")
    diagram.text(name, (x if x < 2 else 7.9, -0.4))
    out = diagram.box("$W_2$", (x, 4.5 if x < 2 else 6.0), "network", size=SIZE)
    diagram.arrow(out, (x, out.at[1] + 1.2), r"$n \times d$")
    if x < 2:
        diagram.arrow(bend, out, r"$n \times d_{ff}$")
other = diagram.box("$W_3$", (9.6, 1.3), "network", size=SIZE)
gate = diagram.box("⊙", (6.2, 4.4), "weights", size=(1.0, 0.7))
diagram.arrow((6.2, 0.2), other, via=[(9.6, 0.2)])
diagram.arrow(bend, gate, "gate")
diagram.arrow(other, gate, r"$n \times d_{ff}$", via=[(9.6, 4.4)])
diagram.arrow(gate, out, r"$n \times d_{ff}$")
diagram.show(
    "Two feed-forward networks from below. 2017: n by d goes through W1 to n by d_ff, through "
    "max(0, z), and through W2 back to n by d. SwiGLU: x goes to W1 and to W3; W1's result goes "
    "through swish and is multiplied with W3's entry by entry; W2 returns to n by d.",
)

# %% [markdown]
# SwiGLU has three matrices in place of two. The network of 2017, of width $4d$, has $2 \cdot d \cdot 4d$ parameters. SwiGLU has as many if $3 \cdot d \cdot d_{ff} = 8 d^2$, that is, for $d_{ff} = \frac{8}{3} d$. For $d = 576$ that is 1536, and SmolLM2 has exactly this. Compared at equal size, Shazeer found the gated networks better. He does not know why: "we attribute their success, as all else, to divine benevolence" (quoted from his conclusions).
#
# %% [markdown]
# Write the class from scratch: three matrices as `nn.Linear` without biases, under the names of the formula. (`nn.Linear` keeps $W^T$, and $x W$ is `self.w(x)`.)

# %%
# exercise: feed_forward/swiglu

# %%
check("feed_forward/swiglu", SwiGLU)

# %%
SwiGLU = mine("feed_forward/swiglu")

# %% [markdown]
# ## Heads that share their keys
#
# The second new part saves memory. A model that writes needs the keys and values of all tokens so far, in every block. **How many numbers is that for each token, with 30 blocks and 9 heads of $d_k = d_v = 64$?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
kept_by = {groups: 2 * 30 * groups * 64 for groups in (9, 3, 1)}
reveal(guess, kept_by[9])
for groups, numbers in kept_by.items():
    print(f"{groups} key heads: {numbers:6,} a token, {4 * 8192 * numbers / 1e6:5.0f} MB for 8,192")

# %% [markdown]
# In float32 that is over a gigabyte for one long text, twice as much as the 540 MB of the model's own parameters. So let several query heads share one key head and one value head. With $H$ query heads and $G$ groups, query head $h$ (counted from 0) uses group $g(h)$:
#
# $$\underset{n \times d_v}{\mathrm{head}_h} = \mathrm{softmax}\!\left(\frac{Q_h K_{g(h)}^T}{\sqrt{d_k}}\right) V_{g(h)} \qquad g(h) = \left\lfloor \frac{h\,G}{H} \right\rfloor$$
#
# $G = H$ is multi-head attention, $G = 1$ is **multi-query attention** (Shazeer 2019), and between them is **grouped-query attention** (Ainslie et al. 2023).

# %% tags=["hide-input"]
diagram = drawings.Diagram()
names = {9: "multi-head, $G = 9$", 3: "grouped, $G = 3$\n(SmolLM2)", 1: "multi-query, $G = 1$"}
wide = 0.38
for left, (groups, name) in zip((1.4, 5.3, 9.2), names.items()):
    share = 9 // groups
    for role, y in (("key", 0.9), ("value", 0)):
        for g in range(groups):
            x = left + wide * (g * share + (share - 1) / 2)
            diagram.box("", (x, y), role, size=(wide * share - 0.08, 0.55))
    for h in range(9):
        x = left + wide * h
        diagram.box("", (x, 2.4), "query", size=(wide - 0.08, 0.55))
        diagram.arrow((x, 2.12), (x, 1.18), role="weights")
    diagram.text(name, (left + 4 * wide, -0.9), size=10)
for text, y in (("query\nheads", 2.4), ("key\nheads", 0.9), ("value\nheads", 0)):
    diagram.text(text, (1.0, y), size=9, align="right")
diagram.show(
    "Nine query heads, three times. Multi-head: each has a key head and a value head of its own, "
    "nine of each. Grouped: query heads 0 to 2 share one, 3 to 5 the next, 6 to 8 the last, three "
    "of each. Multi-query: all nine share one key head and one value head.",
)

# %%
# exercise: decoder/grouped_query

# %%
check("decoder/grouped_query", grouped_query_attention)

# %%
grouped_query_attention = mine("decoder/grouped_query")

# %%
q, k, v = torch.randn(3, 9, 5, 4)
assert torch.allclose(grouped_query_attention(q, k, v), scaled_dot_product_attention(q, k, v))
shared = grouped_query_attention(q, k[:3], v[:3])
alone = scaled_dot_product_attention(q[4], k[1], v[1])
print("query head 4 of 9 looks at key head 1 of 3:", torch.allclose(shared[4], alone, atol=1e-6))
assert torch.allclose(shared[4], alone, atol=1e-6)

# %% [markdown]
# With as many groups as heads it is plain attention. Now all parts of SmolLM2 are there. Ask it something:

# %%
needs("smollm2")

# %%
from course_lib.pretrained import smollm2

model = smollm2.load()
count = sum(weight.numel() for weight in model.parameters())
print(f"{count / 1e6:.1f} million parameters")
for piece in model.answer("What is the capital of France?", 24):
    print(piece, end="", flush=True)
assert f"{count / 1e6:.1f}" == "134.6" and 2 * 4 * count < 4 * 8192 * kept_by[9]

# %% [markdown]
# ## Read each token once
#
# Your `greedy` in lesson 08 passed the whole text through the decoder for each new token. Most of that work is repeated. In a causal model, the state of token $i$ depends on tokens 1 to $i$ alone. A token that comes later cannot change its key or its value. (With rotary positions, a key is rotated by its own position, once.) So keep them: this is the **key-value cache**. A step computes query, key and value of the new token $t$ only:
#
# $$\underset{t \times d_k}{K_t} = \begin{bmatrix} K_{t-1} \\ k_t \end{bmatrix} \qquad \underset{t \times d_v}{V_t} = \begin{bmatrix} V_{t-1} \\ v_t \end{bmatrix} \qquad \underset{1 \times d_v}{o_t} = \mathrm{softmax}\!\left(\frac{q_t K_t^T}{\sqrt{d_k}}\right) V_t$$

# %%
needs()

# %% tags=["hide-input"]
diagram, cell = drawings.Diagram(), 0.26
token = diagram.box("new token\n" r"$1 \times d_{model}$", (1.0, -0.3), "stream", size=(2.0, 1.0))
rows = {"query": 2.2, "key": -0.3, "value": -3.2}
new = {
    role: diagram.matrix(f"${role[0]}_t$", (1, 4), (3.7, y), role, cell=cell)
    for role, y in rows.items()
}
for role, box in new.items():
    label = {"query": "$W_Q$", "key": "$W_K$", "value": "$W_V$"}[role]
    diagram.arrow(
        token, box, label, role=role, leave={"query": "N", "key": "E", "value": "S"}[role]
    )
whole = {}
for role, name in (("key", r"$K_t: t \times d_k$"), ("value", r"$V_t: t \times d_v$")):
    y = rows[role]
    diagram.matrix("", (5, 4), (6.6, y + 0.86), role, cell=cell)
    row = diagram.matrix(name, (1, 4), (6.6, y), role, cell=cell)
    diagram.arrow(new[role], row, role=role)
    whole[role] = drawings.Box((6.6, y + 0.69), (1.28, 1.88))
    diagram.frame("", *whole[role])
    diagram.text("kept", (5.8, y + 0.86), size=9, align="right")
look = diagram.box(r"$q_t K_t^T / \sqrt{d_k}$" "\nsoftmax", (9.3, 2.2), "weights", size=(2.3, 1.1))
weights = diagram.matrix(r"weights: $1 \times t$", (1, 6), (11.9, 2.2), "weights", cell=cell)
add = diagram.box("weighted sum", (11.7, whole["value"].at[1]), "plain", size=(2.4, 0.8))
out = diagram.matrix(r"$o_t: 1 \times d_v$", (1, 4), (11.7, -4.0), "stream", cell=cell)
diagram.arrow(new["query"], look, role="query")
diagram.arrow(whole["key"], look, role="key", leave="E")
diagram.arrow(look, weights)
diagram.arrow((11.7, 1.35), add, role="weights")
diagram.arrow(whole["value"], add, role="value")
diagram.arrow(add, out)
diagram.show(
    "One step with a cache. The new token, 1 by d_model, gives a query, a key and a value of one "
    "row each. The key is put below the kept rows of K, which becomes t by d_k, the value below V. "
    "The query meets all t keys: weights of 1 by t. They sum the t values to one row, o_t.",
)

# %% [markdown]
# As in lesson 05's race, training reads all tokens in one pass, while **generation** takes a pass for each new token. The cache makes each of those passes as small as it can be. **To write 32 tokens after a prompt of 36, how many tokens pass through the blocks, without the cache and with it?**

# %%
needs("smollm2")

# %%
guess = None  # (without, with)


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
# 1,648 against 67: without the cache, the pass for each new token reads the whole text again.
#
# Now write it. One object serves one block and one text. The first call may bring a whole prompt, later ones a single token, and the attention that the cache calls needs a mask that fits both. Lesson 05's `causal_mask(n_q, n_k)` was made for this: the queries are the last $n_q$ of the $n_k$ keys.

# %%
needs()

# %%
# exercise: key_value_cache/step

# %%
check("key_value_cache/step", KeyValueCache)

# %%
KeyValueCache = mine("key_value_cache/step")

# %%
q, k, v = torch.randn(3, 2, 6, 4)
whole = scaled_dot_product_attention(q, k, v, causal_mask(6))
cache = KeyValueCache(scaled_dot_product_attention)
pieces = zip(*(x.split([4, 1, 1], dim=-2) for x in (q, k, v)))
in_steps = torch.cat([cache(*piece) for piece in pieces], dim=-2)
print(f"a prompt of 4 tokens, then 2 more: differs by {(in_steps - whole).abs().max():.0e}")
assert torch.allclose(in_steps, whole, atol=1e-6)

# %% [markdown]
# ## Run it with mine
#
# Now all three models on your functions. A model's weights do not care who wrote the functions, so `with_parts` makes a twin: the same class, built of other parts, with the same weights. The keywords are those of lesson 08's blocks.


# %%
def with_parts(model, **parts):
    twin = type(model)(model.tokenizer, **parts)
    twin.load_state_dict(model.state_dict(), assign=True)
    return twin.eval().requires_grad_(False)


def my_attention(d_model, heads, rule=scaled_dot_product_attention):
    return MultiHeadAttention(d_model, heads, rule)


def my_network(d_model, d_ff):
    return FeedForward(d_model, d_ff, network=feed_forward)


# %%
needs("smollm2")

# %%
parts = {"rule": grouped_query_attention, "turn": rotary, "norm_layer": rms_norm}
parts |= {"feed_forward": SwiGLU, "block": EncoderBlock, "cache": KeyValueCache}
my_model = with_parts(model, **parts)
opening = "The capital of France is"
print(opening + "".join(my_model.write(opening, 8)))
tokens = torch.tensor(model.tokenizer.encode(opening).ids)
print(f"largest difference of a logit: {(my_model(tokens) - model(tokens)).abs().max():.0e}")
assert torch.allclose(my_model(tokens), model(tokens), atol=1e-2)

# %% [markdown]
# If `mine` has said "your own" above, that was your attention, your rotary positions, your norm, your gated network, your block and your cache, writing English. (Where it said "the library's", the difference is zero by construction.) How much faster does the cache make it?


# %%
from time import perf_counter


def timed(cache, most=32):
    start, pieces, seconds = perf_counter(), [], []
    for piece in my_model.answer("Why is the sky blue?", most, cache):
        pieces.append(piece)
        seconds.append(perf_counter() - start)
    return pieces, seconds


# %% tags=["once"]
(with_cache, fast), (no_cache, slow) = timed(True), timed(False)
print("".join(with_cache))
for name, seconds in (("with the cache", fast), ("without", slow)):
    print(f"{name:15} {len(seconds) / seconds[-1]:5.1f} tokens a second")
print(f"{without / fewer:.0f} times fewer tokens read, {slow[-1] / fast[-1]:.1f} times faster")
assert with_cache == no_cache
claim = "the cache makes writing faster, but no more than twelve times"
measuring.expect(claim, 1 < slow[-1] / fast[-1] < 12, f"{slow[-1] / fast[-1]:.1f} times")

# %% tags=["once", "hide-input"]
title = "The same 32 tokens: with the cache they come sooner"
figure, ax = plots.axes(title, "token", "seconds since the question", size=(7, 3.4))
for name, seconds in (("without the cache", slow), ("with the cache", fast)):
    ax.plot(range(1, len(seconds) + 1), seconds)
    ax.text(32.5, seconds[-1], name, va="center")
ax.set(ylim=(0, None), xlim=(0, 42), xticks=range(0, 33, 8))
plots.show(
    figure,
    "Seconds at which each of 32 tokens came. Both lines rise from the same first token; the one "
    "without the cache rises more steeply.",
)

# %% [markdown]
# The text is the same. It may also be wrong: a model of this size writes fluently and knows little.

# %% [markdown]
# With the cache, 25 times fewer tokens pass through the blocks, but the writing is only a few times faster. Why? A pass has to read every parameter from memory, 540 MB in float32, whether it is over one token or over fifty. So a step does little arithmetic for each number that it fetches; it probably waits for memory and for Python, though we have measured neither. Work that waits for memory is called **memory-bound**; lesson 15 makes use of it. It is one more reason for weights of four bits (at the end of this lesson).

# %% [markdown]
# Is this a good pace? The clock above also counts what else your machine was doing, so the benchmark counts processor time. `python -m benchmarks.generation` lets SmolLM2 write 64 tokens on one thread: from the course's formulas, from the same blocks with PyTorch's fused functions passed by the same keywords, and in Hugging Face's implementation, which gets the same weights. All three write the same text. Beside them is llama.cpp, an engine that many people use: it computes with the file's weights of four bits. We have kept the figures:

# %%
pace = results.load("generation_speed")["figures"]["tokens a second"]
for name, tokens in pace.items():
    print(f"{tokens:5.1f} tokens for each second of processor time: {name}")
formulas, fused, theirs, four_bits = pace.values()
assert 0.78 < formulas / theirs < 0.95 and fused > 0.97 * theirs
assert four_bits > 4 * theirs

# %% [markdown]
# With fused parts, the same blocks are about as fast as Hugging Face's; as formulas, they are about a ninth slower. llama.cpp writes more than four times as fast. It reads far less for each token, and it is compiled from end to end; this comparison does not separate the two.

# %% [markdown]
# Next, the other two models on your functions. (MiniLM keeps its own network, which has a GELU.)

# %%
needs("marian")

# %%
blocks = {"encoder_block": EncoderBlock, "decoder_block": DecoderBlock}
mine_in_it = {"attention": my_attention, "feed_forward": my_network, "norm_layer": layer_norm}
my_translator = with_parts(translator, **blocks, **mine_in_it)
ours, theirs = (each.read(translator.encode(sentence)) for each in (my_translator, translator))
print(my_translator.translate(sentence))
print(f"largest difference of a state: {(ours - theirs).abs().max():.0e}")
assert my_translator.translate(sentence) == translator.translate(sentence)
assert torch.allclose(ours, theirs, atol=1e-4)

# %%
needs("minilm")

# %%
parts = {"block": EncoderBlock, "attention": my_attention, "norm_layer": layer_norm}
my_encoder = with_parts(sentence_encoder, **parts, pool=mean_pool)
ours, theirs = (each.embed(sentences) for each in (my_encoder, sentence_encoder))
print(f"largest difference of a number: {(ours - theirs).abs().max():.0e}")
assert torch.allclose(ours, theirs, atol=1e-4)

# %% [markdown]
# ## A mask that leaks (optional)
#
# Your parts work. Now break one of them on purpose. Give SmolLM2 a rule that ignores the causal mask. The weights stay as they are, and were trained *with* the mask. First measure the mean loss for the next token on five texts, then let the model write. **Without the mask, does the loss rise or fall? And what happens to the writing?**

# %%
needs("smollm2")

# %%
guess = None  # "rises" or "falls", and "goes on" or "is lost"


# %%
def leaking(q, k, v, mask=None):
    return grouped_query_attention(q, k, v)


def loss(model, text):
    tokens = torch.tensor(model.tokenizer.encode(text).ids)
    return F.cross_entropy(model(tokens)[:-1], tokens[1:]).item()


five = """The quick brown fox jumps over the lazy dog. To be, or not to be, that is the question.
Water boils at a hundred degrees at sea level, and at a lower temperature in the mountains.
She put the letter into her pocket, closed the door behind her and walked down to the harbour.
Add the flour to the butter and the sugar, stir until smooth, and bake for twenty minutes.
The committee meets again in March to decide whether the old bridge will be repaired or replaced."""

# %%
leaky = with_parts(model, rule=leaking)
losses = {text: (loss(model, text), loss(leaky, text)) for text in five.splitlines()}
for text, (right, leak) in losses.items():
    print(f"{right:.2f} -> {leak:.2f}   {text[:60]} ...")
said = "".join(leaky.write(opening, 10, cache=False))
print(f"{opening}{said!r}")

# %%
falls = all(leak < right for right, leak in losses.values())
reveal(guess, ("falls" if falls else "rises", "goes on" if "Paris" in said else "is lost"))
assert all(leak < 0.5 * right for right, leak in losses.values())
assert "Paris" in "".join(model.write(opening, 10)) and "Paris" not in said

# %% [markdown]
# The loss falls on all five texts, by more than half: each position now sees the token that it should predict, and the weights make some use of it without having been trained to.
#
# But why can it not write? "When it writes, there is no future to see" is no explanation. At the end of a text there is no future with the mask either: the last row of a causal mask hides nothing. And this model was never trained with a leak, so it never came to rely on one.

# %%
assert causal_mask(7)[-1].all()
tokens = torch.tensor(model.tokenizer.encode(five.splitlines()[1]).ids)
right, leak = model.states(tokens), leaky.states(tokens)
alike = torch.cosine_similarity(right, leak, dim=-1)
print("cosine of each token's state after the last block, with the mask and without:")
print([round(x, 2) for x in alike.tolist()])
assert alike.max() < 0.9

# %% [markdown]
# The cause is in the rows *before* the last. Without the mask, the state of an early token in block 1 already mixes in later ones. Its keys and values in block 2 are computed from that state, so they are not what these weights met in training, and so on through thirty blocks. The last row then looks at keys and values that it cannot use.

# %% [markdown]
# If this is right, there is a cure without the mask. A cache computes keys and values when no later token exists yet. **Feed the leaking model one token at a time, with a cache. Does it write?**

# %%
guess = None  # yes or no, and what

# %%
from course_lib.key_value_cache import use_cache


def one_by_one(model, text, most):
    tokens, first = model.tokenizer.encode(text).ids, 0
    prompt = len(tokens)
    with use_cache(model.rules, KeyValueCache):
        while len(tokens) < prompt + most:
            state = model.states(torch.tensor(tokens[first : first + 1]), first)
            first += 1
            if first == len(tokens):
                tokens.append(int(model.scores(state[-1]).argmax()))
    return model.tokenizer.decode(tokens[prompt:])


# %%
reveal(guess, one_by_one(leaky, opening, 10))
assert one_by_one(leaky, opening, 10) == "".join(model.write(opening, 10))

# %% [markdown]
# Word for word what the model with its mask writes. The rule still ignores every mask; but when a token's keys and values are computed, only earlier tokens are there, and afterwards they are never computed again. The order of reading has replaced the mask. Below, each box names the tokens that have gone into a state, a dashed frame is one pass, and coloured states are unlike those of training: the last token's too, one block later.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
HEIGHT, SIDE = 1.7, (0.95, 0.6)
PANELS = (
    (2.0, "with the mask", (0, 1, 2), False),
    (6.0, "without the mask", (2, 2, 2), False),
    (10.0, "without the mask,\none token at a time", (0, 1, 2), True),
)
for left, name, last_read, in_steps in PANELS:
    rows, strange = [], []
    for level in range(3):
        row = []
        for i, last in enumerate((0, 1, 2) if level == 0 else last_read):
            text = str(i + 1) if level == 0 else " ".join(str(j + 1) for j in range(last + 1))
            # the last token's state goes wrong one block later: it reads the others' states
            met = level == 0 or last_read[0] == 0 or (level == 1 and i == 2)
            at = (left + 1.15 * i, level * HEIGHT)
            row.append(diagram.box(text, at, "stream" if met else "key", size=SIDE))
            strange += [] if met else [row[-1]]
        rows.append(row)
    for below, above in (rows[:2], rows[1:]):
        for i, end in enumerate(above):
            for j, start in enumerate(below[: last_read[i] + 1]):
                (x, y), (to_x, to_y) = start.side("N"), end.side("S")
                corners = [(x, y + 0.12), (to_x, to_y - 0.3)]
                role = "key" if j > i or start in strange else "dim"
                diagram.arrow(start, end, via=corners, role=role)
    for i in range(3 if in_steps else 1):
        middle = left + 1.15 * (i if in_steps else 1)
        diagram.frame("", (middle, HEIGHT), (1.07 if in_steps else 3.4, 2 * HEIGHT + 0.8))
    diagram.text(name, (left + 1.15, -0.95))
for level, text in enumerate(("token", "after\nblock 1", "after\nblock 2")):
    diagram.text(text, (1.15, level * HEIGHT), size=9, align="right")
diagram.show(
    "Three tokens through two blocks, three times. With the mask, the states hold token 1, tokens 1 "
    "and 2, tokens 1 to 3. Without it, all hold tokens 1 to 3: after block 1 the first two are "
    "coloured, as the weights never met such states; after block 2 all three. Without it, but one "
    "token at a time in three passes: as with the mask.",
)

# %% [markdown]
# Two things to remember. A leak makes the numbers *better*, so a loss curve looks like good news: that is why lesson 05 built `leaks_future`. And in a causal model the past does not change: that is what makes the cache right, and what the leak destroys.

# %% [markdown]
# ## Where are the parameters? (optional)
#
# Lesson 08 found three shares for the feed-forward networks of 2017, 67 %, 57 % and 40 %, all of them right: of one encoder block, of all blocks, of the whole model. Here are the same three for these models. **In which of the three models do the networks hold more than half of all parameters?**

# %%
guess = None  # some of the names

# %%
needs("minilm", "marian", "smollm2")


# %%
def size(part):
    return sum(weight.numel() for weight in part.parameters())


models = {
    "MiniLM": (sentence_encoder, sentence_encoder.blocks, sentence_encoder.words),
    "Marian": (translator, [*translator.encoder, *translator.decoder], translator.embedding),
    "SmolLM2": (model, model.blocks, model.words),
}

# %%
share = {}
print("networks: of a block, of all blocks, of the model; embedding: of the model")
for name, (whole, stack, words) in models.items():
    networks = [size(block.feed_forward.sublayer) for block in stack]
    totals = size(stack[0]), sum(map(size, stack)), size(whole)
    share[name] = [x / y for x, y in zip((networks[0], sum(networks), sum(networks)), totals)]
    shares = "  ".join(f"{x:.0%}" for x in share[name])
    print(f"{name:8} {shares};  {size(words) / size(whole):.0%}")

# %%
reveal(guess, [name for name, (*_, of_all) in share.items() if of_all > 0.5])
assert [name for name, (*_, of_all) in share.items() if of_all > 0.5] == ["SmolLM2"]
assert sentence_encoder.words.weight.shape[0] == 30522

# %% [markdown]
# The networks have two thirds to three quarters of a block without cross-attention. Of the whole model they have 31 % to 59 %, because a small model spends much of its size on the embedding: half of MiniLM is one table of 30,522 rows. If you quote such a share, say of what.

# %% [markdown]
# ## One mistake at a time (optional)
#
# A trained model is a strict judge of your code. Four translators, each with one mistake that you have met: pre-norm in place of post-norm; scores not divided; scores divided by $d_k$ in place of $\sqrt{d_k}$; positions forgotten. Here is how each translates "My sister lives in a small house near the sea." **Which is which?**

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
    "positions forgotten": with_parts(translator),
    "divided by d_k": with_parts(translator, attention=attending_by(divided_by_d_k)),
    "pre-norm": with_parts(translator, norm="pre"),
    "not divided": with_parts(translator, attention=attending_by(undivided)),
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
# Four signatures. Without positions, the decoder repeats one character. Divided by $d_k$, the weights are too flat, and the house comes again and again. Not divided, they are too sharp: every phrase is Portuguese, but the sister and the verb are lost. With the norms in the wrong place the states have scales that the weights never met, and the model repeats one name.

# %% [markdown]
# MiniLM with the same mistakes. Its first cosine should be 0.57 and its second -0.09. **Which mistake gives all three sentences nearly the same vector?**

# %%
guess = None  # one of the four names

# %%
needs("minilm")

# %%
encoders = {
    "right": sentence_encoder,
    "not divided": with_parts(sentence_encoder, attention=attending_by(undivided)),
    "divided by d_k": with_parts(sentence_encoder, attention=attending_by(divided_by_d_k)),
    "pre-norm": with_parts(sentence_encoder, norm="pre"),
    "positions forgotten": with_parts(sentence_encoder),
}
encoders["positions forgotten"].positions = nn.Identity()

# %%
cosine_of_unlike = {}
for name, encoder in encoders.items():
    first, second, third = encoder.embed(sentences)
    cosine_of_unlike[name] = (first @ third).item()
    print(f"{name:20} alike {first @ second:5.2f}, unlike {cosine_of_unlike[name]:5.2f}")
reveal(guess, max(cosine_of_unlike, key=cosine_of_unlike.get))
assert cosine_of_unlike["pre-norm"] > 0.9 > 0.3 > cosine_of_unlike["not divided"]

# %% [markdown]
# Without the division, MiniLM's cosines barely change. Now SmolLM2, on the first of the five texts above, next to the leak:

# %%
needs("smollm2")


# %%
def undivided_in_groups(q, k, v, mask=None):
    return grouped_query_attention(q * q.shape[-1] ** 0.5, k, v, mask)


# %% tags=["once"]
mistakes = {
    "right": {},
    "mask forgotten": {"rule": leaking},
    "not divided": {"rule": undivided_in_groups},
    "positions forgotten": {"turn": lambda x, positions, base: x},
    "post-norm": {"norm": "post"},
}
broken_losses = {}
for name, parts in mistakes.items():
    twin = with_parts(model, **parts)
    broken_losses[name] = loss(twin, five.splitlines()[0])
    said = "".join(twin.write(opening, 10, cache=False))
    print(f"{name:20} loss {broken_losses[name]:5.2f}   {said!r}")

# %% tags=["once"]
assert broken_losses["mask forgotten"] < broken_losses["right"] - 0.5
assert all(broken_losses[name] > broken_losses["right"] + 1 for name in list(mistakes)[2:])
del twin

# %% [markdown]
# Three of the four mistakes raise the loss; only the leak lowers it.

# %% [markdown]
# ## Four-bit quantization (optional)
#
# SmolLM2 takes 540 MB in float32; the packed file that you fetched has 93. The embedding takes a little over a byte for each weight; every other matrix is cut, row by row, into blocks of 32 weights. A block (format Q4_1) keeps its smallest weight and a **scale**, each in 16 bits, and for every weight how many steps it is above the smallest: 0 to 15, which is four bits.
#
# $$w_i \approx w_{min} + q_i \cdot step \qquad q_i \in \{0, \dots, 15\}, \quad i = 1, \dots, 32$$
#
# All told, how many bits is that for one weight?

# %%
needs("smollm2")

# %%
from gguf import GGUFReader

from course_lib.pretrained import quantised, smollm2

file = GGUFReader(store.unpacked("smollm2", smollm2.MEMBER))
queries = next(tensor for tensor in file.tensors if tensor.name == "blk.0.attn_q.weight")
block = torch.from_numpy(queries.data.reshape(-1, 20)[0].copy())
print(f"{len(block) * 8 / 32:g} bits a weight:", block.tolist())

# %% [markdown]
# Twenty bytes, the first 32 weights of the first query matrix. Decode them by hand: step and smallest weight are float16, then each byte holds two numbers, $q_i$ in its low half and $q_{i+16}$ in its high half.

# %%
step, least = block[:4].view(torch.float16).float().tolist()
steps = [byte % 16 for byte in block[4:].tolist()] + [byte // 16 for byte in block[4:].tolist()]
weights = torch.tensor([least + step * number for number in steps])
print(f"step {step:.4f}, smallest {least:.4f}; steps {steps[:6]} ...")
print([round(weight, 3) for weight in weights[:6].tolist()], "...")
assert torch.allclose(weights, quantised.q4_1(block[None])[0])

# %% [markdown]
# If each weight went to its nearest step, it is off by at most half a step. The course decodes all weights once, when the model is loaded, and computes in float32. Engines such as llama.cpp compute with the small weights, so that each step of writing reads less memory.

# %% [markdown]
# ## Look inside (optional)
#
# SmolLM2 continues "The capital of France is" with *Paris*. Where in its thirty blocks does *Paris* appear? Take the state after a block, apply the last norm and the output layer directly, and you see what the model would have said if it had stopped there. This is the **logit lens** (Nostalgebraist 2020). `xray` computes it, and shows all the other steps too.
#
# **After which block is *Paris* the likeliest next token for the first time?**

# %%
guess = None  # from 1 to 30

# %%
needs("smollm2")

# %%
from course_lib.xray import xray

page = xray(my_model, opening, columns=16)
said = page.lens()  # after the embedding, then after each block
reveal(guess, said.index("▁Paris"))
print(said[26:])
assert said.index("▁Paris") == 30 and said[29] == "▁capital"

# %%
page

# %% [markdown]
# Only after the last one. One block before, *capital* is the likeliest. (▁ is a space.) Read such a lens with care: the last norm and the output layer were trained for the last state alone.
#
# In *Stages*, choose a box: the code is yours where `mine` said so. In *Attention*, look at all heads at a glance: in how many does the first token get nearly everything? They may be attention sinks again.

# %%
needs("marian")

# %% [markdown]
# And the translator. In *Attention* you see the head that was trained to align words, as lines. Point at *preto*: which English word is read while it is written?

# %%
from course_lib.xray import xray

xray(my_translator, "The black cat sleeps.", columns=16)

# %% [markdown]
# ## Break it (optional)
#
# - In your `KeyValueCache`, put the new keys and values before the old ones. Does SmolLM2 notice? And with rotary positions left out?
# - In your `SwiGLU`, let `w_1` and `w_3` change places. How does the loss on the five texts change?
# - Give SmolLM2 one group of keys: average its three key heads and its three value heads. Can it still write?
# - Which sentences of *Julius Caesar* does a plain average of embeddings find for "Everybody dies once."?

# %% [markdown]
# ## What to remember
#
# MiniLM, Marian and SmolLM2 run on your parts, except for MiniLM's GELU network and Marian's recurrence. The newer parts are a gate, shared keys and a cache. A leaking mask improves the loss and ruins the writing.
#
# | | |
# |:-|:-|
# | mean pooling | $s = \sum_i m_i h_i / \sum_i m_i$ |
# | SwiGLU | $\big(\mathrm{swish}(x W_1) \odot x W_3\big) W_2, \qquad \mathrm{swish}(z) = z\,\sigma(z)$ |
# | its size | $3\,d\,d_{ff}$; equal to 2017's $8 d^2$ for $d_{ff} = 8d/3$ |
# | grouped queries | head $h$ uses keys and values $g(h) = \lfloor h G / H \rfloor$ |
# | key-value cache | $K_t = [K_{t-1}; k_t], \quad o_t = \mathrm{softmax}(q_t K_t^T / \sqrt{d_k})\, V_t$ |
# | its size | $layers \cdot G \cdot (d_k + d_v)$ numbers for each token |
# | tokens read, $m$ after a prompt of $p$ | $p + m - 1$ with the cache, $\sum_{i=0}^{m-1} (p + i)$ without |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why can an encoder such as MiniLM not use a key-value cache?</summary>
#
# Without a causal mask, a new token changes the states of all earlier ones, and so all keys and values from block 2 on.
# </details>
#
# <details><summary>2. A model has 32 blocks, 32 query heads, 8 key heads and d_k = d_v = 128. How large is its cache for 8,192 tokens at two bytes a number?</summary>
#
# 32 · 8 · (128 + 128) = 65,536 numbers a token, so 65,536 · 8,192 · 2 bytes = 1.07 GB. With 32 key heads it would be four times that.
# </details>
#
# <details><summary>3. Grouped queries save memory. Do they save multiplications in the scores?</summary>
#
# No. Each of the $H$ query heads still meets every key. Only the projections to keys and values are smaller.
# </details>
#
# <details><summary>4. What does SwiGLU compute if the gate's inputs are all very large and positive?</summary>
#
# swish(z) is then nearly z, so $(x W_1 \odot x W_3) W_2$: every output is quadratic in x.
# </details>
#
# <details><summary>5. Your training loss is suddenly far better than anyone else's. What do you test first?</summary>
#
# Whether the future leaks: lesson 05's `leaks_future`, or let the model write.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Others trained these models. In lesson 10 you train a language model yourself.
#
# Reimers & Gurevych 2019 (sentence vectors); Wang et al. 2020b (MiniLM) and the [model card](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) of all-MiniLM-L6-v2; Devlin et al. 2019 (BERT); Clark et al. 2019 (BERT's heads); Xiao et al. 2024 (attention sinks); Nostalgebraist 2020 (the logit lens); Junczys-Dowmunt et al. 2018 (Marian); Kim et al. 2019 (recurrence in the decoder); Bahdanau et al. 2015 (alignment); Shazeer 2020 (SwiGLU); Shazeer 2019 (multi-query attention); Ainslie et al. 2023 (grouped queries); Allal et al. 2025 (SmolLM2). Lectures: L1 to L5.
