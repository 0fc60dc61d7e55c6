"""A training that is interrupted, however rudely, ends where an uninterrupted one does."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from course_lib.files import atomic
from course_lib.instruments import checkpoint
from tests import WEEKLY

KILLED = Path(__file__).with_name("killed_training.py")
KILLS = 20 if WEEKLY else 5


def new(d=4, seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, d), nn.Dropout(0.5), nn.Linear(d, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def step(model, optimizer, number):
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(number))
    optimizer.zero_grad()
    model(x).square().sum().backward()
    optimizer.step()


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_a_resumed_training_ends_with_the_same_bits(tmp_path):
    path = tmp_path / "run.pt"
    whole, optimizer = new()
    for i in range(10):
        step(whole, optimizer, i)
        if i == 5:
            checkpoint.save(path, i + 1, whole, optimizer)
    model, optimizer = new(seed=7)
    assert not same(model, whole)
    for i in range(checkpoint.resume(path, model, optimizer), 10):
        step(model, optimizer, i)
    assert same(model, whole)


@pytest.mark.parametrize("left_out", ["optimizer", "random"])
def test_each_part_of_a_checkpoint_is_needed(tmp_path, left_out, monkeypatch):
    path = tmp_path / "run.pt"
    whole, optimizer = new()
    for i in range(8):
        step(whole, optimizer, i)
        if i == 3:
            checkpoint.save(path, i + 1, whole, optimizer)
    model, optimizer = new(seed=7)
    if left_out == "random":
        monkeypatch.setattr(torch, "set_rng_state", lambda state: None)
    else:
        monkeypatch.setattr(optimizer, "load_state_dict", lambda state: None)
    for i in range(checkpoint.resume(path, model, optimizer), 8):
        step(model, optimizer, i)
    assert not same(model, whole)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, to be quick")
def test_kills_change_nothing_and_leave_no_half_file(tmp_path):
    command = [sys.executable, str(KILLED), str(tmp_path), str(KILLS)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    kills, *begun, equal = ran.stdout.split()
    assert int(kills) == len(begun) == KILLS
    assert len(set(begun)) >= KILLS // 4, "children began at different steps"
    assert equal == "equal"
    assert sorted(os.listdir(tmp_path)) == ["killed.pt", "whole.pt"]


def test_what_a_killed_process_left_is_cleared_away_and_nothing_else(tmp_path):
    names = [".run.pt.x1_z", "run.pt.x1_z", ".other.pt.x1_z"]
    for name in names:
        (tmp_path / name).write_text("half a file")
    assert checkpoint.resume(tmp_path / "run.pt", *new()) == 0
    assert sorted(os.listdir(tmp_path)) == sorted(names[1:])


def test_without_a_file_a_training_begins_at_step_0(tmp_path):
    model, optimizer = new()
    assert checkpoint.resume(tmp_path / "none.pt", model, optimizer) == 0


def refused(path, message, d=4):
    model, optimizer = new(d)
    before = [x.clone() for x in model.parameters()]
    with pytest.raises(checkpoint.CheckpointError, match=message) as raised:
        checkpoint.resume(path, model, optimizer)
    assert "\n" not in str(raised.value)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_another_model_is_named_by_what_differs(tmp_path):
    path = tmp_path / "run.pt"
    checkpoint.save(path, 1, *new())
    refused(path, r"another model: 0.weight is \(4, 3\) there and \(6, 3\) here", d=6)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.raises(checkpoint.CheckpointError, match=r"only one of the two has 0\.bias"):
        checkpoint.resume(path, model, optimizer)


def test_other_groups_of_parameters_are_refused(tmp_path):
    path = tmp_path / "run.pt"
    checkpoint.save(path, 1, *new())
    model, _ = new()
    split = [{"params": [x]} for x in model.parameters()]
    with pytest.raises(checkpoint.CheckpointError, match="other groups of parameters"):
        checkpoint.resume(path, model, torch.optim.AdamW(split))


def test_another_version_a_damaged_file_and_no_checkpoint_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    checkpoint.save(path, 1, *new())
    whole = path.read_bytes()
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    refused(path, "has the format 1 and this version reads 2")
    monkeypatch.undo()
    for damaged in (whole[: len(whole) // 2], b"", b"not a file of torch's"):
        path.write_bytes(damaged)
        refused(path, "no checkpoint, or a damaged one")
    torch.save({"weight": torch.ones(2)}, path)
    refused(path, "not written by the course")


@pytest.mark.parametrize("when", ["write", "fsync"])
def test_a_full_disk_leaves_the_older_checkpoint(tmp_path, monkeypatch, when):
    path = tmp_path / "run.pt"
    checkpoint.save(path, 1, *new())
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync" if when == "fsync" else "fdopen", full)
    with pytest.raises(checkpoint.CheckpointError, match="disk is full; the older checkpoint is"):
        checkpoint.save(path, 2, *new())
    with pytest.raises(checkpoint.CheckpointError, match="disk is full; nothing was kept"):
        checkpoint.save(tmp_path / "other.pt", 2, *new())
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.pt"]
