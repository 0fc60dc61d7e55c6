"""A whole language model: from tokens to the scores of what comes next."""

import torch
from torch.nn import functional as F

from course_lib.answers.answer import Named, Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import TRANSFORMER
from course_lib.language_model import LanguageModel

exercise = Exercise(
    reference=LanguageModel,
    method="forward",
    lesson="10",
    title="The whole language model",
    minutes=6,
    difficulty=2,
    hints=(
        "The constructor made five parts. In which order does the drawing above pass them?",
        "A block of this model is an encoder's block. What does it need beside the tokens, so that "
        "no token sees what it is to predict? How large is that?",
        "`self.blocks` holds the blocks. Give the running result one name, and let each round "
        "replace it. Which two parts are left after the last round?",
    ),
    clauses={
        "plus learned positions": "no_positions",
        "pre-norm blocks under a causal mask": "no_mask",
        "a last norm": "no_last_norm",
        "whose matrix is the embedding's table": "another embedding",
        "makes what looks tokens up": "another embedding",
        "adds their positions": "another positions",
        "is as in `Encoder`": "another block",
        "is the last norm": "another norm_layer",
        "Raises ValueError for more tokens": GIVEN,
    },
    forbidden=TRANSFORMER,
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens, one block", (draw.integers(0, 5, 2),), (5, 1, 4, 2, 6, 3)
    yield "three blocks", (draw.integers(0, 7, 4),), (7, 3, 4, 1, 5, 6)
    yield "as many tokens as there is room for", (draw.integers(0, 8, 5),), (8, 2, 4, 2, 3, 5)
    yield "a batch of texts", (draw.integers(0, 9, 2, 4),), (9, 2, 6, 3, 8, 7)
    yield "as many texts as tokens", (draw.integers(0, 9, 3, 3),), (9, 1, 4, 2, 7, 5)
    yield "two batch dimensions", (draw.integers(0, 6, 3, 2, 4),), (6, 1, 6, 2, 5, 8)
    yield "one token", (draw.integers(0, 5, 1),), (5, 1, 4, 2, 6, 3)
    yield "an odd d_model", (draw.integers(0, 6, 3),), (6, 2, 5, 1, 4, 3)
    others = {
        "embedding": "doubled_table",
        "positions": "number_added",
        "block": "sum_of_seen",
        "norm_layer": "stretch_and_shift",
    }
    for name, probe in others.items():
        build = (7, 2, 4, 2, 5, 6, Named(name, Probe(probe)))
        yield f"another {name}", (draw.integers(0, 7, 4),), build


@exercise.requires("no logits depend on a later token, and all depend on earlier ones", points=2)
def causal(answer, draw: Draw):
    tokens, build = draw.integers(0, 5, 6), (6, 2, 4, 2, 6, 7)
    other = tokens.clone()
    other[3] = 5
    moved = (answer(other, build=build) - answer(tokens, build=build)).abs().amax(-1) > 1e-5
    return moved.tolist() == [False] * 3 + [True] * 3


@exercise.requires("the same tokens in another order are another text")
def order_counts(answer, draw: Draw):
    build = (6, 2, 4, 2, 6, 7)
    one, other = (answer(torch.tensor(x), build=build)[-1] for x in ([4, 1, 2], [1, 4, 2]))
    return (one - other).abs().max() > 1e-4


@exercise.steps
class InSteps(LanguageModel):
    """The model in steps, so that a mistake is one step gone wrong."""

    def embed(self, tokens):
        return self.positions(self.embedding(tokens))

    def mask(self, n):
        return torch.ones(n, n, dtype=torch.bool).tril()

    def run(self, x, mask):
        for block in self.blocks:
            x = block(x, mask)
        return x

    def score(self, x):
        return self.output(self.last_norm(x))

    def forward(self, tokens):
        mask = self.mask(tokens.shape[-1])
        return self.score(self.run(self.embed(tokens), mask))


@exercise.mistake(step="mask")
def no_mask(self, n):
    """Each token sees what comes after it, and so what it is to predict. In training the loss will
    fall to nothing, and the model will write nonsense: which mask does a decoder need?"""
    return


@exercise.mistake(step="mask")
def mask_inverted(self, n):
    """The mask is turned round: each token sees itself and what comes after it. True means *may
    look*."""
    return InSteps.mask(self, n).mT


@exercise.mistake(step="mask")
def hidden_from_itself(self, n):
    """A token may not see itself here, so the first one sees nothing. The targets are one place
    further right already: what would be given away if it saw itself?"""
    return InSteps.mask(self, n).tril(-1)


@exercise.mistake(step="run")
def mask_for_the_first_block(self, x, mask):
    """Only the first block was given the mask. What is hidden once must stay hidden: in which
    rounds is it needed?"""
    for block in self.blocks:
        x, mask = block(x, mask), None
    return x


@exercise.mistake(step="embed")
def no_positions(self, tokens):
    """No token knows its position: what does `self.positions` add?"""
    self.positions(self.embedding(tokens))
    return self.embedding(tokens)


@exercise.mistake(step="embed")
def positions_twice(self, tokens):
    """The positions were added twice. `self.positions` adds them and returns the sum: read
    `LearnedPositions.forward`."""
    x = self.embedding(tokens)
    return 2 * self.positions(x) - x


@exercise.mistake
class PositionsInEveryBlock(InSteps):
    """The positions were added again before every block. The residual connections carry on what was
    added once: how often must a token be told its position?"""

    def embed(self, tokens):
        return self.embedding(tokens)

    def run(self, x, mask):
        for block in self.blocks:
            x = block(self.positions(x), mask)
        return x


@exercise.mistake(step="run")
def positions_again_in_every_block(self, x, mask):
    """The positions were added once at the beginning and again before every block. The residual
    connections carry on what was added once: how often must a token be told its position?"""
    for block in self.blocks:
        x = block(self.positions(x), mask)
    return x


@exercise.mistake(step="embed")
def added_to_its_sum(self, tokens):
    """The token vectors were added to themselves: `self.positions` returns the sum of a vector and
    its position already."""
    x = self.embedding(tokens)
    return x + self.positions(x)


@exercise.mistake(step="embed")
def scaled(self, tokens):
    """The embedding was multiplied by sqrt(d_model), as in the Transformer of 2017. This model
    learns its positions, and has no such factor."""
    x = self.embedding(tokens)
    return InSteps.embed(self, tokens) + (x.shape[-1] ** 0.5 - 1) * x


@exercise.mistake(step="run")
def no_blocks(self, x, mask):
    """No block was called: the tokens were looked up and scored at once."""
    return x


@exercise.mistake(step="run")
def first_block_alone(self, x, mask):
    """Only the first block was used. Is there a `return` inside the loop, which ends it in the
    first round?"""
    return self.blocks[0](x, mask)


@exercise.mistake(step="run")
def last_block_alone(self, x, mask):
    """Each block read the embedding, and its result was replaced by the next one's. What should a
    block read?"""
    return self.blocks[-1](x, mask)


@exercise.mistake(step="run")
def blocks_in_reverse(self, x, mask):
    """The blocks were called from the last to the first."""
    for block in reversed(self.blocks):
        x = block(x, mask)
    return x


@exercise.mistake(step="run")
def added_around_blocks(self, x, mask):
    """The stream was added to what each block returned. The residual connections are inside the
    blocks already."""
    for block in self.blocks:
        x = x + block(x, mask)
    return x


@exercise.mistake(step="run", raises=NotImplementedError)
def list_called(self, x, mask):
    """`self.blocks` is a list of modules, and a list cannot be called. How do you reach the blocks
    in it?"""
    return self.blocks(x, mask)


@exercise.mistake(step="score")
def no_last_norm(self, x):
    """The last norm was left out: pre-norm blocks leave the stream as large as it has grown."""
    return self.output(x)


@exercise.mistake
class NormInTheLoop(InSteps):
    """The last norm was called after each block: is its line inside the loop?"""

    def run(self, x, mask):
        for block in self.blocks:
            x = self.last_norm(block(x, mask))
        return x

    def score(self, x):
        return self.output(x)


@exercise.mistake(step="score")
def states_returned(self, x):
    """The states were returned: each has d_model numbers. How do they become a score for every
    token of the vocabulary?"""
    return self.last_norm(x)


@exercise.mistake(step="score")
def probabilities(self, x):
    """The logits were made into probabilities. The loss takes logits, and so does sampling: what
    does the docstring ask for?"""
    return InSteps.score(self, x).softmax(-1)


@exercise.mistake(step="score")
def log_probabilities(self, x):
    """The logits were made into logarithms of probabilities. The docstring asks for logits, and the
    loss does the rest."""
    return InSteps.score(self, x).log_softmax(-1)


@exercise.mistake(step="score")
def last_place_alone(self, x):
    """Only the last position was scored. In training every position predicts its next token at
    once: what keeps them from seeing it?"""
    return InSteps.score(self, x)[..., -1, :]


@exercise.alternative
class Spelled(LanguageModel):
    def forward(self, tokens):
        x = self.embedding(tokens)
        x = self.positions(x)
        past = torch.arange(tokens.size(-1))
        for i in range(len(self.blocks)):
            x = self.blocks[i](x, past[:, None] >= past)
        return F.linear(self.last_norm(x), self.embedding.table)
