"""Train in children that are killed, and once in peace: `killed_training.py FOLDER KILLS`.

A child is forked from a process that has loaded torch, so that twenty take a few seconds. Prints
the number of kills, the steps at which children began, and whether the two ends are equal.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn

from course_lib.instruments import checkpoint, training
from course_lib.language_model import LanguageModel, cross_entropy, examples

STEPS, KILLS = 150, int(sys.argv[2])
torch.set_num_threads(1)


def new():
    with training.seeded(0):
        model = LanguageModel(11, 2, 24, 2, 48, max_length=8)
    model.blocks.insert(1, _DropoutBlock())
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


class _DropoutBlock(nn.Module):
    """What draws random numbers on the way, so that their state matters."""

    def forward(self, x, mask):
        return nn.functional.dropout(x, 0.1)


def train(path, report=None):
    """Train to the end, from where the checkpoint was left, and keep every step."""
    model, optimizer = new()
    torch.manual_seed(1)
    begun = checkpoint.resume(path, model, optimizer)
    if report:
        os.write(report, bytes([begun]))
    for step in range(begun, STEPS):
        text = torch.randint(11, (33,), generator=torch.Generator().manual_seed(step))
        inputs, targets = examples(text, 8, 8)
        optimizer.zero_grad()
        cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        checkpoint.save(path, step + 1, model, optimizer)
        if report:
            os.write(report, b".")
    return model


def killed_child(path, steps, delay):
    """Let a child train, kill it some time after so many steps, and return where it began."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        train(path, write)
        os._exit(0)
    begun, *_ = (os.read(read, 1) for _ in range(1 + steps))
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "it was killed, and did not come to its end"
    os.close(read)
    os.close(write)
    return begun[0]


def main(folder):
    draw = random.Random(0)
    # first in peace, which also loads what children would each have to load
    whole, path = train(folder / "whole.pt"), folder / "killed.pt"
    # up to ten milliseconds later: in the middle of a step, or of its saving
    begun = [killed_child(path, draw.randint(0, 6), draw.random() / 100) for _ in range(KILLS)]
    pairs = zip(whole.parameters(), train(path).parameters(), strict=True)
    equal = all(torch.equal(a, b) for a, b in pairs)
    print(len(begun), *begun, "equal" if equal else "unequal")


main(Path(sys.argv[1]))
