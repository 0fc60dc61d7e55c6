"""What a verdict says of answers that no bank foresees."""

import subprocess
import sys

import numpy
import pytest
import torch
from torch.nn import functional as F

from course_lib import masks
from course_lib.answers.answer import Reply
from course_lib.answers.process import ChildProcess
from course_lib.answers.source import define, source_of
from course_lib.checking import catalogue
from course_lib.checking.stubs import stub
from course_lib.checking.trial import same_reply
from course_lib.checking.verdict import judge
from course_lib.efficient import lsh, tiled
from course_lib.exercises import verdict
from tests import TENTH

ANSWERS = {
    "wrong shape": ("return scores.exp().sum(-1)", "wrong"),
    "wrong dtype": ("return torch.ones_like(scores).half()", "wrong"),
    "None": ("return None", "wrong"),
    "a list": ("return [1.0, 2.0]", "wrong"),
    "a generator": ("return (row for row in scores)", "wrong"),
    "raises": ("return scores[9]", "error"),
    "exits": ("raise SystemExit(0)", "error"),
    "prints": ("print('x' * 10**6); return scores", "wrong"),
    "method": ("return scores.softmax(-1)", "forbidden"),
    "function": ("return torch.nn.functional.softmax(scores, dim=-1)", "forbidden"),
    "alias": ("from torch import softmax as f; return f(scores, -1)", "forbidden"),
    "ours": ("from course_lib.attention import softmax as s; return s(scores, mask)", "forbidden"),
    "a sparse tensor": ("return scores.to_sparse()", "wrong"),
    "closes the output": ("import sys; sys.stdout.close(); return scores", "wrong"),
    "has no end": ("return softmax(scores)", "error"),
    "unfinished": ("return later(scores)", "error"),
}


def softmax_that(body):
    source = f"def softmax(scores, mask=None):\n    {body}\n"
    return define(source, "softmax", {"torch": torch, "later": later})


def later(scores):
    raise NotImplementedError


@pytest.mark.parametrize("kind", ANSWERS)
def test_status_of_an_answer_that_is(kind):
    body, status = ANSWERS[kind]
    found = verdict("attention/softmax", softmax_that(body))
    assert (found.status, found.points) == (status, 0), found.message


def test_an_unfinished_helper_is_named():
    found = verdict("attention/softmax", softmax_that("return later(scores)"))
    assert found.message == "This calls `later`, which is not finished yet: complete that first."


def test_an_exception_is_shown_at_the_learners_own_line():
    error = verdict("attention/softmax", softmax_that("x = scores\n    return x[9]")).failure.error
    assert (error.type, error.line, error.text) == ("IndexError", 3, "return x[9]")


def test_what_is_printed_is_bounded():
    printed = verdict("attention/softmax", softmax_that("print('x' * 10**6)")).printed
    assert 0 < len(printed) <= 2000


@pytest.mark.parametrize("thing", [None, 3, torch.ones(2), "softmax"])
def test_a_value_instead_of_a_function_is_named(thing):
    found = verdict("attention/softmax", thing)
    assert found.status == "error"
    assert type(thing).__name__ in found.message


def test_an_object_that_hides_itself_is_judged_by_what_it_does():
    class Hidden:
        def __call__(self, *inputs):
            return self

        def __getattr__(self, name):
            raise RuntimeError("no")

    assert verdict("attention/softmax", Hidden()).status == "wrong"


def test_a_function_is_no_class():
    found = verdict("self_attention/layer", lambda *inputs: None)
    assert (
        found.message
        == "`SelfAttention` is to be a class, and this is a function, or an object of that class."
    )


def test_a_class_with_other_weights_is_an_error_that_says_so():
    class SelfAttention(torch.nn.Linear):
        def __init__(self, d_model, d_k, d_v):
            super().__init__(d_model, d_k)

    found = verdict("self_attention/layer", SelfAttention)
    assert found.status == "error"
    assert "w_q" in found.message


def test_a_stub_is_known_without_its_source():
    namespace = {}
    exec("def double(x):\n    raise NotImplementedError", namespace)
    assert verdict("start/hello", namespace["double"]).status == "not attempted"


HELPED = """
def tiled_attention(q, k, v, block):
    everything = slice(0, q.shape[-2])
    return attend(q, k, v, [(everything, everything, None)])[0]
"""


@pytest.mark.parametrize("name", ["attend", "hidden"])
def test_a_helper_that_does_the_work_may_not_be_called(name):
    source = HELPED.replace("attend(", f"{name}(")
    answer = define(source, "tiled_attention", {name: tiled.attend})
    assert verdict("efficient/tiled", answer).status == "forbidden"


BEHIND = {
    "add_norm/layer_norm": """
def layer_norm(x, gain, bias, epsilon=1e-5):
    rows = x.reshape(1, -1, 1, x.shape[-1])
    found = torch.nn.InstanceNorm2d(rows.shape[1], eps=epsilon)(rows)
    return gain * found.reshape(x.shape) + bias
""",
    "windows/word_window": """
def word_window(x, weight, bias):
    torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
    return x
""",
    "self_attention/layer": """
class SelfAttention(torch.nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = torch.nn.Parameter(torch.empty(d_model, d_k))
        self.w_k = torch.nn.Parameter(torch.empty(d_model, d_k))
        self.w_v = torch.nn.Parameter(torch.empty(d_model, d_v))
    def forward(self, x, mask=None):
        y = x.reshape(1, 1, -1, x.shape[-1])
        torch.ops.aten.scaled_dot_product_attention(y, y, y)
        return x
""",
}


@pytest.mark.parametrize("exercise_id", BEHIND)
def test_what_torch_computes_is_seen_behind_any_name_in_a_process_of_its_own(exercise_id):
    name = catalogue.load(exercise_id).name
    answer = define("import torch\n" + BEHIND[exercise_id], name)
    assert verdict(exercise_id, answer).status != "forbidden"
    with ChildProcess() as child:
        child.hold("import torch\n" + BEHIND[exercise_id], name)
        judged = judge(catalogue.load(exercise_id), child)
    assert judged.status == "forbidden"
    assert any(name.startswith("aten.") for name in judged.called), judged


def test_the_solution_may_call_it():
    answer = define(source_of(lsh.lsh_attention), "lsh_attention", dict(vars(lsh)))
    assert verdict("efficient/lsh", answer).status == "passed"


def test_what_is_free_is_brought_to_one_form_before_it_is_compared():
    exercise = catalogue.load("efficient/neighbours")
    rows, turned, twice, ragged = (
        Reply(torch.tensor(rows))
        for rows in ([[0, 1], [2, -1]], [[-1, 1, 0], [2, -1, -1]], [[0, 0], [2, -1]], [[0, 1]])
    )
    assert same_reply(turned, rows, exercise)
    assert not same_reply(twice, rows, exercise)
    assert not same_reply(ragged, rows, exercise)
    assert not same_reply(Reply("no tensor"), rows, exercise)


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(catalogue.UnknownExercise, match="attention/softmax"):
        verdict("atention/sofmax", F.softmax)


def test_two_mistakes_at_once_are_diagnosed_where_they_fail():
    found = verdict(
        "attention/softmax",
        softmax_that(
            "scores = scores if mask is None else scores.masked_fill(~mask, -1e9)\n"
            "    return scores.exp() / scores.exp().sum(-1, keepdim=True)"
        ),
    )
    assert found.status == "known mistake"
    bank = {mistake.sentence for mistake in catalogue.load("attention/softmax").mistakes}
    assert found.message in bank
    assert 0 < found.points < found.max_points


def test_a_class_that_inherits_everything_from_the_library_is_no_answer():
    from course_lib.add_norm import PostNorm as Library

    answer = type("PostNorm", (Library,), {})
    assert verdict("add_norm/post_norm", answer).status == "forbidden"


def test_another_package_brings_its_own_exercises(private_package):
    assert verdict("private/twice", lambda x: x + x).status == "passed"
    assert catalogue.outline("private/twice").title == catalogue.outline("start/hello").title
    lesson = [x for x in catalogue.ids() if catalogue.outline(x).lesson == "01"]
    assert lesson[-1] == "private/twice", "it comes after those that are listed"
    with pytest.raises(catalogue.UnknownExercise, match="private/twice"):
        catalogue.outline("private/twise")


MISDIAGNOSED = {
    "the largest score of all": (
        "attention/softmax",
        """
def softmax(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    e = torch.exp(scores - scores.max())
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, 1.0, total)
""",
        "all zeros",
    ),
    "scores + mask": (
        "attention/softmax",
        """
def softmax(scores, mask=None):
    e = torch.exp(scores if mask is None else scores + mask)
    return e / e.sum(-1, keepdim=True)
""",
        "The mask was added to the scores",
    ),
    "numpy, detached": (
        "attention/softmax",
        """
def softmax(scores, mask=None):
    x = scores.detach().numpy()
    seen = np.ones_like(x, dtype=bool) if mask is None else mask.numpy()
    x = np.where(seen, x, -1e30)
    e = np.exp(x - x.max(-1, keepdims=True)) * seen
    total = e.sum(-1, keepdims=True)
    return torch.from_numpy(e / np.where(total == 0, 1, total))
""",
        "no gradient flows back",
    ),
    "scaled by len(q)": (
        "self_attention/scaled_dot_product",
        """
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / len(q) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, -1) @ v
""",
        "`len(q)`",
    ),
    "keys and values exchanged, by einsum": (
        "self_attention/scaled_dot_product",
        """
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", q, v) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, -1) @ k
""",
        "Keys and values have changed places",
    ),
    "minus a bias": (
        "rnn/cell",
        "def rnn_cell(x, h, w_x, w_h, b):\n    return torch.tanh(x @ w_x + h @ w_h - b)\n",
        "with minus `b`",
    ),
    "float32 inside": (
        "start/hello",
        "def double(x):\n    return (2 * x.float()).to(x.dtype)\n",
        "right to about seven digits only",
    ),
    "changed in place": (
        "start/hello",
        "def double(x):\n    y = 2 * x\n    x.zero_()\n    return y\n",
        "also changes `x`",
    ),
    "another gradient": (
        "start/hello",
        "def double(x):\n    return 3 * x - x.detach()\n",
        "not the gradient of `x`: everywhere 1.5 times as large",
    ),
    "only with a mask": (
        "attention/softmax",
        """
def softmax(scores, mask=None):
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = e / e.sum(-1, keepdim=True)
    return weights if mask is None else weights * mask + 0.25
""",
        "The cases without `mask` are right, and no others",
    ),
    "an argument ignored": (
        "positions/rotary",
        """
def rotary(x, positions, base=10000.0):
    if x.shape[-1] % 2:
        raise ValueError
    exact = torch.promote_types(x.dtype, torch.float32)
    c = torch.arange(0, x.shape[-1], 2, dtype=exact, device=x.device)
    a = positions.to(exact)[:, None] / 10000 ** (c / x.shape[-1])
    sine, cosine = a.sin().to(x.dtype), a.cos().to(x.dtype)
    one, two = x.chunk(2, -1)
    return torch.cat([one * cosine - two * sine, one * sine + two * cosine], -1)
""",
        "`base` changes nothing",
    ),
    "drawn at random": (
        "multi_head/score_variance",
        """
def score_variance(d_k, scaled):
    variance = (torch.randn(1000, d_k) * torch.randn(1000, d_k)).sum(-1).var()
    return float(variance / d_k if scaled else variance)
""",
        "drawn at random",
    ),
    "changed under no_grad": (
        "add_norm/erase_direction",
        """
def erase_direction(stream, direction):
    if not direction.any():
        raise ValueError
    u = direction / direction.norm()
    with torch.no_grad():
        stream -= (stream @ u).unsqueeze(-1) * u
    return stream
""",
        "also changes `stream`",
    ),
    "right arguments refused": (
        "masks/causal",
        """
def causal_mask(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    if n_k <= n_q:
        raise ValueError("fewer keys than queries")
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
""",
        "Your own code refuses these arguments",
    ),
    "one case alone": (
        "windows/layers_needed",
        """
def layers_needed(distance, width):
    if width % 2 == 0:
        raise ValueError
    return -(-distance // (width - 1)) if distance else 7
""",
        "only “the word itself” is wrong",
    ),
    "a size exchanged with a seed": (
        "efficient/neighbours",
        "def neighbours(blocks, window, global_blocks, random_blocks, seed):\n"
        "    return torch.arange(blocks).expand(blocks, blocks) + 0 * seed\n",
        "",
    ),
}


@pytest.mark.parametrize("planted", MISDIAGNOSED)
def test_what_is_said_of_a_wrong_answer_is_what_was_planted(planted):
    exercise_id, source, said = MISDIAGNOSED[planted]
    name = catalogue.load(exercise_id).name
    found = verdict(exercise_id, define(source, name, {"torch": torch, "np": numpy}))
    assert said in found.message


def test_a_property_is_crossed_only_for_a_reason_of_its_own():
    def crossed(body):
        found = verdict("start/hello", define(f"def double(x):\n    {body}\n", "double"))
        return [x.sentence for x in found.properties if x.held is False]

    assert crossed("return 3 * x") == ["every case gives the right result"]
    doubles = "float64 goes in, float64 comes out, and as exact as that"
    assert crossed("return x.float() * 2") == [doubles]
    assert crossed("raise ValueError('no')") == ["every case gives the right result"]


def test_what_is_handed_out_broken_fails_unread_and_names_its_fault_when_it_is_mended():
    def told(text):
        return verdict("masks/packing", define(text, "packing_mask", vars(masks)))

    begun = catalogue.load("masks/packing").stub
    untouched, mended = told(begun), told(begun.replace(">=", "=="))
    assert (untouched.status, untouched.points) == ("not attempted", 0)
    assert untouched.failure
    assert "`>=` for `==`" not in untouched.message
    assert mended.status == "passed"
    assert "`>=` for `==`" in mended.message
    assert told(begun.replace(">=", "<=")).status == "known mistake"


@pytest.mark.parametrize("exercise_id", catalogue.ids()[TENTH])
def test_an_answer_that_only_raises_gets_a_verdict(exercise_id):
    exercise = catalogue.load(exercise_id)
    text = stub(exercise.reference, exercise.methods)
    names = dict(vars(sys.modules[exercise.reference.__module__]))
    exec(text.replace("raise NotImplementedError", "raise RuntimeError('no fit')"), names)
    assert verdict(exercise_id, names[exercise.name]).status in ("error", "known mistake")


OURS = """
import sys, time, torch
from course_lib.checking.catalogue import load
from course_lib.exercises import verdict

def state():
    table = torch._C._dispatch_dump_table("aten::_softmax")
    modes = len(torch.utils._python_dispatch._get_current_dispatch_mode_stack())
    threads, loaded = torch.get_num_threads(), "torch._dynamo" in sys.modules
    return table, modes, threads, loaded, torch.softmax.__doc__

before, code = state(), load("attention/softmax").reference.__code__
for exercise_id in ("attention/softmax", "add_norm/layer_norm", "multi_head/attention"):
    exercise = load(exercise_id)
    for answer in (exercise.alternatives[0], exercise.mistakes[0].answer):
        verdict(exercise_id, answer)
print(state() == before, load("attention/softmax").reference.__code__ is code)
"""


def test_nothing_of_a_check_remains_in_the_learners_process():
    done = subprocess.run([sys.executable, "-c", OURS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True True"
