"""What a model's answer depends on, measured by changing its input (lesson 02)."""

import string
from collections.abc import Sequence

import torch
from jaxtyping import Float
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
