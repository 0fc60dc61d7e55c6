# %% [markdown]
# # 14 · Low-rank, hashed and linear attention
#
# **75 minutes · after lesson 13 · needs `smollm2` (93 MB)**
#
# Lesson 13 left pairs of tokens out by their *positions*. Can attention cost less without deciding in advance who sees whom? There are three ways. Give up the softmax and move two brackets, and the square is gone. Mix all keys into a few. Or let the tokens choose their keys.
#
# You build all three. **What does each of them give up?**

# %%
import torch
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import needs
from course_lib.exercises import check, hint, mine, reveal, solution

# %%
from functools import partial
from course_lib.efficient import linear, lsh, window
from course_lib.efficient.lsh import draw_rotations, lsh_attention
from course_lib.instruments import measuring, recall, results, training
from course_lib.instruments.measuring import random_vectors, seconds
from course_lib.instruments.pictures import brackets as pictures

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
causal_mask, leaks_future = mine("masks/causal"), mine("masks/leaks_future")

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
pictures.brackets()

# %% [markdown]
# ## Linear attention: move the brackets
#
# Without the softmax, attention would be $(QK^T)V$, and a product of three matrices can be bracketed either way. The results are equal; the costs are not:
#
# $$\underset{\text{multiply-adds: } 2 n^2 d}{\underbrace{(\overbrace{Q K^T}^{n \times n})\; V}} \;=\; \underset{2 n d^2}{\underbrace{Q\; (\overbrace{K^T V}^{d \times d})}}$$

# %% [markdown]
# The softmax keeps us from computing $Q(K^TV)$: $\exp(q \cdot k)$ is no dot product of finitely many features of $q$ and $k$. Katharopoulos et al. 2020 replace it by $\phi(q) \cdot \phi(k)$, with a positive **feature map** $\phi$. The weights are still positive and sum to one, and $\phi(q_i)$ can be taken out of the sums over $j$:
#
# $$o_i = \frac{\sum_j \phi(q_i) \cdot \phi(k_j)\; v_j}{\sum_j \phi(q_i) \cdot \phi(k_j)} = \frac{\phi(q_i)\, S}{\phi(q_i) \cdot z} \qquad \underset{d \times d_v}{S} = \sum_j \phi(k_j)^T v_j \qquad \underset{1 \times d}{z} = \sum_j \phi(k_j)$$
#
# $$\phi(x) = \mathrm{elu}(x) + 1 = \begin{cases} x + 1 & x > 0 \\ e^x & x \le 0 \end{cases}$$

# %% [markdown]
# Three tokens by hand, with one number as value and small whole numbers in place of features:
#
# $$\phi(Q) = \begin{pmatrix} 1 & 1 \\ 2 & 0 \\ 0 & 1 \end{pmatrix} \quad \phi(K) = \begin{pmatrix} 1 & 0 \\ 0 & 1 \\ 1 & 1 \end{pmatrix} \quad V = \begin{pmatrix} 1 \\ 2 \\ 6 \end{pmatrix} \qquad \phi(Q)\phi(K)^T = \begin{pmatrix} 1 & 1 & 2 \\ 2 & 0 & 2 \\ 0 & 1 & 1 \end{pmatrix}$$
#
# The slow way: row 1 of the 3 × 3 matrix gives $(1 \cdot 1 + 1 \cdot 2 + 2 \cdot 6)/4 = 3.75$. The fast way: $S = (7, 8)^T$ and $z = (2, 2)$, so $o_1 = (7 + 8)/(2 + 2) = 3.75$. **What are $o_2$ and $o_3$, by the fast way?**

# %%
guess = None  # two numbers

# %%
of_q, of_k = torch.tensor([[1.0, 1], [2, 0], [0, 1]]), torch.tensor([[1.0, 0], [0, 1], [1, 1]])
values = torch.tensor([[1.0], [2], [6]])
slow = of_q @ of_k.T @ values / (of_q @ of_k.T).sum(-1, keepdim=True)
reveal(guess, tuple(slow[1:, 0].tolist()))

# %% [markdown]
# ### Causal: a recurrent network
#
# A causal token $i$ may only use the sums over $j \le i$. So let $S$ and $z$ grow token by token:
#
# $$S_i = S_{i-1} + \phi(k_i)^T v_i \qquad z_i = z_{i-1} + \phi(k_i) \qquad o_i = \frac{\phi(q_i)\, S_i}{\phi(q_i) \cdot z_i}$$
#
# With the numbers above: $S_1 = (1, 0)^T$ and $o_1 = 1$; then $S_2 = (1, 2)^T$, $z_2 = (1, 1)$ and $o_2 = 2/2 = 1$; token 3 sees everything, so $o_3 = 4$ as before.

# %% tags=["hide-input"]
pictures.recurrence()

# %% [markdown]
# This is a **recurrent network** with a matrix as its state. Write it as a plain loop.

# %%
# exercise: efficient/linear

# %%
check("efficient/linear", linear_attention)

# %%
linear_attention = mine("efficient/linear")

# %% [markdown]
# A Transformer that writes keeps keys and values of all tokens (lesson 09's cache): $2nd$ numbers in a head. Your loop keeps $S$ and $z$, $d^2 + d$ numbers for any $n$. The cache is larger where $n > (d + 1)/2$: with $d = 64$, from 33 tokens on.

# %% [markdown]
# Unlike in lesson 01's RNN, there is no nonlinearity between steps. So training can compute a **chunk** of tokens at once, as a small square, and hand only $S$ and $z$ to the next chunk. Here it is. One line is wrong, and lets outputs depend on later tokens. Mend it.

# %%
# exercise: efficient/mend_linear

# %%
check("efficient/mend_linear", linear_attention_in_chunks)

# %%
linear_attention_in_chunks = mine("efficient/mend_linear")

# %%
long = [random_vectors(4096, 64, seed=i) for i in range(3)]
token_by_token = seconds(lambda: linear_attention(*long, causal=True), times=1)
in_chunks = seconds(lambda: linear_attention_in_chunks(*long, 64), times=1)
print(
    f"4,096 tokens, forward and backward: in chunks {token_by_token / in_chunks:.0f} times as fast"
)

# %% [markdown]
# ## What a sum blurs
#
# All tokens are added into one matrix. What is lost? Sharpness, and rank. **A hundred random keys of 16 numbers; a query is four times one of them (softmax's scores are divided by 4). How much weight does that key get from softmax, and how much from elu + 1?**

# %%
guess = None  # two shares

# %%
keys, own = random_vectors(100, 16, dtype=torch.float64).detach(), {}
for times in (1, 4, 16):
    weights = {"elu + 1": (F.elu(times * keys) + 1) @ (F.elu(keys) + 1).T}
    weights["softmax"] = softmax(dot_scores(times * keys, keys) / 4)
    own[times] = {name: (x.diagonal() / x.sum(-1)).mean().item() for name, x in weights.items()}
reveal(guess, (round(own[4]["softmax"], 2), round(own[4]["elu + 1"], 2)))
for times, shares in own.items():
    print(f"{times:2} times:", ", ".join(f"{name} {x:.2f}" for name, x in shares.items()))
print("ranks:", {name: torch.linalg.matrix_rank(x).item() for name, x in weights.items()})

# %% [markdown]
# A query of larger norm sharpens softmax, but hardly elu + 1: its features grow nearly in proportion, and the division cancels that. $\phi(Q)\phi(K)^T$ is a product of an $n \times d$ and a $d \times n$ matrix: with 16 features its rank is at most 16, whatever the feature map. Without a mask, linear attention is low-rank attention. The softmax's matrix has full rank here: no finite number of features gives its exponential for all vectors. The **Performer** (Choromanski et al. 2021) draws random ones.

# %% [markdown]
# ## Fewer keys: Linformer
#
# A second idea keeps the softmax, and hopes that its weights are *nearly* of low rank. The scores are $n \times n$ because $n$ queries meet $n$ keys. **Linformer** (Wang et al. 2020a) projects along the sequence: $k$ weighted sums of the keys (here $k$ is a number, not a key), and of the values. A thousand keys become sixteen, say. L1: "map the sequence length dimension to a lower-dimensional space for values, keys".
#
# $$\underset{n \times d_v}{Y} = \mathrm{softmax}\!\left(\frac{\overbrace{Q}^{n \times d_k}\,(\overbrace{E^T K}^{k \times d_k})^T}{\sqrt{d_k}}\right)\; \overbrace{F^T V}^{k \times d_v} \qquad\qquad \underset{n \times k}{E} \quad \underset{n \times k}{F}$$

# %%
# exercise: efficient/linformer

# %%
check("efficient/linformer", linformer_attention)

# %%
linformer_attention = mine("efficient/linformer")

# %%
q, k, v = (x[:1000] for x in long)
exact = softmax(dot_scores(q, k) / 8) @ v
mixtures = random_vectors(1000, 16).detach() / 1000**0.5
for name, e in {"identities": torch.eye(1000), "16 random mixtures": mixtures}.items():
    off = (linformer_attention(q, k, v, e, e) - exact).abs().mean() / exact.abs().mean()
    print(f"{name:20} off by {off:.0%} on average")

# %% [markdown]
# With identities it is exact attention. Sixteen random mixtures are farther off than zeros would be: a Linformer *learns* its projections, together with the matrices that make the keys.
#
# $E$ is $n \times k$, so a Linformer reads no text longer than it was made for. A column of $E$ mixes all tokens, so it is not causal: it is for encoders. [Why should a few keys be enough?](explorations/14_theorem.ipynb)

# %% [markdown]
# ## How many pairs fit?
#
# Both ideas mix tokens before a query looks at them. So give a head a task that is all lookup: **associative recall**. A sequence lists pairs of a key and a value. Then it asks for each key, and the head must name the value, one of ten:
#
# | | | | | |
# |:-|:-:|:-:|:-:|:-:|
# | pairs | key 7, value 3 | key 52, value 9 | key 20, value 0 | key 31, value 3 |
# | asked | 20 | 7 | 31 | 52 |
# | answer | 0 | 3 | 3 | 9 |

# %% [markdown]
# Queries are made from the keys asked for, the head's keys and values from the pairs. There are 64 keys, and 64 pairs in a sequence. Train three heads: exact attention, with keys of 4 numbers and values of 8, and *your* linear attention, with values of 16, and 16 or 64 features. **What share of the values does each of them find?**

# %%
guess = None  # three shares


# %% tags=["training"]
def trained(rule, d_k, d_v=16):
    with training.seeded(SEED):
        head = recall.Head(d_k, d_v, rule)
    sequences = recall.sequences(64, 32, SEED)
    budget = {"steps": 300, "learning_rate": 0.01, "seconds": 60}
    training.train(head, sequences, recall.loss, **budget)
    return head


heads = {
    "exact, keys of 4": trained(scaled_dot_product_attention, 4, 8),
    "linear, 16": trained(linear_attention, 16),
    "linear, 64": trained(linear_attention, 64),
}

# %% [markdown]
# Ask each of them for the first twenty keys of a sequence that it has not seen:

# %% tags=["training"]
batch = next(recall.sequences(64, 1, seed=100))
for name, values in [("right", batch.answers)] + [
    (n, h(batch).argmax(-1)) for n, h in heads.items()
]:
    print(f"{name:17}", *values[0, :20].tolist())
share = {name: round(recall.share_right(head, 64), 2) for name, head in heads.items()}
reveal(guess, tuple(share.values()))

# %% tags=["training", "hide-input"]
exact, few, many = share.values()
claim = "16 features find under 60 % of the values, 64 and exact keys of 4 over 80 %"
training.expect(claim, few < 0.6 and min(exact, many) > 0.8, share, *heads.values())

# %% [markdown]
# With 16 features linear attention finds less than half of the values, with 64 all. But how much does each head keep? Exact attention a key and a value for each pair, 64 · (4 + 8) = 768 numbers; linear attention $S$ and $z$, 16 · (16 + 1) = 272 of them, or 64 · 17 = 1,088. At 64 pairs it needs about as large a memory as exact attention. What does it give up, then? Train heads of one size for more and more pairs:

# %% tags=["hide-input"]
kept = results.load("recall")["figures"]["runs"]
rows = {"exact, 32 numbers a pair": "dense"}
rows |= {"linear, 272 numbers": "linear", "Linformer, 512 numbers": "Linformer"}
lines = {
    name: {int(n): sum(curve[-1] for curve in runs) / 3 for n, runs in kept[row].items()}
    for name, row in rows.items()
}
pictures.recall(lines, chance=0.1)

# %% [markdown]
# A cache grows with the text, and never forgets. A state has one size for any text, and must be made large enough before. Linformer's sixteen places are full after sixteen pairs. Lesson 15 asks which rule stores best in a state of fixed size.
#
# <details><summary>How we know</summary>
#
# One head with $d_k = d_v = 16$, trained for each number of pairs: no positions, 1,000 steps of 32 sequences, three seeds. At 64 pairs, with 48 features (816 numbers), linear attention finds 99 %; exact attention finds 62 % with keys of 2 numbers (640), and all with keys of 4 (768). Figures: research/results/recall.json.
# </details>

# %% [markdown]
# ## Choose by content: 2020
#
# Linear attention and Linformer mix the pairs. The third way mixes nothing. The softmax gives nearly all its weight to few keys. If we knew which, we could skip the rest. **Reformer** (Kitaev et al. 2020) guesses them with **locality-sensitive hashing** (LSH): vectors of similar direction are likely to get the same value. For $b$ buckets draw $b/2$ random directions, the columns of $R$. The hash is the number of the direction, or opposite direction, in which a vector reaches farthest:
#
# $$\mathrm{bucket}(x) = \arg\max\,\big[\underset{1 \times b/2}{xR},\; \underset{1 \times b/2}{-xR}\big] \qquad \underset{d \times b/2}{R}$$

# %% [markdown]
# By hand, in the plane: with $R = I$ the buckets are 0 right, 1 up, 2 left, 3 down:
#
# | token | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# |:-|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:-:|
# | $x$ | (1, 3) | (4, 1) | (−1, 2) | (−3, 1) | (2, −1) | (0, 2) | (2, 3) | (−2, −1) |
# | $[xR, -xR]$ | 1,**3**,−1,−3 | **4**,1,−4,−1 | −1,**2**,1,−2 | −3,1,**3**,−1 | **2**,−1,−2,1 | 0,**2**,0,−2 | 2,**3**,−2,−3 | −2,−1,**2**,1 |
# | bucket | 1 | 0 | 1 | 2 | 0 | 1 | 1 | 2 |

# %%
# exercise: efficient/lsh_buckets

# %%
check("efficient/lsh_buckets", lsh_buckets)

# %%
lsh_buckets = mine("efficient/lsh_buckets")

# %% [markdown]
# So that queries and keys meet in a bucket, Reformer makes both with one matrix. A token would then fit itself best, so none sees itself. How do you find the tokens of one bucket without an $n \times n$ mask? *Sort* the tokens by bucket, and *cut* the sorted text into chunks of equal length. A query sees its own bucket, in its own chunk and in the one before:

# %% tags=["hide-input"]
pictures.hash_sort_cut([1, 0, 1, 2, 0, 1, 1, 2], chunk=4)

# %% [markdown]
# Cutting loses pairs: tokens 5 and 6 see token 0, but token 0 does not see them, though all three are in bucket 1. L3 says: "Replace dot-product with locality sensitive hashing". More exactly, the hash chooses *which* dot products are computed. ([Write it](explorations/14_hashing.ipynb) in an exploration.)
#
# ## A leak through the sort
#
# With `causal=True`, the library's `lsh_attention` lets no query see a key after itself. **Can a later token still change the output of an earlier one?**

# %%
guess = None  # yes or no

# %%
x, rotations = random_vectors(32, 4), draw_rotations(4, 4, seed=0)


def causal_layer(x):
    return lsh_attention(x, x, lsh_buckets(x, rotations), 4, causal=True)


causal_layer(x)[:16].sum().backward()
print("largest gradient from later tokens:", x.grad[16:].abs().max().item())
leaks = leaks_future(causal_layer, x.detach())
reveal(guess, f"yes, the outputs of {len(leaks)} of 32 tokens")

# %% [markdown]
# No gradient comes from later tokens, and still information leaks. Later tokens take part in the *sort*, so they shift the borders of the chunks, and change which keys an earlier token sees. When a model writes, those tokens do not exist yet. Lesson 05's test by behaviour finds it. A look at the mask or at gradients does not.
#
# ## Choose by content: now
#
# Hashing is rare in 2026, but its question has come back: since 2025 open models let tokens choose by a **cheap score**. The plainest is MoBA's (Lu et al. 2025). It averages the keys of each block, and one dot product says how well block $b$ fits a query:
#
# $$\text{score}_{ib} = q_i \cdot \bar k_b \qquad \underset{d}{\bar k_b} = \frac{1}{|b|} \sum_{j \in b} k_j$$
#
# Each query attends to the earlier blocks that fit it best, and to its own. An earlier block is complete, so no later token has a say.

# %%
# exercise: efficient/choose_blocks

# %%
check("efficient/choose_blocks", choose_blocks)

# %%
choose_blocks = mine("efficient/choose_blocks")


# %% [markdown]
# It does not leak: `check` has changed later tokens, and no earlier row changed. It would if a block of queries chose together, by its mean: the mean holds later queries. Now attend to what is chosen:


# %%
def attend_to(q, k, v, listed, block, always=False):
    """Attend to the tokens of the blocks that each query lists, up to itself."""
    n = q.shape[-2]
    chosen = (listed.unsqueeze(-1) == torch.arange(n // block)).any(-2)  # -1 is no block
    sees = chosen.repeat_interleave(block, dim=-1) | always
    return scaled_dot_product_attention(q, k, v, sees & causal_mask(n))


# %% [markdown]
# Does it choose well? Give SmolLM2 lesson 13's four lists: 63 random tokens, and the same 63 again. To continue the second copy, a token must look 62 tokens back. Each query of each head chooses among blocks of four tokens. It also sees the first block, where the sink is, and the block before its own.

# %%
needs("smollm2")

# %%
from course_lib.pretrained import smollm2

# %% tags=["once"]
model = smollm2.load()
copy = torch.randint(1000, 10_000, (4, 63), generator=torch.Generator().manual_seed(0))
tokens = torch.cat([torch.zeros(4, 1).long(), copy, copy, copy[:, :1]], dim=1)  # 0 begins a text
blocks = torch.arange(128) // 4
always = (blocks == 0) | (blocks.unsqueeze(-1) - blocks == 1)


# %%
def by_choice(q, k, v, mask=None, *, choose):
    k, v = (x.repeat_interleave(3, dim=-3) for x in (k, v))  # three heads share a key head
    return attend_to(q, k, v, choose(q, k), 4, always)


def loss_on_second(choose, chosen):
    for layer in model.rules:
        layer.rule = partial(by_choice, choose=partial(choose, block=4, chosen=chosen))
    with torch.no_grad():
        return F.cross_entropy(model(tokens)[:, 64:-1].mT, tokens[:, 65:]).item()


# %% [markdown]
# Without a choice a query sees at most three blocks. A baseline chooses more at random. **With six chosen blocks a query sees at most nine, of up to 32. Will the model continue the lists as well as with all of them?**

# %%
guess = None  # "yes", "nearly" or "no"


# %%
def at_random(q, k, block, chosen):
    return choose_blocks(torch.randn_like(q), torch.randn_like(k), block, chosen)


# %% tags=["once"]
torch.manual_seed(0)
losses = {
    name: {3 + chosen: loss_on_second(choose, chosen) for chosen in (0, 1, 2, 3, 6)}
    for name, choose in (("random", at_random), ("chosen", choose_blocks))
}
every = loss_on_second(choose_blocks, 31)
reveal(guess, f"{losses['chosen'][9]:.1f} nats, and {every:.1f} with all blocks")
title = "Six chosen blocks and three fixed ones do as well as all; six at random do not"
pictures.choices(title, losses, every, 32)
longer = results.load("chosen_blocks")["figures"]["8"]
print("blocks of eight:", {name: round(sum(x) / 3, 1) for name, x in longer.items()})

# %% [markdown]
# With nine blocks of four tokens, if it chooses them, the model continues the lists as well as with all, though nobody has trained this score. With six of the nine at random it is little better than a guess among all 49,152 tokens, which costs 10.8 nats. In blocks of eight, on lists of 127 tokens, choosing costs 0.6 nats. Our code masks a full square: only a kernel that skips blocks saves time.

# %% [markdown]
# Open models train with their choice. DeepSeek-V3.2 (2025) has a small **indexer** in each layer, which scores all earlier tokens for each query and keeps 2,048. It still computes $n^2$ scores, but cheap ones: fewer heads, shorter keys, eight bits.

# %% [markdown]
# ## A long text
#
# L3: "For long input (e.g., long documents), n > 50000". Which rules are fast on the way there? We time one head of the library, not causal, forward and backward, beside PyTorch's exact compiled kernel (lesson 13).

# %% tags=["once", "hide-input"]
x = torch.randn(1, 1, 16_384, 64).requires_grad_()  # a head of a text: torch has a kernel for it
rules = {
    "exact": F.scaled_dot_product_attention,
    "window of 257": partial(window.rule, width=257),
    "LSH": partial(lsh.rule, buckets=256, chunk=64),
    "linear": linear.rule,
}
ratios = {}
for name, rule in rules.items():
    seconds(partial(rule, *3 * [x[..., :512, :]]))  # the first call is slower: not counted
    short, long_text = (
        seconds(partial(rule, *3 * [x[..., :n, :]]), times=1) for n in (4096, 16_384)
    )
    ratios[name] = round(long_text / short, 1)
    print(f"{name:14} {long_text:6.2f} s at 16,384 tokens, {ratios[name]:4} times that at 4,096")

# %% tags=["once", "hide-input"]
exact, *others = ratios.values()
claim = "for four times the text, exact attention takes over 8 times as long, the others less"
measuring.expect(claim, exact > 8 > max(others), ratios)

# %% [markdown]
# ## What survived
#
# | idea | time | what it gives up | at the end of 2026 |
# |:-|:-|:-|:-|
# | exact, compiled | $n^2d$ | nothing | the default; some layers of Gemma 3, gpt-oss, Kimi Linear |
# | window | $nwd$ | what is far | most layers of Gemma 3, every second of gpt-oss; first Mistral (Jiang et al. 2023) and Gemma 2 (Riviere et al. 2024) |
# | chosen blocks or tokens | cheap $n^2$, $nsd$ | what the score misses | DeepSeek-V3.2 (DeepSeek-AI 2025), and as reported V4 (DeepSeek-AI 2026) and GLM-5 |
# | linear | $nmd$ | sharpness, and recall where $m$ is small | with rules that forget (lesson 15): three of four layers in Kimi Linear and Qwen3-Next |
# | LSH | chunk $\cdot\, nd$ | pairs that the hash misses, a clean causal form | rare; choosing by content stayed |
# | Linformer | $nkd$ | causality, longer texts, recall | none that we found; DeepSeek-V4 makes one key of 4 or 128 *neighbours*, which stays causal (reported) |
#
# ($w$: window, $s$: chosen tokens, $m$: features, $k$: projected keys.)

# %% [markdown]
# ## What to remember
#
# Without the softmax the brackets move, and attention is a recurrent network with a matrix as its state. It blurs, and a state of fixed size fills up, where a cache grows. With the softmax, tokens can choose whom to look at: by a hash, whose sort leaks, or by a cheap score, which does not if each query chooses alone.
#
# | | |
# |:-|:-|
# | linear attention | $o_i = \phi(q_i) S / (\phi(q_i) \cdot z)$, $\;S = \sum_j \phi(k_j)^T v_j$, $\;z = \sum_j \phi(k_j)$ |
# | causal | $S_i = S_{i-1} + \phi(k_i)^T v_i$, a state of $d \times d_v$ |
# | LSH bucket | $\arg\max\,[xR, -xR]$ |
# | chosen blocks | the largest $q_i \cdot \bar k_b$ of the blocks $b$ before $i$'s own, and its own |
# | Linformer | $\mathrm{softmax}\big(Q (E^T K)^T / \sqrt{d_k}\big)\, F^T V$, with $E, F$: $n \times k$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Causal LSH attention hides all later tokens, and no gradient comes from them. Why does it still leak?</summary>
#
# Later tokens are sorted with the others, so they move the borders of the chunks.
# </details>
#
# <details><summary>2. Multiply a query by ten. What happens to the weights of softmax, and to those of elu + 1?</summary>
#
# Softmax gives nearly all weight to the best key. With elu + 1 the features grow nearly in proportion, and the division cancels that: the weights stay spread.
# </details>
#
# <details><summary>3. Chosen blocks keep the softmax and mix nothing. What do they give up?</summary>
#
# What the score misses: a block's mean hides its keys.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 15 looks at models whose state forgets on purpose. Beside this lesson: [is the rank low?](explorations/14_theorem.ipynb) [Hash, sort, cut](explorations/14_hashing.ipynb). [Summaries of neighbours](explorations/14_memory_compressed.ipynb). [Layers that run backwards](explorations/14_reversible.ipynb).
#
# Katharopoulos et al. 2020 (linear attention); Choromanski et al. 2021 (Performer); Kitaev et al. 2020 (Reformer); Andoni et al. 2015 (its hash); Lu et al. 2025 (MoBA) and Yuan et al. 2025 (chosen blocks); DeepSeek-AI 2025 and 2026; Wang et al. 2020a (Linformer). Lectures: L1 and L3.
