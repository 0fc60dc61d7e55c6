"""The kernel of the course's own name, which finds this Python from any front end.

VS Code, PyCharm, a hub and another Lab list the kernels of their user. The notebooks that are
handed out name this one, so that none of these chooses a Python without the course, and a kernel of
it explains the page's own names wherever it is started.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.files.paths import PACKAGE

if TYPE_CHECKING:
    from jupyter_client.kernelspec import KernelSpec

NAME, SHOWN = "transformer-course", "Transformer course"
# what a kernel runs first
STARTUP = PACKAGE / "command_line" / "lab" / "kernel.py"
# of the environment that a kernel begins in, what nobody has set
SETTINGS = {
    # torch's threads wait asleep: on two cores, beside a busy program, those that spin take 2 to 3
    # times as long, and on idle ones they save a tenth
    "OMP_WAIT_POLICY": "passive",
    # tensors of half a MiB have their memory from the system, and give it back: glibc 2.36 leaves
    # gaps between them, 0.2 GB in lesson 17
    "MALLOC_MMAP_THRESHOLD_": "524288",
}


def register() -> None:
    """Make this Python the kernel of the course, for this user. Raises OSError."""
    from ipykernel.kernelspec import install

    settings = {name: os.environ.get(name, value) for name, value in SETTINGS.items()}
    settings["PYTHONSTARTUP"] = str(STARTUP)
    install(user=True, kernel_name=NAME, display_name=SHOWN, env=settings)


def named() -> "tuple[str, KernelSpec]":
    """Return the kernel that notebooks name here: the course's own, or else Jupyter's default."""
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        own = KernelSpecManager().get_kernel_spec(NAME)
    except NoSuchKernel:
        return "python3", KernelSpecManager().get_kernel_spec("python3")
    return NAME, own


def runs_here(spec: "KernelSpec") -> bool:
    """Tell whether a kernel is of this Python."""
    program = Path(spec.argv[0])
    # Lab takes `python` as the one that it runs on
    return program.name == spec.argv[0] or program.parent == Path(sys.executable).parent
