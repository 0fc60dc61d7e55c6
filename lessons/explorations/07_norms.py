# %% [markdown]
# # RMSNorm and DeepNorm
#
# **18 minutes · an exploration of lesson 07 · needs `shakespeare` (5.4 MB)**
#
# Llama, T5, SmolLM2 and many others use **RMSNorm** (Zhang & Sennrich 2019), a layer norm that does not subtract the mean and has no bias. **What is lost if a norm leaves the mean alone?** Then a cure for deep post-norm stacks: a warm-up, or one factor before the norm.

# %%
import torch
from einops import reduce
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

# %%
from collections.abc import Callable
from functools import partial
from course_lib.data import characters, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training
from course_lib.instruments.deep_stack import Stack, redraw
from course_lib.instruments.pictures import add_norm as pictures

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% [markdown]
# ## The formula
#
# Each token is divided by its root mean square $r$, and each column is multiplied by its gain:
#
# $$\mathrm{RMSNorm}(x) = \gamma \odot \frac{x}{r} \qquad r = \sqrt{\tfrac1d \textstyle\sum_c x_c^2 + \epsilon} \qquad \frac{\partial (x/r)}{\partial x} = \frac1r\left(I - \frac{1}{d}\,\frac{x}{r}\frac{x^T}{r}\right)$$
#
# You have written it in lesson 07. In geometry: layer norm goes to a plane first and then to a sphere in it; RMSNorm goes straight to the sphere.

# %%
rms_norm = mine("add_norm/rms_norm")
layer_norm = mine("add_norm/layer_norm")

# %% [markdown]
# **For which tokens do RMSNorm and layer norm agree** (gain 1, bias 0)?

# %%
guess = None  # a condition on the token, in words

# %%
generator = torch.Generator().manual_seed(0)
x, ones = torch.randn(5, 64, generator=generator) + 2, torch.ones(64)
centred = x - reduce(x, "token d -> token 1", "mean")
reveal(guess, "tokens whose mean is 0")
assert torch.allclose(F.layer_norm(x, (64,)), rms_norm(centred, ones), atol=1e-5)
assert not torch.allclose(F.layer_norm(x, (64,)), rms_norm(x, ones), atol=0.1)

# %% [markdown]
# ## Its Jacobian
#
# Layer norm takes two directions out of every gradient: all numbers up, and a longer vector. RMSNorm takes out only the second. **What is the rank of its Jacobian, for a token of 64 numbers?**

# %%
guess = None  # a number

# %%
token = x[0].double()
size = token.square().mean().sqrt()
jacobian = torch.autograd.functional.jacobian(lambda x: rms_norm(x, ones.double(), 0.0), token)
formula = (torch.eye(64) - torch.outer(token, token) / size**2 / 64) / size
assert torch.allclose(jacobian, formula)
reveal(guess, torch.linalg.matrix_rank(jacobian).item())

# %% [markdown]
# Make the token a hundred times as large, and the Jacobian becomes a hundred times as small. Layer norm does the same, with $1/\sigma$.
#
# ## Does the mean matter?
#
# It depends on how much of a token is its mean. Add the same number $a$ to all 64 numbers of random tokens. Layer norm does not notice. RMSNorm does: as $a$ grows, all tokens move towards the one direction $(1, \dots, 1)$, and become alike.

# %% tags=["hide-input"]
tokens = torch.randn(200, 64, generator=generator)
shifts = torch.linspace(0, 6, 25)


def alike(normed):
    """Return the mean cosine of pairs of different tokens."""
    unit = F.normalize(normed, dim=-1)
    cosines = unit @ unit.T
    return ((cosines.sum() - len(unit)) / (len(unit) * (len(unit) - 1))).item()


curves = {
    "RMSNorm": [alike(rms_norm(tokens + a, ones)) for a in shifts],
    "layer norm": [alike(F.layer_norm(tokens + a, (64,))) for a in shifts],
}
title = "A common shift makes tokens alike under RMSNorm, not under layer norm"
shift, cosine = "number added to each of the 64 (standard deviation 1)", "mean cosine of two tokens"
figure, ax = plots.axes(title, shift, cosine, size=(6.4, 3.2))
for (name, curve), colour in zip(curves.items(), plots.COLOURS):
    ax.plot(shifts, curve, color=colour)
    ax.text(4.4, curve[18] - 0.08, name, color=colour)
ax.set(ylim=(-0.1, 1.05))
assert curves["RMSNorm"][-1] > 0.95 and abs(curves["layer norm"][-1]) < 0.02
plots.show(
    figure,
    "Mean cosine of two different normed tokens against the number added to all their entries. "
    f"Layer norm stays at 0. RMSNorm rises from 0 to {curves['RMSNorm'][4]:.2f} at a shift of 1 and "
    f"{curves['RMSNorm'][-1]:.2f} at 6.",
)

# %% [markdown]
# A layer that reads such tokens can still take the shift away: $xW$ does not contain it if the columns of $W$ sum to 0. So RMSNorm leaves to the weights what layer norm does by force. Zhang & Sennrich 2019 report that this does no harm: their models are as good as with layer norm, and train in 7 to 64 % less time.

# %% [markdown]
# ## Warm-up
#
# Lesson 07 trained thirty-two post-norm blocks, which needed small initial weights, or ten times the steps. The authors of 2017 let the learning rate begin near 0 and rise for thousands of steps, a **warm-up** (section 5.3 of the paper). **DeepNorm** (Wang et al. 2022) is post-norm with one factor, which gives the residual path more weight than the layer, as small weights do:
#
# $$\mathrm{DeepNorm}(x) = \mathrm{LN}(\alpha\, x + F(x)) \qquad \alpha = (2N)^{1/4}$$
#
# Here are both, and pre-norm, in eight blocks from torch's initial weights, with a long warm-up and with none:

# %% tags=["hide-input"]
kept = results.load("warm_up")["figures"]
pictures.warm_up(kept)

# %% [markdown]
# In eight blocks post-norm learns at a rate of 0.01 with a warm-up, and only up to 0.003 without. DeepNorm tolerates the next higher rate each time. Pre-norm learns at every rate tried, with a warm-up and without.
#
# ## Find the bug
#
# Somebody wrote DeepNorm, and trained deep stacks with it. There was no error, and no gain over post-norm. One line is wrong. Mend it.

# %%
# exercise: add_norm/mend_block

# %%
check("add_norm/mend_block", DeepNorm)

# %% [markdown]
# Now train eight of your blocks at the rate of 0.01, without warm-up, beside eight of post-norm. The frequency baseline of lesson 07 has a loss of 3.36. Which of the two get below it?

# %%
DeepNorm, PostNorm = mine("add_norm/mend_block"), mine("add_norm/post_norm")
needs("shakespeare")

# %% tags=["training"]
learning, held_out = characters.split()
orders = {"post-norm": PostNorm, "your DeepNorm": partial(DeepNorm, alpha=(2 * 8) ** 0.25)}
budget = {"steps": 150, "learning_rate": 0.01, "warm_up": 0.0, "seconds": 30}


def next_character(model, batch):
    read, wanted = batch
    return F.cross_entropy(model(read).flatten(0, 1), wanted.flatten())


# %% tags=["training"]
for name, order in orders.items():
    with training.seeded(SEED):
        model = redraw(Stack(len(characters.vocab()), 8, 32, 4, order), "torch's default", SEED)
    training.train(model, characters.batches(learning, 16, 16, SEED), next_character, **budget)
    with torch.no_grad():
        loss = next_character(model, next(characters.batches(held_out, 16, 512, seed=0)))
    print(f"{name:14} {loss:.2f}")

# %% [markdown]
# One factor before the norm, and the stack of 2017 learns without a warm-up.
#
# Wang et al. also draw smaller initial weights, and with both trained a thousand layers.
#
# Vaswani et al. 2017, section 5.3; Xiong et al. 2020 (what warm-up is for); Zhang & Sennrich 2019 (RMSNorm); Wang et al. 2022 (DeepNorm).
