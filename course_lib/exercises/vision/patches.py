"""An image becomes a sequence: squares of pixels are its tokens."""

import torch

from course_lib.beyond import patches
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=patches,
    lesson="15_vision",
    title="Cut an image into patches",
    minutes=8,
    difficulty=2,
    hints=(
        "An image of 4 x 6 pixels, patches of 2 x 2: how many rows of patches are there, how many "
        "columns, and which pixels does the second patch hold?",
        "Two axes of pixels become four: which patch vertically, where in it, which patch "
        "horizontally, where in it. In which order do the result's two axes want them?",
        "`rearrange` takes such a pattern as it is: brackets on the left cut an axis, brackets on "
        "the right join axes. Which two sizes does it have to be told?",
    ),
    clauses={
        "of the first channel, then of the second": "channels_last",
    },
    forbidden=("torch.nn.functional.unfold", "torch.nn.Unfold"),
)


@exercise.cases
def cases(draw: Draw):
    yield "one channel, two patches of 2 x 2", (draw.normal(1, 2, 4), 2)
    yield "three channels, six patches", (draw.normal(3, 4, 6), 2)
    yield "higher than wide", (draw.normal(2, 9, 3), 3)
    yield "patches of one pixel", (draw.normal(4, 2, 3), 1)
    yield "the whole image is one patch", (draw.normal(3, 3, 3), 3)
    yield "a batch of images", (draw.normal(5, 3, 4, 8), 4)
    yield "two batch dimensions", (draw.normal(2, 3, 1, 6, 4), 2)


@exercise.requires("every pixel is in exactly one patch, and those of one patch are neighbours")
def neighbours(answer, draw: Draw):
    size, height, width = draw.number(2, 4), 12, 24
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    cut = answer(torch.stack([rows, columns]).float(), size)
    pairs = cut.unflatten(-1, (2, size * size))
    spread = pairs.amax(-1) - pairs.amin(-1)
    places = (pairs[:, 0] * width + pairs[:, 1]).flatten().sort().values
    whole = torch.equal(places, torch.arange(height * width).float())
    return whole and bool((spread == size - 1).all())


def cut(images, size, order="rows", inside="channel a b"):
    """Cut as the reference does, or with patches or pixels in another order."""
    height, width = images.shape[-2:]
    x = images.unflatten(-1, (width // size, size)).unflatten(-3, (height // size, size))
    # x: channel row a column b, each axis counted from the end
    axis = {"channel": -5, "row": -4, "a": -3, "column": -2, "b": -1}
    first = ["row", "column"] if order == "rows" else ["column", "row"]
    places = [x.dim() + axis[name] for name in (*first, *inside.split())]
    x = x.permute(*range(x.dim() - 5), *places)
    return x.flatten(-3).flatten(-3, -2)


@exercise.mistake
def column_by_column(images, size):
    """The patches are in the order of columns: the second one is below the first. Read an image as
    you read a page."""
    return cut(images, size, order="columns")


@exercise.mistake
def channels_last(images, size):
    """Inside a patch the channels come last: red, green and blue of one pixel, then of the next.
    The whole patch of the first channel is to come first."""
    return cut(images, size, inside="a b channel")


@exercise.mistake
def patches_turned(images, size):
    """Inside a patch the pixels are read column by column."""
    return cut(images, size, inside="channel b a")


@exercise.mistake
def runs_of_pixels(images, size):
    """`reshape` alone cuts the image into runs of pixels, not into squares: neighbours above each
    other are `width` numbers apart in memory. Which axes have to change places?"""
    return images.reshape(*images.shape[:-3], -1, images.shape[-3] * size * size)


@exercise.mistake
def channels_apart(images, size):
    """Each channel has patches of its own. A patch is all channels of one square: its vector has
    channels x size x size numbers."""
    patched = cut(images, size).unflatten(-1, (images.shape[-3], size * size))
    return patched.transpose(-2, -3).flatten(-3, -2)


@exercise.mistake
def one_at_every_pixel(images, size):
    """The patches overlap: one begins at every pixel. The next patch begins where the last one
    ends."""
    windows = images.unfold(-2, size, 1).unfold(-2, size, 1)
    return windows.movedim(-5, -3).flatten(-3).flatten(-3, -2)


@exercise.alternative
def by_windows(images, size):
    squares = images.unfold(-2, size, size).unfold(-2, size, size)
    return squares.movedim(-5, -3).flatten(-3).flatten(-3, -2)


@exercise.alternative
def patch_by_patch(images, size):
    height, width = images.shape[-2:]
    found = []
    for top in range(0, height, size):
        for left in range(0, width, size):
            square = images[..., top : top + size, left : left + size]
            found.append(square.reshape(*images.shape[:-3], -1))
    return torch.stack(found, dim=-2)
