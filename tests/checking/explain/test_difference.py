"""Each difference is found where it is planted, and what is said of a result is true."""

import itertools
import math

import pytest
import torch

from course_lib.answers.answer import Foreign
from course_lib.checking.exercise import Draw
from course_lib.checking.explain.difference import Pair, difference, example


def matrices(draw):
    return [draw.normal(2, 3), draw.normal(2, 3, 4), draw.normal(3, 2, 5)]


PLANTED = {
    "minus what it should be": lambda y: -y,
    "1 where 0 is": lambda y: 1 - y,
    "transposed": lambda y: y.mT,
    "reversed along the last axis": lambda y: y.flip(-1),
    "went through a softmax": lambda y: y.softmax(-1),
    "through a logarithm of a softmax": lambda y: y.log_softmax(-1),
    "`x` was added": lambda y: y + torch.arange(float(y.shape[-1])).expand(y.shape),
    "right but for `x`": lambda y: y - torch.arange(float(y.shape[-1])).expand(y.shape),
    "Everywhere 1.443 times as large as it should be, which is 1 / ln 2": lambda y: y / math.log(2),
    "went through a sigmoid": torch.sigmoid,
    "cut off at the end": torch.relu,
    "An exponential was taken": torch.exp,
    "The result was squared": torch.square,
    "upside down": torch.reciprocal,
    "one place late": lambda y: torch.cat([0 * y[..., :1, :], y[..., :-1, :]], -2),
    "one place early": lambda y: torch.cat([y[..., 1:, :], 0 * y[..., :1, :]], -2),
    "Was a sum taken in the place of a mean?": lambda y: y * y.shape[-1],
    "order of the rows is reversed": lambda y: y.flip(-2),
    "dtype is float64, where float32": lambda y: y.double(),
    "dtype of the result is int64": lambda y: y.long(),
    "Everywhere 0.5 times as large": lambda y: y / 2,
    "Everywhere sqrt(size) times as large": lambda y: y * y.shape[-1] ** 0.5,
    "Everywhere 1/size times as large": lambda y: y / y.shape[-1],
    "Off by one: everywhere 1 too large": lambda y: y + 1,
    "Everywhere 0.25 too small": lambda y: y - 0.25,
    "`x` itself": lambda y: torch.arange(float(y.shape[-1])).expand(y.shape),
    "Every number of the result is 7": lambda y: torch.full_like(y, 7),
    "right numbers in the right order": lambda y: y.flatten(),
    "The shape is (2, 2), where (2, 3) is expected": lambda y: y[..., :-1],
    "In 2 of 3 wrong results the shape differs: in one it is": lambda y: (
        -y if y.dim() < 3 else y[..., :1]
    ),
    "Every number of the result is NaN": lambda y: y * torch.nan,
    "2 of 6 numbers are NaN": lambda y: y.index_fill(-1, torch.tensor([0]), torch.nan),
    "a list, and should be a tensor": lambda y: [y],
    "This returns None": lambda y: None,
}


def pairs_of(change, expected):
    given = [torch.arange(float(y.shape[-1])).expand(y.shape) for y in expected]
    return [
        Pair(change(y), y, {"x": x}, {"size": y.shape[-1]}, 1e-5)
        for x, y in zip(given, expected, strict=True)
    ]


@pytest.mark.parametrize("said", PLANTED)
def test_a_planted_difference_is_named(said):
    assert said in str(difference(pairs_of(PLANTED[said], matrices(Draw(1)))))


def test_a_difference_is_named_only_if_it_explains_every_result():
    first, second = matrices(Draw(1))[1:]
    for a, b in itertools.permutations(PLANTED.values(), 2):
        one, other = *pairs_of(a, [first]), *pairs_of(b, [second])
        if said := difference([one, other], exact=True):
            apart = difference([one], exact=True), difference([other], exact=True)
            assert said in apart


@pytest.mark.parametrize("got", [True, False])
def test_a_mask_is_told_what_it_shows_too_much(got):
    right = torch.ones(3, 4).bool().tril()
    wrong = torch.ones(3, 4).bool().tril(1 if got else -1)
    assert f"{got} where {not got} is" in str(difference([Pair(wrong, right, {}, {}, 1e-5)]))


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (3.0, 3, "a float, and should be an int"),
        (torch.tensor(3), 3, "`.item()`"),
        ("3", 3, "a str, and should be an int"),
        ((torch.ones(2, 1), 5.0), (torch.ones(2), 4.0), "In part 0 of the result: the right"),
    ],
)
def test_a_result_of_another_form_is_named(got, expected, said):
    assert said in str(difference([Pair(got, expected, {}, {}, 1e-5)]))


@pytest.mark.parametrize(
    ("got", "expected", "axes", "said"),
    [
        (7, 9, (), "the result is 7, where 9 is expected."),
        ((1, 0.5), (1, 0.25), (), "in part 1 of the result there is 0.5, where 0.25 is expected."),
        ([1, 2, 3], [1, 5, 3], (), "entry 1 is 2, where 5 is expected."),
        ([1], [1, 2], (), "the length is 1, where 2 is expected."),
        ("a tree", "a bee", (), "from character 2 on it is 'tree', where 'bee' is expected."),
        (
            torch.tensor([[1.0, 2.0], [3.0, 9.0]]),
            torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
            (("query", "key"),),
            "1 of 4 numbers is wrong: at query 1, key 1 it is 9, where 4 is expected.",
        ),
    ],
)
def test_an_example_shows_the_first_place_that_differs(got, expected, axes, said):
    assert example(Pair(got, expected, {}, {}, 1e-5, axes)) == said


DTYPES = [torch.float64, torch.half, torch.bfloat16, torch.int8, torch.bool, torch.complex64]
SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 2), (2, 2), (1, 0, 2), (2, 3, 2)]


@pytest.mark.filterwarnings("ignore:.*")
def test_nothing_is_too_odd_to_be_looked_at():
    odd = [torch.ones(shape).to(dtype) for shape in SHAPES for dtype in (torch.float32, *DTYPES)]
    odd += [torch.full((2, 3), x) for x in (torch.nan, torch.inf)]
    odd += [torch.ones(2, 3, device="meta"), torch.ones(2, 3).to_sparse()]
    odd += [torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8)]
    odd += [(), (1,), [], {}, "", 0, 1e400, 10**400, -(2**64), float("nan"), Foreign("set"), ((),)]
    right = [torch.zeros(2, 3), torch.zeros(()), torch.ones(3).bool(), 3, 0.5, "text", [1, 2]]
    for expected in (*right, (odd[0], odd[1]), (1, 2.0)):
        for got in odd:
            x = Pair(got, expected, {"x": got}, {}, 1e-5, (("query", "key"),))
            for said in (difference([x]), difference([x, x], exact=True), example(x)):
                assert said is None or said.endswith((".", "?")), said
