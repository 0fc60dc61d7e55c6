# %% [markdown]
# # 07 · Add & norm
#
# **75 minutes · after lesson 06 · needs `shakespeare` (5.4 MB) and `smollm2` (93 MB)**
#
# Blocks of attention and a feed-forward network are stacked: six in the Transformer of 2017, thirty in SmolLM2 (2024). Stack thirty-two of yours, and they learn only which characters are frequent. **What lets a network of thirty blocks learn at all?**
#
# Watch one letter on its way up. It is drawn as large as its vector. The darker it is, the more of it still depends on the letter: that is the percentage. A dot no longer does.

# %%
import torch
from collections.abc import Callable
from einops import reduce
from functools import partial
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

# %%
from course_lib import add_norm
from course_lib.data import characters, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.feed_forward import FeedForward
from course_lib.instruments import drawings, results, training
from course_lib.instruments.deep_stack import STARTS, NormAlone, Residual, Stack, bare
from course_lib.instruments.deep_stack import follow, redraw
from course_lib.instruments.pictures import add_norm as pictures

needs("shakespeare")

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
learning, held_out = characters.split()
tokens, following = next(characters.batches(learning, 16, 32, seed=0))
kinds = {"without": bare, "with add & norm": add_norm.PreNorm}
fates = {}
for name, wrap in kinds.items():
    with training.seeded(SEED):
        stack = Stack(len(characters.vocab()), 32, 32, 4, wrap)
    fates[name] = follow(redraw(stack, "torch's default", SEED), tokens, 15)
pictures.letter("One letter on its way through thirty-two blocks", {"before training": fates})

# %% [markdown]
# Without add & norm the letter is gone after four blocks. With them it arrives. At the end you will know what *add* does, what *norm* does, and which third thing decides whether you need both.

# %% [markdown]
# ## Thirty-two blocks
#
# `Stack` reads characters of Shakespeare and predicts the next one: embedding, positions, as many blocks as you like, one linear layer. Its layers are yours. `wrap` says how a layer is connected to the rest. With `bare`, its output replaces its input. `redraw` draws the initial weights, at first as torch's `nn.Linear` does. `streams` returns all tokens' vectors below the first block and above each; `read` turns the top ones into logits.

# %%
MultiHeadAttention = mine("multi_head/attention")
feed_forward = mine("feed_forward/position_wise")


# %%
def new(wrap, blocks=32, start="torch's default", **options):
    yours = {
        "attention": MultiHeadAttention,
        "feed_forward": partial(FeedForward, network=feed_forward),
    }
    with training.seeded(SEED):
        stack = Stack(len(characters.vocab()), blocks, 32, 4, wrap, **yours, **options)
    return redraw(stack, start, SEED)


def next_character(model, batch):
    read, wanted = batch
    return F.cross_entropy(model(read).flatten(0, 1), wanted.flatten())


# %% [markdown]
# A block has two layers, attention and feed-forward, so $N$ blocks have $2N$. Let $x_l$ be the vectors of all $n$ tokens above layer $l$, written as one long vector of $nd$ numbers. The backward pass multiplies the gradient by the Jacobian of one layer after another:
#
# $$x_l = F_l(x_{l-1}) \qquad\Longrightarrow\qquad \frac{\partial L}{\partial x_0} = \frac{\partial L}{\partial x_{2N}}\; J_{2N}\, J_{2N-1} \cdots J_1 \qquad \underset{nd \times nd}{J_l} = \frac{\partial F_l}{\partial x_{l-1}}$$
#
# On this page *norm* is the layer, and a vector's length is its *L2 norm*.
#
# At the top the gradient has an L2 norm of 0.03, below 4 bare blocks of $6 \cdot 10^{-7}$. **What is it below 32?**

# %%
guess = None  # a power of ten, such as 1e-9


# %%
def gradients(wrap, blocks=32):
    """Return the L2 norm of the loss's gradient at each level, the lowest first."""
    model = new(wrap, blocks).double()
    streams = model.streams(tokens)
    loss = next_character(lambda _: model.read(streams[-1]), (tokens, following))
    return [float(x.norm()) for x in torch.autograd.grad(loss, streams)]


# %% tags=["nbval-check-output"]
below, *_, top = gradients(bare, 4)
print(f"4 bare blocks: {top:.0e} at the top, {below:.0e} at the bottom")
reveal(guess, f"{gradients(bare)[0]:.0e}")

# %% [markdown]
# These are **vanishing gradients**, as in lesson 01, with depth in place of time.
#
# ## Add: the residual connection
#
# The cure is one plus sign (He et al. 2016). A layer no longer replaces the vectors; it *adds* to them. This is a **residual connection**, or skip connection:
#
# $$\begin{aligned} x_l = x_{l-1} + F_l(x_{l-1}) \qquad \frac{\partial x_l}{\partial x_{l-1}} &= I + J_l \\ (I + J_{2N}) \cdots (I + J_1) &= I + \sum_l J_l + \sum_{l > k} J_l J_k + \dots \end{aligned}$$

# %% tags=["hide-input"]
pictures.residual()

# %% [markdown]
# Multiplied out, there are $2^{2N}$ paths, one for each choice of layers to go through. One goes through no layer: the $I$ brings the gradient of the top to every level unchanged.
#
# The same holds on the way up. A layer with weights near zero now passes its input on, and only has to learn the *residual*: the change.

# %% tags=["nbval-check-output"]
for name, wrap in (("bare", bare), ("residual", Residual)):
    gradient = gradients(wrap)
    print(f"{name:8} 32 blocks: {gradient[-1]:.1e} at the top, {gradient[0]:.1e} at the bottom")

# %% [markdown]
# The gradient no longer vanishes. It *grows* on its way down, because of a setting that you did not know you had chosen: the scale of the initial weights.
#
# ## How fast a stack grows
#
# Draw a matrix's entries with variance $c^2/\text{fan-in}$ (the fan-in is the number of its inputs). If $x$ has mean square $m$, then $xW$ has $c^2 m$, and a ReLU keeps half of that. So the feed-forward network (two matrices, a ReLU) writes $c^4 m/2$. Attention has two matrices on the way, $W_V$ and $W_O$, and writes $c^4 m$ where it looks at one token alone.

# %% [markdown]
# If what a layer writes is independent of what is there, mean squares add. Then $N$ blocks multiply the mean square by up to
#
# $$\underbrace{(1 + c^4)^N}_{\text{attention}} \;\underbrace{\left(1 + \tfrac12 c^4\right)^N}_{\text{feed-forward}}$$
#
# torch's `nn.Linear` draws with $c^2 = 1/3$. Lesson 03 draws from $N(0, 1/\text{fan-in})$, so $c^2 = 1$. **By what factor does the root mean square grow in 32 blocks, in each case?** (Take the root of the formula.)

# %%
guess = None  # two factors, such as (2, 100)


# %%
def growth(c2, blocks=32):
    """Return the factor on the root mean square, where matrices have the variance c2 / fan-in."""
    return ((1 + c2**2) * (1 + c2**2 / 2)) ** (blocks / 2)


@torch.no_grad()
def grown(wrap, start):
    """Return the factor on the root mean square of a stack of yours, from bottom to top."""
    low, *_, high = new(wrap, start=start).double().streams(tokens)
    return (high.square().mean() / low.square().mean()).sqrt().item()


# %% tags=["nbval-check-output"]
factors = []
for start, c2 in (("torch's default", 1 / 3), ("N(0, 1/fan-in)", 1)):
    factors.append(grown(Residual, start))
    print(f"{start:16} factor {factors[-1]:10.3g}, by the formula {growth(c2):.3g}")
reveal(guess, tuple(float(f"{factor:.3g}") for factor in factors))

# %% [markdown]
# Three times the variance turns a factor of 10.5 into 16 million, and the formula is right within a factor of three. From some initial weights the vectors grow tenfold, from others they explode. What would make a stack depend less on them?
#
# ## Norm: one scale for every token
#
# **Layer normalization** (Ba et al. 2016) takes one token at a time. It computes mean and variance over the token's own $d$ numbers, and looks at no other token:
#
# $$\mu = \frac1d \sum_{c=1}^{d} x_c \qquad \sigma^2 = \frac1d \sum_{c=1}^{d} (x_c - \mu)^2 \qquad \hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \qquad \mathrm{LN}(x) = \gamma \odot \hat x + \beta$$

# %% [markdown]
# For example, $x = (2, 2, 6, 6)$ has $\mu = 4$ and $\sigma = 2$, so $\hat x = (-1, -1, 1, 1)$. Gain $\gamma$ and bias $\beta$, one number for each column, begin as ones and zeros, and are learned. The small $\epsilon$ keeps a token of equal numbers from dividing by 0. Build it, and watch where $\epsilon$ goes.

# %%
# exercise: add_norm/layer_norm

# %%
check("add_norm/layer_norm", layer_norm)

# %%
layer_norm = mine("add_norm/layer_norm")

# %% [markdown]
# In geometry: subtracting the mean projects $x$ onto the plane of vectors whose numbers sum to 0. Dividing by $\sigma$ then moves it onto a sphere in that plane, since $\lVert \hat x \rVert^2 = d$. For $d = 3$ this is a circle. *Your* norm, on nine tokens:

# %% tags=["hide-input"]
pictures.circle(layer_norm)

# %% [markdown]
# So a layer that reads from a norm sees the *direction* of the centred token, never its size or its mean.
#
# > **Where the lectures disagree (D02, D03).** L1, L2 and L4 announce "unit mean", but the mean becomes zero; L1 and L4 print it as a plain sum. The same three take the root of $\sigma$ once more.

# %% [markdown]
# ## What a norm does to gradients
#
# Mean and variance depend on $x$, so the gradient flows through them. Take $\epsilon = 0$. From $\partial \mu / \partial x_j = 1/d$ and $\partial \sigma / \partial x_j = \hat x_j / d$, the quotient rule gives
#
# $$\frac{\partial \hat x_i}{\partial x_j} = \frac{\delta_{ij} - 1/d}{\sigma} - \frac{x_i - \mu}{\sigma^2}\,\frac{\hat x_j}{d} \qquad\Longrightarrow\qquad \underset{d \times d}{\frac{\partial \hat x}{\partial x}} = \frac1\sigma \left( I - \frac{\mathbf{1}\mathbf{1}^T}{d} - \frac{\hat x \hat x^T}{d} \right)$$
#
# The bracket takes out of a gradient what the norm would undo: $\mathbf 1$ and $\hat x$. The $1/\sigma$ undoes a scale: write tokens a hundred times as large, and their gradient is a hundredth.

# %% [markdown]
# Is a norm alone enough, then? Put yours before each layer of the bare stack, and after the last. Measure the gradient at the bottom, and the first token's share of it; then compare all states at the top with the first token's.

# %% tags=["nbval-check-output"]
alone = partial(NormAlone, norm_layer=layer_norm)
model = new(alone, last_norm=True, norm_layer=layer_norm).double()
streams = model.streams(tokens)
loss = next_character(lambda _: model.read(streams[-1]), (tokens, following))
(gradient,) = torch.autograd.grad(loss, streams[0])
share = gradient[:, 0].square().sum() / gradient.square().sum()
alike = F.cosine_similarity(streams[-1], streams[-1][:, :1], dim=-1)
print(f"gradient at the bottom {gradient.norm():.0e}, the first token's share {share:.3f}")
print(f"at the top, smallest cosine of a token's state and the first token's: {alike.min():.3f}")

# %% [markdown]
# The gradient arrives, but all of it at the first token: under a causal mask, thirty-two averages in a row put all their weight on it. And at the top every token has the same state. **The norm keeps the gradient from vanishing, and lets the tokens become one.** With the residual connection as well, a letter arrives: that is the second row of the first picture.
#
# So put both into one block.
#
# ## The block of 2017
#
# Where does the norm go? The paper adds first and then normalises: **post-norm**. L3 writes its encoder block step by step:
#
# $$\begin{aligned} T^1 &= \mathrm{Attention}(X) & T^2 &= X + T^1 & T^3 &= \mathrm{LN}(T^2) \\ T^4 &= \mathrm{FFN}(T^3) & T^5 &= T^3 + T^4 & H &= \mathrm{LN}(T^5) \end{aligned}$$

# %% tags=["hide-input"]
drawings.transformer(
    {"add & norm"},
    "The Transformer of 2017 with its five add & norm boxes lit: one after each attention layer "
    "and one after each feed-forward network, two in an encoder block, three in a decoder block.",
)

# %% [markdown]
# Many later models, GPT-2 and Llama among them, use **pre-norm**: a layer reads a normed copy, and the sum itself is never normed. Since 2024 some models, Gemma 2 among them, also norm what a layer writes before it is added. Kim et al. 2025 call this *Peri-LN*.
#
# > **Where drawing and code disagree (D13).** The lectures draw the paper's order. *The Annotated Transformer* (Rush 2018) prints it, too, and codes pre-norm. torch offers both, by `norm_first`.
#
# Follow the thick line in both orders:

# %% tags=["hide-input"]
pictures.orders()

# %% [markdown]
# Under post-norm each norm shifts and divides the *whole* sum, and no path from bottom to top is free of them. Under pre-norm the thick line runs through plus signs alone: its $I$ stays an $I$. Nothing bounds the sum, so there is one more norm after the last block.
#
# Each order is a class that wraps any layer. `*args` hands the mask on to attention. The check below the second class tries both.

# %%
# exercise: add_norm/post_norm

# %%
# exercise: add_norm/pre_norm

# %%
check("add_norm/pre_norm", PreNorm)

# %%
PostNorm = mine("add_norm/post_norm")
PreNorm = mine("add_norm/pre_norm")

# %% [markdown]
# ## Thirty-two blocks learn
#
# Stack thirty-two blocks of your attention and your network, each layer behind your norm. Take the initial weights from which the residual connection alone grew 16-million-fold, and ninety steps of AdamW. Then let the stack say what it expects after each character of a line. Beside it is the bare stack, from the same initial weights and with as many steps, each at its best learning rate.


# %% tags=["training"]
def trained(model, learning_rate, steps=90, warm_up=0.05):
    batches = characters.batches(learning, 16, 16, SEED)
    budget = {"steps": steps, "seconds": 60, "learning_rate": learning_rate, "warm_up": warm_up}
    training.train(model, batches, next_character, **budget)
    return model


# %% tags=["training"]
line = "To be, or not to"
inputs = characters.encode(line)[None]


def expected(logits):
    """Write the likeliest next character below each character of the line."""
    return repr(characters.decode(logits[0].argmax(-1)))


bare_stack = trained(new(bare, start="N(0, 1/fan-in)"), learning_rate=0.003)
print("line:    ", repr(line))
print("bare:    ", expected(bare_stack(inputs)))

# %% tags=["training"]
normed = partial(PreNorm, norm_layer=layer_norm)
pre_norm = new(normed, start="N(0, 1/fan-in)", last_norm=True, norm_layer=layer_norm)
trained(pre_norm, learning_rate=0.01)
print("pre-norm:", expected(pre_norm(inputs)))


# %% tags=["training", "hide-input"]
@torch.no_grad()
def held_out_loss(model):
    return next_character(model, next(characters.batches(held_out, 16, 512, seed=0))).item()


losses = [round(held_out_loss(model), 2) for model in (bare_stack, pre_norm)]
claim = "32 blocks from large weights: pre-norm ends below 3.3 nats, bare above"
training.expect(claim, losses[1] < 3.3 < losses[0], losses, bare_stack, pre_norm)

# %% [markdown]
# The bare stack expects a space everywhere, whatever it has read: it has become a **frequency baseline**, which knows only how frequent each character is. What the other stack expects depends on the letter: after *T* it is an *h*. The letters arrive.

# %% [markdown]
# ## Why: a product becomes a sum
#
# These weights are the ones that grew 16-million-fold. Under pre-norm a layer reads tokens of mean square 1, *however large the sum has become*. So it adds $c^4$ or $c^4/2$, not a multiple of $m$. From a mean square $m_0$ at the bottom,
#
# $$m_N \approx m_0 + \tfrac32\, c^4 N \qquad\text{instead of}\qquad m_N \approx m_0 \left[(1 + c^4)\left(1 + \tfrac12 c^4\right)\right]^N$$
#
# Your stacks begin with $m_0 \approx 1.5$. **By what factor does the root mean square grow in 32 pre-norm blocks, with $c^2 = 1/3$ and with $c^2 = 1$?**

# %%
guess = None  # two factors


# %%
def growth_of_sums(c2, blocks=32, first=1.5):
    """Return the factor on the root mean square where each layer adds its own mean square."""
    return (1 + 1.5 * c2**2 * blocks / first) ** 0.5


# %% tags=["nbval-check-output"]
factors = []
for start, c2 in (("torch's default", 1 / 3), ("N(0, 1/fan-in)", 1), ("N(0, 0.02²)", 32 * 0.02**2)):
    factors.append(grown(partial(PreNorm, norm_layer=layer_norm), start))
    print(f"{start:16} factor {factors[-1]:5.2f}, by the formula {growth_of_sums(c2):.2f}")
reveal(guess, tuple(round(factor, 1) for factor in factors[:2]))

# %% [markdown]
# **Sixteen million becomes five.** The last row has GPT-2's 0.02, without its $1/\sqrt N$ for what is added: here nothing grows.
#
# ## Three switches
#
# Residual connection, norm, initial weights: now turn all three. Post-norm is drawn above. Without it, the first two make four ways to connect a layer:

# %% tags=["hide-input"]
pictures.four_ways()

# %% [markdown]
# The third switch has three settings: torch's, the large one, and $N(0, 0.02^2)$, which is near torch's at GPT-2's width, and small in blocks as narrow as these. The letter below goes through thirty-two blocks of your parts. In a notebook the picture has the switches, and a slider for the depth. **Which ways lose the letter, which ones blow it up?**

# %%
ways = {
    "bare": bare,
    "norm": partial(NormAlone, norm_layer=layer_norm),
    "residual": Residual,
    "pre-norm": partial(PreNorm, norm_layer=layer_norm),
    "post-norm": partial(PostNorm, norm_layer=layer_norm),
}
fates = {
    start: {
        name: follow(new(wrap, start=start).double(), tokens, 15) for name, wrap in ways.items()
    }
    for start in STARTS
}

# %% tags=["hide-input"]
pictures.letter_by_hand(
    "Only pre-norm keeps a third of the letter or more from all initial weights", fates
)

# %% [markdown]
# Bare, and with a norm alone, the letter fades at once. With the residual connection alone the initial weights decide: from large ones the vector explodes. Under post-norm the letter fades block by block: nothing is left from large weights, a fifth from torch's. From small ones it does not fade. Pre-norm keeps a third of it or more, from all three.

# %% [markdown]
# Which of them learn? All were trained beforehand, in 2, 8 and 32 blocks, for 120 steps, with three seeds, each at its best learning rate. **Which of the four kinds learn in 32 blocks from *some* of the initial weights, and which from *all three*?**

# %%
guess = None  # two lists of kinds: (some, all)

# %% tags=["hide-input"]
depth = results.load("depth")["figures"]
pictures.learned(depth)
reveal(guess, pictures.that_learn(depth))
patient = [loss for losses in depth["patient"].values() for loss in losses.values()]
print(f"bare or with a norm, after 1,000 steps: {min(patient):.2f} to {max(patient):.2f}")
controls = results.load("depth_controls")["figures"]
ends = [loss for losses in controls["residual and last norm"].values() for loss in losses]
print(f"residual and a last norm, from large weights: {ends.count(None)} of {len(ends)} overflow")
longer = ", ".join(f"{loss:.2f}" for loss in controls["patient pre-norm"])
print(f"pre-norm from large weights, after 1,000 steps, three seeds: {longer}")
print(f"a table of pairs of characters: {results.load('scaling')['figures']['pairs']:.2f}")

# %% [markdown]
# - **Without the residual connection** 32 blocks learn nothing but frequencies, from any of the three initial weights and in 1,000 steps, too.
# - **With the residual connection alone** the initial weights decide. From the two smaller settings stacks learn, and after 120 steps they are below pre-norm. From the large one they explode, with a last norm, too.
# - **Pre-norm** learns from all three; after 120 steps its best loss is above that of the residual connection alone.

# %% [markdown]
# In 120 steps the letter arrives, and few stacks know more than a table of pairs of letters. In 1,000, from the large weights, pre-norm knows far more.

# %% [markdown]
# > **What a model can do, and what it learns (D18).** L1 says that these parts help training and "don't improve what the model is able to do". For one part that is so: a wider feed-forward network can *compute* the same without the residual connection. Yet thirty-two bare blocks *learned* frequencies only.

# %% [markdown]
# ## The order of 2017
#
# One order has not been trained yet: post-norm. From torch's initial weights a fifth of its letter arrives, from small ones all of it. So turn the third switch, and nothing else:

# %% tags=["training"]
post_norm = trained(new(ways["post-norm"]), learning_rate=0.003)
print("torch's default:", expected(post_norm(inputs)))

# %% tags=["training"]
from_small = trained(new(ways["post-norm"], start="N(0, 0.02²)"), learning_rate=0.003)
print("N(0, 0.02²):    ", expected(from_small(inputs)))

# %% tags=["training", "hide-input"]
losses = [round(held_out_loss(model), 2) for model in (post_norm, from_small)]
claim = "32 blocks of post-norm end over 0.2 nats lower from small weights than from torch's"
training.expect(claim, losses[1] < losses[0] - 0.2, losses, post_norm, from_small)

# %% tags=["hide-input"]
late = results.load("depth_controls")["figures"]["patient post-norm"]["5%"]
shown = ", ".join(f"{loss:.2f}" for loss in late)
print(f"post-norm from torch's default, after 1,000 steps, three seeds: {shown}")
print(f"frequency baseline: {depth['trivial']:.2f}")

# %% [markdown]
# From small weights thirty-two blocks of 2017 read after ninety steps; from torch's they still expect a space everywhere. They are not lost: with more steps and a lower learning rate all three seeds learn.
#
# The paper starts its six blocks with a **warm-up**: the learning rate begins near 0 and rises for thousands of steps (section 5.3). Ours rises for the first twentieth, `warm_up=0.05`. [An exploration](explorations/07_norms.ipynb) sweeps it, and has you mend a faulty **DeepNorm**, which builds the third switch into the block.

# %% [markdown]
# ## Thirty blocks that have learned
#
# SmolLM2 has thirty pre-norm blocks. Their norm is **RMSNorm** (Zhang & Sennrich 2019), which subtracts no mean and has no bias. Build it, and the model runs on yours:
#
# $$\mathrm{RMSNorm}(x) = \gamma \odot \frac{x}{r} \qquad r = \sqrt{\tfrac1d \textstyle\sum_c x_c^2 + \epsilon}$$

# %%
# exercise: add_norm/rms_norm

# %%
check("add_norm/rms_norm", rms_norm)

# %%
rms_norm = mine("add_norm/rms_norm")
needs("smollm2")

# %% [markdown]
# The thick line, to which layers only ever add, is called the **residual stream**. How large does it get?

# %% tags=["once", "hide-input"]
from course_lib.masks import causal_mask
from course_lib.pretrained import smollm2

model = smollm2.load(norm_layer=rms_norm)
text = torch.tensor(model.tokenizer.encode("A horse! my kingdom for a horse!").ids)
for rule in model.rules:
    rule.places = torch.arange(len(text))
with torch.no_grad():
    levels = [model.words(text)]
    for block in model.blocks:
        levels.append(block(levels[-1], causal_mask(len(text))))
for level in (0, 1, 11, 12, 30):
    first, *others = levels[level].square().mean(-1).sqrt().tolist()
    print(
        f"above {level:2} blocks: first token {first:6.1f}, others", *(f"{x:5.1f}" for x in others)
    )
squares = levels[12][0].square()
print(f"the largest number's share of the first token there: {squares.max() / squares.sum():.1%}")

# %% tags=["hide-input"]
needs()
pictures.stream(results.load("stream")["figures"])

# %% [markdown]
# The typical token grows 300-fold, and each layer reads it through a norm, at one size. So a late layer must write more than an early one to change a token's *direction* as much.
#
# The first token is special: block 12 blows it up, and nearly all of that is *one* of its 576 numbers. Sun et al. 2024 find such **massive activations** in many models; lesson 13 comes back to this token.
#
# ## What to remember
#
# | | |
# |:-|:-|
# | residual connection | $x_l = x_{l-1} + F_l(x_{l-1})$, Jacobian $I + J_l$ |
# | growth, residual alone | mean square *times* $(1 + c^4)(1 + c^4/2)$ a block |
# | growth, pre-norm | mean square *plus* $\frac32 c^4$ a block |
# | layer norm | $\hat x = (x - \mu)/\sqrt{\sigma^2 + \epsilon}$, $\quad \mathrm{LN}(x) = \gamma \odot \hat x + \beta$, $\quad \lVert\hat x\rVert = \sqrt d$ |
# | its Jacobian | $\frac1\sigma (I - \frac1d \mathbf{1}\mathbf{1}^T - \frac1d \hat x \hat x^T)$ |
# | post-norm, pre-norm | $\mathrm{LN}(x + F(x))$; $\quad x + F(\mathrm{LN}(x))$ and a last norm |
#
# The residual connection lets thirty-two blocks learn; with a norm before each layer they do so from all three initial weights, with a norm after it, small ones let them learn sooner.
#
# ## Test yourself
#
# <details><summary>1. A layer's weights and biases are all zero. What do post-norm and pre-norm return for x?</summary>
#
# Post-norm LN(x), pre-norm x.
# </details>
#
# <details><summary>2. Somebody says: "Without norms, 32 blocks cannot be trained." What do you ask?</summary>
#
# With which initial weights? From torch's default or smaller ones, residual connections alone trained 32 blocks, in 120 steps to a lower loss than pre-norm; from three times that variance they exploded.
# </details>
#
# ## In your own words
#
# "Residual connections and norms are two ways of doing the same: they keep gradients from vanishing." Answer in one paragraph. What does each do for the gradient and the scale of the activations? Which of the stacks above learn with only one of the two?

# %% [markdown] tags=["question:add_and_norm"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# You have every part of a Transformer block. Lesson 08 makes an encoder and a decoder of them. Explorations: [how two heads talk through the residual stream](explorations/07_induction_heads.ipynb), [deleting with a plus sign](explorations/07_erase.ipynb), [warm-up, RMSNorm and DeepNorm](explorations/07_norms.ipynb) and [why not batch norm?](explorations/07_batch_norm.ipynb)

# %% [markdown]
# Vaswani et al. 2017, sections 3.1 and 5.3; He et al. 2016 (residual connections); Li et al. 2018 (loss surfaces); Dong et al. 2021 (why tokens become one); Ba et al. 2016 (layer norm); Xu et al. 2019 (a norm's gradients); Xiong et al. 2020 (pre- and post-norm); Riviere et al. 2024 (Gemma 2); Kim et al. 2025 (Peri-LN); Zhang & Sennrich 2019 (RMSNorm); Radford et al. 2019 (GPT-2). Lectures: L1 to L5.
