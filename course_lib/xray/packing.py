"""A recording as data for the page: half-precision numbers in base64, and a table of contents."""

import base64
import linecache
from types import CodeType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.xray.calls import Call
from course_lib.xray.formulas import FORMULAS, mathml
from course_lib.xray.owners import owner_of, source_of
from course_lib.xray.stages import Column, Recording, Stage

MOST = 940_000  # bytes of one page's data, of which base64 takes a third more than the numbers
WIDTHS = (48, 32, 24, 16, 12, 8, 4)  # columns of a tensor that may be kept
LEAST = 4  # columns of each head, however many heads there are
BEST = 128  # tokens whose logits are kept one by one, at each place
BINS = 256  # and the other tokens are counted, by their logits


class _Numbers:
    """Tensors one after the other, each found by its offset and its shape."""

    def __init__(self):
        self._parts: list[np.ndarray] = []
        self.length = 0

    def add(self, tensor: Tensor) -> int:
        """Keep a tensor, and return where it begins."""
        halves = tensor.detach().float().clamp(-65000, 65000).half().cpu().contiguous().numpy()
        begin, self.length = self.length, self.length + halves.size
        self._parts.append(halves.reshape(-1).astype("<f2"))
        return begin

    def text(self) -> str:
        return base64.b64encode(np.concatenate(self._parts).tobytes()).decode()


class TooLarge(ValueError):
    """A sentence whose data do not fit into a page."""


def packed(recordings: list[Recording], sentence: str, columns: int = 64) -> dict[str, Any]:
    """Return the data of one version of a model, or of two, as JSON holds them.

    Of a wide tensor so many `columns` are kept, or fewer where the sentence is long.

    Raises ValueError for a sentence that is too long for a page.
    """
    for width in (columns, *(width for width in WIDTHS if width < columns)):
        data = _packed(recordings, sentence, width)
        if data["size"] <= MOST:
            return data
    tokens = max(len(column.tokens) for column in recordings[0].columns)
    raise TooLarge(
        f"{tokens} tokens in this model are too many for one page: take a shorter sentence"
    )


def _packed(recordings: list[Recording], sentence: str, width: int) -> dict[str, Any]:
    numbers, sources, formulas = _Numbers(), {}, {}
    versions = [_version(one, numbers, sources, formulas, width) for one in recordings]
    for version, name in zip(versions, ("the model", "beside it"), strict=False):
        version["name"] = name
    first = recordings[0]
    data = {
        "title": first.outline.title,
        "sentence": sentence,
        "written": first.outline.written,
        "versions": versions,
        "sources": list(sources.values()),
        "formulas": [{"math": mathml(name), "words": FORMULAS[name][1]} for name in formulas],
        "changes": _changes(*recordings) if len(recordings) > 1 else {},
    }
    rough = sum(len(source["text"]) for source in sources.values()) + 200 * sum(
        len(version["stages"]) + 8 * len(version.get("lens", {}).get("tokens", []))
        for version in versions
    )
    data["size"] = rough + numbers.length * 8 // 3
    if data["size"] <= MOST:
        data["numbers"] = numbers.text()
    return data


def _version(
    recording: Recording, numbers: _Numbers, sources: dict, formulas: dict, width: int
) -> dict[str, Any]:
    stages = {
        key: _stage(stage, numbers, sources, formulas, width)
        for key, stage in recording.stages.items()
    }
    version: dict[str, Any] = {
        "columns": [_column(column) for column in recording.columns],
        "stages": stages,
        "attentions": [attention._asdict() for attention in recording.attentions],
    }
    if recording.logits is not None:
        version["next"] = _next(recording, numbers)
    if recording.lens:
        lens = recording.lens
        names = {token for level in lens.tokens for row in level for token in row}
        version["lens"] = {
            "levels": lens.levels,
            "tokens": lens.tokens,
            "names": {token: recording.outline.name(token) for token in sorted(names)},
            "at": numbers.add(lens.probabilities),
        }
    return version


def _column(column: Column) -> dict[str, Any]:
    def panels(some: list) -> list[list]:
        return [[panel.label, panel.role, panel.keys] for panel in some]

    return {
        "name": column.name,
        "tokens": column.tokens,
        "before": panels(column.before),
        "blocks": [panels(block) for block in column.blocks],
        "after": panels(column.after),
    }


def _stage(
    stage: Stage, numbers: _Numbers, sources: dict, formulas: dict, width: int
) -> dict[str, Any]:
    value, code = stage.value, stage.author.code
    # a tensor without heads is a tensor of one
    heads = value if value.dim() == 3 else value.reshape(1, -1, value.shape[-1])
    square = stage.label == "weights"
    each = heads.shape[-1] if square or stage.columns else max(LEAST, width // len(heads))
    kept = heads[..., :each]
    _keep_source(code, sources)
    formulas.setdefault(stage.formula, len(formulas))
    norms = [] if square else value.reshape(-1, *heads.shape[-2:]).square().sum((0, 2)).sqrt()
    packed: dict[str, Any] = {
        "label": stage.label,
        "shape": [*value.shape[:-1], stage.wide or value.shape[-1]],
        "kept": list(kept.shape),
        "at": numbers.add(kept),
        "source": list(sources).index(code),
        **_called(stage.author, sources),
        "formula": formulas[stage.formula],
    }
    if len(norms):
        packed["norms"] = [float(f"{norm:.3g}") for norm in torch.as_tensor(norms).tolist()]
    if stage.columns:
        packed["columns"] = stage.columns
    return packed


def _called(author: Call, sources: dict) -> dict[str, Any]:
    """Return the function that called a stage's author, and the line there, unless the course's."""
    line = linecache.getline(author.caller.co_filename, author.line) if author.caller else ""
    if author.caller is None or not line or owner_of(author.caller) == "the course's":
        return {}
    _keep_source(author.caller, sources)
    return {"caller": list(sources).index(author.caller), "line": line.strip()}


def _keep_source(code: CodeType, sources: dict) -> None:
    if code not in sources:
        text = source_of(code)
        sources[code] = {"name": code.co_qualname, "owner": owner_of(code), "text": text}


def _next(recording: Recording, numbers: _Numbers) -> dict[str, Any]:
    """Keep the logits of each place: the best one by one, and a histogram of the rest."""
    assert recording.logits is not None
    logits = recording.logits.float().cpu()
    vocab = logits.shape[-1]
    # what comes first is kept as it is; offsets from the best one lose nothing in half precision
    best = logits.sort(dim=-1, descending=True)
    count = min(vocab, BEST)
    offsets = best.values - best.values[:, :1]
    rest, edges = offsets[:, count:], None
    if rest.shape[-1]:
        edges = torch.stack(
            [torch.histc(row, BINS, float(row.min()), float(row.max()) + 1e-6) for row in rest]
        )
    names = sorted({token for row in best.indices[:, :count].tolist() for token in row})
    place = {token: i for i, token in enumerate(names)}
    packed: dict[str, Any] = {
        "vocab": vocab,
        "names": [recording.outline.name(token) for token in names],
        "tokens": [[place[token] for token in row] for row in best.indices[:, :count].tolist()],
        "at": numbers.add(offsets[:, :count]),
        "expected": [recording.outline.name(token) for token in recording.outline.expected],
    }
    if edges is not None:
        packed["rest"] = {
            "least": [round(x, 3) for x in rest.min(-1).values.tolist()],
            "most": [round(x, 3) for x in rest.max(-1).values.tolist()],
            "bins": BINS,
            "at": numbers.add(edges),
        }
    return packed


def _changes(first: Recording, second: Recording) -> dict[str, float | None]:
    """Return by how much each stage of the second differs, as a share of the first's size."""
    changes: dict[str, float | None] = {}
    for key, stage in first.stages.items():
        other = second.stages.get(key)
        if other is None or other.value.shape != stage.value.shape:
            changes[key] = None
            continue
        size = stage.value.norm().clamp(min=1e-12)
        changes[key] = float(f"{(other.value - stage.value).norm() / size:.3g}")
    return changes
