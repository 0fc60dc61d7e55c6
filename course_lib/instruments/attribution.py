"""What a model's answer depends on, measured by changing its input or a unit (lessons 02, 05)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from string import ascii_lowercase
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.data import spelling
from course_lib.occlusion import probability_drops
from course_lib.self_attention import Rule, replaced_rule
from course_lib.seq2seq import START, Seq2Seq


@torch.no_grad()
def letter_drops(
    model: Seq2Seq, word: str, sounds: Sequence[str], rule: Callable = probability_drops
) -> tuple[Float[Tensor, " n"], Float[Tensor, "n letters"]]:
    """Return p, the probability of each sound, and how far each letter's replacement lowers it.

    `rule` is given all letters as replacements. The decoder reads the same sounds throughout
    (teacher forcing). n counts the stop token that follows the sounds.
    """
    target = spelling.encode_sounds([sounds])
    read, expected = target[:, :-1], target[0, 1:]

    def probabilities(sources: Tensor) -> Tensor:
        logits = model(sources, read.expand(len(sources), -1))
        return logits.softmax(-1)[:, range(len(expected)), expected]

    [source], letters = spelling.encode_words([word]), spelling.encode_words([ascii_lowercase])[0]
    drops = rule(probabilities, source, letters[:-1])
    return probabilities(source[None])[0], drops[:, : len(word)]


@torch.no_grad()
def first_sound(
    model: Seq2Seq, word: str, others: Sequence[str], places: Sequence[int]
) -> Float[Tensor, " sounds"]:
    """Return the probabilities of a word's first sound, with some encoder states of other words.

    The states at `places` are those of `others`, words of as many letters; the result is the mean
    over these. The decoder begins as for the word itself. The model must have attention.
    """
    states, first = model.encoder(spelling.encode_words([word] * len(others)))
    states[:, places] = model.encoder(spelling.encode_words(others))[0][:, places]
    hidden = model.decoder(model.embedding(torch.full((len(others), 1), START)), first)
    assert model.attend
    shown = torch.ones(len(others), 1, states.shape[1], dtype=torch.bool)
    contexts, _ = model.attend(hidden, states, shown)
    logits = model.output(torch.cat([hidden, contexts], dim=-1))
    return logits.softmax(-1)[:, 0].mean(0)


@contextmanager
def silenced(layer: nn.Module, head: int, query: int) -> Iterator[None]:
    """Let one head of a multi-head layer hand over zeros to one query, inside the block."""

    def silent(rule: Rule) -> Rule:
        def attend(
            q: Float[Tensor, "*batch query d_k"],
            k: Float[Tensor, "*batch key d_k"],
            v: Float[Tensor, "*batch key d_v"],
            mask: Bool[Tensor, "*#batch #query #key"] | None = None,
        ) -> Float[Tensor, "*batch query d_v"]:
            heard = torch.ones(q.shape[-3], q.shape[-2], 1)
            heard[head, query] = 0
            return heard * rule(q, k, v, mask)

        return attend

    with replaced_rule(layer, silent):
        yield


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
