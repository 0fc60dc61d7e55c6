"""What a pass costs, and whether two ways to compute one thing agree (lessons 12 to 14)."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Run = Callable[[], Tensor]


def random_vectors(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return normal random numbers of this shape, a leaf that gradients flow to."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def seconds(run: Run, times: int = 3) -> float:
    """Return the CPU seconds of `run()` and its backward pass: the least of so many times.

    CPU time counts all threads, and does not grow when other programs share the processor. Where
    the environment variable COURSE_CLOCK is below 1, as in tests, once is enough.
    """
    taken = []
    for _ in range(times if float(os.environ.get("COURSE_CLOCK", "1")) >= 1 else 1):
        start = time.process_time()
        run().sum().backward()
        taken.append(time.process_time() - start)
    return min(taken)


def expect(claim: str, holds: bool, came: Any) -> None:
    """Show whether a claim about time holds here; no clock stops a notebook.

    (A claim about what is computed is an assertion, one about a training `training.expect`.)
    """
    note = "" if holds else " Here it does not: another processor, or other work beside it."
    print(f"{'✓' if holds else '✗'} expected: {claim}. Measured: {came}.{note}")


def saved_bytes(run: Callable[[], Any], besides: Sequence[Tensor] = ()) -> int:
    """Return the bytes that autograd saves in `run()` for the backward pass, each storage once.

    That is the activation memory: tensors that a forward pass makes and drops do not count.
    Tensors in `besides`, such as a model's parameters, do not count either.
    """
    known = {x.untyped_storage().data_ptr() for x in besides}
    saved: dict[int, torch.UntypedStorage] = {}

    def pack(x: Tensor) -> Tensor:
        # held until the end, or another tensor may get the same address
        saved[x.untyped_storage().data_ptr()] = x.untyped_storage()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        run()
    return sum(storage.nbytes() for place, storage in saved.items() if place not in known)


def largest_difference(ours: Tensor, theirs: Tensor, *leaves: Tensor) -> float:
    """Return the largest difference between two results, and between their gradients.

    The gradients are those of `leaves`, for one random gradient of the result.
    """
    generator = torch.Generator().manual_seed(0)
    cotangent = torch.randn(theirs.shape, generator=generator, dtype=theirs.dtype)
    sides = [(y, *torch.autograd.grad(y, leaves, cotangent)) for y in (ours, theirs)]
    return max((one - other).abs().max().item() for one, other in zip(*sides, strict=True))
