"""A word about a right answer that loops where a few operations on whole tensors would do."""

from dataclasses import replace

from course_lib.answers.answer import Answer, InProcess
from course_lib.answers.counting import Count, TooManyCalls
from course_lib.checking.exercise import Exercise
from course_lib.checking.trying.trial import cases

TIMES = 10  # as many operations as the reference makes
FEWEST = 200  # operations of which nobody would speak


def remark(exercise: Exercise, answer: Answer, seed: int = 0) -> str | None:
    """Say of a passed answer that it makes far more operations of torch than the reference does.

    They are counted, not timed, so that the same is said on every machine.
    """
    for question in cases(exercise, seed):
        request = replace(question.request, watch=())
        with Count() as count:
            InProcess(exercise.reference).run(request)
        most = max(FEWEST, TIMES * count.made)
        error = answer.run(replace(request, max_calls=most)).error
        if count.made and error and error.type == TooManyCalls.__name__:
            return (
                f"Right, but slow for long inputs: one case takes over {most} operations of torch, "
                f"where {count.made} are enough. Which loop could be one operation on a whole "
                "tensor?"
            )
    return None
