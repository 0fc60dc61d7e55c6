# %% [markdown]
# # Sampling: temperature, top-k, top-p
#
# **20 minutes · an exploration of lesson 10 · needs `shakespeare` (5.4 MB)**
#
# A language model is a distribution; a text is a draw from it. **How do you draw so that the text reads well?**

# %%
import torch
from jaxtyping import Float
from torch import Tensor
from course_lib.data import characters, needs, shakespeare
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import plots
from course_lib.pretrained import shakespeare_model
from course_lib.language_model import generate

# %% [markdown]
# If you always take the likeliest token, the text tends to repeat itself. Drawing from all 77 characters means that once in a while something absurd comes, and the model must go on from there. Three controls act on the logits $z$ before the draw:
#
# $$\text{temperature: } \frac{z}{\tau} \qquad \text{top-}k\text{: keep the } k \text{ largest} \qquad \text{top-}p\text{: keep the fewest with } \sum \hat y \ge p$$

# %%
# exercise: sampling/top_k

# %%
check("sampling/top_k", top_k)

# %%
top_k = mine("sampling/top_k")

# %% [markdown]
# With $k = 5$, top-k keeps five tokens where the next one is certain, and five where fifty are possible. **Top-p** (Holtzman et al. 2020) lets the distribution decide how many are needed.

# %%
# exercise: sampling/top_p

# %%
check("sampling/top_p", top_p)

# %%
top_p = mine("sampling/top_p")

# %% [markdown]
# ## Two places in a text
#
# The model is the trained one of lesson 10. After *O Rom* few letters are likely; after *and the*, with its blank, many may begin a word. **How many characters does top-p with $p = 0.9$ keep after each?**

# %%
guess = None  # (after "O Rom", after "and the ")

# %%
needs("shakespeare")

# %% tags=["nbval-check-output"]
known = characters.Characters(shakespeare.complete_works()[:1_115_394])
model = shakespeare_model.load()
with torch.no_grad():
    places = {words: model(known.encode(words))[-1] for words in ("O Rom", "and the ")}
left = {name: int(top_p(logits, 0.9).isfinite().sum()) for name, logits in places.items()}
reveal(guess, tuple(left.values()))
assert left["O Rom"] < 4 < left["and the "]

# %% tags=["hide-input"]
changes = {
    "as they are": lambda z: z,
    "temperature 0.5": lambda z: z / 0.5,
    "top-k, k = 5": lambda z: top_k(z, 5),
    "top-p, p = 0.9": lambda z: top_p(z, 0.9),
}
title = "Top-k keeps five in both places, top-p as many as are needed"
figure, panels = plots.panels(title, [*changes, *changes], size=(10, 4.6), rows=2)
for ax, (place, change) in zip(panels, [(p, c) for p in places for c in changes]):
    shares = changes[change](places[place]).softmax(-1)
    order = places[place].argsort(descending=True)[:12]
    ax.bar(range(12), shares[order], color=plots.COLOURS[place == "O Rom"])
    labels = [repr(known.symbols[i])[1:-1].replace(" ", "␣") for i in order.tolist()]
    labels = ["↵" if label == "\\n" else label for label in labels]
    kept = int((shares > 0).sum())
    ax.text(1, 0.85, f"{kept} kept", transform=ax.transAxes, ha="right", size="small")
    ax.set_xticks(range(12), labels, size="small")
    ax.set(ylim=(0, 1 if place == "O Rom" else 0.4), yticks=[0, 1 if place == "O Rom" else 0.4])
panels[0].set_ylabel("after “O Rom”")
panels[4].set_ylabel("after “and the ”")
plots.show(
    figure,
    "Probabilities of the 12 likeliest characters after 'O Rom' and after 'and the ', in four "
    f"ways. After 'O Rom' top-p keeps {left['O Rom']}; after 'and the ' it keeps "
    f"{left['and the ']}, and top-k five in both.",
)

# %% [markdown]
# ## Write
#
# Now draw whole texts. In Jupyter, move the controls:

# %%
prompt = known.encode("\nBRUTUS.\n")


def write(temperature=0.8, p=0.95, k=77, seed=0, count=120):
    """Write on from a speaker's name."""
    generator = torch.Generator().manual_seed(seed)

    def choose(logits):
        return top_p(top_k(logits / temperature, k), p)

    return known.decode(generate(model, prompt, count, 128, generator, choose))


# %%
print("temperature 0.8, p = 0.95:", write())
print("temperature 1.5:", write(1.5, p=1.0))
print("the likeliest, always:", write(k=1))

# %% tags=["once"]
from ipywidgets import FloatSlider, IntSlider, interact

SLIDERS = {
    "temperature": FloatSlider(value=0.8, min=0.1, max=2, style={"description_width": "6em"}),
    "p": FloatSlider(value=0.95, min=0.05, max=1, step=0.05),
    "k": IntSlider(value=77, min=1, max=77),
}


@interact(**SLIDERS)
def play_with_it(temperature, p, k):
    print(write(temperature, p, k))


# %% [markdown]
# Which of them reads best is a matter of taste here, three short texts. Holtzman et al. 2020 compare them on long texts of GPT-2, and report that always taking the likeliest repeats itself, that drawing from everything loses the thread, and that top-p comes closest to people's texts (reported, not measured here).
#
# Fan et al. 2018 (top-k); Holtzman et al. 2020 (top-p).
