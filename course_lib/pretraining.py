"""Masked language modelling: what BERT is trained to do (lesson 12)."""

import torch
from jaxtyping import Int
from torch import Tensor

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
    original tokens where chosen, and -100 elsewhere. The same seed makes the same choice. Source:
    Devlin et al. 2019, section 3.1, task 1. Raises ValueError unless 0 <= share <= 1.
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
