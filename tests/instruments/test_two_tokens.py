"""Keys and values as tokens of their own: what is asked for, and what counts as recalled."""

import torch
from torch import nn

from course_lib.instruments import two_tokens
from course_lib.instruments.associations import Attention
from course_lib.instruments.two_tokens import KEYS, QUESTIONS, VALUES, WRITES, N


class Knows(nn.Module):
    """Score the value that `choose` names of all that was written under the asked key."""

    def __init__(self, choose):
        super().__init__()
        self.choose = choose

    def forward(self, tokens):
        """Return one-hot scores for each question."""
        keys, values = tokens[:, : 2 * WRITES : 2], tokens[:, 1 : 2 * WRITES : 2] - KEYS
        named = [
            [self.choose(written[row == key]) for key in asked]
            for row, written, asked in zip(keys, values, tokens[:, 2 * WRITES :], strict=True)
        ]
        return nn.functional.one_hot(torch.tensor(named), VALUES).float()


def test_who_names_the_newest_value_recalls_all_and_who_names_the_oldest_few():
    assert two_tokens.recalled(Knows(lambda written: written[-1])) == 1
    assert two_tokens.recalled(Knows(lambda written: written[0])) < 0.2


def test_a_text_has_a_value_after_each_key_and_then_keys_alone():
    tokens, answers, again = next(two_tokens.texts(4, 0))
    assert tokens.shape == (4, N)
    assert answers.shape == again.shape == (4, QUESTIONS)
    written = tokens[:, : 2 * WRITES].view(4, WRITES, 2)
    assert (written[..., 0] < KEYS).all()
    assert (written[..., 1] >= KEYS).all()
    assert (tokens[:, 2 * WRITES :] < KEYS).all()


def test_a_question_does_not_see_the_next_one():
    model = two_tokens.Reader((Attention, Attention), 4)
    tokens, *_ = next(two_tokens.texts(2, 0))
    other = tokens.clone()
    other[:, -1] = (other[:, -1] + 1) % KEYS
    assert torch.equal(model(tokens)[:, :-1], model(other)[:, :-1])
