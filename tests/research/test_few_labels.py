"""The labels of lesson 16: what chooses is not what learns, and counts do not score themselves."""

import pytest
import torch

from course_lib.corpus import NGrams, encode
from course_lib.data import plays, store
from research.experiments import few_labels

fetched = pytest.mark.skipif(
    not store.is_fetched("shakespeare"), reason="needs Shakespeare: run `course fetch shakespeare`"
)


@fetched
def test_what_chooses_is_not_learned_from_and_nothing_tested_was_read():
    learned, choosing = few_labels.split(0)
    assert len(learned) == max(few_labels.LABELS)
    assert len(choosing) == few_labels.CHOOSING
    words = [tuple(sorted(example.words)) for example in learned]
    assert not {tuple(sorted(example.words)) for example in choosing} & {*words} - {
        one for one in words if words.count(one) > 1
    }
    assert not {*plays.READ} & {*plays.TESTED}


@fetched
def test_an_example_is_scored_by_the_counts_of_the_other_half(monkeypatch):
    asked = []
    counted = few_labels.counted
    monkeypatch.setattr(
        few_labels, "counted", lambda order, half: asked.append(half) or counted(2, half)
    )
    [speech] = [x for x in plays.speeches(plays.READ[0]) if len(x.words) >= plays.ORDER][:1]
    own = next(plays.cut(speech.words, plays.ORDER))
    example = plays.Example(own, 1)
    few_labels.by_counts(2, [example], held_out=False)
    few_labels.by_counts(2, [example], held_out=True)
    assert asked == [1, None]


def test_a_share_is_an_entry_of_the_probabilities():
    tokens = torch.randint(5, (60,), generator=torch.Generator().manual_seed(0))
    counts, asked = NGrams(tokens, 5, 3), tokens.flip(0)[:20]
    contexts = [encode(asked[:-1], length, 5) for length in range(3)]
    found = few_labels.shares(counts, contexts, asked[1:])
    rows = counts.probabilities(asked[:-1])
    torch.testing.assert_close(found, rows.gather(-1, asked[1:, None]).squeeze(-1))
