"""Where the course's files are: around the package in a clone, inside it in a wheel."""

import importlib.metadata
import json
import re
import sys
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED = PACKAGE / "shipped"  # what a wheel brings beside the code, by pyproject.toml
IS_CLONE = not SHIPPED.is_dir()
ROOT = PACKAGE.parent if IS_CLONE else SHIPPED  # holds lessons, notebooks and results


def how_to_install(extra: str = "") -> str:
    """Say how the course, or it and an extra such as "lab", is installed where this runs.

    No name is told that nobody owns: a clone and a wheel are told by their paths, anything else by
    the address where the course is published.
    """
    about = importlib.metadata.distribution("transformer-course")
    whole = f"[{extra}]" if extra else ""
    if IS_CLONE:
        wanted = f'-c "{ROOT}/constraints.txt" -e "{ROOT}{whole}"'
    elif wheel := _wheel(about):
        wanted = f'"transformer-course{whole} @ {wheel.as_uri()}"'
    elif address := _address(about):
        wanted = f'"{source(address, whole)}"'
    else:
        return f"install{whole and f' the extra {whole} of'} the wheel that you have it from again"
    return f"run `{sys.executable} -m pip install {wanted}`"


def source(repository: str, extra: str = "") -> str:
    """Return what pip takes for an address such as https://HOST/ACCOUNT/NAME/tree/BRANCH."""
    return f"transformer-course{extra} @ git+{repository.replace('/tree/', '@')}"


def _wheel(about: importlib.metadata.Distribution) -> Path | None:
    """Return the wheel that the course was installed from, if it is still there (PEP 610)."""
    origin = urlparse(json.loads(about.read_text("direct_url.json") or "{}").get("url", ""))
    wheel = Path(url2pathname(origin.path))  # on Windows /C:/FOLDER is C:\FOLDER
    return wheel if origin.scheme == "file" and wheel.is_file() else None


def _address(about: importlib.metadata.Distribution) -> str | None:
    """Return where the course is published, by the setting of pyproject.toml, or None."""
    named = (one.partition(", ") for one in about.metadata.get_all("Project-URL") or ())
    return next((address for name, _, address in named if name == "Repository"), None)


def lessons_of_module(name: str) -> list[int]:
    """Return the lessons that a component's module or folder names in its first line, in order."""
    file = PACKAGE / f"{name}.py"
    if not file.is_file():
        file = PACKAGE / name / "__init__.py"
    first = file.read_text("utf8").partition("\n")[0]
    return [int(number) for number in re.findall(r"\b\d\d\b", first.rpartition("(")[2])]
