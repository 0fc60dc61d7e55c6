"""Lesson 05's pictures: shifted inputs, masks, losses that leak, a folded plane, units."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.patches import Rectangle
from torch import Tensor

from course_lib.instruments import plots
from course_lib.instruments.drawings import SMALL, Diagram, Role

WORDS = "Shall I compare thee".split()
INPUTS = ["start", *WORDS[:-1]]  # shifted right
BLUE, ORANGE = plots.COLOURS[:2]
CORNERS = {"not good": (1, 1), "good": (1, -1), "not bad": (-1, 1), "bad": (-1, -1)}
KIND = ("good", "not bad")


def shifted() -> None:
    """Show a text, its tokens one position to the right as inputs, and what is predicted."""
    diagram, size = Diagram(), (1.8, 0.7)
    rows = {}
    parts: tuple[tuple[float, str, Sequence[str], Role], ...] = (
        (0, "text", WORDS, "value"),
        (2.2, "inputs", INPUTS, "stream"),
        (5.2, "to predict", WORDS, "value"),
    )
    for y, name, shown, role in parts:
        diagram.text(name, (-0.2, y), align="right")
        at = [(1.2 + 2.2 * i, y) for i in range(4)]
        rows[name] = [
            diagram.box(text, place, role, size=size) for text, place in zip(shown, at, strict=True)
        ]
    diagram.box("decoder", (4.5, 3.7), "query", size=(8.4, 0.8))
    for target, following in zip(rows["text"], rows["inputs"][1:], strict=False):
        corners = [(target.at[0], 0.5), (following.at[0], 1.5)]
        diagram.arrow(target, following, via=corners, role="value")
    diagram.text("not read", (7.8, 0.6), size=SMALL, colour="0.4")
    for read, said in zip(rows["inputs"], rows["to predict"], strict=True):
        diagram.arrow(read, (read.at[0], 3.3))
        diagram.arrow((said.at[0], 4.1), said)
    diagram.show(
        "Aligned rows of four positions. Text: Shall, I, compare, thee. Arrows lead from each "
        "token but the last one position to the right, into the inputs: start, Shall, I, compare. "
        "Above, a decoder must predict the text: Shall from start; I from start and Shall; and so "
        "on. What a position must predict is the input of the next position."
    )


def masked(scores: Tensor, visible: Tensor, weights: Tensor) -> None:
    """Show scores (4, 4), those that a mask leaves, and the weights that these give."""
    title = "Scores above the diagonal are masked, and each row's softmax is over what is left"
    names = ["scores", "masked scores", "weights"]
    figure, panels = plots.panels(title, names, size=(9.6, 3.2))
    for name, ax in zip(names, panels, strict=True):
        image = ax.imshow(weights.masked_fill(~visible, torch.nan).numpy(), vmin=0, vmax=1)
        image.set_alpha(float(name == "weights"))
        ax.patch.set(facecolor=plots.CARD)
        for i in range(4):
            for j in range(4):
                seen = name == "scores" or bool(visible[i, j])
                number = (weights if name == "weights" else scores)[i, j].item()
                style: dict[str, Any] = {"hatch": "" if seen else "///", "edgecolor": "0.6"}
                ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, **style))
                dark = name == "weights" and number <= 0.5
                text = f"{number:.2f}" if name == "weights" else f"{number:g}"
                colour = "white" if dark else "black"
                ax.text(j, i, text if seen else "", ha="center", va="center", color=colour)
        ax.set_xticks(range(4), INPUTS, rotation=30)
        ax.set_yticks(range(4), INPUTS if name == "scores" else [])
        ax.tick_params(length=0)
        ax.set(xlabel="key", xlim=(-0.52, 3.52), ylim=(3.52, -0.52))
        ax.spines[:].set_visible(False)
    panels[0].set(ylabel="query")
    figure.colorbar(image, ax=panels[2], label="weight")
    rows = [
        " and ".join(f"{x:.2f}" for x in row[: i + 1]) for i, row in enumerate(weights.tolist())
    ]
    plots.show(
        figure,
        "Three tables over start, Shall, I, compare. In the scores every cell has a number. In the "
        "masked scores the cells above the diagonal are hatched. The weights of each row sum to "
        f"one over the cells that are left: {'; '.join(rows)}.",
    )


def boasts(whole: Mapping[str, float], past: Mapping[str, Tensor], vocab: int) -> None:
    """Show the loss after 1, 2, ... characters of past alone, and name the loss of whole lines."""
    title = "Shown only the past, each cheat is worse than Ann, least so when its window is full"
    figure, ax = plots.axes(title, "characters shown", "loss of the next, nats", size=(8.4, 3.8))
    longest = max(map(len, past.values()))
    top = 1.08 * max(loss.max().item() for loss in past.values())
    label_at = -top
    for colour, name in zip(plots.COLOURS, past, strict=False):
        lengths = range(1, len(past[name]) + 1)
        ax.plot(lengths, past[name].tolist(), "o-", color=colour, markersize=3, label=name)
    colours = dict(zip(past, plots.COLOURS, strict=False))
    for name in sorted(past, key=lambda x: past[x][-1].item()):
        label_at = max(past[name][-1].item(), label_at + 0.06 * top)
        label = f"{name} {whole[name]:.2f}"
        ax.text(longest + 0.7, label_at, label, color=colours[name], size="small", va="center")
    label_at += 0.06 * top
    ax.text(longest + 0.7, label_at, "loss on whole lines", color="0.3", size="small", va="center")
    know_nothing = torch.tensor(vocab).log().item()
    ax.hlines(know_nothing, 0, longest, color="0.5", linestyle="--", linewidth=1, zorder=0)
    text = "all characters equally likely"
    ax.text(0.45 * longest, know_nothing + 0.02 * top, text, color="0.4", size="small")
    quarters = range(longest // 4, longest + 1, longest // 4)
    ax.set(ylim=(0, top), xlim=(0, 1.3 * longest), xticks=[1, *quarters])
    ends = [
        f"{name} {losses[0]:.2f}, {losses[len(losses) // 2 - 1]:.2f} and {losses[-1]:.2f}, and "
        f"{whole[name]:.2f} on whole lines"
        for name, losses in past.items()
    ]
    plots.show(
        figure,
        f"Lines of the losses of four models after 1 to {longest} characters. After 1, "
        f"{longest // 2} and {longest}: {'; '.join(ends)}. A dashed line at {know_nothing:.2f} is "
        f"the loss of a model to which all {vocab} characters are equally likely.",
    )


def network() -> None:
    """Show the feed-forward network as blocks with their shapes."""
    diagram, cell = Diagram(), 0.26
    parts: tuple[tuple[str, tuple[int, int], float, Role, tuple[str, str]], ...] = (
        ("$X$", (4, 3), 0, "stream", ("$n$", "$d$")),
        ("$W_1$", (3, 8), 2.5, "network", ("$d$", "$d_{ff}$")),
        ("$H$", (4, 8), 6.5, "network", ("$n$", "$d_{ff}$")),
        ("$W_2$", (8, 3), 9.4, "network", ("$d_{ff}$", "$d$")),
        ("output", (4, 3), 11.8, "stream", ("$n$", "$d$")),
    )
    for name, shape, x, role, axes in parts:
        diagram.matrix(name, shape, (x, 0), role, axes=axes, cell=cell)
    for x, columns in ((0, 3), (6.5, 8), (11.8, 3)):  # the second token
        diagram.matrix("", (1, columns), (x, cell / 2), "query", cell=cell)
    diagram.text("×", (0.75, 0))
    diagram.text("ReLU", (4.45, 0.32), size=SMALL)
    diagram.arrow((3.75, 0), (5.05, 0))
    diagram.text("×", (7.95, 0))
    diagram.text("=", (10.55, 0))
    diagram.show(
        "The feed-forward network as blocks. X, n by d, times W1, d by d_ff, and a ReLU give the "
        "hidden layer H, n by d_ff; times W2, d_ff by d, it gives the output, n by d. One row is "
        "marked from X to the output: each token goes through the network by itself. The two "
        "biases are left out."
    )


def folded(hidden: Callable[[Tensor], Tensor], w_1: Tensor) -> None:
    """Show the plane of two properties before W_1 (2, 2), behind it, and in `hidden` units.

    In a notebook a slider moves the plane from one to the next.
    """
    corners = torch.tensor(list(CORNERS.values())).float()
    planes = ["tokens $x$", "$x W_1$: on one line", "after the ReLU: the line is folded"]
    title = "The weights lay the plane on a line, the ReLU folds it, and one cut is enough\n"
    figure, panels = plots.panels(title, planes, size=(9.6, 3.7))
    ways: list[list[tuple[float, float]]] = [
        [(-2, -2), (2, 2)],
        [(-2.7, 2.7), (2.7, -2.7)],
        [(0, 2.8), (0, 0), (2.8, 0)],
    ]
    shown = (corners, corners @ w_1, hidden(corners))
    for ax, points, way in zip(panels, shown, ways, strict=True):
        style = ":" if ax is panels[0] else "-"
        ax.plot(*zip(*way, strict=True), style, color="0.75", linewidth=3, zorder=1)
        for name, (x, y) in zip(CORNERS, points.tolist(), strict=True):
            ax.scatter(x, y, s=70, color=ORANGE if name in KIND else BLUE, zorder=3)
        ax.set(xlim=(-3, 3), ylim=(-3, 3), xticks=[-2, 0, 2], yticks=[-2, 0, 2], aspect="equal")
        ax.set(xlabel="unit 1", ylabel="unit 2")
    panels[0].set(xlabel="praise", ylabel="negated")
    for name, (x, y) in CORNERS.items():
        panels[0].text(x + 0.3 * x, y, name, ha="left" if x > 0 else "right", va="center")
    panels[0].text(-2.8, 2.4, "kind", color=ORANGE, weight="bold")
    panels[0].text(-2.8, -2.7, "not kind", color=BLUE, weight="bold")
    panels[0].text(2.1, 2.15, "fold", color="0.45")
    panels[1].text(-1.7, 2.05, "not bad", va="center")
    panels[1].text(1.7, -2.05, "good", ha="right", va="center")
    panels[1].text(0.25, 0.3, "bad, not good")
    panels[2].plot([-1.2, 2.2], [2.2, -1.2], color="black", linestyle="--", linewidth=1)
    panels[2].text(2, 0.3, "good", ha="center")
    panels[2].text(0.3, 2, "not bad", va="center")
    panels[2].text(-0.3, -0.35, "bad,\nnot good", ha="right", va="top")
    ends = [
        f"{name} at ({x:g}, {y:g})" for name, (x, y) in zip(CORNERS, shown[2].tolist(), strict=True)
    ]
    plots.show(
        figure,
        "Three planes. The four tokens are the corners of a square, kind ones, orange, at two "
        "opposite corners; the dotted diagonal through the others, blue, is where the plane will "
        "be folded. After W1 all are on one line, and bad and not good in one point. Behind the "
        f"ReLU: {', '.join(ends)}; a straight line separates the kind ones. In a notebook, a "
        "slider moves the plane from one to the next.",
        live=_moved(hidden, w_1),
    )


def _moved(hidden: Callable[[Tensor], Tensor], w_1: Tensor) -> str:
    """Return a page that moves a sheet of points by the same weights and the same units."""
    line = torch.linspace(-1.5, 1.5, 13)
    sheet = torch.cat(
        [torch.tensor(list(CORNERS.values())).float(), torch.cartesian_prod(line, line)]
    )
    stages = [x.tolist() for x in (sheet, sheet @ w_1, hidden(sheet))]
    page = Path(__file__).with_name("fold.html").read_text("utf8")
    for name, value in {
        "STAGES": json.dumps([[[round(y, 3) for y in point] for point in x] for x in stages]),
        "NAMES": json.dumps([*CORNERS]),
        "KIND": json.dumps([*KIND]),
        "ORANGE": ORANGE,
        "BLUE": BLUE,
    }.items():
        page = page.replace(f"[[{name}]]", value)
    return page


def units(figures: Mapping[str, Any]) -> None:
    """Show what seven units hold for words of their kind and for others: research's `units`."""
    title = "Five of seven kinds of words have a unit that fires on them, and on nothing else here"
    figure, ax = plots.axes(title, "activation / threshold", "", size=(8, 3.6))
    generator, said = torch.Generator().manual_seed(0), []
    for y, (name, unit) in enumerate(figures["kinds"].items()):
        held = torch.tensor(unit["held"]) / unit["threshold"]
        inside = torch.tensor([kind == name for kind in figures["of"]])
        jitter = 0.5 * torch.rand(len(held), generator=generator) - 0.25
        others = held[~inside].tolist(), (y + jitter)[~inside].tolist()
        ax.plot(*others, "o", color="0.7", markersize=2.5)
        ax.plot(held[inside].tolist(), [y] * int(inside.sum()), "o", color=ORANGE, markersize=6)
        right, wrong = int((held[inside] > 1).sum()), int((held[~inside] > 1).sum())
        said.append(f"{name}: {right} of {int(inside.sum())} above it, {wrong} others")
    ax.axvline(1, color="black", linewidth=1)
    labels = [f"{name} (block {x['block'] + 1})" for name, x in figures["kinds"].items()]
    ax.set_yticks(range(len(labels)), labels)
    ax.set(ylim=(len(labels) - 0.5, -0.6), xlim=(-2.5, None))
    plots.show(
        figure,
        "For each of seven kinds of words, the activation of its unit on each later token of the "
        "held-out sentences, divided by the threshold. Tokens of the kind in orange, others grey. "
        f"{'; '.join(said)}.",
    )


def smallest_block() -> None:
    """Show positions, attention with a mask, and the network as one block."""
    diagram, size = Diagram(), (2.3, 0.9)
    plus = diagram.box("+", (1.9, 0), "stream", size=(0.7, 0.7))
    positions = diagram.box("positions", (1.9, 1.7), "position", size=(2, 0.8))
    mask = diagram.box("causal mask", (5, 1.7), "weights", size=size)
    attention = diagram.box("self-attention", (5, 0), "query", size=size)
    after = diagram.box("feed-forward", (9, 0), "network", size=size)
    diagram.arrow((0, 0), plus, role="stream")
    diagram.text("$X$", (-0.25, 0))
    diagram.text(r"$n \times d$", (0.75, 0.3), size=SMALL)
    diagram.arrow(positions, plus, role="position")
    diagram.arrow(plus, attention, role="stream")
    diagram.arrow(mask, attention, role="weights")
    diagram.text(r"$n \times n$", (5.15, 0.85), size=SMALL, align="left")
    diagram.arrow(attention, after, r"$n \times d$", role="stream")
    diagram.arrow(after, (11.4, 0), role="stream")
    diagram.text(r"$n \times d$", (10.75, 0.3), size=SMALL)
    diagram.text("$Y$", (11.65, 0))
    diagram.show(
        "The smallest block. X, n by d, plus positions of the same shape goes into self-attention "
        "under an n by n causal mask; its output, n by d, goes through the feed-forward network to "
        "Y, n by d. There is no residual connection and no norm."
    )
