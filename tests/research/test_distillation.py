"""A student of a larger model learns from its distribution, and the kept runs say by how much."""

import pytest
import torch

from course_lib.data import store
from course_lib.instruments import results
from research.experiments import distillation

fetched = pytest.mark.skipif(
    not store.is_fetched("shakespeare"), reason="needs Shakespeare: run `course fetch shakespeare`"
)


@fetched
def test_the_teachers_targets_are_best_met_by_the_teachers_own_probabilities():
    inputs = distillation.text()[1][:128].view(2, 64)
    batch = (inputs, inputs.roll(-1))
    own = distillation.loss(distillation.teacher(), batch, "model")
    probabilities = distillation.teacher()(inputs).softmax(-1)
    entropy = -(probabilities * probabilities.log()).sum(-1).mean()
    torch.testing.assert_close(own, entropy)
    assert distillation.loss(distillation.student(0), batch, "model") > own + 1


def test_what_the_exploration_says_of_all_seeds():
    kept = results.load("distillation")["figures"]
    runs, own = kept["runs"], kept["teacher"]
    few, taught = (runs[f"a fiftieth, from the {x}"] for x in ("text", "larger model"))
    for alone, by_teacher in zip(few, taught, strict=True):
        # stopped at its best, too, it is behind
        assert min(by_teacher) < min(alone) - 0.1
        assert alone[-1] > min(alone) + 0.2
        assert by_teacher[-1] < min(by_teacher) + 0.02
    whole = (
        [run[-1] for run in runs[f"all, from the {x}"]]
        for x in ("text", "larger model", "text, 600 steps")
    )
    for by_text, by_teacher, longer in zip(*whole, strict=True):
        assert own < by_teacher < by_text - 0.05
        # a step with the teacher takes twice as long: for its time, the text alone gives more
        assert longer < by_teacher
