# %% [markdown]
# # What does an average know about *ring*?
#
# **25 minutes · an exploration of lesson 03 · needs `shakespeare` (5.4 MB) and `minilm` (83.5 MB)**
#
# "Ring the alarum bell" and "wear this ring for her sake": the words around *ring* tell you which *ring* it is. In lesson 03 a real encoder told a sound from a jewel. But a plain average of a line, all weights equal, also contains the words around. **When is an average enough, and when is attention needed?**

# %%
import torch
from course_lib.attention import dot_scores, softmax
from course_lib.data import needs, word_vectors
from course_lib.exercises import mine, reveal
from course_lib.instruments import plots, results

# %%
needs("shakespeare")

# %%
parameter_free = mine("self_attention/parameter_free")

# %% [markdown]
# ## Version 1 on real word vectors
#
# Our word vectors come from Shakespeare: words that occur in similar company get similar vectors (counts of neighbours, compared with chance, compressed to 64 numbers; Levy et al. 2015). There is one vector for *ring*, and its neighbours are about the jewel:

# %%
words = word_vectors.from_shakespeare()
[ring] = words("ring")
print(*words.nearest(ring, 8)[1:])

# %% [markdown]
# Version 1 of self-attention replaces *ring* by a mixture of its line. Does the mixture move towards the right sense? Compare its cosine with *trumpets* and with *jewel*, before and after; and do the same for the plain average.
#
# **Which moves *ring* farther, version 1 or the average?**

# %%
guess = None  # "version 1" or "average"

# %%
lines = {"bell": "ring the alarum bell", "jewel": "wear this ring for her sake"}
after = {}
for sense, line in lines.items():
    x, place = words(line), line.split().index("ring")
    after[sense] = {"version 1": parameter_free(x)[place], "average": x.mean(0)}


def cosine(a, b):
    return torch.cosine_similarity(a, b, dim=-1).item()


farther = max(after["bell"], key=lambda name: 1 - cosine(ring, after["bell"][name]))
reveal(guess, farther)
assert farther == "average" == min(after["jewel"], key=lambda n: cosine(ring, after["jewel"][n]))

# %% tags=["hide-input"]
title = "Beside the bell *ring* moves towards *trumpets*; the plain average moves it farther"
figure, ax = plots.axes(title.replace("*", ""), "cosine with jewel", "cosine with trumpets")
senses = [words("jewel")[0], words("trumpets")[0]]
start = [cosine(sense, ring) for sense in senses]
ax.plot(*start, "o", color="black")
ax.text(start[0] + 0.015, start[1] + 0.03, "ring", weight="bold")
for sense in lines:
    for name, colour, dashes in zip(after[sense], plots.COLOURS, ("solid", "dashed")):
        end = [cosine(x, after[sense][name]) for x in senses]
        style = {
            "arrowstyle": "-|>",
            "color": colour,
            "linestyle": dashes,
            "shrinkA": 0,
            "shrinkB": 0,
        }
        ax.annotate("", end, start, arrowprops=style)
        if sense == "bell":
            ax.text(end[0], end[1] + 0.02, name, color=colour, ha="center", va="bottom")
ax.text(0.24, 0.3, lines["bell"], color="0.4", ha="center", size="small")
ax.text(0.665, 0.0, lines["jewel"].replace(" for", "\nfor"), color="0.4", va="center", size="small")
ax.set(xlim=(0, 0.85), ylim=(-0.1, 0.72))
plots.show(
    figure,
    "Ring in a plane: its cosine with jewel, 0.59 before, and with trumpets, 0.07. In 'ring the "
    "alarum bell' an arrow for version 1 leads to 0.42 and 0.46, and a longer, dashed one for the "
    "average to 0.25 and 0.60. In 'wear this ring for her sake' both are short and end near 0.65 "
    "and 0.",
)

# %% [markdown]
# Do these two probe words decide the result? Try five pairs. A positive number means that *ring* has moved towards the first word of the pair, compared with the second.

# %%
print("                     beside the bell        beside wear")
print("                   version 1  average   version 1  average")
moved = {}
for pair in ("trumpets jewel", "drum gold", "sound jewel", "alarum jewel", "clock chain"):
    first, second = words(pair)
    moved[pair] = [
        (cosine(new, first) - cosine(new, second)) - (cosine(ring, first) - cosine(ring, second))
        for sense in lines
        for new in after[sense].values()
    ]
    print(f"{pair:18}" + "".join(f"{shift:+10.2f}" for shift in moved[pair]))
assert all(shift[0] > 0 and shift[1] > shift[0] for shift in moved.values())

# %% [markdown]
# Beside the bell all five say the same: towards the sound, and the average goes farther each time. But look at what moves it. *Alarum* is itself close to *trumpets*, and its vector is twice as long as that of *ring*:

# %%
alarum, trumpets = words("alarum trumpets")
print(f"cosine of alarum and trumpets: {cosine(alarum, trumpets):.2f}")
print(f"norms: ring {ring.norm():.1f}, alarum {alarum.norm():.1f}")
weights = softmax(dot_scores(words(lines["bell"]), words(lines["bell"])))[0]
print("version 1's weights from ring:", [round(weight, 2) for weight in weights.tolist()])
assert cosine(alarum, trumpets) > 0.6 and alarum.norm() > 1.8 * ring.norm() and weights[0] > 0.45

# %% [markdown]
# Whatever mixes *alarum* into *ring* moves it towards *trumpets*. Version 1 mixes in less, because it leaves nearly half of the weight on *ring* itself (the fault that lesson 03 found). So these arrows are no evidence *for* attention, and none for understanding: they show that a line's average knows the line's topic.

# %% [markdown]
# ## A trained encoder, and its rivals
#
# MiniLM has six layers of attention. Lesson 03 asked it for *ring*. Here are three more nouns with two senses: a *bat* (animal, club), a *spring* (season, water) and a *match* (game, fire). For each, three lines describe either sense. Then come twelve new lines, in which the clue is more than two tokens away, and eight lines with both senses.
#
# The rivals: the word alone, the average of two tokens on each side, that of the line. **Which is best with one sense in a line, which with two?**

# %%
guess = None  # (one, two), of "attention", "itself alone", "window" and "average"

# %%
needs("minilm")

# %%
from course_lib.pretrained import minilm, word_senses

encoder = minilm.load()
kept = results.load("senses")["figures"]

# %% [markdown]
# With one sense in a line, we take each line of the second sense beside each of the first: it should lean farther to the second. That makes 36 pairs for a word.


# %%
def in_order(way, lines):
    """Count the pairs of lines in which that of the second sense leans farther to it."""
    first, second = ([way(line) for line in of] for of in lines)
    return sum(two > one for one in first for two in second)


# %%
totals = {}
for word, lines in kept["both"].items():
    print(f"{word:28}  one sense  both")
    for name, way in word_senses.ways(encoder, word, *kept["described"][word]).items():
        one = in_order(way, kept["one sense"][word])
        both = sum(way(line, second) > way(line, 1 - second) for line, second in lines.items())
        print(f"    {name:24}   {one:2} of 36  {both} of 8")
        totals[name] = torch.tensor([one, both]) + totals.get(name, 0)
for name, (one, both) in totals.items():
    print(f"{name:28} {one:3} of 144  {both:2} of 32")

# %% tags=["hide-input"]
reveal(guess, ("attention", "window"))
one, both = torch.stack([*totals.values()]).T.tolist()
assert one[0] > one[3] > 135 and one[2] < 100 and both[2] > both[0] > 26 and both[3] == 0

# %% [markdown]
# Each rival fails once. The window cannot see a clue that is farther away, and the average gives two words of one line the same vector. Of these four only attention is good at both; a window of four tokens on each side comes nearer to it than one of two (`word_senses.neighbours(..., near=4)`). But look how little it is ahead: with one sense in a line an average is nearly as good, and with two senses the window is slightly better. Attention's faults are the *bats*: with both in a line it has five of eight.

# %% [markdown]
# ## The lectures' example: a *bank*
#
# Lecture L3 asks what *bank* means in a line about a pond and trees. Here it is, with two lines about money and three more about shores, two of them from Shakespeare:

# %%
bank = word_senses.ways(encoder, "bank", *kept["described"]["bank"])
money, shores = kept["one sense"]["bank"]
for line in [*money, *shores]:
    leans = (f"{way(line):+.2f}" for way in bank.values())
    print(*leans, line if len(line) < 45 else f"{line[:42]}...")
found = {name: in_order(way, kept["one sense"]["bank"]) for name, way in bank.items()}
print(found)
assert list(found.values())[::2] == [7, 8]

# %% [markdown]
# The columns are attention, *bank* alone, the window and the average. The lectures' *bank* leans to the shore. Of the eight pairs attention has seven in order, and the average has all: a line has one topic, and an average is good at topics.

# %% [markdown]
# ## What to remember
#
# - The topic of a line is in the average of its vectors, and version 1 is a worse average.
# - Two tokens of one line that need different things need a row of weights each. That was the pointer task.
# - Before you credit attention, ask what an average and a window reach.
# - Compare nouns with nouns. Our first *rings* were verbs for the sound, and an encoder tells verbs from nouns without knowing what either means.
#
# Levy et al. 2015 (the word vectors); Wang et al. 2020b (MiniLM). Titles and links: docs/REFERENCES.md.
