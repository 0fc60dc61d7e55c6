"""The ladder of isolation: how far the students' code is kept from everything else.

bubblewrap  own user, pid, network, mount and IPC namespaces for every process; seccomp; limits
landlock    read-only files, no network, seccomp, limits; the same namespaces as everybody
plain       a process with limits: for code that is trusted

A process serves the answers of one submission; what fails in it is tried again in a fresh one.
"""

import os
import shutil
from pathlib import Path
from typing import Literal, get_args

from course_lib.grading.judging.sandbox_files import SandboxFiles

Level = Literal["bubblewrap", "landlock", "plain"]
LEVELS: tuple[Level, ...] = get_args(Level)
START_SECONDS = 120  # for Python and torch to load, on a busy machine too
ENVIRONMENT = {
    "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "Agg", "LANG": "C.UTF-8",
    "HOME": "/",
}  # fmt: skip
DEVICES = ("/dev/null", "/dev/urandom")  # torch draws its seeds from the second


class CannotGrade(Exception):
    """What keeps a run from going on; the message is one sentence."""


class NoIsolation(CannotGrade):
    """A level that this machine does not offer."""


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
