# %% [markdown]
# # 16 · Masked language models and fine-tuning
#
# **75 minutes · after lesson 15 · needs `minilm` (84 MB) and `shakespeare` (5.4 MB)**
#
# Labels are expensive: somebody has to read each text and write down the answer. Text without labels is nearly free. **What can a model learn from text before anybody labels it, and what is that good for afterwards?**
#
# At the end, your head on a pretrained encoder obeys sentences whose wording no label had. And you have pretrained a small encoder yourself.

# %%
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import home_commands, needs, plays
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, results, training
from course_lib.instruments.pictures import masked_models as pictures

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
drawings.transformer(
    {"self-attention", "feed-forward", "add & norm", "embedding", "positions"},
    "The map of the course. Today it is the left half, the encoder: embedding, positions, "
    "self-attention, feed-forward network, add & norm. No token is hidden from another one.",
    stacks=("encoder",),
)

# %%
cross_entropy = mine("language_model/cross_entropy")
mean_pool = mine("encoder/mean_pool")

# %%
needs("minilm")

# %%
from course_lib.data.home_commands import action
from course_lib.instruments import intents
from course_lib.instruments.intents import act, share_right
from course_lib.pretrained import minilm

# %% [markdown]
# ## A wording that no label has
#
# We want a home that does what people tell it. We have made a hundred sentences out of fixed wordings, and labelled each with one of eleven actions.

# %%
commands = home_commands.split(1000, 200, SEED)
labelled = commands["learning"][:100]
for command in labelled[:4]:
    print(f"{command.said:45} {action(command)}")

# %% [markdown]
# People will say it in other words. We hold out 24 wordings that no label has, such as these:

# %%
for command in commands["new wordings"][:4]:
    print(command.said)

# %% [markdown]
# To choose an action, a sentence becomes one vector, and a linear **head** scores the actions. The vector may come from
#
# - **counted words**, our **baseline**: how often the sentence has each word of the labelled ones;
# - a **pretrained encoder**, MiniLM of lesson 09: the mean of its states. It stays as it is (**frozen features**, left), and is trained later (right).

# %% tags=["hide-input"]
pictures.two_ways()

# %% [markdown]
# BERT, the encoder that made this famous, reads the answer from the state of a special first token; we take the mean of all real tokens. With states $h_i$, and real tokens $i \in R$:
#
# $$\underset{1 \times classes}{z} = \Big(\frac{1}{|R|} \sum_{i \in R} h_i\Big)\, \underset{d_{model} \times classes}{W} + b$$

# %%
# exercise: pretraining/classify

# %%
check("pretraining/classify", classify)

# %%
classify = mine("pretraining/classify")

# %% [markdown]
# Your head, on an encoder:


# %%
class WithEncoder(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.w = encoder, nn.Parameter(torch.zeros(384, 11))
        self.b = nn.Parameter(torch.zeros(11))

    def forward(self, texts):
        tokens, mask = self.encoder.tokens(texts)
        return classify(self.encoder(tokens, mask), mask.squeeze(-2), self.w, self.b)


# %% tags=["training"]
baseline = intents.WithCounts(labelled)
frozen = WithEncoder(minilm.load().requires_grad_(False))
for model in (baseline, frozen):
    intents.train(model, labelled, 0.03, SEED, steps=100, seconds=60)

# %% [markdown]
# Say something to both, in wordings that no label has:


# %%
def ask(texts, **models):
    for text in texts:
        print(f"{text:40}", *(f"{name}: {act(model, text):30}" for name, model in models.items()))


new_wordings = (
    "i feel like dancing by the radio",
    "wake up the radio with a song",
    "i forgot my key, free the door",
    "i am cold, start the heater",
)

# %% tags=["training"]
ask(new_wordings, baseline=baseline, yours=frozen)

# %% [markdown]
# Yours is right all four times. Now two where it is sure, and wrong:

# %% tags=["training"]
opposites = ("let the sun in through the curtains", "make the lamp go dark")
ask(opposites, baseline=baseline, yours=frozen)
verbs = ("turn on", "turn off", "switch on", "buy")
vectors = frozen.encoder.embed([f"{verb} the lamp" for verb in verbs])
for verb, cosine in zip(verbs[1:], (vectors[0] @ vectors[1:].T).tolist()):
    print(f"cosine of “turn on the lamp” and “{verb} the lamp”: {cosine:.2f}")

# %% [markdown]
# Both models get the device right, and the direction wrong. To MiniLM *turn off* is as near to *turn on* as *switch on* is, and *buy* is farther away.
#
# Now two hundred held-out sentences of each kind: known wordings, which the labels have (**in-distribution**), and new ones. **Where is the head on MiniLM ahead of counted words by more than five points: in known wordings, in new ones, in both, or in neither?**

# %%
guess = None  # a list, such as ["known", "new wordings"]

# %% tags=["training"]
right = {}
for name, model in (("counted words", baseline), ("frozen", frozen)):
    right[name] = {kind: share_right(model, commands[kind]) for kind in ("known", "new wordings")}
    print(f"{name:15}", {kind: f"{share:.0%}" for kind, share in right[name].items()})
gaps = {kind: right["frozen"][kind] - right["counted words"][kind] for kind in right["frozen"]}
reveal(guess, [kind for kind, gap in gaps.items() if gap > 0.05])
claim = "in new wordings the head on MiniLM is ahead of counted words"
training.expect(claim, gaps["new wordings"] > 0, right, baseline, frozen)

# %% [markdown]
# The counting model only knows words that occur in the labelled sentences. MiniLM met the others before anybody labelled a command: first in plain text, then in pairs of sentences that belong together (lesson 09).
#
# Is it the architecture that helps, or what the model has read? Two others get the same head. One is MiniLM with random parameters, an **ablation**. The other is SmolLM2, a decoder that has read 2 trillion tokens, and no such pairs:

# %%
kept = results.load("pretraining")["figures"]
control = results.load("without_pairs")["figures"]
pictures.intents(kept, control, "In new wordings MiniLM leads, and most where labels are few")

# %% [markdown]
# In known wordings counting wins from 100 labels on, once each head's penalty is chosen, which ours above was not. In new ones the head on MiniLM is ahead of counting with every seed, and most where labels are fewest. With random parameters it is below counting: the architecture alone does not help. SmolLM2 brings less than half of MiniLM's lead, and with 24 labels none.
#
# <details><summary>How we know</summary>
#
# Three seeds draw the commands anew. Each head's penalty is chosen on two hundred others. SmolLM2's states are those after a middle block, which the same two hundred have chosen. It is a decoder, and MiniLM is an encoder, so more than pairs differs. Of BERT, too, it is reported that without pairs the mean of its states compares sentences worse than averaged word vectors (Reimers & Gurevych 2019).
# </details>

# %% [markdown]
# ## Train the encoder, too
#
# **Fine-tuning** trains head and encoder together, starting from the pretrained parameters, at a much smaller learning rate. Train the head alone first, then unfreeze the encoder:

# %% tags=["training"]
tuned = WithEncoder(minilm.load().requires_grad_(False))
history = intents.train(tuned, labelled, 0.03, SEED, steps=20)

# %% tags=["training"]
tuned.encoder.requires_grad_(True)
history = intents.train(tuned, labelled, 0.0001, SEED, steps=60, seconds=60)

# %% tags=["training"]
right["fine-tuned"] = {kind: share_right(tuned, commands[kind]) for kind in gaps}
for name, shares in right.items():
    print(f"{name:15}", {kind: f"{share:.0%}" for kind, share in shares.items()})
ask((*new_wordings, *opposites), **{"fine-tuned": tuned})
claim = "fine-tuned, it is ahead of counted words in new wordings"
ahead = right["fine-tuned"]["new wordings"] > right["counted words"]["new wordings"]
training.expect(claim, ahead, right, tuned, baseline)

# %% [markdown]
# Fine-tuning helps in known wordings, and costs nothing in new ones on average, though *free the door* is locked now. Does that rest on the rate? Percent right, three seeds:
#
# | | known wordings | new wordings |
# |:-|-:|-:|
# | the head, 20 steps | 86, 85, 85 | 81, 76, 80 |
# | fine-tuned | 94, 88, 94 | 80, 78, 82 |
# | at five times the rate | 93, 90, 96 | 82, 72, 78 |
# | at fifteen times the rate | 92, 83, 96 | 72, 72, 78 |
#
# It does: at five times the rate new wordings are behind the head with two seeds of three, and at fifteen times with every one. Kumar et al. (2022) report such losses.

# %% [markdown]
# Fine-tuning made pretraining famous in 2018. On **GLUE**, a set of English tasks, OpenAI GPT reached a mean of 75.1 on eight of them, and BERT of the same size 79.6 (Devlin et al. 2019, table 1, reported). The two had read different amounts of text, and had learned from it by different tasks.

# %% [markdown]
# ## Text asks its own questions
#
# Before its pairs MiniLM learned from BERT, and BERT from plain text. How does a model learn from that, without a label? **Pretraining** is training on a task whose answers are in the text itself. Two such tasks made history. GPT predicts the **next token** under a causal mask, as your model of lesson 10 does. BERT is a **masked language model**: some tokens are hidden, and it predicts them from both sides (**bidirectional**).

# %% tags=["hide-input"]
pictures.two_tasks()

# %% [markdown]
# In both, the loss is the mean of $-\log p(\text{token})$ over the targets. Seeing both sides has a price: a text of $n$ tokens gives $n$ targets to GPT, and about $0.15\, n$ to BERT.
#
# If all chosen tokens became [MASK], the model would only ever predict at [MASK] positions. Its last states of visible tokens would never be trained, and later tasks have only visible tokens. So BERT treats the chosen tokens in three ways:
#
# | share of the chosen | the model reads | its target |
# |-:|:-|:-|
# | 80 % | [MASK] | the token |
# | 10 % | a random token | the token |
# | 10 % | the token itself | the token |
#
# All other tokens get the target $-100$, which torch's cross-entropy ignores.

# %%
# exercise: pretraining/mask_tokens

# %%
check("pretraining/mask_tokens", mask_tokens)

# %%
mask_tokens = mine("pretraining/mask_tokens")

# %% [markdown]
# Our text is Shakespeare, by the word: 28 plays to read, and nine others for tests. [END] closes a speech, and [UNK] is a word that the vocabulary lacks. **BERT chooses 15 % of the tokens. Of a thousand words, how many does the model read wrong or hidden, on average?**

# %%
needs("shakespeare")

# %%
guess = None  # how many are wrong or hidden

# %%
import random

from course_lib.data import characters
from course_lib.pretrained import play_reader
from course_lib.pretrained.play_reader import MASK, UNKNOWN, Reader, Vocabulary

# %%
vocabulary = Vocabulary(plays.texts_to_read())
known = vocabulary.known
text = vocabulary.encode(plays.texts_to_read())
inputs, targets = mask_tokens(text, 0.15, MASK, len(known), (), seed=SEED)
print(" ".join(known[i] for i in inputs[2000:2030]))
changed = (inputs != text).float().mean().item()
reveal(guess, round(1000 * changed))

# %% [markdown]
# One chosen token in ten stays as it is: 0.15 × 0.9.
#
# ## Score only the targets
#
# The last layer scores every token of the vocabulary. Most positions have no target, so their scores would be thrown away. Let $A$ be the set of positions with a target, $h_i$ the state at position $i$, and $E$ the embedding table, which scores the tokens, too (**tied weights**, lesson 10):
#
# $$L = -\frac{1}{|A|} \sum_{i \in A} \log \mathrm{softmax}\big(\underset{1 \times d_{model}}{h_i}\;\underset{d_{model} \times vocab}{E^T}\big)_{t_i}$$

# %%
# exercise: pretraining/masked_loss

# %%
check("pretraining/masked_loss", masked_loss)

# %%
masked_loss = mine("pretraining/masked_loss")

# %% [markdown]
# ## Pretrain one yourself
#
# Now train an encoder of two blocks (lesson 10's, without its causal mask, and with a learned number for each distance in the scores) with your masks and your loss, without a label. Like ModernBERT (2024), we hide 30 % of the words, which gives more targets in each step (Wettig et al. 2023). First see what it predicts untrained:


# %%
lines = ("i pray [MASK] tell me", "what is [MASK] name", "she gave me [MASK] hand")
with training.seeded(SEED):
    reader = Reader(len(known), causal=False)
for line in lines:
    print(line, "→", play_reader.fill(reader, vocabulary, line))

# %% tags=["training"]
drawn = characters.batches(text, 48, 32, SEED)
batches = (
    mask_tokens(tokens, 0.3, MASK, len(known), (), seed=step)
    for step, (tokens, _) in enumerate(drawn)
)
training.train(
    reader,
    batches,
    lambda model, batch: masked_loss(model.states(batch[0]), model.output.weight, batch[1]),
    steps=800, learning_rate=4e-3, seconds=120,
)  # fmt: skip
for line in lines:
    print(line, "→", play_reader.fill(reader, vocabulary, line))

# %% [markdown]
# A pronoun after *pray*, a possessive before *hand*: a beginning of grammar.
#
# And what do the masks buy? Train the same two blocks as GPT is trained: the same plays, as many steps, and a target at *every* word, the next one.


# %% tags=["training"]
def next_loss(model, batch):
    return cross_entropy(model(batch[0]), batch[1])


with training.seeded(SEED):
    causal = Reader(len(known), causal=True)
drawn = characters.batches(text, 48, 32, SEED)
training.train(causal, drawn, next_loss, steps=800, learning_rate=4e-3, seconds=300)

# %% [markdown]
# Hide the middle word of nearly 1,800 stretches of the nine other plays. Your reader sees both sides, the causal one the left side:

# %% tags=["training"]
blanks = play_reader.blanks(vocabulary)  # 25 words each
masked = blanks.clone()
masked[:, 12] = MASK
with torch.no_grad():
    logits = {
        "both sides": reader.output(reader.states(masked)[:, 12]),
        "left side": causal(blanks[:, :12])[:, -1],
    }
nats = {side: play_reader.blank_loss(x, blanks[:, 12]) for side, x in logits.items()}
print({side: round(loss, 2) for side, loss in nats.items()})
claim = "both sides are better than the left one, by 0.05 nats at least"
training.expect(claim, nats["both sides"] < nats["left side"] - 0.05, nats, reader, causal)

# %% [markdown]
# The masks buy the right side. Here it is worth a little more than the targets that it costs: the causal reader has learned from over three times as many. **Counts** of the same plays, from the two words on each side, fill these blanks better still:

# %% tags=["hide-input", "nbval-check-output"]
counted = results.load("few_labels")["figures"]["both sides"]
print(f"counts with both sides {counted['loss']:.2f} nats")

# %% [markdown]
# <details><summary>How we know</summary>
#
# The counts are lesson 10's Kneser-Ney trigrams. In *a b x c d*, they score each $x$ by the chain rule, $p(x, c, d \mid a, b) = p(x \mid a, b)\, p(c \mid b, x)\, p(d \mid x, c)$.
# </details>

# %% [markdown]
# ## Ask it for whole texts
#
# How well does a *whole* text fit a masked model? Mask each token in turn, predict it, and average (Salazar et al. 2020):
#
# $$\mathrm{score}(t_1, \dots, t_n) = \frac{1}{n} \sum_{i} \log p\big(t_i \mid t_1, \dots, t_{i-1}, \text{[MASK]}, t_{i+1}, \dots, t_n\big)$$
#
# That takes $n$ copies of a text with $n$ tokens. Here is a function that makes them, with a bug: the scores come out far too good.

# %%
# exercise: pretraining/mend_targets

# %%
check("pretraining/mend_targets", hide_each)

# %%
hide_each = mine("pretraining/mend_targets")

# %% [markdown]
# Score a line of *Twelfth Night*, which your model has not read, and the same words shuffled. *Excess* is not scored: the vocabulary lacks it.


# %%
@torch.no_grad()
def score(words):
    inputs, targets = hide_each(vocabulary.encode(words), MASK, (UNKNOWN,))
    return -masked_loss(reader.states(inputs), reader.output.weight, targets).item()


# %% tags=["training"]
line = "if music be the food of love play on give me excess".split()
shuffled = random.Random(SEED).sample(line, 12)
scores = [score(words) for words in (line, shuffled)]
for words, mean in zip((line, shuffled), scores):
    print(f"{mean:.2f}", *words)
claim = "your model scores the line above its shuffled words, by more than a nat"
training.expect(claim, scores[0] - scores[1] > 1, scores, reader)

# %% [markdown]
# A model that never reads from left to right can tell this line from its shuffled words.

# %% [markdown]
# ## Labels in the prompt
#
# A causal model needs no new head: write the task into its text. SmolLM2 reads questions with answers, then one without, and goes on:
#
# *Q: What is the opposite of hot? A: cold. Q: What is the capital of Norway? A:*
#
# That is **in-context learning**, from **few-shot** examples (Brown et al. 2020). Is it the *answers* that it learns from them, or the *form*? Exchange four answers. **What percent of other questions does it answer in exactly the right word after four true examples, and after four wrong ones?**

# %%
guess = None  # (percent after true ones, percent after wrong ones)

# %% tags=["hide-input"]
four = kept["examples"]["4"], kept["wrong examples"]
reveal(guess, tuple(round(100 * sum(run["share"] for run in runs) / 3) for runs in four))
title = "Four examples with wrong answers bring most of what true ones do"
pictures.examples_in_the_prompt(kept, title)

# %% [markdown]
# Mostly the form: after wrong examples the model still gives two thirds as many right words, which it can only know from its training (Min et al. 2022 saw this in large models). More examples are not always better: with each of three draws eight do worse than two. The dashed line shows one reason: after one example half of the answers only repeat a word of the question, after two few do, after eight more again.

# %% [markdown]
# ## What came of it
#
# By the end of 2026 masked language models are used in two ways: to score and search texts, once fine-tuned, and to write.
#
# | | hidden | what it is for |
# |:-|:-|:-|
# | BERT (Devlin et al. 2019) | 15 % | to be fine-tuned |
# | ModernBERT (Warner et al. 2024), Ettin (Weller et al. 2025) | 30 % | the same, and search: rotary positions, local and global layers, 2 trillion tokens |
# | LLaDA (Nie et al. 2025), iLLaDA (Nie et al. 2026) | any share, drawn for each text | to *write*: a **diffusion language model** of 8 billion parameters |
#
# If any share may be hidden in training, all may be at the start of writing. Such a model begins with masks alone, fills in where it is surest, and looks again. Yours was trained with 30 %, but try it:


# %%
@torch.no_grad()
def write(line):
    """Fill in all blanks, each time the one where the model is surest."""
    tokens = vocabulary.encode(line.split())
    while (tokens == MASK).any():
        logits = reader.output(reader.states(tokens[None])[0])
        logits[:, [UNKNOWN, MASK]] = -torch.inf
        chances, words = logits.softmax(-1).max(-1)
        place = chances.masked_fill(tokens != MASK, 0).argmax()
        tokens[place] = words[place]
        print(" ".join(known[i] if i != MASK else "…" for i in tokens))


# %% tags=["training"]
write("i [MASK] thee [MASK] my [MASK] lord [MASK] come to [MASK]")

# %% [markdown]
# It fills in first what it is surest of, not what stands on the left. Encoders are still trained, too, for search, sorting and filtering: they are small, and read a text in one pass.

# %% [markdown]
# ## Break it
#
# - Say something that `frozen` gets wrong: `ask(["..."], yours=frozen)`. Is it the device, or the direction?
# - Let `mask_tokens` mask all chosen tokens, always, and pretrain again. Does the model fill blanks better, or worse? (Wettig et al. 2023 ask this of BERT.)
# - Train both readers at half the learning rate, and at twice it. Is the masked one always ahead?

# %% [markdown]
# ## What to remember
#
# Text without labels asks its own questions: which token comes next, or which one is hidden. Both sides of a hidden token say more than the left one alone. Trained on pairs of like sentences, too, a model helps in wordings that none of your labels has, most where labels are few. You use it through a head, through fine-tuning, by the model's own score, or with a few examples in the prompt. Compare it with counting: a table of the same plays fills the blanks better than your model.
#
# | | |
# |:-|:-|
# | BERT's masks | 15 % chosen: 80 % [MASK], 10 % random, 10 % as they are |
# | masked loss | $-\frac{1}{\lvert A\rvert} \sum_{i \in A} \log \mathrm{softmax}(h_i E^T)_{t_i}$, scored on $A$ alone |
# | score of a text | $\frac{1}{n} \sum_i \log p(t_i \mid \text{all others})$, $n$ copies |
# | head | $z = \mathrm{mean}_{i \in R}(h_i)\, W + b$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A batch has 32 texts of 128 tokens. About how many targets does BERT get? And a causal model that is also given the token after each text?</summary>
#
# 0.15 · 4,096 = 614, and 4,096.
# </details>
#
# <details><summary>2. Why do 10 % of the chosen tokens stay as they are?</summary>
#
# So that the model must have a good state for tokens that it sees, too: it cannot know which of them is asked for. In its later tasks nothing is masked.
# </details>
#
# <details><summary>3. "Our fine-tuned model gets 93 %." What do you ask?</summary>
#
# Do the tests have wordings that the labels have not? What do counted words get there? Over how many seeds?
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 17 fine-tunes a causal model until it acts in a home like this one.
#
# Devlin et al. 2019 (BERT); Radford et al. 2018 (GPT); Peters et al. 2018 (ELMo); Wang et al. 2018 (GLUE); Salazar et al. 2020 (scores from masks); Howard & Ruder 2018 (fine-tuning). Lectures: L1 and L2.
