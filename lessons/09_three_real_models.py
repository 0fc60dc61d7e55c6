# %% [markdown]
# # 09 · Three real models
#
# **75 minutes · after lesson 08 · needs `minilm` (84 MB), `marian` (35 MB) and `smollm2` (93 MB)**
#
# Every part of a Transformer that you have built so far ran in toy models. **Do the models that people use really consist of these parts?** In this lesson your own functions run in three of them: one compares sentences, one translates, one answers questions.
#
# At the end you can read a checkpoint, say what is new since 2017, and explain how a model that predicts the next token can answer you.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots

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
        text, role = "" if name == "shared" else name, NEW.get(name, "plain")
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

# %%
from course_lib.data import needs, store
from course_lib.feed_forward import FeedForward

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
causal_mask, rotary = mine("masks/causal"), mine("positions/rotary")
feed_forward = mine("feed_forward/position_wise")
MultiHeadAttention = mine("multi_head/attention")
layer_norm, rms_norm = mine("add_norm/layer_norm"), mine("add_norm/rms_norm")
EncoderBlock, DecoderBlock = mine("encoder/block"), mine("decoder/block")

# %% [markdown]
# Three outlines of lesson 08's drawing. Colour marks what the 2017 model does not have; residual connections are not drawn. What a token may look at decides what a model can be trained to do:
#
# | model | family | a token may look at | first trained to | parameters |
# |:-|:-|:-|:-|--:|
# | MiniLM | encoder only | all tokens | imitate a **masked language model**, which fills in blanks (BERT's task) | 22.6 M |
# | Marian | encoder-decoder | the whole source, and earlier target tokens | write the translation | 16.9 M |
# | SmolLM2 | decoder only | itself and earlier tokens (causal mask) | predict the next token | 134.5 M |

# %% [markdown]
# ## A checkpoint becomes your block
#
# The first model is `all-MiniLM-L6-v2`: six post-norm blocks, $d_{model} = 384$, 12 heads, learned positions, and GELU (a smooth ReLU) in the feed-forward network. It goes back to Microsoft's MiniLM, which was trained by **distillation** (Wang et al. 2020b): it imitates the attention of a larger BERT-like model. Ours was then **fine-tuned** on a billion pairs of sentences that belong together.
#
# Its weights are one file, a **checkpoint**: a header in JSON (names, shapes, offsets), then nothing but numbers. We can read a tensor by hand. The first 8 bytes are the header's length:

# %%
needs("minilm")

# %%
import json

from course_lib.pretrained import minilm

checkpoint = store.unpacked("minilm", minilm.FOLDER + "model.safetensors")
data = checkpoint.read_bytes()
length = int.from_bytes(data[:8], "little")
header = json.loads(data[8 : 8 + length])
entry = header["encoder.layer.0.attention.self.query.weight"]
print(entry)
start, end = (8 + length + offset for offset in entry["data_offsets"])
by_hand = torch.frombuffer(bytearray(data[start:end]), dtype=torch.float32).view(entry["shape"])

# %% [markdown]
# To load it into your block is to rename. A block has 16 tensors; here are six of the first block's (values, biases and second norm follow the same pattern). A `Linear` of torch keeps $W^T$; lesson 05's `feed_forward` computes $xW$, so two matrices are transposed.
#
# | their name, after `encoder.layer.0.` | our name, after `blocks.0.` | our shape |
# |:-|:-|:-|
# | `attention.self.query.weight` | `attention.sublayer.attention.w_q.weight` | 384 × 384 |
# | `attention.self.key.weight` | `attention.sublayer.attention.w_k.weight` | 384 × 384 |
# | `attention.output.dense.weight` | `attention.sublayer.attention.w_o.weight` | 384 × 384 |
# | `attention.output.LayerNorm.weight` | `attention.gain` | 384 |
# | `intermediate.dense.weight` | `feed_forward.sublayer.w_1` (transposed) | 384 × 1536 |
# | `output.dense.weight` | `feed_forward.sublayer.w_2` (transposed) | 1536 × 384 |

# %% tags=["hide-input"]
encoder = minilm.load()
ours = encoder.state_dict()["blocks.0.attention.sublayer.attention.w_q.weight"]
print("the tensor read by hand is the block's w_q:", torch.equal(by_hand, ours))
assert torch.equal(by_hand, ours)
table = {
    "attention.self.query.weight": "attention.sublayer.attention.w_q.weight",
    "attention.self.key.weight": "attention.sublayer.attention.w_k.weight",
    "attention.output.dense.weight": "attention.sublayer.attention.w_o.weight",
    "attention.output.LayerNorm.weight": "attention.gain",
    "intermediate.dense.weight": "feed_forward.sublayer.w_1",
    "output.dense.weight": "feed_forward.sublayer.w_2",
}
for theirs, name in table.items():
    entry = header[f"encoder.layer.0.{theirs}"]
    start, end = (8 + length + offset for offset in entry["data_offsets"])
    found = torch.frombuffer(bytearray(data[start:end]), dtype=by_hand.dtype).view(entry["shape"])
    found = found.T if "sublayer.w_" in name else found
    assert torch.equal(found, encoder.state_dict()[f"blocks.0.{name}"])
assert sum("blocks.0." in name for name in encoder.state_dict()) == 16
assert f"{sum(w.numel() for w in encoder.parameters()) / 1e6:.1f}" == "22.6"

# %% [markdown]
# Weights do not care who wrote the functions. So `with_parts` makes a twin: the same class, built from other parts, with the same weights. Here are six of *your* blocks with MiniLM's weights (only the GELU network is the library's):


# %%
def with_parts(model, **parts):
    twin = type(model)(model.tokenizer, **parts)
    twin.load_state_dict(model.state_dict(), assign=True)
    return twin.eval().requires_grad_(False)


def my_attention(d_model, heads, rule=scaled_dot_product_attention):
    return MultiHeadAttention(d_model, heads, rule)


parts = {"block": EncoderBlock, "attention": my_attention, "norm_layer": layer_norm}
my_encoder = with_parts(encoder, **parts)
tokens, mask = my_encoder.tokens(["A man is playing a guitar on stage."])
print("a state for each token:", tuple(my_encoder(tokens, mask).shape))

# %% [markdown]
# An encoder gives a state $h_i$ to each token. To compare sentences we need one vector each; the mean of the states works well (Reimers & Gurevych 2019). In a batch, short sentences are padded; $m_i$ is 1 for a real token and 0 for padding:
#
# $$\underset{d}{s} = \frac{\sum_{i=1}^{n} m_i\, h_i}{\sum_{i=1}^{n} m_i} \qquad \underset{n \times d}{H}, \quad \underset{n}{m}$$

# %%
needs()

# %%
# exercise: encoder/mean_pool

# %%
check("encoder/mean_pool", mean_pool)

# %%
mean_pool = mine("encoder/mean_pool")

# %% [markdown]
# Fine-tuning was **contrastive**: a sentence's vector should have a larger cosine with its partner's than with all others in the batch. The first two of these sentences mean nearly the same, and share only the word *a*. **What are the three cosines?**
#
# 1. A man is playing a guitar on stage.
# 2. Someone performs music with a string instrument.
# 3. The stock market fell sharply on Monday.

# %%
needs("minilm")

# %%
guess = None  # (1 with 2, 1 with 3, 2 with 3)

# %%
sentences = [
    "A man is playing a guitar on stage.",
    "Someone performs music with a string instrument.",
    "The stock market fell sharply on Monday.",
]
vectors = with_parts(encoder, **parts, pool=mean_pool).embed(sentences)
cosines = (vectors @ vectors.T)[[0, 0, 1], [1, 2, 2]]
reveal(guess, tuple(round(x, 2) for x in cosines.tolist()))

# %% [markdown]
# Is that MiniLM, or only something like it? We ran Hugging Face's `BertModel` (transformers 5.23.0) once, on the same file and sentences. Its cosines are the constants below; the course's test `test_against_hugging_face.py` repeats it.

# %% tags=["hide-input"]
THEIRS = torch.tensor([0.574378, -0.092191, -0.066028])
print("yours, or the library's:", [round(x, 6) for x in cosines.tolist()])
print("Hugging Face's:         ", [round(x, 6) for x in THEIRS.tolist()])
assert torch.allclose(cosines, THEIRS, atol=1e-4)

# %% [markdown]
# ## Which *ring* is it?
#
# What have the blocks done to a single word? *Ring* can be a sound or jewellery. Describe each sense by three lines, average the states of *ring* in them, and ask: to which is a new *ring* closer? Careful: "the bells *ring*" is a verb, so the obvious lines compare parts of speech as well as senses. The control: verbs without any bell.

# %% tags=["hide-input"]
from course_lib.pretrained.word_senses import described, lean, states

jewels = ["he gave her a gold ring", "she wears a diamond ring", "the ring was made of silver"]
verbs = ["the church bells ring at noon", "please ring the door bell", "i heard the telephone ring"]
jewel, verb = described(encoder, jewels, "ring"), described(encoder, verbs, "ring")
controls = ["they ring the bird with a silver band", "soldiers ring the city with walls"]
controls += ["the hills ring the valley", "they ring the trees with stones"]
print("below zero: closer to bells that are verbs than to jewels")
for line in controls:
    found = lean(states(encoder, line, "ring"), verb, jewel)[-1]
    print(f"{found:+.2f}  {line}")
    assert found < 0

# %% [markdown]
# All four lean to the bells, and none has a bell. So from now on every *ring* is a **noun**, and both senses are in one line: an average of the line would give both the same vector. Is the jewel closer to the jewels than the sound is? In eight of eight lines.

# %% tags=["hide-input"]
nouns = [
    "the loud ring of the church bells woke us",
    "we heard the ring of the door bell",
    "the ring of the telephone startled me",
]
of_sound = {  # which occurrence is the jewel: 0 or 1
    "the ring of the bell startled her and she dropped her gold ring": 1,
    "he turned the ring on his finger and waited for the ring of the telephone": 0,
    "she wore a silver ring and heard the ring of the church bells": 0,
    "the ring of the door bell woke him and he put on his ring": 1,
    "a ring at the door and a ring in a small box": 1,
    "the jeweller sold a ring before the first ring of the bell": 0,
    "at the last ring of the alarm the thief hid the ring": 1,
    "his ring fell to the floor at the ring of the clock": 0,
}


def count(lines, bells, jewels, alone=False):
    """Count the lines whose jewel leans to the jewels more than the other ring does, by block."""
    senses = [described(encoder, x, "ring") for x in (bells, jewels)]
    right = torch.zeros(7, dtype=torch.int)
    for line, i in lines.items():
        jewel, sound = (
            lean(states(encoder, line, "ring", which, alone=alone), *senses) for which in (i, 1 - i)
        )
        right += jewel > sound
    return right.tolist()


print(count(of_sound, nouns, jewels)[-1], "of 8; the first:", *list(of_sound)[:2], sep="\n  ")
assert count(of_sound, nouns, jewels)[-1] == 8

# %% [markdown]
# Are we done? Look at the lines again: the sound is almost always "the ring *of* something", in the tests and in all three descriptions. So here are eight lines in which the *jewel* is "the ring of": "at the first ring she dropped the ring of her mother". **How many of these eight are right?**

# %%
guess = None  # from 0 to 8

# %% tags=["hide-input"]
of_jewel = {
    "at the first ring she dropped the ring of her mother": 1,
    "he lost the ring of the king and nobody heard the ring": 0,
    "a ring at the door woke the man with the ring of gold": 1,
    "the telephone gave a ring as he polished the ring of the queen": 1,
    "she took off the ring of her husband when the clock gave a ring": 0,
    "the ring of the bishop was on the table when i heard a ring at the gate": 0,
    "after one ring of the bell the bride looked at the ring of the groom": 1,
    "the ring of the duke fell at the ring of the bells": 0,
}
reveal(guess, count(of_jewel, nouns, jewels)[-1])
for name, lines in (("the sound is *the ring of*", of_sound), ("the jewel is", of_jewel)):
    print(f"{name:26} after 0 to 6 blocks:", *count(lines, nouns, jewels), "of 8 right")
assert count(of_jewel, nouns, jewels)[2:5] == [2, 2, 2] and count(of_jewel, nouns, jewels)[-1] == 5
assert all(line.split("ring")[i + 1].startswith(" of") for line, i in of_jewel.items())
fair = (
    [nouns[0], "the telephone gave a loud ring", "the ring was heard in every room"],
    ["the gold ring of the queen was stolen", "he gave her a diamond ring", jewels[2]],
)
both = {
    alone: [count(lines, *fair, alone)[-1] for lines in (of_sound, of_jewel)]
    for alone in (False, True)
}
print("descriptions with one *ring of* each:", sum(both[False]), "of 16 right;", end=" ")
print("looking only at itself:", sum(both[True]), "of 16")
assert (both[False], both[True]) == ([6, 8], [4, 4])


# %% tags=["hide-input"]
@torch.no_grad()
def near(line, which, most):
    """Return the mean of the embeddings of some tokens on each side of a ring, without any block."""
    read = encoder.tokenizer.encode(line)
    place = [i for i, token in enumerate(read.tokens) if token == "ring"][which]
    around = [i for i in range(1, len(read) - 1) if 0 < abs(i - place) <= most]
    ids = [read.ids[i] for i in around if read.tokens[i] != "ring"]
    return encoder.words(torch.tensor(ids)).mean(0)


print("no block, the mean of the embeddings on each side; so many, and right of 16:")
averaged = {}
for most in (1, 2, 3, 4, 5, 6, 8):
    senses = [torch.stack([near(line, 0, most) for line in lines]).mean(0) for lines in fair]
    averaged[most] = sum(
        (lean(near(line, i, most), *senses) > lean(near(line, 1 - i, most), *senses)).item()
        for line, i in (of_sound | of_jewel).items()
    )
print("  ".join(f"{most}: {right}" for most, right in averaged.items()))
assert list(averaged.values()) == [10, 10, 14, 16, 15, 13, 12]

# %% [markdown]
# Five. Grammar alone would fail in six (in two both rings have *of*), meaning alone in none: the last state mixes both, so grammar helped in the first eight. With fair descriptions (each sense has one *ring of*) attention gets 14 of all 16, and the same encoder whose *ring* may look only at itself gets 8. So the blocks bring the neighbours in. But a mean of nearby embeddings, without any block, gets 10 to 16 (1 to 8 on each side; best with four). These lines do not show that attention does more.

# %% [markdown]
# ## A real translator
#
# The second model has both stacks. Firefox translates web pages on your own machine with such models (Mozilla, trained with Marian: Junczys-Dowmunt et al. 2018): six of your encoder blocks, post-norm, and two decoder blocks with cross-attention. In those a small recurrence, the **SSRU**, replaces masked self-attention, because it is faster (Kim et al. 2019):
#
# $$f_t = \sigma(x_t W_f + b_f) \qquad c_t = f_t \odot c_{t-1} + (1 - f_t) \odot x_t W \qquad o_t = \max(0, c_t)$$

# %%
needs("marian")

# %%
from course_lib.pretrained import marian

translator = marian.load("en-pt")


def my_network(d_model, d_ff):
    return FeedForward(d_model, d_ff, network=feed_forward)


parts = {"attention": my_attention, "feed_forward": my_network, "norm_layer": layer_norm}
blocks = {"encoder_block": EncoderBlock, "decoder_block": DecoderBlock}
my_translator = with_parts(translator, **blocks, **parts)
sentence = "My sister lives in a small house near the sea."
print(my_translator.translate(sentence))
assert my_translator.translate(sentence) == translator.translate(sentence)

# %% [markdown]
# All of that is yours but the recurrence, the embedding and the tokenizer. (Where `mine` has said "the library's", it is not yours *yet*.)
#
# Where does it look while it writes? Mozilla trained one head of the last cross-attention to align words, so that links end up on the right words. Portuguese puts most adjectives after the noun:


# %% tags=["hide-input"]
def tokens_of(text):
    return [translator.tokenizer.decode([token]) for token in translator.encode(text).tolist()]


sources = ["The black cat sleeps on the white chair.", "The European Economic Area was created."]
names = ["black cat, white chair", "European Economic Area"]
title = "Where Portuguese puts adjectives after nouns, the bright cells leave the diagonal"
figure, panels = plots.panels(title, names, size=(9.6, 4.4))
for ax, source in zip(panels, sources):
    target = translator.translate(source)
    weights = translator.alignment(source, target)
    rows, columns = tokens_of(target), tokens_of(source)
    image = ax.imshow(weights, vmin=0, vmax=1)
    ax.set_xticks(range(len(columns)), columns, rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(rows)), rows)
    ax.set(xlabel="key: source token", ylabel="query: target token")
    if source is sources[0]:
        assert [columns[i] for i in weights.argmax(-1).tolist()[:3]] == ["The", "cat", "black"]
figure.colorbar(image, ax=panels, label="weight", shrink=0.8)
plots.show(
    figure,
    "Two alignments of Portuguese rows and English columns, bright along the diagonal, but crossed "
    "at adjectives: gato preto looks at cat, then black; Espaço Económico Europeu at Area, "
    "Economic, European.",
)

# %% [markdown]
# Bahdanau et al. 2015 showed this reversal in French.
#
# ## One mistake at a time
#
# Four translators, each with one mistake: pre-norm where the weights expect post-norm; scores not divided; scores divided by $d_k$ and not by $\sqrt{d_k}$; positions forgotten (all zero). **Which two have a wrong scale?**


# %% tags=["hide-input"]
def undivided(q, k, v, mask=None):
    return softmax(dot_scores(q, k), mask) @ v


def divided_by_d_k(q, k, v, mask=None):
    return softmax(dot_scores(q, k) / q.shape[-1], mask) @ v


def attending_by(rule):
    return lambda d_model, heads: MultiHeadAttention(d_model, heads, rule)


broken = {
    "positions forgotten": with_parts(translator),
    "divided by d_k": with_parts(translator, attention=attending_by(divided_by_d_k)),
    "pre-norm": with_parts(translator, norm="pre"),
    "not divided": with_parts(translator, attention=attending_by(undivided)),
}
positions = broken["positions forgotten"].embedding.positions
start = positions[0].clone()
positions.zero_()
for letter, each in zip("ABCD", broken.values()):
    print(f"{letter}: {each.translate(sentence)[:90]}")

# %%
guess = None  # two letters, such as "AB"

# %%
reveal(guess, "BD")
print(*(f"{letter}: {name}" for letter, name in zip("ABCD", broken)), sep=", ")

# %% [markdown]
# Does each mistake have a signature? Here are five more sentences. We count what can be counted: translations that repeat themselves (under a third of their words are different), those that are nothing but the letter s, and those equal to the right model's.

# %% tags=["hide-input"]
six = [sentence, "The children are playing in the garden.", "Where is the airport?"]
six += ["We have no time to lose.", "The old man read the newspaper in the kitchen."]
six += ["She bought three red apples at the market."]
said = {name: [each.translate(text) for text in six] for name, each in broken.items()}
right = [translator.translate(text) for text in six]
print(f"{'of six translations':20}     repeats  only s  equal")
for name, texts in said.items():
    repeats = sum(len(set(x.split())) * 3 < len(x.split()) for x in texts)
    only_s = sum(set(x) == {"s"} for x in texts)
    equal = sum(x == y for x, y in zip(texts, right))
    print(f"{name:20}  {repeats:10}  {only_s:6}  {equal:5}")
    expected = {"positions forgotten": (0, 6, 0), "pre-norm": (6, 0, 0)}
    assert expected.get(name, (repeats, only_s, equal)) == (repeats, only_s, equal)
for name in ("divided by d_k", "not divided"):
    print(f"\n{name}:", *said[name], sep="\n  ")
assert said["not divided"][3] == right[3] and said["divided by d_k"] != right
positions.copy_(start.expand_as(positions))
unordered = [broken["positions forgotten"].translate(text) for text in six]
print("\nthe first position everywhere:", *unordered, sep="\n  ")
assert unordered[3] == "nós não temos tempo." and not any({*x} == {"s"} for x in unordered)

# %% [markdown]
# In this model two mistakes have a signature in six of six. Zeroed positions give nothing but *s*, norms in the wrong place repeat a word on and on. But zeros take more than the order: with the first position's row for *every* token come words of the sentence: *nós não temos tempo.*
#
# A wrong scale of the scores has none: some sentences are right, others fluent and wrong, and divided by $d_k$ two are plainly broken.

# %%
needs()

# %% [markdown]
# ## What is new since 2017
#
# The third model writes: **SmolLM2-135M-Instruct** (Allal et al. 2025), thirty of your pre-norm blocks with a causal mask. Ours is a copy in **four bits** a weight (93 MB); every number below was measured on this copy. Five differences from 2017 matter:
#
# | 2017 | SmolLM2 | what changed | lesson |
# |:-|:-|:-|:-|
# | post-norm | pre-norm | the stream has no norm on it | 07 |
# | layer norm | RMSNorm | no mean, no bias | 07 |
# | sinusoids, added to the input | rotary | queries and keys are rotated by position | 04 |
# | ReLU network | SwiGLU | a gate | here |
# | keys for each head | keys for each group of heads | a smaller cache | here |

# %% [markdown]
# **A gate.** The ReLU multiplies $z$ by a gate of 0 or 1: $\max(0, z) = z \cdot [z > 0]$. Make the step a smooth sigmoid $\sigma$, and you have the **swish**, which PyTorch and most configurations call **SiLU**. Then let it gate a second hidden layer, from a matrix of its own; ⊙ multiplies entry by entry. This is **SwiGLU** (Shazeer 2020):
#
# $$\mathrm{swish}(z) = z\,\sigma(z) \qquad\qquad \underset{n \times d}{y} = \Big(\underset{n \times d_{ff}}{\mathrm{swish}(x W_1)} \odot \underset{n \times d_{ff}}{(x W_3)}\Big) \underset{d_{ff} \times d}{W_2}$$

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
# In checkpoints $W_1$, $W_3$ and $W_2$ are called `gate_proj`, `up_proj` and `down_proj`. Three matrices for two: SwiGLU is as large as the network of 2017 if $3\,d\,d_{ff} = 2 \cdot d \cdot 4d$, so $d_{ff} = \frac83 d$. For $d = 576$ that is 1536, and SmolLM2 has exactly this.
#
# Write it from scratch: three `nn.Linear` without biases, under the names of the formula. (`nn.Linear` keeps $W^T$; $xW$ is `self.w(x)`.)

# %%
# exercise: feed_forward/swiglu

# %%
check("feed_forward/swiglu", SwiGLU)

# %%
SwiGLU = mine("feed_forward/swiglu")

# %% [markdown]
# **Shared keys.** A model that writes keeps the keys and values of all earlier tokens. To make that memory smaller, several query heads share one key head and one value head. With $H$ query heads and $G$ groups, query head $h$ (from 0) uses group $g(h)$. $G = H$ is multi-head attention, $G = 1$ **multi-query attention** (Shazeer 2019), between them is **grouped-query attention** (Ainslie et al. 2023):
#
# $$\underset{n \times d_v}{\mathrm{head}_h} = \mathrm{softmax}\!\left(\frac{Q_h K_{g(h)}^T}{\sqrt{d_k}}\right) V_{g(h)} \qquad g(h) = \left\lfloor \frac{h\,G}{H} \right\rfloor$$

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

# %% [markdown]
# **One thing that names do not tell.** Su et al. 2021 rotate a head's columns $2c$ and $2c + 1$ as a pair. Our file of SmolLM2, in llama.cpp's format GGUF, has this order; Hugging Face's file has the other one. Your `rotary` rotates columns $c$ and $c + d_k/2$. Both are right, but rows of $W_Q$ and $W_K$ must change places when they are loaded. Here is a function that should do it. All shapes are right, and nothing fails.

# %%
# exercise: positions/pairs_to_halves

# %%
check("positions/pairs_to_halves", pairs_to_halves)

# %%
needs("smollm2")

# %%
from course_lib.pretrained import smollm2

model = smollm2.load()
parts = {"rule": grouped_query_attention, "turn": rotary, "norm_layer": rms_norm}
my_model = with_parts(model, **parts, feed_forward=SwiGLU, block=EncoderBlock)
opening = "The capital of France is"
print(opening + "".join(my_model.write(opening, 8)))
tokens = torch.tensor(model.tokenizer.encode(opening).ids)
logit = my_model(tokens)[-1, model.tokenizer.encode(" Paris").ids[0]].item()
print(f"the logit of Paris: {logit:.4f}; in Hugging Face's LlamaForCausalLM: 17.3713")
assert abs(logit - 17.371265) < 1e-3
# RMSNorm has no bias: those of our norms are never used
used = [w for name, w in model.named_parameters() if not name.endswith("bias")]
assert sum(w.numel() for w in used) == 134_515_008

# %% [markdown]
# Again a constant from another implementation: transformers 5.23.0, given the same decoded weights. And with $W_Q$ and $W_K$ in the file's order of rows? We compare the loss of the next token, too.

# %% tags=["hide-input"]
state = dict(model.state_dict())
for name in state:
    if ".w_q." in name or ".w_k." in name:
        state[name] = rearrange(state[name], "(h two pair) d -> (h pair two) d", two=2, pair=32)
broken_rows = smollm2.SmolLM2(model.tokenizer)
broken_rows.load_state_dict(state, assign=True)
five = """The quick brown fox jumps over the lazy dog. To be, or not to be, that is the question.
Water boils at a hundred degrees at sea level, and at a lower temperature in the mountains.
She put the letter into her pocket, closed the door behind her and walked down to the harbour.
Add the flour to the butter and the sugar, stir until smooth, and bake for twenty minutes.
The committee meets again in March to decide whether the old bridge will be repaired or replaced."""


def loss(model, text):
    tokens = torch.tensor(model.tokenizer.encode(text).ids)
    return F.cross_entropy(model(tokens)[:-1], tokens[1:]).item()


print(repr(opening + "".join(broken_rows.write(opening, 8))))
right, wrong = (
    sum(loss(each, text) for text in five.splitlines()) / 5 for each in (model, broken_rows)
)
print(f"mean loss on five texts: {right:.2f}; with the rows in the file's order: {wrong:.2f}")
assert (round(right, 1), round(wrong, 1)) == (3.7, 4.3)
del broken_rows, state

# %% [markdown]
# This prompt hides the bug: the sentence is right. The mean loss shows it, 4.3 for 3.7. So measure a loaded model; do not only read it.
#
# Look inside: `xray` shows every step of a pass, with your code where it is yours. In *Attention*, look at all heads of a block. Where the first token gets nearly everything, you see the attention sinks of lesson 06.

# %%
from course_lib.xray import xray

xray(my_model, opening, columns=16)

# %% [markdown]
# ## How does it answer me?
#
# This model predicts the next token. Why does it answer a question, and not go on with it? First `write("Why is the sky blue?")`: tokens are appended until the model predicts `<|im_end|>`, its token for the end of a message. **What will it write after the bare question?**

# %%
guess = None  # a few words, or what kind of text

# %%
question = "Why is the sky blue?"
reveal(guess, repr("".join(my_model.write(question, 30))))
tokens = torch.tensor(model.tokenizer.encode(question).ids)
best = softmax(my_model(tokens)[-1]).topk(3)
for token, p in zip(best.indices.tolist(), best.values.tolist()):
    print(f"{p:.2f}  {model.tokenizer.id_to_token(token)!r}")
assert model.tokenizer.id_to_token(int(best.indices[0])) == "<|im_end|>"
assert abs(best.values[0].item() - 0.45) < 0.01

# %% [markdown]
# Nothing. For this question the likeliest next token, with 0.45, says that the message is *over*. Now do not stop there. Append `<|im_end|>` like any other token, and go on predicting:


# %%
def go_on(model, text, most):
    """Append the likeliest token, whatever it is."""
    tokens = model.tokenizer.encode(text).ids
    for _ in range(most):
        tokens.append(int(model(torch.tensor(tokens))[-1].argmax()))
    return model.tokenizer.decode(tokens, skip_special_tokens=False)


print(go_on(my_model, question, 22))
assert "<|im_end|>\n<|im_start|>assistant\nThe sky appears blue" in go_on(my_model, question, 22)

# %% [markdown]
# It predicts a *conversation*: the message ends, and a turn of the assistant begins. This fits its training: after pre-training on plain text, SmolLM2 was fine-tuned on conversations in this format (this is what "Instruct" says). A chat program writes the format for you. `turns` makes this **chat template**, with a **system prompt** first:

# %%
print(smollm2.turns(question))
print("tokens:", len(tokens), "->", len(model.tokenizer.encode(smollm2.turns(question)).ids))
print("".join(my_model.write(smollm2.turns(question), 30)))
assert len(model.tokenizer.encode(smollm2.turns(question)).ids) == 36 and len(tokens) == 6

# %% [markdown]
# So an answer is a continuation of a text whose next speaker is the assistant. The answer may be wrong: a model of this size knows little.
#
# ## A mask that leaks
#
# Now break one part on purpose. Give SmolLM2 a rule that ignores the causal mask. The weights stay as they are, and were trained *with* the mask. First measure the loss on the five texts, then let the model write. **Does the loss rise or fall? And what happens to the writing?**

# %%
guess = None  # "rises" or "falls", and "goes on" or "is lost"


# %%
def leaking(q, k, v, mask=None):
    return grouped_query_attention(q, k, v)


# %% tags=["hide-input"]
leaky = with_parts(model, rule=leaking)
losses = [(loss(model, text), loss(leaky, text)) for text in five.splitlines()]
print("  ".join(f"{right:.2f} -> {leak:.2f}" for right, leak in losses))
said = "".join(leaky.write(opening, 10, cache=False))
print(f"{opening}{said!r}")
falls = all(leak < right for right, leak in losses)
reveal(guess, ("falls" if falls else "rises", "goes on" if "Paris" in said else "is lost"))
assert all(leak < 0.5 * right for right, leak in losses) and "Paris" not in said

# %% [markdown]
# The loss falls on all five texts, by more than half: each position now sees the token that it should predict, and all later ones; untrained, the weights make some use of them.
#
# You might answer: when it writes, there is no future to leak. But then the mask would change nothing: the last row of a causal mask hides nothing. So why does the text break?

# %% tags=["hide-input"]
from course_lib.real_models import KeyValueCache, use_cache

assert causal_mask(7)[-1].all()
tokens = torch.tensor(model.tokenizer.encode(five.splitlines()[1]).ids)
alike = torch.cosine_similarity(model.states(tokens), leaky.states(tokens), dim=-1)
print("cosine of each token's last state, with the mask and without:")
print([round(x, 2) for x in alike.tolist()])
assert alike.max() < 0.9

# %% [markdown]
# The cause is in the rows *before* the last. Without the mask, an early token's state after block 1 already mixes in later ones. So its keys and values in block 2 are not what these weights met in training, and so on through thirty blocks. The last row then reads values it cannot use.
#
# If so, there is a cure without the mask. Feed the leaking model one token at a time, and keep each token's keys and values: a **key-value cache** ([an exploration](explorations/09_fast.ipynb) builds it). Then they are computed before any later token exists.


# %%
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


print(opening + one_by_one(leaky, opening, 10))
assert one_by_one(leaky, opening, 10) == "".join(model.write(opening, 10))

# %% [markdown]
# Word for word what the model with its mask writes. The rule still ignores every mask; the order of reading has replaced it. In the drawing, each box names the tokens that have gone into a state. A dashed frame is one pass. Orange marks states unlike those of training.

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
# A leak makes the numbers *better*, so a loss curve looks like good news: that is why lesson 05 built `leaks_future`. And in a causal model the past does not change when a token is appended; that makes the cache right. In a full pass without the mask it does change.

# %%
needs()

# %% [markdown]
# ## What to remember
#
# All blocks here run on your parts, but for MiniLM's GELU network and Marian's recurrence. A checkpoint is a table of names. A chat is a text that goes on. A leaking mask improves the loss; full passes then write badly.
#
# | | |
# |:-|:-|
# | mean pooling | $s = \sum_i m_i h_i / \sum_i m_i$ |
# | SwiGLU | $\big(\mathrm{swish}(x W_1) \odot x W_3\big) W_2, \qquad \mathrm{swish}(z) = z\,\sigma(z)$ |
# | its size | $3\,d\,d_{ff}$; equal to 2017's $8 d^2$ for $d_{ff} = 8d/3$ |
# | grouped queries | head $h$ uses keys and values $g(h) = \lfloor h G / H \rfloor$ |
# | SSRU | $c_t = f_t \odot c_{t-1} + (1 - f_t) \odot x_t W$ |
#
# ## Test yourself
#
# <details><summary>1. Why can an encoder such as MiniLM not use a key-value cache?</summary>
#
# Without a causal mask, a new token changes the states of all earlier ones, and so all keys and values from block 2 on.
# </details>
#
# <details><summary>2. Grouped queries save memory. Do they save multiplications in the scores?</summary>
#
# No. Each of the $H$ query heads still meets every key. Only the projections to keys and values are smaller.
# </details>
#
# <details><summary>3. A loaded model is too bad, and all names and shapes fit. Name three suspects.</summary>
#
# The order of the rows of $W_Q$ and $W_K$; a matrix that should be transposed, where it is square; the place of the norms, or the scale of the scores, which have no shape.
# </details>
#
# <details><summary>4. Your training loss is suddenly far better than anyone else's. What do you test first?</summary>
#
# Whether the future leaks: lesson 05's `leaks_future`, or let the model write.
# </details>
#
# ## Next, and further reading
#
# Others trained these models. In lesson 10 you train a language model yourself. What makes writing fast is [an exploration](explorations/09_fast.ipynb).
#
# Reimers & Gurevych 2019 (sentence vectors); Wang et al. 2020b (MiniLM); Devlin et al. 2019 (BERT); Junczys-Dowmunt et al. 2018 (Marian); Kim et al. 2019 (SSRU); Bahdanau et al. 2015 (alignment); Shazeer 2020 (SwiGLU); Shazeer 2019 and Ainslie et al. 2023 (shared keys); Su et al. 2021 (rotary); Allal et al. 2025 (SmolLM2). Lectures: L1 to L5.
