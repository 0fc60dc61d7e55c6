"""The long pages of 12_documents: nobody sees what is to be written."""

import math

import pytest
import torch

from course_lib.data import home_assistant, store
from course_lib.instruments import results
from research.experiments import documents
from research.experiments.documents import LENGTHS, MODELS, MOST, Place, examine, predict

DECODERS = [name for name in MODELS if name != "encoder-decoder"]

strings = pytest.mark.skipif(
    not store.is_fetched("homeassistant"),
    reason="needs Home Assistant's texts: run `course fetch homeassistant`",
)


def tokens(rows, length):
    return torch.randint(3, documents.VOCAB, (rows, length))


@pytest.mark.parametrize("name", MODELS)
def test_no_token_is_predicted_from_itself_or_a_later_one(name):
    torch.manual_seed(0)
    model, source, target = MODELS[name](40).eval(), tokens(1, 40), tokens(1, 6)
    before, asked = predict(model, source, target)
    changed = target.clone()
    changed[0, 3] = 3
    after, _ = predict(model, source, changed)
    assert asked[0, -6:].equal(target[0])
    # the last six logits predict the text: the fourth of them has read three tokens of it
    torch.testing.assert_close(after[0, :-2], before[0, :-2])
    assert not torch.allclose(after[0, -2:], before[0, -2:])


@pytest.mark.parametrize("name", MODELS)
def test_the_whole_input_is_read(name):
    torch.manual_seed(0)
    model, source, target = MODELS[name](40), tokens(1, 40), tokens(1, 6)
    reader = model if name in DECODERS else model.encoder
    (table,) = getattr(reader.embedding, "embedding", reader.embedding).parameters()
    predict(model, source, target)[0][0, -1].square().sum().backward()
    assert table.grad[source[0]].abs().sum(-1).gt(0).all()


def test_the_control_is_trained_on_the_text_alone():
    source, target = tokens(2, 40), tokens(2, 6)
    asked = {
        name: predict(MODELS[name](40), source, target)[1] != documents.PAD for name in DECODERS
    }
    assert [each.sum().item() for each in asked.values()] == [2 * 45, 2 * 6]
    assert asked["decoder, text alone"][:, -6:].all()


def test_equal_logits_cost_the_logarithm_of_the_vocabulary(monkeypatch):
    places = [Place([*range(3, 100)], 40, 40 + n) for n in (1, 5, MOST)]
    for name, make in MODELS.items():
        model = make(LENGTHS[0]).eval()
        for parameter in model.parameters():
            torch.nn.init.zeros_(parameter)
        found = examine(model, places, LENGTHS[0])
        assert found == pytest.approx(math.log(documents.VOCAB), abs=1e-3), name


@strings
def test_a_tested_text_and_its_document_were_never_learned_from():
    learned, held_out = documents.documents()
    seen = {home_assistant.normalised(text) for texts in learned for text in texts}
    texts = [home_assistant.normalised(documents.written(place)) for place in documents.tested()]
    assert len(texts) == len(set(texts)) == documents.TESTED
    assert seen.isdisjoint(texts)
    assert {home_assistant.normalised(text) for texts in held_out for text in texts}.issuperset(
        texts
    )
    assert all(place.start >= documents.FURTHEST for place in documents.tested())


@strings
def test_the_input_is_what_stands_right_before_the_text():
    place = documents.tested()[0]
    source, target = documents.stack([place], 16)
    together = torch.cat([source, target], dim=1)[0].tolist()
    assert together == place.document[place.start - 16 : place.end]
    assert target[0, -1] == documents.STOP
    assert documents.page(place, 16)[-1] == documents.written(place)


@strings
def test_counting_takes_half_of_what_the_input_says(monkeypatch):
    counts = documents.counted()
    text = [5, 6, 7, 5, 6]
    place = Place(text, 3, 5)
    monkeypatch.setattr(documents, "tested", lambda: [place])
    known = counts.probabilities(torch.tensor(text))
    # what follows 7 is not known from the input; 6 is what followed 5 there
    shares = known[2, 5], (known[3, 6] + 1) / 2
    expected = -sum(share.log().item() for share in shares) / 2
    assert documents.counting(3) == pytest.approx(expected, abs=1e-4)


@strings
def test_all_models_and_lengths_learn_from_the_same_texts():
    short, long = (next(documents.batches(length, 0)) for length in (16, 64))
    assert short[1].equal(long[1])
    assert short[0].equal(long[0][:, -16:])


def test_a_run_that_was_ended_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "UNFINISHED", tmp_path)
    monkeypatch.setattr(documents, "losses_by_rate", lambda name: {"0.001": 2.0, "0.01": 1.0})
    monkeypatch.setattr(documents, "operations", lambda name, length: 1)
    monkeypatch.setattr(documents, "counting", lambda length: 1.0)
    for name in ("documents", "learning", "tested", "page"):
        monkeypatch.setattr(documents, name, lambda *_: [[]] * 5)
    trained = []

    def ended(name, length, seed, rate):
        if len(trained) == 7:
            trained.append(None)
            raise KeyboardInterrupt
        trained.append((name, length, seed))
        return {"name": name, "length": length, "seed": seed, "rate": rate, "loss": 1.0}

    monkeypatch.setattr(documents, "run", ended)
    with pytest.raises(KeyboardInterrupt):
        documents.measure()
    figures = documents.measure()
    done = [one for one in trained if one]
    assert len(done) == len(set(done)) == len(MODELS) * len(LENGTHS) * 3
    assert {row["rate"] for row in figures["rows"]} == {0.01}
    assert len(documents.table(figures)) == 1 + len(MODELS) * 3 + 1 + 1
