"""Lesson 03: which *ring* a real encoder has in mind, which *bat*, *spring*, *match* and *bank*.

Both senses of a word are nouns, or its part of speech would give it away. The rivals: the word may
look at nothing but itself, the average of two tokens on each side, the average of the line.
"""

from typing import Any

from course_lib.pretrained import minilm
from course_lib.pretrained.word_senses import Way, ways

LESSON = "03"
SEEDS = (0,)  # nothing is drawn

# each sense in three plain sentences
DESCRIBED = {
    "ring": (
        [
            "he heard the ring of the bell",
            "the ring of the telephone woke her",
            "a loud ring came from the telephone",
        ],
        [
            "he gave her a gold ring",
            "she wears a diamond ring",
            "the ring was made of silver",
        ],
    ),
    "bat": (
        [
            "the bat flew out of the cave",
            "a bat hangs upside down and sleeps",
            "the bat is an animal with wings",
        ],
        [
            "he hit the ball with his bat",
            "the player swung the bat",
            "a bat made of wood",
        ],
    ),
    "spring": (
        [
            "the flowers bloom in spring",
            "spring comes after winter",
            "it was a warm day in spring",
        ],
        [
            "water came from the spring",
            "we drank from a spring in the rock",
            "the spring flows into a stream",
        ],
    ),
    "match": (
        [
            "our team won the match",
            "the match ended in a draw",
            "they lost a football match",
        ],
        [
            "she lit a match",
            "the match burned his finger",
            "he struck a match in the dark",
        ],
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
# the tokens beside the word say little of its sense
FAR = {
    "ring": (
        [
            "nobody picked up the phone, so after the last ring it was quiet",
            "when i am home i call you, and one ring is enough",
            "the clock in the tower had a ring that we all knew",
            "she was asleep when the first ring of the alarm came",
            "there was a ring and then another, but nobody opened the door",
            "the telephone was old and so its ring was very loud",
        ],
        [
            "at the wedding he could not find the ring that he had bought",
            "the jeweller looked at the ring for a long time",
            "she took off the ring before she washed her hands",
            "of all the gold in the shop he only liked one ring that was small",
            "the thief stole the ring and sold it with her necklace",
            "on her finger there was a ring that nobody had seen before",
        ],
    ),
    "bat": (
        [
            "at night in the old barn we saw a bat and then another",
            "in the cave there was only one bat that did not sleep",
            "with its wings open the bat was very small",
            "the owl and the bat are both awake at night",
            "it lives on moths and fruit, and so the bat is useful",
            "children are afraid when the bat comes into the attic",
        ],
        [
            "the boy went to the baseball field and took his bat with him",
            "the player was angry and threw the bat on the ground",
            "in the sports shop we bought a bat for my son",
            "before the ball came he held the bat very still",
            "cricket is played with a ball and a bat that is flat",
            "he scored a home run because the bat was new",
        ],
    ),
    "spring": (
        [
            "the snow melts and then it is spring in the north",
            "in april, when spring is here, the birds come back",
            "they were married in spring and moved in the autumn",
            "summer is hot, but spring is what i like",
            "the roses that i planted in the spring are red",
            "of the four seasons, spring is the shortest",
        ],
        [
            "the village gets its water from the spring behind the hill",
            "thirsty deer come to the spring in the morning",
            "the river begins as a spring that nobody can find",
            "hot water rises from a spring near the road",
            "they filled their bottles at the spring and went on",
            "deep in the rocks there was a spring that was very cold",
        ],
    ),
    "match": (
        [
            "the fans sang when the match was over",
            "tennis players rest before the match begins",
            "both goals fell early, and then the match was dull",
            "the referee ended the match because of the rain",
            "we watched the match with our friends in the stadium",
            "the coach said that the match could still be won",
        ],
        [
            "it was dark, and so he used a match to see the stairs",
            "the candle went out and we had only one match left",
            "there was a smell of gas, so nobody used a match there",
            "to light the fire you only need a match and dry wood",
            "smokers know that a match in the wind is useless",
            "the box was empty except for one match that was wet",
        ],
    ),
}
# both senses in one line, and which occurrence has the second
BOTH = {
    "ring": {
        "the ring of the bell woke the man with the gold ring": 1,
        "she took off her ring before the ring of the telephone": 0,
        "at the first ring of the phone he dropped the ring of gold": 1,
        "he gave her a ring and then came the ring of the church bells": 0,
        "the diamond ring was lost when the ring of the alarm woke them": 0,
        "the ring of the telephone was loud and her ring was made of silver": 1,
        "there was a ring at the door and a man sold me a ring": 1,
        "with a ring on her finger she waited for the ring of the bell": 0,
    },
    "bat": {
        "the bat flew over the man who held a bat": 1,
        "he dropped his bat when a bat flew at him": 0,
        "a bat sleeps in the cave and a bat leans on the wall of the club house": 1,
        "the player broke his bat and a bat flew out of the barn": 0,
        "with a bat he chased the bat out of the attic": 0,
        "the bat ate a moth while the boy swung a bat": 1,
        "she hit a ball with a bat and then saw a bat in the sky at night": 0,
        "is it the bat that flies or the bat that hits the ball": 1,
    },
    "spring": {
        "in spring the spring gives more water": 1,
        "we found a spring in the forest last spring": 0,
        "the spring in the rock runs dry before spring comes": 0,
        "after winter comes spring and the spring is full of water": 1,
        "we drank from the spring and waited for spring": 0,
        "spring is my favourite season and this spring is my favourite well": 1,
        "the water of the spring is cold even in spring": 0,
        "every spring the flowers grow around the spring in the rocks": 1,
    },
    "match": {
        "after the match he lit a match": 1,
        "he lit a match and watched the match on television": 0,
        "the match was lost and somebody struck a match": 1,
        "she burned her finger on a match during the football match": 0,
        "our team won the match in the light of a match": 1,
        "a match lit the fire when the match was over": 0,
        "with one match left in the box he went home from the match": 0,
        "the crowd at the match saw the flame of a match": 1,
    },
}
# the sentence of lecture L3, which asks what its *bank* means, and others: money, then shores
L3 = (
    "I walked along the pond, and noticed that one of the trees along the bank had fallen into "
    "the water after the storm."
)
BANK = (
    ["he put his money in the bank", "the bank gave me a loan"],
    [
        "the bank of the river was steep",
        L3,
        "upon this bank and shoal of time",
        "i know a bank where the wild thyme blows",
    ],
)


def measure() -> dict:
    """Return how far each word leans to its second sense, by each way."""
    model = minilm.load()
    lines = {**FAR, "bank": BANK}
    found: dict[str, Any] = {}
    for word, senses in DESCRIBED.items():
        leaning = ways(model, word, *senses)
        found[word] = {"one sense": {name: one(way, lines[word]) for name, way in leaning.items()}}
        if word in BOTH:
            found[word]["both"] = {name: gaps(way, BOTH[word]) for name, way in leaning.items()}
    return {
        "described": DESCRIBED,
        "one sense": lines,
        "both": BOTH,
        "leans": found,
    }


def one(way: Way, lines: tuple[list[str], list[str]]) -> list[list[float]]:
    """Return how far the word leans in the lines of each sense."""
    return [[way(line) for line in of] for of in lines]


def gaps(way: Way, lines: dict[str, int]) -> list[float]:
    """Return by how much the occurrence of the second sense leans farther to it, in each line."""
    return [way(line, second) - way(line, 1 - second) for line, second in lines.items()]


def pairs(leans: list[list[float]]) -> float:
    """Return the share of pairs of lines in which that of the second sense leans farther to it."""
    first, second = leans
    right = [(y > x) + (y == x) / 2 for x in first for y in second]
    return sum(right) / len(right)


def sums(figures: dict, kind: str) -> tuple[float, int]:
    """Return a way's share of pairs in order over the words of BOTH, and its lines in order."""
    words = [figures["leans"][word] for word in BOTH]
    shares = [pairs(of["one sense"][kind]) for of in words]
    return sum(shares) / len(shares), sum(gap > 0 for of in words for gap in of["both"][kind])


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for word, found in figures["leans"].items():
        lines.append(f"{word}: share of pairs of lines in order; both senses in a line, in order")
        for name, leans in found["one sense"].items():
            both = found.get("both", {}).get(name, [])
            counted = f"{sum(gap > 0 for gap in both)} of {len(both)}" if both else "-"
            lines.append(f"    {name:24} {pairs(leans):5.2f}  {counted}")
    return lines
