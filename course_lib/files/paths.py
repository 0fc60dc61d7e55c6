"""Where the course's files are: around the package in a clone, inside it in a wheel."""

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED = PACKAGE / "shipped"  # what a wheel brings beside the code, by pyproject.toml
IS_CLONE = not SHIPPED.is_dir()
ROOT = PACKAGE.parent if IS_CLONE else SHIPPED  # holds lessons, notebooks and results


def install(extra: str = "") -> str:
    """Return the command that installs the course, or it and an extra such as "[instructor]"."""
    tested = f'-c "{ROOT}/constraints.txt" -e "{ROOT}{extra}"'
    source = tested if IS_CLONE else f'"transformer-course{extra}"'
    return f"{sys.executable} -m pip install {source}"
