"""The whole encoder: tokens become words that know their places, and go through every block."""

from functools import reduce

import torch
from torch.nn import functional as F

from course_lib.answers.answer import Named, Probe
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import TRANSFORMER
from course_lib.transformer import Encoder

exercise = Exercise(
    reference=Encoder,
    method="forward",
    lesson="08_one_page",
    title="The encoder: a stack of blocks",
    minutes=5,
    difficulty=2,
    hints=(
        "The encoder keeps three things under `self`. Which of them meets the tokens, which the "
        "words, and in which order do they stand in the figure?",
        "Read `Embedding.forward`. What does it do beside looking up a row of its table, and so "
        "what is left for you to do?",
        "Give the running result one name, and let each round of the loop replace it. What does "
        "a block need beside the words? What comes after the last round?",
    ),
    clauses={
        "makes each block": "other blocks",
        "is as in `MultiHeadAttention`": "one row of mask for each sentence",
        "Raises ValueError for an unknown `norm`": GIVEN,
        "Raises ValueError for more tokens": GIVEN,
    },
    forbidden=TRANSFORMER,
)


@exercise.cases
def cases(draw: Draw):
    yield "two words, one block", (draw.integers(0, 5, 2),), (5, 1, 4, 2, 6, 3)
    yield "three blocks", (draw.integers(0, 7, 4),), (7, 3, 4, 1, 5, 6)
    yield (
        "a causal mask, norm before the layers",
        (draw.integers(0, 6, 5), torch.ones(5, 5).bool().tril()),
        (6, 2, 6, 3, 4, 8, "pre"),
    )
    yield "as many words as there is room for", (draw.integers(0, 8, 5),), (8, 1, 4, 2, 3, 5)
    padding = torch.tensor([[[True, True, True, False]], [[True, False, False, False]]])
    yield (
        "one row of mask for each sentence",
        (draw.integers(0, 9, 2, 4), padding),
        (9, 2, 4, 1, 3, 7),
    )
    yield "two batch dimensions", (draw.integers(0, 6, 3, 2, 4),), (6, 1, 6, 2, 5, 8, "pre")
    yield "one word", (draw.integers(0, 5, 1),), (5, 1, 4, 2, 6, 3)
    yield (
        "other blocks",
        (draw.integers(0, 7, 4), draw.mask(4, 4)),
        (7, 2, 6, 3, 5, 8, "post", Named("block", Probe("sum_of_seen"))),
    )


@exercise.requires("the same words in another order are another sentence")
def order_counts(answer, draw: Draw):
    tokens, order = torch.tensor([4, 1, 0, 2]), torch.tensor([2, 0, 3, 1])
    build = (5, 2, 4, 2, 6, 7)
    plain, permuted = answer(tokens, build=build), answer(tokens[order], build=build)
    return ((permuted - plain[order]).abs().amax(-1) > 1e-4).all()


@exercise.requires("a word that nobody may look at changes nobody but itself, another changes all")
def hidden_word(answer, draw: Draw):
    tokens, others = torch.tensor([4, 1, 0, 2]), torch.tensor([4, 3, 0, 2])
    mask, build = torch.tensor([True, False, True, True]), (5, 2, 6, 2, 4, 7, "pre")
    hidden = [answer(words, mask.expand(4, 4), build=build) for words in (tokens, others)]
    shown = [answer(words, build=build) for words in (tokens, others)]
    moved = [((b - a).abs().amax(-1) > 1e-5).tolist() for a, b in (hidden, shown)]
    return moved == [[False, True, False, False], [True] * 4]


@exercise.steps
class InSteps(Encoder):
    """The encoder in steps, so that a mistake is one step gone wrong."""

    def embed(self, tokens):
        return self.embedding(tokens)

    def places(self, tokens):
        return self.embedding.positions[: tokens.shape[-1]]

    def run(self, x, mask):
        for block in self.blocks:
            x = block(x, mask)
        return x

    def finish(self, x):
        return self.last_norm(x)

    def forward(self, tokens, mask=None):
        return self.finish(self.run(self.embed(tokens), mask))


@exercise.mistake(step="embed")
def no_positions(self, tokens):
    """No word knows where it stands, so the blocks see a set and not a sentence. The table alone
    cannot tell them: what does `self.embedding` add to its rows when it is called?"""
    return self.embedding(tokens) - self.places(tokens)


@exercise.mistake(step="embed")
def unscaled(self, tokens):
    """The embedding was not multiplied by sqrt(d_model), so a word is faint beside its position:
    the table's entries have the variance 1 / d_model, and the sinusoid's squares are 1/2 on
    average. What else does `self.embedding` do when it is called?"""
    root = self.embedding.table.shape[-1] ** 0.5
    words = self.embedding(tokens) - self.places(tokens)
    return words / root + self.places(tokens)


@exercise.mistake(step="embed")
def table_alone(self, tokens):
    """The rows of the table went into the blocks as they are: not multiplied by sqrt(d_model), and
    without their positions. What does `self.embedding` do when it is called?"""
    words = self.embedding(tokens) - self.places(tokens)
    return words / self.embedding.table.shape[-1] ** 0.5


@exercise.mistake(step="embed")
def scaled_with_positions(self, tokens):
    """Word and position were added first, and both multiplied by sqrt(d_model). Which of the two is
    too small without it?"""
    root = self.embedding.table.shape[-1] ** 0.5
    return self.embedding(tokens) + (root - 1) * self.places(tokens)


@exercise.mistake(step="embed")
def scaled_again(self, tokens):
    """What the embedding returned was multiplied by sqrt(d_model), and it had done so itself. Read
    its `forward`: what is left to do?"""
    return self.embedding(tokens) * self.embedding.table.shape[-1] ** 0.5


@exercise.mistake(step="embed")
def positions_twice(self, tokens):
    """The positions were added twice: once by you, and once by `self.embedding`. Read its
    `forward`: what is left to do?"""
    return self.embedding(tokens) + self.places(tokens)


@exercise.mistake
def positions_in_every_block(self, tokens, mask=None):
    """The positions were added again before every block. The residual connections carry on what was
    added once: how often must a word be told where it stands?"""
    x = self.embedding(tokens)
    for block in self.blocks:
        x = block(x + self.places(tokens), mask)
    return self.last_norm(x)


@exercise.mistake(step="embed", raises=RuntimeError)
def positions_of_the_wrong_length(self, tokens):
    """The positions of all `max_length` places were added to a sentence that is shorter. How many
    rows of them are there words for?"""
    embedding = self.embedding
    root = embedding.table.shape[-1] ** 0.5
    return root * embedding.table[tokens] + embedding.positions


@exercise.mistake(step="embed", raises=RuntimeError)
def positions_on_the_first_axis(self, tokens):
    """Right for one sentence, not for a batch: the places were counted on the first axis, where a
    batch has its sentences. Which axis from the end are the words on?"""
    words = self.embedding(tokens) - self.places(tokens)
    return words + self.embedding.positions[: len(tokens)]


@exercise.mistake(raises=TypeError)
def mask_for_the_embedding(self, tokens, mask=None):
    """The embedding was given something beside the tokens. It looks at one token at a time, so it
    needs no mask, and it knows the places already."""
    return self.last_norm(self.run(self.embedding(tokens, mask), mask))


@exercise.mistake(step="run", raises=NotImplementedError)
def list_called(self, x, mask):
    """`self.blocks` is a list of modules, and a list cannot be called. How do you reach the blocks
    in it, one after the other?"""
    return self.blocks(x, mask)


@exercise.mistake(step="run")
def no_blocks(self, x, mask):
    """No block was called: the words were looked up, and returned. What are `self.blocks` for?"""
    return x


@exercise.mistake(step="run")
def first_block_alone(self, x, mask):
    """Only the first block was used. Is there a `return` inside the loop, which ends it in the
    first round?"""
    return self.blocks[0](x, mask)


@exercise.mistake(step="run")
def last_block_alone(self, x, mask):
    """Only the last block counts: each one read the embedding, and its result was replaced by the
    next. What should a block read, and under which name is that kept?"""
    return self.blocks[-1](x, mask)


@exercise.mistake(step="run")
def one_block_for_all(self, x, mask):
    """One block was called again and again in the place of all. Each has weights of its own: which
    one belongs to which round?"""
    for _ in self.blocks:
        x = self.blocks[0](x, mask)
    return x


@exercise.mistake(step="run")
def blocks_in_reverse(self, x, mask):
    """The words went through the blocks from the last to the first. Which one reads the
    embedding?"""
    for block in reversed(self.blocks):
        x = block(x, mask)
    return x


@exercise.mistake(step="run")
def added_around_blocks(self, x, mask):
    """The words were added to what each block returned. The residual connections are inside the
    blocks, two in each: does the stack need another?"""
    for block in self.blocks:
        x = x + block(x, mask)
    return x


@exercise.mistake(step="run")
def blocks_side_by_side(self, x, mask):
    """Every block read the embedding, and their results were added up. Where in the figure does the
    second block take its words from?"""
    return sum(block(x, mask) for block in self.blocks)


stock.ignored(exercise)


@exercise.mistake(step="run")
def mask_for_the_first_block(self, x, mask):
    """Only the first block was given the mask, and the later ones saw everything. What is hidden
    once must stay hidden: in which rounds is the mask needed?"""
    for block in self.blocks:
        x, mask = block(x, mask), None
    return x


stock.mask_inverted(exercise)


@exercise.mistake(step="finish")
def no_last_norm(self, x):
    """Right for post-norm. For pre-norm the sums come out as large as they have grown: what waits
    under `self` for the end of the stack?"""
    return x


@exercise.mistake
class LastNormInTheLoop(InSteps):
    """Right for post-norm. For pre-norm, the last norm was called after each block: is its line
    inside the loop?"""

    def run(self, x, mask):
        for block in self.blocks:
            x = self.last_norm(block(x, mask))
        return x

    def finish(self, x):
        return x


@exercise.mistake
def last_norm_first(self, tokens, mask=None):
    """The last norm was applied to the embeddings, before the blocks. What does it normalise, if in
    pre-norm blocks nothing normalises the sum of all that was added?"""
    x = self.last_norm(self.embedding(tokens))
    return reduce(lambda x, block: block(x, mask), self.blocks, x)


@exercise.mistake
class CausalByDefault(Encoder):
    """Without a mask, each word saw the words before it only, as in a decoder. What may a word of
    the source see?"""

    def forward(self, tokens, mask=None):
        if mask is None:
            n = tokens.shape[-1]
            mask = torch.ones(n, n, dtype=torch.bool, device=tokens.device).tril()
        return super().forward(tokens, mask)


@exercise.alternative
class Spelled(Encoder):
    def forward(self, tokens, mask=None):
        table, positions = self.embedding.table, self.embedding.positions
        n, d_model = tokens.size(-1), table.size(-1)
        x = F.embedding(tokens, table).mul(d_model**0.5).add(positions[:n])
        for i in range(len(self.blocks)):
            x = self.blocks[i].forward(x, mask=mask)
        return self.last_norm(x) if list(self.last_norm.parameters()) else x
