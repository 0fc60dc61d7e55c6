# %% [markdown]
# # What does a hidden unit know?
#
# **15 minutes · an exploration of lesson 05 · needs `smollm2` (93 MB)**
#
# Two thirds of a block's weights are in its feed-forward network. **What does one hidden unit of a real model answer to, and does the model need it?** You read one unit of SmolLM2 that knows months, and then take it away.

# %%
import torch
from course_lib.data import needs
from course_lib.exercises import reveal
from course_lib.instruments import results
from course_lib.instruments.attribution import read_units
from course_lib.instruments.pictures import feed_forward as pictures
from course_lib.pretrained import smollm2

# %% [markdown]
# ## Keys and values
#
# Write the network as a sum over its hidden units ($b_2$ left out):
#
# $$\mathrm{FFN}(x) = \sum_{u=1}^{d_{ff}} \max(0,\; x \cdot k_u + b_u)\; v_u \qquad k_u: \text{column } u \text{ of } W_1, \quad v_u: \text{row } u \text{ of } W_2$$
#
# Geva et al. 2021 read it as a memory: each unit has a **key** $k_u$, a pattern that it fires on, and a **value** $v_u$, which it then adds. Unlike attention's, these keys and values are learned, not computed from the text.

# %% [markdown]
# Do such keys exist? SmolLM2 has 30 networks of 1,536 hidden units each. Its units are **gated** (SwiGLU, lesson 09): a smooth ReLU of $x \cdot k_u$ is multiplied by a second product, $x \cdot g_u$. Such a unit can be negative, so for colours and cities we turned the sign.
#
# For each of seven kinds of words we took the unit that best separates it in 18 sentences, and a threshold halfway between the kind and the rest. Here are the seven in 18 *other* sentences, with other words of the kind:

# %% tags=["hide-input"]
found = results.load("units")["figures"]
pictures.units(found)

# %% [markdown]
# Five kinds have a unit that makes no error here. Body parts and negations do not.
#
# The seven were chosen from 46,080 units. Would a unit be found for any set of tokens? As a control, three tokens that occur only once were drawn at random from the first 18 sentences, twenty times, and a unit was chosen for them in the same way. Three is as few as any of the kinds has there. The **gap** is how far the lowest of the set is above the highest of the rest, divided by the mean of the set:

# %% tags=["nbval-check-output"]
gaps = {name: unit["gap"] for name, unit in found["kinds"].items()}
print(*(f"{name:11} {gap:5.2f}" for name, gap in gaps.items()), sep="\n")
print(f"at random   {max(found['random']):5.2f} at most, in {len(found['random'])} sets")

# %% [markdown]
# For random tokens hardly a unit separates the set: the largest gap of the twenty is less than a seventh of that of negations. So it is not the choice among 46,080 units: the kinds are the model's own.
#
# ## The token, or the sentence?
#
# Read the unit of months on a line. *May* is a month in *Come in May*, and none in *Theresa May*. **Does the unit fire on the second one?**

# %%
guess = None  # "yes" or "no"

# %%
needs("smollm2")

# %% tags=["once"]
model, months = smollm2.load(), found["kinds"]["months"]
held, line = [], "Come in May, or in October. We met Theresa May."


# %% tags=["once"]
def keep(units):  # what all hidden units of the block hold for each token, (token, unit)
    held.extend(units[:, months["unit"]].tolist())


_ = read_units(model, months["block"], line, keep)  # reads the line, and calls `keep`

# %% tags=["once"]
tokens = model.tokenizer.encode(line).ids
print(*(f"{model.tokenizer.decode([i]).strip()} {x:.1f}" for i, x in zip(tokens, held)), sep="  ")
reveal(guess, "yes" if held[-2] > months["threshold"] else "no")

# %% [markdown]
# It fires on *May* after *Theresa* as it does on the month: this unit of the first block reads the token, and hardly the sentence. Geva et al. report shallow patterns in lower layers and meanings in upper ones.
#
# ## Take it away
#
# Does the model need it? Set this one unit of 46,080 to 0. How likely is *March* then after *The months are January, February,*? As a control, silence instead one of the 20 others of its network that are largest on this line:


# %% tags=["once"]
def chance(line, word, unit):
    def silence(units):
        sizes.append(units.abs().amax(0))
        units[:, unit] = 0

    logits = read_units(model, months["block"], line, silence)
    return logits.softmax(-1)[model.tokenizer.encode(" " + word).ids[0]].item()


# %% tags=["once"]
sizes, line = [], "The months are January, February,"
whole, without = (chance(line, "March", unit) for unit in ([], months["unit"]))
others = [unit for unit in sizes[0].topk(21).indices.tolist() if unit != months["unit"]][:20]
least = min(chance(line, "March", unit) for unit in others)
print(
    f"all units {whole:.2f}, without this one {without:.2f}, without another {least:.2f} at least"
)

# %% [markdown]
# None of the twenty costs as much. Is it so for months alone? Silence the same unit in other lists of months, and, as a control, in lists of weekdays:

# %% tags=["once"]
lists = {
    "Spring is March, April and": "May",
    "The shop is closed from March to": "May",
    "April, May, June,": "July",
    "The days are Monday, Tuesday,": "Wednesday",
    "The office is open from Monday to": "Friday",
    "Thursday, Friday, Saturday,": "Sunday",
}
for line, word in lists.items():
    whole, without = (chance(line, word, unit) for unit in ([], months["unit"]))
    print(f"{line:34} {word:10} {whole:.2f} {without:.2f}")

# %% [markdown]
# Weekdays lose nothing. Two of the three lists of months lose more than half of the chance, and *April, May, June,* loses nothing at all. So the model uses this unit for months, and has other ways to them.
#
# Geva et al. 2021, *Transformer feed-forward layers are key-value memories*. The sentences and the choice: `research/experiments/units.py`.
