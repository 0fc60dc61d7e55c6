"""A word's state depends on its line, and on nothing else where it may look only at itself."""

import pytest
import torch

from course_lib.data import store
from course_lib.instruments import results
from course_lib.pretrained import minilm
from course_lib.pretrained.word_senses import described, lean, neighbours, states, ways

pytestmark = pytest.mark.skipif(
    not store.is_fetched("minilm"), reason="needs minilm: run `course fetch minilm`"
)


@pytest.fixture(scope="module")
def model():
    return minilm.load()


def test_the_last_state_is_the_models_own(model):
    tokens, mask = model.tokens(["wear this ring"])
    with torch.no_grad():
        whole = model(tokens, mask)[0]
    torch.testing.assert_close(states(model, "wear this ring", "ring")[-1], whole[3])


def test_a_word_alone_does_not_see_its_line_but_its_place(model):
    one, two = (
        states(model, line, "ring", alone=True) for line in ("wear this ring", "a bell ring")
    )
    torch.testing.assert_close(one, two)
    seen = states(model, "wear this ring", "ring")
    assert not torch.allclose(one[-1], seen[-1], atol=0.1)
    torch.testing.assert_close(one[0], seen[0])


def test_a_sense_leans_to_itself(model):
    bells, jewels = (
        described(model, ["ring the bell"], "ring"),
        described(model, ["a ring"], "ring"),
    )
    assert (lean(jewels, bells, jewels) > 0).all()
    torch.testing.assert_close(lean(bells, bells, jewels), -lean(bells, jewels, bells))


def test_a_word_that_is_not_there_so_often_is_refused(model):
    with pytest.raises(ValueError, match=r"should have 'ring' 2 times.* has it 1 times"):
        states(model, "wear this ring", "ring", which=1)


def test_a_window_is_the_average_of_the_tokens_beside_a_word(model):
    [tokens], _ = model.tokens(["wear this ring for her sake"])
    beside = model.words(tokens[[1, 2, 4, 5]]).mean(0)
    torch.testing.assert_close(neighbours(model, "wear this ring for her sake", "ring"), beside)
    [tokens], _ = model.tokens(["a ring"])
    torch.testing.assert_close(neighbours(model, "a ring", "ring"), model.words(tokens[1]))


def test_an_average_has_one_vector_for_a_line_and_attention_one_for_each_ring(model):
    kept = results.load("senses")["figures"]["described"]["ring"]
    line, leans = (
        "she took off her ring before the ring of the telephone",
        ways(model, "ring", *kept),
    )
    assert leans["average of the line"](line, 0) == leans["average of the line"](line, 1)
    for name in ("attention", "two tokens on each side"):
        assert leans[name](line, 0) > leans[name](line, 1)


def test_a_wider_window_comes_near_to_attention_and_not_up_to_it(model):
    kept = results.load("senses")["figures"]
    senses = [
        torch.stack([neighbours(model, line, "ring", near=6) for line in lines]).mean(0)
        for lines in kept["described"]["ring"]
    ]
    sounds, jewels = (
        [lean(neighbours(model, line, "ring", near=6), *senses) for line in lines]
        for lines in kept["one sense"]["ring"]
    )
    in_order = sum(jewel > sound for sound in sounds for jewel in jewels)
    assert 30 <= in_order < len(sounds) * len(jewels)
