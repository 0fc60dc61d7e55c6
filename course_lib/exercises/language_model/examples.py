"""Windows of a text, and for each of their tokens the one that comes next."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.language_model import examples

exercise = Exercise(
    reference=examples,
    lesson="10",
    title="Windows and what comes next",
    minutes=5,
    difficulty=1,
    hints=(
        "Write down the inputs and the targets of tokens 5 6 7 8 9, for windows of 2 and a stride "
        "of 2. Why is there no third window?",
        "A window of `length` inputs has as many targets, the last of them one place after its "
        "end. How many tokens does a window need, then?",
        "A column of starts and a row of 0, 1, 2, ... have something to do with the places of all "
        "windows. What happens when you add the two?",
    ),
    clauses={
        "begins at token i stride": "stride_ignored",
        "Only whole windows are cut": "one_window_too_many",
        "needs a token after its end": "the last window has its last target",
        "where none fits": GIVEN,
    },
    # a text has one axis, and its starts too
    equivalent=("-1 -> 1",),
)


@exercise.cases
def cases(draw: Draw):
    yield "five tokens, windows of two", (draw.integers(0, 90, 5), 2, 2)
    yield "windows that overlap", (draw.integers(0, 90, 9), 4, 1)
    yield "windows with gaps", (draw.integers(0, 90, 20), 3, 5)
    yield "a rest that fills no window", (draw.integers(0, 90, 12), 4, 4)
    yield "the last window has its last target", (draw.integers(0, 90, 13), 4, 4)
    yield "windows that overlap by half", (draw.integers(0, 90, 30), 8, 4)
    yield "one window", (draw.integers(0, 90, 4), 3, 2)
    yield "windows of one token", (draw.integers(0, 90, 6), 1, 1)
    yield "a stride longer than the text", (draw.integers(0, 90, 9), 4, 50)


@exercise.edges
def edges(draw: Draw):
    yield "a large vocabulary", (draw.integers(2**16, 2**18, 12), 3, 2)


@exercise.requires("each target is the input of the next place")
def one_place_further(answer, draw: Draw):
    inputs, targets = answer(draw.integers(0, 90, 30), 6, 4)
    return len(inputs) == 6 and torch.equal(inputs[:, 1:], targets[:, :-1])


@exercise.requires("with a stride of the length, the windows are the text without its rest")
def the_whole_text(answer, draw: Draw):
    text = draw.integers(0, 90, 43)
    inputs, targets = answer(text, 7, 7)
    return torch.equal(inputs.flatten(), text[:42]) and torch.equal(targets.flatten(), text[1:43])


def windows(tokens, length, stride, last=0, shift=1):
    starts = torch.arange(0, len(tokens) - length + last, stride)
    places = starts.unsqueeze(-1) + torch.arange(length)
    return tokens[places], tokens[(places + shift).clamp(0, len(tokens) - 1)]


@exercise.mistake
def targets_are_inputs(tokens, length, stride):
    """The targets are the inputs again. A model that may copy learns nothing: by how many places
    are the targets further right?"""
    return windows(tokens, length, stride, shift=0)


@exercise.mistake
def copied(tokens, length, stride):
    """The targets are the inputs again, and one window more is cut than has a next token. A model
    that may copy learns nothing: by how many places are the targets further right?"""
    inputs, _ = windows(tokens, length, stride, last=1)
    return inputs, inputs.clone()


@exercise.mistake
def next_window(tokens, length, stride):
    """The targets of a window are the next window. Each token is asked for the one that follows it:
    by how many places are the targets further right?"""
    inputs, _ = windows(tokens, length, stride)
    return inputs[:-1], inputs[1:]


@exercise.mistake
def a_window_further(tokens, length, stride):
    """The targets are `length` places further right, the window after this one. Each token is asked
    for the one that follows it."""
    starts = range(0, len(tokens) - 2 * length + 1, stride)
    inputs, targets = (
        [tokens[i + shift : i + shift + length] for i in starts] for shift in (0, length)
    )
    nothing = tokens.new_empty(0, length)
    return (torch.stack(inputs), torch.stack(targets)) if starts else (nothing, nothing)


@exercise.mistake
def a_stride_further(tokens, length, stride):
    """The targets are a stride further right: they are the inputs of the next window. Each token is
    asked for the one that follows it."""
    starts = range(0, len(tokens) - length - stride + 1, stride)
    inputs, targets = (
        [tokens[i + shift : i + shift + length] for i in starts] for shift in (0, stride)
    )
    nothing = tokens.new_empty(0, length)
    return (torch.stack(inputs), torch.stack(targets)) if starts else (nothing, nothing)


@exercise.mistake
def two_further(tokens, length, stride):
    """The targets are two places further right: the very next token is asked for."""
    return windows(tokens, length, stride, shift=2)


@exercise.mistake
def to_the_left(tokens, length, stride):
    """The targets are one place to the left, so each token is asked for what came before it."""
    return windows(tokens, length, stride, shift=-1)


@exercise.mistake
def last_window_missing(tokens, length, stride):
    """The last window is missing, although its last target is still in the text. Up to where may a
    window begin?"""
    return windows(tokens, length, stride, last=-1)


@exercise.mistake
def one_window_too_many(tokens, length, stride):
    """A window was cut whose last token has no next one in the text. How many tokens does a window
    with its targets need?"""
    return windows(tokens, length, stride, last=1)


@exercise.mistake
def stride_ignored(tokens, length, stride):
    """The windows begin one token apart, whatever the stride says."""
    return windows(tokens, length, 1)


@exercise.mistake
def stride_of_the_length(tokens, length, stride):
    """The windows are side by side: each begins where the last one ended. Where does window i
    begin, by the docstring?"""
    return windows(tokens, length, length)


@exercise.mistake
def rolled(tokens, length, stride):
    """The targets of each window end with its own first token: `roll` brings that to the end, and
    it does not come next there."""
    inputs, _ = windows(tokens, length, stride)
    return inputs, inputs.roll(-1, dims=-1)


@exercise.mistake
def one_token_short(tokens, length, stride):
    """Each window has one token too few: the window of length + 1 tokens was cut in two, but it had
    only `length`."""
    inputs, targets = windows(tokens, length, stride)
    return inputs[:, :-1], targets[:, :-1]


@exercise.mistake
def last_target_alone(tokens, length, stride):
    """Only the token after the window is a target. Every position is one: the model predicts the
    next token after each of them."""
    inputs, targets = windows(tokens, length, stride)
    return inputs, targets[:, -1]


@exercise.mistake
def list_of_pairs(tokens, length, stride):
    """There is a pair of inputs and targets for each window. All inputs are asked for as one
    tensor, and all targets as another: how are rows put together?"""
    return list(zip(*examples(tokens, length, stride), strict=True))


@exercise.mistake
def next_window_cut_off(tokens, length, stride):
    """The targets are the next window, `length` places further on, and repeat the last token at the
    end of the text. Each token predicts the one after it: how far away is its target?"""
    inputs, _ = examples(tokens, length, stride)
    starts = torch.arange(len(inputs)) * stride
    places = starts.unsqueeze(-1) + torch.arange(length) + length
    return inputs, tokens[places.clamp(max=len(tokens) - 1)]


@exercise.alternative
def unfolded(tokens, length, stride):
    both = tokens.unfold(0, length + 1, stride)
    return both[:, :-1].clone(), both[:, 1:].clone()
