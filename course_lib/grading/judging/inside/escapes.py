"""Tries to get out of a level of isolation: `python -m course_lib.grading.judging.inside.escapes`.

Its arguments are the level, a file that is not to be read, a process that is not to be reached, and
what may be seen. It prints what it got at, as JSON, or why the level cannot be had.
"""

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from course_lib.grading.judging.inside import confinement

SECONDS, MEMORY = 200, 2**31  # as answers usually have


def main(level: str, secret: str, process: int, paths: list[Path]) -> None:
    """Fork a child as the fork server does, and let it try."""
    try:
        if child := confinement.fork(level):
            os.waitpid(child, 0)
            return
        confinement.confine(level, SECONDS, MEMORY, paths)
        print(json.dumps({"reached": _reached(secret, process)}), flush=True)
    except OSError as error:
        print(json.dumps({"error": str(error)}), flush=True)


def _reached(secret: str, process: int) -> list[str]:
    attempts: dict[str, Callable] = {
        "files": lambda: Path(secret).read_bytes(),
        "the rights to files": lambda: os.chmod(secret, 0o600),
        "the network": lambda: socket.socket().close(),
        "new processes": lambda: os.fork() or os._exit(0),
        "other processes": lambda: os.kill(process, 0),
    }
    reached = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError:
            continue
        reached.append(name)
    return reached


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), [Path(path) for path in sys.argv[4:]])
