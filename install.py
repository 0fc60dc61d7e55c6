"""`pip install` in one line that moves: `python install.py ...` takes pip's own arguments.

Where uv is on PATH, it installs instead: it is quicker, and on a machine without a GPU it brings
PyTorch's CPU build by itself. Where pip would bring CUDA to such a machine, uv is fetched first.
Needs nothing but Python. Where pip fails, all that it has said is shown.
"""

import importlib.util
import itertools
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

# most modules of the packages are never imported, and Python compiles those that are
PIP = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
CUDA = """\
pip is about to bring PyTorch with CUDA, several gigabytes, and this machine has no NVIDIA GPU.
Two ways out: install uv, and run this again, which then brings PyTorch's CPU build by itself; or
set PIP_EXTRA_INDEX_URL to the index of the CPU build, which PyTorch's site names, and run this."""


def main(arguments: list[str]) -> int:
    """Install, and return the exit status."""
    on_path = shutil.which("uv")
    if uv := [on_path] if on_path else _fetched_uv(arguments):
        if not _by_uv(uv, arguments):
            return 0
        print("uv could not install it, as it says above; now pip tries.", flush=True)
    if _brings_cuda_in_vain(arguments):
        print(CUDA, flush=True)
        if sys.stdout.isatty():
            print("It goes on in 20 seconds; Ctrl-C stops it, and nothing is lost.", flush=True)
            time.sleep(20)
    return _by_pip(arguments)


def _fetched_uv(arguments: list[str]) -> list[str]:
    """Return uv as a command, fetched where pip would bring CUDA in vain; or nothing."""
    if not _brings_cuda_in_vain(arguments):
        return []
    asked = [*PIP, "--quiet", *_options(arguments), "uv"]
    fetched = subprocess.run(asked, capture_output=True).returncode == 0
    return [sys.executable, "-m", "uv"] if fetched else []


def _by_uv(uv: list[str], arguments: list[str]) -> int:
    asked = [*uv, "pip", "install", "--python", sys.executable, *arguments]
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    return subprocess.call([*asked, *quiet], env={"UV_TORCH_BACKEND": "auto", **os.environ})


def _brings_cuda_in_vain(arguments: list[str]) -> bool:
    """Ask pip which torch it would take: whether that needs CUDA, and no GPU is here."""
    has_gpu = Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi")
    if sys.platform != "linux" or has_gpu or importlib.util.find_spec("torch"):
        return False
    asked = [*PIP, "--quiet", "--dry-run", "--no-deps", "--report", "-"]
    asked += [*_options(arguments), "torch"]
    report = subprocess.run(asked, capture_output=True, encoding="utf8").stdout
    try:
        metadata = json.loads(report)["install"][0]["metadata"]
    except (ValueError, LookupError):
        return False  # the installation itself will say what is wrong
    return any("nvidia" in need or "cuda" in need for need in metadata.get("requires_dist", []))


def _options(arguments: list[str]) -> list[str]:
    """Return pip's options, without what is to be installed from here."""
    return arguments[: arguments.index("-e")] if "-e" in arguments else arguments


def _by_pip(arguments: list[str]) -> int:
    start, said = time.monotonic(), []
    with subprocess.Popen(
        [*PIP, "--progress-bar", "off", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf8",
        errors="replace",
    ) as pip:
        for line in _lines(pip):
            said += [line] if line else []
            if sys.stdout.isatty():
                doing = " ".join("".join(said[-1:]).split()[:2])
                found = sum(x.startswith("Collecting") for x in said)
                state = f"{found} packages found, {time.monotonic() - start:.0f} s: {doing}"
                print(f"\r{state:<79.79}", end="", flush=True)
    if sys.stdout.isatty():
        print(f"\r{'':79}\r", end="")
    if pip.returncode:
        print(*said, sep="", file=sys.stderr)
    else:
        installed = [x for x in said if x.startswith("Successfully installed")]
        count = len("".join(installed).split()[2:])
        print(f"Installed {count} packages in {time.monotonic() - start:.0f} s.")
    return pip.returncode


def _lines(process: subprocess.Popen) -> Iterator[str]:
    """Yield what a process says, line by line, and "" in each second in which it says nothing."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in itertools.chain(process.stdout or (), [None]):
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            line = ""
        if line is None:
            return
        yield line


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run it again: it goes on.")
