"""Each difference is found where it is planted, and what is said of a result is true."""

import itertools

import pytest
import torch

from course_lib.checking.exercise import Draw
from course_lib.checking.telling.difference import EXACT, TABLE, Pair, difference

MASK = torch.tensor([[True, False, True], [False, False, False], [True, True, False]])


def matrices(draw):
    return [draw.normal(2, 3), draw.normal(2, 3, 4), draw.normal(3, 2, 5)]


def weights(draw):
    return [x.softmax(-1) for x in (draw.normal(3, 3), draw.normal(4, 4))]


def squares(draw):
    return [draw.normal(3, 3), draw.normal(3, 3)]


PLANTED = {
    "minus what it should be": lambda y: -y,
    "absolute value": torch.abs,
    "1 where 0 is": lambda y: 1 - y,
    "transposed": lambda y: y.mT,
    "reversed along the last axis": lambda y: y.flip(-1),
    "reversed along the rows": lambda y: y.flip(-2),
    "An offset by one along the last axis: each entry is one place too far on": lambda y: y.roll(
        1, -1
    ),
    "one place too far back": lambda y: y.roll(-1, -1),
    "the square of": torch.square,
    "the exponential of": torch.exp,
    "one divided by": torch.reciprocal,
    "Negative numbers have become zero": torch.relu,
    "A tanh too many": torch.tanh,
    "A sigmoid too many": torch.sigmoid,
    "A softmax too many": lambda y: y.softmax(-1),
    "cut off to whole numbers": torch.trunc,
    "a cumulative sum": lambda y: y.cumsum(-1),
    "brought to length one": lambda y: y / y.norm(dim=-1, keepdim=True),
    "mean of each row is taken off": lambda y: y - y.mean(-1, keepdim=True),
    "normalised once more": lambda y: torch.nn.functional.layer_norm(y, y.shape[-1:]),
    "dtype is float64, where float32": lambda y: y.double(),
    "dtype of the result is int64": lambda y: y.long(),
    "half as large": lambda y: y / 2,
    "Everywhere 3 times as large": lambda y: 3 * y,
    "Everywhere sqrt(size) times as large": lambda y: y * y.shape[-1] ** 0.5,
    "Everywhere 1/size times as large": lambda y: y / y.shape[-1],
    "Off by one: everywhere 1 too large": lambda y: y + 1,
    "Everywhere 0.25 too small": lambda y: y - 0.25,
    "`x` was added": lambda y: y + torch.arange(y.shape[-1]),
    "`x` is missing": lambda y: y - torch.arange(y.shape[-1]),
    "Every number of the result is 7": lambda y: torch.full_like(y, 7),
    "right numbers in the right order": lambda y: y.flatten(),
    "sum of the right one over its last axis": lambda y: y.sum(-1),
    "mean of the right one over its first axis": lambda y: y.mean(0),
    "last entry along the last axis is missing": lambda y: y[..., :-1],
    "first entry along the first axis is missing": lambda y: y[1:],
    "one entry too many along the last axis, the last": lambda y: torch.cat([y, y[..., :1]], -1),
    "one axis is too many": lambda y: torch.stack([y, -y]),
    "Every number of the result is NaN": lambda y: y * torch.nan,
    "NaN in 1 of 2 rows": lambda y: y.clone().index_fill_(-2, torch.tensor([0]), torch.nan),
    "NaN, where none should be": lambda y: y.index_fill(-1, torch.tensor([0]), torch.nan),
    "each column is one place too late": lambda y: torch.cat([y[..., :1] + 1, y[..., :-1]], -1),
    "rows, but in another order": lambda y: y[..., [1, 0, *range(2, y.shape[-2])], :],
    "columns, but in another order": lambda y: y[..., [1, 0, *range(2, y.shape[-1])]],
    "Each row is the right one times a factor of its own": lambda y: (
        y * torch.arange(1.0, y.shape[-2] + 1)[:, None]
    ),
    "Each row is the right one plus a number of its own": lambda y: (
        y + torch.arange(1.0, y.shape[-2] + 1)[:, None]
    ),
    "in other places": lambda y: y.flatten().sort()[0].reshape(y.shape),
    "wrong in the first row": lambda y: y.index_fill(-2, torch.tensor([0]), 9.0),
    "wrong in the last column": lambda y: y.index_fill(-1, torch.tensor([y.shape[-1] - 1]), 9.0),
    "a list, and should be a tensor": lambda y: [y],
    "a tuple, and should be a tensor: its first part is right": lambda y: (y, -y),
    "This returns None": lambda y: None,
}


def pairs_of(change, expected):
    return [
        Pair(change(y), y, {"x": torch.arange(float(y.shape[-1]))}, {"size": y.shape[-1]}, 1e-5)
        for y in expected
    ]


@pytest.mark.parametrize("said", PLANTED)
def test_a_planted_difference_is_named(said):
    found = difference(pairs_of(PLANTED[said], matrices(Draw(1))))
    assert found
    assert said in found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda y: y.softmax(-1).mT.contiguous() * 0 + y / y.sum(-2, keepdim=True), "columns sum"),
        (lambda y: (3 * y).exp() / (3 * y).exp().sum(), "All the numbers together"),
        (lambda y: y.square(), "the square of"),
        (lambda y: y + 0.1 * y.flip(-1), "rows should sum to one, and they sum to"),
    ],
)
def test_rows_that_should_sum_to_one_are_looked_at(change, said):
    assert said in str(difference(pairs_of(change, weights(Draw(1)))))


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (~MASK.any(-1, keepdim=True).expand(3, 3), "a query that may look nowhere"),
        (~MASK, "where the mask is False"),
        (MASK, "where the mask is True"),
        (torch.eye(3).bool(), "on the diagonal"),
        (torch.ones(3, 3).bool().triu(1), "above the diagonal"),
        (torch.tensor([[False, True, True]] * 3), "in all columns but the first"),
    ],
)
def test_the_only_wrong_places_are_named(places, said):
    numbers = torch.tensor([[3.0, 7.0, 4.0], [1.5, 9.0, 2.0], [6.0, 5.0, 3.5]])
    pairs = [
        Pair(torch.where(places, y * numbers, y), y, {"mask": MASK}, {}, 1e-5)
        for y in squares(Draw(2))
    ]
    assert said in str(difference(pairs))


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
    ],
)
def test_a_result_of_another_type_is_named(got, expected, said):
    assert said in str(difference([Pair(got, expected, {}, {}, 1e-5)]))


def test_whole_numbers_are_told_how_far_off_they_are():
    pairs = [Pair(n + 1, n, {}, {}, 1e-5) for n in (2, 5, 9)]
    assert difference(pairs) == "Off by one: everywhere 1 too large."
    pairs = [Pair(2 * n, n, {}, {}, 1e-5) for n in (2, 5, 9)]
    assert difference(pairs) == "Everywhere 2 times as large as it should be."


def test_the_one_wrong_part_of_several_is_named():
    y = torch.randn(2, 3)
    assert "part 1 of the result: the sign" in str(
        difference([Pair((y, -y), (y, y), {}, {}, 1e-5)])
    )
    pair = Pair((y, 2 * y), (2 * y, y), {}, {}, 1e-5)
    assert difference([pair]) == "The parts of the result are in the reverse order."


def test_a_difference_is_named_only_if_it_explains_every_result():
    """Of two results that are wrong in two ways, what is said is true of each."""
    first, second = matrices(Draw(1))[1:]
    for a, b in itertools.permutations(PLANTED.values(), 2):
        one, other = *pairs_of(a, [first]), *pairs_of(b, [second])
        if found := difference([one, other], EXACT):
            apart = difference([one], EXACT), difference([other], EXACT)
            assert found in apart or found.startswith(("In each case a multiple", "The right"))


DTYPES = [torch.float32, torch.float64, torch.half, torch.bfloat16, torch.int8, torch.bool]
SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 2), (2, 2), (1, 0, 2), (2, 3, 2)]


def test_nothing_is_too_odd_to_be_looked_at():
    """A stranger's result may have any type, dtype and shape, and numbers of any kind."""
    odd = [torch.ones(shape).to(dtype) for shape in SHAPES for dtype in (*DTYPES, torch.complex64)]
    odd += [torch.full((2, 3), x) for x in (torch.nan, torch.inf)] + [
        (),
        (1,),
        [],
        {},
        "",
        0,
        1e400,
    ]
    for expected in (torch.zeros(2, 3), torch.zeros(()), torch.ones(3).bool(), 3, (odd[0], odd[1])):
        for got in odd:
            said = difference([Pair(got, expected, {"x": got}, {}, 1e-5)])
            assert said is None or said.endswith((".", "?"))
    assert len(TABLE) > len(EXACT)
