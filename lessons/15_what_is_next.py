# %% [markdown]
# # 15 · What is next
#
# **65 minutes · after lesson 14 · needs nothing**
#
# The last slide of L4 asks "What's next after Transformers?", and gives no answer. **Can a memory that does not grow replace attention?**
#
# You build such a memory, train it, find where it fails, and repair it by swapping one layer. At the end you can write six such layers as one equation, and say what the open models of 2026 are made of.

# %%
import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import associations, results, training
from course_lib.instruments.pictures import memories as pictures

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
pictures.kimi_k3()

# %% [markdown]
# This is an open model of 2.8 trillion parameters (Moonshot 2026, reported). Three layers in four are a variant of the one that you build now.

# %%
from functools import partial
from statistics import mean

# %% [markdown]
# ## Replace, do not add
#
# After $n$ tokens attention keeps $n$ keys and $n$ values, and each new token costs more than the last (lessons 09 and 13). Linear attention (lesson 14) keeps one matrix, however long the text is. Without its normaliser, and with vectors as columns, it writes and reads
#
# $$\underset{d \times d_v}{S_t} = S_{t-1} + \underset{d \times 1}{k_t}\, \underset{1 \times d_v}{v_t^T}, \qquad o_t = S_t^T q_t$$

# %% [markdown]
# A text says *the door is open*, and later *the door is closed*: the same key is written twice. Let the key have norm 1, and the values be 1 and then 5. **What does the memory return for that key?**

# %%
guess = None  # a number

# %%
key, values = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 5.0])
state = sum(torch.outer(key, value[None]) for value in values)
reveal(guess, (state.T @ key).item())

# %% [markdown]
# It returns their sum, and you wanted the newest. The **delta rule** (Widrow & Hoff 1960; as a layer: Schlag et al. 2021) first reads what is stored under the key, and writes only the difference:
#
# $$S_t = S_{t-1} + \beta_t\, k_t \big(v_t - S_{t-1}^T k_t\big)^T$$
#
# $\beta_t$, from 0 to 1, is the share of the difference that is written.

# %% tags=["hide-input"]
pictures.delta_rule()

# %%
# exercise: delta_rule/attention

# %%
check("delta_rule/attention", delta_rule)

# %%
delta_rule = mine("delta_rule/attention")

# %% [markdown]
# Ask your function for the door, after each of the two sentences:

# %% tags=["nbval-check-output"]
keys = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
newest = delta_rule(keys, keys, values[:, None], torch.ones(2))
print(newest[:, 0].tolist())

# %% [markdown]
# Keys at right angles to this one keep their values. Two problems are left. The layer is a loop, and should train in parallel. And it should be able to forget what no key overwrites.
#
# ## Two steps are one step
#
# The plainest recurrence without a nonlinearity works elementwise ($\odot$). $a_t$ is the **decay**, and $b_t$ what is new. Both may depend on the token, but not on $h_{t-1}$:
#
# $$\underset{d}{h_t} = a_t \odot h_{t-1} + b_t, \qquad h_0 = 0$$

# %%
# exercise: state_space/scan

# %%
check("state_space/scan", scan)

# %%
scan = mine("state_space/scan")

# %% [markdown]
# Your loop takes one step after another. But two steps, first $h \to a' h + b'$ and then $h \to a h + b$, are together one step of the same form, and joining them takes no state:
#
# $$a\,(a' h + b') + b = \underbrace{a a'}_{\text{one decay}} h + \underbrace{a b' + b}_{\text{one addition}}$$
#
# Join eight steps in pairs, all four pairs at once, and run your function on half as many:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
a, b = torch.rand(8, 1), torch.randn(8, 1)
joined = scan(a[1::2] * a[::2], a[1::2] * b[::2] + b[1::2])
print("every second state:", [round(x, 2) for x in scan(a, b)[1::2, 0].tolist()])
print("from joined pairs: ", [round(x, 2) for x in joined[:, 0].tolist()])

# %% [markdown]
# Joining is composition of functions, which is **associative**: any grouping gives the same. So the pairs can be joined again, and again. That gives every second state, then every fourth. To get them all, let *each* position join the stretch that ends before its own: a **parallel scan** (Hillis & Steele 1986).

# %% tags=["hide-input"]
pictures.rounds()

# %% [markdown]
# A text of a million tokens needs $\log_2 10^6$ rounds, rounded up: 20. With $\tanh$ around the sum, as in lesson 01's RNN, two steps do not join into one of the same form. That is what the nonlinearity costs. [A parallel scan](explorations/15_scan.ipynb) builds and times the rounds.

# %% [markdown]
# And the delta rule? Multiply it out: $S_t = (I - \beta_t k_t k_t^T)\, S_{t-1} + \beta_t k_t v_t^T$. It is linear in the state, with a matrix for a decay, so two steps are still one, though joining them multiplies two $d \times d$ matrices. In practice a chunk of tokens is solved at once, as a small triangular system (Yang et al. 2024).

# %% [markdown]
# ## One equation, six rows
#
# Now the forgetting. Multiply the whole matrix by a decay at each token: 1 keeps it, 0 empties it. Mamba (Gu & Dao 2023), a state space model, computes the decay from the token, as $e^{\Delta_t a}$ with $a < 0$ and a step size $\Delta_t > 0$; [A parallel scan](explorations/15_scan.ipynb) derives that, and you build Mamba's layer there. Decay and replacement in one equation:
#
# $$S_t = \text{decay}_t\,\big(S_{t-1} - \text{erase}_t\, k_t k_t^T S_{t-1}\big) + \text{write}_t\, k_t v_t^T$$
#
# | layer | decay | erase | write |
# |:-|:-|:-|:-|
# | decaying average | $\gamma_t$ | 0 | $1 - \gamma_t$ |
# | linear attention | 1 | 0 | 1 |
# | RetNet (Sun et al. 2023) | $\gamma$, fixed | 0 | 1 |
# | Mamba-2 (Dao & Gu 2024) | $e^{\Delta_t a}$ | 0 | $\Delta_t$ |
# | delta rule | 1 | $\beta_t$ | $\beta_t$ |
# | gated delta rule (Yang et al. 2025) | $\gamma_t$ | $\beta_t$ | $\beta_t$ |

# %% [markdown]
# Mamba-2's $b$, $c$, $x$ are our $k$, $q$, $v$. Its decay is one number for the whole matrix, where Mamba has one for each entry. The next function should compute all six rows. One step comes too early or too late, and only one row shows it.

# %%
# exercise: delta_rule/one_equation

# %%
check("delta_rule/one_equation", matrix_memory)

# %%
matrix_memory = mine("delta_rule/one_equation")

# %% [markdown]
# A decay that the token sets is a **gate**. Let a text write 24 keys, then change its subject: eight new keys, each written once, and at the end all eight are asked for. The gate is 0 at the first new token, and 1 at all others.

# %%
torch.manual_seed(SEED)
tokens, values, codes, right = associations.new_subject(8)
writes = (torch.arange(40) < 32).float().expand(200, -1)  # then come the questions
stays, gate = torch.ones(200, 40), torch.ones(200, 40)
gate[:, 24] = 0


# %%
def recalled(decay, erase):
    read = matrix_memory(tokens, tokens, values, decay, erase * writes, writes)[:, 32:]
    return f"{(associations.nearest(read, codes) == right).float().mean():.0%}"


for name, erase in (("linear attention", 0), ("delta rule", 1)):
    print(f"{name:16} {recalled(stays, erase)}, with the gate {recalled(gate, erase)}")

# %% [markdown]
# The gate empties the matrix where the subject changes. The delta rule gains less from it, since each write erases under its own key. And erasing takes from the keys beside it, too: behind the gate, where no key is written twice, that only costs. Now see what it buys.

# %% [markdown]
# ## How much does a matrix hold?
#
# To return any values exactly, $S^T k_i = v_i$, the keys must be linearly independent, so at most $d$ of them. Often less will do: where the answer is one of a few values, what is read only has to be nearest to the right one.
#
# Twelve keys in 8 dimensions, in random directions, each written about twice, with one of 16 values. **For the keys that are written again, how often is the newest value recovered: by linear attention, by the delta rule?**

# %%
guess = None  # two percentages, such as (50, 60)


# %%
def found(erase, decay=1.0, keys=12, even=False):
    """Return the percentage right of keys written again, and that of keys written once."""
    torch.manual_seed(SEED)
    tokens, values, codes, newest, times = associations.vectors(8, keys, even)
    writes = (torch.arange(3 * keys) < 2 * keys).float().expand(len(tokens), -1)
    decays = torch.full_like(writes, decay)
    read = matrix_memory(tokens, tokens, values, decays, erase * writes, writes)[:, 2 * keys :]
    right = (associations.nearest(read, codes) == newest).float()
    return tuple(round(100 * right[x].mean().item()) for x in (times > 1, times == 1))


# %%
reveal(guess, (found(erase=0)[0], found(erase=1)[0]))
print(f"{'':16} (written again, once)")
rows = {"linear attention": (0, 1.0), "decay of 0.95": (0, 0.95), "delta rule": (1, 1.0)}
for name, (erase, decay) in rows.items():
    print(f"{name:16} {found(erase, decay)}, spread evenly {found(erase, decay, even=True)}")
for keys in (8, 16, 32, 64):
    shares = [found(erase, keys=keys)[0] for erase in (0, 1)]
    print(f"{keys:2} random keys, written again: linear {shares[0]} %, delta rule {shares[1]} %")

# %% [markdown]
# Linear attention returns the old value and the new one together. Of the keys that were written again, the delta rule finds two thirds, and nine in ten where the keys are spread evenly and overlap less. Erasing has its price: what is written under one key takes from its neighbours, so keys that were written once are found less often. With random keys a fixed decay, RetNet's row, is between the two.

# %% [markdown]
# Language models do best with gate and erasing (Yang et al. 2025, reported). But each doubling of the keys costs recall. A matrix keeps its size, while attention adds a row for each token.

# %% [markdown]
# ## Train it
#
# A trained layer can choose its keys. Here is one head on your function, the table's delta rule or its linear attention. Queries and keys get norm 1, so that a $\beta$ of 1 replaces a value exactly:


# %%
class MemoryLayer(nn.Module):
    def __init__(self, d_k, erases=True):
        super().__init__()
        self.erases = erases
        self.q, self.k = nn.Linear(64, d_k), nn.Linear(64, d_k)
        self.v, self.out = nn.Linear(64, 64), nn.Linear(64, 64)
        self.beta = nn.Linear(64, 1)

    def forward(self, x):
        q, k = (F.normalize(F.silu(part(x)), dim=-1) for part in (self.q, self.k))
        beta = self.beta(x).sigmoid().squeeze(-1)
        ones = torch.ones_like(beta)
        erase, write = (beta, beta) if self.erases else (0 * ones, ones)
        return self.out(matrix_memory(q, k, self.v(x), ones, erase, write))


# %% [markdown]
# Two blocks, each of this layer and a feed-forward network, with learned positions, read 24 tokens. A token is a key with its value. Then come questions: a key alone, and the model must name its newest value. *adds* is linear attention; *erases* is the delta rule, which also learns how much to write.


# %% tags=["training"]
def trained(layers, d_k):
    with training.seeded(SEED):
        model = associations.Reader(layers, d_k)
    batches, loss = associations.texts(32, SEED), associations.loss
    training.train(model, batches, loss, steps=300, learning_rate=0.005, seconds=60, seed=SEED)
    return model


# %% tags=["training"]
adds = partial(MemoryLayer, erases=False)
models = {"adds": trained((adds, adds), 8), "erases": trained((MemoryLayer, MemoryLayer), 8)}


# %% [markdown]
# Let them read a text that they have not seen:


# %% tags=["training"]
def answers(model, keys, values):
    return model(keys, values)[0, 24:].argmax(-1).tolist()


keys, values, right, again = next(associations.texts(1, seed=5))
names = ["ABCDEFGHIJKL"[key] for key in keys[0]]
print("text  ", *(f"{name}={value}" for name, value in zip(names, values[0, :24].tolist())))
print("asked ", *(f"{name:>2}" for name in names[24:]))
for name, model in models.items():
    print(f"{name:6}", *(f"{value:2}" for value in answers(model, keys, values)))
print("right ", *(f"{value:2}" for value in right[0, 24:].tolist()))

# %% tags=["training"]
share = {name: round(100 * associations.recalled(model)) for name, model in models.items()}
claim = "the layer that erases recalls 90 % of the rewritten keys, and 10 points more"
holds = share["erases"] >= 90 and share["erases"] >= share["adds"] + 10
training.expect(claim, holds, share, *models.values())

# %% [markdown]
# ## Recall against steps
#
# Is a memory without erasing worse, or only slower to learn? Train both four times as long. Always answering with the text's last value gives 18 %. **How many points is linear attention behind the delta rule after 1,200 steps?**

# %%
guess = None  # points

# %%
kept = results.load("one_equation")["figures"]
by_steps = [arm for arm in kept["arms"] if arm["d_k"] == 8]
ends = {arm["layers"][0]: mean(arm["recalled"]["1200"]) for arm in by_steps}
reveal(guess, round(100 * (ends["delta rule"] - ends["linear attention"])))
pictures.by_steps(by_steps, kept["last"])

# %% [markdown]
# In the end erasing is only a little ahead. It is **learned sooner**: what the delta rule recalls after 300 steps, linear attention recalls after 1,200.
#
# <details><summary>How we know</summary>
#
# Every point is a training of its own, two seeds each. A layer's learning rate was halved and doubled until both neighbours were worse, with the first seed at 300 steps. `make results LESSON=15` runs it again.
# </details>

# %% [markdown]
# ## How many layers have to attend?
#
# With 8 rows two memories are enough here. But a long text brings many more keys than rows. We cannot train on such a text in a minute, so we shrink the matrix: with keys of 2 dimensions, twelve keys share two rows. Attention gets keys just as short, but keeps all tokens apart.
#
# **How many of the two layers have to attend?** Guess what percentage is recalled if none does, and if one does.

# %%
guess = None  # two percentages, such as (50, 60)

# %% tags=["training"]
small = {
    "memory + memory": trained((MemoryLayer, MemoryLayer), 2),
    "memory + attention": trained((MemoryLayer, associations.Attention), 2),
}

# %% tags=["training"]
share = {name: round(100 * associations.recalled(model)) for name, model in small.items()}
both, hybrid = share.values()
reveal(guess, (both, hybrid))
claim = "with a block of attention recall is over 75 %, and 20 points higher"
training.expect(claim, hybrid > 75 and hybrid > both + 20, share, *small.values())

# %% [markdown]
# One is enough, and the other layer keeps no cache at all. That is a **hybrid**: most layers keep a matrix of fixed size, and a few look things up. These texts ask for one look-up and no more, so here the memory is idle: a layer in which each token sees itself alone does as well.
#
# <details><summary>How we know</summary>
#
# After 300 steps at its best rate, with two seeds, the hybrid recalls 95 and 89 %, and two layers of attention 98 and 95. Attention over a layer in which each token sees itself alone recalls 98 and 95, too: these texts ask for one look-up. Two memories reach 72 and 55 % with four times the steps. `make results LESSON=15` runs it again.
# </details>

# %% [markdown]
# ## What is next
#
# L4's question has an answer: your hybrid is the first of six changes that open models have adopted by the end of 2026 (reported by their makers):
#
# | change | what it does | one number |
# |:-|:-|:-|
# | **hybrids** | most layers keep a fixed state, by a gated delta rule or Mamba-2 | Kimi K3: 69 of 93 layers (Moonshot 2026) |
# | **latent attention** | a layer keeps one short vector for a token, and all heads make their keys and values from it | DeepSeek-V3: 576 numbers, where 128 heads would keep 32,768 (DeepSeek-AI 2024) |
# | **learned sparse attention** | a small scorer reads the whole text, and attention only what it chooses (lesson 14) | DeepSeek-V3.2: 2,048 tokens of up to 128,000 (DeepSeek-AI 2025) |
# | **mixtures of experts** | a token goes through a few of many feed-forward networks (lesson 12) | Kimi K3: 16 of 896 (Moonshot 2026) |
# | **multi-token prediction** | the model also drafts the token after the next, and checks it in the next pass | DeepSeek-V3: 1.8 times as many tokens a second (DeepSeek-AI 2024) |
# | **diffusion language models** | many tokens at once are filled in, and mended in a few rounds | LLaDA2.1, 100 billion parameters: 892 tokens of code a second (Bie et al. 2026) |

# %% [markdown]
# All six save memory or time, and all keep the block: attention or its substitute, a feed-forward network, residual connections, norms. L1 asked: "*Can we build models like Transformers without paying the $O(T^2)$ all-pairs self-attention cost?*" Yes, in most layers, as their makers report.
#
# Why so much effort for long texts? Models write them to themselves: one that writes intermediate steps solves more problems (Wei et al. 2022), and longer thinking can be worth more than a larger model (Snell et al. 2024). Lesson 18 builds the kind of training that teaches it.

# %% [markdown]
# ## Break it
#
# - In `matrix_memory`, set erase and write to 2. For a key of norm 1, what does the memory hold after each write? (Work out $S^T k$.)
# - In `found`, take 32 dimensions, not 8. Does the delta rule find all twelve? Which keys would make it exact?
# - Let the gate come three tokens late: `gate[:, 24], gate[:, 27] = 1, 0`. How many of the eight keys can it still recall?
# - Train a reader with three blocks: two memories of 2 dimensions, and one of attention. Which place is best for it?

# %% [markdown]
# ## What to remember
#
# A gate empties a memory where the subject changes; erasing replaces what is written again, and is learned sooner than adding. The size of the memory is fixed, and limits what it recalls. One layer of attention brings recall back.
#
# | | |
# |:-|:-|
# | scan | $h_t = a_t h_{t-1} + b_t$; $(a', b')$ then $(a, b)$ is $(a a', a b' + b)$, associative |
# | one equation | $S_t = \text{decay}\,(S_{t-1} - \text{erase}\; k k^T S_{t-1}) + \text{write}\; k v^T$ |
# | exact recall | at most $d_k$ linearly independent keys |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why can a recurrence without a nonlinearity be trained in parallel?</summary>
#
# Two steps are one step of the same form, and joining is associative. So pairs are joined, then pairs of pairs, in $\log_2 n$ rounds.
# </details>
#
# <details><summary>2. Which settings of the one equation give the gated delta rule, and which give linear attention?</summary>
#
# Decay γ, erase = write = β. Decay 1, erase 0, write 1.
# </details>
#
# <details><summary>3. How many numbers do attention and the delta rule keep after 10,000 tokens, for keys of 64 and values of 64?</summary>
#
# Attention 10,000 · 128 = 1,280,000; the delta rule 64 · 64 = 4,096.
# </details>
#
# <details><summary>4. 12 keys in 8 dimensions, and nearly all recalled. Does this contradict the count of d?</summary>
#
# No. The count bounds exact recall of any values. Here the answer is the nearest of 16 values.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 16, *Masked language models and fine-tuning*, goes from an architecture to a model that others can build on. Beside this lesson: [a parallel scan](explorations/15_scan.ipynb), [a draft and a check](explorations/15_drafts.ipynb), [an image becomes a sequence](explorations/15_vision.ipynb) and [ten swaps](explorations/15_ten_swaps.ipynb), which bring your block of 2017 to 2026.
#
# Gu & Dao 2023 (Mamba); Dao & Gu 2024 (Mamba-2); Sun et al. 2023 (RetNet); Schlag et al. 2021, Yang et al. 2024 and 2025 (the delta rule, gated); Arora et al. 2024 (recall costs memory, reported); Lieber et al. 2024 (Jamba, an early hybrid). Lectures: L1, L4.
