"""Many processes take the same steps as one, and a killed training goes on."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.files.paths import ROOT
from research.experiments.at_scale import Profile, main, train
from tests import WEEKLY

SMALL = Profile(
    layers=1, d_model=16, heads=2, context=8, batch=8, held=8, steps=6, warm_up=2, keep_every=2
)
TOKENS = (np.arange(2000) ** 2 // 7 % 11).astype(np.uint16)
CPU = torch.device("cpu")


@pytest.mark.skipif(not WEEKLY, reason="once a week")
def test_two_processes_and_one_device_that_holds_less_take_the_same_steps(tmp_path):
    alone = train(SMALL, TOKENS, 11, CPU)
    assert alone == pytest.approx(train(replace(SMALL, held=3), TOKENS, 11, CPU), abs=1e-5)

    TOKENS.tofile(tmp_path / "train.bin")
    words = f"--tokens {tmp_path}/train.bin --vocab 11 --checkpoint {tmp_path}/run.pt"
    words += " --layers 1 --d-model 16 --heads 2 --context 8 --batch 8 --held 2 --steps 6"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*torchrun, "-m", "research.experiments.at_scale", *words.split(), "--warm-up", "2"],
        cwd=ROOT, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.findall(r"loss (.*)", done.stdout) == [f"{alone[-1]:.4f}"]
    assert (tmp_path / "run.pt").is_file()


def test_a_training_that_was_killed_goes_on_to_the_same_losses(tmp_path):
    def killed(step, loss):
        if step == 5:
            raise KeyboardInterrupt

    path = tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        train(SMALL, TOKENS, 11, CPU, path, killed)
    assert train(SMALL, TOKENS, 11, CPU, path) == train(SMALL, TOKENS, 11, CPU)[4:]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--tokens no.bin --vocab 11", "No such file"),
        ("--tokens train.bin --vocab 7 --batch 2 --context 8", "not in a vocabulary of 7"),
        ("--tokens train.bin --vocab 11 --context 4000", "a window needs 4001 tokens, not 2000"),
        ("--tokens train.bin", "needs --vocab"),
    ],
)
def test_bad_input_is_one_sentence(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    TOKENS.tofile("train.bin")
    monkeypatch.setattr(
        sys, "argv", ["", "--layers=1", "--d-model=16", "--heads=2", *words.split()]
    )
    with pytest.raises(SystemExit) as end:
        sys.exit(main())
    assert said in f"{capsys.readouterr().err}{end.value}"
    assert "\n" not in str(end.value)
