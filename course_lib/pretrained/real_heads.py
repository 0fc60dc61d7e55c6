"""The heads of SmolLM2: what weights they give, and the loss without some of them (lesson 06)."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack

import torch
from einops import repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from course_lib.attention import dot_scores, softmax
from course_lib.masks import causal_mask
from course_lib.multi_head import replaced_rule
from course_lib.pretrained.smollm2 import SmolLM2
from course_lib.self_attention import Rule


@torch.no_grad()
def attention_weights(
    model: SmolLM2, tokens: Int[Tensor, "*batch n"]
) -> Float[Tensor, "layers *batch heads n n"]:
    """Return what each head of each layer gives to the tokens of its text."""
    layers: list[Tensor] = []
    with ExitStack() as replaced:
        for rule in model.rules:
            replaced.enter_context(replaced_rule(rule, recording(layers)))
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
    with ExitStack() as replaced:
        for layer, heads in off.items():
            replaced.enter_context(replaced_rule(model.rules[layer], silenced(heads)))
        logits = model(tokens)[..., :-1, :]
    return F.cross_entropy(logits.mT, tokens[..., 1:], reduction="none")


def recording(layers: list[Tensor]) -> Callable[[Rule], Rule]:
    """Let a rule of grouped queries attend causally, and append its weights to `layers`."""

    def change(rule: Rule) -> Rule:
        def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
            share = q.shape[-3] // k.shape[-3]
            keys = repeat(k, "... groups key d -> ... (groups share) key d", share=share)
            scores = dot_scores(q, keys) / q.shape[-1] ** 0.5
            layers.append(softmax(scores, causal_mask(q.shape[-2])))
            return rule(q, k, v, mask)

        return attend

    return change


def silenced(heads: list[int]) -> Callable[[Rule], Rule]:
    """Let these heads of a rule find nothing."""

    def change(rule: Rule) -> Rule:
        def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
            found = rule(q, k, v, mask).clone()
            found[..., heads, :, :] = 0
            return found

        return attend

    return change


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
