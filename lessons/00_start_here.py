# %% [markdown]
# # 00 · Start here
#
# **30 minutes · nothing to fetch**
#
# **How do you get from a product of two matrices to a program that translates?** This course builds the Transformer from its parts, on your own machine, and measures what it claims, or names the source. On this page you write your first function, a model learns it from you, and you see where you are going.
#
# You need Python, a little PyTorch, matrix products and derivatives. The lessons take about 23 hours in all, one sitting each.

# %%
from itertools import pairwise
import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import results

# %% tags=["hide-input"]
from course_lib.instruments.pictures import start as pictures

pictures.two_machines()

# %% [markdown]
# ## Your first function
#
# An exercise is one function with its body missing. This one is $y = 2x$. The first line of the cell says what goes in and what comes out: `Float[Tensor, "..."]` is a tensor of floating-point numbers, of any shape. Each comment is a step for you to write. Click into the cell, write over its last line, and press Shift+Enter; then run the cell below it.

# %%
# exercise: start/hello

# %%
check("start/hello", double)

# %% [markdown]
# A ✓ means that it works: for single numbers, for rows and for batches of rows. If something is wrong, `check` says what. If you are stuck, run the next cell alone for a hint, and again for a clearer one.

# %%
hint("start/hello")

# %% [markdown]
# Now keep your function: `mine` returns it once it has passed, and before that the library's. Then let a model learn it.

# %%
double = mine("start/hello")


# %%
def trained(learning_rate, steps=40):
    torch.manual_seed(0)
    model = nn.Linear(1, 1, bias=False)  # one parameter w, random at first: it returns w x
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    path = [model.weight.item()]
    for _ in range(steps):
        x = torch.randn(64, 1)  # 64 examples
        loss = (model(x) - double(x)).square().mean()  # how far is the model from you?
        optimizer.zero_grad()  # forget the old gradients
        loss.backward()  # which way should w go?
        optimizer.step()  # a small step that way
        path.append(model.weight.item())
    return path


# %% tags=["nbval-check-output"]
path = trained(learning_rate=0.1)
for step in (0, 5, 10, 20, 40):
    w = path[step]
    print(f"after {step:2} steps: w = {w:5.2f}, so 7 becomes {7 * w:5.2f}")
print("your function says that 7 becomes", double(torch.tensor(7.0)).item())

# %% [markdown]
# The model doubles. It has never seen your code, only numbers and what you return for them.
#
# A translator learns in the same way, with millions of parameters instead of one. What must such a model look like inside?

# %% [markdown]
# ## Where you are going

# %% tags=["hide-input"]
pictures.course_map()

# %% [markdown]
# This is the Transformer (Vaswani et al. 2017). An **encoder** reads, a **decoder** writes. You will meet this drawing in most lessons, with the parts of that lesson lit.
#
# In lesson 09 three real models run in this course's code, and can use your functions. This is what two of them wrote when we ran them: a translator that Firefox uses, and SmolLM2, a small language model. SmolLM2 is a decoder alone, as GPT, Llama and Qwen are: of this map it has the right half, without cross-attention.

# %% tags=["nbval-check-output"]
look = results.load("first_look")["figures"]
print("to be translated:", "The black cat sleeps on the white chair.")
print("translator:      ", look["translation"])
print("asked:           ", look["question"])
print("language model:  ", look["answer"])

# %% [markdown]
# Now the idea that the whole course is about. A model reads and writes **tokens**: words, pieces of words, punctuation marks. Inside, each token is a vector. Before the translator writes a token, it mixes the vectors of all tokens that it has read into one: a weighted average. The weight of a token is its *share* of the mixture, so the weights sum to one. This is **attention**:

# %% tags=["nbval-check-output"]
vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [4.0, 4.0]])  # three tokens
shares = torch.tensor([0.5, 0.5, 0.0])  # of the mixture
print(shares @ vectors)  # half of the first, half of the second, nothing of the third

# %% [markdown]
# The translator computes several such mixtures at a time, with different weights; each is called a **head**. You will see one of them.
#
# Now guess. Portuguese usually puts the adjective after the noun, *gato preto*. **Which English token gets the largest weight while the translator writes *gato*, and which for *preto*?** Write your guess in place of `None`: `reveal` sets it beside what was measured.

# %%
guess = None  # two English tokens

# %%
weights = torch.tensor(look["weights"])
best = [look["source"][column] for column in weights.argmax(dim=-1).tolist()]
reveal(guess, (best[1], best[2]))

# %% tags=["hide-input"]
pictures.head(weights, look["target"], look["source"])

# %% [markdown]
# Framed are the two pairs that cross, because Portuguese has the noun first. The weights are computed anew for each sentence and each token. In the last row, the end `</s>`, nothing is left to align, and the weights spread out. Mozilla trained this head to put its weight on the token that is being translated. In lesson 02 you train a head that nobody told where to look, and test what its weights tell.

# %% [markdown]
# ## One sentence goes through
#
# The best way to follow a Transformer is by **shapes**. A sentence of $n$ tokens, each a vector of $d$ numbers, is a matrix $X$ of shape $n \times d$: a row for each token. A matrix of parameters multiplies it from the right, $XW$. This can change the number of columns, never the number of rows.

# %% [markdown]
# Here the English and the Portuguese tokens go through a Transformer of the 2017 paper's size, with $d = 512$. Its cross-attention has 10 × 11 weights, like the head above.

# %% tags=["hide-input"]
pictures.with_shapes(weights)

# %% [markdown]
# Two things to notice. A sentence keeps its shape from block to block: what each part computes is *added* to the token's vector, and the sum is normalized. The arrows around the parts are **residual connections**. And only attention (blue) lets tokens exchange anything: its weights $A$ multiply from the left, $AX$, and so mix rows. All other parts treat each row by itself, as $XW$ does.

# %% [markdown]
# Those $10 \times 11$ weights of each head are one for every pair: a token that looks, and a token that is looked at. In the encoder all $n$ tokens look at all $n$. **How many gigabytes do the weights of one head take for a book of 100,000 tokens, 4 bytes each?**

# %%
guess = None  # gigabytes

# %% tags=["nbval-check-output"]
n = 100_000
reveal(guess, n * n * 4 / 1e9)

# %% [markdown]
# A text ten times as long takes a hundred times as much, if all weights are stored. Lessons 13 and 14 avoid that.
#
# Axes in front of the last two are a **batch**: one matrix for each sentence, and the same product for each of them. An exercise writes them as three dots, in the notation of [jaxtyping](https://docs.kidger.site/jaxtyping/): `Float[Tensor, "... n d"]` has two axes called `n` and `d`, and any number of batch axes before them.
#
# **What are the shapes of `x @ w` and of `a + b` below?**

# %%
guess = None  # ((..., ...), (..., ...))

# %% tags=["nbval-check-output"]
x, w = torch.randn(2, 7, 5), torch.randn(5, 3)  # 2 sentences of 7 tokens of 5 numbers
a, b = torch.randn(4, 1), torch.randn(3)
reveal(guess, (tuple((x @ w).shape), tuple((a + b).shape)))

# %% [markdown]
# `a + b` shows **broadcasting**: shapes are compared from the right, and an axis that is missing or has size 1 is repeated until it fits. It saves loops and hides mistakes. If a shape surprises you, print it. The library [einops](https://einops.rocks/1-einops-basics/) names axes instead. In a pattern such as `"query d, key d -> query key"`, `d` is missing on the right, so it is summed over. Parentheses split an axis on the left, and join axes on the right.

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
# What did the loop do to your model? To train a model is to change its **parameters** $\theta$ so that a number, the **loss** $L$, gets smaller. `loss.backward()` computes the derivative of the loss with respect to each parameter by the chain rule: the **gradient**. Then the **optimizer** takes a step against it, whose size is set by the **learning rate** $\eta$:
#
# $$\theta \leftarrow \theta - \eta\, \frac{\partial L}{\partial \theta}$$

# %% [markdown]
# Your function doubles, so the model $wx$ has the loss $(w - 2)^2\, \overline{x^2}$. The mean square $\overline{x^2}$ of a batch is 1, give or take a fifth. So each step multiplies the distance $w - 2$ by about $1 - 2\eta$. **With which of the learning rates 0.1, 0.4, 0.9 and 1.1 does $w$ jump past 2 at nearly every step and still come closer?**

# %%
guess = None  # a learning rate

# %% tags=["nbval-check-output"]
paths = {rate: trained(rate) for rate in (0.1, 0.4, 0.9, 1.1)}
for rate, path in paths.items():
    jumps = sum((before > 2) != (after > 2) for before, after in pairwise(path[:9]))
    distance = abs(path[-1] - 2)
    print(f"rate {rate}: past 2 in {jumps} of 8 steps, in the end {distance:.0f} from it")
    if jumps > 6 and distance < 1:
        closer = rate
reveal(guess, closer)

# %% tags=["hide-input"]
pictures.learning_rates(paths)

# %% [markdown]
# Every training that you run is this loop, with a larger model, a better optimizer (AdamW), a learning rate that changes, and gradient clipping (lesson 01). It is called `training.train(model, batches, loss, ...)`. **Seeds** make random numbers repeatable: the same seed, machine and number of steps give the same model. You train with one seed. What a page claims was tried with several, unless the page says otherwise.

# %% [markdown]
# ## How a lesson works
#
# **Predict.** Every lesson asks you to guess before it shows the answer.
#
# **Build.** You write the parts. `hint` asks questions, and `solution("start/hello")` prints our solution. Using it costs nothing.
#
# **Break it.** Wrong answers teach too. Let your function return `x**2`, and check again. Then try `x.mul_(2)`: the numbers are right, and it is still wrong.
#
# **Go on with your own.** `mine` returns your function in all later lessons, too, and says so where it returns the library's. This is how your parts get into the real models.

# %% [markdown]
# Some sections fetch data when you reach them. Without a network such a section is skipped. A cell that trains shows how much time is left. Interrupt it, and its model is kept. Beside the lessons there are **explorations**: one question each, in any order, never needed.

# %% [markdown]
# ## The map

# %% tags=["nbval-check-output"]
from IPython.display import Markdown
from course_lib.files.course_map import course_map

Markdown(course_map())  # run it again to see what you have passed

# %% [markdown]
# ## The words
#
# In most code and all pictures, `weights` means attention weights. What training changes we call *parameters*; elsewhere they are called weights, too.
#
# <details><summary>Axes and sizes, to look up</summary>
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
# </details>

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. x has shape (8, 20, 64), w has shape (64, 10). What is the shape of x @ w? And how many numbers does w have if there are 100 tokens instead of 20?</summary>
#
# (8, 20, 10). w still has 640 numbers: a matrix of parameters does not depend on the number of tokens.
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
#
# The course covers five lectures: L1 is Stanford's CS224N (2021), L2 McMaster's, L3 SUSTech's CS310, L4 HKU's COMP3361 (2024), L5 by Chu Dinh Duc. [TOPICS.md](../docs/TOPICS.md) says where each of their topics is taught, and where they disagree.
