"""What of kept answers is right, and what those that are not lack (lesson 18).

An answered question is a dict of research/results/reward.json: its `kind` and what was `asked`, and
eight `texts`, each with whether it `ended` in time and is `right`, its reward.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from course_lib.data.verifiable import LEARNED_KINDS, OTHER_KINDS, is_right, questions
from course_lib.reward import pass_at_k, vote

Answered = Sequence[Mapping[str, Any]]
KINDS = {"learned kinds": LEARNED_KINDS, "other kinds": OTHER_KINDS}
WORDS = {x.asked: x.word for x in questions()}


def of(found: Answered, kinds: Sequence[str]) -> Answered:
    """Return the answered questions of some kinds."""
    return [x for x in found if x["kind"] in kinds]


def share(found: Answered, kinds: Sequence[str], k: int = 1) -> float:
    """Return pass@k over all questions of some kinds."""
    return mean(pass_at_k(len(x["right"]), int(sum(x["right"])), k) for x in of(found, kinds))


def voted(found: Answered, kinds: Sequence[str]) -> float:
    """Return the share of questions whose commonest answer, of those that ended, is right."""
    right = []
    for x in of(found, kinds):
        winner = vote(
            [text if end else None for text, end in zip(x["texts"], x["ended"], strict=True)]
        )
        right.append(x["right"][x["texts"].index(winner)] if winner else 0)
    return mean(right)


def parts(found: Answered) -> dict[str, float]:
    """Return shares of the answers to the learned kinds: which name the word, end, and do both.

    "1 of 8 named" is the share of questions to which one answer at least names the word.
    """
    own = of(found, LEARNED_KINDS)
    words = [WORDS[x["asked"].removesuffix(" Answer in one word.")] for x in own]
    named = [
        [is_right(text, word) for text in x["texts"]] for x, word in zip(own, words, strict=True)
    ]
    return {
        "named": mean(map(mean, named)),
        "1 of 8 named": mean(map(any, named)),
        "ended": mean(mean(x["ended"]) for x in own),
        "rewarded": mean(mean(x["right"]) for x in own),
    }


def ways(figures: Mapping[str, Any]) -> dict[str, list[Answered]]:
    """Return what each way answers, a list for each seed, from the figures of reward.json."""
    untrained = ("before", "asked for one word", "four examples")
    trained = {name: [run["after"] for run in runs] for name, runs in figures["arms"].items()}
    return {name: [figures[name]] for name in untrained} | trained


def table(runs: Mapping[str, Sequence[Answered]]) -> Iterator[str]:
    """Yield the parts of each way's answers in percent, means of its seeds."""
    names = ("named", "ended", "rewarded")
    yield f"{'learned kinds':28}" + "".join(f"{name:>14}" for name in names) + f"{'seeds':>8}"
    for way, found in runs.items():
        means = (100 * mean(parts(run)[name] for run in found) for name in names)
        yield f"{way:28}" + "".join(f"{x:13.0f}%" for x in means) + f"{len(found):8}"


def told_apart(found: Answered, scores: Sequence[Sequence[float]]) -> Iterator[str]:
    """Yield how well scores of answers tell right from wrong, and choose the best of eight."""
    ordered, chosen = [], []
    for x, own in zip(found, scores, strict=True):
        both = list(zip(own, x["right"], x["ended"], strict=True))
        ordered += [a > b for a, good, _ in both for b, other, _ in both if good > other]
        first_end = next((right for _, right, ended in both if ended), 0)
        chosen.append((any(x["right"]), max(both)[1], first_end, both[0][1]))
    yield f"of {len(ordered)} pairs of right and wrong, {sum(ordered)} in the right order"
    yield f"of {len(found)} questions, a right answer of eight is chosen for"
    choosers = ("the program", "the reward model", "the first that ends", "the first")
    for name, right in zip(choosers, zip(*chosen, strict=True), strict=True):
        yield f"{sum(right):5.0f}  {name}"
