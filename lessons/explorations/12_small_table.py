# %% [markdown]
# # The table of 2017, at small scale
#
# **10 minutes · an exploration of lesson 12 · needs nothing**
#
# The rows of the table of 2017 have different costs, authors and code. **Which architecture wins if all get the same number of operations, the same data and the same training loop?**

# %%
from course_lib.exercises import mine, reveal
from course_lib.instruments import plots, results
from course_lib.instruments.pictures import scaling as pictures

estimate_parameters = mine("scaling/parameters")
training_flops = mine("scaling/training_flops")

# %% [markdown]
# ## The table of 2017
#
# A table in Vaswani et al. 2017 made the Transformer famous. **BLEU** (lesson 11) scores translations from English to German; the cost is printed in FLOPs.

# %% [markdown]
# > **Where the lectures slip (D07).** L3 explains the FLOPs of this table as "Floating point operations per second". Per second is a *rate*, which a processor has (FLOP/s). A training costs a *number* of **floating-point operations** (FLOPs), the same on a slow machine and on a fast one.
#
# And nobody counted them: section 6.1 of the paper multiplies training time, GPUs and an assumed rate. You can count. A step had about 25,000 source and 25,000 target tokens (section 5).

# %% tags=["nbval-check-output"]
counted = {}
for name, d, steps, printed in (("base", 512, 1e5, 3.3e18), ("big", 1024, 3e5, 2.3e19)):
    # a source token passes the encoder, a target token the decoder and the output layer
    encoder = estimate_parameters(6, d, d, 4 * d)
    decoder = encoder + 6 * 4 * d * d + 37_000 * d
    counted[f"Transformer, {name}"] = flops = training_flops(encoder + decoder, 25_000 * steps)
    print(f"{name}: counted {flops:.1e}, {flops / printed:.0%} of what is printed")

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
pictures.table_of_2017(quoted, counted)

# %% [markdown]
# The GPUs did less than was assumed. The share of the peak rate that a training reaches is called **model FLOPs utilization** (MFU, Chowdhery et al. 2022). So the base model took even fewer operations than printed. The grey points are as printed.

# %% [markdown]
# ## Six models, one budget
#
# The task is lesson 01's: from a word's letters to its sounds, a translation that takes about a minute of one core. Each model gets $10^{12}$ operations, counted by torch as in lesson 12. German would be closer to the paper, but lesson 11's translator took 18 minutes, and this table needs 24 trainings for each seed.

# %% [markdown]
# | model | what it is |
# |:-|:-|
# | GRU | one layer of 128 in encoder and decoder, one vector between them (lesson 01) |
# | GRU with attention | the same, with lesson 02's attention |
# | convolutions | ConvS2S at small scale (Gehring et al. 2017): three layers with windows of three tokens and a gate; attention reads the source |
# | Transformer, small | two layers in each stack, $d_{model} = 64$ |
# | Transformer, big | the same, $d_{model} = 128$ |
# | mixture of experts | the small one with eight half-wide feed-forward networks in each layer, of which a token uses two |

# %% tags=["hide-input"]
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
assert round(ours["cpu_seconds"] / 60) == 18

# %% [markdown]
# Each has the best of four learning rates, three times apart from each other, chosen by one seed at a quarter of the budget. (Those trials are not counted, and the small Transformer and its mixture ended with different rates.) Smaller budgets are training runs of their own, in which the rate falls to zero as well.
#
# **Which two of the six will lead?**

# %%
guess = None  # a set of two names


# %% tags=["hide-input"]
def bleus(name):
    return [row["bleu"] for row in ends[name]]


order = sorted(ends, key=lambda name: -sum(bleus(name)))
reveal(guess, set(order[:2]))
for name in order:
    right = ", ".join(f"{row['right']:.0%}" for row in ends[name])
    print(f"{name:18} BLEU {bleus(name)}, words that are all right: {right}")
leaders = bleus(order[0]) + bleus(order[1])
assert {*order[:2]} == {"convolutions", "GRU with attention"} and order[-1] == "Transformer, big"
assert min(leaders) > max(x for name in order[2:] for x in bleus(name)) + 2
assert max(bleus(order[-1])) < min(x for name in order[:-1] for x in bleus(name)) - 2
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
    ax.plot([1.01e12, 1.12e12], [curve[-1], lowest], color=colour, linewidth=0.6)
    ax.text(1.15e12, lowest, name, color=colour, va="center")
ax.set_xticks(budgets, [f"{budget / 1e12:g} × $10^{{12}}$" for budget in budgets])
ax.minorticks_off()
ax.set(xlim=(1.1e11, 2.4e12), ylim=(0, 75))
ends_at = (f"{name} {bleu_at(shares[0], name):.0f} and {bleu_at(1, name):.0f}" for name in order)
plots.show(
    figure,
    "BLEU of the sounds against training operations, logarithmic, four budgets from 1.25e11 to "
    f"1e12. At the smallest and at the largest: {', '.join(ends_at)}.",
)

# %% [markdown]
# The convolutions and the GRU with attention are ahead of the rest, and the big Transformer is last. The two in front are less than one BLEU apart: in every seed, but all on the same test words. The small Transformer and the mixture overlap: do not ask which of them won.


# %% tags=["hide-input"]
def spread(name, share):
    """Return how far apart the seeds are."""
    found = [row for row in small["rows"] if (row["share"], row["name"]) == (share, name)]
    return max(row["bleu"] for row in found) - min(row["bleu"] for row in found)


print("largest spread of three seeds:", f"{max(spread(name, 1) for name in order):.1f} BLEU")
assert max(spread(name, 1) for name in order) < 2
twins = [bleus(name) for name in ("mixture of experts", "Transformer, small")]
assert max(map(min, twins)) < min(map(max, twins)), "their seeds overlap"
for name in ("Transformer, small", "Transformer, big"):
    behind = [bleu_at(share, "GRU with attention") - bleu_at(share, name) for share in shares]
    print(f"{name}: behind by", ", ".join(f"{bleu:.1f}" for bleu in behind), "BLEU")
    assert behind == sorted(behind, reverse=True)
    assert behind[0] > 20 and behind[-1] < {"Transformer, small": 8, "Transformer, big": 25}[name]

# %% [markdown]
# ## Why is this not the paper's order?
#
# **The budget.** These lines may say how fast a model learns, not how far it comes. Both Transformers' distance shrinks with every budget, and all lines rise. (A Transformer smaller than ours may do better here.) For the big one, $10^{12}$ operations are 306 steps; the paper gave its big model seven times the cost of its base.
#
# **The cost.** A recurrent network's steps wait for each other. On parallel hardware that costs time, not operations, and the paper's costs were times. On our one core both took about as long:

# %%
took = {name: sum(row["cpu_seconds"] for row in ends[name]) / len(ends[name]) for name in order}
print("CPU-seconds:", ", ".join(f"{name} {seconds:.0f}" for name, seconds in took.items()))
assert all(row["steps"] < 310 for row in ends["Transformer, big"])
assert 0.6 < took["GRU with attention"] / took["Transformer, small"] < 1.6

# %% [markdown]
# **The task.** A sound depends on a few letters at about the same place of the word. Windows and recurrence have this order built in, and a Transformer must learn it. That is a supposition; these runs do not test it.

# %% [markdown]
# ## What to remember
#
# At one small budget, on one short task, attention gave the GRU 10 BLEU, and it then beat two Transformers, whose sizes were not searched. Who wins depends on the budget, on the task, and on whether you count operations or time.
#
# Vaswani et al. 2017, table 2; Gehring et al. 2017 (ConvS2S). Lectures: L1, L2 and L3.
