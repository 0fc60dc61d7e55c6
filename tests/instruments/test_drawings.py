"""Drawings: what is drawn stays on the page, and says what it shows."""

import base64
import xml.etree.ElementTree as ElementTree

import pytest

from course_lib.instruments import drawings


def test_a_drawing_is_vector_graphics_that_carries_its_alternative_text(displayed):
    alt = 'Cross-attention is lit: its keys & values come from the "encoder".'
    data = displayed(lambda: drawings.transformer({"cross-attention"}, alt))
    root = ElementTree.fromstring(data["image/svg+xml"])
    assert (root.get("role"), root.get("aria-label")) == ("img", alt)
    assert data["text/plain"] == alt


def test_lab_which_gives_a_drawing_no_text_is_given_an_image_that_has_it(displayed):
    alt = 'keys & values come from the "encoder"'
    data = displayed(lambda: drawings.transformer({"cross-attention"}, alt))
    image = ElementTree.fromstring(data["text/html"].replace(">", "/>"))
    assert image.get("alt") == alt
    kind, _, encoded = image.get("src").partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(encoded).decode() == data["image/svg+xml"]


def test_the_same_drawing_has_the_same_bytes(displayed):
    first, second = (displayed(lambda: drawings.transformer({"positions"}, "x")) for _ in range(2))
    assert first == second


def test_only_what_the_transformer_has_can_be_lit():
    with pytest.raises(KeyError, match="convolution"):
        drawings.transformer({"convolution"}, "x")


def test_a_stack_that_is_not_named_stays_grey(displayed):
    both = displayed(lambda: drawings.transformer({"positions"}, "x"))
    one = displayed(lambda: drawings.transformer({"positions"}, "x", stacks=("decoder",)))
    olive = drawings.ROLES["position"].lower()
    counts = [data["image/svg+xml"].lower().count(f"stroke:{olive}") for data in (both, one)]
    assert counts == [2, 1]


def test_a_drawing_wider_than_a_page_is_refused():
    diagram = drawings.Diagram()
    diagram.arrow(diagram.box("left", (0, 0)), diagram.box("right", (14, 0)))
    with pytest.raises(ValueError, match=r"a page is 13.0 wide, and this drawing 16"):
        diagram.show("too wide")


@pytest.mark.parametrize(
    ("end", "leave", "sides"),
    [((4, 0), None, "EW"), ((0, 4), None, "NS"), ((4, 2), "N", "NW"), ((4, 2), "E", "ES")],
)
def test_an_arrow_leaves_and_enters_at_the_middle_of_a_side(end, leave, sides):
    diagram = drawings.Diagram()
    first, last = diagram.box("first", (0, 0)), diagram.box("last", end)
    diagram.arrow(first, last, leave=leave)
    path = diagram.figure.axes[0].patches[-1].get_path()  # in a plot's own units
    assert tuple(path.vertices[0]) == pytest.approx(first.side(sides[0]), abs=0.2)
