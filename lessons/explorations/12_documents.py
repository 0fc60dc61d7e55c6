# %% [markdown]
# # Long inputs
#
# **15 minutes · an exploration of lesson 12 · needs nothing**
#
# In 2018 a table put models that read up to 11,000 tokens above others that read 500. **Does a decoder gain from a longer input because it reads further?** You look at what such a table compares, and at one control that takes most of the gain away.

# %%
import torch
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, results

# %% [markdown]
# ## The table of 2018
#
# L1 and L2 show it: writing the first paragraphs of Wikipedia articles from the texts that these cite and from what a web search finds (Liu et al. 2018, reported). $L$ is the number of tokens of the input; ROUGE-L compares with the real article:
#
# | model | $L$ | perplexity | ROUGE-L |
# |:-|-:|-:|-:|
# | seq2seq with attention | 500 | 5.05 | 12.7 |
# | encoder-decoder Transformer | 500 | 2.47 | 34.2 |
# | decoder alone | 4,000 | 2.22 | 33.6 |
# | decoder, memory-compressed attention | 11,000 | 2.05 | 36.2 |
# | the same, 128 experts | 11,000 | 1.93 | 37.9 |
# | the same, 256 experts | 7,500 | 1.90 | 38.8 |

# %% [markdown]
# A **decoder alone** (T-D in the paper) has no encoder: input and text are one sequence. **Memory-compressed attention** gives several tokens one key and one value (you build it in lesson 14's explorations); [experts](12_experts.ipynb) are another exploration of this lesson.
#
# **Between which neighbouring rows does only the model change, and not $L$? Count the pairs.**

# %%
guess = None  # a number of pairs

# %%
rows = {  # Liu et al. 2018, table 4: length of the input, test perplexity, as printed
    "seq2seq with attention": (500, 5.04952),
    "encoder-decoder": (500, 2.46645),
    "decoder": (4000, 2.22216),
    "compressed": (11000, 2.05159),
    "compressed, 128 experts": (11000, 1.92871),
    "compressed, 256 experts": (7500, 1.90325),
}
pairs = [*zip(rows.values(), [*rows.values()][1:])]
reveal(guess, sum(before[0] == after[0] for before, after in pairs))
for (before, after), name in zip(pairs, [*rows][1:]):
    bits = torch.log2(torch.tensor(before[1] / after[1])).item()
    print(f"{name:24} {bits:5.2f} bits a token less, {before[0]:6,} → {after[0]:6,} tokens")
    assert (name == "encoder-decoder") == (bits > 1)

# %% [markdown]
# Two. The large step, a bit for each token, is the first one: from a recurrent network to a Transformer, at equal length. All others are a sixth of a bit or less; of these only the first 128 experts come at equal length. Where length and model change together, the table cannot say which of them helped. (The paper's figure 3 varies the length for some of its models.)

# %% [markdown]
# ## The same question at small scale
#
# Home Assistant is a program for smart homes (lesson 11). A document is all the text of one of its integrations: names of switches, messages, questions. **The task is to write the next text, from the 16 or 64 tokens right before it.** Test texts come from 97 held-out documents; no document to learn from contains them. We take three models of two layers and $d_{model} = 64$:
#
# | model | reads the input with | is trained to predict |
# |:-|:-|:-|
# | encoder-decoder | its encoder | the text |
# | decoder | the decoder itself | the input *and* the text |
# | decoder, text alone | the decoder itself | the text |

# %% [markdown]
# The third is the control: the same model, the same input, but the loss leaves out the targets of its input. All train for 1,000 steps of 16 texts, from three seeds, each at the best of four learning rates (chosen with 16 tokens, by another seed, and none at the edge of the grid).

# %% tags=["hide-input"]
diagram = drawings.Diagram()
reads = ["$x_1$", "$x_2$", "$x_3$", "$t_1$", "$t_2$", "$t_3$"]
for y, name, first in ((2.9, "decoder", 0), (0, "decoder, text alone", 2)):
    diagram.text(name + ": targets above, input below", (-0.6, y + 1.9), size=9, align="left")
    for i in range(5):
        source = i < 3
        token = diagram.box(reads[i], (1.7 * i, y), "key" if source else "stream", size=(1.3, 0.62))
        role = "value" if i >= first else "dim"
        label = reads[i + 1] if i >= first else "–"
        target = diagram.box(label, (1.7 * i, y + 1.15), role, size=(1.3, 0.62))
        diagram.arrow(token, target, role="plain" if i >= first else "dim")
diagram.show(
    "Two rows. Both decoders read x1, x2, x3, the input, and t1, t2, the text so far. The decoder is "
    "asked for x2, x3, t1, t2, t3. The control, text alone, is asked for t1, t2, t3, and has no "
    "target above x1 and x2.",
)

# %% [markdown]
# **The decoder's loss falls by half a nat from 16 to 64 tokens. How much of that is left in the control, which reads the same 64 tokens?**

# %%
guess = None  # nats

# %%
kept = results.load("documents")["figures"]
lengths, names = kept["settings"]["lengths"], list(kept["operations"])


def losses(name, length):
    """Return each seed's loss."""
    rows = [row for row in kept["rows"] if (row["name"], row["length"]) == (name, length)]
    return [row["loss"] for row in rows]


def gain(name):
    """Return how far the mean loss falls from the shorter to the longer input."""
    short, long = (sum(losses(name, n)) / 3 for n in lengths)
    return short - long


# %% tags=["hide-input"]
reveal(guess, round(gain("decoder, text alone"), 2))
for name in names:
    found = "; ".join(
        f"{n} tokens: " + " ".join(f"{x:.2f}" for x in losses(name, n)) for n in lengths
    )
    print(f"{name:20} {found}; gain {gain(name):+.2f}")
print(f"{'counting':20} " + "; ".join(f"{n} tokens: {x:.2f}" for n, x in kept["counting"].items()))
assert kept["documents"][1] == 97 and kept["settings"]["steps"] == 1000
assert 0.45 < gain("decoder") < 0.55 and 0.07 < gain("decoder, text alone") < 0.11
assert abs(gain("encoder-decoder")) < 0.03
assert max(losses("decoder, text alone", 64)) < min(losses("decoder, text alone", 16))
edges = {str(kept["settings"]["rates"][0]), str(kept["settings"]["rates"][-1])}
assert not edges & {min(rates, key=rates.get) for rates in kept["rates"].values()}

# %% tags=["hide-input"]
title = "Most of the decoder's gain comes from being trained on its input"
figure, ax = plots.axes(title, "tokens of the input", "loss, nats a token", size=(7, 3.6))
for name, colour in zip(names, plots.COLOURS):
    ax.plot([0, 1], [sum(losses(name, n)) / 3 for n in lengths], color=colour, linewidth=1.5)
    for i, n in enumerate(lengths):
        ax.plot([i] * 3, losses(name, n), "o", color=colour, markersize=4)
    high = 0.06 if name == "encoder-decoder" else -0.04 if "alone" in name else 0
    y = sum(losses(name, 64)) / 3 + high
    ax.text(1.04, y, name, color=colour, va="center", size="small")
ax.plot([0, 1], kept["counting"].values(), "--", color="0.4", linewidth=1.5)
ax.text(1.04, kept["counting"]["64"], "counting", color="0.4", va="center", size="small")
ax.set_xticks([0, 1], lengths)
ax.set(xlim=(-0.15, 1.6), ylim=(2.6, 4.4))
means = [
    f"{name} " + " and ".join(f"{sum(losses(name, n)) / 3:.2f}" for n in lengths) for name in names
]
plots.show(
    figure,
    f"Loss with 16 and with 64 tokens of input, three seeds: {'; '.join(means)}; counting "
    f"{kept['counting']['16']:.2f} and {kept['counting']['64']:.2f}.",
)

# %% [markdown]
# Take the input's targets away, and a fifth of the gain is left. The decoder with 64 tokens is trained on more than twice as many targets in each step, from the same texts. That may be *more training*, and not reading. What reading further is worth to a model that is trained on the text alone is less than 0.1 nats here, and nothing for the encoder-decoder.

# %% tags=["nbval-check-output"]
work = {n: kept["operations"]["decoder"][str(n)] / 1e9 for n in lengths}
print({n: f"{x:.2f} billion operations a step" for n, x in work.items()})
assert 2.3 < work[64] / work[16] < 2.5

# %% [markdown]
# Is there more to gain? The cheap rival says so. **Counting** takes half of each probability from trigrams of the documents to learn from, and half from what followed the last token earlier *in the input*. It is ahead of all three models, and 64 tokens earn it a quarter of a nat, by copying alone.

# %% [markdown]
# So the input holds more than these small models have learned to use from 16,000 of 22,803 texts, less than one pass. The lesson is about the comparison: if a longer input also brings more targets, more steps or more operations, give the shorter one the same before you speak of reading.

# %% [markdown]
# ## What to remember
#
# - A table in which two things change at each step names no cause.
# - A decoder alone is trained on its input too. Its control is the same model with the input's targets ignored.
# - "Sees 64 tokens" is not "uses 64 tokens": compare with a rival that copies.
#
# Liu et al. 2018. Lectures: L1 and L2.
