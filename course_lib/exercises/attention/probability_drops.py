"""What an output depends on: replace a token, and see how far a probability falls."""

import torch

from course_lib.answers.answer import Probe
from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.occlusion import probability_drops

exercise = Exercise(
    reference=probability_drops,
    lesson="02",
    title="What does it depend on?",
    minutes=8,
    difficulty=2,
    hints=(
        "*cat* has three letters. How many sources must the model read, to learn what the second "
        "letter is worth? Which of its letters differ in them?",
        "`probabilities` takes a batch. How do you make a batch of equal copies of the source, and "
        "write another token into one place of each?",
        "A copy that has the old token in its place is no replacement. How do you leave that token "
        "out, before you count the copies?",
    ),
    clauses={
        "`probabilities` gives each source": GIVEN,
        "those replacements r that differ": "token_itself_included",
        "its drop is negative": "only_falls",
    },
    equivalent=(
        # the columns have one axis, so the last of two is the second
        "-1 -> 1",
    ),
)


def read(draw: Draw, length: int, written: int, vocab: int) -> tuple:
    """Draw a model, a source and all tokens of a vocabulary as replacements."""
    model = Probe("probabilities_of", (written, draw.number(1, 50)))
    return model, draw.integers(0, vocab, length), torch.arange(vocab)


@exercise.cases
def cases(draw: Draw):
    yield "one token, one probability", read(draw, 1, 1, 4)
    yield "three tokens, one probability", read(draw, 3, 1, 4)
    yield "two tokens, five probabilities", read(draw, 2, 5, 6)
    yield "as many tokens as probabilities", read(draw, 3, 3, 5)
    yield "as many tokens as replacements", read(draw, 4, 2, 4)
    model, source, _ = read(draw, 5, 3, 10)
    yield "replacements that the source has not", (model, source, torch.arange(10, 14))
    yield "replacements in another order", (model, source, torch.tensor([7, 2, 12, 5]))
    yield "a token that comes twice", (model, torch.tensor([4, 1, 4]), torch.arange(6))
    yield "one other token", (model, torch.tensor([1, 0, 0, 1]), torch.arange(2))


@exercise.edges
def edges(draw: Draw):
    yield "seventy replacements", read(draw, 2, 3, 70)


@exercise.requires("where a single other token is left, it is the difference of two readings")
def single(answer, draw: Draw):
    model, source, _ = read(draw, 4, 3, 2)
    drops = answer(model, source, torch.arange(2))
    before = model.make()(source[None])[0]
    for j in range(4):
        flipped = source.clone()
        flipped[j] = 1 - flipped[j]
        if not torch.allclose(drops[:, j], before - model.make()(flipped[None])[0], atol=1e-5):
            return False
    return True


def mean_fall(p, after):
    return p - after.mean(0)


def other_tokens(replacements, token):
    return replacements[replacements != token]


def as_they_are(copies, j):
    return copies


def drops_by(
    probabilities,
    source,
    replacements,
    *,
    fall=mean_fall,
    others=other_tokens,
    changed=as_they_are,
):
    """Compute the drops as the reference does, with one thing done otherwise."""
    [p] = probabilities(source[None])
    columns = []
    for j, token in enumerate(source):
        written = others(replacements, token)
        copies = source.repeat(len(written), 1)
        copies[:, j] = written
        columns.append(fall(p, probabilities(changed(copies, j))))
    return torch.stack(columns, dim=-1)


@exercise.mistake
def token_itself_included(probabilities, source, replacements):
    """A token was replaced by itself too, which changes nothing, so each drop is too near to 0.
    Which of the replacements are another token than the one in this place?"""
    return drops_by(probabilities, source, replacements, others=lambda all_, _: all_)


@exercise.mistake
def divided_by_all(probabilities, source, replacements):
    """The sum over the other tokens was divided by the number of all replacements, the token
    itself counted. How many copies did you read in this place?"""
    count = len(replacements)
    return drops_by(probabilities, source, replacements, fall=lambda p, q: p - q.sum(0) / count)


@exercise.mistake
def after_alone(probabilities, source, replacements):
    """These are the mean probabilities *after* the replacement. Asked for is how far they are below
    the probabilities of the source as it is."""
    return drops_by(probabilities, source, replacements, fall=lambda p, q: q.mean(0))


@exercise.mistake
def rises(probabilities, source, replacements):
    """The sign is turned round: a probability that falls has a positive drop. Which of the two is
    subtracted from which?"""
    return drops_by(probabilities, source, replacements, fall=lambda p, q: q.mean(0) - p)


@exercise.mistake
def only_falls(probabilities, source, replacements):
    """Rises were cut off at 0. A token may also stand in the way of an output: then replacing it
    raises the probability, and its drop is negative."""
    return drops_by(
        probabilities, source, replacements, fall=lambda p, q: (p - q.mean(0)).clamp(min=0)
    )


@exercise.mistake
def without_sign(probabilities, source, replacements):
    """The sign was dropped, so a rise looks like a fall. Where a probability rises, its drop is
    negative."""
    return drops_by(probabilities, source, replacements, fall=lambda p, q: (p - q.mean(0)).abs())


@exercise.mistake
def mean_of_distances(probabilities, source, replacements):
    """The distances were averaged, without their signs. One replacement raises the probability and
    another lowers it: which number says how far it falls on average?"""
    return drops_by(probabilities, source, replacements, fall=lambda p, q: (p - q).abs().mean(0))


@exercise.mistake
def largest_drop(probabilities, source, replacements):
    """Only the worst replacement counted. Asked for is the mean over all of them."""
    return drops_by(probabilities, source, replacements, fall=lambda p, q: p - q.amin(0))


@exercise.mistake
def one_replacement(probabilities, source, replacements):
    """Each token was replaced by one other token only. What one replacement does may be chance: the
    mean runs over all of them."""
    return drops_by(probabilities, source, replacements, fall=lambda p, q: p - q[0])


@exercise.mistake
def summed(probabilities, source, replacements):
    """The drops of all replacements were added up, and not divided by their number."""
    return drops_by(probabilities, source, replacements, fall=lambda p, q: (p - q).sum(0))


@exercise.mistake
def as_a_share(probabilities, source, replacements):
    """The drops were divided by the probability before. Asked for is the difference itself."""
    return drops_by(probabilities, source, replacements, fall=lambda p, q: (p - q.mean(0)) / p)


@exercise.mistake
def still_replaced(probabilities, source, replacements):
    """The places that were tried first stayed replaced, so later on nobody can tell which token the
    fall is due to. Each place is tried in a fresh copy of the source."""
    last = replacements[-1]

    def before(copies, j):
        copies[:, :j] = last
        return copies

    return drops_by(probabilities, source, replacements, changed=before)


@exercise.mistake
def everywhere(probabilities, source, replacements):
    """The replacement was written into every place at once. Which place does column j ask about?"""
    return drops_by(
        probabilities,
        source,
        replacements,
        changed=lambda copies, j: copies[:, j : j + 1].expand_as(copies),
    )


@exercise.mistake
def set_to_zero(probabilities, source, replacements):
    """The token was set to 0 in place of a replacement. 0 is a token like any other: here it is
    padding, or a letter. What should be written there?"""

    def zero(copies, j):
        copies[:, j] = 0
        return copies

    return drops_by(probabilities, source, replacements, changed=zero)


stock.with_result(
    exercise,
    "a_row_for_each_token",
    "The result lies on its side: a row is one of the things written, a column a token of the "
    "source. Along which axis do you stack the places?",
    lambda drops: drops.mT,
)
stock.with_result(
    exercise,
    "one_for_each_token",
    "The drops of all that was written were averaged. Each probability has a row of its own.",
    lambda drops: drops.mean(0),
)


@exercise.alternative
def one_source_at_a_time(probabilities, source, replacements):
    drops = []
    for j in range(len(source)):
        after = []
        for token in replacements.tolist():
            if token != source[j]:
                changed = source.clone()
                changed[j] = token
                after.append(probabilities(changed.unsqueeze(0))[0])
        drops.append(probabilities(source.unsqueeze(0))[0] - sum(after) / len(after))
    return torch.stack(drops).T


@exercise.alternative
def all_in_one_batch(probabilities, source, replacements):
    length, count = len(source), len(replacements)
    changed = source.repeat(length, count, 1)
    changed[torch.arange(length), :, torch.arange(length)] = replacements
    after = probabilities(changed.flatten(0, 1)).unflatten(0, (length, count))
    others = (replacements != source.unsqueeze(-1)).unsqueeze(-1)
    mean = (after * others).sum(1) / others.sum(1)
    return (probabilities(source.unsqueeze(0)) - mean).T
