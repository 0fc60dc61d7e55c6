"""`pip install` in one line that moves: `python install.py ...` takes pip's own arguments.

Needs nothing but Python. Where pip fails, all that it has said is shown.
"""

import itertools
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

# most modules of the packages are never imported, and Python compiles those that are
PIP = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]


def main(arguments: list[str]) -> int:
    """Install, and return pip's exit status."""
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
    sys.exit(main(sys.argv[1:]))
