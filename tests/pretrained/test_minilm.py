"""MiniLM knows which sentences mean the same, and which it cannot describe."""

import pytest
import torch
from safetensors.torch import load_file

from course_lib.data import store
from course_lib.pretrained import minilm
from course_lib.transformer import EncoderBlock

pytestmark = pytest.mark.skipif(
    not store.is_fetched("minilm"), reason="needs minilm: run `course fetch minilm`"
)
SENTENCES = [
    "A man is playing a guitar on stage.",
    "Someone performs music with a string instrument.",
    "The stock market fell sharply on Monday.",
]


@pytest.fixture(scope="module")
def model():
    return minilm.load()


def test_like_meanings_are_close_and_unlike_ones_are_not(model):
    vectors = model.embed(SENTENCES)
    cosines = vectors @ vectors.T
    torch.testing.assert_close(cosines.diagonal(), torch.ones(3))
    assert round(cosines[0, 1].item(), 3) == 0.574
    assert round(cosines[0, 2].item(), 2) == -0.09


def test_a_sentence_is_described_the_same_in_any_company(model):
    alone = torch.cat([model.embed([sentence]) for sentence in SENTENCES])
    torch.testing.assert_close(model.embed(SENTENCES), alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("attention.self.query.weight", "attention.sublayer.attention.w_q.weight"),
        ("attention.self.key.weight", "attention.sublayer.attention.w_k.weight"),
        ("attention.output.dense.weight", "attention.sublayer.attention.w_o.weight"),
        ("attention.output.LayerNorm.weight", "attention.gain"),
        ("intermediate.dense.weight", "feed_forward.sublayer.w_1"),
        ("output.dense.weight", "feed_forward.sublayer.w_2"),
    ],
)
def test_a_tensor_of_the_file_is_one_of_the_block_under_another_name(model, theirs, ours):
    file = load_file(store.unpacked("minilm", minilm.FOLDER + "model.safetensors"))
    read = file[f"encoder.layer.0.{theirs}"]
    read = read.T if "sublayer.w_" in ours else read
    assert torch.equal(read, model.state_dict()[f"blocks.0.{ours}"])
    assert sum("blocks.0." in name for name in model.state_dict()) == 16


@pytest.mark.parametrize(("sentence", "count"), [("", 0), ("  ", 0), ("word " * 511, 511)])
def test_a_sentence_that_is_empty_or_too_long_is_refused(model, sentence, count):
    with pytest.raises(ValueError, match=f"from 1 to 510 tokens, and .* has {count}"):
        model.embed([sentence])


def test_other_weights_than_the_models_own_are_refused(monkeypatch):
    load = minilm.load_file
    monkeypatch.setattr(minilm, "load_file", lambda file: load(file) | {"odd": torch.zeros(1)})
    with pytest.raises(ValueError, match="has a tensor that this model has not: odd"):
        minilm.load()


def test_too_little_memory_is_told_before_anything_is_loaded(monkeypatch):
    monkeypatch.setattr("course_lib.pretrained.loading.psutil.virtual_memory", lambda: Free())
    with pytest.raises(MemoryError, match=r"MiniLM needs 0\.5 GB of memory and 0\.1 GB are free"):
        minilm.load()


class Free:
    available = 1e8


def test_a_block_of_ones_own_stands_in_the_stack(model):
    class Block(EncoderBlock):
        pass

    twin = minilm.MiniLM(model.tokenizer, block=Block)
    twin.load_state_dict(model.state_dict(), assign=True)
    assert all(type(block) is Block for block in twin.blocks)
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    torch.testing.assert_close(twin(tokens), model(tokens))
