"""The small pretraining of lesson 16: its labels are right, its test is unread, it goes on."""

import random
from functools import partial

import pytest
import torch

from course_lib.data import plays, store
from course_lib.data.plays import ANSWER, END, GENRE, ORDER, READ, TASKS, TESTED, VERSE
from course_lib.instruments import results
from research.experiments import pretraining

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


def test_verse_is_told_from_prose_by_the_letters_that_begin_its_lines():
    assert [plays.is_verse(speech) for speech in plays.parse(PLAY)] == [True, False, *[None] * 4]


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

    lines = [" ".join(f"{letter}{'i' * k}" for k in range(1, 13)) for letter in "abcdefgh"]
    monkeypatch.setattr(plays, "speeches", lambda title: scene(*lines))
    wrong, right = plays.answer(["X"], random.Random(0))
    order = {line[0]: place for place, line in enumerate(lines)}
    for label, found in ((0, wrong), (1, right)):
        for words in found:
            place = words.index(END)
            assert (place, len(words)) == (ANSWER, 2 * ANSWER + 1)
            follows = order[words[place + 1][0]] - order[words[place - 1][0]] == 1
            assert follows == bool(label)

    monkeypatch.setattr(plays, "speeches", lambda title: scene(" ".join([title[-1] * 3] * GENRE)))
    comedy, history, tragedy = plays.genre(["Macbeth", "King John"], random.Random(0))
    assert (len(comedy), len(history), len(tragedy)) == (0, 1, 1)
    assert (history[0][0], tragedy[0][0]) == ("nnn", "hhh")


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
@pytest.mark.parametrize("task", TASKS)
def test_a_task_has_equally_many_of_each_label_and_examples_of_one_length(task):
    n = {"order": ORDER, "answer": 2 * ANSWER + 1, "verse": VERSE, "genre": GENRE}[task]
    drawn = plays.examples(task, TESTED, 120, seed=0)
    labels = [example.label for example in drawn]
    assert {labels.count(label) for label in set(labels)} == {120 // len(set(labels))}
    assert {len(example.words) for example in drawn} == {n}
    assert (
        drawn == plays.examples(task, TESTED, 120, seed=0) != plays.examples(task, TESTED, 120, 1)
    )


def test_the_twins_have_equal_parameters_and_only_one_of_them_sees_what_follows():
    twins = {}
    for causal in (False, True):
        with pretraining.training.seeded(0):
            twins[causal] = pretraining.Reader(20, causal)
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
    scores = pretraining.linear(x[:200], labels[:200], x[200:], penalty=0.001)
    assert pretraining.share_right(scores, labels[200:]) > 0.95


def test_what_was_measured_before_an_interruption_is_not_measured_again(monkeypatch, tmp_path):
    begun = []

    def reader(name, seed, interrupted):
        begun.append((name, seed))
        if interrupted and len(begun) == 4:
            raise KeyboardInterrupt
        return {"reading": {}, "tuned": dict.fromkeys(TASKS, 0.5), "cpu_seconds": 1.0}

    def readers(interrupted):
        names = ("nothing", "masked", "next")
        return {name: partial(reader, name, interrupted=interrupted) for name in names}

    monkeypatch.setattr(results, "UNFINISHED", tmp_path)
    monkeypatch.setattr(pretraining, "majority", lambda task: 0.5)
    monkeypatch.setattr(plays, "texts_to_read", list)
    monkeypatch.setattr(pretraining, "READERS", readers(interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        pretraining.measure()
    monkeypatch.setattr(pretraining, "READERS", readers(interrupted=False))
    figures = pretraining.measure()
    # the fourth was interrupted, and is the only one that is begun twice
    assert sorted(begun) == sorted([*{*begun}, begun[3]])
    assert len({*begun}) == 9
    assert figures["shares"]["masked, tuned"]["order"] == [0.5, 0.5, 0.5]
    assert "masked, tuned" in "\n".join(pretraining.table(figures))
