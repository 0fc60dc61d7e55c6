"""Which drawn tokens are the answer's, with a fault: to be mended."""

import torch

from course_lib.checking.exercise import Draw, Exercise
from course_lib.reward import answer_tokens

exercise = Exercise(
    reference=answer_tokens,
    lesson="18",
    title="Find the bug: no answer is rewarded for its end",
    minutes=5,
    difficulty=2,
    clauses={"What stands behind the first `stop` is padding": "stops_counted"},
    hints=(
        "Rows without a stop pass. Write the row 7, 2, 2 with a stop of 2 on paper, and below it "
        "what each line makes of it: which token should be True that is not?",
        "The padding is the same token as the end. How many stops stand to the left of the first "
        "one, and how many to the left of the second?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "no stop: the answer was cut off", (torch.tensor([7, 8, 9]), 2)
    yield "it ends, and padding follows", (torch.tensor([7, 2, 2, 2]), 2)
    yield "it ends with the row", (torch.tensor([5, 7, 2]), 2)
    yield "it ends at once", (torch.tensor([3, 3, 3]), 3)
    yield "one token", (torch.tensor([[4], [1]]), 1)
    yield "other padding behind the end", (torch.tensor([[6, 5, 0, 0, 9], [5, 5, 0, 6, 0]]), 5)
    yield "a group of answers", (draw.integers(0, 4, 5, 7), 1)
    yield "as many answers as tokens", (draw.integers(0, 5, 4, 4), 0)
    yield "two batch dimensions", (draw.integers(0, 6, 2, 3, 8), 5)


@exercise.edges
def edges(draw: Draw):
    long = torch.cat([draw.integers(3, 9, 5), torch.full((300,), 2)])
    yield "a long padding", (long, 2)


@exercise.requires("each row has all of its tokens, or ends with its first stop")
def ends(answer, draw: Draw):
    drawn = draw.integers(0, 4, 30, 6)
    counted = answer(drawn, 3).sum(-1).tolist()
    return counted == [[*row, 3].index(3) + 1 if 3 in row else 6 for row in drawn.tolist()]


def stops(drawn, stop):
    return (drawn == stop).cumsum(-1)


@exercise.hand_out
def end_left_out(drawn, stop):
    """The fault was in the count: a stop was counted at its own place, so the answer's end was
    padding, and no answer was ever rewarded for ending."""
    # count the stops to the left of each token
    ends = drawn == stop
    before = ends.cumsum(dim=-1)
    # a token belongs to the answer while there is none
    return before == 0


@exercise.mistake
def second_stop_too(drawn, stop):
    """One stop too many: the second one is padding. Of all tokens that have one stop to their left
    or at their place, only the stop itself belongs to the answer."""
    return stops(drawn, stop) - (drawn == stop).long() <= 1


@exercise.mistake
def up_to_the_second(drawn, stop):
    """Tokens behind the first stop count as well, up to the second. The answer is over with the
    first."""
    return stops(drawn, stop) <= 1


@exercise.mistake
def everything(drawn, stop):
    """Every token counts, the padding too, so a short answer is rewarded for what was never
    drawn."""
    return torch.ones_like(drawn, dtype=torch.bool)


@exercise.mistake
def not_stop(drawn, stop):
    """All tokens but stops count: the end is still left out, and what stands behind it counts if it
    is another token."""
    return drawn != stop


@exercise.mistake
def stops_counted(drawn, stop):
    """All stops count, padding among them. The first stop of a row alone is the answer's."""
    return (stops(drawn, stop) == 0) | (drawn == stop)


@exercise.mistake
def padding_alone(drawn, stop):
    """The mask is the wrong way round: it is True where the answer is over."""
    return ~answer_tokens(drawn, stop)


@exercise.mistake
def last_alone(drawn, stop):
    """Only the stop itself counts now. All tokens before it belong to the answer as well."""
    return (stops(drawn, stop) == 1) & (drawn == stop)


@exercise.mistake
def along_the_first_axis(drawn, stop):
    """The stops were counted along the first axis, which in a group is that of the answers. Which
    axis holds the tokens of one?"""
    ends = (drawn == stop).long()
    return ends.cumsum(0) - ends == 0


@exercise.alternative
def shifted(drawn, stop):
    before = torch.zeros_like(drawn)
    before[..., 1:] = stops(drawn, stop)[..., :-1]
    return before == 0


@exercise.alternative
def by_places(drawn, stop):
    n = drawn.shape[-1]
    places = torch.arange(n, device=drawn.device)
    first = torch.where(drawn == stop, places, n).amin(-1, keepdim=True)
    return places <= first
