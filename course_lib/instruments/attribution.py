"""What a model's answer depends on, measured by changing its input or a unit (lessons 02, 05)."""

import string
from collections.abc import Callable, Sequence
from typing import Any

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


@torch.no_grad()
def read_units(
    model: Any, block: int, text: str, units: Callable[[Float[Tensor, "n d_ff"]], object]
) -> Float[Tensor, " vocab"]:
    """Let SmolLM2 read a text; return the logits of the token that follows it.

    `units` is called with what the hidden units of one block's network hold for each token, and
    may change it in place.
    """
    network = model.blocks[block].feed_forward.sublayer
    hook = network.w_2.register_forward_pre_hook(lambda _, given: units(given[0]))
    try:
        return model(torch.tensor(model.tokenizer.encode(text).ids))[-1]
    finally:
        hook.remove()
