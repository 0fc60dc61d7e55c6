# %% [markdown]
# # Induction heads: set by hand, then found
#
# **45 minutes · an exploration of lesson 07 · needs nothing**
#
# Let a language model read random tokens twice in a row. It cannot have seen them before, and yet it predicts the second copy far better than the first. **How can a fixed set of weights continue a pattern that it has just met?** You set the two attention heads that do it by hand. Then you train a model, score its heads by what yours do, and remove them.

# %%
import torch
from einops import einsum, reduce
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training
from course_lib.instruments.pictures import multi_head as pictures

# %% tags=["parameters"]
SEED = 0

# %% tags=["hide-input"]
diagram, streams = drawings.Diagram(), {"a": 0.0, "horse": 4.2, "my": 8.4}
attend = diagram.box(
    "attention: moves information between streams", (4.0, 1.9), "query", size=(11.2, 0.8)
)
for token, x in streams.items():
    diagram.text(token, (x - 1.0, -0.3))
    diagram.arrow((x - 1.0, 0), (x - 1.0, 6.4), role="stream", width=4)
    diagram.arrow((x - 1.0, 0.8), (x + 0.6, 1.5), leave="E", role="query")
    diagram.arrow((x + 0.6, 2.3), (x - 0.95, 3.1), leave="N", role="query")
    alone = diagram.box("feed-forward", (x + 1.1, 4.6), "network", size=(2.4, 0.7))
    diagram.arrow((x - 1.0, 3.8), alone, role="network")
    diagram.arrow(alone, (x - 0.95, 5.5), leave="N", role="network")
diagram.text("a stream for each token: layers read from it and add to it", (4.0, 6.8), size=9)
diagram.show(
    "Three vertical lines, the streams of the tokens a, horse and my. One attention layer reads "
    "all three streams and adds something to each of them. After it, beside each stream, the same "
    "feed-forward network reads that stream alone and adds its answer to that stream alone."
)

# %% [markdown]
# ## The residual stream
#
# In a pre-norm Transformer a layer never replaces a token's vector; it adds to it. Elhage et al. 2021 call this vector, from the embedding to the last layer, the **residual stream** of the token. With $N$ blocks, so $2N$ layers $F_l$, its top is a sum:
#
# $$x_{2N} = x_0 + \sum_{l=1}^{2N} F_l(\mathrm{LN}(x_{l-1}))$$

# %% [markdown]
# Every layer reads from some directions of the stream and writes to some directions. Two layers talk to each other when one reads the **subspace** that the other has written. Only attention carries anything from one token's stream into another's, always from left to right under a causal mask; the feed-forward network works inside one stream. (A layer can also delete what another wrote: [another exploration](07_erase.ipynb) of this lesson does it.)

# %% [markdown]
# Here is a king's text. The last token is the third *a*. What followed the earlier ones? A model that wants to say *horse* must find the tokens *after* the earlier *a*s. But attention compares tokens by what is in their streams, and the stream of *horse* holds, so far, only "I am *horse*, at position 2".

# %%
line = "· a horse a horse my kingdom for a".split()
vocab = sorted(set(line))
ids = torch.tensor([vocab.index(token) for token in line])
print(len(line), "tokens,", len(vocab), "different ones:", vocab)

# %% [markdown]
# So it takes two steps. **Head 1**, a **previous-token head**, runs first: it writes "the token before me was *a*" into the stream of *horse*. **Head 2**, the **induction head**, then looks from the last *a* for streams with that note:

# %% tags=["hide-input"]
diagram, size = drawings.Diagram(), (2.9, 0.8)
names = ("token", "position", "before", "prediction")
heights = dict(zip(names, (3.4, 5.0, 1.7, 0.0)))
columns = (1.35, 6.35, 11.35)
filled = {(0, "token"): "token: a", (1, "token"): "token: horse", (2, "token"): "token: a"}
filled |= {(1, "before"): "before: a", (2, "prediction"): "prediction: horse"}
filled |= {(i, "position"): f"position {p}" for i, p in enumerate((1, 2, 8))}
for i, x in enumerate(columns):
    for name, y in heights.items():
        text, role = filled.get((i, name), name), "stream" if (i, name) in filled else "dim"
        diagram.box(text, (x, y), role, size=size)
    diagram.text(("an earlier a", "the token after it", "a, now")[i], (x, 5.85), size=9)
diagram.box("head 1", (3.85, 4.2), "weights", size=(1.5, 0.7))
diagram.box("head 2", (8.85, 2.5), "weights", size=(1.5, 0.7))
for start, end, via, name, role in (
    ((2.8, 5.0), (3.4, 4.55), [(3.4, 5.0)], "key", "key"),
    ((4.9, 5.0), (4.3, 4.55), [(4.3, 5.0)], "query", "query"),
    ((2.8, 3.4), (3.4, 3.85), [(3.4, 3.4)], "value", "value"),
    ((4.3, 3.85), (4.9, 1.7), [(4.3, 1.7)], "output", "weights"),
    ((7.8, 3.4), (8.4, 2.85), [(8.4, 3.4)], "value", "value"),
    ((7.8, 1.7), (8.4, 2.15), [(8.4, 1.7)], "key", "key"),
    ((9.9, 3.4), (9.3, 2.85), [(9.3, 3.4)], "query", "query"),
    ((9.3, 2.15), (9.9, 0.0), [(9.3, 0.0)], "output", "weights"),
):
    diagram.arrow(start, end, via=via, role=role)
    above = end[1] < via[0][1] and name != "output"
    diagram.text(name, (via[0][0], via[0][1] + (0.3 if above else -0.3)), size=9)
diagram.show(
    "Three streams, each of four parts: position, token, token before, prediction. Head 1 has its "
    "query from the position of horse and its key from the position of the earlier a; it carries "
    "the token a into the part 'before' of horse. Head 2 has its query from the token of the last "
    "a and its key from the part 'before' of horse; it carries the token horse into the last a's "
    "prediction."
)

# %% [markdown]
# ## Head 1, set for you
#
# The stream of each token gets four parts, each with rows of the matrices of its own: the token, one-hot (6 numbers); the token before (6, empty); the prediction (6, empty); the position (16). Nothing is normed, so that you can read every number.

# %%
from course_lib.masks import causal_mask
from course_lib.positions import shift_matrix, sinusoidal
from course_lib.self_attention import scaled_dot_product_attention

# %%
one_hot = torch.eye(6)
token, before, prediction, position = slice(0, 6), slice(6, 12), slice(12, 18), slice(18, 34)
stream = torch.zeros(len(line), 34)
stream[:, token] = one_hot[ids]
stream[:, position] = sinusoidal(len(line), 16)


# %%
def head(x, w_q, w_k, w_v, w_o):
    mask = causal_mask(len(x))
    return scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask) @ w_o


# %% [markdown]
# Each sine-cosine pair of a position is a clock hand, and one step turns it by a fixed angle, so a single rotation matrix $M$ moves any position back by one. A query made with $M$ therefore scores highest with the key just to its left:
#
# $$p_{i-1} = p_i\,M \qquad\qquad q_i = 80\;p_i\,M, \quad k_j = p_j \qquad\Rightarrow\qquad q_i \cdot k_j \text{ is largest at } j = i-1$$
#
# The factor 80 makes the softmax sharp. The value is the token, and the output goes to *before*.


# %%
def reading(part, matrix):
    """Return a matrix that reads one part of the stream."""
    w = torch.zeros(34, matrix.shape[-1])
    w[part] = matrix
    return w


head_1 = (
    reading(position, 80 * shift_matrix(-1, 16)),
    reading(position, torch.eye(16)),
    reading(token, one_hot),
    reading(before, one_hot).T,
)
after_1 = stream + head(stream, *head_1)

# %% tags=["nbval-check-output"]
for own, note in zip(line, after_1[:, before].argmax(-1)):
    print(f"{own:8} before me: {vocab[note]}")
assert torch.equal(after_1[1:, before].argmax(-1), ids[:-1])
assert torch.equal(after_1[:, token], stream[:, token])

# %% [markdown]
# The start token "·" has nothing before it and finds itself. All other notes are right, and head 1 has changed nothing else in the stream.
#
# ## Head 2 is yours
#
# Now set the four matrices of the induction head: which part of the stream does its query read, and its key, and its value? Where does its output go? Any matrices that find what followed the same token pass.

# %%
# exercise: induction/head

# %%
check("induction/head", induction_weights)

# %%
induction_weights = mine("induction/head")

# %% [markdown]
# The line has two tokens that followed an *a*. **What share of the last token's prediction does *horse* get? And if we add *horse* to the text and let it go on, what share does *a* get?**

# %%
guess = None  # two shares, such as (0.5, 0.25)


# %%
def continued(text):
    """Return what both heads predict after a text, with the shares."""
    x = torch.zeros(len(text), 34)
    x[:, token] = one_hot[[vocab.index(t) for t in text]]
    x[:, position] = sinusoidal(len(text), 16)
    x = x + head(x, *head_1)
    x = x + head(x, *induction_weights(6))
    shares = zip(vocab, x[-1, prediction].tolist())
    return {t: round(share, 2) for t, share in shares if share > 0.05}


print("… for a      ", continued(line))
print("… for a horse", continued([*line, "horse"]))
reveal(guess, (continued(line)["horse"], continued([*line, "horse"])["a"]))
assert continued(line) == {"horse": 1.0} and continued([*line, "horse"]) == {"a": 0.5, "my": 0.5}

# %% tags=["hide-input"]
from course_lib.attention import dot_scores, softmax

title = "Head 1 looks one token back; head 2 looks at what followed the same token"
steps = {
    "head 1: previous token": (stream, head_1),
    "head 2: induction": (after_1, induction_weights(6)),
}
figure, panels = plots.panels(title, list(steps), size=(9.5, 4))
visible = causal_mask(len(line))
for ax, (x, (w_q, w_k, *_)) in zip(panels, steps.values()):
    weights = softmax(dot_scores(x @ w_q, x @ w_k) / w_q.shape[-1] ** 0.5, visible)
    image = ax.imshow(weights.masked_fill(~visible, torch.nan), vmin=0, vmax=1, aspect="auto")
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.7", hatch="///")
    ax.set_xticks(range(9), line, rotation=45)
    ax.set_yticks(range(9), line)
    ax.set(xlabel="key")
panels[0].set_ylabel("query")
figure.colorbar(image, ax=panels, label="weight")
assert weights[8, [2, 4]].min() > 0.49
plots.show(
    figure,
    "Attention weights of both heads over the line. Head 1: nearly all weight just left of the "
    "diagonal. Head 2: the last a gives one half each to the two tokens horse that followed an a; "
    "the second horse gives its weight to the a that followed the first horse; tokens that occur "
    "for the first time have no match, and what they do is free. Cells above the diagonal are masked.",
)

# %% [markdown]
# No parameter has stored the line: the heads copy from the text itself. And head 2 needs what head 1 has written before it, so in this construction it takes two layers. (Its key must already know which token came before it, and in one layer every key is made from the embedding and the position alone.) Elhage et al. 2021 found this circuit in trained two-layer models, and named the second head (reported). Would *your* training find it?

# %% [markdown]
# ## Train, then look
#
# Our texts are random letters that begin again after 8 to 18 letters. In the first round, nothing can be predicted. Later each letter follows the one that it has followed before. The period varies, so a head cannot simply look back by a fixed distance.

# %%
from course_lib.instruments.attention_only import (
    AttentionOnly,
    loss_on_return,
    next_letter_loss,
    repeated,
)

texts, periods = test = next(repeated(256, seed=1000))
print("".join(chr(97 + letter) for letter in texts[0]), "begins again after", int(periods[0]))

# %% [markdown]
# `AttentionOnly` is embedding and positions, layers of attention heads with residual connections, and one linear layer: no feed-forward networks, no norms. Its rival is the same model without a second layer: the same four heads, the same number of parameters, all in one layer. The trivial rival picks any letter of the text so far.


# %% tags=["training"]
with training.seeded(SEED):
    model = AttentionOnly(layers=2, heads=2)
settings = {"steps": 1200, "learning_rate": 0.003, "seconds": 60}
history = training.train(model, repeated(64, SEED), next_letter_loss, **settings)

# %% tags=["training", "hide-input"]
returned = texts.shape[1] - 1 - periods
rival = ((periods.log() * returned).sum() / returned.sum()).item()
print(f"any letter of the text so far: {rival:.2f} nats for each letter that returns")
came = round(loss_on_return(model, test), 3)
claim = "two layers predict the letters that return, below 0.1 nats a letter"
training.expect(claim, came < 0.1, came, model)

# %% tags=["hide-input"]
kept = results.load("induction")["figures"]
arms = kept["runs"]
returned = texts.shape[1] - 1 - periods
rival = ((periods.log() * returned).sum() / returned.sum()).item()


def last(runs):
    return [run["curve"][-1] for run in runs]


best = {name: min(rates, key=lambda rate: sum(last(rates[rate]))) for name, rates in arms.items()}
shown = {name: arms[name][best[name]] for name in ("two layers", "one layer")}
two, one = (last(runs) for runs in shown.values())
title = "Two layers continue the pattern after a few hundred steps, one layer does so slowly"
figure, ax = plots.axes(title, "steps", "nats on letters that return", size=(7, 3.4))
at = [min(step, kept["steps"]) for step in range(0, kept["steps"] + 1, kept["every"])]
for (name, runs), colour in zip(shown.items(), plots.COLOURS):
    for run in runs:
        ax.plot(at, run["curve"], color=colour, linewidth=1)
    ax.text(at[-1] + 20, runs[0]["curve"][-1], name, color=colour, va="center")
ax.plot([0, at[-1]], [rival, rival], color="0.6", linestyle="--", linewidth=1)
ax.text(at[-1] + 20, rival, "any letter\nof the text", color="0.4", va="center")
ax.set(ylim=(0, 4), xlim=(0, 1200))
assert max(two) < 0.02 and min(one) > 0.4 and max(one) < rival
assert all(run["curve"][8] < 0.5 for run in shown["two layers"])
plots.show(
    figure,
    f"Loss on letters that return, over {kept['steps']:,} steps, three seeds. Two layers end at "
    f"{min(two):.3f} to {max(two):.3f} nats, one layer at {min(one):.2f} to {max(one):.2f}. Any "
    f"letter of the text would be {rival:.2f}.",
)

# %% [markdown]
# That is three seeds, and for each architecture the learning rate that ended lowest. One layer gets there slowly, but it beats the trivial rival. (Its best learning rate is the highest of the three; a higher one might be faster still.) And none of its heads looks at what followed: no induction score is above 0.15.
#
# So there is another way. In our texts the next letter is always the one that has been **away the longest**. A model that ranks letters by how long they have been away need not know what followed what.

# %% [markdown]
# Which rule does a model follow? A test on which they differ: let the second copy begin in the middle of the first. "What followed last time" still tells the next letter; "away the longest" now says the first letter of the text. We judge three letters after the jump, in models of three seeds that have never seen a jump:

# %% tags=["hide-input"]
for runs in arms["one layer"].values():
    assert all(max(run["scores"]["induction"][0]) < 0.15 for run in runs)
for text, period in zip(texts, periods):
    away = [text[at - period :].tolist().index(text[at]) for at in range(int(period), 36)]
    assert set(away) == {0}
jumps = kept["after a jump"]
print("after a jump:       right        'away the longest'   nats")
for name, runs in jumps.items():
    columns = [[run[key] for run in runs] for key in ("right", "longest away", "loss")]
    print(f"{name:12}", *("  ".join(f"{x:5.2f}" for x in column) + "   " for column in columns))
shuffled = [run["on shuffled texts"] for run in shown["two layers"]]
print("two layers, rounds in another order:", *(f"{x:.1f}" for x in shuffled), "nats")
assert min(shuffled) > rival + 3
assert min(run["right"] for run in jumps["two layers"]) > 0.99
assert max(run["right"] for run in jumps["one layer"]) < 0.02
assert all(0.4 < run["longest away"] < 0.6 for run in jumps["one layer"])

# %% [markdown]
# Two layers follow "what followed last time": over 99 % right, though they have never seen a jump. One layer is right in less than 2 %, and says "away the longest" in 40 to 60 %. A low loss on our texts did not show an induction head; a text on which the rules differ did.
#
# Which heads do it? Score every head with two numbers: its mean weight on the token before, and its mean weight on what followed earlier copies of the token. The second is exactly what your head 2 was set to do:

# %%
# given: instruments.attention_only.previous_token_score

# %%
# given: instruments.attention_only.induction_score

# %% [markdown]
# **In which layer will the highest score for the previous token be, and in which the highest induction score?**

# %%
guess = None  # two layers, such as (2, 1)

# %% tags=["training"]
weights = [layer.detach() for layer in model.weights(texts)]
scores = {
    "previous token": torch.stack([previous_token_score(w) for w in weights]),
    "induction": torch.stack([induction_score(w, texts) for w in weights]),
}
for name, of_heads in scores.items():
    print(name, [[round(x, 2) for x in layer] for layer in of_heads.tolist()])
layers = tuple(1 + int(x.amax(-1).argmax()) for x in scores.values())
reveal(guess, layers)

# %% tags=["training", "hide-input"]
claim = "layer 1 looks back more than layer 2, layer 2 has the induction heads (over 0.7)"
came = {name: of_heads.tolist() for name, of_heads in scores.items()}
holds = layers == (1, 2) and scores["induction"][1].max() > 0.7
training.expect(claim, holds, came, model)

# %% [markdown]
# The order is yours: layer 1 looks back, layer 2 finds. Layer 2 has two induction heads. But no head of layer 1 is the previous-token head that you set. Where does layer 1 look?

# %% tags=["hide-input"]
runs = arms["two layers"]["0.003"]
title = "No head of layer 1 has most of its weight one token back"
figure, ax = plots.axes(title, "tokens back", "mean weight", size=(6.8, 3.2))
back = torch.tensor([run["scores"]["layer 1, by distance"] for run in runs])
for heads in back:
    ax.plot(heads, color=plots.COLOURS[0], marker="o", linewidth=1, markersize=3)
ax.plot([0, 1, 2, 7], [0, 1, 0, 0], color="0.6", linestyle="--", linewidth=1)
ax.text(1.2, 0.85, "head 1, set by hand", color="0.4")
ax.text(2.2, 0.2, "six trained heads (three seeds)", color=plots.COLOURS[0])
before_me = back[:, 1]
assert before_me.max() < 0.4 and before_me.min() > 0.25
plots.show(
    figure,
    "Mean weight of the six heads of layer 1 (three seeds) against the distance in tokens, 0 to 7. "
    f"On the token before it is {before_me.min():.2f} to {before_me.max():.2f}. Two tokens back it is "
    f"{back[:, 2].min():.2f} to {back[:, 2].max():.2f}. The head set by hand has 1 at one token back.",
)

# %% [markdown]
# Less than 0.4 of each head's weight is on the token before. So is it still your mechanism? A weight says where a head looks, not what the model uses. To find out, **change one token**, and let *one key alone* see the change: the key that an induction head should find, the letter $k$ that followed the first copy.
#
# **Which change takes that key's weight away: of the letter itself (0 back), or of the one 1, 2 or 3 back?**

# %%
guess = None  # 0, 1, 2 or 3

# %% tags=["hide-input"]
noticed = [run["noticed"] for run in runs]
whole = [run["nothing"] for run in noticed]
drops = [max(x["nothing"] - x[f"{d} back, for the key"] for x in noticed) for d in range(4)]
reveal(guess, max(range(4), key=lambda d: drops[d]))
title = "Only the token before the key counts, and only for the key"
figure, ax = plots.axes(
    title, "weight of layer 2's best head on the right key", "", size=(7.4, 3.6)
)
rows = ["nothing", *(f"{d} back, for the {side}" for side in ("key", "query") for d in range(4))]
for y, row in enumerate(rows):
    ax.scatter(
        [run[row] for run in noticed], [-y] * 3, color=plots.COLOURS[1 if y == 2 else 0], s=22
    )
ax.set_yticks([-y for y in range(len(rows))], ["no change", *(f"changed {x}" for x in rows[1:])])
ax.set(xlim=(0, 1.02))
changed = {row: [run[row] for run in noticed] for row in rows}
hit = changed.pop("1 back, for the key")
assert max(hit) < 0.1 and min(min(x) for x in changed.values()) > 0.88
plots.show(
    figure,
    "Weight on the right key in nine conditions, three seeds each. Unchanged: "
    f"{min(whole):.2f} to {max(whole):.2f}. With the token one back changed for the key alone: "
    f"{min(hit):.2f} to {max(hit):.2f}. The key's own token, the tokens two and three back, and all "
    f"four changes seen by the query alone leave it at {min(min(x) for x in changed.values()):.2f} or more.",
)

# %% [markdown]
# There is your head 2, found by training: its key holds the token *before*, its query the token itself. What tokens two and three back write into the same stream is there (the figure above), but it hardly changes the score. We gave "before" its own rows; training found directions of its own, in a stream where everything is mixed.

# %% [markdown]
# The reverse test: without everything that layer 1 writes, for keys or for queries alone. And the loss without one head, or without all of layer 1:

# %% tags=["hide-input"]
for part in ("keys", "queries"):
    came = [run[f"layer 1, for {part}"] for run in noticed]
    print(f"weight on the right key, no layer 1 for {part:8}", *(f"{x:6.2f}" for x in came))
    assert max(came) < 0.1 if part == "keys" else min(came) > 0.85
print()
losses = {"all heads": last(runs)}
for i, (layer, head, _) in enumerate(runs[0]["without"]):
    losses[f"without layer {layer + 1}, head {head + 1}"] = [run["without"][i][2] for run in runs]
losses["without layer 1"] = [run["without layer 1"] for run in runs]
for name, row in losses.items():
    print(f"{name:26}", *(f"{x:6.2f}" for x in row), "nats on letters that return")
single = [x for name, row in losses.items() if "head" in name and "without" in name for x in row]
assert max(losses["all heads"]) < 0.02 and min(single) > 0.5
assert min(losses["without layer 1"]) > rival + 1

# %% [markdown]
# The keys need layer 1, the queries do not. Every one of the four heads is needed. (Without layer 1 the loss is above that of the trivial rival: a model from which parts are taken is not a model that was trained without them.)

# %% [markdown]
# ## In a model that writes English
#
# In lesson 06 you cut this circuit in SmolLM2, which has 30 layers of 9 heads. Here are all of its heads, by the same score, on three lists of 25 random tokens that are read twice:

# %% tags=["hide-input"]
kept = results.load("circuit")["figures"]
pictures.heads_by_layer(kept["runs"], kept["previous"])

# %% [markdown]
# It is the construction that you have set by hand. The best previous-token head is in layer 17; the five best induction heads are in layers 18 and 19, right above. Switched off, that one head blinds them all.
#
# And they read it where yours does. Let the *keys* of these two layers be made of a stream that head 17.1 has not written to, and nothing else: the five are blind. Do the same with their queries, and nothing changes.

# %% tags=["hide-input"]
pictures.keys_and_queries(kept["runs"], kept["watched"])

# %% [markdown]
# So a circuit that fits into 34 numbers a token, and that two small layers grow in a minute, is at work in a model of 135 million parameters. Olsson et al. 2022 give "preliminary and indirect evidence" that such heads do most of what large language models learn from their context (reported).

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | residual stream | $x_{2N} = x_0 + \sum_l F_l(\mathrm{LN}(x_{l-1}))$: layers read from it and add to it |
# | previous-token head | looks one token back, writes that token into its own stream |
# | induction head | query: the token; key: the token *before*; value: the token |
# | trained | the key holds the token before; layer 1 puts it there, by two heads: without either of them the loss rises by 0.5 or more |
#
# A weight says where a head looks. What it uses, you learn by changing one thing and measuring again.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. In "x y z x", where does an induction head look from the last x, and what does it predict?</summary>
#
# At y, the token that followed the first x, whose key holds "before me: x". It predicts y.
# </details>
#
# <details><summary>2. Why could a head not find the y from the embeddings and positions alone?</summary>
#
# Its score compares x with y's own token and position, and neither tells that x came before y. An earlier layer has to write that.
# </details>
#
# <details><summary>3. A head has 0.3 of its weight on the token before. Somebody says: "So it is not a previous-token head." What do you do?</summary>
#
# Change the token before, for the keys alone, and see whether the next layer notices. Here it did, and it did not notice the others.
# </details>
#
# ## Sources
#
# Elhage et al. 2021 (the residual stream, heads that move information, induction heads in two-layer models of attention alone); Olsson et al. 2022 (in larger models, and when in training they appear). Lesson 15 names a draft by the same rule, without a network (reported).
