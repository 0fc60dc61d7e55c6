"""Lesson 17's pictures: which tokens are targets, a change of low rank, a home and its devices."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Arc, Circle, Polygon, Rectangle, Wedge

from course_lib.data.home import Home, kind_of
from course_lib.data.home_commands import LISTS
from course_lib.instruments import plots
from course_lib.instruments.drawings import PAGE, SMALL, Diagram

WALL, LIT = "0.35", "#F5C518"
WIDE, HIGH = 1.4, 1.5  # of a room; devices are drawn about 0.6 wide


def targets(prompt: Sequence[str], answer: Sequence[str]) -> None:
    """Show a conversation's tokens, and above each the token that it has to predict, if any."""
    tokens = [_readable(token) for token in (*prompt, *answer)]
    wanted = [None] * (len(prompt) - 1) + tokens[len(prompt) :] + [None]
    diagram, left, y = Diagram(), 0.0, 0.0
    for token, target in zip(tokens, wanted, strict=True):
        width = 0.35 + 0.19 * max(len(token), len(target or ""))
        if left + width > PAGE - 0.5:
            left, y = 0.0, y - 2.2
        x, size = left + width / 2, (width, 0.6)
        box = diagram.box(token, (x, y), "value" if target else "stream", size=size)
        if target:
            above = diagram.box(target, (x, y + 1.05), "value", size=size)
            diagram.arrow(box, above, role="value")
        left += width + 0.1
    learned = [f"after {x} comes {y}" for x, y in zip(tokens, wanted, strict=True) if y]
    diagram.show(
        f"A conversation of {len(tokens)} tokens, of which {len(learned)} have a target, the next "
        f"token: {'; '.join(learned)}. All others have none."
    )


def _readable(token: str) -> str:
    """Return a token of byte-level BPE with signs for spaces and new lines."""
    return token.replace("Ġ", "␣").replace("Ċ", "⏎")


def loop() -> None:
    """Show what is said, what the model writes, and what the home does with it or says to it."""
    diagram = Diagram()
    you = diagram.box("you", (0, 0), "stream", size=(1.2, 0.8))
    model = diagram.box("model", (4.6, 0), "plain", size=(1.6, 1.0))
    home = diagram.box("home", (9.6, 0), "value", size=(1.6, 1.0))
    diagram.arrow(you, model)
    diagram.arrow(model, home)
    diagram.text("turn on the\nkitchen lamp", (2.2, 0.65), size=SMALL)
    diagram.text('{"action": "light.turn_on",\n"target": "kitchen lamp"}', (7.1, 0.65), size=SMALL)
    diagram.arrow((9.6, -0.5), (4.6, -0.5), via=[(9.6, -1.4), (4.6, -1.4)])
    diagram.text("refused, and why", (7.1, -1.1), size=SMALL)
    diagram.text("carried out", (11.3, 0), size=SMALL)
    diagram.show(
        "You say: turn on the kitchen lamp. The model writes one line of JSON, with an action and "
        "a target. The home carries it out, or refuses it and says why; that goes back to the "
        "model as the next turn."
    )


def low_rank() -> None:
    """Show the two ways of x through a layer with a change of low rank."""
    diagram = Diagram()
    x = diagram.box("x", (0, 0), "stream", size=(1.0, 0.7))
    frozen = diagram.box("W, frozen\n$d_{out} \\times d_{in}$", (4.4, 1.25), "dim", size=(2.8, 1.7))
    down = diagram.box("A", (3.0, -1.1), "query", size=(2.6, 0.55))
    up = diagram.box("B", (6.4, -1.1), "query", size=(0.55, 1.7))
    total = diagram.box("+", (9.0, 0), "stream", size=(0.7, 0.7))
    diagram.arrow(x, frozen)
    diagram.arrow(x, down)
    diagram.arrow(down, up, "$n \\times r$")
    diagram.arrow(frozen, total)
    diagram.arrow(up, total, r"$\times\, \alpha / r$")
    for text, at in (
        (r"$n \times d_{in}$", (0, 0.65)),
        (r"$r \times d_{in}$, random", (3.0, -1.7)),
        (r"$d_{out} \times r$, zero at first", (6.4, -2.3)),
        (r"$n \times d_{out}$", (10.2, 0)),
    ):
        diagram.text(text, at, size=SMALL)
    diagram.show(
        "x goes two ways: through the frozen matrix W, and through A, which is wide and low, down "
        "to r = 8 numbers and through B, which is tall and narrow and zero at first, up again. The "
        "second way is scaled by alpha over r, and the two are added."
    )


def _light(ax: Axes, x: float, y: float, state: str) -> None:
    share = {"off": 0.0, "on": 1.0}.get(state) if "%" not in state else int(state.split()[0]) / 100
    ax.add_patch(Rectangle((x - 0.09, y - 0.34), 0.18, 0.16, color=WALL))
    ax.add_patch(Circle((x, y), 0.2, facecolor="white", edgecolor=WALL))
    ax.add_patch(Circle((x, y), 0.2, facecolor=LIT, alpha=share))
    for dx, dy in ((0, 1), (0.7, 0.7), (1, 0), (-0.7, 0.7), (-1, 0)):
        ends = [x + 0.27 * dx, x + 0.42 * dx], [y + 0.27 * dy, y + 0.42 * dy]
        ax.plot(*ends, color=LIT, linewidth=2.5, alpha=share)


def _cover(ax: Axes, x: float, y: float, state: str) -> None:
    ax.add_patch(Rectangle((x - 0.3, y - 0.3), 0.6, 0.6, facecolor="white", edgecolor=WALL))
    for i in range(6 if state == "closed" else 2):
        ax.plot([x - 0.28, x + 0.28], [y + 0.24 - 0.09 * i] * 2, color=WALL, linewidth=2)


def _lock(ax: Axes, x: float, y: float, state: str) -> None:
    ax.add_patch(Rectangle((x - 0.2, y - 0.3), 0.4, 0.32, color=WALL))
    shift = 0 if state == "locked" else 0.24
    ax.add_patch(Arc((x + shift, y + 0.02), 0.28, 0.5, theta2=180, color=WALL, linewidth=3))


def _climate(ax: Axes, x: float, y: float, state: str) -> None:
    height = (int(state.split()[0]) - 10) / 20
    ax.add_patch(Rectangle((x - 0.07, y - 0.25), 0.14, 0.6, facecolor="white", edgecolor=WALL))
    ax.add_patch(Rectangle((x - 0.07, y - 0.25), 0.14, 0.6 * height, color=plots.COLOURS[1]))
    ax.add_patch(Circle((x, y - 0.28), 0.12, color=plots.COLOURS[1]))


def _fan(ax: Axes, x: float, y: float, state: str) -> None:
    colour = "0.75" if state == "off" else plots.COLOURS[0]
    for start in (0, 120, 240):
        ax.add_patch(Wedge((x, y), 0.33, start, start + 55, color=colour))
    ax.add_patch(Circle((x, y), 0.06, color=WALL))


def _media_player(ax: Axes, x: float, y: float, state: str) -> None:
    ax.add_patch(Rectangle((x - 0.3, y - 0.3), 0.6, 0.36, color=WALL))
    ax.add_patch(Circle((x, y - 0.12), 0.12, color="white"))
    for i in range(2 if state == "playing" else 0):
        size = 0.3 + 0.25 * i
        ax.add_patch(
            Arc((x, y + 0.06), size, size, theta1=30, theta2=150, color=plots.COLOURS[2], lw=2.5)
        )


DRAWN: dict[str, Callable[[Axes, float, float, str], None]] = {
    "light": _light, "cover": _cover, "lock": _lock, "climate": _climate, "fan": _fan,
    "media_player": _media_player,
}  # fmt: skip


def house(home: Home, before: Home | None = None) -> None:
    """Show a home's devices in their rooms; what is not as it was `before` has a frame.

    The first room is in the roof if it has one device, and the others are on two floors, at most
    half of the devices on the upper one.
    """
    rooms: dict[str, list[str]] = {}
    for device in home:
        rooms.setdefault(device.rsplit(" ", 1)[0], []).append(device)
    roof, *rest = rooms
    if len(rooms[roof]) > 1:
        roof, rest = "", [*rooms]
    many, above = sum(len(rooms[room]) for room in rest), 0
    corners: dict[str, tuple[float, float]] = {}
    for room in rest:
        up = above + len(rooms[room]) <= many // 2 and len(corners) == above
        left = above if up else len(corners) - above
        above += len(rooms[room]) if up else 0
        corners |= {x: ((left + i) * WIDE, HIGH * up) for i, x in enumerate(rooms[room])}
    figure, ax = plots.plt.subplots(figsize=(6.6, 4.3))
    top, middle, slope = 2 * HIGH, above * WIDE / 2, 1.9 if roof else 0.9
    gable = [(-0.2, top), (middle, top + slope), (above * WIDE + 0.2, top)]
    ax.add_patch(Polygon(gable, facecolor="white", edgecolor=WALL))
    if roof:
        corners = {rooms[roof][0]: (middle - WIDE / 2, top)} | corners
    changed = [device for device in home if before and home[device] != before[device]]
    for device, (left, bottom) in corners.items():
        room, thing = device.rsplit(" ", 1)
        kind, state, x = kind_of(device), home[device], left + WIDE / 2
        wide = WIDE * len(rooms[room])
        if device == rooms[room][0] and room != roof:
            ax.add_patch(Rectangle((left, bottom), wide, HIGH, facecolor="white", edgecolor=WALL))
        if kind == "light" and state != "off":
            ax.add_patch(Circle((x, bottom + 0.85), 0.55, color=LIT, alpha=0.25))
        DRAWN[kind](ax, x, bottom + 0.85, state)
        ax.text(x, bottom + 0.32, f"{thing}: {state}", ha="center", size=8)
        if device == rooms[room][0]:
            ax.text(left + wide / 2, bottom + 0.1, room, ha="center", size=8, color="0.45")
        if device in changed:
            inside = (left + 0.04, bottom + 0.04), WIDE - 0.08, HIGH - 0.08
            ax.add_patch(Rectangle(*inside, fill=False, edgecolor=plots.COLOURS[1], linewidth=2.5))
    widest = max((many - above) * WIDE + 0.1, above * WIDE + 0.3)
    ax.set(aspect="equal", xlim=(-0.3, widest), ylim=(-0.1, top + slope + 0.1))
    ax.set_axis_off()
    said = ", ".join(f"{device} {state}" for device, state in home.items())
    news = f" Changed: {', '.join(changed)}." if changed else ""
    plots.show(figure, f"A home with {len(home)} devices: {said}.{news}")


def table(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the shares of each held-out list that are right: three baselines, then LoRA, twice.

    `figures` are those of research/results/assistant.json; of them the mean of the seeds is shown.
    """
    baselines = figures["baselines"]
    runs = {
        "examples in the prompt": baselines["in context"],
        "a program that counts": baselines["counting"],
        "last block": baselines["last block"],
        "LoRA, as trained here": [run["mixed"]["shares"] for run in figures["LoRA"]],
        "the same, constrained": [run["mixed"]["constrained"] for run in figures["LoRA"]],
    }
    yield f"{'right':24}" + "".join(f"{x:>14}" for x in LISTS)
    for way, seeds in runs.items():
        yield f"{way:24}" + "".join(f"{mean(run[x] for run in seeds):14.0%}" for x in LISTS)
