# %% [markdown]
# # 00 · Start here
#
# **5 minutes · nothing to know beforehand · nothing to fetch**
#
# This course builds the Transformer from its parts, on your own machine, and believes no claim that it cannot measure. This first page shows how a lesson works; its single exercise multiplies by two. The lessons take about 21 hours in all; each exercise says its minutes, and how hard it is (●○○ to ●●●).

# %%
import torch
from IPython.display import Markdown
from jaxtyping import Float
from torch import Tensor

from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.files.course_map import course_map, topic_map

# %% [markdown]
# ## Predict
#
# Every lesson asks you to guess before it shows. A guess costs ten seconds and turns a result into a surprise or a confirmation; without one it is only a number. So write yours into the cell below: ten words make 45 pairs. **How many pairs do a thousand words make?**

# %%
guess = None  # your number of pairs

# %% tags=["nbval-check-output"]
words = 1000
pairs = words * (words - 1) // 2
reveal(guess, pairs)

# %% [markdown]
# A hundred times the words, and more than ten thousand times the pairs. Keep that number in mind: attention compares all pairs, and lesson 12 is about what that costs.

# %% [markdown]
# ## Build
#
# An exercise is one function with its body missing. The line above the body says what goes in and what comes out: here a tensor of floats of any shape, and another of the same shape. Replace the last line by your own code, and run the cell.

# %%
# exercise: start/hello

# %% [markdown]
# ## Check
#
# `check` tries your function on inputs that it draws itself, compares numbers, gradients and types with a version that is proven elsewhere, and tells you what holds. If it recognises a misunderstanding, it says which one.

# %%
check("start/hello", double)

# %% [markdown]
# Until you have changed the cell above, the panel says *not attempted yet*, which is no failure. Stuck? A hint asks a question; the next call asks a clearer one. `solution("start/hello")` prints the library's own code, without any shame.

# %%
hint("start/hello")

# %% [markdown]
# ## Break it
#
# Wrong answers teach more than right ones. Make your function return `x**2`, and check it again; then `x.mul_(2)`, which gives the right numbers and is wrong all the same. Read what the panel says before you repair it.

# %% [markdown]
# ## Go on with your own
#
# `mine` returns your function once it has passed, in this lesson and in all later ones; before that, it returns the library's, and says so. By lesson 08 a real translator can run on the parts that you wrote.

# %%
double = mine("start/hello")

# %% tags=["nbval-check-output"]
import torch

double(torch.arange(4.0))

# %% [markdown]
# Your notebooks, your results and your passed answers live in this folder alone; an update of the course never overwrites them. In a terminal, `course progress` shows how far you are, and `course reset start/hello` gives you the empty exercise back.

# %% [markdown]
# ## The map

# %%
Markdown(course_map())  # run it again to see what has passed

# %% [markdown]
# ## The words
#
# The course uses one word for one thing, in code, in pictures and in prose:
#
# | | |
# |:-|:-|
# | `batch` | how many sentences are worked on side by side |
# | `n` | how many words a sentence has; `n_q` queries, `n_k` keys where they differ |
# | `query`, `key`, `head` | the axes of attention: who looks, who is looked at, and for which reason |
# | `d_model` | how many numbers describe a word inside the model |
# | `d_k`, `d_v`, `d_ff`, `d_h` | the same for a key or query, a value, the middle of a feed-forward layer, the state of an RNN |
# | `vocab` | how many different words, or letters, there are |
# | `q`, `k`, `v` | the queries, keys and values, a row each |
# | `scores`, `weights` | how well each key fits a query; the same as shares that sum to one |
# | `mask` | True where a query *may* look |
#
# Rows are words. A weight matrix stands to the right of what it multiplies: `x @ w`.

# %% [markdown]
# ## Where each lecture's topics are taught
#
# The course covers five lectures: L1 Stanford CS224N (2021), L2 McMaster, L3 SUSTech CS310, L4 HKU COMP3361 (2024) and L5 by Chu Dinh Duc. Where they disagree or slip, a box shows both versions, runs them, and a test pins what holds.

# %%
Markdown(topic_map())

# %% [markdown]
# ## What you take along
#
# Guess, run, read, build, check, break. Each claim stands beside the cell that measures it; each check has itself been tried on wrong answers. Lesson 01 begins with a network that reads a word letter by letter, and forgets how it began.
