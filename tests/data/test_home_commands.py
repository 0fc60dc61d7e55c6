"""What people say to a home: no sentence is learned from and held out, and commands are real."""

import json

import pytest

from course_lib.data import home_assistant, home_commands, store
from course_lib.data.home_commands import ACTIONS, LISTS, NEW_ROOMS, ROOMS, THINGS


@pytest.fixture(scope="module")
def lists():
    return home_commands.split(500, 40, seed=3)


def test_no_sentence_is_in_two_lists_and_each_has_its_number(lists):
    assert {name: len(some) for name, some in lists.items()} == {"learning": 500} | dict.fromkeys(
        LISTS, 40
    )
    said = [command.said for some in lists.values() for command in some]
    assert len(set(said)) == len(said)


def test_held_out_lists_hold_out_what_their_names_say(lists):
    learned = " ".join(command.said for command in lists["learning"])
    new_things = [thing for _, held_out in THINGS.values() for thing in held_out]
    assert not any(room in learned for room in NEW_ROOMS)
    assert not any(thing in learned for thing in new_things)
    assert all(any(room in x.said for room in NEW_ROOMS) for x in lists["new rooms"])
    assert all(any(thing in x.said for thing in new_things) for x in lists["new devices"])
    assert all(any(room in x.said for room in ROOMS) for x in lists["new wordings"])


def test_a_command_is_one_line_of_json_whose_words_were_said(lists):
    for command in (x for some in lists.values() for x in some):
        meant = json.loads(command.means)
        assert "\n" not in command.means
        assert meant["action"] in {action for action, *_ in ACTIONS}
        assert set(meant["target"].split()) <= set(command.said.replace(",", "").split())
        assert str(meant.get("value", "")) in command.said


def test_the_same_seed_draws_the_same_lists(lists):
    assert home_commands.split(500, 40, seed=3) == lists


@pytest.mark.skipif(not store.is_fetched("homeassistant"), reason="needs homeassistant")
def test_the_actions_are_home_assistants_own():
    texts = home_assistant.strings("en")
    for name, *_ in ACTIONS:
        domain, _, action = name.partition(".")
        assert f"{domain}/services/{action}/name" in texts
