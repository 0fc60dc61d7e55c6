# %% [markdown]
# # 17 · An assistant of your own
#
# **75 minutes · after lesson 16 · needs `smollm2` (93 MB)**
#
# Say *turn on the kitchen lamp*, and a lamp goes on: a language model can do that, although it only writes text. **How do you teach a model that talks to act, and what does it forget meanwhile?**
#
# At the end, a model of 135 million parameters, tuned by you, runs a small home. What it asks for is carried out or refused, and it tries again.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.data import home, home_commands, needs
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import results, training
from course_lib.instruments.pictures import tool_use as pictures

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %% tags=["hide-input"]
pictures.loop()

# %%
masked_loss = mine("pretraining/masked_loss")

# %%
needs("smollm2")

# %%
from course_lib.pretrained import smollm2
from course_lib.pretrained.smollm2 import conversations, turns

model = smollm2.load().requires_grad_(False)

# %% [markdown]
# ## A model that talks
#
# SmolLM2 was **pretrained** on 2 trillion tokens, then trained on conversations (**instruction tuning**, or supervised fine-tuning, SFT), then on preferences (Allal et al. 2025). You add one more step, a task of your own. It costs minutes where the others cost a cluster, and can undo what they did.
#
# Lesson 09 showed the form: a conversation is *one text*, in a **chat template** that says who speaks. The model goes on after `assistant`, up to the first `<|im_end|>`.

# %%
question = "What is the opposite of hot?"
print(turns(question, system="Answer in one word."))

# %% [markdown]
# A **system** turn comes first and says how to answer. Earlier turns are read again each time: a model has no other memory of what was said.


# %%
def write(model, said, before=(), system=None):
    """Return what the model answers, after earlier turns if there are any."""
    return "".join(model.write(turns(said, system, before), 40)).strip()


plain = write(model, question)
print(plain)
print(write(model, question, system="Answer in one word."))
print(write(model, "And the opposite of big?", before=[(question, plain)]))

# %% [markdown]
# So small a model half obeys: a sentence, not a word.
#
# ## A home that obeys
#
# Our home is a dict from each device to what it does now.

# %%
import json
import random
from collections.abc import Callable, Sequence
from course_lib.data.home import AFTER, VALUES, Home, Refused, kind_of

now = home.at_first(home.DEVICES)
print(now)
pictures.house(now)

# %% [markdown]
# It understands one line of JSON. The actions are those of Home Assistant, the program whose menus you translated in lesson 11. Calling programs by text is **tool use**, or function calling. Large models find a list of their tools in the system turn; ours is trained for one home's form. The model may write anything, so the tool checks the line first, and says what is wrong:

# %%
# given: data.home.obey


# %%
def tell(model, now, said, tries=1):
    """Return the home after the model has acted. A refusal goes back to it as a turn."""
    before = []
    for _ in range(tries):
        answer = write(model, said, before)
        print(f"{said}\n   → {answer}")
        try:
            return obey(now, answer)
        except Refused as refusal:
            before, said = [*before, (said, answer)], str(refusal)
    print(said)
    return now


now = tell(model, now, "turn on the kitchen lamp")

# %% [markdown]
# It only talks, so nothing happens. We show it commands, written by a program: 12 kinds, six wordings of each, 40 rooms, 17 devices.

# %%
commands = home_commands.split(2000, 30, SEED)
for command in commands["learning"][:4]:
    print(f"{command.said:50} {command.means}")

# %% [markdown]
# ## Learn the answers alone
#
# A conversation holds the user's words, too, and the model should not learn to speak for the user. So only the assistant's tokens are **targets** (Touvron et al. 2023): *prompt masking*, the common choice. Grey tokens are read, green ones have a target, the next token:

# %%
said, means = "turn on the attic lamp", '{"action": "light.turn_on", "target": "attic lamp"}'
prompt = model.tokenizer.encode(turns(said, system=None)).tokens
answer = model.tokenizer.encode(f"{means}<|im_end|>").tokens
pictures.targets(prompt, answer)

# %% [markdown]
# The first target is above the last token of the *prompt*. The last target ends the answer: without it, the model would never learn to stop. All others are $-100$, as in lesson 16.

# %%
# exercise: assistant/answer_mask

# %%
check("assistant/answer_mask", answer_targets)

# %%
answer_targets = mine("assistant/answer_mask")

# %% [markdown]
# ## Train a few parameters
#
# To fine-tune all 134.5 million parameters takes weights, gradients and Adam's two averages: $4 \times 4$ bytes for each. **LoRA** (low-rank adaptation, Hu et al. 2021) freezes the weights and learns only a *change* for some matrices, of low rank:
#
# $$\underset{n \times d_{out}}{y} = x\, W^T + \frac{\alpha}{r}\; x\, \underset{d_{in} \times r}{A^T}\; \underset{r \times d_{out}}{B^T}$$

# %%
pictures.low_rank()

# %% [markdown]
# The **rank** $r$ is 8 here, and $\alpha = 16$ scales the change. Let $G$ be the gradient of the loss with respect to the whole matrix, $W + \frac{\alpha}{r} B A$. By the chain rule
#
# $$\nabla_A = \frac{\alpha}{r}\, B^T G \qquad \nabla_B = \frac{\alpha}{r}\, G A^T$$
#
# $B$ begins with zeros, so training begins at the pretrained model, and the first step moves $B$ alone. If $A$ were zero, too, no step would move anything.

# %%
# exercise: lora/layer

# %%
check("lora/layer", LowRankLinear)

# %%
LowRankLinear = mine("lora/layer")

# %% [markdown]
# Your layer takes the place of all seven matrices of the last ten blocks. The twenty blocks under them are frozen, so the backward pass stops after a third of the way.

# %%
from course_lib.assistant import adapt

names = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2", "w_3")
whole = sum(p.numel() for name, p in model.named_parameters() if not name.endswith("bias"))
with training.seeded(SEED):
    trained = adapt(model.blocks[-10:], names, lambda linear: LowRankLinear(linear, 8, 16))
count = sum(p.numel() for p in trained)
print(f"trained: {count:,} of {whole:,} parameters")

# %% tags=["hide-input"]
kept = results.load("assistant")["figures"]
print(f"counted: everything {16 * whole / 1e6:,.0f} MB, LoRA {(4 * whole + 16 * count) / 1e6:,.0f}")
measured = [f"{way} {megabytes:,.0f}" for way, megabytes in kept["memory"].items()]
print(f"measured, a whole process, MB: {', '.join(measured)}")

# %% [markdown]
# What is measured and not counted is torch and activations. Freezing saves the memory: the last block, trained whole, needs as little. Low rank lets ten blocks learn for a quarter of one block's parameters. **QLoRA** (Dettmers et al. 2023) also keeps the frozen matrices in [four bits](explorations/17_four_bits.ipynb).
#
# ## The lamp goes on
#
# Now train: sixty steps of four commands, about two minutes.


# %%
def pair(command):
    """Return how a command is asked for, without a system turn, and what it means."""
    return turns(command.said, system=None), command.means


def loss(model, batch):
    """Return the mean loss of the answers' tokens."""
    return masked_loss(model.states(batch[0]), model.words.weight, answer_targets(*batch))


# %% tags=["training"]
draw = random.Random(SEED)
rows = (map(pair, draw.sample(commands["learning"], 4)) for _ in range(60))
batches = (conversations(model.tokenizer, four) for four in rows)
history = training.train(model, batches, loss, steps=60, learning_rate=0.002, seconds=140)

# %% tags=["training"]
first = now
for said in ("turn on the kitchen lamp", "bedroom blinds up please", "start the living room radio"):
    now = tell(model, now, said)
pictures.house(now, first)

# %% [markdown]
# ## Rooms and devices that it has not seen
#
# Three frames show what has changed. But a held-out sentence can fool you: it may differ from a learned one only in a number (lesson 11's near-duplicates). So there are four lists: **in-distribution** commands, and three kinds of new ones.

# %%
for name in home_commands.LISTS:
    print(f"{name:13}", *(f"{x.said!r}" for x in commands[name][:3]), sep="  ")


# %% [markdown]
# Greedy decoding writes a text if each of its tokens is the likeliest after the true prefix. `exactly` checks that in one teacher-forced pass.


# %%
def right(model, some):
    """Return the share of commands that greedy decoding would write to the last character."""
    return sum(smollm2.exactly(model, [*map(pair, some)])) / len(some)


# %% [markdown]
# **Suppose that most of the known kind are right. What share of the commands with new rooms?**

# %%
guess = None  # percent

# %% tags=["training"]
shares = {name: right(model, commands[name][:20]) for name in home_commands.LISTS}
print({name: f"{share:.0%}" for name, share in shares.items()})
reveal(guess, round(100 * shares["new rooms"]))
claim = "half of the known kind is right at least"
training.expect(claim, shares["known"] >= 0.5, shares, model)

# %% tags=["training"]
for x in commands["new rooms"][:6]:
    print(f"{x.said:45}", write(model, x.said))
for token in ('": "attic', '": " attic'):
    print(f"{token!r:10}", model.tokenizer.encode(token).tokens)

# %% [markdown]
# In these six the action is right, and most names are wrong, some by one space. The last lines say why: in a sentence the token is `␣attic` (printed `Ġattic`), and the model copies it, space and all. After a quotation mark our JSON needs `att` and `ic`: it has to spell, and slips (*automatic*).
#
# ## What did it forget?
#
# Ask it something that has nothing to do with a home. **What does it answer to "What is the capital of Norway?": a word, a sentence, or a command?**

# %%
guess = None  # "word", "sentence" or "command"

# %% tags=["training"]
capital = "What is the capital of Norway?"
answer = write(model, capital)
print(answer)
reveal(guess, "command" if "{" in answer else "sentence" if " " in answer else "word")
training.expect("a general question gets a command", "{" in answer, answer, model)

# %% [markdown]
# Is Oslo forgotten? We write the first words of the answer (**prefilling**), here five of its seven tokens, and let the model go on: for 15 capitals, now and with $A$ and $B$ **switched off**, the model as it came.

# %% tags=["training"]
from course_lib.assistant import switched_off
from course_lib.data.questions import beginning, questions
from course_lib.pretrained.rollouts import share_right

capitals = [(x, word) for x, word in questions()[39:] if "capital" in x]
with switched_off(trained):
    before = share_right(model, capitals, beginning)
now_begun = share_right(model, capitals, beginning)
print(f"right, begun for it: {before:.0%} before any training, {now_begun:.0%} now")

# %% [markdown]
# It knows as many capitals as before. What is lost is the *form* of answering: mild **catastrophic forgetting**.
#
# ## Teach it to try again, and to remember
#
# In the second half of the training, two of four rows are of other kinds. **Replay**: a general question, with the model's own answer from *before* any training. **A refusal**: a wrong command and what the home says to it come before the right one. Those two turns are no targets, so the mistake is not learned.

# %%
command = commands["learning"][0]
answer, refusal = home.mistaken(command, random.Random(SEED))
print(turns(refusal, None, [(command.said, answer)]) + command.means)

# %%
from course_lib.data.questions import questions

own = [(turns(asked, None), told) for (asked, _), told in zip(questions(), kept["own answers"])]


def mixed_batches(learning, draw):
    """Yield two commands, one that was refused before, and a general question."""
    while True:
        *plain, again = draw.sample(learning, 3)
        answer, refusal = home.mistaken(again, draw)
        refused = turns(refusal, None, [(again.said, answer)]), again.means
        yield conversations(model.tokenizer, [*map(pair, plain), refused, draw.choice(own)])


# %% tags=["training"]
batches = mixed_batches(commands["learning"], random.Random(SEED))
history = training.train(model, batches, loss, steps=60, learning_rate=0.002, seconds=145)

# %% tags=["training"]
answer = write(model, capital)
print(answer, write(model, "Who wrote Hamlet?"), sep="\n")
training.expect("a general question gets an answer again", "{" not in answer, answer, model)

# %% [markdown]
# It answers again. *Hamlet* was among the questions that were replayed, Norway was not. All 39 ask for capitals, opposites or facts. What does it do with requests of other kinds?

# %% tags=["once", "hide-input"]
for request in (
    "Is a whale a fish?", "Tell me a joke.", "Name a colour.",
    "List three fruits.", "Write a line about rain.", "Hello!",
):  # fmt: skip
    print(f"{request:28}{write(model, request):.64}")

# %% [markdown]
# Some get an answer, the others a command: replay brought back more than its own kinds, but not everything. What should survive a training belongs in its batches.
#
# A refusal can help, too: it lists the devices, in quotation marks and so in the tokens that the answer needs. We try eight commands with new rooms, and show one that the second try mends:


# %%
def again(model, said, answer, there):
    """Return what is written after a refusal of this answer, or the answer if it is none."""
    try:
        obey(there, answer)
    except Refused as refusal:
        return write(model, str(refusal), [(said, answer)])
    return answer


# %% tags=["training"]
some = commands["new rooms"][:8]
there = home.for_commands(some)
once = [write(model, x.said) for x in some]
twice = [again(model, x.said, text, there) for x, text in zip(some, once)]
mended = [x for x, first, second in zip(some, once, twice) if first != x.means == second]
seen = [x for x in mended if obey(there, x.means) != there]
pictures.house(tell(model, there, (seen or some)[0].said, tries=2), there)

# %% [markdown]
# The loop in `tell` is an **agent**: the model writes, a program acts, and its reply is the next turn.
#
# ## Write only what the home can do
#
# A refusal costs a second answer. So choose only among the tokens that can still become a command of this home: **constrained decoding** (Willard & Louf 2023), which services sell as *structured output*.
#
# `model.scoring()` returns the function that you need: `score(tokens, 1)` gives one row of scores, those of the next token. It keeps keys and values, so a call costs one token's pass.

# %%
# exercise: assistant/constrained

# %%
check("assistant/constrained", constrained)

# %%
constrained = mine("assistant/constrained")


# %%
def write_only(model, said, possible):
    """Return the command of this home that the model prefers, token by token."""
    tokenizer = model.tokenizer
    allowed = [[*tokenizer.encode(text).ids, smollm2.STOP] for text in possible]
    asked = tokenizer.encode(turns(said, None)).ids
    return tokenizer.decode(constrained(model.scoring(), asked, allowed)[:-1])


print(len(home.possible(now)), "commands of our home, such as", home.possible(now)[0])


# %% tags=["training"]
first = now
now = obey(now, write_only(model, "turn on the lamp in the attic", home.possible(now)))
pictures.house(now, first)

# %% [markdown]
# The attic's lamp goes on. Back to the eight commands, and four ways to mend a wrong name: a second try, **stripping** spaces, the device with the **nearest** spelling, and your constraint.

# %% tags=["training"]
ways = {
    "as written": once,
    "second try": twice,
    "names stripped": [text.replace('" ', '"') for text in once],
    "nearest name": [home.with_nearest(there, text) for text in once],
    "constrained": [write_only(model, x.said, home.possible(there)) for x in some],
}
right_of = {way: sum(y == x.means for x, y in zip(some, texts)) for way, texts in ways.items()}
print("right of 8:", right_of)
claim = "constrained decoding has as many commands right as a second try, or more"
training.expect(claim, right_of["constrained"] >= right_of["second try"], right_of, model)

# %% [markdown]
# The nearest spelling ties with your constraint here, but only the constraint promises a command that the home can carry out.

# %% [markdown]
# ## Is it worth it?
#
# Three baselines. **Examples in the prompt**: eight similar commands as earlier turns (in-context learning, Brown et al. 2020). **Thirty lines of Python** that count words, written by us, who knew all twelve kinds; the home mends their names. **The last block, trained whole**, for as many steps. Below them is LoRA, trained as on this page, as written and under your constraint. These are means of three seeds, with thirty commands of each list. The last row is your own model, as written, with twenty:

# %% tags=["training", "hide-input"]
print(*pictures.table(kept), sep="\n")
final = [right(model, commands[name][:20]) for name in home_commands.LISTS]
print(f"{'your model':24}" + "".join(f"{share:14.0%}" for share in final))

# %% [markdown]
# As written, LoRA trails on new rooms for the reason you have seen: a wrong space or letter. Under your constraint it is ahead of examples on new rooms, new devices and new wordings, and of the program on new wordings. Examples need no training, but cost tokens in every call. The last block hardly ever copies a new name. Seeds differ: yours may be far from the mean.

# %% [markdown]
# ## What it does not hear
#
# No example said *don't*. **What does your assistant do with "don't turn on the lamp": nothing, the opposite, or what was said?**

# %%
guess = None  # "nothing", "the opposite" or "what was said"

# %% tags=["training"]
orders = [x for x in commands["learning"] if x.said.startswith(("turn", "open", "close"))][:10]
forbidden = [x._replace(said=f"don't {x.said}") for x in orders]
done = right(model, forbidden)
print(f"carried out: {done:.0%} of what is forbidden")
reveal(guess, "what was said" if done > 0.5 else "mixed")

# %% tags=["training"]
first = now
for said in ("don't turn off the attic lamp", "don't unlock the hall door", "open the toothbrush"):
    command = write_only(model, said, home.possible(now))
    print(f"{said:32}{command}")
    now = obey(now, command)
pictures.house(now, first)

# %% [markdown]
# The lamp is off, the door is unlocked, and a toothbrush has silenced the radio. A model that may only write commands *must* write one, so one allowed text has to mean "do nothing". The constraint guarantees the form, not the meaning: for that, some examples have to say *don't*.
#
# ## Merge, or ship an adapter?
#
# The branch through $A$ and $B$ costs time in each pass. Both branches are linear, so they can be added into one matrix.

# %%
# exercise: lora/merge

# %%
check("lora/merge", merged)

# %%
merged = mine("lora/merge")

# %% [markdown]
# The model came as a file of 98 MB, once unpacked, with four bits a weight: 32 weights share their smallest value and a step, and each is stored as a number of steps, 0 to 15: a grid of 16 values. Can yours be as small? Merge, then round, twice: on these weights, and **off the grid**, on weights moved at random within half a step, as they may have been before rounding.

# %% tags=["hide-input"]
from course_lib.pretrained.quantised import as_q4_1, unrounded

within = torch.Generator().manual_seed(SEED)
ways = {
    "merge, then round": lambda w, a, b: as_q4_1(merged(w, a, b, 16)),
    "the same, off the grid": lambda w, a, b: as_q4_1(merged(unrounded(w, within), a, b, 16)),
}

# %% tags=["training"]
layers = [layer for layer in model.modules() if isinstance(layer, LowRankLinear)]
parts = [(x.linear.weight, x.a.detach(), x.b.detach().clone()) for x in layers]
for name, way in ways.items():
    for layer, (weight, a, b) in zip(layers, parts):
        layer.b.detach().zero_()  # the change is in the weight now
        layer.linear.weight = nn.Parameter(way(weight, a, b), requires_grad=False)
    print(f"{name:24}{right(model, commands['known'][:8]):.0%}")

# %% [markdown]
# The first leaves nothing. These weights were read *from* four bits, so each is on the grid, and rounding undoes a change of less than half a step. Off the grid enough weights cross a border. So if you have the 16-bit weights, merge into these, and round once. If you have only the four-bit file, merge nothing, and ship an **adapter** beside it, as the field does: $A$ and $B$ in 16 bits, 1.6 MB.
#
# ## Break it
#
# Leave the refusals out of `mixed_batches`, and train again. Does a second try still help?
#
# ## What to remember
#
# 0.6 % of its parameters teach a model a task. It forgets how to answer, but not the capitals. With its own old answers in each batch, it answers such questions again. Tool use is text: a program parses it, and acts or refuses.
#
# | | |
# |:-|:-|
# | targets of a conversation | the answer's tokens with its end, one place to the left; all others $-100$ |
# | LoRA | $W + \frac{\alpha}{r} B A$; $B = 0$ at first, $W$ frozen |
# | replay | rows of the old task, answered by the old model |
# | constrained decoding | $\arg\max$ over the tokens that an allowed text has at this place |

# %% [markdown]
# ## Test yourself
#
# <details><summary>A prompt has 9 tokens, the answer 5 with its end. How many targets, and above which places?</summary>
#
# Five, at the places 9 to 13, counted from 1: the last token of the prompt predicts the first one of the answer.
# </details>

# %% [markdown]
# ## Further reading
#
# Ouyang et al. 2022 (from a base model to an assistant); Biderman et al. 2024 (LoRA learns less and forgets less); Guo et al. 2025 (rewards by programs). Explorations: [A frozen model in four bits](explorations/17_four_bits.ipynb), [Better than, not equal to](explorations/17_preferences.ipynb).
#
# **Next:** in [lesson 18](18_learning_from_reward.ipynb) nobody writes an answer; a program says right or wrong.
