"""Lesson 01: what becomes of words longer than any that a reader was trained on.

A long word is several dictionary words, joined. Small readers learn from the dictionary's words of
8 letters at most, from all of them, or from all of them and joined ones.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from course_lib.attention import attend
from course_lib.data import spelling
from course_lib.data.spelling import Pair
from course_lib.instruments import results, training
from course_lib.pretrained import g2p
from course_lib.seq2seq import Seq2Seq, next_token_loss
from research.experiments.spelling_models import SETTINGS

LESSON = "01"
SEEDS = (0, 1, 2)
BUDGET = {"steps": 3000, "learning_rate": 0.02}
SHORT = 8  # letters at most, of the words that one reader is trained on
JOINED, MOST = 50_000, 36  # joined words to train on, and their letters at most
PIECE, PIECES = 7, range(2, 6)  # letters of the words that are joined for the test, and how many
WORDS, FEW = 200, 5  # of each length, at most; of fewer, none is read
LENGTHS = (4, 6, 8, 10, 12, 14, 16, 18, 20)
LONGEST = "supercalifragilisticexpialidocious"

# what a reader is trained on, and the arguments of its class
READERS: dict[str, tuple[str, dict[str, Any]]] = {
    "at most 8 letters": ("short", {}),
    "all": ("all", {}),
    "all and joined": ("joined", {}),
    "attention, all": ("all", {"attend": attend}),
    "attention, all and joined": ("joined", {"attend": attend}),
}


def measure() -> dict:
    """Return what each reader writes at each length."""
    model = g2p.load()
    runs: dict[str, list[dict]] = {name: [] for name in READERS}
    for seed in SEEDS:
        for name in READERS:
            runs[name].append(reader(name, seed))
    letters = [len(word) for word, _ in spelling.pairs()]
    sounds = [len(sounds) for _, sounds in spelling.pairs()]
    return {
        "letters": [letters.count(n) for n in range(max(letters) + 1)],
        "sounds": [sounds.count(n) for n in range(max(sounds) + 1)],
        "budget": BUDGET,
        "g2p": read(model, spelling.pairs()),
        "readers": runs,
    }


def table(figures: dict) -> list[str]:
    """Sum the figures up in lines of text."""
    lines = []
    for name, runs in {"g2p-en": [figures["g2p"]], **figures["readers"]}.items():
        for seed, run in enumerate(runs):
            for kind in ("dictionary", "joined"):
                shown = " ".join(
                    f"{row['letters']}: {row['written']:.1f}/{row['wanted']:.1f} {row['error']:.2f}"
                    for row in run[kind]
                )
                lines.append(f"{name:26}{seed} {kind:10} {shown}")
    return lines


def trained(name: str, seed: int) -> tuple[Seq2Seq, training.History]:
    """Train one reader."""
    data, parts = READERS[name]
    learning, _ = spelling.split()
    if data == "short":
        learning = [pair for pair in learning if len(pair[0]) <= SHORT]
    if data == "joined":
        learning = [*learning, *_joined_to_learn(learning, seed)]
    sizes = SETTINGS["d_embedding"], SETTINGS["d_hidden"]
    with training.seeded(seed):
        vocabularies = len(spelling.LETTERS), len(spelling.SOUNDS)
        model = Seq2Seq(*vocabularies, *sizes, bidirectional=True, **parts)
    batches = spelling.batches(learning, SETTINGS["batch"], seed)
    return model, training.train(model, batches, next_token_loss, **BUDGET)


def reader(name: str, seed: int) -> dict:
    """Train one reader and let it read held-out words, or return what was kept of that."""

    def measured() -> dict:
        model, history = trained(name, seed)
        return read(model, spelling.split()[1]) | {"seconds": history.seconds}

    settings = [BUDGET, JOINED, MOST, WORDS]
    return results.once("long_words", settings, f"{name}, seed {seed}", measured)


def read(model: Seq2Seq, pairs: Sequence[Pair]) -> dict:
    """Return what a model writes for dictionary words of each length, and for joined ones."""
    rows = [_some(pairs, length, WORDS, seed=0) for length in LENGTHS]
    dictionary = [_row(model, row) for row in rows if len(row) >= FEW]
    joined = [_row(model, row) for row in joined_words(pairs)]
    [heard] = spelling.pronounce(model, [LONGEST])
    return {"dictionary": dictionary, "joined": joined, "heard": heard}


def joined_words(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Join so many words of PIECE letters as PIECES says, WORDS times each."""
    pieces, draw = _some(pairs, PIECE, 10 * WORDS, seed=0), random.Random(0)
    return [[_join(draw.sample(pieces, count)) for _ in range(WORDS)] for count in PIECES]


def errors(written: Sequence[str], wanted: Sequence[str]) -> int:
    """Return the least number of sounds to insert, delete or replace (Levenshtein)."""
    row = list(range(len(wanted) + 1))
    for i, sound in enumerate(written, start=1):
        above, row[0] = row[0], i
        for j, other in enumerate(wanted, start=1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (sound != other))
    return row[-1]


def _row(model: Seq2Seq, pairs: list[Pair]) -> dict:
    """Return means over words of one length: sounds wanted and written, and errors per sound."""
    accepted = defaultdict(list)
    for word, sounds in pairs:
        accepted[word].append(sounds)
    wrong, wanted, written = 0, 0, spelling.pronounce(model, list(accepted))
    for heard, right in zip(written, accepted.values(), strict=True):
        count, length = min((errors(heard, sounds), len(sounds)) for sounds in right)
        wrong, wanted = wrong + count, wanted + length
    words = len(accepted)
    return {
        "letters": len(pairs[0][0]),
        "words": words,
        "wanted": wanted / words,
        "written": sum(map(len, written)) / words,
        "most": max(map(len, written)),
        "error": wrong / wanted,
    }


def _some(pairs: Sequence[Pair], length: int, most: int, seed: int) -> list[Pair]:
    """Draw words of one length, of plain letters, each with all its pronunciations."""
    words = sorted({word for word, _ in pairs if len(word) == length and word.isalpha()})
    chosen = {*random.Random(seed).sample(words, min(most, len(words)))}
    return [pair for pair in pairs if pair[0] in chosen]


def _join(pieces: Sequence[Pair]) -> Pair:
    words, sounds = zip(*pieces, strict=True)
    return "".join(words), sum(sounds, ())


def _joined_to_learn(learning: list[Pair], seed: int) -> list[Pair]:
    """Join two to five words at random, as often as they have MOST letters together."""
    draw, joined = random.Random(seed), []
    while len(joined) < JOINED:
        pair = _join(draw.choices(learning, k=draw.choice(PIECES)))
        if len(pair[0]) <= MOST:
            joined.append(pair)
    return joined
