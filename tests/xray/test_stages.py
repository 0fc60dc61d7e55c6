"""What is recorded is what the model computed, and whose function computed it."""

import os

import pytest
import torch

from course_lib.checking.catalogue import load
from course_lib.data import store
from course_lib.data.characters import Characters
from course_lib.exercises import mine
from course_lib.files.workspace import Workspace
from course_lib.instruments import training
from course_lib.language_model import LanguageModel
from course_lib.positions import rotary
from course_lib.self_attention import scaled_dot_product_attention
from course_lib.transformer import EncoderBlock, Transformer
from course_lib.xray import with_norm, without_head, without_mask, xray
from course_lib.xray.owners import owner_of, source_of
from course_lib.xray.stages import record

TEXT = "To be, or not"


def owners(recording):
    """Return whose each stage is, by the name of the function."""
    codes = {stage.author.code for stage in recording.stages.values()}
    return {code.co_qualname: owner_of(code) for code in codes}


def lens_ends_in_the_prediction(recording):
    logits, lens = recording.logits, recording.lens
    best = logits.softmax(-1).topk(5)
    assert lens.tokens[-1] == best.indices.tolist()
    torch.testing.assert_close(lens.probabilities[-1], best.values, rtol=1e-3, atol=1e-5)


def rows_sum_to_one(recording):
    for attention in recording.attentions:
        total = recording.stages[attention.key].value.sum(-1)
        torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_stages_of_a_transformer_recompute_its_output(norm, words):
    with training.seeded(0):
        model = Transformer(28, 2, 64, 4, 256, 9, norm=norm)
    recording = record(model, "problems", words)
    # one that stops at once shows no mask
    assert len(recording.outline.expected) > 1
    source = torch.tensor([words.index(letter) for letter in "problems"])
    read = torch.tensor([26, *recording.outline.expected[:-1]])
    logits = model(source, read)
    torch.testing.assert_close(recording.logits, logits)
    rows_sum_to_one(recording)
    lens_ends_in_the_prediction(recording)
    # the next stage can be computed from the one before
    stages = recording.stages
    last = "sum" if norm == "pre" else "norm"
    states = model.decoder.last_norm(stages[f"decoder/1/feed_forward/{last}"].value)
    torch.testing.assert_close(model.output(states), logits)
    weights, values = (stages[f"decoder/0/attention/{x}"].value for x in ("weights", "values"))
    torch.testing.assert_close(weights @ values, stages["decoder/0/attention/heads"].value)
    labels = [panel.label for panel in recording.columns[1].blocks[0]]
    before, after = (["norm"], ["add"]) if norm == "pre" else ([], ["add & norm"])
    parts = ("masked self-attention", "cross-attention", "feed-forward")
    assert labels == [label for part in parts for label in (*before, part, *after)]


def test_the_hidden_layer_is_what_the_relu_returned(transformer, words):
    stages = record(transformer, "abc", words).stages
    read = stages["encoder/0/feed_forward/norm"].value
    network = transformer.encoder.blocks[0].feed_forward.sublayer
    hidden = torch.relu(read @ network.w_1 + network.b_1)
    torch.testing.assert_close(stages["encoder/0/feed_forward/hidden"].value, hidden)


def test_weights_are_those_of_the_rule_whatever_it_is(words):
    def flat(q, k, v, mask=None):
        return scaled_dot_product_attention(0.1 * q, k, v, mask)

    model = LanguageModel(28, 1, 8, 2, 16, 9)
    layer = model.blocks[0].attention.sublayer.attention
    usual = record(model, "abcd", words).stages["model/0/attention/weights"].value
    layer.rule = flat
    recording = record(model, "abcd", words)
    rows_sum_to_one(recording)
    assert not torch.allclose(recording.stages["model/0/attention/weights"].value, usual)
    # a rule that is no average of its values has no weights to show
    layer.rule = lambda q, k, v, mask=None: torch.relu(v)
    assert record(model, "abcd", words).attentions == []


def test_a_model_is_left_as_it_was(transformer, words):
    layer = transformer.encoder.blocks[0].attention.sublayer.attention
    before = layer.rule, transformer.training
    xray(transformer, "abc", words=words, beside=without_mask(transformer))
    assert (layer.rule, transformer.training) == before


def test_a_language_model_reads_characters():
    known = Characters(TEXT)
    model = LanguageModel(len(known), 2, 16, 4, 32, 64)
    recording = record(model, TEXT, known)
    torch.testing.assert_close(recording.logits, model(known.encode(TEXT)))
    lens_ends_in_the_prediction(recording)
    assert recording.columns[0].tokens[:4] == ["T", "o", "▁", "b"]


def test_yours_are_the_parts_that_came_by_mine_and_no_others(tmp_path, monkeypatch, words):
    source = """
import torch
from torch import nn
from course_lib.add_norm import PostNorm, PreNorm, layer_norm
from course_lib.feed_forward import FeedForward
from course_lib.multi_head import MultiHeadAttention


class AsSelfAttention(nn.Module):
    \"\"\"Let tokens attend to each other: query, key and value are all x.

    `attention` is the module itself, such as a `MultiHeadAttention`.
    \"\"\"

    def __init__(self, attention: nn.Module):
        super().__init__()
        self.attention = attention

    def forward(
        self,
        x: Float[Tensor, "*batch n d_model"],
        mask: Bool[Tensor, "*#batch #n #n"] | None = None,
    ) -> Float[Tensor, "*batch n d_model"]:
        \"\"\"Attend, where `mask` is True.\"\"\"
        return self.attention(x, x, x, mask)


def my_norm(x, gain, bias):
    return layer_norm(x, gain, bias) * 1


class EncoderBlock(nn.Module):
    def __init__(self, d_model, heads, d_ff, norm="post"):
        super().__init__()
        add = {"post": PostNorm, "pre": PreNorm}[norm]
        attention = AsSelfAttention(MultiHeadAttention(d_model, heads))
        self.attention = add(attention, d_model, my_norm)
        self.feed_forward = add(FeedForward(d_model, d_ff), d_model, my_norm)

    def forward(self, x, mask=None):
        return self.feed_forward(self.attention(x, mask))
""".replace(
        "import torch\n",
        "import torch\nfrom jaxtyping import Bool, Float\nfrom torch import Tensor\n",
    )
    Workspace.make(tmp_path).keep("encoder/block", source)
    monkeypatch.chdir(tmp_path)
    model = LanguageModel(28, 2, 8, 2, 16, 9, block=mine("encoder/block"))
    found = owners(record(model, "abc", words))
    assert found["my_norm"] == "yours"
    assert {name for name, owner in found.items() if owner == "yours"} == {"my_norm"}
    # a class that the lesson gave, and that came along in the answer, is not the learner's
    calls = record(model, "abc", words).stages["model/0/attention/queries"]
    codes = {type(part).__name__: type(part).forward.__code__ for part in model.modules()}
    assert owner_of(codes["AsSelfAttention"]) == "the course's"
    assert owner_of(codes["EncoderBlock"]) == "yours"
    assert owner_of(calls.author.code) == "the course's"


def test_without_answers_nothing_is_yours(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    model = LanguageModel(28, 2, 8, 2, 16, 9, block=mine("encoder/block"))
    assert load("encoder/block").reference is EncoderBlock
    recording = record(model, "abc", words)
    assert set(owners(recording).values()) == {"the course's"}
    # and an exercise's solution is not to be read in it: steps and docstrings are
    for stage in recording.stages.values():
        outline = source_of(stage.author.code)
        assert outline.endswith("...")
        assert "return" not in outline.replace("Return", "")
    assert os.getcwd() == str(tmp_path)


def test_a_function_of_a_notebook_is_the_notebooks(words):
    def my_rule(q, k, v, mask=None):
        return 1 * scaled_dot_product_attention(q, k, v, mask)

    model = LanguageModel(28, 1, 8, 2, 16, 9)
    model.blocks[0].attention.sublayer.attention.rule = my_rule
    found = owners(record(model, "abc", words))
    name = next(name for name in found if name.endswith("my_rule"))
    assert found[name] == "this notebook's"


def test_a_version_without_its_mask_sees_the_future(transformer, words):
    leaky = record(without_mask(transformer), "abcd", words, target="abcd")
    future = leaky.stages["decoder/0/attention/weights"].value.triu(1)
    assert future.sum() > 1
    kept = record(transformer, "abcd", words, target="abcd").stages["decoder/0/attention/weights"]
    assert kept.value.triu(1).sum() == 0


def test_a_head_that_is_off_adds_nothing(transformer, words):
    layer = "decoder.blocks.1.cross_attention"
    recording = record(without_head(transformer, layer, 2), "abcd", words, target="abcd")
    found = recording.stages["decoder/1/cross_attention/heads"].value
    assert found[2].abs().sum() == 0
    assert all(found[head].abs().sum() > 0 for head in (0, 1, 3))
    with pytest.raises(ValueError, match="no attention is called 'decoder'"):
        without_head(transformer, "decoder", 0)
    with pytest.raises(ValueError, match="head counts from 0 to 3"):
        without_head(transformer, layer, 4)


def test_norms_move_and_their_parameters_stay(transformer, words):
    post = with_norm(transformer, "post")
    assert set(map(id, post.parameters())) == set(map(id, transformer.parameters()))
    labels = [panel.label for panel in record(post, "abc", words).columns[0].blocks[0]]
    assert labels == ["self-attention", "add & norm", "feed-forward", "add & norm"]
    with pytest.raises(ValueError, match="norm must be"):
        with_norm(transformer, "last")


@pytest.mark.parametrize("sentence", ["", "   ", None])
def test_no_sentence_is_refused_in_one_sentence(transformer, words, sentence):
    with pytest.raises(ValueError, match="needs a sentence to send through the model"):
        xray(transformer, sentence, words=words)


def test_a_sentence_that_cannot_be_read_is_refused_in_one_sentence(transformer, words):
    with pytest.raises(ValueError, match="from 1 to 64 tokens, and this one has 65"):
        xray(transformer, 65 * "a", words=words)
    with pytest.raises(ValueError, match="'Tea' is not among the 28 tokens"):
        xray(transformer, "Tea time", words=words)
    with pytest.raises(ValueError, match="give `words`"):
        xray(transformer, "abc")
    with pytest.raises(ValueError, match='call one of `words` "start"'):
        xray(transformer, "abc", words=words[:26])


def test_a_model_of_other_blocks_is_refused_in_one_sentence(words):
    with pytest.raises(TypeError, match=r"but not Linear: is it made of other blocks\?"):
        xray(torch.nn.Linear(2, 2), "abc", words=words)


@pytest.mark.skipif(not store.is_fetched("smollm2"), reason="needs smollm2: `course fetch smollm2`")
def test_smollm2_fits_into_its_page():
    from course_lib.pretrained import smollm2

    model = smollm2.load()
    text = "The capital of France is Paris, and the capital of Italy"
    recording = record(model, text)
    tokens = torch.tensor(model.tokenizer.encode(text).ids)
    assert len(tokens) == 12
    torch.testing.assert_close(recording.logits, model(tokens), rtol=1e-3, atol=1e-3)
    rows_sum_to_one(recording)
    lens_ends_in_the_prediction(recording)
    page = xray(model, text)
    assert len(page.data().encode()) < 1_000_000
    assert len(recording.attentions) == 30
    turned = recording.stages["model/3/attention/turned queries"]
    plain = recording.stages["model/3/attention/queries"].value
    assert turned.author.code.co_name == "rotary"
    torch.testing.assert_close(turned.value, rotary(plain, torch.arange(12), smollm2.BASE))


@pytest.mark.skipif(not store.is_fetched("marian"), reason="needs marian: `course fetch marian`")
def test_the_translators_alignment_is_its_own():
    from course_lib.pretrained import marian

    model = marian.load()
    source = "The black cat sleeps."
    recording = record(model, source)
    [aligned] = [one for one in recording.attentions if one.aligns]
    theirs = model.alignment(source, model.translate(source))
    torch.testing.assert_close(recording.stages[aligned.key].value[0], theirs)
    lens_ends_in_the_prediction(recording)


@pytest.mark.skipif(not store.is_fetched("minilm"), reason="needs minilm: `course fetch minilm`")
def test_minilm_ends_in_the_vector_of_its_sentence():
    from course_lib.pretrained import minilm

    model = minilm.load()
    recording = record(model, "The bells ring.")
    vector = recording.stages["model/after/mean"].value
    embedded = model.embed(["The bells ring."])
    torch.testing.assert_close(torch.nn.functional.normalize(vector, dim=-1), embedded)
    assert recording.logits is None
    assert recording.lens is None


def test_without_a_mask_the_weights_are_the_first_thing_to_change(transformer, words):
    page = xray(transformer, "abcd", words=words, target="abcd", beside=without_mask(transformer))
    changed = [stage for stage, change in page.changes.items() if change]
    assert changed[0] == "decoder/0/attention/weights"
    assert not any(stage.startswith("encoder") for stage in changed)


def test_fewer_columns_make_a_smaller_page(transformer, words):
    pages = [xray(transformer, "abcd", words=words, columns=columns) for columns in (8, 64)]
    assert len(pages[0].data()) < len(pages[1].data())
    assert pages[0].lens() == pages[1].lens()
    assert len(pages[0].lens()) == 3
