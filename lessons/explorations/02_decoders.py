# %% [markdown]
# # Two decoders with attention
#
# **15 minutes · an exploration of lesson 02 · needs nothing**
#
# The first decoder with attention (Bahdanau et al. 2015) and the one of lesson 02 (after Luong et al. 2015) put it in different places. **Does it matter where?** Lecture L3 (lesson 00 lists the lectures) draws the first.

# %%
from time import perf_counter

import torch

from course_lib.exercises import hint, mine, reveal, solution
from course_lib.instruments import results
from course_lib.seq2seq import BahdanauSeq2Seq, Seq2Seq

# %%
attend = mine("attention/attend")

# %% [markdown]
# ## Before the step, or after it
#
# Lectures draw one or the other, and both are called attention (D20).
#
# | | L3 (SUSTech CS310), after Bahdanau et al. 2015 | lesson 02, after Luong et al. 2015 |
# |:-|:-|:-|
# | the query | $s_{i-1}$, the state before the step | $s_i$, the state after it |
# | the context goes | into the GRU: $s_i = \mathrm{GRU}([y_{i-1}; c_i], s_{i-1})$ (in Bahdanau's paper also into the output) | into the output: $[s_i; c_i]$ |
# | in training | $c_i$ must be known before step $i$ | all contexts at once, after all steps |
#
# `course_lib.seq2seq` has both, `BahdanauSeq2Seq` and `Seq2Seq`. The stored runs have L3's form: the context goes into the GRU only, and the score is our dot product. **Which one reads better after 1,500 steps?** (Three seeds, the same score, softmax and encoder.)

# %%
guess = None  # "L3's decoder" or "lesson 02's decoder"

# %%
kept, both = results.load("attention")["figures"], {}
decoders = {"lesson 02's decoder": "attention", "L3's decoder": "Bahdanau's decoder"}
for name, stored in decoders.items():
    runs = kept[stored]
    both[name] = [sum(run["accuracy"][n - 3] for run in runs) / len(runs) for n in (4, 8, 12)]
    shares = ", ".join(f"{share:.2f}" for share in both[name])
    print(f"{name:21} {shares} at 4, 8 and 12 letters; {runs[0]['parameters']:,} parameters")
reveal(guess, max(both, key=lambda name: sum(both[name])))

# %% [markdown]
# At equal steps lesson 02's decoder is ahead at all three lengths, with fewer parameters. That says how *fast* the two learn here, not how good they can become.
#
# ## What has to wait
#
# In code the difference is one loop. Here are both decoders for one word of eight letters and seven sounds that are known, as in training; the weights are random, since only the order of the operations counts.

# %%
states, first = torch.randn(1, 9, 64), torch.randn(1, 64)
sounds = torch.randint(3, 73, (1, 8))
luong = Seq2Seq(30, 73, 32, 64, attend=attend)
bahdanau = BahdanauSeq2Seq(30, 73, 32, 64, attend=attend)


# %%
def all_at_once():
    hidden = luong.decoder(luong.embedding(sounds), first)
    return attend(hidden, states)[0]  # one call for all contexts


# %%
def one_by_one():
    h, contexts = first, []
    for x in bahdanau.embedding(sounds).unbind(dim=1):
        c, _ = attend(h[:, None], states)  # the query is the state before the step
        h = bahdanau.decoder(torch.cat([x[:, None], c], dim=-1), h)[:, -1]
        contexts.append(c)
    return torch.cat(contexts, dim=1)


# %%
assert all_at_once().shape == one_by_one().shape == (1, 8, 64)

# %% [markdown]
# Count the calls of `attend`: one against eight. (The GRU itself steps through the sounds in both; a Transformer's decoder does not, which is why it kept the first form.) **In a training step of 128 words with twelve sounds, how many times as long does the second decoder take, forward and backward?**

# %%
guess = None  # a factor


# %%
def milliseconds(model):
    source, target = torch.randint(3, 30, (128, 12)), torch.randint(3, 73, (128, 12))
    taken = []
    for _ in range(6):
        start = perf_counter()
        model(source, target).sum().backward()
        taken.append(1000 * (perf_counter() - start))
    return min(taken)


# %%
times = {"after the step": milliseconds(luong), "before it": milliseconds(bahdanau)}
print({name: f"{taken:.0f} ms" for name, taken in times.items()})
reveal(guess, times["before it"] / times["after the step"])

# %% [markdown]
# About twice as long on one processor, where the GRU's own steps take much of the time in both. On a machine that can compute all contexts at once, the number of calls that wait for each other matters more.
#
# Bahdanau et al. 2015; Luong et al. 2015. Titles and links: docs/REFERENCES.md.
