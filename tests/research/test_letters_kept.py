"""A probe names the letters that a vector holds, and no others."""

import pytest
import torch
from torch.nn import functional as F

from research.experiments import letters_kept


def test_a_probe_names_the_letters_that_a_vector_holds_and_no_others(monkeypatch):
    monkeypatch.setattr(letters_kept, "LEARN", 1500)
    monkeypatch.setattr(letters_kept, "EPOCHS", 60)
    generator = torch.Generator().manual_seed(0)
    targets = [torch.randint(26, (n, 3), generator=generator) for n in (1500, 200, 400)]
    # what is handed on holds the first and the last of three letters
    inputs = [F.one_hot(x[:, [0, 2]], 26).flatten(1).float() for x in targets]
    for make in (letters_kept._linear, letters_kept._hidden):
        first, middle, last = letters_kept.named(make, inputs, targets).tolist()
        assert min(first, last) > 0.9
        assert middle < 0.15


def test_words_to_test_share_no_piece_with_words_to_learn_from(monkeypatch):
    known = [("".join(chr(97 + (i // 26**k) % 26) for k in range(7)), ()) for i in range(200)]
    monkeypatch.setattr(letters_kept.spelling, "pairs", lambda: known)
    parts = letters_kept.words(5, seed=0)
    pieces = [{word[i : i + 7] for word in part for i in range(0, 35, 7)} for part in parts]
    assert pieces[0].isdisjoint(pieces[1] | pieces[2])
    assert pieces[1].isdisjoint(pieces[2])


@pytest.mark.parametrize(("kept", "least", "most"), [(slice(0, 35), 1, 1), (slice(0, 14), 0, 0.1)])
def test_the_middle_is_found_where_the_vector_depends_on_it(monkeypatch, kept, least, most):
    known = [("".join(chr(97 + (i // 26**k) % 26) for k in range(7)), ()) for i in range(9000)]
    monkeypatch.setattr(letters_kept.spelling, "pairs", lambda: known)

    def contexts(_, some):
        return F.one_hot(letters_kept.letters(some)[:, kept], 26).flatten(1).float()

    monkeypatch.setattr(letters_kept, "contexts", contexts)
    share = letters_kept.found(None, seed=0)["0.1"]
    assert least <= share <= most
