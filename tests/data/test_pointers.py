"""The pointer task: who wants whom, and how much of it a table of shares explains."""

import torch

from course_lib.data import pointers
from course_lib.self_attention import pointer_weights, project, scaled_dot_product_attention


def drawn(batch, names=8):
    return pointers.sentences(batch, names, generator=torch.Generator().manual_seed(0))


def test_a_token_must_return_the_number_of_the_token_that_it_wants():
    x, found = drawn(50, names=5)
    assert x.shape == (50, 5, 11)
    own, wanted = pointers.names_of(x)
    for sentence in range(50):
        for i in range(5):
            [j] = (own[sentence] == wanted[sentence, i]).nonzero().flatten().tolist()
            assert j != i
            assert found[sentence, i] == x[sentence, j, -1]


def test_a_token_that_wants_two_must_return_what_both_have_in_order():
    generator = torch.Generator().manual_seed(0)
    names, tokens, numbers = pointers.several(50, generator=generator)
    assert not names[..., -1].any()
    assert torch.equal(names[..., :-1], tokens[..., :-1])
    own, *wanted = (x.argmax(-1) for x in tokens[..., :-1].split(5, dim=-1))
    by_letters, letters = pointers.two_letters(50, generator=generator)
    cases = [(own, wanted, tokens[..., -1], numbers)]
    cases += [(by_letters[..., 0], by_letters[..., 2:].unbind(-1), by_letters[..., 1], letters)]
    for own, wanted, has, found in cases:
        assert not (wanted[0] == wanted[1]).any()
        for name, answer in zip(wanted, found.unbind(-1), strict=True):
            assert torch.equal(has.gather(-1, own.argsort(-1).gather(-1, name)), answer)


def test_coincidences_are_those_of_the_names():
    x, found = drawn(50)
    itself, wants, wanted_by, alike = pointers.coincidences(x)
    assert torch.equal(itself, torch.eye(8).bool().expand_as(itself))
    torch.testing.assert_close(wants.float() @ x[..., -1:], found)
    assert torch.equal(wanted_by, wants.mT)
    torch.testing.assert_close((wants.float() @ wants.float().mT) > 0, alike)


def test_shares_explain_what_a_regression_on_what_they_fetch_explains():
    x, found = drawn(40_000)
    wants = pointers.coincidences(x).wants
    generator = torch.Generator().manual_seed(1)
    shares = torch.softmax(torch.randn(wants.shape, generator=generator) + 2 * wants, -1)
    fetched = shares @ x[..., -1:]
    scale = (fetched * found).mean() / fetched.square().mean()
    left = (scale * fetched - found).square().mean() / found.square().mean()
    torch.testing.assert_close(pointers.explained(shares, wants), 1 - left, atol=0.01, rtol=0)
    torch.testing.assert_close(pointers.explained(wants.float(), wants), torch.tensor(1.0))


def test_the_weights_set_by_hand_solve_it():
    x, found = drawn(100)
    fetched = scaled_dot_product_attention(*project(x, *pointer_weights(8)))
    torch.testing.assert_close(fetched, found, atol=2e-3, rtol=0)
