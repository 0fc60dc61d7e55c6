# %% [markdown]
# # 04 · Positions
#
# **196 minutes, of which 118 are the core path · after lesson 03 · needs nothing fetched**
#
# "The critics praised the writers" and "the writers praised the critics" hold the same words, and very different news. Self-attention looks at all tokens of a sentence at once. How can it know their order?

# %% [markdown]
# You will build three answers: waves, a learned table and a rotation. Two more, a vector for each distance and a penalty for distance, are given, or yours to build. Then you measure which of them still work on texts that are longer than those in training, and repair one that does not.
#
# You need lesson 03's attention, and from school the sine and the cosine. Sections and exercises marked *optional* are not needed later.

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor, nn
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import trees
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains other models

# %% tags=["hide-input"]
drawings.transformer(
    {"positions"},
    "The Transformer of 2017 with its positions lit: they are added to the token embeddings, once "
    "in the encoder and once in the decoder, before the first attention layer.",
)

# %% [markdown]
# ## Who praised whom
#
# First, see the problem. Both sentences are among those that come with the course. Give each word a vector of small whole numbers, let attention read one sentence and then the other, and look at what comes out for *praised*.

# %%
own = trees.documents()["own"]
one, other = ([word.lower() for word in sentence.words] for sentence in own[:2])
print(*one, "/", *other)

# %%
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
generator = torch.Generator().manual_seed(0)
numbers = [torch.randint(-2, 3, (6,), generator=generator).double() for _ in set(one)]
vectors = dict(zip(sorted(set(one)), numbers))
x, y = (torch.stack([vectors[word] for word in sentence]) for sentence in (one, other))
first, second = (scaled_dot_product_attention(words, words, words) for words in (x, y))
print("praised:", [round(number, 3) for number in first[2].tolist()])
print("praised:", [round(number, 3) for number in second[2].tolist()])

# %% [markdown]
# The two are the same. *Praised* meets the same four words with the same scores, in whatever order they come. This is the **permutation equivariance** of lesson 03, $f(PX) = P f(X)$. Here it is for all 120 orders of five words:

# %% tags=["nbval-check-output"]
from itertools import permutations

orders = [list(order) for order in permutations(range(5))]
shuffled = torch.stack([x[order] for order in orders])
outputs = scaled_dot_product_attention(shuffled, shuffled, shuffled)
moved = torch.stack([first[order] for order in orders])
same = torch.stack([dot_scores(x, x)[order][:, order] for order in orders])
print("scores, bit by bit:        ", torch.equal(dot_scores(shuffled, shuffled), same))
print("outputs, bit by bit:       ", torch.equal(outputs, moved))
print("outputs, to fourteen places:", torch.allclose(outputs, moved, rtol=0, atol=1e-14))
print("0.1 + 0.2 + 0.3 == 0.3 + 0.2 + 0.1:", 0.1 + 0.2 + 0.3 == 0.3 + 0.2 + 0.1)

# %% [markdown]
# Why not bit by bit? A computer rounds after each addition, so the order of a sum leaves a trace in the last digit. That is rounding noise, and no way to tell a model the order. Order has to be put in.
#
# ## Three places to put it
#
# A token's vector becomes a query and a key; the two meet in a score; the score becomes a weight. There are three points on this way where a position can enter.

# %% tags=["hide-input"]
diagram, small, tall = drawings.Diagram(), (1.3, 0.8), (1.5, 0.9)
rows = (("i", "query", "Q", 2.6), ("j", "key", "K", 0))
ends = []
for letter, role, matrix, y in rows:
    token = diagram.box(f"$x_{letter}$", (0, y), "stream", size=small)
    place = diagram.box(f"$+\\ p_{letter}$", (2.2, y), "position", size=tall)
    project = diagram.box(f"$W_{matrix}$", (4.3, y), role, size=small)
    turn = diagram.box(f"turn by ${letter}$", (6.6, y), "position", size=(1.8, 0.9))
    diagram.arrow(token, place)
    diagram.arrow(place, project)
    diagram.arrow(project, turn, role=role)
    ends.append((turn, role))
score = diagram.box("$q_i \\cdot k_j$", (8.9, 1.3), "weights", size=(1.6, 0.9))
bias = diagram.box("$+\\ s(i,j)$", (11, 1.3), "position", size=(1.7, 0.9))
for turn, role in ends:
    diagram.arrow(turn, score, leave="E", role=role)
diagram.arrow(score, bias, role="weights")
diagram.arrow(bias, (11, 3.3), "softmax", role="weights")
shaw, t5, alibi_bias = "$q_i \\cdot a_{j-i}$", "$\\beta_{j-i}$", "$-m_h|i-j|$"
for x_at, y_at, number, *who in (
    (2.2, -1.2, "1  the input", "sinusoids, learned table"),
    (6.6, -1.2, "2  a rotation", "rotary"),
    (11, 0.3, "3  the score", f"Shaw: {shaw}", f"T5: {t5}", f"ALiBi: {alibi_bias}"),
):
    diagram.text(number, (x_at, y_at))
    for line, text in enumerate(who, 1):
        diagram.text(text, (x_at, y_at - 0.6 * line), size=drawings.SMALL)
diagram.show(
    "The way from two tokens to a weight, with three points for positions. One: p_i and p_j are "
    "added to the tokens x_i and x_j, as sinusoids and learned tables do. Two: after the matrices "
    "W_Q and W_K, query and key are turned by i and j, as rotary does. Three: a term s(i, j) is "
    "added to the score before the softmax. In Shaw's scheme it is the query times a vector a of j "
    "minus i, in T5 a number beta of j minus i, in ALiBi minus m_h times the distance."
)

# %% [markdown]
# The first is the one of 2017, and the simplest: leave attention as it is, and mark the tokens.
#
# ## Mark the tokens with waves
#
# Each position $i$ gets a vector $p_i$, which is added to the token: $x_i + p_i$. It should be different for each position, of the same size everywhere, and similar for neighbours. Think of a clock: the second hand tells neighbouring moments apart, the hour hand distant ones, and together they name every moment of half a day.

# %% [markdown]
# The Transformer's vector is a clock with $d/2$ hands. Hand $c$ turns by $\theta_c$ radians at each step, and is written down as its sine and its cosine:
#
# $$p_{i,2c}=\sin(\theta_c\,i)\qquad p_{i,2c+1}=\cos(\theta_c\,i)\qquad\theta_c=10000^{-2c/d}\qquad c=0,\dots,\tfrac d2-1$$
#
# Its wavelength, the steps for a full turn, is $2\pi/\theta_c$: from $2\pi$ for the first hand to $10000^{(d-2)/d}\cdot2\pi$ for the last. That is $100\cdot2\pi$ with $d=4$, and about $9647\cdot2\pi$ with the paper's $d=512$.

# %%
# exercise: positions/sinusoidal

# %%
check("positions/sinusoidal", sinusoidal)

# %%
sinusoidal = mine("positions/sinusoidal")

# %% [markdown]
# With $d = 4$ there are two hands. The first turns by a radian a step, the second by a hundredth:

# %% tags=["nbval-check-output"]
print(sinusoidal(4, 4))

# %% tags=["hide-input"]
waves = sinusoidal(101, 64)
figure, (left, middle, right) = plots.panels(
    "Each pair of columns turns more slowly than the one before it",
    ["sines: columns 0, 2, 4, …", "cosines: columns 1, 3, 5, …", "the sines of three pairs"],
    size=(9, 3.6),
)
for ax, first_column in ((left, 0), (middle, 1)):
    columns = waves[:, first_column::2]
    image = ax.imshow(columns, aspect="auto", vmin=-1, vmax=1, cmap="RdBu_r", interpolation="none")
    ax.set(xlabel="pair c")
left.set(ylabel="position i")
figure.colorbar(image, ax=[left, middle], label="value")
for pair, height, colour in zip((2, 8, 16), (0, 2.6, 5.2), plots.COLOURS):
    right.plot(range(101), waves[:, 2 * pair] - height, color=colour)
    right.text(103, -height, f"c = {pair}", color=colour, va="center")
right.set(xlabel="position i", yticks=[])
right.spines["left"].set_visible(False)
plots.show(
    figure,
    "Two heat maps of 101 positions by 32 pairs, sines and cosines. On the left the stripes are a "
    "few positions high; from about pair 25 on a column hardly changes: sines near 0, cosines "
    "near 1. Beside them three sines as curves: pair 2 makes 9 turns, pair 8 makes 1.6, pair 16 "
    "a sixth of one.",
)

# %% [markdown]
# Read a row of both maps, and you have the mark of one position. Does *praised* now notice who praised whom?

# %%
placed = (words + sinusoidal(5, 6).double() for words in (x, y))
first, second = (scaled_dot_product_attention(words, words, words) for words in placed)
print(f"largest change of praised: {(first[2] - second[2]).abs().max():.2f}")
assert (first[2] - second[2]).abs().max() > 0.1

# %% [markdown]
# It does. And attention compares by dot products, so how similar are two positions? The angle addition formula $\cos(a-b)=\cos a\cos b+\sin a\sin b$ answers for each pair of columns, and so
#
# $$p_i\cdot p_j=\sum_{c}\cos\big(\theta_c\,(i-j)\big)$$
#
# Only the distance counts. Lecture L3 (lesson 00 lists the lectures) illustrates: "pos 4 is 'closer' to pos 7 than pos 17". **Does the similarity fall with every further step?**

# %%
guess = None  # "always" or "not always"

# %%
similarity = dot_scores(waves, waves)
falling = similarity[50, 50:].diff() < 0
reveal(guess, "always" if falling.all() else "not always")
print(f"4 and 7: {similarity[4, 7]:.1f}, 4 and 17: {similarity[4, 17]:.1f}")
assert similarity[50].argmax() == 50 and falling[:5].all() and not falling[5]
assert (similarity[20:80, 20:80] - similarity[21:81, 21:81]).abs().max() < 1e-3

# %% tags=["hide-input"]
figure, (left, right) = plots.panels(
    "Near positions are similar, and only the distance counts",
    ["$p_i \\cdot p_j$ for all pairs", "$p_i \\cdot p_j$ from three positions"],
    size=(9, 3.6),
)
figure.colorbar(left.imshow(similarity), ax=left)
left.set(xlabel="position j", ylabel="position i")
for i, colour, width in zip((20, 50, 80), plots.COLOURS, (7, 4, 1.5)):
    right.plot(torch.arange(101) - i, similarity[i], color=colour, linewidth=width)
right.text(8, 29, "i = 20, 50 and 80 lie\non one curve", va="top", size="small")
right.set(xlabel="j − i", ylim=(0, 33))
plots.show(
    figure,
    "A heat map with a bright diagonal, and three curves that coincide: 32 at distance 0, falling "
    "for five steps to about 23, then wavering on their way down to about 15 at distance 50.",
)

# %% [markdown]
# L3's example is right. The similarity falls for five steps, then wavers on its way down, as sums of cosines do. It is also symmetric: to the dot product of two waves, left and right are alike. To ask for one side, a model needs its matrices: see the section after the box.

# %% [markdown]
# ### Box: the first exponent (optional)
#
# > **Where the lectures disagree (D04).** L1 to L4 print the first exponent as $2\cdot1/d$, L5 and the paper as 0. The paper promises wavelengths from $2\pi$ to $10000\cdot2\pi$. Each way of counting keeps one end of that promise.

# %% tags=["nbval-check-output"]
d = 64
exponents = {"paper, L5": torch.arange(0, d, 2) / d, "L1 to L4": torch.arange(2, d + 1, 2) / d}
for name, exponent in exponents.items():
    periods = 2 * torch.pi * 10000**exponent
    print(f"{name:10} from {periods[0] / torch.pi:.2f} pi to {periods[-1] / torch.pi:.0f} pi")
first_angle = torch.atan2(waves[1, 0], waves[1, 1])
torch.testing.assert_close(first_angle, torch.tensor(1.0))
slowest = torch.atan2(waves[100, -2], waves[100, -1]).rad2deg().item()
print(f"a text of 100 tokens moves the paper's slowest hand by {slowest:.2f} degrees")
assert 0.7 < slowest < 0.8

# %% [markdown]
# Code follows the paper, as yours does: the fastest hand turns by one radian a step. The slowest wavelength then falls short of $10000\cdot2\pi$, here by a quarter. A text of 100 tokens moves this hand by less than one degree.

# %% [markdown]
# ## A shift is a rotation (optional)
#
# Why waves, and not any other marks? Because a query can then ask for "three to the left" wherever it is. When a clock runs on for three hours, each hand turns by its own fixed angle, whatever the time was. In formulas, this is angle addition:
#
# $$\begin{aligned}\sin(a+b)&=\sin a\cos b+\cos a\sin b\\\cos(a+b)&=\cos a\cos b-\sin a\sin b\end{aligned}$$

# %% [markdown]
# Put $a=\theta_c\,i$ and $b=\theta_c\,k$. Written with matrices, a shift by $k$ positions is
#
# $$\big(\sin(a+b)\;\;\cos(a+b)\big)=\big(\sin a\;\;\cos a\big)\begin{pmatrix}\cos b&-\sin b\\\sin b&\cos b\end{pmatrix}$$
#
# So $p_{i+k}=p_i\,M_k$. The matrix $M_k$ has one such block for each pair of columns. It depends on the shift $k$, not on the position $i$, and it only rotates: $M_kM_k^T=I$.

# %% [markdown]
# *Optional:* build $M_k$. The next cells use the library's if you do not.

# %%
# exercise: positions/shift_matrix

# %%
check("positions/shift_matrix", shift_matrix)

# %%
shift_matrix = mine("positions/shift_matrix")

# %%
on, back = shift_matrix(3, 64), shift_matrix(-1, 64)
print(f"one M for 97 positions, largest error {(waves[:97] @ on - waves[3:100]).abs().max():.0e}")
assert torch.allclose(waves[:97] @ on, waves[3:100], atol=1e-4)
assert torch.allclose(on @ on.T, torch.eye(64), atol=1e-5)
finds = (waves @ back @ waves.T).argmax(-1)
print("queries p M at positions 5 to 9 score highest with", finds[5:10].tolist())
assert torch.equal(finds[1:], torch.arange(100))

# %% tags=["hide-input"]
pairs = (0, 4, 8)
angles = [3 * 10000 ** (-2 * c / 64) for c in pairs]
names = [f"pair {c}: 3 steps turn {a:.2f} radians" for c, a in zip(pairs, angles)]
title = "Three steps turn a hand by the same angle\nsolid: positions 1 and 10; dashed: 4 and 13"
figure, clocks = plots.panels(title, names, size=(9, 3.8))
for ax, pair in zip(clocks, pairs):
    for start, colour in zip((1, 10), plots.COLOURS):
        for position, style in ((start, "-"), (start + 3, "--")):
            up, across = waves[position, 2 * pair : 2 * pair + 2].tolist()
            ax.plot([0, across], [0, up], style, color=colour, marker="o", markevery=[1])
            ax.text(1.2 * across, 1.2 * up, position, ha="center", va="center", color=colour)
    ax.add_patch(plots.plt.Circle((0, 0), 1, fill=False, color="0.7"))
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect=1, xlabel="cosine")
    ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
clocks[0].set(ylabel="sine")
plots.show(
    figure,
    "Three clock faces, of pairs 0, 4 and 8. On each, the hands of positions 1 and 4 enclose the "
    "same angle as those of positions 10 and 13: 3, 0.95 and 0.30 radians.",
)

# %% [markdown]
# The last line printed above the clocks is the point. A query that is its position times one fixed matrix, $q_i=p_i\,M_{-1}$, scores highest with the position to its left, everywhere. So $W_Q$ could be learned once and work at any length. Whether training finds such a matrix is another question, and we will ask it.

# %% [markdown]
# ## Learn the marks
#
# Why should anybody prescribe waves? Make a table $E$ with a row for each position, and train it with the rest:
#
# $$x_i\;\to\;x_i+E_i\qquad E\in\mathbb R^{n_{\max}\times d}$$
#
# "Most systems use this!", said L1 in 2021. A text longer than the table has no vector for its last tokens, so the layer refuses it.

# %%
# exercise: positions/learned

# %%
check("positions/learned", LearnedPositions)

# %%
LearnedPositions = mine("positions/learned")

# %% [markdown]
# In this section and the next, places are counted from 1: place 40 is row 39 of the table. That row is trained only by texts that have a token in place 40. How many are there? With the course come two acts of *Julius Caesar*, sentence by sentence. **What share of the third act's sentences reaches place 40?**

# %%
guess = None  # a share between 0 and 1

# %%
act_3, act_4 = (trees.documents()[f"Julius Caesar, act {act}"] for act in ("III", "IV"))
lengths = [len(sentence.words) for sentence in act_3]
reaching = torch.tensor([sum(n > place for n in lengths) for place in range(64)])
reveal(guess, round(reaching[39].item() / len(act_3), 3))
assert reaching[39] < 0.1 * len(act_3)

# %% [markdown]
# ## A task that needs order
#
# To see what that does to training, we need a task for which order is everything: *each word must name the word before it*.

# %% tags=["nbval-check-output"]
from course_lib.instruments.position_schemes import Learned, Reader, answers, naming_loss

vocab = trees.vocab(act_3 + act_4)
learning, held_out = trees.join(act_3, vocab), trees.join(act_4, vocab)
words, tree, wanted = trees.stretches(learning, learning.before, torch.tensor([0]), 6)
print("reads ", *[f"{vocab[word]:8}" for word in words[0]])
print("wanted", *[f"{vocab[word] if word >= 0 else '-':8}" for word in wanted[0]])

# %% [markdown]
# The model, a `Reader`, is one layer of attention and a small network. At each step every word of the vocabulary gets a new random vector, its *name*. So the model cannot learn that *Caesar* follows *great*; only positions help. The model reads names. Its output at each place is compared, by dot product, with the names of all words, and the largest product is its answer:

# %%
import inspect

print(inspect.getsource(Reader.read), inspect.getsource(Reader.forward), sep="\n")

# %% [markdown]
# Training lowers the cross-entropy of the wanted word. In the figures, *chance* is $1/n$: the share right if one of the $n$ words read is picked at random.


# %%
def as_long_as_sentences(seed, size=32):
    """Yield stretches of the text, as long as one of its sentences of 2 to 64 words."""
    generator = torch.Generator().manual_seed(seed)
    usual = [n for n in lengths if 2 <= n <= 64]
    while True:
        pick, start = torch.randint(10**6, (2,), generator=generator).tolist()
        n = usual[pick % len(usual)]
        yield next(trees.batches(learning, learning.before, n, size, seed=start))


# %% [markdown]
# Train learned positions on stretches as long as real sentences are: each step reads 32 stretches of one length, drawn from the sentences' lengths. Then test stretches of 64 words from the fourth act, place by place. **Which is the first place at which the model is more often wrong than right?**

# %%
guess = None  # a place between 1 and 64

# %% tags=["training"]
with training.seeded(SEED):
    reader = Reader(Learned(64, 64), len(vocab))
budget = {"steps": 500, "learning_rate": 0.01, "seconds": 30}
training.train(reader, as_long_as_sentences(SEED), naming_loss, **budget)
starts = torch.arange(0, len(held_out.words) - 64, 64)
test = trees.stretches(held_out, held_out.before, starts, 64)
right = (answers(reader, test) == test[2]).double().mean(0)
reveal(guess, (right[1:] < 0.5).nonzero().min().item() + 2)

# %% tags=["training"]
near, far = right[1:11].mean().item(), right[44:].mean().item()
claim = "places 2 to 11 are read at least 0.2 better than those from 45 on"
training.expect(claim, near > far + 0.2, [round(near, 2), round(far, 2)], reader)
table = reader.scheme.positions.table.detach()
scores = reader.query(table) @ reader.key(table).T / 8
finds = scores.argmax(-1) + 1
print("from place to the place it looks for:", {n: finds[n - 1].item() for n in range(33, 46)})
before = softmax(scores).diagonal(-1)
print("weight on the one before:", {n: round(before[n - 2].item(), 2) for n in range(36, 42)})

# %% tags=["training", "hide-input"]
names = ["sentences that reach the place", "share right", "the place it looks for"]
title = "Most places that few sentences reach do not find the one before"
figure, panels = plots.panels(title, names, size=(9, 3.2))
panels[0].bar(range(1, 65), reaching)
panels[1].plot(range(2, 65), right[1:], "o-", markersize=3, linewidth=1)
panels[1].axhline(1 / 64, color="0.5", linestyle="--", linewidth=1)
panels[1].text(3, 1 / 64 + 0.03, "chance", color="0.4", size="small")
panels[1].set(ylim=(-0.05, 1.05))
panels[2].plot([2, 64], [1, 63], color="0.7", linewidth=1)
panels[2].text(50, 54, "the one\nbefore", color="0.4", size="small", ha="right")
panels[2].plot(range(2, 65), finds[1:], "o", markersize=3)
for ax in panels:
    ax.set(xlabel="place in the stretch of 64")
plots.show(
    figure,
    f"Three panels over the places 1 to 64. Sentences that reach a place: {reaching[0]} at the "
    f"first, {reaching[39]} at the fortieth. Share right: near 1 up to place 35, near 0 from place "
    "40 on, with a zero at 37 between. Place looked for: the one before up to place 36, mostly 35 "
    "or 38 up to place 55, and scattered beyond.",
)

# %% [markdown]
# The cliff comes where few texts reach: at place 40, fewer than one step in twenty has trained the row. Such queries have not yet learned where to point, and many of them point at the same keys, here 35 and 38. The spike in the middle panel is places 38 and 39: in this run they find the one before, and 37 does not. Place 40 looks for 39 as well, but with only a fifth of its weight (tokens left out), so it reads wrong.

# %% [markdown]
# Nothing passes from place 10 to place 40; to a table, they are strangers. (Another `SEED` can move the first wrong place.)

# %% [markdown]
# ## Why add, and not concatenate? (optional)
#
# Adding mixes tokens with positions in the same columns. One could lay them side by side instead, $[x;p]$. Compare what the first matrix computes:
#
# $$(x+p)\,W=xW+pW\qquad[x;p]\begin{pmatrix}W_1\\W_2\end{pmatrix}=xW_1+pW_2$$
#
# So adding is concatenation with $W_1=W_2$. Is anything lost? Not if other positions $p'$ have $p'W_1=pW_2$. They exist where the columns of $W_1$ are independent: $p'=p\,W_2W_1^+$, with the pseudo-inverse $W_1^+$.

# %% [markdown]
# In the Transformer $d=512$, and each head has a $W_Q$, a $W_K$ and a $W_V$ of 64 columns. For the three of one head, one $p'$ can be found, as the next cell shows. **Is there one $p'$ for all eight heads?**

# %%
guess = None  # True or False


# %%
def largest_difference(columns):
    p = torch.randn(6, 512, generator=generator).double()
    w_1, w_2 = torch.randn(2, 512, columns, generator=generator).double()
    instead = p @ w_2 @ torch.linalg.pinv(w_1)
    return (instead @ w_1 - p @ w_2).abs().max().item()


one_head, eight_heads = largest_difference(192), largest_difference(1536)
print(f"192 columns: {one_head:.0e}, 1,536 columns: {eight_heads:.0f}")
reveal(guess, eight_heads < 1e-6)
assert one_head < 1e-6 < 1 < eight_heads

# %% [markdown]
# One head has 192 columns, fewer than the 512 rows, and adding loses nothing; eight have 1,536, and it is a true restriction. Does it matter? `make results LESSON=04` trained both on the task above, for the same 500 steps, at 16 words and 64 columns in all. A concatenated position takes 4, 16 or 32 of the columns away from the word.

# %%
kept = results.load("concatenation")["figures"]
for name, runs in kept["before"].items():
    shares = ", ".join(f"{run['right']:.3f}" for run in runs)
    print(f"{name:11} right {shares} (three seeds), {runs[0]['numbers']:5,} numbers in the table")

# %% [markdown]
# Hardly. At this size and on this task adding and 16 or 32 columns of positions do about equally well, and a table of 16 columns has a quarter of the numbers. (With four columns one of the three seeds falls to 0.93.) Adding leaves all $d$ columns to the token, and needs no decision about how to divide it. That may be why "people mostly just add" (L1, L2).

# %% [markdown]
# ## Four terms (optional)
#
# A table has a weakness that you have seen: what is learned at place 10 does not help at place 40. Sinusoids need not have it; whether they do is measured below. To see what could be changed, multiply the score out. With $W=W_QW_K^T$,
#
# $$(x_i+p_i)\,W\,(x_j+p_j)^T=\underset{\text{token to token}}{x_iWx_j^T}+\underset{\text{token to place}}{x_iWp_j^T}+\underset{\text{place to token}}{p_iWx_j^T}+\underset{\text{place to place}}{p_iWp_j^T}$$
#
# Here are the four in the model that you have just trained. (Its layers have biases; they count with the places, which are numbered from 0 again.)

# %% tags=["training"]
names = torch.randn(len(vocab), 64, generator=generator) / 8
tokens, places = names[test[0][0, :16]], table[:16]
queries = {"token": tokens @ reader.query.weight.T, "place": reader.query(places)}
keys = {"token": tokens @ reader.key.weight.T, "place": reader.key(places)}
terms = {f"{i} to {j}": (queries[i] @ keys[j].T / 8).detach() for i in queries for j in keys}
x = tokens + places
assert torch.allclose(sum(terms.values()), reader.query(x) @ reader.key(x).T / 8, atol=1e-4), "sum"
spread = {name: round(term.std(-1).mean().item(), 1) for name, term in terms.items()}
claim = "over a row, place to place spreads at least twice as much as any other term"
largest_other = max(number for name, number in spread.items() if name != "place to place")
training.expect(claim, spread["place to place"] > 2 * largest_other, spread, reader)

# %% tags=["training", "hide-input"]
title = "Place to place points at the word before; the other three terms are small"
figure, panels = plots.panels(title, list(terms), size=(9, 2.8))
for ax, term in zip(panels, terms.values()):
    # the softmax of a row does not see its mean
    centred = term - term.mean(-1, keepdim=True)
    image = ax.imshow(centred, cmap="RdBu_r", vmin=-12, vmax=12, interpolation="none")
    ax.set(xlabel="key j", xticks=[0, 5, 10, 15], yticks=[0, 5, 10, 15])
panels[0].set(ylabel="query i")
figure.colorbar(image, ax=panels, label="score, less its row's mean")
plots.show(
    figure,
    "Four heat maps of 16 queries by 16 keys. Only place to place has a pattern: a diagonal of "
    "high scores one to the left of the main diagonal. The other three are pale and mixed.",
)

# %% [markdown]
# For this task one term does nearly all the work. It should depend on $j-i$ alone, which nothing in $p_iWp_j^T$ guarantees. So why learn places at all? Let the score depend on the *distance* directly. The schemes of Shaw, Transformer-XL, T5 and ALiBi keep the first term and put a distance where a place was. Rotary changes the first term itself.

# %% [markdown]
# | scheme | its score, before the softmax and without the scale |
# |:-|:-|
# | absolute, Vaswani et al. 2017 | $x_iWx_j^T+x_iWp_j^T+p_iWx_j^T+p_iWp_j^T$ |
# | Shaw et al. 2018 | $x_iWx_j^T+x_iW_Q\,a_{j-i}^T$: the second place is a learned vector for the distance |
# | Transformer-XL, Dai et al. 2019 | $x_iWx_j^T+x_iW_QW_D^T\,r_{i-j}^T+u\,W_K^Tx_j^T+u'\,W_D^T\,r_{i-j}^T$: sinusoids $r$ of the distance, with a key matrix $W_D$ of their own; learned vectors $u,u'\in\mathbb R^{d_k}$ where the query's place was |
# | T5, Raffel et al. 2020 | $x_iWx_j^T+\beta_{j-i}$: the fourth term is one learned number for each head and range of distances |
# | ALiBi, Press et al. 2022 | $x_iWx_j^T-m_h\,\lvert i-j\rvert$: that number is not learned; $m_h$ is fixed for each head |
# | rotary, Su et al. 2021 | $x_iW_Q\,R_{i-j}\,W_K^Tx_j^T$: no term is added; a rotation goes between query and key |

# %% [markdown]
# Three of them follow: Shaw's, the rotation, and ALiBi.
#
# ### Box: before or after the matrices (optional)
#
# > **Where the lectures disagree (D19).** L1 writes "just add the $p_i$ to our inputs!", and then $q_i=\tilde q_i+p_i$, $k_i=\tilde k_i+p_i$, $v_i=\tilde v_i+p_i$, with "our old values, keys, and queries". L2, L3, L4 and the paper add to $x$, before the matrices. Without matrices the two are the same. With them, the place-to-place term is $p_i\cdot p_j$ in the first and $p_iWp_j^T$ in the second. **Which of the two can prefer the position to the left?**

# %%
guess = None  # "q + p", "x + p", "both" or "neither"

# %%
by_place = {"q + p": waves @ waves.T, "x + p": waves @ shift_matrix(-1, 64) @ waves.T}
left = torch.arange(100)
prefer = [name for name, s in by_place.items() if torch.equal(s.argmax(-1)[1:], left)]
reveal(guess, prefer[0] if len(prefer) == 1 else {0: "neither", 2: "both"}[len(prefer)])
assert torch.equal(by_place["q + p"].argmax(-1), torch.arange(101))

# %% [markdown]
# With $W=M_{-1}$, the second prefers its left neighbour. In the first, each place prefers itself: all waves have the same norm, so $p_i\cdot p_i$ is the largest product (Cauchy-Schwarz, as in lesson 03). No matrix can change that term, because in L1's formula the positions never meet one. The paper adds to $x$, and so do we.

# %% [markdown]
# ## A vector for each distance
#
# "The word before" means the same at place 3 and at place 300. So Shaw et al. give each *distance* $j-i$ a learned vector $a_{j-i}\in\mathbb R^{d_k}$ for the keys and another, $b_{j-i}\in\mathbb R^{d_v}$, for the values (the paper writes $a^K$ and $a^V$). Beyond some $m$, far is far: the distance is clipped, and $2m+1$ vectors serve texts of any length.
#
# $$s_{ij}=\frac{q_i\cdot(k_j+a_{j-i})}{\sqrt{d_k}}\qquad o_i=\sum_j\alpha_{ij}\,(v_j+b_{j-i})\qquad j-i\text{ clipped to }[-m,m]$$

# %% tags=["hide-input"]
distance = (torch.arange(8) - torch.arange(8)[:, None]).clamp(-2, 2)
figure, ax = plots.axes(
    "With m = 2, five vectors serve all pairs", "key j", "query i", size=(4.4, 3.6)
)
ax.imshow(distance, cmap="RdBu_r", vmin=-4, vmax=4, interpolation="none")
for i, row in enumerate(distance.tolist()):
    for j, number in enumerate(row):
        ax.text(j, i, f"{number:+d}" if number else "0", ha="center", va="center", size="small")
ax.set(xticks=range(8), yticks=range(8))
plots.show(
    figure,
    "A table of 8 queries by 8 keys with the clipped distance j minus i. Each diagonal has one "
    "number: 0 in the middle, +1 and -1 beside it, and +2 and -2 everywhere beyond.",
)

# %% [markdown]
# *Optional:* build both. The rows of a table count from 0, so the distances are numbered from 0 to $2m$.

# %%
# exercise: positions/relative_index

# %%
check("positions/relative_index", relative_index)

# %%
# exercise: positions/relative_attention

# %%
check("positions/relative_attention", relative_attention)

# %%
relative_index = mine("positions/relative_index")
relative_attention = mine("positions/relative_attention")

# %% [markdown]
# A distance does not change if the text moves. So put three words in front of a sentence and hide them. Every word now has another place, and its output is the same.

# %%
q, k, v = torch.randn(3, 8, 6, generator=generator)
tables = torch.randn(2, 5, 6, generator=generator)
alone = relative_attention(q[3:], k[3:], v[3:], *tables)
behind = relative_attention(q, k, v, *tables, mask=(torch.arange(8) >= 3)[None])[3:]
print(f"largest difference: {(alone - behind).abs().max():.0e}")
torch.testing.assert_close(alone, behind)
assert relative_index(100, 100, 4).unique().numel() == 9

# %% [markdown]
# ## Turn the query and the key
#
# Shaw's vectors are parameters, and our code copies one for each pair of query and key: $n^2d_k$ numbers. **Rotary positions** (RoPE) need no parameters and no such table. Many large language models use them, SmolLM2 in lesson 09 among them. The idea: do not add the clock to the token. Take the query itself as a set of clock hands, and *turn* it by the angles of its place. Do the same to the key. A dot product does not care where two hands point, only about the angle between them.

# %% tags=["hide-input"]
from course_lib import positions

q, k = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.8, 0.6]])


def turned_by(place, hand):
    return positions.rotary(hand, torch.tensor([place]))[0].tolist()


title = "Both move on: the angle stays. One moves on: the angle changes"
frames = [(i, i - 2) for i in (2, 3, 4, 5, 6)] + [(i, 0) for i in (2, 3, 4, 5, 6)]
figure, clocks = plots.panels(title, [""] * 10, size=(8.4, 4.4), rows=2)
for ax, (i, j) in zip(clocks, frames):
    hands = {"q": turned_by(i, q), "k": turned_by(j, k)}
    for (name, (across, up)), colour in zip(hands.items(), plots.COLOURS):
        ax.plot([0, across], [0, up], color=colour, marker="o", markevery=[1])
        ax.text(1.25 * across, 1.25 * up, name, color=colour, ha="center", va="center")
    ax.add_patch(plots.plt.Circle((0, 0), 1, fill=False, color="0.7"))
    score = sum(a * b for a, b in zip(*hands.values()))
    ax.set_title(f"i = {i}, j = {j}\nq · k = {score:.2f}", size="small")
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect=1)
    ax.set_axis_off()
plots.show(
    figure,
    "Two rows of five clock faces, each with a query hand and a key hand that turn by one radian "
    "a place. In the first row i goes from 2 to 6 and j from 0 to 4: both hands turn, and the dot "
    "product is 0.21 in all five. In the second row j stays at 0: only the query turns, and the "
    "dot product goes from 0.21 over -0.71, -0.98 and -0.35 to 0.60.",
)

# %% [markdown]
# For each pair of columns with the speed $\theta_c$, position $i$ has a rotation $R_i$. A transposed rotation turns back, so rotations add up to the distance:
#
# $$R_i=\begin{pmatrix}\cos\theta_ci&\sin\theta_ci\\-\sin\theta_ci&\cos\theta_ci\end{pmatrix}\qquad(q_iR_i)\cdot(k_jR_j)=q_i\,R_iR_j^T\,k_j^T=q_i\,R_{i-j}\,k_j^T$$
#
# (A row $(x,y)R_i$ is turned counterclockwise. The block of $M_k$ is its transpose, because there the sine comes first.) The norms of $q$ and $k$ do not change, and the values are not touched.

# %% [markdown]
# Which columns form a pair is free. Su et al. 2021 take neighbours, $2c$ and $2c+1$. Your code takes columns $c$ and $c+d/2$, as SmolLM2 does (lesson 09):
#
# $$\begin{aligned}x'_c&=x_c\cos\theta_ci-x_{c+d/2}\sin\theta_ci\\x'_{c+d/2}&=x_c\sin\theta_ci+x_{c+d/2}\cos\theta_ci\end{aligned}\qquad\theta_c=\text{base}^{-2c/d}$$

# %%
# exercise: positions/rotary

# %%
check("positions/rotary", rotary)

# %%
rotary = mine("positions/rotary")

# %%
q, k = torch.randn(2, 1, 16, generator=generator, dtype=torch.float64)


def score(i, j):
    return dot_scores(rotary(q, torch.tensor([i])), rotary(k, torch.tensor([j]))).item()


print(f"{score(7, 4):.6f} from 7 to 4, {score(1007, 1004):.6f} from 1007 to 1004")
assert abs(score(1007, 1004) - score(7, 4)) < 1e-9 < abs(score(7, 5) - score(7, 4))

# %% [markdown]
# Moving both by a thousand places changes nothing. Su et al. also name a "long-term decay": scores fall with distance. We try keys that equal their queries, and keys that are independent of them. **For which do the scores fall, on average?**

# %%
guess = None  # "both", "k = q" or "neither"

# %%
pairs = torch.randn(2, 1000, 1, 64, generator=generator)
places = torch.arange(200)
turned_keys = [rotary(x.expand(-1, 200, -1), places) for x in (pairs[0], pairs[1])]
scores = [(pairs[0] @ keys.mT).squeeze(1) for keys in turned_keys]
falls = [bool(s[:, :10].mean() > s[:, -100:].mean() + 5) for s in scores]
reveal(guess, {(True, True): "both", (True, False): "k = q"}.get(tuple(falls), "neither"))
assert falls == [True, False]
sizes = [scores[1][:, part].abs().mean().item() for part in (slice(10), slice(100, 200))]
print(
    "independent, mean |score| at distances 0 to 9, and 100 to 199:", [round(x, 1) for x in sizes]
)
assert abs(sizes[0] - sizes[1]) < 0.5

# %% tags=["hide-input"]
title = "If k = q, scores waver downwards; if k and q are independent, not even their size falls"
figure, ax = plots.axes(title, "distance", "score", size=(8, 3.4))
for s, colour, name in zip(scores, plots.COLOURS, ("k = q", "independent")):
    ax.plot(places, s.mean(0), color=colour)
    low, high = s[:, ::2].quantile(torch.tensor([0.25, 0.75]), 0)
    ax.fill_between(places[::2], low, high, color=colour, alpha=0.25, linewidth=0)
    ax.text(202, s.mean(0)[-20:].mean(), name, color=colour, va="center")
ax.text(
    110, 45, "lines: mean of 1,000 pairs\nbands: the middle half of them", color="0.4", size="small"
)
ax.set(xlim=(0, 200))
plots.show(
    figure,
    "Scores against distance, mean and middle half of 1,000 pairs. For keys equal to their queries "
    "the mean falls from 64 at distance 0 to about 30 at 50 and wavers on below, to about 20 at "
    "200. For independent ones the mean stays near 0 and the middle half between -5 and 5, at all "
    "distances.",
)

# %% [markdown]
# A key that is independent of the query has the mean score 0 at every distance. So look at the size of its scores: it does not fall either. Rotary alone does not make attention favour near tokens. For that, training must align queries and keys. The last scheme has nearness built in.

# %% [markdown]
# ## A penalty for distance
#
# **ALiBi**, attention with linear biases, is the plainest scheme of all: take something off the score for each step of distance. Press et al. 2022 give each **head** a slope $m_h$ of its own. (A head is one attention with its own matrices; lesson 06 runs several side by side.) With $H$ heads,
#
# $$s_{ij}=\frac{q_i\cdot k_j}{\sqrt{d_k}}-m_h\,\lvert i-j\rvert\qquad m_h=2^{-8h/H}\qquad h=1,\dots,H$$
#
# Nothing is learned. With eight heads the slopes are 1/2, 1/4, …, 1/256. ($m_h$ is the paper's letter; it has nothing to do with the $m$ at which Shaw clips.)
#
# *Optional:* build it.

# %%
# exercise: positions/alibi

# %%
check("positions/alibi", alibi)

# %%
alibi = mine("positions/alibi")

# %% [markdown]
# Suppose that all 64 keys score alike before the penalty. **How many of the nearest keys hold, together, at least half of the last query's weight: with slope 1/2, and with slope 1/256?**

# %%
guess = None  # two numbers

# %%
weights = softmax(alibi(1, 64, heads=8)).squeeze(1)
half = [(w.flip(0).cumsum(0) < 0.5).sum().item() + 1 for w in weights]
reveal(guess, (half[0], half[-1]))
assert half == sorted(half)

# %% tags=["hide-input"]
steps = alibi(6, 6, heads=8)[0] * 2 + 0.0
masked = steps.masked_fill(~torch.ones(6, 6).bool().tril(), torch.nan)
names = ["bias ÷ slope, causal mask as in the paper", "weights of query 64, all scores alike"]
title = "Steep heads look near, flat heads everywhere"
figure, (left, right) = plots.panels(title, names, size=(8.6, 3.6))
left.imshow(masked, cmap="RdBu_r", vmin=-6, vmax=6, interpolation="none")
left.patch.set(facecolor=plots.CARD, edgecolor="0.7", hatch="///")
for i, row in enumerate(masked.tolist()):
    for j, number in enumerate(row[: i + 1]):
        ink = "white" if number < -3 else "black"
        left.text(j, i, f"{number:.0f}", ha="center", va="center", color=ink)
left.set(xlabel="key j", ylabel="query i", xticks=range(6), yticks=range(6))
for h, colour in zip((0, 2, 4, 7), plots.COLOURS):
    right.plot(range(1, 65), weights[h], color=colour)
    height = weights[h, -1].item() - 0.01 * (h == 7) + 0.01 * (h == 4)
    right.text(65, height, f"slope 1/{2 ** (h + 1)}", color=colour, va="center", size="small")
right.set(xlabel="key j", ylabel="weight", xlim=(1, 64))
plots.show(
    figure,
    "Left, the bias triangle of six tokens under a causal mask: 0 on the diagonal, then -1, -2 "
    "down to -5 in the lower left corner, times the slope; keys to the right are hatched. Right, "
    "weights of the last of 64 tokens: with slope 1/2 a peak of 0.39 at key 64, with slope 1/256 "
    "a nearly flat line at 0.016.",
)

# %% [markdown]
# ## Which scheme notices what?
#
# Does each of these schemes notice who praised whom? They differ in two places only: what happens to tokens before attention, `encode`, and how queries and keys meet, `attend`. `course_lib/instruments/position_schemes.py` has each in a few lines. (*Tree*, the class `Dependency`, counts the edges between two words in a parse tree: see the exploration [Positions in a tree](explorations/04_trees.ipynb).)

# %%
from course_lib.instruments import position_schemes
from course_lib.instruments.position_schemes import Alibi, Dependency, NoPositions
from course_lib.instruments.position_schemes import Relative, Rotary, Sinusoidal

SCHEMES = {
    "none": NoPositions,
    "sinusoidal": Sinusoidal,
    "learned": lambda: Learned(64, 64),
    "relative": lambda: Relative(8, 64),
    "tree": lambda: Dependency(4, 64),
    "rotary": Rotary,
    "ALiBi": Alibi,
}

# %% [markdown]
# Two tests with untrained models. In the first, *critics* and *writers* change places: does the output for *praised* change? In the second, the sentence is read backwards: are the outputs the same vectors in reverse order, or different ones? If they differ, the scheme has *noticed*. **Which schemes notice neither, and which notice one of the two only?**

# %%
guess = None  # two lists of names: (neither, one of the two)

# %% tags=["nbval-check-output"]
tree = positions.tree_distance(own[0].heads)
x, notice = torch.randn(5, 64, generator=generator), {}
for name, scheme in SCHEMES.items():
    with training.seeded(0), torch.no_grad():
        model = Reader(scheme(), vocab=1)
        before, after = model.read(x, tree), model.read(x[[0, 4, 2, 3, 1]], tree)
        backwards = model.read(x.flip(0), tree.flip(0, 1)).flip(0)
    pairs = (before[2], after[2]), (before, backwards)
    notice[name] = [not torch.allclose(*pair, atol=1e-4) for pair in pairs]
    print(f"{name:11} swap {notice[name][0]!s:6} backwards {notice[name][1]}")
by_count = [[name for name, seen in notice.items() if sum(seen) == n] for n in (0, 1)]
reveal(guess, tuple(by_count))

# %% [markdown]
# *None* and the tree notice neither. In the tree, *critics* and *writers* are each still one edge from *praised* when they are swapped, and backwards all distances stay as they were. ALiBi notices the swap, since one noun is nearer. But it knows how far and never on which side, so without a mask it cannot tell a sentence from its mirror image.

# %% [markdown]
# ## Four times the length, one fixed distance
#
# Now the question that decides in practice: what happens on texts longer than those in training? All schemes learn to name the word before, on stretches of 16 words of the third act, for 500 steps. Then they read 16, 32 and 64 words of the fourth.

# %% [markdown]
# Three choices matter. Queries and keys have biases, and rotary needs them (*Break it* removes them). Names are random, so the bias is the only part that all queries share; turned, it can ask for one distance, whatever the name. ALiBi has one head here, with the steepest of eight slopes, 1/2. And the relative table is clipped at 8, so longer texts ask for no vector that was not trained.

# %% [markdown]
# L1 writes of sinusoids: "Maybe can extrapolate to longer sequences as periods restart!", and two lines later: "the extrapolation doesn't really work!" **Which schemes will name more than 90 % right at 64 words?**

# %%
guess = None  # a list of names, such as ["rotary", "learned"]

# %% [markdown]
# `make results LESSON=04` trained each scheme from three seeds. Here is one of them on your machine, rotary; put another name in if you doubt a bar. The black circles below are your run.


# %% tags=["training"]
def share_right(model, n):
    starts = torch.arange(0, len(held_out.words) - n + 1, n)
    batch = trees.stretches(held_out, held_out.before, starts, n)
    return (answers(model, batch) == batch[2])[batch[2] >= 0].double().mean().item()


mine_is = "rotary"
with training.seeded(SEED):
    model = Reader(SCHEMES[mine_is](), len(vocab))
stretches = trees.batches(learning, learning.before, 16, 32, SEED)
training.train(model, stretches, naming_loss, **budget)
live = [round(share_right(model, n), 2) for n in (16, 32, 64)]
training.expect("over 0.6 is right at every length", min(live) > 0.6, live, model)

# %% tags=["hide-input"]
kept = results.load("positions")["figures"]
shown = {"dependency": "tree", "alibi": "ALiBi", "alibi, causal": "ALiBi, causal"}
kept["before"] = {shown.get(name, name): runs for name, runs in kept["before"].items()}


def draw_shares(ax, by_scheme, first=""):
    for length, (n, colour) in enumerate(zip(kept["lengths"], plots.COLOURS)):
        for place, runs in enumerate(by_scheme.values()):
            shares = [run["right"][length] for run in runs]
            at = place + 0.25 * (length - 1)
            ax.bar(at, sum(shares) / len(shares), 0.22, color=colour, alpha=0.4)
            ax.plot([at] * len(shares), shares, "o", color=colour, markersize=3)
            ax.plot([at - 0.11, at + 0.11], [1 / n, 1 / n], color="black", linewidth=1)
        at = list(by_scheme).index(first) + 0.25 * (length - 1)
        ax.text(at, 1.04, n, color=colour, ha="center", size="small")
    ax.text(list(by_scheme).index(first) + 0.4, 1.04, "words read", size="small")
    ax.text(-0.42, 0.1, "— chance", size="small")
    names = [name.replace(", ", ",\n") for name in by_scheme]
    ax.set_xticks(range(len(names)), names, fontsize="small")
    ax.set(ylim=(0, 1.05), ylabel="share right")


title = "With one fixed distance, relative and rotary hold at four times the length"
figure, ax = plots.axes(title, "", "", size=(8.2, 3.6))
draw_shares(ax, kept["before"], first="sinusoidal")
if "live" in globals():
    place = list(kept["before"]).index(mine_is)
    ax.plot([place + 0.25 * t for t in (-1, 0, 1)], live, "ok", markersize=5, fillstyle="none")
plots.show(
    figure,
    "Share of words named right at 16, 32 and 64 words, three seeds each. Sinusoidal and learned "
    "fall from 0.99 to 0.50 and 0.24; relative stays at 1.00 and rotary at 0.99. None stays at "
    "chance, tree falls from 0.24 to 0.13, ALiBi has about 0.4. Under a causal mask ALiBi "
    "has about 0.84 at all lengths, and no positions fall from 0.20 to 0.07.",
)


# %%
def share(scheme, n, what="right"):
    runs = kept["before"][scheme]
    return sum(run[what][kept["lengths"].index(n)] for run in runs) / len(runs)


for name in kept["before"]:
    print(f"{name:14}", *[f"{n} words {share(name, n):.2f}  " for n in kept["lengths"]])
neighbour = share("ALiBi", 16, what="beside")
print(f"ALiBi names one of the two neighbours in {neighbour:.2f}")
reveal(guess, [name for name in SCHEMES if share(name, 64) > 0.9])

# %% [markdown]
# - *Learned* and *sinusoidal*: at 64 words a quarter of the places has been trained, and a quarter is right. A matrix exists for every shift, but training on 16 places did not find one that works beyond.
# - *Relative* and *rotary*: "one to the left" is the same everywhere.

# %% [markdown]
# - *ALiBi* names a neighbour in three cases of four, and about half of these are the wrong one: it does not know the side. Under a causal mask all that it sees is on the left, and it does better.
# - *None, causal*: in this one layer the mask alone helps little, 0.20 at 16 words. In stacks it does more: causal language models without positions are "still competitive with standard models" (Haviv et al. 2022).

# %%
for name in ("learned", "sinusoidal"):
    assert share(name, 16) > 0.9 and abs(share(name, 64) - 1 / 4) < 0.1
assert share("none", 16) < 0.1
assert min(run["right"][2] for x in ("relative", "rotary") for run in kept["before"][x]) > 0.9
assert 0.4 < share("ALiBi", 16) / neighbour < 0.6 and 0.7 < neighbour < 0.8
causal, control = (min(share(x, n) for n in (16, 64)) for x in ("ALiBi, causal", "none, causal"))
assert causal > share("ALiBi", 16) + 0.2 and share("none, causal", 16) < 0.25

# %% [markdown]
# ## Eight times the length, all distances
#
# Does rotary then work at any length? A reason to doubt it: this task asks for *one* distance, and a language model looks at many. Here is a small one: two layers, four heads, Shakespeare by the character (lessons 05 to 10 build it). It trains on stretches of 32 characters, for 600 steps, from three seeds (means, with bands from lowest to highest), and then predicts each next character in stretches of 256. **Whose loss near the 128th character is above its loss near the 32nd by more than 0.1 nats?**

# %%
guess = None  # a list of "sinusoidal", "relative", "rotary", "ALiBi"

# %%
far = results.load("extrapolation")["figures"]
far["loss"]["ALiBi"] = far["loss"].pop("alibi")
curves = {name: torch.tensor(runs).mean(0) for name, runs in far["loss"].items()}
at = {n: n // far["window"] - 1 for n in (32, 128, 256)}
schemes = ["sinusoidal", "relative", "rotary", "ALiBi"]
print("loss in the 16 characters that end at 32, 128 and 256")
for name in schemes:
    print(f"{name:10}", *[f"{curves[name][place]:6.2f}" for place in at.values()])
reveal(guess, [x for x in schemes if curves[x][at[128]] > curves[x][at[32]] + 0.1])


# %% tags=["hide-input"]
def draw_losses(ax, names):
    places = torch.arange(len(curves["rotary"])) * far["window"] + far["window"] / 2
    for (name, label), colour in zip(names.items(), plots.COLOURS):
        runs = torch.tensor(far["loss"][name])
        ax.fill_between(places, runs.amin(0), runs.amax(0), color=colour, alpha=0.25)
        ax.plot(places, runs.mean(0), color=colour, label=label)
    ax.axvspan(0, far["trained on"], color="0.82", zorder=0)
    ax.text(36, 3.98, "← trained, 600 steps", color="0.4", size="small", va="center")
    ax.set(xlim=(0, 256), ylim=(1.8, 4.1), xticks=[32, 64, 128, 192, 256])


title = "Beyond the trained length sinusoidal and rotary fail, relative and ALiBi hold"
figure, ax = plots.axes(title, "place of the character", "loss (nats)", size=(7.4, 3.6))
draw_losses(ax, {x: x for x in schemes})
for x, colour in zip(schemes, plots.COLOURS):
    ax.text(252, curves[x][-1] + 0.02, x, color=colour, va="center", size="small")
plots.show(
    figure,
    "Loss against the place of the character, three seeds as bands, trained up to 32. There "
    "sinusoidal has 2.08 nats, relative 1.93, rotary 1.95, ALiBi 2.11. Near 128 sinusoidal has "
    "3.20 and rotary 3.35, relative 1.94 and ALiBi 2.08; near 256 the order is the same.",
)

# %% [markdown]
# Sinusoids fail at once when they leave the trained length, and rotary within another 32 characters. Relative vectors and ALiBi stay level. With much larger models Press et al. 2022 found the same for sinusoids, rotary and ALiBi (figure 1). In their words: "as the (validation-set's) input sequence gets longer (x-axis), current position methods (sinusoidal, rotary, and T5) show degraded perplexity (y-axis, lower is better), but our method (§3) does not". Their method is ALiBi. The relative scheme in their figure is T5's; ours is Shaw's, which is not in it. (Its table is clipped at 8 here, too.)

# %%
for name in ("sinusoidal", "rotary"):
    assert all(run[at[128]] > run[at[32]] + 0.8 for run in far["loss"][name])
after_32, after_48 = curves["rotary"][2:4] - curves["rotary"][at[32]]
assert after_32 < 0.4 < 0.8 < after_48 and curves["sinusoidal"][2] > 2.8
for name in ("relative", "ALiBi"):
    assert all(run[at[128]] < run[at[32]] + 0.1 for run in far["loss"][name])

# %% [markdown]
# ## Why rotary fails, and a repair
#
# Each head here has 16 columns, so its clock has eight hands. Within 32 places, hands 0 and 1 have gone all the way round. The slower ones have seen a part of their circle only. At larger distances these point where they never pointed in training, and no gradient has ever told the model what score that should give.

# %% [markdown]
# (In the first experiment the slow hands leave their arcs as well, and rotary holds. Perhaps one distance can be read from the fast hands alone; we have not tested that.)


# %% tags=["hide-input"]
def arc(ax, start, end, radius, colour, width):
    turn = torch.linspace(start, min(end, start + 2 * torch.pi), 80)
    ax.plot(radius * turn.cos(), radius * turn.sin(), color=colour, linewidth=width)


speeds = 10000 ** (-2 * torch.arange(5) / 16)
names = [f"hand {c}: a turn in {2 * torch.pi / speeds[c]:.0f}" for c in range(1, 5)]
title = "Beyond 32 places the slow hands point where they never pointed before"
figure, clocks = plots.panels(title, [""] * 4, size=(8.2, 2.7))
for ax, name, speed in zip(clocks, names, speeds[1:].tolist()):
    ax.set_title(name, loc="center", size="small")
    ax.add_patch(plots.plt.Circle((0, 0), 1, fill=False, color="0.8"))
    arc(ax, 0, 31 * speed, 1.0, plots.COLOURS[0], 5)
    arc(ax, 31 * speed, 127 * speed, 1.25, plots.COLOURS[1], 5)
    ax.set(xlim=(-1.6, 1.6), ylim=(-1.5, 1.5), aspect=1)
    ax.set_axis_off()
clocks[0].text(0, 0, "distances\n0 to 31", color=plots.COLOURS[0], ha="center", va="center")
clocks[1].text(0, 0, "31 to 127", color=plots.COLOURS[1], ha="center", va="center")
plots.show(
    figure,
    "Four clock faces, of hands 1 to 4. Distances 0 to 31 turn hand 1 one and a half times, hand 2 "
    "through half a circle, hand 3 through 56 degrees and hand 4 through 18. Distances up to 127 "
    "take hands 1 and 2 all the way round, hand 3 to 230 degrees and hand 4 to 73.",
)

# %% [markdown]
# **Position interpolation** (Chen et al. 2023) keeps all hands on the arcs that they know. To read $L'$ tokens with a model trained on $L$, divide each position by $s=L'/L$, here $128/32=4$. But then the fast hands turn more slowly, too. They had seen their whole circle, and they tell neighbours apart. **NTK-by-parts** (named after the neural tangent kernel; only the rule matters here), a part of YaRN (Peng et al. 2024), leaves them alone:
#
# $$\text{all hands: }\theta_c\to\frac{\theta_c}{s}\qquad\text{slow hands: }\theta_c\to\frac{\theta_c}{s}\text{ only if }\frac{2\pi}{\theta_c}>L$$
#
# (Our cut is sharp. NTK-by-parts itself changes gradually from one to the other, and YaRN also rescales the scores.)

# %% [markdown]
# Let the rotary models read 128 characters in three ways: as they were, with all hands interpolated, and with the slow ones only. Each way is tested without further training, and again after 20 more steps on stretches of 128. **Which way is best near the 128th character without further training, and which after 20 steps?**

# %%
guess = None  # two of "as it was", "all hands", "slow hands"

# %%
ways = ["as it was", "all hands interpolated", "slow hands interpolated"]
for steps in (0, 20):
    print(f"{steps} more steps: loss in the 16 characters that end at 32, 128 and 256")
    for way in ways:
        curve = curves[f"{way}, {steps} steps"]
        print(f"{way:23}", *[f"{curve[place]:6.2f}" for place in at.values()])
best = [min(ways, key=lambda way: curves[f"{way}, {steps} steps"][at[128]]) for steps in (0, 20)]
reveal(guess, tuple(way.removesuffix(" interpolated") for way in best))

# %% tags=["hide-input"]
title = "Interpolating the slow hands repairs rotary, up to the length it was done for"
names = ["without further training", "after 20 steps on 128 characters"]
figure, panels = plots.panels(title, names, size=(9, 4))
for ax, steps in zip(panels, (0, 20)):
    draw_losses(ax, {f"{way}, {steps} steps": way for way in ways})
    ax.axvline(far["repaired for"], color="0.5", linestyle="--", linewidth=1)
    ax.set(xlabel="place of the character")
panels[0].set(ylabel="loss (nats)")
panels[0].text(132, 3.8, "← interpolated to here", color="0.4", size="small", va="center")
panels[1].axvspan(far["trained on"], far["repaired for"], color="0.91", zorder=0)
panels[1].text(132, 3.8, "← then 20 steps", color="0.4", size="small", va="center")
lines = panels[0].get_legend_handles_labels()
figure.legend(*lines, loc="outside lower center", ncols=3, labelcolor="linecolor", fontsize="small")
plots.show(
    figure,
    "Loss against the place of the character, three ways of reading, three seeds as bands. Places "
    "1 to 32 are grey, on the right 33 to 128 pale grey, and a dashed line is at 128. Without "
    "training, as it was rises from 1.95 near 32 to 3.35 near 128, all hands interpolated is above "
    "3.1 from 32 on, slow hands interpolated is at 2.3 up to 128. After 20 steps these have 2.54, "
    "2.43 and 2.01 near 128. Beyond it the third rises steeply.",
)

# %%
for plain, every, slow in zip(*(far["loss"][f"{way}, 0 steps"] for way in ways)):
    assert slow[at[128]] < plain[at[128]] - 0.8 and every[at[32]] > plain[at[32]] + 1
for plain, every, slow in zip(*(far["loss"][f"{way}, 20 steps"] for way in ways)):
    assert slow[at[128]] < min(plain[at[128]], every[at[128]]) - 0.3
    assert slow[at[256]] > slow[at[128]] + 0.5

# %% [markdown]
# Interpolating all hands spoils even the first 32 characters. The slow hands alone repair most of the damage near the 128th at once, from 3.35 to 2.33. They cost 0.3 nats near the 32nd; the 20 steps win most of that back. After these they reach 2.01, where the control without any interpolation has 2.54. Beyond 128 it fails again: the repair reaches as far as the arcs do. (Chen et al. do interpolate all hands, and report success with LLaMA models "with minimal fine-tuning (within 1000 steps)". Our model had 20.)

# %% [markdown]
# ## Break it (optional)
#
# - Subclass `Alibi` with slope 0, then 8. Which scheme is the first? What does a token see with the second?
# - Call `rotary` with `base=1.0`. When does the clock look nearly the same again?
# - In `Reader.forward`, read `8 * names[words]`. Does it hurt the waves, the table or rotary? (The paper scales embeddings by $\sqrt d$, 8 here.)
# - Before rotary trains, set the biases of `model.query` and `model.key` to `None`. Does it learn?

# %% [markdown]
# ## What to remember
#
# Self-attention without a mask does not know the order of its tokens. A position can enter at the input, as a rotation of query and key, or in the score.
#
# | | |
# |:-|:-|
# | sinusoids | $p_{i,2c}=\sin\theta_ci,\ p_{i,2c+1}=\cos\theta_ci,\ \theta_c=10000^{-2c/d}$ |
# | their dot product | $p_i\cdot p_j=\sum_c\cos\theta_c(i-j)$ |
# | a shift | $p_{i+k}=p_iM_k$, a rotation in each pair of columns |
# | four terms | $x_iWx_j^T+x_iWp_j^T+p_iWx_j^T+p_iWp_j^T$ with $W=W_QW_K^T$ |
# | Shaw | $q_i\cdot(k_j+a_{j-i})$, values $v_j+b_{j-i}$ |
# | rotary | $(q_iR_i)\cdot(k_jR_j)=q_iR_{i-j}k_j^T$ |
# | ALiBi | $q_i\cdot k_j/\sqrt{d_k}-m_h\lvert i-j\rvert$ |
# | interpolation | $\theta_c\to\theta_c/s$, $s=L'/L$: for all hands, or for those with $2\pi/\theta_c>L$ |
#
# Sinusoids failed beyond the trained length in both experiments, and so did the learned table in the first. Relative vectors held in both; beyond the clip, all distances share one vector. ALiBi kept its level in both, a low one in the first, where it cannot tell the sides. Rotary held in the first and failed in the second. The two differ in more than the task, so take "one distance or many" as a guess. Interpolating its slow hands repaired rotary, up to the new length.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why can self-attention without positions and without a mask not tell "dog bites man" from "man bites dog"?</summary>
#
# Shuffled inputs give shuffled outputs: $f(PX)=Pf(X)$. *Bites* gets the same output in both.
# </details>
#
# <details><summary>2. d = 4. Write down p at position 0, and the dot product of p with itself at any position.</summary>
#
# (0, 1, 0, 1). Each pair adds $\sin^2+\cos^2=1$, so the product is 2 = d/2.
# </details>
#
# <details><summary>3. A learned table has 512 rows. What happens at token 513, and what at token 500 if most texts had 100 tokens?</summary>
#
# There is no row for token 513, so the layer refuses it. Row 500 exists and has hardly been trained.
# </details>
#
# <details><summary>4. Which of the four terms do T5 and ALiBi keep, and what do they put for the rest?</summary>
#
# Token to token; for the rest, one number that depends on the distance: learned in T5, fixed in ALiBi.
# </details>
#
# <details><summary>5. A rotary model trained on 2,048 tokens should read 8,192. Which hands should be interpolated, and why not all?</summary>
#
# Those with a wavelength above 2,048: at larger distances they point where they never pointed. The others have seen all angles, and they tell neighbours apart.
# </details>

# %% [markdown]
# ## In your own words (optional)
#
# The panels check code. What you understand shows in a paragraph of your own, so take ten minutes for one.
#
# You train a model on 500 tokens, and it will be asked to read 2,000. Choose one position scheme of this lesson, and defend it in one paragraph against a colleague who would choose another. Use at least one measurement of this lesson, and say what that measurement does not show.

# %% [markdown] tags=["question:which_positions"]
# *Double-click here, and write.*

# %% [markdown]
# ## Next, and further reading
#
# Lesson 05 adds the next two parts of the Transformer's block: a feed-forward network, and a mask that hides the future.
#
# Vaswani et al. 2017, section 3.5 (sinusoids); Gehring et al. 2017 (learned positions); Shaw et al. 2018; Dai et al. 2019 (the four terms); Raffel et al. 2020 (T5); Wang et al. 2019 (trees); Su et al. 2021 (rotary); Press et al. 2022 (ALiBi); Haviv et al. 2022 (no positions); Chen et al. 2023 and Peng et al. 2024 (interpolation). Trees by spaCy; play from Open Shakespeare. Lectures: L1, L2, L3, L4, L5.
