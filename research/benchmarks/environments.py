"""Environments of their own for other people's tools, which share the course's packages."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from course_lib.files.paths import ROOT

FOLDER = Path(os.environ.get("COURSE_TOOLS", ROOT / "build" / "tools"))
GRADERS = ("nbgrader==0.9.6", "otter-grader==7.0.0")
WRITER = ("xllamacpp==2026.10.11549",)  # llama.cpp, built for any processor with AVX2
ATTENTION = (
    "linformer==0.2.3",
    "reformer-pytorch==1.4.4",
    "local-attention==1.11.2",
    "performer-pytorch==1.1.4",
)


def environment(packages: Sequence[str]) -> dict[str, str]:
    """Return the variables under which the packages' programs run; install them the first time.

    Raises subprocess.CalledProcessError where pip cannot fetch them.
    """
    folder, missing = _install(packages)
    if missing:
        raise subprocess.CalledProcessError(1, ["pip", "install", *missing])
    return os.environ | {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "JUPYTER_PATH": str(Path(sys.prefix, "share", "jupyter")),
    }


def importable(packages: Sequence[str]) -> list[str]:
    """Let this process import the packages, installed the first time; name those not fetched."""
    folder, missing = _install(packages)
    path = _packages_of(folder)
    if path not in sys.path:
        sys.path.append(path)
    return missing


def _install(packages: Sequence[str]) -> tuple[Path, list[str]]:
    """Install into a folder named after the first package; return it, and what pip could not."""
    folder = FOLDER / packages[0].partition("==")[0]
    made = folder / "packages.txt"
    if made.exists() and made.read_text("utf8").split() == list(packages):
        return folder, []
    venv.create(folder, clear=True, with_pip=True)
    # torch, Jupyter and the course are those of this environment, and stay of their versions
    shared = f"{sysconfig.get_path('purelib')}\n{ROOT}\n"
    Path(_packages_of(folder), "course.pth").write_text(shared, "utf8")
    kept = folder / "constraints.txt"
    versions = {f"{package.name}=={package.version}\n" for package in metadata.distributions()}
    kept.write_text("".join(sorted(versions)), "utf8")
    pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", "-c", kept]
    missing = [
        package
        for package in packages
        if subprocess.run([*pip, package], stdout=sys.stderr).returncode
    ]
    if not missing:
        made.write_text("\n".join(packages), "utf8")
    return folder, missing


def _packages_of(folder: Path) -> str:
    return sysconfig.get_path("purelib", vars={"base": str(folder)})
