"""The same picture in fewer bytes: every point stays, and only what nobody can see goes."""

import io
import json
import re
from functools import cache

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")

from course_lib.files import ipynb
from course_lib.files.paths import ROOT
from course_lib.instruments import plots
from course_lib.instruments.compact_svg import NUMBER, compact

KIND = "image/svg+xml"
POINTS = {"before": r'd="([^"]*)" clip-path', "after": r"<path d='m([^'hvqz]*)'"}


@cache
def drawn(noise=0.0):
    """Return what matplotlib writes of a line, an area, an image, a hatch and mathematics."""
    figure, (ax, cells) = plots.panels("$W_Q x^2$ and a b", ["left", "right"], size=(6, 3))
    x = np.linspace(0, 1, 20)
    ax.plot(x, np.sin(x * 7) + noise, "o--", label=r"sin, $\frac{1}{2}$")
    ax.fill_between(x, x, x**2, alpha=0.3)
    ax.legend()
    cells.imshow([[0, 1], [1, float("nan")]])
    cells.patch.set(facecolor=plots.CARD, edgecolor="0.7", hatch="///")
    plots.plt.close(figure)
    file = io.StringIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


def line(svg, pattern):
    paths = [NUMBER.findall(path) for path in re.findall(pattern, svg)]
    [numbers] = [x for x in paths if len(x) == 40]
    return np.array(numbers, float).reshape(-1, 2)


def test_a_picture_has_less_than_half_of_its_bytes_and_keeps_them():
    before, after = drawn(), compact(drawn())
    assert len(after) < len(before) / 2
    assert compact(after) == after


def test_every_point_stays_where_it_is_within_half_a_hundredth():
    before = line(drawn(), POINTS["before"])
    after = line(compact(drawn()), POINTS["after"]).cumsum(0)
    assert abs(before - after).max() < 0.0051


@pytest.mark.parametrize(("noise", "same"), [(1e-9, True), (1e-3, False)])
def test_noise_that_nobody_sees_changes_no_byte(noise, same):
    assert drawn() != drawn(noise)
    assert (compact(drawn()) == compact(drawn(noise))) == same


def test_committed_pictures_are_compact_and_one_name_is_one_shape_in_all_of_them():
    shapes, sizes = {}, {}
    for path in ipynb.listed(ROOT / "notebooks"):
        for cell in json.loads(path.read_text("utf8"))["cells"]:
            for output in cell.get("outputs", []):
                if svg := "".join(output.get("data", {}).get(KIND, "")):
                    assert compact(svg) == svg, f"{path.name}: {cell['source'][0]}"
                    sizes[path.name] = sizes.get(path.name, 0) + len(svg)
                    for name, shape in re.findall(r"<\w+ id='(.*?)'(.*?)/>", svg):
                        assert shapes.setdefault(name, shape) == shape
    print(*(f"{size:>8,} {name}" for name, size in sizes.items()), sep="\n")
    assert shapes
