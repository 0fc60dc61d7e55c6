"""The one look of all pictures."""

import io

import matplotlib
import matplotlib.pyplot as plt

matplotlib.use("agg")

from course_lib.instruments import plots


def test_a_picture_lies_on_a_card_with_clear_corners_in_a_light_page_and_a_dark_one(monkeypatch):
    shown = []
    monkeypatch.setattr(plots, "LARGEST_SVG", 0)
    monkeypatch.setattr(plots, "display", lambda figure, metadata: shown.append(figure))
    figure, ax = plots.axes("title", "x", "y")
    ax.plot([1, 2])
    plots.show(figure, "a line that rises")
    file = io.BytesIO()
    shown[0].savefig(file, bbox_inches="tight")  # as IPython does
    file.seek(0)
    picture = plt.imread(file)
    assert picture[0, 0, 3] == picture[-1, -1, 3] == 0
    red, green, blue, opaque = picture[picture.shape[0] // 2, 24]
    assert (opaque, matplotlib.colors.to_hex((red, green, blue)).upper()) == (1, plots.CARD)
