"""Lesson 08's pictures: what is drawn is what a model did, and so is what is read aloud."""

import html
import json
import re

import pytest
import torch

from course_lib.instruments import plots
from course_lib.instruments.drawings import ROLES
from course_lib.instruments.pictures import encoder_decoder

ROWS = ["b", "be", "bel", "belt"]


@pytest.fixture
def shown(displayed):
    """Draw; return the words and the picture."""

    def data(draw):
        one = displayed(draw)
        return one["text/plain"], one["image/svg+xml"].lower()

    return data


@pytest.mark.parametrize("name", ["course_map", "whole", "passes"])
def test_a_drawing_fits_on_a_page_and_names_what_it_draws(shown, name):
    said, _ = shown(getattr(encoder_decoder, name))
    assert len(said.split()) > 20


# what matplotlib does with torch's tensors; in a kernel nobody sees it
@pytest.mark.filterwarnings("ignore:__array_:DeprecationWarning")
def test_one_letter_of_each_pass_is_lit_and_what_it_looks_at_is_said(shown):
    weights = torch.eye(4)[[1, 3, 0, 2]]
    said, drawn = shown(lambda: encoder_decoder.at_work("lbte", ROWS, weights))
    assert "pass 1 writes b, looks most at b; pass 2 writes e, looks most at e" in said
    assert drawn.count(ROLES["value"].lower()) == len(ROWS)


# what matplotlib does with torch's tensors; in a kernel nobody sees it
@pytest.mark.filterwarnings("ignore:__array_:DeprecationWarning")
def test_what_a_notebook_moves_has_the_model_s_own_rows_and_weights(monkeypatch):
    displayed = []
    monkeypatch.setattr(plots, "display", lambda data, **_: displayed.append(data))
    encoder_decoder.at_work("lbte", ROWS, torch.eye(4)[[1, 3, 0, 2]])
    page = html.unescape(displayed[0]["text/html"])
    assert f"rows = {json.dumps(ROWS)}, weights = [[0.0, 1.0, 0.0, 0.0]," in page
    assert not re.search(r"\[\[[A-Z]+\]\]", page)
