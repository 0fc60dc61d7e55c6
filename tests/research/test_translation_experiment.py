"""What lesson 11 says of its stored translations and searches."""

import functools
import random

import pytest

from course_lib.data import home_assistant, store
from course_lib.instruments import results
from course_lib.instruments.bootstrap import interval
from course_lib.instruments.pictures import evaluation
from course_lib.translation import bleu, chrf, cut, fuzzy_match

DUEL = results.load("translation")["figures"]["duel"]
WIDTHS = DUEL["widths"]
SOURCES, REFERENCES, OURS, FIREFOX = zip(*DUEL["corpora"]["held out"]["shown"], strict=True)
BEAMED = DUEL["theirs_by_beam"]["written"]

fetched = pytest.mark.skipif(
    not store.is_fetched("homeassistant"),
    reason="needs homeassistant: run `course fetch homeassistant`",
)


def words(text):
    return home_assistant.normalised(text).split()


@functools.cache
def copied():
    memory = [(words(source), target) for source, target in home_assistant.split("pt").learning]
    return [fuzzy_match(words(source), memory) for source in SOURCES]


def parts():
    """Return the texts with a neighbour, and those without."""
    return [[i for i, text in enumerate(copied()) if bool(text) == near] for near in (True, False)]


def score(texts, part, by=REFERENCES):
    return bleu([cut(texts[i]) for i in part], [cut(by[i]) for i in part])


def difference(some, others, part):
    return interval(*([texts[i] for i in part] for texts in (some, others, REFERENCES)))


def test_a_wider_beam_finds_likelier_and_shorter_texts_and_up_to_four_better_ones():
    one, two, four, sixteen = (WIDTHS[x] for x in ("1", "2", "4", "16"))
    rising = [x["log_probability"] for x in (one, two, four, sixteen)]
    assert rising == sorted(rising)
    assert sixteen["tokens"] < 0.93 * one["tokens"]
    assert one["bleu"] + 1.5 < four["bleu"] < sixteen["bleu"] + 0.3


def test_ours_is_ahead_by_two_as_written_and_behind_by_one_where_both_are_greedy():
    everything = range(500)
    assert [round(score(x, everything), 1) for x in (OURS, FIREFOX)] == [48.9, 46.7]
    assert 0.7 < score(FIREFOX, everything) - DUEL["greedy"]["bleu"] < 1.2
    assert score(BEAMED, everything) < score(FIREFOX, everything)


def test_a_beam_is_worth_less_than_one_bleu_to_firefox_either_way():
    low, high = difference(BEAMED, FIREFOX, range(500))
    assert -1.1 < low < 0 < high < 1


@fetched
def test_no_side_of_a_held_out_pair_is_in_training():
    learning, tuning, held_out = home_assistant.split("pt")
    assert (len(learning), len(tuning), len(held_out)) == (20_767, 300, 500)
    for side in (0, 1):
        known = {home_assistant.normalised(pair[side]) for pair in learning}
        assert not any(home_assistant.normalised(x[side]) in known for x in tuning + held_out)
    assert {x[0] for x in held_out} == {*SOURCES}


@fetched
def test_with_a_neighbour_ours_is_first_and_a_copy_second_and_without_one_ours_is_behind():
    near, far = parts()
    assert (len(near), len(far)) == (225, 275)
    assert score(OURS, near) - 10 > score(copied(), near) > score(FIREFOX, near) + 3
    assert score(FIREFOX, far) > score(OURS, far) + 8
    # by a beam for theirs it is the same
    assert score(BEAMED, near) < score(copied(), near)
    assert score(BEAMED, far) > score(OURS, far) + 8


@fetched
def test_a_copy_is_ahead_of_firefox_in_any_order_of_the_memory():
    near, _ = parts()
    memory = [(words(source), target) for source, target in home_assistant.split("pt").learning]
    for seed in range(3):
        random.Random(seed).shuffle(memory)
        texts = {i: fuzzy_match(words(SOURCES[i]), memory) for i in near}
        assert score(FIREFOX, near) + 5 < score(texts, near) < score(copied(), near) + 1


@fetched
def test_the_headline_is_uncertain_and_the_parts_are_not():
    near, far = parts()
    low, high = difference(OURS, FIREFOX, range(500))
    assert low < 0 < high
    assert difference(OURS, FIREFOX, near)[0] > 15
    assert difference(OURS, FIREFOX, far)[1] < -4
    assert difference(copied(), FIREFOX, near)[0] > -1


@fetched
@pytest.mark.parametrize(("least", "most"), [(2, 3), (4, 5), (6, 8), (9, 99)])
def test_at_each_length_ours_is_ahead_with_a_neighbour_and_behind_without_by_long_texts(
    least, most
):
    near, far = ([i for i in part if least <= len(words(SOURCES[i])) <= most] for part in parts())
    assert score(OURS, near) > score(FIREFOX, near) + 10
    assert score(OURS, far) < score(FIREFOX, far) + 3
    if least == 9:
        assert difference(OURS, FIREFOX, far)[1] < -5


@fetched
def test_without_a_neighbour_short_texts_are_a_draw_and_long_ones_are_lost():
    _, far = parts()
    short = [i for i in far if len(words(SOURCES[i])) <= 6]
    long = [i for i in far if i not in short]
    assert [len(short), len(long)] == [145, 130]
    low, high = difference(OURS, FIREFOX, short)
    assert low < 0 < high
    found = [round(score(texts, part), 1) for part in (short, long) for texts in (OURS, FIREFOX)]
    assert found == [45.6, 40.7, 36.4, 50.4]


@fetched
def test_another_score_turns_the_headline_in_the_same_way():
    def by_characters(texts, part):
        return chrf([texts[i] for i in part], [REFERENCES[i] for i in part])

    near, far = parts()
    assert by_characters(OURS, near) > by_characters(FIREFOX, near) + 5
    assert by_characters(OURS, far) < by_characters(FIREFOX, far) - 5


def test_by_brazilian_references_firefox_is_twenty_ahead_and_by_european_ones_neither_surely_is():
    shown = DUEL["corpora"]["held out, Brazilian references"]["shown"]
    brazilian = {row[0]: row[1] for row in shown}
    both = [i for i, source in enumerate(SOURCES) if source in brazilian]
    person = [brazilian.get(source, "") for source in SOURCES]
    assert len(both) == 146
    found = [[round(score(x, both, by), 1) for by in (REFERENCES, person)] for x in (OURS, FIREFOX)]
    assert found == [[50.1, 35.6], [47.3, 56.8]]

    def apart(some, others, by):
        """Return the interval of a difference."""
        return interval(*([texts[i] for i in both] for texts in (some, others, by)))

    low, high = apart(OURS, FIREFOX, REFERENCES)
    assert low < 0 < high
    assert apart(OURS, FIREFOX, person)[1] < -10
    # a person, by references in the other dialect, is hardly ahead of ours
    assert 52 < score(REFERENCES, both, person) < 55
    assert score(OURS, both) + 2 < score(person, both) < score(OURS, both) + 5
    low, high = apart(person, OURS, REFERENCES)
    assert low < 0 < high


@fetched
def test_the_copy_in_the_first_picture_is_what_the_memory_has():
    assert copied()[SOURCES.index(evaluation.SOURCE)] == evaluation.COPY


@fetched
def test_both_neighbours_that_the_page_names_are_in_training():
    known = {source for source, _ in home_assistant.split("pt").learning}
    assert {"Clear lock user", "Enable lock user"} <= known
    assert "Disable lock user" in SOURCES


@fetched
def test_training_never_says_what_the_sentences_from_elsewhere_say():
    learned = {x for source, _ in home_assistant.split("pt").learning for x in words(source)}
    assert not learned & {"she", "sister", "chair"}
