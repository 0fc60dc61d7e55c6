"""Lesson 04's pictures: where positions enter, waves, clocks with hands, loss by position."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Circle
from torch import Tensor
from torch.nn import functional as F

from course_lib.instruments import plots
from course_lib.instruments.drawings import ROLES, SMALL, Box, Diagram, Role
from course_lib.positions import rotary

Turn = Callable[[Tensor, Tensor, float], Tensor]  # `rotary`: x, positions, base

HAND = torch.tensor([[1.0, 1.0, 0.0, 0.0]])  # two hands of length 1, both to the right
BASE = 100.0  # the fast hand turns by 1 radian a position, the slow one by 0.1
FAR = 40  # positions on a clock that is moved by hand
NAMES = ("fast hand", "slow hand")


def three_places() -> None:
    """Show the way from two tokens to a weight, and the three points where positions enter."""
    diagram, small, tall = Diagram(), (1.3, 0.8), (1.5, 0.9)
    ways: list[tuple[str, Role, str, float]] = [("i", "query", "Q", 2.6), ("j", "key", "K", 0)]
    ends: list[tuple[Box, Role]] = []
    for letter, role, matrix, y in ways:
        token = diagram.box(f"$x_{letter}$", (0, y), "stream", size=small)
        added = diagram.box(f"$+\\ p_{letter}$", (2.2, y), "position", size=tall)
        project = diagram.box(f"$W_{matrix}$", (4.3, y), role, size=small)
        turn = diagram.box(f"turn by ${letter}$", (6.6, y), "position", size=(1.8, 0.9))
        diagram.arrow(token, added)
        diagram.arrow(added, project)
        diagram.arrow(project, turn, role=role)
        ends.append((turn, role))
    score = diagram.box("$q_i \\cdot k_j$", (8.9, 1.3), "weights", size=(1.6, 0.9))
    bias = diagram.box("$+\\ b(i,j)$", (11, 1.3), "position", size=(1.7, 0.9))
    for turn, role in ends:
        diagram.arrow(turn, score, leave="E", role=role)
    diagram.arrow(score, bias, role="weights")
    diagram.arrow(bias, (11, 3.3), "softmax", role="weights")
    for x, y, number, text in (
        (2.2, -1.2, "1  the input", "waves, learned table"),
        (6.6, -1.2, "2  query and key", "rotation"),
        (11, 0.3, "3  the score", "a bias"),
    ):
        diagram.text(number, (x, y))
        diagram.text(text, (x, y - 0.6), size=SMALL)
    diagram.show(
        "The way from two tokens to a weight, with three points for positions. One: p_i and p_j "
        "are added to the tokens x_i and x_j, as waves or a learned table. Two: after the matrices "
        "W_Q and W_K, query and key are turned by i and j. Three: a bias b(i, j) is added to the "
        "score."
    )


def counter_and_waves() -> None:
    """Show the binary digits of a counter, and sines with the same wavelengths."""
    figure, (left, right) = plots.panels(
        "A counter's digits are square waves; sines are smooth ones",
        ["digits of i: each flips half as often", "sines: each half as fast"],
        size=(8.6, 3.2),
    )
    steps, fine = torch.arange(17), torch.linspace(0, 16, 400)
    for digit, colour in zip(range(4), plots.COLOURS, strict=False):
        left.step(steps, (steps // 2**digit % 2) * 0.7 - digit, where="post", color=colour)
        wave = -torch.sin(torch.pi * fine / 2**digit)
        right.plot(fine, 0.35 * wave + 0.35 - digit, color=colour)
        left.text(16.3, 0.2 - digit, f"{2**digit}s", color=colour, size="small")
    for ax in (left, right):
        ax.set(xlabel="position i", yticks=[], xlim=(0, 17.5), xticks=range(0, 17, 2))
        ax.spines["left"].set_visible(False)
    plots.show(
        figure,
        "Left, the four binary digits of the numbers 0 to 16 as square waves: the ones flip at "
        "every step, the twos at every second, the fours at every fourth, the eights at every "
        "eighth. Right, four sine waves with the same wavelengths 2, 4, 8 and 16.",
    )


def waves(table: Tensor) -> None:
    """Show a table of waves, (position, column): its sines and its cosines."""
    figure, panels = plots.panels(
        "Each pair of columns turns more slowly than the one before it",
        ["sines: columns 0, 2, 4, …", "cosines: columns 1, 3, 5, …"],
        size=(7.4, 3.4),
    )
    for first, ax in enumerate(panels):
        image = _signed(ax, table[:, first::2])
        ax.set(xlabel="pair c")
    panels[0].set(ylabel="position i")
    figure.colorbar(image, ax=panels, label="value")
    n, columns = table.shape
    plots.show(
        figure,
        f"Two heat maps of {n} positions by {columns // 2} pairs, sines and cosines. On the left "
        "the stripes are a few positions high; the last columns hardly change: sines near 0, "
        "cosines near 1.",
    )


def similar_positions(tables: Mapping[str, Tensor], shown: int = 101) -> None:
    """Show the cosines between the rows of each table, a row a position."""
    title = "Near positions are similar, in waves and in a learned table"
    figure, panels = plots.panels(title, list(tables), size=(3 * len(tables) + 1, 3.2))
    said = []
    for ax, (name, table) in zip(panels, tables.items(), strict=True):
        unit = F.normalize(table[:shown], dim=-1)
        cosines = unit @ unit.T
        image = _signed(ax, cosines)
        ax.set(xlabel="position j")
        means = [f"{cosines.diagonal(d).mean():.2f} at distance {d}" for d in (1, 10, 50)]
        said.append(f"{name}: {', '.join(means)}")
    panels[0].set(ylabel="position i")
    figure.colorbar(image, ax=panels, label="cosine of $p_i$ and $p_j$")
    plots.show(
        figure,
        f"Heat maps of the cosine between {shown} positions, one a table. Mean cosines of "
        f"{'; '.join(said)}.",
    )


def _signed(ax: Axes, values: Tensor) -> AxesImage:
    return ax.imshow(
        values.numpy(), aspect="auto", vmin=-1, vmax=1, cmap="RdBu_r", interpolation="nearest"
    )


def clocks(turn: Turn = rotary) -> None:
    """Show a query and a key at some positions, each with a fast and a slow hand."""
    pairs = [(3, 1), (5, 3), (7, 5), (5, 1), (7, 1)]
    title = "Both move on: the score stays. The query alone moves on: the score changes"
    figure, faces = plots.panels(title, [""] * 2 * len(pairs), size=(8.4, 4.2), rows=2)
    said = []
    for column, (i, j) in enumerate(pairs):
        query, key = (_hands(turn, position) for position in (i, j))
        score = _score(query, key)
        said.append(f"i = {i} and j = {j}: {score:.2f}")
        for row, name in enumerate(NAMES):
            ax = faces[row * len(pairs) + column]
            _face(ax, query[row], key[row])
            ax.set_title(f"i = {i}, j = {j}" if row == 0 else "", size="small")
            if row == len(NAMES) - 1:
                ax.text(0, -1.9, f"q · k = {score:.2f}", ha="center", size="large")
            if column == 0:
                ax.text(-1.6, 0, name, rotation=90, ha="center", va="center", size="small")
    plots.show(
        figure,
        "Five pairs of clock faces, a fast one above a slow one, each with a query hand and a key "
        "hand. In the first three both have moved on, and the angle between the hands is the same "
        "in both faces. In the last two the query alone has moved on. Scores, which add the two "
        f"faces: {'; '.join(said)}.",
    )


def clocks_by_hand(turn: Turn) -> None:
    """Show both hands of a query and a key, and their score by distance; a notebook moves them."""
    positions = torch.arange(FAR + 1)
    hands = [_hands(turn, position) for position in positions.tolist()]
    scores = [_score(hands[i], hands[0]) for i in range(FAR + 1)]
    title = "A query and a key, two hands each: the score depends on the distance alone"
    figure, (fast, slow, curve) = plots.panels(
        title, [*NAMES, "score by distance"], size=(8.4, 2.7)
    )
    i, j = 7, 3
    for row, ax in enumerate((fast, slow)):
        _face(ax, hands[i][row], hands[j][row])
    curve.plot(positions, scores, color="0.4")
    curve.plot([i - j], [_score(hands[i], hands[j])], "o", color=ROLES["weights"])
    curve.set(xlabel="distance i − j", ylim=(-2.2, 2.2))
    page = Path(__file__).with_name("clocks.html").read_text("utf8")
    page = page.replace("[[HANDS]]", json.dumps(hands))
    page = page.replace("[[QUERY]]", ROLES["query"]).replace("[[KEY]]", ROLES["key"])
    plots.show(
        figure,
        f"A query at {i} and a key at {j}: their fast hands, their slow hands, and their score by "
        f"distance, which begins at {scores[0]:.2f} and wavers down to {min(scores):.2f}. "
        "In a notebook, two sliders move the query and the key.",
        live=page,
    )


def _hands(turn: Turn, position: int) -> list[list[float]]:
    """Return where the two hands point at a position: [x, y] each."""
    turned = turn(HAND, torch.tensor([position]), BASE)[0]
    return turned.unflatten(0, (2, 2)).T.tolist()


def _score(query: list[list[float]], key: list[list[float]]) -> float:
    return (torch.tensor(query) * torch.tensor(key)).sum().item()


def _face(ax: Axes, query: Sequence[float], key: Sequence[float]) -> None:
    ax.add_patch(Circle((0, 0), 1, fill=False, color="0.7"))
    angles = [math.atan2(up, across) for across, up in (query, key)]
    # letters of hands that are close to each other are written further apart
    apart = math.remainder(angles[0] - angles[1], 2 * math.pi)
    aside = math.copysign(max(0.0, 0.5 - abs(apart)) / 2, apart)
    parts = (("k", key, angles[1] - aside), ("q", query, angles[0] + aside))
    for name, (across, up), at in parts:
        colour = ROLES["key" if name == "k" else "query"]
        ax.plot([0, across], [0, up], color=colour, marker="o", markevery=[1])
        there = 1.28 * math.cos(at), 1.28 * math.sin(at)
        ax.text(*there, name, color=colour, ha="center", va="center")
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect=1)
    ax.set_axis_off()


def loss_by_position(
    title: str,
    losses: Mapping[str, Tensor],
    kept: Sequence[Mapping[str, Sequence[float]]],
    shaded: tuple[int, int, str] = (0, 32, "trained"),
) -> None:
    """Show the loss of each 32 characters, a line a way of reading, its name at its end.

    `kept` are runs of the same, drawn pale. A line that is shorter ends where the others do.
    `shaded` is a stretch of positions, and what it is.
    """
    figure, ax = plots.axes(title, "position", "loss (nats)", size=(7.6, 3.8))
    ends = [32 * (i + 1) for i in range(max(map(len, losses.values())))]
    middles = [end - 16 for end in ends]
    first, last, what = shaded
    ax.axvspan(first, last, color="0.88", zorder=0)
    colours, label_at = dict(zip(losses, plots.COLOURS, strict=False)), 0.0
    for name, loss in sorted(losses.items(), key=lambda x: x[1][-1].item()):
        for run in kept:
            ax.plot(middles[-len(loss) :], run[name], color=colours[name], alpha=0.25, lw=1)
        ax.plot(middles[-len(loss) :], loss.tolist(), "o-", color=colours[name], markersize=4)
        label_at = max(loss[-1].item(), label_at + 0.12)
        ax.text(ends[-1] - 8, label_at, name, color=colours[name], size="small", va="center")
    middle, top = (first + last) / 2, ax.get_ylim()[1]
    ax.text(middle, top, what, ha="center", va="top", size="small", color="0.3")
    ax.set(xlim=(0, ends[-1] + 65), xticks=[0, *ends])
    said = [f"{name}: {', '.join(f'{x:.2f}' for x in loss)}" for name, loss in losses.items()]
    plots.show(
        figure,
        f"Lines of loss by windows of 32 characters up to character {ends[-1]}; from {first} to "
        f"{last} is shaded: {what}. {'. '.join(said)}.",
    )
