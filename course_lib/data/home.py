"""A small home that does what a line of JSON says, or refuses and says why (lesson 17)."""

import difflib
import json
import random
from collections.abc import Iterable

from course_lib.data.home_commands import ACTIONS, ROOMS, THINGS, Command, command

Home = dict[str, str]  # a device, and what it does now

# a small one; three of its rooms are in no command to learn from
DEVICES = (
    "attic lamp", "bedroom blinds", "nursery lamp", "bathroom heating",
    "kitchen lamp", "living room radio", "hall door", "greenhouse fan",
)  # fmt: skip
# what a device does after an action; a light that is given a value has that many percent
AFTER = {
    "light.turn_on": "on",
    "light.turn_off": "off",
    "cover.open_cover": "open",
    "cover.close_cover": "closed",
    "lock.lock": "locked",
    "lock.unlock": "unlocked",
    "climate.set_temperature": "{value} °C",
    "fan.set_percentage": "{value} %",
    "fan.turn_off": "off",
    "media_player.media_play": "playing",
    "media_player.media_stop": "silent",
}
# of a kind whose devices take a value: which
VALUES = {"light": range(101), "climate": range(10, 31), "fan": range(101)}
# of a kind: what its devices do at first
FIRST = {
    "light": "off", "cover": "closed", "lock": "locked", "climate": "18 °C", "fan": "off",
    "media_player": "silent",
}  # fmt: skip


class Refused(ValueError):
    """A command that the home does not carry out; the message is for who gave it."""


def kind_of(device: str) -> str:
    """Return the kind of a device, such as "light" of "kitchen lamp", by its last word."""
    [kind] = [kind for kind, words in THINGS.items() if device.split()[-1] in sum(words, ())]
    return kind


def at_first(devices: Iterable[str]) -> Home:
    """Return a home with these devices, where nothing has been done yet."""
    return {device: FIRST[kind_of(device)] for device in devices}


def for_commands(commands: Iterable[Command]) -> Home:
    """Return the home that has the devices of these commands."""
    return at_first(sorted({json.loads(x.means)["target"] for x in commands}))


def obey(home: Home, text: str) -> Home:
    """Return what the home is after a command, a line of JSON. Raises Refused.

    A refusal says what there is, each name as it has to be written.
    """
    try:
        wanted = json.loads(text)
        action, target = str(wanted["action"]), str(wanted["target"])
    except (ValueError, KeyError, TypeError):
        raise Refused("This is no command.") from None
    if action not in AFTER:
        raise Refused(f'No "{action}" here, but: {", ".join(map(json.dumps, AFTER))}.')
    fitting = [device for device in home if kind_of(device) == action.partition(".")[0]]
    if target not in fitting:
        raise Refused(f'No "{target}" here, but: {", ".join(map(json.dumps, fitting or home))}.')
    after = "{value} %" if action == "light.turn_on" and "value" in wanted else AFTER[action]
    value, allowed = wanted.get("value"), VALUES.get(kind_of(target), range(0))
    if "{value}" in after and (type(value) is not int or value not in allowed):
        raise Refused(f'The "{target}" takes a "value" from {allowed[0]} to {allowed[-1]}.')
    return home | {target: after.format(**wanted)}


def with_nearest(home: Home, text: str) -> str:
    """Put the device that is spelled most alike in the place of one that is not there."""
    try:
        target = json.loads(text)["target"]
        [nearest] = difflib.get_close_matches(target, home, 1, 0.0)
    except (ValueError, KeyError, TypeError):
        return text
    return text.replace(f'"{target}"', f'"{nearest}"')


def possible(home: Home) -> list[str]:
    """Return every command that a home would carry out, with the values that people say."""
    return [
        command(action, device, value)
        for action, values, *_ in ACTIONS
        for device in home
        if kind_of(device) == action.partition(".")[0]
        for value in values or (None,)
    ]


def mistaken(meant: Command, draw: random.Random) -> tuple[str, str]:
    """Make up a wrong answer to a command, and what a home with four such devices says to it.

    The device has a blank too many, a letter less, or another word of its kind.
    """
    wanted = json.loads(meant.means)
    *room, thing = wanted["target"].split()
    things = THINGS[kind_of(thing)][0]
    others = {f"{x} {y}" for x in draw.sample(ROOMS, 9) for y in things} - {wanted["target"]}
    devices = draw.sample(sorted(others), 3)
    devices.insert(draw.randrange(4), wanted["target"])
    cut = draw.randrange(1, len(room[0]))
    wrong = draw.choice(
        (
            f" {wanted['target']}",
            " ".join([room[0][:cut] + room[0][cut + 1 :], *room[1:], thing]),
            " ".join([*room, draw.choice([x for x in things if x != thing])]),
        )
    )
    answer = command(wanted["action"], wrong, wanted.get("value"))
    try:
        obey(at_first(devices), answer)
    except Refused as refusal:
        return answer, str(refusal)
    # the home has this one, too
    return mistaken(meant, draw)
