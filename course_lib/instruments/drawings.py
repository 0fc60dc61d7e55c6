"""Diagrams: boxes, matrices and right-angled arrows, in the same colours in all lessons.

A unit is half an inch, about two lines of text; a page is 13 units wide.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise
from math import dist
from typing import Any, Literal, NamedTuple

from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from course_lib.instruments import plots

INCHES = 0.5
PAGE = 13.0
SMALL, NORMAL = 9.0, 11.0  # points

Role = Literal[
    "query", "key", "value", "weights", "network", "norm", "stream", "plain", "dim", "position"
]
Side = Literal["N", "E", "S", "W"]
Place = tuple[float, float]

# what a colour means, in every drawing of the course
ROLES: dict[Role, str] = {
    "query": "#0072B2",
    "key": "#D55E00",
    "value": "#009E73",
    "weights": "#56B4E9",
    "network": "#CC79A7",
    "norm": "#E69F00",
    "stream": "#7F7F7F",
    "plain": "#595959",
    "dim": "#BFBFBF",
    "position": "#B3A100",
}


class Box(NamedTuple):
    """A part of a diagram that arrows may begin and end at: its centre and its size."""

    at: Place
    size: Place

    def side(self, side: Side) -> Place:
        """Return the middle of one of its sides."""
        (x, y), (width, height) = self.at, self.size
        across, up = {"N": (0, 1), "E": (1, 0), "S": (0, -1), "W": (-1, 0)}[side]
        return x + across * width / 2, y + up * height / 2


class Diagram:
    """A drawing under way. Parts are placed by their centres; `show` puts it on the page."""

    def __init__(self):
        self.figure, self._ax = plots.plt.subplots(layout="none")
        self._ax.set_axis_off()

    def box(self, text: str, at: Place, role: Role = "plain", *, size: Place = (2.4, 1.0)) -> Box:
        """Draw a rounded box around a text, which may hold mathematics between dollars."""
        x, y = at[0] - size[0] / 2, at[1] - size[1] / 2
        style = "round,pad=0,rounding_size=0.12"
        shape = FancyBboxPatch((x, y), *size, boxstyle=style, **_colours(role), linewidth=1.2)
        self._ax.add_patch(shape)
        self.text(text, at, colour="0.5" if role == "dim" else "black")
        return Box(at, size)

    def matrix(
        self,
        name: str,
        shape: tuple[int, int],
        at: Place,
        role: Role = "plain",
        *,
        axes: tuple[str, str] = ("", ""),
        cell: float = 0.32,
    ) -> Box:
        """Draw a matrix of so many cells, its name below it, its axes' names beside and above."""
        height, width = shape[0] * cell, shape[1] * cell
        left, bottom = at[0] - width / 2, at[1] - height / 2
        for i in range(shape[0]):
            for j in range(shape[1]):
                corner = (left + j * cell, bottom + i * cell)
                face = _colours(role)["facecolor"]
                square = Rectangle(corner, cell, cell, facecolor=face, edgecolor="white")
                self._ax.add_patch(square)
        outline: dict[str, Any] = {"fill": False, "edgecolor": ROLES[role], "linewidth": 1.4}
        self._ax.add_patch(Rectangle((left, bottom), width, height, **outline))
        self.text(name, (at[0], bottom - 0.42))
        self.text(axes[0], (left - 0.15, at[1]), size=SMALL, align="right")
        self.text(axes[1], (at[0], bottom + height + 0.3), size=SMALL)
        return Box(at, (width, height))

    def frame(self, name: str, at: Place, size: Place) -> None:
        """Draw a dashed frame around parts, and its name at its right."""
        right = at[0] + size[0] / 2
        dashes = (0, (4, 3))
        style: dict[str, Any] = {"fill": False, "edgecolor": "0.5", "linestyle": dashes}
        corner = (right - size[0], at[1] - size[1] / 2)
        self._ax.add_patch(Rectangle(corner, *size, **style))
        self.text(name, (right + 0.15, at[1]), size=SMALL, align="left")

    def text(
        self,
        text: str,
        at: Place,
        *,
        size: float = NORMAL,
        align: Literal["left", "center", "right"] = "center",
        colour: str = "black",
    ) -> None:
        """Write a text beside the parts."""
        self._ax.text(*at, text, size=size, ha=align, va="center", color=colour, zorder=5)

    def arrow(
        self,
        start: Box | Place,
        end: Box | Place,
        label: str = "",
        *,
        leave: Side | None = None,
        via: Sequence[Place] = (),
        role: Role = "plain",
        width: float = 1.2,
    ) -> None:
        """Draw an arrow, straight or with one right angle, and a label on its longest leg.

        It leaves by the side `leave`, or by the one that faces the other part. `via` are corners
        of a longer way.
        """
        if via:
            stops = [_side(start, _facing(start, via[0])), *via, _side(end, _facing(end, via[-1]))]
        else:
            (x, y), (to_x, to_y) = _centre(start), _centre(end)
            leave = leave or _facing(start, (to_x, to_y))
            corner = (to_x, y) if leave in ("E", "W") else (x, to_y)
            straight = min(abs(to_x - x), abs(to_y - y)) < 0.05
            enter = _facing(end, (x, y) if straight else corner)
            stops = [_side(start, leave), *([] if straight else [corner]), _side(end, enter)]
        line = {"arrowstyle": "-|>", "mutation_scale": 10, "joinstyle": "miter"}
        colour = {"color": ROLES[role], "linewidth": width, "fill": False}
        self._ax.add_patch(FancyArrowPatch(path=Path(stops), **line, **colour, zorder=0.5))
        if label:
            (x, y), (to_x, to_y) = max(pairwise(stops), key=lambda leg: dist(*leg))
            halo = {"facecolor": plots.CARD, "edgecolor": "none", "pad": 1.5}
            middle = ((x + to_x) / 2, (y + to_y) / 2)
            self._ax.text(*middle, label, size=SMALL, ha="center", va="center", bbox=halo)

    def show(self, alt: str, *, live: str | None = None) -> None:
        """Put the drawing on the page, with what a reader who cannot see it must know.

        `live` is a page of HTML that a notebook shows in its place, as wide and as high.
        Raises ValueError for a drawing that is wider than a page.
        """
        self._ax.autoscale_view()
        self._ax.set_aspect("equal")
        # as large as what is drawn, so that text has one size in all drawings
        self.figure.set_size_inches(PAGE * INCHES, PAGE * INCHES)
        self._ax.set(position=(0, 0, 1, 1), xlim=(0, PAGE), ylim=(0, PAGE))
        self.figure.canvas.draw()
        parts = [*self._ax.patches, *self._ax.texts]
        drawn = Bbox.union([part.get_window_extent() for part in parts])
        (left, bottom), (right, top) = self._ax.transData.inverted().transform(drawn)
        if right - left > PAGE:
            raise ValueError(f"a page is {PAGE} wide, and this drawing {right - left:.1f}")
        edge = 0.25
        self._ax.set(xlim=(left - edge, right + edge), ylim=(bottom - edge, top + edge))
        wide, high = right - left + 2 * edge, top - bottom + 2 * edge
        self.figure.set_size_inches(wide * INCHES, high * INCHES)
        plots.show(self.figure, alt, live=live)


def _colours(role: Role) -> dict[str, Any]:
    """Return a role's colour for the edge, and mixed with white for the face."""
    face = tuple(1 - 0.2 * (1 - channel) for channel in to_rgb(ROLES[role]))
    return {"edgecolor": ROLES[role], "facecolor": face}


def _facing(part: Box | Place, other: Place) -> Side:
    """Return the side of a part from which another place is furthest off."""
    (x, y), (to_x, to_y) = _centre(part), other
    if abs(to_y - y) > abs(to_x - x):
        return "N" if to_y > y else "S"
    return "E" if to_x > x else "W"


def _centre(part: Box | Place) -> Place:
    return part.at if isinstance(part, Box) else part


def _side(part: Box | Place, side: Side) -> Place:
    return part.side(side) if isinstance(part, Box) else part


BOTTOM = ("embedding", "positions")
ENCODER = ("self-attention", "add & norm", "feed-forward", "add & norm")
DECODER = ("masked self-attention", "add & norm", "cross-attention", *ENCODER[1:])
PART_ROLES: dict[str, Role] = {
    "embedding": "stream",
    "positions": "position",
    "self-attention": "query",
    "masked self-attention": "query",
    "cross-attention": "query",
    "add & norm": "norm",
    "feed-forward": "network",
    "linear, softmax": "value",
}


def transformer(
    lit: Collection[str], alt: str, *, stacks: Collection[str] = ("encoder", "decoder")
) -> None:
    """Show the Transformer of 2017 with these of its parts in colour: the map of the course.

    Where only one of the `stacks` is named, the other one stays grey. Raises KeyError for a part
    that it does not have.
    """
    roles: dict[str, Role] = {part: PART_ROLES[part] for part in lit}
    diagram, step, size = Diagram(), 0.78, (3.7, 0.56)

    def stack(name: str, parts: tuple[str, ...], x: float, below: str) -> list[Box]:
        diagram.text(below, (x, -0.95), size=SMALL)
        own = roles if name in stacks else {}
        boxes = [
            diagram.box(part, (x, i * step), own.get(part, "dim"), size=size)
            for i, part in enumerate(parts)
        ]
        for lower, upper in pairwise([(x, -0.75), *boxes]):
            diagram.arrow(lower, upper, role="dim")
        return boxes

    encoder = stack("encoder", BOTTOM + ENCODER, 2, "source tokens")
    above = (*BOTTOM, *DECODER, "linear, softmax")
    decoder = stack("decoder", above, 8, "target tokens so far")
    (_, up), (_, over) = encoder[-1].at, decoder[4].at
    corners = [(2, up + 0.75), (5, up + 0.75), (5, over)]
    role: Role = "key" if "cross-attention" in lit else "dim"
    diagram.arrow(encoder[-1], decoder[4], "keys, values", via=corners, role=role)
    top = len(decoder) * step
    diagram.arrow(decoder[-1], (8, top), role="dim")
    diagram.text("next token", (8, top + 0.25), size=SMALL)
    for name, x, parts in (("encoder\nblock × N", 2, ENCODER), ("decoder\nblock × N", 8, DECODER)):
        middle = len(BOTTOM) + (len(parts) - 1) / 2
        diagram.frame(name, (x, middle * step), (4.2, len(parts) * step - 0.02))
    diagram.show(alt)
