"""Lesson 03's pictures: who wants whom, weights, roles, matrices that choose, and *ring*."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.patches import Rectangle
from torch import Tensor

from course_lib.data import pointers
from course_lib.instruments import drawings, plots
from course_lib.instruments.drawings import SMALL, Diagram

LETTERS = "ABC"
BLUE, ORANGE, GREEN = plots.COLOURS[:3]


def course_map() -> None:
    """Show the map of the course with self-attention lit."""
    drawings.transformer(
        {"self-attention", "masked self-attention"},
        "The Transformer of 2017 with self-attention lit: it is the first layer of each block of "
        "the encoder. The decoder has it too, with a mask.",
    )


def _minus(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")


def wishes(sentence: Tensor, found: Tensor) -> None:
    """Show three tokens (1, 3, 7), whom each wants, and the number that it must return."""
    own, wanted = (names[0].tolist() for names in pointers.names_of(sentence))
    diagram, boxes, said = Diagram(), [], []
    for i, (token, number) in enumerate(zip(sentence[0].tolist(), found[0].tolist(), strict=True)):
        name, other = LETTERS[own[i]], LETTERS[wanted[i]]
        text = f"name {name}\nwants {other}\nnumber {_minus(token[-1])}"
        boxes.append(diagram.box(text, (4 * i, 0), "stream", size=(2.6, 2.0)))
        diagram.text(f"must return {_minus(number[0])}", (4 * i, -1.45))
        said.append(f"{name} wants {other} and must return {number[0]:.2f}")
    for i, name in enumerate(wanted):
        j = own.index(name)
        # ways back, and ways past another token, go above
        over = [] if j == i + 1 or (j == i - 1 and wanted[j] != own[i]) else [1.7]
        via = [(4 * place, y) for y in over for place in (i, j)]
        diagram.arrow(boxes[i], boxes[j], via=via, role="query")
    diagram.show(
        "Three tokens as boxes, each with a name, the name that it wants, and a number. An arrow "
        f"leads from each to the one that it wants. {'; '.join(said)}."
    )


def found(title: str, sentence: Tensor, weights: Tensor, fetched: Tensor) -> None:
    """Show the weights of three tokens (3, 3), what each gets, and frame what it wants."""
    figure, ax = plots.axes(title, "key", "query", size=(5.6, 3))
    own, wanted = (names[0].tolist() for names in pointers.names_of(sentence))
    got = [_minus(x) for x in fetched.flatten().tolist()]
    rows = [
        f"{LETTERS[name]}, wants {LETTERS[other]}: gets {x}"
        for name, other, x in zip(own, wanted, got, strict=True)
    ]
    plots.heat_map(ax, weights, rows, [f"name {LETTERS[name]}" for name in own], numbers=True)
    for i, name in enumerate(wanted):
        corner = own.index(name) - 0.46, i - 0.46
        style: dict[str, Any] = {"fill": False, "edgecolor": ORANGE, "linewidth": 3}
        ax.add_patch(Rectangle(corner, 0.92, 0.92, **style))
    shown = "; ".join(", ".join(f"{w:.2f}" for w in row) for row in weights.tolist())
    plots.show(
        figure,
        "Weights of three tokens, a row a query; the key that each wants is framed. "
        f"{'; '.join(rows)}. Weights: {shown}.",
    )


def example(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Show scaled dot-product attention of the first of three tokens, number by number."""
    scores = (q[0] @ k.T).tolist()
    weights = torch.softmax(q[0] @ k.T / q.shape[-1] ** 0.5, -1).tolist()
    output = (torch.tensor(weights) @ v).tolist()
    keys, values = k.tolist(), v.tolist()
    diagram = Diagram()
    query = diagram.box("$q_1$\n(1, 0)", (0, 0), "query", size=(1.2, 1.2))
    text = f"sum\n({output[0]:.3f}, {output[1]:.3f})"
    total = diagram.box(text, (11.0, 0), "value", size=(2.4, 1.2))
    for i, y in enumerate((2, 0, -2)):
        text = f"$k_{i + 1}$\n({keys[i][0]:g}, {keys[i][1]:g})"
        key = diagram.box(text, (2.0, y), "key", size=(1.3, 1.2))
        score = diagram.box(f"{scores[i]:g}", (3.7, y), size=(0.8, 0.8))
        weight = diagram.box(f"{weights[i]:.3f}", (5.4, y), "weights", size=(1.3, 0.8))
        text = f"{weights[i]:.3f} · ({values[i][0]:g}, {values[i][1]:g})"
        part = diagram.box(text, (8.0, y), "value", size=(2.5, 0.8))
        diagram.arrow(query, key, via=[(0.95, 0), (0.95, y)] if y else [], role="query")
        diagram.arrow(key, score, role="key")
        diagram.arrow(score, weight)
        diagram.arrow(weight, part, role="weights")
        diagram.arrow(part, total, via=[(11.0, y)] if y else [], role="value")
    diagram.text("$q_1 \\cdot k_j$", (3.7, 2.9), size=SMALL)
    diagram.text("softmax of\nscore / $\\sqrt{2}$", (5.4, 3.05), size=SMALL)
    diagram.text("weight · $v_j$", (8.0, 2.9), size=SMALL)
    told = ", ".join(f"{w:.3f}" for w in weights)
    diagram.show(
        "Token 1. Its query (1, 0) meets the keys (0, 1), (1, 0) and (1, 1): scores 0, 1 and 1. "
        f"Divided by the root of 2, the softmax gives weights {told}. They multiply the values "
        "(2, 0), (0, 1) and (2, 1), and the sum of the three products is "
        f"({output[0]:.3f}, {output[1]:.3f})."
    )


def shapes() -> None:
    """Show self-attention as matrices with their shapes."""
    diagram, cell = Diagram(), 0.26
    axes = ("", "$d_k$")
    x = diagram.matrix("$X$", (4, 6), (0, 0), "stream", axes=("$n$", "$d_{model}$"), cell=cell)
    q = diagram.matrix("$Q = XW_Q$", (4, 3), (3.4, 2.8), "query", axes=axes, cell=cell)
    k = diagram.matrix("$K = XW_K$", (4, 3), (3.4, 0), "key", axes=axes, cell=cell)
    v = diagram.matrix("$V = XW_V$", (4, 2), (3.4, -2.8), "value", axes=("", "$d_v$"), cell=cell)
    e = diagram.matrix("$QK^T\\!/\\sqrt{d_k}$", (4, 4), (6.2, 1.4), cell=cell)
    w = diagram.matrix("weights", (4, 4), (9.1, 1.4), "weights", cell=cell)
    for at in (6.2, 9.1):
        diagram.text("(n × n)", (at, 0), size=SMALL)
    o = diagram.matrix("weights × V", (4, 2), (10.6, -2.8), "value", axes=("", "$d_v$"), cell=cell)
    for part, y in ((q, 2.8), (k, 0), (v, -2.8)):
        diagram.arrow(x, part, via=[(1.8, 0), (1.8, y)] if y else [], role="stream")
    diagram.arrow(q, e, leave="E", role="query")
    diagram.arrow(k, e, via=[(4.7, 0), (4.7, 1.4)], role="key")
    diagram.arrow(e, w, "softmax")
    diagram.arrow(w, (10.6, -1.8), leave="E", role="weights")
    diagram.arrow(v, o, role="value")
    diagram.show(
        "Tokens X, n by d_model, are multiplied by three matrices: queries Q and keys K, n by d_k, "
        "and values V, n by d_v. Q times K transposed, divided by the root of d_k, gives n by n "
        "scores, their softmax the weights; weights times V is the output, n by d_v."
    )


def choices(matrices: Mapping[str, Tensor]) -> None:
    """Show matrices M = W_Q W_K^T of 17 by 17: which feature looks for which."""
    title = "Set by hand or found by training: *wanted* looks for *own*"
    figure, grid = plots.panels(title.replace("*", ""), list(matrices), size=(7.4, 6.6), rows=2)
    parts = [3.5, 11.5, 16], ["own", "wanted", "nr."]
    said = []
    for place, (ax, (name, m)) in enumerate(zip(grid, matrices.items(), strict=True)):
        m = (m / m.abs().max()).detach()
        ax.set_title(name, size="small", pad=3)
        image = ax.imshow(m.numpy(), cmap="RdBu_r", vmin=-1, vmax=1)
        for edge in (7.5, 15.5):
            ax.axhline(edge, color="black", linewidth=0.8)
            ax.axvline(edge, color="black", linewidth=0.8)
        ax.set_xticks(*parts)
        ax.set_yticks(*parts, rotation=90, va="center")
        ax.tick_params(length=0)
        if place % 2 == 0:
            ax.set_ylabel("feature of the query's token")
        if place > 1:
            ax.set_xlabel("feature of the key's token")
        blocks = {
            f"{row} by {column}": m[i : i + 8, j : j + 8].diagonal().mean().item()
            for row, i in (("own", 0), ("wanted", 8))
            for column, j in (("own", 0), ("wanted", 8))
        }
        said.append(f"{name}: " + ", ".join(f"{x} {mean:.2f}" for x, mean in blocks.items()))
    figure.colorbar(image, ax=grid, label="entry of M (largest = 1)", shrink=0.6)
    # a panel's name is nearer to it than to the title
    figure.set_layout_engine("constrained", h_pad=0.1)
    plots.show(
        figure,
        "Four matrices M of 17 by 17 as heat maps, in blocks: own name, wanted name, number. Mean "
        f"of the diagonal of each block of names: {'; '.join(said)}.",
    )


def senses(
    one: Mapping[str, Sequence[Sequence[float]]], both: Mapping[str, Sequence[float]]
) -> None:
    """Show which ways tell the *ring* of a jewel from that of a bell, each way in a row.

    `one` holds, for lines with one *ring*, how far those of sounds and those of jewels lean to the
    jewels; `both`, for lines with both, how much farther the jewel's leans than the sound's.
    """
    title = "Alone, the state of “ring” does not tell jewels from sounds; with attention it does"
    names = ["lines with one ring: its lean to the jewel", "lines with both: jewel's minus sound's"]
    figure, (left, right) = plots.panels(title, names, size=(9.6, 2.9))
    said = []
    for y, (name, leans) in enumerate(one.items()):
        for of, colour, shift in zip(leans, (BLUE, ORANGE), (-0.12, 0.12), strict=True):
            left.plot(of, [y + shift] * len(of), "o", color=colour, alpha=0.6)
        gaps = both[name]
        right.scatter(gaps, [y] * len(gaps), c=[GREEN if gap > 0 else "0.6" for gap in gaps])
        above = [jewel > sound for sound in leans[0] for jewel in leans[1]]
        pairs = f"{sum(above)} of {len(above)} pairs"
        lines = f"{sum(gap > 0 for gap in gaps)} of {len(gaps)} lines"
        for ax, count in ((left, pairs), (right, lines)):
            place = {"transform": ax.get_yaxis_transform(), "va": "center", "size": "small"}
            ax.text(1.02, y, f"{count}\nin order", **place)
        said.append(f"{name}: {pairs} of lines, {lines} with both")
    left.set_yticks(range(len(one)), list(one))
    right.set_yticks([])
    corner: dict[str, Any] = {"transform": left.transAxes, "size": "small"}
    left.text(0.02, 0.04, "sounds", color=BLUE, **corner)
    left.text(0.98, 0.04, "jewels", color=ORANGE, ha="right", **corner)
    seen = [x for leans in one.values() for of in leans for x in of]
    seen += [gap for gaps in both.values() for gap in gaps]
    margin = 0.06 * (max(seen) - min(seen))
    for ax in (left, right):
        ax.axvline(0, color="0.6", linewidth=1, zorder=0)
        ax.set(ylim=(len(one) - 0.4, -0.5), xlabel="difference of cosines")
        ax.set(xlim=(min(seen) - margin, max(seen) + margin))
        ax.locator_params(axis="x", nbins=4)
    plots.show(
        figure,
        "Dots for lines, a row for each way to tell the ring of a jewel from the ring of a bell. "
        "How many are in order, with one ring in the line, and with both: "
        f"{'; '.join(said)}.",
    )
