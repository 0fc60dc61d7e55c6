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
# Lesson 09 showed the trick: a conversation is one text, with a **chat template** that says who speaks. The special tokens `<|im_start|>` and `<|im_end|>` mark each turn. The model's part is to go on after `assistant`.

# %%
question = "What is the opposite of hot?"
print(turns(question, system=None))

# %%
for name, text in (("without", question), ("with", turns(question, system=None))):
    print(f"{name:8} the template: {''.join(model.write(text, 12))!r}")

# %% [markdown]
# The weights are the same. Without the template, the likeliest next token says that the message is over. They were fine-tuned on conversations in this form, so this form brings answers. This step is called **instruction tuning**, or supervised fine-tuning (SFT): next-token prediction, as in lesson 10, on conversations that people or other models have written.
#
# ## Learn the answers alone
#
# One thing is new. A conversation holds the user's words, too. Our model is never asked to write these, so only the assistant's tokens are targets:

# %% tags=["hide-input"]
diagram = drawings.Diagram()
shown = ["user", "lamp", "off", "assistant", "{action", "…}", "end", "pad"]
wide, size = 1.45, (1.37, 0.6)
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
diagram.text("asked = 4", (wide * 1.5, -0.75), size=9)
diagram.text("lengths = 7", (wide * 5, -0.75), size=9)
diagram.show(
    "A row of eight tokens: user, lamp, off, assistant are the prompt (asked = 4), then the answer: "
    "action, the rest, end (lengths = 7), then padding. Above assistant stands the target action, "
    "above action the rest, above the rest the end; all other targets are -100.",
)

# %% [markdown]
# The target of a place is the *next* token. So the first target stands above the last token of the prompt, and the last target is the token that ends the answer: without it, the model would never learn to stop. All other targets are $-100$, as in lesson 16.

# %%
# exercise: assistant/answer_mask

# %%
check("assistant/answer_mask", answer_targets)

# %%
answer_targets = mine("assistant/answer_mask")

# %% [markdown]
# ## A task that it cannot do
#
# A home should do what people say. *The lamp in the hall off please* means one line of JSON, with an action of Home Assistant, the texts of which you know from lesson 11:

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
# A command is right if every character is. Must the model write it out for that? No: greedy decoding writes a given text exactly if each of its tokens is the likeliest one *after the right beginning*. That takes one pass of teacher forcing, and no writing.


# %%
@torch.no_grad()
def right(model, some, rows=10):
    """Return the share of commands that greedy decoding would write exactly."""
    found = []
    for i in range(0, len(some), rows):
        batch = rows_of(model, some[i : i + rows])
        targets = answer_targets(*batch)
        asked = targets != -100
        hits = torch.ones_like(asked)
        hits[asked] = model.scores(model.states(batch[0])[asked]).argmax(-1) == targets[asked]
        found += hits.all(-1).tolist()
    return sum(found) / len(found)


# %%
def rows_of(model, some):
    """Return tokens, lengths of the prompts, and lengths of prompt and answer."""
    pairs = [(turns(x.said, system=None), x.means) for x in some]
    return conversations(model.tokenizer, pairs)


said = commands["known"][0]
print(said.said, "→", "".join(model.write(turns(said.said, system=None), 30)))
print({name: right(model, commands[name][:10]) for name in home_commands.LISTS})

# %% [markdown]
# It talks, as it was trained to. (Nobody told it what we want; that is one of the rivals below.)
#
# ## Change a few numbers
#
# To fine-tune all 134.5 million parameters takes their gradients and Adam's two averages too: $4 \times 4$ bytes for each. **LoRA** (low-rank adaptation, Hu et al. 2021) freezes the weights and learns only a *change* for some matrices, of low rank:
#
# $$\underset{n \times d_{out}}{y} = x\, W^T + \frac{\alpha}{r}\; x\, \underset{d_{in} \times r}{A^T}\; \underset{r \times d_{out}}{B^T}$$

# %% tags=["hide-input"]
diagram = drawings.Diagram()
x_box = diagram.box("x", (0, 0), "stream", size=(1.0, 0.7))
frozen = diagram.box("W, frozen", (3.6, 1.0), "dim", size=(2.6, 1.1))
down = diagram.box("A", (2.7, -1.0), "query", size=(0.7, 1.3))
up = diagram.box("B, first zero", (5.1, -1.0), "query", size=(2.3, 0.6))
total = diagram.box("+", (7.4, 0), "plain", size=(0.7, 0.7))
diagram.arrow(x_box, frozen)
diagram.arrow(x_box, down)
diagram.arrow(down, up)
diagram.arrow(frozen, total)
diagram.arrow(up, total)
diagram.text(r"$n \times d_{in}$", (0, 0.65), size=9)
diagram.text(r"$n \times r$", (3.5, -1.75), size=9)
diagram.text(r"$\alpha / r$", (6.9, -1.45), size=9)
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
# We put your layer in the place of all seven matrices of the last ten blocks. `adapt` freezes the rest. (Where only the last blocks learn, the backward pass ends there, a third of the way.)

# %%
from course_lib.lora import adapt, merge_all

names = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_3")
mine_tuned = deepcopy(model)
with training.seeded(SEED):
    trained = adapt(mine_tuned.blocks[-10:], names, lambda linear: LowRankLinear(linear, 8, 16))
before, after = (right(x, commands["known"][:2]) for x in (model, mine_tuned))
count = sum(p.numel() for p in trained)
whole = sum(p.numel() for name, p in model.named_parameters() if not name.endswith("bias"))
print(f"trained: {count:,} of {whole:,}, {count / whole:.2%}")
assert before == after == 0 and round(count / whole, 3) == 0.006

# %% tags=["hide-input"]
megabytes = {
    "everything trained, float32": 16 * whole / 1e6,
    "LoRA, float32": (4 * whole + 16 * count) / 1e6,
    "LoRA, frozen weights in 4 bits": (93e6 + 16 * count) / 1e6,
}
print("counted: weights, gradients and Adam's averages (lesson 12)")
for way, size in megabytes.items():
    print(f"{way:32}{size:8,.0f} MB")
kept = results.load("assistant")["figures"]
print("measured: all that a process takes, with Python, PyTorch and activations")
for way in ("everything", "LoRA"):
    print(f"{way:32}{kept['memory'][way]:8,.0f} MB")
assert kept["memory"]["everything"] > 2 * kept["memory"]["LoRA"]

# %% [markdown]
# *Four bits* is **QLoRA** (Dettmers et al. 2023): keep the frozen weights as small as our file does, and decode each matrix whenever it is needed. The exploration [A frozen model in four bits](explorations/17_four_bits.ipynb) builds it. It costs time, so here we do not.
#
# ### Train it
#
# 100 steps of four commands. It takes two to four minutes.


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
training.train(
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
together = F.linear(x, merged(layer.linear.weight, layer.a, layer.b, layer.alpha))
print(f"largest difference {(together - layer(x)).abs().max():.1e}")
assert torch.allclose(together, layer(x), atol=1e-4)

# %% [markdown]
# ## Does it pay?
#
# Three rivals train nothing: the model as it came; the model with the eight most similar commands of the 2,000 as earlier turns of the conversation (**in-context learning**, Brown et al. 2020); and a **program that counts**: for each action, how often each word was said with it, a list of devices, and a pattern for rooms. One rival trains the last block whole, 3.5 million parameters, on the same commands as LoRA. **On which list does LoRA, with 480 of the 2,000 commands, beat counting?**

# %%
guess = None  # a name of home_commands.LISTS, or "none"

# %% tags=["hide-input"]
mean = {
    way: {name: sum(run[name] for run in runs) / len(runs) for name in home_commands.LISTS}
    for way, runs in kept["shares"].items()
}
beaten = [name for name in home_commands.LISTS if mean["LoRA"][name] > mean["counting"][name]]
reveal(guess, beaten or "none")
title = "A program that counts is ahead of 135 million parameters"
assert all(mean["counting"][x] > mean["LoRA"][x] for x in home_commands.LISTS)
assert mean["LoRA"]["known"] > 0.9 and mean["LoRA"]["new rooms"] < 0.6
assert mean["in context"]["new rooms"] > mean["LoRA"]["new rooms"] + 0.2
figure, ax = plots.axes(title, "share of commands that are right, %", "", size=(7.4, 3.6))
ways = ("before", "in context", "counting", "last block", "LoRA")
for i, name in enumerate([*home_commands.LISTS][::-1]):
    for j, way in enumerate(ways):
        runs = [100 * run[name] for run in kept["shares"][way]]
        colour = plots.COLOURS[j]
        label = way if i == 0 else None
        ax.plot(runs, [i + 0.16 * (2 - j)] * len(runs), "o", color=colour, markersize=4, alpha=0.6)
        ax.barh(
            i + 0.16 * (2 - j), sum(runs) / len(runs), 0.14, color=colour, alpha=0.5, label=label
        )
ax.set_yticks(range(4), [*home_commands.LISTS][::-1])
ax.set_xlim(0, 103)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
spoken = "; ".join(
    f"{way}: " + ", ".join(f"{name} {100 * mean[way][name]:.0f}" for name in home_commands.LISTS)
    for way in ways
)
plots.show(figure, f"Percent right, means of three seeds. {spoken}.")

# %% [markdown]
# From nothing to 93 % of the known kind, with 0.6 % of the parameters: the training works. But a program that counts is ahead on every list. (It was written by somebody who knew the task, with a pattern for rooms and a list of devices; LoRA was given pairs alone. And it saw all 2,000 commands, LoRA 480.) Eight examples in the prompt, without any training, are ahead on new rooms.

# %% [markdown]
# And one number would have hidden this: on held-out commands of the *known* kind, the usual test, LoRA has 93 %; with new rooms it has 54 %. (Its learning rate, and that of the last block, were not swept; the last block ran once.) What does it write there?

# %% tags=["training"]
for x in commands["new rooms"][:4]:
    print(f"{x.said:45}", "".join(mine_tuned.write(turns(x.said, system=None), 30)))

# %% [markdown]
# ## What has it forgotten?
#
# Ask both models things that have nothing to do with a home. **What does the tuned one answer to "What is the capital of Norway?": a word, a sentence, or a command?**

# %%
guess = None  # "word", "sentence" or "command"

# %% tags=["training"]
merge_all(mine_tuned)
for question in ("What is the capital of Norway?", "Who wrote Hamlet?"):
    for which in (model, mine_tuned):
        print("".join(which.write(turns(question, system=None), 25)).replace("\n", "⏎"))
answer = "".join(mine_tuned.write(turns("What is the capital of Norway?", system=None), 25))
reveal(guess, "command" if "{" in answer else "sentence" if " " in answer else "word")

# %% [markdown]
# Measured, on 29 such questions and 40 sentences of Home Assistant's pages (means of three, two and one run):

# %% tags=["hide-input"]
rows = {"before": [kept["before"]]}
rows |= {way: [run["after"] for run in runs] for way, runs in kept["ways"].items()}
print(f"{'':14}{'right word':>12}{'a command':>12}{'loss on sentences':>20}")
for way, runs in rows.items():
    shown = [sum(run[x] for run in runs) / len(runs) for x in ("right", "commands", "plain loss")]
    print(f"{way:14}{shown[0]:12.0%}{shown[1]:12.0%}{shown[2]:20.2f}")
assert min(run["after"]["commands"] for run in kept["ways"]["LoRA"]) == 1
assert max(run["after"]["commands"] for run in kept["ways"]["LoRA, mixed"]) == 0
assert min(run["after"]["right"] for run in kept["ways"]["LoRA, mixed"]) >= kept["before"]["right"]

# %% [markdown]
# Each question has become a command. The loss on plain sentences hardly shows it: 4.2 nats before, 4.5 after.

# %% [markdown]
# *LoRA, mixed* is the cheapest cure, **replay**: one of the four rows of each batch is a general question, with the answer that the model itself gave *before* training. Then as many questions are answered rightly as before, and the commands are learned as well. (Its loss on sentences is no better than LoRA's: ask for what you want to keep.)
#
# Where in the network do the two differ? The X-ray opens both on the same words; your matrices are merged now. Go up the blocks: the first 20 are the same, and there the pictures agree.

# %%
from course_lib.xray import xray

xray(mine_tuned, "lamp off", beside=model, columns=8)

# %% [markdown]
# ## Better than, not equal to
#
# Often nobody can write the one right answer, but anybody can say which of two is better. How does one learn from such **preferences**?
#
# The usual way was long: train a second network that predicts the preference, a **reward** $r(x, y)$ of an answer $y$ to $x$; then raise the reward of what the model writes by reinforcement learning (RLHF, Ouyang et al. 2022), but stay near to the model $\pi_0$ that one began with. That second wish has a weight $\beta$.

# %% [markdown]
# **DPO** (direct preference optimization, Rafailov et al. 2023) needs neither. Three lines:
#
# 1. The best model for a reward $r$ and a weight $\beta$ is $\pi(y \mid x) = \pi_0(y \mid x)\, e^{r(x, y) / \beta} / Z(x)$, where $Z(x)$ makes it sum to 1.
# 2. So the reward can be read off the model: $r(x, y) = \beta \log \frac{\pi(y \mid x)}{\pi_0(y \mid x)} + \beta \log Z(x)$.
# 3. A reward predicts that $y^+$ is preferred to $y^-$ with $\sigma\big(r(x, y^+) - r(x, y^-)\big)$ (Bradley & Terry 1952). In the difference $Z(x)$ is gone:
#
# $$L = -\frac{1}{m} \sum_{\text{pairs}} \log \sigma\Big(\beta \log \frac{\pi(y^+ \mid x)}{\pi_0(y^+ \mid x)} - \beta \log \frac{\pi(y^- \mid x)}{\pi_0(y^- \mid x)}\Big)$$

# %% [markdown]
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
# A preference that a program can check: of two answers of the model's own, drawn at random, the *shorter* one is better. (A program that checks the answer itself, such as a unit test, gives a **verifiable reward**; many recent models are trained by reinforcement on such ones, e.g. Guo et al. 2025.)

# %%
preferred = results.load("preferences")["figures"]
for question, better, worse in preferred["pairs"][:3]:
    print(f"{question}\n  + {better!r}\n  - {worse!r}")

# %% [markdown]
# **What is the loss before the first step of training?** Two digits after the point; the formula says it.

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
# LoRA as above, 40 steps of two pairs (there are 21 of them), three seeds, measured on 29 other questions. Two rivals: learn the *better* answers as in the first half of this lesson, with no word about the worse ones; and just ask: "Answer in one word."

# %% tags=["hide-input"]
rows = {name: [preferred[name]] for name in ("before", "asked for one word")} | preferred["ways"]
average = {
    way: {x: sum(run[x] for run in runs) / len(runs) for x in ("length", "right")}
    for way, runs in rows.items()
}
print(f"{'':24}{'tokens':>8}{'right word':>12}")
for way, found in average.items():
    print(f"{way:24}{found['length']:8.1f}{found['right']:12.0%}")
for way in ("before", "DPO", "asked for one word"):
    print(f"{way}: {rows[way][0]['answers'][:3]}")
assert average["DPO"]["length"] < 0.7 * average["before"]["length"]
assert average["asked for one word"]["length"] < average["DPO"]["length"] - 3
assert average["asked for one word"]["right"] > average["before"]["right"]

# %% [markdown]
# Asking is shortest, and costs nothing. DPO shortens the answers by 40 %, whatever the prompt says, and learning the better answers alone does so as well; 29 questions do not rank the three by right words.
#
# ### A hundred and sixty
#
# On the pairs that it learns from, the loss is then below 0.001. **After four times as many steps of DPO, are answers to other questions shorter than after forty, as long, or longer?**

# %%
guess = None  # "shorter", "as long", "longer"

# %% tags=["hide-input"]
longer, start = preferred["longer"], preferred["before"] | {"chosen": 0, "rejected": 0}
title = "With more DPO the loss gets what it asks for, and we do not"
names = ["gain of log p, held-out answers, nats", "tokens of an answer", "share of right words"]
figure, panels = plots.panels(title, names, size=(10.5, 3.2))
lines = {"chosen": (0, "-"), "rejected": (0, "--"), "length": (1, "-"), "right": (2, "-")}
for way, colour in zip(longer, plots.COLOURS):
    for run in longer[way]:
        for name, (place, style) in lines.items():
            course = [start[name], *(x[name] for x in run)]
            panels[place].plot(range(0, 161, 40), course, style, color=colour)
    panels[1].plot([], [], color=colour, label=way)
for style, side in (("-", "better answers"), ("--", "worse answers")):
    panels[0].plot([], [], style, color="0.4", label=side)
for ax, top in zip(panels, (5, 40, 1)):
    ax.set(xlabel="steps", xticks=range(0, 161, 40), ylim=(None if top == 5 else 0, top))
panels[0].legend(frameon=False, fontsize="small")
panels[1].legend(frameon=False, fontsize="small")
last = {
    way: {name: sum(run[-1][name] for run in runs) / len(runs) for name in lines}
    for way, runs in longer.items()
}
spoken = "; ".join(
    f"{way}: better answers {x['chosen']:.0f} nats, worse {x['rejected']:.0f}, "
    f"{x['length']:.0f} tokens, {x['right']:.0%} right"
    for way, x in last.items()
)
plots.show(figure, f"Three measures over 160 steps, two seeds each. At the end: {spoken}.")
grown = last["DPO"]["length"] - average["DPO"]["length"]
reveal(guess, "longer" if grown > 2 else "shorter" if grown < -2 else "as long")
print(longer["DPO"][0][-1]["answers"][:2])

# %% [markdown]
#
# ## Sampled text, still
#
# An assistant is a model of text. Try three things that no list holds, on your tuned model: a command with *don't*, two commands in one sentence, and a device that the home does not have.

# %% tags=["training"]
from itertools import pairwise

verbs = ("turn", "open", "close", "lock", "unlock", "stop", "set", "dim", "run", "play")
plain = [x for name in ("known", "new wordings") for x in commands[name]]
plain = [x for x in plain if x.said.split()[0] in verbs][:12]
tricky = {
    "don't …": [x._replace(said=f"don't {x.said}") for x in plain],
    "… and …": [x._replace(said=f"{x.said} and {y.said}") for x, y in pairwise(plain)],
}
told = {name: right(mine_tuned, some) for name, some in {"as learned": plain, **tricky}.items()}
for said in ("don't turn on the lamp in the hall", "open the toothbrush"):
    print(f"{said} →", "".join(mine_tuned.write(turns(said, system=None), 30)))
claim = "most commands are carried out though *don't* stands before them"
training.expect(claim, told["don't …"] > 0.5, told, mine_tuned)

# %% [markdown]
# *Don't* is hardly heard: nearly every command is carried out as if it were not there (in the one above it became its opposite). Of two commands in one sentence, neither is written rightly, mostly. And for a toothbrush there is a command, too. Nothing like this was in its 400 examples, and a model that has learned to write commands writes one.
#
# So a program around it must check what it writes: is it JSON, is there such an action, such a device? That program is what runs; the model proposes.

# %% [markdown]
# ## Break it
#
# - Let `answer_targets` ask for the whole conversation (`asked` of 1), and train again. What happens to the share, and what would you have to measure besides?
# - Put a random $B$ in your layer. What is the first loss?
# - Train with rank 1. Which list suffers?
# - Call `preference_loss` with better and worse exchanged, for ten steps. What does the model answer?

# %% [markdown]
# ## What to remember
#
# A conversation is a text with a template, and a model learns to answer by predicting the answers alone. A change of low rank, 0.6 % of the numbers, teaches a real model a new form in minutes. It also makes it forget every other one, unless some of each batch keeps them. Preferences need no right answer, only a better one; DPO turns them into a loss on a difference. And before you tune: count, ask, and give examples.
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
# No: only the difference counts. If both fall, the worse one faster, the loss falls.
# </details>
#
# <details><summary>5. Two layers are adapted with rank 8, each 576 × 1,536. How many numbers are trained?</summary>
#
# 2 · 8 · (576 + 1,536) = 33,792.
# </details>

# %% [markdown]
# ## The end, and further reading
#
# This was the last lesson. You began with a network that lost the middle of a long word; now you know each part of a model that answers, from its softmax to its loss on preferences, and have built them.
#
# Ouyang et al. 2022 (human feedback); Touvron et al. 2023 (Llama 2); Hu et al. 2021 (LoRA); Dettmers et al. 2023 (QLoRA); Christiano et al. 2017 (rewards from preferences); Rafailov et al. 2023 (DPO); Guo et al. 2025 (rewards by programs); Biderman et al. 2024 (*LoRA learns less and forgets less*).
