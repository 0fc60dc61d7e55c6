# %% [markdown]
# # 03 · Self-attention
#
# **75 minutes · after lesson 02 · needs `minilm` (83.5 MB)**
#
# Most tokens mean little alone. A verb needs its subject, and *ring* needs a *bell* or a *finger* to say which *ring* is meant. **What if every token looks at every other token of its own sentence, all at once?**
#
# You will set three matrices by hand so that each token finds the one it needs. Training then finds the same, and a real encoder, running on your attention, tells one *ring* from another.

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

# %%
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import needs, pointers
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import pointer_models, results, training
from course_lib.instruments.pictures import self_attention as pictures

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(0)
sentence, found = pointers.sentences(1, names=3, generator=generator)
pictures.wishes(sentence, found)

# %% [markdown]
# Here is that need in its smallest form: the **pointer task**. Each token must return the number of the token that it wants. A token is a row of the matrix $X$: its own name and the wanted one, both one-hot, and its number. With three tokens a row has 3 + 3 + 1 numbers. The layers that we train get eight tokens, so rows of 17.

# %% tags=["hide-input"]
pictures.course_map()

# %% [markdown]
# You build the layer in colour. The decoder's also has a mask (lesson 05), and in the Transformer both have several heads (lesson 06).
#
# ## Attention is a table of shares
#
# The last step of attention is a weighted average (lesson 02), and for all tokens at once it is a matrix product. Row $i$ of the $n \times n$ matrix $A$ holds the shares that token $i$ takes of all tokens, itself included:
#
# $$\underset{n \times d}{O} = \underset{n \times n}{A}\;\underset{n \times d}{X} \qquad o_i = \sum_{j=1}^{n} \alpha_{ij}\, x_j \qquad \sum_{j=1}^{n} \alpha_{ij} = 1$$
#
# If all scores are equal, each of four tokens gets 1/4. With later tokens hidden:

# %% tags=["nbval-check-output"]
past = torch.ones(4, 4).bool().tril()
print(softmax(torch.zeros(4, 4), past))

# %% [markdown]
# This gives running averages: row 3 averages tokens 1 to 3. A model that reads a finished sentence is **bidirectional**: it may look both ways. One that writes is **causal**: it sees only what is already there. The map's encoder is bidirectional, its decoder causal.
#
# In the pointer task a token must look both ways, but not at all tokens equally. How can it choose?

# %% [markdown]
# ## Version 1: the tokens choose by similarity
#
# Let the dot product of two tokens be their score, so that similar tokens exchange more. Then each row of $X$ is query, key and value at once, and there is nothing to train:
#
# $$O = \mathrm{softmax}(X X^T)\, X \qquad\qquad \alpha_{ij} = \frac{\exp(x_i \cdot x_j)}{\sum_l \exp(x_i \cdot x_l)}$$
#
# The sums run over all tokens, or over $1, \dots, i$ in the causal form. Write both.

# %%
softmax = mine("attention/softmax")
dot_scores = mine("attention/dot_scores")

# %%
# exercise: self_attention/parameter_free

# %%
check("self_attention/parameter_free", parameter_free)

# %%
parameter_free = mine("self_attention/parameter_free")

# %% [markdown]
# Let your function try the three tokens from the top of the page. The weight that each needs is framed:

# %%
fetched = parameter_free(sentence)[..., -1]
weights = softmax(dot_scores(sentence, sentence))[0]
pictures.found("Version 1: each token finds itself", sentence, weights, fetched)

# %% [markdown]
# The diagonal wins. Version 1 compares own names with own names, wanted names with wanted names and numbers with numbers, and only the token itself matches in all. At equal norms that is the Cauchy-Schwarz inequality: $x_i \cdot x_j \le \|x_i\|\,\|x_j\| = x_i \cdot x_i$.

# %% [markdown]
# ## Three roles
#
# The diagonal is one fault. The other is symmetry: $x_i \cdot x_j = x_j \cdot x_i$. At the top of the page B wants A, but A does not want B. So each token gets a **query** for what it looks for, a **key** for what it is found by, and a **value** for what it hands over, from three learned matrices:
#
# $$\underset{n \times d_k}{Q} = \underset{n \times d_{model}}{X}\;\underset{d_{model} \times d_k}{W_Q} \qquad \underset{n \times d_k}{K} = X\,\underset{d_{model} \times d_k}{W_K} \qquad \underset{n \times d_v}{V} = X\,\underset{d_{model} \times d_v}{W_V}$$
#
# Queries and keys meet in a dot product, so they share the size $d_k$.

# %%
# exercise: self_attention/project

# %%
check("self_attention/project", project)

# %%
project = mine("self_attention/project")

# %% [markdown]
# Does $i$ still score $j$ as $j$ scores $i$? Give your function random matrices:

# %% tags=["nbval-check-output"]
matrices = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(0))
q, k, v = project(sentence[0], *matrices)
for name, scores in {"version 1": sentence[0] @ sentence[0].T, "three roles": q @ k.T}.items():
    print(f"{name:11}  symmetric: {torch.allclose(scores, scores.T)}")

# %% [markdown]
# Write the score out:
#
# $$e_{ij} = q_i \cdot k_j = (x_i W_Q)(x_j W_K)^T = x_i\, M\, x_j^T \qquad \underset{d_{model} \times d_{model}}{M} = W_Q W_K^T$$
#
# In version 1, $M$ is the identity. Now it is any matrix of rank at most $d_k$, symmetric or not. A large entry in row $a$, column $b$ says: *tokens with feature $a$ look for tokens with feature $b$.*

# %% [markdown]
# ## Keep the scores in scale
#
# The Transformer's formula has one more part, a division:
#
# $$\underset{n_q \times d_v}{\mathrm{Attention}(Q, K, V)} = \underset{n_q \times n_k}{\mathrm{softmax}\!\left(\frac{Q K^T}{\sqrt{d_k}}\right)} \underset{n_k \times d_v}{V}$$
#
# If the entries of $q$ and $k$ are independent with mean 0 and variance 1, each product $q_c k_c$ has variance 1, and $q \cdot k$, a sum of $d_k$ of them, has variance $d_k$. Dividing by $\sqrt{d_k}$ brings it back to 1. Try it on 1,000 random queries, each with eight keys:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
print(" d_k  variance  largest of eight weights  the same, divided")
for d_k in (4, 64, 1024):
    scores = torch.randn(1000, 1, d_k) @ torch.randn(1000, 8, d_k).mT
    undivided, divided = (softmax(x).amax(-1).mean() for x in (scores, scores / d_k**0.5))
    print(f"{d_k:4}  {scores.var():8.0f}  {undivided:24.2f}  {divided:17.2f}")

# %% [markdown]
# The larger $d_k$, the nearer the softmax is to one-hot, and then it passes on hardly any gradient (lesson 02). Divided, the weights hardly depend on $d_k$.

# %% [markdown]
# ## One example, number by number
#
# Three tokens of two numbers each are the rows of $X$. $W_Q$ changes nothing, $W_K$ swaps the two numbers, $W_V$ doubles the first:
#
# $$X = \begin{pmatrix} 1 & 0 \\ 0 & 1 \\ 1 & 1 \end{pmatrix} \qquad W_Q = \begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix} \qquad W_K = \begin{pmatrix} 0 & 1 \\ 1 & 0 \end{pmatrix} \qquad W_V = \begin{pmatrix} 2 & 0 \\ 0 & 1 \end{pmatrix}$$

# %%
x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
w_k, w_v = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]])
q, k, v = project(x, torch.eye(2), w_k, w_v)

# %% tags=["hide-input"]
pictures.example(q, k, v)

# %% [markdown]
# Tokens 2 and 3 are yours, on paper ($e^{1/\sqrt2} \approx 2.03$ and $e^{2/\sqrt2} \approx 4.11$). **What are their outputs?**

# %%
guess = None  # two pairs: ((token 2), (token 3))

# %% [markdown]
# Write the formula for any sizes, with batches and a mask. Your function then gives the answer.

# %%
# exercise: self_attention/scaled_dot_product

# %%
check("self_attention/scaled_dot_product", scaled_dot_product_attention)

# %%
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")

# %% tags=["nbval-check-output"]
answers = scaled_dot_product_attention(q, k, v)
print(answers)
reveal(guess, tuple((round(a, 2), round(b, 2)) for a, b in answers[1:].tolist()))

# %% tags=["hide-input"]
pictures.shapes()

# %% [markdown]
# No parameter's shape depends on $n$: the same three matrices serve four tokens and four thousand. The weights' shape does, $n \times n$, so twice the tokens make four times the scores (lesson 13).
#
# Qwen3 (2025) still computes this formula, in each of its layers. But first, like Gemma 3 (2025), it normalizes each query and each key, so that scores do not grow with their norms.

# %% [markdown]
# ## A layer
#
# A layer owns its three matrices. `__init__` is given: for inputs of variance 1, queries, keys and values start with variance 1. Write `forward` from the two functions that you have.

# %%
# exercise: self_attention/layer

# %%
check("self_attention/layer", SelfAttention)

# %%
SelfAttention = mine("self_attention/layer")

# %% [markdown]
# > With queries and keys, one of the course's lectures (L3) writes, $\alpha_{ij}$ is "also likely to be highest for $i = j$" (D09 in docs/TOPICS.md). Nothing in $x_i M x_j^T$ favours $j = i$: you will now set matrices with which no token looks at itself.

# %% [markdown]
# ## Set it by hand
#
# One such layer solves the pointer task without any training. Which part of a token must its query show, which part its key, which its value? And how large must the scores be, so that the right key wins by far?

# %%
# exercise: self_attention/by_hand

# %%
check("self_attention/by_hand", pointer_weights)

# %%
pointer_weights = mine("self_attention/by_hand")

# %% [markdown]
# How large did the scores have to be? If the right key scores $s$ and the other $n - 1$ score 0, its weight is
#
# $$\alpha = \frac{e^s}{e^s + n - 1}$$
#
# At $s = \ln n$ that is about one half. So $s$, *after* the division by $\sqrt{d_k}$, must exceed $\ln n$ by far. Your matrices on the three tokens from the top of the page:

# %%
q, k, v = project(sentence[0], *pointer_weights(3))
weights = softmax(dot_scores(q, k) / q.shape[-1] ** 0.5)
fetched = scaled_dot_product_attention(q, k, v)
pictures.found("Your matrices: each token finds the one it wants", sentence, weights, fetched)

# %%
x, found = pointers.sentences(4000, generator=generator)
fetched = scaled_dot_product_attention(*project(x, *pointer_weights(8)))
print(f"largest error over 32,000 tokens: {(fetched - found).abs().max():.1e}")

# %% [markdown]
# ## Can training find it?
#
# You knew what to write into the matrices. Training sees only the right answers. Three models learn for 500 steps, each with a linear layer behind it: version 1; a layer with *one shared matrix*, $W_Q = W_K$; and your layer with three.
#
# We measure the share of the numbers' variance that each **explains**: 1 is solved. The average of all eight tokens, with the best scale, explains one eighth. **Order all four.**

# %%
guess = None  # "average", "shared", "three" and "version 1", the worst first


# %% tags=["training"]
with training.seeded(SEED):
    roles, shared = SelfAttention(17, 8, 4), SelfAttention(17, 8, 4)
shared.w_k = shared.w_q
arms = [(pointer_models.VersionOne(), 17), (shared, 4), (roles, 4)]  # 17, 4: d_v
models = [pointer_models.train(*arm, SEED, seconds=30) for arm in arms]
explained = [pointer_models.explained(model, 20_000) for model in models]
shares = zip([0.125, *explained], ["average", "version 1", "shared", "three"])
ranked = sorted((round(share, 2), name) for share, name in shares)
reveal(guess, [name for _, name in ranked])
print(*(f"{name} {share}" for share, name in ranked), sep=", ")

# %% tags=["training"]
with torch.no_grad():
    answers = models[2](x[:1])
for name, numbers in {"wanted": found[0], "your layer": answers[0]}.items():
    print(f"{name:10}", *(f"{number:6.2f}" for number in numbers.flatten().tolist()))

# %% [markdown]
# Your layer has found it. Version 1 is below the average: it returns mostly the token's own number, which says nothing about the wanted one. One shared matrix hardly beats the average. Why? Looking and being found are both in $M = W_Q W_K^T$:

# %% tags=["training", "hide-input"]
m, both = roles.w_q @ roles.w_k.T, shared.w_q @ shared.w_q.T
w_q, w_k, _ = pointer_weights(8)
pictures.choices(
    {
        "version 1: identity": torch.eye(17),
        "one shared matrix: symmetric": both,
        "set by hand: one block": w_q @ w_k.T,
        "trained: the block is found": m,
    }
)
claim = "version 1 explains under 0.05, one shared matrix 0.15 to 0.18, three matrices over 0.95"
holds = explained[0] < 0.05 and 0.15 < explained[1] < 0.18 and explained[2] > 0.95
training.expect(claim, holds, [round(share, 3) for share in explained], *models)
block, elsewhere = m[8:16, :8].detach(), m.detach().clone()
elsewhere[8:16, :8] = 0
claim = (
    "in the block wanted x own every row is largest on its diagonal, and the smallest of these "
    "is over 4 times the largest entry of the other blocks"
)
on, off = block.diagonal().min().item(), elsewhere.abs().max().item()
holds = bool((block.argmax(-1) == torch.arange(8)).all()) and on > 4 * off
training.expect(claim, holds, [round(on, 1), round(off, 1)], models[2])
both = both.detach() / 8**0.5
coincide = [both[a : a + 8, b : b + 8].diagonal().mean().item() for a in (0, 8) for b in (0, 8)]
claim = "the diagonals of the four blocks of names of the shared matrix are alike, 0.3 to 0.8"
holds = all(0.3 < diagonal < 0.8 for diagonal in coincide)
training.expect(claim, holds, [round(x, 2) for x in coincide], models[1])
itself, wanted, wanting = looks = pointer_models.looks(shared, x)
claim = (
    "with one shared matrix a token looks most at itself, and alike at both that it is paired with"
)
holds = itself > 1.3 * wanted and abs(wanted - wanting) < 0.02
training.expect(claim, holds, [round(x, 2) for x in looks], models[1])

# %% tags=["training", "hide-input"]
diagonal = torch.zeros(17, 17)
diagonal[8:16, :8] = block.diagonal().diag()
wants = pointers.coincidences(x).wants
print("explained by the weights, with the best scale")
for name, matrix in {"all of the trained M": m.detach(), "the block's diagonal": diagonal}.items():
    weights = softmax(x @ matrix @ x.mT / 8**0.5)
    print(f"{name:22} {pointers.explained(weights, wants):.3f}")

# %% [markdown]
# By hand you set one block, *wanted looks for own*, and training found the same block. Its diagonal alone explains nearly all. The blue entries beside it lower the scores of names that are not wanted, whose weights would be small without them, too.

# %% [markdown]
# The shared $M = W W^T$ is symmetric and has no negative eigenvalue, so $M_{ab}^2 \le M_{aa} M_{bb}$. It cannot have that block without its mirror image, and it can have neither without the diagonals that make a token find itself. So the shared layer's tokens look most at themselves, and at those that want *them* as much as at the one that they want.

# %% [markdown]
# ## A real encoder: which *ring*?
#
# MiniLM is a trained encoder of six layers (lesson 09). *Ring* enters it as the same vector in every line, plus its position. Only the other tokens can tell a jewel from a sound, and only attention brings them in. A layer of ours attends by its `rule`, so let the encoder run on *your* attention:

# %%
needs("minilm")

# %%
from functools import partial
from course_lib.multi_head import MultiHeadAttention
from course_lib.pretrained import minilm, word_senses

# %% tags=["once"]
attention = partial(MultiHeadAttention, rule=scaled_dot_product_attention)
encoder = minilm.load(attention=attention)
kept = results.load("senses")["figures"]  # our lines
ways = word_senses.ways(encoder, "ring", *kept["described"]["ring"])
ways = {name: ways[name] for name in ("attention", "itself alone")}

# %% [markdown]
# Three lines describe each sense, such as "the ring of the telephone woke her" and "she wears a diamond ring". Average the last state of *ring* over each three: $r_{sound}$ and $r_{jewel}$. How far does its state $s$ in a new line **lean** to the jewel?
#
# $$\mathrm{lean}(s) = \cos(s, r_{jewel}) - \cos(s, r_{sound})$$
#
# We try six new lines of each sense, which makes 36 pairs of a sound and a jewel, and eight lines with both rings, where we subtract the lean of the sound's *ring* from that of the jewel's. The control is the same encoder, but *ring* looks at itself alone, in every layer.

# %% tags=["once", "hide-input"]
lines, both = kept["one sense"]["ring"], kept["both"]["ring"]
leans = {name: [[way(line) for line in of] for of in lines] for name, way in ways.items()}
gaps = {
    name: [way(line, jewel) - way(line, 1 - jewel) for line, jewel in both.items()]
    for name, way in ways.items()
}
pictures.senses(leans, gaps)

# %% [markdown]
# Alone, the state of *ring* holds nothing but *ring* and its position: half of the pairs are in order, as by chance. With your attention each jewel leans farther to the jewel than each sound does, even where the clue is far away, as in "nobody picked up the phone, so after the last ring it was quiet".
#
# And in all eight lines with both, the jewel's *ring* leans farther to the jewel than the sound's. One average of the line could not do that: it has one vector for two rings.

# %% [markdown]
# [What does an average know about *ring*?](explorations/03_senses.ipynb) asks the same of *bat*, where attention fails more often, of *spring* and *match*, and of the lectures' example, a *bank*.
#
# ## What to remember
#
# | | |
# |:-|:-|
# | shares | $O = A X$; causal: $A$ is lower triangular |
# | version 1 | $A = \mathrm{softmax}(X X^T)$ |
# | three roles | $Q = X W_Q, \quad K = X W_K, \quad V = X W_V$ |
# | scaled dot-product attention | $\mathrm{softmax}(Q K^T / \sqrt{d_k})\, V$ |
# | the matrix that chooses | $q_i \cdot k_j = x_i M x_j^T, \quad M = W_Q W_K^T$; by $M_{ab}$, feature $a$ looks for feature $b$ |
#
# With one vector for both roles scores are symmetric, and at equal norms no token scores another above itself. With two, a token can look for something that it is not.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why can version 1 not express "the verb looks for its subject"?</summary>
#
# Its scores are symmetric: the subject would score the verb just as high, and at equal norms each would score itself at least as high.
# </details>
#
# <details><summary>2. In your matrix M, which block would let each token find those that want *it*?</summary>
#
# A feature's row says what it looks for. So it is the block in the rows of *own* and the columns of *wanted*: the transpose of the one in the pointer task.
# </details>
#
# <details><summary>3. In a causal layer, token 3's value changes. Which outputs can change?</summary>
#
# Those of token 3 and later ones: column 3 of the lower triangle.
# </details>

# %% [markdown]
# ## In your own words
#
# "Queries and keys are both just learned features of a token. We save a third of the parameters if we share one matrix." Answer in one paragraph: what can the scores of such a layer never be, what does that do to a token that looks for another one, and what number on this page shows it?

# %% [markdown] tags=["question:one_matrix"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# Without a mask, this formula cannot tell "dog bites man" from "man bites dog". Lesson 04 adds positions. Another exploration: [what all pairs cost](explorations/03_cost.ipynb).
#
# Vaswani et al. 2017, section 3.2; Cheng et al. 2016 (self-attention under the name intra-attention); Wang et al. 2020b (MiniLM); Qwen 2025 and Kamath et al. 2025 (Qwen3 and Gemma 3). Titles and links: docs/REFERENCES.md. Lectures L1 to L4: docs/TOPICS.md.
