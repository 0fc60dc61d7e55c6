"""The exploration of lesson 18 on distillation: what a teacher says, and what it brings."""

from collections.abc import Mapping
from statistics import mean
from typing import Any

from course_lib.instruments import plots

BLUE, ORANGE = plots.COLOURS[:2]
FIFTIETH = {"a fiftieth, from the text": BLUE, "a fiftieth, from the larger model": ORANGE}


def two_targets(before: str, came: str, chances: Mapping[str, float]) -> None:
    """Show what a text and a larger model say of one place: the likeliest characters there."""
    figure, panels = plots.panels(
        f"What follows “{before}”?", ["the text says", "the larger model says"], size=(7.6, 3.2)
    )
    heights = [float(x == came) for x in chances], [*chances.values()]
    names = [repr(x)[1:-1] for x in chances]
    for ax, values, colour in zip(panels, heights, (BLUE, ORANGE), strict=True):
        bars = ax.barh(names, values, color=colour, height=0.7)
        ax.bar_label(bars, [f"{x:.2f}" if x else "" for x in values], padding=3)
        ax.set(xlim=(0, 1.15), xlabel="probability")
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
    told = ", ".join(f"{name} {x:.2f}" for name, x in zip(names, heights[1], strict=True))
    plots.show(figure, f"After “{before}” the text has {came!r}. The larger model gives {told}.")


def along_the_way(figures: Mapping[str, Any]) -> None:
    """Show the loss on unseen text of both students that learn from few pages, by steps."""
    figure, ax = plots.axes(
        "Few pages are soon known by heart, but a teacher's targets still teach",
        "steps",
        "held-out nats a character",
        size=(7, 3.6),
    )
    told = []
    for name, colour in FIFTIETH.items():
        runs = figures["runs"][name]
        steps = [figures["every"] * (i + 1) for i in range(len(runs[0]))]
        means = [mean(x) for x in zip(*runs, strict=True)]
        for run in runs:
            ax.plot(steps, run, "o", color=colour, markersize=3, alpha=0.6)
        ax.plot(steps, means, color=colour)
        label = name.removeprefix("a fiftieth, ")
        ax.text(steps[-1] + 6, means[-1], label, color=colour, va="center", size="small")
        best = min(range(len(means)), key=means.__getitem__)
        told.append(
            f"{label}: best {means[best]:.2f} after {steps[best]} steps, at last {means[-1]:.2f}"
        )
    own = figures["teacher"]
    ax.axhline(own, color="0.4", linestyle=":")
    above = {"xytext": (0, 4), "textcoords": "offset points", "color": "0.4", "size": "small"}
    ax.annotate("larger model", (steps[-1] + 6, own), **above)
    ax.set(xlim=(0, 1.32 * steps[-1]))
    plots.show(
        figure,
        f"Held-out nats a character by steps, means of {len(runs)} seeds, learned from a fiftieth "
        f"of the text. {'; '.join(told)}; the larger model itself {own:.2f}.",
    )
