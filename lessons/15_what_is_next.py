# %% [markdown]
# # 15 · What is next
#
# **74 minutes · after lesson 14 · needs nothing**
#
# The last slide of L4 asks "What's next after Transformers?", and gives no answer. **Can a memory that does not grow replace attention?**
#
# At the end you can write six such layers as one equation, say what each of them forgets, and read off what recent models mix with attention.

# %%
import math
import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "masked self-attention"},
    "The Transformer of 2017. Highlighted: the self-attention of both stacks, which this lesson "
    "replaces by a memory of fixed size.",
)

# %% [markdown]
# ## What should a layer keep?
#
# After $n$ tokens attention keeps $n$ keys and $n$ values, and each new token costs more than the last (lessons 09 and 13). The RNN of lesson 01 keeps one state of fixed size, but computes its steps one after another. Linear attention (lesson 14) has a fixed state and trains in parallel, but it never forgets. Fixed memory, parallel training and forgetting: can one layer have all three?

# %% [markdown]
# Start with a recurrence without a nonlinearity, elementwise ($\odot$):
#
# $$\underset{d}{h_t} = a_t \odot h_{t-1} + b_t, \qquad h_0 = 0$$
#
# $a_t$ is the **decay** and $b_t$ what is new. Both may depend on the token, but not on $h_{t-1}$.

# %%
# exercise: state_space/scan

# %%
check("state_space/scan", scan)

# %%
scan = mine("state_space/scan")

# %% [markdown]
# That is a loop of $n$ steps. But two steps, first $h \to a' h + b'$ and then $h \to a h + b$, are one step of the same form, and it is known before the state is:
#
# $$a\,(a' h + b') + b = \underbrace{a a'}_{\text{one decay}} h + \underbrace{a b' + b}_{\text{one addition}}$$
#
# And joining is **associative**, since it is composition of functions: $(s_3 s_2) s_1 = s_3 (s_2 s_1)$. So you may join in any grouping, many pairs at the same time. This is a **parallel scan**.

# %% tags=["hide-input"]
figure, ax = plots.axes("Three rounds join eight steps", "", "", size=(7.6, 3.0))
labels, arrows = {}, []
for r in range(4):
    for t in range(8):
        first = max(0, t - 2**r + 1)
        labels[(t, r)] = str(t + 1) if first == t else f"{first + 1}–{t + 1}"
        if r:
            arrows.append(((t, r - 1), (t, r)))
            if t >= 2 ** (r - 1):
                arrows.append(((t - 2 ** (r - 1), r - 1), (t, r)))
plots.graph(ax, dict.fromkeys(labels, ""), arrows)
for (t, r), text in labels.items():
    ax.text(t, r, text, ha="center", va="center", size=8, zorder=4)
for r, text in enumerate(("steps", "reach 1", "reach 2", "reach 4")):
    ax.text(-0.6, r, text, ha="right", va="center", size=9)
plots.show(
    figure,
    "A grid of 8 tokens and 4 rows, from below. Below, each place holds its own step. In the first "
    "round each joins the place 1 before it, in the second 2 before, in the third 4 before. Above, "
    "place 8 holds steps 1 to 8.",
)

# %% [markdown]
# **How many rounds does a text of a million tokens need?**

# %%
guess = None  # a number

# %%
reveal(guess, (1_000_000 - 1).bit_length())
assert 2**19 < 1_000_000 < 2**20

# %% [markdown]
# The scan that is drawn (Hillis & Steele 1986) takes $\log_2 n$ rounds of up to $n$ joins. That of Blelloch 1990 takes twice the rounds, and its work grows with $n$ only.
#
# With $\tanh$ around the sum, as in lesson 01, two steps are no step of the same form. (Such recurrences are solved in parallel by iteration: Lim et al. 2024, reported.) The exploration [A parallel scan](explorations/15_scan.ipynb) builds and times it.

# %% [markdown]
# ## A state that chooses what it keeps
#
# Why are such layers called **state space models**? In control theory a *state space equation* describes a state $h$ driven by an input $x$ in continuous time, and an output $y$ read from it:
#
# $$h'(t) = A\,h(t) + B\,x(t), \qquad y(t) = C\,h(t)$$

# %% [markdown]
# Text comes in steps, so the equation is **discretised**: hold the input at $x_t$ for a time $\Delta$ (**zero-order hold**) and solve. For one number, with $a < 0$:
#
# $$h_t = e^{\Delta a}\, h_{t-1} + \int_0^{\Delta} e^{(\Delta - \tau) a}\, b\, x_t\, d\tau = e^{\Delta a}\, h_{t-1} + \frac{e^{\Delta a} - 1}{a}\, b\, x_t$$
#
# A **selective** state space model (Mamba; Gu & Dao 2023) computes $\Delta_t$, $b_t$ and $c_t$ from the token. Each of $d$ channels has $s$ numbers; $x_t$ and $\Delta_t$ have $d$, $b_t$ and $c_t$ have $s$, $a$ is $d \times s$, and $y_t = h_t c_t$.

# %%
# exercise: state_space/selective

# %%
check("state_space/selective", selective)

# %%
selective = mine("state_space/selective")

# %% [markdown]
# Take one channel of one number with $a = -1$ and $b = c = 1$. Then $h_t = e^{-\Delta} h_{t-1} + (1 - e^{-\Delta})\, x_t$. Five tokens bring $x = 1, 2, 3, 10, 4$, with $\Delta = 1$, but $\Delta = 50$ at the fourth. **What is read after the fourth token?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
x = torch.tensor([[1.0], [2.0], [3.0], [10.0], [4.0]])
delta = torch.tensor([[1.0], [1.0], [1.0], [50.0], [1.0]])
ones = torch.ones(5, 1)
y = selective(x, delta, -torch.ones(1, 1), ones, ones)[:, 0]
reveal(guess, y[3].item())
print([round(value, 2) for value in y.tolist()])
assert abs(y[3].item() - 10) < 1e-5

# %% [markdown]
# Exactly its value, 10: a large $\Delta$ replaces the state, a $\Delta$ of 0 leaves it untouched. (The authors' code writes $\Delta\, b\, x$ instead, which is nearly the same for a small $\Delta$, and 500 here.)

# %% [markdown]
# Forgetting is half of what we want from a memory. The other half is to correct one entry and keep the rest.
#
# ## Replace, do not add
#
# Linear attention without its normaliser writes into a matrix: $S_t = S_{t-1} + k_t v_t^T$, with vectors as columns, and a query reads $o_t = S_t^T q_t$. The same key, of norm 1, comes twice, with the values 1 and then 5. **What does the sum return for that key?**

# %%
guess = None  # a number

# %%
key, values = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 5.0])
state = sum(torch.outer(key, value[None]) for value in values)
reveal(guess, (state.T @ key).item())
assert (state.T @ key).item() == 6

# %% [markdown]
# 6, and you wanted the newest value, 5. The **delta rule** (Widrow & Hoff 1960; as a layer: Schlag et al. 2021) first asks what the key holds now, and writes only the difference:
#
# $$\underset{d \times d_v}{S_t} = S_{t-1} + \beta_t\, \underset{d \times 1}{k_t} \big(\underset{d_v \times 1}{v_t} - S_{t-1}^T k_t\big)^T$$
#
# $\beta_t$, from 0 to 1, is the share of the difference that is written.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
key = diagram.box("$k_t$", (0, 0), "key", size=(1.1, 0.8))
old = diagram.matrix("", (3, 2), (2.6, 0), "stream", cell=0.45)
diagram.text(r"$S_{t-1}$: $d \times d_v$", (2.6, 1.1))
minus = diagram.box("−", (5.0, 0), "plain", size=(0.8, 0.8))
value = diagram.box("$v_t$", (5.0, 1.9), "value", size=(1.1, 0.8))
share = diagram.box(r"$\times\, \beta_t$", (7.0, 0), "weights", size=(1.2, 0.8))
add = diagram.box("+", (9.2, 0), "plain", size=(0.8, 0.8))
new = diagram.matrix("", (3, 2), (11.2, 0), "stream", cell=0.45)
diagram.text(r"$S_t$: $d \times d_v$", (11.2, 1.1))
diagram.arrow(key, old)
diagram.arrow(old, minus, "held")
diagram.arrow(value, minus)
diagram.arrow(minus, share)
diagram.arrow(share, add, r"$k_t \,\cdot$")
diagram.arrow(old, add, "all that was there", via=[(2.6, -1.9), (9.2, -1.9)], role="stream")
diagram.arrow(add, new)
diagram.arrow(new, (11.2, -1.7), "$q_t$ reads")
diagram.text("$o_t$", (11.2, -1.95))
diagram.show(
    "The delta rule. The key reads what the state S, d by d_v, holds for it. That is subtracted "
    "from the value, times beta, and multiplied with the key again, which makes a matrix of d by "
    "d_v. This matrix is added to the state, which the query reads: the output o.",
)

# %%
# exercise: delta_rule/attention

# %%
check("delta_rule/attention", delta_rule)

# %%
delta_rule = mine("delta_rule/attention")

# %%
keys = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
newest = delta_rule(keys, keys, values[:, None], torch.ones(2))
print(newest[:, 0].tolist())
assert newest[1].item() == 5

# %% [markdown]
# Does this still train in parallel? Multiply out: $S_t = (I - \beta_t k_t k_t^T)\, S_{t-1} + \beta_t k_t v_t^T$. It is still linear in the state, with a matrix for a decay, so two steps are still one step. In practice a chunk of tokens is solved at once, as a small triangular system (Yang et al. 2024).

# %% [markdown]
# ## One equation, six rows
#
# Decay from the state space, replacement from the delta rule: put both into one equation.
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
# (Mamba-2's $b$, $c$, $x$ are here called $k$, $q$, $v$; linear attention is without its normaliser.) The next function computes all six. Somebody has written it with a fault in one line, and for five of the six rows its results are right.

# %%
# exercise: delta_rule/one_equation

# %%
check("delta_rule/one_equation", matrix_memory)

# %%
matrix_memory = mine("delta_rule/one_equation")

# %% [markdown]
# Your two functions agree where the table says so:

# %%
torch.manual_seed(0)
q, k, v = torch.randn(3, 9, 4)
beta, one = torch.rand(9), torch.ones(9)
k = F.normalize(k, dim=-1)
difference = matrix_memory(q, k, v, one, beta, beta) - delta_rule(q, k, v, beta)
assert difference.abs().max() < 1e-5

# %% [markdown]
# How many associations can such a matrix hold? To return any values exactly, $S^T k_i = v_i$, the keys must be linearly independent, so at most $d_k$ of them. **12 keys, random directions in 8 dimensions, 24 writes, one of 16 values each: for what percentage of the keys that were written again is the newest value the one nearest to what is read? Of the sum and the delta rule with $\beta = 1$, which is nearer to 70, which to 40?** (Chance is 6.)

# %%
guess = None  # the one nearer to 70


# %%
def spread_evenly(d):
    """Return 12 keys of norm 1 whose squared overlaps have the least possible sum; d is even."""
    turns = torch.arange(12)[:, None] * torch.arange(1, d // 2 + 1) * 2 * math.pi / 12
    return torch.cat([turns.cos(), turns.sin()], dim=1) / (d / 2) ** 0.5


# %%
def written_and_asked(d, texts=500, even=False):
    """Draw texts of 24 writes and 12 questions: tokens, values, the newest ones, what counts."""
    keys, codes = F.normalize(torch.randn(texts, 12, d), dim=-1), torch.randn(16, 64)
    keys = spread_evenly(d).expand_as(keys) if even else keys
    which, value = torch.randint(12, (texts, 24)), torch.randint(16, (texts, 24))
    written = keys.gather(1, which[..., None].expand(-1, -1, d))
    same = which[:, None] == torch.arange(12)[:, None]
    newest = value.gather(1, (same * torch.arange(1, 25)).argmax(-1))
    tokens = torch.cat([written, keys], 1)
    values = torch.cat([codes[value], torch.zeros(texts, 12, 64)], 1)
    return tokens, values, codes, newest, same.sum(-1) > 1


# %%
def recalled(d, erase, even=False):
    torch.manual_seed(0)
    tokens, values, codes, newest, again = written_and_asked(d, even=even)
    writes = (torch.arange(36) < 24).float().expand(len(tokens), 36)
    read = matrix_memory(tokens, tokens, values, writes * 0 + 1, erase * writes, writes)[:, 24:]
    nearest = torch.cdist(read, codes.expand(len(read), 16, 64)).argmin(-1)
    off = (read - codes[newest]).norm(dim=-1) / codes[newest].norm(dim=-1)
    return (nearest == newest)[again].float().mean().item(), off[again].mean().item()


# %%
for d in (4, 8, 16):
    both = {name: recalled(d, erase) for name, erase in (("sum", 0), ("delta rule", 1))}
    print(d, {name: f"{right:.0%} right, {off:.0%} off" for name, (right, off) in both.items()})
    assert both["delta rule"][0] > both["sum"][0] + 0.1
found = {name: recalled(8, erase)[0] for name, erase in (("sum", 0), ("delta rule", 1))}
reveal(guess, max(found, key=found.get))
even = {name: recalled(8, erase, even=True)[0] for name, erase in (("sum", 0), ("delta rule", 1))}
print("8, keys spread evenly:", ", ".join(f"{name} {share:.0%}" for name, share in even.items()))
assert even["delta rule"] > 0.85 and even["sum"] < 0.5
assert 0.6 < found["delta rule"] < 0.8 and 0.3 < found["sum"] < 0.5 and recalled(8, 1)[1] > 0.5

# %% [markdown]
# "Off" is the distance from the value that should be read, in norms of that value. Of 12 random keys in 8 dimensions only the one written last comes back exactly, and only by the delta rule. But the answer is a choice among 16, and a read that is far off can still be nearest to the right one. (Nor is the delta rule exact in 16 dimensions: each write disturbs every key that is not orthogonal to its own.) So $d_k$ bounds *exact* recall, and not how often the choice is right.

# %% [markdown]
# That depends on the keys, too: spread evenly, they overlap less, and the delta rule gains far more than the sum.

# %% [markdown]
# ## Recall against memory
#
# Now let layers learn their keys. The same task: 24 writes of 12 keys, 8 questions, 16 values. Two blocks, $d_{model} = 64$, queries and keys of 4, 8 or 16 dimensions (of norm 1 in every memory), 300 steps for every layer, and the best of three learning rates (0.0025, 0.005, 0.01), chosen by seed 0.

# %% [markdown]
# A matrix memory keeps $64\, d_k$ numbers a layer: 256, 512 or 1,024. Exact attention keeps $32\,(64 + d_k)$, at least 2,176, and more with each token. The trivial rival always names the value that was written last of all.

# %%
kept = results.load("one_equation")["figures"]


def recall(name):
    return [100 * share for share in kept["runs"][name]["recalled"]]


def average(name):
    return sum(recall(name)) / 3


assert average("delta rule 8") > average("decaying average 8") > average("linear attention 8")

# %% tags=["hide-input"]
rows = ["attention", "delta rule", "gated delta rule", "Mamba-2", "decaying average", "RetNet",
        "linear attention"]  # fmt: skip
title = "Of the fixed memories with keys of 8 or 16, the two that erase lead (300 steps, rates up to 0.01)"
figure, panels = plots.panels(
    title, ["4 dimensions", "8 dimensions", "16 dimensions"], size=(9.4, 3.6)
)
for ax, d in zip(panels, (4, 8, 16)):
    for y, row in enumerate(rows):
        erases = row in ("delta rule", "gated delta rule")
        colour = plots.COLOURS[1] if erases else plots.COLOURS[0]
        colour = "0.3" if row == "attention" else colour
        ax.scatter(recall(f"{row} {d}"), [y] * 3, color=colour, s=24)
    ax.axvline(100 * kept["last"], color="0.6", linestyle=":")
    ax.set(xlim=(0, 104), ylim=(6.6, -0.6), xlabel="rewritten keys recalled, %")
    ax.set_yticks(range(7), rows if d == 4 else [""] * 7)
panels[0].text(100 * kept["last"] + 2, 6.4, "the last value", color="0.4", size=8)
plots.show(
    figure,
    "Rewritten keys recalled, percent, three seeds each, for keys of 4, 8 and 16 dimensions. Means: "
    + "; ".join(
        row + " " + ", ".join(f"{average(f'{row} {d}'):.0f}" for d in (4, 8, 16)) for row in rows
    )
    + ". Naming the value written last would give 18.",
)

# %% tags=["hide-input"]
deltas, fading = rows[1:3], rows[3:]
for row in rows:
    print(f"{row:17}", *(f"{d}: {average(f'{row} {d}'):3.0f} %  " for d in (4, 8, 16)))
assert min(recall("attention 4") + recall("delta rule 16") + recall("gated delta rule 16")) > 98
assert min(x for row in deltas for x in recall(f"{row} 8")) > 95
assert max(average(f"{row} 8") for row in fading) < 90
assert max(max(recall(f"{row} 4")) for row in deltas) < 75
assert 66 < average("delta rule 4") < 71 and 58 < average("gated delta rule 4") < 65
assert max(max(recall(f"{row} 16")) for row in fading) < 97 and round(100 * kept["last"]) == 18
assert 28 < max(recall("linear attention 16")) - min(recall("linear attention 16")) < 30
single = recall("delta rule 8, one block")
assert min(single) > 94 and abs(sum(single) / 3 - average("delta rule 8")) < 2
edge = [row for row in fading if kept["runs"][f"{row} 8"]["rate"] == 0.01]
assert edge == ["Mamba-2", "decaying average", "RetNet"]
assert kept["runs"]["gated delta rule 8"]["rate"] == 0.01
for d in (8, 16):
    best = max(x for row in fading for x in recall(f"{row} {d}"))
    assert min(x for row in deltas for x in recall(f"{row} {d}")) > best

# %% [markdown]
# With 16 dimensions, more than there are keys, both delta rules match attention. With 8 they recall over 95 % in every seed, though 12 keys cannot be stored exactly: as above, the choice needs less. A second block is not the reason: with the delta rule, one block alone comes within two points. Random keys in one untrained memory have 69 %, evenly spread ones 92. With 4 dimensions, the delta rule reaches 69 % and attention over 98.

# %% [markdown]
# Not shown: that the four that do not erase *cannot* do better. They had 300 steps, and with 8 dimensions three of the four (and the gated delta rule) were best at the highest learning rate, so a better one, or more steps, may close the gap. Seeds differ by up to 28 points for linear attention. Nor did the gate help here (its rate is at the edge as well), perhaps since erasing removes what is old.

# %% [markdown]
# **Hybrids** are the usual answer to "what is next" (reported): a few layers of attention, which recall exactly, among many with a fixed state. Jamba mixes them with Mamba (Lieber et al. 2024), and Qwen3-Next, by its makers' account, with the gated delta rule (Yang et al. 2025). All of these change the model. Can one write faster *without* changing it? Yes: the exploration [Faster: a draft and a check](explorations/15_drafts.ipynb) builds speculative decoding.

# %% [markdown]
# ## What came, and what is next
#
# | lecture | what it asks | what came (reported, unless a lesson is named) |
# |:-|:-|:-|
# | L1 | "*Can we build models like Transformers without paying the $O(T^2)$ all-pairs self-attention cost?*" | yes, and most large models still pay it, in tiles: lessons 13 and 14 |
# | L1 | "Are simple absolute indices the best we can do to represent position?" | no: rotary positions, lesson 04 |
# | L4 | "computer vision also adapted Transformers, e.g., Vision Transformers" | you build one in the exploration [An image becomes a sequence](explorations/15_vision.ipynb) |
# | L4 | "What's next after Transformers?" | hybrids of attention and fixed memories |
#
# **Test-time compute**: a model that writes intermediate steps solves more problems (Wei et al. 2022), and longer thinking can be worth more than a larger model (Snell et al. 2024).

# %% [markdown]
# ## Break it
#
# - In `matrix_memory`, set erase and write to 2. For a key of norm 1, what does the memory hold after each write? (Work out $S^T k$.)
# - Ask your `recalled` for 32 dimensions. Then for 12 *orthogonal* keys: change the line `keys, codes = …` in `written_and_asked`. When is the delta rule exact?
# - Give all tokens a decay of 0.9 in `recalled`. Whom does it help, the sum or the delta rule?

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | scan | $h_t = a_t h_{t-1} + b_t$; $(a', b')$ then $(a, b)$ is $(a a', a b' + b)$, associative |
# | state space | $h' = Ah + Bx$, $y = Ch$; discretised $h_t = e^{\Delta a} h_{t-1} + \frac{e^{\Delta a} - 1}{a} b\, x_t$ |
# | one equation | $S_t = \text{decay}\,(S_{t-1} - \text{erase}\; k k^T S_{t-1}) + \text{write}\; k v^T$ |
# | exact recall | at most $d_k$ linearly independent keys |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Joining two steps gives a step. Why is that not yet associativity, and why does it hold?</summary>
#
# That two steps are one step is closure. Associativity says that the grouping does not matter: steps are functions, joining is composition, and composition is associative.
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
# <details><summary>4. 12 keys in 8 dimensions, and 97 % recalled. Does this contradict the count of d_k?</summary>
#
# No. The count bounds exact recall of any values. Here the answer is the nearest of 16 values.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 16, *Pretraining*, is the step from an architecture to a model that others can build on. Beside this lesson: [a parallel scan](explorations/15_scan.ipynb), [a draft and a check](explorations/15_drafts.ipynb) and [an image becomes a sequence](explorations/15_vision.ipynb).
#
# Gu & Dao 2023 (Mamba); Dao & Gu 2024 (Mamba-2); Sun et al. 2023 (RetNet); Schlag et al. 2021, Yang et al. 2024 and 2025 (the delta rule, gated); Arora et al. 2024 (recall costs memory, reported); Lieber et al. 2024 (Jamba). Lectures: L1, L4.
