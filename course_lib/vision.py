"""Images as sequences: patches are the tokens of a Transformer (lesson 15)."""

from collections.abc import Callable

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.add_norm import Norm
from course_lib.encoder import EncoderBlock
from course_lib.positions import LearnedPositions


def patches(
    images: Float[Tensor, "*batch channels height width"], size: int
) -> Float[Tensor, "*batch n patch"]:
    """Cut images into squares of size x size pixels, row by row, and lay each out as a vector.

    A vector has size x size numbers of the first channel, then of the second, and so on. Source:
    Dosovitskiy et al. 2021, section 3.1. Raises ValueError for a size that does not divide the
    height and the width.

    >>> patches(torch.arange(8.0).reshape(1, 2, 4), size=2).tolist()
    [[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]
    """
    height, width = images.shape[-2:]
    if size < 1 or height % size or width % size:
        raise ValueError(
            f"patches of {size} x {size} pixels do not fill an image of {height} x {width}: choose "
            "a size that divides both, or cut the image"
        )
    # cut both sides of the image, and join what belongs to one patch
    return rearrange(
        images,
        "... channels (rows a) (columns b) -> ... (rows columns) (channels a b)",
        a=size,
        b=size,
    )


class VisionTransformer(nn.Module):
    """Classify images by an encoder: the patches are its tokens.

    A learned class token is put before the patches, and its last state is what the head reads.
    `block(d_model, heads, d_ff, norm)` makes each block. Source: Dosovitskiy et al. 2021, eq. 1 to
    4. Raises ValueError for a patch size that does not divide the image's side.
    """

    def __init__(
        self,
        classes: int,
        channels: int,
        image: int,
        patch: int,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        *,
        block: Callable[..., nn.Module] = EncoderBlock,
    ):
        super().__init__()
        n, size = patches(torch.zeros(channels, image, image), patch).shape
        self.image, self.patch = image, patch
        self.project = nn.Linear(size, d_model)
        self.class_token = nn.Parameter(torch.randn(d_model) / d_model**0.5)
        self.positions = LearnedPositions(n + 1, d_model)
        self.blocks = nn.ModuleList(block(d_model, heads, d_ff, "pre") for _ in range(layers))
        self.last_norm = Norm(d_model)
        self.head = nn.Linear(d_model, classes)

    def forward(
        self, images: Float[Tensor, "*batch channels side side"]
    ) -> Float[Tensor, "*batch classes"]:
        """Return the logits of the classes, for each image.

        Raises ValueError for images of another size than the positions were learned for.
        """
        height, width = images.shape[-2:]
        if (height, width) != (self.image, self.image):
            raise ValueError(
                f"the positions are those of {self.image} x {self.image} pixels, but the images "
                f"have {height} x {width}: scale or cut them"
            )
        # cut the images into patches, and project each one
        tokens = self.project(patches(images, self.patch))
        # put the class token before the patches of every image
        first = self.class_token.expand(*tokens.shape[:-2], 1, -1)
        x = torch.cat([first, tokens], dim=-2)
        # add the positions, and pass the tokens through block after block
        x = self.positions(x)
        for block in self.blocks:
            x = block(x)
        # read the class token alone, normalised
        return self.head(self.last_norm(x[..., 0, :]))


def contrastive_loss(
    images: Float[Tensor, "b d"], texts: Float[Tensor, "b d"], temperature: float
) -> Float[Tensor, ""]:
    """Ask of each image which text is its own, and of each text which image: the mean of both.

    s_ij = cos(image_i, text_j) / temperature, and the loss is the mean of the cross-entropy of the
    rows and of the columns of s, where the right answer is the diagonal, in nats. Source: Radford
    et al. 2021, figure 3, whose t is the logarithm of 1 / temperature.
    """
    # bring every vector to length one
    images, texts = F.normalize(images, dim=-1), F.normalize(texts, dim=-1)
    # compare every image with every text
    scores = images @ texts.mT / temperature
    # the text of image i is text i
    own = torch.arange(len(scores), device=scores.device)
    # rows choose among texts, columns among images
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.mT, own)) / 2
