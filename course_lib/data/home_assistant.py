"""What a smart home says: the texts of Home Assistant's pages, in English and other languages.

Volunteers translate them string by string, so the same key has the same sentence in each language.
"""

import functools
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from course_lib.data import store

Pair = tuple[str, str]  # an English text and its translation

LANGUAGES = {"de": "German", "es": "Spanish", "fr": "French", "pt": "Portuguese"}
FOLDER = "homeassistant/components/"
HELD_OUT = 500  # pairs that no choice was made by, nor anything learned from
TUNING = 300  # pairs by which choices are made
WORDS = range(3, 26)  # of the English side of a pair that is held out

# why a pair is dropped: the first reason that fits
REASONS = {
    "placeholder": re.compile(r"[{}]"),
    "address": re.compile(r"https?:|www\."),
    "markup": re.compile(r"[\[\]<>*`\n]"),
}


class Split(NamedTuple):
    """Pairs to learn from, pairs to make choices by, and pairs held out from both."""

    learning: list[Pair]
    tuning: list[Pair]
    held_out: list[Pair]


@functools.cache
def strings(language: str = "en") -> dict[str, str]:
    """Return every text of a language by its key, as it is: 44,434 in English.

    Raises ValueError for a language that Home Assistant is not translated into, and
    `store.NotFetched` or `store.Damaged`.
    """
    files = store.read_matching("homeassistant", f"{FOLDER}*/translations/{language}.json")
    if not files:
        raise ValueError(
            f"Home Assistant has no language {language!r}: expected a code such as "
            f"{', '.join(LANGUAGES)} or en"
        )
    texts = {}
    for name in sorted(files):
        component = name.removeprefix(FOLDER).partition("/")[0]
        texts |= _leaves(json.loads(files[name]), component)
    return texts


def _leaves(tree: dict, path: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a tree with their keys, in the order of the file."""
    for name, branch in tree.items():
        if isinstance(branch, dict):
            yield from _leaves(branch, f"{path}/{name}")
        elif isinstance(branch, str):
            yield f"{path}/{name}", branch


def reason_to_drop(source: str, target: str) -> str | None:
    """Say why a pair teaches no translation: a name of REASONS, or "identical"; None if it does."""
    for reason, sign in REASONS.items():
        if sign.search(source) or sign.search(target):
            return reason
    return "identical" if source == target else None


@functools.cache
def pairs(language: str) -> tuple[Pair, ...]:
    """Return the clean pairs of English and a language, each English text once.

    Where a text has several translations, the most frequent one is kept. Raises as `strings` does.
    """
    english, other = strings("en"), strings(language)
    translations = defaultdict(Counter)
    for key, source in english.items():
        if key in other and reason_to_drop(source, other[key]) is None:
            translations[source.strip()][other[key].strip()] += 1
    return tuple((source, found.most_common(1)[0][0]) for source, found in translations.items())


def normalised(text: str) -> str:
    """Return a text's words in small letters, without marks: what makes two texts the same one."""
    return " ".join(re.findall(r"\w+", text.casefold()))


@functools.cache
def split(language: str) -> Split:
    """Return pairs to learn from, 300 to make choices by, and 500 held out.

    The check sum of its normalised English decides where a pair goes, so the order of the files
    does not matter. A pair of which either side, normalised, is that of a held-out pair is in no
    other list, nor is one of a tuning pair learned from. Raises as `strings` does.
    """
    long = [pair for pair in pairs(language) if len(pair[0].split()) in WORDS]
    rest = list(pairs(language))
    chosen = []
    for count in (HELD_OUT, TUNING):
        candidates = sorted(_apart(long, *chosen), key=_check_sum)
        chosen.append(candidates[:count])
    held_out, tuning = chosen
    return Split(_apart(rest, held_out, tuning), tuning, held_out)


def _check_sum(pair: Pair) -> tuple[int, Pair]:
    return zlib.crc32(normalised(pair[0]).encode()), pair


def _apart(some: Sequence[Pair], *others: Sequence[Pair]) -> list[Pair]:
    """Return the pairs neither side of which, normalised, is a side of a pair of the others."""
    taken = [{normalised(pair[side]) for other in others for pair in other} for side in (0, 1)]
    return [
        pair for pair in some if all(normalised(pair[side]) not in taken[side] for side in (0, 1))
    ]
