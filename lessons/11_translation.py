# %% [markdown]
# # 11 · Evaluation: did we beat Firefox?
#
# **75 minutes · after lesson 10 · needs `homeassistant` (51 MB) and `marian` (35 MB)**
#
# We trained a translator for eighteen minutes on one core. On 500 unseen texts it had a better score than Firefox's, which has six times as many parameters. **How did a small model beat a real one, and why did it not?**
#
# You score both, and enter the race with six lines of your own, which know no Portuguese. At the end you can compute BLEU, search with a beam, and take such a headline apart.

# %%
import math
import torch
from collections import Counter
from course_lib.data import home_assistant, needs, translating
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import results

# %% tags=["hide-input"]
from collections.abc import Callable, Sequence
from functools import partial
from course_lib.instruments.bootstrap import interval
from course_lib.instruments.pictures import evaluation as pictures
from course_lib.pretrained import home_translator, marian
from course_lib.translation import cut
from jaxtyping import Float, Int
from torch import Tensor

Transformer, greedy = mine("transformer/forward"), mine("transformer/greedy")
EncoderBlock, DecoderBlock = mine("encoder/block"), mine("decoder/block")

# %% tags=["hide-input"]
pictures.one_text(results.load("translation")["figures"]["duel"])

# %% [markdown]
# ## Pairs that people wrote
#
# Home Assistant is a program that controls the devices of a home. Volunteers translate its texts one by one, into European Portuguese too. Many texts come again and again, such as *Device is already configured*. So `split` keeps each English text once. It holds out a pair only if neither side, in lower case and without punctuation, is in the training part.

# %%
needs("homeassistant", "marian")

# %%
learning, tuning, held_out = home_assistant.split("pt")
print(len(learning), "pairs to learn from,", len(tuning), "to tune by,", len(held_out), "held out")
for source, target in held_out[:3]:
    print(f"{source}   |   {target}")

# %% [markdown]
# Choices such as the learning rate were made on the tuning part, and none on the held-out pairs. That is the usual care.
#
# ## How it was trained
#
# You train nothing today: ours was trained once, from one seed, on the 20,767 pairs. It is your `Transformer`, with three encoder blocks and two decoder blocks, **teacher forcing** (lesson 08) and Muon (lesson 10's exploration). What each part of such a recipe buys is [an exploration](explorations/11_recipe.ipynb), which also has the batches. Its tokens are made by **byte pair encoding** (lesson 10), over both languages together.

# %% [markdown]
# Its weights are kept with the course, and load into *your* classes. Your greedy decoding writes the translations; those in the figure above and in the headline were searched by a beam, which you meet below. You need no Portuguese: compare them with the references.

# %%
pieces = translating.learn_pieces((text for pair in learning for text in pair), 2000)
home = home_translator.load(Transformer, EncoderBlock, DecoderBlock)
print(f"{sum(weight.numel() for weight in home.parameters()):,} parameters")
few = held_out[:4]
written = translating.translate(home, pieces, [source for source, _ in few], greedy=greedy)
for (source, target), text in zip(few, written):
    print(f"\n{source}\n    reference: {target}\n    ours:      {text}")

# %% [markdown]
# This is Portuguese. Is it better than Firefox's? For that we need a score.
#
# ## A score by hand
#
# **BLEU** (Papineni et al. 2002) counts which runs of $n$ tokens, **n-grams**, are also in a reference that a person wrote:
#
# - reference: *the light in the kitchen is off*
# - translation: *the light in kitchen is the off*
#
# All 7 tokens of the translation are in the reference. **How many of its six 2-grams are? And of its five 3-grams?**

# %%
guess = None  # two counts

# %% [markdown]
# One more rule. *the the the the* would be perfect if every *the* matched. So matches are **clipped**: an n-gram counts at most as often as the reference has it. Let an n-gram $g$ occur $c_h(g)$ times in the hypothesis, which is the translation, and $c_r(g)$ times in the reference. The share that matches is the **precision** $p_n$:
#
# $$\text{matches}_n = \sum_{g} \min\big(c_h(g),\, c_r(g)\big) \qquad\qquad p_n = \frac{\text{matches}_n}{\text{n-grams of the hypothesis}}$$

# %%
needs()

# %%
# exercise: bleu/matches

# %%
check("bleu/matches", matches)

# %%
matches = mine("bleu/matches")

# %% tags=["nbval-check-output"]
reference = "the light in the kitchen is off".split()
hypothesis = "the light in kitchen is the off".split()
counts = [matches(hypothesis, reference, n) for n in (1, 2, 3, 4)]
print(counts)
reveal(guess, (counts[1][0], counts[2][0]))

# %% [markdown]
# ## Build: BLEU
#
# BLEU is the geometric mean of $p_1$ to $p_4$, so a translation must be good in all four. Precision alone is easy to cheat: write only what you are sure of. So a corpus of $c$ tokens that is shorter than its references, $r$ tokens, has its score multiplied by a **brevity penalty**:
#
# $$\mathrm{BLEU} = 100 \cdot \underbrace{\min\big(1,\, e^{1 - r/c}\big)}_{\text{brevity penalty}} \cdot \Big(\prod_{n=1}^{4} p_n\Big)^{1/4}$$
#
# Our sentence has no 4-gram in common with its reference, so its BLEU is 0. BLEU belongs to a **corpus**: matches and n-grams are added up over all sentences *before* they are divided.

# %%
# exercise: bleu/corpus

# %%
check("bleu/corpus", bleu)

# %%
bleu = mine("bleu/corpus")

# %% [markdown]
# **Of 500 sentences of ten words, a program translates 450 perfectly, and leaves out the last 50. What BLEU does it get?**

# %%
guess = None  # a number

# %%
references = ["a b c d e f g h i j".split()] * 500
short = [*references[:450], *[[]] * 50]
reveal(guess, bleu(short, references))

# %% [markdown]
# All four precisions are 1, and only the penalty is left: $e^{1 - 1/0.9} = 0.895$.
#
# BLEU also depends on how a text is cut into tokens. `cut` follows the rules of **sacreBLEU** (Post 2018), so that scores can be compared.
#
# ## The headline
#
# Both have translated the 500 held-out texts, and your function scores them. **By how much BLEU is ours ahead?**

# %%
guess = None  # a difference in BLEU

# %%
duel = results.load("translation")["figures"]["duel"]  # what both wrote
sources, references, ours, firefox = zip(*duel["corpora"]["held out"]["shown"])
everything = range(len(sources))


def score(texts, part=everything, references=references):
    """Return the BLEU of a translator's texts on a part of them."""
    return bleu([cut(texts[i]) for i in part], [cut(references[i]) for i in part])


# %% tags=["nbval-check-output"]
print(f"ours {score(ours):.1f}, Firefox {score(firefox):.1f}")
reveal(guess, round(score(ours) - score(firefox), 1))

# %% [markdown]
# There is the headline: a sixth of the parameters, and two BLEU ahead. The split was clean, and nothing was tuned on these texts. A press release could be written now.
#
# ## One word away
#
# But look at what is in the training part. *Disable lock user* is held out, and *Clear lock user* and *Enable lock user* are not. They are **near-duplicates**, and a test set with such neighbours in training is **contaminated**.

# %% [markdown]
# That suggests a third translator, which knows no Portuguese: find a training text that differs in one word at most, and copy *its* translation, wrong word and all. Programs for human translators have such a **translation memory**, and call what they find in it a **fuzzy match**.

# %%
# exercise: translation_memory/fuzzy_match

# %%
check("translation_memory/fuzzy_match", fuzzy_match)

# %%
fuzzy_match = mine("translation_memory/fuzzy_match")

# %%
needs("homeassistant", "marian")


# %%
def words(text):
    return home_assistant.normalised(text).split()


memory = [(words(source), target) for source, target in learning]
copied = [fuzzy_match(words(source), memory) for source in sources]
near = [i for i, text in enumerate(copied) if text]
far = [i for i, text in enumerate(copied) if not text]
for i in near[:4]:
    print(f"{sources[i]}\n    reference: {references[i]}\n    your copy: {copied[i]}")

# %% [markdown]
# Your translator writes good Portuguese, because people wrote it. It has something to copy for more than four texts in ten. **On those: is your copy first, second or third of the three translators?**

# %%
guess = None  # 1, 2 or 3

# %%
translators = {"ours": ours, "Firefox": firefox, "your copy": copied}
on_near = {who: score(texts, near) for who, texts in translators.items()}
ranked = sorted(on_near, key=on_near.get, reverse=True)
reveal(guess, 1 + ranked.index("your copy"))
print(", ".join(f"{who} {on_near[who]:.1f}" for who in ranked))

# %% [markdown]
# Six lines have beaten a translator of seventeen million parameters, by these references. They copy the neighbour's wording and its dialect, and the reference shares both. Now the other part, where there is nothing to copy. **How far ahead is ours on the texts without a neighbour?**

# %%
guess = None  # a difference in BLEU; negative if ours is behind

# %% tags=["nbval-check-output"]
on_far = {"ours": score(ours, far), "Firefox": score(firefox, far)}
reveal(guess, round(on_far["ours"] - on_far["Firefox"], 1))
print({who: round(value, 1) for who, value in on_far.items()})

# %% tags=["hide-input"]
split = {
    f"with a neighbour\n({len(near)} texts)": on_near,
    f"without\n({len(far)} texts)": on_far,
}
pictures.parts(split, "Ahead with a neighbour in training, behind without one")

# %% [markdown]
# All of our lead is on texts that are one word away from a training text, and ours does more there than copy. On the others the headline is reversed.

# %% [markdown]
# ## Would other texts say the same?
#
# Draw 500 texts from the 500 with replacement, score both on those, and repeat a thousand times. The middle 95 % of the differences is a **bootstrap interval** (Koehn 2004).


# %%
def difference(some, others, part, references=references):
    """Return the interval of the difference of two translators on a part of the texts."""
    return interval(*([texts[i] for i in part] for texts in (some, others, references)))


differences = {
    "ours − Firefox, all": difference(ours, firefox, everything),
    "ours − Firefox, with a neighbour": difference(ours, firefox, near),
    "ours − Firefox, without": difference(ours, firefox, far),
    "your copy − Firefox, with a neighbour": difference(copied, firefox, near),
}

# %% tags=["hide-input"]
pictures.intervals(differences, "The headline's interval contains 0, those of the parts do not")

# %% [markdown]
# The headline is uncertain: with other texts of this kind, Firefox's could be ahead. *Where* ours wins is clear.
#
# <details><summary>How we know</summary>
#
# - Texts with a neighbour are shorter. But ours is ahead on them at each length. Without a neighbour, 145 texts have six words or fewer: ours 45.6, Firefox 40.7, and the interval of the difference contains 0. On the 130 longer ones it is 36.4 to 50.4.
# - Which neighbour comes first matters little: in another order of the memory the copy has 50 to 52 BLEU.
# - Neither part's order changes with another score, chrF, which counts n-grams of characters (Popović 2015), or where Firefox's searches for likelier sentences by a beam (see below).
#
# The course's tests repeat all three (`test_translation_experiment.py`).
# </details>

# %% [markdown]
# ## Whose Portuguese?
#
# A reference is one person's choice. Ours are European Portuguese (*utilizador*), like our training texts, and Firefox's *usuário* is Brazilian. For 146 of the texts, Home Assistant has a Brazilian translation too, by a person. Score it by the European references, as if a program had written it. **What BLEU does a person get?**

# %%
guess = None  # a BLEU

# %% tags=["nbval-check-output"]
brazilian = {row[0]: row[1] for row in duel["corpora"]["held out, Brazilian references"]["shown"]}
both = [i for i in everything if sources[i] in brazilian]
person = [brazilian.get(source, "") for source in sources]
reveal(guess, round(score(person, both), 1))
print(f"{len(both)} texts, by references   European   Brazilian")
for who, texts in {"ours": ours, "Firefox": firefox, "a Brazilian person": person}.items():
    european, other = score(texts, both), score(texts, both, person)
    print(f"{who:26}   {european:8.1f}   {other:9.1f}")

# %% tags=["nbval-check-output"]
for dialect, by in {"European": references, "Brazilian": person}.items():
    low, high = difference(ours, firefox, both, by)
    print(f"ours − Firefox, by {dialect} references: {low:+.0f} to {high:+.0f} BLEU")

# %% [markdown]
# A person who writes the other dialect gets 54, not 100. By European references neither program is surely ahead; by Brazilian ones Firefox's is, by twenty. So a BLEU says how near a text is to one reference, not how good it is.

# %%
needs()

# %% [markdown]
# ## Why the likeliest next token is not enough
#
# Were both even decoded in the same way? Firefox's was written greedily, with the likeliest token at each step. Ours was not. The likeliest *sentence* can begin with a token that was not the likeliest. Here is a tiny model; follow the numbers.

# %% tags=["hide-input"]
pictures.beam()

# %% [markdown]
# Greedy takes *house* and stops: $0.5 \cdot 0.5 = 0.25$. The likeliest sentence is *a house*, $0.4 \cdot 0.9 = 0.36$. **Beam search** keeps the best `width` prefixes alive instead of one. With width 2, *house* and *a* survive the first step. In the second, *house* is finished, and *a house* and *house by* are alive. What this beam drops is grey.

# %% [markdown]
# ## Find the bug: beam search
#
# A prefix is ranked by the sum of its tokens' log-probabilities. Every further token makes the sum smaller, so finished translations are compared after division by a **length penalty** (Wu et al. 2016, eq. 14), where $x$ is the source, and $|y|$ counts the tokens written, stop included:
#
# $$\mathrm{score}(y) = \frac{\sum_i \log p(y_i \mid y_{<i}, x)}{\big((5 + |y|)/6\big)^{\alpha}}$$
#
# Each round has $b \le \mathrm{width}$ live prefixes:
#
# $$\underset{b \times n}{\text{prefixes}} \;\xrightarrow{\;\mathrm{step}\;}\; \underset{b \times V}{\log p} \;\xrightarrow{\;+\,\text{sums}\;}\; \underset{b \times V}{\text{sums of all continuations}} \;\to\; \text{rank all } b \cdot V$$

# %% [markdown]
# Those of the best `width` that end in `stop` are **finished**, and the best `width` of the others live on. The function below has one wrong line, among the last ten of its loop. On the tree above it shows: here is the model as a table. What is alive is printed at the beginning of each round.

# %%
vocabulary = ["start", "stop", "house", "a", "the", "by", "in", "home", "sea"]
likely = {
    "start": {"house": 0.5, "a": 0.4, "the": 0.1},
    "start house": {"stop": 0.5, "by": 0.3, "in": 0.2},
    "start a": {"house": 0.9, "home": 0.1},
    "start the": {"house": 1.0},
    "start house by": {"sea": 1.0},
}


def step(prefixes):
    texts = [" ".join(vocabulary[token] for token in prefix) for prefix in prefixes.tolist()]
    print("alive:", " | ".join(texts))
    rows = [likely.get(text, {"stop": 1.0}) for text in texts]
    return torch.tensor([[row.get(word, 0.0) for word in vocabulary] for row in rows]).log()


# %%
# exercise: beam_search/search

# %%
tokens, _ = beam_search(step, 0, 1, 2, most=5)
print("answer:", " ".join(vocabulary[token] for token in tokens))

# %%
check("beam_search/search", beam_search)

# %%
beam_search = mine("beam_search/search")

# %% tags=["nbval-check-output"]
for width in (1, 2):
    tokens, best = beam_search(step, 0, 1, width, most=5)
    print(f"width {width}:", " ".join(vocabulary[token] for token in tokens), f"(score {best:.2f})")

# %% [markdown]
# The answer is the same, with the wrong line and without it. What the line drops, *house by*, has a product of 0.15, and the finished sentence that took its place, *house*, one of 0.25. Going on never makes a product larger, so what is dropped in this way is never likelier than that sentence. But it is longer, and the length penalty may put it first.

# %% [markdown]
# ## The same decoding for both
#
# Now your search drives our translator: the encoder reads a text once, and `step` runs the decoder on all live prefixes as one batch. $\alpha$ was chosen on the tuning texts, out of 0.6, 1 and 1.5; larger ones were not tried. Of the first 24 texts, here are those where a beam of 4 differs from your greedy decoding.

# %%
needs("homeassistant", "marian")

# %%
by_greedy = translating.translate(home, pieces, sources, greedy=greedy)
search = partial(beam_search, alpha=duel["alpha"])
print("alpha:", duel["alpha"])
by_beam = translating.translate_by_beam(home, pieces, sources[:24], 4, beam_search=search)
for text, one, four, reference in zip(sources, by_greedy, by_beam, references):
    if one != four:
        print(f"{text}\n    greedy: {one}\n    beam:   {four}\n    reference: {reference}")

# %% [markdown]
# Single texts say little: take all 500, and the bootstrap.

# %% tags=["hide-input"]
beamed = duel["theirs_by_beam"]["written"]
pairs = {
    "ours: beam − greedy": (ours, by_greedy),
    "Firefox: beam − greedy": (beamed, firefox),
    "ours − Firefox, both greedy": (by_greedy, firefox),
    "ours − Firefox, both by beam": (ours, beamed),
}
pictures.intervals(
    {name: difference(*pair, everything) for name, pair in pairs.items()},
    "A beam helps ours; who is ahead stays open",
)
print({who: round(score(x), 1) for who, x in {"greedy": by_greedy, "by beam": ours}.items()})

# %% [markdown]
# A beam is worth three BLEU to ours. To Firefox's it is worth at most one either way, with $\alpha = 1$: that one was not chosen on the tuning texts. With greedy decoding for both, ours is one BLEU behind, with a beam for both two ahead, and both intervals contain 0.

# %% [markdown]
# ## Another judge?
#
# BLEU knows no synonym. Newer judges read for meaning: **COMET** (Rei et al. 2020) is a model that was trained on people's judgements of translations. A large language model as the judge (**LLM-as-judge**) reads both texts and gives a mark. In the comparison of 2025 by WMT, the yearly conference on machine translation, such judges were strong on whole systems, and metrics with a reference were better for single texts (Lavie et al. 2025).

# %% [markdown]
# Neither sees what is in the training part. Benchmarks of large language models are in the same danger: many of their questions are on the web, like the training texts. **Contamination** is the first thing to ask of any leaderboard.

# %% [markdown]
# ## Away from home
#
# Last, ten plain sentences that we wrote for this test. Ten are too few for a score, so read them.

# %%
for source, _, one, other in duel["corpora"]["elsewhere"]["shown"]:
    print(f"{source}\n    ours:    {one}\n    Firefox: {other}")
learned = Counter(word for source, _ in learning for word in words(source))
print({word: learned[word] for word in ("she", "sister", "chair", "light")}, "in training")

# %% [markdown]
# Ours fails here: its training texts never say *she*, *sister* or *chair*. A held-out score says how good a model is on *texts like those*: **in-distribution**. The ten sentences are **out of distribution**. Now you. Type a text of a home, then one about anything else:

# %%
TEXT = "The door is locked"  # yours
real = marian.load("en-pt")
print("ours:     ", *translating.translate_by_beam(home, pieces, [TEXT], beam_search=search))
print("Firefox:  ", real.translate(TEXT))
print("your copy:", fuzzy_match(words(TEXT), memory) or "(nothing to copy)")

# %%
needs()

# %% [markdown]
# For the door above: your copy says that it is open. If the reference is Firefox's *trancada*, BLEU gives 0 to both: no 4-gram is right. *aberta* and *bloqueada*, the opposite and a synonym, are one wrong word each.

# %% [markdown]
# ## Break it
#
# - Allow *two* other words in `fuzzy_match`. How many texts still have no neighbour, and who wins those?
# - Search by a beam of 16. Very wide beams are reported to lower BLEU, since they write too little (Koehn & Knowles 2017).

# %% [markdown]
# ## What to remember
#
# A small model had a higher score than a real one on 500 texts. All of its lead was on texts that are one word away from a training text, and there six lines that copy beat the real one as well, by references in their own dialect. Where it had no such text, it was behind. A score is a statement about the texts, the split, the decoding and the reference, and about the model last.
#
# | | |
# |:-|:-|
# | matches | $\sum_g \min(c_h(g), c_r(g))$: clipped |
# | BLEU | $100 \cdot \min(1, e^{1 - r/c}) \cdot (p_1 p_2 p_3 p_4)^{1/4}$, added up over the corpus |
# | bootstrap | draw texts with replacement, score both, take the middle 95 % of the differences |
# | beam search | rank all $b \cdot V$ continuations by $\sum \log p$; at the end divide by $((5 + \lvert y\rvert)/6)^\alpha$ |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. Why does BLEU add up matches over the corpus before it divides?</summary>
#
# Many single sentences have no 4-gram in common with their reference. Their own BLEU would be 0, and their mean would say little.
# </details>
#
# <details><summary>2. Why can a beam of width 2 miss the likeliest sentence?</summary>
#
# Its first token may be only the third-likeliest. Then it is dropped after the first step.
# </details>
#
# <details><summary>3. An otherwise perfect translation repeats its first word at the end. Which of p₁ to p₄ fall?</summary>
#
# All four. The extra word is clipped, as the reference has one fewer, and the n-grams that end in it are not in the reference.
# </details>
#
# <details><summary>4. A new model beats a commercial one by several BLEU on 500 texts. What do you ask?</summary>
#
# How many have a near-duplicate in training, and what does copying reach on those? Were both decoded alike? Whose dialect is the reference? How wide is the interval? What about texts from elsewhere?
# </details>

# %% [markdown]
# ## Next, and further reading
#
# Lesson 12 asks what more data, parameters and computation buy. [An exploration](explorations/11_recipe.ipynb) of this lesson: what each step of a recipe buys, batches, label smoothing and the paper's learning rate included. Near-duplicates of long documents are found by MinHash: [Data](explorations/10_data.ipynb).
#
# Vaswani et al. 2017 (section 5); Papineni et al. 2002 (BLEU); Post 2018 (sacreBLEU); Bulté & Tezcan 2019 (translation memories beside networks); Koehn 2004 (bootstrap); Wu et al. 2016 (beam search); Rei et al. 2020 (COMET); Lavie et al. 2025 (metrics and judges compared). Lectures: L1, L2, L3, L5.
