# %% [markdown]
# # An image becomes a sequence
#
# **44 minutes · an exploration of lesson 15 · needs `digits` (8.0 MB)**
#
# L4 says that "computer vision also adapted Transformers, e.g., **Vision Transformers**". An encoder reads a sequence of vectors, and an image is a grid of numbers. **What is a token of an image?** You cut images into tokens, put them through an encoder, and compare what it learns with the simplest rival.

# %%
import torch
from collections.abc import Callable
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from course_lib.exercises import check, hint, mine, reveal, solution
from course_lib.instruments import drawings, plots, training

# %% tags=["parameters"]
SEED = 0

# %% [markdown]
# ## Patches
#
# One token for each pixel is too many, as attention compares all pairs. Dosovitskiy et al. 2021 cut the image into squares, called **patches**, and write the numbers of each square in a row:
#
# $$\underset{c \times h \times w}{\text{image}} \;\longrightarrow\; \underset{n \times c s^2}{X}, \qquad n = \frac{h}{s} \cdot \frac{w}{s}$$
#
# for $c$ channels (colours) and patches of $s \times s$ pixels.

# %%
from course_lib.add_norm import Norm
from course_lib.data import digits, needs
from course_lib.positions import LearnedPositions

EncoderBlock = mine("encoder/block")

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
# 196 tokens need 38,416 scores a head; single pixels would need 2.5 billion. The price: attention relates patches, not pixels. Two pixels of one patch share a token: attention cannot look at one without the other.

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
first = diagram.matrix("", (1, 3), (8.0, 1.7), "query")
body = diagram.matrix("", (4, 3), (8.0, 0), "stream")
diagram.text("class token", (8.0, 2.15), size=9)
diagram.arrow(first, body, "on top")
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
# ## Train yours
#
# 1,797 handwritten digits of 8 × 8 pixels (Alpaydin & Kaynak 1998): 1,347 to learn from, the last 450 for the test. The rival learns nothing: it names each image after the nearest of the 1,347, pixel by pixel.

# %%
needs("digits")

# %%
(learning, names), (held_out, answers) = digits.split()
distances = torch.cdist(held_out.flatten(1), learning.flatten(1))
nearest = (names[distances.argmin(-1)] == answers).float().mean().item()
print(f"nearest image: {nearest:.1%} of {len(answers)}")
assert nearest > 0.94

# %%
(learning, names), (held_out, answers) = digits.split()


def batches(seed=0, size=64):
    generator = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(learning), generator=generator).split(size):
            yield learning[rows], names[rows]


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
# After 500 steps on these few images it is behind comparing pixels; more steps were not tried. One seed and one learning rate decide nothing about architectures. Dosovitskiy et al. 2021 report that Transformers were a few points below convolutional networks on ImageNet's 1.3 million images alone, and ahead with 300 million.

# %%
needs()

# %% [markdown]
# ## Images and texts in one space
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
# What is this loss if the vectors tell nothing apart? All cosines are equal, so it is $\log b$ (random vectors do worse: they are confident by chance):

# %% tags=["nbval-check-output"]
same = torch.ones(128, 8)
print(round(contrastive_loss(same, same, 0.1).item(), 2))
assert abs(contrastive_loss(same, same, 0.1).item() - 4.852) < 0.001

# %% [markdown]
# CLIP was trained like this on 400 million pairs from the web, and could then name images by captions such as "a photo of a dog", without a labelled example (**zero-shot**; reported). We train no such pair of encoders here: our digits have no captions, and a made-up caption would be a label.

# %% [markdown]
# ## What to remember
#
# A patch is a token: $c \times h \times w \to \frac{hw}{s^2} \times c s^2$. The class token collects what the head reads. Besides the patches and the learned positions, nothing in the model knows that its input is an image.
#
# Dosovitskiy et al. 2021 (Vision Transformer); Radford et al. 2021 (CLIP).
