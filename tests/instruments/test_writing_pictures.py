"""The bars of a faster translator say in words what they show."""

from course_lib.instruments import plots
from course_lib.instruments.pictures import writing


def test_each_bar_is_told_with_its_milliseconds(monkeypatch):
    said = []
    monkeypatch.setattr(plots, "show", lambda figure, alt: said.append(alt))
    writing.ladder({"one": {"again": 10.04, "once": 3.5}, "another": {"again": 20.0}}, "a title")
    assert said == ["Bars, milliseconds a token. one: again 10.0, once 3.5. another: again 20.0."]
