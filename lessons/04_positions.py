# %% [markdown]
# # 04 · Positions
#
# **75 minutes · after lesson 03 · needs `minilm` (83.5 MB)**
#
# "The critics praised the writers" and "the writers praised the critics" have the same words and different news. **How can a model that sees all tokens at once know their order?**
#
# At the end you can derive the answer that today's language models give, a rotation, and build it. You also know what happens on texts that are longer than those in training, and how to tell whether a model uses such a text, or only survives it.

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor, nn
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import needs, trees
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, position_models, results, training

# %% tags=["parameters"]
SEED = 0  # another seed trains another model

# %% tags=["hide-input"]
drawings.transformer(
    {"positions"},
    "The Transformer of 2017 with its positions lit: they are added to the token embeddings, once "
    "in the encoder and once in the decoder, before the first attention layer.",
)

# %% [markdown]
# ## Who praised whom
#
# First, see the problem. Give each word a random vector, let attention read one sentence and then the other, and look at what comes out for *praised*.

# %%
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")

# %% tags=["nbval-check-output"]
one, other = "the critics praised those writers", "those writers praised the critics"
generator = torch.Generator().manual_seed(0)
vectors = {word: torch.randn(6, generator=generator).double() for word in one.split()}
x, y = (torch.stack([vectors[word] for word in text.split()]) for text in (one, other))
for words in (x, y):
    praised = scaled_dot_product_attention(words, words, words)[2]
    print("praised:", [round(number, 3) for number in praised.tolist()])

# %% [markdown]
# The two are the same. *Praised* meets the same five words with the same scores, and a sum does not depend on the order of its terms. If a permutation matrix $P$ shuffles the tokens, the outputs are shuffled in the same way, and that is all. This is **permutation equivariance**:
#
# $$f(PX) = P\,f(X)$$
#
# A causal mask breaks it, since then each token sees a different set: itself and those before it. Without a mask, order has to be put in.

# %% [markdown]
# ## Three places to put it
#
# A token becomes a query and a key; the two meet in a score; the score becomes a weight. A position can enter at three points on this way.

# %% tags=["hide-input"]
diagram, small, tall = drawings.Diagram(), (1.3, 0.8), (1.5, 0.9)
rows = (("i", "query", "Q", 2.6), ("j", "key", "K", 0))
ends = []
for letter, role, matrix, y_at in rows:
    token = diagram.box(f"$x_{letter}$", (0, y_at), "stream", size=small)
    place = diagram.box(f"$+\\ p_{letter}$", (2.2, y_at), "position", size=tall)
    project = diagram.box(f"$W_{matrix}$", (4.3, y_at), role, size=small)
    turn = diagram.box(f"turn by ${letter}$", (6.6, y_at), "position", size=(1.8, 0.9))
    diagram.arrow(token, place)
    diagram.arrow(place, project)
    diagram.arrow(project, turn, role=role)
    ends.append((turn, role))
score = diagram.box("$q_i \\cdot k_j$", (8.9, 1.3), "weights", size=(1.6, 0.9))
bias = diagram.box("$+\\ b(i,j)$", (11, 1.3), "position", size=(1.7, 0.9))
for turn, role in ends:
    diagram.arrow(turn, score, leave="E", role=role)
diagram.arrow(score, bias, role="weights")
diagram.arrow(bias, (11, 3.3), "softmax", role="weights")
for x_at, y_at, number, text in (
    (2.2, -1.2, "1  the input", "waves, learned table"),
    (6.6, -1.2, "2  query and key", "rotation"),
    (11, 0.3, "3  the score", "a bias"),
):
    diagram.text(number, (x_at, y_at))
    diagram.text(text, (x_at, y_at - 0.6), size=drawings.SMALL)
diagram.show(
    "The way from two tokens to a weight, with three points for positions. One: p_i and p_j are "
    "added to the tokens x_i and x_j, as waves or a learned table. Two: after the matrices W_Q and "
    "W_K, query and key are turned by i and j. Three: a bias b(i, j) is added to the score."
)

# %% [markdown]
# The Transformer of 2017 uses the first: leave attention as it is, and add a vector $p_i$ to each token, $x_i + p_i$. Which vector?
#
# ## From a counter to waves
#
# Not the number $i$ itself: at position 1,000 it would drown the token. Write it in binary, and every entry is 0 or 1. But 7 is 0111 and 8 is 1000: two neighbours that differ in every digit. The digits jump. So make them glide.

# %% tags=["hide-input"]
figure, (left, right) = plots.panels(
    "A counter's digits are square waves; sines are smooth ones",
    ["digits of i: each flips half as often", "sines: each half as fast"],
    size=(8.6, 3.2),
)
steps, fine = torch.arange(17), torch.linspace(0, 16, 400)
for digit, colour in zip(range(4), plots.COLOURS):
    left.step(steps, (steps // 2**digit % 2) * 0.7 - digit, where="post", color=colour)
    wave = -torch.sin(torch.pi * fine / 2**digit)
    right.plot(fine, 0.35 * wave + 0.35 - digit, color=colour)
    left.text(16.3, 0.2 - digit, f"{2**digit}s", color=colour, size="small")
for ax in (left, right):
    ax.set(xlabel="position i", yticks=[], xlim=(0, 17.5), xticks=range(0, 17, 2))
    ax.spines["left"].set_visible(False)
plots.show(
    figure,
    "Left, the four binary digits of the numbers 0 to 16 as square waves: the ones flip at every "
    "step, the twos at every second, the fours at every fourth, the eights at every eighth. Right, "
    "four sine waves with the same wavelengths 2, 4, 8 and 16.",
)

# %% [markdown]
# A digit flips at a fixed rate, and each digit at half the rate of the one before. Smoothed, it is a sine wave. One sine is ambiguous, because it takes each value once on its way up and once on its way down; with the cosine beside it, the pair is the hand of a clock. So a position is a clock with $d/2$ hands, from fast to slow.

# %% [markdown]
# Vaswani et al. choose the speeds $\theta_c$, in radians a step, as a geometric sequence, like the counter's (for $d = 64$ the ratio is 1.33, not 2):
#
# $$p_{i,2c}=\sin(\theta_c\,i)\qquad p_{i,2c+1}=\cos(\theta_c\,i)\qquad\theta_c=10000^{-2c/d}\qquad c=0,\dots,\tfrac d2-1$$
#
# The **wavelength** of hand $c$, that is, how many positions a full turn takes, is $2\pi/\theta_c$.

# %%
# exercise: positions/sinusoidal

# %%
check("positions/sinusoidal", sinusoidal)

# %%
sinusoidal = mine("positions/sinusoidal")

# %% tags=["hide-input"]
waves = sinusoidal(101, 64)
figure, (left, right) = plots.panels(
    "Each pair of columns turns more slowly than the one before it",
    ["sines: columns 0, 2, 4, …", "cosines: columns 1, 3, 5, …"],
    size=(7.4, 3.4),
)
for ax, first_column in ((left, 0), (right, 1)):
    columns = waves[:, first_column::2]
    image = ax.imshow(
        columns, aspect="auto", vmin=-1, vmax=1, cmap="RdBu_r", interpolation="nearest"
    )
    ax.set(xlabel="pair c")
left.set(ylabel="position i")
figure.colorbar(image, ax=[left, right], label="value")
plots.show(
    figure,
    "Two heat maps of 101 positions by 32 pairs, sines and cosines. On the left the stripes are a "
    "few positions high; from about pair 25 on a column hardly changes: sines near 0, cosines "
    "near 1.",
)

# %% [markdown]
# A row of both maps is the vector of one position. Attention compares by dot products, so how similar are two positions? By $\cos(a-b)=\cos a\cos b+\sin a\sin b$, in each pair of columns,
#
# $$p_i\cdot p_j=\sum_{c}\cos\big(\theta_c\,(i-j)\big)$$
#
# Only the distance counts. L3 (lesson 00 lists the lectures) illustrates: "pos 4 is 'closer' to pos 7 than pos 17". **Does the similarity fall with every further step?**

# %%
guess = None  # "always" or "not always"

# %%
similarity = dot_scores(waves, waves)
falling = similarity[50, 50:].diff() < 0
reveal(guess, "always" if falling.all() else "not always")
print(f"4 and 7: {similarity[4, 7]:.1f}, 4 and 17: {similarity[4, 17]:.1f}")
assert falling[:5].all() and not falling[5] and similarity[4, 7] > similarity[4, 17]
assert (similarity[20:80, 20:80] - similarity[21:81, 21:81]).abs().max() < 1e-3

# %% [markdown]
# L3's example is right, but the fall is not steady: a sum of cosines wavers on its way down. It is also symmetric. To prefer the left to the right, a model needs $W_Q$ and $W_K$: the next section shows how.

# %% [markdown]
# ### Box: the first exponent
#
# > **Where the lectures disagree (D04 in TOPICS.md).** L1 to L4 print the first exponent as $2\cdot1/d$; L5 and the paper begin with 0. The paper promises wavelengths from $2\pi$ to $10000\cdot2\pi$. With L5's exponents the short end is right, with the others' the long end. The authors' own code (tensor2tensor), and fairseq's after it, keep both: they divide $c$ by $d/2-1$. Both also put all sines into the left half and all cosines into the right.

# %% tags=["nbval-check-output"]
c = torch.arange(32.0)
exponents = {"paper, L5": c / 32, "L1 to L4": (c + 1) / 32, "tensor2tensor": c / 31}
for name, exponent in exponents.items():
    ends = 2 * 10000 ** exponent[[0, -1]]
    print(f"{name:14} from {ends[0]:.2f} pi to {ends[1]:.0f} pi")

# %% tags=["hide-input"]
promised = torch.tensor([1.0, 10000.0])
kept_ends = {name: 10000 ** x[[0, -1]] / promised for name, x in exponents.items()}
assert torch.allclose(kept_ends["tensor2tensor"], torch.ones(2), rtol=1e-4)
assert abs(kept_ends["paper, L5"][0] - 1) < 1e-6 and kept_ends["paper, L5"][1] < 0.8
assert abs(kept_ends["L1 to L4"][1] - 1) < 1e-4 and kept_ends["L1 to L4"][0] > 1.3

# %% [markdown]
# Your code follows the paper. The order of the columns does not matter to a model: the token vectors, to which they are added, are learned in any order.

# %% [markdown]
# ## A shift is a rotation
#
# Why waves, and not random vectors? Because of a promise: "three to the left" can be the same matrix everywhere. When three hours pass, each hand of a clock turns by its own fixed angle, whatever the time was. With $a=\theta_c\,i$ and $b=\theta_c\,k$, angle addition says that
#
# $$\big(\sin(a+b)\;\;\cos(a+b)\big)=\big(\sin a\;\;\cos a\big)\begin{pmatrix}\cos b&-\sin b\\\sin b&\cos b\end{pmatrix}$$

# %% [markdown]
# So $p_{i+k}=p_i\,M_k$, where $M_k$ has one such block for each pair of columns. It depends on the shift $k$ and not on $i$, and it is a rotation: $M_kM_k^T=I$. Build it.

# %%
# exercise: positions/shift_matrix

# %%
check("positions/shift_matrix", shift_matrix)

# %%
shift_matrix = mine("positions/shift_matrix")

# %% tags=["nbval-check-output"]
queries = waves @ shift_matrix(-1, 64)
print("positions 5 to 9 score highest with", (queries @ waves.T).argmax(-1)[5:10].tolist())
for factor in (1, 30):
    found = softmax(factor * queries @ waves.T / 64**0.5).diagonal(-1).mean()
    x = waves + waves.std() * torch.randn(waves.shape, generator=torch.Generator().manual_seed(0))
    itself = softmax(factor * x @ shift_matrix(-1, 64) @ x.T / 64**0.5).diagonal().mean()
    print(f"W_Q = {factor} M: weight of the left neighbour {found:.2f}", end="; ")
    print(f"with random tokens added, of the token itself {itself:.2f}")

# %% tags=["hide-input"]
assert itself > 0.95
assert found > 0.95 and softmax(queries @ waves.T / 8).diagonal(-1).mean() < 0.06
assert torch.equal((queries @ waves.T).argmax(-1)[1:], torch.arange(100))
assert torch.allclose(waves[:97] @ shift_matrix(3, 64), waves[3:100], atol=1e-4)
assert torch.allclose(shift_matrix(3, 64) @ shift_matrix(3, 64).T, torch.eye(64), atol=1e-5)

# %% [markdown]
# One matrix, $M_{-1}$ in the place of $W_Q$, gives every position but the first its highest score at its left neighbour, at any length. The lead is small, so $W_Q$ has to be large: with $30\,M_{-1}$ the neighbour gets nearly all of the weight. So positions alone *can* give a relation that holds everywhere. But attention sees $x_i + p_i$, and with random tokens as large as $p_i$ a token mostly finds itself. $W_Q$ and $W_K$ must keep tokens out: possible, if tokens and positions use different directions.

# %% [markdown]
# ## Or learn the vectors
#
# BERT and GPT-2 prescribe nothing. A table has a row for each position, $x_i \to x_i + E_i$, and is trained with the rest: "Most systems use this!", said L1 in 2021. There is no row past the last, so such a model refuses longer texts. (Where training texts are short, late rows are hardly trained: see the exploration on [tables](explorations/04_tables.ipynb).)
#
# What does such a table learn? Here is the one of MiniLM, an encoder with 512 rows.

# %%
needs("minilm")

# %% tags=["once"]
from course_lib.pretrained import minilm

encoder = minilm.load()
learned = encoder.positions.table.detach()[1:]  # row 0 always has the same token, [CLS]
tokens = encoder.words.weight.detach()
print("positions", tuple(learned.shape), "tokens", tuple(tokens.shape))

# %% tags=["once", "hide-input"]
centred, words = learned - learned.mean(0), tokens - tokens.mean(0)
unit = nn.functional.normalize(centred, dim=-1)
maps = {"waves": sinusoidal(101, 64) / 32**0.5, "MiniLM's table": unit[:101]}
figure, panels = plots.panels(
    "Near positions are similar, in waves and in a learned table", list(maps), size=(8, 3.5)
)
for ax, table in zip(panels, maps.values()):
    image = ax.imshow(table @ table.T, vmin=-1, vmax=1, cmap="RdBu_r", interpolation="nearest")
    ax.set(xlabel="position j")
panels[0].set(ylabel="position i")
figure.colorbar(image, ax=panels, label="cosine of $p_i$ and $p_j$")
by_distance = [round((unit[d:] * unit[: 511 - d]).sum(-1).mean().item(), 2) for d in (1, 10, 100)]
assert by_distance[0] > 0.75 > 0.35 > by_distance[1] > by_distance[2] > 0
plots.show(
    figure,
    "Two heat maps of the cosine between positions, about a hundred of each. Waves: a dark "
    "diagonal that fades, with stripes beside it. MiniLM's table, with the mean row taken off: a "
    f"dark diagonal too, with stripes that change sign. Its mean cosine is {by_distance[0]} at distance 1, "
    f"{by_distance[1]} at 10 and {by_distance[2]} at 100.",
)

# %% [markdown]
# No formula gave MiniLM these rows. They say that neighbours are alike, and have stripes as well. And why does adding a position not spoil the token, in the same 384 columns? Compare cosines of token rows with position rows, each less its mean row. (Left in, the mean row of the positions, which all of them share, would decide the answer.) **For random directions the mean size of the cosine is 0.04. Is it larger or smaller here?**

# %%
guess = None  # "larger" or "smaller"

# %% tags=["once", "hide-input"]
cosines = nn.functional.normalize(words[1000::29], dim=-1) @ unit.T
random_rows = nn.functional.normalize(torch.randn(2, 500, 384, generator=generator), dim=-1)
found = cosines.abs().mean().item(), (random_rows[0] @ random_rows[1].T).abs().mean().item()
_, size, directions = torch.linalg.svd(centred, full_matrices=False)
needed = int(((size**2).cumsum(0) / size.square().sum() < 0.9).sum()) + 1
inside = ((words @ directions[:needed].T).square().sum() / words.square().sum()).item()
reveal(guess, "smaller" if found[0] < found[1] else "larger")
print(f"mean size of the cosine: {found[0]:.3f}, of random directions {found[1]:.3f}")
raw = nn.functional.normalize(tokens[1000::29], dim=-1) @ nn.functional.normalize(learned, dim=-1).T
print(f"with the mean rows left in: {raw.abs().mean():.3f}")
print(f"90 % of the positions' variance is in {needed} directions of 384,")
print(
    f"which have {inside:.1%} of the tokens' variance; {needed} random ones have {needed / 384:.1%}"
)


def named(turn):
    """Return the share of positions that sums of token and position give back, if turned so."""
    pick = torch.randint(len(words), (2000,), generator=generator)
    places = torch.randint(len(centred), (2000,), generator=generator)
    sums = words[pick] + centred[places] @ turn
    basis = directions[:needed] @ turn
    nearest = torch.cdist(sums @ basis.T, centred @ turn @ basis.T).argmin(-1)
    return (nearest == places).float().mean().item()


turn = torch.linalg.qr(torch.randn(384, 384, generator=generator)).Q
own, turned = named(torch.eye(384)), named(turn)
print(f"positions found again in sums of token and position: {own:.1%};")
print(f"with the table turned at random: {turned:.1%}")
assert own > 0.99 and 0.85 < turned < 0.98 and 0.055 < raw.abs().mean() < 0.07
assert found[0] < 0.02 and abs(found[1] - 0.04) < 0.005 and needed == 10 and inside < 0.005

# %% [markdown]
# A third of the random value. Ten directions hold 90 % of the positions' variance, and almost nothing of the tokens': 0.2 %. From sums of a token and a position, the nearest row in those ten names the position. But nine in ten are named with the table turned at random, too: in 384 columns there is room, and training has tidied it. (One model.)

# %%
needs()

# %% [markdown]
# ## Rotary, derived
#
# Both answers so far mark the *place* of a token. But a language cares for distance: "the word before" is the same at place 3 and at place 300. So turn the question round. Ask for a score that depends on $i-j$ alone, and see which answers are left.
#
# Let $f(q,i)$ be the query at position $i$, and $f(k,j)$ a key. Let $f$ be linear, $f(q,i)=q\,R_i$ with a matrix $R_i$, and $R_0=I$. Ask for two things, for all $q$ and $k$: **norms stay**, and **the score depends on $i-j$ alone**.

# %% [markdown]
# The first says $R_iR_i^T=I$: no stretching (so does the second, if $R_0=I$). The second says that $(qR_i)\cdot(kR_j)=q\,R_iR_j^T\,k^T$ is the same for all pairs with the same $i-j$. Move both one step back from $(i+1, 1)$ to $(i, 0)$:
#
# $$R_{i+1}R_1^T=R_iR_0^T=R_i\quad\Rightarrow\quad R_{i+1}=R_i\,R_1\quad\Rightarrow\quad R_i=R_1^{\,i}$$
#
# One step is one fixed matrix, repeated.

# %% [markdown]
# And every matrix that keeps norms is, in a suitable basis, a set of rotations of planes (or a reflection, which we leave out). $W_Q$ and $W_K$ are learned and can turn to that basis. So up to the choice of the angles nothing is free: *pairs of columns turn by an angle proportional to the position*. These are the hands of the clock again. This is **rotary position embedding** (RoPE, Su et al. 2021). Its angles are those of the waves:
#
# $$R_i=\begin{pmatrix}\cos\theta_ci&\sin\theta_ci\\-\sin\theta_ci&\cos\theta_ci\end{pmatrix}\text{ for each pair}\qquad(q_iR_i)\cdot(k_jR_j)=q_i\,R_{i-j}\,k_j^T$$

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
# Values are not turned. Which columns form a pair is free: Su et al. take neighbours, $2c$ and $2c+1$; your code takes $c$ and $c+d/2$, as most published models do, SmolLM2 in lesson 09 among them.
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
# Moving both by a thousand positions changes nothing. (Does a score *fall* with distance? Su et al. show only that a bound on it does.)
#
# ## Find the bug
#
# A model that writes text keeps old keys and brings *one* new query at a time. A colleague's rotary attention trains well, and writes nonsense. In training there are as many queries as keys. One line is wrong. Find it, and mend it.

# %%
# exercise: positions/mend_rotary

# %%
check("positions/mend_rotary", rotary_attention)

# %% [markdown]
# ## Other answers
#
# Once only the distance should count, it can also go straight into the score. Four more answers that you will meet; the exploration on [distances](explorations/04_distances.ipynb) builds two of them:
#
# | | score of query $i$ and key $j$, without the scale |
# |:-|:-|
# | a vector for each distance; beyond a limit, here 8, all share one (Shaw et al. 2018) | $q_i\cdot(k_j+a_{j-i})$ |
# | a learned number for each range of distances (T5, Raffel et al. 2020) | $q_i\cdot k_j+\beta_{j-i}$ |
# | a penalty (ALiBi, Press et al. 2022); $m_h$ is fixed for each head | $q_i\cdot k_j-m_h\lvert i-j\rvert$ |
# | nothing: a causal mask alone (NoPE, Haviv et al. 2022) | $q_i\cdot k_j$ |

# %% [markdown]
# ## Past the trained length
#
# L1 on waves: "Maybe can extrapolate to longer sequences as periods restart!", and two lines later: "the extrapolation doesn't really work!" Test it. A small language model (two layers, Shakespeare by the character; lessons 05 to 10 build it) trains on 32 characters, with each scheme (a learned table could not read on): 600 steps, each at the best of five learning rates, three seeds. Then it reads 256.
#
# **Two of the six keep at places 97 to 128 the loss (cross-entropy in *nats*: natural logarithms) that they have at 17 to 32. Which?**

# %%
guess = None  # two of "none", "sinusoidal", "Shaw", "ALiBi", "rotary", "rotary, base 500,000"

# %% tags=["hide-input"]
far = results.load("extrapolation")["figures"]
schemes = ["none", "sinusoidal", "Shaw", "ALiBi", "rotary", "rotary, base 500,000"]
REPAIRED, LONG = "rotary, slow pairs interpolated", "rotary, trained on 256"


def curves(name, what):
    """Return the loss of each seed in windows of 32 characters."""
    runs = torch.tensor([run[what] for run in far["runs"][name]])
    return runs.unflatten(-1, (-1, 2)).mean(-1)


def at_end(name, shown):
    """Return the mean loss of the last 32 characters, with so many shown."""
    if shown == 256:
        return curves(name, "all")[:, -1].mean().item()
    column = far["shown"].index(shown)
    return sum(run["by shown"][column] for run in far["runs"][name]) / 3


rise = {
    name: curves(name, "all")[:, 3].mean() - sum(run["all"][1] for run in far["runs"][name]) / 3
    for name in schemes
}
reveal(guess, [name for name in schemes if rise[name] < 0.1])
print("rise:", {name: round(float(nats), 2) for name, nats in rise.items()})
assert max(rise["Shaw"], rise["ALiBi"]) < 0.0 and min(rise["none"], rise["sinusoidal"]) > 0.1
assert min(rise["rotary"], rise["rotary, base 500,000"]) > 0.9

# %% tags=["hide-input"]
title = (
    "No model trained on 32 characters gains from text farther away:\n"
    "with the last 32 alone each does as well or better"
)
figure, grid = plots.plt.subplots(2, 4, figsize=(10, 5), sharex=True, sharey=True)
figure.suptitle(title, x=0.01, ha="left", size="medium")
places = torch.arange(16, 256, 32)
for ax, name in zip(grid.flat, [*schemes, REPAIRED, LONG]):
    last = curves("rotary" if name == REPAIRED else name, "last")
    trained = 256 if name == LONG else far["trained on"]
    ax.axvspan(0, trained, color="0.88", zorder=0)
    for runs, at, style in ((curves(name, "all"), places, "-"), (last, places[1:], "--")):
        colour = plots.COLOURS[style == "--"]
        ax.fill_between(at, runs.amin(0), runs.amax(0), step="mid", color=colour, alpha=0.2)
        ax.plot(at, runs.mean(0), style, color=colour, drawstyle="steps-mid")
    ax.set_title(name.replace(", ", ",\n"), size="small")
    ax.set(xlim=(0, 256), ylim=(1.7, 4.1), xticks=[32, 128, 256])
grid[0][0].text(70, 2.75, "all shown", color=plots.COLOURS[0], size="small")
grid[0][0].text(70, 2.08, "last 32 shown", color=plots.COLOURS[1], size="small")
grid[1][2].text(70, 2.08, "last 32, not repaired", color=plots.COLOURS[1], size="small")
for ax in grid[:, 0]:
    ax.set(ylabel="loss (nats)")
for ax in grid[1]:
    ax.set(xlabel="place")
said = [f"{name} {at_end(name, 256):.2f} and {at_end(name, 32):.2f}" for name in [*schemes, LONG]]
plots.show(
    figure,
    "Eight panels of loss against the place of the character, trained places in grey. A solid line "
    "for the whole text, a dashed one for its last 32 characters. Solid lines of sinusoidal and "
    "rotary jump up behind 32, that of the larger base behind 96, that of no positions rises a "
    "little, those of Shaw and ALiBi stay level. All dashed lines are level, and as low or lower. "
    f"Loss of the last 32 characters, all shown and last 32 shown: {'; '.join(said)}.",
)

# %% [markdown]
# Grey is what was trained. Sinusoids and rotary fail; rotary with base 500,000, Llama 3's, fails later; Shaw and ALiBi hold; and no positions at all, though worse at 32, do better beyond 128 than sinusoids and rotary. The seventh panel is for the next section; the eighth model was trained on all 256.

# %% [markdown]
# Now the dashed lines, the control that the usual picture lacks: the same models, with the far text taken away.

# %% tags=["hide-input"]
print("loss of the last 32 of 256 characters, by how many before each are shown")
print(f"{'':24}{'4':>7}{'8':>7}{'32':>7}{'all':>7}")
for name in [*schemes, LONG]:
    print(f"{name:24}", *[f"{at_end(name, shown):6.2f}" for shown in (4, 8, 32, 256)])
for name in schemes:
    assert (curves(name, "last") < curves(name, "all")[:, 1:] + 0.02).all(), "as well or better"
    assert abs(at_end(name, 8) - at_end(name, 4)) < 0.06
assert 0.025 < at_end(LONG, 8) - at_end(LONG, 256) < 0.035
assert [round(at_end(x, y), 2) for x, y in ((REPAIRED, 256), ("rotary", 32))] == [2.87, 1.97]
for name in ("Shaw", "ALiBi"):
    assert abs(at_end(name, 256) - at_end(name, 8) - 0.05) < 0.01
for name in [*schemes, LONG]:
    assert at_end(name, 8) < min(at_end(name, shown) for shown in (16, 32, 256)) + 0.03
far_out = {name: curves(name, "all")[:, 4:].mean().item() for name in schemes}
assert far_out["none"] < min(far_out["sinusoidal"], far_out["rotary"]) - 0.3
assert min(run["all"][1] for run in far["runs"]["none"]) > 2.3

# %% [markdown]
# So "holds" does not mean "uses". About eight characters are enough for every scheme here, and for the model that was trained on 256. Shaw and ALiBi keep their level; they gain nothing from far characters: with eight characters alone they are better by 0.05 than with 256. Even the model trained on 256, after 600 steps, gains only 0.03 beyond eight characters: this test cannot show that a scheme uses a long text. (Press et al. 2022 find that ALiBi's gain from longer inputs comes largely from the early tokens of each window.)

# %% [markdown]
# ## A repair, and a task that needs it
#
# A model was trained on $L$ tokens and must read $L'$. Beyond $L$ the slow hands of rotary (pairs of columns with a low *frequency* $\theta_c$) point where they never pointed in training. **Position interpolation** (Chen et al. 2023) divides all positions by $s=L'/L$. But then the fast hands, which tell neighbours apart, turn too slowly. **NTK-by-parts** (in YaRN, Peng et al. 2024, which blends the two; we switch) slows only the hands that did not complete a turn within $L$:
#
# $$\text{all: }\theta_c\to\frac{\theta_c}{s}\qquad\text{slow only: }\theta_c\to\frac{\theta_c}{s}\text{ if }\frac{2\pi}{\theta_c}>L$$

# %% [markdown]
# In the figure above, repaired rotary (seventh panel, solid) loses to the unrepaired model that is shown only 32 characters (dashed; 2.87 to 1.97 at the end). It spoils near text too: look at places 1 to 32. So judge it where far text is needed. In 256 random letters, an early `!` marks the letter after it. At each `?`, name that letter. The model has to know order (what follows the `!`) and to reach far. It trains on 32 tokens.

# %% tags=["training"]
from course_lib.instruments.position_schemes import Rotary

with training.seeded(SEED):
    model = position_models.CausalModel(Rotary(), position_models.LETTERS + 2)
batches = position_models.marked(32, 32, SEED, first=8)
budget = {"steps": 800, "learning_rate": 0.005, "seconds": 30}
history = training.train(model, batches, position_models.naming_loss, **budget)

# %% [markdown]
# **Without further training, which way of reading is the best at places 129 to 256, and which the worst: the model as it was, its last 32 tokens alone shown, all pairs interpolated, slow pairs interpolated, the base raised to 500,000 when reading, or every distance above 31 read as 31?**

# %%
# two of "as it was", "last 32", "all pairs", "slow pairs", "base 500,000", "31 at most"
guess = None

# %% tags=["hide-input"]
kept = results.load("far_token")["figures"]
mean = {name: torch.tensor(runs).mean(0) for name, runs in kept["right"].items()}
rows = {
    "as it was": "as it was",
    "last 32": "as it was, last 32 shown",
    "all pairs": "all pairs interpolated",
    "slow pairs": "slow pairs interpolated",
    "base 500,000": "base 500,000",
    "31 at most": "distances clamped",
}
by_share = sorted(rows, key=lambda name: mean[rows[name]][2])
reveal(guess, (by_share[-1], by_share[0]))
rows["as it was,\n50 steps on 256"] = "as it was, 50 steps"
rows |= {"trained on 256 alone": "trained on 256", "no positions": "no positions"}
figure, ax = plots.axes("", "share right (mean and three seeds)", "", size=(8, 3.8))
ax.set_title(
    "For one far letter, cutting text off does not help; clamping distances does", loc="left"
)
for y, row in enumerate(rows.values()):
    for part, colour in ((1, plots.COLOURS[0]), (2, plots.COLOURS[1])):
        shares = [run[part] for run in kept["right"][row]]
        at = y + 0.4 * (part - 1.5)
        ax.barh(at, sum(shares) / 3, 0.34, color=colour, alpha=0.45)
        ax.plot(shares, [at] * 3, "o", color=colour, markersize=4)
ax.axvline(kept["chance"], color="0.4", linestyle="--", linewidth=1)
ax.text(kept["chance"] + 0.01, -0.62, "chance", size="small", color="0.3")
for part, words_, colour in zip((1, 2), ("33 to 128", "129 to 256"), plots.COLOURS):
    ax.text(1.02, 0.4 * (part - 1.5), words_, color=colour, size="small", va="center")
ax.set_yticks(range(len(rows)), rows)
ax.set(xlim=(0, 1.19), ylim=(len(rows) - 0.5, -0.85), xticks=[0, 0.25, 0.5, 0.75, 1])
said = [f"{row} {mean[row][1]:.2f} and {mean[row][2]:.2f}" for row in rows.values()]
plots.show(
    figure,
    "Bars of the share named right at places 33 to 128 and 129 to 256: "
    f"{'; '.join(said)}. Chance is 0.06.",
)

# %% tags=["training", "hide-input"]
tokens, wanted = next(position_models.marked(256, 64, seed=7, first=8))


def beyond(shown=256, **way):
    """Return the share that your model names right at places 129 to 256."""
    vars(model.scheme).update({"stretch": 1.0, "seen": 0, "clamp": None} | way)
    right = position_models.answers(model, tokens, shown) == wanted
    return round(right[:, 128:][wanted[:, 128:] >= 0].float().mean().item(), 2)


came = {"as it was": beyond(), "last 32": beyond(32), "slow pairs": beyond(stretch=8.0, seen=32)}
claim = "beyond 128 your model names over 0.5 with slow pairs, and below 0.2 with the last 32"
training.expect(claim, came["slow pairs"] > 0.5 and came["last 32"] < 0.2, came, model)

# %% tags=["hide-input"]
right = kept["right"]
for plain, slow in zip(right["as it was"], right["slow pairs interpolated"]):
    assert slow[2] > plain[2] + 0.15, "in each seed"
assert max(run[2] for run in right["as it was, last 32 shown"]) < 0.1
assert min(run[2] for run in right["distances clamped"]) > 0.99
assert min(run[2] for run in right["as it was, 50 steps"]) > 0.9
assert min(run[2] for run in right["no positions"]) > 0.99
assert max(run[2] for run in right["trained on 256"]) < 0.5
for name, share in (
    ("as it was", 0.57),
    ("slow pairs interpolated", 0.91),
    ("all pairs interpolated", 0.32),
    ("as it was, 50 steps", 0.97),
    ("slow pairs interpolated, 50 steps", 0.96),
):
    assert round(mean[name][2].item(), 2) == share, name
for name, by_seed in (
    ("slow pairs interpolated", [0.98, 0.9, 0.84]),
    ("base 500,000", [0.96, 0.96, 0.6]),
):
    assert [round(run[2], 2) for run in right[name]] == by_seed

# %% [markdown]
# Now cutting is useless: what is asked for is gone. Interpolating the slow pairs takes the mean from 0.57 to 0.91 without training, and helps in each seed (0.98, 0.90, 0.84). A larger base reaches 0.96, 0.96 and 0.60, so these runs do not rank the two. Interpolating all pairs makes it worse. Reading every distance above 31 as 31, a limit like Shaw's, gives 1.00 in all three: no far *order* is asked for.

# %% [markdown]
# But 50 further steps on long texts bring the *unrepaired* model to 0.97, more than the repair (with the repair *and* 50 steps: 0.96). And no positions at all never failed: here the causal mask tells enough. (On Shakespeare, in 600 steps, not.) Training on 256 tokens *alone*, 400 steps with eight times the tokens each, is no upper bound: it has not learned the task yet.

# %% [markdown]
# ## What to remember
#
# Self-attention without a mask does not know the order of its tokens. A position can enter at the input, as a rotation of query and key, or in the score.
#
# | | |
# |:-|:-|
# | waves | $p_{i,2c}=\sin\theta_ci,\ p_{i,2c+1}=\cos\theta_ci,\ \theta_c=10000^{-2c/d}$ |
# | their dot product | $p_i\cdot p_j=\sum_c\cos\theta_c(i-j)$ |
# | a shift | $p_{i+k}=p_iM_k$, a rotation in each pair of columns |
# | rotary, asked for | $(qR_i)\cdot(kR_j)$ depends on $i-j$, norms stay $\Rightarrow R_i=R_1^{\,i}$ |
# | rotary | $(q_iR_i)\cdot(k_jR_j)=q_iR_{i-j}k_j^T$ |
# | interpolation | $\theta_c\to\theta_c/s$, $s=L'/L$, for pairs with $2\pi/\theta_c>L$ |
#
# A level loss beyond the trained length does not show that a model *uses* the long text. Show it less, and measure again.

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
# <details><summary>3. A learned table has 512 rows. What happens at token 513?</summary>
#
# There is no row for it, so the layer refuses the text. It has to be cut.
# </details>
#
# <details><summary>4. Which two demands lead to rotary positions, and what did we assume besides?</summary>
#
# Norms stay, and scores depend on the distance alone. Assumed: the position acts by a matrix, the same for queries and keys, with $R_0=I$, and without a reflection.
# </details>
#
# <details><summary>5. A paper shows that the loss of its scheme stays level from 2,048 to 16,384 tokens. What do you ask for?</summary>
#
# The same model with its last 2,048 tokens alone, and a task that needs far text.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 05 adds the next two parts of the Transformer's block: a feed-forward network, and a mask that hides the future. Beside this lesson there are explorations: [the score by distance](explorations/04_distances.ipynb), [tables of positions](explorations/04_tables.ipynb) and [positions in a tree](explorations/04_trees.ipynb).

# %% [markdown]
# Vaswani et al. 2017, section 3.5 (waves); Su et al. 2021 (rotary, with the derivation); Fleetwood 2024 (from the counter to rotary, in 15 minutes); Shaw et al. 2018; Raffel et al. 2020 (T5); Press et al. 2022 (ALiBi); Haviv et al. 2022 and Kazemnejad et al. 2023 (no positions); Chen et al. 2023 and Peng et al. 2024 (interpolation). Lectures: L1, L2, L3, L4, L5.
