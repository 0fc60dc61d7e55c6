# %% [markdown]
# # Two decoders with attention
#
# **15 minutes · an exploration of lesson 02 · nothing to fetch**
#
# The first decoder with attention (Bahdanau et al. 2015) and the one of lesson 02 (after Luong et al. 2015) put it in different places. **Does it matter where?** Lecture L3 draws the first; lesson 00 lists the lectures.

# %%
from course_lib.exercises import hint, reveal, solution
from course_lib.instruments import results

# %% [markdown]
# ## Before the step, or after it
#
# | | L3 (SUSTech CS310), after Bahdanau et al. 2015 | this lesson, after Luong et al. 2015 |
# |:-|:-|:-|
# | the query | $s_{i-1}$, the state before the step | $s_i$, the state after it |
# | the context goes | into the GRU: $s_i = \mathrm{GRU}([y_{i-1}; c_i], s_{i-1})$ (in Bahdanau's paper also into the output) | into the output: $[s_i; c_i]$ |
# | in training | $c_i$ must be known before step $i$ | all contexts at once, after all steps |
#
# `course_lib.seq2seq` has both, `BahdanauSeq2Seq` and `Seq2Seq`. The stored runs have L3's form: the context goes into the GRU only, and the score is our dot product. **Which one reads better after 1,500 steps?** (Three seeds, the same score, softmax and encoder.)

# %%
guess = None  # "L3's decoder" or "this lesson's decoder"

# %%
kept, both = results.load("attention")["figures"], {}
decoders = {"this lesson's decoder": "attention", "L3's decoder": "Bahdanau's decoder"}
for name, stored in decoders.items():
    runs = kept[stored]
    both[name] = [sum(run["accuracy"][n - 3] for run in runs) / len(runs) for n in (4, 8, 12)]
    shares = ", ".join(f"{share:.2f}" for share in both[name])
    print(f"{name:21} {shares} at 4, 8 and 12 letters; {runs[0]['parameters']:,} parameters")
reveal(guess, max(both, key=lambda name: sum(both[name])))

# %% [markdown]
# At equal steps this lesson's decoder is ahead at all three lengths, with fewer parameters. That is a result about *how fast* the two learn here, not about how good they can become. The last row of the table needs no experiment: the contexts of L3's decoder must be computed one by one, between the steps of the GRU.
