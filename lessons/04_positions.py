# %% [markdown]
# # 04 · Positions
#
# **70 minutes · after lesson 03 · needs `minilm` (83.5 MB) and `shakespeare` (5.4 MB)**
#
# "The critics praised the writers" and "the writers praised the critics" have the same words and say different things. **How can a model that sees all tokens at once know their order?**
#
# Most language models of 2026 answer with a rotation. You derive it, build it and train a model with it. Then you let that model read on, beyond the length that it was trained on.

# %%
import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor, nn
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import characters, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, position_models, results, training

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


def praised(tokens):
    attended = scaled_dot_product_attention(tokens, tokens, tokens)
    return [round(number, 3) for number in attended[2].tolist()]


print(one, praised(x), other, praised(y), sep="\n")

# %% [markdown]
# The two are the same. *Praised* meets the same five words with the same scores, and a sum does not depend on the order of its terms. If a permutation matrix $P$ shuffles the tokens, it shuffles the outputs in the same way. This is **permutation equivariance**:
#
# $$f(PX) = P\,f(X)$$
#
# A causal mask breaks it, since then each token sees a different set: itself and those before it. Without a mask, order has to be put in.

# %% [markdown]
# ## Three places to put it
#
# A position can enter at three points on the way from a token to a score:

# %% tags=["hide-input"]
from course_lib.instruments.pictures import positions as pictures

pictures.three_places()

# %% [markdown]
# The Transformer of 2017 uses the first: leave attention as it is, and add a vector $p_i$ to each token, $x_i + p_i$. Which vector?
#
# ## From a counter to waves
#
# Not the number $i$ itself: at position 1,000 it would drown the token. Write it in binary, and every entry is 0 or 1. But 7 is 0111 and 8 is 1000: neighbours that differ in every digit. The digits jump, so make them glide.

# %% tags=["hide-input"]
pictures.counter_and_waves()

# %% [markdown]
# Each digit flips at half the rate of the one before. Smoothed, it is a sine wave, here $-\sin$. One sine is ambiguous: it takes each value once on its way up and once on its way down. With the cosine beside it, the pair is the hand of a clock. So a position is a clock with $d/2$ hands, from fast to slow.

# %% [markdown]
# Vaswani et al. choose the speeds $\theta_c$, in radians a step, as a geometric sequence, like the counter's:
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

# %% [markdown]
# Add your waves to the words of the opening. Does *praised* still come out the same?

# %% tags=["nbval-check-output"]
waves = sinusoidal(5, 6)
print(one, praised(x + waves), other, praised(y + waves), sep="\n")

# %% [markdown]
# It does not. This is how your waves look, for a hundred positions:

# %% tags=["hide-input"]
waves = sinusoidal(101, 64)
pictures.waves(waves)

# %% [markdown]
# A row of both maps is the vector of one position. Attention compares by dot products, so how similar are two positions? By $\cos(a-b)=\cos a\cos b+\sin a\sin b$, in each pair of columns,
#
# $$p_i\cdot p_j=\sum_{c}\cos\big(\theta_c\,(i-j)\big)$$
#
# Only the distance counts, and it counts the same to the left and to the right. To prefer one side, a model needs $W_Q$ and $W_K$.

# %% [markdown]
# ## A shift is a rotation
#
# Why waves, and not random vectors? Because "three to the left" is then the same matrix everywhere. When three hours pass, each hand of a clock turns by its own fixed angle, whatever the time was. With $a=\theta_c\,i$ and $b=\theta_c\,k$, angle addition says that
#
# $$\sin(a+b)=\sin a\cos b+\cos a\sin b\qquad\cos(a+b)=\cos a\cos b-\sin a\sin b$$

# %% [markdown]
# **Which $2\times2$ matrix, made of $b$ alone, turns the row $(\sin a\;\;\cos a)$ into the row $(\sin(a+b)\;\;\cos(a+b))$?** With one such block for each pair of columns you have a matrix $M_k$ that depends on the shift $k$ and not on $i$, and $p_{i+k}=p_i\,M_k$. Find it.

# %%
# exercise: positions/shift_matrix

# %%
check("positions/shift_matrix", shift_matrix)

# %%
shift_matrix = mine("positions/shift_matrix")

# %% [markdown]
# Each block of your matrix is a rotation, so $M_kM_k^T=I$:
#
# $$\big(\sin(a+b)\;\;\cos(a+b)\big)=\big(\sin a\;\;\cos a\big)\begin{pmatrix}\cos b&-\sin b\\\sin b&\cos b\end{pmatrix}$$

# %% tags=["nbval-check-output"]
queries = waves @ shift_matrix(-1, 64)
print("positions 5 to 9 score highest with", dot_scores(queries, waves).argmax(-1)[5:10].tolist())

# %% [markdown]
# With your matrix $M_{-1}$ in between, each position but the first scores highest with its left neighbour, at any length. In a layer, though, the input is $x_i+p_i$, and the score has four terms. With $W=W_QW_K^T$,
#
# $$(x_i+p_i)\,W\,(x_j+p_j)^T=\underbrace{x_iWx_j^T}_{\text{token, token}}+\underbrace{x_iWp_j^T}_{\text{token, position}}+\underbrace{p_iWx_j^T}_{\text{position, token}}+\underbrace{p_iWp_j^T}_{\text{position, position}}$$
#
# You have looked at the last one alone. But one $W$ serves all four, and the two in the middle mix tokens with positions. Keep them in mind for rotary.

# %% [markdown]
# ## Or learn the vectors
#
# BERT and GPT-2 prescribe nothing. A table has a row for each position, $x_i \to x_i + E_i$, and is trained with the rest. There is no row past the last, so such a model refuses longer texts. What does such a table learn? Here is the one of MiniLM, an encoder with 512 rows.

# %%
needs("minilm")

# %% tags=["once"]
from course_lib.pretrained import minilm

learned = minilm.load().positions.table.detach()[1:]  # row 0 always has the same token, [CLS]
random = torch.randn(learned.shape, generator=torch.Generator().manual_seed(0))
tables = {"your waves": sinusoidal(511, 64), "MiniLM's table": learned, "a random table": random}
pictures.similar_positions({name: table - table.mean(0) for name, table in tables.items()})

# %% [markdown]
# Each table is centred: its mean row is subtracted. No formula gave MiniLM its rows. Before training such a table is random, as on the right. After it neighbours are alike. Waves and learned rows both have stripes: with distance the likeness falls and rises again.

# %% [markdown]
# ## Rotary, derived
#
# Both answers so far mark the *position* of a token. But in language distance matters: "the word before" means the same at position 3 and at position 300. So ask for a score that depends on $i-j$ alone, and see which answers are left.
#
# Let $f(q,i)$ be the query at position $i$, and $f(k,j)$ a key. Let $f$ be linear, $f(q,i)=q\,R_i$ with a matrix $R_i$, and $R_0=I$. Ask for two things, for all $q$ and $k$: **norms stay**, and **the score depends on $i-j$ alone**.

# %% [markdown]
# The first says $R_iR_i^T=I$: no stretching. It also follows from the second, with $i=j$. The second says that $(qR_i)\cdot(kR_j)=q\,R_iR_j^T\,k^T$ is the same for all pairs with the same $i-j$. Compare the pairs $(i+1, 1)$ and $(i, 0)$:
#
# $$R_{i+1}R_1^T=R_iR_0^T=R_i\quad\Rightarrow\quad R_{i+1}=R_i\,R_1\quad\Rightarrow\quad R_i=R_1^{\,i}$$
#
# One step is one fixed matrix, repeated.

# %% [markdown]
# Every matrix that keeps norms is, in a suitable basis, a set of rotations of planes (or a reflection, which we leave out). $W_Q$ and $W_K$ are learned and can turn to that basis. So only the angles are free: *pairs of columns turn by an angle proportional to the position*, like the hands of the clock. This is **rotary position embedding** (RoPE, Su et al. 2021). Its angles are those of the waves:
#
# $$R_i=\begin{pmatrix}\cos\theta_ci&\sin\theta_ci\\-\sin\theta_ci&\cos\theta_ci\end{pmatrix}\text{ for each pair}\qquad(q_iR_i)\cdot(k_jR_j)=q_i\,R_{i-j}\,k_j^T$$

# %% tags=["hide-input"]
needs()
pictures.clocks()

# %% [markdown]
# Each hand here has length 1, so the score is the sum of two cosines, one for each pair of hands. Of the four terms one is left: two tokens and their distance. Values are not turned. In your code column $c$ is paired with column $c+d/2$:
#
# $$\begin{aligned}x'_c&=x_c\cos\theta_ci-x_{c+d/2}\sin\theta_ci\\x'_{c+d/2}&=x_c\sin\theta_ci+x_{c+d/2}\cos\theta_ci\end{aligned}\qquad\theta_c=\text{base}^{-2c/d}$$
#
# SmolLM2 in lesson 09 pairs them so. Su et al. pair the columns $2c$ and $2c+1$. The signs are opposite to those of $M_k$, whose pairs are sine and cosine, not cosine and sine.

# %%
# exercise: positions/rotary

# %%
check("positions/rotary", rotary)

# %%
rotary = mine("positions/rotary")

# %% [markdown]
# Your function now turns a query and a key. In a notebook two sliders move them. What changes when both move on by one?

# %% tags=["hide-input"]
pictures.clocks_by_hand(rotary)

# %% [markdown]
# The hands move, and the score stays. And *praised*? Turn its queries and keys, not the values.

# %% tags=["nbval-check-output"]
for sentence, tokens in ((one, x), (other, y)):
    turned = rotary(tokens, torch.arange(5))
    attended = scaled_dot_product_attention(turned, turned, tokens)
    print(sentence, [round(number, 3) for number in attended[2].tolist()], sep="\n")

# %% [markdown]
# It differs again, with nothing added to the words.
#
# ## Find the bug
#
# A model that writes keeps old keys and brings *one* new query at a time. A colleague's rotary attention trains well, with as many queries as keys, and then writes nonsense. Fix the line that is wrong.

# %%
# exercise: positions/mend_rotary

# %%
check("positions/mend_rotary", rotary_attention)

# %%
rotary_attention = mine("positions/mend_rotary")

# %% tags=["nbval-check-output"]
q, k, v = torch.randn(3, 9, 16, generator=generator).double()
at_once, alone = rotary_attention(q, k, v)[-1], rotary_attention(q[-1:], k, v)[0]
print("the newest query, alone and among all:", "equal" if alone.allclose(at_once) else "not equal")

# %% [markdown]
# ## Other answers
#
# Distance can also go straight into the score, the third of the three places: as a learned vector, $q_i\cdot(k_j+a_{j-i})$ (Shaw et al. 2018), a learned number, $q_i\cdot k_j+\beta_{j-i}$ (T5), or a fixed penalty, $q_i\cdot k_j-m\lvert i-j\rvert$ (ALiBi, with an $m$ for each head). An [exploration](explorations/04_distances.ipynb) builds two of them. A decoder can even do without, since its causal mask breaks the symmetry (Haviv et al. 2022; NoPE in Kazemnejad et al. 2023). SmolLM3 (2025) mixes: every fourth of its layers has no rotation.

# %% [markdown]
# ## A model on your rotary
#
# Now your function works in a small language model: two blocks, whose other parts lessons 05 to 07 build, and Shakespeare by the character. Training shows it 32 characters at a time, never more.

# %%
needs("shakespeare")

# %% tags=["training"]
from course_lib.instruments.position_schemes import Rotary

text, held_out = characters.split()
with training.seeded(SEED):
    model = position_models.CausalModel(Rotary(rotary), len(characters.vocab()))
batches = characters.batches(text, 32, 32, SEED)
budget = {"steps": 600, "learning_rate": 0.01, "seconds": 30}
history = training.train(model, batches, position_models.next_token_loss, **budget)

# %% [markdown]
# Let it write: each character is drawn given all those before it. A bar follows the 32nd. Your scores depend on distance alone, so position 100 as such is nothing new to a layer. **What becomes of the text after the bar: does it go on as before, or break down?**

# %%
guess = None  # "goes on" or "breaks down"

# %% tags=["training", "hide-input"]
starts = torch.arange(64).unsqueeze(-1) * (len(held_out) // 64 - 256)
texts = held_out[starts + torch.arange(257)]
losses = {"as it was": position_models.loss_by_window(model, texts)}
reveal(
    guess, "breaks down" if losses["as it was"][-1] > losses["as it was"][0] + 0.5 else "goes on"
)


# %% tags=["training"]
def written():
    start = characters.encode("To be, or not to be: ")
    text = characters.decode(position_models.write(model, start, 200, seed=SEED))
    return f"{text[:32]}|{text[32:]}"


print(written())

# %% [markdown]
# After the bar come letters but hardly a word.
#
# ## Distances that it has never seen
#
# Two things are new after the bar. There are more keys than ever before, and they are farther away. Change only the second: keep every key, but never show the model a distance that training did not have. All distances above 31 are read as 31: far pairs get a query turned by 31 and a key by 0.
#
# $$e_{ij}=\frac{q_i\,R_{\min(i-j,\,31)}\,k_j^T}{\sqrt{d_k}}$$


# %%
# `model.scheme.scores` is the model's own rule for scores: below, this one takes its place
def clamped_scores(q, k, furthest=31):
    places = torch.arange(q.shape[-2])
    near = dot_scores(rotary(q, places), rotary(k, places))
    far = dot_scores(rotary(q, torch.full_like(places, furthest)), k)
    return torch.where(places.unsqueeze(-1) - places > furthest, far, near)


# %% tags=["training"]
model.scheme.scores = clamped_scores
print(written())

# %% [markdown]
# The same parameters, as many keys, and it writes on. Now measure the loss on held-out texts, in **nats**: $-\log p$ with the natural logarithm. In the line *last 32* the model sees only the last 32 characters before each position.

# %% tags=["training", "hide-input"]
losses["clamped"] = position_models.loss_by_window(model, texts)
losses["last 32"] = position_models.loss_of_the_last(model, texts)
kept = results.load("unseen_distances")["figures"]["runs"]
pictures.loss_by_position(
    "Trained on 32 characters: new distances break it, and without them it holds", losses, kept[1:]
)
claim = (
    "in the last window, clamping takes over 1 nat off, and comes within 0.15 of the last 32 alone"
)
came = {name: round(loss[-1].item(), 2) for name, loss in losses.items()}
plain, clamped, last = came.values()
training.expect(claim, plain - clamped > 1 and abs(clamped - last) < 0.15, came, model)

# %% [markdown]
# **This rotary model fails beyond its length because it meets distances that it has never seen.** Take them away, and it holds, with as many keys as before. The pale lines are two more seeds. A model that *has* met far distances holds, too: one trained on texts of 32 characters, each with one jump in its positions, after Zhu et al. 2024 (*gaps in training*, in [RESULTS.md](../docs/RESULTS.md)).
#
# But look at the green line: the last 32 characters alone do as well or better. The clamped model survives the long text, and gains nothing from it.
#
# <details><summary>And waves?</summary>
#
# "Maybe can extrapolate to longer sequences as periods restart!", says L1 of them, and two lines later: "the extrapolation doesn't really work!" It does not: the row *sinusoidal* of the table *nats near character* in RESULTS.md rises past the length of training, too.
# </details>

# %% [markdown]
# ## What is done in practice
#
# A clamp has a price: all far tokens are equally far. To *use* a long text, a model has to tell one far position from another. Beyond $L$ tokens the slow hands make angles that training never showed. So the speeds are changed, from the start, or later with a little training at the new length $L'=sL$:
#
# | | what is changed |
# |:-|:-|
# | a larger base from the start, and long texts in training (Llama 3, 2024: 500,000) | all hands but the first are slower; it is the argument `base` of your function |
# | NTK-by-parts (in YaRN, Peng et al. 2024; alike in Llama 3.1 and gpt-oss) | $\theta_c\to\theta_c/s$, only where a turn takes more than $L$ tokens |

# %% [markdown]
# Repair your own model by the second rule. It was trained on $L=32$ characters and is to read $L'=256$, so $s=8$: slow the hands whose wavelength is above 32, and train for 50 steps on the long texts.


# %%
def slowed(x, positions, s=8, trained=32):
    wavelengths = 2 * torch.pi * 10000 ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    slow = (wavelengths > trained).repeat(2)  # columns c and c + d / 2 are one hand
    return torch.where(slow, rotary(x, positions / s), rotary(x, positions))


def slowed_scores(q, k):
    places = torch.arange(q.shape[-2])
    return dot_scores(slowed(q, places), slowed(k, places))


# %% tags=["training"]
model.scheme.scores = slowed_scores
longer = characters.batches(text, 256, 4, SEED)
tuning = {"steps": 50, "learning_rate": 0.003, "seconds": 30}
training.train(model, longer, position_models.next_token_loss, **tuning)
print(written())

# %% tags=["training", "hide-input"]
came = {
    "as it was": plain,
    "50 steps, old speeds (a stored run)": kept[0]["as it was, 50 steps"][-1],
    "50 steps, slowed": position_models.loss_by_window(model, texts)[-1].item(),
    "the same, last 32 shown": position_models.loss_of_the_last(model, texts)[-1].item(),
}
claim = "in the last window, 50 steps with slower hands take over 1 nat off"
training.expect(claim, came["as it was"] - came["50 steps, slowed"] > 1, came, model)

# %% [markdown]
# It writes on by a rule in which each far distance has angles of its own. Most of the gain comes with the long texts, and the slower hands take off another 0.4 nats. But does it *use* what is far? On Shakespeare it gains nothing from more than its last 32 characters, as the last number shows.

# %% [markdown]
# So take a task whose answer is far: texts of 256 characters whose second half repeats the first. A model like yours, trained on 32 characters that repeat after 4 to 16, gets 50 steps on such texts: as it was, clamped, or slowed.

# %% tags=["hide-input"]
needs()
first, *others = results.load("far_text")["figures"]["runs"]
ways = ["as it was", "clamped", "slowed, last 32 shown", "slowed"]
pictures.loss_by_position(
    "After 50 steps slower hands read the answer, 128 characters back",
    {way: torch.tensor(first[way]) for way in ways},
    [{way: run[way] for way in ways} for run in others],
    shaded=(128, 256, "repeats the first half"),
)

# %% [markdown]
# **Slower hands use the long text**, after 50 steps. Shown its last 32 characters alone, the same model loses about two nats more. With the old speeds, or the clamp, the same 50 steps end over one nat higher, too. Why is it quick? With $s=8$ a slow hand makes at distance 128 the angle that it made in training at 16. [An exploration](explorations/13_bigbird.ipynb) of lesson 13 has another such task, a needle.

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
# | four terms | $(x_i+p_i)\,W\,(x_j+p_j)^T=x_iWx_j^T+x_iWp_j^T+p_iWx_j^T+p_iWp_j^T$ |
# | rotary, asked for | $(qR_i)\cdot(kR_j)$ depends on $i-j$, norms stay $\Rightarrow R_i=R_1^{\,i}$ |
# | rotary | $(q_iR_i)\cdot(k_jR_j)=q_iR_{i-j}k_j^T$ |
# | clamped | $q_iR_{\min(i-j,\,L-1)}k_j^T$ |
# | slowed | $\theta_c\to\theta_c/s$, $s=L'/L$, for pairs with $2\pi/\theta_c>L$ |
#
# Our rotary model failed beyond its length because it met distances that it had never seen. Slower hands and a little training on long texts repair it. A model that holds need not *use* the long text: show it less, and measure again.

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. d = 4. Write down p at position 0, and the dot product of p with itself at any position.</summary>
#
# (0, 1, 0, 1). Each pair adds $\sin^2+\cos^2=1$, so the product is 2 = d/2.
# </details>
#
# <details><summary>2. Which two demands lead to rotary positions, and what did we assume besides?</summary>
#
# Norms stay, and scores depend on the distance alone. Assumed: the position acts by a matrix, the same for queries and keys, with $R_0=I$, and without a reflection.
# </details>
#
# <details><summary>3. A paper shows that the loss of its scheme stays level from 2,048 to 16,384 tokens. What do you ask for?</summary>
#
# The same model with its last 2,048 tokens alone, and a task that needs far text.
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 05 adds the next two parts of the Transformer's block: a feed-forward network, and a mask that hides the future. Three explorations: [the score by distance](explorations/04_distances.ipynb), [tables of positions](explorations/04_tables.ipynb) and [positions in a tree](explorations/04_trees.ipynb).

# %% [markdown]
# Vaswani et al. 2017, section 3.5 (waves); Su et al. 2021 (rotary, with the derivation); Fleetwood 2024 (from the counter to rotary, in 15 minutes); Shaw et al. 2018; Raffel et al. 2020 (T5); Press et al. 2022 (ALiBi); Haviv et al. 2022 and Kazemnejad et al. 2023 (no positions); Chen et al. 2023 and Peng et al. 2024 (interpolation). Lectures: L1, L2, L3, L4, L5.
