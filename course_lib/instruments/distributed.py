"""One training by several processes: each takes its share of every batch, and all stay equal."""

import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor, distributed, nn
from torch.multiprocessing import spawn  # pyright: ignore[reportPrivateImportUsage]
from torch.nn.parallel import DistributedDataParallel

from course_lib.instruments import training
from course_lib.language_model import cross_entropy

Pair = tuple[Tensor, Tensor]  # inputs and targets of a batch, a row a window


def loss(model: nn.Module, pair: Pair) -> Tensor:
    """Return a language model's mean loss on a batch, in nats."""
    inputs, targets = pair
    return cross_entropy(model(inputs), targets)


def train(
    model: nn.Module, batches: Sequence[Pair], *, learning_rate: float, processes: int
) -> list[float]:
    """Change a language model in place, by `processes` of this machine; return each step's loss.

    Each has a copy of the model, on one thread, and runs `training.train` on every
    `processes`-th row of each batch; the gradients are averaged before each step. Where the rows
    of all are equally many, that is the gradient of the whole batch. Source: Li et al. 2020.
    Raises ValueError for a batch that cannot be shared equally.
    """
    for step, (inputs, _) in enumerate(batches, 1):
        if len(inputs) % processes:
            raise ValueError(
                f"the batch of step {step} has {len(inputs)} rows, which {processes} processes "
                "cannot share equally: the mean of their gradients would be another one"
            )
    losses = torch.zeros(processes, len(batches), dtype=torch.float64)
    with tempfile.TemporaryDirectory() as folder:
        # tensors that are handed to a process lie in memory that both see: so they come back
        settings = (processes, Path(folder), model, batches, learning_rate, losses)
        spawn(_train_a_share, settings, nprocs=processes)
    return losses.mean(dim=0).tolist()


def _train_a_share(
    rank: int,
    processes: int,
    folder: Path,
    model: nn.Module,
    batches: Sequence[Pair],
    learning_rate: float,
    losses: Tensor,
) -> None:
    if sys.platform != "win32":
        # they meet on this machine, whatever network it has
        names = [name for _, name in socket.if_nameindex()]
        os.environ["GLOO_SOCKET_IFNAME"] = next(x for x in names if x.startswith("lo"))
    torch.set_num_threads(1)
    meeting = {"init_method": (folder / "meeting").as_uri(), "world_size": processes, "rank": rank}
    distributed.init_process_group("gloo", **meeting)
    own = DistributedDataParallel(deepcopy(model))
    shares = [(inputs[rank::processes], targets[rank::processes]) for inputs, targets in batches]
    with open(os.devnull, "w", encoding="utf8") as nowhere, redirect_stdout(nowhere):
        history = training.train(own, shares, loss, steps=len(shares), learning_rate=learning_rate)
    losses[rank] = torch.tensor(history.losses, dtype=torch.float64)
    distributed.barrier()  # nobody reads the model any more
    if rank == 0:
        model.load_state_dict(own.module.state_dict())
    distributed.destroy_process_group()
