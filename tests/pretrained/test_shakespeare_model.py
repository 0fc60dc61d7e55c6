"""The weights that the course trained load into its classes, and lose what the results say."""

import pytest
import torch

from course_lib.data import store
from course_lib.instruments import results
from course_lib.language_model import LanguageModel
from course_lib.pretrained import shakespeare_model
from course_lib.transformer import EncoderBlock
from research.experiments.language_model import FIRST, mean_loss, split
from research.experiments.recipes import Predictor


@pytest.mark.skipif(
    not store.is_fetched("shakespeare"), reason="needs shakespeare: run `course fetch shakespeare`"
)
def test_it_loses_what_the_results_say():
    _, held_out, _ = split()
    predictor = Predictor(shakespeare_model.load(), shakespeare_model.MAX_LENGTH)
    stored = results.load("language_model")["figures"]["weights"]["loss_of_first"]
    assert mean_loss(predictor, held_out[:FIRST]) == pytest.approx(stored, abs=2e-3)


def test_it_loads_into_anybodys_classes():
    class Mine(LanguageModel):
        pass

    class MyBlock(EncoderBlock):
        pass

    model, tokens = shakespeare_model.load(Mine, MyBlock), torch.randint(77, (2, 9))
    assert isinstance(model, Mine)
    assert all(isinstance(block, MyBlock) for block in model.blocks)
    torch.testing.assert_close(model(tokens), shakespeare_model.load()(tokens))


def test_it_does_not_see_ahead():
    model, tokens = shakespeare_model.load(), torch.randint(77, (12,))
    changed = tokens.clone()
    changed[7:] = 76 - changed[7:]
    torch.testing.assert_close(model(tokens)[:7], model(changed)[:7])


def test_untrained_it_gives_each_character_the_same_probability():
    model, tokens = shakespeare_model.new(), torch.randint(77, (9,))
    assert (model(tokens) == 0).all()
