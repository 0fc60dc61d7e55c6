# %% [markdown]
# # 03 · Self-attention
#
# **97 minutes, of which 90 are the core path · after lesson 02 · needs `shakespeare` (5.4 MB)**
#
# "Ring the alarum bell" and "wear this ring for her sake". A table of word vectors has one row for *ring*, so it cannot tell the sound from the jewel. You can, because you read the words around it. In **self-attention** every token of a sentence looks at every token of the same sentence, itself included. There is no recurrence left.

# %% [markdown]
# You will build self-attention twice: first without any parameters, then with the three matrices of the Transformer. You will set these matrices by hand so that they solve a task almost exactly (to within 0.002), and then watch training find a solution of its own.
#
# You need lesson 02's softmax, dot-product scores and weighted sum.

# %%
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import needs, shakespeare, word_vectors
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% [markdown]
# In the Transformer, self-attention is the first layer of every block: plain in the encoder, with a mask in the decoder.

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention"},
    "The Transformer of 2017 with self-attention lit: it is the first layer of each block of the "
    "encoder. The decoder has it too, with a mask.",
)

# %% [markdown]
# ## Word vectors, made here
#
# To have something to look at, we need vectors for words. We make them from Shakespeare. For each pair of words, count how often they occur at most five words apart. Compare the count with chance, $\log \frac{p(a, b)}{p(a)\,p(b)}$, with negative values set to 0; this is positive pointwise mutual information (PPMI). Then take the 64 largest singular values, and scale each left singular vector by the root of its value. (Levy et al. 2015; like them we smooth $p(b)$ by the power 0.75.)

# %% [markdown]
# Of the words closest to *ring*, some are about the jewel, and none is about a sound:

# %%
needs("shakespeare")

# %%
words = word_vectors.from_shakespeare()
[ring] = words("ring")
print(*words.nearest(ring, 8)[1:])

# %% [markdown]
# ## Version 1: no parameters
#
# Lesson 02's attention had queries from the decoder and keys from the encoder. Now both come from the same sentence. A sentence of $n$ tokens is a matrix $X$ with a row $x_i$ for each token, and the simplest self-attention uses that row as query, key and value at once:
#
# $$o_i = \sum_{j=1}^{n} \alpha_{ij}\, x_j \qquad \alpha_{ij} = \frac{e^{x_i \cdot x_j}}{\sum_l e^{x_i \cdot x_l}} \qquad\Longleftrightarrow\qquad \underset{n \times d}{O} = \underset{n \times n}{\mathrm{softmax}(X X^T)}\; \underset{n \times d}{X}$$
#
# **Which word of "ring the alarum bell" (*alarum* is an old form of *alarm*) gets the largest weight from *ring*?**

# %%
guess = None  # "ring", "the", "alarum" or "bell"

# %%
line = "ring the alarum bell"
x = words(line)
weights = softmax(dot_scores(x, x))
reveal(guess, line.split()[int(weights[0].argmax())])
print(*(f"{word} {weight:.2f}  " for word, weight in zip(line.split(), weights[0].tolist())))

# %% tags=["hide-input"]
figure, ax = plots.axes("Three of four prefer themselves", "key", "query", size=(5, 3.6))
assert (weights.argmax(-1) == torch.arange(4)).tolist() == [True, False, True, True]
plots.heat_map(ax, weights, line.split(), line.split(), numbers=True)
plots.show(
    figure,
    "Weights in 'ring the alarum bell'. Three rows have their largest weight on the diagonal, "
    "from 0.48 to 0.97; 'the' gives 0.27 to 'alarum' and 0.26 to itself.",
)

# %% [markdown]
# ## Does the context change *ring*?
#
# The new vector of *ring* is a mixture of the words in its line. Does it move towards the right sense? Compare it with *trumpets* and *jewel* in both lines. A claim needs a control, so we also take the plain average of the line, with all weights equal.
#
# **Which changes *ring* more, attention or the average?** (The change is one minus the cosine between the old vector and the new one.)

# %%
guess = None  # "attention" or "average"

# %%
senses = torch.stack([words("trumpets")[0], words("jewel")[0]])
changes, places = {"attention": [], "average": []}, {}
for line in ("ring the alarum bell", "wear this ring for her sake"):
    x, place = words(line), line.split().index("ring")
    attended = weighted_sum(softmax(dot_scores(x, x)), x)[place]
    print(f"{line}\n           trumpets   jewel   change")
    for name, new in {"before": ring, "attention": attended, "average": x.mean(0)}.items():
        trumpets, jewel = torch.cosine_similarity(senses, new, dim=-1).tolist()
        change = abs(1 - torch.cosine_similarity(ring, new, dim=0).item())
        print(f"{name:10} {trumpets:8.2f} {jewel:7.2f} {change:8.2f}")
        changes.get(name, []).append(change)
        places[line, name] = jewel, trumpets
reveal(guess, max(changes, key=lambda name: sum(changes[name])))
assert all(more > less for more, less in zip(changes["average"], changes["attention"]))

# %% tags=["hide-input"]
title = "Beside the bell, *ring* moves towards *trumpets*; the plain average moves it farther"
figure, ax = plots.axes(title.replace("*", ""), *("cosine with jewel", "cosine with trumpets"))
start = places[line, "before"]
ax.plot(*start, "o", color="black")
ax.text(start[0] + 0.015, start[1] + 0.03, "ring", weight="bold")
for (_, name), end in places.items():
    if name != "before":
        colour = plots.COLOURS[name == "average"]
        arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", end, start, arrowprops=arrow)
for name, colour in zip(("attention", "average"), plots.COLOURS):
    x, y = places["ring the alarum bell", name]
    ax.text(x, y + 0.02, name, color=colour, ha="center", va="bottom")
ax.text(0.24, 0.3, "ring the alarum bell", color="0.4", ha="center", size="small")
ax.text(0.665, 0.0, "wear this ring\nfor her sake", color="0.4", va="center", size="small")
ax.set(xlim=(0, 0.85), ylim=(-0.1, 0.72))
plots.show(
    figure,
    "Ring in a plane: its cosine with jewel, 0.59 before, and with trumpets, 0.07. In 'ring the "
    "alarum bell' an arrow for attention leads to 0.42 and 0.46, and a longer one for the average "
    "to 0.25 and 0.60. In 'wear this ring for her sake' both arrows are short and end near 0.65 "
    "and 0.",
)

# %% [markdown]
# Beside the bell, *ring* moves towards the trumpets; beside *wear*, it stays with the jewel. But the plain average does the same, and in the first line it goes further. So this is no evidence for attention. Version 1 changes *ring* less because it leaves much of the weight on *ring* itself, nearly half in the first line. What could it learn, if it had parameters? That is the second half of this lesson. (A trained encoder that does choose the sense is in lesson 09.)

# %% [markdown]
# ## Build: version 1
#
# First write version 1 as a function. A model that reads a finished sentence may use both sides of a token: **bidirectional** context. A model that writes has only what is already there: **causal** context. With `causal=True`, token $i$ may look at tokens $1$ to $i$ only.

# %%
needs()
softmax = mine("attention/softmax")
dot_scores = mine("attention/dot_scores")
weighted_sum = mine("attention/weighted_sum")

# %%
# exercise: self_attention/parameter_free

# %%
check("self_attention/parameter_free", parameter_free)

# %%
parameter_free = mine("self_attention/parameter_free")

# %% [markdown]
# ## Two directions of context (optional)
#
# **For which tokens of a sentence do bidirectional and causal context give the same result?**

# %%
needs("shakespeare")

# %%
guess = None  # "the first", "the last", "all" or "none"

# %%
line = "wear this ring for her sake"
x = words(line)
same = (parameter_free(x) - parameter_free(x, causal=True)).abs().amax(-1) < 1e-6
which = [word for word, equal in zip(line.split(), same.tolist()) if equal]
reveal(guess, {"wear": "the first", "sake": "the last"}[which[0]] if len(which) == 1 else which)
assert which == ["sake"]

# %% tags=["hide-input"]
visible = torch.ones(6, 6).bool().tril()
causal = softmax(dot_scores(x, x), visible).masked_fill(~visible, torch.nan)
figure, ax = plots.axes("Causal: no token looks to its right", "key", "query", size=(5.6, 3.8))
plots.heat_map(ax, causal, line.split(), line.split(), numbers=True)
plots.show(
    figure,
    "Causal weights in 'wear this ring for her sake'. The cells above the diagonal are hatched: "
    "they are masked. The first token has its whole weight on itself.",
)

# %% [markdown]
# Only the last token has seen the whole sentence either way. The first, in causal context, can look at nothing but itself. Lesson 05 makes masks for whole batches.
#
# ## Does a token attend most to itself?
#
# Lecture L3 (SUSTech CS310; lesson 00 lists the lectures) says of version 1 that a weight "is *likely* to be highest for $i = j$". **In what share of cases is it? Guess for 500 stretches of eight words from Shakespeare's complete works.** (Words without a vector are left out, and a tie with a repeated word counts.)

# %%
guess = None  # a share between 0 and 1

# %%
needs("shakespeare")

# %%
generator = torch.Generator().manual_seed(0)
numbers = {word: number for number, word in enumerate(words.vocab)}
play = shakespeare.words(shakespeare.complete_works())
text = torch.tensor([numbers[word] for word in play if word in numbers])
starts = torch.randint(0, len(text) - 8, (500, 1), generator=generator)
lines = words.vectors[text[starts + torch.arange(8)]]


# %%
def prefers_itself(scores):
    own = scores.diagonal(dim1=-2, dim2=-1)
    return (own > scores.amax(-1) - 1e-6).float().mean().item()


share = prefers_itself(dot_scores(lines, lines))
reveal(guess, round(share, 3))
assert share > 0.8

# %% [markdown]
# For these vectors L3 is right. It is not a law, though: a token $x_j$ with a large norm can have $x_i \cdot x_j > x_i \cdot x_i$. If all norms are equal, it *is* a law, by the Cauchy-Schwarz inequality: $x_i \cdot x_j \le \|x_i\| \|x_j\| = \|x_i\|^2$.

# %%
unit = nn.functional.normalize(lines, dim=-1)
print(f"all vectors of norm one: {prefers_itself(dot_scores(unit, unit)):.3f}")
assert prefers_itself(dot_scores(unit, unit)) == 1

# %% [markdown]
# ## Three roles
#
# Version 1 has a deeper limit: its *scores* are symmetric, $x_i \cdot x_j = x_j \cdot x_i$. But looking for a token and being looked up are different roles. A verb looks for its subject; the subject may look for an adjective. (The *weights* are not symmetric: each row has its own sum.)

# %%
x = words("ring the alarum bell")
scores, weights = dot_scores(x, x), softmax(dot_scores(x, x))
print(f"scores:  ring to bell {scores[0, 3]:.2f}, bell to ring {scores[3, 0]:.2f}")
print(f"weights: ring to bell {weights[0, 3]:.2f}, bell to ring {weights[3, 0]:.2f}")
assert torch.equal(scores, scores.mT) and not torch.allclose(weights, weights.mT, atol=0.05)

# %% [markdown]
# So every token gets three vectors, from three matrices that are learned: a **query** for what it looks for, a **key** for what it can be found by, a **value** for what it hands over. The output is a weighted sum of values, and in a Transformer it is *added* to the token's own vector (lesson 07).
#
# $$\underset{n \times d_k}{Q} = \underset{n \times d_{model}}{X}\;\underset{d_{model} \times d_k}{W_Q} \qquad \underset{n \times d_k}{K} = X\,\underset{d_{model} \times d_k}{W_K} \qquad \underset{n \times d_v}{V} = X\,\underset{d_{model} \times d_v}{W_V}$$
#
# Queries and keys meet in a dot product, so they share the size $d_k$. Values have a size $d_v$ of their own, and $d_{model}$ is the size of a token's vector.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
x = diagram.matrix("$X$", (4, 6), (0, 0), "stream", axes=("n", "$d_{model}$"), cell=0.26)
q = diagram.matrix("$Q = XW_Q$", (4, 3), (3.2, 2.8), "query", axes=("", "$d_k$"), cell=0.26)
k = diagram.matrix("$K = XW_K$", (4, 3), (3.2, 0), "key", axes=("", "$d_k$"), cell=0.26)
v = diagram.matrix("$V = XW_V$", (4, 2), (3.2, -2.8), "value", axes=("", "$d_v$"), cell=0.26)
e = diagram.matrix("$QK^T$ (n × n)", (4, 4), (5.9, 1.4), "weights", cell=0.26)
w = diagram.matrix("weights (n × n)", (4, 4), (9, 1.4), "weights", cell=0.26)
o = diagram.matrix("weights × V", (4, 2), (10.7, -2.8), "value", axes=("", "$d_v$"), cell=0.26)
diagram.arrow(x, q, via=[(1.6, 0), (1.6, 2.8)], role="query")
diagram.arrow(x, k, role="key")
diagram.arrow(x, v, via=[(1.6, 0), (1.6, -2.8)], role="value")
diagram.arrow(q, e, leave="E", role="query")
diagram.arrow(k, e, via=[(4.6, 0), (4.6, 1.4)], role="key")
diagram.arrow(e, w, "softmax", role="weights")
diagram.arrow(w, (10.7, -1.8), leave="E", role="weights")
diagram.arrow(v, o, role="value")
diagram.show(
    "Tokens X, n by d_model, are multiplied by three matrices: queries Q and keys K, n by d_k, "
    "and values V, n by d_v. Q times K transposed gives n by n scores, their softmax the weights; "
    "weights times V is the output, n by d_v.",
)

# %% [markdown]
# > **Where a lecture goes too far (D09).** Does a token still attend most to itself? For queries and keys of their own, L3 writes: "similar to version 1, $\alpha_{ij}$ is also likely to be highest for $i = j$". Nothing in $(x_i W_Q) \cdot (x_j W_K)$ makes it so. Here are ten random pairs of matrices, for the same vectors of norm one; chance is one in eight.

# %%
shares = []
for seed in range(10):
    drawn = torch.Generator().manual_seed(seed)
    w_q, w_k = torch.randn(2, 64, 64, generator=drawn)
    shares.append(prefers_itself(dot_scores(unit @ w_q, unit @ w_k)))
print(f"after random projections: {min(shares):.2f} to {max(shares):.2f}")
assert max(shares) < 0.25

# %% [markdown]
# So in version 1 attending to oneself came from using one vector as query and key, and equal norms made it certain. Training may bring it back or remove it. You build the projections now.

# %%
needs()

# %%
# exercise: self_attention/project

# %%
check("self_attention/project", project)

# %%
project = mine("self_attention/project")

# %% [markdown]
# ## One example, number by number
#
# Three tokens of two numbers each, and matrices that you can multiply in your head. $W_Q$ leaves a token as it is, $W_K$ swaps its two numbers, $W_V$ doubles the first.

# %% tags=["nbval-check-output"]
x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
w_q = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
w_k = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
w_v = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
q, k, v = project(x, w_q, w_k, w_v)
print("q", q.tolist(), "\nk", k.tolist(), "\nv", v.tolist())

# %% [markdown]
# The query of token 1 is [1, 0]. Its own key is [0, 1]; the key of token 2 is [1, 0]. **What are the three scores of token 1?** Work them out, then run the next cell, which computes with single numbers, without matrix products. (The scale of the Transformer's formula comes later; here there is none.)

# %%
guess = None  # a list of three numbers

# %% tags=["nbval-check-output"]
scores = [sum(a * b for a, b in zip(q[0].tolist(), key.tolist())) for key in k]
reveal(guess, scores)
exponentials = [2.718281828**score for score in scores]
weights = [e / sum(exponentials) for e in exponentials]
output = [sum(w * value[c] for w, value in zip(weights, v.tolist())) for c in range(2)]
print("weights", [f"{w:.3f}" for w in weights])
print("output ", [f"{o:.3f}" for o in output])

# %% [markdown]
# The same steps as a picture, from the query on the left to the output on the right:

# %% tags=["hide-input"]
diagram = drawings.Diagram()
query = diagram.box("$q_1$\n(1, 0)", (0, 0), "query", size=(1.2, 1.2))
result = diagram.box(
    f"output\n({output[0]:.3f}, {output[1]:.3f})", (10.9, 0), "value", size=(2.8, 1.2)
)
for i, y in enumerate((2, 0, -2)):
    key = diagram.box(f"$k_{i + 1}$: ({k[i][0]:g}, {k[i][1]:g})", (2.3, y), "key", size=(2.0, 0.9))
    steps = f"{scores[i]:g} → {weights[i]:.3f}"
    part = diagram.box(steps, (4.95, y), "weights", size=(2.3, 0.9))
    value = diagram.box(
        f"$v_{i + 1}$: ({v[i][0]:g}, {v[i][1]:g})", (7.6, y), "value", size=(2.0, 0.9)
    )
    bend = [(0.95, 0), (0.95, y)] if y else []
    diagram.arrow(query, key, via=bend, role="query")
    diagram.arrow(key, part, role="weights")
    diagram.arrow(part, value, role="weights")
    diagram.arrow(value, result, via=[(10.9, y)] if y else [], role="value")
diagram.text("score → weight", (4.95, 2.9), size=9)
diagram.show(
    "The query of token 1, (1, 0), goes to the three keys (0, 1), (1, 0) and (1, 1): scores 0, 1 "
    "and 1, weights 0.155, 0.422 and 0.422. They weigh the values (2, 0), (0, 1) and (2, 1), whose "
    "sum is the output (1.155, 0.845)."
)

# %% [markdown]
# Token 1 gives tokens 2 and 3 the same weight, and itself less. Its output is that mixture of the values. Matrix products do the same for all tokens at once:

# %% tags=["nbval-check-output"]
outputs = softmax(q @ k.T) @ v
print(outputs)
assert torch.allclose(outputs[0], torch.tensor(output))

# %% [markdown]
# ## Every shape (optional)
#
# Before you build the layer, make sure that you know its shapes. Take $n = 5$ tokens with $d_{model} = 8$, $d_k = 3$ and $d_v = 4$. **Write down the six shapes in the next cell, before you run the one below it.** If you can write them down without running anything, you can follow the shapes in most attention code.

# %%
guess = None  # {"q": (5, ...), "k": ..., "v": ..., "scores": ..., "weights": ..., "output": ...}

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
x = torch.randn(5, 8)
q, k, v = project(x, torch.randn(8, 3), torch.randn(8, 3), torch.randn(8, 4))
scores = q @ k.T
weights = softmax(scores)
parts = {"q": q, "k": k, "v": v, "scores": scores, "weights": weights, "output": weights @ v}
reveal(guess, {name: tuple(part.shape) for name, part in parts.items()})

# %% [markdown]
# Scores and weights are $n \times n$; they do not know $d_k$ or $d_v$. And no learned matrix knows $n$: the same three matrices serve a sentence of four tokens and a text of four thousand.

# %% [markdown]
# ## Build: scaled dot-product attention
#
# Our formula still lacks one part of the Transformer's, a scale:
#
# $$\underset{n_q \times d_v}{\mathrm{Attention}(Q, K, V)} = \underset{n_q \times n_k}{\mathrm{softmax}\!\left(\frac{Q K^T}{\sqrt{d_k}}\right)} \underset{n_k \times d_v}{V}$$
#
# Why $\sqrt{d_k}$? If the numbers in $q$ and $k$ are independent with mean 0 and variance 1, each product $q_c k_c$ has variance 1, and so $q \cdot k = \sum_c q_c k_c$ has variance $d_k$. Dividing by $\sqrt{d_k}$ brings it back to 1, whatever the size.
#
# Why does the size matter? A softmax of large scores gives nearly all the weight to one key:

# %%
q, k = torch.randn(2, 10_000, 64)
scores = (q * k).sum(-1)
for name, s in {"q · k": scores, "divided by the root": scores / 8}.items():
    largest = softmax(s.view(1000, 10)).amax(-1).mean().item()
    print(f"{name:20} variance {s.var():5.2f}, largest of ten weights {largest:.2f} on average")
    assert largest < 0.5 if name == "divided by the root" else largest > 0.8

# %% [markdown]
# At random, before anything is learned, one of ten keys would already have taken most of the weight. The gradient suffers too: a weight $\alpha$ changes with its own score by $\alpha (1 - \alpha)$ (lesson 02), which is near 0 for weights near 0 and near 1. Lesson 06 shows what this does to training.

# %%
# exercise: self_attention/scaled_dot_product

# %%
check("self_attention/scaled_dot_product", scaled_dot_product_attention)

# %%
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")

# %% [markdown]
# ## Build: a layer
#
# A layer owns the three matrices, so that training can change them. `__init__` is given: it draws the matrices so that a token of variance 1 gets queries, keys and values of variance 1. Write `forward` with the two functions that you have. (This is one **head**; lesson 06 uses several.)

# %%
# exercise: self_attention/layer

# %%
check("self_attention/layer", SelfAttention)

# %%
SelfAttention = mine("self_attention/layer")

# %% [markdown]
# ## A task that needs the roles
#
# Each token carries three things: its own name, the *name of another token*, which it wants, and a number. It must fetch the number of the token that it wants. Here is a sentence of three such tokens; names are one-hot vectors.


# %%
def pointers(batch, names=8):
    """Draw sentences of [own name, wanted name, number], and the numbers that are wanted."""
    own = torch.rand(batch, names, generator=generator).argsort(-1)
    wanted = (own + torch.randint(1, names, own.shape, generator=generator)) % names
    numbers = torch.randn(batch, names, 1, generator=generator)
    one_hot = [nn.functional.one_hot(name, names).float() for name in (own, wanted)]
    found = (own.unsqueeze(-2) == wanted.unsqueeze(-1)).float() @ numbers
    return torch.cat([*one_hot, numbers], dim=-1), found


generator = torch.Generator().manual_seed(0)
x, found = pointers(1, names=3)
for token, number in zip(x[0].tolist(), found[0].tolist()):
    print(f"named {token[:3]}, wants {token[3:6]}, has {token[6]:5.2f}; to fetch: {number[0]:5.2f}")

# %% tags=["hide-input"]
own, wanted = x[0, :, :3].argmax(-1).tolist(), x[0, :, 3:6].argmax(-1).tolist()
assert (own, wanted) == ([2, 0, 1], [0, 2, 0]), "the arrows below are drawn for this sentence"
diagram, tokens = drawings.Diagram(), []
for i, (token, number) in enumerate(zip(x[0].tolist(), found[0].tolist())):
    text = f"name {own[i]}\nwants {wanted[i]}\nhas {token[6]:.2f}"
    tokens.append(diagram.box(text, (4 * i, 0), "stream", size=(2.2, 2.0)))
    diagram.text(f"fetches {number[0]:.2f}", (4 * i, -1.45))
one, two, three = tokens
diagram.arrow(one, two, role="query")
diagram.arrow(three, two, role="query")
diagram.arrow(two, one, via=[(4, 1.7), (0, 1.7)], role="query")
diagram.show(
    "The same three tokens as boxes. The first, name 2, wants 0; the second, name 0, wants 2; the "
    "third, name 1, wants 0. An arrow leads from each to the token that it wants; below it is the "
    "number that it fetches there: -0.69, 1.26 and -0.69."
)

# %% [markdown]
# You can solve this without any training. Which part of a token must its query show? Which part its key, and which its value? Set the three matrices by hand.

# %%
# exercise: self_attention/by_hand

# %%
check("self_attention/by_hand", pointer_weights)

# %%
pointer_weights = mine("self_attention/by_hand")

# %%
x, found = pointers(1000)
fetched = scaled_dot_product_attention(*project(x, *pointer_weights(8)))
print(f"largest error over 8,000 tokens: {(fetched - found).abs().max():.4f}")
assert torch.allclose(fetched, found, atol=2e-3)

# %% [markdown]
# Now let training find the matrices, in three models. Version 1 has none. The second has one matrix for queries and keys together, $W_Q = W_K$, so its scores are still symmetric. The third has all three roles. Each trains for 500 steps, and a linear layer reads the number from what attention returns. (The claim at the end was checked with three seeds: `make claims LESSON=03`.)
#
# **What share of the variance of the numbers will each of the three explain?** (The numbers have variance 1, so that is one minus the mean squared error.)

# %%
guess = None  # three shares: (version 1, shared, three roles)


# %% tags=["training"]
from itertools import repeat


def squared_error(model, batch):
    x, found = batch
    return (model(x) - found).square().mean()


def trained(attention, d_out):
    with training.seeded(SEED):
        model = nn.Sequential(attention, nn.Linear(d_out, 1))
    budget = {"steps": 500, "learning_rate": 0.03, "seconds": 30}
    training.train(model, map(pointers, repeat(64)), squared_error, **budget)
    return model


# %% tags=["training"]
class VersionOne(nn.Module):
    def forward(self, x):
        return parameter_free(x)


with training.seeded(SEED):
    roles, shared = SelfAttention(17, 8, 4), SelfAttention(17, 8, 4)
shared.w_k = shared.w_q
models = [trained(VersionOne(), 17), trained(shared, 4), trained(roles, 4)]
shares = [round(1 - squared_error(model, pointers(4000)).item(), 2) for model in models]
reveal(guess, tuple(shares))
claim = "roles explain over 0.9; neither model without separate queries and keys explains 0.6"
training.expect(claim, shares[2] > 0.9 and max(shares[:2]) < 0.6, shares, *models)

# %% [markdown]
# Version 1 fails because $x_i \cdot x_j$ compares own names with own names and wanted names with wanted names. A wanted name never meets an own name.
#
# Why does the shared matrix fail? With $W_Q = W_K = W$ the scores are $e_{ij} = (x_i W) \cdot (x_j W)$, leaving out the scale. Squared distances are not negative, so $\|x_i W - x_j W\|^2 = e_{ii} + e_{jj} - 2 e_{ij} \ge 0$. If a model treats all names alike and keeps the numbers out of its scores, then $e_{ii} = e_{jj}$, and so $e_{ii} \ge e_{ij}$: each token scores itself at least as high as the one it wants. At best it returns the mean of its own number and the wanted one, which explains half of the variance. Ours stays well below that.

# %% [markdown]
# Separate queries and keys remove that limit: $e_{ij} = x_i M x_j^T$ with $M = W_Q W_K^T$, any matrix of rank at most $d_k$. Here are the third model's weights on one random sentence. Each query gives nearly all its weight to the token with the name that it wants.

# %% tags=["training", "hide-input"]
x, _ = pointers(1)
weights = softmax(dot_scores(x[0] @ roles.w_q, x[0] @ roles.w_k) / 8**0.5)
own, wanted = x[0, :, :8].argmax(-1).tolist(), x[0, :, 8:16].argmax(-1).tolist()
rows, columns = sorted(range(8), key=lambda i: wanted[i]), sorted(range(8), key=lambda j: own[j])
title = "Trained: each token finds the one it wants"
names = "own name (and token)", "wanted name (and token)"
figure, ax = plots.axes(title, *names, size=(5.6, 4))
labels = [f"{wanted[i]} ({i + 1})" for i in rows], [f"{own[j]}\n({j + 1})" for j in columns]
plots.heat_map(ax, weights[rows][:, columns], *labels)
plots.show(
    figure,
    "Weights of eight queries over eight keys, both sorted by name; in brackets, which token of "
    "the sentence it is. In each row one key, the one "
    "with the wanted name, has a weight near 1, and all others have a weight near 0.",
)

# %% [markdown]
# ## What it costs (optional)
#
# Training found the matrices that you had set by hand, or others that do as much. What does the search cost? All pairs meet, so the scores are $n^2$ numbers. That is the price of one step between any two tokens. **From 500 tokens to 4,000, how many times more processor time does attention take?**

# %%
guess = None  # a factor

# %%
from time import process_time


def seconds(n):
    q, repeats = torch.randn(n, 64), (4000 // n) ** 2
    start = process_time()
    for _ in range(repeats):
        scaled_dot_product_attention(q, q, q)
    return (process_time() - start) / repeats


took = {n: min(seconds(n) for _ in range(3)) for n in (500, 1000, 2000, 4000)}
print({n: f"{1000 * s:.1f} ms for {n * n:,} scores" for n, s in took.items()})
reveal(guess, round(took[4000] / took[500]))

# %% [markdown]
# The number of scores grows by a factor of 64: each doubling of $n$ makes it four times as large. Time can grow by more. One likely reason is memory: the scores of 500 tokens take 1 MB, which fits into a processor's cache; those of 4,000 take 64 MB, which few caches hold.
#
# Three of the four rows of table 1 in Vaswani et al. 2017, for $n$ tokens of size $d$ and windows of $k$ tokens. A path is the number of steps that information takes between two tokens.
#
# | layer | operations | steps in sequence | longest path |
# |:-|:-|:-|:-|
# | self-attention | $O(n^2 d)$ | $O(1)$ | $O(1)$ |
# | recurrent | $O(n d^2)$ | $O(n)$ | $O(n)$ |
# | convolution | $O(k n d^2)$ | $O(1)$ | $O(\log_k n)$ if windows skip tokens (dilated) |
#
# Lesson 13 counts what this table leaves out, and what can be done about $n^2$.

# %% [markdown]
# ## Shuffle the tokens
#
# All pairs meet, near or far. So does self-attention know the order of its tokens at all? Shuffle them, without a causal mask. **What happens to the outputs?**

# %%
guess = None  # "nothing", "they are shuffled too" or "they change"

# %%
shuffle = torch.tensor([2, 0, 3, 1])
x, layer = torch.randn(4, 17, generator=generator), SelfAttention(17, 8, 4)
shuffled = torch.allclose(layer(x[shuffle]), layer(x)[shuffle], atol=1e-6)
reveal(guess, "they are shuffled too" if shuffled else "they change")
assert shuffled

# %% [markdown]
# This is **permutation equivariance**. Let $f$ be the layer, $E$ its scores, and $P$ a permutation matrix, which shuffles rows. A weight depends on its own score and on the sum over its row, whatever the order. So shuffled scores give weights that are shuffled in the same way: $\mathrm{softmax}(P E P^T) = P\, \mathrm{softmax}(E)\, P^T$. With $P^T P = I$, version 1 gives $f(PX) = \mathrm{softmax}(P X X^T P^T)\, P X = P\, \mathrm{softmax}(X X^T)\, P^T P X = P f(X)$. With the three matrices the proof is the same, since $(PX) W = P (XW)$.

# %% [markdown]
# ## Break it (optional)
#
# - In your `scaled_dot_product_attention`, swap q and k before the product, and check. Does the check notice?
# - Divide by $d_k$ instead of its root. How far off are the results, and how would you have noticed without a check?

# %%
q, k, v = torch.randn(3, 6, 16, generator=generator)
right = scaled_dot_product_attention(q, k, v)
wrong = {
    "q and k swapped": scaled_dot_product_attention(k, q, v),
    "divided by d_k": softmax(dot_scores(q, k) / 16) @ v,
}
for name, found in wrong.items():
    print(f"{name:16} off by up to {(found - right).abs().max():.2f}")

# %% [markdown]
# ## What to remember
#
# Self-attention is attention within one sentence. Every token gets a query, a key and a value from learned matrices, and all pairs of tokens meet in one matrix product.
#
# | | |
# |:-|:-|
# | version 1 | $O = \mathrm{softmax}(X X^T)\, X$ |
# | three roles | $Q = X W_Q, \quad K = X W_K, \quad V = X W_V$ |
# | scaled dot-product attention | $\mathrm{softmax}(Q K^T / \sqrt{d_k})\, V$ |
# | variance | $\mathrm{Var}(q \cdot k) = d_k$ for independent numbers of mean 0 and variance 1 |
# | shuffled tokens, no mask | $f(PX) = P f(X)$ |
# | cost | $n^2$ scores, $O(n^2 d)$ operations |
#
# The shapes of its parameters depend on the size of the vectors, never on the number of tokens. Without a mask, it does not know in which order the tokens came.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. How many parameters does a layer have with d = 512 and d_k = d_v = 64?</summary>
#
# 3 · 512 · 64 = 98,304, for any number of tokens.
# </details>
#
# <details><summary>2. Why can version 1 not express "the verb looks for its subject"?</summary>
#
# Its scores are symmetric, and the vector that searches is the vector that is found. The subject would score the verb just as high.
# </details>
#
# <details><summary>3. A causal model reads 10 tokens. How many weights are not masked?</summary>
#
# 1 + 2 + … + 10 = 55.
# </details>
#
# <details><summary>4. All queries are zero. What does the layer return?</summary>
#
# All scores are 0, so all weights are equal: every output is the mean of the values.
# </details>
#
# <details><summary>5. Which of Q, K and V decide where a token looks, and which decide what it gets?</summary>
#
# Q and K decide where; V decides what.
# </details>

# %% [markdown]
# ## In your own words (optional)
#
# The panels check code. What you understand shows in a paragraph of your own, so take ten minutes for one.
#
# Somebody deletes the division by the root of d_k, and says: "The matrices can learn to make the scores smaller." Answer in one paragraph. Start from the variance of q · k, go on to what the softmax does with such scores, and end with the gradient at the start of training.

# %% [markdown] tags=["question:why_scale"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# Shuffled tokens give shuffled outputs: without a mask, "dog bites man" and "man bites dog" are the same to this layer. Lesson 04 tells it where each token is.
#
# Vaswani et al. 2017, section 3.2; Cheng et al. 2016 (self-attention under the name intra-attention); Levy et al. 2015 (the word vectors). Titles and links: REFERENCES.md. Lectures L1 to L4 (lesson 00).
