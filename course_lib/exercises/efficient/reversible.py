"""What went in, found from what came out."""

import torch

from course_lib.answers.answer import Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.efficient.reversible import ReversibleBlock, halves

exercise = Exercise(
    reference=ReversibleBlock,
    method="inverse",
    lesson="14_reversible",
    title="There and back again",
    minutes=6,
    difficulty=2,
    hints=(
        "Read `forward` line by line. At the end you hold y1 and y2. Which of the two sums can you "
        "undo at once, since you know all that was added?",
        "One half is back. What was added to the other one, and do you have by now what f was "
        "given?",
        "Two steps were made, first with f, then with g. In which order do you put on socks and "
        "shoes, and in which do you take them off?",
    ),
    clauses={
        "side by side on the last axis": "along_the_tokens",
        "Both return the same each time": GIVEN,
    },
)

LINEAR = Probe("linear", (2, 2))
MEAN = Probe("running_mean")
AHEAD = Probe("ahead", (1,))


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", (draw.normal(2, 4),), (LINEAR, LINEAR)
    yield "three tokens, layers that mix them", (draw.normal(3, 4),), (MEAN, Probe("whole_mean"))
    yield "two different layers", (draw.normal(5, 4),), (LINEAR, MEAN)
    yield "two different layers, exchanged", (draw.normal(5, 4),), (MEAN, LINEAR)
    yield "wider tokens", (draw.normal(4, 6),), (Probe("linear", (3, 3)), AHEAD)
    yield "the narrowest tokens", (draw.normal(3, 2),), (AHEAD, MEAN)
    yield "one token", (draw.normal(1, 4),), (LINEAR, LINEAR)
    yield "a batch of texts", (draw.normal(2, 5, 4),), (LINEAR, LINEAR)
    yield "two batch dimensions", (draw.normal(3, 2, 5, 6),), (Probe("linear", (3, 3)), MEAN)
    yield "as many tokens as each has numbers", (draw.normal(4, 4),), (LINEAR, MEAN)


@exercise.requires("what went in comes back")
def there_and_back(answer, draw: Draw):
    x = draw.normal(5, 6)
    y = ReversibleBlock(MEAN.make(), AHEAD.make())(x)
    return torch.allclose(answer(y, build=(MEAN, AHEAD)), x, atol=1e-5)


@exercise.requires("f has changed the first half alone: another f leaves the second as it was")
def one_half_each(answer, draw: Draw):
    y = draw.normal(4, 6)
    found, other = (answer(y, build=(f, AHEAD)) for f in (MEAN, AHEAD))
    same = torch.isclose(found, other, atol=1e-5)
    return same[..., 3:].all() and not same[..., :3].any()


@exercise.mistake
def both_at_once(self, y):
    """Both halves were found from y2 and y1 as they came. But f was given x2, not y2: which half
    should be found first, and what is done with it?"""
    y1, y2 = halves(y)
    return torch.cat([y1 - self.f(y2), y2 - self.g(y1)], dim=-1)


@exercise.mistake
def same_order(self, y):
    """The steps were undone in the order in which they were made. What was added last has to go
    first: f was given an x2 that you do not have yet."""
    y1, y2 = halves(y)
    x1 = y1 - self.f(y2)
    return torch.cat([x1, y2 - self.g(x1)], dim=-1)


@exercise.mistake
def added_again(self, y):
    """The layers were added once more. What undoes an addition?"""
    y1, y2 = halves(y)
    x2 = y2 + self.g(y1)
    return torch.cat([y1 + self.f(x2), x2], dim=-1)


@exercise.mistake
def forward(self, y):
    """This is `forward`: it leads away from x, not back to it. Begin with the last of its sums, and
    solve it for x2."""
    return self(y)


@exercise.mistake
def halves_exchanged(self, y):
    """Both halves are right, but in the wrong order: x is [x1, x2]."""
    y1, y2 = halves(y)
    x2 = y2 - self.g(y1)
    return torch.cat([x2, y1 - self.f(x2)], dim=-1)


@exercise.mistake
def layers_exchanged(self, y):
    """f and g have changed places. Which of the two was added to the second half?"""
    y1, y2 = halves(y)
    x2 = y2 - self.f(y1)
    return torch.cat([y1 - self.g(x2), x2], dim=-1)


@exercise.mistake
def first_half_left(self, y):
    """Only the second half was brought back: x1 is still y1. What was added to it?"""
    y1, y2 = halves(y)
    return torch.cat([y1, y2 - self.g(y1)], dim=-1)


@exercise.mistake
def given_the_old_half(self, y):
    """g was asked about x1, the first half as it was in the beginning. What was g given on the way
    there, x1 or y1?"""
    y1, y2 = halves(y)
    x1 = y1 - self.f(y2 - self.g(y1))
    return torch.cat([x1, y2 - self.g(x1)], dim=-1)


@exercise.mistake
def every_other(self, y):
    """The halves were interleaved: every other number was taken. Where does `forward` cut x in
    two?"""
    y1, y2 = y[..., ::2], y[..., 1::2]
    x2 = y2 - self.g(y1)
    return torch.cat([y1 - self.f(x2), x2], dim=-1)


@exercise.mistake(raises=(ValueError, RuntimeError))
def along_the_tokens(self, y):
    """The tokens were cut in two, the first half of the text and the second. The halves are those
    of each token: on which axis does `forward` cut?"""
    y1, y2 = y.chunk(2, dim=-2)
    x2 = y2 - self.g(y1)
    return torch.cat([y1 - self.f(x2), x2], dim=-2)


@exercise.mistake
def every_other_there_and_back(self, y):
    """The halves were interleaved, taken apart and put back number by number. Where does `forward`
    cut x in two?"""
    y1, y2 = y[..., ::2], y[..., 1::2]
    x2 = y2 - self.g(y1)
    return torch.stack([y1 - self.f(x2), x2], dim=-1).flatten(-2)


@exercise.mistake
def as_a_tuple(self, y):
    """The two halves came back as a tuple. `forward` took them side by side in one tensor."""
    y1, y2 = halves(y)
    x2 = y2 - self.g(y1)
    return y1 - self.f(x2), x2


@exercise.alternative
class BySlices(ReversibleBlock):
    def inverse(self, y):
        half = y.shape[-1] // 2
        second = y[..., half:] - self.g(y[..., :half])
        first = y[..., :half] - self.f(second)
        return torch.cat((first, second), -1)
