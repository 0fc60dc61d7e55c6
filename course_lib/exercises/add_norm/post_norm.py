"""The block of 2017: add what a layer found, then bring the sum to one size."""

import torch

from course_lib.add_norm import PostNorm
from course_lib.answers.answer import Probe
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=PostNorm,
    method="forward",
    lesson="07",
    title="Add, then normalise",
    minutes=8,
    difficulty=1,
    hints=(
        "Read norm(x + sublayer(x)) from the inside to the outside. What is called first, and with "
        "which tokens?",
        "An attention layer wants a mask beside its tokens, a feed-forward layer wants nothing. "
        "What does the star in `*args` collect, and what does it do in a call?",
        "The norm is a function of three arguments. Two of them are learned, and wait under "
        "`self`: what are they called there, and in which order does `layer_norm` take them?",
    ),
    clauses={
        "takes tokens to tokens": GIVEN,
        "normalises": "another norm",
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
    yield "a layer that returns what it reads", (draw.normal(4, 3),), (Probe("unchanged"), 3)


@exercise.requires("tokens ten times as large come out the same")
def one_size(answer, draw: Draw):
    x, build = 2 + 3 * draw.normal(4, 5), (Probe("running_mean"), 5)
    found = answer(x, build=build)
    again = answer(10 * x, build=build)
    return (found - found[0]).abs().max() > 0 and torch.allclose(again, found, atol=1e-3)


@exercise.requires("a layer that finds 3x changes nothing, one that finds -x makes tokens alike")
def residual(answer, draw: Draw):
    x, build = 2 + 3 * draw.normal(4, 5), (Probe("scaled"), 5)
    nothing, more, opposite, columns = (
        answer(x, factor, build=build)
        for factor in (torch.zeros(5), torch.full((5,), 3.0), -torch.ones(5), draw.normal(5))
    )
    return (
        (columns - nothing).abs().max() > 0.1
        and torch.allclose(more, nothing, atol=1e-3)
        and torch.allclose(opposite, opposite[0].expand(4, 5), atol=1e-5)
    )


@exercise.mistake
def no_residual(self, x, *args):
    """There is no sum: what the layer found was normalised alone, and x is lost. What does a layer
    that finds nothing leave over?"""
    return self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)


@exercise.mistake
def no_norm(self, x, *args):
    """The sum was never normalised, so tokens grow from block to block. What is `self.norm_layer`
    there for?"""
    return x + self.sublayer(x, *args)


@exercise.mistake
def found_normalised(self, x, *args):
    """What the layer found was normalised, and then added: the sum itself may have any size. Which
    of the two is outside in the formula, the norm or the sum?"""
    return x + self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)


@exercise.mistake
def words_normalised(self, x, *args):
    """x was normalised, and what the layer found was added to it afterwards. Which of the two comes
    first in post-norm, the sum or the norm?"""
    return self.norm_layer(x, self.gain, self.bias) + self.sublayer(x, *args)


@exercise.mistake
def both_normalised(self, x, *args):
    """x and what the layer found were normalised each by itself, and then added. The formula has
    one norm: what is inside it?"""
    found = self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)
    return self.norm_layer(x, self.gain, self.bias) + found


@exercise.mistake
def pre_norm_instead(self, x, *args):
    """This is pre-norm: the layer read normalised tokens, and the sum was left as it is. On which
    side of the layer does the norm stand here?"""
    return x + self.sublayer(self.norm_layer(x, self.gain, self.bias), *args)


@exercise.mistake
def two_norms(self, x, *args):
    """There are two norms: the sum was normalised, and the layer read normalised tokens as well.
    What does the layer read in post-norm?"""
    added = x + self.sublayer(self.norm_layer(x, self.gain, self.bias), *args)
    return self.norm_layer(added, self.gain, self.bias)


@exercise.mistake
def added_to_the_norm(self, x, *args):
    """The layer read the normalised tokens, and these were also what it was added to: x itself is
    nowhere in the sum."""
    normed = self.norm_layer(x, self.gain, self.bias)
    return normed + self.sublayer(normed, *args)


@exercise.mistake
def subtracted(self, x, *args):
    """What the layer found was subtracted. Which sign does the formula have between x and what was
    found?"""
    return self.norm_layer(x - self.sublayer(x, *args), self.gain, self.bias)


@exercise.mistake
def no_sublayer(self, x, *args):
    """The layer was never asked: x was normalised as it came. What is to be added before that?"""
    return self.norm_layer(x, self.gain, self.bias)


@exercise.mistake(raises=TypeError)
def arguments_dropped(self, x, *args):
    """The layer got x and nothing else, so one that needs an argument raises. What do `args` hold,
    and whose are they: the layer's or the norm's?"""
    return self.norm_layer(x + self.sublayer(x), self.gain, self.bias)


@exercise.mistake(raises=TypeError)
def arguments_in_a_tuple(self, x, *args):
    """The layer got all its arguments in one tuple. What does a star in front of `args` do in a
    call, and what is handed over without it?"""
    return self.norm_layer(x + self.sublayer(x, args), self.gain, self.bias)


@exercise.mistake(raises=TypeError)
def first_argument_alone(self, x, *args):
    """Of its arguments, the layer got the first alone. How many may there be, and what hands them
    all on?"""
    return self.norm_layer(x + self.sublayer(x, *args[:1]), self.gain, self.bias)


@exercise.mistake
def gain_and_bias_swapped(self, x, *args):
    """Gain and bias have changed places on their way to the norm. In which order does `layer_norm`
    take them?"""
    return self.norm_layer(x + self.sublayer(x, *args), self.bias, self.gain)


@exercise.mistake(raises=TypeError)
def norm_without_gain_and_bias(self, x, *args):
    """The norm got the sum and nothing else. Which two learned vectors does it take after that?"""
    return self.norm_layer(x + self.sublayer(x, *args))


@exercise.mistake
def gain_and_bias_unused(self, x, *args):
    """The norm got ones as its gain and zeros as its bias, which is where the class's own two
    begin. Where are they, once they have learned something?"""
    gain, bias = torch.ones_like(self.gain), torch.zeros_like(self.bias)
    return self.norm_layer(x + self.sublayer(x, *args), gain, bias)


@exercise.mistake
def residual_detached(self, x, *args):
    """The right results, but no gradient passes along x: `.detach()` or `.data` closed the way
    round the layer. What is a residual connection good for?"""
    return self.norm_layer(x.detach() + self.sublayer(x, *args), self.gain, self.bias)


@exercise.mistake
def norm_on_both_sides(self, x, *args):
    """There are two norms: what the layer found was normalised before it was added, and the sum
    again. Post-norm has one, around the sum."""
    found = self.norm_layer(self.sublayer(x, *args), self.gain, self.bias)
    return self.norm_layer(x + found, self.gain, self.bias)


@exercise.mistake
def residual_normalised(self, x, *args):
    """There are two norms: x was normalised before the layer's result was added, and the sum again.
    Post-norm has one, around the sum, and x goes into it as it is."""
    added = self.norm_layer(x, self.gain, self.bias) + self.sublayer(x, *args)
    return self.norm_layer(added, self.gain, self.bias)


@exercise.mistake
def norm_before_and_after(self, x, *args):
    """x was normalised first, and then everything was done with that: the layer read it, it was
    added, and the sum was normalised again. Post-norm has one norm, around the sum."""
    normed = self.norm_layer(x, self.gain, self.bias)
    return self.norm_layer(normed + self.sublayer(normed, *args), self.gain, self.bias)


@exercise.mistake
def normalised_twice(self, x, *args):
    """The sum was normalised twice, one norm after the other. Post-norm has one."""
    added = self.norm_layer(x + self.sublayer(x, *args), self.gain, self.bias)
    return self.norm_layer(added, self.gain, self.bias)


@exercise.alternative
class InOneLine(PostNorm):
    def forward(self, x, *args):
        return self.norm_layer(torch.add(self.sublayer(x, *args), x), self.gain, self.bias)
