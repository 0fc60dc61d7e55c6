"""A block in which x should weigh more than what a layer finds: a factor without effect."""

import torch

from course_lib.add_norm import DeepNorm
from course_lib.answers.answer import Probe
from course_lib.checking.exercise import Draw, Exercise

exercise = Exercise(
    reference=DeepNorm,
    method="forward",
    lesson="07_norms",
    title="Find the bug: a factor that does nothing",
    minutes=8,
    difficulty=2,
    hints=(
        "Which cases pass? What is alpha there, or what does the layer find? And what does the "
        "block return for alpha 1 and for alpha 100, with the same layer?",
        "Multiply what a norm reads by 2. What does it return? Now look for alpha in the line "
        "above the norm: which of the two terms does it multiply?",
    ),
)


@exercise.cases
def cases(draw: Draw):
    yield "alpha is 1", (draw.normal(2, 3),), (Probe("linear", (3, 3)), 3, 1.0)
    yield "a layer that mixes tokens", (draw.normal(4, 3),), (Probe("running_mean"), 3, 2.5)
    yield (
        "a layer that finds nothing",
        (2 + draw.normal(3, 4), torch.tensor(0.0)),
        (Probe("scaled"), 4, 1.0),
    )
    yield (
        "a layer with two arguments",
        (draw.normal(3, 4), draw.normal(3, 1), draw.normal(3, 4)),
        (Probe("scaled_and_shifted"), 4, 0.5),
    )
    yield "a batch of sentences", (draw.normal(2, 4, 3),), (Probe("running_mean"), 3, 3.0)
    yield "one token alone", (draw.normal(4),), (Probe("linear", (4, 4)), 4, 2.0)
    yield (
        "another norm",
        (draw.normal(3, 4),),
        (Probe("running_mean"), 4, 2.0, Probe("stretch_and_shift")),
    )


@exercise.edges
def edges(draw: Draw):
    yield (
        "a layer with three arguments, one of them None",
        (draw.normal(3, 4), None, draw.normal(3, 1), draw.normal(3, 4)),
        (Probe("told_apart"), 4, 2.0),
    )
    yield "a layer that returns what it reads", (draw.normal(4, 3),), (Probe("unchanged"), 3, 2.0)


@exercise.requires("the larger alpha is, the nearer the result comes to the norm of x alone")
def towards_x(answer, draw: Draw):
    x, nothing = 2 + 3 * draw.normal(4, 5), torch.zeros(5)
    shift = draw.normal(4, 5)
    build = (Probe("scaled_and_shifted"), 5)
    alone = answer(x, nothing, 0 * shift, build=(*build, 1.0))
    far = [
        (answer(x, nothing, shift, build=(*build, alpha)) - alone).norm()
        for alpha in (1.0, 4.0, 400.0)
    ]
    return far[0] > far[1] > far[2] and far[2] < 0.05 * far[0]


@exercise.hand_out
def both_weighed(self, x, *args):
    """The fault was a pair of brackets: alpha multiplied the whole sum, and a norm gives 2 y the
    same result as y. So the block was plain post-norm, whatever alpha was, and nothing failed."""
    # let what was there weigh alpha times as much as what the sublayer found
    added = self.alpha * (x + self.sublayer(x, *args))
    # normalise the sum
    return self.norm_layer(added, self.gain, self.bias)


@exercise.mistake
def layer_weighed(self, x, *args):
    """alpha multiplies what the layer found, and x has no factor. Which of the two should weigh
    more?"""
    added = x + self.alpha * self.sublayer(x, *args)
    return self.norm_layer(added, self.gain, self.bias)


@exercise.mistake
def layer_reads_more(self, x, *args):
    """The layer reads alpha x. What does it read in post-norm?"""
    read = self.alpha * x
    return self.norm_layer(read + self.sublayer(read, *args), self.gain, self.bias)


@exercise.mistake
def after_the_norm(self, x, *args):
    """alpha multiplies the norm's result, so every block makes its tokens larger. Where does the
    formula have it?"""
    added = x + self.sublayer(x, *args)
    return self.alpha * self.norm_layer(added, self.gain, self.bias)


@exercise.mistake
def layer_divided(self, x, *args):
    """What the layer found was divided by alpha, and x has no factor. Before a layer norm that is
    nearly the same; any other norm sees the smaller sum. Which of the two terms has the factor?"""
    added = x + self.sublayer(x, *args) / self.alpha
    return self.norm_layer(added, self.gain, self.bias)


@exercise.mistake
def divided(self, x, *args):
    """x was divided by alpha: the larger alpha, the less of x is left."""
    added = x / self.alpha + self.sublayer(x, *args)
    return self.norm_layer(added, self.gain, self.bias)


@exercise.mistake
def alpha_left_out(self, x, *args):
    """This is plain post-norm: alpha plays no part now, as it played none before. Which of the two
    terms should it multiply?"""
    return self.norm_layer(x + self.sublayer(x, *args), self.gain, self.bias)


@exercise.mistake
def norm_left_out(self, x, *args):
    """alpha weighs x now, but the sum is not normalized any more. The norm was right before."""
    return self.alpha * x + self.sublayer(x, *args)


@exercise.mistake(raises=TypeError)
def arguments_dropped(self, x, *args):
    """The layer got x and nothing else, so one that needs an argument raises. `*args` was right
    before."""
    return self.norm_layer(self.alpha * x + self.sublayer(x), self.gain, self.bias)


@exercise.alternative
class InOneLine(DeepNorm):
    def forward(self, x, *args):
        found = self.sublayer(x, *args)
        return self.norm_layer(found.add(x, alpha=self.alpha), bias=self.bias, gain=self.gain)
