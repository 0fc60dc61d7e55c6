"""Masked language modelling, and what a pretrained encoder is used for (lesson 16)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.language_model import cross_entropy
from course_lib.real_models import mean_pool

IGNORED = -100  # the target of a token that is not predicted: torch's `ignore_index`


def mask_tokens(
    tokens: Int[Tensor, "*batch n"],
    share: float,
    mask: int,
    vocab: int,
    special: tuple[int, ...],
    seed: int,
) -> tuple[Int[Tensor, "*batch n"], Int[Tensor, "*batch n"]]:
    """Hide some tokens, and ask for them: returns (inputs, targets).

    Each token that is not in `special` is chosen with probability `share`. Of the chosen, 80 %
    become `mask`, 10 % a random id below `vocab`, and 10 % stay as they are; the targets are the
    original tokens where chosen, and -100 elsewhere. The same seed makes the same choice; torch's
    own random state stays as it was. Source: Devlin et al. 2019, section 3.1, task 1. Raises
    ValueError unless 0 <= share <= 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share is a probability, from 0 to 1, and not {share}")
    generator = torch.Generator(tokens.device).manual_seed(seed)

    def uniform() -> Tensor:
        return torch.rand(tokens.shape, generator=generator, device=tokens.device)

    # choose among the tokens that are not special
    allowed = ~torch.isin(tokens, torch.tensor(special, dtype=tokens.dtype, device=tokens.device))
    chosen = allowed & (uniform() < share)
    # draw what becomes of each chosen one
    fate = uniform()
    noise = torch.randint(vocab, tokens.shape, generator=generator, device=tokens.device)
    # 80 % are masked, 10 % are random, the rest stay
    inputs = torch.where(chosen & (fate < 0.8), mask, tokens)
    inputs = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), noise, inputs)
    # ask for the chosen ones alone
    targets = torch.where(chosen, tokens, IGNORED)
    return inputs, targets


def masked_loss(
    states: Float[Tensor, "*batch n d_model"],
    table: Float[Tensor, "vocab d_model"],
    targets: Int[Tensor, "*batch n"],
) -> Float[Tensor, ""]:
    """Average -log p(target) over the places that have a target, in nats.

    A target of -100 is none. Only the states of places with a target meet the table, which scores
    every token of the vocabulary: time and memory O(chosen vocab d_model). Without a target the
    loss is 0, and so is its gradient. Source: Devlin et al. 2019, section 3.1, task 1.
    """
    if (targets == -100).all():
        return states[..., :0].sum()
    # keep the states of the places that are asked for
    asked = targets != -100
    chosen = states[asked]
    # score every token of the vocabulary there
    logits = chosen @ table.mT
    # average the losses of the tokens that were there
    return cross_entropy(logits, targets[asked])


def hide_each(
    tokens: Int[Tensor, "*batch n"], mask: int, special: tuple[int, ...]
) -> tuple[Int[Tensor, "*batch n n"], Int[Tensor, "*batch n n"]]:
    """Copy a text once for each of its tokens, with this one token hidden: (inputs, targets).

    Copy i has `mask` at place i, and its only target there is the token; all other targets are
    -100. A token in `special` is never hidden: its copy is the text itself, without a target.
    Memory O(n^2). Source: Salazar et al. 2020, section 2.1.
    """
    n = tokens.shape[-1]
    # copy the text once for each of its tokens
    copies = tokens.unsqueeze(-2).expand(*tokens.shape, n)
    # in copy i, choose token i, if it is not special
    kept = torch.isin(copies, torch.tensor(special, dtype=tokens.dtype, device=tokens.device))
    hidden = torch.eye(n, dtype=torch.bool, device=tokens.device) & ~kept
    # hide it
    inputs = torch.where(hidden, mask, copies)
    # ask for what is hidden, and for nothing else
    targets = torch.where(hidden, copies, IGNORED)
    return inputs, targets


def classify(
    states: Float[Tensor, "*batch n d_model"],
    mask: Bool[Tensor, "*batch n"],
    w: Float[Tensor, "d_model classes"],
    b: Float[Tensor, " classes"],
) -> Float[Tensor, "*batch classes"]:
    """Score the classes of each text: a linear head on the mean of its real tokens' states.

    Real is where `mask` is True. Source: Howard & Ruder 2018, section 3.3, whose head also has a
    maximum and the last state.
    """
    # describe each text by the mean of its real tokens
    pooled = mean_pool(states, mask)
    # score the classes
    return pooled @ w + b
