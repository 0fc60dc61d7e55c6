"""`install.py` is pip, quiet as long as all goes well, or uv where that is."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from course_lib.files.paths import ROOT
from tests import WEEKLY

INSTALL = [str(ROOT / "install.py"), "--no-index", "--dry-run"]
HAS_GPU = Path("/proc/driver/nvidia").exists()


def install(*arguments, path, python=sys.executable):
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment = {**own, "PATH": str(path), "PIP_CONFIG_FILE": os.devnull}
    asked = [python, *INSTALL, *arguments]
    return subprocess.run(asked, capture_output=True, text=True, env=environment)


def test_what_goes_well_is_one_line(tmp_path):
    done = install("packaging", path=tmp_path)
    assert done.stdout.startswith("Installed 0 packages in ")
    assert (done.stdout.count("\n"), done.stderr, done.returncode) == (1, "", 0)


def test_what_fails_is_shown_in_full(tmp_path):
    done = install("packaging", "no-such-package-of-this-course", path=tmp_path)
    assert done.returncode == 1
    assert "Requirement already satisfied: packaging" in done.stderr
    assert "No matching distribution found for no-such-package-of-this-course" in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for uv is a shell script")
@pytest.mark.parametrize("status", [0, 2])
def test_uv_installs_where_it_is_and_pip_where_uv_fails(tmp_path, status):
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\necho "$UV_TORCH_BACKEND: $*"\nexit {status}\n')
    uv.chmod(0o755)
    lines = install("packaging", path=tmp_path).stdout.splitlines()
    asked = f"--python {sys.executable} --no-index --dry-run packaging --quiet"
    assert lines[0] == f"auto: pip install {asked}"
    assert len(lines) == (3 if status else 1)
    assert not status or lines[2].startswith("Installed 0 packages in ")


@pytest.mark.skipif(sys.platform != "linux" or HAS_GPU, reason="asked on Linux without a GPU")
@pytest.mark.parametrize("needs", ["nvidia-cublas", *(["filelock"] if WEEKLY else [])])
def test_gigabytes_in_vain_are_announced(tmp_path, needs):
    venv.create(tmp_path / "environment", with_pip=True)
    with zipfile.ZipFile(tmp_path / "torch-2.99-py3-none-any.whl", "w") as wheel:
        about = f"Metadata-Version: 2.1\nName: torch\nVersion: 2.99\nRequires-Dist: {needs}\n"
        wheel.writestr("torch-2.99.dist-info/METADATA", about)
        wheel.writestr("torch-2.99.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("torch-2.99.dist-info/RECORD", "")
    python = tmp_path / "environment" / "bin" / "python"
    done = install("--find-links", str(tmp_path), "pip", path=tmp_path, python=str(python))
    assert done.returncode == 0, done.stderr
    assert ("no NVIDIA GPU" in done.stdout) == (needs == "nvidia-cublas")
