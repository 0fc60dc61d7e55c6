"""What holds of `course_lib.translation`."""

import inspect
import itertools
import math
import random

import pytest
import torch

from course_lib.answers.answer import Probe
from course_lib.translation import beam_search, bleu, chrf, cut

START, STOP = 1, 0


def everything(step, vocab, most, alpha):
    """Score every text of up to `most` tokens, its stop included."""
    others = [token for token in range(vocab) if token != STOP]
    for length in range(most):
        for tokens in itertools.product(others, repeat=length):
            prefix, total = [START], 0.0
            for token in (*tokens, STOP):
                total += step(torch.tensor([prefix]))[0, token].item()
                prefix.append(token)
            yield total / ((5 + length + 1) / 6) ** alpha, list(tokens)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize(("vocab", "most"), [(2, 6), (3, 5), (4, 4), (5, 3)])
def test_a_beam_that_drops_nothing_finds_the_best_of_all(vocab, most, alpha):
    for factor in range(2, 12):
        step = Probe("next_token", (vocab, factor)).make()
        score, tokens = max(everything(step, vocab, most, alpha))
        found = beam_search(step, START, STOP, 150, most, alpha)
        assert found[0] == tokens
        assert math.isclose(found[1], score, rel_tol=1e-9)


def test_a_wider_beam_finds_what_greedy_misses():
    better = 0
    for factor in range(2, 102):
        step = Probe("next_token", (6, factor)).make()
        narrow, wide = (beam_search(step, START, STOP, width, 12)[1] for width in (1, 8))
        better += wide > narrow
    assert better > 50


def test_no_more_prefixes_are_asked_than_the_beam_is_wide():
    step, asked = Probe("next_token", (7, 5)).make(), []

    def counted(prefixes):
        asked.append(len(prefixes))
        return step(prefixes)

    beam_search(counted, START, STOP, 3, 10)
    assert asked[0] == 1
    assert max(asked) == 3


def test_bad_arguments_are_told_in_one_sentence():
    search = inspect.unwrap(beam_search)
    step = Probe("next_token", (5, 3)).make()
    with pytest.raises(ValueError, match="a beam holds at least 1 prefix, not 0"):
        search(step, START, STOP, 0, 5)
    with pytest.raises(ValueError, match="no token has a probability above 0"):
        search(Probe("next_token", (5, 3, 1)).make(), START, STOP, 2, 5)


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
