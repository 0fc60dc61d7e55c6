"""English spelling and sound: the CMU pronouncing dictionary, as letters and sounds in numbers.

The sounds are ARPAbet's; a vowel carries its stress, 0 none, 1 main, 2 second.
"""

import functools
import re
import string
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from jaxtyping import Int
from torch import Tensor

from course_lib.data import store
from course_lib.data.batches import pad, similar_lengths
from course_lib.seq2seq import PAD, START, STOP, Seq2Seq

Pair = tuple[str, tuple[str, ...]]  # a word and its sounds

VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW"
CONSONANTS = "B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH"

HELD_OUT = 10  # one word in so many is never trained on
LONGEST = 40  # sounds that a model may write for one word


class Vocabulary:
    """Number symbols from 3 on; PAD, START and STOP have the numbers before."""

    def __init__(self, symbols: Iterable[str]):
        self.symbols = ["<pad>", "<start>", "<stop>", *symbols]
        self.numbers = {symbol: number for number, symbol in enumerate(self.symbols)}

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, symbols: Iterable[str]) -> list[int]:
        """Return the number of each symbol.

        Raises ValueError for a symbol that the vocabulary does not have.
        """
        try:
            return [self.numbers[symbol] for symbol in symbols]
        except KeyError as unknown:
            raise ValueError(
                f"{unknown} is not among the {len(self) - 3} symbols {' '.join(self.symbols[3:])}: "
                "words are spelled in plain small letters, sounds as CMUdict writes them"
            ) from None

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Return the symbols up to STOP, which is left out."""
        symbols = []
        for number in numbers:
            if number == STOP:
                break
            symbols.append(self.symbols[number])
        return symbols


LETTERS = Vocabulary(string.ascii_lowercase)
STRESSED = [vowel + stress for vowel in VOWELS.split() for stress in "012"]
# UW without a stress is no sound of CMUdict's today, but one that g2p-en knows
SOUNDS = Vocabulary(sorted([*STRESSED, *CONSONANTS.split(), "UW"]))


@functools.cache
def pairs() -> tuple[Pair, ...]:
    """Return all 135,166 pairs of a word and its sounds; a word with variants comes several times.

    Raises `store.NotFetched` or `store.Damaged`.
    """
    lines = store.read("cmudict", "cmudict/data/cmudict.dict").decode().splitlines()
    entries = (line.partition("#")[0].split() for line in lines)
    return tuple((re.sub(r"\(\d+\)$", "", word), tuple(sounds)) for word, *sounds in entries)


def split() -> tuple[list[Pair], list[Pair]]:
    """Return the pairs to train on and the pairs held out, a tenth of the words.

    Only the 117,493 words of plain letters take part. A word's own check sum decides where it
    goes, so no word is in both, with all its variants.
    """
    sides = [], []
    for word, sounds in pairs():
        if re.fullmatch("[a-z]+", word):
            sides[zlib.crc32(word.encode()) % HELD_OUT == 0].append((word, sounds))
    return sides


def encode_words(words: Sequence[str]) -> Int[Tensor, "batch source"]:
    """Return the letters of each word, closed by STOP and padded."""
    return pad([[*LETTERS.encode(word), STOP] for word in words], PAD)


def encode_sounds(sounds: Sequence[Sequence[str]]) -> Int[Tensor, "batch target"]:
    """Return the sounds of each word, opened by START, closed by STOP and padded."""
    return pad([[START, *SOUNDS.encode(one), STOP] for one in sounds], PAD)


def batches(
    pairs: Sequence[Pair], size: int, seed: int
) -> Iterator[tuple[Int[Tensor, "batch source"], Int[Tensor, "batch target"]]]:
    """Yield batches of letters and sounds without end, words of similar length together."""
    for batch in similar_lengths(pairs, size, seed, length=lambda pair: len(pair[0])):
        words, sounds = zip(*batch, strict=True)
        yield encode_words(words), encode_sounds(sounds)


def pronounce(model: Seq2Seq, words: Sequence[str]) -> list[list[str]]:
    """Return the sounds that the model writes for each word."""
    return [SOUNDS.decode(row) for row in model.decode(encode_words(words), LONGEST).tolist()]


def accuracy_by_length(
    model: Seq2Seq, pairs: Sequence[Pair], lengths: Iterable[int]
) -> list[float]:
    """Return, for each number of letters, the share of words whose sounds are all right.

    Any of a word's pronunciations among the pairs counts as right, stress included.

    Raises ValueError for a length that no word has.
    """
    right = defaultdict(set)
    for word, sounds in pairs:
        right[word].add(sounds)
    shares = []
    for length in lengths:
        words = [word for word in right if len(word) == length]
        if not words:
            raise ValueError(f"none of the {len(right)} words has {length} letters")
        written = pronounce(model, words)
        hits = [tuple(s) in right[word] for word, s in zip(words, written, strict=True)]
        shares.append(sum(hits) / len(hits))
    return shares
