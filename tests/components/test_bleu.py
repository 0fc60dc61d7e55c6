"""BLEU and chrF equal sacrebleu's, and what they say of bad input."""

import inspect
import random

import pytest

from course_lib.bleu import bleu, cut
from course_lib.chrf import chrf

WORDS = "abcdef"


def corpora(count):
    """Draw corpora of few words, so that n-grams match, repeat, and are missing."""
    draw = random.Random(0)
    for _ in range(count):
        words, sentences = WORDS[: draw.randint(1, 6)], draw.randint(1, 6)
        yield [
            [draw.choices(words, k=draw.randint(shortest, 9)) for _ in range(sentences)]
            for shortest in (0, 1)
        ]


def test_bleu_equals_sacrebleus_on_a_thousand_random_corpora():
    metrics = pytest.importorskip("sacrebleu.metrics")
    settings = {"tokenize": "none", "smooth_method": "none", "force": True}
    seen = set()
    for place, (hypotheses, references) in enumerate(corpora(1000)):
        most = 1 + place % 4
        theirs = metrics.BLEU(max_ngram_order=most, **settings).corpus_score(
            [" ".join(words) for words in hypotheses], [[" ".join(words) for words in references]]
        )
        ours = bleu(hypotheses, references, most)
        assert ours == pytest.approx(theirs.score, abs=1e-9)
        seen.add(0 if ours == 0 else 1 if ours < 100 else 2)
    assert seen == {0, 1, 2}


def test_chrf_equals_sacrebleus_on_a_thousand_random_corpora():
    metrics = pytest.importorskip("sacrebleu.metrics")
    for corpus in corpora(1000):
        ours, theirs = ([" ".join(words) for words in side] for side in corpus)
        expected = metrics.CHRF().corpus_score(ours, [theirs]).score
        assert chrf(ours, theirs) == pytest.approx(expected, abs=1e-9)


def test_a_text_is_cut_as_sacrebleu_cuts_it():
    tokenizer = pytest.importorskip("sacrebleu.tokenizers.tokenizer_13a").Tokenizer13a()
    draw = random.Random(0)
    for _ in range(2000):
        text = "".join(draw.choices("ab1 2.,-!?'\"/()éß&", k=draw.randint(0, 30))).strip()
        assert cut(text) == tokenizer(text).split()


@pytest.mark.parametrize("score", [bleu, chrf])
def test_a_missing_reference_is_told(score):
    with pytest.raises(ValueError, match=r"needs one reference, but there are 2 and 1: are these"):
        inspect.unwrap(score)(["a b", "c"], ["a b"])


def test_one_wrong_letter_costs_a_word_in_bleu_and_little_in_chrf():
    reference = ["the thermostat was switched off again"]
    wrong = ["the thermostats was switched off again"]
    assert bleu([wrong[0].split()], [reference[0].split()]) < 60 < 90 < chrf(wrong, reference)


def test_nothing_scores_zero():
    assert bleu([], []) == chrf([], []) == chrf([""], ["a"]) == 0
