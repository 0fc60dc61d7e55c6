"""The block of today: a layer reads normalised tokens, and the stream itself runs through."""

import torch

from course_lib.add_norm import PreNorm
from course_lib.answers.answer import Probe
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=PreNorm,
    method="forward",
    lesson="07",
    title="Normalise, read, add",
    minutes=6,
    difficulty=1,
    hints=(
        "A layer that finds nothing adds zeros. What must come out of the block then, to the last "
        "digit?",
        "There are two versions of the tokens now: x, and x normalised. Which of the two does the "
        "layer read, and to which is added what it found?",
        "What came in after x is for the layer. Does the norm want any of it?",
    ),
    joins=("add_norm/post_norm",),
    clauses={
        "The sum itself is never normalised": "result_normalised_too",
        "are as in `PostNorm`": "another norm",
    },
)


@exercise.cases
def cases(draw: Draw):
    yield "two tokens", (draw.normal(2, 3),), (Probe("linear", (3, 3)), 3)
    yield "a layer that mixes tokens", (draw.normal(4, 3),), (Probe("running_mean"), 3)
    yield (
        "a layer that finds nothing",
        (2 + draw.normal(3, 4), torch.tensor(0.0)),
        (Probe("scaled"), 4),
    )
    yield (
        "a layer with an argument of its own",
        (draw.normal(4, 5), draw.normal(4, 1)),
        (Probe("scaled"), 5),
    )
    yield (
        "a layer with two arguments",
        (draw.normal(3, 4), draw.normal(3, 1), draw.normal(3, 4)),
        (Probe("scaled_and_shifted"), 4),
    )
    yield "a batch of sentences", (draw.normal(2, 4, 3),), (Probe("running_mean"), 3)
    yield "two batch dimensions", (draw.normal(3, 2, 4, 5),), (Probe("linear", (5, 5)), 5)
    yield "one token alone", (draw.normal(4),), (Probe("linear", (4, 4)), 4)
    yield (
        "another norm",
        (draw.normal(3, 4),),
        (Probe("running_mean"), 4, Probe("stretch_and_shift")),
    )


@exercise.edges
def edges(draw: Draw):
    yield (
        "a layer with three arguments, one of them None",
        (draw.normal(3, 4), None, draw.normal(3, 1), draw.normal(3, 4)),
        (Probe("told_apart"), 4),
    )
    yield (
        "a layer that finds one mean for all",
        (draw.normal(4, 3),),
        (Probe("one_mean_for_all"), 3),
    )


@exercise.requires("a layer that finds nothing leaves x as it is, one that finds more adds more")
def runs_through(answer, draw: Draw):
    x, columns, build = 2 + 3 * draw.normal(4, 5), draw.normal(5), (Probe("scaled"), 5)
    nothing, once, thrice = (
        answer(x, times * columns, build=build) - x for times in (0.0, 1.0, 3.0)
    )
    return (
        (nothing == 0).all()
        and once.abs().max() > 0
        and torch.allclose(thrice, 3 * once, atol=1e-4)
    )


@exercise.requires("a token ten times as large stays so, and what is added to it is the same")
def reads_one_size(answer, draw: Draw):
    x, build = 2 + draw.normal(4, 5), (Probe("linear", (5, 5)), 5)
    added = answer(x, build=build) - x
    return added.abs().max() > 0 and torch.allclose(
        answer(10 * x, build=build) - 10 * x, added, atol=1e-3
    )


@exercise.mistake
def post_norm_instead(self, x, *args):
    """This is post-norm: the layer read x as it is, and the sum was normalised. On which side of
    the layer does the norm stand here?"""
    return self.norm_layer(x + self.sublayer(x, *args), self.gain, self.bias)


@exercise.mistake
def added_to_the_norm(self, x, *args):
    """What the layer found was added to the normalised tokens, and x itself is gone. Which of the
    two is to run through unchanged?"""
    read = self.norm_layer(x, self.gain, self.bias)
    return read + self.sublayer(read, *args)


@exercise.mistake
def result_normalised_too(self, x, *args):
    """The sum was normalised too, so x does not run through unchanged. How many norms does the
    formula have, and what is inside?"""
    read = self.norm_layer(x, self.gain, self.bias)
    return self.norm_layer(x + self.sublayer(read, *args), self.gain, self.bias)


@exercise.mistake
def norm_on_both_sides(self, x, *args):
    """What the layer found was normalised as well, before it was added: a norm on both sides, which
    is a block of its own. How many norms does the formula have?"""
    read = self.norm_layer(x, self.gain, self.bias)
    return x + self.norm_layer(self.sublayer(read, *args), self.gain, self.bias)


@exercise.mistake
def no_norm(self, x, *args):
    """The norm is missing: the layer read x as it is, however large its tokens have grown by
    then."""
    return x + self.sublayer(x, *args)


@exercise.mistake
def words_normalised(self, x, *args):
    """x was normalised where it is added, and the layer read it as it is. It should be the other
    way round: which of the two does the formula put into the norm?"""
    return self.norm_layer(x, self.gain, self.bias) + self.sublayer(x, *args)


@exercise.mistake
def found_normalised(self, x, *args):
    """The norm stands behind the layer: what it found was normalised, and not what it read."""
    return x + self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)


@exercise.mistake
def no_residual(self, x, *args):
    """There is no sum: what the layer found came back alone. What should a layer that finds nothing
    leave of x?"""
    return self.sublayer(self.norm_layer(x, self.gain, self.bias), *args)


@exercise.mistake
def no_sublayer(self, x, *args):
    """The layer was never asked: x was added to its own norm. Who should have read the normalised
    tokens?"""
    return x + self.norm_layer(x, self.gain, self.bias)


@exercise.mistake
def subtracted(self, x, *args):
    """What the layer found was subtracted. Which sign does the formula have between x and what was
    found?"""
    return x - self.sublayer(self.norm_layer(x, self.gain, self.bias), *args)


@exercise.mistake(raises=TypeError)
def arguments_dropped(self, x, *args):
    """The layer got the normalised tokens and nothing else, so one that needs an argument raises.
    What do `args` hold?"""
    return x + self.sublayer(self.norm_layer(x, self.gain, self.bias))


@exercise.mistake(raises=TypeError)
def arguments_in_a_tuple(self, x, *args):
    """The layer got all its arguments in one tuple. What does a star in front of `args` do in a
    call, and what is handed over without it?"""
    return x + self.sublayer(self.norm_layer(x, self.gain, self.bias), args)


@exercise.mistake(raises=TypeError)
def first_argument_alone(self, x, *args):
    """Of its arguments, the layer got the first alone. How many may there be, and what hands them
    all on?"""
    return x + self.sublayer(self.norm_layer(x, self.gain, self.bias), *args[:1])


@exercise.mistake(raises=TypeError)
def arguments_to_the_norm(self, x, *args):
    """`args` went to the norm instead of the layer: a closing bracket stands one place too late.
    Which of the two may want a mask?"""
    return x + self.sublayer(self.norm_layer(x, self.gain, self.bias, *args))


@exercise.mistake
def gain_and_bias_swapped(self, x, *args):
    """Gain and bias have changed places on their way to the norm. In which order does `layer_norm`
    take them?"""
    return x + self.sublayer(self.norm_layer(x, self.bias, self.gain), *args)


@exercise.mistake(raises=TypeError)
def norm_without_gain_and_bias(self, x, *args):
    """The norm got the tokens and nothing else. Which two learned vectors does it take after
    them?"""
    return x + self.sublayer(self.norm_layer(x), *args)


@exercise.mistake
def gain_and_bias_unused(self, x, *args):
    """The norm got ones as its gain and zeros as its bias, which is where the class's own two
    begin. Where are they, once they have learned something?"""
    gain, bias = torch.ones_like(self.gain), torch.zeros_like(self.bias)
    return x + self.sublayer(self.norm_layer(x, gain, bias), *args)


@exercise.mistake
def residual_detached(self, x, *args):
    """The right results, but no gradient passes along x: `.detach()` or `.data` closed the way
    round the layer. What is the stream good for, if not for that?"""
    return x.detach() + self.sublayer(self.norm_layer(x, self.gain, self.bias), *args)


@exercise.mistake
def torchs_norm(self, x, *args):
    """Each token was brought to mean 0 and variance 1, whatever norm the block was given, and gain
    and bias were not used. Which three things under `self` belong together?"""
    return x + self.sublayer(torch.nn.functional.layer_norm(x, x.shape[-1:]), *args)


@exercise.alternative
class InOneLine(PreNorm):
    def forward(self, x, *args):
        normed = self.norm_layer(x, bias=self.bias, gain=self.gain)
        return self.sublayer(normed, *args).add(x)
