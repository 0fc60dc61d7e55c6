"""Which sense of a word MiniLM has in mind, and which a window or an average has (lesson 03)."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.pretrained.minilm import MiniLM

# given a line, and which occurrence of the word: how much nearer it is to its second sense than
# to its first
Way = Callable[..., float]


def states(
    model: MiniLM, line: str, word: str, which: int = 0, *, alone: bool = False
) -> Float[Tensor, "levels 384"]:
    """Return the state of one occurrence of a word: its embedding, then after each block.

    With `alone`, the word may look at nothing but itself, in every block. Raises ValueError for a
    line in which the vocabulary does not find the word so often.
    """
    place = _place(model, line, word, which)
    tokens, mask = model.tokens([line])
    mask = mask.expand(-1, tokens.shape[1], -1).clone()
    if alone:
        mask[:, place] = torch.arange(tokens.shape[1]) == place
    with torch.no_grad():
        levels = [model.norm(model.positions(model.words(tokens)))]
        for block in model.blocks:
            levels.append(block(levels[-1], mask))
    return torch.cat(levels)[:, place]


def neighbours(
    model: MiniLM, line: str, word: str, which: int = 0, near: int = 2
) -> Float[Tensor, "384"]:
    """Return the plain average of the embeddings of `near` tokens on each side of a word."""
    place = _place(model, line, word, which)
    vectors = _embeddings(model, line)
    # `place` counts the token that marks the beginning, too
    beside = [*range(max(place - 1 - near, 0), place - 1), *range(place, place + near)]
    return vectors[[i for i in beside if i < len(vectors)]].mean(0)


def average(model: MiniLM, line: str) -> Float[Tensor, "384"]:
    """Return the plain average of a line's embeddings: no block, no position."""
    return _embeddings(model, line).mean(0)


def described(model: MiniLM, lines: Sequence[str], word: str) -> Float[Tensor, "levels 384"]:
    """Describe a sense of a word by lines that use it so: the mean of the word's states."""
    return torch.stack([states(model, line, word) for line in lines]).mean(0)


def lean(found: Tensor, first: Tensor, second: Tensor) -> Float[Tensor, "*levels"]:
    """Return by how much the cosine with the second sense is larger than that with the first."""
    one, two = (torch.cosine_similarity(found, sense, dim=-1) for sense in (first, second))
    return two - one


def ways(model: MiniLM, word: str, first: Sequence[str], second: Sequence[str]) -> dict[str, Way]:
    """Return four ways to tell two senses of a word apart, each described by some lines.

    The last state of the word, the same where it may look at itself alone, the average of two
    tokens on each side, and the average of the line.
    """

    def told(vector: Callable[[str, int], Tensor], *senses: Tensor) -> Way:
        # what a machine's rounding decides is no difference
        return lambda line, which=0: round(lean(vector(line, which), *senses).item(), 4)

    def averaged(vector: Callable[[str, int], Tensor]) -> Way:
        senses = (
            torch.stack([vector(line, 0) for line in lines]).mean(0) for lines in (first, second)
        )
        return told(vector, *senses)

    seen = [described(model, lines, word)[-1] for lines in (first, second)]
    return {
        "attention": told(lambda line, which: states(model, line, word, which)[-1], *seen),
        "itself alone": told(
            lambda line, which: states(model, line, word, which, alone=True)[-1], *seen
        ),
        "two tokens on each side": averaged(
            lambda line, which: neighbours(model, line, word, which)
        ),
        "average of the line": averaged(lambda line, _: average(model, line)),
    }


def _place(model: MiniLM, line: str, word: str, which: int) -> int:
    encoding = model.tokenizer.encode(line)
    places = [i for i, token in enumerate(encoding.tokens) if token == word.lower()]
    if which >= len(places):
        raise ValueError(
            f"{line!r} should have {word!r} {which + 1} times, as a token of its own, but has it "
            f"{len(places)} times; its tokens are {encoding.tokens}"
        )
    return places[which]


def _embeddings(model: MiniLM, line: str) -> Float[Tensor, "tokens 384"]:
    """Return a line's embeddings, without those of the marks of its beginning and end."""
    [tokens], _ = model.tokens([line])
    return model.words(tokens[1:-1]).detach()
