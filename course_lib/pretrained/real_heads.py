"""The heads of SmolLM2: what weights they give."""

from collections.abc import Callable
from contextlib import ExitStack

import torch
from einops import repeat
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.attention import dot_scores, softmax
from course_lib.masks import causal_mask
from course_lib.pretrained.smollm2 import SmolLM2
from course_lib.self_attention import Rule, replaced_rule


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
