"""Which levels of isolation this machine offers: each is started and tried, not looked up."""

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from course_lib.grading.judging.isolation import (
    LEVELS,
    START_SECONDS,
    Level,
    NoIsolation,
    command,
    fix,
)
from course_lib.grading.judging.sandbox_files import make_files


@cache
def problem(level: Level) -> str | None:
    """Start a level, try to get out of it, and say what is wrong and how to mend it, if so."""
    if level == "plain":
        return None if os.name == "posix" else "grading needs Linux, macOS, or Linux in Windows"
    if sys.platform != "linux":
        return f"{level} is of Linux alone"
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as secret:
        files = make_files(Path(folder).resolve(), lesson="00")
        try:
            words, environment = command(level, files, "escapes", secret.name, os.getpid())
        except NoIsolation as error:
            return str(error).rstrip(".")
        done = subprocess.run(
            words, env=environment, cwd=files.folder, capture_output=True, text=True,
            timeout=START_SECONDS,
        )  # fmt: skip
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {"error": done.stderr.strip().rpartition("\n")[2] or "it ended without a word"}
    if "ulimit" in str(said.get("error")):
        return f"a limit of this system is too low: {said['error']}"
    if "error" in said:
        return f"{level} does not start here ({said['error']}): {fix(level)}"
    if said["reached"]:
        return f"{level} lets code through to {', '.join(said['reached'])}: {fix(level)}"
    return None


def problems() -> str:
    """Name what is wrong with each level, as part of a sentence; empty where nothing is."""
    return "; ".join(filter(None, map(problem, LEVELS)))


def best_level() -> Level:
    """Return the first level of the ladder that holds."""
    return next(level for level in LEVELS if level == "plain" or problem(level) is None)
