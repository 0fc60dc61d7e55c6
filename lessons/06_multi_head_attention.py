# %% [markdown]
# # 06 · Multi-head attention
#
# **75 minutes · after lesson 05 · needs `smollm2` (93 MB)**
#
# One head of attention can spread its weights over all tokens. **Why should a token look in several heads, when one can look everywhere?**
#
# Below are two of the 270 heads of a real model, on one sentence. The blue one looks at the token before. The orange one goes by the token: at the second *Mrs* it looks at what followed the first one.

# %%
import torch
from collections.abc import Callable
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

# %%
from course_lib.data import needs, pointers
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, pointer_models, results, training
from course_lib.instruments.pictures import multi_head as pictures

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
pictures.two_heads(**results.load("circuit")["figures"]["sentence"])

# %% [markdown]
# You will build the layer that holds such heads, and train it. Then you find the orange head with a score of your own, switch the *blue* one off, and at last let all nine heads of a layer look at the same places.

# %%
softmax = mine("attention/softmax")
dot_scores = mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
causal_mask = mine("masks/causal")

# %% [markdown]
# ## One head, one mixture
#
# In lesson 03 each token wanted the number of one other token. Now let it want the numbers of *two*, in order. One head can look at both, but it hands over one mixture: 0.40 is the mean of 1.20 and −0.40, and of many other pairs.

# %% tags=["hide-input"]
pictures.mixtures()

# %% [markdown]
# Two heads give two mixtures, each with weights of its own. Let us build that.
#
# ## Heads by reshaping
#
# Each head has its own matrices $W_Q^i$, $W_K^i$ and $W_V^i$. Side by side, one product makes the queries of all heads:
#
# $$\underset{d_{model} \times h d_k}{W_Q} = [\,W_Q^1 \mid \dots \mid W_Q^h\,] \qquad\Rightarrow\qquad X W_Q = [\,X W_Q^1 \mid \dots \mid X W_Q^h\,] = [\,Q^1 \mid \dots \mid Q^h\,]$$
#
# Now cut the columns into heads, and make the heads a batch axis.

# %% tags=["hide-input"]
pictures.split()

# %% [markdown]
# The split of $Z = X W_Q$ is another way to index the same numbers (head $i$, token $t$, column $c$, all counted from 0):
#
# $$\mathrm{split}(Z)_{i,\,t,\,c} = Z_{t,\; i\, d_k + c}$$

# %%
# exercise: multi_head/split_heads

# %%
check("multi_head/split_heads", split_heads)

# %%
split_heads = mine("multi_head/split_heads")

# %% [markdown]
# A single `reshape` to this shape raises no error, and gives head 1 the numbers of the first tokens alone: **a shape does not say whose numbers it holds.** After attention, the heads are put side by side again, by `torch.cat` or by one `rearrange`:


# %% tags=["nbval-check-output"]
def merge_heads(x):
    return torch.cat(x.unbind(-3), dim=-1)


z = torch.arange(12).view(2, 6)  # two tokens
print(z.tolist(), "in two heads:", split_heads(z, 2).tolist())
print("merged again:", merge_heads(split_heads(z, 2)).tolist())


# %% [markdown]
# ## The layer
#
# Queries, keys and values may come from different inputs. From here on $Q$, $K$, $V$ are the layer's *inputs*, as in the paper. One more matrix, $W_O$, mixes what the heads return:
#
# $$\mathrm{head}_i = \mathrm{Attention}(Q W_Q^i,\; K W_K^i,\; V W_V^i) \qquad \underset{n_q \times d_{model}}{\mathrm{MultiHead}(Q, K, V)} = \underset{n_q \times h d_v}{[\,\mathrm{head}_1 \mid \dots \mid \mathrm{head}_h\,]}\;\; \underset{h d_v \times d_{model}}{W_O}$$

# %% tags=["hide-input"]
pictures.layer()

# %% [markdown]
# In the code below, `self.rule` is scaled dot-product attention, which treats heads as one more batch axis and divides scores by $\sqrt{d_k}$, the root of *one head's* size. The scores have a head axis, and the mask has none: where must an axis of size 1 go?

# %%
# exercise: multi_head/attention

# %%
check("multi_head/attention", MultiHeadAttention)

# %%
MultiHeadAttention = mine("multi_head/attention")

# %% [markdown]
# Here is the layer as one function, without biases and mask. One line is wrong: all shapes are right, it trains, and with one head it is correct. Find it.

# %%
# exercise: multi_head/mend

# %%
check("multi_head/mend", attend_in_heads)

# %%
attend_in_heads = mine("multi_head/mend")

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention", "cross-attention"},
    "The Transformer of 2017 with its three attention layers lit: self-attention in the encoder, "
    "masked self-attention and cross-attention in the decoder. Each of them has several heads.",
)

# %% [markdown]
# All three attention layers of the Transformer are yours now. They differ in where queries, keys and values come from, and in the mask. In torch's own layers, note that `nn.Linear(12, 4)` stores the transpose of $W$, 4 × 12.
#
# <details><summary>Three slips of lectures (D06, D08, D10)</summary>
#
# L3 gives a head's matrices the shape $N \times d_k$, with $N$ tokens, and its output $N \times d$. They are $d \times d_k$ and $N \times d_v$.
#
# L1 and L2 write both $Kx$ and $XK$, with one letter for a matrix and its transpose. Here tokens are rows, and matrices multiply from the right.
#
# L3 says that scores are scaled "by the size of embedding". Its formula divides by $\sqrt{d_k}$, and is right.
# </details>

# %% [markdown]
# ## Your layer at work
#
# A token is three one-hot names (its own and the two that it wants) and a number, drawn from $N(0, 1)$, independently of all others. Queries and keys see the names alone, values the whole token. A linear readout turns your layer's output into two numbers. One head of size 16 has as many parameters as two heads of size 8. **What share of the variance of the wanted numbers will each explain, after 500 steps?**

# %%
guess = None  # (share for one head, share for two heads)

# %% tags=["training"]
one, two = (pointer_models.train_two_numbers(MultiHeadAttention, heads, SEED) for heads in (1, 2))
names, tokens, wanted = pointers.several(2000, generator=torch.Generator().manual_seed(1))
with torch.no_grad():
    answers = {"one head": one(names, tokens), "two heads": two(names, tokens)}
shares = [1 - ((y - wanted).var() / wanted.var()).item() for y in answers.values()]
for name, answer in {"wanted": wanted, **answers}.items():
    print(f"{name:10}", [[round(x, 2) for x in pair] for pair in answer[0, :3].tolist()])
reveal(guess, tuple(round(share, 2) for share in shares))

# %% tags=["training", "hide-input"]
claim = "one head explains 0.45 to 0.55, two heads over 0.95"
holds = 0.45 < shares[0] < 0.55 and shares[1] > 0.95
training.expect(claim, holds, [round(share, 3) for share in shares], one, two)
pictures.line_and_cloud(wanted[:50], {name: answer[:50] for name, answer in answers.items()})

# %% [markdown]
# With two heads your layer returns both numbers. With one it explains half of their variance, and the picture shows why. The numbers $y_j$ of all tokens enter the values along the *same* direction $w$, the last row of $W_V$. So the head returns
#
# $$\sum_j \alpha_j v_j = \underbrace{\Big(\sum_j \alpha_j y_j\Big)}_{s \text{: one number}}\, w \;+\; (\text{names only})$$
#
# and a linear readout of one number $s$ is a line. Every line through a round cloud keeps half of its variance and loses half, however wide the head is.

# %% [markdown]
# By the same argument, $h$ heads explain at most a share $h / r$ of $r$ such numbers, if these are independent, enter along one direction, and are read out linearly.
#
# ## Two heads, set by hand
#
# Training found two such heads. Now set the four matrices by hand. Here queries, keys and values all see the whole token, $3n + 1$ columns for $n$ names.

# %%
# exercise: multi_head/by_hand

# %%
check("multi_head/by_hand", pair_weights)

# %%
pair_weights = mine("multi_head/by_hand")

# %% tags=["nbval-check-output"]
_, sentence, numbers = pointers.several(1, generator=torch.Generator().manual_seed(1))
fetched = attend_in_heads(sentence, *pair_weights(5), 2)
for name, pairs in {"wanted": numbers, "by hand": fetched}.items():
    print(f"{name:8}", [[round(x, 2) for x in pair] for pair in pairs[0, :3].tolist()])

# %% [markdown]
# ## Heads of a real model
#
# What do heads do in a model that was trained on English? SmolLM2 has 30 layers of 9 heads. Give it something that it cannot have memorized: a list of random tokens. Then give it the same list again.

# %%
needs("smollm2")

# %%
from course_lib.pretrained import smollm2

# %% [markdown]
# The model attends by *your* softmax and *your* scores. The rule below keeps each layer's weights, and lets you put others in their place. `read`, folded below, runs the model and returns all weights and the logits. Three heads of queries share one head of keys and values: **grouped queries**, lesson 09.

# %%
# the weights of the layers so far, and {(layer, head): weights to use instead}
seen, changes = [], {}


def rule(q, k, v, mask=None):
    k, v = (x.repeat_interleave(3, dim=-3) for x in (k, v))
    weights = softmax(dot_scores(q, k) / q.shape[-1] ** 0.5, mask)
    for (layer, head), others in changes.items():
        if layer == len(seen) + 1:  # the one that attends now
            weights[..., head - 1, :, :] = others
    seen.append(weights)
    return weights @ v


# %% tags=["hide-input"]
def read(tokens, changed=()):
    """Return all weights, (layer, head, query, key), and the logits of each next token."""
    # forget the last text
    seen.clear()
    changes.clear()
    changes.update(changed)
    with torch.no_grad():
        logits = model(tokens)
    return torch.stack(seen), logits


length = 25  # tokens in the list


def loss_on_second(tokens, logits):
    """Return the loss on the second copy; its first token cannot be predicted, and is left out."""
    second = 1 + length  # where that copy begins
    return F.cross_entropy(logits[second:-1], tokens[second + 1 :]).item()


# %% tags=["once"]
model = smollm2.load(rule=rule)
copy = torch.randint(1000, 10_000, (length,), generator=torch.Generator().manual_seed(SEED))
tokens = torch.cat([torch.tensor([0]), copy, copy])  # 0 begins a text
print(model.tokenizer.decode(copy.tolist()))

# %% tags=["once"]
weights, logits = read(tokens)
print(
    f"loss on the first copy: {F.cross_entropy(logits[:length], tokens[1 : 1 + length]):.1f} nats"
)
print(f"loss on the second copy: {loss_on_second(tokens, logits):.1f} nats")

# %% [markdown]
# After one reading the model can predict the list. No parameter has stored it, so something must look back. Let *A* and *B* be two neighbours in the list: at the second *A* it finds the *B* that followed the first *A*. A head that does this is an **induction head** (Olsson et al. 2022).
#
# ## Your score finds them
#
# Let $R$ be the queries whose token has occurred before. How much weight does a head give, on average, to what came right after?
#
# $$\mathrm{score} = \frac{1}{|R|} \sum_{i \in R}\; \sum_{j \,\le\, i \,:\; t_{j-1} = t_i} \alpha_{ij}$$

# %%
# exercise: heads/induction_score

# %%
check("heads/induction_score", induction_score)

# %%
induction_score = mine("heads/induction_score")


# %% tags=["once"]
def best(scores, number):
    """Return the heads with the highest scores, as (layer, head), both from 1."""
    return [(1 + i // 9, 1 + i % 9) for i in scores.flatten().topk(number).indices.tolist()]


scores = induction_score(weights, tokens)
induction_heads = best(scores, 5)
for layer, head in induction_heads:
    print(f"layer {layer}, head {head}: {scores[layer - 1, head - 1]:.2f}")

# %% [markdown]
# There they are, in two neighbouring layers. The strongest is the orange head: head 7 of layer 19, or 19.7 for short. In the sentence it looked 8 tokens back, here 24: it goes by the token, not by the distance.
#
# ## How does it know?
#
# A query from *A, now* must match the key of *B*. But *B*'s embedding says only "I am *B*", not that *A* came before. In this model each layer *adds* its output to the token's vector (the residual connections of lesson 00). So an earlier layer can have left a note in *B*'s vector:

# %% tags=["hide-input"]
pictures.circuit()

# %% [markdown]
# If so, a head below layer 18 must look one token back. Score the heads for that, too:

# %% tags=["once"]
previous = weights.diagonal(-1, -2, -1).mean(-1)
for layer, head in best(previous, 3):
    print(f"layer {layer}, head {head}: {previous[layer - 1, head - 1]:.2f}")

# %% [markdown]
# The best one is right below, in layer 17: the blue head, 17.1. Now set all its weights to 0, so that it returns 0, and leave the other heads alone. For comparison, do the same to a head far below, 1.6, and to the five induction heads. **What is the orange head's induction score then?**

# %%
guess = None  # a score, from 0 to 1

# %% tags=["once"]
remaining, silenced = {}, {"none": [], "17.1": [(17, 1)], "1.6": [(1, 6)]}
for name, heads in {**silenced, "the five": induction_heads}.items():
    after, logits = read(tokens, dict.fromkeys(heads, 0))
    scores = induction_score(after, tokens)
    remaining[name] = [round(scores[i - 1, j - 1].item(), 2) for i, j in induction_heads]
    loss = loss_on_second(tokens, logits)
    print(f"silent: {name:9}", remaining[name], f"second copy {loss:.1f} nats")
reveal(guess, remaining["17.1"][0])

# %% [markdown]
# Without 17.1 the five heads lose their target, and more than half of what the second copy had gained is lost. But the loss alone would accuse 1.6, too: we silenced each of the 270 heads, and the list needs these two most. The score tells them apart. Without 1.6 each of the five keeps over a third of its score; without 17.1, less than a fifth. You have cut a **circuit**: heads in several layers do together what none can do alone.

# %% [markdown]
# Is the note really the cause? Then a forged note must mislead. Let the blue head look *two* tokens back. **Where does the orange head look from A now?**

# %%
guess = None  # how many tokens after the first A: 1 means B

# %% tags=["once"]
silent, _ = read(tokens, {(17, 1): 0})
shifted, _ = read(tokens, {(17, 1): torch.eye(len(tokens)).roll(2, dims=0).tril()})
# a token's first copy is `length` tokens back; the first few queries have met too little
diagonals = [shifted[18, 6].diagonal(further - length) for further in (1, 2, 3)]
mean_weights = [diagonal[4:].mean().item() for diagonal in diagonals]
print("weight 1, 2, 3 tokens after:", [round(x, 2) for x in mean_weights])
reveal(guess, 1 + mean_weights.index(max(mean_weights)))

# %% tags=["once", "hide-input"]
pictures.steered(weights[18, 6], silent[18, 6], shifted[18, 6])
back = {f"17.1 looks {x} back": torch.eye(len(tokens)).roll(x, dims=0).tril() for x in (1, 2)}
for name, forged in {"untouched": None, "17.1 silent": 0, **back}.items():
    said = read(tokens, {} if forged is None else {(17, 1): forged})[1].argmax(-1)
    second = 1 + length
    shares = [(said[second:-x] == tokens[second + x :]).float().mean().item() for x in (1, 2)]
    print(f"{name:18} B {shares[0]:4.0%}   the token after B {shares[1]:4.0%}")

# %% [markdown]
# Dotted is where *B* is. The bright line moves one token beyond it and stays nearly as bright: the orange head follows the forged note. So does the model's output. With the blue head silent it says *B* one time in eight. With the head held two tokens back it says the token after *B*, half as often as it said *B* before. Held one token back, it loses little.

# %% [markdown]
# ## Nine heads, or one mixture
#
# Now the question of this page. Here are all nine heads of the blue head's layer, at the second *and* of the sentence at the top, with the start token that the first picture leaves out:

# %% tags=["once", "hide-input"]
ids = model.tokenizer.encode("Mr and Mrs Dursley lived here. Mr and Mrs Dursley slept").ids
words = ["start", *(model.tokenizer.decode([x]).strip() for x in ids)]
sentence = torch.tensor([0, *ids])
title = "One token, “and”: heads 1 and 3 look at “Mr”, the others most at the start"
pictures.nine_heads(title, words[:12], read(sentence)[0][16, :, 11, :12])

# %% [markdown]
# Heads 1 and 3 look at the token before; the seven others look most at the start. The last row is the mean of the nine. Give such a mean to *all* heads of the layer, at every token: each keeps its values, but all look at the same places, in one mixture. **What becomes of the loss on the second copy? It was 1.6 nats, and 7.8 without head 17.1.**

# %%
guess = None  # nats


# %% tags=["once"]
def patched_logits(tokens, heads):
    """Return the logits where these heads of layer 17 attend with the mean of its nine."""
    mean = read(tokens)[0][16].mean(0)
    return read(tokens, {(17, head): mean for head in heads})[1]


groups = {"head 1": [1], "the eight others": range(2, 10), "all nine": range(1, 10)}
for name, heads in groups.items():
    loss = loss_on_second(tokens, patched_logits(tokens, heads))
    print(f"the mean for {name}: {loss:.1f} nats")
reveal(guess, round(loss, 2))

# %% [markdown]
# No head was switched off, and every head kept its values. Yet the loss goes from 1.6 to 4.9 nats, and nearly all of that is lost in head 1: on this list the eight others can use the mean at little cost. Averaged with theirs, its look at one token is a faint one. **In one shared mixture, what head 17.1 found is worth much less.**

# %% [markdown]
# A model that is *trained* with one head adapts: the paper's translation model loses 0.9 BLEU, a score of translations (lesson 11), against eight (Vaswani et al. 2017, table 3).
#
# The circuit takes two layers, one head in each: [an exploration](explorations/07_induction_heads.ipynb) sets it by hand and trains one.

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | one head | $\mathrm{head}_i = \mathrm{softmax}\big(Q W_Q^i (K W_K^i)^T / \sqrt{d_k}\big)\, V W_V^i$ |
# | multi-head attention | $[\,\mathrm{head}_1 \mid \dots \mid \mathrm{head}_h\,]\, W_O$ |
# | splitting | $\mathrm{split}(Z)_{i,t,c} = Z_{t,\, i d_k + c}$ with $Z = Q W_Q$ |
# | bound | $h$ heads explain at most $h / r$ of $r$ independent numbers that share one value direction, by a linear readout, with weights from names alone |
# | induction | a previous-token head writes *before me: A* into B's vector; an induction head's query, from a later A, finds it |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. n = 10 tokens, d_model = 512, 8 heads: what are the shapes of the split queries, the weights, and the merged result?</summary>
#
# 8 × 10 × 64, 8 × 10 × 10, 10 × 512.
# </details>
#
# <details><summary>2. Why can a model with one layer of attention not have this circuit?</summary>
#
# The induction head's keys must hold what the previous-token head wrote. In one layer all heads read the same input, before any of them has written.
# </details>
#
# <details><summary>3. n = 5, 12 columns, 3 heads, all counted from 0. Which entry of Z is in head 2, token 4, column 3?</summary>
#
# $Z_{4,\,2 \cdot 4 + 3} = Z_{4, 11}$.
# </details>
#
# <details><summary>4. What could a layer not do without $W_O$?</summary>
#
# Head $i$ would always write into columns $i d_v$ to $(i + 1) d_v - 1$ of the output. $W_O$ lets each head write anywhere, and several heads into the same place.
# </details>

# %% [markdown]
# ## In your own words
#
# Eight heads of size 64 and one head of size 512 have the same number of parameters. Explain in one paragraph what the eight can return that the one cannot, under which condition, and how you would show that a head of a real model is needed by another one.

# %% [markdown] tags=["question:why_heads"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# Lesson 07 adds each layer's output to its input, and explains why. Three explorations: [what heads cost](explorations/06_costs.ipynb), [how large scores are at the start](explorations/06_initial_weights.ipynb), and [whether a head can be left out](explorations/06_pruning.ipynb).
#
# Vaswani et al. 2017, sections 3.2.1 and 3.2.2, table 3; Elhage et al. 2021 and Olsson et al. 2022 (induction heads); Voita et al. 2019 and Clark et al. 2019 (heads with grammatical roles). Titles and links: docs/REFERENCES.md. Lectures L1 to L5: docs/TOPICS.md.
