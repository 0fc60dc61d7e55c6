"""Lesson 08's pictures: the whole Transformer, its passes, and a model at work."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.patches import Rectangle
from torch import Tensor

from course_lib.instruments import drawings, plots
from course_lib.instruments.drawings import ROLES, SMALL, Box, Diagram, Role

STEP, SIZE = 1.15, (3.6, 0.62)  # from part to part, and a part's size
PART_ROLES: dict[str, Role] = {
    **drawings.PART_ROLES,
    "add positions": "position",
    "linear": "value",
    "softmax": "value",
}
BELOW = ("embedding", "add positions")
SHOWN = 0.05  # weights below have no number


def course_map() -> None:
    """Show the map of the course with every part in colour."""
    drawings.transformer(
        drawings.PART_ROLES,
        "The Transformer of 2017, all of it lit. An encoder block has self-attention and a "
        "feed-forward network; a decoder block has masked self-attention, cross-attention and a "
        "feed-forward network. Add & norm follows each of them.",
    )


def whole() -> None:
    """Show the Transformer with the shape on each arrow."""
    diagram = Diagram()
    encoder, decoder = drawings.ENCODER, drawings.DECODER
    left = _upwards(diagram, (*BELOW, *encoder), 2.4, r"$n \times d$")
    above = (*BELOW, *decoder, "linear", "softmax")
    right = _upwards(diagram, above, 9.1, r"$m \times d$", inner=-1)
    for boxes, x, words, block in (
        (left, 2.4, "source: $n$ token ids", encoder),
        (right, 9.1, "target, shifted right: $m$ token ids", decoder),
    ):
        diagram.text(words, (x, -1.35), size=SMALL)
        diagram.arrow((x, -1.1), boxes[0])
        bottom, height = boxes[2].at[1] - 0.78, len(block) * STEP + 0.04
        diagram.frame("× N", (x, bottom + height / 2), (4.7, height))
    across, top, out = right[4], left[-1], right[-1]
    corners = [(2.4, top.at[1] + 0.8), (5.75, top.at[1] + 0.8), (5.75, across.at[1])]
    diagram.arrow(top, across, via=corners, role="key")
    for text, at in (
        (r"memory $H$, $n \times d$: keys and values", (3.6, top.at[1] + 1.55)),
        ("in every block of the decoder", (3.6, top.at[1] + 1.12)),
        (r"probabilities of the next token: $m \times vocab$", (9.1, out.at[1] + 1.35)),
    ):
        diagram.text(text, at, size=SMALL)
    diagram.arrow(out, (9.1, out.at[1] + 1.1))
    diagram.show(
        "The Transformer with shapes. Encoder: n token ids, embedding, positions, then N blocks of "
        "self-attention and feed-forward, each n by d, up to the memory H. Decoder: m token ids, "
        "embedding, positions, then N blocks of masked self-attention, cross-attention and "
        "feed-forward, each m by d; then linear and softmax, m by vocab. The memory goes as keys "
        "and values into the cross-attention of every decoder block. Residual connections pass "
        "each sublayer."
    )


def _upwards(
    diagram: Diagram, names: Sequence[str], x: float, shape: str, *, inner: int = 1
) -> list[Box]:
    """Draw parts from below upwards, the shape on each arrow, and residual connections beside."""
    boxes = [
        diagram.box(name, (x, i * STEP), PART_ROLES[name], size=SIZE)
        for i, name in enumerate(names)
    ]
    for i, name in enumerate(names[:-1]):
        diagram.arrow(boxes[i], boxes[i + 1])
        at = (x + 0.2 * inner, (i + 0.5) * STEP)
        text = r"$m \times vocab$" if name == "linear" else shape
        diagram.text(text, at, size=SMALL, align="left" if inner > 0 else "right")
    for i, name in enumerate(names):
        if name == "add & norm":
            # the branch begins below the sublayer
            start, side = boxes[i - 1].at[1] - STEP / 2, x - inner * 2.15
            corners = [(side, start), (side, boxes[i].at[1])]
            diagram.arrow((x, start), boxes[i], via=corners, role="stream")
    return boxes


def passes() -> None:
    """Show how *belt* is written in four passes, and learned in one."""
    diagram, wide, high = Diagram(), 1.35, 2.15
    read, target = ["start", *"bel"], "belt"

    def a_pass(left: float, y: float, m: int, used: set[int]) -> list[Box]:
        size = (1.15, 0.6)
        rows = []
        for i in range(m):
            x = left + wide * i
            token = diagram.box(read[i], (x, y), "stream", size=size)
            role: Role = "value" if i in used else "dim"
            rows.append(diagram.box(target[i], (x, y + 1.05), role, size=size))
            diagram.arrow(token, rows[i], role="plain" if i in used else "dim")
        return rows

    for m in range(1, 5):
        y = high * (m - 1)
        rows = a_pass(1.1, y, m, {m - 1})
        diagram.text(f"pass {m}", (0.2, y + 0.5), size=SMALL, align="right")
        if m < 4:
            corner = (1.1 + wide * m, rows[-1].at[1])
            diagram.arrow(rows[-1], (corner[0], y + high - 0.3), via=[corner], role="value")
    a_pass(7.6, 0, 4, {0, 1, 2, 3})
    diagram.text("writing: m passes", (3.1, -0.8))
    diagram.text("training: one pass", (9.6, -0.8))
    for text, y in (
        ("logits, each compared", 2.15),
        ("with the target b e l t", 1.75),
        ("above each token that is read:", 5.2),
        ("its row of logits, by the likeliest token", 4.8),
        ("green: used; grey: thrown away", 4.4),
    ):
        diagram.text(text, (9.6, y), size=SMALL)
    diagram.show(
        "Writing belt takes four passes, drawn from below. Pass 1 reads start, and its row of "
        "logits gives b. Pass 2 reads start, b: the row above b gives e, the row above start is "
        "thrown away. Pass 3 reads start, b, e, and only the last row is used, for l. Pass 4 reads "
        "start, b, e, l, and the last row gives t. Training reads start, b, e, l in one pass, and "
        "all four rows are compared with the target b, e, l, t."
    )


def at_work(source: str, rows: Sequence[str], weights: Tensor) -> None:
    """Show a model writing, pass by pass, and where each new token looks in the source.

    `rows[i]` has the likeliest letter after each of the i + 1 tokens that pass i reads; `weights`
    are those of the last letter of each pass, (passes, source). In a notebook, a slider goes from
    pass to pass.
    """
    most = [source[i] for i in weights.argmax(-1).tolist()]
    own = sum(row[-1] == letter for row, letter in zip(rows, most, strict=True))
    title = "Each pass uses its last row"
    title += f"; {own} of {len(rows)} look most at the letter that they write"
    figure, panels = plots.panels(title, ["likeliest letters", "weights"], size=(9, 3.6))
    letters, looks = panels
    for i, row in enumerate(rows):
        for j, letter in enumerate(row):
            used = j == len(row) - 1
            face, ink = (ROLES["value"], "white") if used else ("#E6E6E6", "0.45")
            cell = Rectangle((j - 0.46, i - 0.42), 0.92, 0.84, facecolor=face)
            letters.add_patch(cell)
            letters.text(j, i, letter, ha="center", va="center", color=ink)
    letters.set(xlim=(-0.7, len(rows) - 0.3), ylim=(len(rows) - 0.4, -0.6))
    letters.set_xticks(range(len(rows)), ["start", *rows[-1][:-1]])
    letters.set_yticks(range(len(rows)), [f"pass {i}" for i in range(1, len(rows) + 1)])
    letters.spines[:].set_visible(False)
    letters.tick_params(length=0)
    letters.set(xlabel="token that is read")
    plots.heat_map(looks, weights, list(rows[-1]), list(source))
    for i, j in (weights >= SHOWN).nonzero().tolist():
        ink = "white" if weights[i, j] < 0.5 else "black"
        looks.text(j, i, f"{weights[i, j]:.1f}", ha="center", va="center", color=ink, size="small")
    looks.set(xlabel="letter of the source", ylabel="letter that is written")
    told = [f"writes {row[-1]}, looks most at {x}" for row, x in zip(rows, most, strict=True)]
    passes = "; ".join(f"pass {i} {text}" for i, text in enumerate(told, 1))
    page = Path(__file__).with_name("passes.html").read_text("utf8")
    filled = {
        "SOURCE": json.dumps(source),
        "ROWS": json.dumps(list(rows)),
        "WEIGHTS": json.dumps([[round(x, 3) for x in row] for row in weights.tolist()]),
        "USED": ROLES["value"],
        "LOOKS": ",".join(f"{255 * channel:.0f}" for channel in to_rgb(ROLES["key"])),
    }
    for name, text in filled.items():
        page = page.replace(f"[[{name}]]", text)
    plots.show(figure, f"A model writes, having read {source}: {passes}.", live=page)


def families(masks: Mapping[str, Tensor]) -> None:
    """Show what a token may see in each family of models; the third has source and target."""
    title = "Everything, the past, or both: what a token (row) may see (column)"
    figure, panels = plots.panels(title, list(masks), size=(9, 3.3))
    text = [f"$x_{i}$" for i in range(1, 9)]
    pair = [f"${side}_{i}$" for side in "st" for i in range(1, 5)]
    for ax, mask, tokens in zip(panels, masks.values(), (text, text, pair), strict=True):
        colours = ListedColormap([plots.COLOURS[0]])
        ax.imshow(mask.float().masked_fill(~mask, torch.nan), cmap=colours)
        _cells(ax, tokens)
    panels[2].axhline(3.5, color=plots.COLOURS[1])
    panels[2].axvline(3.5, color=plots.COLOURS[1])
    plots.show(
        figure,
        "Three 8 by 8 masks, the first two over one text, x1 to x8. Encoder only: all 64 cells are "
        "open. Decoder only: the 36 cells on and below the diagonal. Encoder-decoder, over source "
        "tokens s1 to s4 and target tokens t1 to t4: sources see all sources, targets see all "
        "sources and the targets up to themselves, 42 cells.",
    )


def _cells(ax: Axes, tokens: Sequence[str]) -> None:
    """Name a mask's rows and columns, hatch what is hidden, and draw lines between the cells."""
    n = len(tokens)
    ax.patch.set(facecolor=plots.CARD, edgecolor="0.7", hatch="///")
    ax.set_xticks(range(n), tokens)
    ax.set_yticks(range(n), tokens)
    for set_ticks in (ax.set_xticks, ax.set_yticks):
        set_ticks([i + 0.5 for i in range(n - 1)], minor=True)
    ax.grid(which="minor", color="white", linewidth=1)
    ax.tick_params(which="both", length=0)
