"""Pictures in one style: the finding as the title, axes from the glossary, colours for all eyes."""

import base64
import html
import io
from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.rcsetup import cycler
from torch import Tensor

from course_lib.instruments.compact_svg import compact

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe & Ito 2008
PALE = ("#D6E9F5", "#FBDFCC", "#CDEDE3", "#E6E6E6")  # blue, vermilion, green and grey, under text
COLOUR_MAP = "cividis"
CARD = "#F4F4F1"  # what every picture lies on, in a light page and in a dark one alike

# on a narrow screen a figure shrinks as far as its letters can be read; what is left over scrolls
SHRINK = "max-width:max(100%,30em)"
LARGEST_SVG = 100_000  # characters

Place = tuple[float, float]

plt.rcParams |= {
    "axes.facecolor": "none",
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.titlepad": 10,
    "figure.constrained_layout.use": True,
    "figure.dpi": 160,
    "figure.facecolor": CARD,
    "image.cmap": COLOUR_MAP,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "svg.hashsalt": "course",
}


def axes(
    title: str, x: str, y: str, *, size: tuple[float, float] = (6.4, 3.6)
) -> tuple[Figure, Axes]:
    """Open a figure with one pair of axes; `size` in inches."""
    figure, ax = plt.subplots(figsize=size)
    ax.set(title=title, xlabel=x, ylabel=y)
    return figure, ax


def panels(
    title: str, names: Sequence[str], *, size: tuple[float, float], rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """Open a figure with one pair of axes a name, side by side in `rows` rows."""
    figure, grid = plt.subplots(rows, -(-len(names) // rows), figsize=size, squeeze=False)
    figure.suptitle(title, x=0.01, ha="left", size="medium")
    for ax, name in zip(grid.flat, names, strict=True):
        ax.set_title(name, size="small")
    return figure, list(grid.flat)


def graph(
    ax: Axes,
    labels: Mapping[Place, object],
    arrows: Iterable[tuple[Place, Place]],
    colours: Mapping[Place, str] | None = None,
) -> None:
    """Draw a disc with a label at each place, and an arrow to each place from what it needs."""
    for start, end in arrows:
        style = {
            "arrowstyle": "-|>",
            "shrinkA": 10,
            "shrinkB": 10,
            "color": "0.6",
            "linewidth": 0.8,
        }
        ax.annotate("", end, start, arrowprops=style, zorder=1)
    faces = [(colours or {}).get(place, PALE[0]) for place in labels]
    ax.scatter(*zip(*labels, strict=True), s=330, color=faces, edgecolors="0.3", zorder=2)
    for (x, y), label in labels.items():
        ax.text(x, y, str(label), ha="center", va="center_baseline", zorder=3)
    ax.margins(0.12, 0.25)
    ax.set_axis_off()


def heat_map(
    ax: Axes, weights: Tensor, rows: Sequence[str], columns: Sequence[str], numbers: bool = False
) -> None:
    """Draw a matrix of weights from 0 to 1, its rows and columns named, its numbers if asked.

    What is masked is NaN, and is hatched.
    """
    image = ax.imshow(weights.detach().numpy(), vmin=0, vmax=1, aspect="auto")
    ax.patch.set(facecolor=CARD, edgecolor="0.7", hatch="///")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.figure.colorbar(image, ax=ax, label="weight")
    if numbers:
        for i, row in enumerate(weights.tolist()):
            for j, weight in enumerate(row):
                if weight != weight:
                    continue
                colour = "black" if weight > 0.5 else "white"
                ax.text(j, i, f"{weight:.2f}", ha="center", va="center", color=colour)


def show(figure: Figure, alt: str, *, live: str | None = None) -> None:
    """Show a figure once, on a card, with the sentences that tell what is seen in it.

    As lines and letters while these are few, otherwise as pixels: a page must stay quick to open.
    `live` is a page of HTML that a notebook shows in the figure's place, as wide and as high.
    """
    plt.close(figure)
    figure.patch.set_alpha(0)
    width, height = figure.get_size_inches()
    style = f"round,pad={0.1 / width}"
    look = {"facecolor": CARD, "linewidth": 0, "zorder": -1, "transform": figure.transFigure}
    card = FancyBboxPatch((0, 0), 1, 1, style, mutation_aspect=width / height, **look)
    figure.add_artist(card)
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", bbox_inches="tight", pad_inches=0)
    label = f'<svg role="img" style="{SHRINK};height:auto" aria-label="{html.escape(alt)}"'
    vector = compact(drawn.getvalue().replace("<svg", label, 1))
    if len(vector) > LARGEST_SVG:
        display(figure, metadata={"image/png": {"alt": alt, "width": round(96 * width)}})
        return
    page = _image(vector, alt) if live is None else _frame(live, alt, round(110 * height))
    data = {"text/html": page, "image/svg+xml": vector, "text/plain": alt}
    display(data, raw=True, metadata={"image/svg+xml": {"alt": alt}})


def _image(vector: str, alt: str) -> str:
    """Return a picture as HTML: Lab's picture of an SVG has no text for those who cannot see it."""
    source = f"data:image/svg+xml;base64,{base64.b64encode(vector.encode()).decode()}"
    return f'<img alt="{html.escape(alt)}" style="{SHRINK}" src="{source}">'


def _frame(page: str, alt: str, height: int) -> str:
    """Return a page in a frame of its own, so that its style and the notebook's stay apart."""
    style = f"width:100%;height:{height}px;border:0"
    return (
        f'<iframe title="{html.escape(alt)}" style="{style}" srcdoc="{html.escape(page)}"></iframe>'
    )
