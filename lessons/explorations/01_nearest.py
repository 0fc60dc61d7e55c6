# %% [markdown]
# # Is the nearest word the most important?
#
# **10 minutes · an exploration of lesson 01 · needs no download**
#
# In an RNN, a near token is a few steps away, and a far one is many. Treating nearness as importance is called **linear locality**. **How good is that rule for language?** Here is a sentence made to break it. Who slept? The noun nearest to *slept* is *writers*; the subject of *slept* is *critic*.

# %%
from matplotlib.textpath import TextPath
from course_lib.data import trees
from course_lib.exercises import reveal
from course_lib.instruments import drawings

# %% tags=["hide-input"]
[sentence] = [x for x in trees.documents()["own"] if x.words[-1] == "play" and "slept" in x.words]
critic, slept = sentence.words.index("critic"), sentence.words.index("slept")
assert sentence.heads[critic] == slept and slept - critic == 10
diagram, x, places = drawings.Diagram(), 0.0, []
for i, word in enumerate(sentence.words):
    points = TextPath((0, 0), word, size=drawings.SMALL).get_extents().width
    width = points / 72 / drawings.INCHES
    places.append(x + width / 2)
    colour = "black" if i in (critic, slept) else "0.45"
    diagram.text(word, (places[-1], 0), size=drawings.SMALL, colour=colour)
    x += width + 0.17
for height, label, role in ((0.35, "subject: one edge", "query"), (-0.35, "ten steps", "key")):
    ends = [(places[slept], height), (places[critic], height)]
    corners = [(place, 3 * height) for place, _ in ends]
    if role == "key":
        ends, corners = ends[::-1], corners[::-1]
    diagram.arrow(*ends, label, via=corners, role=role)
diagram.show(
    "The sentence 'The critic who wrote for the paper that the writers read slept through the "
    "play'. One edge of the tree joins slept and its subject critic; an RNN needs ten steps from "
    "one to the other."
)

# %% [markdown]
# ## How far is a subject from its verb?
#
# In grammar one can count. Two acts of *Julius Caesar* come with the course as trees (parsed by spaCy 3.8; nobody corrected its mistakes). Pronouns would make the answer easy: *I come*, *he saw*. So leave them out. **In what share of cases is a subject that is no pronoun right beside its verb? And how often are the two four words or more apart?**

# %%
guess = None  # two shares: (beside, four or more apart)

# %% tags=["hide-input"]
pronouns = "i you he she it we they thou ye who whom which that what this these those one all"
subjects = []  # the word, and how far its verb is
for name, sentences in trees.documents().items():
    for sentence in sentences if "Caesar" in name else []:
        for place, (head, label) in enumerate(zip(sentence.heads.tolist(), sentence.labels)):
            if label in ("nsubj", "nsubjpass"):
                subjects.append((sentence.words[place].lower(), abs(head - place)))


# %% tags=["nbval-check-output"]
def shares(distances):
    beside = sum(distance == 1 for distance in distances) / len(distances)
    apart = sum(distance >= 4 for distance in distances) / len(distances)
    return round(beside, 2), round(apart, 2)


every = [distance for _, distance in subjects]
others = [distance for word, distance in subjects if word not in pronouns.split()]
reveal(guess, shares(others))
print(f"{len(others)} subjects without pronouns: {shares(others)} beside, four or more apart")
print(f"{len(every)} subjects in all:            {shares(every)}")
assert shares(others)[0] < shares(every)[0] and shares(others)[1] > shares(every)[1]

# %% [markdown]
# One subject in two is the word beside its verb, and one in six is four words or more away. (With pronouns the rule looks better: 0.58 beside.) So the nearest word is often right, and often not. In the drawing above, the tree of the sentence has one edge between *critic* and *slept*; an RNN has ten steps, and a gradient has to survive them all.
#
# Linear order is a useful heuristic, but a sentence is not a line. (Lesson 04 gives a model the tree's distances.)
#
# Lectures: L1, L2, L4.
