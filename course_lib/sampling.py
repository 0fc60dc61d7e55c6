"""Sampling: from the scores of the next token to a text (lesson 10)."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor


def temper(logits: Float[Tensor, "... vocab"], temperature: float) -> Float[Tensor, "... vocab"]:
    """Make likely tokens likelier (below 1), or all more alike (above 1): logits / temperature.

    Source: Ackley et al. 1985. Raises ValueError for a temperature that is not positive.
    """
    if not temperature > 0:
        raise ValueError(
            f"a temperature must be positive, not {temperature}: take the argmax for the limit 0"
        )
    return logits / temperature


def top_k(logits: Float[Tensor, "... vocab"], k: int) -> Float[Tensor, "... vocab"]:
    """Keep the k largest logits, and make all others minus infinity.

    Of equal logits the lower ids stay; k above the vocabulary keeps all. Source: Fan et al. 2018.
    Raises ValueError for k < 1.
    """
    if k < 1:
        raise ValueError(f"top-k keeps at least one token, so k must be 1 or more, not {k}")
    if k >= logits.shape[-1]:
        return logits
    # order the tokens from the largest logit down, lower ids first among equals
    order = logits.argsort(dim=-1, descending=True, stable=True)
    # mark the first k of them at their places in the vocabulary
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order[..., :k], True)
    # hide the rest
    return logits.masked_fill(~kept, -torch.inf)


def top_p(logits: Float[Tensor, "... vocab"], p: float) -> Float[Tensor, "... vocab"]:
    """Keep the fewest likeliest tokens whose probabilities sum to at least p; hide the others.

    Hidden logits become minus infinity; one token at least stays, and of equally likely ones the
    lower ids. Also called nucleus sampling. Source: Holtzman et al. 2020, section 3.1. Raises
    ValueError for p outside (0, 1].
    """
    if not 0 < p <= 1:
        raise ValueError(f"p is a share of probability, above 0 and at most 1, not {p}")
    # order the tokens from the likeliest down, lower ids first among equals
    order = logits.argsort(dim=-1, descending=True, stable=True)
    probabilities = torch.softmax(logits, dim=-1).gather(-1, order)
    # a token is needed while those before it sum to less than p
    before = probabilities.cumsum(-1) - probabilities
    # mark the needed ones at their places in the vocabulary, and hide the rest
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before < p)
    return logits.masked_fill(~kept, -torch.inf)


@torch.no_grad()
def generate(
    model: Callable[[Tensor], Tensor],
    prompt: Int[Tensor, " n"],
    max_new_tokens: int,
    max_length: int,
    generator: torch.Generator,
    choose: Callable[[Tensor], Tensor] = lambda logits: logits,
) -> Int[Tensor, " all"]:
    """Go on with a prompt: draw each next token from softmax(choose(logits)).

    The model reads the last `max_length` tokens at most. `choose` is such as
    `lambda logits: top_k(logits, 5)`. Returns the prompt and what was written. Raises ValueError
    for an empty prompt.
    """
    if not len(prompt):
        raise ValueError(
            "a model goes on with a prompt, and this one is empty: give it a line break, at least"
        )
    tokens = prompt
    for _ in range(max_new_tokens):
        # score every token as the next one, by what the model has room for
        logits = model(tokens[-max_length:])[-1]
        # draw one
        probabilities = torch.softmax(choose(logits), dim=-1)
        tokens = torch.cat([tokens, torch.multinomial(probabilities, 1, generator=generator)])
    return tokens
