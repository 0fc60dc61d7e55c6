"""Checkpoints: a training that was interrupted goes on to the same parameters, to the bit.

What decides the rest of a training is the parameters, the optimiser's moments, how many steps were
taken, and the state of torch's random numbers, which dropout draws from. All of it is one file,
written whole or not at all. Batches are not in it: make the batch of a step from its number.
"""

import contextlib
import errno
import glob
import io
import pickle
from pathlib import Path

import torch
from torch import nn

from course_lib.files.atomic import write_atomically

FORMAT = 1  # another one for another content
KIND = "course checkpoint"


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written or used; the message says why, and what is to be done."""


def save(path: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Keep a training as it is after so many steps, in place of the file that was there.

    The file is written beside the old one, and takes its name only when it is whole and on the
    disk. Raises CheckpointError where that fails, such as on a full disk: the old file is left.
    """
    content = {
        "kind": KIND,
        "format": FORMAT,
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
    }
    buffer = io.BytesIO()
    torch.save(content, buffer)
    try:
        write_atomically(path, buffer.getvalue())
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror or str(error)
        kept = "the older checkpoint is still whole" if path.is_file() else "nothing was kept"
        raise CheckpointError(
            f"step {step} could not be kept in {path}: {reason}; {kept}"
        ) from None


def resume(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Bring a training to where the checkpoint left it; return the steps taken, 0 without a file.

    What a killed process had written of its next checkpoint is deleted. Raises CheckpointError for
    a file that is no checkpoint, is damaged, or is of another version or another model; model and
    optimizer are then as they were.
    """
    for half in path.parent.glob(f".{glob.escape(path.name)}.*"):
        with contextlib.suppress(OSError):
            half.unlink()
    if not path.is_file():
        return 0
    content = _read(path)
    _refuse_another_model(path, content["model"], model.state_dict())
    names = [len(group["params"]) for group in optimizer.state_dict()["param_groups"]]
    if names != [len(group["params"]) for group in content["optimizer"]["param_groups"]]:
        raise CheckpointError(
            f"{path} has the moments of other groups of parameters: was the optimiser made in "
            "another way?"
        )
    model.load_state_dict(content["model"])
    optimizer.load_state_dict(content["optimizer"])
    torch.set_rng_state(content["random"])
    return content["step"]


def _read(path: Path) -> dict:
    """Load what `save` wrote; no code in a stranger's file is run."""
    try:
        content = torch.load(io.BytesIO(path.read_bytes()), weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError, EOFError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path} is no checkpoint, or a damaged one: delete it to begin anew, or take another"
        ) from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise CheckpointError(f"{path} was not written by the course: it is no checkpoint of a run")
    if content["format"] != FORMAT:
        raise CheckpointError(
            f"{path} has the format {content['format']} and this version reads {FORMAT}: begin "
            "anew, or go on with the version that wrote it"
        )
    return content


def _refuse_another_model(path: Path, kept: dict, own: dict) -> None:
    """Raise CheckpointError unless all parameters have the same names and shapes."""
    if missing := sorted(kept.keys() ^ own.keys()):
        raise CheckpointError(
            f"{path} is of another model: only one of the two has {missing[0]}. Build the model as "
            "it was, or begin anew in another file"
        )
    for name, value in own.items():
        if kept[name].shape != value.shape:
            raise CheckpointError(
                f"{path} is of another model: {name} is {tuple(kept[name].shape)} there and "
                f"{tuple(value.shape)} here. Build the model as it was, or begin anew in another "
                "file"
            )
