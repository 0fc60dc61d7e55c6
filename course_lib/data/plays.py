"""Shakespeare's plays as speeches, and a small task whose labels the plays themselves give.

Which plays are for testing is said once, in `TESTED`: no text of theirs is in `texts_to_read`.
"""

import functools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from course_lib.data import shakespeare

# the catalogue of the First Folio, 1623; it lists neither Pericles nor Troilus and Cressida
GENRES = {
    "comedy": (
        "A Midsummer Night's Dream", "All's Well That Ends Well", "As You Like It",
        "Love's Labour's Lost", "Measure for Measure", "Much Ado About Nothing",
        "The Comedy of Errors", "The Merchant of Venice", "The Merry Wives of Windsor",
        "The Taming of the Shrew", "The Tempest", "The Winter's Tale", "Twelfth Night",
        "Two Gentlemen of Verona",
    ),
    "history": (
        "King Henry IV, Part 1", "King Henry IV, Part 2", "King Henry V", "King Henry VI, Part 1",
        "King Henry VI, Part 2", "King Henry VI, Part 3", "King Henry VIII", "King John",
        "King Richard II", "King Richard III",
    ),
    "tragedy": (
        "Antony and Cleopatra", "Coriolanus", "Cymbeline", "Hamlet", "Julius Caesar", "King Lear",
        "Macbeth", "Othello", "Romeo and Juliet", "The Tragedy of Titus Andronicus",
        "Timon of Athens",
    ),
}  # fmt: skip
NO_GENRE = ("Pericles", "Troilus and Cressida")
# three of each genre; of the histories those that share the fewest persons with the others
TESTED = (
    "As You Like It", "The Comedy of Errors", "Twelfth Night",
    "King Henry VIII", "King John", "King Richard II",
    "Hamlet", "Macbeth", "Othello",
)  # fmt: skip
READ = tuple(
    title for titles in (*GENRES.values(), NO_GENRE) for title in titles if title not in TESTED
)

END = "[END]"  # after each speech
ORDER = 12  # words of an example

DIRECTION = re.compile(r"\[(?:[^\]\n]|\n(?!\s*\n))*\]?")  # up to the bracket, or a blank line
SPEAKER = re.compile(r"[A-Z0-9][\w ,'.\-]{0,40}\.|[A-Z][A-Z .,'\-]{1,40}")
HEADING = re.compile(r"\s*(ACT|SCENE)\b", flags=re.IGNORECASE)
OFTEN = 3  # times a play that a first line must come to be a speaker's name


@dataclass(frozen=True)
class Speech:
    """The printed lines of a speech, without its speaker; scenes are numbered through the play."""

    scene: int
    lines: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """Return the words in small letters, without marks and line breaks."""
        return shakespeare.words("\n".join(self.lines))


def parse(text: str) -> list[Speech]:
    """Read the speeches of a play: blocks whose first line names a speaker.

    Stage directions are left out, and so is what no speaker's name precedes, or no heading of a
    scene: the list of persons.
    """
    blocks = [
        [line.strip() for line in block.strip().splitlines() if line.strip()]
        for block in re.split(r"\n[ \t]*\n", DIRECTION.sub("", text))
        if block.strip()
    ]
    names = Counter(first for first, *rest in blocks if rest and SPEAKER.fullmatch(first))
    speeches, scene = [], 0
    for first, *lines in blocks:
        if HEADING.match(first):
            scene += 1
        elif scene and names[first] >= OFTEN and lines:
            speeches.append(Speech(scene, tuple(lines)))
    return [speech for speech in speeches if speech.words]


@functools.cache
def speeches(title: str) -> list[Speech]:
    """Return the speeches of a play. Raises `store.NotFetched` or `store.Damaged`."""
    return parse(shakespeare.works()[title])


def stream(title: str) -> list[str]:
    """Return the words of a play, with END after each speech."""
    return [word for speech in speeches(title) for word in (*speech.words, END)]


def texts_to_read() -> list[str]:
    """Return the words of all plays that are not for testing, one play after the other."""
    return [word for title in READ for word in stream(title)]


Words = list[str]
Labelled = list[list[Words]]  # for each label, all that have it


def cut(words: Words, n: int) -> Iterator[Words]:
    """Cut words into stretches of n; what is left over is not used."""
    yield from (words[i : i + n] for i in range(0, len(words) - n + 1, n))


def order(titles: Sequence[str], draw: random.Random) -> Labelled:
    """Is this the order of the words in the play (1), or are they shuffled (0)?"""
    own = [x for title in titles for speech in speeches(title) for x in cut(speech.words, ORDER)]
    draw.shuffle(own)
    half = len(own) // 2
    return [[draw.sample(x, len(x)) for x in own[:half]], own[half:]]


TASKS: dict[str, Callable[[Sequence[str], random.Random], Labelled]] = {
    "order": order,
}


class Example(NamedTuple):
    """Words, and the number of the right answer."""

    words: Words
    label: int


def examples(task: str, titles: Sequence[str], count: int, seed: int) -> list[Example]:
    """Draw examples of a task, the labels in turn, so that all are equally frequent."""
    draw = random.Random(seed)
    by_label = TASKS[task](titles, draw)
    classes = len(by_label)
    drawn = [
        iter(draw.sample(found, -(-(count - label) // classes)))
        for label, found in enumerate(by_label)
    ]
    return [Example(next(drawn[i % classes]), i % classes) for i in range(count)]
