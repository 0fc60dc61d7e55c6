"""Lesson 10's model and loop for those who have GPUs: one device, or many of them.

    torchrun --nproc-per-node=8 -m research.experiments.at_scale --tokens train.bin --vocab 50257

Without torchrun it trains on one device. Each process has a copy of the model and its share of
each batch, and torch's DistributedDataParallel averages their gradients, so that many devices take
the same steps as one. `--tokens` names a file of 16-bit token numbers, as nanoGPT's `prepare.py`
writes them; without it the characters of the complete works are read. The defaults are GPT-2's
small model with nanoGPT's settings. A run that was killed goes on from its checkpoint.
"""

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from course_lib.data import characters, store
from course_lib.instruments import checkpoint, training
from course_lib.language_model import LanguageModel
from research.experiments.recipes import first_block

WEIGHT_DECAY, BETAS, LEAST = 0.1, (0.9, 0.95), 0.1
TOLD_EVERY = 10  # steps


@dataclass(frozen=True)
class Profile:
    """A model and its training; a step has `batch` windows, of which a device holds `held` at once.

    Source: Radford et al. 2019 (model); Karpathy 2022, nanoGPT's config/train_gpt2.py (training).
    """

    layers: int = 12
    d_model: int = 768
    heads: int = 12
    context: int = 1024
    batch: int = 480
    held: int = 12
    steps: int = 600_000
    warm_up: int = 2_000
    rate: float = 6e-4
    keep_every: int = 1_000
    seed: int = 0


def build(profile: Profile, vocab: int) -> LanguageModel:
    """Make the model, with the same parameters in each process."""
    sizes = (profile.layers, profile.d_model, profile.heads, 4 * profile.d_model, profile.context)
    with training.seeded(profile.seed):
        return LanguageModel(vocab, *sizes, block=first_block)


def share_of_rate(profile: Profile, step: int) -> float:
    """Rise in a straight line, then fall by half a cosine to a tenth."""
    if step < profile.warm_up:
        return (step + 1) / profile.warm_up
    done = (step - profile.warm_up) / (profile.steps - profile.warm_up)
    return LEAST + (1 - LEAST) * (1 + math.cos(math.pi * done)) / 2


def batch_of(profile: Profile, tokens: np.ndarray, step: int) -> Tensor:
    """Return the windows of a step (batch, context + 1), the same in each process."""
    draw = np.random.default_rng((profile.seed, step))
    starts = draw.integers(len(tokens) - profile.context, size=(profile.batch, 1))
    return torch.from_numpy(tokens[starts + np.arange(profile.context + 1)].astype(np.int64))


def train(
    profile: Profile,
    tokens: np.ndarray,
    vocab: int,
    device: torch.device,
    path: Path | None = None,
    tell: Callable[[int, float], None] = lambda step, loss: None,
) -> list[float]:
    """Train in this process, beside the others of torchrun; return the loss of each step.

    On a GPU the products are of bfloat16 numbers. The process of rank 0 keeps checkpoints in
    `path`. Raises ValueError for a batch that cannot be shared out, too few tokens, and a token
    outside the vocabulary.
    """
    many = distributed.is_initialized()
    rank, world = (distributed.get_rank(), distributed.get_world_size()) if many else (0, 1)
    if profile.batch % world:
        raise ValueError(f"{profile.batch} windows cannot be shared equally by {world} processes")
    if len(tokens) <= profile.context:
        raise ValueError(f"a window needs {profile.context + 1} tokens, not {len(tokens)}")
    model = build(profile, vocab).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), betas=BETAS, weight_decay=WEIGHT_DECAY)
    first = checkpoint.resume(path, model, optimizer) if path else 0
    copy = DistributedDataParallel(model) if many else model
    losses = []
    for step in range(first, profile.steps):
        windows = batch_of(profile, tokens, step)
        if (largest := int(windows.max())) >= vocab:
            raise ValueError(
                f"token {largest} is not in a vocabulary of {vocab}: is --vocab right?"
            )
        optimizer.param_groups[0]["lr"] = profile.rate * share_of_rate(profile, step)
        optimizer.zero_grad()
        loss, parts = torch.zeros((), device=device), windows[rank::world].split(profile.held)
        for number, part in enumerate(parts, 1):
            # the gradients of all parts are added up, and go to the other processes with the last
            wait = contextlib.nullcontext
            if isinstance(copy, DistributedDataParallel) and number < len(parts):
                wait = copy.no_sync
            with wait():
                loss += _backward(copy, part.to(device), len(part) * world / profile.batch)
        nn.utils.clip_grad_norm_(model.parameters(), training.CLIP)
        optimizer.step()
        if many:
            distributed.all_reduce(loss)
        losses.append(loss.item() / world)
        if rank == 0:
            tell(step + 1, losses[-1])
            if path and (step + 1 == profile.steps or (step + 1) % profile.keep_every == 0):
                checkpoint.save(path, step + 1, model, optimizer)
    return losses


def _backward(model: Callable[[Tensor], Tensor], windows: Tensor, share: float) -> Tensor:
    """Add the gradients of this share of a batch; return its share of the loss."""
    on_gpu = windows.device.type == "cuda"
    with torch.autocast(windows.device.type, torch.bfloat16, enabled=on_gpu):
        logits = model(windows[:, :-1])
    loss = share * F.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())
    loss.backward()
    return loss.detach()


def read(file: Path | None, vocab: int) -> tuple[np.ndarray, int]:
    """Return the tokens of a file, left on the disk, or those of the works; and their vocabulary.

    Raises OSError, ValueError for a file that is not made of 16-bit numbers, `store.NotFetched`.
    """
    if file:
        return np.memmap(file, np.uint16, "r"), vocab
    learning, _ = characters.split()
    return learning.numpy().astype(np.uint16), len(characters.vocab())


def arguments() -> argparse.Namespace:
    """Read the command line: each field of the profile, the tokens and the checkpoint."""
    parser = argparse.ArgumentParser(
        prog="python -m research.experiments.at_scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tokens", type=Path, help="a file of 16-bit numbers")
    parser.add_argument("--vocab", type=int, help="how many tokens there are; needed with --tokens")
    parser.add_argument("--checkpoint", type=Path, help="a file to keep the training in")
    for field in fields(Profile):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type=type(field.default), default=field.default, metavar="X")
    given = parser.parse_args()
    if given.tokens and not given.vocab:
        parser.error("--tokens needs --vocab: a file does not say how many tokens there are")
    return given


def main() -> str | None:
    """Train; return what went wrong, if something did, in one sentence."""
    given = arguments()
    profile = Profile(**{field.name: getattr(given, field.name) for field in fields(Profile)})
    gpu, many = torch.cuda.is_available(), "LOCAL_RANK" in os.environ
    device = (
        torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if gpu else torch.device("cpu")
    )

    def tell(step: int, loss: float) -> None:
        if step % TOLD_EVERY == 0 or step == profile.steps:
            print(f"step {step:,} of {profile.steps:,}: loss {loss:.4f}", flush=True)

    if many:
        distributed.init_process_group("nccl" if gpu else "gloo")
    try:
        tokens, vocab = read(given.tokens, given.vocab)
        train(profile, tokens, vocab, device, given.checkpoint, tell)
    except (OSError, ValueError, checkpoint.CheckpointError, store.NotFetched) as error:
        return f"at_scale: {error}"
    finally:
        if many:
            distributed.destroy_process_group()
    return None


if __name__ == "__main__":
    sys.exit(main())
