"""Lesson 07's pictures: a letter on its way through a stack, add and norm, and what they decide."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.instruments import plots
from course_lib.instruments.deep_stack import STARTS
from course_lib.instruments.drawings import SMALL, Diagram, Role

BLUE, ORANGE, GREEN = plots.COLOURS[:3]
LETTER = "h"
GONE = 0.03  # below this share of its own, a letter is drawn as a dot
PAGE = {"residual and norm": "pre-norm"}  # a stored kind, as the page calls it
Fate = Mapping[str, Sequence[float]]  # what `deep_stack.follow` returns
Part = tuple[str, Role, plots.Place]  # of a drawing: its text, role and size


def letter(title: str, fates: Mapping[str, Mapping[str, Fate]]) -> None:
    """Show a letter at every fourth level: a panel for initial weights, a row for each stack.

    `fates` are by initial weights and kind of stack. As large as the letter is its state, as dark
    as it is its own, with the percentage above the last block; a dot is a state that has lost its
    letter.
    """
    plots.show(*_letters(title, fates))


def letter_by_hand(title: str, fates: Mapping[str, Mapping[str, Fate]]) -> None:
    """Show the same; in a notebook switches choose one stack, and a slider its depth.

    The kinds of stack are named "bare", "norm", "residual", "pre-norm" and "post-norm".
    """
    rounded = {
        start: {
            row: {name: [float(f"{x:.3g}") for x in numbers] for name, numbers in fate.items()}
            for row, fate in by_row.items()
        }
        for start, by_row in fates.items()
    }
    page = Path(__file__).with_name("letter.html").read_text("utf8")
    filled = {"FATES": json.dumps(rounded), "LETTER": LETTER, "COLOUR": BLUE}
    for name, text in filled.items():
        page = page.replace(f"[[{name}]]", text)
    plots.show(*_letters(title, fates), live=page)


def _letters(title: str, fates: Mapping[str, Mapping[str, Fate]]) -> tuple[Figure, str]:
    """Draw what `letter` shows; return the figure, and what is seen in it."""
    rows = list(next(iter(fates.values())))
    size = (4.6 + 2.2 * (len(fates) - 1), 0.85 + 0.5 * len(rows))
    figure, panels = plots.panels(title, list(fates) if len(fates) > 1 else [""], size=size)
    last, said = 0, []
    for ax, (start, by_row) in zip(panels, fates.items(), strict=True):
        for y, (row, fate) in enumerate(by_row.items()):
            last = len(fate["own"]) - 1
            for level in range(0, last + 1, 4):
                _letter(ax, (level, y), fate["size"][level], fate["own"][level])
            own = f"{fate['own'][-1]:.0%}"
            ax.text(last + 2.2, y, own, color="0.35", size="small", va="center")
            told = f"{own} of it its own, root mean square {fate['size'][-1]:.2g}"
            said.append(f"{row}, {start}: {told}")
        ax.set(xlim=(-2, last + 6), ylim=(len(rows) - 0.4, -0.6), xticks=range(0, last + 1, 8))
        ax.set_yticks(range(len(rows)), rows if ax is panels[0] else [""] * len(rows))
        ax.set_xlabel("blocks below it")
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    return (
        figure,
        f"The state of a letter on its way through {last} blocks, drawn as a letter: as large as "
        "the state, as dark as it is the letter's own, a dot where nothing is left. Above "
        f"the last block: {'; '.join(said)}.",
    )


def _letter(ax: Axes, at: tuple[float, float], size: float, own: float) -> None:
    if own < GONE:
        ax.plot(*at, ".", color="0.6", markersize=3)
        return
    points = min(32.0, max(5.0, 13 + 6 * log10(size)))
    ax.text(*at, LETTER, size=points, color=BLUE, alpha=own, ha="center", va="center")


def residual() -> None:
    """Show a residual connection, and what each of its two ways does to a gradient."""
    diagram = Diagram()
    diagram.arrow((0, 0), (1.7, 0), "$x$", role="stream", width=2.4)
    layer = diagram.box("layer $F$", (4.0, 1.6), "network", size=(2.2, 0.9))
    plus = diagram.box("+", (6.4, 0), "stream", size=(0.8, 0.8))
    diagram.arrow((1.7, 0), layer, via=[(1.7, 1.6)])
    diagram.arrow(layer, plus, "$F(x)$", via=[(6.4, 1.6)])
    diagram.arrow((1.7, 0), plus, role="stream", width=2.4)
    diagram.arrow(plus, (9.4, 0), "$x + F(x)$", role="stream", width=2.4)
    for text, at in (
        ("n × d", (0.85, -0.4)),
        ("n × d", (8.1, -0.4)),
        ("backward: times $I$", (3.8, -0.4)),
        ("backward: times $J$", (4.0, 2.4)),
    ):
        diagram.text(text, at, size=SMALL)
    diagram.show(
        "A residual connection. x, n by d, goes two ways: through the layer F, and straight on. "
        "Both meet in a plus sign, x + F(x). On the backward pass the way through the layer "
        "multiplies the gradient by the Jacobian J, the straight way by the identity I."
    )


def circle(norm: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Show what `norm(x, gain, bias)` does to tokens of three numbers, seen along (1, 1, 1)."""
    points = torch.randn(9, 3, generator=torch.Generator().manual_seed(4)) * 1.3 + 0.5
    side = torch.tensor([[1.0, -1, 0], [1, 1, -2]])
    side = side / side.norm(dim=-1, keepdim=True)
    starts, ends = points @ side.T, norm(points, torch.ones(3), torch.zeros(3)) @ side.T
    figure, ax = plots.axes("Layer norm puts every token on one circle", "", "", size=(4.6, 4.4))
    turn = torch.linspace(0, 2 * torch.pi, 100)
    ax.plot(*(3**0.5 * torch.stack([turn.cos(), turn.sin()])).tolist(), color="0.6", linewidth=1)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        style = {"arrowstyle": "-|>", "color": "0.6", "shrinkA": 0, "shrinkB": 4}
        ax.annotate("", end, start, arrowprops=style)
    ax.plot(*starts.T.tolist(), "o", color=BLUE, markersize=5)
    ax.plot(*ends.T.tolist(), "o", color=ORANGE, markersize=6)
    ax.plot(0, 0, "+", color="0.4")
    ax.text(-2.9, 2.6, "● after subtracting the mean", color=BLUE, size="small")
    ax.text(-2.9, 2.3, "● after dividing by σ", color=ORANGE, size="small")
    ax.set(aspect=1, xticks=[], yticks=[], xlabel="the plane of vectors whose numbers sum to 0")
    ax.set(xlim=(-3.3, 2.7), ylim=(-2.5, 2.9))
    ax.spines[:].set_visible(False)
    far = ends.norm(dim=-1)
    plots.show(
        figure,
        "Nine tokens of three numbers in the plane of vectors whose numbers sum to 0. After "
        "subtracting the mean they are at all distances from the middle. Dividing by sigma moves "
        f"each along its own ray, to distances from {far.min():.2f} to {far.max():.2f}; the circle "
        "has the radius root 3, 1.73.",
    )


def four_ways() -> None:
    """Show a layer bare, behind a norm, beside a residual connection, and with both."""
    diagram = Diagram()
    cases = (
        ("bare", "$F(x)$", False, False),
        ("norm", r"$F(\mathrm{norm}(x))$", True, False),
        ("residual", "$x + F(x)$", False, True),
        ("pre-norm", r"$x + F(\mathrm{norm}(x))$", True, True),
    )
    for place, (name, formula, norm, added) in enumerate(cases):
        x = 3.3 * place
        stops = [(x, 0.1), diagram.box("F", (x, 2.2), "network", size=(1.3, 0.7)), (x, 4.3)]
        if norm:
            stops.insert(1, diagram.box("norm", (x, 1.1), "norm", size=(1.3, 0.6)))
        if added:
            plus = diagram.box("+", (x, 3.3), "stream", size=(0.6, 0.6))
            stops.insert(-1, plus)
            around = [(x - 1.1, 0.45), (x - 1.1, 3.3)]
            diagram.arrow((x, 0.45), plus, via=around, role="stream", width=2.2)
        for lower, upper in pairwise(stops):
            diagram.arrow(lower, upper)
        diagram.text("$x$", (x, -0.15))
        diagram.text(formula, (x, 4.65), size=10)
        diagram.text(name, (x, -0.75), size=10)
    diagram.show(
        "Four ways to connect a layer F. Bare: x goes through F. Norm: x goes through a norm, then "
        "F. Residual: x goes through F, and is added to the result on a path around F. Pre-norm: "
        "the norm is on the path through F, and the path around F has none."
    )


def orders() -> None:
    """Show a block in both orders of add and norm, the path from bottom to top drawn thick."""
    diagram = Diagram()
    layers: dict[str, Role] = {"attention": "query", "feed-forward": "network"}
    wide, low = (2.4, 0.62), (0.6, 0.6)
    for x, pre in ((0, False), (7.2, True)):
        y, below = 0.0, (x, -0.6)
        for name, role in layers.items():
            start, fork = below, y - 0.25
            layer: list[Part] = [(name, role, wide), ("+", "stream", low)]
            norm: Part = ("norm", "norm", wide)
            for text, kind, size in [norm, *layer] if pre else [*layer, norm]:
                box = diagram.box(text, (x, y + 0.45), kind, size=size)
                width = 2.4 if text == "norm" and not pre else 1.2
                diagram.arrow(below, box, role="stream", width=width)
                if text == "+":
                    around = [(x, fork), (x - 1.9, fork), (x - 1.9, box.at[1])]
                    diagram.arrow(start, box, via=around, role="stream", width=2.4)
                y, below = y + 1.05, box
            y += 0.35
        diagram.arrow(below, (x, y + 0.35), role="stream", width=2.4)
        formula = r"x + F(\mathrm{LN}(x))" if pre else r"\mathrm{LN}(x + F(x))"
        diagram.text(f"{'pre' if pre else 'post'}-norm: ${formula}$", (x, -1.45))
        diagram.text("n × d", (x + 0.2, -0.75), size=SMALL, align="left")
        diagram.text("n × d", (x + 0.2, y + 0.3), size=SMALL, align="left")
    diagram.show(
        "A post-norm and a pre-norm block side by side, n by d everywhere. Post-norm: attention, "
        "plus, norm, feed-forward, plus, norm; the path around a layer ends in a plus, and each "
        "plus is followed by a norm. Pre-norm: norm, attention, plus, norm, feed-forward, plus; "
        "the thick line from bottom to top runs through the two plus signs only."
    )


def learned(kept: Mapping[str, Any]) -> None:
    """Show what stacks of each depth, kind and initial weights have learned: held-out losses."""
    title = (
        "Pre-norm is the only one of the four ways by which 32 blocks learn "
        "from all three initial weights"
    )
    names = [f"{depth} blocks" for depth in kept["depths"]]
    figure, panels = plots.panels(title, names, size=(9.6, 3.4))
    said = []
    for ax, depth in zip(panels, kept["depths"], strict=True):
        for y, (name, by_start) in enumerate(_kinds(kept).items()):
            for row, (start, colour) in enumerate(zip(STARTS, plots.COLOURS, strict=False)):
                losses, place = by_start[start][str(depth)]["losses"], y + 0.22 * (row - 1)
                off = max(losses) > 3.6
                if off:
                    style: dict[str, Any] = {"color": colour, "size": "x-small", "va": "center"}
                    ax.text(3.78, place, "explodes ▸", ha="right", **style)
                else:
                    ax.plot(losses, [place] * len(losses), "o", color=colour, markersize=4)
                if ax is panels[-1]:
                    mean = "explodes" if off else f"{sum(losses) / len(losses):.2f}"
                    said.append(f"{name}, {start}: {mean}")
        ax.axvline(kept["trivial"], color="0.4", linestyle=":")
        ax.set(xlim=(2.35, 3.8), ylim=(3.5, -0.6), xlabel="held-out loss, nats")
        ax.set_yticks(range(4), list(_kinds(kept)) if ax is panels[0] else [])
    panels[0].text(3.34, 3.3, "baseline", color="0.4", size="x-small", ha="right")
    for y, (start, colour) in enumerate(zip(STARTS, plots.COLOURS, strict=False)):
        panels[-1].text(2.38, -0.3 + 0.3 * y, f"● {start}", color=colour, size="x-small")
    plots.show(
        figure,
        f"Held-out loss after {kept['steps']} steps in three panels, of {', '.join(names)}: a row "
        "for each kind of stack, a colour for initial weights, a dot a seed, and a dotted line "
        f"at the frequency baseline, {kept['trivial']:.2f}. The deepest: {'; '.join(said)}.",
    )


def that_learn(kept: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Name the kinds whose 32 blocks learn from some, and from all initial weights, every seed."""
    learn = {
        kind: [max(x["32"]["losses"]) < kept["trivial"] - 0.2 for x in by_start.values()]
        for kind, by_start in _kinds(kept).items()
    }
    some, each = ([kind for kind in learn if which(learn[kind])] for which in (any, all))
    return some, each


def _kinds(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the losses by the page's name for each kind of stack."""
    losses: Mapping[str, Any] = kept["loss"]
    return {PAGE.get(name, name): by_start for name, by_start in losses.items()}


def warm_up(kept: Mapping[str, Any]) -> None:
    """Show held-out losses of three orders by learning rate, without and with a warm-up."""
    title = "With a warm-up post-norm and DeepNorm learn at one more rate, pre-norm at all four"
    names = ["no warm-up", "warm-up over 30 % of the steps"]
    figure, panels = plots.panels(title, names, size=(9, 3.4))
    rates, colours = kept["rates"], dict(zip(kept["losses"], (BLUE, GREEN, ORANGE), strict=True))
    said = []
    for ax, share, words in zip(panels, ("0%", "30%"), ("without", "with"), strict=True):
        for name, by_share in kept["losses"].items():
            runs = [by_share[share][f"{rate:g}"] for rate in rates]
            for losses in zip(*runs, strict=True):
                style = {"color": colours[name], "linewidth": 1, "markersize": 4}
                ax.plot(rates, losses, "o-", **style)
            shown = by_share[share]["0.01"]
            said.append(f"{name} {words} {sum(shown) / len(shown):.2f}")
        ax.axhline(kept["trivial"], color="0.4", linestyle=":")
        ax.set(xscale="log", xticks=rates, ylim=(2.3, 3.5), xlabel="learning rate")
        ax.set_xticklabels([f"{rate:g}" for rate in rates])
        ax.minorticks_off()
    panels[0].set_ylabel("held-out loss, nats")
    panels[0].text(0.001, 3.34, "frequency baseline", color="0.4", size="small", va="top")
    for y, (name, colour) in enumerate(colours.items()):
        panels[1].text(0.001, 3.2 - 0.09 * y, name, color=colour, size="small")
    plots.show(
        figure,
        "Held-out loss against the learning rate, three seeds, without and with warm-up. Mean at "
        f"0.01: {', '.join(said)}.",
    )


def stream(kept: Mapping[str, Any]) -> None:
    """Show the root mean square of SmolLM2's residual stream at each level."""
    low, middle, high = (kept["others"][q] for q in ("0.05", "0.5", "0.95"))
    first = kept["first"]
    title = "SmolLM2's stream grows 300-fold; one block multiplies a first token by over 100"
    figure, ax = plots.axes(title, "blocks below it", "root mean square", size=(7, 3.4))
    ax.fill_between(range(31), low, high, color=BLUE, alpha=0.25, linewidth=0)
    ax.semilogy(middle, color=BLUE)
    ax.semilogy(first, color=ORANGE)
    ax.text(17, 5, "other tokens: median, 90 % in the band", color=BLUE, size="small", va="top")
    ax.text(13, 450, "first token of a text", color=ORANGE, size="small")
    ax.set(xlim=(0, 30))
    plots.show(
        figure,
        "Root mean square of the residual stream at 31 levels, logarithmic, 50 texts of 32 tokens. "
        f"The median token grows from {middle[0]:.2f} to {middle[30]:.0f}. The first token of a "
        f"text jumps from {first[11]:.0f} above block 11 to {first[12]:,.0f} above block 12, stays "
        f"there up to block 28, and falls to {first[30]:.0f}.",
    )
