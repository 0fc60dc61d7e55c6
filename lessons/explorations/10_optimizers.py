# %% [markdown]
# # Which optimizer?
#
# **25 minutes · an exploration of lesson 10 · needs `shakespeare` (5.4 MB)**
#
# Every lesson trains with AdamW. In 2025 a model of a trillion parameters, Kimi K2, was trained with another optimizer, Muon (Bai et al. 2025), and PyTorch now brings it as `torch.optim.Muon`. **What does an optimizer do with a gradient, and what does a better one buy?**

# %%
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from course_lib.data import characters, needs, shakespeare
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import results
from course_lib.instruments.pictures import language_model as pictures

# %% tags=["hide-input"]
ladder = results.load("language_model")["figures"]
pictures.ladder(ladder, "Two steps save most: Muon, and a wider model in 16 bits")

# %% [markdown]
# These are language models like lesson 10's. Each had the same 341 seconds of one core, and each row adds one idea to the row above it. This page is about the first row that goes far below counting.
#
# ## AdamW: every entry by itself
#
# With the gradient $g$ of step $s = 1, 2, \dots$, entry by entry (Kingma & Ba 2015; Loshchilov & Hutter 2019):
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2$$
#
# $$\theta \leftarrow (1 - \eta \lambda)\, \theta - \eta\, \frac{\hat m}{\sqrt{\hat v} + \epsilon} \qquad \hat m = \frac{m}{1 - \beta_1^s} \qquad \hat v = \frac{v}{1 - \beta_2^s}$$

# %% [markdown]
# $m$ averages recent gradients, so that the noise of single batches cancels. $\sqrt{\hat v}$ is the gradient's usual size; dividing by it makes most steps at most about $\eta$, whatever the scale of the gradient. Both averages begin at 0, so early ones are too small; the denominators correct that. The **weight decay** $\lambda$ shrinks the parameters. **After the first step, by how much has a parameter moved whose gradient was 0.001, with $\eta = 0.1$ and no decay?**

# %%
guess = None

# %%
# exercise: adamw/step

# %%
check("adamw/step", adamw_step)

# %%
adamw_step = mine("adamw/step")

# %% tags=["nbval-check-output"]
zero = torch.zeros(2)
moved, _, _ = adamw_step(zero, torch.tensor([0.001, 10.0]), zero, zero, 1, 0.1, 0.0)
reveal(guess, round(-moved[0].item(), 3))
print(moved.tolist())

# %% [markdown]
# Both gradients move their parameter by the learning rate. Now your step trains a model: 77 × 77 free numbers, row $w$ the logits of what follows character $w$. Lesson 10's bigram model is the best that such a model can be on its text.

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
text = shakespeare.complete_works()[:1_003_855]
known = characters.Characters(text)
tokens, vocab = known.encode(text), len(known)
counts = torch.ones(vocab, vocab)
counts.index_put_((tokens[:-1], tokens[1:]), torch.tensor(1.0), accumulate=True)
counted = F.cross_entropy((counts / counts.sum(-1, keepdim=True)).log()[tokens[:-1]], tokens[1:])
print(f"counting pairs: {counted:.3f} nats on the text it has counted")

# %%
weights = torch.zeros(vocab, vocab, requires_grad=True)
first, second = torch.zeros(2, vocab, vocab)
generator = torch.Generator().manual_seed(0)
for step in range(1, 301):
    places = torch.randint(len(tokens) - 1, (4096,), generator=generator)
    loss = F.cross_entropy(weights[tokens[places]], tokens[places + 1])
    (gradient,) = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        state = adamw_step(weights, gradient, first, second, step, 0.1, 0.0)
    weights, first, second = state[0].requires_grad_(), *state[1:]
found = F.cross_entropy(weights[tokens[:-1]], tokens[1:]).item()
print(f"your 300 steps: {found:.3f} nats")
assert 0 < found - counted < 0.05

# %% [markdown]
# ## Muon: a matrix is more than its entries
#
# **Muon** (Jordan et al. 2024) averages the gradients $G$ of a matrix as AdamW does. But it does not scale single entries. It replaces the average by the nearest matrix with orthonormal rows or columns, so all singular values become about 1, and no direction is neglected:
#
# $$M \leftarrow \mu M + (1 - \mu) G \qquad N = \mu M + (1 - \mu) G = U S V^T \qquad W \leftarrow W - \eta\, U V^T$$
#
# A singular value decomposition is slow. A **Newton–Schulz iteration** comes near $UV^T$ by products of matrices alone, five times, from $X = N / \lVert N \rVert_F$:
#
# $$X \leftarrow a X + \big(b\, X X^T + c\, (X X^T)^2\big) X \qquad (a, b, c) = (3.4445, -4.7750, 2.0315)$$

# %%
from course_lib.optimizers import orthogonalise

generator = torch.Generator().manual_seed(0)
stretched = torch.randn(32, 8, generator=generator) @ torch.diag(torch.logspace(0, -2, 8))
for name, matrix in (("gradient", stretched), ("step", orthogonalise(stretched))):
    values = torch.linalg.svdvals(matrix)
    print(f"{name:9} singular values {values.max():.2f} to {values.min():.2f}")
assert 0.4 < values.min() < values.max() < 1.3

# %% [markdown]
# Each singular value $s$ becomes $as + bs^3 + cs^5$, while $U$ and $V$ stay; the three numbers were chosen to lift small ones fast. Muon steps the matrices inside the blocks. Embeddings, norms and the output are left to Adam.
#
# ## Is it only the learning rate?
#
# The first thing a good opponent asks. Both optimizers at three rates each, in the steps that 341 seconds gave them, one run each. **How much do Muon's three losses differ, at most?**

# %%
guess = None  # nats

# %% tags=["hide-input"]
swept = results.load("optimizer_rates")["figures"]["losses"]
reveal(guess, round(max(swept["Muon"].values()) - min(swept["Muon"].values()), 3))
pictures.swept(swept, "Muon is ahead at each of its rates")

# %% [markdown]
# Muon's worst rate is better than AdamW's best one, and halving or doubling its rate costs it less than a hundredth of a nat. (Adam's rate, for what Muon leaves, was not swept.)
#
# ## The other rows
#
# | row | the idea | over the row above it |
# |:-|:-|:-|
# | rotary, RMSNorm, squared ReLU | positions as rotations (lesson 04), a cheaper norm, $\max(0, h)^2$; an output matrix of its own | clearly better in one run of three |
# | more and longer windows | 32 of 128 characters in place of 12 of 64 | worse, in equal time |
# | Muon | all singular values of a step near 1 | all its runs are ahead of all with AdamW |
# | bfloat16, a wider model | 16-bit numbers are faster, so the width can be 192 in the same time | better in all three |
# | the counts | the model begins *as* the count table and learns to correct it | better in all three, a little |
# | dropout | a tenth of what each layer adds is set to 0 while training | better in one, worse in two |

# %% [markdown]
# In 341 seconds nanoGPT's settings reach the table, no more. Two steps carry the model past it: Muon, and a wider model in 16 bits; width and precision were changed together, so this page does not say which of them it is. The rest is within the noise of three runs. Trust a difference only where all runs agree: the machine was not equally fast in all of them.
#
# Kingma & Ba 2015, Loshchilov & Hutter 2019 (AdamW); Jordan et al. 2024, Bai et al. 2025 (Muon).
