# %% [markdown]
# # 00 · Start here
#
# **25 minutes · nothing to fetch**
#
# How do you get from a product of two matrices to a program that translates? This course builds the Transformer from its parts, on your own machine, and measures what it claims, or names the source. This first page shows where you are going and how a lesson works.
#
# You need Python, matrix products and derivatives. Four short primers below have the rest; skip what you know. The lessons take about 36 hours in all.

# %%
import torch
from einops import einsum, rearrange, reduce
from IPython.display import Markdown
from jaxtyping import Float
from torch import Tensor, nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.files.course_map import course_map, topic_map
from course_lib.instruments import drawings, plots, results

# %% [markdown]
# ## Where you are going
#
# In lesson 09 three real models run in this course's code: a translator that Firefox uses (trained with Marian), a small language model (SmolLM2), and an encoder that compares sentences. Your own functions can be put in: your attention, your masks, your norm. Here is what two of them write, stored by `make results LESSON=00`, because their weights are 35 and 93 MB to fetch.

# %% tags=["nbval-check-output"]
look = results.load("first_look")["figures"]
print("to be translated:", "The black cat sleeps on the white chair.")
print("translator:      ", look["translation"])
print("asked:           ", look["question"])
print("language model:  ", look["answer"])

# %% [markdown]
# And here is the idea that the whole course is about. Before it writes a word, the translator gives each word that it has read a **weight**: how much does this word matter now? The weights sum to one. That is **attention**. (A **token** is a word, a piece of a word, or a punctuation mark; `</s>` marks the end.) Portuguese usually puts the adjective after the noun, *gato preto*. **Which English token gets the largest weight while the translator writes *gato*, and which for *preto*?**

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
# The weights are computed anew for each sentence and each token. Several parts of the translator compute such weights; they are called **heads**. Mozilla trained this one to **align** words (lesson 09): to look at the word that is being translated. (In lesson 02 you train a model that finds out by itself where to look.) In the row of `</s>` nothing is left to align, and the weights are spread out.

# %% [markdown]
# ## The whole machine
#
# This is the Transformer (Vaswani et al. 2017). Tokens enter below as vectors; an encoder reads, a decoder writes. You will see this drawing at the top of each lesson; the parts that the lesson builds are in colour.

# %% tags=["hide-input"]
drawings.transformer(
    set(drawings.PART_ROLES),
    "The Transformer of 2017, all parts in colour. The encoder: embedding, positions, then N "
    "blocks of self-attention and a feed-forward network, each followed by add and norm. The "
    "decoder: embedding, positions, then N blocks of masked self-attention, cross-attention to the "
    "encoder, and a feed-forward network, then a linear layer and a softmax for the next token.",
)

# %% [markdown]
# | part | what it does | lesson |
# |:-|:-|:-|
# | embedding; linear, softmax | a vector for each token; a probability for each token that may come next | 01 |
# | cross-attention | the decoder looks at what the encoder has read | 02 |
# | self-attention | the tokens of one sentence look at each other | 03 |
# | positions | tell the tokens' order | 04 |
# | feed-forward, masks | change each vector by itself; hide the future | 05 |
# | heads | look at several places at once | 06 |
# | add & norm | let many layers train | 07 |
# | blocks × N | all parts together; three real models | 08, 09 |

# %% [markdown]
# ## How a lesson works: predict
#
# Every lesson asks you to guess before it shows. A guess costs ten seconds; without one, a result is only a number. Write yours into the cell, in place of `None`; then `reveal` shows it beside the measurement.
#
# Attention computes a score for each pair of a token that looks and a token that is looked at, itself included: $n \times n$ scores for $n$ tokens, 4 bytes each. **How many gigabytes are the scores for a book of 100,000 tokens, if each pair is scored once?**

# %%
guess = None  # gigabytes

# %% tags=["nbval-check-output"]
n = 100_000
reveal(guess, n * n * 4 / 1e9)

# %% [markdown]
# Forty. A text ten times as long needs a hundred times as much. Keep that number in mind: lessons 13 and 14 are about it.

# %% [markdown]
# ## Build
#
# An exercise is one function with its body missing. Its first lines say what goes in and what comes out, and each comment is a step for you to write. Before the exercise, the page has the formula. Here it is $y = 2x$, for a tensor of any shape. Replace the last line, and run the cell.

# %%
# exercise: start/hello

# %% [markdown]
# ## Check
#
# `check` tries your function on inputs that it draws itself. It compares values, gradients and dtypes with a version that is tested elsewhere, and says what holds. If it recognises a misunderstanding, it names it.

# %%
check("start/hello", double)

# %% [markdown]
# Until you have changed the cell above, the panel says *not attempted yet*. Stuck? A hint asks a question, and the next call of `hint` a clearer one. `solution("start/hello")` prints our solution. Using it costs nothing.

# %%
hint("start/hello")

# %% [markdown]
# Wrong answers teach too, so **break it**: let your function return `x**2`, and check again. Then `x.mul_(2)`, which gives the right numbers and is wrong all the same. Read what the panel says before you repair it.

# %% [markdown]
# ## Go on with your own
#
# `mine` returns your function once it has passed, in this lesson and in all later ones. Before that it returns the library's, and says so. (The outputs that came with this page were made in the course's own folder, which keeps no answers. Yours does.) This is how your parts get into the real models.

# %%
double = mine("start/hello")

# %% tags=["nbval-check-output"]
double(torch.arange(4.0))

# %% [markdown]
# Four more things that you will meet:
#
# - `needs("cmudict")` begins a section that uses downloaded data. If the data is not there, the section is skipped, and a sentence says which command fetches it. `needs()` begins a section that needs nothing.
# - Cells that only draw are folded away. Click on them to read them.
# - Cells that train have a progress bar, and end by themselves after a time that the page names. (The outputs that came with the page were made without that limit.)
# - Sections and exercises marked *optional* are not needed later.

# %% [markdown]
# Your notebooks, results and passed answers are in this folder; an update of the course never overwrites them. In a terminal, `course progress` shows how far you are and what is next, `course watch` judges what you have changed each time you save, and `course reset start/hello` gives you the empty exercise back. Each exercise says its minutes, and how hard it is (●○○ to ●●●).

# %% [markdown]
# ## Shapes
#
# *Primer 1 of 4. Skip it if you can predict the printed shapes.* A tensor is an array of numbers with a **shape**. In this course a row is a token: a sentence of $n$ tokens with $d$ numbers each is a matrix $X$ of shape $n \times d$, and a weight matrix is on the right, $X W$. In Python, `@` is the matrix product. Axes in front of the last two are a **batch**: the same product for each sentence.
#
# **What are the shapes of `x @ w` and of `a + b` below?**

# %%
guess = None  # ((..., ...), (..., ...))

# %% tags=["nbval-check-output"]
x, w = torch.randn(2, 7, 5), torch.randn(5, 3)  # 2 sentences of 7 tokens of 5 numbers
a, b = torch.randn(4, 1), torch.randn(3)
reveal(guess, (tuple((x @ w).shape), tuple((a + b).shape)))
print("transposed:", tuple(x.mT.shape), "  sum over the last axis:", tuple(x.sum(dim=-1).shape))

# %% [markdown]
# `x @ w` multiplies each of the two sentences by the same matrix. `a + b` shows **broadcasting**: shapes are compared from the right; an axis of size 1, or a missing one, is repeated until it fits. So a column of 4 and a row of 3 give a table of 4 × 3. It saves loops, and it hides mistakes: if a shape surprises you, print it.

# %% [markdown]
# ## Einops
#
# *Primer 2 of 4.* `x.reshape(2, 7, 3, 2).permute(0, 2, 1, 3)` splits an axis and swaps two others. It is hard to read and easy to get wrong. The library **einops** names the axes instead: on the left what comes in, on the right what goes out. A name that is missing on the right is summed over (`einsum`) or reduced (`reduce`); brackets join or split an axis.

# %% tags=["nbval-check-output"]
x = torch.randn(2, 7, 6)
heads = rearrange(x, "batch n (head d_k) -> batch head n d_k", head=3)
assert torch.equal(heads, x.reshape(2, 7, 3, 2).permute(0, 2, 1, 3))
mean = reduce(x, "batch n d -> batch d", "mean")
scores = einsum(x, x, "batch query d, batch key d -> batch query key")
print("split:", tuple(heads.shape), " mean:", tuple(mean.shape), " scores:", tuple(scores.shape))
assert torch.allclose(scores, x @ x.mT, atol=1e-5)

# %% [markdown]
# ## Types with shapes
#
# *Primer 3 of 4.* The first lines of an exercise say the shapes, in the notation of **jaxtyping**. `Float[Tensor, "... n d"]` is a tensor of floating-point numbers whose last two axes are called `n` and `d`, with any number of batch axes before them. Within one function, the same name means the same size. `Bool` and `Int` are tensors of truth values and of whole numbers. Python does not check these types when your function runs; they are there to be read.


# %% tags=["nbval-check-output"]
def scores_of(
    q: Float[Tensor, "... n_q d"], k: Float[Tensor, "... n_k d"]
) -> Float[Tensor, "... n_q n_k"]:
    """Return the dot product of each query with each key."""
    return q @ k.mT


print(tuple(scores_of(torch.randn(4, 8), torch.randn(9, 8)).shape))

# %% [markdown]
# ## Training
#
# *Primer 4 of 4.* To train a model is to change its **parameters** so that a number, the **loss** $L$, gets smaller. PyTorch remembers every operation, and `loss.backward()` computes the derivative of the loss with respect to each parameter $\theta$ by the chain rule: the **gradient**. Then the **optimizer** takes a step against it, whose size is set by the **learning rate** $\eta$:
#
# $$\theta \leftarrow \theta - \eta\, \frac{\partial L}{\partial \theta}$$

# %% [markdown]
# Here is the loop, in full. A model with one parameter learns to double, as your exercise does. **With learning rate $\eta = 0.1$, how many steps does it take until the parameter is within 0.01 of 2? And with $\eta = 1.1$?**

# %%
guess = None  # (steps, steps), or "never" for one of them


# %% tags=["nbval-check-output"]
def trained(learning_rate, steps=100):
    torch.manual_seed(0)
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    path = []
    for _ in range(steps):
        x = torch.randn(64, 1)  # a batch of 64 examples
        loss = (model(x) - 2 * x).square().mean()  # forward pass
        optimizer.zero_grad()  # forget the old gradients
        loss.backward()  # backward pass
        optimizer.step()  # one step against the gradient
        path.append(model.weight.item())
    return path


# %% tags=["nbval-check-output"]
paths = {rate: trained(rate) for rate in (0.1, 1.1)}
slow = next(step for step, w in enumerate(paths[0.1], start=1) if abs(w - 2) < 0.01)
reveal(guess, (slow, "never" if abs(paths[1.1][-1]) > 1000 else "sometime"))

# %% tags=["hide-input"]
title = "With a small learning rate the parameter arrives, with a large one it leaps away"
figure, ax = plots.axes(title, "step", "distance from 2", size=(6.4, 3))
for (rate, path), colour in zip(paths.items(), plots.COLOURS):
    distances = [abs(w - 2) for w in path[:40]]
    ax.semilogy(range(1, 41), distances, color=colour)
    ax.text(40.7, distances[-1], f"rate {rate}", color=colour, va="center", size="small")
ax.axhline(0.01, color="0.5", linestyle="--", linewidth=1)
ax.text(1, 0.006, "0.01", color="0.4", size="small", va="top")
ax.set_xlim(0, 47)
plots.show(
    figure,
    "Distance of the parameter from 2 against the step, on a logarithmic axis. With learning rate "
    f"0.1 it falls in a nearly straight line and is below 0.01 at step {slow}; with 1.1 it "
    "rises instead, to about a thousand at step 40.",
)

# %% [markdown]
# Why? Each step multiplies the distance from 2 by $1 - 2\eta\,\overline{x^2}$, where the batch's mean square $\overline{x^2}$ is about 1: by about 0.8 with $\eta = 0.1$, and by about −1.2 with $\eta = 1.1$. That step jumps past 2, and lands farther away than it began.
#
# **Break it:** in `trained`, replace `optimizer.step()` by what it does, `with torch.no_grad(): model.weight -= learning_rate * model.weight.grad`. Is the path the same?

# %% [markdown]
# Every training in this course is this loop, with a larger model, a better optimizer (AdamW), a learning rate that changes, and gradient clipping (lesson 01). From lesson 01 on it is called `training.train(model, batches, loss, ...)`; lesson 02 writes it out once more for a real model. **Seeds** make random numbers repeatable: the same seed on the same machine, the same model. You train with one seed. Where a page claims something about the result, `results/claims.json` has the runs in which it held, in most lessons with three seeds.

# %% [markdown]
# ## The map

# %%
Markdown(course_map())  # run it again to see what has passed

# %% [markdown]
# ## The words
#
# The course uses these words, in code, in pictures and in prose. *Weights* alone are attention's; a *weight matrix* and a model's weights are parameters.
#
# | | |
# |:-|:-|
# | token | the unit that a model reads and writes: a word, a piece of a word, a letter, a sound, a mark |
# | `batch` | how many sentences are computed side by side |
# | `n` | how many tokens a sentence has; `n_q` queries, `n_k` keys where they differ |
# | `query`, `key`, `head` | the axes of attention: the token that looks, the token that is looked at, and which of several attentions |
# | `d_model` | how many numbers a token has inside the model |
# | `d_k`, `d_v`, `d_ff`, `d_h` | the size of a key or query, of a value, of the hidden layer of a feed-forward network, of the state of an RNN |
# | `vocab` | how many different tokens there are |
# | `q`, `k`, `v` | the queries, keys and values, a row each |
# | `scores` | how well each key fits a query |
# | `weights` | the scores made into shares that sum to one |
# | `mask` | True where a query *may* look |
#
# Rows are tokens. A weight matrix is on the right of what it multiplies: `x @ w`.

# %% [markdown]
# ## Where each lecture's topics are taught
#
# The course covers five lectures: L1 Stanford CS224N (2021), L2 McMaster, L3 SUSTech CS310, L4 HKU COMP3361 (2024) and L5 by Chu Dinh Duc. Where they disagree or slip, a box shows both versions and runs them, and a test pins down what is right. A number such as D14 names the test: `test_d14_...` in `tests/components/test_disagreements.py`.

# %%
Markdown(topic_map())

# %% [markdown]
# ## What to remember
#
# Guess, run, read, build, check, break. Every number that a lesson argues with is printed by a cell beside it, or quoted with its source.
#
# | | |
# |:-|:-|
# | a sentence | $X$, a row for each of $n$ tokens, a column for each of $d$ numbers |
# | a linear layer | $X W$, with $W$ on the right |
# | one step of training | $\theta \leftarrow \theta - \eta\, \partial L / \partial \theta$ |
# | attention's scores | $n \times n$ for $n$ tokens |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. x has shape (8, 20, 64), w has shape (64, 10). What is the shape of x @ w? And how many numbers does w have if there are 100 tokens instead of 20?</summary>
#
# (8, 20, 10). w has 640 numbers, still: a weight matrix does not depend on the number of tokens.
# </details>
#
# <details><summary>2. What does rearrange(x, "a b -> b a") do?</summary>
#
# It transposes a matrix.
# </details>
#
# <details><summary>3. Why is `x.mul_(2)` wrong for the exercise, though it returns the right numbers?</summary>
#
# It changes the caller's tensor.
# </details>
#
# <details><summary>4. Why does the loop call zero_grad?</summary>
#
# `backward` adds to the gradients that are there. Without zero_grad, old batches would count again.
# </details>
#
# <details><summary>5. Twice as many tokens: how many times more scores?</summary>
#
# Four times.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 01 begins with a network that reads words aloud, and asks where it loses a long one.
#
# Vaswani et al. 2017 (the Transformer); Junczys-Dowmunt et al. 2018 (Marian, the program that trained the translator); Allal et al. 2025 (SmolLM2, the language model). [PyTorch in 60 minutes](https://docs.pytorch.org/tutorials/beginner/deep_learning_60min_blitz.html), [einops](https://einops.rocks/1-einops-basics/) and [jaxtyping](https://docs.kidger.site/jaxtyping/) have longer introductions.
