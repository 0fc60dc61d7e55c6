"""Lesson 11's pictures: what a score depends on, where each translator wins, and a beam."""

from collections.abc import Mapping
from itertools import pairwise

from course_lib.instruments import plots
from course_lib.instruments.drawings import SMALL, Box, Diagram, Role

COLOURS: dict[str, str] = {
    "ours": plots.COLOURS[0],
    "Firefox": plots.COLOURS[1],
    "your copy": plots.COLOURS[2],
}


def questions() -> None:
    """Show the five things that a translator's score depends on, each above its section."""
    diagram = Diagram()
    parts: tuple[tuple[str, str, Role], ...] = (
        ("texts", "Away from home", "plain"),
        ("split", "One word away", "plain"),
        ("train", "How it was trained", "network"),
        ("write", "The same decoding", "query"),
        ("score", "Whose Portuguese?", "norm"),
    )
    boxes = []
    for i, (name, section, role) in enumerate(parts):
        boxes.append(diagram.box(name, (2.6 * i, 0), role, size=(1.9, 0.8)))
        diagram.text(section, (2.6 * i, -0.9), size=SMALL)
    for before, after in pairwise(boxes):
        diagram.arrow(before, after)
    said = "; ".join(f"{name}: {section}" for name, section, _ in parts)
    diagram.show(
        f"Five boxes in a row, each above the section that is about it. {said}. A score depends on "
        "all five."
    )


def parts(scores: Mapping[str, Mapping[str, float]], title: str) -> None:
    """Show the BLEU of each translator on each part of the texts, a row a part."""
    figure, ax = plots.axes(title, "BLEU", "", size=(7, 1.1 + 0.85 * len(scores)))
    for y, by_whom in enumerate(scores.values()):
        ax.plot([min(by_whom.values()), max(by_whom.values())], [-y, -y], color="0.7", zorder=0)
        for who, value in by_whom.items():
            ax.plot(value, -y, "o", color=COLOURS[who])
            # the copy below the line, so that no two names meet
            shift, align = (-0.12, "top") if who == "your copy" else (0.12, "bottom")
            text = f"{who} {value:.1f}"
            ax.text(value, shift - y, text, color=COLOURS[who], ha="center", va=align)
    every = [value for by_whom in scores.values() for value in by_whom.values()]
    ax.set(xlim=(min(every) - 6, max(every) + 6), ylim=(0.55 - len(scores), 0.5))
    ax.set_yticks([-y for y in range(len(scores))], list(scores))
    said = "; ".join(
        f"{part}: {', '.join(f'{who} {value:.1f}' for who, value in by_whom.items())}"
        for part, by_whom in scores.items()
    )
    plots.show(figure, f"BLEU of each translator. {said}.".replace("\n", ", "))


def intervals(differences: Mapping[str, tuple[float, float]], title: str) -> None:
    """Show the bootstrap interval of each difference in BLEU, and zero."""
    figure, ax = plots.axes(
        title, "difference in BLEU", "", size=(7, 0.9 + 0.45 * len(differences))
    )
    ax.axvline(0, color="0.6", linewidth=1)
    ends = [end for both in differences.values() for end in both]
    gap = 0.015 * (max(ends) - min(ends))
    for y, (low, high) in enumerate(differences.values()):
        ax.plot([low, high], [-y, -y], color=plots.COLOURS[0], linewidth=5, solid_capstyle="butt")
        # beside the bar, on the side away from the line
        x, align = (high + gap, "left") if high > 0 else (low - gap, "right")
        text = f"{low:+.1f} to {high:+.1f}"
        ax.text(x, -y, text, va="center", ha=align, size="small")
    room = 0.42 * (max(ends) - min(ends))  # for the numbers
    ax.set(xlim=(min(ends) - room, max(ends) + room), ylim=(0.5 - len(differences), 0.5))
    ax.set_yticks([-y for y in range(len(differences))], list(differences))
    said = "; ".join(f"{x}: {low:+.1f} to {high:+.1f}" for x, (low, high) in differences.items())
    plots.show(figure, f"Intervals of differences in BLEU, and a line at 0. {said}.")


def beam() -> None:
    """Show a model of two steps as a tree, in which greedy misses the likeliest sentence."""
    diagram, small = Diagram(), (2.1, 0.8)
    start = diagram.box("start", (0, 0), size=small)

    def branch(
        begin: Box,
        text: str,
        at: tuple[float, float],
        chance: str,
        role: Role = "plain",
        width: float = 1.2,
    ) -> Box:
        end = diagram.box(text, at, role, size=small)
        middle = begin.at[0] + 1.6
        corners = [(middle, begin.at[1]), (middle, at[1])]
        diagram.arrow(begin, end, via=corners, role=role, width=width)
        diagram.text(chance, (middle + 0.45, at[1] + 0.28), size=SMALL)
        return end

    das = branch(start, "das", (3.6, -2.7), "0.1", "dim")
    haus = branch(start, "Haus", (3.6, 2.4), "0.5")
    ein = branch(start, "ein", (3.6, -0.9), "0.4", width=2.6)
    for begin, text, y, chance, product in (
        (haus, "am", 2.4, "0.3", "0.15: alive"),
        (haus, "im", 1.2, "0.2", "0.10"),
        (ein, "Heim, stop", -1.5, "0.1", "0.04"),
        (das, "Haus, stop", -2.7, "1.0", "0.10"),
        (haus, "stop", 3.6, "0.5", "0.25: greedy"),
        (ein, "Haus, stop", -0.3, "0.9", "0.36: likeliest"),
    ):
        kept = ":" in product
        width = 2.6 if "likeliest" in product else 1.2
        branch(begin, text, (7.4, y), chance, "plain" if kept else "dim", width)
        colour = "black" if kept else "0.4"
        diagram.text(f"= {product}", (8.65, y), align="left", colour=colour)
    diagram.show(
        "A tree of two steps. From start: Haus 0.5, ein 0.4, das 0.1. After Haus: stop 0.5, which "
        "makes 0.25, am 0.3, which makes 0.15, and im 0.2, which makes 0.10. After ein: Haus 0.9, "
        "which makes 0.36, and Heim 0.1, which makes 0.04. After das: Haus, 0.10. The likeliest "
        "sentence is ein Haus, and it does not begin with the likeliest token. A beam of 2 keeps "
        "Haus and ein. Then Haus is finished, and ein Haus and Haus am are alive; the rest is grey."
    )
