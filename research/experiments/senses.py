"""Lesson 03: which *ring* and which *bank* a real encoder has in mind, with its sight and without.

The control: in every block the word may look at nothing but itself. The rival: the mean of the
embeddings of two tokens on each side.
"""

from typing import Any

import torch
from torch import Tensor

from course_lib.pretrained import minilm
from course_lib.pretrained.word_senses import described, lean, states

LESSON = "03"
SEEDS = (0,)  # nothing is drawn

NEAR = 2  # tokens on each side

# each sense in three plain sentences
DESCRIBED = {
    "ring": (
        [
            "the church bells ring at noon",
            "please ring the door bell",
            "i heard the telephone ring",
        ],
        ["he gave her a gold ring", "she wears a diamond ring", "the ring was made of silver"],
    ),
    "bank": (
        [
            "she opened an account at the bank",
            "the bank lends money",
            "he robbed a bank in the city",
        ],
        [
            "we sat on the bank of the river",
            "the boat lay by the muddy bank",
            "he swam to the far bank",
        ],
    ),
}
# the sentence of lecture L3, which asks what its *bank* means
L3 = (
    "I walked along the pond, and noticed that one of the trees along the bank had fallen into "
    "the water after the storm."
)
# new lines, and which of the two senses is meant
LINES = {
    "ring": {
        "ring the alarum bell": 0,
        "the bells that ring to church": 0,
        "ring the bell": 0,
        "wear this ring for her sake": 1,
        "with this ring i thee wed": 1,
        "give me my ring again": 1,
    },
    "bank": {
        "he put his money in the bank": 0,
        "the bank gave me a loan": 0,
        "the bank of the river was steep": 1,
        L3: 1,
        "upon this bank and shoal of time": 1,
        "i know a bank where the wild thyme blows": 1,
    },
}
# both senses in one line; which occurrence is the jewel
BOTH = {
    "ring the bell and give me the ring": 1,
    "she gave me a ring before i heard the telephone ring": 0,
    "wear this ring when the bells ring": 0,
    "the bells ring and he gives her a ring": 1,
    "when the bells ring i give thee this ring": 1,
    "take my ring before the bells ring": 0,
    "he lost his ring when he heard the bell ring": 0,
}


def average(model: minilm.MiniLM, line: str) -> Tensor:
    """Return the plain average of a line's embeddings: no block, no position."""
    [tokens], _ = model.tokens([line])
    return model.words(tokens[1:-1]).mean(0).detach()


def neighbours(model: minilm.MiniLM, line: str, which: int = 0) -> Tensor:
    """Return the plain average of the embeddings next to one *ring*, itself left out."""
    found = model.tokenizer.encode(line).tokens
    place = [i for i, token in enumerate(found) if token == "ring"][which]
    near = [i for i in range(place - NEAR, place + NEAR + 1) if i != place]
    [tokens], _ = model.tokens([line])
    # the first and the last token mark the ends of the line
    return model.words(tokens[[i for i in near if 0 < i < len(found) - 1]]).mean(0).detach()


def measure() -> dict:
    """Return for each line, level by level, how far its word leans to the second sense."""
    model = minilm.load()
    leans: dict[str, Any] = {}
    for word, senses in DESCRIBED.items():
        first, second = (described(model, lines, word) for lines in senses)
        topics = [torch.stack([average(model, x) for x in lines]).mean(0) for lines in senses]
        leans[word] = {
            line: {
                "sense": sense,
                "attention": lean(states(model, line, word), first, second).tolist(),
                "alone": lean(states(model, line, word, alone=True), first, second).tolist(),
                "average": lean(average(model, line), *topics).item(),
            }
            for line, sense in LINES[word].items()
        }
    first, second = (described(model, lines, "ring") for lines in DESCRIBED["ring"])

    def gap(line: str, jewel: int, alone: bool) -> list[float]:
        one, two = (
            lean(states(model, line, "ring", which, alone=alone), first, second)
            for which in (jewel, 1 - jewel)
        )
        return (one - two).tolist()

    beside = [
        torch.stack([neighbours(model, x) for x in lines]).mean(0) for lines in DESCRIBED["ring"]
    ]

    def gap_beside(line: str, jewel: int) -> float:
        one, two = (lean(neighbours(model, line, x), *beside) for x in (jewel, 1 - jewel))
        return (one - two).item()

    both = {
        line: {
            "attention": gap(line, jewel, False),
            "alone": gap(line, jewel, True),
            "neighbours": gap_beside(line, jewel),
        }
        for line, jewel in BOTH.items()
    }
    return {"described": DESCRIBED, "lines": leans, "both": both, "jewels": BOTH}


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text: after the last block."""
    lines = []
    for word, found in figures["lines"].items():
        lines.append(f"{word}: sense, lean with attention, alone, average of the line")
        for line, x in found.items():
            last = (x["attention"][-1], x["alone"][-1], x["average"])
            numbers = "".join(f"{number:+8.3f}" for number in last)
            lines.append(f"    {x['sense']} {numbers}  {line}")
    lines.append("both senses in a line: jewel minus bell, with attention, alone, by neighbours")
    for line, x in figures["both"].items():
        last = (x["attention"][-1], x["alone"][-1], x["neighbours"])
        lines.append(f"      {''.join(f'{number:+8.3f}' for number in last)}  {line}")
    return lines
