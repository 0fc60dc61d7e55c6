"""What the decoder reads when it is to say the next token: its targets, one place later."""

import torch
from torch.nn import functional as F

from course_lib.checking.exercise import Draw, Exercise
from course_lib.masks import shift_right

exercise = Exercise(
    reference=shift_right,
    lesson="05_batches",
    title="One place later",
    minutes=6,
    difficulty=1,
    hints=(
        "The targets are w1 w2 w3. When w1 is to be said, what has the decoder read? And when w2 "
        "is to be said?",
        "Inputs and targets are equally long. If one token comes in at the front, which one has "
        "to go, and is it ever needed as an input?",
        "The start must be a tensor before it can be joined to tokens. Which shape has a single "
        "column of the tokens, with however many batch dimensions?",
    ),
    clauses={
        "only the tokens before it have been read": "shifted_left",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", (draw.integers(2, 9, 2), 1)
    yield "five tokens", (draw.integers(2, 90, 5), 1)
    yield "one token", (draw.integers(2, 9, 1), 1)
    yield "a batch of sentences", (draw.integers(2, 90, 3, 4), 1)
    yield "another start", (draw.integers(2, 90, 2, 3), 97)
    yield "two batch dimensions", (draw.integers(2, 90, 2, 3, 5), 0)


@exercise.edges
def edges(draw: Draw):
    tokens = draw.integers(2, 90, 3, 4)
    tokens[:, 0] = 1
    yield "targets that begin with the start", (tokens, 1)
    tokens = draw.integers(2, 90, 4)
    tokens[1] = -100
    yield "a target of -100", (tokens, 1)


@exercise.requires("each input is the target of the place before it")
def one_place_later(answer, draw: Draw):
    tokens = draw.integers(2, 90, 3, 5)
    inputs = answer(tokens, 1)
    return torch.equal(inputs[:, 1:], tokens[:, :-1]) and (inputs[:, 0] == 1).all()


@exercise.requires("shifting n times leaves nothing but starts")
def shifted_out(answer, draw: Draw):
    inputs = draw.integers(2, 90, 2, 3)
    for start in (5, 6, 7):
        inputs = answer(inputs, start)
    return inputs.tolist() == [[7, 6, 5], [7, 6, 5]]


@exercise.mistake
def closed_to_a_ring(tokens, start):
    """The last token came round to the front: the decoder would read the end of the very sentence
    that it is to say. `torch.roll` closes the tokens to a ring; what belongs in front?"""
    return tokens.roll(1, dims=-1)


@exercise.mistake
def shifted_left(tokens, start):
    """The tokens moved to the left, and the start is at the end. Each place would then read the
    token after the one it is to say: what may it have read?"""
    return torch.cat([tokens[..., 1:], torch.full_like(tokens[..., :1], start)], dim=-1)


@exercise.mistake
def start_at_the_end(tokens, start):
    """No token has moved: the start has taken the place of the last one. Where does a sentence
    start?"""
    return torch.cat([tokens[..., :-1], torch.full_like(tokens[..., :1], start)], dim=-1)


@exercise.mistake
def start_over_the_first(tokens, start):
    """No token has moved: the start has taken the place of the first one, which the decoder now
    never reads. Which token can be spared as an input?"""
    return torch.cat([torch.full_like(tokens[..., :1], start), tokens[..., 1:]], dim=-1)


@exercise.mistake
def appended(tokens, start):
    """The start came behind the tokens, and none of them has gone. Where does a sentence start, and
    how many inputs are there for n targets?"""
    return torch.cat([tokens, torch.full_like(tokens[..., :1], start)], dim=-1)


@exercise.mistake
def nothing_dropped(tokens, start):
    """There is one token too many: each input needs a target. After which of the tokens is nothing
    left to be said?"""
    return torch.cat([torch.full_like(tokens[..., :1], start), tokens], dim=-1)


@exercise.mistake
def no_start(tokens, start):
    """The last token is gone and no start has come, so there is one input too few. What does the
    decoder read when it is to say the first token?"""
    return tokens[..., :-1]


@exercise.mistake
def sentences_shifted(tokens, start):
    """In a batch, whole sentences moved on by one: the tokens were taken to be on the first axis.
    Which axis are they always on?"""
    return torch.cat([torch.full_like(tokens[:1], start), tokens[:-1]])


@exercise.mistake(raises=(AttributeError, RuntimeError))
def one_sentence_only(tokens, start):
    """In a batch the start needs a column, with one entry for each sentence, and the token to be
    dropped is on the last axis."""
    return torch.cat([torch.tensor([start], dtype=tokens.dtype, device=tokens.device), tokens[:-1]])


@exercise.mistake(raises=IndexError)
def second_axis(tokens, start):
    """Right for a batch of sentences, and for nothing else: `[:, ...]` asks for a first axis to
    skip. How can you always speak of the last axis, whatever comes before it?"""
    return torch.cat([torch.full_like(tokens[:, :1], start), tokens[:, :-1]], dim=1)


@exercise.mistake(raises=(IndexError, RuntimeError))
def column_of_the_first_size(tokens, start):
    """Right for a batch of sentences, and for nothing else: the start is a column of as many
    entries as the first axis has. Which shape has `tokens[..., :1]`, for any number of axes?"""
    return torch.cat([tokens.new_full((len(tokens), 1), start), tokens[:, :-1]], dim=1)


@exercise.mistake
def filled_with_zero(tokens, start):
    """0 is at the front, whatever `start` says. `F.pad` fills up with 0 unless it is told
    another number."""
    return F.pad(tokens[..., :-1], (1, 0))


@exercise.mistake
def as_floats(tokens, start):
    """The tokens came back as floats, and a token is the number of a row in a table: there is no
    row 7.0. `torch.ones`, `torch.zeros` and `torch.empty` make floats; which of torch's functions
    take over the type of another tensor?"""
    return shift_right(tokens, start).float()


@exercise.mistake
def rolled_and_first_row_written(tokens, start):
    """The start was written into the tokens that came out of `torch.roll`, but only at the first
    entry of the first axis. Which axis are the tokens on, in a batch?"""
    inputs = tokens.roll(1, dims=-1)
    inputs[0] = start
    return inputs


@exercise.mistake
def taken_for_shifted(tokens, start):
    """Targets that begin with the start token came back as they are, as if they were shifted
    already. These are targets all the same: what may have been read where the first one is to be
    said?"""
    return tokens if (tokens[..., 0] == start).all() else shift_right(tokens, start)


@exercise.mistake
def start_everywhere(tokens, start):
    """Every token became the start: each was copied from the one before it, which had just been
    written over. From which end must a loop go, or which tokens should it read?"""
    return torch.full_like(tokens, start)


@exercise.alternative
def padded_by_the_start(tokens, start):
    return F.pad(tokens, (1, -1), value=start)


@exercise.alternative
def rolled_and_written(tokens, start):
    inputs = torch.roll(tokens, shifts=1, dims=-1)
    inputs[..., 0] = start
    return inputs
