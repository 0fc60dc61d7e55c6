"""Lesson 14's pictures: two orders of a product, a state that grows, hashes, recall, choices."""

from collections.abc import Mapping, Sequence

from course_lib.instruments import plots
from course_lib.instruments.drawings import SMALL, Diagram, Role

BLUE, ORANGE, GREEN = plots.COLOURS[:3]
BUCKET_ROLES: tuple[Role, ...] = ("weights", "position", "network")


def brackets() -> None:
    """Show a product of three matrices in its two orders, as rectangles."""
    diagram, n, d = Diagram(), 3.0, 0.8
    rows: list[tuple[float, list[tuple[str, float, Role, tuple[float, float]]]]] = [
        (
            5,
            [
                ("$Q$", 0.5, "query", (d, n)),
                ("$K^T$", 2.9, "key", (n, d)),
                ("$n \\times n$", 6.7, "weights", (n, n)),
                ("$V$", 9.1, "value", (d, n)),
                ("$n \\times d$", 11.0, "stream", (1.1, n)),
            ],
        ),
        (
            1,
            [
                ("$K^T$", 1.6, "key", (n, d)),
                ("$V$", 3.9, "value", (d, n)),
                ("$d \\times d$", 5.7, "weights", (0.9, d)),
                ("$Q$", 7.4, "query", (d, n)),
                ("$d \\times d$", 8.7, "weights", (0.9, d)),
                ("$n \\times d$", 11.0, "stream", (1.1, n)),
            ],
        ),
    ]
    for y, boxes in rows:
        for text, x, role, size in boxes:
            diagram.box(text, (x, y), role, size=size)
        diagram.arrow((4.6, y), (5.05, y))
        diagram.arrow((9.7, y), (10.2, y))
    diagram.text("$(QK^T)\\,V$:  the middle grows with $n^2$", (0, 6.95), align="left")
    diagram.text("$Q\\,(K^T V)$:  the middle does not grow", (0, 2.95), align="left")
    diagram.show(
        "The same product computed in two orders, as rectangles. Above: Q, n by d, times K "
        "transposed, d by n, gives a large n by n square, times V, n by d. Below: K transposed "
        "times V gives a small d by d square; Q times it gives the same n by d result."
    )


def recurrence() -> None:
    """Show causal linear attention as a recurrent network over three tokens."""
    diagram = Diagram()
    previous = (-0.9, 2.0)
    diagram.text("$S_0 = 0$", (-1.0, 2), align="right")
    for i in (1, 2, 3):
        x = 3.7 * (i - 1) + 0.4
        plus = diagram.box("+", (x, 2), "plain", size=(0.6, 0.6))
        state = diagram.box(f"$S_{i}, z_{i}$", (x + 1.7, 2), "stream", size=(1.3, 0.8))
        into = diagram.box(f"$\\phi(k_{i})^T v_{i}$", (x, 0.2), "key", size=(1.7, 0.7))
        asks = diagram.box(f"$\\phi(q_{i})$", (x, 3.8), "query", size=(1.3, 0.7))
        out = diagram.box(f"$o_{i}$", (x + 1.7, 3.8), "value", size=(1.0, 0.7))
        diagram.arrow(previous, plus, role="stream")
        diagram.arrow(into, plus, role="key")
        diagram.arrow(plus, state, role="stream")
        diagram.arrow(state, out, role="stream")
        diagram.arrow(asks, out, role="query")
        previous = state
    diagram.text("state: $d \\times d_v$ and $d$ numbers, for any length", (4.5, -0.8), size=SMALL)
    diagram.show(
        "Causal linear attention as a recurrent network over three tokens. The state S, z starts "
        "at 0. Each token adds phi(k) transposed times v to it; then phi(q) reads the new state "
        "and gives the output o. The state has d by d_v plus d numbers, however long the text is."
    )


def recall(lines: Mapping[str, Mapping[int, float]], chance: float) -> None:
    """Show the share of values found by the number of pairs, a line for each head.

    `lines` are by what is said of the head, such as the numbers that it keeps.
    """
    title = "A cache grows with each pair; a state of fixed size fills up"
    figure, ax = plots.axes(title, "pairs", "share of values found", size=(7.6, 3.6))
    said, every = [], sorted({n for shares in lines.values() for n in shares})
    for (name, shares), colour in zip(lines.items(), (ORANGE, BLUE, GREEN), strict=False):
        ax.plot(*zip(*shares.items(), strict=True), "o-", color=colour, linewidth=1.4)
        last = [*shares.items()][-1]
        ax.annotate(name, last, (10, -3), textcoords="offset points", color=colour, size="small")
        said.append(f"{name}: " + ", ".join(f"{x:.2f} of {n}" for n, x in shares.items()))
    ax.axhline(chance, color="0.6", linestyle=":", linewidth=1)
    ax.text(every[0], chance + 0.02, "chance", color="0.4", size="small")
    ax.set(xscale="log", xlim=(0.85 * every[0], 3.2 * every[-1]), ylim=(0, 1.1))
    ax.set_xticks(every, [str(n) for n in every])
    ax.minorticks_off()
    plots.show(figure, f"Share of values found, by the number of pairs. {'; '.join(said)}.")


def hash_sort_cut(found: Sequence[int], chunk: int) -> None:
    """Show tokens hashed, sorted by bucket and cut into chunks, and what token 5 sees."""
    diagram = Diagram()
    order = sorted(range(len(found)), key=found.__getitem__)
    text, in_order = {}, {}
    for i, bucket in enumerate(found):
        text[i] = diagram.box(f"{i}", (1.4 * i, 5), BUCKET_ROLES[bucket], size=(0.9, 0.8))
        diagram.text(f"bucket {bucket}", (1.4 * i, 5.75), size=8)
    for place, i in enumerate(order):
        x = 1.4 * place + 0.45 * (place // chunk)
        in_order[i] = diagram.box(f"{i}", (x, 2), BUCKET_ROLES[found[i]], size=(0.9, 0.8))
        start, end = text[i].side("S"), in_order[i].side("N")
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        diagram.arrow(start, end, via=[middle], role="dim")
    for number, x in enumerate((2.1, 8.15)):
        diagram.frame("", (x, 2), (5.5, 1.3))
        diagram.text(f"chunk {number}", (x, 1.05), size=SMALL)
    for depth, i in enumerate((6, 2, 0)):
        (x, _), (to_x, _) = in_order[5].at, in_order[i].at
        leave, low = x + (0.15, -0.05, -0.25)[depth], 0.55 - 0.42 * depth
        diagram.arrow((leave, 1.6), (to_x, 1.6), via=[(leave, low), (to_x, low)], role="query")
    diagram.text("query 5 sees 6, 2 and 0", (7.2, -0.75), size=SMALL)
    for y, step in ((5, "1. hash"), (3.5, "2. sort"), (2, "3. cut")):
        diagram.text(step, (-0.75, y), size=SMALL, align="right")
    diagram.show(
        f"Hash, sort, cut. Tokens 0 to 7 have the buckets {' '.join(map(str, found))}. Sorted by "
        f"bucket they are {' '.join(map(str, order))}, cut into chunks of {chunk}. Query 5 is in "
        "chunk 1 and bucket 1: it sees token 6 there, and tokens 0 and 2 in the chunk before."
    )


def choices(
    title: str, losses: Mapping[str, Mapping[int, float]], full: float, blocks: int
) -> None:
    """Show a model's loss by the number of blocks that a query sees, the first without a choice.

    `losses` are by the way to choose and by how many of the `blocks` it sees, `full` with all.
    """
    figure, ax = plots.axes(
        title,
        "blocks that a query sees, at most",
        "loss on the second copy (nats)",
        size=(6.8, 3.4),
    )
    said = []
    for (name, by_blocks), colour in zip(losses.items(), (ORANGE, BLUE), strict=False):
        ax.plot(*zip(*by_blocks.items(), strict=True), "o-", color=colour)
        # right of the last point, and above the line of all blocks
        last = [*by_blocks.items()][-1]
        ax.annotate(name, last, (7, 5), textcoords="offset points", color=colour, size="small")
        said.append(f"{name}: " + ", ".join(f"{x:.1f} with {n}" for n, x in by_blocks.items()))
    first = next(iter(next(iter(losses.values())).items()))
    ax.annotate(
        "without a choice", first, (7, 3), textcoords="offset points", color="0.4", size="small"
    )
    ax.axhline(full, color="0.4", linestyle=":", linewidth=1.2)
    ax.plot(blocks, full, "o", color="0.4")
    ax.text(0.98 * blocks, full + 0.35, "all blocks", color="0.4", size="small", ha="right")
    ax.set(ylim=(0, None), xlim=(0, 1.04 * blocks))
    seen = sorted({n for by_blocks in losses.values() for n in by_blocks} | {blocks})
    ax.set_xticks(seen, [str(n) for n in seen])
    plots.show(
        figure,
        f"Loss of SmolLM2 on the second copy of a list, by how many of {blocks} blocks it sees. "
        f"{'; '.join(said)}. All blocks: {full:.1f}.",
    )
