"""SmolLM2 writes the same with a cache as without, and as well as its four bits allow."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.nn import functional as F

from course_lib.assistant import constrained
from course_lib.data import store
from course_lib.pretrained import smollm2
from course_lib.pretrained.quantised import BYTES, as_q4_1, q4_1, q8_0, step, unrounded
from course_lib.real_models import KeyValueCache, grouped_query_attention
from course_lib.transformer import EncoderBlock

gguf = pytest.importorskip("gguf")
pytestmark = pytest.mark.skipif(
    not store.is_fetched("smollm2"), reason="needs smollm2: run `course fetch smollm2`"
)
OPENING = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife. However little known the feelings or views of such a man may be on "
    "his first entering a neighbourhood, this truth is so well fixed in the minds of the "
    "surrounding families."
)


@pytest.fixture(scope="module")
def model():
    return smollm2.load()


def test_it_goes_on_the_same_with_a_cache_as_without_token_for_token(model):
    texts = ["The capital of France is", "Once upon a time"]
    for text in texts:
        assert list(model.write(text, 8)) == list(model.write(text, 8, cache=False))
    assert "".join(model.write(texts[0], 1)) == " Paris"


def test_its_perplexity_is_the_known_one(model):
    tokens = torch.tensor(model.tokenizer.encode(OPENING).ids)
    loss = F.cross_entropy(model(tokens)[:-1], tokens[1:])
    assert round(loss.exp().item(), 1) == 38.6


def test_a_text_that_grows_and_loses_its_end_is_scored_like_one_read_at_once(model):
    tokens = model.tokenizer.encode(OPENING).ids[:12]
    score = model.scoring()
    score(tokens[:6], 1)
    # two tokens that are not the text's, and are taken back
    score([*tokens[:6], 5, 6], 3)
    found = score(tokens[:9], 3)
    whole = model(torch.tensor(tokens[:9]))[-3:]
    assert torch.allclose(found, whole, atol=1e-3)


def loss(model, text):
    tokens = torch.tensor(model.tokenizer.encode(text).ids)
    return F.cross_entropy(model(tokens)[:-1], tokens[1:]).item()


def test_queries_and_keys_in_the_files_order_cost_half_a_nat_and_one_prompt_hides_it(model):
    wrong = smollm2.load(reorder=lambda weight, heads: weight)
    assert loss(wrong, OPENING) > loss(model, OPENING) + 0.3
    assert "".join(wrong.write("The capital of France is", 1)) == " Paris"


def leaking(q, k, v, mask=None):
    return grouped_query_attention(q, k, v)


def test_without_its_mask_the_loss_is_halved_and_the_writing_is_lost_and_a_cache_cures_it(model):
    leaky = smollm2.around(model.state_dict(), model.tokenizer, rule=leaking)
    opening = "The capital of France is"
    assert loss(leaky, OPENING) < 0.5 * loss(model, OPENING)
    assert "Paris" not in "".join(leaky.write(opening, 10, cache=False))
    tokens, score = model.tokenizer.encode(opening).ids, leaky.scoring()
    for count in range(1, len(tokens)):
        score(tokens[:count], 1)
    for _ in range(10):
        tokens.append(int(score(tokens, 1)[-1].argmax()))
    assert model.tokenizer.decode(tokens) == opening + "".join(model.write(opening, 10))


def test_a_bare_question_ends_and_what_comes_behind_the_end_is_an_answer(model):
    tokens = model.tokenizer.encode("Why is the sky blue?").ids
    assert int(model(torch.tensor(tokens))[-1].argmax()) == smollm2.STOP
    for _ in range(22):
        tokens.append(int(model(torch.tensor(tokens))[-1].argmax()))
    written = model.tokenizer.decode(tokens, skip_special_tokens=False)
    assert "<|im_end|>\n<|im_start|>assistant\nThe sky appears blue" in written


@pytest.mark.parametrize("text", ["naïve café, 1234", "日本語 😀", "  two  spaces\n\ttab"])
def test_every_text_comes_back_from_its_tokens(model, text):
    assert model.tokenizer.decode(model.tokenizer.encode(text).ids) == text


def test_a_text_without_words_or_without_room_is_refused(model):
    with pytest.raises(ValueError, match="this one has 0 already"):
        next(model.write("", 5))
    with pytest.raises(ValueError, match="from 1 to 8192 tokens"):
        next(model.write("word", 8192))
    with pytest.raises(ValueError, match="at most 8192 tokens, but got 8193"):
        model(torch.zeros(8193, dtype=torch.long))


@pytest.mark.parametrize(("kind", "ours"), [("Q4_1", q4_1), ("Q8_0", q8_0)])
def test_blocks_become_the_numbers_that_ggml_says(kind, ours):
    generator = torch.Generator().manual_seed(0)
    blocks = torch.randint(0, 256, (50, BYTES[kind]), generator=generator, dtype=torch.uint8)
    # an exponent of ones would make the scale infinite
    blocks[:, [1, 3] if kind == "Q4_1" else [1]] &= 0x3F
    theirs = gguf.dequantize(blocks.numpy(), gguf.GGMLQuantizationType[kind])
    assert torch.equal(ours(blocks), torch.from_numpy(theirs))


def test_what_was_read_from_four_bits_is_written_without_loss_and_other_weights_by_half_a_step():
    weight = torch.randn(6, 64, generator=torch.Generator().manual_seed(0))
    once = as_q4_1(weight)
    torch.testing.assert_close(as_q4_1(once), once)
    far = ((once - weight).abs() / step(weight)).reshape(-1, 32).amax(1)
    assert (far < 0.51 + 1e-3).all()
    assert (far > 0.3).all()
    equal = torch.full((1, 32), 0.25)
    assert torch.equal(as_q4_1(equal), equal)


def test_what_is_unrounded_lies_anywhere_within_half_a_step():
    weight = as_q4_1(torch.randn(6, 64, generator=torch.Generator().manual_seed(0)))
    moved = (unrounded(weight, torch.Generator().manual_seed(1)) - weight) / step(weight)
    assert moved.abs().max() <= 0.5 + 1e-3
    assert moved.std() > 0.25


def test_exactly_is_what_writing_would_say(model):
    prompt = smollm2.turns("What is the capital of France?", system=None)
    said = "".join(model.write(prompt, 20))
    pairs = [(prompt, said), (prompt, said + " It is"), (prompt, said[:-1]), (prompt, "Paris")]
    assert smollm2.exactly(model, pairs) == [True, False, False, False]


def test_exactly_among_possible_answers_is_what_constrained_writes(model):
    prompt = smollm2.turns("What is the capital of France?", system=None)
    possible = ["Lyon", "Paris is a town.", "Paris.", "Rome, or Paris."]
    allowed = [[*model.tokenizer.encode(text).ids, smollm2.STOP] for text in possible]
    written = constrained(model.scoring(), model.tokenizer.encode(prompt).ids, allowed)
    found = smollm2.exactly(model, [(prompt, text) for text in possible], possible)
    assert found == [answer == written for answer in allowed]


def test_a_block_of_ones_own_stands_in_the_stack(model):
    class Block(EncoderBlock):
        pass

    twin = smollm2.SmolLM2(model.tokenizer, block=Block)
    twin.load_state_dict(model.state_dict(), assign=True)
    assert all(type(block) is Block for block in twin.blocks)
    tokens = torch.tensor([3, 1, 4, 1, 5])
    torch.testing.assert_close(twin(tokens), model(tokens))


def test_two_texts_may_be_written_in_turn(model):
    texts = ["The capital of France is", "Once upon a time"]
    both = list(zip(*(model.write(text, 4) for text in texts), strict=True))
    alone = [list(model.write(text, 4)) for text in texts]
    assert [list(pieces) for pieces in zip(*both, strict=True)] == alone


def test_a_cache_of_ones_own_is_asked(model):
    built = []

    class Cache(KeyValueCache):
        def __init__(self, attention):
            super().__init__(attention)
            built.append(self)

    twin = smollm2.SmolLM2(model.tokenizer, cache=Cache)
    twin.load_state_dict(model.state_dict(), assign=True)
    assert "".join(twin.write("The capital of France is", 1)) == " Paris"
    assert len(built) == smollm2.LAYERS


def test_a_conversation_has_its_prompt_then_its_answer_then_stop_then_padding():
    tokenizer = Tokenizer(
        models.WordLevel({"ask": 5, "much": 6, "yes": 7, "no": 8}, unk_token="no")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    rows, asked, lengths = smollm2.conversations(tokenizer, [("ask much", "yes"), ("ask", "no")])
    assert rows.tolist() == [[5, 6, 7, smollm2.STOP], [5, 8, smollm2.STOP, 0]]
    assert (asked.tolist(), lengths.tolist()) == ([2, 1], [4, 3])


def test_turns_say_who_speaks_and_leave_the_last_turn_to_the_assistant():
    talk = smollm2.turns("B?", system=None, before=[("A?", "a")])
    said = [("user", "A?"), ("assistant", "a"), ("user", "B?")]
    text = "".join(f"<|im_start|>{who}\n{what}<|im_end|>\n" for who, what in said)
    assert talk == f"{text}<|im_start|>assistant\n"
    assert smollm2.turns("B?").startswith(f"<|im_start|>system\n{smollm2.SYSTEM}<|im_end|>\n")


def test_a_model_around_weights_has_no_others(model):
    shared = smollm2.around(model.state_dict(), model.tokenizer)
    assert shared.words.weight.data_ptr() == model.words.weight.data_ptr()


def test_a_talk_goes_on_from_what_was_said(model, capsys):
    talk = smollm2.chat(model, "What is the capital of France?")
    talk = smollm2.chat(model, "And of Italy?", talk)
    assert [said for said, _ in talk] == ["What is the capital of France?", "And of Italy?"]
    assert "Rome" in talk[1][1]
    assert "you:   And of Italy?\nmodel: " + talk[1][1] + "\n" in capsys.readouterr().out
