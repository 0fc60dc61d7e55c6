"""Lesson 15's pictures: a scan, the delta rule, recall by steps, models of 2026."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from matplotlib.patches import Rectangle

from course_lib.instruments import plots
from course_lib.instruments.drawings import SMALL, Diagram
from course_lib.instruments.ten_swaps import SWAPS

BLUE, ORANGE = plots.COLOURS[:2]
GREY = "0.45"
Arms = Sequence[Mapping[str, Any]]


def kimi_k3() -> None:
    """Show which of Kimi K3's 93 layers attend (Moonshot 2026)."""
    attend = [*range(4, 93, 4), 93]
    title = "Kimi K3 (2026): 69 layers keep a matrix of fixed size, 24 attend to all tokens"
    figure, ax = plots.axes(title, "layer", "", size=(8, 1.5))
    for layer in range(1, 94):
        colour = ORANGE if layer in attend else BLUE
        ax.add_patch(Rectangle((layer - 0.42, 0), 0.84, 1, color=colour, linewidth=0))
    ax.text(0.5, 1.18, "delta rule, gated", color=BLUE, size="small")
    ax.text(22, 1.18, "attention", color=ORANGE, size="small")
    ax.set(xlim=(0, 94), ylim=(0, 1.6), yticks=[], xticks=[1, 20, 40, 60, 80, 93])
    ax.spines["left"].set_visible(False)
    plots.show(
        figure,
        "A row of 93 bars, one for each layer of Kimi K3. Every fourth and the last are attention, "
        "24 in all; the 69 others are a gated delta rule.",
    )


def rounds() -> None:
    """Show eight steps of a recurrence that are joined in three rounds."""
    figure, ax = plots.axes("Three rounds join eight steps", "", "", size=(7.6, 3.0))
    labels, arrows = {}, []
    for r in range(4):
        for t in range(8):
            first = max(0, t - 2**r + 1)
            labels[t, r] = str(t + 1) if first == t else f"{first + 1}–{t + 1}"
            if r:
                arrows.append(((t, r - 1), (t, r)))
                if t >= 2 ** (r - 1):
                    arrows.append(((t - 2 ** (r - 1), r - 1), (t, r)))
    plots.graph(ax, dict.fromkeys(labels, ""), arrows)
    for (t, r), text in labels.items():
        ax.text(t, r, text, ha="center", va="center", size=8, zorder=4)
    for r, text in enumerate(("the steps", "round 1", "round 2", "round 3")):
        ax.text(-0.6, r, text, ha="right", va="center", size=9)
    plots.show(
        figure,
        "A grid of 8 tokens and 4 rows, from below. Below, each position holds its own step. In "
        "the first round each joins the position 1 before it, in the second 2 before, in the third "
        "4 before. Above, position 8 holds steps 1 to 8.",
    )


def delta_rule() -> None:
    """Show how a key reads the state, and the difference is written back."""
    diagram = Diagram()
    key = diagram.box("$k_t$", (0, 0), "key", size=(1.1, 0.8))
    old = diagram.matrix("", (3, 2), (2.6, 0), "stream", cell=0.45)
    diagram.text(r"$S_{t-1}$: $d \times d_v$", (2.6, 1.1))
    minus = diagram.box("−", (5.2, 0), "plain", size=(0.8, 0.8))
    value = diagram.box("$v_t$", (5.2, 1.9), "value", size=(1.1, 0.8))
    share = diagram.box(r"$\times\, \beta_t$", (7.2, 0), "weights", size=(1.2, 0.8))
    add = diagram.box("+", (9.8, 0), "plain", size=(0.8, 0.8))
    new = diagram.matrix("", (3, 2), (11.7, 0), "stream", cell=0.45)
    diagram.text(r"$S_t$: $d \times d_v$", (11.7, 1.1))
    diagram.arrow(key, old)
    diagram.arrow(old, minus, "held")
    diagram.text(r"$1 \times d_v$", (3.95, 0.5), size=SMALL)
    diagram.arrow(value, minus)
    diagram.arrow(minus, share)
    diagram.arrow(share, add, r"$k_t \,\cdot$")
    diagram.text(r"$d \times d_v$", (8.6, 0.5), size=SMALL)
    diagram.arrow(old, add, "all that was there", via=[(2.6, -1.9), (9.8, -1.9)], role="stream")
    diagram.arrow(add, new)
    diagram.arrow(new, (11.7, -1.7), "$q_t$ reads")
    diagram.text("$o_t$", (11.7, -1.95))
    diagram.show(
        "The delta rule. The key reads what the state S, d by d_v, holds for it, 1 by d_v. That is "
        "subtracted from the value, times beta, and multiplied with the key again, which makes a "
        "matrix of d by d_v. This matrix is added to the state, which the query reads: the "
        "output o.",
    )


def by_steps(arms: Arms, last: float) -> None:
    """Show recall against the steps of training; `arms` are stored runs with keys of one size."""
    title = "Erasing is learned sooner; in the end adding recalls nearly as much"
    figure, ax = plots.axes(title, "steps of training", "rewritten keys recalled, %", size=(7.4, 4))
    said = []
    for arm in arms:
        name = arm["layers"][0]
        steps = [int(n) for n in arm["recalled"]]
        means = [100 * mean(shares) for shares in arm["recalled"].values()]
        colour = ORANGE if name == "delta rule" else BLUE
        ax.semilogx(steps, means, color=colour, linewidth=1.5)
        for n, shares in zip(steps, arm["recalled"].values(), strict=True):
            ax.plot([n] * len(shares), [100 * x for x in shares], "o", color=colour, markersize=3)
        ax.text(steps[0] * 0.94, means[0], name, color=colour, ha="right", va="center")
        told = ", ".join(f"{value:.0f} after {n}" for n, value in zip(steps, means, strict=True))
        said.append(f"{name}: {told}")
    ax.axhline(100 * last, color="0.6", linestyle=":")
    ax.text(
        steps[-1], 100 * last + 2, "always the last value", color=GREY, ha="right", size="small"
    )
    ax.set_xticks(steps, [f"{n:,}" for n in steps])
    ax.minorticks_off()
    ax.set(xlim=(steps[0] / 2.6, steps[-1] * 1.1), ylim=(0, 103))
    plots.show(
        figure,
        f"Rewritten keys recalled, percent, means over the seeds, against the steps of training, "
        f"logarithmic. {'; '.join(said)}. Always naming the last value written: {100 * last:.0f}.",
    )


def swaps(arms: Mapping[str, Mapping[str, Any]], left_out: Mapping[str, Sequence[float]]) -> None:
    """Show what each swap saves alone and in company, a point a seed, and what a cache keeps."""
    old, together = arms["2017"], arms["together"]

    def saved(before: Sequence[float], after: Sequence[float]) -> list[float]:
        return [x - y for x, y in zip(before, after, strict=False)]

    alone = {
        name: saved(old["losses"], arm["losses"]) for name, arm in arms.items() if name in SWAPS
    }
    title = "Two of ten swaps lower the loss most; three others shrink the cache"
    names = "loss saved, nats a character", "numbers in the cache, 64 tokens"
    figure, (left, right) = plots.panels(title, names, size=(8.2, 4.2))
    said = []
    order = sorted(alone, key=lambda name: mean(alone[name]))
    for row, name in enumerate(order):
        company = saved(left_out.get(f"without {name}", ()), together["losses"])
        left.plot(alone[name], [row + 0.12] * len(alone[name]), "o", color=BLUE, alpha=0.7)
        left.plot(company, [row - 0.12] * len(company), "s", color=ORANGE, alpha=0.7)
        kept = arms[name]["cached"]
        right.barh(row, kept, color=BLUE if kept < old["cached"] else "0.85", height=0.6)
        right.text(kept + 600, row, f"{kept:,}", va="center", size="small")
        told = f"{name}: alone {mean(alone[name]):+.2f}"
        told += f", in company {mean(company):+.2f}" if company else ""
        said.append(f"{told}, cache {kept:,}")
    left.axvline(0, color="0.6", linewidth=1)
    left.text(0.27, 2.6, "alone, from 2017", color=BLUE, ha="right", size="small")
    left.text(0.27, 1.9, "in company, the last swap", color=ORANGE, ha="right", size="small")
    left.set_yticks(range(len(order)), order)
    left.set_ylim(-0.6, len(order) - 0.4)
    right.set(ylim=left.get_ylim(), yticks=[], xlim=(0, 1.2 * old["cached"]), xticks=[])
    plots.show(
        figure,
        "By how much each swap lowers the held-out loss, nats a character: alone in the block of "
        "2017, and as the last one in the block that has all others; and how many numbers a cache "
        f"keeps. {'. '.join(reversed(said))}.",
    )
