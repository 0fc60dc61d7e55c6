"""What the live parts of the site read: the course's own weights, and what their numbers mean.

The weights are files of research/results/weights as they are: safetensors in 16 bits. The rest is
plain text and JSON. static/live has the modules that read and run them.
"""

import json
import re
import shutil
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_lib.corpus import continuations, discounts, occurrences
from course_lib.data.spelling import LETTERS, SOUNDS
from course_lib.instruments.results import FOLDER
from course_lib.pretrained import pronouncer, shakespeare_model
from research.experiments.language_model import split, text

MODULES = Path(__file__).parent / "static" / "live"
ORDER = 7  # of the counts that lesson 10 compares with
PASSAGE = slice(1000, 1129)  # of the held-out text: what a model without a head is measured on
# the lessons that have a live part: at the end of which section, and what is said of it
LESSONS = {
    "02_attention": {
        "## From scores to weights: the softmax": (
            "scores",
            "Move a score, hide a key, change the temperature: which weights change?",
        ),
        "## What it uses": (
            "read_aloud",
            "Try it on words of your own. This model has states of 128 numbers and 6,000 steps "
            "of training; else it is yours.",
        ),
    },
    "04_positions": {
        "## Rotary, derived": ("clocks", "Move the query, the key, or both by one."),
    },
    "10_language_model": {
        "## The baseline: counting": (
            "writer",
            "Here the larger model writes in your browser, beside the counts.",
        ),
    },
    "13_exact_and_sparse_attention": {
        "## Six scores by hand": ("tiles", "The same with your own scores, tile by tile."),
    },
}
SECTION = re.compile(r"^## ", re.MULTILINE)
PLACE = """<div class="live" data-live="{}"><noscript>
<p>This part needs JavaScript, and a page that is served:
<code>python -m http.server -d build/book</code>.</p></noscript></div>"""


def place(name: str) -> str:
    """Return the place of a live part in a page: what is there until its module has started."""
    return PLACE.format(name)


def put_into(notebook: NotebookNode, lesson: str) -> None:
    """Put a lesson's live parts at the ends of their sections, before the bridge to the next."""
    for heading, (name, said) in LESSONS.get(lesson, {}).items():
        cells = [x.source if x.cell_type == "markdown" else "" for x in notebook.cells]
        starts = [i for i, text in enumerate(cells) if SECTION.search(text)]
        [at] = [i for i in starts if heading in cells[i].splitlines()]
        end = next(i for i in starts if i > at)
        notebook.cells.insert(end, new_markdown_cell(f"{said}\n\n{place(name)}"))


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
