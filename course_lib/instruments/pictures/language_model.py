"""Lesson 10's pictures: what models write, what they are asked, and where one beats another."""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from course_lib.instruments import plots
from course_lib.instruments.drawings import SMALL, Diagram, Role

BLUE, ORANGE, GREEN = plots.COLOURS[:3]
LINE, LINES = 40, 8  # of a text in a picture: characters, and how many lines
GOES_ON = "↪ "  # before a row that goes on the line above it
NATS = "nats a character, held out"


def _wrapped(text: str) -> list[tuple[str, bool]]:
    """Return the first rows of a text, none longer than LINE, and whether each goes on a line."""
    rows = []
    for line in text.strip("\n").splitlines():
        cut = textwrap.wrap(line, LINE - len(GOES_ON)) or [""]
        rows += [(row, i > 0) for i, row in enumerate(cut)]
    return rows[:LINES]


def texts(written: Mapping[str, str], title: str) -> None:
    """Show the beginnings of texts, each below its name, two in a row.

    A row that goes on a line, where it is too long for its column, begins with a grey mark.
    """
    names = list(written)
    rows = -(-len(names) // 2)
    size, shown = (8.4, 0.4 + 2.0 * rows), [*names, ""][: 2 * rows]
    figure, panels = plots.panels(title, shown, size=size, rows=rows)
    for ax in panels:
        ax.set_axis_off()
    look = {"family": "monospace", "size": 8.5, "va": "top", "parse_math": False}
    for ax, (name, text) in zip(panels, written.items(), strict=False):
        ax.set_title(name, size="small", weight="bold", color=BLUE, pad=4)
        for i, (row, goes_on) in enumerate(_wrapped(text)):
            y = 0.97 - i / LINES
            indent = " " * len(GOES_ON) if goes_on else ""
            ax.text(0, y, indent + row, transform=ax.transAxes, **look)
            if goes_on:
                ax.text(0, y, GOES_ON, transform=ax.transAxes, color="0.55", **look)
    if any(goes_on for text in written.values() for _, goes_on in _wrapped(text)):
        note = {"x": 0.01, "ha": "left", "size": "small", "color": "0.45"}
        figure.supxlabel(f"{GOES_ON}continues a line", **note)
    said = " ".join(f"{name}: “{_told(text)}”." for name, text in written.items())
    plots.show(figure, f"{len(names)} texts, with / for a line break. {said}")


def _told(text: str) -> str:
    """Return what `texts` shows of a text, a line of it between two slashes."""
    parts = ((" " if goes_on else " / ") + row for row, goes_on in _wrapped(text))
    return "".join(parts).removeprefix(" / ")


def two_samples(figures: Mapping[str, Any]) -> None:
    """Show what a Transformer and a table of counts wrote, and do not say which is which.

    `figures` are those of research/results/language_model.json.
    """
    samples = {"A": figures["weights"]["sample"], "B": figures["counting"]["kneser_ney"]["sample"]}
    texts(samples, "One was written by a table of counts, one by a Transformer")


def shifted(text: str) -> None:
    """Show inputs and targets of a language model as two aligned rows."""
    diagram = Diagram()
    marked = text.replace(" ", "␣")
    for i, (source, target) in enumerate(pairwise(marked)):
        x = 1.9 * i + 2.6
        bottom = diagram.box(source, (x, 0), "stream", size=(1.1, 0.8))
        diagram.arrow(bottom, (x, 1.1))
        diagram.arrow((x, 2.1), (x, 2.6))
        diagram.box(target, (x, 3.0), "value", size=(1.1, 0.8))
    wide = 1.9 * (len(text) - 2)
    model = "language model, causal: position $i$ sees inputs 1 to $i$"
    diagram.box(model, (2.6 + wide / 2, 1.6), "query", size=(wide + 1.8, 1.0))
    diagram.text("inputs", (1.4, 0), size=SMALL, align="right")
    diagram.text("targets", (1.4, 3.0), size=SMALL, align="right")
    diagram.show(
        f"Two aligned rows. Inputs {', '.join(marked[:-1])}; targets {', '.join(marked[1:])}: each "
        "target is the input one place further right. Between them is the model, in which position "
        "i sees inputs 1 to i."
    )


def counted(losses: Mapping[str, Mapping[int, float]]) -> None:
    """Show the held-out loss of each way to count, by characters of context."""
    title = "Each way to count has a best length of context, and it is not the longest"
    figure, ax = plots.axes(title, "characters of context", NATS)
    said = []
    for (name, by_length), colour in zip(losses.items(), plots.COLOURS, strict=False):
        ax.plot(list(by_length), list(by_length.values()), "o-", color=colour)
        last, best = max(by_length), min(by_length, key=by_length.__getitem__)
        ax.text(last + 0.15, by_length[last], name, color=colour, va="center")
        ax.plot(best, by_length[best], "o", markersize=11, fillstyle="none", color=colour)
        said.append(f"{name} is lowest at {best} with {by_length[best]:.3f}")
    ax.set(xlim=(0.8, last + 1.8), xticks=list(by_length))
    lengths = f"{min(by_length)} to {max(by_length)}"
    plots.show(figure, f"Held-out loss against {lengths} characters of context. {'; '.join(said)}.")


def model() -> None:
    """Show the language model from token ids to logits, its one matrix used at both ends."""
    diagram, shape = Diagram(), r"$n \times d$"
    parts: tuple[tuple[str, Role], ...] = (
        ("look up in $E$", "stream"),
        ("add positions", "position"),
        ("x + attention(norm(x)), masked", "query"),
        ("x + feed-forward(norm(x))", "network"),
        ("norm", "norm"),
        ("times $E^T$", "value"),
    )
    boxes = [
        diagram.box(name, (4.6, 1.25 * i), role, size=(5.6, 0.7))
        for i, (name, role) in enumerate(parts)
    ]
    for lower, upper in pairwise(boxes):
        diagram.arrow(lower, upper)
        diagram.text(shape, (4.8, (lower.at[1] + upper.at[1]) / 2), size=SMALL, align="left")
    diagram.arrow((4.6, -0.95), boxes[0])
    diagram.text("$n$ token ids", (4.6, -1.2), size=SMALL)
    diagram.arrow(boxes[-1], (4.6, 7.2))
    diagram.text(r"logits of each next token, $n \times V$", (4.6, 7.45), size=SMALL)
    diagram.frame("× N", (4.6, 3.125), (6.2, 2.15))
    matrix = diagram.matrix("", (7, 4), (9.9, 3.2), "stream")
    diagram.text("one matrix\n$E$: $V \\times d$", (10.8, 3.2), size=SMALL, align="left")
    diagram.arrow(matrix, boxes[0], via=[(9.9, 0)], role="stream")
    diagram.arrow(matrix, boxes[-1], via=[(9.9, 6.25)], role="stream")
    diagram.show(
        "The language model, from below: n token ids are looked up in the matrix E, n by d; "
        "positions are added; N blocks, each adding attention of the norm and a feed-forward "
        "network of the norm; a last norm; and a product with the same matrix E transposed, which "
        "gives n by V logits."
    )


def training(losses: Sequence[float], lines: Mapping[str, float], title: str) -> None:
    """Show a training's loss, a mean of ten steps if there are, between held-out losses."""
    figure, ax = plots.axes(title, "step", "nats a character", size=(6.8, 4.0))
    top = max(lines.values()) + 0.26
    ax.text(1.01 * len(losses), top, "held out:", color="0.4", va="center", size="small")
    width = min(10, len(losses))
    steps = range(0, len(losses) - width + 1, width)
    curve = [sum(losses[i : i + width]) / width for i in steps]
    ax.plot([i + width / 2 for i in steps], curve, color="0.6")
    label = f"training loss of your model, mean of {width} steps"
    ax.text(len(losses) / 20, curve[0], label, color="0.4", va="bottom")
    place = 0.0
    ascending = sorted(lines.items(), key=lambda line: line[1])
    for (name, height), colour in zip(ascending, plots.COLOURS, strict=False):
        ax.axhline(height, color=colour, linewidth=1, linestyle="--")
        place = max(height, place + 0.13)  # no name on another one
        told = f"{name} {height:.2f}"
        ax.text(1.01 * len(losses), place, told, color=colour, va="center", size="small")
    ax.set(xlim=(0, len(losses)), ylim=(1.3, None))
    said = ", ".join(f"{name} {height:.2f}" for name, height in lines.items())
    plots.show(
        figure,
        f"The training loss, a mean of {width} steps, falls from {curve[0]:.1f} to "
        f"{curve[-1]:.1f} in {len(losses)} steps. Dashed lines are held-out losses: {said}.",
    )


def line_ends(text: str, chances: Mapping[str, Sequence[float]], title: str) -> None:
    """Show for each character of a text how probable each model finds that a line ends there.

    `chances` are those that the character is a line break.
    """
    figure, ax = plots.axes(title, "", "probability that the line ends", size=(8.4, 3.2))
    places = range(len(text))
    ends = [i for i, letter in enumerate(text) if letter == "\n"]
    for i in ends:
        ax.axvspan(i - 0.5, i + 0.5, color=plots.PALE[3])
    for (name, each), colour in zip(chances.items(), (ORANGE, BLUE, GREEN), strict=False):
        ax.plot(places, each, color=colour, linewidth=1.4, marker=".", markersize=4)
        for i in ends[:1]:
            ax.text(i + 1.5, each[i], name, color=colour, va="center")
    top = 1.08 * max(map(max, chances.values()))
    for i in ends:
        ax.text(i - 1, top, "it ends", color="0.4", size="small", ha="right", va="top")
    ax.set_xticks(places, text.replace("\n", "↵"), family="monospace", size=8)
    ax.tick_params(length=0)
    ax.set(xlim=(-0.6, len(text) - 0.4), ylim=(0, 1.1 * max(map(max, chances.values()))))
    at_ends = "; ".join(
        f"{name} {', '.join(f'{each[i]:.2f}' for i in ends)}" for name, each in chances.items()
    )
    plots.show(
        figure,
        f"The text “{text}” with the probability that each model gives a line break at each "
        f"character. Where lines do end: {at_ends}.".replace("\n", " / "),
    )


def by_context(
    curves: Mapping[str, Mapping[int, float]], baselines: Mapping[str, float], title: str
) -> None:
    """Show what each model pays for line ends, by the window that it reads, beside counts."""
    label = "characters in a window, of which the second half is scored"
    figure, ax = plots.axes(title, label, "does the line end? (nats)", size=(7.4, 3.8))
    windows = sorted({n for losses in curves.values() for n in losses})
    said = []
    for (name, loss), style in zip(baselines.items(), ("--", ":"), strict=False):
        ax.axhline(loss, color=ORANGE, linestyle=style, linewidth=1)
        ax.text(6.8 * windows[-1], loss, name, color=ORANGE, ha="right", va="bottom")
        said.append(f"{name} {loss:.3f}")
    for (name, losses), colour in zip(curves.items(), (BLUE, GREEN), strict=True):
        ax.plot(list(losses), list(losses.values()), ".-", color=colour)
        last = max(losses)
        above = name == next(iter(curves))  # below the second curve there is room
        ax.text(1.1 * last, losses[last], name, color=colour, va="bottom" if above else "top")
        said.append(f"{name} " + ", ".join(f"{loss:.3f} with {n}" for n, loss in losses.items()))
    ax.set_xscale("log", base=2)
    ax.set(xticks=windows, xticklabels=windows, xlim=(1.8, 7 * windows[-1]), ylim=(0, None))
    plots.show(figure, f"Loss of line ends by the characters in a window. {'; '.join(said)}.")


def ladder(figures: Mapping[str, Any], title: str) -> None:
    """Show the held-out loss of each run of a ladder of settings, and what counting has.

    `figures` are those of research/results/language_model.json.
    """
    rungs = {name: x for name, x in figures["rungs"].items() if x["runs"]}
    losses = {x["title"]: [run["loss"] for run in x["runs"].values()] for x in rungs.values()}
    means = {name: sum(runs) / len(runs) for name, runs in losses.items()}
    bar = figures["counting"]["kneser_ney"]["loss"]
    figure, ax = plots.axes(title, NATS, "", size=(8, 4.2))
    paper = {"bbox": {"color": plots.CARD, "pad": 1}}  # no line runs through a number
    for y, (name, runs) in enumerate(losses.items()):
        ax.scatter(runs, [-y] * len(runs), color=BLUE, s=24, zorder=3)
        ax.text(max(runs) + 0.003, -y, f"{means[name]:.3f}", va="center", size="small", **paper)
    ax.axvline(bar, ymax=0.9, color=ORANGE, linestyle="--", linewidth=1)
    ax.text(bar, 0.7, f"counting, {bar:.3f}", color=ORANGE, size="small", ha="center")
    ax.set_yticks([-y for y in range(len(losses))], list(losses))
    ax.set(ylim=(-len(losses) + 0.4, 1.3))
    ax.margins(x=0.1)
    said = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
    plots.show(figure, f"Held-out loss of each rung, means: {said}; counting {bar:.3f}.")


def swept(losses: Mapping[str, Mapping[str, float]], title: str) -> None:
    """Show the held-out loss of each optimizer by its learning rate."""
    figure, ax = plots.axes(title, "learning rate", NATS, size=(6.4, 3.2))
    said = []
    for (name, by_rate), colour in zip(losses.items(), (ORANGE, BLUE), strict=True):
        rates = [float(rate) for rate in by_rate]
        ax.plot(rates, list(by_rate.values()), "o-", color=colour)
        ax.text(1.1 * rates[-1], [*by_rate.values()][-1], name, color=colour, va="center")
        each = ", ".join(f"{loss:.3f} at {rate}" for rate, loss in by_rate.items())
        said.append(f"{name}: {each}")
    every = sorted({float(rate) for by_rate in losses.values() for rate in by_rate})
    ax.set_xscale("log")
    ax.set_xticks(every, [f"{rate:g}" for rate in every], rotation=60)
    ax.minorticks_off()
    ax.set(xlim=(every[0] / 1.3, every[-1] * 2))
    plots.show(figure, f"Held-out loss by learning rate. {'; '.join(said)}.")
