# %% [markdown]
# # 08 · Encoder and decoder
#
# **75 minutes · after lesson 07 · needs nothing**
#
# You have built attention, heads, masks, positions, a feed-forward network, residual connections and norms. **How do the parts fit together into a Transformer?**
#
# At the end you have written a block from an empty class, the attention that connects two stacks, and the loop that writes text. Your blocks, in the model of 2017, copy, reverse and sort words that they have never seen, and you can say where they fail, and why.

# %%
import torch
from collections.abc import Callable
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention", "cross-attention", "feed-forward", "add & norm"}
    | {"embedding", "positions", "linear, softmax"},
    "The Transformer of 2017, all of it lit. An encoder block has self-attention and a "
    "feed-forward network; a decoder block has masked self-attention, cross-attention and a "
    "feed-forward network. Add & norm follows each of them.",
)

# %% [markdown]
# Today every box of the map is lit. We begin with the piece that it repeats.
#
# ## What a block is
#
# A block has two **sublayers**. In the first, self-attention, tokens exchange information. In the second, a feed-forward network, each token is processed on its own. Each sublayer $f$ sits inside a residual connection and a norm, in one of lesson 07's two orders:
#
# $$\text{post-norm (2017)}\quad y = \mathrm{LN}\big(x + f(x)\big) \qquad\qquad \text{pre-norm}\quad y = x + f\big(\mathrm{LN}(x)\big)$$

# %% tags=["hide-input"]
SIZE = (3.6, 0.62)
ROLE = {"norm": "norm", "add & norm": "norm", "add": "stream", "feed-forward": "network"}
ROLE |= {"embedding": "stream", "add positions": "position", "linear": "value", "softmax": "value"}


def upwards(diagram, names, x, shape, *, y=0.0, step=1.15, inner=1):
    """Draw parts from below upwards, the shape on each arrow, and residual connections beside."""
    boxes = {}
    for i, name in enumerate(names):
        role = ROLE.get(name, "query")
        boxes[i] = diagram.box(name, (x, y + i * step), role, size=SIZE)
    for i in range(len(names) - 1):
        shape = r"$m \times vocab$" if names[i] == "linear" else shape
        diagram.arrow(boxes[i], boxes[i + 1])
        place = (x + 0.2 * inner, y + (i + 0.5) * step)
        diagram.text(shape, place, size=9, align="left" if inner > 0 else "right")
    for i, name in enumerate(names):
        if name in ("add", "add & norm"):
            # the branch begins below its norm, where that comes first
            first = i - 2 if name == "add" else i - 1
            start, side = boxes[first].at[1] - step / 2, x - inner * 2.15
            corners = [(side, start), (side, boxes[i].at[1])]
            diagram.arrow((x, start), boxes[i], via=corners, role="stream")
    return boxes


# %% tags=["hide-input"]
diagram = drawings.Diagram()
post = ["self-attention", "add & norm", "feed-forward", "add & norm"]
pre = ["norm", "self-attention", "add", "norm", "feed-forward", "add"]
for names, x, title in ((post, 2, "post-norm, 2017"), (pre, 8.4, "pre-norm")):
    boxes = upwards(diagram, names, x, r"$n \times d$")
    top = boxes[len(names) - 1]
    diagram.arrow((x, -1.2), boxes[0])
    diagram.arrow(top, (x, top.at[1] + 1.2))
    for y in (-0.95, top.at[1] + 0.7):
        diagram.text(r"$n \times d$", (x + 0.2, y), size=9, align="left")
    diagram.text(title, (x, top.at[1] + 1.5))
diagram.show(
    "Two blocks, drawn from below. Post-norm: self-attention, add & norm, feed-forward, add & "
    "norm. Pre-norm: norm, self-attention, add, norm, feed-forward, add. Each residual connection "
    "passes one sublayer, with its norm in pre-norm. Every arrow carries n by d numbers, the first "
    "and the last too.",
)

# %% [markdown]
# In pre-norm, no block norms the residual path. In post-norm every norm sits on the path, so it rescales all that earlier blocks wrote. This lesson trains the order of 2017, with the other one as a control.
#
# $n \times d_{model}$ numbers go in, and as many come out. That is why blocks can be stacked.

# %% [markdown]
# ## The whole Transformer
#
# Two stacks: the **encoder** reads the source, $n$ tokens, and the **decoder** writes the target, $m$ tokens. Token $t$ at position $i$ enters a stack as
#
# $$x_i = \sqrt{d_{model}}\; E_t + p_i \qquad \underset{vocab \times d_{model}}{E}$$
#
# The entries of $E$ start with variance $1/d_{model}$; the factor makes it 1, of the order of the sinusoids $p_i$.

# %% tags=["hide-input"]
encoder = ["self-attention", "add & norm", "feed-forward", "add & norm"]
decoder = ["masked self-attention", "add & norm", "cross-attention", *encoder[1:]]
before = ["embedding", "add positions"]
diagram = drawings.Diagram()
left = upwards(diagram, before + encoder, 2.4, r"$n \times d$")
right = upwards(diagram, [*before, *decoder, "linear", "softmax"], 9.1, r"$m \times d$", inner=-1)
for boxes, x, words, size in (
    (left, 2.4, "source", "n"),
    (right, 9.1, "target, shifted right", "m"),
):
    diagram.text(f"{words}: ${size}$ token ids", (x, -1.35), size=9)
    diagram.arrow((x, -1.1), boxes[0])
    block = encoder if x < 5 else decoder
    bottom, height = boxes[2].at[1] - 0.78, len(block) * 1.15 + 0.04
    diagram.frame("× N", (x, bottom + height / 2), (4.7, height))
across = right[4]
top, out = left[len(left) - 1], right[len(right) - 1]
corners = [(2.4, top.at[1] + 0.8), (5.75, top.at[1] + 0.8), (5.75, across.at[1])]
diagram.arrow(top, across, via=corners, role="key")
diagram.text(r"memory $H$, $n \times d$: keys and values", (3.6, top.at[1] + 1.55), size=9)
diagram.text("in every block of the decoder", (3.6, top.at[1] + 1.12), size=9)
diagram.arrow(out, (9.1, out.at[1] + 1.1))
diagram.text(r"probabilities of the next token: $m \times vocab$", (9.1, out.at[1] + 1.35), size=9)
diagram.show(
    "The Transformer with shapes. Encoder: n token ids, embedding, positions, then N blocks of "
    "self-attention and feed-forward, each n by d, up to the memory H. Decoder: m token ids, "
    "embedding, positions, then N blocks of masked self-attention, cross-attention and "
    "feed-forward, each m by d; then linear and softmax, m by vocab. The memory goes as keys and "
    "values into the cross-attention of every decoder block. Residual connections pass each "
    "sublayer.",
)

# %% [markdown]
# What the encoder returns, $H$, is called the **memory**. The model has three attentions, all by the function that you have (section 3.2.3 of the paper):
#
# | attention | queries | keys, values | mask | scores |
# |:-|:-|:-|:-|:-|
# | encoder's | source | source | padding | $n \times n$ |
# | decoder's | target | target | causal | $m \times m$ |
# | cross- | target | memory $H$ | source's padding | $m \times n$ |
#
# The base model of the paper has $N = 6$ blocks in each stack, $d_{model} = 512$, 8 heads and $d_{ff} = 2048$. One matrix $E$ serves both embeddings and the output, logits $= Y E^T$ (**tied embeddings**, section 3.4). A pre-norm stack ends with one more norm, because no block has normed the stream.

# %% [markdown]
# ## Trained in one pass, written in many
#
# In training the target is known. The decoder reads it **shifted right**, behind a token *start*, and must predict at each position the token that comes next (**teacher forcing**). All $m$ positions are scored in one pass. In writing there is no target: the model reads *start*, takes the likeliest token, appends it, and reads everything again (**greedy decoding**):
#
# $$t_{i+1} = \arg\max_{v}\; \mathrm{logits}_{i+1,\,v}\big(\text{source},\; \text{start}, t_1, \dots, t_i\big)$$

# %% tags=["hide-input"]
diagram, wide, high = drawings.Diagram(), 1.35, 2.15
reads, target = ["start", "b", "e", "l"], "belt"


def a_pass(left, y, m, lit, size=(1.15, 0.6)):
    """Draw the tokens that are read, and a row of logits above each: those in `lit` are used."""
    rows = []
    for i in range(m):
        token = diagram.box(reads[i], (left + wide * i, y), "stream", size=size)
        role = "value" if i in lit else "dim"
        rows.append(diagram.box(target[i], (left + wide * i, y + 1.05), role, size=size))
        diagram.arrow(token, rows[i], role="plain" if i in lit else "dim")
    return rows


for m in range(1, 5):
    rows = a_pass(1.1, high * (m - 1), m, {m - 1})
    diagram.text(f"pass {m}", (0.2, high * (m - 1) + 0.5), size=9, align="right")
    if m < 4:
        corner = (1.1 + wide * m, rows[-1].at[1])
        diagram.arrow(rows[-1], (corner[0], high * m - 0.3), via=[corner], role="value")
a_pass(7.6, 0, 4, {0, 1, 2, 3})
diagram.text("writing: m passes", (3.1, -0.8))
diagram.text("training: one pass", (9.6, -0.8))
diagram.text("logits, each compared", (9.6, 2.15), size=9)
diagram.text("with the target b e l t", (9.6, 1.75), size=9)
diagram.text("above each token that is read:", (9.6, 5.2), size=9)
diagram.text("its row of logits, by the likeliest token", (9.6, 4.8), size=9)
diagram.text("green: used; grey: thrown away", (9.6, 4.4), size=9)
diagram.show(
    "Writing belt takes four passes, drawn from below. Pass 1 reads start, and its row of logits "
    "gives b. Pass 2 reads start, b: the row above b gives e, the row above start is thrown away. "
    "Pass 3 reads start, b, e, and only the last row is used, for l. Pass 4 reads start, b, e, l, "
    "and the last row gives t. Training reads start, b, e, l in one pass, and all four rows are "
    "compared with the target b, e, l, t.",
)

# %% [markdown]
# Only the last row of logits is used in writing, because only that position has seen everything written so far. The grey rows are the same as in the passes before: the causal mask hides from them what was appended. So one pass over a known target gives what $m$ passes would. Here is a small model, not trained:

# %%
from typing import Literal
from course_lib.decoder import DecoderBlock
from course_lib.feed_forward import FeedForward
from course_lib.masks import shift_right
from course_lib.transformer import Transformer
from course_lib.verify.torch_stacks import torch_block

layer_norm, PostNorm = mine("add_norm/layer_norm"), mine("add_norm/post_norm")
PreNorm, MultiHeadAttention = mine("add_norm/pre_norm"), mine("multi_head/attention")
softmax, causal_mask = mine("attention/softmax"), mine("masks/causal")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
padding_mask, leaks_future = mine("masks/padding"), mine("masks/leaks_future")

# %%
torch.manual_seed(0)
model = Transformer(vocab=28, layers=2, d_model=64, heads=4, d_ff=256, max_length=9)
source, target = torch.randint(26, (2, 1, 8))
read = shift_right(target, 26)
memory = model.encoder(source)  # once: the source does not change
logits = model.output(model.decoder(read, memory))  # training: one pass
passes = [model.output(model.decoder(read[:, :m], memory)) for m in range(1, 9)]
written = torch.stack([rows[:, -1] for rows in passes], dim=1)
print(tuple(logits.shape), "largest difference:", f"{(written - logits).abs().max():.0e}")
assert torch.allclose(written, logits, atol=1e-4)

# %% [markdown]
# Now build it.
#
# ## Build: a block from an empty class
#
# This time you write the constructor too. Two equations say what the block computes, where $\mathrm{AddNorm}_f$ is either of the two orders above:
#
# $$\underset{n \times d_{model}}{s} = \mathrm{AddNorm}_{\text{attention}}(x) \qquad\qquad \underset{n \times d_{model}}{y} = \mathrm{AddNorm}_{\text{network}}(s)$$

# %% [markdown]
# `attention`, `feed_forward` and `norm_layer` are arguments so that others can take their place: in lesson 09, real models run in your block. The check copies our parameters into your block by name, so call the two parts `self.attention` and `self.feed_forward`.
#
# Two helpers are given. `AsSelfAttention` makes query, key and value from the same tokens. `residual` returns your `PostNorm` or your `PreNorm`, called as `PostNorm(sublayer, d_model, norm_layer)`.

# %%
# given: multi_head.AsSelfAttention

# %%
# given: encoder.residual

# %%
# exercise: encoder/block

# %%
check("encoder/block", EncoderBlock)

# %%
EncoderBlock = mine("encoder/block")

# %% [markdown]
# PyTorch has this block too, `nn.TransformerEncoderLayer`. Give it your block's parameters and a batch of two sentences, one of five tokens and one of three:

# %%
x, mask = torch.randn(2, 5, 12), padding_mask(torch.tensor([5, 3]), 5)
for norm in ("post", "pre"):
    block = EncoderBlock(12, 3, 20, norm)
    theirs = torch_block(dict(block.named_parameters()), 3, norm, x, mask)
    difference = (block(x, mask) - theirs).abs().max().item()
    print(f"{norm}-norm: largest difference from PyTorch's block {difference:.0e}")
    assert difference < 1e-5

# %% [markdown]
# ## One mask makes a decoder
#
# Why are some models called encoders and others decoders, if the block is the same? Send six tokens through your block, without a mask and with a causal mask. `leaks_future` (lesson 05) lists the positions whose output depends on a later token. **Which positions, counted from 0, does it list in each case?**

# %%
guess = None  # two lists

# %%
x, block = torch.randn(6, 12), EncoderBlock(12, 3, 20)
without = leaks_future(block, x)
causal = leaks_future(lambda words: block(words, causal_mask(len(words))), x)
reveal(guess, (without, causal))
assert without == [0, 1, 2, 3, 4] and causal == []

# %% [markdown]
# The last position has no later token. Same class, same parameters: without a mask each token sees both sides, an **encoder**; with a causal mask it sees itself and what came before, a **decoder**, which can be trained to predict the next token and then write. (*Decoder* has two meanings: in language models it is this causal stack; in the paper of 2017 it also has cross-attention.)

# %% [markdown]
# ## Cross-attention
#
# A translator has two texts. $H$ holds the states of the source, $Z$ the decoder's states of the target so far. The queries come from the target; keys and values come from the source:
#
# $$\underset{m \times d_v}{C} = \mathrm{softmax}\!\left(\frac{\overbrace{Z W_Q}^{m \times d_k}\;(\overbrace{H W_K}^{n \times d_k})^T}{\sqrt{d_k}}\right) \overbrace{H W_V}^{n \times d_v}$$
#
# **Take $m = 4$ target tokens, $n = 6$ source tokens, $d_k = d_v = 3$. What are the shapes of the scores, the weights and the result?**

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
# > **Where the lectures disagree (D15).** L1 calls both lengths T, and gives the score matrix of cross-attention the shape T × T. That is true only if source and target have equally many tokens. In general it is $m \times n$: a row for each target token, a column for each source token. After the softmax, each row of weights sums to one over the *source*.

# %%
assert scores.shape == (4, 6) and torch.allclose(weights.sum(-1), torch.ones(4))
assert not torch.allclose(weights.sum(0), torch.ones(6), atol=0.1)

# %% [markdown]
# It is the only connection between the two stacks.
#
# > **Where the lectures disagree (D16).** L5 calls this sublayer of the decoder "self-attention", with keys and values of the encoder. In *self*-attention, all three come from $Z$: with $Z$ fixed, no source can change the result. Does it here?

# %%
other = torch.randn(6, 8)
across = [
    scaled_dot_product_attention(z @ w_q, states @ w_k, states @ w_v) for states in (h, other)
]
difference = (across[1] - across[0]).abs().max()
print(f"cross-attention changes by up to {difference:.1f} when the source changes")
assert difference > 0.1 and torch.allclose(across[0], found, atol=1e-6)

# %%
# exercise: decoder/cross_attention

# %%
check("decoder/cross_attention", cross_attention)

# %%
cross_attention = mine("decoder/cross_attention")
assert torch.allclose(cross_attention(z, h, w_q, w_k, w_v), found, atol=1e-6)

# %% [markdown]
# A decoder block has it between the other two sublayers, each with its own add & norm:
#
# $$\underset{m \times d_{model}}{s} = \mathrm{AddNorm}_{\text{masked attention}}(x) \qquad \underset{m \times d_{model}}{c} = \mathrm{AddNorm}_{\text{cross-attention}}(s, H) \qquad \underset{m \times d_{model}}{y} = \mathrm{AddNorm}_{\text{network}}(c)$$
#
# Residual connection and norm act on $s$ only; $H$ goes in as it is. You can wire this block, and the two stacks, in [an exploration](explorations/08_one_page.ipynb). Here ours is held against PyTorch's:

# %%
x, memory = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
for norm in ("post", "pre"):
    block = DecoderBlock(12, 3, 20, norm)
    theirs = torch_block(dict(block.named_parameters()), 3, norm, x, mask, memory)
    ours = block(x, memory, causal_mask(4), mask)
    assert torch.allclose(ours, theirs, atol=1e-5)
    print(f"{norm}-norm: nn.TransformerDecoderLayer differs by {(ours - theirs).abs().max():.0e}")

# %% [markdown]
# The model is complete, and needs a loop to write. A row of the batch ends with *stop*; the loop goes on until every row has one. Look at the figure of passes again: what is read once, and what in every pass?

# %%
# exercise: transformer/greedy

# %%
check("transformer/greedy", greedy)

# %%
greedy = mine("transformer/greedy")

# %% [markdown]
# ## Find the bug: a loss that is too good
#
# Before any language, three tasks whose answers we know: eight different letters come in, and must be written again, backwards, or in alphabetical order. There are $26 \cdot 25 \cdots 19$ such sequences, more than 60 billion; training sees 19,200. All answers have eight letters, so `most=8` ends the writing.
#
# Somebody wrote the loss below and trained a sorter on it for 600 steps. The loss went to almost zero. Read the code for one minute. **What does this sorter write?**

# %%
# exercise: transformer/mend_loss

# %%
guess = None  # in your own words

# %% tags=["hide-input"]
kept = results.load("sequences")["figures"]
bug = kept["unshifted"]
reveal(guess, "the same letter eight times")
for run in bug:
    print(
        f"last loss {run['losses'][-1]:.4f} nats; {run['right']:.1%} of 1,000 sequences right,",
        f"{run['one letter']:.1%} one letter eight times",
    )
assert all(run["losses"][-1] < 0.01 for run in bug)
assert all(run["right"] == 0 and run["one letter"] > 0.9 for run in bug)

# %% [markdown]
# In training, each position but the first read the very letter that it had to predict, so the model learned to repeat what it reads. In writing it reads its own letters. Mend the line above, and check:

# %%
check("transformer/mend_loss", next_token_loss)

# %%
next_token_loss = mine("transformer/mend_loss")

# %% [markdown]
# ## Train it: copy, reverse, sort
#
# Two blocks on each side, $d_{model} = 64$, post-norm as in 2017; your block in the encoder, your loss, your loop. 600 steps a task.

# %%
START, STOP = 26, 27
TASKS = {"copy": lambda x: x, "reverse": lambda x: x.flip(-1), "sort": lambda x: x.sort().values}


def different(batch, generator):
    return torch.rand(batch, 26, generator=generator).argsort(-1)[:, :8]


def pairs(task):
    generator = torch.Generator().manual_seed(SEED)
    while True:
        source = different(32, generator)
        yield source, TASKS[task](source)


# %% tags=["training"]
def trained(task):
    sizes = {"vocab": 28, "layers": 2, "d_model": 64, "heads": 4, "d_ff": 256, "max_length": 9}
    with training.seeded(SEED):
        model = Transformer(**sizes, encoder_block=EncoderBlock)
    budget = {"steps": 600, "seconds": 30, "learning_rate": 0.003}
    training.train(model, pairs(task), lambda m, batch: next_token_loss(m, *batch, START), **budget)
    return model


models = {task: trained(task) for task in TASKS}

# %% tags=["training"]
unseen = different(1000, torch.Generator().manual_seed(1000))
for task, model in models.items():
    written = greedy(model, unseen, START, STOP, most=8)
    right = (written == TASKS[task](unseen)).all(-1).float().mean().item()
    claim = f"{task}: over 0.97 of 1,000 new sequences are right"
    training.expect(claim, right > 0.97, right, model)

# %% [markdown]
# Here is the sorter at work on *problems*, pass by pass, with the likeliest letter of each row. Only the last one of each line is used:


# %% tags=["training"]
def spelled(tokens):
    return " ".join("start" if token == START else chr(token + ord("a")) for token in tokens)


word = torch.tensor([[ord(letter) - ord("a") for letter in "problems"]])
read, model = torch.tensor([[START]]), models["sort"]
for _ in range(8):
    rows = model(word, read).argmax(-1)
    print(f"{spelled(read[0].tolist()):21} → {spelled(rows[0].tolist())}")
    read = torch.cat([read, rows[:, -1:]], dim=-1)

# %% [markdown]
# ### Is sorting easier?
#
# From three seeds each, the sorter's loss is below 0.1 nats long before the copier's. But is it given the same problem? Eight different letters in any order can be guessed with $\ln(26!/18!)/8 = 3.11$ nats a letter, before anything is read. In alphabetical order there are only $\binom{26}{8}$ answers: $\ln\binom{26}{8}/8 = 1.78$ nats.
#
# So we add three controls: *copying* sources that are sorted already (1.78 too), sorting by a secret alphabet, and sorting where letters may repeat (2.02).


# %% tags=["hide-input"]
def steps_to_learn(name, rate="0.003", loss=0.1):
    runs = kept["runs"][name][rate]
    return [next((10 * i for i, x in enumerate(run["losses"]) if x < loss), None) for run in runs]


GROUPS = {
    ("copy", "reverse"): (plots.COLOURS[0], "copy, reverse", (175, 2.35)),
    ("sort", "copy, sorted already", "sort, secret alphabet"): (
        plots.COLOURS[1], "sort; copy, sorted already;\nsort by a secret alphabet", (62, 0.8),
    ),
    ("sort, letters repeat",): (plots.COLOURS[2], "sort, letters may repeat", (84, 0.47)),
}  # fmt: skip
title = "Sorted answers without repeats are learned first, copied or sorted"
figure, ax = plots.axes(title, "step", "loss, nats a letter", size=(7.4, 3.6))
for names, (colour, label, place) in GROUPS.items():
    for name in names:
        for run in kept["runs"][name]["0.003"]:
            ax.plot(range(5, 600, 10), run["losses"], color=colour, linewidth=1)
    ax.text(*place, label, color=colour, size="small")
for text, guessed in (("any order", 3.11), ("sorted", 1.78)):
    ax.axhline(guessed, color="0.5", linewidth=1, linestyle=":")
    ax.text(300, guessed + 0.04, f"best guess without a source, {text}: {guessed}", ha="right",
            size="small", color="0.35")  # fmt: skip
ax.set(xlim=(0, 302), ylim=(0, 3.6))
plots.show(
    figure,
    "Loss by step, three seeds for each of six tasks. Sorting, copying what is sorted already and "
    "sorting by a secret alphabet fall together, below 0.1 nats after 70 to 90 steps. Copying and "
    "reversing fall there after 210 to 270 steps, sorting with repeated letters after 220 to 260, "
    "though it is below 0.6 after 50 to 60. "
    "Dotted lines at 3.11 and 1.78 nats.",
)

# %% tags=["hide-input"]
slow, quick, repeating = ([x for name in names for x in steps_to_learn(name)] for names in GROUPS)
print("steps until the loss is below 0.1, three seeds, at a learning rate of 0.003:")
for name in kept["runs"]:
    print(f"{name:21}", *steps_to_learn(name))
assert max(quick) <= 100 and min(slow) >= 200 and min(repeating) >= 200
for name, by_rate in kept["runs"].items():
    assert all(run["right"] > 0.99 for run in by_rate["0.003"])
    means = {rate: sum(x or 600 for x in steps_to_learn(name, rate)) / 3 for rate in by_rate}
    assert min(means, key=means.get) == "0.003"
assert steps_to_learn("copy", "0.01") == [None, None, None]
assert set(steps_to_learn("sort, letters repeat", loss=0.6)) == {50, 60}
assert round(kept["guess"]["any order"], 2) == 3.11 and round(kept["guess"]["sorted"], 2) == 1.78
assert round(kept["guess"]["sorted, letters repeat"], 2) == 2.02

# %% [markdown]
# Where the source is sorted, copying *is* sorting, and as quick. So all we can say is: quick is a sorted answer without repeats. Because it can be guessed better, or because each letter follows from the last one, without a position? Both hold for all the quick tasks; the last run speaks against the first. With repeated letters the loss falls as quickly at first, below 0.6 nats after 50 to 60 steps, and then needs as long as copying to get below 0.1.

# %% [markdown]
# (Learning rates 0.001, 0.003 and 0.01 were tried: 0.003 is the quickest for each task but the last, which had this rate alone, and at 0.01 copying is not learned in 600 steps. In pre-norm, the control, all three tasks come out as right.)
#
# ### What does it look at?
#
# The weights of cross-attention, averaged over heads, while *problems* is written:

# %% tags=["training", "hide-input"]
from course_lib.instruments.recording import record_weights


def cross_weights(task, source, number=-1):
    """Return the weights of a decoder block's cross-attention, averaged over heads."""
    layer, target = models[task].decoder.blocks[number].cross_attention, TASKS[task](source)
    with torch.no_grad(), record_weights(layer.sublayer.attention) as kept_weights:
        models[task](source, shift_right(target, START))
    return kept_weights[0].mean(1)


title = "On one word, the last block mostly looks at the letter that is written next"
figure, panels = plots.panels(title, list(TASKS), size=(9, 3.2))
for ax, task in zip(panels, TASKS):
    image = ax.imshow(cross_weights(task, word)[0], vmin=0, vmax=1)
    ax.set_xticks(range(8), list("problems"))
    ax.set_yticks(range(8), spelled(TASKS[task](word)[0].tolist()).split())
    ax.set(xlabel="source letter")
panels[0].set_ylabel("letter to be written")
figure.colorbar(image, ax=panels, label="weight", shrink=0.8)
plots.show(
    figure,
    "Three maps of weights, 8 letters to be written by 8 letters of problems. Copying is bright "
    "on the diagonal, reversing on the antidiagonal, sorting where the same letter is.",
)

# %% [markdown]
# One word is an anecdote. Over 1,000 new sequences, in how many of 8,000 rows is the largest weight on the letter that is written next? And is it *used*? We forbid one decoder block to look at that letter, or at another one, drawn at random, and count how often the letter is still predicted.


# %% tags=["hide-input"]
def mean(name, key, block):
    return sum(run["looks"][key][block] for run in kept["runs"][name]["0.003"]) / 3


print("mean of three seeds   block  largest weight  predicted without it  without another")
for name in [*TASKS, "copy, pre-norm", "reverse, pre-norm"]:
    for block in (0, 1):
        shares = [mean(name, key, block) for key in ("largest", "hidden", "another hidden")]
        print(f"{name:21} {block + 1:6} {shares[0]:15.1%} {shares[1]:21.1%} {shares[2]:16.1%}")
    for looks in (run["looks"] for run in kept["runs"][name]["0.003"]):
        (first, last), pre = looks["hidden"], "pre-norm" in name
        assert looks["largest"][1] > (0.99 if pre else 0.96)
        assert min(looks["another hidden"]) > 0.98
        assert (first < 0.21 and last > 0.7) if pre else (first > 0.7 and last < 0.1)
slow = [kept["runs"][name]["0.001"] for name in ("copy, pre-norm", "reverse, pre-norm")]
slow = [round(run["looks"]["hidden"][1], 2) for runs in slow for run in runs]
print("without it in block 2, pre-norm at a rate of 0.001:", slow)
assert (min(slow), max(slow)) == (0.15, 0.72)

# %% [markdown]
# In post-norm the last block looks at the letter. Hidden, its weight goes to wrong letters, and the block fails. The pre-norm models are a warning. Their last block looks at the letter just as surely, over 99 % of the time; but hide it there, and copying and reversing go on in 80 to 87 % of the rows, because the *first* block has read it.

# %% [markdown]
# (At a rate of 0.001: 46 and 51 %.) A weight says where a layer looks, not what the model uses.
#
# ## Where it breaks
#
# In training all eight letters were *different*. Now let letters repeat, as in *happened*. **Which of the three tasks suffers?**

# %%
guess = None  # a list of tasks

# %% tags=["nbval-check-output", "hide-input"]
repeated = {
    name: [run["repeating"] for run in kept["runs"][name]["0.003"]]
    for name in [*TASKS, "sort, letters repeat"]
}
reveal(guess, [name for name in TASKS if max(repeated[name]) < 0.9])
for name, shares in repeated.items():
    print(f"{name:21}", ", ".join(f"{share:.0%}" for share in shares))
assert max(repeated["sort"]) < 0.3 and min(repeated["copy"] + repeated["reverse"]) > 0.95
assert min(repeated["sort, letters repeat"]) > 0.97

# %% [markdown]
# Of 1,000 sequences with a repeated letter, only the sorter fails. In its training the next letter was always a *later* one, so at a repeated letter it may go on to the next later one, and then has one letter too few for the end. It is not the architecture: the last row was trained on sequences with repeats, and sorts them. *happened*, sorted, would be *adeehnpp*:

# %% tags=["training"]
happened = torch.tensor([[ord(letter) - ord("a") for letter in "happened"]])
for task, model in models.items():
    print(f"{task:8}", spelled(greedy(model, happened, START, STOP, most=8)[0].tolist()))

# %% [markdown]
# *happened*: it skips the second *e*, and an *e* fills the end, after *p p*. Where two tasks agree on the data, training may learn either.
#
# ## Three families, three masks
#
# The encoder-decoder is one of three ways to use these blocks. Write source and target as one sequence of 4 and 4 tokens; then each family is one mask:

# %% tags=["hide-input"]
from matplotlib.colors import ListedColormap

full, causal = torch.ones(8, 8).bool(), causal_mask(8)
two_stacks = full.clone()
two_stacks[:4, 4:] = False
two_stacks[4:, 4:] = causal_mask(4)
families = {"encoder only": full, "decoder only": causal, "encoder-decoder": two_stacks}
assert [int(mask.sum()) for mask in families.values()] == [64, 36, 42]
title = "Everything, the past, or both: what a token (row) may see (column)"
figure, panels = plots.panels(title, list(families), size=(9, 3.3))
tokens = ["$s_1$", "$s_2$", "$s_3$", "$s_4$", "$t_1$", "$t_2$", "$t_3$", "$t_4$"]
for ax, mask in zip(panels, families.values()):
    ax.imshow(mask.float().masked_fill(~mask, torch.nan), cmap=ListedColormap([plots.COLOURS[0]]))
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.7", hatch="///")
    ax.set_xticks(range(8), tokens)
    ax.set_yticks(range(8), tokens)
    ax.set_xticks([i + 0.5 for i in range(7)], minor=True)
    ax.set_yticks([i + 0.5 for i in range(7)], minor=True)
    ax.grid(which="minor", color="white", linewidth=1)
    ax.tick_params(which="both", length=0)
panels[2].axhline(3.5, color=plots.COLOURS[1])
panels[2].axvline(3.5, color=plots.COLOURS[1])
plots.show(
    figure,
    "Three 8 by 8 masks over source tokens s1 to s4 and target tokens t1 to t4. Encoder only: all "
    "64 cells are open. Decoder only: the 36 cells on and below the diagonal. Encoder-decoder: "
    "sources see all sources, targets see all sources and the targets up to themselves, 42 cells.",
)

# %% [markdown]
# In the third, top left is the encoder's self-attention, the triangle the decoder's, and bottom left cross-attention. (*One* stack with this mask is a **prefix language model**, Raffel et al. 2020.) The mask limits the training task: a model that sees the answer cannot be asked to predict it.
#
# | family | training task, on *the cat sleeps on the mat* | examples | lesson 09 runs |
# |:-|:-|:-|:-|
# | encoder only | **masked language modelling**: read *the cat [MASK] on the mat*, predict *sleeps* | BERT, RoBERTa | MiniLM |
# | decoder only | **next-token prediction**: after *the cat*, predict *sleeps*, and so at every position | GPT, Llama | SmolLM2 |
# | encoder-decoder | translation, or **span corruption**: read *the cat ⟨X⟩ the mat*, write *⟨X⟩ sleeps on ⟨Y⟩* | the paper; T5 | Marian |

# %% [markdown]
# (BERT: Devlin et al. 2019; T5: Raffel et al. 2020, whose ⟨X⟩ and ⟨Y⟩ mark spans.)
#
# Which family is best? Most assistants of today are decoder-only. In the comparison of Raffel et al. the encoder-decoder did best, and nearly as well with one set of parameters for both stacks. These were fine-tuned for one benchmark each. Neither settles it.

# %% [markdown]
# ## Look inside your model
#
# `xray` sends a word through a model and keeps every step: the tensor, its formula, and the source of the function that computed it, marked *yours* if it came from `mine`. Here is your sorter, and beside it the same model with its masks left out. **Which tensor is the first one that differs, in which stack?** (Each attention computes queries, keys, values, weights, heads' output and a result.)

# %%
guess = None  # such as "encoder, queries of the first block"

# %% tags=["hide-input"]
from string import ascii_lowercase
from course_lib.xray import without_mask, xray

letters = [*ascii_lowercase, "start", "stop"]
sorter = globals().get("models", {}).get("sort")  # none where the cells that train were left out
sorter = sorter or Transformer(28, 2, 64, 4, 256, 9)
page = xray(sorter, "problems", words=letters, beside=without_mask(sorter), columns=32)
changed = [stage for stage, share in page.changes.items() if share]
reveal(guess, changed[0])
print("further ones:", ", ".join(changed[1:6]), "...")
assert changed[0] == "decoder/0/attention/weights"
assert not any(stage.startswith("encoder") for stage in changed)

# %%
page

# %% [markdown]
# (Where you see no page above, as on GitHub, run the notebook: it is drawn by a script.) Queries, keys and values come before the mask is used, and the encoder has no mask to leave out. So the first difference is in the weights of the decoder's first self-attention. After them all differs but the keys and values of cross-attention.
#
# In *Attention*, point at a letter on the left: which letter of *problems* is read while it is written? In *Next token*, compare the two versions.

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | post-norm, pre-norm | $\mathrm{LN}(x + f(x)), \qquad x + f(\mathrm{LN}(x))$ |
# | what enters the first block | $\sqrt{d_{model}}\, E_t + p_i$ |
# | cross-attention | $\mathrm{softmax}\big(Z W_Q (H W_K)^T / \sqrt{d_k}\big)\, H W_V$, scores $m \times n$ |
# | training, one pass | reads (start, $t_1, \dots, t_{m-1}$), predicts ($t_1, \dots, t_m$) |
# | greedy decoding, $m$ passes | $t_{i+1} = \arg\max_v \mathrm{logits}_{i+1,\,v}$, the last row |
#
# An encoder block with a causal mask is a language model's block. A decoder block of 2017 has cross-attention between the two sublayers.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A source has 7 tokens, a target 5. What are the shapes of the scores in the three attentions, for one head?</summary>
#
# Encoder 7 × 7, masked self-attention 5 × 5, cross-attention 5 × 7.
# </details>
#
# <details><summary>2. How often do encoder and decoder run to write 20 tokens by your <code>greedy</code>? And to train on them?</summary>
#
# The encoder once; the decoder 20 times, on 1, 2, …, 20 tokens. In training both run once. An exploration of lesson 09 avoids reading the old tokens again.
# </details>
#
# <details><summary>3. A loss of 0.0004 after 100 steps, and the model writes nonsense. What do you look at first?</summary>
#
# What the decoder reads in training: can a position see the token that it must predict, by a wrong shift or a missing mask?
# </details>
#
# <details><summary>4. "Sorting is easier than copying: its loss falls in half the steps." What do you ask?</summary>
#
# How well can the answer be guessed without the source? Does each letter follow from the last one?
# </details>

# %% [markdown]
# ## In your own words
#
# A company wants to search its documents, to translate them, and to have a program that answers questions about them. For each of the three, choose an encoder, an encoder-decoder or a decoder. Justify each choice in a sentence or two: what may each token look at, and what is computed once, what for every new token?

# %% [markdown] tags=["question:which_family"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# Lesson 09 runs three trained models in the same blocks: one searches, one translates, one answers questions. Beside this lesson: [your Transformer on one page](explorations/08_one_page.ipynb), which runs without this course, and [where are 65 million parameters?](explorations/08_parameters.ipynb)
#
# Vaswani et al. 2017, section 3; Xiong et al. 2020 (pre-norm); Devlin et al. 2019 (BERT); Raffel et al. 2020 (T5, and a comparison of the three families); Rush 2018 (*The Annotated Transformer*: the paper's text beside code, pre-norm). Lectures: L1 to L5.
