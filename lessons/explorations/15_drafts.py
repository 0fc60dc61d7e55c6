# %% [markdown]
# # Faster: a draft and a check
#
# **35 minutes · an exploration of lesson 15 · needs `shakespeare` (5.4 MB) and `smollm2` (93 MB)**
#
# Lesson 15 changes the model. **Can a model write more tokens in a pass without being changed at all?** You build the rule that lets it, see the proof that every probability stays as it was, and measure how many tokens a pass writes.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, measuring

# %% [markdown]
# ## Eight for the price of one?
#
# SmolLM2 (lesson 09) writes one token in each pass, and each pass fetches all of its 135 million parameters. **If a pass over one new token takes one unit of CPU time, how many does a pass over eight take?**

# %%
guess = None  # a factor

# %%
from time import process_time
from course_lib.data import characters, needs, shakespeare
from course_lib.pretrained import shakespeare_model, smollm2

# %%
needs("smollm2")


# %%
torch.set_num_threads(1)  # so that CPU time is running time
model = smollm2.load()
text = model.tokenizer.encode("It was the best of times, it was the worst of times").ids


def seconds_of(rows, times=4):
    score, taken = model.scoring(), []
    with torch.no_grad():
        score(text, 1)
        for _ in range(times):
            start = process_time()
            score(text, rows)
            taken.append(process_time() - start)
    return min(taken)


# %%
one, eight = seconds_of(1), seconds_of(8)
reveal(guess, eight / one)
claim = "eight tokens take less than five times as long as one"
measuring.expect(claim, eight < 5 * one, f"{eight / one:.1f} times")

# %%
needs()

# %% [markdown]
# Eight tokens cost far less than eight passes. But the next tokens are not known yet. So let something cheap guess them: a **draft** proposes $m$ tokens, the large model scores all of them in one pass, and those before the first rejection stay (**speculative decoding**, Leviathan et al. 2023).

# %% tags=["hide-input"]
diagram = drawings.Diagram()
words = ["the", "worst", "of", "times", "and"]
diagram.text("draft", (-0.3, 3), size=9, align="right")
diagram.text("one pass of\nthe large model", (-0.3, 1.5), size=9, align="right")
diagram.text("text", (-0.3, 0), size=9, align="right")
verdicts = ["✓", "✓", "✓", "✗", ""]
written = ["the", "worst", "of", "all", ""]
for i, word in enumerate(words):
    x = 1.2 + 2.1 * i
    diagram.box(word, (x, 3), "query", size=(1.7, 0.8))
    diagram.box(f"$p_{i + 1} / q_{i + 1}$ {verdicts[i]}", (x, 1.5), "network", size=(1.9, 0.8))
    diagram.arrow((x, 2.6), (x, 1.9))
    if written[i]:
        role = "query" if i < 3 else "value"
        diagram.box(written[i], (x, 0), role, size=(1.7, 0.8))
        diagram.arrow((x, 1.1), (x, 0.4))
diagram.text("not looked at", (9.6, 0.6), size=9, colour="0.4")
diagram.show(
    "Five drafted tokens: the, worst, of, times, and. One pass of the large model compares its "
    "probability p with the draft's q for each. The first three are accepted. The fourth is "
    "rejected, and another token, all, is sampled in its place. The fifth is not looked at.",
)

# %% [markdown]
# Let $q(x)$ be the draft's probability of a token and $p(x)$ the large model's. Accept $x$ with probability $\min(1, p(x)/q(x))$. After a **rejection**, sample from the **residual distribution**, where the draft gave too little:
#
# $$r(x) = \frac{\max(p(x) - q(x), 0)}{\sum_y \max(p(y) - q(y), 0)}$$
#
# If all $m$ are accepted, the last row of the same pass gives one more token for nothing.

# %% [markdown]
# Then every token has exactly the large model's probability. A rejection happens with probability $1 - \sum_y \min(p, q) = \sum_y \max(p - q, 0)$, the denominator of $r$:
#
# $$\underbrace{q \min(1, p/q)}_{\text{drafted, accepted}} + \underbrace{\Big(1 - \sum_y \min(p, q)\Big)\, r}_{\text{rejected, sampled again}} = \min(p, q) + \max(p - q, 0) = p$$

# %%
# exercise: speculative/accept

# %%
check("speculative/accept", accept)

# %%
accept = mine("speculative/accept")

# %% [markdown]
# Check the sum with four tokens, a bad draft and your function. In place of a random number, take 1,000 equally spaced ones.

# %% tags=["nbval-check-output"]
draft = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
target = torch.tensor([[0.6, 0.2, 0.1, 0.1], [0.25] * 4])
total = torch.zeros(4)
for token in range(4):
    for uniform in (torch.arange(1000.0) + 0.5) / 1000:
        count, rest = accept(torch.tensor([token]), draft, target, uniform[None])
        drawn = F.one_hot(torch.tensor(token), 4) if count else rest
        total += draft[0, token] / 1000 * drawn
print([round(share, 3) for share in total.tolist()])
assert torch.allclose(total, target[0], atol=1e-3)

# %% [markdown]
# These are the target's probabilities, not the draft's.
#
# ## How many tokens does a pass write?
#
# Suppose that each drafted token is accepted with the same probability $\alpha = \sum_y \min(p, q)$, independently. At least $i$ of them are accepted with probability $\alpha^i$, and one token is always added:
#
# $$E[\text{tokens}] = 1 + \alpha + \alpha^2 + \dots + \alpha^m = \frac{1 - \alpha^{m+1}}{1 - \alpha}$$
#
# The assumption is a simplification. How far does it carry? Lesson 10's Shakespeare model *samples* characters here, and the draft is a table of counts of four characters.

# %%
needs("shakespeare")

# %%
from course_lib.corpus import NGrams
from course_lib.beyond import speculate

text = shakespeare.complete_works()[:1_115_394]
known = characters.Characters(text)
tokens = known.encode(text)
counts = NGrams(tokens[: round(0.9 * len(tokens))], len(known), 4)
trained = shakespeare_model.load()
prompt = known.encode("\nROMEO.\n").tolist()


# %%
def target(tokens, rows):
    with torch.no_grad():
        return trained(torch.tensor(tokens)).softmax(-1)[-rows:]


def by_counts(tokens, most, generator):
    drafted, rows = list(tokens), [torch.zeros(0, len(known))]
    for _ in range(most):
        rows.append(counts.probabilities(torch.tensor(drafted[-3:]))[-1:])
        drafted.append(int(torch.multinomial(rows[-1][0], 1, generator=generator)))
    return torch.tensor(drafted[len(tokens) :]).long(), torch.cat(rows)


# %%
def write(ahead, seed):
    generator = torch.Generator().manual_seed(100 + seed)

    def draft(tokens, most):
        return by_counts(tokens, most, generator)

    return speculate(target, draft, prompt, 100, ahead, seed)


# %% tags=["once"]
texts = [write(0, seed)[0] for seed in range(6)]
shares = []
for written in texts:
    p = target(written, 101)[:-1]
    q = counts.probabilities(torch.tensor(written))[-101:-1]
    shares.append(torch.minimum(p, q).sum(-1).mean().item())
alpha = sum(shares) / 6
print(f"alpha = {alpha:.2f}, one text {min(shares):.2f} to {max(shares):.2f}")
print(known.decode(torch.tensor(texts[0])))

# %% tags=["once"]
came, expected = {}, {}
for m in (1, 2, 4, 8):
    came[m] = 600 / sum(write(m, seed)[1] for seed in range(6))
    expected[m] = (1 - alpha ** (m + 1)) / (1 - alpha)
    print(f"m = {m}: {came[m]:.2f} tokens a pass, by the formula {expected[m]:.2f}")
    assert abs(came[m] / expected[m] - 1) < 0.1
assert came[8] - came[4] < came[2] - came[1] + 0.1

# %%
needs()

# %% [markdown]
# The formula is within a few percent for each $m$. The sum converges to $1/(1 - \alpha)$, and the $m$-th token of a draft adds $\alpha^m$ only. When to stop depends on what it costs. With a small model of the same family as draft, Leviathan et al. 2023 report two to three times the speed.
#
# (For the distribution of the text it makes no difference which draft you take. A test of the course writes 3,000 texts with a draft and compares all counts with the exact probabilities.)

# %% [markdown]
# ## What to remember
#
# Accept with probability $\min(1, p/q)$, else draw from $\max(p - q, 0)$, normalised: the text is distributed as the large model's own. A pass writes $(1 - \alpha^{m+1})/(1 - \alpha)$ tokens on average, if acceptances were independent.
#
# Leviathan et al. 2023. A draft may cost no model at all, and copy what followed when these tokens came last (Saxena 2023, reported).
