# %% [markdown]
# # Your Transformer on one page
#
# **25 minutes · an exploration of lesson 08 · needs nothing**
#
# Lesson 08 gave you the wiring: a decoder block of three sublayers, a stack of blocks, two stacks in one model. Here you write it. Then everything that you have built since lesson 02 is put into one file that runs without this course. **How much code is the whole Transformer of 2017?**

# %%
import torch
from collections.abc import Callable
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, my_transformer, reveal, solution

# %%
from typing import Literal
from course_lib.add_norm import Norm, PostNorm, PreNorm, layer_norm
from course_lib.feed_forward import FeedForward
from course_lib.masks import causal_mask
from course_lib.multi_head import AsCrossAttention, AsSelfAttention, MultiHeadAttention
from course_lib.positions import sinusoidal

# %% [markdown]
# ## A decoder block
#
# Three sublayers, each in its own add & norm: masked self-attention over the target, cross-attention to the memory $H$ of the encoder, and the feed-forward network.
#
# $$\underset{m \times d_{model}}{s} = \mathrm{AddNorm}_{\text{masked attention}}(x) \qquad \underset{m \times d_{model}}{c} = \mathrm{AddNorm}_{\text{cross-attention}}(s, H) \qquad \underset{m \times d_{model}}{y} = \mathrm{AddNorm}_{\text{network}}(c)$$

# %%
# given: encoder.residual

# %% [markdown]
# Two masks come in: one for the target among itself, and one for the padding of the source. The constructor is given; `AsCrossAttention` makes keys and values from the memory.

# %%
# exercise: decoder/block

# %%
check("decoder/block", DecoderBlock)

# %%
DecoderBlock = mine("decoder/block")

# %% [markdown]
# ## A stack
#
# A stack begins with an embedding, $x_i = \sqrt{d_{model}}\, E_t + p_i$, and goes through block after block. In pre-norm nothing has normed what the blocks have added up, so one more norm ends the stack. In post-norm `last_norm` does nothing.

# %%
# given: encoder.Embedding


# %% tags=["given"]
class EncoderBlock(nn.Module):  # lesson 08's, in short
    def __init__(self, d_model, heads, d_ff, norm="post"):
        super().__init__()
        parts = AsSelfAttention(MultiHeadAttention(d_model, heads)), FeedForward(d_model, d_ff)
        self.attention, self.feed_forward = (residual(norm)(part, d_model) for part in parts)

    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(x, mask))


# %%
# exercise: encoder/stack

# %%
check("encoder/stack", Encoder)

# %%
Encoder = mine("encoder/stack")

# %% [markdown]
# The decoder is the same stack, with a memory and a causal mask:

# %%
# given: decoder.Decoder

# %% [markdown]
# ## The model
#
# Source to memory, memory and target to states, states to logits. With `tied`, one matrix is both embeddings and the output layer. The model stops at the logits: `F.cross_entropy` applies the softmax itself, and an argmax needs none.

# %%
# exercise: transformer/forward

# %%
check("transformer/forward", Transformer)

# %%
Transformer = mine("transformer/forward")

# %% [markdown]
# **How many lines of code is it, from the softmax to greedy decoding (no docstrings, blank lines, comments)?** It imports PyTorch and `einops`.

# %%
guess = None  # a number of lines

# %%
page = my_transformer()
model, task = page.split("# %% the task")
lines = len([line for line in model.splitlines() if line.strip() and line[0] != "#"])
reveal(guess, lines)
assert 150 < lines < 260

# %% [markdown]
# `my_transformer` collects your passed answers, adds the library's version of what is missing, and writes `my_transformer.py` into your workspace. There it also shows the file, folded, above. (Here it is not printed, because it holds the solutions of this course.) This is its table of contents, with the paper's sections, in the order of the file:

# %%
for line in model.splitlines():
    if line.startswith(("# ", "def ", "class ")):
        print(line.split("(")[0] if line[0] != "#" else line)

# %% [markdown]
# Read the file once beside section 3 of the paper: most definitions name theirs. That is the whole architecture. (Section 5, the training, is lesson 11's.) PyTorch adds matrix products, gradients and Adam. At the end of the file, the model sorts letters:

# %%
print(task)

# %% [markdown]
# Run it in a terminal, with `python my_transformer.py`: it trains for 600 steps, and then sorts 1,000 new sequences. (A test of the course runs this file, and asks that all 1,000 are right.)

# %% [markdown]
# ## Break it
#
# - In the file, let `DecoderBlock` call `self.attention(x)` without its mask. How low does the loss go, and what share is right?
# - Train with `layers=1`, then with `heads=1`. Which still sorts?
# - In `greedy`, take the first position's logits instead of the last one's. Why is it always the same letter?
#
# Vaswani et al. 2017, section 3; Xiong et al. 2020 (pre-norm); Rush 2018 (*The Annotated Transformer*).
