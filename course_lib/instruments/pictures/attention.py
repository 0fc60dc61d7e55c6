"""Lesson 02's pictures: one step, a table of colours, matrices, words by length, where it looks."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Rectangle
from torch import Tensor

from course_lib.instruments import drawings, plots
from course_lib.instruments.drawings import SMALL, Diagram, Role

Answer = Callable[[float], tuple[Tensor, Tensor]]  # temperature -> weights, colour

WIDE = "one vector of 256"  # states four times as wide as the page's
SHOWN = (0.01, 0.05, 0.1, 0.2, 1.0, 10.0)  # temperatures beside each other
SLIDER = [10 ** (step / 20) for step in range(-40, 21)]  # temperatures by hand


def course_map() -> None:
    """Show the map of the course with cross-attention lit."""
    drawings.transformer(
        {"cross-attention"},
        "The Transformer of 2017: an encoder of self-attention and feed-forward layers beside a "
        "decoder that has masked self-attention, cross-attention and feed-forward layers. "
        "Cross-attention is lit: its keys and values come from the encoder.",
    )


def one_step() -> None:
    """Show one step of the decoder: scores, weights, a sum, a prediction."""
    diagram, small = Diagram(), (1.1, 0.8)
    columns = (1.5, 3.8, 6.1)
    before = diagram.box("$s_1$", (8.0, 1.6), "query", size=small)
    query = diagram.box("$s_2$", (9.9, 1.6), "query", size=small)
    context = diagram.box("$c_2$", (9.9, 6.7), "value", size=small)
    output = diagram.box("linear", (11.9, 6.7), "network", size=(1.6, 0.8))
    diagram.frame("softmax:\nthe sum is 1", (4.4, 4.8), (6.6, 1.2))
    for j, (x, letter) in enumerate(zip(columns, "cat", strict=True), start=1):
        state = diagram.box(f"$h_{j}$", (x, 1.6), "key", size=small)
        diagram.arrow(diagram.box(letter, (x, 0), "stream", size=(0.8, 0.7)), state)
        score = diagram.box(f"$e_{{2{j}}}$", (x + 0.3, 3.3), size=(0.9, 0.7))
        weight = diagram.box(rf"$\alpha_{{2{j}}}$", (x + 0.3, 4.8), "weights", size=(0.9, 0.7))
        times = diagram.box("×", (x + 0.3, 6.7), "value", size=(0.7, 0.7))
        diagram.arrow((x + 0.1, 2.0), (x + 0.1, 2.95), role="key")
        diagram.arrow(query, (x + 0.5, 2.95), via=[(9.9, 2.5), (x + 0.5, 2.5)], role="query")
        diagram.arrow(score, weight)
        diagram.arrow(weight, times, role="weights")
        way = [(x - 0.9, 1.6), (x - 0.9, 6.7)]
        diagram.arrow(state, times, via=way, role="value")
        diagram.arrow(times, context, via=[(x + 0.3, 7.6), (9.9, 7.6)], role="value")
        if j < 3:
            diagram.arrow((x + 0.55, 1.4), (columns[j] - 0.55, 1.4), role="key")
    diagram.arrow(before, query, role="query")
    diagram.arrow(context, output)
    diagram.arrow(query, output, via=[(11.9, 1.6)], role="query")
    diagram.arrow(output, (11.9, 7.9))
    diagram.text("AE1", (11.9, 8.2))
    for name, at in (
        ("sum", (8.6, 7.9)),
        ("value", (0.2, 3.6)),
        ("key", (1.25, 2.75)),
        ("query", (8.2, 2.75)),
    ):
        diagram.text(name, at, size=SMALL)
    diagram.show(
        "The second sound of cat. Each encoder state h1, h2, h3 goes two ways. As a key it meets "
        "the decoder's state s2, the query, which gives a score; a softmax turns the three scores "
        "into three weights. As a value it is multiplied by its weight. The sum of the three "
        "products is the context c2, and a linear layer reads c2 and s2 and predicts AE1."
    )


def nearest(colour: Tensor, names: Sequence[str]) -> str:
    """Name the colour that is nearest to one of red, green and blue, each from 0 to 1."""
    return min(names, key=lambda name: (torch.tensor(to_rgb(name)) - colour).norm().item())


def lookup(query: str, names: Sequence[str], weights: Tensor, colour: Tensor) -> None:
    """Show what is asked for, the weights of the table's colours, and the answer."""
    figure, axes = plots.plt.subplots(1, 3, figsize=(6.8, 2.4), width_ratios=[1, 4.6, 1])
    first, second = (names[i] for i in weights.topk(2).indices.tolist())
    title = f"The table has no {query}: its answer is mostly {first} and {second}"
    figure.suptitle(title, x=0.01, ha="left", size="medium")
    _swatch(axes[0], "query", to_rgb(query))
    _bars(axes[1], "weights", names, weights)
    axes[1].set_xticks(range(len(names)), names, size="small")
    _swatch(axes[2], "answer", colour.tolist())
    named = ", ".join(f"{name} {x:.2f}" for name, x in zip(names, weights.tolist(), strict=True))
    plots.show(
        figure,
        f"The query, {query}; bars of the weights of six colours, {named}; and the answer, whose "
        f"red, green and blue are {', '.join(f'{x:.2f}' for x in colour.tolist())}.",
    )


def temperatures(query: str, names: Sequence[str], answer: Answer) -> None:
    """Show weights and answers at six temperatures; in a notebook, a slider moves it."""
    title = "A low temperature picks the nearest colour, a high one averages all of them"
    figure, rows = plots.plt.subplots(2, 7, figsize=(8.8, 2.6), height_ratios=[5, 1])
    figure.suptitle(title, x=0.01, ha="left", size="medium")
    rows[0][0].set_axis_off()
    _swatch(rows[1][0], "query", to_rgb(query))
    said = []
    for top, bottom, temperature in zip(*rows[:, 1:], SHOWN, strict=True):
        weights, colour = answer(temperature)
        _bars(top, f"τ = {temperature:g}", names, weights)
        top.set_xticks(range(len(names)), [name[0] for name in names], size="x-small")
        _swatch(bottom, "", _clamped(colour))
        most = int(weights.argmax())
        said.append(f"{temperature:g}: {names[most]} {weights[most]:.2f}, {_hex(colour)}")
    rows[0][1].set(ylabel="weight")
    rows[1][1].set_ylabel("answer", rotation=0, ha="right", va="center")
    moved = [answer(temperature) for temperature in SLIDER]
    page = Path(__file__).with_name("lookup.html").read_text("utf8")
    for name, value in {
        "TEMPERATURES": json.dumps([float(f"{x:.3g}") for x in SLIDER]),
        "WEIGHTS": json.dumps([[round(x, 4) for x in w.tolist()] for w, _ in moved]),
        "ANSWERS": json.dumps([_hex(colour) for _, colour in moved]),
        "NAMES": json.dumps([*names]),
        "QUERY": query,
    }.items():
        page = page.replace(f"[[{name}]]", value)
    plots.show(
        figure,
        f"The query, {query}, and bars of six weights at temperatures from 0.01 to 10. Largest "
        f"weight and answer at {'; '.join(said)}. In a notebook, a slider moves the temperature.",
        live=page,
    )


def _swatch(ax: Any, name: str, colour: Sequence[float]) -> None:
    ax.set(facecolor=tuple(colour), xticks=[], yticks=[])
    ax.set_title(name, size="small")


def _bars(ax: Any, name: str, names: Sequence[str], weights: Tensor) -> None:
    ax.bar(range(len(names)), weights.tolist(), color=names, edgecolor="black", linewidth=0.6)
    ax.set(ylim=(0, 1), xticks=[], yticks=[0, 1])
    ax.set_title(name, size="small")


def _clamped(colour: Tensor) -> tuple[float, float, float]:
    red, green, blue = colour.clamp(0, 1).tolist()
    return red, green, blue


def _hex(colour: Tensor) -> str:
    return to_hex(_clamped(colour))


def matrices() -> None:
    """Show scores, weights and sums of many queries as products of matrices."""
    diagram = Diagram()
    parts: tuple[tuple[str, tuple[int, int], tuple[float, float], Role, tuple[str, str]], ...] = (
        ("$Q$", (3, 4), (0, 0), "query", ("$n_q$", "$d$")),
        ("$K^T$", (4, 5), (2.9, 0), "key", ("$d$", "$n_k$")),
        ("$E = QK^T$", (3, 5), (6.6, 0), "weights", ("$n_q$", "$n_k$")),
        ("$A$", (3, 5), (0, -3.9), "weights", ("$n_q$", "$n_k$")),
        ("$V$", (5, 2), (2.9, -3.9), "value", ("$n_k$", "$d_v$")),
        ("$O = AV$", (3, 2), (6.6, -3.9), "value", ("$n_q$", "$d_v$")),
    )
    for name, shape, at, role, axes in parts:
        diagram.matrix(name, shape, at, role, axes=axes)
    for y in (0, -3.9):
        diagram.text("×", (1.3, y))
        diagram.text("=", (4.6, y))
    turns = [(9, 0), (9, -1.75), (0, -1.75)]
    diagram.arrow((7.6, 0), (0, -2.9), "softmax of each row", via=turns, role="weights")
    diagram.show(
        "Matrices as blocks. Q, 3 by 4, times K transposed, 4 by 5, gives scores E, 3 by 5. The "
        "softmax of each row gives weights A of the same shape. A times V, 5 by 2, gives the "
        "output O, 3 by 2: one row for each query."
    )


def by_length(
    figures: Mapping[str, Any], yours: Mapping[str, Sequence[float]], widths: Mapping[str, Any]
) -> None:
    """Show the share of words that are read rightly, by length: stored bands, live dots.

    `figures` are those of research's `attention`, `widths` of its `bottleneck`; `yours` has shares
    at the same lengths.
    """
    title = "Attention reads several times as many long words as one vector of the same width"
    letters, share = "letters in the word (words tested)", "share of words all right"
    figure, ax = plots.axes(title, letters, share, size=(7.4, 4))
    shown = {"attention": "attention", "one vector": "one vector,", "all letters alike": "average"}
    # two of the lines end as one, so their names stand side by side
    places = {
        "attention": (14.3, 0.17),
        "one vector": (14.3, 0.04),
        "all letters alike": (16.1, 0.04),
    }
    said = []
    for (arm, name), colour in zip(shown.items(), plots.COLOURS[2::-1], strict=True):
        runs = torch.tensor([run["accuracy"] for run in figures[arm]])
        least, mean, most = runs.amin(0).tolist(), runs.mean(0).tolist(), runs.amax(0).tolist()
        ax.fill_between(figures["lengths"], least, most, color=colour, alpha=0.25, linewidth=0)
        ax.plot(figures["lengths"], mean, color=colour)
        if arm in yours:
            ax.plot(figures["lengths"], yours[arm], "o", color=colour, markersize=5)
        ax.text(*places[arm], name, color=colour, va="center")
        said.append(f"{name.strip(',')}: {', '.join(f'{x:.2f}' for x in mean)}")
    wide = torch.tensor([run["accuracy"] for run in widths["runs"][WIDE]["1500"]]).mean(0).tolist()
    ax.plot(figures["lengths"], wide, color="0.3", linewidth=0.8)
    ax.annotate(
        "one vector, four times as wide:\neight times the parameters",
        (4, wide[1]),
        (5.2, 0.9),
        size="small",
        color="0.3",
        arrowprops={"arrowstyle": "-", "color": "0.3", "linewidth": 0.6},
    )
    said.append(f"one vector, four times as wide: {', '.join(f'{x:.2f}' for x in wide)}")
    ax.text(11, 0.92, "dots: yours\nbands: three seeds", size="small", va="top", color="0.3")
    ax.set(ylim=(0, 1), xlim=(2.6, 17.6), xticks=figures["lengths"])
    counted = zip(figures["lengths"], figures["words"], strict=True)
    ax.set_xticklabels([f"{n}\n({count})" for n, count in counted], size="x-small")
    plots.show(
        figure,
        "Share of words with all sounds right, against 3 to 14 letters, three seeds as bands, your "
        f"models as dots; one vector of wider states as a thin line. {'. '.join(said)}.",
    )


def alignments(title: str, read: Mapping[str, tuple[Tensor, Sequence[str], str]]) -> None:
    """Show the weights of each reading: (weights, sounds, word), a row a sound."""
    width = [max(5, len(word)) for *_, word in read.values()]
    rows = max(len(sounds) for _, sounds, _ in read.values())
    size = (min(10.5, 1.6 + 0.27 * sum(width)), max(3.8, 0.8 + 0.17 * rows))
    figure, panels = plots.plt.subplots(
        1, len(read), figsize=size, width_ratios=width, squeeze=False
    )
    figure.suptitle(title, x=0.01, ha="left", size="medium")
    said = []
    for ax, (name, (weights, sounds, word)) in zip(panels[0], read.items(), strict=True):
        names, letters = [*sounds, "stop"], [*word, "·"]
        image = ax.imshow(weights.numpy(), vmin=0, vmax=1, aspect="auto")
        ax.set_xticks(range(len(letters)), letters)
        ax.set_yticks(range(len(names)), names, size="small")
        ax.set_title(name, size="small")
        ax.set(xlabel="key: a letter (· is the end)")
        most = zip(names, weights.max(-1).values.tolist(), weights.argmax(-1).tolist(), strict=True)
        told = ", ".join(f"{sound} {letters[at]} {weight:.2f}" for sound, weight, at in most)
        said.append(f"{name}, {word}: {told}")
    panels[0][0].set(ylabel="query: a sound")
    figure.colorbar(image, ax=[*panels[0]], label="weight")
    plots.show(
        figure,
        "Heat maps of weights, a row a sound, a column a letter. Each sound, the letter with the "
        f"most weight, and that weight: {'; '.join(said)}.",
    )


def looks_and_uses(
    title: str,
    weights: Tensor,
    drops: Tensor,
    written: Sequence[str],
    read: Sequence[str],
    marked: Sequence[tuple[str, str]] = (),
) -> None:
    """Show weights beside drops in probability, a row for what is written, and mark cells.

    A row of the stop is left out: its weight is on the end of what is read, which has no column.
    """
    if written[-1] == "stop":
        written, weights, drops = written[:-1], weights[:-1], drops[:-1]
    names = [
        "where it looks: the weights",
        "what it uses: the drop in probability (a rise counts as 0)",
    ]
    figure, panels = plots.panels(title, names, size=(9.6, 3.9))
    slanted = {"rotation": 45, "ha": "right"} if max(map(len, read)) > 1 else {}
    # a model that has hardly learned may not write what is marked
    marked = [(row, column) for row, column in marked if row in written and column in read]
    cells = [(written.index(row), read.index(column)) for row, column in marked]
    for ax, shown in zip(panels, (weights, drops), strict=True):
        image = ax.imshow(shown.clamp(0, 1).numpy(), vmin=0, vmax=1, aspect="auto")
        ax.set_xticks(range(len(read)), read, **slanted)
        ax.set_yticks(range(len(written)), written if ax is panels[0] else [""] * len(written))
        for i, j in cells:
            frame = {"fill": False, "edgecolor": plots.COLOURS[1], "linewidth": 2.5}
            ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **frame))
    figure.colorbar(image, ax=panels, label="weight, or drop")
    pairs = [
        f"{row}: "
        + ", ".join(f"{x} {w:.2f} and {d:.2f}" for x, w, d in zip(read, *both, strict=True))
        for row, *both in zip(written, weights.tolist(), drops.tolist(), strict=True)
    ]
    framed = "".join(f" Framed: {row} over {column}." for row, column in marked)
    plots.show(
        figure,
        "Two heat maps, a row for each thing written, a column for each thing read. On the left "
        "the weights; on the right the drop in its probability when what was read is replaced. "
        f"Weight and drop: {'; '.join(pairs)}.{framed}",
    )
