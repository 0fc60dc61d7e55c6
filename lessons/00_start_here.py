# %% [markdown]
# # 00 · Start here
#
# **30 minutes · nothing to fetch**
#
# **How do you get from a product of two matrices to a program that translates?** This course builds the Transformer from its parts, on your own machine, and measures what it claims, or names the source. On this page you see where you are going, and pass your first exercise.
#
# You need Python, a little PyTorch, matrix products and derivatives. The lessons take about 23 hours in all, one sitting each.

# %%
from itertools import pairwise
import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results

# %% tags=["hide-input"]
drawings.transformer(
    set(drawings.PART_ROLES),
    "The Transformer of 2017, all parts in colour. The encoder: embedding, positions, then N "
    "blocks of self-attention and a feed-forward network, each followed by add and norm. The "
    "decoder: embedding, positions, then N blocks of masked self-attention, cross-attention to the "
    "encoder, and a feed-forward network, then a linear layer and a softmax for the next token.",
)

# %% [markdown]
# This is the Transformer (Vaswani et al. 2017). An **encoder** reads, a **decoder** writes. You will meet this drawing in most lessons, with the parts of that lesson in colour.
#
# ## Where you are going
#
# In lesson 09 three real models run in this course's code, and your own functions can be put in. Here is what two of them write: a translator that Firefox uses, and a small language model (SmolLM2). Fetching them takes 35 and 93 MB, so this page has what they wrote (`make results LESSON=00`).

# %% tags=["nbval-check-output"]
look = results.load("first_look")["figures"]
print("to be translated:", "The black cat sleeps on the white chair.")
print("translator:      ", look["translation"])
print("asked:           ", look["question"])
print("language model:  ", look["answer"])

# %% [markdown]
# Now the idea that the whole course is about. A model reads and writes **tokens**: words, pieces of words, punctuation marks. Inside, each token is a vector. Before the translator writes a token, it mixes the vectors of all tokens that it has read into one: a weighted average. The weight of a token is its *share* of the mixture, so the weights sum to one. This is **attention**.

# %% [markdown]
# The translator computes several such mixtures at a time, with different weights; each is called a **head**. One of its heads was trained by Mozilla, with extra supervision, to put its weight on the token that is being translated. Portuguese usually puts the adjective after the noun, *gato preto*. **Which English token gets the largest weight while the translator writes *gato*, and which for *preto*?**

# %%
guess = None  # two English tokens

# %%
weights = torch.tensor(look["weights"])
best = [look["source"][column] for column in weights.argmax(dim=-1).tolist()]
reveal(guess, (best[1], best[2]))
assert (best[1], best[2]) == ("cat", "black")

# %% tags=["hide-input"]
title = "For 'gato preto', the translator's alignment head looks at 'cat', then back at 'black'"
figure, ax = plots.axes(title, "read: English", "written: Portuguese", size=(6.8, 4.4))
plots.heat_map(ax, weights, look["target"], look["source"])
for row, column in ((1, 2), (2, 1), (6, 8), (7, 7)):
    style = {"markersize": 19, "markeredgewidth": 2, "fillstyle": "none"}
    ax.plot(column, row, "s", color=plots.COLOURS[1], **style)
plots.show(
    figure,
    "Heat map of one head of the translator: rows are the Portuguese tokens, columns the English "
    "ones. 'gato' has 0.92 of its weight on 'cat' and 'preto' 0.96 on 'black', so these two cross "
    "the diagonal; so do 'cadeira' on 'chair' and 'branca' on 'white', 0.96 and 0.92.",
)

# %% [markdown]
# The weights are computed anew for each sentence and each token. (`</s>` marks the end. In its row nothing is left to align, and the weights are spread out.) A head that was not supervised need not be so easy to read: in lesson 02 you train one, and test what its weights tell.

# %% [markdown]
# ## One sentence goes through
#
# The best way to follow a Transformer is by **shapes**. A sentence of $n$ tokens, each a vector of $d$ numbers, is a matrix $X$ of shape $n \times d$: a row for each token. A matrix of parameters is on the right, $XW$, and changes the number of columns, never the number of rows.

# %% [markdown]
# Here the 11 English tokens and the 10 Portuguese ones go through a Transformer of the size of 2017: $d = 512$, 6 blocks on each side, 8 heads, a vocabulary of 32,000. The shapes are those of a forward pass of this course's code (on a device that computes shapes only); 10 × 11 is the shape of the head above. Firefox's model is such a machine, smaller: its decoder has two blocks, with a recurrence in place of masked self-attention.

# %% tags=["hide-input"]
from course_lib.transformer import Transformer

shapes = {"weights": "{} × {}".format(*weights.shape)}  # those of the head above


def keep(name):
    def hook(_module, _inputs, output):
        shapes[name] = "{} × {}".format(*output.shape)

    return hook


with torch.device("meta"):  # a device for shapes alone: nothing is computed
    machine = Transformer(32_000, 6, 512, 8, 2048, max_length=64)
    for name, side in (("encoder", machine.encoder), ("decoder", machine.decoder)):
        side.embedding.register_forward_hook(keep(f"{name} in"))
        side.blocks[-1].register_forward_hook(keep(f"{name} out"))
    machine.register_forward_hook(keep("logits"))
    machine(torch.zeros(11).long(), torch.zeros(10).long())

# %% tags=["hide-input"]
diagram, tall = drawings.Diagram(), (4.0, 0.7)


def column(x, name, parts, tokens):
    """Draw a block of sublayers from bottom to top, each with its residual connection."""
    lower = diagram.box("embedding + positions", (x, 0), "stream", size=tall)
    diagram.arrow((x, -1.2), lower)
    diagram.text(tokens, (x, -1.5), size=drawings.SMALL)
    for i, (part, role) in enumerate(parts):
        y = 1.9 + 2.2 * i
        sublayer = diagram.box(part, (x, y), role, size=tall)
        norm = diagram.box("+, norm", (x, y + 1.0), "norm", size=(1.7, 0.6))
        label = shapes[f"{name} in"] if i == 0 else ""
        diagram.arrow(lower, sublayer, label, role="stream")
        diagram.arrow(sublayer, norm, role="stream")
        below, side = y - 0.55, x - 2.2
        diagram.arrow((x, below), norm, via=[(side, below), (side, y + 1.0)], role="stream")
        lower = norm
    middle, height = 2.45 + 1.1 * (len(parts) - 1), 2.2 * len(parts)
    diagram.frame(f"{name}\nblock × 6", (x, middle), (4.8, height + 0.1))
    return lower


attention, network = ("self-attention", "query"), ("feed-forward", "network")
read = column(2, "encoder", [attention, network], "11 tokens: The black cat ...")
cross = (f"cross-attention, {shapes['weights']}", "query")
masked = ("masked self-attention", "query")
written = column(8.8, "decoder", [masked, cross, network], "10 tokens: start, O gato preto ...")
turns = [(2, 6.6), (5.6, 6.6), (5.6, 4.1)]
diagram.arrow(read, (6.8, 4.1), shapes["encoder out"], via=turns, role="key")
output = diagram.box("linear, softmax", (8.8, 9.6), "value", size=tall)
diagram.arrow(written, output, shapes["decoder out"], role="stream")
diagram.arrow(output, (8.8, 10.9), shapes["logits"], role="value")
diagram.text("a probability for each next token", (8.8, 11.2), size=drawings.SMALL)
diagram.show(
    "A Transformer with shapes. 11 tokens become 11 × 512, pass 6 encoder blocks of self-attention "
    "and feed-forward network, and stay 11 × 512. 10 tokens become 10 × 512 and pass 6 decoder "
    "blocks, whose cross-attention reads the encoder's 11 × 512 with 10 × 11 weights for each "
    "head; the linear layer makes 10 × 32000. An arrow leads around each sublayer and is added."
)

# %% [markdown]
# Two things to notice. A sentence keeps its shape from block to block: each part *adds* something to each token's vector, and then normalizes it. The arrows around the parts are **residual connections**. And only attention (blue) lets tokens exchange anything; all other parts treat each row by itself.

# %% [markdown]
# ## How a lesson works
#
# **Predict.** Every lesson asks you to guess before it shows. Write your guess into the cell, in place of `None`; then `reveal` shows it beside the measurement.
#
# The cross-attention above has $10 \times 11$ weights for each head: one for every pair of a token that looks and a token that is looked at. In the encoder all $n$ tokens look at all $n$. **How many gigabytes do the weights of one head take for a book of 100,000 tokens, 4 bytes each?**

# %%
guess = None  # gigabytes

# %% tags=["nbval-check-output"]
n = 100_000
reveal(guess, n * n * 4 / 1e9)

# %% [markdown]
# Forty. A text ten times as long takes a hundred times as much, if all is stored; lessons 13 and 14 are about it.
#
# **Build.** An exercise is one function with its body missing. Its first lines say what goes in and what comes out, in the notation of [jaxtyping](https://docs.kidger.site/jaxtyping/): `Float[Tensor, "... n d"]` is a tensor of floating-point numbers whose last two axes are called `n` and `d`, with any number of batch axes before them. Each comment is a step for you to write. This one is $y = 2x$. Replace the last line, and run the cell.

# %%
# exercise: start/hello

# %% [markdown]
# **Check.** `check` tries your function on inputs that it draws itself, compares values, gradients and dtypes with our tested version, and tells you which tests pass. If it recognises a misunderstanding, it names it.

# %%
check("start/hello", double)

# %% [markdown]
# **Stuck?** Each call of `hint` asks a clearer question. `solution("start/hello")` prints our solution; using it costs nothing.

# %%
hint("start/hello")

# %% [markdown]
# **Break it.** Wrong answers teach too. Let your function return `x**2`, and check again. Then `x.mul_(2)`, which gives the right numbers and is wrong all the same.
#
# **Go on with your own.** `mine` returns your function once it has passed, in this lesson and in all later ones; before that it returns the library's, and says so. This is how your parts get into the real models.

# %%
double = mine("start/hello")

# %% tags=["nbval-check-output"]
double(torch.arange(4.0))

# %% [markdown]
# Some sections use data, which are fetched when you come there; without a network the section is skipped, and a sentence says which command fetches them. Cells that only draw or import are folded: click on them to read them. Cells that train stop after half a minute at most, unless the page says otherwise. Beside the lessons there are **explorations**: one question each, in any order, never needed.

# %% [markdown]
# In a terminal, `course progress` shows how far you are, `course watch` judges what you have changed each time you save, and `course reset start/hello` gives you the empty exercise back. An update of the course replaces the notebooks that you have not changed, and no others.

# %% [markdown]
# ## Shapes
#
# Axes in front of the last two are a **batch**: the same product for each sentence. **What are the shapes of `x @ w` and of `a + b` below?**

# %%
guess = None  # ((..., ...), (..., ...))

# %% tags=["nbval-check-output"]
x, w = torch.randn(2, 7, 5), torch.randn(5, 3)  # 2 sentences of 7 tokens of 5 numbers
a, b = torch.randn(4, 1), torch.randn(3)
reveal(guess, (tuple((x @ w).shape), tuple((a + b).shape)))

# %% [markdown]
# `a + b` shows **broadcasting**: shapes are compared from the right; an axis of size 1, or a missing one, is repeated until it fits. It saves loops and hides mistakes: if a shape surprises you, print it. The library [einops](https://einops.rocks/1-einops-basics/) names axes instead. In a pattern such as `"query d, key d -> query key"`, `d` is missing on the right, so it is summed over. Brackets join or split an axis.

# %% tags=["nbval-check-output"]
x = torch.randn(2, 7, 6)
heads = rearrange(x, "batch n (head d_k) -> batch head n d_k", head=3)
assert torch.equal(heads, x.reshape(2, 7, 3, 2).permute(0, 2, 1, 3))
scores = einsum(x, x, "batch query d, batch key d -> batch query key")
assert torch.allclose(scores, x @ x.mT, atol=1e-5)
print("split:", tuple(heads.shape), " scores:", tuple(scores.shape))

# %% [markdown]
# ## Training
#
# To train a model is to change its **parameters** $\theta$ so that a number, the **loss** $L$, gets smaller. `loss.backward()` computes the derivative of the loss with respect to each parameter by the chain rule: the **gradient**. Then the **optimizer** takes a step against it, whose size is set by the **learning rate** $\eta$:
#
# $$\theta \leftarrow \theta - \eta\, \frac{\partial L}{\partial \theta}$$
#
# Here is the loop, in full. A model with one parameter $w$ learns what you have just written: doubling.


# %% tags=["nbval-check-output"]
def trained(learning_rate, steps=40):
    torch.manual_seed(0)
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    path = [model.weight.item()]
    for _ in range(steps):
        x = torch.randn(64, 1)  # a batch of 64 examples
        loss = (model(x) - 2 * x).square().mean()  # forward pass
        optimizer.zero_grad()  # forget the old gradients
        loss.backward()  # backward pass
        optimizer.step()  # one step against the gradient
        path.append(model.weight.item())
    return path


# %% [markdown]
# The loss is $(w - 2)^2\, \overline{x^2}$, where the batch's mean square $\overline{x^2}$ is about 1. So each step multiplies the distance $w - 2$ by about $1 - 2\eta$. **With which of the learning rates 0.1, 0.4, 0.9 and 1.1 does $w$ jump past 2 at nearly every step and still come closer?**

# %%
guess = None  # a learning rate

# %%
paths = {rate: trained(rate) for rate in (0.1, 0.4, 0.9, 1.1)}


def jumps(path):
    signs = [w > 2 for w in path[:9]]  # of the first 8 steps
    return sum(one != other for one, other in pairwise(signs))


def closer(path):
    return abs(path[-1] - 2) < abs(path[0] - 2)


reveal(guess, next(rate for rate in paths if jumps(paths[rate]) >= 5 and closer(paths[rate])))

# %% tags=["hide-input"]
squares = torch.randn(1000, 40, 64).square().mean(-1)  # of 1000 other runs, 40 batches each
shrunk = {rate: (1 - 2 * rate * squares).abs().prod(-1) < 1 for rate in (0.9, 1.1)}
ends = {rate: round(100 * kept.float().mean().item()) for rate, kept in shrunk.items()}
print("with other batches, % of 1,000 runs that end closer to 2 than they began:", ends)
assert ends[0.9] > 99 and ends[1.1] < 5

title = "Rate 0.1 creeps to 2, 0.4 goes there, 0.9 jumps past it and arrives, 1.1 leaves"
figure, ax = plots.axes(title, "step", "the parameter w", size=(7, 3.4))
ax.axhline(2, color="0.5", linestyle="--", linewidth=1)
for (rate, path), colour in zip(paths.items(), plots.COLOURS):
    ax.plot(path[:10] if rate == 1.1 else path, "o-", color=colour, markersize=3, linewidth=1)
    at = {0.1: (3, 0.5), 0.4: (2.1, 1.5), 0.9: (12.3, 2.6), 1.1: (9.2, 5)}[rate]
    ax.text(*at, f"rate {rate}", color=colour, size="small")
ax.text(12.3, 5, f"(at step 40: {paths[1.1][-1]:,.0f})", color=colour, size="small")
ax.set(xlim=(-0.5, 25.5), ylim=(-5.5, 7))
assert closer(paths[0.9]) and not closer(paths[1.1])
plots.show(
    figure,
    "The parameter w at the first 25 of 40 steps, for four learning rates; the target is 2. With 0.1 it rises "
    "slowly, with 0.4 it is there after three steps, with 0.9 it swings around 2 for about 18 steps "
    "and arrives, with 1.1 it swings wider in the end, and leaves the picture after 8 steps.",
)

# %% [markdown]
# Every training that you run is this loop, with a larger model, a better optimizer (AdamW), a learning rate that changes, and gradient clipping (lesson 01). It is called `training.train(model, batches, loss, ...)`. **Seeds** make random numbers repeatable: the same seed, machine and number of steps give the same model. You train with one seed; what a page claims about the result was tried with several (`research/results/claims.json` has most of the runs; where there was one, the page says so).

# %% [markdown]
# ## The map

# %% tags=["nbval-check-output"]
from IPython.display import Markdown
from course_lib.files.course_map import course_map

Markdown(course_map())  # run it again to see what has passed

# %% [markdown]
# ## The words
#
# In most code and all pictures, `weights` are attention's. What training changes are *parameters*, also called the weights of a model.
#
# | | |
# |:-|:-|
# | `n` | how many tokens a sentence has |
# | `n_q`, `n_k` | how many queries and how many keys, where these differ |
# | `query`, `key`, `head` | the axes of attention: the token that looks, the token that is looked at, and which of several attentions |
# | `d_model` | how many numbers a token has inside the model |
# | `d_k`, `d_v`, `d_ff`, `d_h` | the size of a key or query, of a value, of the hidden layer of a feed-forward network, of the state of an RNN |
# | `vocab` | how many different tokens there are |
# | `scores`, `weights` | how well each key fits a query; the same made into shares that sum to one |
# | `mask` | True where a query *may* look |
#
# The course covers five lectures: L1 is Stanford's CS224N (2021), L2 McMaster's, L3 SUSTech's CS310, L4 HKU's COMP3361 (2024), L5 by Chu Dinh Duc. [TOPICS.md](../docs/TOPICS.md) says where each of their topics is taught, and where they disagree.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. x has shape (8, 20, 64), w has shape (64, 10). What is the shape of x @ w? And how many numbers does w have if there are 100 tokens instead of 20?</summary>
#
# (8, 20, 10). w has 640 numbers, still: a weight matrix does not depend on the number of tokens.
# </details>
#
# <details><summary>2. Why does the loop call zero_grad?</summary>
#
# `backward` adds to the gradients that are there. Without zero_grad, old batches would count again.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 01 begins with a network that reads words aloud, and asks where it loses a long one.
#
# Vaswani et al. 2017 (the Transformer); Junczys-Dowmunt et al. 2018 (Marian, the program that trained the translator); Allal et al. 2025 (SmolLM2, the language model).
