"""What the standard properties hold against an answer, on small exercises made for it."""

import pytest
import torch

from course_lib.answers.answer import InProcess
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain.known_mistakes import known
from course_lib.checking.laws import laws
from course_lib.checking.trial import UNCHANGED, AnswerRun, cases
from course_lib.checking.verdict import judge


def exercise_of(reference, *cases, **more):
    """Make an exercise of a function and the inputs of its cases."""
    texts = {"lesson": "00", "title": "", "minutes": 1, "difficulty": 1, "hints": ("", "")}
    exercise = Exercise(reference, **texts, **more)
    exercise.draw = lambda draw: ((f"case {i}", inputs) for i, inputs in enumerate(cases))
    return exercise


def failing(exercise, answer):
    return [
        trial.sentence
        for trial in AnswerRun(exercise, InProcess(answer), 0).all()
        if not trial.held
    ]


def halves(x, y):
    return x / 2 + 0 * y


def largest(x):
    return x.amax(-1), x.argmax(-1)


def total(parts):
    return torch.stack([part.sum() for part in parts]).sum()


X = torch.tensor([[1.0, 2.0], [5.0, 3.0]])


def test_no_gradient_is_a_gradient_of_zeros():
    exercise = exercise_of(halves, (X, X))
    assert failing(exercise, lambda x, y: x / 2) == []
    assert failing(exercise, lambda x, y: (x / 2).detach()) == ["gradients flow, and are right"]


@pytest.mark.parametrize("as_number", [False, True])
def test_integers_beside_floats_do_not_switch_the_gradients_off(as_number):
    def reference(x):
        value, place = largest(x)
        return value, int(place.sum()) if as_number and not x.is_meta else place

    exercise = exercise_of(reference, (X,))
    assert failing(exercise, reference) == []
    detached = failing(exercise, lambda x: (reference(x)[0].detach(), reference(x)[1]))
    assert detached == ["gradients flow, and are right"]
    single = failing(exercise, lambda x: (reference(x)[0].float(), reference(x)[1]))
    assert single == ["float64 goes in, float64 comes out, and as exact as that"]


@pytest.mark.parametrize(
    "change",
    [lambda parts: parts.pop(), lambda parts: parts[0].mul_(2), lambda parts: parts.reverse()],
)
def test_a_list_that_is_changed_by_the_call_is_noticed(change):
    def changes(parts):
        result = total(parts)
        with torch.no_grad():
            change(parts)
        return result

    inputs = [X.clone(), 3 * X]
    exercise = exercise_of(total, (inputs,))
    assert failing(exercise, total) == []
    assert "inputs are not modified, and may be non-contiguous" in failing(exercise, changes)
    assert len(inputs) == 2
    assert torch.equal(inputs[0], X)


class Float(float):
    """As numpy's float64 is one."""


def test_a_float_of_another_library_is_a_float():
    exercise = exercise_of(lambda n: n / 2, (3,))
    assert failing(exercise, lambda n: Float(n / 2)) == []
    assert failing(exercise, lambda n: Float(n)) == ["every case gives the right result"]


def shown(x, mask):
    return x.masked_fill(~mask, 0.0)


def test_what_an_answer_keeps_from_call_to_call_is_noticed():
    kept = {}

    def keeps_masks(x, mask):
        return shown(x, kept.setdefault((mask.shape, mask.device), mask.clone()))

    exercise = exercise_of(shown, (X, X > 0))
    exercise.draw = lambda draw: iter([("drawn", (draw.normal(2, 9), draw.mask(2, 9)))])
    assert failing(exercise, shown) == []
    assert failing(exercise, keeps_masks) == ["inputs are not modified, and may be non-contiguous"]


@pytest.mark.parametrize(
    "change",
    [
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_grad_enabled(False),
        lambda: torch.manual_seed(0),
        lambda: torch.set_default_device("meta"),
    ],
)
def test_a_setting_of_torch_that_a_call_changes_is_noticed(change):
    def changes(x, y):
        result = halves(x, y)
        change()
        return result

    def draws(x, y):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
        return halves(x, y) + 0 * torch.rand(()).to(x)

    exercise, dtype = exercise_of(halves, (X, X)), torch.get_default_dtype()
    assert "inputs are not modified, and may be non-contiguous" in failing(exercise, changes)
    assert failing(exercise, draws) == []

    def numbers(n):
        return torch.arange(n)

    def changes_too(n):
        change()
        return torch.arange(n)

    exercise = exercise_of(numbers, (3,))
    assert failing(exercise, numbers) == []
    assert failing(exercise, changes_too) == ["every case gives the right result"]
    assert torch.get_default_dtype() == dtype
    assert torch.get_default_device().type == "cpu"
    assert torch.is_grad_enabled()


def weights(x):
    return torch.softmax(x, -1)


def overflowing(x):
    return x.exp() / x.exp().sum(-1, keepdim=True)


def test_large_numbers_are_tried_where_there_is_an_exponential():
    sentence = "large numbers give neither NaN nor a wrong result"
    assert failing(exercise_of(weights, (X,)), overflowing) == [sentence]
    asked = AnswerRun(exercise_of(halves, (X, X)), InProcess(halves), 0).all()
    assert sentence not in [trial.sentence for trial in asked]
    small = exercise_of(weights, (X,), small_only="for this test")
    assert failing(small, overflowing) == []


def test_a_reference_that_large_numbers_break_violates_a_law():
    assert list(laws._large_numbers(exercise_of(weights, (X,)))) == []
    assert len(list(laws._large_numbers(exercise_of(overflowing, (X,))))) == 1


def test_an_exception_that_nobody_foresaw_violates_a_law():
    exercise = exercise_of(weights, (X,))

    @exercise.mistake
    def beyond(x):
        return x[7]

    @exercise.mistake(raises=IndexError)
    def foreseen(x):
        return x[7]

    @exercise.mistake(raises=NameError)
    def nameless(x):
        return y + x  # noqa: F821, on purpose

    said = list(laws.exceptions(exercise))
    assert [text.split()[0] for text in said] == ["beyond", "nameless"]


def test_a_mutant_is_tried_up_to_its_first_failing_call():
    calls = []
    exercise = exercise_of(weights, *[(X + i,) for i in range(9)])
    tried = AnswerRun(exercise, InProcess(lambda x: calls.append(x)), 0)
    assert not tried.passes()
    # once with a cotangent and once without, since it raised in the first
    assert len(calls) <= 2


def test_a_known_mistake_is_tried_once():
    exercise = exercise_of(weights, (X,))
    exercise.mistake(overflowing)
    [mistake] = exercise.mistakes
    assert known(exercise, mistake, 0) is known(exercise, mistake, 0)


def root(x):
    """Take the square root. Raises ValueError for numbers below zero."""
    if (x < 0).any():
        raise ValueError("no number has this square")
    return x.sqrt()


def test_what_the_reference_refuses_is_not_asked():
    exercise = exercise_of(root, (X,), (-X,))
    assert failing(exercise, lambda x: x.abs().sqrt()) == []
    assert [q.case.name for q in cases(exercise, 0)] == ["case 0"]


def test_a_guess_earns_nothing_though_laws_hold_of_it():
    exercise = exercise_of(halves, (X, X), (0 * X, X))

    @exercise.requires("twice as much gives twice as much")
    def doubled(answer, draw):
        return torch.allclose(answer(2 * X, X), 2 * answer(X, X))

    def points(answer):
        return judge(exercise, InProcess(answer)).points

    assert points(halves) > 0
    # right where x is zero, and obeying the law
    assert points(lambda x, y: x) == points(lambda x, y: 0 * x) == 0
    # wrong in another case, and yet no guess
    assert points(lambda x, y: x / 2 if x.any() else x + 1) > 0


class Total:
    """Keeps what it was given: each call returns its tokens plus all that came before."""

    def __init__(self):
        self.before = 0

    def __call__(self, x):
        self.before = self.before + x.sum(-2, keepdim=True)
        return x + self.before


class SharedTotal(Total):
    before = 0

    def __init__(self):
        pass

    def __call__(self, x):
        type(self).before = type(self).before + x.sum(-2, keepdim=True)
        return x + self.before


class ForgetfulTotal(Total):
    def __call__(self, x):
        return x + x.sum(-2, keepdim=True)


class ReturnsNothing(Total):
    def __call__(self, x):
        super().__call__(x)


@pytest.mark.parametrize("answer", [Total, SharedTotal, ForgetfulTotal, ReturnsNothing])
def test_one_object_is_called_with_a_text_in_pieces_and_another_text_has_another_object(answer):
    exercise = exercise_of(Total, method="__call__", constructor=True)
    texts = [torch.arange(12.0).reshape(6, 2), torch.ones(4, 3)]
    exercise.draw = lambda draw: ((f"{i}", (x,), (), (1, len(x) - 1)) for i, x in enumerate(texts))
    wrong = failing(exercise, answer)
    assert (wrong == []) == (answer is Total)
    if answer is not Total:
        assert wrong[0] == "every case gives the right result"


def test_a_view_of_the_inputs_is_no_copy():
    def doubled(x):
        return 2 * x

    def in_place_if_contiguous(x):
        flat = x.contiguous().view(-1)
        flat *= 2
        return flat.view(x.shape)

    exercise = exercise_of(doubled, (X.clone(),))
    assert failing(exercise, in_place_if_contiguous) == [UNCHANGED]
