"""The ladder of isolation: how far the students' code is kept from everything else.

bubblewrap  own user, pid, network, mount and IPC namespaces for every process; seccomp; limits
landlock    no files but some that can only be read, no network, seccomp, limits; the namespaces of
            everybody
plain       a process with limits: for code that is trusted

A process serves the answers of one submission; what fails in it is tried again in a fresh one.
Which levels this machine offers is not looked up: each is started and tried.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from course_lib.grading.judging.sandbox_files import SandboxFiles, make_files

Level = Literal["bubblewrap", "landlock", "plain"]
LEVELS: tuple[Level, ...] = get_args(Level)
START_SECONDS = 120  # for Python and torch to load, on a busy machine too
ENVIRONMENT = {
    "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
    "OMP_THREAD_LIMIT": "1",  # an answer may ask for more, and there are no threads
    "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "Agg", "LANG": "C.UTF-8",
    "HOME": "/",
}  # fmt: skip
DEVICES = ("/dev/null", "/dev/urandom")  # torch draws its seeds from the second


AS_ROOT = (
    "you are root, whom the kernel lets do more than the sandbox takes away: be somebody else."
)


class CannotGrade(Exception):
    """What keeps a run from going on; the message is one sentence."""


class NoIsolation(CannotGrade):
    """A level that this machine does not offer."""


def is_root() -> bool:
    """Tell whether this process is root's."""
    return os.name == "posix" and os.geteuid() == 0


def fix(level: Level) -> str:
    """Say what would make a level work."""
    if level == "landlock":
        return "Linux 5.13 or newer has it: add `landlock` to the kernel's list of `lsm`"
    if shutil.which("bwrap"):
        return (
            "allow user namespaces (`sysctl user.max_user_namespaces "
            "kernel.apparmor_restrict_unprivileged_userns`)"
        )
    return "install it (`apt-get install bubblewrap`, `dnf install bubblewrap`)"


def command(
    level: Level, files: SandboxFiles, module: str, *arguments: object
) -> tuple[list[str], dict]:
    """Return the command that starts a module at a level, and its environment.

    What may be seen follows its arguments, for a level at which it must see to that itself.
    """
    name = f"course_lib.grading.judging.inside.{module}"
    python = [str(files.program), "-S", "-s", "-m", name, level, *map(str, arguments)]
    places = ("MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR", "TMPDIR")
    environment = ENVIRONMENT | dict.fromkeys(places, str(files.folder))
    environment["LD_LIBRARY_PATH"] = ":".join(map(str, files.libraries))
    if level != "bubblewrap":
        return [*python, *map(str, files.shown()), *DEVICES], environment
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise NoIsolation(f"bubblewrap is not there: {fix(level)}.")
    shown = []
    for path in (files.folder, *files.readable):
        shown += ["--ro-bind", str(path), str(path)]
    for path in files.hidden:
        shown += ["--tmpfs", str(path), "--remount-ro", str(path)]
    for path in map(Path, ("/lib", "/lib32", "/lib64")):
        if path.is_symlink():
            shown += ["--symlink", os.readlink(path), str(path)]
    # not `--dev`: that is a writable folder in memory, which one submission would leave to the next
    devices = [x for name in DEVICES for x in ("--dev-bind", name, name)]
    return [
        bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", *shown,
        "--proc", "/proc", *devices, "--remount-ro", "/", "--chdir", str(files.folder),
        "--", *python,
    ], environment  # fmt: skip


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
