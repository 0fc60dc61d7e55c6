"""The six translators of lesson 12: equal operations, counted right; an ended run goes on."""

from itertools import islice

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.data import spelling, store
from course_lib.instruments import results
from course_lib.transformer import Transformer
from research.experiments import architectures
from research.experiments.architectures import MODELS, batches, loss, steps_within, work

LETTERS, SOUNDS = 9, 8  # of one word, without the START that is only read
VOCAB = max(len(spelling.LETTERS), len(spelling.SOUNDS))


dictionary = pytest.mark.skipif(
    not store.is_fetched("cmudict"), reason="needs CMUdict: run `course fetch cmudict`"
)


def counted_by_hand():
    """Multiply-adds of a forward pass for each architecture, without a mixture's router."""
    for d, name in ((64, "Transformer, small"), (128, "Transformer, big")):
        network, meeting = 2 * d * 4 * d, 2 * d  # scores and averages, for each pair
        encoder = LETTERS * (4 * d * d + network + LETTERS * meeting)
        looking_back = SOUNDS * (4 * d * d + SOUNDS * meeting)
        across = SOUNDS * (2 * d * d + LETTERS * meeting) + LETTERS * 2 * d * d
        decoder = looking_back + across + SOUNDS * network
        yield name, 2 * (encoder + decoder) + SOUNDS * d * VOCAB
    d = 64
    window = 3 * d * 2 * d
    across = SOUNDS * (2 * d * d + LETTERS * 2 * d) + LETTERS * 2 * d * d
    yield "convolutions", 3 * ((LETTERS + SOUNDS) * window + across) + SOUNDS * d * VOCAB
    # two readers of 64 hidden numbers each, a writer of 128
    encoder, decoder = 2 * (64 + 64) * 3 * 64, (64 + 128) * 3 * 128
    plain = LETTERS * encoder + SOUNDS * (decoder + 128 * len(spelling.SOUNDS))
    yield "GRU", plain
    more = SOUNDS * (LETTERS * 2 * 128 + 128 * len(spelling.SOUNDS))
    yield "GRU with attention", plain + more


@pytest.mark.parametrize(("name", "products"), [*counted_by_hand()])
def test_the_work_of_a_step_is_what_is_counted_by_hand(name, products):
    # two operations for a product, and the backward pass has two products for each
    by_hand = 3 * 2 * products
    if name.startswith("GRU"):
        # the first state of each reader is fixed, so it takes no gradient
        by_hand -= 2 * 2 * 64 * 3 * 64
    assert work(name, LETTERS, SOUNDS + 1) == by_hand


def test_a_mixture_has_the_work_of_the_small_transformer_but_for_its_router():
    names = ("Transformer, small", "mixture of experts")
    small, mixed = (work(name, LETTERS, SOUNDS + 1) for name in names)
    assert 1 < mixed / small < 1.03


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_takes_the_work_of_its_words(name):
    source, target = torch.randint(3, 20, (5, LETTERS)), torch.randint(3, 20, (5, SOUNDS + 1))
    with FlopCounterMode(display=False) as counter:
        loss(MODELS[name](), (source, target)).backward()
    assert counter.get_total_flops() == pytest.approx(5 * work(name, LETTERS, SOUNDS + 1), rel=1e-4)


@dictionary
def test_the_budget_is_spent_but_for_less_than_a_step():
    steps, spent = steps_within("GRU", 3e9, batches(0))
    source, target = next(islice(batches(0), steps, None))
    assert spent <= 3e9 < spent + len(source) * work("GRU", source.shape[1], target.shape[1])


@pytest.mark.parametrize("name", MODELS)
def test_every_model_answers_for_every_word(name, monkeypatch):
    pairs = [("cat", ("K", "AE1", "T")), ("tomato", ("T",)), ("tomato", ("T", "AH0"))]
    monkeypatch.setattr(architectures, "words", lambda: (pairs, pairs))
    monkeypatch.setattr(spelling, "LONGEST", 10)
    assert architectures.examine(MODELS[name]()).keys() == {"right", "bleu"}


def test_any_pronunciation_is_right(monkeypatch):
    cat = ("K", "AE1", "T", "S")
    pairs = [("cats", cat), ("eight", ("EY1", "T", "S", "T")), ("eight", ("T", "T", "T", "T"))]
    monkeypatch.setattr(architectures, "words", lambda: ([], pairs))
    monkeypatch.setattr(architectures, "say", lambda _, asked: [list(cat), ["T"] * 4])
    found = architectures.examine(Transformer(4, 1, 4, 1, 4, 4))
    assert found["right"] == 1
    assert 0 <= found["bleu"] < 100
    monkeypatch.setattr(architectures, "say", lambda _, asked: [list(cat), list(pairs[1][1])])
    assert architectures.examine(Transformer(4, 1, 4, 1, 4, 4)) == {"right": 1, "bleu": 100}


@dictionary
def test_a_run_that_was_ended_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "UNFINISHED", tmp_path)
    monkeypatch.setattr(architectures, "MODELS", {"GRU": MODELS["GRU"]})
    monkeypatch.setattr(architectures, "BUDGET", 8e9)
    monkeypatch.setattr(architectures, "RATES", (0.001, 0.01))
    monkeypatch.setattr(architectures, "losses_by_rate", lambda name: {"0.001": 2.0, "0.01": 1.0})
    monkeypatch.setattr(architectures, "examine", lambda model: {"right": 0.5, "bleu": 20.0})
    trained, train = [], architectures.train

    def ended(name, share, seed, rate):
        if len(trained) == 5:
            trained.append(None)
            raise KeyboardInterrupt
        trained.append((share, seed))
        return train(name, share, seed, rate)

    monkeypatch.setattr(architectures, "train", ended)
    with pytest.raises(KeyboardInterrupt):
        architectures.measure()
    trained.append(None)
    figures = architectures.measure()
    done = [one for one in trained if one]
    assert len(done) == len(set(done)) == 12
    assert [(row["share"], row["seed"]) for row in figures["rows"]] == done
    assert {row["rate"] for row in figures["rows"]} == {0.01}
    assert all(0 < row["flops"] <= row["share"] * 8e9 for row in figures["rows"])
    assert len(architectures.table(figures)) == 1 + 3 + 1
