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


def install(*arguments, path, python=sys.executable, program=INSTALL):
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment = {**own, "PATH": str(path), "PIP_CONFIG_FILE": os.devnull}
    asked = [python, *program, *arguments]
    return subprocess.run(asked, capture_output=True, text=True, env=environment)


def stand_in(folder, name, about="", **files):
    """Make a wheel that pip takes for a package's newest one."""
    with zipfile.ZipFile(folder / f"{name}-9999-py3-none-any.whl", "w") as wheel:
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 9999\n{about}"
        files[f"{name}-9999.dist-info/METADATA"] = about
        files[f"{name}-9999.dist-info/WHEEL"] = "Wheel-Version: 1.0\nTag: py3-none-any\n"
        files[f"{name}-9999.dist-info/RECORD"] = ""
        for path, text in files.items():
            wheel.writestr(path, text)


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
    stand_in(tmp_path, "torch", f"Requires-Dist: {needs}\n")
    python = tmp_path / "environment" / "bin" / "python"
    done = install("--find-links", str(tmp_path), "pip", path=tmp_path, python=str(python))
    assert done.returncode == 0, done.stderr
    assert ("no NVIDIA GPU" in done.stdout) == (needs == "nvidia-cublas")


@pytest.mark.skipif(sys.platform != "linux" or HAS_GPU, reason="asked on Linux without a GPU")
def test_uv_is_fetched_where_pip_would_bring_gigabytes_in_vain(tmp_path):
    venv.create(tmp_path / "environment", with_pip=True)
    stand_in(tmp_path, "torch", "Requires-Dist: nvidia-cublas\n")
    stand_in(tmp_path, "uv", **{"uv/__main__.py": "import sys; print('uv', *sys.argv[1:3])"})
    python = str(tmp_path / "environment" / "bin" / "python")
    asked = ["--no-index", "--find-links", str(tmp_path), "-e", "."]
    done = install(*asked, path=tmp_path, python=python, program=INSTALL[:1])
    assert (done.stdout, done.returncode) == ("uv pip install\n", 0), done.stderr
