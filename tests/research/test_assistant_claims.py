"""What lesson 17 says of its trainings with another seed."""

from statistics import mean

from course_lib.data.home_commands import LISTS
from course_lib.instruments import results

FIGURES = results.load("assistant")["figures"]


def means(runs):
    return {name: mean(run[name] for run in runs) for name in LISTS}


def test_constrained_lora_is_ahead_of_examples_and_on_new_wordings_of_the_program():
    lora = means([run["mixed"]["shares"] for run in FIGURES["LoRA"]])
    constrained = means([run["mixed"]["constrained"] for run in FIGURES["LoRA"]])
    examples = means(FIGURES["baselines"]["in context"])
    program = means(FIGURES["baselines"]["counting"])
    new = ("new rooms", "new devices", "new wordings")
    assert all(constrained[name] > examples[name] + 0.05 for name in new)
    assert constrained["new wordings"] > program["new wordings"] + 0.05
    assert lora["new rooms"] < min(examples["new rooms"], program["new rooms"]) - 0.2


def test_no_other_way_is_ahead_of_the_constraint_and_a_second_try_may_mend_none():
    runs = results.load("claims")["figures"]["17"]["runs"]
    ways = [x["came"] for run in runs for x in run["claims"] if "constrained" in x["came"]]
    assert len(ways) > 1
    assert all(came["constrained"] == max(came.values()) for came in ways)
    assert any(came["second try"] == came["as written"] for came in ways)
