# %% [markdown]
# # 13 · Exact and sparse attention
#
# **75 minutes · after lesson 09 · needs `smollm2` (93 MB)**
#
# A book of 50,000 tokens has 2.5 billion pairs of them, in every head of every layer. L4 asks: "What if we want to scale $n \geq 50,000$? For example, to work on long documents?" **How can a Transformer read a book?**
#
# On this page your own function attends to all of it, exactly, and never stores the square, forward or backward. Then you leave pairs out, and a real model shows what that costs, and which pairs it cannot do without.

# %%
import torch
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F
from course_lib.data import needs
from course_lib.exercises import check, hint, mine, reveal, solution

# %%
import time
from functools import partial
from torch.nn.attention.flex_attention import create_block_mask
from course_lib.efficient.bigbird import attend_back, bigbird_mask, neighbours
from course_lib.instruments import measuring
from course_lib.instruments.measuring import largest_difference, random_vectors, saved_bytes
from course_lib.instruments.pictures import tiles as pictures

softmax, dot_scores = mine("attention/softmax"), mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")

# %% tags=["hide-input"]
pictures.square_and_tile()

# %% [markdown]
# ## A book of 50,000 tokens
#
# Take one layer of a usual size: $d = 1{,}024$ and 16 heads, two bytes a number. Each head has $n^2$ weights. **How much memory do the weights of this one layer take?**

# %%
guess = None  # in GiB

# %% tags=["nbval-check-output"]
n, d, heads = 50_000, 1024, 16
print(f"the tokens themselves: {n * d * 2 / 2**30:.2f} GiB")
reveal(guess, f"{heads * n**2 * 2 / 2**30:.1f} GiB")

# %% [markdown]
# That fills a large GPU, for one layer. The computing is bearable: the kernel of this page took 86 milliseconds on an H100, forward and backward. So memory gives out first, and we attack it first.

# %% [markdown]
# ## The square need not be stored
#
# Exact attention needs all scores, but not all at once. Cut them into **tiles**: a block of queries times a block of keys. Compute one, use it, forget it. But the softmax's sum runs over a whole row.
#
# **Online softmax** (Milakov & Gimelshein 2018) goes through a row once and keeps the maximum $m$ so far and the sum of exponentials $\ell$. Attention by tiles also carries the weighted sum of values $o$ (Rabe & Staats 2021, Dao et al. 2022):
#
# $$\underset{1}{m} = \max_{j\ \text{seen}} s_j \qquad \underset{1}{\ell} = \sum_{j\ \text{seen}} e^{s_j - m} \qquad \underset{d_v}{o} = \sum_{j\ \text{seen}} e^{s_j - m}\, v_j$$

# %% [markdown]
# When all keys have been seen, the output is $o / \ell$. Now a tile arrives with a score above $m$. The maximum rises to $m'$, and the old sums are relative to the wrong maximum. Each of their terms needs the same factor, because $e^{m - m'} \cdot e^{s_j - m} = e^{s_j - m'}$. So we do not need the old scores again:
#
# $$m' = \max\big(m,\ \max_{j\ \text{new}} s_j\big) \qquad \ell' = e^{m-m'}\,\ell + \sum_{j\ \text{new}} e^{s_j - m'} \qquad o' = e^{m-m'}\,o + \sum_{j\ \text{new}} e^{s_j - m'}\, v_j$$

# %% [markdown]
# ## Six scores by hand
#
# One query, six keys, two tiles of three. The scores are 1, 3, 2 and 5, 1, 4; the values are 1 to 6. After the first tile, $m = 3$, $\ell = e^{-2} + 1 + e^{-1} = 1.50$, and $o = 1\,e^{-2} + 2 + 3\,e^{-1} = 3.24$. Then comes the second tile, with a 5. **By which factor must $\ell$ and $o$ be multiplied?**

# %%
guess = None  # a number

# %%
s, v = torch.tensor([1.0, 3, 2, 5, 1, 4]), torch.tensor([1.0, 2, 3, 4, 5, 6])
reveal(guess, f"{torch.tensor(3.0 - 5).exp():.3f}, which is e to the power 3 - 5")
print(f"softmax of the whole row: {softmax(s) @ v:.2f}")

# %% tags=["hide-input"]
pictures.online_softmax([1, 3, 2, 5, 1, 4], [1, 2, 3, 4, 5, 6], block=3)

# %% [markdown]
# With tiles of any size the end is 4.24. Before the first tile $m = -\infty$, so the first factor, $e^{-\infty} = 0$, wipes out the empty sums.
#
# ## Build: attention by tiles
#
# With a block of $b_q$ queries, $m$ and $\ell$ are columns, and $o$ has a row for each query:
#
# $$\underset{b_q \times b_k}{S} = \frac{1}{\sqrt{d_k}}\; \underset{b_q \times d_k}{Q}\; \underset{d_k \times b_k}{K^T} \qquad \underset{b_q \times 1}{m'} \qquad \underset{b_q \times 1}{\ell'} \qquad \underset{b_q \times d_v}{o'}$$
#
# No matrix of scores may be larger than a tile, and `block` need not divide $n$.

# %%
# exercise: efficient/tiled

# %%
check("efficient/tiled", tiled_attention)

# %%
tiled_attention = mine("efficient/tiled")

# %% [markdown]
# Now your function reads the book: one head, and a random vector for each of the 50,000 tokens. For ten of them we compare with the softmax of the whole row.

# %% tags=["once"]
book = [random_vectors(50_000, 64, seed=i).detach() for i in range(3)]
start = time.process_time()
read = tiled_attention(*book, 1000)
all_pairs = time.process_time() - start
rows = scaled_dot_product_attention(book[0][::5000], *book[1:])
print(f"all scores: {4 * 50_000**2 / 1e9:.0f} GB; a tile: {4 * 1000**2 / 1e6:.0f} MB")
print(f"largest difference in ten tokens: {(read[::5000] - rows).abs().max():.0e}")

# %% [markdown]
# Every token has looked at every other, exactly.
#
# ## The backward pass
#
# For the backward pass autograd would save every tile of your loop, and the square would be back. So keep only one number for each query, $L_i = m_i + \log \ell_i$, and compute the weights again:
#
# $$P_{ij} = \frac{e^{s_{ij} - m_i}}{\ell_i} = e^{s_{ij} - L_i}$$
#
# $L_i$ holds the sum of the row, so one tile at a time is enough.

# %% [markdown]
# Given the gradient $dO$ of the output $O = PV$, go back through the average, then through the softmax (its Jacobian is lesson 02's):
#
# $$dV = P^T\, dO \qquad dP = dO\; V^T \qquad dS_{ij} = P_{ij}\Big(dP_{ij} - \sum_k P_{ik}\, dP_{ik}\Big)$$
#
# The last sum runs over a whole row again. But it is known already: $\sum_k P_{ik} (dO_i \cdot v_k) = dO_i \cdot O_i$. And the scores are products:
#
# $$dQ = \frac{dS\; K}{\sqrt{d_k}} \qquad\qquad dK = \frac{dS^T Q}{\sqrt{d_k}}$$

# %%
# exercise: efficient/backward

# %%
check("efficient/backward", tiled_gradients)

# %%
tiled_gradients = mine("efficient/backward")

# %% [markdown]
# Your two functions are the two passes of **FlashAttention**. Its forward pass also returns $L$. Yours does not, so here each tile is scored once more. A `torch.autograd.Function` says itself what it keeps, in `ctx`, and what its backward pass returns: one gradient for each argument, and `None` for `block`.


# %%
def log_totals(q, k, block):
    """Return L of each query, tile by tile: no row of n scores is ever there."""
    scale = q.shape[-1] ** 0.5
    totals = []
    for rows in q.split(block, -2):
        tiles = [(dot_scores(rows, keys) / scale).logsumexp(-1) for keys in k.split(block, -2)]
        totals.append(torch.stack(tiles).logsumexp(0))
    return torch.cat(totals, -1)


# %%
class Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block):
        output = tiled_attention(q, k, v, block)
        ctx.save_for_backward(q, k, v, output, log_totals(q, k, block))
        ctx.block = block
        return output

    @staticmethod
    def backward(ctx, d_output):
        return *tiled_gradients(*ctx.saved_tensors, d_output, ctx.block), None


# %%
q, k, v = (random_vectors(2, 50, 8, seed=i, dtype=torch.float64) for i in range(3))
full = scaled_dot_product_attention(q, k, v)
difference = largest_difference(Flash.apply(q, k, v, 16), full, q, k, v)
print(f"results and gradients differ by {difference:.0e}")
ways = {
    "full matrix": scaled_dot_product_attention,
    "your loop, by autograd": partial(tiled_attention, block=64),
    "your two functions": lambda *qkv: Flash.apply(*qkv, 64),
}
for name, attend in ways.items():
    texts = [[random_vectors(n, 64, seed=i) for i in range(3)] for n in (1024, 2048)]
    kept = [saved_bytes(partial(attend, *qkv), besides=qkv) / 2**20 for qkv in texts]
    print("{:24}{:7.1f}{:7.1f} MiB kept".format(name, *kept))

# %% [markdown]
# By autograd your loop keeps even more than the full matrix. With your two functions, twice the text takes twice the memory: the square is gone.
#
# ## Less memory, less time
#
# Computing tiles twice should cost time. But a processor computes in a small fast memory and keeps the rest in a large slow one: **SRAM** and **HBM** on a GPU, cache and RAM on a CPU. Moving numbers between them takes time, too:

# %% tags=["hide-input"]
pictures.memories()

# %% [markdown]
# FlashAttention plans these moves: it is **IO-aware**. We measured attention alone on an H100, with 16 heads and 4,096 tokens, forward and backward:
#
# | | operations | moved to and from HBM | time |
# |:-|-:|-:|-:|
# | full matrix, softmax by our formula | 206 billion | 18.6 GB | 8.92 ms |
# | tiles in one kernel | 241 billion | 0.177 GB | 0.655 ms |
#
# The kernel computes more, and is 14 times as fast as our formulas, which move the square at each step of the softmax, forward and backward ([more](explorations/13_on_a_gpu.ipynb)). It is `F.scaled_dot_product_attention`. Its mathematics is yours.

# %% [markdown]
# ## Leave tiles out
#
# Your loop has solved memory. It still computes all $n^2$ pairs. To save time it must skip tiles. Here are all tiles of 32 blocks of 64 tokens, and three ways to leave some out:

# %%
i, j = torch.arange(32).unsqueeze(-1), torch.arange(32)
patterns = {
    "exact": torch.ones(32, 32).bool(),
    "causal": j <= i,
    "window": (i - j).abs() <= 1,
    "BigBird": bigbird_mask(neighbours(32, 3, 1, 2, seed=0), 1),
}

# %% tags=["hide-input"]
pictures.plans("All tiles, and three ways to leave some out", patterns)

# %% [markdown]
# *Causal* gives nothing up. A window gives up what is far. **BigBird** (Zaheer et al. 2020) has a window of three blocks, one **global** block, which sees all and is seen by all, and for each block two **random** others.
#
# For your loop, a pattern is a list: for each block of queries, the blocks of keys that it sees, and $-1$ for none. Here are rows 8 to 10 of the fourth picture:

# %% tags=["nbval-check-output"]
print(neighbours(32, 3, 1, 2, seed=0)[8:11, :8])

# %% [markdown]
# The field calls such a list a **block mask**. The loop takes one block of queries after the other, and attends densely to the keys that its row lists:

# %%
# exercise: efficient/bigbird

# %%
check("efficient/bigbird", bigbird_attention)

# %%
bigbird_attention = mine("efficient/bigbird")

# %% [markdown]
# One loop, and every pattern is a list for it. For a causal one, the tiles on the diagonal still need a mask inside. The library's `attend_back` is your loop with that mask:


# %%
def as_list(mask):
    """Turn a mask of blocks into a list of blocks, -1 for none."""
    return torch.where(mask, torch.arange(len(mask)), -1)


qkv = [random_vectors(4, 2048, 64, seed=i) for i in range(3)]
skipped = attend_back(*qkv, as_list(patterns["causal"]), 64)
masked = F.scaled_dot_product_attention(*qkv, is_causal=True)
print(f"half of the tiles, and a difference of {(skipped - masked).abs().max():.0e}")

# %% [markdown]
# Does time follow the list? We time your loop, forward and backward, and PyTorch's compiled kernel on all tiles:

# %%
timed = {
    name: measuring.seconds(partial(bigbird_attention, *qkv, as_list(mask), 64))
    for name, mask in patterns.items()
}
batched = [x.unsqueeze(0) for x in qkv]
compiled = {"exact": measuring.seconds(lambda: F.scaled_dot_product_attention(*batched))}

# %% tags=["hide-input"]
counts = {name: int(mask.sum()) for name, mask in patterns.items()}
pictures.time_by_tiles(counts, timed, compiled)
shares = [timed[name] / timed["exact"] for name in ("window", "BigBird")]
claim = "the window takes less than a third of the time of all tiles, BigBird less than half"
holds = shares[0] < 1 / 3 and shares[1] < 1 / 2 and compiled["exact"] < timed["exact"]
measuring.expect(f"{claim}; compiled is faster", holds, [round(x, 2) for x in shares])

# %% [markdown]
# Fewer tiles take less time in the same loop. PyTorch's compiled kernel (orange) visits *all* tiles in less time than your loop.

# %% [markdown]
# So compile the list, too. `create_block_mask` makes your list from a rule for two positions, and `flex_attention` compiles the loop over it:


# %%
def band(batch, head, i, j):
    return (i // 64 - j // 64).abs() <= 1


mask = create_block_mask(band, B=None, H=None, Q_LEN=2048, KV_LEN=2048, device="cpu", BLOCK_SIZE=64)
made = mask.to_dense()[0, 0].bool()
print("block 5 sees", made[5].nonzero().flatten().tolist())
assert torch.equal(made, patterns["window"])

# %% [markdown]
# ## A window
#
# Much of what helps to understand a token is near it. Blocks are coarse; in **sliding-window** attention (Beltagy et al. 2020) each token sees $r = \lfloor w/2 \rfloor$ tokens on either side, and itself:
#
# $$\text{token } i \text{ sees } j \;\Longleftrightarrow\; |i - j| \le r \qquad 2\,n\,(2r+1)\,d \text{ multiply-adds in place of } 2\,n^2 d$$
#
# Which keys can a block of queries $a, \dots, b-1$ see, and which pairs of that rectangle are too far apart?

# %%
# exercise: efficient/window

# %%
check("efficient/window", window_attention)

# %%
window_attention = mine("efficient/window")

# %% [markdown]
# Read the book again, with a window of 257 tokens:

# %% tags=["once"]
start = time.process_time()
near = window_attention(*book, 257)
window_pairs = time.process_time() - start
differences = []
for i in range(0, 50_000, 5000):
    sees = slice(max(0, i - 128), i + 129)
    alone = scaled_dot_product_attention(book[0][i : i + 1], book[1][sees], book[2][sees])
    differences.append((near[i] - alone[0]).abs().max().item())
print(f"largest difference in ten tokens: {max(differences):.0e}")
print(f"the window takes {window_pairs / all_pairs:.1%} of the time of all pairs")

# %% [markdown]
# On an H100 the layer of 50,000 tokens takes 4.8 milliseconds with this window by `flex_attention`, 86 with all pairs by the compiled kernel, and 413 with the window in a Python loop: a loop like yours must be compiled.

# %% [markdown]
# ## How far does it reach?
#
# In a window, two tokens further apart than $r$ never meet in one layer. But layers stack, as in lesson 01: the **receptive field** is $1 + L \cdot 2r$ tokens after $L$ layers. Twelve layers with a window of 257 tokens reach 3,073, a sixteenth of our book. Can a few more pairs shorten the way?
#
# Take 256 blocks. After how many layers has every block heard from every other?

# %% tags=["hide-input"]
kinds = {"window of 5": (5, 0, 0), "window of 3, 2 random": (3, 0, 2), "1 global": (0, 1, 0)}
heard_by = {
    name: pictures.heard(bigbird_mask(neighbours(256, *kind, seed=0), 1))
    for name, kind in kinds.items()
}
pictures.layers_until(heard_by)

# %% [markdown]
# Random links make short paths, because random graphs are **expanders** (the BigBird paper's reason). One global block takes two layers: in, then out. In a causal model it cannot: the first block sees only itself, and collects nothing. A path is not enough, either: training must find it ([an exploration](explorations/13_bigbird.ipynb) hides a needle).

# %% [markdown]
# ## Which pairs does a real model need?
#
# So far we have drawn the lists. Let SmolLM2, trained with full attention, tell a story, and then read it again with fewer pairs.

# %%
needs("smollm2")

# %%
from course_lib.pretrained import smollm2

# %% tags=["once"]
model, opening = smollm2.load(), "Once upon a time, in a small village by the sea,"
story = opening + "".join(model.write(opening, 160))
tokens = torch.tensor([[0, *model.tokenizer.encode(story).ids]])  # 0 begins a text
tokens = tokens[:, : tokens.shape[1] // 8 * 8]
print(story[:300], "...")

# %% [markdown]
# `model.rules` has the attention of each of its 30 layers. We replace it by the loop, with a list of blocks of eight tokens. By `attend_back` no token sees a later one.


# %%
def by_list(q, k, v, mask=None, *, listed):
    k, v = (x.repeat_interleave(3, dim=-3) for x in (k, v))  # three heads share a key head
    return attend_back(q, k, v, listed, 8)


def loss_by_token(tokens, lists):
    """Return the loss of each token, a mean over texts; `lists` has a list for each layer."""
    for layer, listed in zip(model.rules, lists, strict=True):
        layer.rule = partial(by_list, listed=listed)
    with torch.no_grad():
        states = model.states(tokens)[:, :-1]
        # one text at a time: each state has 49,152 scores
        pairs = zip(states, tokens[:, 1:], strict=True)
        losses = [F.cross_entropy(model.scores(x), y, reduction="none") for x, y in pairs]
    return torch.stack(losses).mean(0)


# %% [markdown]
# A window of four blocks, up to 32 tokens, holds a sentence or two, plenty for the next token. **With full attention its own story costs the model less than one nat a token. And with the window?**

# %%
guess = None  # in nats


# %%
def local(blocks, window, first=True):
    """List the `window` last blocks of each block, its own among them, and the first block."""
    i, j = torch.arange(blocks).unsqueeze(-1), torch.arange(blocks)
    return as_list((j <= i) & ((i - j < window) | (first & (j == 0))))


# %% tags=["once"]
blocks = tokens.shape[1] // 8
lists = {"full": local(blocks, blocks), "window": local(blocks, 4, first=False)}
losses = {name: loss_by_token(tokens, 30 * [listed]) for name, listed in lists.items()}
reveal(guess, round(losses["window"][32:].mean().item(), 1))

# %% [markdown]
# It breaks down. Yet what it misses is not the story's beginning. In lesson 06 seven of a layer's nine heads look most at the *first token*. A softmax has to put its weight somewhere, and a head with nothing to look for puts it there: an **attention sink** (Xiao et al. 2024). The window leaves it behind, and the weight falls on other tokens.
#
# So give the list one column more, the first block:

# %% tags=["once"]
losses["window and first block"] = loss_by_token(tokens, 30 * [local(blocks, 4)])
pictures.losses("A window breaks the model; with the first block it reads on", losses, 32)

# %% [markdown]
# From token 32 on (dotted) the window has left the first token behind. With the first block the model reads on. The rest of the gap is due to the tokens that neither the first block nor the window holds.
#
# <details><summary>How we know that it is the first token</summary>
#
# Put random words into the first block, behind the first token, and the model still reads on. Put the second block there, and the loss is twice as high or more (two stories).
# </details>

# %% [markdown]
# ## A few layers see all
#
# How does a model get at what is far away, without all pairs in all layers? Ask for something that needs it: 63 random tokens, and the same 63 again (we take four such texts). To continue the second copy, a token must look 62 tokens back. Let every third layer see everything, and the others the first block and a window of four blocks. The baseline costs as much: in *each* layer the first block and a window of six.

# %% tags=["once"]
copy = torch.randint(1000, 10_000, (4, 63), generator=torch.Generator().manual_seed(0))
twice = torch.cat([torch.zeros(4, 1).long(), copy, copy, copy[:, :1]], dim=1)
full, four, six = (local(16, window) for window in (16, 4, 6))
designs = {
    "all layers full": 30 * [full],
    "windows of four": 30 * [four],
    "windows of six": 30 * [six],
    "3, 6, ..., 30 full": 10 * [four, four, full],
    "2, 5, ..., 29 full": 10 * [four, full, four],
    "1, 4, ..., 28 full": 10 * [full, four, four],
}
for name, lists in designs.items():
    tiles = sum((listed >= 0).sum().item() for listed in lists) / 30
    loss = loss_by_token(twice, lists)[64:].mean()
    print(f"{name:20}{tiles:4.0f} tiles a layer {loss:6.1f} nats")

# %% [markdown]
# No window continues the copy: a guess among all 49,152 tokens would cost 10.8 nats. With layers 3, 6, ..., 30 full, about half of the way is won back, with 1, 4, ..., 28 some, and with 2, 5, ..., 29 nothing. Lesson 06 found the heads that continue such copies, in layers 18 and 19. The first of these designs leaves layer 18 full, the second 19, the last neither.

# %% [markdown]
# SmolLM2 was not trained for such a design. Open models of 2025 and 2026 are:
#
# | what | as a list for your loop | in open models |
# |:-|:-|:-|
# | **sinks** | a first block that all see | gpt-oss (2025) learns a number for each head that takes weight in the softmax and has no value |
# | **local and global layers** | most layers have a window, some see all | Gemma 3 (2025): five local layers with windows of 1,024 tokens for a global one; gpt-oss: every second one, windows of 128 |
# | **chosen keys** | each query writes its own row, by a cheap score | DeepSeek-V3.2 (2025) and GLM-5 (2026) choose tokens; in lesson 14 you choose blocks |
#
# Two of BigBird's ideas are back: the window, and a few places that see everything, which are now whole layers. Instead of drawing random blocks, models choose.

# %% [markdown]
# ## What to remember
#
# $n^2$ is two problems. Tiles, computed again in the backward pass, save the memory, and the result stays exact. To escape the square in time, leave pairs out: a list says which stay. A model that was trained with all pairs needs its first token, to put weight on, and full attention in the layers whose heads look far.
#
# | | |
# |:-|:-|
# | online softmax | $m' = \max(m, \max s_j), \quad \ell' = e^{m-m'}\ell + \sum e^{s_j-m'}, \quad o' = e^{m-m'}o + \sum e^{s_j-m'}v_j$ |
# | output | $o / \ell$ |
# | backward pass | $P_{ij} = e^{s_{ij} - L_i}$ with $L_i = m_i + \log \ell_i$ |
# | memory | $\Theta(n^2)$ with the full matrix, $\Theta(nd)$ by tiles, computed again backward |
# | window | $2n(2r+1)d$ in place of $2n^2d$; receptive field $1 + L \cdot 2r$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. The state is m = 2, ℓ = 3, o = 6. A tile with the single score 2 and the value 10 arrives. What is the new state?</summary>
#
# The factor is 1: $m = 2$, $\ell = 4$, $o = 16$.
# </details>
#
# <details><summary>2. Two machines each hold half of the keys of a text, and each returns o / ℓ and L for a query. How do you join them?</summary>
#
# As two tiles: weigh each output by $e^{L}$, relative to the larger $L$, and divide by the sum of both weights. This is how texts of a million tokens are read (**context parallelism**).
# </details>
#
# <details><summary>3. With windows of six blocks, 30 layers reach 150 blocks back. Why does SmolLM2 not continue a list from 62 tokens back?</summary>
#
# A path has to be used: some token between must take the content along. This model was trained with all pairs, and its heads look at the first copy directly.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# We have left pairs out by their *positions*. Lesson 14 gives up the softmax, or lets the tokens choose. Beside this lesson: [BigBird by its blocks](explorations/13_bigbird.ipynb), [On a GPU](explorations/13_on_a_gpu.ipynb).
#
# Milakov & Gimelshein 2018 (online softmax); Rabe & Staats 2021; Dao et al. 2022 (FlashAttention); Beltagy et al. 2020 (Longformer: window and global tokens); Child et al. 2019 (causal patterns); Zaheer et al. 2020 (BigBird); Xiao et al. 2024 (sinks); Kamath et al. 2025 (Gemma 3); OpenAI 2025 (gpt-oss); DeepSeek-AI 2025 (V3.2). Lectures: L1, L3, L4, L5.
