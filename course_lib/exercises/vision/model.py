"""A Transformer that looks: patches, a class token, positions, blocks, and one answer."""

import torch

from course_lib.answers.answer import Named, Probe
from course_lib.beyond import VisionTransformer, patches
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import TRANSFORMER

exercise = Exercise(
    reference=VisionTransformer,
    method="forward",
    lesson="15_vision",
    title="A Transformer that reads images",
    minutes=10,
    difficulty=2,
    hints=(
        "Which of the parts under `self` know about pixels, and which only about tokens? In which "
        "order does an image meet them?",
        "The class token is one vector, but a batch has many images. Which function repeats a "
        "tensor along new axes without copying it, and which joins it with the patches?",
        "After the blocks there is a state for each patch and one for the class token. Which of "
        "them does the head read, and what has to happen to it first?",
    ),
    clauses={
        "put before the patches": "ClassTokenLast",
        "its last state is what the head reads": "mean_of_all",
        "makes each block": "another block",
        "Raises ValueError for images": GIVEN,
    },
    forbidden=TRANSFORMER,
)


@exercise.cases
def cases(draw: Draw):
    yield "one image of two by two patches", (draw.normal(1, 4, 4),), (3, 1, 4, 2, 1, 4, 2, 6)
    yield "as many channels as pixels", (draw.normal(4, 4, 4),), (2, 4, 4, 4, 2, 6, 3, 5)
    yield "three channels, nine patches", (draw.normal(3, 6, 6),), (5, 3, 6, 2, 2, 4, 1, 7)
    yield "a batch of images", (draw.normal(3, 2, 4, 4),), (4, 2, 4, 2, 3, 6, 2, 8)
    yield "two batch dimensions", (draw.normal(2, 3, 1, 4, 4),), (3, 1, 4, 1, 1, 4, 2, 6)
    build = (3, 2, 4, 2, 2, 4, 2, 6, Named("block", Probe("sum_of_seen")))
    yield "another block", (draw.normal(2, 4, 4),), build


@exercise.edges
def edges(draw: Draw):
    yield "no block", (draw.normal(1, 4, 4),), (3, 1, 4, 2, 0, 4, 2, 6)


@exercise.requires("the same patches in other places are another image")
def places_count(answer, draw: Draw):
    image, build = draw.normal(1, 4, 4), (3, 1, 4, 2, 2, 4, 2, 6)
    moved = image.roll(2, dims=-1)
    return (answer(image, build=build) - answer(moved, build=build)).abs().max() > 1e-4


@exercise.requires("the logits of one image do not depend on the others of its batch")
def images_apart(answer, draw: Draw):
    images, build = draw.normal(5, 2, 4, 4), (3, 2, 4, 2, 2, 4, 2, 6)
    together, alone = answer(images, build=build), answer(images[2], build=build)
    return together.std() > 0 and torch.allclose(together[2], alone, atol=1e-5)


@exercise.steps
class InSteps(VisionTransformer):
    """The model in steps, so that a mistake is one step gone wrong."""

    def tokens(self, images):
        return self.project(patches(images, self.patch))

    def joined(self, tokens):
        first = self.class_token.expand(*tokens.shape[:-2], 1, -1)
        return torch.cat([first, tokens], dim=-2)

    def placed(self, x):
        return self.positions(x)

    def run(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    def answer(self, x):
        return self.head(self.last_norm(x[..., 0, :]))

    def forward(self, images):
        return self.answer(self.run(self.placed(self.joined(self.tokens(images)))))


@exercise.mistake(step="placed")
def no_positions(self, x):
    """No patch knows where it is, so the model sees a bag of patches. Which part under `self` holds
    the positions?"""
    return x


@exercise.mistake
class ClassTokenLast(InSteps):
    """The class token was put after the patches, and the positions are learned for one in front.
    The head then reads a patch, or the positions are all one off."""

    def joined(self, tokens):
        last = self.class_token.expand(*tokens.shape[:-2], 1, -1)
        return torch.cat([tokens, last], dim=-2)

    def answer(self, x):
        return self.head(self.last_norm(x[..., -1, :]))


@exercise.mistake
class PositionsBeforeTheClassToken(InSteps):
    """The class token has no position, and each patch has that of the one before it. The table of
    positions has a row more than there are patches: for whom is the first row?"""

    def joined(self, tokens):
        return super().joined(self.positions(tokens))

    def placed(self, x):
        return x


@exercise.mistake(step="answer")
def mean_of_all(self, x):
    """The head read the mean of all states. That is a good model too, but this one reads the state
    of the class token."""
    return self.head(self.last_norm(x).mean(-2))


@exercise.mistake(step="answer")
def last_patch(self, x):
    """The head read the last patch. On which place of the sequence is the class token?"""
    return self.head(self.last_norm(x[..., -1, :]))


@exercise.mistake(step="answer")
def no_last_norm(self, x):
    """The last norm was not used: pre-norm blocks leave their stream as it is, so what the head
    reads has no fixed size."""
    return self.head(x[..., 0, :])


@exercise.mistake(step="answer")
def logits_for_each_token(self, x):
    """The head was used on every state, so there are logits for each token. An image has one
    answer."""
    return self.head(self.last_norm(x))


@exercise.mistake(step="joined", raises=RuntimeError)
def class_token_of_one_image(self, tokens):
    """Right for one image, not for a batch: the class token has one axis for its numbers, and
    `torch.cat` wants the batch's axes too."""
    return torch.cat([self.class_token[None], tokens], dim=-2)


@exercise.mistake(step="run")
def no_blocks(self, x):
    """No block was called: the class token alone went to the head, and it has seen no patch."""
    return x


@exercise.mistake(step="run", raises=IndexError)
def first_block_alone(self, x):
    """Only the first block was used. Does a `return` end the loop in its first round?"""
    return self.blocks[0](x)


@exercise.mistake(step="tokens", raises=RuntimeError)
def pixels_as_tokens(self, images):
    """The patches went into the blocks as pixels. A token has d_model numbers: which part under
    `self` makes them of a patch's?"""
    return patches(images, self.patch)


@exercise.alternative
class Repeated(VisionTransformer):
    def forward(self, images):
        cut = patches(images, self.patch)
        batch = cut.shape[:-2]
        words = self.project(cut.flatten(0, -3)) if batch else self.project(cut)[None]
        x = torch.cat([self.class_token.repeat(len(words), 1, 1), words], dim=1)
        x = x + self.positions.table
        for block in self.blocks:
            x = block(x)
        return self.head(self.last_norm(x)[:, 0]).reshape(*batch, -1)
