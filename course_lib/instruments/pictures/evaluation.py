"""Lesson 11's pictures: one text, where each translator wins, and a beam."""

from collections.abc import Mapping
from typing import Any

from course_lib.instruments import plots
from course_lib.instruments.drawings import SMALL, Box, Diagram, Role

COPIED = plots.COLOURS[2]
COLOURS: dict[str, str] = {
    "ours": plots.COLOURS[0],
    "Firefox": plots.COLOURS[1],
    "your copy": COPIED,
}


SOURCE = "Energy consumption last seven days"
COPY = "Energia produzida nos últimos sete dias"  # what `fuzzy_match` finds for it
MEANINGS = (
    "energy consumed in the last seven days",
    "energy consumption of the last seven days",
    "energy consumption lasts seven days",
    "energy produced in the last seven days",
)


def one_text(duel: Mapping[str, Any]) -> None:
    """Show a text, its reference and three translations, and what they share with the reference.

    `duel` is that of research/results/translation.json.
    """
    rows = {row[0]: row[1:] for row in duel["corpora"]["held out"]["shown"]}
    reference, ours, firefox = rows[SOURCE]
    texts = {"reference": reference, "ours": ours, "Firefox": firefox, "a copy": COPY}
    title = "A copy shares most words (bold) with the reference, but says “produced”"
    figure, ax = plots.axes(title, "", "", size=(5.4, 2.9))
    ax.set_axis_off()
    ax.set(xlim=(0, 62), ylim=(-4.75, 0.5))
    ax.text(0, 0, "to translate", color="0.4")
    ax.text(14, 0, SOURCE, family="monospace")
    said = []
    for y, ((who, text), meaning) in enumerate(zip(texts.items(), MEANINGS, strict=True), 1):
        ax.text(0, -y, who, color=COLOURS.get(who, COPIED if who == "a copy" else "0.4"))
        x, shared = 14, [word for word in text.split() if word in reference.split()]
        for word in text.split():
            weight = "bold" if word in shared else "normal"
            ax.text(x, -y, word, family="monospace", weight=weight)
            x += len(word) + 1
        ax.text(14, -y - 0.42, meaning, color="0.4", size="small", style="italic")
        said.append(f"{who}: {text} ({meaning}), {len(shared)} words of the reference")
    plots.show(figure, f"To translate: {SOURCE}. {'; '.join(said)}. Shared words are bold.")


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
        text = _range(low, high)
        ax.text(x, -y, text, va="center", ha=align, size="small")
    room = 0.42 * (max(ends) - min(ends))  # for the numbers
    ax.set(xlim=(min(ends) - room, max(ends) + room), ylim=(0.5 - len(differences), 0.5))
    ax.set_yticks([-y for y in range(len(differences))], list(differences))
    said = "; ".join(f"{x}: {_range(*ends)}" for x, ends in differences.items())
    plots.show(figure, f"Intervals of differences in BLEU, and a line at 0. {said}.")


def _range(low: float, high: float) -> str:
    """Return both ends with their signs, a minus as wide as a plus."""
    return f"{low:+.1f} to {high:+.1f}".replace("-", "−")


def beam() -> None:
    """Show a model of three steps as a tree, in which greedy misses the likeliest sentence."""
    diagram, small = Diagram(), (1.5, 0.8)
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
        middle = begin.at[0] + 1.05
        corners = [(middle, begin.at[1]), (middle, at[1])]
        diagram.arrow(begin, end, via=corners, role=role, width=width)
        diagram.text(chance, (middle + 0.42, at[1] + 0.28), size=SMALL)
        return end

    # what the beam drops is grey, and below what it keeps
    the = branch(start, "the", (2.7, -2.7), "0.1", "dim")
    branch(the, "house", (5.4, -2.7), "1.0", "dim")
    house = branch(start, "house", (2.7, 2.4), "0.5")
    branch(house, "in", (5.4, 1.2), "0.2", "dim")
    branch(house, "stop", (5.4, 3.6), "0.5")
    by = branch(house, "by", (5.4, 2.4), "0.3")
    branch(by, "sea", (8.1, 2.4), "1.0")
    a = branch(start, "a", (2.7, -0.9), "0.4", width=2.6)
    branch(a, "home", (5.4, -1.5), "0.1", "dim")
    a_house = branch(a, "house", (5.4, -0.3), "0.9", width=2.6)
    branch(a_house, "stop", (8.1, -0.3), "1.0", width=2.6)
    for text, at, kept in (
        ("= 0.25: greedy", (6.3, 3.6), True),
        ("= 0.15", (9.0, 2.4), True),
        ("= 0.10", (6.3, 1.2), False),
        ("= 0.36: likeliest", (9.0, -0.3), True),
        ("= 0.04", (6.3, -1.5), False),
        ("= 0.10", (6.3, -2.7), False),
    ):
        diagram.text(text, at, align="left", colour="black" if kept else "0.4")
    diagram.show(
        "A tree of three steps. From start: house 0.5, a 0.4, the 0.1. After house: stop 0.5, "
        "which makes 0.25, by 0.3, and in 0.2, which makes 0.10. After a: house 0.9, and home 0.1, "
        "which makes 0.04. After the: house, 0.10. After house by: sea, 0.15. After a house: stop, "
        "0.36. The likeliest sentence is a house, and it does not begin with the likeliest token. "
        "A beam of 2 keeps house and a. Then house is finished, and a house and house by are "
        "alive; the rest is grey."
    )
