"""The targets of a conversation: what the assistant says, and nothing else."""

import torch
from torch.nn import functional as F

from course_lib.assistant import answer_targets
from course_lib.checking.exercise import GIVEN, Draw, Exercise

exercise = Exercise(
    reference=answer_targets,
    lesson="17",
    title="Learn the answers alone",
    minutes=8,
    difficulty=2,
    # both are names of the same axis
    equivalent=("-1 -> 1",),
    hints=(
        "Take the row 5, 6, 7, 8, 2, 0, of which 5 and 6 are the prompt and 0 is padding. At which "
        "place does the model predict the first token of the answer, and at which one the token "
        "that ends it?",
        "You need two things of the same shape: each place's next token, and whether that token "
        "belongs to the answer. How do you compare the numbers 0 to n - 1 with one number for each "
        "row?",
        "`asked` counts tokens, and places are counted from 0. Which place does the first token of "
        "the answer have, and which place comes before it?",
    ),
    clauses={
        "A row begins with": GIVEN,
        "whose last token ends it": "end_left_out",
        "the rest of the row is padding": "padding_learned_too",
        "the token after it": "not_shifted",
        "-100 otherwise": "zero_where_nothing",
    },
)


def conversation(draw: Draw, n: int, *rows: tuple[int, int]):
    """Draw rows of tokens, of which some may be 0, with the lengths of their prompts and all."""
    asked, lengths = torch.tensor(rows).unbind(-1)
    return draw.integers(0, 50, len(rows), n), asked, lengths


@exercise.cases
def cases(draw: Draw):
    yield "two tokens ask, three answer, one is padding", conversation(draw, 6, (2, 5))
    yield "nothing padded", conversation(draw, 5, (3, 5))
    yield "rows of unequal lengths", conversation(draw, 7, (2, 4), (3, 7), (4, 6))
    yield "an answer of one token", conversation(draw, 6, (4, 5), (5, 6))
    yield "a prompt of one token", conversation(draw, 5, (1, 4), (1, 5), (1, 2))
    yield "a prompt that leaves no room for an answer", conversation(draw, 4, (4, 4), (2, 4))
    yield "as many rows as tokens", conversation(draw, 4, (1, 3), (2, 4), (3, 4), (2, 3))
    yield "one token", conversation(draw, 1, (1, 1), (1, 1))
    tokens, asked, lengths = conversation(draw, 8, (3, 6), (4, 7))
    places = torch.arange(8)
    padding = places >= lengths[:, None]
    yield "padding with a token that others have too", (
        torch.where(padding, tokens[:, :1], tokens), asked, lengths,
    )  # fmt: skip
    ends = (places == lengths[:, None] - 1) | (places == 1) | padding
    yield "one token ends prompts and answers, and pads", (
        tokens.masked_fill(ends, 2), asked, lengths,
    )  # fmt: skip


@exercise.edges
def edges(draw: Draw):
    yield "long rows", conversation(draw, 300, (3, 270), (258, 290), (20, 40))


@exercise.requires("there are as many targets as the answer has tokens, and they are the answer")
def the_answer_itself(answer, draw: Draw):
    tokens, asked, lengths = conversation(draw, 30, (10, 25), (4, 30), (12, 20))
    targets = answer(tokens, asked, lengths)
    rows = zip(tokens, targets, asked.tolist(), lengths.tolist(), strict=True)
    return all(torch.equal(y[y != -100], x[a:b]) for x, y, a, b in rows)


@exercise.requires("other tokens in the prompt and in the padding change no target")
def prompt_is_nothing(answer, draw: Draw):
    tokens, asked, lengths = conversation(draw, 12, (5, 9), (3, 12), (4, 7))
    places = torch.arange(12)
    inside = (places >= asked[:, None]) & (places < lengths[:, None])
    others = torch.where(inside, tokens, draw.integers(50, 90, 3, 12))
    plain = answer(tokens, asked, lengths)
    return (plain != -100).any() and torch.equal(plain, answer(others, asked, lengths))


def shifted(tokens):
    """Give each place the next token, and -100 to the last."""
    return F.pad(tokens[:, 1:], (0, 1), value=-100)


def between(tokens, first, last):
    """Return which places are from `first` on and before `last`, in each row."""
    places = torch.arange(tokens.shape[-1])
    return (places >= first[:, None]) & (places < last[:, None])


@exercise.mistake
def prompt_learned_too(tokens, asked, lengths):
    """The prompt has targets too, so the model also learns to write questions. From which place on
    does the assistant speak?"""
    return torch.where(between(tokens, 0 * asked, lengths - 1), shifted(tokens), -100)


@exercise.mistake
def padding_learned_too(tokens, asked, lengths):
    """The padding behind the answer is asked for too, so the model learns to write padding. Where
    does the row's text end?"""
    rows = between(tokens, asked - 1, 0 * lengths + tokens.shape[-1])
    return torch.where(rows, shifted(tokens), -100)


@exercise.mistake
def every_token(tokens, asked, lengths):
    """Every place has the next token as its target, prompt and padding included: neither `asked`
    nor `lengths` changes anything."""
    return shifted(tokens)


@exercise.mistake
def not_shifted(tokens, asked, lengths):
    """Each place is asked for the token that it has just read, so the model learns to copy. Which
    token is a place to predict?"""
    return torch.where(between(tokens, asked, lengths), tokens, -100)


@exercise.mistake
def token_shifted_mask_not(tokens, asked, lengths):
    """The tokens moved one place to the left and the mask did not, so the answer's first token is
    never asked for, and a token from behind the answer is. The mask is about the token that comes
    next."""
    return torch.where(between(tokens, asked, lengths), tokens.roll(-1, -1), -100)


@exercise.mistake
def token_shifted_mask_not_padded(tokens, asked, lengths):
    """The tokens moved one place to the left and the mask did not, so the answer's first token is
    never asked for, and a token from behind the answer is. The mask is about the token that comes
    next."""
    return torch.where(between(tokens, asked, lengths), shifted(tokens), -100)


@exercise.mistake
def first_token_left_out(tokens, asked, lengths):
    """The first token of the answer is never asked for: the model predicts it at the last place of
    the prompt, and this place has a target too."""
    return torch.where(between(tokens, asked, lengths - 1), shifted(tokens), -100)


@exercise.mistake
def end_left_out(tokens, asked, lengths):
    """The token that ends the answer is never asked for, so the model would never learn to stop. It
    is the last token before the padding."""
    return torch.where(between(tokens, asked - 1, lengths - 2), shifted(tokens), -100)


@exercise.mistake
def both_ends_left_out(tokens, asked, lengths):
    """The answer's first and last token are never asked for: the model would not learn how to begin
    or when to stop. Count the targets of an answer of three tokens."""
    return torch.where(between(tokens, asked, lengths - 2), shifted(tokens), -100)


@exercise.mistake
def one_padding(tokens, asked, lengths):
    """One token too many is asked for: the first one behind the answer, where there is padding.
    Place `lengths` - 1 has the last token of the text: is there a next one?"""
    return torch.where(between(tokens, asked - 1, lengths), shifted(tokens), -100)


@exercise.mistake
def last_of_the_prompt(tokens, asked, lengths):
    """The last token of the prompt is asked for too. It is the template's, and the one after it is
    the first that the assistant writes."""
    return torch.where(between(tokens, asked - 2, lengths - 1), shifted(tokens), -100)


@exercise.mistake
def prompt_instead(tokens, asked, lengths):
    """The prompt has targets and the answer has none: the mask is inverted. Who is to learn to
    speak here?"""
    return torch.where(between(tokens, 0 * asked, asked - 1), shifted(tokens), -100)


@exercise.mistake
def all_but_the_answer(tokens, asked, lengths):
    """Prompt and padding have targets and the answer has none: the mask is inverted. Where is it
    True, and what becomes of the tokens there?"""
    answered = between(tokens, asked - 1, lengths - 1)
    return torch.where(answered, -100, tokens.roll(-1, -1))


@exercise.mistake
def zero_where_nothing(tokens, asked, lengths):
    """Where nothing is asked for the target is 0, a token like any other. Which number does the
    loss ignore?"""
    return torch.where(between(tokens, asked - 1, lengths - 1), shifted(tokens), 0)


@exercise.mistake
def two_further(tokens, asked, lengths):
    """Each place is asked for the token after the next one, as if there had been two shifts."""
    rows = between(tokens, asked - 2, lengths - 2)
    return torch.where(rows, F.pad(tokens, (0, 2), value=-100)[:, 2:], -100)


@exercise.mistake
def one_before(tokens, asked, lengths):
    """Each place has the token *before* it as its target: the shift went to the right. Which way
    does a language model look?"""
    return torch.where(between(tokens, asked + 1, lengths + 1), tokens.roll(1, -1), -100)


@exercise.mistake
def one_place_shorter(tokens, asked, lengths):
    """The row of targets is one place shorter than the row of tokens. The last place has nothing to
    predict, and its target is -100."""
    return torch.where(between(tokens, asked - 1, lengths - 1), shifted(tokens), -100)[:, :-1]


@exercise.mistake
def padding_known_by_zero(tokens, asked, lengths):
    """Padding was told by the token 0, which an answer may have too. `lengths` says where the text
    ends."""
    following = shifted(tokens)
    rows = between(tokens, asked - 1, 0 * lengths + tokens.shape[-1])
    return torch.where(rows & (following != 0), following, -100)


@exercise.mistake
def lengths_of_the_answer(tokens, asked, lengths):
    """`lengths` was taken for the length of the answer alone, so the targets go on into the
    padding. It counts the prompt too."""
    return torch.where(between(tokens, asked - 1, asked + lengths - 1), shifted(tokens), -100)


@exercise.mistake
def first_row_for_all(tokens, asked, lengths):
    """Every row was cut as the first one is. `asked` and `lengths` have a number for each row."""
    rows = between(tokens, asked[:1] - 1, lengths[:1] - 1)
    return torch.where(rows, shifted(tokens), -100)


@exercise.mistake
def in_place(tokens, asked, lengths):
    """The tokens were overwritten with -100, and the model could no longer read its own prompt.
    Make new targets, such as by `clone`."""
    tokens[~between(tokens, asked, lengths)] = -100
    return shifted(tokens)


@exercise.alternative
def row_by_row(tokens, asked, lengths):
    targets = torch.full_like(tokens, -100)
    for row, (first, last) in enumerate(zip(asked.tolist(), lengths.tolist(), strict=True)):
        targets[row, first - 1 : last - 1] = tokens[row, first:last]
    return targets


@exercise.alternative
def hidden_then_moved(tokens, asked, lengths):
    places = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    kept = tokens.clone()
    kept[places < asked.unsqueeze(1)] = -100
    kept[places >= lengths.unsqueeze(1)] = -100
    last = tokens.new_full((len(tokens), 1), -100)
    return torch.cat([kept[:, 1:], last], dim=1)
