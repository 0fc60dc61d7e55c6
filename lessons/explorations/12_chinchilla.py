# %% [markdown]
# # How well must an exponent be known?
#
# **25 minutes · an exploration of lesson 12 · needs nothing**
#
# In 2022 a laboratory fitted one law to hundreds of models, and changed what everybody trains. nanoGPT's notebook `scaling_laws.ipynb` puts a budget into the printed law, gets another size than the paper's own table, and says: "there is some unresolved disagreement here too...". **How well must a law's numbers be known before you spend a budget on them?** You derive what the law recommends, and find where the disagreement comes from.

# %%
import numpy as np
import torch
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import isoflop, results
from course_lib.instruments.pictures import scaling as pictures

# %% [markdown]
# ## One law for all runs
#
# Hoffmann et al. 2022 fit the loss of a model with $N$ parameters that has read $D$ tokens by a law with a floor $E$, the loss that no model can remove:
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
# ## The disagreement
#
# The law is here three times: as printed (Hoffmann's eq. 10), before its exponents were rounded for print, and as Besiroglu et al. 2024 fitted it again, to losses that they read off the paper's figure. They are to explain this row:
#
# | operations | size in the paper's table | its tokens | size in the notebook |
# |-:|-:|-:|-:|
# | $2.21 \cdot 10^{19}$ | 400 million | 9.2 billion | 316 million |

# %% tags=["nbval-check-output"]
laws = {  # (E, a, b, alpha, beta)
    "printed": (1.69, 406.4, 410.7, 0.34, 0.28),
    "before the rounding": (1.69, 406.4, 410.7, 0.3392, 0.2849),
    "fitted again": (1.8172, 482.01, 2085.43, 0.3478, 0.3658),
}
best = {name: compute_optimal(2.21e19, *law) for name, (_, *law) in laws.items()}
for name, (n, d) in best.items():
    print(f"{name:20} {n / 1e6:3.0f} million parameters, {d / 1e9:5.2f} billion tokens")

# %% [markdown]
# Rounding is most of the disagreement. A little more is the notebook's coarse grid of sizes. The budget is a very large number, and it is raised to a power, so a small change of an exponent moves the result far.
#
# At this budget the new fit agrees with the old one. Does it at a larger one?

# %% [markdown]
# ## Gopher and Chinchilla
#
# Their laboratory had trained **Gopher**. For the same operations they then trained **Chinchilla**, a quarter of its size on four times the text. It was better at nearly every task.
#
# | | operations | parameters | tokens for each |
# |:-|-:|-:|-:|
# | Gopher | $5.76 \cdot 10^{23}$ | 280 billion | 1 |
# | Chinchilla | the same | 70 billion | 20 |
#
# **By how much do the three laws' sizes differ at this budget: by a tenth, by half, or more than twice?**

# %%
guess = None  # one of the three

# %% tags=["nbval-check-output"]
BUDGET = 5.76e23
best = {name: compute_optimal(BUDGET, *law) for name, (_, *law) in laws.items()}
for name, (n, d) in best.items():
    print(f"{name:20} {n / 1e9:3.0f} billion parameters, {d / n:3.0f} tokens each")
reveal(guess, f"{max(best.values())[0] / min(best.values())[0]:.1f} times")

# %% [markdown]
# The new fit recommends Chinchilla's size. The old one agrees with it where models were measured, and is far from it at this budget, many thousand times as large. Here rounding alone raises the tokens for each parameter by half.
#
# How well are *your* exponents known? Here are the valleys of the lesson, once from each seed of their runs, and from all seeds together:

# %% tags=["nbval-check-output"]
rows = results.load("scaling")["figures"]["rows"]
budgets = sorted({row["flops"] for row in rows})
for seeds in ((0,), (1,), (2,), (0, 1, 2)):
    own = [row for row in rows if row["seed"] in seeds]
    valleys = [[(x["parameters"], x["loss"]) for x in own if x["flops"] == c] for c in budgets]
    exponent, _ = np.polyfit(np.log(budgets), np.log([isoflop.minimum(x)[0] for x in valleys]), 1)
    print(f"seeds {seeds}: the best size grows as C^{exponent:.2f}")

# %% [markdown]
# One failed run of the last seed, in its first valley, moves the exponent by a tenth. That matters little for the next budget, and much for a distant one:
#
# | budget | error of the size |
# |-:|-:|
# | 4 times as large | 15 % |
# | $10^{10}$ times as large | a factor of ten |
#
# ## A wrong size by the formula
#
# In nats, Gopher's shape is only a few hundredths above the best. **How many times the operations that a best-sized model needs did it take?**

# %%
guess = None  # a factor


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
models = {"Chinchilla": 70e9, "Gopher": 280e9}
curves = {}
for name in ("printed", "fitted again"):
    grid = torch.logspace(9.9, 11.9, 60).tolist()
    found = [(n, waste(n, BUDGET, laws[name])) for n in models.values()]
    curves[name] = [(n, waste(n, BUDGET, laws[name])) for n in grid], found
    print(f"{name:15}", {model: round(times, 1) for model, (_, times) in zip(models, found)})
reveal(guess, [round(found[1][1], 1) for _, found in curves.values()])
pictures.laws(curves, models)

# %% [markdown]
# Chinchilla is twice as large as the printed law wants, and that costs a fifth. Gopher is four times as large as the new fit wants, and that nearly doubles the cost.
#
# ## What to remember
#
# | | |
# |:-|:-|
# | law | $L = E + a N^{-\alpha} + b D^{-\beta}$ |
# | best size | $\alpha a N^{-\alpha} = \beta b D^{-\beta}$, with $6ND = C$ |
#
# Ask how well an exponent is known, and how steep the valley is there, before you spend a budget on it.

# %% [markdown]
# ## Test yourself
#
# <details><summary>α = β. Twice the budget: how many times as large should the model be?</summary>
#
# √2 times, and it should read √2 times as many tokens.
# </details>

# %% [markdown]
# ## Further reading
#
# Hoffmann et al. 2022 (three ways to the same question, section 3); Besiroglu et al. 2024.
