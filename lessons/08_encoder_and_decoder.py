# %% [markdown]
# # 08 · Encoder and decoder
#
# **147 minutes, of which 114 are the core path · after lesson 07 · needs no data**
#
# You have built attention, heads, masks, positions, a feed-forward network, residual connections and norms. How do they fit together? In this lesson they become a block, blocks become a stack, and two stacks become the **Transformer** of 2017. You train it, with pre-norm, as soon as it is complete.

# %% [markdown]
# You will write a block from an empty class, connect an encoder to a decoder by **cross-attention**, and write the loop that generates text. Three such models then copy, reverse and sort sequences drawn anew. At the end, your own answers become one file that runs without this course.
#
# You need lessons 05 to 07: masks, `shift_right`, multi-head attention, post-norm and pre-norm. No later lesson needs the sections marked "(optional)".

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, my_transformer, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %%
from typing import Literal

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
sinusoidal, feed_forward = mine("positions/sinusoidal"), mine("feed_forward/position_wise")
causal_mask, padding_mask = mine("masks/causal"), mine("masks/padding")
shift_right, leaks_future = mine("masks/shift_right"), mine("masks/leaks_future")
split_heads, merge_heads = mine("multi_head/split_heads"), mine("multi_head/merge_heads")
MultiHeadAttention, layer_norm = mine("multi_head/attention"), mine("add_norm/layer_norm")
PostNorm, PreNorm = mine("add_norm/post_norm"), mine("add_norm/pre_norm")

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention", "cross-attention", "feed-forward", "add & norm"}
    | {"embedding", "positions", "linear, softmax"},
    "The Transformer of 2017, all of it lit. An encoder block has self-attention and a "
    "feed-forward network; a decoder block has masked self-attention, cross-attention and a "
    "feed-forward network. Add & norm follows each of them.",
)

# %% [markdown]
# ## One block
#
# A block has two **sublayers**. In the first, self-attention, tokens exchange information. In the second, a feed-forward network, each token is processed on its own. Each sublayer $f$ sits inside a residual connection and a norm, in one of lesson 07's two orders:
#
# $$\text{post-norm (2017)}\quad y = \mathrm{LN}\big(x + f(x)\big) \qquad\qquad \text{pre-norm}\quad y = x + f\big(\mathrm{LN}(x)\big)$$
#
# Shapes never change: $n \times d_{model}$ goes in, $n \times d_{model}$ comes out. That is why blocks can be stacked.

# %% tags=["hide-input"]
SIZE = (3.6, 0.62)
ROLE = {"norm": "norm", "add & norm": "norm", "add": "stream", "feed-forward": "network"}


def upwards(diagram, names, x, shape, *, y=0.0, step=1.15, inner=1):
    """Draw parts from below upwards, the shape on each arrow, and residual connections beside."""
    boxes = {}
    for i, name in enumerate(names):
        role = ROLE.get(name, "query" if "attention" in name else "stream")
        boxes[i] = diagram.box(name, (x, y + i * step), role, size=SIZE)
    for i in range(len(names) - 1):
        shape = r"$m \times vocab$" if names[i] == "linear" else shape
        diagram.arrow(boxes[i], boxes[i + 1])
        place = (x + 0.2 * inner, y + (i + 0.5) * step)
        diagram.text(shape, place, size=9, align="left" if inner > 0 else "right")
    for i, name in enumerate(names):
        if name.startswith("add") and "positions" not in name:
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
    diagram.text(title, (x, top.at[1] + 1.5))
diagram.show(
    "Two blocks, drawn from below. Post-norm: self-attention, add & norm, feed-forward, add & "
    "norm. Pre-norm: norm, self-attention, add, norm, feed-forward, add. Each residual connection "
    "passes one sublayer, with its norm in pre-norm. Every arrow carries n by d numbers, the first "
    "and the last too.",
)

# %% [markdown]
# In pre-norm the residual stream runs from bottom to top without a norm on it; in post-norm each norm is on the stream.
#
# ## Build: the encoder's block
#
# Three parts are given. `AsSelfAttention` makes query, key and value from the same tokens. `residual` returns your `PostNorm` or your `PreNorm`. `FeedForward` holds the two matrices of lesson 05.

# %%
# given: multi_head.AsSelfAttention

# %%
# given: encoder.residual

# %%
# given: feed_forward.FeedForward

# %% [markdown]
# This time the class is empty: write the constructor too. Two equations say what the block computes, where $\mathrm{AddNorm}_f$ is either of the two orders above:
#
# $$\underset{n \times d_{model}}{s} = \mathrm{AddNorm}_{\text{attention}}(x) \qquad\qquad \underset{n \times d_{model}}{y} = \mathrm{AddNorm}_{\text{network}}(s)$$
#
# `attention`, `feed_forward` and `norm_layer` are arguments so that others can take their place: in lesson 09, real models run in your block. The check copies the parameters of our block into yours by name, so call the two parts `self.attention` and `self.feed_forward`. Lesson 07's classes are called as `PostNorm(sublayer, d_model, norm_layer)`.

# %%
# exercise: encoder/block

# %%
check("encoder/block", EncoderBlock)

# %%
EncoderBlock = mine("encoder/block")

# %% [markdown]
# PyTorch has this block too, `nn.TransformerEncoderLayer`. Give it your block's parameters and a batch of two sentences, one of five tokens and one of three:

# %%
from course_lib.verify.torch_stacks import torch_block

x, mask = torch.randn(2, 5, 12), padding_mask(torch.tensor([5, 3]), 5)
for norm in ("post", "pre"):
    block = EncoderBlock(12, 3, 20, norm)
    theirs = torch_block(dict(block.named_parameters()), 3, norm, x, mask)
    difference = (block(x, mask) - theirs).abs().max().item()
    print(f"{norm}-norm: largest difference from PyTorch's block {difference:.0e}")
    assert difference < 1e-5

# %% [markdown]
# ### In the same time? (optional)
#
# The outputs agree. What about the time? `python -m benchmarks.blocks` sends 8 texts of 256 tokens through a block with $d_{model} = 512$ and 8 heads, forward and backward, on one thread. **By what factor is a block made of our formulas slower than PyTorch's?**

# %%
guess = None  # a factor

# %%
speed = results.load("block_speed")["figures"]
times = speed["times PyTorch's"]
for name, milliseconds in speed["milliseconds"].items():
    print(f"{name:38} {milliseconds} ms, {times[name]:.2f} times PyTorch's")
formulas, norms, rule, both = list(times.values())[1:]
reveal(guess, formulas)
assert 1.05 < formulas <= 1.3 and rule <= 1.05 and both < 1.05
assert formulas - rule > formulas - norms

# %% [markdown]
# The products with the weight matrices are the same in all of them. What differs is the steps between. Our softmax, written in five lines, reads and writes all $8 \cdot 8 \cdot 256^2$ scores (texts, heads, pairs of tokens) several times. PyTorch's **fused** attention works through them in small pieces and never stores them all. Give it to `MultiHeadAttention` as `rule=`, and nearly all of the difference is gone; a fused norm (`norm_layer=`) alone removes less. With both fused, the block's own code costs nothing measurable.

# %% [markdown]
# ## One mask makes a decoder
#
# Why are some models called encoders and others decoders, if the block is the same? Send six tokens through your block, without a mask and with lesson 05's causal mask. `leaks_future` lists the positions whose output depends on a later token. **Which positions, counted from 0, does it list in each case?**

# %%
guess = None  # two lists

# %%
x, block = torch.randn(6, 12), EncoderBlock(12, 3, 20)
without = leaks_future(block, x)
causal = leaks_future(lambda words: block(words, causal_mask(len(words))), x)
reveal(guess, (without, causal))
assert without == [0, 1, 2, 3, 4] and causal == []

# %% [markdown]
# The last position has no later token, so it is in neither list. The class is the same, and so are the parameters. Without a mask, each token sees both sides: an **encoder**. With a causal mask, each token sees itself and what came before it: a **decoder**. It can be trained to predict the next token at every position, and then it can write. The block of a language model is this block with a causal mask.

# %% [markdown]
# *Decoder* has two meanings. In language models it is this causal stack; in the paper of 2017, a causal stack that also has cross-attention. We build the paper's two stacks now.

# %% [markdown]
# ## Build: the encoder
#
# One block mixes tokens once. A stack does it $N$ times, and needs vectors to begin with. Token $t$ at position $i$ enters as
#
# $$x_i = \sqrt{d_{model}}\; E_t + p_i \qquad \underset{vocab \times d_{model}}{E}$$
#
# $E_t$ is row $t$ of $E$. At the start the entries of $E$ have variance $1/d_{model}$; the factor makes it 1, of the order of the sinusoids $p_i$, whose mean square is 1/2. `Embedding` does this. A pre-norm stack ends with one more norm, because nothing has normalized its stream. Both are given.

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
# The encoder turns a source of $n$ tokens into $n$ states, $H$, which is called the **memory**. How does the decoder read it?
#
# ## Cross-attention, step by step
#
# A translator has two texts. $H$ holds the states of the source, $Z$ the decoder's states of the target so far. The queries come from the target; keys and values come from the source:
#
# $$\underset{m \times d_v}{C} = \mathrm{softmax}\!\left(\frac{\overbrace{Z W_Q}^{m \times d_k}\;(\overbrace{H W_K}^{n \times d_k})^T}{\sqrt{d_k}}\right) \overbrace{H W_V}^{n \times d_v}$$

# %% [markdown]
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
# > **Where the lectures disagree (D15).** L1 calls both lengths T, and gives the score matrix of cross-attention the shape T × T. That is true only if source and target have equally many tokens. In general it is $m \times n$: a row for each target token, a column for each source token. Here it is 4 × 6. After the softmax, each row of weights sums to one over the *source*.

# %%
assert scores.shape == (4, 6) and torch.allclose(weights.sum(-1), torch.ones(4))
assert not torch.allclose(weights.sum(0), torch.ones(6), atol=0.1)

# %% [markdown]
# > **Where the lectures disagree (D16).** L5 calls this sublayer of the decoder "self-attention", with keys and values of the encoder. In *self*-attention, all three come from the same tokens, so a source cannot change the result. Does it here?

# %%
other = torch.randn(6, 8)
across = [
    scaled_dot_product_attention(z @ w_q, states @ w_k, states @ w_v) for states in (h, other)
]
difference = (across[1] - across[0]).abs().max()
print(f"cross-attention changes by up to {difference:.1f} when the source changes")
assert difference > 0.1 and torch.allclose(across[0], found, atol=1e-6)

# %% [markdown]
# Cross-attention is the only connection between the two stacks. Without it, the decoder would not know what to translate.

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
# A decoder block has three sublayers: masked self-attention over the target, cross-attention to the memory, and the feed-forward network.
#
# $$\underset{m \times d_{model}}{s} = \mathrm{AddNorm}_{\text{masked attention}}(x) \qquad \underset{m \times d_{model}}{c} = \mathrm{AddNorm}_{\text{cross-attention}}(s, H) \qquad \underset{m \times d_{model}}{y} = \mathrm{AddNorm}_{\text{network}}(c)$$
#
# The residual connection and the norm act on $s$ only; $H$ goes into the attention as it is, for keys and values.
#
# Two masks come in: a causal one for the target, and one for the padding of the source. `AsCrossAttention` is your `cross_attention` with several heads: key and value are the memory. Leave `look_back` alone: lesson 09 needs it, for a translator with a recurrence in place of self-attention.

# %%
# given: multi_head.AsCrossAttention

# %%
# exercise: decoder/block

# %%
check("decoder/block", DecoderBlock)

# %%
DecoderBlock = mine("decoder/block")

# %%
x, memory = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
for norm in ("post", "pre"):
    block = DecoderBlock(12, 3, 20, norm)
    theirs = torch_block(dict(block.named_parameters()), 3, norm, x, mask, memory)
    ours = block(x, memory, causal_mask(4), mask)
    assert torch.allclose(ours, theirs, atol=1e-5)
    print(f"{norm}-norm: nn.TransformerDecoderLayer differs by {(ours - theirs).abs().max():.0e}")

# %% [markdown]
# So one function, three uses (section 3.2.3 of the paper), for a source of $n$ tokens and a target of $m$:
#
# | attention | queries | keys, values | mask | scores |
# |:-|:-|:-|:-|:-|
# | encoder's | source | source | padding | $n \times n$ |
# | decoder's | target | target | causal | $m \times m$ |
# | cross- | target | memory $H$ | source's padding | $m \times n$ |

# %% [markdown]
# ## The Transformer of 2017
#
# Now the whole model, with the shapes on its arrows: $n$ source tokens, $m$ target tokens, $d = d_{model}$. (`Transformer` stops at the logits: `F.cross_entropy` applies the softmax itself, and an argmax needs none.) Change `norm` to `"pre"` and run the cell again to see the other order.

# %% tags=["hide-input"]
norm = "post"  # or "pre"


def block_of(*sublayers):
    order = {"post": ["{}", "add & norm"], "pre": ["norm", "{}", "add"]}[norm]
    return [part.format(sublayer) for sublayer in sublayers for part in order]


encoder = block_of("self-attention", "feed-forward")
decoder = block_of("masked self-attention", "cross-attention", "feed-forward")
before, last = ["embedding", "add positions"], ["norm"] if norm == "pre" else []
diagram = drawings.Diagram()
left = upwards(diagram, before + encoder + last, 2.4, r"$n \times d$")
after = [*last, "linear", "softmax"]
right = upwards(diagram, before + decoder + after, 9.1, r"$m \times d$", inner=-1)
for boxes, x, words, size in (
    (left, 2.4, "source", "n"),
    (right, 9.1, "target, shifted right", "m"),
):
    diagram.text(f"{words}: ${size}$ token ids", (x, -1.35), size=9)
    diagram.arrow((x, -1.1), boxes[0])
    block = encoder if x < 5 else decoder
    bottom, height = boxes[2].at[1] - 0.78, len(block) * 1.15 + 0.04
    diagram.frame("× N", (x, bottom + height / 2), (4.7, height))
across = next(box for i, box in right.items() if (before + decoder)[i] == "cross-attention")
top, out = left[len(left) - 1], right[len(right) - 1]
corners = [(2.4, top.at[1] + 0.8), (5.75, top.at[1] + 0.8), (5.75, across.at[1])]
diagram.arrow(top, across, via=corners, role="key")
diagram.text(r"memory $H$, $n \times d$: keys, values", (4.1, top.at[1] + 1.1), size=9)
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
# The paper uses $N = 6$, $d_{model} = 512$, 8 heads and $d_{ff} = 2048$. If both languages share one vocabulary, three matrices can be one: the two embeddings and the output layer, as logits $= Y E^T$ of shape $m \times vocab$, with $Y$ ($m \times d$) for what the decoder returns. The paper does this (**tied embeddings**, section 3.4). `Decoder` is given; it is your `Encoder` with a memory and a causal mask.

# %%
# given: decoder.Decoder

# %%
# exercise: transformer/forward

# %%
check("transformer/forward", Transformer)

# %%
Transformer = mine("transformer/forward")

# %% [markdown]
# During training the target is known, so all positions are scored at once: the decoder reads the target **shifted right** and must predict, at each position, the token that comes next (**teacher forcing**). Targets of unequal length need no mask of their own: padding comes after the real tokens, and the causal mask hides it from them. Only the loss has to skip it.

# %% tags=["nbval-check-output"]
vocab = ["start", "stop", "the", "cat", "sleeps"]
target = torch.tensor([2, 3, 4, 1])
for name, tokens in {"reads": shift_right(target, 0), "predicts": target}.items():
    print(f"{name:9}", *(f"{vocab[token]:7}" for token in tokens))
model = Transformer(5, layers=2, d_model=12, heads=3, d_ff=20, max_length=4)
logits = model(torch.tensor([3, 4, 2]), shift_right(target, 0))
print("logits", tuple(logits.shape), "positions by vocabulary")

# %% [markdown]
# ## Build: autoregressive decoding
#
# When the model **generates**, there is no target to read. It starts with `start` and repeats: score all tokens, append the likeliest, read everything again. A row ends with `stop`.
#
# $$t_{i+1} = \arg\max_{v}\; \mathrm{logits}_{i+1,\,v}\big(\text{source},\; \text{start}, t_1, \dots, t_i\big)$$
#
# This is **greedy decoding**. Of all rows of logits only the last one is used: it has read everything that is written so far. The source does not change while the target grows, so the encoder has to run only once.

# %%
# exercise: transformer/greedy

# %%
check("transformer/greedy", greedy)

# %%
greedy = mine("transformer/greedy")

# %% [markdown]
# Let it write before any training. With tied embeddings, one matrix both reads and scores the tokens. **What does an untrained pre-norm model write after `start`? And one whose embeddings are not tied?**

# %%
guess = None  # in your own words


# %%
def untrained(seed, tied):
    with training.seeded(seed):
        sizes = {"layers": 2, "d_model": 64, "heads": 4, "d_ff": 256, "max_length": 9}
        model = Transformer(28, **sizes, norm="pre", tied=tied)
    return greedy(model, torch.arange(8)[None], start=26, stop=27, most=8)[0].tolist()


texts = {tied: [untrained(seed, tied) for seed in range(40)] for tied in (True, False)}
echoes = {tied: sum(text == 8 * [26] for text in written) for tied, written in texts.items()}
reveal(guess, f"tied: start again and again, {echoes[True]} of 40 times; untied: {echoes[False]}")
print("an untied one wrote", texts[False][0])
assert echoes[True] > 30 and echoes[False] < 10

# %% [markdown]
# The residual stream carries $\sqrt{d_{model}}\, E_t$ from the embedding to the top. There it is compared with every row of $E$, and its own row scored best in all of these models: they repeat the token that they have just read. The blocks have to learn to write something else.

# %% [markdown]
# ## Train it: copy, reverse, sort
#
# The model is complete. Before any language, give it three tasks whose answers we know, one model for each. We train the pre-norm order: in lesson 07, at a high learning rate, eight pre-norm blocks learned without a warm-up, and eight post-norm blocks did not. The paper's order is `norm="post"`.

# %% [markdown]
# Each model reads eight different letters and must write them again, write them backwards, or write them in alphabetical order. There are $26 \cdot 25 \cdots 19$ such sequences, more than 60 billion; training sees at most 38,400 of them. All answers have eight letters, so no target holds a `stop`: `most=8` ends the writing. The vocabulary is 26 letters, start and stop. Two blocks on each side, $d_{model} = 64$, 1,200 steps for each task.
#
# **What share of 1,000 new sequences will be right in all eight letters, for each task?**

# %%
guess = None  # (copy, reverse, sort)

# %%
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
        f"{task}: over 0.9 of the new sequences are right", live[task] > 0.9, live[task], model
    )

# %% tags=["training"]
word = "problems"
source = torch.tensor([[ord(letter) - ord("a") for letter in word]])
for task in TASKS:
    [written] = greedy(models[task], source, START, STOP, most=8).tolist()
    print(f"{task:8}", "".join(chr(token + ord("a")) for token in written))

# %% [markdown]
# `make results LESSON=08` trained each task from three seeds, for the same 1,200 steps. **Which task's loss is the first below 0.1?**

# %%
guess = None  # "copy", "reverse" or "sort"


# %%
def learned(run):
    return next(10 * i for i, loss in enumerate(run["losses"]) if loss < 0.1)


kept = results.load("sequences")["figures"]
found = {task: [learned(run) for run in runs] for task, runs in kept["runs"].items()}
reveal(guess, f"sort; steps until the loss is below 0.1: {found}")
for task, runs in kept["runs"].items():
    print(f"{task:8}", ", ".join(f"{run['right']:.1%}" for run in runs), "of 1,000 all right")
    assert all(run["right"] == 1 for run in runs)
assert max(found["sort"]) < min(found["copy"] + found["reverse"])

# %% tags=["hide-input"]
title = "Sorting is learned in about half the steps of copying and reversing"
figure, ax = plots.axes(title, "step", "loss, nats a letter")
for runs, colour in zip(kept["runs"].values(), plots.COLOURS):
    for run in runs:
        middles = range(5, 10 * len(run["losses"]), 10)
        ax.semilogy(middles, run["losses"], color=colour, linewidth=1)
places = {"copy": (190, 1.6), "reverse": (190, 0.8), "sort": (45, 0.05)}
for (task, place), colour in zip(places.items(), plots.COLOURS):
    ax.text(*place, task, color=colour)
ax.axhline(0.1, color="0.6", linewidth=1, linestyle=":")
ax.set(xlim=(0, 300), ylim=(0.003, 8))
plots.show(
    figure,
    "Loss by step on a log scale, three seeds for each task. Sorting falls below 0.1 nats after "
    "90 to 100 steps, copying and reversing after 160 to 210.",
)

# %% [markdown]
# What do the three models look at? Watch the cross-attention of the last decoder block, averaged over its heads, while *problems* is written. **Which cells will be bright for reversing, and which for sorting?**

# %%
guess = None  # in your own words


# %% tags=["training"]
from course_lib.instruments.recording import record_weights


def cross_weights(task):
    layer = models[task].decoder.blocks[-1].cross_attention.sublayer.attention
    target = TASKS[task](source)
    with torch.no_grad(), record_weights(layer) as kept_weights:
        models[task](source, shift_right(target, START))
    return kept_weights[0][0].mean(0), target[0].tolist()


# %% tags=["training", "hide-input"]
title = "The last block's cross-attention reads the letter that is written next"
figure, panels = plots.panels(title, list(TASKS), size=(9, 3.2))
for ax, task in zip(panels, TASKS):
    weights, target = cross_weights(task)
    image = ax.imshow(weights, vmin=0, vmax=1)
    ax.set_xticks(range(8), list(word))
    ax.set_yticks(range(8), [chr(token + 97) for token in target])
    ax.set(xlabel="source letter")
panels[0].set_ylabel("letter to be written")
figure.colorbar(image, ax=panels, label="weight", shrink=0.8)
plots.show(
    figure,
    "Three maps of weights, 8 letters to be written by 8 letters of problems. Copying is bright "
    "on the diagonal, reversing on the antidiagonal, sorting where the same letter is.",
)

# %% [markdown]
# Count the rows whose largest weight is on the letter that is written next:

# %%
for task in globals().get("models", {}):  # none where the cells that train were left out
    weights, target = cross_weights(task)
    letters = source[0][weights.argmax(-1)].tolist()
    hits = sum(letter == wanted for letter, wanted in zip(letters, target))
    print(f"{task:8} in {hits} of 8 rows")

# %% [markdown]
# Copying and reversing can go by *position*: the letter at place $i$, or at place $9 - i$. Sorting can go by *content*: which source letter comes next in the alphabet after the one just written? That needs letters alone. It is a likely reason why sorting is learned first; these maps do not prove it.

# %% [markdown]
# ## Where it breaks (optional)
#
# All sequences in training had eight *different* letters. Now let letters repeat, as in *happened*. **Which of the three tasks suffers?** About three in ten of such random sequences have no repeated letter after all, $26 \cdot 25 \cdots 19 / 26^8 = 0.30$.

# %%
guess = None  # a list of tasks

# %% tags=["nbval-check-output"]
repeated = {task: [run["repeated"] for run in runs] for task, runs in kept["runs"].items()}
for task, shares in repeated.items():
    print(f"{task:8}", ", ".join(f"{share:.0%}" for share in shares))
reveal(guess, [task for task, shares in repeated.items() if max(shares) < 0.9])
none_twice = (torch.arange(19.0, 27).prod() / 26**8).item()
where_twice = [(share - none_twice) / (1 - none_twice) for share in repeated["sort"]]
print("sort, where a letter repeats: about", ", ".join(f"{x:.0%}" for x in where_twice))
assert max(repeated["sort"]) < 0.6 and min(repeated["copy"] + repeated["reverse"]) > 0.97

# %% [markdown]
# Only sorting fails. In training, the next letter was always a *later* one, so the sorter has no reason to write a letter twice. It is right on new sequences like those it saw. So suppose it gets the three in ten without a repeated letter right; then it gets only about one in ten of the others. Here is one of them; sorted, it would be *adeehnpp*:

# %%
happened = torch.tensor([[ord(letter) - ord("a") for letter in "happened"]])
for task, model in globals().get("models", {}).items():
    [written] = greedy(model, happened, START, STOP, most=8).tolist()
    print(f"{task:8}", "".join(chr(token + ord("a")) for token in written))

# %% [markdown]
# In our run it writes *p* twice after all, but loses an *e*, and fills the last place with a *z* that the word does not have. A model learns the task that is in its data, not the one that you had in mind.

# %% [markdown]
# ## Your Transformer on one page
#
# Eighteen parts of this model were exercises; the rest was given. `my_transformer` collects your passed answers, adds the library's version of what is missing, leaves out docstrings, annotations and error messages, and writes one file of about 260 lines, `my_transformer.py`, into your workspace. It imports PyTorch and `einops`, and nothing of the course.

# %%
page = my_transformer()
print(page[page.index("# %% the task") :])

# %% [markdown]
# Run it in a terminal with `python my_transformer.py`. It trains on sorting for 600 steps, half of what you used above, and then sorts 1,000 new sequences. (A test of the course runs this file, and asks that all 1,000 are right.) Read it once beside section 3 of the paper: 3.1 is `EncoderBlock`, `DecoderBlock` and `PostNorm`; 3.2 `scaled_dot_product_attention` and `MultiHeadAttention`; 3.3 `FeedForward`; 3.4 `Embedding` and the tied output; 3.5 `sinusoidal`. That is the whole architecture. (Section 5, the training, is lesson 11's; here `training.train` is lesson 00's loop.) PyTorch adds matrix products, gradients and Adam.

# %% [markdown]
# ## Counting parameters (optional)
#
# How large is the paper's base model? In our code each attention has four matrices $d \times d$ with biases (the paper writes none there, a difference of 0.04 million), each network two matrices, each norm a gain and a bias:
#
# $$\underbrace{4(d^2 + d)}_{\text{attention}} \qquad \underbrace{2\,d\,d_{ff} + d_{ff} + d}_{\text{network}} \qquad \underbrace{2d}_{\text{norm}}$$
#
# An encoder block has one attention and two norms, a decoder block two attentions and three norms. One tied embedding has $vocab \cdot d$. **How many million parameters does the base model have, with $N = 6$, $d = 512$, $d_{ff} = 2048$ and a vocabulary of 37,000?**

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
print(f"with 41,000 tokens: {parameter_count(6, 512, 2048, 41000) / 1e6:.1f} million")

# %% [markdown]
# The paper's table 3 says 65 million, and its text "about 37000 tokens". With 41,000 tokens the formula gives 65.1 million; the paper does not explain the difference. The number of heads does not matter.
#
# ## What share do the feed-forward networks have? (optional)
#
# What share of a Transformer's parameters is in the feed-forward networks? You will read 67 %, 57 % and 40 %, and all are right. They are shares of different totals:

# %% tags=["nbval-check-output"]
block = base.decoder.blocks[0]
of_network, of_attention = (
    sum(w.numel() for w in part.sublayer.parameters())
    for part in (block.feed_forward, block.attention)
)
networks, embedding = 12 * of_network, base.encoder.embedding.table.numel()
print(f"of an encoder block, without norms: {of_network / (of_network + of_attention):.0%}")
print(f"of all blocks:                      {networks / (count - embedding):.0%}")
print(f"of the whole model:                 {networks / count:.0%}")
d = 12_288  # GPT-3: 96 blocks, each 12 d² (Brown et al. 2020, table 2.1)
print(f"GPT-3, embedding to blocks:         {50_257 * d / (96 * 12 * d**2):.1%}")

# %% [markdown]
# With $d_{ff} = 4d$, an encoder block has $4d^2$ parameters in attention and $8d^2$ in the network (without biases), so the network has two thirds. A decoder block has a second attention, so the share of all blocks is smaller. The embedding is 30 % of this model, and makes the last share smaller still. In GPT-3 the embedding is only 0.4 % of what the blocks have.

# %% tags=["hide-input"]
times = {"embedding, tied": 1, "self-attention": 12, "cross-attention": 6, "feed-forward": 12}
sizes = [embedding, of_attention, of_attention, of_network]
parts = {name: times[name] * size for name, size in zip(times, sizes)}
assert 1 - sum(parts.values()) / count < 0.001, "the norms are the rest"
title = "Feed-forward networks are the largest part of the base model, 40 %"
figure, ax = plots.axes(title, "million parameters", "", size=(6.4, 2.6))
ax.barh(list(parts), [size / 1e6 for size in parts.values()], color=plots.COLOURS[0])
for y, size in enumerate(parts.values()):
    ax.text(size / 1e6 + 0.3, y, f"{size / count:.1%}", va="center")
ax.set(xlim=(0, 30))
plots.show(
    figure,
    "Bars of parameters in the base model: embedding 30.0 %, self-attention 20.0 %, "
    "cross-attention 10.0 %, feed-forward 39.9 %. The norms have less than 0.1 %.",
)
assert round(100 * parts["feed-forward"] / count, 1) == 39.9
assert round(100 * parts["embedding, tied"] / count, 1) == 30.0

# %% [markdown]
# ## The rest of the recipe (optional)
#
# An architecture alone does not reach the paper's results. Summarised from sections 3.4, 5 and 6, for the base model:
#
# | ingredient | what it does | value in 2017 |
# |:-|:-|:-|
# | **dropout** (Srivastava et al. 2014) | sets random activations to zero while training | 0.1, after each sublayer and on embeddings plus positions |
# | **label smoothing** (Szegedy et al. 2016) | trains against $1 - \varepsilon$ for the right token, and $\varepsilon$ spread over the vocabulary | $\varepsilon = 0.1$ |
# | Adam with **warm-up** | the learning rate rises linearly, then falls as $1/\sqrt{step}$ | 4,000 steps up, 100,000 in all |
# | **tied embeddings** | one matrix for both embeddings and the output | yes |
# | batches by tokens | sentences of similar length together | about 25,000 source and 25,000 target tokens |
# | **beam search** | keeps several candidates while writing, where greedy keeps one | 4 candidates, length penalty 0.6 |
# | **checkpoint averaging** | averages the parameters saved late in training | the last 5, saved every 10 minutes |
#
# You build label smoothing, the schedule, the batches and beam search in lesson 11. What beam search adds is measured there. Dropout would need two lines in your classes, each an `nn.Dropout(0.1)`: around `self.sublayer(...)` in `PostNorm`, and around what `Embedding` returns.

# %% [markdown]
# ## Three families, three masks
#
# The encoder-decoder is one of three ways to use these blocks. Write source and target as one sequence, with 4 and 4 tokens, and ask which token may see which. Then each family has one picture of who may see whom:

# %%
full, causal = torch.ones(8, 8).bool(), causal_mask(8)
two_stacks = full.clone()
two_stacks[:4, 4:] = False
two_stacks[4:, 4:] = causal_mask(4)
families = {"encoder only": full, "decoder only": causal, "encoder-decoder": two_stacks}
print({name: int(mask.sum()) for name, mask in families.items()})

# %% tags=["hide-input"]
from matplotlib.colors import ListedColormap

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
# In the third picture, the square at the top left is the encoder's self-attention, the triangle is the decoder's masked self-attention, and the square at the bottom left is cross-attention. It is only a picture: the encoder-decoder computes a target row in two sublayers, each with its own softmax, and has two stacks. (*One* stack with the third mask exists too, as the **prefix language model**: Raffel et al. 2020, figure 4.) What each family is trained to do follows from its mask: a model that sees the answer cannot be asked to predict it.
#
# | family | training task, on *the cat sleeps on the mat* | examples | lesson 09 runs |
# |:-|:-|:-|:-|
# | encoder only | **masked language modelling**: read *the cat [MASK] on the mat*, predict *sleeps* | BERT, RoBERTa | MiniLM |
# | decoder only | **next-token prediction**: after *the cat*, predict *sleeps*, and so at every position | GPT, Llama | SmolLM2 |
# | encoder-decoder | translation, or **span corruption**: read *the cat ⟨X⟩ the mat*, write *⟨X⟩ sleeps on ⟨Y⟩* | the paper; T5 | Marian |

# %% [markdown]
# BERT (Devlin et al. 2019) selects 15 % of the tokens, replaces most of them (80 %) by [MASK], and predicts only the selected ones. T5 (Raffel et al. 2020) also corrupts 15 %, but replaces each *span* by one sentinel token, ⟨X⟩, ⟨Y⟩ and so on, and the decoder writes the missing spans in order; a last sentinel ends the text. GPT predicts every token, so each position of each text gives a training signal.

# %% [markdown]
# Most of today's assistants are decoder-only. Two reasons are often given: one stack with one objective is simple, and each new turn reuses stored keys and values (lesson 09). Quality alone did not settle it: in the comparison of Raffel et al. 2020 (section 3.2), the encoder-decoder did best.

# %% [markdown]
# ## Look inside your model (optional)
#
# You know the parts. Now watch them work on one word. `xray` sends it through a model and keeps every step: the tensor, its formula, and the source of the function that computed it, marked *yours* if it came from `mine`. With `beside`, a second version reads the same word.
#
# Here is your sorter, and beside it the same model with its masks left out. **Which tensor is the first one that differs, in which stack?** (Each attention computes queries, keys, values, weights, heads' output and a result.)

# %%
guess = None  # such as "encoder, queries of the first block"

# %%
from string import ascii_lowercase
from course_lib.xray import without_mask, xray

letters = [*ascii_lowercase, "start", "stop"]
sorter = globals().get("models", {}).get("sort")  # none where the cells that train were left out
sorter = sorter or Transformer(28, 2, 64, 4, 256, 9, norm="pre")
page = xray(sorter, "problems", words=letters, beside=without_mask(sorter), columns=32)
changed = [stage for stage, share in page.changes.items() if share]
reveal(guess, changed[0])
assert changed[0] == "decoder/0/attention/weights"
assert not any(stage.startswith("encoder") for stage in changed)

# %%
page

# %% [markdown]
# The first difference is in the weights of the decoder's first self-attention. Queries, keys and values are computed before the mask is used, and the encoder has no mask to leave out. From there on the decoder's boxes differ, except the keys and values of its cross-attention, which come from the encoder.
#
# Try three things. Choose a box and read the code: whose is it? In *Attention*, point at a letter on the left: which letter of *problems* is read while it is written? In *Next token*, choose a letter and compare the two versions.

# %% [markdown]
# ## Break it
#
# - In your `DecoderBlock`, leave out the mask: call `self.attention(x)`. Train the copy task again. How low does the loss go, and what does `greedy` write? (Lesson 05 has the reason.)
# - Train all three tasks with `layers=1`, then with `heads=1`. Which still work?
# - Train the sorter with repeated letters, by `torch.randint(0, 26, (32, 8))`. Does it reach 100 %?
# - In your `greedy`, take the first position's logits instead of the last one's. What does it write, and why always the same letter?

# %% [markdown]
# ## What to remember
#
# An encoder block is self-attention and a feed-forward network, each inside a residual connection and a norm. With a causal mask it is a language model's block. A decoder block has cross-attention between the two.
#
# | | |
# |:-|:-|
# | post-norm, pre-norm | $\mathrm{LN}(x + f(x)), \qquad x + f(\mathrm{LN}(x))$ |
# | what enters the first block | $\sqrt{d_{model}}\, E_t + p_i$ |
# | cross-attention | $\mathrm{softmax}\big(Z W_Q (H W_K)^T / \sqrt{d_k}\big)\, H W_V$, scores $m \times n$ |
# | training | reads (start, $t_1, \dots, t_{m-1}$), predicts ($t_1, \dots, t_m$) |
# | greedy decoding | $t_{i+1} = \arg\max_v \mathrm{logits}_{i+1,\,v}$, the last row |
# | parameters of an encoder block | $4d^2 + 2\,d\,d_{ff}$, and smaller terms; $12d^2$ for $d_{ff} = 4d$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A source has 7 tokens, a target 5. What are the shapes of the scores in the three attentions, for one head?</summary>
#
# Encoder 7 × 7, masked self-attention 5 × 5, cross-attention 5 × 7.
# </details>
#
# <details><summary>2. The encoder runs once for a text. How often does the decoder run to write 20 tokens by your <code>greedy</code>?</summary>
#
# 20 times, on 1, 2, …, 20 tokens. Lesson 09 avoids reading the old ones again.
# </details>
#
# <details><summary>3. Which part of the model would you remove to get a language model?</summary>
#
# The encoder, and with it the cross-attention of each decoder block. An encoder block with a causal mask is left.
# </details>
#
# <details><summary>4. Why does a pre-norm stack end with one more norm, and a post-norm stack not?</summary>
#
# In post-norm the last thing that happens to the stream is a norm. In pre-norm nothing has normalized the stream itself.
# </details>
#
# <details><summary>5. Your sorter is right on 1,000 of 1,000 new sequences. Does it sort?</summary>
#
# It sorts sequences like those in its training. Where a letter repeats, the three of the optional section were right in about 1 of 10.
# </details>

# %% [markdown]
# ## In your own words (optional)
#
# The panels check code. What you understand shows in a paragraph of your own, so take ten minutes for one.
#
# A company wants to search its documents, to translate them, and to have a program that answers questions about them. For each of the three, choose an encoder, an encoder-decoder or a decoder. Justify each choice in a sentence or two: what may each token look at, and what is computed once, what for every new token?

# %% [markdown] tags=["question:which_family"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# Your Transformer is small, and its task is easy. Lesson 09 runs three trained models in the same blocks: one searches, one translates, one answers questions.
#
# Vaswani et al. 2017 (sections 3 and 5 should now be easy reading); Xiong et al. 2020 (pre-norm); Devlin et al. 2019 (BERT); Raffel et al. 2020 (T5, and a comparison of the three families); Srivastava et al. 2014 (dropout); Szegedy et al. 2016 (label smoothing); Rush 2018 (*The Annotated Transformer*: the paper's text beside code, pre-norm). Lectures: L1 to L5.
