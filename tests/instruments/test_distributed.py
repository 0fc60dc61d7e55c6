"""Several processes train the model that one trains."""

from copy import deepcopy

import pytest
import torch

from course_lib.instruments import distributed, training
from course_lib.language_model import LanguageModel

STEPS, WINDOWS, LENGTH, VOCAB = 12, 6, 10, 17


@pytest.fixture
def batches():
    windows = torch.randint(
        VOCAB, (STEPS, WINDOWS, LENGTH + 1), generator=torch.Generator().manual_seed(1)
    )
    return [(x[:, :-1], x[:, 1:]) for x in windows]


@pytest.fixture
def model():
    with training.seeded(2):
        return LanguageModel(VOCAB, 2, 16, 4, 32, LENGTH).double()


@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_train_the_model_that_one_trains(model, batches, processes):
    alone = deepcopy(model)
    history = training.train(alone, batches, distributed.loss, steps=STEPS, learning_rate=0.01)
    losses = distributed.train(model, batches, learning_rate=0.01, processes=processes)
    assert losses == pytest.approx(history.losses, rel=1e-12)
    for name, parameter in alone.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], parameter, rtol=1e-9, atol=1e-12)


def test_a_batch_that_cannot_be_shared_equally_is_refused(model, batches):
    with pytest.raises(ValueError, match="6 rows, which 4 processes cannot share equally"):
        distributed.train(model, batches, learning_rate=0.01, processes=4)
