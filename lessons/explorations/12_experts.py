# %% [markdown]
# # A mixture of experts
#
# **45 minutes · an exploration of lesson 12 · needs nothing**
#
# In lesson 12 each parameter costs two operations for every token that passes it. So a layer that is to store more must compute more. **Can a layer store more without computing more?** You build one that does, fill it with facts until it overflows, and see what the trick costs.

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %%
from collections.abc import Callable

from course_lib.feed_forward import FeedForward
from torch.utils.flop_counter import FlopCounterMode

softmax = mine("attention/softmax")

# %% [markdown]
# ## Choose, then compute
#
# A **mixture of experts** has several feed-forward networks, the **experts**, and sends each token to a few of them. A small matrix, the **router**, scores the experts. The $k$ best are used, weighted by $\mathrm{softmax}_k$, the softmax over these $k$ scores alone (Shazeer et al. 2017):
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
    role = "network" if i in shares else "dim"
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
    "networks only. Their results, times the router's weights, are added to y. Experts 0 and 3, "
    "grey, do not see the token.",
)

# %% [markdown]
# First the router.

# %%
# exercise: mixture/route

# %%
check("mixture/route", route)

# %%
route = mine("mixture/route")

# %% [markdown]
# Then the layer. Each expert should see only the tokens that chose it, or nothing is saved.

# %%
# exercise: mixture/layer

# %%
check("mixture/layer", Mixture)

# %%
Mixture = mine("mixture/layer")

# %% [markdown]
# **Take 16 experts, each half as wide as one network with $d_{model} = 32$, $d_{ff} = 64$; a token uses two. How many times the parameters of that network does the mixture have, and how many times the operations?**

# %%
guess = None  # (parameters, operations)


# %% tags=["hide-input"]
def size(layer):
    """Return a layer's parameters, and its operations for a token."""
    with FlopCounterMode(display=False) as counter:
        layer(torch.randn(64, 32))
    parameters = sum(weight.numel() for weight in layer.parameters())
    return parameters, counter.get_total_flops() // 64


# %%
one, many = size(FeedForward(32, 64)), size(Mixture(32, 32, experts=16, k=2))
ratio = [round(b / a, 1) for a, b in zip(one, many)]
reveal(guess, tuple(ratio))
print(f"one network {one}, 16 half-wide experts {many}: {ratio[0]} and {ratio[1]} times")
assert ratio == [8.2, 1.1]

# %% [markdown]
# Eight times the parameters at the same operations, and a little for the router. What are they good for?
#
# ## How many facts?
#
# Where *capacity* is what counts. A **fact** here is a random vector, the key, and one of 64 values, drawn at random: a telephone book. There is no rule to find, so each right answer was stored. 8,192 facts of $\log_2 64 = 6$ bits each are 49,152 bits, for a layer of 4,192 parameters.


# %%
class Store(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer, self.output = layer, nn.Linear(32, 64)

    def forward(self, keys):
        return self.output(F.layer_norm(keys + self.layer(keys), (32,)))


# %% tags=["hide-input"]
draws = torch.Generator().manual_seed(SEED)
keys = torch.randn(8192, 32, generator=draws)
values = torch.randint(64, (8192,), generator=draws)


def facts():
    """Yield batches of 512 facts without end, all of them once in each round."""
    generator = torch.Generator().manual_seed(SEED)
    while True:
        for rows in torch.randperm(8192, generator=generator).split(512):
            yield keys[rows], values[rows]


def stored(model):
    """Return the share of the facts that the model answers rightly."""
    with torch.no_grad():
        return (model(keys).argmax(-1) == values).float().mean().item()


# %% [markdown]
# Train both for 1,500 steps at the same learning rate. **What share of the 8,192 facts does each answer rightly? (The most frequent value is right for 2 %.)**

# %%
guess = None  # (one network, 16 experts)

# %% tags=["training"]
models = {}
for name, make in (
    ("one network", lambda: FeedForward(32, 64)),
    ("16 experts", lambda: Mixture(32, 32, experts=16, k=2)),
):
    with training.seeded(SEED):
        models[name] = Store(make())
    training.train(
        models[name], facts(), lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]),
        steps=1500, learning_rate=0.03, seconds=30,
    )  # fmt: skip

# %% tags=["training"]
came = {name: round(stored(model), 3) for name, model in models.items()}
reveal(guess, tuple(came.values()))
claim = "at equal operations, 16 experts store more than three times as many facts"
training.expect(claim, came["16 experts"] > 3 * came["one network"], came, *models.values())

# %% [markdown]
# Is the one network only slow? Give it four times the steps:

# %% tags=["training"]
with training.seeded(SEED):
    longer = Store(FeedForward(32, 64))
training.train(
    longer, facts(), lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]),
    steps=6000, learning_rate=0.03, seconds=30,
)  # fmt: skip
claim = "after four times the steps the one network stores less than 30 %"
training.expect(claim, stored(longer) < 0.3, round(stored(longer), 3), longer)

# %% [markdown]
# No: it is full. Now in between, with three seeds, the best of four learning rates for each model, and two controls: a network with as many *parameters* as the largest mixture, and a mixture whose router stays as it was drawn, and is never trained.

# %%
kept = results.load("experts")["figures"]
sizes = kept["sizes"]


def best(runs):
    """Return the shares right at the learning rate with the highest mean, and that rate."""
    rate = max(runs, key=lambda rate: sum(run["right"] for run in runs[rate]))
    return [run["right"] for run in runs[rate]], rate


right = {name: best(runs)[0] for name, runs in kept["runs"].items()}
mean = {name: sum(shares) / len(shares) for name, shares in right.items()}

# %% tags=["hide-input"]
title = "At equal operations, more experts store more facts"
figure, ax = plots.axes(title, "parameters of the layer", "facts stored, %", size=(7.4, 3.8))
line = ["2 experts", "4 experts", "8 experts", "16 experts"]
at = [sizes[name]["parameters"] for name in line]
ax.semilogx(at, [100 * mean[name] for name in line], color=plots.COLOURS[0], linewidth=1.5)
for name, place in zip(line, at):
    ax.plot([place] * 3, [100 * x for x in right[name]], "o", color=plots.COLOURS[0], markersize=4)
    ax.text(
        place * 0.93, 100 * mean[name] + 2, name, ha="right", color=plots.COLOURS[0], size="small"
    )
for name, text, y in (
    ("dense", "one network,\nequal operations", 10),
    ("dense, 8 times as wide", "one network, equal parameters,\n8 times the operations", 88),
):
    place = sizes[name]["parameters"]
    ax.plot([place] * 3, [100 * x for x in right[name]], "s", color=plots.COLOURS[1], markersize=5)
    ax.text(place * 1.12, y, text, color=plots.COLOURS[1], size="small", va="center")
ax.axhline(1.9, color="0.5", linestyle=":", linewidth=1)
ax.text(20_000, 3.2, "most frequent value", color="0.4", size="small")
ax.set_xticks(at, [f"{place:,}" for place in at])
ax.minorticks_off()
ax.set(xlim=(2_700, 110_000), ylim=(0, 108))
plots.show(
    figure,
    "Share of 8,192 facts that are stored, against the parameters of the layer, three seeds. 2, 4, "
    "8 and 16 half-wide experts, of which two are used: "
    + ", ".join(f"{mean[name]:.0%}" for name in line)
    + f". One network with equal operations {mean['dense']:.0%}; with equal parameters, at 8 times "
    f"the operations, {mean['dense, 8 times as wide']:.0%}.",
)

# %% tags=["hide-input"]
for name, runs in kept["runs"].items():
    shares, rate = best(runs)
    spent = sum(run["cpu_seconds"] for run in runs["0.1"]) / 3
    print(f"{name:31} {sizes[name]['operations']:7,} operations {spent:5.1f} s", end="  ")
    print("right", " ".join(f"{x:.1%}" for x in shares), f" rate {rate}")
assert max(right["dense"]) < 0.19 and abs(mean["2 experts"] - mean["dense"]) < 0.02
assert 0.3 < mean["4 experts"] < 0.34 and 0.69 < mean["8 experts"] < 0.72
full = ("16 experts", "16 experts, router not trained", "dense, 8 times as wide")
assert all(min(right[name]) > 0.999 for name in full)
assert max(kept["frequent"]) < 0.02

# %% [markdown]
# With as many parameters, both store all 8,192 facts, the mixture at a seventh of the operations. (A full test cannot tell which could hold more.) With two experts, both always used, it is the dense network in two halves, and stores as much. So the gain comes with the parameters. (The rates of 4 and 8 experts were best at the upper end of the grid or next to it; from 0.1 to 0.3 they change by less than 0.02.)

# %% [markdown]
# Two surprises. **An untrained router fills this test, too.** For facts without a rule, any fixed division among the experts serves, as long as it is roughly even (Roller et al. 2021 divide by a hash of the token). And **the clock disagrees with the count**: the mixture took more *seconds* than the dense network with eight times its operations. Its many small products and its sorting of tokens keep one core busy; the saving should show with large matrices and many tokens; we have not measured that.

# %% [markdown]
# ## When all choose the same
#
# Our random keys point in all directions. The hidden states of a trained model share a large component: give all keys one too, twice as large as what they differ in. Then the router's scores are largely the same for all keys, and most choose the same few experts.

# %% [markdown]
# Nothing in the formula objects. A much-chosen expert learns more, and may be chosen even more often. Fedus et al. 2022 add a small loss against this. With expert $e$'s share $f_e$ of all choices and its mean probability $\bar p_e$ in a softmax over all experts,
#
# $$L_{balance} = experts \cdot \sum_e f_e\, \bar p_e .$$
#
# They send each token to one expert; we count all $k$ choices. The counts $f_e$ have no gradient, so the loss acts through $\bar p_e$.

# %%
# exercise: mixture/load_balance

# %%
check("mixture/load_balance", load_balance)

# %%
load_balance = mine("mixture/load_balance")

# %% [markdown]
# With equal use it is 1. The reverse does not hold: a router that is undecided, with all $\bar p_e$ equal, gives 1 whatever it chooses.

# %% tags=["nbval-check-output"]
undecided = torch.full((6, 4), 0.25)
print(load_balance(undecided, torch.zeros(6, 1).long()))  # all tokens to expert 0
assert load_balance(undecided, torch.zeros(6, 1).long()) == 1

# %% [markdown]
# Now 16 experts on keys with the shared component, at the best of four rates: without the balance loss, with a tenth of it, and with all of it. **What share of the facts is stored without it, and with it?**

# %%
guess = None  # (without, with)

# %% tags=["hide-input"]
with_shared = {name: best(runs) for name, runs in kept["with_shared"].items()}
without, balanced, _ = [name for name in with_shared if "experts" in name]
average = {name: sum(shares) / 3 for name, (shares, _) in with_shared.items()}
reveal(guess, (round(average[without], 2), round(average[balanced], 2)))
for name, (shares, rate) in with_shared.items():
    busiest = [run["busiest"] for run in kept["with_shared"][name][rate]]
    used = "" if None in busiest else f"  busiest expert {max(busiest)} times an equal share"
    print(f"{name:31} rate {rate:5} right", " ".join(f"{x:.0%}" for x in shares) + used)
assert {rate for _, rate in with_shared.values()} == {"0.01"}
assert min(with_shared[balanced][0]) > max(with_shared[without][0]) + 0.15
assert max(with_shared["dense"][0]) < 0.13
assert min(with_shared["dense, 8 times as wide"][0]) > max(with_shared[balanced][0]) + 0.1

# %% [markdown]
# Such keys are harder for all. With the balance loss the mixture stores half as much again, and still more than five times as much as the dense network of its operations. The dense one of its size is ahead. So a balance loss pays where the router's scores have something in common, and changed nothing above, where they had not.

# %% [markdown]
# ## What this does not show
#
# Facts without a rule are the best case for experts: nothing has to be learned twice. Where a rule must be found, each expert sees only its share of the examples. Large language models have both. Many of them are mixtures: DeepSeek-AI 2024 reports 671 billion parameters, of which a token uses 37 billion (reported, not measured here). All 671 must be in memory, since any token may choose any expert.

# %% [markdown]
# ## Break it
#
# - Give `Mixture` $k = 1$. The softmax over one score is 1, whatever the score. Does the router's matrix still get a gradient? And from the balance loss?
# - Let the values follow from the keys by a rule, such as the largest of 64 fixed products, and test on new keys. Do 16 experts still win?

# %% [markdown]
# ## What to remember
#
# A mixture multiplies a layer's parameters by the number of experts and its operations by $k$ alone. Where capacity is short that is a pure gain in operations: here it stores all facts, as a dense layer of its size does, at a seventh of the work. It is paid in memory and, in small models, in seconds. A balance loss keeps the router from choosing the same experts for all.
#
# | | |
# |:-|:-|
# | mixture | $y = \sum_{e \in \mathrm{top}_k} \mathrm{softmax}_k(xW)_e\, \mathrm{FFN}_e(x)$ |
# | balance loss | $experts \cdot \sum_e f_e\, \bar p_e$ |
#
# Shazeer et al. 2017; Fedus et al. 2022; Roller et al. 2021; DeepSeek-AI 2024. In 2017 a mixture was the best single model before the Transformer in its table. Lectures: L1 and L2.
