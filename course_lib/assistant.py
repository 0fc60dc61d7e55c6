"""An assistant: what it learns of a conversation, and what it may write (lesson 17)."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from course_lib.pretraining import IGNORED


def answer_targets(
    tokens: Int[Tensor, "batch n"],
    asked: Int[Tensor, " batch"],
    lengths: Int[Tensor, " batch"],
) -> Int[Tensor, "batch n"]:
    """Ask for the tokens of the answers, and for nothing else: return the targets.

    A row begins with `asked` tokens of the prompt, one at least. The answer follows, whose last
    token ends it, up to `lengths` tokens; the rest of the row is padding. The target of a place is
    the token after it if that belongs to the answer, and -100 otherwise. Source: Touvron et al.
    2023, section 3.1.

    >>> tokens = torch.tensor([[5, 6, 7, 8, 2, 0]])  # 5 6 asks, 7 8 2 answers, 0 is padding
    >>> answer_targets(tokens, torch.tensor([2]), torch.tensor([5]))
    tensor([[-100,    7,    8,    2, -100, -100]])
    """
    # number the places of the tokens that come next
    places = torch.arange(1, tokens.shape[-1] + 1, device=tokens.device)
    # find those that belong to the answer: behind the prompt, before the padding
    answered = (places >= asked[:, None]) & (places < lengths[:, None])
    # give each place the token one further right; after the last there is none
    following = F.pad(tokens[:, 1:], (0, 1))
    # keep the answers' tokens
    return torch.where(answered, following, IGNORED)


def constrained(
    score: Callable[[list[int], int], Tensor], prompt: list[int], allowed: Sequence[list[int]]
) -> list[int]:
    """Write one of the allowed answers: at each step the likeliest token that can still become one.

    `score(tokens, rows)` returns the scores of the next token after each of the last `rows` tokens,
    of shape (rows, vocab). Each allowed answer is a list of tokens that ends with a token that no
    other place has, so that none is the beginning of another. Returns the answer's tokens. Source:
    Willard & Louf 2023, section 2, for a list in place of a grammar.

    >>> def score(tokens, rows):  # 3 is likeliest, then 2, then 1
    ...     return torch.arange(4.0).expand(rows, 4)
    >>> constrained(score, [1, 2], [[1, 2, 0], [1, 1, 0], [2, 1, 0]])
    [2, 1, 0]
    """
    written = []
    while written not in allowed:
        n = len(written)
        # collect the tokens that come next in an answer that begins with what is written
        possible = {answer[n] for answer in allowed if answer[:n] == written}
        # score the next token, and write the best of these
        [scores] = score(prompt + written, 1).tolist()
        written = [*written, max(possible, key=scores.__getitem__)]
    return written
