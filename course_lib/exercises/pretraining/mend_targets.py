"""One copy of a text for each hidden token, with a fault: to be mended."""

import torch

from course_lib.checking.exercise import GIVEN, Draw, Exercise
from course_lib.pretraining import hide_each

MASK, SPECIAL = 9, (0, 1)

exercise = Exercise(
    reference=hide_each,
    lesson="16",
    title="Find the bug: a blank that is no blank",
    minutes=6,
    difficulty=2,
    hints=(
        "Take the text 5, 6, 7, without special tokens. Write down copy 0: what does the model "
        "read, and at which places is it asked for something?",
        "How hard is it to say which token stands at a place where the model can see it? Which "
        "boolean tensor says where it cannot?",
    ),
    clauses={
        "its only target there is the token": "what_is_left",
        "all other targets are -100": "wherever_a_mask_is",
        "is never hidden": "special_asked_for",
        "Memory O": GIVEN,
    },
    # `torch.where` makes room as well, where the targets are asked of what is hidden
    equivalent=("tokens.unsqueeze(-2).expand(*tokens.shape, n) -> tokens.unsqueeze(-2)",),
)


@exercise.cases
def cases(draw: Draw):
    yield "three tokens", (torch.tensor([5, 6, 7]), MASK, ())
    yield "one token", (torch.tensor([4]), MASK, SPECIAL)
    yield "special tokens alone", (torch.tensor([0, 1, 0]), MASK, SPECIAL)
    yield "special tokens at both ends", (torch.tensor([0, 5, 6, 7, 1]), MASK, SPECIAL)
    yield "the mask is in the text already", (torch.tensor([5, MASK, 6]), MASK, (MASK,))
    yield "a token that is the mask, and not special", (torch.tensor([5, MASK, 6]), MASK, SPECIAL)
    yield "one token again and again", (torch.full((4,), 3), MASK, SPECIAL)
    yield "another mask", (draw.integers(0, 8, 4), 12, SPECIAL)
    yield "a batch of texts", (draw.integers(0, 8, 3, 5), MASK, SPECIAL)
    yield "two batch dimensions", (draw.integers(0, 8, 2, 3, 4), MASK, SPECIAL)
    yield "as many texts as tokens", (draw.integers(0, 8, 4, 4), MASK, SPECIAL)


@exercise.requires("each token that is not special is asked for once, where it is hidden")
def once_each(answer, draw: Draw):
    tokens = draw.integers(0, 8, 12)
    inputs, targets = answer(tokens, MASK, SPECIAL)
    asked = targets != -100
    ordinary = tokens[~torch.isin(tokens, torch.tensor(SPECIAL))]
    return torch.equal(targets[asked], ordinary) and (inputs[asked] == MASK).all()


def parts(tokens, mask, special):
    """Return the copies, and which token of each is hidden."""
    n = tokens.shape[-1]
    copies = tokens.unsqueeze(-2).expand(*tokens.shape, n)
    kept = torch.isin(copies, torch.tensor(special, dtype=tokens.dtype))
    return copies, torch.eye(n, dtype=torch.bool) & ~kept


@exercise.hand_out
def asked_everywhere(tokens, mask, special):
    """The fault was `~kept` for `hidden` in the targets: every copy asked for all tokens, and the
    model could see all but one of them. Its loss looked far too good."""
    n = tokens.shape[-1]
    # copy the text once for each of its tokens
    copies = tokens.unsqueeze(-2).expand(*tokens.shape, n)
    # in copy i, choose token i, if it is not special
    kept = torch.isin(copies, torch.tensor(special, dtype=tokens.dtype, device=tokens.device))
    hidden = torch.eye(n, dtype=torch.bool, device=tokens.device) & ~kept
    # hide it
    inputs = torch.where(hidden, mask, copies)
    # ask for what is hidden, and for nothing else
    targets = torch.where(~kept, copies, -100)
    return inputs, targets


@exercise.mistake
def what_is_left(tokens, mask, special):
    """Now each copy asks for the tokens that it shows, and not for the one that it hides."""
    copies, hidden = parts(tokens, mask, special)
    return torch.where(hidden, mask, copies), torch.where(hidden, -100, copies)


@exercise.mistake
def the_mask_asked_for(tokens, mask, special):
    """The targets come from the inputs, where the token is hidden already: the model is asked to
    say the mask."""
    copies, hidden = parts(tokens, mask, special)
    inputs = torch.where(hidden, mask, copies)
    return inputs, torch.where(hidden, inputs, -100)


@exercise.mistake
def wherever_a_mask_is(tokens, mask, special):
    """A mask that was in the text before is asked for too. What says which token this copy
    hides?"""
    copies, hidden = parts(tokens, mask, special)
    inputs = torch.where(hidden, mask, copies)
    return inputs, torch.where(inputs == mask, copies, -100)


@exercise.mistake
def special_asked_for(tokens, mask, special):
    """The copy of a special token asks for it, though nothing is hidden there."""
    copies, hidden = parts(tokens, mask, special)
    own = torch.eye(tokens.shape[-1], dtype=torch.bool)
    return torch.where(hidden, mask, copies), torch.where(own, copies, -100)


@exercise.mistake
def the_rest_hidden(tokens, mask, special):
    """Each copy hides all tokens up to its own, and asks for all of them. One is to be hidden."""
    copies, hidden = parts(tokens, mask, special)
    kept = torch.isin(copies, torch.tensor(special, dtype=tokens.dtype))
    n = tokens.shape[-1]
    hidden = torch.ones(n, n, dtype=torch.bool).tril() & ~kept
    return torch.where(hidden, mask, copies), torch.where(hidden, copies, -100)


@exercise.mistake
def zero_ignored(tokens, mask, special):
    """Where nothing is asked for the target is 0, a token like any other. Which number does the
    loss ignore?"""
    copies, hidden = parts(tokens, mask, special)
    return torch.where(hidden, mask, copies), torch.where(hidden, copies, 0)


@exercise.alternative
def place_by_place(tokens, mask, special):
    n = tokens.shape[-1]
    inputs = tokens.unsqueeze(-2).repeat(*[1] * (tokens.dim() - 1), n, 1)
    targets = torch.full_like(inputs, -100)
    for i in range(n):
        own = tokens[..., i]
        ordinary = torch.tensor([int(t) not in special for t in own.flatten()]).view(own.shape)
        inputs[..., i, i] = torch.where(ordinary, mask, own)
        targets[..., i, i] = torch.where(ordinary, own, -100)
    return inputs, targets
