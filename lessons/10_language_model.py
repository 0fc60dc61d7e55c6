# %% [markdown]
# # 10 · A language model
#
# **75 minutes · after lesson 09 · needs `shakespeare` (5.4 MB)**
#
# A **language model** does one thing: it predicts the next token of a text. If it can do that, it can also write. **Is your Transformer any better at it than a table of counts, which takes a second?**
#
# One of these two texts was written by such a table, the other by a Transformer. Which is which? At the end your own has written for you, and you know where it beats the table, and where not.

# %%
import torch
from collections.abc import Callable
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import characters, needs, shakespeare
from course_lib.exercises import check, hint, mine, reveal, solution

# %%
from course_lib.add_norm import Norm
from course_lib.instruments import results, training
from course_lib.instruments.pictures import language_model as pictures

causal_mask, EncoderBlock = mine("masks/causal"), mine("encoder/block")
LearnedPositions, layer_norm = mine("positions/learned"), mine("add_norm/layer_norm")

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
pictures.two_samples(results.load("language_model")["figures"])

# %% [markdown]
# ## One text, many examples
#
# Our text is the beginning of Shakespeare's works, as long as the well-known file *tiny Shakespeare*. The last tenth is **held out**: nothing learns from it, everything is measured on it. Our tokens are characters.

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
# Where do the labels come from? From the text itself: the target of each token is the token that follows. This is **self-supervised** training.

# %% tags=["hide-input"]
pictures.shifted("to be ")

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

# %%
inputs, targets = examples(learning, 64, 64)
print(repr(known.decode(inputs[9])), repr(known.decode(targets[9])), sep="\n")

# %% [markdown]
# ## What is a token?
#
# Characters make a small vocabulary and long texts. Words make short texts, and a vocabulary that always lacks some. Large models are in between: **byte pair encoding** (Sennrich et al. 2016) begins with the 256 bytes, gives the most frequent pair of neighbours a number of its own, and repeats that.

# %%
from course_lib.byte_pair import encode, pieces, train

merges = train(list(text[:60_000].encode()), 150)
names = [piece.decode(errors="replace") for piece in pieces(merges)]
print(names[256:276])

# %%
line = "The fairest love that ever lived"
learned = [names[token] for token in encode(list(line.encode()), merges)]
pictures.pieces(
    {"characters": list(line), "150 merges": learned}, "Frequent pairs become one token"
)

# %% [markdown]
# GPT-2 has 50,000 such merges, so a word is often one token. You write them in [Byte pairs](explorations/10_byte_pairs.ipynb); where large models' text comes from is in [Data](explorations/10_data.ipynb). Nothing below depends on what a token is, and we stay with characters.
#
# ## How surprised was it?
#
# At each position the model returns **logits** $z \in \mathbb{R}^{V}$, one for each token, and softmax turns them into probabilities $\hat y$. A good model finds the text likely, so multiply the probabilities of the tokens that came. Such a product is 0 in floating point: take logarithms, change the sign, average:
#
# $$-\frac{1}{T} \log \prod_{t=1}^{T} \hat y_t[w_{t+1}] = \frac{1}{T} \sum_{t=1}^{T} L_t \qquad\quad L_t = -\log \hat y_t[w_{t+1}] = \log \sum_{v=1}^{V} e^{z_{t,v}} - z_{t,\,w_{t+1}}$$

# %% [markdown]
# $L_t$ is the **cross-entropy** of position $t$, in **nats** since the logarithm is natural; the exponential of its mean is the **perplexity**. Only the sum needs care: $e^{1000}$ is infinite in a float, and `torch.logsumexp` returns the logarithm of the sum without computing it.

# %%
# exercise: language_model/cross_entropy

# %%
check("language_model/cross_entropy", cross_entropy)

# %%
cross_entropy = mine("language_model/cross_entropy")

# %% [markdown]
# **What is the loss of a model that gives each of the 77 characters the same probability?**

# %%
guess = None  # in nats

# %% tags=["nbval-check-output"]
even = cross_entropy(torch.zeros(len(held_out), vocab), held_out)
reveal(guess, round(even.item(), 2))

# %% [markdown]
# It is $\ln V$: the first thing to check when a training begins.
#
# > **Where a lecture slips (D17).** With a one-hot $y_t$ for the right answer, L3 prints $-\sum_{w \in V} y_t[w] \log \hat y_t[w_{t+1}]$, where the definition has $\log \hat y_t[w]$. For a one-hot $y_t$ both are the same number. For smoothed targets (an exploration of lesson 11) the printed sum no longer depends on the other tokens, so nothing is smoothed.

# %% [markdown]
# ## The baseline: counting
#
# A **baseline** is what a method has to beat. Ours is the oldest language model, and it learns nothing: count which character follows which, and predict the relative frequencies. A table of pairs is a **bigram** model. (1 is added to each count, so that nothing is impossible.)

# %% tags=["nbval-check-output"]
table = torch.ones(vocab, vocab)
table.index_put_((learning[:-1], learning[1:]), torch.tensor(1.0), accumulate=True)
bigram = (table / table.sum(-1, keepdim=True)).log()
bigram_loss = cross_entropy(bigram[held_out[:-1]], held_out[1:]).item()
print(f"{bigram_loss:.3f} nats, perplexity {torch.tensor(bigram_loss).exp():.1f}")

# %% [markdown]
# From a perplexity of 77 to one of 12, by counting pairs. Longer contexts say more: after *Caesa* comes an *r*. An **n-gram model** looks at the last $n - 1$ characters. But most contexts of six characters never occur in our text. So a context $h$ falls back on the shorter one, $h'$, for what it has not seen. Take a little off each count, $D$, and hand it down:
#
# $$P(w \mid h) = \frac{\max\big(c(hw) - D,\, 0\big)}{c(h)} + \underbrace{\frac{D \cdot \#\{w : c(hw) > 0\}}{c(h)}}_{\text{what was taken off}} P(w \mid h')$$

# %% [markdown]
# This is **absolute discounting** (Ney et al. 1994). Kneser & Ney 1995 improved it: shorter contexts count in how many *different* places a token was seen (`continuations` below), not how often. **How many characters of context are best for each of the two ways?**

# %%
guess = None  # (absolute discounting, Kneser and Ney)

# %%
from course_lib.corpus import NGrams, continuations, occurrences


def counting_loss(order, count):
    """Return the held-out loss of counts of `order` characters, the last of which is predicted."""
    probabilities = NGrams(learning, vocab, order, count).probabilities(held_out[:-1])
    return cross_entropy(probabilities.log(), held_out[1:]).item()


ways = {"absolute discounting": occurrences, "Kneser and Ney": continuations}
counted = {
    name: {order - 1: counting_loss(order, count) for order in range(2, 9)}
    for name, count in ways.items()
}

# %% tags=["hide-input"]
reveal(guess, tuple(min(losses, key=losses.get) for losses in counted.values()))
pictures.counted(counted)

# %% [markdown]
# So this is the baseline: the table of Kneser and Ney, which reads six characters. Its loss is 1.49 nats.
#
# ## Let it write
#
# Whatever predicts can write: draw the next token from the prediction, append it, and predict again. The draw is from
#
# $$\hat y_v = \mathrm{softmax}(z / \tau)_v = \frac{e^{z_v / \tau}}{\sum_u e^{z_u / \tau}}$$
#
# The **temperature** $\tau$ says how daring it is. As $\tau \to 0$ the likeliest token always comes (**greedy** decoding); above 1, unlikely ones come more often. In the stub, `choose` is what is done to the logits before the softmax.

# %%
# exercise: sampling/generate

# %%
check("sampling/generate", generate)

# %%
generate = mine("sampling/generate")

# %% [markdown]
# The table has no logits, but logarithms of probabilities will do. Let *your* loop write with it, after a speaker's name:

# %%
baseline = NGrams(learning, vocab)  # Kneser and Ney's counts, six characters of context
prompt = known.encode("\nBRUTUS.\n")


def write(model, temperature=0.8, count=220, seed=1):
    """Return what a model with room for 64 characters writes."""
    generator = torch.Generator().manual_seed(seed)
    written = generate(model, prompt, count, 64, generator, lambda logits: logits / temperature)
    return known.decode(written)


def from_table(tokens):
    return baseline.probabilities(tokens).log()


# %%
for temperature in (0.2, 0.8, 2.0):
    print(f"--- temperature {temperature}", write(from_table, temperature, 120), sep="")

# %% [markdown]
# A cold table repeats what is most frequent, a hot one mumbles. At 0.8 it has words, punctuation, even the layout. Two better controls, top-k and top-p, are in [Sampling](explorations/10_sampling.ipynb).

# %% [markdown]
# ## The model
#
# Your Transformer without an encoder is a **decoder-only** model. A token's vector is a row of a learned table $E$, and each position has a learned vector too. Then come pre-norm blocks under a causal mask, a last norm, and a **language-modelling head** that scores every token:
#
# $$x^{(0)}_t = \underset{d}{E_{w_t}} + p_t \qquad x^{(l)} = \mathrm{Block}_l\big(x^{(l-1)},\ \text{causal}\big) \qquad \underset{n \times V}{z} = \mathrm{LN}\big(x^{(N)}\big)\, E^T$$

# %% tags=["hide-input"]
pictures.model()

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

# %%
sizes = {"vocab": 77, "layers": 2, "d_model": 96, "heads": 4, "d_ff": 384, "max_length": 64}


def new(seed=SEED):
    with training.seeded(seed):
        return LanguageModel(**sizes, positions=LearnedPositions, block=EncoderBlock)


model = new()
print(f"{sum(weight.numel() for weight in model.parameters()):,} parameters")
print(f"before training {cross_entropy(model(inputs[:32]), targets[:32]):.2f} nats")

# %% [markdown]
# Other heads read the same states. **Tagging** scores the tags of each state; **classification** and **regression** read one state, under a causal mask the last one, since only it has read the whole text.
#
# ## Too good to be true
#
# A batch is 16 of the windows, and the loss is that of all their targets:


# %%
def batch(step, size=16):
    """Return windows that the step's number decides."""
    generator = torch.Generator().manual_seed(step)
    rows = torch.randint(len(inputs), (size,), generator=generator)
    return inputs[rows], targets[rows]


def loss(model, pair):
    return cross_entropy(model(pair[0]), pair[1])


# %% tags=["hide-input", "training"]
def her_loss(model, read):
    return F.cross_entropy(model(read).mT, read)


# %% tags=["training"]
hers, reads = new(), (batch(step)[0] for step in range(60))
reported = training.train(hers, reads, her_loss, steps=60, seconds=30, learning_rate=0.006).losses
print(f"her loss: {reported[-1]:.3f} nats. It writes:", repr(write(hers, count=60)))
training.expect("her loss is below 0.3 nats", reported[-1] < 0.3, round(reported[-1], 3), hers)

# %% [markdown]
# That was a colleague's, who has trained this model with a loss of her own. It is near zero, and what her model writes is worthless. A loss far below everybody else's is a bug until proven otherwise. Here is her function; one line is wrong:

# %%
# exercise: language_model/mend_loss

# %%
check("language_model/mend_loss", next_token_losses)

# %%
next_token_losses = mine("language_model/mend_loss")

# %% tags=["training"]
read, _ = batch(0)
with torch.no_grad():
    honest = next_token_losses(hers(read), read).mean()
print(f"her model by your loss: {honest:.2f} nats, worse than guessing ({even:.2f})")

# %% [markdown]
# ## It writes
#
# Now the right loss, for 600 steps. Let the model write before the first step, after 60, and at the end. `training.train` is the loop of all lessons: its optimizer, **AdamW**, keeps for each parameter an average of its gradient and one of the gradient's square. You write its step in [Which optimizer?](explorations/10_optimizers.ipynb), and see gradients find the table of pairs that counting found.

# %% tags=["training"]
model, written = new(), {}


def watched(steps):
    for step in range(steps):
        if step in (0, 60):
            written[f"your model, step {step}"] = write(model)
        yield batch(step)


history = training.train(model, watched(600), loss, steps=600, seconds=30, learning_rate=0.006)
written[f"your model, step {history.steps}"] = write(model)

# %% [markdown]
# For comparison: the table, and a model that was trained for 341 seconds. It is wider, with rotary attention, RMSNorm and a squared ReLU, but it loads into the classes that *you* wrote, your `LanguageModel` and your `EncoderBlock`. The last text is Shakespeare's.

# %%
from course_lib.pretrained import shakespeare_model

trained = shakespeare_model.load(LanguageModel, EncoderBlock)

# %% tags=["training"]
written["the table"] = write(from_table)
written["a Transformer, 341 seconds"] = write(trained)
written["Shakespeare"] = known.decode(held_out)[4000:4230]
pictures.texts(written, "From noise to letters, words, lines")

# %% [markdown]
# ## Which one wins?
#
# After half a minute there are words, names, verse and speakers; nobody told it what a word is. (At the top, A is the Transformer.) But the table has all that, too. Measure: each held-out character is predicted from at least half a window.


# %%
@torch.no_grad()
def predicted(model, n=64):
    """Return log-probabilities after each place of held-out windows of n, and what followed."""
    read, following = examples(held_out, n, n // 2)
    return torch.cat([model(part).log_softmax(-1) for part in read.split(64)]), following


def late_loss(predictions, following):
    """Return the loss over the second half of each window."""
    late = predictions.shape[1] // 2
    return cross_entropy(predictions[:, late:], following[:, late:]).item()


# %% tags=["training"]
by_model, following = predicted(model)
by_table, _ = predicted(from_table)
losses = {"your model": late_loss(by_model, following), "the table": late_loss(by_table, following)}
claim = "the model is better than the table of pairs, and worse than the table of six"
training.expect(claim, 1.62 < losses["your model"] < 2.3, round(losses["your model"], 3), model)

# %% tags=["training", "hide-input"]
lines = {"table of pairs": bigram_loss} | losses
pictures.training(
    history.losses, lines, "600 steps beat a table of pairs, not one of six characters"
)

# %% [markdown]
# The table wins, clearly. And yet: give the table nine tenths of a say, and your model one. **Is this mixture better than the table alone?**
#
# $$\hat y = 0.9\, \hat y_{\text{table}} + 0.1\, \hat y_{\text{model}}$$

# %%
guess = None  # "better" or "worse"

# %% tags=["training"]
mixed = (0.9 * by_table.exp() + 0.1 * by_model.exp()).log()
losses["mixed"] = late_loss(mixed, following)
reveal(guess, "better" if losses["mixed"] < losses["the table"] else "worse")
print({name: round(loss, 3) for name, loss in losses.items()})
saved = losses["the table"] - losses["mixed"]
training.expect("the mixture saves 0.005 nats or more", saved > 0.005, round(saved, 4), model)

# %% [markdown]
# Better, though the model is so much worse. Any second opinion helps a little, even that of another table. But what does *this* one know?

# %% [markdown]
# ## It knows where a line ends
#
# Here is a famous passage of the held-out text. How probable does each of them find, at each character, that the line ends here?

# %% tags=["training"]
newline = known.encode("\n").item()
start = known.decode(held_out).index("Friends, Romans")
before = held_out[start - 64 : start + 128].unfold(0, 64, 1)  # the 64 in front of each character
with torch.no_grad():
    chances = {
        "the table": baseline.probabilities(before)[:, -1, newline].tolist(),
        "your model": model(before)[:, -1].softmax(-1)[:, newline].tolist(),
    }
passage = known.decode(held_out[start : start + 129])
pictures.line_ends(passage, chances, "After a comma the table expects a new line; your model waits")

# %% [markdown]
# The table sees six characters: it knows that there was a comma, and not how long the line is. Your model sees 64. Nobody told it how long a verse is.
#
# Is that what it brings into the mixture? Keep the table for everything else, and ask the model one question: *does the line end here?*

# %% tags=["training"]
ends = by_model[..., newline : newline + 1]
# the other characters share what is left, as they do in the table
left = torch.log1p(-ends.exp()) - torch.log1p(-by_table[..., newline : newline + 1].exp())
answered = (by_table + left).index_copy(-1, torch.tensor([newline]), ends)
losses["one question"] = late_loss(answered, following)
share = (losses["the table"] - losses["one question"]) / saved
claim = "its answer to this one question saves half as much as the mixture, or more"
training.expect(claim, share > 0.5, round(share, 2), model)

# %% [markdown]
# This one question explains most of it. A model that loses on the whole is the better one where a longer look back is needed.
#
# ## How far back does it look?
#
# A context window of 64 says what a model *may* read, not what it uses. To find out, take the context away. That is easy here: the $k$-th position of a window has $k$ characters to read. Follow what the line ends cost. **From how many characters on does your model know more than the table with its six?**

# %%
guess = None  # 1, 2, 4, 8, 16 or 32


# %%
def by_context(predictions, following):
    """Return the nats for each line end, by how many characters a position can read."""
    ends = (following == newline).float()
    chance = predictions[..., newline].exp().clamp(max=1)
    losses = F.binary_cross_entropy(chance, ends, reduction="none").sum(0)
    ranges = {k: slice(k - 1, 2 * k - 1) for k in (1, 2, 4, 8, 16, 32, 64) if k < len(losses)}
    return {k: (losses[x].sum() / ends.sum(0)[x].sum()).item() for k, x in ranges.items()}


# %% tags=["training"]
six = by_context(by_table, following)[32]
curve = by_context(by_model, following)
reveal(guess, next((k for k in curve if curve[k] < six - 0.05), 64))
claim = "with 4 to 7 characters the model is not 0.1 nats better than the table, with 32 it is"
holds = curve[4] > six - 0.1 > curve[32]
training.expect(claim, holds, {"the table": six} | curve, model)

# %% tags=["training"]
by_trained, answers = predicted(trained, 128)
print(f"341 seconds: {late_loss(by_trained, answers):.2f} nats a character")
curves = {"your model": curve, "341 seconds": by_context(by_trained, answers)}
pictures.by_context(curves, six, "The table stops at six characters, the Transformers read on")

# %% [markdown]
# With a few characters your model knows no more than the table. The more it can read, the better it answers.
#
# The model of 341 seconds wins outright, on the whole text. Its parts, longer training, another optimizer? [Which optimizer?](explorations/10_optimizers.ipynb) climbs from one to the other.
#
# ## Break it
#
# - Leave the causal mask out of your `LanguageModel`, and train. How low is the loss, and what does it write?
# - Replace all but the last $k$ characters of each window by another window's. Is a wrong context as good as none?

# %% [markdown]
# ## What to remember
#
# Predicting the next token needs no labels: text is its own. The loss is the surprise at what really came, in nats. Whatever predicts can write. A table of counts is a strong baseline: half a minute of training does not reach it. But the table ends at six characters, and there the Transformer begins to win: at the ends of lines after half a minute, on the whole after six.
#
# | | |
# |:-|:-|
# | examples | inputs $w_{1..T}$, targets $w_{2..T+1}$ |
# | cross-entropy | $-\log \hat y_t[w_{t+1}] = \log\sum_v e^{z_v} - z_{w_{t+1}}$ |
# | perplexity | $\exp(\text{mean loss in nats})$; it is $V$ for equal probabilities |
# | absolute discounting | $P(w \mid h) = \max(c(hw) - D, 0)/c(h) + \gamma(h)\, P(w \mid h')$; $\gamma(h)$: the share taken off |
# | writing | $w_{t+1} \sim \mathrm{softmax}(z_t / \tau)$ |
# | the model | $z = \mathrm{LN}(x^{(N)})\, E^T$, tied |
# | mixture | $0.9\, \hat y_{\text{table}} + 0.1\, \hat y_{\text{model}}$ |

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
# <details><summary>3. A model writes the same sentence again and again. Which line of your loop do you look at first?</summary>
#
# At the temperature: near 0 the likeliest token always comes, and after the same context it is the same again. Then at what the model reads: the last tokens, or the first?
# </details>
#
# <details><summary>4. A model has a context window of 4,096 tokens. How do you find out whether it uses them?</summary>
#
# Let it predict the same tokens with shorter and shorter contexts: from which length on does the loss rise?
# </details>

# %% [markdown]
# ## Next, and further reading
#
# This model writes whatever comes next. Lesson 11 gives it something to say: it translates, and is scored.
#
# Shannon 1948 (counting, and sampling from counts); Kneser & Ney 1995, Chen & Goodman 1999 (counting done well); Bengio et al. 2003 (the first neural language model); Sennrich et al. 2016 (byte pairs); Press & Wolf 2017 (tied weights); Radford et al. 2019 (GPT-2). Lecture: L3.
