"""A remark on a right answer: no points hang on what no lesson asks."""

from dataclasses import replace

import pytest
import torch

from course_lib.answers.answer import InProcess
from course_lib.answers.source import define
from course_lib.checking.catalogue import load
from course_lib.checking.verdict import remark
from course_lib.exercises import check, verdict

LOOPS = {
    "attention/softmax": ["row_by_row"],
    "positions/sinusoidal": ["entry_by_entry"],
    "multi_head/attention": [],
    "rnn/unroll": [],
    "transformer/parameters": [],  # the reference makes no operation at all
}


@pytest.mark.parametrize("exercise_id", LOOPS)
def test_of_the_right_answers_those_that_loop_hear_it(exercise_id):
    exercise = load(exercise_id)
    answers = [exercise.reference, *exercise.alternatives]
    said = {x.__name__: remark(exercise, InProcess(x)) or "" for x in answers}
    assert [name for name in said if "slow for long inputs" in said[name]] == LOOPS[exercise_id]


def test_it_is_said_below_the_panel_of_a_pass(capsys):
    [row_by_row] = [x for x in load("attention/softmax").alternatives if x.__name__ == "row_by_row"]
    check("attention/softmax", row_by_row)
    passed, _, rest = capsys.readouterr().out.partition("One remark: it is slow for long inputs. ")
    assert "passed" in passed
    assert rest.startswith("One case takes over 200 operations of torch, where 15 are enough.")


@pytest.mark.parametrize(
    "zeros",
    [
        "torch.zeros(x.shape)",  # two devices meet
        "torch.zeros(x.shape) + 2 * x.cpu()",  # the result is on another one
    ],
)
def test_a_tensor_on_the_cpu_is_a_remark_and_costs_nothing(zeros):
    answer = define(f"import torch\ndef double(x):\n    return 2 * x + {zeros} * 0\n", "double")
    judged = verdict("start/hello", answer)
    assert (judged.status, judged.points) == ("passed", judged.max_points)
    assert "`device=x.device`" in (remark(load("start/hello"), InProcess(answer)) or "")


def test_a_result_on_another_device_is_a_remark():
    class OnAGpu(InProcess):
        def run(self, request):
            return replace(super().run(request), device="cuda")

    said = remark(load("start/hello"), OnAGpu(lambda x: 2 * x)) or ""
    assert "the device 'cuda'" in said


def test_what_the_meta_device_cannot_do_is_no_remark():
    exercise = load("start/hello")
    assert remark(exercise, InProcess(lambda x: x * (2 if x.numel() >= 0 else x.item()))) is None
    assert remark(exercise, InProcess(lambda x: torch.where(x.any() | True, 2 * x, x))) is None
    looks = define("def double(x):\n    return 2 * x if bool((x < 9**9).all()) else x\n", "double")
    assert remark(exercise, InProcess(looks)) is None


def in_a_list(x, w_q, w_k, w_v):
    return [x @ w_q, x @ w_k, x @ w_v]


def whole_float(distance, width):
    return float(-(-distance // (width - 1)))


def of_32_bits(n_q, n_k, max_distance):
    distances = torch.arange(n_k) - torch.arange(n_q).unsqueeze(-1)
    return (distances.clamp(-max_distance, max_distance) + max_distance).int()


def at_home(n_q, n_k, max_distance, *, device=None):
    distances = torch.arange(n_k) - torch.arange(n_q).unsqueeze(-1)
    return distances.clamp(-max_distance, max_distance) + max_distance


def unguarded(n_q, n_k=None, *, device=None):
    n_k = n_q if n_k is None else n_k
    return torch.ones(n_q, n_k, dtype=torch.bool, device=device).tril(n_k - n_q)


def of_float32(n, d_model):
    speeds = 10000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.arange(n).unsqueeze(-1) * speeds
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2).to(torch.float32)


@pytest.mark.parametrize(
    ("exercise_id", "answer", "said"),
    [
        ("positions/relative_index", at_home, "whatever `device` is, the result is on the CPU"),
        ("masks/causal", unguarded, "with a ValueError, and no line of yours does."),
        ("self_attention/project", in_a_list, "returns a list, and should return a tuple."),
        ("windows/layers_needed", whole_float, "returns a float, and should return a whole number"),
        ("positions/relative_index", of_32_bits, "numbers of int32, and should return numbers of"),
        ("positions/sinusoidal", of_float32, "the result is float32 always."),
    ],
)
def test_form_is_a_remark_and_costs_nothing(exercise_id, answer, said):
    judged = verdict(exercise_id, answer)
    assert (judged.status, judged.points) == ("passed", judged.max_points), judged.message
    assert said in (remark(load(exercise_id), InProcess(answer)) or "")


def test_a_float_that_is_no_whole_number_and_a_list_of_another_length_are_wrong():
    assert verdict("windows/layers_needed", lambda d, width: d / (width - 1)).status != "passed"
    two = verdict("self_attention/project", lambda x, *weights: [x @ w for w in weights[:2]])
    assert two.status != "passed"
