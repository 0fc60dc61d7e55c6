# %% [markdown]
# # 15 · What is next
#
# **194 minutes, of which 108 are the core path · after lesson 14 · needs `digits` (8.0 MB) and `smollm2` (93 MB)**
#
# The last slide of L4 asks one question: "What's next after Transformers?" It gives no answer. Which parts of what you built are about *text*, which about *attention*, and which can be replaced?

# %% [markdown]
# You will change one part at a time and measure what it costs. First the tokens: patches of an image instead of pieces of text. Then the mixing: layers whose memory does not grow, in place of attention. Finally the decoding: several tokens in one pass of the model, and still exactly the same text.
#
# Sections marked "(optional)" can be left out. At the end, `course certificate` writes a page of your own figures.

# %%
import torch
from collections.abc import Callable
from einops import einsum, rearrange, reduce, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, measuring, plots, results, training

# %% tags=["parameters"]
SEED = 0  # of the trainings below: another one trains other models

# %%
from functools import partial
from time import process_time
from course_lib.add_norm import Norm
from course_lib.data import digits, needs
from course_lib.positions import LearnedPositions

EncoderBlock, linear_attention = mine("encoder/block"), mine("efficient/linear")


# %%
torch.set_num_threads(1)  # so that CPU time is running time


def cpu_seconds(run, times=3):
    taken = []
    for _ in range(times):
        start = process_time()
        run()
        taken.append(process_time() - start)
    return min(taken)


# %% tags=["hide-input"]
drawings.transformer(
    {"embedding", "self-attention", "masked self-attention", "linear, softmax"},
    "The Transformer of 2017. This lesson replaces the embeddings and the self-attention of both "
    "stacks, which are highlighted. The output layer, highlighted too, stays as it is: what changes "
    "is how the next tokens are chosen from it.",
)

# %% [markdown]
# ## An image becomes a sequence
#
# L4 says that "computer vision also adapted Transformers, e.g., **Vision Transformers**". An encoder reads a sequence of vectors, and an image is a grid of numbers. So the question is: what is a token?
#
# One token for each pixel is too many, as attention compares all pairs. Dosovitskiy et al. 2021 cut the image into squares, called **patches**, and write the numbers of each square in a row:
#
# $$\underset{c \times h \times w}{\text{image}} \;\longrightarrow\; \underset{n \times c s^2}{X}, \qquad n = \frac{h}{s} \cdot \frac{w}{s}$$
#
# for $c$ channels (colours) and patches of $s \times s$ pixels.

# %%
needs("digits")

# %% tags=["hide-input"]
images, shown = digits.images()
image = images[3, 0]
figure, (left, middle, right) = plots.plt.subplots(
    1, 3, figsize=(8.6, 3.2), width_ratios=(4, 2.4, 4)
)
figure.suptitle("64 pixels become 16 tokens of 4 numbers", x=0.01, ha="left", size="medium")
left.imshow(image)
for line in (1.5, 3.5, 5.5):
    left.axhline(line, color="white", linewidth=1)
    left.axvline(line, color="white", linewidth=1)
for i in range(16):
    place = (2 * (i % 4) + 0.5, 2 * (i // 4) + 0.5)
    box = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    left.text(*place, str(i), ha="center", va="center", size=8, bbox=box)
left.set_title("one image, 1 × 8 × 8", size="small")
corner = image[0:2, 4:6]
middle.imshow(corner, vmin=0, vmax=1)
middle.set_title("patch 2", size="small")
for (row, column), value in zip(((0, 0), (0, 1), (1, 0), (1, 1)), corner.flatten().tolist()):
    colour = "black" if value > 0.5 else "white"
    middle.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
rows = rearrange(image, "(row a) (column b) -> (row column) (a b)", a=2, b=2)
right.imshow(rows, aspect="auto")
right.set_yticks(range(0, 16, 2))
right.set_title("its tokens, 16 × 4", size="small")
right.set(ylabel="patch", xlabel="number")
for ax in (left, middle):
    ax.set_axis_off()
plots.show(
    figure,
    "A handwritten three of 8 by 8 pixels, cut by white lines into 16 numbered patches of 2 by 2; "
    "patch 2 alone, with its four numbers; and a matrix of 16 rows, one for each patch, of 4 "
    "numbers each.",
)

# %%
needs()

# %% [markdown]
# **A photograph has 224 × 224 pixels and 3 channels, and the patches are 16 × 16. How many tokens is that, how many numbers has each one, and how many million scores would a head compute if every pixel were a token?**

# %%
guess = None  # (tokens, numbers, million scores)

# %%
# exercise: vision/patches

# %%
check("vision/patches", patches)

# %%
patches = mine("vision/patches")

# %%
tokens, numbers = patches(torch.zeros(3, 224, 224), 16).shape
scores = (224 * 224) ** 2 // 10**6
reveal(guess, (tokens, numbers, scores))
assert (tokens, numbers, scores) == (196, 768, 2517) and tokens**2 == 38_416

# %% [markdown]
# 196 tokens need 38,416 scores a head; single pixels would need 2.5 billion. The price: attention relates patches, not pixels. Two pixels of one patch meet in the matrix that reads it, and nowhere else.

# %% [markdown]
# ## Build: a Transformer that reads images
#
# Everything else you have built already. What is missing is a place for the answer. A **class token** is one learned vector, put in front of the patches. It has no pixels of its own, so the blocks fill it by attention, and a linear layer reads the class from it:
#
# $$z_0 = \underset{(n+1) \times d}{\big[\,x_{class};\; X W\,\big]} + \underset{(n+1) \times d}{P} \qquad z_\ell = \mathrm{Block}(z_{\ell-1}) \qquad \mathrm{logits} = \underset{1 \times d}{\mathrm{LN}(z_L)_0}\, \underset{d \times classes}{W_{head}} + b$$
#
# $X W$ is the projection, of shape $n \times d$ (with a bias in our code), and $P$ holds learned positions. The blocks are pre-norm and have no mask.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
picture = diagram.matrix("\nimage\n$c \\times h \\times w$", (4, 4), (0.8, 0), "plain")
cut = diagram.matrix("\npatches\n$n \\times c s^2$", (4, 2), (3.5, 0), "stream")
project = diagram.box("linear", (5.7, 0), "value", size=(1.5, 0.8))
first = diagram.matrix("", (1, 3), (8.0, 1.35), "query")
body = diagram.matrix("", (4, 3), (8.0, 0), "stream")
diagram.text("class token", (8.0, 1.8), size=9)
place = diagram.box("+ positions", (8.0, -1.5), "position", size=(2.0, 0.7))
blocks = diagram.box("block × L", (11.7, -1.5), "query", size=(2.0, 0.8))
head = diagram.box("norm, linear", (11.7, 1.35), "norm", size=(2.0, 0.7))
diagram.arrow(picture, cut)
diagram.arrow(cut, project)
diagram.arrow(project, body, r"$n \times d$")
diagram.arrow(body, place)
diagram.arrow(place, blocks, r"$(n+1) \times d$")
diagram.arrow(blocks, head, "first row alone")
diagram.arrow(head, (11.7, 2.6))
diagram.text("classes", (11.7, 2.85), size=9)
diagram.show(
    "An image, h by w, is cut into patches, n by c s squared. A linear layer makes them n by d. "
    "The class token is put before them as a first row, positions are added, and L blocks read "
    "n + 1 tokens. Of what they return, the first row alone goes through a norm and a linear "
    "layer to the classes.",
)

# %%
# exercise: vision/model

# %%
check("vision/model", VisionTransformer)

# %%
VisionTransformer = mine("vision/model")

# %% [markdown]
# Is there no convolution in it? A convolution whose windows do not overlap reads each patch by the same matrix, so the projection of patches *is* one:

# %%
x, w = torch.randn(5, 3, 8, 12), torch.randn(7, 3 * 4 * 4)
convolved = F.conv2d(x, w.unflatten(1, (3, 4, 4)), stride=4).flatten(2).mT
assert torch.allclose(patches(x, 4) @ w.T, convolved, atol=1e-4)

# %% [markdown]
# After it there is none: any patch may look at any other, and nothing tells the model which ones are neighbours except the positions that it learns.

# %% [markdown]
# ## Who reads digits best?
#
# Does that hurt or help? The data are 1,797 handwritten digits of 8 × 8 pixels (Alpaydin & Kaynak 1998). 1,347 are for learning, the last 450 for the test. Four classifiers compete: the three **nearest neighbours**, which vote and learn nothing; an MLP and a convolutional network of two layers each; and your Vision Transformer. Each training run gets 8 CPU-seconds, so models with cheap steps take more of them. (`experiments/digits.py` has made the runs.)

# %%
needs("digits")

# %%
(learning, names), (held_out, answers) = digits.split()


def batches(seed=0, size=64):
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(learning), generator=generator).split(size):
            yield learning[rows], names[rows]


# %% [markdown]
# **Order the four by test accuracy, the best first.**

# %%
guess = None  # a list of "nearest", "MLP", "convolution", "ViT"

# %%
kept = results.load("digits")["figures"]
plain = {"nearest": [kept["nearest"]["as they are"]]}
plain |= {
    name: [run["right"] for run in runs] for name, runs in kept["runs"]["as they are"].items()
}
order = sorted(plain, key=lambda name: -sum(plain[name]) / len(plain[name]))
reveal(guess, order)
for name in order:
    steps = f"{kept['steps'][name]:5} steps" if name in kept["steps"] else "no training"
    print(f"{name:12}", steps, " ".join(f"{share:.1%}" for share in plain[name]))
ahead = [round(450 * (plain["nearest"][0] - share)) for share in plain["convolution"]]
assert order[:2] == ["nearest", "convolution"] and sorted(ahead) == [1, 3, 7]
assert abs(sum(plain["ViT"]) - sum(plain["MLP"])) / 3 < 0.01

# %% [markdown]
# The oldest method wins, by 1 to 7 of 450 images. The newest is within a point of the MLP. This is about how *fast* they learn from how *little*: 1,347 images, 8 seconds (on a slower machine, fewer steps), and one learning rate for all. Dosovitskiy et al. 2021 report a similar order at scale: trained on ImageNet's 1.3 million images alone, Transformers were a few points below; with 300 million images they were ahead (quoted).

# %% [markdown]
# What does each model assume about images before it has seen one? That is its **inductive bias**. Change the images, and see whose accuracy changes. First control: shuffle the 64 pixels, all images in the same way. Second control: shift each training image by up to one pixel, anew each time it is used (**data augmentation**).

# %% tags=["hide-input"]
title = "A three as it is, with its pixels shuffled, and shifted by one"
figure, panels = plots.panels(title, ["as it is", "shuffled", "shifted"], size=(6, 2.4))
places = torch.randperm(64, generator=torch.Generator().manual_seed(0))
three = images[3, 0]
changed = (three, three.flatten()[places].reshape(8, 8), F.pad(three, (1, 0, 1, 0))[:8, :8])
for ax, picture in zip(panels, changed):
    ax.imshow(picture)
    ax.set_axis_off()
plots.show(
    figure,
    "Three pictures of 8 by 8 pixels: a handwritten three; the same 64 pixels in a random order, "
    "in which nobody sees a three; and the three moved down and to the right by one pixel.",
)

# %% [markdown]
# **Whose accuracy does the shuffling change by more than a point? And whom do the shifted copies help most?**

# %%
guess = None  # (a list of names, a name)

# %%
averages = {
    condition: {name: sum(run["right"] for run in runs) / 3 for name, runs in models.items()}
    | {"nearest": kept["nearest"][condition]}
    for condition, models in kept["runs"].items()
}
for name in order:
    print(f"{name:12}", ", ".join(f"{c} {averages[c][name]:.1%}" for c in averages))
first, shuffled, shifted = averages.values()
changed = [name for name in order if abs(shuffled[name] - first[name]) > 0.01]
helped = max(order, key=lambda name: shifted[name] - first[name])
reveal(guess, (changed, helped))
assert changed == ["convolution", "ViT"] and helped == "convolution"
cost = {name: first[name] - shuffled[name] for name in changed}
assert cost["convolution"] > 0.025 > 0.02 > cost["ViT"] > 0.01
assert 0.01 < first["ViT"] - shifted["ViT"] < 0.025 and shifted["convolution"] > first["nearest"]

# %% tags=["hide-input"]
title = "Shuffling costs the convolution three points; shifting helps it and hurts the ViT"
figure, ax = plots.axes(title, "", "test accuracy, %", size=(6.8, 3.8))
conditions = ["as they are", "pixels shuffled", "shifted copies"]
for (name, colour), shift in zip(
    zip(["nearest", "MLP", "convolution", "ViT"], plots.COLOURS), (-0.24, -0.08, 0.08, 0.24)
):
    for x, condition in enumerate(conditions):
        shares = (
            [kept["nearest"][condition]]
            if name == "nearest"
            else [run["right"] for run in kept["runs"][condition][name]]
        )
        ax.scatter([x + shift] * len(shares), [100 * s for s in shares], color=colour, s=36)
        ax.plot(
            [x + shift - 0.06, x + shift + 0.06],
            [100 * sum(shares) / len(shares)] * 2,
            color=colour,
        )
    ax.scatter([], [], color=colour, label=name)
ax.set_xticks(range(3), conditions)
ax.legend(loc="lower left", ncols=2)
plots.show(
    figure,
    "Test accuracy in percent, means of three seeds. "
    + " ".join(
        f"{x}: {', '.join(f'{name} {100 * averages[x][name]:.1f}' for name in order)}."
        for x in conditions
    ),
)

# %% [markdown]
# A convolution's windows of 3 × 3 pixels assume that neighbouring pixels belong together. After the shuffling they do not, and the convolution falls to the level of the MLP. The MLP never knew the neighbours. The Vision Transformer knows them within a patch only, and loses about half as much. Distances between images do not depend on the order of their pixels.

# %% [markdown]
# Shifted copies say "a moved digit is the same digit". The convolution has the same weights at every place, so a shifted image gives shifted outputs (**translation equivariance**), and it overtakes the nearest neighbours. The Vision Transformer has to learn this, and in 847 steps it loses almost two points.

# %% [markdown]
# Now train yours, for 500 steps:


# %%
def digit_loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


# %% tags=["training"]
with training.seeded(SEED):
    reader = VisionTransformer(10, 1, 8, 2, 2, 48, 4, 96, block=EncoderBlock)
training.train(reader, batches(), digit_loss, steps=500, seconds=30, learning_rate=0.002)
with torch.no_grad():
    share = (reader(held_out).argmax(-1) == answers).float().mean().item()
training.expect("over 0.85 of the test digits are named", share > 0.85, share, reader)

# %% [markdown]
# ## What it looks at (optional)
#
# For each image the class token has a row of attention weights over the 16 patches. About 59 % of the patches of the test images have ink in them (more than a tenth of full brightness on average). **What percentage of the class token's attention to patches, in the last block, goes to patches with ink?**

# %%
guess = None  # percent

# %% tags=["training"]
from course_lib.instruments.recording import record_weights


def looked_at(images, block):
    layer = reader.blocks[block].attention.sublayer.attention
    with torch.no_grad(), record_weights(layer) as seen:
        reader(images)
    to_patches = seen[0][:, :, 0, 1:]
    return to_patches / to_patches.sum(-1, keepdim=True)


# %% tags=["training"]
ink = patches(held_out, 2).mean(-1) > 0.1
on_ink = (looked_at(held_out, -1).mean(1) * ink).sum(-1).mean().item()
reveal(guess, round(100 * on_ink))
print(f"patches with ink: {ink.float().mean():.0%}")
training.expect("over 0.4 of the weight is on ink", on_ink > 0.4, on_ink, reader)

# %% tags=["training", "hide-input"]
chosen = [0, 2, 3, 6, 9, 14]
maps = looked_at(held_out[chosen], -1).mean(1).reshape(-1, 4, 4)
top = looked_at(held_out, -1).mean(1).topk(3).values.sum(-1).mean().item()
title = f"Three of 16 patches get {top:.0%} of the class token's attention on average"
figure, panels = plots.panels(title, [""] * 12, size=(9, 3.4), rows=2)
for i, (image, weights) in enumerate(zip(held_out[chosen], maps)):
    panels[i].imshow(image[0], cmap="gray_r")
    shade = panels[6 + i].imshow(weights, vmin=0, vmax=maps.max())
for ax in panels:
    ax.set(xticks=[], yticks=[])
panels[0].set_ylabel("image")
panels[6].set_ylabel("weights")
figure.colorbar(shade, ax=panels, label="weight", shrink=0.8)
plots.show(
    figure,
    "Six digits, and under each the 4 by 4 weights that the class token gives to its patches, the "
    "mean of four heads. One to three patches of each are bright.",
)

# %% [markdown]
# With this seed, 80 % of the attention goes to patches with ink. Is that a rule? Run it with `SEED = 2`: then it is 56 %, less than ink's share of the patches, and the accuracy is about the same. A map of weights is a hint about what one model reads, and no explanation (lesson 02). The first block has mixed the states of the patches already.

# %%
needs()

# %% [markdown]
# ## Images and texts in one space (optional)
#
# Where do labels come from, if you have millions of images? Radford et al. 2021 (**CLIP**) use captions from the web. One encoder reads images, another one texts, and a **contrastive loss** asks of each image in a batch of $b$ pairs which text is its own, and of each text which image:
#
# $$s_{ij} = \frac{\cos(u_i, v_j)}{\tau} \qquad L = \frac{1}{2b} \sum_i \Big( -\log \frac{e^{s_{ii}}}{\sum_j e^{s_{ij}}} - \log \frac{e^{s_{ii}}}{\sum_j e^{s_{ji}}} \Big)$$
#
# $u$ are the vectors of the images, $v$ those of the texts, both $b \times d$; $s$ is $b \times b$, and $\tau$ is the **temperature**.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
pictures = diagram.box("image encoder", (1.5, 0), "query", size=(2.6, 0.9))
texts = diagram.box("text encoder", (7.6, 3.4), "key", size=(2.6, 0.9))
table = diagram.matrix("cosines / temperature, $b \\times b$", (4, 4), (7.6, 0), "plain", cell=0.55)
for i in range(4):
    at = (7.6 + (i - 1.5) * 0.55, (1.5 - i) * 0.55)
    diagram.text("✓", at)
diagram.arrow((-0.6, 0), pictures)
diagram.arrow(pictures, table, r"$u$: $b \times d$")
diagram.arrow((7.6, 4.6), texts)
diagram.arrow(texts, table, r"$v$: $b \times d$")
diagram.text("rows: which text?", (9.2, 0.3), size=9, align="left")
diagram.text("columns: which image?", (9.2, -0.3), size=9, align="left")
diagram.show(
    "Images go through an image encoder and become u, b by d; texts through a text encoder and "
    "become v, b by d. Their cosines over the temperature make a matrix of b by b. The right "
    "answers are on its diagonal: each row asks which text, each column which image.",
)

# %%
# exercise: vision/contrastive

# %%
check("vision/contrastive", contrastive_loss)

# %%
contrastive_loss = mine("vision/contrastive")

# %% [markdown]
# We have no captions of digits, and a made-up caption would be a label. But an image has two halves that belong together: let the left half be the "image" and the right half the "text". Two small encoders train on pairs of halves, without a single label.
#
# Then all 450 test images are cut. **What percentage of the left halves find their own right half first, among 450? (Chance is 0.2.)**

# %%
guess = None  # percent

# %%
needs("digits")


# %% tags=["training"]
class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = ((32, 128), (128, 32))
        layers = [[nn.Linear(*size) for size in sizes] for _ in range(2)]
        self.left, self.right = (nn.Sequential(a, nn.ReLU(), b) for a, b in layers)

    def forward(self, images):
        left, right = images[:, 0].chunk(2, dim=-1)
        return self.left(left.flatten(1)), self.right(right.flatten(1))


def pair_loss(model, batch):
    return contrastive_loss(*model(batch[0]), 0.1)


# %% tags=["training"]
with training.seeded(SEED):
    halves = Halves()
budget = {"steps": 1200, "seconds": 30, "learning_rate": 0.002}
history = training.train(halves, batches(size=128), pair_loss, **budget)
print(f"loss {history.losses[0]:.2f} at first, {history.losses[-1]:.2f} at last; log 128 is 4.85")

# %% tags=["training"]
with torch.no_grad():
    u, v = (F.normalize(x, dim=-1) for x in halves(held_out))
found = ((u @ v.T).argmax(-1) == torch.arange(450)).float().mean().item()
reveal(guess, round(100 * found))
training.expect("over 0.05 find their own half among 450", found > 0.05, found, halves)

# %% [markdown]
# New halves are found much less often than the last loss suggests: the model has overfitted. It has seen each of the 1,347 training pairs $1200 \cdot 128 / 1347 \approx 114$ times.

# %% [markdown]
# Such a model can also name classes that it was never trained to name. CLIP does so without a single labelled image (**zero-shot**): it compares an image with sentences such as "a photo of a dog". We have no sentences, so take one labelled right half of each digit as its "caption": one example per class, so this is **one-shot**. Each left half is named after the nearest caption. **What percentage is right? (Chance is 10.)**

# %%
guess = None  # percent

# %% tags=["training"]
captions = torch.stack([(names == digit).nonzero()[0, 0] for digit in range(10)])
with torch.no_grad():
    _, ten = (F.normalize(x, dim=-1) for x in halves(learning[captions]))
named = ((u @ ten.T).argmax(-1) == answers).float().mean().item()
reveal(guess, round(100 * named))
training.expect("over 0.25 are named by the nearest caption", named > 0.25, named, halves)

# %% [markdown]
# In training, nobody told it that there are ten digits. In this run, what helps to find the other half also helps to name the digit. CLIP does the same with 400 million pairs from the web (quoted).

# %%
needs()

# %% [markdown]
# ## What should a layer keep?
#
# We changed the tokens. Now change the mixing. After $n$ tokens, attention keeps $n$ keys and $n$ values, so each new token costs more than the last (lessons 09 and 13). The RNN of lesson 01 keeps one state of fixed size, but it runs step by step. Linear attention (lesson 14) has a fixed memory and trains in parallel, but it never forgets. Can a layer do all three?

# %% [markdown]
# The simplest candidate is a recurrence without a nonlinearity, elementwise ($\odot$):
#
# $$\underset{d}{h_t} = a_t \odot h_{t-1} + b_t, \qquad h_0 = 0$$
#
# $a_t$ says what is kept, $b_t$ what is new. Both may depend on the token, but not on $h_{t-1}$.

# %%
# exercise: state_space/scan

# %%
check("state_space/scan", scan)

# %%
scan = mine("state_space/scan")

# %% [markdown]
# A loop again, of $n$ steps. But now two steps can be joined *before* the state is known. First $h \to a' h + b'$, then $h \to a h + b$:
#
# $$a\,(a' h + b') + b = \underbrace{a a'}_{\text{one decay}} h + \underbrace{a b' + b}_{\text{one addition}}$$
#
# Two steps are one step: joining them is **associative**. So stretches of steps can be joined in any grouping, many at the same time. This is a **parallel scan** (Hillis & Steele 1986; Blelloch 1990). With $\tanh$ around the sum, as in lesson 01, no such formula exists.

# %% tags=["hide-input"]
figure, ax = plots.axes("Three rounds join eight steps", "", "", size=(7.6, 3.0))
labels, arrows = {}, []
for r in range(4):
    for t in range(8):
        first = max(0, t - 2**r + 1)
        labels[(t, r)] = str(t + 1) if first == t else f"{first + 1}–{t + 1}"
        if r:
            arrows.append(((t, r - 1), (t, r)))
            if t >= 2 ** (r - 1):
                arrows.append(((t - 2 ** (r - 1), r - 1), (t, r)))
plots.graph(ax, dict.fromkeys(labels, ""), arrows)
for (t, r), text in labels.items():
    ax.text(t, r, text, ha="center", va="center", size=8, zorder=4)
for r, text in enumerate(("steps", "reach 1", "reach 2", "reach 4")):
    ax.text(-0.6, r, text, ha="right", va="center", size=9)
plots.show(
    figure,
    "A grid of 8 tokens and 4 rows, from below. Below, each place holds its own step. In the first "
    "round each joins the place 1 before it, in the second 2 before, in the third 4 before. Above, "
    "place 8 holds steps 1 to 8.",
)

# %% [markdown]
# **How many rounds does a text of a million tokens need?**

# %%
guess = None  # a number

# %%
reveal(guess, (1_000_000 - 1).bit_length())
assert 2**19 < 1_000_000 < 2**20

# %% [markdown]
# ## Build: the same in log n rounds (optional)
#
# In round $r = 0, 1, 2, \dots$ each place joins its own stretch with the one that ends $2^r$ places before it, as in the drawing. The check allows 600 calls of torch for 50,000 tokens.

# %%
# exercise: state_space/parallel_scan

# %%
check("state_space/parallel_scan", parallel_scan)

# %%
parallel_scan = mine("state_space/parallel_scan")

# %% [markdown]
# **On one core of your machine, which is quicker: the loop or the parallel scan? Answer for one text of 4,096 tokens with 64 numbers each, and for 32 texts of 64 tokens with 512 numbers.**

# %%
guess = None  # (name, name)


# %%
quicker = []
for shape in ((4096, 64), (32, 64, 512)):
    a, b = torch.rand(shape), torch.randn(shape)
    loop, rounds = (cpu_seconds(partial(f, a, b)) for f in (scan, parallel_scan))
    print(f"{shape}: loop {1000 * loop:.1f} ms, parallel scan {1000 * rounds:.1f} ms")
    quicker.append("parallel" if rounds < loop else "loop")
    assert torch.allclose(scan(a, b), parallel_scan(a, b), atol=1e-3)
reveal(guess, tuple(quicker))
claim = "the parallel scan is quicker for one long text, the loop for a batch"
measuring.expect(claim, quicker == ["parallel", "loop"], quicker)

# %% [markdown]
# For one long text the loop makes thousands of small calls, and the parallel scan $\log_2 4096 = 12$ rounds. With a batch and a long state, each call is large enough to keep one core busy, and the parallel scan does $\log_2 n$ times the work. A GPU computes thousands of numbers at once, so there few rounds should matter more than less arithmetic (not measured here).

# %% [markdown]
# ## A state that chooses what it keeps (optional)
#
# With a decay that is the same at every step, a channel forgets at one rate, whatever the token is. A **selective state space model** (Mamba; Gu & Dao 2023) lets each token decide. Each of $d$ channels has $s$ numbers:
#
# $$\underset{d \times s}{h_t} = e^{\Delta_t a} \odot h_{t-1} + (\Delta_t \odot x_t)\, b_t^T \qquad \underset{d}{y_t} = h_t\, c_t$$
#
# $x_t$ and $\Delta_t$ have $d$ numbers, $b_t$ and $c_t$ have $s$. $a$ is $d \times s$ and negative; each of its rows is multiplied by one number of $\Delta_t$.

# %% [markdown]
# $\Delta_t$ is the gate: where it is near 0, the token is ignored and nothing is forgotten; where it is large, the state is replaced. $b_t$ says where to write, $c_t$ what to read. Compare linear attention (lesson 14): there $b_t$ is called key, $c_t$ query, $x_t$ value, and nothing is ever forgotten.

# %%
# exercise: state_space/selective

# %%
check("state_space/selective", selective)

# %%
selective = mine("state_space/selective")

# %% [markdown]
# Forgetting on purpose: one channel of one number, five tokens, always $x = b = c = 1$ and $a = -1$. The gate is $\Delta = 1$, but 50 at token 4. **What is read at token 5: the sum of all that was written, or something else?**

# %%
guess = None  # a number

# %%
delta = torch.tensor([[1.0], [1.0], [1.0], [50.0], [1.0]])
ones = torch.ones(5, 1)
y = selective(ones, delta, -torch.ones(1, 1), ones, ones)[:, 0]
print([round(value, 2) for value in y.tolist()])
reveal(guess, y[4].item())
assert abs(y[4].item() - (50 * 2.718281828**-1 + 1)) < 1e-3

# %% [markdown]
# Token 4 wrote 50 and wiped out what came before it; one step later $50/e$ of it is left, plus the new 1. The first three tokens have no part in it.
#
# ## Replace, do not add
#
# Linear attention writes into a matrix: $S_t = S_{t-1} + k_t^T v_t$, with $k_t$ and $v_t$ as rows. Suppose the same key comes twice, first with the value 1 and then with the value 5. **What does this sum return when you ask for the key (of norm 1)? And what would you like it to return?**

# %%
guess = None  # (the sum's answer, yours)

# %%
key, values = torch.tensor([1.0, 0.0]), torch.tensor([1.0, 5.0])
state = sum(torch.outer(key, value[None]) for value in values)
reveal(guess, ((key @ state).item(), 5.0))
assert (key @ state).item() == 6

# %% [markdown]
# The sum is 6; divided by its normaliser, as linear attention does, it is the mean, 3. Neither is the newest value. The **delta rule** (Widrow & Hoff 1960; as a layer: Schlag et al. 2021, Yang et al. 2024) first asks what the key holds now, and writes only the difference:
#
# $$\underset{d \times d_v}{S_t} = S_{t-1} + \beta_t\, \underset{d \times 1}{k_t^T} \big(\underset{1 \times d_v}{v_t} - \underset{1 \times d_v}{k_t S_{t-1}}\big) \qquad \underset{1 \times d_v}{o_t} = q_t S_t$$
#
# $\beta_t$, from 0 to 1, is the share of the difference that is written.

# %% tags=["hide-input"]
diagram = drawings.Diagram()
key = diagram.box("$k_t$", (0, 0), "key", size=(1.1, 0.8))
old = diagram.matrix("", (3, 2), (2.6, 0), "stream", cell=0.45)
diagram.text(r"$S_{t-1}$: $d \times d_v$", (2.6, 1.1))
minus = diagram.box("−", (5.0, 0), "plain", size=(0.8, 0.8))
value = diagram.box("$v_t$", (5.0, 1.9), "value", size=(1.1, 0.8))
share = diagram.box(r"$\times\, \beta_t$", (7.0, 0), "weights", size=(1.2, 0.8))
add = diagram.box("+", (9.2, 0), "plain", size=(0.8, 0.8))
new = diagram.matrix("", (3, 2), (11.2, 0), "stream", cell=0.45)
diagram.text(r"$S_t$: $d \times d_v$", (11.2, 1.1))
diagram.arrow(key, old)
diagram.arrow(old, minus, "held")
diagram.arrow(value, minus)
diagram.arrow(minus, share)
diagram.arrow(share, add, r"$k_t^T \cdot$")
diagram.arrow(old, add, "all that was there", via=[(2.6, -1.9), (9.2, -1.9)], role="stream")
diagram.arrow(add, new)
diagram.arrow(new, (11.2, -1.7), r"$q_t \cdot$")
diagram.text("$o_t$", (11.2, -1.95))
diagram.show(
    "The delta rule. The key reads what the state S, d by d_v, holds for it. That is subtracted "
    "from the value, times beta, and multiplied with the key again, which makes a matrix of d by "
    "d_v. This matrix is added to the state, which the query reads: the output o.",
)

# %%
# exercise: delta_rule/attention

# %%
check("delta_rule/attention", delta_rule)

# %%
delta_rule = mine("delta_rule/attention")

# %%
keys = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
values = torch.tensor([[1.0], [5.0]])
newest = delta_rule(keys, keys, values, torch.ones(2))
summed = linear_attention(keys, keys, values, causal=True)
print("delta rule", newest[:, 0].tolist(), "linear attention", summed[:, 0].tolist())
assert newest[1].item() == 5 and abs(summed[1].item() - 3) < 1e-6

# %% [markdown]
# Where is the parallel form? Inside a chunk of tokens the differences solve a triangular system of linear equations, so a chunk is a few products of matrices (Yang et al. 2024). The library's `delta_rule_in_chunks` does that:

# %%
from course_lib.delta_rule import delta_rule_in_chunks

q, k, v = torch.randn(3, 100, 8)
k, beta = F.normalize(k, dim=-1), torch.rand(100)
assert torch.allclose(delta_rule_in_chunks(q, k, v, beta), delta_rule(q, k, v, beta), atol=1e-4)

# %% [markdown]
# ## Recall against memory
#
# Which layer recalls best, and what does it have to keep? Each text writes 24 values under 12 keys, so a key is written twice on average; a key and its value are one token. Then 8 questions follow: what is the *newest* value of this key? In `c=3 f=9 c=7 … c?` the answer is 7: the key `c` was *rewritten*. There are 16 values, so chance is 6 %.

# %% [markdown]
# Two blocks, $d_{model} = 64$, and one mixing layer in each: attention, linear attention, the delta rule or a selective state space. Each training run gets 5 CPU-seconds, three seeds each (`experiments/newest_value.py`).

# %% [markdown]
# After these 32 tokens attention has kept 32 keys of 16 numbers and 32 values of 64: 2,560 numbers a layer. The delta rule keeps one matrix: $4 \times 64 = 256$ numbers with 4-dimensional keys, and 1,024 with 16-dimensional ones. Linear attention also keeps the sum of its keys. **What percentage of the questions about rewritten keys does each of the three answer right?**

# %%
guess = None  # (attention, delta rule 4, delta rule 16)

# %%
kept = results.load("newest_value")["figures"]


def answered(name, kind):
    return [100 * run[kind] for run in kept["runs"][name]]


def middle(name, kind="again"):
    return sorted(answered(name, kind))[1]


# %%
members = ("attention", "delta rule 4", "delta rule 16")
reveal(guess, tuple(round(middle(name)) for name in members))
for name, runs in kept["runs"].items():
    steps = f"{kept['memory'][name]:5} numbers, {runs[0]['steps']:5} steps"
    print(f"{name:20} {steps}, right: {middle(name):3.0f} %")
assert min(answered("attention", "again") + answered("delta rule 16", "again")) > 99
assert middle("delta rule 8") > middle("linear attention 8") + 3
assert max(max(answered(name, "again")) for name in kept["runs"] if name.endswith(" 4")) < 92
assert sorted(runs[0]["steps"] for runs in kept["runs"].values())[:2] == [208, 326]

# %% tags=["hide-input"]
title = "With 16-dimensional keys, fixed memories match attention; with 4, none does"
figure, ax = plots.axes(
    title, "numbers that a layer keeps", "rewritten keys recalled, %", size=(7, 4)
)
families = ["attention", "linear attention", "delta rule", "state space"]
for family, colour in zip(families, plots.COLOURS):
    members = [name for name in kept["runs"] if name.rstrip(" 0123456789") == family]
    sizes = [kept["memory"][name] for name in members]
    ax.plot(sizes, [middle(name) for name in members], color=colour, linewidth=1)
    for name, size in zip(members, sizes):
        ax.scatter([size] * 3, answered(name, "again"), color=colour, s=26)
places = ((2050, 93), (560, 87), (300, 97), (275, 52))
for family, place, colour in zip(families, places, plots.COLOURS):
    ax.text(*place, family, color=colour)
ax.axhline(100 / 16, color="0.6", linestyle=":")
ax.text(205, 100 / 16 + 1.5, "chance", color="0.4", size=9)
ax.set_xscale("log")
ax.set(xlim=(200, 3_200), ylim=(0, 104))
ax.set_xticks([256, 512, 1024, 2560], ["256", "512", "1,024", "2,560"])
ax.minorticks_off()
plots.show(
    figure,
    "Rewritten keys recalled against numbers kept, medians of three seeds: "
    + ", ".join(
        f"{name} {middle(name):.0f} % with {kept['memory'][name]:,}" for name in kept["runs"]
    )
    + ". Chance is 6 %.",
)

# %% [markdown]
# Twelve keys need room. In $d_k$ dimensions at most $d_k$ keys are orthogonal; the others overlap, and what you read for one mixes in values of others. With 4 dimensions that probably costs accuracy. With 8 it must happen too, yet the delta rule's median is 100 %; linear attention's is 95 %. With 16 both come within a point of attention, with less than half of its memory. Attention's memory grows with every token; theirs does not.

# %% [markdown]
# Linear attention does better than our example suggested; it has a second block and positions.

# %% [markdown]
# The state space, trained in one size only, is behind. But its loop over the tokens is slow: in 5 seconds it takes 208 steps, and the others take 326 and more. This ranks layers by what they learn in 5 seconds on one core, not by what they can learn. Arora et al. 2024 measure many such layers at length: recall costs memory (quoted). So recent models mix a few layers of attention with many of fixed memory (Lieber et al. 2024, quoted).
#
# All of these change the model. Can we also be faster without changing it?

# %% [markdown]
# ## Faster: a draft and a check
#
# The last change keeps the model exactly as it is. SmolLM2 (lesson 09) writes one token for each pass, and each pass fetches all of its 135 million parameters from memory, whether it reads one new token or several. **If a pass over one new token takes one unit of CPU time, how many does a pass over eight take?**

# %%
guess = None  # a factor

# %%
needs("smollm2")

# %%
from course_lib.pretrained import smollm2

model = smollm2.load()
text = model.tokenizer.encode("It was the best of times, it was the worst of times").ids


def seconds_of(rows, times=4):
    score = model.scoring()
    with torch.no_grad():
        score(text, 1)
        return cpu_seconds(lambda: score(text, rows), times)


# %%
one, eight = seconds_of(1), seconds_of(8)
reveal(guess, eight / one)
claim = "eight tokens take less than five times as long as one"
measuring.expect(claim, eight < 5 * one, f"{eight / one:.1f} times")

# %% [markdown]
# Eight tokens cost far less than eight times one: most of a short pass, such as fetching the parameters, does not depend on how many tokens it reads. But when a model writes, the next tokens are not known yet: each depends on the one before. So let something cheap guess them. A **draft** proposes a few tokens, the large model scores all of them in one pass, and those before the first disagreement stay (**speculative decoding**, Leviathan et al. 2023).

# %%
needs()

# %% tags=["hide-input"]
diagram = drawings.Diagram()
words = ["the", "worst", "of", "times", "and"]
diagram.text("draft", (-0.3, 3), size=9, align="right")
diagram.text("one pass of\nthe large model", (-0.3, 1.5), size=9, align="right")
diagram.text("text", (-0.3, 0), size=9, align="right")
verdicts = ["✓", "✓", "✓", "✗", ""]
written = ["the", "worst", "of", "all", ""]
for i, word in enumerate(words):
    x = 1.2 + 2.1 * i
    diagram.box(word, (x, 3), "query", size=(1.7, 0.8))
    diagram.box(f"$p_{i + 1} / q_{i + 1}$ {verdicts[i]}", (x, 1.5), "network", size=(1.9, 0.8))
    diagram.arrow((x, 2.6), (x, 1.9))
    if written[i]:
        role = "query" if i < 3 else "value"
        diagram.box(written[i], (x, 0), role, size=(1.7, 0.8))
        diagram.arrow((x, 1.1), (x, 0.4))
diagram.text("not looked at", (9.6, 0.6), size=9, colour="0.4")
diagram.show(
    "Five drafted tokens: the, worst, of, times, and. One pass of the large model compares its "
    "probability p with the draft's q for each. The first three are accepted. The fourth is "
    "rejected, and another token, all, is sampled in its place. The fifth is not looked at.",
)

# %% [markdown]
# For greedy decoding the check is simple: the token must be the likeliest. What if the model **samples** its tokens, as in lesson 10? Let $q(x)$ be the draft's probability of a token and $p(x)$ the large model's. Accept $x$ with probability $\min(1, p(x)/q(x))$. If it is **rejected**, sample instead from the **residual distribution**: the tokens to which the draft gave too little probability.
#
# $$r(x) = \frac{\max(p(x) - q(x), 0)}{\sum_y \max(p(y) - q(y), 0)}$$

# %% [markdown]
# If all $m$ drafted tokens are accepted, the last row of the same pass gives one more token for nothing: a pass writes between 1 and $m + 1$ tokens.
#
# Every token has exactly the probability that the large model gives it. It is either drafted and accepted, or sampled after a rejection. A rejection happens with probability $1 - \sum_y \min(p, q) = \sum_y \max(p - q, 0)$, the denominator of $r$:
#
# $$\underbrace{q \min(1, p/q)}_{\text{drafted, accepted}} + \underbrace{\Big(1 - \sum_y \min(p, q)\Big)\, r}_{\text{rejected, sampled again}} = \min(p, q) + \max(p - q, 0) = p$$

# %%
# exercise: speculative/accept

# %%
check("speculative/accept", accept)

# %%
accept = mine("speculative/accept")

# %% [markdown]
# Check the sum with four tokens, a bad draft and your function. In place of a random number, take 1,000 equally spaced ones.

# %% tags=["nbval-check-output"]
draft = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
target = torch.tensor([[0.6, 0.2, 0.1, 0.1], [0.25] * 4])
total = torch.zeros(4)
for token in range(4):
    for uniform in (torch.arange(1000.0) + 0.5) / 1000:
        count, rest = accept(torch.tensor([token]), draft, target, uniform[None])
        drawn = F.one_hot(torch.tensor(token), 4) if count else rest
        total += draft[0, token] / 1000 * drawn
print([round(share, 3) for share in total.tolist()])
assert torch.allclose(total, target[0], atol=1e-3)

# %% [markdown]
# These are the target's probabilities, not the draft's. A bad draft costs time, never quality. (A test of the course writes 3,000 texts of three tokens with a draft model and compares all 27 counts with the exact probabilities, by chi-square.)
#
# ## A draft for nothing (optional)
#
# Which draft is cheap? The simplest needs no model: **prompt lookup decoding** (Saxena 2023). Take the last three tokens. If they have occurred before in the text, draft what followed them; if not, try the last two, then the last one. It is an induction head (lesson 07) without a network.

# %%
# given: speculative.look_up

# %%
print(look_up("the best of times , it was the worst of".split(), most=3))

# %% [markdown]
# SmolLM2 now continues three texts by 32 tokens each: a story, a table of people, and a poem that is quoted again. Up to eight tokens are drafted at a time. **How many passes does each of the three take, instead of 32?**

# %%
guess = None  # (story, table, poem)

# %%
needs("smollm2")

# %%
texts = {
    "story": "Once upon a time, in a small village by the sea, there lived",
    "table": '[{"name": "Anna", "age": 31, "city": "Paris", "job": "painter"},\n'
    ' {"name": "Bruno", "age": 45, "city": "Rome", "job": "baker"},\n {"name": "Clara",',
    "poem": "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\n"
    "And summer's lease hath all too short a date.\n\nOnce more:\nShall I compare thee",
}


# %%
def likeliest(logits):
    return F.one_hot(logits.argmax(-1), logits.shape[-1]).float()


def by_look_up(tokens, most):
    drafted = torch.tensor(look_up(tokens, most), dtype=torch.long)
    return drafted, F.one_hot(drafted, smollm2.VOCAB).float()


# %%
from course_lib.speculative import speculate


def written(text, ahead, new=32):
    tokens = model.tokenizer.encode(text).ids
    score = model.scoring()
    with torch.no_grad():

        def target(tokens, rows):
            return likeliest(score(tokens, rows))

        target(tokens, 1)  # the prompt is read before the clock starts
        start = process_time()
        text, passes = speculate(target, by_look_up, tokens, new, ahead, seed=0)
        return text[len(tokens) :], passes, process_time() - start


# %% tags=["once"]
runs = {name: (written(text, 0), written(text, 8)) for name, text in texts.items()}
passes = {name: ahead[1] for name, (_, ahead) in runs.items()}
reveal(guess, tuple(passes.values()))
for name, ((plain, _, slow), (ahead, _, fast)) in runs.items():
    print(f"{name}: {32 / slow:4.1f} tokens a CPU-second without, {32 / fast:4.1f} with a draft")
    assert plain == ahead, "the same text, token for token"
assert passes["poem"] <= 6 and 12 <= passes["table"] <= 18 and passes["story"] >= 30

# %% [markdown]
# The text is the same, token for token. The poem takes 5 passes in place of 32, and the table half. The story gains nothing and loses time: what is drafted for it is hardly ever accepted, and a pass over a draft costs more than one without. Real systems draft with a small model of the same family, which also helps where nothing repeats (Leviathan et al. 2023 report two to three times the speed, quoted), or with extra heads on the large model.

# %% tags=["once"]
times = {name: slow / fast for name, ((_, _, slow), (_, _, fast)) in runs.items()}
came = {name: f"{factor:.1f} times as fast" for name, factor in times.items()}
claim = "the draft makes the poem 1.3 times as fast or more, the story less than that"
measuring.expect(claim, times["poem"] > 1.3 > times["story"], came)

# %%
needs()

# %% [markdown]
# ## What else came (optional)
#
# What did the lectures say would come next, and what came? Their words are quoted; what came is quoted too, unless a lesson is named.
#
# | lecture | what it asks or announces | what came |
# |:-|:-|:-|
# | L1 | "Pretraining on Thursday!" | it became the standard: lesson 12 |
# | L1 | "*Can we build models like Transformers without paying the $O(T^2)$ all-pairs self-attention cost?*" | yes, and most large models still pay it, computed in tiles (Dao et al. 2022): lessons 13 and 14 |
# | L1 | "Are simple absolute indices the best we can do to represent position?" | no: rotary positions (Su et al. 2021), lesson 04 |
# | L4 | "What if we want to scale $n \ge 50,000$?" | 65,536 tokens on your machine: lesson 14 |
# | L4 | "What's next after Transformers?" | hybrids: a few attention layers among many with a fixed state (Lieber et al. 2024) |

# %% [markdown]
# Three more ideas are out of reach for one laptop at full size, and are quoted.
#
# **Sparse experts at scale.** DeepSeek-V3 has 671 billion parameters, of which each token uses 37 billion (DeepSeek-AI 2024). You built the layer in lesson 12.
#
# **Long context.** Rotary frequencies are stretched after training, and a little more training repairs the rest (Chen et al. 2023, Peng et al. 2024; lesson 04 measures both).
#
# **Test-time compute.** A model that writes intermediate steps solves more problems (Wei et al. 2022), and sometimes thinking longer is worth more than a larger model (Snell et al. 2024).

# %% [markdown]
# ## Your page
#
# Before nearly every measurement of this course you could make a guess. Your first guess of each was kept, in your workspace and nowhere else. In a terminal, in your workspace, run
#
# `course certificate`
#
# It writes `certificate.html`: the exercises that you passed, the lines of code that you wrote, and each of your predictions beside what was measured. Open it in a browser, and print it. **What percentage of your comparable predictions were right or near?**

# %% [markdown]
# ## Break it
#
# - Give the Vision Transformer patches of 4 × 4, then of 1 × 1. What is the test accuracy then?
# - Take `self.positions(x)` out of your Vision Transformer, and train it again. Why does it not lose everything?
# - In your `delta_rule`, set $\beta$ to 2. For a key of norm 1, what does the state hold after each write? (Work out $v - k S$.)
# - Draft with a wrong model: let `by_look_up` return eight random tokens. Is the text the same?

# %% [markdown]
# ## What to remember
#
# A Transformer reads whatever can be cut into tokens. Attention keeps everything and recalls exactly; layers of fixed memory keep a summary, and differ in how they write it. A good draft saves time; a bad one costs time, never quality.
#
# | | |
# |:-|:-|
# | patches | $c \times h \times w \to \frac{hw}{s^2} \times c s^2$ |
# | Vision Transformer | $z_0 = [x_{class}; X W] + P$, the head reads row 0 |
# | contrastive loss | cross-entropy of $\cos(u_i, v_j)/\tau$, rows and columns |
# | scan | $h_t = a_t h_{t-1} + b_t$; $(a', b')$ then $(a, b)$ is $(a a', a b' + b)$ |
# | selective state space | $h_t = e^{\Delta_t a} h_{t-1} + \Delta_t b_t x_t$, $y_t = c_t \cdot h_t$ |
# | delta rule | $S_t = S_{t-1} + \beta_t k_t^T (v_t - k_t S_{t-1})$ |
# | speculative decoding | accept with $\min(1, p/q)$, else draw from $\max(p - q, 0)$, normalised |

# %% [markdown]
# ## Test yourself
#
# <details><summary>1. An image of 32 × 32 pixels with 3 channels, patches of 4 × 4: what is the shape of the first block's input for <i>d</i> = 64?</summary>
#
# 65 × 64: 64 patches of 48 numbers each are projected to 64 numbers, and the class token comes first.
# </details>
#
# <details><summary>2. Why can a GRU not be computed by a parallel scan?</summary>
#
# Its gates and its candidate depend on the state before, inside a nonlinearity. Two such steps are not one step of the same form.
# </details>
#
# <details><summary>3. How many numbers do attention and the delta rule keep after 10,000 tokens, for keys of 64 and values of 64?</summary>
#
# Attention 10,000 · 128 = 1,280,000; the delta rule 64 · 64 = 4,096.
# </details>
#
# <details><summary>4. A draft proposes a token with q = 0.5 where p = 0.2. How likely is it to be accepted, and can it be sampled again after a rejection?</summary>
#
# 0.2 / 0.5 = 0.4. No: max(p − q, 0) is 0 for it.
# </details>
#
# <details><summary>5. Why did the three nearest neighbours do so well on these digits?</summary>
#
# Probably because 1,347 small, centred images cover most ways to write a digit, so that the nearest ones mostly have the same label. (We measured the accuracy alone.)
# </details>

# %% [markdown]
# ## The end, and further reading
#
# You have built every part of the Transformer, trained it, measured what the lectures claim, and replaced its parts. If you read one paper now, read Vaswani et al. 2017 again, from the first page to the last.
#
# Dosovitskiy et al. 2021 (Vision Transformer); Radford et al. 2021 (CLIP); Hillis & Steele 1986 and Blelloch 1990 (scans); Gu & Dao 2023 (Mamba); Schlag et al. 2021 and Yang et al. 2024 (the delta rule); Leviathan et al. 2023 (speculative decoding); Saxena 2023 (prompt lookup decoding). Lectures: L1 to L5.
