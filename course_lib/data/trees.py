"""Dependency trees: sentences of the course's own, and two acts of *Julius Caesar* (lesson 04).

They come with the course, in trees.conllu, which says who made it.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from course_lib.positions import tree_distance

DOCUMENT = "# newdoc id = "
FAR = 99  # edges between words of different sentences, which no path joins


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence; for each the place of its head, -1 for the root, and its label."""

    words: list[str]
    heads: Int[Tensor, " n"]
    labels: list[str]


@functools.cache
def documents() -> dict[str, list[Sentence]]:
    """Return the parsed sentences of each document: "own", and the acts of the play."""
    path = Path(__file__).with_name("trees.conllu")
    return parse(path.read_text("utf8"))


def parse(text: str) -> dict[str, list[Sentence]]:
    """Read documents in the format CoNLL-U, where words count from 1 and the root's head is 0."""
    name, sentences = "", {}
    for block in text.split("\n\n"):
        rows = []
        for line in block.splitlines():
            if line.startswith(DOCUMENT):
                name = line.removeprefix(DOCUMENT)
            elif not line.startswith("#"):
                rows.append(line.split("\t"))
        if rows:
            _, words, _, _, _, _, heads, labels, _, _ = map(list, zip(*rows, strict=True))
            places = torch.tensor([int(head) - 1 for head in heads])
            sentences.setdefault(name, []).append(Sentence(words, places, labels))
    return sentences


@dataclass(frozen=True)
class Text:
    """Sentences end to end, their words as numbers.

    `before` and `heads` are places in the text: of the word that stands before each word, and of
    the word that it depends on; -1 where there is none. `distances` counts the edges of the trees.
    """

    words: Int[Tensor, " n"]
    before: Int[Tensor, " n"]
    heads: Int[Tensor, " n"]
    distances: Int[Tensor, "n n"]


def vocab(sentences: Sequence[Sentence]) -> list[str]:
    """Return the lower-cased words of these sentences, each once, in order."""
    return sorted({word.lower() for sentence in sentences for word in sentence.words})


def join(sentences: Sequence[Sentence], vocab: Sequence[str]) -> Text:
    """Lay sentences end to end. Raises KeyError for a word that the vocabulary does not have."""
    numbers = {word: number for number, word in enumerate(vocab)}
    words = torch.tensor([numbers[word.lower()] for x in sentences for word in x.words])
    heads = torch.full_like(words, -1)
    distances = torch.full((len(words), len(words)), FAR, dtype=torch.int8)
    start = 0
    for sentence in sentences:
        part = slice(start, start + len(sentence.words))
        heads[part] = torch.where(sentence.heads < 0, -1, sentence.heads + start)
        distances[part, part] = tree_distance(sentence.heads).to(torch.int8)
        start = part.stop
    return Text(words, torch.arange(len(words)) - 1, heads, distances)


Batch = tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n n"], Int[Tensor, "batch n"]]


def stretches(
    text: Text, wanted: Int[Tensor, " all"], starts: Int[Tensor, " batch"], n: int
) -> Batch:
    """Cut stretches of n words out of a text, with the word that each word should name.

    `wanted` is `text.before` or `text.heads`. Returns the words, the edges between each two of
    them, and the wanted words, -1 where that word is not in the stretch.
    """
    first = starts.unsqueeze(-1)
    places = first + torch.arange(n)
    tree = text.distances[places.unsqueeze(-1), places.unsqueeze(-2)].long()
    asked = wanted[places]
    inside = (asked >= first) & (asked < first + n)
    return text.words[places], tree, torch.where(inside, text.words[asked], -1)


def batches(
    text: Text, wanted: Int[Tensor, " all"], n: int, size: int, seed: int
) -> Iterator[Batch]:
    """Yield `stretches` without end, `size` at a time, beginning anywhere, drawn from the seed."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(text.words) - n + 1, (size,), generator=generator)
        yield stretches(text, wanted, starts, n)
