"""A verdict comes back, and can be shown, whatever an answer returns."""

import random

import pytest
import torch

from course_lib.answers.answer import InProcess
from course_lib.checking.catalogue import ids, load
from course_lib.checking.exercise import Exercise
from course_lib.checking.explain import panel
from course_lib.checking.explain.explanation import explanation
from course_lib.checking.trial import AnswerRun
from course_lib.checking.verdict import judge
from tests import TENTH
from tests.checking.any_result import made_up

X = torch.tensor([[1.0, 2.0, -1.0], [5.0, 3.0, 0.5]])
REFERENCES = {
    "a tensor": lambda x, n=1: n * x.exp(),
    "a number": lambda x, n=1: float(x.sum()) * n,
    "a count": lambda x, n=1: int((x > 0).sum()) * n,
    "two tensors": lambda x, n=1: (n * x.amax(-1), x.argmax(-1)),
    "a list": lambda x, n=1: x.argmax(-1).tolist() * n,
}


def exercise_of(reference):
    def own(x, n=1):
        return reference(x, n)

    texts = {"lesson": "00", "title": "", "minutes": 1, "difficulty": 1, "hints": ("", "")}
    exercise = Exercise(own, **texts, id="start/hello")
    cases = (("one", (X,)), ("two", (2 * X, 2)))
    exercise.draw = lambda draw: iter(cases)
    return exercise


# torch warns of its rarer kinds of tensors
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", REFERENCES)
def test_a_verdict_comes_back_whatever_is_returned(kind):
    chance, exercise = random.Random(kind), exercise_of(REFERENCES[kind])
    for number in range(400):
        results = [made_up(chance) for _ in range(2)]
        judged = judge(exercise, InProcess(lambda x, n=1, y=results: y[n - 1]))
        assert judged.message, (number, results)
        assert panel.text(judged, everything=True)


@pytest.mark.parametrize("exercise_id", ids()[TENTH])
def test_every_answer_of_the_bank_can_be_explained_without_the_bank(exercise_id):
    exercise = load(exercise_id)
    for mistake in exercise.mistakes:
        tried = AnswerRun(exercise, InProcess(mistake.answer), 0)
        if not tried.passes():
            assert explanation(tried, 0), mistake.name
