# %% [markdown]
# # 09 · Three real models
#
# **70 minutes · after lesson 08 · needs `minilm` (84 MB), `smollm2` (93 MB), `marian` (35 MB) and `shakespeare` (5.4 MB)**
#
# Three trained models that the world uses, assembled from the parts of lessons 02 to 08, and from yours wherever they have passed: one finds sentences by their meaning, one translates, one answers questions.

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
from course_lib.data import needs, shakespeare, store
from course_lib.feed_forward import FeedForward

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
rotary, feed_forward = mine("positions/rotary"), mine("feed_forward/position_wise")
MultiHeadAttention = mine("multi_head/attention")
layer_norm, rms_norm = mine("add_norm/layer_norm"), mine("add_norm/rms_norm")
EncoderBlock, DecoderBlock = mine("encoder/block"), mine("decoder/block")

# %% [markdown]
# Each line above says whose function it is. What is yours will run in the real models; what has not passed yet is the library's, and can still be exchanged.

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

# %%
needs("smollm2")

# %%
from course_lib.pretrained import smollm2

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
# ## Appendix: weights of four bits
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
# A weight is off by at most half a step. All 134 million are undone so when the model is loaded.

# %% [markdown]
# ## What you take along
#
# MiniLM, Marian and SmolLM2 are the parts of lessons 02 to 08, and ran on yours. A leaking mask improves the loss and ruins the writing.

# %% [markdown]
# Next, lesson 10 trains a language model. Sources: Reimers & Gurevych 2019; Wang et al. 2020b (MiniLM); Clark et al. 2019; Junczys-Dowmunt et al. 2018 (Marian); Kim et al. 2019 (recurrence in the decoder); Bahdanau et al. 2015; Ainslie et al. 2023 (grouped queries); Shazeer 2019 (shared keys); Shazeer 2020 (SwiGLU); Allal et al. 2025 (SmolLM2). Lectures: L1 to L5.
