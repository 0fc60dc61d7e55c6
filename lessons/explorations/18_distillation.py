# %% [markdown]
# # What does a small model learn from a large one?
#
# **20 minutes · an exploration of lesson 18 · needs `shakespeare` (5.4 MB)**
#
# Training compares a model with a text. At each place one character is right, and all others are equally wrong. A larger model knows more about a place than the text shows: what else could have followed, and how likely it was. **Can a small model learn from that, where it has little text?** You train the same small model both ways.

# %%
import torch
from course_lib.data import characters, needs, shakespeare
from course_lib.exercises import mine, reveal
from course_lib.instruments import results, training
from course_lib.instruments.pictures import distilling
from course_lib.positions import LearnedPositions
from course_lib.pretrained import shakespeare_model

# %% [markdown]
# ## Two targets for one place
#
# The larger model is lesson 10's, with 1.8 million parameters. It has read the whole training text five times, and is built from your parts. The small one has an eighth of its parameters, and gets a fiftieth of the text: 21 pages of 1,000 characters, from all over the book.

# %%
needs("shakespeare")

# %%
LanguageModel, EncoderBlock = mine("language_model/model"), mine("encoder/block")
cross_entropy, examples = mine("language_model/cross_entropy"), mine("language_model/examples")

# %% tags=["nbval-check-output"]
text = shakespeare.complete_works()[:1_115_394]
known = characters.Characters(text)
tokens = known.encode(text)
learning, held_out = tokens.split(
    [round(0.9 * len(tokens)), len(tokens) - round(0.9 * len(tokens))]
)
pages = learning.unfold(0, 1_000, 50_000)  # one of fifty
inputs, targets = (torch.cat(x) for x in zip(*(examples(page, 64, 16) for page in pages)))
teacher = shakespeare_model.load(LanguageModel, EncoderBlock)
with torch.no_grad():
    soft = torch.cat([teacher(x).softmax(-1) for x in inputs.split(64)])
print(f"{pages.numel():,} characters, {len(inputs):,} windows of 64")

# %% [markdown]
# Here is one place in them. The text has one answer to what follows, the larger model has seventy-seven:

# %%
row, place = 261, 58
likely = soft[row, place].topk(8)
chances = {known.decode(i[None]): p for i, p in zip(likely.indices, likely.values.tolist())}
before = known.decode(inputs[row, place - 19 : place + 1])
distilling.two_targets(before, known.decode(targets[row, place][None]), chances)

# %% [markdown]
# It knows that a vowel follows, and how often each does. To learn from the text, the small model minimises the cross-entropy to the one character that follows. To learn from the larger model, it minimises the cross-entropy to its whole distribution $p_T$ over the characters $v$, the **soft targets**:
#
# $$L_{\text{text}} = -\log p_S(t) \qquad\qquad L_{\text{model}} = -\sum_v p_T(v) \log p_S(v) = H(p_T) + \mathrm{KL}(p_T \,\|\, p_S)$$
#
# $H(p_T)$ does not depend on the small model, so the second loss is smallest where $p_S = p_T$. This is **distillation**, the larger model is the **teacher**, the small one the **student** (Hinton et al. 2015).


# %%
def from_text(model, batch):
    inputs, targets, _ = batch
    return cross_entropy(model(inputs), targets)


def from_teacher(model, batch):
    inputs, _, soft = batch
    return -(soft * model(inputs).log_softmax(-1)).sum(-1).mean()


# %% [markdown]
# Both students begin with the same parameters and read the same windows, 250 batches of them. **How many nats a character is the teacher's student ahead on text that neither has read?**

# %%
guess = None  # a number of nats

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["training"]
sizes = {"vocab": 77, "layers": 2, "d_model": 96, "heads": 4, "d_ff": 384, "max_length": 64}


def batches(generator):
    while True:
        drawn = torch.randint(len(inputs), (32,), generator=generator)
        yield inputs[drawn], targets[drawn], soft[drawn]


# %% tags=["training"]
students = {}
for name, loss in {"the text": from_text, "the teacher": from_teacher}.items():
    with training.seeded(SEED):
        student = LanguageModel(**sizes, positions=LearnedPositions, block=EncoderBlock)
    drawn = batches(torch.Generator().manual_seed(SEED))
    training.train(student, drawn, loss, steps=250, seconds=60, learning_rate=0.006)
    students[name] = student


# %% tags=["training"]
@torch.no_grad()
def held_out_loss(model):
    """Return nats a character over the second halves of windows that nobody has learned from."""
    read, following = examples(held_out, 64, 32)
    logits = torch.cat([model(x) for x in read.split(64)])
    return cross_entropy(logits[:, 32:], following[:, 32:]).item()


measured = {name: round(held_out_loss(model), 2) for name, model in students.items()}
reveal(guess, round(measured["the text"] - measured["the teacher"], 2))
claim = "the student of the teacher is at least 0.1 nats ahead of that of the text"
ahead = measured["the teacher"] < measured["the text"] - 0.1
training.expect(claim, ahead, measured, *students.values())

# %% [markdown]
# Same initial parameters, same characters, same steps. What differs is how much one place says: the text tells which character came, the teacher what else may come there, from all that it has read.
#
# ## Learning by heart
#
# Twenty-one pages can be learned by heart. Watch the loss on unseen text while both students go on:

# %%
kept = results.load("distillation")["figures"]
distilling.along_the_way(kept)

# %% [markdown]
# The student of the text gets better, then worse: it **overfits**, because these pages are all that it is compared with. You would stop it early, at its best. The teacher's student does not get worse, since its targets say at each place what else could have followed.
#
# Is that only a matter of little text? Here is the same with all of it, after as many steps:

# %%
print("at last  at its best")
for arm, runs in kept["runs"].items():
    last, best = (sum(x) / len(runs) for x in ([run[-1] for run in runs], map(min, runs)))
    print(f"{last:7.2f}{best:13.2f}  {arm}")
print(f"{kept['teacher']:7.2f}{'':13}  the larger model itself")

# %% [markdown]
# With all of the text the teacher still helps at equal steps. But its own passes take time, too, and with half as many steps more the text alone is ahead. A teacher is worth its time where text is scarce.

# %% [markdown]
# ## What the large ones do
#
# Soft targets need the teacher's probabilities and its vocabulary. Where you have only what a teacher *writes*, its text can be the target, token by token (Kim & Rush 2016). That is how reasoning is handed on: 800,000 answers drawn from DeepSeek-R1 and checked taught six smaller models, by lesson 17's loss, and that worked better for a small model than reward (Guo et al. 2025, reported). Lesson 09's MiniLM imitated its teacher's attention weights instead.

# %%
needs()

# %% [markdown]
# ## What to remember
#
# | | |
# |:-|:-|
# | from a text | $-\log p_S(t)$: one token is right |
# | from a teacher | $-\sum_v p_T(v) \log p_S(v)$: smallest where $p_S = p_T$ |
# | from a teacher's text | $-\log p_S(t)$, with $t$ drawn from $p_T$ |
#
# <details><summary>The teacher has read all of the training text. Did its student then really learn from 21 pages?</summary>
#
# It saw no others. But what the teacher has read elsewhere is in its distributions, and that is the point: a student can get it without that text.
# </details>
#
# Hinton et al. 2015 (soft targets); Kim & Rush 2016 (a teacher's texts); Guo et al. 2025 (reasoning). Titles and links: docs/REFERENCES.md.
