"""Lesson 13's pictures: the square and its tiles, an online softmax, plans, paths and a needle."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.colors import ListedColormap
from torch import Tensor

from course_lib.instruments import plots
from course_lib.instruments.drawings import ROLES, SMALL, Box, Diagram, Role

BLUE, ORANGE, GREEN = plots.COLOURS[:3]


class State(NamedTuple):
    """What an online softmax keeps of a row: the maximum, both sums, and the last factor."""

    peak: float
    total: float
    output: float
    factor: float


def square_and_tile() -> None:
    """Show all scores in memory, and beside them one tile with what is kept for each query."""
    diagram = Diagram()
    diagram.matrix(
        "$S$: all scores in memory", (8, 8), (1.6, 0), "weights", axes=("$n$", "$n$"), cell=0.36
    )
    diagram.matrix("one tile in memory", (8, 8), (7.4, 0), "dim", axes=("$n$", "$n$"), cell=0.36)
    diagram.matrix("", (2, 2), (7.4 - 0.36, 0.36), "weights", cell=0.36)
    diagram.matrix("$m$, $\\ell$", (8, 2), (10.3, 0), "stream", axes=("", "2"), cell=0.36)
    diagram.matrix("$o$", (8, 3), (12.0, 0), "value", axes=("", "$d$"), cell=0.36)
    diagram.text("softmax of whole rows", (1.6, -2.5), size=SMALL)
    diagram.text("two numbers and one vector for each query", (9.0, -2.5), size=SMALL)
    diagram.show(
        "Two matrices of scores, n by n. On the left all 64 cells are in memory. On the right one "
        "tile of 2 by 2 cells is in memory, and beside it, for each of the n queries, two numbers "
        "m and l, and a vector o of size d."
    )


def online(scores: Sequence[float], values: Sequence[float], block: int) -> list[State]:
    """Return the states of an online softmax: before the first tile, and after each."""
    states = [State(-math.inf, 0.0, 0.0, 0.0)]
    for start in range(0, len(scores), block):
        tile = range(start, min(start + block, len(scores)))
        before, total, output, _ = states[-1]
        peak = max(before, *(scores[j] for j in tile))
        factor = math.exp(before - peak)
        weights = {j: math.exp(scores[j] - peak) for j in tile}
        total = factor * total + sum(weights.values())
        output = factor * output + sum(weight * values[j] for j, weight in weights.items())
        states.append(State(peak, total, output, factor))
    return states


def online_softmax(scores: Sequence[int], values: Sequence[int], block: int) -> None:
    """Show how m, l and o change tile by tile; in a notebook one goes through it by hand."""
    states, diagram = online(scores, values, block), Diagram()
    width, said = 12.0 / len(states), []
    before: Box | None = None
    for i, state in enumerate(states):
        x = i * width
        sums = "0,\\ 0" if i == 0 else f"{state.total:.2f},\\ {state.output:.2f}"
        peak = "-\\infty" if i == 0 else f"{state.peak:.0f}"
        text = f"${peak},\\ {sums}$"
        box = diagram.box(text, (x, 0), "stream", size=(2.5, 0.8))
        if before:
            at = x - width / 2
            seen = "  ".join(str(s) for s in scores[(i - 1) * block : i * block])
            tile = diagram.box(f"scores {seen}", (at, 2.5), "weights", size=(2.3, 0.8))
            diagram.arrow(before, box)
            diagram.arrow(tile, (at, 0.08))
            factor = f"{state.factor:.3f}" if state.factor else "0"
            diagram.text(f"× {factor}", (at, -0.35), size=SMALL)
            said.append(
                f"scores {seen}: times {factor}, then {state.peak:.0f}, "
                f"{state.total:.2f}, {state.output:.2f}"
            )
        before = box
    diagram.text("$m,\\ \\ell,\\ o$", (0, -0.75), size=SMALL)
    end = states[-1].output / states[-1].total
    diagram.text(f"$o / \\ell = {end:.2f}$", ((len(states) - 1) * width, -0.75), size=SMALL)
    page = Path(__file__).with_name("tiles.html").read_text("utf8")
    filled = {
        "SCORES": json.dumps([*scores]),
        "VALUES": json.dumps([*values]),
        "NOW": ROLES["weights"],
        "SUMS": plots.PALE[3],
    }
    for name, text in filled.items():
        page = page.replace(f"[[{name}]]", text)
    diagram.show(
        "An online softmax as a chain of states m, l, o, from minus infinity, 0, 0 on. "
        f"{'; '.join(said)}. At the end o / l is {end:.2f}. In a notebook the tiles come one by "
        "one, in any size.",
        live=page,
    )


def memories() -> None:
    """Show what moves between a fast memory and a slow one, with the full matrix and by tiles."""
    diagram = Diagram()
    ways: dict[str, tuple[float, list[tuple[str, bool, Role]]]] = {
        "full matrix, step by step": (
            2.9,
            [
                ("$Q, K$", True, "query"),
                ("$S$", False, "weights"),
                ("$S$", True, "weights"),
                ("$P$", False, "weights"),
                ("$P, V$", True, "weights"),
                ("$O$", False, "value"),
            ],
        ),
        "tiles": (9.6, [("$Q$", True, "query"), ("$K, V$", True, "key"), ("$O$", False, "value")]),
    }
    for title, (x, moves) in ways.items():
        diagram.text(title, (x, 4.15))
        diagram.box("cache, SRAM: fast, small", (x, 3.3), "network", size=(5.6, 0.8))
        diagram.box("RAM, HBM: slow, large", (x, 0), "dim", size=(5.6, 0.8))
        for i, (name, up, role) in enumerate(moves):
            at = x - 2.2 + 4.4 * i / (len(moves) - 1)
            ends = [(at, 0.4), (at, 2.9)]
            square = name in ("$S$", "$P$", "$P, V$")
            start, end = ends if up else ends[::-1]
            diagram.arrow(start, end, role=role, width=4 if square else 1.2)
            diagram.text(name, (at + 0.08, 1.65), size=SMALL, align="left")
    diagram.text("$n \\times n$ crosses four times", (2.9, -0.8), size=SMALL)
    diagram.text("$K, V$ cross once for each block of queries,", (9.6, -0.8), size=SMALL)
    diagram.text("$n \\times n$ never", (9.6, -1.2), size=SMALL)
    diagram.show(
        "Two pictures of a fast and a slow memory. Thick arrows are n by n. Full matrix: Q and K "
        "move up, the scores S down and up again, the weights P down and up again with V, the "
        "output O down; S and P are n by n. Tiles: Q moves up once, K and V once for each block of "
        "queries, O down; no n by n matrix crosses."
    )


def plans(title: str, patterns: Mapping[str, Tensor]) -> None:
    """Show the tiles that plans visit; `patterns` are masks of blocks by the plan's name."""
    names = [f"{name}: {int(mask.sum()):,} tiles" for name, mask in patterns.items()]
    figure, panels = plots.panels(title, names, size=(2.5 * len(patterns), 3.1))
    said = []
    for ax, (name, mask) in zip(panels, patterns.items(), strict=True):
        image = mask.float().masked_fill(~mask, torch.nan).numpy()
        ax.imshow(image, cmap=ListedColormap([BLUE]))
        ax.patch.set(facecolor=plots.CARD, edgecolor="0.7", hatch="///")
        ax.set(xlabel="key blocks", xticks=[], yticks=[])
        said.append(f"{name}: {int(mask.sum()):,} of {mask.numel():,}")
    panels[0].set_ylabel("query blocks")
    plots.show(
        figure, f"Maps of tiles, query blocks by key blocks, those visited blue. {'; '.join(said)}."
    )


def time_by_tiles(
    tiles: Mapping[str, int], seconds: Mapping[str, float], compiled: Mapping[str, float]
) -> None:
    """Show the CPU time of plans against their tiles; `compiled` is PyTorch's own function."""
    title = "Fewer tiles take less time; a compiled kernel takes far less for all of them"
    figure, ax = plots.axes(title, "tiles visited", "CPU time, ms", size=(7.2, 3.4))
    for times, style, colour in ((seconds, "o", BLUE), (compiled, "D", ORANGE)):
        for name, time in times.items():
            ax.plot(tiles[name], 1000 * time, style, color=colour)
            label = name if times is seconds else f"{name}, compiled"
            # below the dotted line, which goes up to the right
            at = tiles[name], 1000 * time
            ax.annotate(label, at, (8, -10), textcoords="offset points", size="small")
    ax.plot([0, tiles["exact"]], [0, 1000 * seconds["exact"]], ":", color="0.6", zorder=0)
    ax.set(xlim=(0, 1.25 * tiles["exact"]), ylim=(0, None))
    said = "; ".join(f"{name}, {tiles[name]} tiles: {1000 * x:.0f}" for name, x in seconds.items())
    fast = "; ".join(f"{name}: {1000 * x:.0f}" for name, x in compiled.items())
    plots.show(
        figure,
        f"CPU milliseconds against tiles visited, with a line from zero to the exact plan. {said}. "
        f"Compiled, {fast}.",
    )


def heard(sees: Tensor) -> list[float]:
    """Return the share of pairs that have heard of each other after 0, 1, 2, ... layers."""
    own = torch.eye(len(sees))
    step, reach, shares = sees.float() + own, own, [1 / len(sees)]
    while not reach.all():
        # a residual connection keeps its own state
        reach = (step @ reach).clamp(max=1)
        shares.append(reach.mean().item())
    return shares


def layers_until(shares: Mapping[str, Sequence[float]]) -> None:
    """Show what `heard` returns for several patterns."""
    needed = [len(run) - 1 for run in shares.values()]
    title = (
        f"{', '.join(map(str, needed[:-1]))} or {needed[-1]} layers until all have heard from all"
    )
    figure, ax = plots.axes(title, "layers", "share of pairs", size=(7.2, 3.2))
    for colour, (name, run) in zip(plots.COLOURS, shares.items(), strict=False):
        ax.semilogx(range(1, len(run)), run[1:], "o-", color=colour, markersize=3)
        # where the line is half way up, on its free side
        half = next(i for i, share in enumerate(run[1:]) if share > 0.5)
        at = (half + 1, run[half + 1])
        place, side = ((7, -10), "left") if len(run) < 20 else ((-8, 4), "right")
        ax.annotate(
            name, at, place, textcoords="offset points", ha=side, color=colour, size="small"
        )
    ticks = [1, 2, 4, 8, 16, 32, 64, 128]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    said = "; ".join(f"{name}: all after {len(run) - 1}" for name, run in shares.items())
    plots.show(
        figure, f"Share of pairs of blocks that have heard of each other, by layers. {said}."
    )


def needle() -> None:
    """Show a text with a needle, the question for it, and the path through a global block."""
    diagram, cell = Diagram(), 0.52
    letters = list("Was this the face that ")
    for i, letter in enumerate([*letters[:8], "★", *letters[8:21], "?"]):
        role: Role = {"★": "value", "?": "query"}.get(letter, "dim")  # pyright: ignore
        diagram.box(letter, (cell * i, 0), role, size=(0.46, 0.6))
    at, end = cell * 8, cell * 22
    diagram.arrow((end, 0.35), (at, 0.35), via=[(end, 1.0), (at, 1.0)])
    diagram.text("distance", (cell * 15, 1.3), size=SMALL)
    diagram.text("a needle, one of ten", (at + 0.2, 0.65), size=SMALL, align="left")
    diagram.text("which one was it?", (end - 0.2, 0.65), size=SMALL, align="right")
    diagram.frame("", (0.78, 0), (2.2, 0.8))
    diagram.text("global block", (0.78, 0.65), size=SMALL)
    diagram.arrow((at, -0.35), (1.4, -0.45), via=[(at, -0.9), (1.4, -0.9)], role="value")
    diagram.text("layer 1: the block sees the needle", (1.5, -1.2), size=SMALL, align="left")
    diagram.arrow((0.3, -0.45), (end, -0.35), via=[(0.3, -1.6), (end, -1.6)], role="value")
    diagram.text("layer 2: the question sees the block", (11.3, -1.3), size=SMALL, align="right")
    diagram.show(
        "A line of letters in boxes, with a star among them, the needle, and a question mark at "
        "the end. An arrow leads from the question back to the needle: their distance, here 14. "
        "Below is a path of two layers: the needle goes to the first four letters, the global "
        "block, and from there to the question."
    )


def found(
    shares: Mapping[str, Tensor], paths: Mapping[str, Tensor], distances: Sequence[int]
) -> None:
    """Show the share of needles found by pattern and distance; a cross is where no path leads."""
    title = "A needle is found only where a path of two layers leads to it"
    figure, ax = plots.axes(title, "distance from needle to question", "", size=(8.6, 3.6))
    image = ax.imshow(torch.stack([*shares.values()]).numpy(), vmin=0, vmax=1, aspect="auto")
    said = []
    for row, (name, share) in enumerate(shares.items()):
        crossed = (~paths[name]).nonzero().flatten().tolist()
        ax.plot(crossed, [row] * len(crossed), "x", color="0.75", markersize=4)
        here = [share[path].mean().item() for path in (paths[name], ~paths[name]) if path.any()]
        said.append(f"{name}: {' and '.join(f'{x:.2f}' for x in here)}")
    ax.set_xticks(range(0, len(distances), 4), [str(distance) for distance in distances[::4]])
    ax.set_yticks(range(len(shares)), list(shares))
    ax.tick_params(length=0)
    figure.colorbar(image, ax=ax, label="share found (chance: 0.1)")
    plots.show(
        figure,
        f"Share of needles found, {len(shares)} patterns by {len(distances)} distances, crosses "
        f"where no path leads. Means where a path leads, and where none does: {'; '.join(said)}.",
    )


def losses(title: str, by_plan: Mapping[str, Tensor], window: int) -> None:
    """Show a model's loss along a text under several plans, as means of eight tokens."""
    figure, ax = plots.axes(title, "token", "loss (nats), mean of 8 tokens", size=(7.4, 3.4))
    said = []
    for colour, (name, loss) in zip(("0.4", ORANGE, BLUE, GREEN), by_plan.items(), strict=False):
        means = loss[: len(loss) // 8 * 8].view(-1, 8).mean(-1)
        ax.plot(range(4, 8 * len(means), 8), means.tolist(), color=colour, label=name)
        late = loss[window:].mean() if len(loss) > window else loss.mean()
        said.append(f"{name}: {late:.1f}")
    ax.axvline(window, color="0.6", linestyle=":", linewidth=1)
    ax.set(ylim=(0, None))
    ax.legend(fontsize=8, loc="upper left")
    plots.show(
        figure,
        f"Loss of a model along a text. Mean after token {window}, where the window leaves the "
        f"first token behind, in nats: {'; '.join(said)}.",
    )
