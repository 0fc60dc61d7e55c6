# %% [markdown]
# # What does an average know about *ring*?
#
# **25 minutes · an exploration of lesson 03 · needs `shakespeare` (5.4 MB) and `minilm` (83.5 MB)**
#
# "Ring the alarum bell" and "wear this ring for her sake": the words around *ring* tell you which *ring* it is. In lesson 03 a real encoder told them apart. But a plain average of a line, all weights equal, also contains the words around. **When is an average enough, and when is attention needed?**

# %%
import torch
from course_lib.attention import dot_scores, softmax
from course_lib.data import needs, word_vectors
from course_lib.exercises import mine, reveal
from course_lib.instruments import plots, results

# %% tags=["hide-input"]
kept = results.load("senses")["figures"]
title = "For lines with one sense, a plain average sorts *ring* as well as a trained encoder"
figure, ax = plots.axes(title.replace("*", ""), "bells  ←  0  →  jewels", "", size=(8, 3))
for y, found in enumerate(kept["lines"]["ring"].values()):
    ax.plot(found["attention"][-1], y, "o", color=plots.COLOURS[0])
    ax.plot(found["average"], y, "D", color=plots.COLOURS[1], fillstyle="none")
    assert (found["attention"][-1] > 0) == (found["average"] > 0) == found["sense"]
ax.axvline(0, color="0.6", linewidth=1)
ax.set_yticks(range(6), kept["lines"]["ring"])
ax.text(0.02, 0.3, "● encoder", color=plots.COLOURS[0])
ax.text(0.02, 1.1, "◇ plain average", color=plots.COLOURS[1])
ax.invert_yaxis()
plots.show(
    figure,
    "Six lines with ring, with two marks each: how much nearer MiniLM's state of ring is to jewels "
    "than to bells, and how much nearer the plain average of the line is. In the three lines about "
    "bells both are below zero, in the three about jewels both above.",
)

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
# MiniLM has six layers of attention. For each line we ask after the last of them: how much closer is the state of the word to its states in three sentences of the second sense than to those of the first? (Above zero: jewel, or shore. Below: bell, or money.) Beside it, two rivals: the same model in which the word may look only at itself, and the plain average of the line's embeddings, compared with the averages of those sentences.

# %%
needs("minilm")

# %%
from course_lib.pretrained import minilm
from course_lib.pretrained.word_senses import described, lean, states

encoder = minilm.load()
senses = {
    word: [described(encoder, lines, word) for lines in pair]
    for word, pair in kept["described"].items()
}


# %%
def last(line, word, **how):
    """Return how far a word leans to its second sense after the last layer."""
    return lean(states(encoder, line, word, **how), *senses[word])[-1].item()


def average(line):
    [tokens], _ = encoder.tokens([line])
    return encoder.words(tokens[1:-1]).mean(0).detach()


# %%
topics = {
    word: [torch.stack([average(line) for line in lines]).mean(0) for lines in pair]
    for word, pair in kept["described"].items()
}

# %% [markdown]
# The lectures' example is *bank*. Six lines with *bank*, two about money and four about shores. **How many does the encoder put on the right side? How many does the average?**

# %%
guess = None  # two numbers from 0 to 6: (encoder, average)

# %%
right = {}
for word, lines in kept["lines"].items():
    print(f"{word:42} encoder  itself  average")
    found = []
    for line, stored in lines.items():
        leans = last(line, word), last(line, word, alone=True), lean(average(line), *topics[word])
        found.append([(x > 0) == stored["sense"] for x in leans])
        shown = line if len(line) < 40 else f"{line[:37]}..."
        print(f"  {shown:40}" + "".join(f"{float(x):+8.2f}" for x in leans))
    right[word] = torch.tensor(found).sum(0).tolist()
reveal(guess, tuple(right["bank"][::2]))
assert right == {"ring": [6, 3, 6], "bank": [4, right["bank"][1], 6]}

# %% [markdown]
# On *ring* both have all six. On *bank* the average wins, six to four: the encoder is wrong in two of Shakespeare's lines. (Zero is an arbitrary border: at -0.03 one of the two would be right.) For a whole line the neighbours give the topic away, and an average is all neighbours. The encoder without its sight knows nothing: its *ring* is the same in all six lines, up to its position.

# %% [markdown]
# ## Both senses in one line
#
# So an average is hard to beat where a line has one topic. But it has one vector for a line. Put both senses into one, and it must give both occurrences of *ring* the same answer. **In how many of these seven lines is the jewel's *ring* nearer to the jewels than the other one?**

# %%
guess = None  # (encoder, looking only at itself), each from 0 to 7

# %%
gaps = []
for line in kept["both"]:
    jewel = kept["jewels"][line]
    pairs = [
        last(line, "ring", which=jewel, alone=alone)
        - last(line, "ring", which=1 - jewel, alone=alone)
        for alone in (False, True)
    ]
    gaps.append(pairs)
    print(f"{pairs[0]:+.2f} {pairs[1]:+.2f}  {line}")
counts = tuple(sum(gap > 0 for gap in column) for column in zip(*gaps))
reveal(guess, counts)
assert counts == (7, 3)

# %% [markdown]
# With attention all seven, without it three, by position alone. The gaps are smaller than in lines with one sense; perhaps because each *ring* also sees the other's neighbours. In one line, "she gave me a ring before i heard the telephone ring", attention even *narrows* the gap. Seven lines are few: write your own, and count.

# %% [markdown]
# ## What to remember
#
# - The topic of a line is in the average of its vectors, and version 1 is a worse average.
# - A row of weights for each token is needed where two tokens of one line need different things. That was the pointer task.
# - Before you credit attention, cut it and measure, and ask what the average reaches.
#
# Levy et al. 2015 (the word vectors); Wang et al. 2020b (MiniLM). Titles and links: docs/REFERENCES.md.
