# %% [markdown]
# # A frozen model in four bits
#
# **25 minutes · an exploration of lesson 17 · needs `smollm2` (93 MB)**
#
# LoRA trains 0.6 % of SmolLM2 and keeps the rest, 540 MB in float32, as it came. The file on your disk holds the same weights in 98 MB. **Can its matrices stay that small while we train, and what does it cost?** QLoRA (Dettmers et al. 2023) says yes. You build its idea on our file, and count the weights and activations that a training step keeps.

# %%
import torch
from torch import nn
from torch.nn import functional as F
from course_lib.data import home_commands, needs
from course_lib.exercises import mine, reveal
from course_lib.instruments import measuring, plots

# %%
answer_targets = mine("assistant/answer_mask")

# %%
LowRankLinear = mine("lora/layer")

# %%
needs("smollm2")

# %%
from course_lib.pretrained import quantised, smollm2

model = smollm2.load().requires_grad_(False)

# %%
linears = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
count = sum(layer.weight.numel() for layer in linears)
print(f"{len(linears)} linear layers, {count / 1e6:.0f} million weights, {4 * count / 1e6:.0f} MB")
assert len(linears) == 210

# %% [markdown]
# (The embeddings of 49,152 tokens are the other 28 million. They stay as they are.)
#
# ## Back into four bits
#
# [Lesson 09's exploration](09_fast.ipynb) decoded the format Q4_1 by hand: 32 weights in a row share their smallest weight and a step, each of 16 bits, and a weight is a number of steps from 0 to 15. To encode, take the smallest and the largest weight of each 32, and round:
#
# $$step = \frac{w_{max} - w_{min}}{15} \qquad q_i = \mathrm{round}\Big(\frac{w_i - w_{min}}{step}\Big)$$


# %%
def encode(weight):
    """Cut a matrix into blocks of 32 weights, and return 20 bytes for each."""
    blocks = weight.reshape(-1, 32)
    least, most = blocks.aminmax(dim=1, keepdim=True)
    step = ((most - least) / 15).half()
    q = ((blocks - least) / step).round().byte()
    halves = q[:, :16] | q[:, 16:] << 4
    return torch.cat([step.view(torch.uint8), least.half().view(torch.uint8), halves], dim=1)


# %% [markdown]
# Rounding loses something. **By how much, at most, does a weight of our SmolLM2 change, if we encode and decode it?**

# %%
guess = None  # a number

# %%
changed = 0.0
for layer in linears:
    decoded = quantised.q4_1(encode(layer.weight)).reshape(layer.weight.shape)
    changed = max(changed, (decoded - layer.weight).abs().max().item())
reveal(guess, changed)
assert changed == 0

# %% [markdown]
# By nothing. They were decoded from this format when the model was loaded, so each of 32 is a whole number of steps above the smallest, and the encoder finds the same weights again. The rounding was paid when the file was made. (In general it is not free: about half a step at most for each weight.)
#
# ## A layer that decodes when it is needed
#
# It keeps the bytes as a *buffer*, which no optimizer touches, and decodes them in each pass:


# %%
class FourBitLinear(nn.Module):
    """Apply a linear layer whose weight is kept in four bits."""

    def __init__(self, linear):
        super().__init__()
        self.shape = linear.weight.shape
        self.register_buffer("blocks", encode(linear.weight))

    def weight(self):
        return quantised.q4_1(self.blocks).reshape(self.shape)

    def forward(self, x):
        return F.linear(x, self.weight())


# %% [markdown]
# Now the model of lesson 17: your LoRA layers in the last ten blocks, and all frozen matrices in float32 or in four bits. (So that gradients reach $A$ too, $B$ is not zero here, but small random numbers.)

# %% tags=["hide-input"]
from copy import deepcopy

from course_lib.instruments import training
from course_lib.assistant import adapt

names = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_3")


def adapted(frozen=None):
    """Return the model with LoRA in its last ten blocks; `frozen` makes a frozen layer smaller."""
    copy = deepcopy(model, {id(x): x for x in model.parameters()})  # the weights are shared
    with training.seeded(0):
        for parameter in adapt(copy.blocks[-10:], names, lambda x: LowRankLinear(x, 8, 16)):
            nn.init.normal_(parameter, std=0.02)
    for parent in list(copy.blocks.modules()) if frozen else []:
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, frozen(child))
    return copy


# %% tags=["hide-input"]
from course_lib.pretrained.smollm2 import conversations, turns
from course_lib.pretraining import masked_loss

commands = home_commands.split(2000, 30, 0)["learning"][:4]
pairs = [(turns(x.said, system=None), x.means) for x in commands]
batch = conversations(model.tokenizer, pairs)


def loss(some):
    """Return the loss of a batch of four commands."""
    return masked_loss(some.states(batch[0]), some.words.weight, answer_targets(*batch))


# %%
def bill(some):
    """Return the megabytes that are kept, and those that autograd saves in a forward pass."""
    held = [*some.parameters(), *some.buffers()]
    kept = sum(tensor.numel() * tensor.element_size() for tensor in held)
    saved = measuring.saved_bytes(lambda: loss(some), held)
    return kept / 1e6, saved / 1e6


# %%
plain = adapted()
bills = {"float32": bill(plain)}
print("float32: {:.0f} MB kept, {:.0f} MB saved for the backward pass".format(*bills["float32"]))

# %% [markdown]
# In float32, 541 MB are kept, and a batch of 4 × 50 tokens saves 137 MB of activations. **With `FourBitLinear`, how many megabytes does the forward pass save for the backward pass: fewer, as many, or twice as many?**

# %%
guess = None  # "fewer", "as many", "twice as many"

# %%
decoding = adapted(FourBitLinear)
bills["four bits"] = bill(decoding)
print("four bits: {:.0f} MB kept, {:.0f} MB saved".format(*bills["four bits"]))
ratio = bills["four bits"][1] / bills["float32"][1]
reveal(guess, "fewer" if ratio < 0.9 else "as many" if ratio < 1.1 else "twice as many")
assert 175 < bills["four bits"][0] < 190 and 1.9 < ratio < 2.2

# %% [markdown]
# Twice as many. The gradient of $y = x W^T$ by $x$ is $g W$, and the gradients must pass through the frozen layers of the last ten blocks on their way down. So autograd keeps each decoded $W$ until the backward pass: the float32 weights of ten blocks, 139 MB, are back. (But not the first three of them, whose input needs no gradient. The other twenty blocks have no backward pass.)
#
# ## Decode it twice
#
# Save the *bytes*, and decode again in the backward pass. A function of our own tells autograd how:


# %%
class Decoded(torch.autograd.Function):
    """Apply a four-bit layer, and decode its weight anew for the gradient of x."""

    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        return F.linear(x, layer.weight())

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ ctx.layer.weight(), None


# %%
class TwiceDecodedLinear(FourBitLinear):
    def forward(self, x):
        return Decoded.apply(x, self)


# %%
twice = adapted(TwiceDecodedLinear)
bills["four bits, decoded twice"] = bill(twice)
print("decoded twice: {:.0f} MB kept, {:.0f} MB saved".format(*bills["four bits, decoded twice"]))
assert abs(bills["four bits, decoded twice"][1] / bills["float32"][1] - 1) < 0.01

# %%
losses, gradients = [], []
for some in (plain, decoding, twice):
    losses.append(loss(some))
    losses[-1].backward()
    gradients.append([p.grad for p in some.parameters() if p.grad is not None])
    assert torch.allclose(losses[-1], losses[0]) and len(gradients[-1]) == 140
    for ours, theirs in zip(gradients[-1], gradients[0]):
        assert ours.any() and torch.allclose(ours, theirs, atol=1e-6)

# %% tags=["hide-input"]
figure, ax = plots.axes(
    "Less than half of the memory, once nothing decoded is kept", "MB", "", size=(7.4, 2.6)
)
rows = [*bills][::-1]
for place, row in enumerate(rows):
    kept, saved = bills[row]
    ax.barh(place, kept, color=plots.COLOURS[0], label="weights" if place == 0 else None)
    ax.barh(
        place, saved, left=kept, color=plots.COLOURS[1],
        label="saved for the backward pass" if place == 0 else None,
    )  # fmt: skip
ax.set_yticks(range(3), rows)
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
spoken = "; ".join(f"{row}: {bills[row][0]:.0f} and {bills[row][1]:.0f}" for row in bills)
plots.show(figure, f"Megabytes of weights, and saved for the backward pass. {spoken}.")
assert sum(bills["four bits, decoded twice"]) < sum(bills["float32"]) / 2

# %% [markdown]
# The loss and all gradients are those of the same weights in float32. So, beside the rounding that the file has paid, the price is time:

# %% tags=["hide-input"]
taken = {}
for row, some in zip(bills, (plain, decoding, twice)):
    taken[row] = measuring.seconds(lambda some=some: loss(some))
    print(f"{row:26} {taken[row]:.2f} CPU seconds for a step")
slower = taken["four bits, decoded twice"] / taken["float32"]
claim = "decoding twice takes 5 to 60 % more time"
measuring.expect(claim, 1.05 < slower < 1.6, f"{slower - 1:.0%}")

# %% [markdown]
# About a quarter more on our machine, with batches of 200 tokens; with longer ones the share is smaller, since decoding does not depend on the batch. This is *recomputation* again, as in lesson 12's checkpoints: what is cheap to compute anew need not be kept.
#
# QLoRA's paper does three things more: its four bits are spaced for weights that are normally distributed (NF4), the steps are themselves quantised, and the optimizer's averages may leave the GPU. With it, the authors fine-tuned 65 billion parameters on one GPU of 48 GB.

# %% [markdown]
# ## What to remember
#
# A frozen weight needs no gradient, but the gradient of its *input* needs the weight. So a small frozen weight saves all the memory that it can only if its decoded form is thrown away after each use, and computed again in the backward pass.
#
# <details><summary>Why need the first twenty blocks not be decoded twice?</summary>
#
# No parameter below them or in them is trained, so no gradient has to pass through them: autograd saves nothing there.
# </details>
#
# <details><summary>Why can the change B A not be merged into the four-bit weight without loss?</summary>
#
# W + B A lies between the sixteen steps of its block. Merged and rounded, it would lose up to half a step for each weight, which may be more than the change itself. Merge it into the decoded weight.
# </details>
#
# Hu et al. 2021 (LoRA); Dettmers et al. 2023 (QLoRA); Chen et al. 2016 (recomputation). Titles and links: docs/REFERENCES.md.
