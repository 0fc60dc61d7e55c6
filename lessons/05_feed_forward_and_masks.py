# %% [markdown]
# # 05 · Feed-forward and masks
#
# **90 minutes · after lesson 04 · needs `shakespeare` (5.4 MB)**
#
# Attention takes averages. Average a line of verse once, and each word has heard from the others. Average it again and again, and what is left of the words? And there is a second trouble: a model that learns to write is shown whole lines, with the word it should guess standing in them. What stops a stack of averages from making all words alike, and from reading the future?

# %%
from collections.abc import Callable
import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from course_lib.data import batches, characters, needs, shakespeare, word_vectors
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% [markdown]
# From the lessons before, you bring the softmax, the scores, version 1 of self-attention, the layer with its three roles, and the sinusoids.

# %%
from torch.nn import functional as F
from course_lib.attention import dot_scores, softmax
from course_lib.positions import sinusoidal
from course_lib.self_attention import SelfAttention, parameter_free, project

# %% [markdown]
# ## Average the averages
#
# Take a line that you know, with the word vectors of lesson 03, and send it through version 1 again and again. After each layer, look up which word of Shakespeare's lies nearest to each of the eight vectors. **After how many layers is it one and the same word for all eight?**

# %%
guess = None  # a number of layers

# %%
needs("shakespeare")

# %%
words = word_vectors.from_shakespeare()
line = "shall i compare thee to a summer's day"
nearest, x = [], words(line)
for layer in range(4):
    nearest.append([words.nearest(word, 1)[0] for word in x])
    print(layer, *nearest[layer])
    x = parameter_free(x)
reveal(guess, next(i for i, row in enumerate(nearest) if len(set(row)) == 1))
assert len(set(nearest[0])) == 8 and set(nearest[3]) == {"summer's"}
assert line.split()[int(words(line).norm(dim=-1).argmax())] == "summer's"

# %% [markdown]
# It is all *summer's*, which had the longest vector of the line, and nothing is left to read. That words draw together is no accident. Weights are never negative and sum to one, so an average lies between its words: no column can rise above its largest entry, or fall below its smallest.

# %% tags=["nbval-check-output"]
needs()
torch.manual_seed(0)
x, ranges = torch.randn(8, 16), []
for layer in range(5):
    ranges.append(x.amax(0) - x.amin(0))
    print(f"layer {layer}: column 1 spans {x[:, 0].min():6.3f} to {x[:, 0].max():6.3f}")
    x = softmax(dot_scores(x, x) / 4) @ x
assert (torch.stack(ranges).diff(dim=0) <= 1e-6).all(), "no column ever widens"

# %% [markdown]
# The scores are divided by 4 here, the root of the words' size. Without it, the softmax would be sharper and the columns would shrink more slowly, but none would ever widen. What is lost, no later layer of this kind can bring back.

# %% [markdown]
# ## Twelve layers, one matrix
#
# With learned values, W_V may turn and stretch what is averaged. Does that help? Strip the question to a sentence of *one* word: it can look only at itself. Send it through twelve random layers of self-attention. **With how many matrices can you compute the same result for every such word?**

# %%
guess = None  # a number of matrices

# %%
torch.manual_seed(0)
layers = nn.Sequential(*[SelfAttention(16, 16, 16) for _ in range(12)])
one_matrix = torch.linalg.multi_dot([layer.w_v for layer in layers])
word = torch.randn(500, 1, 16)  # 500 sentences of one word
reveal(guess, 1)
assert torch.allclose(layers(word), word @ one_matrix, atol=1e-4)

# %% [markdown]
# One. With a single word all weights are 1, and twelve layers are the product of their value matrices. Depth has bought nothing: the same holds for twelve hundred.
#
# Take a word with two properties, each +1 or -1: *is it praise?* and *is it denied?* "Good" and "not bad" are kind, "bad" and "not good" are not. The answer is *either or*, and no matrix gives it.

# %% tags=["nbval-check-output"]
properties = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
unlike = torch.tensor([0.0, 1, 1, 0])
with_constant = torch.cat([properties, torch.ones(4, 1)], dim=-1)
best = torch.linalg.lstsq(with_constant, unlike.unsqueeze(-1)).solution
answers = (with_constant @ best).flatten()
print("wanted", unlike.tolist(), "best linear map", [round(a, 2) for a in answers.tolist()])

# %% [markdown]
# Even with a constant to help it, the best that a linear map can do is to shrug: one half, always. What is needed is a bend.

# %% [markdown]
# ## Build: a network for each word
#
# The bend is a small network of two layers, the same for every word: FFN(x) = max(0, x W₁ + b₁) W₂ + b₂. It widens the word to d_ff numbers, cuts off what is negative, and brings it back to d_model. The name of it is *position-wise feed-forward network*.

# %%
# exercise: feed_forward/position_wise

# %%
check("feed_forward/position_wise", feed_forward)

# %%
feed_forward = mine("feed_forward/position_wise")

# %% [markdown]
# Two hidden numbers are enough for *either or*: one that wakes where the first property is larger, one where the second is. **Which W₁ does that?** Fill it in your head, then look.

# %% tags=["nbval-check-output"]
w_1 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
w_2 = torch.tensor([[0.5, 0.0], [0.5, 0.0]])
answers = feed_forward(properties, w_1, torch.zeros(2), w_2, torch.zeros(2))[:, 0]
print("wanted", unlike.tolist(), "feed-forward", answers.tolist())
assert torch.equal(answers, unlike)

# %% [markdown]
# ## No word meets another here
#
# Attention moves news between words, and bends none of it; this network bends each word, and moves nothing. Shuffle the words, or send each through alone: **does the result of any word change?**

# %%
guess = None  # True or False

# %%
torch.manual_seed(0)
x, shuffle = torch.randn(6, 8), torch.randperm(6)
weights = torch.randn(8, 32), torch.randn(32), torch.randn(32, 8), torch.randn(8)
together = feed_forward(x, *weights)
alone = torch.stack([feed_forward(word, *weights) for word in x])
reveal(guess, not torch.allclose(together, alone, atol=1e-4))
assert torch.allclose(together, alone, atol=1e-4)
assert torch.allclose(feed_forward(x[shuffle], *weights), together[shuffle], atol=1e-4)

# %% [markdown]
# As a layer, given here, it keeps its matrices and learns them. The paper takes d_ff = 4 d_model, that is 2048 for words of 512 numbers. **Which share of the parameters of "attention, then feed-forward" sits in the feed-forward network?** Count attention with a fourth square matrix, which lesson 06 adds.

# %%
# given: feed_forward.FeedForward

# %%
guess = None  # a share between 0 and 1

# %% tags=["nbval-check-output"]
in_attention = 4 * 512**2
in_feed_forward = sum(parameter.numel() for parameter in FeedForward(512, 2048).parameters())
print(f"attention {in_attention:,}, feed-forward {in_feed_forward:,}")
reveal(guess, in_feed_forward / (in_attention + in_feed_forward))

# %% [markdown]
# Two thirds. The part that gave the Transformer its fame is the smaller one.

# %% [markdown]
# ## Does the bend keep the words apart?
#
# So the textbook remedy is a feed-forward network after each attention layer. Measure whether it also stops the averaging: the *spread* of a line is how far its words are from their mean, relative to their size (Dong et al. 2021). A spread of 1 means that their mean is zero, and 0 that all words are the same.


# %%
def spread(x):
    apart = x - reduce(x, "... n d -> ... 1 d", "mean")
    return (apart.norm(dim=(-2, -1)) / x.norm(dim=(-2, -1))).mean().item()


def spreads(x, parts, residual=False):
    measured = [spread(x)]
    for _ in range(12):
        for part in parts:
            out = part().double()(x).detach()
            x = out + x if residual else out
        measured.append(spread(x))
    return measured


# %% [markdown]
# The line goes through twelve layers with random weights, drawn five times: attention alone, and attention with feed-forward between. A third curve adds each layer's input to its output, a *residual connection*, which belongs to lesson 07. **After three layers without it, which line is more spread out: that of attention alone, or that with feed-forward?**

# %%
guess = None  # "attention" or "feed-forward"

# %%
needs("shakespeare")

# %%
attend, think = lambda: SelfAttention(64, 64, 64), lambda: FeedForward(64, 256)
setups = {
    "attention": ([attend], False),
    "attention, feed-forward": ([attend, think], False),
    "the same, residual (lesson 07)": ([attend, think], True),
}
x, curves = 8 * nn.functional.normalize(words(line), dim=-1).double(), {}
for name, setup in setups.items():
    with training.seeded(0):
        curves[name] = torch.tensor([spreads(x, *setup) for _ in range(5)])
alone, with_both, with_residual = (runs.mean(0).tolist() for runs in curves.values())
reveal(guess, "attention" if alone[3] > with_both[3] else "feed-forward")

# %%
figure, ax = plots.axes(
    "Untrained, three layers make all words alike, with feed-forward or without", "layers", "spread"
)
for (name, runs), colour, style in zip(curves.items(), plots.COLOURS, ("-", "-", ":")):
    ax.semilogy(runs.T, style, color=colour, linewidth=1.5, label=[name] + 4 * ["_"])
ax.set(ylim=(1e-10, 2))
ax.legend(loc="center right")
plots.show(
    figure, "Spread by depth: two curves plunge within three layers, a dotted one falls slowly."
)
assert with_both[3] < alone[3] < 0.001 and with_residual[3] > 0.2
assert alone[3] / alone[2] < alone[2] / alone[1], "each fall is steeper than the last"

# %% [markdown]
# Surprise: at the beginning of training, feed-forward networks do not stop the collapse. They hurry it on: what relu lets through is never negative, and so points much the same way for all words. Without residual connections the fall is steeper than exponential, as Dong and others prove for attention alone. And see what relu alone does to a thousand random words:

# %% tags=["nbval-check-output"]
needs()
torch.manual_seed(0)
x = torch.randn(1000, 64)
print(f"spread {spread(x):.2f} before, {spread(x.relu()):.2f} after")

# %% [markdown]
# ## And after training?
#
# Weights need not stay random. Lines of eight words now, each with sixteen properties; a stack of two layers must say of *each word* whether its first two properties are unlike. A linear layer reads the answer off each word. **What share of the answers will be right, with attention alone and with feed-forward between?**

# %%
guess = None  # (share for attention, share with feed-forward)


# %% tags=["training"]
def lines(size, seed):
    generator = torch.Generator().manual_seed(seed)
    while True:
        bits = torch.randint(0, 2, (size, 8, 16), generator=generator)
        yield 2.0 * bits - 1, (bits[..., 0] ^ bits[..., 1]).float()


def answer_loss(model, batch):
    x, answers = batch
    return nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(-1), answers)


# %% tags=["training"]
def live(*parts):
    with training.seeded(SEED):
        model = nn.Sequential(*[part() for part in 2 * parts], nn.Linear(16, 1))
    training.train(model, lines(32, SEED), answer_loss, steps=800, learning_rate=0.003, seconds=30)
    x, answers = next(lines(1000, seed=100))
    return model, ((model(x).squeeze(-1) > 0) == (answers > 0)).float().mean().item()


attend, think = lambda: SelfAttention(16, 16, 16), lambda: FeedForward(16, 64)
(plain, without), (full, with_network) = live(attend), live(attend, think)
shares = round(without, 2), round(with_network, 2)
reveal(guess, shares)
claim = "attention alone answers under 0.6, with feed-forward networks over 0.8"
training.expect(claim, shares[0] < 0.6 and shares[1] > 0.8, shares, plain, full)

# %% [markdown]
# A coin against an expert. Attention's weights do bend with the words, so this is no theorem any more, as it was for one word; but training finds no use for that bend here.
#
# One depth and one seed prove little. `make results LESSON=05` trained stacks of one to six layers from three seeds, on this task and on a plain one, to *copy* the first property, with and without residual connections. Lines are means, small dots the seeds.

# %%
kept = results.load("rank_collapse")["figures"]
tasks = {"copy": "copy a property", "either or": "are two properties unlike?"}
title = "Feed-forward does what averages cannot; deep stacks need residuals besides"
figure, panels = plots.panels(title, list(tasks.values()), size=(9, 3.8))
for ax, task in zip(panels, tasks):
    for (name, runs), colour in zip(kept[task].items(), plots.COLOURS):
        style = ":" if "residual" in name else "-"
        accuracy = torch.tensor([run["accuracy"] for run in runs])
        ax.plot(kept["depths"], accuracy.mean(0), style, marker="o", color=colour, label=name)
        ax.plot(kept["depths"], accuracy.T, ".", color=colour, markersize=3)
    ax.set(xlabel="layers", xticks=kept["depths"], ylim=(0.45, 1.03))
panels[0].set(ylabel="share of answers right")
panels[0].legend(loc="lower left", fontsize="small")
plots.show(figure, "Accuracy by depth on two tasks, four kinds of stacks, residual ones dotted.")


# %%
def accuracies(task, model, depth):
    place = kept["depths"].index(depth)
    return [run["accuracy"][place] for run in kept[task][model]]


both, residual = "attention, feed-forward", "attention, feed-forward, residual"
for model in ("attention", "attention, residual"):
    assert all(max(accuracies("either or", model, depth)) < 0.6 for depth in kept["depths"])
    assert min(accuracies("copy", model, 1)) > 0.95
assert min(accuracies("either or", both, 1)) > 0.95
for task in tasks:
    assert max(accuracies(task, both, 6)) < 0.75 and min(accuracies(task, residual, 6)) > 0.95
assert max(accuracies("copy", "attention", 6)) < 0.75

# %% [markdown]
# What are the nearly two thirds that the failing stacks still reach? Their words are alike from the beginning, so they can only give one answer to a whole line. The best one is its majority.

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
ones = torch.randint(0, 2, (10_000, 8)).float().mean(-1)
print(f"the majority of each line is right for {torch.maximum(ones, 1 - ones).mean():.0%}")
for model in ("attention", both):
    assert all(0.6 < share < 0.67 for share in accuracies("copy", model, 6))
    assert all(run["before"][-1] < 1e-3 for run in kept["copy"][model])

# %% [markdown]
# So there are two diseases and two cures. Averages answer *either or* at none of these depths, residual or not; one feed-forward network does. But six layers without residual connections do not learn even to *copy*, feed-forward or not. The lectures prescribe the feed-forward network against averaging; it cures the first disease. The second waits for lesson 07.

# %% [markdown]
# ## The future
#
# Now the second trouble. A model of language says, at each word, which word comes next. In training the next word stands beside it, and attention connects everything with everything: the cheapest way to know the future is to look. A model that did so would learn to copy, and nothing else.
#
# The slow way out: cut the line after each word and run attention anew, on one word, on two, on three. The fast way is one mask.

# %%
# exercise: masks/causal

# %%
check("masks/causal", causal_mask)

# %%
causal_mask = mine("masks/causal")

# %% [markdown]
# Over the words of the line it looks like this. Each row is a word that asks, and nothing stands right of its own place: *thee* may look at *shall*, *i*, *compare* and itself.

# %%
needs("shakespeare")

# %%
x = words(line)
weights = softmax(dot_scores(x, x), causal_mask(8))
title = "Each word looks at itself and back, never ahead"
figure, ax = plots.axes(title, "key", "query", size=(7, 4.4))
plots.heat_map(ax, weights, line.split(), line.split(), numbers=True)
ax.tick_params(axis="x", labelrotation=30)
plots.show(figure, "Weights over eight words: a lower triangle, all zero above the diagonal.")
assert torch.equal(weights > 0, causal_mask(8))

# %% [markdown]
# ## The slow way and the mask
#
# Row *i* of the masked scores is what word *i* would compute if the line ended there. So the results must agree. **For 256 words, how many times faster is one masked product than 256 runs on growing pieces?**

# %%
needs()

# %%
guess = None  # how many times faster

# %%
from time import perf_counter


@torch.no_grad()
def race(n):
    x, mask = torch.randn(n, 64), causal_mask(n)
    start = perf_counter()
    anew = torch.stack([attention(x[: i + 1])[-1] for i in range(n)])
    middle = perf_counter()
    at_once = attention(x, mask)
    end = perf_counter()
    assert torch.allclose(anew, at_once, atol=1e-4)
    return middle - start, end - middle


# %%
attention, lengths = SelfAttention(64, 64, 64), (8, 16, 32, 64, 128, 256)
race(256)  # the first run of anything is slow
seconds = torch.tensor([[race(n) for n in lengths] for _ in range(3)]).amin(0)
slow, fast = seconds.T
reveal(guess, round((slow[-1] / fast[-1]).item()))
assert slow[-1] > 3 * fast[-1]

# %%
title = "Changing the keys at each step is slow; a mask gives the same at once"
figure, ax = plots.axes(title, "words", "seconds")
ax.loglog(lengths, slow, "o-", label="anew for each word")
ax.loglog(lengths, fast, "o-", label="one masked product")
ax.set_xticks(lengths, lengths)
ax.minorticks_off()
ax.legend()
plots.show(figure, "Seconds by number of words, two rising lines; the slow way lies far above.")

# %% [markdown]
# > **Where the lectures disagree (D01).** May a word look at itself? L2 and L4 hide the keys j > i. L1 hides j ≥ i, so that the diagonal goes too. Then the first word has no key left. Its row is minus infinity throughout, and three implementations say three things about it.

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
scores, values = torch.randn(3, 3), torch.randn(3, 2)
strict = causal_mask(3) & ~torch.eye(3, dtype=torch.bool)
theirs = torch.softmax(scores.masked_fill(~strict, -torch.inf), dim=-1)
fused = nn.functional.scaled_dot_product_attention(*3 * [values[None]], attn_mask=strict)
print("torch.softmax      ", theirs[0].tolist())
print("our softmax        ", softmax(scores, strict)[0].tolist())
print("torch's attention  ", fused[0, 0].tolist())
assert theirs[0].isnan().all() and not softmax(scores, strict)[0].any()
assert not softmax(scores, causal_mask(3))[0].isnan().any()

# %% [markdown]
# Either NaN, with which no training can go on, or zeros, so that the first word has read nothing, not even itself. The mask that hides j > i has no such row. Why it is also safe, although a word then sees itself, is the business of the shift below.

# %% [markdown]
# > **Where the lectures disagree (D11).** Should scores be set to minus infinity *before* the softmax, as all lectures write, or weights to zero *after* it, as summaries in L1 and L2 put it? Zero is zero, one might think. **What does the second word's row sum to, if four of six weights are set to zero afterwards and all scores were equal?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
scores = torch.zeros(6, 6)
after = softmax(scores) * causal_mask(6)
reveal(guess, after[1].sum().item())
print("before:", softmax(scores, causal_mask(6)).sum(-1).tolist())
print("after: ", [round(total, 2) for total in after.sum(-1).tolist()])

# %% [markdown]
# One third; the rows of early words are faint. And there is worse than faintness. The future has been taken out of the sum, but not out of the *denominator*: how much was taken away tells what stands there. Change the last word, and see what the first one says.

# %%
torch.manual_seed(0)
x, other = torch.randn(2, 6, 4)
changed = torch.cat([x[:-1], other[-1:]])
for name, weights in {
    "before": lambda x: softmax(dot_scores(x, x), causal_mask(6)),
    "after": lambda x: softmax(dot_scores(x, x)) * causal_mask(6),
}.items():
    moved = (weights(changed)[0] - weights(x)[0]).abs().max().item()
    print(f"{name:7} the first word's weights move by {moved:.3f}")
    assert (moved > 0) == (name == "after")

# %% [markdown]
# The two become the same only if the rows are divided by their sums again. Remember this leak: a model will use it before the lesson ends.

# %% [markdown]
# ## Build: shift right
#
# A word may see itself, then. But if word *i* stands in the input at place *i*, and word *i* is what place *i* must say, there is nothing to guess. So the decoder's inputs are its targets, moved one place to the right, behind a start sign: at place *i* it has read the words before *i*, and no more.

# %%
# exercise: masks/shift_right

# %%
check("masks/shift_right", shift_right)

# %%
shift_right = mine("masks/shift_right")

# %% tags=["nbval-check-output"]
numbers = {"‹": 0, "shall": 1, "i": 2, "compare": 3, "thee": 4}
names = list(numbers)
targets = torch.tensor([1, 2, 3, 4])
inputs = shift_right(targets, numbers["‹"])
for i, target in enumerate(targets.tolist()):
    read = " ".join(names[token] for token in inputs[: i + 1].tolist())
    print(f"place {i}: has read {read!r:22} and must say {names[target]!r}")

# %% [markdown]
# Here is why the diagonal is safe: at place 2 stands *i*, which has been said, and not *compare*. Could you instead leave the targets where they are, and hide j ≥ i, as L1 writes? **Would state 3 then still depend on word 3, the one it must guess?**

# %%
guess = None  # True or False

# %%
torch.manual_seed(0)
x, layer = torch.randn(5, 8), SelfAttention(8, 8, 8)
other = x.clone()
other[3] = torch.randn(8)
strict = causal_mask(5) & ~torch.eye(5, dtype=torch.bool)
moved = (layer(x, strict) - layer(other, strict)).abs().amax(-1) > 1e-6
reveal(guess, moved[3].item())
assert moved.tolist() == [False, False, False, True, True]

# %% [markdown]
# It would: word 3 is no key of its own any more, but it still asks the *question*, and who asks differently gets different weights. With residual connections it would not even have to ask. Shift the inputs, and hide j > i.

# %% [markdown]
# ## Lines of unequal length
#
# Machines like rectangles, and lines of verse are ragged. A batch is filled up to its longest line. **If 32 lines of Shakespeare are drawn at random, which share of the rectangle is filling?**

# %%
guess = None  # a share between 0 and 1

# %%
needs("shakespeare")

# %%
text = [line.strip() for line in shakespeare.complete_works().splitlines()]
verse = [characters.encode(line).tolist() for line in text[20_000:30_000] if line]
by_length = batches.similar_lengths(verse, 32, 0, len)
at_random = batches.similar_lengths(verse, 32, 0, lambda line: 0)  # the sorting does nothing
filling = {}
for name, drawn in {"random order": at_random, "similar lengths": by_length}.items():
    full = [batches.pad(next(drawn), -1) for _ in range(200)]
    filling[name] = (sum((batch < 0).sum() for batch in full) / sum(map(Tensor.numel, full))).item()
reveal(guess, filling["random order"])
print({name: f"{share:.0%}" for name, share in filling.items()})

# %% [markdown]
# Draw batches of lines that are about as long as each other, and the filling nearly goes. What remains must be hidden all the same.

# %%
needs()

# %%
# exercise: masks/padding

# %%
check("masks/padding", padding_mask)

# %%
padding_mask = mine("masks/padding")

# %%
needs("shakespeare")

# %%
shares = [f"{share:.0%}" for share in filling.values()]
title = f"{shares[0]} of random batches is filling, and {shares[1]} of those sorted by length"
figure, panels = plots.panels(title, list(filling), size=(8, 3))
for ax, drawn in zip(panels, (at_random, by_length)):
    lengths = torch.tensor([len(line) for line in next(drawn)])
    ax.imshow(padding_mask(lengths, int(lengths.max())).squeeze(1), aspect="auto", vmin=0, vmax=1)
    ax.set(xlabel="character (yellow: real, dark: filling)")
panels[0].set(ylabel="line of the batch")
plots.show(figure, "Two batches of 32 lines: a ragged one, largely filling, and one nearly full.")
assert filling["random order"] > 0.3 and filling["similar lengths"] < 0.1

# %% [markdown]
# ## A line and its company
#
# What a model says of a line must not depend on which lines happen to lie in the same batch. Compute the states of a short line alone, then beside a long one. **Without a mask, do its states change? And under a causal mask alone, with the filling at the end?**

# %%
needs()

# %%
guess = None  # (True or False, True or False)

# %%
torch.manual_seed(0)
layer, short, long = SelfAttention(8, 8, 8), torch.randn(3, 8), torch.randn(7, 8)
filled = torch.cat([short, torch.randn(4, 8)])  # whatever the filler's vector is
lengths = torch.tensor([3, 7, 0])
together = torch.stack([filled, long, torch.randn(7, 8)])
hidden = layer(together, padding_mask(lengths, 7))


def differs(mask, alone):
    return not torch.allclose(layer(together, mask)[0, :3], layer(short, alone), atol=1e-5)


reveal(guess, (differs(None, None), differs(causal_mask(7), causal_mask(3))))
assert differs(None, None) and not differs(causal_mask(7), causal_mask(3))
assert not differs(padding_mask(lengths, 7), None) and not hidden[2].any()

# %% [markdown]
# Without a mask the line is another line in other company. The padding mask mends it, and a line of length zero gives zeros. Under a causal mask, filling at the *end* is the future already, so no real word sees it. A reader of whole lines needs the mask; a writer needs only to leave the filling out of its loss.

# %% [markdown]
# ## Build: a detector
#
# Masks are easy to get wrong, and nothing crashes when they are. So test the behaviour: change one word, and see whether anything to its left moves. It needs no knowledge of what is inside.

# %%
# exercise: masks/leaks_future

# %%
check("masks/leaks_future", leaks_future)

# %%
leaks_future = mine("masks/leaks_future")

# %% [markdown]
# Try it on what you have met. The positions count from 0.

# %%
torch.manual_seed(0)
x, layer = torch.randn(6, 8), SelfAttention(8, 8, 8)
print("no mask         ", leaks_future(layer, x))
print("causal mask     ", leaks_future(lambda x: layer(x, causal_mask(6)), x))
print("zero after      ", leaks_future(lambda x: softmax(dot_scores(x, x)) * causal_mask(6) @ x, x))
assert leaks_future(layer, x) == [0, 1, 2, 3, 4]
assert leaks_future(lambda x: layer(x, causal_mask(6)), x) == []

# %% [markdown]
# ## Build: the least block
#
# Everything that a block of self-attention cannot do without is on the table: attention, so that words meet; positions, so that order counts; a feed-forward network, so that something bends; a mask, so that the future stays unread. Put them together.

# %%
# exercise: feed_forward/minimal_block

# %%
check("feed_forward/minimal_block", MinimalBlock)

# %%
MinimalBlock = mine("feed_forward/minimal_block")

# %% [markdown]
# Is each of them necessary? Leave out one at a time, and ask four questions. Do earlier words count? Does their order? Is the block more than a linear map of a lone word? Is the future hidden? **Without attention, which of the four does it still do?**

# %%
guess = None  # some of ["earlier words", "their order", "a bend", "future hidden"]


# %%
class Alone(nn.Identity):
    def forward(self, x, mask):
        return x


class Unmasked(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x)


def block(without=None, **parts):
    made = MinimalBlock(8, 32, **parts)
    if without == "feed-forward":
        made.feed_forward = nn.Identity()
    return made


# %%
def same(one, other):
    return torch.allclose(one, other, atol=1e-5)


def abilities(block):
    x, a, b = torch.randn(6, 8), torch.randn(1, 8), torch.randn(1, 8)
    changed, swapped = torch.cat([a, x[1:]]), x[[1, 0, 2, 3, 4, 5]]
    return {
        "earlier words": not same(block(x)[-1], block(changed)[-1]),
        "their order": not same(block(x)[-1], block(swapped)[-1]),
        "a bend": not same(block((a + b) / 2), (block(a) + block(b)) / 2),
        "future hidden": leaks_future(block, x) == [],
    }


# %% tags=["nbval-check-output"]
torch.manual_seed(0)
blocks = {
    "nothing": block(),
    "attention": block(attention=lambda *sizes: Alone()),
    "positions": block(positions=torch.zeros),
    "feed-forward": block(without="feed-forward"),
    "mask": block(attention=Unmasked),
}
found = {name: abilities(made) for name, made in blocks.items()}
for name, can in found.items():
    lost = [ability for ability, there in can.items() if not there]
    print(f"without {name:13} it loses", ", ".join(lost) or "nothing")
reveal(guess, [ability for ability, there in found["attention"].items() if there])

# %% [markdown]
# Each part is missed by one property at least, and none can stand in for another. These are the necessities as the lectures list them, and you have taken each of them away once.

# %% [markdown]
# ## Four boasts
#
# Four people have trained small models on Shakespeare's characters, one block each, and differ only in their attention. Ann's is that of lesson 03. Read the code of the other three.


# %%
class Bob(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x, torch.ones_like(mask).tril(1))


class Cleo(SelfAttention):
    def forward(self, x, mask):
        q, k, v = project(x, self.w_q, self.w_k, self.w_v)
        return softmax(dot_scores(q, k) / q.shape[-1] ** 0.5) * mask @ v


class Dan(SelfAttention):
    def forward(self, x, mask):
        return super().forward(x - reduce(x, "... n d -> ... 1 d", "mean"), mask)


# %% [markdown]
# **Who cheats? And whose loss will be the lowest?** An honest model of this size, after so short a training, is at a little over 2 nats a character. All four get 800 steps, or 12 seconds.

# %%
guess = None  # for example (["Ann", "Bob"], "Ann")

# %%
needs("shakespeare")

# %%
learning, held_out = characters.split()
vocab = len(characters.vocab())


# %% tags=["training"]
def next_loss(model, batch):
    read, following = batch
    return nn.functional.cross_entropy(model(read).mT, following)


def train(attention, d_model, depth, **budget):
    with training.seeded(SEED):
        blocks = [MinimalBlock(d_model, 4 * d_model, attention=attention) for _ in range(depth)]
        model = nn.Sequential(nn.Embedding(vocab, d_model), *blocks, nn.Linear(d_model, vocab))
    data = characters.batches(learning, 32, 32, SEED)
    training.train(model, data, next_loss, **budget)
    return model


# %% tags=["training"]
people = {"Ann": SelfAttention, "Bob": Bob, "Cleo": Cleo, "Dan": Dan}
models = {
    name: train(attention, 48, depth=1, steps=800, learning_rate=0.01, seconds=12)
    for name, attention in people.items()
}

# %% tags=["training"]
batch = next(characters.batches(held_out, 32, 64, seed=1))
with torch.no_grad():
    boasts = {name: next_loss(model, batch).item() for name, model in models.items()}
print({name: round(loss, 2) for name, loss in boasts.items()})

# %% [markdown]
# Those are losses on text that none of them was trained on, so nobody has learned it by heart. Now your detector: it looks at the layers behind the embedding.

# %% tags=["training"]
with torch.no_grad():
    x = models["Ann"][0](batch[0][:1, :8])
leaks = {name: leaks_future(model[1:], x) for name, model in models.items()}
for name, places in leaks.items():
    print(f"{name:5} leaks at {places}" if places else f"{name:5} leaks nowhere")
cheats = [name for name in leaks if leaks[name]]
reveal(guess, (cheats, min(boasts, key=boasts.get)))
assert cheats == ["Bob", "Cleo", "Dan"], "their outputs move when later inputs do"

# %% [markdown]
# Bob's mask is one step too generous, which is all it takes. Cleo's is zero *after* the softmax, and training has learned to read the denominator. Dan's mask is correct; but he took the mean over the whole line first, the future included. That is the kind of leak that nobody sees in a mask.

# %% [markdown]
# ## Without the future
#
# When a model writes, the future is not there. Measure it so: give each model the first character alone, then two, then three, and count only its last prediction. **Which of the four keep the loss of which they boasted?**

# %%
guess = None  # a list of names


# %% tags=["training"]
@torch.no_grad()
def past_only(model):
    read, following = batch
    last = [model(read[:, :i])[:, -1] for i in range(1, 33)]
    return nn.functional.cross_entropy(torch.stack(last, dim=-1), following).item()


honest = {name: past_only(model) for name, model in models.items()}
reveal(guess, [name for name in models if honest[name] < boasts[name] + 0.01])
assert abs(honest["Ann"] - boasts["Ann"]) < 1e-3, "Ann never saw what is hidden now"
rises = [round(honest[name] - boasts[name], 2) for name in cheats]
claim = "each cheat loses more than 0.1 nats when it sees only the past"
training.expect(claim, min(rises) > 0.1, rises, *models.values())

# %% tags=["training"]
title = "Whoever has learned to read the future is lost without it"
figure, ax = plots.axes(title, "", "loss, nats a character")
for shift, colour, label, losses in (
    (-0.2, plots.COLOURS[0], "the whole line shown", boasts),
    (0.2, plots.COLOURS[1], "only the past shown", honest),
):
    bars = ax.bar([i + shift for i in range(4)], losses.values(), 0.36, color=colour, label=label)
    ax.bar_label(bars, fmt="%.2f")
ax.set_xticks(range(4), models)
ax.legend()
plots.show(
    figure, "Bars for four models: equal for Ann, and for the others low with the future only."
)
rest = [round(honest[name] - honest["Ann"], 2) for name in cheats]
training.expect("each cheat is then worse than Ann", min(rest) > 0, rest, *models.values())

# %% [markdown]
# Then let them write. Each draws its next character from its own chances and reads it back. They look at the last 16 characters, so that they stand where 16 more followed in training. A causal model does not care.


# %%
@torch.no_grad()
def write(model, start, length=150, window=16):
    tokens, generator = characters.encode(start), torch.Generator().manual_seed(0)
    for _ in range(length):
        chances = softmax(model(tokens[None, -window:])[0, -1])
        tokens = torch.cat([tokens, torch.multinomial(chances, 1, generator=generator)])
    return characters.decode(tokens)


# %% tags=["training"]
for name, model in models.items():
    print(f"-- {name}, who boasts {boasts[name]:.2f}", write(model, "ROMEO.\n"), "", sep="\n")

# %% [markdown]
# Ann's text is no English yet, but her words have the right lengths and their vowels. The others wait for a future that does not come. A training loss cannot tell you this, and neither can one on held-out text: only the detector, or the writing, will.

# %% [markdown]
# ## A stack that writes
#
# Now two of your blocks, a little wider than Ann's one, and for comparison six. Six blocks have more of everything, so they should do better. **Will they?** A model that knows only how often each character occurs has a loss of 3.33.

# %%
guess = None  # two losses: (two blocks, six blocks)

# %% tags=["training"]
two = train(SelfAttention, 64, depth=2, steps=1000, learning_rate=0.006, seconds=30)

# %% tags=["training"]
six = train(SelfAttention, 64, depth=6, steps=100, learning_rate=0.006, seconds=30)
with torch.no_grad():
    losses = [next_loss(model, batch).item() for model in (two, six)]
    places = [softmax(model(batch[0]))[..., characters.vocab().index("e")] for model in (two, six)]
reveal(guess, tuple(round(loss, 2) for loss in losses))
often = torch.bincount(learning, minlength=vocab) / len(learning)
by_frequency = torch.special.entr(often).sum().item()
print(f"Ann's one block: {boasts['Ann']:.2f}; by frequency alone: {by_frequency:.2f}")
claim = "two blocks stay under 2.8 nats; six end within 0.2 of the frequencies"
as_claimed = losses[0] < 2.8 and abs(losses[1] - by_frequency) < 0.2
training.expect(claim, as_claimed, [round(loss, 2) for loss in losses], two, six)

# %% tags=["training"]
for name, chances in zip(("two", "six"), places):
    print(f"{name} blocks: the next is an e with {chances.min():.3f} to {chances.max():.3f}")
ranges = [round((place.max() - place.min()).item(), 2) for place in places]
claim = "two blocks change their minds about an e by more than six do"
training.expect(claim, ranges[0] > ranges[1], ranges, two, six)

# %% tags=["training"]
print(write(two, "ROMEO.\nShall I compare thee", length=300, window=32))

# %% [markdown]
# Two blocks make something like Shakespeare, seen from ten paces, and hardly better than Ann's one. Six have learned how often each character occurs and nothing else: wherever they stand, they say the same, as the first half of this lesson foretold. Two things are missing. One word looks at others with a single set of weights, for a single reason: lesson 06. And depth fails: lesson 07.

# %% [markdown]
# ## Break it
#
# - Multiply `words(line)` by 3, then by 5, in the first experiment. How many layers does the line last now? Why does the theorem not mind?
# - Divide Cleo's rows by their sums after the mask. Does the detector still object?
# - Replace Dan's mean by that of the characters read so far (`cumsum`). Does the detector let him go? Is his loss still lower than Ann's?
# - Make the filler in `filled` a thousand times longer, with the padding mask on. Does anything move?

# %% [markdown]
# ## What you take along
#
# Attention moves news between words, and only averages. The feed-forward network bends each word by itself, and holds most of the parameters; it does not by itself keep words apart. A causal mask makes training parallel and honest: hide j > i, before the softmax, with inputs shifted right. A padding mask hides filling. Test for leaks by behaviour.
#
# Sources: Vaswani et al. 2017, sections 3.1 to 3.3; Dong et al. 2021, *Attention is not all you need: pure attention loses rank doubly exponentially with depth*. Lectures: L1, L2, L3, L4, L5.
