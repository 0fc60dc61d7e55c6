"""What a model's answer depends on, measured by changing its input (lesson 02)."""

import string
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data import spelling
from course_lib.seq2seq import Seq2Seq


@torch.no_grad()
def probability_drops(
    model: Seq2Seq, word: str, sounds: Sequence[str]
) -> tuple[Float[Tensor, " n"], Float[Tensor, "n letters"]]:
    """Return p, the probability of each sound, and how far each letter's replacement lowers it.

    The drop of p at sound i for letter j is p_i minus its mean over the 25 other letters in place
    of letter j. The decoder reads the same sounds throughout (teacher forcing). n counts the stop
    token that follows the sounds.
    """
    target = spelling.encode_sounds([sounds])
    read, expected = target[:, :-1], target[0, 1:]

    def probabilities(words: Sequence[str]) -> Tensor:
        logits = model(spelling.encode_words(words), read.expand(len(words), -1))
        return logits.softmax(-1)[:, torch.arange(len(expected)), expected]

    [p] = probabilities([word])
    drops = []
    for j, letter in enumerate(word):
        others = string.ascii_lowercase.replace(letter, "")
        replaced = [word[:j] + other + word[j + 1 :] for other in others]
        drops.append(p - probabilities(replaced).mean(0))
    return p, torch.stack(drops, dim=-1)


def token_drops(
    probabilities: Callable[[Int[Tensor, "batch source"]], Float[Tensor, "batch n"]],
    source: Int[Tensor, " source"],
    others: Sequence[int],
    tries: int = 20,
) -> Float[Tensor, "n source"]:
    """Return how far the probabilities fall on average when a source token is replaced.

    Each token has the same `tries` replacements, drawn from `others` by a fixed seed.
    """
    generator = torch.Generator().manual_seed(0)
    drawn = torch.tensor(others)[torch.randint(len(others), (tries,), generator=generator)]
    [p], drops = probabilities(source[None]), []
    for j in range(len(source)):
        replaced = source.repeat(tries, 1)
        replaced[:, j] = drawn
        drops.append(p - probabilities(replaced).mean(0))
    return torch.stack(drops, dim=-1)
