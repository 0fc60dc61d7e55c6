"""An environment of its own for nbgrader and otter-grader, which shares the course's packages."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from course_lib.paths import ROOT

FOLDER = Path(os.environ.get("COURSE_TOOLS", ROOT / "build" / "tools"))
PACKAGES = ("nbgrader==0.9.6", "otter-grader==7.0.0", "junitparser==5.0.3")


def environment() -> dict[str, str]:
    """Return the variables under which the tools run; install them the first time.

    Raises subprocess.CalledProcessError where pip cannot fetch them.
    """
    programs = FOLDER / "bin"
    made = FOLDER / "packages.txt"
    if not made.exists() or made.read_text("utf8").split() != list(PACKAGES):
        venv.create(FOLDER, clear=True, with_pip=True)
        # torch, Jupyter and the course are those of this environment
        own = sysconfig.get_path("purelib", vars={"base": str(FOLDER)})
        shared = f"{sysconfig.get_path('purelib')}\n{ROOT}\n"
        (Path(own) / "course.pth").write_text(shared, "utf8")
        pip = [programs / "python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt"]
        subprocess.run([*pip, *PACKAGES], check=True, stdout=sys.stderr)
        made.write_text("\n".join(PACKAGES), "utf8")
    return os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "JUPYTER_PATH": str(Path(sys.prefix, "share", "jupyter")),
    }
