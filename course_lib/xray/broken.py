"""Versions of a model with one part broken, to be looked at beside the whole one.

Each shares its parameters with the model, which stays as it was.
"""

import copy
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from course_lib.self_attention import Rule
from course_lib.transformer import add_and_norm
from course_lib.xray.calls import is_attention

INSIDE = ".sublayer.attention"  # where attention is, in the layer of a block


def without_mask(model: nn.Module) -> nn.Module:
    """Return the model with rules of attention that do not look at their masks."""

    def unmasked(rule: Rule) -> Rule:
        return lambda q, k, v, mask=None: rule(q, k, v, None)

    return _with_rules(model, unmasked)


def without_head(model: nn.Module, layer: str, head: int) -> nn.Module:
    """Return the model with one head off: what it found is 0.

    `layer` is a path such as "decoder.blocks.1.cross_attention", and `head` counts from 0. Raises
    ValueError for a layer or a head that the model does not have.
    """
    layers = [path for path, part in model.named_modules() if is_attention(part)]
    if f"{layer}{INSIDE}" not in layers:
        known = ", ".join(path.removesuffix(INSIDE) for path in layers)
        raise ValueError(f"no attention is called {layer!r} here; there are {known}")
    attention: Any = model.get_submodule(f"{layer}{INSIDE}")
    heads = attention.heads
    if not 0 <= head < heads:
        raise ValueError(f"head counts from 0 to {heads - 1} in this layer, and {head} is none")

    def silenced(rule: Rule) -> Rule:
        def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
            output = rule(q, k, v, mask)
            share = torch.ones(heads, 1, 1).to(output)
            share[head] = 0
            return output * share

        return attend

    return _with_rules(model, silenced, f"{layer}{INSIDE}")


def with_norm(model: nn.Module, norm: Literal["post", "pre"]) -> nn.Module:
    """Return the model with its norms in the other place, by the course's PostNorm or PreNorm.

    Raises ValueError for another word.
    """
    add, twin = add_and_norm(norm), _twin(model)
    parts: list[tuple[str, Any]] = list(twin.named_modules())
    for path, part in parts:
        if hasattr(part, "sublayer") and hasattr(part, "norm_layer"):
            moved = add(part.sublayer, len(part.gain), part.norm_layer)
            moved.gain, moved.bias = part.gain, part.bias
            twin.set_submodule(path, moved)
    return twin.train(model.training)


def _with_rules(model: nn.Module, change: Callable[[Rule], Rule], layer: str = "") -> nn.Module:
    twin = _twin(model)
    for path, part in twin.named_modules():
        if is_attention(part) and layer in ("", path):
            name = "rule" if hasattr(part, "rule") else "attention"
            setattr(part, name, change(getattr(part, name)))
    return twin


def _twin(model: nn.Module) -> nn.Module:
    """Copy a model's parts, but neither its parameters nor its tokenizer."""
    shared = [*model.parameters(), *model.buffers(), getattr(model, "tokenizer", None)]
    return copy.deepcopy(model, {id(x): x for x in shared if x is not None})
