"""Pictures of lessons: what is drawn is what the data say, and so is what is read aloud."""

import pytest

from course_lib.data import home
from course_lib.data.home_commands import LISTS
from course_lib.instruments.pictures import tool_use

DEVICES = (
    "attic lamp",
    "bedroom blinds",
    "hall door",
    "bathroom heating",
    "office fan",
    "den radio",
)
LIT = tool_use.LIT.lower()


@pytest.fixture
def shown(displayed):
    """Draw; return the words and the picture."""

    def data(draw):
        one = displayed(draw)
        return one["text/plain"], one["image/svg+xml"].lower()

    return data


def test_a_lamp_that_is_on_is_yellow_and_what_has_changed_is_named(shown):
    first = home.at_first(DEVICES)
    now = first | {"attic lamp": "on"}
    dark, lit = shown(lambda: tool_use.house(first)), shown(lambda: tool_use.house(now, first))
    assert "Changed" not in dark[0]
    assert lit[0].endswith("Changed: attic lamp.")
    assert lit[1].count(LIT) > dark[1].count(LIT)


def test_every_state_of_every_device_can_be_drawn(shown):
    first = home.at_first(DEVICES)
    now = first
    for text in home.possible(first):
        now = home.obey(now, text)
        said, _ = shown(lambda now=now: tool_use.house(now))
        assert all(f"{device} {state}" in said for device, state in now.items())


def test_devices_of_one_room_are_in_one_room_whose_name_is_written_once(monkeypatch):
    figures = []
    monkeypatch.setattr(tool_use.plots, "show", lambda figure, said: figures.append(figure))
    tool_use.house(home.at_first(["attic light", "attic window", "attic fan", "nursery lamp"]))
    written = [x.get_text() for x in figures[0].axes[0].texts]
    assert written.count("attic") == 1
    assert "window: locked" in written


def test_targets_are_the_tokens_of_the_answer_each_above_the_one_before_it(shown):
    said, _ = shown(lambda: tool_use.targets(["Hi", "Ġyou", "Ċ"], ["Yes", "Ġsir", "END"]))
    assert "6 tokens, of which 3 have a target" in said
    assert "after ⏎ comes Yes; after Yes comes ␣sir; after ␣sir comes END" in said


def test_low_rank_and_the_loop_are_told_in_words(shown):
    assert "through A" in shown(tool_use.low_rank)[0]
    assert "back to the model" in shown(tool_use.loop)[0]


def test_a_table_has_the_means_of_the_baselines_and_then_of_lora():
    runs = [dict.fromkeys(LISTS, share) for share in (0.5, 1.0)]
    kept = {"baselines": dict.fromkeys(("in context", "counting", "last block"), runs)}
    lora = {"shares": dict.fromkeys(LISTS, 0.25), "constrained": dict.fromkeys(LISTS, 0.5)}
    kept["LoRA"] = [{"mixed": lora}] * 2
    first, *rows = tool_use.table(kept)
    assert first.split("  ")[0] == "right"
    names = ["last block", "LoRA, as trained here", "the same, constrained"]
    assert [row.split("  ")[0] for row in rows][-3:] == names
    assert [row.split()[-4:] for row in rows] == [["75%"] * 4] * 3 + [["25%"] * 4, ["50%"] * 4]
