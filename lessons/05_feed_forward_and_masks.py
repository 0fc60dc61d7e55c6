# %% [markdown]
# # 05 · Feed-forward and masks
#
# **75 minutes · after lesson 04 · needs `shakespeare` (5.4 MB)**
#
# A language model predicts the next token, and in training the answer is part of its input. **How do you know that your model does not read the future?**
#
# First you build the two parts that a model that writes still lacks: a network that works on each token alone, and a causal mask. Your smallest block then writes. Is its loss honest? You build a detector that finds leaks without looking inside the layer, and catch cheats with it.

# %%
import torch
from collections.abc import Callable
from einops import rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

# %%
from course_lib.data import characters, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, results, training
from course_lib.instruments.pictures import feed_forward as pictures

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
drawings.transformer(
    {"masked self-attention", "feed-forward"},
    "The Transformer of 2017 with two kinds of parts lit: the masked self-attention, the first "
    "layer of a decoder block, and the feed-forward network, the last layer of every block.",
)

# %% [markdown]
# ## The feed-forward network
#
# Attention moves vectors from token to token. Once its weights are given, each output is a weighted sum of the $x_j W_V$: what arrives has only been multiplied by a matrix. A token that looks at itself alone goes through twelve layers of attention, with nothing between them, as through one matrix:
#
# $$x \;\longmapsto\; x\, W_V^{(1)}\, W_V^{(2)} \cdots W_V^{(12)} \;=\; x\, W$$
#
# The other half of the block computes with what a token has collected. Here is something that it can do and one matrix cannot.

# %% [markdown]
# Let a token have two properties, each +1 or −1: is it a word of praise, and is it negated? *Good* and *not bad* are kind; *bad* and *not good* are not. So "kind" means that the two properties differ: **XOR**. No affine map $f(x) = xW + b$ computes it, since opposite corners of the square have the same midpoint:
#
# $$f(1, 1) + f(-1, -1) = f(1, -1) + f(-1, 1), \qquad\text{but XOR needs}\qquad 0 + 0 = 1 + 1.$$

# %% [markdown]
# Nor does a threshold help: if both kind cases were above it and both others below, the two sums would differ. A small network with one hidden layer computes it. The Transformer has one in each block, and sends every token through it, one at a time. Its **ReLU**, $\max(0, \cdot)$, sets negative entries to zero:
#
# $$\underset{1 \times d}{\mathrm{FFN}(x)} = \max(0,\; \underset{1 \times d}{x}\;\underset{d \times d_{ff}}{W_1} + \underset{1 \times d_{ff}}{b_1})\;\underset{d_{ff} \times d}{W_2} + \underset{1 \times d}{b_2}$$

# %% tags=["hide-input"]
pictures.network()

# %%
# exercise: feed_forward/position_wise

# %%
check("feed_forward/position_wise", feed_forward)

# %%
feed_forward = mine("feed_forward/position_wise")

# %% [markdown]
# Two hidden units are enough for XOR: one is positive only for *good*, the other only for *not bad*. Your network answers:

# %% tags=["nbval-check-output"]
words = {"not good": (1, 1), "good": (1, -1), "not bad": (-1, 1), "bad": (-1, -1)}
w_1, w_2 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]), torch.tensor([[0.5], [0.5]])
for word, properties in words.items():
    answer = feed_forward(
        torch.tensor([properties]).float(), w_1, torch.zeros(2), w_2, torch.zeros(1)
    )
    print(f"{word:8}", "kind" if answer.item() > 0.5 else "not kind")

# %% tags=["hide-input"]
zero = torch.zeros(2)
pictures.folded(lambda x: feed_forward(x, w_1, zero, torch.eye(2), zero), w_1)

# %% [markdown]
# $W_1$ lays the plane on a line, the ReLU folds that line, and one cut separates the kind corners from the others. In a notebook a slider shows it step by step.
#
# The weights of attention are a nonlinearity, too, since they depend on the tokens. But they choose *from where* something comes. The network changes *what* a token holds, and every token pays for it once, however long the text is.

# %% [markdown]
# Vaswani et al. 2017 chose $d_{ff} = 4d$. Beside four attention matrices of $d \times d$, of which lesson 06 adds the fourth, $8d^2$ of a block's $12 d^2$ parameters are then in its network: two thirds. The ReLU has gone since: most models of 2026 gate the hidden layer instead (SwiGLU, lesson 09).

# %% [markdown]
# ## The answer is in the input
#
# The second part is a mask. A decoder's inputs are the text **shifted right** by one position, behind a start token. So one pass over $n$ tokens gives $n$ examples at once:
#
# $$(\text{start},\; t_1,\; t_2,\; \dots,\; t_{n-1}) \;\longmapsto\; (t_1,\; t_2,\; t_3,\; \dots,\; t_n)$$

# %% tags=["hide-input"]
pictures.shifted()

# %% [markdown]
# But the token that a position must predict is the next position's input, and attention reads every position. Without a mask a model can copy it, and learn nothing else.

# %%
softmax = mine("attention/softmax")
dot_scores = mine("attention/dot_scores")
project = mine("self_attention/project")
SelfAttention = mine("self_attention/layer")

# %% [markdown]
# ## Hide the future
#
# Token $i$ may look at itself and at the tokens before it. The **causal mask** sets all other scores to $-\infty$, and the softmax turns them into zeros:
#
# $$e_{ij} = \begin{cases} q_i \cdot k_j / \sqrt{d_k} & j \le i \\ -\infty & j > i \end{cases} \qquad \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{l \le i} \exp(e_{il})}$$

# %%
scores = torch.tensor([[2.0, 0, 1, 3], [0, 1, 2, 1], [1, 3, 2, 4], [2, 0, 1, 1]])
visible = torch.ones(4, 4).bool().tril()
weights = softmax(scores, visible)

# %% tags=["hide-input"]
pictures.masked(scores, visible, weights)

# %% [markdown]
# The largest score of *I*, 4, is for *compare*, the very token that it must predict. The mask hides it, and the row becomes $(e^1, e^3, e^2, 0) / (e^1 + e^3 + e^2)$.
#
# In this course a mask is boolean, and True means "may look". When a model *writes*, only the newest tokens are queries. So let the $n_q$ queries be the *last* of $n_k$ keys:
#
# $$M_{ij} = (\,j \le i + n_k - n_q\,) \qquad M_{2 \times 4} = \begin{pmatrix} 1 & 1 & 1 & 0 \\ 1 & 1 & 1 & 1 \end{pmatrix}$$

# %%
# exercise: masks/causal

# %%
check("masks/causal", causal_mask)

# %%
causal_mask = mine("masks/causal")

# %% [markdown]
# > **The diagonal (D01).** L2 and L4 hide the keys $j > i$. L1 hides $j \ge i$, the diagonal too. Then the first token has no key at all, and torch's softmax of an empty row is NaN. The diagonal is safe: the inputs are shifted, so the input at a position is the token *before* the one to predict.

# %% tags=["nbval-check-output"]
strict = causal_mask(3).tril(-1)
print(torch.softmax(torch.zeros(3, 3).masked_fill(~strict, -torch.inf), dim=-1))

# %% [markdown]
# Why a mask, and not only the keys of the past? L1 says: "At every timestep, we could change the set of **keys and queries** to include only past words. (Inefficient!)" That takes a pass for each position. With the mask one pass computes all rows. Lesson 08 compares the two.

# %% [markdown]
# ## The smallest block
#
# Self-attention, positions, a network and a mask: you have them all.
#
# $$\underset{n \times d}{Y} \;=\; \mathrm{FFN}\big(\mathrm{Attention}(\underset{n \times d}{X} + \underset{n \times d}{P},\; \text{causal mask})\big)$$

# %% tags=["hide-input"]
pictures.smallest_block()

# %% [markdown]
# In code, with embeddings below and a linear layer above:

# %%
from course_lib.feed_forward import FeedForward
from course_lib.positions import sinusoidal


# %%
class Block(nn.Module):
    def __init__(self, attention, network):
        super().__init__()
        self.attention, self.network = attention(48, 48, 48), network(48, 192)

    def forward(self, x):
        n = x.shape[-2]
        return self.network(self.attention(x + sinusoidal(n, 48), causal_mask(n)))


def next_loss(model, batch):
    read, following = batch
    return F.cross_entropy(model(read).mT, following)


# %%
def my_network(d_model, d_ff):
    return FeedForward(d_model, d_ff, network=feed_forward)


def train(attention, network=my_network):
    learning, _ = characters.split()
    vocab = len(characters.vocab())
    with training.seeded(SEED):
        block = Block(attention, network)
        model = nn.Sequential(nn.Embedding(vocab, 48), block, nn.Linear(48, vocab))
    data = characters.batches(learning, 32, 32, SEED)
    training.train(model, data, next_loss, steps=800, learning_rate=0.01, seconds=30)
    return model


# %% [markdown]
# Train it on Shakespeare's characters: with *your* network, with nothing in its place, and with its two matrices, but no ReLU. The baseline is a table of pairs, or **bigrams**: it counts which character follows which.


# %%
def affine(x, w_1, b_1, w_2, b_2):
    return (x @ w_1 + b_1) @ w_2 + b_2


def without_relu(d_model, d_ff):
    return FeedForward(d_model, d_ff, network=affine)


# %%
needs("shakespeare")

# %% tags=["training"]
networks = {"nothing": lambda *sizes: nn.Identity(), "no ReLU": without_relu, "yours": my_network}
blocks = {name: train(SelfAttention, network) for name, network in networks.items()}
batch = next(characters.batches(characters.split()[1], 32, 256, seed=1))
with torch.no_grad():
    losses = {name: next_loss(model, batch).item() for name, model in blocks.items()}

# %% tags=["training"]
learning, n = characters.split()[0], len(characters.vocab())
counts = torch.bincount(n * learning[:-1] + learning[1:], minlength=n * n).view(n, n)
counts = counts + 0.05  # no pair is impossible
pairs = (counts / counts.sum(1, keepdim=True)).log()
losses = {"a table of pairs": -pairs[batch].mean().item()} | losses
for name, loss in losses.items():
    print(f"{name:16} {loss:.2f}")

# %% tags=["training", "hide-input"]
gains = {name: round(loss - losses["yours"], 2) for name, loss in losses.items() if name != "yours"}
claim = "with your network the loss is lower than in the three other rows, by 0.05 nats at least"
training.expect(claim, min(gains.values()) > 0.05, gains, *blocks.values())

# %% [markdown]
# The table sees one character. Attention without a network, in these 800 steps, hardly beats it. Without the ReLU the two matrices are one, and the block hardly gains by them. With it, your network wins a tenth of a nat or two. Now let the model write, one character after the other. It sees the last 32 at most, as many as in training.


# %% tags=["training"]
@torch.no_grad()
def write(model, start, length=60, window=32):
    tokens, generator = characters.encode(start), torch.Generator().manual_seed(SEED)
    for _ in range(length):
        probabilities = model(tokens[None, -window:])[0, -1].softmax(-1)
        drawn = torch.multinomial(probabilities, 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return characters.decode(tokens)


print(write(blocks["yours"], "Shall I compare thee"))

# %% [markdown]
# Hardly a word of English. Lesson 04's model had two blocks with all their parts, and wrote better. Stack this block as it is, and a token's own input fades: **rank collapse** ([an exploration](explorations/05_stack.ipynb)). Lesson 07 adds the two parts that preserve the input.

# %% [markdown]
# ## Build a detector
#
# Is the loss of your model honest? A wrong mask does not crash, and the loss even looks better. So test behaviour: change one token, and see whether any output to its left moves. If one does, its position has read the future. A leak that is found is a proof. An empty list is none: a layer that reads only the token eight places ahead leaks nothing in a line of eight tokens. So test lines as long as those of training.

# %%
# exercise: masks/leaks_future

# %%
check("masks/leaks_future", leaks_future)

# %%
leaks_future = mine("masks/leaks_future")

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
tokens, layer = torch.randn(6, 8), SelfAttention(8, 8, 8)
print("no mask    ", leaks_future(layer, tokens))
print("causal mask", leaks_future(lambda x: layer(x, causal_mask(6)), tokens))

# %% [markdown]
# ## Four boasts
#
# Four people have trained your block, with four kinds of attention, and each boasts of a loss on held-out text. Ann's attention is lesson 03's layer with your mask: hers is the model that you have just trained. Read the code of the others:


# %%
class Bob(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x, torch.ones_like(mask).tril(1))


class Cleo(SelfAttention):
    def forward(self, x, mask):
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        weights = softmax(dot_scores(q, k) / q.shape[-1] ** 0.5)
        return (weights * mask) @ v


# %%
class Dan(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x - reduce(x, "... n d -> ... 1 d", "mean"), mask)


# %% [markdown]
# **Who cheats? And who will have the lowest loss on held-out text?** All four take the same steps. Your detector reads the layers behind the embedding.

# %%
guess = None  # for example (["Ann", "Bob"], "Ann")

# %% tags=["training"]
models = {"Ann": blocks["yours"], "Bob": train(Bob), "Cleo": train(Cleo), "Dan": train(Dan)}
with torch.no_grad():
    boasts = {name: next_loss(model, batch).item() for name, model in models.items()}
print({name: round(loss, 2) for name, loss in boasts.items()})

# %% tags=["training"]
with torch.no_grad():
    embedded = models["Ann"][0](batch[0][:1])
leaks = {name: leaks_future(model[1:], embedded) for name, model in models.items()}
print({name: f"{len(places)} of 32 places leak" for name, places in leaks.items()})
cheats = [name for name in leaks if leaks[name]]
reveal(guess, (cheats, min(boasts, key=boasts.get)))

# %% [markdown]
# ## How the future got in
#
# Bob makes a mask of his own, one step too generous. Dan's mask is correct, but he first subtracts the mean of the whole line, the future included. No mask shows that leak. And Cleo?
#
# > **Before or after the softmax (D11).** All lectures set scores to $-\infty$ *before* it. But summaries in L1 and L2 can be read as setting weights to 0 *after* it: "Mask out the future by artificially setting attention weights to 0!" So does Cleo. Here is the row of *I*, both ways:

# %% tags=["nbval-check-output"]
for when, row in {"after": softmax(scores)[2] * visible[2], "before": weights[2]}.items():
    print(f"{when:6}", [round(x, 2) for x in row.tolist()], f"sum {row.sum():.2f}")

# %% [markdown]
# The hidden *value* is gone, but the row no longer sums to 1, and what is missing tells how large the hidden score was. Her model has learned to read that.
#
# ## Without the future
#
# When a model writes, there is no future to read. Let each of them write:

# %% tags=["training"]
for name, model in models.items():
    print(f"{name:5}", write(model, "Shall I compare thee").replace("\n", " / "))

# %% [markdown]
# Bob's and Dan's models have learned to peek, and stammer. But Cleo's text looks no worse than Ann's. Is her leak harmless? Measure: show each model one character of a line, then two, then three, and count only its last prediction.


# %% tags=["training"]
@torch.no_grad()
def past_only(model):
    read, following = batch
    last = torch.stack([model(read[:, :i])[:, -1] for i in range(1, 33)], dim=-1)
    return F.cross_entropy(last, following, reduction="none").mean(0)


by_length = {name: past_only(model) for name, model in models.items()}

# %% tags=["training", "hide-input"]
pictures.boasts(boasts, by_length, len(characters.vocab()))
above = {name: by_length[name] - by_length["Ann"] for name in ("Bob", "Cleo", "Dan")}
means = {name: round(losses.mean().item(), 2) for name, losses in above.items()}
claim = "Bob, Cleo and Dan leak, and each is above Ann when only the past is shown"
training.expect(claim, cheats == [*means] and min(means.values()) > 0, means, *models.values())
came = round(above["Cleo"][:24].min().item(), 2)
claim = "Cleo is over 3 nats above Ann with 24 characters or fewer"
training.expect(claim, came > 3, came, models["Ann"], models["Cleo"])

# %% tags=["hide-input"]
kept = results.load("leaks")["figures"]
rows = {
    name: [sum(x["past by length"]) / 32 for x in kept["runs"][name]] for name in ("Cleo", "Ann")
}
rows["Cleo, rows scaled"] = kept["scaled"]
print("nats with only the past shown, in two stored runs")
for name in ("Cleo", "Cleo, rows scaled", "Ann"):
    print(f"{name:18}", *(f"{loss:6.2f}" for loss in rows[name]))

# %% [markdown]
# Only Ann has learned to do without the next character, at every length. The others come near her at 32, where training had no future either. More than half of Cleo's loss comes from row sums that training never showed: with no future, nothing is missing from her last row. Scale the rows to their mean sums in training, and her loss is still over twice Ann's.

# %% [markdown]
# Her sample did not show it, although after 20 characters, as many as the prompt has, her curve is far above Ann's. A sample shows what a model finds likely, not how little it gives the true character.
#
# This is **data leakage**: the loss on whole lines looks better, even on held-out text, and the model is worse where it is used. Two tests find it: the detector, and a loss with only the past shown.
#
# ## More places to leak
#
# Torch has two conventions. In `F.scaled_dot_product_attention` True means *may look*; in `nn.MultiheadAttention` True means *may not*.

# %%
needs()  # nothing below needs Shakespeare

# %% tags=["nbval-check-output"]
mask, torchs = causal_mask(6), nn.MultiheadAttention(8, 1)


def fused(mask):
    return lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], mask)[0]


def heads(mask):
    return lambda x: torchs(x, x, x, attn_mask=mask, need_weights=False)[0]


for name, attend in {"scaled_dot_product_attention": fused, "MultiheadAttention": heads}.items():
    found = leaks_future(attend(mask), tokens), leaks_future(attend(~mask), tokens)
    print(f"{name:29} mask {found[0]}  ~mask {found[1]}")

# %% [markdown]
# The same mask is right in one and wrong in the other. Your detector tells which.
#
# Short texts are often **packed** into one line, so that no position is wasted. Then the mask must also keep the texts apart, as in the training of Llama 3 (2024) and SmolLM3 (2025). The one below has a bug in one line. Fix it.

# %%
# exercise: masks/packing

# %%
check("masks/packing", packing_mask)

# %%
packing_mask = mine("masks/packing")

# %% tags=["nbval-check-output"]
texts = torch.tensor([0, 0, 0, 1, 1, 1])
changed = torch.cat([torch.randn(3, 8), tokens[3:]])
for name, mask in {"causal": causal_mask(6), "packing": packing_mask(texts)}.items():
    moved = (layer(changed, mask) - layer(tokens, mask))[3:].abs().max().item()
    print(f"{name} mask: the second text moves when the first changes: {moved > 1e-6}")

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | shift right | inputs $(\text{start}, t_1, \dots, t_{n-1})$ for targets $(t_1, \dots, t_n)$ |
# | causal mask | $e_{ij} = -\infty$ for $j > i + n_k - n_q$, *before* the softmax |
# | feed-forward network | $\max(0,\, x W_1 + b_1)\, W_2 + b_2$, each token alone, $d_{ff} = 4 d$ |
# | smallest block | $\mathrm{FFN}(\mathrm{Attention}(X + P,\ \text{causal mask}))$ |
#
# Test for leaks by behaviour: neither the mask, nor the loss of whole lines, nor a sample shows them all.
#
# ## Test yourself
#
# <details><summary>1. Why can a feed-forward network without the ReLU not compute XOR?</summary>
#
# $(x W_1 + b_1) W_2 + b_2 = x\,(W_1 W_2) + (b_1 W_2 + b_2)$: one affine map.
# </details>
#
# <details><summary>2. Four queries, ten keys, causal. How many cells of the mask are True?</summary>
#
# The queries are the last four tokens and see 7, 8, 9 and 10 keys: 34.
# </details>
#

# %% [markdown]
# ## In your own words
#
# A colleague's language model has a loss that is too good to be true. Write the paragraph that you would send: how do you find out whether it sees the future, where could that get in, and why is it not enough to look at the mask?

# %% [markdown] tags=["question:does_it_leak"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# So far a token has one set of weights. Lesson 06 gives attention several heads. Three explorations: [lines of unequal length](explorations/05_batches.ipynb), [a stack of the smallest block](explorations/05_stack.ipynb), and [what a hidden unit knows](explorations/05_units.ipynb).
#
# Vaswani et al. 2017, sections 3.1 to 3.3; Dong et al. 2021 (rank collapse); Krell et al. 2021 (packing). Lectures L1 to L4: docs/TOPICS.md.
