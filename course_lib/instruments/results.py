"""Figures over several seeds, kept with what made them: `make results`, then results/NAME.json."""

import json
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import course_lib
from course_lib.files.atomic import write_atomically
from course_lib.files.paths import ROOT

FOLDER = ROOT / "results"
UNFINISHED = ROOT / "build" / "experiments"


def save(
    name: str, figures: dict[str, Any], *, command: str, seeds: Sequence[int], seconds: float
) -> Path:
    """Write results/NAME.json: the figures, and the command, versions and machine behind them.

    Raises ValueError for a figure that is not a finite number, which JSON cannot hold.
    """
    content = {
        "command": command,
        "seeds": list(seeds),
        "seconds": round(seconds, 1),
        "machine": {"processor": _processor(), "cores": os.cpu_count()},
        "versions": {
            "python": platform.python_version(),
            "torch": version("torch"),
            "course": course_lib.__version__,
        },
        "figures": figures,
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    # one line for each list of numbers
    text = re.sub(r"\[\n[\d\s.,e+-]*\]", lambda numbers: json.dumps(json.loads(numbers[0])), text)
    path = FOLDER / f"{name}.json"
    write_atomically(path, text + "\n")
    (UNFINISHED / f"{name}.json").unlink(missing_ok=True)
    return path


def once(name: str, settings: Any, key: str, measure: Callable[[], Any]) -> Any:
    """Return what `measure()` gives, kept until `save`: an experiment that was stopped goes on.

    It is plain data, kept under `key` in build/experiments/NAME.json. What was kept with other
    settings is thrown away.
    """
    path, settings = UNFINISHED / f"{name}.json", json.loads(json.dumps(settings))

    def kept() -> dict[str, Any]:
        with suppress(OSError, ValueError):
            found = json.loads(path.read_text("utf8"))
            return found["done"] if found["settings"] == settings else {}
        return {}

    if key in (done := kept()):
        return done[key]
    measured = measure()
    # read again: what was measured meanwhile is kept, too
    write_atomically(path, json.dumps({"settings": settings, "done": kept() | {key: measured}}))
    return measured


def load(name: str) -> dict[str, Any]:
    """Return what `save` wrote; the figures are under "figures".

    Raises FileNotFoundError for results that are not there.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        there = ", ".join(sorted(file.stem for file in FOLDER.glob("*.json"))) or "none"
        raise FileNotFoundError(
            f"there are no results called {name!r} in {FOLDER} (there: {there}): "
            "`make results` measures them anew"
        )
    return json.loads(path.read_text("utf8"))


def _processor() -> str:
    """Return the processor's name, which Linux keeps in a file of its own."""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text("utf8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
