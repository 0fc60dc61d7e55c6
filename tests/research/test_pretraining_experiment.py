"""Lesson 16: labels are right, the test is unread, and what the page says of stored runs holds."""

import random
from statistics import mean

import pytest
import torch

from course_lib.data import plays, store
from course_lib.data.plays import ORDER, READ, TESTED
from course_lib.data.questions import is_echo, one_word, questions
from course_lib.files.paths import ROOT
from course_lib.instruments import results, training
from course_lib.pretrained.play_reader import Reader
from research.experiments import few_labels, pretraining

KEPT = results.load("pretraining")["figures"]
CONTROL = results.load("without_pairs")["figures"]["blocks"]
COUNTED = results.load("few_labels")["figures"]

fetched = pytest.mark.skipif(
    not store.is_fetched("shakespeare"), reason="needs Shakespeare: run `course fetch shakespeare`"
)

PLAY = """\
THE TINY PLAY

Persons.

ANNA.
BOB, her brother.

ACT I.

SCENE I. A street.

[Enter ANNA and BOB, who do not
see each other.]

ANNA.
But soft! what light [Aside.] through yonder window breaks?
It is the east, and Juliet is the sun.
Arise, fair sun, and kill the envious moon,
Who is already sick and pale with grief.

BOB
I have of late, but wherefore I know not, lost all my mirth,
forgone all custom of exercises; and indeed, it goes so heavily
with my disposition that this goodly frame, the earth, seems to
me a sterile promontory.

ANNA.
Ay.

BOB
No.

SCENE II. The same.

ANNA.
Why?

[Enter a bear

BOB
Exit.

Exeunt.
"""


def test_speeches_are_what_is_said_and_by_nobody_else():
    speeches = plays.parse(PLAY)
    assert [speech.scene for speech in speeches] == [2, 2, 2, 2, 3, 3]
    assert speeches[0].words[:6] == ["but", "soft", "what", "light", "through", "yonder"]
    assert [" ".join(speech.words) for speech in speeches[2:]] == ["ay", "no", "why", "exit"]


def scene(*lines):
    return [plays.Speech(1, (line,)) for line in lines]


def test_labels_are_right_on_a_play_by_hand(monkeypatch):
    numbered = ["a b c d e f g h i j k l m n o p"[2 * k :] for k in range(3)]
    monkeypatch.setattr(plays, "speeches", lambda title: scene(*numbered))
    shuffled, own = plays.order(["X"], random.Random(0))
    assert len(shuffled) == 1
    assert all(" ".join(words) in numbered[0] for words in own)
    assert all(sorted(words) == sorted(set(words)) for words in shuffled)
    assert not any(" ".join(words) in numbered[0] for words in shuffled)


@fetched
def test_every_play_is_of_one_genre_or_of_none_and_three_of_each_are_tested():
    titles = [title for genre in plays.GENRES.values() for title in genre]
    assert len(titles) == len({*titles}) == 35
    assert sorted((*READ, *TESTED)) == sorted((*titles, *plays.NO_GENRE))
    assert {*titles, *plays.NO_GENRE} <= plays.shakespeare.works().keys()
    for genre in plays.GENRES.values():
        assert len({*genre} & {*TESTED}) == 3


@fetched
def test_no_text_of_the_test_is_read():
    assert not {*READ} & {*TESTED}
    read = plays.texts_to_read()
    stretches = {tuple(read[i : i + ORDER]) for i in range(len(read))}
    tested = [word for title in TESTED for word in plays.stream(title)]
    shared = {" ".join(x) for x in plays.cut(tested, ORDER) if tuple(x) in stretches}
    assert not shared


@fetched
def test_a_task_has_equally_many_of_each_label_and_examples_of_one_length():
    drawn = plays.examples("order", TESTED, 120, seed=0)
    labels = [example.label for example in drawn]
    assert {labels.count(label) for label in set(labels)} == {120 // len(set(labels))}
    assert {len(example.words) for example in drawn} == {ORDER}
    assert drawn == plays.examples("order", TESTED, 120, seed=0)
    assert drawn != plays.examples("order", TESTED, 120, seed=1)


def test_the_twins_have_equal_parameters_and_only_one_of_them_sees_what_follows():
    twins = {}
    for causal in (False, True):
        with training.seeded(0):
            twins[causal] = Reader(20, causal)
    left, right = (dict(twin.named_parameters()) for twin in twins.values())
    assert {name: x.shape for name, x in left.items()} == {
        name: x.shape for name, x in right.items()
    }
    tokens = torch.arange(12).reshape(1, 12)
    changed = tokens.clone()
    changed[0, -1] = 19
    for causal, twin in twins.items():
        before, after = twin.states(tokens)[0, :-1], twin.states(changed)[0, :-1]
        assert torch.allclose(before, after) == causal


def test_a_linear_head_tells_apart_what_a_line_separates():
    x = torch.randn(300, 5, generator=torch.Generator().manual_seed(0))
    labels = (x[:, 0] > 0.2).long()
    scores = few_labels.linear(x[:200], labels[:200], x[200:], penalty=0.001)
    assert few_labels.share_right(scores, labels[200:]) > 0.95


def test_what_chooses_a_rate_is_neither_learned_from_nor_held_out():
    lists = pretraining.split(0)
    said = [{x.said for x in part} for part in lists.values()]
    assert sum(map(len, said)) == len(set().union(*said))
    assert len(lists["learning"]) >= max(pretraining.LABELS)


def test_an_answer_is_one_word_whatever_its_marks():
    assert one_word(' "Oslo". ') == "oslo"
    assert one_word("Oslo, Norway") != "oslo"


def seeds(way, kind):
    """List the seeds' shares for each number of labels."""
    return KEPT["intents"][way][kind]


def test_in_new_wordings_what_is_pretrained_leads_with_each_seed_and_number_of_labels():
    ahead = zip(
        seeds("frozen", "new wordings"), seeds("counted words", "new wordings"), strict=True
    )
    assert all(a > b for runs in ahead for a, b in zip(*runs, strict=True))


def test_from_a_hundred_labels_on_counting_is_ahead_in_known_wordings():
    ahead = zip(seeds("counted words", "known"), seeds("frozen", "known"), strict=True)
    assert all(a > b for runs in [*ahead][1:] for a, b in zip(*runs, strict=True))


@pytest.mark.parametrize("way", ["counted words", "frozen"])
@pytest.mark.parametrize("kind", pretraining.LISTS)
def test_the_same_encoder_with_random_parameters_is_below_both(way, kind):
    pairs = zip(seeds("not pretrained", kind), seeds(way, kind), strict=True)
    assert all(mean(a) < mean(b) for a, b in pairs)


@pytest.mark.parametrize("block", CONTROL)
def test_in_new_wordings_what_has_read_without_pairs_is_behind_what_has_seen_pairs(block):
    both = zip(CONTROL[block]["new wordings"], seeds("frozen", "new wordings"), strict=True)
    assert all(a < b for runs in both for a, b in zip(*runs, strict=True))


def test_text_without_pairs_brings_less_than_half_of_the_lead_and_nothing_with_few_labels():
    three = (
        seeds("counted words", "new wordings"),
        CONTROL["15"]["new wordings"],
        seeds("frozen", "new wordings"),
    )
    parts = [
        (text - counted) / (pairs - counted)
        for counted, text, pairs in zip(*(map(mean, way) for way in three), strict=True)
    ]
    assert parts[0] < 0 < min(parts[1:])
    assert max(parts) < 0.5
    for middle, last in zip(*(CONTROL[x]["new wordings"] for x in ("15", "30")), strict=True):
        assert mean(middle) > mean(last)


def test_fine_tuning_gains_in_known_wordings_and_loses_in_new_ones_but_at_a_small_rate():
    runs = results.load("fine_tuning")["figures"]["runs"]

    def told(way, kind):
        return [f"{run[way][kind]:.0%}".rstrip("%") for run in runs]

    page = (ROOT / "lessons" / "16_pretraining.py").read_text("utf8")
    rows = {
        "the head, 20 steps": "frozen",
        "fine-tuned": "0.0001",
        "at five times the rate": "0.0005",
        "at fifteen times the rate": "0.0015",
    }
    for name, way in rows.items():
        known, new = (", ".join(told(way, kind)) for kind in ("known", "new wordings"))
        assert f"# | {name} | {known} | {new} |" in page
    known, new = (
        [mean(run[way][kind] for run in runs) for way in rows.values()]
        for kind in ("known", "new wordings")
    )
    assert all(x - known[0] > (max(known) - known[0]) / 2 for x in known[1:])
    assert new[1] >= new[0] > new[2] > new[3]


def shares(runs):
    """List the shares of questions answered in one right word, a draw of the examples each."""
    return [run["share"] for run in runs]


def test_four_examples_with_wrong_answers_bring_most_of_what_true_ones_do():
    [none], four, wrong = map(
        shares, (KEPT["examples"]["0"], KEPT["examples"]["4"], KEPT["wrong examples"])
    )
    assert all(b - none > 0.5 * (a - none) for a, b in zip(four, wrong, strict=True))
    assert mean(wrong) / mean(four) == pytest.approx(2 / 3, abs=0.05)


def test_with_eight_examples_each_draw_does_worse_than_with_two():
    two, eight = shares(KEPT["examples"]["2"]), shares(KEPT["examples"]["8"])
    assert all(b < a for a, b in zip(two, eight, strict=True))


def test_with_eight_examples_more_answers_repeat_a_word_of_the_question_than_with_two():
    asked = [question for question, _ in questions()[pretraining.LEARNED :]]

    def echoes(n):
        return [
            is_echo(*one)
            for run in KEPT["examples"][n]
            for one in zip(run["told"], asked, strict=True)
        ]

    assert sum(echoes("8")) > 2 * sum(echoes("2"))


def test_with_both_sides_the_n_gram_model_fills_blanks_as_the_page_says():
    assert COUNTED["both sides"]["loss"] == pytest.approx(4.46, abs=0.005)
