"""Lesson 16's pictures: two tasks that a text sets, two ways to use an encoder."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any

from matplotlib.axes import Axes

from course_lib.data.questions import is_echo, questions
from course_lib.instruments import plots
from course_lib.instruments.drawings import SMALL, Diagram, Role

BLUE, ORANGE, GREEN, PINK = plots.COLOURS[:4]
GREY = "0.35"


def two_tasks() -> None:
    """Show what a causal and a masked language model read of a text, and what they are asked."""
    diagram, words = Diagram(), "my kingdom for a horse".split()
    rows: tuple[tuple[float, str, Sequence[str], Sequence[str | None]], ...] = (
        (3.0, "next token (GPT): each position sees the left side", words[:-1], words[1:]),
        (
            0.0,
            "masked token (BERT): each position sees both sides",
            [words[0], "[MASK]", *words[2:]],
            [None, words[1], None, None, None],
        ),
    )
    size, wide = (1.75, 0.62), 2.0
    for y, name, reads, asks in rows:
        diagram.text(name, (-0.9, y + 1.95), size=SMALL, align="left")
        for i, (read, ask) in enumerate(zip(reads, asks, strict=True)):
            role: Role = "weights" if read == "[MASK]" else "stream"
            token = diagram.box(read, (wide * i, y), role, size=size)
            if ask:
                target = diagram.box(ask, (wide * i, y + 1.25), "value", size=size)
                diagram.arrow(token, target, role="value")
    diagram.show(
        "Two rows for my kingdom for a horse. Next token: the model reads my, kingdom, for, a and "
        "is asked for kingdom, for, a, horse, one target above each token; each position sees the "
        "left side. Masked token: it reads my, MASK, for, a, horse and is asked for kingdom alone, "
        "above the mask; every position sees both sides."
    )


def two_ways() -> None:
    """Show an encoder with a head: frozen, and fine-tuned."""
    diagram = Diagram()
    ways: tuple[tuple[float, str, Role], ...] = (
        (0, "frozen features", "dim"),
        (7.2, "fine-tuning", "query"),
    )
    for x, name, role in ways:
        parts: tuple[tuple[str, Role, str], ...] = (
            ("tokens", "stream", "$n$"),
            ("pretrained encoder", role, r"$n \times d_{model}$"),
            ("mean over real tokens", "plain", "$d_{model}$"),
            ("new linear head", "query", "classes"),
        )
        boxes = [
            diagram.box(part, (x, 1.35 * i), colour, size=(4.0, 0.7))
            for i, (part, colour, _) in enumerate(parts)
        ]
        for i, (below, above) in enumerate(pairwise(boxes)):
            diagram.arrow(below, above)
            diagram.text(parts[i][2], (x + 0.2, 1.35 * i + 0.68), size=SMALL, align="left")
        diagram.arrow(boxes[-1], (x, 5.0))
        diagram.text(parts[-1][2], (x + 0.2, 4.75), size=SMALL, align="left")
        diagram.text(name, (x, -0.8))
    diagram.text("blue: trained", (3.6, 4.05), size=SMALL)
    diagram.text("grey: as it is", (3.6, 1.35), size=SMALL)
    diagram.show(
        "Two stacks side by side, from below: tokens, pretrained encoder, mean over the real "
        "tokens, new linear head, classes. On the left, frozen features: only the head is trained. "
        "On the right, fine-tuning: the head and the encoder are trained."
    )


def _lines(
    ax: Axes, x: Sequence[int], runs: Mapping[str, Sequence[Sequence[float]]], colours: Sequence
) -> None:
    """Draw percents against labels: a line through the means, and a dot a seed."""
    for (_, points), colour in zip(runs.items(), colours, strict=True):
        ax.plot(x, [100 * mean(seeds) for seeds in points], color=colour)
        for at, seeds in zip(x, points, strict=True):
            ax.plot([at] * len(seeds), [100 * y for y in seeds], "o", color=colour, markersize=3)
    ax.set(xscale="log", xlabel="labels")
    ax.set_xticks(x, [f"{n:,}" for n in x])
    ax.minorticks_off()


def _names(ax: Axes, at: float, ends: Mapping[str, float], colours: Sequence, apart: float) -> None:
    """Write a name at the end of each line, so far apart that all can be read."""
    last = float("inf")
    named = zip(ends, ends.values(), colours, strict=True)
    for name, end, colour in sorted(named, key=lambda x: -x[1]):
        last = min(100 * end, last - apart)
        ax.text(at, last, name, color=colour, va="center", size="small")


def _said(labels: Sequence[int], runs: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Tell the means at the fewest and the most labels."""
    return "; ".join(
        f"{name} {100 * mean(points[0]):.0f} with {labels[0]:,} labels and "
        f"{100 * mean(points[-1]):.0f} with {labels[-1]:,}"
        for name, points in runs.items()
    )


LISTS = {"known": "known wordings", "new wordings": "new wordings"}


def intents(figures: Mapping[str, Any], control: Mapping[str, Any], title: str) -> None:
    """Show how many commands are understood, in known wordings and in new ones, a dot a seed.

    `figures` are those of research/results/pretraining.json, `control` those of
    without_pairs.json.
    """
    labels = figures["settings"]["labels"]
    names = {
        "a head on MiniLM": "frozen",
        "on SmolLM2, text alone": "without pairs",
        "counted words": "counted words",
        "on random parameters": "not pretrained",
    }
    middle = str(control["settings"]["blocks"][0])
    ways = figures["intents"] | {"without pairs": control["blocks"][middle]}
    figure, panels = plots.panels(title, list(LISTS.values()), size=(8.4, 3.6))
    colours, said = (BLUE, GREEN, GREY, PINK), []
    for ax, (key, name) in zip(panels, LISTS.items(), strict=True):
        runs = {shown: ways[way][key] for shown, way in names.items()}
        _lines(ax, labels, runs, colours)
        ax.set(xlim=(0.85 * labels[0], 1.15 * labels[-1]), ylim=(35, 103))
        said.append(f"{name}: {_said(labels, runs)}")
        ends = {way: mean(points[-1]) for way, points in runs.items()}
    panels[0].set(ylabel="right actions, %")
    _names(panels[1], 1.25 * labels[-1], ends, colours, 5)
    plots.show(figure, f"Percent right, means of three seeds. {'. '.join(said)}.")


def examples_in_the_prompt(figures: Mapping[str, Any], title: str) -> None:
    """Show how often a model answers in one right word, by the number of examples it has read.

    `figures` are those of research/results/pretraining.json; a dot is a draw of the examples. The
    dashed line is how often its whole answer is a part of the question.
    """
    by_count = {int(n): [run["share"] for run in runs] for n, runs in figures["examples"].items()}
    asked = [question for question, _ in questions()][-len(figures["examples"]["0"][0]["told"]) :]
    echoed = [
        mean(is_echo(*one) for run in runs for one in zip(run["told"], asked, strict=True))
        for runs in figures["examples"].values()
    ]
    wrong, count = (
        [run["share"] for run in figures["wrong examples"]],
        figures["settings"]["wrong"],
    )
    figure, ax = plots.axes(title, "examples in the prompt", "of the answers, %", size=(6.8, 3.3))
    places = range(len(by_count))
    ax.plot(places, [100 * share for share in echoed], color=PINK, linestyle="--")
    ax.plot(places, [100 * mean(seeds) for seeds in by_count.values()], color=BLUE)
    for x, seeds in zip(places, by_count.values(), strict=True):
        ax.plot([x] * len(seeds), [100 * y for y in seeds], "o", color=BLUE, markersize=4)
    at = list(by_count).index(count)
    ax.plot([at] * len(wrong), [100 * y for y in wrong], "D", color=ORANGE, markersize=4)
    text = f"{count} with\nwrong answers"
    low, where = 100 * min(wrong), at - 0.08
    ax.text(where, low, text, color=ORANGE, ha="right", va="center", size="small")
    last = len(by_count) - 0.92
    ax.text(last, 100 * echoed[-1] - 4, "repeat a word\nof the question", color=PINK, va="center")
    right = 100 * mean([*by_count.values()][-1])
    ax.text(last, right, "are the\nright word", color=BLUE, va="center")
    ax.set_xticks(list(places), [str(n) for n in by_count])
    ax.set(ylim=(0, 100), xlim=(-0.2, len(by_count) + 0.2))
    said = ", ".join(f"{n} examples {100 * mean(x):.0f}" for n, x in by_count.items())
    echoes = ", ".join(f"{100 * share:.0f}" for share in echoed)
    plots.show(
        figure,
        "Percent of questions answered in exactly the one right word, by the number of examples "
        f"in the prompt, means of {len(wrong)} draws: {said}. Answers that only repeat a word of "
        f"the question: {echoes}. {count} examples with wrong answers: {100 * mean(wrong):.0f}.",
    )
