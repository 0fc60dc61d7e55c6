"""Lesson 12's pictures: budgets and their valleys, what a wrong size wastes, and bills."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lib.instruments import isoflop, plots

GREY = "0.45"
Points = Sequence[tuple[float, float]]
Rows = Sequence[Mapping[str, float]]


def rectangles(sizes: Mapping[int, tuple[float, float]], budget: float) -> None:
    """Show models of one budget as rectangles of one area; `sizes` are N and D by d_model."""
    title = "One budget: the same area for each model"
    label = "millions of characters that it reads"
    figure, ax = plots.axes(title, label, "thousands of operations on each", size=(6.4, 3.4))
    said = []
    for (d, (parameters, tokens)), colour in zip(sizes.items(), plots.COLOURS, strict=False):
        wide, high = tokens / 1e6, budget / tokens / 1e3
        style = {"facecolor": colour, "edgecolor": colour, "linewidth": 1.5}
        ax.add_patch(Rectangle((0, 0), wide, high, alpha=0.25, **style))
        name = f"$d_{{model}}$ = {d}: {parameters:,} parameters"
        ax.text(wide + 0.01, high, name, color=colour, va="bottom", size="small")
        said.append(f"{parameters:,} parameters, {wide:.2f} million by {high:.0f} thousand")
    ax.set(xlim=(0, 2.1), ylim=(0, 215))
    plots.show(
        figure,
        f"Rectangles of one area from the same corner, characters wide and operations on each of "
        f"them high: {'; '.join(said)}.",
    )


def row(losses: Mapping[int, float], bigram: float) -> None:
    """Show the learner's own models of one budget, and what a table of pairs reaches."""
    title = "Your row: too small, too large, and between them a valley"
    figure, ax = plots.axes(title, "parameters N", "held-out loss (nats)", size=(6.4, 3.4))
    points = [(isoflop.size(d), loss) for d, loss in losses.items()]
    ax.semilogx(*zip(*points, strict=True), "o-", color=plots.COLOURS[0])
    lowest = min(losses.values())
    rises = False
    for (n, loss), d in zip(points, losses, strict=True):
        # where the line falls there is room below, and where it rises, at the right
        place = (1.06 * n, loss - 0.012) if rises else (0.97 * n, loss - 0.02)
        ax.text(*place, f"$d_{{model}}$ = {d}", ha="left" if rises else "center", va="top")
        rises = rises or loss == lowest
    ax.axhline(bigram, color=GREY, linestyle=":", linewidth=1.2)
    ax.text(points[0][0], bigram + 0.008, "bigram model", color=GREY, size="small")
    ax.set(xlim=(1700, 50_000), ylim=(lowest - 0.07, max(bigram, *losses.values()) + 0.05))
    _sizes(ax, 3000, 10_000, 30_000)
    said = ", ".join(f"{loss:.2f} with {n:,} parameters" for n, loss in points)
    plots.show(figure, f"Held-out loss of models of one budget: {said}. Bigram model {bigram:.2f}.")


def valleys(runs: Rows, yours: Points) -> None:
    """Show runs at several budgets with their parabolas, and the learner's own row."""
    title = "At each budget a middle size is best, and it grows with the budget"
    figure, ax = plots.axes(title, "parameters N", "held-out loss (nats)", size=(7, 4.2))
    own_colour, *others = plots.COLOURS  # a budget has one colour in all pictures
    said = [_valley(ax, *budget) for budget in _by_budget(runs, others)]
    parameters, losses = np.array(yours).T
    grid = np.linspace(np.log(parameters.min()), np.log(parameters.max()), 40)
    own_fit = np.polyval(np.polyfit(np.log(parameters), losses, 2), grid)
    ax.plot(np.exp(grid), own_fit, color=own_colour, linewidth=1.2, linestyle=":")
    ax.plot(parameters, losses, "o", color=own_colour, fillstyle="none")
    best, least = isoflop.minimum(yours)
    ax.plot(best, least, "*", color=own_colour, markersize=13)
    end = (1.08 * parameters.max(), own_fit[-1])
    ax.text(*end, "your row", color=own_colour, va="center", size="small")
    ax.set(xlim=(1700, 330_000))
    _sizes(ax, 3000, 10_000, 30_000, 100_000)
    own = ", ".join(f"{loss:.2f} at {n:,.0f}" for n, loss in yours)
    plots.show(
        figure,
        f"Held-out loss against parameters, logarithmic, with a parabola a budget. "
        f"{'; '.join(said)}. Your row: {own}; its star {least:.2f} at {best:,.0f}.",
    )


def _by_budget(
    runs: Rows, colours: Sequence[str] = plots.COLOURS
) -> list[tuple[float, Points, str]]:
    """Return each budget, its points (N, loss) and its colour."""
    budgets = sorted({row["flops"] for row in runs})
    return [
        (c, [(row["parameters"], row["loss"]) for row in runs if row["flops"] == c], colour)
        for c, colour in zip(budgets, colours, strict=False)
    ]


def _valley(ax: Axes, flops: float, points: Points, colour: str) -> str:
    """Draw one budget's runs, their parabola and its least point; return what it shows."""
    parameters, losses = np.array(points).T
    ax.semilogx(parameters, losses, "o", color=colour, markersize=3.5)
    fit = np.polyfit(np.log(parameters), losses, 2)
    grid = np.linspace(np.log(parameters.min()), np.log(parameters.max()), 40)
    ax.plot(np.exp(grid), np.polyval(fit, grid), color=colour, linewidth=1.2)
    best, least = isoflop.minimum(points)
    ax.plot(best, least, "*", color=colour, markersize=13)
    ax.text(
        1.08 * parameters.max(),
        np.polyval(fit, grid[-1]),
        _power(flops),
        color=colour,
        va="center",
        size="small",
    )
    return f"{flops:.1e} operations: least {least:.2f} at {best:,.0f}"


def _sizes(ax: Axes, *ticks: int) -> None:
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()


def _power(flops: float) -> str:
    return f"{flops:.1e}".replace("e+", " × $10^{") + "}$"


def scored(least: Mapping[float, float], fourth: Points, chosen: float) -> None:
    """Show the chosen size among runs at the next budget, and how well laws foretell their loss.

    `least` is the loss of the best size at three budgets, each four times the one before.
    """
    title = "Small runs chose a good size, but their line promises too low a loss"
    figure, (left, right) = plots.panels(
        title, ["losses at the next budget", "the least loss of each budget"], size=(8, 3.6)
    )
    colour = plots.COLOURS[3]
    _valley(left, 1.92e12, fourth, colour)
    left.axvline(chosen, color="black", linestyle="--", linewidth=1.2)
    left.text(1.04 * chosen, max(y for _, y in fourth), "your choice", va="top", size="small")
    left.set(xlabel="parameters N", ylabel="held-out loss (nats)", xlim=(2e4, 7e5))
    _sizes(left, 30_000, 100_000, 300_000)
    slope, height = np.polyfit(np.log([*least]), np.log([*least.values()]), 1)
    first, second, third = least.values()
    kept = (second - third) / (first - second)  # of what one budget saves, by the next
    steps = np.linspace(-2.3, 1.3, 40)  # fourfold budgets after the last of the three
    budgets = max(least) * 4.0**steps
    laws = {
        "a line": np.exp(height + slope * np.log(budgets)),
        "a floor": third - (second - third) * kept * (1 - kept**steps) / (1 - kept),
    }
    for (name, law), style in zip(laws.items(), ("--", "-"), strict=True):
        right.loglog(budgets, law, style, color=GREY, linewidth=1.2)
        right.text(1.06 * budgets[-1], law[-1], name, color=GREY, va="center", size="small")
    came = isoflop.minimum(fourth)[1]
    for (x, y), shade in zip([*least.items(), (1.92e12, came)], plots.COLOURS, strict=False):
        right.plot(x, y, "*", color=shade, markersize=13)
    right.set_yticks([1.6, 1.8, 2, 2.2, 2.4], ["1.6", "1.8", "2.0", "2.2", "2.4"])
    right.set(xlabel="operations C", ylim=(1.5, 2.6), xlim=(1.5e10, 1.2e13))
    right.minorticks_off()
    line, floor = np.exp(height + slope * np.log(1.92e12)), third - (second - third) * kept
    found = ", ".join(f"{loss:.2f} at {n:,.0f}" for n, loss in sorted({*fourth}))
    plots.show(
        figure,
        f"Left, losses of models of the next budget: {found}; the choice is {chosen:,.0f}. Right, "
        f"least loss against operations, logarithmic: through three budgets a line promises "
        f"{line:.2f} at the fourth, a law with a floor {floor:.2f}; {came:.2f} came.",
    )


def waste(runs: Rows, budget: float, shares: Mapping[float, float]) -> None:
    """Show what share of a budget the best size would need for the loss of each other size.

    `shares` are by the parameters. The left panel shows how that of the largest size is found: the
    least losses of this budget and of the one before say where its loss is reached.
    """
    title = "Nearly four times too large or too small: less than half of the budget would do"
    names = ["the same loss, from a model of the best size", "what the best size would need"]
    figure, (left, right) = plots.panels(title, names, size=(8, 3.4))
    before, (_, points, colour) = [x for x in _by_budget(runs) if x[0] <= budget][-2:]
    stars = [(before[0], isoflop.minimum(before[1])[1]), (budget, isoflop.minimum(points)[1])]
    left.semilogx(*zip(*stars, strict=True), color=GREY, linewidth=1.2)
    for (x, y), shade in zip(stars, (before[2], colour), strict=True):
        left.plot(x, y, "*", color=shade, markersize=13)
    largest = max(shares)
    high = float(np.mean([loss for n, loss in points if n == largest]))
    place = shares[largest] / 100 * budget
    left.plot(budget, high, "o", color=colour, markersize=3.5)
    arrow = {"arrowstyle": "->", "color": "black", "shrinkA": 4, "shrinkB": 0}
    left.annotate("", (place, high), (budget, high), arrowprops=arrow)
    share = f"{shares[largest]:.0f} % of the budget"
    above = {"xytext": (0, 6), "textcoords": "offset points", "ha": "left", "size": "small"}
    left.annotate(share, (place, high), **above)
    beside = {"xytext": (6, -3), "textcoords": "offset points", "size": "small", "color": colour}
    left.annotate(f"N = {largest:,.0f}", (budget, high), **beside)
    room = 0.25 * (stars[0][1] - stars[1][1])
    left.set(xlabel="operations C", ylabel="held-out loss (nats)")
    left.set(xlim=(0.7 * before[0], 2 * budget), ylim=(stars[1][1] - room, stars[0][1] + room))
    left.set_xticks([c for c, _ in stars], [_power(c) for c, _ in stars])
    left.minorticks_off()
    right.semilogx(*zip(*shares.items(), strict=True), "o-", color=colour)
    right.set(xlabel="parameters N", ylabel="% of the budget", ylim=(0, 105), xlim=(6e3, 1.3e5))
    _sizes(right, 10_000, 30_000, 100_000)
    said = ", ".join(f"{share:.0f} % at {n:,.0f}" for n, share in shares.items())
    plots.show(
        figure,
        f"Left, the least loss against operations: the largest size has {high:.2f}, which the best "
        f"size has with {shares[largest]:.0f} % of the budget. Right, the same share for each "
        f"size: {said}.",
    )


def memory(bill: Mapping[str, float]) -> None:
    """Show the bytes of a training step of GPT-2, part by part."""
    title = "Without a fused kernel, attention weights take the most memory"
    label = "gigabytes, 32 bits, 12 sequences of 1,024 tokens"
    figure, ax = plots.axes(title, label, "", size=(7, 2.4))
    colours = (plots.COLOURS[3], plots.COLOURS[2], plots.COLOURS[0], "0.6")
    for y, (size, colour) in enumerate(zip(bill.values(), colours, strict=True)):
        ax.barh(-y, size / 1e9, color=colour, height=0.7)
        ax.text(size / 1e9 + 0.2, -y, f"{size / 1e9:.1f}", va="center", size="small")
    ax.set_yticks([-y for y in range(len(bill))], list(bill))
    ax.set(xlim=(0, 1.15 * max(bill.values()) / 1e9))
    said = ", ".join(f"{name} {size / 1e9:.1f} gigabytes" for name, size in bill.items())
    plots.show(figure, f"Memory of a training step of GPT-2 small, by the formula: {said}.")


def serving(
    parameters: float, cache: float, contexts: Sequence[int], flops: float, bandwidth: float
) -> None:
    """Show the tokens that a GPU of 80 GB writes in a second, by the batch.

    A step reads the weights once, in 16 bits, and `cache` bytes for each token of each context; it
    takes 2 operations a parameter and text. What takes longer sets the pace.
    """
    title = "A batch shares the weights; each text has a cache of its own"
    figure, ax = plots.axes(
        title, "texts in the batch", "tokens a second, all texts", size=(7, 3.8)
    )
    said = []
    for context, colour in zip(contexts, plots.COLOURS, strict=False):
        most = (80e9 - 2 * parameters) / (cache * context)
        batch = np.geomspace(1, most, 60)
        reading = (2 * parameters + batch * cache * context) / bandwidth
        pace = batch / np.maximum(reading, 2 * parameters * batch / flops)
        ax.loglog(batch, pace, color=colour)
        ax.plot(batch[-1], pace[-1], "o", color=colour)
        ax.text(1.12 * batch[-1], pace[-1], f"{context:,} tokens each", color=colour, va="center")
        said.append(
            f"contexts of {context:,}: {pace[0]:,.0f} alone, {pace[-1]:,.0f} for {most:.0f}"
        )
    ax.set(xlim=(0.9, 2.5e3))
    plots.show(
        figure, f"Tokens a second against the batch, until memory is full. {'; '.join(said)}."
    )


def table_of_2017(rows: Mapping[str, tuple[float, float]], counted: Mapping[str, float]) -> None:
    """Show BLEU against the cost of training: `rows` are (BLEU, FLOPs) as printed.

    `counted` are the FLOPs of some rows, counted.
    """
    title = "Counted or as printed, the base Transformer is ahead of all before it, and costs least"
    figure, ax = plots.axes(
        title, "training cost (FLOPs)", "BLEU, English to German", size=(7, 3.6)
    )
    for name, (bleu, flops) in rows.items():
        colour = plots.COLOURS[0] if "Transformer" in name else GREY
        ax.semilogx(flops, bleu, "o", color=colour)
        left = name == "ConvS2S, ensemble"
        ax.annotate(
            name,
            (flops, bleu),
            xytext=(-7 if left else 7, 5 if left else -4),
            textcoords="offset points",
            ha="right" if left else "left",
            size="small",
            color=colour,
        )
    for name, flops in counted.items():
        bleu, printed = rows[name]
        style = {"arrowstyle": "->", "color": plots.COLOURS[0], "shrinkA": 4, "shrinkB": 5}
        ax.annotate("", (flops, bleu), (printed, bleu), arrowprops=style)
        ax.plot(flops, bleu, "o", color=plots.COLOURS[0], fillstyle="none")
        ax.text(flops, bleu + 0.2, "counted", color=plots.COLOURS[0], ha="center", size="small")
    ax.set(xlim=(5e17, 9e20), ylim=(24, 29))
    said = ", ".join(f"{name} {bleu} at {flops:.1e}" for name, (bleu, flops) in rows.items())
    again = ", ".join(f"{name} {flops:.1e}" for name, flops in counted.items())
    plots.show(
        figure,
        f"BLEU against printed training cost, Vaswani et al. 2017, table 2: {said}. "
        f"Counted, as hollow circles: {again}.",
    )


def laws(curves: Mapping[str, tuple[Points, Points]], marks: Mapping[str, float]) -> None:
    """Show each law's waste by the size, and its best size; `marks` are models by parameters."""
    title = "Twice the best size costs little, four times costs much"
    figure, ax = plots.axes(title, "parameters N", "times the operations", size=(7, 3.8))
    said = []
    for (name, (points, found)), colour in zip(curves.items(), plots.COLOURS, strict=False):
        ax.loglog(*zip(*points, strict=True), color=colour, label=name)
        ax.plot(*zip(*found, strict=True), "s", color=colour)
        said.append(f"{name}: " + ", ".join(f"{y:.1f} at {x / 1e9:.0f} billion" for x, y in found))
    for name, parameters in marks.items():
        ax.axvline(parameters, color="0.6", linestyle=":", linewidth=1)
        ax.text(1.04 * parameters, 9.5, name, size="small", color=GREY)
    ax.set(ylim=(0.9, 12))
    ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    ax.minorticks_off()
    ax.legend(loc="upper left", bbox_to_anchor=(0.02, 0.98))
    plots.show(figure, f"Times the operations that a best-sized model needs. {'; '.join(said)}.")
