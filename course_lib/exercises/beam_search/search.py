"""Writing with several prefixes in mind: what looks worse now may be better in the end."""

import itertools
import math

import torch

from course_lib.answers.answer import Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.translation import beam_search

START, STOP = 1, 0

exercise = Exercise(
    reference=beam_search,
    lesson="11",
    title="Find the bug: beam search",
    minutes=10,
    difficulty=2,
    hints=(
        "Go through one round on paper: a beam of 2, and three continuations, from the best: one "
        "that ends in stop, then two that do not. Which should be finished, and which live on?",
        "How many prefixes are live after that round, by the text of the lesson, and how many by "
        "this code? Look at the two conditions that decide about a continuation.",
    ),
    clauses={
        "`step(prefixes)` returns": GIVEN,
        "ranked by their sums": "probabilities_added",
        "those among the best `width` that end in `stop`": "any_rank_finishes",
        "the best `width` of the others live on": "narrower_and_narrower",
        "if their probability is above 0": "most tokens are impossible",
        "It ends when nothing is live": "texts of which none lives on",
        "when `width` are finished": "never_ends_early",
        "after `most` tokens": "one_too_many",
        "the best one that is finished": "unfinished_win",
        "without start and stop": "stop_kept",
        "with its score": "the score is that of the tokens",
        "the stop included": "stop_not_counted",
        "Width 1 is greedy": "a beam of one is greedy",
        "Raises ValueError": GIVEN,
    },
    equivalent=(
        # log-probabilities have two axes, so the last one is the second one
        "-1 -> 1",
        # in every case some text has a probability, and one that has none never wins
        "float('-inf') -> '-inf'",
        "raise ValueError('no token has a probability above 0: does step return "
        "log-probabilities?') -> pass",
    ),
)


def writer(draw: Draw, vocab: int, never: int = 0) -> Probe:
    return Probe("next_token", (vocab, draw.number(2, 10_000), never))


def outcome(inputs: tuple, **change):
    """Return what a search makes of a probe, or that it is refused."""
    try:
        return search(inputs[0].make(), *inputs[1:], **change)
    except ValueError:
        return None


def telling(draw: Draw, vocab: int, width: int, most: int, never: int = 0, **change) -> tuple:
    """Draw inputs for which this wrong search finds another text, where long ones score high."""
    for _ in range(1000):
        inputs = (writer(draw, vocab, never), START, STOP, width, most, 3.0)
        if outcome(inputs) != outcome(inputs, **change) and outcome(inputs):
            break
    return inputs


@exercise.cases
def cases(draw: Draw):
    yield "greedy, three tokens", (writer(draw, 4), START, 3, 1, 3)
    yield "two prefixes", (writer(draw, 4), START, STOP, 2, 4)
    for width in (2, 3, 4, 5):
        yield f"a beam of {width}", (writer(draw, draw.number(6, 10)), START, STOP, width, 12)
        yield f"a beam of {width}, short", (writer(draw, 7), START, STOP, width, 3)
    yield "a beam of 3, no length penalty", (writer(draw, 6), START, STOP, 3, 10, 0.0)
    yield "a beam of 4, a strong length penalty", (writer(draw, 5), START, STOP, 4, 10, 2.0)
    yield "a beam of 6, a strong length penalty", (writer(draw, 5), START, STOP, 6, 9, 3.0)
    yield "wider than the vocabulary", (writer(draw, 3), START, 2, 7, 6, 1.0)
    yield "another start, another stop", (writer(draw, 9), 7, 5, 3, 10, 0.3)
    yield "start and stop are one token", (writer(draw, 6), STOP, STOP, 3, 8)
    yield "most tokens are impossible", (writer(draw, 7, never=2), START, STOP, 4, 6)
    yield "many tokens are impossible", (writer(draw, 5, never=3), START, 4, 6, 6)
    yield "nothing finished in time", (writer(draw, 40), START, STOP, 3, 3)
    yield "one token at most", (writer(draw, 5), START, STOP, 3, 1)
    yield "no token at all", (writer(draw, 5), START, STOP, 3, 0)
    yield "a beam of 2 that is full of finished texts", telling(draw, 5, 2, 9, enough=3)
    yield "a beam of 3 that is full of finished texts", telling(draw, 5, 3, 9, enough=4)
    yield "one text more than the beam holds", telling(draw, 6, 2, 9, wider=1)
    yield "many texts more than the beam holds", telling(draw, 6, 3, 9, wider=9)
    yield "texts that finish while others live on", telling(draw, 6, 3, 9, shrinks=True)
    yield "several that finish, and the beam as wide", telling(draw, 6, 4, 9, refills=True)
    yield "several of the best that finish at once", telling(draw, 6, 4, 9, room=1)
    yield "texts of which none lives on", telling(draw, 2, 4, 9, never=2, dies=True)


def total_of(step, start, tokens):
    """Add up the log-probabilities of these tokens, one after the other."""
    prefix, total = [start], 0.0
    for token in tokens:
        total += step(torch.tensor([prefix]))[0, token].item()
        prefix.append(token)
    return total


def score_of(total, length, alpha):
    return total / ((5 + length) / 6) ** alpha


@exercise.requires("a beam of one is greedy: it writes the likeliest token each time")
def one_is_greedy(answer, draw: Draw):
    for _ in range(3):
        probe = writer(draw, 8)
        step, tokens = probe.make(), [START]
        while len(tokens) <= 9 and STOP not in tokens[1:]:
            tokens.append(int(step(torch.tensor([tokens])).argmax()))
        written = [token for token in tokens[1:] if token != STOP]
        if answer(probe, START, STOP, 1, 9)[0] != written:
            return False
    return True


@exercise.requires("a beam wide enough for everything finds the best of all")
def wide_is_exhaustive(answer, draw: Draw):
    probe, alpha, most = writer(draw, 3), draw.number(0, 20) / 10, 4
    step, scores = probe.make(), {}
    for length in range(1, most + 1):
        for tokens in itertools.product((1, 2), repeat=length - 1):
            whole = [*tokens, STOP]
            scores[tokens] = score_of(total_of(step, START, whole), length, alpha)
    best = max(scores, key=scores.__getitem__)
    tokens, score = answer(probe, START, STOP, 100, most, alpha)
    return tuple(tokens) == best and math.isclose(score, scores[best], rel_tol=1e-6)


@exercise.requires("the score is that of the tokens, with their stop, by the length penalty")
def score_of_the_tokens(answer, draw: Draw):
    for _ in range(3):
        probe, alpha = writer(draw, 5), draw.number(0, 20) / 10
        tokens, score = answer(probe, START, STOP, 3, 30, alpha)
        total = total_of(probe.make(), START, [*tokens, STOP])
        if not math.isclose(score, score_of(total, len(tokens) + 1, alpha), rel_tol=1e-6):
            return False
    return True


def search(step, start, stop, width, most, alpha=0.6, **change):
    """Search, in as many ways as there are mistakes."""
    live, finished = [([start], 0.0)], []
    for _ in range(most):
        enough = change.get("enough", width)
        if not live or len(finished) >= enough:
            break
        log_probabilities = step(torch.tensor([tokens for tokens, _ in live]))
        if change.get("forgets"):
            live = [(tokens, 0.0) for tokens, _ in live]
        rows = []
        for (tokens, total), row in zip(live, log_probabilities.tolist(), strict=True):
            mine = sorted(enumerate(row), key=lambda pair: -pair[1])
            if change.get("own_best") and len(tokens) > 1:
                mine = mine[:1]
            if change.get("product"):
                mine = [(t, math.exp(x)) for t, x in mine]
            rows += [([*tokens, token], total + x) for token, x in mine]
        rows.sort(key=lambda row: -row[1])
        if change.get("lowest"):
            rows = rows[::-1]
        rows = [row for row in rows if row[1] != -math.inf]
        if "room" in change:
            rows = rows[: width + change["room"]]
        live = []
        for rank, (tokens, total) in enumerate(rows):
            if tokens[-1] == stop:
                if rank < width or change.get("any_rank"):
                    finished.append((tokens, total))
            elif len(live) < width + change.get("wider", 0) and (
                rank < width or not change.get("shrinks")
            ):
                live.append((tokens, total))
        if change.get("refills"):
            live = live[: max(0, width - len(finished))]
    if change.get("dies") and not live:
        raise ValueError
    choice = [*finished, *live] if change.get("all_compared") else finished or live
    more = change.get("more", 0)

    def penalised(tokens, total):
        length = len(tokens) - 1 + more
        if change.get("without_stop") and tokens[-1] == stop:
            length -= 1
        if change.get("mean"):
            return total / max(1, length) ** alpha
        if change.get("multiplied"):
            return total * ((5 + length) / 6) ** alpha
        if change.get("unpenalised"):
            return total
        return score_of(total, length, alpha)

    tokens, total = max(choice, key=lambda pair: penalised(*pair))
    score = total if change.get("raw") else penalised(tokens, total)
    if change.get("kept_start"):
        return [token for i, token in enumerate(tokens) if i == 0 or token != stop], score
    if change.get("kept_stop"):
        return tokens[1:], score
    return [token for token in tokens[1:] if token != stop], score


@exercise.mistake
def always_greedy(step, start, stop, width, most, alpha=0.6):
    """This is greedy, whatever the width: one prefix is kept. What else lives on after each
    round?"""
    return search(step, start, stop, 1, most, alpha)


@exercise.mistake
def room_for_one_stop(*inputs):
    """Only width + 1 continuations were looked at, so where two of them end in stop, fewer than
    `width` of the others live on. How many of the best can end in stop at once?"""
    return search(*inputs, room=1)


@exercise.mistake
def prefix_forgotten(*inputs):
    """The sums of the prefixes were forgotten: continuations were ranked by their last token alone.
    What does a bad beginning cost a good ending?"""
    return search(*inputs, forgets=True)


@exercise.mistake
def best_of_each(*inputs):
    """After the first round, each live prefix kept only its own best continuation. All of them, of
    all prefixes, compete together: two of the best may come from one prefix."""
    return search(*inputs, own_best=True)


@exercise.mistake
def probabilities_added(*inputs):
    """Probabilities were added up where log-probabilities should be: the probability of a text is a
    product."""
    return search(*inputs, product=True)


@exercise.mistake
def no_length_penalty(*inputs):
    """No length penalty: every further token makes the sum smaller, so the shortest text wins. By
    what should the sums be divided before they are compared?"""
    return search(*inputs, unpenalised=True)


@exercise.mistake
def plain_sum(*inputs):
    """The right tokens, but their score is the plain sum. The docstring divides it by the length
    penalty."""
    return search(*inputs, raw=True)


@exercise.mistake
def multiplied(*inputs):
    """The sum was multiplied by the length penalty. A sum of logarithms is negative: what makes it
    larger, and so better, for a long text?"""
    return search(*inputs, multiplied=True)


@exercise.mistake
def power_of_the_length(*inputs):
    """The sum was divided by a power of the length itself. The penalty of the paper is gentler: ((5
    + length) / 6)^alpha."""
    return search(*inputs, mean=True)


@exercise.mistake
def stop_not_counted(*inputs):
    """The stop was not counted in the length. It is a token that was written, and has a probability
    like all others."""
    return search(*inputs, without_stop=True)


@exercise.mistake
def start_counted(*inputs):
    """The start was counted in the length. It was given, not written."""
    return search(*inputs, more=1)


@exercise.mistake
def ends_with_the_first(*inputs):
    """The search ends as soon as one text is finished. A better one may still be alive: how many
    should be finished?"""
    return search(*inputs, enough=1)


@exercise.mistake
def never_ends_early(*inputs):
    """The search goes on after `width` texts are finished, until `most` tokens are written. When
    does the docstring end it?"""
    return search(*inputs, enough=10**6)


@exercise.mistake
def any_rank_finishes(*inputs):
    """Every continuation that ends in stop was taken as finished, however low its rank. Only those
    among the best `width` are."""
    return search(*inputs, any_rank=True)


@exercise.hand_out
def beam_shrinks(step, start, stop, width, most, alpha=0.6):
    """The fault was `rank < width` for `len(live) < width`: a finished text took the place of a
    live one, so the beam got thinner with each."""
    if width < 1:
        raise ValueError(f"a beam holds at least 1 prefix, not {width}: width 1 is greedy")
    # begin with one live prefix, whose sum of log-probabilities is 0
    live, finished = [([start], 0.0)], []
    for _ in range(most):
        # end when nothing is live, or when as many are finished as the beam is wide
        if not live or len(finished) >= width:
            break
        # add to each sum the log-probabilities of all its continuations, and rank them together
        log_probabilities = step(torch.tensor([tokens for tokens, _ in live]))
        sums = log_probabilities.new_tensor([total for _, total in live]).unsqueeze(-1)
        continued = (sums + log_probabilities).flatten()
        # one continuation of each prefix is a stop: so many hold `width` others
        ranked = continued.topk(min(width + len(live), len(continued)))
        prefixes, live = live, []
        for rank, (total, place) in enumerate(
            zip(ranked.values.tolist(), ranked.indices.tolist(), strict=True)
        ):
            # leave out what has the probability 0, and with it all that follows
            if total == float("-inf"):
                break
            # find out which prefix this continues, and by which token
            prefix, token = divmod(place, log_probabilities.shape[-1])
            longer = [*prefixes[prefix][0], token], total
            # finish what stops among the best, and let the best of the others live on
            if token == stop and rank < width:
                finished.append(longer)
            elif token != stop and rank < width:
                live.append(longer)
    if not finished and not live:
        raise ValueError("no token has a probability above 0: does step return log-probabilities?")
    # compare the finished by their scores, or if there is none, the live
    scored = [
        (total / ((5 + len(tokens) - 1) / 6) ** alpha, tokens) for tokens, total in finished or live
    ]
    score, tokens = max(scored, key=lambda pair: pair[0])
    # leave out the start and the stop
    return [token for token in tokens[1:] if token != stop], score


@exercise.mistake
def narrower_and_narrower(*inputs):
    """With each text that is finished, the beam gets narrower. It stays `width` wide to the end."""
    return search(*inputs, refills=True)


@exercise.mistake
def unfinished_win(*inputs):
    """Unfinished prefixes were compared with finished texts, and one of them won. When do live ones
    count?"""
    return search(*inputs, all_compared=True)


@exercise.mistake
def start_kept(*inputs):
    """The start is in the result. It opens what the model reads, and is no word."""
    return search(*inputs, kept_start=True)


@exercise.mistake
def stop_kept(*inputs):
    """The stop is in the result. It ends the text, and is no part of it."""
    return search(*inputs, kept_stop=True)


@exercise.mistake
def worst_first(*inputs):
    """The worst continuations live on: the ranking begins at the wrong end."""
    return search(*inputs, lowest=True)


@exercise.mistake
def one_too_many(step, start, stop, width, most, alpha=0.6):
    """One token too many may be written. How many are there after the first round?"""
    return search(step, start, stop, width, most + 1, alpha)


@exercise.alternative
def with_topk(step, start, stop, width, most, alpha=0.6):
    prefixes, sums, finished = torch.tensor([[start]]), torch.zeros(1, dtype=torch.float64), []
    for _ in range(most):
        if len(prefixes) == 0 or len(finished) >= width:
            break
        totals = sums[:, None] + step(prefixes).double()
        vocab = totals.shape[1]
        best = totals.flatten().topk(min(width, totals.numel()))
        for total, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            if place % vocab == stop and total > -math.inf:
                finished.append((prefixes[place // vocab].tolist()[1:], len(prefixes[0]), total))
        totals[:, stop] = -math.inf
        best = totals.flatten().topk(min(width, totals.numel()))
        places = best.indices[best.values > -math.inf]
        sums = best.values[best.values > -math.inf]
        prefixes = torch.cat([prefixes[places // vocab], (places % vocab)[:, None]], dim=1)
    texts = finished or [
        (tokens[1:], len(tokens) - 1, total)
        for tokens, total in zip(prefixes.tolist(), sums.tolist(), strict=True)
    ]
    scored = [(total / ((5 + n) / 6) ** alpha, tokens) for tokens, n, total in texts]
    score, tokens = max(scored)
    return tokens, score


@exercise.alternative
def by_lists(*inputs):
    return search(*inputs)
