# %% [markdown]
# # A parallel scan
#
# **43 minutes · an exploration of lesson 15 · needs nothing**
#
# A linear recurrence is a loop over tokens: each state needs the one before. **How can a loop of 50,000 steps run in 16 rounds, and is that quicker?** You build it, and time it on one core of your machine. Then a loop of the same kind becomes the layer of Mamba.

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import measuring

# %% [markdown]
# ## Join before you know the state
#
# The recurrence is $h_t = a_t \odot h_{t-1} + b_t$, from $h_0 = 0$. A step is the function $h \to a h + b$. Two of them, the earlier one $(a', b')$, are one step again:
#
# $$a\,(a' h + b') + b = (a a')\, h + (a b' + b)$$
#
# Composition of functions is associative, so a row of steps may be joined in any grouping.

# %% [markdown]
# In round $r = 0, 1, 2, \dots$ each place joins its own stretch, of $2^r$ steps, with the stretch that ends $2^r$ places before it (Hillis & Steele 1986). After $\lceil \log_2 n \rceil$ rounds every stretch begins at the first token. The check allows 600 calls of torch for 50,000 tokens.

# %%
# exercise: state_space/parallel_scan

# %%
check("state_space/parallel_scan", parallel_scan)

# %%
parallel_scan = mine("state_space/parallel_scan")

# %% [markdown]
# ## Is it quicker?
#
# The rival is lesson 15's loop:


# %%
scan = mine("state_space/scan")


# %% [markdown]
# **On one core, which is quicker, the loop or the parallel scan? Answer for one text of 4,096 tokens with 64 numbers each, for one of 1,024 tokens with 4,096 numbers each, and for one of 64 tokens with 64 numbers each.**

# %%
guess = None  # three times "loop" or "parallel"

# %%
from functools import partial
from time import process_time

torch.set_num_threads(1)


def cpu_seconds(run, times=3):
    taken = []
    for _ in range(times):
        start = process_time()
        run()
        taken.append(process_time() - start)
    return min(taken)


# %%
quicker = []
for shape in ((4096, 64), (1024, 4096), (64, 64)):
    a, b = torch.rand(shape), torch.randn(shape)
    looped, rounds = (cpu_seconds(partial(f, a, b)) for f in (scan, parallel_scan))
    print(f"{shape}: loop {1000 * looped:.1f} ms, parallel scan {1000 * rounds:.1f} ms")
    quicker.append("parallel" if rounds < looped else "loop")
    assert torch.allclose(scan(a, b), parallel_scan(a, b), atol=1e-3)
reveal(guess, tuple(quicker))
claim = "the parallel scan is quicker where a step has few numbers, however long the text"
measuring.expect(claim, quicker == ["parallel", "loop", "parallel"], quicker)

# %% [markdown]
# With few numbers a step the loop spends its time on calls, one for each token, and the $\log_2 n$ rounds of the parallel scan win, in a long text and in a short one. With many, each call of the loop is large enough to keep one core busy, and the parallel scan does $\log_2 n$ times the arithmetic.
#
# These are times of one core. On a GPU, which computes thousands of numbers at once, few rounds should matter more; we have not measured it.

# %% [markdown]
# ## A state that chooses what it keeps
#
# What is such a recurrence good for? In a **state space model** an input $x$ drives a state $h$ in continuous time, $h' = Ah + Bx$, and $y = Ch$ is read from it. Text comes in steps, so the equation is **discretised**: hold the input at $x_t$ for a time $\Delta$, and solve. For one number, with $a < 0$:
#
# $$h_t = e^{\Delta a}\, h_{t-1} + b\, x_t \int_0^{\Delta} e^{a s}\, ds = e^{\Delta a}\, h_{t-1} + \frac{e^{\Delta a} - 1}{a}\, b\, x_t$$
#
# A large $\Delta$ replaces the state by the token, and a $\Delta$ of 0 leaves it untouched.

# %% [markdown]
# A **selective** state space model (Mamba; Gu & Dao 2023) computes $\Delta_t$, $b_t$ and $c_t$ from the token. Each of $d$ channels has a state of $s$ numbers. So $h_t$ and $a$ are $d \times s$, $x_t$ and $\Delta_t$ have size $d$, $b_t$ and $c_t$ size $s$, and $y_t = h_t c_t$.

# %%
# exercise: state_space/selective

# %%
check("state_space/selective", selective)

# %%
selective = mine("state_space/selective")

# %% [markdown]
# Let one channel of one number read 3, 5, 7 and 9, with a large $\Delta$ at the first token and the last, and 0 between them:

# %% tags=["nbval-check-output"]
x, delta = torch.tensor([[3.0, 5, 7, 9], [20.0, 0, 0, 20]])[..., None]
ones = torch.ones(4, 1)
print(selective(x, delta, -torch.ones(1, 1), ones, ones)[:, 0].tolist())

# %% [markdown]
# It takes in the 3, keeps it past 5 and 7, and replaces it by the 9. For a small $\Delta$ the fraction above is nearly $\Delta$, which the authors' code takes in its place, and so does Mamba-2's row in lesson 15's table.

# %% [markdown]
# ## What to remember
#
# A recurrence without a nonlinearity can be joined in any grouping: $n$ steps in $\log_2 n$ rounds, for $\log_2 n$ times the work (Blelloch 1990 has a form with $O(n)$ work). A selective state space model is such a recurrence whose decay, $e^{\Delta_t a}$, each token sets.
