# %% [markdown]
# # What each step of a recipe buys
#
# **45 minutes · an exploration of lesson 11 · needs nothing**
#
# The Transformer's paper trained on batches of equal tokens, with label smoothing and a learning rate of its own. Our translator of lesson 11 used the first two and replaced the third. **Which steps of a training recipe pay, when a translator gets seven minutes of one core?** You build the three parts, then read a table of eight recipes. It has gaps, and we say where.

# %%
import math
import torch
from collections.abc import Sequence
from itertools import pairwise
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results

# %%
from jaxtyping import Float, Int
from torch import Tensor

# %% [markdown]
# ## Build: batches by tokens
#
# A batch is a rectangle: each sentence is filled up to the longest with padding, which is computed for nothing. So a batch counts tokens, not sentences. A batch $B$ of sentences with lengths $\ell_i$ may grow while
#
# $$\underbrace{|B| \cdot \max_{i \in B} \ell_i}_{\text{tokens, padding counted}} \;\le\; most$$
#
# Go through the sentences from short to long, and begin a new batch whenever the next one would not fit.

# %%
# exercise: batching/by_tokens

# %%
check("batching/by_tokens", by_tokens)

# %%
by_tokens = mine("batching/by_tokens")

# %% tags=["nbval-check-output"]
lengths = [3, 30, 4, 5, 28, 3, 4, 31]
for batches in (by_tokens(lengths, 62), [range(4), range(4, 8)]):
    filled = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    print([list(batch) for batch in batches], f"{1 - sum(lengths) / filled:.0%} padding")

# %% [markdown]
# The second way takes four at a time, in the order in which they come.
#
# ## Build: label smoothing
#
# At each position the model has logits over the vocabulary, and the loss is $-\log p_t$ for the right token $t$. It is 0 only where $p_t = 1$, which no finite logits reach. So training keeps pushing them apart, long after the right token is the likeliest. Yet several tokens may be right, such as *Gerät* and *Vorrichtung* for *device*. **Label smoothing** asks for less. A share $s$ of the loss goes to the whole vocabulary of $V$ tokens:
#
# $$L = (1 - s)\,\underbrace{(-\log p_t)}_{\text{the target}} + s\,\underbrace{\frac{1}{V} \sum_{v=1}^{V} (-\log p_v)}_{\text{the mean over the vocabulary}}$$

# %% [markdown]
# Collect the terms. This is the cross-entropy of $p$ against another target distribution, $q$:
#
# $$L = -\sum_v q_v \log p_v, \qquad q_t = 1 - s + \frac{s}{V}, \qquad q_v = \frac{s}{V} \;\text{ for } v \ne t$$
#
# A cross-entropy is least where $p = q$. There the logits of the target and of any other token differ by a finite number:
#
# $$z_t - z_v = \log \frac{q_t}{q_v} = \log \frac{1 - s + s/V}{s/V}$$
#
# **How large is this gap for $s = 0.1$ and $V = 4000$?** Without smoothing it is infinite.

# %%
guess = None  # a number

# %%
s, vocab = 0.1, 4000
gap = math.log((1 - s + s / vocab) / (s / vocab))
reveal(guess, gap)
assert 10 < gap < 11

# %% [markdown]
# Now write the loss. Logits are `(..., vocab)`, targets `(...)`. Padded positions hold the token `ignore` and must not count, neither in the sum nor in the number that it is divided by.

# %%
# exercise: label_smoothing/loss

# %%
check("label_smoothing/loss", smoothed_cross_entropy)

# %%
smoothed_cross_entropy = mine("label_smoothing/loss")

# %% [markdown]
# ## Build: the learning rate of the paper
#
# Lesson 07 showed why a deep post-norm stack needs a **warm-up**. The paper's schedule (section 5.3) rises linearly for $w$ steps, then falls as one over the root of the step:
#
# $$\eta(step) = d_{model}^{-1/2}\, \min\big(step^{-1/2},\; step \cdot w^{-3/2}\big)$$
#
# The two terms are equal at $step = w$: there the curve turns. The first factor gives wider models a lower rate.

# %%
# exercise: schedules/noam

# %%
check("schedules/noam", noam)

# %%
noam = mine("schedules/noam")

# %% [markdown]
# **The paper trains for 100,000 steps with $w = 4000$. At which step is the rate back at half of its highest value?**

# %%
guess = None  # a step

# %%
top = noam(4000, 512, 4000)
half = next(step for step in range(4000, 100_000) if noam(step, 512, 4000) <= top / 2)
reveal(guess, half)
assert half == 4 * 4000

# %% tags=["hide-input"]
figure, ax = plots.axes("The rate turns at the last step of the warm-up", "step", "learning rate")
steps = range(1, 40_001, 100)
for width, warm_up, colour in ((512, 4000, 0), (512, 8000, 1), (1024, 4000, 2)):
    rates = [noam(step, width, warm_up) for step in steps]
    ax.plot(steps, rates, color=plots.COLOURS[colour])
    ax.plot(warm_up, noam(warm_up, width, warm_up), "o", color=plots.COLOURS[colour])
labels = {
    (4600, 0.00069): ("d = 512, w = 4,000", 0),
    (9000, 0.00053): ("d = 512, w = 8,000", 1),
    (7000, 0.00017): ("d = 1,024, w = 4,000", 2),
}
for place, (label, colour) in labels.items():
    ax.text(*place, label, color=plots.COLOURS[colour], size="small")
ax.set(ylim=(0, 0.00078), xticks=range(0, 40_001, 10_000))
plots.show(
    figure,
    "Three curves of the learning rate over 40,000 steps. Each rises in a line and falls as one "
    "over the root. With d = 512 and w = 4,000 the top is 0.0007 at step 4,000; with w = 8,000 it "
    "is 0.0005 at step 8,000; with d = 1,024 it is 0.0005 at step 4,000.",
)
assert round(top, 4) == 0.0007 and round(noam(8000, 512, 8000), 4) == 0.0005

# %% [markdown]
# At the same width, a shorter warm-up means a higher peak, and once both are past their warm-up the curves are the same. The rate never reaches 0, so a training can go on for as long as you like. The trainings below choose the number of steps first; from the fourth recipe on, the rate falls to 0 at the last one.

# %% [markdown]
# ## Eight recipes
#
# `make results LESSON=11` trained German translators by eight recipes, each with as many steps as take six to seven minutes of one core, and three seeds. They translate 500 held-out texts greedily. Each recipe changes one thing, or a few that belong together, and keeps the changes before it. The loss is in nats a character, without smoothing. The first is post-norm at a peak of 0.012. **How many BLEU apart are it and the best, in the mean: about 3, 10 or 30?**

# %%
guess = None  # a number

# %%
recipes = results.load("translation")["figures"]["steps"]
runs = {name: list(row["runs"].values()) for name, row in recipes.items()}
print(f"{'':31}steps   pairs padding   nats: each seed       BLEU: each seed")
for number, (name, three) in enumerate(runs.items()):
    each = "  ".join(f"{run['nats']:.3f}" for run in three)
    each += "   " + "  ".join(f"{run['bleu']:4.1f}" for run in three)
    one = three[0]
    told = f"{one['steps']:5} {one['pairs_seen']:7,}    {one['padding']:4.0%}   {each}"
    print(f"{'+ ' * bool(number) + name:31}{told}")
gained = {name: sum(run["bleu"] for run in three) / 3 for name, three in runs.items()}
reveal(guess, round(max(gained.values()) - next(iter(gained.values()))))
assert all(330 < run["cpu_seconds"] < 460 for three in runs.values() for run in three)

# %% tags=["hide-input"]
assert all(len(three) == 3 for three in runs.values()), "the text says: three seeds"
title = "Muon's row has the best BLEU, but for Adam one rate was tried"
figure, panels = plots.panels(title, ["nats a character, held out", "BLEU"], size=(9.5, 3.6))
for ax, score, most in zip(panels, ("nats", "bleu"), (2.2, 31)):
    for row, three in enumerate(runs.values()):
        found = [run[score] for run in three]
        ax.barh(-row, sum(found) / 3, color=plots.COLOURS[0], height=0.6, alpha=0.5)
        ax.plot(found, [-row] * 3, ".", color=plots.COLOURS[0])
        text = f"{sum(found) / 3:.{2 if score == 'nats' else 1}f}"
        ax.text(max(found) + most / 40, -row, text, va="center", size="small")
    labels = [("+ " if row else "") + name for row, name in enumerate(runs)]
    ax.set_yticks([-row for row in range(len(runs))], labels if ax is panels[0] else [""] * 8)
    ax.set(xlim=(0, most))
mean = {name: sum(run["nats"] for run in three) / 3 for name, three in runs.items()}
said = ", ".join(f"{name} {mean[name]:.2f} and {gained[name]:.1f}" for name in runs)
plots.show(
    figure,
    "Loss and BLEU of each recipe on 500 held-out texts: bars are means, dots the three runs. Each "
    f"recipe keeps the changes before it. {said}.",
)

# %% [markdown]
# | the change | |
# |:-|:-|
# | a high rate | a peak of 0.012: the paper's formula at a width of 192 and a warm-up of 37 steps; the paper's own peak is 0.0007 |
# | pre-norm | the norm comes before each layer (lesson 07) |
# | batches by tokens | 10 % padding instead of 82 %; more steps, so the formula's peak falls to 0.007 |
# | a lower rate, down to zero | rises to 0.002 over a tenth of the steps, then falls linearly to 0 |
# | Muon | lesson 10's optimizer for the blocks' matrices; Adam, at 0.003, for the rest |
# | smaller in three ways | $d_{model} = 128$, two decoder blocks, 2,000 pieces |
# | dropout | a tenth of each layer's output is set to 0 while training (lesson 10) |
# | label smoothing | $s = 0.1$ |

# %%
post, pre, cut_by_tokens, lower, muon, smaller, *_ = (three[0] for three in runs.values())
assert pre["padding"] > 0.8 and cut_by_tokens["padding"] < 0.11
assert cut_by_tokens["pairs_seen"] > 5 * pre["pairs_seen"]
for run, peak in ((post, 0.012), (cut_by_tokens, 0.007)):
    assert round((192 * (run["steps"] // 10)) ** -0.5, 3) == peak
assert 0.3 < smaller["parameters"] / muon["parameters"] < 0.4
assert 2 < smaller["pairs_seen"] / muon["pairs_seen"] < 2.1

# %%
means = list(zip(mean.values(), gained.values()))
steps = [(round(a - c, 1), round(d - b)) for (a, b), (c, d) in pairwise(means)]
assert steps == [(0.4, 0), (0.4, 2), (0.3, 11), (0.2, 15), (-0.1, -2), (0, -3), (0, 1)]
spread = {name: [round(run["bleu"]) for run in three] for name, three in runs.items()}
assert spread["a lower rate, down to zero"] == [18, 8, 13]
at_peak = results.load("translation")["figures"]["at the paper's peak"]
for norm, row in at_peak.items():
    three = [f"{run['nats']:.2f} and {run['bleu']:.1f}" for run in row["runs"].values()]
    print(f"{norm}-norm at the paper's peak, nats and BLEU: {', '.join(three)}")
nats = {norm: [run["nats"] for run in row["runs"].values()] for norm, row in at_peak.items()}
assert max(nats["post"]) < min(nats["pre"])
pairs_of_runs = zip(runs["smaller in three ways"], runs["dropout"])
assert all(d["nats"] < s["nats"] and d["bleu"] < s["bleu"] - 2 for s, d in pairs_of_runs)

# %% [markdown]
# What may you conclude? The first row is *not* the paper's recipe: its peak is seventeen times the paper's. At that rate post-norm fails, and pre-norm is better in the loss. At the paper's own peak it is the other way round: in as many steps post-norm gets to a lower loss than pre-norm in all three seeds (above). So the second row is the cure of a rate. Which norm is better depends on it; no rate between these two was tried.

# %% [markdown]
# The same holds for Muon. The row before it has Adam at 0.002, and its three seeds reach 18, 8 and 13 BLEU: that looks unstable. One rate was tried for Adam, so some of Muon's 15 points may be the cure of a bad rate. A fair comparison sweeps the rate of both. Each change was also measured after the changes above it; in another order the gains could differ.

# %% [markdown]
# In one step the two disagree in all three seeds: dropout makes the loss lower *and* greedy BLEU lower. The two need not agree: the loss judges probabilities after the *right* tokens, BLEU one text after the model's *own*. (That this is the reason, we did not test.) The paper says that it "hurts perplexity [...] but improves accuracy and BLEU score". Here BLEU rises from 23.7 to 24.6 in the mean, and the loss from 0.539 to 0.541: BLEU in all three seeds, the loss in two of three.

# %%
assert [round(gained[name], 1) for name in ("dropout", "label smoothing")] == [23.7, 24.6]
assert [round(mean[name], 3) for name in ("dropout", "label smoothing")] == [0.539, 0.541]

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | label smoothing | $L = (1-s)(-\log p_t) + s \cdot \frac1V \sum_v (-\log p_v)$ |
# | its best logits | $z_t - z_v = \log\frac{1 - s + s/V}{s/V}$ |
# | the paper's rate | $d_{model}^{-1/2} \min(step^{-1/2},\, step \cdot w^{-3/2})$ |
#
# A row of an ablation table says what a change buys *at the learning rate of that row*.
#
# Vaswani et al. 2017 (section 5); Szegedy et al. 2016 (label smoothing); Jordan et al. 2024 (Muon); Sennrich & Zhang 2019 (little data).
