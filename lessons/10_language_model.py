# %% [markdown]
# # 10 · A language model
#
# **75 minutes · after lesson 09 · needs `shakespeare` (5.4 MB)**
#
# A **language model** predicts the next token of a text, and learns from nothing but text. **Is your Transformer any better at it than a table of counts, which needs no gradients and takes a second?**
#
# At the end you can train a language model with an optimiser step of your own, measure how much of its context it uses, and let trained weights write through your own class.

# %%
import torch
from itertools import pairwise
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import characters, needs, shakespeare
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the training below: another one trains another model

# %% tags=["hide-input"]
drawings.transformer(
    {"masked self-attention", "feed-forward", "add & norm", "embedding", "positions"}
    | {"linear, softmax"},
    "The map of the course. A language model is the right half without cross-attention: embedding, "
    "positions, masked self-attention, feed-forward network, add & norm, linear and softmax.",
    stacks=("decoder",),
)

# %%
from collections.abc import Callable

from course_lib.add_norm import Norm

causal_mask, EncoderBlock = mine("masks/causal"), mine("encoder/block")
LearnedPositions, layer_norm = mine("positions/learned"), mine("add_norm/layer_norm")

# %% [markdown]
# The right half of the map, without its cross-attention, is a language model: a **decoder-only** Transformer. You have built all its parts. What is new today is what it is trained on, and a rival that it must beat.
#
# ## One text, many examples
#
# Our tokens are characters, of the first 1,115,394 characters of Shakespeare's works, as many as the well-known file *tiny Shakespeare* has. The last tenth is **held out**: nothing learns from it, everything is measured on it. (It begins in the middle of a play.)

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
text = shakespeare.complete_works()[:1_115_394]
known = characters.Characters(text)
tokens, vocab = known.encode(text), len(known)
cut = round(0.9 * len(tokens))
learning, held_out = tokens[:cut], tokens[cut:]
print(len(learning), "characters to learn from,", len(held_out), "held out;", vocab, "different")

# %% [markdown]
# (A larger vocabulary, of pieces of words, makes a text shorter: see the exploration [Byte pairs](explorations/10_byte_pairs.ipynb). Where the text of large models comes from is another one, [Data](explorations/10_data.ipynb).)
#
# Where do the labels come from? From the text itself: the target of each token is the token that follows. This is **self-supervised** training.

# %% tags=["hide-input"]
needs()
diagram = drawings.Diagram()
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
# A window of $T$ tokens is $T$ examples at once: its first position must predict from one token, its last from $T$. The causal mask keeps them apart. $T$ is the **context window**. Windows begin every $s$ tokens, the **stride**:
#
# $$\underset{m \times T}{\text{inputs}}_{i,t} = w_{is + t} \qquad\qquad \underset{m \times T}{\text{targets}}_{i,t} = w_{is + t + 1}$$

# %%
# exercise: language_model/examples

# %%
check("language_model/examples", examples)

# %%
examples = mine("language_model/examples")

# %% [markdown]
# ## How surprised was it?
#
# We need one number that says how good a prediction was. At each position the model returns **logits** $z \in \mathbb{R}^{V}$, one for each token of the vocabulary, and softmax turns them into probabilities $\hat y$. A good model finds the text likely, so multiply the probabilities of the tokens that really came. A product of a million small numbers is 0 in floating point: take logarithms, change the sign, and average:
#
# $$-\frac{1}{T} \log \prod_{t=1}^{T} \hat y_t[w_{t+1}] = \frac{1}{T} \sum_{t=1}^{T} L_t \qquad\quad L_t = -\log \hat y_t[w_{t+1}] = \log \sum_{v=1}^{V} e^{z_{t,v}} - z_{t,\,w_{t+1}}$$

# %% [markdown]
# $L_t$ is the **cross-entropy** of position $t$, in **nats** since the logarithm is natural; the exponential of its mean is the **perplexity**. The right-hand form follows from the definition of softmax. Only its sum needs care: $e^{1000}$ is infinite in a float, and `torch.logsumexp` returns the logarithm of the sum without computing it.
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
# It does, as soon as the target is not one-hot. As printed, $\sum_w y_t[w] = 1$ can be taken out, and the loss never depends on the target's other entries, so smoothing them (lesson 11's exploration) has no effect.

# %%
# exercise: language_model/cross_entropy

# %%
check("language_model/cross_entropy", cross_entropy)

# %%
cross_entropy = mine("language_model/cross_entropy")

# %% [markdown]
# ## The rival: counting
#
# Now the simplest language model of all: count which character follows which, and predict the relative frequencies. A table of 77 × 77 counts is a **bigram** model. (1 is added to each count, so that nothing is impossible.)

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
table = torch.ones(vocab, vocab)
table.index_put_((learning[:-1], learning[1:]), torch.tensor(1.0), accumulate=True)
bigram = (table / table.sum(-1, keepdim=True)).log()
bigram_loss = cross_entropy(bigram[held_out[:-1]], held_out[1:]).item()
print(f"{bigram_loss:.3f} nats, perplexity {torch.tensor(bigram_loss).exp():.1f}")

# %% [markdown]
# From 77 to 12, by counting pairs. Longer contexts say more: after *Caesa* comes an *r*. But there are $77^4 = 35$ million contexts of four characters, and a text of one million cannot hold most of them. So a longer context $h$ falls back on the shorter one, $h'$, for what it has not seen. Take a little off each count, $D$, and hand it down:
#
# $$P(w \mid h) = \frac{\max\big(c(hw) - D,\, 0\big)}{c(h)} + \underbrace{\frac{D \cdot \#\{w : c(hw) > 0\}}{c(h)}}_{\text{what was taken off}} P(w \mid h')$$

# %% [markdown]
# For a context never seen, the shorter one decides alone. This is **absolute discounting** (Ney et al. 1994). `NGrams` does it, with three values of $D$: for counts of 1, of 2, and of more (Chen & Goodman 1999). With `continuations`, Kneser and Ney's refinement, the shorter contexts count in how many *different* places a token was seen. **How many characters of context are best for each of the two ways?**

# %%
guess = None  # (plain counting, Kneser and Ney)

# %% tags=["hide-input"]
from course_lib.corpus import NGrams, continuations, occurrences


def counting_loss(order, count):
    """Return the held-out loss of counts of `order` characters, the last of which is predicted."""
    probabilities = NGrams(learning, vocab, order, count).probabilities(held_out[:-1])
    return cross_entropy(probabilities.log(), held_out[1:]).item()


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
ax.set(xlim=(0.8, 8.6), ylim=(1.35, 2.6), xticks=range(1, 8))
plots.show(
    figure,
    "Held-out loss against characters of context, 1 to 7. Both curves fall from about 2.5. Plain "
    f"counting is lowest at {best['plain']} with {counted['plain'][best['plain']]:.3f} nats and "
    f"rises again; Kneser and Ney at {best['Kneser and Ney']} with "
    f"{counted['Kneser and Ney'][best['Kneser and Ney']]:.3f}.",
)
bar = counted["Kneser and Ney"][6]
little = NGrams(learning[-50_000:], vocab, 5).probabilities(held_out[:-1])  # for later
little = cross_entropy(little.log(), held_out[1:]).item()
assert best == {"plain": 4, "Kneser and Ney": 6} and 1.48 < bar < 1.495
assert round(little, 2) == 1.79

# %% [markdown]
# So this is the bar: about 1.49 nats, a perplexity of 4.4. (The context's length was chosen on the held-out text, which favours counting a little.) What does such a model write? Draw the next character from the table, append it, and repeat:

# %% tags=["hide-input"]
from course_lib.language_model import generate

fewer = NGrams(learning[: 600 * 16 * 64], vocab).probabilities(held_out[:-1])  # for later
fewer = cross_entropy(fewer.log(), held_out[1:]).item()
print(f"a table of the first {600 * 16 * 64:,} characters: {fewer:.2f}")
assert round(fewer, 2) == 1.59

rival = NGrams(learning, vocab)  # Kneser and Ney's counts, six characters of context
prompt = known.encode("\nBRUTUS.\n")


def write(model, n, count=200, temperature=0.8, seed=1):
    generator = torch.Generator().manual_seed(seed)
    drawn = generate(model, prompt, count, n, generator, lambda logits: logits / temperature)
    return known.decode(drawn)


print(write(lambda tokens: rival.probabilities(tokens).log(), 64))

# %% [markdown]
# It has words, punctuation and even the layout. But it sees only the last six characters. Your Transformer will see 64.
#
# ## One step of training
#
# Gradients can find the same table. Let $W$ be 77 × 77 free parameters, all 0 at first, and row $w$ the logits after character $w$. The optimiser that we have used since lesson 01 is **AdamW** (Kingma & Ba 2015; Loshchilov & Hutter 2019). With the gradient $g$ of step $s = 1, 2, \dots$, entry by entry:
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2$$
#
# $$\theta \leftarrow (1 - \eta \lambda)\, \theta - \eta\, \frac{\hat m}{\sqrt{\hat v} + \epsilon} \qquad \hat m = \frac{m}{1 - \beta_1^s} \qquad \hat v = \frac{v}{1 - \beta_2^s}$$

# %% [markdown]
# $m$ averages recent gradients, so that the noise of single batches cancels. $\sqrt{\hat v}$ is the gradient's usual size; dividing by it makes most steps at most about $\eta$, whatever the scale of the gradient. Both averages begin at 0, so early ones are too small; the denominators correct that. The **weight decay** $\lambda$ shrinks the parameters. Write the step:

# %%
# exercise: adamw/step

# %%
check("adamw/step", adamw_step)

# %%
adamw_step = mine("adamw/step")

# %%
weights = torch.zeros(vocab, vocab, requires_grad=True)
first, second = torch.zeros(2, vocab, vocab)
generator = torch.Generator().manual_seed(0)
for step in range(1, 301):
    places = torch.randint(len(learning) - 1, (4096,), generator=generator)
    loss = cross_entropy(weights[learning[places]], learning[places + 1])
    (gradient,) = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        state = adamw_step(weights, gradient, first, second, step, 0.1, 0.0)
    weights, first, second = state[0].requires_grad_(), *state[1:]
found = cross_entropy(weights[held_out[:-1]], held_out[1:]).item()
print(f"by 300 steps {found:.3f} nats, by counting {bigram_loss:.3f}")
assert 0 < found - bigram_loss < 0.05

# %% [markdown]
# Three hundred steps come close to what counting has after one pass. For a table, counting *is* the minimum of the training loss (up to the added 1). What gradients buy is that they also train models for which nobody can write the minimum down.
#
# ## The model
#
# A token's vector is a row of a learned table $E$, and each position has a learned vector too; their table ends at $T$. (No factor $\sqrt{d}$: GPT-2's way.) Then pre-norm blocks under a causal mask, a last norm, and a **language-modelling head** that scores every token:
#
# $$x^{(0)}_t = \underset{d}{E_{w_t}} + p_t \qquad x^{(l)} = \mathrm{Block}_l\big(x^{(l-1)},\ \text{causal}\big) \qquad \underset{n \times V}{z} = \mathrm{LN}\big(x^{(N)}\big)\, E^T$$

# %% tags=["hide-input"]
needs()
diagram, shape = drawings.Diagram(), r"$n \times d$"
parts = [
    ("look up in $E$", "stream"),
    ("add positions", "position"),
    ("x + attention(norm(x)), masked", "query"),
    ("x + feed-forward(norm(x))", "network"),
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
    "are added; N blocks, each adding attention of the norm and a feed-forward network of the "
    "norm; a last norm; and a product with the same table E transposed, which gives n by V logits."
)

# %% [markdown]
# The head has no matrix of its own: it is $E$ again, and its output is a dot product of the state with every token's vector. Such **tied weights** (Press & Wolf 2017) save $V \cdot d$ parameters. Only `forward` is to be written:

# %%
# given: language_model.TokenEmbedding

# %%
# exercise: language_model/model

# %%
check("language_model/model", LanguageModel)

# %%
LanguageModel = mine("language_model/model")

# %% [markdown]
# Other heads read the same states. **Tagging** scores the tags of each state; **classification** and **regression** read one state, under a causal mask the last one, since only it has read the whole text.
#
# ## Too good to be true
#
# A colleague trains this model with a loss of her own, and reports this:

# %%
needs("shakespeare")

# %% tags=["hide-input"]
sizes = {"vocab": 77, "layers": 2, "d_model": 96, "heads": 4, "d_ff": 384, "max_length": 64}
inputs, targets = examples(learning, 64, 64)


def batch(step, size=16):
    """Return windows that the step's number decides."""
    generator = torch.Generator().manual_seed(step)
    rows = torch.randint(len(inputs), (size,), generator=generator)
    return inputs[rows], targets[rows]


def new(seed=SEED):
    with training.seeded(seed):
        return LanguageModel(**sizes, positions=LearnedPositions, block=EncoderBlock)


assert round(sum(weight.numel() for weight in new().parameters()), -3) == 237_000

# %% tags=["hide-input", "training"]
hers = new()
reported = training.train(
    hers,
    (batch(step)[0] for step in range(60)),
    lambda model, read: F.cross_entropy(model(read).mT, read),  # the fault, unfolded: do not look
    steps=60,
    seconds=30,
    learning_rate=0.006,
)
claim = "after 60 steps her loss is below 0.3 nats, a fifth of the bar"
training.expect(claim, reported.losses[-1] < 0.3, round(reported.losses[-1], 3), hers)
print(repr(write(hers, 64, 60)))

# %% [markdown]
# The loss beats every model in this lesson, and what it writes is worthless. A loss far below everybody else's is a bug until proven otherwise. Here is her function; one line is wrong:

# %%
# exercise: language_model/mend_loss

# %%
check("language_model/mend_loss", next_token_losses)

# %%
next_token_losses = mine("language_model/mend_loss")

# %% [markdown]
# ## Which one wins?
#
# The table has 1.49 nats after one second. Your model, of 237 thousand parameters, gets 600 steps of 16 windows, in 30 seconds at most. Around AdamW's step, `training.train` does two more things: the learning rate rises over the first steps and then falls to 0, and a gradient whose L2 norm is above 1 is scaled back to it.
#
# One yardstick for all models from here on: each held-out character is predicted from at least half a window. **What will your model's held-out loss be?**

# %%
guess = None  # in nats


# %%
@torch.no_grad()
def yardstick(model, n):
    """Return the held-out loss, each character predicted from n / 2 to n before it."""
    found = []
    for read, following in zip(*(x.split(64) for x in examples(held_out, n, n // 2))):
        later, answers = model(read)[:, n // 2 :], following[:, n // 2 :]
        found.append(F.cross_entropy(later.mT, answers, reduction="none"))
    return torch.cat(found).mean().item()


# %% tags=["training"]
model = new()
windows = (batch(step) for step in range(600))
budget = {"steps": 600, "seconds": 30, "learning_rate": 0.006}
history = training.train(
    model, windows, lambda model, pair: cross_entropy(model(pair[0]), pair[1]), **budget
)

# %% tags=["training"]
loss = yardstick(model, 64)
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
    "Kneser and Ney": bar,
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
# Counting wins, clearly, and not because it has read more: your model has read 614,400 characters, and a table of the first 614,400 has 1.59. Your model must find letters, words and names by small steps.
#
# ## How much of its context does it use?
#
# "Your Transformer will see 64": but seeing is not using. To measure use, take the context away. Replace all but the last $k$ characters of a window by those of another window, and ask for the next one:


# %%
@torch.no_grad()
def loss_with(model, n, k):
    """Return the loss after n characters, all but the last k from elsewhere."""
    read, following = examples(held_out, n, 128)
    mixed = read.roll(len(read) // 2, dims=0)
    mixed[:, -k:] = read[:, -k:]
    return F.cross_entropy(model(mixed)[:, -1], following[:, -1]).item()


# %% [markdown]
# **From which $k$ on does your model gain no more than 0.1 nats?** It has 64; counting has 6.

# %%
guess = None  # one of 1, 2, 3, 4, 6, 8, 16, 32, 64

# %% tags=["training"]
used = {k: loss_with(model, 64, k) for k in (2, 3, 4, 6, 8, 16, 32, 64)}
enough = next(k for k, loss in used.items() if loss < used[64] + 0.1)
reveal(guess, enough)
print("  ".join(f"{k}: {loss:.2f}" for k, loss in used.items()))
claim = "the model gains no more than 0.1 nats beyond the last 6 characters"
training.expect(claim, enough <= 6, enough, model)

# %% [markdown]
# The model that "sees 64" lives on the last few characters, as the table does, and there the table is better. So training has to teach it two things: to be as good on short contexts, and to use long ones. Here are the same model from three seeds, the table, and a model of 1.8 million parameters that was trained for 341 seconds (next section). All are measured on 3,500 windows. (On the left nothing comes before the window; on the right, foreign text.)

# %% tags=["hide-input"]
kept = results.load("context_used")["figures"]
title = "The table reads six characters; the trained model gains from more"
names = ["nothing came before", "foreign text came before"]
figure, panels = plots.panels(title, names, size=(9.6, 4.0))
curves = [("counting", kept["counting"], plots.COLOURS[1])]
curves += [("600 steps", run, plots.COLOURS[0]) for run in kept["live"].values()]
curves += [("341 seconds", kept["trained"], plots.COLOURS[2])]
starts, by_place, by_kept = [1, 2, 4, 8, 16, 32, 64], {}, {}
flat = []  # the models of 600 steps
for name, run, colour in curves:
    at = run["by_position"]
    means = {a: sum(at[a - 1 : 2 * a - 1]) / len(at[a - 1 : 2 * a - 1]) for a in starts}
    left = {int(k): loss for k, loss in run["by_context"].items()}
    by_place[name], by_kept[name] = means, left
    flat += [means[a] for a in (8, 16, 32)] if name == "600 steps" else []
    for ax, found in zip(panels, (means, left)):
        ax.plot(found.keys(), found.values(), color=colour, marker=".", lw=1.2)
    if run is not kept["live"]["1"] and run is not kept["live"]["2"]:
        panels[1].text(150, left[max(left)], name, color=colour, size="small", va="center")
for ax in panels:
    ax.set_xscale("log", base=2)
    ax.set(ylim=(1.3, 3.0), xticks=[*starts, 128], xticklabels=[*starts, 128])
panels[0].set(xlabel="position: 1, 2–3, 4–7, 8–15, ...", ylabel="nats a character, held out")
panels[1].set(xlim=(0.9, 1100), xlabel="characters kept")
table, late = by_place["counting"], by_place["341 seconds"]
assert [round(table[a], 2) for a in (8, 64)] == [1.48, 1.49]
assert [round(late[a], 2) for a in (8, 16, 64)] == [1.45, 1.41, 1.40]
assert len(flat) == 9 and 1.85 < min(flat) < max(flat) < 1.905
foreign = by_kept["341 seconds"]
assert [round(foreign[k], 2) for k in (8, 16, 32, 64, 128)] == [1.57, 1.50, 1.45, 1.41, 1.40]
assert foreign[16] > by_kept["counting"][16] > foreign[32]
rows = [
    f"{x}: {by_place[x][4]:.2f} at positions 4 to 7, {by_place[x][64]:.2f} from 64 on, "
    f"{by_kept[x][8]:.2f} with 8 kept, {by_kept[x][64]:.2f} with 64"
    for x in by_kept
]
plots.show(figure, "Held-out loss by position, and by characters kept. " + "; ".join(rows))

# %% [markdown]
# On the left, windows begin at nothing. The table reads six characters and is flat from there: 1.48 nats at positions 8 to 15, 1.49 from 64 on. The models of 600 steps are flat, too, between 1.85 and 1.90. The trained model has 1.45 there, and goes on: 1.41 at positions 16 to 31, 1.40 from 64 on. (The table's short contexts are weak, since they count places.)
#
# On the right, foreign text comes before. With six kept, the table cannot notice. The trained model is misled: with 16 it is level, with 32 ahead.

# %% [markdown]
#
# ## What makes attention win?
#
# `make results LESSON=10` climbed a ladder from the settings of Karpathy's nanoGPT for a processor. Each rung had 341 CPU-seconds of one thread, adds to the rung before it, and is measured by our yardstick with its own window:
#
# | rung | the idea |
# |:-|:-|
# | rotary, RMSNorm, squared ReLU | positions as rotations (lesson 04), a cheaper norm, $\max(0, h)^2$; an output matrix of its own |
# | more and longer windows | 32 of 128 characters in place of 12 of 64, still with AdamW |
# | Muon | an optimiser for matrices, below |
# | bfloat16, a wider model | 16-bit numbers are faster, so the width can be 192 in the same time |
# | the counts | the model begins *as* the count table and learns to correct it |
# | dropout | a tenth of what each layer adds is set to 0 while training |

# %% [markdown]
# **Muon** (Jordan et al. 2024) averages the gradients $G$ of a matrix as AdamW does. But it does not scale single entries. It replaces the average by the nearest matrix with orthonormal rows or columns, so all singular values become about 1, and no direction is neglected:
#
# $$M \leftarrow \mu M + (1 - \mu) G \qquad N = \mu M + (1 - \mu) G = U S V^T \qquad W \leftarrow W - \eta\, U V^T$$
#
# A singular value decomposition is slow. A **Newton–Schulz iteration** comes near $UV^T$ by products of matrices alone, five times, from $X = N / \lVert N \rVert_F$:
#
# $$X \leftarrow a X + \big(b\, X X^T + c\, (X X^T)^2\big) X \qquad (a, b, c) = (3.4445, -4.7750, 2.0315)$$

# %%
from course_lib.optimizers import orthogonalise

gradient = torch.randn(32, 8, generator=torch.Generator().manual_seed(0)) @ torch.diag(
    torch.logspace(0, -2, 8)
)
for name, matrix in (("gradient", gradient), ("step", orthogonalise(gradient))):
    values = torch.linalg.svdvals(matrix)
    print(f"{name:9} singular values {values.max():.2f} to {values.min():.2f}")
assert 0.4 < values.min() < values.max() < 1.3

# %% [markdown]
# Each singular value $s$ becomes $as + bs^3 + cs^5$, while $U$ and $V$ stay; the three numbers were chosen to lift small ones fast. Of the rungs with three runs, **which one saves most, on average, over the one before it?** (Two are close.)

# %%
guess = None  # words of its line in the table

# %% tags=["hide-input"]
ladder = results.load("language_model")["figures"]
losses = {
    name: [run["loss"] for run in rung["runs"].values()] for name, rung in ladder["rungs"].items()
}
mean = {name: sum(found) / len(found) for name, found in losses.items() if found}
STEPS = ("nanogpt", "modern", "windows", "muon", "bfloat16", "corrected", "dropout")
rows = [name for name in losses if losses[name]]
ahead = [name for name in rows if max(losses[name]) < bar]
titles = {name: ladder["rungs"][name]["title"] for name in rows}
three = [name for name in rows if len(losses[name]) == 3]
saved = {name: mean[before] - mean[name] for before, name in pairwise(three)}
reveal(guess, titles[max(saved, key=saved.get)])
assert ahead[0] == "modern"
assert round(mean["nanogpt"], 3) == 1.486 and round(bar, 2) == 1.49
gains = {y: [a - b for a, b in zip(losses[x], losses[y])] for x, y in pairwise(three)}
assert gains["modern"][0] > 0.02 and max(gains["modern"][1:]) < 0.003
for name, least, most in (("muon", 0.035, 0.05), ("bfloat16", 0.03, 0.05), ("corrected", 0, 0.011)):
    assert least < min(gains[name]) and max(gains[name]) < most
assert [x > 0 for x in gains["dropout"]] == [True, False, False]
swept = results.load("optimizer_rates")["figures"]["losses"]
assert [min(by_rate, key=by_rate.get) for by_rate in swept.values()] == ["0.003", "0.01"]
assert max(swept["Muon"].values()) < 1.44 < 1.488 == min(swept["AdamW"].values())
taken = [run["steps"] for run in ladder["rungs"]["nanogpt"]["runs"].values()]
assert round(100 * (taken[2] / taken[0] - 1)) == 26
title = "341 seconds each: modern parts are just below counting, Muon is 0.05 below"
figure, ax = plots.axes(title, "nats a character, held out", "", size=(8, 4.2))
paper = {"bbox": {"color": figure.get_facecolor(), "pad": 1}}  # no line runs through a number
for y, name in enumerate(rows):
    colour = plots.COLOURS[0] if name in STEPS else "0.6"
    ax.scatter(losses[name], [-y] * len(losses[name]), color=colour, s=24, zorder=3)
    ax.text(max(losses[name]) + 0.003, -y, f"{mean[name]:.3f}", va="center", size="small", **paper)
ax.axvline(bar, ymax=0.9, color=plots.COLOURS[1], linestyle="--", linewidth=1)
ax.text(bar, 0.7, f"counting, {bar:.3f}", color=plots.COLOURS[1], size="small", ha="center")
ax.set_yticks([-y for y in range(len(rows))], [ladder["rungs"][name]["title"] for name in rows])
ax.set(ylim=(-len(rows) + 0.4, 1.3))
ax.margins(x=0.1)
plots.show(
    figure,
    "Held-out loss of each rung: "
    + ", ".join(f"{ladder['rungs'][x]['title']} {mean[x]:.3f}" for x in rows)
    + f"; counting as Kneser and Ney do {bar:.3f}.",
)
for name, by_rate in swept.items():
    print(f"{name}:", ", ".join(f"{loss:.3f} at {rate}" for rate, loss in by_rate.items()))

# %% [markdown]
# With nanoGPT's settings attention only comes level with counting: 1.486 on average against 1.488. The modern parts save 0.02 nats in one run and next to nothing in two; with them all three runs are below counting, by 0.007 to 0.013. Longer windows in larger batches save nothing in equal time with AdamW. Muon with them is 0.04 to 0.05 below the best AdamW rung. Only a better rate? Below the figure both are swept (longer windows, the steps of 341 seconds, one run each): Muon is ahead at each of three rates, which differ by 0.008.

# %% [markdown]
# (Muon steps the blocks' matrices; all else is stepped by Adam at 0.003, which was not swept.) The wider model saves another 0.03 to 0.05. To begin as the counts saves another 0.01 at most. Dropout helped once and hurt twice.
#
# The machine was not equally fast: the first rung took 26 % more steps in its third run than in its first. Trust a difference only where all runs agree.

# %% [markdown]
#
# ## It writes
#
# The weights of the rung *bfloat16, a wider model* are kept with the course, 3.6 MB, and load into the classes that *you* wrote: your `LanguageModel`, your `EncoderBlock`, with rotary attention, RMSNorm and a squared ReLU as their parts, and with an output matrix of its own in place of the tied one.

# %%
from course_lib.pretrained import shakespeare_model

trained = shakespeare_model.load(LanguageModel, EncoderBlock)
print(f"{sum(weight.numel() for weight in trained.parameters()):,} parameters")

# %%
came = yardstick(trained, 128)
print(f"{came:.3f} nats held out; counting {bar:.3f}")
assert came < bar - 0.05

# %%
print(write(trained, 128, count=400))

# %% [markdown]
# Each character was drawn from $\mathrm{softmax}(z / \tau)$ with a **temperature** $\tau = 0.8$: below 1 it makes likely characters likelier. The exploration [Sampling](explorations/10_sampling.ipynb) plays with it, and with two better controls, top-k and top-p.
#
# ## Break it
#
# - Leave the causal mask out of your `LanguageModel`, and train it for 600 steps. How low is the loss, and what does it write?
# - In `loss_with`, take the foreign part from *the same* text, shifted by one character. What does the trained model lose?

# %% [markdown]
# ## What to remember
#
# Predicting the next token needs no labels: text is its own. The loss is the surprise at what really came, in nats. This count table is the bar, and a small Transformer does not reach it in half a minute. After 341 seconds, with Muon and 1.8 million parameters, one is below it: 1.40 nats against 1.49. Most of its lead comes from characters beyond the eighth.
#
# | | |
# |:-|:-|
# | examples | inputs $w_{1..T}$, targets $w_{2..T+1}$ |
# | cross-entropy | $-\log \hat y_t[w_{t+1}] = \log\sum_v e^{z_v} - z_{w_{t+1}}$ |
# | perplexity | $\exp(\text{mean loss in nats})$; it is $V$ for equal probabilities |
# | absolute discounting | $P(w \mid h) = \max(c(hw) - D, 0)/c(h) + \gamma(h)\, P(w \mid h')$; $\gamma(h)$: the share taken off |
# | the model | $z = \mathrm{LN}(x^{(N)})\, E^T$, tied |
# | AdamW | $\theta \leftarrow (1 - \eta\lambda)\theta - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)$ |
# | Muon | $W \leftarrow W - \eta\, U V^T$, with $N = U S V^T$ |
# | context used | the loss with all but the last $k$ tokens from elsewhere |

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
# <details><summary>3. After one step of AdamW from averages of 0, by how much has a parameter moved, for gradients of 0.001 and of 10?</summary>
#
# By the learning rate, both times (and the decay): corrected, m is g and v is g squared.
# </details>
#
# <details><summary>4. A model has a context window of 4,096 tokens. How do you find out whether it uses them?</summary>
#
# Replace all but the last k by tokens of another text, or leave them out (others mislead): from which k on does the loss not fall?
# </details>

# %% [markdown]
# ## Next, and further reading
#
# This model writes whatever comes next. Lesson 11 gives it something to say: it translates, and is scored.
#
# Bengio et al. 2003 (the first neural language model); Kneser & Ney 1995, Chen & Goodman 1999 (counting done well); Kingma & Ba 2015, Loshchilov & Hutter 2019 (AdamW); Press & Wolf 2017 (tied weights); Radford et al. 2019 (GPT-2); Jordan et al. 2024 (Muon). Lecture: L3.
