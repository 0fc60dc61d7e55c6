"""The heads of SmolLM2: what weights they give, and the loss without some of them (lesson 06)."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from einops import repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax
from course_lib.masks import causal_mask
from course_lib.pretrained.smollm2 import GROUPS, HEADS, SmolLM2


@torch.no_grad()
def attention_weights(
    model: SmolLM2, tokens: Int[Tensor, " n"]
) -> Float[Tensor, "layers heads n n"]:
    """Return what each head of each layer gives to the tokens of one text."""
    layers = []

    def recording(rule):
        def attend(q, k, v, mask=None):
            keys = repeat(k, "... groups key d -> ... (groups share) key d", share=HEADS // GROUPS)
            scores = dot_scores(q, keys) / q.shape[-1] ** 0.5
            layers.append(softmax(scores, causal_mask(len(tokens))))
            return rule(q, k, v, mask)

        return attend

    with _ruled(model, dict.fromkeys(range(len(model.rules)), recording)):
        model.states(tokens)
    return torch.stack(layers)


@torch.no_grad()
def losses(
    model: SmolLM2, tokens: Int[Tensor, "batch n"], without: Iterable[tuple[int, int]] = ()
) -> Float[Tensor, "batch n-1"]:
    """Return the loss of each next token in nats, while these heads (layer, head) return 0."""
    off: dict[int, list[int]] = {}
    for layer, head in without:
        off.setdefault(layer, []).append(head)

    def silenced(heads):
        def change(rule):
            def attend(q, k, v, mask=None):
                found = rule(q, k, v, mask).clone()
                found[..., heads, :, :] = 0
                return found

            return attend

        return change

    with _ruled(model, {layer: silenced(heads) for layer, heads in off.items()}):
        logits = model(tokens)[..., :-1, :]
    return F.cross_entropy(logits.mT, tokens[..., 1:], reduction="none")


def previous(tokens: Int[Tensor, "*batch n"]) -> Bool[Tensor, "*batch n n"]:
    """Mark, for each query, the token before it."""
    n = tokens.shape[-1]
    return torch.eye(n).bool().roll(-1, -1).tril(-1).expand(*tokens.shape, n)


def first(tokens: Int[Tensor, "*batch n"]) -> Bool[Tensor, "*batch n n"]:
    """Mark, for each query but the first, the first token of the text."""
    n = tokens.shape[-1]
    return (torch.arange(n) == 0).expand(n, n).tril(-1).expand(*tokens.shape, n)


def same(tokens: Int[Tensor, "*batch n"]) -> Bool[Tensor, "*batch n n"]:
    """Mark, for each query, the last earlier token that is the same as it, if there is one."""
    alike = (tokens.unsqueeze(-1) == tokens.unsqueeze(-2)).tril(-1)
    later = alike.flip(-1).long().cumsum(-1).flip(-1)
    return alike & (later == 1)


def followed(tokens: Int[Tensor, "*batch n"]) -> Bool[Tensor, "*batch n n"]:
    """Mark, for each query, the token that followed the last earlier one that is the same."""
    return same(tokens).roll(1, -1)


@contextmanager
def _ruled(model: SmolLM2, changes: dict) -> Iterator[None]:
    plain = {layer: model.rules[layer].rule for layer in changes}
    for layer, change in changes.items():
        model.rules[layer].rule = change(plain[layer])
    try:
        yield
    finally:
        for layer, rule in plain.items():
            model.rules[layer].rule = rule
