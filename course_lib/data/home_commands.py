"""What people say to a smart home, and the command that it means, as one line of JSON.

The commands are actions of Home Assistant. The sentences are made of wordings that we wrote and of
names of devices, so whether a sentence's wording or a name has been learned from can be told.
"""

import itertools
import json
import random
from typing import NamedTuple


class Command(NamedTuple):
    """A sentence, and the command that it means: one line of JSON."""

    said: str
    means: str


ROOMS = (
    "kitchen", "hall", "bedroom", "bathroom", "office", "garage", "living room", "guest room",
    "porch", "basement", "dining room", "study", "balcony", "corridor", "cellar", "bar", "terrace",
    "workshop", "library", "gym", "sauna", "closet", "stairs", "entry", "shed", "barn", "cabin",
    "lounge", "playroom", "storage room", "gallery", "chapel", "tower", "courtyard", "bakery",
    "waiting room", "upper floor", "north wing", "classroom", "stable",
)  # fmt: skip
NEW_ROOMS = (
    "attic", "nursery", "pantry", "laundry room", "greenhouse", "music room", "veranda", "ballroom",
    "dressing room", "south wing",
)  # fmt: skip

THINGS = {  # of a kind: devices to learn, and devices held out
    "light": (("light", "lamp", "spotlight"), ("chandelier", "lantern", "bulb")),
    "cover": (("blinds", "curtains", "shutters"), ("drapes", "awning", "shades")),
    "lock": (("door", "window", "gate"), ("entrance", "hatch", "vault")),
    "climate": (("heating", "radiator", "thermostat"), ("boiler", "heater", "stove")),
    "fan": (("fan", "ventilator"), ("blower", "propeller")),
    "media_player": (("speaker", "radio", "stereo"), ("jukebox", "gramophone", "headphones")),
}
# an action: the values it takes, wordings to learn, and wordings held out
ACTIONS = (
    ("light.turn_on", (), (
        "turn on the {target}", "switch the {target} on", "{target} on please",
        "i need the {target} on", "could you turn the {target} on", "put the {target} on",
    ), ("it is too dark, use the {target}", "let the {target} shine")),
    ("light.turn_off", (), (
        "turn off the {target}", "switch the {target} off", "{target} off please",
        "no {target} any more", "could you turn the {target} off", "put out the {target}",
    ), ("nobody needs the {target} now", "make the {target} go dark")),
    ("light.turn_on", (10, 20, 25, 30, 40, 50, 60, 70, 75, 80), (
        "dim the {target} to {value} percent", "set the {target} to {value} percent",
        "{target} at {value} percent please", "bring the {target} down to {value} percent",
        "i want the {target} at {value} percent", "make the {target} {value} percent bright",
    ), ("{value} percent is enough for the {target}", "let the {target} glow at {value} percent")),
    ("cover.open_cover", (), (
        "open the {target}", "raise the {target}", "pull up the {target}",
        "could you open the {target}", "{target} up please", "get the {target} open",
    ), ("let the sun in through the {target}", "i want to look out, move the {target}")),
    ("cover.close_cover", (), (
        "close the {target}", "lower the {target}", "pull down the {target}",
        "could you close the {target}", "{target} down please", "shut the {target}",
    ), ("keep the sun out with the {target}", "draw the {target}")),
    ("lock.lock", (), (
        "lock the {target}", "please lock the {target}", "make sure the {target} is locked",
        "could you lock the {target}", "secure the {target}", "bolt the {target}",
    ), ("nobody may come in by the {target}", "turn the key of the {target}, i am leaving")),
    ("lock.unlock", (), (
        "unlock the {target}", "please unlock the {target}", "undo the lock of the {target}",
        "could you unlock the {target}", "release the {target}", "take the lock off the {target}",
    ), ("let my guest in by the {target}", "i forgot my key, free the {target}")),
    ("climate.set_temperature", tuple(range(16, 26)), (
        "set the {target} to {value} degrees", "make the {target} {value} degrees",
        "{target} to {value} degrees please", "turn the {target} to {value} degrees",
        "i would like {value} degrees from the {target}", "put the {target} on {value} degrees",
    ), ("warm up to {value} degrees with the {target}", "{value} degrees, {target}")),
    ("fan.set_percentage", (10, 20, 25, 30, 40, 50, 60, 70, 75, 80), (
        "run the {target} at {value} percent", "set the {target} to {value} percent",
        "{target} at {value} percent please", "let the {target} turn at {value} percent",
        "i want the {target} at {value} percent", "speed up the {target} to {value} percent",
    ), ("blow with the {target} at {value} percent", "some air, {target} at {value} percent")),
    ("fan.turn_off", (), (
        "stop the {target}", "switch the {target} off", "{target} off please",
        "turn off the {target}", "could you stop the {target}", "no {target} any more",
    ), ("it is too windy, the {target} again", "let the {target} rest")),
    ("media_player.media_play", (), (
        "play music on the {target}", "start the {target}", "some music from the {target}",
        "could you play music on the {target}", "let me hear the {target}",
        "music on the {target} please",
    ), ("i feel like dancing by the {target}", "wake up the {target} with a song")),
    ("media_player.media_stop", (), (
        "stop the {target}", "no more music on the {target}", "silence the {target}",
        "could you stop the music on the {target}", "{target} quiet please",
        "turn off the {target}",
    ), ("the {target} should be still", "i am on the phone, hush the {target}")),
)  # fmt: skip

LISTS = {  # held out: is the wording, the room, the device one to learn from?
    "known": (True, True, True),
    "new rooms": (True, False, True),
    "new devices": (True, True, False),
    "new wordings": (False, True, True),
}


def command(action: str, target: str, value: int | None = None) -> str:
    """Return a command as one line of JSON."""
    fields = {"action": action, "target": target} | ({} if value is None else {"value": value})
    return json.dumps(fields)


def action(command: Command) -> str:
    """Return the action that a command means."""
    return json.loads(command.means)["action"]


def split(learning: int, held_out: int, seed: int) -> dict[str, list[Command]]:
    """Return commands to learn from, and as many lists of held-out ones as LISTS has.

    No sentence is in two lists. Those of "known" differ from a learned one in a room, a device or
    a number alone.
    """
    draw = random.Random(seed)
    lists = {}
    for name, known in LISTS.items():
        count = learning + held_out if name == "known" else held_out
        lists[name] = draw.sample(sorted(_all(*known)), count)
    return {"learning": lists["known"][held_out:]} | lists | {"known": lists["known"][:held_out]}


def _all(known_wording: bool, known_room: bool, known_thing: bool) -> set[Command]:
    """Return all commands of these wordings, rooms and devices, with three numbers each."""
    found = set()
    for action, values, learned, held_out in ACTIONS:
        things = THINGS[action.partition(".")[0]][0 if known_thing else 1]
        rooms, wordings = ROOMS if known_room else NEW_ROOMS, learned if known_wording else held_out
        for thing, room, wording in itertools.product(things, rooms, wordings):
            for phrase in (f"{room} {thing}", f"{thing} in the {room}"):
                for value in values[:: max(1, len(values) // 3)] or (None,):
                    said = wording.format(target=phrase, value=value)
                    found.add(Command(said, command(action, f"{room} {thing}", value)))
    return found
