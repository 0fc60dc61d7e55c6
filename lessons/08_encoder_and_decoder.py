# %% [markdown]
# # 08 · Encoder and decoder
#
# **90 minutes · after lesson 07 · needs nothing but itself**
#
# Attention, heads, masks, positions, networks, sums, norms: seven lessons of parts. What do the parts become when they stand together? First a block, then a stack, then the Transformer of 2017, which you train at once: it copies, reverses and sorts.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %%
from itertools import pairwise
from typing import Literal

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
sinusoidal = mine("positions/sinusoidal")
feed_forward = mine("feed_forward/position_wise")
causal_mask, padding_mask = mine("masks/causal"), mine("masks/padding")
shift_right, leaks_future = mine("masks/shift_right"), mine("masks/leaks_future")
split_heads, merge_heads = mine("multi_head/split_heads"), mine("multi_head/merge_heads")
MultiHeadAttention = mine("multi_head/attention")
layer_norm = mine("add_norm/layer_norm")
PostNorm, PreNorm = mine("add_norm/post_norm"), mine("add_norm/pre_norm")

# %% [markdown]
# Each line above says whose function it is. What is yours will run below, in this lesson and in the next; what has not passed yet is the library's, and can still be exchanged.
#
# ## One block
#
# A block has two layers: in one the words look at each other, in the other each thinks about what it has seen. Around each stand lesson 07's sum and norm, in one of two orders. Read the drawing from below; the left line is the residual stream.


# %%
def box(ax, x, y, text, colour=plots.PALE[0]):
    style = {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "0.4"}
    ax.text(x, y, text, ha="center", va="center", bbox=style, zorder=3)


def arrow(ax, start, end, shrink=12):
    style = {"arrowstyle": "-|>", "color": "0.5", "shrinkA": 0, "shrinkB": shrink}
    ax.annotate("", end, start, arrowprops=style, zorder=1)


# %%
def branch(ax, y, *names):
    """Draw layers that read the stream at height y, and the sum in which they write."""
    first = y + 1.1 - 0.4 * len(names)
    places = [(0, y), *((1.2, first + 0.8 * i) for i in range(len(names))), (0, y + 2)]
    for start, end in (*pairwise(places), (places[0], places[-1])):
        arrow(ax, start, end)
    for name, place in zip(names, places[1:]):
        box(ax, *place, name, plots.PALE[2] if name == "norm" else plots.PALE[0])
    box(ax, *places[-1], "+", "white")


# %%
title = "Post-norm stands in the stream, pre-norm beside it"
names = ["post-norm, as in 2017", "pre-norm"]
figure, panels = plots.panels(title, names, size=(7.6, 5))
for ax, before in zip(panels, ([], ["norm"])):
    for y, layer in ((0, "attention"), (2.8, "feed-forward")):
        branch(ax, y, *before, layer)
        arrow(ax, (0, y + 2), (0, y + 2.8), shrink=0 if before else 12)
        if not before:
            box(ax, 0, y + 2.8, "norm", plots.PALE[2])
    ax.text(0, -0.15, "words", ha="center", va="top")
    ax.set(xlim=(-0.6, 2), ylim=(-0.5, 6))
    ax.set_axis_off()
plots.show(figure, "Two blocks drawn: norms on the residual stream, or before each of the layers.")

# %% [markdown]
# Two small classes go round your parts. `AsSelfAttention` makes query, key and value of the same words, and `residual` chooses between your `PostNorm` and `PreNorm`. The network with its matrices is lesson 05's. They are given.

# %%
# given: multi_head.AsSelfAttention

# %%
# given: encoder.residual

# %%
# given: feed_forward.FeedForward

# %% [markdown]
# ## Build: the encoder's block
#
# `__init__` has made both layers, each already inside its sum and norm. `forward` is short. Every part is a keyword argument, so that another one can take its place: that is what will let real models run on your functions.

# %%
# exercise: encoder/block

# %%
check("encoder/block", EncoderBlock)

# %%
EncoderBlock = mine("encoder/block")

# %% [markdown]
# torch has such a block, `nn.TransformerEncoderLayer`. Give it our weights, and two sentences of five and three words. **How large is the largest difference, in either order of norms?**

# %%
guess = None  # a number

# %%
from course_lib.verify.torch_stacks import torch_block

x, mask = torch.randn(2, 5, 12), padding_mask(torch.tensor([5, 3]), 5)
differences = {}
for norm in ("post", "pre"):
    block = EncoderBlock(12, 3, 20, norm)
    theirs = torch_block(dict(block.named_parameters()), 3, norm, x, mask)
    differences[norm] = (block(x, mask) - theirs).abs().max().item()
reveal(guess, max(differences.values()))
assert max(differences.values()) < 1e-5

# %% [markdown]
# ## An encoder and a decoder differ in one mask
#
# Send six words through a block, once without a mask and once with lesson 05's causal one. `leaks_future` lists the positions that can see what comes after them. **Which positions, counted from 0, does it list in each case?**

# %%
guess = None  # two lists

# %%
x, block = torch.randn(6, 12), EncoderBlock(12, 3, 20)
without = leaks_future(block, x)
causal = leaks_future(lambda words: block(words, causal_mask(len(words))), x)
reveal(guess, (without, causal))
assert without == [0, 1, 2, 3, 4] and causal == []

# %% [markdown]
# Same class, same weights. Without a mask, each word is understood from both sides: an **encoder**. With the mask, each word knows only what was before: a **decoder**, which can be trained to predict what comes next, and so to write. L2 and L4 say it in one sentence, and it is all there is: a language model's block is this block with a causal mask.

# %% [markdown]
# ## Build: a stack
#
# Before the first block, tokens become vectors times √d_model, and get their positions; `Embedding` does both. After the last block of a pre-norm stack stands one norm more, for sums that nobody has normalised (lesson 07). Both are given.

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
# ## Cross-attention, step by step
#
# A translator has two sentences, and so two kinds of states: H, what the encoder made of the six source words, and Z, what the decoder has made of the four target words so far. The target asks: Q = Z W_Q. The source is found and hands over: K = H W_K, V = H W_V. **Which shapes have the scores, the weights and the result, if d_k = d_v = 3?**

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
# > **Where the lectures disagree (D15).** L1 names both lengths T, and gives the score matrix of cross-attention the shape T × T. That holds if a sentence and its translation happen to have equally many words. In general it is n_q × n_k: a row for each target word, a column for each source word. Here 4 × 6, and each row sums to one over the *source*.

# %%
assert scores.shape == (4, 6) and torch.allclose(weights.sum(-1), torch.ones(4))
assert not torch.allclose(weights.sum(0), torch.ones(6), atol=0.1)

# %% [markdown]
# > **Where the lectures disagree (D16).** L5 calls this layer of the decoder "self-attention", with keys and values of the encoder. But in *self*-attention all three come from the same words. The next cell asks both kinds the same question: does the result change when another sentence was read?

# %%
other = torch.randn(6, 8)
itself = scaled_dot_product_attention(z @ w_q, z @ w_k, z @ w_v)
across = [scaled_dot_product_attention(z @ w_q, h @ w_k, h @ w_v) for h in (h, other)]
print("self-attention is a function of z alone:", tuple(itself.shape))
print(f"cross-attention moves by {(across[1] - across[0]).abs().max():.1f} with the source")
assert (across[1] - across[0]).abs().max() > 0.1 and torch.allclose(across[0], found, atol=1e-6)

# %% [markdown]
# A decoder whose third layer were self-attention could not know what it is to translate. Cross-attention is the only door between the two stacks.

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
# Three layers now: look back, look across, think. The first has the causal mask, the second a mask for the source's padding. `AsCrossAttention` hands the memory to attention as key and value.

# %%
# given: multi_head.AsCrossAttention

# %%
# exercise: decoder/block

# %%
check("decoder/block", DecoderBlock)

# %%
DecoderBlock = mine("decoder/block")

# %%
x, memory, mask = (
    torch.randn(2, 4, 12),
    torch.randn(2, 5, 12),
    padding_mask(torch.tensor([5, 3]), 5),
)
for norm in ("post", "pre"):
    block = DecoderBlock(12, 3, 20, norm)
    theirs = torch_block(dict(block.named_parameters()), 3, norm, x, mask, memory)
    ours = block(x, memory, causal_mask(4), mask)
    assert torch.allclose(ours, theirs, atol=1e-5)
    print(f"{norm}-norm: nn.TransformerDecoderLayer differs by {(ours - theirs).abs().max():.0e}")

# %% [markdown]
# ## The Transformer of 2017
#
# Two stacks of six, and one line of cross-attention from the top of the encoder to every block of the decoder.


# %%
def door_between(ax, start, end, over):
    """Draw a line that leaves upwards, goes over, and comes down to an arrow into a box."""
    (x, y), (to, height) = start, end
    corner = [(x, y), (x, over), (to - 1.4, over), (to - 1.4, height)]
    ax.plot(*zip(*corner), color=plots.COLOURS[1], zorder=1)
    style = {"arrowstyle": "-|>", "color": plots.COLOURS[1]}
    ax.annotate("", (to - 0.7, height), (to - 1.42, height), arrowprops=style)
    ax.text(x + 0.8, over + 0.08, "keys and values", ha="center", color=plots.COLOURS[1])


left = ["source", "embedding\n+ positions", "self-attention", "feed-forward"]
right = ["target, shifted right", "embedding\n+ positions", "causal self-attention"]
right += ["cross-attention", "feed-forward", "linear, softmax", "next token"]

# %%
figure, ax = plots.axes("One door between the two stacks", "", "", size=(7, 6))
for x, names, top, label in ((0, left, 3.45, -1.25), (3, right, 4.45, 4.25)):
    for y, name in enumerate(names):
        box(
            ax, x, y, name, "white" if name[:6] in ("source", "target", "next t") else plots.PALE[0]
        )
        if y:
            arrow(ax, (x, y - 1), (x, y), shrink=14)
    frame = plots.plt.Rectangle((x - 1.05, 1.55), 2.1, top - 1.55, fill=False, edgecolor="0.6")
    ax.add_patch(frame)
    ax.text(label, (top + 1.55) / 2, "6 ×", ha="center", va="center")
door_between(ax, (0, 3), (3, 3), over=4.1)
ax.set(xlim=(-1.6, 4.6), ylim=(-0.5, 6.5))
ax.set_axis_off()
plots.show(figure, "Encoder and decoder as two columns of boxes, and one line between them.")

# %% [markdown]
# Each layer in the two frames stands inside a sum and a norm. Three matrices may be one: the two embeddings and the last linear layer, if both languages share a vocabulary. The paper ties them (section 3.4). `Decoder` is given; it differs from your `Encoder` in two arguments.

# %%
# given: decoder.Decoder

# %%
# exercise: transformer/forward

# %%
check("transformer/forward", Transformer)

# %%
Transformer = mine("transformer/forward")

# %% [markdown]
# While a Transformer learns, its target is known, so all places are scored at once: the decoder reads the target *shifted right*, and at each place must say what comes next. **What does the decoder read, where it should say `the cat sleeps stop`?**

# %%
guess = None  # four tokens

# %% tags=["nbval-check-output"]
vocab = ["start", "stop", "the", "cat", "sleeps"]
target = torch.tensor([2, 3, 4, 1])
reads = shift_right(target, 0)
reveal(guess, [vocab[token] for token in reads])
model = Transformer(5, 2, 12, 3, 20, max_length=4)
print("scores", tuple(model(torch.tensor([3, 4, 2]), reads).shape), "places by vocabulary")

# %% [markdown]
# While it *writes*, nothing is known: it reads `start`, chooses a token, appends it, reads again, until it chooses `stop`. Lesson 09 shows it with a real translator.

# %% [markdown]
# ## Challenge: copy, reverse, sort
#
# Now train one yourself, whole: your Transformer with your blocks, two on each side, d_model = 64. It reads eight different letters and must write them again, or write them backwards, or in the order of the alphabet. There are 26 · 25 · ... · 19, more than 60 billion such sequences, so none of those tested has been seen. Each training ends after 30 seconds at the latest; a slow machine may not get to the end of it. **What share of 1,000 will be all right, in each task?**

# %%
guess = None  # (copy, reverse, sort)

# %%
from course_lib.transformer import greedy

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
        f"{task}: over 0.9 of the unseen are right", live[task] > 0.9, live[task], model
    )

# %% tags=["training"]
word = "problems"
source = torch.tensor([[ord(letter) - ord("a") for letter in word]])
for task in TASKS:
    [written] = greedy(models[task], source, START, STOP, most=8).tolist()
    print(f"{task:8}", "".join(chr(token + ord("a")) for token in written))

# %% [markdown]
# `make results LESSON=08` trained each from three seeds; the loss is a mean over ten steps. **Which task is learned first?**

# %%
guess = None  # "copy", "reverse" or "sort"

# %%
kept = results.load("sequences")["figures"]
figure, ax = plots.axes(
    "By content first, by place later: sorting is learned before copying", "step", "loss, nats"
)
for (task, runs), colour in zip(kept["runs"].items(), plots.COLOURS):
    for seed, run in enumerate(runs):
        middles = range(5, 10 * len(run["losses"]), 10)
        label = task if seed == 0 else None
        ax.semilogy(middles, run["losses"], color=colour, linewidth=1, label=label)
ax.legend()
plots.show(figure, "Losses by step on a log scale: sorting falls before copying and reversing.")

# %% tags=["nbval-check-output"]
for task, runs in kept["runs"].items():
    print(f"{task:8}", ", ".join(f"{run['right']:.1%}" for run in runs), "of 1,000 all right")
    assert all(run["right"] == 1 for run in runs)


# %%
def learned(run):
    return next(10 * i for i, loss in enumerate(run["losses"]) if loss < 0.1)


found = {task: [learned(run) for run in runs] for task, runs in kept["runs"].items()}
reveal(guess, f"sort; steps until the loss is below 0.1: {found}")
assert max(found["sort"]) < min(found["copy"] + found["reverse"])

# %% [markdown]
# What did it find? Watch the cross-attention of the last decoder block, averaged over the heads, while *problems* is written. **Where will the bright cells lie for reversing, and where for sorting?**

# %%
guess = None  # in your own words


# %% tags=["training"]
from course_lib.instruments.recording import record_weights


def door(task):
    layer = models[task].decoder.blocks[-1].cross_attention.sublayer.attention
    target = TASKS[task](source)
    with torch.no_grad(), record_weights(layer) as kept_weights:
        models[task](source, shift_right(target, START))
    return kept_weights[0][0].mean(0), target[0].tolist()


# %% tags=["training"]
title = "The door shows the task: where each letter to be written is read"
figure, panels = plots.panels(title, list(TASKS), size=(11, 3.6))
for ax, task in zip(panels, TASKS):
    weights, target = door(task)
    plots.heat_map(ax, weights, [chr(token + 97) for token in target], word)
    ax.set(xlabel="key: source", ylabel="to be written")
plots.show(figure, "Three cross-attentions: a diagonal, an antidiagonal, and letters by alphabet.")

# %% [markdown]
# ## Break it
#
# All were trained on eight *different* letters. Now let letters come twice, as in *committee*. **Which of the three tasks will suffer?** Three in ten of such random sequences have no repeated letter after all.

# %%
guess = None  # a list of tasks

# %% tags=["nbval-check-output"]
repeated = {task: [run["repeated"] for run in runs] for task, runs in kept["runs"].items()}
for task, shares in repeated.items():
    print(f"{task:8}", ", ".join(f"{share:.0%}" for share in shares))
reveal(guess, [task for task, shares in repeated.items() if max(shares) < 0.9])
assert max(repeated["sort"]) < 0.6 and min(repeated["copy"] + repeated["reverse"]) > 0.97

# %% [markdown]
# Copying and reversing go by *place*, and a place does not mind what stands in it. Sorting goes by *content*: "what comes next after what I wrote". In training that was always a later letter, so a second *m* is never written. All right on the unseen, and wrong on the unlike: a model learns the task of its data, not the one you had in mind.

# %% [markdown]
# ## Counting: the configuration of 2017
#
# N = 6 blocks on each side, d_model = 512, h = 8, d_ff = 2048, a shared vocabulary of about 37,000. Before you write the formula: **how many million numbers does the model learn?**

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

# %% [markdown]
# The paper's table prints 65 million. The layers leave no room for two million more, and the text gives the vocabulary as "about 37000": with 41,000 rows, the same formula gives the paper's number. Which vocabulary they counted, the paper does not say; ours is measured, theirs quoted. Heads appear nowhere in the sum.

# %%
print(f"with 41,000 tokens: {parameter_count(6, 512, 2048, 41000) / 1e6:.1f} million")
sizes = {"embedding": base.encoder.embedding}
sizes |= {name: getattr(base.decoder.blocks[0], name) for name in ("attention", "cross_attention")}
sizes["feed_forward"] = base.decoder.blocks[0].feed_forward
times = {"embedding": 1, "attention": 12, "cross_attention": 6, "feed_forward": 12}
shares = {name: times[name] * sum(w.numel() for w in sizes[name].parameters()) for name in sizes}
assert sum(shares.values()) == count

# %%
figure, ax = plots.axes("The feed-forward networks hold most", "millions of numbers", "")
ax.barh(
    ["embedding, tied", "self-attention", "cross-attention", "feed-forward"],
    [share / 1e6 for share in shares.values()],
    color=plots.COLOURS[0],
)
for y, share in enumerate(shares.values()):
    ax.text(share / 1e6 + 0.3, y, f"{share / count:.0%}", va="center")
plots.show(figure, "Bars of parameters by kind: feed-forward longest, then embedding, attentions.")
assert max(shares, key=shares.get) == "feed_forward"

# %% [markdown]
# ## Three families
#
# | family | mask | trained to | examples | here |
# |:-|:-|:-|:-|:-|
# | encoder only | none | fill in hidden words, compare sentences | BERT, RoBERTa | MiniLM |
# | decoder only | causal | say the next word | GPT, LLaMA | SmolLM2 |
# | encoder-decoder | none, then causal, and cross-attention | write one text from another | the paper, T5, BART | Marian |
#
# Whoever only reads wants both sides of each word; whoever writes may not see the future; whoever reads one text and writes another has one stack for each. Today's assistants are decoders alone: the question and the answer are one text.

# %% [markdown]
# - Train the sorter with repeated letters as well. Does it reach 100 %? How many steps more?
# - Give `Transformer` a `decoder_block` that ignores its mask. How low does the loss go, and what does `greedy` write?
# - Build the sorter with `layers=1`, or with one head. Which task still works?

# %% [markdown]
# ## What you take along
#
# An encoder block is attention and a network, each inside a sum and a norm; a causal mask makes it a language model's. A decoder of a translator has one door more: queries from the target, keys and values from the source, n_q × n_k scores. Training reads the target shifted right; writing goes step by step until stop.

# %% [markdown]
# Next, lesson 09 runs three real models on these parts. Sources: Vaswani et al. 2017. Lectures: L1 to L5.
