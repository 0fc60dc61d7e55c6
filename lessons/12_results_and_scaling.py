# %% [markdown]
# # 12 · Results and scaling
#
# **75 minutes · after lesson 11 · needs Shakespeare's works (5 MB)**
#
# You have a fixed amount of computing, and a text. A small model can read a lot of the text with it, a large model only a little. **Which size wins, and which size should a larger budget buy?**
#
# You let five models race, and choose a size for a larger budget. **What does each written token cost, and what must fit into memory?** At the end you can write the whole bill.

# %%
import torch
from jaxtyping import Float
from torch import Tensor
from course_lib.data import characters, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import isoflop, measuring, results, training
from course_lib.instruments.pictures import scaling as pictures

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %%
import numpy as np
from torch.utils.flop_counter import FlopCounterMode
from course_lib.language_model import LanguageModel, generate

cross_entropy = mine("language_model/cross_entropy")
BUDGET = 3e10  # operations
kept = results.load("scaling")["figures"]  # models that were trained before

# %% tags=["hide-input"]
sizes = {d: (isoflop.size(d), 1024 * isoflop.steps(BUDGET, d)) for d in (8, 12, 16, 24, 32)}
pictures.rectangles(sizes, BUDGET)

# %% [markdown]
# A rectangle is a model. Its width is how many characters it reads, its height how many operations it spends on each. The area is what its training costs.

# %% [markdown]
# ## The race
#
# All five are lesson 10's language model with two blocks. They read windows of 64 characters, and each takes as many steps as the budget pays for. Wider models want a lower learning rate. **Which of the five will predict held-out Shakespeare best?**

# %%
guess = None  # a d_model: 8, 12, 16, 24 or 32

# %%
needs("shakespeare")

# %% tags=["training"]
learning, held_out = characters.split()
unseen = next(characters.batches(held_out, 64, 1024, 0))


def next_loss(model, batch):
    return cross_entropy(model(batch[0]), batch[1])


def trained(d, budget=BUDGET, seconds=60):
    with training.seeded(SEED):
        model = LanguageModel(84, 2, d, max(1, d // 8), 4 * d, max_length=64)
    steps, rate = isoflop.steps(budget, d), 0.64 / d
    batches = characters.batches(learning, 64, 16, SEED)
    training.train(model, batches, next_loss, steps=steps, learning_rate=rate, seconds=seconds)
    return model


# %% [markdown]
# Train all five, and let them write from the same random numbers.

# %% tags=["training"]
models = {d: trained(d) for d in (8, 12, 16, 24, 32)}


def write(model):
    generator = torch.Generator().manual_seed(SEED)
    prompt = characters.encode("The King")
    return characters.decode(generate(model, prompt, 70, 64, generator)).replace("\n", " / ")


for d, model in models.items():
    print(f"{d:2}  {write(model)}")

# %% tags=["training"]
with torch.no_grad():
    losses = {d: next_loss(model, unseen).item() for d, model in models.items()}
reveal(guess, min(losses, key=losses.get))
pictures.row(losses, kept["pairs"])

# %% [markdown]
# At one budget the losses form a valley, an **IsoFLOP curve** (Hoffmann et al. 2022). The smallest model has read most, but a model twice its size learned more from half of that text. The largest has read too little: even a **bigram model**, a table of which letter follows which in all of the text to learn from, beats it.
#
# The race was fair only if all five cost the same. So how does one count what a training costs?

# %%
needs()

# %% [markdown]
# ## How large is a model?
#
# One block has four matrices of attention, and two of its feed-forward network:
#
# $$N = n_{layer}\,\big(\underbrace{4\, d_{model}\, d_{attn}}_{W_Q,\ W_K,\ W_V,\ W_O} + \underbrace{2\, d_{model}\, d_{ff}}_{W_1,\ W_2}\big) = 2\, d_{model}\, n_{layer}\,(2\, d_{attn} + d_{ff})$$
#
# $d_{attn}$ is the width of all heads' queries together. Biases, norms and embeddings are left out (Kaplan et al. 2020). For the race we add the output layer, $84\, d_{model}$ for 84 characters.

# %%
# exercise: scaling/parameters

# %%
check("scaling/parameters", estimate_parameters)

# %%
estimate_parameters = mine("scaling/parameters")

# %% [markdown]
# > **Where the lectures slip (D05).** L3 shortens this to $N \approx 12\, n_{layer}\, d^2$ "(Assuming $d = d_{attn} = d_{ff}$)". But twelve needs $d_{ff} = 4d$, as in 2017 and in GPT-3:

# %% tags=["nbval-check-output"]
d = 12_288
for d_ff in (d, 4 * d):
    print(f"d_ff = {d_ff // d} d: {estimate_parameters(1, d, d, d_ff) / d**2:.0f} d^2 a layer")
gpt3 = estimate_parameters(96, d, d, 4 * d) + 50_257 * d  # the second term is the embedding
print(f"GPT-3 by the formula: {gpt3 / 1e9:.1f} billion")

# %% [markdown]
# ## How many operations is a training?
#
# In a forward pass every parameter takes part in one **multiply-add** for each token: two operations. The backward pass takes two such products: one for the gradient of the input, one for that of the weights. So $D$ tokens take
#
# $$C = 3\,\big(\underbrace{2N}_{\text{matrices}} + \underbrace{2\, n_{layer}\, n_{ctx}\, d_{attn}}_{\text{scores, averages}}\big)\, D \;\approx\; 6\,N\,D$$
#
# The second term is attention. For each token and layer, scores take $n_{ctx}\, d_{attn}$ multiply-adds, and averages as many again: $4\, n_{ctx}\, d_{attn}$ operations. A causal mask hides half of the pairs, which leaves 2.

# %%
# exercise: scaling/training_flops

# %%
check("scaling/training_flops", training_flops)

# %%
training_flops = mine("scaling/training_flops")

# %% [markdown]
# PyTorch can count the operations that a model really executes. Is your formula right?

# %% tags=["nbval-check-output"]
model = LanguageModel(84, 2, 64, heads=4, d_ff=256, max_length=64)
tokens = torch.randint(84, (8, 64))
with FlopCounterMode(display=False) as counter:
    cross_entropy(model(tokens), tokens).backward()
n = estimate_parameters(2, 64, 64, 256) + 84 * 64  # blocks and output layer
for name, context in {"6 N D": 0, "with attention": 64, "with twice that": 128}.items():
    formula = training_flops(n, tokens.numel(), layers=2, context=context, d_attention=64)
    print(f"{name:15} {formula / counter.get_total_flops():.6f}")
print("the race:", *(f"{training_flops(*x, 2, 64, d):.2e}" for d, x in sizes.items()))

# %% [markdown]
# With twice the attention term it is *exact*: torch computes all scores, and hides half of them. By our formula, which leaves the hidden half out, all five cost the same. If each model also pays for the hidden half, 12 and 16 still win.

# %%
needs("shakespeare")

# %% [markdown]
# ## Choose the next size
#
# Here are two larger budgets, each four times the one before, beside your row. A star marks where a parabola over $\log N$ is lowest.

# %% tags=["training"]
stored = [row for row in kept["rows"] if row["flops"] > BUDGET]
yours = [(isoflop.size(d), loss) for d, loss in losses.items()]
pictures.valleys(stored, yours)

# %% [markdown]
# <details><summary>How we know</summary>
#
# Three seeds each. Every size has at every budget its own learning rate, found with one seed by halving and doubling until both neighbours are worse.
# </details>

# %% [markdown]
# The best size grows with the budget. How fast? Kaplan et al. 2020 fit a **power law**, a straight line between logarithms:
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
# You have runs at small budgets, and one shot at a large one. Which size? With $u = \log N$, fit a parabola to the losses of each budget. Where it is lowest is the best size:
#
# $$L = a\,u^2 + b\,u + c \qquad u^* = -\frac{b}{2a} \qquad N^* = e^{u^*}$$
#
# Then fit a power law to the pairs $(C, N^*)$. This one grows, so its $\alpha$ is negative.

# %%
# exercise: scaling/choose_size

# %%
check("scaling/choose_size", choose_size)

# %%
choose_size = mine("scaling/choose_size")

# %% [markdown]
# Your row and the two stored ones decide.

# %% tags=["training"]
runs = [(BUDGET, *point) for point in yours]
runs += [(row["flops"], row["parameters"], row["loss"]) for row in stored]
chosen = choose_size(runs, 1.92e12)
print(f"your choice for 1.92e12 operations: {chosen:,.0f} parameters")

# %% [markdown]
# ## What a wrong size costs
#
# How bad is a wrong size? By its loss, hardly: at the third budget that of a model nearly four times too large is 7 % higher. But a model of the *best* size has this loss with fewer operations: read them off the line between the stars of two budgets. **What share of the third budget does it need?**

# %%
guess = None  # percent


# %%
def points_at(budget):
    return [(row["parameters"], row["loss"]) for row in kept["rows"] if row["flops"] == budget]


valleys = {c: isoflop.minimum(points_at(c)) for c in (1.2e11, 4.8e11)}  # best size, its loss


def budget_of_best(loss):
    """Return the operations that models of the best size need for this loss."""
    least = sorted((loss, np.log(budget)) for budget, (_, loss) in valleys.items())
    return np.exp(np.interp(loss, *zip(*least)))


# %%
third = np.array(points_at(4.8e11))
means = {n: third[third[:, 0] == n, 1].mean() for n in sorted({*third[:, 0]})}
shares = {n: 100 * budget_of_best(loss) / 4.8e11 for n, loss in means.items()}
reveal(guess, round(shares[max(shares)]))
pictures.waste(kept["rows"], 4.8e11, shares)

# %% [markdown]
# Less than half. Nearly four times too small is as bad. A valley that is flat in nats is steep in operations, because each further hundredth of a nat is expensive.

# %% [markdown]
# Score your choice by the share of the budget that it **wastes**. Four sizes were trained at the next budget, six runs unseen by any fit; their parabola gives the rest. Four rules need no fit: the best size of one earlier budget grows by a fixed exponent (0.5 doubles it from budget to budget). The columns say how many times larger the new budget is than the last one used: the third, the second, or yours. Read the first.

# %% tags=["training", "hide-input"]
holds = min(losses[12], losses[16]) < min(losses[8], losses[24], losses[32]) - 0.02
training.expect("12 or 16 is best, by 0.02 nats", holds, losses, *models.values())
fourth = kept["larger"] + results.load("fourth_budget")["figures"]["rows"]
fourth = [(row["parameters"], row["loss"]) for row in fourth]
valleys[1.92e12] = isoflop.minimum(fourth)
sizes, found = np.transpose(fourth)
parabola = np.polyfit(np.log(sizes), found, 2)


def waste(n):
    """Return the percentage of the fourth budget that a model of n parameters wastes."""
    return 100 - 100 * budget_of_best(np.polyval(parabola, np.log(n))) / 1.92e12


valleys[BUDGET] = isoflop.minimum(yours)
earlier = choose_size([run for run in runs if run[0] < 4.8e11], 1.92e12)
print(f"{'wasted, by budgets':28}{'4 times':>9}{'16 times':>9}{'64 times':>9}")
print(f"{'your line':28}{waste(chosen):7.0f} %{waste(earlier):7.0f} %")
rules = {"the same size": 0, "0.5 (Hoffmann et al. 2022)": 0.5}
rules |= {"0.73 (Kaplan et al. 2020)": 0.73, "in proportion": 1}
for name, exponent in rules.items():
    chosen_by = [valleys[c][0] * (1.92e12 / c) ** exponent for c in (4.8e11, 1.2e11, BUDGET)]
    print(f"{name:28}" + "".join(f"{waste(n):7.0f} %" for n in chosen_by))
claim = "the choice wastes less than 5 %"
training.expect(claim, waste(chosen) < 5, round(waste(chosen), 1), *models.values())

# %% [markdown]
# You chose well. Keeping the size wastes a third of the budget, and growth in proportion, to four times the size, a fifth. Between your line and the exponents of the two papers the table does not decide: they differ by two percent or so, and another seed changes more (the three dots of the next figure).
#
# A straight line between logarithms also promises a *loss*. **Will the real loss be higher or lower than the line says?**

# %%
guess = None  # "higher" or "lower"

# %% tags=["training"]
least = {c: valleys[c][1] for c in (BUDGET, 1.2e11, 4.8e11)}
c, alpha = fit_power_law(torch.tensor([*least]), torch.tensor([*least.values()]))
line, found = (c * 1.92e12**-alpha).item(), valleys[1.92e12][1]
reveal(guess, "higher" if found > line else "lower")
first, second = -np.diff([*least.values()])  # what each budget saves
floor = least[4.8e11] - second * second / first

# %% tags=["training", "hide-input"]
holds = abs(found - floor) < (found - line) / 2
came = [round(float(loss), 3) for loss in (line, floor, found)]
training.expect("a floor removes half of the line's error", holds, came, *models.values())
pictures.scored(least, fourth, chosen)

# %% [markdown]
# <details><summary>How we know</summary>
#
# The size nearest to the choice has three seeds and the best of three learning rates. The three others have one seed, and half of the rate that was best at the budget before; the largest has the better of two. Lines through one seed a budget waste up to 6 %, most with a run that failed at the smallest budget.
# </details>

# %% [markdown]
# The line sinks towards zero. A loss cannot: part of any text nobody can predict, however large the model. Call that floor $E$. With $L = E + c\,C^{-\alpha}$, each fourfold budget saves the same fraction $r = 4^{-\alpha}$ of what the one before saved, so three valleys predict the fourth:
#
# $$L_4 = L_3 - r\,(L_2 - L_3), \qquad r = \frac{L_2 - L_3}{L_1 - L_2}$$
#
# Most of the line's error is gone. (The fourth budget still saves a little less than $r$ says.)

# %% [markdown]
# In 2021 DeepMind spent its budget on **Gopher**, its largest model. Then it measured valleys, and spent the same operations on a quarter of the parameters and four times the text. That was **Chinchilla**, and it was better at nearly every task (Hoffmann et al. 2022). The rule that people took from it, *20 tokens for each parameter*, holds for their text and [their exponents](explorations/12_chinchilla.ipynb).

# %% [markdown]
# In 2025 Qwen3-8B read over 4,000 tokens for each parameter (Qwen 2025). The valley counts the training alone, and a model is used every day.

# %% [markdown]
# ## The bill of every token
#
# To write one token, a model makes one forward pass for it: about $2N$ operations. Take a model that is too small for the third budget. One of the best size reaches the same loss with less training, but pays more for each token. The small one has paid back its longer training after $t$ tokens:
#
# $$2\,(N_{best} - N_{small})\; t = C_{small} - C_{best}$$
#
# **How many tokens is that: fewer than the small model has read, about as many, or more?**

# %%
guess = None  # "fewer", "about as many" or "more"

# %% tags=["training"]
small = 15_840
spent = budget_of_best(means[small])
n = choose_size(runs, spent)  # the best size for that
[read] = {row["tokens"] for row in stored if (row["flops"], row["parameters"]) == (4.8e11, small)}
print(f"{small:,} instead of {n:,.0f} parameters: {1 - small / n:.0%} cheaper to use")
print(f"paid back after {(4.8e11 - spent) / (2 * (n - small)) / 1e6:.0f} million tokens")
print(f"it has read {read / 1e6:.0f} million")

# %% tags=["training", "hide-input"]
paid_back = (4.8e11 - spent) / (2 * (n - small))
reveal(guess, f"{paid_back / read:.1f} times as many as it has read")

# %% [markdown]
# About as many. The more a model will be used, the smaller it should be, and the longer trained.

# %%
needs()

# %% [markdown]
# ## Serving: memory and bandwidth
#
# Operations are one part of that bill, memory is the other. While it writes, a model keeps keys and values of all tokens before (lesson 09's **cache**). In 16 bits a token adds
#
# $$\text{bytes} = \underbrace{2}_{\text{16 bits}} \cdot \underbrace{2}_{K,\ V} \cdot\; n_{layer} \cdot \text{key-value heads} \cdot d_{head}$$
#
# A **mixture of experts** (MoE) sends each token through only a few of its feed-forward networks. So it has two sizes: a token uses the **active** parameters, but the **total** must be in memory.

# %% tags=["nbval-check-output"]
open_models = {  # total, active, bytes of a parameter, numbers kept for a token
    "GPT-3 (2020)": (175e9, 175e9, 2, 2 * 96 * 96 * 128),
    "DeepSeek-V3 (2024)": (671e9, 37e9, 1, 61 * (512 + 64)),
    "Qwen3-8B (2025)": (8.2e9, 8.2e9, 2, 2 * 36 * 8 * 128),
    "gpt-oss-120b (2025)": (117e9, 5.1e9, 65 / 117, 2 * 18 * 8 * 64),
}
print(f"{'':20}{'operations':>12}{'memory':>10}{'cache':>11}")
for name, (total, active, size, numbers) in open_models.items():
    print(f"{name:20}{2 * active / 1e9:9.0f} e9", end="")
    print(f"{size * total / 1e9:7.0f} GB{2 * numbers / 1e3:8.0f} kB")

# %% [markdown]
# A token of gpt-oss-120b costs fewer operations than one of Qwen3-8B, which has a fourteenth of the parameters. Memory is that of all parameters: GPT-3's taken as 16 bits, the others' as published, in gpt-oss mostly 4 bits. DeepSeek keeps one **latent** vector a layer in place of keys and values. Half of gpt-oss's layers see only 128 tokens, and their caches are left out.

# %% [markdown]
# Now serve Qwen3-8B on one H100 of 80 GB, which computes up to 989 trillion operations a second and reads 3.35 trillion bytes. For each new token all parameters are read once. **A single user waits for a token. What takes longer, computing or reading, and how many times?**

# %%
guess = None  # such as ("computing", 5)

# %%
computing, reading = 2 * 8.2e9 / 989e12, 2 * 8.2e9 / 3.35e12
reveal(guess, ("reading", round(reading / computing)))
pictures.serving(8.2e9, 147e3, (1_000, 8_000, 32_000), flops=989e12, bandwidth=3.35e12)

# %% [markdown]
# Each parameter is two bytes, and takes part in two operations: one operation for each byte. This is the **arithmetic intensity**. The processor could do 295, so writing for one user is **memory-bound**. Providers put many texts into one **batch**, and read the parameters once for all of them. The caches are not shared, and reading them takes time, so each further text adds less. Each curve is computed, up to full memory. That is why fewer key-value heads, latents and short windows are worth so much.

# %% [markdown]
# Your computer has the same two limits. Multiply one vector by a matrix as large as one of Qwen3-8B's, then 64 vectors, on one core:

# %% tags=["once"]
from torch.utils.benchmark import Timer

matrix, took = torch.randn(4096, 12_288), {}
for texts in (1, 4, 16, 64):
    vectors = torch.randn(texts, 4096)
    timer = Timer("vectors @ matrix", globals={"vectors": vectors, "matrix": matrix})
    took[texts] = 1000 * timer.blocked_autorange().median
    print(f"{texts:2} texts: {took[texts]:5.0f} ms, {took[texts] / texts:4.1f} ms each")
claim = "64 texts take less than half of 64 times as long as one"
measuring.expect(claim, took[64] < 32 * took[1], round(took[64] / took[1], 1))

# %% [markdown]
# One text waits until 200 MB have been read. Sixteen share that, four hardly: for more than one vector another routine runs.

# %% [markdown]
# ## The last line: memory for training
#
# In 32 bits a parameter takes 16 bytes: itself, its gradient, and **Adam**'s two averages. On top come the **activations**, all that the backward pass needs. For each token a block keeps ten vectors of $d_{model}$ numbers: three in each of its two norms, the query, key and value, and what the heads return. It keeps one of $d_{ff} = 4\,d_{model}$, and in each head the softmax's two rows of the context's length. The model keeps two rows of logits:
#
# $$\text{bytes} = 4\,\big(4N + \text{tokens} \cdot (n_{layer}\,(14\, d_{model} + 2\, heads \cdot n_{ctx}) + 2\, vocab)\big)$$
#
# A colleague's function comes to about half for GPT-2. Find the line.

# %%
# exercise: scaling/mend_memory

# %%
check("scaling/mend_memory", training_memory)

# %%
training_memory = mine("scaling/mend_memory")

# %% tags=["nbval-check-output"]
# PyTorch calls a hook for each tensor that it keeps for the backward pass
model, tokens = LanguageModel(77, 2, 96, 4, 384, max_length=64), torch.randint(77, (16, 64))
weights = [*model.parameters()]
activations = measuring.saved_bytes(lambda: cross_entropy(model(tokens), tokens), weights)
billed = training_memory(0, 16, 64, layers=2, d_model=96, heads=4, vocab=77)
last_norm = 4 * tokens.numel() * 3 * 96  # three vectors that the formula leaves out
print(f"activations, measured / formula: {activations / billed:.3f}")
print(f"without the last norm: {(activations - last_norm) / billed:.3f}")

# %% [markdown]
# But for one norm the bill is right. For GPT-2 small (12 blocks, 12 heads, $d_{model} = 768$, a vocabulary of 50,257), on 12 texts of 1,024 tokens:

# %%
n = estimate_parameters(12, 768, 768, 4 * 768) + 50_257 * 768
read = 12 * 1024
bill = {
    "parameters, Adam": 16 * n,
    "vectors": 4 * read * 12 * 14 * 768,
    "attention weights": 4 * read * 12 * 2 * 12 * 1024,
    "logits": 4 * read * 2 * 50_257,
}
total = training_memory(n, 12, 1024, layers=12, d_model=768, heads=12, vocab=50_257)
print(f"{total / 1e9:.1f} GB in all, for {4 * n / 1e9:.1f} GB of parameters")
pictures.memory(bill)

# %% [markdown]
# PyTorch's softmax keeps one row where ours keeps two: half as much, and still the most. A **fused kernel** keeps neither, and computes them again in the backward pass: lesson 13 builds both passes. **Checkpointing** keeps only each block's input, and computes the rest again (Chen et al. 2016). Its price is one more forward pass: $8ND$ operations instead of $6ND$.
#
# Last, the whole bill of your own choice, by your functions:

# %% tags=["training", "hide-input"]
d = min(range(8, 129, 8), key=lambda d: abs(isoflop.size(d) - chosen))  # of whole heads
n, heads = isoflop.size(d), d // 8
characters_read = 1.92e12 / training_flops(n, 1, layers=2, context=64, d_attention=d)
memory = training_memory(n, 16, 64, layers=2, d_model=d, heads=heads, vocab=84)
print(f"d_model {d}, {n:,} parameters, {characters_read / 1e6:.1f} million characters to read")
print(f"training  1.92e12 operations, {memory / 1e6:.1f} MB")
print(f"writing   {2 * n:,} operations a character, {2 * 2 * 2 * d} bytes of cache for each")

# %% [markdown]
# ## What to remember
#
# At each budget a middle size is best. Small runs tell which size a larger budget should buy. A law with a floor comes nearer the loss. A model that is used much is made smaller and trained longer than the valley says. The rest of its bill is operations and bandwidth for each token, and memory.
#
# | | |
# |:-|:-|
# | parameters | $N = 2\,d_{model}\,n_{layer}\,(2\,d_{attn} + d_{ff})$; $12\,n_{layer}\,d^2$ for $d_{attn} = d$, $d_{ff} = 4d$ |
# | training | $C = 3\,(2N + 2\,n_{layer}\,n_{ctx}\,d_{attn})\,D \approx 6ND$ operations |
# | use | $2N$ operations a token, with the *active* parameters |
# | cache | $2\, n_{layer} \cdot \text{key-value heads} \cdot d_{head}$ numbers a token |
# | training's memory | $16N$ bytes, and $4\,(n_{layer}(14\,d_{model} + 2\,heads \cdot n_{ctx}) + 2\,vocab)$ for each token |
# | power law | $y = c\,x^{-\alpha}$, a straight line between logarithms; a loss has a floor, $E + c\,C^{-\alpha}$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A training takes 10²¹ operations. How long does it take on a processor with 10¹⁴ FLOP/s?</summary>
#
# At best 10⁷ seconds, 116 days. Trainings reach perhaps 0.4 of a processor's rate (their **model FLOPs utilization**, MFU), and take two and a half times as long.
# </details>
#
# <details><summary>2. A mixture has 100 billion parameters, 5 billion of them active. What costs as much as in a model of 100 billion, and what as in one of 5?</summary>
#
# Memory as in 100, and reading too, once a batch uses all experts. Operations as in 5.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# The attention weights were the largest part of GPT-2's memory, and they grow with the square of the context. Lesson 13 asks what to do if a text has fifty thousand tokens. Explorations: [experts](explorations/12_experts.ipynb), and the table of 2017, [counted and made again](explorations/12_small_table.ipynb).
#
# Kaplan et al. 2020 and Hoffmann et al. 2022 (scaling laws); Brown et al. 2020 (GPT-3); Korthikanti et al. 2023 (activation memory); Rajbhandari et al. 2020 (16 bytes per parameter); Chowdhery et al. 2022 (MFU); DeepSeek-AI 2024 and OpenAI 2025 (mixtures and caches). Lectures: L1, L2 and L3.
