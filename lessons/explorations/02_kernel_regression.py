# %% [markdown]
# # Attention is kernel regression
#
# **25 minutes · an exploration of lesson 02 · needs nothing**
#
# Statisticians averaged with weights made of similarities fifty years before anyone called it attention. **What does their method say about ours?** You build both, and find that they are the same function with other keys and scores.

# %%
import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float
from torch import Tensor, nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots


# %% tags=["hide-input"]
def dot_scores(q, k):
    return q @ k.mT


def attend(scores, values):
    return torch.softmax(scores, -1) @ values


# %% [markdown]
# ## A curve from dots
#
# Thirty noisy measurements $(x_j, y_j)$ of a curve are given. What is $y$ at a new place $x$? Nadaraya 1964 and Watson 1964 take an average of all $y_j$ in which near measurements count more. With the Gaussian kernel of width $h$:
#
# $$\hat y(x) = \sum_j \alpha_j\, y_j \qquad \alpha_j = \frac{\exp\left(-(x - x_j)^2 / 2h^2\right)}{\sum_l \exp\left(-(x - x_l)^2 / 2h^2\right)}$$

# %%
generator = torch.Generator().manual_seed(0)
x = 6 * torch.rand(30, generator=generator)
y = x.sin() + 0.2 * torch.randn(30, generator=generator)
places = torch.linspace(0, 6, 200)

# %% [markdown]
# This is a soft lookup: the places are queries, the $x_j$ are keys, the $y_j$ values, and the score is minus half the squared distance, divided by $h^2$. So the average is the weighted sum of lesson 02. **What does the curve look like with a very small $h$, and with a very large one?**

# %%
guess = None  # for instance ("a line through all dots", "a flat line")


# %%
def regression(h):
    scores = -((places[:, None] - x) ** 2) / (2 * h**2)
    return attend(scores, y[:, None])[:, 0]


small, large = regression(0.01), regression(30)
nearest = y[(places[:, None] - x).abs().argmin(-1)]
is_nearest = bool((small - nearest).abs().median() < 1e-3)
is_flat = bool((large - y.mean()).abs().max() < 0.05)
reveal(guess, ("the nearest measurement" * is_nearest, "their mean everywhere" * is_flat))
assert is_nearest
assert is_flat

# %% tags=["hide-input"]
figure, ax = plots.axes("A width between the extremes finds the curve", "x", "y", size=(7, 3.6))
ax.plot(x.tolist(), y.tolist(), "o", color="0.5", markersize=4)
ax.plot(places.tolist(), places.sin().tolist(), color="0.6", linestyle="--", linewidth=1)
for h, colour in zip((0.05, 0.4, 3.0), plots.COLOURS):
    curve = regression(h).tolist()
    ax.plot(places.tolist(), curve, color=colour)
    ax.text(6.1, curve[-1], f"h = {h}", color=colour, va="center")
plots.show(
    figure,
    "Thirty dots around a sine curve, and three kernel regressions. With h = 0.05 the line jumps "
    "from dot to dot, with h = 0.4 it follows the sine, and with h = 3 it is nearly flat.",
)

# %% [markdown]
# ## From distances to dot products
#
# Vectors are similar if they are near each other. Multiply the squared distance out:
#
# $$-\tfrac12 \lVert q - k_j\rVert^2 = q \cdot k_j - \tfrac12\lVert q\rVert^2 - \tfrac12\lVert k_j\rVert^2$$
#
# $\lVert q\rVert^2$ is the same for all keys, and a softmax does not notice what is added to every score. If all keys have the same norm, $\lVert k_j\rVert^2$ drops out too. **So for keys of equal norm, how far apart are the weights by distance and by dot product?**

# %%
guess = None  # a number

# %%
queries = torch.randn(5, 8, generator=generator, dtype=torch.float64)
keys = torch.randn(20, 8, generator=generator, dtype=torch.float64)


def difference(keys):
    by_distance = torch.softmax(-(torch.cdist(queries, keys) ** 2) / 2, -1)
    return float((by_distance - torch.softmax(dot_scores(queries, keys), -1)).abs().max())


equal = nn.functional.normalize(keys, dim=-1)
reveal(guess, round(difference(equal), 10))
print(f"with keys of different norms: {difference(keys):.2f}")
assert difference(equal) < 1e-10 < 0.1 < difference(keys)

# %% [markdown]
# So dot-product attention is Nadaraya-Watson regression with a Gaussian kernel, if the keys have equal norms; where they have not, longer keys get more weight than nearer ones. What attention adds is learning: queries, keys and values come from layers that are trained, so the model learns *which* similarity counts.
#
# ## Build: a lookup with a temperature
#
# The width of the kernel is the temperature of the softmax: $h^2 = \tau$. Put all of it into one function, for one query or many.

# %%
# exercise: attention/soft_lookup

# %%
check("attention/soft_lookup", soft_lookup)

# %%
soft_lookup = mine("attention/soft_lookup")
found = soft_lookup(queries, equal, equal, 0.5)
by_distance = torch.softmax(-(torch.cdist(queries, equal) ** 2) / (2 * 0.5), -1)
assert torch.allclose(found, by_distance @ equal)

# %% [markdown]
# A small width trusts the nearest measurement, a large one averages the noise away. Attention has the same choice to make, and lesson 06 makes it: it divides the scores by $\sqrt{d_k}$, so that a softmax over keys at random is neither flat nor sharp.
#
# Nadaraya 1964, Watson 1964 (kernel regression); Tsai et al. 2019 (attention as a kernel). Titles and links: docs/REFERENCES.md.
