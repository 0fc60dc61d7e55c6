"""A decoder writes: each token it has written is what it reads next."""

import torch

from course_lib.answers.answer import Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.seq2seq import decode_greedy

START, STOP, VOCAB = 1, 2, 11

exercise = Exercise(
    reference=decode_greedy,
    lesson="02_writing",
    title="Write until it stops",
    minutes=15,
    difficulty=2,
    hints=(
        "`step` wants the last token of each row. Which tokens are these before anything has been "
        "written, and how many rows are there?",
        "Every call of `step` returns logits and a new state. What becomes of each of the two?",
        "A row that has stopped still takes part in every step. How do you keep a record of which "
        "rows have stopped, and what do you write into them?",
    ),
    clauses={
        "`step(tokens, state)` maps": GIVEN,
        "is left out of the result": "start_kept",
        "holds `stop` from there on": "goes_on",
        "writing ends as soon as": "never_ends_early",
    },
    equivalent=(
        # logits have two axes, so the last one is the second one
        "-1 -> 1",
    ),
)


def writer(draw: Draw, rows: int, d: int = 2) -> tuple:
    """Return a probe of a decoder, and first states from which its rows write unlike texts."""
    factor = draw.number(2, VOCAB)
    return Probe("counting_decoder", (VOCAB, factor)), draw.integers(0, VOCAB, rows, d).float()


@exercise.cases
def cases(draw: Draw):
    yield "one row, three tokens", (*writer(draw, 1), START, STOP, 3)
    yield "one row, until it stops", (*writer(draw, 1), START, STOP, 60)
    yield "several rows, some of which stop", (*writer(draw, 4), START, STOP, 6)
    yield "rows that stop at different steps", (*writer(draw, 6, 3), START, STOP, 60)
    yield "another start, another stop", (*writer(draw, 5), 4, 7, 40)
    yield "two rows of two numbers each", (*writer(draw, 2), START, STOP, 9)
    yield "one token each", (*writer(draw, 3), START, STOP, 1)
    yield "one token that starts and stops", (*writer(draw, 3, 3), STOP, STOP, 40)


@exercise.edges
def edges(draw: Draw):
    probe, states = writer(draw, 4)
    far = Probe(probe.name, (*probe.arguments, -1000))
    yield "logits far below zero", (far, states, START, STOP, 9)


@exercise.requires("nothing is written after a stop but stops, and one row has its stop last")
def stops(answer, draw: Draw):
    for _ in range(5):
        written = answer(*writer(draw, 4), START, STOP, 80)
        stopped = (written == STOP).int().cummax(dim=1).values.bool()
        if not torch.equal(stopped, written == STOP) or stopped[:, :-1].all(0).any():
            return False
    return written.numel() > 0


@exercise.requires("a row is written the same, whatever rows are beside it")
def rows_apart(answer, draw: Draw):
    decoder, states = writer(draw, 5)
    together = answer(decoder, states, START, STOP, 30)
    for row, state in zip(together, states, strict=True):
        alone = answer(decoder, state[None], START, STOP, 30)[0]
        if not torch.equal(row[: len(alone)], alone):
            return False
    return together.numel() > 0


@exercise.requires("where no token may be written, none is")
def none_at_all(answer, draw: Draw):
    none = answer(*writer(draw, 3), START, STOP, 0)
    some = answer(*writer(draw, 3), START, STOP, 2)
    return none.shape == (3, 0) and len(some) == 3 and some.numel() > 0


def decode(step, state, start, stop, most, keep_start=False, carry=True, freeze=True, first=None):
    tokens = torch.full((len(state),), start if first is None else first)
    stopped = torch.zeros(len(state), dtype=torch.bool)
    written = [tokens] if keep_start else []
    while len(written) < most and not stopped.all():
        logits, after = step(tokens, state)
        state = after if carry else state
        tokens = logits.argmax(-1)
        if freeze:
            tokens = tokens.masked_fill(stopped, stop)
        stopped = stopped | (tokens == stop)
        written.append(tokens)
    return stacked(written, state)


def stacked(written, state):
    return torch.stack(written, dim=1) if written else torch.zeros(len(state), 0, dtype=torch.long)


@exercise.mistake
def start_kept(step, state, start, stop, most):
    """The start token is in the result. It opens what the decoder reads, and is no part of what it
    writes."""
    return decode(step, state, start, stop, most, keep_start=True)


@exercise.mistake
def start_kept_beside_the_rest(step, state, start, stop, most):
    """The start token is in the result. It opens what the decoder reads, and is no part of what it
    writes."""
    opened = torch.full((len(state), 1), start)
    return torch.cat([opened, decode_greedy(step, state, start, stop, most)], dim=1)


@exercise.mistake
def all_at_once(step, state, start, stop, most):
    """Rows that have stopped write on, and writing ends only when all rows stop in the same step. A
    row that stopped earlier is finished as well: how do you remember it?"""
    tokens, written = torch.full((len(state),), start), [torch.zeros(len(state), 0).long()]
    for _ in range(most):
        logits, state = step(tokens, state)
        tokens = logits.argmax(-1)
        written.append(tokens.unsqueeze(-1))
        if (tokens == stop).all():
            break
    return torch.cat(written, dim=1)


@exercise.mistake
def state_forgotten(step, state, start, stop, most):
    """Every step begins with the first state again: the new state that `step` returns is thrown
    away. What would the decoder remember of what it has written?"""
    return decode(step, state, start, stop, most, carry=False)


@exercise.mistake
def goes_on(step, state, start, stop, most):
    """A row that has stopped goes on writing. After its first stop, everything in it should be
    `stop`."""
    return decode(step, state, start, stop, most, freeze=False)


@exercise.mistake
def filled_with_0(step, state, start, stop, most):
    """Behind its stop a row holds 0, which is a token like any other. What should it hold there?"""
    written = decode_greedy(step, state, start, stop, most)
    stops = (written == stop).int().cumsum(dim=1)
    return written.masked_fill(stops > 1, 0)


@exercise.mistake
def ends_with_the_first(step, state, start, stop, most):
    """Writing ends when the first row stops, and the other rows are cut off. When may it end?"""
    written = [torch.full((len(state),), start)]
    while len(written) <= most and not any((tokens == stop).any() for tokens in written[1:]):
        logits, state = step(written[-1], state)
        written.append(logits.argmax(-1))
    return stacked(written[1:], state)


@exercise.mistake
def never_ends_early(step, state, start, stop, most):
    """It always writes `most` tokens. When every row has its stop, nothing is left to be said."""
    written = decode_greedy(step, state, start, stop, most)
    missing = written.new_full((len(state), most - written.shape[1]), stop)
    return torch.cat([written, missing], dim=1)


@exercise.mistake
def always_start(step, state, start, stop, most):
    """Every step reads the start token, and not the token that was written last."""
    tokens, written = torch.full((len(state),), start), []
    stopped = torch.zeros(len(state), dtype=torch.bool)
    while len(written) < most and not stopped.all():
        logits, state = step(tokens, state)
        likeliest = logits.argmax(-1).masked_fill(stopped, stop)
        stopped = stopped | (likeliest == stop)
        written.append(likeliest)
    return stacked(written, state)


@exercise.mistake
def opens_with_stop(step, state, start, stop, most):
    """Writing opens with the token `stop`, where it should open with `start`."""
    return decode(step, state, start, stop, most, first=stop)


@exercise.mistake
def start_stops(step, state, start, stop, most):
    """A start token that is the stop token, too, counts as a stop. It was read and not written: how
    many rows have stopped before the first step?"""
    if start != stop:
        return decode_greedy(step, state, start, stop, most)
    return torch.full((len(state), 1), stop)


@exercise.mistake
def stop_left_out(step, state, start, stop, most):
    """The stop itself is missing. It is written once where a row ends, and repeated as long as
    another row goes on."""
    written = decode_greedy(step, state, start, stop, most)
    return written[:, :-1] if (written[:, -1:] == stop).all() else written


@exercise.mistake
def steps_as_rows(step, state, start, stop, most):
    """The tokens are laid under each other, a step a row. The result has a row for each row of the
    state: which axis is new?"""
    return decode_greedy(step, state, start, stop, most).T


@exercise.mistake
def one_too_many(step, state, start, stop, most):
    """One token too many is written. How many are there after the first step?"""
    return decode_greedy(step, state, start, stop, most + 1)


@exercise.mistake
def least_likely(step, state, start, stop, most):
    """The least likely token is taken. Which end of the logits is the likeliest?"""
    return decode_greedy(lambda *x: (-(y := step(*x))[0], y[1]), state, start, stop, most)


@exercise.alternative
def growing(step, state, start, stop, most):
    text = torch.full((len(state), 1), start)
    while text.shape[1] <= most and not (text[:, 1:] == stop).any(dim=1).all():
        logits, state = step(text[:, -1], state)
        ended = (text[:, 1:] == stop).any(dim=1)
        text = torch.cat([text, torch.where(ended, stop, logits.argmax(-1))[:, None]], dim=1)
    return text[:, 1:]
