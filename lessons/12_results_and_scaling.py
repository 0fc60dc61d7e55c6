# %% [markdown]
# # 12 · Results and scaling
#
# **217 minutes, of which 112 are the core path · after lesson 11 · needs Shakespeare's works (5 MB)**
#
# Lesson 11 trained a translator. In 2017, such a model beat all others at a fraction of their cost. Today's largest Transformers have ten thousand times its parameters. What exactly did the first one win? And if more of everything helps, how much does it help, and of what should you buy more?

# %% [markdown]
# You will count the parameters and the training operations of any Transformer without running it. You will measure how the loss falls with size, and predict the loss of a larger model before it is trained. At the end, a layer gets eight times the parameters for twice the work, and you build the masking that BERT was trained with.
#
# You need lessons 08 and 10; sections marked "(optional)" are not needed later. The models here are tiny, from 1,536 parameters up; the laws that you fit are those used for models a million times larger.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %%
import time

from course_lib.data import characters, needs
from course_lib.feed_forward import FeedForward
from course_lib.language_model import LanguageModel

softmax, cross_entropy = mine("attention/softmax"), mine("language_model/cross_entropy")

# %% tags=["hide-input"]
drawings.transformer(
    {"feed-forward", "self-attention", "masked self-attention", "cross-attention"},
    "The Transformer of 2017. Attention and feed-forward networks of both stacks are highlighted: their "
    "matrices are what this lesson counts, and the feed-forward network is what it replaces.",
)

# %% [markdown]
# ## The table of 2017
#
# This is what made the Transformer famous: table 2 of the paper, as lectures L1, L2 and L3 show it. **BLEU** (lesson 11) says how good the translations are, English to German; the cost is the number of operations of the training. The numbers in the cell are quoted, not measured.
#
# **The best model before it was an ensemble of ConvS2S. How many times the operations of the base Transformer did that take?**

# %%
guess = None  # a factor

# %%
quoted = {  # Vaswani et al. 2017, table 2: BLEU from English to German, and training FLOPs
    "GNMT + RL": (24.6, 2.3e19),
    "ConvS2S": (25.16, 9.6e18),
    "mixture of experts": (26.03, 2.0e19),
    "GNMT, ensemble": (26.30, 1.8e20),
    "ConvS2S, ensemble": (26.36, 7.7e19),
    "Transformer, base": (27.3, 3.3e18),
    "Transformer, big": (28.4, 2.3e19),
}
factor = quoted["ConvS2S, ensemble"][1] / quoted["Transformer, base"][1]
reveal(guess, round(factor))

# %% tags=["hide-input"]
title = "Quoted: the base Transformer is better than all before it, at the lowest cost"
figure, ax = plots.axes(title, "training operations", "BLEU, English to German", size=(7, 3.6))
for name, (bleu, flops) in quoted.items():
    colour = plots.COLOURS[0] if "Transformer" in name else "0.45"
    ax.semilogx(flops, bleu, "o", color=colour)
    left = name in ("ConvS2S, ensemble", "Transformer, big")
    ax.annotate(
        name,
        (flops, bleu),
        xytext=(-7 if left else 7, 5 if name == "ConvS2S, ensemble" else -4),
        textcoords="offset points",
        ha="right" if left else "left",
        size="small",
        color=colour,
    )
ax.set(xlim=(2e18, 9e20), ylim=(24, 29))
plots.show(
    figure,
    "BLEU against training operations, logarithmic, seven models of Vaswani et al. 2017, table 2. "
    "Transformer base: 27.3 at 3.3e18; big: 28.4 at 2.3e19. The five others have 24.6 to 26.4 at "
    "9.6e18 to 1.8e20.",
)

# %% [markdown]
# The base model took the fewest operations of all in the table and was better than every ensemble. How does one know such a number? The paper did not count the operations, so we will.
#
# > **Where the lectures slip (D07).** L3 explains the FLOPs of this table as "Floating point operations per second". Per second is a *rate*, which a processor has (FLOP/s, often written FLOPS). What a training costs is a *number* of operations (FLOPs): it is the same on a slow machine and on a fast one.

# %% [markdown]
# ### The same table at small scale (optional)
#
# Which architecture wins if all get the same work? The table cannot say: its rows have different costs, authors and code. So let us redo it with one data set, one training loop and $10^{12}$ operations for each model, counted by torch.
#
# The task is lesson 01's: from a word's letters to its sounds. It is a translation that takes about a minute of one core. German would be closer to the paper, but one translator of lesson 11 took 19 minutes, and this table needs 24 trainings for each seed.

# %% [markdown]
# | model | what it is |
# |:-|:-|
# | GRU | one vector between encoder and decoder (lesson 01) |
# | GRU with attention | lesson 02 |
# | convolutions | ConvS2S at small scale (Gehring et al. 2017): windows of three tokens with a gate; in the decoder a window ends at the current token, and attention reads the source |
# | Transformer, small | two layers in each stack, $d_{model} = 64$ |
# | Transformer, big | the same, $d_{model} = 128$ |
# | mixture of experts | the small one with eight half-wide feed-forward networks in each layer, of which a token uses two (below) |
#
# Each takes the best of four learning rates (those trials are not counted). Smaller budgets are training runs of their own, in which the rate falls to zero as well.

# %%
small = results.load("architectures")["figures"]
shares, longest = small["settings"]["shares"], [row for row in small["rows"] if row["share"] == 1]
ends = {name: [row for row in longest if row["name"] == name] for name in small["parameters"]}
for name, parameters in small["parameters"].items():
    print(f"{name:18} {parameters:8,} parameters, {ends[name][0]['steps']:5,} steps of 64 words")
    assert all(0.99e12 < row["flops"] < 1e12 for row in ends[name])
    assert all(row["cpu_seconds"] < 80 for row in ends[name])
assert len(shares) * len(ends) == 24
duel = results.load("translation")["figures"]["duel"]
ours = duel["candidates"][duel["chosen"]]["training"]
assert round(ours["cpu_seconds"] / 60) == 19

# %% [markdown]
# **Order the six by the BLEU of their sounds, the best first.**

# %%
guess = None  # a list of six names


# %%
def bleus(*names):
    return [row["bleu"] for name in names for row in ends[name]]


order = sorted(ends, key=lambda name: -sum(bleus(name)))
reveal(guess, order)
for name in order:
    right = ", ".join(f"{row['right']:.0%}" for row in ends[name])
    print(f"{name:18} BLEU {bleus(name)}, words that are all right: {right}")
assert {*order[:2]} == {"convolutions", "GRU with attention"} and order[-1] == "Transformer, big"
assert min(bleus(*order[:2])) > max(bleus(*order[2:])) + 2
assert max(bleus(order[-1])) < min(bleus(*order[:-1])) - 2
assert min(bleus("GRU with attention")) > max(bleus("GRU")) + 8


# %% tags=["hide-input"]
def bleu_at(share, name):
    """Return the mean BLEU over the seeds."""
    found = [row for row in small["rows"] if (row["share"], row["name"]) == (share, name)]
    return sum(row["bleu"] for row in found) / len(found)


title = "Convolutions and the GRU with attention lead; the Transformers' gap shrinks"
figure, ax = plots.axes(title, "training operations", "BLEU of the sounds", size=(7, 4.2))
budgets = [share * small["settings"]["budget"] for share in shares]
lowest = 100.0  # the place of the last label, below which the next one has room
for name, colour in zip(order, plots.COLOURS):
    runs = [row for row in small["rows"] if row["name"] == name]
    found = [row["bleu"] for row in runs]
    ax.semilogx([row["flops"] for row in runs], found, "o", color=colour, markersize=3.5)
    curve = [bleu_at(share, name) for share in shares]
    ax.plot(budgets, curve, color=colour, linewidth=1.5)
    lowest = min(curve[-1], lowest - 3.4)
    ax.text(1.1e12, lowest, name, color=colour, va="center")
ax.set_xticks(budgets, [f"{budget / 1e12:g} × $10^{{12}}$" for budget in budgets])
ax.minorticks_off()
ax.set(xlim=(1.1e11, 2.3e12), ylim=(0, 75))
ends_at = (f"{name} {bleu_at(shares[0], name):.0f} and {bleu_at(1, name):.0f}" for name in order)
plots.show(
    figure,
    "BLEU of the sounds against training operations, logarithmic, four budgets from 1.25e11 to "
    f"1e12. At the smallest and at the largest: {', '.join(ends_at)}.",
)

# %% [markdown]
# The lead shrinks as the budget grows. This is how far each Transformer is behind the GRU with attention, from the smallest budget to the largest:

# %%
for name in ("Transformer, small", "Transformer, big"):
    behind = [bleu_at(share, "GRU with attention") - bleu_at(share, name) for share in shares]
    print(f"{name}: behind by", ", ".join(f"{bleu:.1f}" for bleu in behind), "BLEU")
    assert behind == sorted(behind, reverse=True)
    assert behind[0] > 20 and behind[-1] < {"Transformer, small": 8, "Transformer, big": 25}[name]
took = {name: sum(row["cpu_seconds"] for row in ends[name]) / len(ends[name]) for name in order}
print("CPU-seconds:", ", ".join(f"{name} {seconds:.0f}" for name, seconds in took.items()))
assert all(row["steps"] < 310 for row in ends["Transformer, big"])
assert round(quoted["Transformer, big"][1] / quoted["Transformer, base"][1]) == 7
assert 0.6 < took["GRU with attention"] / took["Transformer, small"] < 1.6

# %% [markdown]
# This is not the paper's order. There a recurrent network with attention (GNMT) is below ConvS2S, and both are below the Transformer. What differs?
#
# **The budget.** The lines say how *fast* a model learns, and not how far it comes. From an eighth of the budget to all of it, the small Transformer's distance to the GRU with attention shrinks from more than 20 BLEU to less than 8, and all lines still rise. For the big one, $10^{12}$ operations are 306 steps. The paper gave its big model seven times the work of its base.

# %% [markdown]
# **The cost.** A recurrent network's steps wait for each other. On many processors that takes time, but no operations, and the paper's costs were estimated from time, as you will see below. On our one core, the GRU with attention took about as long as the small Transformer.

# %% [markdown]
# **The task.** A supposition that we have not tested: a sound depends on a few letters at about the same place of the word. Windows and recurrence have this order built in, and a Transformer must learn it.
#
# Attention is worth more than 8 BLEU to the GRU. (The table of 2017 has no recurrent network without it.)


# %%
def spread(name, share):
    """Return how far apart the seeds are."""
    found = [row for row in small["rows"] if (row["share"], row["name"]) == (share, name)]
    return max(row["bleu"] for row in found) - min(row["bleu"] for row in found)


print("BLEU between the best and the worst of three seeds:")
for share, which in ((shares[0], "smallest"), (1, "largest")):
    print(f"{which} budget:", ", ".join(f"{name} {spread(name, share):.1f}" for name in order))
assert 4 < spread("mixture of experts", shares[0]) < 8
assert max(spread(name, 1) for name in order) < 2
twins = [bleus(name) for name in ("mixture of experts", "Transformer, small")]
assert max(map(min, twins)) < min(map(max, twins)), "their seeds overlap"

# %% [markdown]
# How sure are these numbers? Each point is three trainings. At the smallest budget the three seeds of the mixture are 6 BLEU apart; at the largest all spreads are below 2. So most ranks at the full budget are clear, but two pairs are not. The small Transformer and the mixture of experts overlap: do not ask which of them won. And the convolutions are ahead of the GRU with attention by less than one BLEU: for every seed, but on one set of test words.
#
# So how does one count operations without running a model?

# %% [markdown]
# ## How large is a model?
#
# The operations depend on the parameters, so count these first. One block has four matrices of attention, and two of its feed-forward network:
#
# $$N = n_{layer}\,\big(\underbrace{4\, d_{model}\, d_{attn}}_{W_Q,\ W_K,\ W_V,\ W_O} + \underbrace{2\, d_{model}\, d_{ff}}_{W_1,\ W_2}\big) = 2\, d_{model}\, n_{layer}\,(2\, d_{attn} + d_{ff})$$
#
# $d_{attn}$ is the total width of the queries of all heads. Biases, norms and embeddings are left out (Kaplan et al. 2020).

# %%
# exercise: scaling/parameters

# %%
check("scaling/parameters", estimate_parameters)

# %%
estimate_parameters = mine("scaling/parameters")

# %% [markdown]
# > **Where the lectures slip (D05).** L3 shortens this to $N \approx 12\, n_{layer}\, d^2$ "(Assuming $d = d_{attn} = d_{ff}$)". **If all three were the same, what would replace the 12?**

# %%
guess = None  # a number

# %%
d = 12288
factors = [estimate_parameters(1, d, d, d_ff) / d**2 for d_ff in (d, 4 * d)]
reveal(guess, factors[0])
print(f"d_ff = d: {factors[0]:.0f} d^2 per layer; d_ff = 4 d: {factors[1]:.0f} d^2")
assert factors == [6, 12]

# %% [markdown]
# Twelve needs $d_{attn} = d$ and $d_{ff} = 4d$, as the Transformer of 2017 and GPT-3 have them. Now test the estimate. The paper of GPT-3 prints the sizes of eight models (Brown et al. 2020, table 2.1). **Add the embedding, 50,257 tokens of $d$ numbers. For which of the eight is the estimate off by more than 3%?**

# %%
guess = None  # the printed sizes of those, such as ["125M"]

# %%
# as printed, though 40 heads of 128 make 5120, and 24 heads of 128 (1.3B) would make d_attn 3072
printed = {  # layers, d_model
    "125M": (12, 768), "350M": (24, 1024), "760M": (24, 1536), "1.3B": (24, 2048),
    "2.7B": (32, 2560), "6.7B": (32, 4096), "13.0B": (40, 5140), "175.0B": (96, 12288),
}  # fmt: skip
UNIT = {"M": 1e6, "B": 1e9}
off = []
for size, (layers, d) in printed.items():
    ours = estimate_parameters(layers, d, d, 4 * d) + 50_257 * d
    ratio = ours / (float(size[:-1]) * UNIT[size[-1]])
    off += [size] if abs(ratio - 1) > 0.03 else []
    print(f"{size:>6}: {ours / UNIT[size[-1]]:6.1f}{size[-1]}, {ratio:.3f} of the printed size")
reveal(guess, off)
assert off == []

# %% [markdown]
# None. Layers, width and vocabulary tell the size of every GPT-3 within 3%. The models of lesson 09 need a closer look: MiniLM has $d_{attn} = d$ and $d_{ff} = 4d$, but SmolLM2 shares keys and values among heads, and its SwiGLU has three matrices.

# %%
minilm = estimate_parameters(6, 384, 384, 4 * 384)
smollm2 = 30 * (2 * 576 * 576 + 2 * 576 * 192 + 3 * 576 * 1536)
print(f"MiniLM:  {minilm / 1e6:5.1f} M of 22.7 M, nearly all the rest is embeddings")
print(f"SmolLM2: {smollm2 / 1e6:5.1f} M of 134.5 M, the rest is its embedding")
assert smollm2 + 49_152 * 576 + 61 * 576 == 134_515_008

# %% [markdown]
# ## How much work is a training?
#
# In a forward pass every weight takes part in one **multiply-add** for each token: two operations. The backward pass computes two products of the same size: one for the gradient of the weight, one for the gradient of what it multiplied. So a training on $D$ tokens takes
#
# $$C = 3\,\big(\underbrace{2N}_{\text{matrices}} + \underbrace{2\, n_{layer}\, n_{ctx}\, d_{attn}}_{\text{scores, averages}}\big)\, D \;\approx\; 6\,N\,D$$
#
# operations. For each token and layer, the scores take $n_{ctx}\, d_{attn}$ multiply-adds and the averages as many again: $4\, n_{ctx}\, d_{attn}$ operations. Under a causal mask a token sees half of the context on average, which leaves 2.

# %%
# exercise: scaling/training_flops

# %%
check("scaling/training_flops", training_flops)

# %%
training_flops = mine("scaling/training_flops")

# %% [markdown]
# PyTorch can count the operations that a model really executes. Take the language model of lesson 10 with $d_{model} = 64$, two layers and a context of 64. **Which share of the operations that torch counts does $6ND$ explain, if the output layer is counted in $N$?**

# %%
guess = None  # a share, such as 0.5

# %% tags=["nbval-check-output"]
from torch.utils.flop_counter import FlopCounterMode

model = LanguageModel(vocab=84, layers=2, d_model=64, heads=4, d_ff=256, max_length=64)
tokens = torch.randint(84, (8, 64))
with FlopCounterMode(display=False) as counter:
    cross_entropy(model(tokens), tokens).backward()
counted = counter.get_total_flops()
n, d = estimate_parameters(2, 64, 64, 256) + 84 * 64, tokens.numel()
shares = [training_flops(n, d) / counted, training_flops(n, d, 2, 64, 64) / counted]
reveal(guess, round(shares[0], 2))
print(f"torch counts {counted:,}; 6 N D is {shares[0]:.3f} of it, with attention {shares[1]:.3f}")

# %% [markdown]
# The rest is attention. With its term the formula is still short, because torch computes all scores and hides half of them, while the formula counts only those that are seen. Twice the term closes the gap:

# %%
assert training_flops(n, d, 2, 2 * 64, 64) == counted
for name, layers, width, context in (("here", 2, 64, 64), ("GPT-3", 96, 12288, 2048)):
    blocks = estimate_parameters(layers, width, width, 4 * width)
    more = training_flops(blocks, 1, layers, context, width) / training_flops(blocks, 1) - 1
    print(f"{name}: in the blocks, the second term is {more:.1%} of the first")
    assert abs(more - context / (12 * width)) < 1e-9

# %% [markdown]
# For $d_{ff} = 4d$ the second term is $n_{ctx} / (12\, d_{model})$ of the first. GPT-3's context is a sixth of its width, so $6ND$ is nearly all of its work. A context of twelve widths would double the work.

# %% [markdown]
# Now the paper. Section 6.1 says how the costs of the table were found: "we estimate the number of floating point operations used to train a model by multiplying the training time, the number of GPUs used, and an estimate of the sustained single-precision floating-point capacity of each GPU". So it is a rate times a time, after all. The base model took 12 hours on 8 GPUs, at 9.5 TFLOP/s each (a footnote). **Its 100,000 steps had about 25,000 source and 25,000 target tokens each. What does $6ND$ say, as a share of the table's $3.3 \cdot 10^{18}$?**

# %%
guess = None  # a share

# %%
table = 12 * 3600 * 8 * 9.5e12
# each token passes one stack: a source token the encoder, a target token the decoder
encoder = estimate_parameters(6, 512, 512, 2048)
decoder = encoder + 6 * 4 * 512 * 512 + 37_000 * 512  # with cross-attention and output layer
ours = training_flops(encoder, 25_000 * 100_000) + training_flops(decoder, 25_000 * 100_000)
reveal(guess, round(ours / table, 2))
print(f"the table's way: {table:.1e}; by 6 N D: {ours:.1e}, a share of {ours / table:.2f}")
assert 3.2e18 < table < 3.4e18 and 0.25 < ours / table < 0.35

# %% [markdown]
# About three tenths. So the table does not say how much work the training was, but how much the machines could have done in that time, at the assumed rate. It compares what the training cost, in machine time, and not the operations: some models keep their processors busier than others.

# %% [markdown]
# ## What would GPT-2 cost? (optional)
#
# Now you can price a training before you pay for it. The smallest GPT-2 has 12 layers, a width of 768, a context of 1,024 and a vocabulary of 50,257. Twenty tokens per parameter is a usual budget (why twenty, we ask below). **How many days would that take on your machine?**

# %%
guess = None  # days

# %%
layers, width, context, vocab = 12, 768, 1024, 50_257
n = estimate_parameters(layers, width, width, 4 * width) + vocab * width  # with the output layer
assert 123e6 < n < 124e6
square = torch.randn(1024, 1024)
start = time.perf_counter()
for _ in range(20):
    square @ square
here = 20 * 2 * 1024**3 / (time.perf_counter() - start)
print(f"{n / 1e6:.1f} M parameters; this machine: {here / 1e9:.0f} billion operations a second")


def days(tokens, rate):
    return training_flops(n, tokens, layers, context, width) / rate / 86_400


# %%
A100 = 312e12  # operations a second, of bfloat16, as its data sheet has them
budgets = {"20 per parameter": 20 * n, "nanoGPT's": 600_000 * 480 * 1024}
for name, tokens in budgets.items():
    print(f"{name:22} {tokens:8.1e} tokens: {days(tokens, here):9,.0f} days here, ", end="")
    print(f"{days(tokens, 8 * A100):.2f} on eight A100 at their peak rate")
reveal(guess, round(days(20 * n, here)))

# %% [markdown]
# Real training does not reach the peak rate. nanoGPT's README says that the second one runs "for about 4 days" on eight A100 (quoted). **What share of their peak rate did these GPUs reach?** (This is called **model FLOPs utilization**, MFU.)

# %%
guess = None  # a share

# %% tags=["nbval-check-output"]
reveal(guess, round(days(budgets["nanoGPT's"], 8 * A100) / 4, 2))

# %% [markdown]
# Near the share that we found for the paper of 2017. PaLM's training, on chips and with a program made for large models, reached 46% (Chowdhery et al. 2022, quoted).
#
# If you have GPUs: `torchrun --nproc-per-node=8 -m experiments.at_scale --tokens train.bin --vocab 50257` trains lesson 10's model with lesson 10's loop on eight of them. Each has a copy of the model and an eighth of every batch, and the gradients are averaged before each step. A test of the course runs it in two processes and in one: the losses are equal.

# %% [markdown]
# ## What size buys
#
# `make results LESSON=12` has trained language models on Shakespeare's works by the character, with two layers and a context of 64: four sizes for 200 and for 800 steps of 2,048 tokens, and a fifth for 800, from three seeds each. The learning rate is smaller for wider models, and falls to zero in every run. $N$ counts the matrices of the blocks alone, as Kaplan et al. 2020 do. (At $d_{model} = 8$ the embedding of 84 characters has 672 more.) First the longer runs of the four:

# %%
kept = results.load("scaling")["figures"]["rows"]


def runs(**wanted):
    """Return the kept runs with these settings."""
    return [row for row in kept if wanted.items() <= row.items()]


def mean_loss(**wanted):
    """Return the mean held-out loss over the seeds."""
    found = [row["loss"] for row in runs(**wanted)]
    return sum(found) / len(found)


# %%
*sizes, _ = sorted({row["d"] for row in kept})  # the largest one is for later
parameters = [float(estimate_parameters(2, d, d, 4 * d)) for d in sizes]
losses = [mean_loss(d=d, steps=800) for d in sizes]
for d, count, loss in zip(sizes, parameters, losses):
    print(f"d_model {d:2}: {count:8,.0f} parameters, {loss:.3f} nats per character")

# %% [markdown]
# Kaplan et al. 2020 found that the loss of a language model falls as a **power law**,
#
# $$L(N) = c\, N^{-\alpha} \qquad\Longleftrightarrow\qquad \log L = \log c - \alpha \log N,$$
#
# a straight line between logarithms. The least-squares line through $(x_i, y_i) = (\log N_i, \log L_i)$ has the slope
#
# $$-\alpha = \frac{\sum_i (x_i - \bar x)(y_i - \bar y)}{\sum_i (x_i - \bar x)^2}, \qquad \log c = \bar y + \alpha \bar x.$$

# %%
# exercise: scaling/fit_power_law

# %%
check("scaling/fit_power_law", fit_power_law)

# %%
fit_power_law = mine("scaling/fit_power_law")

# %% [markdown]
# Fit the line to these four. The fifth model has four times the parameters of the largest one, and was trained for as many steps. The fit does not see it. **Which loss does the line predict for it, and which loss do you expect?**

# %%
guess = None  # two losses, in nats

# %%
coefficient, exponent = fit_power_law(torch.tensor(parameters), torch.tensor(losses))
larger = float(estimate_parameters(2, 64, 64, 4 * 64))
predicted = (coefficient * larger**-exponent).item()
print(
    f"L(N) = {coefficient:.2f} N^(-{exponent:.3f}) predicts {predicted:.3f} for N = {larger:,.0f}"
)

# %%
measured = mean_loss(d=64, steps=800)
reveal(guess, (round(predicted, 3), round(measured, 3)))
hoped, gained = losses[-1] - predicted, losses[-1] - measured
print(f"gain over the fourth model: predicted {hoped:.3f}, measured {gained:.3f} nats")
assert abs(predicted / measured - 1) < 0.02 and 0.8 < gained / hoped < 0.87

# %% tags=["hide-input"]
title = "The line through four sizes predicts the fifth within 2%"
figure, ax = plots.axes(title, "parameters N", "held-out loss (nats)", size=(7, 4))
for budget, colour in zip((200, 800), plots.COLOURS):
    found = [mean_loss(d=d, steps=budget) for d in sizes]
    ax.loglog(parameters, found, "o-", color=colour, linewidth=1, markersize=4)
    ax.text(parameters[-1] * 1.08, found[-1], f"{budget} steps", color=colour, va="bottom")
line = torch.tensor([parameters[0], larger])
ax.plot(line, coefficient * line**-exponent, "--", color="0.4", linewidth=1)
ax.plot(larger, predicted, "s", color="0.4", fillstyle="none", markersize=9)
ax.plot(larger, measured, "o", color=plots.COLOURS[3], markersize=7)
ax.text(1.2 * larger, predicted, "predicted", va="top", color="0.4", size="small")
ax.text(1.2 * larger, measured, "measured", va="bottom", color=plots.COLOURS[3], size="small")
ax.set(xlim=(1200, 250_000), ylim=(1.8, 3.1))
ax.set_yticks([2, 2.5, 3], ["2.0", "2.5", "3.0"])
ax.minorticks_off()
plots.show(
    figure,
    "Held-out loss against parameters, both logarithmic. At 800 steps four sizes from 1,536 to "
    "24,576 parameters have 2.59, 2.35, 2.22 and 2.13 nats, nearly on a straight line. The dashed "
    "line through them predicts 1.93 for 98,304 parameters; measured 1.97. At 200 steps the four "
    "losses are 2.96, 2.67, 2.59 and 2.56: higher, and the line flattens.",
)

# %% [markdown]
# The prediction came from models of at most a quarter of the size, and is wrong by less than 2%, but too hopeful: only five sixths of the predicted gain came. The upper line shows a likely reason: at 200 steps it flattens, as these are too few for a larger model to use its size. (Another one: the line has no floor, and promises a loss near 0 for a model that is large enough.)

# %% [markdown]
# At 800 steps all five saw the same 1.6 million characters. Kaplan et al. fitted $L(N)$ to models that had as many tokens as they could use. So the loss depends on parameters *and* on tokens. Which of the two is worth more?

# %% [markdown]
# ## Larger, or longer?
#
# Four times the operations can pay for four times the parameters, or for four times the tokens. Begin with $d_{model} = 16$ and 200 steps. **Which lowers the loss more: twice the width (four times the parameters), or 800 steps?**

# %%
guess = None  # "larger" or "longer"

# %%
start = mean_loss(d=16, steps=200)
ways = {
    "larger": mean_loss(d=32, steps=200),
    "longer": mean_loss(d=16, steps=800),
}
reveal(guess, min(ways, key=ways.get))
print(f"{start:.3f} at first;", ", ".join(f"{name}: {loss:.3f}" for name, loss in ways.items()))
assert ways["longer"] < ways["larger"] - 0.1 < start - 0.1

# %% [markdown]
# Longer, by far. (Two hundred steps are few for a model of any size, so this is no law.) But in a power law each further token gains less than the one before, and so does each further parameter. Somewhere there is a balance.

# %% [markdown]
# A budget of operations can train a large model on few tokens or a small one on many. Hoffmann et al. 2022 add a floor and a term for the tokens,
#
# $$L(N, D) = E + \frac{a}{N^{\alpha}} + \frac{b}{D^{\beta}} \qquad \text{with} \qquad 6\,N D = C.$$
#
# $E$ is what no model can remove: even the best reader cannot know the next character. Put $D = C / (6N)$ into the loss, and set its derivative with respect to $N$ to zero: $\alpha a N^{-\alpha} = \beta b D^{-\beta}$. So
#
# $$N^* = G \Big(\frac{C}{6}\Big)^{\frac{\beta}{\alpha + \beta}}, \qquad D^* = \frac{C}{6 N^*}, \qquad G = \Big(\frac{\alpha\, a}{\beta\, b}\Big)^{\frac{1}{\alpha + \beta}}.$$

# %%
# exercise: scaling/compute_optimal

# %%
check("scaling/compute_optimal", compute_optimal)

# %%
compute_optimal = mine("scaling/compute_optimal")

# %% [markdown]
# Try it with the law that the paper prints, fitted to more than 400 models, and with a budget of $5.76 \cdot 10^{23}$ operations. The authors' laboratory had spent that on **Gopher**, with 280 billion parameters and about one token per parameter. They then trained **Chinchilla**, with 70 billion parameters and 1.4 trillion tokens, 20 per parameter. **How many tokens per parameter does the printed law recommend?**

# %%
guess = None  # tokens per parameter

# %%
printed_law = {"a": 406.4, "b": 410.7, "alpha": 0.34, "beta": 0.28}  # Hoffmann et al. 2022, eq. 10
n, d = compute_optimal(5.76e23, **printed_law)
reveal(guess, round(d / n))
print(
    f"{n / 1e9:.0f} billion parameters, {d / 1e12:.1f} trillion tokens: {d / n:.0f} per parameter"
)
assert d / n > 80

# %% [markdown]
# That is not Chinchilla. This law is one of the paper's three ways to read its runs; they gave 40 to 70 billion parameters, and the paper took the upper end. Besiroglu et al. 2024 noticed that the printed exponents are rounded. They also read 240 of the losses off the paper's figure: the printed law does not fit them. What do the exponents recommend before the rounding, and what does the new fit?

# %%
laws = {  # quoted by Besiroglu et al. 2024, and fitted by them
    "before the rounding": {"a": 406.4, "b": 410.7, "alpha": 0.3392, "beta": 0.2849},
    "fitted again": {"a": 482.01, "b": 2085.43, "alpha": 0.3478, "beta": 0.3658},
}
best = {name: compute_optimal(5.76e23, **law) for name, law in laws.items()}
for name, (n, d) in best.items():
    print(f"{name}: {n / 1e9:.0f} billion parameters, {d / n:.0f} tokens per parameter")
assert [round(d / n) for n, d in best.values()] == [59, 18]

# %% tags=["hide-input"]
title = "One budget, two laws: the best sizes differ, but the loss is flat around them"
figure, ax = plots.axes(title, "parameters N", "predicted loss (nats)", size=(7, 3.8))
fits = {"printed": (1.69, printed_law), "fitted again": (1.8172, laws["fitted again"])}


def loss_at(n, name):
    least, law = fits[name]
    return least + law["a"] / n ** law["alpha"] + law["b"] / (5.76e23 / (6 * n)) ** law["beta"]


for name, colour in zip(fits, plots.COLOURS):
    n, _ = compute_optimal(5.76e23, **fits[name][1])
    many = torch.logspace(9.9, 11.9, 200)
    ax.semilogx(many, loss_at(many, name), color=colour)
    ax.plot(n, loss_at(n, name), "o", color=colour, markersize=7)
    label = f"{name}: {n / 1e9:.0f} B"
    halo = {"facecolor": plots.CARD, "edgecolor": "none", "pad": 1}
    ax.text(n, loss_at(n, name) - 0.016, label, color=colour, ha="center", bbox=halo)
    assert loss_at(70e9, name) - loss_at(n, name) < 0.01 < loss_at(280e9, name) - loss_at(n, name)
for name, n in (("Chinchilla", 70e9), ("Gopher", 280e9)):
    ax.axvline(n, color="0.6", linestyle=":", linewidth=1)
    ax.text(n * 1.03, 2.055, name, color="0.4", size="small")
ax.set(xlim=(8e9, 8e11), ylim=(1.9, 2.07))
plots.show(
    figure,
    "Predicted loss against parameters for a budget of 5.76e23 operations, by two laws. The "
    "printed one is least at 32 billion parameters, 1.93 nats; the one fitted again at 72 "
    "billion, 1.97. At Chinchilla's 70 billion both are less than 0.01 above their least; at "
    "Gopher's 280 billion the printed one is 0.05 above, the new fit 0.02.",
)

# %% [markdown]
# Rounding two exponents to two digits turns 59 tokens into 93; fitting the law again gives 18. Before you use a scaling law, ask how well its exponents are known. But the valleys are flat: by either law, Chinchilla is less than 0.01 nats above the best size, and Gopher 0.02 to 0.05.

# %% [markdown]
# ## More parameters, little more work: a mixture of experts (optional)
#
# More parameters help, and each of them costs six operations for every token. Does it have to? A **mixture of experts** has several feed-forward networks, and sends each token to a few of them. A small matrix, the **router**, scores the experts; the $k$ best are used, weighted by $\mathrm{softmax}_k$, the softmax over these $k$ scores alone (Shazeer et al. 2017):
#
# $$y = \sum_{e\, \in\, \mathrm{top}_k(xW)} \mathrm{softmax}_k(xW)_e \; \mathrm{FFN}_e(x) \qquad \underset{d_{model} \times experts}{W}$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
token = diagram.box("token $x$", (0, 2.4), "stream", size=(2.0, 0.7))
router = diagram.box("router: $x W$, top 2", (4.9, 2.4), "weights", size=(3.2, 0.7))
total = diagram.box("sum $y$", (10.9, 2.4), "stream", size=(1.8, 0.7))
diagram.arrow(token, router, role="stream")
shares = {1: "0.7", 2: "0.3"}
for i, height in enumerate((4.8, 3.6, 1.2, 0)):
    role = "network" if i in shares else "plain"
    expert = diagram.box(f"expert {i}", (4.9, height), role, size=(2.4, 0.7))
    if i in shares:
        weight = diagram.box(f"× {shares[i]}", (8.0, height), "weights", size=(1.2, 0.7))
        diagram.arrow(token, expert, via=[(2.3, 2.4), (2.3, height)], role="stream")
        diagram.arrow(expert, weight, role="stream")
        diagram.arrow(router, weight, via=[(8.0, 2.4)], role="weights")
        diagram.arrow(weight, total, via=[(9.3, height), (9.3, 2.4)], role="stream")
diagram.show(
    "A token x goes to the router, which scores four experts and chooses the best two: expert 1 "
    "with weight 0.7 and expert 2 with weight 0.3. The token goes through these two feed-forward "
    "networks only. Their results, times the router's weights, are added to y. Experts 0 and 3 do "
    "not see the token.",
)

# %%
# exercise: mixture/route

# %%
check("mixture/route", route)

# %%
route = mine("mixture/route")

# %%
# exercise: mixture/layer

# %%
check("mixture/layer", Mixture)

# %%
Mixture = mine("mixture/layer")

# %% [markdown]
# **A layer with $d_{model} = 512$, $d_{ff} = 2048$, 8 experts and $k = 2$: how many times the parameters of one such feed-forward network does it have, and how many times the operations?**

# %%
guess = None  # (parameters, operations)

# %%
one, eight = 2 * 512 * 2048, Mixture(512, 2048, experts=8, k=2)
many = sum(w.numel() for name, w in eight.named_parameters() if "experts" in name and w.dim() == 2)
x = torch.randn(64, 512)
with FlopCounterMode(display=False) as counter:
    eight(x)
work = counter.get_total_flops() / (2 * one * len(x))
reveal(guess, (many // one, round(work, 1)))
print(f"{many // one} times the parameters, {work:.3f} times the operations")
assert many == 8 * one and 2 < work < 2.01

# %% [markdown]
# Eight times the parameters at twice the operations, plus a little for the router. But nothing in the formula makes different tokens choose different experts. If one expert is a little better at first, it is chosen more often, learns more, and is chosen even more often. Fedus et al. 2022 add a small loss against this. With expert $e$'s share $f_e$ of all choices and its mean probability $\bar p_e$ in a softmax over all experts,
#
# $$L_{balance} = experts \cdot \sum_e f_e\, \bar p_e .$$
#
# It is 1 if all experts are used alike. The counts $f_e$ have no gradient, so the loss acts through $\bar p_e$.

# %%
# exercise: mixture/load_balance

# %%
check("mixture/load_balance", load_balance)

# %%
load_balance = mine("mixture/load_balance")

# %% [markdown]
# Put your mixture into the language model, in place of the feed-forward network, and keep $L_{balance}$ of each layer. Eight experts with 64 hidden units each, of which a token uses two, take the operations of one network with 128.

# %%
needs("shakespeare")

# %%
from functools import partial

from course_lib.encoder import EncoderBlock


class Measured(Mixture):
    def forward(self, x):
        chosen, _ = route(x, self.w, self.k)
        probabilities = softmax(x @ self.w).flatten(0, -2)
        self.chosen, self.balance = chosen, load_balance(probabilities, chosen.flatten(0, -2))
        return super().forward(x)


def eight_experts(d_model, d_ff):
    return Measured(d_model, d_ff, experts=8, k=2)


# %% [markdown]
# Train it twice for 300 steps: once for the next character alone, once with $0.01 \cdot L_{balance}$ added for each layer. **What share of the tokens will the busiest expert of the two layers get in each case? (Two of eight experts for each token: equal use gives 0.25.)**

# %%
guess = None  # two shares: (without, with the balance loss)

# %% tags=["training"]
learning, held_out = characters.split()
stretches = next(characters.batches(held_out, 64, 256, 0))


def next_character_loss(model, batch):
    return cross_entropy(model(batch[0]), batch[1])


def trained(feed_forward, d_ff, loss):
    with training.seeded(SEED):
        block = partial(EncoderBlock, feed_forward=feed_forward)
        model = LanguageModel(84, 2, 32, 4, d_ff, 64, block=block)
    batches = characters.batches(learning, 64, 32, SEED)
    training.train(model, batches, loss, steps=300, learning_rate=5e-3, seconds=30)
    return model


# %% tags=["training"]
def balanced_loss(model, batch):
    layers = [layer for layer in model.modules() if isinstance(layer, Measured)]
    return next_character_loss(model, batch) + 0.01 * sum(layer.balance for layer in layers)


models, busiest, losses = {}, {}, {}
for name, loss in (("without", next_character_loss), ("with", balanced_loss)):
    models[name] = trained(eight_experts, 64, loss)
    with torch.no_grad():
        losses[name] = next_character_loss(models[name], stretches).item()
    layers = [layer for layer in models[name].modules() if isinstance(layer, Measured)]
    counts = [torch.bincount(layer.chosen.flatten(), minlength=8) for layer in layers]
    busiest[name] = [2 * count / count.sum() for count in counts]

# %% tags=["training"]
largest = [round(max(share.max().item() for share in busiest[name]), 2) for name in busiest]
reveal(guess, tuple(largest))
claim = "without the balance loss, the busiest expert gets at least 0.1 more of the tokens"
training.expect(claim, largest[0] > largest[1] + 0.1, largest, *models.values())

# %% tags=["training", "hide-input"]
title = "The balance loss spreads the tokens over the experts"
figure, (first, second) = plots.panels(title, ["layer 1", "layer 2"], size=(8, 3))
for ax, layer in ((first, 0), (second, 1)):
    for place, (name, shares) in enumerate(busiest.items()):
        at = torch.arange(8) + (place - 0.5) * 0.4
        label = f"{name} balance loss"
        ax.bar(at, shares[layer], 0.4, color=plots.COLOURS[place], label=label)
    ax.axhline(0.25, color="0.4", linestyle="--", linewidth=1)
    ax.set(xlabel="expert", ylim=(0, 1), xticks=range(8))
first.set_ylabel("share of the tokens")
second.legend(frameon=False, fontsize="small", loc="upper left")
plots.show(
    figure,
    "Share of the tokens that use each of eight experts, in two layers, with and without the "
    f"balance loss. Without it the largest share is {largest[0]:.2f}, with it {largest[1]:.2f}. "
    "Equal use gives 0.25, the dashed line.",
)

# %% [markdown]
# Is the mixture better than one network with the same operations for each token?

# %% tags=["training"]
models["one network"] = trained(FeedForward, 128, next_character_loss)
with torch.no_grad():
    losses["one network"] = next_character_loss(models["one network"], stretches).item()
print(", ".join(f"{name}: {loss:.3f}" for name, loss in losses.items()))
claim = "with so few steps, four times the parameters change the loss by less than 0.1"
near = max(losses.values()) - min(losses.values()) < 0.1
training.expect(claim, near, {name: round(x, 3) for name, x in losses.items()}, *models.values())

# %% [markdown]
# There is no difference to see: after the same 300 steps, the three losses are less than 0.01 apart, with four times the feed-forward parameters. An expert has seen only a quarter of the tokens on average, and 300 steps are few. In the table of 2017 the mixture of experts was the best single model before the Transformer; only ensembles of several models were above it. Many of today's largest language models are mixtures (DeepSeek-AI 2024 reports 671 billion parameters, of which a token uses 37 billion), after trillions of tokens.

# %% [markdown]
# ## Long texts: the table of Liu et al. (optional)
#
# L1 and L2 show a second table: writing the first paragraphs of Wikipedia articles from the texts that these cite and from what a web search finds (Liu et al. 2018). Quoted; $L$ is the length of the input, ROUGE-L compares with the real article:
#
# | model | $L$ | test perplexity | ROUGE-L |
# |:-|-:|-:|-:|
# | seq2seq with attention | 500 | 5.05 | 12.7 |
# | encoder-decoder Transformer | 500 | 2.47 | 34.2 |
# | decoder alone | 4,000 | 2.22 | 33.6 |
# | decoder, memory-compressed attention | 11,000 | 2.05 | 36.2 |
# | the same, 128 experts | 11,000 | 1.93 | 37.9 |
# | the same, 256 experts | 7,500 | 1.90 | 38.8 |

# %% [markdown]
# Only two steps keep the length of the input: from the first row to the second, and from memory-compressed attention to 128 experts. All other steps change length and model, so the table does not say which helped (the paper's figure 3 has more). Two of its parts are yours to build: the mixture above, and memory-compressed attention in lesson 14. **From the first row to the second the perplexity falls from 5.05 to 2.47. How many bits per token is that?**

# %%
needs()

# %%
guess = None  # bits

# %%
bits = torch.log2(torch.tensor([5.04952, 2.46645]))
saved = (bits[0] - bits[1]).item()
reveal(guess, round(saved, 2))
print(f"{bits[0]:.2f} bits before, {bits[1]:.2f} bits after: {saved:.2f} saved")
assert 1.0 < saved < 1.1

# %% [markdown]
# ### The same question at small scale (optional)
#
# Here every model gets every length of input. Home Assistant is a program for smart homes (lesson 11 translates its texts). A document is all the text of one of its integrations, such as a brand of lamps: names of switches, messages, questions. **The task is to write the next text, from the 16, 64 or 256 tokens right before it.** Test texts come from held-out documents; no training document contains them.

# %%
long = results.load("documents")["figures"]
lengths = long["settings"]["lengths"]
learned, held_out = long["documents"]
print(f"{learned} documents with {long['texts']:,} texts to learn from, {held_out} held out:")
*before, text = long["example"]
print(" · ".join(before), "→", text)
assert lengths == [16, 64, 256] and held_out == 97

# %% [markdown]
# | model | what it is |
# |:-|:-|
# | GRU with attention | reads the input in both directions (lesson 02) |
# | encoder-decoder | the Transformer, two layers each |
# | decoder alone | two layers; input and text are one sequence, and it learns to predict both |
# | compressed attention | the same, the first layer local, the second compressed (lesson 14) |
# | compressed, with experts | and eight half-wide feed-forward networks in each layer, two for each token |
#
# All train for 1,000 steps of 16 texts, with three seeds. Each has the best of three learning rates, chosen with 16 tokens on texts of the learned documents.

# %% [markdown]
# Three more things to know. $d_{model}$ is 64. Local means 32 tokens back; compressed, one key and one value for three tokens. And every Transformer adds a linear map of the previous token's embedding to each token's embedding. So one layer can do what an **induction head** does: find what followed the same token earlier. (In lesson 07 that took two heads, one after the other.)

# %% [markdown]
# The cheap rival is **counting**. Half of each probability comes from a trigram model of the training documents (with backing off, as in lesson 10), half from what followed the last token earlier in the input. (Where that is nothing, the trigrams count alone.)
#
# **Which of the five models have a lower loss with 256 tokens than with 16, in all three seeds? And does the best of them beat counting?**

# %%
guess = None  # (a list of names, True or False)


# %%
def losses(name, length, read=None):
    """Return each seed's loss; a model may read less than it was trained with."""
    rows = [row for row in long["rows"] if (row["name"], row["length"]) == (name, length)]
    return [row["cut"][str(read or length)] for row in rows]


def mean(numbers):
    return sum(numbers) / len(numbers)


names = list(long["operations"])
better = [name for name in names if max(losses(name, 256)) < min(losses(name, 16))]
best = min(mean(losses(name, 256)) for name in names)
reveal(guess, (better, best < long["counting"]["256"]))

# %% tags=["hide-input"]
title = "Of the five, the decoders alone gain from longer inputs; counting stays ahead"
xlabel, ylabel = "tokens of the input, in training and in the test", "loss, nats per token"
figure, ax = plots.axes(title, xlabel, ylabel, size=(7.4, 4.2))
ax.semilogx(lengths, long["counting"].values(), "--", color="0.4", linewidth=1.5)
ax.text(285, long["counting"]["256"], "counting", color="0.4", va="center")
heights = {}
for name, colour in zip(names, plots.COLOURS):
    ax.plot(lengths, [mean(losses(name, n)) for n in lengths], color=colour, linewidth=1.5)
    for n in lengths:
        ax.plot([n] * 3, losses(name, n), "o", color=colour, markersize=3.5)
    ax.text(285, mean(losses(name, 256)), name, color=colour, va="center")
ax.set_xticks(lengths, lengths)
ax.minorticks_off()
ax.set_xlim(13, 1600)
ends = (f"{name} {mean(losses(name, 16)):.2f} and {mean(losses(name, 256)):.2f}" for name in names)
plots.show(
    figure,
    f"Loss against the tokens of the input, 16, 64 and 256. At 16 and at 256: {'; '.join(ends)}; "
    f"counting {long['counting']['16']:.2f} and {long['counting']['256']:.2f}.",
)

# %% [markdown]
# The three decoders gain; the other two do not. But do the decoders *read* further? Cut the input of a model that was trained with 256 tokens:

# %%
for name in names:
    read = ", ".join(f"{n}: {mean(losses(name, 256, n)):.2f}" for n in lengths)
    print(f"{name:22} trained with 256 tokens, reads {read}; ", end="")
    print(f"trained with 16: {mean(losses(name, 16)):.2f}")
work = {n: long["operations"]["decoder alone"][str(n)] / 1e9 for n in lengths}
print("decoder alone, billions of operations a step:", {n: round(x, 2) for n, x in work.items()})

# %% tags=["hide-input"]
assert better == ["decoder alone", "compressed attention", "compressed, with experts"]
alone = mean(losses("decoder alone", 256))
further = mean(losses("decoder alone", 256, 16)) - alone
trained_more = mean(losses("decoder alone", 16)) - mean(losses("decoder alone", 256, 16))
assert 0.2 < further < 0.3 < 0.4 < trained_more < 0.6
assert alone > long["counting"]["256"] + 0.5
cuts = [[mean(losses(name, 256, n)) for n in lengths] for name in better[1:]]
assert all(by_16 - whole < 0.1 and by_64 - whole < 0.01 for by_16, by_64, whole in cuts)
assert all(max(losses(names[0], n)) < min(losses(names[1], n)) for n in lengths)
assert 9.3 < work[256] / work[16] < 9.9 and long["texts"] > 16_000

# %% [markdown]
# So the decoder's gain has two parts. Cut to 16 tokens, it loses a quarter of a nat: that is what reading further is worth, at most, since it never trained on inputs so short. Half a nat is *training* with 256 tokens, at nearly ten times the operations. A decoder also learns to predict its input, and a longer input is more text to learn from; that may be the reason, and no run here tests it.

# %% [markdown]
# The two compressed decoders lose less than 0.1 when cut to 16, and nothing when cut to 64. The table of 2018 cannot tell these parts from each other.

# %% [markdown]
# Nor do the two steps at equal length repeat here. The GRU beats the encoder-decoder, and experts make the loss higher. Our trainings are a thousand small steps, less than one pass over the texts, and counting has read them all. It is ahead of all five even with 16 tokens. Reading 256 earns it 0.38 more, by copying alone, like *Energy use* in the example above. So what a longer input is worth depends on whether the model has learned to use it.

# %% [markdown]
# ## Pretraining: masked language modeling
#
# L1 and L2 end with a third table, the leaderboard of **GLUE**, nine tasks on English sentences. All six models at its top (90.3 to 90.8 points, quoted) are Transformers, and all are **pretrained**: trained first on plain text without labels, then **fine-tuned** on each task. GPT predicts the next token. BERT (Devlin et al. 2019) is a **masked language model**: some tokens are hidden, and it predicts them. It needs no causal mask, so each hidden state can use the context on both sides (**bidirectional**).

# %% [markdown]
# Choose 15% of the tokens, and ask for these. If all of them became the token [MASK], the model would only ever read texts with masks, and the texts of its tasks have none. So, of the chosen tokens,
#
# | share | the model reads | its target |
# |-:|:-|:-|
# | 80% | [MASK] | the token |
# | 10% | a random token | the token |
# | 10% | the token itself | the token |
#
# and for all other tokens there is no target: torch's cross-entropy ignores $-100$.

# %%
# exercise: pretraining/mask_tokens

# %%
check("pretraining/mask_tokens", mask_tokens)

# %%
mask_tokens = mine("pretraining/mask_tokens")

# %% [markdown]
# Here it is on a line of Shakespeare, by the character; a box is the mask. **Of 1,000 characters, with a share of 0.15, how many does the model read wrong or hidden, on average?**

# %%
needs("shakespeare")

# %%
guess = None  # how many are wrong or hidden

# %% tags=["nbval-check-output"]
line = "Shall I compare thee to a summer's day?"
inputs, targets = mask_tokens(characters.encode(line), 0.15, 84, 84, (), seed=1)
symbols = [*characters.vocab(), "▢"]
print("".join(symbols[i] for i in inputs))
print("".join("^" if t != -100 else " " for t in targets))
text = characters.split()[0][:100_000]
inputs, targets = mask_tokens(text, 0.15, 84, 84, (), seed=0)
wrong = (inputs != text).float().mean().item()
reveal(guess, round(1000 * wrong))
print(f"asked: {(targets != -100).float().mean():.3f}, changed: {wrong:.3f}")

# %% [markdown]
# 15% are asked for, and a little over 13% are changed: 0.15 × 0.9, and a random character is sometimes the right one. So a masked model learns from 15 tokens of 100, where a language model learns from every one. That is the price of reading both sides. What does it buy? MiniLM of lesson 09, which finds sentences by their meaning, learned to imitate such a model. But a masked model is not made to write: at the end of a text there is no right side to read.

# %% [markdown]
# ## Pretraining at small scale (optional)
#
# What does pretraining buy, and which kind? In 2018 GLUE said this (Devlin et al. 2019, table 1, quoted; the mean leaves one of the nine tasks out):
#
# | model | has read | predicts | GLUE |
# |:-|:-|:-|-:|
# | two-way LSTMs, attention, ELMo's vectors | news | next and previous token | 71.0 |
# | OpenAI GPT | books | next token | 75.1 |
# | BERT, base | books, Wikipedia | masked tokens, next sentence | 79.6 |
# | BERT, large | the same | the same | 82.1 |
#
# GPT and BERT base are "nearly identical in terms of model architecture apart from the attention masking". But BERT also read four times as much and learned to tell whether one sentence follows another, so the table does not say what the masks are worth.

# %% [markdown]
# So we read the same text twice. Two models of 0.5 million parameters each read 28 plays of Shakespeare for 1,500 steps, one with masked words, its **twin** with next words under a causal mask. Then they learn four tasks, from 500 labels each. The tests are from nine other plays, which neither has read:
#
# | task | the model reads | it answers |
# |:-|:-|:-|
# | order | 12 words of a speech | in the play's order, or shuffled? |
# | answer | the end of a speech, the beginning of another one | does the second follow the first? |
# | verse | 24 words, without line breaks | from verse or prose? |
# | genre | 48 words | comedy, history or tragedy? |

# %% [markdown]
# The labels: line breaks tell verse from prose, and the First Folio's catalogue names the genre. A **tuned** model trains all its parameters for 160 steps, whether it has read before or not ("nothing" has not, and sees both sides; "nothing, causal" the left one). A **frozen** one keeps its parameters: only a linear head is fitted to the mean of its states. The same is done with counts of words and with MiniLM's vectors (it has read the web, perhaps with these plays).

# %% [markdown]
# **On which tasks does the better tuned twin beat the model that has read nothing by more than 10 points? On which does MiniLM beat both tuned twins?**

# %%
needs()

# %%
guess = None  # two lists of tasks

# %%
read_first = results.load("pretraining")
shares = read_first["figures"]["shares"]  # way -> task -> the share right, for each seed
seeds = f"{len(read_first['seeds'])} of 3 seeds measured"
figures, settings = read_first["figures"], read_first["figures"]["settings"]
print(f"{figures['parameters']:,} parameters, {settings['reading']['steps']:,} steps of reading,")
print(f"{figures['words_read']:,} words to read, {settings['labels']} labels for each task")


def mean_share(way, task):
    """Return the mean share of right answers over the seeds."""
    return sum(shares[way][task]) / len(shares[way][task])


# %% tags=["nbval-check-output"]
tasks = list(read_first["figures"]["majority"])
best = {x: max(mean_share("masked, tuned", x), mean_share("next, tuned", x)) for x in tasks}
helped = [x for x in tasks if best[x] > mean_share("nothing, tuned", x) + 0.1]
beaten = [x for x in tasks if mean_share("MiniLM, frozen", x) > best[x]]
reveal(guess, (helped, beaten))
print(f"{seeds}; share right  {'  '.join(f'{x:>6}' for x in tasks)}")
for way in shares:
    print(f"{way:36}", "  ".join(f"{mean_share(way, x):6.1%}" for x in tasks))

# %% tags=["hide-input"]
title = "Reading plays teaches the order of words, not which speech answers another"
figure, panels = plots.panels(title, tasks, size=(8, 3.4))
ways = {  # the way, its name, its colour
    "counts, frozen": ("counts of words", "0.45"),
    "nothing, left side, tuned": ("nothing, causal", "0.45"),
    "nothing, tuned": ("nothing", "0.45"),
    "next, frozen": ("next words, frozen", plots.COLOURS[1]),
    "next, tuned": ("next words, tuned", plots.COLOURS[1]),
    "masked, frozen": ("masked words, frozen", plots.COLOURS[0]),
    "masked, tuned": ("masked words, tuned", plots.COLOURS[0]),
    "MiniLM, frozen": ("MiniLM, frozen", plots.COLOURS[2]),
}
for ax, task in zip(panels, tasks):
    chance = 100 * read_first["figures"]["majority"][task]
    ax.axvline(chance, color="0.5", linestyle=":", linewidth=1.2)
    for row, (way, (_, colour)) in enumerate(ways.items()):
        found = [100 * share for share in shares[way][task]]
        ax.plot([chance, sum(found) / len(found)], [row, row], color=colour, linewidth=1)
        ax.scatter(found, [row] * len(found), color=colour, s=22, zorder=3)
    ax.set(xlim=(30, 80), ylim=(-0.6, len(ways) - 0.4), xticks=(40, 60, 80))
    ax.set_yticks(range(len(ways)), [])
    ax.tick_params(axis="y", length=0)
panels[0].set_yticks(range(len(ways)), [label for label, _ in ways.values()])
for tick, (_, colour) in zip(panels[0].get_yticklabels(), ways.values()):
    tick.set_color(colour)
panels[0].text(50.8, -0.45, "chance", color="0.4", size=8)
figure.supxlabel("right answers on nine plays that ours have not read, %", size="small")
spoken = [
    f"{label}: " + ", ".join(f"{x} {mean_share(way, x):.0%}" for x in tasks)
    for way, (label, _) in ways.items()
]
plots.show(
    figure, f"Right answers in four tasks, {seeds}. {'; '.join(spoken)}. Chance: 50%, genre 33%."
)

# %%
reading = read_first["figures"]["reading"]
for way, runs in reading.items():
    spent = ", ".join(f"{run['cpu_seconds']:.0f}" for run in runs)
    print(f"{way:6} words: {spent} CPU-seconds of reading")
slowest = max(run["cpu_seconds"] for run in reading["masked"])
assert slowest < min(run["cpu_seconds"] for run in reading["next"]) / 2
order, genre = ({way: by_task[x] for way, by_task in shares.items()} for x in ("order", "genre"))
assert min(order["masked, tuned"]) > max(order["nothing, tuned"]) + 0.1
assert min(order["masked, tuned"]) > max(order["next, tuned"] + order["MiniLM, frozen"]) + 0.03
ours = [share for way in ways if "MiniLM" not in way for share in shares[way]["answer"]]
assert max(abs(share - 0.5) for share in ours) < 0.05
assert max(genre["masked, tuned"]) < max(genre["counts, frozen"]) + 0.05

# %% tags=["hide-input"]
TWINS = {"masked, tuned": "nothing, tuned", "next, tuned": "nothing, left side, tuned"}
for task in ("verse", "genre"):
    gains = [mean_share(way, task) - mean_share(before, task) for way, before in TWINS.items()]
    assert min(gains) > 0.01 and max(gains) < 0.05, "one to five points"
    assert best[task] < mean_share("counts, frozen", task) + 0.03
    first, second = (shares[way][task] for way in TWINS)
    assert {a > b for a, b in zip(first, second)} == {True, False}, "neither is ahead in all seeds"
assert min(genre["MiniLM, frozen"]) > max(genre["counts, frozen"]) + 0.02

# %% [markdown]
# Without reading, 500 labels and 160 steps do not teach **order**: the model is at chance. After 28 plays the masked model is right in 69% of the tests, its twin in 60%, and frozen they are as good (70% and 59%): what the task needs is in the states before the first label comes. MiniLM, which has read so much more, has 61%. It was trained to give sentences with similar meanings similar vectors; for that the order of words may matter little.

# %% [markdown]
# In **verse** and **genre** the tuned twins gain 1 to 5 points over the same model without reading. Counts of words come within 3 points of them, so we do not call this a gain from reading. Whether a speech **answers** another one, none of our models can say: reading 28 plays did not help. MiniLM can, a little (55%), and leads in genre (51%). So pretraining helps where the reading has taught what the task asks for. Ours taught which words are neighbours. What a speech is about seems to take more reading.

# %% [markdown]
# As in GLUE, the masked twin is ahead on order, although it was asked for 15% of the words. Its states see both sides, which may be why. Its reading also took less than half of the processor's time, probably because only masked words are scored. But on verse and genre neither twin is ahead in every seed, and all this is one small size and one edition: it shows what the experiment looks like, not what holds for larger models.

# %% [markdown]
# ## Break it
#
# - Give `Mixture` $k = 1$. The softmax over one score is 1, whatever the score. Does the router's matrix still get a gradient from `next_character_loss`? And from the balance loss?
# - Look up the layers and the width of another model. Is its printed size within 3% of `estimate_parameters`? If not, which of its matrices does the formula not know?
# - Let `mask_tokens` mask all chosen tokens, always. What would a model trained like that have never seen when it reads a sentence of GLUE?

# %% [markdown]
# ## What to remember
#
# A Transformer's size follows from its layers, its width and its vocabulary, and the operations of its training from its size and its tokens. Its loss falls nearly as a power law, so small models predict a larger one. A budget has a best size, in a flat valley. A mixture of experts multiplies the parameters by the number of experts, and the work by $k$ alone; in our 300 steps that did not lower the loss. A masked model reads both sides at the price of learning from fewer tokens.
#
# | | |
# |:-|:-|
# | parameters | $N = 2\,d_{model}\,n_{layer}\,(2\,d_{attn} + d_{ff})$; $12\,n_{layer}\,d^2$ for $d_{attn} = d$, $d_{ff} = 4d$ |
# | training operations | $C = 3\,(2N + 2\,n_{layer}\,n_{ctx}\,d_{attn})\,D \approx 6ND$ |
# | power law | $L = c\,N^{-\alpha}$, a straight line between logarithms |
# | best size | $\alpha a N^{-\alpha} = \beta b D^{-\beta}$, with $6ND = C$ |
# | mixture of experts | $y = \sum_{e \in \mathrm{top}_k} \mathrm{softmax}_k(xW)_e\, \mathrm{FFN}_e(x)$ |
# | balance loss | $experts \cdot \sum_e f_e\, \bar p_e$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A model has d = 1,024, 24 layers and d_ff = 4,096. About how many parameters do its blocks have?</summary>
#
# 12 · 24 · 1,024² = 302 million.
# </details>
#
# <details><summary>2. A training takes 10²¹ operations. How long does it take on a processor with 10¹⁴ FLOP/s?</summary>
#
# At best 10⁷ seconds, 116 days; longer if the processor waits for memory part of the time.
# </details>
#
# <details><summary>3. Loss and size follow L = 5 N^(−0.1). How many times larger must a model be to halve its loss?</summary>
#
# 2^(1/0.1) = 2¹⁰ = 1,024 times.
# </details>
#
# <details><summary>4. α = β. Twice the budget: how many times as large should the model be?</summary>
#
# √2 times, and it should read √2 times as many tokens.
# </details>
#
# <details><summary>5. A mixture has 64 experts, of which each token uses 2. Why may it need more memory than one network, although it does little more work?</summary>
#
# All 64 experts must be in memory, since any token may choose any of them.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Everything so far attended to every pair of tokens. Lesson 13 asks what happens to the cost when a text has fifty thousand of them.
#
# Vaswani et al. 2017 (table 2, section 6.1); Kaplan et al. 2020, Hoffmann et al. 2022 and Besiroglu et al. 2024 (scaling laws); Brown et al. 2020 (GPT-3); Shazeer et al. 2017 and Fedus et al. 2022 (mixtures of experts); DeepSeek-AI 2024; Liu et al. 2018; Devlin et al. 2019 (BERT). Lectures: L1, L2 and L3.
