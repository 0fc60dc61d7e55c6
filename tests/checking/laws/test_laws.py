import pytest
from jaxtyping import Float
from torch import Tensor

from course_lib.checking import catalogue
from course_lib.checking.exercise import GIVEN, Exercise
from course_lib.checking.laws import laws
from course_lib.checking.laws.clauses import untied
from course_lib.checking.laws.edits import edits
from course_lib.checking.laws.sizes import missing_sizes
from tests import WEEKLY

SEEDS = tuple(range(1, 1 + len(laws.SETTINGS)))  # each seed tries another setting


@pytest.mark.parametrize("exercise_id", catalogue.ids())
def test_every_exercise_holds_all_laws(exercise_id):
    violations = laws.prove(catalogue.load(exercise_id)).violations
    assert not violations, "\n".join(["", *violations])


@pytest.mark.parametrize("exercise_id", catalogue.ids() if WEEKLY else [])
def test_every_exercise_holds_all_laws_for_other_seeds_too(exercise_id):
    exercise = catalogue.load(exercise_id)
    violations = [*laws.prove(exercise, SEEDS).violations, *laws.exceptions(exercise)]
    assert not violations, "\n".join(["", *violations])


def exercise_of(reference, cases):
    """Make an exercise of a function and of what draws the inputs of its cases."""
    texts = {"lesson": "00", "title": "", "minutes": 1, "difficulty": 1, "hints": ("", "")}
    exercise = Exercise(reference, **texts)
    exercise.cases(lambda draw: (("a case", inputs) for inputs in cases(draw)))
    return exercise


def squared(n):
    """Square a number. Raises ValueError below zero."""
    if n < 0:
        raise ValueError(n)
    return n * n


def test_cases_that_another_seed_gives_away_violate_a_law():
    fixed = exercise_of(squared, lambda draw: [(3,), (5,), (-1,)])
    assert len(list(laws._by_heart(fixed, (0, 1)))) == 2
    drawn = exercise_of(squared, lambda draw: [(3,), (draw.number(5, 10**6),), (-1,)])
    assert list(laws._by_heart(drawn, (0, 1))) == []


def test_a_law_whose_calls_another_seed_gives_away_violates_one():
    exercise = exercise_of(squared, lambda draw: [(3,), (draw.number(5, 10**6),)])
    exercise.requires("grows", points=2)(lambda answer, draw: answer(7) < answer(8))
    assert len(list(laws._by_heart(exercise, (0,)))) == 1


def test_a_case_that_cannot_fail_violates_a_law():
    exercise = exercise_of(squared, lambda draw: [(3,), (10**200,)])
    assert list(laws._refused(exercise)) == [
        "a case that any whole number of more than 1000 bits would pass, a case"
    ]


def test_what_the_stub_gives_is_not_edited():
    def guarded(n):
        if n < 0:
            raise ValueError(n)
        # square the number
        return n * n

    edited = [edit for edit, _ in edits(exercise_of(guarded, lambda draw: [(3,)]))]
    assert edited
    assert all(edit.startswith("n * n") for edit in edited)


def test_sizes_that_no_case_has_are_named():
    def flipped(x: Float[Tensor, "... n d"]) -> Float[Tensor, "... n d"]:
        return x.flip(-2)

    def missing(*shapes):
        exercise = exercise_of(flipped, lambda draw: [(draw.normal(*shape),) for shape in shapes])
        return list(missing_sizes(exercise))

    assert missing((2, 3), (1, 3), (2, 3, 4, 5), (2, 2)) == []
    assert missing((2, 3, 3)) == [
        "no case has 0 batch dimensions",
        "no case has 2 batch dimensions",
        "no case has n = 1",
        "no case has d unlike n",
    ]
    assert missing((1, 3), (3, 2, 4, 3)) == ["no case has d = n"]


def joined(words: list[str]) -> str:
    """Join words by blanks."""
    # lay blanks between them
    return " ".join(words)


def first_guarded(words: list[str]) -> str:
    """Return the first word. Raises ValueError where there is none."""
    if not words:
        raise ValueError("no words")
    # the first one
    return words[0]


def test_a_list_is_once_empty_and_once_alone_where_the_stub_says_nothing_of_it():
    def missing(reference, *lists):
        return list(missing_sizes(exercise_of(reference, lambda draw: [(x,) for x in lists])))

    assert missing(joined, ["a", "b"]) == ["no case has 0 of `words`", "no case has 1 of `words`"]
    assert missing(joined, ["a", "b"], [], ["a"]) == []
    assert missing(first_guarded, ["a", "b"]) == ["no case has 1 of `words`"]


def promising(n):
    """Square a number, and add nothing.

    The result = n n. A negative number is squared, too; 0 stays. `n` may be large. Source: Euclid
    et al. 300, eq. 1. Nobody sums.

    >>> promising(2)
    4
    """
    # square the number
    return n * n


def test_a_clause_that_nothing_asks_for_violates_a_law_and_so_does_a_tie_to_nothing():
    exercise = exercise_of(promising, lambda draw: [(3,), (-2,)])
    exercise.requires("sums are longer")(lambda answer, draw: True)
    nothing = "nothing asks for this clause of the statement: "
    clauses = [
        "A negative number is squared, too;",
        "0 stays.",
        "`n` may be large.",
        "Nobody sums.",
    ]
    assert list(untied(exercise)) == [nothing + clause for clause in clauses]
    exercise.clauses = {
        "negative number": "a case",  # its name
        "0 stays": next(edits(exercise))[0],
        "may be large": GIVEN,
        "Nobody sums": "sums are",  # the first words of a property
    }
    assert list(untied(exercise)) == []
    exercise.clauses = {**exercise.clauses, "Nobody": "nothing", "nowhere": GIVEN}
    assert list(untied(exercise)) == [
        "“Nobody” is tied to no mistake, property or case: nothing",
        "no clause of the statement says: nowhere",
    ]


def test_what_is_forbidden_stands_in_the_stub():
    for exercise in map(catalogue.load, catalogue.ids()):
        *forbidden, _own = exercise.forbidden
        assert ("# Not to be called: " in exercise.stub) == bool(forbidden), exercise.id
    stub = catalogue.load("attention/softmax").stub
    assert "# Not to be called: torch's softmax, log_softmax and logsumexp, torch's own" in stub
    assert "`torch.nn.functional.unfold`." in catalogue.load("vision/patches").stub
