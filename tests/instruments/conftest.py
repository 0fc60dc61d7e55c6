import pytest

from course_lib.instruments import plots


@pytest.fixture(autouse=True)
def closed():
    """Close what a test has drawn and not shown."""
    yield
    plots.plt.close("all")


@pytest.fixture
def displayed(monkeypatch):
    """Draw, and return the one thing that is displayed."""

    def data(draw):
        shown = []
        monkeypatch.setattr(plots, "display", lambda data, **_: shown.append(data))
        draw()
        [one] = shown
        return one

    return data


@pytest.fixture
def said(monkeypatch):
    """List what pictures say of themselves; none is displayed."""
    texts = []
    monkeypatch.setattr(plots, "show", lambda figure, alt, **_: texts.append(alt))
    return texts
