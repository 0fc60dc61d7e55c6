"""Weights that are kept are those that were saved, in any class with the same names."""

import pytest
import torch
from torch import nn

from course_lib.instruments import results, weights


class Tied(nn.Module):
    def __init__(self, vocab: int = 5):
        super().__init__()
        self.table = nn.Embedding(vocab, 3)
        self.output = nn.Linear(3, vocab, bias=False)
        self.output.weight = self.table.weight


class OtherOrder(nn.Module):
    def __init__(self):
        super().__init__()
        self.output = nn.Linear(3, 5, bias=False)
        self.table = nn.Embedding(5, 3)
        self.table.weight = self.output.weight


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "FOLDER", tmp_path)
    model = Tied()
    weights.save_weights("tied", model)
    return model


@pytest.mark.parametrize("kind", [Tied, OtherOrder])
def test_weights_come_back_in_16_bits_and_stay_tied(saved, kind):
    model = kind()
    weights.load_weights("tied", model)
    torch.testing.assert_close(model.table.weight, saved.table.weight.half().float())
    assert model.output.weight is model.table.weight


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (nn.Sequential(), "it has no table.weight"),
        (nn.ModuleDict({"table": nn.Embedding(5, 3), "more": nn.Linear(1, 1)}), "no more.bias"),
        (Tied(vocab=6), r"its table.weight is \(6, 3\), theirs \(5, 3\)"),
    ],
)
def test_other_models_are_refused(saved, model, said):
    before = [weight.clone() for weight in model.parameters()]
    with pytest.raises(ValueError, match=said):
        weights.load_weights("tied", model)
    assert all(map(torch.equal, before, model.parameters()))


def test_missing_weights_say_what_trains_them():
    with pytest.raises(FileNotFoundError, match="make results"):
        weights.load_weights("nothing of this name", Tied())
    assert not (results.FOLDER / "weights" / "nothing of this name.safetensors").exists()
