"""A home: what is possible is done, anything else is refused with a sentence that helps."""

import json
import random

import pytest

from course_lib.data import home, home_commands

DEVICES = (
    "attic lamp", "bedroom blinds", "hall door", "bathroom heating", "office fan", "porch radio",
)  # fmt: skip


@pytest.fixture
def now():
    return home.at_first(DEVICES)


def test_what_is_possible_changes_its_device_alone(now):
    for text in home.possible(now):
        after, target = home.obey(now, text), json.loads(text)["target"]
        assert {x for x in now if after[x] != now[x]} <= {target}
    assert now == home.at_first(DEVICES)


def test_a_home_for_commands_can_do_each_of_them():
    learning = home_commands.split(300, 20, 1)["learning"]
    assert {x.means for x in learning} <= {*home.possible(home.for_commands(learning))}


def test_a_light_takes_a_value_and_a_thermostat_needs_one(now):
    lit = home.command("light.turn_on", "attic lamp", 30)
    assert home.obey(now, lit)["attic lamp"] == "30 %"
    for value in (None, 500, True):
        with pytest.raises(home.Refused, match='takes a "value" from 10 to 30'):
            home.obey(now, home.command("climate.set_temperature", "bathroom heating", value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the lamp is on", "This is no command."),
        ('["light.turn_on"]', "This is no command."),
        ('{"action": "light.turn_on"}', "This is no command."),
        (
            '{"action": "light.turn_on", "target": " attic lamp"}',
            'No " attic lamp" here, but: "attic lamp".',
        ),
        ('{"action": "light.turn_on", "target": "hall door"}', 'but: "attic lamp".'),
        (
            '{"action": "home.burn", "target": "hall door"}',
            'No "home.burn" here, but: "light.turn_on", "',
        ),
        ('{"action": [1], "target": {"a": 1}}', 'No "[1]" here'),
    ],
)
def test_anything_else_is_refused_and_told_what_there_is(now, text, said):
    with pytest.raises(home.Refused) as refusal:
        home.obey(now, text)
    assert said in str(refusal.value)


def test_a_made_up_mistake_is_refused_and_the_refusal_names_the_device_that_was_meant():
    draw = random.Random(0)
    for command in home_commands.split(200, 10, 2)["learning"]:
        wrong, refusal = home.mistaken(command, draw)
        meant = json.loads(command.means)
        assert json.loads(wrong)["action"] == meant["action"]
        assert json.loads(wrong)["target"] != meant["target"]
        assert f'"{meant["target"]}"' in refusal


def test_the_nearest_name_is_that_of_a_device_that_is_there(now):
    text = '{"action": "light.turn_on", "target": " attick lamp"}'
    assert home.with_nearest(now, text) == text.replace(" attick", "attic")
    assert home.with_nearest(now, "no command") == "no command"
