# %% [markdown]
# # 06 · Multi-head attention
#
# **90 minutes · after lesson 05 · needs `shakespeare` (5.4 MB)**
#
# "The dog that chased the cats was tired." The word *was* has to find its subject, far back, and also who was chased, next door. But its weights sum to one: whatever it gives to the dog, it takes from the cats. Why should a word look at several places for several reasons, and how can it?

# %%
import torch
from collections.abc import Callable
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from course_lib.data import characters, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %%
softmax = mine("attention/softmax")
dot_scores = mine("attention/dot_scores")
scaled_dot_product_attention = mine("self_attention/scaled_dot_product")

# %% [markdown]
# ## Two relations at once
#
# Lesson 03 ended with pointers: each word carried its own name and the name of another, and fetched that word's number. Now each word names *two* wanted words, and must return both numbers. A sentence has five words; a word has 15 columns for its own name and the two wanted ones, and one for its number.


# %%
def pointers(batch, n=5):
    """Draw words' names (own and two wanted), the same with their numbers, and what they want."""
    own = torch.rand(batch, n, generator=generator).argsort(-1)
    wanted = torch.rand(batch, n, n, generator=generator).argsort(-1)[..., :2]
    numbers = torch.randn(batch, n, 1, generator=generator)
    one_hot = nn.functional.one_hot
    names = torch.cat([one_hot(own, n), one_hot(wanted, n).flatten(-2)], -1).float()
    found = (wanted.unsqueeze(-1) == own[:, None, None]).float() @ numbers.unsqueeze(1)
    without, number = nn.functional.pad(names, (0, 1)), nn.functional.pad(numbers, (15, 0))
    return without, without + number, found.squeeze(-1)


generator = torch.Generator().manual_seed(0)
names, words, found = pointers(64)
print(names.shape, words.shape, found.shape)

# %% [markdown]
# The names choose and the number is carried: queries and keys are made of the names alone, values of the whole word. That is all one head does, with three small matrices of its own. Several heads run beside each other; what they find is joined, and a linear layer reads both numbers from it.


# %%
class Head(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        w_q, w_k, w_v = torch.randn(3, d_model, d_k) / d_model**0.5
        self.w_q, self.w_k, self.w_v = map(nn.Parameter, (w_q, w_k, w_v))

    def forward(self, names, words):
        q, k, v = names @ self.w_q, names @ self.w_k, words @ self.w_v
        return scaled_dot_product_attention(q, k, v)


# %%
class Fetcher(nn.Module):
    def __init__(self, heads, d_model=16):
        super().__init__()
        self.heads = nn.ModuleList(Head(d_model, d_model // heads) for _ in range(heads))
        self.readout = nn.Linear(d_model, 2)

    def forward(self, names, words):
        return self.readout(torch.cat([head(names, words) for head in self.heads], dim=-1))


# %% tags=["nbval-check-output"]
for heads in (1, 2):
    print(heads, "heads:", sum(p.numel() for p in Fetcher(heads).parameters()), "parameters")

# %% [markdown]
# One head of 16 numbers, or two of 8: the same number of parameters. **Which share of the wanted numbers' variance will each of them explain, after 500 steps?**

# %%
guess = None  # (share for one head, share for two heads)


# %% tags=["training"]
def squared_error(model, batch):
    names, words, found = batch
    return (model(names, words) - found).square().mean()


def trained(heads):
    with training.seeded(SEED):
        model = Fetcher(heads)
    data = iter(lambda: pointers(64), None)
    training.train(model, data, squared_error, steps=500, learning_rate=0.03, seconds=30)
    return model


# %% tags=["training"]
def explained(model):
    batch = pointers(20000)
    return 1 - (squared_error(model, batch) / batch[-1].square().mean()).item()


fetchers = {heads: trained(heads) for heads in (1, 2)}
shares = [round(explained(fetchers[heads]), 3) for heads in (1, 2)]
reveal(guess, tuple(round(share, 2) for share in shares))
claim = "one head explains under 0.52, two heads over 0.9"
training.expect(claim, shares[0] < 0.52 and shares[1] > 0.9, shares, *fetchers.values())

# %% [markdown]
# ## Why exactly half
#
# Fix the names. The weights are then fixed too, and what one head hands over is s = Σ_j w_j y_j, one number, however wide the head is: its other columns repeat s, or speak of names. A linear readout makes s·u of it, for one direction u.
#
# The answer (y_a, y_b) has two directions, independent and equally wide. The part of it at right angles to u is never reached: that is half of the variance, for any u. By the same argument, h heads and r wanted numbers make at most h / r.

# %% [markdown]
# The kept runs, three seeds each, ask for one, two or four numbers, by one, two, four or eight heads. All have d_model = 32 and the same number of parameters. Dashed lines are the bound h / r; dots are what you trained.

# %%
kept = results.load("multi_head")["figures"]
title = "A head for each relation is needed, and enough"
figure, ax = plots.axes(title, "heads", "share of variance explained")
for i, (wanted, colour) in enumerate(zip(kept["wanted"], plots.COLOURS)):
    bounds = [min(1, heads / wanted) for heads in kept["heads"]]
    ax.plot(kept["heads"], bounds, "--", color=colour, linewidth=1)
    for seed, run in enumerate(kept["explained"]):
        label = f"{wanted} wanted" if seed == 0 else None
        ax.plot(kept["heads"], run[i], "x", color=colour, markersize=9, label=label)
if "shares" in globals():
    ax.plot([1, 2], shares, "o", color=plots.COLOURS[1])
ax.set(xscale="log", xticks=kept["heads"], xticklabels=kept["heads"], ylim=(0, 1.05))
ax.minorticks_off()
ax.legend(loc="lower right")
plots.show(figure, "Explained share against heads: each run lies on its bound, heads over wanted.")

# %%
for run in kept["explained"]:
    for wanted, row in zip(kept["wanted"], run):
        for heads, share in zip(kept["heads"], row):
            assert abs(share - min(1, heads / wanted)) < 0.05

# %% [markdown]
# **Where does each head look?** Average the weight that a word gives to the first word it wants, to the second, and to all others.

# %%
guess = None  # for the only head, such as (first, second, others)


# %% tags=["training"]
def gazes(model):
    names, _, _ = pointers(2000)
    own, first, second = (names[..., 5 * i : 5 * i + 5] for i in range(3))
    for head in model.heads:
        weights = softmax(dot_scores(names @ head.w_q, names @ head.w_k) / head.w_q.shape[1] ** 0.5)
        wanted = [(weights * (who @ own.mT)).sum(-1).mean().item() for who in (first, second)]
        yield tuple(round(share, 2) for share in (*wanted, 1 - sum(wanted)))


# %% tags=["training"]
[only], (one, other) = (list(gazes(fetchers[heads])) for heads in (1, 2))
reveal(guess, only)
print("two heads:", one, "and", other)
apart = abs(one[0] * other[1] - one[1] * other[0])
claim = "one head leaves under 0.1 to the rest; two heads weigh the two names differently, over 0.1"
came = [only[2], round(apart, 2)]
training.expect(claim, only[2] < 0.1 and apart > 0.1, came, *fetchers.values())

# %% [markdown]
# Hardly any weight is wasted on the others. The only head must settle for one mixture of its two words, and whatever the mixture, half is lost. Two heads hold two different mixtures, from which the readout can solve for both numbers. Nothing asks the mixtures to be pure, though they often come close.

# %% [markdown]
# ## Heads by reshaping
#
# Two heads meant six small matrices and a Python loop. Put W_Q1 and W_Q2 side by side instead: they are the columns of one matrix, and one product X W_Q makes the queries of both, side by side in each row. What is left to do is to cut the rows, and to treat the heads as a batch: each its own table, as in the batches of lesson 02.

# %%
# exercise: multi_head/split_heads

# %%
check("multi_head/split_heads", split_heads)

# %% [markdown]
# At the end, what the heads have found must stand side by side again, a row for each word. That is the way back.

# %%
# exercise: multi_head/merge_heads

# %%
check("multi_head/merge_heads", merge_heads)

# %%
split_heads = mine("multi_head/split_heads")
merge_heads = mine("multi_head/merge_heads")

# %% [markdown]
# **Does `q.reshape(3, 5, 4)` do the same for five words of twelve numbers and three heads?** The shape is right.

# %%
guess = None  # True or False

# %% tags=["nbval-check-output"]
q = torch.arange(60.0).reshape(5, 12)
reveal(guess, torch.equal(q.reshape(3, 5, 4), split_heads(q, 3)))
print("reshape: ", q.reshape(3, 5, 4)[0].tolist())
print("split:   ", split_heads(q, 3)[0].tolist())
assert torch.equal(merge_heads(split_heads(q, 3)), q)

# %% [markdown]
# Reshape alone gives the first head the whole of word 1 and two thirds of word 2, chopped into five, and nothing of words 3 to 5. Nothing raises: a shape cannot tell whose numbers it holds.

# %% [markdown]
# ## Every dimension asked
#
# Five words, d_model = 12, three heads, hence d_k = d_v = 4. **Write down all eight shapes before you run the cell after next.**

# %%
guess = None  # {"x": (5, 12), "q": ..., "split": ..., "scores": ..., "weights": ..., ...}

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
x, w_q, w_k, w_v, w_o = torch.randn(5, 12), *torch.randn(4, 12, 12) / 12**0.5
parts = {"x": x, "q": x @ w_q, "split": split_heads(x @ w_q, 3)}
parts["scores"] = dot_scores(parts["split"], split_heads(x @ w_k, 3)) / 4**0.5
parts["weights"] = softmax(parts["scores"])
parts["found"] = parts["weights"] @ split_heads(x @ w_v, 3)
parts["merged"] = merge_heads(parts["found"])
parts["output"] = parts["merged"] @ w_o
reveal(guess, {name: tuple(part.shape) for name, part in parts.items()})

# %% [markdown]
# Now the loop beside it, each head with its own four columns of the three matrices. If the small matrices are the columns of the large ones, the two must agree.

# %%
looped = []
for head in (slice(0, 4), slice(4, 8), slice(8, 12)):
    q, k, v = x @ w_q[:, head], x @ w_k[:, head], x @ w_v[:, head]
    looped.append(scaled_dot_product_attention(q, k, v))
assert torch.allclose(torch.cat(looped, dim=-1), parts["merged"], atol=1e-5)

# %% [markdown]
# > **Where the lectures disagree (D06).** L3 gives a head's matrices the shape N × d_k, N being the number of words, and the output N × d while the values have d_v columns. But X has N rows and d columns: what multiplies it from the right needs d rows. And before the output matrix, a head's output has the d_v columns of its values.

# %% tags=["nbval-check-output"]
theirs, ours = torch.randn(5, 4), torch.randn(12, 4)
try:
    x @ theirs
except RuntimeError as error:
    print("N x d_k:", error)
for n in (5, 50):
    print(f"d x d_k: {n} words become", tuple((torch.randn(n, 12) @ ours).shape))
assert parts["found"].shape[-2:] == (5, 4)

# %% [markdown]
# The number of words is in no parameter's shape. If it were, a model could read sentences of one length only.

# %% [markdown]
# > **Where the lectures disagree (D08).** L1 and L2 write a key as Kx, and all keys as XK, with one letter for a matrix and its transpose; L4 does so with W_Q. L1 puts the output matrix in front, Y[...], L2 and L4 behind. Both worlds are sound: words are rows and matrices stand behind them, or words are columns and matrices stand in front. Mixing them is not.

# %%
rows = softmax((x @ w_q) @ (x @ w_k).T) @ (x @ w_v)
q, k, v = w_q.T @ x.T, w_k.T @ x.T, w_v.T @ x.T  # words are columns
columns = v @ softmax(q.T @ k).T
assert torch.allclose(columns.T, rows, atol=1e-5)

mixed = softmax((x @ w_q.T) @ (x @ w_k.T).T) @ (x @ w_v.T)
print(f"the transpose is off by {(columns.T - rows).abs().max():.0e}, the mixture", end=" ")
print(f"by {(mixed - rows).abs().max():.1f}, and nothing was raised")
assert (mixed - rows).abs().max() > 0.1

# %% [markdown]
# This course holds to rows. Mind torch, though: `nn.Linear(12, 4)` keeps its matrix as (4, 12) and multiplies by the transpose. What the formulas call the *columns* of W_Q are the *rows* of its `weight`.

# %%
linear = nn.Linear(12, 4, bias=False)
assert linear.weight.shape == (4, 12) and torch.allclose(linear(x), x @ linear.weight.T)

# %% [markdown]
# ## Build: multi-head attention
#
# Now the layer that stands in every Transformer. It takes queries, keys and values from three inputs, as the pointers did, and the four matrices are in `__init__`. The mask of lesson 05 knows nothing of heads, so `forward` must give it a head axis.

# %%
# exercise: multi_head/attention

# %%
check("multi_head/attention", MultiHeadAttention)

# %%
MultiHeadAttention = mine("multi_head/attention")

# %% [markdown]
# Hand its parameters to torch's own layer. Torch keeps the first three matrices as one, and its mask says True where a word may *not* look. **How large is the largest difference?**

# %%
guess = None  # a number

# %%
layer, torchs = MultiHeadAttention(12, 3), nn.MultiheadAttention(12, 3, batch_first=True)
torchs.out_proj.load_state_dict(layer.w_o.state_dict())
three = (layer.w_q, layer.w_k, layer.w_v)
with torch.no_grad():
    torchs.in_proj_weight.copy_(torch.cat([linear.weight for linear in three]))
    torchs.in_proj_bias.copy_(torch.cat([linear.bias for linear in three]))

# %%
causal_mask = mine("masks/causal")
batch, mask = torch.randn(2, 5, 12), causal_mask(5)
theirs, _ = torchs(batch, batch, batch, attn_mask=~mask)
reveal(guess, (layer(batch, batch, batch, mask) - theirs).abs().max().item())
assert torch.allclose(layer(batch, batch, batch, mask), theirs, atol=1e-5)

# %% [markdown]
# Queries may come from other words than keys and values. **Seven words of German ask eleven words of English: how many rows does the output have, and how many weights has each head?** Lesson 08 builds a translator on this.

# %%
guess = None  # (rows, weights)

# %%
german, english = torch.randn(7, 12), torch.randn(11, 12)
output = layer(german, english, english)
reveal(guess, (len(output), 7 * 11))
assert output.shape == (7, 12)

# %% [markdown]
# ## What the output matrix is for
#
# Merging only lays the heads side by side: head 1 owns columns 1 to 4, head 2 columns 5 to 8. Change what head 1 has found, and nothing else. **How many of the twelve columns move before W_O, and how many after it?**

# %%
guess = None  # (before, after)


# %%
def moved(new, old):
    return int((new - old).abs().gt(1e-6).any(0).sum())


found = parts["found"].clone()
found[0] += 1
before = moved(merge_heads(found), parts["merged"])
after = moved(merge_heads(found) @ w_o, parts["output"])
reveal(guess, (before, after))
assert (before, after) == (4, 12)

# %% [markdown]
# Without W_O, two heads can never write to the same column: neither help nor correct each other. With it, the output is a sum over heads, each with its own rows of W_O: Σ_i head_i W_O[i]. A sum has a pleasant property: you can leave out a term.

# %%
terms = [parts["found"][i] @ w_o[4 * i : 4 * i + 4] for i in range(3)]
assert torch.allclose(sum(terms), parts["output"], atol=1e-5)


# %%
def switch_off(layer, head):
    """Return a copy of the layer in which this head writes nothing."""
    copy = MultiHeadAttention(layer.w_o.in_features, layer.heads)
    copy.load_state_dict(layer.state_dict())
    d_k = layer.w_o.in_features // layer.heads
    with torch.no_grad():
        copy.w_o.weight[:, head * d_k : (head + 1) * d_k] = 0
    return copy


# %%
off = layer
for head in range(3):
    off = switch_off(off, head)
assert torch.allclose(off(x, x, x), layer.w_o.bias.expand(5, 12))

# %% [markdown]
# With all three off, only the bias is left. Keep `switch_off`: at the end of this lesson it goes to a trained model.

# %% [markdown]
# ## Counting
#
# The paper's layer has d_model = 512, eight heads and d_k = d_v = 64. **How many numbers does it learn, biases not counted? And with one head of 512?**

# %%
guess = None  # (eight heads, one head)

# %%
# exercise: multi_head/parameters

# %%
check("multi_head/parameters", parameter_count)

# %%
parameter_count = mine("multi_head/parameters")

# %% tags=["nbval-check-output"]
reveal(guess, (parameter_count(512, 8, 64, 64), parameter_count(512, 1, 512, 512)))
counted = sum(p.numel() for p in MultiHeadAttention(512, 8).parameters())
print(counted, "with biases")
assert counted == parameter_count(512, 8, 64, 64, bias=True)

# %% [markdown]
# Four matrices of 512 × 512, however they are cut: as long as d_k = d_model / h, heads are free of parameters.
#
# > **Where the lectures disagree (D12).** L1, L2 and L4 say that many heads cost the same as one. Count all that a layer does: multiply-adds, then scores, then seconds. **With 32 heads instead of one, how many times as many multiply-adds and scores are there?**

# %%
guess = None  # (multiply-adds, scores)

# %%
from torch.utils.flop_counter import FlopCounterMode


@torch.no_grad()
def multiply_adds(heads, n=512, d_model=256):
    layer, x = MultiHeadAttention(d_model, heads), torch.randn(n, d_model)
    with FlopCounterMode(display=False) as counter:
        layer(x, x, x)
    return counter.get_total_flops() // 2


# %%
heads = [1, 2, 4, 8, 16, 32]
products = [multiply_adds(h) for h in heads]
x = torch.randn(512, 256)
scores = [dot_scores(split_heads(x, h), split_heads(x, h)).numel() for h in heads]
print(f"multiply-adds {products}\nscores {scores}")
reveal(guess, (products[-1] / products[0], scores[-1] / scores[0]))
assert len(set(products)) == 1 and scores[-1] == 32 * scores[0]

# %% [markdown]
# Projections take 4 n d_model² multiply-adds, scores and averages 2 n² d_model: no h in either. But each head has its own n × n scores, each of d_k terms. All must be stored, scaled, exponentiated and divided. What does the clock say?

# %%
from time import perf_counter


@torch.no_grad()
def seconds(heads, n=512, d_model=256):
    layer, x, times = MultiHeadAttention(d_model, heads), torch.randn(n, d_model), []
    for _ in range(5):
        start = perf_counter()
        layer(x, x, x)
        times.append(perf_counter() - start)
    return min(times)


times = [seconds(h) for h in heads]
print([f"{1000 * t:.0f} ms" for t in times])

# %%
figure, ax = plots.axes("The multiplications stay, the scores grow", "heads", "times one head's")
for name, counts in {"multiply-adds": products, "scores": scores, "time, here": times}.items():
    style = "o--" if name.startswith("time") else "o-"
    ax.plot(heads, [count / counts[0] for count in counts], style, label=name)
ax.set(
    xscale="log", yscale="log", xticks=heads, xticklabels=heads, yticks=[1, 10], yticklabels=[1, 10]
)
ax.minorticks_off()
ax.legend()
plots.show(figure, "Against heads: multiply-adds flat, scores proportional, time rising late.")

# %% [markdown]
# So "the same" is true of parameters and of multiply-adds, and false of memory; what it costs in time, your own clock has said. The claim survives where products rule, with large d_model and few words. For long texts the n² scores rule, h times over; lesson 12 computes them without ever storing them.

# %% [markdown]
# ## Scores that grow
#
# A promise of lesson 03 is open: why divide by √d_k? Draw queries and keys whose entries are independent, of mean 0 and variance 1. **What is the variance of q · k for d_k = 64?**

# %%
guess = None  # (not divided, divided by the root)

# %%
# exercise: multi_head/score_variance

# %%
check("multi_head/score_variance", score_variance)

# %%
score_variance = mine("multi_head/score_variance")

# %% tags=["nbval-check-output"]
reveal(guess, (score_variance(64, scaled=False), score_variance(64, scaled=True)))

# %%
sizes = [4**i for i in range(6)]
generator = torch.Generator().manual_seed(0)
sampled = {False: [], True: []}
for d_k in sizes:
    q, k = torch.randn(2, 20000, d_k, generator=generator)
    for scaled in sampled:
        sampled[scaled].append(((q * k).sum(-1) / (d_k**0.5 if scaled else 1)).var().item())

# %%
figure, ax = plots.axes("Sampled scores vary as computed", "d_k", "variance of a score")
for scaled, colour in zip(sampled, plots.COLOURS):
    exact = [score_variance(d_k, scaled) for d_k in sizes]
    label = "divided by √d_k" if scaled else "not divided"
    ax.plot(sizes, exact, color=colour, label=f"{label}: exact")
    ax.plot(sizes, sampled[scaled], "o", color=colour, label=f"{label}: sampled")
    assert all(abs(s / e - 1) < 0.1 for s, e in zip(sampled[scaled], exact))
ax.set(xscale="log", yscale="log", xticks=sizes, xticklabels=sizes)
ax.minorticks_off()
ax.legend()
plots.show(figure, "Variance against d_k: proportional without the division, one with it.")

# %% [markdown]
# A product of two independent entries has mean 0 and variance 1, and d_k of them add up. So typical scores are as large as √d_k, and a softmax makes of large scores a row with one weight near 1.
#
# **Sixteen keys, d_k = 256, nothing divided: how large is the largest weight, on average? And divided?**

# %%
guess = None  # (not divided, divided)


# %%
def weights_and_slopes(d_k, divisor):
    """Return 500 rows of weights over 16 keys, and the size of each row's derivative."""
    generator = torch.Generator().manual_seed(d_k)
    q, k = (torch.randn(500, n, d_k, generator=generator) for n in (1, 16))
    scores = dot_scores(q, k).squeeze(1) / divisor
    jacobian = torch.vmap(torch.func.jacrev(lambda row: torch.softmax(row, -1)))(scores)
    return torch.softmax(scores, -1), jacobian.flatten(1).norm(dim=-1)


largest = [weights_and_slopes(256, divisor)[0].amax(-1).mean().item() for divisor in (1, 16)]
reveal(guess, tuple(round(weight, 2) for weight in largest))
assert largest[0] > 0.85 and largest[1] < 0.5

# %% [markdown]
# The derivative of weight i by score j is w_i (δ_ij − w_j). Where one weight is 1 and the others 0, all of it is 0: whatever the loss would like to say, the scores do not hear it. Below, the length of that derivative against d_k: the median row, and the mean of all.

# %%
sizes = [4**i for i in range(7)]
figure, (left, right) = plots.plt.subplots(1, 2, figsize=(9, 3.6))
curves = {}
for scaled, colour in zip((False, True), plots.COLOURS):
    rows = [weights_and_slopes(d_k, d_k**0.5 if scaled else 1) for d_k in sizes]
    curves[scaled] = torch.stack([slopes.median() for _, slopes in rows])
    label = "divided by √d_k" if scaled else "not divided"
    left.plot(sizes, [weights.amax(-1).mean() for weights, _ in rows], color=colour, label=label)
    right.plot(sizes, curves[scaled], color=colour, label=f"{label}: median")
    right.plot(sizes, [slopes.mean() for _, slopes in rows], ":", color=colour, label="mean")
left.set(title="Large scores saturate", xlabel="d_k", ylabel="largest weight", xscale="log")
right.set(title="and most rows stop learning", xlabel="d_k", ylabel="length of the derivative")
right.set(xscale="log", yscale="log")
right.legend()
plots.show(figure, "Undivided: the largest weight nears one, the derivative falls; divided: flat.")

# %%
print("median, not divided:", [f"{slope:.0e}" for slope in curves[False]])
assert 0.3 < curves[False][3] / curves[True][3] < 0.7
assert curves[False][-1] < 1e-4 and curves[True].min() > 0.1

# %% [markdown]
# Divided, both curves are flat: attention begins to learn at the same pace, however wide the head. Undivided, the typical row falls silent; the mean falls more slowly, since a few rows happen to have two keys in a near tie, and those still learn. At the paper's d_k of 64 the typical row keeps about half. The harm is real, but it comes with width.

# %% [markdown]
# > **Where the lectures disagree (D10).** L3 says to scale by "the size of embedding", beside a formula with √d_k. With one head of full width these are the same. With several, the dot product runs over one *head*: d_k = d_model / h terms. **With d_model = 512 and 8 heads, what is the variance of the scores after dividing by √d_model?**

# %%
guess = None  # a variance

# %%
d_k, d_model = 64, 512
divisors = {"not divided": 1, "√d_k": d_k**0.5, "√d_model": d_model**0.5}
reveal(guess, score_variance(d_k, scaled=False) / d_model)
figure, ax = plots.axes("Only √d_k leaves room on both sides", "key, best first", "mean weight")
largest = {}
for name, divisor in divisors.items():
    ranked = weights_and_slopes(d_k, divisor)[0].sort(descending=True).values.mean(0)
    ax.plot(range(1, 17), ranked, "o-", label=name)
    largest[name] = ranked[0].item()
ax.axhline(1 / 16, color="0.6", linewidth=1, linestyle="--", label="all alike")
ax.legend()
plots.show(figure, "Ranked weights: almost one key undivided, graded by root d_k, near flat else.")

# %%
print({name: round(weight, 2) for name, weight in largest.items()})
assert largest["not divided"] > 0.7 and 0.2 < largest["√d_k"] < 0.5 and largest["√d_model"] < 0.2

# %% [markdown]
# By √d_model, the weights begin nearly flat, the more so the more heads there are. It is no catastrophe: training can make W_Q larger, and √8 times the queries undo it exactly. The division is about where training *starts*.

# %% [markdown]
# ## What the heads of a trained model look at
#
# Now real text. The reader below gets characters of Shakespeare and predicts the next one: vectors with lesson 04's positions, four causal heads, lesson 05's feed-forward network. Two things are borrowed from lesson 07 without comment: `x +`, and `nn.LayerNorm`.

# %%
needs("shakespeare")

# %%
from course_lib.feed_forward import FeedForward

learning, held_out = characters.split()
sinusoidal = mine("positions/sinusoidal")


# %%
class Reader(nn.Module):
    def __init__(self, d_model=64, heads=4, vocab=84):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, 4 * d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))
        self.readout = nn.Linear(d_model, vocab)

    def forward(self, tokens):
        x = self.embedding(tokens) + sinusoidal(tokens.shape[-1], 64)
        seen = self.norms[0](x)
        x = x + self.attention(seen, seen, seen, causal_mask(tokens.shape[-1]))
        x = x + self.feed_forward(self.norms[1](x))
        return self.readout(self.norms[2](x))


# %% tags=["training"]
def next_character_loss(model, batch):
    tokens, following = batch
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), following.flatten())


with training.seeded(SEED):
    reader = Reader()
budget = {"steps": 800, "seconds": 30, "learning_rate": 0.005}
training.train(reader, characters.batches(learning, 64, 32, SEED), next_character_loss, **budget)
test = next(characters.batches(held_out, 64, 200, seed=0))
with torch.no_grad():
    loss = next_character_loss(reader, test).item()
print(f"loss on held-out text: {loss:.2f} nats")

# %% [markdown]
# A line that it has never read, and four heat maps. **Will you find the head that looks at the previous character, the head that looks at the last space, and so on?** Commit yourself before you look.

# %%
guess = None  # how many of the four heads will have a job that you can name


# %% tags=["training"]
@torch.no_grad()
def gaze(model, tokens):
    seen = model.norms[0](model.embedding(tokens) + sinusoidal(tokens.shape[-1], 64))
    layer = model.attention
    q, k = split_heads(layer.w_q(seen), layer.heads), split_heads(layer.w_k(seen), layer.heads)
    return softmax(dot_scores(q, k) / q.shape[-1] ** 0.5, causal_mask(tokens.shape[-1]))


line = "If music be the food of love, play on,"
weights = gaze(reader, characters.encode("\n" + line))[:, 1:, 1:]

# %% tags=["training"]
title = "Four heads, four mixtures of the last few characters"
figure, panels = plots.panels(title, [f"head {i}" for i in range(1, 5)], size=(10, 8.4), rows=2)
for ax, head in zip(panels, weights):
    plots.heat_map(ax, head, line.replace(" ", "·"), line.replace(" ", "·"))
    ax.tick_params(labelsize=7)
    ax.set(xlabel="key", ylabel="query")
plots.show(figure, "Four heat maps over a line: weights near the diagonal, and some on spaces.")

# %% [markdown]
# Pictures invite stories. "Head 2 looks at the previous letter" is quickly said, and you can find a line for any such story. So measure, over 200 stretches of held-out text: how much weight falls on the character itself, the previous one, the last space before it, the last line break, and how many bits of entropy the weights have.


# %% tags=["training"]
def relations(tokens):
    """Return, for each relation, who is meant: True at one key of a query, or at none."""
    n = tokens.shape[-1]
    targets = {"itself": torch.eye(n), "previous": torch.diag(torch.ones(n - 1), -1)}
    targets = {name: target.bool().expand(len(tokens), n, n) for name, target in targets.items()}
    for name, character in {"space": " ", "line": "\n"}.items():
        marked = tokens == characters.encode(character)
        number = marked.cumsum(-1)  # of each mark; a query wants the last one before it
        wanted = number - marked.long()
        targets[name] = marked.unsqueeze(-2) & (number.unsqueeze(-2) == wanted.unsqueeze(-1))
    return targets


# %% tags=["training"]
def mean_weight(weights, target):
    """Average each head's weight on the target, over the queries that have one."""
    on_target = (weights * target.unsqueeze(-3)).sum(-1).sum((0, 2))
    return (on_target / target.any(-1).sum()).tolist()


weights = gaze(reader, test[0])
live = {name: mean_weight(weights, target) for name, target in relations(test[0]).items()}
entropy = -(weights * weights.clamp(min=1e-9).log2()).sum(-1)
live["bits"] = entropy.mean((0, 2)).tolist()
for name, values in live.items():
    print(f"{name:10}", *(f"{value:6.2f}" for value in values))

# %% tags=["training"]
largest = torch.tensor([live[name] for name in ("itself", "previous", "space", "line")]).amax(0)
reveal(guess, int((largest > 0.5).sum()))
near = weights.tril().triu(-3).sum(-1).mean((0, 2))
came = [round(share, 2) for share in near.tolist()]
claim = "over 0.35 of the weight, in the mean of the heads, is on the last four characters"
training.expect(claim, near.mean() > 0.35, came, reader)

# %% [markdown]
# A job worth its name should take more than half of a head's weight. How many heads have one, stands beside your guess. Is that an accident of this run? Here are the heads of three kept runs.

# %%
needs()
names = ["itself", "previous", "space", "line"]
figure, ax = plots.axes(
    "All heads read what is near, and differ in the last space", "", "mean weight of a head"
)
for seed, (run, colour) in enumerate(zip(kept["reader"], plots.COLOURS)):
    for i, name in enumerate(names):
        places = [i + (seed - 1) / 6] * len(run[name])
        ax.plot(places, run[name], "o", color=colour, label=None if i else f"seed {seed}")
ax.set(xticks=range(4), xticklabels=["itself", "previous", "last space", "last line break"])
ax.set(ylim=(0, 0.6))
ax.legend()
plots.show(figure, "Mean weights of twelve heads: high on near characters, spread on last spaces.")

# %% tags=["nbval-check-output"]
for seed, run in enumerate(kept["reader"]):
    print(f"seed {seed}: space", " ".join(f"{weight:.2f}" for weight in run["space"]))
    near = [sum(pair) for pair in zip(run["itself"], run["previous"])]
    assert min(near) > 0.3 and max(max(run[name]) for name in names) < 0.6
    assert max(run["space"]) > 2 * min(run["space"])

# %% [markdown]
# No head of the twelve is a specialist. Each reads a blend of the near past, and the last space, where the word begins, is shared out unequally. In large models that read words, some heads do hold jobs that grammar has names for (Clark et al. 2019 and Voita et al. 2019, quoted, not measured here). Lesson 08 looks for them in a trained encoder.

# %% [markdown]
# ## Can a head be left out?
#
# Switch the heads off, one at a time, without any further training. Michel et al. (2019, quoted) did so with large translators and found that most heads can go, one at a time, at no visible loss. **By how much does the loss rise here, at least and at most?**

# %%
needs("shakespeare")

# %%
guess = None  # (least, most), in nats


# %% tags=["training"]
@torch.no_grad()
def loss_without(head):
    whole = reader.attention
    reader.attention = switch_off(whole, head)
    without = next_character_loss(reader, test).item()
    reader.attention = whole
    return without


rises = [loss_without(head) - loss for head in range(4)]
reveal(guess, (round(min(rises), 2), round(max(rises), 2)))

# %%
needs()
figure, ax = plots.axes(
    "Every head of this small reader is missed", "seed of the run", "rise of the loss (nats)"
)
for seed, run in enumerate(kept["reader"]):
    ax.bar(
        [seed + (i - 1.5) / 6 for i in range(4)], sorted(run["rise"]), 0.14, color=plots.COLOURS[0]
    )
if "rises" in globals():
    ax.bar([3 + (i - 1.5) / 6 for i in range(4)], sorted(rises), 0.14, color=plots.COLOURS[1])
ax.set(xticks=range(4), xticklabels=["0", "1", "2", "here, 0"])
plots.show(figure, "Rise of the loss without each of four heads: above zero for all of them.")
assert min(min(run["rise"]) for run in kept["reader"]) > 0.03

# %% [markdown]
# Not one goes for free. The claim of 2019 is about layers with 16 heads, six of them in a row, with room to spare; here are four heads in one layer. But being missed is not being needed. **What if the reader had been trained with one head of 64 from the start?**

# %%
guess = None  # (loss with one head, loss with four)

# %% tags=["nbval-check-output"]
losses = [[run["loss"] for run in kept[name]] for name in ("one head", "reader")]
reveal(guess, tuple(round(sum(three) / 3, 3) for three in losses))
assert abs(sum(losses[0]) - sum(losses[1])) / 3 < 0.05

# %% [markdown]
# Nearly the same. The next letter mostly depends on the last few, and one blend of them serves nearly as well as four. So many heads are a licence, not a guarantee: indispensable where a word has several relations to hold, as in the pointers, and idle where one will do. What a task needs must be measured.

# %% [markdown]
# ## Break it
#
# - Use `x.reshape(heads, n, d_k)` in your `split_heads`, and its inverse in `merge_heads`. What does the check say, and what would training have said?
# - In the pointers, let queries and keys see the numbers too: `q` and `k` of `words`. Which step of the proof fails now? Does the half fall with it?
# - Leave the division out of your attention and train the reader. How much slower does it start?

# %% [markdown]
# ## What you take along
#
# One head holds one distribution of weights: of r independent answers, h heads give h / r. Heads are columns of the same matrices: no more parameters, no more multiply-adds, but h n² scores. W_O adds up what they found. Dividing by √d_k, the size of a head, keeps the softmax where it can learn. What heads look at has to be measured. Lesson 07 explains what was borrowed.

# %% [markdown]
# Sources: Vaswani et al. 2017, sections 3.2.1 and 3.2.2; Michel et al. 2019, *Are Sixteen Heads Really Better than One?*; Voita et al. 2019; Clark et al. 2019. Lectures: L1, L2, L3, L4, L5.
