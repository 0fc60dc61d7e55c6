"""How a translator is trained, writes and is scored (lesson 11)."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor


def noam(step: int, d_model: int, warm_up: int) -> float:
    """Return the paper's learning rate: d_model^(-1/2) min(step^(-1/2), step warm_up^(-3/2)).

    It rises linearly over the first `warm_up` steps, then falls as one over the root of the step.
    Steps count from 1. Source: Vaswani et al. 2017, eq. 3; named after Noam Shazeer. Raises
    ValueError for a step below 1.

    >>> [round(1000 * noam(step, 512, 4000), 3) for step in (1, 2000, 4000, 16000)]
    [0.0, 0.349, 0.699, 0.349]
    """
    if step < 1:
        raise ValueError(f"steps count from 1, so {step} is none: did you count them from 0?")
    # rise with the step while that is the smaller one, then fall with its root
    rising, falling = step * warm_up**-1.5, step**-0.5
    # make it smaller for a larger model
    return d_model**-0.5 * min(rising, falling)


def smoothed_cross_entropy(
    logits: Float[Tensor, "... vocab"],
    targets: Int[Tensor, "..."],
    smoothing: float,
    ignore: int | None = None,
) -> Float[Tensor, ""]:
    """Return the mean over targets of (1 - s) loss(target) + s mean over the vocabulary of loss(v).

    loss(v) = -log softmax(logits)_v, in nats, and s is `smoothing`. Targets equal to `ignore`
    do not count; where all are ignored, the loss and its gradient are 0. Source: Szegedy et al.
    2016, section 7; s = 0.1 in Vaswani et al. 2017, section 5.4. Raises ValueError for a
    `smoothing` outside of 0 to 1.
    """
    if not 0 <= smoothing <= 1:
        raise ValueError(
            f"smoothing is the share of the loss that goes to the whole vocabulary, from 0 to 1, "
            f"not {smoothing}: is it a percentage?"
        )
    if ignore is not None and (targets == ignore).all():
        return logits[..., :0].sum()
    # tell the targets that count from those that are ignored
    counted = torch.ones_like(targets, dtype=torch.bool) if ignore is None else targets != ignore
    # the loss that each token of the vocabulary would have
    losses = -torch.log_softmax(logits, dim=-1)
    # pick the target's, and average all of them
    chosen = targets.masked_fill(~counted, 0).unsqueeze(-1)
    of_target, of_all = losses.gather(-1, chosen).squeeze(-1), losses.mean(-1)
    # mix the two by their shares
    mixed = (1 - smoothing) * of_target + smoothing * of_all
    # average over the targets that count
    return mixed.masked_fill(~counted, 0.0).sum() / counted.sum()


def by_tokens(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Put sentences of similar length into batches of at most `most` tokens, padding counted.

    Returns the indices of each batch's sentences: sorted by length, sentences of one length in
    their given order, and each batch as large as it can be while its count times its longest is at
    most `most`. Source: Vaswani et al. 2017, section 5.1 ("batched together by approximate sequence
    length"). Raises ValueError for a sentence longer than `most`.

    >>> by_tokens([5, 2, 9, 2], most=10)
    [[1, 3], [0], [2]]
    """
    longest = max(lengths, default=0)
    if longest > most:
        raise ValueError(
            f"the longest sentence has {longest} tokens, more than the {most} of a whole batch: "
            "leave it out, or allow more"
        )
    batches: list[list[int]] = []
    # go through the sentences from the shortest to the longest
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        # begin a new batch where this sentence would make the last one too large
        if not batches or (len(batches[-1]) + 1) * lengths[index] > most:
            batches.append([])
        # add the sentence, which is now the longest of its batch
        batches[-1].append(index)
    return batches


def beam_search(
    step: Callable[[Int[Tensor, "prefixes n"]], Float[Tensor, "prefixes vocab"]],
    start: int,
    stop: int,
    width: int,
    most: int,
    alpha: float = 0.6,
) -> tuple[list[int], float]:
    """Find the tokens of the highest sum of log-probabilities / ((5 + length) / 6)^alpha.

    `step(prefixes)` returns the log-probability of each next token of each prefix, the start
    first. In each round, all continuations of all live prefixes are ranked by their sums: those
    among the best `width` that end in `stop` are finished, and the best `width` of the others live
    on, if their probability is above 0. It ends when nothing is live, when `width` are finished, or
    after `most` tokens, and returns the best one that is finished (if none is, the best that is
    live) without start and stop, with its score. The length counts what was written, the stop
    included. Width 1 is greedy. Source: Wu et al. 2016, eq. 14, without coverage. Raises ValueError
    for a width below 1, or where `step` leaves no token a probability above 0.
    """
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
            elif token != stop and len(live) < width:
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


# the rules of mteval-v13a, by which scores of papers are compared: each puts spaces around marks
MARKS = (
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def cut(text: str) -> list[str]:
    """Cut a text into words and marks as mteval-v13a does, sacrebleu's default (Post 2018).

    A hyphen belongs to its word, unless a digit is before it; a point or comma between two digits
    belongs to the number.

    >>> cut("Wi-Fi is off, at 2.5 GHz.")
    ['Wi-Fi', 'is', 'off', ',', 'at', '2.5', 'GHz', '.']
    """
    text = f" {text} "
    for sign, spaced in MARKS:
        text = sign.sub(spaced, text)
    return text.split()


def fuzzy_match(source: Sequence[str], memory: Sequence[tuple[Sequence[str], str]]) -> str:
    """Return the translation of the first text that differs from the source in one word at most.

    `memory` has texts, as lists of words, each with its translation. Two texts differ in one word
    at most if they have equally many words, and at most one place has two different ones. Where
    there is no such text, the translation is empty. Source: Bulté & Tezcan 2019, section 1 (a
    match of a translation memory, without the repair).

    >>> memory = [("turn on the light".split(), "Acender a luz"), (["stop"], "Parar")]
    >>> fuzzy_match("turn off the light".split(), memory)
    'Acender a luz'
    """
    # go through the memory from its first text on
    for known, translation in memory:
        # compare texts of the same length, place by place
        if len(known) == len(source):
            different = sum(a != b for a, b in zip(known, source, strict=True))
            # copy the translation of the first one that is near enough
            if different <= 1:
                return translation
    # nothing is near
    return ""


def matches(hypothesis: Sequence[str], reference: Sequence[str], n: int) -> tuple[int, int]:
    """Count the n-grams of a hypothesis that its reference has, and all that it has.

    An n-gram that comes several times counts as often as the reference has it, at most: it is
    *clipped*. Source: Papineni et al. 2002, section 2.1.1.

    >>> matches("the the the cat".split(), "the cat sleeps".split(), 1)
    (2, 4)
    """
    # count each n-gram of both
    found, wanted = (
        Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        for words in (hypothesis, reference)
    )
    # let each match as often as it is in both
    clipped = sum((found & wanted).values())
    return clipped, sum(found.values())


def bleu(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], most: int = 4
) -> float:
    """Return the BLEU of a corpus in percent: 100 BP (p_1 p_2 ... p_most)^(1 / most).

    p_n is the share of all the corpus's n-grams that match, by `matches`; BP = min(1, e^(1 - r/c))
    is the brevity penalty, for c words of hypotheses and r of references. There is one reference
    for each hypothesis, and no smoothing: an order without a match or without an n-gram gives 0.
    Source: Papineni et al. 2002, section 2.3. Raises ValueError for unequal numbers of both.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"each hypothesis needs one reference, but there are {len(hypotheses)} and "
            f"{len(references)}: are these the translations of the same sentences?"
        )
    # add up the matches of each order over the corpus, before anything is divided
    logarithms = []
    for n in range(1, most + 1):
        matched = there = 0
        for hypothesis, reference in zip(hypotheses, references, strict=False):
            more, of = matches(hypothesis, reference, n)
            matched, there = matched + more, there + of
        # one order without a match makes the whole product 0
        if matched == 0:
            return 0.0
        logarithms.append(math.log(matched / there))
    # take the geometric mean, and multiply by the brevity penalty
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * math.exp(min(0, 1 - r / c) + sum(logarithms) / most)


def chrf(
    hypotheses: Sequence[str], references: Sequence[str], most: int = 6, beta: float = 2
) -> float:
    """Return the chrF of a corpus in percent: (1 + b^2) P R / (b^2 P + R).

    P and R are the means, over n from 1 to `most`, of the shares of n-grams of characters that
    match: of the hypotheses' n-grams (precision) and of the references' (recall). Spaces do not
    count. Orders that one side has no n-gram of are left out, and so is a hypothesis where its
    reference is too short to have one, as sacrebleu does it. Source: Popović 2015, section 2.
    Raises ValueError for unequal numbers of both.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"each hypothesis needs one reference, but there are {len(hypotheses)} and "
            f"{len(references)}: are these the translations of the same sentences?"
        )
    precisions, recalls = [], []
    pairs = [
        (hypothesis.replace(" ", ""), reference.replace(" ", ""))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    for n in range(1, most + 1):
        counts = [matches(list(h), list(r), n) for h, r in pairs if len(r) >= n]
        matched, ours = sum(found for found, _ in counts), sum(there for _, there in counts)
        theirs = sum(max(0, len(reference) - n + 1) for _, reference in pairs)
        if ours and theirs:
            precisions.append(matched / ours)
            recalls.append(matched / theirs)
    if not sum(precisions):
        return 0.0
    p, r = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    return 100 * (1 + beta**2) * p * r / (beta**2 * p + r)
