"""The page of a recording: HTML that stands alone, in Lab, in a static page and as a file."""

import html
import json
from functools import cache
from pathlib import Path
from typing import Any

from torch import nn

from course_lib.files.atomic import write_atomically
from course_lib.xray.packing import packed
from course_lib.xray.stages import record

PAGE = Path(__file__).parent / "page"
SCRIPTS = ("basics", "heat_map", "drawing", "stages", "attention", "next_token", "main")


class XRay:
    """An X-ray of a model that has read a sentence: a notebook shows it, `save` writes it."""

    def __init__(self, data: dict[str, Any]):
        self._data = data

    @property
    def changes(self) -> dict[str, float | None]:
        """By how much each stage of the version beside differs, as a share of its size.

        The stages are in the order in which the model computes them; None where only one version
        has a stage.
        """
        return self._data["changes"]

    def lens(self, row: int = -1) -> list[str]:
        """Return what each level would have said after a token: the embedding, then each block.

        Raises ValueError for a model that has no output layer.
        """
        version = self._data["versions"][0]
        if "lens" not in version:
            raise ValueError("this model has no output layer, so its layers say no next token")
        lens = version["lens"]
        return [lens["names"][level[row][0]] for level in lens["tokens"]]

    def data(self) -> str:
        """Return what the page shows, as JSON that may stand inside a script."""
        written = json.dumps(self._data, ensure_ascii=False, separators=(",", ":"))
        # a text inside a script may not end it
        return written.replace("<", "\\u003c")

    def page(self) -> str:
        """Return the whole page, which needs no network and no kernel."""
        title = html.escape(f"X-ray of {self._data['title']}: {self._data['sentence']}")
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<style>{_file("xray.css")}</style></head><body><main id="xray"></main>'
            f'<script id="data" type="application/json">{self.data()}</script>'
            f"<script>{script()}</script></body></html>"
        )

    def save(self, path: str | Path) -> None:
        """Write the page into a file that any browser opens. Raises OSError."""
        write_atomically(Path(path), self.page())

    def _repr_html_(self) -> str:
        """Show the page in a frame of its own, so that its style and the notebook's stay apart."""
        title = html.escape(f"X-ray of {self._data['title']}: {self._data['sentence']}")
        page = self.page().replace("&", "&amp;").replace("'", "&#39;")
        style = "width:100%;height:760px;border:0"
        return f'<iframe title="{title}" style="{style}" srcdoc=\'{page}\'></iframe>'

    def __repr__(self) -> str:
        stages, attentions = (self._data["versions"][0][name] for name in ("stages", "attentions"))
        return (
            f"X-ray of {self._data['title']} on {self._data['sentence']!r}: {len(stages)} stages, "
            f"{len(attentions)} layers of attention. A notebook shows it; .save(path) writes it."
        )


def xray(
    model: nn.Module,
    sentence: str,
    *,
    words: Any = None,
    target: str | None = None,
    beside: nn.Module | None = None,
    columns: int = 64,
) -> XRay:
    """Look inside a model while it reads a sentence: every stage, every head, the next token.

    `words` is the model's tokenizer, or the list of its tokens' names, where the model has none of
    its own. An encoder-decoder writes its own target, or reads the `target` that is given. With
    `beside`, another version of the model reads the same, and the differences are shown. Of wide
    tensors the page keeps the first `columns`, or fewer where a sentence is long. Raises
    TypeError for a model that is not made of the course's parts, and ValueError for a sentence
    that is empty, too long, or not in the vocabulary.
    """
    first = record(model, sentence, words, target)
    recordings = [first]
    if beside is not None:
        # both read the same target, that of the first, so that their stages can be compared
        same = first.outline.expected if first.outline.written else None
        recordings.append(record(beside, sentence, words, same))
    return XRay(packed(recordings, sentence, columns))


@cache
def _file(name: str) -> str:
    return (PAGE / name).read_text("utf8")


@cache
def script() -> str:
    """Return the page's own script: its files one after the other, in a scope of their own."""
    return "(()=>{" + "\n".join(_file(f"{name}.js") for name in SCRIPTS) + "})()"
