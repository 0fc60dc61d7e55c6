"""chrF: how many runs of characters of a translation are also in a reference (lesson 11)."""

from collections.abc import Sequence

from course_lib.bleu import matches


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
