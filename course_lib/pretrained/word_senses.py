"""Which sense of a word MiniLM has in mind, block by block (lessons 03 and 09)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.pretrained.minilm import MiniLM


def states(
    model: MiniLM, line: str, word: str, which: int = 0, *, alone: bool = False
) -> Float[Tensor, "levels 384"]:
    """Return the state of one occurrence of a word: its embedding, then after each block.

    With `alone`, the word may look at nothing but itself, in every block. Raises ValueError for a
    line in which the vocabulary does not find the word so often.
    """
    encoding = model.tokenizer.encode(line)
    places = [i for i, token in enumerate(encoding.tokens) if token == word.lower()]
    if which >= len(places):
        raise ValueError(
            f"{line!r} should have {word!r} {which + 1} times, as a token of its own, but has it "
            f"{len(places)} times; its tokens are {encoding.tokens}"
        )
    tokens, mask = model.tokens([line])
    mask = mask.expand(-1, tokens.shape[1], -1).clone()
    if alone:
        mask[:, places[which]] = torch.arange(tokens.shape[1]) == places[which]
    with torch.no_grad():
        levels = [model.norm(model.positions(model.words(tokens)))]
        for block in model.blocks:
            levels.append(block(levels[-1], mask))
    return torch.cat(levels)[:, places[which]]


def described(model: MiniLM, lines: Sequence[str], word: str) -> Float[Tensor, "levels 384"]:
    """Describe a sense of a word by lines that use it so: the mean of the word's states."""
    return torch.stack([states(model, line, word) for line in lines]).mean(0)


def lean(found: Tensor, first: Tensor, second: Tensor) -> Float[Tensor, " levels"]:
    """Return by how much the cosine with the second sense is larger than that with the first."""
    one, two = (torch.cosine_similarity(found, sense, dim=-1) for sense in (first, second))
    return two - one
