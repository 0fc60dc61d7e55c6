"""Writing: the decoder reads what it has written, and appends what it finds likeliest."""

import torch

from course_lib.answers.answer import Probe
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.transformer import greedy

VOCAB, START, STOP = 13, 1, 10
STOPS = torch.tensor([0, STOP, 12])  # of all cases: no model writes one that is not its stop


def up_to_stop(written):
    """Repeat each row's first stop after it: what is there otherwise means nothing."""
    if not isinstance(written, torch.Tensor) or written.dim() != 2:
        return written
    stops = torch.isin(written, STOPS.to(written.device))
    first = stops & (stops.cumsum(-1) == 1)
    after = stops.cumsum(-1) > 0
    return torch.where(after, (written * first).sum(-1, keepdim=True), written)


exercise = Exercise(
    reference=greedy,
    lesson="08",
    title="Greedy decoding",
    minutes=10,
    difficulty=2,
    canonical=up_to_stop,
    hints=(
        "Before anything is written, each row of the target holds one token. Which one, and how "
        "many rows are there?",
        "The decoder returns a state for every place of the target. Which place says what comes "
        "next, and what makes logits of its state?",
        "Rows stop at different steps, and the loop goes on until the last one has. How do you "
        "find out that every row has a stop somewhere?",
        "The mask of the source hides padding. Which two calls look at the source?",
    ),
    clauses={
        "without the start": "start_kept",
        "when each row has a `stop`": "first_stop_ends_all",
        "or `most` tokens": "one_too_many",
        "means nothing": GIVEN,
    },
    equivalent=(
        # a target has two axes, so the last one is the second one
        "-1 -> 1",
    ),
)


def translator(draw: Draw, rows: int, n: int, stop: int = STOP) -> tuple:
    """Return a probe of an encoder-decoder, and sources from which it writes unlike texts."""
    probe = Probe("counting_translator", (VOCAB, draw.number(2, 7), stop))
    return probe, draw.integers(0, STOP, rows, n)


@exercise.cases
def cases(draw: Draw):
    yield "one row, three tokens", (*translator(draw, 1, 4), START, STOP, 3)
    yield "one row, until it stops", (*translator(draw, 1, 3), START, STOP, 40)
    yield "rows that stop at different steps", (*translator(draw, 6, 3), START, STOP, 40)
    yield "several rows, too little room", (*translator(draw, 5, 2), START, STOP, 2)
    yield "another start, another stop", (*translator(draw, 4, 3, 12), 5, 12, 30)
    padding = torch.tensor([[[True, True, True, False]], [[True, False, False, False]]])
    yield "padded sources", (*translator(draw, 2, 4), START, STOP, 25, padding)
    yield "one mask for all", (*translator(draw, 3, 4), START, STOP, 25, padding[1:])
    yield "start and stop are one token", (*translator(draw, 3, 4), STOP, STOP, 20)
    yield "as many rows as words", (*translator(draw, 3, 3), START, STOP, 9)
    yield "one word in each source", (*translator(draw, 3, 1), START, STOP, 12)
    yield "one token each", (*translator(draw, 3, 4), START, STOP, 1)
    yield "no token at all", (*translator(draw, 3, 2), START, STOP, 0)
    yield "the stop is token 0", (*translator(draw, 4, 3, 0), START, 0, 40)


@exercise.requires("a row is written the same, whatever rows are beside it")
def rows_apart(answer, draw: Draw):
    model, sources = translator(draw, 5, 3)
    together = up_to_stop(answer(model, sources, START, STOP, 30))
    for row, source in zip(together, sources, strict=True):
        alone = up_to_stop(answer(model, source[None], START, STOP, 30))[0]
        if not torch.equal(row[: len(alone)], alone):
            return False
    return together.numel() > 0


@exercise.requires("it ends with the step in which the last row stops, and not before")
def ends(answer, draw: Draw):
    for _ in range(5):
        written = answer(*translator(draw, 4, 3), START, STOP, 60)
        stopped = (written == STOP).cumsum(-1) > 0
        if not stopped[:, -1].all() or stopped[:, :-1].all(0).any():
            return False
    return True


def write(
    model,
    source,
    start,
    stop,
    most,
    encoder_mask,
    decoder_mask,
    read=lambda target: target,
    place=-1,
    ended=lambda target, stop: (target[:, 1:] == stop).any(-1).all(),
    logits=lambda model, states: model.output(states),
):
    memory = model.encoder(source, encoder_mask)
    target = torch.full_like(source[:, :1], start)
    for _ in range(most):
        if ended(target, stop):
            break
        states = model.decoder(read(target), memory, decoder_mask)
        following = logits(model, states[:, place]).argmax(-1)
        target = torch.cat([target, following[:, None]], dim=1)
    return target


@exercise.mistake
def start_kept(model, source, start, stop, most, source_mask=None):
    """The start is in the result. It tells the decoder to begin, and is no word of the
    translation."""
    return write(model, source, start, stop, most, source_mask, source_mask)


@exercise.mistake
def first_place(model, source, start, stop, most, source_mask=None):
    """The next token was read from the first place of the target. Each place predicts the token
    after it: which place predicts the one that is still missing?"""
    return write(model, source, start, stop, most, source_mask, source_mask, place=0)[:, 1:]


@exercise.mistake
def last_token_alone(model, source, start, stop, most, source_mask=None):
    """The decoder was shown the last token alone, as an RNN would be. It keeps no state: how does
    it know the rest of what has been written?"""
    found = write(
        model, source, start, stop, most, source_mask, source_mask, read=lambda x: x[:, -1:]
    )
    return found[:, 1:]


@exercise.mistake
def first_stop_ends_all(model, source, start, stop, most, source_mask=None):
    """Writing ended when the first row had its stop. The others had more to say: when is the whole
    batch finished?"""

    def ended(target, stop):
        return (target[:, 1:] == stop).any()

    return write(model, source, start, stop, most, source_mask, source_mask, ended=ended)[:, 1:]


@exercise.mistake
def all_at_once(model, source, start, stop, most, source_mask=None):
    """Writing ends only when all rows stop in the same step. A row that stopped earlier is finished
    as well: how do you remember it?"""

    def ended(target, stop):
        return target.shape[1] > 1 and (target[:, -1] == stop).all()

    return write(model, source, start, stop, most, source_mask, source_mask, ended=ended)[:, 1:]


@exercise.mistake
def last_stop_cut_off(model, source, start, stop, most, source_mask=None):
    """The last step is missing: writing ended before the stop was appended. The stop is a token of
    the result, too."""
    written = greedy(model, source, start, stop, most, source_mask)
    return written[:, :-1] if (written == stop).any(-1).all() else written


@exercise.mistake
def never_stops(model, source, start, stop, most, source_mask=None):
    """It always writes `most` tokens. When every row has a stop, nothing is left to be said."""

    def ended(target, stop):
        return False

    return write(model, source, start, stop, most, source_mask, source_mask, ended=ended)[:, 1:]


@exercise.mistake
def one_too_few(model, source, start, stop, most, source_mask=None):
    """It ends one token early: `most` counts what is written, and the start is not."""
    return write(model, source, start, stop, most - 1, source_mask, source_mask)[:, 1:]


@exercise.mistake
def one_too_many(model, source, start, stop, most, source_mask=None):
    """It writes one token more than `most`. Is the start among those that you count?"""
    return write(model, source, start, stop, most + 1, source_mask, source_mask)[:, 1:]


stock.ignored(
    exercise,
    "source_mask",
    "The mask of the source changes nothing: padding was read as if it were words. Which two calls "
    "look at the source?",
)


@exercise.mistake
def encoder_without_mask(model, source, start, stop, most, source_mask=None):
    """The encoder was not told which words are padding: its states of real words have read them.
    The decoder's mask comes too late for that."""
    return write(model, source, start, stop, most, None, source_mask)[:, 1:]


@exercise.mistake
def decoder_without_mask(model, source, start, stop, most, source_mask=None):
    """The decoder was not told which of the encoder's states are padding, and looked at them. Its
    cross-attention needs the source's mask too."""
    return write(model, source, start, stop, most, source_mask, None)[:, 1:]


@exercise.mistake
def stop_is_zero(model, source, start, stop, most, source_mask=None):
    """It stops on the token 0, or another fixed one, and not on `stop`. Every vocabulary has its
    own: which argument says which?"""
    return write(model, source, start, 0, most, source_mask, source_mask)[:, 1:]


@exercise.mistake
def no_output(model, source, start, stop, most, source_mask=None):
    """The largest entry of the decoder's state was taken for the likeliest token. A state has
    d_model entries, and none of them is a token's: what makes logits of it?"""

    def states_themselves(model, states):
        return states

    written = write(
        model, source, start, stop, most, source_mask, source_mask, logits=states_themselves
    )
    return written[:, 1:]


@exercise.mistake
def zero_is_false(model, source, start, stop, most, source_mask=None):
    """`if stop` is False for the token 0, which is as good a stop as any. What is to be compared
    with it?"""
    if stop:
        return greedy(model, source, start, stop, most, source_mask)
    return never_stops(model, source, start, stop, most, source_mask)


@exercise.mistake
def larger_tokens_stop(model, source, start, stop, most, source_mask=None):
    """Tokens above `stop` were taken for stops as well. `stop` is one token of the vocabulary, and
    may have others behind it."""

    def ended(target, stop):
        return (target[:, 1:] >= stop).any(-1).all()

    return write(model, source, start, stop, most, source_mask, source_mask, ended=ended)[:, 1:]


@exercise.mistake
def begins_with_the_source(model, source, start, stop, most, source_mask=None):
    """It begins with the first word of the source, not with the start: a decoder that has written
    nothing has only the start to read."""
    memory = model.encoder(source, source_mask)
    target = source[:, :1]
    for _ in range(most):
        if (target[:, 1:] == stop).any(-1).all():
            break
        states = model.decoder(target, memory, source_mask)
        target = torch.cat([target, model.output(states[:, -1:]).argmax(-1)], dim=-1)
    return target[:, 1:]


@exercise.alternative
def whole_model_each_time(model, source, start, stop, most, source_mask=None):
    written = source.new_full((len(source), 1), start)
    stopped = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    for _ in range(most):
        if stopped.all():
            break
        logits = model(source, written, source_mask)[:, -1]
        following = logits.argmax(-1).masked_fill(stopped, stop)
        stopped = stopped | (following == stop)
        written = torch.cat([written, following.unsqueeze(-1)], dim=1)
    return written[:, 1:]
