# %% [markdown]
# # 03 · Self-attention
#
# **60 minutes · after lesson 02 · needs `shakespeare` (5.4 MB)**
#
# "Ring the alarum bell" and "wear this ring for her sake": a table of word vectors has one row for *ring*, so it cannot tell the sound from the jewel. You can, because you read the words around it. What if every word did the same, and looked at all the others?

# %%
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from course_lib.attention import dot_scores, softmax, weighted_sum
from course_lib.data import needs, shakespeare, word_vectors
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% [markdown]
# ## A word is the company that it keeps
#
# The vectors of this lesson are made here and now, from Shakespeare: count which words stand within five words of which, and keep the 64 strongest directions of the counts (Levy et al. 2015). Nothing is downloaded ready-made, so nothing is hidden. For *ring*, the jewel has won.

# %%
needs("shakespeare")

# %%
words = word_vectors.from_shakespeare()
[ring] = words("ring")
print(*words.nearest(ring, 8))

# %% [markdown]
# ## Version 1: average your sentence, by likeness
#
# No parameters yet. Every word scores every word of its line by the dot product, a softmax turns each row of scores into weights, and the weights average the same words: softmax(X Xᵀ) X. Query, key and value are all the word itself.
#
# **Which word of "ring the alarum bell" gets the largest weight from *ring*?**

# %%
guess = None  # "ring", "the", "alarum" or "bell"

# %%
line = "ring the alarum bell"
x = words(line)
weights = softmax(dot_scores(x, x))
reveal(guess, line.split()[int(weights[0].argmax())])
print(weights[0].round(decimals=2).tolist())

# %%
figure, ax = plots.axes("Three of four attend most to themselves", "key", "query", size=(5, 3.6))
assert (weights.argmax(-1) == torch.arange(4)).tolist() == [True, False, True, True]
plots.heat_map(ax, weights, line.split(), line.split(), numbers=True)
plots.show(
    figure,
    "Weights in 'ring the alarum bell': the diagonal leads in all rows but one.",
)

# %% [markdown]
# ## What the neighbours did to *ring*
#
# A little under half of the new vector is the old one; the rest came from the line. Ask which words lie nearest to it now, in each of the two lines.

# %%
for line in ("ring the alarum bell", "wear this ring for her sake"):
    x = words(line)
    mixed = weighted_sum(softmax(dot_scores(x, x)), x)
    place = line.split().index("ring")
    print(f"{line:30}", *words.nearest(mixed[place], 8))

# %%
senses = torch.stack([words("trumpets")[0], words("jewel")[0]])
for line in ("ring the alarum bell", "wear this ring for her sake"):
    x = words(line)
    mixed = weighted_sum(softmax(dot_scores(x, x)), x)[line.split().index("ring")]
    before, after = (torch.cosine_similarity(senses, v, dim=-1) for v in (ring, mixed))
    print(line)
    for name, old, new in zip(("trumpets", "jewel"), before, after):
        print(f"    cosine with {name:8} {old:.2f} before, {new:.2f} after")
    assert (after[0] > before[0]) == ("bell" in line)

# %% [markdown]
# Beside the bell, *ring* has moved towards the trumpets; beside *wear*, it has stayed with the jewels. Be careful with the credit, though: a plain average of the line does about as well here. Version 1 mixes, but it hardly *chooses*. In lesson 08, a trained encoder shows the full effect with its own learned weights.

# %% [markdown]
# ## Build: version 1
#
# Write it as a function. With `causal=True`, word *i* may look at words 1 to *i* only, which is what a model that writes from left to right must do. Lesson 02's functions are at hand; yours, if they have passed.

# %%
needs()
softmax = mine("attention/softmax")
dot_scores = mine("attention/dot_scores")
weighted_sum = mine("attention/weighted_sum")

# %%
# exercise: self_attention/parameter_free

# %%
check("self_attention/parameter_free", parameter_free)

# %%
parameter_free = mine("self_attention/parameter_free")

# %% [markdown]
# ## Two directions of context
#
# A reader who has the whole line may use both sides of a word: *bidirectional* context. A writer has only what is already there: *causal* context. **In which words of a line do the two give the same result?**

# %%
guess = None  # "first", "last", "all" or "none"

# %%
torch.manual_seed(0)
x = torch.randn(6, 4)
same = (parameter_free(x) - parameter_free(x, causal=True)).abs().amax(-1) < 1e-6
reveal(guess, same.tolist())
assert same.tolist() == [False] * 5 + [True]

# %%
causal = softmax(dot_scores(x, x), torch.ones(6, 6).bool().tril())
figure, ax = plots.axes("Causal: nothing right of the diagonal", "key", "query", size=(5, 3.6))
plots.heat_map(ax, causal, range(1, 7), range(1, 7), numbers=True)
plots.show(figure, "Heat map of causal weights: all weights above the diagonal are zero.")

# %% [markdown]
# Only the last word has seen everything either way. The first word, in the causal reading, has nobody to look at but itself.

# %% [markdown]
# ## Does a word always attend most to itself?
#
# One lecture says so, for version 1 and again for the projected version that comes next. **In what share of Shakespeare's words does version 1 give its largest weight to the word itself?** Take 500 stretches of eight words from the plays.

# %%
guess = None  # a share between 0 and 1

# %%
needs("shakespeare")

# %%
generator = torch.Generator().manual_seed(0)
numbers = {word: number for number, word in enumerate(words.vocab)}
play = shakespeare.words(shakespeare.complete_works())
text = torch.tensor([numbers[word] for word in play if word in numbers])
starts = torch.randint(0, len(text) - 8, (500, 1), generator=generator)
lines = words.vectors[text[starts + torch.arange(8)]]


# %%
def prefers_itself(scores):
    own = scores.diagonal(dim1=-2, dim2=-1)
    return (own > scores.amax(-1) - 1e-6).float().mean().item()


reveal(guess, prefers_itself(dot_scores(lines, lines)))

# %% [markdown]
# Often, not always: a long vector pulls others towards it. Bring all words to the same length, and x·x beats every other dot product, by Cauchy and Schwarz. That is the case in which the claim is a theorem.

# %%
unit = nn.functional.normalize(lines, dim=-1)
print(f"all vectors of length one: {prefers_itself(dot_scores(unit, unit)):.3f}")
assert prefers_itself(dot_scores(unit, unit)) == 1

# %% [markdown]
# > **Where the lectures disagree (D09).** L3 notes that a word attends most to itself, and repeats it after queries and keys have been projected. The next cell draws both projections at random, for the same equal lengths. What is left of the preference is near chance: one in eight, and a little more where a word comes twice.

# %%
w_q, w_k = torch.randn(2, 64, 64, generator=generator)
projected = prefers_itself(dot_scores(unit @ w_q, unit @ w_k))
print(f"after random projections: {projected:.3f}; chance: {1 / 8:.3f}")
assert projected < 0.25

# %% [markdown]
# So looking at oneself is a property of equal roles and equal lengths, not of attention. Training may bring it back or drive it out; the architecture does not decide it.

# %% [markdown]
# ## Three roles
#
# Version 1 has a deeper limit. Its scores are symmetric: *bell* wants *ring* exactly as much as *ring* wants *bell*. But asking and being found are different things. A verb looks for its subject; the subject may be looking for something else.

# %%
x = words("ring the alarum bell")
scores = dot_scores(x, x)
print((scores - scores.mT).abs().max().item())
assert torch.equal(scores, scores.mT)

# %% [markdown]
# So each word gets three vectors, by three matrices that are learned: a **query** for what it looks for, a **key** for what it can be found by, and a **value** for what it hands over. Query and key meet in a dot product and share the size d_k; the value may have another, d_v.

# %%
needs()

# %%
# exercise: self_attention/project

# %%
check("self_attention/project", project)

# %%
project = mine("self_attention/project")

# %% [markdown]
# ## By hand, number by number
#
# Three words of two numbers each, and matrices that a reader can multiply in the head. The query matrix leaves a word as it is, the key matrix swaps its two numbers, and the value matrix doubles the first.

# %% tags=["nbval-check-output"]
x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
w_q = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
w_k = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
w_v = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
q, k, v = project(x, w_q, w_k, w_v)
print("q", q.tolist(), "\nk", k.tolist(), "\nv", v.tolist())

# %% [markdown]
# Word 1 asks with [1, 0]. Its own key is [0, 1], and word 2, whose vector is [0, 1], answers with the key [1, 0]. **Which words does word 1 find more interesting than itself?** Work out its row in the head, then run the sum that Python does one number at a time.

# %% tags=["nbval-check-output"]
scores = [sum(a * b for a, b in zip(q[0].tolist(), key.tolist())) for key in k]
exponentials = [2.718281828**score for score in scores]
weights = [e / sum(exponentials) for e in exponentials]
output = [sum(w * value[c] for w, value in zip(weights, v.tolist())) for c in range(2)]
print("scores ", scores)
print("weights", [f"{w:.3f}" for w in weights])
print("output ", [f"{o:.3f}" for o in output])

# %% [markdown]
# Scores 0, 1 and 1: it looks past itself at words 2 and 3, equally. The weights are e⁰, e¹ and e¹, divided by their sum, and the output is that mixture of values. Now the same for all words at once.

# %% tags=["nbval-check-output"]
all_scores = q @ k.T
all_weights = softmax(all_scores)
all_outputs = all_weights @ v
print(all_outputs)
assert torch.allclose(all_outputs[0], torch.tensor(output))

# %% [markdown]
# ## Every dimension asked
#
# Take n = 5 words of d_model = 8, with d_k = 3 and d_v = 4. **Write down the six shapes before you run the cell after next.** Whoever can do this in sleep will never fear a Transformer's code.

# %%
guess = None  # {"q": (5, ...), "k": ..., "v": ..., "scores": ..., "weights": ..., "output": ...}

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
x = torch.randn(5, 8)
q, k, v = project(x, torch.randn(8, 3), torch.randn(8, 3), torch.randn(8, 4))
scores = q @ k.T
parts = {"q": q, "k": k, "v": v, "scores": scores, "weights": softmax(scores), "output": scores @ v}
reveal(guess, {name: tuple(part.shape) for name, part in parts.items()})

# %% [markdown]
# The weights are n × n and know neither d_k nor d_v. And no learned matrix knows n: the same three serve a line of four words and a play of thirty thousand.

# %% [markdown]
# ## All pairs in one product
#
# Q Kᵀ holds every pair of words. Nothing in row 7 waits for row 6, so all of it can be computed at once. **How many times faster is one product than a loop over all pairs, for 300 words?**

# %%
guess = None  # how many times faster

# %%
from time import perf_counter

q, k = torch.randn(2, 300, 32)
start = perf_counter()
looped = torch.stack([torch.stack([query @ key for key in k]) for query in q])
middle = perf_counter()
product = dot_scores(q, k)
end = perf_counter()
reveal(guess, round((middle - start) / (end - middle)))
assert torch.allclose(looped, product, atol=1e-4)

# %% [markdown]
# ## Build: attention in its final form
#
# One thing is new: the scores are divided by √d_k. A dot product of d_k terms grows with their number, and lesson 06 shows what large scores do to the gradient. A query that may look nowhere gets zeros.

# %%
# exercise: self_attention/scaled_dot_product

# %%
check("self_attention/scaled_dot_product", scaled_dot_product_attention)

# %%
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")

# %% [markdown]
# ## Build: a layer
#
# A layer keeps its three matrices and learns them. `__init__` is given; write `forward` from the two functions that you have.

# %%
# exercise: self_attention/layer

# %%
check("self_attention/layer", SelfAttention)

# %%
SelfAttention = mine("self_attention/layer")

# %% [markdown]
# ## What the roles buy
#
# A task that needs them: each word carries its own name and the name of another word, and must fetch *that* word's number. Version 1 compares whole words and cannot tell "I am called 3" from "I look for 3".


# %%
def pointers(batch, n=8):
    """Draw words [own name, wanted name, own number], and the number that each one wants."""
    names = torch.rand(batch, n, generator=generator).argsort(-1)
    wanted = torch.randint(0, n, (batch, n), generator=generator)
    numbers = torch.randn(batch, n, generator=generator)
    one_hot = [nn.functional.one_hot(part, n).float() for part in (names, wanted)]
    found = (names.unsqueeze(-2) == wanted.unsqueeze(-1)).float() @ numbers.unsqueeze(-1)
    return torch.cat([*one_hot, numbers.unsqueeze(-1)], dim=-1), found


generator = torch.Generator().manual_seed(0)
print(pointers(1, n=3))

# %% [markdown]
# **Train both for a few seconds. Which share of the numbers' variance will each of them explain?** A linear layer reads the answer from what attention returns, in both.

# %%
guess = None  # (share for version 1, share with roles)


# %% tags=["training"]
def trained(attention, d_out):
    with training.seeded(SEED):
        model = nn.Sequential(attention, nn.Linear(d_out, 1))
    data = iter(lambda: pointers(64), None)
    training.train(model, data, squared_error, steps=500, learning_rate=0.03, seconds=30)
    return model


def squared_error(model, batch):
    x, found = batch
    return (model(x) - found).square().mean()


# %% tags=["training"]
class VersionOne(nn.Module):
    def forward(self, x):
        return parameter_free(x)


with training.seeded(SEED):
    roles = SelfAttention(17, 8, 4)
models = trained(VersionOne(), 17), trained(roles, 4)
shares = [round(1 - squared_error(model, pointers(4000)).item(), 2) for model in models]
reveal(guess, tuple(shares))
claim = "without roles under 0.5 is explained, with roles over 0.9"
training.expect(claim, shares[0] < 0.5 and shares[1] > 0.9, shares, *models)

# %% [markdown]
# Version 1 can only average; with roles, the words find each other. Look at whom they find, in one sentence of the task: each query's weight falls on the word whose name it wants.

# %% tags=["training"]
x, _ = pointers(1)
weights = softmax(dot_scores(x[0] @ roles.w_q, x[0] @ roles.w_k) / 8**0.5)
names, wanted = x[0, :, :8].argmax(-1).tolist(), x[0, :, 8:16].argmax(-1).tolist()
figure, ax = plots.axes(
    "Each word finds the name it wants", "key: its name", "query: whom it wants"
)
order = sorted(range(8), key=lambda i: wanted[i])
columns = sorted(range(8), key=lambda j: names[j])
plots.heat_map(ax, weights[order][:, columns], sorted(wanted), sorted(names))
plots.show(figure, "Heat map: the weight of each query lies on the key with the name it wants.")

# %% [markdown]
# ## Break it
#
# - In your `scaled_dot_product_attention`, swap q and k before the product, and check. Does the panel know?
# - Divide by d_k instead of its root. How far off are the results, and how would you have noticed without a check?
# - Shuffle the rows of `x` and compare the outputs. That nothing but their order changes is where lesson 04 begins.

# %%
shuffle = torch.tensor([2, 0, 3, 1])
x = torch.randn(4, 17, generator=generator)
layer = SelfAttention(17, 8, 4)
print(torch.allclose(layer(x[shuffle]), layer(x)[shuffle], atol=1e-6))

# %% [markdown]
# ## What you take along
#
# Self-attention lets all words meet in one step: softmax(Q Kᵀ / √d_k) V, with queries, keys and values projected from the same words. Its parameters know sizes of words, never the number of words. It has no sense of order yet, and all it does is average.
#
# Sources: Vaswani et al. 2017, *Attention Is All You Need*, section 3.2; Cheng et al. 2016 (intra-attention); Levy et al. 2015 (the word vectors). Lectures: L1, L2, L3, L4.
