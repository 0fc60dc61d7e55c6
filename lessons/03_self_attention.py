# %% [markdown]
# # 03 · Self-attention
#
# **75 minutes · after lesson 02 · needs `minilm` (83.5 MB)**
#
# The tokens of a sentence need each other: a verb its subject, and *ring* the bell or the finger that says which *ring* is meant. **What if every token looks at every other token of its own sentence, all at once?**
#
# At the end you set three matrices by hand, so that each token finds the one it needs. Training finds the same, and a real encoder tells one *ring* from another in the same sentence.

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import needs, pointers
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, pointer_models, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(0)
sentence, found = pointers.sentences(1, names=3, generator=generator)
own, wanted = (names[0].tolist() for names in pointers.names_of(sentence))
assert (own, wanted) == ([2, 0, 1], [0, 2, 0]), "the arrows below are drawn for this sentence"
diagram, tokens = drawings.Diagram(), []
for i, (token, number) in enumerate(zip(sentence[0].tolist(), found[0].tolist())):
    text = f"name {'ABC'[own[i]]}\nwants {'ABC'[wanted[i]]}\nnumber {token[6]:.2f}".replace(
        "-", "−"
    )
    tokens.append(diagram.box(text, (4 * i, 0), "stream", size=(2.6, 2.0)))
    diagram.text(f"must return {number[0]:.2f}".replace("-", "−"), (4 * i, -1.45))
one, two, three = tokens
diagram.arrow(one, two, role="query")
diagram.arrow(three, two, role="query")
diagram.arrow(two, one, via=[(4, 1.7), (0, 1.7)], role="query")
diagram.show(
    "Three tokens as boxes. The first, name C, wants A; the second, name A, wants C; the third, "
    "name B, wants A. An arrow leads from each to the token that it wants; below it is the number "
    "that it must return: -0.69, 1.26 and -0.69."
)

# %% [markdown]
# This is the need without the language: the **pointer task**. Each token must return the number of the token that it wants. From here on sentences have eight tokens. A token is a row of 17 numbers in the matrix $X$: its own name and the wanted one, both one-hot, and its number.

# %% [markdown]
# ## Attention is a table of shares
#
# The last step of attention is a weighted average (lesson 02), and for all tokens at once it is a matrix product. Row $i$ of the $n \times n$ matrix $A$ holds the shares that token $i$ takes of all tokens, itself included:
#
# $$\underset{n \times d}{O} = \underset{n \times n}{A}\;\underset{n \times d}{X} \qquad o_i = \sum_{j=1}^{n} \alpha_{ij}\, x_j \qquad \sum_{j=1}^{n} \alpha_{ij} = 1$$
#
# Equal shares of four tokens are 1/4. With a mask that hides what comes later they are:

# %% tags=["nbval-check-output"]
past = torch.ones(4, 4).bool().tril()
print(softmax(torch.zeros(4, 4), past))

# %% [markdown]
# This lower triangle gives running averages: row 3 averages tokens 1 to 3. A model that reads a finished sentence may look both ways (**bidirectional**); one that writes has only what is already there (**causal**).
#
# Now take any scores. **For which tokens is the output the same, bidirectional and causal?**

# %%
guess = None  # True or False for each of the four tokens

# %%
x, scores = torch.randn(4, 5), torch.randn(4, 4)
same = torch.isclose(softmax(scores) @ x, softmax(scores, past) @ x).all(-1)
reveal(guess, same.tolist())

# %% [markdown]
# Only the last token sees the same either way.
#
# How well does a table of shares solve the pointer task? We measure the fraction of the numbers' variance that it explains: 1 is solved, 0 is nothing learned. If the shares ignore the numbers and the output is scaled optimally, this fraction is the squared mean share of the wanted token, divided by the mean of $\sum_j \alpha_{ij}^2$: for independent numbers of variance 1, the mean share is the output's covariance with the wanted number, the second its own variance. The plain average over eight tokens has $(1/8)^2 / (1/8)$:

# %%
x, _ = pointers.sentences(4000, generator=generator)
itself, wants, wanted_by, alike = pointers.coincidences(x)  # alike: both want the same token
print(pointers.explained(torch.full(wants.shape, 1 / 8), wants))

# %% [markdown]
# That is without choosing. How can a token choose?

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
# In the pointer task it fails. It compares own with own names and wanted with wanted. The token that you want has another own name, and cannot want itself: it scores no more than a stranger. With itself a token has both names in common.

# %% tags=["hide-input"]
weights, common = softmax(dot_scores(x, x)), itself.float() + alike
stranger = common + wants + wanted_by == 0
largest = itself.gather(-1, weights.argmax(-1, keepdim=True)).float().mean()
means = [round(weights[who].mean().item(), 2) for who in (itself, wants, stranger)]
hidden = pointers.explained(softmax(common, ~itself), wants)
words = results.load("itself")["figures"]["word vectors"]
assert not (common[wants]).any()
assert largest > 0.95
assert means[0] > 0.5
assert abs(means[1] - means[2]) < 0.02
assert hidden < 0.125
print("pointer task: own weight is the largest for", round(largest.item(), 2), "of the tokens")
print("mean weight of itself, the wanted token, one with no name in common:", *means)
print("itself hidden, and numbers kept out of the scores: explains", round(hidden.item(), 2))
print("words: own weight is the largest for", round(words["version 1"], 2), end=", ")
print("chance:", round(words["chance"], 2))

# %% [markdown]
# A token mostly finds itself; with itself hidden it explains less than the plain average of the other seven (0.143). Lecture L3 (SUSTech's CS310) writes that its weights are "likely to be highest for $i = j$, i.e., a word is most similar to itself". Causally, as L3 means it, that is so for vectors of Shakespeare's words (last line above; chance is $(1 + \frac12 + \dots + \frac18)/8$, since token $i$ chooses among $i$). At equal norms it is the Cauchy-Schwarz inequality: $x_i \cdot x_j \le \|x_i\|\,\|x_j\| = x_i \cdot x_i$.

# %% [markdown]
# ## Three roles
#
# Preferring itself is one fault; symmetry is another: $x_i \cdot x_j = x_j \cdot x_i$. At the top of the page B wants A, but A does not want B. So each token gets a **query** for what it looks for, a **key** for what it is found by, and a **value** for what it hands over, from three learned matrices:
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
# Write the score out:
#
# $$e_{ij} = q_i \cdot k_j = (x_i W_Q)(x_j W_K)^T = x_i\, M\, x_j^T \qquad \underset{d_{model} \times d_{model}}{M} = W_Q W_K^T$$
#
# In version 1, $M$ is the identity. Now it is any matrix of rank at most $d_k$, symmetric or not. A large entry in row $a$, column $b$ says: *tokens with feature $a$ look for tokens with feature $b$.*

# %% [markdown]
# > **Where a lecture goes too far (D09 in docs/TOPICS.md).** With queries and keys, L3 writes: "similar to version 1, $\alpha_{ij}$ is also likely to be highest for $i = j$". Nothing in $x_i M x_i^T$ makes it so. Below are ten random pairs of matrices, and one trained causal model, SmolLM2: 30 layers of 9 query heads, of which every three share a $W_K$ (its scores also depend on the distance, lesson 04).

# %% tags=["hide-input"]
kept = results.load("itself")["figures"]
drawn, heads = kept["word vectors"], kept["SmolLM2"]
rows = {
    "version 1, words": ([drawn["version 1"]], drawn["chance"]),
    "version 1, equal norms": ([drawn["equal norms"]], drawn["chance"]),
    "random $W_Q$, $W_K$": (drawn["random matrices"], drawn["chance"]),
    "SmolLM2's heads": (torch.tensor(heads["itself"]).flatten().tolist(), heads["chance"]),
    "first token left out": (
        torch.tensor(heads["without the first"]).flatten().tolist(),
        heads["chance"],
    ),
}
title = "Version 1 makes a token prefer itself; queries and keys need not"
share = "share of tokens whose largest weight is their own"
figure, ax = plots.axes(title, share, "", size=(7.4, 3))
for y, (found, chance) in enumerate(rows.values()):
    spread = torch.linspace(-0.25, 0.25, len(found)) if len(found) > 1 else [0]
    ax.plot(found, [y + shift for shift in spread], "o", markersize=4, alpha=0.6)
    ax.plot([chance, chance], [y - 0.4, y + 0.4], color="black", linewidth=1.2)
ax.text(rows["version 1, words"][1] + 0.01, -0.3, "chance", va="center", size="small")
ax.set_yticks(range(5), rows)
ax.set(xlim=(-0.02, 1.03), ylim=(4.5, -0.6))
trained = torch.tensor(rows["SmolLM2's heads"][0])
spread = min(drawn["random matrices"]), max(drawn["random matrices"])
assert round(drawn["version 1"], 2) == 0.94 and drawn["equal norms"] == 1
assert [round(x, 2) for x in (*spread, drawn["chance"])] == [0.23, 0.4, 0.34]
assert round(trained.mean().item(), 2) == 0.06 and (trained > 0.5).sum() == 6
sink = torch.tensor(heads["first token"]).flatten() > 0.5
assert round(heads["chance"], 2) == 0.1 and (sink.sum(), (~sink).sum()) == (215, 55)
left = torch.tensor(rows["first token left out"][0])
assert round(left.mean().item(), 2) == 0.27
assert ((left > heads["chance"]).sum(), (left > 0.5).sum()) == (239, 37)
ax.text(1.02, 2.5, "mean 0.06", ha="right", size="small")
ax.text(1.02, 3.5, "mean 0.27", ha="right", size="small")
plots.show(
    figure,
    "Dots with a black line for chance. Version 1 on words: 0.94, with equal norms 1, chance 0.34. "
    "Ten random pairs of matrices: 0.23 to 0.40, around the same chance. 270 heads of SmolLM2: mean "
    "0.06, chance 0.10, six above 0.5. With the first token out of reach: mean 0.27, 37 above 0.5.",
)

# %% [markdown]
# Random matrices scatter around chance. Only in six of SmolLM2's 270 heads do tokens mostly prefer themselves; in 215 they mostly prefer the first token (the attention sink of lesson 13). Leave that token out, and a token's own weight is the largest for 0.27 of them, against a chance of 0.1 (texts of 32 tokens): it is above chance in 239 heads, and above one half in 37. So with that token left out, a token's own weight is the largest more often than chance (it is also the nearest), but in most heads not for most tokens.

# %% [markdown]
# ## Keep the scores in scale
#
# The Transformer's formula has one more part, a division:
#
# $$\underset{n_q \times d_v}{\mathrm{Attention}(Q, K, V)} = \underset{n_q \times n_k}{\mathrm{softmax}\!\left(\frac{Q K^T}{\sqrt{d_k}}\right)} \underset{n_k \times d_v}{V}$$
#
# If the entries of $q$ and $k$ are independent with mean 0 and variance 1, each product $q_c k_c$ has variance 1, and $q \cdot k$, a sum of $d_k$ of them, has variance $d_k$. Dividing by $\sqrt{d_k}$ brings it back to 1. A softmax of scores that differ by much is nearly one-hot, and passes hardly any gradient on (lesson 02).

# %% [markdown]
# ## One example, number by number
#
# Three tokens of two numbers each are the rows of $X$. $W_Q$ changes nothing, $W_K$ swaps the two numbers, $W_V$ doubles the first:
#
# $$X = \begin{pmatrix} 1 & 0 \\ 0 & 1 \\ 1 & 1 \end{pmatrix} \qquad W_Q = \begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix} \qquad W_K = \begin{pmatrix} 0 & 1 \\ 1 & 0 \end{pmatrix} \qquad W_V = \begin{pmatrix} 2 & 0 \\ 0 & 1 \end{pmatrix}$$

# %% tags=["hide-input"]
x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
w_k, w_v = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 1.0]])
q, k, v = project(x, torch.eye(2), w_k, w_v)
scores = (q[0] @ k.T).tolist()
weights = torch.softmax(q[0] @ k.T / 2**0.5, -1)
output = (weights @ v).tolist()
diagram = drawings.Diagram()
query = diagram.box("$q_1$\n(1, 0)", (0, 0), "query", size=(1.2, 1.2))
total = diagram.box(f"sum\n({output[0]:.3f}, {output[1]:.3f})", (11.0, 0), "value", size=(2.4, 1.2))
for i, y in enumerate((2, 0, -2)):
    key = diagram.box(f"$k_{i + 1}$\n({k[i][0]:g}, {k[i][1]:g})", (2.0, y), "key", size=(1.3, 1.2))
    score = diagram.box(f"{scores[i]:g}", (3.7, y), "plain", size=(0.8, 0.8))
    weight = diagram.box(f"{weights[i]:.3f}", (5.4, y), "weights", size=(1.3, 0.8))
    text = f"{weights[i]:.3f} · ({v[i][0]:g}, {v[i][1]:g})"
    part = diagram.box(text, (8.0, y), "value", size=(2.5, 0.8))
    diagram.arrow(query, key, via=[(0.95, 0), (0.95, y)] if y else [], role="query")
    diagram.arrow(key, score, role="key")
    diagram.arrow(score, weight)
    diagram.arrow(weight, part, role="weights")
    diagram.arrow(part, total, via=[(11.0, y)] if y else [], role="value")
diagram.text("$q_1 \\cdot k_j$", (3.7, 2.9), size=9)
diagram.text("softmax of\nscore / $\\sqrt{2}$", (5.4, 3.05), size=9)
diagram.text("weight · $v_j$", (8.0, 2.9), size=9)
diagram.show(
    "Token 1. Its query (1, 0) meets the keys (0, 1), (1, 0) and (1, 1): scores 0, 1 and 1. Divided "
    "by the root of 2, the softmax gives weights 0.198, 0.401 and 0.401. They multiply the values "
    "(2, 0), (0, 1) and (2, 1), and the sum of the three products is (1.198, 0.802)."
)
assert [round(number, 3) for number in output] == [1.198, 0.802]

# %% [markdown]
# Tokens 2 and 3 are yours, on paper ($e^{1/\sqrt2} \approx 2.03$ and $e^{2/\sqrt2} \approx 4.11$). **What are their outputs?**

# %%
guess = None  # two pairs: ((token 2), (token 3))

# %% tags=["nbval-check-output"]
weights = softmax(q @ k.T / 2**0.5)
print("weights\n", weights)
reveal(guess, tuple((round(a, 2), round(b, 2)) for a, b in (weights @ v)[1:].tolist()))

# %% [markdown]
# That cell, after `project`, is the whole formula. Write it for any sizes, batches and a mask.

# %%
# exercise: self_attention/scaled_dot_product

# %%
check("self_attention/scaled_dot_product", scaled_dot_product_attention)

# %%
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")

# %% tags=["hide-input"]
diagram = drawings.Diagram()
x = diagram.matrix("$X$", (4, 6), (0, 0), "stream", axes=("$n$", "$d_{model}$"), cell=0.26)
q = diagram.matrix("$Q = XW_Q$", (4, 3), (3.4, 2.8), "query", axes=("", "$d_k$"), cell=0.26)
k = diagram.matrix("$K = XW_K$", (4, 3), (3.4, 0), "key", axes=("", "$d_k$"), cell=0.26)
v = diagram.matrix("$V = XW_V$", (4, 2), (3.4, -2.8), "value", axes=("", "$d_v$"), cell=0.26)
e = diagram.matrix("$QK^T\\!/\\sqrt{d_k}$", (4, 4), (6.2, 1.4), "plain", cell=0.26)
w = diagram.matrix("weights", (4, 4), (9.1, 1.4), "weights", cell=0.26)
for at in (6.2, 9.1):
    diagram.text("(n × n)", (at, 0), size=9)
o = diagram.matrix("weights × V", (4, 2), (10.6, -2.8), "value", axes=("", "$d_v$"), cell=0.26)
for part, y in ((q, 2.8), (k, 0), (v, -2.8)):
    diagram.arrow(x, part, via=[(1.8, 0), (1.8, y)] if y else [], role="stream")
diagram.arrow(q, e, leave="E", role="query")
diagram.arrow(k, e, via=[(4.7, 0), (4.7, 1.4)], role="key")
diagram.arrow(e, w, "softmax")
diagram.arrow(w, (10.6, -1.8), leave="E", role="weights")
diagram.arrow(v, o, role="value")
diagram.show(
    "Tokens X, n by d_model, are multiplied by three matrices: queries Q and keys K, n by d_k, "
    "and values V, n by d_v. Q times K transposed, divided by the root of d_k, gives n by n "
    "scores, their softmax the weights; weights times V is the output, n by d_v.",
)

# %% [markdown]
# No parameter's shape depends on $n$: the same three matrices serve four tokens and four thousand.
#
# ## A layer
#
# A layer owns its three matrices. `__init__` is given: for inputs of variance 1, queries, keys and values start with variance 1. Write `forward` from the two functions that you have.

# %%
# exercise: self_attention/layer

# %%
check("self_attention/layer", SelfAttention)

# %%
SelfAttention = mine("self_attention/layer")

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention"},
    "The Transformer of 2017 with self-attention lit: it is the first layer of each block of the "
    "encoder. The decoder has it too, with a mask.",
)

# %% [markdown]
# You have built the two parts in colour: bidirectional in the encoder, causal in the decoder. Both have several heads there (lesson 06).
#
# ## Set it by hand
#
# One such layer solves the pointer task without any training. Which part of a token must its query show, which part its key, which its value? And how large must the scores be, so that the right key wins by far?

# %%
# exercise: self_attention/by_hand

# %% [markdown]
# Here is what your matrices do on the three tokens from the top of the page. The wanted keys are framed.

# %% tags=["hide-input"]
try:
    w_q, w_k, w_v = pointer_weights(3)
    whose = "your"
except NotImplementedError:
    w_q, w_k, w_v = mine("self_attention/by_hand")(3)
    whose = "the library's"
q, k, v = project(sentence[0], w_q, w_k, w_v)
weights = softmax(dot_scores(q, k) / q.shape[-1] ** 0.5)
fetched = weighted_sum(weights, v).flatten().tolist()
figure, ax = plots.axes(f"The weights that {whose} matrices give", "key", "query", size=(5.6, 3))
own, wanted = (names[0].tolist() for names in pointers.names_of(sentence))
rows = [
    f"wants {'ABC'[name]}: gets {got:.2f}".replace("-", "−") for name, got in zip(wanted, fetched)
]
plots.heat_map(ax, weights, rows, [f"name {'ABC'[name]}" for name in own], numbers=True)
for i, name in enumerate(wanted):
    corner = own.index(name) - 0.46, i - 0.46
    style = {"fill": False, "edgecolor": plots.COLOURS[1], "linewidth": 3}
    ax.add_patch(plots.plt.Rectangle(corner, 0.92, 0.92, **style))
shown = "; ".join(", ".join(f"{w:.2f}" for w in row) for row in weights.tolist())
plots.show(
    figure,
    "Weights of the three tokens, one row a query. The first and the third want the token in the "
    f"second column, the second wants the one in the first. Rows: {shown}.",
)

# %% [markdown]
# - A weight of 1.00 in every frame: right for three names; the check takes up to 300. Well below 1: the scores are too small.
# - Row 2 divides its weight between columns 1 and 3, which want A: query and key have changed places.
# - The diagonal is largest, or tied: query and key show the same part of a token.

# %%
check("self_attention/by_hand", pointer_weights)

# %%
pointer_weights = mine("self_attention/by_hand")

# %%
x, found = pointers.sentences(4000, generator=generator)
fetched = scaled_dot_product_attention(*project(x, *pointer_weights(8)))
print(f"largest error over 32,000 tokens: {(fetched - found).abs().max():.1e}")

# %% [markdown]
# ## Can training find it?
#
# Three models: version 1, a layer with *one shared matrix*, $W_Q = W_K = W$, and a layer with three matrices. Behind each, a linear layer reads the number. All train for 500 steps on the mean squared error.
#
# The shared matrix can give a name the same vector as own and as wanted. But its scores are version 1 once more, for the vectors $x_i W$: symmetric, and at equal norms never higher than with itself.
#
# **Order them by the share that they will explain, with the plain average (0.125) among them.**

# %%
guess = None  # "average", "shared", "three" and "version 1", the worst first


# %% tags=["training"]
with training.seeded(SEED):
    roles, shared = SelfAttention(17, 8, 4), SelfAttention(17, 8, 4)
shared.w_k = shared.w_q
arms = [(pointer_models.VersionOne(), 17), (shared, 4), (roles, 4)]
models = [pointer_models.train(*arm, SEED, seconds=30) for arm in arms]
explained = [pointer_models.explained(model, 20_000) for model in models]
found = zip([0.125, *explained], ["average", "version 1", "shared", "three"])
reveal(guess, sorted((round(share, 2), name) for share, name in found))

# %% [markdown]
# Is 0.16 the best that a shared matrix can do? Assume that numbers stay out of the scores, and that each name has one vector, own or wanted, orthogonal to the others and of equal norm. Then a score counts names in common, each worth $p$, the squared norm of a name's vector over $\sqrt{d_k}$:
#
# - with itself a token has two in common (own and own, wanted and wanted): $2p$;
# - with the token that it wants, one: $p$ (two, if mutual);
# - with one that wants *it*, or wants the same: also $p$. With all others, none.

# %%
common = itself.float() + alike + wants + wanted_by
for p in (0, 0.25, 0.5, 1, 2, 4):
    shares = softmax(p * common)
    means = [round(shares[who].mean().item(), 2) for who in (itself, wants, common == 0)]
    print(f"p = {p:4}: explains {pointers.explained(shares, wants):.3f}; mean weights {means}")
mutual = softmax(4 * (wants.float() + wanted_by))
print(f"whom it wants and who wants it alone: explains {pointers.explained(mutual, wants):.3f}")

# %% [markdown]
# Each line ends with the mean weight of the token itself, the wanted one, and a stranger. Under these assumptions the ceiling is about 0.165, where the largest weight is still a token's own. Training from the usual initial weights arrives there too. It is no ceiling without them: from weights four times as large training reaches 0.27 to 0.28, and we know of no ceiling there. Measured beforehand: three seeds, the best of five learning rates, and more rivals.

# %% tags=["hide-input"]
kept = results.load("pointers")["figures"]
title = "One shared matrix reached 0.28; separate queries and keys reached 1"
figure, ax = plots.axes(title, "share of the variance that is explained", "", size=(8, 3.4))
for y, best in enumerate(kept["best"].values()):
    for steps, marker, colour in (("500", "o", plots.COLOURS[0]), ("2000", "D", plots.COLOURS[1])):
        style = {"color": colour, "markersize": 6, "fillstyle": "none"}
        ax.plot(best[steps], [y] * 3, marker, **style)
for place in (0.125, kept["ceiling"]["explained"]):
    ax.axvline(place, color="0.4", linewidth=1, linestyle="--")
ax.text(0.115, -0.75, "plain average", size="small", color="0.3", ha="right")
ax.text(0.175, -0.75, "ceiling as assumed", size="small", color="0.3")
ax.text(0.6, 0.1, "○ after 500 steps", color=plots.COLOURS[0], size="small")
ax.text(0.6, 0.6, "◇ after 2,000 steps", color=plots.COLOURS[1], size="small")
if "explained" in globals():
    ax.plot(explained, [0, 1, 6], "x", color="black", markersize=9)
    ax.text(0.6, 1.1, "× yours", size="small")
ax.set_yticks(range(7), kept["best"])
ax.set(xlim=(-0.03, 1.03), ylim=(6.5, -1.1))
best = {name: found["2000"] for name, found in kept["best"].items()}
assert round(kept["ceiling"]["explained"], 3) in (0.164, 0.165)
assert all(abs(share - kept["ceiling"]["explained"]) < 0.002 for share in best["one shared matrix"])
assert all(0.265 < share < 0.285 for share in best["one shared matrix, 4 times as large"])
assert all(round(share, 2) == 0.44 for share in best["shared, and the token itself"])
assert min(best["separate queries and keys"] + best["three matrices"]) > 0.995
assert min(best["bidirectional GRU"]) > 0.99
gru = kept["best"]["bidirectional GRU"]["500"]
assert (round(min(gru), 2), round(max(gru), 2)) == (0.65, 0.76)
gru = nn.GRU(17, 32, 2, bidirectional=True), nn.Linear(64, 1)
three = SelfAttention(17, 8, 4), nn.Linear(4, 1)
sizes = [sum(p.numel() for p in nn.ModuleList(m).parameters()) for m in (gru, three)]
assert sizes == [28_673, 345]
said = "; ".join(f"{name}: {min(found):.2f}" for name, found in best.items())
plots.show(
    figure,
    "Dots for three seeds, after 500 and after 2,000 steps, with the best of five learning rates. "
    f"The worst seeds after 2,000 steps: {said}. Lines mark the plain average at 0.125 and the "
    f"ceiling under the assumptions at {kept['ceiling']['explained']:.3f}.",
)

# %% [markdown]
# - *Shared, and the token itself*: the linear layer can subtract the token's own number, which eases the first fault: 0.44 from the usual initial weights. What stays: there, whom it wants and who wants it weigh about the same (that alone: 0.71, above), and equal wishes attract each other.
# - *Separate queries and keys*, the whole token as value: solved. $W_V$ adds nothing here, as a linear layer follows: $(AX)\,W_V = A\,(X W_V)$.
# - *A bidirectional GRU* of two layers (lesson 01), with 28,673 parameters, not 345: 0.65 to 0.76 after 500 steps, 0.99 after 2,000.

# %% tags=["training", "hide-input"]
claim = "version 1 explains under 0.05, one shared matrix 0.15 to 0.18, three matrices over 0.95"
holds = explained[0] < 0.05 and 0.15 < explained[1] < 0.18 and explained[2] > 0.95
training.expect(claim, holds, [round(share, 3) for share in explained], *models)

# %% [markdown]
# ## Four matrices that choose
#
# Two of the three roles, looking and being found, are in one matrix, $M = W_Q W_K^T$.

# %% tags=["training", "hide-input"]
panels = {
    "version 1: identity": torch.eye(17),
    "one shared matrix: symmetric": shared.w_q @ shared.w_q.T,
    "set by hand: one block": (lambda w_q, w_k, _: w_q @ w_k.T)(*pointer_weights(8)),
    "trained: the block is found": roles.w_q @ roles.w_k.T,
}
figure, grid = plots.plt.subplots(2, 2, figsize=(7.4, 6.6), sharex=True, sharey=True)
parts = [3.5, 11.5, 16], ["own", "wanted", "nr."]
for ax, (name, m) in zip(grid.flat, panels.items()):
    image = ax.imshow((m / m.abs().max()).detach(), cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set_title(name, size="small")
    for edge in (7.5, 15.5):
        ax.axhline(edge, color="black", linewidth=0.8)
        ax.axvline(edge, color="black", linewidth=0.8)
    ax.set_xticks(*parts)
    ax.set_yticks(*parts, rotation=90, va="center")
    ax.tick_params(length=0)
for ax in grid[:, 0]:
    ax.set_ylabel("feature of the query's token")
for ax in grid[1]:
    ax.set_xlabel("feature of the key's token")
figure.colorbar(image, ax=list(grid.flat), label="entry of M (largest = 1)", shrink=0.6)
title = "Only an M that is not symmetric has 'wanted looks for own' and nothing else"
figure.suptitle(title, x=0.01, ha="left", size="medium")
plots.show(
    figure,
    "Four matrices M of 17 by 17 as heat maps, in blocks: own name, wanted name, number. The "
    "identity has ones on the diagonal. The shared one is symmetric, with diagonals in all four "
    "blocks of names. The one set by hand has a single diagonal, in the block of wanted name by "
    "own name. The trained one has its strong diagonal in the same block.",
)

# %% [markdown]
# The identity compares own with own and wanted with wanted. The shared $M = W W^T$ is symmetric and has no negative eigenvalue, so $M_{ab}^2 \le M_{aa} M_{bb}$: it cannot have the block *wanted looks for own* without its mirror image, nor these two without the diagonals that make a token score itself. By hand you set one block, and training found the same block. (Negative entries in it lower the scores of wrong names; we did not test what they are good for.)

# %% tags=["training", "hide-input"]
m = (roles.w_q @ roles.w_k.T).detach()
block = m[8:16, :8]
on, elsewhere = block.diagonal().clone(), m.clone()
elsewhere[8:16, :8] = 0
claim = (
    "in the block wanted x own every row is largest on its diagonal, and the smallest of these "
    "is over 4 times the largest entry of the other blocks"
)
holds = bool((block.argmax(-1) == torch.arange(8)).all()) and on.min() > 4 * elsewhere.abs().max()
found = [round(number.item(), 1) for number in (on.min(), elsewhere.abs().max())]
training.expect(claim, holds, found, models[2])
both = (shared.w_q @ shared.w_q.T).detach() / 8**0.5
coincide = [both[a : a + 8, b : b + 8].diagonal().mean().item() for a in (0, 8) for b in (0, 8)]
claim = "the diagonals of the four blocks of names of the shared matrix are alike, 0.3 to 0.8"
holds = all(0.3 < diagonal < 0.8 for diagonal in coincide)
training.expect(claim, holds, [round(diagonal, 2) for diagonal in coincide], models[1])

# %% [markdown]
# ## A real encoder: which *ring*?
#
# MiniLM is a trained encoder of six layers. *Ring* enters it as one vector, plus its position. Is its last state nearer (by cosine) to *ring* in three sentences about jewels or in three about bells?
#
# Here both senses are in one line: the jewel, a noun, and *to ring*, a verb. As a control, one *ring* at a time may look only at itself, in every layer. As a rival, the embeddings of two tokens on each side are averaged, without *ring*.

# %% tags=["hide-input"]
kept = results.load("senses")["figures"]
both = {
    line: [gap["attention"][-1], gap["alone"][-1], gap["neighbours"]]
    for line, gap in kept["both"].items()
}
right = [sum(gap > 0 for gap in gaps) for gaps in zip(*both.values())]
assert (right, len(both)) == ([7, 3, 7], 7)
title = (
    "RING is the jewel: right in 7 of 7 lines,\nblinded in 3, by the mean of its neighbours in 7"
)
share = "how much nearer to the jewels RING is than ring"
figure, ax = plots.axes(title, share, "", size=(8, 3.2))
for y, (seen, blinded, beside) in enumerate(both.values()):
    ax.plot([blinded, seen], [y, y], color="0.8", linewidth=1.5, zorder=1)
    ax.plot(blinded, y, "o", color="0.5", fillstyle="none")
    ax.plot(seen, y, "o", color=plots.COLOURS[0])
    ax.plot(beside, y, "D", color=plots.COLOURS[1], fillstyle="none")
ax.text(0.45, 3.2, "● with attention", color=plots.COLOURS[0], size="small")
ax.text(0.45, 4.0, "○ blinded", color="0.4", size="small")
ax.text(0.45, 4.8, "◇ mean of neighbours", color=plots.COLOURS[1], size="small")
ax.axvline(0, color="0.6", linewidth=1)
names = []
for line in both:
    parts, jewel = line.split("ring"), kept["jewels"][line] + 1
    names.append("ring".join(parts[:jewel]) + "RING" + "ring".join(parts[jewel:]))
ax.set_yticks(range(7), names)
ax.set(ylim=(6.5, -0.6))
said = "; ".join(f"{line}: " + ", ".join(f"{x:+.2f}" for x in gaps) for line, gaps in both.items())
plots.show(figure, f"Seven lines, each with attention, blinded, and by neighbours. {said}.")

# %% [markdown]
# With attention all seven come out right, six of them by 0.05 or less. Blinded, a *ring* still knows its position; that gets three right, as chance would. The other tokens help in five lines. But these lines need no attention: the mean of the nearby embeddings has all seven right, too.
#
# L3's example is a *bank*. Is it nearer to shores than to money? Run it, then try a line of yours:

# %%
needs("minilm")

# %% tags=["once"]
from course_lib.pretrained import minilm, word_senses

encoder = minilm.load()
money_shore = [word_senses.described(encoder, x, "bank") for x in kept["described"]["bank"]]
[line] = [x for x in kept["lines"]["bank"] if "pond" in x]
nearer = word_senses.lean(word_senses.states(encoder, line, "bank"), *money_shore)
print(line, [round(float(number), 2) for number in nearer])

# %% [markdown]
# The first number is the embedding, which has seen nothing of the line. Then come the six layers: above 0 is the shore.
#
# Lesson 09 opens this model, layer by layer and head by head.
#
# ## What to remember
#
# | | |
# |:-|:-|
# | shares | $O = A X$; causal: $A$ is lower triangular |
# | version 1 | $A = \mathrm{softmax}(X X^T)$ |
# | three roles | $Q = X W_Q, \quad K = X W_K, \quad V = X W_V$ |
# | scaled dot-product attention | $\mathrm{softmax}(Q K^T / \sqrt{d_k})\, V$ |
# | the matrix that chooses | $e_{ij} = x_i M x_j^T / \sqrt{d_k}, \quad M = W_Q W_K^T$ |
#
# With one vector for both roles scores are symmetric, and at equal norms no token scores higher than itself. With two, a token can look for something that it is not.

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
# Without a mask, to this formula "dog bites man" and "man bites dog" are the same three tokens. Lesson 04 adds positions. Two explorations: [what all pairs cost](explorations/03_cost.ipynb), and [what an average knows about *ring*](explorations/03_senses.ipynb).
#
# Vaswani et al. 2017, section 3.2; Cheng et al. 2016 (self-attention under the name intra-attention); Levy et al. 2015 (the word vectors); Allal et al. 2025 (SmolLM2); Wang et al. 2020b (MiniLM). Titles and links: docs/REFERENCES.md. Lectures L1 to L4: docs/TOPICS.md.
