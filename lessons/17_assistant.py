# %% [markdown]
# # 17 · From your model to an assistant
#
# **75 minutes · after lesson 16 · needs `smollm2` (93 MB)**
#
# A language model continues a text. An assistant answers, and does what it is told. **How does the one become the other, and what does it lose on the way?**
#
# At the end you have trained a real model of 135 million parameters, on your machine, to turn what people say to their home into commands. You can say which rivals do that without training, what the model has forgotten, and what a loss on *preferences* does.

# %%
import json
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import home_commands, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
drawings.transformer(
    {"masked self-attention", "feed-forward", "add & norm", "embedding", "linear, softmax"},
    "The map of the course. Today it is the right half without its cross-attention, the decoder: "
    "embedding, masked self-attention, feed-forward network, add & norm, and the scores.",
    stacks=("decoder",),
)

# %%
masked_loss = mine("pretraining/masked_loss")

# %%
needs("smollm2")

# %%
from copy import deepcopy

from course_lib.pretrained import smollm2
from course_lib.pretrained.smollm2 import conversations, turns

model = smollm2.load().requires_grad_(False)

# %% [markdown]
# ## A form for talking
#
# Lesson 09 showed the trick: a conversation is one text, with a **chat template** that says who speaks. The special tokens `<|im_start|>` and `<|im_end|>` mark each turn. The model's part is to go on after `assistant`, up to the first `<|im_end|>`. (A *system* turn can come first and give the model a role. We leave it out.)

# %%
question = "What is the opposite of hot?"
print(turns(question, system=None))

# %%
prompts = {
    "as it is": question,
    "as a page": f"Q: {question}\nA:",
    "template": turns(question, system=None),
}
for name, text in prompts.items():
    tokens = torch.tensor([model.tokenizer.encode(text).ids])
    first = model.tokenizer.id_to_token(int(model(tokens)[0, -1].argmax()))
    print(f"{name:10} likeliest first {first!r:14} it writes {''.join(model.write(text, 12))!r}")

# %% [markdown]
# This bare question ends at once; a text that *looks* like question and answer brings one, and so does the template. The makers of this model pretrained it on 2 trillion tokens, then trained it on conversations in this form (**instruction tuning**, or supervised fine-tuning, SFT: next-token prediction), then on *preferences* (Allal et al. 2025). Today you repeat the first step in small, and build the loss of the second.
#
# ## Learn the answers alone
#
# A conversation holds the user's words, too. Usually only the assistant's tokens are targets (as for Llama 2, Touvron et al. 2023):

# %% tags=["hide-input"]
diagram = drawings.Diagram()
shown = ["user", "lamp", "off", "assistant", "{action", "…}", "end", "pad"]
wide, size = 1.5, (1.43, 0.6)
for i, token in enumerate(shown):
    role = "value" if 4 <= i < 7 else "dim" if i == 7 else "stream"
    box = diagram.box(token, (wide * i, 0), role, size=size)
    if 3 <= i < 6:
        target = diagram.box(shown[i + 1], (wide * i, 1.3), "value", size=size)
        diagram.arrow(box, target, role="value")
    else:
        diagram.text("−100", (wide * i, 1.3), size=9)
diagram.text("target", (-1.25, 1.3), size=9)
diagram.text("token", (-1.25, 0), size=9)
for name, count, y in (("asked = 4", 4, -0.75), ("lengths = 7", 7, -1.35)):
    end = wide * (count - 1) + 0.71
    diagram.arrow((-0.71, y), (end, y))
    diagram.text(name, (end + 0.15, y), size=9, align="left")
diagram.show(
    "A row of eight tokens: user, lamp, off, assistant are the prompt (asked = 4), then the answer: "
    "action, the rest, end (lengths = 7), then padding. The target above assistant is action, "
    "above action the rest, above the rest the end; all other targets are -100.",
)

# %% [markdown]
# The target of a place is the *next* token. So the first target is at the last token of the prompt, and the last target is the token that ends the answer: without it, the model would never learn to stop. All other targets are $-100$, as in lesson 16.

# %%
# exercise: assistant/answer_mask

# %%
check("assistant/answer_mask", answer_targets)

# %%
answer_targets = mine("assistant/answer_mask")

# %% [markdown]
# ## A task that nobody has shown it
#
# Assistants act by writing calls of programs: **tool use**, or function calling. Here a home should do what people say. *The lamp in the hall off please* means one line of JSON, with an action of Home Assistant, whose texts you know from lesson 11:

# %%
commands = home_commands.split(2000, 30, SEED)
for command in commands["learning"][:4]:
    print(f"{command.said:50} {command.means}")

# %% [markdown]
# The sentences are made: 12 kinds of commands, six wordings of each, 40 rooms, 17 devices. That makes it easy to be fooled, since a held-out sentence may differ from a learned one in a number only (lesson 11's near-duplicates). So there are four lists, with 30 sentences each:

# %% tags=["hide-input"]
for name in home_commands.LISTS:
    print(f"{name:13}", *(f"{x.said!r}" for x in commands[name][:3]), sep="  ")
seen = {x.said for x in commands["learning"]}
assert not seen & {x.said for name in home_commands.LISTS for x in commands[name]}

# %% [markdown]
# A command is right if every token is. Must the model write it out for that? No: greedy decoding writes a given row of tokens exactly if each is the likeliest one *after the right beginning*. That takes one pass of teacher forcing, and no writing. (`conversations` returns rows of tokens, the lengths of the prompts, and those of prompt and answer together: what your function takes.)


# %%
def rows_of(model, some):
    """Return tokens, lengths of the prompts, and lengths of prompt and answer."""
    return conversations(model.tokenizer, [(turns(x.said, system=None), x.means) for x in some])


@torch.no_grad()
def right(model, some):
    """Return the share of commands that greedy decoding would write exactly."""
    found = []
    for i in range(0, len(some), 10):
        batch = rows_of(model, some[i : i + 10])
        wanted, likeliest = answer_targets(*batch), model(batch[0]).argmax(-1)
        found += ((likeliest == wanted) | (wanted == -100)).all(-1).tolist()
    return sum(found) / len(found)


# %%
said = commands["known"][0]
print(said.said, "→", "".join(model.write(turns(said.said, system=None), 30)))
print({name: right(model, commands[name][:10]) for name in home_commands.LISTS})

# %% [markdown]
# It talks, as it was trained to. (Nobody showed it what we want: a rival below gets examples.)
#
# ## Change a few numbers
#
# To fine-tune all 134.5 million parameters takes weights, gradients and Adam's two averages: $4 \times 4$ bytes for each. **LoRA** (low-rank adaptation, Hu et al. 2021) freezes the weights and learns only a *change* for some matrices, of low rank:
#
# $$\underset{n \times d_{out}}{y} = x\, W^T + \frac{\alpha}{r}\; x\, \underset{d_{in} \times r}{A^T}\; \underset{r \times d_{out}}{B^T}$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
x_box = diagram.box("x", (0, 0), "stream", size=(1.0, 0.7))
frozen = diagram.box("W, frozen", (3.6, 1.0), "dim", size=(2.6, 1.1))
down = diagram.box("A", (2.7, -1.0), "plain", size=(0.7, 1.3))
up = diagram.box("B, first zero", (5.1, -1.0), "plain", size=(2.3, 0.6))
total = diagram.box("+", (8.4, 0), "stream", size=(0.7, 0.7))
diagram.arrow(x_box, frozen)
diagram.arrow(x_box, down)
diagram.arrow(down, up)
diagram.arrow(frozen, total)
diagram.arrow(up, total, r"$\times\, \alpha / r$")
diagram.text(r"$n \times d_{in}$", (0, 0.65), size=9)
diagram.text(r"$n \times d_{out}$", (9.5, 0), size=9)
diagram.text(r"$n \times r$", (3.5, -1.75), size=9)
diagram.show(
    "x goes two ways: through the frozen matrix W, and through A down to r = 8 numbers and through "
    "B, which is zero at first, up again. The second way is scaled by alpha over r, and the two "
    "are added.",
)

# %% [markdown]
# $B$ begins with zeros, so training begins at the pretrained model. $A$ is random: if both were zero, both gradients would be, too. For a matrix of $576 \times 576$ and $r = 8$, the two have 2.8 % of its numbers.

# %%
# exercise: lora/layer

# %%
check("lora/layer", LowRankLinear)

# %%
LowRankLinear = mine("lora/layer")

# %% [markdown]
# We put your layer in the place of all seven matrices of the last ten blocks. The rest was frozen when we loaded it. (Where only the last blocks learn, the backward pass ends there, a third of the way.)

# %%
from course_lib.lora import adapt, merge_all

names = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_3")
mine_tuned = deepcopy(model)
with training.seeded(SEED):
    trained = adapt(mine_tuned.blocks[-10:], names, lambda linear: LowRankLinear(linear, 8, 16))
row = rows_of(model, commands["known"][:1])[0]
begin = torch.equal(model(row), mine_tuned(row))
count = sum(p.numel() for p in trained)
whole = sum(p.numel() for name, p in model.named_parameters() if not name.endswith("bias"))
print(f"trained: {count:,} of {whole:,}, {count / whole:.2%}; the same scores as before: {begin}")
assert begin and round(count / whole, 3) == 0.006

# %% tags=["hide-input"]
megabytes = {
    "everything trained, float32": 16 * whole / 1e6,
    "LoRA, float32": (4 * whole + 16 * count) / 1e6,
    "LoRA, frozen weights as filed": (98e6 + 16 * count) / 1e6,
}
print("counted: weights, gradients and Adam's averages (lesson 12)")
for way, size in megabytes.items():
    print(f"{way:32}{size:8,.0f} MB")
kept = results.load("assistant")["figures"]
print("measured: all that a process takes, with Python, PyTorch and activations")
for way in ("everything", "last block", "LoRA"):
    print(f"{way:32}{kept['memory'][way]:8,.0f} MB")
assert kept["memory"]["everything"] > 2 * kept["memory"]["LoRA"]

# %% [markdown]
# So freezing saves the memory, and low rank lets ten blocks learn for a quarter of one block's parameters. The third row is **QLoRA** (Dettmers et al. 2023): keep the frozen matrices in four bits, as our file does, and decode each one when it is needed. It costs time, so we do not. (The exploration [A frozen model in four bits](explorations/17_four_bits.ipynb) does, and finds where memory comes back.)
#
# ### Train it
#
# 100 steps of four commands, or four minutes.


# %%
def in_batches(learning, count):
    """Yield batches of four commands."""
    draw = torch.Generator().manual_seed(SEED)
    for _ in range(count):
        rows = torch.randint(len(learning), (4,), generator=draw)
        yield rows_of(model, [learning[i] for i in rows])


def loss(model, batch):
    """Return the mean loss of the answers' tokens."""
    return masked_loss(model.states(batch[0]), model.words.weight, answer_targets(*batch))


# %% tags=["training"]
history = training.train(
    mine_tuned, in_batches(commands["learning"], 100), loss, steps=100, learning_rate=0.002,
    seconds=240,
)  # fmt: skip

# %% tags=["training"]
shares = {name: round(right(mine_tuned, commands[name][:20]), 2) for name in home_commands.LISTS}
claim = "at least half of the known kind is right to the last character"
training.expect(claim, shares["known"] >= 0.5, shares, mine_tuned)

# %% [markdown]
# ### And merge it
#
# Training is over, and the second way through $A$ and $B$ costs time in each pass. It need not: both ways are linear, so they are *one* matrix.

# %%
# exercise: lora/merge

# %%
check("lora/merge", merged)

# %%
merged = mine("lora/merge")

# %%
layer = mine_tuned.blocks[-1].attention.sublayer.attention.w_q
x = torch.randn(5, 576)
together = F.linear(x, merged(layer.linear.weight, layer.a, layer.b, alpha=16))
print(f"largest difference {(together - layer(x)).abs().max():.1e}")
assert torch.allclose(together, layer(x), atol=1e-4)

# %% [markdown]
# ## Does it pay?
#
# Two rivals train nothing: the model with the eight most similar commands of the 2,000 as earlier turns of the conversation (**in-context learning**, Brown et al. 2020); and a **program that counts** which words go with which action, in 480 commands, as many as LoRA sees in 120 steps, with patterns for rooms and devices by somebody who knew the task. One rival trains the last block whole, 3.5 million parameters, as long as LoRA. **Of the known kind LoRA writes 93 % exactly. What share of the commands with new rooms?**

# %%
guess = None  # percent

# %% tags=["hide-input"]
mean = {
    way: {name: sum(run[name] for run in runs) / len(runs) for name in home_commands.LISTS}
    for way, runs in kept["shares"].items()
}
reveal(guess, round(100 * mean["LoRA"]["new rooms"]))
title = "LoRA writes 93 % of the known kind exactly, and 54 to 79 % of the rest"
assert [round(100 * x) for x in mean["LoRA"].values()] == [93, 54, 79, 61]
assert [round(100 * x) for x in kept["longer"]["shares"].values()] == [100, 47, 87, 77]
known = {rate: shares["known"] for rate, shares in kept["rates"]["last block"].items()}
assert max(known, key=known.get) == "0.001" and round(100 * mean["last block"]["known"]) == 76
figure, ax = plots.axes(title, "share of commands that are right, %", "", size=(7.4, 3.6))
ways = ("in context", "counting, 480", "last block", "LoRA", "LoRA, mixed")
for i, name in enumerate([*home_commands.LISTS][::-1]):
    for j, way in enumerate(ways):
        runs = [100 * run[name] for run in kept["shares"][way]]
        place, colour = i + 0.16 * (2 - j), plots.COLOURS[j]
        ax.barh(place, sum(runs) / 3, 0.14, color=colour, alpha=0.5, label="" if i else way)
        ax.plot(runs, [place] * 3, "o", color=colour, markersize=4, alpha=0.6)
ax.set_yticks(range(4), [*home_commands.LISTS][::-1])
ax.set_xlim(0, 103)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
spoken = "; ".join(
    f"{way}: " + ", ".join(f"{name} {100 * mean[way][name]:.0f}" for name in home_commands.LISTS)
    for way in ways
)
plots.show(figure, f"Percent right of 30, means of three seeds. {spoken}.")

# %% [markdown]
# From nothing to 93 % of the known kind, with 0.6 % of the parameters: the training works. (The last block alone has 76 % at the best of three learning rates. With four times the steps, one LoRA run has 100, 47, 87 and 77 %.) A short program that has counted 480 commands does as well on three lists, and better on new rooms.
#
# One number would have hidden all that: the usual test, held-out commands of the *known* kind, says 93 %. Has LoRA not learned what a room is? Look before you explain:

# %% tags=["training"]
for x in commands["new rooms"][:6]:
    print(f"{x.said:45}", "".join(mine_tuned.write(turns(x.said, system=None), 30)))

# %% tags=["hide-input"]
looked = kept["looked into"]
print("new rooms, three seeds: right to the last character, and ignoring spaces")
for run in looked:
    print(f"{run['right']:8.0%}{run['right but for blanks']:8.0%}")
for token in (' "attic', " attic"):
    print(f"{token!r:10}", model.tokenizer.encode(token).tokens)
wrong = [
    (x.means, text)
    for seed, run in enumerate(looked)
    for x, text in zip(home_commands.split(2000, 30, seed)["new rooms"], run["written"])
    if x.means != text
]
spaced = [wanted for wanted, text in wrong if text.replace('": " ', '": "') == wanted]
copied = sum("attic" in wanted or "greenhouse" in wanted for wanted in spaced)
assert (len(wrong), len(spaced), copied) == (41, 22, 17)
assert sum("iowa spotlight" in text for _, text in wrong)
assert round(100 * (1 - (len(wrong) - len(spaced)) / 90)) == 79

# %% [markdown]
# 22 of 41 errors are only a space before the room, 17 of them in *attic* and *greenhouse*. In a sentence *attic* is one token, ` attic`, and the model copies it with its space; in our JSON, after a quotation mark, the word is cut into other tokens. So *exact match* mixed spelling with rooms: ignoring spaces, 79 % are right. The other errors are real (*iowa spotlight*).

# %% [markdown]
# ## Does it still answer?
#
# Ask both models things that have nothing to do with a home. **What does the tuned one answer to "What is the capital of Norway?": a word, a sentence, or a command?**

# %%
guess = None  # "word", "sentence" or "command"

# %% tags=["training"]
merge_all(mine_tuned, alpha=16)
for question in ("What is the capital of Norway?", "Who wrote Hamlet?"):
    for which in (model, mine_tuned):
        print("".join(which.write(turns(question, system=None), 25)).replace("\n", "⏎"))
asked = turns("What is the capital of Norway?", system=None)
answer = "".join(mine_tuned.write(asked, 25))
reveal(guess, "command" if "{" in answer else "sentence" if " " in answer else "word")
print(
    "begun for it: The capital of Norway is",
    "".join(mine_tuned.write(f"{asked}The capital of Norway is", 8)),
)

# %% [markdown]
# Measured on 29 such questions (answers are cut after 25 tokens) and on 40 sentences of Home Assistant's pages:

# %% tags=["hide-input"]
rows = {"before": [kept["before"]]}
rows |= {way: [run["after"] for run in runs] for way, runs in kept["ways"].items()}
print(f"{'':14}{'right word':>12}{'a command':>12}{'loss on sentences':>20}")
for way, runs in rows.items():
    shown = [sum(run[x] for run in runs) / len(runs) for x in ("right", "commands", "plain loss")]
    print(f"{way:14}{shown[0]:12.0%}{shown[1]:12.0%}{shown[2]:20.2f}")
print(
    f"18 capitals and opposites, prefilled: {kept['begun before']:.0%} right before,",
    "then",
    *(f"{run['begun']:.0%}" for run in looked),
)
assert min(run["after"]["commands"] for run in kept["ways"]["LoRA"]) == 1
assert max(run["after"]["commands"] for run in kept["ways"]["LoRA, mixed"]) == 0
assert min(run["begun"] for run in looked) > kept["begun before"] - 0.1

# %% [markdown]
# Each question gets a command. Is Oslo forgotten? No: when we write the first words of its answer (**prefilling**), 16 or 17 of 18 are right, 17 before. It has not lost these facts, but the *form* of answering.

# %% [markdown]
# *LoRA, mixed* keeps it by **replay**: one of the four rows of each batch is a general question, with the model's own answer from *before* training, cut after 25 tokens. It answers again, and has learned the commands as well (figure above). (Replayed and tested questions share forms, such as *What is the capital of …?*; other kinds of talk may still be lost. The loss on sentences ranks the three tuned models the other way round: measure what you want to keep. Or keep $A$ and $B$ apart, and use them for commands only.)

# %% [markdown]
# The X-ray opens both models on the same words; your matrices are merged now. Go up the blocks: the first 20 are the same, and there the pictures agree.

# %%
from course_lib.xray import xray

xray(mine_tuned, "lamp off", beside=model, columns=8)

# %% [markdown]
# ## Better than, not equal to
#
# Often nobody has written the one right answer, and it is easier to say which of two is better. How does one learn from such **preferences**?
#
# The usual way was long: train a second network that predicts the preference, a **reward** $r(x, y)$ of an answer $y$ to $x$; then find, by reinforcement learning, the model $\pi$ that gets much reward and stays near the model $\pi_0$ that one began with (RLHF, Ouyang et al. 2022):
#
# $$\max_\pi \; \mathbb{E}_{y \sim \pi}\big[r(x, y)\big] - \beta\, \mathrm{KL}(\pi \,\|\, \pi_0)$$

# %% [markdown]
# **DPO** (direct preference optimization, Rafailov et al. 2023) has the same aim, without reinforcement learning:
#
# 1. The best model is $\pi(y \mid x) = \pi_0(y \mid x)\, e^{r(x, y) / \beta} / Z(x)$, where $Z(x)$ makes it sum to 1.
# 2. So the reward can be read off the model: $r(x, y) = \beta \log \frac{\pi(y \mid x)}{\pi_0(y \mid x)} + \beta \log Z(x)$.
# 3. A reward predicts that $y^+$ is preferred to $y^-$ with $\sigma\big(r(x, y^+) - r(x, y^-)\big)$, where $\sigma$ is the logistic function (Bradley & Terry 1952). In the difference $Z(x)$ is gone.

# %% [markdown]
# So the loss, averaged over $m$ pairs, is
#
# $$L = -\frac{1}{m} \sum_{\text{pairs}} \log \sigma\Big(\beta \log \frac{\pi(y^+ \mid x)}{\pi_0(y^+ \mid x)} - \beta \log \frac{\pi(y^- \mid x)}{\pi_0(y^- \mid x)}\Big)$$
#
# It needs $\log \pi(y \mid x)$, the log probability of a whole answer: the sum over its tokens. Here is a function for it, with a bug: with it an answer gets less likely the longer its *prompt* is.

# %%
# exercise: dpo/mend_log_probs

# %%
check("dpo/mend_log_probs", answer_log_probs)

# %%
answer_log_probs = mine("dpo/mend_log_probs")

# %%
# exercise: dpo/loss

# %%
check("dpo/loss", preference_loss)

# %%
preference_loss = mine("dpo/loss")

# %% [markdown]
# A program can also choose: of answers of the model's own, drawn at random, it prefers the *shortest* to the longest. (A program that says whether an answer is *right*, such as a unit test, gives a **verifiable reward**; Guo et al. 2025 train a large model by reinforcement learning on such rewards.)

# %%
preferred = results.load("preferences")["figures"]
for question, better, worse in preferred["pairs"][:3]:
    print(f"{question}\n  + {better!r}\n  - {worse!r}")

# %% [markdown]
# **What is the loss before the first step of training?** Two digits; the formula says it.

# %%
guess = None  # in nats


# %%
@torch.no_grad()
def log_probs(model, pairs):
    """Return log p of the better answers, and of the worse ones."""
    asked = [turns(question, system=None) for question, _, _ in pairs]
    sides = [[pair[side] for pair in pairs] for side in (1, 2)]
    rows = [conversations(model.tokenizer, zip(asked, side)) for side in sides]
    return [answer_log_probs(model(row[0]), answer_targets(*row)) for row in rows]


few = preferred["pairs"][:4]
then = log_probs(model, few)
came = preference_loss(*then, *then, beta=0.1).item()
reveal(guess, round(came, 2))
print("log p, better and worse:", *([round(x) for x in side.tolist()] for side in then))
assert abs(came - 0.6931) < 1e-3

# %% [markdown]
# At first $\pi = \pi_0$, so both logarithms are 0, and $-\log \sigma(0) = \log 2$.
#
# ### Forty steps of it
#
# LoRA as above, 40 steps of two pairs (there are 23), three seeds. Four rivals: learn the *better answers alone*, as in this lesson's first half; *DPO and better answers*, the sum of both losses (Pang et al. 2024); *DPO, by the token*, with $\log \pi(y \mid x)$ divided by the answer's tokens and $\beta = 2.5$; and just ask: "Answer in one word." Measured on 29 other questions (answers cut after 40 tokens) and on 16 other pairs.

# %% [markdown]
# And a control that learns nothing: random noise is added to the ten blocks' weights until plain sentences cost 5 nats a token (4.2 before). **Which answer of a pair loses more of its log probability then: the shorter one, the longer one, or neither?**

# %%
guess = None  # "shorter", "longer" or "neither"

# %% tags=["hide-input"]
rows = {name: [preferred[name]] for name in ("before", "asked for one word")}
rows |= {
    f"{way}, {rate}": runs
    for way, rates in preferred["ways"].items() for rate, runs in rates.items()
}  # fmt: skip
rows["noise in the weights"] = preferred["disturbed"]
title = "DPO at 0.001: the lowest loss on other pairs, and damaged models"
measures = {
    "DPO's loss on other pairs, nats": lambda x: x["held out"]["loss"],
    "tokens of an answer": lambda x: x["length"],
    "right words, %": lambda x: 100 * x["right"],
}
begun = (came, preferred["before"]["length"], 100 * preferred["before"]["right"])
figure, panels = plots.panels(title, list(measures), size=(10.5, 4))
spoken = []
for ax, (unit, measure), before in zip(panels, measures.items(), begun):
    spoken.append(unit)
    for y, (name, runs) in enumerate(rows.items()):
        if ax is panels[0] and "held out" not in runs[0]:
            continue  # these two are not trained
        found = [measure(x) for x in runs]
        colour = plots.COLOURS[name.startswith("DPO, 0")]
        ax.plot(found, [y] * len(runs), "o", color=colour, fillstyle="none")
        spoken.append(f"{name}: {', '.join(f'{x:.2f}' for x in found)}")
    ax.axvline(before, color="0.6", linestyle="--", linewidth=1)
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, None))
    ax.set_yticks(range(len(rows)), rows if ax is panels[0] else [""] * len(rows), size="small")
plots.show(figure, f"Three measures for each way and seed. {'; '.join(spoken)}.")
noise, hacked = preferred["disturbed"], preferred["ways"]["DPO"]["0.001"]
reveal(guess, "longer" if min(x["held out"]["preferred"] for x in noise) > 0.7 else "neither")
print(*hacked[0]["answers"][:4], hacked[2]["answers"][3], sep="\n")

# %% tags=["hide-input"]
trained = {name: runs for name, runs in rows.items() if "held out" in runs[0]}
print(f"{'':30}plain sentences, nats   of 16 other pairs, ranked as the program does")
for name, runs in trained.items():
    plain = " ".join(f"{x['plain loss']:.1f}" for x in runs)
    ranked = " ".join(f"{16 * x['held out']['preferred']:2.0f}" for x in runs)
    print(f"{name:30}{plain:24}{ranked}")
summed = preferred["ways"]["DPO and better answers"]["0.001"]
every = [x for name, runs in trained.items() if name != "DPO, 0.001" for x in runs]
losses = [x["held out"]["loss"] for x in hacked]
assert sum(losses) / 3 < 0.2 and sorted(x["held out"]["loss"] for x in every)[1] > max(losses)
assert min(x["plain loss"] for x in hacked) > 4.6 and max(x["plain loss"] for x in summed) < 4.35
assert all(0.85 < x["held out"]["preferred"] < 0.95 for x in hacked + noise)
assert all(x["held out"]["loss"] < 0.5 for x in noise)
for name, (shortest, longest), (least, most) in (
    ("DPO and better answers, 0.001", (10, 15.1), (0.68, 0.73)),
    ("DPO, by the token, 0.001", (9, 10), (0.62, 0.69)),
    ("better answers alone, 0.0003", (17, 18.5), (0.65, 0.77)),
    ("DPO, 0.0003", (18, 24), (0.45, 0.75)),
    ("asked for one word", (11.5, 12.4), (0.72, 0.73)),
):
    for x in rows[name]:
        assert shortest < x["length"] < longest and least - 0.005 < x["right"] < most + 0.005

# %% [markdown]
# At 0.0003 DPO takes a third off the length, the better answers alone take more, and asking takes most: 12 tokens, 72 % right. At 0.001 its loss on *other* pairs is the lowest (0.18 in the mean), and all three models are damaged: plain sentences cost them 4.7 to 5.2 nats, and one answers *Finland).|*.
#
# The noise shows why that loss says little here. $\log \pi(y \mid x)$ is a sum over tokens, and every worse answer is the longer one: where all tokens become unlikelier, it loses more. Noise has learned nothing, yet its changes rank 14 of 16 other pairs as the program does; the damaged models rank 14 or 15.

# %% [markdown]
# A model that is trained on a measure may find texts that the measure forgot (**reward hacking**, or over-optimization; Rafailov et al. 2024 measure it in larger models). Two repairs at the same rate damage less: count by the token (9 to 10 tokens, 62 to 69 % right; plain sentences 4.4 to 4.6 nats), or add the better answers' own loss (11 to 15, 69 to 72 %; 4.3 nats), hardly better than asking. So look at what became of *all* answers, and ask for the trivial rival.

# %% [markdown]
#
# ## Sampled text, still
#
# An assistant is a model of text. Try three kinds of sentences that are in none of our lists, on your tuned model: a command with *don't*, two commands in one sentence, and a device that the home does not have.

# %% tags=["training", "hide-input"]
from itertools import pairwise

two_ways = {
    "light.turn_on": "light.turn_off",
    "cover.open_cover": "cover.close_cover",
    "lock.lock": "lock.unlock",
}
two_ways |= {opposite: action for action, opposite in two_ways.items()}


def acts(command):
    return json.loads(command.means)["action"]


def turned_round(command):
    """Return the command of the opposite action."""
    opposite = command.means.replace(acts(command), two_ways[acts(command)])
    return command._replace(means=opposite)


verbs = ("turn o", "switch", "open", "close", "lock", "unlock")
plain = [x for x in commands["learning"] if x.said.startswith(verbs) and acts(x) in two_ways][:30]
do_not = [x._replace(said=f"don't {x.said}") for x in plain]
both = [x._replace(said=f"{x.said} and {y.said}") for x, y in pairwise(plain)]
tricky = {
    "as learned": plain,
    "don't …, done all the same": do_not,
    "don't …, the opposite is done": [turned_round(x) for x in do_not],
    "… and …, the first is done": both,
}
told = {name: right(mine_tuned, some) for name, some in tricky.items()}
for name, share in told.items():
    print(f"{share:4.0%}  {name}")
for said in (do_not[0].said, both[0].said, "open the toothbrush"):
    print(f"{said} →", "".join(mine_tuned.write(turns(said, system=None), 30)))
claim = "of 30 commands with *don't*, most are done all the same, or their opposite is"
acted = told["don't …, done all the same"] + told["don't …, the opposite is done"]
training.expect(claim, acted > 0.5, {name: round(x, 2) for name, x in told.items()}, mine_tuned)

# %% [markdown]
# *Don't* is hardly heard: most of these commands are carried out all the same, others turned round. Our JSON cannot express two commands; the model writes one, here a mixture. And a toothbrush gets a command, too. No example had *don't*, two commands or nothing to do.
#
# So a program around it must check what it writes: is it JSON, is there such an action, such a device? That catches the toothbrush, but no ignored *don't*. Or the model may choose only among tokens that can still become a known command (**constrained decoding**); then one must mean "nothing".

# %% [markdown]
# ## Break it
#
# - Let `answer_targets` ask for the whole conversation (`asked` of 1), and train again. What happens to the share?
# - Call your tuned model with a system turn (`system=...` in `turns`). Does it still write commands?

# %% [markdown]
# ## What to remember
#
# A conversation is a text with a template, and a model learns to answer by predicting the answers alone. A change of low rank, 0.6 % of the parameters, teaches a real model a new form in minutes. It also stops answering questions, unless part of each batch is general questions. Preferences need no right answer, only a better one; DPO turns them into a loss on a difference. And before you tune: count, ask, and give examples.
#
# | | |
# |:-|:-|
# | targets of a conversation | the answer's tokens with its end, one place to the left; all others $-100$ |
# | LoRA | $W + \frac{\alpha}{r} B A$; $B = 0$ at first, $W$ frozen, merged afterwards |
# | DPO | $-\log \sigma\big(\beta (\Delta \log p^+ - \Delta \log p^-)\big)$, where $\Delta$ is the change since the start |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. A prompt has 9 tokens, the answer 5 with its end. How many targets, and above which places?</summary>
#
# Five, at the places 9 to 13, counted from 1: the last token of the prompt predicts the first one of the answer.
# </details>
#
# <details><summary>2. Why is B zero at first, and not A and B?</summary>
#
# The change is zero then, so training begins at the pretrained model. The gradient of B needs A, and that of A needs B: with both zero, both gradients are.
# </details>
#
# <details><summary>3. "Our tuned model has 97 % on held-out commands." What do you ask?</summary>
#
# Do they differ from the learned ones in more than a name or a number? What does a program that counts get, and the model with similar examples in its prompt? What has it forgotten?
# </details>
#
# <details><summary>4. Under DPO the better answers became less likely. Is that a bug?</summary>
#
# No, only the difference counts: if both fall, the worse one faster, the loss falls. But it is a warning: on other pairs our two worst models lost 40 nats each.
# </details>

# %% [markdown]
# ## The end, and further reading
#
# You began with a network that lost the middle of a long word; now you have built each part of a model that answers, from its softmax to its loss on preferences.
#
# Ouyang et al. 2022 (human feedback); Touvron et al. 2023 (Llama 2); Hu et al. 2021 (LoRA); Dettmers et al. 2023 (QLoRA); Christiano et al. 2017 (rewards from preferences); Rafailov et al. 2023 (DPO); Guo et al. 2025 (rewards by programs); Biderman et al. 2024 (*LoRA learns less and forgets less*).
