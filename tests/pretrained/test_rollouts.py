"""Answers that SmolLM2 draws for lesson 18: groups, rewards, and states."""

import random

import pytest
import torch

from course_lib.data import store, verifiable
from course_lib.pretrained import rollouts, smollm2

needs_model = pytest.mark.skipif(
    not store.is_fetched("smollm2"), reason="needs smollm2: run `course fetch smollm2`"
)
QUESTIONS = verifiable.split(4, 0)[1]


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("gguf")
    return smollm2.load()


@needs_model
def test_answers_stand_beside_their_prompts_eight_to_a_question(model):
    some = rollouts.alike(model, QUESTIONS, random.Random(0))
    prompts, drawn, texts = rollouts.answers(model, some, torch.Generator().manual_seed(0))
    assert len(prompts) == len(drawn) == len(texts) == 16
    assert (prompts[0] == rollouts.encoded(model, some[0])).all()
    assert (prompts[15] == rollouts.encoded(model, some[1])).all()


@needs_model
def test_a_state_is_the_last_of_its_text_whatever_stands_beside_it(model):
    pairs = [("What is frozen water?", "Ice."), ("Who wrote Hamlet?", "It was Shakespeare.")]
    together = rollouts.last_states(model, pairs)
    alone = torch.cat([rollouts.last_states(model, [x]) for x in pairs])
    torch.testing.assert_close(together, alone, atol=1e-3, rtol=1e-3)
    longer = rollouts.last_states(model, [("Who wrote Hamlet?", "It was Shakespeare. He")])
    assert (longer - alone[1]).abs().max() > 0.1


def test_ways_stand_side_by_side_with_the_last_ones_answer():
    lines = [*rollouts.side_by_side(QUESTIONS[:1], before=[(0, "no")], after=[(7.0, "yes")])]
    assert lines[0].split()[:2] == ["before", "after"]
    assert lines[1].split()[:2] == ["0", "7"]
    assert lines[1].endswith("yes")
