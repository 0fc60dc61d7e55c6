"""What lesson 17 says of its trainings with another seed."""

from statistics import mean

from course_lib.data.home_commands import LISTS
from course_lib.instruments import results

FIGURES = results.load("assistant")["figures"]


def means(runs):
    return {name: mean(run[name] for run in runs) for name in LISTS}


def test_lora_is_ahead_of_examples_where_wordings_or_devices_are_new_and_behind_with_rooms():
    lora = means([run["mixed"]["shares"] for run in FIGURES["LoRA"]])
    examples = means(FIGURES["baselines"]["in context"])
    program = means(FIGURES["baselines"]["counting"])
    assert lora["new wordings"] > examples["new wordings"] + 0.15
    assert lora["new wordings"] > program["new wordings"] + 0.03
    assert abs(lora["new devices"] - program["new devices"]) < 0.03
    assert lora["new rooms"] < min(examples["new rooms"], program["new rooms"])


def test_no_other_way_is_ahead_of_the_constraint_and_a_second_try_may_mend_none():
    runs = results.load("claims")["figures"]["17"]["runs"]
    ways = [x["came"] for run in runs for x in run["claims"] if "constrained" in x["came"]]
    assert len(ways) > 1
    assert all(came["constrained"] == max(came.values()) for came in ways)
    assert any(came["second try"] == came["as written"] for came in ways)
