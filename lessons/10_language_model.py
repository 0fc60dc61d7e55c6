# %% [markdown]
# # 10 · A language model
#
# **75 minutes · after lesson 09 · needs `shakespeare` (5.4 MB)**
#
# A **language model** does one thing: it predicts the next token of a text. **Is your Transformer any better at it than a table of counts, which needs no training?**
#
# One of these two texts was written by such a table, the other by a Transformer larger than yours. Which is which? Half-way down your own writes for you. At the end you know where it beats counting.

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

causal_mask = mine("masks/causal")
EncoderBlock = mine("encoder/block")
LearnedPositions = mine("positions/learned")
layer_norm = mine("add_norm/layer_norm")

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
pictures.two_samples(results.load("language_model")["figures"])

# %% [markdown]
# ## One text, many examples
#
# Our text is the beginning of Shakespeare's works. It is as long as Karpathy's *tiny Shakespeare*, but another text, so losses on the two do not compare. The last tenth is **held out**: nothing is trained on it, everything is measured on it. Our tokens are characters.

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
# The labels come from the text itself: the target of each token is the token that follows. This is **self-supervised** training.

# %% tags=["hide-input"]
pictures.shifted("to be ")

# %% [markdown]
# The text is $w_1, w_2, \dots$ A window of $T$ tokens is $T$ examples at once: its first position predicts from one token, its last from $T$, under the causal mask. $T$ is the **context window**. Windows begin every $s$ tokens, the **stride**, and there are $m$ of them. For $i = 0, \dots, m - 1$ and $t = 1, \dots, T$ (`length`):
#
# $$\underset{m \times T}{\text{inputs}}_{i,t} = w_{i \cdot s + t} \qquad\qquad \underset{m \times T}{\text{targets}}_{i,t} = w_{i \cdot s + t + 1}$$

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
# Characters make long sequences. Words make short ones, but no vocabulary has them all. Large models are in between: **byte pair encoding** begins with the 256 bytes, merges the most frequent pair of neighbours into a new token, and repeats that. GPT-2 has 50,000 such merges, so a word is often one token. Qwen 3's 150,000 tokens are made in the same way (Qwen 2025). Models with different tokens are compared by their loss *per byte*. Ours are characters, each a byte. [Byte pairs](explorations/10_byte_pairs.ipynb) is an exploration.

# %% [markdown]
# ## How surprised was it?
#
# At each position the model returns **logits** $z \in \mathbb{R}^{V}$, one for each token, and softmax turns them into probabilities $\hat y$. Multiply the probabilities of the tokens that really came. In a long text the product underflows to 0, so take logarithms, change the sign and average:
#
# $$-\frac{1}{T} \log \prod_{t=1}^{T} \hat y_t[w_{t+1}] = \frac{1}{T} \sum_{t=1}^{T} L_t \qquad\quad L_t = -\log \hat y_t[w_{t+1}] = \log \sum_{v=1}^{V} e^{z_{t,v}} - z_{t,\,w_{t+1}}$$

# %% [markdown]
# $L_t$ is the **cross-entropy** of position $t$, in **nats** since the logarithm is natural; the exponential of its mean is the **perplexity**. Only the sum needs care, because $e^{1000}$ overflows. `torch.logsumexp` returns its logarithm without the overflow.

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
# It is $\ln V$: the first thing to check when a training begins. Its perplexity is $e^{\ln 77} = 77$: the model is as uncertain as between 77 equally likely characters.
#
# <details><summary>Where a lecture slips (D17)</summary>
#
# With a one-hot $y_t$ for the right answer, L3 prints $-\sum_{w \in V} y_t[w] \log \hat y_t[w_{t+1}]$, where the definition has $\log \hat y_t[w]$. For a one-hot $y_t$ both are the same number, for other targets only the definition is a cross-entropy.
# </details>

# %% [markdown]
# ## The model
#
# A Transformer without an encoder is **decoder-only**. Without cross-attention its block is your `EncoderBlock`. A token's vector is a row of a learned **embedding matrix** $E$, and each position has a learned vector too. Then come pre-norm blocks under a causal mask, a last layer norm (LN), and a **language-modelling head** that scores every token:
#
# $$x^{(0)}_t = \underset{d}{E_{w_t}} + p_t \qquad x^{(l)} = \mathrm{Block}_l\big(x^{(l-1)},\ \text{causal}\big) \qquad \underset{n \times V}{z} = \mathrm{LN}\big(x^{(N)}\big)\, E^T$$

# %% tags=["hide-input"]
pictures.model()

# %% [markdown]
# The head has no matrix of its own: it is $E$ again, and its output is a dot product of the state with every token's vector. Such **tied weights** (Press & Wolf 2017) save $V \cdot d$ parameters. You write only `forward`:

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
# ## Let it write
#
# Any model that predicts can write: draw the next token, append it, and predict again. The draw is from
#
# $$\hat y_v = \mathrm{softmax}(z / \tau)_v = \frac{e^{z_v / \tau}}{\sum_u e^{z_u / \tau}}$$
#
# With a **temperature** $\tau \to 0$ the likeliest token is always drawn (**greedy** decoding). Above 1, unlikely ones are drawn more often. In the stub, `choose` changes the logits before the softmax.

# %%
# exercise: sampling/generate

# %%
check("sampling/generate", generate)

# %%
generate = mine("sampling/generate")

# %%
prompt = known.encode("\nBRUTUS.\n")


def write(model, temperature=0.8, count=220, seed=1):
    """Return what a model with room for 64 characters writes."""
    generator = torch.Generator().manual_seed(seed)
    written = generate(model, prompt, count, 64, generator, lambda logits: logits / temperature)
    return known.decode(written)


# %% [markdown]
# ## It writes
#
# The untrained model's loss is a little above $\ln V$. Now train it. Here are a batch, 16 of the windows, and then the loop:


# %%
def drawn(step, size=16):
    """Return the numbers of the windows that a step reads."""
    generator = torch.Generator().manual_seed(step)
    return torch.randint(len(inputs), (size,), generator=generator)


def batch(step):
    return inputs[drawn(step)], targets[drawn(step)]


def loss(model, pair):
    return cross_entropy(model(pair[0]), pair[1])


# %%
def train(model, batches, loss, learning_rate=0.006):
    """Change the model in place; return the loss of each step."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=learning_rate), []
    for pair in batches:
        value = loss(model, pair)
        optimizer.zero_grad()
        value.backward()  # how the loss would change with each parameter
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # no jump after an odd batch
        optimizer.step()
        losses.append(value.item())
    return losses


# %% [markdown]
# `training.train` is this loop with a learning rate that rises and falls, a clock and a progress bar. Take 600 steps. You write the step of its optimizer, **AdamW**, in [Which optimizer?](explorations/10_optimizers.ipynb).

# %% tags=["training"]
model, written = new(), {}


def watched(steps):
    for step in range(steps):
        if step in (0, 60, 200):
            written[f"your model, step {step}"] = write(model)
        yield batch(step)


history = training.train(model, watched(600), loss, steps=600, seconds=30, learning_rate=0.006)
written[f"your model, step {history.steps}"] = write(model)

# %% tags=["training"]
shown = {"Shakespeare": known.decode(held_out)[3985:4230]}
pictures.texts(written | shown, "Noise, then lines, then words")

# %% tags=["training"]
for temperature in (0.2, 0.8, 2.0):
    print(f"--- temperature {temperature}", write(model, temperature, 120), sep="")

# %% [markdown]
# Half a minute, and your model writes lines that begin with capitals. Cold, it repeats frequent words. Hot, it writes noise. Better controls, top-k and top-p, are in [Sampling](explorations/10_sampling.ipynb).
#
# ## Too good to be true
#
# A colleague trains the same model for 60 steps, with a loss of her own:


# %% tags=["hide-input", "training"]
def her_loss(model, pair):
    windows, _ = pair
    return F.cross_entropy(model(windows)[:, :-1].mT, windows[:, :-1])


hers = new()
reported = train(hers, map(batch, range(60)), her_loss)[-1]
print(f"her loss: {reported:.3f} nats. It writes:", repr(write(hers, count=60)))
training.expect("her loss is below 0.3 nats", reported < 0.3, round(reported, 3))

# %% [markdown]
# Her loss is near zero, and her model writes nonsense. A loss far below everybody else's is a bug until proven otherwise. Hers is the mean of what this function returns. One line is wrong:

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
# Each position had been asked for the token that it had just read. So the model learned to copy: after a line break it writes a line break. What is a good loss, then?
#
# ## The baseline: counting
#
# A **baseline** is what a method has to beat. Ours is the oldest language model: count which character follows which, and predict the relative frequencies. Counting pairs gives a **bigram model**. We add 1 to each count, so that nothing is impossible.

# %% tags=["nbval-check-output"]
pairs = torch.ones(vocab, vocab)
pairs.index_put_((learning[:-1], learning[1:]), torch.tensor(1.0), accumulate=True)
bigram = (pairs / pairs.sum(-1, keepdim=True)).log()
bigram_loss = cross_entropy(bigram[held_out[:-1]], held_out[1:]).item()
print(f"{bigram_loss:.3f} nats, perplexity {torch.tensor(bigram_loss).exp():.1f}")

# %% [markdown]
# Counting pairs brings 77 down to 12.3. Longer contexts say more: after *Caesa* comes an *r*. An **n-gram model** looks at the last $n - 1$ characters. But many contexts of six characters are new, so it **falls back** on shorter ones: **absolute discounting** takes a little off each count, and lets the shorter context distribute it.
#
# *Francisco* is frequent, but only after *San*, so in a new context it is unlikely. So for shorter contexts Kneser & Ney 1995 do not count how often a token came, but after how many *different* tokens.
#
# <details><summary>The formulas</summary>
#
# Let $h$ be a context, and $h'$ the shorter one. Absolute discounting (Ney et al. 1994) takes $D$ off each count:
#
# $$P(w \mid h) = \frac{\max\big(c(hw) - D,\, 0\big)}{c(h)} + \underbrace{\frac{D \cdot \#\{w : c(hw) > 0\}}{c(h)}}_{\text{what was taken off}} P(w \mid h')$$
#
# We estimate one $D$ for counts of 1, one for 2, and one for more (Chen & Goodman 1999). Kneser and Ney count, for the shorter contexts, the different tokens before $h'w$:
#
# $$P(w \mid h') \;\propto\; N_{1+}(\cdot\, h' w) = \#\{v : c(v h' w) > 0\}$$
# </details>

# %% [markdown]
# **Each further character makes a context say more, and makes it rarer. Does the loss fall with each of them?**

# %%
guess = None  # "yes" or "no"

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
falls = all([*x.values()] == sorted(x.values(), reverse=True) for x in counted.values())
reveal(guess, "yes" if falls else "no")
pictures.counted(counted)

# %% [markdown]
# Each way to count has a best length. Beyond it the loss rises again, for Kneser and Ney only a little. Their n-gram model with six characters of context is our baseline.

# %%
baseline = NGrams(learning, vocab)  # Kneser and Ney's counts, six characters of context


def counting(tokens):
    return baseline.probabilities(tokens).log()


# %% [markdown]
# Logarithms of probabilities are logits, too, so your `generate` lets the table write as well. Beside it is a **larger model**. It has over seven times as many parameters, and was trained for six minutes on one core with another optimizer, Muon ([Which optimizer?](explorations/10_optimizers.ipynb)). It loads into *your* `LanguageModel` and `EncoderBlock`, with rotary attention, RMSNorm and $\max(0, z)^2$ in place of the ReLU.

# %% tags=["training"]
from course_lib.pretrained import shakespeare_model

larger = shakespeare_model.load(LanguageModel, EncoderBlock)
yours = f"your model, step {history.steps}"
texts = {
    yours: written[yours],
    "the n-gram model": write(counting),
    "a larger model": write(larger),
}
title = "Yours invents many words, the table a few, the larger model none here"
pictures.texts(texts | shown, title)

# %% [markdown]
# ## Which one wins?
#
# The n-gram model writes better than yours, and was ready at once. But it has counted the whole text, and yours has not even read it once. So we also count only the windows that yours has read. Each held-out character is predicted from at least half a window.


# %%
@torch.no_grad()
def predicted(model, n=64, every=1):
    """Return log-probabilities after each place of (every so many) windows, and what followed."""
    windows, following = examples(held_out, n, n // 2)
    at_once = 4096 // n  # so many windows are one batch
    batches = windows[::every].split(at_once)
    predictions = torch.cat([model(batch).log_softmax(-1) for batch in batches])
    return predictions, following[::every]


def late_loss(predictions, following):
    """Return the loss over the second half of each window."""
    late = predictions.shape[1] // 2
    return cross_entropy(predictions[:, late:], following[:, late:]).item()


# %% tags=["training"]
seen = torch.cat([drawn(step) for step in range(history.steps)]).unique()
print(f"your model has read {len(seen) / len(inputs):.0%} of the text")
same_text = NGrams(inputs[seen].flatten(), vocab)
by_model, following = predicted(model)
by_counts, _ = predicted(counting)
by_fewer, _ = predicted(lambda tokens: same_text.probabilities(tokens).log())
each = {"your model": by_model, "n-gram model": by_counts, "n-gram model, same text": by_fewer}
losses = {name: late_loss(predictions, following) for name, predictions in each.items()}

# %% tags=["training", "hide-input"]
claim = "your model is ahead of the bigram model, and both n-gram models are ahead of yours"
ahead = losses["n-gram model, same text"] < losses["your model"] - 0.1 < bigram_loss - 0.3
training.expect(claim, ahead, losses, model)
lines = {"bigram model": bigram_loss} | losses
pictures.training(
    history.losses, lines, "600 steps beat counting pairs, but not counting longer contexts"
)

# %% [markdown]
# The n-gram model wins clearly, even with only the text that yours has read. Does your model know anything that these counts do not?
#
# ## It knows where a line ends
#
# A famous passage: at each character, how probable is a line end to each of the two models?

# %% tags=["training"]
newline = known.encode("\n").item()
start = known.decode(held_out).index("Friends, Romans")
before = held_out[start - 64 : start + 89].unfold(0, 64, 1)  # the 64 in front of each character
with torch.no_grad():
    chances = {
        "n-gram model": baseline.probabilities(before)[:, -1, newline].tolist(),
        "your model": model(before)[:, -1].softmax(-1)[:, newline].tolist(),
    }
passage = known.decode(held_out[start : start + 90])
pictures.line_ends(
    passage,
    chances,
    "After a comma the n-gram model thinks of a new line; yours waits for the line to fill",
)

# %% [markdown]
# The n-gram model sees the comma, but not how long the line is. Your model sees 64 characters. What is that worth? Ask both at every held-out character: *does the line end here?* With the probability $q$ of a line end, the loss is $-\log q$ where it does, and $-\log(1 - q)$ where it does not.


# %%
def line_ends(predictions):
    """Return the probability of a line end after each place."""
    return predictions[..., newline].exp().clamp(max=1)


def line_end_loss(chance, following):
    """Return the loss of the question, over the second half of each window."""
    late = chance.shape[1] // 2
    ends = (following[:, late:] == newline).float()
    return F.binary_cross_entropy(chance[:, late:], ends).item()


# %% [markdown]
# Is a network needed for that? A third model counts line ends, too, but it is told the **column**: how many characters the line has so far. Its context is the column and the last three characters.

# %%
from course_lib.corpus import line_end_chances


def told_the_column(n=64):
    """Return the third model's probability of a line end after each place of the windows."""
    after_each = line_end_chances(learning, held_out[:-1], newline)
    return after_each.unfold(0, n, n // 2)  # the same windows as in `predicted`


# %% tags=["training"]
told = {"n-gram model": line_ends(by_counts), "told the column": told_the_column()}
told["your model"] = line_ends(by_model)
line_end = {name: line_end_loss(chance, following) for name, chance in told.items()}
print("does the line end?", {name: round(loss, 4) for name, loss in line_end.items()})

# %% [markdown]
# Here your model is ahead of the n-gram model. Counts that are told the column are as good as yours or a little better. But a table has to be told what to count. Your model was told nothing.
#
# What does it look at? Take each line end of the held-out text, turn the line breaks in front of it into spaces, and put one line break back, in place of the character forty or ten before the end. It may break a word. So, for comparison, put a space there instead.

# %% tags=["training"]
ends = (held_out[64:] == newline).nonzero().flatten()
text_before = held_out.unfold(0, 64, 1)[ends]  # the 64 characters in front of each line end
space, at_ends = known.encode(" ").item(), {}
joined = text_before.masked_fill(text_before == newline, space)
for name, token in (("line break", newline), ("space", space)):
    for back in (40, 10):
        moved = joined.clone()
        moved[:, -back] = token
        with torch.no_grad():
            logits = torch.cat([model(x)[:, -1] for x in moved.split(256)])
        chance = logits.softmax(-1)[:, newline].mean().item()
        at_ends[f"{name} {back} back"] = chance
        print(f"{name} {back} characters back: probability of a line end {chance:.2f}")

# %% [markdown]
# It looks at the last line break. Ten characters back, that makes an end less likely than forty back, though the last nine characters are the same. With a space instead there is no break at all: an end is likeliest, wherever the space is, as if the line were longest.
#
# Look at the texts at the top again. A is by the larger model, in lines of verse. B has a line of 70 characters: it cannot see where a line began.

# %% [markdown]
# ## How far back does it look?
#
# A context window of 64 says what a model *may* read, not what it uses. Cut the held-out text into windows of 2, 4, 8, ... characters, and ask for the line ends again. A line has about 40 characters.


# %% tags=["training"]
def with_windows_of(n, model, every=1):
    predictions, following = predicted(model, n, every)
    return line_end_loss(line_ends(predictions), following)


curve = {n: with_windows_of(n, model) for n in (2, 4, 8, 16, 32, 64)}
by_larger = {n: with_windows_of(n, larger, every=4) for n in (2, 4, 8, 16, 32, 64, 128)}
print(f"the larger model: {late_loss(*predicted(larger, 128)):.2f} nats a character")

# %% tags=["training", "hide-input"]
curves = {"your model": curve, "larger model": by_larger}
baselines = {name: line_end[name] for name in ("n-gram model", "told the column")}
title = "With each longer window, the Transformers know line ends better"
pictures.by_context(curves, baselines, title)

# %% tags=["training", "hide-input"]
claim = "your model wins line ends by 0.005 nats, and counts told the column are within 0.007 of it"
behind = {name: loss - line_end["your model"] for name, loss in line_end.items()}
holds = behind["n-gram model"] > 0.005 and abs(behind["told the column"]) < 0.007
training.expect(claim, holds, behind, model)
claim = "each longer window helps, 4 are too few, and the larger model is ahead of all counts"
falls = [*curve.values()] == sorted(curve.values(), reverse=True)
baseline_loss, most = line_end["n-gram model"], line_end["told the column"] - 0.005
holds = falls and curve[4] > baseline_loss > curve[32] and by_larger[128] < most
training.expect(claim, holds, {"n-gram model": baseline_loss} | curve, model)
claim = "a line end is likelier by 0.03 where the line seems longer, and a space changes nothing"
longer, shorter, *spaces = at_ends.values()
longest = min(spaces)  # without any break
holds = longest > longer + 0.03 > shorter + 0.06 and abs(spaces[0] - spaces[1]) < 0.02
training.expect(claim, holds, at_ends, model)

# %% [markdown]
# The more it reads, the better it answers. The larger model predicts line ends better than counts that are told the column. And its total loss is below the n-gram model's: six minutes on one core, and a Transformer is ahead of these counts. Time alone does not do it: with nanoGPT's settings, six minutes only draw level ([Which optimizer?](explorations/10_optimizers.ipynb)).
#
# ## Break it
#
# - Leave the causal mask out of your `LanguageModel`, and train. What is the loss, and what does it write?
# - Train the larger model yourself, out of your own classes. It takes one idle core six minutes:
#
# <details><summary>Its training</summary>
#
# ```python
# from course_lib.optimizers import Muon
#
# larger = shakespeare_model.new(LanguageModel, EncoderBlock)
# windows, steps = examples(learning, 128, 128), 1050
# matrices = [weight for weight in larger.blocks.parameters() if weight.dim() == 2]
# others = [*({*larger.parameters()} - {*matrices})]
# optimizers = Muon(matrices, dtype=torch.bfloat16), torch.optim.Adam(others)
# for step in range(steps):
#     rows = torch.randint(len(windows[0]), (32,))
#     with torch.autocast("cpu", torch.bfloat16):
#         logits = larger(windows[0][rows])
#     value = cross_entropy(logits.float(), windows[1][rows])
#     larger.zero_grad()
#     value.backward()
#     for optimizer, rate in zip(optimizers, (0.02, 0.003)):
#         optimizer.param_groups[0]["lr"] = rate * min(1, 1.4 * (1 - step / steps))
#         optimizer.step()
#     if step % 100 == 0:
#         print(step, value.item())
#
# print(write(larger), late_loss(*predicted(larger, 128)))
# ```
# </details>

# %% [markdown]
# ## What to remember
#
# For the next token, the text itself is the label. Counting is a strong baseline: half a minute of training does not reach it. But a table must be told what to count. A Transformer finds out by itself what helps. In half a minute it learned where a line may end. In six, a larger model with a better optimizer won on the whole text.
#
# | | |
# |:-|:-|
# | examples | inputs $w_{1..T}$, targets $w_{2..T+1}$ |
# | cross-entropy | $-\log \hat y_t[w_{t+1}] = \log\sum_v e^{z_v} - z_{w_{t+1}}$ |
# | perplexity | $\exp(\text{mean loss in nats})$ |
# | the model | $z = \mathrm{LN}(x^{(N)})\, E^T$, tied |
# | writing | $w_{t+1} \sim \mathrm{softmax}(z_t / \tau)$ |
# | absolute discounting | $P(w \mid h) = \max(c(hw) - D, 0)/c(h) + \gamma(h)\, P(w \mid h')$; $\gamma(h)$: the share taken off |
# | Kneser and Ney | $P(w \mid h') \propto N_{1+}(\cdot\, h'w)$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A window of 64 tokens: how many predictions does it train, and why does none of them see its answer?</summary>
#
# 64. The target of position t is token t + 1, which the causal mask hides from it.
# </details>
#
# <details><summary>2. A new model with 50,000 tokens begins with a loss of 14. What do you suspect?</summary>
#
# ln 50,000 = 10.8, so its logits are far too large at the start: look at the initial size of the embedding, which the tied head uses.
# </details>
#
# <details><summary>3. A model has a context window of 4,096 tokens. How do you find out whether it uses them?</summary>
#
# Let it predict the same tokens from shorter and shorter contexts. Where does the loss begin to rise?
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 11 gives a model something to say: it translates, and is scored. Where large models' text comes from: [Data](explorations/10_data.ipynb).
#
# Shannon 1948; Ney et al. 1994, Kneser & Ney 1995, Chen & Goodman 1999; Bengio et al. 2003; Sennrich et al. 2016; Press & Wolf 2017; Radford et al. 2019 (GPT-2). Lecture: L3.
