# %% [markdown]
# # Deleting with a plus sign
#
# **15 minutes · an exploration of lesson 07 · needs nothing**
#
# In a pre-norm Transformer a layer can only add to a token's stream. **How does a layer delete what another one has written?**

# %%
import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution

# %% [markdown]
# ## Write the negative
#
# The stream has few dimensions, and many layers want to use them. But a layer can only add. How does a layer delete what another has written in the direction $u$? It reads how much of the stream is along $u$, and adds the negative of that:
#
# $$x' = x - (x \cdot u)\, u \qquad \lVert u \rVert = 1$$
#
# We leave out the norm here. Behind one, a layer reads $x \cdot u$ only up to the token's own scale (and mean), and can erase it only roughly.

# %%
# exercise: add_norm/erase_direction

# %%
check("add_norm/erase_direction", erase_direction)

# %%
erase_direction = mine("add_norm/erase_direction")

# %% [markdown]
# Can a feed-forward network do it? Its ReLU passes only positive values. Two hidden units are enough: one reads $x \cdot u$, the other $-x \cdot u$, and $\mathrm{relu}(a) - \mathrm{relu}(-a) = a$.

# %%
from course_lib.feed_forward import feed_forward as position_wise

v = F.normalize(torch.randn(34, generator=torch.Generator().manual_seed(1)), dim=-1)
w_1, w_2 = torch.stack([v, -v], dim=-1), torch.stack([-v, v])
x = torch.randn(9, 34, generator=torch.Generator().manual_seed(2))
written = position_wise(x, w_1, torch.zeros(2), w_2, torch.zeros(34))
assert torch.allclose(x + written, erase_direction(x, v), atol=1e-6)
print("left along v:", f"{((x + written) @ v).abs().max():.0e}")

# %% [markdown]
# One residual feed-forward layer erases a direction with 2 of its $d_{ff}$ units. Elhage et al. 2021 say that some heads and layers delete information in this way (reported).
