# %% [markdown]
# # Where is the order of the source?
#
# **20 minutes · an exploration of lesson 08 · needs nothing**
#
# A decoder looks at its source through cross-attention alone. **How does it know in which order the words of the source come?** You write the two pieces that lesson 08 gave you: cross-attention with nothing around it, and the stack.

# %%
import torch
from collections.abc import Callable
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution

# %%
from typing import Literal
from course_lib.add_norm import Norm, PostNorm, PreNorm, layer_norm
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import AsSelfAttention, MultiHeadAttention
from course_lib.positions import sinusoidal
from course_lib.self_attention import scaled_dot_product_attention

# %% [markdown]
# ## Cross-attention, one head
#
# In a decoder block it is hidden in a `MultiHeadAttention`. Without heads and output matrix it is this:
#
# $$\underset{m \times d_v}{C} = \mathrm{softmax}\!\left(\frac{Z W_Q\,(H W_K)^T}{\sqrt{d_k}}\right) H W_V$$

# %%
# exercise: decoder/cross_attention

# %%
check("decoder/cross_attention", cross_attention)

# %%
cross_attention = mine("decoder/cross_attention")

# %% [markdown]
# **Reverse the order of the six source states. By how much does the result change?**

# %%
guess = None  # a number

# %%
z, h, matrices = torch.randn(4, 8), torch.randn(6, 8), torch.randn(3, 8, 3)
turned = cross_attention(z, h.flip(0), *matrices)
reveal(guess, round((turned - cross_attention(z, h, *matrices)).abs().max().item(), 5))

# %% [markdown]
# It is a sum over the source, and a sum has no order. So the order has to be inside the states $H$.
#
# ## A stack
#
# An encoder begins with an embedding, $x_i = \sqrt{d_{model}}\, E_t + p_i$, and goes through block after block. In pre-norm nothing has normed what the blocks have added up, so one more norm ends the stack. In post-norm `last_norm` does nothing. You have read it in lesson 08; now write it without looking.

# %%
# given: transformer.add_and_norm

# %%
# given: transformer.Embedding


# %% tags=["given"]
class EncoderBlock(nn.Module):  # lesson 08's, in short
    def __init__(self, d_model, heads, d_ff, norm="post"):
        super().__init__()
        parts = AsSelfAttention(MultiHeadAttention(d_model, heads)), FeedForward(d_model, d_ff)
        self.attention, self.feed_forward = (add_and_norm(norm)(part, d_model) for part in parts)

    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(x, mask))


# %%
# exercise: encoder/stack

# %%
check("encoder/stack", Encoder)

# %%
Encoder = mine("encoder/stack")

# %% [markdown]
# Now both of your pieces together. The decoder's states look at a word and at the same word written backwards, first with the encoder's positions, then without:

# %%
encoder = Encoder(vocab=26, layers=2, d_model=8, heads=2, d_ff=32, max_length=8)
word = torch.randperm(26)[:8]
for name in ("with positions", "without"):
    seen = [cross_attention(z, encoder(tokens), *matrices) for tokens in (word, word.flip(0))]
    print(f"{name:15} the two words differ by up to {(seen[0] - seen[1]).abs().max():.0e}")
    encoder.embedding.positions.zero_()

# %% [markdown]
# Without positions the memory is a bag of letters, and *stop* is *pots*. A translator would be lost. A sorter would not: which letters there are is all that it needs.

# %% [markdown]
# ## Try it in your file
#
# `my_transformer.py` (lesson 08) is your own Transformer, and runs without this course. Open it in an editor, and change one line at a time:
#
# - In `Encoder`, after the embedding is made: `self.embedding.positions.zero_()`. Does it still sort? Then let `target = source`. Does it copy?
# - In `DecoderBlock`, call `self.attention(x)` without its mask. How low does the loss go, and what share is right?
# - In `greedy`, take the first position's logits instead of the last one's. Why is it always the same letter?
#
# Vaswani et al. 2017, sections 3.2.3 and 3.5.
