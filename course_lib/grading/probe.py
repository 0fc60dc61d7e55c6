"""Which levels of isolation this machine offers: each is started and tried, not looked up."""

import os
import sys
import tempfile
from functools import cache

from course_lib.exercises.answer import Request
from course_lib.grading.isolation import FIXES, LEVELS, Level, NoIsolation
from course_lib.grading.sandbox import Sandbox

ESCAPES = """
import os, socket

def escapes():
    tried = {
        "files": lambda: open(SECRET).read(),
        "the network": socket.socket,
        "new processes": lambda: os.fork() or os._exit(0),
        "other processes": lambda: os.kill(PARENT, 0) or os.kill(os.getppid(), 0),
    }
    found = []
    for name, attempt in tried.items():
        try:
            attempt()
        except OSError:
            continue
        found.append(name)
    return found
"""


@cache
def problem(level: Level) -> str | None:
    """Start a level, try to get out of it, and say what is wrong and how to mend it, if anything."""
    if level == "plain":
        return None if os.name == "posix" else "grading needs Linux, macOS, or Linux in Windows"
    if sys.platform != "linux":
        return f"{level} is of Linux alone"
    with tempfile.NamedTemporaryFile() as secret:
        source = f"SECRET, PARENT = {secret.name!r}, {os.getpid()}\n{ESCAPES}"
        try:
            with Sandbox("00", level) as sandbox:
                sandbox.hold(source, "escapes")
                reply = sandbox.run(Request(()))
        except NoIsolation as error:
            return str(error).rstrip(".")
    if reply.error:
        return f"{level} does not start here ({reply.error.message}): {FIXES[level]}"
    if reply.output:
        return f"{level} lets code through to {', '.join(reply.output)}: {FIXES[level]}"
    return None


def best_level() -> Level:
    """Return the first level of the ladder that holds."""
    return next(level for level in LEVELS if level == "plain" or problem(level) is None)
