"""What the small causal models of lesson 04 are measured by."""

import pytest
import torch
from torch.nn import functional as F

from course_lib.instruments.position_models import (
    CausalModel,
    loss_by_window,
    loss_of_the_last,
    next_token_loss,
    write,
)
from course_lib.instruments.position_schemes import Rotary

TEXTS = torch.randint(5, (2, 97), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = CausalModel(Rotary(), 5).eval()
    model.last_norm.weight.data /= 10  # so that no token is certain
    return model


def test_the_loss_of_a_window_is_that_of_every_fourth_of_its_positions(model):
    loss = F.cross_entropy(model(TEXTS[:, :-1]).mT, TEXTS[:, 1:], reduction="none")
    came = loss_by_window(model, TEXTS)
    torch.testing.assert_close(came[1], loss[:, 35:64:4].mean())
    assert came.shape == (3,)


def test_of_the_last_tokens_alone_each_position_is_the_end_of_a_text(model):
    last = [
        next_token_loss(lambda x: model(x)[:, -1:], (TEXTS[:, end - 32 : end], TEXTS[:, end, None]))
        for end in range(36, 65, 4)
    ]
    torch.testing.assert_close(loss_of_the_last(model, TEXTS)[0], torch.stack(last).mean())


def test_a_text_goes_on_behind_its_beginning_and_a_seed_decides_how(model):
    start = TEXTS[0, :4]
    written = write(model, start, 6, seed=1)
    assert written[:4].equal(start)
    assert len(written) == 10
    assert written.equal(write(model, start, 6, seed=1))
    assert not written.equal(write(model, start, 6, seed=2))
