"""Figures over several seeds, kept with what made them: research/results/NAME.json."""

import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import course_lib
from course_lib.files.atomic import write_atomically
from course_lib.files.paths import ROOT

FOLDER = ROOT / "research" / "results"
UNFINISHED = ROOT / "build" / "experiments"
# the seconds that this process has spent on what `once` keeps, by experiment
_spent: dict[str, float] = {}


def save(
    name: str, figures: dict[str, Any], *, command: str, seeds: Sequence[int], seconds: float
) -> Path:
    """Write NAME.json: the figures, and the command, versions and machine behind them.

    `seconds` are those of this process; what earlier ones spent on kept measurements is added.
    Raises ValueError for a figure that is not a finite number, which JSON cannot hold.
    """
    earlier = _unfinished(name).get("seconds", 0.0) - _spent.pop(name, 0.0)
    content = {
        "command": command,
        "seeds": list(seeds),
        "seconds": round(seconds + max(earlier, 0.0), 1),
        "machine": {"processor": processor(), "cores": os.cpu_count()},
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
    settings = json.loads(json.dumps(settings))

    def kept() -> dict[str, Any]:
        found = _unfinished(name)
        return found if found.get("settings") == settings else {"done": {}}

    if key in (done := kept()["done"]):
        return done[key]
    start, before = time.perf_counter(), _spent.get(name, 0.0)
    measured = measure()
    inside = _spent.get(name, 0.0) - before  # what was measured meanwhile is kept, too
    own = time.perf_counter() - start - inside
    _spent[name] = before + inside + own
    now = kept()
    content = {
        "settings": settings,
        "seconds": now.get("seconds", 0.0) + own,
        "done": now["done"] | {key: measured},
    }
    write_atomically(UNFINISHED / f"{name}.json", json.dumps(content))
    return measured


def _unfinished(name: str) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        return json.loads((UNFINISHED / f"{name}.json").read_text("utf8"))
    return {}


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


def processor() -> str:
    """Return the processor's name, which Linux keeps in a file of its own."""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text("utf8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
