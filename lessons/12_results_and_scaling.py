# %% [markdown]
# # 12 · Results and scaling
#
# **75 minutes · after lesson 11 · needs Shakespeare's works (5 MB)**
#
# The big Transformer of 2017 beat every earlier translator; into German the base one did, at 35 % of their cost at most. Today's have ten thousand times its parameters. **What did the Transformer win, what does it cost, and what does more of everything buy?**
#
# At the end you can write the bill of any training before it starts: parameters, operations, memory and days. You can say how large a model a budget should train, and what a wrong size wastes.

# %%
import torch
from jaxtyping import Float
from torch import Tensor
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training
from course_lib.instruments.measuring import saved_bytes
from course_lib.language_model import LanguageModel

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
drawings.transformer(
    {
        "feed-forward",
        "self-attention",
        "masked self-attention",
        "cross-attention",
        "linear, softmax",
    },
    "The Transformer of 2017. Attention and feed-forward networks of both stacks and the output "
    "layer are highlighted: their matrices are what this lesson counts.",
)

# %%
from functools import partial
from itertools import pairwise
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode
from course_lib.data import characters, needs
from course_lib.transformer import EncoderBlock
from course_lib.multi_head import MultiHeadAttention

cross_entropy = mine("language_model/cross_entropy")

# %% [markdown]
# ## The table of 2017
#
# This is what made the Transformer famous: table 2 of the paper, as lectures L1, L2 and L3 show it. **BLEU** (lesson 11) scores translations, here from English to German. The second number is the cost of the training, as printed. (ByteNet has 23.75 BLEU and no cost; a second pair of columns is for French.)
#
# The best model before was an ensemble of ConvS2S. It has 23 times the cost of the base Transformer:

# %% tags=["hide-input"]
quoted = {  # Vaswani et al. 2017, table 2: BLEU from English to German, and training cost
    "GNMT + RL": (24.6, 2.3e19),
    "ConvS2S": (25.16, 9.6e18),
    "mixture of experts": (26.03, 2.0e19),
    "GNMT, ensemble": (26.30, 1.8e20),
    "ConvS2S, ensemble": (26.36, 7.7e19),
    "Transformer, base": (27.3, 3.3e18),
    "Transformer, big": (28.4, 2.3e19),
}

# %% tags=["hide-input"]
title = "Reported: the base Transformer is better than all before it, at the lowest cost"
figure, ax = plots.axes(
    title, "training cost, as printed (FLOPs)", "BLEU, English to German", size=(7, 3.6)
)
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
assert round(quoted["ConvS2S, ensemble"][1] / quoted["Transformer, base"][1]) == 23
plots.show(
    figure,
    "BLEU against the printed training cost, logarithmic, seven models of Vaswani et al. 2017, "
    "table 2. Transformer base: 27.3 at 3.3e18; big: 28.4 at 2.3e19. The five others have 24.6 to "
    "26.4 at 9.6e18 to 1.8e20.",
)

# %% [markdown]
# > **Where the lectures slip (D07).** L3 explains the FLOPs of this table as "Floating point operations per second". Per second is a *rate*, which a processor has (FLOP/s). A training costs a *number* of **floating-point operations** (FLOPs), the same on a slow machine and on a fast one.
#
# That is what the unit means. The table's numbers have a twist: nobody counted. Section 6.1 says that they are "the training time, the number of GPUs used, and an estimate of the sustained single-precision floating-point capacity of each GPU", multiplied.

# %%
base_cost = 12 * 3600 * 8 * 9.5e12  # 12 hours, 8 GPUs, 9.5e12 FLOP/s each (a footnote)
big_cost = 3.5 * 24 * 3600 * 8 * 9.5e12  # 3.5 days
print(f"base {base_cost:.1e}, big {big_cost:.1e}")
assert 3.2e18 < base_cost < 3.4e18 and 2.2e19 < big_cost < 2.35e19

# %% [markdown]
# So the table compares machine time at an assumed rate. How many operations did the Transformers really take? To find out, we count: first the parameters, then the operations for each of them.
#
# ## How large is a model?
#
# One block has four matrices of attention, and two of its feed-forward network:
#
# $$N = n_{layer}\,\big(\underbrace{4\, d_{model}\, d_{attn}}_{W_Q,\ W_K,\ W_V,\ W_O} + \underbrace{2\, d_{model}\, d_{ff}}_{W_1,\ W_2}\big) = 2\, d_{model}\, n_{layer}\,(2\, d_{attn} + d_{ff})$$
#
# $d_{attn}$ is the width of all heads' queries together. Biases, norms and embeddings are left out (Kaplan et al. 2020).

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
# Twelve needs $d_{attn} = d$ and $d_{ff} = 4d$, as in 2017 and in GPT-3. The paper of GPT-3 prints eight (Brown et al. 2020, table 2.1). We add the embedding, 50,257 tokens of $d$ numbers:

# %% tags=["hide-input"]
# as printed, though 40 heads of 128 make 5120, and 24 heads of 128 (1.3B) would make d_attn 3072
printed = {  # millions of parameters -> layers, d_model
    125: (12, 768), 350: (24, 1024), 760: (24, 1536), 1_300: (24, 2048),
    2_700: (32, 2560), 6_700: (32, 4096), 13_000: (40, 5140), 175_000: (96, 12288),
}  # fmt: skip
for size, (layers, d) in printed.items():
    ours = estimate_parameters(layers, d, d, 4 * d) + 50_257 * d
    print(f"{size:>7,} M printed, {ours / 1e6:9,.1f} M by the formula")
    assert abs(ours / 1e6 / size - 1) < 0.03, "within 3%"

# %% [markdown]
# Within 3% for each. Where a model shares keys among heads or has three matrices in its network, as SmolLM2 (lesson 09), you count those instead.
#
# ## How many operations is a training?
#
# In a forward pass every weight takes part in one **multiply-add** for each token: two operations. The backward pass computes two products of the same size, one for the gradient of the weight and one for the gradient of its input. So $D$ tokens take
#
# $$C = 3\,\big(\underbrace{2N}_{\text{matrices}} + \underbrace{2\, n_{layer}\, n_{ctx}\, d_{attn}}_{\text{scores, averages}}\big)\, D \;\approx\; 6\,N\,D$$

# %% [markdown]
# The second term: for each token and layer, scores take $n_{ctx}\, d_{attn}$ multiply-adds and averages as many again, $4\, n_{ctx}\, d_{attn}$ operations. Under a causal mask a token needs half of the context on average, which leaves 2.

# %%
# exercise: scaling/training_flops

# %%
check("scaling/training_flops", training_flops)

# %%
training_flops = mine("scaling/training_flops")

# %% [markdown]
# PyTorch can count the operations that a model really executes. Take lesson 10's language model with $d_{model} = 64$, two layers and a context of 64. **Which share of what torch counts does $6ND$ explain, if the output layer is counted in $N$?**

# %%
guess = None  # a share, such as 0.5

# %% tags=["nbval-check-output"]
model = LanguageModel(vocab=84, layers=2, d_model=64, heads=4, d_ff=256, max_length=64)
tokens = torch.randint(84, (8, 64))
with FlopCounterMode(display=False) as counter:
    cross_entropy(model(tokens), tokens).backward()
counted = counter.get_total_flops()
n, d = estimate_parameters(2, 64, 64, 256) + 84 * 64, tokens.numel()
shares = [training_flops(n, d, 2, k * 64, 64) / counted for k in (0, 1, 2)]
reveal(guess, round(shares[0], 2))
print("6 N D {:.3f}, with attention {:.3f}, with twice that {:.3f}".format(*shares))
assert shares[2] == 1

# %% [markdown]
# The rest is attention. With its term the formula is still short, because torch computes all scores and hides half of them; with twice the term it is exact. For $d_{ff} = 4d$ the term is $n_{ctx} / (12\, d_{model})$ of $6ND$: 1.4% for GPT-3, and as much as all matrices where the context is twelve times the width.
#
# Now we can recompute the table. A step had about 25,000 source and 25,000 target tokens; base took 100,000 steps, big 300,000 (section 5).

# %%
assert round(2048 / (12 * 12_288), 3) == 0.014
for name, d, steps, cost in (("base", 512, 1e5, base_cost), ("big", 1024, 3e5, big_cost)):
    # a source token passes the encoder, a target token the decoder and the output layer
    encoder = estimate_parameters(6, d, d, 4 * d)
    decoder = encoder + 6 * 4 * d * d + 37_000 * d
    ours = 6 * (encoder + decoder) * 25_000 * steps
    print(f"{name}: printed {cost:.1e}, 6 N D {ours:.1e}: {ours / cost:.2f} of it")
    assert round(ours / cost, 2) == {"base": 0.29, "big": 0.42}[name]

# %% [markdown]
# The base model took about three tenths of its printed number, the big one four tenths: what the GPUs *could* have done in that time was not what they did. Taken of the *peak* rate, such a share is called **model FLOPs utilization** (MFU). For the other five rows the paper names neither steps nor tokens, so $6ND$ stops here. Base against big, the order stays: big took ten times the operations, at seven times the printed cost.
#
# The same count, spent equally on six architectures, is an [exploration](explorations/12_small_table.ipynb): there a GRU with attention beats our small Transformer.

# %% [markdown]
# ## How much memory?
#
# Operations cost time. Memory decides whether a training starts at all. In 32 bits each number takes 4 bytes, and a weight needs four numbers: itself, its gradient, and **Adam**'s two averages, of the gradient and of its square (lesson 10). That is $16N$ bytes. On top come the **activations**, all that the backward pass will need of the forward pass:


# %%
def loss_of(model):
    return cross_entropy(model(tokens), tokens)


layers, d, heads, context, sequences, vocab = 4, 64, 8, 64, 16, 84
model = LanguageModel(vocab, layers, d, heads, 4 * d, context)
tokens = torch.randint(vocab, (sequences, context))
weights = [*model.parameters()]
activations = saved_bytes(partial(loss_of, model), weights)
loss_of(model).backward()
adam = torch.optim.AdamW(weights)
adam.step()

# %% tags=["hide-input", "nbval-check-output"]
averages = [x for state in adam.state.values() for x in state.values() if x.dim()]
numbers = sum(x.numel() for x in [*weights, *(w.grad for w in weights), *averages])
n = sum(w.numel() for w in weights)
print(f"{numbers / n:.0f} numbers for each weight, {4 * numbers / 1e6:.1f} MB in all")
print(f"{activations / 1e6:.1f} MB of activations")
assert numbers == 4 * n and 9 < activations / (4 * numbers) < 11

# %% [markdown]
# The activations take ten times as much. Which ones? For each token, a block keeps ten vectors of $d_{model}$ numbers and one of $d_{ff} = 4\,d_{model}$. In each head it keeps two rows of attention weights, each as long as the context. The model also keeps two rows of logits:
#
# $$\text{bytes} = 4\,\big(4N + \text{tokens} \cdot (n_{layer}\,(14\, d_{model} + 2\, heads \cdot n_{ctx}) + 2\, vocab)\big)$$
#
# A colleague has written this bill, but it comes to little more than half of what was counted. Find the line.

# %%
# exercise: scaling/mend_memory

# %%
check("scaling/mend_memory", training_memory)

# %%
training_memory = mine("scaling/mend_memory")

# %%
billed = training_memory(n, sequences, context, layers, d, heads, vocab)
print(f"billed {billed / (4 * numbers + activations):.3f} of what was counted")
one_head = training_memory(n, sequences, context, layers, d, 1, vocab)  # the fault
assert billed < 4 * numbers + activations < 1.05 * billed and one_head < 0.6 * billed

# %% [markdown]
# Heads are what the fault forgot: they share the vectors, but each has its own weights over the context. **GPT-2 small has 12 layers, $d_{model} = 768$, 12 heads, 50,257 tokens and a context of 1,024. On 12 sequences at a time, what takes the most memory: weights with gradients and Adam, vectors, attention weights, or logits?**

# %%
guess = None  # one of the four

# %%
n = estimate_parameters(12, 768, 768, 4 * 768) + 50_257 * 768
read = 12 * 1024
bill = {
    "weights, gradients, Adam": 16 * n,
    "vectors": 4 * read * 12 * 14 * 768,
    "attention weights": 4 * read * 12 * 2 * 12 * 1024,
    "logits": 4 * read * 2 * 50_257,
}
total = training_memory(n, 12, 1024, 12, 768, 12, 50_257)
reveal(guess, max(bill, key=bill.get))
assert sum(bill.values()) == total

# %% tags=["hide-input"]
title = "By the formula, more than half of GPT-2's memory is attention weights"
figure, ax = plots.axes(
    title, "gigabytes, 32 bits, 12 sequences of 1,024 tokens", "", size=(7, 2.4)
)
colours = (plots.COLOURS[3], plots.COLOURS[2], plots.COLOURS[0], "0.6")
for row, (size, colour) in enumerate(zip(bill.values(), colours)):
    ax.barh(-row, size / 1e9, color=colour, height=0.7)
    ax.text(size / 1e9 + 0.2, -row, f"{size / 1e9:.1f}", va="center", size="small")
ax.set_yticks([0, -1, -2, -3], bill)
ax.set(xlim=(0, 17))
assert 2 * bill["attention weights"] > total
plots.show(
    figure,
    "Memory of a training step of GPT-2 small in 32 bits, by the formula: "
    + ", ".join(f"{name} {size / 1e9:.1f} gigabytes" for name, size in bill.items())
    + ".",
)

# %% [markdown]
# So the first thing to save is those rows. Two ways are in daily use: a compiled kernel that keeps no weights (lesson 13 builds it), and **checkpointing**, which keeps each block's input alone and computes the block again in the backward pass. On the small model above:


# %% tags=["hide-input"]
class Checkpointed(EncoderBlock):
    def forward(self, x, mask):
        return checkpoint(super().forward, x, mask, use_reentrant=False)


def kernel(q, k, v, mask):
    return scaled_dot_product_attention(q, k, v, is_causal=True)


compiled = partial(EncoderBlock, attention=partial(MultiHeadAttention, rule=kernel))
sizes = {}
for name, block in (("plain", EncoderBlock), ("kernel", compiled), ("checkpoint", Checkpointed)):
    model = LanguageModel(84, 4, 64, 8, 256, 64, block=block)
    sizes[name] = saved_bytes(partial(loss_of, model), [*model.parameters()])
    print(f"{name:10} {sizes[name] / 1e6:5.1f} MB of activations")
assert sizes["kernel"] < sizes["plain"] / 2 and sizes["checkpoint"] < sizes["plain"] / 10

# %% [markdown]
# These are the activations *between* the passes. In the backward pass a checkpointed block is there once more, whole. So look at the **peak**, the most that both passes hold at a time (besides weights and gradients), with 4 layers and with 12:

# %% tags=["hide-input"]
from course_lib.instruments.measuring import peak_bytes


def peak(block, layers):
    model = LanguageModel(84, layers, 64, 8, 256, 64, block=block)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    return peak_bytes(lambda: loss_of(model).backward()) / 1e6


peaks = {}
for name, block in (("plain", EncoderBlock), ("kernel", compiled), ("checkpoint", Checkpointed)):
    peaks[name] = [peak(block, layers) for layers in (4, 12)]
    print(f"{name:10} {peaks[name][0]:5.1f} MB with 4 layers, {peaks[name][1]:5.1f} MB with 12")
assert 0.8 < peaks["checkpoint"][0] / peaks["kernel"][0] < 1
assert peaks["checkpoint"][1] < peaks["kernel"][1] / 2

# %% [markdown]
# So with 4 layers checkpointing saves hardly more than the kernel; with 12 its peak is less than half of the kernel's. Its price is a second forward pass: $8ND$ operations for $6ND$. Now the whole bill in one function. Tokens are as reported (nanoGPT's settings, Allal et al. 2025, Brown et al. 2020); the rate is 40% of an A100's $312 \cdot 10^{12}$ FLOP/s.


# %% tags=["hide-input"]
def bill_of(name, parameters, tokens, context, **shape):
    flops = training_flops(parameters, tokens, shape["layers"], context, shape["d_model"])
    one, two = (training_memory(parameters, k, context, **shape) / 1e9 for k in (1, 2))
    days = flops / (0.4 * 312e12) / 86_400
    print(
        f"{name:8} {parameters:8.2e} parameters, {tokens:7.1e} tokens, {flops:7.1e} FLOPs,", end=""
    )
    print(f" {days:10,.0f} GPU-days; {2 * one - two:7.1f} GB + {two - one:5.1f} GB a sequence")


gpt2 = {"layers": 12, "d_model": 768, "heads": 12, "vocab": 50_257}
smollm2 = {"layers": 30, "d_model": 576, "heads": 9, "vocab": 49_152}
gpt3 = {"layers": 96, "d_model": 12_288, "heads": 96, "vocab": 50_257}

# %%
bill_of("GPT-2", n, 600_000 * 480 * 1024, 1024, **gpt2)
bill_of("SmolLM2", 134_515_008, 2e12, 2048, **smollm2)
bill_of("GPT-3", 174_600_000_000, 3e11, 2048, **gpt3)

# %% [markdown]
# A GPU of 80 GB holds the first two, with a few sequences, and less than a thirtieth of GPT-3's $16N$ bytes. (In the usual mix of 16 and 32 bits a weight still needs 16 bytes, and activations half. SmolLM2's blocks are built otherwise, so its activations are an estimate.)
#
# Does the bill agree with a real training? nanoGPT's README says that GPT-2's takes "about 4 days" on eight A100.

# %% tags=["hide-input"]
could = 8 * 4 * 86_400 * 312e12
half, every = (training_flops(n, 600_000 * 480 * 1024, 12, k * 1024, 768) for k in (1, 2))
print(f"MFU {half / could:.2f}; {every / could:.2f} if hidden scores count as work")
assert (round(half / could, 2), round(every / could, 2)) == (0.27, 0.29)

# %% [markdown]
# If four days are right, its eight GPUs reached 0.27 or 0.29 of their peak. PaLM counts all scores, and reported 0.46 (Chowdhery et al. 2022) for a larger model on other chips. So here our bill, at 40%, is right to a factor of 1.5.
#
# ## What does more buy?
#
# A budget $C$ trains a small model for long, or a large one briefly. Hoffmann et al. 2022 fixed $C$ and varied the size: an **IsoFLOP curve**. We do so with lesson 10's model on Shakespeare's characters, two layers, context 64. Three sizes at $3 \cdot 10^{10}$ operations:

# %%
needs("shakespeare")

# %% tags=["hide-input"]
kept = results.load("scaling")["figures"]
rates = {(row["flops"], row["d"]): row["rate"] for row in kept["rows"]}

# %% tags=["training", "hide-input"]
learning, held_out = characters.split()
some = next(characters.batches(held_out, 64, 1024, 0))


def next_loss(model, batch):
    return cross_entropy(model(batch[0]), batch[1])


def trained(budget, d, heads):
    n = estimate_parameters(2, d, d, 4 * d) + 84 * d
    with training.seeded(SEED):
        model = LanguageModel(84, 2, d, heads, 4 * d, 64)
    steps = round(budget / training_flops(n, 16 * 64, 2, 64, d))
    batches, rate = characters.batches(learning, 64, 16, SEED), rates[budget, d]
    training.train(model, batches, next_loss, steps=steps, learning_rate=rate, seconds=30)
    return model


# %% tags=["training"]
models = {d: trained(3e10, d, heads=d // 8) for d in (8, 16, 32)}
found = {}
for d, model in models.items():
    with torch.no_grad():
        found[d] = next_loss(model, some).item()
    print(f"d_model {d:2}: {model.history.steps:5,} steps, {found[d]:.3f} nats")
holds = found[16] < min(found[8], found[32])
training.expect("the middle size is best", holds, found, *models.values())

# %% [markdown]
# The small model has read ten times as much as the large one, and the middle one wins. Now five sizes at three budgets, each four times the one before. The learning rate of every point comes from a search of its own, by halving and doubling, with one seed; the widest models want the lowest. (Of two rates within 0.005 nats, the lower. One run of the smallest budget still came out badly.) Each point has three seeds. A parabola gives the minimum:


# %% tags=["hide-input"]
def minimum(points):
    """Return (N, loss) at the least point of the parabola over log N."""
    x, y = torch.tensor([(row["parameters"], row["loss"]) for row in points]).double().T
    x = x.log()
    powers = torch.stack([x**0, x, x**2], dim=1)
    least, slope, bend = torch.linalg.lstsq(powers, y.unsqueeze(1)).solution.flatten()
    best = -slope / (2 * bend)
    return best.exp().item(), (least + slope * best / 2).item()


budgets = sorted({row["flops"] for row in kept["rows"]})
curves = {c: [row for row in kept["rows"] if row["flops"] == c] for c in budgets}
minima = {c: minimum(points) for c, points in curves.items()}
for c, (n, loss) in minima.items():
    print(f"{c:.1e} FLOPs: best N {n:8,.0f}, loss {loss:.3f}")
    assert rates[c, max(d for x, d in rates if x == c)] == min(
        r for (x, _), r in rates.items() if x == c
    )

# %% tags=["hide-input"]
title = "At each budget a middle size is best, and it grows with the budget"
figure, ax = plots.axes(title, "parameters N", "held-out loss (nats)", size=(7, 4.2))
for c, colour in zip(budgets, plots.COLOURS):
    n = [row["parameters"] for row in curves[c]]
    ax.semilogx(n, [row["loss"] for row in curves[c]], "o", color=colour, markersize=3.5)
    x = torch.tensor(n).double().log()
    y = torch.tensor([row["loss"] for row in curves[c]]).double()
    powers = torch.stack([x**0, x, x**2], dim=1)
    solution_ = torch.linalg.lstsq(powers, y.unsqueeze(1)).solution
    grid = torch.linspace(x.min(), x.max(), 50).double()
    curve = torch.stack([grid**0, grid, grid**2], dim=1) @ solution_
    ax.plot(grid.exp(), curve.flatten(), color=colour, linewidth=1.2)
    ax.plot(*minima[c], "*", color=colour, markersize=13)
    power = f"{c:.1e}".replace("e+", " × $10^{") + "}$ FLOPs"
    ax.text(max(n) * 1.08, curve[-1].item(), power, color=colour, va="center", size="small")
ax.axhline(kept["pairs"], color="0.5", linestyle=":", linewidth=1)
ax.text(1.1e5, kept["pairs"], "a table of\nletter pairs", color="0.4", size="small", va="center")
ax.set(xlim=(1900, 330_000))
ends = (
    f"{c:.1e}: least {minima[c][1]:.2f} at N = {minima[c][0]:,.0f}, "
    f"{max(row['loss'] for row in curves[c]):.2f} at the worst end"
    for c in budgets
)
plots.show(
    figure,
    "Held-out loss against parameters, logarithmic, three budgets of operations with five sizes "
    f"each, and a parabola through each. {'; '.join(ends)}. A table of letter "
    f"pairs has {kept['pairs']:.2f}.",
)

# %% [markdown]
# The best size rises, the loss falls. Kaplan et al. 2020 describe such curves by **power laws**, straight lines between logarithms:
#
# $$y = c\, x^{-\alpha} \quad\Longleftrightarrow\quad \log y = \log c - \alpha \log x$$
#
# The least-squares line through $(u_i, v_i) = (\log x_i, \log y_i)$ has
#
# $$-\alpha = \frac{\sum_i (u_i - \bar u)(v_i - \bar v)}{\sum_i (u_i - \bar u)^2}, \qquad \log c = \bar v + \alpha\, \bar u$$

# %%
# exercise: scaling/fit_power_law

# %%
check("scaling/fit_power_law", fit_power_law)

# %%
fit_power_law = mine("scaling/fit_power_law")

# %% [markdown]
# The next budget is four times the largest, $1.92 \cdot 10^{12}$. No fit has seen it. The line gives the size that we should train, and a loss. **Will the real loss be higher or lower than on the line?** (A straight line has no floor: it promises a loss near 0 for a budget that is large enough.)

# %%
guess = None  # "higher" or "lower"

# %%
spent = torch.tensor(budgets)
sizes, losses = torch.tensor([minima[c] for c in budgets]).T
(g, k), (c, alpha) = fit_power_law(spent, sizes), fit_power_law(spent, losses)
larger = kept["larger"]
wanted, hoped = (g * 1.92e12**-k).item(), (c * 1.92e12**-alpha).item()
came = sum(row["loss"] for row in larger) / 3
reveal(guess, "higher" if came > hoped else "lower")
print(f"best N grows with C^{-k:.2f}: {wanted:,.0f}; trained {larger[0]['parameters']:,}")
assert [round(b / a, 2) for a, b in pairwise([*losses.tolist(), came])] == [0.87, 0.9, 0.93]
print(f"loss falls with C^-{alpha:.3f}: predicted {hoped:.3f}, came {came:.3f}")
gained = (minima[budgets[-1]][1] - came) / (minima[budgets[-1]][1] - hoped)
print(f"{gained:.0%} of the promised gain")
assert 0.53 < gained < 0.58 and 0.62 < -k < 0.66 and 0.85 < larger[0]["parameters"] / wanted < 0.88


# %% tags=["hide-input"]
def share_of_promise(seed):
    """Return the share of the promised gain that the models of one seed reached."""
    own = [minimum([row for row in curves[c] if row["seed"] == seed])[1] for c in budgets]
    scale, power = fit_power_law(spent, torch.tensor(own))
    [last] = [row["loss"] for row in larger if row["seed"] == seed]
    return (own[-1] - last) / (own[-1] - scale * 1.92e12**-power).item()


shares = [share_of_promise(seed) for seed in range(3)]
print("each seed by itself:", ", ".join(f"{share:.0%}" for share in shares))
assert [round(100 * share) for share in shares] == [58, 57, 50]
tried = [row["rate"] for row in kept["search"] if row["flops"] == 1.92e12]
assert min(tried) < larger[0]["rate"] < max(tried)

# %% [markdown]
# About half of the promised gain came (58, 57 and 50 % in the three seeds), with a model 13 % smaller than the line wants. From budget to budget the loss is multiplied by 0.87, 0.90 and 0.93: nearer and nearer to 1: a floor does that, be it the text's or that of two layers and 64 characters.

# %% [markdown]
# ## How large should a model be?
#
# Hoffmann et al. 2022 fit all of their runs by one law with a floor $E$, the loss that no model can remove:
#
# $$L(N, D) = E + \frac{a}{N^{\alpha}} + \frac{b}{D^{\beta}} \qquad \text{with} \qquad 6\,N D = C$$
#
# Put $D = C / (6N)$ into it and set the derivative with respect to $N$ to zero: $\alpha a N^{-\alpha} = \beta b D^{-\beta}$. So
#
# $$N^* = G \Big(\frac{C}{6}\Big)^{\frac{\beta}{\alpha + \beta}}, \qquad D^* = \frac{C}{6 N^*}, \qquad G = \Big(\frac{\alpha\, a}{\beta\, b}\Big)^{\frac{1}{\alpha + \beta}}$$

# %%
# exercise: scaling/compute_optimal

# %%
check("scaling/compute_optimal", compute_optimal)

# %%
compute_optimal = mine("scaling/compute_optimal")

# %% [markdown]
# The authors' laboratory had spent $5.76 \cdot 10^{23}$ operations on **Gopher**, 280 billion parameters with about one token each. For the same they trained **Chinchilla**, 70 billion with 20 tokens each, and it was better. What does the law as printed recommend (their eq. 10)? Besiroglu et al. 2024 noticed that its exponents are rounded, and fitted 240 losses again that they read off the paper's figure:

# %% tags=["nbval-check-output"]
laws = {  # (E, a, b, alpha, beta)
    "printed": (1.69, 406.4, 410.7, 0.34, 0.28),
    "before the rounding": (1.69, 406.4, 410.7, 0.3392, 0.2849),
    "fitted again": (1.8172, 482.01, 2085.43, 0.3478, 0.3658),
}
BUDGET = 5.76e23
for name, (_, *law) in laws.items():
    n, d = compute_optimal(BUDGET, *law)
    print(f"{name:20} {n / 1e9:3.0f} billion parameters, {d / n:3.0f} tokens each")

# %% tags=["hide-input"]
title = "The loss bends off the line; our best sizes are below both laws"
figure, panels = plots.panels(title, ["loss", "best size"], size=(8, 3.6))
span, green = torch.logspace(10.3, 12.5, 20).tolist(), plots.COLOURS[2]
panels[0].loglog(span, [(c * x**-alpha).item() for x in span], "--", color=green, linewidth=1.2)
panels[0].plot(budgets, [minima[x][1] for x in budgets], "*", color=green, markersize=11)
panels[0].plot(1.92e12, came, "o", color=plots.COLOURS[3])
panels[0].text(1.7e12, came * 1.015, "came", color=plots.COLOURS[3], size="small", ha="right")
panels[0].set_yticks([1.6, 1.8, 2, 2.2, 2.4], ["1.6", "1.8", "2.0", "2.2", "2.4"])
lines = {"ours": ([(g * x**-k).item() for x in span], green)}
for name, colour in zip(("printed", "fitted again"), plots.COLOURS):
    lines[name] = ([compute_optimal(x, *laws[name][1:])[0] for x in span], colour)
for name, (sizes, colour) in lines.items():
    panels[1].loglog(span, sizes, "--" if name == "ours" else "-", color=colour, linewidth=1.2)
    panels[1].text(3.8e12, sizes[-1], name, color=colour, va="center", size="small")
panels[1].plot(budgets, [minima[x][0] for x in budgets], "*", color=green, markersize=11)
panels[0].set(ylabel="held-out loss (nats)")
panels[1].set(ylabel="parameters N", xlim=(1.6e10, 6e13))
for ax in panels:
    ax.set_xlabel("training operations C")
    ax.minorticks_off()
at = (f"{name} {sizes[0]:,.0f} to {sizes[-1]:,.0f}" for name, (sizes, _) in lines.items())
plots.show(
    figure,
    "Against training operations, all logarithmic. Left, the loss at our three minima with the "
    f"line through them, and the fourth budget: {hoped:.2f} on the line, {came:.2f} came. Right, "
    f"best sizes from 2e10 to 3e12 operations: {'; '.join(at)}; stars are our three minima.",
)
powers = {name: beta / (alpha + beta) for name, (*_, alpha, beta) in laws.items()}
assert (round(powers["printed"], 2), round(powers["fitted again"], 2)) == (0.45, 0.51)
off = {
    name: [compute_optimal(x, *laws[name][1:])[0] / minima[x][0] for x in budgets]
    for name in powers
}
assert min(off["fitted again"]) > 1.6 and max(off["fitted again"]) < 2.4
assert min(off["printed"]) > 3.9 and max(off["printed"]) < 7

# %% [markdown]
# Rounding two exponents to two digits turns 59 tokens per parameter into 93; fitting again gives 18, near Chinchilla's 20. Ask how well an exponent is known before you use it.
#
# On the right are the same laws at our budgets, twelve powers of ten below theirs, and ours are characters. The new fit is off by about two, the printed law by four or more. Our best sizes grow with about $C^{0.64}$, theirs with $C^{0.51}$ and $C^{0.45}$. Three minima are few: a last one 20% too large adds 0.07 to our exponent.

# %% [markdown]
# Does the size matter? In nats, Gopher's shape is only 0.02 to 0.05 above the best. **But what share of the budget would a model of the best size need for Gopher's loss: more than 90 %, about 75 %, or about half or less?**

# %%
guess = None  # one of the three


# %%
def law_loss(n, d, law):
    least, a, b, alpha, beta = law
    return least + a / n**alpha + b / d**beta


def waste(n, budget, law):
    """Return how many times the operations that a model of the best size needs for this loss."""
    target, low, high = law_loss(n, budget / (6 * n), law), 0.0, budget
    while high - low > 1e-6 * budget:
        middle = (low + high) / 2
        enough = law_loss(*compute_optimal(middle, *law[1:]), law) <= target
        low, high = (low, middle) if enough else (middle, high)
    return budget / high


# %%
wasted = {name: waste(280e9, BUDGET, law) for name, law in laws.items()}
reveal(guess, [round(1 / times, 2) for times in (wasted["printed"], wasted["fitted again"])])
for name, law in laws.items():
    print(f"{name:20} Gopher {wasted[name]:.1f} times, Chinchilla {waste(70e9, BUDGET, law):.1f}")
assert round(wasted["printed"], 1) == 3.7 and round(wasted["fitted again"], 1) == 1.9

# %% tags=["hide-input"]
title = "By two laws, Gopher's shape takes 1.9 to 3.7 times the operations"
figure, panels = plots.panels(title, ["reducible loss", "waste"], size=(8, 3.6))
many = torch.logspace(9.9, 11.9, 60).tolist()
for name, colour in zip(("printed", "fitted again"), plots.COLOURS):
    law = laws[name]
    n, d = compute_optimal(BUDGET, *law[1:])
    above = [law_loss(x, BUDGET / (6 * x), law) - law[0] for x in many]
    panels[0].loglog(many, above, color=colour)
    panels[0].plot(n, law_loss(n, d, law) - law[0], "o", color=colour)
    panels[1].loglog(many, [waste(x, BUDGET, law) for x in many], color=colour)
    panels[1].plot(n, 1, "o", color=colour)
    panels[1].plot(280e9, wasted[name], "s", color=colour)
    place = (1.5e10, 0.275) if name == "printed" else (8e9, 0.147)
    panels[0].text(*place, f"{name}: {n / 1e9:.0f} B", color=colour, size="small")
for ax in panels:
    for n in (70e9, 280e9):
        ax.axvline(n, color="0.6", linestyle=":", linewidth=1)
    ax.set_xlabel("parameters N")
    ax.minorticks_off()
panels[0].set(ylabel="loss − E (nats)", ylim=(0.14, 0.42))
panels[0].set_yticks([0.15, 0.2, 0.3, 0.4], ["0.15", "0.20", "0.30", "0.40"])
panels[1].set(ylabel="times the operations", ylim=(0.9, 12))
panels[1].set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
for name, n in (("Chinchilla", 70e9), ("Gopher", 280e9)):
    panels[1].text(n * 1.05, 9.5, name, size="small", color="0.4")
plots.show(
    figure,
    "Against parameters, for a budget of 5.76e23 operations, by two laws. Left, the loss above "
    "the floor E: least at 32 billion parameters by the printed law, at 72 billion by the new fit. "
    "Right, how many times the operations that a best-sized model needs for the same loss: "
    f"Gopher, at 280 billion, {wasted['printed']:.1f} by the printed law and "
    f"{wasted['fitted again']:.1f} by the new fit; Chinchilla, at 70 billion, 1.2 and 1.0.",
)
assert round(waste(70e9, BUDGET, laws["printed"]), 1) == 1.2
assert round(waste(70e9, BUDGET, laws["fitted again"]), 1) == 1.0

# %% [markdown]
# A valley that is flat in nats is steep in operations, because each further hundredth of a nat is dear. That is what the paper was for.
#
# And yet SmolLM2 got 15,000 tokens per parameter, many times what either law wants. That is no mistake. The law counts the training alone, and each token that a model writes afterwards takes $2N$ operations. If you use a model much, you make it small and train it long.

# %% [markdown]
# ## What to remember
#
# Into German the base Transformer won with the better score at the lower cost, where cost was machine time. A training's bill follows from its sizes. Spent on the right size, more operations buy a lower loss, by a curve that you can measure on small models but must not extend as a straight line; a wrong size looks cheap in nats and is dear in operations.
#
# | | |
# |:-|:-|
# | parameters | $N = 2\,d_{model}\,n_{layer}\,(2\,d_{attn} + d_{ff})$; $12\,n_{layer}\,d^2$ for $d_{attn} = d$, $d_{ff} = 4d$ |
# | operations | $C = 3\,(2N + 2\,n_{layer}\,n_{ctx}\,d_{attn})\,D \approx 6ND$ |
# | memory | $16N$ bytes, and $4\,(n_{layer}(14\,d_{model} + 2\,heads \cdot n_{ctx}) + 2\,vocab)$ for each token |
# | power law | $y = c\,x^{-\alpha}$, a straight line between logarithms |
# | best size | $\alpha a N^{-\alpha} = \beta b D^{-\beta}$, with $6ND = C$ |

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
# At best 10⁷ seconds, 116 days; at an MFU of 0.4 two and a half times as long.
# </details>
#
# <details><summary>3. A model has a billion parameters. How much memory does its training need, before the first token?</summary>
#
# 16 GB: weights, gradients and Adam's two averages (of the gradient and of its square), 4 bytes each.
# </details>
#
# <details><summary>4. α = β. Twice the budget: how many times as large should the model be?</summary>
#
# √2 times, and it should read √2 times as many tokens.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# The attention weights were the largest part of GPT-2's memory, and they grow with the square of the context. Lesson 13 asks what to do if a text has fifty thousand tokens.
#
# Vaswani et al. 2017 (table 2, section 6.1); Kaplan et al. 2020, Hoffmann et al. 2022 and Besiroglu et al. 2024 (scaling laws); Brown et al. 2020 (GPT-3); Korthikanti et al. 2023 (activation memory); Rajbhandari et al. 2020 (16 bytes per weight); Allal et al. 2025 (SmolLM2). Lectures: L1, L2 and L3.
