"""The whole of it: a source is read, a target is written."""

import torch
from torch.nn import functional as F

from course_lib.answers.answer import Named, Probe
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.checking.forbidden import TRANSFORMER
from course_lib.masks import causal_mask, shift_right
from course_lib.transformer import Transformer

exercise = Exercise(
    # no case has more tokens than there is room for
    equivalent=("max_length ignored",),
    reference=Transformer,
    method="forward",
    lesson="08",
    title="The whole Transformer",
    minutes=5,
    difficulty=2,
    hints=(
        "The model keeps three parts under `self`, and you have built them all. In which order do "
        "the source and the target meet them, and what does each return?",
        "`source_mask` says which source words are real. Two of the three parts look at source "
        "words: which?",
        "Read `Decoder.forward`. Who hides the target's future, and which arguments are left for "
        "you to hand over, in which order?",
    ),
    clauses={
        "one matrix is both embeddings and the output layer": "scored_by_the_table",
        "otherwise there are three": "scored_by_the_decoders_table",
        "are as in `Encoder` and `Decoder`": "two layers, another encoder_block",
        "is already shifted right": "shifted_again",
        "is as in `MultiHeadAttention`": "one row of mask for each sentence",
        "Raises ValueError for an unknown `norm`": GIVEN,
        "Raises ValueError for more tokens": GIVEN,
    },
    forbidden=TRANSFORMER,
)


@exercise.cases
def cases(draw: Draw):
    yield (
        "three words in, two words out",
        (draw.integers(0, 5, 3), draw.integers(0, 5, 2)),
        (5, 1, 4, 2, 6, 4),
    )
    yield (
        "three matrices, norm before the layers",
        (draw.integers(0, 7, 3), draw.integers(0, 7, 4)),
        (7, 1, 4, 1, 3, 6, "pre", False),
    )
    yield (
        "as many words out as in, some hidden",
        (draw.integers(0, 6, 4), draw.integers(0, 6, 4), torch.tensor([[True, False, True, True]])),
        (6, 1, 4, 2, 5, 7),
    )
    padding = torch.tensor([[[True, True, True, False]], [[False, False, False, False]]])
    yield (
        "one row of mask for each sentence, one of them empty",
        (draw.integers(0, 8, 2, 4), draw.integers(0, 8, 2, 3), padding),
        (8, 1, 6, 3, 4, 5, "post", False),
    )
    yield (
        "two batch dimensions",
        (draw.integers(0, 5, 3, 2, 2), draw.integers(0, 5, 3, 2, 4)),
        (5, 1, 4, 2, 3, 6, "pre"),
    )
    yield "one word in", (draw.integers(0, 5, 1), draw.integers(0, 5, 3)), (5, 1, 4, 2, 6, 4)
    yield "one word out", (draw.integers(0, 5, 3), draw.integers(0, 5, 1)), (5, 1, 4, 2, 6, 4)
    blocks = {"encoder_block": "sum_of_seen", "decoder_block": "sum_of_seen_and_memory"}
    for name, layer in blocks.items():
        yield (
            f"two layers, another {name}",
            (draw.integers(0, 7, 3), draw.integers(0, 7, 3), draw.mask(1, 3)),
            (7, 2, 4, 2, 5, 6, "post", True, Named(name, Probe(layer))),
        )


@exercise.requires("no place sees a later target word, and each sees those before it and its own")
def never_looks_ahead(answer, draw: Draw):
    source, target = torch.tensor([3, 0, 4]), torch.tensor([1, 2, 0, 4])
    changed, build = torch.tensor([1, 2, 3, 4]), (5, 1, 6, 2, 4, 7)
    plain, again = (answer(source, words, build=build) for words in (target, changed))
    moved = (again - plain).abs().amax(-1) > 1e-6
    return moved.tolist() == [False, False, True, True]


@exercise.requires("a source word that is hidden changes nothing, one that is shown every score")
def hidden_source_word(answer, draw: Draw):
    source, changed = torch.tensor([3, 0, 4]), torch.tensor([3, 2, 4])
    target, build = torch.tensor([1, 2, 0, 4]), (5, 1, 6, 2, 4, 7, "pre", False)
    mask = torch.tensor([[True, False, True]])
    hidden = [answer(words, target, mask, build=build) for words in (source, changed)]
    shown = [answer(words, target, build=build) for words in (source, changed)]
    moved = [((b - a).abs().amax(-1) > 1e-5).tolist() for a, b in (hidden, shown)]
    return moved == [[False] * 4, [True] * 4]


@exercise.steps
class InSteps(Transformer):
    """The model in steps, so that a mistake is one step gone wrong."""

    def read(self, source, mask):
        return self.encoder(source, mask)

    def write(self, target, memory, mask):
        return self.decoder(target, memory, mask)

    def score(self, states):
        return self.output(states)

    def forward(self, source, target, source_mask=None):
        memory = self.read(source, source_mask)
        return self.score(self.write(target, memory, source_mask))


@exercise.mistake(raises=ValueError)
def target_read(self, source, target, source_mask=None):
    """The encoder read the target, so the target was found in the memory, and the source was lost.
    Who reads which?"""
    return InSteps.forward(self, target, target, source_mask)


@exercise.mistake(raises=ValueError)
def exchanged(self, source, target, source_mask=None):
    """Source and target have changed places: the encoder read what is to be written. Which of the
    two has a score at each of its places?"""
    return InSteps.forward(self, target, source, source_mask)


@exercise.mistake
def source_twice(self, source, target, source_mask=None):
    """The decoder was given the source's tokens as its own. What is it to write on, and what has it
    in the memory already?"""
    return InSteps.forward(self, source, source, source_mask)


@exercise.mistake(step="read")
def encoder_unmasked(self, source, mask):
    """The encoder was not given `source_mask`: real words looked at padding while the source was
    being read. Hiding it from the decoder comes too late."""
    return self.encoder(source)


@exercise.mistake(step="write")
def decoder_unmasked(self, target, memory, mask):
    """The decoder was not given `source_mask`: its words looked at the source's padding. A place
    that the encoder hid still has a state in the memory."""
    return self.decoder(target, memory)


stock.ignored(exercise, "source_mask")
stock.mask_inverted(exercise, "source_mask")


@exercise.mistake(step="read")
def source_read_causally(self, source, mask):
    """The source was read under a causal mask. All of it is there before the first word is written:
    is there a future to hide?"""
    causal = causal_mask(source.shape[-1])
    return self.encoder(source, causal if mask is None else causal & mask)


@exercise.mistake(step="write", raises=TypeError)
def causal_mask_handed_over(self, target, memory, mask):
    """The decoder was given one argument too many, such as a causal mask. Read its `forward`: it
    hides the future itself, and asks for the memory's mask only."""
    causal = causal_mask(target.shape[-1])
    return self.decoder(target, memory, causal, mask)


@exercise.mistake(step="write", raises=(IndexError, ValueError))
def memory_first(self, target, memory, mask):
    """States went in where tokens were expected: encoder and decoder look their tokens up
    themselves. Which comes first in `Decoder.forward`, the target or the memory?"""
    return self.decoder(memory, target, mask)


@exercise.mistake(step="write")
def future_seen(self, target, memory, mask):
    """The target saw its future: its words looked at each other without a causal mask. `Decoder`
    makes one when it is called; who makes it when its blocks are called one by one?"""
    x = self.decoder.embedding(target)
    for block in self.decoder.blocks:
        x = block(x, memory, None, mask)
    return self.decoder.last_norm(x)


@exercise.mistake(step="read")
def embedding_as_memory(self, source, mask):
    """The source was looked up, and not read: the memory is the embedding alone, and no block of
    the encoder was called."""
    return self.encoder.embedding(source)


@exercise.mistake(step="write")
def memory_scored(self, target, memory, mask):
    """The source's states were scored, and the decoder was left out. Which words are to be written,
    and where have they looked?"""
    return memory


@exercise.mistake(step="score")
def states_returned(self, states):
    """The decoder's states were returned: each has d_model numbers. How do they become a score for
    every token of the vocabulary?"""
    return states


@exercise.mistake(step="score")
def probabilities(self, states):
    """The scores were made into probabilities. The loss takes the scores as they are, and does that
    itself: what does the docstring ask for?"""
    return self.output(states).softmax(-1)


@exercise.mistake(step="score")
def log_probabilities(self, states):
    """The scores were made into logarithms of probabilities. The loss takes the scores as they are,
    and does that itself: what does the docstring ask for?"""
    return self.output(states).log_softmax(-1)


@exercise.mistake(step="score")
def chosen(self, states):
    """One token was chosen at each place. The scores are asked for: training needs to know how far
    away the others were."""
    return self.output(states).argmax(-1)


@exercise.mistake(step="score")
def last_place_alone(self, states):
    """Only the last place was scored. In training, all places are predicted at once: what keeps
    them from seeing what they are to predict?"""
    return self.output(states)[..., -1, :]


@exercise.mistake(step="score")
def scored_by_the_table(self, states):
    """Right where the matrices are tied. Where they are not, the scores have a matrix of their own:
    under which name does the model keep it?"""
    return states @ self.encoder.embedding.table.mT


@exercise.mistake(step="score")
def scored_by_the_decoders_table(self, states):
    """Right where the matrices are tied. Where they are not, the decoder's table is for reading
    tokens: under which name does the model keep the matrix that scores them?"""
    return states @ self.decoder.embedding.table.mT


@exercise.mistake(step="write")
def shifted_again(self, target, memory, mask):
    """The target was shifted right once more, so each place sees one token too few. What does the
    docstring say of the target that comes in?"""
    return self.decoder(shift_right(target, 0), memory, mask)


@exercise.mistake(step="write")
def shifted_behind_a_one(self, target, memory, mask):
    """The target was shifted right once more, behind token 1, so each place sees one token too few.
    Whoever calls this has shifted it: what does the docstring say?"""
    return self.decoder(shift_right(target, 1), memory, mask)


@exercise.mistake(step="write")
def shifted_behind_the_last_id(self, target, memory, mask):
    """The target was shifted right once more, behind the vocabulary's last token, so each place
    sees one token too few. What does the docstring say of the target that comes in?"""
    return self.decoder(shift_right(target, len(self.output.weight) - 1), memory, mask)


@exercise.mistake(step="write")
def closed_to_a_ring(self, target, memory, mask):
    """The target was shifted right once more, and its last token came round to the front. What does
    the docstring say of the target that comes in?"""
    return self.decoder(target.roll(1, -1), memory, mask)


@exercise.mistake(step="write")
def shifted_behind_its_first(self, target, memory, mask):
    """The target was shifted right once more, with its own first token in front: each place but the
    first sees one token too few. What does the docstring say of the target that comes in?"""
    return self.decoder(torch.cat([target[..., :1], target[..., :-1]], -1), memory, mask)


@exercise.mistake(step="write", raises=IndexError)
def last_token_cut_off(self, target, memory, mask):
    """The last target token was cut off, so its place has no score. Whoever calls this has shifted
    the target already: how many places come in, and how many should come out?"""
    return self.decoder(target[..., :-1], memory, mask)


@exercise.mistake
def memory_detached(self, source, target, source_mask=None):
    """The right scores, but the encoder never learns: the memory was cut off by `.detach()`,
    `.data` or `no_grad`. Through what else could the loss reach the encoder?"""
    memory = self.encoder(source, source_mask).detach()
    return self.output(self.decoder(target, memory, source_mask))


@exercise.alternative
class Spelled(Transformer):
    def forward(self, source, target, source_mask=None):
        memory, x = self.encoder.embedding(source), self.decoder.embedding(target)
        for block in self.encoder.blocks:
            memory = block(memory, source_mask)
        memory = self.encoder.last_norm(memory)
        n = target.shape[-1]
        past = torch.ones(n, n, dtype=torch.bool, device=target.device).tril()
        for block in self.decoder.blocks:
            x = block(x, memory, past, source_mask)
        return F.linear(self.decoder.last_norm(x), self.output.weight)
