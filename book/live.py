"""What the live parts of the site read: the course's own weights, and what their numbers mean.

The weights are files of results/weights as they are: safetensors in 16 bits. The rest is plain text
and JSON. static/live has the modules that read and run them.
"""

import json
import shutil
from pathlib import Path

from course_lib.data.spelling import LETTERS, SOUNDS
from course_lib.instruments.results import FOLDER
from course_lib.ngrams import continuations, discounts, occurrences
from course_lib.pretrained import pronouncer, shakespeare_model
from experiments.language_model import split, text

MODULES = Path(__file__).parent / "static" / "live"
ORDER = 7  # of the counts that lesson 10 compares with
PASSAGE = slice(1000, 1129)  # of the held-out text: what a model without a head is measured on


def write(folder: Path) -> None:
    """Write all files into a folder. Raises `store.NotFetched` or `store.Damaged`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (pronouncer.NAME, shakespeare_model.NAME):
        shutil.copy(FOLDER / "weights" / f"{name}.safetensors", folder)
    tokens, held_out, vocab = split()
    shorter = [continuations(tokens, length, len(vocab)) for length in range(1, ORDER)]
    longest = occurrences(tokens, ORDER, len(vocab))
    (folder / "shakespeare.txt").write_bytes(text()[: len(tokens)].encode())
    meanings = {
        "pronouncer": {"letters": LETTERS.symbols, "sounds": SOUNDS.symbols},
        "language_model": {
            "vocab": [*vocab],
            "layers": shakespeare_model.LAYERS,
            "heads": shakespeare_model.HEADS,
            "window": shakespeare_model.MAX_LENGTH,
            "discounts": [discounts(counts).tolist() for _, counts in (*shorter, longest)],
            "passage": "".join(vocab[x] for x in held_out[PASSAGE].tolist()),
        },
    }
    (folder / "meanings.json").write_text(json.dumps(meanings), "utf8")
